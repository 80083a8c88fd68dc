"""May two grammars stand side by side in one, without one being read by the lexemes of the other?

Greedy terminals and priorities work among all terminals that may begin at one place. Where terminals of two
grammars meet there, one grammar could take texts from the other.
"""

from __future__ import annotations

from dataclasses import replace

from constrain.grammars.adjacency import pattern_characters
from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import Grammar, Ranges
from constrain.grammars.limits import Watch
from constrain.grammars.neighbours import begin_of, neighbours
from constrain.grammars.regex.ranges import NONE, is_disjoint, union

# Of a string in a Lark grammar without priorities; see `lark_syntax.build`.
STRING_RANK = 3


def is_lexed(grammar: Grammar) -> bool:
    """Do longest matches or priorities count?"""
    terminals = grammar.terminals
    return any(t.greedy for t in terminals) or len({t.priority for t in terminals}) > 1


def leveled(grammar: Grammar) -> Grammar:
    """Return a grammar that is not lexed so that none of its terminals yields to a string of another grammar."""
    if is_lexed(grammar):
        return grammar
    return replace(grammar, terminals=tuple(replace(t, priority=STRING_RANK) for t in grammar.terminals))


def leveled_pair(first: Grammar, second: Grammar) -> tuple[Grammar, Grammar]:
    """Return both, so that what they share does not yield."""
    if is_lexed(first) != is_lexed(second):
        return leveled(first), leveled(second)
    return first, second


def meet(first: Grammar, second: Grammar, watch: Watch) -> bool:
    """May texts of two grammars begin alike, so that lexemes of one may take those of the other?"""
    if not is_lexed(first) and not is_lexed(second):
        return False
    return not is_disjoint(begin_of(first, watch), begin_of(second, watch))


def check_concatenation(first: Grammar, second: Grammar, watch: Watch) -> None:
    """Raise where what begins the second grammar may also continue the first.

    Raises
    ------
    UnsupportedFeatureError
    """
    if not is_lexed(first) and not is_lexed(second):
        return
    onward: Ranges = NONE
    for terminal, beside in zip(first.terminals, neighbours(first, watch)[0], strict=True):
        if beside.is_last:
            onward = union(onward, pattern_characters(terminal.pattern))
            for t in beside.terminals:
                onward = union(onward, pattern_characters(first.terminals[t].pattern))
    if not is_disjoint(onward, begin_of(second, watch)):
        raise UnsupportedFeatureError(
            "+",
            reason="is not possible here: what begins the second part may continue the first, and which lexemes they "
            "are made of depends on longest matches",
            hint="Write one grammar, in which embed= gives the other part a name, or pass lexing='any'.",
        )
