"""The official JSON-Schema-Test-Suite: every test of a schema that is built gets the right answer.

Objects are tested in every order of their keys, since the language has the declared one, or any.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import constrain
from constrain.grammars.errors import EmptyLanguageError, UnsupportedFeatureError
from tests.reference.json_documents import language, spellings

# Tests whose answer is another one on purpose.
EXPECTED_DIFFERENCES = {
    # The suite's own servers hold these metaschemas; an unknown $schema is read as the newest draft.
    "schema that uses custom metaschema with with no validation vocabulary",
    "schema that uses custom metaschema with format-assertion: false",
    "schema that uses custom metaschema with format-assertion: true",
}
# Formats are parts of what the standard allows: valid texts may be refused, never invalid ones taken.
PARTIAL_FORMATS = {"date-time", "time", "hostname", "idn-hostname", "idn-email", "regex", "ecmascript-regex"}


class Tally(NamedTuple):
    right: int
    refused: int
    wrong: list[tuple[str, str, bool]]


def run(folder: Path, draft: str, *, formats: bool, property_order: str = "schema") -> Tally:
    """Run every test file of ``folder``."""
    registry = remotes(next(one for one in folder.parents if one.name == "json_schema_test_suite"))
    right = refused = 0
    wrong: list[tuple[str, str, bool]] = []
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            answers = answers_of(group, draft, registry, formats=formats, property_order=property_order)
            if answers is None:
                refused += len(group["tests"])
                continue
            for test, answer in zip(group["tests"], answers, strict=True):
                if answer == test["valid"]:
                    right += 1
                elif group["description"] not in EXPECTED_DIFFERENCES:
                    wrong.append((path.stem, f"{group['description']}: {test['description']}", test["valid"]))
    return Tally(right, refused, wrong)


def remotes(suite: Path) -> dict[str, Any]:
    """Return the documents that the suite's server would give, by URI."""
    folder = suite / "remotes"
    return {
        f"http://localhost:1234/{path.relative_to(folder).as_posix()}": json.loads(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.json"))
    }


def answers_of(
    group: dict[str, Any], draft: str, registry: dict[str, Any], *, formats: bool, property_order: str
) -> list[bool] | None:
    """Return the answers to the tests of a group, or ``None`` if its schema is refused."""
    tests = group["tests"]
    options: dict[str, Any] = {
        "draft": draft,
        "formats": formats,
        "integers": "any",
        "whitespace": "compact",
        "registry": registry,
        "property_order": property_order,
    }
    try:
        # Patterns of formats are too large for the reference matcher.
        if formats:
            takes = constrain.json_schema(group["schema"], **options).matches
        else:
            matcher = language(group["schema"], **options)
            takes = lambda text: matcher.accepts(text.encode())
    except EmptyLanguageError:
        return [False for _ in tests]
    except UnsupportedFeatureError:
        return None
    combine = any if property_order == "schema" else all
    return [combine(takes(text) for text in spellings(test["data"])) for test in tests]


@pytest.mark.parametrize(("draft", "least"), [("draft2020-12", 1230), ("draft7", 885)])
def test_required_tests_are_right_or_refused(shared: Path, draft: str, least: int) -> None:
    """No required test gets a wrong answer, and as many as before get a right one."""
    tally = run(shared / "data" / "json_schema_test_suite" / draft, draft, formats=False)
    assert tally.wrong == []
    assert tally.right >= least


@pytest.mark.parametrize(("draft", "least"), [("draft2020-12", 1235), ("draft7", 890)])
def test_required_tests_are_right_in_any_order(shared: Path, draft: str, least: int) -> None:
    """With property_order="any" every order of the keys is taken, or none."""
    folder = shared / "data" / "json_schema_test_suite" / draft
    tally = run(folder, draft, formats=False, property_order="any")
    assert tally.wrong == []
    assert tally.right >= least


@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_formats_take_nothing_invalid(shared: Path, draft: str) -> None:
    """No format takes a text its standard refuses; most take all that it allows."""
    folder = shared / "data" / "json_schema_test_suite" / draft / "optional" / "format"
    tally = run(folder, draft, formats=True)
    assert [test for test in tally.wrong if not test[2] or test[0] not in PARTIAL_FORMATS] == []
    assert tally.right >= 500


def test_optional_tests_are_right_or_refused(shared: Path) -> None:
    """No optional test gets a wrong answer."""
    folder = shared / "data" / "json_schema_test_suite" / "draft2020-12" / "optional"
    assert run(folder, "draft2020-12", formats=False).wrong == []
