"""Log-space arithmetic, sampling parameters, and the draw of one token.

Order of operations on a row of logits (natural logarithms; float32 values, float64 sums)::

    logits + bias        part of the model
    / temperature        part of the model (at temperature 0 the nominal temperature 1 gives weights)
    top-k, top-p, min-p  part of the model: each on what the one before left, in this order
    mask                 the constraint
    draw or argmax

Truncating first keeps weights right: the feasible mass ``Z`` of a step is measured under the
truncated model. Where truncation leaves no allowed token at all, the truncated model has nothing to
say that is valid: the step is then masked first and truncated afterwards, so that the output stays
in the language, and its ``log Z`` is ``-inf``.

Random numbers depend on (seed, row, step) alone, never on the other rows of a batch.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from constrain.errors import BackendError, DeadEndError, OptionError

Scores: TypeAlias = NDArray[np.floating[Any]]
IdArray: TypeAlias = NDArray[np.intp]

# Below this temperature float32 scores would overflow.
_COLDEST = 1e-6
# Tokens summed at once by a draw.
_BLOCK = 256
# Top-p looks at this many of the most probable tokens first, and at more while they don't suffice.
_FIRST_SORTED = 512


def logsumexp(values: Scores) -> float:
    """``log(sum(exp(values)))``, summed in float64; ``-inf`` where all values are (or there are none)."""
    highest = float(values.max(initial=-math.inf))
    if highest == -math.inf:
        return -math.inf
    return highest + math.log(float(np.exp(values - values.dtype.type(highest)).sum(dtype=np.float64)))


def log1mexp(a: float) -> float:
    """``log(1 - exp(a))`` for ``a <= 0``; a positive round-off counts as 0 and gives ``-inf``."""
    if a >= 0.0:
        return -math.inf
    return math.log(-math.expm1(a)) if a > -math.log(2.0) else math.log1p(-math.exp(a))


def allowed_token_ids(bitmask_row: NDArray[np.int32], n_tokens: int) -> IdArray:
    """Ids of the bits that are 1, in rising order.

    Parameters
    ----------
    bitmask_row : (ceil(n_tokens / 32),) int32
        Bit ``t % 32`` of word ``t // 32`` belongs to token ``t``.
    """
    words = np.ascontiguousarray(bitmask_row, dtype="<i4")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little", count=n_tokens)
    return np.flatnonzero(bits)


class RandomStreams:
    """Uniform numbers that are a function of (seed, row, step).

    Parameters
    ----------
    seed : int or None
        ``None`` takes a fresh one from the operating system.
    """

    def __init__(self, seed: int | None) -> None:
        if seed is None:
            seed = secrets.randbits(64)
        elif isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise OptionError(f"seed={seed!r}: expected an integer of at least 0, or None.")
        self.seed = int(seed)
        self._key = np.random.SeedSequence(self.seed).generate_state(2, np.uint64)

    def generator(self, row: int, step: int, lane: int = 0) -> np.random.Generator:
        """A generator of its own for one step of one row, or of one of several lanes in it."""
        return np.random.Generator(np.random.Philox(key=self._key, counter=[0, lane, step, row]))

    def uniform(self, row: int, step: int) -> float:
        """A number in [0, 1), float64."""
        return float(self.generator(row, step).random())


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; all of it counts as part of the model.

    Parameters
    ----------
    temperature : float
        0, or at least 1e-6. At 0 the most probable allowed token is taken, of equals the one of lowest id.
    top_k : int
        Keep the ``top_k`` most probable tokens (of equals, those of lower ids); 0: all.
    top_p : float
        Keep the fewest most probable tokens whose probabilities sum to at least ``top_p``; 0 < top_p <= 1.
    min_p : float
        Keep tokens of at least ``min_p`` times the highest probability; 0 <= min_p <= 1.
    logit_bias : mapping of int to float
        Added to the logits of these token ids, before the temperature; ``-inf`` bans a token.

    Raises
    ------
    OptionError
        A value is out of its range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(
            self.temperature == 0.0 or _COLDEST <= self.temperature < math.inf,
            "temperature",
            self.temperature,
            f"0 (the best token), or at least {_COLDEST}",
        )
        _check(0.0 < self.top_p <= 1.0, "top_p", self.top_p, "more than 0 and at most 1")
        _check(
            isinstance(self.top_k, int) and self.top_k >= 0, "top_k", self.top_k, "an integer, 0 for no limit"
        )
        _check(0.0 <= self.min_p <= 1.0, "min_p", self.min_p, "from 0 to 1")
        for token_id, bias in self.logit_bias.items():
            name = f"logit_bias[{token_id!r}]"
            _check(isinstance(token_id, int) and token_id >= 0, name, bias, "token ids (integers) as keys")
            _check(bias < math.inf, name, bias, "a number below infinity")

    @property
    def truncates(self) -> bool:
        """Whether some tokens may be left out before the mask."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0

    def scores(self, logits: Scores) -> Scores:
        """Logits (n_tokens,) with bias and temperature, of the same dtype; their softmax is the model.

        They are shifted so that the highest is 0: then no temperature makes them infinite.
        """
        scores = logits.copy()
        for token_id, bias in self.logit_bias.items():
            if token_id >= len(scores):
                raise OptionError(f"logit_bias: token {token_id} is outside the vocabulary of {len(scores)}.")
            scores[token_id] += bias
        highest = scores.max()
        if highest > -math.inf:
            scores -= highest
        if self.temperature not in (0.0, 1.0):
            scores /= self.temperature
        return scores

    def truncate(self, scores: Scores) -> IdArray:
        """Indices that top-k, top-p and min-p keep, in rising order; at least one if any is finite."""
        kept = np.flatnonzero(scores > -math.inf)
        if 0 < self.top_k < len(kept):
            kept = kept[_largest(scores[kept], self.top_k)]
        if self.top_p < 1.0 and len(kept) > 1:
            kept = kept[_nucleus(scores[kept], self.top_p)]
        if self.min_p > 0.0 and len(kept) > 1:
            left = scores[kept]
            kept = kept[left >= left.max() + math.log(self.min_p)]
        return np.sort(kept)


