"""Keywords of any value, of numbers and of strings, each read into `Facts` by one function.

Every function takes the facts to narrow, the keyword's value, and a `Cursor`, which says where the
keyword stands. A malformed value is a `SpecError` with the pointer and what was expected. What is read
but cannot be enforced is kept in ``Facts.unsupported``: whether it matters depends on the types left.

Keywords of arrays and objects are in `containers`, those that apply other schemas to the same value in
`applicators`. Which draft has which keyword is said in `drafts`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema import formats, string_grammar
from constrain.grammars.json_schema.cursor import Cursor, show
from constrain.grammars.json_schema.facts import ANY, TYPE_BITS, Facts, Json, Unsupported
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
    facts.meet_values(tuple(value), f"{at.pointer}/enum")


def read_const(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``const``."""
    facts.meet_values((value,), f"{at.pointer}/const")


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
    is_low = "inimum" in keyword
    facts.meet_bounds(bound if is_low else None, None if is_low else bound, at.pointer)


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
    facts.meet_multiple(Fraction(decimal(value, at, "multipleOf")))


# ------------------------------------------------------------------------------ counts


def whole_number(value: Json, at: Cursor, keyword: str) -> int:
    """Return the value of a keyword that counts."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise at.error(keyword, f"expected a whole number of at least 0, found {show(value)}.")
    return value


def _counts(minimum: str, maximum: str, low: str, high: str) -> tuple[Handler, Handler]:
    """Return the functions of a pair of keywords that keep ``Facts`` attributes ``low`` and ``high``."""

    def at_least(facts: Facts, value: Json, at: Cursor) -> None:
        count = whole_number(value, at, minimum)
        if count > getattr(facts, low):
            setattr(facts, low, count)
            facts.check_counts(at.pointer)

    def at_most(facts: Facts, value: Json, at: Cursor) -> None:
        count = whole_number(value, at, maximum)
        most = getattr(facts, high)
        if most is None or count < most:
            setattr(facts, high, count)
            facts.check_counts(at.pointer)

    return at_least, at_most


read_min_length, read_max_length = _counts("minLength", "maxLength", "min_length", "max_length")
read_min_items, read_max_items = _counts("minItems", "maxItems", "min_items", "max_items")
read_min_properties, read_max_properties = _counts(
    "minProperties", "maxProperties", "min_properties", "max_properties"
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
    if not at.has_formats:
        return
    if value in formats.SUPPORTED:
        facts.formats += ((value, f"{at.pointer}/format"),)
    else:
        at.dropped[f"{at.pointer}/format"] = None


def read_grammar(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``x-grammar``."""
    problem = string_grammar.check(value)
    if problem is not None:
        raise at.error("x-grammar", f"{problem}, found {show(value)}.")
    facts.grammars += ((value, f"{at.pointer}/x-grammar"),)


def refuse(facts: Facts, at: Cursor, keyword: str, types: int, hint: str) -> None:
    """Note a keyword that isn't enforced for values of ``types``."""
    facts.unsupported += (Unsupported(keyword, f"{at.pointer}/{keyword}", types, hint),)
