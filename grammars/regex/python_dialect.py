"""The syntax of Python's `re` for text, with ``\\p{...}`` added.

Every form, and every refusal, is that of `re` in Python 3.11 to 3.14; back-references and conditionals
are read and refused.
"""

from __future__ import annotations

import re
import unicodedata

from constrain.grammars.ir import Ranges
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import character_class
from constrain.grammars.regex.nodes import (
    AT_END,
    AT_START,
    NEWLINE,
    Case,
    Tree,
    choice,
    look,
    near,
    sequence,
    word_boundary,
)
from constrain.grammars.regex.ranges import FULL, complement, normalize
from constrain.grammars.regex.reader import ATOM, EDGE, MAX_REPEAT, Frame, Reader
from constrain.grammars.regex.unicode import perl_class, property_set

IGNORE_CASE, MULTILINE, DOT_ALL, VERBOSE, ASCII, UNICODE = (1 << bit for bit in range(6))
FLAGS = {"i": IGNORE_CASE, "m": MULTILINE, "s": DOT_ALL, "x": VERBOSE, "a": ASCII, "u": UNICODE}

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_DIGITS = "0123456789"
_OCTAL = "01234567"
_HEX = re.compile("[0-9a-fA-F]*")
_N_HEX = {"x": 2, "u": 4, "U": 8}
_NO_DOT_NEWLINE = complement(NEWLINE)
# Python before 3.14 says that \B holds nowhere in an empty text.
_EMPTY_HAS_NO_BOUNDARY = re.search(r"\B", "") is not None


