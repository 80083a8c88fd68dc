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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from constrain.decoders.checked import CheckedSearch
from constrain.decoders.forced import forced_tokens
from constrain.decoders.rows import Row, share_model_call, start_session
from constrain.errors import DeadEndError, OptionError
from constrain.numerics import RandomStreams, Sampling, allowed_token_ids, choose
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.numerics import IdArray
    from constrain.protocols import DecodingSession, LogitsBackend

JUMPS = ("token", "text", "off")


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
    max_checks : int
        For specs with checks (`Spec.where`): how often they may be asked for one output, and how often it
        may be taken back, before `DeadEndError`.
    """

    batch_size: int = 16
    jump_forward: str = "token"
    score: bool = True
    max_checks: int = 10_000

    def __post_init__(self) -> None:
        if self.jump_forward not in JUMPS:
            raise OptionError(f"jump_forward={self.jump_forward!r}: expected one of {', '.join(JUMPS)}.")
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise OptionError(f"batch_size={self.batch_size!r}: expected an integer of at least 1.")
        if not isinstance(self.max_checks, int) or self.max_checks < 1:
            raise OptionError(f"max_checks={self.max_checks!r}: expected an integer of at least 1.")

    @property
    def is_weighted(self) -> bool:
        """Whether weights are known and right."""
        return self.score and self.jump_forward != "text"


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
            The model or ``logit_bias`` excludes every allowed token of a row, or the checks of its spec refuse
            all that was tried.
        CheckError
            A check failed.
        BackendError
            The model's logits cannot be used.
        """
        yield from self._run_together([row for row in rows if row.checks is None])
        search = CheckedSearch(self.model, self.sampling, self.streams, stop=self.stop, options=self.options)
        yield from search.run([row for row in rows if row.checks is not None])

    def _run_together(self, active: list[Row]) -> Iterator[None]:
        """Decode rows without checks."""
        if not active:
            return
        self._fill(active)
        session, lines = start_session(self.model, active)
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

    def _append(
        self, session: DecodingSession, rows: Sequence[Row], queues: Sequence[list[int]]
    ) -> list[NDArray[np.float32]]:
        """Append the queued tokens; score those that were forced; return each row's last logits."""
        begin = time.perf_counter()
        blocks = session.append(queues)
        share_model_call(rows, time.perf_counter() - begin)
        for row, queue, block in zip(rows, queues, blocks, strict=True):
            first = len(row.token_ids) - len(queue) + 1
            for place, token_id in enumerate(queue[1:]):
                self._score(row, block[place], np.array([token_id]), first + place)
        return [block[-1] for block in blocks]

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
                row.end(int(row.allowed[0]))
                row.stats.forced_tokens += 1
        seconds = (time.perf_counter() - begin) / len(rows)
        for row in rows:
            row.stats.mask_seconds += seconds

    # ------------------------------------------------------------------------------------ one row

    def _score(self, row: Row, line: NDArray[np.float32], allowed: IdArray, step: int) -> int:
        """Choose from ``allowed`` and add the choice to the row's probability and weight."""
        # The model is asked for the tokens that may stand here; see ``constrain.text``.
        line = row.covered(line)
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
            row.end(token_id)
            return []
        begin = time.perf_counter()
        before = row.matcher.fork() if self.stop else None
        queue = [token_id]
        row.accept(token_id, self._vocabulary)
        if before is not None:
            row.stop_at(self.stop, before, self._vocabulary)
        elif self.options.jump_forward != "off":
            forced = forced_tokens(self.model, row, self.options.jump_forward)
            for token in forced:
                row.accept(token, self._vocabulary)
            row.stats.forced_tokens += len(forced)
            queue += forced
        row.stats.mask_seconds += time.perf_counter() - begin
        return queue
