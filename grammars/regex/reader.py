"""What the two dialects share: alternatives, sequences, groups, quantifiers, on an explicit stack.

A dialect subclasses `Reader` and reads escapes, classes and what follows ``(?``. Patterns are built
while reading, so that a pattern without lookaround never has a syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.ir import EMPTY_LANGUAGE, Literal, Pattern, Ranges
from constrain.grammars.limits import Watch
from constrain.grammars.regex.atomic import atomic_group, possessive_loop
from constrain.grammars.regex.build import character_class, is_nullable, text_literal
from constrain.grammars.regex.nodes import Node, Tree, choice, look, loop, sequence
from constrain.grammars.regex.unicode import ignore_case

_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()\s#]+")
_SPACE = " \t\n\r\v\f"
# A class whose first member is not ``]``; both dialects end it at the next ``]`` without a backslash.
_CLASS = re.compile(r"\[\^?(?:\\.|[^\\\]])+\]", re.DOTALL)
_MOST_CLASSES = 1024
_LONGEST_CLASS = 200
_classes: dict[tuple[type[Reader], int, str] | None, Pattern] = {}
_letters: dict[tuple[type[Reader], int, int], Pattern] = {}
MAX_REPEAT = 4294967295

# What the last part of a sequence is, for a quantifier that follows.
NOTHING, ATOM, EDGE, REPEATED, RUN = range(5)


class Frame:
    """An open group: what stood before it, and what it is.

    ``kind`` is one of ``"pattern" "group" "atomic" "ahead" "not ahead" "behind" "not behind"``.
    """

    __slots__ = ("alternatives", "flags", "index", "is_lazy", "kind", "offset", "parts", "widths")

    def __init__(self, kind: str, offset: int, flags: int, index: int = 0) -> None:
        self.kind = kind
        self.offset = offset
        self.flags = flags
        self.index = index
        self.alternatives: list[Tree] = []
        self.parts: list[Tree] = []
        # Something inside prefers fewer rounds or the empty text (only kept inside atomic groups).
        self.is_lazy = False
        # Least and most characters of the current alternative, then of the finished ones, as `re` counts
        # them for lookbehind.
        self.widths = [0, 0, MAX_REPEAT, 0]


class Reader:
    """Reads one pattern.

    Parameters
    ----------
    source : str
    flags : int
        Bits of the dialect.
    watch : Watch
    pointer : str or None
        Place of the pattern in a schema, for errors.
    """

    verbose = 0
    ignore_case = 0
    ascii = 0

    def __init__(self, source: str, flags: int, watch: Watch, pointer: str | None = None) -> None:
        self.source = source
        self.flags = flags
        self.watch = watch
        self.pointer = pointer
        self.at = 0
        self.frame = Frame("pattern", 0, flags)
        self.stack: list[Frame] = []
        self.last = NOTHING
        self.last_width = (0, 0)
        self.n_atomic = 0

    # -------------------------------------------------------------------------------- errors

    def error(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        """Raise `SpecError` at ``offset``."""
        raise SpecError(message, source=self.source, offset=offset, pointer=self.pointer, hint=hint)

    def unsupported(self, feature: str, offset: int, reason: str, hint: str) -> NoReturn:
        """Raise `UnsupportedFeatureError` at ``offset``."""
        raise UnsupportedFeatureError(
            feature, source=self.source, offset=offset, pointer=self.pointer, reason=reason, hint=hint
        )

    # -------------------------------------------------------------------------------- the loop

    def read(self) -> Tree:
        """Return the tree of the whole pattern."""
        source, end = self.source, len(self.source)
        handlers = _HANDLERS
        n_steps = 0
        while self.at < end:
            n_steps += 1
            if not n_steps & 63:
                self.watch.step("the pattern", 64)
            handler = handlers.get(source[self.at])
            if handler is None:
                self.plain(source[self.at])
            else:
                handler(self)
        if self.stack:
            self.error("This group is never closed.", self.frame.offset, "Add ')'.")
        self.end_alternative()
        return choice(self.frame.alternatives)

    def read_class(self) -> None:
        """Read a class; what it was found to be is remembered by its text."""
        found = _CLASS.match(self.source, self.at)
        key = (type(self), self.flags, found.group()) if found else None
        pattern = _classes.get(key) if found else None
        if pattern is not None and found:
            self.at = found.end()
        else:
            start = self.at
            pattern = character_class(self.bracket())
            self.watch.step("the pattern", self.at - start)
            if found and self.at == found.end() and self.at - start < _LONGEST_CLASS:
                if len(_classes) >= _MOST_CLASSES:
                    _classes.clear()
                _classes[key] = pattern
        self.append(pattern, ATOM, 1, 1)

    def read_dot(self) -> None:
        """Read ``.``."""
        self.at += 1
        self.append(character_class(self.dot()), ATOM, 1, 1)

    def read_anchor(self) -> None:
        """Read ``^`` or ``$``."""
        self.append(self.anchor(self.source[self.at]), EDGE, 0, 0)
        self.at += 1

    def read_bar(self) -> None:
        """Read ``|``."""
        self.end_alternative()
        self.at += 1

    def read_brace(self) -> None:
        """Read ``{``, which may stand for itself."""
        if not self.counted_quantifier():
            self.character("{")

    def append(self, tree: Tree, kind: int, least: int, most: int) -> None:
        """Add ``tree`` to the sequence; ``least`` and ``most`` are its width in characters."""
        frame = self.frame
        frame.parts.append(tree)
        widths = frame.widths
        widths[0] += least
        widths[1] += most
        self.last = kind
        self.last_width = (least, most)

    def plain(self, character: str) -> None:
        """Read characters that stand for themselves."""
        if self.flags & self.verbose and (character in _SPACE or character == "#"):
            if character == "#":
                newline = self.source.find("\n", self.at)
                self.at = len(self.source) if newline < 0 else newline + 1
            else:
                self.at += 1
            return
        found = None if self.flags & self.ignore_case else _PLAIN.match(self.source, self.at)
        if found is None:
            self.character(character)
            return
        text = found.group()
        self.append(text_literal(text), RUN if len(text) > 1 else ATOM, len(text), len(text))
        self.at = found.end()

    def character(self, character: str) -> None:
        """Add one character that stands for itself."""
        self.at += len(character)
        self.append(self.one(ord(character)), ATOM, 1, 1)

    def one(self, code: int) -> Pattern:
        """Return the pattern of one character, under the flags."""
        if 0xD800 <= code <= 0xDFFF:
            return EMPTY_LANGUAGE
        if not self.flags & self.ignore_case:
            return Literal(chr(code).encode())
        # Equal ones are one object, which is soon found equal.
        key = type(self), self.flags & (self.ignore_case | self.ascii), code
        found = _letters.get(key)
        if found is None:
            if len(_letters) >= _MOST_CLASSES:
                _letters.clear()
            found = _letters[key] = character_class(self.cased(((code, code),)))
        return found

    def cased(self, ranges: Ranges) -> Ranges:
        """Return ``ranges``, closed under case if that is to be ignored."""
        if self.flags & self.ignore_case:
            return ignore_case(ranges, bool(self.flags & self.ascii))
        return ranges

    def end_alternative(self) -> None:
        """Finish the current alternative."""
        frame = self.frame
        frame.alternatives.append(sequence(frame.parts))
        frame.parts = []
        widths = frame.widths
        least, most = widths[0], widths[1]
        widths[2] = min(widths[2], least)
        if most > widths[3]:
            widths[3] = min(MAX_REPEAT, most)
        widths[0] = widths[1] = 0
        self.last = NOTHING

    # -------------------------------------------------------------------------------- groups

    def push(self, kind: str, index: int = 0) -> None:
        """Open a group whose content starts here."""
        self.stack.append(self.frame)
        self.n_atomic += kind == "atomic"
        self.watch.at_most("nesting", len(self.stack), "the nested groups of a pattern")
        self.frame = Frame(kind, self.group_start, self.flags, index)
        self.last = NOTHING

    def close_group(self) -> None:
        """Read ``)``."""
        if not self.stack:
            self.error("This ')' closes nothing.", self.at, r"Write '\)' for the character itself.")
        self.end_alternative()
        frame = self.frame
        body = choice(frame.alternatives)
        if self.n_atomic and any(map(_may_be_empty, frame.alternatives[:-1])):
            frame.is_lazy = True
        least, most = frame.widths[2], frame.widths[3]
        self.frame = self.stack.pop()
        self.frame.is_lazy |= frame.is_lazy
        self.flags = frame.flags
        self.at += 1
        kind = frame.kind
        if kind == "group":
            body = self.closed(frame.index, body)
        elif kind == "atomic":
            self.n_atomic -= 1
            tree = atomic_group(frame.alternatives, not frame.is_lazy)
            if tree is None:
                self.unsupported(
                    self.source[frame.offset : self.at],
                    frame.offset,
                    "is an atomic group that may cut off matches, which is not supported",
                    "Write a plain group '(?:...)' or make its alternatives exclude each other.",
                )
            body = tree
        else:
            if kind.endswith("behind"):
                self.check_lookbehind(frame, least, most)
            body = look(kind.endswith("ahead"), kind.startswith("not"), body, frame.offset)
            least = most = 0
        self.append(body, ATOM, least, most)

    # -------------------------------------------------------------------------------- quantifiers

    def quantifier(self) -> None:
        """Read ``*``, ``+`` or ``?``."""
        character = self.source[self.at]
        start = self.at
        self.at += 1
        self.repeat(0 if character != "+" else 1, 1 if character == "?" else None, start)

    def counted_quantifier(self) -> bool:
        """Read ``{m,n}`` and its short forms; ``False`` if the brace stands for itself."""
        found = self.count_form.match(self.source, self.at)
        if found is None:
            return False
        low, comma, high = found.group(1), found.group(2), found.group(3)
        start = self.at
        if max(len(low.lstrip("0")), len((high or "").lstrip("0"))) > 10:
            self.error(f"This count is over {MAX_REPEAT:,}.", start)
        minimum = int(low) if low else 0
        maximum = minimum if not comma else int(high) if high else None
        if max(minimum, maximum or 0) >= MAX_REPEAT:
            self.error(f"This count is over {MAX_REPEAT - 1:,}.", start)
        if maximum is not None and maximum < minimum:
            self.error(f"The minimum {minimum} is greater than the maximum {maximum}.", start)
        self.at = found.end()
        self.repeat(minimum, maximum, start)
        return True

    count_form = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}(?<!\{\})")

    def repeat(self, minimum: int, maximum: int | None, start: int) -> None:
        """Apply a quantifier, written at ``start``, to the last part."""
        mark = self.source[start : self.at]
        suffix = self.source[self.at : self.at + 1]
        if suffix == "?" or (suffix == "+" and self.has_possessive):
            self.at += 1
            self.frame.is_lazy |= suffix == "?"
        else:
            suffix = ""
        parts = self.frame.parts
        if self.last == REPEATED:
            self.error(
                f"{mark!r} follows another quantifier.", start, "Put the repeated part into '(?:...)'."
            )
        if self.last == NOTHING or (self.last == EDGE and not self.can_repeat_edge):
            self.error(
                f"There is nothing before {mark!r} to repeat.",
                start,
                f"Write '\\{mark[0]}' for the character itself.",
            )
        body = parts.pop()
        least, most = self.last_width
        widths = self.frame.widths
        if self.last == RUN:
            text = body.data.decode() if isinstance(body, Literal) else ""
            parts.append(text_literal(text[:-1]) if text else EMPTY_LANGUAGE)
            body = text_literal(text[-1]) if text else EMPTY_LANGUAGE
            least = most = 1
        widths[0] += least * minimum - least
        widths[1] += min(most * (MAX_REPEAT if maximum is None else maximum), MAX_REPEAT) - most
        if suffix == "+":
            tree = possessive_loop(body, minimum, maximum)
            if tree is None:
                self.unsupported(
                    mark + "+",
                    start,
                    "makes a repeat that may cut off matches, which is not supported here",
                    f"Write {mark!r}, or repeat something whose end is certain, such as one character.",
                )
        else:
            tree = self.loop(body, minimum, maximum, suffix == "?")
        parts.append(tree)
        self.last = REPEATED

    def loop(self, body: Tree, minimum: int, maximum: int | None, is_lazy: bool) -> Tree:
        """Return ``body`` repeated; which counts are tried first says nothing of whole texts."""
        return loop(body, minimum, maximum)

    # -------------------------------------------------------------------------------- for dialects

    has_possessive = True
    can_repeat_edge = False
    group_start = 0

    def escape(self) -> None:
        """Read an escape outside a class."""
        raise NotImplementedError

    def bracket(self) -> Ranges:
        """Read a class."""
        raise NotImplementedError

    def open_group(self) -> None:
        """Read ``(`` and what says which kind of group it is."""
        raise NotImplementedError

    def closed(self, index: int, body: Tree) -> Tree:
        """Return what stands for the complete group ``index`` (0: one that captures nothing)."""
        return body

    def check_lookbehind(self, frame: Frame, least: int, most: int) -> None:
        """Refuse what the dialect does not take in lookbehind."""

    def dot(self) -> Ranges:
        """Return the set of ``.``."""
        raise NotImplementedError

    def anchor(self, character: str) -> Tree:
        """Return the tree of ``^`` or ``$``."""
        raise NotImplementedError


def _may_be_empty(tree: Tree) -> bool:
    return isinstance(tree, Node) or is_nullable(tree)


_HANDLERS: dict[str, Callable[[Reader], None]] = {
    "\\": lambda reader: reader.escape(),
    "(": lambda reader: reader.open_group(),
    "[": Reader.read_class,
    ")": Reader.close_group,
    "|": Reader.read_bar,
    "*": Reader.quantifier,
    "+": Reader.quantifier,
    "?": Reader.quantifier,
    "{": Reader.read_brace,
    ".": Reader.read_dot,
    "^": Reader.read_anchor,
    "$": Reader.read_anchor,
}
