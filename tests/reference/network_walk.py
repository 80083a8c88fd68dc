"""A `Network` read byte by byte, straight from its arrays: sets everywhere, nothing interned.

The semantics are those of `tests.reference.grammar`, told from what the arrays say: an *element* is a
terminal that is being read, with a set of lexer values for each of its literals (one positive literal
for a plain terminal); guards and actions are looked up edge by edge; an Earley item is a dotted state
and the kernel its rule began in.

Source: J. Earley, "An efficient context-free parsing algorithm", CACM 13(2), 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from constrain.tokenizer_index.network import INC, KEEP, Int32, Network

Value: TypeAlias = tuple[int, int]  # count, position
Literal: TypeAlias = tuple[bool, frozenset[Value]]  # negative, values
Kernel: TypeAlias = "frozenset[tuple[int, Kernel | None]]"


class Element(NamedTuple):
    """A terminal that is being read."""

    terminal: int
    literals: tuple[Literal, ...]


class Branch(NamedTuple):
    """One way to have come to the start of a lexeme; see `tests.reference.grammar`."""

    ignored: int | None
    kernel: Kernel


class Configuration(NamedTuple):
    """Where a lexeme began, the terminals read since, and whether a byte was read."""

    place: frozenset[Branch]
    elements: frozenset[Element]
    is_fresh: bool


State: TypeAlias = frozenset[Configuration]


class NetworkWalk:
    """The texts of ``network``."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._closures: dict[Kernel, frozenset[tuple[int, Kernel | None]]] = {}

    # ------------------------------------------------------------------------------ lexer

    def begin(self, terminal: int) -> Element | None:
        """Return ``terminal`` before its first byte; ``None`` if it has no start."""
        n = self.network
        first, last = n.literal_offsets[terminal : terminal + 2]
        if first < last:
            return Element(
                terminal,
                tuple(
                    (bool(n.literal_negative[k]), self._values(n.literal_starts, n.literal_start_offsets, k))
                    for k in range(first, last)
                ),
            )
        values = self._values(n.starts, n.start_offsets, terminal)
        return Element(terminal, ((False, values),)) if values else None

    @staticmethod
    def _values(starts: Int32, offsets: Int32, row: int) -> frozenset[Value]:
        return frozenset((0, int(x)) for x in starts[offsets[row] : offsets[row + 1]])

    def step_values(self, values: frozenset[Value], byte: int) -> frozenset[Value]:
        """Return the lexer values after one byte."""
        n = self.network
        after = set()
        for count, x in values:
            for e in range(n.edge_offsets[x], n.edge_offsets[x + 1]):
                if not n.edge_low[e] <= byte <= n.edge_high[e]:
                    continue
                guard, action, y = int(n.edge_guard[e]), int(n.edge_action[e]), int(n.edge_target[e])
                assert guard == 0 or n.is_hub[x]
                if guard == 1 and not (n.count_max[x] < 0 or count < n.count_max[x]):
                    continue
                if guard == 2 and not count >= n.count_min[x]:
                    continue
                if action == KEEP:
                    after.add((count, y))
                elif action == INC:
                    after.add((count + 1 if n.count_max[y] >= 0 else min(count + 1, int(n.count_min[y])), y))
                else:
                    after.add((action, y))
        return frozenset(after)

    def step_element(self, element: Element, byte: int) -> Element | None:
        """Return ``element`` after one byte; ``None`` if a positive literal died."""
        literals = []
        for negative, values in element.literals:
            stepped = self.step_values(values, byte)
            if not stepped and not negative:
                return None
            literals.append((negative, stepped))
        return Element(element.terminal, tuple(literals))

    def is_match(self, element: Element) -> bool:
        """May the lexeme end here?"""
        n = self.network
        is_boolean = n.literal_offsets[element.terminal] < n.literal_offsets[element.terminal + 1]
        end = n.n_terminals if is_boolean else element.terminal
        return all(
            negative
            != any(n.accept[x] == end and (not n.is_hub[x] or count >= n.count_min[x]) for count, x in values)
            for negative, values in element.literals
        )

    def matches(self, terminal: int, data: bytes) -> bool:
        """Does ``data`` match ``terminal``?"""
        element = self.begin(terminal)
        for byte in data:
            if element is None:
                return False
            element = self.step_element(element, byte)
        return element is not None and bool(data) and self.is_match(element)

    # ------------------------------------------------------------------------------ Earley

    def _terminal_edges(self, dot: int) -> Iterator[tuple[int, int]]:
        n = self.network
        for k in range(n.terminal_offsets[dot], n.terminal_offsets[dot + 1]):
            yield int(n.terminal_symbol[k]), int(n.terminal_target[k])

    def _rule_edges(self, dot: int) -> Iterator[tuple[int, int]]:
        n = self.network
        for k in range(n.rule_offsets[dot], n.rule_offsets[dot + 1]):
            yield int(n.rule_symbol[k]), int(n.rule_target[k])

    def _closure(self, kernel: Kernel) -> frozenset[tuple[int, Kernel | None]]:
        if kernel in self._closures:
            return self._closures[kernel]
        n = self.network
        items = set(kernel)
        while True:
            new: set[tuple[int, Kernel | None]] = set()
            for dot, origin in items:
                for rule, _ in self._rule_edges(dot):
                    new.add((int(n.rule_start[rule]), kernel))
                if n.is_final[dot] and origin is not None:
                    # No rule matches the empty string, so the origin is an earlier set.
                    for other, outer in self._closure(origin):
                        for rule, after in self._rule_edges(other):
                            if rule == n.rule_of[dot]:
                                new.add((after, outer))
            if new <= items:
                self._closures[kernel] = frozenset(items)
                return self._closures[kernel]
            items |= new

    def _scan(self, kernel: Kernel, terminals: frozenset[int]) -> Kernel:
        return frozenset(
            (after, origin)
            for dot, origin in self._closure(kernel)
            for symbol, after in self._terminal_edges(dot)
            if symbol in terminals
        )

    def _terminals(self, kernel: Kernel) -> set[int]:
        return {symbol for dot, _ in self._closure(kernel) for symbol, _ in self._terminal_edges(dot)}

    def _is_complete(self, kernel: Kernel) -> bool:
        n = self.network
        if n.start_nullable and any(not kernel.isdisjoint(first) for first in self._first()):
            return True  # the item before the whole text is still there: nothing was read but ignored text
        return any(
            origin is None and n.rule_of[dot] == 0 and n.is_final[dot]
            for dot, origin in self._closure(kernel)
        )

    def _first(self) -> list[Kernel]:
        return [frozenset({(dot, None)}) for dot in range(self.network.n_starts)]

    # ------------------------------------------------------------------------------ places

    def _ignorable(self, branch: Branch) -> bool:
        n = self.network
        if branch.ignored is None:
            allowed = n.ignored_leading and n.ignored_most != 0
        else:
            allowed = n.ignored_most is None or branch.ignored < n.ignored_most
        goes_on = bool(self._terminals(branch.kernel))
        return allowed and (goes_on or (n.ignored_trailing and self._is_complete(branch.kernel)))

    def _may_end(self, place: frozenset[Branch]) -> bool:
        return any(
            self._is_complete(branch.kernel) and (not branch.ignored or self.network.ignored_trailing)
            for branch in place
        )

    def _elements(self, place: frozenset[Branch]) -> frozenset[Element]:
        terminals: set[int] = set()
        for branch in place:
            terminals |= self._terminals(branch.kernel)
            if self._ignorable(branch):
                terminals |= {int(t) for t in self.network.ignored_terminals}
        return frozenset(element for t in terminals if (element := self.begin(t)) is not None)

    def _accept_set(self, configuration: Configuration) -> frozenset[int]:
        if configuration.is_fresh:
            return frozenset()
        priority = self.network.priority
        ending = {e.terminal for e in configuration.elements if self.is_match(e)}
        best = max((priority[t] for t in ending), default=0)
        return frozenset(t for t in ending if priority[t] == best)

    def _advance(self, place: frozenset[Branch], accept_set: frozenset[int]) -> frozenset[Branch]:
        after = set()
        scanned: Kernel = frozenset().union(*(self._scan(b.kernel, accept_set) for b in place))
        if scanned:
            after.add(Branch(0, scanned))
        if not accept_set.isdisjoint(int(t) for t in self.network.ignored_terminals):
            kept: dict[int, Kernel] = {}
            for branch in place:
                if self._ignorable(branch):
                    count = 1 if self.network.ignored_most is None else 1 + (branch.ignored or 0)
                    kept[count] = kept.get(count, frozenset()) | branch.kernel
            after |= {Branch(count, kernel) for count, kernel in kept.items() if kernel}
        return frozenset(after)

    # ------------------------------------------------------------------------------ states

    @property
    def start(self) -> State:
        """The state before the first byte."""
        places = [frozenset({Branch(None, kernel)}) for kernel in self._first()]
        return frozenset(Configuration(place, self._elements(place), True) for place in places)

    def step(self, state: State, byte: int) -> State:
        """Return the state after one more byte; empty if nothing can be read that way."""
        after = set()
        for configuration in state:
            elements = self._step_elements(configuration.elements, byte)
            if elements:
                after.add(Configuration(configuration.place, elements, False))
            accept_set = self._accept_set(configuration)
            is_greedy = any(self.network.greedy[t] for t in accept_set)
            if accept_set and not (elements and is_greedy):
                place = self._advance(configuration.place, accept_set)
                elements = self._step_elements(self._elements(place), byte)
                if elements:
                    after.add(Configuration(place, elements, False))
        return frozenset(after)

    def _step_elements(self, elements: frozenset[Element], byte: int) -> frozenset[Element]:
        stepped = (self.step_element(element, byte) for element in elements)
        return frozenset(element for element in stepped if element is not None)

    def is_accepting(self, state: State) -> bool:
        """May the text end here?"""
        for configuration in state:
            place = configuration.place
            if not configuration.is_fresh:
                place = self._advance(place, self._accept_set(configuration))
            if self._may_end(place):
                return True
        return False

    def accepts(self, data: bytes) -> bool:
        """Is ``data`` a whole text of the network?"""
        state = self.start
        for byte in data:
            state = self.step(state, byte)
        return self.is_accepting(state)

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
