"""The normal form of a conjunction of schemas: what is known about one value.

A schema is read keyword by keyword into `Facts`; a schema that applies to the same place (a member of
``allOf``, the target of ``$ref``, a branch of ``anyOf``) is read into the same facts, which become the
intersection. What concerns the parts of a value (``properties``, ``items``) is kept as it stands, one
entry for each schema that has it, since ``additionalProperties`` speaks of its own neighbours only.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from constrain.grammars.json_schema.numbers import Bound

Json: TypeAlias = Any
Scope: TypeAlias = Any  # None in the root resource, else an Embedded or a referencing.Resolver

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(7))
NUMBER = INTEGER | FRACTION
ANY = 127

TYPE_BITS = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}


class Location(NamedTuple):
    """A schema and where it stands.

    ``chain`` holds the identities of the schemas that led here without leaving the value.
    """

    schema: Json
    pointer: str
    scope: Scope
    chain: tuple[int, ...]


class ObjectPart(NamedTuple):
    """``properties`` and ``additionalProperties`` of one schema; ``pointer`` is that schema's."""

    properties: dict[str, Json]
    additional: Json
    pointer: str
    scope: Scope


class ArrayPart(NamedTuple):
    """Items of one schema: the first ones one by one, then the rest; ``pointer`` is that schema's.

    ``prefix_key`` and ``rest_key`` are the keywords they stand under.
    """

    prefix: list[Json]
    rest: Json
    pointer: str
    scope: Scope
    prefix_key: str
    rest_key: str


class Group(NamedTuple):
    """Schemas of which one must hold (``anyOf``), or exactly one (``oneOf``)."""

    branches: list[Json]
    pointer: str
    scope: Scope
    chain: tuple[int, ...]
    is_exclusive: bool


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
    low, high : (Decimal, bool) or None
        Bounds of numbers; the bound itself is excluded where the second part is true.
    min_length, max_length, min_items, max_items, min_properties, max_properties : int or None
    patterns, formats : tuple of (str, str)
        Source and pointer.
    grammars : tuple of (str or dict, str)
        ``x-grammar`` and its pointer.
    required : tuple of str
    objects : tuple of ObjectPart
    arrays : tuple of ArrayPart
    groups : tuple of Group
    unsupported : tuple of Unsupported
    key : tuple of int
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
    min_length = 0
    max_length: int | None = None
    min_items = 0
    max_items: int | None = None
    min_properties = 0
    max_properties: int | None = None
    patterns: tuple[tuple[str, str], ...] = ()
    formats: tuple[tuple[str, str], ...] = ()
    grammars: tuple[tuple[Json, str], ...] = ()
    required: tuple[str, ...] = ()
    objects: tuple[ObjectPart, ...] = ()
    arrays: tuple[ArrayPart, ...] = ()
    groups: tuple[Group, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    key: tuple[int, ...] = ()
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

    @property
    def has_object_keywords(self) -> bool:
        """Is anything known that only objects may fail?"""
        return bool(self.objects or self.required or self.min_properties) or self.max_properties is not None

    @property
    def has_array_keywords(self) -> bool:
        """Is anything known that only arrays may fail?"""
        return bool(self.arrays or self.min_items) or self.max_items is not None
