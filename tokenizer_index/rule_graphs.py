"""Rules read into graphs over symbols, with empty edges.

Each rule that is reachable from the start becomes a graph from its start to its one final state. A symbol
is a number: terminal ``t`` is ``t``, rule ``r`` is ``-1 - r``. Bodies are read from the top with a stack of
their own, never by recursion: each is given the two states between which it stands, and whether it is the
only thing that starts in the first of them; then it may lead back there, otherwise it takes a fresh state.

Rule 0 is the augmented start. A body of several symbols that is repeated often becomes a rule of its own,
so that nested repetitions add up instead of multiplying; and what is repeated still more often is counted
by a rule with a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import (
    COUNT,
    Choice,
    Expression,
    Grammar,
    Parameter,
    Repetition,
    RuleReference,
    Sequence,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.limits import Watch

# A repeated body of several symbols becomes a rule of its own if it is repeated more often.
_COPIES = 16
# What is repeated more often than this is counted, not copied.
COUNTED = 64
# States of graphs that may take the place of one dotted state under the limit on them.
_SPARE = 2


class _Counted(NamedTuple):
    """The body of a rule that reads a symbol as often as its parameter allows."""

    symbol: int


class _Task(NamedTuple):
    """Read ``body`` from ``source`` to ``target``; ``alone``: nothing else starts in ``source``."""

    body: Expression
    source: int
    target: int
    alone: bool


def reach(empty: Mapping[int, Iterable[int]], states: Iterable[int]) -> list[int]:
    """Return the states reached from ``states`` by empty edges."""
    order = list(states)
    seen = set(order)
    for source in order:  # grows while it is read
        for target in empty.get(source, ()):
            if target not in seen:
                seen.add(target)
                order.append(target)
    return order


class RuleGraphs:
    """The graphs of a grammar's reachable rules.

    Parameters
    ----------
    grammar : Grammar
    watch : Watch
    counts : bool
        Count what is repeated often.

    Attributes
    ----------
    grammar : Grammar
    used : set of int
        Terminals that the reachable rules refer to.
    names : list of str
        Of each rule; those of helper rules need not be unique.
    starts, finals : list of int
        First and last state of each rule.
    bounds : list of range
        The states of each rule.
    edges : list of list of (symbol, target)
        Of each state.
    empty : dict of int to list of int
        Empty edges.
    own_calls : set of (rule, state)
        States from which a rule calls itself.
    parameters : dict of int to Parameter
        Of the rules that have one.
    actions : dict of (source, symbol, target) to int
        Of the edges of those rules.
    counted : set of int
        Those of them that stand for repetitions.
    distinct : set of (source, symbol, target)
        Edges whose lexemes must differ.

    Raises
    ------
    SpecError
        A rule or terminal that is referred to doesn't exist.
    LimitExceededError
        More states or time than allowed.
    """

    def __init__(self, grammar: Grammar, watch: Watch, *, counts: bool = True) -> None:
        self.grammar = grammar
        self._watch = watch
        self._counts = counts
        self._n_terminals = len(grammar.terminals)
        self.names: list[str] = []
        self.edges: list[list[tuple[int, int]]] = []
        self.empty: dict[int, list[int]] = {}
        self.starts: list[int] = []
        self.finals: list[int] = []
        self.bounds: list[range] = []
        self.own_calls: set[tuple[int, int]] = set()
        self.parameters: dict[int, Parameter] = {}
        self.actions: dict[tuple[int, int, int], int] = {}
        self.counted: set[int] = set()
        self.distinct: set[tuple[int, int, int]] = set()
        self._most = _SPARE * watch.limits.states
        self._ids: dict[str, int] = {}
        self._unread: list[tuple[int, Expression | _Counted]] = []
        self._unread.append((self.add_rule(""), Choice(grammar.alternatives)))
        for rule, body in self._unread:  # grows while it is read
            if isinstance(body, _Counted):
                self._read_counted(rule, body.symbol)
            elif isinstance(body, StateMachine) and body.parameter is not None:
                self._read_parametrised(rule, body, body.parameter)
            else:
                self._read_rule(rule, body)
        self.used = {symbol for edges in self.edges for symbol, _ in edges if symbol >= 0}

    def state(self) -> int:
        """Add a state and return it."""
        self.edges.append([])
        return len(self.edges) - 1

    def skip(self, source: int, target: int) -> None:
        """Add an empty edge."""
        if source != target:
            self.empty.setdefault(source, []).append(target)

    def add_rule(self, name: str) -> int:
        """Add a rule without states and return it."""
        self.names.append(name)
        self.starts.append(-1)
        self.finals.append(-1)
        self.bounds.append(range(0))
        return len(self.names) - 1

    def set_rule(self, rule: int, start: int, final: int) -> None:
        """Give a rule its states: all those from ``start`` on."""
        self.starts[rule], self.finals[rule] = start, final
        self.bounds[rule] = range(start, len(self.edges))

    def _read_rule(self, rule: int, rule_body: Expression) -> None:
        start, final = self.state(), self.state()
        tasks = [_Task(rule_body, start, final, True)]
        place = f"rule {self.names[rule]!r}"
        while tasks:
            task = tasks.pop()
            body, source, target, alone = task
            if isinstance(body, TerminalReference | RuleReference):
                self.edges[source].append((self._symbol(body, rule, source), target))
            elif isinstance(body, Sequence):
                for part in body.parts[:-1]:
                    between = self.state()
                    tasks.append(_Task(part, source, between, alone))
                    source, alone = between, True
                if body.parts:
                    tasks.append(_Task(body.parts[-1], source, target, alone))
                else:
                    self.skip(source, target)
            elif isinstance(body, Choice):
                alone = alone and len(body.parts) == 1
                tasks += [_Task(part, source, target, alone) for part in body.parts]
            elif isinstance(body, Repetition):
                tasks += self._repeat(body, source, target, alone, rule)
            elif isinstance(body, StateMachine) and body.parameter is not None:
                called = self.add_rule(self.names[rule])
                self._unread.append((called, body))
                self.edges[source].append((-1 - called, target))
            elif isinstance(body, StateMachine):
                self._embed(body, source, target, alone, rule)
            else:
                raise SpecError(f"{body!r} is not an expression; expected one of those in grammars.ir.")
            self._watch.step(place)
            if len(self.edges) > self._most:
                self._watch.at_most("states", len(self.edges) // _SPARE, place)
        self.set_rule(rule, start, final)

    def _read_counted(self, rule: int, symbol: int) -> None:
        start, loop = self.state(), self.state()
        for source in (start, loop):
            self.edges[source].append((symbol, loop))
            self.actions[source, symbol, loop] = COUNT
        self.set_rule(rule, start, loop)

    def _read_parametrised(self, rule: int, machine: StateMachine, parameter: Parameter) -> None:
        self.parameters[rule] = parameter
        place = f"rule {self.names[rule]!r}"
        self._watch.step(place, 1 + len(machine.edges))
        state = [self.state() for _ in range(machine.n_states)]
        self._watch.at_most("states", len(self.edges) // _SPARE, place)
        if machine.accepting != {machine.start} and len(machine.accepting) == 1:
            (final,) = machine.accepting
        else:
            raise SpecError(f"{place} has a parameter, so it needs one end, other than its start.")
        if len(machine.actions) != len(machine.edges):
            raise SpecError(f"{place} has {len(machine.edges)} edges, but {len(machine.actions)} actions.")
        for (before, reference, after), action in zip(machine.edges, machine.actions, strict=True):
            if reference is None or after == machine.start or action >= parameter.n_elements:
                raise SpecError(f"{place} has a parameter, and an edge {before} to {after} it must not have.")
            symbol = self._symbol(reference, rule, state[before])
            self.edges[state[before]].append((symbol, state[after]))
            self.actions[state[before], symbol, state[after]] = action
            if symbol in machine.distinct and (action >= 0 or action == COUNT):
                if before == machine.start:
                    raise SpecError(f"{place} begins with lexemes that must differ.")
                self.distinct.add((state[before], symbol, state[after]))
        self.set_rule(rule, state[0], state[final])
        self.starts[rule] = state[machine.start]

    def _symbol(self, reference: TerminalReference | RuleReference, rule: int, source: int) -> int:
        if isinstance(reference, TerminalReference):
            if 0 <= reference.index < self._n_terminals:
                return reference.index
            message = f"Rule {self.names[rule]!r} refers to terminal {reference.index}, which doesn't exist."
            raise SpecError(message)
        called = self._ids.get(reference.name)
        if called is None:
            called = self._call(reference.name, rule)
        if called == rule:
            self.own_calls.add((rule, source))
        return -1 - called

    def _call(self, name: str, rule: int) -> int:
        """Return the number of a rule that is called for the first time."""
        if name not in self.grammar.rules:
            raise SpecError(f"Rule {self.names[rule]!r} refers to rule {name!r}, which doesn't exist.")
        called = self._ids[name] = self.add_rule(name)
        self._unread.append((called, self.grammar.rules[name]))
        return called

    def _repeat(self, node: Repetition, source: int, target: int, alone: bool, rule: int) -> list[_Task]:
        body, minimum, maximum = node.body, node.minimum, node.maximum
        if maximum is not None and maximum < minimum:
            return []
        if maximum == 0:
            self.skip(source, target)
            return []
        rounds = minimum if maximum is None else maximum
        symbol: int | None
        if rounds > _COPIES and not isinstance(body, TerminalReference | RuleReference):
            # Copying a reference costs one edge; and so nested repetitions add up, not multiply.
            name = f"{self.names[rule]} (repeated)"
            called = self.add_rule(name)
            self._unread.append((called, body))
            symbol = -1 - called
        elif isinstance(body, TerminalReference | RuleReference) and rounds > COUNTED:
            symbol = self._symbol(body, rule, source)
        else:
            symbol = None
        if symbol is not None and rounds > COUNTED and self._counts:
            counted = self.add_rule(f"{self.names[rule]} (counted)")
            self.parameters[counted] = Parameter(least=max(minimum, 1), most=maximum)
            self.counted.add(counted)
            self._unread.append((counted, _Counted(symbol)))
            self.edges[source].append((-1 - counted, target))
            if minimum == 0:
                self.skip(source, target)
            return []
        if symbol is not None:
            self._watch.at_most("states", len(self.edges) // _SPARE + rounds, f"rule {self.names[rule]!r}")
            return self._repeat_call(symbol, source, target, minimum, maximum)
        self._watch.at_most("states", (len(self.edges) + rounds) // _SPARE, f"rule {self.names[rule]!r}")
        tasks: list[_Task] = []
        for i in range(rounds if maximum is not None else max(minimum - 1, 0)):
            if i >= minimum:
                self.skip(source, target)
                alone = False
            between = target if i + 1 == maximum else self.state()
            tasks.append(_Task(body, source, between, alone))
            source, alone = between, True
        if maximum is None and minimum == 0:
            loop = source if alone else self.state()
            self.skip(source, loop)
            self.skip(loop, target)
            tasks.append(_Task(body, loop, loop, False))
        elif maximum is None:
            begin, end = source if alone else self.state(), self.state()
            self.skip(source, begin)
            self.skip(end, begin)
            self.skip(end, target)
            tasks.append(_Task(body, begin, end, True))
        return tasks

    def _repeat_call(
        self, symbol: int, source: int, target: int, minimum: int, maximum: int | None
    ) -> list[_Task]:
        """Repeat one reference; nothing is left to do."""
        for i in range(minimum if maximum is None else maximum):
            if i >= minimum:
                self.skip(source, target)
            between = target if i + 1 == maximum else self.state()
            self.edges[source].append((symbol, between))
            source = between
            self._watch.step("a repetition")
        if maximum is None:
            self.edges[source].append((symbol, source))
            self.skip(source, target)
        return []

    def _embed(self, machine: StateMachine, source: int, target: int, alone: bool, rule: int) -> None:
        edges = self.edges
        # The start, and an end without edges, need no states of their own.
        ends = machine.accepting
        end = next(iter(ends)) if len(ends) == 1 else -1
        if end == machine.start or any(edge[0] == end for edge in machine.edges):
            end = -1
        start = machine.start if alone else -1
        own = machine.n_states - (start >= 0) - (end >= 0)
        state = list(range(len(edges), len(edges) + own))
        for i, is_at in sorted(((start, source), (end, target))):
            if i >= 0:
                state.insert(i, is_at)
        edges += [[] for _ in range(own)]
        if start < 0:
            self.skip(source, state[machine.start])
        if end < 0:
            for i in ends:
                self.skip(state[i], target)
        for before, reference, after in machine.edges:
            begin = state[before]
            if reference is None:
                self.skip(begin, state[after])
            elif isinstance(reference, TerminalReference) and 0 <= reference.index < self._n_terminals:
                edges[begin].append((reference.index, state[after]))
            else:
                edges[begin].append((self._symbol(reference, rule, begin), state[after]))
        self._watch.step("a state machine", 1 + len(machine.edges))
