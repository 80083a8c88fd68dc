"""What the lexing of programs asks of the engine, in small."""

from __future__ import annotations

import pytest

import constrain

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
