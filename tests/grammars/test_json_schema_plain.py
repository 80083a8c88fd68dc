"""What is called plain unread is read without an error, whole and not empty."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.grammars.json_schema.build import schema_grammar
from constrain.grammars.json_schema.facts import TYPE_BITS
from constrain.grammars.json_schema.options import SchemaOptions
from constrain.grammars.json_schema.plain import MOST_DEEP, is_plain
from constrain.grammars.limits import Limits, Watch

NAMES = st.sampled_from(["a", "b", "", "c/~", "\u00e9", "\ud800", 'q"\\\n', "$ref"])
OPTIONS = [
    SchemaOptions(whitespace="compact"),
    SchemaOptions(whitespace="flexible"),
    SchemaOptions(property_order="any"),
    SchemaOptions(unsupported="ignore", integers="any"),
    SchemaOptions(unsupported="check"),
    SchemaOptions(draft="draft4"),
    SchemaOptions(draft="draft2019-09"),
]


def below(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Subschemas around others; some are malformed, empty or of another kind."""
    keywords = {
        "type": st.sampled_from([*sorted(TYPE_BITS), "object", "dict", 3]),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2),
        "additionalProperties": inner,
        "items": inner,
        "anyOf": st.lists(inner, max_size=3),
        "enum": st.lists(st.sampled_from(["x", "y", "\u00e9", "\ud800", 1, None]), max_size=3),
        "title": st.sampled_from(["t", 3]),
        "default": st.none(),
        "format": st.sampled_from(["date", "nonsense"]),
        "not": inner,
        "minLength": st.integers(-1, 2),
    }
    usual = ["type", "properties", "required", "additionalProperties", "items", "anyOf", "enum"]
    names = st.lists(st.sampled_from([*keywords, *usual, *usual]), max_size=4, unique=True)
    return names.flatmap(lambda found: st.fixed_dictionaries({name: keywords[name] for name in found}))


SCHEMAS = st.recursive(st.sampled_from([True, False, {}, {"type": "string"}, {"type": "null"}, 7]), below)


@settings(max_examples=1500, deadline=None)
@given(SCHEMAS, st.sampled_from(OPTIONS))
def test_plain_schemas_are_read(schema: Any, options: SchemaOptions) -> None:
    if is_plain(schema):
        read = schema_grammar(schema, options, watch=Watch(Limits()))
        assert read.ignored == ()
        assert not read.left_open


def test_real_plain_schemas_are_read(shared: Path) -> None:
    plain = 0
    with gzip.open(shared / "data" / "maskbench_dev.jsonl.gz", "rt") as lines:
        for line in lines:
            schema = json.loads(line)["schema"]
            if is_plain(schema):
                plain += 1
                read = schema_grammar(schema, SchemaOptions(), watch=Watch(Limits()))
                assert read.ignored == ()
    assert plain > 1000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, "required": ["a"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "A"},
        {"anyOf": [{"type": "object"}, {"type": "object", "required": []}], "type": "object"},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ],
)
def test_usual_schemas_are_plain(schema: Any) -> None:
    assert is_plain(schema)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "dict"},
        {"type": "integer", "enum": ["a"]},
        {"enum": ["a", "a"]},
        {"enum": []},
        {"required": ["a"], "additionalProperties": False},
        {"properties": {"a": False}, "required": ["a"]},
        {"type": "string", "anyOf": [{"type": "null"}]},
        {"anyOf": []},
        {"title": 3},
        {"type": "string", "pattern": "("},
        {"$ref": "#/nowhere"},
        {"x": 1},
    ],
)
def test_other_schemas_are_not_plain(schema: Any) -> None:
    assert not is_plain(schema)


def test_a_deep_schema_is_not_plain() -> None:
    schema: Any = {"type": "null"}
    for _ in range(MOST_DEEP - 1):
        schema = {"items": schema}
    assert is_plain(schema)
    assert not is_plain({"items": schema})
