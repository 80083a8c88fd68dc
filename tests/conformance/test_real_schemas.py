"""Real schemas with their valid and invalid documents (MaskBench's development split)."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from constrain.grammars.errors import ConstrainError, UnsupportedFeatureError
from tests.reference.grammar import ReferenceGrammar
from tests.reference.json_documents import in_declared_order, language

SAMPLE = 200
LARGEST = 10_000  # characters of a schema or document; the slow matcher takes seconds for larger ones


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "data" / "maskbench_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    found = [row for row in found if len(json.dumps(row)) < LARGEST]
    random.Random(20).shuffle(found)
    return found[:SAMPLE]


def takes(matcher: ReferenceGrammar, document: Any) -> bool:
    return matcher.accepts(json.dumps(document, ensure_ascii=False).encode())


def test_real_documents_get_the_right_answer(rows: list[dict[str, Any]]) -> None:
    """No invalid document is taken; nearly every valid one is, in declared order; most schemas are built."""
    built = 0
    wrong, missed, refused = [], [], []
    n_valid = 0
    for row in rows:
        try:
            matcher = language(row["schema"])
        except UnsupportedFeatureError:
            continue
        except ConstrainError as error:
            refused.append((row["name"], str(error)))
            continue
        built += 1
        for test in row["tests"]:
            is_taken = takes(matcher, test["data"])
            if not test["valid"]:
                wrong += [row["name"]] if is_taken else []
                continue
            n_valid += 1
            if not is_taken and not takes(matcher, in_declared_order(test["data"], row["schema"])):
                missed.append(row["name"])
    assert wrong == []
    assert refused == []
    assert len(missed) <= 0.01 * n_valid
    assert built >= 0.8 * len(rows)
