"""Log-space arithmetic and the draw of one token, against plain probabilities and enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from constrain.errors import BackendError, DeadEndError, OptionError
from constrain.numerics import (
    RandomStreams,
    Sampling,
    allowed_token_ids,
    choose,
    log1mexp,
    logsumexp,
)

INF = math.inf


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return weights / weights.sum()


def truncated(probabilities: np.ndarray, top_k: int, top_p: float, min_p: float) -> np.ndarray:
    """Truncation by sorting everything, the obvious way."""
    left = probabilities.copy()
    order = sorted(range(len(left)), key=lambda i: (-left[i], i))
    if top_k:
        left[order[top_k:]] = 0.0
    left /= left.sum()
    if top_p < 1.0:
        total = 0.0
        for i in order:
            if total >= top_p - 1e-12:
                left[i] = 0.0
            total += left[i]
        left /= left.sum()
    left[left < min_p * left.max() * (1 - 1e-12)] = 0.0
    return left / left.sum()


def test_logsumexp_of_nothing_is_minus_infinity() -> None:
    """Rows that are all ``-inf``, or empty, sum to ``-inf`` and not to NaN."""
    assert logsumexp(np.full(4, -INF)) == -INF
    assert logsumexp(np.empty(0)) == -INF
    assert logsumexp(np.array([-1000.0, -1000.0], np.float32)) == pytest.approx(-1000.0 + math.log(2.0))


@pytest.mark.parametrize("a", [-1e-12, -1e-3, -0.5, -math.log(2.0), -1.0, -40.0, -800.0])
def test_log1mexp(a: float) -> None:
    """``log(1 - exp(a))`` keeps its digits at both ends."""
    assert log1mexp(a) == pytest.approx(
        math.log1p(-math.exp(a)) if a < -0.1 else math.log(-math.expm1(a)), rel=1e-12
    )


@pytest.mark.parametrize("a", [0.0, 1e-17])
def test_log1mexp_of_round_off(a: float) -> None:
    """Zero, and a positive round-off, give ``-inf``."""
    assert log1mexp(a) == -INF


def test_allowed_token_ids_follow_the_bit_layout() -> None:
    """Bit ``t % 32`` of word ``t // 32`` is token ``t``; bits past the tokens don't count."""
    words = np.zeros(3, np.int32)
    for token_id in (0, 31, 32, 69, 70, 95):
        words[token_id // 32] |= np.uint32(1 << (token_id % 32)).astype(np.int32)
    assert allowed_token_ids(words, 70).tolist() == [0, 31, 32, 69]


def test_streams_depend_on_seed_row_and_step_only() -> None:
    """The same (seed, row, step) gives the same number whatever was drawn before; others differ."""
    first, again = RandomStreams(7), RandomStreams(7)
    backwards = {(row, step): again.uniform(row, step) for row in (2, 1, 0) for step in (4, 0, 9)}
    assert all(first.uniform(*place) == number for place, number in backwards.items())
    assert len({*backwards.values(), RandomStreams(8).uniform(0, 0)}) == len(backwards) + 1
    assert RandomStreams(None).seed != RandomStreams(None).seed


def test_streams_are_uniform() -> None:
    """Over rows and over steps the numbers fill [0, 1) evenly (false alarm below 1e-6)."""
    streams = RandomStreams(3)
    for numbers in (
        [streams.uniform(i, 0) for i in range(4000)],
        [streams.uniform(0, i) for i in range(4000)],
    ):
        counts = np.bincount((np.array(numbers) * 20).astype(int), minlength=20)
        chi_square = float(((counts - 200.0) ** 2 / 200.0).sum())
        assert chi_square < 70.0  # 19 degrees of freedom


@pytest.mark.parametrize("seed", range(30))
def test_truncation_equals_sorting(seed: int) -> None:
    """top-k, top-p and min-p keep what sorting all tokens keeps, ties by id included."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 3000))
    logits = rng.normal(0.0, 3.0, size).round(1 if seed % 2 else 6)
    top_k = int(rng.choice([0, 1, 3, 700, size, size + 5]))
    top_p = float(rng.choice([1.0, 0.999, 0.9, 0.3, 1e-9]))
    min_p = float(rng.choice([0.0, 0.001, 0.2, 1.0]))
    kept = Sampling(top_k=top_k, top_p=top_p, min_p=min_p).truncate(logits.astype(np.float64))
    assert kept.tolist() == np.flatnonzero(truncated(softmax(logits), top_k, top_p, min_p)).tolist()


def law(logits: np.ndarray, allowed: list[int], sampling: Sampling) -> tuple[dict[int, float], float]:
    """The probability of each choice, by sweeping the uniform number over a fine grid."""
    grid = 2_000
    counts: dict[int, int] = {}
    feasible = 0.0
    for i in range(grid):
        choice = choose(logits, np.array(allowed), sampling, (i + 0.5) / grid)
        counts[choice.token_id] = counts.get(choice.token_id, 0) + 1
        feasible = math.exp(choice.log_feasible)
    return {token_id: count / grid for token_id, count in counts.items()}, feasible


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 4},
        {"top_p": 0.9},
        {"min_p": 0.05},
        {"logit_bias": {3: 2.5, 0: -INF}},
    ],
)
def test_law_of_a_step(options: dict[str, Any]) -> None:
    """A step draws from the truncated row restricted to the mask, and reports the mass inside it."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0.0, 1.5, 9).astype(np.float32)
    sampling = Sampling(**options)
    scores = logits.astype(np.float64)
    for token_id, bias in sampling.logit_bias.items():
        scores[token_id] += bias
    model = truncated(softmax(scores / sampling.temperature), sampling.top_k, sampling.top_p, sampling.min_p)
    allowed = [0, 2, 3, 5, 8]
    mass = model[allowed].sum()
    assert mass > 0
    found, feasible = law(logits, allowed, sampling)
    assert feasible == pytest.approx(mass, rel=1e-6)
    for token_id in allowed:
        assert found.get(token_id, 0.0) == pytest.approx(model[token_id] / mass, abs=2e-3)


def test_mask_outside_the_truncated_model() -> None:
    """Where truncation leaves nothing allowed, the mask comes first, and ``log Z`` is ``-inf``."""
    logits = np.array([9.0, 1.0, 2.0, 0.0])
    choice = choose(logits, np.array([1, 2, 3]), Sampling(top_k=1), 0.99)
    assert choice.token_id == 2 and choice.log_feasible == -INF
    assert choice.log_probability == pytest.approx(math.log(softmax(logits)[2]))


def test_greedy_takes_the_lowest_id_of_equals() -> None:
    """Temperature 0 takes the best allowed token, of equals the lowest id, and reports nominal mass."""
    logits = np.array([5.0, 1.0, 3.0, 3.0, 3.0])
    choice = choose(logits, np.array([1, 2, 3, 4]), Sampling(temperature=0.0), 0.9)
    assert choice.token_id == 2
    assert math.exp(choice.log_feasible) == pytest.approx(softmax(logits)[1:].sum())


def test_tiny_temperatures_are_greedy() -> None:
    """A temperature close to 0 overflows nothing and takes the best allowed token."""
    logits = np.array([50.0, 3.0, 4.0], np.float32)
    choice = choose(logits, np.array([1, 2]), Sampling(temperature=1e-6), 0.999)
    assert choice.token_id == 2 and choice.log_feasible == pytest.approx(-46e6)


def test_mass_far_below_the_best_token() -> None:
    """Allowed tokens 1,000 nats below the best are still drawn in proportion; no underflow to a dead end."""
    logits = np.array([1000.0, 0.0, math.log(3.0)], np.float32)
    found, feasible = law(logits, [1, 2], Sampling())
    assert feasible == 0.0
    assert found[2] == pytest.approx(0.75, abs=2e-3)
    assert choose(logits, np.array([1, 2]), Sampling(), 0.5).log_feasible == pytest.approx(
        math.log(4.0) - 1000.0
    )


def test_uniform_extremes_choose_possible_tokens() -> None:
    """The ends of [0, 1) never choose a token of probability 0."""
    logits = np.array([-INF, 0.0, 0.0, -INF, -2000.0])
    for uniform, token_id in ((0.0, 1), (1.0 - 2.0**-53, 2)):
        assert choose(logits, np.arange(5), Sampling(), uniform).token_id == token_id


@pytest.mark.parametrize(
    ("logits", "error", "text"),
    [
        ([0.0, math.nan], BackendError, "row 3 at step 8 are NaN or infinite"),
        ([0.0, INF], BackendError, "row 3 at step 8 are NaN or infinite"),
        ([-INF, -INF], BackendError, "row 3 at step 8 are all -inf"),
        ([-INF, 0.0], DeadEndError, "row 3 has a positive probability at step 8"),
    ],
)
def test_unusable_logits_are_named(logits: list[float], error: type[Exception], text: str) -> None:
    """NaN, infinite and all-minus-infinity rows, and an empty choice, name row and step."""
    with pytest.raises(error, match=text):
        choose(np.array(logits, np.float32), np.array([0]), Sampling(), 0.5, row=3, step=8)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": INF},
        {"temperature": 1e-300},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"top_k": 2.5},
        {"min_p": -0.1},
        {"min_p": 2.0},
        {"logit_bias": {-1: 0.0}},
        {"logit_bias": {1: INF}},
        {"logit_bias": {1: math.nan}},
    ],
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    """A value out of its range is refused by name."""
    with pytest.raises(OptionError, match=next(iter(options))):
        Sampling(**options)


def test_bias_outside_the_vocabulary() -> None:
    """A bias for an id that the model doesn't have is refused."""
    with pytest.raises(OptionError, match="token 9 is outside the vocabulary of 2"):
        choose(np.zeros(2), np.array([0]), Sampling(logit_bias={9: 1.0}), 0.5)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_faulty_seed(seed: Any) -> None:
    """A seed that isn't a natural number is refused."""
    with pytest.raises(OptionError, match="seed="):
        RandomStreams(seed)
