"""What is said about texts that a grammar doesn't have."""

from __future__ import annotations

import pytest

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


PLACES = [
    ("xml", "<a>é&foo</a>", 1, 6, "f"),
    ("xml", "<a>\n  é😀 <b\n</a>", 3, 1, "<"),
    ("xml", '<日本 é="é" 日="1"  !/>', 1, 18, "!"),
    ("xml", "<a×/>", 1, 3, "×"),
    ("xml", "<a>é\r\n\u0001</a>", 2, 1, "\u0001"),
    ("sql", "SELECT a,\n  'é日本' FROM\n t WHERE é = ;", 3, 14, ";"),
    ("sql", "SELECT a FROM t WHERE b LIKE 'é😀' ANDD c", 1, 38, "D"),
    ("sql", "SELECT é\te FROM\r\nt WHERE 1 = = 2", 2, 13, "="),
    ("sql", "SELECT 'é日本", 1, 12, ""),
    ("go", "package main\n\tvar é = 日 × 2", 2, 12, "×"),
]


@pytest.mark.parametrize(("name", "text", "line", "column", "found"), PLACES)
def test_places_in_characters(name: str, text: str, line: int, column: int, found: str) -> None:
    """Lines and columns count characters, and the caret is under the character, however wide others are."""
    result = constrain.grammar_library(name).explain(text)
    assert (result.line, result.column, result.found) == (line, column, found)
    shown, mark = str(result).splitlines()[-2:]
    cells = [2 if c in "日本😀" else 1 for c in shown]
    at = next(i for i in range(len(shown) + 1) if sum(cells[:i]) == mark.index("^"))
    assert shown[at : at + 1] == (found if found.isprintable() else "\ufffd")
    assert "\t" not in shown and "\r" not in shown


def test_a_wrong_character_is_expected_as_a_whole() -> None:
    """What is told is what may stand in place of the character, not what its first byte might have begun."""
    spec = constrain.regex("[a-zé]+-")
    assert spec.explain("aßb").expected == ("'-'", "'a' to 'z'", "a character outside ASCII")
    assert spec.explain(b"a\xc3").expected == ("the rest of a character",)
    assert spec.explain(b"a\x80\x80").offset == 1
