"""The keywords of JSON Schema, each read into `Facts` by one function.

Every function takes the facts to narrow, the keyword's value, and a `Cursor`, which says where the
keyword stands. A malformed value is a `SpecError` with the pointer and what was expected. What is read
but cannot be enforced is kept in ``Facts.unsupported``: whether it matters depends on the types left.

Which draft has which keyword is said in `drafts`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema import formats, string_grammar
from constrain.grammars.json_schema.cursor import Cursor, show
from constrain.grammars.json_schema.equality import shared_values
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
    Unsupported,
)
from constrain.grammars.json_schema.numbers import MAX_DIGITS

Handler: TypeAlias = Callable[[Facts, Json, Cursor], None]

# ------------------------------------------------------------------------------ any type


def read_type(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``type``."""
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
        facts.narrow(bits, f"type {show(value)} excludes every type left", f"{at.pointer}/type")


def _no_type(value: Json, at: Cursor) -> SpecError:
    import difflib  # for this message alone

    names = ", ".join(sorted(TYPE_BITS))
    close = difflib.get_close_matches(value, TYPE_BITS, 1) if isinstance(value, str) else []
    hint = f"Did you mean {close[0]!r}?" if close else None
    return at.error("type", f"{show(value)} is not a type; expected one of {names}, or a list of them.", hint)


