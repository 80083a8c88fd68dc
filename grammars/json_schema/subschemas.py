"""Which keywords hold schemas."""

from __future__ import annotations

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""By name; ``dependencies`` also lists of names."""
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLE = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("not", "if", "then", "else"),
)
"""``items`` holds a list or a single one."""
