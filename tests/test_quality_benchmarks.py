"""The items of the quality benchmarks are sound: wanted answers are in the spec, and count as right; figures are right."""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "quality"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs a source checkout")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that imports a script by its name."""
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(FOLDER) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_arithmetic(load: Any) -> None:
    """Answers fit the schema."""
    module = load("arithmetic")
    rng = random.Random(3)
    problems = [module.problem(rng) for _ in range(200)]
    assert all(module.SPEC.matches(json.dumps({"answer": answer})) for _, answer in problems)
    assert len({text for text, _ in problems}) > 150


def test_sql(load: Any) -> None:
    """The wanted queries are in the grammar, and the database answers each with something."""
    module = load("posterior_accuracy")
    words = {"city": "Bern", "name": "Anna", "status": "paid", "n": 30}
    for _, query in module.QUESTIONS:
        assert module.SQL.matches(query.format(**words))
        assert module.answers(query.format(**words))
    assert module.answers("SELECT city FROM orders;") is None
    items = module.sql_items(16, 0)
    assert not items[0].is_right("SELECT name FROM customers;") and items[7].is_right(
        "SELECT name FROM customers;"
    )


def test_patterns(load: Any) -> None:
    """Each pattern has members that are right, and members that aren't."""
    module = load("posterior_accuracy")
    for item in module.pattern_items(20, 0):
        found = item.spec.sample(np.random.default_rng(0))
        first = item.prompt[1]["content"].split("the letter ")[1][0]
        assert item.spec.matches(found) and item.is_right(first + found[1:])
        assert not item.is_right("z" + found[1:])


def test_function_calls(load: Any, shared: Path) -> None:
    """The document itself is a member and right; a changed one isn't right; the request has its values."""
    module = load("function_calls")
    items = module.items_of(shared / "data" / "maskbench_dev.jsonl.gz", 12, 0)
    assert len(items) == 12
    assert items[0].prompt == module.items_of(shared / "data" / "maskbench_dev.jsonl.gz", 1, 0)[0].prompt
    for item in items:
        # The only document that is right stands in the closure; see that it is a member.
        (expected,) = item.is_right.__defaults__
        assert item.spec.matches(json.dumps(expected)) and item.is_right(json.dumps(expected))
        assert not item.is_right("{}") and not item.is_right(json.dumps({**expected, "more": 1}))
        assert all(name in item.prompt[1]["content"] for name in expected)
    assert module.same({"a": [1.0]}, {"a": [1]}) and not module.same({"a": True}, {"a": 1})


def test_figures(load: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Intervals hold the share, and the table names every method."""
    common = load("common")
    assert common.wilson(0.5, 100) == pytest.approx((0.404, 0.596), abs=1e-3)
    assert common.wilson(0.0, 10)[0] == pytest.approx(0.0) and common.wilson(1.0, 10)[1] == pytest.approx(1.0)
    mean, low, high = common.paired([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])
    assert low <= mean == 0.5 <= high
    answers = [
        common.Answer(1.0, right, -mass, 9, 0.1, "x") for right, mass in ((1.0, 1), (0.0, 5), (1.0, 2))
    ]
    common.report({"local": answers, "other": answers[::-1]}, "local", "local")
    printed = capsys.readouterr().out
    assert "n = 3" in printed and "other" in printed and "0.67" in printed
