"""What is said about texts that a grammar doesn't have."""

from __future__ import annotations

import constrain

STATEMENTS = """
start: ("if" NAME "then" NAME | "import" NAME | NAME "=" NUMBER) ";"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"""


def test_a_wrong_word_is_named_whole() -> None:
    """Where the first letters of a word fit, what may stand in its place is said too."""
    found = constrain.grammar(STATEMENTS).explain("if a that b;")
    assert (found.offset, found.found, found.expected) == (7, "a", ("'then'",))
    assert found.word == "" and found.instead == ()  # nothing else may stand there
    found = constrain.grammar('start: "on" | "off" | /[0-9]+/').explain("odd")
    assert (found.offset, found.expected) == (1, ("'on'", "'off'"))
    assert found.word == "odd" and found.instead == ("/[0-9]+/",)
    assert "in place of 'odd', /[0-9]+/" in str(found)


def test_a_wrong_first_letter_is_no_word() -> None:
    """Where no letter of a word fits, the place itself says all."""
    found = constrain.grammar(STATEMENTS).explain("a = b;")
    assert (found.offset, found.expected, found.word) == (4, ("NUMBER",), "")
    assert str(found).startswith("line 1, column 5: unexpected 'b'; expected NUMBER")


def test_texts_that_end_in_a_word() -> None:
    """A text that ends within a word is too short, not wrong."""
    found = constrain.grammar(STATEMENTS).explain("if a th")
    assert (found.offset, found.found, found.instead) == (7, "", ())


LAYOUT = {"newline": "_NL", "indent": "_INDENT", "dedent": "_DEDENT"}
INDENTED = r"""
start: stmt+
stmt: "pass" _NL | "if" NAME _COLON _NL _INDENT stmt+ _DEDENT
NAME: /[a-z]+/
_COLON: ":" _GAP
_GAP: /[ ]*/
_NL: /(\r?\n[ ]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""


def test_lines_that_are_not_indented() -> None:
    """Where a block must begin, or a line ends none, what is missing is indentation, not a line break."""
    spec = constrain.grammar(INDENTED, indentation=LAYOUT)
    found = spec.explain("if x:\npass\n")
    assert (found.line, found.column, found.expected) == (2, 1, ("more indentation",))
    found = spec.explain("if x:\n  pass\n pass\n")
    assert (found.line, found.column, found.expected) == (3, 2, ("more indentation",))
    assert spec.explain("pass").expected == ("_NL",)


def test_punctuation_is_called_by_its_text() -> None:
    """Terminals that Lark leaves out of trees are shown as their text, where they have one."""
    spec = constrain.grammar(INDENTED, indentation=LAYOUT)
    assert set(spec.explain("if x pass").expected) == {"':'"}


def test_words_come_last() -> None:
    """Of many names some are left out; signs and classes tell more than words."""
    words = " | ".join(f'"word{i}"' for i in "abcdefghijk")
    spec = constrain.grammar(f'start: {words} | NUMBER | "(" start ")"\nNUMBER: /[0-9]+/')
    assert set(spec.explain("!").expected[:2]) == {"NUMBER", "'('"}


def test_ignored_text_of_parts_is_not_named() -> None:
    """Where a part's ignored text is written into the rules, it isn't listed among what was expected."""
    total = constrain.grammar('start: N ("+" N)*\nN: /[0-9]+/\n%ignore " "')
    pair = constrain.grammar('start: "a" "b"\n%ignore / +/')
    either = total | pair
    assert either.explain("1 + x").expected == ("N",)
    assert either.explain("a c").expected == ("'b'",)
    inside = constrain.grammar('start: X ";"\n%ignore "_"', embed={"X": total})
    assert inside.explain("1 x").expected == ("';'", "'+'")
    only = constrain.grammar('start: "a" / +/ "b"') | total
    assert only.explain("ab").expected == ("/ +/",)  # the rules ask for it
