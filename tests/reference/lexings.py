"""How the documentation says that a text is split into lexemes, for grammars given as a list of sentences.

A sentence is a sequence of terminals. There is no parser here: a place in a text is the set of all beginnings of
sentences that were read so far, so what may come next is looked up in the list. The text is cut by trying
every end of every lexeme.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from constrain.grammars import ir
from tests.reference import patterns

Beginning: TypeAlias = tuple[int, ...]
# A beginning of a sentence, and how many ignored lexemes were read since its last terminal; -1: nothing was read.
Place: TypeAlias = frozenset[tuple[Beginning, int]]


class Lexings:
    """Texts of ``sentences``.

    Parameters
    ----------
    terminals : sequence of Terminal
    sentences : sequence of tuple of int
    ignored : Ignored
    """

    def __init__(
        self, terminals: Sequence[ir.Terminal], sentences: Sequence[Beginning], ignored: ir.Ignored
    ) -> None:
        self.terminals = terminals
        self.sentences = frozenset(sentences)
        self.ignored = ignored
        self._begun = cache(lambda t, data: patterns.is_prefix(terminals[t].pattern, data))
        self._matched = cache(lambda t, data: patterns.matches(terminals[t].pattern, data))

    def accepts(self, text: bytes) -> bool:
        """Is ``text`` a whole text?"""
        return self._accepts(text, frozenset({((), -1)}))

    def _next(self, beginning: Beginning) -> set[int]:
        n = len(beginning)
        return {s[n] for s in self.sentences if s[:n] == beginning and len(s) > n}

    def _may_end(self, place: Place) -> bool:
        return any(b in self.sentences and (n <= 0 or self.ignored.trailing) for b, n in place)

    def _may_ignore(self, beginning: Beginning, n_ignored: int) -> bool:
        if n_ignored < 0 and not self.ignored.leading:
            return False
        if self.ignored.most is not None and max(0, n_ignored) >= self.ignored.most:
            return False
        return bool(self._next(beginning)) or (self.ignored.trailing and beginning in self.sentences)

    def _accepts(self, text: bytes, place: Place) -> bool:
        if not text:
            return self._may_end(place)
        expected = set[int]()
        for beginning, n_ignored in place:
            expected |= self._next(beginning)
            if self._may_ignore(beginning, n_ignored):
                expected |= set(self.ignored.terminals)
        for n in range(1, len(text) + 1):
            matched = {t for t in expected if self._matched(t, text[:n])}
            if not matched:
                continue
            top = max(self.terminals[t].priority for t in matched)
            read = {t for t in matched if self.terminals[t].priority == top}
            goes_on = n < len(text) and (
                any(self._begun(t, text[: n + 1]) for t in expected)
                or any(low <= text[n] <= high for t in matched for low, high in self.terminals[t].not_before)
            )
            if goes_on and any(self.terminals[t].greedy for t in read):
                continue
            after: set[tuple[Beginning, int]] = set()
            for beginning, n_ignored in place:
                after |= {((*beginning, t), 0) for t in read & self._next(beginning)}
                if read & set(self.ignored.terminals) and self._may_ignore(beginning, n_ignored):
                    after.add((beginning, max(0, n_ignored) + 1))
            if self._accepts(text[n:], frozenset(after)):
                return True
        return False
