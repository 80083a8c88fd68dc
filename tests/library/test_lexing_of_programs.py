"""What the lexing of programs asks of the engine, in small."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import constrain
from tests.reference.vocabularies import with_all_bytes

LINES = r"""
start: (NAME (PLUS NAME)* END)*
END: /\n+/
NAME: /[a-z]+/
PLUS: "+"
%ignore END
%ignore / +/
"""

BLOCKS = r"""
start: (NAME "(" NAME ("," NAME)* ")" _NEWLINE)+
NAME: /[a-z]+/
_NEWLINE: /\n[ ]*(?:(?:#[^\n]*)?\n[ ]*)*/
%ignore / +/
%ignore /#[^\n]*/
%declare _INDENT _DEDENT
"""


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("a\nb\n", True), ("a\n+ b\n", True), ("a +\nb\n", True), ("a b\n", False), ("a", False)],
)
def test_line_breaks_that_may_end_a_statement_or_not(text: str, is_right: bool) -> None:
    """A terminal that is ignored and used by rules is read both ways, as JavaScript's line breaks are."""
    assert constrain.grammar(LINES, max_ignored=None).matches(text) is is_right


@pytest.mark.parametrize(
    ("text", "is_right"), [("f(a, # why\n  b)\n", True), ("f(a) # why\n", True), ("f(a # why b)\n", False)]
)
def test_comments_between_brackets(text: str, is_right: bool) -> None:
    """Between brackets a newline ends a comment, though it ends no line."""
    layout = {"newline": "_NEWLINE", "indent": "_INDENT", "dedent": "_DEDENT", "brackets": [("(", ")")]}
    assert constrain.grammar(BLOCKS, indentation=layout).matches(text) is is_right


def test_masks_of_a_program_outlive_arenas() -> None:
    """Masks stay right while a Python file is read by arenas that fill up and are begun anew, also after going back."""
    spec = constrain.grammar_library("python")
    vocabulary = with_all_bytes(
        [b"    ", b"self", b"def ", b"):\n", b" = ", b"return ", b"\n\n", b"('"]
    ).build()
    text = Path(textwrap.__file__).read_text(encoding="utf-8").encode()[:4_000]
    large = constrain.compile(spec, vocabulary, cache=False)
    start = large.n_bytes
    bitmask = constrain.allocate_token_bitmask(2, vocabulary.size)
    small = constrain.compile(
        spec, vocabulary, cache=False, limits=constrain.Limits(arena_bytes=start + 200_000)
    )
    first, one, other = small.arena, small.matcher(), large.matcher()
    arenas = [first]
    for place, byte in enumerate(text):
        one.fill_next_token_bitmask(bitmask, 0)
        other.fill_next_token_bitmask(bitmask, 1)
        assert (bitmask[0] == bitmask[1]).all()
        assert one.accept_token(8 + byte) and other.accept_token(8 + byte)
        if small.arena is not arenas[-1]:
            arenas.append(small.arena)
            for matcher in (one, other):
                matcher.rollback(min(place, 40))
            for again in text[place + 1 - min(place, 40) : place + 1]:
                one.fill_next_token_bitmask(bitmask, 0)
                other.fill_next_token_bitmask(bitmask, 1)
                assert (bitmask[0] == bitmask[1]).all()
                assert one.accept_token(8 + again) and other.accept_token(8 + again)
        assert small.n_bytes <= start + 200_000
    assert len(arenas) > 2
