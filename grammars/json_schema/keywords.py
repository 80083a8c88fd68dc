"""The keywords of JSON Schema, each read into `Facts` by one function.

Every function takes the facts to narrow, the keyword's value, and a `Cursor`, which says where the
keyword stands. A malformed value is a `SpecError` with the pointer and what was expected. What is read
but cannot be enforced is kept in ``Facts.unsupported``: whether it matters depends on the types left.

A keyword that isn't in a draft's table is an annotation there, as the specifications want it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema.facts import (
    ANY,
    ARRAY,
    FRACTION,
    NUMBER,
    OBJECT,
    STRING,
    TYPE_BITS,
    ArrayPart,
    Facts,
    Group,
    Json,
    Location,
    ObjectPart,
    Scope,
    Unsupported,
)
from constrain.grammars.json_schema.resolve import References
from constrain.grammars.limits import Watch

# Numbers of more digits are refused: bounds and constants are spelled digit by digit.
_MAX_DIGITS = 4000


class Cursor:
    """Where reading stands: a schema, its place, and the schemas still to be read into the same facts."""

    __slots__ = ("chain", "draft", "dropped", "pointer", "references", "schema", "scope", "stack", "watch")

    def __init__(self, references: References, draft: int, watch: Watch, dropped: dict[str, None]) -> None:
        self.references = references
        self.draft = draft
        self.watch = watch
        self.dropped = dropped
        self.schema: dict[str, Json] = {}
        self.pointer = "#"
        self.scope: Scope = None
        self.chain: tuple[int, ...] = ()
        self.stack: list[Location] = []

    def error(self, keyword: str, message: str, hint: str | None = None) -> SpecError:
        """Return the error about the value of ``keyword`` here."""
        return SpecError(f"{keyword}: {message}", pointer=f"{self.pointer}/{keyword}", hint=hint)


Handler: TypeAlias = Callable[[Facts, Json, Cursor], None]

# ------------------------------------------------------------------------------ any type


def _type(facts: Facts, value: Json, at: Cursor) -> None:
    if type(value) is str and value in TYPE_BITS:
        bits = TYPE_BITS[value]
    elif isinstance(value, list) and value:
        bits = 0
        for name in value:
            if not isinstance(name, str) or name not in TYPE_BITS:
                raise _no_type(name, at)
            bits |= TYPE_BITS[name]
    else:
        raise _no_type(value, at)
    if facts.types == ANY:
        facts.types = bits
    else:
        facts.narrow(bits, f"type {_show(value)} excludes every type left", f"{at.pointer}/type")


def _no_type(value: Json, at: Cursor) -> SpecError:
    names = ", ".join(sorted(TYPE_BITS))
    close = difflib.get_close_matches(value, TYPE_BITS, 1) if isinstance(value, str) else []
    hint = f"Did you mean {close[0]!r}?" if close else None
    return at.error(
        "type", f"{_show(value)} is not a type; expected one of {names}, or a list of them.", hint
    )


def _enum(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, list):
        raise at.error("enum", f"expected a list of values, found {_show(value)}.")
    _narrow_values(facts, tuple(value), f"{at.pointer}/enum")


def _const(facts: Facts, value: Json, at: Cursor) -> None:
    _narrow_values(facts, (value,), f"{at.pointer}/const")


def _narrow_values(facts: Facts, values: tuple[Json, ...], pointer: str) -> None:
    if facts.values is not None:
        # Few schemas have two such lists, and they are short; watch the product all the same.
        values = tuple(v for v in facts.values if any(is_equal(v, w) for w in values))
    facts.values, facts.values_at = values, pointer
    if not values:
        facts.narrow(0, "no value is allowed", pointer)


def is_equal(a: Json, b: Json) -> bool:
    """Are two JSON values equal? Numbers by value, so 1 equals 1.0; booleans are no numbers."""
    todo = [(a, b)]
    while todo:
        a, b = todo.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            todo += [(a[key], b[key]) for key in a]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif isinstance(a, (dict, list)) or isinstance(b, (dict, list)):
            return False
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif a != b:
            return False
    return True


# ------------------------------------------------------------------------------ numbers


def decimal(value: float, at: Cursor, keyword: str) -> Decimal:
    """Return the number as it is written, exactly.

    Raises
    ------
    SpecError
        Not finite, or of more than 4,000 digits.
    """
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise at.error(keyword, f"{value!r} is not a JSON number.")
    if number and abs(number.adjusted()) > _MAX_DIGITS:
        raise at.error(keyword, f"a number of more than {_MAX_DIGITS:,} digits.")
    return number


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bound(facts: Facts, value: Json, at: Cursor, keyword: str, is_excluded: bool) -> None:
    if not _is_number(value):
        raise at.error(keyword, f"expected a number, found {_show(value)}.")
    bound = (decimal(value, at, keyword), is_excluded)
    if "inimum" in keyword:
        if facts.low is None or bound > facts.low:
            facts.low = bound
    elif facts.high is None or (bound[0], not is_excluded) < (facts.high[0], not facts.high[1]):
        facts.high = bound
    low, high = facts.low, facts.high
    if low is not None and high is not None:
        is_empty = low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
        if is_empty:
            facts.narrow(~NUMBER, f"no number is within the bounds {low[0]} and {high[0]}", at.pointer)


def _minimum(facts: Facts, value: Json, at: Cursor) -> None:
    _bound(facts, value, at, "minimum", _draft4_excludes(at, "exclusiveMinimum"))


def _maximum(facts: Facts, value: Json, at: Cursor) -> None:
    _bound(facts, value, at, "maximum", _draft4_excludes(at, "exclusiveMaximum"))


def _draft4_excludes(at: Cursor, keyword: str) -> bool:
    if at.draft != 4 or keyword not in at.schema:
        return False
    value = at.schema[keyword]
    if not isinstance(value, bool):
        raise at.error(
            keyword,
            f"expected true or false in draft 4, found {_show(value)}.",
            'Name a newer draft in "$schema" to give the bound here.',
        )
    return value


def _exclusive_minimum(facts: Facts, value: Json, at: Cursor) -> None:
    _bound(facts, _no_flag(value, at, "exclusiveMinimum"), at, "exclusiveMinimum", True)


def _exclusive_maximum(facts: Facts, value: Json, at: Cursor) -> None:
    _bound(facts, _no_flag(value, at, "exclusiveMaximum"), at, "exclusiveMaximum", True)


def _no_flag(value: Json, at: Cursor, keyword: str) -> Json:
    if isinstance(value, bool):
        raise at.error(
            keyword,
            f"expected a number, found {_show(value)}.",
            'A flag is draft 4: name that draft in "$schema".',
        )
    return value


def _multiple_of(facts: Facts, value: Json, at: Cursor) -> None:
    if not _is_number(value) or not value > 0:
        raise at.error("multipleOf", f"expected a number above 0, found {_show(value)}.")
    divisor = decimal(value, at, "multipleOf")
    if divisor == 1:
        facts.narrow(~FRACTION, "multipleOf 1 excludes every number left", f"{at.pointer}/multipleOf")
    elif divisor.as_integer_ratio()[0] == 1:  # every integer is a multiple of 0.5
        _refuse(facts, at, "multipleOf", FRACTION, 'Use "type": "integer", or minimum and maximum.')
    else:
        _refuse(facts, at, "multipleOf", NUMBER, "Use enum for few values, or minimum and maximum.")


# ------------------------------------------------------------------------------ counts


def _count(value: Json, at: Cursor, keyword: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise at.error(keyword, f"expected a whole number of at least 0, found {_show(value)}.")
    return value


def _counts(minimum: str, maximum: str, low: str, high: str, types: int) -> tuple[Handler, Handler]:
    """Return the functions of a pair of keywords that keep ``Facts`` attributes ``low`` and ``high``."""

    def check(facts: Facts, at: Cursor) -> None:
        least, most = getattr(facts, low), getattr(facts, high)
        if most is not None and least > most:
            facts.narrow(~types, f"{minimum} {least} is more than {maximum} {most}", at.pointer)

    def read_minimum(facts: Facts, value: Json, at: Cursor) -> None:
        count = _count(value, at, minimum)
        if count > getattr(facts, low):
            setattr(facts, low, count)
            check(facts, at)

    def read_maximum(facts: Facts, value: Json, at: Cursor) -> None:
        count = _count(value, at, maximum)
        most = getattr(facts, high)
        if most is None or count < most:
            setattr(facts, high, count)
            check(facts, at)

    return read_minimum, read_maximum


_min_length, _max_length = _counts("minLength", "maxLength", "min_length", "max_length", STRING)
_min_items, _max_items = _counts("minItems", "maxItems", "min_items", "max_items", ARRAY)
_min_properties, _max_properties = _counts(
    "minProperties", "maxProperties", "min_properties", "max_properties", OBJECT
)

# ------------------------------------------------------------------------------ strings


def _pattern(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, str):
        raise at.error("pattern", f"expected a regular expression, found {_show(value)}.")
    facts.patterns += ((value, f"{at.pointer}/pattern"),)


def _format(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, str):
        raise at.error("format", f"expected the name of a format, found {_show(value)}.")
    facts.formats += ((value, f"{at.pointer}/format"),)


# ------------------------------------------------------------------------------ arrays


def _items(facts: Facts, value: Json, at: Cursor) -> None:
    if isinstance(value, list):
        if at.draft == 2020:
            raise at.error(
                "items",
                "expected one schema for all items, found a list.",
                'Call it "prefixItems", or name the older draft in "$schema".',
            )
        rest = at.schema.get("additionalItems", True)
        part = ArrayPart(value, rest, at.pointer, at.scope, "items", "additionalItems")
    else:
        prefix = at.schema.get("prefixItems", []) if at.draft == 2020 else []
        if not isinstance(prefix, list):
            raise at.error("prefixItems", f"expected a list of schemas, found {_show(prefix)}.")
        part = ArrayPart(prefix, value, at.pointer, at.scope, "prefixItems", "items")
    facts.arrays += (part,)


def _prefix_items(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, list):
        raise at.error("prefixItems", f"expected a list of schemas, found {_show(value)}.")
    if "items" not in at.schema:
        facts.arrays += (ArrayPart(value, True, at.pointer, at.scope, "prefixItems", "items"),)


def _unique_items(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, bool):
        raise at.error("uniqueItems", f"expected true or false, found {_show(value)}.")
    if value:
        _refuse(facts, at, "uniqueItems", ARRAY, "Remove it, and check the result.")


# ------------------------------------------------------------------------------ objects


def _properties(facts: Facts, value: Json, at: Cursor) -> None:
    _schemas(value, at, "properties")
    facts.objects += (ObjectPart(value, at.schema.get("additionalProperties", True), at.pointer, at.scope),)


def _additional_properties(facts: Facts, value: Json, at: Cursor) -> None:
    if "properties" not in at.schema:
        facts.objects += (ObjectPart({}, value, at.pointer, at.scope),)


def _schemas(value: Json, at: Cursor, keyword: str) -> None:
    if not isinstance(value, dict):
        raise at.error(keyword, f"expected an object of schemas, found {_show(value)}.")
    for name in value:
        if not isinstance(name, str):
            raise at.error(keyword, f"expected names that are strings, found {_show(name)}.")


def _required(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, list):
        hint = "Draft 3's flag is now a list in the object." if isinstance(value, bool) else None
        raise at.error("required", f"expected a list of property names, found {_show(value)}.", hint)
    for name in value:
        if not isinstance(name, str):
            raise at.error("required", f"expected names of properties, found {_show(name)}.")
    facts.required = tuple(dict.fromkeys((*facts.required, *value)))


def _pattern_properties(facts: Facts, value: Json, at: Cursor) -> None:
    _schemas(value, at, "patternProperties")
    if value:
        _refuse(facts, at, "patternProperties", OBJECT, "Use properties and additionalProperties.")


def _map_or_nothing(keyword: str, hint: str) -> Handler:
    """Return the function of a keyword whose empty object says nothing and that is refused else."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        if not isinstance(value, dict):
            raise at.error(keyword, f"expected an object, found {_show(value)}.")
        if value:
            _refuse(facts, at, keyword, OBJECT, hint)

    return read


