"""Patterns to byte automata.

A pattern is read from the top with a stack of its own, never by recursion: each node is given the two
states between which it has to read, and gives its parts states in between. A node is told whether it is
the only thing that starts in its source; then it may lead back there, otherwise it takes a fresh state.

Counted repeats are unrolled where that takes few positions, and counted by a hub otherwise. Inside a
counted body nothing else is counted, so of two nested repeats the cheaper one to unroll is unrolled;
what that costs is computed before anything is built.
"""

from __future__ import annotations

from typing import NamedTuple

from constrain.grammars.errors import LimitExceededError, SpecError
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
    Ranges,
    Repeat,
    SpecialToken,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recent import Recent
from constrain.tokenizer_index.boolean import conjunction, flatten_conjunction
from constrain.tokenizer_index.draft import Draft, Hub, finish
from constrain.tokenizer_index.fragment import Fragment, literal_fragment
from constrain.tokenizer_index.pattern_sizes import Sizes, merge_repeats
from constrain.tokenizer_index.special_tokens import spelling
from constrain.tokenizer_index.utf8 import Utf8, encode_ranges
from constrain.tokenizer_index.word_list import word_list_fragment, words_of

# Repeats of at most so many positions are unrolled.
UNROLL_POSITIONS = 16
# Counts are the upper half of a 64-bit lexer value.
_MOST_ROUNDS = (1 << 31) - 2
# Explicit conjunctions inside explicit conjunctions.
_BOOLEAN_DEPTH = 40
# What is kept of patterns seen before: an edge takes 20 bytes, and its pattern several times as much.
_CACHED_NODES = 64
MOST_KEPT = 512
MOST_EDGES_KEPT = 1_000_000


class _Task(NamedTuple):
    """Read ``pattern`` from ``source`` to ``target``, both in the body of ``hub`` (-1: in none)."""

    pattern: Pattern
    source: int
    target: int
    alone: bool
    hub: int


