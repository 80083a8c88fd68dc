"""Sequential Monte Carlo: a population of outputs that follows the model conditioned on the constraint.

Particles grow by a token a step, each with the weight of its proposal (see
`constrain.decoders.proposals`) and of the potential. Where the weights get too uneven, the population is
resampled: particles of small weight go, those of large weight go on several times. Weighted by
what they have at the end, particles stand for the target ``P(y) C(y) Phi(y)`` over the outputs that fit
``max_tokens``, and their mean weight has the target's total as its mean, for any number of particles.

The potential of a partial text is a twist: it is taken back before the next one counts, so it
changes which particles go on, never the target. So is the outcome of *lookahead*: what a few outputs written
on from a partial text come to, in the mean, estimates how good its future is. *Moves* after each block
write the ends of particles anew and keep the new ones by Metropolis and Hastings's rule, which makes equal copies
differ again and leaves the target as it is.

The sampler is that of Loula et al. 2025, "Syntactic and Semantic Control of Large Language Models via Sequential
Monte Carlo"; lookahead and moves follow Markovic-Voronov et al. 2026, "Sampling for Quality".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from constrain.decoders.potentials import Potential, check_potential, log_potentials
from constrain.decoders.proposals import (
    MaskProposal,
    Proposal,
    RejectionProposal,
    WeightedStep,
    check_integer,
)
from constrain.decoders.reader import Reader
from constrain.decoders.resampling import SCHEMES, effective_sample_size
from constrain.errors import OptionError
from constrain.numerics import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.decoders.rows import Row
    from constrain.numerics import RandomStreams, Sampling, Scores
    from constrain.protocols import LogitsBackend

PROPOSALS = ("mask", "rejection")

T = TypeVar("T")

# Lanes of random numbers: particles have those from 1, resampling has 0.
_LOOK_LANE = 1 << 32
_MOVE_LANE = 1 << 40
# How much a text's own potential counts beside what lookahead says: the less, the wilder the weights of texts that
# lookahead missed.
_OWN = 0.1


@dataclass(frozen=True, slots=True)
class SmcOptions:
    """Options of ``method="smc"``.

    Parameters
    ----------
    particles : int
        How many outputs grow together; more bring the answer closer to the target.
    ess_threshold : float
        From 0 to 1: resample where the effective sample size is below this part of ``particles``. 0
        never does (importance sampling), 1 whenever the weights are uneven.
    resampling : {"multinomial", "residual", "stratified", "systematic"}
        See `constrain.decoders.resampling`.
    proposal : {"mask", "rejection"}
        How tokens are drawn: from the masked row, or by weighted rejection, which needs few checks
        but gives noisier weights.
    potential : callable or None
        ``potential(text, is_complete)``, or a `BatchPotential`: a logarithm that adds to the
        model's; see `constrain.decoders.potentials`.
    lookahead : int
        Outputs that are written on from each partial text, to see what it comes to; 0: none. Costs that
        many calls' worth of the model for every token they get.
    horizon : int
        Most tokens of each.
    rejuvenate : int
        Moves of each particle at the end of every block.
    block : int
        Weigh partial texts and resample only after every ``block`` tokens.
    acceptances, max_trials
        See `RejectionProposal`.
    """

    particles: int = 8
    ess_threshold: float = 0.5
    resampling: str = "systematic"
    proposal: str = "mask"
    potential: Potential | None = None
    lookahead: int = 0
    horizon: int = 64
    rejuvenate: int = 0
    block: int = 1
    acceptances: int = 2
    max_trials: int | None = None

    def __post_init__(self) -> None:
        check_integer("particles", self.particles, 1)
        check_integer("lookahead", self.lookahead, 0)
        check_integer("horizon", self.horizon, 1)
        check_integer("rejuvenate", self.rejuvenate, 0)
        check_integer("block", self.block, 1)
        if not isinstance(self.ess_threshold, int | float) or not 0.0 <= self.ess_threshold <= 1.0:
            raise OptionError(f"ess_threshold={self.ess_threshold!r}: expected a number from 0 to 1.")
        for name, known in (("resampling", tuple(SCHEMES)), ("proposal", PROPOSALS)):
            if getattr(self, name) not in known:
                raise OptionError(f"{name}={getattr(self, name)!r}: expected one of {', '.join(known)}.")
        check_potential(self.potential)
        RejectionProposal(self.acceptances, self.max_trials)

    @property
    def batch_size(self) -> int:
        """Populations that go through the model together."""
        return 1

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right."""
        return True

    def token_proposal(self) -> Proposal:
        """The proposal with these options."""
        if self.proposal == "mask":
            return MaskProposal()
        return RejectionProposal(self.acceptances, self.max_trials)


