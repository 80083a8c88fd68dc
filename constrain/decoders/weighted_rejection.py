"""Weighted rejection sampling of one token, without replacement.

Given the model's probabilities ``p`` and a check ``a`` (does this token fit?), each sampler returns a
token ``X`` and a weight ``W`` with ``E[W f(X)] = sum of p a f`` for every function ``f`` (a *properly
weighted* draw): given that it was accepted ``X`` has the law ``p a / Z``, and ``E[W] = Z``, the
probability that the model chooses a token that fits. The number of checks is small where ``Z`` is not,
so a slow check is asked for a few tokens, never for a vocabulary.

Follows Lipkin et al. 2025, "Fast Controlled Generation from Language Models with Adaptive Weighted
Rejection Sampling".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrain.numerics import logsumexp

# Where less than this is left, the sum of what was rejected no longer tells how much.
_SMALL_REST = 1e-6
# How many tokens of an order are sorted first.
_FIRST_SORTED = 64
# From this highest probability on a second draw likely repeats the first and costs no check.
_PEAKED = math.log(2.0 / 3.0)


class Draw(NamedTuple):
    """A token by its place in the row, and its weight.

    Where no token was accepted ``log_weight`` is ``-inf`` and ``place`` that of a rejected one.
    """

    place: int
    log_weight: float
    n_checks: int


class _Pool:
    """The tokens that weren't rejected so far, and the logarithm of their probability."""

    def __init__(self, log_p: NDArray[np.float64]) -> None:
        self.log_p = log_p
        self.alive = np.ones(len(log_p), np.bool_)
        self.n_alive = len(log_p)
        self._rejected = 0.0

    def reject(self, place: int) -> None:
        self.alive[place] = False
        self.n_alive -= 1
        self._rejected += math.exp(self.log_p[place])

    def log_rest(self) -> float:
        if not self._rejected:
            return 0.0
        if 1.0 - self._rejected < _SMALL_REST:
            return min(logsumexp(self.log_p[self.alive]), 0.0)
        return math.log1p(-self._rejected)


def random_order(log_p: NDArray[np.float64], rng: np.random.Generator) -> Iterator[int]:
    """Yield all places in an order drawn without replacement: each next one by ``p`` of those left.

    Parameters
    ----------
    log_p : (n,) float64
        Finite.
    """
    # The smallest of independent exponential times of rates p belongs to a place with probability p.
    times = np.maximum(rng.standard_exponential(len(log_p)), np.finfo(np.float64).tiny)
    keys = np.log(times) - log_p
    if len(keys) > _FIRST_SORTED:
        parted = np.argpartition(keys, _FIRST_SORTED)
        first, rest = parted[:_FIRST_SORTED], parted[_FIRST_SORTED:]
        yield from first[np.argsort(keys[first])].tolist()
    else:
        rest = np.arange(len(keys))
    yield from rest[np.argsort(keys[rest])].tolist()


def recursive_draw(
    log_p: NDArray[np.float64],
    accepts: Callable[[int], bool],
    order: Iterator[int],
    max_trials: int | None = None,
) -> Draw:
    """Take the first token of ``order`` that fits, and one more look at the token behind it.

    Parameters
    ----------
    log_p : (n,) float64
        Finite; their exponentials sum to 1; n >= 1.
    accepts : callable
        From a place to whether its token fits.
    order : iterator of int
        All places, drawn without replacement; see `random_order`.
    max_trials : int or None
        Give up after so many tokens, with weight 0 (the weight of an acceptance at the last trial
        makes up for it, so the mean is right for every cap).
    """
    limit = len(log_p) if max_trials is None else min(max_trials, len(log_p))
    pool = _Pool(log_p)
    for trial, place in enumerate(order, 1):
        if accepts(place):
            log_weight = pool.log_rest()
            if trial == limit:
                return Draw(place, log_weight, trial)
            if not accepts(next(order)):
                log_weight += min(float(log_p[place]) - log_weight, 0.0)
            return Draw(place, log_weight, trial + 1)
        if trial == limit:
            return Draw(place, -math.inf, trial)
        pool.reject(place)
    raise AssertionError("the order has fewer places than the row")


def geometric_draw(
    log_p: NDArray[np.float64],
    accepts: Callable[[int], bool],
    rng: np.random.Generator,
    *,
    acceptances: int = 2,
    max_rejections: int | None = None,
) -> Draw:
    """Stand for drawing with replacement until ``acceptances`` tokens were accepted.

    A token is checked once: how often rejected ones would have come again has a geometric law. The
    weight is the unbiased estimate of a curtailed run of trials.

    Parameters
    ----------
    log_p, accepts
        As for `recursive_draw`.
    acceptances : int
        At least 2; more lower the variance.
    max_rejections : int or None
        Also stop after so many rejections, repeated ones counted.
    """
    most = math.inf if max_rejections is None else max_rejections
    pool = _Pool(log_p)
    accepted: set[int] = set()
    first = place = -1
    n_accepted, n_rejected, n_checks = 0, 0.0, 0
    while n_accepted < acceptances and n_rejected < most and pool.n_alive:
        alive = np.flatnonzero(pool.alive)
        # Accepted tokens stay in the pool; after an acceptance the order starts anew.
        for at in random_order(log_p[alive], rng):
            n_rejected += _repeats(pool.log_rest(), rng)
            if n_rejected >= most:
                break
            place = int(alive[at])
            if place not in accepted:
                n_checks += 1
                if not accepts(place):
                    pool.reject(place)
                    n_rejected += 1
                    if n_rejected >= most:
                        break
                    continue
                accepted.add(place)
            if n_accepted == 0:
                first = place
            n_accepted += 1
            break
    if not n_accepted:
        return Draw(place, -math.inf, n_checks)
    n_rejected = min(n_rejected, most)
    log_weight = math.log(min(acceptances - 1, n_accepted)) - math.log(n_accepted + n_rejected - 1)
    return Draw(first, log_weight, n_checks)


def adaptive_draw(
    log_p: NDArray[np.float64],
    accepts: Callable[[int], bool],
    rng: np.random.Generator,
    *,
    acceptances: int = 2,
    max_trials: int | None = None,
) -> Draw:
    """`geometric_draw` where it likely needs fewer checks (a peaked row) or is asked for, else `recursive_draw`."""
    if acceptances > 2 or float(log_p.max()) >= _PEAKED:
        return geometric_draw(log_p, accepts, rng, acceptances=acceptances, max_rejections=max_trials)
    return recursive_draw(log_p, accepts, random_order(log_p, rng), max_trials)


def _repeats(log_rest: float, rng: np.random.Generator) -> float:
    """How often rejected tokens would be drawn again before one of the others, which have ``exp(log_rest)``."""
    rest = math.exp(log_rest)
    if rest >= 1.0:
        return 0.0
    # Of a remainder below the smallest float nothing can be told.
    log_rejected = math.log1p(-max(rest, math.ulp(0.0)))
    return math.floor(min(math.log1p(-rng.random()) / log_rejected, 1e308))
