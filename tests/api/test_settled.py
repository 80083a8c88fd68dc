"""Outputs in JSON while they are written: what is called final is the same in every continuation."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import constrain
from constrain.settled import Follower, Shown
from constrain.tokenizer_index.arena import Arena
from tests.api.table_model import TableModel

BYTES = constrain.Vocabulary.from_tokens([*(bytes([i]) for i in range(256)), None], eos_token_ids=[256])
MOST = 20_000


def compiled(schema: Any, **options: Any) -> constrain.CompiledSpec:
    spec = constrain.json_schema(schema, **{"whitespace": "compact", **options})
    return constrain.compile(spec, BYTES, cache=False)


def members(arena: Arena) -> list[bytes]:
    """Every text of a finite language."""
    found, todo = [], [(arena.start, b"")]
    while todo:
        state, text = todo.pop()
        assert len(found) + len(todo) < MOST
        if arena.is_accepting(state):
            found.append(text)
        for byte in arena.live_bytes(state).nonzero()[0].tolist():
            after, _ = arena.step_bytes(state, bytes([byte]))
            todo.append((after, text + bytes([byte])))
    return found


def places(value: Any, pointer: str = "") -> dict[str, Any]:
    """Every value inside a JSON document, by its pointer."""
    found = {pointer: value}
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found |= places(part, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


ENDS = {"enum": ["x", "yes", "yellow"]}
SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (ENDS, {}),
    ({"type": "boolean"}, {}),
    ({"enum": [True, False, None, 1, 12, 100]}, {}),
    ({"enum": [1, 1.5, 20, "20"]}, {"integers": "any"}),
    ({"const": 10}, {"integers": "any"}),
    ({"enum": ["é", "ê", "日本", "日", "😀", '"', "\\", "\n"]}, {}),
    ({"const": 'ï"😀\\'}, {}),
    ({"enum": [{"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}, []]}, {}),
    (
        {
            "properties": {"k": {"const": "cat"}, "n": {"type": "boolean"}, "e": ENDS},
            "required": ["k", "e"],
            "type": "object",
            "additionalProperties": False,
        },
        {},
    ),
    ({"type": "array", "items": ENDS, "minItems": 1, "maxItems": 3}, {}),
    ({"type": "array", "prefixItems": [ENDS, {"const": [1]}], "minItems": 2, "items": False}, {}),
    (
        {
            "type": "object",
            "propertyNames": {"enum": ["a", "b"]},
            "additionalProperties": {"enum": [1, 12]},
            "maxProperties": 2,
        },
        {},
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "boolean"}},
            "patternProperties": {"^[xy]$": {"enum": [1, {"z": 2}]}},
            "additionalProperties": False,
            "maxProperties": 2,
        },
        {},
    ),
    ({"anyOf": [{"type": "array", "items": False}, {"const": [[]]}, {"const": [[], 1]}]}, {}),
    ({"type": "integer", "minimum": -3, "maximum": 12}, {}),
    ({"enum": [[1], [1, []]]}, {"whitespace": " ?"}),
    ({"type": "integer", "multipleOf": 5, "minimum": 10, "maximum": 10}, {}),
]


@pytest.mark.parametrize(("schema", "options"), SCHEMAS, ids=range(len(SCHEMAS)))
def test_final_values_are_those_of_every_continuation(schema: Any, options: dict[str, Any]) -> None:
    """After every beginning: what is final is so in all members that begin so, and what is so and begun is final."""
    spec = compiled(schema, **options)
    texts = members(spec.arena)
    documents = {text: places(json.loads(text)) for text in texts}
    beginnings = {text[:n] for text in texts for n in range(len(text) + 1)}
    n_final = 0
    for begin in beginnings:
        follower = Follower(spec.arena)
        follower.feed(begin)
        settled = follower.settled()
        following = [documents[text] for text in texts if text.startswith(begin)]
        found, still_open = places(settled.value()), set(settled.open_pointers())
        final = set(settled.final_pointers())
        for pointer in final:
            assert pointer not in still_open
            assert all(pointer in one and same(found[pointer], one[pointer]) for one in following), (
                begin,
                pointer,
            )
        n_final += len(final)
        # What is begun and the same everywhere is final.
        open_value = _begun(begin)
        if open_value is not None and all(open_value in one for one in following):
            values = [one[open_value] for one in following]
            if all(same(value, values[0]) for value in values):
                assert any(open_value == one or open_value.startswith(f"{one}/") for one in final)
    assert n_final


def _begun(begin: bytes) -> str | None:
    """Return the pointer of the scalar that a text ends in, as far as the reader of finished parts tells."""
    text = begin.decode(errors="ignore")
    path: list[str | int] = []
    keys: list[bool] = []
    is_string = is_escaped = False
    key, scalar = "", ""
    for char in text:
        if is_string:
            scalar += char
            if is_escaped:
                is_escaped = False
            elif char == "\\":
                is_escaped = True
            elif char == '"':
                is_string = False
        elif char == '"':
            is_string, scalar = True, char
        elif char in "{[":
            keys.append(char == "{")
            path.append("" if char == "{" else 0)
            scalar = ""
        elif char in "]}":
            keys.pop()
            path.pop()
            scalar = ""
        elif char == ":":
            key = json.loads(scalar)
            path[-1] = key.replace("~", "~0").replace("/", "~1")
            scalar = ""
        elif char == ",":
            if keys[-1]:
                path[-1] = ""
            else:
                path[-1] = int(path[-1]) + 1
            scalar = ""
        else:
            scalar += char
    if not scalar or (path and path[-1] == ""):
        return None
    return "".join(f"/{part}" for part in path)


TOKENS = [bytes([byte]) for byte in range(32, 127)] + [b'{"', b'": ', b'", "', b"true", b"ye", b'"}', b"low"]
SHOWN = {
    "type": "object",
    "properties": {
        "level": {"enum": ["yes", "yellow", "no"]},
        "flag": {"type": "boolean"},
        "items": {"type": "array", "items": {"enum": ["low", "high"]}, "minItems": 1, "maxItems": 3},
        "kind": {"const": "end"},
    },
    "required": ["level", "flag", "items", "kind"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(6))
def test_streams_show_each_value_once_it_is_final(seed: int) -> None:
    """A value is named as final once, as soon as it is, and stays as it was."""
    model = TableModel(TOKENS)
    *parts, last = constrain.stream(model, "a", SHOWN, max_tokens=90, seed=seed)
    whole = places(last.value)
    named: list[str] = []
    for part in parts:
        assert not part.is_complete
        found = places(part.value)
        for pointer in part.final:
            assert pointer not in named
            named.append(pointer)
        assert all(same(found[pointer], whole[pointer]) for pointer in named if pointer in found)
    assert set(named) >= {"/level", "/flag", "/kind"} or "" in named
    written = re.compile('"flag" *: *[tf]')  # the first letter says which
    assert all(bool(written.search(part.text)) == ("flag" in (part.value or {})) for part in parts)


def test_streams_show_what_checks_leave() -> None:
    """Where a check takes text back, what was shown of it counts no more; items come one by one."""
    model = TableModel(TOKENS)
    spec = constrain.json_schema(SHOWN).where(lambda value: len(value["items"]) != 1, when="value")
    *parts, last = constrain.stream(model, "a", spec, max_tokens=90, seed=2)
    assert last.is_complete and len(last.value["items"]) > 1
    final = [part for part in parts if last.text.startswith(part.text)]
    lengths = [len(part.value["items"]) for part in final if part.value and "items" in part.value]
    assert lengths == sorted(lengths)
    for part in final:
        for pointer in part.final:
            assert same(places(part.value)[pointer], places(last.value)[pointer])


def test_members_that_may_be_replaced_are_not_final() -> None:
    """A member whose name may come again is shown as open until its object ends."""
    spec = compiled({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    follower = Follower(spec.arena)
    follower.feed(b'{"a":1,"b":2,')
    assert follower.settled().value() == {"a": 1, "b": 2}
    assert follower.settled().open_pointers() == ("", "/b")
    assert list(follower.settled().final_pointers()) == ["/a"]


def test_a_full_table_is_made_anew() -> None:
    """Where the tables reach their limit, the text is read again in new ones."""
    limits = constrain.Limits(arena_bytes=400_000)
    spec = constrain.json_schema(
        {"type": "array", "items": {"type": "integer", "maximum": 10**9}}, limits=limits
    )
    shown = Shown(constrain.compile(spec, BYTES, cache=False, limits=limits))
    text = b"["
    for n in range(60):
        text += f"{n * 7919},".encode()
        settled, final = shown.read(text)
        assert final == (f"/{n}",)
    assert settled.value() == [n * 7919 for n in range(60)]
