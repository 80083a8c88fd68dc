"""Lookahead at the end of a terminal: what may not follow its lexeme directly.

A pattern of a terminal says what its lexemes are, not what comes after them. ``(?!X)`` at its end, with ``X`` one
character, and ``\\b`` behind a word say just that; a terminal of the intermediate representation keeps it as
``not_before``, as bytes: one byte must tell whether the lexeme may end.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammars.ir import EMPTY_LANGUAGE, Ranges
from constrain.grammars.regex.nodes import Case, Near, Node, Sequence, Tree, sequence
from constrain.grammars.regex.ranges import LAST, complement, intersect, normalize
from constrain.grammars.regex.restrict import restrict

_ASCII = ((0, 0x7F),)


def without_boundary(tree: Tree) -> tuple[Tree, Ranges]:
    """Return a tree without the lookahead at its end, and the characters that may not follow.

    These are none where there is no lookahead, or one of another kind.
    """
    if not isinstance(tree, Sequence) or not isinstance(tree.parts[-1], Near):
        return tree, ()
    before = sequence(tree.parts[:-1])
    cases = [case for case in tree.parts[-1].cases if _may_hold(before, case)]
    if len(cases) != 1 or not cases[0].at_end or _may_fail(before, cases[0]):
        return tree, ()
    return before, complement(cases[0].after)


def _may_hold(before: Tree, case: Case) -> bool:
    """May ``case`` hold behind ``before``, as far as what is before goes?"""
    if isinstance(before, Node) or case.at_start:
        return True
    return restrict(before, case.before, at_end=True) != EMPTY_LANGUAGE


def _may_fail(before: Tree, case: Case) -> bool:
    """May ``case`` not hold behind ``before``, as far as what is before goes?"""
    if not case.looks_behind:
        return False
    if isinstance(before, Node):
        return True
    return restrict(before, complement(case.before), at_end=True) != EMPTY_LANGUAGE


@lru_cache(maxsize=64)
def first_bytes(characters: Ranges) -> Ranges | None:
    """Return the bytes that begin ``characters`` in UTF-8; ``None`` if some begin others as well."""
    leads = {(byte, byte) for low, high in intersect(characters, _ASCII) for byte in range(low, high + 1)}
    blocks = [(lead, (lead & 0x1F) << 6, 6, 0x80) for lead in range(0xC2, 0xE0)]
    blocks += [(lead, (lead & 0x0F) << 12, 12, 0x800) for lead in range(0xE0, 0xF0)]
    blocks += [(lead, (lead & 0x07) << 18, 18, 0x10000) for lead in range(0xF0, 0xF5)]
    for lead, start, bits, least in blocks:
        block = normalize([(max(start, least), min(start + (1 << bits) - 1, LAST))])
        found = intersect(block, characters)
        if found and found != block:
            return None
        if found:
            leads.add((lead, lead))
    return normalize(sorted(leads))
