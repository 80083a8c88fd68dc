"""Terminals without the bytes that no token holds.

A byte that no token holds is in no output. The texts that are left are those of the same terminals without the
edges on such bytes, and without the positions from which only such bytes lead to an end. So lexemes are read as
before, but for one thing: a greedy lexeme doesn't end where the next byte could continue it or one read beside
it, be it towards an end that can't be written any more. `without_bytes` looks for places where that counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.ir import Terminal
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import N_EDGE_COLUMNS, N_POSITION_COLUMNS, Fragment, empty_fragment
from constrain.tokenizer_index.lexeme import Lexeme
from constrain.tokenizer_index.lexeme_product import MOST_STATES

_PLACE = "terminals without bytes that no token holds"
_ALL_BYTES = (1 << 256) - 1

_Pair = tuple[frozenset[int], frozenset[int]]


class _Cut(NamedTuple):
    """A fragment without some bytes.

    Parameters
    ----------
    fragment : Fragment
        Trimmed.
    moves : list of list of (int, int)
        For each position of the whole fragment: (bytes that are left, position after any of them).
    accepts, is_alive, is_lost : list of bool
        Of these positions: a match ends here; an end can be reached; only without the lost bytes it can't.
    """

    fragment: Fragment
    moves: list[list[tuple[int, int]]]
    accepts: list[bool]
    is_alive: list[bool]
    is_lost: list[bool]

    @property
    def counts(self) -> bool:
        """Has it counted repeats?"""
        return bool(_positions(self.fragment)[:, 2].any())


class StillReadError(Exception):
    """Where lexemes end may depend on texts that hold lost bytes."""


def without_bytes(
    lexemes: Sequence[Lexeme | None], greedy: AbstractSet[int], lost: bytes, watch: Watch
) -> list[Lexeme | None] | None:
    """Return terminals without the texts that hold a byte of ``lost``.

    Parameters
    ----------
    lexemes : sequence of Lexeme or None
    greedy : set of int
        Terminals that are read as far as they go.
    lost : bytes
        Rising.
    watch : Watch

    Returns
    -------
    list of Lexeme or None, or None
        None where it isn't certain that greedy lexemes end where they did.
    """
    found = [lexeme and _lexeme_without(lexeme, lost, watch) for lexeme in lexemes]
    if not greedy:
        return found
    begins = 0
    for lexeme in found:
        if lexeme is not None and lexeme.alive:
            begins |= _first(lexeme)
    changed = [u for u, lexeme in enumerate(lexemes) if lexeme is not None and _may_lose(lexeme, lost)]
    for u in changed:
        for t in greedy:
            if _may_end_early(lexemes[t], lexemes[u], lost, begins, watch):
                return None
    return found


def may_be_missed(
    terminals: Sequence[Terminal],
    lexemes: Sequence[Lexeme | None],
    cut: AbstractSet[int],
    greedy: AbstractSet[int],
) -> bool:
    """May a lexeme end or count where one of ``cut``, which is no longer read beside it, stood in the way?

    Parameters
    ----------
    terminals : sequence of Terminal
    lexemes : sequence of Lexeme or None
        Without the lost bytes.
    cut : set of int
        Terminals that are left out somewhere, because what must follow them there is lost altogether.
    greedy : set of int
    """
    for u in cut:
        beside = lexemes[u]
        if beside is None or not beside.alive:
            continue
        for t, lexeme in enumerate(lexemes):
            if t == u or lexeme is None or not lexeme.alive:
                continue
            hides = t in greedy or terminals[u].priority > terminals[t].priority
            if hides and _first(lexeme) & _first(beside):
                return True
    return False


def _lexeme_without(lexeme: Lexeme, lost: bytes, watch: Watch) -> Lexeme:
    watch.step(_PLACE, 1 + sum(fragment.n_edges for _, fragment in lexeme.literals) // 16)
    if not lexeme.alive:
        return lexeme
    literals = [(negative, _cut(fragment, lost).fragment) for negative, fragment in lexeme.literals]
    if any(not negative and fragment.n_positions == 0 for negative, fragment in literals):
        return Lexeme([], alive=False, nullable=lexeme.nullable)
    return lexeme._replace(literals=[literal for literal in literals if literal[1].n_positions])


def _first(lexeme: Lexeme) -> int:
    found = _ALL_BYTES
    for negative, fragment in lexeme.literals:
        if not negative:
            found &= fragment.first
    return found


def _may_lose(lexeme: Lexeme, lost: bytes) -> bool:
    """May a beginning of a lexeme that can still be written be one of lost texts only?"""
    if not lexeme.alive:
        return False
    if lexeme.is_plain:
        return any(_cut(lexeme.literals[0][1], lost).is_lost)
    # A byte that no part tells from one that is left stands for it, and each part must have it.
    borders = np.zeros(257, np.int64)
    is_used = np.ones(256, np.bool_)
    for negative, fragment in lexeme.literals:
        edges = _edges(fragment)
        borders[edges[:, 0]] = borders[edges[:, 1] + 1] = 1
        if not negative:
            change = np.zeros(257, np.int64)
            np.add.at(change, edges[:, 0], 1)
            np.add.at(change, edges[:, 1] + 1, -1)
            is_used &= np.cumsum(change)[:256] > 0
    number = np.cumsum(borders)[:256]
    without = np.frombuffer(lost, np.uint8)
    left = np.delete(number, without)
    return bool((~np.isin(number[without], left) & is_used[without]).any())


def _may_end_early(t: Lexeme | None, u: Lexeme | None, lost: bytes, begins: int, watch: Watch) -> bool:
    """May a lexeme of ``t`` now end before a byte of ``begins`` that only led on to lost texts of ``u``?"""
    if t is None or u is None or not t.alive or not _first(t) & _first(u):
        return False
    if not u.is_plain:
        return True
    # A conjunction ends only where each of its parts does; where it goes on isn't known.
    whole = next(fragment for negative, fragment in t.literals if not negative)
    own, other = _cut(whole, lost), _cut(u.literals[0][1], lost)
    is_sure = t.is_plain and not own.counts
    seen: set[_Pair] = {(frozenset({0}), frozenset({0}))}
    todo = list(seen)
    while todo:
        pair = todo.pop()
        watch.step(_PLACE, 4)
        for after in _after(own, other, pair):
            if not after[0] or not after[1] or after in seen:
                continue
            if any(own.accepts[x] for x in after[0]) and begins & _stops(own, other, after, is_sure=is_sure):
                return True
            if len(seen) >= MOST_STATES:
                return True
            seen.add(after)
            todo.append(after)
    return False


def _after(own: _Cut, other: _Cut, pair: _Pair) -> Iterator[_Pair]:
    """Yield the pairs of sets of positions one byte on; of the first only those that are alive."""
    rows = [(span, y, 0) for x in pair[0] for span, y in own.moves[x] if own.is_alive[y]]
    rows += [(span, y, 1) for x in pair[1] for span, y in other.moves[x]]
    cuts = sorted({0, *(i for span, _, _ in rows for i in _borders(span))})
    for low in cuts:
        sets: tuple[set[int], set[int]] = set(), set()
        for span, y, k in rows:
            if span >> low & 1:
                sets[k].add(y)
        yield frozenset(sets[0]), frozenset(sets[1])


def _borders(span: int) -> Iterator[int]:
    """Yield the bytes at which a set of bytes begins or stops."""
    change = span ^ span << 1
    while change:
        low = change & -change
        if low.bit_length() <= 256:
            yield low.bit_length() - 1
        change ^= low


def _stops(own: _Cut, other: _Cut, pair: _Pair, *, is_sure: bool) -> int:
    """Return the bytes that lead to lost texts only."""
    lost = goes_on = 0
    for x in pair[1]:
        for span, y in other.moves[x]:
            if other.is_lost[y]:
                lost |= span
            elif other.is_alive[y] and not other.counts:
                goes_on |= span
    if is_sure:
        for x in pair[0]:
            for span, y in own.moves[x]:
                if own.is_alive[y]:
                    goes_on |= span
    return lost & ~goes_on


# ------------------------------------------------------------------------------------ fragments


def _edges(fragment: Fragment) -> NDArray[np.int32]:
    return np.frombuffer(fragment.edges, np.int32).reshape(-1, N_EDGE_COLUMNS)


def _positions(fragment: Fragment) -> NDArray[np.int32]:
    return np.frombuffer(fragment.positions, np.int32).reshape(-1, N_POSITION_COLUMNS)


@lru_cache(maxsize=256)
def _cut(fragment: Fragment, lost: bytes) -> _Cut:
    """Return ``fragment`` without bytes."""
    edges, positions = _edges(fragment), _positions(fragment)
    sources = np.repeat(np.arange(fragment.n_positions), positions[:, 0])
    parts = []
    for low, high in _runs(lost):
        inside = (edges[:, 0] <= high) & (edges[:, 1] >= low)
        part = edges[inside].copy()
        np.clip(part[:, :2], low, high, out=part[:, :2])
        parts.append((sources[inside], part))
    source = np.concatenate([own for own, _ in parts])
    order = np.argsort(source, kind="stable")
    source, kept = source[order], np.concatenate([part for _, part in parts])[order]
    accepts = positions[:, 1] != 0
    distance = _distances(source, kept[:, 2], accepts)
    was_alive = positions[:, 5] >= 0
    moves: list[list[tuple[int, int]]] = [[] for _ in range(fragment.n_positions)]
    for x, (low, high, y, _, _) in zip(source.tolist(), kept.tolist(), strict=True):
        moves[x].append(((2 << high) - (1 << low), y))
    reached = _reached(moves)
    is_alive = distance >= 0
    return _Cut(
        _trimmed(fragment, source, kept, distance, reached & (is_alive | ~was_alive)),
        moves,
        accepts.tolist(),
        is_alive.tolist(),
        (reached & was_alive & ~is_alive).tolist(),
    )


def _runs(lost: bytes) -> list[tuple[int, int]]:
    """Return the runs of bytes that are left."""
    return [(low + 1, high - 1) for low, high in pairwise([-1, *lost, 256]) if low + 1 < high]


def _distances(
    source: NDArray[np.int64], target: NDArray[np.int32], accepts: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return the fewest bytes from each position to acceptance, -1 where there is no way."""
    before: list[list[int]] = [[] for _ in accepts]
    for x, y in zip(source.tolist(), target.tolist(), strict=True):
        before[y].append(x)
    order = np.flatnonzero(accepts).tolist()
    distance = [0 if accept else -1 for accept in accepts.tolist()]
    for y in order:  # grows while it is read
        for x in before[y]:
            if distance[x] < 0:
                distance[x] = distance[y] + 1
                order.append(x)
    return np.array(distance, np.int32)


