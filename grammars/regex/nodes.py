"""The syntax tree between the parsers and the IR: patterns, and what is not yet a pattern.

A tree is a `Pattern` where nothing in it looks at its surroundings; the parsers make patterns directly
wherever they can. Otherwise it is a `Node`:

- `Near`, a condition on the two characters around a place (anchors, word boundaries, lookaround of one
  character),
- `Look`, lookaround in general,
- `Sequence`, `Choice`, `Loop` over those (`Lazy` is a loop, too).

`lookaround.lower` turns a node into a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence as AbstractSequence
from dataclasses import dataclass
from typing import TypeAlias

from constrain.grammars.ir import EMPTY_LANGUAGE, EMPTY_STRING, Pattern, Ranges
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import (
    alternate,
    concatenate,
    is_nullable,
    lengths,
    repeat,
    single_characters,
)
from constrain.grammars.regex.ranges import FULL, NONE, complement, intersect


class Node:
    """Base of all that is not yet a pattern."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Case:
    """Both hold: the character before is in ``before`` (or there is none and ``at_start``), and after.

    Parameters
    ----------
    before, after : Ranges
    at_start, at_end : bool
        Does the condition hold where no character is before, or after?
    """

    before: Ranges = FULL
    at_start: bool = True
    after: Ranges = FULL
    at_end: bool = True

    @property
    def looks_behind(self) -> bool:
        """Does it depend on what is before?"""
        return self.before != FULL or not self.at_start

    @property
    def looks_ahead(self) -> bool:
        """Does it depend on what is after?"""
        return self.after != FULL or not self.at_end

    @property
    def is_impossible(self) -> bool:
        """Does it never hold?"""
        return not (self.before or self.at_start) or not (self.after or self.at_end)


@dataclass(frozen=True, slots=True)
class Near(Node):
    """An empty text at a place where one of ``cases`` holds."""

    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Look(Node):
    """An empty text at a place after or before which ``body`` matches, or does not.

    Parameters
    ----------
    ahead, negative : bool
    body : Tree
    offset : int
        Place in the source, for messages.
    """

    ahead: bool
    negative: bool
    body: Tree
    offset: int


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """The parts one after another."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """Any one of the parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """``body`` from ``minimum`` to ``maximum`` times."""

    body: Tree
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Lazy(Loop):
    """A loop that is written as lazy. Where texts match as a whole it is like any other; see `lazy`."""


Tree: TypeAlias = Pattern | Near | Look | Sequence | Choice | Loop

NEWLINE: Ranges = ((0x0A, 0x0A),)
AT_START = Near((Case(before=NONE),))
AT_END = Near((Case(after=NONE),))


def sequence(parts: AbstractSequence[Tree]) -> Tree:
    """Return ``parts`` one after another, as a pattern if all are."""
    for part in parts:
        if isinstance(part, Node):
            break
    else:
        return concatenate(parts)  # type: ignore[arg-type]
    if EMPTY_LANGUAGE in parts:
        return EMPTY_LANGUAGE
    kept: list[Tree] = []
    for part in parts:
        if isinstance(part, Sequence):
            kept += part.parts
        elif isinstance(part, Node) or not kept or isinstance(kept[-1], Node):
            if part != EMPTY_STRING:
                kept.append(part)
        else:
            kept[-1] = concatenate((kept[-1], part))
    return kept[0] if len(kept) == 1 else Sequence(tuple(kept))


def choice(parts: AbstractSequence[Tree]) -> Tree:
    """Return any one of ``parts``, as a pattern if all are."""
    plain: list[Pattern] = []
    others: list[Tree] = []
    for part in parts:
        if not isinstance(part, Node):
            plain.append(part)
        elif isinstance(part, Choice):
            others += part.parts
        else:
            others.append(part)
    if not others:
        return alternate(plain)
    if plain and (pattern := alternate(plain)) != EMPTY_LANGUAGE:
        others.append(pattern)
    return others[0] if len(others) == 1 else Choice(tuple(others))


def loop(body: Tree, minimum: int, maximum: int | None) -> Tree:
    """Return ``body`` from ``minimum`` to ``maximum`` times, as a pattern if it is one."""
    if not isinstance(body, Node):
        return repeat(body, minimum, maximum)
    if maximum == 0:
        return EMPTY_STRING
    if isinstance(body, Near | Look):
        return body if minimum else EMPTY_STRING
    return body if minimum == maximum == 1 else Loop(body, minimum, maximum)


