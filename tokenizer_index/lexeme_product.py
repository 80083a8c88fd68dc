"""Terminals read side by side: the states they reach together, found by a kernel.

A *loose* automaton forgets counts, negative literals that count, and that a conjunction may be dead: it goes on
and accepts wherever the terminal does, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.bits import members
from constrain.grammars.limits import Watch
from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index import native
from constrain.tokenizer_index.fragment import N_EDGE_COLUMNS, N_POSITION_COLUMNS
from constrain.tokenizer_index.lexeme import Lexeme

MOST_STATES = 4_000
"""States of one small determinisation; where there are more, the answer is the cautious one."""

# Steps of the kernel between two looks at the clock, some 10 ms, and how many of them count as one of a watch.
_WORK, _WORK_PER_STEP = 4_000_000, 500
# What a walk begins with.
_BEGIN = np.array([k.W_TERMINAL, k.W_COMPANION, k.W_DONE, k.W_N, k.W_N_TO])
# Items that tables which grow begin with.
_ROOM = 1024


class TooManyStatesError(Exception):
    """A determinisation reached its limit."""


class States(NamedTuple):
    """The states after one byte and more in which a terminal is alive.

    Parameters
    ----------
    goes_on : list of int
        The bytes, as bits, that some terminal reads there.
    flags : list of int
        Bits ``ENDS``, ``ENDS_GREEDY``, ``ENDS_ABOVE`` and ``HAS_COMPANION`` of `layout`.
    offsets, targets : list of int
        The states that state ``i`` leads to are ``targets[offsets[i]:offsets[i + 1]]``.
    """

    goes_on: list[int]
    flags: list[int]
    offsets: list[int]
    targets: list[int]


class Product:
    """The loose automata of terminals, and the kernel's tables.

    Parameters
    ----------
    lexemes : sequence of Lexeme or None
        ``None``: the terminal is never read.
    priority : sequence of int
    greedy : sequence of bool
    watch : Watch
    """

    def __init__(
        self,
        lexemes: Sequence[Lexeme | None],
        priority: Sequence[int],
        greedy: Sequence[bool],
        watch: Watch,
    ) -> None:
        self._watch = watch
        literals = [
            (t, *literal) for t, lexeme in enumerate(lexemes) if lexeme for literal in lexeme.literals
        ]
        fragments = [fragment for _, _, fragment in literals]
        sizes = np.array([fragment.n_positions for fragment in fragments], np.int64)
        bases = np.cumsum(sizes) - sizes
        positions = _rows([fragment.positions for fragment in fragments], N_POSITION_COLUMNS)
        edges = _rows([fragment.edges for fragment in fragments], N_EDGE_COLUMNS).copy()
        edges[:, 2] += np.repeat(bases, [fragment.n_edges for fragment in fragments])
        edge_offsets = np.zeros(len(positions) + 1, np.int32)
        np.cumsum(positions[:, 0], out=edge_offsets[1:])
        positive = [0] * len(lexemes)
        self._starts: list[list[int]] = [[] for _ in lexemes]
        self._together: dict[int, NDArray[np.int32]] = {}
        for (t, negative, fragment), base in zip(literals, bases.tolist(), strict=True):
            counts = positions[base : base + fragment.n_positions, 2]
            if not (negative and counts.any()):
                self._starts[t].append(base)
            positive[t] += not negative
        n_edges, n_positions, n_literals = len(edges), len(positions), len(literals)
        self._arrays: dict[int, NDArray[Any]] = {}
        self._header = np.zeros(k.WALK_SIZE, np.int64)
        for table, array in (
            (k.W_EDGES, edges),
            (k.W_EDGE_OFF, edge_offsets),
            (k.W_POSITIONS, positions),
            (k.W_LITERAL, np.repeat(np.arange(n_literals, dtype=np.int32), sizes)),
            (k.W_TERMINAL_OF, np.array([t for t, _, _ in literals], np.int32)),
            (k.W_NEGATIVE, np.array([negative for _, negative, _ in literals], np.int32)),
            (k.W_POSITIVE, np.array(positive, np.int32)),
            (k.W_PRIORITY, np.array(priority, np.int32)),
            (k.W_GREEDY, np.array(greedy, np.int32)),
            (k.W_OFF, np.zeros(MOST_STATES + 3, np.int64)),
            (k.W_POOL, np.empty(max(_ROOM, n_literals), np.int32)),
            (k.W_HASH, np.empty(1 << (2 * MOST_STATES).bit_length(), np.int32)),
            (k.W_MASK, np.empty((MOST_STATES + 2, 4), np.int64)),
            (k.W_FLAGS, np.empty(MOST_STATES + 2, np.int32)),
            (k.W_TO_OFF, np.zeros(MOST_STATES + 3, np.int64)),
            (k.W_TO, np.empty(_ROOM, np.int32)),
            (k.W_STAMP_POSITION, np.zeros(n_positions, np.int64)),
            (k.W_STAMP_LITERAL, np.zeros(n_literals, np.int64)),
            (k.W_STAMP_TERMINAL, np.zeros(len(lexemes), np.int64)),
            (k.W_STAMP_STATE, np.zeros(MOST_STATES + 2, np.int64)),
            (k.W_COUNT, np.zeros(len(lexemes), np.int32)),
            (k.W_FIRST, np.empty(256, np.int32)),
            (k.W_NEXT, np.empty(n_edges, np.int32)),
            (k.W_EDGE, np.empty(n_edges, np.int32)),
            (k.W_ACTIVE, np.empty(n_edges, np.int32)),
            (k.W_CELL, np.empty(n_positions, np.int32)),
        ):
            self._set(table, array)
        self._header[k.W_MOST] = MOST_STATES
        self._header[k.W_WORK_LIMIT] = _WORK
        with watch.paused():
            self._walk = native.load().walk_lexemes

    def _set(self, table: int, array: NDArray[Any]) -> None:
        self._arrays[table] = array
        self._header[2 * table : 2 * table + 2] = array.ctypes.data, array.size

    def _starts_of(self, company: int) -> NDArray[np.int32]:
        """Return where the literals of terminals start."""
        starts = self._together.get(company)
        if starts is None:
            found = [start for x in members(company) for start in self._starts[x]]
            starts = self._together[company] = np.array(found, np.int32)
            self._watch.step("lexemes", len(found))
        return starts

    def states(self, t: int, company: int, companion: int = -1) -> States:
        """Return the states of terminal ``t`` read beside ``company``.

        Parameters
        ----------
        t : int
        company : int
            The bits of terminals, ``t`` among them.
        companion : int
            A terminal that the flags tell of.

        Raises
        ------
        TooManyStatesError
            There are more than `MOST_STATES`.
        """
        header, arrays = self._header, self._arrays
        starts = self._starts_of(company)
        arrays[k.W_HASH].fill(-1)
        arrays[k.W_POOL][: len(starts)] = starts
        arrays[k.W_OFF][1] = len(starts)
        header[_BEGIN] = t, companion, 0, 1, 0
        while r := self._walk(header.ctypes.data):
            if r == k.LIMIT:
                raise TooManyStatesError
            if r == k.GROW:
                table = int(header[k.W_NEED_TABLE])
                grown = np.empty(2 * int(header[k.W_NEED]), np.int32)
                grown[: arrays[table].size] = arrays[table]
                self._set(table, grown)
            self._watch.step("lexemes", max(256, _WORK // _WORK_PER_STEP))
        n = int(header[k.W_N])
        self._watch.step("lexemes", 4 * n)
        offsets = arrays[k.W_TO_OFF][1 : n + 1]
        data = arrays[k.W_MASK][1:n].tobytes()
        return States(
            goes_on=[int.from_bytes(data[i : i + 32], "little") for i in range(0, len(data), 32)],
            flags=arrays[k.W_FLAGS][1:n].tolist(),
            offsets=(offsets - offsets[0]).tolist(),
            targets=(arrays[k.W_TO][offsets[0] : offsets[-1]] - 1).tolist(),
        )


def _rows(parts: list[bytes], n: int) -> NDArray[np.int32]:
    return np.frombuffer(b"".join(parts), np.int32).reshape(-1, n)