def _reached(moves: list[list[tuple[int, int]]]) -> NDArray[np.bool_]:
    found = np.zeros(len(moves), np.bool_)
    order = [0]
    found[0] = True
    for x in order:  # grows while it is read
        for _, y in moves[x]:
            if not found[y]:
                found[y] = True
                order.append(y)
    return found


def _trimmed(
    fragment: Fragment,
    source: NDArray[np.int64],
    edges: NDArray[np.int32],
    distance: NDArray[np.int32],
    is_kept: NDArray[np.bool_],
) -> Fragment:
    """Return the fragment of some positions and of the edges among them."""
    if distance[0] < 0:
        return empty_fragment(nullable=fragment.nullable)
    positions = _positions(fragment)
    number = np.cumsum(is_kept) - 1
    inside = is_kept[source] & is_kept[edges[:, 2]]
    source, edges = source[inside], edges[inside]
    edges[:, 2] = number[edges[:, 2]]
    rows = positions.copy()
    rows[:, 0] = np.bincount(source, minlength=len(rows))
    rows[:, 5] = distance
    is_first, accepting = source == 0, positions[source, 1] != 0
    loops = bool((edges[:, 2] == 0).any())
    inner = _byte_set(edges if loops else edges[~is_first])
    same = source[1:] == source[:-1]
    by_low = np.lexsort((edges[:, 0], source))
    low, high = edges[by_low, 0], edges[by_low, 1]
    is_deterministic = not (same & (low[1:] <= high[:-1])).any()
    return Fragment(
        n_positions=int(is_kept.sum()),
        n_edges=len(edges),
        nullable=fragment.nullable,
        positions=rows[is_kept].tobytes(),
        edges=edges.tobytes(),
        first=_byte_set(edges[is_first]),
        after=_byte_set(edges[accepting]) if is_deterministic else inner,
        inner=inner,
    )


def _byte_set(edges: NDArray[np.int32]) -> int:
    found = 0
    for low, high in {(low, high) for low, high in edges[:, :2].tolist()}:
        found |= (2 << high) - (1 << low)
    return found
