"""Terminals: what a lexeme is, by Python's `re` as an independent judge."""

from __future__ import annotations

import itertools
import re

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.errors import UnsupportedFeatureError
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.build import accepts
from constrain.grammars.regex.lazy import LexemeReader, eager
from constrain.grammars.regex.lookaround import lower
from tests.strategies import fixed


def taken(pattern: str, text: str) -> int | None:
    """Return the length of the longest member, after `eager`, that begins ``text``."""
    tree = eager(LexemeReader(pattern, 0, Watch(Limits())).read())
    language = lower(tree, pattern, Watch(Limits()))
    return max((n for n in range(len(text) + 1) if accepts(language, text[:n])), default=None)


LAZY = {
    r'".*?"': '"a',
    r'".*?(?<!\\)(\\\\)*?"': '"\\a',
    r"/\*(.|\n)*?\*/": "/*a",
    "a*?b+": "ab",
    "(a|b)+?c": "abc",
    "a??b": "ab",
    "a.*?": "ab",
    "(a*?b)*c": "abc",
    "([ab]*?b){2}[bc]": "abc",
    "([ab]*?b){1,3}?[bc]": "abc",
    "([ab]*?c){0,2}[ba]": "abc",
    "(([ab]+?c?){1,2}?b)+?": "abc",
}


@pytest.mark.parametrize("pattern", LAZY)
def test_lazy_repeats_take_what_re_takes(pattern: str) -> None:
    """The longest member that begins a text is what `re.match` takes from it."""
    for length in range(7):
        for letters in itertools.product(LAZY[pattern], repeat=length):
            text = "".join(letters)
            found = re.match(pattern, text)
            assert taken(pattern, text) == (None if found is None else found.end()), text


pieces = st.sampled_from(["a", "b", "[ab]", "(a|b)", "ab", "(ab)"])
marks = st.sampled_from(["", "", "*", "+", "*?", "+?", "??", "{1,2}?"])


@fixed(60)
@given(st.lists(st.tuples(pieces, marks), min_size=1, max_size=4), st.text("abc", max_size=7))
def test_random_lazy_repeats(parts: list[tuple[str, str]], text: str) -> None:
    """With a last part that nothing before it can match, laziness is all that tells which match is first."""
    pattern = "".join(f"(?:{piece}){mark}" if len(piece) > 1 else piece + mark for piece, mark in parts) + "c"
    found = re.match(pattern, text)
    assert taken(pattern, text) == (None if found is None else found.end()), pattern


EDGES = [
    ('start: IF " " NAME\nIF: /if\\b/\nNAME: /[a-z]+/', ["if x"], ["ifx"]),
    (
        'start: s+\ns: IF NAME ";" | NAME "=" NAME ";"\nIF: /if\\b/\nNAME: /[a-z]+/\n%ignore " "',
        ["if x; ifx = y;", "if x;"],
        ["ifx;", "if = ;"],
    ),
    ('start: N ("," N)*\nN: /[0-9]+(?![0-9a-z])/', ["1,23"], ["1a"]),
    ('start: N+\nN: /[0-9]+(?![0-9])/\n%ignore " "', ["1 2", "12"], ["a"]),
    ("start: N\nN: /^[0-9]+$/", ["12"], ["1a"]),
    ("start: L+\nL: /x/\n%ignore /#.*$/m\n%ignore /\\s+/", ["x # a x\nx"], ["# x\n"]),
    ("start: A B\nA: /x(?=y)/\nB: /y+/", ["xyy"], ["xx"]),
    ("start: B A\nA: /(?<!z)x/\nB: /y+/", ["yyx"], ["zx"]),
]


@pytest.mark.parametrize("text, members, others", EDGES)
def test_lookaround_that_is_always_so(text: str, members: list[str], others: list[str]) -> None:
    """Lookaround at the ends of a terminal is taken where what may stand beside it makes it true."""
    spec = constrain.grammar(text)
    assert [member for member in members if not spec.matches(member)] == []
    assert [other for other in others if spec.matches(other)] == []


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('start: IF NAME\nIF: /if\\b/\nNAME: /[a-z]+/\n%ignore " "', "if a", "ifa"),
        ("start: A B\nA: /x(?=y)/\nB: /z?y+/", "xyy", "xzy"),
        ("start: N (N | A)\nN: /[0-9]+(?![a-z])/\nA: /[a-z]+/\n%ignore / +/", "1 a", "1a"),
    ],
)
def test_lookahead_that_the_next_byte_decides_is_enforced(text: str, good: str, bad: str) -> None:
    """A lexeme doesn't end before a byte that its terminal excludes."""
    spec = constrain.grammar(text)
    assert spec.matches(good) and not spec.matches(bad)


