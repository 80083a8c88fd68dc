"""OpenAPI's keywords and the content of strings, where an option says that they count."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import constrain
from constrain.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.translate import translated
from constrain.grammars.limits import Limits, Watch

PETS = {
    "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
    "discriminator": {
        "propertyName": "kind",
        "mapping": {"hound": "#/components/schemas/Dog", "wolf": "Dog"},
    },
    "components": {
        "schemas": {
            "Cat": {"type": "object", "properties": {"kind": {"type": "string"}, "n": {"type": "integer"}}},
            "Dog": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string"},
                    "owner": {"type": "string", "nullable": True, "minLength": 2},
                },
            },
        }
    },
}


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ({"kind": "Cat", "n": 3}, True),
        ({"kind": "hound", "owner": None}, True),
        ({"kind": "wolf", "owner": "me"}, True),
        ({"kind": "wolf", "owner": "x"}, False),
        ({"kind": "Dog"}, False),
        ({"kind": "Cat", "n": "3"}, False),
        ({}, False),
    ],
)
def test_discriminators_choose_a_branch(value: Any, is_valid: bool) -> None:
    """Each branch requires the property, with the names that the mapping has for it, or its own."""
    assert constrain.json_schema(PETS, openapi=True).matches(json.dumps(value)) == is_valid
    assert constrain.json_schema(json.dumps(PETS), openapi=True).matches(json.dumps(value)) == is_valid


def test_nullable_is_for_types() -> None:
    """``nullable`` adds null to ``type``, not to ``enum``, and means nothing without the option."""
    schema = {"type": "string", "nullable": True}
    assert constrain.json_schema(schema, openapi=True).matches("null")
    assert not constrain.json_schema(schema).matches("null")
    assert not constrain.json_schema({**schema, "enum": ["a"]}, openapi=True).matches("null")
    assert constrain.json_schema({**schema, "enum": ["a", None]}, openapi=True).matches("null")
    assert schema == {"type": "string", "nullable": True}
    data = {"const": {"type": "string", "nullable": True}}
    assert constrain.json_schema(data, openapi=True).matches(json.dumps(data["const"]))


def test_extensions_in_other_documents() -> None:
    """Documents of the registry are read alike."""
    registry = {"https://example.org/a": {"type": "integer", "nullable": True}}
    spec = constrain.json_schema({"$ref": "https://example.org/a"}, registry=registry, openapi=True)
    assert spec.matches("null") and spec.matches("1") and not spec.matches('"a"')


@pytest.mark.parametrize(
    ("encoding", "write"),
    [
        ("base64", base64.b64encode),
        ("base64url", base64.urlsafe_b64encode),
        ("base32", base64.b32encode),
        ("base16", base64.b16encode),
    ],
)
def test_encodings(encoding: str, write: Any) -> None:
    """What the encoding writes is allowed; what it never writes isn't, unless the option is off."""
    schema = {"type": "string", "contentEncoding": encoding}
    spec = constrain.json_schema(schema, content=True)
    for n in range(7):
        for byte in (0, 1, 0x5A, 0xFF):
            text = write(bytes([byte]) * n).decode()
            assert spec.matches(json.dumps(text))
            assert not spec.matches(json.dumps(text + "*"))
            assert not spec.matches(json.dumps(text + "="))
            assert n == 0 or not spec.matches(json.dumps(text[:-1]))
    assert constrain.json_schema(schema).matches('"*"')
    assert constrain.json_schema({"contentEncoding": encoding}, content=True).matches("[1]")


def test_json_within_strings() -> None:
    """A string of the media type of JSON holds a JSON text."""
    spec = constrain.json_schema(
        {"type": "string", "contentMediaType": "application/json; a=b"}, content=True
    )
    for text in ("1", '{"a": ["\\u0041", null]}', " [ ] ", '"\\"é"'):
        assert spec.matches(json.dumps(text))
        assert spec.matches(json.dumps(text, ensure_ascii=False))
    for text in ("", "{", "nul", "[1,]"):
        assert not spec.matches(json.dumps(text))
    assert constrain.json_schema({"contentMediaType": "text/html"}, content=True).matches('"x"')


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"items": {"type": "string", "nullable": 1}}, "#/items/nullable"),
        ({"properties": {"a/b": {"discriminator": "x"}}}, "#/properties/a~1b/discriminator"),
        ({"anyOf": [{"contentEncoding": 3}]}, "#/anyOf/0/contentEncoding"),
    ],
)
def test_malformed_extensions_are_named(schema: Any, pointer: str) -> None:
    """A malformed keyword is refused with its place."""
    with pytest.raises(SpecError) as caught:
        constrain.json_schema(schema, openapi=True, content=True)
    assert caught.value.pointer == pointer


def test_json_in_another_encoding_is_refused() -> None:
    """JSON in base64 is refused, with its place."""
    with pytest.raises(UnsupportedFeatureError, match="base64"):
        constrain.json_schema(
            {"contentEncoding": "base64", "contentMediaType": "application/json"}, content=True
        )


def test_shared_parts_are_translated_once() -> None:
    """A schema that holds one object at many places is copied as often as there are objects."""
    node: Any = {"type": "string", "nullable": True}
    for _ in range(60):
        node = {"anyOf": [{"items": node}, {"not": {"not": node}}]}
    found, todo = {}, [translated(node, Watch(Limits()), openapi=True, content=False)]
    while todo:
        part = todo.pop()
        if isinstance(part, dict) and id(part) not in found:
            found[id(part)] = part
            todo += [*part.values(), *(part.get("anyOf") or ())]
    assert len(found) == 60 * 4 + 1
    assert sum(part.get("type") == ["string", "null"] for part in found.values()) == 1
