"""UTF-8 of a set of characters as a small deterministic automaton, shared between all its uses.

A character class becomes edges on lead bytes and a few inner states for the continuation bytes. Inner
states that read the same are one state, so the 1,112,064 characters of "anything" need six of them.

Source: RFC 3629 (UTF-8), section 3.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.ir import Ranges

Edges: TypeAlias = tuple[tuple[int, int, int], ...]

# Lead byte, continuation bytes, first and last character of each form.
_FORMS = ((0xC0, 1, 0x80, 0x7FF), (0xE0, 2, 0x800, 0xFFFF), (0xF0, 3, 0x10000, 0x10FFFF))


class Utf8:
    """Edges ``(low, high, to)``; ``to`` is 0 for the end of the character, else an inner state from 1.

    Parameters
    ----------
    heads : tuple
        Edges on the first byte.
    inner : tuple of tuple
        Edges of inner states 1, 2, ...; each leads to 0 or to a smaller inner state.
    """

    def __init__(self, heads: Edges, inner: tuple[Edges, ...]) -> None:
        self.heads = heads
        self.inner = inner

    @cached_property
    def edges(self) -> NDArray[np.int32]:
        """(n, 3) all edges of ``inner``, in order."""
        return np.array([edge for edges in self.inner for edge in edges], np.int32).reshape(-1, 3)

    @cached_property
    def n_edges(self) -> NDArray[np.int32]:
        """(n,) edges of each inner state."""
        return np.array([len(edges) for edges in self.inner], np.int32)

    @cached_property
    def inner_bytes(self) -> int:
        """The bytes on edges of ``inner``, as bits."""
        found = 0
        for low, high in {(low, high) for edges in self.inner for low, high, _ in edges}:
            found |= (2 << high) - (1 << low)
        return found

    @cached_property
    def n_left(self) -> list[int]:
        """Bytes to the end of the character, for each inner state."""
        left = [0]
        for edges in self.inner:
            left.append(left[edges[0][2]] + 1)
        return left[1:]


@lru_cache(maxsize=4096)
def encode_ranges(ranges: Ranges) -> Utf8:
    """Return the automaton of one character of ``ranges`` (sorted, disjoint, inclusive)."""
    ids: dict[Edges, int] = {}
    heads: list[tuple[int, int, int]] = []
    for low, high in ranges:
        if low > 0x7F:
            break
        _append(heads, low, min(high, 0x7F), 0)
    if ranges and ranges[-1][1] > 0x7F:
        for lead, n, first, last in _FORMS:
            within = tuple((max(a, first), min(b, last)) for a, b in ranges if a <= last and b >= first)
            for low, high, inner in _digits(within, n, ids):
                _append(heads, lead + low, lead + high, inner)
    return Utf8(tuple(heads), tuple(ids))


def _digits(ranges: Ranges, n: int, ids: dict[Edges, int]) -> list[tuple[int, int, int]]:
    """Split numbers of ``n + 1`` digits to base 64 by their first digit.

    Returns
    -------
    list of (low, high, to)
        ``to`` stands for the set of remaining digits, interned in ``ids``.
    """
    shift = 6 * n
    full = (1 << shift) - 1
    parts: list[tuple[int, int, list[tuple[int, int]]]] = []
    for low, high in ranges:
        first, last = low >> shift, high >> shift
        low, high = low & full, high & full
        if first == last:
            _add_part(parts, first, low, high)
            continue
        if low:
            _add_part(parts, first, low, full)
            first += 1
        if high != full:
            last -= 1
        if first <= last:
            parts.append((first, last, [(0, full)]))
        if high != full:
            _add_part(parts, last + 1, 0, high)
    edges: list[tuple[int, int, int]] = []
    for first, last, rest in parts:
        _append(edges, first, last, _intern(tuple(rest), n, ids))
    return edges


def _add_part(parts: list[tuple[int, int, list[tuple[int, int]]]], digit: int, low: int, high: int) -> None:
    if parts and parts[-1][0] == parts[-1][1] == digit:
        parts[-1][2].append((low, high))
    else:
        parts.append((digit, digit, [(low, high)]))


def _intern(ranges: Ranges, n: int, ids: dict[Edges, int]) -> int:
    """Return the inner state for ``n`` continuation bytes that spell a number of ``ranges``."""
    if n == 0:
        return 0
    edges = tuple((0x80 + low, 0x80 + high, to) for low, high, to in _digits(ranges, n - 1, ids))
    # Inner states are numbered as they are finished, so an edge leads to a smaller number.
    return ids.setdefault(edges, len(ids) + 1)


def _append(edges: list[tuple[int, int, int]], low: int, high: int, to: int) -> None:
    """Append an edge, or widen the last one if it leads to the same place."""
    if edges and edges[-1][2] == to and edges[-1][1] + 1 == low:
        edges[-1] = (edges[-1][0], high, to)
    else:
        edges.append((low, high, to))