def _check(is_right: bool, name: str, value: object, expected: str) -> None:
    if not is_right:
        raise OptionError(f"{name}={value!r}: expected {expected}.")


def _largest(scores: Scores, count: int) -> IdArray:
    """Indices of the ``count`` largest scores, largest first; of equals the lower index comes first."""
    if count < len(scores):
        # Everything above the threshold, then as many of those at it as are missing, by index.
        threshold = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > threshold)
        chosen = np.concatenate([above, np.flatnonzero(scores == threshold)[: count - len(above)]])
    else:
        chosen = np.arange(len(scores))
    return chosen[np.lexsort((chosen, -scores[chosen]))]


def _nucleus(scores: Scores, top_p: float) -> IdArray:
    """Indices of the fewest largest scores whose softmax sums to at least ``top_p``."""
    total = logsumexp(scores)
    count = _FIRST_SORTED
    while True:
        order = _largest(scores, min(count, len(scores)))
        reached = np.cumsum(np.exp(scores[order] - total), dtype=np.float64)
        if reached[-1] >= top_p or count >= len(scores):
            return order[: int(np.searchsorted(reached, top_p, side="left")) + 1]
        count *= 8


class ModelRow(NamedTuple):
    """The model's distribution of the next token, truncation included.

    ``token_ids`` (n,) are the tokens of positive probability, in rising order, and
    ``log_probabilities`` (n,) float64 belong to them (their sum is 1). ``log_kept`` is the logarithm
    of the probability of all of them before truncation.
    """

    token_ids: IdArray
    log_probabilities: NDArray[np.float64]
    log_kept: float


def model_row(
    logits: Scores, sampling: Sampling, covers: IdArray | None = None, *, row: int = 0, step: int = 0
) -> ModelRow:
    """The distribution that weighted methods take for the model's.

    Parameters
    ----------
    logits : (n_tokens,)
    covers : (n,) intp or None
        Only these tokens may stand here (token healing), as a condition on the model.
    row, step : int
        Named in errors.

    Raises
    ------
    BackendError
        The logits hold NaN or positive infinity, or are all ``-inf``.
    """
    _check_logits(logits, row, step)
    scores = sampling.scores(logits)
    if covers is not None:
        covered = np.full_like(scores, -math.inf)
        covered[covers] = scores[covers]
        scores = covered
    kept = sampling.truncate(scores)
    kept_scores = scores[kept].astype(np.float64)
    log_kept = logsumexp(kept_scores)
    if log_kept == -math.inf:
        return ModelRow(kept, kept_scores, -math.inf)
    log_total = logsumexp(scores.astype(np.float64)) if sampling.truncates else log_kept
    return ModelRow(kept, kept_scores - log_kept, min(log_kept - log_total, 0.0))


def _check_logits(logits: Scores, row: int, step: int) -> None:
    highest = float(logits.max())
    if not math.isfinite(highest):
        fault = "all -inf" if highest == -math.inf else "NaN or infinite"
        raise BackendError(f"The model's logits of row {row} at step {step} are {fault}.")


class Choice(NamedTuple):
    """One step of one row.

    ``log_probability`` is that of the token under the model with bias and temperature, before
    truncation; ``log_feasible`` is ``log Z``, the logarithm of the probability that the model,
    truncation included, chooses an allowed token.
    """

    token_id: int
    log_probability: float
    log_feasible: float


def choose(
    logits: Scores,
    allowed: IdArray,
    sampling: Sampling,
    uniform: float,
    *,
    row: int = 0,
    step: int = 0,
) -> Choice:
    """Choose one of the allowed tokens.

    Parameters
    ----------
    logits : (n_tokens,)
    allowed : (n_allowed,)
        Ids in rising order.
    uniform : float
        In [0, 1); decides the draw.
    row, step : int
        Named in errors.

    Raises
    ------
    BackendError
        The logits hold NaN or positive infinity, or are all ``-inf``.
    DeadEndError
        Every allowed token has probability 0.
    """
    found = candidates(logits, allowed, sampling, row=row, step=step)
    if not len(found.token_ids):
        raise DeadEndError(
            f"No allowed token of row {row} has a positive probability at step {step} "
            f"({len(allowed)} allowed): the model or logit_bias excludes all of them."
        )
    weights = found.scores
    if sampling.temperature == 0.0:
        place = int(np.argmax(weights))
    else:
        place = draw_place(np.exp(weights - float(weights.max())), uniform)
    return Choice(int(found.token_ids[place]), float(weights[place]) - found.log_total, found.log_feasible)


