"""What extensions say in keywords of JSON Schema: OpenAPI's, and assertions of the content of strings.

Both are options: ``nullable`` and ``discriminator`` mean something in OpenAPI alone, and ``contentEncoding`` and
``contentMediaType`` are annotations by themselves.

- ``nullable`` (OpenAPI 3.0.3): beside ``type`` it allows null as well. An ``enum`` must still list null.
- ``discriminator``: each branch of the ``oneOf`` or ``anyOf`` beside it requires the property; in a branch that
  is a reference, its value is one of the names that the mapping has for it, or else the last part of the
  reference.
- ``contentEncoding`` (RFC 4648, RFC 2045): the string is written in the encoding. Names that are unknown are
  annotations.
- ``contentMediaType: application/json`` (RFC 8259): the string holds a JSON text. Other types are annotations.
"""

from __future__ import annotations

from typing import Any

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.facts import Json
from constrain.grammars.json_schema.pointers import token
from constrain.grammars.json_schema.subschemas import LISTS, MAPS, SINGLE
from constrain.grammars.limits import Watch

# OpenAPI keeps schemas in a part of its own.
_MAPS = (*MAPS, "schemas")
_SINGLE = (*SINGLE, "components")

_ENCODINGS = {
    "base64": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
    "base64url": "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?$",
    "base32": "^(?:[A-Z2-7]{8})*(?:[A-Z2-7][AEIMQUYcgkosw4]={6}|[A-Z2-7]{3}[AQ]={4}|[A-Z2-7]{4}[ACEGIKMOQSUWY246]={3}"
    "|[A-Z2-7]{6}[AIQY]=)?$",
    "base16": "^(?:[0-9A-Fa-f]{2})*$",
    "7bit": "^[\\x01-\\x7F]*$",
    "quoted-printable": "^(?:[\\t -<>-~]|=[0-9A-F]{2}|=\\r\\n|\\r\\n)*$",
}
_JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" (member ("," member)*)? "}"
member: STRING ":" value
array: "[" (value ("," value)*)? "]"
STRING: /"([^"\\\x00-\x1F]|\\(["\\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\n\r]{1,64}/
"""


def translated(schema: Json, watch: Watch, *, openapi: bool, content: bool) -> Json:
    """Return a copy of ``schema`` in which extensions are said in keywords that every reader knows.

    Parameters
    ----------
    schema : dict or bool
    watch : Watch
    openapi : bool
        Translate ``nullable`` and ``discriminator``.
    content : bool
        Assert ``contentEncoding`` and ``contentMediaType``.

    Raises
    ------
    SpecError
        One of them is malformed; with its pointer.
    UnsupportedFeatureError
        A string would have to hold a JSON text in another encoding.
    """
    top = {"": schema}
    known: dict[int, dict[Any, Json]] = {}
    todo: list[tuple[Any, Any, str]] = [(top, "", "#")]
    while todo:
        holder, place, pointer = todo.pop()
        node = holder[place]
        if not isinstance(node, dict):
            continue
        if id(node) in known:  # one object at several places
            holder[place] = known[id(node)]
            continue
        watch.step(pointer)
        watch.at_most("nesting", pointer.count("/"), pointer[:80] + "...")
        new = holder[place] = known[id(node)] = dict(node)
        for key in _MAPS:
            if isinstance(new.get(key), dict):
                new[key] = dict(new[key])
                todo += [(new[key], name, f"{pointer}/{key}/{token(str(name))}") for name in new[key]]
        for key in LISTS:
            if isinstance(new.get(key), list):
                new[key] = list(new[key])
                todo += [(new[key], i, f"{pointer}/{key}/{i}") for i in range(len(new[key]))]
        todo += [(new, key, f"{pointer}/{key}") for key in _SINGLE if isinstance(new.get(key), dict)]
        if openapi:
            _read_nullable(new, pointer)
            _read_discriminator(new, pointer)
        if content:
            _read_content(new, pointer)
    return top[""]


def _read_nullable(node: dict[Any, Json], pointer: str) -> None:
    value = node.get("nullable", False)
    if not isinstance(value, bool):
        raise SpecError(
            f"nullable: expected true or false, found {value!r:.40}.", pointer=f"{pointer}/nullable"
        )
    kinds = node.get("type")
    if value and kinds is not None:
        node["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]


def _read_discriminator(node: dict[Any, Json], pointer: str) -> None:
    given = node.get("discriminator")
    if given is None:
        return
    name = given.get("propertyName") if isinstance(given, dict) else None
    mapping = given.get("mapping", {}) if isinstance(given, dict) else None
    if not isinstance(name, str) or not isinstance(mapping, dict):
        raise SpecError(
            "discriminator: expected an object with 'propertyName' and perhaps 'mapping'.",
            pointer=f"{pointer}/discriminator",
        )
    for key in ("oneOf", "anyOf"):
        branches = node.get(key)
        if not isinstance(branches, list):
            continue
        for i, branch in enumerate(branches):
            tagged: dict[Any, Json] = {"allOf": [branch], "type": "object", "required": [name]}
            names = _names(branch, mapping)
            if names:
                tagged["properties"] = {name: {"enum": names}}
            branches[i] = tagged


def _names(branch: Json, mapping: dict[str, Json]) -> list[str]:
    """Return the values of the property that choose a branch."""
    reference = branch.get("$ref") if isinstance(branch, dict) else None
    if not isinstance(reference, str):
        return []
    last = reference.rpartition("/")[2]
    return [name for name, value in mapping.items() if value in (reference, last)] or [last]


def _read_content(node: dict[Any, Json], pointer: str) -> None:
    encoding, media = node.get("contentEncoding"), node.get("contentMediaType")
    for key, value in (("contentEncoding", encoding), ("contentMediaType", media)):
        if value is not None and not isinstance(value, str):
            raise SpecError(f"{key}: expected a string, found {value!r:.40}.", pointer=f"{pointer}/{key}")
    pattern = _ENCODINGS.get(encoding.lower()) if encoding else None
    is_json = media is not None and media.partition(";")[0].strip().lower() == "application/json"
    if is_json and pattern is not None:
        raise UnsupportedFeatureError(
            "contentMediaType",
            pointer=f"{pointer}/contentMediaType",
            reason=f"in {encoding} is not supported",
            hint="Ask for the JSON text without contentEncoding.",
        )
    added: list[Json] = [{"pattern": pattern}] if pattern is not None else []
    added += [{"x-grammar": _JSON}] if is_json else []
    if added:
        node["allOf"] = [*(node["allOf"] if isinstance(node.get("allOf"), list) else []), *added]
