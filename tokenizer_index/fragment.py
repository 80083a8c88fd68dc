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

The body of a counted repeat never matches the empty string here: its end is no state, so a round
without bytes is nowhere made, and the reader sets the minimum to 0 where a round could be empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from constrain.grammars.ir import Ranges
from constrain.grammars.limits import Watch

KEEP, INC = -1, -2
ALWAYS, AGAIN, LEAVE = 0, 1, 2

SHORT_LITERAL = 64

# (low, high, target, guard, action)
Edge: TypeAlias = tuple[int, int, int, int, int]

# Edges that may take the place of one position under the limit on positions.
_EDGES = 2


class Hub(NamedTuple):
    """A counted repeat of a draft; ``maximum`` is -1 for no limit."""

    body: int
    minimum: int
    maximum: int


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
    """

    __slots__ = ("edges", "empty", "ends", "hub_of", "hubs")

    def __init__(self) -> None:
        self.edges: list[list[tuple[int, int, int]]] = []
        self.empty: dict[int, list[int]] = {}
        self.hub_of: list[int] = []
        self.hubs: dict[int, Hub] = {}
        self.ends: dict[int, int] = {}

    def state(self, hub: int = -1) -> int:
        """Add a state to the body of ``hub`` (-1: to none) and return it."""
        self.edges.append([])
        self.hub_of.append(hub)
        return len(self.hub_of) - 1

    def skip(self, source: int, target: int) -> None:
        """Add an empty edge."""
        if source != target:
            self.empty.setdefault(source, []).append(target)


class Fragment(NamedTuple):
    """The byte automaton of one pattern without the empty string, trimmed.

    Position 0 is the start, with count 0; it doesn't accept. A pattern that matches nothing, or only the
    empty string, has no positions.

    Parameters
    ----------
    n_positions, n_edges : int
    nullable : bool
        The pattern matches the empty string too.
    positions : (n_positions, 6) int32, as bytes
        Number of edges, accepting (1), hub (1), count_min, count_max, distance.
    edges : (n_edges, 5) int32, as bytes
        Low, high, target, guard, action; in order of their sources.
    first, after, inner : int
        Sets of bytes as bits: those that may begin a match, those that may follow where a match may
        end (or more), those that may stand after the first byte.
    """

    n_positions: int
    n_edges: int
    nullable: bool
    positions: bytes
    edges: bytes
    first: int
    after: int
    inner: int


N_POSITION_COLUMNS = 6
N_EDGE_COLUMNS = 5


def empty_fragment(*, nullable: bool) -> Fragment:
    """Return the fragment of the empty language, or of the empty string alone."""
    return Fragment(0, 0, nullable, b"", b"", 0, 0, 0)


def literal_fragment(data: bytes) -> Fragment:
    """Return the chain of positions that reads ``data``; those of short literals are kept."""
    return _short_literal(data) if len(data) <= SHORT_LITERAL else _chain(data)


@lru_cache(maxsize=4096)
def _short_literal(data: bytes) -> Fragment:
    return _chain(data)


def _chain(data: bytes) -> Fragment:
    n = len(data)
    if n == 0:
        return empty_fragment(nullable=True)
    positions, edges = array("i"), array("i")
    for i, byte in enumerate(data):
        positions.extend((1, 0, 0, 0, -1, n - i))
        edges.extend((byte, byte, i + 1, ALWAYS, KEEP))
    positions.extend((0, 1, 0, 0, -1, 0))
    inner = 0
    for byte in set(data[1:]):
        inner |= 1 << byte
    return Fragment(n + 1, n, False, positions.tobytes(), edges.tobytes(), 1 << data[0], 0, inner)


# ------------------------------------------------------------------------------------ finishing


class _Rows:
    """Edges of a draft's states with empty edges removed.

    Attributes
    ----------
    order : list of int
        The draft's states that became positions, in order of discovery.
    """

    def __init__(self, draft: Draft, final: int) -> None:
        self.draft = draft
        self.final = final
        self.order: list[int] = []
        self._index: dict[int, int] = {}
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

    def _arrive(self, state: int) -> tuple[tuple[int, int], ...]:
        draft, goal = self.draft, self.forward(state)
        arrivals: tuple[tuple[int, int], ...]
        if goal in draft.ends:
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
    start = rows.forward(start)
    nullable = final in rows.closure([start])
    if nullable:
        # A start of its own: the old one accepts the empty string, and loops may come back to it.
        fresh = draft.state()
        draft.empty[fresh] = [start]
        start = fresh
    rows.position(start)
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
    watch.at_most("positions", len(edges), place)
    distance = _distances(edges, accepts)
    if distance[0] < 0:
        return empty_fragment(nullable=nullable)
    order, edges, accepts, distance = _trim(rows.order, edges, accepts, distance)
    return _flatten(draft, order, edges, accepts, distance, nullable)


def _distances(edges: list[list[Edge]], accepts: list[bool]) -> list[int]:
    """Return the fewest bytes from each position to acceptance, -1 where there is no way."""
    before: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        for edge in row:
            before[edge[2]].append(source)
    distance = [-1] * len(edges)
    order = [i for i, accept in enumerate(accepts) if accept]
    for i in order:
        distance[i] = 0
    for i in order:  # grows while it is read
        d = distance[i] + 1
        for source in before[i]:
            if distance[source] < 0:
                distance[source] = d
                order.append(source)
    return distance


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
    nullable: bool,
) -> Fragment:
    flat = list(chain.from_iterable(edges))
    hubs, hub_of = draft.hubs, draft.hub_of
    positions = array("i")
    for state, row, accept, d in zip(order, edges, accepts, distance, strict=True):
        hub = hubs.get(state) or (hubs[hub_of[state]] if hub_of[state] >= 0 else None)
        if hub is None:
            positions.extend((len(row), accept, 0, 0, -1, d))
        else:
            positions.extend((len(row), accept, state in hubs, hub.minimum, hub.maximum, d))
    loops = any(edge[2] == 0 for edge in flat)
    inner = byte_set(flat if loops else flat[len(edges[0]) :])
    after = inner
    if _is_deterministic(edges):
        after = byte_set([e for row, accept in zip(edges, accepts, strict=True) if accept for e in row])
    return Fragment(
        n_positions=len(order),
        n_edges=len(flat),
        nullable=nullable,
        positions=positions.tobytes(),
        edges=array("i", chain.from_iterable(flat)).tobytes(),
        first=byte_set(edges[0]),
        after=after,
        inner=inner,
    )


@lru_cache(maxsize=4096)
def walled(fragment: Fragment, ranges: Ranges) -> Fragment:
    """Return ``fragment`` with a wall: a last position, of distance -1, to which ``ranges`` lead from all ends.

    No match goes on there, but a greedy lexeme doesn't end before a byte that leads there.
    """
    wall = fragment.n_positions
    rows = array("i", fragment.positions)
    edges = array("i", fragment.edges)
    all_rows, all_edges = array("i"), array("i")
    at = 0
    for i in range(0, len(rows), N_POSITION_COLUMNS):
        row = rows[i : i + N_POSITION_COLUMNS]
        n = row[0] * N_EDGE_COLUMNS
        all_edges += edges[at : at + n]
        at += n
        if row[1]:
            guard = LEAVE if row[2] else ALWAYS
            for low, high in ranges:
                all_edges.extend((low, high, wall, guard, 0))
            row[0] += len(ranges)
        all_rows += row
    all_rows.extend((0, 0, 0, 0, -1, -1))
    stopped = 0
    for low, high in ranges:
        stopped |= (2 << high) - (1 << low)
    return fragment._replace(
        n_positions=wall + 1,
        n_edges=len(all_edges) // N_EDGE_COLUMNS,
        positions=all_rows.tobytes(),
        edges=all_edges.tobytes(),
        after=fragment.after | stopped,
        inner=fragment.inner | stopped,
    )


def byte_set(edges: Iterable[Edge]) -> int:
    """Return the bytes on ``edges`` as the bits of an integer."""
    found = 0
    for low, high in {(edge[0], edge[1]) for edge in edges}:
        found |= (2 << high) - (1 << low)
    return found


def _is_deterministic(edges: list[list[Edge]]) -> bool:
    """Does no byte lead from one position to two? Rows are sorted by their first bytes."""
    for row in edges:
        last = -1
        for edge in row:
            if edge[0] <= last:
                return False
            last = edge[1]
    return True
