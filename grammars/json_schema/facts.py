"""The normal form of a conjunction of schemas: what is known about one value.

A schema is read keyword by keyword into `Facts`; a schema that applies to the same place (a member of
``allOf``, the target of ``$ref``, a branch of ``anyOf``) is read into the same facts, which become the
intersection. What concerns the parts of a value (``properties``, ``items``) is kept as it stands, one
entry for each schema that has it, since ``additionalProperties`` speaks of its own neighbours only.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, TypeAlias

from constrain.grammars.json_schema.equality import shared_values
from constrain.grammars.json_schema.numbers import Bound

Json: TypeAlias = Any
Scope: TypeAlias = Any  # None in the root resource, else an Embedded or a referencing.Resolver

NULL, FALSE, TRUE, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(8))
BOOLEAN = FALSE | TRUE
NUMBER = INTEGER | FRACTION
ANY = 255

TYPE_BITS = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}


class Derived(Enum):
    """Keywords of schemas that are made here, not written by anyone."""

    APPLY = "apply"  # a function of the facts and the cursor


class Location(NamedTuple):
    """A schema and where it stands.

    ``chain`` holds the identities of the schemas that led here without leaving the value. A schema below
    ``not`` is silent: what it says of properties and items doesn't count as evaluating them.
    """

    schema: Json
    pointer: str
    scope: Scope
    chain: tuple[int, ...]
    is_silent: bool = False


class ObjectPart(NamedTuple):
    """What one schema says of properties, by name, by pattern, and of all others.

    ``additional`` is ``None`` where the schema says nothing of others. ``pointer`` is that schema's;
    ``chain`` ends with its identity, and is ``None`` for a part that evaluates nothing.
    """

    properties: dict[str, Json]
    patterns: dict[str, Json]
    additional: Json
    pointer: str
    scope: Scope
    chain: tuple[int, ...] | None = None
    rest_key: str = "additionalProperties"


class ArrayPart(NamedTuple):
    """Items of one schema: the first ones one by one, then the rest; ``pointer`` is that schema's.

    ``rest`` is ``None`` where the schema says nothing of others. ``prefix_key`` and ``rest_key`` are the
    keywords they stand under; ``chain`` is as in `ObjectPart`.
    """

    prefix: list[Json]
    rest: Json
    pointer: str
    scope: Scope
    prefix_key: str
    rest_key: str
    chain: tuple[int, ...] | None = None


class Keys(NamedTuple):
    """Some of the keys of objects: one ``name``; or those that match ``pattern``; or those that match none
    of ``patterns`` and are none of ``names``.

    ``schema`` further says what they look like, as strings.
    """

    name: str | None = None
    pattern: str | None = None
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    schema: Location | None = None


class Case(NamedTuple):
    """Members with some keys whose value satisfies a schema; any value does if that is ``None``."""

    keys: Keys
    value: Location | None


class Counted(NamedTuple):
    """How many members are of one of several cases, or how many items from ``start`` on.

    A name of ``absent`` counts as well if an object lacks it. ``high`` is ``None`` without a limit;
    ``feature`` is the keyword it comes from.
    """

    cases: tuple[Case, ...]
    low: int
    high: int | None
    pointer: str
    feature: str
    start: int = 0
    absent: tuple[str, ...] = ()
    chain: tuple[int, ...] | None = None

    @property
    def value(self) -> Location | None:
        """The schema of the first case: the only one of items."""
        return self.cases[0].value


class Unevaluated(NamedTuple):
    """``unevaluatedProperties`` or ``unevaluatedItems`` of the schema of identity ``owner``."""

    schema: Json
    pointer: str
    scope: Scope
    chain: tuple[int, ...]
    owner: int


class Group(NamedTuple):
    """Schemas of which one must hold (``anyOf``), or exactly one (``oneOf``).

    If ``is_negative`` the branches are the ways in which a schema fails. ``failures`` are the conjunctions
    whose union is the complement, where that is simpler than that no branch holds.
    """

    branches: tuple[Location, ...]
    pointer: str
    is_exclusive: bool = False
    is_negative: bool = False
    failures: tuple[tuple[Location, ...], ...] | None = None


class Unsupported(NamedTuple):
    """A keyword that isn't enforced, for values whose type is among ``types``."""

    feature: str
    pointer: str
    types: int
    hint: str


