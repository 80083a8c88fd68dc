"""Spellings of JSON strings against the standard library's reader."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars.ir import CharacterClass, Complement, Intersection, Literal, Pattern, Repeat
from constrain.grammars.json_schema.strings import (
    STRING,
    canonical,
    excluding,
    of_length,
    quoted,
)
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_ecma
from tests.reference import patterns
from tests.strategies import fixed

ALPHABET = 'ab"\\/\n\b\x00\x1f\x7f<é日\ud7ff\ue000\uffff\U00010000😀\U0010ffff'
_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\b": "\\b"}

texts = st.text(st.sampled_from(ALPHABET), max_size=3)


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a text and one of its spellings as a JSON string."""
    text = draw(texts)
    out = []
    for char in text:
        options = [char] if char >= " " and char not in '"\\' else []
        if char in _SHORT:
            options.append(_SHORT[char])
        units = char.encode("utf-16-be").hex()
        escape = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
        options += [escape, escape.upper().replace("U", "u")]
        out.append(draw(st.sampled_from(options)))
    data = f'"{"".join(out)}"'.encode()
    assert json.loads(data) == text
    return text, data


@fixed(300)
@given(spelled(), texts)
def test_every_spelling_of_a_text_is_that_text(pair: tuple[str, bytes], other: str) -> None:
    """Free strings take every spelling; literals, classes and lengths see the characters it stands for."""
    text, data = pair
    assert patterns.matches(STRING, data)
    assert patterns.matches(quoted(Literal(other.encode()), False), data) == (text == other)
    assert patterns.matches(of_length(1, 2), data) == (1 <= len(text) <= 2)
    assert patterns.matches(of_length(2, None), data) == (len(text) >= 2)
    ranges = tuple((ord(char), ord(char)) for char in sorted(set(other)))
    in_class = (
        quoted(Repeat(CharacterClass(ranges), 0, None), False) if ranges else quoted(Literal(b""), False)
    )
    assert patterns.matches(in_class, data) == (set(text) <= set(other))


@fixed(300)
@given(spelled(), texts, texts)
def test_no_spelling_of_an_excluded_text_is_taken(pair: tuple[str, bytes], key: str, other: str) -> None:
    """Names other than given ones never decode to one of those, and are refused only with needless escapes."""
    text, data = pair
    taken = patterns.matches(excluding((key, other)), data)
    if taken:
        assert text not in (key, other)
    elif text not in (key, other):
        assert re.search(rb"\\u00(61|62)", data, re.IGNORECASE)


@fixed(300)
@given(texts, texts, st.booleans())
def test_canonical_spellings_are_those_of_serialisers(text: str, other: str, is_ascii: bool) -> None:
    """Constants are taken as json.dumps writes them, with or without escapes beyond ASCII."""
    data = json.dumps(other, ensure_ascii=is_ascii).encode()
    assert patterns.matches(canonical(text), data) == (text == other)
    assert patterns.matches(quoted(Literal(text.encode()), True), data) == (text == other)


@pytest.mark.parametrize(
    "data",
    [
        b'"\\ud800"',
        b'"\\udc00"',
        b'"\\ud800\\u0041"',
        b'"\\ud800\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\n"',
        b'"\x00"',
        b'"\\q"',
        b'"\\u00"',
        b'"\\x41"',
        b'"',
        b'""a',
        b"''",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
    ],
)
def test_what_is_no_json_string_is_refused(data: bytes) -> None:
    """Lone surrogates, raw control characters, bad escapes and invalid UTF-8 are in no string."""
    for pattern in (STRING, of_length(0, 9), excluding(("a",))):
        assert not patterns.matches(pattern, data)


EXPRESSIONS = [
    "^[a-b]*$",
    "[^a]",
    "^é",
    "^(?!a)",
    "a(?=\\n)",
    "^[\\ud83d\\ude00/]+$",
    "^.$",
    "\\\\",
    'b$|^"',
    "^\\W*$",
]


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_patterns_see_characters_not_spellings(source: str) -> None:
    """A pattern takes a spelling exactly if it takes the text, here as spelled by json.dumps and in escapes."""
    watch = Watch(Limits())
    raw = parse_ecma(source, watch=watch)
    every, few = quoted(raw, False), quoted(raw, True)
    for first in ("", *ALPHABET):
        for second in ("", "a", "\n", "😀"):
            text = first + second
            expected = patterns.matches(raw, text.encode())
            for is_ascii in (True, False):
                data = json.dumps(text, ensure_ascii=is_ascii).encode()
                assert patterns.matches(every, data) == expected, text
                assert patterns.matches(few, data) == expected, text
            units = text.encode("utf-16-be").hex()
            escaped = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
            assert patterns.matches(every, f'"{escaped}"'.encode()) == expected, text


def test_conjunctions_and_complements_are_spelled_too() -> None:
    """Replacing characters by spellings goes through intersections and complements."""
    letters: Pattern = Repeat(CharacterClass(((0x61, 0x63),)), 0, None)
    pattern = quoted(Intersection((letters, Complement(Literal(b"ab")))), False)
    for data, expected in ((b'"a"', True), (b'"ab"', False), (b'"\\u0061b"', False), (b'"\\u0063"', True)):
        assert patterns.matches(pattern, data) == expected
