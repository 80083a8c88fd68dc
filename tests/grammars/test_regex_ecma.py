"""ECMA-262's dialect, as JSON Schema's ``pattern``: a search, with its own classes and escapes."""

from __future__ import annotations

import json
import random
import re
from gzip import open as open_gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars.errors import (
    EmptyLanguageError,
    LimitExceededError,
    SpecError,
    UnsupportedFeatureError,
)
from constrain.grammars.ir import ANY_TEXT, Concatenation, Literal, Pattern, pattern_grammar
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_ecma
from constrain.tokenizer_index.arena import Arena, byte_arena
from constrain.tokenizer_index.network import build_network
from tests.reference.patterns import after, is_alive, is_nullable, matches, start
from tests.strategies import fixed


def read(pattern: str) -> Pattern:
    return parse_ecma(pattern, watch=Watch(Limits(compile_seconds=60)))


@pytest.mark.parametrize(
    ("pattern", "accepted", "rejected"),
    [
        ("[0-9]{2}", ["12", "room 12b", "a\n12"], ["a1b2", ""]),
        (
            "^\\/api\\/v[0-9]+(\\/[a-z]+)*$",
            ["/api/v1", "/api/v22/users/list"],
            ["api/v1", "/api/v", "/api/v1/"],
        ),
        ("^a$", ["a"], ["a\n", "\na", "a\nb", "b\na\nb"]),
        ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
        ("(^|x)y", ["y", "yz", "axy"], ["ay", ""]),
        ("(?:^|\\r?\\n)A(?:$|\\r?\\n)", ["A", "x\nA\ny", "A\n"], ["xA", "A x"]),
        ("a.c", ["abc", "a😀c", "a\x85c"], ["a\nc", "a\rc", "a\u2028c", "a\u2029c"]),
        ("^\\d$", ["7"], ["٣", "a"]),
        ("^\\w$", ["_", "Z"], ["é", "ſ", "-"]),
        ("^\\W$", ["é", "-", "\n"], ["a"]),
        ("^\\s$", [" ", "\t", "\ufeff", "\u00a0", "\u2028", "\u3000"], ["\x1c", "\x85", "x"]),
        ("^\\S$", ["\x1c", "\x85", "é"], ["\ufeff", " "]),
        ("^\\p{Lu}\\P{Lu}$", ["Éa"], ["éa", "ÉÉ"]),
        ("^\\p{Script=Greek}+$", ["αβγ"], ["abc"]),
        ("^[\\p{L}\\d-]+$", ["é-1"], ["!"]),
        ("^\\cJ\\x41\\u0042\\u{43}\\u{1F600}\\0$", ["\nABC😀\0"], ["ABC"]),
        ("^\\ud83d\\ude00[\\ud83d\\ude00-\\ud83d\\ude4f]$", ["😀🙏"], ["😀a"]),
        ("^[😀-🙏]$", ["😃"], ["a", "😀😀"]),
        ("^[]$|^[^]$", ["x", "\n"], ["", "xx"]),
        ("^[\\b]\\t[\\-a]$", ["\b\t-"], ["b\t-"]),
        ("^[\\w-.]$", ["-", ".", "a"], ["!"]),
        ("^[a-]$|^[-b]$|^[a-\\d]$", ["-", "b", "5"], ["c"]),
        ("^a{,2}$", ["a{,2}"], ["a", ""]),
        ("^a{2$|^}$|^]$|^{x}$", ["a{2", "}", "]", "{x}"], ["aa"]),
        (
            "^\\$\\^\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/\\-\\_$".replace("\\_", "_"),
            ["$^.*+?()[]{}|/-_"],
            [""],
        ),
        ("^(?<year>\\d{4})-(?<m>\\d\\d)$", ["2024-02"], ["24-02"]),
        ("^(?P<n>a)$", ["a"], ["P"]),
        ("\\bfoo\\b", ["foo", "a foo b", "foo-", "éfoo"], ["foox", "xfoo"]),
        ("^\\B$|a\\Ba", ["", "aa"], ["a", "a a"]),
        (
            "^(?!.*://)(?=.{1,20}$)((.{1,6}\\.){1,3}(?![0-9]*$)[a-z0-9-]+\\.?)$",
            ["a.b.c", "abc.d1."],
            ["a.1", "a://b", "a"],
        ),
        ("^((?!(c|C)(l|L)y).)*$", ["cats", ""], ["a Cly", "cLy"]),
        ("(?<=a+)b", ["aab"], ["b", "cb"]),
        ("(?<!a|bc)d", ["d", "bd"], ["ad", "bcd"]),
        ("^(?=a)*b$", ["b"], ["a"]),
        ("(?i)^straße$", ["STRASSE".replace("SS", "ß"), "STRAẞE", "ſtraße"], ["strasse"]),
        ("^(?i:k)[a-b]$", ["Ka", "\u212ab"], ["KA"]),
        ("^(?s:.)(?-s:.)$", ["\na"], ["a\n"]),
        ("(?m:^a$)", ["a", "x\na\ny", "x\u2028a"], ["xa"]),
        ("", ["", "x"], []),
        ("a|", ["", "b"], []),
        ("^$", [""], ["a", "\n"]),
        ("$^", [""], ["a"]),
        (".*a.*", ["xay", "\na"], ["b"]),
        ("^.*$", ["x", ""], ["a\nb"]),
        ("^\\08$|^\\7$|^\\101$", ["\x008", "\x07", "A"], ["0"]),
        ("x*", ["", "y"], []),
    ],
)
def test_meaning(pattern: str, accepted: list[str], rejected: list[str]) -> None:
    """Each form has ECMA-262's meaning, and a match anywhere is enough."""
    found = read(pattern)
    for text in accepted:
        assert matches(found, text.encode()), text
    for text in rejected:
        assert not matches(found, text.encode()), text


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[",
        "[b-a]",
        "a**",
        "a*+",
        "*",
        "^*",
        "a{2,1}",
        "\\",
        "\\u{110000}",
        "\\u12",
        "\\x1",
        "\\c1",
        "\\A",
        "a\\Z",
        "\\z",
        "\\q",
        "\\p",
        "\\p{Foo}",
        "(?>a)",
        "(?#x)",
        "(?<1>a)",
        "a(?i)",
        "(?i-i:a)",
        "(?-:a)",
        "(?q:a)",
        "(?<a",
        "\\b+",
    ],
)
def test_malformed_patterns_are_refused(pattern: str) -> None:
    """A malformed pattern is an error with pointer, source and offset."""
    with pytest.raises(SpecError) as caught:
        parse_ecma(pattern, watch=Watch(Limits()), pointer="#/properties/a/pattern")
    assert caught.value.pointer == "#/properties/a/pattern"
    assert caught.value.source == pattern and caught.value.offset is not None


