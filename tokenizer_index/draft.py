"""Byte automata of single patterns: from a draft with empty edges to flat arrays without them.

`Draft` is what the reader of a pattern writes to: states with edges on byte ranges, empty edges, and
counted repeats. `finish` turns a draft into a `Fragment`, whose arrays are parts of a network's
(`network` says what guards and actions mean).

Empty edges are removed by giving each state the edges of all states it reaches by empty edges. Counted
repeats need three cases more:

- an edge to a state from which the body of a repeat may end also leads to the hub, adding one round;
- what follows a repeat is given to its hub, under "may be left"; a repeat that may follow another one
  or itself is given too, with counts as constants, since it is entered anew;
- entering a repeat with minimum 0 may pass it without a round.

The inner states of a character class stay together, as a `Tail`: they are many and need no more than to be told where
their characters end.

The body of a counted repeat never matches the empty string here: its end is no state, so a round
without bytes is nowhere made, and the reader sets the minimum to 0 where a round could be empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import (
    AGAIN,
    ALWAYS,
    INC,
    KEEP,
    LEAVE,
    N_EDGE_COLUMNS,
    N_POSITION_COLUMNS,
    Edge,
    Fragment,
    byte_set,
    empty_fragment,
)
from constrain.tokenizer_index.utf8 import Utf8

# Edges that may take the place of one position under the limit on positions.
_EDGES = 2


class Hub(NamedTuple):
    """A counted repeat of a draft; ``maximum`` is -1 for no limit."""

    body: int
    minimum: int
    maximum: int


class Tail(NamedTuple):
    """The inner states of a character class, each without edges of its own."""

    base: int
    characters: Utf8
    target: int


class Draft:
    """A byte automaton under construction.

    Attributes
    ----------
    edges : list of list of (low, high, target)
        Per state.
    empty : dict of int to list of int
        Empty edges.
    hub_of : list of int
        The hub whose body holds the state, or -1. Hubs themselves have -1.
    hubs : dict of int to Hub
        What follows a repeat is reached by empty edges from its hub.
    ends : dict of int to int
        The hub of each state that stands for the end of a counted body; it has no edges.
    tail_of : dict of int to Tail
        The tail that a state is in.
    """

    __slots__ = ("edges", "empty", "ends", "hub_of", "hubs", "tail_of")

    def __init__(self) -> None:
        self.edges: list[list[tuple[int, int, int]]] = []
        self.empty: dict[int, list[int]] = {}
        self.hub_of: list[int] = []
        self.hubs: dict[int, Hub] = {}
        self.ends: dict[int, int] = {}
        self.tail_of: dict[int, Tail] = {}

    def state(self, hub: int = -1) -> int:
        """Add a state to the body of ``hub`` (-1: to none) and return it."""
        self.edges.append([])
        self.hub_of.append(hub)
        return len(self.hub_of) - 1

    def tail(self, characters: Utf8, target: int, hub: int) -> int:
        """Add the inner states of a class of characters that lead to ``target``; return the first."""
        base, n = len(self.edges), len(characters.inner)
        self.edges += [[]] * n  # no edge is ever added to them
        self.hub_of += [hub] * n
        tail = Tail(base, characters, target)
        if hub < 0:
            self.tail_of.update(dict.fromkeys(range(base, base + n), tail))
        else:
            self.write_out(tail)
        return base

    def write_out(self, tail: Tail) -> None:
        """Give the states of a tail edges of their own."""
        base, characters, target = tail
        for i, edges in enumerate(characters.inner, base):
            self.edges[i] = [(low, high, base + to - 1 if to else target) for low, high, to in edges]
            self.tail_of.pop(i, None)

    def skip(self, source: int, target: int) -> None:
        """Add an empty edge."""
        if source != target:
            self.empty.setdefault(source, []).append(target)


# ------------------------------------------------------------------------------------ finishing


class PlacedTail(NamedTuple):
    """A tail whose characters all lead to one position, with one action."""

    characters: Utf8
    target: int
    action: int


class _Rows:
    """Edges of a draft's states with empty edges removed.

    Attributes
    ----------
    order : list of int
        The draft's states that became positions, in order of discovery.
    tails : list of PlacedTail
        Their states come behind all others; until those are known, state ``i`` behind them is ``-i - 1``.
    n_behind : int
        States in tails.
    """

    def __init__(self, draft: Draft, final: int) -> None:
        self.draft = draft
        self.final = final
        self.order: list[int] = []
        self.tails: list[PlacedTail] = []
        self.n_behind = 0
        self._index: dict[int, int] = {}
        self._first_of: dict[int, int] = {}
        # Where an edge to a state of the draft leads: positions and actions.
        self._arrivals: dict[int, tuple[tuple[int, int], ...]] = {}

    def position(self, state: int) -> int:
        """Return the position of a state of the draft, a new one if it has none."""
        i = self._index.get(state)
        if i is None:
            i = self._index[state] = len(self.order)
            self.order.append(state)
        return i

    def closure(self, seeds: Iterable[int]) -> list[int]:
        """Return the states reached from ``seeds`` by empty edges; hubs among them are entered anew."""
        empty, hubs = self.draft.empty, self.draft.hubs
        order = list(seeds)
        seen = set(order)
        for state in order:  # grows while it is read
            if state in hubs and hubs[state].minimum > 0:
                continue
            for target in empty.get(state, ()):
                if target not in seen:
                    seen.add(target)
                    order.append(target)
        return order

    def forward(self, state: int) -> int:
        """Follow states that do nothing but lead on by one empty edge."""
        draft, steps = self.draft, 0
        while state not in draft.hubs and not draft.edges[state] and steps < len(draft.edges):
            targets = draft.empty.get(state)
            if targets is None or len(targets) != 1:
                break
            state, steps = targets[0], steps + 1
        return state

    def _placed(self, tail: Tail) -> bool:
        """Place a tail behind all other states, if all its characters lead to one position."""
        if tail.base in self._first_of:
            return True
        arrivals = self._arrivals.get(tail.target) or self._arrive(tail.target)
        if len(arrivals) > 1:
            self.draft.write_out(tail)
            return False
        self._first_of[tail.base] = self.n_behind
        self.tails.append(PlacedTail(tail.characters, *arrivals[0]))
        self.n_behind += len(tail.characters.inner)
        return True

    def _arrive(self, state: int) -> tuple[tuple[int, int], ...]:
        draft = self.draft
        goal = state if draft.edges[state] else self.forward(state)
        arrivals: tuple[tuple[int, int], ...]
        tail = draft.tail_of.get(goal)
        if tail is not None and self._placed(tail):
            arrivals = ((tail.base - goal - self._first_of[tail.base] - 1, KEEP),)
        elif goal in draft.ends:
            arrivals = ((self.position(draft.ends[goal]), INC),)
        elif goal in draft.hubs:
            arrivals = ((self.position(goal), 0),)
        else:
            arrivals = ((self.position(goal), KEEP),)
            if draft.ends and goal in draft.empty:
                ends = [draft.ends[s] for s in self.closure([goal]) if s in draft.ends]
                arrivals += tuple([(self.position(hub), INC) for hub in ends])
        self._arrivals[state] = arrivals
        return arrivals

    def row(self, state: int) -> tuple[list[Edge], bool]:
        """Return the edges of ``state`` and whether a match may end there."""
        if state in self.draft.hubs:
            return self._hub_row(state)
        if state not in self.draft.empty:
            return self._own(state, ALWAYS), state == self.final
        return self._row_of(self.closure([state]), ALWAYS)

    def _own(self, state: int, guard: int) -> list[Edge]:
        arrivals = self._arrivals
        row: list[Edge] = []
        for low, high, target in self.draft.edges[state]:
            for position, action in arrivals.get(target) or self._arrive(target):
                row.append((low, high, position, guard, action))
        return row

    def _row_of(self, states: list[int], guard: int) -> tuple[list[Edge], bool]:
        row: list[Edge] = []
        for state in states:
            if state in self.draft.hubs:
                row += [
                    (low, high, goal, guard, 1 if action == INC else 0)
                    for low, high, goal, _, action in self._body_row(state)
                ]
            else:
                row += self._own(state, guard)
        return row, self.final in states

    def _body_row(self, hub: int) -> list[Edge]:
        """Return the edges by which a round of ``hub`` begins."""
        body = self.draft.hubs[hub].body
        return self._row_of(self.closure([body]), AGAIN)[0]

    def _hub_row(self, hub: int) -> tuple[list[Edge], bool]:
        row, accepts = self._row_of(self.closure(self.draft.empty.get(hub, ())), LEAVE)
        left = [
            (low, high, goal, guard, 0 if action == KEEP else action)
            for low, high, goal, guard, action in row
        ]
        return self._body_row(hub) + left, accepts


def finish(draft: Draft, start: int, final: int, watch: Watch, place: str) -> Fragment:
    """Return the fragment of the language between ``start`` and ``final``, which has no edges.

    Raises
    ------
    LimitExceededError
        The fragment has more positions than allowed, or time is up.
    """
    rows = _Rows(draft, final)
    first = rows.forward(start)
    nullable = final in rows.closure([first])
    if nullable:
        # A start of its own: the old one accepts the empty string, and loops may come back to it.
        fresh = draft.state()
        draft.empty[fresh] = [first]
        first = fresh
    rows.position(first)
    edges: list[list[Edge]] = []
    accepts: list[bool] = []
    n_edges = 0
    for state in rows.order:  # grows while it is read
        row, accept = rows.row(state)
        edges.append(sorted(set(row)) if len(row) > 1 else row)
        accepts.append(accept)
        n_edges += len(row)
        watch.step(place, 1 + len(row))
        # Runs of optional parts have quadratically many edges.
        if n_edges > _EDGES * watch.limits.positions:
            watch.at_most("positions", n_edges // _EDGES, place)
    if nullable:
        accepts[0] = False
    watch.at_most("positions", len(edges) + rows.n_behind, place)
    watch.step(place, rows.n_behind)
    distance = _distances(edges, accepts, rows.tails)
    if distance[0] < 0:
        return empty_fragment(nullable=nullable)
    if min(distance) < 0 and rows.tails:
        # A tail may be dead, too.
        for tail in set(draft.tail_of.values()):
            draft.write_out(tail)
        return finish(draft, start, final, watch, place)
    order, edges, accepts, distance = _trim(rows.order, edges, accepts, distance)
    return _flatten(draft, order, edges, accepts, distance, rows.tails, nullable)


def _distances(edges: list[list[Edge]], accepts: list[bool], tails: Sequence[PlacedTail]) -> list[int]:
    """Return the fewest bytes from each position to acceptance, -1 where there is no way; tails are left out."""
    n = len(edges)
    before: list[list[int]] = [[] for _ in edges]
    # States of a tail with as many bytes to its end are one node.
    nodes: list[int] = []
    for characters, target, _ in tails:
        base = len(before) - 1
        nodes += [base + left for left in characters.n_left]
        before[target].append(base + 1)
        most = max(characters.n_left)
        before += [[base + left + 1] for left in range(1, most)]
        before.append([])
    for source, row in enumerate(edges):
        for edge in row:
            goal = edge[2]
            before[goal if goal >= 0 else nodes[-goal - 1]].append(source)
    distance = [-1] * len(before)
    order = [i for i, accept in enumerate(accepts) if accept]
    for i in order:
        distance[i] = 0
    for i in order:  # grows while it is read
        d = distance[i] + 1
        for source in before[i]:
            if distance[source] < 0:
                distance[source] = d
                order.append(source)
    return distance[:n]


def _trim(
    order: list[int], edges: list[list[Edge]], accepts: list[bool], distance: list[int]
) -> tuple[list[int], list[list[Edge]], list[bool], list[int]]:
    """Remove positions that cannot reach acceptance."""
    if min(distance) >= 0:
        return order, edges, accepts, distance
    alive = [i for i, d in enumerate(distance) if d >= 0]
    index = {i: k for k, i in enumerate(alive)}
    return (
        [order[i] for i in alive],
        [[(a, b, index[t], g, c) for a, b, t, g, c in edges[i] if t in index] for i in alive],
        [accepts[i] for i in alive],
        [distance[i] for i in alive],
    )


def _flatten(
    draft: Draft,
    order: list[int],
    edges: list[list[Edge]],
    accepts: list[bool],
    distance: list[int],
    tails: Sequence[PlacedTail],
    nullable: bool,
) -> Fragment:
    flat = list(chain.from_iterable(edges))
    hubs, hub_of = draft.hubs, draft.hub_of
    positions: list[int] = []
    for state, row, accept, d in zip(order, edges, accepts, distance, strict=True):
        hub = hubs.get(state) or (hubs[hub_of[state]] if hub_of[state] >= 0 else None)
        if hub is None:
            positions += (len(row), accept, 0, 0, -1, d)
        else:
            positions += (len(row), accept, state in hubs, hub.minimum, hub.maximum, d)
    loops = any(edge[2] == 0 for edge in flat) or any(tail.target == 0 for tail in tails)
    inner = byte_set(flat if loops else flat[len(edges[0]) :])
    all_edges = np.frombuffer(array("i", list(chain.from_iterable(flat))), np.int32).reshape(
        -1, N_EDGE_COLUMNS
    )
    all_positions = array("i", positions).tobytes()
    n_positions = len(order)
    if tails:
        targets = all_edges[:, 2]
        targets[targets < 0] = n_positions - 1 - targets[targets < 0]
        parts = [all_edges]
        for characters, target, action in tails:
            block, rows = _tail_rows(characters, n_positions, target, action, distance[target])
            parts.append(block)
            all_positions += rows.tobytes()
            n_positions += len(rows)
            inner |= characters.inner_bytes
        all_edges = np.concatenate(parts)
    after = inner
    if _is_deterministic(edges):
        after = byte_set([e for row, accept in zip(edges, accepts, strict=True) if accept for e in row])
    return Fragment(
        n_positions=n_positions,
        n_edges=len(all_edges),
        nullable=nullable,
        positions=all_positions,
        edges=all_edges.tobytes(),
        first=byte_set(edges[0]),
        after=after,
        inner=inner,
    )


def _tail_rows(
    characters: Utf8, base: int, target: int, action: int, distance: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the edges and positions of a tail whose first position is ``base``."""
    to = characters.edges[:, 2]
    edges = np.empty((len(to), N_EDGE_COLUMNS), np.int32)
    edges[:, :2] = characters.edges[:, :2]
    edges[:, 2] = np.where(to > 0, base - 1 + to, target)
    edges[:, 3] = ALWAYS
    edges[:, 4] = np.where(to > 0, KEEP, action)
    positions = np.zeros((len(characters.inner), N_POSITION_COLUMNS), np.int32)
    positions[:, 0] = characters.n_edges
    positions[:, 4] = -1
    positions[:, 5] = np.add(characters.n_left, distance)
    return edges, positions


def _is_deterministic(edges: list[list[Edge]]) -> bool:
    """Does no byte lead from one position to two? Rows are sorted by their first bytes."""
    for row in edges:
        last = -1
        for edge in row:
            if edge[0] <= last:
                return False
            last = edge[1]
    return True
