"""Sequential Monte Carlo: a population of outputs that follows the model conditioned on the constraint.

Particles grow by a token a step, each with the weight of its proposal (see
`constrain.decoders.proposals`) and of the potential. Where the weights get too uneven, the population is
resampled: particles of small weight go, those of large weight go on several times. Weighted by
what they have at the end, particles stand for the target ``P(y) C(y) Phi(y)`` over the outputs that fit
``max_tokens``, and their mean weight has the target's total as its mean, for any number of particles.

The potential of a partial text is a twist: it is taken back before the next one counts, so it
changes which particles go on, never the target.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from constrain.decoders.potentials import Potential, check_potential, log_potentials
from constrain.decoders.proposals import (
    MaskProposal,
    Proposal,
    RejectionProposal,
    WeightedStep,
    check_integer,
)
from constrain.decoders.resampling import SCHEMES, effective_sample_size
from constrain.decoders.rows import Row, share_model_call, start_session
from constrain.errors import OptionError
from constrain.numerics import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.numerics import RandomStreams, Sampling
    from constrain.protocols import DecodingSession, LogitsBackend

PROPOSALS = ("mask", "rejection")


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
    acceptances, max_trials
        See `RejectionProposal`.
    """

    particles: int = 8
    ess_threshold: float = 0.5
    resampling: str = "systematic"
    proposal: str = "mask"
    potential: Potential | None = None
    acceptances: int = 2
    max_trials: int | None = None

    def __post_init__(self) -> None:
        check_integer("particles", self.particles, 1)
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


@dataclass(slots=True, eq=False)
class Particle:
    """One output of a population.

    Parameters
    ----------
    row : Row
        ``row.log_weight`` holds the particle's weight, the potential and all resampling included.
    line : int
        Which line of the session it goes on from; particles with equal tokens share one.
    log_target : float
        Logarithm of model (truncation included) times potential, once it is complete.
    twist : float
        The partial text's log potential, now part of the weight.
    """

    row: Row
    line: int = 0
    log_target: float = 0.0
    twist: float = 0.0

    def copy(self) -> Particle:
        """A particle in the same state that grows on its own."""
        return Particle(self.row.copy(), self.line, self.log_target, self.twist)


@dataclass(slots=True, eq=False)
class Population:
    """Particles of one prompt, and what has become of their weights.

    Parameters
    ----------
    particles : list of Particle
    session : DecodingSession
        One line for each different unfinished text.
    lines : list of (vocab_size,) float32
        The model's logits after each line of the session.
    n_steps : int
        Steps done.
    effective_sizes : list of float
        Effective sample size after each step, before any resampling.
    resampled_at : list of int
        Steps, counted from 0, after which the population was resampled.
    """

    particles: list[Particle]
    session: DecodingSession
    lines: list[NDArray[np.float32]]
    n_steps: int = 0
    effective_sizes: list[float] = field(default_factory=list)
    resampled_at: list[int] = field(default_factory=list)

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
        session, lines = start_session(self.model, [first])
        copies = [Particle(first.copy()) for _ in range(self.options.particles)]
        return Population(copies, session, lines)

    def step(self, rng: RandomStreams, state: Population) -> tuple[Population, SmcInfo]:
        """Extend every active particle by a token, weigh, resample; ``state`` is changed."""
        step = state.n_steps
        active = state.active
        for lane, particle in enumerate(state.particles, 1):
            row = particle.row
            if row.is_finished:
                continue
            row.log_weight -= particle.twist
            particle.twist = 0.0
            line = state.lines[particle.line]
            extended = self._one.extend(row, line, rng.generator(row.index, step, lane))
            particle.log_target += extended.log_probability
        self._weigh(active, step)
        log_weights = state.log_weights
        size = effective_sample_size(log_weights)
        state.effective_sizes.append(size)
        threshold = self.options.ess_threshold * len(state.particles)
        # Once all are finished, resampling would only add noise.
        is_resampled = 0.0 < size < threshold and bool(state.active)
        if is_resampled:
            self._select(state, log_weights, rng.generator(active[0].row.index, step))
            state.resampled_at.append(step)
        state.n_steps += 1
        self._read(state)
        return state, SmcInfo(len(active), size, is_resampled)

    def _weigh(self, particles: Sequence[Particle], step: int) -> None:
        """Put the potentials of the particles' new texts into their weights."""
        potential = self.options.potential
        weighed = [particle for particle in particles if particle.row.log_weight > -math.inf]
        if potential is None or not weighed:
            return
        values = log_potentials(
            potential,
            [bytes(particle.row.text) for particle in weighed],
            [particle.row.is_finished for particle in weighed],
            step,
        )
        for particle, value in zip(weighed, values, strict=True):
            row = particle.row
            row.log_weight += value
            if value == -math.inf:
                row.is_complete = row.is_complete and row.is_finished
                row.is_finished = True
            elif row.is_finished:
                particle.log_target += value
            else:
                particle.twist = value

    def _select(self, state: Population, log_weights: NDArray[np.float64], rng: np.random.Generator) -> None:
        """Replace the population by copies of its particles, each of the mean weight."""
        n = len(state.particles)
        total = logsumexp(log_weights)
        ancestors = self._resample(np.exp(log_weights - total), n, rng)
        state.particles = [state.particles[place].copy() for place in ancestors]
        for particle in state.particles:
            particle.row.log_weight = total - math.log(n)

    def _read(self, state: Population) -> None:
        """Let the model read the newest tokens of the active particles, each different text once."""
        places: dict[tuple[int, ...], int] = {}
        parents: list[int] = []
        active = state.active
        for particle in active:
            token_ids = tuple(particle.row.token_ids)
            if token_ids not in places:
                places[token_ids] = len(places)
                parents.append(particle.line)
            particle.line = places[token_ids]
        if not active:
            state.lines = []
            return
        begin = time.perf_counter()
        state.session.select(parents)
        blocks = state.session.append([token_ids[-1:] for token_ids in places])
        share_model_call([particle.row for particle in active], time.perf_counter() - begin)
        state.lines = [block[-1] for block in blocks]