def read_enum(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``enum``."""
    if not isinstance(value, list):
        raise at.error("enum", f"expected a list of values, found {show(value)}.")
    _narrow_values(facts, tuple(value), f"{at.pointer}/enum")


def read_const(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``const``."""
    _narrow_values(facts, (value,), f"{at.pointer}/const")


def _narrow_values(facts: Facts, values: tuple[Json, ...], pointer: str) -> None:
    if facts.values is not None:
        values = shared_values(facts.values, values)
    facts.values, facts.values_at = values, pointer
    if not values:
        facts.narrow(0, "no value is allowed", pointer)


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
    if number and abs(number.adjusted()) > MAX_DIGITS:
        raise at.error(keyword, f"a number of more than {MAX_DIGITS:,} digits.")
    return number


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bound(facts: Facts, value: Json, at: Cursor, keyword: str, is_excluded: bool) -> None:
    if not _is_number(value):
        raise at.error(keyword, f"expected a number, found {show(value)}.")
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


def read_minimum(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``minimum``."""
    _bound(facts, value, at, "minimum", _draft4_excludes(at, "exclusiveMinimum"))


def read_maximum(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``maximum``."""
    _bound(facts, value, at, "maximum", _draft4_excludes(at, "exclusiveMaximum"))


def _draft4_excludes(at: Cursor, keyword: str) -> bool:
    if at.draft != 4 or keyword not in at.schema:
        return False
    value = at.schema[keyword]
    if not isinstance(value, bool):
        raise at.error(
            keyword,
            f"expected true or false in draft 4, found {show(value)}.",
            'Name a newer draft in "$schema" to give the bound here.',
        )
    return value


def read_exclusive_minimum(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``exclusiveMinimum``."""
    _bound(facts, _no_flag(value, at, "exclusiveMinimum"), at, "exclusiveMinimum", True)


def read_exclusive_maximum(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``exclusiveMaximum``."""
    _bound(facts, _no_flag(value, at, "exclusiveMaximum"), at, "exclusiveMaximum", True)


def _no_flag(value: Json, at: Cursor, keyword: str) -> Json:
    if isinstance(value, bool):
        raise at.error(
            keyword,
            f"expected a number, found {show(value)}.",
            'A flag is draft 4: name that draft in "$schema".',
        )
    return value


def read_multiple_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``multipleOf``."""
    if not _is_number(value) or not value > 0:
        raise at.error("multipleOf", f"expected a number above 0, found {show(value)}.")
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
        raise at.error(keyword, f"expected a whole number of at least 0, found {show(value)}.")
    return value


def _counts(minimum: str, maximum: str, low: str, high: str, types: int) -> tuple[Handler, Handler]:
    """Return the functions of a pair of keywords that keep ``Facts`` attributes ``low`` and ``high``."""

    def check(facts: Facts, at: Cursor) -> None:
        least, most = getattr(facts, low), getattr(facts, high)
        if most is not None and least > most:
            facts.narrow(~types, f"{minimum} {least} is more than {maximum} {most}", at.pointer)

    def at_least(facts: Facts, value: Json, at: Cursor) -> None:
        count = _count(value, at, minimum)
        if count > getattr(facts, low):
            setattr(facts, low, count)
            check(facts, at)

    def at_most(facts: Facts, value: Json, at: Cursor) -> None:
        count = _count(value, at, maximum)
        most = getattr(facts, high)
        if most is None or count < most:
            setattr(facts, high, count)
            check(facts, at)

    return at_least, at_most


read_min_length, read_max_length = _counts("minLength", "maxLength", "min_length", "max_length", STRING)
read_min_items, read_max_items = _counts("minItems", "maxItems", "min_items", "max_items", ARRAY)
read_min_properties, read_max_properties = _counts(
    "minProperties", "maxProperties", "min_properties", "max_properties", OBJECT
)

# ------------------------------------------------------------------------------ strings


def read_pattern(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``pattern``."""
    if not isinstance(value, str):
        raise at.error("pattern", f"expected a regular expression, found {show(value)}.")
    facts.patterns += ((value, f"{at.pointer}/pattern"),)


def read_format(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``format``."""
    if not isinstance(value, str):
        raise at.error("format", f"expected the name of a format, found {show(value)}.")
    if value in formats.SUPPORTED or value in formats.UNSUPPORTED:
        facts.formats += ((value, f"{at.pointer}/format"),)
    elif at.has_formats:
        at.dropped[f"{at.pointer}/format"] = None


def read_grammar(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``x-grammar``."""
    problem = string_grammar.check(value)
    if problem is not None:
        raise at.error("x-grammar", f"{problem}, found {show(value)}.")
    facts.grammars += ((value, f"{at.pointer}/x-grammar"),)


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
        rest = at.schema.get("additionalItems", True)
        part = ArrayPart(value, rest, at.pointer, at.scope, "items", "additionalItems")
    else:
        prefix = at.schema.get("prefixItems", []) if at.draft == 2020 else []
        if not isinstance(prefix, list):
            raise at.error("prefixItems", f"expected a list of schemas, found {show(prefix)}.")
        part = ArrayPart(prefix, value, at.pointer, at.scope, "prefixItems", "items")
    facts.arrays += (part,)


def read_prefix_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``prefixItems``."""
    if not isinstance(value, list):
        raise at.error("prefixItems", f"expected a list of schemas, found {show(value)}.")
    if "items" not in at.schema:
        facts.arrays += (ArrayPart(value, True, at.pointer, at.scope, "prefixItems", "items"),)


def read_unique_items(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``uniqueItems``."""
    if not isinstance(value, bool):
        raise at.error("uniqueItems", f"expected true or false, found {show(value)}.")
    if value:
        _refuse(facts, at, "uniqueItems", ARRAY, "Remove it, and check the result.")


# ------------------------------------------------------------------------------ objects


def read_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``properties``."""
    _schemas(value, at, "properties")
    facts.objects += (ObjectPart(value, at.schema.get("additionalProperties", True), at.pointer, at.scope),)


def read_additional_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``additionalProperties``."""
    if "properties" not in at.schema:
        facts.objects += (ObjectPart({}, value, at.pointer, at.scope),)


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
    facts.required = tuple(dict.fromkeys((*facts.required, *value)))


def read_pattern_properties(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``patternProperties``."""
    _schemas(value, at, "patternProperties")
    if value:
        _refuse(facts, at, "patternProperties", OBJECT, "Use properties and additionalProperties.")


def unless_empty(keyword: str, hint: str) -> Handler:
    """Return the function of a keyword whose empty object says nothing and that is refused else."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        if not isinstance(value, dict):
            raise at.error(keyword, f"expected an object, found {show(value)}.")
        if value:
            _refuse(facts, at, keyword, OBJECT, hint)

    return read


def unless_true(keyword: str, types: int, hint: str) -> Handler:
    """Return the function of a keyword whose schema ``true`` says nothing and that is refused else."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        if not isinstance(value, (bool, dict)):
            raise at.error(keyword, f"expected a schema, found {show(value)}.")
        if value is not True and value != {}:
            _refuse(facts, at, keyword, types, hint)

    return read


# ------------------------------------------------------------------------------ in place


def read_reference(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``$ref``."""
    if not isinstance(value, str):
        raise at.error("$ref", f"expected a reference, found {show(value)}.")
    pointer = f"{at.pointer}/$ref"
    schema, where, scope = at.references.target(value, pointer, at.scope)
    chain = (*at.chain, id(at.schema))
    if id(schema) in chain:
        raise SpecError(
            f"$ref {value!r} leads back to itself without entering a property or an item.", pointer=pointer
        )
    at.watch.at_most("nesting", len(chain), pointer)
    at.stack.append(Location(schema, where, scope, chain))


def read_all_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``allOf``."""
    branches = _branches(value, at, "allOf")
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), at.pointer)
    for i in reversed(range(len(branches))):
        at.stack.append(Location(branches[i], f"{at.pointer}/allOf/{i}", at.scope, chain))


def read_any_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``anyOf``."""
    _group(facts, _branches(value, at, "anyOf"), at, "anyOf", False)


def read_one_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``oneOf``."""
    _group(facts, _branches(value, at, "oneOf"), at, "oneOf", True)


def _group(facts: Facts, branches: list[Json], at: Cursor, keyword: str, is_exclusive: bool) -> None:
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), at.pointer)
    facts.groups += (Group(branches, f"{at.pointer}/{keyword}", at.scope, chain, is_exclusive),)


def _branches(value: Json, at: Cursor, keyword: str) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise at.error(keyword, f"expected a list of at least one schema, found {show(value)}.")
    return value


def read_if(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``if``."""
    if "then" in at.schema or "else" in at.schema:
        _refuse(facts, at, "if", ANY, "Write the cases as the branches of anyOf.")


def _refuse(facts: Facts, at: Cursor, keyword: str, types: int, hint: str) -> None:
    facts.unsupported += (Unsupported(keyword, f"{at.pointer}/{keyword}", types, hint),)


def refusing(keyword: str, types: int, hint: str) -> Handler:
    """Return the function of a keyword that is refused where values of ``types`` are left."""

    def read(facts: Facts, value: Json, at: Cursor) -> None:
        _refuse(facts, at, keyword, types, hint)

    return read
