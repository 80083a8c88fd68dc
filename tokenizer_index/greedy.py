"""Terminals that may be greedy without changing the language.

A greedy lexeme doesn't end where the next byte could continue it, or another terminal read beside it.
That changes nothing for a terminal if no byte that may follow it continues anything then: if ``F``, the
first bytes of what may follow it or a terminal that ends together with it, and ``C``, the bytes that may
continue it or a terminal that begins alike, are disjoint.

Sets of bytes are the bits of integers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from constrain.grammars.limits import Watch
from constrain.tokenizer_index.transition_network import Rules


def provably_greedy(
    rules: Rules,
    first: Sequence[int],
    after: Sequence[int],
    inner: Sequence[int],
    ignored: Sequence[int],
    most_ignored: int | None,
    watch: Watch,
) -> list[bool]:
    """Return which terminals may be greedy for free.

    Parameters
    ----------
    rules : Rules
    first, after, inner : (n_terminals,)
        Bytes that begin a match, that may continue a whole match, that stand after the first byte.
        Supersets are fine. Only terminals that can be continued are looked at.
    ignored : sequence of int
        Ignored terminals.
    most_ignored : int or None
        Ignored lexemes in a row; None: any number.
    """
    proven = [False] * len(first)
    candidates = [t for t, continued in enumerate(after) if continued]
    if not candidates:
        return proven
    # Terminals by their first bytes; two terminals are read side by side only if these meet.
    groups: dict[int, list[int]] = {}
    for t, begin in enumerate(first):
        if begin:
            groups.setdefault(begin, []).append(t)
    beside: dict[int, list[int]] = {}
    for t in candidates:
        watch.step("greedy terminals", 1 + len(groups))
        meeting = [members for begin, members in groups.items() if begin & first[t]]
        beside[t] = [other for members in meeting for other in members if other != t]
        watch.step("greedy terminals", len(beside[t]))
    follow = _Follow(rules, first, ignored, most_ignored != 1, watch).of({*beside, *chain(*beside.values())})
    for t, others in beside.items():
        watch.step("greedy terminals", 1 + len(others))
        continued, follows = after[t], follow[t]
        for other in others:
            continued |= inner[other]
            follows |= follow[other]
        proven[t] = not continued & follows
    return proven


def following_terminals(
    rules: Rules, n_terminals: int, marks: Collection[int], watch: Watch
) -> tuple[dict[int, int], list[int]]:
    """Return for each terminal the bits of the terminals that may come right after it, and of those that come first.

    The latter for each alternative that is read apart.

    Terminals in ``marks`` have no text: what may follow one of them may follow any that it may follow.
    """
    bits = [1 << t for t in range(n_terminals)]
    finder = _Follow(rules, bits, (), False, watch)
    follow = finder.of(set(rules.terminal_symbol))
    behind = 0
    for mark in marks:
        behind |= follow.get(mark, 0)
    marked = sum(1 << mark for mark in marks)
    follow = {t: found | behind if found & marked else found for t, found in follow.items()}
    return follow, finder.first_of_all()


class _Follow:
    """First bytes of what may follow terminals; what isn't needed isn't computed."""

    def __init__(
        self, rules: Rules, first: Sequence[int], ignored: Sequence[int], consecutive: bool, watch: Watch
    ) -> None:
        self._rules = rules
        self._first = first
        self._ignored = ignored
        self._consecutive = consecutive
        self._watch = watch
        self._here: dict[int, int] = {}
        self._begins: list[int] = []
        self._after: list[int] = []

    def of(self, terminals: set[int]) -> dict[int, int]:
        """Return what may follow each of ``terminals``."""
        rules, first = self._rules, self._first
        blank, anything = 0, 0
        for t in self._ignored:
            blank |= first[t]
        if not terminals.isdisjoint(self._ignored):
            for t in set(rules.terminal_symbol):
                anything |= first[t]
        behind = anything | blank if self._consecutive else anything
        follow = {t: behind if t in self._ignored else 0 for t in terminals}
        for t, target in zip(rules.terminal_symbol, rules.terminal_target, strict=True):
            if t in terminals:
                follow[t] |= blank | self._at(target)
                if rules.is_final[target]:
                    follow[t] |= self._after_rule(rules.rule_of[target])
        self._watch.step("greedy terminals", len(rules.terminal_symbol))
        return follow

    def first_of_all(self) -> list[int]:
        """Return what a text may begin with, for each alternative that is read apart."""
        return [self._at(dot) for dot in range(self._rules.n_starts)]

    def _at(self, dot: int) -> int:
        """Return what may come at a dotted state, short of what follows the end of its rule."""
        known = self._here.get(dot)
        if known is None:
            rules, known = self._rules, self._terminals_at(dot)
            for called in rules.rule_symbol[rules.rule_offsets[dot] : rules.rule_offsets[dot + 1]]:
                known |= self._rule_begins(called)
            self._here[dot] = known
        return known

    def _terminals_at(self, dot: int) -> int:
        found, rules = 0, self._rules
        for t in rules.terminal_symbol[rules.terminal_offsets[dot] : rules.terminal_offsets[dot + 1]]:
            found |= self._first[t]
        return found

    def _rule_begins(self, rule: int) -> int:
        """Return what a rule begins with. No rule in the network matches the empty string."""
        if not self._begins:
            rules = self._rules
            begins = [self._terminals_at(dot) for dot in rules.rule_start]
            called_by: list[set[int]] = [set() for _ in begins]
            for rule_, dot in enumerate(rules.rule_start):
                for called in rules.rule_symbol[rules.rule_offsets[dot] : rules.rule_offsets[dot + 1]]:
                    called_by[called].add(rule_)
            _spread(begins, called_by, self._watch)
            self._begins = begins
        return self._begins[rule]

    def _after_rule(self, rule: int) -> int:
        """Return what may follow a rule: what comes behind its calls, and behind callers that end there."""
        if not self._after:
            rules = self._rules
            after = [0] * len(rules.rule_start)
            callers: list[set[int]] = [set() for _ in after]
            for called, target in zip(rules.rule_symbol, rules.rule_target, strict=True):
                after[called] |= self._at(target)
                if rules.is_final[target]:
                    callers[rules.rule_of[target]].add(called)
            _spread(after, callers, self._watch)
            self._after = after
        return self._after[rule]


def _spread(sets: list[int], to: Sequence[set[int]], watch: Watch) -> None:
    """Add each set to those it flows to, until nothing changes."""
    tasks = list(range(len(sets)))
    waiting = [True] * len(sets)
    while tasks:
        i = tasks.pop()
        waiting[i] = False
        found = sets[i]
        for k in to[i]:
            if found & ~sets[k]:
                sets[k] |= found
                if not waiting[k]:
                    waiting[k] = True
                    tasks.append(k)
        watch.step("greedy terminals", 1 + len(to[i]))
