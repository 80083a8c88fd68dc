"""Unions and concatenations of grammars, and grammars in the place of terminals.

Each part keeps its own ignored text. Where a grammar's policy cannot stand for the whole, it is
written into the rules: every lexeme but the first is preceded by the ignored text that may stand there.
For that each rule gets two versions, one for when lexemes came before it (*inner*) and one for when it
brings the first lexeme (*first*); the empty text is dealt with apart.

Priorities and greedy terminals work across parts that are alive at the same place. In `union` such parts are read
apart (`ir.Grammar.is_apart`), in `concatenation` that is refused, in `embed` it is as in one grammar (the front end
refuses to embed what is read apart).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    ByteClass,
    Choice,
    Expression,
    Grammar,
    Ignored,
    Intersection,
    Repeat,
    Repetition,
    RuleReference,
    Sequence,
    StateMachine,
    TerminalReference,
)
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import is_nullable
from constrain.grammars.separate import check_concatenation, is_lexed, leveled, leveled_pair, meet

_NOTHING = Sequence(())
_NEVER = Choice(())
_SOME_BYTES = Repeat(ByteClass(((0, 255),)), 1, None)


def union(first: Grammar, second: Grammar, watch: Watch | None = None) -> Grammar:
    """Return the grammar of the texts of either grammar.

    Raises
    ------
    UnsupportedFeatureError
        Indentation counts in one of them.
    """
    _refuse_indentation(first, second)
    if first.is_apart or second.is_apart or meet(first, second, watch or Watch(Limits())):
        return _apart(first, second)
    first, second = leveled_pair(first, second)
    shared = _shared_policy(first, second)
    if shared is None:
        first, second = without_ignored(first), without_ignored(second)
    return _join(first, second, Choice, shared)


def concatenation(first: Grammar, second: Grammar, watch: Watch | None = None) -> Grammar:
    """Return the grammar of the texts of ``first`` followed by texts of ``second``.

    Raises
    ------
    UnsupportedFeatureError
        Lexemes of one might take texts of the other; see `separate`.
    """
    _refuse_indentation(first, second)
    watch = watch or Watch(Limits())
    found: Grammar | None = None
    for one in _alternatives(first):
        for other in _alternatives(second):
            check_concatenation(one, other, watch)
            pair = leveled_pair(without_ignored(one), without_ignored(other))
            joined = _join(*pair, Sequence, None)
            found = joined if found is None else _apart(found, joined)
    assert found is not None  # a grammar has an alternative
    return found


def _alternatives(grammar: Grammar) -> list[Grammar]:
    """Return the grammars of the alternatives that are read apart."""
    if not grammar.is_apart:
        return [grammar]
    return [replace(grammar, start=part.name, is_apart=False) for part in grammar.alternatives]


def _apart(first: Grammar, second: Grammar) -> Grammar:
    """Return the grammar of both in which neither is read by the lexemes of the other."""
    shared = first if _policy(first) == _policy(second) else None
    if shared is None:
        first, second = without_ignored(first), without_ignored(second)
    joined = _join(first, second, Choice, shared)
    # The start of the second has another name there.
    name_of = dict(zip(second.rules, list(joined.rules)[1 + len(first.rules) :], strict=True))
    parts = (*first.alternatives, *(RuleReference(name_of[part.name]) for part in second.alternatives))
    return replace(joined, rules={**joined.rules, joined.start: Choice(parts)}, is_apart=True)


def embed(host: Grammar, inner: Mapping[int, Grammar]) -> Grammar:
    """Return ``host`` with grammars in the place of terminals; what each ignores stays its own.

    Parameters
    ----------
    host : Grammar
    inner : mapping of int to Grammar
        By the terminal that each takes the place of. Of that terminal's pattern only counts whether it matches
        the empty text, which must be so if the grammar does.
    """
    if not inner:
        return host
    _refuse_indentation(host, *inner.values())
    found = without_ignored(host)
    starts: dict[int, str] = {}
    rules = dict(found.rules)
    terminals = list(found.terminals)
    pointers = dict(found.pointers)
    names = set(rules)
    for t, grammar in inner.items():
        part = without_ignored(leveled(grammar) if is_lexed(host) else grammar)
        n = len(terminals)
        new_names = {name: _fresh(name, names) for name in part.rules}
        for name, body in part.rules.items():
            rules[new_names[name]] = run(
                mapped_symbols(body, lambda i, n=n: TerminalReference(i + n), new_names.__getitem__)  # type: ignore[misc]
            )
        terminals += part.terminals
        pointers.update({new_names[name]: p for name, p in part.pointers.items() if name in new_names})
        starts[t] = new_names[part.start]

    def terminal(index: int) -> Expression:
        name = starts.get(index)
        return TerminalReference(index) if name is None else RuleReference(name)

    for name in found.rules:
        rules[name] = run(mapped_symbols(rules[name], terminal, str))
    return Grammar(tuple(terminals), rules, found.start, Ignored(), pointers)


def derives_empty(grammar: Grammar) -> bool:
    """Is the empty text a member, as far as rules and patterns tell?"""
    return grammar.start in _Rewriting(grammar).empty_rules


def _refuse_indentation(*grammars: Grammar) -> None:
    """Refuse what concerns the text as a whole."""
    if any(grammar.indentation is not None for grammar in grammars):
        raise UnsupportedFeatureError(
            "indentation",
            reason="counts for a whole text, so its grammar cannot be part of another",
            hint="Compile it by itself.",
        )


def _shared_policy(first: Grammar, second: Grammar) -> Grammar | None:
    """Return the grammar whose policy serves both, if there is one."""
    if _policy(first) == _policy(second):
        return first
    for one, other in ((first, second), (second, first)):
        # A text of one lexeme has no place between lexemes.
        policy = one.ignored
        if (
            not other.ignored.terminals
            and isinstance(other.rules[other.start], TerminalReference)
            and not policy.leading
            and not policy.trailing
        ):
            return one
    return None


def _policy(grammar: Grammar) -> object:
    ignored = grammar.ignored
    terminals = [grammar.terminals[t] for t in ignored.terminals]
    marks = ignored.leading, ignored.trailing, ignored.most
    return [(t.pattern, t.priority, t.greedy) for t in terminals], bool(terminals) and marks


def _join(
    first: Grammar,
    second: Grammar,
    combine: Callable[[tuple[Expression, ...]], Expression],
    policy: Grammar | None,
) -> Grammar:
    """Return a grammar of both, whose start combines their starts; ``policy`` has the ignored text."""
    n = len(first.terminals)
    names = set(first.rules)
    new_names: dict[str, str] = {}
    for name in second.rules:
        new_names[name] = _fresh(name, names)
    renamed = {
        new_names[name]: run(mapped_symbols(body, lambda t: TerminalReference(t + n), new_names.__getitem__))
        for name, body in second.rules.items()
    }
    start = _fresh("start", names)
    body = combine((RuleReference(first.start), RuleReference(new_names[second.start])))
    ignored = Ignored()
    if policy is not None and policy.ignored.terminals:
        offset = 0 if policy is first else n
        ignored = replace(policy.ignored, terminals=tuple(t + offset for t in policy.ignored.terminals))
    pointers = {
        **first.pointers,
        **{new_names[name]: p for name, p in second.pointers.items() if name in new_names},
    }
    return Grammar(
        (*first.terminals, *second.terminals),
        {start: body, **first.rules, **renamed},
        start,
        ignored,
        pointers,
    )


def mapped_symbols(
    body: Expression, terminal: Callable[[int], Expression], rule: Callable[[str], str]
) -> Task[Expression]:
    """Return ``body`` with its references replaced."""
    match body:
        case TerminalReference(index):
            return terminal(index)
        case RuleReference(name):
            return RuleReference(rule(name))
        case Sequence(parts) | Choice(parts):
            mapped = []
            for part in parts:
                mapped.append((yield mapped_symbols(part, terminal, rule)))
            return type(body)(tuple(mapped))
        case Repetition(inner, minimum, maximum):
            return Repetition((yield mapped_symbols(inner, terminal, rule)), minimum, maximum)
        case StateMachine():
            edges: list[tuple[int, TerminalReference | RuleReference | None, int]] = []
            for source, symbol, target in body.edges:
                if isinstance(symbol, TerminalReference):
                    edges.append((source, terminal(symbol.index), target))  # type: ignore[arg-type]
                elif symbol is None:
                    edges.append((source, None, target))
                else:
                    edges.append((source, RuleReference(rule(symbol.name)), target))
            distinct = frozenset(_moved(terminal, index) for index in body.distinct)
            return replace(body, edges=tuple(edges), distinct=distinct)
    raise TypeError(f"no expression: {body!r}")


# ------------------------------------------------------------------------------------ ignored text


def without_ignored(grammar: Grammar) -> Grammar:
    """Return a grammar of the same texts that ignores nothing."""
    if not grammar.is_apart or not grammar.ignored.terminals:
        found, starts = without_ignored_from(grammar, (grammar.start,))
        return replace(found, start=starts[grammar.start])
    # Parts that are read apart stay alternatives of the start rule.
    parts = [part.name for part in grammar.alternatives]
    found, starts = without_ignored_from(grammar, parts)
    start = _fresh("start", set(found.rules))
    rules = {**found.rules, start: Choice(tuple(RuleReference(starts[part]) for part in parts))}
    return replace(found, rules=rules, start=start, is_apart=True)


def without_ignored_from(grammar: Grammar, starts: Iterable[str]) -> tuple[Grammar, Mapping[str, str]]:
    """Return a grammar that ignores nothing, and its rules for the texts of several start rules of ``grammar``."""
    if not grammar.ignored.terminals:
        found = grammar if grammar.ignored == Ignored() else replace(grammar, ignored=Ignored())
        return found, {name: name for name in starts}
    rewriting = _Rewriting(grammar)
    names = {name: rewriting.add_text(name) for name in starts}
    return rewriting.grammar(next(iter(names.values()))), names


class _Rewriting:
    """One run of `without_ignored`. Versions of rules are made where others need them.

    Attributes
    ----------
    empty_rules : set of str
        Rules that derive the empty text.
    """

    def __init__(self, source: Grammar) -> None:
        self.source = source
        self.names = set(source.rules)
        self.rules: dict[str, Expression] = {}
        self.pointers = dict(source.pointers)
        self.first_names: dict[str, str] = {}
        self.inner_names: dict[str, str] = {}
        self.lexeme_names: dict[int, str] = {}
        self.terminals = list(source.terminals)
        self.empty_terminals = {i for i, t in enumerate(source.terminals) if is_nullable(t.pattern)}
        for index in self.empty_terminals:
            terminal = self.terminals[index]
            parts = (
                terminal.pattern.parts if isinstance(terminal.pattern, Intersection) else (terminal.pattern,)
            )
            pattern = Intersection((*parts, _SOME_BYTES))
            self.terminals[index] = replace(terminal, pattern=pattern)
        self.empty_rules: set[str] = set()
        self.find_empty_rules()
        ignored = source.ignored
        for index in ignored.terminals:
            self.terminals[index] = replace(self.terminals[index], is_blank=True)
        blank = Choice(tuple(TerminalReference(t) for t in ignored.terminals))
        gap = _fresh("blanks", self.names)
        self.gap = RuleReference(gap)
        self.rules[gap] = Repetition(blank, 0, ignored.most)
        self._todo: list[tuple[str, str, bool]] = []

    def add_text(self, start: str) -> str:
        """Return the name of a rule for the whole texts of a rule."""
        ignored = self.source.ignored
        if not ignored.leading and not ignored.trailing and start not in self.empty_rules:
            return self.first_name(start)
        text: Expression = RuleReference(self.first_name(start))
        parts = ([self.gap] if ignored.leading else []) + [text] + ([self.gap] if ignored.trailing else [])
        text = Sequence(tuple(parts))
        if start in self.empty_rules:
            # Without any lexeme, ignored text is before the first and after the last one at once.
            alone = self.gap if ignored.leading and ignored.trailing else _NOTHING
            text = Choice((text, alone))
        name = _fresh("start", self.names)
        self.rules[name] = text
        return name

    def grammar(self, start: str) -> Grammar:
        """Return the rewritten grammar."""
        while self._todo:
            name, new_name, is_first = self._todo.pop()
            body = self.source.rules[name]
            self.rules[new_name] = run(self.first(body) if is_first else self.inner(body))
            if name in self.source.pointers:
                self.pointers[new_name] = self.source.pointers[name]
        return Grammar(tuple(self.terminals), self.rules, start, Ignored(), self.pointers)

    def first_name(self, name: str) -> str:
        """Return the name of a rule where it brings the first lexeme."""
        return self._version(self.first_names, name)

    def inner_name(self, name: str) -> str:
        """Return the name of a rule after some lexeme."""
        return self._version(self.inner_names, name)

    def _version(self, versions: dict[str, str], name: str) -> str:
        found = versions.get(name)
        if found is None:
            found = versions[name] = _fresh(name, self.names)
            self._todo.append((name, found, versions is self.first_names))
        return found

    # -------------------------------------------------------------------------------- emptiness

    def find_empty_rules(self) -> None:
        """Fill ``empty_rules``, by a fixpoint."""
        users: dict[str, list[str]] = {}
        for name, body in self.source.rules.items():
            for used in run(_rules_in(body)):
                users.setdefault(used, []).append(name)
        todo = list(self.source.rules)
        while todo:
            name = todo.pop()
            if name not in self.empty_rules and run(self.is_empty(self.source.rules[name])):
                self.empty_rules.add(name)
                todo += users.get(name, ())

    def is_empty(self, body: Expression) -> Task[bool]:
        """Does ``body`` derive the empty text, as far as known?"""
        match body:
            case TerminalReference() | RuleReference():
                return self.is_empty_symbol(body)
            case Sequence(parts):
                for part in parts:
                    if not (yield self.is_empty(part)):
                        return False
                return True
            case Choice(parts):
                for part in parts:
                    if (yield self.is_empty(part)):
                        return True
                return False
            case Repetition(inner, minimum):
                return minimum == 0 or (yield self.is_empty(inner))
            case StateMachine():
                return bool(self.empty_closure(body) & body.accepting)
        raise TypeError(f"no expression: {body!r}")

    def is_empty_symbol(self, symbol: TerminalReference | RuleReference) -> bool:
        """Does a symbol derive the empty text, as far as known?"""
        if isinstance(symbol, TerminalReference):
            return symbol.index in self.empty_terminals
        return symbol.name in self.empty_rules

    def empty_closure(self, machine: StateMachine) -> frozenset[int]:
        """Return the states that can be reached without reading anything."""
        passed: dict[int, list[int]] = {}
        for source, symbol, target in machine.edges:
            if symbol is None or self.is_empty_symbol(symbol):
                passed.setdefault(source, []).append(target)
        seen = {machine.start}
        todo = [machine.start]
        while todo:
            for target in passed.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return frozenset(seen)

    # -------------------------------------------------------------------------------- versions

    def inner_terminal(self, index: int) -> RuleReference:
        """Return a lexeme with the ignored text before it, as one rule."""
        name = self.lexeme_names.get(index)
        if name is not None:
            return RuleReference(name)
        name = self.lexeme_names[index] = _fresh(f"blanks and {index}", self.names)
        lexeme: Expression = Sequence((self.gap, TerminalReference(index)))
        if index in self.empty_terminals:
            lexeme = Choice((lexeme, _NOTHING))
        self.rules[name] = lexeme
        return RuleReference(name)

    def inner(self, body: Expression) -> Task[Expression]:
        """Return ``body`` for a place after some lexeme."""
        return mapped_symbols(body, self.inner_terminal, self.inner_name)

    def inner_symbol(self, symbol: TerminalReference | RuleReference) -> RuleReference:
        """Return a symbol for a place after some lexeme."""
        if isinstance(symbol, TerminalReference):
            return self.inner_terminal(symbol.index)
        return RuleReference(self.inner_name(symbol.name))

    def first_symbol(self, symbol: TerminalReference | RuleReference) -> TerminalReference | RuleReference:
        """Return a symbol where it brings the first lexeme."""
        if isinstance(symbol, TerminalReference):
            return symbol
        return RuleReference(self.first_name(symbol.name))

    def first(self, body: Expression) -> Task[Expression]:
        """Return ``body`` where it brings the first lexeme: never empty."""
        match body:
            case TerminalReference() | RuleReference():
                return self.first_symbol(body)
            case Sequence(parts):
                rest = []
                for part in parts[1:]:
                    rest.append((yield self.inner(part)))
                found: list[Expression] = []
                for index, part in enumerate(parts):
                    found.append(Sequence(((yield self.first(part)), *rest[index:])))
                    if not (yield self.is_empty(part)):
                        break
                return Choice(tuple(found)) if found else _NEVER
            case Choice(parts):
                found = []
                for part in parts:
                    found.append((yield self.first(part)))
                return Choice(tuple(found))
            case Repetition(inner, minimum, maximum):
                if maximum == 0:
                    return _NEVER
                head = yield self.first(inner)
                tail = yield self.inner(inner)
                least = 0 if (yield self.is_empty(inner)) else max(minimum - 1, 0)
                return Sequence((head, Repetition(tail, least, None if maximum is None else maximum - 1)))
            case StateMachine():
                return self.first_machine(body)
        raise TypeError(f"no expression: {body!r}")

    def first_machine(self, machine: StateMachine) -> StateMachine:
        """Return ``machine`` where it brings the first lexeme: states before it, then states after."""
        n = machine.n_states
        edges: list[tuple[int, TerminalReference | RuleReference | None, int]] = []
        actions: list[int] = []
        before = self.empty_closure(machine)
        for i, (source, symbol, target) in enumerate(machine.edges):
            if symbol is None:
                edges.append((n + source, None, n + target))
                if source in before:
                    edges.append((source, None, target))
                continue
            if source in before:
                if self.is_empty_symbol(symbol):
                    edges.append((source, None, target))
                edges.append((source, self.first_symbol(symbol), n + target))
                actions += machine.actions[i : i + 1]
            edges.append((n + source, self.inner_symbol(symbol), n + target))
            actions += machine.actions[i : i + 1]
        accepting = frozenset(n + state for state in machine.accepting)
        distinct = frozenset(_moved(self.inner_terminal, index) for index in machine.distinct)
        return StateMachine(
            2 * n, machine.start, accepting, tuple(edges), machine.parameter, tuple(actions), distinct
        )


def _moved(terminal: Callable[[int], Expression], index: int) -> int:
    """Return the terminal that takes the place of one whose lexemes must differ."""
    moved = terminal(index)
    if isinstance(moved, TerminalReference):
        return moved.index
    raise UnsupportedFeatureError(
        "lexemes that must differ",
        reason="are not supported in grammars that are put together, where blanks may stand before them",
        hint='Use whitespace="compact", or property_order="schema".',
    )


def _rules_in(body: Expression) -> Task[set[str]]:
    """Return the rules that ``body`` refers to."""
    found: set[str] = set()

    def note(name: str) -> str:
        found.add(name)
        return name

    yield mapped_symbols(body, TerminalReference, note)
    return found


def _fresh(name: str, names: set[str]) -> str:
    found, n = name if name not in names else f"{name}'", len(names)
    # Counting from how many there are finds a free name soon.
    while found in names:
        found, n = f"{name}'{n}", n + 1
    names.add(found)
    return found


__all__ = ["concatenation", "union", "without_ignored"]
