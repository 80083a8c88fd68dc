"""What the JSON Schema front end refuses, and how it says so."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.build import SchemaGrammar, SchemaOptions, schema_grammar
from constrain.grammars.limits import Limits, Watch
from tests.reference.grammar import ReferenceGrammar


def build(schema: Any, limits: Limits | None = None, **options: Any) -> SchemaGrammar:
    return schema_grammar(schema, SchemaOptions(**options), watch=Watch(limits or Limits()))


@pytest.mark.parametrize(
    ("schema", "pointer", "part"),
    [
        ({"properties": {"a": {"type": "strnig"}}}, "#/properties/a/type", "Did you mean 'string'?"),
        ({"type": []}, "#/type", "array, boolean, integer, null, number, object, string"),
        ({"type": ["string", 1]}, "#/type", "1 is not a type"),
        ({"enum": "a"}, "#/enum", "list"),
        ({"const": {1, 2}}, "#/const", "not a JSON value"),
        ({"enum": [float("nan")]}, "#/enum", "not a JSON value"),
        ({"const": {"a": [float("inf")]}}, "#/const", "not a JSON value"),
        ({"const": {1: 2}}, "#/const", "not a JSON value"),
        ({"const": 10**5000}, "#/const", "4,000 digits"),
        ({"minimum": "3"}, "#/minimum", "number"),
        ({"minimum": True}, "#/minimum", "number"),
        ({"maximum": float("inf")}, "#/maximum", "not a JSON number"),
        ({"maximum": 10**5000}, "#/maximum", "4,000 digits"),
        ({"exclusiveMinimum": True}, "#/exclusiveMinimum", "draft 4"),
        ({"multipleOf": 0}, "#/multipleOf", "above 0"),
        ({"minLength": -1}, "#/minLength", "at least 0"),
        ({"maxLength": 1.5}, "#/maxLength", "whole"),
        ({"pattern": 1}, "#/pattern", "regular expression"),
        ({"properties": {"a/b~": {"pattern": "a(b"}}}, "#/properties/a~1b~0/pattern", "^"),
        ({"format": 1}, "#/format", "format"),
        ({"items": 1}, "#/items", "expected a schema"),
        ({"items": [{}]}, "#/items", "prefixItems"),
        ({"prefixItems": {}}, "#/prefixItems", "list of schemas"),
        ({"uniqueItems": 1}, "#/uniqueItems", "true or false"),
        ({"properties": []}, "#/properties", "object of schemas"),
        ({"properties": {1: {}}}, "#/properties", "strings"),
        ({"properties": {"a": 1}}, "#/properties/a", "expected a schema"),
        ({"required": True}, "#/required", "list"),
        ({"required": [1]}, "#/required", "names"),
        ({"additionalProperties": "no", "type": "object"}, "#/additionalProperties", "expected a schema"),
        ({"anyOf": []}, "#/anyOf", "at least one"),
        ({"oneOf": {}}, "#/oneOf", "list"),
        ({"allOf": [1]}, "#/allOf/0", "expected a schema"),
        ({"$ref": 1}, "#/$ref", "reference"),
        ({"$ref": "#/$defs/a"}, "#/$ref", "no '$defs'"),
        ({"$ref": "#a"}, "#/$ref", "names no place"),
        ({"$defs": {"a": [{}]}, "$ref": "#/$defs/a/1"}, "#/$ref", "no '1'"),
        ({"$ref": "#"}, "#/$ref", "leads back to itself"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#"}]}}, "$ref": "#/$defs/a"}, "#/$defs/a/allOf/0/$ref", "back"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "#/anyOf/0/$ref", "back"),
        ({"properties": {"a": {"$ref": "b"}, "c": "no schema"}}, "#/properties/a/$ref", "no schema stands"),
        ([], "#", "expected a schema"),
        (None, "#", "expected a schema"),
    ],
)
def test_malformed_keywords_are_named_with_their_place(schema: Any, pointer: str, part: str) -> None:
    """A malformed keyword is an error with its pointer, what was found and what was expected."""
    with pytest.raises(SpecError) as caught:
        build(schema)
    assert caught.value.pointer == pointer
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [('{"type":\n "string",}', 2, 11), ("", 1, 1), ('{"minimum": NaN}', 1, 13), ("{'a': 1}", 1, 2)],
)
def test_malformed_texts_are_shown_with_a_caret(text: str, line: int, column: int) -> None:
    """A schema that isn't JSON is an error with line, column and caret."""
    with pytest.raises(SpecError) as caught:
        build(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith("^")


UNSUPPORTED: list[tuple[Any, str, str]] = [
    ({"type": "array", "uniqueItems": True}, "uniqueItems", "#/uniqueItems"),
    ({"not": {"type": "array", "uniqueItems": True}}, "uniqueItems", "#/not/uniqueItems"),
    ({"type": "number", "multipleOf": 0.123456789}, "multipleOf", "#/multipleOf"),
]


@pytest.mark.parametrize(("schema", "feature", "pointer"), UNSUPPORTED, ids=[case[1] for case in UNSUPPORTED])
def test_unsupported_keywords_are_refused_never_dropped(schema: Any, feature: str, pointer: str) -> None:
    """What can't be enforced is refused with keyword, place and a hint."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        build(schema)
    assert (caught.value.feature, caught.value.pointer) == (feature, pointer)
    assert caught.value.hint
    with pytest.raises(UnsupportedFeatureError, match="whole output"):
        build(schema, unsupported="check")


@pytest.mark.parametrize(("schema", "feature", "pointer"), UNSUPPORTED, ids=[case[1] for case in UNSUPPORTED])
def test_ignoring_warns_and_lists_what_it_dropped(schema: Any, feature: str, pointer: str) -> None:
    """With unsupported="ignore" the rest of the schema is built, with a warning and an entry in the list."""
    with pytest.warns(UserWarning, match=r"is ignored\.") as caught:
        result = build(schema, unsupported="ignore")
    assert len(caught) == 1
    assert result.ignored == (pointer,)
    assert feature in str(caught[0].message)


def test_keywords_for_other_types_do_no_harm() -> None:
    """An unsupported keyword that speaks of types the schema excludes is not refused."""
    schemas: list[Any] = [
        {"type": "string", "uniqueItems": True, "patternProperties": {"a": {}}, "multipleOf": 3},
        {"enum": ["a", 1.5], "uniqueItems": True},
        {
            "type": "object",
            "contains": {},
            "propertyNames": True,
            "patternProperties": {},
            "dependencies": {},
        },
        {"if": {"minimum": 3}},
        {"not": {"type": "string", "format": "date"}, "type": "integer"},
    ]
    for schema in schemas:
        assert build(schema).ignored == ()


def test_what_is_not_enforced_is_listed() -> None:
    """Unknown formats, keywords of other drafts and siblings of $ref in old drafts are listed as ignored."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "format": "color"},
            "b": {"type": "integer", "format": "int32"},
            "c": {"type": "string", "format": "date"},
            "d": {"type": "array", "additionalItems": False},
        },
    }
    assert build(schema).ignored == (
        "#/properties/a/format",
        "#/properties/b/format",
        "#/properties/d/additionalItems",
    )
    assert build(schema, formats=False).ignored == ("#/properties/d/additionalItems",)
    old = {
        "definitions": {"a": {}},
        "properties": {"x": {"$ref": "#/definitions/a", "minimum": 1, "title": ""}},
    }
    assert build(old, draft="draft7").ignored == ("#/properties/x/minimum",)
    assert build({"prefixItems": [{}], "const": 1}, draft="draft4").ignored == ("#/prefixItems", "#/const")