class Candidates(NamedTuple):
    """The tokens a step may choose from.

    ``token_ids`` (n,) in rising order; empty where every allowed token has probability 0. ``scores`` (n,): their
    logarithms of probability, shifted alike. ``log_feasible`` as in `Choice`. A token's log probability under the
    model before truncation is its score less ``log_total``.
    """

    token_ids: IdArray
    scores: Scores
    log_feasible: float
    log_total: float


def candidates(
    logits: Scores, allowed: IdArray, sampling: Sampling, *, row: int = 0, step: int = 0
) -> Candidates:
    """The allowed tokens that the model, truncation included, may choose; the arguments are those of `choose`.

    Raises
    ------
    BackendError
        The logits hold NaN or positive infinity, or are all ``-inf``.
    """
    _check_logits(logits, row, step)
    scores = sampling.scores(logits)
    total = logsumexp(scores)
    ids, log_feasible = allowed, 0.0
    if sampling.truncates:
        kept = sampling.truncate(scores)
        total_kept = logsumexp(scores[kept])
        ids = np.intersect1d(kept, allowed, assume_unique=True)
        if not len(ids):
            ids = allowed[sampling.truncate(scores[allowed])]
            log_feasible = -math.inf
    else:
        total_kept = total
    weights = scores[ids]
    best = float(weights.max(initial=-math.inf))
    if best == -math.inf:
        return Candidates(ids[:0], weights[:0], -math.inf, total)
    if log_feasible == 0.0:
        mass = float(np.exp(weights - best).sum(dtype=np.float64))
        log_feasible = min(best + math.log(mass) - total_kept, 0.0)
    return Candidates(ids, weights, log_feasible, total)


def masked_row(
    logits: Scores, allowed: IdArray, sampling: Sampling, *, row: int = 0, step: int = 0
) -> tuple[IdArray, NDArray[np.float64]] | None:
    """The law that `choose` draws from at a temperature above 0.

    Returns
    -------
    token_ids : (n,) intp
        In rising order.
    probabilities : (n,) float64
        Of sum 1. ``None`` instead of both where every allowed token has probability 0.

    Raises
    ------
    BackendError
        The logits hold NaN or positive infinity, or are all ``-inf``.
    """
    _check_logits(logits, row, step)
    scores = sampling.scores(logits)
    candidates, weights = _candidates(scores, allowed, sampling)
    total = logsumexp(weights)
    if total == -math.inf:
        return None
    return candidates, np.exp(weights.astype(np.float64) - total)


def log_masked_row(
    logits: Scores, allowed: IdArray, sampling: Sampling, *, row: int = 0, step: int = 0
) -> tuple[IdArray, NDArray[np.float64]]:
    """The tokens that `choose` chooses from, with their log probabilities before truncation and mask.

    Returns
    -------
    token_ids : (n,) intp
        In rising order.
    log_probabilities : (n,) float64

    Raises
    ------
    BackendError
        The logits hold NaN or positive infinity, or are all ``-inf``.
    """
    _check_logits(logits, row, step)
    scores = sampling.scores(logits)
    candidates, weights = _candidates(scores, allowed, sampling)
    return candidates, weights.astype(np.float64) - logsumexp(scores)


def _candidates(scores: Scores, allowed: IdArray, sampling: Sampling) -> tuple[IdArray, Scores]:
    """The allowed tokens that truncation keeps; where it keeps none, those it keeps of the allowed ones."""
    if not sampling.truncates:
        return allowed, scores[allowed]
    candidates = np.intersect1d(sampling.truncate(scores), allowed, assume_unique=True)
    if not len(candidates):
        candidates = allowed[sampling.truncate(scores[allowed])]
    return candidates, scores[candidates]


def draw_place(masses: Scores, uniform: float) -> int:
    """The index at which the running sum of ``masses`` passes ``uniform`` times their sum.

    Sums are float64, first over blocks and then inside one, which for a whole vocabulary is a good
    deal faster than one running sum.
    """
    starts = np.arange(0, len(masses), _BLOCK)
    blocks = np.cumsum(np.add.reduceat(masses, starts, dtype=np.float64))
    target = uniform * blocks[-1]
    # The last index of positive mass is the limit: round-off may point past it.
    block = min(int(np.searchsorted(blocks, target, side="right")), int(np.searchsorted(blocks, blocks[-1])))
    inside = np.cumsum(masses[block * _BLOCK : (block + 1) * _BLOCK], dtype=np.float64)
    target -= blocks[block - 1] if block else 0.0
    place = min(int(np.searchsorted(inside, target, side="right")), int(np.searchsorted(inside, inside[-1])))
    return block * _BLOCK + place
