"""What a network needs where indentation counts: a measuring newline, checked rules, and tables for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.ir import Grammar, Indentation
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import empty_fragment
from constrain.tokenizer_index.indentation import between_brackets, check_order, check_terminals, inside_rules
from constrain.tokenizer_index.lexeme import Lexeme
from constrain.tokenizer_index.newline import Measuring, measuring
from constrain.tokenizer_index.realisable import Marks
from constrain.tokenizer_index.transition_network import Rules

if TYPE_CHECKING:
    from constrain.tokenizer_index.network import Network


@dataclass(frozen=True, slots=True, eq=False)
class LineTables:
    """Arrays and numbers of a network whose indentation counts.

    Parameters
    ----------
    newline, indent, dedent : int
        Terminals.
    inner_newline : int
        The newline as ignored text between brackets; -1 if there are no brackets.
    tab : int
        A tab goes to the next multiple of this.
    is_spanning : bool
        A newline directly behind another one is read as part of it.
    flags : (n_positions,) int32
        TAIL, RESET and SAME_END of positions of the newline; see `newline`.
    is_inside : (n_rules,) int32
        1 for rules between brackets.
    """

    newline: int
    indent: int
    dedent: int
    inner_newline: int
    tab: int
    is_spanning: bool
    flags: NDArray[np.int32]
    is_inside: NDArray[np.int32]


class LineRules:
    """A grammar whose indentation counts, on its way to a network.

    Attributes
    ----------
    grammar : Grammar
        What is between brackets stands in rules of its own; the newline is there ignored, as a terminal more.
    """

    def __init__(self, grammar: Grammar, indentation: Indentation, watch: Watch) -> None:
        check_terminals(grammar, indentation)
        self.indentation = indentation
        self._watch = watch
        self._measuring = Measuring(empty_fragment(nullable=False), [], 0, 0)
        self._is_spanning = False
        self._inner_newline = -1
        self._inside: set[str] = set()
        if indentation.brackets:
            grammar, self._inside = between_brackets(grammar, indentation, watch)
            self._inner_newline = len(grammar.terminals)
            terminals = (*grammar.terminals, grammar.terminals[indentation.newline])
            ignored = (*grammar.ignored.terminals, self._inner_newline)
            grammar = replace(
                grammar, terminals=terminals, ignored=replace(grammar.ignored, terminals=ignored)
            )
        self.grammar = grammar

    def is_mark(self, terminal: int) -> bool:
        """Has a terminal no text?"""
        return terminal in (self.indentation.indent, self.indentation.dedent)

    def measure(self, newline: Lexeme) -> Lexeme:
        """Return the newline's lexeme that measures widths."""
        terminal = self.grammar.terminals[self.indentation.newline]
        self._plain = newline
        self._measuring = measuring(terminal, newline, self._watch)
        return newline._replace(literals=[(False, self._measuring.fragment)])

    def check(self, rules: Rules) -> None:
        """Raise where the rules ask for what no text can have."""
        self._is_spanning = not self._measuring.fragment.first & ~self._measuring.onward
        check_order(rules, self.indentation, is_spanning=self._is_spanning, pointers=self.grammar.pointers)

    def marks(self, rules: Rules) -> Marks:
        """Return what is special about terminals and rules, for `realisable`."""
        return Marks(
            newline=self.indentation.newline,
            marks=frozenset((self.indentation.indent, self.indentation.dedent)),
            inner_newline=self._inner_newline,
            is_inside=inside_rules(rules, self._inside),
        )

    def priorities(self, priority: Sequence[int]) -> list[int]:
        """Return priorities with which a newline comes before all others of its own, and brackets next."""
        found = [4 * p for p in priority]
        found[self.indentation.newline] += 2
        for t in {t for pair in self.indentation.brackets for t in pair}:
            found[t] += 1
        return found

    def unmeasured(self, lexemes: Sequence[Lexeme | None]) -> list[Lexeme | None]:
        """Return the lexemes with the newline's as it was: widths don't matter to what may follow."""
        found = list(lexemes)
        if found[self.indentation.newline] is not None:
            found[self.indentation.newline] = self._plain
        return found

    def longest(self) -> list[int]:
        """Return the terminals that are read as far as they go."""
        return [t for t in (self.indentation.newline, self._inner_newline) if t >= 0]

    def complete(self, network: Network, rules: Rules, lexemes: list[Lexeme | None]) -> Network:
        """Return the network with what lines need."""
        newline = self.indentation.newline
        flags = np.zeros(network.n_positions, np.int32)
        place = int(network.starts[network.start_offsets[newline]]) if lexemes[newline] is not None else 0
        flags[place : place + len(self._measuring.flags)] = self._measuring.flags
        ignored = network.ignored_terminals
        goes_on = any(
            (self._measuring.onward | self._measuring.onward_to_the_end) & fragment.first
            for t, lexeme in enumerate(lexemes)
            if lexeme is not None and t != newline and not network.ignored[t]
            for is_negative, fragment in lexeme.literals
            if not is_negative
        )
        tables = LineTables(
            newline=newline,
            indent=self.indentation.indent,
            dedent=self.indentation.dedent,
            inner_newline=self._inner_newline,
            tab=self.indentation.tab,
            is_spanning=self._is_spanning,
            flags=flags,
            is_inside=np.array(inside_rules(rules, self._inside), np.int32),
        )
        return replace(
            network,
            ignored_terminals=ignored[ignored != self._inner_newline],
            # A line that begins with what a newline goes on with can't be read.
            is_lexing_proven=network.is_lexing_proven and not goes_on,
            lines=tables,
        )
