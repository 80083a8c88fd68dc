"""Random schemas and documents: the grammar and the library `jsonschema` agree."""

from __future__ import annotations

import json
import string
from random import Random
from typing import Any

import jsonschema
from hypothesis import assume, given
from hypothesis import strategies as st

import constrain
from constrain.grammars.errors import EmptyLanguageError, SpecError, UnsupportedFeatureError
from tests.reference.json_documents import language, spellings
from tests.strategies import fixed

NAMES = "abcx"
TEXTS = ["", "a", "b", "ab", "abc", "é", "😀", "a\t", '"', "x1"]
NUMBERS: list[Any] = [0, 1, -1, 2, 3, 1.5, -0.5, 2.0, 10, 100]
PATTERNS = ["^a", "b$", "[ab]", "^.$", "a|é", "^(a|b)*$", "\\d", '^[^"]*$']
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]

scalars = st.sampled_from([None, True, False, *NUMBERS, *TEXTS])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=5,
)
counts = st.integers(0, 3)


def _keywords(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    names = st.sampled_from(NAMES)
    branches = st.lists(inner, min_size=1, max_size=3)
    bounds = st.sampled_from(NUMBERS)
    return {
        "type": st.one_of(st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, unique=True)),
        "enum": st.lists(values, min_size=1, max_size=4),
        "const": values,
        "minimum": bounds,
        "maximum": bounds,
        "exclusiveMinimum": bounds,
        "exclusiveMaximum": bounds,
        "minLength": counts,
        "maxLength": counts,
        "pattern": st.sampled_from(PATTERNS),
        "properties": st.dictionaries(st.sampled_from(NAMES[:3]), inner, max_size=3),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": inner,
        "minProperties": counts,
        "maxProperties": counts,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": counts,
        "maxItems": counts,
        "anyOf": branches,
        "allOf": branches,
        "oneOf": branches,
        "$ref": st.sampled_from(["#/$defs/p", "#/$defs/q"]),
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "multipleOf": st.sampled_from([1, 2, 3, 0.5, 1.5, 10]),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        "propertyNames": st.one_of(inner, st.sampled_from([{"enum": ["a", "x"]}, {"pattern": "[ab]"}])),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=1),
        "contains": inner,
        "minContains": counts,
        "maxContains": counts,
        "uniqueItems": st.booleans(),
        "unevaluatedProperties": st.one_of(st.just(False), inner),
        "unevaluatedItems": st.one_of(st.just(False), inner),
    }


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords = _keywords(inner)
    names = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen}))


schemas = st.recursive(st.one_of(st.booleans(), st.just({})), _objects, max_leaves=8)


@st.composite
def whole_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a schema with two definitions, one of which holds itself."""
    root = draw(schemas)
    recursive = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/q"}, "b": draw(schemas)},
        "required": draw(st.sampled_from([[], [], ["a"], ["b"]])),
    }
    base = root if isinstance(root, dict) else {"allOf": [root]}
    return {**base, "$defs": {"p": draw(schemas), "q": recursive}}


@fixed(400)
@given(whole_schemas(), st.lists(values, min_size=8, max_size=8))
def test_documents_are_taken_exactly_if_they_are_valid(schema: dict[str, Any], documents: list[Any]) -> None:
    """A document is in the language exactly if `jsonschema` finds it valid, in some order of its keys."""
    matcher = None
    try:
        matcher = language(schema, whitespace="compact", integers="any")
    except EmptyLanguageError:
        pass
    except UnsupportedFeatureError:
        return
    except SpecError as error:  # a reference that leads back to itself; the library would follow it for ever
        assert "leads back" in error.message
        return
    validator = jsonschema.Draft202012Validator(schema)
    try:
        valid = [validator.is_valid(document) for document in documents]
    except RecursionError:
        assume(False)
    if matcher is None:
        assert not any(valid)
        return
    for document, is_valid in zip(documents, valid, strict=True):
        texts = spellings(document)
        taken = any(matcher.accepts(text.encode()) for text in texts)
        assert taken == is_valid, document


@fixed(300)
@given(whole_schemas(), st.lists(values, min_size=8, max_size=8), st.randoms(use_true_random=False))
def test_any_order_of_keys_is_taken(schema: dict[str, Any], documents: list[Any], rng: Random) -> None:
    """With property_order="any" a document is taken in each order of its keys if it is valid, and in none else."""
    spec = None
    try:
        spec = constrain.json_schema(schema, whitespace="compact", integers="any", property_order="any")
        spec.matches("null")
    except EmptyLanguageError:
        spec = None
    except UnsupportedFeatureError:
        return
    except SpecError as error:
        assert "leads back" in error.message
        return
    validator = jsonschema.Draft202012Validator(schema)
    for document in documents:
        try:
            is_valid = validator.is_valid(document)
        except RecursionError:
            assume(False)
        text = rng.choice(spellings(document))
        assert (spec is not None and spec.matches(text)) == is_valid, text
        if spec is not None and isinstance(document, dict) and document:
            twice = f"{text[:-1]},{rng.choice(members_of(document))}}}"
            assert not spec.matches(twice), twice


def members_of(document: dict[str, Any]) -> list[str]:
    """Return the members of an object, also with a letter of their key escaped."""
    found = []
    for key, value in document.items():
        member = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        found += [f"{json.dumps(key)}:{member}", f'"\\u{ord(key[0]):04x}{key[1:]}":{member}']
    return found


@fixed(150)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(string.ascii_lowercase[:4]), schemas, max_size=3),
        min_size=2,
        max_size=3,
    ),
    st.lists(values, min_size=6, max_size=6),
)
def test_merged_objects_are_intersections(properties: list[dict[str, Any]], documents: list[Any]) -> None:
    """Members of allOf with their own properties and additionalProperties are intersected."""
    members: list[Any] = [
        {"properties": part, "additionalProperties": index % 2 == 0} for index, part in enumerate(properties)
    ]
    schema = {"type": "object", "allOf": members, "$defs": {"p": {}, "q": True}}
    validator = jsonschema.Draft202012Validator(schema)
    try:
        matcher = language(schema, whitespace="compact", integers="any")
    except UnsupportedFeatureError:
        return
    for document in documents:
        taken = any(matcher.accepts(text.encode()) for text in spellings(document))
        assert taken == validator.is_valid(document), document
