"""Does a given value satisfy facts? Asked of the objects and arrays that ``enum`` and ``const`` list."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema import formats
from constrain.grammars.json_schema.equality import exact, is_equal
from constrain.grammars.json_schema.facts import Counted, Facts, Json, Keys, Location
from constrain.grammars.json_schema.numbers import MAX_BITS, MAX_DIGITS
from constrain.grammars.json_schema.places import item_locations, property_locations
from constrain.grammars.recursion import Task, run

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder


def satisfies(builder: Builder, value: Json, facts: Facts) -> bool:
    """Does ``value`` satisfy ``facts``?"""
    return run(_satisfies(builder, value, facts))


def _satisfies(builder: Builder, value: Json, facts: Facts) -> Task[bool]:
    for branch in builder.expand(facts):
        if (yield _satisfies_branch(builder, value, branch)):
            return True
    return False


def _satisfies_all(builder: Builder, value: Json, locations: Iterable[Location]) -> Task[bool]:
    result: bool = yield _satisfies(builder, value, builder.facts(locations))
    return result


def _satisfies_branch(builder: Builder, value: Json, facts: Facts) -> Task[bool]:
    builder.watch.step(facts.pointer)
    kind = type_of(value, facts.values_at or facts.pointer)
    if not kind & facts.types:
        return False
    if facts.values is not None and not any(is_equal(value, other) for other in facts.values):
        return False
    builder.check_supported(facts, kind)
    if kind & bits.STRING and facts.grammars:
        builder.drop_or_raise(
            "x-grammar", facts.grammars[0][1], "Leave it out.", "cannot be asked of enum, const and names"
        )
    result: bool
    if kind & bits.STRING:
        return has_length(value, facts) and value not in facts.excluded and matches_all(builder, value, facts)
    if kind & bits.OBJECT:
        result = yield _object(builder, value, facts)
        return result
    if kind & bits.ARRAY:
        result = yield _array(builder, value, facts)
        return result
    return is_within(value, facts)


def matches_all(builder: Builder, text: str, facts: Facts) -> bool:
    """Does a string match all expressions and formats of ``facts``, and none of those excluded?"""
    return (
        all(builder.matches(source, pointer, text) for source, pointer in facts.patterns)
        and not any(builder.matches(source, pointer, text) for source, pointer in facts.not_patterns)
        and all(formats.accepts_text(name, text) for name, _ in facts.formats)
        and not any(formats.may_accept_text(name, text) for name, _ in facts.not_formats)
    )


def _object(builder: Builder, value: dict[str, Json], facts: Facts) -> Task[bool]:
    if len(value) < facts.min_properties:
        return False
    if facts.max_properties is not None and len(value) > facts.max_properties:
        return False
    if not all(name in value for name in facts.required):
        return False
    for name, member in value.items():
        if not (yield _satisfies_all(builder, member, property_locations(builder, facts, name))):
            return False
        if facts.names and not (yield _satisfies_all(builder, name, facts.names)):
            return False
    for counted in facts.members:
        found = sum(name not in value for name in counted.absent)
        for name, member in value.items():
            if (yield _is_counted(builder, name, member, counted)):
                found += 1
        if not _is_enough(found, counted):
            return False
    return True


def _is_counted(builder: Builder, name: str, member: Json, counted: Counted) -> Task[bool]:
    for case in counted.cases:
        if (yield _has_key(builder, name, case.keys, counted.pointer)) and (
            case.value is None or (yield _satisfies_all(builder, member, [case.value]))
        ):
            return True
    return False


def has_key(builder: Builder, name: str, keys: Keys, pointer: str) -> bool:
    """Is ``name`` among ``keys``, which are spoken of at ``pointer``?"""
    n_open = len(builder.left_open)
    found = run(_has_key(builder, name, keys, pointer))
    if len(builder.left_open) > n_open:
        # Here a yes must be as sure as a no.
        raise UnsupportedFeatureError("propertyNames", pointer=pointer)
    return found


def _has_key(builder: Builder, name: str, keys: Keys, pointer: str) -> Task[bool]:
    if keys.name is not None:
        return name == keys.name
    if keys.pattern is not None:
        return builder.matches(keys.pattern, pointer, name)
    if keys.schema is not None:
        result: bool = yield _satisfies_all(builder, name, [keys.schema])
        return result
    return name not in keys.names and not any(
        builder.matches(source, pointer, name) for source in keys.patterns
    )


def _array(builder: Builder, value: list[Json], facts: Facts) -> Task[bool]:
    if len(value) < facts.min_items or (facts.max_items is not None and len(value) > facts.max_items):
        return False
    for i, item in enumerate(value):
        if not (yield _satisfies_all(builder, item, item_locations(builder, facts, i))):
            return False
    for counted in facts.contains:
        found = 0
        for item in value[counted.start :]:
            if counted.value is None or (yield _satisfies_all(builder, item, [counted.value])):
                found += 1
        if not _is_enough(found, counted):
            return False
    if facts.unique_at is not None:
        for i, item in enumerate(value):
            if any(is_equal(item, other) for other in value[:i]):
                return False
    return True


def _is_enough(found: int, counted: Counted) -> bool:
    return counted.low <= found and (counted.high is None or found <= counted.high)


def type_of(value: Json, pointer: str) -> int:
    """Return the bit of the type of a JSON value.

    Raises
    ------
    SpecError
        It is no JSON value.
    """
    if isinstance(value, str):
        return bits.STRING
    if isinstance(value, bool):
        return bits.TRUE if value else bits.FALSE
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise SpecError(f"an integer of more than {MAX_DIGITS:,} digits.", pointer=pointer)
        return bits.INTEGER
    if isinstance(value, float) and value - value == 0:  # finite
        return bits.INTEGER if value.is_integer() else bits.FRACTION
    if value is None:
        return bits.NULL
    if isinstance(value, list):
        return bits.ARRAY
    if isinstance(value, dict):
        return bits.OBJECT
    raise not_json(value, pointer)


def may_be(builder: Builder, value: Json, facts: Facts) -> bool:
    """May ``value``, which ``facts`` list, satisfy them? Formats, and what is inside it, are not looked at."""
    if not type_of(value, facts.values_at) & facts.types:
        return False
    if isinstance(value, str):
        return (
            has_length(value, facts)
            and value not in facts.excluded
            and all(builder.matches(source, pointer, value) for source, pointer in facts.patterns)
            and not any(builder.matches(source, pointer, value) for source, pointer in facts.not_patterns)
        )
    if isinstance(value, list):
        return facts.min_items <= len(value) and (facts.max_items is None or len(value) <= facts.max_items)
    if isinstance(value, dict):
        return all(name in value for name in facts.required) and not any(
            name in value for name in facts.forbidden
        )
    return is_within(value, facts)


def has_length(text: str, facts: Facts) -> bool:
    """Has a string an allowed length?"""
    return facts.min_length <= len(text) and (facts.max_length is None or len(text) <= facts.max_length)


def has_number_keywords(facts: Facts) -> bool:
    """Is anything known that only numbers may fail?"""
    return (
        facts.low is not None
        or facts.high is not None
        or facts.multiple is not None
        or bool(facts.not_multiples or facts.excluded)
    )


def is_within(value: Json, facts: Facts) -> bool:
    """Does a scalar that is no string satisfy the keywords of numbers?"""
    if isinstance(value, bool) or value is None:
        return True
    number = exact(value)
    low, high = facts.low, facts.high
    if low is not None and (number < low[0] or (number == low[0] and low[1])):
        return False
    if high is not None and (number > high[0] or (number == high[0] and high[1])):
        return False
    if any(not isinstance(other, str) and number == exact(other) for other in facts.excluded):
        return False
    if facts.multiple is not None and Fraction(number) % facts.multiple:
        return False
    return all(Fraction(number) % divisor for divisor in facts.not_multiples)


def not_json(value: object, pointer: str) -> SpecError:
    """Return the error about a value that JSON doesn't have."""
    return SpecError(f"{value!r} is not a JSON value.", pointer=pointer)
