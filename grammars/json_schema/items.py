"""Automata of arrays whose items are counted, or must be different.

A state is how many items are read, up to what still makes a difference; how many of them satisfy each
schema that is counted; and, where items must be different, which of the values there may be are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    CLOSE,
    COUNT,
    KEEP,
    MORE,
    Alternation,
    Complement,
    Expression,
    Intersection,
    Literal,
    Parameter,
    RuleReference,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema import numbers, strings
from constrain.grammars.json_schema.counting import Kind, split
from constrain.grammars.json_schema.disjoint import are_disjoint
from constrain.grammars.json_schema.equality import is_equal
from constrain.grammars.json_schema.facts import Facts, Json, Location
from constrain.grammars.json_schema.finite import finite_values
from constrain.grammars.json_schema.places import item_locations
from constrain.grammars.json_schema.terminals import COMMA, LEFT_BRACKET, RIGHT_BRACKET
from constrain.grammars.json_schema.values import types_of

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder

_MOST_STATES = 20_000
_MOST_VALUES = 64
_MOST_CONTAINERS = 512  # values, some of them arrays or objects
_ONE_INTEGER = Intersection((numbers.INTEGER, Complement(Literal(b"-0"))))
_ONE_NUMBER = Intersection((numbers.SHORTEST_DECIMAL, Complement(Literal(b"-0"))))
# Strings, decimals without a superfluous sign or digit, and the literal names.
_ONE_SPELLING = Alternation(
    (
        strings.ONE_SPELLING,
        _ONE_NUMBER,
        *(Literal(word) for word in (b"true", b"false", b"null")),
    )
)
_HINT = "Remove it, and check the result."

Edge = tuple[int, TerminalReference | RuleReference | None, int]


class _Item(NamedTuple):
    """Items of one kind; ``value`` is the number of the value they are, if it matters, else -1."""

    kind: Kind
    value: int


def count_items(
    builder: Builder, name: str, facts: Facts, length: int, maximum: int | None, is_unique: bool
) -> Expression:
    """Return the body of the rule ``name``: arrays with counted or different items.

    Parameters
    ----------
    length : int
        From this item on all are described alike, schemas that are counted aside.
    maximum : int or None
        Most items.
    is_unique : bool
        Must items be different?
    """
    n_places = max([length, *(counted.start for counted in facts.contains)])
    if maximum is not None:
        n_places = min(n_places, maximum)
    places = [item_locations(builder, facts, i) for i in range(n_places + 1)]
    if maximum is not None and n_places >= maximum:
        places = places[:maximum]
    values: list[Json] | None = None
    if is_unique:
        found = _values(builder, places)
        is_plain = len(places) == 1 and not facts.contains
        if found is not None and is_plain:
            return _unique_values(builder, name, facts, places[0], found, maximum)
        if found is None and is_plain:
            body = _unique_spellings(builder, name, facts, places[0], maximum)
            if body is not None:
                return body
        if found is not None:
            values = found
        elif not _are_apart(builder, places, maximum):
            builder.drop_or_raise("uniqueItems", facts.unique_at or facts.pointer, _HINT)
    items = [_items(builder, facts, i, place, values) for i, place in enumerate(places)]
    for i, counted in enumerate(facts.contains):
        if counted.low:
            able = [r for place in items for one in place if one.kind.counts[i] for r in one.kind.value]
            if not able:
                return builder.nothing(name, "no item can be what is asked for", counted.pointer)
            builder.need(name, tuple(able))
    return _machine(builder, facts, items, maximum)


def _unique_values(
    builder: Builder, name: str, facts: Facts, place: list[Location], values: list[Json], maximum: int | None
) -> Expression:
    """Return arrays of some of ``values``, each at most once."""
    items = []
    for value in values:
        schema = builder.derived.constant(value, facts.pointer)
        items.append(builder.conjunction([Location(schema, facts.pointer, None, ()), *place]))
    items = [item for item in items if item]
    if facts.min_items > len(items):
        reason = f"{facts.min_items} different items are required, and only {len(items)} are allowed"
        return builder.nothing(name, reason, facts.unique_at or facts.pointer)
    if maximum is not None and maximum >= len(items):
        maximum = None
    symbols = [(reference, i) for i, item in enumerate(items) for reference in item]
    return _in_brackets(symbols, Parameter(len(items), frozenset(), facts.min_items, maximum), frozenset())


def _unique_spellings(
    builder: Builder, name: str, facts: Facts, place: list[Location], maximum: int | None
) -> Expression | None:
    """Return arrays of scalars that are equal only if they are spelled alike; ``None`` if others are allowed.

    Strings and numbers are written in one spelling.
    """
    symbols: list[tuple[TerminalReference, int]] = []
    scalars = bits.STRING | bits.NUMBER | bits.NULL | bits.BOOLEAN
    n_values: int | None = 0
    for branch in builder.expand(builder.facts(place)):
        types = branch.types if branch.values is None else branch.types & types_of(branch)
        if types & ~scalars or branch.grammars:
            return None
        if types & bits.NUMBER and builder.options.integers == "any":
            return None
        if any("e" in repr(value) for value in branch.values or () if isinstance(value, float)):
            return None  # has no short spelling among those of constants
        if n_values is not None:
            n = _n_values(branch)
            n_values = None if n is None else n_values + n
        for reference in builder.alternatives(branch):
            assert isinstance(reference, TerminalReference)
            symbols.append((_in_one_spelling(builder, reference), COUNT))
    if n_values is not None and facts.min_items > n_values:
        reason = f"{facts.min_items} different items are required, and at most {n_values} are allowed"
        return builder.nothing(name, reason, facts.unique_at or facts.pointer)
    distinct = frozenset(reference.index for reference, _ in symbols)
    return _in_brackets(symbols, Parameter(least=facts.min_items, most=maximum), distinct)


def _n_values(facts: Facts) -> int | None:
    """Return how many values there are at most; ``None`` if that isn't plain to see."""
    if facts.values is not None:
        return len(facts.values)
    n_literals = (facts.types & (bits.NULL | bits.BOOLEAN)).bit_count()
    if not facts.types & ~(bits.NULL | bits.BOOLEAN):
        return n_literals
    low, high = facts.low, facts.high
    if facts.types & (bits.STRING | bits.FRACTION) or low is None or high is None:
        return None
    return n_literals + max(floor(high[0]) - ceil(low[0]) + 1, 0)


