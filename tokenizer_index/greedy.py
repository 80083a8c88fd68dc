"""Terminals that may be greedy without changing the language.

A greedy lexeme doesn't end where the next byte could continue it, or another terminal read beside it.
That changes nothing for a terminal if no byte that may follow it continues anything then: if ``F``, the
first bytes of what may follow it or a terminal that ends together with it, and ``C``, the bytes that may
continue it or a terminal that begins alike, are disjoint.

Sets of bytes are the bits of integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrain.grammars.limits import Watch
from constrain.tokenizer_index.transition_network import Rules


def provably_greedy(
    rules: Rules,
    first: Sequence[int],
    after: Sequence[int],
    inner: Sequence[int],
    ignored: Sequence[int],
    consecutive: bool,
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
    consecutive : bool
        May ignored lexemes follow each other?
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
    follow = _Follow(rules, first, ignored, consecutive, watch)
    for t in candidates:
        beside = [
            other for begin, members in groups.items() if begin & first[t] for other in members if other != t
        ]
        continued = after[t]
        for other in beside:
            continued |= inner[other]
        proven[t] = not continued & follow.of({t, *beside})
    return proven


class _Follow:
    """First bytes of what may follow terminals, computed where they are asked for."""

    def __init__(
        self, rules: Rules, first: Sequence[int], ignored: Sequence[int], consecutive: bool, watch: Watch
    ) -> None:
        self._rules = rules
        self._first = first
        self._ignored = ignored
        self._watch = watch
        self._begins = _rule_firsts(rules, first, watch)
        self._after_rule: list[int] | None = None
        self._blank = 0
        for t in ignored:
            self._blank |= first[t]
        self._after_ignored = self._blank if consecutive else 0
        for t in set(rules.terminal_symbol):
            self._after_ignored |= first[t]

    def of(self, terminals: set[int]) -> int:
        """Return what may follow one of ``terminals``."""
        rules = self._rules
        found = 0
        if not terminals.issubset(self._ignored):
            found |= self._blank
        if not terminals.isdisjoint(self._ignored):
            found |= self._after_ignored
        targets = {
            target
            for t, target in zip(rules.terminal_symbol, rules.terminal_target, strict=True)
            if t in terminals
        }
        for target in targets:
            found |= self._here(target)
            if rules.is_final[target]:
                found |= self._after(rules.rule_of[target])
        self._watch.step("greedy terminals", len(targets))
        return found

    def _here(self, dot: int) -> int:
        """Return what may come at a dotted state, short of what follows the end of its rule."""
        rules, found = self._rules, 0
        for k in range(rules.terminal_offsets[dot], rules.terminal_offsets[dot + 1]):
            found |= self._first[rules.terminal_symbol[k]]
        for k in range(rules.rule_offsets[dot], rules.rule_offsets[dot + 1]):
            found |= self._begins[rules.rule_symbol[k]]
        return found

    def _after(self, rule: int) -> int:
        """Return what may follow a rule: what comes behind its calls, and behind callers that end there."""
        if self._after_rule is None:
            rules, n = self._rules, len(self._rules.rule_start)
            after = [0] * n
            callers: list[set[int]] = [set() for _ in range(n)]
            for called, target in zip(rules.rule_symbol, rules.rule_target, strict=True):
                after[called] |= self._here(target)
                if rules.is_final[target]:
                    callers[rules.rule_of[target]].add(called)
            _spread(after, callers, self._watch)
            self._after_rule = after
        return self._after_rule[rule]


def _rule_firsts(rules: Rules, first: Sequence[int], watch: Watch) -> list[int]:
    """Return the first bytes of each rule; no rule in the network matches the empty string."""
    begins = []
    called_by: list[set[int]] = [set() for _ in rules.rule_start]
    for rule, dot in enumerate(rules.rule_start):
        found = 0
        for k in range(rules.terminal_offsets[dot], rules.terminal_offsets[dot + 1]):
            found |= first[rules.terminal_symbol[k]]
        for k in range(rules.rule_offsets[dot], rules.rule_offsets[dot + 1]):
            called_by[rules.rule_symbol[k]].add(rule)
        begins.append(found)
    _spread(begins, called_by, watch)
    return begins


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
