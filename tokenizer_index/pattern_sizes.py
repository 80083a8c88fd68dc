"""How many positions a pattern takes, computed before any of it is built.

The numbers are exact whole numbers of any size, so that `(((a{1000}){1000}){1000}` is judged as quickly as
`a{3}`. Each node is looked at once, with a stack instead of recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from constrain.grammars.ir import (
    Alternation,
    Automaton,
    ByteClass,
    CharacterClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Repeat,
    SpecialToken,
)
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.boolean import trim
from constrain.tokenizer_index.special_tokens import spelling
from constrain.tokenizer_index.utf8 import encode_ranges


class Size(NamedTuple):
    """What a pattern takes: positions with repeats counted where that is cheaper, and all unrolled."""

    counted: int
    unrolled: int
    nullable: bool
    empty: bool


class Sizes:
    """Sizes of patterns and of their parts.

    Parameters
    ----------
    explicit : callable
        Returns the automaton of an `Intersection` or `Complement`, whose size isn't known before.
    watch : Watch
    place : str
        What is being compiled, for errors.
    """

    def __init__(
        self, explicit: Callable[[Intersection | Complement], Automaton], watch: Watch, place: str
    ) -> None:
        self._explicit = explicit
        self._watch = watch
        self._place = place
        self._known: dict[int, tuple[Pattern, Size]] = {}

    def of(self, pattern: Pattern) -> Size:
        """Return the size of ``pattern``; each node is looked at once."""
        sizes = self._known
        tasks = [(pattern, False)]
        while tasks:
            node, has_parts = tasks.pop()
            if id(node) in sizes:
                continue
            parts = _parts(node)
            if parts and not has_parts:
                tasks.append((node, True))
                tasks += [(part, False) for part in parts]
                continue
            self._watch.step(self._place)
            # The node is kept beside its size, so that its id stays its own.
            sizes[id(node)] = (node, self._size(node, [sizes[id(part)][1] for part in parts]))
        return sizes[id(pattern)][1]

    def _size(self, node: Pattern, parts: list[Size]) -> Size:
        if isinstance(node, Literal):
            return Size(len(node.data), len(node.data), not node.data, False)
        if isinstance(node, CharacterClass):
            n = 1 + len(encode_ranges(node.ranges).inner)
            return Size(n, n, False, not node.ranges)
        if isinstance(node, SpecialToken):
            n = len(spelling(node.name))
            return Size(n, n, False, False)
        if isinstance(node, ByteClass):
            return Size(1, 1, False, not node.ranges)
        if isinstance(node, Concatenation | Alternation):
            fold = all if isinstance(node, Concatenation) else any
            return Size(
                sum(part.counted for part in parts),
                sum(part.unrolled for part in parts),
                fold(part.nullable for part in parts),
                any(part.empty for part in parts)
                if isinstance(node, Concatenation)
                else all(part.empty for part in parts),
            )
        if isinstance(node, Repeat):
            return _size_of_repeat(node, parts[0])
        automaton = trim(node if isinstance(node, Automaton) else self._explicit(node))
        n = automaton.n_states
        return Size(n, n, automaton.start in automaton.accepting, not automaton.accepting)


def _size_of_repeat(node: Repeat, body: Size) -> Size:
    _, minimum, maximum = merge_repeats(node)
    if maximum is not None and maximum < minimum:
        return Size(0, 0, False, True)
    rounds = max(1, minimum) if maximum is None else maximum
    unrolled = rounds * body.unrolled
    counted = rounds * body.counted
    if rounds > 1:
        counted = min(counted, body.unrolled + 1)
    return Size(counted, unrolled, minimum == 0 or body.nullable, minimum > 0 and body.empty)


def merge_repeats(pattern: Repeat) -> tuple[Pattern, int, int | None]:
    """Return body and limits of a repeat, with directly nested repeats made one where they are one.

    ``(x{a,b}){c,d}`` is ``x{ac,bd}`` if the counts ``ka..kb`` of ``k`` rounds leave no gap before those
    of ``k + 1`` rounds, for every ``k`` from ``c`` to ``d - 1``; the gap is widest at ``c``.
    """
    body, c, d = pattern.body, pattern.minimum, pattern.maximum
    while isinstance(body, Repeat) and d != 0 and (d is None or c <= d):
        a, b = body.minimum, body.maximum
        if b is not None and b < a:
            break
        if c != d and (a > 1 if c == 0 else b is not None and (c + 1) * a > c * b + 1):
            break
        c, d = c * a, None if b is None or (d is None and b > 0) else b * (d or 0)
        body = body.body
    return body, c, d


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    """Return the parts of a node whose size is made from theirs."""
    if isinstance(pattern, Concatenation | Alternation):
        return pattern.parts
    return (merge_repeats(pattern)[0],) if isinstance(pattern, Repeat) else ()
