"""Terminals that may be greedy without changing the language.

A greedy lexeme doesn't end where the next byte could continue it, or another terminal read beside it.
That changes nothing for a terminal if no byte that may follow it continues anything then: if ``F``, the
first bytes of what may follow it or a terminal that ends together with it, and ``C``, the bytes that may
continue it or a terminal that begins alike, are disjoint.

Sets of bytes are the bits of integers.
"""

from __future__ import annotations

import itertools
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
    follow = _follow(rules, first, ignored, consecutive, watch)
    for t in candidates:
        continued, follows = after[t], follow[t]
        for begin, members in groups.items():
            if begin & first[t]:
                for other in members:
                    if other != t:
                        continued |= inner[other]
                        follows |= follow[other]
        proven[t] = not continued & follows
    return proven


def _follow(
    rules: Rules, first: Sequence[int], ignored: Sequence[int], consecutive: bool, watch: Watch
) -> list[int]:
    """Return the first bytes of what may follow each terminal."""
    here = _dotted_firsts(rules, first, watch)
    # What may follow a rule: what comes behind its calls, and behind callers that end there.
    after_rule = [0] * len(rules.rule_start)
    callers: list[set[int]] = [set() for _ in rules.rule_start]
    for called, target in zip(rules.rule_symbol, rules.rule_target, strict=True):
        after_rule[called] |= here[target]
        if rules.is_final[target]:
            callers[rules.rule_of[target]].add(called)
    _spread(after_rule, callers, watch)
    blank = 0
    for t in ignored:
        blank |= first[t]
    follow = [0] * len(first)
    is_final, rule_of = rules.is_final, rules.rule_of
    for t, target in zip(rules.terminal_symbol, rules.terminal_target, strict=True):
        follow[t] |= here[target] | blank
        if is_final[target]:
            follow[t] |= after_rule[rule_of[target]]
    watch.step("greedy terminals", len(rules.terminal_symbol))
    if ignored:
        behind = blank if consecutive else 0
        for t in set(rules.terminal_symbol):
            behind |= first[t]
        for t in ignored:
            follow[t] |= behind
    return follow


def _dotted_firsts(rules: Rules, first: Sequence[int], watch: Watch) -> list[int]:
    """Return what may come at each dotted state, short of what follows the end of its rule."""
    here = []
    offsets = rules.terminal_offsets
    for begin, end in itertools.pairwise(offsets):
        found = 0
        for t in rules.terminal_symbol[begin:end]:
            found |= first[t]
        here.append(found)
    watch.step("greedy terminals", len(here))
    begins = [here[dot] for dot in rules.rule_start]
    called_by: list[set[int]] = [set() for _ in rules.rule_start]
    for rule, dot in enumerate(rules.rule_start):
        for called in rules.rule_symbol[rules.rule_offsets[dot] : rules.rule_offsets[dot + 1]]:
            called_by[called].add(rule)
    # No rule in the network matches the empty string, so a call begins with what its rule begins with.
    _spread(begins, called_by, watch)
    for dot, (begin, end) in enumerate(itertools.pairwise(rules.rule_offsets)):
        for called in rules.rule_symbol[begin:end]:
            here[dot] |= begins[called]
    return here


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
