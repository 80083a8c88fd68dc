"""References to other documents, and dynamic ones."""

from __future__ import annotations

from typing import Any

import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from tests.reference.json_documents import language

COUNT = {"$defs": {"positive": {"type": "integer", "minimum": 1}}, "$ref": "#/$defs/positive"}
TREE: dict[str, Any] = {
    "$id": "http://example.com/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"value": {"type": "integer"}, "below": {"items": {"$dynamicRef": "#node"}}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "registry",
    [
        {"http://example.com/count": COUNT},
        Registry().with_resource("http://example.com/count", DRAFT202012.create_resource(COUNT)),
    ],
)
def test_documents_of_a_registry_are_found(registry: Any) -> None:
    """References to a given document, and within it, are followed."""
    schema = {"$id": "http://example.com/a", "items": {"$ref": "count"}, "type": "array"}
    matcher = language(schema, registry=registry)
    assert matcher.accepts(b"[1,2]")
    assert not matcher.accepts(b"[0]")


def test_what_is_not_given_is_not_fetched() -> None:
    """A document that isn't in the registry is refused."""
    with pytest.raises(UnsupportedFeatureError, match="nothing is ever fetched"):
        language({"$ref": "http://example.com/other"}, registry={"http://example.com/count": COUNT})


def test_documents_of_another_draft_are_refused() -> None:
    """A document with another draft's rules is not read by the schema's own."""
    other = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}
    with pytest.raises(UnsupportedFeatureError, match="another draft"):
        language({"$ref": "http://example.com/other"}, registry={"http://example.com/other": other})


def test_a_dynamic_reference_with_one_target_is_followed() -> None:
    """Where one resource has the anchor a dynamic reference leads there."""
    matcher = language(TREE)
    assert matcher.accepts(b'{"value":1,"below":[{"value":2}]}')
    assert not matcher.accepts(b'{"value":1,"below":[{"wrong":2}]}')


LIST: dict[str, Any] = {
    "$id": "http://example.com/list",
    "type": "array",
    "items": {"$dynamicRef": "#item"},
    "$defs": {"any": {"$dynamicAnchor": "item"}},
}


def _list_of(kind: str) -> dict[str, Any]:
    return {
        "$id": f"http://example.com/{kind}s",
        "$defs": {"item": {"$dynamicAnchor": "item", "type": kind}},
        "$ref": "list",
    }


def test_a_dynamic_reference_leads_to_what_was_entered_first() -> None:
    """One schema, come to in two ways, allows other things in each."""
    both = {
        "$id": "http://example.com/both",
        "properties": {"n": {"$ref": "integers"}, "s": {"$ref": "strings"}, "any": {"$ref": "list"}},
        "additionalProperties": False,
    }
    registry = {one["$id"]: one for one in (LIST, _list_of("integer"), _list_of("string"))}
    matcher = language(both, registry=registry)
    assert matcher.accepts(b'{"n":[1,2],"s":["a"],"any":[1,"a"]}')
    assert not matcher.accepts(b'{"n":["a"]}')
    assert not matcher.accepts(b'{"s":[1]}')


def test_a_plain_reference_to_a_dynamic_anchor_stays_in_its_resource() -> None:
    """``$ref`` doesn't look at what was entered first, ``$dynamicRef`` beside it does."""
    pair = {
        **LIST,
        "prefixItems": [{"$ref": "#item"}],
        "$defs": {"null": {"$dynamicAnchor": "item", "type": "null"}},
    }
    registry = {"http://example.com/list": pair}
    matcher = language(_list_of("integer"), registry=registry)
    assert matcher.accepts(b"[null,1,2]")
    assert not matcher.accepts(b"[1,1]")
    assert not matcher.accepts(b"[null,null]")


def test_dynamic_references_of_recursive_schemas_end() -> None:
    """A tree that was extended is extended at every depth, in any order of the two documents."""
    tree = {key: value for key, value in TREE.items() if key != "additionalProperties"}
    strict = {
        "$id": "http://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    matcher = language(strict, registry={"http://example.com/tree": tree})
    assert matcher.accepts(b'{"value":1,"below":[{"value":2,"below":[{}]}]}')
    assert not matcher.accepts(b'{"value":1,"below":[{"value":2,"below":[{"wrong":1}]}]}')


@pytest.mark.parametrize("reference", ["#nowhere", "list#/$defs/none", "list#nowhere"])
def test_references_to_nowhere_beside_dynamic_ones(reference: str) -> None:
    """They are errors that say so."""
    schema = {**_list_of("integer"), "prefixItems": [{"$ref": reference}]}
    with pytest.raises(SpecError, match="names no place"):
        language(schema, registry={"http://example.com/list": LIST})


def test_missing_documents_beside_dynamic_references() -> None:
    """They are refused, as elsewhere."""
    schema = {**_list_of("integer"), "prefixItems": [{"$ref": "other"}]}
    with pytest.raises(UnsupportedFeatureError, match="nothing is ever fetched"):
        language(schema, registry={"http://example.com/list": LIST})


@pytest.mark.parametrize("registry", [3, {1: {}}, ["http://example.com"]])
def test_a_registry_is_checked(registry: Any) -> None:
    """What is no registry is an error that says so."""
    with pytest.raises(SpecError, match="registry"):
        language({}, registry=registry)
