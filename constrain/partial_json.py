"""The finished parts of a JSON text that is still being written.

``PartialJson`` reads text as it arrives and keeps what can't change any more: a string after its
closing quote, a number after the byte that ends it, an object or array with the finished parts it
has so far. It is meant for text whose grammar is enforced elsewhere; on anything that cannot begin
a JSON text it stops and keeps what it had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

Container: TypeAlias = dict[str, Any] | list[Any]

_BLANKS = " \t\n\r"
_CLOSERS = ",]}" + _BLANKS
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]..")


class PartialJson:
    """Reads JSON text in pieces; every character is looked at once.

    Attributes
    ----------
    is_in_string : bool
        The text ends inside a string.
    is_broken : bool
        The text cannot begin a JSON text.
    open_scalar : str
        What is written of a scalar that isn't finished.
    open_escape : str
        What is written of an escape in a string that isn't finished; both halves of a surrogate pair are one.
    """

    def __init__(self) -> None:
        self.is_in_string = False
        self.is_broken = False
        self.open_scalar = ""
        self.open_escape = ""
        self._stack: list[Container] = []
        self._keys: list[str | None] = []
        """For each open container the key whose value is being read; ``None`` in arrays and before keys."""
        self._spellings: list[str] = []
        """For each open container the last key, as it is written."""
        self._replaceable: list[set[str]] = []
        """For each open container the members that a later one of the same name may replace."""
        self._root: Any = None
        self._is_started = False
        self._member: str | None = None

    @property
    def is_in_number(self) -> bool:
        """Does the text end inside a number or a word (or behind one that may go on)?"""
        return bool(self.open_scalar) and not self.is_in_string

    def feed(self, text: str) -> None:
        """Read the next piece of the text."""
        for character in text:
            if self.is_broken:
                return
            self.feed_one(character)

    def feed_one(self, character: str) -> str | None:
        """Read one character; return the name, as it is written, of the member of an object that it finishes."""
        self._member = None
        if self.is_broken:
            return None
        if self.is_in_string:
            self._read_in_string(character)
        else:
            self._read(character)
        return self._member

    def value(self) -> Any:
        """A copy of what is finished; ``None`` while nothing is."""
        return _copied(self._root, {}) if self._is_started else None

    def copy(self) -> PartialJson:
        """A reader of the same text that reads on by itself."""
        other = PartialJson()
        other.__dict__.update(self.__dict__)
        copies: dict[int, Container] = {}
        other._root = _copied(self._root, copies)
        other._stack = [copies[id(container)] for container in self._stack]
        other._keys = self._keys.copy()
        other._spellings = self._spellings.copy()
        other._replaceable = [names.copy() for names in self._replaceable]
        return other

    def keep_open(self) -> None:
        """Note that the last member of the innermost open object may be replaced by another of its name."""
        self._replaceable[-1].add(next(reversed(self._stack[-1])))

    def replace_scalar(self, text: str) -> None:
        """Take ``text`` for what is written of the scalar that isn't finished."""
        self.open_scalar = text

    def open_pointers(self) -> tuple[str, ...]:
        """JSON pointers (RFC 6901) of what may still change, outermost first.

        These are the objects and arrays that may still grow, and members that may be replaced. Everything else
        in ``value()`` is final.
        """
        pointers = []
        pointer = ""
        for depth, container in enumerate(self._stack):
            pointers.append(pointer)
            pointers += [f"{pointer}/{_token(name)}" for name in self._replaceable[depth]]
            if depth + 1 < len(self._stack):
                # The open child is the newest part of its container.
                last = len(container) - 1 if isinstance(container, list) else next(reversed(container))
                pointer += f"/{_token(last)}"
        return tuple(dict.fromkeys(pointers))

    def final_pointers(self) -> Iterator[str]:
        """JSON pointers of the values that are final, those inside other final ones left out."""
        if not self._is_started:
            return
        if not self._stack:
            yield ""
        pointer = ""
        for depth, container in enumerate(self._stack):
            is_list = isinstance(container, list)
            parts: list[Any] = list(range(len(container)) if is_list else container)
            last = parts.pop() if depth + 1 < len(self._stack) else ""
            for part in parts:
                if is_list or part not in self._replaceable[depth]:
                    yield f"{pointer}/{_token(part)}"
            pointer += f"/{_token(last)}"

    def _read_in_string(self, character: str) -> None:
        self.open_scalar += character
        if self.open_escape:
            escape = self.open_escape + character
            self.open_escape = "" if _is_whole(escape) else escape
        elif character == "\\":
            self.open_escape = character
        elif character == '"':
            self.is_in_string = False
            self._finish_scalar()

    def _read(self, character: str) -> None:
        if self.open_scalar and character in _CLOSERS:
            self._finish_scalar()
        if character in _BLANKS or character in ",:":
            return
        if character in "{[":
            container: Container = {} if character == "{" else []
            self._place(container)
            self._stack.append(container)
            self._keys.append(None)
            self._spellings.append("")
            self._replaceable.append(set())
        elif character in "}]":
            if not self._stack:
                self.is_broken = True
                return
            self._stack.pop()
            self._keys.pop()
            self._spellings.pop()
            self._replaceable.pop()
            self._note_member()
        elif character == '"' and not self.open_scalar:
            self.open_scalar, self.is_in_string = '"', True
        else:
            self.open_scalar += character

    def _finish_scalar(self) -> None:
        try:
            scalar = json.loads(self.open_scalar)
        except ValueError:
            self.is_broken = True
            return
        spelling, self.open_scalar = self.open_scalar, ""
        if self._stack and isinstance(self._stack[-1], dict) and self._keys[-1] is None:
            self._keys[-1] = str(scalar)
            self._spellings[-1] = spelling
        else:
            self._place(scalar)
            self._note_member()

    def _note_member(self) -> None:
        """Note that the value of the innermost object's last member is finished."""
        is_object = bool(self._stack) and isinstance(self._stack[-1], dict)
        self._member = self._spellings[-1] if is_object and not self.is_broken else None

    def _place(self, value: Any) -> None:
        """Put a finished scalar or a newly opened container where it belongs."""
        if not self._stack:
            self._root, self._is_started = value, True
            return
        container = self._stack[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            key = self._keys[-1]
            if key is None:
                self.is_broken = True
                return
            # A repeated key counts as new: it must stand last for ``open_pointers``.
            container.pop(key, None)
            container[key] = value
            self._keys[-1] = None


def _is_whole(escape: str) -> bool:
    """Is an escape finished? The first half of a surrogate pair is not."""
    n = len(escape)
    if n < 6:
        return n == 2 and escape[1] != "u"
    if n == 6:
        return _HIGH_SURROGATE.fullmatch(escape) is None
    return n == 12 or escape[6:8] != "\\u"[: n - 6]


def _token(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _copied(value: Any, copies: dict[int, Container]) -> Any:
    """A deep copy of JSON data, without recursion; ``copies`` gets the copy of each container, by its id."""
    if not isinstance(value, dict | list):
        return value
    top: Container = type(value)()
    copies[id(value)] = top
    pending: list[tuple[Any, Any]] = [(value, top)]
    while pending:
        old, new = pending.pop()
        for key, child in old.items() if isinstance(old, dict) else enumerate(old):
            copied = child
            if isinstance(child, dict | list):
                copied = copies[id(child)] = type(child)()
                pending.append((child, copied))
            if isinstance(new, dict):
                new[key] = copied
            else:
                new.append(copied)
    return top
