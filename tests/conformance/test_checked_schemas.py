"""``unsupported="check"``: every schema is taken, and every answer is right."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

import constrain
from constrain.errors import EmptyLanguageError
from constrain.grammars.json_schema.evaluate import Evaluator, exact_copy
from constrain.grammars.json_schema.options import DRAFTS, SchemaOptions
from constrain.grammars.limits import Limits
from tests.conformance.test_json_schema_suite import EXPECTED_DIFFERENCES, remotes
from tests.reference.json_documents import in_declared_order, spellings


@pytest.mark.parametrize(("draft", "n_tests"), [("draft2020-12", 1298), ("draft7", 927)])
def test_every_required_test_is_right(shared: Path, draft: str, n_tests: int) -> None:
    """Specs and the evaluator of values give the suite's answers to all required tests; nothing is refused."""
    suite = shared / "data" / "json_schema_test_suite"
    documents = remotes(suite)
    registry = SchemaOptions(registry=documents).registry
    wrong: list[tuple[str, str, str]] = []
    n_right = 0
    for path in sorted((suite / draft).glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            schema = group["schema"]
            evaluator = Evaluator(schema, DRAFTS[draft], registry, has_formats=False, limits=Limits())
            try:
                spec = constrain.json_schema(
                    schema,
                    draft=draft,
                    formats=False,
                    integers="any",
                    unsupported="check",
                    registry=documents,
                )
                takes = spec.matches
            except EmptyLanguageError:
                takes = {}.__contains__
            for test in group["tests"]:
                by_value = evaluator.fault(exact_copy(test["data"])) is None
                by_text = any(takes(text) for text in spellings(test["data"]))
                if by_value == by_text == test["valid"]:
                    n_right += 1
                elif group["description"] not in EXPECTED_DIFFERENCES:
                    wrong.append((path.stem, group["description"], test["description"]))
    assert wrong == []
    assert n_right >= n_tests


def test_real_schemas_that_are_checked(shared: Path) -> None:
    """Of schemas with the hardest keywords none is refused; where a check decides, all documents are answered right."""
    with gzip.open(shared / "data" / "maskbench_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if len(json.dumps(row)) < 20_000 and _is_hard(row["schema"])]
    random.Random(4).shuffle(rows)
    n_checked = 0
    wrong = []
    for row in rows[:400]:
        try:
            spec = constrain.json_schema(row["schema"], unsupported="check")
        except EmptyLanguageError:
            wrong += [(row["name"], True) for test in row["tests"] if test["valid"]]
            continue
        n_checked += bool(spec.checks)
        for test in row["tests"] if spec.checks else ():
            texts = [json.dumps(test["data"]), json.dumps(in_declared_order(test["data"], row["schema"]))]
            if any(map(spec.matches, texts)) != test["valid"]:
                wrong.append((row["name"], test["valid"]))
    assert wrong == []
    assert n_checked >= 4


def _is_hard(schema: object) -> bool:
    text = json.dumps(schema)
    return "uniqueItems" in text or '"not"' in text
