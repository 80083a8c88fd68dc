"""Tokens to finish from the states of an arena: bounds, proofs and what is kept.

The cost of a state is a number of tokens that is enough to finish, the end token not counted. It is 0
exactly where the output may end, and from every state of cost ``k > 0`` some allowed token leads to a state
of cost ``k - 1`` at most: a rank that falls. So a budget that is kept once can be kept to the end.

Costs come from bounds that count tokens lexeme by lexeme (``cost_kernels``). Such a bound is right by
construction where it can be kept: where all bytes are tokens, and no greedy terminal goes on into the next
lexeme nor one of higher priority takes the place of another. Elsewhere each state's cost is proven by following
a real sequence of tokens to the end (``_prove`` there), with ignored text between lexemes that would
fuse, and where that fails it is searched for here.
"""

from __future__ import annotations

import heapq
import string
import time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.errors import LimitExceededError
from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.network import Network
from constrain.tokenizer_index.parameters import COLUMNS, NO_ELEMENT, PM_LEAST, RECORDS
from constrain.tokenizer_index.trie import VocabularyIndex

INFINITE = k.INFINITE

_MEMOS = {k.VALUE_COST: (3, 256), k.AFTER_RULE: (2, 256), k.AFTER_TERMINAL: (2, 256), k.SEEN: (2, 512)}
_BUFFERS = {k.BUF_WALK: 256, k.BUF_NODE: 640, k.BUF_STATES: 256, k.BUF_PROOF: 64, k.RUNS: 0}

_MOST_SEPARATORS = 8
_WORD_BYTES = (string.ascii_letters + string.digits + "_").encode()

_PLACE = "a search for the end of an output"
# How much a token nearer to the end counts against one more behind; 1 would seek the shortest end.
_HASTE = 3


def _counts_texts(network: Network) -> bool:
    """May lexemes that must differ be required? Then one more may cost more than the one before."""
    recording = network.terminal_action[network.terminal_action >= RECORDS]
    least = network.parameters[PM_LEAST::COLUMNS]
    return len(recording) > 0 and bool((recording != RECORDS | NO_ELEMENT).any() or (least > 0).any())


def _separators(network: Network) -> NDArray[np.int64]:
    """Return bytes that are an ignored lexeme by themselves, a blank and a line break before others."""
    found: set[int] = set()
    for t in np.flatnonzero(network.ignored).tolist():
        for start in network.starts[network.start_offsets[t] : network.start_offsets[t + 1]].tolist():
            for e in range(network.edge_offsets[start], network.edge_offsets[start + 1]):
                if network.accept[network.edge_target[e]] >= 0:
                    found.update(range(network.edge_low[e], network.edge_high[e] + 1))
    usual = [b for b in b" \n" if b in found]
    return np.array([*usual, *sorted(found.difference(usual))][:_MOST_SEPARATORS], np.int64)


@lru_cache(maxsize=4)
def _words_below(index: VocabularyIndex) -> NDArray[np.uint8]:
    """(n_nodes,) 1 where only letters, digits and underscores stand below a trie node, else 0."""
    nodes = np.asarray(index.nodes)
    byte = (nodes & np.uint64(0xFF)).astype(np.uint8)
    is_word = np.isin(byte, np.frombuffer(_WORD_BYTES, np.uint8))
    n_others = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(~is_word, out=n_others[1:])
    here = np.arange(len(nodes))
    end = here + (nodes >> np.uint64(24)).astype(np.int64)
    found: NDArray[np.uint8] = (n_others[end] == n_others[here + 1]).astype(np.uint8)
    return found


