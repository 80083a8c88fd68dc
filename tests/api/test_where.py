"""`Spec.where`: what it means offline, and that decoders enforce it exactly.

Where only statistics can tell, seeds are fixed and a mean may be 4.5 standard errors off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.errors import (
    ArtefactError,
    CheckError,
    DeadEndError,
    LimitExceededError,
    OptionError,
    UnsupportedFeatureError,
)
from tests.api.table_model import TableModel
from tests.api.toy_laws import LETTERS, assert_mean, feasible_law, members

PATTERN = "[abc]{1,4}"
LENGTH = 5


def is_even(text: str) -> bool:
    return text.count("a") == text.count("b")


def is_balanced_so_far(text: str) -> bool:
    return text.count("a") >= text.count("b")


def never(text: str) -> bool:
    return False


@pytest.fixture
def model() -> TableModel:
    return TableModel(LETTERS)


class TestLanguage:
    """Membership and the operators."""

    def test_members_are_those_that_the_function_takes(self) -> None:
        """``where`` keeps exactly the members for which the function holds, also inside ``|`` and ``+``."""
        spec = constrain.regex(PATTERN).where(is_even)
        either = spec | constrain.regex("aa?")
        after = constrain.regex("a*") + spec
        for n in range(6):
            for text in map("".join, itertools.product("abc", repeat=n)):
                own = 1 <= n <= 4 and is_even(text)
                assert spec.matches(text) == spec.explain(text).ok == own
                assert either.matches(text) == (own or text in ("a", "aa"))
                splits = ((text[:k], text[k:]) for k in range(n + 1))
                expected = any(not u.strip("a") and 1 <= len(v) <= 4 and is_even(v) for u, v in splits)
                assert after.matches(text) == after.explain(text).ok == expected

    def test_token_checks_hold_of_every_beginning(self) -> None:
        """A text is a member iff the function holds of it and of all its beginnings."""
        spec = constrain.regex("[ab]*").where(is_balanced_so_far, when="token")
        for n in range(7):
            for text in map("".join, itertools.product("ab", repeat=n)):
                refused = [end for end in range(n + 1) if not is_balanced_so_far(text[:end])]
                found = spec.explain(text)
                assert spec.matches(text) == found.ok == (not refused)
                assert found.ok or found.offset == refused[0] - 1

    def test_values(self) -> None:
        """``when="value"`` gets JSON data; several checks all count; the options and the text are named."""
        spec = constrain.json_schema({"type": "array", "items": {"type": "integer"}})
        spec = spec.where(lambda value: sum(value) == 6, when="value").where(lambda text: "5" not in text)
        assert spec.matches("[1, 2, 3]")
        assert not spec.matches("[1, 5]")
        assert not spec.matches("[1, 2]")
        assert repr(spec).endswith(".where(<lambda>, when='value').where(<lambda>)")

    def test_identity(self) -> None:
        """Specs are equal iff they hold the same function; methods count as the same on the same object."""

        class Table:
            def has(self, text: str) -> bool:
                return bool(text)

        table, base = Table(), constrain.regex("a+")
        assert base.where(table.has) == base.where(table.has)
        assert hash(base.where(table.has)) == hash(base.where(table.has))
        assert base.where(table.has) != base.where(Table().has)
        assert base.where(is_even) != base
        assert base.where(is_even) != base.where(is_even, when="token")

    def test_samples_are_members(self) -> None:
        """Samples satisfy the check; one that nothing satisfies is given up."""
        spec = constrain.regex("[ab]{0,12}").where(is_balanced_so_far, when="token").where(is_even)
        rng = np.random.default_rng(0)
        assert all(spec.matches(spec.sample(rng)) for _ in range(20))
        with pytest.raises(LimitExceededError, match="refuse nearly all"):
            constrain.regex("a").where(never).sample(rng)

    def test_never_on_disk(self, tmp_path: Path, model: TableModel) -> None:
        """A spec that holds a function is not saved, nor is what it is part of."""
        spec = constrain.regex(PATTERN).where(is_even)
        for one in (spec, spec | constrain.regex("a"), constrain.regex("a") + spec):
            with pytest.raises(ArtefactError):
                constrain.compile(one, model.vocabulary).save(tmp_path / "spec")

    def test_errors(self) -> None:
        """Wrong arguments, functions that raise or answer nothing, and places where checks can't go."""
        spec = constrain.regex("a+")
        with pytest.raises(OptionError, match="when='late'"):
            spec.where(is_even, when="late")
        with pytest.raises(OptionError, match="expected a function"):
            spec.where("even")  # type: ignore[arg-type]
        with pytest.raises(CheckError, match="ZeroDivisionError"):
            spec.where(lambda text: 1 / 0 > 0).matches("a")
        with pytest.raises(CheckError, match="returned None for the text 'a'"):
            spec.where(lambda text: None).matches("a")  # type: ignore[arg-type,return-value]
        with pytest.raises(CheckError, match="refuses the empty text"):
            spec.where(lambda text: len(text) > 2, when="token").matches("aaa")
        with pytest.raises(UnsupportedFeatureError, match="embed"):
            constrain.grammar("start: %given", syntax="lark", embed={"given": spec.where(is_even)})


