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


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_dynamic_reference_that_may_lead_elsewhere_is_refused(keyword: str) -> None:
    """Where two resources have the anchor, what is meant depends on the way there: refused."""
    extended = {
        "$id": "http://example.com/extended",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "properties": {"more": {keyword: "#node"}},
    }
    with pytest.raises(UnsupportedFeatureError, match="several resources"):
        language(extended, registry={"http://example.com/tree": TREE})


@pytest.mark.parametrize("registry", [3, {1: {}}, ["http://example.com"]])
def test_a_registry_is_checked(registry: Any) -> None:
    """What is no registry is an error that says so."""
    with pytest.raises(SpecError, match="registry"):
        language({}, registry=registry)
