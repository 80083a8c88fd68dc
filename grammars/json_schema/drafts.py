"""Which keywords each draft has.

A keyword that is not in a draft's table is an annotation there, as the specifications want it. Keywords
that restrict values in another draft are noted as ignored, so that none is dropped silently.
"""

from __future__ import annotations

from constrain.grammars.json_schema import applicators, containers, keywords
from constrain.grammars.json_schema.cursor import Cursor
from constrain.grammars.json_schema.derived import read_derived
from constrain.grammars.json_schema.facts import Derived, Facts, Json
from constrain.grammars.json_schema.keywords import Handler

# Keyword: function, first and last draft it belongs to.
_KEYWORDS: dict[Json, tuple[Handler, int, int]] = {
    "type": (keywords.read_type, 4, 2020),
    "enum": (keywords.read_enum, 4, 2020),
    "const": (keywords.read_const, 6, 2020),
    "minimum": (keywords.read_minimum, 4, 2020),
    "maximum": (keywords.read_maximum, 4, 2020),
    "exclusiveMinimum": (keywords.read_exclusive_minimum, 6, 2020),
    "exclusiveMaximum": (keywords.read_exclusive_maximum, 6, 2020),
    "multipleOf": (keywords.read_multiple_of, 4, 2020),
    "minLength": (keywords.read_min_length, 4, 2020),
    "maxLength": (keywords.read_max_length, 4, 2020),
    "pattern": (keywords.read_pattern, 4, 2020),
    "format": (keywords.read_format, 4, 2020),
    "x-grammar": (keywords.read_grammar, 4, 2020),
    "items": (containers.read_items, 4, 2020),
    "prefixItems": (containers.read_prefix_items, 2020, 2020),
    "minItems": (keywords.read_min_items, 4, 2020),
    "maxItems": (keywords.read_max_items, 4, 2020),
    "uniqueItems": (containers.read_unique_items, 4, 2020),
    "contains": (containers.read_contains, 6, 2020),
    "unevaluatedItems": (containers.read_unevaluated_items, 2019, 2020),
    "properties": (containers.read_properties, 4, 2020),
    "patternProperties": (containers.read_pattern_properties, 4, 2020),
    "additionalProperties": (containers.read_additional_properties, 4, 2020),
    "required": (containers.read_required, 4, 2020),
    "minProperties": (keywords.read_min_properties, 4, 2020),
    "maxProperties": (keywords.read_max_properties, 4, 2020),
    "propertyNames": (containers.read_property_names, 6, 2020),
    # Split in two since 2019-09, where implementations may still assert it.
    "dependencies": (containers.read_dependencies, 4, 2020),
    "dependentRequired": (containers.read_dependent_required, 2019, 2020),
    "dependentSchemas": (containers.read_dependent_schemas, 2019, 2020),
    "unevaluatedProperties": (containers.read_unevaluated_properties, 2019, 2020),
    "$ref": (applicators.read_reference, 4, 2020),
    "$dynamicRef": (applicators.read_dynamic_reference, 2020, 2020),
    "$recursiveRef": (applicators.read_recursive_reference, 2019, 2019),
    "allOf": (applicators.read_all_of, 4, 2020),
    "anyOf": (applicators.read_any_of, 4, 2020),
    "oneOf": (applicators.read_one_of, 4, 2020),
    "not": (applicators.read_not, 4, 2020),
    "if": (applicators.read_if, 7, 2020),
    Derived.APPLY: (read_derived, 4, 2020),
}

# Not asserted by themselves: they qualify a neighbour, whose function reads them.
NEIGHBOURS = {
    "additionalItems": (4, 2019),
    "minContains": (2019, 2020),
    "maxContains": (2019, 2020),
    "then": (7, 2020),
    "else": (7, 2020),
}


def _other_draft(keyword: str) -> Handler:
    """Return the function that notes a keyword of another draft: there it restricts, here it doesn't."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        at.dropped[f"{at.pointer}/{keyword}"] = None

    return read


def _table(draft: int) -> dict[Json, Handler]:
    table = {
        name: handler if first <= draft <= last else _other_draft(name)
        for name, (handler, first, last) in _KEYWORDS.items()
    }
    for name, (first, last) in NEIGHBOURS.items():
        if not first <= draft <= last:
            table[name] = _other_draft(name)
    if draft == 4:  # flags of minimum and maximum
        del table["exclusiveMinimum"], table["exclusiveMaximum"]
    return table


HANDLERS: dict[int, dict[Json, Handler]] = {draft: _table(draft) for draft in (4, 6, 7, 2019, 2020)}
