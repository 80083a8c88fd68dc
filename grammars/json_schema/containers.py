"""Keywords of arrays and objects, each read into `Facts` by one function; see `keywords`."""

from __future__ import annotations

from constrain.grammars.json_schema.cursor import Cursor, show
from constrain.grammars.json_schema.facts import (
    ARRAY,
    OBJECT,
    ArrayPart,
    Case,
    Counted,
    Facts,
    Json,
    Keys,
    ObjectPart,
    Unevaluated,
)
from constrain.grammars.json_schema.keywords import refuse, whole_number

# ------------------------------------------------------------------------------ arrays


def read_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``items``."""
    if isinstance(value, list):
        if at.draft == 2020:
            raise at.error(
                "items",
                "expected one schema for all items, found a list.",
                'Call it "prefixItems", or name the older draft in "$schema".',
            )
        rest = at.schema.get("additionalItems")
        if rest is None and "additionalItems" in at.schema:
            raise at.error("additionalItems", "expected a schema, found None.")
        part = ArrayPart(value, rest, at.pointer, at.scope, "items", "additionalItems", at.owners)
    else:
        if value is None:
            raise at.error("items", "expected a schema, found None.")
        prefix = at.schema.get("prefixItems", []) if at.draft == 2020 else []
        if not isinstance(prefix, list):
            raise at.error("prefixItems", f"expected a list of schemas, found {show(prefix)}.")
        part = ArrayPart(prefix, value, at.pointer, at.scope, "prefixItems", "items", at.owners)
    facts.arrays += (part,)


def read_prefix_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``prefixItems``."""
    if not isinstance(value, list):
        raise at.error("prefixItems", f"expected a list of schemas, found {show(value)}.")
    if "items" not in at.schema:
        facts.arrays += (ArrayPart(value, None, at.pointer, at.scope, "prefixItems", "items", at.owners),)


def read_unique_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``uniqueItems``."""
    if not isinstance(value, bool):
        raise at.error("uniqueItems", f"expected true or false, found {show(value)}.")
    if value:
        facts.unique_at = facts.unique_at or f"{at.pointer}/uniqueItems"


def read_contains(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``contains``, with ``minContains`` and ``maxContains``."""
    low, high = 1, None
    if at.draft >= 2019:
        if "minContains" in at.schema:
            low = whole_number(at.schema["minContains"], at, "minContains")
        if "maxContains" in at.schema:
            high = whole_number(at.schema["maxContains"], at, "maxContains")
    if low == 0 and high is None and not at.tracks:
        return
    where = f"{at.pointer}/contains"
    owners = at.owners if at.draft == 2020 else None
    case = Case(Keys(), at.part(value, where))
    facts.contains += (Counted((case,), low, high, where, "contains", chain=owners),)


def read_unevaluated_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``unevaluatedItems``."""
    if at.skips_unevaluated:
        refuse(facts, at, "unevaluatedItems", ARRAY, "")
    else:
        facts.unevaluated_items += _unevaluated(value, at, "unevaluatedItems")


# ------------------------------------------------------------------------------ objects


def read_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``properties``."""
    _schemas(value, at, "properties")
    _add_object_part(facts, at)


def read_pattern_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``patternProperties``."""
    _schemas(value, at, "patternProperties")
    if value and "properties" not in at.schema:
        _add_object_part(facts, at)


def read_additional_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``additionalProperties``."""
    if value is None:
        raise at.error("additionalProperties", "expected a schema, found None.")
    if "properties" not in at.schema and not at.schema.get("patternProperties"):
        _add_object_part(facts, at)


def _add_object_part(facts: Facts, at: Cursor) -> None:
    """Add what all of ``properties``, ``patternProperties`` and ``additionalProperties`` say."""
    schema = at.schema
    part = ObjectPart(
        schema.get("properties", {}),
        schema.get("patternProperties", {}),
        schema.get("additionalProperties"),
        at.pointer,
        at.scope,
        at.owners,
    )
    facts.objects += (part,)


def _schemas(value: Json, at: Cursor, keyword: str) -> None:
    if not isinstance(value, dict):
        raise at.error(keyword, f"expected an object of schemas, found {show(value)}.")
    for name in value:
        if not isinstance(name, str):
            raise at.error(keyword, f"expected names that are strings, found {show(name)}.")


def read_required(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``required``."""
    if not isinstance(value, list):
        hint = "Draft 3's flag is now a list in the object." if isinstance(value, bool) else None
        raise at.error("required", f"expected a list of property names, found {show(value)}.", hint)
    for name in value:
        if not isinstance(name, str):
            raise at.error("required", f"expected names of properties, found {show(name)}.")
    facts.meet_names(tuple(value), (), f"{at.pointer}/required")


def read_property_names(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``propertyNames``."""
    if not isinstance(value, (bool, dict)):
        raise at.error("propertyNames", f"expected a schema, found {show(value)}.")
    if value is not True and value != {}:
        facts.names += (at.part(value, f"{at.pointer}/propertyNames"),)


def read_unevaluated_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``unevaluatedProperties``."""
    if at.skips_unevaluated:
        refuse(facts, at, "unevaluatedProperties", OBJECT, "")
    else:
        facts.unevaluated_properties += _unevaluated(value, at, "unevaluatedProperties")


def _unevaluated(value: Json, at: Cursor, keyword: str) -> tuple[Unevaluated, ...]:
    if not isinstance(value, (bool, dict)):
        raise at.error(keyword, f"expected a schema, found {show(value)}.")
    at.track()
    chain = at.owners or (*at.chain, id(at.schema))
    return (Unevaluated(value, f"{at.pointer}/{keyword}", at.scope, chain, id(at.schema)),)


# ------------------------------------------------------------------------------ dependencies


def read_dependencies(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``dependencies``."""
    _dependencies(facts, value, at, "dependencies")


def read_dependent_required(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``dependentRequired``."""
    _dependencies(facts, value, at, "dependentRequired")


def read_dependent_schemas(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``dependentSchemas``."""
    _dependencies(facts, value, at, "dependentSchemas")


def _dependencies(facts: Facts, value: Json, at: Cursor, keyword: str) -> None:
    if not isinstance(value, dict):
        raise at.error(keyword, f"expected an object, found {show(value)}.")
    for name, demand in value.items():
        if isinstance(demand, list) and keyword != "dependentSchemas":
            for other in demand:
                if not isinstance(other, str):
                    raise at.error(keyword, f"expected names of properties, found {show(other)}.")
            if set(demand) <= {name}:
                continue
        elif keyword == "dependentRequired" or not isinstance(demand, (bool, dict)):
            expected = {
                "dependencies": "a schema or a list of names",
                "dependentRequired": "a list of names",
                "dependentSchemas": "a schema",
            }[keyword]
            raise at.error(keyword, f"expected {expected}, found {show(demand)}.")
        elif demand is True or demand == {}:
            continue
        facts.groups += (at.derived.dependency(name, demand, at, keyword),)