CHECKS: list[tuple[str, Callable[[Any], bool], str, Callable[[str], bool]]] = [
    ("complete", is_even, "complete", is_even),
    (
        "token",
        is_balanced_so_far,
        "token",
        lambda text: all(is_balanced_so_far(text[:end]) for end in range(len(text) + 1)),
    ),
    ("value", is_even, "value", is_even),
]


@pytest.mark.parametrize(("function", "when", "holds"), [c[1:] for c in CHECKS], ids=[c[0] for c in CHECKS])
class TestWeights:
    """Outputs satisfy the check; weights estimate the probability of the language, exactly enumerated."""

    @pytest.mark.parametrize("method", ["local", "rejection"])
    @pytest.mark.parametrize("options", [{}, {"top_k": 2, "temperature": 1.5}], ids=["plain", "truncated"])
    def test_one_by_one(
        self,
        model: TableModel,
        method: str,
        options: dict[str, Any],
        function: Callable[[Any], bool],
        when: str,
        holds: Callable[[str], bool],
    ) -> None:
        """The weighted frequency of every member that is not too rare is its probability."""
        spec = constrain.regex(PATTERN).where(function, when=when)
        law = feasible_law(model, "a", [text for text in members(PATTERN, LENGTH) if holds(text)], options)
        results = [
            constrain.generate(model, "a", spec, method=method, max_tokens=LENGTH, seed=seed, **options)
            for seed in range(400)
        ]
        assert all(holds(r.text) for r in results if r.is_complete)
        assert method == "rejection" or all(r.is_complete for r in results)
        weights = np.exp([r.log_weight for r in results])
        assert_mean(weights, sum(law.values()), precise=False)
        for text, probability in law.items():
            if probability < 0.03:
                continue
            assert_mean(
                [w * (r.text == text) for w, r in zip(weights, results, strict=True)],
                probability,
                precise=False,
            )
        assert options or sum(r.stats.check_failures for r in results) > 0

    @pytest.mark.parametrize("proposal", ["mask", "rejection"])
    def test_smc(
        self,
        model: TableModel,
        proposal: str,
        function: Callable[[Any], bool],
        when: str,
        holds: Callable[[str], bool],
    ) -> None:
        """The normaliser is unbiased, and no particle of positive weight fails the check."""
        spec = constrain.regex(PATTERN).where(function, when=when)
        law = feasible_law(model, "a", [text for text in members(PATTERN, LENGTH) if holds(text)], {})
        found = [
            constrain.generate(
                model, "a", spec, method="smc", particles=6, proposal=proposal, max_tokens=LENGTH, seed=seed
            )
            for seed in range(80)
        ]
        assert all(holds(p.text) for post in found for p in post.particles if p.log_weight > -math.inf)
        assert_mean([math.exp(post.log_normalizer) for post in found], sum(law.values()), precise=False)


