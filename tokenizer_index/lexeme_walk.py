"""What may be read inside lexemes and behind them, byte by byte: the terminals' automata walked together.

Everything here is decided from the byte automata of a few terminals at a time, by small determinisations with a
limit on their states. Sets of bytes and of terminals are the bits of integers.

A *loose* automaton forgets counts and, of a conjunction, all literals but the first positive one: it goes on
and accepts wherever the terminal does, and more. What must not be missed is asked of loose automata, what
must really exist of exact ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from constrain.grammars.limits import Watch
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

MOST_STATES = 4_000
"""States of one small determinisation; where there are more, the answer is the cautious one."""

_POSITION = (1 << 32) - 1

# Lexer values (count << 32 | position) of each automaton that is walked.
_State: TypeAlias = tuple[frozenset[int], ...]


class TooManyStatesError(Exception):
    """A determinisation reached its limit."""


class _Exact:
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

    def steps(self, values: frozenset[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (low, high, value after) of every edge."""
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
                yield low, high, after << 32 | target


class _Loose:
    """Several terminals read side by side, loosely; their positions are numbered one after another."""

    def __init__(self, fragments: Iterable[tuple[int, Fragment]]) -> None:
        self._edges: list[list[list[int]]] = []
        self._accept: list[int] = []
        self.owner: list[int] = []
        starts = []
        for t, fragment in fragments:
            positions, edges = _tables(fragment)
            base = len(self.owner)
            starts.append(base)
            self.owner += [t] * len(positions)
            self._accept += [t if row[1] else -1 for row in positions]
            for row in edges:
                self._edges.append([[low, high, base + target] for low, high, target, *_ in row])
        self.start = frozenset(starts)

    def accepted(self, positions: frozenset[int]) -> set[int]:
        """Return the terminals that may end here."""
        return {t for x in positions if (t := self._accept[x]) >= 0}

    def steps(self, positions: frozenset[int]) -> Iterator[list[int]]:
        """Yield (low, high, position after) of every edge."""
        for x in positions:
            yield from self._edges[x]


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


def _moves(parts: Sequence[_Exact | _Loose], state: _State) -> list[tuple[int, _State]]:
    """Return (bytes, state after any of them); bytes that no automaton reads are left out."""
    edges = [(low, high, k, v) for k, p in enumerate(parts) for low, high, v in p.steps(state[k])]
    ends = sorted({low for low, *_ in edges} | {high + 1 for _, high, *_ in edges})
    number = {end: i for i, end in enumerate(ends)}
    reached: list[list[set[int]] | None] = [None] * len(ends)
    for low, high, k, value in edges:
        for i in range(number[low], number[high + 1]):
            row = reached[i]
            if row is None:
                row = reached[i] = [set() for _ in parts]
            row[k].add(value)
    moves: dict[_State, int] = {}
    for i, row in enumerate(reached):
        if row is not None:
            after = tuple(map(frozenset, row))
            moves[after] = moves.get(after, 0) | (1 << ends[i + 1]) - (1 << ends[i])
    return [(span, after) for after, span in moves.items()]


