"""`ReferenceGrammar` for grammars whose indentation counts, by the rules of CPython's tokenizer.

Nothing here looks ahead: a newline lexeme may be read wherever the rules take a newline, whatever its width,
and is as long as can be. Its width is then held against a stack: wider than the top is an indent, narrower as
many dedents as levels end, and a width that is no level is an error, that is, a dead end, which the search for
completions finds. Brackets are counted as they are read.
"""

from __future__ import annotations

from typing import NamedTuple

from constrain.grammars import ir
from tests.reference import patterns
from tests.reference.grammar import DEAD, Kernel, Node, ReferenceGrammar, Residuals, State, _step_residuals

Stack = tuple[int, ...]


class Branch(NamedTuple):
    """See `tests.reference.grammar.Branch`; and the widths of open blocks, and how many brackets are open."""

    ignored: int | None
    kernel: Kernel
    stack: Stack
    depth: int


Place = frozenset[Branch]


class Configuration(NamedTuple):
    """See `tests.reference.grammar.Configuration`; ``tail`` is the width of the last line of the lexeme.

    It is ``None`` where that line holds more than blanks, or there was no line feed.
    """

    place: Place
    residuals: Residuals
    is_fresh: bool
    tail: int | None


class IndentedGrammar(ReferenceGrammar):
    """A grammar with `ir.Indentation`."""

    def __init__(self, grammar: ir.Grammar) -> None:
        assert grammar.indentation is not None
        self.indentation = grammar.indentation
        super().__init__(grammar)

    def _add(self, rule: str, body: ir.Expression, node: Node, n: int) -> tuple[Node, int]:
        marks = self.indentation.indent, self.indentation.dedent
        if isinstance(body, ir.TerminalReference) and body.index in marks:
            end, n = self._node(rule, n)
            self._edges[node].append((body.index, end))
            return end, n
        return super()._add(rule, body, node, n)

    def _ignored_terminals(self, branch: Branch) -> set[int]:
        inner = {self.indentation.newline} if branch.depth else set()
        return {*self.grammar.ignored.terminals, *inner}

    def _ignorable_here(self, branch: Branch) -> bool:
        ignored = self.grammar.ignored
        if branch.ignored is None:
            return ignored.leading and ignored.most != 0
        return ignored.most is None or branch.ignored < ignored.most

    def _may_stop(self, branch: Branch) -> bool:
        kernel = branch.kernel
        for _ in branch.stack[1:]:
            kernel = self._scan(kernel, frozenset({self.indentation.dedent}))
        return self._is_complete(kernel) and (not branch.ignored or self.grammar.ignored.trailing)

    def _compete(self, place: Place) -> Residuals:
        indices: set[int] = set()
        for branch in place:
            acceptable = set(self._terminals(branch.kernel))
            if branch.depth:
                acceptable.discard(self.indentation.newline)
            indices |= acceptable
            if self._ignorable_here(branch) and (acceptable or self._is_complete(branch.kernel)):
                indices |= self._ignored_terminals(branch)
        return frozenset((t, self.terms[t]) for t in indices)

    def _lines(self, branch: Branch, width: int | None) -> Branch | None:
        """Return the branch after a newline whose last line is ``width`` wide."""
        kernel, stack = self._scan(branch.kernel, frozenset({self.indentation.newline})), branch.stack
        if width is not None and width > stack[-1]:
            kernel, stack = self._scan(kernel, frozenset({self.indentation.indent})), (*stack, width)
        while width is not None and width < stack[-1]:
            kernel, stack = self._scan(kernel, frozenset({self.indentation.dedent})), stack[:-1]
        if not kernel or (width is not None and width != stack[-1]):
            return None
        return Branch(0, kernel, stack, 0)

    def _after(self, place: Place, accept_set: frozenset[int], tail: int | None) -> Place:
        after: dict[tuple[int, Stack, int], Kernel] = {}

        def add(branch: Branch | None) -> None:
            if branch is not None and branch.kernel:
                key = branch.ignored or 0, branch.stack, branch.depth
                after[key] = after.get(key, frozenset()) | branch.kernel

        opening = {first for first, _ in self.indentation.brackets}
        closing = {last for _, last in self.indentation.brackets}
        change = bool(accept_set & opening) - bool(accept_set & closing)
        newline = self.indentation.newline
        for branch in place:
            scanned = self._scan(branch.kernel, accept_set - {newline})
            add(Branch(0, scanned, branch.stack, branch.depth + change))
            if newline in accept_set and branch.depth == 0:
                add(self._lines(branch, tail))
            if self._ignorable_here(branch) and accept_set & self._ignored_terminals(branch):
                n = 1 if self.grammar.ignored.most is None else 1 + (branch.ignored or 0)
                add(branch._replace(ignored=n))
        return frozenset(Branch(n, kernel, stack, depth) for (n, stack, depth), kernel in after.items())

    def _accepted(self, configuration: Configuration) -> frozenset[int]:
        if configuration.is_fresh:
            return frozenset()
        special = {t for pair in self.indentation.brackets for t in pair}

        def rank(t: int) -> tuple[int, int]:
            measured = t == self.indentation.newline and configuration.tail is not None
            return self.grammar.terminals[t].priority, 2 * measured or t in special

        ending = {t for t, residual in configuration.residuals if patterns.is_nullable(residual)}
        best = max(map(rank, ending), default=(0, 0))
        return frozenset(t for t in ending if rank(t) == best)

    @property
    def start(self) -> State:
        if self.is_empty:
            return DEAD
        place = frozenset({Branch(None, frozenset({(("<root>", 0), None)}), (0,), 0)})
        return frozenset({Configuration(place, self._compete(place), True, None)})  # type: ignore[arg-type]

    def _step_configuration(self, configuration: Configuration, byte: int) -> set[Configuration]:  # type: ignore[override]
        after: set[Configuration] = set()
        residuals = _step_residuals(configuration.residuals, byte)
        if residuals:
            tail = self._tail(configuration.tail, byte)
            if all(t != self.indentation.newline for t, _ in residuals):
                tail = None
            after.add(Configuration(configuration.place, residuals, False, tail))
        accept_set = self._accepted(configuration)
        is_greedy = any(self.grammar.terminals[t].greedy or t == self.indentation.newline for t in accept_set)
        if accept_set and not (residuals and is_greedy):
            place = self._after(configuration.place, accept_set, configuration.tail)
            residuals = _step_residuals(self._compete(place), byte)
            if residuals:
                tail = (
                    0 if byte == 0x0A and any(t == self.indentation.newline for t, _ in residuals) else None
                )
                after.add(Configuration(place, residuals, False, tail))
        return after

    def _tail(self, tail: int | None, byte: int) -> int | None:
        if byte in b"\n" or (byte in b"\f" and tail is not None):
            return 0
        if tail is not None and byte in b" ":
            return tail + 1
        if tail is not None and byte in b"\t":
            return (tail // self.indentation.tab + 1) * self.indentation.tab
        return None

    def classes(self, state: State) -> list[int]:
        """Return the first byte of each class; the bytes that measure are told apart."""
        measuring = {cut for byte in b"\t\n\f " for cut in (byte, byte + 1)}
        return sorted({*super().classes(state), *measuring})

    def alike(self, state: State) -> State:
        """Return the state with widths replaced by their ranks: only their order decides how a text may go on."""
        widths = {c.tail for c in state if c.tail is not None}  # type: ignore[attr-defined]
        widths.update(width for c in state for branch in c.place for width in branch.stack)  # type: ignore[attr-defined]
        rank = {width: i for i, width in enumerate(sorted(widths))}
        return frozenset(
            c._replace(
                place=frozenset(
                    branch._replace(stack=tuple(rank[width] for width in branch.stack)) for branch in c.place
                ),
                tail=None if c.tail is None else rank[c.tail],  # type: ignore[attr-defined]
            )
            for c in state
        )

    def is_accepting(self, state: State) -> bool:
        for configuration in state:
            place: Place = configuration.place  # type: ignore[assignment]
            if not configuration.is_fresh:
                accept_set = self._accepted(configuration)  # type: ignore[arg-type]
                place = self._after(place, accept_set, configuration.tail) if accept_set else frozenset()  # type: ignore[attr-defined]
            if any(self._may_stop(branch) for branch in place):
                return True
        return False
