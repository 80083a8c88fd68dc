"""Weighted rejection: the weights of a draw, exactly, and ``generate`` by ``method="rejection"``.

Where only statistics can tell, seeds are fixed and a mean may be 4.5 standard errors off (a false
alarm has probability below 1e-5 a test).
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.decoders import RejectionDecoder, RejectionOptions, Row
from constrain.decoders.weighted_rejection import (
    Draw,
    adaptive_draw,
    geometric_draw,
    random_order,
    recursive_draw,
)
from constrain.errors import BackendError, OptionError
from constrain.numerics import RandomStreams, Sampling
from tests.api.table_model import TableModel, random_row
from tests.api.toy_laws import LETTERS, assert_mean, chi_square, feasible_law, members, softmax

PATTERN = r"(a|b)*ab?c?"
LENGTH = 5
P = np.array([0.4, 0.05, 0.25, 0.1, 0.2])


# --------------------------------------------------------------------------------- the draw of a token


@pytest.mark.parametrize("cap", [None, 1, 2, 3, 5, 9])
@pytest.mark.parametrize("good", [(), (1,), (0, 3), (1, 2, 4), (0, 1, 2, 3, 4)])
def test_recursive_draw_is_properly_weighted(good: tuple[int, ...], cap: int | None) -> None:
    """Over all orders of 5 tokens, the weight of each token has the mean ``p a``, to 1e-12, for every cap."""
    found = np.zeros(5)
    for order in itertools.permutations(range(5)):
        probability = 1.0
        for place, token in enumerate(order):
            probability *= P[token] / P[list(order[place:])].sum()
        draw = recursive_draw(np.log(P), lambda place: place in good, iter(order), cap)
        assert (draw.log_weight > -math.inf) == (draw.place in good)
        found[draw.place] += probability * math.exp(draw.log_weight)
    assert found == pytest.approx(np.where(np.isin(range(5), good), P, 0.0), abs=1e-12)


@pytest.mark.parametrize("n", [5, 300])
def test_random_order_draws_without_replacement(n: int) -> None:
    """An order holds every place once, and its first two follow the law of draws without replacement."""
    rng = np.random.default_rng(3)
    p = np.concatenate([P, np.full(n - 5, 1e-300)]) if n > 5 else P
    pairs: Counter[tuple[int, int]] = Counter()
    for _ in range(3000):
        order = random_order(np.log(p), rng)
        pairs[next(order), next(order)] += 1
    assert sorted(random_order(np.log(p), rng)) == list(range(n))
    expected = {(i, j): P[i] * P[j] / (1 - P[i]) for i in range(5) for j in range(5) if i != j}
    assert chi_square(pairs, expected) < 60.0  # 19 degrees of freedom


@pytest.mark.parametrize("cap", [None, 1, 2, 6])
@pytest.mark.parametrize("acceptances", [2, 4])
def test_geometric_draw_is_the_curtailed_run(acceptances: int, cap: int | None) -> None:
    """Tokens and weights have the law of a run of draws with replacement, cut after ``cap`` rejections."""
    rng, good, n = np.random.default_rng(7), (1, 2), 6000
    mass, most = P[1] + P[2], 80 if cap is None else cap
    found: Counter[tuple[int, float]] = Counter()
    weights = np.zeros((n, 5))
    for run in range(n):
        draw = geometric_draw(
            np.log(P), lambda place: place in good, rng, acceptances=acceptances, max_rejections=cap
        )
        weight = math.exp(draw.log_weight)
        found[draw.place if weight else -1, round(weight, 9)] += 1
        weights[run, draw.place] = weight
    for token in range(5):
        assert_mean(weights[:, token], P[token] if token in good else 0.0, precise=False)
    # The last trial is an acceptance (the run is full) or a rejection (it is cut).
    ends = {
        (acceptances, b): math.comb(acceptances + b - 1, b) * mass**acceptances * (1 - mass) ** b
        for b in range(most)
    }
    if cap is not None:
        ends |= {
            (c, cap): math.comb(c + cap - 1, c) * mass**c * (1 - mass) ** cap for c in range(acceptances)
        }
    law: Counter[tuple[int, float]] = Counter()
    for (c, b), probability in ends.items():
        weight = round(min(acceptances - 1, c) / (c + b - 1), 9) if c else 0.0
        for token in good:
            law[token if c else -1, weight] += probability * P[token] / mass
    assert sum(law.values()) == pytest.approx(1.0)
    cells = sum(n * probability >= 5 for probability in law.values())
    assert chi_square(found, law) < cells + 6 * math.sqrt(2 * cells) + 15


@pytest.mark.parametrize("peak", [0.5, 0.9])
def test_adaptive_draw(peak: float) -> None:
    """Tokens given acceptance follow ``p a / Z``, weights have the mean ``Z``, and checks stay few."""
    p = np.full(40, (1 - peak) / 39)
    p[7] = peak
    good = {7, 3, 11, 30}
    rng = np.random.default_rng(11)
    draws = [adaptive_draw(np.log(p), good.__contains__, rng) for _ in range(3000)]
    mass = sum(p[list(good)])
    assert_mean([math.exp(draw.log_weight) for draw in draws], mass)
    counts = Counter(draw.place for draw in draws)
    assert chi_square(counts, {token: p[token] / mass for token in good}) < 32.0  # 3 degrees of freedom
    checks = np.mean([draw.n_checks for draw in draws])
    assert checks < (2.2 if peak > 2 / 3 else 1 / mass + 1)


@pytest.mark.parametrize(
    "sampler",
    [
        lambda p, accepts, rng: recursive_draw(p, accepts, random_order(p, rng)),
        geometric_draw,
        adaptive_draw,
    ],
)
class TestExtremes:
    """Rows at the edge of what floats can say."""

    def test_rare_token(self, sampler: Callable[..., Draw]) -> None:
        """One valid token of mass 2.4e-4 among 180: it is found, with the right mean weight."""
        rng = np.random.default_rng(0)
        p = rng.exponential(size=180)
        p[17] = 0.0
        p *= (1 - 2.4e-4) / p.sum()
        p[17] = 2.4e-4
        draws = [sampler(np.log(p), (17).__eq__, rng) for _ in range(1000)]
        assert {draw.place for draw in draws} == {17}
        weights = np.exp([draw.log_weight for draw in draws])
        assert np.all(np.isfinite(weights))
        assert abs(weights.mean() - 2.4e-4) < 4.5 * weights.std() / math.sqrt(1000) + 1e-12

    def test_tiny_token(self, sampler: Callable[..., Draw]) -> None:
        """Nearly all mass is rejected: the draw ends, and the weight is the tiny token's mass."""
        log_p = np.array([0.0, math.log(1e-16), -600.0, -800.0])
        for token in (2, 3):
            draw = sampler(log_p, token.__eq__, np.random.default_rng(1))
            assert draw.place == token and not math.isnan(draw.log_weight)
            assert draw.log_weight < -590.0

    def test_nothing_fits(self, sampler: Callable[..., Draw]) -> None:
        """With no valid token the weight is 0, and every token was asked for once."""
        draw = sampler(np.log(P), lambda place: False, np.random.default_rng(1))
        assert draw.log_weight == -math.inf and draw.n_checks == 5 and 0 <= draw.place < 5

    def test_only_one_token(self, sampler: Callable[..., Draw]) -> None:
        """A row of one token: weight 1 if it fits, else 0; one check."""
        for fits, weight in ((True, 0.0), (False, -math.inf)):
            draw = sampler(np.zeros(1), lambda place, fits=fits: fits, np.random.default_rng(1))
            assert draw == Draw(0, weight, 1)


