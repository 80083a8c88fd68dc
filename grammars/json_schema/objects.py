"""Objects as rules: declared properties in their order, additional ones last; or in any order (`unordered`).

The rule's automaton has a chain of states, one before each property, in which its key or a later one
may be read. Optional properties are skipped by edges that read nothing, so the size is linear.

Where members are counted (``minProperties``, ``maxProperties``, and the complements of schemas of
properties, which ask for at least one wrong member), states also hold the counts; see `counting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.ir import Expression, RuleReference, StateMachine, TerminalReference
from constrain.grammars.json_schema.counting import count_members
from constrain.grammars.json_schema.facts import Case, Counted, Facts, Keys
from constrain.grammars.json_schema.instances import satisfies
from constrain.grammars.json_schema.keys import KeyClass, key_classes, key_terminal, listed_names
from constrain.grammars.json_schema.places import additional_locations, property_locations
from constrain.grammars.json_schema.pointers import token
from constrain.grammars.json_schema.strings import has_surrogate
from constrain.grammars.json_schema.terminals import COLON, COMMA, LEFT_BRACE, RIGHT_BRACE
from constrain.grammars.json_schema.unordered import unordered_body

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder

_END = 2
_ACCEPTING = frozenset((_END,))


class Slot(NamedTuple):
    """A property that has its place: its name, what its value may be, and whether it is required.

    ``after_extra``: additional properties may stand before it.
    """

    name: str
    value: Alternatives
    is_required: bool
    after_extra: bool


class Extra(NamedTuple):
    """Additional properties of one class: the terminal of their keys, and what their values may be."""

    key: TerminalReference
    value: Alternatives
    one: KeyClass


def object_body(builder: Builder, name: str, facts: Facts) -> Expression:
    """Return the body of the rule ``name``, the objects that ``facts`` allow."""
    slots = _slots(builder, name, facts)
    if not isinstance(slots, list):
        return slots
    known = _known_names(facts)
    known.update(dict.fromkeys(facts.required))
    if facts.names:
        known.update((slot.name, None) for slot in slots)
    pointers: dict[str, str] = {}
    is_any = builder.options.property_order == "any"
    names = listed_names(builder, facts) if facts.names else None
    extras: list[Extra] = []
    if names is None:
        extras = _extras(builder, facts, known, pointers, is_distinct=is_any)
    n_required = 0
    for slot in slots:
        if not slot.is_required:
            continue
        if slot.after_extra and not slot.value:
            return builder.nothing(
                name,
                f"the required property {slot.name!r} is not declared, and no additional ones are allowed",
                facts.pointer,
            )
        n_required += 1
        builder.need(name, slot.value)
    least, most = facts.min_properties, facts.max_properties
    if most is not None:
        if most < n_required:
            return builder.nothing(
                name, f"maxProperties {most} is less than the {n_required} required properties", facts.pointer
            )
        if most == n_required:  # nothing optional fits
            slots = [slot for slot in slots if slot.is_required]
            extras = []
        if not extras and most >= len(slots):
            most = None
    if least <= n_required:
        least = 0
    elif not extras and least > len(slots):
        reason = f"minProperties is {least}, and no more than {len(slots)} are allowed"
        return builder.nothing(name, reason, facts.pointer)
    builder.watch.step(facts.pointer, 4 * len(slots))
    if least and not n_required:
        values = [*(slot.value for slot in slots), *(extra.value for extra in extras)]
        builder.need(name, tuple(reference for value in values for reference in value))
    if is_any and (facts.members or extras or len(slots) > 1):
        return unordered_body(builder, name, facts, slots, extras, least, most)
    members = list(facts.members)
    if least > 1 or most is not None or (least and members):
        members.append(Counted((Case(Keys(), None),), least, most, facts.pointer, "minProperties"))
    if members:
        found = count_members(builder, name, facts, members, slots, extras)
        if found is None:
            # Keys must differ, so the declared order is given up.
            extras = _extras(builder, facts, known, pointers, is_distinct=True)
            found = unordered_body(builder, name, facts, slots, extras, least, most)
        return found
    return _machine(builder, slots, extras, least == 0)


def _known_names(facts: Facts) -> dict[str, None]:
    """Return the names that are no additional properties' names."""
    known: dict[str, None] = {}
    for part in facts.objects:
        known.update(dict.fromkeys(part.properties))
    if facts.members:
        known.update(_counted_names(facts))
    if facts.forbidden:
        known.update(dict.fromkeys(facts.forbidden))
    return known


def _counted_names(facts: Facts) -> dict[str, None]:
    """Return the names that make a difference to what is counted."""
    found: dict[str, None] = {}
    for counted in facts.members:
        for case in counted.cases:
            if case.keys.name is not None:
                found[case.keys.name] = None
            found.update(dict.fromkeys(case.keys.names))
        found.update(dict.fromkeys(counted.absent))
    return found


