"""UTF-8 of a set of characters as a small deterministic automaton, shared between all its uses.

A character class becomes edges on lead bytes and a few inner states for the continuation bytes. Inner
states that read the same are one state, so the 1,112,064 characters of "anything" need six of them.

Source: RFC 3629 (UTF-8), section 3.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.ir import Ranges

Edges: TypeAlias = tuple[tuple[int, int, int], ...]

# Lead byte, bytes between it and the last, first and last block of 64 characters of each form.
_FORMS = ((0xC0, 0, 0x2, 0x1F), (0xE0, 1, 0x20, 0x3FF), (0xF0, 2, 0x400, 0x43FF))
_FULL = (1 << 64) - 1


class Utf8:
    """Edges ``(low, high, to)``; ``to`` is 0 for the end of the character, else an inner state from 1.

    Parameters
    ----------
    heads : tuple
        Edges on the first byte.
    inner : tuple of tuple
        Edges of inner states 1, 2, ...; each leads to 0 or to a smaller inner state.
    n_left : list of int
        Bytes to the end of the character, for each inner state.
    """

    def __init__(self, heads: Edges, inner: tuple[Edges, ...], n_left: list[int]) -> None:
        self.heads = heads
        self.inner = inner
        self.n_left = n_left

    @cached_property
    def edges(self) -> NDArray[np.int32]:
        """(n, 3) all edges of ``inner``, in order."""
        return np.fromiter(chain.from_iterable(chain.from_iterable(self.inner)), np.int32).reshape(-1, 3)

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


@lru_cache(maxsize=4096)
def encode_ranges(ranges: Ranges) -> Utf8:
    """Return the automaton of one character of ``ranges`` (sorted, disjoint, inclusive)."""
    heads: list[tuple[int, int, int]] = []
    for low, high in ranges:
        if low > 0x7F:
            break
        _append(heads, low, min(high, 0x7F), 0)
    if not ranges or ranges[-1][1] <= 0x7F:
        return Utf8(tuple(heads), (), [])
    inner: list[Edges] = []
    ids: dict[Edges, int] = {}
    blocks = _blocks(ranges, inner)
    n_left = [1] * len(inner)
    for lead, n, first, last in _FORMS:
        runs = [(max(a, first), min(b, last), to) for a, b, to in blocks if a <= last and b >= first]
        for left in range(2, n + 2):
            runs = _digits(runs, inner, ids)
            n_left += [left] * (len(inner) - len(n_left))
        for low, high, to in runs:
            _append(heads, lead + low, lead + high, to)
    return Utf8(tuple(heads), tuple(inner), n_left)


def _blocks(ranges: Ranges, inner: list[Edges]) -> list[tuple[int, int, int]]:
    """Return which blocks of 64 characters beyond ASCII have members, and the inner states for their last bytes."""
    masks: list[tuple[int, int, int]] = []
    block = mask = 0
    for low, high in ranges:
        if high <= 0x7F:
            continue
        low = max(low, 0x80)
        first, last = low >> 6, high >> 6
        if first != block:
            if mask:
                masks.append((block, block, mask))
            block, mask = first, 0
        if first == last:
            mask |= (2 << (high & 63)) - (1 << (low & 63))
            continue
        if low & 63 or mask:
            masks.append((block, block, mask | _FULL + 1 - (1 << (low & 63))))
            first += 1
        block, mask = last, (2 << (high & 63)) - 1
        if mask == _FULL:
            block, mask = last + 1, 0
        if first < block:
            masks.append((first, block - 1, _FULL))
    if mask:
        masks.append((block, block, mask))
    known: dict[int, int] = {}
    found = []
    for first, last, mask in masks:
        to = known.get(mask)
        if to is None:
            inner.append(_last_bytes(mask))
            to = known[mask] = len(inner)
        found.append((first, last, to))
    return found


@lru_cache(maxsize=4096)
def _last_bytes(mask: int) -> Edges:
    """Return the edges on the last bytes of the characters of a block of 64."""
    edges = []
    low = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        low, mask = low + skipped, mask >> skipped
        n = (~mask & mask + 1).bit_length() - 1
        edges.append((0x80 + low, 0x80 + low + n - 1, 0))
        low, mask = low + n, mask >> n
    return tuple(edges)


def _digits(
    runs: list[tuple[int, int, int]], inner: list[Edges], ids: dict[Edges, int]
) -> list[tuple[int, int, int]]:
    """Split off the last digits to base 64 of the numbers of ``runs``.

    Parameters
    ----------
    runs : list of (first, last, to)
        Rising; behind each number the inner state ``to`` goes on.
    inner, ids
        The inner states and their numbers.

    Returns
    -------
    list of (first, last, to)
        The same without the last digits, for which inner states stand.
    """
    found: list[tuple[int, int, int]] = []
    edges: list[tuple[int, int, int]] = []
    number = -1

    def finish(first: int, last: int) -> None:
        key = tuple(edges)
        to = ids.get(key)
        if to is None:
            # Inner states are numbered as they are finished, so an edge leads to a smaller number.
            inner.append(key)
            to = ids[key] = len(inner)
        found.append((first, last, to))
        edges.clear()

    for first, last, to in runs:
        low, high = first >> 6, last >> 6
        if low != number:
            if edges:
                finish(number, number)
            number = low
        if low == high:
            _append(edges, 0x80 + (first & 63), 0x80 + (last & 63), to)
            continue
        if first & 63 or edges:
            _append(edges, 0x80 + (first & 63), 0xBF, to)
            finish(low, low)
            low += 1
        number = high + (last & 63 == 63)
        if low < number:
            edges.append((0x80, 0xBF, to))
            finish(low, number - 1)
        if number == high:
            edges.append((0x80, 0x80 + (last & 63), to))
    if edges:
        finish(number, number)
    return found


def _append(edges: list[tuple[int, int, int]], low: int, high: int, to: int) -> None:
    """Append an edge, or widen the last one if it leads to the same place."""
    if edges and edges[-1][2] == to and edges[-1][1] + 1 == low:
        edges[-1] = (edges[-1][0], high, to)
    else:
        edges.append((low, high, to))