class Step(NamedTuple):
    """One token of a particle: the weight of its proposal, and its log probability under the model, after and
    before truncation."""

    log_weight: float
    log_p: float
    log_raw: float


@dataclass(slots=True, eq=False)
class Particle:
    """One output of a population.

    Parameters
    ----------
    row : Row
        ``row.log_weight`` holds the particle's weight, the potential and all resampling included.
    line : int
        Which of the reader's lines it goes on from; particles with equal tokens share one.
    twist : float
        What the weight holds for the future of a partial text.
    log_phi : float
        The log potential of a finished one.
    steps : list of Step
    """

    row: Row
    line: int = 0
    twist: float = 0.0
    log_phi: float = 0.0
    steps: list[Step] = field(default_factory=list)

    @property
    def log_target(self) -> float:
        """Logarithm of model (truncation included) times potential, once it is complete."""
        return sum(step.log_p for step in self.steps) + self.log_phi

    def copy(self) -> Particle:
        """A particle in the same state that grows on its own."""
        return Particle(self.row.copy(), self.line, self.twist, self.log_phi, list(self.steps))

    def extend(self, one: WeightedStep, line: Scores, rng: np.random.Generator) -> None:
        """Append a token, with its weight."""
        row = self.row
        log_weight, log_raw = row.log_weight, row.log_probability
        extended = one.extend(row, line, rng)
        is_dead = row.log_weight == -math.inf
        weight = -math.inf if is_dead else row.log_weight - log_weight
        self.steps.append(Step(weight, extended.log_probability, row.log_probability - log_raw))


@dataclass(slots=True, eq=False)
class Population:
    """Particles of one prompt, and what has become of their weights.

    Parameters
    ----------
    particles : list of Particle
    first : Row
        The row before its first token.
    reader : Reader
        One line for each different unfinished text.
    lines : list of (vocab_size,) float32
        The model's logits after each line of the reader.
    n_steps : int
        Steps done.
    effective_sizes : list of float
        Effective sample size after each step, before any resampling.
    log_weight_history : list of (n_particles,) float64
        Weights after each step, before any resampling.
    resampled_at : list of int
        Steps, counted from 0, after which the population was resampled.
    moves, accepted_moves : int
        How many moves were tried and taken.
    """

    particles: list[Particle]
    first: Row
    reader: Reader
    lines: list[NDArray[np.float32]]
    n_steps: int = 0
    effective_sizes: list[float] = field(default_factory=list)
    log_weight_history: list[NDArray[np.float64]] = field(default_factory=list)
    resampled_at: list[int] = field(default_factory=list)
    moves: int = 0
    accepted_moves: int = 0

    @property
    def active(self) -> list[Particle]:
        """Particles that aren't finished."""
        return [particle for particle in self.particles if not particle.row.is_finished]

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Weights now, (n_particles,) float64; their mean estimates the target's total."""
        return np.array([particle.row.log_weight for particle in self.particles], np.float64)

    @property
    def log_normalizer(self) -> float:
        """Logarithm of the mean weight; once all are finished that of an unbiased estimate of the total."""
        return logsumexp(self.log_weights) - math.log(len(self.particles))


class SmcInfo(NamedTuple):
    """What a step did: the particles it extended, and the population's weights after it."""

    n_extended: int
    effective_size: float
    is_resampled: bool


