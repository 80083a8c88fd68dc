"""Resampling schemes: which particles go on, and how often.

Every scheme is unbiased: particle ``i`` of normalised weight ``w`` gets ``n w`` copies in the mean. They
differ in how far the numbers of copies stray from that: multinomial furthest, systematic least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constrain.numerics import IdArray, logsumexp

Weights: TypeAlias = NDArray[np.float64]
Scheme: TypeAlias = Callable[[Weights, int, np.random.Generator], IdArray]


def multinomial(weights: Weights, n: int, rng: np.random.Generator) -> IdArray:
    """Draw ``n`` ancestors independently.

    Parameters
    ----------
    weights : (n_particles,) float64
        Not negative; normalised here.
    n : int
        Copies in all.

    Returns
    -------
    (n,) intp
        Places of the ancestors; none of weight 0.
    """
    return _at(weights, rng.random(n))


def stratified(weights: Weights, n: int, rng: np.random.Generator) -> IdArray:
    """Draw one ancestor from each ``n``-th part of the mass; parameters as for `multinomial`."""
    return _at(weights, (np.arange(n) + rng.random(n)) / n)


def systematic(weights: Weights, n: int, rng: np.random.Generator) -> IdArray:
    """Like `stratified` with the same offset in each part: one random number in all."""
    return _at(weights, (np.arange(n) + rng.random()) / n)


def residual(weights: Weights, n: int, rng: np.random.Generator) -> IdArray:
    """Copy each particle ``floor(n w)`` times, and draw the others from what is left of the weights."""
    expected = n * (weights / weights.sum())
    copies = np.floor(expected)
    kept = np.repeat(np.arange(len(weights)), copies.astype(np.intp))
    if len(kept) == n:
        return kept
    return np.concatenate([kept, multinomial(expected - copies, n - len(kept), rng)])


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "multinomial": multinomial,
        "residual": residual,
        "stratified": stratified,
        "systematic": systematic,
    }
)


def _at(weights: Weights, points: NDArray[np.float64]) -> IdArray:
    """The particles at these points in [0, 1) of the running sum of weights."""
    running = np.cumsum(weights)
    # From the last particle of positive weight on this is exactly 1.
    running /= running[-1]
    return np.searchsorted(running, np.minimum(points, math.nextafter(1.0, 0.0)), side="right")


def normalized_weights(log_weights: NDArray[np.float64]) -> Weights:
    """Weights of sum 1, (n_particles,) float64; all 0 where every particle is dead."""
    total = logsumexp(log_weights)
    return np.zeros(len(log_weights)) if total == -math.inf else np.exp(log_weights - total)


def effective_sample_size(log_weights: Weights) -> float:
    """``(sum of w)^2 / sum of w^2``: from 1 (one particle has all the weight) to their number; 0 if all are 0."""
    total = logsumexp(log_weights)
    if total == -math.inf:
        return 0.0
    return math.exp(2.0 * total - logsumexp(2.0 * log_weights))
