"""All values that satisfy facts, where they are few."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema.equality import is_equal
from constrain.grammars.json_schema.facts import Facts, Json, Location
from constrain.grammars.json_schema.instances import satisfies
from constrain.grammars.json_schema.places import item_locations, property_locations
from constrain.grammars.recursion import Task, run

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder

_DEPTH = 8
_ABSENT = object()


def finite_values(builder: Builder, locations: list[Location], most: int) -> list[Json] | None:
    """Return the values that satisfy schemas, all different; ``None`` if there may be more than ``most``."""
    found: list[Json] | None = run(_of_locations(builder, locations, most, 0))
    return found


def _of_locations(
    builder: Builder, locations: list[Location], most: int, depth: int
) -> Task[list[Json] | None]:
    found: list[Json] = []
    if depth > _DEPTH:
        return None
    for branch in builder.expand(builder.facts(locations)):
        several: list[Json] | None = yield _of_branch(builder, branch, most, depth)
        if several is None:
            return None
        found += several
        if len(found) > 2 * most:
            return None
    # Values are compared each with each, so their number is looked at twice.
    different: list[Json] = []
    for value in found:
        builder.watch.step("values of an array", 1 + len(different) // 8)
        if not any(is_equal(value, other) for other in different):
            different.append(value)
    return different if len(different) <= most else None


def _of_branch(builder: Builder, facts: Facts, most: int, depth: int) -> Task[list[Json] | None]:
    if facts.values is not None:
        candidates = list(facts.values)
    else:
        candidates = []
        if facts.types & (bits.STRING | bits.FRACTION):
            return None
        scalars = ((None, bits.NULL), (False, bits.FALSE), (True, bits.TRUE))
        candidates += [value for value, bit in scalars if facts.types & bit]
        if facts.types & bits.INTEGER:
            if facts.low is None or facts.high is None or facts.high[0] - facts.low[0] > most:
                return None
            candidates += range(ceil(facts.low[0]), floor(facts.high[0]) + 1)
        for bit, several_of in ((bits.ARRAY, _arrays), (bits.OBJECT, _objects)):
            if facts.types & bit:
                several: Iterable[Json] | None = yield several_of(builder, facts, most, depth)
                if several is None:
                    return None
                candidates += several
    return [value for value in candidates if satisfies(builder, value, facts)]


def _arrays(builder: Builder, facts: Facts, most: int, depth: int) -> Task[list[Json] | None]:
    if facts.max_items is None or facts.max_items > most:
        return None
    found: list[Json] = []
    parts: list[list[Json]] = []
    n = 1
    for length in range(facts.max_items + 1):
        if length >= facts.min_items:
            found += [list(items) for items in product(*parts)]
        if length < facts.max_items:
            here = item_locations(builder, facts, length)
            items: list[Json] | None = yield _of_locations(builder, here, most, depth + 1)
            if items is None:
                return None
            parts.append(items)
            n *= len(items)
            if not n:
                break
            if n > most or len(found) > most:
                return None
    return found


def _objects(builder: Builder, facts: Facts, most: int, depth: int) -> Task[list[Json] | None]:
    if not any(part.additional is False and not part.patterns for part in facts.objects):
        return None
    names = dict.fromkeys(name for part in facts.objects for name in part.properties)
    parts: list[list[Json]] = []
    n = 1
    for name in names:
        here = property_locations(builder, facts, name)
        values: list[Json] | None = yield _of_locations(builder, here, most, depth + 1)
        if values is None:
            return None
        parts.append(values if name in facts.required else [*values, _ABSENT])
        n *= len(parts[-1])
        if n > most:
            return None
    return [
        {name: value for name, value in zip(names, members, strict=True) if value is not _ABSENT}
        for members in product(*parts)
    ]
