"""Sets of Unicode scalar values as sorted, disjoint, inclusive, non-adjacent ranges.

Surrogates (U+D800 to U+DFFF) are no scalar values: `normalize` drops them, and `FULL` lacks them.
Two sets are equal exactly if their tuples are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

from constrain.grammars.ir import Ranges

LAST = 0x10FFFF
FULL: Ranges = ((0, 0xD7FF), (0xE000, LAST))
NONE: Ranges = ()

# Results of operations that are kept: letters have hundreds of ranges, and front ends ask the same again and again.
_KEPT = 128


def normalize(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Return the set that is the union of ``pairs``, which may overlap and come in any order."""
    out: list[tuple[int, int]] = []
    end = -2
    start = 0
    for low, high in sorted(pairs):
        if low <= end + 1:
            end = max(end, high)
        else:
            if end >= 0:
                out.append((start, end))
            start, end = low, high
    if end >= 0:
        out.append((start, end))
    if not out or out[-1][1] < 0xD800:
        return tuple(out)
    return _without_surrogates(out)


def _without_surrogates(pairs: list[tuple[int, int]]) -> Ranges:
    i = bisect_left(pairs, (0xD800, 0))
    if (i == 0 or pairs[i - 1][1] < 0xD800) and (i == len(pairs) or pairs[i][0] > 0xDFFF):
        return tuple(pairs)  # as most are
    out: list[tuple[int, int]] = []
    for low, high in pairs:
        if high < 0xD800 or low > 0xDFFF:
            out.append((low, high))
            continue
        if low < 0xD800:
            out.append((low, 0xD7FF))
        if high > 0xDFFF:
            out.append((0xE000, high))
    return tuple(out)


@lru_cache(maxsize=_KEPT)
def union(first: Ranges, second: Ranges) -> Ranges:
    """Return the values in either set."""
    if not first:
        return second
    if not second:
        return first
    return normalize((*first, *second))


@lru_cache(maxsize=_KEPT)
def complement(ranges: Ranges) -> Ranges:
    """Return the scalar values that are not in ``ranges``."""
    out: list[tuple[int, int]] = []
    following = 0
    for low, high in ranges:
        if low > following:
            out.append((following, low - 1))
        following = high + 1
    if following <= LAST:
        out.append((following, LAST))
    return _without_surrogates(out)


@lru_cache(maxsize=_KEPT)
def intersect(first: Ranges, second: Ranges) -> Ranges:
    """Return the values in both sets."""
    if first == FULL:
        return second
    if second == FULL:
        return first
    if len(first) > len(second):
        first, second = second, first
    out: list[tuple[int, int]] = []
    j, n = 0, len(second)
    for low, high in first:
        # The first range that doesn't end before this one.
        j = max(j, bisect_left(second, (low, -1), j) - 1)
        while j < n:
            other_low, other_high = second[j]
            if other_low > high:
                break
            if other_high >= low:
                out.append((max(other_low, low), min(other_high, high)))
                if other_high > high:
                    break
            j += 1
    return tuple(out)


def difference(first: Ranges, second: Ranges) -> Ranges:
    """Return the values of ``first`` that are not in ``second``."""
    if not first or not second:
        return first
    return intersect(first, complement(second))


def is_disjoint(first: Ranges, second: Ranges) -> bool:
    """Have the sets no value in common?"""
    return not intersect(first, second)


def contains(ranges: Ranges, value: int) -> bool:
    """Is ``value`` in the set?"""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] < value:
            low = middle + 1
        else:
            high = middle
    return low < len(ranges) and ranges[low][0] <= value


def partition(sets: Iterable[Ranges]) -> list[tuple[Ranges, int]]:
    """Split all scalar values by which of ``sets`` hold them.

    Returns
    -------
    list of (Ranges, int)
        The non-empty parts; bit ``i`` of the number is set where the part lies in set ``i``.
    """
    events: dict[int, int] = {0: 0, 0xD800: 0, 0xE000: 0}
    for index, ranges in enumerate(sets):
        bit = 1 << index
        for low, high in ranges:
            events[low] = events.get(low, 0) ^ bit
            events[high + 1] = events.get(high + 1, 0) ^ bit
    parts: dict[int, list[tuple[int, int]]] = {}
    points = sorted(events)
    members = 0
    for position, point in enumerate(points):
        members ^= events[point]
        end = points[position + 1] - 1 if position + 1 < len(points) else LAST
        if point <= LAST and not 0xD800 <= point <= 0xDFFF:
            parts.setdefault(members, []).append((point, end))
    return [(normalize(pairs), members) for members, pairs in parts.items()]
