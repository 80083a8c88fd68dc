"""The finished parts of a JSON text that is still being written.

``PartialJson`` reads text as it arrives and keeps what can't change any more: a string after its
closing quote, a number after the byte that ends it, an object or array with the finished parts it
has so far. It is meant for text whose grammar is enforced elsewhere; on anything that cannot begin
a JSON text it stops and keeps what it had.
"""

from __future__ import annotations

import json
from typing import Any

_BLANKS = " \t\n\r"
_CLOSERS = ",]}" + _BLANKS


class PartialJson:
    """Reads JSON text in pieces; every character is looked at once."""

    def __init__(self) -> None:
        self._stack: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        """For each open container the key whose value is being read; ``None`` in arrays and before keys."""
        self._scalar = ""
        self._is_string = False
        self._is_escaped = False
        self._root: Any = None
        self._is_started = False
        self._is_broken = False

    def feed(self, text: str) -> None:
        """Read the next piece of the text."""
        for character in text:
            if self._is_broken:
                return
            if self._is_string:
                self._scalar += character
                if self._is_escaped:
                    self._is_escaped = False
                elif character == "\\":
                    self._is_escaped = True
                elif character == '"':
                    self._is_string = False
                    self._finish_scalar()
            else:
                self._read(character)

    def value(self) -> Any:
        """A copy of what is finished; ``None`` while nothing is."""
        return _copied(self._root) if self._is_started else None

    def open_pointers(self) -> tuple[str, ...]:
        """JSON pointers (RFC 6901) of the objects and arrays that may still grow, outermost first.

        Everything else in ``value()`` is final.
        """
        pointers = []
        pointer = ""
        for depth, container in enumerate(self._stack):
            pointers.append(pointer)
            if depth + 1 < len(self._stack):
                # The open child is the newest part of its container.
                last = len(container) - 1 if isinstance(container, list) else next(reversed(container))
                pointer += "/" + str(last).replace("~", "~0").replace("/", "~1")
        return tuple(pointers)

    def _read(self, character: str) -> None:
        if self._scalar and character in _CLOSERS:
            self._finish_scalar()
        if character in _BLANKS or character in ",:":
            return
        if character in "{[":
            container: dict[str, Any] | list[Any] = {} if character == "{" else []
            self._place(container)
            self._stack.append(container)
            self._keys.append(None)
        elif character in "}]":
            if not self._stack:
                self._is_broken = True
                return
            self._stack.pop()
            self._keys.pop()
        elif character == '"' and not self._scalar:
            self._scalar, self._is_string = '"', True
        else:
            self._scalar += character

    def _finish_scalar(self) -> None:
        try:
            scalar = json.loads(self._scalar)
        except ValueError:
            self._is_broken = True
            return
        self._scalar = ""
        if self._stack and isinstance(self._stack[-1], dict) and self._keys[-1] is None:
            self._keys[-1] = str(scalar)
        else:
            self._place(scalar)

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
                self._is_broken = True
                return
            # A repeated key counts as new: it must stand last for ``open_pointers``.
            container.pop(key, None)
            container[key] = value
            self._keys[-1] = None


def _copied(value: Any) -> Any:
    """A deep copy of JSON data, without recursion."""
    if not isinstance(value, dict | list):
        return value
    top: dict[str, Any] | list[Any] = type(value)()
    pending: list[tuple[Any, Any]] = [(value, top)]
    while pending:
        old, new = pending.pop()
        for key, child in old.items() if isinstance(old, dict) else enumerate(old):
            copied = child
            if isinstance(child, dict | list):
                copied = type(child)()
                pending.append((child, copied))
            if isinstance(new, dict):
                new[key] = copied
            else:
                new.append(copied)
    return top
