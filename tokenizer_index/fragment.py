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
from typing import NamedTuple, TypeAlias

from constrain.grammars.limits import Watch

KEEP, INC = -1, -2
ALWAYS, AGAIN, LEAVE = 0, 1, 2

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
    """The byte automaton of one pattern without the empty string, trimmed; bytes of flat arrays.

    Parameters
    ----------
    n_positions : int
        0 if the pattern matches nothing, or only the empty string.
    n_edges : int
    start : int
        The first position; it has count 0 and doesn't accept.
    nullable : bool
        The pattern matches the empty string too.
    degree : (n_positions,) int32
        Edges of each position.
    low, high, guard : (n_edges,) uint8
    target, action : (n_edges,) int32
        Targets are positions of the fragment.
    accept, is_hub : (n_positions,) uint8
    count_min, count_max, distance : (n_positions,) int32
    first, after, inner : int
        Sets of bytes as bits: those that may begin a match, those that may follow where a match may
        end (or more), those that may stand after the first byte.
    """

    n_positions: int
    n_edges: int
    start: int
    nullable: bool
    degree: bytes
    low: bytes
    high: bytes
    guard: bytes
    target: bytes
    action: bytes
    accept: bytes
    is_hub: bytes
    count_min: bytes
    count_max: bytes
    distance: bytes
    first: int
    after: int
    inner: int


def empty_fragment(*, nullable: bool) -> Fragment:
    """Return the fragment of the empty language, or of the empty string alone."""
    return Fragment(
        n_positions=0,
        n_edges=0,
        start=-1,
        nullable=nullable,
        degree=b"",
        low=b"",
        high=b"",
        guard=b"",
        target=b"",
        action=b"",
        accept=b"",
        is_hub=b"",
        count_min=b"",
        count_max=b"",
        distance=b"",
        first=0,
        after=0,
        inner=0,
    )


# ------------------------------------------------------------------------------------ literals

_SPAN = 256
_UP = array("i", range(_SPAN + 1)).tobytes()
_DOWN = array("i", range(_SPAN, -1, -1)).tobytes()


@lru_cache(maxsize=8192)
def literal_fragment(data: bytes) -> Fragment:
    """Return the chain of positions that reads ``data``."""
    n = len(data)
    if n == 0:
        return empty_fragment(nullable=True)
    if n <= _SPAN:
        target, distance = _UP[4 : 4 * n + 4], _DOWN[4 * (_SPAN - n) :]
    else:
        target = array("i", range(1, n + 1)).tobytes()
        distance = array("i", range(n, -1, -1)).tobytes()
    ones = b"\x01\x00\x00\x00" * n + b"\0\0\0\0"
    inner = 0
    for byte in set(data[1:]):
        inner |= 1 << byte
    return Fragment(
        n_positions=n + 1,
        n_edges=n,
        start=0,
        nullable=False,
        degree=ones,
        low=data,
        high=data,
        guard=bytes(n),
        target=target,
        action=b"\xff" * (4 * n),
        accept=bytes(n) + b"\x01",
        is_hub=bytes(n + 1),
        count_min=bytes(4 * n + 4),
        count_max=b"\xff" * (4 * n + 4),
        distance=distance,
        first=1 << data[0],
        after=0,
        inner=inner,
    )


# ------------------------------------------------------------------------------------ finishing


class _Rows:
    """Edges of a draft's states with empty edges removed; states are the draft's."""

    def __init__(self, draft: Draft, final: int) -> None:
        self.draft = draft
        self.final = final
        self._arrivals: dict[int, tuple[tuple[int, int], ...]] = {}
        self._plain = not draft.hubs

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

    def arrivals(self, state: int) -> tuple[tuple[int, int], ...]:
        """Return where an edge to ``state`` leads: pairs (state, action)."""
        known = self._arrivals.get(state)
        if known is None:
            draft, goal = self.draft, self.forward(state)
            if goal in draft.ends:
                known = ((draft.ends[goal], INC),)
            elif goal in draft.hubs:
                known = ((goal, 0),)
            else:
                known = ((goal, KEEP),)
                if goal in draft.empty and draft.ends:
                    known += tuple((draft.ends[s], INC) for s in self.closure([goal]) if s in draft.ends)
            self._arrivals[state] = known
        return known

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
            for goal, action in arrivals.get(target) or self.arrivals(target):
                row.append((low, high, goal, guard, action))
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
    order, edges, accepts = _explore(rows, start, nullable, watch, place)
    distance = _distances(edges, accepts)
    if distance[0] < 0:
        return empty_fragment(nullable=nullable)
    order, edges, accepts, distance = _trim(order, edges, accepts, distance)
    return _flatten(draft, order, edges, accepts, distance, nullable)


def _explore(
    rows: _Rows, start: int, nullable: bool, watch: Watch, place: str
) -> tuple[list[int], list[list[Edge]], list[bool]]:
    """Return the states reachable from ``start``, their edges (targets are indices), and which accept."""
    index = {start: 0}
    order = [start]
    edges: list[list[Edge]] = []
    accepts: list[bool] = []
    n_edges = 0
    for state in order:  # grows while it is read
        row, accept = rows.row(state)
        renumbered: list[Edge] = []
        for low, high, target, guard, action in row:
            i = index.get(target)
            if i is None:
                i = index[target] = len(order)
                order.append(target)
            renumbered.append((low, high, i, guard, action))
        if len(renumbered) > 1:
            renumbered = sorted(set(renumbered))
        edges.append(renumbered)
        accepts.append(accept)
        n_edges += len(renumbered)
        watch.step(place, 1 + len(row))
        # Runs of optional parts have quadratically many edges.
        watch.at_most("positions", max(len(order), n_edges // _EDGES), place)
    if nullable:
        accepts[0] = False
    return order, edges, accepts


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
    n = len(order)
    flat = [edge for row in edges for edge in row]
    low, high, target, guard, action = zip(*flat, strict=True)
    if draft.hubs:
        hubs, hub_of = draft.hubs, draft.hub_of
        owners = [state if state in hubs else hub_of[state] for state in order]
        count_min = array("i", [hubs[h].minimum if h >= 0 else 0 for h in owners]).tobytes()
        count_max = array("i", [hubs[h].maximum if h >= 0 else -1 for h in owners]).tobytes()
        is_hub = bytes([state in hubs for state in order])
    else:
        count_min, count_max, is_hub = bytes(4 * n), b"\xff" * (4 * n), bytes(n)
    first = byte_set(edges[0])
    inner = byte_set(flat if 0 in target else flat[len(edges[0]) :])
    after = inner
    if _is_deterministic(edges):
        after = byte_set([e for row, accept in zip(edges, accepts, strict=True) if accept for e in row])
    return Fragment(
        n_positions=n,
        n_edges=len(flat),
        start=0,
        nullable=nullable,
        degree=array("i", map(len, edges)).tobytes(),
        low=bytes(low),
        high=bytes(high),
        guard=bytes(guard),
        target=array("i", target).tobytes(),
        action=array("i", action).tobytes(),
        accept=bytes(accepts),
        is_hub=is_hub,
        count_min=count_min,
        count_max=count_max,
        distance=array("i", distance).tobytes(),
        first=first,
        after=after,
        inner=inner,
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
