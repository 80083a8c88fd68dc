"""The mask by brute force: every token's bytes stepped one at a time, then a search for a completion."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from constrain.grammars import ir
from tests.reference.grammar import DEAD, ReferenceGrammar, State
from tests.reference.indented import IndentedGrammar
from tests.reference.patterns import UnknownError

__all__ = ["ReferenceEngine", "UnknownError"]


class ReferenceEngine:
    """Token masks of ``grammar`` for a vocabulary.

    Parameters
    ----------
    grammar : Grammar
    tokens : sequence of bytes or None
        As in `Vocabulary.from_tokens`; empty tokens and ``None`` spell nothing.
    eos_token_ids : collection of int
        Allowed exactly where the text may end, whatever they spell.
    at_most : int
        States one search may look at before it raises `UnknownError`.
    """

    def __init__(
        self,
        grammar: ir.Grammar,
        tokens: Sequence[bytes | None],
        eos_token_ids: Collection[int],
        *,
        at_most: int = 2000,
    ) -> None:
        self.language = ReferenceGrammar(grammar) if grammar.indentation is None else IndentedGrammar(grammar)
        self.tokens = list(tokens)
        self.eos_token_ids = frozenset(eos_token_ids)
        self.at_most = at_most
        self.spellings: dict[bytes, list[int]] = {}
        for token_id, data in enumerate(tokens):
            if data and token_id not in self.eos_token_ids:
                self.spellings.setdefault(data, []).append(token_id)
        self.has_all_bytes = all(bytes([b]) in self.spellings for b in range(256))
        self._viable: dict[State, bool] = {DEAD: False}

    @property
    def start(self) -> State:
        """The state before the first token."""
        return self.language.start

    def advance(self, state: State, token_id: int) -> State:
        """Return the state after a token, `DEAD` where it has no spelling or cannot be read."""
        data = self.tokens[token_id] if 0 <= token_id < len(self.tokens) else None
        if not data or token_id in self.eos_token_ids:
            return DEAD
        return self.language.steps(state, data)

    def after(self, token_ids: Iterable[int]) -> State:
        """Return the state after ``token_ids``."""
        state = self.start
        for token_id in token_ids:
            state = self.advance(state, token_id)
        return state

    def surviving(self, state: State) -> set[int]:
        """Return the tokens whose bytes can be read, whatever comes of it."""
        return {
            token_id
            for data, token_ids in self.spellings.items()
            if self.language.steps(state, data)
            for token_id in token_ids
        }

    def is_viable(self, state: State) -> bool:
        """Does some sequence of tokens lead on to acceptance?

        Raises
        ------
        UnknownError
        """
        if state not in self._viable:
            if self.has_all_bytes:
                viable = self.language.is_viable(state, at_most=self.at_most)
                if viable is None:
                    raise UnknownError
                self._viable[state] = viable
            else:
                self._search(state)
        return self._viable[state]

    def _search(self, state: State) -> None:
        """Decide about ``state``, and about all that led to the answer."""
        parent: dict[State, State | None] = {state: None}
        queue = deque([state])
        while queue:
            current: State | None = queue.popleft()
            assert current is not None
            if self._viable.get(current, False) or self.language.is_accepting(current):
                while current is not None:
                    self._viable[current] = True
                    current = parent[current]
                return
            if len(parent) > self.at_most:
                raise UnknownError
            for data in self.spellings:
                after = self.language.steps(current, data)
                if after not in parent and self._viable.get(after, True):
                    parent[after] = current
                    queue.append(after)
        self._viable.update(dict.fromkeys(parent, False))

    def mask(self, state: State) -> set[int]:
        """Return the allowed tokens: those after which some completion exists.

        Raises
        ------
        UnknownError
        """
        allowed = set(self.eos_token_ids) if self.language.is_accepting(state) else set()
        for data, token_ids in self.spellings.items():
            if self.is_viable(self.language.steps(state, data)):
                allowed.update(token_ids)
        return allowed

    def fewest_tokens(self, state: State) -> int | None:
        """Return the least number of tokens from ``state`` to acceptance; ``None`` if there is no way.

        The end-of-sequence token is not counted.

        Raises
        ------
        UnknownError
        """
        seen, layer, n = {state}, [state], 0
        while layer:
            if any(self.language.is_accepting(s) for s in layer):
                return n
            if len(seen) > self.at_most:
                raise UnknownError
            after = {self.language.steps(s, data) for s in layer for data in self.spellings}
            layer = sorted(after - seen - {DEAD}, key=id)
            seen |= after
            n += 1
        return None

    def reachable(self, *, at_most: int) -> list[tuple[list[int], State]]:
        """Return up to ``at_most`` distinct viable states, each with tokens that lead there, nearest first.

        Raises
        ------
        UnknownError
        """
        if not self.is_viable(self.start):
            return []
        found: list[tuple[list[int], State]] = [([], self.start)]
        seen = {self.start}
        for token_ids, state in found:
            for data, ids in self.spellings.items():
                after = self.language.steps(state, data)
                if len(found) < at_most and after not in seen and self.is_viable(after):
                    seen.add(after)
                    found.append(([*token_ids, ids[0]], after))
        return found
