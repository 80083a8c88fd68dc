"""Terminals and rules that every schema's grammar has.

The first terminals of a grammar are always the same, in the same places, so the rules for arbitrary
JSON values are constants, and what the compiler makes of these terminals can be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import (
    Alternation,
    ByteClass,
    CharacterClass,
    Choice,
    Concatenation,
    Expression,
    Ignored,
    Literal,
    Pattern,
    Repeat,
    Repetition,
    RuleReference,
    Sequence,
    Terminal,
    TerminalReference,
)
from constrain.grammars.json_schema import numbers, strings
from constrain.grammars.regex.build import is_nullable, lengths

_BLANK = ByteClass(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)))

_COMMON = (
    Terminal(Literal(b"{"), "'{'"),
    Terminal(Literal(b"}"), "'}'"),
    Terminal(Literal(b"["), "'['"),
    Terminal(Literal(b"]"), "']'"),
    Terminal(Literal(b":"), "':'"),
    Terminal(Literal(b","), "','"),
    Terminal(strings.STRING, "string"),
    Terminal(numbers.NUMBER, "number"),
    Terminal(Alternation((Literal(b"true"), Literal(b"false"))), "true or false"),
    Terminal(Literal(b"null"), "null"),
)
LEFT_BRACE, RIGHT_BRACE, LEFT_BRACKET, RIGHT_BRACKET, COLON, COMMA, STRING, NUMBER, BOOLEAN, NULL = (
    TerminalReference(i) for i in range(len(_COMMON))
)

ANY_VALUE = RuleReference("any value")
ANY_OBJECT = RuleReference("any object")
ANY_ARRAY = RuleReference("any array")

_MEMBER = Sequence((STRING, COLON, ANY_VALUE))


def _list(item: Expression) -> Repetition:
    return Repetition(Sequence((item, Repetition(Sequence((COMMA, item)), 0, None))), 0, 1)


ANY_RULES: dict[str, Expression] = {
    ANY_VALUE.name: Choice((STRING, NUMBER, BOOLEAN, NULL, ANY_OBJECT, ANY_ARRAY)),
    ANY_OBJECT.name: Sequence((LEFT_BRACE, _list(_MEMBER), RIGHT_BRACE)),
    ANY_ARRAY.name: Sequence((LEFT_BRACKET, _list(ANY_VALUE), RIGHT_BRACKET)),
}


@lru_cache(maxsize=64)
def common_terminals(blanks: Pattern | None) -> tuple[tuple[Terminal, ...], Ignored]:
    """Return the first terminals of a grammar, and what it ignores: ``blanks`` between lexemes."""
    if blanks is None:
        return _COMMON, Ignored()
    return (*_COMMON, Terminal(blanks, "whitespace")), Ignored((len(_COMMON),))


@lru_cache(maxsize=64)
def flexible(max_whitespace: int) -> Pattern:
    """Return one to ``max_whitespace`` bytes of JSON whitespace."""
    return Repeat(_BLANK, 1, max_whitespace)


def given(source: str, pattern: Pattern) -> Pattern | None:
    """Return ``pattern``, which was read from ``source``, as whitespace; ``None`` if that is never any.

    Raises
    ------
    SpecError
        It doesn't match the empty string, or matches other characters than blanks.
    """
    todo: list[Pattern] = [pattern]
    while todo:
        match todo.pop():
            case Literal(data):
                _check_blanks(source, data)
            case CharacterClass(ranges) | ByteClass(ranges):
                for low, high in ranges:
                    _check_blanks(source, range(low, high + 1))
            case Concatenation(parts) | Alternation(parts):
                todo += parts
            case Repeat(body, _, _):
                todo.append(body)
            case _:
                raise SpecError(
                    "whitespace: lookaround is not allowed here.",
                    source=source,
                    offset=0,
                )
    if not is_nullable(pattern):
        raise SpecError(
            "whitespace: the pattern must match the empty string, since blanks are optional.",
            source=source,
            offset=0,
            hint='Write it as "(...)?".',
        )
    return None if lengths(pattern)[1] == 0 else pattern


def _check_blanks(source: str, codes: Iterable[int]) -> None:
    for code in codes:
        if code not in b" \t\n\r":
            raise SpecError(
                f"whitespace: the pattern matches {chr(code)!r}, but JSON's blanks are only space, tab, "
                "line feed and carriage return.",
                source=source,
                offset=0,
                hint=r'"\s" matches more than these; write "[ \t\n\r]".',
            )
