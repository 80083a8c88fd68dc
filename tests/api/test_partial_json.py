"""Unfinished JSON: only what can't change any more is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.partial_json import PartialJson
from tests.strategies import fixed

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-999, 999)
    | st.floats(-1e9, 1e9)
    | st.text('ab"\\é\n', max_size=4)
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('k/~"', max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def resolve(document: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def check_against(part: Any, whole: Any, open_pointers: set[str], pointer: str = "") -> None:
    """Everything in ``part`` equals ``whole``, except that open containers may hold less."""
    if pointer not in open_pointers:
        assert part == whole and type(part) is type(whole)
    elif isinstance(part, dict):
        assert list(part) == list(whole)[: len(part)]
        for key, value in part.items():
            check_against(
                value, whole[key], open_pointers, pointer + "/" + key.replace("~", "~0").replace("/", "~1")
            )
    else:
        assert len(part) <= len(whole)
        for place, value in enumerate(part):
            check_against(value, whole[place], open_pointers, f"{pointer}/{place}")


@fixed(150)
@given(DOCUMENTS, st.sampled_from([None, 2]))
def test_every_cut_shows_finished_parts_only(document: Any, indent: int | None) -> None:
    """At every cut of a document what is shown is final, apart from the containers named as open."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    reader = PartialJson()
    for character in text:
        reader.feed(character)
        value, pointers = reader.value(), reader.open_pointers()
        if isinstance(value, dict | list):
            check_against(value, document, set(pointers))
            assert all(isinstance(resolve(value, pointer), dict | list) for pointer in pointers)
    if isinstance(document, dict | list):
        assert reader.value() == document and reader.open_pointers() == ()


@fixed(50)
@given(DOCUMENTS, st.integers(1, 7))
def test_pieces_of_any_size(document: Any, size: int) -> None:
    """How the text is cut into pieces makes no difference."""
    text = json.dumps(document)
    one, many = PartialJson(), PartialJson()
    one.feed(text)
    for begin in range(0, len(text), size):
        many.feed(text[begin : begin + size])
    assert one.value() == many.value()


@pytest.mark.parametrize(
    ("text", "value", "pointers"),
    [
        ("", None, ()),
        ('{"a": 1', {}, ("",)),
        ('{"a": 12,', {"a": 12}, ("",)),
        ('{"a": "x', {}, ("",)),
        ('{"a": "x\\"', {}, ("",)),
        ('{"a/b": [true, {"c~": {', {"a/b": [True, {"c~": {}}]}, ("", "/a~1b", "/a~1b/1", "/a~1b/1/c~0")),
        ("[1, nul", [1], ("",)),
        ("[]", [], ()),
    ],
)
def test_cuts(text: str, value: Any, pointers: tuple[str, ...]) -> None:
    """Numbers at the end, open strings and keys without values are not shown."""
    reader = PartialJson()
    reader.feed(text)
    assert reader.value() == value
    assert reader.open_pointers() == pointers


@pytest.mark.parametrize("text", ["}", "[1}x}", '{"a" "b"', "[nul]", "{1:2}", '{"a":1,2', '{"a":1}]'])
def test_text_that_is_no_json_does_no_harm(text: str) -> None:
    """Text that can't be JSON stops the reader; what was finished stays."""
    reader = PartialJson()
    reader.feed(text)
    reader.feed('{"b": 2}')
    reader.value()
    reader.open_pointers()


def test_depth_has_no_limit() -> None:
    """A hundred thousand nested arrays are read and copied without recursion."""
    reader = PartialJson()
    reader.feed("[" * 100_000)
    value, depth = reader.value(), 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 99_999


def test_values_shown_are_copies() -> None:
    """A caller that changes a shown value doesn't change later ones."""
    reader = PartialJson()
    reader.feed('{"a": [1, ')
    reader.value()["a"].append("mine")
    reader.feed("2]}")
    assert reader.value() == {"a": [1, 2]}
