"""Lark grammars to the intermediate representation: `lark_grammar`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from constrain.grammars import ir
from constrain.grammars.combine import embed
from constrain.grammars.errors import SpecError
from constrain.grammars.lark_syntax.definitions import Body, Definitions, Entry, load
from constrain.grammars.lark_syntax.lexicon import Lexicon
from constrain.grammars.lark_syntax.options import LarkGrammar, LarkOptions, Layout
from constrain.grammars.lark_syntax.substring import substring
from constrain.grammars.lark_syntax.surroundings import with_surroundings
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

__all__ = ["LarkGrammar", "LarkOptions", "Layout", "lark_grammar", "read_lark"]

_START = "start"
_INSIDE = " (%lark"

Reference: TypeAlias = ir.TerminalReference | ir.RuleReference
# What a template's parameter stands for: a reference, or the name of a template.
Argument: TypeAlias = Reference | str
Scope: TypeAlias = Mapping[str, Argument]


_DEFAULT = LarkOptions()
_INSIDE = " (%lark"


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
    return run(_read(text, start, watch, options, given or {}, dict(files or {}), 0))


def _read(
    text: str,
    start: str | None,
    watch: Watch,
    options: LarkOptions,
    given: Mapping[str, ir.Grammar],
    read_files: dict[str, str],
    depth: int,
) -> Task[LarkGrammar]:
    """Read a grammar that stands inside ``depth`` others."""
    watch.at_most("nesting", depth, "the grammars inside one another")
    definitions = load(text, options.import_paths, given, read_files, watch)
    builder = _Builder(definitions, options, given, watch, depth)
    grammar = yield builder.grammar(_START if start is None else start)
    entries = definitions.entries.values()
    places = {entry.name: entry.offset for entry in entries if entry.module is definitions.module}
    places.update(builder.places)
    return LarkGrammar(embed(grammar, builder.lexicon.inner), tuple(builder.dropped), read_files, places)


class _Builder:
    def __init__(
        self,
        definitions: Definitions,
        options: LarkOptions,
        given: Mapping[str, ir.Grammar],
        watch: Watch,
        depth: int,
    ) -> None:
        self.definitions = definitions
        self.given = given
        self.options = options
        self.watch = watch
        self.depth = depth
        self.lexicon = Lexicon(definitions, options, watch)
        self.dropped: dict[str, None] = {}
        # Of what nested grammars define.
        self.places: dict[str, int] = {}
        self.rules: dict[str, ir.Expression] = {}
        self.pointers: dict[str, str] = {}
        self.queue: list[tuple[str, Entry, Scope]] = []
        self.instances: dict[tuple[str, tuple[Argument, ...]], str] = {}
        self.names = set(definitions.entries)

    def grammar(self, start: str) -> Task[ir.Grammar]:
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
            self.rules[name] = yield self.body(rule, scope)
            self.watch.at_most("states", len(self.rules), f"rule {name!r}")
        lexicon = self.lexicon
        policy = lexicon.policy()
        layout = self.options.indentation
        indentation = None if layout is None else lexicon.layout(layout)
        grammar = ir.Grammar(tuple(lexicon.terminals), self.rules, start, policy, self.pointers, indentation)
        return with_surroundings(grammar, lexicon, self.watch) if lexicon.looking else grammar

    # -------------------------------------------------------------------------------- inner grammars

    def nested(self, node: Nested, module: Module) -> Task[ir.TerminalReference]:
        """Return what ``%json``, ``%regex`` or ``%lark`` stands for."""
        found = self.lexicon.terminal_of.get(id(node))
        if found is not None:
            return found
        if node.kind == "%regex":
            pattern = substring(node.value, module, node.offset)
            grammar = ir.pattern_grammar(pattern, "%regex")
        else:
            try:
                grammar = self.json(node.value) if node.kind == "%json" else (yield self.lark(node, module))
            except SpecError as error:
                if not error.message.startswith(f"{node.kind}: "):
                    error.message = f"{node.kind}: {error.message}"
                is_inside = node.kind == "%lark" and error.source == node.value and error.offset is not None
                offset = node.start + (error.offset or 0) if is_inside else node.offset
                error.place(module.text, offset)
                raise
        found = self.lexicon.terminal_of[id(node)] = self.lexicon.place(grammar, node.kind)
        return found

    def json(self, schema: Any) -> ir.Grammar:
        """Return the grammar of a nested schema."""
        from constrain.grammars.json_schema.build import schema_grammar
        from constrain.grammars.json_schema.options import SchemaOptions

        read = schema_grammar(schema, SchemaOptions(), watch=self.watch)
        self.dropped.update(dict.fromkeys(read.ignored))
        return read.grammar

    def lark(self, node: Nested, module: Module) -> Task[ir.Grammar]:
        """Return a nested grammar, which has its own names and ignored text."""
        options = replace(self.options, indentation=None)
        read: LarkGrammar = yield _read(node.value, None, self.watch, options, {}, {}, self.depth + 1)
        self.dropped.update(dict.fromkeys(read.ignored))
        if module is not self.definitions.module:
            return read.grammar
        # Its names are others than those outside, so they get the places along.
        moved = {}
        for pointer, offset in read.places.items():
            before = module.text[: node.start + offset]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            moved[pointer] = f"{pointer.partition(_INSIDE)[0]}{_INSIDE}, line {line}, column {column})"
            self.places[moved[pointer]] = len(before)
        return replace(
            read.grammar,
            terminals=tuple(
                replace(t, pointer=moved.get(t.name if t.pointer is None else t.pointer, t.pointer))
                for t in read.grammar.terminals
            ),
            pointers={name: moved.get(pointer, pointer) for name, pointer in read.grammar.pointers.items()},
        )

    # -------------------------------------------------------------------------------- rules

    def rule(self, entry: Entry, scope: Scope, name: str) -> ir.RuleReference:
        """Return a rule, whose body is read later."""
        if name not in self.pointers:
            self.pointers[name] = entry.name
            self.queue.append((name, entry, scope))
        return ir.RuleReference(name)

    def body(self, entry: Entry, scope: Scope) -> Task[ir.Expression]:
        """Return the expression of a rule's bodies."""
        found = []
        for body in entry.bodies:
            found.append((yield self.expression(body.node, body, scope, entry)))
        return found[0] if len(found) == 1 else ir.Choice(tuple(found))

    def expression(self, node: Node, body: Body, scope: Scope, entry: Entry) -> Task[ir.Expression]:
        """Return the expression of ``node``."""
        module = body.module
        self.watch.step(
            f"rule {entry.name!r}", 1 + len(node.parts) if isinstance(node, Sequence | Choice) else 1
        )
        parts: list[ir.Expression] = []
        match node:
            case Sequence(items):
                for item in items:
                    known = self.leaf(item, body, scope)
                    parts.append(known or (yield self.expression(item, body, scope, entry)))
                return ir.Sequence(tuple(parts))
            case Choice(items, aliases):
                if aliases and entry.name.startswith("_"):
                    raise module.error(
                        f"Rule {entry.name!r} begins with '_', so its alternatives cannot have aliases.",
                        aliases[0],
                    )
                for item in items:
                    known = self.leaf(item, body, scope)
                    parts.append(known or (yield self.expression(item, body, scope, entry)))
                return ir.Choice(tuple(parts))
            case Repeat(inner, minimum, maximum):
                known = self.leaf(inner, body, scope)
                known = known or (yield self.expression(inner, body, scope, entry))
                return ir.Repetition(known, minimum, maximum)
            case Symbol() | Usage():
                found = self.argument(node, body, scope)
                if isinstance(found, str):
                    raise module.error(
                        f"{node.name!r} is a template and needs arguments in braces.", node.offset
                    )
                return found
            case Quoted():
                return self.lexicon.literal(node, module)
            case Range():
                return self.lexicon.range(node, module)
            case Negation() | Conjunction():
                raise module.error(
                    f"{'~' if isinstance(node, Negation) else '&'!r} can stand in terminals only.",
                    node.offset,
                    "Define a terminal, in upper case, with it.",
                )
            case Special():
                return self.lexicon.special(node, module)
            case Nested():
                reference: ir.TerminalReference = yield self.nested(node, module)
                return reference
        raise TypeError(f"no node: {node!r}")

    def leaf(self, node: Node, body: Body, scope: Scope) -> ir.Expression | None:
        """Return what a name or a string stands for, as most nodes are one; ``None`` where it takes more to say."""
        if isinstance(node, Symbol):
            found = self.named_symbol(node, body, scope)
            return None if isinstance(found, str) else found
        return self.lexicon.literal(node, body.module) if isinstance(node, Quoted) else None

    def argument(self, node: Node, body: Body, scope: Scope) -> Argument:
        """Return what a name, or a template with arguments, or an argument of one stands for."""
        if isinstance(node, Symbol):
            return self.named_symbol(node, body, scope)
        # Arguments nest; they are worked off innermost first.
        todo: list[tuple[Node, bool]] = [(node, False)]
        done: list[Argument] = []
        while todo:
            item, is_ready = todo.pop()
            if isinstance(item, Symbol):
                done.append(self.named_symbol(item, body, scope))
            elif isinstance(item, Quoted):
                done.append(self.lexicon.literal(item, body.module))
            elif isinstance(item, Range):
                done.append(self.lexicon.range(item, body.module))
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
            found = self.lexicon.terminal_of.get((name,))
            if found is None:
                if self.given[name].is_apart:
                    raise body.module.unsupported(
                        name,
                        symbol.offset,
                        "is a union whose parts are read apart, which is not possible inside a grammar",
                        "Give each part a name of its own in embed=; their lexemes then compete.",
                    )
                found = self.lexicon.terminal_of[(name,)] = self.lexicon.place(self.given[name], name)
            return found
        entry = self.definitions.entries[name]
        if entry.is_terminal:
            return self.lexicon.defined_terminal(entry)
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
