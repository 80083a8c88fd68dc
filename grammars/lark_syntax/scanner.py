"""The words of a grammar text, one after another."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from constrain.grammars.lark_syntax.tree import Module
from constrain.grammars.limits import Watch

# Blanks, and what may stand behind them, in the order in which they are tried. Rows of blanks are never split in
# several ways: that took time squared.
_TOKENS = re.compile(
    r"""
    [ \t]*+ (?:
      (?P<skip>    \s*+(?://|\#)[^\n]* | \\[ ]*\n )
    | (?P<bar>     \r?\n\s*+\| | \| )
    | (?P<newline> \r?\n\s*+ )
    | (?P<count>   ~[ \t]*[+-]?[0-9]+(?:[ \t]*\.\.[ \t]*[+-]?[0-9]+)?
                 | \{[ \t]*+(?:[0-9]++[ \t]*+(?:,[ \t]*+[0-9]*+[ \t]*+)?+|,[ \t]*+[0-9]++[ \t]*+)\} )
    | (?P<number>  [+-]?[0-9]+ )
    | (?P<modifiers> (?:![?]?|[?]!?)(?=[_a-z]) )
    | (?P<operator> [+*]|[?](?![a-z_]) )
    | (?P<rule>    _*[a-z][_a-z0-9]*(?:-[_a-z0-9]+)* )
    | (?P<terminal> _*[A-Z][_A-Z0-9]* )
    | (?P<string>  "(?:[^"\\\n]|\\[^\n])*"i? )
    | (?P<regexp>  /(?!/)(?:[^/\\]|\\(?:.|\n))*/[imslux]* )
    | (?P<special> <[^<>\s]+> )
    | (?P<directive> %[a-z]+ )
    | (?P<mark>    -> | \.\. | [()\[\]{}:,=&~.] )
    )?+
    """,
    re.VERBOSE,
)

_KINDS = {
    "rule": "a rule's name (lower case)",
    "terminal": "a terminal's name (upper case)",
    "number": "a number",
    "string": "a string",
    "newline": "the end of the line",
    "end": "the end of the grammar",
}


class Token(NamedTuple):
    """A word: which group of the expression it matched, its text and its place."""

    kind: str
    text: str
    offset: int


class Scanner:
    """Looks one word ahead.

    Parameters
    ----------
    text : str
    name : str or None
        File the text is from.
    watch : Watch

    Attributes
    ----------
    token : Token
        The word looked at; the next one is read from ``at`` on.
    """

    def __init__(self, text: str, name: str | None, watch: Watch) -> None:
        self.module = Module(text, name)
        self.text = text
        self.watch = watch
        self.at = 0
        self.token = Token("", "", 0)
        self.next()

    # -------------------------------------------------------------------------------- tokens

    def next(self) -> Token:
        """Return the token that was looked at, and look at the one after it."""
        last = self.token
        self.watch.step("the text of the grammar")
        while found := _TOKENS.match(self.text, self.at):
            self.at, kind = found.end(), found.lastgroup
            if kind is None:
                break
            if kind != "skip":
                self.token = Token(kind, found[kind], found.start(kind))
                return last
        if self.at < len(self.text):
            self.fail_at_character()
        self.token = Token("end", "", self.at)
        return last

    def fail_at_character(self) -> NoReturn:
        """Refuse the character at ``at``."""
        character = self.text[self.at]
        hint = None
        if character == '"':
            message = "This string is never closed on its line."
        elif character == "/":
            message = "This regular expression is never closed."
            hint = r"Write '\/' for a slash inside one."
        elif character == "'":
            message, hint = 'A string cannot begin with "\'".', "Strings are written in double quotes."
        else:
            message = f"{character!r} begins nothing that may stand here."
        raise self.module.error(message, self.at, hint)

    def is_mark(self, text: str) -> bool:
        """Is this the next token?"""
        return self.token.kind == "mark" and self.token.text == text

    def skip_mark(self, text: str) -> bool:
        """Read ``text`` if it comes next."""
        if self.is_mark(text):
            self.next()
            return True
        return False

    def expect(self, *kinds: str) -> Token:
        """Read a token of one of ``kinds``."""
        if self.token.kind not in kinds:
            self.unexpected(" or ".join(_KINDS[kind] for kind in kinds))
        return self.next()

    def expect_mark(self, text: str) -> None:
        """Read ``text``."""
        if not self.skip_mark(text):
            self.unexpected(repr(text))

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the next token."""
        kind, text, offset = self.token
        found = _KINDS[kind] if kind in ("newline", "end") else "'|'" if kind == "bar" else repr(text)
        raise self.module.error(f"found {found}, expected {expected}.", offset)
