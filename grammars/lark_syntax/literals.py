r"""Strings, ranges and regular expressions of a grammar text as trees of `grammars.regex`.

Escapes are those of Lark: ``\n \t \r \f \xhh \uhhhh \Uhhhhhhhh`` and ``\"`` are read in strings and regular
expressions alike; other backslashes stay, doubled ones as one in strings. Unlike Lark, which reads ``\\"`` in a
regular expression as ``\"``, they are taken from left to right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.ir import CharacterClass
from constrain.grammars.lark_syntax.tree import Module, Quoted, Range
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import character_class, text_literal
from constrain.grammars.regex.lazy import LexemeReader
from constrain.grammars.regex.nodes import Tree
from constrain.grammars.regex.python_dialect import FLAGS

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_N_HEX = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile("[0-9a-fA-F]*")
_LAST = 0x10FFFF


class Literal(NamedTuple):
    """What a string or regular expression stands for.

    Parameters
    ----------
    is_string : bool
    text : str
        Without delimiters, escapes read.
    flags : str
        Sorted.
    places : sequence of int
        Of each character of ``text``, and of its end, in the module.
    """

    is_string: bool
    text: str
    flags: str
    places: Sequence[int]

    @property
    def key(self) -> tuple[bool, str, str]:
        """What makes two of them the same terminal."""
        return self.is_string, self.text, self.flags


def literal(quoted: Quoted, module: Module) -> Literal:
    """Return what ``quoted`` stands for.

    Raises
    ------
    SpecError
        It is empty, or an escape is malformed.
    """
    written = quoted.text
    is_string = written[0] == '"'
    end = written.rindex(written[0])
    flags = "".join(sorted(set(written[end + 1 :])))
    if "\\" not in written and "\n" not in written and end > 1:
        first = quoted.offset + 1
        return Literal(is_string, written[1:end], flags, range(first, first + end))
    text: list[str] = []
    places: list[int] = []
    at = 1
    while at < end:
        start = at
        piece = written[at]
        at += 1
        if piece == "\\":
            piece, at = _escape(written, at, quoted, module)
        elif piece == "\n" and "x" not in flags:
            raise module.error(
                "A regular expression goes over several lines only with the flag 'x'.", quoted.offset + start
            )
        text.append(piece)
        places += [quoted.offset + start] * len(piece)
    value = "".join(text)
    if not value:
        raise module.error("An empty string cannot be a terminal.", quoted.offset)
    places.append(quoted.offset + end)
    if is_string:
        value = value.replace("\\\\", "\\")
    return Literal(is_string, value, flags, places)


def _escape(written: str, at: int, quoted: Quoted, module: Module) -> tuple[str, int]:
    """Return what the escape whose letter is at ``at`` stands for, and its end."""
    letter = written[at]
    if letter in _SIMPLE:
        return _SIMPLE[letter], at + 1
    if letter in _N_HEX:
        n = _N_HEX[letter]
        found = _HEX.match(written, at + 1, at + 1 + n)
        digits = found.group() if found else ""
        if len(digits) != n or int(digits, 16) > _LAST:
            raise module.error(
                f"'\\{letter}' needs {n} hexadecimal digits of a character.", quoted.offset + at - 1
            )
        return chr(int(digits, 16)), at + 1 + n
    return letter if letter == '"' else "\\" + letter, at + 1


def literal_tree(found: Literal, module: Module, watch: Watch) -> Tree:
    """Return the tree of a string or regular expression; lazy repeats are kept.

    Raises
    ------
    SpecError, UnsupportedFeatureError
        As `parse_regex`, with the place in the module.
    """
    if found.is_string and not found.flags:
        return text_literal(found.text)
    bits = 0
    for letter in found.flags:
        if letter == "l":
            raise module.error("The flag 'l' is for bytes only.", found.places[-1])
        bits |= FLAGS[letter]
    pattern = re.escape(found.text) if found.is_string else found.text
    try:
        return LexemeReader(pattern, bits, watch).read()
    except UnsupportedFeatureError as error:
        at = found.places[0] if found.is_string else found.places[error.offset or 0]
        raise module.unsupported(error.feature, at, error.reason, error.hint or "") from error
    except SpecError as error:
        at = found.places[0] if found.is_string else found.places[error.offset or 0]
        raise module.error(error.message, at, error.hint) from error


def range_tree(node: Range, module: Module) -> Tree:
    """Return the tree of ``"a".."z"``.

    Raises
    ------
    SpecError
        An end is not one character, or the ends are in the wrong order.
    """
    ends = []
    for quoted in (node.low, node.high):
        found = literal(quoted, module)
        if len(found.text) != 1 or found.flags:
            _refuse_end(quoted, module)
        ends.append(ord(found.text))
    if ends[1] < ends[0]:
        raise module.error("The first character of this range comes after the last.", node.offset)
    pattern = character_class(((ends[0], ends[1]),))
    if isinstance(pattern, CharacterClass) and ends[0] <= 0xDFFF and ends[1] >= 0xD800:
        kept = [(ends[0], min(ends[1], 0xD7FF)), (max(ends[0], 0xE000), ends[1])]
        pattern = character_class(tuple(pair for pair in kept if pair[0] <= pair[1]))
    return pattern


def _refuse_end(quoted: Quoted, module: Module) -> NoReturn:
    raise module.error("The ends of a range are strings of one character.", quoted.offset)