def near(*cases: Case) -> Tree:
    """Return the condition that one of ``cases`` holds."""
    possible = tuple(dict.fromkeys(case for case in cases if not case.is_impossible))
    if any(not case.looks_ahead and not case.looks_behind for case in possible):
        return EMPTY_STRING
    return Near(possible) if possible else EMPTY_LANGUAGE


def negate(condition: Near) -> Tree:
    """Return the condition that none of the cases of ``condition`` holds."""
    cases = [Case()]
    for case in condition.cases:
        not_before = Case(before=complement(case.before), at_start=not case.at_start)
        not_after = Case(after=complement(case.after), at_end=not case.at_end)
        cases = [both(old, new) for old in cases for new in (not_before, not_after)]
        cases = [new for new in dict.fromkeys(cases) if not new.is_impossible]
    return near(*cases)


def both(first: Case, second: Case) -> Case:
    """Return the condition that both hold."""
    return Case(
        intersect(first.before, second.before),
        first.at_start and second.at_start,
        intersect(first.after, second.after),
        first.at_end and second.at_end,
    )


def look(ahead: bool, negative: bool, body: Tree, offset: int) -> Tree:
    """Return lookaround for ``body``, in its simplest form."""
    if isinstance(body, Near):
        return negate(body) if negative else body
    if isinstance(body, Look):
        return Look(body.ahead, body.negative != negative, body.body, offset)
    if not isinstance(body, Node):
        if body == EMPTY_LANGUAGE:
            return EMPTY_STRING if negative else EMPTY_LANGUAGE
        if is_nullable(body):
            return EMPTY_LANGUAGE if negative else EMPTY_STRING
        single = single_characters(body)
        if single is not None:
            ranges, at_edge = (complement(single), True) if negative else (single, False)
            if ahead:
                return near(Case(after=ranges, at_end=at_edge))
            return near(Case(before=ranges, at_start=at_edge))
    return Look(ahead, negative, body, offset)


def tree_lengths(tree: Tree) -> tuple[int, int | None]:
    """Return bounds on the number of characters, as `build.lengths` does."""
    return run(_tree_lengths(tree)) if isinstance(tree, Node) else lengths(tree)


def _tree_lengths(tree: Tree) -> Task[tuple[int, int | None]]:
    if not isinstance(tree, Node):
        return lengths(tree)
    match tree:
        case Loop(body, minimum, maximum):
            low, high = yield _tree_lengths(body)
            if high == 0:
                return 0, 0
            return low * minimum, None if high is None or maximum is None else high * maximum
        case Sequence(parts) | Choice(parts):
            pairs = []
            for part in parts:
                pairs.append((yield _tree_lengths(part)))
            lows = [low for low, _ in pairs]
            highs = [high for _, high in pairs if high is not None]
            add, most = (sum, sum) if isinstance(tree, Sequence) else (min, max)
            return add(lows), most(highs) if len(highs) == len(pairs) else None
        case _:
            return 0, 0


def tree_reach(tree: Tree, *, ahead: bool) -> int | None:
    """Return how many characters outside its own match ``tree`` may look at (``None``: no limit)."""
    return run(_tree_reach(tree, ahead))


def _tree_reach(tree: Tree, ahead: bool) -> Task[int | None]:
    more: int | None
    match tree:
        case Near(cases):
            return int(any(case.looks_ahead if ahead else case.looks_behind for case in cases))
        case Look(looks_ahead, _, body):
            more = yield _tree_reach(body, ahead)
            if looks_ahead != ahead:
                return more
            most = tree_lengths(body)[1]
            return None if more is None or most is None else most + more
        case Loop(body):
            more = yield _tree_reach(body, ahead)
            return more
        case Sequence(parts) | Choice(parts):
            most = 0
            for part in parts:
                more = yield _tree_reach(part, ahead)
                if more is None:
                    return None
                most = max(most, more)
            return most
        case _:
            return 0


def word_boundary(word: Ranges, negative: bool, empty_text: bool) -> Tree:
    """Return ``\\b`` (or ``\\B`` if ``negative``) for the word characters ``word``.

    ``empty_text``: does ``\\B`` hold in the empty text (mathematics, ECMA, Python from 3.14)?
    """
    other = complement(word)
    in_word = Case(before=word, at_start=False), Case(after=word, at_end=False)
    outside = Case(before=other), Case(after=other)
    if not negative:
        return near(both(in_word[0], outside[1]), both(outside[0], in_word[1]))
    inside = both(*in_word)
    if empty_text:
        return near(inside, both(*outside))
    return near(
        inside,
        both(Case(before=other, at_start=False), outside[1]),
        both(Case(before=NONE), Case(after=other, at_end=False)),
    )
