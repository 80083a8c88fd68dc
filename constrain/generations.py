"""What generation returns: finished outputs, and outputs that are still being written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from constrain.decoders.rows import Stats

FinishReason: TypeAlias = Literal["stop", "length", "budget"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One finished output.

    Parameters
    ----------
    value : object
        The parsed output: of the Python type that was asked for, JSON data for a schema, text for a
        pattern. ``None`` where the output isn't complete.
    text : str
        The output, the prefix included. Bytes that aren't UTF-8 (only in specs that allow them) are
        lone surrogates, as by ``errors="surrogateescape"``.
    token_ids : list of int
        The generated tokens, the end token included; not the prefix, except a token that healing
        wrote anew.
    log_probability : float or None
        Natural logarithm of the tokens' probability under the unconstrained model, with temperature
        (nominally 1 for 0) and ``logit_bias``, before truncation.
    log_weight : float or None
        ``exp(log_weight)`` has as its mean the probability that the unconstrained model, truncation
        included, cut at ``max_tokens``, writes a member of the language. Where checks (`Spec.where`) took
        an output of ``method="local"`` back, it is ``-inf`` (the first attempt failed), at temperature 0 ``None``.
    finish_reason : {"stop", "budget", "length"}
        ``"budget"``: the output ended like any other, but at some step the tokens left excluded a
        token that the spec allows. ``"length"``: cut, where a weighted method had no tokens left or
        the model, truncation included, had no token that fits (never by ``method="local"``).
    is_complete : bool
        The output is a member of the language.
    stats : Stats
    """

    value: Any
    text: str
    token_ids: list[int]
    log_probability: float | None
    log_weight: float | None
    finish_reason: FinishReason
    is_complete: bool
    stats: Stats


@dataclass(frozen=True, slots=True)
class PartialGeneration:
    """An output that is still being written.

    Parameters
    ----------
    value : object
        For JSON what is final, as JSON data: what is written, and what must follow it whatever comes next (the
        rest of an enum's value that is told from the others, a constant). ``None`` where nothing is.
    text : str
        The text so far, whole characters only.
    token_ids : list of int
    open_pointers : tuple of str
        JSON pointers (RFC 6901) of what may still change: of the objects and arrays that are still open,
        outermost first, and of members that another one of the same name may replace. All else in ``value`` is
        valid and final.
    is_complete : bool
        Always false; a ``Generation`` follows.
    final : tuple of str
        JSON pointers of what has become final with this step; a container once it is closed, its parts before
        that.
    """

    value: Any
    text: str
    token_ids: list[int]
    open_pointers: tuple[str, ...] = ()
    is_complete: bool = False
    final: tuple[str, ...] = ()
