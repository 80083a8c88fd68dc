"""The automata of single terminals as Python walks them: a literal with its counts, and a terminal read loosely.

Sets of bytes are the bits of integers. `lexeme_product` says what loose means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from constrain.tokenizer_index.fragment import (
    AGAIN,
    INC,
    KEEP,
    LEAVE,
    N_EDGE_COLUMNS,
    N_POSITION_COLUMNS,
    Fragment,
)
from constrain.tokenizer_index.lexeme import Lexeme

_POSITION = (1 << 32) - 1

_T = TypeVar("_T")


class Exact:
    """One literal of a terminal, counts and all."""

    def __init__(self, fragment: Fragment) -> None:
        self.start = frozenset({0})
        self._positions, self._edges = _tables(fragment)

    def accepts(self, values: frozenset[int]) -> bool:
        """May the literal end here?"""
        for value in values:
            row = self._positions[value & _POSITION]
            if row[1] and (not row[2] or value >> 32 >= row[3]):
                return True
        return False

    def can_end(self, values: frozenset[int]) -> bool:
        """Does some way lead on to the literal's end? Counts never bar the way, walls do."""
        return any(self._positions[value & _POSITION][5] >= 0 for value in values)

    def steps(self, values: frozenset[int]) -> Iterator[tuple[int, int]]:
        """Yield (bytes, value after) of every edge."""
        for value in values:
            count = value >> 32
            least, most = self._positions[value & _POSITION][3:5]
            for low, high, target, guard, action in self._edges[value & _POSITION]:
                if (guard == AGAIN and 0 <= most <= count) or (guard == LEAVE and count < least):
                    continue
                after = count if action == KEEP else action
                if action == INC:
                    least_there, most_there = self._positions[target][3:5]
                    after = count + 1 if most_there >= 0 else min(count + 1, least_there)
                yield (2 << high) - (1 << low), after << 32 | target


class Loose:
    """A terminal read loosely; its sets of positions are numbered as they are reached, from 0.

    Positions of several literals are numbered one after another.
    """

    def __init__(self, lexeme: Lexeme) -> None:
        self._edges: list[list[tuple[int, int]]] = []
        self._accept: list[bool] = []
        # The literals that count, (negative, first position behind it).
        self._literals: list[tuple[bool, int]] = []
        starts = []
        for negative, fragment in lexeme.literals:
            positions, edges = _tables(fragment)
            if negative and any(row[2] for row in positions):
                continue
            base = len(self._accept)
            starts.append(base)
            self._accept += [row[1] != 0 for row in positions]
            for row in edges:
                spans: dict[int, int] = {}
                for low, high, target, *_ in row:
                    spans[target] = spans.get(target, 0) | (2 << high) - (1 << low)
                self._edges.append([(span, base + target) for target, span in spans.items()])
            self._literals.append((negative, len(self._accept)))
        self._sets = [frozenset(starts)]
        self._numbers = {self._sets[0]: 0}
        self._moves: dict[int, list[tuple[int, int]]] = {}

    def _all(self, positions: Iterable[int], *, alive: bool) -> bool:
        """Are all positive literals among ``positions``, and, unless only ``alive`` is asked for, no negative ones?"""
        first = 0
        for negative, behind in self._literals:
            is_there = any(first <= x < behind for x in positions)
            if is_there == negative and not (negative and alive):
                return False
            first = behind
        return True

    def accepts(self, state: int) -> bool:
        """May the terminal end here?"""
        return self._all([x for x in self._sets[state] if self._accept[x]], alive=False)

    def moves(self, state: int) -> list[tuple[int, int]]:
        """Return (bytes, state after any of them); the sets of bytes are disjoint."""
        if state not in self._moves:
            self._moves[state] = [
                (span, self._number(reached))
                for reached, span in byte_cells([self._edges[x] for x in self._sets[state]]).items()
                if self._all(reached, alive=True)
            ]
        return self._moves[state]

    def _number(self, positions: frozenset[int]) -> int:
        if positions not in self._numbers:
            self._numbers[positions] = len(self._sets)
            self._sets.append(positions)
        return self._numbers[positions]


def byte_cells(parts: Iterable[Sequence[tuple[int, _T]]]) -> dict[frozenset[_T], int]:
    """Return disjoint cells of bytes, each with the values reached by its bytes, given (bytes, value reached)."""
    cells: dict[frozenset[_T], int] = {}
    taken = 0
    for part in parts:
        for span, value in part:
            if taken & span:
                cells = _refined(cells, span, value)
            else:  # as nearly all are
                alone = frozenset((value,))
                cells[alone] = cells.get(alone, 0) | span
            taken |= span
    return cells


def _refined(cells: dict[frozenset[_T], int], span: int, value: _T) -> dict[frozenset[_T], int]:
    """Return disjoint cells of bytes, each with the values reached by its bytes, after ``span`` reaches ``value``."""
    split: dict[frozenset[_T], int] = {}
    for reached, cell in cells.items():
        both = cell & span
        if both:
            span ^= both
            after = reached | {value}
            split[after] = split.get(after, 0) | both
            cell ^= both
        if cell:
            split[reached] = split.get(reached, 0) | cell
    if span:
        after = frozenset((value,))
        split[after] = split.get(after, 0) | span
    return split


@lru_cache(maxsize=256)
def _tables(fragment: Fragment) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Return the rows of positions, and the edges of each position."""
    positions = np.frombuffer(fragment.positions, np.int32).reshape(-1, N_POSITION_COLUMNS).tolist()
    flat = np.frombuffer(fragment.edges, np.int32).reshape(-1, N_EDGE_COLUMNS).tolist()
    edges, at = [], 0
    for row in positions:
        edges.append(flat[at : at + row[0]])
        at += row[0]
    return positions, edges


def has_counts(lexeme: Lexeme) -> bool:
    """Does the terminal have counted repeats?"""
    return any(row[2] for _, fragment in lexeme.literals for row in _tables(fragment)[0])
