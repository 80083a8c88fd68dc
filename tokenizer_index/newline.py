"""The byte automaton of a grammar's newline terminal, which measures the line to come.

A newline lexeme ends with the blanks of a line's indentation; which widths may stand there depends on the
blocks that are open. So its lexer values carry, in place of a count, what is asked for and what was measured:

``mode << 26 | target << 13 | width``

======  =========================================================================================
mode    the lexeme may end
======  =========================================================================================
EXACT   on a line of blanks alone, ``target`` columns wide
WIDER   on a line of blanks alone, more than ``target`` columns wide
SAME    on a line that holds something else, or on none, as a comment at the end of a text
======  =========================================================================================

A space is one column wide, a tab goes to the next multiple of the grammar's ``tab``, a line feed or form feed
starts at 0. Each position is a state of the pattern's deterministic automaton and one of three things: before
any line feed, among the blanks behind one (``TAIL``), or behind something else. A value whose lexeme can no
longer end as asked is dropped; ``RESET`` says that another line feed may come, ``SAME_END`` that the lexeme may
end as SAME asks.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import Terminal
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import N_EDGE_COLUMNS, N_POSITION_COLUMNS, Fragment
from constrain.tokenizer_index.layout import IS_LINE, LINE_BLANK, LINE_TAB, LINE_ZERO, RESET, SAME_END, TAIL
from constrain.tokenizer_index.lexeme import Lexeme

_BEFORE, _AMONG, _BEHIND = range(3)
_LINE_FEED, _TAB, _FORM_FEED, _SPACE = 0x0A, 0x09, 0x0C, 0x20

_State = tuple[frozenset[int], int]


class Measuring(NamedTuple):
    """The automaton of a newline terminal that measures widths.

    Parameters
    ----------
    fragment : Fragment
    flags : list of int
        TAIL, RESET and SAME_END of each position.
    onward : int
        Bytes, as bits, that go on after the blanks of a line.
    onward_to_the_end : int
        Bytes that go on where the lexeme may end, but no line feed can come any more.
    """

    fragment: Fragment
    flags: list[int]
    onward: int
    onward_to_the_end: int


def measuring(terminal: Terminal, lexeme: Lexeme, watch: Watch) -> Measuring:
    """Return the automaton of a newline terminal that measures widths.

    Raises
    ------
    UnsupportedFeatureError
        The terminal is a conjunction, counts rounds, or doesn't take blanks in any number after a line feed.
    """
    if not lexeme.is_plain or not lexeme.alive:
        raise _refused(terminal, "is a conjunction, or empty", "Write the line break as one plain pattern.")
    plain = lexeme.literals[0][1]
    positions = np.frombuffer(plain.positions, np.int32).reshape(-1, N_POSITION_COLUMNS)
    edges = np.frombuffer(plain.edges, np.int32).reshape(-1, N_EDGE_COLUMNS)
    if positions[:, 2].any() or (edges[:, 3] != 0).any():
        raise _refused(terminal, "counts repetitions", "Repeat with * or + in the line break.")
    rows = [
        [tuple(edge[:3]) for edge in part.tolist()] for part in np.split(edges, np.cumsum(positions[:-1, 0]))
    ]
    cuts = {0, 256}
    for byte in (_LINE_FEED, _TAB, _FORM_FEED, _SPACE):
        cuts |= {byte, byte + 1}
    for low, high in edges[:, :2].tolist():
        cuts |= {low, high + 1}
    spans = [(low, high - 1) for low, high in pairwise(sorted(cuts))]

    start: _State = (frozenset({0}), _BEFORE)
    index = {start: 0}
    states = [start]
    moves: list[list[tuple[int, int, int, int]]] = []
    for members, place in states:  # grows while it is read
        row: list[tuple[int, int, int, int]] = []
        for low, high in spans:
            after = frozenset(y for x in members for a, b, y in rows[x] if a <= low <= b)
            watch.step(f"terminal {terminal.name!r}")
            if not after:
                continue
            there, action = _move(place, low)
            state = after, there
            if state not in index:
                index[state] = len(states)
                states.append(state)
                watch.at_most("positions", len(states), f"terminal {terminal.name!r}")
            if row and row[-1][1:] == (low - 1, index[state], action):
                row[-1] = (row[-1][0], high, index[state], action)
            else:
                row.append((low, high, index[state], action))
        moves.append(row)
    accepts = [any(positions[x, 1] for x in members) for members, _ in states]
    tails = [place == _AMONG for _, place in states]
    for row, accept, tail in zip(moves, accepts, tails, strict=True):
        if tail and not (accept and any(low <= _SPACE <= high for low, high, _, _ in row)):
            raise _refused(
                terminal,
                "doesn't take blanks in any number after a line feed",
                r"Use a pattern like (\r?\n[ \t]*)+.",
            )
    resets = _reaching(
        moves, [any(action == LINE_ZERO and tails[y] for _, _, y, action in row) for row in moves]
    )
    same = _reaching(moves, [accept and not tail for accept, tail in zip(accepts, tails, strict=True)])
    flags = [TAIL * t | RESET * r | SAME_END * s for t, r, s in zip(tails, resets, same, strict=True)]
    if not resets[0]:
        raise _refused(terminal, "has no line feed", r"Use a pattern like (\r?\n[ \t]*)+.")
    ends = [
        accept and not tail and not reset for accept, tail, reset in zip(accepts, tails, resets, strict=True)
    ]
    return Measuring(_fragment(plain, moves, accepts), flags, _onward(moves, tails), _onward(moves, ends))


def _refused(terminal: Terminal, reason: str, hint: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(terminal.name, pointer=terminal.pointer, reason=reason, hint=hint)


def _move(place: int, byte: int) -> tuple[int, int]:
    """Return the place after a byte and what the byte does to the width."""
    if byte == _LINE_FEED:
        return _AMONG, LINE_ZERO
    if place == _AMONG and byte == _SPACE:
        return _AMONG, LINE_BLANK
    if place == _AMONG and byte == _TAB:
        return _AMONG, LINE_TAB
    if place == _AMONG and byte == _FORM_FEED:
        return _AMONG, LINE_ZERO
    return (_BEFORE if place == _BEFORE else _BEHIND), LINE_ZERO


def _reaching(moves: list[list[tuple[int, int, int, int]]], goals: list[bool]) -> list[bool]:
    """Return which states are goals or lead to one."""
    before: list[list[int]] = [[] for _ in moves]
    for x, row in enumerate(moves):
        for _, _, y, _ in row:
            before[y].append(x)
    found = list(goals)
    order = [x for x, is_goal in enumerate(goals) if is_goal]
    for x in order:  # grows while it is read
        for y in before[x]:
            if not found[y]:
                found[y] = True
                order.append(y)
    return found


def _onward(moves: list[list[tuple[int, int, int, int]]], ends: list[bool]) -> int:
    found = 0
    for row, is_end in zip(moves, ends, strict=True):
        if is_end:
            for low, high, _, _ in row:
                found |= (2 << high) - (1 << low)
    return found


def _fragment(plain: Fragment, moves: list[list[tuple[int, int, int, int]]], accepts: list[bool]) -> Fragment:
    distance = [-1] * len(moves)
    level = [x for x, accept in enumerate(accepts) if accept]
    depth = 0
    while level:
        for x in level:
            distance[x] = depth
        depth += 1
        level = [
            x
            for x, row in enumerate(moves)
            if distance[x] < 0 and any(distance[y] >= 0 for _, _, y, _ in row)
        ]
    positions, edges = array("i"), array("i")
    for row, accept, d in zip(moves, accepts, distance, strict=True):
        positions.extend((len(row), accept, IS_LINE, 0, -1, d))
        for low, high, target, action in row:
            edges.extend((low, high, target, 0, action))
    return plain._replace(
        n_positions=len(moves),
        n_edges=len(edges) // N_EDGE_COLUMNS,
        positions=positions.tobytes(),
        edges=edges.tobytes(),
    )
