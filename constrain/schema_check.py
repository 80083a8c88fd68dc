"""The check of a JSON Schema: what its grammar leaves open is decided value by value, while the text is written.

The text is read piece by piece. When a value is finished (a string at its closing quotation mark, a container at its
bracket), it is evaluated against every schema that applies to it whatever its neighbours are: those that
``properties``, ``items`` and the like of the schemas around it name, through ``$ref`` and ``allOf``. What depends
on neighbours (``anyOf``, ``not``, ``unevaluatedProperties``) is decided where the container around is
finished, at last with the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from constrain.checks import Check, Failure, Progress, Tally, Written
from constrain.grammars.json_schema.equality import is_equal
from constrain.grammars.json_schema.evaluate import Evaluator, Fault, Place, applied_at, applied_to, referred
from constrain.grammars.json_schema.options import DRAFTS, SchemaGrammar, SchemaOptions
from constrain.grammars.limits import Watch

_MOST_DIGITS = 4_000
_TOO_LARGE = object()
_IN_STRING = re.compile(rb'[^"\\]*')
_SCALAR = re.compile(rb"[^,\]}\s:]*")


def schema_checks(
    read: SchemaGrammar, options: SchemaOptions, identity: object, watch: Watch
) -> tuple[Check, ...]:
    """Return the check of what the grammar of a schema leaves open; none where it leaves nothing open."""
    if not read.left_open:
        return ()
    evaluator = Evaluator(
        read.root, DRAFTS[read.draft], options.registry, has_formats=options.formats, limits=watch.limits
    )
    return (SchemaCheck(evaluator, identity, read.left_open),)


class SchemaCheck:
    """Demands that a JSON text satisfies a schema; equal to others of the same ``identity``.

    Parameters
    ----------
    evaluator : Evaluator
    identity : hashable
        What the schema was read from.
    pointers : tuple of str
        What the grammar leaves open, as JSON pointers.
    """

    __slots__ = ("evaluator", "identity", "pointers")

    def __init__(self, evaluator: Evaluator, identity: object, pointers: tuple[str, ...]) -> None:
        self.evaluator = evaluator
        self.identity = identity
        self.pointers = pointers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaCheck) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def begin(self, tally: Tally) -> Progress | None:
        """See `Check`."""
        return _Reading(self, tally, [])

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`: the place is the end of the value at which the text fails first."""
        faults: list[Fault] = []
        reading: _Reading | None = _Reading(self, Tally(), faults)
        for offset in range(len(data)):
            assert reading is not None
            reading = reading.read(data[offset : offset + 1])
            if reading is None:
                return _failure(faults[-1], offset)
        assert reading is not None
        return None if reading.ends() else _failure(faults[-1], len(data))

    def unconditional(self, place: Place) -> tuple[Place, ...]:
        """Return the schemas that hold of a value wherever the one at ``place`` does, itself among them."""
        found: list[Place] = []
        seen: set[int] = set()
        todo = [place]
        while todo:
            place = todo.pop()
            if not isinstance(place.schema, dict) or id(place.schema) in seen:
                continue
            seen.add(id(place.schema))
            place = self.evaluator.enter(place)
            found.append(place)
            schema = place.schema
            if "$ref" in schema:
                todo.append(referred(place, schema["$ref"], place.resolver.lookup(schema["$ref"])))
                if place.draft <= 7:
                    found.pop()
                    continue
            for i, branch in enumerate(schema.get("allOf", ())):
                pointer = f"{place.pointer}/allOf/{i}"
                todo.append(Place(branch, pointer, place.resolver, place.draft))
        return tuple(found)


