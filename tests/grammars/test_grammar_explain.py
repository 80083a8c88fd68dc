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