# ------------------------------------------------------------------------------------------- generate


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"top_k": 2},
        {"top_p": 0.8},
        {"min_p": 0.2, "temperature": 1.7},
        {"max_trials": 2},
        {"acceptances": 4},
    ],
    ids=str,
)
def test_weights_are_unbiased(options: dict[str, Any]) -> None:
    """The mean weight is the mass of the language under the truncated model, and weighted outputs its law."""
    model = TableModel(LETTERS, random_row(4, 1.0))
    law = feasible_law(model, "bb", members(PATTERN, LENGTH), options)
    results = constrain.generate(
        model,
        "bb",
        constrain.regex(PATTERN),
        method="rejection",
        max_tokens=LENGTH,
        n=4000,
        seed=1,
        batch_size=1000,
        **options,
    )
    weights = np.exp([result.log_weight for result in results])
    assert_mean(weights, sum(law.values()))
    for text, mass in law.items():
        if mass > 0.01:
            here = np.array([result.text == text for result in results])
            assert_mean(weights * here, mass, precise=False)
    for result in results:
        assert result.is_complete == (result.log_weight > -math.inf)
        assert result.text in law or not result.is_complete
        assert (result.finish_reason == "length") == (not result.is_complete)
        assert result.value == (result.text if result.is_complete else None)
        assert result.stats.checks > 0 and len(result.token_ids) <= LENGTH
        if result.is_complete and len(options) == 0:
            assert result.log_probability == pytest.approx(math.log(law[result.text]), rel=1e-5)


