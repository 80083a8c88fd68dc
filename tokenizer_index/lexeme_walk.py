"""What may be read inside lexemes and behind them, byte by byte: the terminals' automata walked together.

Everything here is decided from the byte automata of a few terminals at a time, by small determinisations with a
limit on their states. Sets of bytes and of terminals are the bits of integers.

A *loose* automaton forgets counts, negative literals that count, and that a conjunction may be dead: it goes on
and accepts wherever the terminal does, and more. What must not be missed is asked of loose automata, what
must really exist of exact ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from constrain.grammars.bits import members
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.layout import ENDS, ENDS_ABOVE, ENDS_GREEDY, HAS_COMPANION
from constrain.tokenizer_index.lexeme import Lexeme
from constrain.tokenizer_index.lexeme_automata import Exact, Loose, byte_cells, has_counts
from constrain.tokenizer_index.lexeme_product import MOST_STATES, Product, States, TooManyStatesError

ALL_BYTES = (1 << 256) - 1

# Terminals read side by side, each with the number of a set of its positions.
_Company: TypeAlias = frozenset[tuple[int, int]]
# Lexer values (count << 32 | position) of each literal of a terminal, and terminals read beside it.
_Exactly: TypeAlias = tuple[tuple[frozenset[int], ...], _Company]


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
        self._automata: dict[int, Loose] = {}
        self._may_continue: dict[int, int] = {}
        self._inner: dict[int, tuple[int, int]] = {}
        self._ends: dict[int, list[list[int]]] = {}
        self._own_ends: dict[int, list[int] | None] = {}
        self._begins: dict[tuple[int, int], int] = {}
        self._carries: dict[tuple[int, int], bool] = {}

    def _bytes(self, t: int, which: str) -> int:
        found = ALL_BYTES
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
    def _company(self) -> list[int]:
        groups: dict[int, int] = {}
        for t, begin in enumerate(self.first):
            if begin:
                groups[begin] = groups.get(begin, 0) | 1 << t
        met = dict.fromkeys(self.first, 0)
        for begin in met:
            for first, group in groups.items():
                if first & begin:
                    met[begin] |= group
            self._watch.step("lexemes", 1 + len(groups))
        return [met[begin] | 1 << t for t, begin in enumerate(self.first)]

    def company(self, t: int) -> int:
        """Return the bits of ``t`` and of the terminals that begin alike and may be read beside it."""
        return self._company[t]

    def keep_together(self, expected: Collection[int]) -> None:
        """Note that terminals are read side by side only if one of the sets ``expected`` has both."""
        near = [1 << t for t in range(len(self.first))]
        for bits in expected:
            for t in members(bits & (1 << len(near)) - 1):
                near[t] |= bits
        # Most are alike, and what is one object is soon found equal.
        alike: dict[int, int] = {}
        self._company = [
            alike.setdefault(bits, bits) for bits in (a & b for a, b in zip(self._company, near, strict=True))
        ]

    def _loose(self, t: int) -> Loose:
        """Return the automaton of a terminal."""
        if t not in self._automata:
            lexeme = self._lexemes[t]
            assert lexeme is not None
            self._automata[t] = Loose(lexeme)
        return self._automata[t]

    @cached_property
    def _product(self) -> Product:
        return Product(self._lexemes, self._priority, self._greedy, self._watch)

    def may_continue(self, t: int) -> int:
        """Return the bytes that may go on where a lexeme of ``t`` could end, or more."""
        found = self._may_continue.get(t)
        if found is None:
            found = 0
            company = self._company[t]
            if company & self._greedy_bits:
                once, twice = self._inner_of(company)
                # What others read on.
                found = self._bytes(t, "after") | twice | once & ~self._bytes(t, "inner")
            self._may_continue[t] = found
        return found

    @cached_property
    def _greedy_bits(self) -> int:
        return sum(1 << t for t, is_greedy in enumerate(self._greedy) if is_greedy)

    def _inner_of(self, company: int) -> tuple[int, int]:
        """Return the bytes that some of ``company`` read behind their first ones, and those that several do."""
        if company not in self._inner:
            once = twice = 0
            for x in members(company):
                inner = self._bytes(x, "inner")
                twice |= once & inner
                once |= inner
            self._watch.step("lexemes", company.bit_count())
            self._inner[company] = once, twice
        return self._inner[company]

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
        found = self._product.states(t, self._company[t])
        ends = [i for i, flags in enumerate(found.flags) if flags & ENDS]
        masks: dict[int, int] = {}
        # For each state the ends in it and behind it, as bits of numbers of masks.
        here = [0] * len(found.flags)
        for i in ends:
            mask = found.goes_on[i] if found.flags[i] & ENDS_GREEDY else 0
            here[i] = 1 << masks.setdefault(mask, len(masks))
        behind = here
        if len(masks) > 1 and self._is_exact(t):
            behind = self._spread_back(
                [0 if found.flags[i] & ENDS_ABOVE else bits for i, bits in enumerate(here)], found
            )
        sets = {here[i] | behind[i] for i in ends}
        return [[mask for mask, k in masks.items() if bits >> k & 1] for bits in sets]

    def _spread_back(self, sets: list[int], states: States) -> list[int]:
        """Return the union of the sets of each state and of all that can be reached from it."""
        before: list[list[int]] = [[] for _ in sets]
        for i in range(len(sets)):
            for j in states.targets[states.offsets[i] : states.offsets[i + 1]]:
                before[j].append(i)
        tasks = [i for i, bits in enumerate(sets) if bits]
        while tasks:
            j = tasks.pop()
            self._watch.step("lexemes", 1 + len(before[j]) // 16)
            for i in before[j]:
                if sets[j] & ~sets[i]:
                    sets[i] |= sets[j]
                    tasks.append(i)
        return sets

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

    def carries(self, t: int, u: int) -> bool:
        """Is ``u``, if read beside ``t``, accepted wherever a lexeme of ``t`` may end, or else farther on?

        False where that isn't known.
        """
        if (t, u) not in self._carries:
            self._carries[t, u] = self._walk_carries(t, u)
        return self._carries[t, u]

    def may_carry(self, t: int, u: int) -> bool:
        """May ``u`` be read beside ``t``?"""
        return u != t and self._company[t] >> u & 1 != 0

    def may_end_beside(self, t: int, u: int) -> bool:
        """May a lexeme of ``t`` end where one of ``u`` began with it and ends or goes on?"""
        try:
            flags = self._product.states(t, 1 << t | 1 << u, u).flags
        except TooManyStatesError:
            return True
        return any(flag & ENDS and flag & HAS_COMPANION for flag in flags)

    def _walk_carries(self, t: int, u: int) -> bool:
        if not self._is_plain(u) or not self.may_carry(t, u):
            return False
        if self.above(u) or self._priority[u] < self._priority[t]:
            return False
        try:
            flags = self._product.states(t, 1 << t | 1 << u, u).flags
        except TooManyStatesError:
            return False
        return all(flag & HAS_COMPANION for flag in flags if flag & ENDS)

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
            found = self._product.states(t, 1 << t)
        except TooManyStatesError:
            return None
        return list({found.goes_on[i] for i, flags in enumerate(found.flags) if flags & ENDS})

    @cached_property
    def _ranks(self) -> dict[int, tuple[int, int]]:
        """For each priority the bits of the terminals that have it, and of those that have a higher one."""
        same: dict[int, int] = {}
        for t, priority in enumerate(self._priority):
            same[priority] = same.get(priority, 0) | 1 << t
        found, higher = {}, 0
        for priority in sorted(same, reverse=True):
            found[priority] = same[priority], higher
            higher |= same[priority]
        return found

    def above(self, t: int) -> int:
        """Return the bits of the terminals that may be read beside ``t`` and come before it."""
        return self._company[t] & self._ranks[self._priority[t]][1]

    def begins(self, t: int, company: int) -> int:
        """Return bytes with which a lexeme begins that is read as ``t``, and not as another of ``company``.

        Each of them really does; there may be more.
        """
        every = self.above(t)
        above = every & company
        found = self._begins.get((t, above))
        if found is None:
            lexeme = self._lexemes[t]
            if lexeme is None:
                found = 0
            elif lexeme.is_plain and not above:
                found = self.first[t]
            else:
                # What begins it in any company does in a smaller one.
                sure = 0 if above == every else self.begins(t, every)
                found = sure if sure == self.first[t] else self._search_begins(t, above, sure)
            self._begins[t, above] = found
        return found

    def alike(self, t: int) -> int:
        """Return the bits of the terminals, ``t`` among them, as which a lexeme that is read as ``t`` may be read, too."""
        return self._company[t] & self._ranks[self._priority[t]][0]

    def _search_begins(self, t: int, bits: int, sure: int) -> int:
        """Return what begins ``t`` beside the terminals ``bits``, given bytes that do."""
        lexeme, above = self._lexemes[t], list(members(bits))
        assert lexeme is not None
        literals = [(negative, Exact(fragment)) for negative, fragment in lexeme.literals]

        def is_alive(state: _Exactly) -> bool:
            return all(state[0][k] or negative for k, (negative, _) in enumerate(literals))

        def is_end(state: _Exactly) -> bool:
            values, company = state
            return all(
                part.accepts(values[k]) != negative for k, (negative, part) in enumerate(literals)
            ) and not self._ending(company)

        has_one = sum(not negative for negative, _ in literals) == 1

        def is_sure(state: _Exactly) -> bool:
            """Is nothing in the way of the only positive literal, which then can be finished?"""
            values, company = state
            return (
                has_one
                and not company
                and all(
                    not values[k] if negative else part.can_end(values[k])
                    for k, (negative, part) in enumerate(literals)
                )
            )

        def moves(state: _Exactly, among: int = ALL_BYTES) -> list[tuple[int, _Exactly]]:
            values, company = state
            cells = byte_cells(
                chain(
                    (
                        [
                            (span & among, (x, after))
                            for span, after in self._loose(x).moves(at)
                            if span & among
                        ]
                        for x, at in company
                    ),
                    (
                        [(span & among, (~k, value)) for span, value in part.steps(values[k]) if span & among]
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

        left, found = MOST_STATES, sure
        first = self.first[t]
        if has_one:
            # Bytes with which nothing else begins.
            alone = first
            for x in above:
                alone &= ~self.first[x]
            for negative, fragment in lexeme.literals:
                if negative:
                    alone &= ~fragment.first
            found |= alone
        vain: set[_Exactly] = set()
        start = tuple(part.start for _, part in literals), frozenset((x, 0) for x in above)
        for span, begun in moves(start, first & ~found):
            seen, todo, is_found = {begun}, deque([begun]), is_sure(begun)
            while todo and left and not is_found:
                state = todo.popleft()
                left -= 1
                if not is_alive(state) or state in vain:
                    continue
                is_found = is_end(state)
                for _, after in [] if is_found else moves(state):
                    if after not in seen:
                        if is_sure(after):
                            is_found = True
                            break
                        seen.add(after)
                        todo.append(after)
            if is_found:
                found |= span
            elif not todo:
                vain |= seen
        return found