class SmcDecoder:
    """Decodes populations step by step, one call of the model a step.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : SmcOptions

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
        options: SmcOptions | None = None,
    ) -> None:
        self.model = model
        self.streams = streams
        self.options = options or SmcOptions()
        self._one = WeightedStep(self.options.token_proposal(), sampling, model.vocabulary, stop)
        self._resample = SCHEMES[self.options.resampling]

    def run(self, row: Row) -> Population:
        """Decode copies of ``row`` to their ends.

        A particle that cannot go on is finished with ``is_complete`` false and weight 0; all may be.

        Raises
        ------
        BackendError
            The model's logits or the potential's values cannot be used.
        """
        population = self.start(row)
        while population.active:
            population, _ = self.step(self.streams, population)
        return population

    def start(self, row: Row) -> Population:
        """Read the prompt and make particles of ``row``, which stays as it is."""
        first = row.copy()
        reader = Reader(self.model, [first])
        ((line,),) = reader.seek([[]], [first])
        copies = [Particle(first.copy()) for _ in range(self.options.particles)]
        return Population(copies, first, reader, [line])

    def step(self, rng: RandomStreams, state: Population) -> tuple[Population, SmcInfo]:
        """Extend every active particle by a token, weigh, resample; ``state`` is changed."""
        step, options = state.n_steps, self.options
        active = state.active
        for lane, particle in enumerate(state.particles, 1):
            row = particle.row
            if row.is_finished:
                continue
            row.log_weight -= particle.twist
            particle.twist = 0.0
            particle.extend(self._one, state.lines[particle.line], rng.generator(row.index, step, lane))
        state.n_steps += 1
        is_end = state.n_steps % options.block == 0 or not state.active
        has_read = options.lookahead > 0 and is_end
        if has_read:
            self._read(state)
        self._weigh(rng, state, active, is_end=is_end)
        log_weights = state.log_weights
        size = effective_sample_size(log_weights)
        state.effective_sizes.append(size)
        state.log_weight_history.append(log_weights)
        threshold = options.ess_threshold * len(state.particles)
        # Once all are finished, resampling would only add noise.
        is_resampled = is_end and 0.0 < size < threshold and bool(state.active)
        if is_resampled:
            self._select(state, log_weights, rng.generator(active[0].row.index, step))
            state.resampled_at.append(step)
        # Always, not only where there was a resampling: whether there is one depends on the particles, and a
        # kernel leaves a law as it is only if it doesn't choose by where they are whether to move them.
        for _ in range(options.rejuvenate if is_end else 0):
            self._move(rng, state)
        if not has_read or is_resampled or options.rejuvenate:
            self._read(state)
        return state, SmcInfo(len(active), size, is_resampled)

    # ----------------------------------------------------------------------------------------- weights

    def _weigh(
        self, rng: RandomStreams, state: Population, particles: Sequence[Particle], *, is_end: bool
    ) -> None:
        """Put what is known of the particles' new texts into their weights; of partial ones at the end of a block."""
        weighed = [
            one for one in particles if one.row.log_weight > -math.inf and (is_end or one.row.is_finished)
        ]
        values = self._values(rng, state.reader, weighed, state.n_steps)
        for particle, value in zip(weighed, values, strict=True):
            row = particle.row
            row.log_weight += value
            if value == -math.inf:
                row.is_complete = row.is_complete and row.is_finished
                row.is_finished = True
            elif row.is_finished:
                particle.log_phi = value
            else:
                particle.twist = value

    def _values(
        self, rng: RandomStreams, reader: Reader, particles: Sequence[Particle], step: int
    ) -> list[float]:
        """The log potential of finished texts; of partial ones that, or what lookahead makes of them."""
        values = self._potentials([particle.row for particle in particles], step)
        if not self.options.lookahead:
            return values
        places = [
            place
            for place, particle in enumerate(particles)
            if not particle.row.is_finished and values[place] > -math.inf
        ]
        if not places:
            return values
        futures = self._look_ahead(rng, reader, [particles[place] for place in places], step)
        for place, future in zip(places, futures, strict=True):
            # A few outputs that all fail prove nothing: what may still succeed has to keep some weight.
            values[place] = float(np.logaddexp(future + math.log1p(-_OWN), values[place] + math.log(_OWN)))
        return values

    def _potentials(self, rows: Sequence[Row], step: int) -> list[float]:
        potential = self.options.potential
        if potential is None or not rows:
            return [0.0] * len(rows)
        return log_potentials(
            potential, [bytes(row.text) for row in rows], [row.is_finished for row in rows], step - 1
        )

    def _look_ahead(
        self, rng: RandomStreams, reader: Reader, particles: Sequence[Particle], step: int
    ) -> list[float]:
        """Logarithm of the mean of weight and potential of outputs written on from each particle."""
        many = self.options.lookahead
        n_lines = reader.n_lines
        reader.select([*range(n_lines), *(particle.line for particle in particles for _ in range(many))])
        futures = []
        for particle in particles:
            for _ in range(many):
                future = particle.copy()
                future.row.log_weight = 0.0
                futures.append(future)
        lanes = range(_LOOK_LANE, _LOOK_LANE + len(futures))
        self._finish(
            rng, reader, n_lines, futures, lanes, len(particles[0].row.token_ids) + self.options.horizon, step
        )
        reader.select(range(n_lines))
        for particle, copies in zip(particles, _groups(futures, many), strict=True):
            _count_calls(particle.row, [one.row for one in copies])
        alive = [one for one in futures if one.row.log_weight > -math.inf]
        values = iter(self._potentials([one.row for one in alive], step))
        totals = [
            one.row.log_weight + next(values) if one.row.log_weight > -math.inf else -math.inf
            for one in futures
        ]
        return [logsumexp(np.array(group)) - math.log(many) for group in _groups(totals, many)]

    def _finish(
        self,
        rng: RandomStreams,
        reader: Reader,
        n_lines: int,
        particles: Sequence[Particle],
        lanes: Sequence[int],
        most: int,
        step: int,
    ) -> None:
        """Write particles on until they end or have ``most`` tokens; their lines are the reader's last ones."""
        while True:
            growing = [
                None if one.row.is_finished or len(one.row.token_ids) >= most else one for one in particles
            ]
            if not any(growing):
                return
            rows = [*[None] * n_lines, *(None if one is None else one.row for one in growing)]
            lines = reader.seek([None if row is None else row.token_ids for row in rows], rows)[n_lines:]
            for one, line, lane in zip(growing, lines, lanes, strict=True):
                if one is not None:
                    row = one.row
                    # The place of a token and the step of the population tell such numbers from all others.
                    generator = rng.generator(row.index, (step << 32) + len(row.token_ids), lane)
                    one.extend(self._one, line[-1], generator)

    # ------------------------------------------------------------------------------- resampling, moves

    def _select(self, state: Population, log_weights: NDArray[np.float64], rng: np.random.Generator) -> None:
        """Replace the population by copies of its particles, each of the mean weight."""
        n = len(state.particles)
        total = logsumexp(log_weights)
        ancestors = self._resample(np.exp(log_weights - total), n, rng)
        state.particles = [state.particles[place].copy() for place in ancestors]
        for particle in state.particles:
            particle.row.log_weight = total - math.log(n)

    def _move(self, rng: RandomStreams, state: Population) -> None:
        """Write the end of each unfinished particle anew, from a place chosen at random, and keep it by the rule.

        The new end must be as long, and unfinished as well: so finished particles, which stop the sampler once
        there are no others, are as many as without moves. Weights stay as they are. Random weights of the
        proposals' steps are part of what the chain moves.
        """
        lane = _MOVE_LANE + state.moves
        movers: list[_Mover] = []
        draws: list[float] = []
        moved = [place for place, one in enumerate(state.particles) if not one.row.is_finished]
        before = [state.particles[place] for place in moved]
        for particle in before:
            generator = rng.generator(particle.row.index, state.n_steps, lane + len(movers))
            place = int(generator.integers(len(particle.steps)))
            movers.append(self._cut(particle, state.first, place))
            draws.append(generator.random())
        state.moves += len(movers)
        n_lines = state.reader.n_lines
        state.reader.select([*range(n_lines), *(particle.line for particle in before)])
        lanes = range(lane, lane + len(movers))
        self._finish(rng, state.reader, n_lines, movers, lanes, state.n_steps, state.n_steps)
        for place, one in enumerate(movers):
            one.line = n_lines + place
        valid = [one for one in movers if not one.row.is_finished]
        if self.options.lookahead:
            # Rows must have read their texts before others are written on from them.
            rows = [*[None] * n_lines, *(None if one.row.is_finished else one.row for one in movers)]
            state.reader.seek([None if row is None else row.token_ids for row in rows], rows)
        values = iter(self._values(rng, state.reader, valid, state.n_steps))
        for place, old, new, draw in zip(moved, before, movers, draws, strict=True):
            value = -math.inf if new.row.is_finished else next(values)
            begin = len(new.steps) - new.n_new
            log_alpha = value - old.twist
            log_alpha += sum(step.log_weight for step in new.steps[begin:])
            log_alpha -= sum(step.log_weight for step in old.steps[begin:])
            if value == -math.inf or math.log1p(-draw) > log_alpha:
                _count_calls(old.row, [new.row])
                continue
            state.accepted_moves += 1
            new.row.log_weight = old.row.log_weight
            new.twist = value
            state.particles[place] = new

    def _cut(self, particle: Particle, first: Row, place: int) -> _Mover:
        """A copy of a particle up to its ``place``-th token."""
        row = first.copy()
        row.replay(particle.row.token_ids[:place], self.model.vocabulary)
        stats = particle.row.stats
        row.stats = dataclasses.replace(
            stats, generated_tokens=place, feasible_mass=stats.feasible_mass[:place]
        )
        row.log_probability = sum(step.log_raw for step in particle.steps[:place])
        return _Mover(row, steps=particle.steps[:place], n_kept=place)

    def _read(self, state: Population) -> None:
        """Let the model read the newest tokens of the active particles, each different text once."""
        places: dict[tuple[int, ...], int] = {}
        parents: list[int] = []
        rows: list[Row] = []
        active = state.active
        for particle in active:
            token_ids = tuple(particle.row.token_ids)
            if token_ids not in places:
                places[token_ids] = len(places)
                parents.append(particle.line)
                rows.append(particle.row)
            particle.line = places[token_ids]
        if not active:
            state.lines = []
            return
        before = rows[0].stats.model_calls
        state.reader.select(parents)
        lines = state.reader.seek(list(places), rows)
        state.lines = [line[-1] for line in lines]
        if rows[0].stats.model_calls > before:
            # Those that share a line took part in its call, too.
            counted = {id(row) for row in rows}
            for particle in active:
                if id(particle.row) not in counted:
                    particle.row.stats.model_calls += 1


@dataclass(slots=True, eq=False)
class _Mover(Particle):
    """A particle that is being moved; its first ``n_kept`` tokens are the old ones."""

    n_kept: int = 0

    @property
    def n_new(self) -> int:
        return len(self.steps) - self.n_kept


def _groups(values: Sequence[T], size: int) -> list[Sequence[T]]:
    return [values[begin : begin + size] for begin in range(0, len(values), size)]


def _count_calls(row: Row, others: Sequence[Row]) -> None:
    """Let ``row`` have the costs of copies of it that are thrown away."""
    stats = row.stats
    before = dataclasses.replace(stats)
    for other in others:
        stats.model_calls = max(stats.model_calls, other.stats.model_calls)
        for name in ("model_seconds", "mask_seconds"):
            more = getattr(other.stats, name) - getattr(before, name)
            setattr(stats, name, getattr(stats, name) + more)
        stats.checks += other.stats.checks - before.checks
