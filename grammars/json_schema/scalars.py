"""Strings and numbers as terminals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    ANY_TEXT,
    EMPTY_LANGUAGE,
    Complement,
    Intersection,
    Pattern,
    Repeat,
    TerminalReference,
)
from constrain.grammars.json_schema import formats, multiples, numbers, strings, terminals
from constrain.grammars.json_schema.cursor import shortened
from constrain.grammars.json_schema.equality import exact
from constrain.grammars.json_schema.facts import FRACTION, INTEGER, NUMBER, Facts, common_multiple
from constrain.grammars.json_schema.multiples import has_multiple
from constrain.grammars.json_schema.numbers import Bound
from constrain.grammars.json_schema.string_grammar import string_grammar
from constrain.grammars.limits import Watch
from constrain.grammars.regex.back_references import without_references
from constrain.grammars.regex.build import alternate, lengths, single_characters
from constrain.grammars.regex.parse import parse_ecma

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder


def number(builder: Builder, facts: Facts) -> Alternatives:
    """Return the terminal of the numbers that ``facts`` allow, if there are any."""
    low, high = facts.low, facts.high
    kind = facts.types & NUMBER
    divisor = facts.multiple
    if divisor is not None and kind == INTEGER:
        divisor = common_multiple(divisor, Fraction(1))
        if divisor == 1:
            divisor = None
    excluded = tuple(sorted({exact(value) for value in facts.excluded if not isinstance(value, str)}))
    is_plain = builder.options.integers == "plain"
    fraction = ("none" if is_plain else "zeros") if kind == INTEGER else "any"
    if low is None and high is None and divisor is None and not (excluded or facts.not_multiples):
        if kind == NUMBER:
            return (terminals.NUMBER,)
        if kind == FRACTION:
            return (builder.terminal("fraction", multiples.NOT_WHOLE, "number that is no integer"),)
        integer = numbers.INTEGER if is_plain else numbers.ANY_INTEGER
        return (builder.terminal("integer", integer, "integer"),)
    key = ("number", low, high, fraction, kind == FRACTION, divisor, facts.not_multiples, excluded)
    known = builder.known_terminal(key)
    if known is not None:
        return (known,)
    name = "integer" if kind == INTEGER else "number"
    pattern = _bounded(low, high, excluded, fraction)
    if pattern == EMPTY_LANGUAGE or (divisor is not None and not has_multiple(divisor, low, high)):
        builder.note_empty(f"no {name} is within the bounds", facts.pointer)
        return ()
    if facts.not_multiples and kind == INTEGER:
        least, unwanted = _whole_divisors(facts, divisor)
        if any(least % number == 0 for number in unwanted):
            builder.note_empty(f"every multiple of {least} is one of what it must not be", facts.pointer)
            return ()
    is_free = low is None and high is None and not excluded
    limits = _divided(builder, facts, divisor, fraction, is_free)
    if kind == FRACTION:
        limits.append(multiples.NOT_WHOLE)
    if not is_free or divisor is None:  # multiples are written like any numbers of their kind
        limits.insert(0, pattern)
    pattern = limits[0] if len(limits) == 1 else Intersection(tuple(limits))
    if low is not None:
        name += f" {'above' if low[1] else 'from'} {low[0]}"
    if high is not None:
        name += f" {'below' if high[1] else 'to'} {high[0]}"
    if divisor is not None:
        name += f", a multiple of {divisor}"
    return (builder.terminal(key, pattern, name, facts.pointer),)


@lru_cache(maxsize=1024)
def _bounded(low: Bound, high: Bound, excluded: tuple[Decimal, ...], fraction: str) -> Pattern:
    """Return the numbers within bounds that are none of ``excluded``, which are in order."""
    if low is None and high is None and not excluded:
        return {"none": numbers.INTEGER, "zeros": numbers.ANY_INTEGER, "any": numbers.NUMBER}[fraction]
    pieces = []
    for value in excluded:
        if low is not None and low >= (value, True):
            continue
        if high is not None and (high[0], not high[1]) <= (value, False):
            break
        pieces.append(numbers.within(low, (value, True), fraction))
        low = (value, True)
    pieces.append(numbers.within(low, high, fraction))
    return alternate(piece for piece in pieces if piece != EMPTY_LANGUAGE)


def _whole_divisors(facts: Facts, divisor: Fraction | None) -> tuple[int, set[int]]:
    """Return what integers are multiples of, and what they must be no multiples of.

    A whole number is a multiple of a fraction in lowest terms where it is one of the numerator.
    """
    return 1 if divisor is None else divisor.numerator, {number.numerator for number in facts.not_multiples}


def _divided(
    builder: Builder, facts: Facts, divisor: Fraction | None, fraction: str, is_free: bool
) -> list[Pattern]:
    """Return what is demanded of multiples; exponents may follow where nothing else ``is_free``."""
    if facts.not_multiples and facts.types & NUMBER == INTEGER:
        least, unwanted = _whole_divisors(facts, divisor)
        modulus = lcm(least, *unwanted)
        if modulus <= multiples.MAX_REMAINDERS:
            wanted = frozenset(
                rest
                for rest in range(0, modulus, least)
                if not any(rest % number == 0 for number in unwanted)
            )
            return [multiples.whole_remainders(modulus, wanted, fraction)]
    limits: list[Pattern] = []
    for number in (*((divisor,) if divisor is not None else ()), *facts.not_multiples):
        if multiples.n_states(number) > multiples.MAX_STATES:
            builder.drop_or_raise("multipleOf", f"{facts.pointer}/multipleOf", "Use rounder numbers.")
            return []
    if divisor is not None:
        has_exponents = is_free and not facts.not_multiples
        limits.append(multiples.multiples(divisor, fraction, has_exponents))
    if facts.not_multiples:
        limits.append(multiples.PLAIN)
        limits += [Complement(multiples.multiples(number, "any")) for number in facts.not_multiples]
    return limits


def string(builder: Builder, facts: Facts) -> Alternatives:
    """Return the terminal of the strings that ``facts`` allow, if there are any."""
    if facts.grammars:
        found = _grammar(builder, facts)
        if found is not None:
            return (found,)
    low, high = facts.min_length, facts.max_length
    if (
        not facts.patterns
        and not facts.formats
        and low == 0
        and high is None
        and not (facts.excluded or facts.not_patterns or facts.not_formats)
    ):
        return (terminals.STRING,)
    key = string_key(facts)
    known = builder.known_terminal(key)
    if known is not None:
        return (known,)
    pattern = string_pattern(builder, facts)
    if pattern is None:
        return ()
    if pattern is strings.STRING:
        return (terminals.STRING,)
    parts = [name for name, _ in dict(facts.formats).items() if name in formats.SUPPORTED]
    parts.append("string")
    if low or high is not None:
        parts.append(f"of {low} to {'any number of' if high is None else high} characters")
    if facts.patterns:
        parts.append(f"matching {' and '.join(map(shortened, dict(facts.patterns)))}")
    if facts.not_patterns:
        parts.append(f"not matching {' or '.join(map(shortened, dict(facts.not_patterns)))}")
    return (builder.terminal(key, pattern, " ".join(parts), facts.pointer),)


def _grammar(builder: Builder, facts: Facts) -> TerminalReference | None:
    """Return what stands for the strings of a grammar; ``None`` if that is not enforced."""
    (value, pointer), *others = facts.grammars
    is_limited = (
        facts.patterns
        or facts.formats
        or facts.min_length
        or facts.max_length is not None
        or facts.not_patterns
        or facts.not_formats
        or any(isinstance(other, str) for other in facts.excluded)
    )
    if is_limited or any(other != value for other, _ in others):
        _refuse_grammar(builder, facts)
        return None
    key = ("x-grammar", repr(value))
    known = builder.known_terminal(key)
    if known is None:
        grammar = string_grammar(value, pointer, builder.watch)
        known = builder.terminal(key, strings.STRING, "string of the grammar", pointer)
        builder.inner[known.index] = grammar
    return known


def _refuse_grammar(builder: Builder, facts: Facts) -> None:
    builder.drop_or_raise(
        "x-grammar",
        facts.grammars[0][1],
        "Put all that the string must be into the grammar.",
        "cannot stand beside other restrictions of the string",
    )


def string_key(facts: Facts) -> tuple[Hashable, ...]:
    """Return what tells the strings of ``facts`` from others, listed values aside."""
    return (
        "string",
        facts.min_length,
        facts.max_length,
        *(
            tuple(dict(entries))
            for entries in (facts.patterns, facts.formats, facts.not_patterns, facts.not_formats)
        ),
        tuple(value for value in facts.excluded if isinstance(value, str)),
    )


def string_pattern(builder: Builder, facts: Facts) -> Pattern | None:
    """Return the JSON strings that ``facts`` allow, listed values aside; ``None`` if there is none."""
    low, high = facts.min_length, facts.max_length
    if facts.grammars:
        _refuse_grammar(builder, facts)
    texts = _texts(builder, facts)
    for text in texts:
        if (high is not None and text.least > high) or (text.most is not None and text.most < low):
            builder.note_empty(f"no string of the allowed length matches {text.source!r}", facts.pointer)
            return None
    limits = _formats(builder, facts)
    excluded = [value for value in facts.excluded if isinstance(value, str)]
    if not excluded and not facts.not_patterns and not facts.not_formats:
        return _string_pattern(texts, limits, low, high)
    base = _string_pattern(texts, limits, low, high)
    parts: list[Pattern] = [] if base is strings.STRING else [base]
    if excluded or not parts:
        parts.append(strings.excluding(excluded))
    parts += negative_limits(builder, facts)
    return parts[0] if len(parts) == 1 else flat_intersection(parts)


def flat_intersection(parts: Iterable[Pattern]) -> Pattern:
    """Return the intersection of ``parts``, of which those that are intersections are taken apart."""
    flat: list[Pattern] = []
    for part in parts:
        if isinstance(part, Intersection):
            flat += part.parts
        else:
            flat.append(part)
    return Intersection(tuple(flat))


def negative_limits(builder: Builder, facts: Facts) -> list[Pattern]:
    """Return the complements of what a string must not match."""
    limits: list[Pattern] = []
    for source, pointer in dict(facts.not_patterns).items():
        text = _text_or_open(builder, source, pointer, is_wanted=False)
        limits += () if text is None else (Complement(text.quoted),)
    limits += [Complement(formats.excluded_strings(name)) for name in dict(facts.not_formats)]
    return limits


def string_limits(builder: Builder, facts: Facts) -> tuple[Pattern, ...]:
    """Return what strings must match, and not match, one pattern for each demand; lengths aside."""
    return (
        *(text.quoted for text in _texts(builder, facts)),
        *_formats(builder, facts),
        *negative_limits(builder, facts),
    )


class Text(NamedTuple):
    """An expression: what it matches as characters and as JSON strings, and bounds on the characters."""

    source: str
    raw: Pattern
    quoted: Pattern
    least: int
    most: int | None


_texts_of: dict[str, Text] = {}
_MAX_texts_of = 2048


def _texts(builder: Builder, facts: Facts) -> list[Text]:
    """Return the expressions of ``facts`` that restrict anything."""
    # A dictionary keeps one pointer for each source.
    found = [_text_or_open(builder, source, pointer) for source, pointer in dict(facts.patterns).items()]
    return [text for text in found if text is not None and text.raw != ANY_TEXT]


def _text_or_open(builder: Builder, source: str, pointer: str, *, is_wanted: bool = True) -> Text | None:
    """Return what an expression means; where it has back-references, what surely holds of its texts, if that may do.

    Of what texts must not match, nothing does.
    """
    try:
        return text_of(source, builder.watch, pointer)
    except UnsupportedFeatureError as error:
        if builder.options.unsupported == "raise":
            raise
        builder.drop_or_raise(error.feature, pointer, error.hint or "", error.reason)
        if builder.options.unsupported == "ignore" or not is_wanted:
            return None
        return _text(source, without_references(source, builder.watch, pointer))


def text_of(source: str, watch: Watch, pointer: str) -> Text:
    """Return what the expression ``source``, which stands at ``pointer``, means."""
    text = _texts_of.get(source)
    if text is None:
        raw = parse_ecma(source, watch=watch, pointer=pointer)
        text = _text(source, raw)
        if len(_texts_of) >= _MAX_texts_of:
            _texts_of.clear()
        _texts_of[source] = text
    return text


def _text(source: str, raw: Pattern) -> Text:
    return Text(source, raw, strings.quoted(raw, False), *lengths(raw))


def _formats(builder: Builder, facts: Facts) -> list[Pattern]:
    found: list[Pattern] = []
    for name, pointer in dict(facts.formats).items():
        if name in formats.SUPPORTED:
            found += formats.json_strings(name)
        else:
            builder.drop_or_raise(f"format {name}", pointer, formats.UNSUPPORTED[name])
    return found


def _string_pattern(texts: list[Text], limits: list[Pattern], low: int, high: int | None) -> Pattern:
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
