"""The byte automaton of one pattern as flat arrays, which are parts of a network's (`network` says what they mean)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from constrain.grammars.ir import Ranges

KEEP, INC = -1, -2
ALWAYS, AGAIN, LEAVE = 0, 1, 2

SHORT_LITERAL = 64

# (low, high, target, guard, action)
Edge: TypeAlias = tuple[int, int, int, int, int]


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
    positions = array("i", (1, 0, 0, 0, -1, 0)) * n + array("i", (0, 1, 0, 0, -1, 0))
    positions[N_POSITION_COLUMNS - 1 :: N_POSITION_COLUMNS] = array("i", range(n, -1, -1))
    edges = array("i", (0, 0, 0, ALWAYS, KEEP)) * n
    edges[0::N_EDGE_COLUMNS] = edges[1::N_EDGE_COLUMNS] = array("i", list(data))
    edges[2::N_EDGE_COLUMNS] = array("i", range(1, n + 1))
    inner = 0
    for byte in set(data[1:]):
        inner |= 1 << byte
    return Fragment(n + 1, n, False, positions.tobytes(), edges.tobytes(), 1 << data[0], 0, inner)


@lru_cache(maxsize=4096)
def walled(fragment: Fragment, ranges: Ranges) -> Fragment:
    """Return ``fragment`` with a wall: a last position, of distance -1, to which ``ranges`` lead from all ends.

    No match goes on there, but a greedy lexeme doesn't end before a byte that leads there.
    """
    wall = fragment.n_positions
    rows = array("i", fragment.positions)
    edges = array("i", fragment.edges)
    counts = rows[0::N_POSITION_COLUMNS]
    ends = [i for i, accepts in enumerate(rows[1::N_POSITION_COLUMNS]) if accepts]
    all_edges = array("i")
    position = edge = 0
    for i in ends:
        behind = edge + N_EDGE_COLUMNS * sum(counts[position : i + 1])
        all_edges += edges[edge:behind]
        position, edge = i + 1, behind
        first = N_POSITION_COLUMNS * i
        guard = LEAVE if rows[first + 2] else ALWAYS
        for low, high in ranges:
            all_edges.extend((low, high, wall, guard, 0))
        rows[first] += len(ranges)
    all_edges += edges[edge:]
    rows.extend((0, 0, 0, 0, -1, -1))
    stopped = 0
    for low, high in ranges:
        stopped |= (2 << high) - (1 << low)
    return fragment._replace(
        n_positions=wall + 1,
        n_edges=len(all_edges) // N_EDGE_COLUMNS,
        positions=rows.tobytes(),
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
