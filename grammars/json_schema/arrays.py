"""Arrays as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.grammars.ir import (
    Choice,
    Expression,
    Repetition,
    RuleReference,
    Sequence,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.json_schema.facts import Facts
from constrain.grammars.json_schema.items import count_items
from constrain.grammars.json_schema.places import item_locations, prefix_length
from constrain.grammars.json_schema.terminals import COMMA, LEFT_BRACKET, RIGHT_BRACKET

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Alternatives, Builder


def array_body(builder: Builder, name: str, facts: Facts) -> Expression:
    """Return the body of the rule ``name``, the arrays that ``facts`` allow."""
    length = prefix_length(facts)
    if facts.max_items is not None:
        length = min(length, facts.max_items)
    prefix: list[Alternatives] = []
    maximum = facts.max_items
    for i in range(length):
        item = builder.conjunction(item_locations(builder, facts, i))
        if not item:  # an item here is forbidden, so the array ends before it
            maximum = i
            break
        prefix.append(item)
    rest: Alternatives = ()
    if maximum is None or maximum > len(prefix):
        rest = builder.conjunction(item_locations(builder, facts, length))
        if not rest:
            maximum = len(prefix)
    if maximum is not None and facts.min_items > maximum:
        reason = f"at least {facts.min_items} items are required, and no item is allowed after {maximum}"
        return builder.nothing(name, reason, facts.pointer)
    for item in prefix[: facts.min_items]:
        builder.need(name, item)
    if facts.min_items > len(prefix):
        builder.need(name, rest)
    if maximum == 0 and not any(counted.low for counted in facts.contains):
        return Sequence((LEFT_BRACKET, RIGHT_BRACKET))
    is_unique = facts.unique_at is not None and (maximum is None or maximum > 1)
    if facts.contains or is_unique:
        return count_items(builder, name, facts, length, maximum, is_unique)
    if not prefix:
        item_of = _choice(rest)
        more = Repetition(
            Sequence((COMMA, item_of)),
            max(facts.min_items - 1, 0),
            None if maximum is None else maximum - 1,
        )
        items: Expression = Sequence((item_of, more))
        if facts.min_items == 0:
            items = Repetition(items, 0, 1)
        return Sequence((LEFT_BRACKET, items, RIGHT_BRACKET))
    return _with_prefix(builder, name, prefix, rest, facts.min_items, maximum)


def _with_prefix(
    builder: Builder,
    name: str,
    prefix: list[Alternatives],
    rest: Alternatives,
    minimum: int,
    maximum: int | None,
) -> StateMachine:
    # States: 0 start, 1 end, then for each item of the prefix one before and one after it.
    edges: list[tuple[int, TerminalReference | RuleReference | None, int]] = [(0, LEFT_BRACKET, 2)]
    if minimum == 0:
        edges.append((2, RIGHT_BRACKET, 1))
    after = 2
    for i, item in enumerate(prefix):
        before, after = 2 + 2 * i, 3 + 2 * i
        edges += [(before, reference, after) for reference in item]
        if minimum <= i + 1:
            edges.append((after, RIGHT_BRACKET, 1))
        if i + 1 < len(prefix):
            edges.append((after, COMMA, after + 1))
    n_states = after + 1
    if rest:
        least = max(minimum - len(prefix), 0)
        most = None if maximum is None else maximum - len(prefix)
        if least == 0 and most is None:
            edges.append((after, COMMA, n_states))
            edges += [(n_states, reference, after) for reference in rest]
            n_states += 1
        else:
            tail = builder.add_rule(f"{name} rest", Repetition(Sequence((COMMA, _choice(rest))), least, most))
            if minimum <= len(prefix):
                edges.remove((after, RIGHT_BRACKET, 1))
            edges += [(after, tail, n_states), (n_states, RIGHT_BRACKET, 1)]
            n_states += 1
    return StateMachine(n_states, 0, frozenset({1}), tuple(edges))


def _choice(alternatives: Alternatives) -> Expression:
    return alternatives[0] if len(alternatives) == 1 else Choice(alternatives)