class _Reader:
    """Reads one pattern into a draft."""

    def __init__(self, watch: Watch, place: str, depth: int) -> None:
        self.draft = Draft()
        self._watch = watch
        self._place = place
        self._depth = depth
        self._tasks: list[_Task] = []
        self._characters_of: dict[int, tuple[Utf8, Ranges]] = {}
        self._tails: dict[tuple[int, int], tuple[int, object]] = {}
        self._explicit: dict[int, tuple[Pattern, Automaton]] = {}
        self._sizes = Sizes(self._explicit_of, watch, place)

    def read(self, pattern: Pattern) -> Fragment:
        """Return the fragment of ``pattern``."""
        start, final = self.draft.state(), self.draft.state()
        self._tasks.append(_Task(pattern, start, final, True, -1))
        while self._tasks:
            self._read_task(self._tasks.pop())
        return finish(self.draft, start, final, self._watch, self._place)

    def _read_task(self, task: _Task) -> None:
        pattern, source, target, _, hub = task
        draft = self.draft
        if isinstance(pattern, Literal):
            self._chain(pattern.data, source, target, hub)
        elif isinstance(pattern, SpecialToken):
            self._chain(spelling(pattern.name), source, target, hub)
        elif isinstance(pattern, CharacterClass):
            self._characters(pattern, source, target, hub)
        elif isinstance(pattern, Concatenation):
            self._concatenate(task, pattern.parts)
        elif isinstance(pattern, Repeat):
            self._repeat(task, pattern)
        elif isinstance(pattern, Alternation):
            self._alternate(task, pattern.parts)
        elif isinstance(pattern, ByteClass):
            draft.edges[source] += [(low, high, target) for low, high in pattern.ranges]
        elif isinstance(pattern, Automaton):
            self._embed(pattern, source, target, hub)
        elif isinstance(pattern, Intersection | Complement):
            self._embed(self._explicit_of(pattern), source, target, hub)
        else:
            raise SpecError(f"{pattern!r} is not a pattern; expected one of those in grammars.ir.")
        self._watch.step(self._place)

    # ------------------------------------------------------------------------------ simple nodes

    def _chain(self, data: bytes, source: int, target: int, hub: int) -> None:
        draft = self.draft
        if not data:
            draft.skip(source, target)
            return
        n = len(data) - 1
        first = len(draft.edges)
        draft.hub_of += [hub] * n
        draft.edges += [[(byte, byte, first + i)] for i, byte in enumerate(data[1:-1], 1)]
        if n:
            draft.edges[source].append((data[0], data[0], first))
            draft.edges.append([(data[-1], data[-1], target)])
        else:
            draft.edges[source].append((data[0], data[0], target))
        self._watch.step(self._place, n)

    def _characters(self, pattern: CharacterClass, source: int, target: int, hub: int) -> None:
        draft = self.draft
        ranges = pattern.ranges
        known_characters = self._characters_of.get(id(ranges))
        if known_characters is None:
            # The ranges are kept beside them, so that their id stays their own.
            known_characters = self._characters_of[id(ranges)] = encode_ranges(ranges), ranges
        characters = known_characters[0]
        if not characters.inner:
            draft.edges[source] += [(low, high, target) for low, high, _ in characters.heads]
            return
        # Classes that lead to the same state share what follows the lead byte.
        key = id(characters), target
        known = self._tails.get(key)
        if known is None:
            # The class is kept beside its first state, so that its id stays its own.
            known = self._tails[key] = (draft.tail(characters, target, hub) - 1, characters)
        base = known[0]
        draft.edges[source] += [
            (low, high, base + to if to else target) for low, high, to in characters.heads
        ]

    def _concatenate(self, task: _Task, parts: tuple[Pattern, ...]) -> None:
        draft = self.draft
        if not parts:
            draft.skip(task.source, task.target)
            return
        source, alone, hub = task.source, task.alone, task.hub
        last = len(parts) - 1
        for i, part in enumerate(parts):
            target = task.target if i == last else draft.state(hub)
            kind = type(part)
            if kind is Literal:
                self._chain(part.data, source, target, hub)  # type: ignore[union-attr]
            elif kind is CharacterClass:
                self._characters(part, source, target, hub)  # type: ignore[arg-type]
            else:
                self._tasks.append(_Task(part, source, target, alone, hub))
            source, alone = target, True
        self._watch.step(self._place, last)

    def _embed(self, automaton: Automaton, source: int, target: int, hub: int) -> None:
        draft = self.draft
        base = len(draft.edges)
        self._check_positions(base + automaton.n_states)
        draft.edges += [[] for _ in range(automaton.n_states)]
        draft.hub_of += [hub] * automaton.n_states
        for start, low, high, end in automaton.edges:
            if low <= high:
                draft.edges[base + start].append((low, high, base + end))
        draft.skip(source, base + automaton.start)
        for state in automaton.accepting:
            draft.skip(base + state, target)
        self._watch.step(self._place, 1 + len(automaton.edges))

    # ------------------------------------------------------------------------------ alternation

    def _alternate(self, task: _Task, parts: tuple[Pattern, ...]) -> None:
        """Read parts that begin with literals through one trie, the others side by side."""
        _, source, target, _, hub = task
        if len(parts) == 1:
            self._tasks.append(_Task(parts[0], source, target, task.alone, hub))
            return
        words: list[tuple[bytes, tuple[Pattern, ...]]] = []
        for part in parts:
            prefix, rest = _literal_prefix(part)
            if prefix:
                words.append((prefix, rest))
            else:
                self._tasks.append(_Task(part, source, target, False, hub))
        draft = self.draft
        nodes: dict[tuple[int, int], int] = {}
        for prefix, rest in words:
            node = source
            for byte in prefix if rest else prefix[:-1]:
                child = nodes.get((node, byte))
                if child is None:
                    child = nodes[node, byte] = draft.state(hub)
                    draft.edges[node].append((byte, byte, child))
                node = child
            if not rest:
                draft.edges[node].append((prefix[-1], prefix[-1], target))
            else:
                self._tasks.append(_Task(Concatenation(rest), node, target, False, hub))
            self._watch.step(self._place, len(prefix))

    # ------------------------------------------------------------------------------ repeats

    def _repeat(self, task: _Task, pattern: Repeat) -> None:
        _, source, target, alone, hub = task
        draft, tasks = self.draft, self._tasks
        body, minimum, maximum = merge_repeats(pattern)
        if maximum is not None and maximum < minimum:
            return
        if maximum == 0:
            draft.skip(source, target)
        elif maximum is None and minimum == 0:
            loop = source if alone else draft.state(hub)
            draft.skip(source, loop)
            draft.skip(loop, target)
            tasks.append(_Task(body, loop, loop, False, hub))
        elif maximum is None and minimum == 1:
            begin = source if alone else draft.state(hub)
            end = draft.state(hub)
            draft.skip(source, begin)
            draft.skip(end, begin)
            draft.skip(end, target)
            tasks.append(_Task(body, begin, end, True, hub))
        elif maximum == 1:
            if minimum == 0:
                draft.skip(source, target)
            tasks.append(_Task(body, source, target, alone and minimum == 1, hub))
        else:
            self._count(task, body, minimum, maximum)

    def _count(self, task: _Task, body: Pattern, minimum: int, maximum: int | None) -> None:
        """Read a repeat of more than one round: by a hub, or unrolled."""
        _, source, target, _, hub = task
        size = self._sizes.of(body)
        if size.empty:
            if minimum == 0:
                self.draft.skip(source, target)
            return
        if size.nullable:
            minimum = 0
            if maximum is None:
                self._tasks.append(task._replace(pattern=Repeat(body, 0, None)))
                return
        rounds = minimum if maximum is None else maximum
        if hub >= 0:
            self._check_positions(len(self.draft.edges) + rounds * size.unrolled)
            self._unroll(task, body, minimum, maximum)
            return
        unrolled = rounds * size.counted
        if unrolled <= UNROLL_POSITIONS or unrolled <= size.unrolled:
            self._check_positions(len(self.draft.edges) + unrolled)
            self._unroll(task, body, minimum, maximum)
            return
        self._check_positions(len(self.draft.edges) + size.unrolled)
        if rounds > _MOST_ROUNDS:
            hint = "Repeat less often."
            raise LimitExceededError("positions", self._watch.limits.positions, self._place, hint)
        counter = self.draft.state()
        begin, end = self.draft.state(counter), self.draft.state(counter)
        self.draft.hubs[counter] = Hub(begin, minimum, -1 if maximum is None else maximum)
        self.draft.ends[end] = counter
        self.draft.skip(source, counter)
        self.draft.skip(counter, target)
        self._tasks.append(_Task(body, begin, end, True, counter))

    def _unroll(self, task: _Task, body: Pattern, minimum: int, maximum: int | None) -> None:
        draft, hub = self.draft, task.hub
        source, alone = task.source, task.alone
        for i in range(minimum - 1 if maximum is None else maximum - 1):
            between = draft.state(hub)
            if i >= minimum:
                draft.skip(source, task.target)
                alone = False
            self._tasks.append(_Task(body, source, between, alone, hub))
            source, alone = between, True
            self._watch.step(self._place)
        if maximum is None:
            self._tasks.append(_Task(Repeat(body, 1, None), source, task.target, alone, hub))
            return
        if maximum > minimum:
            draft.skip(source, task.target)
            alone = False
        self._tasks.append(_Task(body, source, task.target, alone, hub))

    def _check_positions(self, n: int) -> None:
        # The draft's states are a little more than the positions they become.
        self._watch.at_most("positions", n // 2, self._place)

    def _explicit_of(self, pattern: Intersection | Complement) -> Automaton:
        known = self._explicit.get(id(pattern))
        if known is None:
            if self._depth >= _BOOLEAN_DEPTH:
                hint = "Nest fewer conjunctions and negations in one terminal."
                raise LimitExceededError("nesting", _BOOLEAN_DEPTH, self._place, hint)
            literals = [
                (negative, compile_pattern(part, self._watch, self._place, self._depth + 1))
                for negative, part in flatten_conjunction(pattern)
            ]
            known = (pattern, conjunction(literals, self._watch, self._place))
            self._explicit[id(pattern)] = known
        return known[1]


def _literal_prefix(pattern: Pattern) -> tuple[bytes, tuple[Pattern, ...]]:
    """Split off the bytes every match begins with, as far as they are written as a literal."""
    if isinstance(pattern, Literal):
        return pattern.data, ()
    if isinstance(pattern, Concatenation) and pattern.parts and isinstance(pattern.parts[0], Literal):
        return pattern.parts[0].data, pattern.parts[1:]
    return b"", ()


# ------------------------------------------------------------------------------------ memory

_BY_ID: Recent[int, tuple[Pattern, Fragment]] = Recent(MOST_KEPT, MOST_EDGES_KEPT)
_BY_VALUE: Recent[Pattern, Fragment] = Recent(MOST_KEPT, MOST_EDGES_KEPT)


def clear_fragments() -> None:
    """Forget all fragments."""
    _BY_ID.clear()
    _BY_VALUE.clear()


def _is_small(pattern: Pattern) -> bool:
    """Is it cheap, and safe from deep recursion, to compare this pattern by value?"""
    left = _CACHED_NODES
    tasks = [pattern]
    while tasks and left > 0:
        node = tasks.pop()
        left -= 1
        if isinstance(node, Concatenation | Alternation | Intersection):
            left -= len(node.parts)
            if left > 0:
                tasks += node.parts
        elif isinstance(node, Repeat):
            tasks.append(node.body)
        elif isinstance(node, Complement):
            tasks.append(node.part)
        elif isinstance(node, CharacterClass | ByteClass):
            left -= len(node.ranges) >> 3
        elif isinstance(node, Automaton):
            left -= len(node.edges) >> 2
    return left > 0


def compile_pattern(pattern: Pattern, watch: Watch, place: str, depth: int = 0) -> Fragment:
    """Return the byte automaton of ``pattern``.

    Fragments of recent patterns are kept: by identity for patterns that front ends keep themselves,
    and by value for small ones.

    Parameters
    ----------
    pattern : Pattern
    watch : Watch
    place : str
        What is being compiled, for errors.
    depth : int
        Conjunctions around this pattern.

    Raises
    ------
    LimitExceededError
        More positions, time or nesting than allowed.
    """
    if isinstance(pattern, Literal):
        return literal_fragment(pattern.data)
    known = _BY_ID.get(id(pattern))
    if known is not None and known[0] is pattern:
        return known[1]
    small = _is_small(pattern)
    if small:
        fragment = _BY_VALUE.get(pattern)
        if fragment is not None:
            return fragment
    words = words_of(pattern)
    if words is None:
        fragment = _Reader(watch, place, depth).read(pattern)
    else:
        fragment = word_list_fragment(words, watch, place)
    if small:
        _BY_VALUE.put(pattern, fragment, fragment.n_edges)
    _BY_ID.put(id(pattern), (pattern, fragment), fragment.n_edges)
    return fragment