def _in_one_spelling(builder: Builder, reference: TerminalReference) -> TerminalReference:
    """Return the terminal of strings and other scalars of a terminal, each in one spelling."""
    terminal = builder.terminals[reference.index]
    pattern = terminal.pattern
    if pattern is strings.STRING:
        return builder.terminal("string in one spelling", strings.ONE_SPELLING, "string")
    if pattern is numbers.INTEGER:
        return builder.terminal("integer in one spelling", _ONE_INTEGER, "integer")
    if pattern is numbers.NUMBER:
        return builder.terminal("number in one spelling", _ONE_NUMBER, "number")
    parts = pattern.parts if isinstance(pattern, Intersection) else (pattern,)
    whole = Intersection((*parts, _ONE_SPELLING))
    return builder.terminal(("in one spelling", reference.index), whole, terminal.name, terminal.pointer)


def _in_brackets(
    symbols: Iterable[tuple[TerminalReference | RuleReference, int]],
    parameter: Parameter,
    distinct: frozenset[int],
) -> StateMachine:
    """Return arrays of elements, each given with what it does."""
    edges: list[Edge] = [(0, LEFT_BRACKET, 1), (1, RIGHT_BRACKET, 2), (3, RIGHT_BRACKET, 2), (3, COMMA, 4)]
    actions = [KEEP, CLOSE, CLOSE, MORE]
    for symbol, action in dict.fromkeys(symbols):
        edges += [(1, symbol, 3), (4, symbol, 3)]
        actions += [action, action]
    return StateMachine(5, 0, frozenset({2}), tuple(edges), parameter, tuple(actions), distinct)


