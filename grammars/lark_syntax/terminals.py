"""Terminals of a grammar text as patterns.

A terminal's body is put together as one regular expression, as Lark does: lookaround in one part sees the
others, and a lazy repeat gives way to what comes after it in the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.ir import ANY_TEXT, EMPTY_LANGUAGE, Complement, Pattern
from constrain.grammars.lark_syntax.definitions import Body, Definitions, Entry
from constrain.grammars.lark_syntax.edges import Edges, split
from constrain.grammars.lark_syntax.literals import Literal, literal, literal_tree, range_tree
from constrain.grammars.lark_syntax.substring import substring
from constrain.grammars.lark_syntax.tree import (
    Choice,
    Conjunction,
    Module,
    Negation,
    Nested,
    Node,
    Quoted,
    Range,
    Repeat,
    Sequence,
    Special,
    Symbol,
    Usage,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import intersect, is_nullable
from constrain.grammars.regex.lazy import eager
from constrain.grammars.regex.lookaround import lower
from constrain.grammars.regex.nodes import Tree, choice, loop, sequence


@dataclass(frozen=True, slots=True, eq=False)
class Lexeme:
    """A terminal that was read.

    Parameters
    ----------
    pattern : Pattern
    edges : Edges
        What it asks of the text around it.
    module, offset
        Where it is from.
    """

    pattern: Pattern
    edges: Edges
    module: Module
    offset: int


class TerminalReader:
    """Reads the terminals of one grammar.

    Parameters
    ----------
    definitions : Definitions
    watch : Watch
    """

    def __init__(self, definitions: Definitions, watch: Watch) -> None:
        self.definitions = definitions
        self.watch = watch
        self.trees: dict[str, Tree] = {}
        self.sizes: dict[str, int] = {}
        self.open: list[str] = []

    def pattern(self, node: Node, body: Body, name: str) -> Lexeme:
        """Return a body, or one literal in a rule, as a terminal.

        Raises
        ------
        SpecError
            It is malformed, or matches the empty text.
        UnsupportedFeatureError
            It is not regular, or looks at what is around it.
        """
        return self.lexeme(run(self.tree(node, body)), body.module, node.offset, name)

    def entry_pattern(self, entry: Entry) -> Lexeme:
        """Return a terminal that is defined."""
        tree = run(self.entry_tree(entry, entry.module, entry.offset))
        return self.lexeme(tree, entry.module, entry.offset, entry.name)

    def lexeme(self, tree: Tree, module: Module, offset: int, name: str) -> Lexeme:
        """Return the terminal of a tree."""
        try:
            inner, edges = split(eager(tree))
        except UnsupportedFeatureError as error:
            raise module.unsupported(error.feature, offset, error.reason, error.hint or "") from error
        found = self.lowered(inner, module, offset)
        if is_nullable(found):
            raise module.error(
                f"The terminal {name} matches the empty text.",
                offset,
                "Make it match at least one character, and optional where it is used.",
            )
        return Lexeme(found, edges, module, offset)

    def lowered(self, tree: Tree, module: Module, offset: int) -> Pattern:
        """Return the pattern of a tree as a text of its own."""
        try:
            return lower(tree, module.text, self.watch)
        except UnsupportedFeatureError as error:
            raise module.unsupported(error.feature, offset, error.reason, error.hint or "") from error
        except LimitExceededError:
            raise
        except SpecError as error:
            raise module.error(error.message, offset, error.hint) from error

    # -------------------------------------------------------------------------------- trees

    def entry_tree(self, entry: Entry, module: Module, offset: int) -> Task[Tree]:
        """Return the tree of a terminal, referred to at ``offset``."""
        name = entry.name
        if name in self.trees:
            return self.trees[name]
        if name in self.open:
            circle = " uses ".join([*self.open[self.open.index(name) :], name])
            raise module.error(
                f"Terminals cannot be recursive: {circle}.", offset, "Make them rules, in lower case."
            )
        if not entry.bodies:
            raise module.error(
                f"The terminal {name!r} is only declared, so nothing says what it is.",
                offset,
                "Pass it with embed=; for indents and dedents, pass indentation=.",
            )
        self.open.append(name)
        self.watch.at_most("nesting", len(self.open), f"terminal {name!r}")
        size = 0
        parts: list[Tree] = []
        for body in entry.bodies:
            if isinstance(body.node, Sequence) and not body.node.parts:
                raise body.module.error(f"The terminal {name!r} is empty.", entry.offset)
            parts.append((yield self.tree(body.node, body)))
            size += self.size(body)
        self.open.pop()
        self.sizes[name] = size
        self.watch.at_most("positions", size, f"terminal {name!r}")
        self.trees[name] = found = choice(parts)
        return found

    def size(self, body: Body) -> int:
        """Return how many parts a body has once the terminals in it are written out."""
        total = 0
        todo: list[Node] = [body.node]
        while todo:
            match todo.pop():
                case Symbol(name):
                    total += self.sizes[body.rename(name)]
                case Choice(parts) | Sequence(parts) | Conjunction(parts):
                    total += len(parts)
                    todo += parts
                case Repeat(inner) | Negation(inner):
                    todo.append(inner)
                case _:
                    total += 1
        return total

    def leaf(self, node: Node, body: Body) -> Tree | None:
        """Return the tree of a string, an expression or a terminal that was read, as most nodes are one of them."""
        if isinstance(node, Quoted):
            self.watch.step("a terminal")
            return literal_tree(literal(node, body.module), body.module, self.watch)
        return self.trees.get(body.rename(node.name)) if isinstance(node, Symbol) else None

    def tree(self, node: Node, body: Body) -> Task[Tree]:
        """Return the tree of ``node``."""
        module = body.module
        self.watch.step("a terminal")
        parts: list[Tree] = []
        match node:
            case Symbol(name, offset):
                if not node.is_terminal:
                    raise module.error(
                        f"The rule {name!r} cannot stand in a terminal.",
                        offset,
                        "Write it as a terminal, in upper case.",
                    )
                entry = self.definitions.entries.get(body.rename(name))
                if entry is None:
                    raise module.error(
                        f"{name!r} is given from outside and cannot be part of a terminal.", offset
                    )
                found: Tree = yield self.entry_tree(entry, module, offset)
                return found
            case Quoted():
                return literal_tree(literal(node, module), module, self.watch)
            case Range():
                return range_tree(node, module)
            case Nested("%regex", value, offset):
                return substring(value, module, offset)
            case Sequence(items):
                for item in items:
                    parts.append(self.leaf(item, body) or (yield self.tree(item, body)))
                return sequence(parts)
            case Choice(items, aliases):
                if aliases:
                    raise module.error("'->' has no meaning in a terminal.", aliases[0])
                for item in items:
                    parts.append(self.leaf(item, body) or (yield self.tree(item, body)))
                return choice(parts)
            case Repeat(inner, minimum, maximum):
                known = self.leaf(inner, body) or (yield self.tree(inner, body))
                return loop(known, minimum, maximum)
            case Negation(inner, offset):
                negated = self.lowered((yield self.tree(inner, body)), module, offset)
                return intersect((ANY_TEXT, Complement(negated)))
            case Conjunction(items, offset):
                operands = []
                for item in items:
                    operands.append(self.lowered((yield self.tree(item, body)), module, offset))
                return intersect(operands) if operands else EMPTY_LANGUAGE
        self.refuse(node, module)

    def refuse(self, node: Node, module: Module) -> NoReturn:
        """Refuse what can't stand in a terminal."""
        what = {Usage: "A template", Special: "A special token", Nested: "A nested grammar"}[type(node)]
        raise module.error(f"{what} cannot stand in a terminal.", node.offset, "Write a rule, in lower case.")


def single_literal(entry: Entry) -> Literal | None:
    """Return the literal that a terminal is, if it is one alone."""
    if len(entry.bodies) == 1:
        body = entry.bodies[0]
        if isinstance(body.node, Quoted):
            return literal(body.node, body.module)
    return None
