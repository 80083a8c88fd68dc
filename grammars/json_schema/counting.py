"""Automata of objects whose members are counted.

A state is how far the properties that have their place are read, and how many members of each kind
there were, up to what still makes a difference.

Keys of additional properties may repeat in a text, and readers keep the last of those. So a wrong member
that is asked for must not be overwritten by a right one: of one class of keys, right members come first
and wrong ones last. A demand for several members can't be met by additional ones, which may be one and the
same, unless the required properties and one more are enough; nor can several demands that are met in different
ways. Then keys must differ, which `unordered` sees to.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import Expression, RuleReference, StateMachine, TerminalReference
from constrain.grammars.json_schema.facts import Counted, Facts, Location
from constrain.grammars.json_schema.instances import has_key
from constrain.grammars.json_schema.places import property_locations
from constrain.grammars.json_schema.terminals import COLON, COMMA, LEFT_BRACE, RIGHT_BRACE

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder
    from constrain.grammars.json_schema.objects import Extra, Slot

_MOST_STATES = 20_000

Edge = tuple[int, TerminalReference | RuleReference | None, int]


class Kind(NamedTuple):
    """Members that count for the same demands: what their values may be, and which demands."""

    value: Alternatives
    counts: tuple[bool, ...]


def split(
    builder: Builder,
    locations: list[Location],
    members: list[Counted],
    applies: list[tuple[bool, ...]],
) -> list[Kind]:
    """Return the kinds of values that ``locations`` describe, by the demands for which they count.

    ``applies`` says which cases of each demand speak of the value.
    """
    cases: list[tuple[list[Location], tuple[bool, ...]]] = [(locations, ())]
    for counted, has_case in zip(members, applies, strict=True):
        values = [case.value for case, applied in zip(counted.cases, has_case, strict=True) if applied]
        if not values or None in values:
            cases = [(places, (*counts, bool(values))) for places, counts in cases]
            continue
        right = builder.derived.one_of_several(tuple(value for value in values if value is not None))
        wrong = builder.derived.failing(right)
        cases = [
            (added, (*counts, is_counted))
            for places, counts in cases
            for one, is_counted in ((right, True), (wrong, False))
            if not builder.is_impossible(added := [*places, one])
        ]
    kinds = []
    for places, counts in cases:
        value = builder.conjunction(places)
        if value:
            kinds.append(Kind(value, counts))
    return kinds


def count_members(
    builder: Builder,
    name: str,
    facts: Facts,
    members: list[Counted],
    slots: list[Slot],
    extras: list[Extra],
) -> Expression | None:
    """Return the body of the rule ``name``: objects with counted members; ``None`` if keys must differ."""
    placed = [
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
    loose = [
        split(
            builder,
            list(extra.one.locations),
            members,
            [*extra.one.counted, *[(True,)] * (len(members) - len(extra.one.counted))],
        )
        for extra in extras
    ]
    if not _may_repeat(members, slots, placed, loose):
        return None
    required = frozenset(slot.name for slot in slots if slot.is_required)
    for i, counted in enumerate(members):
        if counted.low and required.issuperset(counted.absent):
            able = [r for kinds in (*placed, *loose) for kind in kinds if kind.counts[i] for r in kind.value]
            if not able:
                return builder.nothing(name, "no property can be what is asked for", counted.pointer)
            builder.need(name, tuple(able))
    return _Machine(builder, facts, members, slots, placed, extras, loose).build()


def _may_repeat(
    members: list[Counted], slots: list[Slot], placed: list[list[Kind]], loose: list[list[Kind]]
) -> bool:
    """Are demands met for sure, even if keys of additional properties repeat?"""
    for i, counted in enumerate(members):
        if counted.low < 2 or not any(kind.counts[i] for kinds in loose for kind in kinds):
            continue
        certain = sum(
            slot.is_required and all(kind.counts[i] for kind in kinds)
            for slot, kinds in zip(slots, placed, strict=True)
        )
        if certain + 1 < counted.low:
            return False
    lower = _lower(members)
    for kinds in loose:
        counts = sorted({frozenset(i for i in lower if kind.counts[i]) for kind in kinds}, key=len)
        if any(not a <= b for a, b in pairwise(counts)):
            return False
    return True


def _lower(members: list[Counted]) -> list[int]:
    """Return the demands for members of certain values."""
    return [
        i
        for i, counted in enumerate(members)
        if counted.low and any(case.value is not None for case in counted.cases)
    ]


class _Machine:
    """Builds the automaton; see the module's text."""

    def __init__(
        self,
        builder: Builder,
        facts: Facts,
        members: list[Counted],
        slots: list[Slot],
        placed: list[list[Kind]],
        extras: list[Extra],
        loose: list[list[Kind]],
    ) -> None:
        self._builder = builder
        self._facts = facts
        self._members = members
        self._slots = slots
        self._placed = placed
        self._extras = extras
        self._loose = loose
        # For each slot and each demand, how many of the names that count if absent have a later slot.
        self._missing = [tuple(0 for _ in members)]
        for slot in reversed(slots):
            after = self._missing[-1]
            self._missing.append(
                tuple(n + (slot.name in counted.absent) for n, counted in zip(after, members, strict=True))
            )
        self._missing.reverse()
        self._edges: list[Edge] = []
        self._states: dict[object, int] = {}
        self._todo: list[tuple[bool, int, tuple[int, ...], tuple[frozenset[int], ...]]] = []
        self._n_states = 2
        self._last_required = max((i for i, slot in enumerate(slots) if slot.is_required), default=-1)
        self._lower = _lower(members)

    def build(self) -> StateMachine:
        # A state: is a member read already, the next slot, counts, and for each class of additional
        # properties the demands that its members have to go on meeting.
        placed = frozenset(slot.name for slot in self._slots)
        zero = tuple(
            min(sum(name not in placed for name in counted.absent), counted.low) for counted in self._members
        )
        done: tuple[frozenset[int], ...] = tuple(frozenset() for _ in self._extras)
        start = self._key_state(False, 0, zero, done)
        self._edges.append((0, LEFT_BRACE, start))
        if self._last_required < 0 and self._is_enough(zero, 0):
            self._edges.append((start, RIGHT_BRACE, 1))
        while self._todo:
            state = self._todo.pop()
            self._builder.watch.step(self._facts.pointer, 8)
            if self._n_states > _MOST_STATES:
                counted = self._members[-1]
                raise UnsupportedFeatureError(
                    counted.feature,
                    pointer=counted.pointer,
                    reason=f"needs more than {_MOST_STATES:,} states here, which is not supported",
                    hint="Use smaller numbers.",
                )
            self._expand(*state)
        return StateMachine(self._n_states, 0, frozenset({1}), tuple(self._edges))

    def _state(self, key: object) -> tuple[int, bool]:
        known = self._states.get(key)
        if known is not None:
            return known, False
        self._states[key] = self._n_states
        self._n_states += 1
        return self._n_states - 1, True

    def _key_state(
        self, is_member: bool, slot: int, counts: tuple[int, ...], done: tuple[frozenset[int], ...]
    ) -> int:
        key = (is_member, slot, counts, done)
        state, is_new = self._state(key)
        if is_new:
            self._todo.append(key)
        return state

    def _after(self, slot: int, counts: tuple[int, ...], done: tuple[frozenset[int], ...]) -> int:
        """Return the state after a member."""
        state, is_new = self._state(("after", slot, counts, done))
        if is_new:
            if slot < len(self._slots) or self._extras:
                self._edges.append((state, COMMA, self._key_state(True, slot, counts, done)))
            if slot > self._last_required and self._is_enough(counts, slot):
                self._edges.append((state, RIGHT_BRACE, 1))
        return state

    def _is_enough(self, counts: tuple[int, ...], slot: int) -> bool:
        """Is every demand met if nothing from ``slot`` on follows?"""
        return all(
            count + missing >= counted.low
            for count, missing, counted in zip(counts, self._missing[slot], self._members, strict=True)
        )

    def _add(self, counts: tuple[int, ...], kind: Kind) -> tuple[int, ...] | None:
        """Return the counts after one more member; ``None`` if there are too many."""
        after = []
        for count, counted, is_counted in zip(counts, self._members, kind.counts, strict=True):
            more = count + is_counted
            if counted.high is None:
                more = min(more, counted.low)
            elif more > counted.high:
                return None
            after.append(more)
        return tuple(after)

    def _without(self, counts: tuple[int, ...], slot: int) -> tuple[int, ...]:
        """Return the counts once it is known that the property of ``slot`` is absent."""
        name = self._slots[slot].name
        return tuple(
            min(count + 1, counted.low) if name in counted.absent else count
            for count, counted in zip(counts, self._members, strict=True)
        )

    def _expand(
        self, is_member: bool, slot: int, counts: tuple[int, ...], done: tuple[frozenset[int], ...]
    ) -> None:
        source = self._states[is_member, slot, counts, done]
        if slot < len(self._slots):
            one = self._slots[slot]
            after = [(kind, slot + 1, done) for kind in self._placed[slot]]
            self._members_of(source, self._builder.key(one.name), counts, after)
            if not one.is_required:
                skipped = self._without(counts, slot)
                self._edges.append((source, None, self._key_state(is_member, slot + 1, skipped, done)))
            if not one.after_extra:
                return
        for i, extra in enumerate(self._extras):
            after = []
            for kind in self._loose[i]:
                met = frozenset(j for j in self._lower if kind.counts[j])
                if done[i] <= met:
                    after.append((kind, slot, (*done[:i], met, *done[i + 1 :])))
            self._members_of(source, extra.key, counts, after)

    def _members_of(
        self,
        source: int,
        key: TerminalReference,
        counts: tuple[int, ...],
        cases: list[tuple[Kind, int, tuple[frozenset[int], ...]]],
    ) -> None:
        """Add members with ``key``, each case with the slot and the demands that hold afterwards."""
        reached = [
            (kind, self._after(slot, added, done))
            for kind, slot, done in cases
            if (added := self._add(counts, kind)) is not None
        ]
        if not reached:
            return
        before_colon, colon = self._n_states, self._n_states + 1
        self._n_states += 2
        self._edges += [(source, key, before_colon), (before_colon, COLON, colon)]
        self._edges += [(colon, reference, target) for kind, target in reached for reference in kind.value]
