"""Patterns with assertions as explicit automata.

The tree becomes a nondeterministic automaton whose empty edges may carry conditions. Reading a text,
one keeps

- the kind of the last character, as far as conditions ask for it;
- for each lookbehind the set of states its body may be in, started anew at every place: whether the
  lookbehind holds is then known at once;
- a set of *elements*: the state of the whole pattern, and for each lookahead passed on the way a state
  that must accept some time (positive) or never (negative).

That is an alternating automaton: a step turns each element into a disjunction of conjunctions of
elements, and the sets of elements that are conjunctions of one choice each are the states of the result
(Chandra, Kozen and Stockmeyer, *Alternation*, 1981). Counted repeats are unrolled here.
"""

from __future__ import annotations

from typing import TypeAlias

from constrain.grammars.errors import LimitExceededError, UnsupportedFeatureError
from constrain.grammars.ir import (
    EMPTY_LANGUAGE,
    Alternation,
    Automaton,
    CharacterClass,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Ranges,
    Repeat,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.nodes import Case, Choice, Look, Loop, Near, Sequence, Tree
from constrain.grammars.regex.ranges import normalize, partition
from constrain.grammars.regex.utf8 import byte_automaton, character_edges

_PLACE = "the lookaround of a pattern"
_MAX_LOOK_DEPTH = 60

# (state, must accept)
Element: TypeAlias = tuple[int, bool]
Clause: TypeAlias = frozenset[Element]
# Kind of the last character, sets of states of the lookbehinds, elements.
State: TypeAlias = tuple[int, tuple[frozenset[int], ...], Clause]
# A way out of a state: conditions that must hold, then what is done.
Way: TypeAlias = tuple[frozenset[int], int, int]

_TRUE: frozenset[Clause] = frozenset((frozenset(),))
_ACCEPT = -1


def assertion_automaton(tree: Tree, source: str, watch: Watch) -> Pattern:
    """Return the automaton of ``tree`` as a whole text.

    Raises
    ------
    UnsupportedFeatureError
        Lookahead inside lookbehind.
    LimitExceededError
        More than ``Limits.liveness`` states, or too much time.
    """
    program = _Program(source, watch)
    start = program.new_state()
    program.accepting.add(run(program.add(tree, start, 0, False)))
    return _Explorer(program, start, watch).automaton()


class _Program:
    """The automaton with conditions on empty edges.

    Attributes
    ----------
    empty : list of list of (int, int)
        Empty edges of each state: (condition or -1, target).
    edges : list of list of (int, int)
        Other edges of each state: (index into ``sets``, target).
    conditions : list
        ``Near`` conditions; ``("ahead", start, negative)``; ``("behind", index, negative)``.
    behinds : list of (int, int)
        Start and accepting state of each lookbehind, inner ones first.
    ends : set of int
        Accepting states of lookahead bodies; ``accepting``: of the whole pattern.
    """

    def __init__(self, source: str, watch: Watch) -> None:
        self.source = source
        self.watch = watch
        self.empty: list[list[tuple[int, int]]] = []
        self.edges: list[list[tuple[int, int]]] = []
        self.conditions: list[Near | tuple[str, int, bool]] = []
        self.condition_index: dict[Near, int] = {}
        self.sets: dict[Ranges, int] = {}
        self.behinds: list[tuple[int, int]] = []
        self.ends: set[int] = set()
        self.accepting: set[int] = set()

    def new_state(self) -> int:
        """Add a state."""
        self.empty.append([])
        self.edges.append([])
        n_states = len(self.empty)
        self.watch.step(_PLACE)
        self.watch.at_most("positions", n_states, _PLACE)
        return n_states - 1

    def set_index(self, ranges: Ranges) -> int:
        """Return the index of ``ranges``."""
        return self.sets.setdefault(ranges, len(self.sets))

    def step(self, source: int, ranges: Ranges) -> int:
        """Add an edge to a new state."""
        target = self.new_state()
        self.edges[source].append((self.set_index(ranges), target))
        return target

    def link(self, source: int, target: int, condition: int = -1) -> None:
        """Add an empty edge."""
        self.empty[source].append((condition, target))

    def add(self, tree: Tree, start: int, depth: int, in_behind: bool) -> Task[int]:
        """Add ``tree`` from ``start`` on; return the state after it."""
        end: int
        match tree:
            case Literal(data):
                for character in data.decode():
                    start = self.step(start, ((ord(character), ord(character)),))
                return start
            case CharacterClass(ranges):
                return self.step(start, ranges)
            case Concatenation(parts) | Sequence(parts):
                for part in parts:
                    start = yield self.add(part, start, depth, in_behind)
                return start
            case Alternation(parts) | Choice(parts):
                end = self.new_state()
                for part in parts:
                    begin = self.new_state()
                    self.link(start, begin)
                    self.link((yield self.add(part, begin, depth, in_behind)), end)
                return end
            case Repeat(body, minimum, maximum) | Loop(body, minimum, maximum):
                end = yield self.add_loop(body, minimum, maximum, start, depth, in_behind)
                return end
            case Near():
                return self.add_near(tree, start)
            case Look():
                end = yield self.add_look(tree, start, depth, in_behind)
                return end
            case Automaton():
                return self.add_automaton(tree, start)
            case Intersection():
                # Only lookaround makes intersections, and its loops come here as they were written.
                raise TypeError("an intersection inside an automaton")
            case _:
                raise TypeError(f"no pattern over characters: {tree!r}")

    def add_loop(
        self, body: Tree, minimum: int, maximum: int | None, start: int, depth: int, in_behind: bool
    ) -> Task[int]:
        """Add rounds of ``body``."""
        for _ in range(minimum):
            begin = self.new_state()
            self.link(start, begin)
            start = yield self.add(body, begin, depth, in_behind)
        end = self.new_state()
        if maximum is None:
            self.link(start, end)
            begin = self.new_state()
            self.link(end, begin)
            self.link((yield self.add(body, begin, depth, in_behind)), end)
            return end
        for _ in range(maximum - minimum):
            self.link(start, end)
            begin = self.new_state()
            self.link(start, begin)
            start = yield self.add(body, begin, depth, in_behind)
        self.link(start, end)
        return end

    def add_near(self, tree: Near, start: int) -> int:
        """Add a condition on the characters around."""
        condition = self.condition_index.get(tree)
        if condition is None:
            condition = self.condition_index[tree] = len(self.conditions)
            self.conditions.append(tree)
            for case in tree.cases:
                self.set_index(case.before)
                self.set_index(case.after)
        end = self.new_state()
        self.link(start, end, condition)
        return end

    def add_look(self, tree: Look, start: int, depth: int, in_behind: bool) -> Task[int]:
        """Add lookaround."""
        if depth == _MAX_LOOK_DEPTH:
            raise LimitExceededError(
                "nesting", _MAX_LOOK_DEPTH, "lookaround inside lookaround", "Nest lookaround less deeply."
            )
        if tree.ahead and in_behind:
            raise UnsupportedFeatureError(
                "lookahead inside lookbehind",
                source=self.source,
                offset=tree.offset,
                hint="Move it out of the lookbehind.",
            )
        begin = self.new_state()
        body_end = yield self.add(tree.body, begin, depth + 1, in_behind or not tree.ahead)
        if tree.ahead:
            self.ends.add(body_end)
            self.conditions.append(("ahead", begin, tree.negative))
        else:
            self.behinds.append((begin, body_end))
            self.conditions.append(("behind", len(self.behinds) - 1, tree.negative))
        end = self.new_state()
        self.link(start, end, len(self.conditions) - 1)
        return end

    def add_automaton(self, automaton: Automaton, start: int) -> int:
        """Add an automaton that was made before."""
        states: dict[int, int] = {}

        def state(old: int) -> int:
            if old not in states:
                states[old] = self.new_state()
            return states[old]

        self.link(start, state(automaton.start))
        for source, ranges, target in character_edges(automaton):
            self.edges[state(source)].append((self.set_index(ranges), state(target)))
        end = self.new_state()
        for old in automaton.accepting:
            self.link(state(old), end)
        return end

    def ways(self, start: int) -> list[Way]:
        """Return the ways out of ``start``: (conditions, set or `_ACCEPT`, target).

        Conditions that include those of another way to the same state are left out, so loops over the
        empty text end.
        """
        best: dict[int, list[frozenset[int]]] = {}
        todo: list[tuple[int, frozenset[int]]] = [(start, frozenset())]
        while todo:
            state, conditions = todo.pop()
            known = best.setdefault(state, [])
            if any(other <= conditions for other in known):
                continue
            self.watch.step(_PLACE)
            known[:] = [other for other in known if not conditions <= other]
            known.append(conditions)
            for condition, target in self.empty[state]:
                todo.append((target, conditions if condition < 0 else conditions | {condition}))
        found: list[Way] = []
        for state, alternatives in best.items():
            for conditions in alternatives:
                if state in self.accepting or state in self.ends:
                    found.append((conditions, _ACCEPT, state))
                found += [(conditions, index, target) for index, target in self.edges[state]]
        return found


class _Explorer:
    """Explores the states that the module text describes."""

    def __init__(self, program: _Program, start: int, watch: Watch) -> None:
        self.program = program
        self.watch = watch
        self.letters = partition(program.sets)
        nears = [condition for condition in program.conditions if isinstance(condition, Near)]
        self.has_start = any(case.looks_behind for near in nears for case in near.cases)
        self.before_mask = 0
        for near in nears:
            for case in near.cases:
                if case.looks_behind:
                    self.before_mask |= 1 << program.sets[case.before]
        self.all_ways: dict[int, list[Way]] = {}
        empty: tuple[frozenset[int], ...] = (frozenset(),) * len(program.behinds)
        # -1: there is no last character.
        self.start: State = (-1 if self.has_start else 0, empty, frozenset(((start, True),)))
        # Per step: the sets that hold the letter read (-1 at the end), whether each condition without
        # lookahead holds, remembered clauses.
        self.members = -1
        self.truth: dict[int, bool] = {}
        self.memo: dict[Element, frozenset[Clause]] = {}

    def ways(self, state: int) -> list[Way]:
        """Return the ways out of ``state``."""
        found = self.all_ways.get(state)
        if found is None:
            found = self.all_ways[state] = self.program.ways(state)
        return found

    # -------------------------------------------------------------------------------- one step

    def look(self, state: State, members: int) -> tuple[int, tuple[frozenset[int], ...]]:
        """Fix the place after ``state``, before a letter; return what the next state knows of the past."""
        last, behinds, _ = state
        self.members = members
        self.truth = {}
        self.memo = {}
        # Conditions are listed inner ones first, so those a lookbehind needs are known when it comes.
        moved: list[frozenset[int]] = []
        for index, condition in enumerate(self.program.conditions):
            if isinstance(condition, Near):
                self.truth[index] = any(self.holds(case, last) for case in condition.cases)
            elif condition[0] == "behind":
                begin, end = self.program.behinds[condition[1]]
                is_found, following = self.behind_step(behinds[condition[1]] | {begin}, end)
                self.truth[index] = is_found != condition[2]
                moved.append(following)
        return (members & self.before_mask if members >= 0 else 0), tuple(moved)

    def holds(self, case: Case, last: int) -> bool:
        """Does ``case`` hold between a character of kind ``last`` (-1: none) and the letter?"""
        sets = self.program.sets
        if case.looks_behind and not (case.at_start if last < 0 else last >> sets[case.before] & 1):
            return False
        if not case.looks_ahead:
            return True
        return case.at_end if self.members < 0 else bool(self.members >> sets[case.after] & 1)

    def behind_step(self, states: frozenset[int], end: int) -> tuple[bool, frozenset[int]]:
        """Return whether ``end`` is reached, and the states after the letter."""
        program, members = self.program, self.members
        closed = set(states)
        todo = list(states)
        while todo:
            for condition, target in program.empty[todo.pop()]:
                if target not in closed and (condition < 0 or self.truth[condition]):
                    closed.add(target)
                    todo.append(target)
        if members < 0:
            return end in closed, frozenset()
        following = frozenset(
            target for state in closed for index, target in program.edges[state] if members >> index & 1
        )
        return end in closed, following

    def require(self, element: Element) -> frozenset[Clause]:
        """Return the clauses one of which must hold after the letter so that ``element`` does now."""
        found = self.memo.get(element)
        if found is None:
            state, must_accept = element
            found = self.accept_clauses(state) if must_accept else self.reject_clauses(state)
            self.memo[element] = found
        return found

    def is_dead(self, way: Way) -> bool:
        """Does the letter, or a condition without lookahead, rule ``way`` out?"""
        conditions, index, target = way
        if index == _ACCEPT:
            # A lookahead's body has accepted for good; the whole pattern only at the end of the text.
            if target in self.program.accepting and self.members >= 0:
                return True
        elif self.members < 0 or not self.members >> index & 1:
            return True
        return not all(self.truth.get(condition, True) for condition in conditions)

    def accept_clauses(self, state: int) -> frozenset[Clause]:
        """Do the work of `require` for a state that must accept."""
        total: set[Clause] = set()
        for way in self.ways(state):
            if self.is_dead(way):
                continue
            conditions, index, target = way
            clauses = _TRUE if index == _ACCEPT else frozenset((frozenset(((target, True),)),))
            for condition in conditions:
                if condition not in self.truth:
                    _, begin, negative = self.program.conditions[condition]  # type: ignore[misc]
                    clauses = self.both(clauses, self.require((begin, not negative)))
            total |= clauses
        return _absorb(total)

    def reject_clauses(self, state: int) -> frozenset[Clause]:
        """Do the work of `require` for a state that must not accept."""
        total = _TRUE
        for way in self.ways(state):
            if self.is_dead(way):
                continue
            conditions, index, target = way
            options: set[Clause] = set() if index == _ACCEPT else {frozenset(((target, False),))}
            for condition in conditions:
                if condition not in self.truth:
                    _, begin, negative = self.program.conditions[condition]  # type: ignore[misc]
                    options |= self.require((begin, negative))
            total = self.both(total, _absorb(options))
        return total

    def both(self, first: frozenset[Clause], second: frozenset[Clause]) -> frozenset[Clause]:
        """Return the conjunction."""
        if first == _TRUE:
            return second
        if second == _TRUE:
            return first
        self.watch.step(_PLACE, 1 + len(first) * len(second))
        return _absorb(
            {
                clause
                for one in first
                for other in second
                if not any((state, not must) in one for state, must in other)
                for clause in (one | other,)
            }
        )

    def all_of(self, elements: Clause) -> frozenset[Clause]:
        """Return the conjunction of what each element requires."""
        clauses = _TRUE
        for element in elements:
            clauses = self.both(clauses, self.require(element))
            if not clauses:
                break
        return clauses

    # -------------------------------------------------------------------------------- exploring

    def automaton(self) -> Pattern:
        """Return the automaton of all states reached."""
        index: dict[State, int] = {self.start: 0}
        todo = [self.start]
        accepting: set[int] = set()
        edges: dict[tuple[int, int], list[int]] = {}
        while todo:
            state = todo.pop()
            source = index[state]
            self.look(state, -1)
            if self.all_of(state[2]):
                accepting.add(source)
            for letter, (_, members) in enumerate(self.letters):
                self.watch.step(_PLACE)
                last, behinds = self.look(state, members)
                for clause in self.all_of(state[2]):
                    following = (last, behinds, clause)
                    target = index.get(following)
                    if target is None:
                        target = index[following] = len(index)
                        self.watch.at_most("liveness", target + 1, _PLACE)
                        todo.append(following)
                    edges.setdefault((source, target), []).append(letter)
        return self.reduced(len(index), accepting, edges)

    def reduced(self, n_states: int, accepting: set[int], edges: dict[tuple[int, int], list[int]]) -> Pattern:
        """Return the automaton without dead states and with states merged that behave alike."""
        sources: dict[int, list[int]] = {}
        for source, target in edges:
            sources.setdefault(target, []).append(source)
        alive = set(accepting)
        todo = list(accepting)
        while todo:
            for source in sources.get(todo.pop(), ()):
                if source not in alive:
                    alive.add(source)
                    todo.append(source)
        if 0 not in alive:
            return EMPTY_LANGUAGE
        outgoing: dict[int, list[tuple[int, int]]] = {state: [] for state in alive}
        for (source, target), letters in edges.items():
            if source in alive and target in alive:
                outgoing[source] += [(letter, target) for letter in letters]
        block = {state: int(state in accepting) for state in alive}
        n_blocks = 0
        while True:
            signatures: dict[tuple[int, frozenset[tuple[int, int]]], int] = {}
            refined = {}
            for state in sorted(alive):
                moves = frozenset((letter, block[target]) for letter, target in outgoing[state])
                refined[state] = signatures.setdefault((block[state], moves), len(signatures))
                self.watch.step(_PLACE, len(moves))
            block = refined
            if len(signatures) == n_blocks:
                break
            n_blocks = len(signatures)
        merged: dict[tuple[int, int], set[int]] = {}
        for state, moves_of in outgoing.items():
            for letter, target in moves_of:
                merged.setdefault((block[state], block[target]), set()).add(letter)
        return byte_automaton(
            n_blocks,
            block[0],
            frozenset(block[state] for state in accepting),
            [
                (source, normalize(pair for letter in letters for pair in self.letters[letter][0]), target)
                for (source, target), letters in merged.items()
            ],
        )


def _absorb(clauses: set[Clause]) -> frozenset[Clause]:
    """Return the clauses that include no other."""
    if len(clauses) < 2:
        return frozenset(clauses)
    kept: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(other <= clause for other in kept):
            kept.append(clause)
    return frozenset(kept)
