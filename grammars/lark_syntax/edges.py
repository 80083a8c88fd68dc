r"""Lookaround at the ends of a terminal, which sees the text around the lexeme.

What a regular expression asks of the text before its first or after its last character is no property of the
lexeme. `split` takes it off a terminal; when the grammar is known, `holds` says whether it is always so, given
what may stand beside the lexeme. ``/if\b/`` is fine where a blank must follow, and so is ``/[0-9]+(?![0-9])/``
always, since a lexeme ends where no digit follows. Nor does it matter what another terminal would read on as part of
a longer lexeme: ``/if\b/`` is fine as well wherever a name may stand in its place. Lookahead of a whole terminal that the
next byte decides, given what may stand there, is enforced while texts are read: `refused_bytes`. Anything else is refused.

Lookahead that is not the last part of a terminal sees what is left of the lexeme, and no more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from constrain.grammars.adjacency import edge_characters
from constrain.grammars.ir import EMPTY_STRING, Concatenation, Pattern, Ranges, Repeat
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import single_characters
from constrain.grammars.regex.nodes import (
    Choice,
    Look,
    Loop,
    Near,
    Node,
    Sequence,
    Tree,
    choice,
    sequence,
    tree_lengths,
)
from constrain.grammars.regex.prefixes import few_members, next_characters
from constrain.grammars.regex.ranges import FULL, NONE, difference, intersect, is_disjoint, normalize, union

_MOST_WORDS = 64


@dataclass(frozen=True, slots=True)
class Condition:
    """Assertions of which one must hold.

    Parameters
    ----------
    parts : tuple of Near or Look
    core : Tree or None
        What the lexemes are for which they must; ``None``: any of the terminal.
    """

    parts: tuple[Near | Look, ...]
    core: Tree | None = None


@dataclass(slots=True)
class Edges:
    """What a terminal asks of the text before and after its lexemes; all of it must hold."""

    before: list[Condition] = field(default_factory=list)
    after: list[Condition] = field(default_factory=list)
    is_in_loop: bool = False

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.is_in_loop)


def split(tree: Tree) -> tuple[Tree, Edges]:
    """Return ``tree`` without the lookaround at its ends, and that lookaround."""
    edges = Edges()
    if not isinstance(tree, Node):
        return tree, edges
    tree = run(_strip(tree, True, edges))
    return run(_strip(tree, False, edges)), edges


def _strip(tree: Tree, at_end: bool, edges: Edges) -> Task[Tree]:
    """Take off what looks beyond the end (or the start) of ``tree``."""
    if not isinstance(tree, Node):
        return tree
    condition = _condition(tree, at_end)
    if condition is not None:
        (edges.after if at_end else edges.before).append(condition)
        return EMPTY_STRING
    match tree:
        case Sequence(parts):
            left = list(parts)
            found = edges.after if at_end else edges.before
            n_before = len(found)
            places = range(len(left) - 1, -1, -1) if at_end else range(len(left))
            for i in places:
                if isinstance(left[i], Node):
                    left[i] = yield _strip(left[i], at_end, edges)
                if tree_lengths(left[i])[1] != 0:
                    break
            core = sequence(left)
            # The outermost sequence is the whole lexeme.
            found[n_before:] = [replace(condition, core=core) for condition in found[n_before:]]
            return core
        case Choice(parts):
            left = []
            for part in parts:
                left.append((yield _strip(part, at_end, edges)))
            return choice(left)
        case Loop(body):
            inner = Edges()
            yield _strip(body, at_end, inner)
            edges.is_in_loop |= bool(inner)
    return tree


def _condition(tree: Tree, at_end: bool) -> Condition | None:
    """Return the assertions of which one must hold, if ``tree`` is nothing else and looks outwards."""
    parts = tree.parts if isinstance(tree, Choice) else (tree,)
    found: list[Near | Look] = []
    for part in parts:
        if isinstance(part, Near):
            looks = any(case.looks_ahead if at_end else case.looks_behind for case in part.cases)
        elif isinstance(part, Look):
            looks = part.ahead == at_end
        else:
            return None
        if not looks:
            return None
        found.append(part)
    return Condition(tuple(found))


@dataclass(frozen=True, slots=True)
class Side:
    """What may stand beside the lexemes of a terminal.

    Parameters
    ----------
    inner : Ranges
        Characters at which the lexemes end (or begin).
    outer : Ranges
        Characters that may stand beside them.
    is_last : bool
        There may be no character.
    """

    inner: Ranges
    outer: Ranges
    is_last: bool


def holds(condition: Condition, side: Side, *, after: bool) -> bool:
    """Is the condition true whatever stands there?"""
    return any(_holds(part, side, after) for part in condition.parts)


def _holds(part: Near | Look, side: Side, after: bool) -> bool:
    if isinstance(part, Look):
        body = part.body
        if isinstance(body, Node) or not part.negative:
            return False
        return is_disjoint(edge_characters(body, at_end=not after), side.outer)
    covered = NONE
    for case in part.cases:
        near, far = (case.before, case.after) if after else (case.after, case.before)
        is_fine_alone = case.at_end if after else case.at_start
        if is_disjoint(near, side.inner):
            continue
        if difference(side.outer, far) or (side.is_last and not is_fine_alone):
            return False
        covered = union(covered, near)
    return not difference(side.inner, covered)


def refused_bytes(condition: Condition, side: Side) -> Ranges | None:
    """Return the bytes before which a terminal's lexemes don't end, so that the condition on what follows is true.

    ``None`` where that depends on more than the next byte, or on the lexeme.
    """
    allowed = NONE
    for part in condition.parts:
        if isinstance(part, Look):
            return None
        relevant = [case for case in part.cases if not is_disjoint(case.before, side.inner)]
        if any(difference(side.inner, case.before) for case in relevant):
            return None
        if side.is_last and not any(case.at_end for case in relevant):
            continue
        for case in relevant:
            allowed = union(allowed, case.after)
    if side.is_last and not allowed:
        return None
    refused = _first_bytes(difference(side.outer, allowed))
    return refused if is_disjoint(refused, _first_bytes(intersect(side.outer, allowed))) else None


def _first_bytes(characters: Ranges) -> Ranges:
    """Return the bytes that begin ``characters`` in UTF-8; those rise with the characters."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(characters):
        low, high = characters[at]
        found.append((_lead_byte(low), _lead_byte(high)))
        at += 1
        if found[-1][1] >= 0xC2:
            # Ranges with the same byte at both ends say nothing new.
            behind = bisect_left(characters, (_after_lead_byte(found[-1][1]), 0), at)
            at = max(at, behind - 1)
    return normalize(found)


