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
    """One run of `neighbours`.

    Sets of terminals are bits of integers; the bit after them is the end of the text, and the next one stands for
    what may follow the rule at hand.
    """

    def __init__(self, grammar: Grammar, watch: Watch, after: bool) -> None:
        self.grammar = grammar
        self.watch = watch
        self.after = after
        self.nullable = [is_nullable(terminal.pattern) for terminal in grammar.terminals]
        self.first = dict.fromkeys(grammar.rules, 0)
        self.empty = dict.fromkeys(grammar.rules, False)
        self.found = [0] * len(grammar.terminals)
        # What follows rules and terminals within the rule at hand.
        self.follow: dict[str, int] = {}
        self.found_here: dict[int, int] = {}
        # The rules that were asked for what a rule begins with.
        self.askers: dict[str, set[str]] = {name: set() for name in grammar.rules}
        self.rule = ""

    def find_first(self) -> None:
        """Find what rules begin with."""
        rules = self.grammar.rules
        # Rules mostly call later ones.
        tasks, waiting = list(rules), set(rules)
        while tasks:
            self.rule = tasks.pop()
            waiting.discard(self.rule)
            new = self.begin(rules[self.rule])
            if new != (self.first[self.rule], self.empty[self.rule]):
                self.first[self.rule], self.empty[self.rule] = new
                again = self.askers[self.rule] - waiting
                tasks += again
                waiting |= again

    def masks(self) -> list[int]:
        """Return the sets."""
        self.find_first()
        ignored = self.grammar.ignored
        blank = 0
        for t in ignored.terminals:
            blank |= 1 << t
        end = 1 << len(self.found)
        of_rule = end << 1
        rules = self.grammar.rules
        follow = dict.fromkeys(rules, 0)
        follow[self.grammar.start] = end
        # The rules and terminals that end a rule: what follows it follows them.
        last_rules: dict[str, list[str]] = {}
        last_terminals: dict[str, list[int]] = {}
        for name, body in rules.items():
            self.follow, self.found_here = {}, {}
            run(self.walk(body, of_rule))
            last_rules[name] = [other for other, mask in self.follow.items() if mask & of_rule]
            last_terminals[name] = [t for t, mask in self.found_here.items() if mask & of_rule]
            for other, mask in self.follow.items():
                follow[other] |= mask & ~of_rule
            for t, mask in self.found_here.items():
                self.found[t] |= mask & ~of_rule
        tasks = list(rules)
        while tasks:
            name = tasks.pop()
            self.watch.step("the neighbours of terminals", 1 + len(last_rules[name]))
            for other in last_rules[name]:
                if follow[name] & ~follow[other]:
                    follow[other] |= follow[name]
                    tasks.append(other)
        for name, terminals in last_terminals.items():
            for t in terminals:
                self.found[t] |= follow[name]
        everything = end | blank
        for t, mask in enumerate(self.found):
            everything |= 1 << t if mask else 0
        return [everything if blank >> t & 1 else mask | blank for t, mask in enumerate(self.found)]

    def begin(self, body: Expression) -> tuple[int, bool]:
        """Return what may stand first, and whether ``body`` may be empty."""
        known = self.leaf(body)
        return run(self.inner(body)) if known is None else known

    def leaf(self, body: Expression) -> tuple[int, bool] | None:
        """Return the same for a reference; ``None`` for all else."""
        self.watch.step("the neighbours of terminals")
        match body:
            case TerminalReference(index):
                return 1 << index, self.nullable[index]
            case RuleReference(name):
                self.askers[name].add(self.rule)
                return self.first[name], self.empty[name]
        return None

    def inner(self, body: Expression) -> Task[tuple[int, bool]]:
        """Return the same for what is no reference."""
        match body:
            case Sequence(parts):
                mask, is_empty = 0, True
                for part in parts if self.after else parts[::-1]:
                    more, is_empty = self.leaf(part) or (yield self.inner(part))
                    mask |= more
                    if not is_empty:
                        break
                return mask, is_empty
            case Choice(parts):
                mask, is_empty = 0, False
                for part in parts:
                    more, may_be = self.leaf(part) or (yield self.inner(part))
                    mask |= more
                    is_empty = is_empty or may_be
                return mask, is_empty
            case Repetition(inner, minimum):
                mask, may_be = self.leaf(inner) or (yield self.inner(inner))
                return mask, may_be or minimum == 0
            case StateMachine(_, start, accepting):
                states = self.states(body)
                mask, is_empty = 0, False
                for state in (start,) if self.after else accepting:
                    mask |= states[state][0]
                    is_empty = is_empty or states[state][1]
                return mask, is_empty
        raise TypeError(f"no expression: {body!r}")

    def states(self, machine: StateMachine) -> list[tuple[int, bool]]:
        """Return what may stand first from each state on, and whether nothing need stand there."""
        ends = machine.accepting if self.after else (machine.start,)
        found = [(0, state in ends) for state in range(machine.n_states)]
        changed = True
        while changed:
            changed = False
            for begin, symbol, target in self.edges(machine):
                mask, is_empty = (0, True) if symbol is None else self.begin(symbol)
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
            case TerminalReference() | RuleReference():
                self.note(body, follow)
            case Sequence(parts):
                for part in parts[::-1] if self.after else parts:
                    if isinstance(part, TerminalReference | RuleReference):
                        self.note(part, follow)
                    else:
                        yield self.walk(part, follow)
                    mask, is_empty = self.begin(part)
                    follow = mask | (follow if is_empty else 0)
            case Choice(parts):
                for part in parts:
                    if isinstance(part, TerminalReference | RuleReference):
                        self.note(part, follow)
                    else:
                        yield self.walk(part, follow)
            case Repetition(inner, _, maximum):
                if maximum is None or maximum > 1:
                    follow |= self.begin(inner)[0]
                yield self.walk(inner, follow)
            case StateMachine():
                states = self.states(body)
                for _, symbol, target in self.edges(body):
                    if symbol is not None:
                        mask, may_end = states[target]
                        self.note(symbol, mask | (follow if may_end else 0))

    def note(self, reference: TerminalReference | RuleReference, follow: int) -> None:
        """Note that ``follow`` may come after a terminal or a rule."""
        if isinstance(reference, TerminalReference):
            index = reference.index
            self.found_here[index] = self.found_here.get(index, 0) | follow
        else:
            self.follow[reference.name] = self.follow.get(reference.name, 0) | follow
