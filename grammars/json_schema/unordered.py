"""Objects whose properties may come in any order.

The automaton has one way for each property, and a parameter that knows which were there: each at most once,
those required before the end, and no more or fewer than allowed.

A demand for members of certain values is met by one of several: that there is some property with such a value.
So an object with demands is a choice of objects without.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    CLOSE,
    COUNT,
    KEEP,
    MORE,
    Choice,
    Expression,
    Parameter,
    RuleReference,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.json_schema.counting import Kind, split
from constrain.grammars.json_schema.facts import Counted, Facts
from constrain.grammars.json_schema.instances import has_key
from constrain.grammars.json_schema.places import property_locations
from constrain.grammars.json_schema.terminals import COLON, COMMA, LEFT_BRACE, RIGHT_BRACE

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder
    from constrain.grammars.json_schema.objects import Extra, Slot

_MOST_WAYS = 256

Edge = tuple[int, TerminalReference | RuleReference | None, int]


class Element(NamedTuple):
    """Properties with one key, or with any of several, which must then be distinct from others.

    ``is_single``: there is at most one of them.
    """

    key: TerminalReference
    value: Alternatives
    is_required: bool
    is_single: bool
    is_distinct: bool = False


def unordered_machine(elements: list[Element], least: int, most: int | None) -> StateMachine:
    """Return the automaton of objects with ``elements`` in any order."""
    edges: list[Edge] = [
        (0, LEFT_BRACE, 1),
        (1, RIGHT_BRACE, 2),
        (3, RIGHT_BRACE, 2),
        (3, COMMA, 4),
    ]
    actions = [KEEP, CLOSE, CLOSE, MORE]
    n_states = 5
    values: dict[Alternatives, int] = {}
    required: list[int] = []
    n_single = 0
    for key, value, is_required, is_single, is_distinct in elements:
        action = COUNT
        if is_single:
            action, n_single = n_single, n_single + 1
            if is_required:
                required.append(action)
        # Several elements may have the same keys, so they have their own states behind them.
        colon = None if is_distinct else values.get(value)
        if colon is None:
            colon = n_states
            if not is_distinct:
                values[value] = colon
            n_states += 2
            edges.append((colon, COLON, colon + 1))
            edges += [(colon + 1, reference, 3) for reference in value]
            actions += [KEEP] * (1 + len(value))
        edges += [(1, key, colon), (4, key, colon)]
        actions += [action, action]
    parameter = Parameter(n_single, frozenset(required), least, most)
    distinct = frozenset(one.key.index for one in elements if one.is_distinct)
    return StateMachine(n_states, 0, frozenset({2}), tuple(edges), parameter, tuple(actions), distinct)


class _Way(NamedTuple):
    """A way to meet one demand: members that must meet it, and a property that is absent.

    Members are given by their places among the declared properties and, behind them, the additional ones.
    """

    members: tuple[int, ...] = ()
    absent: str | None = None


def unordered_body(
    builder: Builder,
    name: str,
    facts: Facts,
    slots: list[Slot],
    extras: list[Extra],
    least: int,
    most: int | None,
) -> Expression:
    """Return the body of the rule ``name``, the objects that ``facts`` allow, in any order."""
    if not facts.members:
        elements = [Element(builder.key(slot.name), slot.value, slot.is_required, True) for slot in slots]
        elements += [Element(extra.key, extra.value, False, False, True) for extra in extras]
        return unordered_machine(elements, least, most)
    return _Demands(builder, name, facts, slots, extras).body(least, most)


def _partitions(demands: list[int]) -> list[list[list[int]]]:
    """Return the ways to have ``demands`` met by members, none of which meets one demand twice."""
    found: list[list[list[int]]] = [[]]
    for demand in demands:
        found = [
            case
            for before in found
            for case in (
                [*before, [demand]],
                *(
                    [*before[:i], [*before[i], demand], *before[i + 1 :]]
                    for i in range(len(before))
                    if demand not in before[i]
                ),
            )
        ]
    return found


class _Demands:
    """Objects of which some members must have certain values."""

    def __init__(
        self, builder: Builder, name: str, facts: Facts, slots: list[Slot], extras: list[Extra]
    ) -> None:
        self._builder = builder
        self._name = name
        self._facts = facts
        self._slots = slots
        self._extras = extras
        members = list(facts.members)
        self._kinds = [
            split(
                builder,
                property_locations(builder, facts, slot.name),
                members,
                [
                    tuple(has_key(builder, slot.name, case.keys, counted.pointer) for case in counted.cases)
                    for counted in members
                ],
            )
            for slot in slots
        ]
        self._kinds += [
            split(builder, list(extra.one.locations), members, list(extra.one.counted)) for extra in extras
        ]
        self._places = range(len(self._kinds))

    def body(self, least: int, most: int | None) -> Expression:
        facts = self._facts
        ways: list[list[_Way]] = []
        for i, counted in enumerate(facts.members):
            found = self._ways(i, counted)
            if not found:
                return self._builder.nothing(
                    self._name, "no property can be what is asked for", counted.pointer
                )
            ways.append(found)
            n = 1
            for one in ways:
                n *= len(one)
            if n > _MOST_WAYS:
                raise UnsupportedFeatureError(
                    counted.feature,
                    pointer=counted.pointer,
                    reason=f"needs more than {_MOST_WAYS} cases for properties in any order",
                    hint='Say what is allowed instead of what is not, or use property_order="schema".',
                )
        machines: dict[Expression, None] = {}
        needed: list[Alternatives] = []
        for chosen in product(*ways):
            self._builder.watch.step(facts.pointer, 8 + 2 * len(self._kinds))
            for elements in self._elements(chosen):
                n_required = sum(one.is_required for one in elements)
                if most is not None and most < n_required:
                    continue
                if all(one.is_single for one in elements) and least > len(elements):
                    continue
                needed += [one.value for one in elements if one.is_required]
                machines[unordered_machine(elements, least, most)] = None
        if not machines:
            counted = facts.members[-1]
            return self._builder.nothing(
                self._name, "no properties can be what is asked for", counted.pointer
            )
        if len(machines) == 1:
            for value in needed:
                self._builder.need(self._name, value)
        found_bodies = tuple(machines)
        return found_bodies[0] if len(found_bodies) == 1 else Choice(found_bodies)

    def _ways(self, i: int, counted: Counted) -> list[_Way]:
        """Return the ways to meet demand ``i``."""
        if counted.low == 0:
            if counted.high:
                self._builder.drop_or_raise(
                    counted.feature,
                    counted.pointer,
                    'Use property_order="schema".',
                    "is not supported for properties in any order, where it bounds how many there are",
                )
            return [_Way()]
        absent = [name for name in counted.absent if name not in self._facts.required]
        able = [k for k, kinds in enumerate(self._kinds) if any(kind.counts[i] for kind in kinds)]
        if counted.low > 1 and absent:
            self._builder.drop_or_raise(
                counted.feature,
                counted.pointer,
                "Name the properties in required.",
                "is not supported where more than one property must be absent or wrong",
            )
            return [_Way()]
        n = len(self._slots)
        return [
            *(_Way(absent=name) for name in absent),
            *(
                _Way(members)
                for members in combinations_with_replacement(able, counted.low)
                if not any(k < n and members.count(k) > 1 for k in members)
            ),
        ]

    def _elements(self, chosen: tuple[_Way, ...]) -> Iterator[list[Element]]:
        """Yield the properties of objects that meet their demands in the ways ``chosen``."""
        absent = {way.absent for way in chosen}
        demands = [[i for i, way in enumerate(chosen) for m in way.members if m == k] for k in self._places]
        placed: list[Element] = []
        n = len(self._slots)
        for slot, kinds, met in zip(self._slots, self._kinds, demands, strict=False):
            is_required = slot.is_required or bool(met)
            value = self._value(slot.value, kinds, met)
            if slot.name in absent or not value:
                if is_required:
                    return
                continue
            placed.append(Element(self._builder.key(slot.name), value, is_required, True))
        loose: list[list[list[Element]]] = []
        for extra, kinds, met in zip(self._extras, self._kinds[n:], demands[n:], strict=True):
            value = self._value(extra.value, kinds, [])
            others = [Element(extra.key, value, False, False, True)] if value else []
            cases = []
            for members in _partitions(met):
                values = [self._value(extra.value, kinds, one) for one in members]
                if all(values):
                    cases.append([*(Element(extra.key, one, True, True, True) for one in values), *others])
            loose.append(cases)
        for several in product(*loose):
            yield [*placed, *(element for elements in several for element in elements)]

    def _value(self, value: Alternatives, kinds: list[Kind], met: list[int]) -> Alternatives:
        """Return the values that count for the demands ``met``, and for none that allows none."""
        barred = [i for i, one in enumerate(self._facts.members) if one.low == 0 and one.high == 0]
        if not met and not barred:
            return value
        chosen = [
            kind
            for kind in kinds
            if all(kind.counts[i] for i in met) and not any(kind.counts[i] for i in barred)
        ]
        return tuple(dict.fromkeys(reference for kind in chosen for reference in kind.value))
