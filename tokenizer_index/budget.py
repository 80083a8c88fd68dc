"""Fewest tokens to finish, and masks that keep an output within a budget of tokens."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.errors import LimitExceededError
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.vocabulary import Vocabulary

_AT_MOST = 20_000


class MinTokens(int):
    """A number of tokens that is enough to finish, the end token not counted.

    Parameters
    ----------
    value : int
    is_exact : bool
        No fewer are enough.
    """

    is_exact: bool

    def __new__(cls, value: int, is_exact: bool) -> MinTokens:
        """Make one; immutable like any int."""
        self = super().__new__(cls, value)
        self.is_exact = is_exact
        return self

    def __repr__(self) -> str:
        return f"MinTokens({int(self)}, is_exact={self.is_exact})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MinTokens, (int(self), self.is_exact)


class Budget:
    """Completion costs of the states of one arena.

    Parameters
    ----------
    arena : Arena
    vocabulary : Vocabulary
    """

    def __init__(self, arena: Arena, vocabulary: Vocabulary) -> None:
        self._arena = arena
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._costs: dict[int, int] = {}
        self._after: dict[int, dict[int, list[int]]] = {}

    def min_tokens(self, state: int) -> MinTokens:
        """Return how many tokens suffice to finish from ``state``."""
        with self._lock:
            return MinTokens(self._cost(state), True)

    def restrict(self, state: int, row: NDArray[np.int32], remaining: int) -> bool:
        """Clear the tokens after which the output could not be finished in time; True if there were any."""
        cleared = False
        with self._lock:
            for after, tokens in self._successors(state).items():
                if self._cost(after) > remaining - 2:
                    for token in tokens:
                        row[token >> 5] &= ~np.int32(np.uint32(1 << (token & 31)).view(np.int32))
                    cleared = True
        return cleared

    def _successors(self, state: int) -> dict[int, list[int]]:
        found = self._after.get(state)
        if found is None:
            found = self._after[state] = {}
            mask = self._arena.mask(state)
            bits = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            ends = set(self._vocabulary.eos_token_ids)
            for token in bits.tolist():
                if token not in ends:
                    found.setdefault(self._arena.advance(state, token), []).append(token)
        return found

    def _cost(self, state: int) -> int:
        known = self._costs.get(state)
        if known is not None:
            return known
        seen, layer, depth = {state}, [state], 0
        while True:
            for s in layer:
                if self._arena.is_accepting(s):
                    self._costs[state] = depth
                    return depth
            layer = sorted({a for s in layer for a in self._successors(s)} - seen)
            seen.update(layer)
            depth += 1
            if not layer or len(seen) > _AT_MOST:
                raise LimitExceededError("liveness", _AT_MOST, "a search for the end of an output")