def _values(builder: Builder, places: list[list[Location]]) -> list[Json] | None:
    """Return the values that items may be; ``None`` if there are too many."""
    found: list[Json] = []
    for place in places:
        own = finite_values(builder, place, _MOST_CONTAINERS)
        if own is None:
            return None
        found += [value for value in own if not any(is_equal(value, other) for other in found)]
    n_scalars = sum(not isinstance(value, dict | list) for value in found)
    # Many scalars cost less as spellings that must differ.
    is_few = n_scalars <= _MOST_VALUES or n_scalars < len(found)
    return found if is_few and len(found) <= _MOST_CONTAINERS else None


def _are_apart(builder: Builder, places: list[list[Location]], maximum: int | None) -> bool:
    """Can no two items be equal?"""
    return (
        maximum is not None
        and maximum <= len(places)
        and are_disjoint(builder, [builder.facts(place) for place in places])
    )


def _items(
    builder: Builder, facts: Facts, index: int, place: list[Location], values: list[Json] | None
) -> list[_Item]:
    """Return the kinds of items that there may be at ``index``."""
    counted = list(facts.contains)
    applies: list[tuple[bool, ...]] = [(index >= one.start,) for one in counted]
    if values is None:
        return [_Item(kind, -1) for kind in split(builder, place, counted, applies)]
    found = []
    for i, value in enumerate(values):
        schema = builder.derived.constant(value, facts.pointer)
        here = [Location(schema, facts.pointer, None, ()), *place]
        found += [_Item(kind, i) for kind in split(builder, here, counted, applies)]
    return found


def _machine(builder: Builder, facts: Facts, items: list[list[_Item]], maximum: int | None) -> Expression:
    # A state: items read, counts, values used. Items are counted up to where it makes no difference.
    counted = facts.contains
    least = facts.min_items
    most = max(len(items) - 1, least, 1) if maximum is None else maximum
    zero = (0, tuple(0 for _ in counted), frozenset[int]())
    todo = [zero]
    edges: list[Edge] = []
    n_states = 3  # of the inner automaton: 2 is where the first item may stand, 1 is the end
    after = {zero: 2}

    def number(state: tuple[int, tuple[int, ...], frozenset[int]]) -> int:
        nonlocal n_states
        if state not in after:
            after[state] = n_states
            n_states += 2  # after an item, and after the comma behind it
            todo.append(state)
        return after[state]

    edges.append((0, LEFT_BRACKET, 2))
    while todo:
        state = todo.pop()
        n_items, counts, used = state
        source = after[state]
        builder.watch.step(facts.pointer, 8)
        if n_states > _MOST_STATES:
            keyword = "uniqueItems" if used else "contains"
            pointer = facts.unique_at if used and facts.unique_at else facts.pointer
            raise UnsupportedFeatureError(
                keyword,
                pointer=pointer,
                reason=f"needs more than {_MOST_STATES:,} states here, which is not supported",
                hint=_HINT,
            )
        if n_items >= least and all(n >= one.low for n, one in zip(counts, counted, strict=True)):
            edges.append((source, RIGHT_BRACKET, 1))
        if maximum is not None and n_items >= maximum:
            continue
        before = source
        if n_items:
            before = source + 1
            edges.append((source, COMMA, before))
        for item in items[min(n_items, len(items) - 1)]:
            if item.value in used:
                continue
            added = _add(counts, item.kind.counts, counted)
            if added is None:
                continue
            now_used = used | {item.value} if item.value >= 0 else used
            reached = number((min(n_items + 1, most), added, now_used))
            edges += [(before, reference, reached) for reference in item.kind.value]
    return StateMachine(n_states, 0, frozenset({1}), tuple(edges))


def _add(
    counts: tuple[int, ...], is_counted: tuple[bool, ...], limits: tuple[bits.Counted, ...]
) -> tuple[int, ...] | None:
    """Return the counts after one more item; ``None`` if there are too many."""
    added = []
    for count, one, limit in zip(counts, is_counted, limits, strict=True):
        more = count + one
        if limit.high is None:
            more = min(more, limit.low)
        elif more > limit.high:
            return None
        added.append(more)
    return tuple(added)
