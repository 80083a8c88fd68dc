"""The terminals of a grammar, each made once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from constrain.grammars import ir
from constrain.grammars.combine import derives_empty
from constrain.grammars.lark_syntax.blanks import blank_characters, bounded, without_blanks_before
from constrain.grammars.lark_syntax.definitions import Body, Definitions, Entry, Rename
from constrain.grammars.lark_syntax.edges import continuing
from constrain.grammars.lark_syntax.literals import literal
from constrain.grammars.lark_syntax.options import LarkOptions, Layout
from constrain.grammars.lark_syntax.special import special_tokens
from constrain.grammars.lark_syntax.terminals import Lexeme, TerminalReader, single_literal
from constrain.grammars.lark_syntax.tree import Module, Quoted, Range, Sequence, Special, Symbol
from constrain.grammars.limits import Watch
from constrain.grammars.regex.ranges import NONE, union
from constrain.grammars.separate import STRING_RANK

_SOMETHING = ir.Literal(b"?")
_SHOWN = 40


class Lexicon:
    """Makes the terminals of one grammar.

    Attributes
    ----------
    terminals : list of Terminal
    looking : list of (int, Lexeme)
        Terminals that look at the text around their lexemes.
    inner : dict of int to Grammar
        Grammars that will take the place of terminals.
    """

    def __init__(self, definitions: Definitions, options: LarkOptions, watch: Watch) -> None:
        self.definitions = definitions
        self.options = options
        self.reader = TerminalReader(definitions, watch)
        self.terminals: list[ir.Terminal] = []
        self.looking: list[tuple[int, Lexeme]] = []
        self.inner: dict[int, ir.Grammar] = {}
        self.terminal_of: dict[object, ir.TerminalReference] = {}
        self.written: dict[str, ir.TerminalReference] = {}
        # A string in a rule is the terminal that is defined as this string.
        self.named: dict[tuple[bool, str, str], Entry] = {}
        for entry in definitions.entries.values():
            if entry.is_terminal:
                found = single_literal(entry)
                if found is not None:
                    self.named[found.key] = entry

    # -------------------------------------------------------------------------------- policies

    def policy(self) -> ir.Ignored:
        """Return where and how much ignored text may stand."""
        ignored = tuple(self.ignored(body, offset) for body, offset in self.definitions.ignored)
        if not ignored:
            return ir.Ignored()
        self.part_blanks(ignored)
        most = self.most
        if any(continuing(self.terminals[t].pattern) for t in ignored):
            # A comment up to the end of its line needs more ignored text behind it, which a bound could forbid.
            most = None
        return ir.Ignored(ignored, leading=True, trailing=True, most=most)

    def part_blanks(self, ignored: Collection[int]) -> None:
        """Let no ignored text begin with blanks that are ignored by themselves."""
        blanks = NONE
        for t in ignored:
            blanks = union(blanks, blank_characters(self.terminals[t].pattern))
        looking = {t for t, _ in self.looking}
        for t in set(ignored) - looking:
            terminal = self.terminals[t]
            self.terminals[t] = replace(terminal, pattern=without_blanks_before(terminal.pattern, blanks))

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
        # STRING_RANK for a string in a rule.
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
        found = self.written.get(node.text)
        if found is None:
            found = self.written[node.text] = self.read_literal(node, module)
        return found

    def read_literal(self, node: Quoted, module: Module) -> ir.TerminalReference:
        """Do the work of `literal`."""
        read = literal(node, module)
        entry = self.named.get(read.key)
        if entry is not None:
            return self.defined_terminal(entry)
        found = self.terminal_of.get(read.key)
        if found is None:
            name = shown(node, module)
            lexeme = self.reader.pattern(node, Body(node, module, Rename()), name)
            found = self.terminal_of[read.key] = self.add_lexeme(lexeme, name, is_string=read.is_string)
        return found

    def range(self, node: Range, module: Module) -> ir.TerminalReference:
        """Return the terminal of a range in a rule."""
        key = (node.low.text, node.high.text)
        found = self.terminal_of.get(key)
        if found is None:
            name = f"{node.low.text}..{node.high.text}"
            lexeme = self.reader.pattern(node, Body(node, module, Rename()), name)
            found = self.terminal_of[key] = self.add_lexeme(lexeme, name)
        return found

    def special(self, node: Special, module: Module) -> ir.TerminalReference:
        """Return the terminal of special tokens."""
        found = self.terminal_of.get(("special", node.text))
        if found is None:
            pattern = special_tokens(node, module)
            found = self.terminal_of["special", node.text] = self.add(pattern, node.text, STRING_RANK)
        return found

    def place(self, grammar: ir.Grammar, name: str) -> ir.TerminalReference:
        """Return a terminal whose place a grammar will take."""
        found = self.add(ir.EMPTY_STRING if derives_empty(grammar) else _SOMETHING, name)
        self.inner[found.index] = grammar
        return found


def shown(node: Quoted, module: Module) -> str:
    """Return a literal as people are shown it."""
    read = literal(node, module)
    text = repr(read.text) + read.flags if read.is_string else node.text
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