class PythonReader(Reader):
    """Reads a pattern of `re`; ``flags`` are those of this module."""

    verbose = VERBOSE
    ignore_case = IGNORE_CASE
    ascii = ASCII

    def __init__(self, source: str, flags: int, watch: Watch) -> None:
        super().__init__(source, flags, watch)
        self.names: dict[str, int] = {}
        self.n_groups = 1
        self.open_groups: set[int] = set()

    # -------------------------------------------------------------------------------- escapes

    def escape(self) -> None:
        """Read an escape outside a class."""
        at = self.at
        letter = self.source[at + 1 : at + 2]
        if letter in ("A", "Z", "b", "B") and letter:
            self.at += 2
            self.append(self.edge(letter), EDGE, 0, 0)
        elif letter in _DIGITS and letter and letter != "0":
            self.append(self.one(self.numbered(at)), ATOM, 1, 1)
        else:
            found = self.member(in_class=False)
            tree = self.one(found) if isinstance(found, int) else character_class(found)
            self.append(tree, ATOM, 1, 1)

    def edge(self, letter: str) -> Tree:
        """Return the tree of ``\\A \\Z \\b \\B``."""
        if letter == "A":
            return AT_START
        if letter == "Z":
            return AT_END
        word = perl_class("w", bool(self.flags & ASCII))
        return word_boundary(word, letter == "B", _EMPTY_HAS_NO_BOUNDARY)

    def numbered(self, at: int) -> int:
        """Read ``\\1`` to ``\\99`` or three octal digits; return the code of the latter."""
        source = self.source
        digits = source[at + 1 : at + 4]
        if len(digits) == 3 and digits[0] in _OCTAL and digits[1] in _OCTAL and digits[2] in _OCTAL:
            self.at += 4
            return self.octal(digits, at)
        digits = digits[: 2 if digits[1:2] and digits[1] in _DIGITS else 1]
        self.back_reference(int(digits), "\\" + digits, at)
        return 0

    def back_reference(self, group: int, text: str, at: int) -> None:
        """Refuse a reference to ``group``."""
        if group >= self.n_groups:
            self.error(f"There is no group {group} before this reference.", at)
        if group in self.open_groups:
            self.error("A group cannot refer to itself.", at)
        self.unsupported(
            text,
            at,
            "is a back-reference, which no regular language can express; it is not supported",
            "Write out the alternatives that may repeat.",
        )

    def octal(self, digits: str, at: int) -> int:
        """Return the code of an octal escape."""
        code = int(digits, 8)
        if code > 0o377:
            self.error(f"The octal escape '\\{digits}' is over '\\377'.", at)
        return code

    def member(self, in_class: bool) -> int | Ranges:
        """Read an escape that stands for one character or a set of them."""
        source, at = self.source, self.at
        letter = source[at + 1 : at + 2]
        if not letter:
            self.error("The pattern ends with a lone backslash.", at, r"Write '\\' for the character itself.")
        self.at += 2
        if letter in "dDwWsS":
            return perl_class(letter, bool(self.flags & ASCII))
        if letter in _SIMPLE and (letter != "b" or in_class):
            return _SIMPLE[letter]
        if letter in _N_HEX:
            return self.hexadecimal(letter, at)
        if letter in "pP":
            return self.property(letter == "P", at)
        if letter == "N":
            return self.named_character(at)
        if letter in _OCTAL and (in_class or letter == "0"):
            end = at + 2
            while end < at + 4 and source[end : end + 1] in _OCTAL and end < len(source):
                end += 1
            self.at = end
            return self.octal(source[at + 1 : end], at)
        if letter in _DIGITS or (letter.isascii() and letter.isalpha()):
            self.error(
                f"The escape '\\{letter}' has no meaning{' in a class' if in_class else ''}.",
                at,
                f"Write '{letter}' for the character itself.",
            )
        return ord(letter)

    def hexadecimal(self, letter: str, at: int) -> int:
        """Read the digits of ``\\x \\u \\U``."""
        n = _N_HEX[letter]
        found = _HEX.match(self.source, self.at, self.at + n)
        digits = found.group() if found else ""
        if len(digits) != n:
            self.error(f"'\\{letter}' needs {n} hexadecimal digits.", at)
        self.at += n
        code = int(digits, 16)
        if code > 0x10FFFF:
            self.error(f"'\\U{digits}' is over the last code point, U+10FFFF.", at)
        return code

    def property(self, negated: bool, at: int) -> Ranges:
        """Read ``{name}`` or one letter after ``\\p``."""
        source = self.source
        letter = source[self.at : self.at + 1]
        if letter == "{":
            end = source.find("}", self.at)
            name = source[self.at + 1 : end] if end > 0 else ""
        else:
            end, name = self.at, letter
        if not name:
            self.error("'\\p' needs a property in braces, as in '\\p{Lu}' or '\\p{Greek}'.", at)
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

    def named_character(self, at: int) -> int:
        """Read ``{NAME}`` after ``\\N``."""
        source = self.source
        end = source.find("}", self.at)
        if source[self.at : self.at + 1] != "{" or end < 0 or end == self.at + 1:
            self.error("'\\N' needs the name of a character in braces, as in '\\N{EM DASH}'.", at)
        name = source[self.at + 1 : end]
        try:
            character = unicodedata.lookup(name)
        except KeyError:
            character = ""
        if len(character) != 1:
            self.error(f"There is no character called {name!r}.", at)
        self.at = end + 1
        return ord(character)

    # -------------------------------------------------------------------------------- classes

    def bracket(self) -> Ranges:
        """Read a class."""
        source = self.source
        start = self.at
        self.at += 1
        negated = source.startswith("^", self.at)
        self.at += negated
        first = self.at
        pairs: list[tuple[int, int]] = []
        # Case does not count for characters and ranges; `re` takes ``\\w`` and the like as they are.
        named: list[tuple[int, int]] = []
        while True:
            if self.at >= len(source):
                self.error("This class is never closed.", start, "Add ']'.")
            if source[self.at] == "]" and self.at > first:
                break
            at = self.at
            low = self.class_member()
            if source.startswith("-", self.at) and not source.startswith("-]", self.at):
                self.at += 1
                if self.at >= len(source):
                    self.error("This class is never closed.", start, "Add ']'.")
                high = self.class_member()
                if not isinstance(low, int) or not isinstance(high, int) or high < low:
                    self.error(
                        f"{source[at : self.at]!r} is no range of characters.",
                        at,
                        r"Write '\-' for the character itself.",
                    )
                pairs.append((low, high))
            elif isinstance(low, int):
                pairs.append((low, low))
            else:
                named += low
        self.at += 1
        ranges = self.cased(normalize(pairs))
        if named:
            ranges = normalize((*ranges, *named))
        return complement(ranges) if negated else ranges

    def class_member(self) -> int | Ranges:
        """Read one character or escape inside a class."""
        if self.source[self.at] == "\\":
            return self.member(in_class=True)
        self.at += 1
        return ord(self.source[self.at - 1])

    def dot(self) -> Ranges:
        """Return the set of ``.``."""
        return FULL if self.flags & DOT_ALL else _NO_DOT_NEWLINE

    def anchor(self, character: str) -> Tree:
        """Return the tree of ``^`` or ``$``."""
        if character == "^":
            return near(Case(before=NEWLINE)) if self.flags & MULTILINE else AT_START
        if self.flags & MULTILINE:
            return near(Case(after=NEWLINE))
        return choice((AT_END, look(True, False, sequence((character_class(NEWLINE), AT_END)), self.at)))

    # -------------------------------------------------------------------------------- groups

    def open_group(self) -> None:
        """Read ``(`` and what says which kind of group it is."""
        source = self.source
        self.group_start = start = self.at
        if not source.startswith("(?", start):
            self.at += 1
            self.capture(None)
            return
        character = source[start + 2 : start + 3]
        self.at += 3
        if character == ":":
            self.push("group")
        elif character == "P":
            self.named_group()
        elif character == "#":
            end = source.find(")", self.at)
            if end < 0:
                self.error("This comment is never closed.", start, "Add ')'.")
            self.at = end + 1
        elif character in ("=", "!"):
            self.push("ahead" if character == "=" else "not ahead")
        elif character == "<":
            self.lookbehind()
        elif character == ">":
            self.push("atomic")
        elif character == "(":
            self.conditional()
        elif character and character in "imsxauL-":
            self.inline_flags()
        elif not character:
            self.error("The pattern ends inside a group.", start)
        else:
            self.error(f"'(?{character}' starts no known kind of group.", start)

    def capture(self, name: str | None) -> None:
        """Open a capturing group."""
        index = self.n_groups
        self.n_groups += 1
        if name is not None:
            self.names[name] = index
        self.open_groups.add(index)
        self.push("group", index)

    def closed(self, index: int, body: Tree) -> Tree:
        """Note that the group ``index`` is complete."""
        self.open_groups.discard(index)
        return body

    def name_until(self, end: str) -> str:
        """Read the name of a group and the ``end`` after it."""
        at = self.at
        found = self.source.find(end, at)
        if found < 0:
            self.error(f"{end!r} is missing after the name of a group.", at)
        name = self.source[at:found]
        if not name.isidentifier():
            self.error(f"{name!r} cannot be the name of a group.", at, "A name is letters, digits and '_'.")
        self.at = found + 1
        return name

    def named_group(self) -> None:
        """Read what follows ``(?P``."""
        start = self.group_start
        character = self.source[self.at : self.at + 1]
        self.at += 1
        at = self.at
        if character == "<":
            name = self.name_until(">")
            if name in self.names:
                self.error(f"There is a group called {name!r} already.", at)
            self.capture(name)
        elif character == "=":
            name = self.name_until(")")
            if name not in self.names:
                self.error(f"There is no group called {name!r} before this reference.", at)
            self.back_reference(self.names[name], self.source[start : self.at], start)
        else:
            self.error("'(?P' must go on with '<name>' or '=name'.", start)

    def lookbehind(self) -> None:
        """Read what follows ``(?<``."""
        character = self.source[self.at : self.at + 1]
        if character not in ("=", "!") or not character:
            self.error(
                "'(?<' must go on with '=' or '!'.", self.group_start, "A named group is '(?P<name>...)'."
            )
        self.at += 1
        self.push("behind" if character == "=" else "not behind")

    def check_lookbehind(self, frame: Frame, least: int, most: int) -> None:
        """Refuse lookbehind of varying width, as `re` does."""
        if least != most or most >= MAX_REPEAT:
            self.error("Lookbehind must have one fixed width.", frame.offset)

    def conditional(self) -> None:
        """Refuse ``(?(group)yes|no)``."""
        self.unsupported(
            "(?(...)...)",
            self.group_start,
            "is a conditional on a group, which is not supported",
            "Write the two cases as alternatives.",
        )

    def inline_flags(self) -> None:
        """Read ``(?i)``, ``(?i:``, ``(?-i:`` and the like."""
        source, start = self.source, self.group_start
        self.at = start + 2
        added, removed = self.flag_letters(), 0
        end = source[self.at : self.at + 1]
        if end == "-":
            self.at += 1
            at = self.at
            removed = self.flag_letters()
            if removed & (ASCII | UNICODE):
                self.error("The flags 'a' and 'u' cannot be turned off.", at)
            end = source[self.at : self.at + 1]
            if self.at == at or end == ")":
                self.error("After '-' a group of flags must go on with flags and ':'.", start)
            if added & removed:
                self.error("A flag is turned on and off at once.", start)
        if end not in (")", ":") or not end:
            self.error("A group of flags must go on with ')' or ':'.", self.at)
        self.at += 1
        if end == ":":
            self.push("group")
            if added & (ASCII | UNICODE):
                self.flags &= ~(ASCII | UNICODE)
            self.flags = (self.flags | added) & ~removed
        else:
            self.global_flags(added)

    def flag_letters(self) -> int:
        """Read the letters of flags."""
        flags = 0
        while (letter := self.source[self.at : self.at + 1]) and letter.isalpha():
            if letter == "L":
                self.error("The flag 'L' is for bytes only.", self.at)
            if letter not in FLAGS:
                self.error(f"{letter!r} is no flag.", self.at, "The flags are 'i', 'm', 's', 'x', 'a', 'u'.")
            flags |= FLAGS[letter]
            if flags & ASCII and flags & UNICODE:
                self.error("The flags 'a' and 'u' exclude each other.", self.at)
            self.at += 1
        return flags

    def global_flags(self, flags: int) -> None:
        """Set ``flags`` for the whole pattern."""
        frame = self.frame
        if self.stack or frame.alternatives or frame.parts:
            self.error("Flags for the whole pattern must stand at its start.", self.group_start)
        self.flags |= flags
        if self.flags & ASCII and self.flags & UNICODE:
            self.error("The flags 'a' and 'u' exclude each other.", self.group_start)
