"""Sequential Monte Carlo: resampling, weights and ``generate`` by ``method="smc"``, against exact laws.

Where only statistics can tell, seeds are fixed and a mean may be 4.5 standard errors off (a false
alarm has probability below 1e-5 a test).
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.decoders import BatchPotential, Row, SmcDecoder, SmcOptions
from constrain.decoders.resampling import SCHEMES, effective_sample_size
from constrain.errors import BackendError, DeadEndError, OptionError
from constrain.numerics import RandomStreams, Sampling
from tests.api.table_model import TableModel, random_row
from tests.api.toy_laws import LETTERS, assert_mean, feasible_law, members

PATTERN = r"(a|b)*ab?c?"
LENGTH = 5


def model_of(spread: float = 1.0) -> TableModel:
    return TableModel(LETTERS, random_row(4, spread))


def likes_b(text: str, is_complete: bool) -> float:
    """Likes "b", and says so early; dislikes "c" at the end alone."""
    return 0.7 * text.count("b") - (1.5 * text.count("c") if is_complete else 0.0)


def misleading(text: str, is_complete: bool) -> float:
    """The same on complete texts, and the contrary on partial ones."""
    return likes_b(text, is_complete) if is_complete else -1.2 * text.count("b")


def no_bb(text: str, is_complete: bool) -> float:
    """Forbids "bb", also early."""
    return -math.inf if "bb" in text else 0.0


# ----------------------------------------------------------------------------------------- resampling


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_resampling_is_unbiased(scheme: str) -> None:
    """Each particle gets ``n w`` copies in the mean; those of weight 0 none; low-noise schemes stray by less than 1 or 2."""
    rng = np.random.default_rng(5)
    weights = np.array([0.0, 0.31, 0.02, 0.0, 0.4, 0.07, 0.2, 0.0])
    for n in (1, 5, 8):
        copies = np.array([np.bincount(SCHEMES[scheme](weights, n, rng), minlength=8) for _ in range(4000)])
        assert np.all(copies.sum(axis=1) == n)
        error = copies.std(axis=0) / math.sqrt(len(copies))
        assert np.all(np.abs(copies.mean(axis=0) - n * weights) <= 4.5 * error + 1e-9)
        stray = np.abs(copies - n * weights).max()
        assert stray < {"systematic": 1.0, "stratified": 2.0}.get(scheme, n + 1)
        if scheme == "residual":
            assert np.all(copies >= np.floor(n * weights))


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_resampling_at_the_edges(scheme: str) -> None:
    """One particle with everything, equal weights, sums off by round-off, and the last random number below 1."""

    class Last:
        def random(self, n: int | None = None) -> Any:
            return np.full(n, math.nextafter(1.0, 0.0)) if n else math.nextafter(1.0, 0.0)

    rng: Any = Last()
    assert SCHEMES[scheme](np.array([0.0, 1.0, 0.0]), 4, rng).tolist() == [1, 1, 1, 1]
    for n in (3, 7, 49):
        weights = np.append(np.full(n, 1.0 / n), 0.0)
        assert set(SCHEMES[scheme](weights, n, np.random.default_rng(0))) <= set(range(n))
        assert max(SCHEMES[scheme](weights, n, rng)) == n - 1


def test_effective_sample_size() -> None:
    """Equal weights count in full, one alone as 1, none as 0, whatever their scale."""
    assert effective_sample_size(np.full(6, -900.0)) == pytest.approx(6.0)
    assert effective_sample_size(np.array([-math.inf, 800.0])) == pytest.approx(1.0)
    assert effective_sample_size(np.full(3, -math.inf)) == 0.0
    assert effective_sample_size(np.log([1.0, 2.0, 3.0])) == pytest.approx(36 / 14)


# --------------------------------------------------------------------------------------- exact targets


@pytest.mark.parametrize(
    "options",
    [
        {"particles": 1},
        {"particles": 4, "ess_threshold": 1.0, "resampling": "multinomial"},
        {"particles": 4, "ess_threshold": 1.0, "resampling": "residual", "top_k": 2},
        {"particles": 5, "ess_threshold": 0.9, "resampling": "stratified", "top_p": 0.8},
        {"particles": 4, "ess_threshold": 0.9, "proposal": "rejection"},
        {"particles": 4, "ess_threshold": 1.0, "proposal": "rejection", "max_trials": 2, "top_k": 3},
        {"particles": 6, "ess_threshold": 0.8, "potential": likes_b, "temperature": 1.4},
        {"particles": 6, "ess_threshold": 1.0, "potential": misleading, "min_p": 0.1},
        {"particles": 6, "ess_threshold": 0.0, "potential": misleading},
        {"particles": 4, "potential": no_bb, "proposal": "rejection"},
        {"particles": 4, "ess_threshold": 1.0, "block": 2, "potential": misleading},
        {"particles": 4, "ess_threshold": 1.0, "rejuvenate": 2},
        {
            "particles": 4,
            "ess_threshold": 1.0,
            "rejuvenate": 1,
            "proposal": "rejection",
            "potential": likes_b,
        },
        {"particles": 3, "ess_threshold": 1.0, "rejuvenate": 1, "block": 2, "potential": no_bb, "top_k": 3},
        {"particles": 3, "ess_threshold": 0.9, "lookahead": 2, "potential": likes_b},
        {"particles": 3, "ess_threshold": 1.0, "lookahead": 1, "horizon": 1, "rejuvenate": 1, "block": 2},
    ],
    ids=lambda options: ",".join(f"{k}={getattr(v, '__name__', v)}" for k, v in options.items()),
)
def test_normalizer_and_masses_are_unbiased(options: dict[str, Any]) -> None:
    """The mean of ``exp(log_normalizer)`` is the target's total, and that of each output's weights its mass."""
    model = model_of()
    potential = options.get("potential", lambda text, is_complete: 0.0)
    law = {
        text: p * math.exp(potential(text, True))
        for text, p in feasible_law(model, "bb", members(PATTERN, LENGTH), options).items()
    }
    runs = 1500 if options["particles"] == 1 else 200 if "lookahead" in options else 500
    posteriors = constrain.generate(
        model, ["bb"] * runs, constrain.regex(PATTERN), method="smc", max_tokens=LENGTH, seed=2, **options
    )
    total = sum(law.values())
    assert_mean(np.exp([posterior.log_normalizer for posterior in posteriors]), total, precise=False)
    for text, mass in law.items():
        if mass < 0.03 * total:
            continue
        found = [
            np.mean([math.exp(one.log_weight) * (one.text == text) for one in posterior.particles])
            for posterior in posteriors
        ]
        assert_mean(found, mass, precise=False)
    for posterior in posteriors:
        assert len(posterior.particles) == options["particles"]
        alive = [
            (one, log_target)
            for one, log_target in zip(posterior.particles, posterior.log_targets, strict=True)
            if one.log_weight > -math.inf
        ]
        for one, log_target in alive:
            assert one.is_complete and log_target == pytest.approx(math.log(law[one.text]), abs=1e-5)
        if options.get("ess_threshold") == 0.0 or options["particles"] == 1:
            assert not posterior.resampled_at


@pytest.mark.parametrize("proposal", ["mask", "rejection"])
def test_many_moves_keep_the_masses(proposal: str) -> None:
    """Where one half of the outputs has far more mass than proposals show, moves must weigh old and new ends alike."""

    def row(ids: Sequence[int]) -> np.ndarray:
        text = "".join("abc"[one] for one in ids[1:])
        scores = {0: [0.0, 0.0, -9.0, -9.0], 3: [-9.0, -9.0, -9.0, 4.0]}.get(len(text))
        if scores is None:
            is_rare = text[0] == "a"
            end = [-2.0, -2.0, 1.5, -9.0] if is_rare else [1.5, 1.0, -2.0, -9.0]
            scores = end if len(text) == 1 else [-9.0, -9.0, 0.0, 1.5 if is_rare else -1.5]
        return np.array(scores, np.float32)

    model, pattern = TableModel(LETTERS, row), "[ab][ab]c"
    law = feasible_law(model, "a", members(pattern, 4), {})
    posteriors = constrain.generate(
        model,
        ["a"] * 400,
        constrain.regex(pattern),
        method="smc",
        max_tokens=4,
        particles=3,
        rejuvenate=4,
        ess_threshold=1.0,
        proposal=proposal,
        seed=5,
    )
    for text, mass in law.items():
        found = [
            np.mean([math.exp(one.log_weight) * (one.text == text) for one in posterior.particles])
            for posterior in posteriors
        ]
        assert_mean(found, mass, precise=False)


@pytest.mark.parametrize("proposal", ["mask", "rejection"])
@pytest.mark.parametrize("potential", [None, likes_b, misleading])
def test_expectations_converge(proposal: str, potential: Any) -> None:
    """With many particles the weighted outputs, and draws from them, follow the exact conditional law.

    Twice the distance that independent draws would have is allowed; four times with a twist that leads astray.
    """
    model, n = model_of(1.5), 4000
    phi = potential or (lambda text, is_complete: 0.0)
    law = {
        text: p * math.exp(phi(text, True))
        for text, p in feasible_law(model, "cb", members(PATTERN, LENGTH), {}).items()
    }
    total = sum(law.values())
    posterior = constrain.generate(
        model,
        "cb",
        constrain.regex(PATTERN),
        method="smc",
        max_tokens=LENGTH,
        particles=n,
        proposal=proposal,
        potential=potential,
        seed=9,
    )
    exact = {text: mass / total for text, mass in law.items()}
    noise = sum(math.sqrt(2 * p * (1 - p) / (math.pi * n)) for p in exact.values()) / 2
    allowed = (4.0 if potential is misleading else 2.0) * noise

    def distance(found: dict[str, float]) -> float:
        return sum(abs(found.get(text, 0.0) - p) for text, p in exact.items()) / 2

    found: Counter[str] = Counter()
    for one, weight in zip(posterior.particles, posterior.weights, strict=True):
        if weight:
            found[one.text] += weight
    assert set(found) <= set(exact)
    assert distance(found) < allowed
    assert math.exp(posterior.log_normalizer) == pytest.approx(total, rel=0.1)
    length = posterior.expectation(lambda one: len(one.text))
    assert length == pytest.approx(sum(p * len(text) for text, p in exact.items()), abs=0.1)
    pair = posterior.expectation(lambda one: np.array([len(one.text), one.text.count("b")]))
    assert pair.shape == (2,) and pair[0] == pytest.approx(length)
    assert posterior.map().text == max(exact, key=exact.get)
    rng = np.random.default_rng(1)
    draws = Counter(posterior.sample(rng).text for _ in range(500))
    assert distance({text: count / 500 for text, count in draws.items()}) < allowed * math.sqrt(n / 500)


def test_masking_alone_would_not_do() -> None:
    """The language is one where the masked law is far from the conditional one, which smc finds."""
    rows = {(): [4.0, 0.0, -9.0, -9.0]}

    def row(ids: Sequence[int]) -> np.ndarray:
        # "a" is liked first and then wants to go on with what the language forbids.
        if len(ids) == 1:
            return np.array(rows[()], np.float32)
        return np.array([0.0, -6.0, 4.0, -6.0] if ids[1] == 0 else [-6.0, 4.0, -6.0, 4.0], np.float32)

    model, spec = TableModel(LETTERS, row), constrain.choice(["ab", "bb"])
    masked = Counter(one.text for one in constrain.generate(model, "a", spec, n=300, seed=0))
    posterior = constrain.generate(model, "a", spec, method="smc", particles=400, seed=0)
    assert masked["ab"] > 280
    law = feasible_law(model, "a", ["ab", "bb"], {})
    exact = law["ab"] / sum(law.values())
    assert exact < 0.1
    assert posterior.expectation(lambda one: one.text == "ab") == pytest.approx(exact, abs=0.03)


# ------------------------------------------------------------------------------------ degenerate cases


def test_all_dead() -> None:
    """A language without mass gives ``log_normalizer`` -inf, and no answers but an error that says where."""
    row = np.array([5.0, 4.0, 0.0, 0.0], np.float32)
    model = TableModel(LETTERS, lambda ids: row)
    posterior = constrain.generate(
        model, "a", constrain.regex("[ab]bc"), method="smc", top_k=2, particles=3, seed=0
    )
    assert posterior.log_normalizer == -math.inf
    assert not any(one.is_complete for one in posterior.particles)
    for ask in (
        posterior.sample,
        posterior.map,
        lambda: posterior.expectation(len),
        lambda: posterior.weights,
    ):
        with pytest.raises(DeadEndError, match=r"All 3 particles have weight 0; .*step 2 after '[ab]b'"):
            ask()


def test_all_forbidden_by_the_potential() -> None:
    """A potential of ``-inf`` everywhere, early or at the end, kills all particles."""
    for early in (True, False):
        posterior = constrain.generate(
            model_of(),
            "a",
            constrain.regex("[ab]{2}"),
            method="smc",
            potential=lambda text, is_complete, early=early: -math.inf if is_complete or early else 0.0,
        )
        assert posterior.log_normalizer == -math.inf
        assert {len(one.text) for one in posterior.particles} == {1 if early else 2}


def test_certain_output() -> None:
    """A language of one member: every particle is it, with the model's probability as the weight."""
    model = model_of()
    posterior = constrain.generate(model, "a", constrain.choice(["abca"]), method="smc", seed=0)
    (mass,) = feasible_law(model, "a", ["abca"], {}).values()
    assert posterior.log_normalizer == pytest.approx(math.log(mass), rel=1e-6)
    assert posterior.weights == pytest.approx(np.full(8, 1 / 8))
    assert [one.log_probability for one in posterior.particles] == pytest.approx(
        [math.log(mass)] * 8, rel=1e-5
    )


