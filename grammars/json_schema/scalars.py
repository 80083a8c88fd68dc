"""Strings and numbers as terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.ir import (
    ANY_TEXT,
    EMPTY_LANGUAGE,
    Intersection,
    Pattern,
    Repeat,
    TerminalReference,
)
from constrain.grammars.json_schema import formats, numbers, strings, terminals
from constrain.grammars.json_schema.cursor import shortened
from constrain.grammars.json_schema.facts import FRACTION, Facts
from constrain.grammars.json_schema.string_grammar import string_grammar
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import lengths, single_characters
from constrain.grammars.regex.parse import parse_ecma

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder


def number(builder: Builder, facts: Facts) -> Alternatives:
    """Return the terminal of the numbers that ``facts`` allow, if there are any."""
    is_integer = not facts.types & FRACTION
    is_plain = builder.options.integers == "plain"
    low, high = facts.low, facts.high
    if low is None and high is None:
        if not is_integer:
            return (terminals.NUMBER,)
        integer = numbers.INTEGER if is_plain else numbers.ANY_INTEGER
        return (builder.terminal("integer", integer, "integer"),)
    fraction = ("none" if is_plain else "zeros") if is_integer else "any"
    key = ("number", low, high, fraction)
    known = builder.known_terminal(key)
    if known is not None:
        return (known,)
    pattern = numbers.within(low, high, fraction)
    name = "integer" if is_integer else "number"
    if pattern == EMPTY_LANGUAGE:
        builder.note_empty(f"no {name} is within the bounds", facts.pointer)
        return ()
    if low is not None:
        name += f" {'above' if low[1] else 'from'} {low[0]}"
    if high is not None:
        name += f" {'below' if high[1] else 'to'} {high[0]}"
    return (builder.terminal(key, pattern, name, facts.pointer),)


def string(builder: Builder, facts: Facts) -> Alternatives:
    """Return the terminal of the strings that ``facts`` allow, if there are any."""
    if facts.grammars:
        found = _grammar(builder, facts)
        if found is not None:
            return (found,)
    low, high = facts.min_length, facts.max_length
    if not facts.patterns and not facts.formats and low == 0 and high is None:
        return (terminals.STRING,)
    sources = tuple(dict.fromkeys(source for source, _ in facts.patterns))
    names = tuple(dict.fromkeys(name for name, _ in facts.formats)) if builder.options.formats else ()
    key = ("string", low, high, sources, names)
    known = builder.known_terminal(key)
    if known is not None:
        return (known,)
    texts = _texts(builder, facts)
    for text in texts:
        if (high is not None and text.least > high) or (text.most is not None and text.most < low):
            builder.note_empty(f"no string of the allowed length matches {text.source!r}", facts.pointer)
            return ()
    limits = _formats(builder, facts)
    pattern = _string_pattern(texts, limits, low, high)
    if pattern is strings.STRING:
        return (terminals.STRING,)
    parts = [name for name in names if name in formats.SUPPORTED]
    parts.append("string")
    if low or high is not None:
        parts.append(f"of {low} to {'any number of' if high is None else high} characters")
    if sources:
        parts.append(f"matching {' and '.join(map(shortened, sources))}")
    return (builder.terminal(key, pattern, " ".join(parts), facts.pointer),)


def _grammar(builder: Builder, facts: Facts) -> TerminalReference | None:
    """Return what stands for the strings of a grammar; ``None`` if that is not enforced."""
    (value, pointer), *others = facts.grammars
    is_alone = not facts.patterns and not facts.formats and facts.min_length == 0 and facts.max_length is None
    if not is_alone or any(other != value for other, _ in others):
        builder.drop_or_raise(
            "x-grammar",
            pointer,
            "Put all that the string must be into the grammar.",
            "cannot stand beside other restrictions of the string",
        )
        return None
    key = ("x-grammar", repr(value))
    known = builder.known_terminal(key)
    if known is None:
        grammar = string_grammar(value, pointer, builder.watch)
        known = builder.terminal(key, strings.STRING, "string of the grammar", pointer)
        builder.inner[known.index] = grammar
    return known


def string_limits(builder: Builder, facts: Facts) -> tuple[Pattern, ...]:
    """Return the JSON strings that ``pattern`` and ``format`` allow, one pattern for each demand."""
    return (*(text.quoted for text in _texts(builder, facts)), *_formats(builder, facts))


class _Text(NamedTuple):
    """An expression: what it matches as characters and as JSON strings, and bounds on the characters."""

    source: str
    raw: Pattern
    quoted: Pattern
    least: int
    most: int | None


_TEXTS: dict[str, _Text] = {}
_MAX_TEXTS = 2048


def _texts(builder: Builder, facts: Facts) -> list[_Text]:
    """Return the expressions of ``facts`` that restrict anything."""
    # A dictionary keeps one pointer for each source.
    found = [_text(source, builder.watch, pointer) for source, pointer in dict(facts.patterns).items()]
    return [text for text in found if text.raw != ANY_TEXT]


def _text(source: str, watch: Watch, pointer: str) -> _Text:
    text = _TEXTS.get(source)
    if text is None:
        raw = parse_ecma(source, watch=watch, pointer=pointer)
        text = _Text(source, raw, strings.quoted(raw, False), *lengths(raw))
        if len(_TEXTS) >= _MAX_TEXTS:
            _TEXTS.clear()
        _TEXTS[source] = text
    return text


def _formats(builder: Builder, facts: Facts) -> list[Pattern]:
    found: list[Pattern] = []
    if builder.options.formats:
        for name, pointer in dict(facts.formats).items():
            if name in formats.SUPPORTED:
                found += formats.json_strings(name)
            else:
                builder.drop_or_raise(f"format {name}", pointer, formats.UNSUPPORTED[name])
    return found


def _string_pattern(texts: list[_Text], limits: list[Pattern], low: int, high: int | None) -> Pattern:
    """Return the JSON strings of ``low`` to ``high`` characters that match everything given."""
    # Lengths that an expression implies are not demanded again: conjunctions cost when decoding.
    if any(text.least >= low for text in texts):
        low = 0
    if high is not None and any(text.most is not None and text.most <= high for text in texts):
        high = None
    is_limited = low > 0 or high is not None
    if len(texts) == 1 and not limits and is_limited:
        raw = texts[0].raw
        if isinstance(raw, Repeat) and single_characters(raw.body) is not None:
            least = max(low, raw.minimum)
            most = raw.maximum if high is None else high if raw.maximum is None else min(high, raw.maximum)
            return strings.quoted(Repeat(raw.body, least, most), False)
    parts = [*(text.quoted for text in texts), *limits]
    if is_limited:
        parts.append(strings.of_length(low, high))
    if not parts:
        return strings.STRING
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts))