class TestSearch:
    """What ``local`` does where checks refuse."""

    def test_finds_the_only_member(self, model: TableModel) -> None:
        """Whatever the model prefers, the one text that passes is found, at every temperature."""
        for text in ("abca", "cccc", "b"):
            spec = constrain.regex(PATTERN).where(text.__eq__)
            for temperature in (0.0, 0.3, 1.0):
                result = constrain.generate(
                    model, "a", spec, max_tokens=LENGTH, temperature=temperature, seed=1
                )
                assert result.text == text
                assert result.is_complete
                assert (result.log_weight is None) == (temperature == 0.0)

    def test_greedy_takes_the_best_where_checks_allow(self, model: TableModel) -> None:
        """At temperature 0 a check that holds changes nothing."""
        spec = constrain.regex(PATTERN)
        plain = constrain.generate(model, "a", spec, max_tokens=LENGTH, temperature=0)
        checked = constrain.generate(
            model, "a", spec.where(lambda text: True), max_tokens=LENGTH, temperature=0
        )
        assert checked.text == plain.text
        assert checked.log_probability == pytest.approx(plain.log_probability)

    def test_nothing_is_wanted(self, model: TableModel) -> None:
        """If every output is refused, the search says so, once it knows, and keeps what it had."""
        spec = constrain.regex(PATTERN).where(never)
        with pytest.raises(DeadEndError, match="refuse every output that fits") as caught:
            constrain.generate(model, "a", spec, max_tokens=LENGTH)
        assert caught.value.text
        assert caught.value.result.is_complete is False
        assert caught.value.result.stats.check_calls == len(members(PATTERN, LENGTH))
        with pytest.raises(DeadEndError, match="max_checks=20"):
            constrain.generate(model, "a", spec, max_tokens=LENGTH, max_checks=20)

    def test_log_probability_is_that_of_the_output(self, model: TableModel) -> None:
        """After going back, the probability is that of the tokens that are left."""
        spec = constrain.regex(PATTERN).where(lambda text: text.endswith("ba"))
        for seed in range(5):
            result = constrain.generate(model, "a", spec, max_tokens=LENGTH, seed=seed)
            law = feasible_law(model, "a", [result.text], {})
            assert result.log_probability == pytest.approx(math.log(law[result.text]), abs=1e-4)
            assert len(result.stats.feasible_mass) == len(result.token_ids)

    def test_batches_streams_prefix_and_stop(self, model: TableModel) -> None:
        """Rows with and without checks go together; streams end with the same result; stops are checked too."""
        spec = constrain.regex(PATTERN).where(is_even)
        outputs = [spec, constrain.regex(PATTERN), spec]
        found = constrain.generate(model, ["a", "b", "c"], outputs, max_tokens=LENGTH, seed=3)
        assert is_even(found[0].text)
        assert is_even(found[2].text)
        *parts, last = constrain.stream(model, "a", spec, max_tokens=LENGTH, seed=3)
        assert last.text == constrain.generate(model, "a", spec, max_tokens=LENGTH, seed=3).text
        assert all(not part.is_complete for part in parts)
        many = constrain.generate(model, "a", spec, max_tokens=LENGTH, seed=3, n=20, prefix="ab", stop="b")
        assert all(one.text.startswith("ab") and is_even(one.text) for one in many)
        with pytest.raises(CheckError, match="no text that begins with"):
            constrain.generate(
                model, "a", constrain.regex(PATTERN).where(is_balanced_so_far, when="token"), prefix="abb"
            )

    def test_long_tokens(self) -> None:
        """A check of beginnings is asked inside tokens too, and forced text is checked."""
        model = TableModel([b"a", b"b", b"ab", b"ba", b"abba"])
        spec = constrain.regex("[ab]{4}").where(is_balanced_so_far, when="token").where(is_even)
        texts = {
            constrain.generate(model, "a", spec, seed=seed, max_tokens=9, temperature=5.0).text
            for seed in range(60)
        }
        assert texts == {"abab", "aabb"}
        fixed = constrain.regex("aabb|bbaa|abab").where(lambda text: not text.startswith("aab"), when="token")
        texts = {
            constrain.generate(model, "a", fixed, seed=seed, max_tokens=9, temperature=5.0).text
            for seed in range(40)
        }
        assert texts == {"bbaa", "abab"}


