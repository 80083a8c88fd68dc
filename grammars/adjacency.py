"""Which terminals may stand next to which, and with which characters patterns begin and end.

All sets may be too large, never too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constrain.grammars.ir import (
    Alternation,
    Automaton,
    CharacterClass,
    Choice,
    Complement,
    Concatenation,
    Expression,
    Grammar,
    Intersection,
    Literal,
    Pattern,
    Ranges,
    Repeat,
    Repetition,
    RuleReference,
    Sequence,
    SpecialToken,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import is_nullable
from constrain.grammars.regex.ranges import FULL, NONE, intersect, normalize, union
from constrain.grammars.regex.utf8 import character_edges


def edge_characters(pattern: Pattern, *, at_end: bool) -> Ranges:
    """Return the characters that members end (or begin) with."""
    return run(_edge(pattern, at_end))


def _edge(pattern: Pattern, at_end: bool) -> Task[Ranges]:
    found: Ranges = NONE
    match pattern:
        case Literal(data):
            text = data.decode()
            return ((ord(text[-at_end]),) * 2,) if text else NONE
        case CharacterClass(ranges):
            return ranges
        case SpecialToken():
            return NONE  # no text
        case Concatenation(parts):
            for part in parts[::-1] if at_end else parts:
                found = union(found, (yield _edge(part, at_end)))
                if not is_nullable(part):
                    break
            return found
        case Alternation(parts):
            for part in parts:
                found = union(found, (yield _edge(part, at_end)))
            return found
        case Repeat(body):
            found = yield _edge(body, at_end)
            return found
        case Intersection(parts):
            found = FULL
            for part in parts:
                if not isinstance(part, Complement):
                    found = intersect(found, (yield _edge(part, at_end)))
            return found
        case Automaton(_, start, accepting):
            for source, ranges, target in character_edges(pattern):
                if target in accepting if at_end else source == start:
                    found = union(found, ranges)
            return found
        case _:
            return FULL


def pattern_characters(pattern: Pattern) -> Ranges:
    """Return the characters that members have anywhere."""
    return run(_characters(pattern))


def _characters(pattern: Pattern) -> Task[Ranges]:
    found: Ranges = NONE
    match pattern:
        case Literal(data):
            return normalize((ord(character), ord(character)) for character in data.decode())
        case CharacterClass(ranges):
            return ranges
        case SpecialToken():
            return NONE  # no text
        case Concatenation(parts) | Alternation(parts):
            for part in parts:
                found = union(found, (yield _characters(part)))
            return found
        case Repeat(body):
            found = yield _characters(body)
            return found
        case Intersection(parts):
            found = FULL
            for part in parts:
                if not isinstance(part, Complement):
                    found = intersect(found, (yield _characters(part)))
            return found
        case Automaton():
            for _, ranges, _ in character_edges(pattern):
                found = union(found, ranges)
            return found
        case _:
            return FULL


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What may stand next to a terminal, with nothing in between.

    Parameters
    ----------
    terminals : frozenset of int
    is_last : bool
        The text may end (or begin) there.
    """

    terminals: frozenset[int]
    is_last: bool


def begin_of(grammar: Grammar, watch: Watch) -> Ranges:
    """Return the characters that texts begin with."""
    found_first = _Neighbours(grammar, watch, True)
    found_first.find_first()
    mask = found_first.first[grammar.start]
    ignored = grammar.ignored
    found: Ranges = NONE
    for t, terminal in enumerate(grammar.terminals):
        if mask >> t & 1 or (ignored.leading and t in ignored.terminals):
            found = union(found, edge_characters(terminal.pattern, at_end=False))
    return found


def neighbours(grammar: Grammar, watch: Watch, *, after: bool) -> list[Neighbours]:
    """Return what may follow (or precede) each terminal."""
    masks = _Neighbours(grammar, watch, after).masks()
    n = len(grammar.terminals)
    return [
        Neighbours(frozenset(t for t in range(n) if mask >> t & 1), bool(mask >> n & 1)) for mask in masks
    ]


