"""Tokens that are necessary to finish: a lower bound, for searches that must know when to stop.

Every token begins in some lexeme, or in blanks. The bound adds up, along the cheapest way through the rules, how
many tokens must begin in each lexeme given which terminal came before it. A token that begins earlier may reach
into a lexeme or hold it whole, so punctuation mostly needs none; but a token never joins, say, the digits
of a number to the comma behind them if the vocabulary has no such token.

What depends on the terminal before is turned into numbers of single terminals: ``first(s)`` is the least over
all terminals ``t`` before ``s``, and ``gap(t)`` what ``s`` needs in addition after this ``t``, the least over
all ``s``; so no way through the rules costs less than the sum of ``first + gap``. A terminal that can be
the last has no gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.bits import members
from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index.costs import INFINITE, Costs
from constrain.tokenizer_index.network import Network
from constrain.tokenizer_index.trie import VocabularyIndex

MOST_TERMINALS = 1000
"""Networks with more get no lower bound: each pair of neighbours takes some ten microseconds."""


def prepare(costs: Costs) -> bool:
    """Compute what terminals need and put it into the arena.

    False if there are too many terminals, or if what a newline needs depends on the blocks around it.
    """
    arena = costs.arena
    network = arena.network
    used = set(network.terminal_symbol.tolist())
    if len(used) > MOST_TERMINALS or network.lines is not None:
        return False
    add_inner_nodes(costs)
    last, blanks = _last_bytes(network, used)
    arena.write(k.IS_BLANK, _flags(blanks))
    follow = _Follow(network)
    before: dict[int, set[int]] = {s: set() for s in used}
    for t in used:
        for s in members(follow.after[t]):
            before[s].add(last[t])

    def entry(s: int, ends: int) -> int:
        arena.write(k.MAY_END, _flags(ends))
        return costs.run(k.OP_ENTRY_COST, s)[0]

    after_token = {s: entry(s, 0) for s in used}
    needs = {(ends, s): entry(s, ends) for s in used for ends in before[s]}
    first = {s: min((needs[ends, s] for ends in before[s]), default=after_token[s]) for s in used}
    gaps = np.zeros((network.n_terminals, 2), np.int64)
    total = np.full(network.n_terminals, INFINITE, np.int64)
    for t in used:
        if follow.after[t] and not follow.may_be_last[t]:
            gaps[t, 0] = min(after_token[s] - first[s] for s in members(follow.after[t]))
            gaps[t, 1] = min(needs[last[t], s] - first[s] for s in members(follow.after[t]))
        total[t] = min(INFINITE, first[t] + int(gaps[t, 1]))
    arena.write(k.GAP, gaps.ravel())
    arena.write(k.TERM_COST, total, network.n_terminals)
    return True


def add_inner_nodes(costs: Costs) -> None:
    """Give the arena the tables of the walks that begin inside tokens."""
    inner = _inner_nodes(costs.arena.index)
    zeros = np.zeros(256, np.int32)
    costs.arena.add_tables(
        {
            k.PARENT: (inner.parent, None),
            k.INNER_NODES: (inner.nodes, None),
            k.INNER_OFF: (inner.offsets, None),
            k.MAY_END: (zeros, None),
            k.IS_BLANK: (zeros.copy(), None),
        },
        is_shared=True,
    )


def _flags(byte_set: int) -> NDArray[np.int32]:
    """(256,) int32 flags of a set of bytes."""
    data = np.frombuffer(byte_set.to_bytes(32, "little"), np.uint8)
    return np.unpackbits(data, bitorder="little").astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _InnerNodes:
    """Trie nodes below the first level.

    Parameters
    ----------
    parent : (n_nodes,) int32
        The node above, -1 on the first level.
    nodes, offsets : (n,) int32, (257,) int64
        Nodes below the first level, sorted by byte; those of byte ``b`` are
        ``nodes[offsets[b] : offsets[b + 1]]``.
    """

    parent: NDArray[np.int32]
    nodes: NDArray[np.int32]
    offsets: NDArray[np.int64]


@lru_cache(maxsize=4)
def _inner_nodes(index: VocabularyIndex) -> _InnerNodes:
    packed = np.asarray(index.nodes)
    depth = ((packed >> np.uint64(8)) & np.uint64(0xFFFF)).astype(np.int32)
    byte = (packed & np.uint64(0xFF)).astype(np.uint8)
    order = np.argsort(depth, kind="stable")
    levels = np.split(order, np.cumsum(np.bincount(depth)[1:])[:-1])
    parent = np.full(len(packed), -1, np.int32)
    for above, here in pairwise(levels):
        # The last shallower node before it.
        parent[here] = above[np.searchsorted(above, here) - 1]
    inner = np.flatnonzero(depth > 1)
    inner = inner[np.argsort(byte[inner], kind="stable")]
    offsets = np.zeros(257, np.int64)
    np.cumsum(np.bincount(byte[inner], minlength=256), out=offsets[1:])
    return _InnerNodes(parent, inner.astype(np.int32), offsets)


def _last_bytes(network: Network, used: set[int]) -> tuple[list[int], int]:
    """Return (bytes that may end a lexeme of each terminal, bytes that are blanks and nothing else).

    Where blanks may also end another lexeme, nothing counts as a blank, and ends of blanks as ends of any.
    """
    last = [0] * network.n_terminals
    any_byte = [0] * network.n_terminals
    sources = np.repeat(np.arange(network.n_positions), np.diff(network.edge_offsets))
    rows = zip(
        network.position_terminal[sources].tolist(),
        network.edge_low.tolist(),
        network.edge_high.tolist(),
        (network.accept[network.edge_target] >= 0).tolist(),
        strict=True,
    )
    for t, low, high, is_end in rows:
        span = (2 << high) - (1 << low)
        any_byte[t] |= span
        if is_end:
            last[t] |= span
    blanks = blank_ends = 0
    for t in network.ignored_terminals.tolist():
        blanks |= any_byte[t]
        blank_ends |= last[t]
    if any(blanks & last[t] for t in used):
        return [ends | blank_ends for ends in last], 0
    return last, blanks


class _Follow:
    """Which terminals may come right after which, blanks aside, by the rules.

    Attributes
    ----------
    after : list of int
        For each terminal the bits of those that may follow it.
    may_be_last : list of bool
    """

    def __init__(self, network: Network) -> None:
        term_off, term_symbol = network.terminal_offsets.tolist(), network.terminal_symbol.tolist()
        rule_off, rule_symbol = network.rule_offsets.tolist(), network.rule_symbol.tolist()
        term_target, rule_target = network.terminal_target.tolist(), network.rule_target.tolist()
        is_final, rule_of = network.is_final.tolist(), network.rule_of.tolist()
        starts = network.rule_start.tolist()
        here = [0] * network.n_dotted
        for d in range(network.n_dotted):
            for e in range(term_off[d], term_off[d + 1]):
                here[d] |= 1 << term_symbol[e]
        begins = [here[d] for d in starts]
        calls = [
            (rule_symbol[e], rule)
            for rule, d in enumerate(starts)
            for e in range(rule_off[d], rule_off[d + 1])
        ]
        _spread(begins, calls)
        behind = [0] * network.n_rules
        is_end = [0] * network.n_rules
        is_end[0] = 1
        tails = []
        for d in range(network.n_dotted):
            for e in range(rule_off[d], rule_off[d + 1]):
                here[d] |= begins[rule_symbol[e]]
        for d in range(network.n_dotted):
            for e in range(rule_off[d], rule_off[d + 1]):
                behind[rule_symbol[e]] |= here[rule_target[e]]
                if is_final[rule_target[e]]:
                    tails.append((rule_of[d], rule_symbol[e]))
        _spread(behind, tails)
        _spread(is_end, tails)
        self.after = [0] * network.n_terminals
        self.may_be_last = [False] * network.n_terminals
        for t, d in zip(term_symbol, term_target, strict=True):
            self.after[t] |= here[d]
            if is_final[d]:
                self.after[t] |= behind[rule_of[d]]
                if is_end[rule_of[d]]:
                    self.may_be_last[t] = True


def _spread(sets: list[int], edges: Iterable[tuple[int, int]]) -> None:
    """Add each set to those its edges lead to, until nothing changes."""
    targets: list[list[int]] = [[] for _ in sets]
    for source, target in edges:
        targets[source].append(target)
    tasks = list(range(len(sets)))
    while tasks:
        i = tasks.pop()
        for j in targets[i]:
            if sets[i] & ~sets[j]:
                sets[j] |= sets[i]
                tasks.append(j)