class Facts:
    """What is known about a value. All attributes are immutable, so a copy is shallow.

    Attributes
    ----------
    types : int
        Bits of the types it may have; ``FRACTION`` stands for numbers that are not integers.
    values : tuple or None
        The values it may have (``enum`` and ``const``), from the pointer ``values_at``.
    excluded : tuple
        Strings and numbers it is not.
    low, high : (Decimal, bool) or None
        Bounds of numbers; the bound itself is excluded where the second part is true.
    min_length, max_length, min_items, max_items, min_properties, max_properties : int or None
    multiple : Fraction or None
        What a number is a multiple of; ``not_multiples``: what it is no multiple of.
    patterns, formats, not_patterns, not_formats : tuple of (str, str)
        Source and pointer.
    grammars : tuple of (str or dict, str)
        ``x-grammar`` and its pointer.
    required, forbidden : tuple of str
    objects : tuple of ObjectPart
    names : tuple of Location
        Schemas of all keys (``propertyNames``).
    members, contains : tuple of Counted
    unevaluated_properties, unevaluated_items : tuple of Unevaluated
    unique_at : str or None
        Where it is said that items are unique.
    arrays : tuple of ArrayPart
    groups : tuple of Group
    unsupported : tuple of Unsupported
    key : tuple
        Identities of the schemas that were read; equal keys mean equal facts.
    pointer : str
        Where the first of them stands.
    reason : (str, str) or None
        Why no value is left, and the pointer of the keyword that excluded the last.
    """

    types = ANY
    values: tuple[Json, ...] | None = None
    values_at = ""
    low: Bound = None
    high: Bound = None
    excluded: tuple[Json, ...] = ()
    multiple: Fraction | None = None
    not_multiples: tuple[Fraction, ...] = ()
    min_length = 0
    max_length: int | None = None
    min_items = 0
    max_items: int | None = None
    min_properties = 0
    max_properties: int | None = None
    patterns: tuple[tuple[str, str], ...] = ()
    formats: tuple[tuple[str, str], ...] = ()
    grammars: tuple[tuple[Json, str], ...] = ()
    not_patterns: tuple[tuple[str, str], ...] = ()
    not_formats: tuple[tuple[str, str], ...] = ()
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    objects: tuple[ObjectPart, ...] = ()
    names: tuple[Location, ...] = ()
    members: tuple[Counted, ...] = ()
    unevaluated_properties: tuple[Unevaluated, ...] = ()
    arrays: tuple[ArrayPart, ...] = ()
    contains: tuple[Counted, ...] = ()
    unevaluated_items: tuple[Unevaluated, ...] = ()
    unique_at: str | None = None
    groups: tuple[Group, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    key: tuple[Hashable, ...] = ()
    pointer = "#"
    reason: tuple[str, str] | None = None

    def copy(self) -> Facts:
        """Return facts that can be narrowed without touching these."""
        other = Facts()
        other.__dict__.update(self.__dict__)
        return other

    def narrow(self, types: int, reason: str, pointer: str) -> None:
        """Keep only ``types``; ``reason`` says why if none is left."""
        self.types &= types
        if not self.types and self.reason is None:
            self.reason = (reason, pointer)

    def meet(self, other: Facts, pointer: str) -> None:
        """Narrow these facts to what ``other`` says as well; what ``other`` says stands at ``pointer``."""
        if other.types != ANY:
            self.narrow(other.types, "no type is left that every keyword allows", pointer)
        if other.values is not None:
            self.meet_values(other.values, pointer)
        self.excluded += other.excluded
        if other.low is not None or other.high is not None:
            self.meet_bounds(other.low, other.high, pointer)
        if other.multiple is not None:
            self.meet_multiple(other.multiple)
        self.not_multiples += other.not_multiples
        self.min_length = max(self.min_length, other.min_length)
        self.max_length = least(self.max_length, other.max_length)
        self.min_items = max(self.min_items, other.min_items)
        self.max_items = least(self.max_items, other.max_items)
        self.min_properties = max(self.min_properties, other.min_properties)
        self.max_properties = least(self.max_properties, other.max_properties)
        self.check_counts(pointer)
        for name in _TUPLES:
            if found := getattr(other, name):
                setattr(self, name, getattr(self, name) + found)
        if other.required or other.forbidden:
            self.meet_names(other.required, other.forbidden, pointer)
        self.unique_at = self.unique_at or other.unique_at

    def meet_values(self, values: tuple[Json, ...], pointer: str) -> None:
        """Keep only ``values``."""
        if self.values is not None:
            values = shared_values(self.values, values)
        self.values, self.values_at = values, pointer
        if not values:
            self.narrow(0, "no value is allowed", pointer)

    def meet_bounds(self, low: Bound, high: Bound, pointer: str) -> None:
        """Keep only numbers within bounds."""
        if low is not None and (self.low is None or low > self.low):
            self.low = low
        if high is not None and (
            self.high is None or (high[0], not high[1]) < (self.high[0], not self.high[1])
        ):
            self.high = high
        low, high = self.low, self.high
        if low is not None and high is not None:
            is_empty = low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
            if is_empty:
                self.narrow(~NUMBER, f"no number is within the bounds {low[0]} and {high[0]}", pointer)

    def meet_multiple(self, divisor: Fraction) -> None:
        """Keep only multiples of ``divisor``."""
        self.multiple = divisor if self.multiple is None else common_multiple(self.multiple, divisor)
        if self.multiple.denominator == 1:
            self.types &= ~FRACTION

    def meet_names(self, required: tuple[str, ...], forbidden: tuple[str, ...], pointer: str) -> None:
        """Keep only objects that have each name of ``required`` and none of ``forbidden``."""
        self.required = tuple(dict.fromkeys((*self.required, *required)))
        if forbidden:
            self.forbidden = tuple(dict.fromkeys((*self.forbidden, *forbidden)))
        if self.forbidden:
            for name in self.required:
                if name in self.forbidden:
                    reason = f"the property {name!r} is both required and forbidden"
                    self.narrow(~OBJECT, reason, pointer)

    def check_counts(self, pointer: str) -> None:
        """Exclude the types of which more parts are demanded than allowed."""
        for low, high, types, names in (
            (self.min_length, self.max_length, STRING, "minLength {} is more than maxLength {}"),
            (self.min_items, self.max_items, ARRAY, "minItems {} is more than maxItems {}"),
            (
                self.min_properties,
                self.max_properties,
                OBJECT,
                "minProperties {} is more than maxProperties {}",
            ),
        ):
            if high is not None and low > high:
                self.narrow(~types, names.format(low, high), pointer)

    def says_the_same(self, other: Facts) -> bool:
        """Do both say the same, as far as can be seen without a closer look?"""
        return all(
            self.__dict__.get(name, default) == other.__dict__.get(name, default)
            for name, default in _DEFAULTS.items()
        )

    @property
    def has_object_keywords(self) -> bool:
        """Is anything known that only objects may fail?"""
        return self.max_properties is not None or bool(
            self.objects
            or self.required
            or self.min_properties
            or self.forbidden
            or self.names
            or self.members
            or self.unevaluated_properties
        )

    @property
    def has_array_keywords(self) -> bool:
        """Is anything known that only arrays may fail?"""
        return self.max_items is not None or bool(
            self.arrays or self.min_items or self.contains or self.unique_at or self.unevaluated_items
        )


def least(first: int | None, second: int | None) -> int | None:
    """Return the smaller of two limits, of which ``None`` is none."""
    return second if first is None else first if second is None else min(first, second)


def common_multiple(first: Fraction, second: Fraction) -> Fraction:
    """Return the least positive number that is a multiple of both."""
    return Fraction(
        lcm(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )


# Attributes that say one thing after another.
_TUPLES = (
    "patterns",
    "formats",
    "grammars",
    "not_patterns",
    "not_formats",
    "objects",
    "names",
    "members",
    "unevaluated_properties",
    "arrays",
    "contains",
    "unevaluated_items",
    "groups",
    "unsupported",
)
_DEFAULTS = {
    name: getattr(Facts, name)
    for name in vars(Facts)
    if not name.startswith("_")
    and name not in ("key", "pointer", "reason", "values_at")
    and not callable(getattr(Facts, name))
    and not isinstance(vars(Facts)[name], property)
}
