"""The complement of what one schema says, as the ways in which a value fails it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema.facts import (
    ArrayPart,
    Case,
    Counted,
    Facts,
    Group,
    Json,
    Keys,
    Location,
    ObjectPart,
    Unsupported,
)
from constrain.grammars.json_schema.numbers import Bound
from constrain.grammars.json_schema.pointers import token

if TYPE_CHECKING:
    from constrain.grammars.json_schema.derived import DerivedSchemas

_HINT = "Say what is allowed instead of what is not."


def failures(
    derived: DerivedSchemas, facts: Facts, others: list[Location], where: Location
) -> list[Location]:
    """Return the schemas whose union is the complement of a schema.

    Parameters
    ----------
    derived : DerivedSchemas
    facts : Facts
        What the schema says itself.
    others : list of Location
        Schemas that it wants to hold as well.
    where : Location
        The schema's place.
    """
    found: list[Location] = []
    for number, (pointer, content) in enumerate(_ways(derived, facts, where)):
        key = ("fails", id(where.schema), number)
        schema = derived.says(key, content) if isinstance(content, Facts) else derived.together(content)
        found.append(Location(schema, pointer, where.scope, (), True))
    found += [derived.failing(other) for other in others]
    return found


def _facts(types: int, **attributes: Any) -> Facts:
    facts = Facts()
    facts.types = types
    facts.__dict__.update(attributes)
    return facts


def _ways(
    derived: DerivedSchemas, facts: Facts, where: Location
) -> Iterator[tuple[str, Facts | tuple[Location, ...]]]:
    here = where.pointer
    if facts.types != bits.ANY:
        yield here, _facts(bits.ANY & ~facts.types)
    if facts.values is not None:
        yield here, _other_values(derived, facts, where)
    if facts.excluded:
        yield here, _facts(bits.ANY, values=facts.excluded, values_at=here)
    for content in _numbers(facts):
        yield here, content
    yield from _strings(facts, here)
    for low, high, types, least, most in (
        (facts.min_length, facts.max_length, bits.STRING, "min_length", "max_length"),
        (facts.min_items, facts.max_items, bits.ARRAY, "min_items", "max_items"),
        (facts.min_properties, facts.max_properties, bits.OBJECT, "min_properties", "max_properties"),
    ):
        if low:
            yield here, _facts(types, **{most: low - 1})
        if high is not None:
            yield here, _facts(types, **{least: high + 1})
    yield from _objects(derived, facts, here)
    for member in facts.members:
        if member.low:
            none = member._replace(low=0, high=member.low - 1, absent=())
            yield member.pointer, _facts(bits.OBJECT, required=member.absent, members=(none,))
        if member.high is not None:
            more = member._replace(low=member.high + 1, high=None)
            yield member.pointer, _facts(bits.OBJECT, members=(more,))
    for array_part in facts.arrays:
        yield from _array_part(derived, array_part)
    for item in facts.contains:
        for other in _other_counts(item):
            yield item.pointer, _facts(bits.ARRAY, contains=(other,))
    for group in facts.groups:
        yield from _group(derived, group)
    for unsupported in _unsupported(facts):
        yield unsupported.pointer, _facts(unsupported.types, unsupported=(unsupported,))


def _other_values(derived: DerivedSchemas, facts: Facts, where: Location) -> Facts | tuple[Location, ...]:
    """Return what it means to be none of the values that ``facts`` list."""
    types = bits.ANY
    excluded: list[Json] = []
    containers: list[Json] = []
    for value in facts.values or ():
        if value is None:
            types &= ~bits.NULL
        elif isinstance(value, bool):
            types &= ~(bits.TRUE if value else bits.FALSE)
        elif isinstance(value, (dict, list)):
            containers.append(value)
        else:
            excluded.append(value)
    scalars = _facts(types, excluded=tuple(excluded))
    if not containers:
        return scalars
    key = ("none of", id(where.schema))
    locations = [Location(derived.says(key, scalars), facts.values_at, where.scope, ())]
    for value in containers:
        shape = derived.says(("shape", id(value)), _shape(derived, value, facts.values_at))
        locations.append(derived.failing(Location(shape, facts.values_at, where.scope, ())))
    return tuple(locations)


def _shape(derived: DerivedSchemas, value: Json, pointer: str) -> Facts:
    """Return what describes an object or array that is ``value``, and nothing else."""
    if isinstance(value, dict):
        properties = {name: derived.constant(member, pointer) for name, member in value.items()}
        part = ObjectPart(properties, {}, False, pointer, None)
        return _facts(bits.OBJECT, required=tuple(value), objects=(part,))
    prefix = [derived.constant(member, pointer) for member in value]
    items = ArrayPart(prefix, False, pointer, None, "prefixItems", "items")
    return _facts(bits.ARRAY, min_items=len(value), max_items=len(value), arrays=(items,))


def _opposite(bound: Bound) -> Bound:
    return None if bound is None else (bound[0], not bound[1])


def _numbers(facts: Facts) -> Iterator[Facts]:
    if facts.low is not None:
        yield _facts(bits.NUMBER, high=_opposite(facts.low))
    if facts.high is not None:
        yield _facts(bits.NUMBER, low=_opposite(facts.high))
    if facts.multiple is not None:
        yield _facts(bits.NUMBER, not_multiples=(facts.multiple,))
    for divisor in facts.not_multiples:
        found = _facts(bits.NUMBER)
        found.meet_multiple(divisor)
        yield found


def _strings(facts: Facts, here: str) -> Iterator[tuple[str, Facts]]:
    for entry in facts.patterns:
        yield entry[1], _facts(bits.STRING, not_patterns=(entry,))
    for entry in facts.not_patterns:
        yield entry[1], _facts(bits.STRING, patterns=(entry,))
    for entry in facts.formats:
        yield entry[1], _facts(bits.STRING, not_formats=(entry,))
    for entry in facts.not_formats:
        yield entry[1], _facts(bits.STRING, formats=(entry,))


def _says_nothing(schema: Json) -> bool:
    return schema is None or schema is True or schema == {}


def _objects(derived: DerivedSchemas, facts: Facts, here: str) -> Iterator[tuple[str, Facts]]:
    """Yield the ways in which an object fails by one of its members, or by lacking one."""
    for other in facts.forbidden:
        yield here, _facts(bits.OBJECT, required=(other,))
    cases: list[tuple[str, Case]] = []
    for part in facts.objects:
        cases += _part_cases(derived, part)
    for names in facts.names:
        cases.append((names.pointer, Case(Keys(schema=derived.failing(names)), None)))
    if len(facts.required) == 1 and not cases:
        yield here, _facts(bits.OBJECT, forbidden=facts.required)
    elif len(cases) == 1 and (name := cases[0][1].keys.name) is not None and not facts.required:
        pointer, (_, value) = cases[0]
        wrong, scope = (True, None) if value is None else (value.schema, value.scope)
        place = pointer.rpartition("/properties/")[0]
        part = ObjectPart({name: wrong}, {}, None, place, scope)
        yield pointer, _facts(bits.OBJECT, required=(name,), objects=(part,))
    elif cases or facts.required:
        counted = Counted(
            tuple(case for _, case in cases),
            1,
            None,
            cases[0][0] if cases else here,
            "not",
            0,
            facts.required,
        )
        yield here, _facts(bits.OBJECT, members=(counted,))


def _part_cases(derived: DerivedSchemas, part: ObjectPart) -> Iterator[tuple[str, Case]]:
    """Yield the members with a wrong value."""
    for name, schema in part.properties.items():
        if not _says_nothing(schema):
            pointer = f"{part.pointer}/properties/{token(name)}"
            yield pointer, Case(Keys(name), _wrong(derived, schema, pointer, part.scope))
    for source, schema in part.patterns.items():
        if not _says_nothing(schema):
            pointer = f"{part.pointer}/patternProperties/{token(source)}"
            yield pointer, Case(Keys(None, source), _wrong(derived, schema, pointer, part.scope))
    if not _says_nothing(part.additional):
        pointer = f"{part.pointer}/{part.rest_key}"
        keys = Keys(None, None, tuple(part.properties), tuple(part.patterns))
        yield pointer, Case(keys, _wrong(derived, part.additional, pointer, part.scope))


def _wrong(derived: DerivedSchemas, schema: Json, pointer: str, scope: bits.Scope) -> Location | None:
    """Return what a value is that fails ``schema``; ``None`` if every value fails."""
    return None if schema is False else derived.failing(Location(schema, pointer, scope, ()))


def _array_part(derived: DerivedSchemas, part: ArrayPart) -> Iterator[tuple[str, Facts]]:
    """Yield the ways to have a wrong item."""
    for i, schema in enumerate(part.prefix):
        if not _says_nothing(schema):
            pointer = f"{part.pointer}/{part.prefix_key}/{i}"
            wrong = derived.negated(schema, pointer, part.scope)
            one = ArrayPart(
                [*[True] * i, wrong], None, part.pointer, part.scope, part.prefix_key, part.rest_key
            )
            yield pointer, _facts(bits.ARRAY, min_items=i + 1, arrays=(one,))
    if part.rest is False:
        yield part.pointer, _facts(bits.ARRAY, min_items=len(part.prefix) + 1)
    elif not _says_nothing(part.rest):
        pointer = f"{part.pointer}/{part.rest_key}"
        wrong_item = _wrong(derived, part.rest, pointer, part.scope)
        item = Counted((Case(Keys(), wrong_item),), 1, None, pointer, part.rest_key, len(part.prefix))
        yield pointer, _facts(bits.ARRAY, contains=(item,))


def _other_counts(counted: Counted) -> Iterator[Counted]:
    if counted.low:
        yield counted._replace(low=0, high=counted.low - 1, chain=None)
    if counted.high is not None:
        yield counted._replace(low=counted.high + 1, high=None, chain=None)


def _group(derived: DerivedSchemas, group: Group) -> Iterator[tuple[str, tuple[Location, ...]]]:
    """Yield the ways in which not one branch holds, or not exactly one."""
    if group.failures is not None:
        for locations in group.failures:
            yield group.pointer, locations
        return
    yield group.pointer, tuple(derived.failing(branch) for branch in group.branches)
    if group.is_exclusive:
        for pair in combinations(group.branches, 2):
            yield group.pointer, pair


def _unsupported(facts: Facts) -> Iterator[Unsupported]:
    """Yield the keywords whose complement can't be enforced."""
    yield from facts.unsupported
    if facts.unique_at is not None:
        yield Unsupported("uniqueItems", facts.unique_at, bits.ARRAY, _HINT)
    for _, pointer in facts.grammars:
        yield Unsupported("x-grammar", pointer, bits.STRING, _HINT)
    for entry in facts.unevaluated_properties:
        yield Unsupported("unevaluatedProperties", entry.pointer, bits.OBJECT, _HINT)
    for entry in facts.unevaluated_items:
        yield Unsupported("unevaluatedItems", entry.pointer, bits.ARRAY, _HINT)