class _Neighbours:
    """One run of `neighbours`. Sets of terminals are bits of integers; the bit after them is the end."""

    def __init__(self, grammar: Grammar, watch: Watch, after: bool) -> None:
        self.grammar = grammar
        self.watch = watch
        self.after = after
        self.nullable = [is_nullable(terminal.pattern) for terminal in grammar.terminals]
        self.first = dict.fromkeys(grammar.rules, 0)
        self.empty = dict.fromkeys(grammar.rules, False)
        self.follow = dict.fromkeys(grammar.rules, 0)
        self.found = [0] * len(grammar.terminals)

    def find_first(self) -> None:
        """Find what rules begin with."""
        changed = True
        while changed:
            changed = False
            # Rules mostly call later ones.
            for name, body in reversed(list(self.grammar.rules.items())):
                new = run(self.begin(body))
                if new != (self.first[name], self.empty[name]):
                    self.first[name], self.empty[name] = new
                    changed = True

    def masks(self) -> list[int]:
        """Return the sets."""
        rules = self.grammar.rules
        self.find_first()
        ignored = self.grammar.ignored
        blank = 0
        for t in ignored.terminals:
            blank |= 1 << t
        end = 1 << len(self.found)
        self.follow[self.grammar.start] = end
        changed = True
        while changed:
            before = (dict(self.follow), list(self.found))
            for name, body in rules.items():
                run(self.walk(body, self.follow[name]))
            changed = before != (self.follow, self.found)
        everything = end | blank
        for t, mask in enumerate(self.found):
            everything |= 1 << t if mask else 0
        return [everything if blank >> t & 1 else mask | blank for t, mask in enumerate(self.found)]

    def begin(self, body: Expression) -> Task[tuple[int, bool]]:
        """Return what may stand first, and whether ``body`` may be empty."""
        self.watch.step("the neighbours of terminals")
        match body:
            case TerminalReference(index):
                return 1 << index, self.nullable[index]
            case RuleReference(name):
                return self.first[name], self.empty[name]
            case Sequence(parts):
                mask, is_empty = 0, True
                for part in parts if self.after else parts[::-1]:
                    more, is_empty = yield self.begin(part)
                    mask |= more
                    if not is_empty:
                        break
                return mask, is_empty
            case Choice(parts):
                mask, is_empty = 0, False
                for part in parts:
                    more, may_be = yield self.begin(part)
                    mask |= more
                    is_empty = is_empty or may_be
                return mask, is_empty
            case Repetition(inner, minimum):
                mask, may_be = yield self.begin(inner)
                return mask, may_be or minimum == 0
            case StateMachine(_, start, accepting):
                states: list[tuple[int, bool]] = yield self.states(body)
                mask, is_empty = 0, False
                for state in (start,) if self.after else accepting:
                    mask |= states[state][0]
                    is_empty = is_empty or states[state][1]
                return mask, is_empty
        raise TypeError(f"no expression: {body!r}")

    def states(self, machine: StateMachine) -> Task[list[tuple[int, bool]]]:
        """Return what may stand first from each state on, and whether nothing need stand there."""
        ends = machine.accepting if self.after else (machine.start,)
        found = [(0, state in ends) for state in range(machine.n_states)]
        changed = True
        while changed:
            changed = False
            for begin, symbol, target in self.edges(machine):
                mask, is_empty = (0, True) if symbol is None else (yield self.begin(symbol))
                more, may_end = found[target]
                old = found[begin]
                new = old[0] | mask | (more if is_empty else 0), old[1] or (is_empty and may_end)
                if new != old:
                    found[begin] = new
                    changed = True
        return found

    def edges(
        self, machine: StateMachine
    ) -> Iterator[tuple[int, TerminalReference | RuleReference | None, int]]:
        """Return the edges in the direction of reading."""
        for source, symbol, target in machine.edges:
            yield (source, symbol, target) if self.after else (target, symbol, source)

    def walk(self, body: Expression, follow: int) -> Task[None]:
        """Note that ``follow`` may come after ``body``."""
        self.watch.step("the neighbours of terminals")
        match body:
            case TerminalReference(index):
                self.found[index] |= follow
            case RuleReference(name):
                self.follow[name] |= follow
            case Sequence(parts):
                for part in parts[::-1] if self.after else parts:
                    yield self.walk(part, follow)
                    mask, is_empty = yield self.begin(part)
                    follow = mask | (follow if is_empty else 0)
            case Choice(parts):
                for part in parts:
                    yield self.walk(part, follow)
            case Repetition(inner, _, maximum):
                if maximum is None or maximum > 1:
                    follow |= (yield self.begin(inner))[0]
                yield self.walk(inner, follow)
            case StateMachine():
                states: list[tuple[int, bool]] = yield self.states(body)
                for _, symbol, target in self.edges(body):
                    if symbol is not None:
                        mask, may_end = states[target]
                        yield self.walk(symbol, mask | (follow if may_end else 0))
