"""``unevaluatedProperties`` and ``unevaluatedItems``, once it is settled which schemas hold.

What a schema evaluates is then a matter of names, patterns and places, so the keyword becomes a part like
``additionalProperties``: of all properties that no part seen by its schema speaks of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.grammars.json_schema.facts import ArrayPart, Facts, Json, Location, ObjectPart, Unevaluated

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder


def resolved(builder: Builder, facts: Facts) -> Facts:
    """Return ``facts``, which have no groups, with parts in the place of what is unevaluated."""
    if not (facts.unevaluated_properties or facts.unevaluated_items):
        return facts
    found = facts.copy()
    found.unevaluated_properties = found.unevaluated_items = ()
    objects = (_object_part(facts, one) for one in facts.unevaluated_properties)
    arrays = (_array_part(builder, facts, one) for one in facts.unevaluated_items)
    found.objects += tuple(part for part in objects if part is not None)
    found.arrays += tuple(part for part in arrays if part is not None)
    return found


def _is_seen(chain: tuple[int, ...] | None, by: Unevaluated) -> bool:
    return chain is not None and by.owner in chain


def _others(several: tuple[Unevaluated, ...], one: Unevaluated) -> bool:
    """Does a schema within that of ``one`` have the same keyword, and so evaluate everything?"""
    return any(other is not one and _is_seen(other.chain, one) for other in several)


def _object_part(facts: Facts, one: Unevaluated) -> ObjectPart | None:
    if _others(facts.unevaluated_properties, one):
        return None
    names: dict[str, Json] = {}
    patterns: dict[str, Json] = {}
    for part in facts.objects:
        if _is_seen(part.chain, one):
            if part.additional is not None:
                return None
            names.update(dict.fromkeys(part.properties, True))
            patterns.update(dict.fromkeys(part.patterns, True))
    pointer = one.pointer.rpartition("/")[0]
    return ObjectPart(names, patterns, one.schema, pointer, one.scope, None, "unevaluatedProperties")


def _array_part(builder: Builder, facts: Facts, one: Unevaluated) -> ArrayPart | None:
    if _others(facts.unevaluated_items, one):
        return None
    length = 0
    for part in facts.arrays:
        if _is_seen(part.chain, one):
            if part.rest is not None:
                return None
            length = max(length, len(part.prefix))
    allowed = [counted.value for counted in facts.contains if _is_seen(counted.chain, one) and counted.value]
    rest = one.schema
    if allowed and rest is not True:
        rest = builder.derived.any_of((*allowed, Location(rest, one.pointer, one.scope, ())))
    pointer = one.pointer.rpartition("/")[0]
    return ArrayPart([True] * length, rest, pointer, one.scope, "prefixItems", "unevaluatedItems")