# ------------------------------------------------------------------------------------- the population


def test_one_model_call_a_step_and_shared_texts() -> None:
    """A step is one call of the model, in which particles with equal texts share a line."""
    model = model_of()
    compiled = constrain.compile(constrain.regex(PATTERN), model.vocabulary)
    decoder = SmcDecoder(model, Sampling(), RandomStreams(3), options=SmcOptions(particles=40))
    population = decoder.start(Row(0, model.encode("ab"), compiled.matcher(), max_tokens=8))
    sizes = []
    while population.active:
        n_calls = len(model.calls)
        population, info = decoder.step(decoder.streams, population)
        sizes.append(info.effective_size)
        texts = {bytes(particle.row.text) for particle in population.active}
        assert len(model.calls) == n_calls + (1 if texts else 0)
        assert len(population.lines) == len(texts)
        if texts:
            assert model.calls[-1] == [1] * len(texts)
        for particle in population.active:
            ids = [*particle.row.prompt_ids, *particle.row.token_ids]
            assert np.array_equal(population.lines[particle.line], model.row(ids))
    assert sizes == population.effective_sizes and population.resampled_at
    again = decoder.run(Row(0, model.encode("ab"), compiled.matcher(), max_tokens=8))
    assert [one.row.token_ids for one in again.particles] == [
        one.row.token_ids for one in population.particles
    ]


