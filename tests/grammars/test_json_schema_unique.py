"""Arrays of different items, where the items are few: by brute force."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.errors import UnsupportedFeatureError

PAIR = {
    "type": "object",
    "properties": {"a": {"enum": [1, "x"]}, "b": {"type": "boolean"}},
    "required": ["a"],
}
CLOSED = {**PAIR, "additionalProperties": False}
VALUES: list[Any] = [
    *(None, True, 1, "x", [], [True], [False], [True, False], [[]], {}, {"a": 1}, {"a": "x"}, {"b": True}),
    *({"a": 1, "b": True}, {"a": 1, "b": False}, {"a": 2}, {"a": 1, "c": 1}, 2, 3),
]
ITEMS: list[Any] = [
    CLOSED,
    {"type": ["array", "null"], "items": {"type": "boolean"}, "maxItems": 2},
    {"anyOf": [CLOSED, {"type": "integer", "minimum": 1, "maximum": 3}, {"const": "x"}]},
    {"type": "array", "maxItems": 1, "items": {"type": "array", "maxItems": 0}},
    {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "additionalProperties": False,
        "not": {"required": ["b"]},
    },
    {"allOf": [CLOSED, {"properties": {"b": {"const": True}}, "minProperties": 2}]},
]


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("items", ITEMS, ids=json.dumps)
def test_different_items_that_are_few(items: Any, order: str) -> None:
    """All arrays of up to two items are answered as a validator answers them."""
    schema = {"type": "array", "items": items, "uniqueItems": True}
    spec = constrain.json_schema(schema, property_order=order)
    assert spec.checks == ()
    validator = jsonschema.Draft202012Validator(schema)
    for n in range(3):
        for values in itertools.product(VALUES, repeat=n):
            assert spec.matches(json.dumps(values)) == validator.is_valid(list(values)), values


def test_many_items_need_a_check() -> None:
    """Where there may be any number of values, that some are equal is no matter of grammars."""
    schema = {"type": "array", "items": PAIR, "uniqueItems": True}
    with pytest.raises(UnsupportedFeatureError, match="uniqueItems"):
        constrain.json_schema(schema)
    spec = constrain.json_schema(schema, unsupported="check")
    assert not spec.matches('[{"a":1,"c":1},{"a":1,"c":1}]')
    assert spec.matches('[{"a":1,"c":1},{"a":1,"c":2}]')


def test_hundreds_of_constants() -> None:
    """Enumerations of objects are followed as sets."""
    schema = {"items": {"enum": [{"i": i} for i in range(300)]}, "uniqueItems": True, "type": "array"}
    spec = constrain.json_schema(schema)
    assert spec.matches(json.dumps([{"i": i} for i in range(300)]))
    assert not spec.matches(json.dumps([{"i": 1}, {"i": 2}, {"i": 1}]))