def _lead_byte(character: int) -> int:
    """Return the first byte of a character in UTF-8."""
    if character < 0x80:
        return character
    if character < 0x800:
        return 0xC0 | character >> 6
    return 0xE0 | character >> 12 if character < 0x10000 else 0xF0 | character >> 18


def _after_lead_byte(byte: int) -> int:
    """Return the first character behind those that begin with a byte from C2 on."""
    if byte < 0xE0:
        return (byte & 0x1F) + 1 << 6
    return (byte & 0xF) + 1 << 12 if byte < 0xF0 else (byte & 7) + 1 << 18


def continuing(pattern: Pattern) -> Ranges:
    """Return characters with which every lexeme of ``pattern`` goes on, so that none follows a greedy one."""
    last = pattern.parts[-1] if isinstance(pattern, Concatenation) else pattern
    if isinstance(last, Repeat) and last.maximum is None:
        single = single_characters(last.body)
        if single is not None:
            return single
    return NONE


def read_on(words: Pattern, others: Iterable[Pattern]) -> Ranges:
    """Return characters with which some of ``others`` goes on after every member of ``words``, if these are few."""
    members = few_members(words, _MOST_WORDS)
    if not members:
        return NONE
    found = FULL
    patterns = list(others)
    for word in members:
        onward: Ranges = NONE
        for pattern in patterns:
            onward = union(onward, next_characters(pattern, word))
        found = intersect(found, onward)
    return found
