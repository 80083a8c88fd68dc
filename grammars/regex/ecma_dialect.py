"""The syntax of ECMA-262 regular expressions, as JSON Schema's ``pattern`` uses it.

Patterns are read with the meaning of the ``u`` flag. What that flag makes an error but ECMA-262 Annex B
gives a meaning (``\\-``, a lone brace, ``[\\w-.]``) has that meaning, since validators take it. Of what
only Python's `re` knows, forms that ECMA-262 rejects in every mode and that can mean one thing only are
read too: ``(?P<name>...)`` and ``(?i)`` at the start.
"""

from __future__ import annotations

import re

from constrain.grammars.ir import Ranges
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import character_class
from constrain.grammars.regex.nodes import AT_END, AT_START, Case, Tree, near, word_boundary
from constrain.grammars.regex.ranges import FULL, NONE, complement, normalize
from constrain.grammars.regex.reader import ATOM, EDGE, Reader
from constrain.grammars.regex.unicode import (
    ASCII_DIGITS,
    ASCII_WORD,
    ECMA_LINE_ENDS,
    ECMA_SPACE,
    ignore_case_ecma,
    property_set,
)

IGNORE_CASE, MULTILINE, DOT_ALL = 1, 2, 4
FLAGS = {"i": IGNORE_CASE, "m": MULTILINE, "s": DOT_ALL}

_SETS = {
    "d": ASCII_DIGITS,
    "D": complement(ASCII_DIGITS),
    "w": ASCII_WORD,
    "W": complement(ASCII_WORD),
    "s": ECMA_SPACE,
    "S": complement(ECMA_SPACE),
}
_SIMPLE = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_DOT = complement(ECMA_LINE_ENDS)
_HEX2 = re.compile("[0-9a-fA-F]{2}")
_HEX4 = re.compile("[0-9a-fA-F]{4}")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_BRACED = re.compile(r"\{([0-9a-fA-F]+)\}")
_NUMBER = re.compile("[1-9][0-9]*")
_OCTAL = re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?")
_NAME = re.compile(r"<([^>]*)>")
_MODIFIERS = re.compile(r"([ims]*)(?:(-)([ims]*))?([:)])")
_GROUPS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P?<(?![=!]))", re.DOTALL)


