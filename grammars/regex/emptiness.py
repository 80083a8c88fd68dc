"""Is a conjunction of patterns empty? A quick answer, for front ends that can do without a sure one.

Patterns over characters become nondeterministic automata, whose sets of states are explored together. An
answer "empty" is always right. What is too large (counted repeats, nested conjunctions, too many sets) is
replaced by more than it is, so "not empty" may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from constrain.grammars.ir import (
    ANY_CHARACTER,
    ANY_TEXT,
    Alternation,
    Automaton,
    CharacterClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Ranges,
    Repeat,
)
from constrain.grammars.limits import Watch
from constrain.grammars.regex.ranges import contains, partition
from constrain.grammars.regex.utf8 import character_edges

_MOST_COPIES = 12  # of the body of a repeat
_MOST_STATES = 600
_MOST_SETS = 120
_MOST_KEPT = 256
_PLACE = "a conjunction of patterns"

Sets: TypeAlias = tuple[frozenset[int], ...]


def is_empty(positive: Iterable[Pattern], negative: Iterable[Pattern], watch: Watch) -> bool:
    """Is no text in every one of ``positive`` and in none of ``negative``? Only ``True`` is sure."""
    machines = [_machine(pattern) for pattern in positive]
    n_positive = len(machines)
    machines += [machine for machine in map(_machine, negative) if machine.is_exact]
    start = tuple(machine.closure({machine.start}) for machine in machines)
    seen = {start}
    todo = [start]
    while todo:
        state = todo.pop()
        if all(
            (machine.end in states) == (i < n_positive)
            for i, (machine, states) in enumerate(zip(machines, state, strict=True))
        ):
            return False
        for after in _steps(machines, state, n_positive):
            if after not in seen:
                if len(seen) >= _MOST_SETS:
                    return False
                seen.add(after)
                todo.append(after)
        watch.step(_PLACE, 16)
    return True


def _steps(machines: Sequence[_Machine], state: Sets, n_positive: int) -> Iterable[Sets]:
    edges = [
        [edge for source in states for edge in machine.edges[source]]
        for machine, states in zip(machines, state, strict=True)
    ]
    sets = list(dict.fromkeys(ranges for own in edges[:n_positive] for ranges, _ in own))
    sets += [ranges for own in edges[n_positive:] for ranges, _ in own]
    # One character stands for all that are in the same sets.
    for ranges, _ in partition(sets):
        character = ranges[0][0]
        after = []
        for i, (machine, own) in enumerate(zip(machines, edges, strict=True)):
            reached = machine.closure({target for there, target in own if contains(there, character)})
            if not reached and i < n_positive:
                break
            after.append(reached)
        else:
            yield tuple(after)


_machines: dict[int, tuple[Pattern, _Machine]] = {}


def _machine(pattern: Pattern) -> _Machine:
    """Return the automaton of ``pattern``; those of the last patterns are kept."""
    known = _machines.get(id(pattern))
    if known is None:
        if len(_machines) >= _MOST_KEPT:
            _machines.clear()
        known = _machines[id(pattern)] = (pattern, _Machine(pattern))
    return known[1]


class _Machine:
    """A nondeterministic automaton over characters with empty edges.

    Attributes
    ----------
    edges : list of list of (Ranges, int)
    start, end : int
    is_exact : bool
        Is its language the pattern's, not more?
    """

    def __init__(self, pattern: Pattern) -> None:
        self.edges: list[list[tuple[Ranges, int]]] = []
        self.empty: list[list[int]] = []
        self.is_exact = True
        self.start, self.end = self._state(), self._state()
        todo = [(pattern, self.start, self.end)]
        while todo:
            if len(self.edges) + len(todo) > _MOST_STATES:
                self.is_exact = False
                self.edges, self.empty = [[(ANY_CHARACTER.ranges, 0)], []], [[1], []]
                break
            self._add(todo, *todo.pop())

    def closure(self, states: set[int]) -> frozenset[int]:
        """Return ``states`` with all that empty edges lead to."""
        todo = list(states)
        found = set(states)
        while todo:
            for target in self.empty[todo.pop()]:
                if target not in found:
                    found.add(target)
                    todo.append(target)
        return frozenset(found)

    def _state(self) -> int:
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def _add(self, todo: list[tuple[Pattern, int, int]], pattern: Pattern, start: int, end: int) -> None:
        match pattern:
            case Literal(data):
                for char in data.decode():
                    after = self._state()
                    self.edges[start].append((((ord(char), ord(char)),), after))
                    start = after
                self.empty[start].append(end)
            case CharacterClass(ranges):
                if ranges:
                    self.edges[start].append((ranges, end))
            case Concatenation(parts):
                for part in parts:
                    after = self._state()
                    todo.append((part, start, after))
                    start = after
                self.empty[start].append(end)
            case Alternation(parts):
                todo += [(part, start, end) for part in parts]
            case Repeat(body, minimum, maximum):
                self._repeat(todo, body, minimum, maximum, start, end)
            case Automaton():
                states = [self._state() for _ in range(pattern.n_states)]
                self.empty[start].append(states[pattern.start])
                for source, ranges, target in character_edges(pattern):
                    self.edges[states[source]].append((ranges, states[target]))
                for state in pattern.accepting:
                    self.empty[states[state]].append(end)
            case Intersection(parts):
                # Any one of the parts is more than all together.
                self.is_exact = False
                first = next((part for part in parts if not isinstance(part, Complement)), ANY_TEXT)
                todo.append((first, start, end))
            case _:
                self.is_exact = False
                todo.append((ANY_TEXT, start, end))

    def _repeat(
        self,
        todo: list[tuple[Pattern, int, int]],
        body: Pattern,
        minimum: int,
        maximum: int | None,
        start: int,
        end: int,
    ) -> None:
        if minimum > _MOST_COPIES or (maximum is not None and maximum > _MOST_COPIES):
            self.is_exact = False
            minimum, maximum = min(minimum, _MOST_COPIES), None
        for _ in range(minimum):
            after = self._state()
            todo.append((body, start, after))
            start = after
        if maximum is None:
            loop = self._state()
            self.empty[start].append(loop)
            todo.append((body, loop, loop))
            start = loop
        else:
            for _ in range(maximum - minimum):
                after = self._state()
                todo.append((body, start, after))
                self.empty[start].append(after)
                start = after
        self.empty[start].append(end)
