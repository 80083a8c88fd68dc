"""Members drawn at random, judged by others: the direction that tests of given documents can't see."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from jsonschema import validators

import constrain

SCHEMAS = [
    {"type": "object", "additionalProperties": {"type": "null"}},
    {"type": "object", "minProperties": 1},
    {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]},
    {
        "type": "object",
        "properties": {"a": {}},
        "required": ["z"],
        "additionalProperties": {"type": "integer"},
    },
    {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "boolean"}, "minItems": 2},
    {"type": "number", "minimum": -1.5, "exclusiveMaximum": 20.25},
    {"anyOf": [{"type": "integer", "minimum": 7}, {"type": "string", "pattern": "^[ab]+$", "maxLength": 4}]},
]


def check(schema: object, rng: np.random.Generator, n: int) -> None:
    """Each sample is JSON that a validator takes."""
    spec = constrain.json_schema(schema)
    kind = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    for _ in range(n):
        text = spec.sample(rng, max_bytes=3000)
        assert spec.matches(text)
        document = json.loads(text)
        if not _has_infinity(document):
            validator.validate(document)


def _has_infinity(value: object) -> bool:
    """Is there a number that only Python's floats can't hold? The validator computes with these."""
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    if isinstance(value, list):
        return any(map(_has_infinity, value))
    return isinstance(value, float) and math.isinf(value)


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_samples_are_valid(schema: dict[str, object]) -> None:
    """Whatever a schema's spec writes is JSON that a validator takes."""
    check(schema, np.random.default_rng(0), 30)


def test_an_object_has_no_comma_before_its_end() -> None:
    """An object of additional properties alone doesn't end behind a comma."""
    spec = constrain.json_schema(SCHEMAS[0])
    assert [spec.matches(t) for t in ('{"a":null,}', "{}", '{"a":null,"b":null}')] == [False, True, True]


def test_samples_of_real_schemas_are_valid(shared: Path) -> None:
    """The same for real schemas, each read in its own draft."""
    with gzip.open(shared / "data" / "maskbench_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rng = np.random.default_rng(0)
    n_built = 0
    for row in random.Random(9).sample(rows, 150):
        try:
            check(row["schema"], rng, 2)
            n_built += 1
        except constrain.UnsupportedFeatureError:
            continue
    assert n_built > 100
