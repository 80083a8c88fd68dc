"""ECMA-262 patterns with back-references: no regular language, but one that is decided for a given text.

A place in the text, together with what each group that is referred to has matched, is a *state*. All states that a
part of the pattern can lead to are found at once, as a set: which of them would be tried first makes no difference,
since groups within lookaround that are referred to are refused.

By ECMA-262, section 22.2.2: a reference to a group that has matched nothing yet, or is still open, matches the empty
text; groups within a loop are forgotten at the beginning of each round; a round beyond the fewest must not be empty.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import EMPTY_STRING, CharacterClass, Pattern, Repeat
from constrain.grammars.limits import Watch
from constrain.grammars.recent import Recent
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import accepts, ends
from constrain.grammars.regex.ecma_dialect import IGNORE_CASE, EcmaReader
from constrain.grammars.regex.nodes import (
    Captured,
    Choice,
    Look,
    Loop,
    Near,
    Node,
    Reference,
    Sequence,
    Tree,
    choice,
    look,
    loop,
    sequence,
)
from constrain.grammars.regex.parse import parse_ecma, search_of
from constrain.grammars.regex.ranges import FULL, contains
from constrain.grammars.regex.reader import ATOM
from constrain.grammars.regex.unicode import ignore_case_ecma

Groups: TypeAlias = tuple[tuple[int, int] | None, ...]
State: TypeAlias = tuple[int, Groups]

_NUMBER = re.compile("[1-9][0-9]*")
_NAMED = re.compile(r"\(\?P?<([^>]*)>")
_REFERENCE = re.compile(r"\\k<([^>]*)>")
_ANY_TEXT = Repeat(CharacterClass(FULL), 0, None)
_trees: Recent[str, Tree] = Recent(256, 1 << 20)


def searches(source: str, text: str, watch: Watch, pointer: str | None = None) -> bool:
    """Does the ECMA-262 pattern ``source`` match somewhere in ``text``?

    Raises
    ------
    SpecError
        It is malformed.
    UnsupportedFeatureError
        There is a reference to a group within lookaround.
    LimitExceededError
        There are too many ways to match.
    """
    try:
        pattern = parse_ecma(source, watch=watch, pointer=pointer)
    except UnsupportedFeatureError:
        return _Search(referring_tree(source, watch, pointer), text, watch).succeeds()
    return accepts(pattern, text)


def check_pattern(source: str, watch: Watch, pointer: str | None = None) -> None:
    """Raise the errors of `searches`, without a text."""
    try:
        parse_ecma(source, watch=watch, pointer=pointer)
    except UnsupportedFeatureError:
        referring_tree(source, watch, pointer)


def without_references(source: str, watch: Watch, pointer: str | None = None) -> Pattern:
    """Return a pattern of all texts in which ``source`` matches somewhere, and of some more.

    A reference may stand for any text of its group.
    """
    tree = referring_tree(source, watch, pointer)
    bodies = {node.index: node.body for node in _nodes(tree) if isinstance(node, Captured)}
    return search_of(run(_wider(tree, bodies)), source, watch)


def referring_tree(source: str, watch: Watch, pointer: str | None = None) -> Tree:
    """Return the tree of a pattern, which holds `Captured` and `Reference`; see `searches`."""
    found = _trees.get(source)
    if found is None:
        found = _ReferringReader(source, 0, watch, pointer).read()
        _trees.put(source, found, len(source))
    return found


class _ReferringReader(EcmaReader):
    """Reads a pattern with back-references."""

    def __init__(self, source: str, flags: int, watch: Watch, pointer: str | None = None) -> None:
        super().__init__(source, flags, watch, pointer)
        self._named: dict[str, int] = {}
        for index, at in enumerate(self.group_openings(), 1):
            name = _NAMED.match(source, at)
            if name is not None:
                self._named[name.group(1)] = index
        self._referred: dict[int, int] = {}
        self._hidden: set[int] = set()

    def closed(self, index: int, body: Tree) -> Tree:
        """Return what stands for a group."""
        if index and any(frame.kind.endswith(("ahead", "behind")) for frame in (*self.stack, self.frame)):
            self._hidden.add(index)
        return Captured(body, index) if index else body

    def back_reference(self, at: int) -> None:
        """Read a reference to a group."""
        named = _REFERENCE.match(self.source, at)
        number = _NUMBER.match(self.source, at + 1)
        if number is not None:
            index, self.at = int(number.group()), number.end()
        elif named is not None and named.group(1) in self._named:
            index, self.at = self._named[named.group(1)], named.end()
        else:
            self.error("'\\k' needs the name of a group, as in '\\k<name>'.", at)
        self._referred.setdefault(index, at)
        # Its width would matter in Python's lookbehind alone.
        self.append(Reference(index, bool(self.flags & IGNORE_CASE)), ATOM, 0, 0)

    def read(self) -> Tree:
        """Return the tree of the whole pattern."""
        tree = super().read()
        for index in self._hidden & self._referred.keys():
            at = self._referred[index]
            self.unsupported(
                self.source[at : at + 2],
                at,
                "refers to a group within lookaround, which is not supported",
                "Write the lookaround as a part of the pattern.",
            )
        return tree


def _parts(tree: Tree) -> tuple[Tree, ...]:
    match tree:
        case Sequence(parts) | Choice(parts):
            return parts
        case Loop(body) | Captured(body) | Look(_, _, body):
            return (body,)
        case _:
            return ()


def _nodes(tree: Tree) -> list[Tree]:
    """Return a tree and all within it."""
    found = [tree]
    for node in found:
        found += _parts(node)
    return found


# ------------------------------------------------------------------------------ one text


class _Search:
    """Looks for a match in one text."""

    def __init__(self, tree: Tree, text: str, watch: Watch) -> None:
        self._tree = tree
        self._text = text
        self._watch = watch
        referred = sorted({node.index for node in _nodes(tree) if isinstance(node, Reference)})
        self._slots = {index: slot for slot, index in enumerate(referred)}
        self._ends: dict[tuple[int, int], set[int]] = {}
        self._inner: dict[int, frozenset[int]] = {}

    def succeeds(self) -> bool:
        """Is there a match?"""
        nothing: Groups = (None,) * len(self._slots)
        found: set[State] = run(self._after(self._tree, {(i, nothing) for i in range(len(self._text) + 1)}))
        return bool(found)

    def _after(self, tree: Tree, states: set[State]) -> Task[set[State]]:
        """Return the states that a match of ``tree`` leads to from one of ``states``."""
        self._watch.step("a pattern with back-references", len(states))
        self._watch.at_most("states", len(states), "a pattern with back-references")
        found: set[State] = set()
        match tree:
            case Sequence(parts):
                for part in parts:
                    states = yield self._after(part, states)
                return states
            case Choice(parts):
                for part in parts:
                    found |= yield self._after(part, states)
                return found
            case Captured(body, index):
                if index not in self._slots:
                    found = yield self._after(body, states)
                    return found
                slot = self._slots[index]
                for start, here in _by_place(states):
                    for end, groups in (yield self._after(body, here)):
                        found.add((end, (*groups[:slot], (start, end), *groups[slot + 1 :])))
                return found
            case Reference():
                return {(end, groups) for at, groups in states for end in self._repeated(tree, at, groups)}
            case Near():
                return {state for state in states if self._is_near(tree, state[0])}
            case Look(ahead, negative, body):
                for at, groups in states:
                    starts = {(at, groups)} if ahead else {(start, groups) for start in range(at + 1)}
                    ways = yield self._after(body, starts)
                    if any(ahead or end == at for end, _ in ways) != negative:
                        found.add((at, groups))
                return found
            case Loop():
                found = yield self._after_loop(tree, states)
                return found
            case _:
                assert not isinstance(tree, Node)
                for at, groups in states:
                    key = (id(tree), at)
                    if key not in self._ends:
                        self._ends[key] = yield ends(tree, self._text, at)
                    found |= {(end, groups) for end in self._ends[key]}
                return found

    def _after_loop(self, tree: Loop, states: set[State]) -> Task[set[State]]:
        if id(tree) not in self._inner:
            inside = (node for node in _nodes(tree) if isinstance(node, Captured))
            self._inner[id(tree)] = frozenset(
                self._slots[node.index] for node in inside if node.index in self._slots
            )
        forgotten = self._inner[id(tree)]

        def fresh(given: set[State]) -> set[State]:
            return {
                (at, tuple(None if slot in forgotten else span for slot, span in enumerate(groups)))
                for at, groups in given
            }

        for _ in range(tree.minimum):
            before = states
            states = yield self._after(tree.body, fresh(states))
            if states == before:
                break
        found = set(states)
        rounds = tree.minimum
        while states and (tree.maximum is None or rounds < tree.maximum):
            rounds += 1
            new: set[State] = set()
            for start, here in _by_place(fresh(states)):
                new |= {state for state in (yield self._after(tree.body, here)) if state[0] != start}
            states = new - found
            found |= new
        return found

    def _repeated(self, reference: Reference, at: int, groups: Groups) -> tuple[int, ...]:
        """Return where the text of a group that stands at ``at`` ends, if it does."""
        span = groups[self._slots[reference.index]]
        if span is None:
            return (at,)
        word = self._text[span[0] : span[1]]
        here = self._text[at : at + len(word)]
        is_there = here == word or (
            reference.ignores_case
            and len(here) == len(word)
            and all(
                contains(ignore_case_ecma(((ord(one), ord(one)),)), ord(other))
                for one, other in zip(word, here, strict=True)
            )
        )
        return (at + len(word),) if is_there else ()

    def _is_near(self, condition: Near, at: int) -> bool:
        text = self._text
        return any(
            (contains(case.before, ord(text[at - 1])) if at else case.at_start)
            and (contains(case.after, ord(text[at])) if at < len(text) else case.at_end)
            for case in condition.cases
        )


def _by_place(states: set[State]) -> list[tuple[int, set[State]]]:
    found: dict[int, set[State]] = {}
    for state in states:
        found.setdefault(state[0], set()).add(state)
    return list(found.items())


# ------------------------------------------------------------------------------ all texts, and more


def _wider(tree: Tree, bodies: dict[int, Tree], *, elsewhere: bool = False) -> Task[Tree]:
    """Return a tree without groups and references that matches wherever ``tree`` does.

    ``elsewhere``: it stands for a text that ``tree`` matched at another place, whose conditions on what stands around
    it don't hold here.
    """
    match tree:
        case Sequence(parts) | Choice(parts):
            new = []
            for part in parts:
                new.append((yield _wider(part, bodies, elsewhere=elsewhere)))
            return sequence(new) if isinstance(tree, Sequence) else choice(new)
        case Loop(body, minimum, maximum):
            return loop((yield _wider(body, bodies, elsewhere=elsewhere)), minimum, maximum)
        case Captured(body):
            wider: Tree = yield _wider(body, bodies, elsewhere=elsewhere)
            return wider
        case Look(_, _, body):
            if elsewhere or any(isinstance(node, Reference) for node in _nodes(tree)):
                return EMPTY_STRING
            return look(
                tree.ahead, tree.negative, (yield _wider(body, bodies, elsewhere=elsewhere)), tree.offset
            )
        case Near() if elsewhere:
            return EMPTY_STRING
        case Reference(index):
            if index not in bodies:
                return EMPTY_STRING
            if tree.ignores_case:
                return _ANY_TEXT  # the group may have been read with case
            # Within the group itself it matches the empty text.
            outside = {other: body for other, body in bodies.items() if other != index}
            return choice([EMPTY_STRING, (yield _wider(bodies[index], outside, elsewhere=True))])
        case _:
            return tree
