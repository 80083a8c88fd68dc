"""Real schemas with their valid and invalid documents (MaskBench's development split)."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import constrain
from constrain.errors import ConstrainError, UnsupportedFeatureError
from tests.reference.json_documents import in_declared_order, language

LARGEST = 20_000  # characters of a schema with its documents


class Tally(NamedTuple):
    built: int
    n_valid: int
    missed: list[str]
    wrong: list[str]
    failed: list[tuple[str, str]]


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "data" / "maskbench_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    found = [row for row in found if len(json.dumps(row)) < LARGEST]
    random.Random(20).shuffle(found)
    return found


def run(rows: list[dict[str, Any]], matcher_of: Callable[[Any], Callable[[str], bool]]) -> Tally:
    """Match every document of ``rows``; a valid one may also be written in declared order."""
    built = n_valid = 0
    missed, wrong, failed = [], [], []
    for row in rows:
        try:
            takes = matcher_of(row["schema"])
        except UnsupportedFeatureError:
            continue
        except ConstrainError as error:
            failed.append((row["name"], str(error)))
            continue
        built += 1
        for test in row["tests"]:
            is_taken = takes(json.dumps(test["data"], ensure_ascii=False))
            if not test["valid"]:
                wrong += [row["name"]] if is_taken else []
                continue
            n_valid += 1
            if not is_taken:
                ordered = in_declared_order(test["data"], row["schema"])
                if not takes(json.dumps(ordered, ensure_ascii=False)):
                    missed.append(row["name"])
    return Tally(built, n_valid, missed, wrong, failed)


def by_reference(schema: Any) -> Callable[[str], bool]:
    matcher = language(schema)
    return lambda text: matcher.accepts(text.encode())


def by_engine(schema: Any) -> Callable[[str], bool]:
    return constrain.json_schema(schema).matches


@pytest.mark.parametrize(("matcher_of", "n_rows"), [(by_reference, 50), (by_engine, 500)])
def test_real_documents_get_the_right_answer(
    rows: list[dict[str, Any]], matcher_of: Callable[[Any], Callable[[str], bool]], n_rows: int
) -> None:
    """No invalid document is taken; nearly every valid one is, in declared order; most schemas are built."""
    tally = run(rows[:n_rows], matcher_of)
    assert tally.wrong == []
    assert tally.failed == []
    assert len(tally.missed) <= 0.01 * tally.n_valid
    assert tally.built >= 0.96 * n_rows
