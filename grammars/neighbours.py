"""Which terminals may stand next to which: `neighbours`, and with what texts begin: `begin_of`.

All sets may be too large, never too small. Sets of terminals and rules are the bits of integers. Each rule's body
is read once, for both directions, with bits that stand for the rules in it; what those bits stand for is filled in
at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from constrain.grammars import ir
from constrain.grammars.adjacency import edge_characters
from constrain.grammars.bits import members
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import is_nullable
from constrain.grammars.regex.ranges import NONE, union

_PLACE = "the neighbours of terminals"

_Machine: TypeAlias = tuple[list[int], list[bool]]


class Neighbours(NamedTuple):
    """What may stand next to a terminal, with nothing in between.

    Parameters
    ----------
    bits : int
        The terminals.
    is_last : bool
        The text may end (or begin) there.
    """

    bits: int
    is_last: bool

    @property
    def terminals(self) -> Iterator[int]:
        """The numbers of the terminals, rising."""
        return members(self.bits)


def begin_of(grammar: ir.Grammar, watch: Watch) -> ir.Ranges:
    """Return the characters that texts begin with."""
    ignored = grammar.ignored
    found: ir.Ranges = NONE
    bits = _Graph(grammar, watch).begins(grammar.start)
    for t, terminal in enumerate(grammar.terminals):
        if bits >> t & 1 or (ignored.leading and t in ignored.terminals):
            found = union(found, edge_characters(terminal.pattern, at_end=False))
    return found


def neighbours(grammar: ir.Grammar, watch: Watch) -> tuple[list[Neighbours], list[Neighbours]]:
    """Return what may follow and what may precede each terminal."""
    graph = _Graph(grammar, watch)
    return graph.beside(0), graph.beside(1)


class _Graph:
    """What stands beside what in the bodies of rules.

    Bit ``t`` is terminal ``t``; behind the terminals there are bits for the end (or the beginning) of the text, for
    what stands beside the rule at hand, and for each rule. Pairs are for reading forwards and backwards.
    """

    def __init__(self, grammar: ir.Grammar, watch: Watch) -> None:
        self._watch = watch
        self._grammar = grammar
        self._n = n = len(grammar.terminals)
        self._end, self._of_rule, self._first_rule = 1 << n, 1 << n + 1, n + 2
        self._number = {name: n + 2 + i for i, name in enumerate(grammar.rules)}
        self._is_empty = [is_nullable(terminal.pattern) for terminal in grammar.terminals] + [False] * 2
        self._is_empty += [False] * len(grammar.rules)
        self._bodies = [_Body(body, self._number, watch) for body in grammar.rules.values()]
        self._find_empty()
        size = len(self._is_empty)
        # What rules begin (end) with, and what stands beside symbols within bodies.
        self._edge: tuple[list[int], list[int]] = [0] * size, [0] * size
        self._beside: tuple[list[int], list[int]] = [0] * size, [0] * size
        # The symbols at the ends of each rule: what stands beside the rule stands beside them.
        self._at_end: tuple[list[list[int]], list[list[int]]] = (
            [[] for _ in self._is_empty],
            [[] for _ in self._is_empty],
        )
        for rule, body in enumerate(self._bodies, self._first_rule):
            self._read(rule, body)
        for side in (0, 1):
            self._fill_in(self._edge[side], range(self._first_rule, size))

    def _find_empty(self) -> None:
        """Find the rules that may be empty."""
        first, is_empty = self._first_rule, self._is_empty
        users: list[list[int]] = [[] for _ in self._bodies]
        for rule, body in enumerate(self._bodies):
            for symbol in body.symbols:
                if symbol >= first:
                    users[symbol - first].append(rule)
        tasks = list(range(len(self._bodies)))
        while tasks:
            rule = tasks.pop()
            if not is_empty[first + rule] and self._bodies[rule].empty(is_empty, self._watch)[0]:
                is_empty[first + rule] = True
                tasks += users[rule]

    def _read(self, rule: int, body: _Body) -> None:
        """Note what stands beside what in a body."""
        self._watch.step(_PLACE, len(body.nodes))
        nodes, parts = body.nodes, body.parts
        is_empty = body.empty(self._is_empty, self._watch)
        first, last = [0] * len(nodes), [0] * len(nodes)
        machines: dict[int, tuple[_Machine, _Machine]] = {}
        for i in range(len(nodes) - 1, -1, -1):
            node, inner = nodes[i], parts[i]
            if type(node) is int:
                first[i] = last[i] = 1 << node
            elif type(node) is ir.Sequence:
                for found, order in ((first, inner), (last, reversed(inner))):
                    for k in order:
                        found[i] |= found[k]
                        if not is_empty[k]:
                            break
            elif type(node) is ir.StateMachine:
                both = machines[i] = self._states(node, 0), self._states(node, 1)
                first[i] = both[0][0][node.start]
                for state in node.accepting:
                    last[i] |= both[1][0][state]
            else:
                for k in inner:
                    first[i] |= first[k]
                    last[i] |= last[k]
        self._edge[0][rule], self._edge[1][rule] = first[0], last[0]
        after, before = [self._of_rule] * len(nodes), [self._of_rule] * len(nodes)
        for i, (node, inner) in enumerate(zip(nodes, parts, strict=True)):
            if type(node) is int:
                self._note(0, rule, node, after[i])
                self._note(1, rule, node, before[i])
            elif type(node) is ir.Sequence:
                for beside, edge, order in ((after, first, reversed(inner)), (before, last, inner)):
                    bits = beside[i]
                    for k in order:
                        beside[k] = bits
                        bits = edge[k] | bits if is_empty[k] else edge[k]
            elif type(node) is ir.StateMachine:
                for side, bits in ((0, after[i]), (1, before[i])):
                    masks, may_end = machines[i][side]
                    for _, symbol, target in _edges(node, side):
                        if symbol is not None:
                            more = masks[target] | bits if may_end[target] else masks[target]
                            self._note(side, rule, self._symbol(symbol), more)
            else:
                is_row = type(node) is ir.Repetition and (node.maximum is None or node.maximum > 1)
                for k in inner:
                    after[k], before[k] = after[i], before[i]
                    if is_row:
                        after[k] |= first[k]
                        before[k] |= last[k]

    def _symbol(self, symbol: ir.TerminalReference | ir.RuleReference) -> int:
        return symbol.index if isinstance(symbol, ir.TerminalReference) else self._number[symbol.name]

    def _states(self, machine: ir.StateMachine, side: int) -> _Machine:
        """Return what may stand first from each state on, and whether nothing need stand there."""
        n = machine.n_states
        masks, may_end = [0] * n, [False] * n
        for state in machine.accepting if side == 0 else (machine.start,):
            may_end[state] = True
        skips: list[list[int]] = [[] for _ in range(n)]
        for source, symbol, target in _edges(machine, side):
            number = -1 if symbol is None else self._symbol(symbol)
            if number >= 0:
                masks[source] |= 1 << number
            if number < 0 or self._is_empty[number]:
                skips[target].append(source)
        tasks = list(range(n))
        while tasks:
            target = tasks.pop()
            self._watch.step(_PLACE, 1 + len(skips[target]))
            for source in skips[target]:
                if masks[target] & ~masks[source] or may_end[target] > may_end[source]:
                    masks[source] |= masks[target]
                    may_end[source] |= may_end[target]
                    tasks.append(source)
        return masks, may_end

    def _note(self, side: int, rule: int, symbol: int, bits: int) -> None:
        """Note that ``bits`` may stand beside a symbol of a rule."""
        if bits & self._of_rule:
            bits ^= self._of_rule
            self._at_end[side][rule].append(symbol)
        self._beside[side][symbol] |= bits

    def _fill_in(self, sets: list[int], rules: Iterable[int]) -> None:
        """Replace the bits of rules, in the sets of rules themselves, by what those stand for."""
        users: list[list[int]] = [[] for _ in sets]
        for rule in rules:
            for inner in members(sets[rule] >> self._first_rule):
                users[self._first_rule + inner].append(rule)
            sets[rule] &= self._end - 1
        _spread(sets, users, self._watch)

    def begins(self, rule: str) -> int:
        """Return the terminals that a rule begins with."""
        return self._edge[0][self._number[rule]]

    def beside(self, side: int) -> list[Neighbours]:
        """Return what may stand behind (or before) each terminal."""
        edge, sets = self._edge[side], self._beside[side]
        sets[self._number[self._grammar.start]] |= self._end
        known: dict[int, int] = {}
        for symbol, bits in enumerate(sets):
            rules = bits >> self._first_rule
            if rules:
                if rules not in known:
                    known[rules] = 0
                    for inner in members(rules):
                        known[rules] |= edge[self._first_rule + inner]
                    self._watch.step(_PLACE, rules.bit_count())
                sets[symbol] = bits & 2 * self._end - 1 | known[rules]
        _spread(sets, self._at_end[side], self._watch)
        blank, everything = 0, self._end
        for t in self._grammar.ignored.terminals:
            blank |= 1 << t
        for t in range(self._n):
            everything |= 1 << t if sets[t] else 0
        everything |= blank
        found = []
        for t in range(self._n):
            bits = everything if blank >> t & 1 else sets[t] | blank
            found.append(Neighbours(bits & self._end - 1, bits & self._end != 0))
        return found


class _Body:
    """The body of a rule as a list of its nodes, each before its parts; the number of a symbol is a node of its own."""

    def __init__(self, body: ir.Expression, number: dict[str, int], watch: Watch) -> None:
        todo: list[ir.Expression] = [body]
        self.nodes: list[int | ir.Sequence | ir.Choice | ir.Repetition | ir.StateMachine] = []
        self.parts: list[range] = []
        self.symbols: list[int] = []
        for node in todo:  # grows while it is read
            first = len(todo)
            if isinstance(node, ir.TerminalReference):
                self.symbols.append(node.index)
                self.nodes.append(node.index)
            elif isinstance(node, ir.RuleReference):
                self.symbols.append(number[node.name])
                self.nodes.append(number[node.name])
            else:
                self.nodes.append(node)
                if isinstance(node, ir.Repetition):
                    todo.append(node.body)
                elif isinstance(node, ir.StateMachine):
                    for _, symbol, _ in node.edges:
                        if isinstance(symbol, ir.RuleReference):
                            self.symbols.append(number[symbol.name])
                else:
                    todo += node.parts
            self.parts.append(range(first, len(todo)))
            watch.step(_PLACE)
        self._number = number

    def empty(self, is_empty: Sequence[bool], watch: Watch) -> list[bool]:
        """Return whether each node may be empty, given that of the symbols."""
        found = [False] * len(self.nodes)
        for i in range(len(found) - 1, -1, -1):
            node, inner = self.nodes[i], self.parts[i]
            if isinstance(node, int):
                found[i] = is_empty[node]
            elif isinstance(node, ir.Choice):
                found[i] = any(found[k] for k in inner)
            elif isinstance(node, ir.StateMachine):
                found[i] = self._is_machine_empty(node, is_empty)
                watch.step(_PLACE, len(node.edges))
            else:
                found[i] = all(found[k] for k in inner)
                if isinstance(node, ir.Repetition):
                    found[i] |= node.minimum == 0
        watch.step(_PLACE, len(found))
        return found

    def _is_machine_empty(self, machine: ir.StateMachine, is_empty: Sequence[bool]) -> bool:
        skips: dict[int, list[int]] = {}
        for source, symbol, target in machine.edges:
            if isinstance(symbol, ir.TerminalReference):
                may_skip = is_empty[symbol.index]
            else:
                may_skip = symbol is None or is_empty[self._number[symbol.name]]
            if may_skip:
                skips.setdefault(source, []).append(target)
        reached = [machine.start]
        seen = {machine.start}
        for state in reached:  # grows while it is read
            for target in skips.get(state, ()):
                if target not in seen:
                    seen.add(target)
                    reached.append(target)
        return not seen.isdisjoint(machine.accepting)


def _edges(
    machine: ir.StateMachine, side: int
) -> Iterator[tuple[int, ir.TerminalReference | ir.RuleReference | None, int]]:
    """Yield the edges in the direction of reading."""
    for source, symbol, target in machine.edges:
        yield (source, symbol, target) if side == 0 else (target, symbol, source)


def _spread(sets: list[int], to: Sequence[list[int]], watch: Watch) -> None:
    """Add each set to those it flows to, until nothing changes."""
    tasks = [i for i, targets in enumerate(to) if targets]
    while tasks:
        i = tasks.pop()
        watch.step(_PLACE, 1 + len(to[i]))
        for k in to[i]:
            if sets[i] & ~sets[k]:
                sets[k] |= sets[i]
                if to[k]:
                    tasks.append(k)
