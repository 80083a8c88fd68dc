"""Zero-width assertions, rewritten away exactly.

`lower` turns a tree into a pattern of whole texts. It works on *lines*: sequences of items without
choices, where an item is a pattern, a `Case` (a condition on the two neighbouring characters), a `Look`
or a `Loop` whose body still holds assertions.

1. A loop whose body can be lowered without knowing what is around it becomes a plain repeat.
2. A condition on a neighbouring character is pushed into what stands there: ``(?!x)[a-z]{3,9}`` becomes
   ``[a-wyz][a-z]{2,8}``. Where that may be empty, there are two lines.
3. Lookahead for ``X`` is an intersection of what follows with ``X.*``, lookbehind one of what comes before
   with ``.*X``. Of what follows only as much is taken as ``X`` can reach, if intervals would cross otherwise.
4. What is left (assertions in loops that look outside them, intervals that cross) becomes an explicit
   automaton: see `alternating`.

Every step keeps the language. Lookaround in the middle costs an automaton in the size of its
surroundings, so a repeat of thousands around it is expensive; at the start and at the end it is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from constrain.grammars.ir import (
    ANY_CHARACTER,
    ANY_TEXT,
    EMPTY_LANGUAGE,
    EMPTY_STRING,
    Complement,
    Pattern,
    Ranges,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.alternating import assertion_automaton
from constrain.grammars.regex.build import alternate, concatenate, intersect, is_nullable, lengths, repeat
from constrain.grammars.regex.nodes import (
    Captured,
    Case,
    Choice,
    Look,
    Loop,
    Near,
    Node,
    Reference,
    Sequence,
    Tree,
    sequence,
    tree_lengths,
    tree_reach,
)
from constrain.grammars.regex.restrict import restrict

_MAX_LINES = 128
_UNROLLED_ROUNDS = 2
_COUNTED_ROUNDS = 8


@dataclass(frozen=True, slots=True, eq=False)
class ClosedLoop:
    """A loop that looks at nothing outside itself, as a pattern and as it was."""

    pattern: Pattern
    loop: Loop


Item: TypeAlias = Pattern | Case | Look | Loop | ClosedLoop
Line: TypeAlias = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """What the items ``low`` to ``high - 1`` of a line must satisfy together."""

    low: int
    high: int
    constraint: Pattern


def lower(tree: Tree, source: str, watch: Watch) -> Pattern:
    """Return the pattern of ``tree`` as a whole text.

    Raises
    ------
    UnsupportedFeatureError
        Lookahead inside lookbehind that cannot be separated.
    LimitExceededError
        The automaton of the assertions, or the time, is too large.
    """
    if not isinstance(tree, Node):
        return tree
    pattern = run(_Lowering(source, watch).close(tree, True, True))
    return EMPTY_LANGUAGE if pattern is None else pattern


class _Lowering:
    """One run of `lower`. ``left`` and ``right`` say that a tree reaches the start, the end of the text."""

    def __init__(self, source: str, watch: Watch) -> None:
        self.source = source
        self.watch = watch
        # Keyed by identity; the trees are kept so that identities stay theirs.
        self.closed: dict[tuple[int, bool, bool], tuple[Tree, Pattern | None]] = {}
        self.lines: dict[int, tuple[Tree, list[Line] | None]] = {}

    def close(self, tree: Tree, left: bool, right: bool) -> Task[Pattern | None]:
        """Return the pattern of ``tree``, or ``None`` if that depends on what is outside it."""
        if not isinstance(tree, Node):
            return tree
        key = (id(tree), left, right)
        if key not in self.closed:
            self.closed[key] = tree, (yield self.close_lines(tree, left, right))
        return self.closed[key][1]

    def close_lines(self, tree: Tree, left: bool, right: bool) -> Task[Pattern | None]:
        """Do the work of `close`."""
        lines = yield self.expand(tree)
        if lines is None:
            return self.automaton((tree,), left, right)
        patterns = []
        for line in lines:
            pattern = yield self.close_line(line, left, right)
            if pattern is None:
                return None
            patterns.append(pattern)
        return alternate(patterns)

    # -------------------------------------------------------------------------------- lines

    def expand(self, tree: Tree) -> Task[list[Line] | None]:
        """Return the lines of ``tree``, or ``None`` if there are too many."""
        key = id(tree)
        if key not in self.lines:
            self.lines[key] = tree, (yield self.expand_node(tree))
        return self.lines[key][1]

    def expand_node(self, tree: Tree) -> Task[list[Line] | None]:
        """Do the work of `expand`."""
        lines: list[Line] | None
        self.watch.step("the assertions of a pattern")
        match tree:
            case Near(cases):
                return [(case,) for case in cases]
            case Choice(parts):
                every: list[Line] = []
                for part in parts:
                    lines = yield self.expand(part)
                    if lines is None or len(every) + len(lines) > _MAX_LINES:
                        return None
                    every += lines
                return every
            case Sequence(parts):
                lines = yield self.expand_sequence(parts)
                return lines
            case Loop():
                lines = yield self.expand_loop(tree)
                return lines
            case Captured() | Reference():
                raise TypeError("a pattern with back-references is not regular")
            case _:
                return [(tree,)]

    def expand_sequence(self, parts: tuple[Tree, ...]) -> Task[list[Line] | None]:
        """Return the lines of ``parts`` one after another."""
        lines: list[Line] = [()]
        for part in parts:
            more = yield self.expand(part)
            if more is None or len(lines) * len(more) > _MAX_LINES:
                return None
            lines = [(*first, *second) for first in lines for second in more]
        return lines

    def expand_loop(self, loop: Loop) -> Task[list[Line] | None]:
        """Close the loop if possible, else unroll it if that is little."""
        body = yield self.close(loop.body, False, False)
        if body is not None:
            return [(ClosedLoop(repeat(body, loop.minimum, loop.maximum), loop),)]
        if tree_lengths(loop.body)[1] == 0:
            # Nothing but assertions: another round asks the same again.
            lines = yield self.expand(loop.body)
            return lines if loop.minimum else [()]
        if loop.maximum is None or loop.maximum > _UNROLLED_ROUNDS:
            return [(loop,)]
        every: list[Line] = []
        for count in range(loop.minimum, loop.maximum + 1):
            lines = yield self.expand_sequence((loop.body,) * count)
            if lines is None or len(every) + len(lines) > _MAX_LINES:
                return [(loop,)]
            every += lines
        return every

    def close_line(self, line: Line, left: bool, right: bool) -> Task[Pattern | None]:
        """Return the pattern of one line, or ``None`` if it depends on what is outside."""
        around: Pattern | None
        if any(isinstance(item, Loop) for item in line):
            around = yield self.close_around(line, left, right)
            return around
        plain: list[Item] = [item.pattern if isinstance(item, ClosedLoop) else item for item in line]
        lines = self.push_cases(plain, left, right)
        if lines is None:
            return None
        if len(lines) > _MAX_LINES:
            around = yield self.close_around(line, left, right)
            return around
        patterns = []
        for items in lines:
            intervals = yield self.intervals(items, left, right)
            if intervals is Failure.OUTSIDE:
                return None
            pattern = None
            if intervals is not Failure.CROSSING:
                parts = [item for item in items if not isinstance(item, Look)]
                pattern = _nest(parts, intervals)  # type: ignore[arg-type]
            if pattern is None:
                around = yield self.close_around(line, left, right)
                return around
            patterns.append(pattern)
        return alternate(patterns)

    # -------------------------------------------------------------------------------- conditions

    def push_cases(self, line: list[Item], left: bool, right: bool) -> list[list[Item]] | None:
        """Push every `Case` into its neighbours; ``None`` if one reaches an unknown outside."""
        todo = [line]
        done: list[list[Item]] = []
        while todo and len(todo) + len(done) <= _MAX_LINES:
            self.watch.step("the assertions of a pattern", 8)
            items = todo.pop()
            index = next((i for i, item in enumerate(items) if isinstance(item, Case)), None)
            if index is None:
                if EMPTY_LANGUAGE not in items:
                    done.append(items)
                continue
            case: Case = items[index]  # type: ignore[assignment]
            before, after = items[:index], items[index + 1 :]
            befores: list[list[Item]] | None = [before]
            afters: list[list[Item]] | None = [after]
            if case.looks_behind:
                befores = _push(before, case.before, case.at_start, left, backwards=True)
            if case.looks_ahead:
                afters = _push(after, case.after, case.at_end, right, backwards=False)
            if befores is None or afters is None:
                return None
            todo += [[*first, *second] for first in befores for second in afters]
        return done + todo

    # -------------------------------------------------------------------------------- intervals

    def intervals(self, items: list[Item], left: bool, right: bool) -> Task[list[Interval] | Failure]:
        """Return what the lookaround in ``items`` asks of the patterns between."""
        patterns = [item for item in items if not isinstance(item, Look)]
        least = [lengths(item)[0] for item in patterns]  # type: ignore[arg-type]
        found: list[Interval] = []
        gap = 0
        for item in items:
            if not isinstance(item, Look):
                gap += 1
                continue
            interval = yield self.interval(item, gap, least, left, right)
            if isinstance(interval, Failure):
                return interval
            found.append(interval)
        return found

    def interval(
        self, look: Look, gap: int, least: list[int], left: bool, right: bool
    ) -> Task[Interval | Failure]:
        """Return what ``look`` asks, at the place before pattern ``gap``.

        ``least`` has the fewest characters of each pattern.
        """
        n = len(least)
        at_left, at_right = left and gap == 0, right and gap == n
        far_edge, near_edge = (right, at_left) if look.ahead else (left, at_right)
        whole_scope = (gap, n) if look.ahead else (0, gap)
        if look.ahead:
            body = yield self.close(look.body, at_left, False)
        else:
            body = yield self.close(look.body, False, at_right)
        if body is not None:
            scope = None
            if not (far_edge and near_edge):
                scope = _covering(gap, least, lengths(body)[1], look.ahead)
            if scope is None:
                if not far_edge:
                    return Failure.OUTSIDE
                scope = whole_scope
            constraint = concatenate((body, ANY_TEXT) if look.ahead else (ANY_TEXT, body))
        else:
            if not far_edge:
                return Failure.OUTSIDE
            if look.ahead:
                constraint = yield self.close(sequence((look.body, ANY_TEXT)), at_left, True)
            else:
                constraint = yield self.close(sequence((ANY_TEXT, look.body)), True, at_right)
            if constraint is None:
                return Failure.CROSSING
            scope = whole_scope
        return Interval(*scope, Complement(constraint) if look.negative else constraint)

    # -------------------------------------------------------------------------------- automata

    def close_around(self, line: Line, left: bool, right: bool) -> Task[Pattern | None]:
        """Lower a line by an automaton around its assertions; outermost lookaround stays outside it."""
        items = list(line)
        outer: list[Pattern] = []
        for ahead in (True, False):
            while left and right and items:
                item = items[0] if ahead else items[-1]
                constraint = yield self.outermost(item, ahead)
                if constraint is None:
                    break
                outer.append(constraint)
                del items[0 if ahead else -1]
        inner = self.automaton(tuple(items), left, right)
        return None if inner is None else intersect((ANY_TEXT, inner, *outer))

    def outermost(self, item: Item, ahead: bool) -> Task[Pattern | None]:
        """Return what an assertion at an edge of the text asks of the whole text, if it is one."""
        if isinstance(item, Case):
            if item.looks_ahead if ahead else item.looks_behind:
                return None
            return ANY_TEXT if (item.at_start if ahead else item.at_end) else EMPTY_LANGUAGE
        if not isinstance(item, Look) or item.ahead != ahead:
            return None
        parts = (item.body, ANY_TEXT) if ahead else (ANY_TEXT, item.body)
        constraint = yield self.close(sequence(parts), True, True)
        return Complement(constraint) if item.negative and constraint is not None else constraint

    def automaton(self, items: tuple[Item | Tree, ...], left: bool, right: bool) -> Pattern | None:
        """Return ``items`` in a row, with an explicit automaton over those that look around."""
        places = [i for i, item in enumerate(items) if isinstance(item, Node | Case)]
        if not places:
            return concatenate(_outside(item) for item in items)
        trees = [_inside(item) for item in items]
        low, high = places[0], places[-1] + 1
        block = sequence(trees[low:high])
        least = [tree_lengths(tree)[0] for tree in trees]
        scope_behind = _covering(low, least, tree_reach(block, ahead=False), ahead=False)
        scope_ahead = _covering(high, least, tree_reach(block, ahead=True), ahead=True)
        if (scope_behind is None and not left) or (scope_ahead is None and not right):
            return None
        low = 0 if scope_behind is None else scope_behind[0]
        high = len(trees) if scope_ahead is None else scope_ahead[1]
        middle, length = _uncounted(trees[low:high])
        found = assertion_automaton(sequence(middle), self.source, self.watch)
        found = intersect((found, length))
        return concatenate((*map(_outside, items[:low]), found, *map(_outside, items[high:])))


class Failure(Enum):
    """Why the lookaround of a line is no nest of intervals."""

    OUTSIDE = "it looks at an unknown outside"
    CROSSING = "it looks at both sides of its place at once"


def _outside(item: Item | Tree) -> Pattern:
    """Return an item that holds no open assertion as a pattern."""
    return item.pattern if isinstance(item, ClosedLoop) else item  # type: ignore[return-value]


def _inside(item: Item | Tree) -> Tree:
    """Return an item as a tree."""
    if isinstance(item, ClosedLoop):
        return item.loop
    return Near((item,)) if isinstance(item, Case) else item


def _uncounted(trees: list[Tree]) -> tuple[list[Tree], Pattern]:
    """Take the count off a long loop where the length of the text says as much.

    That holds if its rounds all have one length, and so has everything else: then the automaton need not
    count, and the length is a repeat that costs nothing.
    """
    counted = [i for i, tree in enumerate(trees) if isinstance(tree, Loop) and _is_long(tree)]
    if len(counted) == 1:
        loop: Loop = trees[counted[0]]  # type: ignore[assignment]
        least, most = tree_lengths(loop.body)
        others = [tree_lengths(tree) for tree in (*trees[: counted[0]], *trees[counted[0] + 1 :])]
        if least == most and least > 0 and all(low == high for low, high in others):
            rest = sum(low for low, _ in others)
            high = None if loop.maximum is None else rest + least * loop.maximum
            free = [*trees[: counted[0]], Loop(loop.body, 0, None), *trees[counted[0] + 1 :]]
            return free, repeat(ANY_CHARACTER, rest + least * loop.minimum, high)
    return trees, ANY_TEXT


def _is_long(loop: Loop) -> bool:
    return max(loop.minimum, loop.maximum or 0) > _COUNTED_ROUNDS


def _push(
    items: list[Item], ranges: Ranges, at_edge: bool, edge_known: bool, *, backwards: bool
) -> list[list[Item]] | None:
    """Ask that the character nearest to the place beside ``items`` is in ``ranges``.

    Parameters
    ----------
    at_edge : bool
        May there be no character at all?
    edge_known : bool
        Does the text end where ``items`` do?
    backwards : bool
        The place is behind the last of ``items``, not before the first.

    Returns
    -------
    list of lists of items, or None
        Lists that together say the same; ``None`` where that depends on what is outside.
    """
    found: list[list[Item]] = []
    kept: list[Item] = []
    rest = items[::-1] if backwards else list(items)
    while rest:
        item = rest.pop(0)
        if isinstance(item, Case | Look):
            kept.append(item)
            continue
        edge = restrict(item, ranges, at_end=backwards)  # type: ignore[arg-type]
        if edge != EMPTY_LANGUAGE:
            found.append([*kept, edge, *rest])
        if not is_nullable(item):  # type: ignore[arg-type]
            break
    else:
        if not edge_known:
            return None
        if at_edge:
            found.append(kept)
    return [line[::-1] for line in found] if backwards else found


def _covering(gap: int, least: list[int], n_characters: int | None, ahead: bool) -> tuple[int, int] | None:
    """Return the fewest items beside ``gap`` that surely have ``n_characters``, or ``None``."""
    if n_characters is None:
        return None
    low = high = gap
    total = 0
    while total < n_characters:
        if ahead:
            if high == len(least):
                return None
            total += least[high]
            high += 1
        else:
            if low == 0:
                return None
            low -= 1
            total += least[low]
    return low, high


def _nest(patterns: list[Pattern], intervals: list[Interval]) -> Pattern | None:
    """Return ``patterns`` in a row under ``intervals``; ``None`` if two of these cross."""
    cells: list[tuple[int, int, Pattern]] = [(i, i + 1, pattern) for i, pattern in enumerate(patterns)]
    for interval in sorted(intervals, key=lambda interval: interval.high - interval.low):
        first = next((i for i, cell in enumerate(cells) if cell[0] >= interval.low), len(cells))
        last = first
        while last < len(cells) and cells[last][1] <= interval.high:
            last += 1
        inside = cells[first:last]
        if sum(high - low for low, high, _ in inside) != interval.high - interval.low:
            return None
        content = concatenate(pattern for _, _, pattern in inside)
        if interval.low == interval.high:
            if intersect((EMPTY_STRING, interval.constraint)) == EMPTY_LANGUAGE:
                return EMPTY_LANGUAGE
            continue
        both = intersect((content, interval.constraint))
        cells[first:last] = [(interval.low, interval.high, both)]
    return concatenate(pattern for _, _, pattern in cells)