class EcmaReader(Reader):
    """Reads a pattern of ECMA-262; ``flags`` are those of this module."""

    ignore_case = IGNORE_CASE
    has_possessive = False
    count_form = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")

    def __init__(self, source: str, flags: int, watch: Watch, pointer: str | None = None) -> None:
        super().__init__(source, flags, watch, pointer)
        self.names: set[str] = set()
        self.n_opened = 0

    def cased(self, ranges: Ranges) -> Ranges:
        """Return ``ranges``, closed under case if that is to be ignored."""
        return ignore_case_ecma(ranges) if self.flags & IGNORE_CASE else ranges

    # -------------------------------------------------------------------------------- escapes

    def escape(self) -> None:
        """Read an escape outside a class."""
        source, at = self.source, self.at
        letter = source[at + 1 : at + 2]
        if letter == "b" or letter == "B":
            self.at += 2
            self.append(word_boundary(self.cased(ASCII_WORD), letter == "B", True), EDGE, 0, 0)
            return
        if letter == "k" and (self.names or "(?<" in source):
            self.back_reference(at)
            return
        if letter in "123456789" and letter:
            number = _NUMBER.match(source, at + 1)
            if number is not None and int(number.group()[:9]) <= self.n_groups():
                self.back_reference(at)
                return
        found = self.member(in_class=False)
        tree = self.one(found) if isinstance(found, int) else character_class(found)
        self.append(tree, ATOM, 1, 1)

    def n_groups(self) -> int:
        """Return the number of capturing groups of the whole pattern."""
        return len(self.group_openings())

    def group_openings(self) -> list[int]:
        """Return where the capturing groups of the whole pattern open."""
        return [found.start() for found in _GROUPS.finditer(self.source) if found.group(1)]

    def back_reference(self, at: int) -> None:
        """Refuse a reference to a group."""
        self.unsupported(
            self.source[at : at + 2],
            at,
            "is a back-reference, which no regular language can express; it is not supported",
            "Write out the alternatives that may repeat.",
        )

    def member(self, in_class: bool) -> int | Ranges:
        """Read an escape that stands for one character or a set of them."""
        source, at = self.source, self.at
        letter = source[at + 1 : at + 2]
        if not letter:
            self.error("The pattern ends with a lone backslash.", at, r"Write '\\' for the character itself.")
        self.at += 2
        if letter in _SETS:
            return self.cased(_SETS[letter]) if letter in "ws" else _SETS[letter]
        if letter in _SIMPLE:
            return _SIMPLE[letter]
        if letter == "b":
            return 8
        if letter in "pP":
            return self.property(letter == "P", at)
        if letter == "x":
            found = _HEX2.match(source, self.at)
            if found is not None:
                self.at += 2
                return int(found.group(), 16)
        elif letter == "u":
            return self.unicode_escape(at)
        elif letter == "c":
            control = source[self.at : self.at + 1]
            if control.isascii() and control.isalpha():
                self.at += 1
                return ord(control) % 32
        elif letter in "01234567":
            octal = _OCTAL.match(source, at + 1)
            if octal is not None:
                self.at = octal.end()
                return int(octal.group(), 8)
        elif not (letter.isascii() and letter.isalnum()):
            return ord(letter)
        self.error(
            f"The escape '\\{letter}' has no meaning in an ECMA-262 pattern.",
            at,
            {"A": "Write '^'.", "Z": "Write '$'.", "z": "Write '$'."}.get(
                letter, f"Write '{letter}' for the character itself."
            ),
        )

    def unicode_escape(self, at: int) -> int:
        """Read what follows ``\\u``."""
        source = self.source
        braced = _BRACED.match(source, self.at)
        if braced is not None:
            digits = braced.group(1).lstrip("0") or "0"
            if len(digits) > 6 or int(digits, 16) > 0x10FFFF:
                self.error("This is over the last code point, U+10FFFF.", at)
            self.at = braced.end()
            return int(digits, 16)
        found = _HEX4.match(source, self.at)
        if found is None:
            self.error("'\\u' needs four hexadecimal digits, or digits in braces.", at)
        self.at += 4
        code = int(found.group(), 16)
        if 0xD800 <= code <= 0xDBFF:
            low = _LOW_SURROGATE.match(source, self.at)
            if low is not None:
                self.at = low.end()
                return 0x10000 + ((code - 0xD800) << 10) + int(low.group(1), 16) - 0xDC00
        return code

    def property(self, negated: bool, at: int) -> Ranges:
        """Read ``{name}`` after ``\\p``."""
        source = self.source
        end = source.find("}", self.at)
        if not source.startswith("{", self.at) or end < 0:
            self.error("'\\p' needs a property in braces, as in '\\p{Lu}' or '\\p{Script=Greek}'.", at)
        name = source[self.at + 1 : end]
        found = property_set(name)
        if found is None:
            self.error(
                f"{name!r} is no known Unicode property.",
                at,
                "Known are general categories, scripts and some binary properties such as Alphabetic.",
            )
        self.at = end + 1
        found = self.cased(found)
        return complement(found) if negated else found

    # -------------------------------------------------------------------------------- classes

    def bracket(self) -> Ranges:
        """Read a class."""
        source = self.source
        start = self.at
        self.at += 1
        negated = source.startswith("^", self.at)
        self.at += negated
        pairs: list[tuple[int, int]] = []
        while True:
            if self.at >= len(source):
                self.error("This class is never closed.", start, "Add ']'.")
            if source[self.at] == "]":
                break
            at = self.at
            low = self.class_member()
            if source.startswith("-", self.at) and not source.startswith("-]", self.at):
                self.at += 1
                if self.at >= len(source):
                    self.error("This class is never closed.", start, "Add ']'.")
                high = self.class_member()
                if isinstance(low, int) and isinstance(high, int):
                    if high < low:
                        self.error(
                            f"{source[at : self.at]!r} is no range: its ends are in the wrong order.",
                            at,
                            r"Write '\-' for the character itself.",
                        )
                    pairs.append((low, high))
                    continue
                pairs.append((0x2D, 0x2D))
                pairs += ((high, high),) if isinstance(high, int) else high
            pairs += ((low, low),) if isinstance(low, int) else low
        self.at += 1
        ranges = self.cased(normalize(pairs))
        return complement(ranges) if negated else ranges

    def class_member(self) -> int | Ranges:
        """Read one character or escape inside a class."""
        if self.source[self.at] == "\\":
            return self.member(in_class=True)
        self.at += 1
        return ord(self.source[self.at - 1])

    def dot(self) -> Ranges:
        """Return the set of ``.``."""
        return FULL if self.flags & DOT_ALL else _DOT

    def anchor(self, character: str) -> Tree:
        """Return the tree of ``^`` or ``$``."""
        ranges = ECMA_LINE_ENDS if self.flags & MULTILINE else NONE
        if not ranges:
            return AT_START if character == "^" else AT_END
        return near(Case(before=ranges) if character == "^" else Case(after=ranges))

    # -------------------------------------------------------------------------------- groups

    def open_group(self) -> None:
        """Read ``(`` and what says which kind of group it is."""
        source = self.source
        self.group_start = start = self.at
        if not source.startswith("(?", start):
            self.at += 1
            self.n_opened += 1
            self.push("group", self.n_opened)
            return
        for opening, kind in _KINDS.items():
            if source.startswith(opening, start):
                self.at += len(opening)
                self.push(kind)
                return
        named = _NAME.match(source, start + (3 if source.startswith("(?P", start) else 2))
        if named is not None:
            name = named.group(1)
            if not name.replace("$", "_").isidentifier():
                self.error(
                    f"{name!r} cannot be the name of a group.", start, "A name is letters, digits and '_'."
                )
            self.names.add(name)
            self.at = named.end()
            self.n_opened += 1
            self.push("group", self.n_opened)
            return
        self.modifiers(start)

    def modifiers(self, start: int) -> None:
        """Read ``(?i:``, ``(?-s:`` and ``(?i)`` at the start."""
        found = _MODIFIERS.match(self.source, start + 2)
        if found is None or (found.group(0) in (")", "-:", "-)")):
            self.error(
                f"{self.source[start : start + 3]!r} starts no known kind of group.",
                start,
                r"Write '\(' for the character itself.",
            )
        self.at = found.end()
        added = sum({FLAGS[letter] for letter in found.group(1)})
        removed = sum({FLAGS[letter] for letter in found.group(3) or ""})
        if added & removed:
            self.error("A flag is turned on and off at once.", start)
        if found.group(4) == ")":
            if start or removed:
                self.error("Flags for the whole pattern must stand at its start.", start)
            self.flags |= added
            return
        self.push("group")
        self.flags = (self.flags | added) & ~removed


_KINDS = {"(?:": "group", "(?=": "ahead", "(?!": "not ahead", "(?<=": "behind", "(?<!": "not behind"}