def test_stop_and_prefix() -> None:
    """A stop string ends a complete output, a healed prefix is a condition on the model: weights stay right."""
    model = TableModel([b"a", b"b", b"ab"], random_row(4, 1.0))
    spec = constrain.regex(r"(ab?)+")
    results = constrain.generate(
        model,
        "b",
        spec,
        method="rejection",
        prefix="aa",
        stop="ab",
        max_tokens=4,
        n=4000,
        seed=3,
        batch_size=1000,
    )
    start = [*model.encode("b"), 0]
    exact = 0.0

    def walk(ids: list[int], p: float) -> None:
        nonlocal exact
        text = "a" + "".join(("a", "b", "ab")[i] for i in ids)
        row = softmax(model.row(start + ids))
        if not ids:  # the last "a" of the prefix may be written anew, as "a" or as "ab"
            row = np.where([1, 0, 1, 0], row, 0.0) / (row[0] + row[2])
        for token, q in enumerate(row):
            longer = text + ("a", "b", "ab", "")[token]
            if q and re.fullmatch(r"(ab?)+", longer):
                if token == 3 or (longer.endswith("ab") and len(ids) < 3):
                    exact += p * q
                elif len(ids) < 3:
                    walk([*ids, token], p * q)

    walk([], 1.0)
    assert_mean(np.exp([result.log_weight for result in results]), exact)
    assert all(result.text.startswith("aa") and "ab" not in result.text[:-2] for result in results)


