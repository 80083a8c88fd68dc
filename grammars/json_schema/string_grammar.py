"""``x-grammar``: strings whose content is a text of a grammar.

The value of the keyword is a grammar in Lark's language or in GBNF, or an object ``{"grammar": ..., "start": ...,
"syntax": ...}``. Contents are cut into lexemes in any way: where a lexeme ends cannot be told from its spelling as
JSON, in which the next character may begin with a backslash.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from constrain.grammars.combine import without_ignored
from constrain.grammars.errors import SpecError
from constrain.grammars.ir import Grammar, Literal, RuleReference, Sequence, Terminal, TerminalReference
from constrain.grammars.json_schema import strings
from constrain.grammars.limits import Watch

_KEYS = {"grammar", "start", "syntax"}
_QUOTE = Terminal(Literal(b'"'), "'\"'")


def check(value: Any) -> str | None:
    """Return what is wrong with the value of ``x-grammar``, if anything."""
    if isinstance(value, str):
        return None
    if not isinstance(value, dict) or "grammar" not in value or not set(value) <= _KEYS:
        return "expected a grammar, or an object with 'grammar' and perhaps 'start' and 'syntax'"
    if not all(isinstance(part, str) for part in value.values()):
        return "expected strings for 'grammar', 'start' and 'syntax'"
    if value.get("syntax", "auto") not in ("auto", "lark", "gbnf"):
        return f"syntax {value['syntax']!r} is none of 'auto', 'lark' and 'gbnf'"
    return None


def string_grammar(value: Any, pointer: str, watch: Watch) -> Grammar:
    """Return the grammar of the JSON strings whose content is a text of the grammar ``value``.

    Raises
    ------
    SpecError
        The grammar is malformed; with its place in it, and the pointer.
    """
    given = {"grammar": value} if isinstance(value, str) else value
    try:
        return _quoted(_read(given, watch))
    except SpecError as error:
        error.pointer = pointer
        raise


def _read(given: dict[str, str], watch: Watch) -> Grammar:
    # These read schemas, too.
    from constrain.grammars.gbnf.build import gbnf_grammar, looks_like_gbnf
    from constrain.grammars.lark_syntax.build import LarkOptions, lark_grammar

    text, start, syntax = given["grammar"], given.get("start"), given.get("syntax", "auto")
    if syntax == "gbnf" or (syntax == "auto" and looks_like_gbnf(text)):
        return gbnf_grammar(text, start, watch=watch)
    return lark_grammar(text, start, watch=watch, options=LarkOptions(lexing="any"))


def _quoted(grammar: Grammar) -> Grammar:
    """Return the grammar of the texts of ``grammar`` as JSON strings."""
    terminals = [
        replace(t, pattern=strings.escaped(t.pattern), priority=0, greedy=False) for t in grammar.terminals
    ]
    inner = without_ignored(replace(grammar, terminals=tuple(terminals)))
    quote = TerminalReference(len(inner.terminals))
    start = "string"
    while start in inner.rules:
        start += "'"
    rules = {start: Sequence((quote, RuleReference(inner.start), quote)), **inner.rules}
    return replace(inner, terminals=(*inner.terminals, _QUOTE), rules=rules, start=start)
