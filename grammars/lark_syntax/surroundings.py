"""What terminals ask of the text around their lexemes: always so, or enforced while texts are read. See `edges`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NoReturn

from constrain.grammars import ir
from constrain.grammars.adjacency import edge_characters
from constrain.grammars.bits import members
from constrain.grammars.lark_syntax.edges import Condition, Side, continuing, holds, read_on, refused_bytes
from constrain.grammars.lark_syntax.lexicon import Lexicon
from constrain.grammars.lark_syntax.terminals import Lexeme
from constrain.grammars.limits import Watch
from constrain.grammars.neighbours import Neighbours, neighbours
from constrain.grammars.regex.ranges import FULL, NONE, difference, normalize


def with_surroundings(grammar: ir.Grammar, lexicon: Lexicon, watch: Watch) -> ir.Grammar:
    """Return the grammar with what its terminals ask of the text behind them.

    Raises
    ------
    UnsupportedFeatureError
        What a terminal asks is not always so, nor told by the next byte.
    """
    return _Surroundings(grammar, lexicon, watch).grammar()


class _Surroundings:
    def __init__(self, grammar: ir.Grammar, lexicon: Lexicon, watch: Watch) -> None:
        self._grammar = grammar
        self._lexicon = lexicon
        self._is_longest = lexicon.options.lexing == "longest"
        self._following, self._preceding = neighbours(grammar, watch)
        self._characters: dict[tuple[int, bool], ir.Ranges] = {}
        self._edges: dict[tuple[int, bool], ir.Ranges] = {}

    def grammar(self) -> ir.Grammar:
        terminals = list(self._grammar.terminals)
        for t, lexeme in self._lexicon.looking:
            if lexeme.edges.is_in_loop:
                self._refuse(t, lexeme, "looks beyond the end of what it repeats")
            for condition in lexeme.edges.before:
                words = self._words(lexeme, condition)
                outer = self._beside(self._preceding[t], after=False)
                side = Side(edge_characters(words, at_end=False), outer, self._preceding[t].is_last)
                if not holds(condition, side, after=False):
                    self._refuse(t, lexeme, "looks at the text before it, which may be otherwise")
            for condition in lexeme.edges.after:
                refused = self._after(t, lexeme, condition)
                if refused:
                    not_before = normalize([*terminals[t].not_before, *refused])
                    terminals[t] = replace(terminals[t], not_before=not_before)
        return replace(self._grammar, terminals=tuple(terminals))

    def _after(self, t: int, lexeme: Lexeme, condition: Condition) -> ir.Ranges:
        """Return the bytes that may not follow terminal ``t``."""
        words = self._words(lexeme, condition)
        outer = self._beside(self._following[t], after=True)
        if self._is_longest:
            outer = difference(outer, continuing(words))
        side = Side(edge_characters(words, at_end=True), outer, self._following[t].is_last)
        if holds(condition, side, after=True):
            return NONE
        if self._is_longest:
            refused = refused_bytes(condition, side) if words == lexeme.pattern else None
            if refused is not None:
                return refused
            side = replace(side, outer=difference(outer, read_on(words, self._instead(t))))
            if holds(condition, side, after=True):
                return NONE
        self._refuse(t, lexeme, "looks at the text after it, which may be otherwise")

    def _words(self, lexeme: Lexeme, condition: Condition) -> ir.Pattern:
        """Return the lexemes that a condition is about."""
        if condition.core is None:
            return lexeme.pattern
        return self._lexicon.reader.lowered(condition.core, lexeme.module, lexeme.offset)

    def _beside(self, others: Neighbours, *, after: bool) -> ir.Ranges:
        """Return the characters that may stand beside a terminal with these neighbours."""
        key = others.bits, after
        if key not in self._characters:
            sets = {self._edge(t, at_end=not after) for t in others.terminals}
            self._characters[key] = FULL if FULL in sets else normalize(chain.from_iterable(sets))
        return self._characters[key]

    def _edge(self, t: int, *, at_end: bool) -> ir.Ranges:
        """Return the characters that terminal ``t`` ends (or begins) with."""
        key = t, at_end
        if key not in self._edges:
            pattern = self._grammar.terminals[t].pattern
            is_unknown = t in self._lexicon.inner
            self._edges[key] = FULL if is_unknown else edge_characters(pattern, at_end=at_end)
        return self._edges[key]

    def _instead(self, t: int) -> Sequence[ir.Pattern]:
        """Return the patterns of terminals that may stand wherever terminal ``t`` may."""
        terminals, preceding = self._grammar.terminals, self._preceding
        bits = (1 << len(terminals)) - 1
        for before in preceding[t].terminals:
            bits &= self._following[before].bits
        found = set(members(bits)) - {t, *self._lexicon.inner}
        return [
            terminals[other].pattern for other in found if preceding[other].is_last >= preceding[t].is_last
        ]

    def _refuse(self, t: int, lexeme: Lexeme, reason: str) -> NoReturn:
        """Refuse a terminal for its lookaround."""
        raise lexeme.module.unsupported(
            self._grammar.terminals[t].name,
            lexeme.offset,
            reason + ", and that cannot be enforced",
            "Leave out the lookaround at the ends, or let other text stand beside it.",
        )
