"""What a GBNF text says: its rules as trees, with their places.

`read_rules` takes the text apart on an explicit stack, so that no nesting can overflow the interpreter's own.
It reads what llama.cpp takes, and where that is stricter than it need be, more: a rule may go on over
lines without parentheses, ``{,n}`` counts from 0, and the escapes of xgrammar's spelling are known.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn, TypeAlias

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.ir import ANY_CHARACTER, Ranges
from constrain.grammars.limits import Watch
from constrain.grammars.regex.ranges import complement, normalize

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|[0-9][A-Za-z0-9_-]*")
_DEFINES = re.compile(r"[ \t]*::=")
_COUNTS = re.compile(r"\{[ \t\r\n]*+(\d*+)[ \t\r\n]*+(?:(,)[ \t\r\n]*+(\d*+)[ \t\r\n]*+)?+\}")
_PLAIN = re.compile(r'[^"\\]+')
_TOKEN = re.compile(r"<(?:\[(\d+)\]|([^>\n\[\]\\]+))>")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
    **{character: character for character in "\\\"'[]-^?/"},
}
_HEX = {"x": 2, "u": 4, "U": 8}
_MOST_DIGITS = 9
_FUNCTIONS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken")


class Text(NamedTuple):
    """A quoted literal."""

    offset: int
    text: str


class Characters(NamedTuple):
    """One character of a set."""

    offset: int
    end: int
    ranges: Ranges


class Token(NamedTuple):
    """One special token: its name, or its id."""

    offset: int
    end: int
    name: str | int


class Name(NamedTuple):
    """A rule."""

    offset: int
    name: str


class Sequence(NamedTuple):
    """Parts one after another."""

    offset: int
    parts: tuple[Tree, ...]


class Choice(NamedTuple):
    """Alternatives."""

    offset: int
    parts: tuple[Tree, ...]


class Repeat(NamedTuple):
    """A part several times."""

    offset: int
    body: Tree
    minimum: int
    maximum: int | None


Tree: TypeAlias = Text | Characters | Token | Name | Sequence | Choice | Repeat


class Rule(NamedTuple):
    """A rule: where its name stands, and what it says."""

    offset: int
    body: Tree


class _Group:
    """An open group, or the rule itself (``offset`` of its body)."""

    __slots__ = ("alternatives", "offset", "parts")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.alternatives: list[Tree] = []
        self.parts: list[Tree] = []

    def close_alternative(self) -> None:
        """End the alternative that is being read."""
        parts = self.parts
        self.alternatives.append(parts[0] if len(parts) == 1 else Sequence(self.offset, tuple(parts)))
        self.parts = []

    def tree(self) -> Tree:
        """Return the whole group."""
        self.close_alternative()
        found = self.alternatives
        return found[0] if len(found) == 1 else Choice(self.offset, tuple(found))


def read_rules(source: str, watch: Watch) -> dict[str, Rule]:
    """Return the rules of a text, in its order.

    Raises
    ------
    SpecError
        The text is malformed, or defines a rule twice; with line, column and a caret.
    UnsupportedFeatureError
        It uses what cannot be enforced.
    LimitExceededError
        Groups are nested too deeply.
    """
    return _Reader(source, watch).read()


class _Reader:
    def __init__(self, source: str, watch: Watch) -> None:
        self.source = source
        self.watch = watch
        self.at = 0

    def error(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        raise SpecError(message, source=self.source, offset=offset, hint=hint)

    def unsupported(self, feature: str, offset: int, hint: str) -> NoReturn:
        raise UnsupportedFeatureError(feature, source=self.source, offset=offset, hint=hint)

    def skip_blank(self) -> None:
        """Pass blanks, line breaks and comments."""
        end = _BLANK.match(self.source, self.at).end()  # type: ignore[union-attr]
        self.watch.step("the grammar", 1 + (end - self.at) // 64)
        self.at = end

    # -------------------------------------------------------------------------------- rules

    def read(self) -> dict[str, Rule]:
        rules: dict[str, Rule] = {}
        self.skip_blank()
        while self.at < len(self.source):
            offset = self.at
            name = _NAME.match(self.source, offset)
            if name is None:
                self.error(
                    f"A rule is expected here, found {self.source[offset]!r}.", offset, "Write: name ::= ..."
                )
            self.at = name.end()
            defines = _DEFINES.match(self.source, self.at)
            if defines is None:
                self.error(f"'::=' is expected after the name {name[0]!r}.", self.at)
            if name[0] in rules:
                line = self.source.count("\n", 0, rules[name[0]].offset) + 1
                self.error(f"Rule {name[0]!r} is defined twice, first in line {line}.", offset)
            self.at = defines.end()
            rules[name[0]] = Rule(offset, self.body())
        return rules

    def at_rule(self) -> bool:
        """Does the next rule begin here?"""
        name = _NAME.match(self.source, self.at)
        if name is None or _DEFINES.match(self.source, name.end()) is None:
            return False
        line = self.source[self.source.rfind("\n", 0, self.at) + 1 : self.at]
        if line.strip():
            self.error(f"Rule {name[0]!r} must begin a line of its own.", self.at)
        return True

    def body(self) -> Tree:
        """Read alternatives up to the next rule."""
        groups = [_Group(self.at)]
        while True:
            self.skip_blank()
            at, source = self.at, self.source
            character = source[at : at + 1]
            group = groups[-1]
            if character == "(":
                if source.startswith("(=", at):
                    self.unsupported(
                        "(= ...)", at, "Leave it out: the rules that refer to this one say what follows."
                    )
                groups.append(_Group(at))
                self.at += 1
                self.watch.at_most("nesting", len(groups), "the grammar's groups")
            elif character == ")":
                if len(groups) == 1:
                    self.error("This ')' closes no group.", at)
                self.at += 1
                groups.pop()
                groups[-1].parts.append(group.tree())
            elif character == "|":
                group.close_alternative()
                self.at += 1
            elif character and character in "*+?{":
                self.repeat(group)
            elif not character or self.at_rule():
                if len(groups) > 1:
                    self.error("This group is never closed.", group.offset, "Add ')'.")
                return group.tree()
            else:
                group.parts.append(self.symbol(character))

    # -------------------------------------------------------------------------------- symbols

    def symbol(self, character: str) -> Tree:
        at = self.at
        if character == '"':
            return self.literal()
        if character == "[":
            return self.character_class()
        if character == ".":
            self.at += 1
            return Characters(at, at + 1, ANY_CHARACTER.ranges)
        if character == "<":
            return self.token()
        if character == "!" and self.source.startswith("!<", at):
            self.unsupported("!<...>", at, "Text never holds a special token; for any text write .*")
        name = _NAME.match(self.source, at)
        if name is None:
            hint = None
            if character == "'":
                hint = 'Literals stand in double quotes: "..."'
            elif character == "/":
                hint = "GBNF has no regular expressions; in Lark's syntax they stand between slashes."
            self.error(f"{character!r} begins no symbol.", at, hint)
        self.at = name.end()
        if name[0] in _FUNCTIONS and self.source.startswith("(", self.at):
            self.unsupported(name[0] + "(...)", at, "constrain.structural_tag takes tags and triggers.")
        return Name(at, name[0])

    def token(self) -> Tree:
        at = self.at
        found = _TOKEN.match(self.source, at)
        if found is None:
            self.error("A token is expected here.", at, "Write <[1000]> for an id, <think> for a name.")
        self.at = found.end()
        if found[1] is None:
            return Token(at, self.at, found[0])
        if len(found[1]) > _MOST_DIGITS:
            self.error("This token id is too large.", at)
        return Token(at, self.at, int(found[1]))

    def repeat(self, group: _Group) -> None:
        """Apply what stands here to the symbol before it."""
        at, character = self.at, self.source[self.at]
        if not group.parts:
            self.error(f"There is nothing before {character!r} to repeat.", at)
        minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, 0)}[character]
        self.at += 1
        if character == "{":
            found = _COUNTS.match(self.source, at)
            if found is None or not (found[1] or found[3]):
                self.error("A count is expected here.", at, "Write {m}, {m,} or {m,n}.")
            if max(len(found[1]), len(found[3] or "")) > _MOST_DIGITS:
                self.error("This count is too large.", at)
            minimum = int(found[1] or 0)
            maximum = int(found[3]) if found[3] else None if found[2] else minimum
            if maximum is not None and maximum < minimum:
                self.error(f"The count {{{minimum},{maximum}}} asks for more than it allows.", at)
            self.at = found.end()
        body = group.parts.pop()
        group.parts.append(Repeat(body.offset, body, minimum, maximum))

    def literal(self) -> Tree:
        begin = self.at
        parts: list[str] = []
        self.at += 1
        while True:
            plain = _PLAIN.match(self.source, self.at)
            if plain is not None:
                parts.append(plain[0])
                self.at = plain.end()
            character = self.source[self.at : self.at + 1]
            if character == '"':
                self.at += 1
                break
            if character != "\\":
                self.error("This literal is never closed.", begin, "Add '\"'.")
            parts.append(chr(self.escape()))
            self.watch.step("the grammar")
        text = "".join(parts)
        surrogate = next((c for c in text if "\ud800" <= c <= "\udfff"), None)
        if surrogate is not None:
            self.error(f"U+{ord(surrogate):04X} is no character: no text holds it.", begin)
        return Text(begin, text)

    def escape(self) -> int:
        """Read an escape and return its code point."""
        at, source = self.at, self.source
        letter = source[at + 1 : at + 2]
        if letter in _HEX:
            digits = source[at + 2 : at + 2 + _HEX[letter]]
            if len(digits) < _HEX[letter] or not all(c in "0123456789abcdefABCDEF" for c in digits):
                self.error(f"{_HEX[letter]} hexadecimal digits are expected after '\\{letter}'.", at)
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                self.error(f"U+{code:04X} is no character.", at)
            self.at = at + 2 + len(digits)
            return code
        if not letter or letter not in _ESCAPES:
            hint = r"Known are \n \t \r \" \\ \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH."
            if letter and letter in "dwsDWS":
                hint = "GBNF has no such class; write [0-9], [A-Za-z0-9_] or [ \\t\\n]."
            self.error(f"{source[at : at + 2]!r} is no escape.", at, hint)
        self.at = at + 2
        return ord(_ESCAPES[letter])

    def character_class(self) -> Tree:
        begin, source = self.at, self.source
        self.at += 1
        negated = source.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while True:
            at = self.at
            character = source[at : at + 1]
            if character == "]":
                self.at += 1
                break
            low = self.class_member(begin)
            high = low
            # A '-' before the closing bracket stands for itself.
            if source.startswith("-", self.at) and not source.startswith("-]", self.at):
                self.at += 1
                high = self.class_member(begin)
            if high < low:
                self.error(f"This range ends before it begins: {source[at : self.at]!r}.", at)
            ranges.append((low, high))
            self.watch.step("the grammar")
        if not ranges:
            self.error("This class has no characters.", begin, "For any character write '.'.")
        found = normalize(ranges)
        return Characters(begin, self.at, complement(found) if negated else found)

    def class_member(self, begin: int) -> int:
        character = self.source[self.at : self.at + 1]
        if character == "\\":
            return self.escape()
        if not character:
            self.error("This class is never closed.", begin, "Add ']'.")
        if "\ud800" <= character <= "\udfff":
            self.error(f"U+{ord(character):04X} is no character: no text holds it.", self.at)
        self.at += 1
        return ord(character)
