"""Lark grammars to the intermediate representation: `lark_grammar`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from constrain.grammars import ir
from constrain.grammars.adjacency import edge_characters, neighbours
from constrain.grammars.combine import derives_empty, embed
from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema.build import schema_grammar
from constrain.grammars.json_schema.options import SchemaOptions
from constrain.grammars.lark_syntax.blanks import bounded
from constrain.grammars.lark_syntax.definitions import Body, Definitions, Entry, load
from constrain.grammars.lark_syntax.edges import Side, continuing, holds, refused_bytes
from constrain.grammars.lark_syntax.literals import literal
from constrain.grammars.lark_syntax.substring import substring
from constrain.grammars.lark_syntax.terminals import Lexeme, TerminalReader, single_literal
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
from constrain.grammars.regex.ranges import FULL, NONE, difference, normalize, union
from constrain.grammars.regex.recursion import Task, run

_START = "start"
_SOMETHING = ir.Literal(b"?")
_SHOWN = 40

Reference: TypeAlias = ir.TerminalReference | ir.RuleReference
# What a template's parameter stands for: a reference, or the name of a template.
Argument: TypeAlias = Reference | str
Scope: TypeAlias = Mapping[str, Argument]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which terminals of a grammar are those of `ir.Indentation`; each by its name, or the text of its string.

    Parameters
    ----------
    newline, indent, dedent : str
    brackets : tuple of (str, str)
    tab : int
    """

    newline: str
    indent: str
    dedent: str
    brackets: tuple[tuple[str, str], ...] = ()
    tab: int = 8


@dataclass(frozen=True, slots=True)
class LarkOptions:
    """How a Lark grammar is read.

    Parameters
    ----------
    import_paths : tuple of Path
        Folders in which ``%import`` looks before the grammars that come with Lark.
    lexing : {"longest", "any"}
        ``"longest"``: a lexeme is the longest that some terminal of those that may stand at its place matches;
        of several that match it, those of the highest priority count, strings before regular expressions.
        ``"any"``: a text may be cut into lexemes in any way.
    max_ignored : int or None
        So many ignored lexemes may follow one another, and a repeat in an ignored terminal that matches only blanks
        has so many rounds. ``None``: any number, and so with ``lexing="any"`` and where indentation counts.
    indentation : Layout or None
        Which terminals stand for indentation.
    """

    import_paths: tuple[Path, ...] = ()
    lexing: str = "longest"
    max_ignored: int | None = 64
    indentation: Layout | None = None

    def __post_init__(self) -> None:
        if self.lexing not in ("longest", "any"):
            raise SpecError(f"lexing={self.lexing!r}: expected 'longest' or 'any'.")
        most = self.max_ignored
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise SpecError(f"max_ignored={most!r}: expected an integer of at least 1, or None.")


_DEFAULT = LarkOptions()


@dataclass(frozen=True, slots=True)
class LarkGrammar:
    """What was read.

    Parameters
    ----------
    grammar : Grammar
    ignored : tuple of str
        What nested schemas say that is not enforced: JSON pointers into them.
    files : mapping of str to str
        Texts of the files that were read from ``import_paths``.
    """

    grammar: ir.Grammar
    ignored: tuple[str, ...]
    files: Mapping[str, str]


def lark_grammar(
    text: str, start: str | None = None, *, watch: Watch, options: LarkOptions = _DEFAULT
) -> ir.Grammar:
    """Return the grammar of the texts that a Lark grammar describes; see `read_lark`."""
    return read_lark(text, start, watch=watch, options=options).grammar


def read_lark(
    text: str,
    start: str | None = None,
    *,
    watch: Watch,
    options: LarkOptions = _DEFAULT,
    given: Mapping[str, ir.Grammar] | None = None,
    files: Mapping[str, str] | None = None,
) -> LarkGrammar:
    """Return the grammar of the texts that a Lark grammar describes, and how it came about.

    Parameters
    ----------
    text : str
    start : str or None
        Name of the start rule; ``None`` is ``"start"``.
    watch : Watch
    options : LarkOptions
    given : mapping of str to Grammar
        Rules and terminals that are defined from outside.
    files : mapping of str to str
        Texts of files that take the place of reading them, by path.

    Raises
    ------
    SpecError
        A malformed grammar, with its place.
    UnsupportedFeatureError
        It uses what cannot be enforced.
    LimitExceededError
        It is too large or too deep.
    """
    read_files = dict(files or {})
    given = given or {}
    definitions = load(text, options.import_paths, given, read_files, watch)
    builder = _Builder(definitions, options, given, watch)
    grammar = builder.grammar(start or _START)
    return LarkGrammar(embed(grammar, builder.inner), tuple(builder.dropped), read_files)


