"""Schemas that are made from others: complements, cases, dependencies.

A derived schema is a dictionary with the one key `Derived.APPLY`. Its value is

- `Facts`: what the schema says;
- a tuple of `Location`: schemas that must all hold;
- a `Negation`: a schema that must not hold.

Equal questions get the same object as an answer, so that places described by the same schemas can be
recognised by identity, and recursive schemas end.

A schema fails in one of several ways: by type, by a bound, by a property that has a wrong value. Each way
is a conjunction again, so the complement of a schema is a union of those. Complements of unions (and so
``not`` within ``not``) follow from De Morgan's laws.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeAlias

from constrain.grammars.json_schema.complement import failures
from constrain.grammars.json_schema.cursor import Cursor
from constrain.grammars.json_schema.equality import is_equal
from constrain.grammars.json_schema.facts import OBJECT, Derived, Facts, Group, Json, Location, Scope
from constrain.grammars.json_schema.pointers import token

# Reads one schema alone: what it says itself, and the schemas that must hold as well.
Reader: TypeAlias = Callable[[Location], tuple[Facts, list[Location]]]


class Negation(NamedTuple):
    """A schema that must not hold."""

    location: Location


class DerivedSchemas:
    """Makes derived schemas and keeps them.

    Parameters
    ----------
    reader : callable
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Hashable, dict[Json, Json]] = {}
        self._failures: dict[int, tuple[Location, ...]] = {}

    def _schema(self, key: Hashable, content: Facts | tuple[Location, ...] | Negation) -> dict[Json, Json]:
        return self._known.setdefault(key, {Derived.APPLY: content})

    def says(self, key: Hashable, content: Facts) -> dict[Json, Json]:
        """Return the schema that says ``content``, of which ``key`` is the name."""
        return self._schema(key, content)

    def negated(self, schema: Json, pointer: str, scope: Scope) -> Json:
        """Return the complement of a schema that stands at ``pointer``."""
        if isinstance(schema, bool):
            return not schema
        if isinstance(schema, dict):
            content = schema.get(Derived.APPLY)
            if isinstance(content, Negation):
                return content.location.schema
        return self._schema(("not", id(schema)), Negation(Location(schema, pointer, scope, ())))

    def failing(self, location: Location) -> Location:
        """Return the location of the complement of a schema."""
        schema = self.negated(location.schema, location.pointer, location.scope)
        return location._replace(schema=schema, is_silent=True)

    def is_contradiction(self, locations: list[Location], new: list[Location]) -> bool:
        """Are two of ``locations``, one of them in ``new``, a schema and its complement?"""
        positive, negative = _split(locations)
        new_positive, new_negative = (positive, negative) if new is locations else _split(new)
        return _is_pair(negative, new_positive) or (bool(new_negative) and _is_pair(new_negative, positive))

    def together(self, locations: tuple[Location, ...]) -> Json:
        """Return the conjunction of schemas."""
        return self._schema(("all", *(id(location.schema) for location in locations)), locations)

    def any_of(self, locations: tuple[Location, ...]) -> Json:
        """Return the union of schemas."""
        facts = Facts()
        facts.groups = (Group(locations, locations[-1].pointer),)
        return self.says(("any", *(id(location.schema) for location in locations)), facts)

    def one_of_several(self, locations: tuple[Location, ...]) -> Location:
        """Return the place of the union of schemas."""
        if len(locations) == 1:
            return locations[0]
        return locations[0]._replace(schema=self.any_of(locations))

    def either(self, location: Location) -> Group:
        """Return the two cases that a schema holds and that it doesn't."""
        return Group((location, self.failing(location)), location.pointer, failures=())

    def conditional(self, condition: Location, then: Location, otherwise: Location) -> Group:
        """Return the two cases of ``if``."""
        not_condition = self.failing(condition)
        first = condition._replace(schema=self.together((condition, then)))
        second = condition._replace(schema=self.together((not_condition, otherwise)))
        fails = ((condition, self.failing(then)), (not_condition, self.failing(otherwise)))
        return Group((first, second), condition.pointer, failures=fails)

    def dependency(self, name: str, demand: Json, at: Cursor, keyword: str) -> Group:
        """Return the two cases that objects lack a property, or have it and satisfy ``demand``.

        ``demand`` is a schema or a list of other properties.
        """
        pointer = f"{at.pointer}/{keyword}/{token(name)}"
        chain = (*at.chain, id(at.schema))

        def place(schema: Json) -> Location:
            return Location(schema, pointer, at.scope, chain, at.is_silent)

        def of_object(required: tuple[str, ...], forbidden: tuple[str, ...], types: int) -> Location:
            facts = Facts()
            facts.types = types
            facts.required, facts.forbidden = required, forbidden
            return place(self.says(("object", required, forbidden, types), facts))

        without = of_object((), (name,), ~0)
        if isinstance(demand, list):
            others = tuple(dict.fromkeys(demand))
            case = of_object((name, *others), (), OBJECT)
            fails: tuple[tuple[Location, ...], ...] = tuple(
                (of_object((name,), (other,), OBJECT),) for other in others
            )
        else:
            present, rest = of_object((name,), (), OBJECT), place(demand)
            case = place(self.together((present, rest)))
            fails = ((present, self.failing(rest)),)
        return Group((without, case), pointer, failures=fails)

    def constant(self, value: Json, pointer: str) -> Json:
        """Return the schema of one value."""
        facts = Facts()
        facts.values, facts.values_at = (value,), pointer
        schema = self._known.get(("constant", id(value)))
        # The value is kept with the schema, so its identity stays its own.
        return schema or self.says(("constant", id(value)), facts)

    def failures(self, location: Location) -> tuple[Location, ...]:
        """Return the ways in which a schema fails: schemas whose union is its complement."""
        known = self._failures.get(id(location.schema))
        if known is None:
            facts, others = self._reader(location)
            known = tuple(failures(self, facts, others, location))
            self._failures[id(location.schema)] = known
        return known


def _split(locations: list[Location]) -> tuple[list[Location], list[Location]]:
    """Return which of ``locations`` must hold, and the schemas that must not."""
    positive, negative = [], []
    for location in locations:
        content = location.schema.get(Derived.APPLY) if isinstance(location.schema, dict) else None
        if isinstance(content, Negation):
            negative.append(content.location)
        else:
            positive.append(location)
    return positive, negative


def _is_pair(negative: list[Location], positive: list[Location]) -> bool:
    return any(
        one.scope is other.scope and is_equal(one.schema, other.schema)
        for one in negative
        for other in positive
    )


def read_derived(facts: Facts, value: Json, at: Cursor) -> None:
    """Read the content of a derived schema."""
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), at.pointer)
    if isinstance(value, Facts):
        facts.meet(value, at.pointer)
        return
    if isinstance(value, Negation):
        ways = at.derived.failures(value.location)
        if len(ways) > 1:
            branches = tuple([way._replace(chain=chain, is_silent=True) for way in ways])
            facts.groups += (Group(branches, at.pointer, is_negative=True),)
            return
        if not ways:
            facts.narrow(0, "what must not hold always does", at.pointer)
        at.stack.extend(way._replace(chain=chain, is_silent=True) for way in ways)
        return
    for location in reversed(value):
        silent = location.is_silent or at.is_silent
        at.stack.append(location._replace(chain=chain, is_silent=silent))