@pytest.mark.parametrize(
    "text",
    [
        "start: N+\nN: /^[0-9]$/",
        "start: A B?\nA: /x(?=y)/\nB: /y+/",
        "start: A B\nA: /(x\\b)+/\nB: /y/",
        "start: N+\nN: /\\b[0-9]+\\b/\n%ignore / +/",
        "start: B A\nA: /(?<!yz)x/\nB: /z|y/",
    ],
)
def test_lookaround_that_may_be_otherwise_is_refused(text: str) -> None:
    """What asks of the text around a lexeme what is not always so is refused."""
    with pytest.raises(UnsupportedFeatureError, match="looks") as caught:
        constrain.grammar(text)
    assert caught.value.line == 2 + text.split("\n")[1].startswith("B")


LITERALS = [
    (r'"a\nb"', "a\nb"),
    (r'"\x41\u00e9\t"', "Aé\t"),
    (r'"\""', '"'),
    (r'"\\"', "\\"),
    (r'"\\n"', "\\n"),
    (r'"\d"', "\\d"),
    (r"/\//", "/"),
    (r"/\\\\/", "\\\\"),
    (r'/[^\\"]/', "a"),
    (r"/\x41\n/", "A\n"),
    (r'"Ab"i', "aB"),
    (r"/a b # c/x", "ab"),
    (r"/a.b/s", "a\nb"),
    (r"/\d+/", "12"),
    ('"a".."c"', "b"),
    (r'"\u0041".."Z"', "B"),
]


@pytest.mark.parametrize("literal, member", LITERALS)
def test_escapes_and_flags(literal: str, member: str) -> None:
    """Escapes and flags of strings, ranges and regular expressions have Lark's meaning."""
    for text in (f"start: {literal}", f"start: A\nA: {literal}"):
        spec = constrain.grammar(text)
        assert spec.matches(member), text
        assert not spec.matches(member + "!") and not spec.matches("")


OPERATORS = [
    ('A: /[a-z]+/ & ~("if" | "do")', ["a", "iff", "od"], ["if", "do", ""]),
    ('A: ~/.*b.*/ & "a".."c" ~ 2..3', ["aa", "cac"], ["ab", "a", "dd"]),
    ("A: /[a-c]/{2,3}", ["ab", "abc"], ["a", "abca"]),
    ("A: /[a-c]/{2}", ["ab"], ["a", "abc"]),
    ('A: %regex {"substring_chunks": ["ab", "c", "ab"]} "!"', ["!", "ab!", "abc!", "cab!"], ["b!", "abab!"]),
    ('A: %regex {"substring_words": "the dog, the cat"} "!"', ["dog, the!", " !"], ["dog cat!", "do!"]),
    ('A: %regex {"substring_chars": "abc"} "!"', ["bc!", "a!"], ["ac!"]),
]


@pytest.mark.parametrize("terminal, members, others", OPERATORS)
def test_additions_to_lark(terminal: str, members: list[str], others: list[str]) -> None:
    """Conjunction, negation, counts in braces and parts of texts, as llguidance has them."""
    spec = constrain.grammar(f"start: A\n{terminal}\n")
    assert [member for member in members if not spec.matches(member)] == []
    assert [other for other in others if spec.matches(other)] == []


def test_longest_match_then_priority_then_strings() -> None:
    """The longest lexeme counts; of equally long ones the highest priority, then strings."""
    keyword = constrain.grammar('start: "if" "x" | NAME "y"\nNAME: /[a-w]+/\n%ignore " "')
    assert keyword.matches("if x") and not keyword.matches("if y") and keyword.matches("iff y")
    priority = constrain.grammar('start: A "x" | B "y"\nA: /a+/\nB.1: /[ab]/\n')
    assert priority.matches("ay") and priority.matches("aax") and not priority.matches("ax")
    free = constrain.grammar('start: "if" "x" | NAME "y"\nNAME: /[a-w]+/\n', lexing="any")
    assert free.matches("ify") and free.matches("ifx")


def test_a_longer_match_that_fails_is_not_taken_back() -> None:
    """Where the longer match is complete a text is read as Lark reads it; where it fails Lark goes back, this doesn't."""
    text = 'start: (NUMBER | RANGE | DOT)+\nNUMBER: /{}/\nRANGE: ".."\nDOT: "."'
    for fraction, whole, goes_back in (
        (r"\.[0-9]*", ["1.", ".", "1"], False),
        (r"\.[0-9]+", ["1", "..", "1"], True),
    ):
        written = text.format(f"[0-9]+({fraction})?")
        for lexer in ("contextual", "basic"):
            read = lark.Lark(written, parser="lalr", lexer=lexer).parse("1..1")
            assert [str(child) for child in read.children] == whole
        assert constrain.grammar(written).matches("1..1") == (not goes_back)
        assert constrain.grammar(written).matches("1.5.2")
        assert constrain.grammar(written, lexing="any").matches("1..1")
    pair = 'start: NUMBER ".." NUMBER\nNUMBER: /[0-9]+(\\.[0-9]*)?/'
    with pytest.raises(lark.exceptions.UnexpectedCharacters):
        lark.Lark(pair, parser="lalr").parse("1..1")
    assert not constrain.grammar(pair).matches("1..1") and constrain.grammar(pair).matches("1...1")