def test_batches_and_seeds() -> None:
    """A batch gives a posterior a prompt, equal for equal seeds; other rows and seeds have other random numbers."""
    model, spec = model_of(), constrain.regex(r"[ab]{2,6}")

    def texts(prompt: Any, seed: int) -> Any:
        found = constrain.generate(model, prompt, spec, method="smc", seed=seed, max_tokens=9)
        return [[one.text for one in p.particles] for p in (found if isinstance(found, list) else [found])]

    both = texts(["ab", "ab"], 1)
    assert both == texts(["ab", "ab"], 1) and both[0] != both[1]
    assert texts("ab", 1) == both[:1] and texts("ab", 2) != both[:1]


def test_batch_potential() -> None:
    """A batch potential sees each text once a step, and gives what the function of one text gives."""
    seen: list[Sequence[str]] = []

    def together(texts: Sequence[str], are_complete: Sequence[bool]) -> list[float]:
        seen.append(texts)
        return [likes_b(text, complete) for text, complete in zip(texts, are_complete, strict=True)]

    options = {"method": "smc", "seed": 1, "max_tokens": LENGTH, "particles": 20}
    spec = constrain.regex(PATTERN)
    one = constrain.generate(model_of(), "b", spec, potential=likes_b, **options)
    two = constrain.generate(model_of(), "b", spec, potential=BatchPotential(together), **options)
    assert one.log_normalizer == two.log_normalizer
    assert [a.text for a in one.particles] == [b.text for b in two.particles]
    assert 0 < len(seen) <= LENGTH and max(map(len, seen)) < 20


