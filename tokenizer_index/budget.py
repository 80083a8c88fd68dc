"""Fewest tokens to finish, and masks that keep an output within a budget of tokens.

With ``r`` tokens left, the end token included, a token is allowed if after it the output can be finished
with ``r - 2`` tokens and the end token. What a state needs is its *cost* (see ``costs``): an upper limit
whose invariant makes sure that such a token exists as long as the budget was enough at the start.

`Budget.min_tokens` looks for the exact number: a search over states, the most promising first, that ends when
no state left can do better (A*, with the lower bound of ``necessary``). What it finds lowers the costs along
its path.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import Any, Self

from constrain.grammars.errors import LimitExceededError
from constrain.tokenizer_index import necessary
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.costs import INFINITE, Costs
from constrain.tokenizer_index.layout import HUGE
from constrain.tokenizer_index.missing_bytes import bounds_hold
from constrain.tokenizer_index.vocabulary import Vocabulary

SECONDS = 0.5
"""Wall-clock time of one search for the exact number."""
MOST_STATES = 20_000
"""States one search may hold."""
_REMEMBERED = 10_000


class MinTokens(int):
    """A number of tokens that is enough to finish, the end token not counted.

    Parameters
    ----------
    value : int
    is_exact : bool
        No fewer are enough.
    """

    is_exact: bool

    def __new__(cls, value: int, is_exact: bool) -> Self:
        """Make one; immutable like any int."""
        self = super().__new__(cls, value)
        self.is_exact = is_exact
        return self

    def __repr__(self) -> str:
        return f"MinTokens({int(self)}, is_exact={self.is_exact})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MinTokens, (int(self), self.is_exact)


class Budget:
    """Completion costs of the states of one arena; threads may share it.

    Parameters
    ----------
    arena : Arena
    vocabulary : Vocabulary
    seconds : float
        Limit of one search for an exact number.
    """

    def __init__(self, arena: Arena, vocabulary: Vocabulary, *, seconds: float = SECONDS) -> None:
        self.costs = Costs(arena, is_proven=bounds_hold(arena.network, vocabulary))
        self._seconds = seconds
        self._lock = threading.Lock()
        self._has_lower_bound: bool | None = None
        self._given_up: set[int] = set()

    def cost(self, state: int) -> int:
        """Return a number of tokens that is enough from ``state``, without a search for fewer."""
        return self.costs.cost(state)[0]

    def min_tokens(self, state: int) -> MinTokens:
        """Return how many tokens suffice to finish from ``state``, the end token not counted.

        Raises
        ------
        LimitExceededError
            The lazy work of this call passed a limit, or no output is known with fewer tokens than can be counted.
        """
        until = self.costs.until()
        cost, is_exact = self.costs.cost(state, until)
        if cost >= HUGE:
            raise LimitExceededError(
                "output_tokens", HUGE - 1, "the shortest output that is known", "Ask for fewer repetitions."
            )
        if is_exact or cost >= INFINITE or state in self._given_up:
            return MinTokens(cost, is_exact)
        with self._lock:
            deadline = min(time.monotonic() + self._seconds, until)
            if self._has_lower_bound is None:
                self._has_lower_bound = necessary.prepare(self.costs)
            if not (self._has_lower_bound and self._search(state, deadline, until)):
                if len(self._given_up) >= _REMEMBERED:
                    self._given_up.clear()
                self._given_up.add(state)
        return MinTokens(*self.costs.cost(state))

    def restrict(self, state: int, address: int, remaining: int) -> bool:
        """Clear the tokens of a mask after which the output could not be finished in time.

        Parameters
        ----------
        state : int
        address : int
            Of ``n_words`` int32, changed in place: the mask of ``state``. End tokens in it stay.
        remaining : int
            Tokens left, this one and the end token included; at least 1.

        Returns
        -------
        bool
            Any token was cleared.
        """
        return self.costs.restrict(state, address, min(remaining - 2, INFINITE - 1))

    def _search(self, start: int, deadline: float, until: float) -> bool:
        """Lower the cost of ``start`` to the exact number of tokens; False where a limit came first."""
        costs = self.costs
        best, _ = costs.cost(start)
        goal = start
        depth = {start: 0}
        parent: dict[int, int] = {}
        done: dict[int, int] = {}
        heap = [(costs.necessary(start, until), 0, 0, start)]
        is_exact = True
        while heap and heap[0][0] < best:
            _, _, _, state = heapq.heappop(heap)
            here = depth[state]
            if done.get(state, INFINITE) <= here:
                continue
            if time.monotonic() > deadline or len(depth) > MOST_STATES:
                is_exact = False
                break
            done[state] = here
            try:
                rows = costs.expand(state, deadline)
            except LimitExceededError:
                # What suffices is known; that nothing shorter does isn't found in time.
                is_exact = False
                break
            for after, _, enough, least in rows.tolist():
                if here + 1 < depth.get(after, INFINITE):
                    depth[after] = here + 1
                    parent[after] = state
                    if here + 1 + enough < best:
                        best, goal = here + 1 + enough, after
                    if here + 1 + least < best:
                        heapq.heappush(heap, (here + 1 + least, enough, -here, after))
        # Costs fall by one along the path, from its end backwards, so that they hold at any moment.
        while goal != start:
            goal = parent[goal]
            costs.lower(goal, best - depth[goal], is_exact=is_exact)
        costs.lower(start, best, is_exact=is_exact)
        return is_exact
