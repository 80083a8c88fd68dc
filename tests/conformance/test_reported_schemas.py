"""Small schemas and types in the spirit of what users of such libraries reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.types import type_schema
from tests.reference.json_documents import language

LONGEST = 1500  # characters of a text; the slow matcher takes seconds for longer ones
REFUSED = {"uniqueItems"}


def cases(shared: Path, kind: str) -> list[dict[str, Any]]:
    with open(shared / "cases" / "user_reports.json", encoding="utf-8") as file:
        return [case for case in json.load(file) if case["kind"] == kind]


def wrong_answers(case: dict[str, Any], schema: Any) -> list[str]:
    matcher = language(schema)
    texts = [(text, True) for text in case["accepts"]] + [(text, False) for text in case["rejects"]]
    return [
        text
        for text, expected in texts
        if len(text) <= LONGEST and matcher.accepts(text.encode()) != expected
    ]


def test_reported_schemas_get_the_right_answers(shared: Path) -> None:
    """Every text gets the right answer, unless the schema has a keyword that is refused."""
    right = 0
    for case in cases(shared, "json_schema"):
        try:
            assert wrong_answers(case, case["spec"]) == [], case["topic"]
            right += 1
        except UnsupportedFeatureError as error:
            assert error.feature in REFUSED, case["topic"]
    assert right >= 27


def test_reported_types_get_the_right_answers(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text of a Python type gets the right answer."""
    for case in cases(shared, "python_type"):
        module = ModuleType("reported_case")
        monkeypatch.setitem(sys.modules, "reported_case", module)
        exec(compile(case["spec"], "<case>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        assert wrong_answers(case, type_schema(module.T).schema) == [], case["topic"]