class _Builder:
    def __init__(
        self, definitions: Definitions, options: LarkOptions, given: Mapping[str, ir.Grammar], watch: Watch
    ) -> None:
        self.definitions = definitions
        self.given = given
        # Grammars in the place of terminals.
        self.inner: dict[int, ir.Grammar] = {}
        self.dropped: dict[str, None] = {}
        # Terminals that look at the text around their lexemes.
        self.looking: list[tuple[int, Lexeme]] = []
        self.edges_of: dict[tuple[int, bool], ir.Ranges] = {}
        self.options = options
        self.watch = watch
        self.reader = TerminalReader(definitions, watch)
        self.terminals: list[ir.Terminal] = []
        self.rules: dict[str, ir.Expression] = {}
        self.pointers: dict[str, str] = {}
        self.terminal_of: dict[object, ir.TerminalReference] = {}
        self.queue: list[tuple[str, Entry, Scope]] = []
        self.instances: dict[tuple[str, tuple[Argument, ...]], str] = {}
        self.names = set(definitions.entries)
        # A string in a rule is the terminal that is defined as this string.
        self.named: dict[tuple[bool, str, str], Entry] = {}
        for entry in definitions.entries.values():
            if entry.is_terminal:
                found = single_literal(entry)
                if found is not None:
                    self.named[found.key] = entry

    def grammar(self, start: str) -> ir.Grammar:
        """Return the grammar."""
        module = self.definitions.module
        entry = self.definitions.entries.get(start)
        if entry is None or entry.is_terminal or entry.parameters or not entry.bodies:
            rules = [
                name
                for name, known in self.definitions.entries.items()
                if not known.is_terminal and not known.parameters and known.bodies
            ]
            listed = ", ".join(map(repr, rules[:5])) + (", ..." if len(rules) > 5 else "")
            hint = f"Pass start= as one of its rules: {listed}." if rules else "A rule is 'name: ...'."
            raise module.error(f"The grammar has no rule {start!r} to start with.", 0, hint)
        self.rule(entry, {}, start)
        for name, rule, scope in self.queue:  # grows while it is read
            self.rules[name] = self.body(rule, scope)
            self.watch.at_most("states", len(self.rules), f"rule {name!r}")
        ignored = [self.ignored(body, offset) for body, offset in self.definitions.ignored]
        layout = self.options.indentation
        indentation = None if layout is None else self.layout(layout)
        policy = self.policy(tuple(ignored))
        grammar = ir.Grammar(tuple(self.terminals), self.rules, start, policy, self.pointers, indentation)
        for t, lexeme in self.looking:
            if lexeme.edges.is_in_loop:
                self.refuse_edge(t, lexeme, "looks beyond the end of what it repeats")
        return self.with_edges(grammar) if self.looking else grammar

    def with_edges(self, grammar: ir.Grammar) -> ir.Grammar:
        """Return the grammar with what terminals ask of the text behind them, and refuse what can't be enforced."""
        terminals = list(grammar.terminals)
        is_longest = self.options.lexing == "longest"
        for after in (True, False):
            looking = [
                (t, lexeme, lexeme.edges.after if after else lexeme.edges.before)
                for t, lexeme in self.looking
            ]
            if not any(conditions for _, _, conditions in looking):
                continue
            beside = neighbours(grammar, self.watch, after=after)
            characters = {beside_t.terminals: NONE for beside_t in beside}
            for others in characters:
                for edge in {self.edge(grammar.terminals[other], other, not after) for other in others}:
                    characters[others] = union(characters[others], edge)
            for t, lexeme, conditions in looking:
                outer = characters[beside[t].terminals]
                if after and is_longest:
                    outer = difference(outer, continuing(lexeme.pattern))
                side = Side(edge_characters(lexeme.pattern, at_end=after), outer, beside[t].is_last)
                for condition in conditions:
                    if holds(condition, side, after=after):
                        continue
                    refused = refused_bytes(condition, side) if after and is_longest else None
                    if refused is None:
                        what = "after" if after else "before"
                        self.refuse_edge(t, lexeme, f"looks at the text {what} it, which may be otherwise")
                    not_before = normalize([*terminals[t].not_before, *refused])
                    terminals[t] = replace(terminals[t], not_before=not_before)
        return replace(grammar, terminals=tuple(terminals))

    def edge(self, terminal: ir.Terminal, t: int, at_end: bool) -> ir.Ranges:
        """Return the characters that lexemes of a terminal end (or begin) with."""
        key = t, at_end
        if key not in self.edges_of:
            self.edges_of[key] = FULL if t in self.inner else edge_characters(terminal.pattern, at_end=at_end)
        return self.edges_of[key]

    def refuse_edge(self, t: int, lexeme: Lexeme, reason: str) -> None:
        """Refuse a terminal for its lookaround."""
        raise lexeme.module.unsupported(
            self.terminals[t].name,
            lexeme.offset,
            reason + ", and that cannot be enforced",
            "Leave out the lookaround at the ends, or let other text stand beside it.",
        )

    def policy(self, ignored: tuple[int, ...]) -> ir.Ignored:
        """Return where and how much ignored text may stand."""
        if not ignored:
            return ir.Ignored()
        return ir.Ignored(ignored, leading=True, trailing=True, most=self.most)

    def layout(self, layout: Layout) -> ir.Indentation:
        """Return the terminals that stand for indentation."""
        named: list[int] = []
        for name in (layout.newline, layout.indent, layout.dedent):
            found = self.find(name)
            if found is None:
                raise self.definitions.module.error(
                    f"The grammar has no terminal {name!r} for indentation.", 0
                )
            named.append(found)
        newline, indent, dedent = named
        # Brackets that no rule uses don't occur.
        pairs = [(self.find(one), self.find(other)) for one, other in layout.brackets]
        brackets = tuple((one, other) for one, other in pairs if one is not None and other is not None)
        return ir.Indentation(newline, indent, dedent, brackets, layout.tab)

    def find(self, name: str) -> int | None:
        """Return the terminal with a name or a string's text."""
        entry = self.definitions.entries.get(name)
        if entry is not None and entry.is_terminal:
            return self.defined_terminal(entry).index
        found = self.terminal_of.get((True, name, ""))
        return None if found is None else found.index

    @property
    def most(self) -> int | None:
        """How many ignored lexemes may follow one another."""
        if self.options.lexing == "any" or self.options.indentation is not None:
            return None
        return self.options.max_ignored

    def ignored(self, body: Body, offset: int) -> int:
        """Return the terminal of an ``%ignore``, which is another than the one that rules may use."""
        node = body.node
        name, priority, is_string = "ignored text", 0, False
        is_ranked_below = True
        if isinstance(node, Symbol) and node.is_terminal:
            entry = self.definitions.entries[body.rename(node.name)]
            lexeme = self.reader.entry_pattern(entry)
            single = single_literal(entry)
            name, priority, is_string = entry.name, entry.priority, single is not None and single.is_string
            # What rules use too is read both ways.
            is_ranked_below = entry.name not in self.terminal_of
        elif isinstance(node, Sequence) and not node.parts:
            raise body.module.error("%ignore needs a terminal.", offset)
        else:
            lexeme = self.reader.pattern(node, body, "of %ignore")
            if isinstance(node, Quoted):
                name, is_string = shown(node, body.module), literal(node, body.module).is_string
        if self.most is not None:
            lexeme = replace(lexeme, pattern=bounded(lexeme.pattern, self.most))
        return self.add_lexeme(
            lexeme, name, priority=priority, is_string=is_string, is_ignored=is_ranked_below
        ).index

    # -------------------------------------------------------------------------------- terminals

    def add_lexeme(
        self,
        lexeme: Lexeme,
        name: str,
        *,
        priority: int = 0,
        is_string: bool = False,
        is_ignored: bool = False,
    ) -> ir.TerminalReference:
        """Add a terminal that was read."""
        rank = 4 * priority + 2 * is_string + (not is_ignored)
        found = self.add(lexeme.pattern, name, rank)
        if lexeme.edges:
            self.looking.append((found.index, lexeme))
        return found

    def add(self, pattern: ir.Pattern, name: str, rank: int = 0) -> ir.TerminalReference:
        """Add a terminal."""
        if self.options.lexing == "any":
            terminal = ir.Terminal(pattern, name)
        else:
            terminal = ir.Terminal(pattern, name, priority=rank, greedy=True)
        self.terminals.append(terminal)
        return ir.TerminalReference(len(self.terminals) - 1)

    def defined_terminal(self, entry: Entry) -> ir.TerminalReference:
        """Return a terminal that has a name."""
        found = self.terminal_of.get(entry.name)
        layout = self.options.indentation
        if found is None and layout is not None and entry.name in (layout.indent, layout.dedent):
            # Its lexemes have no text.
            found = self.terminal_of[entry.name] = self.add(_SOMETHING, entry.name)
        if found is None:
            lexeme = self.reader.entry_pattern(entry)
            single = single_literal(entry)
            is_string = single is not None and single.is_string
            found = self.add_lexeme(lexeme, entry.name, priority=entry.priority, is_string=is_string)
            self.terminal_of[entry.name] = found
        return found

    def literal(self, node: Quoted, module: Module) -> ir.TerminalReference:
        """Return the terminal of a string or regular expression in a rule."""
        read = literal(node, module)
        entry = self.named.get(read.key)
        if entry is not None:
            return self.defined_terminal(entry)
        found = self.terminal_of.get(read.key)
        if found is None:
            name = shown(node, module)
            lexeme = self.reader.pattern(node, Body(node, module, str), name)
            found = self.terminal_of[read.key] = self.add_lexeme(lexeme, name, is_string=read.is_string)
        return found

    def range(self, node: Range, module: Module) -> ir.TerminalReference:
        """Return the terminal of a range in a rule."""
        key = (node.low.text, node.high.text)
        found = self.terminal_of.get(key)
        if found is None:
            name = f"{node.low.text}..{node.high.text}"
            lexeme = self.reader.pattern(node, Body(node, module, str), name)
            found = self.terminal_of[key] = self.add_lexeme(lexeme, name)
        return found

    # -------------------------------------------------------------------------------- inner grammars

    def place(self, grammar: ir.Grammar, name: str) -> ir.TerminalReference:
        """Return a terminal whose place a grammar will take."""
        found = self.add(ir.EMPTY_STRING if derives_empty(grammar) else _SOMETHING, name)
        self.inner[found.index] = grammar
        return found

    def nested(self, node: Nested, module: Module) -> ir.TerminalReference:
        """Return what ``%json``, ``%regex`` or ``%lark`` stands for."""
        found = self.terminal_of.get(id(node))
        if found is not None:
            return found
        if node.kind == "%regex":
            pattern = substring(node.value, module, node.offset)
            grammar = ir.pattern_grammar(pattern, "%regex")
        else:
            try:
                grammar = self.json(node.value) if node.kind == "%json" else self.lark(node.value)
            except SpecError as error:
                error.message = f"{node.kind}: {error.message}"
                error.place(module.text, node.offset)
                raise
        found = self.terminal_of[id(node)] = self.place(grammar, node.kind)
        return found

    def json(self, schema: Any) -> ir.Grammar:
        """Return the grammar of a nested schema."""
        read = schema_grammar(schema, SchemaOptions(), watch=self.watch)
        self.dropped.update(dict.fromkeys(read.ignored))
        return read.grammar

    def lark(self, text: str) -> ir.Grammar:
        """Return a nested grammar, which has its own names and ignored text."""
        read = read_lark(text, watch=self.watch, options=self.options)
        self.dropped.update(dict.fromkeys(read.ignored))
        return read.grammar

    # -------------------------------------------------------------------------------- rules

    def rule(self, entry: Entry, scope: Scope, name: str) -> ir.RuleReference:
        """Return a rule, whose body is read later."""
        if name not in self.pointers:
            self.pointers[name] = entry.name
            self.queue.append((name, entry, scope))
        return ir.RuleReference(name)

    def body(self, entry: Entry, scope: Scope) -> ir.Expression:
        """Return the expression of a rule's bodies."""
        found = [run(self.expression(body.node, body, scope, entry)) for body in entry.bodies]
        return found[0] if len(found) == 1 else ir.Choice(tuple(found))

    def expression(self, node: Node, body: Body, scope: Scope, entry: Entry) -> Task[ir.Expression]:
        """Return the expression of ``node``."""
        module = body.module
        self.watch.step(f"rule {entry.name!r}")
        parts: list[ir.Expression] = []
        match node:
            case Sequence(items):
                for item in items:
                    parts.append((yield self.expression(item, body, scope, entry)))
                return ir.Sequence(tuple(parts))
            case Choice(items, aliases):
                if aliases and entry.name.startswith("_"):
                    raise module.error(
                        f"Rule {entry.name!r} begins with '_', so its alternatives cannot have aliases.",
                        aliases[0],
                    )
                for item in items:
                    parts.append((yield self.expression(item, body, scope, entry)))
                return ir.Choice(tuple(parts))
            case Repeat(inner, minimum, maximum):
                return ir.Repetition((yield self.expression(inner, body, scope, entry)), minimum, maximum)
            case Symbol() | Usage():
                found = self.argument(node, body, scope)
                if isinstance(found, str):
                    raise module.error(
                        f"{node.name!r} is a template and needs arguments in braces.", node.offset
                    )
                return found
            case Quoted():
                return self.literal(node, module)
            case Range():
                return self.range(node, module)
            case Negation() | Conjunction():
                raise module.error(
                    f"{'~' if isinstance(node, Negation) else '&'!r} can stand in terminals only.",
                    node.offset,
                    "Define a terminal, in upper case, with it.",
                )
            case Special(written, offset):
                raise module.unsupported(
                    written, offset, "is a special token, which is not supported yet", "Leave it out."
                )
            case Nested():
                return self.nested(node, module)
        raise TypeError(f"no node: {node!r}")

    def argument(self, node: Node, body: Body, scope: Scope) -> Argument:
        """Return what a name, or a template with arguments, or an argument of one stands for."""
        # Arguments nest; they are worked off innermost first.
        todo: list[tuple[Node, bool]] = [(node, False)]
        done: list[Argument] = []
        while todo:
            item, is_ready = todo.pop()
            if isinstance(item, Symbol):
                done.append(self.named_symbol(item, body, scope))
            elif isinstance(item, Quoted):
                done.append(self.literal(item, body.module))
            elif isinstance(item, Range):
                done.append(self.range(item, body.module))
            elif isinstance(item, Usage):
                if not is_ready:
                    todo.append((item, True))
                    todo += [(argument, False) for argument in reversed(item.arguments)]
                    continue
                n = len(item.arguments)
                given = tuple(done[len(done) - n :])
                del done[len(done) - n :]
                done.append(self.instance(item, given, body, scope))
            else:
                raise body.module.error("This cannot be an argument of a template.", item.offset)
        return done[0]

    def named_symbol(self, symbol: Symbol, body: Body, scope: Scope) -> Argument:
        """Return what a name in a rule stands for."""
        if symbol.name in scope:
            return scope[symbol.name]
        name = body.rename(symbol.name)
        if name in self.given:
            found = self.terminal_of.get((name,))
            if found is None:
                found = self.terminal_of[(name,)] = self.place(self.given[name], name)
            return found
        entry = self.definitions.entries[name]
        if entry.is_terminal:
            return self.defined_terminal(entry)
        if entry.parameters:
            return entry.name
        if not entry.bodies:
            raise body.module.error(
                f"The rule {symbol.name!r} is only declared, so nothing says what it is.", symbol.offset
            )
        return self.rule(entry, {}, entry.name)

    def instance(
        self, usage: Usage, arguments: tuple[Argument, ...], body: Body, scope: Scope
    ) -> ir.RuleReference:
        """Return the rule that a template is with ``arguments``."""
        name = scope[usage.name] if usage.name in scope else body.rename(usage.name)
        entry = self.definitions.entries.get(name) if isinstance(name, str) else None
        if entry is None or not entry.parameters:
            raise body.module.error(f"{usage.name!r} is no template, so it has no arguments.", usage.offset)
        if len(arguments) != len(entry.parameters):
            raise body.module.error(
                f"The template {usage.name!r} needs {len(entry.parameters)} arguments and has {len(arguments)}.",
                usage.offset,
            )
        key = entry.name, arguments
        found = self.instances.get(key)
        if found is None:
            self.watch.at_most("states", len(self.instances), f"the uses of template {entry.name!r}")
            found = self.instances[key] = self.fresh(f"{entry.name}{{{len(self.instances)}}}")
        return self.rule(entry, dict(zip(entry.parameters, arguments, strict=True)), found)

    def fresh(self, name: str) -> str:
        """Return a name that no rule has."""
        while name in self.names:
            name += "'"
        self.names.add(name)
        return name


def shown(node: Quoted, module: Module) -> str:
    """Return a literal as people are shown it."""
    read = literal(node, module)
    text = repr(read.text) + read.flags if read.is_string else node.text
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
