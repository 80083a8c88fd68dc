"""Between characters and bytes: UTF-8 as automata (RFC 3629)."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from constrain.grammars.ir import Automaton, Ranges
from constrain.grammars.regex.ranges import normalize

# Branches on the next byte, sorted and disjoint: (lowest byte, highest byte, branches after it).
Branches: TypeAlias = tuple[tuple[int, int, "Branches"], ...]

_LENGTHS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))


def _sequences(low: int, high: int) -> list[tuple[tuple[int, int], ...]]:
    """Return byte ranges in a row that together spell the characters ``low`` to ``high``."""
    out = []
    stack = [(max(low, first), min(high, last)) for first, last in _LENGTHS]
    while stack:
        start, end = stack.pop()
        if start > end:
            continue
        n = len(chr(start).encode())
        for index in range(1, n):
            # The last ``index`` bytes must run over all their values, or not at all.
            mask = (1 << 6 * index) - 1
            if start & ~mask == end & ~mask:
                continue
            if start & mask:
                stack += [(start, start | mask), ((start | mask) + 1, end)]
                break
            if end & mask != mask:
                stack += [(start, (end & ~mask) - 1), (end & ~mask, end)]
                break
        else:
            out.append(tuple(zip(chr(start).encode(), chr(end).encode(), strict=True)))
    return sorted(out)


@lru_cache(maxsize=1024)
def branches(ranges: Ranges) -> Branches:
    """Return the bytes of the characters in ``ranges`` as a tree that reads from the first byte."""
    return _branches([sequence for low, high in ranges for sequence in _sequences(low, high)])


def _branches(sequences: list[tuple[tuple[int, int], ...]]) -> Branches:
    by_first: dict[tuple[int, int], list[tuple[tuple[int, int], ...]]] = {}
    for sequence in sequences:
        by_first.setdefault(sequence[0], []).append(sequence[1:])
    out: list[tuple[int, int, Branches]] = []
    for (low, high), tails in sorted(by_first.items()):
        rest = _branches(tails) if tails[0] else ()
        if out and out[-1][1] == low - 1 and out[-1][2] == rest:
            out[-1] = (out[-1][0], high, rest)
        else:
            out.append((low, high, rest))
    return tuple(out)


def byte_automaton(
    n_states: int, start: int, accepting: frozenset[int], edges: list[tuple[int, Ranges, int]]
) -> Automaton:
    """Return the byte automaton of a character automaton.

    Parameters
    ----------
    n_states, start, accepting
        As in `Automaton`; the new states between the bytes of a character come after these.
    edges : list of (source, Ranges, target)
    """
    made: dict[tuple[Branches, int], int] = {}
    out: dict[tuple[int, int, int, int], None] = {}

    def add(source: int, tree: Branches, target: int) -> None:
        # At most four levels deep.
        for low, high, rest in tree:
            if not rest:
                out[source, low, high, target] = None
                continue
            middle = made.get((rest, target))
            if middle is None:
                middle = made[rest, target] = n_states + len(made)
                add(middle, rest, target)
            out[source, low, high, middle] = None

    for source, ranges, target in edges:
        add(source, branches(ranges), target)
    return Automaton(n_states + len(made), start, accepting, tuple(out))


def character_edges(automaton: Automaton) -> list[tuple[int, Ranges, int]]:
    """Return the edges of ``automaton`` read by whole characters; the inverse of `byte_automaton`.

    Only edges from states that can be reached by whole characters are listed.
    """
    outgoing: dict[int, list[tuple[int, int, int]]] = {}
    for source, low, high, target in automaton.edges:
        outgoing.setdefault(source, []).append((low, high, target))
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    todo = [automaton.start]
    seen = {automaton.start}
    while todo:
        source = todo.pop()
        paths: list[tuple[int, tuple[tuple[int, int], ...]]] = [(source, ())]
        while paths:
            state, read = paths.pop()
            for low, high, target in outgoing.get(state, ()):
                sequence = (*read, (low, high))
                n = (
                    1
                    if sequence[0][1] < 0x80
                    else 2
                    if sequence[0][1] < 0xE0
                    else 3
                    if sequence[0][1] < 0xF0
                    else 4
                )
                if len(sequence) < n:
                    paths.append((target, sequence))
                    continue
                found.setdefault((source, target), []).extend(_characters(sequence))
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
    return [(source, normalize(pairs), target) for (source, target), pairs in found.items()]


def _characters(sequence: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """Return the code points that byte ranges in a row spell."""
    n = len(sequence)
    mask = 0x7F if n == 1 else 0x7F >> n
    pairs = [(sequence[0][0] & mask, sequence[0][1] & mask)]
    for low, high in sequence[1:]:
        low, high = low & 0x3F, high & 0x3F
        if low == 0 and high == 0x3F:
            pairs = [(first << 6, last << 6 | 0x3F) for first, last in pairs]
        else:
            pairs = [
                (value << 6 | low, value << 6 | high)
                for first, last in pairs
                for value in range(first, last + 1)
            ]
    return pairs
