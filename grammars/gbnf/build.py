"""GBNF to a grammar: `gbnf_grammar`.

Every symbol of the notation stands for characters, and a text may be divided among symbols in any way, so a
part of a rule that refers to no recursive rule is a regular expression, and reading it as one terminal never
changes the language. The fewer and the larger the terminals, the faster the masks: so

- a rule that refers to itself only as its first, or only as its last symbol is a loop;
- rules that are then not recursive are read in place, unless copies of them would get too large;
- neighbours and alternatives that are regular become one terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Sequence as List
from itertools import groupby
from typing import NamedTuple, TypeAlias

from constrain.grammars import ir
from constrain.grammars.errors import EmptyLanguageError, SpecError
from constrain.grammars.gbnf.order import components
from constrain.grammars.gbnf.syntax import (
    Characters,
    Choice,
    Name,
    Repeat,
    Rule,
    Sequence,
    Text,
    Token,
    Tree,
    read_rules,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import alternate, character_class, concatenate, repeat

__all__ = ["gbnf_grammar", "looks_like_gbnf"]

_DEFINITION = re.compile(r"[A-Za-z_][\w.-]*[ \t]*::=")
# A rule is read in place where its copies together have no more positions than this, or each so few.
_COPIED_POSITIONS = 8_000
_FEW_POSITIONS = 8
_TOKEN_POSITIONS = 32
_SHOWN = 40
_SMALL_NODES = 64


class _Part(NamedTuple):
    """What a tree was found to be: a regular pattern, or an expression.

    Parameters
    ----------
    pattern : Pattern or None
    expression : Expression or None
        Where there is no pattern.
    shown : str
        For people.
    counted, unrolled : int
        Positions of the pattern, with repeats counted where that is cheaper, and all unrolled.
    """

    pattern: ir.Pattern | None
    expression: ir.Expression | None
    shown: str
    counted: int = 0
    unrolled: int = 0

    @classmethod
    def of(cls, expression: ir.Expression) -> _Part:
        """Return the part of an expression."""
        return cls(None, expression, "")


_EMPTY = _Part(ir.EMPTY_STRING, None, '""')


_Linear: TypeAlias = tuple[_Part | None, _Part | None]


def looks_like_gbnf(text: str) -> bool:
    """Is there a definition with ``::=`` before any other line that is neither blank nor a comment?"""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith(("#", "//")):
            return _DEFINITION.match(line) is not None
    return False


def gbnf_grammar(text: str, start: str | None = None, *, watch: Watch) -> ir.Grammar:
    """Return the grammar of a text in llama.cpp's notation, or in xgrammar's spelling of it.

    Parameters
    ----------
    text : str
    start : str or None
        Name of the start rule; ``None``: ``root``.
    watch : Watch

    Raises
    ------
    SpecError
        The text is malformed, or a rule is missing; with line, column and a caret.
    UnsupportedFeatureError
        It uses what cannot be enforced.
    EmptyLanguageError
        A rule can never end.
    LimitExceededError
        The grammar is too large.
    """
    rules = read_rules(text, watch)
    start = "root" if start is None else start
    if start not in rules:
        names = ", ".join(map(repr, list(rules)[:6])) + (", ..." if len(rules) > 6 else "")
        raise SpecError(
            f"The grammar has no rule {start!r}.",
            hint=f"Its rules are {names}." if rules else "It has no rules at all.",
        )
    return _Builder(text, rules, watch).build(start)


class _Builder:
    """Makes one grammar.

    Attributes
    ----------
    parts : dict of str to _Part
        What each rule that is not recursive stands for where it is referred to.
    """

    def __init__(self, source: str, rules: dict[str, Rule], watch: Watch) -> None:
        self.source = source
        self.read = rules
        self.watch = watch
        self.terminals: list[ir.Terminal] = []
        self.known: dict[ir.Pattern, int] = {}
        self.rules: dict[str, ir.Expression] = {}
        self.parts: dict[str, _Part] = {}
        self.uses: dict[str, list[str]] = {}
        self.n_uses = dict.fromkeys(rules, 0)
        for name, rule in rules.items():
            self.uses[name] = self.names_in(rule.body)

    def build(self, start: str) -> ir.Grammar:
        reached = {start}
        todo = [start]
        while todo:
            for name in self.uses[todo.pop()]:
                self.n_uses[name] += 1
                if name not in reached:
                    reached.add(name)
                    todo.append(name)
        for group in components(start, self.uses):
            self.watch.step("the grammar", len(group))
            first = group[0]
            if len(group) == 1 and first not in self.uses[first]:
                self.settle(first, run(self.part(self.read[first].body)))
            elif len(group) > 1 or not self.settle_loop(first):
                for name in group:
                    self.parts[name] = _Part.of(ir.RuleReference(name))
                for name in group:
                    self.rules[name] = self.expression(run(self.part(self.read[name].body)))
        if self.parts[start].pattern == ir.EMPTY_LANGUAGE:
            raise EmptyLanguageError(
                f"No text satisfies the grammar: rule {start!r} never ends.",
                source=self.source,
                offset=self.read[start].offset,
                hint="Add an alternative that does not lead back to it.",
            )
        if start not in self.rules:
            self.rules[start] = self.expression(self.parts[start])
        pointers = {name: name for name in self.rules}
        return ir.Grammar(tuple(self.terminals), self.rules, start, pointers=pointers)

    def names_in(self, body: Tree) -> list[str]:
        """Return the rules that ``body`` refers to, once for each reference."""
        found = []
        todo = [body]
        while todo:
            tree = todo.pop()
            if isinstance(tree, Name):
                if tree.name not in self.read:
                    raise SpecError(
                        f"Rule {tree.name!r} is not defined.", source=self.source, offset=tree.offset
                    )
                found.append(tree.name)
            elif isinstance(tree, Sequence | Choice):
                todo += reversed(tree.parts)
            elif isinstance(tree, Repeat):
                todo.append(tree.body)
            self.watch.step("the grammar")
        return found

    # -------------------------------------------------------------------------------- rules

    def settle(self, name: str, part: _Part) -> None:
        """Note what a rule that is not recursive stands for: itself in place, a terminal or a rule."""
        copies = self.n_uses[name]
        if part.expression is not None:
            if copies != 1:
                self.rules[name] = part.expression
                part = _Part.of(ir.RuleReference(name))
        else:
            part = part._replace(shown=name)
            if copies > 1 and part.counted > _FEW_POSITIONS and part.counted * copies > _COPIED_POSITIONS:
                part = _Part.of(self.expression(part))
        self.parts[name] = part

    def settle_loop(self, name: str) -> bool:
        """Note what a rule stands for that refers to itself as its first or its last symbol; else False."""
        body = self.read[name].body
        for last in (True, False):
            found = run(self.linear(body, name, last))
            if found is None:
                continue
            again, rest = found
            if rest is None:
                # It never ends, so no text is its own; that matters only where it is needed.
                self.settle(name, _Part(ir.EMPTY_LANGUAGE, None, name))
                return True
            if again is None:
                self.settle(name, rest)
                return True
            if again.pattern is not None and rest.pattern is not None:
                again = self.repeated(again, 0, None)
                self.settle(name, self.sequence((again, rest) if last else (rest, again)))
                return True
        return False

    def linear(self, tree: Tree, name: str, last: bool) -> Task[_Linear | None]:
        """Return (x, y) where ``tree`` is ``x name | y`` (with ``last``, else ``name x | y``), if it is."""
        self.watch.step("the grammar")
        if isinstance(tree, Name) and tree.name == name:
            return _EMPTY, None
        if name not in self.names_in(tree):
            return None, (yield self.part(tree))
        if isinstance(tree, Choice):
            again: list[_Part] = []
            rest: list[_Part] = []
            for part in tree.parts:
                found = yield self.linear(part, name, last)
                if found is None:
                    return None
                again += [found[0]] if found[0] is not None else []
                rest += [found[1]] if found[1] is not None else []
            return self.choice(again) if again else None, self.choice(rest) if rest else None
        if isinstance(tree, Sequence):
            end = tree.parts[-1] if last else tree.parts[0]
            others = tree.parts[:-1] if last else tree.parts[1:]
            if name in self.names_in(Sequence(tree.offset, others)):
                return None
            found = yield self.linear(end, name, last)
            if found is None:
                return None
            read = []
            for part in others:
                read.append((yield self.part(part)))
            both = [
                None if part is None else self.sequence([*read, part] if last else [part, *read])
                for part in found
            ]
            return both[0], both[1]
        if isinstance(tree, Repeat) and (tree.minimum, tree.maximum) == (0, 1):
            found = yield self.linear(tree.body, name, last)
            if found is None:
                return None
            return found[0], _EMPTY if found[1] is None else self.repeated(found[1], 0, 1)
        return None

    # -------------------------------------------------------------------------------- trees

    def part(self, tree: Tree) -> Task[_Part]:
        """Return what ``tree`` stands for."""
        self.watch.step("the grammar")
        if isinstance(tree, Text):
            data = tree.text.encode()
            return _Part(ir.Literal(data), None, _short(repr(tree.text)), len(data), len(data))
        if isinstance(tree, Characters):
            size = 1 if not tree.ranges or tree.ranges[-1][1] < 0x80 else 4
            shown = _short(self.source[tree.offset : tree.end])
            return _Part(character_class(tree.ranges), None, shown, size, size)
        if isinstance(tree, Token):
            shown = self.source[tree.offset : tree.end]
            return _Part(ir.SpecialToken(tree.name), None, _short(shown), _TOKEN_POSITIONS, _TOKEN_POSITIONS)
        if isinstance(tree, Name):
            return self.parts[tree.name]
        if isinstance(tree, Repeat):
            return self.repeated((yield self.part(tree.body)), tree.minimum, tree.maximum)
        parts = []
        for inner in tree.parts:
            parts.append((yield self.part(inner)))
        return self.choice(parts) if isinstance(tree, Choice) else self.sequence(parts)

    def repeated(self, part: _Part, minimum: int, maximum: int | None) -> _Part:
        """Return a part several times."""
        if part.pattern is None:
            assert part.expression is not None
            return _Part.of(ir.Repetition(part.expression, minimum, maximum))
        rounds = max(1, minimum if maximum is None else maximum)
        # Inside another counted repeat this one is unrolled.
        counted = part.counted if rounds == 1 else min(part.unrolled + 1, rounds * part.counted)
        pattern = repeat(part.pattern, minimum, maximum)
        return _Part(pattern, None, _short(f"{part.shown} ..."), counted, rounds * part.unrolled)

    def sequence(self, parts: Iterable[_Part]) -> _Part:
        """Return parts one after another; neighbours that are regular are joined."""
        found: list[_Part] = []
        for is_regular, neighbours in groupby(parts, lambda part: part.pattern is not None):
            same = list(neighbours)
            found += [_joined(same, concatenate, " ")] if is_regular else same
        if not found:
            return _EMPTY
        return found[0] if len(found) == 1 else _Part.of(ir.Sequence(tuple(map(self.expression, found))))

    def choice(self, parts: Iterable[_Part]) -> _Part:
        """Return any one of the parts; those that are regular are joined."""
        found: list[_Part] = []
        regular: list[_Part] = []
        for part in parts:
            (found if part.pattern is None else regular).append(part)
        if regular:
            found.append(_joined(regular, alternate, " | "))
        return found[0] if len(found) == 1 else _Part.of(ir.Choice(tuple(map(self.expression, found))))

    def expression(self, part: _Part) -> ir.Expression:
        """Return what a part is among rules: its terminal, if it is regular."""
        if part.expression is not None:
            return part.expression
        pattern = part.pattern
        assert pattern is not None
        if pattern == ir.EMPTY_STRING:
            return ir.Sequence(())
        # Equal terminals would all be read side by side; large ones take too long to compare.
        key = pattern if _is_small(pattern) else None
        index = None if key is None else self.known.get(key)
        if index is None:
            index = len(self.terminals)
            self.terminals.append(ir.Terminal(pattern, part.shown))
            if key is not None:
                self.known[key] = index
        return ir.TerminalReference(index)


def _joined(parts: List[_Part], join: Callable[[Iterable[ir.Pattern]], ir.Pattern], between: str) -> _Part:
    """Return regular parts as one."""
    if len(parts) == 1:
        return parts[0]
    return _Part(
        join(part.pattern for part in parts if part.pattern is not None),
        None,
        _short(between.join([part.shown for part in parts[:_SHOWN]])),
        sum(part.counted for part in parts),
        sum(part.unrolled for part in parts),
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _is_small(pattern: ir.Pattern) -> bool:
    """Has the pattern so few nodes that it can be hashed without deep recursion?"""
    left = _SMALL_NODES
    todo = [pattern]
    while todo and left > 0:
        node = todo.pop()
        left -= 1
        if isinstance(node, ir.Concatenation | ir.Alternation):
            left -= len(node.parts)
            todo += node.parts[: max(left, 0)]
        elif isinstance(node, ir.Repeat):
            todo.append(node.body)
    return left > 0
