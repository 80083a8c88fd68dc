"""Constants (``enum`` and ``const``) as terminals and rules.

Scalars of one list become one terminal. Numbers are written as in the schema, and as plain integers if
they are whole; strings in canonical spelling; objects with their keys in the schema's order, or in any.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    Alternation,
    Expression,
    Intersection,
    Literal,
    Pattern,
    RuleReference,
    Sequence,
    TerminalReference,
)
from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema.cursor import shortened
from constrain.grammars.json_schema.facts import Facts, Json
from constrain.grammars.json_schema.instances import (
    has_length,
    has_number_keywords,
    is_within,
    matches_all,
    not_json,
    satisfies,
    type_of,
)
from constrain.grammars.json_schema.scalars import string_key, string_limits
from constrain.grammars.json_schema.strings import canonical, has_surrogate, quoted
from constrain.grammars.json_schema.terminals import (
    COLON,
    COMMA,
    LEFT_BRACE,
    LEFT_BRACKET,
    RIGHT_BRACE,
    RIGHT_BRACKET,
)
from constrain.grammars.json_schema.unordered import Element, unordered_machine

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder

_MANY = 4  # more constants than these aren't listed in a terminal's name
_MOST_ASKED = 64  # questions whether a constant matches an expression; for more there is a conjunction


def constants(builder: Builder, facts: Facts) -> Alternatives:
    """Return the values of ``facts`` that its other keywords allow."""
    values = facts.values or ()
    if facts.types & bits.STRING and all(type(value) is str for value in values):
        strings: list[Json] = list(values)
        scalars: list[Json] = []
        containers: list[Json] = []
    else:
        allowed = [value for value in values if type_of(value, facts.values_at) & facts.types]
        strings = [value for value in allowed if isinstance(value, str)]
        containers = [value for value in allowed if isinstance(value, (dict, list))]
        scalars = [value for value in allowed if not isinstance(value, (str, dict, list))]
    if strings and (facts.min_length or facts.max_length is not None or facts.excluded):
        strings = [text for text in strings if has_length(text, facts) and text not in facts.excluded]
    if has_number_keywords(facts):
        scalars = [value for value in scalars if is_within(value, facts)]
    found: list[TerminalReference | RuleReference] = []
    if strings and _has_expressions(facts):
        matching = _matching(builder, strings, facts)
        limits = string_limits(builder, facts) if matching is None else ()
        if matching is not None:
            strings = matching
        elif limits:
            pattern = Intersection((_strings(strings, facts.values_at), *limits))
            key = ("constants within", tuple(strings), string_key(facts))
            found.append(builder.terminal(key, pattern, _name(strings), facts.values_at))
            strings = []
    if strings or scalars:
        found.append(_scalars(builder, strings, scalars, facts.values_at))
    for value in containers:
        is_limited = facts.has_object_keywords if isinstance(value, dict) else facts.has_array_keywords
        if not is_limited or satisfies(builder, value, facts):
            found.append(container(builder, value, facts.values_at))
    if not found:
        builder.note_empty("no value is left that every keyword allows", facts.values_at)
    return tuple(found)


def _has_expressions(facts: Facts) -> bool:
    return bool(facts.patterns or facts.formats or facts.not_patterns or facts.not_formats)


def _matching(builder: Builder, strings: list[Json], facts: Facts) -> list[Json] | None:
    """Return those of a few strings that expressions and formats allow; ``None`` if they are many."""
    n_limits = sum(map(len, (facts.patterns, facts.formats, facts.not_patterns, facts.not_formats)))
    if len(strings) * n_limits > _MOST_ASKED:
        return None
    return [text for text in strings if matches_all(builder, text, facts)]


def listed_strings(builder: Builder, facts: Facts) -> Pattern | None:
    """Return the JSON strings among the values of ``facts``, in every spelling; ``None`` if there is none."""
    texts = [
        value
        for value in facts.values or ()
        if isinstance(value, str) and not has_surrogate(value) and satisfies(builder, value, facts)
    ]
    return Alternation(tuple(quoted(Literal(text.encode()), False) for text in texts)) if texts else None


def merge_constants(builder: Builder, several: list[Facts]) -> list[Facts]:
    """Replace those of ``several`` that only list scalars by one that lists them all.

    Branches such as ``{"const": "a", "title": ...}`` become one terminal that way.
    """
    if len(several) < 2:
        return several
    others = []
    values: list[Json] = []
    first: Facts | None = None
    for facts in several:
        listed = _listed_scalars(builder, facts)
        if listed is None:
            others.append(facts)
            continue
        first = first or facts
        values += listed
    if first is None:
        return several
    merged = Facts()
    merged.values, merged.values_at = tuple(values), first.values_at
    merged.key, merged.pointer = first.key, first.pointer
    return [*others, merged]


def _listed_scalars(builder: Builder, facts: Facts) -> list[Json] | None:
    """Return the values that ``facts`` allow, if they list some scalars and say little else of them."""
    has_limits = (
        has_number_keywords(facts)
        or facts.min_length
        or facts.max_length is not None
        or facts.grammars
        or facts.unsupported
    )
    if facts.values is None or has_limits or any(isinstance(value, (dict, list)) for value in facts.values):
        return None
    allowed = [value for value in facts.values if type_of(value, facts.values_at) & facts.types]
    if _has_expressions(facts):
        strings = _matching(builder, [value for value in allowed if isinstance(value, str)], facts)
        if strings is None:
            return None
        return [*strings, *(value for value in allowed if not isinstance(value, str))]
    return allowed


def types_of(facts: Facts) -> int:
    """Return the bits of the types of the values that ``facts`` list."""
    found = 0
    for value in facts.values or ():
        found |= type_of(value, facts.values_at)
    return found


def _scalars(builder: Builder, strings: list[Json], scalars: list[Json], pointer: str) -> TerminalReference:
    """Return the terminal of some strings, numbers, booleans and null."""
    any_integers = builder.options.integers == "any"
    spellings = tuple(
        dict.fromkeys(spelling for value in scalars for spelling in scalar_spellings(value, any_integers))
    )
    key = ("constants", tuple(strings), spellings)
    reference = builder.known_terminal(key)
    if reference is not None:
        return reference
    parts = _strings(strings, pointer).parts + tuple(Literal(spelling.encode()) for spelling in spellings)
    pattern = parts[0] if len(parts) == 1 else Alternation(parts)
    return builder.terminal(key, pattern, _name([*strings, *scalars]), pointer)


def _strings(strings: list[Json], pointer: str) -> Alternation:
    """Return the spellings of some strings."""
    for text in strings:
        if has_surrogate(text):
            raise UnsupportedFeatureError(
                "lone surrogate",
                pointer=pointer,
                reason=f"(in {text!r}) cannot be written in UTF-8",
                hint="Remove the value.",
            )
    return Alternation(tuple(map(canonical, dict.fromkeys(strings))))


def scalar_spellings(value: Json, any_integers: bool) -> list[str]:
    """Return how a number, a boolean or null is written."""
    if value is None or isinstance(value, bool):
        return [json.dumps(value)]
    if isinstance(value, int):
        digits = f"{Decimal(value):f}"
        return [digits, f"{digits}.0"] if any_integers else [digits]
    spelling = json.dumps(value)
    if value.is_integer():
        # The decimal that is written, not the binary number next to it: 1e300 is a 1 and 300 zeros.
        digits = f"{Decimal(repr(value)):f}".partition(".")[0]
        return [digits if digits != "-0" else "0", spelling]
    return [spelling]


def container(builder: Builder, value: Json, pointer: str) -> RuleReference:
    """Return the rule of one object or array. Parts that are containers themselves become rules too."""
    name = builder.rule_name(pointer)
    todo = [(name, value, 1)]
    while todo:
        rule, node, depth = todo.pop()
        builder.watch.step(pointer, 1 + len(node))
        builder.watch.at_most("nesting", depth, pointer)
        is_object = isinstance(node, dict)
        members: list[Element] = []
        parts: list[TerminalReference | RuleReference] = [LEFT_BRACE if is_object else LEFT_BRACKET]
        for i, (key, member) in enumerate(node.items() if is_object else enumerate(node)):
            if i:
                parts.append(COMMA)
            if is_object:
                if not isinstance(key, str):
                    raise not_json(key, pointer)
                parts += [_scalars(builder, [key], [], pointer), COLON]
            found: TerminalReference | RuleReference
            if type_of(member, pointer) & (bits.ARRAY | bits.OBJECT):
                inner = builder.rule_name(pointer)
                found = RuleReference(inner)
                todo.append((inner, member, depth + 1))
            elif isinstance(member, str):
                found = _scalars(builder, [member], [], pointer)
            else:
                found = _scalars(builder, [], [member], pointer)
            parts.append(found)
            if is_object:
                members.append(Element(_scalars(builder, [key], [], pointer), (found,), True, True))
        parts.append(RIGHT_BRACE if is_object else RIGHT_BRACKET)
        body: Expression = Sequence(tuple(parts))
        if len(members) > 1 and builder.options.property_order == "any":
            body = unordered_machine(members, 0, None)
        builder.set_rule(rule, body, pointer)
    return RuleReference(name)


def _name(values: list[Json]) -> str:
    shown = [shortened(json.dumps(value, ensure_ascii=False)) for value in values[:_MANY]]
    more = len(values) - len(shown)
    return " or ".join([*shown, f"{more} more constants"] if more else shown)
