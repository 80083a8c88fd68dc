"""What may be read inside lexemes and behind them, byte by byte: the terminals' automata walked together.

Everything here is decided from the byte automata of a few terminals at a time, by small determinisations with a
limit on their states. Sets of bytes and of terminals are the bits of integers.

A *loose* automaton forgets counts, negative literals that count, and that a conjunction may be dead: it goes on
and accepts wherever the terminal does, and more. What must not be missed is asked of loose automata, what
must really exist of exact ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import TypeAlias, TypeVar

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

# Terminals read side by side, each with the number of a set of its positions.
_Company: TypeAlias = frozenset[tuple[int, int]]
# Lexer values (count << 32 | position) of each literal of a terminal, and terminals read beside it.
_Exactly: TypeAlias = tuple[tuple[frozenset[int], ...], _Company]
_T = TypeVar("_T")


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


class _Loose:
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
                for reached, span in _cells([self._edges[x] for x in self._sets[state]]).items()
                if self._all(reached, alive=True)
            ]
        return self._moves[state]

    def _number(self, positions: frozenset[int]) -> int:
        if positions not in self._numbers:
            self._numbers[positions] = len(self._sets)
            self._sets.append(positions)
        return self._numbers[positions]


def _cells(parts: Iterable[Sequence[tuple[int, _T]]]) -> dict[frozenset[_T], int]:
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
        self._automata: dict[int, _Loose] = {}
        self._may_continue: dict[int, int] = {}
        self._ends: dict[int, list[list[int]]] = {}
        self._own_ends: dict[int, list[int] | None] = {}
        self._above: dict[int, int] = {}
        self._begins: dict[tuple[int, int], int] = {}
        self._carries: dict[tuple[int, int], bool] = {}
        self._known_moves: dict[_Company, list[tuple[int, _Company]]] = {}

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

    def keep_together(self, expected: Collection[int]) -> None:
        """Note that terminals are read side by side only if one of the sets ``expected`` has both."""
        near = [0] * len(self.first)
        for bits in expected:
            for t in range(len(near)):
                if bits >> t & 1:
                    near[t] |= bits
        self.beside = [[x for x in row if near[t] >> x & 1] for t, row in enumerate(self.beside)]

    def _loose(self, t: int) -> _Loose:
        """Return the automaton of a terminal."""
        if t not in self._automata:
            lexeme = self._lexemes[t]
            assert lexeme is not None
            self._automata[t] = _Loose(lexeme)
        return self._automata[t]

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

    def may_follow(self, t: int, begins: int) -> bool:
        """Is there, wherever a lexeme of ``t`` may end, a byte of ``begins`` that may follow it, there or farther on?

        Whatever is read beside it.
        """
        if begins & ~self.may_continue(t):
            return True
        if not begins:
            return False
        if t not in self._ends:
            try:
                self._ends[t] = self._walk_ends(t)
            except TooManyStatesError:
                self._ends[t] = [[self.may_continue(t)]]
        return all(any(begins & ~goes_on for goes_on in ends) for ends in self._ends[t])

    def _walk_ends(self, t: int) -> list[list[int]]:
        """Return the sets of bytes that keep lexemes of ``t`` from ending.

        One list for each way to come to an end: with what is there, and at later ends of the same lexeme.
        """
        states = self._states(t, (t, *self.beside[t]))
        priority = self._priority[t]
        numbers = {state: i for i, (state, _) in enumerate(states)}
        masks: list[int] = []
        known: dict[int, int] = {}
        # For each state the ends in it and behind it, as bits of numbers of masks.
        reached, accepting = [0] * len(states), []
        for i, (state, moves) in enumerate(states):
            ending = self._ending(state)
            if t not in ending:
                continue
            accepting.append(i)
            mask = 0
            if any(self._greedy[x] and self._priority[x] == priority for x in ending):
                for span, _ in moves:
                    mask |= span
            if mask not in known:
                known[mask] = len(masks)
                masks.append(mask)
            reached[i] = 1 << known[mask]
        here = list(reached)
        if self._is_exact(t):
            for i in accepting:
                if any(self._priority[x] > priority for x in self._ending(states[i][0])):
                    reached[i] = 0
            after = [[numbers[s] for _, s in moves if s in numbers] for _, moves in states]
            is_changed = True
            while is_changed:
                is_changed = False
                for i in reversed(range(len(states))):
                    found = reached[i]
                    for j in after[i]:
                        found |= reached[j]
                    if found != reached[i]:
                        reached[i] = found
                        is_changed = True
                self._watch.step("lexemes", len(states))
        sets = {here[i] | reached[i] for i in accepting}
        return [[mask for k, mask in enumerate(masks) if bits >> k & 1] for bits in sets]

    def _is_exact(self, t: int) -> bool:
        """Does the loose automaton of a terminal accept what the terminal does?"""
        lexeme = self._lexemes[t]
        return lexeme is not None and not has_counts(lexeme)

    def _is_plain(self, t: int) -> bool:
        """Is that so, and is every state of it alive?"""
        lexeme = self._lexemes[t]
        return lexeme is not None and lexeme.is_plain and self._is_exact(t)

    def _ending(self, state: _Company) -> list[int]:
        """Return the terminals that may end here."""
        return [x for x, at in state if self._loose(x).accepts(at)]

    def _moves(self, state: _Company) -> list[tuple[int, _Company]]:
        """Return (bytes, state after any of them); bytes that no automaton reads are left out."""
        if state not in self._known_moves:
            cells = _cells(
                [(span, (x, after)) for span, after in self._loose(x).moves(at)] for x, at in state
            )
            self._watch.step("lexemes", 4 + len(cells))
            self._known_moves[state] = [(span, after) for after, span in cells.items()]
        return self._known_moves[state]

    def _states(self, t: int, company: Iterable[int]) -> list[tuple[_Company, list[tuple[int, _Company]]]]:
        """Return the states after one byte and more in which ``t`` is alive, each with its moves."""
        start: _Company = frozenset((x, 0) for x in company)
        found: list[tuple[_Company, list[tuple[int, _Company]]]] = []
        seen: set[_Company] = set()
        todo = deque([start])
        while todo:
            state = todo.popleft()
            moves = self._moves(state)
            if state in seen:
                found.append((state, moves))
            for _, after in moves:
                if after not in seen and any(x == t for x, _ in after):
                    if len(seen) >= MOST_STATES:
                        raise TooManyStatesError
                    seen.add(after)
                    todo.append(after)
        return found

    def carries(self, t: int, u: int) -> bool:
        """Is ``u``, if read beside ``t``, accepted wherever a lexeme of ``t`` may end, or else farther on?

        False where that isn't known.
        """
        if (t, u) not in self._carries:
            self._carries[t, u] = self._walk_carries(t, u)
        return self._carries[t, u]

    def may_carry(self, t: int, u: int) -> bool:
        """May ``u`` be read beside ``t``?"""
        return u in self.beside[t]

    def may_end_beside(self, t: int, u: int) -> bool:
        """May a lexeme of ``t`` end where one of ``u`` began with it and ends or goes on?"""
        try:
            return any(
                t in self._ending(state) and any(x == u for x, _ in state)
                for state, _ in self._states(t, (t, u))
            )
        except TooManyStatesError:
            return True

    def _walk_carries(self, t: int, u: int) -> bool:
        if not self._is_plain(u) or u not in self.beside[t]:
            return False
        if self._priority[u] < max(self._priority[x] for x in (t, *self.beside[u])):
            return False
        try:
            return all(
                any(x == u for x, _ in state)
                for state, _ in self._states(t, (t, u))
                if t in self._ending(state)
            )
        except TooManyStatesError:
            return False

    def never_ends_before(self, t: int, following: int) -> bool:
        """Can no lexeme of ``t`` ever be followed by a byte of ``following``, whatever is read beside it?

        False where that isn't known.
        """
        if t not in self._own_ends:
            self._own_ends[t] = self._walk_own_ends(t)
        ends = self._own_ends[t]
        return ends is not None and not any(following & ~goes_on for goes_on in ends)

    def _walk_own_ends(self, t: int) -> list[int] | None:
        if not self._greedy[t] or not self._is_plain(t):
            return None
        try:
            states = self._states(t, (t,))
        except TooManyStatesError:
            return None
        found = set()
        for state, moves in states:
            if self._ending(state):
                goes_on = 0
                for span, _ in moves:
                    goes_on |= span
                found.add(goes_on)
        return list(found)

    def above(self, t: int) -> int:
        """Return the bits of the terminals that may be read beside ``t`` and come before it."""
        if t not in self._above:
            self._above[t] = sum(1 << x for x in self.beside[t] if self._priority[x] > self._priority[t])
        return self._above[t]

    def begins(self, t: int, company: int) -> int:
        """Return bytes with which a lexeme begins that is read as ``t``, and not as another of ``company``.

        Each of them really does; there may be more.
        """
        above = self.above(t) & company
        if (t, above) not in self._begins:
            lexeme = self._lexemes[t]
            if lexeme is None:
                self._begins[t, above] = 0
            elif lexeme.is_plain and not above:
                self._begins[t, above] = self.first[t]
            else:
                others = [x for x in self.beside[t] if above >> x & 1]
                self._begins[t, above] = self._search_begins(lexeme, others)
        return self._begins[t, above]

    def may_end_with(self, t: int) -> list[int]:
        """Return the terminals, ``t`` among them, as which a lexeme that is read as ``t`` may be read, too."""
        return [t, *(x for x in self.beside[t] if self._priority[x] == self._priority[t])]

    def _search_begins(self, lexeme: Lexeme, above: Iterable[int]) -> int:
        literals = [(negative, _Exact(fragment)) for negative, fragment in lexeme.literals]

        def is_alive(state: _Exactly) -> bool:
            return all(state[0][k] or negative for k, (negative, _) in enumerate(literals))

        def is_end(state: _Exactly) -> bool:
            values, company = state
            return all(
                part.accepts(values[k]) != negative for k, (negative, part) in enumerate(literals)
            ) and not self._ending(company)

        def moves(state: _Exactly) -> list[tuple[int, _Exactly]]:
            values, company = state
            cells = _cells(
                chain(
                    ([(span, (x, after)) for span, after in self._loose(x).moves(at)] for x, at in company),
                    (
                        [(span, (~k, value)) for span, value in part.steps(values[k])]
                        for k, (_, part) in enumerate(literals)
                    ),
                )
            )
            self._watch.step("lexemes", 4 + len(cells))
            return [
                (
                    span,
                    (
                        tuple(frozenset(v for j, v in reached if j == ~k) for k in range(len(literals))),
                        frozenset((x, at) for x, at in reached if x >= 0),
                    ),
                )
                for reached, span in cells.items()
            ]

        left, found = MOST_STATES, 0
        vain: set[_Exactly] = set()
        start = tuple(part.start for _, part in literals), frozenset((x, 0) for x in above)
        for span, first in moves(start):
            seen, todo, is_found = {first}, deque([first]), False
            while todo and left and not is_found:
                state = todo.popleft()
                left -= 1
                if not is_alive(state) or state in vain:
                    continue
                is_found = is_end(state)
                for _, after in [] if is_found else moves(state):
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
