"""The states of terminals read side by side, byte by byte: what the kernel of `lexeme_product` must find."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from constrain.tokenizer_index.fragment import N_EDGE_COLUMNS, N_POSITION_COLUMNS, Fragment
from constrain.tokenizer_index.layout import ENDS, ENDS_ABOVE, ENDS_GREEDY, HAS_COMPANION
from constrain.tokenizer_index.lexeme import Lexeme
from constrain.tokenizer_index.lexeme_product import States

# A place: terminal, literal, position.
State = frozenset[tuple[int, int, int]]


class SlowProduct:
    """The same questions as to `Product`, answered by trying all bytes."""

    def __init__(self, lexemes: Sequence[Lexeme], priority: Sequence[int], greedy: Sequence[bool]) -> None:
        self._lexemes = lexemes
        self._priority = priority
        self._greedy = greedy

    def states(self, t: int, company: Sequence[int], companion: int = -1) -> States:
        """Return all states in which ``t`` is alive, in order of discovery."""
        start = frozenset(
            (x, k, 0)
            for x in company
            for k, (negative, fragment) in enumerate(self._lexemes[x].literals)
            if not (negative and _positions(fragment)[:, 2].any())
        )
        order: list[State] = []
        goes_on, flags, offsets, targets = [], [], [0], []
        for i, state in enumerate(chain([start], order)):  # grows while it is read
            reached: list[int] = []
            readable = 0
            for byte in range(256):
                after = self._after(state, byte)
                if after:
                    readable |= 1 << byte
                if any(x == t for x, _, _ in after):
                    if after not in order:
                        order.append(after)
                    number = order.index(after)
                    if number not in reached:
                        reached.append(number)
            if i > 0:  # not the start
                goes_on.append(readable)
                flags.append(self._flags(state, t, companion))
                targets += reached
                offsets.append(len(targets))
        return States(goes_on, flags, offsets, targets)

    def _after(self, state: State, byte: int) -> State:
        reached = set()
        for x, k, position in state:
            fragment = self._lexemes[x].literals[k][1]
            positions, edges = _positions(fragment), _edges(fragment)
            first = int(positions[:position, 0].sum())
            for low, high, target, _, _ in edges[first : first + positions[position, 0]].tolist():
                if low <= byte <= high:
                    reached.add((x, k, target))
        return frozenset(place for place in reached if self._has_all(place[0], reached))

    def _has_all(self, x: int, places: set[tuple[int, int, int]]) -> bool:
        literals = {k for other, k, _ in places if other == x}
        return all(negative or k in literals for k, (negative, _) in enumerate(self._lexemes[x].literals))

    def _flags(self, state: State, t: int, companion: int) -> int:
        ends = []
        for x in {x for x, _, _ in state}:
            accepted = {
                k
                for other, k, position in state
                if other == x and _positions(self._lexemes[x].literals[k][1])[position, 1]
            }
            if all((k in accepted) != negative for k, (negative, _) in enumerate(self._lexemes[x].literals)):
                ends.append(x)
        own = self._priority[t]
        found = ENDS * (t in ends)
        found |= ENDS_GREEDY * any(self._greedy[x] and self._priority[x] == own for x in ends)
        found |= ENDS_ABOVE * any(self._priority[x] > own for x in ends)
        return found | HAS_COMPANION * any(x == companion for x, _, _ in state)


def _positions(fragment: Fragment) -> np.ndarray:
    return np.frombuffer(fragment.positions, np.int32).reshape(-1, N_POSITION_COLUMNS)


def _edges(fragment: Fragment) -> np.ndarray:
    return np.frombuffer(fragment.edges, np.int32).reshape(-1, N_EDGE_COLUMNS)