def _schema_or_nothing(keyword: str, types: int, hint: str) -> Handler:
    """Return the function of a keyword whose schema ``true`` says nothing and that is refused else."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        if not isinstance(value, (bool, dict)):
            raise at.error(keyword, f"expected a schema, found {_show(value)}.")
        if value is not True and value != {}:
            _refuse(facts, at, keyword, types, hint)

    return read


# ------------------------------------------------------------------------------ in place


def _reference(facts: Facts, value: Json, at: Cursor) -> None:
    if not isinstance(value, str):
        raise at.error("$ref", f"expected a reference, found {_show(value)}.")
    pointer = f"{at.pointer}/$ref"
    schema, where, scope = at.references.target(value, pointer, at.scope)
    chain = (*at.chain, id(at.schema))
    if id(schema) in chain:
        raise SpecError(
            f"$ref {value!r} leads back to itself without entering a property or an item.", pointer=pointer
        )
    at.watch.at_most("nesting", len(chain), pointer)
    at.stack.append(Location(schema, where, scope, chain))


def _all_of(facts: Facts, value: Json, at: Cursor) -> None:
    branches = _branches(value, at, "allOf")
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), at.pointer)
    for i in reversed(range(len(branches))):
        at.stack.append(Location(branches[i], f"{at.pointer}/allOf/{i}", at.scope, chain))


def _any_of(facts: Facts, value: Json, at: Cursor) -> None:
    _group(facts, _branches(value, at, "anyOf"), at, "anyOf", False)


def _one_of(facts: Facts, value: Json, at: Cursor) -> None:
    _group(facts, _branches(value, at, "oneOf"), at, "oneOf", True)


def _group(facts: Facts, branches: list[Json], at: Cursor, keyword: str, is_exclusive: bool) -> None:
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), at.pointer)
    facts.groups += (Group(branches, f"{at.pointer}/{keyword}", at.scope, chain, is_exclusive),)


def _branches(value: Json, at: Cursor, keyword: str) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise at.error(keyword, f"expected a list of at least one schema, found {_show(value)}.")
    return value


def _if(facts: Facts, value: Json, at: Cursor) -> None:
    if "then" in at.schema or "else" in at.schema:
        _refuse(facts, at, "if", ANY, "Write the cases as the branches of anyOf.")


def _refuse(facts: Facts, at: Cursor, keyword: str, types: int, hint: str) -> None:
    facts.unsupported += (Unsupported(keyword, f"{at.pointer}/{keyword}", types, hint),)


def _refusing(keyword: str, types: int, hint: str) -> Handler:
    def read(facts: Facts, value: Json, at: Cursor) -> None:
        _refuse(facts, at, keyword, types, hint)

    return read


def _show(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ------------------------------------------------------------------------------ drafts

# Keyword: function, first and last draft it belongs to.
_KEYWORDS: dict[str, tuple[Handler, int, int]] = {
    "type": (_type, 4, 2020),
    "enum": (_enum, 4, 2020),
    "const": (_const, 6, 2020),
    "minimum": (_minimum, 4, 2020),
    "maximum": (_maximum, 4, 2020),
    "exclusiveMinimum": (_exclusive_minimum, 6, 2020),
    "exclusiveMaximum": (_exclusive_maximum, 6, 2020),
    "multipleOf": (_multiple_of, 4, 2020),
    "minLength": (_min_length, 4, 2020),
    "maxLength": (_max_length, 4, 2020),
    "pattern": (_pattern, 4, 2020),
    "format": (_format, 4, 2020),
    "items": (_items, 4, 2020),
    "prefixItems": (_prefix_items, 2020, 2020),
    "minItems": (_min_items, 4, 2020),
    "maxItems": (_max_items, 4, 2020),
    "uniqueItems": (_unique_items, 4, 2020),
    "contains": (_refusing("contains", ARRAY, "Use items, or prefixItems."), 6, 2020),
    "unevaluatedItems": (_schema_or_nothing("unevaluatedItems", ARRAY, "Use items."), 2019, 2020),
    "properties": (_properties, 4, 2020),
    "additionalProperties": (_additional_properties, 4, 2020),
    "required": (_required, 4, 2020),
    "patternProperties": (_pattern_properties, 4, 2020),
    "minProperties": (_min_properties, 4, 2020),
    "maxProperties": (_max_properties, 4, 2020),
    "propertyNames": (_schema_or_nothing("propertyNames", OBJECT, "Use properties."), 6, 2020),
    # Split in two since 2019-09, where implementations may still assert it: refused rather than dropped.
    "dependencies": (_map_or_nothing("dependencies", "Write the cases as the branches of anyOf."), 4, 2020),
    "dependentRequired": (
        _map_or_nothing("dependentRequired", "Write the cases as the branches of anyOf."),
        2019,
        2020,
    ),
    "dependentSchemas": (
        _map_or_nothing("dependentSchemas", "Write the cases as the branches of anyOf."),
        2019,
        2020,
    ),
    "unevaluatedProperties": (
        _schema_or_nothing("unevaluatedProperties", OBJECT, "Use additionalProperties."),
        2019,
        2020,
    ),
    "$ref": (_reference, 4, 2020),
    "$dynamicRef": (_refusing("$dynamicRef", ANY, "Use $ref."), 2020, 2020),
    "$recursiveRef": (_refusing("$recursiveRef", ANY, "Use $ref."), 2019, 2019),
    "allOf": (_all_of, 4, 2020),
    "anyOf": (_any_of, 4, 2020),
    "oneOf": (_one_of, 4, 2020),
    "not": (_refusing("not", ANY, "Say what is allowed instead."), 4, 2020),
    "if": (_if, 7, 2020),
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
