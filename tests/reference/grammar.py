"""What a grammar allows byte by byte: textbook Earley over a lexer of derivatives, nothing interned.

A text is read as lexemes. In front of each lexeme stands a *place*: everything the parser may still
do. The terminals acceptable there compete for the bytes that follow (contextual lexing); ignored
terminals compete with them where the grammar lets ignored text stand. Where some of them match the
bytes read so far, the lexeme may end: those of highest priority are its *accept set*, and the parser
goes on by all of them at once. It must not end if one of the accept set is greedy and the next byte
continues any of the competitors.

A *configuration* is a place, the residuals of the terminals that compete since, and whether a byte
of the lexeme was read; a *state* is the set of configurations a text leads to.

An Earley item is a node of a rule and the kernel (a set of items) in which the rule began; the item
sets of the book are these sets with positions replaced by what stands there. Rules keep their empty
edges and are never determinised; completion runs to a fixpoint, so left recursion, nullable rules and
ambiguity need no care.

Source: J. Earley, "An efficient context-free parsing algorithm", CACM 13(2), 1970.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from constrain.grammars import ir
from tests.reference import patterns

Node: TypeAlias = tuple[str, int]
Symbol: TypeAlias = int | str | None  # terminal, rule, or nothing
Kernel: TypeAlias = "frozenset[tuple[Node, Kernel | None]]"  # None: before the whole text
Residuals: TypeAlias = frozenset[tuple[int, patterns.Term]]


class Branch(NamedTuple):
    """One way to have come to a place.

    ``ignored`` is how many ignored lexemes were read since the last other one (at most 1 where any number may
    be), ``None`` before anything was read.
    """

    ignored: int | None
    kernel: Kernel


Place: TypeAlias = frozenset[Branch]


class Configuration(NamedTuple):
    """See the module text."""

    place: Place
    residuals: Residuals
    is_fresh: bool


State: TypeAlias = frozenset[Configuration]
DEAD: State = frozenset()
_ROOT = "<root>"


class ReferenceGrammar:
    """The texts of ``grammar``, its viable prefixes, and what may follow them.

    Parameters
    ----------
    grammar : Grammar
    """

    def __init__(self, grammar: ir.Grammar) -> None:
        self.grammar = grammar
        self.terms = [patterns.start(t.pattern) for t in grammar.terminals]
        self._literals: dict[bytes, int] = {}
        self._edges: dict[Node, list[tuple[Symbol, Node]]] = {}
        self._ends: dict[str, Node] = {}
        # Alternatives that are read apart have roots of their own.
        self._roots = {_ROOT + i * "'": part for i, part in enumerate(grammar.alternatives)}
        for name, body in {**self._roots, **grammar.rules}.items():
            self._edges[name, 0], n = [], 1
            end, _ = self._add(name, body, (name, 0), n)
            self._ends[name] = end
        self._keep_productive()
        self._closures: dict[Kernel, frozenset[tuple[Node, Kernel | None]]] = {}
        self._acceptable: dict[Kernel, frozenset[int]] = {}
        self._classes: dict[State, list[int]] = {}
        self._steps: dict[tuple[State, int], State] = {}
        self._viable: dict[State, bool] = {}

    # ------------------------------------------------------------------------------ rules as graphs

    def _node(self, rule: str, n: int) -> tuple[Node, int]:
        self._edges[rule, n] = []
        return (rule, n), n + 1

    def _add(self, rule: str, body: ir.Expression, node: Node, n: int) -> tuple[Node, int]:
        """Append the graph of ``body`` behind ``node``; return its end and the next free number."""
        match body:
            case ir.TerminalReference(index):
                end, n = self._node(rule, n)
                if any(patterns.is_alive(patterns.step(self.terms[index], b)) for b in range(256)):
                    self._edges[node].append((index, end))
                if patterns.is_nullable(self.terms[index]):
                    self._edges[node].append((None, end))
            case ir.RuleReference(name):
                end, n = self._node(rule, n)
                self._edges[node].append((name, end))
            case ir.Sequence(parts):
                end = node
                for part in parts:
                    end, n = self._add(rule, part, end, n)
            case ir.Choice(parts):
                end, n = self._node(rule, n)
                for part in parts:
                    inner, n = self._node(rule, n)
                    self._edges[node].append((None, inner))
                    inner, n = self._add(rule, part, inner, n)
                    self._edges[inner].append((None, end))
            case ir.Repetition(inner_body, minimum, maximum):
                inner = node
                for _ in range(minimum):
                    inner, n = self._add(rule, inner_body, inner, n)
                end, n = self._node(rule, n)
                if maximum is None:
                    loop, n = self._node(rule, n)
                    self._edges[inner].append((None, loop))
                    self._edges[loop].append((None, end))
                    inner, n = self._add(rule, inner_body, loop, n)
                    self._edges[inner].append((None, loop))
                else:
                    self._edges[inner].append((None, end))
                    for _ in range(maximum - minimum):
                        inner, n = self._add(rule, inner_body, inner, n)
                        self._edges[inner].append((None, end))
            case ir.StateMachine(parameter=ir.Parameter() as parameter):
                end, n = self._add_with_values(rule, body, parameter, node, n)
            case ir.StateMachine(n_states, start, accepting, edges):
                nodes = []
                for _ in range(n_states):
                    inner, n = self._node(rule, n)
                    nodes.append(inner)
                end, n = self._node(rule, n)
                self._edges[node].append((None, nodes[start]))
                for state in accepting:
                    self._edges[nodes[state]].append((None, end))
                for source, symbol, target in edges:
                    if symbol is None:
                        self._edges[nodes[source]].append((None, nodes[target]))
                    else:
                        inner, n = self._add(rule, symbol, nodes[source], n)
                        self._edges[inner].append((None, nodes[target]))
        return end, n

    def _add_with_values(
        self, rule: str, body: ir.StateMachine, parameter: ir.Parameter, node: Node, n: int
    ) -> tuple[Node, int]:
        """Append a node for each state and value: the elements taken, the number of all, the distinct lexemes."""
        end, n = self._node(rule, n)
        first: tuple[frozenset[int], int, frozenset[bytes]] | None = frozenset(), 0, frozenset()
        nodes = {(body.start, first): node}
        todo = [(body.start, first)]
        for state, value in todo:  # grows while it is read
            here = nodes[state, value]
            is_enough = value is None or (
                value[1] >= parameter.least
                and parameter.required <= value[0]
                and all(value[0].issuperset(needed) for one, needed in parameter.needs if one in value[0])
            )
            if state in body.accepting and is_enough:
                self._edges[here].append((None, end))
            for (source, symbol, target), action in zip(body.edges, body.actions, strict=True):
                if source != state or (action == ir.CLOSE and not is_enough):
                    continue
                assert symbol is not None
                ways = [(symbol, value)]
                if action == ir.CLOSE:
                    ways = [(symbol, None)]
                elif action >= 0 or action == ir.COUNT:
                    assert value is not None
                    taken, count, words = value
                    if action in taken or count == parameter.most:
                        continue
                    count = count + 1 if parameter.most is not None else min(count + 1, parameter.least)
                    taken = taken | {action} if action >= 0 else taken
                    ways = [(symbol, (taken, count, words))]
                    if isinstance(symbol, ir.TerminalReference) and symbol.index in body.distinct:
                        ways = [
                            (self._literal(word), (taken, count, words | {word}))
                            for word in self._words(symbol.index)
                            if word not in words
                        ]
                for symbol, after in ways:
                    if (target, after) not in nodes:
                        nodes[target, after], n = self._node(rule, n)
                        todo.append((target, after))
                    inner, n = self._add(rule, symbol, here, n)
                    self._edges[inner].append((None, nodes[target, after]))
        return end, n

    def _words(self, terminal: int) -> list[bytes]:
        """Return the texts of a terminal, which must be few."""
        found = []
        todo = [(b"", self.terms[terminal])]
        for word, term in todo:  # grows while it is read
            if word and patterns.is_nullable(term):
                found.append(word)
            steps = ((word + bytes([b]), patterns.step(term, b)) for b in range(256))
            todo += [(longer, after) for longer, after in steps if patterns.is_alive(after)]
            assert len(todo) < 1000, "too many texts"
        return found

    def _literal(self, word: bytes) -> ir.TerminalReference:
        """Return a terminal that reads ``word``."""
        terminals = self.grammar.terminals
        if word not in self._literals:
            self._literals[word] = len(terminals)
            self.grammar = replace(
                self.grammar, terminals=(*terminals, ir.Terminal(ir.Literal(word), repr(word)))
            )
            self.terms.append(patterns.start(ir.Literal(word)))
        return ir.TerminalReference(self._literals[word])

    def _keep_productive(self) -> None:
        """Drop all edges that no finished rule can use."""
        alive = set(self._ends.values())
        size = -1
        while size != len(alive):
            size = len(alive)
            for node, edges in self._edges.items():
                if any(after in alive and self._can_finish(s, alive) for s, after in edges):
                    alive.add(node)
        for node, edges in self._edges.items():
            self._edges[node] = [
                (s, after) for s, after in edges if after in alive and self._can_finish(s, alive)
            ]
        self._roots = {root: part for root, part in self._roots.items() if (root, 0) in alive}
        self.is_empty = not self._roots

    @staticmethod
    def _can_finish(symbol: Symbol, alive: set[Node]) -> bool:
        return not isinstance(symbol, str) or (symbol, 0) in alive

    # ------------------------------------------------------------------------------ Earley

    def _closure(self, kernel: Kernel) -> frozenset[tuple[Node, Kernel | None]]:
        """Return all items of the set whose items of earlier origin are ``kernel``."""
        if kernel in self._closures:
            return self._closures[kernel]
        items = set(kernel)
        while True:
            new: set[tuple[Node, Kernel | None]] = set()
            for node, origin in items:
                for symbol, after in self._edges[node]:
                    if symbol is None:
                        new.add((after, origin))
                    elif isinstance(symbol, str):
                        new.add(((symbol, 0), kernel))
                if node == self._ends[node[0]] and origin is not None:
                    waiting = items if origin == kernel else self._closure(origin)
                    for other, outer in waiting:
                        for symbol, after in self._edges[other]:
                            if symbol == node[0]:
                                new.add((after, outer))
            if new <= items:
                self._closures[kernel] = frozenset(items)
                return self._closures[kernel]
            items |= new

    def _scan(self, kernel: Kernel, terminals: frozenset[int]) -> Kernel:
        return frozenset(
            (after, origin)
            for node, origin in self._closure(kernel)
            for symbol, after in self._edges[node]
            if isinstance(symbol, int) and symbol in terminals
        )

    def _terminals(self, kernel: Kernel) -> frozenset[int]:
        if kernel not in self._acceptable:
            self._acceptable[kernel] = frozenset(
                symbol
                for node, _ in self._closure(kernel)
                for symbol, _ in self._edges[node]
                if isinstance(symbol, int)
            )
        return self._acceptable[kernel]

    def _is_complete(self, kernel: Kernel) -> bool:
        closure = self._closure(kernel)
        return any((self._ends[root], None) in closure for root in self._roots)

    # ------------------------------------------------------------------------------ places

    def _ignorable(self, branch: Branch) -> bool:
        """May ignored text stand here?"""
        ignored = self.grammar.ignored
        if branch.ignored is None:
            allowed = ignored.leading and ignored.most != 0
        else:
            allowed = ignored.most is None or branch.ignored < ignored.most
        goes_on = bool(self._terminals(branch.kernel))
        return allowed and (goes_on or (ignored.trailing and self._is_complete(branch.kernel)))

    def _may_end(self, place: Place) -> bool:
        return any(
            self._is_complete(kernel) and (not ignored or self.grammar.ignored.trailing)
            for ignored, kernel in place
        )

    def _competitors(self, place: Place) -> Residuals:
        indices: set[int] = set()
        for branch in place:
            indices |= self._terminals(branch.kernel)
            if self._ignorable(branch):
                indices |= set(self.grammar.ignored.terminals)
        return frozenset((t, self.terms[t]) for t in indices)

    def _advance(self, place: Place, accept_set: frozenset[int]) -> Place:
        scanned = frozenset().union(*(self._scan(b.kernel, accept_set) for b in place))
        after = {Branch(0, scanned)} if scanned else set()
        if not accept_set.isdisjoint(self.grammar.ignored.terminals):
            kept: dict[int, Kernel] = {}
            for branch in place:
                if self._ignorable(branch):
                    n = 1 if self.grammar.ignored.most is None else 1 + (branch.ignored or 0)
                    kept[n] = kept.get(n, frozenset()) | branch.kernel
            after |= {Branch(n, kernel) for n, kernel in kept.items() if kernel}
        return frozenset(after)

    def _accept_set(self, configuration: Configuration) -> frozenset[int]:
        if configuration.is_fresh:
            return frozenset()
        ending = {t for t, residual in configuration.residuals if patterns.is_nullable(residual)}
        best = max((self.grammar.terminals[t].priority for t in ending), default=0)
        return frozenset(t for t in ending if self.grammar.terminals[t].priority == best)

    # ------------------------------------------------------------------------------ states

    @property
    def start(self) -> State:
        """The state before the first byte."""
        places = [frozenset({Branch(None, frozenset({((root, 0), None)}))}) for root in self._roots]
        return frozenset(Configuration(place, self._competitors(place), True) for place in places)

    def step(self, state: State, byte: int) -> State:
        """Return the state after one more byte; `DEAD` if nothing can be read that way.

        Bytes that no residual tells apart are read as the first of them.
        """
        if not state:
            return DEAD
        classes = self.classes(state)
        key = state, classes[bisect_right(classes, byte) - 1]
        if key not in self._steps:
            after: set[Configuration] = set()
            for configuration in state:
                after |= self._step_configuration(configuration, key[1])
            self._steps[key] = frozenset(after)
        return self._steps[key]

    def classes(self, state: State) -> list[int]:
        """Return the first byte of each class of bytes that lead on from ``state`` alike."""
        if state not in self._classes:
            terms = set(self.terms)
            for configuration in state:
                terms |= {residual for _, residual in configuration.residuals}
            walls = {
                end for t in self.grammar.terminals for pair in t.not_before for end in (pair[0], pair[1] + 1)
            }
            self._classes[state] = sorted({*patterns.representatives(terms), *walls})
        return self._classes[state]

    def _step_configuration(self, configuration: Configuration, byte: int) -> set[Configuration]:
        after: set[Configuration] = set()
        residuals = _step_residuals(configuration.residuals, byte)
        if residuals:
            after.add(Configuration(configuration.place, residuals, False))
        accept_set = self._accept_set(configuration)
        is_greedy = any(self.grammar.terminals[t].greedy for t in accept_set)
        goes_on = bool(residuals) or self._is_held(configuration, byte)
        if accept_set and not (goes_on and is_greedy):
            place = self._advance(configuration.place, accept_set)
            residuals = _step_residuals(self._competitors(place), byte)
            if residuals:
                after.add(Configuration(place, residuals, False))
        return after

    def _is_held(self, configuration: Configuration, byte: int) -> bool:
        """May ``byte`` not follow one of the terminals that end here? Then it counts as going on."""
        return any(
            low <= byte <= high
            for t, residual in configuration.residuals
            if not configuration.is_fresh and patterns.is_nullable(residual)
            for low, high in self.grammar.terminals[t].not_before
        )

    def steps(self, state: State, data: bytes) -> State:
        """Return the state after all of ``data``."""
        for byte in data:
            state = self.step(state, byte)
        return state

    def is_accepting(self, state: State) -> bool:
        """May the text end here?"""
        for configuration in state:
            place = configuration.place
            if not configuration.is_fresh:
                accept_set = self._accept_set(configuration)
                place = self._advance(place, accept_set) if accept_set else frozenset()
            if self._may_end(place):
                return True
        return False

    def alike(self, state: State) -> State:
        """Return a state, the same for all that are viable for the same reason."""
        return state

    def is_viable(self, state: State, *, at_most: int = 2000) -> bool | None:
        """Does some text lead on to acceptance? ``None``: not known after ``at_most`` states."""
        state = self.alike(state)
        parent: dict[State, State | None] = {state: None}
        queue = deque([state])
        while queue:
            current: State | None = queue.popleft()
            assert current is not None
            if self._viable.get(current, False) or self.is_accepting(current):
                while current is not None:
                    self._viable[current] = True
                    current = parent[current]
                return True
            if len(parent) > at_most:
                return None
            for byte in self.classes(current):
                after = self.alike(self.step(current, byte))
                if after and after not in parent and self._viable.get(after, True):
                    parent[after] = current
                    queue.append(after)
        self._viable.update(dict.fromkeys(parent, False))
        return False

    def accepts(self, data: bytes) -> bool:
        """Is ``data`` a whole text of the grammar?"""
        return self.is_accepting(self.steps(self.start, data))

    def members(self, alphabet: bytes, length: int) -> Iterator[bytes]:
        """Yield the texts of at most ``length`` bytes over ``alphabet``, shortest first."""
        level = [(b"", self.start)]
        for _ in range(length + 1):
            yield from (data for data, state in level if self.is_accepting(state))
            level = [
                (data + bytes([byte]), after)
                for data, state in level
                for byte in alphabet
                if (after := self.step(state, byte))
            ]


def _step_residuals(residuals: Residuals, byte: int) -> Residuals:
    stepped = ((t, patterns.step(residual, byte)) for t, residual in residuals)
    return frozenset((t, residual) for t, residual in stepped if patterns.is_alive(residual))


def words(grammar: ir.Grammar, length: int) -> frozenset[tuple[int, ...]]:
    """Return the terminal sequences of at most ``length`` terminals the rules derive.

    Plain iteration of the grammar's equations from empty sets; no parser is involved. Terminals that
    match the empty string are not treated specially.
    """
    sets: dict[str, frozenset[tuple[int, ...]]] = {name: frozenset() for name in grammar.rules}

    def join(
        left: frozenset[tuple[int, ...]], right: frozenset[tuple[int, ...]]
    ) -> frozenset[tuple[int, ...]]:
        return frozenset(a + b for a in left for b in right if len(a) + len(b) <= length)

    def evaluate(body: ir.Expression) -> frozenset[tuple[int, ...]]:
        result: frozenset[tuple[int, ...]] = frozenset()
        match body:
            case ir.TerminalReference(index):
                result = frozenset({(index,)} if length else ())
            case ir.RuleReference(name):
                result = sets[name]
            case ir.Sequence(parts):
                result = frozenset({()})
                for part in parts:
                    result = join(result, evaluate(part))
            case ir.Choice(parts):
                result = frozenset().union(*(evaluate(part) for part in parts))
            case ir.Repetition(inner, minimum, maximum):
                once, power = evaluate(inner), frozenset({()})
                for _ in range(minimum):
                    power = join(power, once)
                limit = length + 1 if maximum is None else maximum - minimum
                result = power
                for _ in range(limit):
                    power = join(power, once)
                    result |= power
            case ir.StateMachine(n_states, start, accepting, edges):
                reached = [frozenset({()}) if s == start else frozenset() for s in range(n_states)]
                before = None
                while before != reached:
                    before = list(reached)
                    for source, symbol, target in edges:
                        piece = frozenset({()}) if symbol is None else evaluate(symbol)
                        reached[target] = reached[target] | join(reached[source], piece)
                result = frozenset().union(*(reached[s] for s in accepting))
        return result

    while True:
        new = {name: evaluate(body) for name, body in grammar.rules.items()}
        if new == sets:
            return sets[grammar.start]
        sets = new
