"""Grammars whose indentation counts: rules between brackets, and what may stand where.

Between brackets, line breaks are ignored and nothing is indented. `between_brackets` says so in rules: what
stands between two brackets becomes a rule of its own, and each rule called from there gets a second version
without line breaks.

An indent is the width of a line and has no text, so it stands directly behind a newline, and a dedent behind a
newline, another dedent, or at the end of the text. `check_order` makes sure that the rules ask for nothing
else: then every text that the parser finds viable can be finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from constrain.grammars.errors import ConstrainError, SpecError, UnsupportedFeatureError
from constrain.grammars.ir import (
    Choice,
    Expression,
    Grammar,
    Indentation,
    Repetition,
    RuleReference,
    Sequence,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.tokenizer_index.transition_network import Rules

_NOTHING = Choice(())
_WIDEST_TAB = 1_000


def check_terminals(grammar: Grammar, indentation: Indentation) -> None:
    """Raise where the parts of ``indentation`` are no terminals, or stand for two things."""
    brackets = [t for pair in indentation.brackets for t in pair]
    named = [indentation.newline, indentation.indent, indentation.dedent]
    for t in (*named, *brackets):
        if not 0 <= t < len(grammar.terminals):
            raise SpecError(
                f"Indentation refers to terminal {t}, but there are {len(grammar.terminals)} terminals."
            )
    if len(set(named)) < 3 or not set(brackets).isdisjoint(named):
        raise SpecError("Newline, indent, dedent and brackets must be different terminals.")
    for t in named:
        if t in grammar.ignored.terminals:
            raise SpecError(f"Terminal {grammar.terminals[t].name!r} counts, so it cannot be ignored.")
    if not 1 <= indentation.tab <= _WIDEST_TAB:
        raise SpecError(
            f"Indentation(tab={indentation.tab!r:.40}): expected a number from 1 to {_WIDEST_TAB:,}."
        )
    if grammar.ignored.terminals and not grammar.ignored.trailing:
        raise UnsupportedFeatureError(
            "indentation",
            reason="needs ignored text that may also stand at the end",
            hint="Allow trailing ignored text.",
        )


# ------------------------------------------------------------------------------------ brackets


def between_brackets(grammar: Grammar, indentation: Indentation, watch: Watch) -> tuple[Grammar, set[str]]:
    """Return a grammar of the same texts whose brackets stand in rules of their own, and these rules' names.

    Raises
    ------
    UnsupportedFeatureError
        A bracket is not closed in the sequence that opens it.
    """
    return _Brackets(grammar, indentation, watch).grammar()


class _Brackets:
    def __init__(self, grammar: Grammar, indentation: Indentation, watch: Watch) -> None:
        self.source = grammar
        self.watch = watch
        self.opening = {opening for opening, _ in indentation.brackets}
        self.closing = {closing for _, closing in indentation.brackets}
        self.counting = {indentation.newline, indentation.indent, indentation.dedent}
        self.rules: dict[str, Expression] = {}
        self.pointers = dict(grammar.pointers)
        self.names = set(grammar.rules)
        self.inner: dict[str, str] = {}
        self.inside: set[str] = set()
        self.waiting: list[str] = []

    def grammar(self) -> tuple[Grammar, set[str]]:
        for name, body in self.source.rules.items():
            self.rules[name] = run(self.outside(body, name))
        while self.waiting:
            name = self.waiting.pop()
            # A rule that doesn't exist is reported by the reader of the rules, with the one that refers to it.
            if name in self.source.rules:
                self.rules[self.inner[name]] = run(self.between(self.source.rules[name]))
        return replace(self.source, rules=self.rules, pointers=self.pointers), self.inside

    def outside(self, body: Expression, rule: str) -> Task[Expression]:
        """Return ``body`` with its bracketed parts cut out."""
        self.watch.step(f"rule {rule!r}")
        match body:
            case TerminalReference(index):
                if index in self.opening or index in self.closing:
                    raise self.refused(index, rule)
                return body
            case Sequence():
                parts: list[Expression] = []
                bracketed: list[Expression] = []
                depth = 0
                for part in _flat(body):
                    index = part.index if isinstance(part, TerminalReference) else -1
                    depth += index in self.opening
                    if depth == 0:
                        parts.append((yield self.outside(part, rule)))
                        continue
                    bracketed.append((yield self.between(part)))
                    depth -= index in self.closing
                    if depth == 0:
                        parts.append(self.cut_out(bracketed, rule))
                        bracketed = []
                if depth > 0:
                    raise self.refused(next(iter(self.opening)), rule)
                return Sequence(tuple(parts))
            case Choice(choices):
                mapped = []
                for part in choices:
                    mapped.append((yield self.outside(part, rule)))
                return Choice(tuple(mapped))
            case Repetition(inner, minimum, maximum):
                return Repetition((yield self.outside(inner, rule)), minimum, maximum)
            case StateMachine():
                for edge in body.edges:
                    if isinstance(edge[1], TerminalReference):
                        yield self.outside(edge[1], rule)
        return body

    def between(self, body: Expression) -> Task[Expression]:
        """Return ``body`` as it reads between brackets."""
        match body:
            case TerminalReference(index):
                return _NOTHING if index in self.counting else body
            case RuleReference(name):
                return RuleReference(self.inner_name(name))
            case Sequence(parts) | Choice(parts):
                mapped = []
                for part in parts:
                    mapped.append((yield self.between(part)))
                return type(body)(tuple(mapped))
            case Repetition(inner, minimum, maximum):
                return Repetition((yield self.between(inner)), minimum, maximum)
            case StateMachine():
                edges = []
                actions: list[int] = []
                for i, (source, symbol, target) in enumerate(body.edges):
                    moved = None if symbol is None else (yield self.between(symbol))
                    if moved != _NOTHING:
                        edges.append((source, moved, target))
                        actions += body.actions[i : i + 1]
                return replace(body, edges=tuple(edges), actions=tuple(actions))
        return body

    def cut_out(self, parts: list[Expression], rule: str) -> Expression:
        name = self.new_name(f"{rule} (brackets)", rule)
        self.rules[name] = Sequence(tuple(parts))
        return RuleReference(name)

    def inner_name(self, name: str) -> str:
        """Return the name of the version of a rule between brackets."""
        if name not in self.inner:
            self.inner[name] = self.new_name(f"{name} (between brackets)", name)
            self.waiting.append(name)
        return self.inner[name]

    def new_name(self, name: str, origin: str) -> str:
        while name in self.names:
            name += "'"
        self.names.add(name)
        self.inside.add(name)
        if origin in self.source.pointers:
            self.pointers[name] = self.source.pointers[origin]
        return name

    def refused(self, terminal: int, rule: str) -> ConstrainError:
        return UnsupportedFeatureError(
            self.source.terminals[terminal].name,
            pointer=self.source.pointers.get(rule),
            reason=f"in rule {rule!r} must be closed in the sequence that opens it, since indentation counts",
            hint="Write both brackets into one alternative of the rule.",
        )


def _flat(body: Sequence) -> Iterable[Expression]:
    """Yield the parts of a sequence, and those of sequences in it."""
    stack: list[Expression] = list(reversed(body.parts))
    while stack:
        part = stack.pop()
        if isinstance(part, Sequence):
            stack.extend(reversed(part.parts))
        else:
            yield part


def inside_rules(rules: Rules, names: set[str]) -> list[bool]:
    """Return which rules of the network stand between brackets: ``names`` and all that they call."""
    inside = [name in names for name in rules.rule_names]
    tasks = [rule for rule, is_inside in enumerate(inside) if is_inside]
    called_by: dict[int, set[int]] = {}
    for d, rule in enumerate(rules.rule_of):
        called_by.setdefault(rule, set()).update(
            rules.rule_symbol[rules.rule_offsets[d] : rules.rule_offsets[d + 1]]
        )
    while tasks:
        for called in called_by[tasks.pop()]:
            if not inside[called]:
                inside[called] = True
                tasks.append(called)
    return inside


# ------------------------------------------------------------------------------------ order


def check_order(
    rules: Rules, indentation: Indentation, *, is_spanning: bool, pointers: Mapping[str, str]
) -> None:
    """Raise where the rules ask for indents, dedents or newlines that no text can have.

    Parameters
    ----------
    rules : Rules
    indentation : Indentation
    is_spanning : bool
        A newline directly behind another one is read as part of it.
    pointers : mapping of str to str
        Places of rules, for messages.

    Raises
    ------
    UnsupportedFeatureError
    """
    _Order(rules, indentation, pointers).check(is_spanning)


class _Order:
    def __init__(self, rules: Rules, indentation: Indentation, pointers: Mapping[str, str]) -> None:
        self.rules = rules
        self.newline, self.indent, self.dedent = indentation.newline, indentation.indent, indentation.dedent
        self.pointers = pointers
        self.terminals = [
            dict(zip(rules.terminal_symbol[a:b], rules.terminal_target[a:b], strict=True))
            for a, b in zip(rules.terminal_offsets, rules.terminal_offsets[1:], strict=False)
        ]
        self.calls = [
            list(zip(rules.rule_symbol[a:b], rules.rule_target[a:b], strict=True))
            for a, b in zip(rules.rule_offsets, rules.rule_offsets[1:], strict=False)
        ]
        self.returns: dict[int, list[int]] = {}
        for calls in self.calls:
            for rule, target in calls:
                self.returns.setdefault(rule, []).append(target)

    def check(self, is_spanning: bool) -> None:
        self.check_balance()
        other = self.is_text
        newline = self.reached(self.targets(lambda t: t == self.newline))
        indent = self.reached(self.targets(lambda t: t == self.indent))
        dedent = self.reached(self.targets(lambda t: t == self.dedent))
        text = self.reached(self.targets(other))
        start = self.reached({self.rules.rule_start[0]})
        for d, edges in enumerate(self.terminals):
            if self.indent in edges and (d not in newline or d in indent | dedent | text | start):
                raise self.refused(d, "an indent must stand directly behind a newline")
            if self.dedent in edges and d in indent | start:
                raise self.refused(d, "a dedent cannot stand directly behind an indent")
            if (
                is_spanning
                and self.newline in edges
                and d in newline | indent | dedent
                and not (self.rules.is_final[d] or self.calls[d] or any(map(other, edges)))
            ):
                raise self.refused(
                    d, "a newline behind another is read as part of it, so it must be optional"
                )
        self.check_ends(self.targets(other))

    def is_text(self, terminal: int) -> bool:
        return terminal not in (self.newline, self.indent, self.dedent)

    def targets(self, is_meant: Callable[[int], bool]) -> set[int]:
        return {d for edges in self.terminals for t, d in edges.items() if is_meant(t)}

    def reached(self, states: set[int]) -> set[int]:
        """Return where the parser may be without reading on: at the starts of rules, and behind their ends."""
        found, tasks = set(states), list(states)
        while tasks:
            d = tasks.pop()
            after = [self.rules.rule_start[rule] for rule, _ in self.calls[d]]
            if self.rules.is_final[d]:
                after += self.returns.get(self.rules.rule_of[d], [])
            for e in after:
                if e not in found:
                    found.add(e)
                    tasks.append(e)
        return found

    def check_balance(self) -> None:
        """Each rule closes the indents that it opens, and no others."""
        level: dict[int, int] = dict.fromkeys(self.rules.rule_start, 0)
        order = list(level)
        for d in order:  # grows while it is read
            steps = [(target, 0) for _, target in self.calls[d]]
            for t, target in self.terminals[d].items():
                steps.append((target, (t == self.indent) - (t == self.dedent)))
            if self.rules.is_final[d] and level[d] != 0:
                raise self.refused(d, "a rule must close the indents that it opens")
            for target, change in steps:
                if target not in level:
                    level[target] = level[d] + change
                    order.append(target)
                if level[target] != level[d] + change or level[target] < 0:
                    raise self.refused(d, "a rule must close the indents that it opens, and no others")

    def check_ends(self, behind_text: set[int]) -> None:
        """Where a dedent may follow text, because the text may end there, a newline may stand between them."""
        # What a rule may call last.
        last_calls: dict[int, list[int]] = {}
        for d, calls in enumerate(self.calls):
            for called, target in calls:
                if self.rules.is_final[target]:
                    last_calls.setdefault(self.rules.rule_of[d], []).append(called)
        # Rules directly behind which a dedent may stand.
        before_dedent: set[int] = set()
        tasks = [
            rule for rule, ds in self.returns.items() if any(self.dedent in self.terminals[d] for d in ds)
        ]
        while tasks:
            rule = tasks.pop()
            if rule in before_dedent:
                continue
            before_dedent.add(rule)
            tasks += last_calls.get(rule, ())
        seen: set[int] = set()
        waiting = list(behind_text)
        while waiting:
            d = waiting.pop()
            if d in seen:
                continue
            seen.add(d)
            after = self.terminals[d].get(self.newline)
            goes_on = after is not None and (
                self.rules.is_final[after] or self.dedent in self.terminals[after]
            )
            if self.dedent in self.terminals[d] and not goes_on:
                raise self.refused(
                    d, "a dedent must stand behind a newline, or where a newline may stand too"
                )
            if self.rules.is_final[d] and self.rules.rule_of[d] in before_dedent and not goes_on:
                waiting += self.returns.get(self.rules.rule_of[d], [])

    def refused(self, d: int, reason: str) -> ConstrainError:
        name = self.rules.rule_names[self.rules.rule_of[d]]
        return UnsupportedFeatureError(
            "indentation",
            pointer=self.pointers.get(name),
            reason=f"in rule {name!r}: {reason}",
            hint="Write blocks as: newline indent statements dedent, with statements that end in newlines.",
        )