def _failure(fault: Fault, offset: int) -> Failure:
    value = f"the value at {fault.instance!r}" if fault.instance else "a value"
    return Failure(offset, f"{value} that satisfies {fault.pointer!r}", fault.pointer)


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A finished member of an open container, and those before it."""

    before: _Member | None
    key: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """An open container.

    ``places`` are the schemas of the container, ``flat`` those and all that hold with them.
    """

    parent: _Open | None
    is_object: bool
    places: tuple[Place, ...]
    flat: tuple[Place, ...]
    key: str | None = None
    members: _Member | None = None
    n_members: int = 0

    def earlier(self) -> Iterator[_Member]:
        """The finished members, the last one first."""
        member = self.members
        while member is not None:
            yield member
            member = member.before

    def value(self) -> Any:
        """The container as data; of equal names the last one counts."""
        members = list(self.earlier())[::-1]
        return {m.key: m.value for m in members} if self.is_object else [m.value for m in members]


_BLANK, _STRING, _ESCAPE, _OTHER = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What is known after a part of a JSON text."""

    check: SchemaCheck
    tally: Tally
    faults: list[Fault] = field(repr=False)
    mode: int = _BLANK
    scalar: Written = field(default_factory=Written)
    open: _Open | None = None
    is_done: bool = False

    def read(self, data: bytes) -> _Reading | None:
        """See `Progress`."""
        mode, scalar, at, is_done = self.mode, self.scalar, self.open, self.is_done
        position = 0
        while position < len(data):
            if mode == _ESCAPE:
                scalar = scalar.and_then(data[position : position + 1])
                position += 1
                mode = _STRING
                continue
            if mode in (_STRING, _OTHER):
                found = (_IN_STRING if mode == _STRING else _SCALAR).match(data, position)
                assert found is not None
                if found.end() > position:
                    scalar = scalar.and_then(found.group())
                    position = found.end()
                if position == len(data):
                    break
                if mode == _STRING:
                    byte = data[position : position + 1]
                    scalar = scalar.and_then(byte)
                    position += 1
                    if byte == b"\\":
                        mode = _ESCAPE
                        continue
                mode = _BLANK
                value = _scalar(bytes(scalar))
                if value is _TOO_LARGE:
                    self._fail("")
                    return None
                if at is not None and at.is_object and at.key is None:
                    if not self._is_name(at, value):
                        return None
                    at = replace(at, key=value)
                    continue
                if not self._holds(value, self._places(at)):
                    return None
                if at is None:
                    is_done = True
                elif (at := self._with(at, value)) is None:
                    return None
                continue
            byte = data[position : position + 1]
            position += 1
            if byte in b" \t\r\n,:":
                continue
            if byte in b"{[":
                places = self._places(at)
                flat = tuple(one for place in places for one in self.check.unconditional(place))
                at = _Open(at, byte == b"{", places, flat)
            elif byte in b"}]":
                assert at is not None
                value = at.value()
                if not self._holds(value, at.places):
                    return None
                at = at.parent
                if at is None:
                    is_done = True
                elif (at := self._with(at, value)) is None:
                    return None
            else:
                mode = _STRING if byte == b'"' else _OTHER
                scalar = Written(None, byte)
        return _Reading(self.check, self.tally, self.faults, mode, scalar, at, is_done)

    def ends(self) -> bool:
        """See `Progress`."""
        if self.mode == _OTHER and self.open is None:
            value = _scalar(bytes(self.scalar))
            return self._holds(value, self._places(None)) if value is not _TOO_LARGE else self._fail("")
        return self.is_done

    def _places(self, at: _Open | None) -> tuple[Place, ...]:
        """The schemas of the value that begins in the container ``at``."""
        evaluator = self.check.evaluator
        if at is None:
            return (evaluator.root,)
        if at.is_object:
            assert at.key is not None
            found = [place for one in at.flat for place in applied_to(evaluator, one, at.key)]
        else:
            found = [place for one in at.flat if (place := applied_at(one, at.n_members)) is not None]
        return tuple(place for place in found if place.schema is not True and place.schema != {})

    def _holds(self, value: Any, places: tuple[Place, ...]) -> bool:
        """Does a finished value satisfy its schemas?"""
        return not places or self.tally.ask(lambda: self._has_no_fault(value, places))

    def _has_no_fault(self, value: Any, places: tuple[Place, ...]) -> bool:
        for place in places:
            fault = self.check.evaluator.fault(value, place)
            if fault is not None:
                self.faults[:] = [fault]
                return False
        return True

    def _fail(self, pointer: str) -> bool:
        """Note a fault of the text itself."""
        self.faults[:] = [Fault(pointer or "#", "")]
        return False

    def _is_name(self, at: _Open, name: str) -> bool:
        """May a property of the container have this name?"""
        places = tuple(
            Place(one.schema["propertyNames"], f"{one.pointer}/propertyNames", one.resolver, one.draft)
            for one in at.flat
            if "propertyNames" in one.schema and one.draft >= 6
        )
        return self._holds(name, places)

    def _with(self, at: _Open, value: Any) -> _Open | None:
        """The container with one more finished member; ``None`` where that cannot be put right any more."""
        for one in at.flat if not at.is_object else ():
            if one.schema.get("uniqueItems") is True and not self.tally.ask(
                lambda: not any(is_equal(value, member.value) for member in at.earlier())
            ):
                self.faults[:] = [Fault(f"{one.pointer}/uniqueItems", "")]
                return None
        member = _Member(at.members, at.key or "", value)
        return replace(at, key=None, members=member, n_members=at.n_members + 1)


def _scalar(text: bytes) -> Any:
    """Return the value of a string, a number or a word; numbers are exact.

    Exponents of more than 17 digits are beyond what can be compared: such numbers are no members.
    """
    if text[:1] in b'tfn"':
        return json.loads(text)
    if any(byte in b".eE" for byte in text) or len(text) > _MOST_DIGITS:
        try:
            return Decimal(text.decode())
        except InvalidOperation:
            return _TOO_LARGE
    return int(text)