class Costs:
    """Costs of the states of one arena.

    Parameters
    ----------
    arena : Arena
    is_proven : bool
        Bounds by lexemes can be kept, so nothing need be proven state by state.
    """

    __slots__ = ("arena",)

    def __init__(self, arena: Arena, *, is_proven: bool) -> None:
        self.arena = arena
        network = arena.network
        tiny = arena.options.initial_capacity
        rules = np.where(network.is_final != 0, 0, INFINITE).astype(np.int64)
        tables: dict[int, tuple[NDArray[np.int64], int | None]] = {
            k.TERM_COST: (np.full(2 * network.n_terminals, -1, np.int64), None),
            k.RULE_COST: (np.repeat(rules, 2), None),
            k.BUF_PRICE: (np.empty(2 + max(network.parameters[::COLUMNS], default=0), np.int64), None),
            k.GAP: (np.zeros(2 * network.n_terminals, np.int64), None),
        }
        separators = _separators(network)
        tables[k.SEPARATORS] = separators, len(separators)
        for table, (stride, slots) in _MEMOS.items():
            slots = slots if tiny is None else 1 << max(0, tiny - 1).bit_length()
            tables[table] = np.full(stride * slots, -1, np.int64), 0
        for table, size in _BUFFERS.items():
            tables[table] = np.empty(size if tiny is None else tiny, np.int64), 0
        arena.add_tables(tables)
        arena.add_tables({k.WORDS_BELOW: (_words_below(arena.index), None)}, is_shared=True)
        arena.set_scalar(k.S_RULES_DONE, 0)
        arena.set_scalar(k.S_EXPANDED, -1)
        arena.set_scalar(k.S_IS_PROVEN, int(is_proven and not _counts_texts(network)))

    def until(self) -> float:
        """Return the moment at which a call that begins now has lasted too long."""
        return time.monotonic() + self.arena.limits.step_seconds

    def cost(self, state: int, until: float = 0.0) -> tuple[int, bool]:
        """Return (tokens that are enough to finish from ``state``, whether no fewer are).

        `INFINITE` where no sequence of tokens finishes.
        """
        found = self.arena.known_cost(state)
        if found < 0:
            found, _ = self.run(k.OP_COST, state, until=until)
        return found >> 1, bool(found & 1)

    def necessary(self, state: int, until: float = 0.0) -> int:
        """Return a number of tokens that no completion goes below, after `necessary.prepare`."""
        return self.run(k.OP_BOUND, state, 1, until=until)[0]

    def expand(self, state: int, until: float = 0.0) -> NDArray[np.int64]:
        """Return the states one token away: rows (state, a token, tokens enough, tokens necessary)."""
        return self.run(k.OP_EXPAND, state, table=k.BUF_STATES, width=4, until=until)[1]

    def is_alive(self, state: int) -> bool:
        """Does some sequence of tokens finish from ``state``?"""
        return self.cost(state)[0] < INFINITE

    def clear_dead(self, state: int, address: int) -> None:
        """Clear the tokens of the mask of ``state`` at ``address`` after which nothing finishes."""
        self.restrict(state, address, INFINITE - 1)

    def restrict(self, state: int, address: int, limit: int) -> bool:
        """Clear the tokens of a mask after which more than ``limit`` tokens are needed; were there any?"""
        if self.arena.is_within(state, limit):
            return False
        return self.run(k.OP_RESTRICT, state, address, limit)[0] == 1

    def lower(self, state: int, cost: int, *, is_exact: bool) -> None:
        """Note that ``cost`` tokens are enough from ``state``, along a path whose states are all noted."""
        self.arena.call_costs(k.OP_STORE_COST, state, cost, int(is_exact))

    def run(
        self,
        op: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        *,
        table: int = -1,
        width: int = 1,
        until: float = 0.0,
    ) -> tuple[int, NDArray[np.int64]]:
        """Run an operation of the kernels, searching for costs where it asks for that.

        Raises
        ------
        LimitExceededError
            All that lasted longer than ``limits.step_seconds``, or than the moment ``until``.
        """
        until = until or self.until()
        while True:
            result, rows = self.arena.call_costs(op, a, b, c, table=table, width=width, until=until)
            if result != k.SEARCH:
                return result, rows
            self._search(int(rows[0]), until)

    def _search(self, start: int, until: float) -> None:
        """Find the cost of a state whose bound cannot be kept, or that nothing finishes from it.

        The first state whose cost is proven ends the search, and none has to be the best. So states near the end are
        looked at first, even if they took more tokens: where a bound is too low for many states alike (it doesn't see
        that keys must differ), looking at all of them would take forever.

        Raises
        ------
        LimitExceededError
            Neither was found within the limits on states and time.
        """
        arena, most = self.arena, self.arena.limits.liveness
        parent: dict[int, tuple[int, int]] = {start: (start, 0)}
        heap = [(0, 0, start)]
        while heap:
            _, depth, state = heapq.heappop(heap)
            if state != start:
                found, _ = arena.call_costs(k.OP_COST, state, until=until)
                if found != k.SEARCH:
                    if found >> 1 < INFINITE:
                        self._store_path(parent, state, found >> 1)
                        return
                    continue
            _, rows = arena.call_costs(k.OP_SUCCESSORS, state, table=k.BUF_WALK, width=2, until=until)
            for after in rows[:, 0].tolist():
                if after not in parent:
                    parent[after] = state, depth + 1
                    bound, _ = arena.call_costs(k.OP_BOUND, after, 0, until=until)
                    heapq.heappush(heap, (_HASTE * bound + depth, depth + 1, after))
            if len(parent) > most:
                raise LimitExceededError("liveness", most, _PLACE)
            if time.monotonic() > until:
                raise LimitExceededError("step_seconds", arena.limits.step_seconds, _PLACE)
        for state in parent:
            self.lower(state, INFINITE, is_exact=True)

    def _store_path(self, parent: dict[int, tuple[int, int]], state: int, cost: int) -> None:
        """Store the costs of the states that led to ``state``, from there to the start."""
        while parent[state][1]:
            state, cost = parent[state][0], cost + 1
            self.lower(state, cost, is_exact=cost == 1)
