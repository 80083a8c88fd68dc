"""Grammars side by side in one, with what they have in common written once.

Hundreds of schemas' grammars have the same terminals, the same rules for arbitrary JSON values, and the same
ignored text. Equal terminals become one; so do rules that are the same objects and lead to the same terminals and
rules; and ignored text is written into the rules of all grammars at once (`combine.without_ignored_from`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from constrain.grammars import ir
from constrain.grammars.combine import mapped_symbols, without_ignored_from
from constrain.grammars.recursion import run


@dataclass(frozen=True, slots=True)
class _Known:
    """A rule that was taken over, and what its symbols were there."""

    name: str
    body: ir.Expression
    terminals: Mapping[int, int]
    rules: Mapping[str, str]


class Joined:
    """Grammars that ignore the same text.

    Parameters
    ----------
    first : Grammar
        Any of them; it is not added.
    """

    def __init__(self, first: ir.Grammar) -> None:
        self._terminals: list[ir.Terminal] = []
        self._index: dict[tuple[int, str, int, bool, str | None], int] = {}
        self._rules: dict[str, ir.Expression] = {}
        self._pointers: dict[str, str] = {}
        self._known: dict[int, _Known] = {}
        self._starts: list[str] = []
        self._ignored = ir.Ignored(
            tuple(self._terminal(first.terminals[t]) for t in first.ignored.terminals),
            first.ignored.leading,
            first.ignored.trailing,
            first.ignored.most,
        )

    @staticmethod
    def policy(grammar: ir.Grammar) -> object:
        """Return what grammars have in common that can be joined."""
        ignored = grammar.ignored
        texts = tuple(_identity(grammar.terminals[t]) for t in ignored.terminals)
        return texts, ignored.leading, ignored.trailing, ignored.most

    def add(self, grammar: ir.Grammar) -> str:
        """Add a grammar; return the name that its start rule has in `grammar`."""
        terminals = {i: self._terminal(terminal) for i, terminal in enumerate(grammar.terminals)}
        shared = self._shared(grammar, terminals)
        number = len(self._starts)
        names = {name: shared.get(name) or f"{name} {number}" for name in grammar.rules}
        for name, body in grammar.rules.items():
            if name in shared:
                continue
            new_name = names[name]
            self._rules[new_name] = run(
                mapped_symbols(body, lambda t: ir.TerminalReference(terminals[t]), names.__getitem__)
            )
            if name in grammar.pointers:
                self._pointers[new_name] = grammar.pointers[name]
            self._known[id(body)] = _Known(new_name, body, terminals, names)
        self._starts.append(names[grammar.start])
        return names[grammar.start]

    def grammar(self) -> tuple[ir.Grammar, Mapping[str, str]]:
        """Return one grammar without ignored text, and its start rules by the names that `add` gave."""
        joined = ir.Grammar(
            tuple(self._terminals), self._rules, self._starts[0], self._ignored, self._pointers
        )
        return without_ignored_from(joined, dict.fromkeys(self._starts))

    def _terminal(self, terminal: ir.Terminal) -> int:
        found = self._index.setdefault(_identity(terminal), len(self._terminals))
        if found == len(self._terminals):
            self._terminals.append(terminal)
        return found

    def _shared(self, grammar: ir.Grammar, terminals: Mapping[int, int]) -> dict[str, str]:
        """Return the rules that are there already, by name: those that lead to the same symbols as there."""
        found = {name: known for name, body in grammar.rules.items() if (known := self._known.get(id(body)))}
        used: dict[str, list[str]] = {}
        todo: list[str] = []
        for name, known in found.items():
            symbols = _symbols(known.body)
            for symbol in symbols:
                if isinstance(symbol, int):
                    is_same = known.terminals[symbol] == terminals[symbol]
                else:
                    used.setdefault(symbol, []).append(name)
                    is_same = symbol in found and found[symbol].name == known.rules[symbol]
                if not is_same:
                    todo.append(name)
                    break
        while todo:
            name = todo.pop()
            if found.pop(name, None) is not None:
                todo += used.get(name, ())
        return {name: known.name for name, known in found.items()}


def _identity(terminal: ir.Terminal) -> tuple[int, str, int, bool, str | None]:
    return id(terminal.pattern), terminal.name, terminal.priority, terminal.greedy, terminal.pointer


def _symbols(body: ir.Expression) -> set[int | str]:
    """Return the terminals and rules that ``body`` refers to."""
    found: set[int | str] = set()

    def terminal(index: int) -> ir.Expression:
        found.add(index)
        return ir.TerminalReference(index)

    def rule(name: str) -> str:
        found.add(name)
        return name

    run(mapped_symbols(body, terminal, rule))
    return found
