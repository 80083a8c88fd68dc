"""Conjunctions of byte automata as one explicit deterministic automaton.

A conjunction on top of a terminal stays a set of literals that the kernels step together. One inside a
concatenation, a repeat or an alternation is built here, lazily from its start: a state is one set of
lexer values (count and position) for each literal. A positive literal whose set is empty ends the
search there; a negative one may be empty, and then excludes nothing.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

from constrain.grammars.ir import Alternation, Automaton, Complement, Intersection, Pattern
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import (
    AGAIN,
    INC,
    KEEP,
    LEAVE,
    N_EDGE_COLUMNS,
    N_POSITION_COLUMNS,
    Edge,
    Fragment,
)

# (count, position) pairs of one literal, sorted; () is dead.
Values: TypeAlias = tuple[tuple[int, int], ...]


class _Literal(NamedTuple):
    negative: bool
    nullable: bool
    start: Values
    rows: list[list[Edge]]
    accept: list[int]
    is_hub: list[int]
    count_min: list[int]
    count_max: list[int]


def flatten_conjunction(pattern: Pattern) -> list[tuple[bool, Pattern]]:
    """Return the literals ``(negative, part)`` whose conjunction is ``pattern``."""
    literals: list[tuple[bool, Pattern]] = []
    tasks: list[tuple[bool, Pattern]] = [(False, pattern)]
    while tasks:
        negative, node = tasks.pop()
        if isinstance(node, Complement):
            tasks.append((not negative, node.part))
        elif _is_conjunction(node, negative):
            tasks += [(negative, part) for part in reversed(node.parts)]
        else:
            literals.append((negative, node))
    return literals


def _is_conjunction(node: Pattern, negative: bool) -> TypeGuard[Intersection | Alternation]:
    """Is ``node``, negated or not, worth taking apart as a conjunction of its parts?"""
    if isinstance(node, Intersection):
        return not negative or len(node.parts) == 1
    if isinstance(node, Alternation) and (negative or len(node.parts) == 1):
        # An alternation without conjunctions stays whole: one automaton instead of many.
        return any(isinstance(part, Intersection | Complement) for part in node.parts)
    return False


def conjunction(literals: Iterable[tuple[bool, Fragment]], watch: Watch, place: str) -> Automaton:
    """Return a trimmed deterministic automaton of a conjunction.

    Parameters
    ----------
    literals : iterable of (negative, fragment)
        Without a positive literal the language is over all byte strings.

    Raises
    ------
    LimitExceededError
        There are more states than ``limits.positions``, or time is up.
    """
    parts = [_decode(negative, fragment) for negative, fragment in literals]
    first = tuple(part.start for part in parts)
    # The first state stands for itself only: the empty string isn't in the fragments.
    states: list[tuple[Values, ...]] = [first]
    index: dict[tuple[Values, ...], int] = {}
    accepting = [all(part.nullable != part.negative for part in parts)]
    edges: list[tuple[int, int, int, int]] = []
    if not any(not part.negative and not part.start for part in parts):
        for source, state in enumerate(states):  # grows while it is read
            for low, high, after in _steps(parts, state, watch, place):
                target = index.get(after)
                if target is None:
                    target = index[after] = len(states)
                    states.append(after)
                    accepting.append(_accepts(parts, after))
                    watch.at_most("positions", len(states), place)
                edges.append((source, low, high, target))
    return trim(Automaton(len(states), 0, frozenset(i for i, a in enumerate(accepting) if a), tuple(edges)))


def _decode(negative: bool, fragment: Fragment) -> _Literal:
    positions, edges = array("i"), array("i")
    positions.frombytes(fragment.positions)
    edges.frombytes(fragment.edges)
    degree, accept, is_hub, count_min, count_max, _ = (
        positions[k::N_POSITION_COLUMNS].tolist() for k in range(N_POSITION_COLUMNS)
    )
    flat = list(zip(*(edges[k::N_EDGE_COLUMNS] for k in range(N_EDGE_COLUMNS)), strict=True))
    rows, k = [], 0
    for n in degree:
        rows.append(flat[k : k + n])
        k += n
    start: Values = ((0, 0),) if fragment.n_positions else ()
    return _Literal(negative, fragment.nullable, start, rows, accept, is_hub, count_min, count_max)


def _moves(literal: _Literal, values: Values) -> list[tuple[int, int, tuple[int, int]]]:
    """Return the edges from ``values`` whose guards hold: (low, high, value reached)."""
    moves = []
    count_min, count_max = literal.count_min, literal.count_max
    for count, position in values:
        for low, high, target, guard, action in literal.rows[position]:
            if guard == AGAIN and 0 <= count_max[position] <= count:
                continue
            if guard == LEAVE and count < count_min[position]:
                continue
            if action == KEEP:
                reached = count
            elif action == INC:
                reached = count + 1 if count_max[target] >= 0 else min(count + 1, count_min[target])
            else:
                reached = action
            moves.append((low, high, (reached, target)))
    return moves


def _steps(
    parts: Sequence[_Literal], state: tuple[Values, ...], watch: Watch, place: str
) -> list[tuple[int, int, tuple[Values, ...]]]:
    """Return ``(low, high, state after)`` for ranges of bytes that leave every positive literal alive."""
    moves = [_moves(part, values) for part, values in zip(parts, state, strict=True)]
    cuts = {0, 256}
    for part_moves in moves:
        for low, high, _ in part_moves:
            cuts.add(low)
            cuts.add(high + 1)
    bounds = sorted(cuts)
    steps: list[tuple[int, int, tuple[Values, ...]]] = []
    for low, bound in itertools.pairwise(bounds):
        after: list[Values] = []
        for part, part_moves in zip(parts, moves, strict=True):
            values = tuple(sorted({v for a, b, v in part_moves if a <= low <= b}))
            if not values and not part.negative:
                break
            after.append(values)
        else:
            reached = tuple(after)
            if steps and steps[-1][2] == reached and steps[-1][1] == low - 1:
                steps[-1] = (steps[-1][0], bound - 1, reached)
            else:
                steps.append((low, bound - 1, reached))
    watch.step(place, 1 + len(bounds) * (1 + sum(map(len, moves))))
    return steps


def _accepts(parts: Sequence[_Literal], state: tuple[Values, ...]) -> bool:
    return all(_holds(part, values) != part.negative for part, values in zip(parts, state, strict=True))


def _holds(literal: _Literal, values: Values) -> bool:
    return any(
        literal.accept[position] and (not literal.is_hub[position] or count >= literal.count_min[position])
        for count, position in values
    )


def trim(automaton: Automaton) -> Automaton:
    """Return ``automaton`` without the states that are not on a way from start to acceptance."""
    after: list[list[int]] = [[] for _ in range(automaton.n_states)]
    before: list[list[int]] = [[] for _ in range(automaton.n_states)]
    for source, low, high, target in automaton.edges:
        if low <= high:
            after[source].append(target)
            before[target].append(source)
    useful = _reach(after, [automaton.start]) & _reach(before, automaton.accepting)
    useful.add(automaton.start)
    if len(useful) == automaton.n_states:
        return automaton
    index = {state: i for i, state in enumerate(sorted(useful))}
    return Automaton(
        len(index),
        index[automaton.start],
        frozenset(index[s] for s in automaton.accepting if s in index),
        tuple((index[s], a, b, index[t]) for s, a, b, t in automaton.edges if s in index and t in index),
    )


def _reach(edges: list[list[int]], seeds: Iterable[int]) -> set[int]:
    order = list(seeds)
    seen = set(order)
    for state in order:  # grows while it is read
        for target in edges[state]:
            if target not in seen:
                seen.add(target)
                order.append(target)
    return seen
