"""What ``generate(method="smc")`` returns: weighted outputs that stand for a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from constrain.errors import DeadEndError
from constrain.numerics import logsumexp
from constrain.posterior_plot import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from constrain.generation import Generation

__all__ = ["Posterior"]


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Weighted outputs of one prompt.

    Parameters
    ----------
    particles : list of Generation
        Outputs, equal ones among them. ``log_weight`` is not normalised: the mean of its exponentials
        over the particles is ``exp(log_normalizer)``. Those of weight 0 are no answers.
    log_normalizer : float
        ``exp(log_normalizer)`` has as its mean the sum of ``P(y) Phi(y)`` over the members of the
        language that fit: without a potential, the probability that the unconstrained model, truncation
        included, stays in the language. ``-inf`` where every particle died.
    log_targets : (n_particles,) float64
        ``log P(y) Phi(y)`` of each particle, truncation included.
    effective_sizes : list of float
        Effective sample size after each step, before any resampling.
    resampled_at : list of int
        Steps, counted from 0, after which the population was resampled.
    weight_history : (n_steps, n_particles) float64
        Weights after each step, before any resampling, of sum 1; all 0 once every particle is dead. Places
        of one column are one particle until the next resampling, which puts copies of others there.
    """

    particles: list[Generation]
    log_normalizer: float
    log_targets: NDArray[np.float64] = field(repr=False)
    effective_sizes: list[float] = field(repr=False)
    resampled_at: list[int] = field(repr=False)
    weight_history: NDArray[np.float64] = field(repr=False)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the particles, (n_particles,) float64, of sum 1.

        Raises
        ------
        DeadEndError
            Every particle died; the text tells where.
        """
        log_weights = np.array([particle.log_weight for particle in self.particles], np.float64)
        total = logsumexp(log_weights)
        if total == -math.inf:
            furthest = max(self.particles, key=lambda particle: len(particle.token_ids))
            raise DeadEndError(
                f"All {len(self.particles)} particles have weight 0; the furthest one ended at step "
                f"{len(furthest.token_ids)} after {furthest.text[-60:]!r}. Take more particles, "
                "a larger max_tokens or less truncation (top_k, top_p, min_p), or check that the "
                "potential isn't -inf everywhere."
            )
        return np.exp(log_weights - total)

    def sample(self, rng: np.random.Generator | int | None = None) -> Generation:
        """Draw one particle by its weight.

        Parameters
        ----------
        rng : numpy Generator, int or None
            An integer is a seed.

        Raises
        ------
        DeadEndError
            Every particle died.
        """
        weights = self.weights
        return self.particles[int(np.random.default_rng(rng).choice(len(weights), p=weights))]

    def expectation(self, f: Callable[[Generation], Any]) -> Any:
        """Mean of ``f`` under the target.

        Parameters
        ----------
        f : callable
            From a particle to a number or an array; asked for particles of positive weight only.

        Returns
        -------
        float, or an array where ``f`` returns arrays

        Raises
        ------
        DeadEndError
            Every particle died.
        """
        weights = self.weights
        kept = np.flatnonzero(weights)
        values = np.array([f(self.particles[place]) for place in kept], np.float64)
        mean = np.tensordot(weights[kept], values, axes=1)
        return mean if mean.ndim else float(mean)

    def map(self) -> Generation:
        """The most probable particle under the target: model, truncation included, times potential.

        Raises
        ------
        DeadEndError
            Every particle died.
        """
        scores = np.where(self.weights > 0.0, self.log_targets, -math.inf)
        return self.particles[int(np.argmax(scores))]

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the effective sample size and the particles' weights over the steps.

        Needs matplotlib (``pip install 'constrain-lm[plot]'``).

        Parameters
        ----------
        path : str, path or None
            Where to write the picture; the ending names the format (``.png``, ``.svg``, ``.pdf``).

        Returns
        -------
        matplotlib.figure.Figure
            With two axes: sizes, and weights by step and particle. It isn't known to pyplot.

        Raises
        ------
        BackendError
            Matplotlib is missing.
        ValueError
            The ending of ``path`` is no format that matplotlib writes.
        """
        figure = draw(self)
        if path is not None:
            figure.savefig(path)
        return figure
