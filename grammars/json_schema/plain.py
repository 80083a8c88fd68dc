"""Schemas of the plainest kind: that they can be read is known without reading them.

A set of tools holds hundreds of schemas, an answer calls few of them. Each has to be checked before the first token,
and most use nothing but types, properties, items and enums of words. For those the grammar may wait until it is
needed: nothing of it can be refused, empty, too large or left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrain.grammars.json_schema.facts import TYPE_BITS, Json

_NOTES = frozenset({"title", "description", "default", "examples"})
MOST_DEEP = 12
_MOST_MEMBERS = 64


def is_plain(schema: Json) -> bool:
    """Tell whether a schema is certainly read without an error, enforced whole and not empty.

    ``False`` says nothing. The time is linear in the schema's size.
    """
    return _is_plain(schema, MOST_DEEP)


def _is_plain(schema: Json, depth: int) -> bool:
    if schema is True:
        return True
    if not isinstance(schema, dict) or not depth:
        return False
    for keyword, value in schema.items():
        reads = _KEYWORDS.get(keyword)
        if reads is None:
            if keyword not in _NOTES or (keyword in ("title", "description") and not isinstance(value, str)):
                return False
        elif not reads(schema, value, depth):
            return False
    return True


def _words(given: Json) -> bool:
    """Are these different words, each of which is a plain JSON string?"""
    return (
        isinstance(given, list)
        and 0 < len(given) <= _MOST_MEMBERS
        and all(isinstance(word, str) and word.isascii() for word in given)
        and len(set(given)) == len(given)
    )


def _is_type(schema: dict[str, Json], value: Json, depth: int) -> bool:
    return isinstance(value, str) and value in TYPE_BITS


def _is_enum(schema: dict[str, Json], value: Json, depth: int) -> bool:
    return schema.get("type", "string") == "string" and _words(value)


def _is_properties(schema: dict[str, Json], value: Json, depth: int) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_MEMBERS
        and all(isinstance(name, str) and name.isascii() for name in value)
        and _all_plain(value.values(), depth - 1)
    )


def _is_required(schema: dict[str, Json], value: Json, depth: int) -> bool:
    properties = schema.get("properties")
    return value == [] or (_words(value) and isinstance(properties, dict) and properties.keys() >= set(value))


def _is_additional(schema: dict[str, Json], value: Json, depth: int) -> bool:
    return value is False or _is_plain(value, depth - 1)


def _is_items(schema: dict[str, Json], value: Json, depth: int) -> bool:
    return _is_plain(value, depth - 1)


def _is_any_of(schema: dict[str, Json], value: Json, depth: int) -> bool:
    # Beside other assertions it would be an intersection, which may be empty.
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_MEMBERS:
        return False
    if not all(keyword in ("anyOf", "type") or keyword in _NOTES for keyword in schema):
        return False
    if "type" in schema and not all(
        isinstance(one, dict) and one.get("type") == schema["type"] for one in value
    ):
        return False
    return _all_plain(value, depth - 1)


def _all_plain(given: Iterable[Json], depth: int) -> bool:
    return all(_is_plain(one, depth) for one in given)


_KEYWORDS = {
    "type": _is_type,
    "enum": _is_enum,
    "properties": _is_properties,
    "required": _is_required,
    "additionalProperties": _is_additional,
    "items": _is_items,
    "anyOf": _is_any_of,
}