@pytest.mark.parametrize(
    ("potential", "text"),
    [
        (lambda text, is_complete: math.nan, "returned nan at step 0 for the partial text"),
        (
            lambda text, is_complete: math.inf if is_complete else 0.0,
            "returned inf at step 2 for the complete",
        ),
        (lambda text, is_complete: "good", "returned 'good' at step 0"),
        (lambda text, is_complete: float(text[9]), "failed at step 0 on the partial text '.': IndexError"),
        (BatchPotential(lambda texts, are_complete: [0.0] * 7), "returned 7 values for"),
    ],
)
def test_faulty_potentials(potential: Any, text: str) -> None:
    """A potential that fails or returns no logarithm is reported with step and text."""
    with pytest.raises(BackendError, match=text):
        constrain.generate(
            model_of(), "a", constrain.regex("[ab]{2}"), method="smc", potential=potential, particles=3
        )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"temperature": 0.0}, "temperature=0.0: weighted methods"),
        ({"particles": 0}, "particles=0"),
        ({"ess_threshold": 1.5}, "ess_threshold=1.5"),
        ({"ess_threshold": "half"}, "ess_threshold='half'"),
        ({"resampling": "best"}, "resampling='best': expected one of multinomial, residual"),
        ({"proposal": "guess"}, "proposal='guess': expected one of mask, rejection"),
        ({"potential": 3}, "potential=3: expected a function"),
        ({"max_trials": 0}, "max_trials=0"),
        ({"n": 2}, "n=2: method='smc' returns one posterior"),
    ],
)
def test_faulty_options(options: dict[str, Any], text: str) -> None:
    """What the method cannot do is refused before the model is called."""
    model = model_of()
    with pytest.raises(OptionError, match=re.escape(text)):
        constrain.generate(model, "a", constrain.choice(["a"]), method="smc", **options)
    assert not model.calls


