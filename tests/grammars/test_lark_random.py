"""Random grammars in Lark's language have the texts that Lark's Earley parser takes."""

from __future__ import annotations

import itertools
import random

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.errors import EmptyLanguageError
from tests.strategies import fixed

LETTERS = "abc"
TEXTS = ["".join(text) for length in range(5) for text in itertools.product(LETTERS, repeat=length)]

atoms = st.sampled_from(
    ['"a"', '"b"', '"ab"', "/b+/", "/a|bc/", "/[ab]c?/", "A", "B", "x", "y", "z", '"a".."b"', "t{x}", "t{A}"]
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw the body of a rule."""
    if depth == 0:
        return draw(atoms)
    parts = draw(
        st.lists(
            st.one_of(
                atoms,
                st.tuples(
                    expressions(depth - 1), st.sampled_from(["({})*", "({})+", "({})?", "[{}]", "({})"])
                ).map(lambda pair: pair[1].format(pair[0])),
                st.tuples(atoms, st.sampled_from(["~2", "~0..2", "~1..3"])).map("".join),
            ),
            max_size=3,
        )
    )
    alternatives = [" ".join(parts), *draw(st.lists(st.lists(atoms, max_size=2).map(" ".join), max_size=1))]
    return " | ".join(alternatives)


@st.composite
def grammar_texts(draw: st.DrawFn) -> str:
    """Draw a grammar, which may be ambiguous, cyclic, left recursive, and have rules that are never done."""
    rules = [f"{name}: {draw(expressions())}" for name in ("start", "x", "y", "z")]
    template = draw(st.sampled_from(["u", 'u "c"', "u t{B} | u", "x u*"]))
    terminals = ["A: " + draw(st.sampled_from(['"a"', "/c+/", '"c" B?'])), 'B: "b" | "ca"']
    return "\n".join([*rules, f"t{{u}}: {template}", *terminals, ""])


def earley(text: str) -> set[str] | None:
    """Return the members among `TEXTS`; ``None`` if Lark refuses the grammar."""
    try:
        parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    except lark.exceptions.LarkError:
        return None
    found = set()
    for word in TEXTS:
        try:
            parser.parse(word)
        except lark.exceptions.UnexpectedInput:
            continue
        found.add(word)
    return found


@fixed(60)
@given(grammar_texts())
def test_any_segmentation_is_that_of_earley(text: str) -> None:
    """With ``lexing="any"`` all short texts are judged as by Lark's Earley parser with its complete lexer."""
    expected = earley(text)
    if expected is None:
        return
    try:
        spec = constrain.grammar(text, lexing="any")
    except EmptyLanguageError:
        assert expected == set(), text
        return
    assert {word for word in TEXTS if spec.matches(word)} == expected, text


RECURSION = {
    "left": 'start: start "," x | x\nx: "a" | "b"',
    "right": 'start: x "," start | x\nx: "a" | "b"',
    "middle": 'start: "(" start ")" | x\nx: "a" start? "b"',
    "hidden left": 'start: y start "a" | "b"\ny: "c"?',
    "cyclic": 'start: start | x | "a" start\nx: start | "b"',
    "nullable": "start: x y x\nx: y?\ny: x | x x |",
    "ambiguous": 'start: start start | "a" | "b" "c"',
    "mutual": 'start: x\nx: y "a" | "a"\ny: x "b" | start "c"',
}


@pytest.mark.parametrize("name", RECURSION)
def test_recursion(name: str) -> None:
    """All kinds of recursion give the texts that Earley's parser takes, long ones among them."""
    text = RECURSION[name]
    spec = constrain.grammar(text, lexing="any")
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    rng = random.Random(3)
    words = ["".join(rng.choices("abc(),", k=rng.randint(0, 7))) for _ in range(300)]
    words += TEXTS

    def is_member(word: str) -> bool:
        try:
            parser.parse(word)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    assert [word for word in words if spec.matches(word) != is_member(word)] == []
    # A list of thousands costs no stack, left or right recursive.
    if name in ("left", "right"):
        assert spec.matches(",".join("ab" * 2000))
