"""Which schemas apply to a property, or to an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.grammars.json_schema.facts import Facts, Location
from constrain.grammars.json_schema.pointers import token

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder


def property_locations(builder: Builder, facts: Facts, name: str) -> list[Location]:
    """Return the schemas that apply to the property ``name``."""
    found = []
    for part in facts.objects:
        is_additional = True
        if name in part.properties:
            is_additional = False
            pointer = f"{part.pointer}/properties/{token(name)}"
            found.append(Location(part.properties[name], pointer, part.scope, ()))
        for source, schema in part.patterns.items():
            pointer = f"{part.pointer}/patternProperties"
            if builder.matches(source, pointer, name):
                is_additional = False
                found.append(Location(schema, f"{pointer}/{token(source)}", part.scope, ()))
        if is_additional and part.additional is not None:
            found.append(Location(part.additional, f"{part.pointer}/{part.rest_key}", part.scope, ()))
    if name in facts.forbidden:
        found.append(Location(False, f"{facts.pointer}/not", None, ()))
    return found


def additional_locations(facts: Facts) -> tuple[Location, ...]:
    """Return the schemas that apply to properties that no part names; patterns aside."""
    return tuple(
        [
            Location(part.additional, f"{part.pointer}/{part.rest_key}", part.scope, ())
            for part in facts.objects
            if part.additional is not None and part.additional is not True
        ]
    )


def prefix_length(facts: Facts) -> int:
    """Return from which item on all are described alike."""
    return max((len(part.prefix) for part in facts.arrays), default=0)


def item_locations(builder: Builder, facts: Facts, index: int) -> list[Location]:
    """Return the schemas that apply to the item at ``index``."""
    found = []
    for part in facts.arrays:
        if index < len(part.prefix):
            pointer = f"{part.pointer}/{part.prefix_key}/{index}"
            found.append(Location(part.prefix[index], pointer, part.scope, ()))
        elif part.rest is not None:
            found.append(Location(part.rest, f"{part.pointer}/{part.rest_key}", part.scope, ()))
    return found