def test_posteriors_are_no_streams_and_no_values() -> None:
    """``stream`` and output functions give one output, so they refuse the method; cut outputs are no values."""
    model = TableModel([bytes([byte]) for byte in range(32, 127)])
    with pytest.raises(OptionError, match="stream"):
        constrain.stream(model, "a", constrain.choice(["a"]), method="smc")

    @constrain.output
    def number() -> int:
        """Say a number."""

    with pytest.raises(OptionError, match="posterior"):
        number(model=model, method="smc")
    with pytest.raises(DeadEndError, match="cut at step"):
        number(model=model, method="rejection", max_tokens=2, seed=0, logit_bias={ord("-") - 32: 30.0})


# ------------------------------------------------------------------------------------------ the picture


def test_weight_history() -> None:
    """One line of weights a step, of sum 1, that agrees with the effective sizes."""
    posterior = constrain.generate(
        model_of(),
        "ab",
        constrain.regex(PATTERN),
        method="smc",
        particles=6,
        ess_threshold=0.0,
        max_tokens=LENGTH,
        seed=2,
    )
    history = posterior.weight_history
    assert history.shape == (len(posterior.effective_sizes), 6)
    assert history.sum(axis=1) == pytest.approx(1.0)
    assert 1.0 / (history**2).sum(axis=1) == pytest.approx(posterior.effective_sizes)
    assert history[-1] == pytest.approx(posterior.weights)


def dead_after_one(text: str, is_complete: bool) -> float:
    return -math.inf if text else 0.0


@pytest.mark.parametrize("potential", [None, dead_after_one])
def test_plot(potential: Any, tmp_path: Path) -> None:
    """The picture shows the sizes, the resamplings and the weights, of dead populations too."""
    pytest.importorskip("matplotlib")
    posterior = constrain.generate(
        model_of(),
        "ab",
        constrain.regex(PATTERN),
        method="smc",
        particles=6,
        ess_threshold=1.0,
        potential=potential,
        max_tokens=LENGTH,
        seed=2,
    )
    path = tmp_path / "posterior.png"
    above, below = posterior.plot(path).axes[:2]
    assert path.read_bytes().startswith(b"\x89PNG")
    sizes, _, *resamplings = above.lines
    assert list(sizes.get_ydata()) == posterior.effective_sizes
    assert [line.get_xdata()[0] - 1 for line in resamplings] == posterior.resampled_at
    (image,) = below.collections
    assert np.array_equal(image.get_array().reshape(6, -1), posterior.weight_history.T)


def test_plot_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    posterior = constrain.generate(model_of(), "ab", constrain.regex("a"), method="smc", max_tokens=LENGTH)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BackendError, match=r"constrain-lm\[plot\]"):
        posterior.plot()
