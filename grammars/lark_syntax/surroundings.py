"""Is what terminals ask of the text around their lexemes always so? See `edges`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from constrain.grammars import ir
from constrain.grammars.adjacency import Neighbours, edge_characters, neighbours
from constrain.grammars.lark_syntax.edges import Side, continuing, holds, read_on
from constrain.grammars.lark_syntax.lexicon import Lexicon
from constrain.grammars.lark_syntax.terminals import Lexeme
from constrain.grammars.limits import Watch
from constrain.grammars.regex.ranges import FULL, NONE, difference, union


def check_surroundings(grammar: ir.Grammar, lexicon: Lexicon, watch: Watch) -> None:
    """Refuse terminals that ask of the text around them what is not always so."""
    following, preceding = (neighbours(grammar, watch, after=after) for after in (True, False))
    patterns = [terminal.pattern for terminal in grammar.terminals]
    for t, lexeme in lexicon.looking:
        if lexeme.edges.is_in_loop:
            _refuse(grammar.terminals[t].name, lexeme, "looks beyond the end of what it repeats")
        for after, beside in ((True, following[t]), (False, preceding[t])):
            outer = NONE
            for other in beside.terminals:
                more = FULL if other in lexicon.inner else edge_characters(patterns[other], at_end=not after)
                outer = union(outer, more)
            for condition in lexeme.edges.after if after else lexeme.edges.before:
                core = lexeme.pattern if condition.core is None else condition.core
                words = lexicon.reader.lowered(core, lexeme.module, lexeme.offset)
                if after and lexicon.options.lexing == "longest":
                    onward = union(
                        continuing(words), read_on(words, _instead(patterns, t, following, preceding))
                    )
                    outer = difference(outer, onward)
                side = Side(edge_characters(words, at_end=after), outer, beside.is_last)
                if not holds(condition, side, after=after):
                    what = "after" if after else "before"
                    _refuse(
                        grammar.terminals[t].name,
                        lexeme,
                        f"looks at the text {what} it, which may be otherwise",
                    )


def _instead(
    patterns: list[ir.Pattern],
    t: int,
    following: Sequence[Neighbours],
    preceding: Sequence[Neighbours],
) -> list[ir.Pattern]:
    """Return the patterns of terminals that may stand wherever terminal ``t`` may."""
    found = set(range(len(patterns))) - {t}
    for before in preceding[t].terminals:
        found &= following[before].terminals
    if preceding[t].is_last:
        found = {other for other in found if preceding[other].is_last}
    return [patterns[other] for other in found]


def _refuse(name: str, lexeme: Lexeme, reason: str) -> NoReturn:
    """Refuse a terminal for its lookaround."""
    raise lexeme.module.unsupported(
        name,
        lexeme.offset,
        reason + ", and that cannot be enforced",
        "Leave out the lookaround at the ends, or let other text stand beside it.",
    )