def test_few_checks_where_the_model_agrees() -> None:
    """A model that mostly writes members is asked for about two tokens a step of a vocabulary of 500."""
    tokens = [bytes([97 + i % 26, 97 + i // 26]) for i in range(500)]
    row = np.zeros(501, np.float32)
    row[500] = 4.0
    model = TableModel(tokens, lambda ids: row)
    results = constrain.generate(
        model, "aa", constrain.regex("([a-m][a-z])*"), method="rejection", max_tokens=20, n=50, seed=0
    )
    checks = sum(result.stats.checks for result in results)
    assert checks < 4.5 * sum(len(result.token_ids) for result in results)


def test_results_do_not_depend_on_the_batch() -> None:
    """Equal seeds give equal outputs and weights at any batch size."""
    model = TableModel(LETTERS)
    specs = [constrain.regex(p) for p in (PATTERN, r"[ab]{2,6}", r"c*a")]

    def run(**options: Any) -> list[tuple[list[int], float]]:
        results = constrain.generate(
            model, ["ab", "b", "cca"], specs, method="rejection", max_tokens=9, n=3, **options
        )
        return [(result.token_ids, result.log_weight) for result in results]

    reference = run(seed=5, batch_size=1)
    assert run(seed=5, batch_size=4) == run(seed=5, batch_size=100) == reference
    assert run(seed=6, batch_size=4) != reference


def test_no_mass_at_all() -> None:
    """Where the truncated model has nothing that fits, every output has weight 0 and says it is cut."""
    row = np.array([5.0, 0.0, 0.0, 0.0], np.float32)
    model = TableModel(LETTERS, lambda ids: row)
    result = constrain.generate(model, "a", constrain.regex("bc"), method="rejection", top_k=1, seed=0)
    assert result.log_weight == -math.inf and result.text == "" and result.value is None
    assert (result.is_complete, result.finish_reason) == (False, "length")
    banned = {0: -math.inf}
    result = constrain.generate(
        model, "a", constrain.regex("ba"), method="rejection", logit_bias=banned, seed=0
    )
    assert result.log_weight == -math.inf and result.text == "b"


def test_decoder_in_a_loop_of_ones_own() -> None:
    """``step`` extends the active rows by a token each, with one call of the model, and tells what it did."""
    model = TableModel(LETTERS)
    compiled = constrain.compile(constrain.regex(r"[ab]{2,4}"), model.vocabulary)
    decoder = RejectionDecoder(model, Sampling(), RandomStreams(2), options=RejectionOptions(acceptances=3))
    rows = [Row(index, model.encode("ab"), compiled.matcher(), max_tokens=5) for index in range(8)]
    state = decoder.start(rows)
    n_checks = 0
    while state.active:
        before, n_calls = len(state.active), len(model.calls)
        state, info = decoder.step(decoder.streams, state)
        n_checks += info.n_checks
        assert (info.n_rows, info.n_finished) == (before, before - len(state.active))
        assert len(model.calls) == n_calls + (1 if state.active else 0)
    assert n_checks == sum(row.stats.checks for row in rows) and all(row.is_finished for row in rows)
    assert list(decoder.run([])) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"temperature": 0.0}, "temperature=0.0: weighted methods"),
        ({"max_trials": 0}, "max_trials=0"),
        ({"acceptances": 1}, "acceptances=1"),
        ({"batch_size": True}, "batch_size=True"),
        (
            {"jump_forward": "text"},
            "no argument 'jump_forward'; the options of method='rejection' are batch_size",
        ),
    ],
)
def test_faulty_options(options: dict[str, Any], text: str) -> None:
    """What the method cannot do is refused before the model is called."""
    model = TableModel(LETTERS)
    with pytest.raises(OptionError, match=re.escape(text)):
        constrain.generate(model, "a", constrain.choice(["a"]), method="rejection", **options)
    assert not model.calls


def test_unusable_logits() -> None:
    """NaN among the logits is reported with row and step."""

    def row(ids: Sequence[int]) -> np.ndarray:
        return np.full(4, np.nan if len(ids) > 2 else 0.0, np.float32)

    with pytest.raises(BackendError, match="row 0 at step 1 are NaN"):
        constrain.generate(
            TableModel(LETTERS, row), "ab", constrain.regex("[ab]{4}"), method="rejection", seed=0
        )


def test_stream() -> None:
    """A stream ends with what ``generate`` returns."""
    model = TableModel(LETTERS)
    options = {"method": "rejection", "seed": 4, "max_tokens": 8}
    *parts, last = constrain.stream(model, "b", constrain.regex(r"[ab]{3,6}"), **options)
    one = constrain.generate(model, "b", constrain.regex(r"[ab]{3,6}"), **options)
    assert (last.text, last.log_weight) == (one.text, one.log_weight)
    assert all(last.text.startswith(part.text) for part in parts)
