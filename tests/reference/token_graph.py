"""The states of a spec as a graph of tokens, walked one token at a time through public calls alone."""

from __future__ import annotations

from collections import deque

import numpy as np

import constrain
from constrain.tokenizer_index.arena import Arena


class TokenGraph:
    """All states that tokens reach, or the first ``at_most`` of them, nearest first.

    Parameters
    ----------
    arena : Arena
    vocabulary : Vocabulary
    at_most : int

    Attributes
    ----------
    after : dict of int to dict of int to list of int
        For each state looked at: the states one token away, and the tokens that lead there.
    is_complete : bool
        There are no others.
    fewest : dict of int to int
        Where the graph is complete: tokens to acceptance; states without a way are missing.
    """

    def __init__(self, arena: Arena, vocabulary: constrain.Vocabulary, at_most: int) -> None:
        ends = set(vocabulary.eos_token_ids)
        self.after: dict[int, dict[int, list[int]]] = {}
        queue, seen = deque([arena.start]), {arena.start}
        while queue and len(self.after) < at_most:
            state = queue.popleft()
            found: dict[int, list[int]] = {}
            bits = np.unpackbits(arena.mask(state).view(np.uint8), bitorder="little")
            for token_id in np.flatnonzero(bits).tolist():
                if token_id not in ends:
                    found.setdefault(arena.advance(state, token_id), []).append(token_id)
            self.after[state] = found
            for after in found:
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        self.is_complete = not queue
        self.fewest = self._distances(arena) if self.is_complete else {}

    def _distances(self, arena: Arena) -> dict[int, int]:
        before: dict[int, list[int]] = {}
        for state, found in self.after.items():
            for after in found:
                before.setdefault(after, []).append(state)
        fewest = {state: 0 for state in self.after if arena.is_accepting(state)}
        queue = deque(fewest)
        while queue:
            state = queue.popleft()
            for other in before.get(state, ()):
                if other not in fewest:
                    fewest[other] = fewest[state] + 1
                    queue.append(other)
        return fewest
