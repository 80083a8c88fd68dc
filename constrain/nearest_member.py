"""The member of a spec that is nearest to a text: fewest bytes inserted, deleted and replaced.

A breadth-first search over pairs of a place in the text and a state of the spec's byte automaton: a byte
that fits costs nothing, each edit 1. For a regular spec there are at most ``len(text) * states`` pairs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.base_spec import encoded
from constrain.errors import LimitExceededError, SpecError

if TYPE_CHECKING:
    from constrain.base_spec import Spec
    from constrain.tokenizer_index.arena import Arena

__all__ = ["Repair", "repair"]

# Of the bytes that lead to one state, the one that a reader likes best stands for all.
_LIKED = [*b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. ,:;"]
_ORDER = _LIKED + [byte for byte in range(256) if byte not in _LIKED]


@dataclass(frozen=True, slots=True)
class Repair:
    """A member, and how far it is from the text it was made of.

    Parameters
    ----------
    text : str
    edits : int
        Bytes inserted, deleted or replaced; 0 if the text was a member.
    """

    text: str
    edits: int


def repair(spec: Spec, text: str, *, max_edits: int | None = None, max_places: int = 500_000) -> Repair:
    """Return a member of ``spec`` with the fewest edits from ``text``.

    Parameters
    ----------
    spec : Spec
        Without checks of its own (`Spec.where`): those can't be searched.
    text : str
    max_edits : int or None
        Give up beyond so many.
    max_places : int
        Give up after looking at so many pairs of a place and a state.

    Raises
    ------
    SpecError
        The spec has checks, or ``text`` isn't valid Unicode.
    LimitExceededError
        There is no member within ``max_edits``, or the search got too large.
    """
    if spec.checks:
        raise SpecError(f"{spec!r} has checks, which no search for the nearest member can look into.")
    data = encoded(text)
    if data is None:
        raise SpecError("The text holds a lone surrogate, so it is no Unicode text.", source=text)
    search = _Search(spec._byte_arena(), data, max_places, repr(spec))
    found, edits = search.run(max_edits)
    return Repair(found.decode("utf-8", errors="surrogateescape"), edits)


class _Search:
    def __init__(self, arena: Arena, data: bytes, most: int, name: str) -> None:
        self.arena = arena
        self.data = data
        self.most = most
        self.name = name
        # By (place, state): the pair it came from, and the byte that was written on the way (-1: none).
        self.origin: dict[tuple[int, int], tuple[tuple[int, int] | None, int]] = {}
        self._steps: dict[int, dict[int, int]] = {}

    def run(self, max_edits: int | None) -> tuple[bytes, int]:
        """The nearest member, and its distance."""
        layer: deque[tuple[int, int]] = deque()
        self._reach((0, self.arena.start), None, -1, layer)
        edits = 0
        while layer:
            following: deque[tuple[int, int]] = deque()
            todo = layer
            layer = deque()
            # All that is reached without another edit belongs to this layer.
            while todo:
                pair = todo.popleft()
                layer.append(pair)
                place, state = pair
                if place == len(self.data):
                    if self.arena.is_accepting(state):
                        return self._written(pair), edits
                    continue
                after, n_read = self.arena.step_bytes(state, self.data[place : place + 1])
                if n_read:
                    self._reach((place + 1, after), pair, self.data[place], todo)
            if max_edits is not None and edits >= max_edits:
                raise LimitExceededError(
                    "max_edits",
                    max_edits,
                    f"the nearest member of {self.name}",
                    hint="Every member is farther.",
                )
            for pair in layer:
                place, state = pair
                if place < len(self.data):
                    self._reach((place + 1, state), pair, -1, following)
                for after, byte in self._ways(state).items():
                    if place < len(self.data):
                        self._reach((place + 1, after), pair, byte, following)
                    self._reach((place, after), pair, byte, following)
            layer = following
            edits += 1
        raise LimitExceededError("max_edits", edits, f"the nearest member of {self.name}")

    def _reach(
        self, pair: tuple[int, int], origin: tuple[int, int] | None, byte: int, queue: deque[tuple[int, int]]
    ) -> None:
        if pair in self.origin:
            return
        if len(self.origin) >= self.most:
            raise LimitExceededError(
                "max_places",
                self.most,
                f"the nearest member of {self.name}",
                hint="Pass a larger max_places.",
            )
        self.origin[pair] = (origin, byte)
        queue.append(pair)

    def _ways(self, state: int) -> dict[int, int]:
        """States one byte further, each with a byte that leads there."""
        found = self._steps.get(state)
        if found is None:
            found = self._steps[state] = {}
            live = self.arena.live_bytes(state)
            for byte in _ORDER:
                if live[byte]:
                    after, _ = self.arena.step_bytes(state, bytes([byte]))
                    found.setdefault(after, byte)
        return found

    def _written(self, pair: tuple[int, int]) -> bytes:
        written = bytearray()
        at: tuple[int, int] | None = pair
        while at is not None:
            at, byte = self.origin[at]
            if byte >= 0:
                written.append(byte)
        return bytes(written[::-1])