HOSTILE: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (lambda text: 1 / 0, "complete"),
    "raises inside": (lambda text: 1 / 0 if len(text) > 2 else True, "token"),
    "None": (lambda text: None, "complete"),
    "NaN": (lambda text: math.nan, "complete"),
    "an array": (lambda text: np.array([True]), "complete"),
    "never": (never, "complete"),
    "stops short": (lambda text: len(text) < 2, "token"),
    "numpy": (lambda text: np.bool_("b" in text), "complete"),
    "one of thousands": (lambda text: text == "abcabcab", "complete"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "options",
    [
        {"max_checks": 40},
        {"max_checks": 40, "temperature": 0.0},
        {"max_checks": 40, "stop": ["b"], "prefix": "a"},
        {"max_checks": 40, "n": 3, "batch_size": 2},
        {"method": "rejection"},
        {"method": "smc", "particles": 3},
        {"method": "aligned", "max_attempts": 20},
        {"method": "mcmc", "steps": 4, "max_attempts": 10},
        {"method": "beam", "temperature": 0.0},
    ],
    ids=lambda options: options.get("method", "-".join(["local", *options])),
)
def test_hostile_checks(model: TableModel, name: str, options: dict[str, Any]) -> None:
    """Whatever a check does, an output is a member or said to be none, or the error says what happened."""
    check, when = HOSTILE[name]
    spec = constrain.regex("[abc]{1,8}").where(check, when=when)
    try:
        found = constrain.generate(model, "aa", spec, max_tokens=9, seed=1, **options)
    except (CheckError, DeadEndError) as error:
        assert "check" in str(error) or "max_attempts" in str(error)
        assert name not in ("numpy", "stops short")
        assert isinstance(error, CheckError) == (
            name in ("raises", "raises inside", "None", "NaN", "an array")
        )
        return
    for result in found if isinstance(found, list) else getattr(found, "particles", [found]):
        if result.is_complete:
            assert spec.matches(result.text)
        else:
            assert result.log_weight == -math.inf or options["method"] == "smc"


def test_a_check_that_changes_its_mind(model: TableModel) -> None:
    """One that refuses what it took before is told so, where a method asks again."""
    asked: dict[str, int] = {}

    def check(text: str) -> bool:
        asked[text] = asked.get(text, 0) + 1
        return len(text) < 2 or asked[text] < 2

    spec = constrain.regex("[abc]{1,4}").where(check, when="token")
    with pytest.raises(CheckError, match="took before"):
        constrain.generate(model, "aa", spec, method="mcmc", steps=30, max_tokens=5, seed=1)


def test_a_step_back_reads_nothing_again(model: TableModel) -> None:
    """The prompt is read once, for all rows of a batch; results are those of rows on their own."""
    read: list[int] = []
    start = model.start

    def counted(prompts: Any) -> Any:
        read.append(len(prompts))
        return start(prompts)

    model.start = counted  # type: ignore[method-assign]
    spec = constrain.regex(PATTERN).where(lambda text: text in ("abca", "ccb"))
    alone = [constrain.generate(model, "aa", spec, max_tokens=LENGTH, seed=1, n=4, batch_size=1)]
    assert read == [1] * 4
    read.clear()
    together = constrain.generate(model, "aa", spec, max_tokens=LENGTH, seed=1, n=4, batch_size=4)
    assert read == [1]
    assert sum(one.stats.backtracks for one in together) > 0
    for one, other in zip(alone[0], together, strict=True):
        assert one.token_ids == other.token_ids
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-9)
        assert one.stats.check_calls == other.stats.check_calls
