"""The automata of single terminals as Python walks them: a literal with its counts, and a terminal read loosely.

Sets of bytes are the bits of integers. `lexeme_product` says what loose means.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

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
        self._table = _table(fragment)

    def accepts(self, values: frozenset[int]) -> bool:
        """May the literal end here?"""
        table = self._table
        for value in values:
            x = value & _POSITION
            if table.accept[x] and (not table.is_hub[x] or value >> 32 >= table.least[x]):
                return True
        return False

    def can_end(self, values: frozenset[int]) -> bool:
        """Does some way lead on to the literal's end? Counts never bar the way, walls do."""
        return any(self._table.distance[value & _POSITION] >= 0 for value in values)

    def steps(self, values: frozenset[int]) -> Iterator[tuple[int, int]]:
        """Yield (bytes, value after) of every edge."""
        table = self._table
        for value in values:
            count, x = value >> 32, value & _POSITION
            least, most = table.least[x], table.most[x]
            for low, high, target, guard, action in table.row(x):
                if (guard == AGAIN and 0 <= most <= count) or (guard == LEAVE and count < least):
                    continue
                after = count if action == KEEP else action
                if action == INC:
                    after = count + 1 if table.most[target] >= 0 else min(count + 1, table.least[target])
                yield (2 << high) - (1 << low), after << 32 | target


class Loose:
    """A terminal read loosely; its sets of positions are numbered as they are reached, from 0.

    Positions of several literals are numbered one after another.
    """

    def __init__(self, lexeme: Lexeme) -> None:
        # The literals that count, (negative, first position, first position behind it).
        self._literals: list[tuple[bool, int, int]] = []
        self._tables: list[tuple[int, _Table]] = []
        n = 0
        for negative, fragment in lexeme.literals:
            table = _table(fragment)
            if not (negative and any(table.is_hub)):
                self._tables.append((n, table))
                self._literals.append((negative, n, n + fragment.n_positions))
                n += fragment.n_positions
        self._sets = [frozenset(base for base, _ in self._tables)]
        self._numbers = {self._sets[0]: 0}
        self._edges: dict[int, list[tuple[int, int]]] = {}
        self._moves: dict[int, list[tuple[int, int]]] = {}

    def _row(self, position: int) -> list[tuple[int, int]]:
        """Return (bytes, position after any of them) of each position that is reached."""
        if position not in self._edges:
            base, table = next(pair for pair in reversed(self._tables) if pair[0] <= position)
            spans: dict[int, int] = {}
            for low, high, target, _, _ in table.row(position - base):
                spans[target] = spans.get(target, 0) | (2 << high) - (1 << low)
            self._edges[position] = [(span, base + target) for target, span in spans.items()]
        return self._edges[position]

    def _accepts(self, position: int) -> bool:
        base, table = next(pair for pair in reversed(self._tables) if pair[0] <= position)
        return table.accept[position - base] != 0

    def _all(self, positions: Iterable[int], *, alive: bool) -> bool:
        """Are all positive literals among ``positions``, and, unless only ``alive`` is asked for, no negative ones?"""
        for negative, first, behind in self._literals:
            is_there = any(first <= x < behind for x in positions)
            if is_there == negative and not (negative and alive):
                return False
        return True

    def accepts(self, state: int) -> bool:
        """May the terminal end here?"""
        return self._all([x for x in self._sets[state] if self._accepts(x)], alive=False)

    def moves(self, state: int) -> list[tuple[int, int]]:
        """Return (bytes, state after any of them); the sets of bytes are disjoint."""
        if state not in self._moves:
            self._moves[state] = [
                (span, self._number(reached))
                for reached, span in byte_cells([self._row(x) for x in self._sets[state]]).items()
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
    by_span: dict[int, list[_T]] = {}
    for part in parts:
        for span, value in part:
            by_span.setdefault(span, []).append(value)
    cells: dict[frozenset[_T], int] = {}
    taken = 0
    for span, values in by_span.items():
        reached = frozenset(values)
        if taken & span:
            cells = _refined(cells, span, reached)
        else:  # as nearly all are
            cells[reached] = cells.get(reached, 0) | span
        taken |= span
    return cells


def _refined(cells: dict[frozenset[_T], int], span: int, values: frozenset[_T]) -> dict[frozenset[_T], int]:
    """Return disjoint cells of bytes, each with the values reached by its bytes, after ``span`` reaches ``values``."""
    split: dict[frozenset[_T], int] = {}
    for reached, cell in cells.items():
        both = cell & span
        if both:
            span ^= both
            after = reached | values
            split[after] = split.get(after, 0) | both
            cell ^= both
        if cell:
            split[reached] = split.get(reached, 0) | cell
    if span:
        split[values] = split.get(values, 0) | span
    return split


class _Table:
    """A fragment's arrays by position; edges are looked up as they are needed."""

    def __init__(self, fragment: Fragment) -> None:
        columns = array("i", fragment.positions)
        self.accept, self.is_hub, self.least, self.most, self.distance = (
            columns[k::N_POSITION_COLUMNS] for k in range(1, N_POSITION_COLUMNS)
        )
        self._offsets = [0, *accumulate(columns[0::N_POSITION_COLUMNS])]
        self._edges = array("i", fragment.edges)

    def row(self, position: int) -> Iterator[tuple[int, ...]]:
        """Yield (low, high, target, guard, action) of each edge of a position."""
        first, end = self._offsets[position : position + 2]
        values = iter(self._edges[N_EDGE_COLUMNS * first : N_EDGE_COLUMNS * end])
        return zip(*[values] * N_EDGE_COLUMNS, strict=True)


_table = lru_cache(maxsize=256)(_Table)


def has_counts(lexeme: Lexeme) -> bool:
    """Does the terminal have counted repeats?"""
    return any(any(_table(fragment).is_hub) for _, fragment in lexeme.literals)
