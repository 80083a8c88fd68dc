"""Can every text that was begun be finished, although lexemes fuse and hide one another?

A mask made byte by byte trusts that what the rules expect next can be written next. Two things may
prevent that. A greedy lexeme doesn't end where the next byte could continue it, so an identifier right
after an identifier is never read; and a lexeme that also matches a terminal of higher priority is read
as that. `realisable` looks for what can always be done nevertheless:

- ``u`` *begins* with bytes after which some lexeme is read as ``u`` and as nothing of higher priority;
- ``u`` *may follow* ``t`` if, wherever a lexeme of ``t`` may end, some byte that begins ``u`` doesn't continue
  it there or at a later end of the same lexeme, whatever else is read beside it; or if an ignored lexeme may
  stand between them.

A way to the end of the text on which each terminal may follow the one before it can be taken by bytes. So
the grammar is *sound* if from each place behind a terminal there is such a way. The places are pairs (dotted
state, last terminal): two terminals that may be followed by the same ones are one *kind*, and for each dotted
state and kind ``ends`` tells with which kinds the rule may end. A rule is looked at together with the kinds its
callers can go on from. That all is cautious: a grammar that isn't found sound may be, and is then checked state by
state while decoding (``missing_bytes``).

Ignored text that nothing expected can follow, as a comment up to the end of the line where the line must go on, is
*blocked* there if that loses no text; so it needs no check. Where the number of ignored lexemes in a row is
limited, the last of them must be one that anything may follow.

Sources: the soundness conditions of grammar-constrained decoding with a lexer are those of "Flexible and
Efficient Grammar-Constrained Decoding" (Park, Zhou, D'Antoni, 2025); the fixpoint over (state, last
terminal) is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from constrain.grammars.bits import members
from constrain.grammars.ir import Ignored
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.greedy import following_terminals
from constrain.tokenizer_index.lexeme_walk import LexemeWalk
from constrain.tokenizer_index.long_runs import components
from constrain.tokenizer_index.transition_network import Rules

Carries: TypeAlias = Callable[[int, int], bool]

_PLACE = "sequences of lexemes"
_MOST_CONTEXTS = 20_000
# So many ignored lexemes in a row are not written for their own sake.
_LONG_ROW = 8


@dataclass(frozen=True, slots=True)
class Realisable:
    """What `realisable` found.

    Parameters
    ----------
    problem : tuple of (int, int) or None
        A terminal behind which no way to the end is known, and one that may not follow it. None: the
        grammar is sound.
    dead_end : tuple of (int, int) or None
        The same where there certainly is no way.
    is_empty : bool
        There certainly is no way from the beginning of the text.
    blocked : dict of int to int
        For some ignored terminals the bits of the terminals that can never follow them. The ignored terminal is
        read only where another one is expected, or where the text may end after it.
    is_open : frozenset of int
        Ignored terminals that may need another one behind them: one is never the last of as many in a row as
        are allowed.
    """

    problem: tuple[int, int] | None
    dead_end: tuple[int, int] | None
    blocked: dict[int, int]
    is_open: frozenset[int]
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class Marks:
    """Terminals that indentation makes special.

    Parameters
    ----------
    newline : int
    marks : frozenset of int
        Terminals without text; they stand behind a newline.
    inner_newline : int
        Ignored inside brackets only; -1 if there are none.
    is_inside : sequence of bool
        The rules between brackets.
    """

    newline: int
    marks: frozenset[int]
    inner_newline: int
    is_inside: Sequence[bool]


def realisable(
    rules: Rules, walk: LexemeWalk, ignored: Ignored, watch: Watch, lines: Marks | None = None
) -> Realisable:
    """Look for ways to finish every text.

    Parameters
    ----------
    rules : Rules
    walk : LexemeWalk
    ignored : Ignored
        With terminals that match something only.
    watch : Watch
    lines : Marks or None
        Where indentation counts.
    """
    if lines is None:
        lines = Marks(-1, frozenset(), -1, [False] * len(rules.rule_start))
    return _Analysis(rules, walk, ignored, watch, lines).result()


class _Analysis:
    def __init__(self, rules: Rules, walk: LexemeWalk, ignored: Ignored, watch: Watch, lines: Marks) -> None:
        self._rules = rules
        self._walk = walk
        self._ignored = ignored
        self._outside = tuple(b for b in ignored.terminals if b != lines.inner_newline)
        self._lines = lines
        self._watch = watch
        self._symbols = set(rules.terminal_symbol) - lines.marks
        self._all = sum(1 << t for t in self._symbols)
        # Terminals expected between brackets.
        self._all_inside = 0
        for d, rule in enumerate(rules.rule_of):
            if lines.is_inside[rule]:
                for t in rules.terminal_symbol[rules.terminal_offsets[d] : rules.terminal_offsets[d + 1]]:
                    self._all_inside |= 1 << t
        self._after_alike: dict[int, int] = {}
        self._ignored_bits = sum(1 << b for b in set(ignored.terminals))
        self._follow, firsts = following_terminals(rules, len(walk.first), lines.marks, watch)
        expected = {
            *(first | self._ignored_bits for first in firsts),
            *(self._expected_after(t) for t in self._symbols),
        }
        watch.step(_PLACE, len(expected) * len(walk.first) // 16)
        if lines.inner_newline >= 0:
            # Where a line break is ignored none is expected.
            apart = 1 << lines.newline, 1 << lines.inner_newline
            expected = {bits & ~break_ for bits in expected for break_ in apart}
        walk.keep_together(expected)
        # Terminals by what they begin with: those that nothing comes before follow the same ones.
        self._groups: dict[int, int] = {}
        self._group_of: dict[int, int] = {}
        self._special = 0
        for u in sorted(self._symbols):
            begins = self._group_of[u] = walk.begins(u, -1)
            self._groups[begins] = self._groups.get(begins, 0) | 1 << u
            if walk.above(u):
                self._special |= 1 << u
        self._plain: dict[tuple[int, Sequence[int]], int] = {}

    # ------------------------------------------------------------------------------ pairs

    def _expected_after(self, t: int) -> int:
        """Return the bits of all terminals that may be expected where ``t`` was read."""
        if t in self._ignored.terminals:
            return -1
        alike = self._walk.alike(t)
        found = self._after_alike.get(alike)
        if found is None:
            found = -1
            if not alike & self._ignored_bits:
                self._watch.step(_PLACE, 1 + alike.bit_count() * (1 + len(self._walk.first) // 256))
                found = self._ignored_bits
                for x in members(alike):
                    found |= self._follow.get(x, 0)
            self._after_alike[alike] = found
        return found

    def _plainly_fine(self, goes_on: int, ignored: Sequence[int]) -> int:
        """Return terminals that may follow one which only bytes of ``goes_on`` continue.

        At once, or behind a lexeme of ``ignored``. It is plain to see, without a walk.
        """
        found = self._plain.get((goes_on, ignored))
        if found is None:
            walk, found = self._walk, 0
            kept = [goes_on]
            kept += [walk.may_continue(b) for b in ignored if walk.begins(b, -1) & ~goes_on]
            self._watch.step(_PLACE, 1 + len(self._groups))
            for begins, group in self._groups.items():
                if any(begins & ~bytes_ for bytes_ in kept):
                    found |= group
            self._plain[goes_on, ignored] = found
        return found

    def _ignored_after(self, t: int, ignored: Sequence[int]) -> list[int]:
        """Return the ignored terminals that may follow ``t``, directly or after other ignored ones."""
        begins, near = self._walk.begins, self._expected_after(t)
        newest = found = [b for b in ignored if self._walk.may_follow(t, begins(b, near))]
        left = len(ignored) if self._ignored.most is None else self._ignored.most
        while newest and left > 1:
            left -= 1
            newest = [
                c
                for c in ignored
                if c not in found and any(self._walk.may_follow(b, begins(c, -1)) for b in newest)
            ]
            found = found + newest
        return found

    def _refused(self, t: int, expected: int, ignored: Sequence[int], *, is_ignored: bool = False) -> int:
        """Return the bits of ``expected`` that may not follow ``t``, directly or behind ignored text."""
        walk = self._walk
        self._watch.step(_PLACE)
        # The last ignored lexeme that is allowed in a row has none behind it.
        most = self._ignored.most
        may_part = most is None or (most > 0 and not is_ignored)
        left = expected & self._all & ~self._plainly_fine(walk.may_continue(t), ignored if may_part else ())
        if not left:
            return 0
        refused = 0
        near = self._expected_after(t)
        gaps: Sequence[int] | None = None
        while left:
            u = (left & -left).bit_length() - 1
            begins = behind = self._group_of[u]
            alike = 1 << u
            if self._special >> u & 1:
                begins = walk.begins(u, near)
            else:
                alike = self._groups[begins] & left & ~self._special
            left &= ~alike
            self._watch.step(_PLACE)
            if not walk.may_follow(t, begins):
                if gaps is None:
                    gaps = self._ignored_after(t, ignored) if may_part else ()
                if not any(walk.may_follow(b, behind) for b in gaps):
                    refused |= alike
        return refused

    # ------------------------------------------------------------------------------ blocked text

    def _is_open(self, b: int, expected: int, ignored: Sequence[int]) -> bool:
        """May everything follow ``b`` behind another ignored terminal which everything may follow directly?

        Only where many may stand in a row does it lose next to nothing that the last one is such a terminal.
        """
        most = self._ignored.most
        if most is None or most < _LONG_ROW:
            return False
        begins = self._walk.begins
        closed = [
            c
            for c in ignored
            if self._walk.may_follow(b, begins(c, -1))
            and not self._refused(c, expected, ignored, is_ignored=True)
        ]
        return bool(closed)

    def _blocked(self, b: int, refused: int) -> int:
        """Return the terminals that can never follow the ignored terminal ``b``; 0 where blocking loses texts.

        None is lost, and none won, if ``b`` keeps nothing from ending that is read beside it where it is blocked.
        """
        if b in self._symbols:
            return 0
        if any(self._may_ever_follow(b, u, self._outside) for u in members(refused)):
            return 0
        near = self._walk.company(b) & (self._ignored_bits | refused) & ~(1 << b)
        if any(self._walk.may_end_beside(x, b) for x in members(near)):
            return 0
        return refused

    def _may_ever_follow(self, t: int, u: int, ignored: Sequence[int]) -> bool:
        first, reached = self._walk.first, [t]
        for c in reached:  # grows while it is read
            if not self._walk.never_ends_before(c, first[u]):
                return True
            if self._ignored.most != 1 or t not in self._ignored.terminals:
                reached += [
                    x for x in ignored if x not in reached and not self._walk.never_ends_before(c, first[x])
                ]
        return False

    # ------------------------------------------------------------------------------ the grammar

    def result(self) -> Realisable:
        """Return what was found."""
        follow = self._follow
        inside = self._ignored.terminals if len(self._outside) < len(self._ignored.terminals) else None
        refused: dict[int, tuple[int, int]] = {}
        for t in self._symbols:
            out = self._refused(t, follow[t], self._outside)
            refused[t] = out, out if inside is None else self._refused(t, follow[t], inside)
        blocked: dict[int, int] = {}
        is_open = set()
        after_ignored: dict[int, tuple[int, int]] = {}
        for b in self._ignored.terminals:
            out = within = 0
            if b != self._lines.inner_newline:
                out = self._refused(b, self._all, self._outside, is_ignored=True)
                within = out
                if out and self._is_open(b, self._all, self._outside):
                    is_open.add(b)
                    out = within = 0
                elif out and self._blocked(b, out):
                    blocked[b], out = out, 0
                    within = within if inside is not None else 0
            if inside is not None:
                within = self._refused(b, self._all_inside, inside, is_ignored=True)
                if within and self._is_open(b, self._all_inside, inside):
                    is_open.add(b)
                    within = 0
            if out or within:
                after_ignored[b] = out, within
        hidden = self._groups.get(0, 0)
        if not (hidden or after_ignored or any(map(any, refused.values()))):
            return Realisable(None, None, blocked, frozenset(is_open))

        def places(
            refused: dict[int, tuple[int, int]],
            ignored: dict[int, tuple[int, int]],
            hidden: int,
            carries: Carries,
        ) -> _Places:
            rules, lines = self._rules, self._lines
            return _Places(
                rules,
                refused,
                ignored,
                hidden,
                self._ignored,
                lines,
                carries,
                self._walk.company,
                self._watch,
            )

        found = places(refused, after_ignored, hidden, self._walk.carries).problem()
        dead_end, is_empty = None, False
        if found is not None:
            never = {t: self._never(t, row) for t, row in refused.items()}
            never_ignored = {b: self._never(b, row) for b, row in after_ignored.items()}
            possible = places(never, never_ignored, 0, self._walk.may_carry)
            dead_end, is_empty = possible.problem(), possible.are_out_of_reach(any)
        return Realisable(found, dead_end, blocked, frozenset(is_open), is_empty)

    def _never(self, t: int, refused: tuple[int, int]) -> tuple[int, int]:
        """Return which of the terminals refused behind ``t``, outside and inside brackets, never follow it."""
        found = 0
        for u in members(refused[0] | refused[1]):
            if not self._may_ever_follow(t, u, self._ignored.terminals):
                found |= 1 << u
        return refused[0] & found, refused[1] & found


class _Places:
    """Dotted states with the kind of the last terminal.

    What may not follow a terminal is a pair: outside and inside brackets. Kind 0 is the beginning of the
    text; kinds of ignored terminals and of the newline are apart from all others.
    """

    def __init__(
        self,
        rules: Rules,
        refused: dict[int, tuple[int, int]],
        after_ignored: dict[int, tuple[int, int]],
        hidden: int,
        ignored: Ignored,
        lines: Marks,
        carries: Carries,
        company: Callable[[int], int],
        watch: Watch,
    ) -> None:
        self._rules = rules
        self._carries = carries
        self._company = company
        self._ignored = ignored
        self._lines = lines
        self._watch = watch
        numbers: dict[tuple[str, tuple[int, int]], int] = {("start", (hidden, hidden)): 0}

        def number(group: str, row: tuple[int, int]) -> int:
            return numbers.setdefault((group, row), len(numbers))

        self._kind = {
            t: number("newline" if t == lines.newline else "symbol", row) for t, row in refused.items()
        }
        self._ignored_kind = {b: number("ignored", row) for b, row in after_ignored.items()}
        self._newline_kind = self._kind.get(lines.newline, -1)
        self._refused = [row for _, row in numbers]
        # The first dotted state of a rule is where its callers are.
        starts = set(rules.rule_start)
        self._inside = [d not in starts and lines.is_inside[r] for d, r in enumerate(rules.rule_of)]
        self._n = len(rules.rule_of)
        # For each dotted state the kinds that are asked for there, each with the kinds with which its rule may end.
        self._ends: list[dict[int, int]] = [{} for _ in range(self._n)]
        self._todo: set[int] = set()
        self._fill()

    def _ask(self, kind: int, d: int) -> int:
        """Return what is known of a kind at a dotted state, which is found from now on."""
        known = self._ends[d].get(kind)
        if known is None:
            known = self._ends[d][kind] = 0
            self._todo.add(d)
        return known

    def _fill(self) -> None:
        """Find for kinds and dotted states the kinds with which the rule may end: the least fixpoint.

        Most kinds are never met at most dotted states, and not asked for: only where a text begins, behind their own
        terminals, where a rule begins in which they come first, behind rules that may end with them, and, if
        ignored, everywhere.
        """
        n, ends, rules, todo = self._n, self._ends, self._rules, self._todo
        # For each dotted state those whose ends are made from its own, and where each rule is called from.
        users: list[set[int]] = [set() for _ in range(n)]
        behind: list[list[int]] = [[] for _ in rules.rule_start]
        for d in range(n):
            for e in range(rules.terminal_offsets[d], rules.terminal_offsets[d + 1]):
                t, target = rules.terminal_symbol[e], rules.terminal_target[e]
                users[target].add(d)
                kind = self._newline_kind if t in self._lines.marks else self._kind[t]
                if kind >= 0:
                    self._ask(kind, target)
            for e in range(rules.rule_offsets[d], rules.rule_offsets[d + 1]):
                users[rules.rule_target[e]].add(d)
                users[rules.rule_start[rules.rule_symbol[e]]].add(d)
                behind[rules.rule_symbol[e]].append(rules.rule_target[e])
            for kind in (*self._ignored_kind.values(), *[0] * (d < rules.n_starts)):
                self._ask(kind, d)
        last = [0] * len(behind)
        while todo:
            # Later states first: most ends come from behind.
            for d in sorted(todo, reverse=True):
                todo.discard(d)
                rule, before = rules.rule_of[d], last[rules.rule_of[d]]
                is_changed = False
                together: dict[tuple[int, int], int] = {}
                for k in list(ends[d]):
                    self._watch.step(_PLACE, 1 + rules.terminal_offsets[d + 1] - rules.terminal_offsets[d])
                    found = self._ends_of(k, d, together)
                    if found != ends[d][k]:
                        ends[d][k] = found
                        last[rule] |= found
                        is_changed = True
                for kind in members(last[rule] & ~before):
                    self._watch.step(_PLACE, len(behind[rule]))
                    for target in behind[rule]:
                        self._ask(kind, target)
                if is_changed:
                    todo |= users[d]

    def _ends_of(self, k: int, d: int, together: dict[tuple[int, int], int]) -> int:
        """Return the kinds for ``k`` and ``d``; ``together`` keeps, for kinds and a state behind a rule, all theirs."""
        rules, ends = self._rules, self._ends
        refused = self._refused[k][self._inside[d]]
        found = 1 << k if rules.is_final[d] else 0
        for e in range(rules.terminal_offsets[d], rules.terminal_offsets[d + 1]):
            u, target = rules.terminal_symbol[e], rules.terminal_target[e]
            if u in self._lines.marks:
                if k == self._newline_kind:
                    found |= ends[target][k]
            elif not refused >> u & 1:
                found |= ends[target][self._kind[u]]
        for e in range(rules.rule_offsets[d], rules.rule_offsets[d + 1]):
            target = rules.rule_target[e]
            key = self._ask(k, rules.rule_start[rules.rule_symbol[e]]), target
            behind = together.get(key)
            if behind is None:
                behind = 0
                for last in members(key[0]):
                    behind |= self._ask(last, target)
                together[key] = behind
            found |= behind
        return found

    def _last_kinds(self) -> int:
        """Return the kinds of terminals that may be the last."""
        every = (1 << len(self._refused)) - 1
        if not self._ignored.trailing:
            for k in self._ignored_kind.values():
                every &= ~(1 << k)
        return every

    def are_out_of_reach(self, enough: Callable[[Iterator[bool]], bool]) -> bool:
        """Is no end known from the beginning of the text, be it from ``any`` or ``all`` of its alternatives?"""
        every = self._last_kinds()
        ends = (self._ends[start][0] & every != 0 for start in range(self._rules.n_starts))
        return not (self._rules.start_nullable or enough(ends))

    def problem(self) -> tuple[int, int] | None:
        """Return a terminal behind which no way to the end is known, and one that may not follow it."""
        rules, every = self._rules, self._last_kinds()
        if self.are_out_of_reach(all):
            return self._first_problem()
        dots: list[list[int]] = [[] for _ in rules.rule_start]
        for d, rule in enumerate(rules.rule_of):
            dots[rule].append(d)
        # Each context: a rule, the kinds its callers go on from, and whether anything may follow it.
        contexts = [(0, every, False)]
        seen = set(contexts)
        for rule, wanted, goes_on in contexts:  # grows while it is read
            for d in dots[rule]:
                self._watch.step(_PLACE)
                good = -1
                for t, kind in self._read_at(d, wanted, goes_on):
                    if good < 0:
                        good = self._good_at(d, wanted)
                    if not any(self._carries(t, u) for u in members(good & self._company(t))):
                        return self._named(t, kind, d)
                for e in range(rules.rule_offsets[d], rules.rule_offsets[d + 1]):
                    called, target = rules.rule_symbol[e], rules.rule_target[e]
                    context = called, self._wanted(target, wanted), self._goes_on(target, goes_on)
                    if context not in seen:
                        seen.add(context)
                        contexts.append(context)
            if len(contexts) > _MOST_CONTEXTS:
                return self._first_problem()
        return None

    def _read_at(self, d: int, wanted: int, after_rule: bool) -> Iterator[tuple[int, int]]:
        """Yield terminals, and their kinds, that may be read at ``d`` without a known way on behind them."""
        rules, ends = self._rules, self._ends
        for e in range(rules.terminal_offsets[d], rules.terminal_offsets[d + 1]):
            t = rules.terminal_symbol[e]
            kind = self._newline_kind if t in self._lines.marks else self._kind[t]
            if not ends[rules.terminal_target[e]].get(kind, 0) & wanted:
                yield t, kind
        # What a rule begins with need not go on; who calls it must.
        is_first = d < rules.n_starts
        is_start = is_first or d == rules.rule_start[rules.rule_of[d]]
        if is_start and not (is_first and self._ignored.leading):
            return
        if self._goes_on(d, after_rule):
            for b, k in self._ignored_kind.items():
                is_read = b != self._lines.inner_newline or self._inside[d]
                if is_read and self._refused[k][self._inside[d]] and not ends[d][k] & wanted:
                    yield b, k

    def _wanted(self, d: int, wanted: int) -> int:
        """Return the kinds from which there is a way from ``d`` to the end of its rule, with one of ``wanted``."""
        found = 0
        for k, ends in self._ends[d].items():
            if ends & wanted:
                found |= 1 << k
        return found

    def _good_at(self, d: int, wanted: int) -> int:
        """Return the bits of the terminals expected at ``d`` behind which there is a way."""
        rules = self._rules
        found = 0
        places = [(d, wanted)]
        seen = set(places)
        for place, kinds in places:  # grows while it is read
            self._watch.step(_PLACE)
            for e in range(rules.terminal_offsets[place], rules.terminal_offsets[place + 1]):
                t = rules.terminal_symbol[e]
                if t not in self._lines.marks:
                    after = self._wanted(rules.terminal_target[e], kinds)
                    if after >> self._kind[t] & 1:
                        found |= 1 << t
            for e in range(rules.rule_offsets[place], rules.rule_offsets[place + 1]):
                called = rules.rule_start[rules.rule_symbol[e]], self._wanted(rules.rule_target[e], kinds)
                if called not in seen:
                    seen.add(called)
                    places.append(called)
        return found

    def _goes_on(self, d: int, after_rule: bool) -> bool:
        """May anything follow at ``d``?"""
        rules = self._rules
        return (
            rules.terminal_offsets[d] < rules.terminal_offsets[d + 1]
            or rules.rule_offsets[d] < rules.rule_offsets[d + 1]
            or (rules.is_final[d] and after_rule)
        )

    def _named(self, t: int, kind: int, d: int) -> tuple[int, int]:
        """Return ``t`` and a terminal that may not follow it; ``t`` twice where something farther is to blame."""
        refused = self._refused[kind][self._inside[d]] or self._refused[kind][0]
        return t, next(members(refused), t)

    def _first_problem(self) -> tuple[int, int]:
        every = {**self._kind, **self._ignored_kind}
        return next((self._named(t, k, 0) for t, k in every.items() if any(self._refused[k])), (0, 0))


def may_nest(rules: Rules) -> bool:
    """Does a rule contain itself behind something else, so that there are ever more places in the rules?

    A rule that only begins with itself doesn't count.
    """
    n = len(rules.rule_start)
    calls: list[set[int]] = [set() for _ in range(n)]
    for d, rule in enumerate(rules.rule_of):
        calls[rule].update(rules.rule_symbol[rules.rule_offsets[d] : rules.rule_offsets[d + 1]])
    component = components([sorted(called) for called in calls])
    for d, rule in enumerate(rules.rule_of):
        if d != rules.rule_start[rule]:
            for called in rules.rule_symbol[rules.rule_offsets[d] : rules.rule_offsets[d + 1]]:
                if component[called] == component[rule]:
                    return True
    return False
