"""Rows: outputs while they grow, and what every decoder does to them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import DeadEndError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.compiled import Matcher
    from constrain.decoders.draft import DraftStats
    from constrain.decoders.row_checks import RowChecks
    from constrain.decoders.sketch import SketchStats
    from constrain.numerics import IdArray
    from constrain.protocols import DecodingSession, LogitsBackend
    from constrain.tokenizer_index.vocabulary import Vocabulary


@dataclass(slots=True)
class Stats:
    """Counts and seconds of one output.

    Parameters
    ----------
    prompt_tokens : int
        Tokens of the prompt and of the prefix.
    generated_tokens : int
        Tokens after them, forced ones and the end token included.
    forced_tokens : int
        Tokens that were appended without a draw.
    model_calls : int
        Calls of the model this output took part in, reading the prompt included.
    mask_seconds, model_seconds : float
        Time for masks and matchers, and for the model; a batch's time is shared out to its rows.
    checks : int
        Tokens that were checked one by one, by methods that ask for single tokens, not for masks.
    drafted_tokens : int
        Tokens that were drafted, by methods that draft.
    attempts, accepted : int
        Outputs, or parts of one, that were begun and taken, by methods that may throw some away.
    check_calls : int
        How often the spec's checks (`Spec.where`) were asked.
    check_failures : int
        How often they said no.
    check_seconds : float
        Time for their answers.
    backtracks : int
        How often the output was taken back to an earlier place, because checks refused all ways on.
    feasible_mass : list of float
        For each generated token the probability that the model chose an allowed one; with single
        checks an unbiased estimate of it.
    draft, sketch
        What became of the first stage, by ``method="draft"`` and ``"sketch"``.
    """

    prompt_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    model_calls: int = 0
    checks: int = 0
    drafted_tokens: int = 0
    attempts: int = 0
    accepted: int = 0
    mask_seconds: float = 0.0
    model_seconds: float = 0.0
    check_calls: int = 0
    check_failures: int = 0
    check_seconds: float = 0.0
    backtracks: int = 0
    feasible_mass: list[float] = field(default_factory=list)
    draft: DraftStats | None = None
    sketch: SketchStats | None = None


@dataclass(slots=True, eq=False)
class Row:
    """One output while it grows.

    Parameters
    ----------
    index : int
        Names the row in errors and chooses its random numbers.
    prompt_ids : list of int
        What the model reads first.
    matcher : Matcher
        After the text of the prefix that is in ``prompt_ids``.
    max_tokens : int
        Tokens that may be generated, the end token included.
    text : bytearray
        Output so far: the prefix, then the bytes of the generated tokens.
    checks : RowChecks or None
        What the spec demands beyond its grammar.
    covers : (n,) intp or None
        Token healing: only these tokens may come first. Counts as part of the model.
    """

    index: int
    prompt_ids: list[int]
    matcher: Matcher
    max_tokens: int
    text: bytearray = field(default_factory=bytearray)
    covers: IdArray | None = None
    checks: RowChecks | None = None
    token_ids: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    log_weight: float = 0.0
    is_shaped: bool = False
    """Whether the budget excluded a token at some step."""
    is_finished: bool = False
    is_complete: bool = True
    """False where a weighted method was cut short: the output is no member then."""
    is_weighted: bool = True
    """Whether ``log_weight`` is right, as far as the row goes."""
    stats: Stats = field(default_factory=Stats)
    allowed: IdArray = field(default_factory=lambda: np.empty(0, np.intp))
    n_prefix: int = -1
    """Bytes of ``text`` that the generated tokens come after."""

    def __post_init__(self) -> None:
        if self.n_prefix < 0:
            self.n_prefix = len(self.text)

    @property
    def remaining(self) -> int:
        """Tokens that may still be generated."""
        return self.max_tokens - len(self.token_ids)

    def accept(self, token_id: int, vocabulary: Vocabulary) -> None:
        """Append a token that doesn't end the output.

        Raises
        ------
        DeadEndError
            The matcher rejects it.
        """
        if not self.matcher.accept_token(token_id):
            raise DeadEndError(
                f"The matcher of row {self.index} rejects token {token_id}, which its mask allows, "
                f"at step {len(self.token_ids)}."
            )
        if self.checks is not None:
            self.checks.accept(token_id)
        self.token_ids.append(token_id)
        self.stats.generated_tokens += 1
        self.text += vocabulary.token_bytes(token_id) or b""

    def passes(self, token_id: int) -> bool:
        """Do the spec's checks, if there are any, want a token that the matcher allows?"""
        if self.checks is None:
            return True
        if token_id in self.matcher.compiled.eos_token_ids and self.matcher.is_accepting():
            return self.checks.ends()
        return self.checks.allows(token_id)

    def end(self, token_id: int) -> None:
        """Append an end token where the output is complete."""
        self.matcher.accept_token(token_id)
        self.token_ids.append(token_id)
        self.stats.generated_tokens += 1
        self.is_finished = True

    def stop_at(self, stop: tuple[bytes, ...], before: Matcher, vocabulary: Vocabulary) -> None:
        """End the row where its newest token completes a stop string and the output is complete.

        ``before`` is the matcher before that token: the string may end inside it.
        """
        token = vocabulary.token_bytes(self.token_ids[-1]) or b""
        begin = len(self.text) - len(token)
        for end in range(begin + 1, len(self.text) + 1):
            if not self.text[:end].endswith(stop):
                continue
            matcher = self.matcher
            if end < len(self.text):
                matcher = before.fork()
                matcher.accept_string(bytes(token[: end - begin]))
            if matcher.is_accepting() and (self.checks is None or self.checks.takes(bytes(self.text[:end]))):
                del self.text[end:]
                self.is_finished = True
                return

    def covered(self, line: NDArray[np.float32]) -> NDArray[np.float32]:
        """The model's row under the condition of healing: ``covers`` alone may come."""
        if self.covers is None:
            return line
        cover = np.full_like(line, -np.inf)
        cover[self.covers] = line[self.covers]
        return cover

    def append(self, token_id: int, vocabulary: Vocabulary, stop: tuple[bytes, ...]) -> None:
        """Append a chosen token, which ends the output if it is an end token where the output is complete.

        A spec may name an end token for a place where the output goes on.
        """
        self.covers = None
        if token_id in vocabulary.eos_token_ids and self.matcher.is_accepting():
            self.end(token_id)
            return
        before = self.matcher.fork() if stop else None
        self.accept(token_id, vocabulary)
        if before is not None:
            self.stop_at(stop, before, vocabulary)

    def replay(self, token_ids: Sequence[int], vocabulary: Vocabulary) -> None:
        """Append tokens that were accepted before, none of which ended the output."""
        for token_id in token_ids:
            self.accept(token_id, vocabulary)
            self.covers = None

    def take(self, other: Row) -> None:
        """Become what ``other`` is; ``other`` isn't used any more."""
        for name in (one.name for one in dataclasses.fields(self)):
            setattr(self, name, getattr(other, name))

    def copy(self) -> Row:
        """A row in the same state that grows on its own."""
        return dataclasses.replace(
            self,
            matcher=self.matcher.fork(),
            text=bytearray(self.text),
            token_ids=list(self.token_ids),
            checks=None if self.checks is None else self.checks.fork(),
            stats=dataclasses.replace(self.stats, feasible_mass=list(self.stats.feasible_mass)),
        )


def start_session(
    model: LogitsBackend, rows: Sequence[Row]
) -> tuple[DecodingSession, list[NDArray[np.float32]]]:
    """Read the prompts, each different one once, and give every row a line of the session."""
    prompts: dict[tuple[int, ...], int] = {}
    places = [prompts.setdefault(tuple(row.prompt_ids), len(prompts)) for row in rows]
    begin = time.perf_counter()
    session, logits = model.start([list(prompt) for prompt in prompts])
    session.select(places)
    share_model_call(rows, time.perf_counter() - begin)
    return session, [logits[place] for place in places]


def share_model_call(rows: Sequence[Row], seconds: float) -> None:
    """Count a call of the model for each of the rows that took part in it."""
    for row in rows:
        row.stats.model_calls += 1
        row.stats.model_seconds += seconds / len(rows)
