"""Adaptive weighted rejection: tokens are drawn from the model and checked, one by one.

An output ``y`` comes with a random weight ``W`` such that ``E[W f(y)]`` is the sum of ``P(y) f(y)`` over
the members of the language that fit ``max_tokens``, for every ``f``; so the mean of ``W`` is the
probability that the unconstrained model stays in the language. Each step asks for a few tokens what
``local`` asks for the whole vocabulary.

Outputs that cannot be completed in the tokens that are left are cut, with weight 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from constrain.decoders.proposals import RejectionProposal, WeightedStep, check_integer
from constrain.decoders.rows import Row, share_model_call, start_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from constrain.numerics import RandomStreams, Sampling
    from constrain.protocols import DecodingSession, LogitsBackend


@dataclass(frozen=True, slots=True)
class RejectionOptions:
    """Options of ``method="rejection"``.

    Parameters
    ----------
    batch_size : int
        Most rows that go through the model together. Results don't depend on it.
    acceptances, max_trials
        See `RejectionProposal`.
    """

    batch_size: int = 16
    acceptances: int = 2
    max_trials: int | None = None

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, 1)
        self.proposal()

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right."""
        return True

    def proposal(self) -> RejectionProposal:
        """The proposal with these options."""
        return RejectionProposal(self.acceptances, self.max_trials)


@dataclass(slots=True, eq=False)
class RejectionState:
    """Rows that are decoded together.

    Parameters
    ----------
    active : list of Row
        Those that aren't finished.
    lines : list of (vocab_size,) float32
        The model's logits after each active row.
    """

    active: list[Row]
    session: DecodingSession
    lines: list[NDArray[np.float32]]


class RejectionInfo(NamedTuple):
    """What a step did: the rows it extended, how many checks it took, and how many rows it finished."""

    n_rows: int
    n_checks: int
    n_finished: int


class RejectionDecoder:
    """Decodes a batch of rows step by step, each token by weighted rejection.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : RejectionOptions

    Raises
    ------
    OptionError
        The temperature is 0.
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes] = (),
        options: RejectionOptions | None = None,
    ) -> None:
        self.model = model
        self.streams = streams
        self.options = options or RejectionOptions()
        self._one = WeightedStep(self.options.proposal(), sampling, model.vocabulary, stop)

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Decode ``rows`` in place to their ends; yields after every step of the batch.

        A row that cannot go on is finished with ``is_complete`` false and weight 0.

        Raises
        ------
        BackendError
            The model's logits cannot be used.
        """
        if not rows:
            return
        state = self.start(rows)
        while state.active:
            state, _ = self.step(self.streams, state)
            yield

    def start(self, rows: Sequence[Row]) -> RejectionState:
        """Read the prompts of ``rows``."""
        return RejectionState(list(rows), *start_session(self.model, rows))

    def step(self, rng: RandomStreams, state: RejectionState) -> tuple[RejectionState, RejectionInfo]:
        """Extend every active row by a token, and let the model read what goes on; ``state`` is changed."""
        rows = state.active
        n_checks = sum(row.stats.checks for row in rows)
        for row, line in zip(rows, state.lines, strict=True):
            self._one.extend(row, line, rng.generator(row.index, len(row.token_ids)))
        n_checks = sum(row.stats.checks for row in rows) - n_checks
        kept = [place for place, row in enumerate(rows) if not row.is_finished]
        state.active, state.lines = [rows[place] for place in kept], []
        if kept:
            state.session.select(kept)
            begin = time.perf_counter()
            blocks = state.session.append([row.token_ids[-1:] for row in state.active])
            share_model_call(state.active, time.perf_counter() - begin)
            state.lines = [block[-1] for block in blocks]
        return state, RejectionInfo(len(rows), n_checks, len(rows) - len(kept))
