"""``$recursiveRef`` that may lead to several places: answers as another validator gives them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import constrain

DRAFT = "https://json-schema.org/draft/2019-09/schema"
TREE = {
    "$id": "tree",
    "$recursiveAnchor": True,
    "type": "object",
    "properties": {"v": {"type": "integer"}, "c": {"type": "array", "items": {"$recursiveRef": "#"}}},
}
CLOSED = {key: value for key, value in TREE.items() if key != "$recursiveAnchor"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "strict": {
        "$recursiveAnchor": True,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"t": TREE},
    },
    "no anchor outside": {"$ref": "tree", "minProperties": 1, "$defs": {"t": TREE}},
    "no anchor inside": {
        "$recursiveAnchor": True,
        "$ref": "tree",
        "minProperties": 1,
        "$defs": {"t": CLOSED},
    },
    "two ways": {
        "if": {"properties": {"v": {"const": 1}}, "required": ["v"]},
        "then": {"$id": "a", "$recursiveAnchor": True, "minProperties": 2, "$ref": "tree"},
        "else": {"$id": "b", "$recursiveAnchor": True, "maxProperties": 1, "$ref": "tree"},
        "$defs": {"t": TREE},
    },
    "interrupted": {
        "$recursiveAnchor": True,
        "maxProperties": 1,
        "$ref": "middle",
        "$defs": {"m": {"$id": "middle", "$ref": "tree"}, "t": TREE},
    },
}
LEAVES: list[Any] = [{}, {"v": 1}, {"v": "x"}, {"w": 1}, {"v": 2}]
BRANCHES = [{**own, "c": [leaf]} for own in ({}, {"v": 1}, {"v": 2}) for leaf in LEAVES]
DOCUMENTS: list[Any] = [
    1,
    *LEAVES,
    *BRANCHES,
    *({**own, "c": [b]} for own in ({}, {"v": 1}) for b in BRANCHES),
]


@pytest.mark.parametrize("name", SCHEMAS)
def test_references_lead_where_they_should(name: str) -> None:
    """The grammar alone says it, in any order of properties; documents are trees of depth 3."""
    schema = {"$schema": DRAFT, "$id": "http://example.org/root", **SCHEMAS[name]}
    spec = constrain.json_schema(schema, property_order="any")
    assert spec.checks == ()
    validator = jsonschema.Draft201909Validator(schema)
    expected = [validator.is_valid(document) for document in DOCUMENTS]
    assert [spec.matches(json.dumps(document)) for document in DOCUMENTS] == expected
    assert len(set(expected)) == 2
