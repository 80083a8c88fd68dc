"""Locally constrained decoding: at each step the model's row, masked and renormalised.

With ``Z`` the probability that the model chooses an allowed token, a sampled output ``y`` has
probability ``Q(y) = P(y) / prod(Z)``, so ``W(y) = prod(Z)`` has the mean ``sum of P(y)`` over the
language: the probability that the unconstrained model stays in it. ``log_weight`` is ``log W``.

Masks respect the budget (an allowed token can always be completed within the tokens that are left),
so the language meant is that of the members that fit, and no output is ever cut.

Where exactly one token is allowed it is appended without a draw, and a chain of such tokens goes
through the model in one call. The probabilities of forced tokens are read from that call: leaving
them out would make the weights wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import DeadEndError, OptionError
from constrain.numerics import RandomStreams, Sampling, allowed_token_ids, choose
from constrain.text import encode_exactly, has_token_past
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.compiled import Matcher
    from constrain.numerics import IdArray
    from constrain.protocols import DecodingSession, LogitsBackend

JUMPS = ("token", "text", "off")


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
    feasible_mass : list of float
        For each generated token the probability that the model chose an allowed one.
    """

    prompt_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    model_calls: int = 0
    mask_seconds: float = 0.0
    model_seconds: float = 0.0
    feasible_mass: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Options of ``method="local"``.

    Parameters
    ----------
    batch_size : int
        Most rows that go through the model together. Results don't depend on it.
    jump_forward : {"token", "text", "off"}
        ``"token"`` jumps where exactly one token is allowed. ``"text"`` also jumps where all members
        go on with the same text, tokenised as the model's tokenizer writes it: fewer calls, but
        other tokenisations are left out, so ``log_weight`` is ``None``.
    score : bool
        ``False`` skips the calls of the model that serve ``log_probability`` and ``log_weight``
        only (that of a forced end token); both are then ``None``.
    """

    batch_size: int = 16
    jump_forward: str = "token"
    score: bool = True

    def __post_init__(self) -> None:
        if self.jump_forward not in JUMPS:
            raise OptionError(f"jump_forward={self.jump_forward!r}: expected one of {', '.join(JUMPS)}.")
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise OptionError(f"batch_size={self.batch_size!r}: expected an integer of at least 1.")


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
    covers : (n,) intp or None
        Token healing: only these tokens may come first. Counts as part of the model.
    """

    index: int
    prompt_ids: list[int]
    matcher: Matcher
    max_tokens: int
    text: bytearray = field(default_factory=bytearray)
    covers: IdArray | None = None
    token_ids: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    log_weight: float = 0.0
    is_shaped: bool = False
    """Whether the budget excluded a token at some step."""
    is_finished: bool = False
    stats: Stats = field(default_factory=Stats)
    allowed: IdArray = field(default_factory=lambda: np.empty(0, np.intp))

    @property
    def remaining(self) -> int:
        """Tokens that may still be generated."""
        return self.max_tokens - len(self.token_ids)


