"""Which keywords each draft has.

A keyword that is not in a draft's table is an annotation there, as the specifications want it. Keywords
that restrict values in another draft are noted as ignored, so that none is dropped silently.
"""

from __future__ import annotations

from constrain.grammars.json_schema.cursor import Cursor
from constrain.grammars.json_schema.facts import ANY, ARRAY, OBJECT, Facts, Json
from constrain.grammars.json_schema.keywords import (
    Handler,
    read_additional_properties,
    read_all_of,
    read_any_of,
    read_const,
    read_enum,
    read_exclusive_maximum,
    read_exclusive_minimum,
    read_format,
    read_grammar,
    read_if,
    read_items,
    read_max_items,
    read_max_length,
    read_max_properties,
    read_maximum,
    read_min_items,
    read_min_length,
    read_min_properties,
    read_minimum,
    read_multiple_of,
    read_one_of,
    read_pattern,
    read_pattern_properties,
    read_prefix_items,
    read_properties,
    read_reference,
    read_required,
    read_type,
    read_unique_items,
    refusing,
    unless_empty,
    unless_true,
)

# Keyword: function, first and last draft it belongs to.
_KEYWORDS: dict[str, tuple[Handler, int, int]] = {
    "type": (read_type, 4, 2020),
    "enum": (read_enum, 4, 2020),
    "const": (read_const, 6, 2020),
    "minimum": (read_minimum, 4, 2020),
    "maximum": (read_maximum, 4, 2020),
    "exclusiveMinimum": (read_exclusive_minimum, 6, 2020),
    "exclusiveMaximum": (read_exclusive_maximum, 6, 2020),
    "multipleOf": (read_multiple_of, 4, 2020),
    "minLength": (read_min_length, 4, 2020),
    "maxLength": (read_max_length, 4, 2020),
    "pattern": (read_pattern, 4, 2020),
    "format": (read_format, 4, 2020),
    "x-grammar": (read_grammar, 4, 2020),
    "items": (read_items, 4, 2020),
    "prefixItems": (read_prefix_items, 2020, 2020),
    "minItems": (read_min_items, 4, 2020),
    "maxItems": (read_max_items, 4, 2020),
    "uniqueItems": (read_unique_items, 4, 2020),
    "contains": (refusing("contains", ARRAY, "Use items, or prefixItems."), 6, 2020),
    "unevaluatedItems": (unless_true("unevaluatedItems", ARRAY, "Use items."), 2019, 2020),
    "properties": (read_properties, 4, 2020),
    "additionalProperties": (read_additional_properties, 4, 2020),
    "required": (read_required, 4, 2020),
    "patternProperties": (read_pattern_properties, 4, 2020),
    "minProperties": (read_min_properties, 4, 2020),
    "maxProperties": (read_max_properties, 4, 2020),
    "propertyNames": (unless_true("propertyNames", OBJECT, "Use properties."), 6, 2020),
    # Split in two since 2019-09, where implementations may still assert it: refused rather than dropped.
    "dependencies": (unless_empty("dependencies", "Write the cases as the branches of anyOf."), 4, 2020),
    "dependentRequired": (
        unless_empty("dependentRequired", "Write the cases as the branches of anyOf."),
        2019,
        2020,
    ),
    "dependentSchemas": (
        unless_empty("dependentSchemas", "Write the cases as the branches of anyOf."),
        2019,
        2020,
    ),
    "unevaluatedProperties": (
        unless_true("unevaluatedProperties", OBJECT, "Use additionalProperties."),
        2019,
        2020,
    ),
    "$ref": (read_reference, 4, 2020),
    "$dynamicRef": (refusing("$dynamicRef", ANY, "Use $ref."), 2020, 2020),
    "$recursiveRef": (refusing("$recursiveRef", ANY, "Use $ref."), 2019, 2019),
    "allOf": (read_all_of, 4, 2020),
    "anyOf": (read_any_of, 4, 2020),
    "oneOf": (read_one_of, 4, 2020),
    "not": (refusing("not", ANY, "Say what is allowed instead."), 4, 2020),
    "if": (read_if, 7, 2020),
}

# Not asserted by themselves: they qualify a neighbour, whose function reads them.
_NEIGHBOURS = {
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


def _table(draft: int) -> dict[str, Handler]:
    table = {
        name: handler if first <= draft <= last else _other_draft(name)
        for name, (handler, first, last) in _KEYWORDS.items()
    }
    for name, (first, last) in _NEIGHBOURS.items():
        if not first <= draft <= last:
            table[name] = _other_draft(name)
    if draft == 4:  # flags of minimum and maximum
        del table["exclusiveMinimum"], table["exclusiveMaximum"]
    return table


HANDLERS: dict[int, dict[str, Handler]] = {draft: _table(draft) for draft in (4, 6, 7, 2019, 2020)}
