"""Objects as rules: declared properties in their order, additional ones last.

The rule's automaton has a chain of states, one before each property, in which its key or a later one
may be read. Optional properties are skipped by edges that read nothing, so the size is linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.grammars.ir import Expression, RuleReference, StateMachine, TerminalReference
from constrain.grammars.json_schema.facts import Facts, Location
from constrain.grammars.json_schema.pointers import token
from constrain.grammars.json_schema.strings import has_surrogate
from constrain.grammars.json_schema.terminals import COLON, COMMA, LEFT_BRACE, RIGHT_BRACE

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder

_END = 2


def object_body(builder: Builder, name: str, facts: Facts) -> Expression:
    """Return the body of the rule ``name``, the objects that ``facts`` allow."""
    required = frozenset(facts.required)
    declared = _declared(builder, facts)
    extra = _additional(builder, facts)
    known = dict.fromkeys(key for part in facts.objects for key in part.properties)
    undeclared = [key for key in facts.required if key not in known]
    known.update(dict.fromkeys(undeclared))
    slots: list[tuple[str, Alternatives, bool, bool]] = []
    for key, value in declared:
        is_required = key in required
        if value and not has_surrogate(key):
            slots.append((key, value, is_required, False))
        elif is_required:
            reason, where = builder.why_empty(f"{facts.pointer}/properties/{token(key)}")
            return builder.nothing(name, f"the required property {key!r} can have no value: {reason}", where)
    unspellable = any(has_surrogate(key) for key in undeclared)
    if undeclared and (unspellable or not extra):
        return builder.nothing(
            name,
            f"the required property {undeclared[0]!r} is not declared, and no additional ones are allowed",
            facts.pointer,
        )
    slots += [(key, extra, True, True) for key in undeclared]
    if facts.min_properties > max(len(required), 1):
        builder.refuse("minProperties", facts, "Name the properties in required.")
    if facts.max_properties is not None:
        most = facts.max_properties
        if most < len(required):
            return builder.nothing(
                name,
                f"maxProperties {most} is less than the {len(required)} required properties",
                facts.pointer,
            )
        if most == len(required):  # nothing optional fits
            slots = [slot for slot in slots if slot[2]]
            extra = ()
        elif extra or most < len(slots):
            builder.refuse("maxProperties", facts, "Leave out optional and additional properties.")
    builder.watch.step(facts.pointer, 4 * len(slots))
    for _, value, is_required, _ in slots:
        if is_required:
            builder.need(name, value)
    if facts.min_properties and not required:
        if not slots and not extra:
            reason = f"minProperties is {facts.min_properties}, and no property is allowed"
            return builder.nothing(name, reason, facts.pointer)
        builder.need(name, (*(reference for slot in slots for reference in slot[1]), *extra))
    return _machine(builder, slots, extra, known, facts.min_properties == 0)


def _machine(
    builder: Builder,
    slots: list[tuple[str, Alternatives, bool, bool]],
    extra: Alternatives,
    known: dict[str, None],
    may_be_empty: bool,
) -> StateMachine:
    """Return the automaton of an object.

    ``slots`` are the properties in order: name, alternatives of the value, whether it is required,
    and whether additional properties may stand before it.
    """
    edges: list[tuple[int, TerminalReference | RuleReference | None, int]] = [(0, LEFT_BRACE, 1)]
    n_required = sum(slot[2] for slot in slots)
    extra_key = builder.additional_key(known) if extra else None
    if n_required == 0 and may_be_empty:
        edges.append((1, RIGHT_BRACE, _END))
    before = 1  # the state in which a key may be read
    n_states = 3
    last = len(slots) - 1
    for i, (name, value, is_required, is_undeclared) in enumerate(slots):
        if is_undeclared and extra_key is not None:
            n_states = _add_extra(edges, before, extra_key, extra, n_states, False)
        key, colon, after, following = n_states, n_states + 1, n_states + 2, n_states + 3
        n_states += 4
        edges.append((before, builder.key(name), key))
        edges.append((key, COLON, colon))
        for reference in value:
            edges.append((colon, reference, after))
        if is_required:
            n_required -= 1
        else:
            edges.append((before, None, following))
        if i < last or extra_key is not None:
            edges.append((after, COMMA, following))
        if n_required == 0:
            edges.append((after, RIGHT_BRACE, _END))
        before = following
    if extra_key is not None:
        if before == 1:
            # A comma leads back to where a key must come, not to where the object may still be empty.
            before = n_states
            n_states += 1
            edges.append((1, None, before))
        n_states = _add_extra(edges, before, extra_key, extra, n_states, True)
    return StateMachine(n_states, 0, frozenset({_END}), tuple(edges))


def _add_extra(
    edges: list[tuple[int, TerminalReference | RuleReference | None, int]],
    before: int,
    extra_key: TerminalReference,
    extra: Alternatives,
    n_states: int,
    may_end: bool,
) -> int:
    """Add a loop of additional properties in state ``before``; return the new number of states."""
    key, colon, after = n_states, n_states + 1, n_states + 2
    edges.append((before, extra_key, key))
    edges.append((key, COLON, colon))
    for reference in extra:
        edges.append((colon, reference, after))
    edges.append((after, COMMA, before))
    if may_end:
        edges.append((after, RIGHT_BRACE, _END))
    return n_states + 3


def _declared(builder: Builder, facts: Facts) -> list[tuple[str, Alternatives]]:
    """Return the declared properties with what their values may be."""
    if len(facts.objects) == 1:
        (properties, _, pointer, scope) = facts.objects[0]
        base = f"{pointer}/properties/"
        value = builder.value
        return [(name, value(schema, base + token(name), scope)) for name, schema in properties.items()]
    names = dict.fromkeys(name for part in facts.objects for name in part.properties)
    return [(name, builder.conjunction(property_locations(facts, name))) for name in names]


def _additional(builder: Builder, facts: Facts) -> Alternatives:
    if len(facts.objects) == 1 and facts.objects[0].additional is False:
        return ()
    return builder.conjunction(additional_locations(facts))


def property_locations(facts: Facts, name: str) -> list[Location]:
    """Return the schemas that apply to the property ``name``."""
    found = []
    for part in facts.objects:
        if name in part.properties:
            pointer = f"{part.pointer}/properties/{token(name)}"
            found.append(Location(part.properties[name], pointer, part.scope, ()))
        else:
            found.append(Location(part.additional, f"{part.pointer}/additionalProperties", part.scope, ()))
    return found


def additional_locations(facts: Facts) -> list[Location]:
    """Return the schemas that apply to properties no part declares."""
    return [
        Location(part.additional, f"{part.pointer}/additionalProperties", part.scope, ())
        for part in facts.objects
    ]
