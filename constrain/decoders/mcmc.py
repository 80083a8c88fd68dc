"""Constrained Metropolis-Hastings: a valid output from the first step on, closer to the model's with each.

A chain starts from an output of local masking and goes on by proposals: a position ``k`` is chosen with
probability ``rho(k | x)``, the output is written anew from there by local masking, and the new output
``x'`` replaces ``x`` with probability ``min(1, P(x') kappa(x' -> x) / (P(x) kappa(x -> x')))``, where::

    kappa(x -> x') = sum over k up to the common beginning of rho(k | x) q(x'[k:] | x'[:k])

is the probability of the proposal, whichever position it came from (``q`` is local masking). The
chain leaves the model conditioned on the language as it is: its outputs tend to that law.

Follows Gonzalez et al. 2025, "Constrained Sampling for Language Models Should Be Easy: An MCMC Perspective".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from constrain.decoders.proposals import MaskProposal, WeightedStep, check_integer
from constrain.decoders.reader import Reader
from constrain.errors import DeadEndError, OptionError
from constrain.numerics import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.decoders.rows import Row
    from constrain.numerics import RandomStreams, Sampling, Scores
    from constrain.protocols import LogitsBackend
    from constrain.tokenizer_index.vocabulary import Vocabulary

POSITIONS = ("uniform", "priority", "restart")


@dataclass(frozen=True, slots=True)
class McmcOptions:
    """Options of ``method="mcmc"``.

    Parameters
    ----------
    steps : int
        Proposals after the first output. Each rewrites a part of the output.
    positions : {"uniform", "priority", "restart"}
        Where a proposal begins: anywhere with equal probability, more often where the model is
        undecided (the exponential of a row's entropy, less 1), or always at the beginning.
    max_attempts : int
        How many first outputs may fail (no token fits, or the tokens run out) before a row is given up.
    batch_size : int
        Most rows that go through the model together. Results don't depend on it.
    """

    steps: int = 10
    positions: str = "uniform"
    max_attempts: int = 100
    batch_size: int = 16

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, 0)
        check_integer("max_attempts", self.max_attempts, 1)
        check_integer("batch_size", self.batch_size, 1)
        if self.positions not in POSITIONS:
            raise OptionError(f"positions={self.positions!r}: expected one of {', '.join(POSITIONS)}.")

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right: outputs come without any."""
        return False


@dataclass(slots=True, eq=False)
class Trace:
    """An output and, for each of its tokens, what the proposal's probability rests on.

    Parameters
    ----------
    row : Row
    log_p : list of float
        Log probabilities of the tokens under the model, truncation included.
    log_z : list of float
        Log probabilities that the model chooses a token that fits.
    log_raw : list of float
        Log probabilities of the tokens under the model before truncation.
    entropies : list of float
        Entropies of the masked rows, in nats.
    """

    row: Row
    log_p: list[float] = field(default_factory=list)
    log_z: list[float] = field(default_factory=list)
    log_raw: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    @property
    def log_probability(self) -> float:
        """``log P(x)``."""
        return sum(self.log_p)

    def cut(self, first: Row, place: int, vocabulary: Vocabulary) -> Trace:
        """The same output up to its ``place``-th token, in a row made of ``first``, counting on."""
        row = first.copy()
        row.replay(self.row.token_ids[:place], vocabulary)
        stats = self.row.stats
        row.stats = dataclasses.replace(
            stats,
            generated_tokens=place,
            feasible_mass=stats.feasible_mass[:place],
            attempts=stats.attempts + 1,
        )
        row.log_probability = sum(self.log_raw[:place])
        return Trace(
            row, self.log_p[:place], self.log_z[:place], self.log_raw[:place], self.entropies[:place]
        )

    def extend(self, one: WeightedStep, line: Scores, rng: np.random.Generator) -> None:
        """Append one token."""
        row = self.row
        log_weight, log_raw = row.log_weight, row.log_probability
        step = one.extend(row, line, rng)
        is_dead = row.log_weight == -math.inf
        self.log_p.append(step.log_probability)
        self.log_z.append(-math.inf if is_dead else row.log_weight - log_weight)
        self.log_raw.append(row.log_probability - log_raw)
        self.entropies.append(step.entropy)

    @property
    def is_valid(self) -> bool:
        """Whether the output is a member of the language that fits."""
        return self.row.is_finished and self.row.is_complete


def position_law(entropies: Sequence[float], positions: str) -> NDArray[np.float64]:
    """Probabilities (n,) float64 of the places from which an output of ``n`` tokens is written anew."""
    n = len(entropies)
    if positions == "restart":
        return np.array([1.0] + [0.0] * (n - 1))
    law = np.expm1(entropies) if positions == "priority" else np.ones(n)
    total = float(law.sum())
    # Where no row leaves a choice, no place is better than another.
    return np.asarray(law / total) if total > 0.0 else np.full(n, 1.0 / n)


def log_acceptance(old: Trace, new: Trace, positions: str) -> float:
    """Logarithm of the probability with which ``new`` replaces ``old``, both valid."""
    if old.row.token_ids == new.row.token_ids:
        return 0.0
    forward = _log_proposal(old, new, positions)
    backward = _log_proposal(new, old, positions)
    before = old.log_probability + forward
    if before == -math.inf:
        # The first output may lie outside the truncated model.
        return 0.0
    return min(0.0, new.log_probability + backward - before)


def _log_proposal(start: Trace, end: Trace, positions: str) -> float:
    """``log kappa(start -> end)``."""
    pairs = zip(start.row.token_ids, end.row.token_ids, strict=False)
    common = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
    if common is None:
        common = min(len(start.row.token_ids), len(end.row.token_ids))
    last = min(common, len(start.log_p) - 1)
    law = position_law(start.entropies, positions)
    steps = np.array(end.log_p) - np.array(end.log_z)
    tails = np.cumsum(steps[::-1])[::-1]
    terms = [math.log(law[k]) + tails[k] for k in range(min(last, len(tails) - 1) + 1) if law[k] > 0.0]
    return logsumexp(np.array(terms))


@dataclass(slots=True, eq=False)
class McmcState:
    """Chains that are run together.

    Parameters
    ----------
    first : list of Row
        The chains' rows before their first token.
    chains : list of Trace
        Where each chain is.
    reader : Reader
    n_steps : int
        Proposals so far.
    """

    first: list[Row]
    chains: list[Trace]
    reader: Reader
    n_steps: int = 0


class McmcInfo(NamedTuple):
    """What a step did: for each chain whether the proposal was a valid output, and whether it was taken."""

    are_valid: list[bool]
    are_accepted: list[bool]


class McmcDecoder:
    """Runs chains, all rows together.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
        Truncation counts as part of the model.
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : McmcOptions

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
        options: McmcOptions | None = None,
    ) -> None:
        self.model = model
        self.streams = streams
        self.options = options or McmcOptions()
        self._one = WeightedStep(MaskProposal(has_checks=False), sampling, model.vocabulary, stop)

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Run a chain for each of ``rows`` and leave its last output in the row; yields after every proposal.

        Raises
        ------
        DeadEndError
            No first output of a row was valid, in ``max_attempts`` attempts.
        BackendError
            The model's logits cannot be used.
        """
        if not rows:
            return
        state = self.start(rows)
        yield
        for _ in range(self.options.steps):
            state, _ = self.step(self.streams, state)
            yield
        for row, chain in zip(rows, state.chains, strict=True):
            row.take(chain.row)

    def start(self, rows: Sequence[Row]) -> McmcState:
        """Read the prompts and find a first output for each row, by local masking; the rows stay as they are."""
        first = [row.copy() for row in rows]
        reader = Reader(self.model, first)
        chains: list[Trace | None] = [None] * len(first)
        for attempt in range(self.options.max_attempts):
            fresh = [
                Trace(row.copy()) if chain is None else None for row, chain in zip(first, chains, strict=True)
            ]
            self._finish(fresh, reader, 2 * attempt)
            for place, trace in enumerate(fresh):
                if trace is not None and trace.is_valid:
                    chains[place] = trace
                elif trace is not None:
                    _keep_counting(first[place], trace.row)
            found = [chain for chain in chains if chain is not None]
            if len(found) == len(first):
                return McmcState(first, found, reader)
        lost = next(place for place, chain in enumerate(chains) if chain is None)
        raise DeadEndError(
            f"None of {self.options.max_attempts} first outputs of row {first[lost].index} was valid within "
            f"{first[lost].max_tokens} tokens. Take a larger max_tokens or less truncation (top_k, top_p, min_p); where "
            "checks (Spec.where) refuse most outputs, method='local' seeks one."
        )

    def step(self, rng: RandomStreams, state: McmcState) -> tuple[McmcState, McmcInfo]:
        """Make one proposal for each chain, and take it or not; ``state`` is changed."""
        lane = 2 * state.n_steps + 1
        proposals: list[Trace] = []
        draws = []
        for chain, first in zip(state.chains, state.first, strict=True):
            # The tokens' own draws have steps below ``max_tokens``.
            generator = rng.generator(first.index, first.max_tokens, lane)
            law = position_law(chain.entropies, self.options.positions)
            place = int(generator.choice(len(law), p=law))
            proposals.append(chain.cut(first, place, self.model.vocabulary))
            draws.append(generator.random())
        self._finish(proposals, state.reader, lane)
        info = McmcInfo([], [])
        for place, (chain, proposal, draw) in enumerate(zip(state.chains, proposals, draws, strict=True)):
            is_accepted = proposal.is_valid and math.log1p(-draw) <= log_acceptance(
                chain, proposal, self.options.positions
            )
            info.are_valid.append(proposal.is_valid)
            info.are_accepted.append(is_accepted)
            if is_accepted:
                proposal.row.stats.accepted += 1
                state.chains[place] = proposal
            else:
                _keep_counting(chain.row, proposal.row)
        state.n_steps += 1
        return state, info

    def _finish(self, traces: Sequence[Trace | None], reader: Reader, lane: int) -> None:
        """Write the traces on to their ends, one call of the model a token for all of them."""
        while True:
            growing = [trace if trace is not None and not trace.row.is_finished else None for trace in traces]
            rows = [None if trace is None else trace.row for trace in growing]
            if not any(rows):
                return
            lines = reader.seek([None if row is None else row.token_ids for row in rows], rows)
            for trace, line in zip(growing, lines, strict=True):
                if trace is not None:
                    row = trace.row
                    trace.extend(
                        self._one, line[-1], self.streams.generator(row.index, len(row.token_ids), lane)
                    )


def _keep_counting(row: Row, other: Row) -> None:
    """Let ``row`` have the counts of ``other``, which was copied of it and is thrown away."""
    mine, theirs = row.stats, other.stats
    row.stats = dataclasses.replace(
        theirs, generated_tokens=mine.generated_tokens, feasible_mass=mine.feasible_mass
    )