class LexemeWalk:
    """Questions about lexemes and what is read beside them, each answered once.

    Parameters
    ----------
    lexemes : sequence of Lexeme or None
        ``None`` or dead: no text needs the terminal.
    priority : sequence of int
    greedy : sequence of bool
    watch : Watch
    """

    def __init__(
        self,
        lexemes: Sequence[Lexeme | None],
        priority: Sequence[int],
        greedy: Sequence[bool],
        watch: Watch,
    ) -> None:
        self._lexemes = [lexeme if lexeme is not None and lexeme.alive else None for lexeme in lexemes]
        self._priority = priority
        self._greedy = greedy
        self._watch = watch
        self._may_continue: dict[int, int] = {}
        self._ends: dict[int, list[int]] = {}
        self._own_ends: dict[int, list[int] | None] = {}
        self._begins: dict[int, int] = {}

    def _bytes(self, t: int, which: str) -> int:
        found = (1 << 256) - 1
        lexeme = self._lexemes[t]
        for negative, fragment in () if lexeme is None else lexeme.literals:
            if not negative:
                found &= getattr(fragment, which)
        return found

    @cached_property
    def first(self) -> list[int]:
        """Bytes that may begin each terminal, or more."""
        return [self._bytes(t, "first") if lexeme else 0 for t, lexeme in enumerate(self._lexemes)]

    @cached_property
    def beside(self) -> list[list[int]]:
        """For each terminal those that begin alike and may be read beside it."""
        groups: dict[int, list[int]] = {}
        for t, begin in enumerate(self.first):
            if begin:
                groups.setdefault(begin, []).append(t)
        found = []
        for t, begin in enumerate(self.first):
            met = [other for first, members in groups.items() if first & begin for other in members]
            found.append([other for other in met if other != t])
            self._watch.step("lexemes", 1 + len(groups) // 16)
        return found

    def _fragment(self, t: int) -> tuple[int, Fragment]:
        """Return the first positive literal of a terminal, behind its number."""
        lexeme = self._lexemes[t]
        assert lexeme is not None
        return t, next(fragment for negative, fragment in lexeme.literals if not negative)

    def may_continue(self, t: int) -> int:
        """Return the bytes that may go on where a lexeme of ``t`` could end, or more."""
        if t not in self._may_continue:
            found = 0
            if any(self._greedy[x] for x in (t, *self.beside[t])):
                found = self._bytes(t, "after")
                for other in self.beside[t]:
                    found |= self._bytes(other, "inner")
            self._may_continue[t] = found
        return self._may_continue[t]

    def ends(self, t: int) -> list[int]:
        """Return the sets of bytes that keep lexemes of ``t`` from ending, one for each way to come to its end.

        Whatever is read beside it: no set is too small. Only the largest are told.
        """
        if t not in self._ends:
            try:
                self._ends[t] = self._walk_ends(t)
            except TooManyStatesError:
                self._ends[t] = [self.may_continue(t)]
        return self._ends[t]

    def _walk_ends(self, t: int) -> list[int]:
        union = _Loose(map(self._fragment, (t, *self.beside[t])))
        priority = self._priority[t]
        found: set[int] = set()
        for positions, goes_on in self._states(union, t):
            ending = union.accepted(positions)
            if t in ending:
                is_greedy = any(self._greedy[x] and self._priority[x] == priority for x in ending)
                found.add(goes_on if is_greedy else 0)
        return [mask for mask in found if not any(mask != other and mask & ~other == 0 for other in found)]

    def _states(self, union: _Loose, t: int) -> Iterator[tuple[frozenset[int], int]]:
        """Yield the states after one byte and more in which ``t`` is alive, each with the bytes that go on."""
        seen: set[frozenset[int]] = set()
        todo = deque([union.start])
        while todo:
            positions = todo.popleft()
            moves = _moves([union], (positions,))
            self._watch.step("lexemes", 1 + len(moves))
            if positions in seen:
                goes_on = 0
                for span, _ in moves:
                    goes_on |= span
                yield positions, goes_on
            for _, (after,) in moves:
                if after not in seen and any(union.owner[x] == t for x in after):
                    if len(seen) >= MOST_STATES:
                        raise TooManyStatesError
                    seen.add(after)
                    todo.append(after)

    def never_ends_before(self, t: int, following: int) -> bool:
        """Can no lexeme of ``t`` ever be followed by a byte of ``following``, whatever is read beside it?

        False where that isn't known.
        """
        if t not in self._own_ends:
            self._own_ends[t] = self._walk_own_ends(t)
        ends = self._own_ends[t]
        return ends is not None and not any(following & ~goes_on for goes_on in ends)

    def _walk_own_ends(self, t: int) -> list[int] | None:
        lexeme = self._lexemes[t]
        if lexeme is None or not self._greedy[t] or not lexeme.is_plain or has_counts(lexeme):
            return None
        union = _Loose([self._fragment(t)])
        try:
            states = self._states(union, t)
            return [goes_on for positions, goes_on in states if union.accepted(positions)]
        except TooManyStatesError:
            return None

    def begins(self, t: int) -> int:
        """Return bytes with which a lexeme begins that is read as ``t``: none of higher priority is like it.

        Each of them really does; there may be more.
        """
        if t not in self._begins:
            above = [x for x in self.beside[t] if self._priority[x] > self._priority[t]]
            lexeme = self._lexemes[t]
            if lexeme is None:
                self._begins[t] = 0
            elif lexeme.is_plain and not above:
                self._begins[t] = self.first[t]
            else:
                self._begins[t] = self._search_begins(lexeme, above)
        return self._begins[t]

    def _search_begins(self, lexeme: Lexeme, above: Iterable[int]) -> int:
        literals = [(negative, _Exact(fragment)) for negative, fragment in lexeme.literals]
        union = _Loose(map(self._fragment, above))
        parts = [*(part for _, part in literals), union]

        def is_alive(state: _State) -> bool:
            return all(values or negative for (negative, _), values in zip(literals, state, strict=False))

        def is_end(state: _State) -> bool:
            ends = (
                part.accepts(values) != negative
                for (negative, part), values in zip(literals, state, strict=False)
            )
            return all(ends) and not union.accepted(state[-1])

        left, found = MOST_STATES, 0
        vain: set[_State] = set()
        for span, first in _moves(parts, tuple(part.start for part in parts)):
            seen, todo, is_found = {first}, deque([first]), False
            while todo and left and not is_found:
                state = todo.popleft()
                left -= 1
                if not is_alive(state) or state in vain:
                    continue
                is_found = is_end(state)
                moves = [] if is_found else _moves(parts, state)
                self._watch.step("lexemes", 1 + len(moves))
                for _, after in moves:
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            if is_found:
                found |= span
            elif not todo:
                vain |= seen
        return found


def has_counts(lexeme: Lexeme) -> bool:
    """Does the terminal have counted repeats?"""
    return any(row[2] for _, fragment in lexeme.literals for row in _tables(fragment)[0])