def test_formats_can_be_annotations() -> None:
    """With formats=False a format restricts nothing."""
    matcher = ReferenceGrammar(build({"type": "string", "format": "date"}, formats=False).grammar)
    assert matcher.accepts(b'"x"')


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"$ref": "http://example.com/schema"}, "'http://example.com/schema'"),
        ({"$id": "http://example.com/a", "$ref": "b.json"}, "'b.json'"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "draft-03"),
        ({"const": "\ud800"}, "UTF-8"),
    ],
)
def test_remote_references_and_draft_3_are_refused(schema: Any, part: str) -> None:
    """Other documents are never fetched, and drafts before 4 are not read."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        build(schema)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"whitespace": None},
        {"property_order": "sorted"},
        {"formats": 1},
        {"integers": "all"},
        {"unsupported": "warn"},
        {"draft": "draft3"},
        {"max_whitespace": 0},
        {"max_whitespace": True},
    ],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    """An option with a value it cannot have is an error that names it."""
    with pytest.raises(SpecError) as caught:
        SchemaOptions(**options)
    assert next(iter(options)) in str(caught.value)


def _nested(keyword: str, depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {keyword: [schema] if keyword.endswith("Of") else schema}
    return schema


def _circular() -> Any:
    value: list[Any] = []
    value.append(value)
    return {"const": value}


@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        (_nested("items", 3000), "nesting"),
        (_nested("anyOf", 3000), "nesting"),
        (_nested("allOf", 3000), "nesting"),
        (_circular(), "nesting"),
        ('{"items":' * 3000 + "{}" + "}" * 3000, "nesting"),
        ({"allOf": [{"anyOf": [{"minimum": 10 * i + j} for j in range(6)]} for i in range(12)]}, "states"),
    ],
)
def test_hostile_schemas_reach_a_limit(schema: Any, limit: str) -> None:
    """Nesting without end and products of branches are stopped by a limit that says its name."""
    with pytest.raises(LimitExceededError) as caught:
        build(schema)
    assert caught.value.limit == limit


def test_compilation_stops_at_its_time_limit() -> None:
    """The time limit is looked at while a large schema is read."""
    schema = {"properties": {f"p{i}": {"type": "object", "required": ["a"]} for i in range(5000)}}
    with pytest.raises(LimitExceededError) as caught:
        build(schema, Limits(compile_seconds=1e-9))
    assert caught.value.limit == "compile_seconds"


def test_nothing_warns_without_being_asked() -> None:
    """Building an ordinary schema gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build({"type": "object", "properties": {"a": {"format": "color"}}})