@pytest.mark.parametrize(
    "pattern", ["(a)\\1", "\\1(a)", "(?<n>a)\\k<n>", "\\k<n>(?<n>a)", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10"]
)
def test_back_references_are_refused(pattern: str) -> None:
    """A back-reference is unsupported, wherever its group stands."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        read(pattern)
    assert caught.value.offset == pattern.index("\\")


def test_searches_stay_small() -> None:
    """Any text around a search absorbs what it covers."""
    assert read("abc") == Concatenation((ANY_TEXT, Literal(b"abc"), ANY_TEXT))
    assert read(".*abc[\\s\\S]*") == Concatenation((ANY_TEXT, Literal(b"abc"), ANY_TEXT))
    assert read("x?a+") == Concatenation((ANY_TEXT, Literal(b"a"), ANY_TEXT))
    assert read("^abc") == Concatenation((Literal(b"abc"), ANY_TEXT))
    assert read("^abc$") == Literal(b"abc")
    assert read("[a-z]*") == ANY_TEXT == read("") == read("a|b*") == read("^")


# ------------------------------------------------------------------------------------ against re

# Forms that mean the same in both dialects under ``(?a)``; ``$`` is translated.
ATOMS = ["a", "b", "a", "-", ".", "[ab]", "[^a]", r"\w", r"\W", r"\d", r"\x61", "[a-]", r"\/", "1"]
ANCHORS = ["^", "$", "^", "$", r"\b", r"\B"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{2,}", "{0}", "{0,1}"]
BEHIND = ["a", "b", "[ab]", ".", r"\w", r"\b", "^", "(?<=a)"]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    pieces = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 2, 3]))):
        kind = draw(st.integers(0, 9 if depth else 6))
        if kind <= 4:
            piece = draw(st.sampled_from(ATOMS))
        elif kind == 5:
            pieces.append(draw(st.sampled_from(ANCHORS)))
            continue
        elif kind == 6:
            inside = "".join(draw(st.lists(st.sampled_from(BEHIND), min_size=1, max_size=3)))
            pieces.append(draw(st.sampled_from(["(?<=", "(?<!"])) + inside + ")")
            continue
        else:
            piece = draw(st.sampled_from(["(?:", "(", "(?=", "(?!"])) + draw(patterns(depth - 1)) + ")"
        if draw(st.integers(0, 9)) < 4:
            piece += draw(st.sampled_from(QUANTIFIERS)) + draw(st.sampled_from(["", "", "?"]))
        pieces.append(piece)
    pattern = "".join(pieces)
    return pattern if draw(st.integers(0, 3)) else pattern + "|" + draw(patterns(0))


@fixed(300)
@given(patterns(), st.lists(st.text("aab-1é", max_size=5), min_size=12, max_size=12))
def test_generated_patterns_agree_with_re(pattern: str, texts: list[str]) -> None:
    """What means the same in Python's dialect is found in the same texts by `re.search`."""
    theirs = re.compile("(?a)" + pattern.replace("$", r"\Z"))
    ours = read(pattern)
    for text in texts:
        # Before Python 3.14, \B never holds in the empty text.
        if text or "\\B" not in pattern:
            assert matches(ours, text.encode()) == (theirs.search(text) is not None), text


def member(arena: Arena, rng: random.Random) -> str | None:
    """A random member in printable ASCII, if a short walk finds one."""
    state = arena.start
    data = b""
    for _ in range(40):
        if arena.is_accepting(state) and rng.random() < 0.3:
            break
        live = [byte for byte in np.flatnonzero(arena.live_bytes(state)).tolist() if 0x20 <= byte < 0x7F]
        if not live:
            break
        byte = rng.choice(live)
        state, _ = arena.step_bytes(state, bytes((byte,)))
        data += bytes((byte,))
    return data.decode() if arena.is_accepting(state) else None


def maskbench_patterns(shared: Path) -> list[str]:
    """The distinct patterns of real schemas."""
    found: set[str] = set()
    path = next((shared / "data").glob("maskbench_*.jsonl.gz"), None)
    if path is None:
        pytest.skip("no MaskBench schemas")
    with open_gzip(path, "rt", encoding="utf-8") as lines:
        todo = [json.loads(line) for line in lines]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "pattern" and isinstance(inner, str):
                    found.add(inner)
                if key == "patternProperties" and isinstance(inner, dict):
                    found.update(inner)
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return sorted(found)


def test_patterns_of_real_schemas(shared: Path) -> None:
    """Nearly all patterns of real schemas are read, and agree with `re.search` on members and others."""
    rng = random.Random(7)
    all_patterns = maskbench_patterns(shared)
    refused = 0
    checked = 0
    for pattern in all_patterns:
        try:
            ours = read(pattern)
        except SpecError:
            refused += 1
            continue
        if rng.random() > 0.2:
            continue
        try:
            # The texts have no newline, so ``$`` means the same in both dialects.
            theirs = re.compile("(?a)" + pattern)
        except re.error:
            continue
        try:
            arena = byte_arena(build_network(pattern_grammar(ours), Watch(Limits())))
        except EmptyLanguageError:
            assert not any(theirs.search(text) for text in ("", "a", "1", "a b", "x-1"))
            continue
        for _ in range(3):
            text = member(arena, rng)
            if text is None:
                continue
            place = rng.randrange(len(text) + 1)
            for other in (
                text,
                text[:place] + rng.choice("a1-_ ./X") + text[place:],
                text[:place] + text[place + 1 :],
            ):
                checked += 1
                state, _ = arena.step_bytes(arena.start, other.encode())
                is_member = state >= 0 and arena.is_accepting(state)
                assert is_member == (theirs.search(other) is not None), (pattern, other)
    assert refused <= len(all_patterns) // 100
    assert checked > 500


def test_a_prefix_of_a_member_is_alive() -> None:
    """Searches never die before the text ends."""
    term = after(start(read("foo$")), b"anything")
    assert is_alive(term) and not is_nullable(term)


def test_too_deep_a_nest_reaches_a_limit() -> None:
    """The limit on nesting holds here too."""
    with pytest.raises(LimitExceededError):
        read("(" * 3000 + ")" * 3000)