def _slots(builder: Builder, rule: str, facts: Facts) -> list[Slot] | Expression:
    """Return the properties that have their place, or the body of a rule without texts."""
    required = dict.fromkeys(facts.required)
    undeclared = required.copy()
    for part in facts.objects:
        for name in part.properties:
            undeclared.pop(name, None)
    slots: list[Slot] = []
    for name, value in _declared(builder, facts, required):
        is_required = name in required
        if value and not has_surrogate(name):
            slots.append(Slot(name, value, is_required, False))
        elif is_required:
            reason, where = builder.why_empty(f"{facts.pointer}/properties/{token(name)}")
            return builder.nothing(rule, f"the required property {name!r} can have no value: {reason}", where)
    for name in undeclared:
        value = () if has_surrogate(name) else _value(builder, facts, name)
        slots.append(Slot(name, value, True, True))
    return slots


def _declared(builder: Builder, facts: Facts, required: dict[str, None]) -> list[tuple[str, Alternatives]]:
    """Return the properties that have their place before the additional ones, with their values."""
    is_special = facts.names or facts.forbidden or facts.members
    if len(facts.objects) == 1 and not is_special and not facts.objects[0].patterns:
        (properties, _, _, pointer, scope, *_) = facts.objects[0]
        base = f"{pointer}/properties/"
        value = builder.value
        return [(name, value(schema, base + token(name), scope)) for name, schema in properties.items()]
    names = dict.fromkeys(key for part in facts.objects for key in part.properties)
    if is_special:
        others = _counted_names(facts)
        if facts.names and (listed := listed_names(builder, facts)) is not None:
            others.update(dict.fromkeys(listed))
        names.update((name, None) for name in others if name not in required)
    return [(name, _value(builder, facts, name)) for name in names]


def _value(builder: Builder, facts: Facts, name: str) -> Alternatives:
    if facts.names and not satisfies(builder, name, builder.facts(facts.names)):
        builder.note_empty(f"{name!r} is no name that is allowed", facts.pointer)
        return ()
    return builder.conjunction(property_locations(builder, facts, name))


def _extras(
    builder: Builder, facts: Facts, known: dict[str, None], pointers: dict[str, str], *, is_distinct: bool
) -> list[Extra]:
    """Return the classes of additional properties that there may be; with keys in one spelling if asked."""
    if not facts.members and not facts.names and not any(part.patterns for part in facts.objects):
        if len(facts.objects) == 1 and facts.objects[0].additional is False:
            return []
        one = KeyClass((), additional_locations(facts), ())
        value = builder.conjunction(one.locations)
        return [Extra(builder.additional_key(known, is_distinct=is_distinct), value, one)] if value else []
    extras = []
    for one in key_classes(builder, facts, pointers):
        value = builder.conjunction(one.locations)
        if value:
            key = key_terminal(builder, facts, one, known, pointers, is_distinct=is_distinct)
            if key is not None:
                extras.append(Extra(key, value, one))
    return extras


def _machine(builder: Builder, slots: list[Slot], extras: list[Extra], may_be_empty: bool) -> StateMachine:
    """Return the automaton of an object."""
    edges: list[tuple[int, TerminalReference | RuleReference | None, int]] = [(0, LEFT_BRACE, 1)]
    n_required = [slot.is_required for slot in slots].count(True)
    if n_required == 0 and may_be_empty:
        edges.append((1, RIGHT_BRACE, _END))
    before = 1
    n_states = 3
    last = len(slots) - 1
    key_of = builder.key
    for i, (name, value, is_required, after_extra) in enumerate(slots):
        if after_extra and extras:
            n_states = _add_extras(edges, before, extras, n_states, False)
        key, colon, after, following = n_states, n_states + 1, n_states + 2, n_states + 3
        n_states += 4
        edges += ((before, key_of(name), key), (key, COLON, colon))
        if len(value) == 1:
            edges.append((colon, value[0], after))
        else:
            edges += [(colon, reference, after) for reference in value]
        if is_required:
            n_required -= 1
        else:
            edges.append((before, None, following))
        if i < last or extras:
            edges.append((after, COMMA, following))
        if n_required == 0:
            edges.append((after, RIGHT_BRACE, _END))
        before = following
    if extras:
        if before == 1:
            # A comma leads back to where a key must come, not to where the object may still be empty.
            before = n_states
            n_states += 1
            edges.append((1, None, before))
        n_states = _add_extras(edges, before, extras, n_states, True)
    return StateMachine(n_states, 0, _ACCEPTING, tuple(edges))


def _add_extras(
    edges: list[tuple[int, TerminalReference | RuleReference | None, int]],
    before: int,
    extras: list[Extra],
    n_states: int,
    may_end: bool,
) -> int:
    """Add a loop of additional properties in state ``before``; return the new number of states."""
    after = n_states
    n_states += 1
    for extra in extras:
        key, colon = n_states, n_states + 1
        n_states += 2
        edges.append((before, extra.key, key))
        edges.append((key, COLON, colon))
        for reference in extra.value:
            edges.append((colon, reference, after))
    edges.append((after, COMMA, before))
    if may_end:
        edges.append((after, RIGHT_BRACE, _END))
    return n_states