class LocalDecoder:
    """Decodes a batch of rows step by step.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : LocalOptions
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes] = (),
        options: LocalOptions | None = None,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.stop = tuple(stop)
        self.options = options or LocalOptions()
        self._vocabulary = model.vocabulary
        self._eos = frozenset(model.vocabulary.eos_token_ids)

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Decode ``rows`` in place to their ends; yields after every step of the batch.

        Raises
        ------
        DeadEndError
            The model or ``logit_bias`` excludes every allowed token of a row.
        BackendError
            The model's logits cannot be used.
        """
        active = list(rows)
        self._fill(active)
        session, lines = self._start(active)
        while active:
            queues = [self._extend(row, line) for row, line in zip(active, lines, strict=True)]
            self._fill([row for row in active if not row.is_finished])
            kept = [place for place, row in enumerate(active) if not row.is_finished]
            active = [active[place] for place in kept]
            yield
            if active:
                session.select(kept)
                lines = self._append(session, active, [queues[place] for place in kept])

    # ---------------------------------------------------------------------------------- the model

    def _start(self, rows: Sequence[Row]) -> tuple[DecodingSession, list[NDArray[np.float32]]]:
        """Read the prompts, each different one once, and give every row a line of the session."""
        prompts: dict[tuple[int, ...], int] = {}
        places = [prompts.setdefault(tuple(row.prompt_ids), len(prompts)) for row in rows]
        begin = time.perf_counter()
        session, logits = self.model.start([list(prompt) for prompt in prompts])
        session.select(places)
        self._share(rows, time.perf_counter() - begin)
        return session, [logits[place] for place in places]

    def _append(
        self, session: DecodingSession, rows: Sequence[Row], queues: Sequence[list[int]]
    ) -> list[NDArray[np.float32]]:
        """Append the queued tokens; score those that were forced; return each row's last logits."""
        begin = time.perf_counter()
        blocks = session.append(queues)
        self._share(rows, time.perf_counter() - begin)
        for row, queue, block in zip(rows, queues, blocks, strict=True):
            first = len(row.token_ids) - len(queue) + 1
            for place, token_id in enumerate(queue[1:]):
                self._score(row, block[place], np.array([token_id]), first + place)
        return [block[-1] for block in blocks]

    def _share(self, rows: Sequence[Row], seconds: float) -> None:
        for row in rows:
            row.stats.model_calls += 1
            row.stats.model_seconds += seconds / len(rows)

    # ---------------------------------------------------------------------------------- the masks

    def _fill(self, rows: Sequence[Row]) -> None:
        """Set the allowed tokens of each row; rows that need no model call to end are ended."""
        if not rows:
            return
        begin = time.perf_counter()
        size = self._vocabulary.size
        bitmask = allocate_token_bitmask(len(rows), size)
        for place, row in enumerate(rows):
            if row.matcher.fill_budget_bitmask(bitmask, place, remaining=row.remaining):
                row.is_shaped = True
            row.allowed = allowed_token_ids(bitmask[place], size)
            if row.covers is not None:
                row.allowed = np.intersect1d(row.allowed, row.covers, assume_unique=True)
            if not len(row.allowed):
                raise DeadEndError(
                    f"The spec of row {row.index} allows no token at step {len(row.token_ids)} "
                    f"with {row.remaining} tokens left."
                )
            ends = self._eos.issuperset(row.allowed.tolist()[:2])
            if not self.options.score and ends and row.matcher.is_accepting():
                self._end(row, int(row.allowed[0]))
                row.stats.forced_tokens += 1
        seconds = (time.perf_counter() - begin) / len(rows)
        for row in rows:
            row.stats.mask_seconds += seconds

    # ------------------------------------------------------------------------------------ one row

    def _score(self, row: Row, line: NDArray[np.float32], allowed: IdArray, step: int) -> int:
        """Choose from ``allowed`` and add the choice to the row's probability and weight."""
        if row.covers is not None:
            # The model is asked for the tokens that may stand here; see ``constrain.text``.
            cover = np.full_like(line, -np.inf)
            cover[row.covers] = line[row.covers]
            line = cover
        uniform = 0.0
        if len(allowed) > 1 and self.sampling.temperature > 0.0:
            uniform = self.streams.uniform(row.index, step)
        choice = choose(line, allowed, self.sampling, uniform, row=row.index, step=step)
        row.log_probability += choice.log_probability
        row.log_weight += choice.log_feasible
        row.stats.feasible_mass.append(float(np.exp(choice.log_feasible)))
        return choice.token_id

    def _extend(self, row: Row, line: NDArray[np.float32]) -> list[int]:
        """Choose the row's next token, follow what it forces; the tokens the model hasn't seen."""
        token_id = self._score(row, line, row.allowed, len(row.token_ids))
        if len(row.allowed) == 1:
            row.stats.forced_tokens += 1
        row.covers = None
        # A spec may name an end token for a place where the output goes on.
        if token_id in self._eos and row.matcher.is_accepting():
            self._end(row, token_id)
            return []
        begin = time.perf_counter()
        before = row.matcher.fork() if self.stop else None
        queue = [token_id]
        self._accept(row, token_id)
        if before is not None:
            self._stop(row, before, token_id)
        elif self.options.jump_forward != "off":
            forced = self._forced(row)
            for token in forced:
                self._accept(row, token)
            row.stats.forced_tokens += len(forced)
            queue += forced
        row.stats.mask_seconds += time.perf_counter() - begin
        return queue

    def _accept(self, row: Row, token_id: int) -> None:
        if not row.matcher.accept_token(token_id):
            raise DeadEndError(
                f"The matcher of row {row.index} rejects token {token_id}, which its mask allows, "
                f"at step {len(row.token_ids)}."
            )
        row.token_ids.append(token_id)
        row.stats.generated_tokens += 1
        row.text += self._vocabulary.token_bytes(token_id) or b""

    def _end(self, row: Row, token_id: int) -> None:
        row.matcher.accept_token(token_id)
        row.token_ids.append(token_id)
        row.stats.generated_tokens += 1
        row.is_finished = True

    def _stop(self, row: Row, before: Matcher, token_id: int) -> None:
        """End the row where its newest token completes a stop string and the output is complete.

        ``before`` is the matcher before that token: the string may end inside it.
        """
        token = self._vocabulary.token_bytes(token_id) or b""
        begin = len(row.text) - len(token)
        for end in range(begin + 1, len(row.text) + 1):
            if not row.text[:end].endswith(self.stop):
                continue
            matcher = row.matcher
            if end < len(row.text):
                matcher = before.fork()
                matcher.accept_string(bytes(token[: end - begin]))
            if matcher.is_accepting():
                del row.text[end:]
                row.is_finished = True
                return

    def _forced(self, row: Row) -> list[int]:
        """Tokens that follow without a choice, end tokens left out."""
        forced = []
        for token_id in row.matcher.forced_tokens():
            if token_id in self._eos:
                break
            forced.append(token_id)
        if self.options.jump_forward == "text" and not forced:
            forced = self._forced_text(row)
        return forced

    def _forced_text(self, row: Row) -> list[int]:
        """Tokens of the text that all members go on with, as the tokenizer writes it.

        Tokens at the end are given up while another allowed token begins with the text given up
        and reaches past it; and so is what doesn't fit the budget.
        """
        text = row.matcher.find_jump_forward_string().encode()
        if not text:
            return []
        token_ids = encode_exactly(self.model, text)
        matcher = row.matcher.fork()
        mask = allocate_token_bitmask(1, self._vocabulary.size)
        good = 0
        for place, token_id in enumerate(token_ids):
            matcher.fill_budget_bitmask(mask, 0, remaining=row.remaining - place)
            allowed = allowed_token_ids(mask[0], self._vocabulary.size)
            rest = b"".join(self._vocabulary.token_bytes(token) or b"" for token in token_ids[place:])
            if token_id not in allowed or has_token_past(self._vocabulary, allowed, rest):
                break
            matcher.accept_token(token_id)
            good = place + 1
        return token_ids[:good]
