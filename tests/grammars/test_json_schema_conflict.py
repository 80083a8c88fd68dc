"""The keywords that an error about an unsatisfiable schema names."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import constrain
from constrain.errors import EmptyLanguageError

CONFLICTS: list[tuple[Any, set[str]]] = [
    ({"type": "integer", "minimum": 3, "maximum": 2, "title": "x"}, {"#/type", "#/minimum", "#/maximum"}),
    ({"allOf": [{"type": "string"}, {}, {"type": "null"}]}, {"#/allOf/0/type", "#/allOf/2/type"}),
    ({"allOf": [{"const": 1}, {"enum": [2, 3]}], "minimum": 0}, {"#/allOf/0/const", "#/allOf/1/enum"}),
    (
        {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        {"#/type", "#/allOf/0/pattern", "#/allOf/1/pattern"},
    ),
    (
        {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": False}},
        {"#/type", "#/required", "#/properties/b"},
    ),
    (
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/n"}, "y": {"type": "string"}},
            "$defs": {"n": {"type": "integer", "minimum": 5}, "m": {"maximum": 1}},
            "patternProperties": {"^x": {"maximum": 4}},
            "required": ["x"],
        },
        {
            *("#/type", "#/required", "#/properties/x/$ref", "#/patternProperties/%5Ex/maximum"),
            *("#/$defs/n/type", "#/$defs/n/minimum"),
        },
    ),
    (
        {"type": "array", "items": {"enum": [1, 2]}, "minItems": 3, "uniqueItems": True},
        {"#/type", "#/items/enum", "#/minItems", "#/uniqueItems"},
    ),
    (
        {"type": "object", "required": ["a", "b"], "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"#/required", "#/oneOf"},  # what is no object satisfies both branches
    ),
    (
        {
            "anyOf": [{"type": "null"}, {"type": "string", "maxLength": 1}],
            "minLength": 2,
            "not": {"const": None},
        },
        {"#/anyOf/0/type", "#/anyOf/1/type", "#/anyOf/1/maxLength", "#/minLength", "#/not"},
    ),
    (
        {"type": "array", "contains": {"type": "null"}, "minContains": 3, "maxItems": 2},
        {"#/type", "#/contains", "#/minContains", "#/maxItems"},
    ),
]


@pytest.mark.parametrize(("schema", "pointers"), CONFLICTS, ids=[str(i) for i in range(len(CONFLICTS))])
def test_errors_name_what_contradicts(schema: Any, pointers: set[str]) -> None:
    """The error names a set of keywords of which none can be left out."""
    with pytest.raises(EmptyLanguageError) as caught:
        constrain.json_schema(copy.deepcopy(schema))
    assert set(caught.value.conflict) == pointers
    assert all(pointer in str(caught.value) for pointer in pointers)


def test_a_single_keyword_is_no_conflict() -> None:
    """Where one keyword alone excludes everything, its pointer is all there is to say."""
    with pytest.raises(EmptyLanguageError) as caught:
        constrain.json_schema({"not": {}})
    assert "In conflict" not in str(caught.value)


def test_large_schemas_cost_no_search() -> None:
    """The work for a message is bounded: then no keywords are named."""
    properties = {f"p{i}": {"type": "string", "minLength": i} for i in range(20_000)}
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["q"],
        "propertyNames": {"maxLength": 0},
    }
    with pytest.raises(EmptyLanguageError) as caught:
        constrain.json_schema(schema)
    assert caught.value.conflict == ()
