"""Potentials: what a user wants of texts beyond the constraint, as factors of the target.

The target of weighted sampling is ``P(y) C(y) Phi(y)``: model, constraint, potential. A potential is a
Python function ``potential(text, is_complete)`` that returns ``log Phi``. Of complete outputs it is part of
the target. Of partial ones it only says early where to look: any finite values give the right answer,
good ones with fewer particles. ``-inf`` for a partial text promises that no continuation is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from constrain.errors import BackendError, OptionError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchPotential:
    """A potential that takes the texts of all particles at once.

    Parameters
    ----------
    function : callable
        ``function(texts, are_complete)`` returns as many logarithms as there are texts; no text comes
        twice in a call.
    """

    function: Callable[[Sequence[str], Sequence[bool]], Sequence[float]]

    def __call__(self, texts: Sequence[str], are_complete: Sequence[bool]) -> Sequence[float]:
        """Return the logarithms of the potential."""
        return self.function(texts, are_complete)


Potential: TypeAlias = Callable[[str, bool], float] | BatchPotential


def check_potential(potential: object) -> None:
    """Refuse what cannot be a potential.

    Raises
    ------
    OptionError
        It isn't callable.
    """
    if potential is not None and not callable(potential):
        raise OptionError(
            f"potential={potential!r:.60}: expected a function of a text and whether it is complete."
        )


def log_potentials(
    potential: Potential, texts: Sequence[bytes], are_complete: Sequence[bool], step: int
) -> list[float]:
    """Ask for each different text once.

    Parameters
    ----------
    texts : sequence of bytes
        UTF-8; a partial text may end inside a character, which is then left out.
    step : int
        Named in errors.

    Raises
    ------
    BackendError
        The potential raised an error or returned something else than numbers below infinity.
    """
    keys = [
        (text.decode("utf-8", errors="surrogateescape" if complete else "ignore"), complete)
        for text, complete in zip(texts, are_complete, strict=True)
    ]
    known: dict[tuple[str, bool], float] = {}
    distinct = list(dict.fromkeys(keys))
    if isinstance(potential, BatchPotential):
        values = _call(
            lambda: list(potential([text for text, _ in distinct], [complete for _, complete in distinct])),
            f"{len(distinct)} texts",
            step,
        )
        if len(values) != len(distinct):
            raise BackendError(
                f"The potential returned {len(values)} values for {len(distinct)} texts at step {step}."
            )
    else:
        values = [_call(_bound(potential, key), _named(key), step) for key in distinct]
    for key, value in zip(distinct, values, strict=True):
        known[key] = _number(value, key, step)
    return [known[key] for key in keys]


def _bound(potential: Callable[[str, bool], float], key: tuple[str, bool]) -> Callable[[], float]:
    return lambda: potential(*key)


def _call(function: Callable[[], T], what: str, step: int) -> T:
    try:
        return function()
    except Exception as error:
        raise BackendError(
            f"The potential failed at step {step} on {what}: {type(error).__name__}: {error}"
        ) from error


def _number(value: object, key: tuple[str, bool], step: int) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise BackendError(
            f"The potential returned {value!r:.60} at step {step} for {_named(key)}: expected a number."
        ) from error
    if math.isnan(number) or number == math.inf:
        raise BackendError(
            f"The potential returned {number} at step {step} for {_named(key)}: expected a logarithm "
            "(a number, or -inf)."
        )
    return number


def _named(key: tuple[str, bool]) -> str:
    text, is_complete = key
    return f"the {'complete' if is_complete else 'partial'} text {text[-60:]!r}"
