"""Text in Lark's grammar language to statements with places: `read`.

Additions to Lark's language, in the notation that llguidance gave them: ``%json {...}``, ``%regex {...}``,
``%lark {...}``, ``%llguidance {...}``, special tokens ``<|name|>`` and ``<[id]>``, ``name[attribute=value]:``,
``x{m,n}``, ``&`` and ``~`` in terminals, and names with ``-``.

Lark could read all that with a grammar of its own language, but takes half a second to load one. Groups are
kept on an explicit stack, so no nesting can overflow the interpreter's.
"""

from __future__ import annotations

import json
from typing import Any

from constrain.grammars.errors import LimitExceededError
from constrain.grammars.lark_syntax.scanner import Scanner, Token
from constrain.grammars.lark_syntax.tree import (
    Attribute,
    Choice,
    Conjunction,
    Declare,
    Definition,
    Ignore,
    Import,
    Module,
    Negation,
    Nested,
    Node,
    Options,
    Override,
    Quoted,
    Range,
    Repeat,
    Sequence,
    Special,
    Statement,
    Symbol,
    Usage,
)
from constrain.grammars.limits import Watch

_STATEMENT = "a rule, a terminal, %import, %ignore, %declare, %override or %extend"
_VALUE = "a value (a name, a string, a regular expression or a group)"
_REPEATS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_CLOSING = {"(": ")", "[": "]"}
_MOST_DIGITS = 10


class _Group:
    """An open bracket in a body (``""`` for the body itself)."""

    __slots__ = ("aliases", "alternatives", "bracket", "conjuncts", "negations", "offset", "parts", "start")

    def __init__(self, bracket: str, offset: int, negations: list[int]) -> None:
        self.bracket = bracket
        self.offset = offset
        # Places of ``~`` before the bracket.
        self.negations = negations
        self.start = offset
        self.alternatives: list[Node] = []
        self.aliases: list[int] = []
        self.conjuncts: list[Node] = []
        self.parts: list[Node] = []

    def end_conjunct(self) -> None:
        """Finish the operand of ``&`` that was being read."""
        parts = self.parts
        self.conjuncts.append(parts[0] if len(parts) == 1 else Sequence(tuple(parts), self.start))
        self.parts = []

    def end_alternative(self) -> None:
        """Finish the alternative that was being read."""
        self.end_conjunct()
        found = self.conjuncts
        self.alternatives.append(found[0] if len(found) == 1 else Conjunction(tuple(found), self.start))
        self.conjuncts = []

    def node(self) -> Node:
        """Return what was read."""
        if len(self.alternatives) == 1 and not self.aliases:
            return self.alternatives[0]
        return Choice(tuple(self.alternatives), tuple(self.aliases), self.offset)


def read(text: str, name: str | None, watch: Watch) -> Module:
    """Return the statements of a grammar text.

    Parameters
    ----------
    text : str
    name : str or None
        File it is from, for messages.
    watch : Watch

    Raises
    ------
    SpecError
        It is not in the language, with the place.
    LimitExceededError
        It is nested too deeply, or takes too long.
    """
    return _Reader(text, name, watch).read()


class _Reader(Scanner):
    # -------------------------------------------------------------------------------- statements

    def read(self) -> Module:
        """Return the statements."""
        found: list[Statement] = []
        while self.token.kind != "end":
            if self.token.kind == "newline":
                self.next()
                continue
            found += self.statement()
            if self.token.kind not in ("newline", "end"):
                self.unexpected("the end of the line")
        return Module(self.text, self.module.name, tuple(found))

    def statement(self) -> list[Statement]:
        """Read one line."""
        kind, text, offset = self.token
        if kind in ("modifiers", "rule", "terminal"):
            return [self.definition()]
        if kind != "directive":
            self.unexpected(_STATEMENT)
        self.next()
        match text:
            case "%ignore":
                return [Ignore(self.body(), offset)]
            case "%import":
                return [self.import_(offset)]
            case "%declare":
                names = [self.symbol()]
                while self.token.kind in ("rule", "terminal"):
                    names.append(self.symbol())
                return [Declare(tuple(names))]
            case "%override" | "%extend":
                if self.token.kind not in ("modifiers", "rule", "terminal"):
                    self.unexpected("a rule or a terminal")
                return [Override(self.definition(), text == "%extend")]
            case "%llguidance":
                return [Options(self.json_value(text, offset), offset)]
        raise self.module.error(f"{text!r} is no directive.", offset, f"A line is {_STATEMENT}.")

    def symbol(self) -> Symbol:
        """Read a name."""
        token = self.expect("rule", "terminal")
        return Symbol(token.text, token.offset)

    def definition(self) -> Definition:
        """Read a rule or a terminal."""
        modifiers = self.next().text if self.token.kind == "modifiers" else ""
        token = self.expect("rule") if modifiers else self.next()
        name, offset = token.text, token.offset
        parameters: list[Symbol] = []
        if token.kind == "rule" and self.skip_mark("{"):
            while True:
                parameter = self.expect("rule")
                parameters.append(Symbol(parameter.text, parameter.offset))
                if not self.skip_mark(","):
                    break
            self.expect_mark("}")
        attributes = self.attributes() if self.skip_mark("[") else ()
        priority = 0
        if self.skip_mark("."):
            priority = self.integer(self.expect("number"))
        if not self.is_mark(":"):
            self.unexpected("':'")
        self.next()
        body = self.body()
        if modifiers and "?" in modifiers and name.startswith("_"):
            raise self.module.error(
                f"Rule {name!r} begins with '_', so it cannot have the modifier '?' as well.", offset
            )
        return Definition(name, offset, body, modifiers, tuple(parameters), attributes, priority)

    def attributes(self) -> tuple[Attribute, ...]:
        """Read what follows ``name[``."""
        found: list[Attribute] = []
        while True:
            name, offset = self.expect("rule")[1:]
            value = None
            if self.skip_mark("="):
                if self.token.kind not in ("string", "regexp", "rule", "terminal", "number"):
                    self.unexpected("a value")
                value = self.next().text
                while self.is_mark(".") or (value.endswith(".") and self.token.kind == "number"):
                    value += self.next().text
            found.append(Attribute(name, value, offset))
            if not self.skip_mark(","):
                break
        self.expect_mark("]")
        return tuple(found)

    def integer(self, token: Token) -> int:
        """Return the value of a number."""
        if len(token.text.lstrip("+-0")) > _MOST_DIGITS:
            raise self.module.error("This number has too many digits.", token.offset)
        return int(token.text)

    def import_(self, offset: int) -> Import:
        """Read what follows ``%import``."""
        relative = self.skip_mark(".")
        path = [self.symbol()]
        while self.skip_mark("."):
            path.append(self.symbol())
        if self.skip_mark("("):
            names = [self.symbol()]
            while self.skip_mark(","):
                names.append(self.symbol())
            self.expect_mark(")")
            imported = [(name, name.name) for name in names]
        else:
            name = path.pop()
            if not path:
                raise self.module.error(
                    f"{name.name!r} names a grammar, but nothing to import from it.",
                    name.offset,
                    f"Write '%import {name.name}.NAME'.",
                )
            alias = self.symbol().name if self.skip_mark("->") else name.name
            imported = [(name, alias)]
        return Import(tuple(part.name for part in path), relative, tuple(imported), offset)

    # -------------------------------------------------------------------------------- bodies

    def body(self) -> Node:
        """Read the alternatives of a rule, up to the end of the line."""
        stack: list[_Group] = []
        group = _Group("", self.token.offset, [])
        while True:
            kind, text, offset = self.token
            if kind in ("newline", "end"):
                if stack:
                    raise self.module.error(
                        f"This {group.bracket!r} is never closed on its line.",
                        group.offset,
                        "A rule goes on in the next line only where that begins with '|', or after a backslash.",
                    )
                group.end_alternative()
                return group.node()
            if kind == "bar":
                self.next()
                group.end_alternative()
                group.start = self.token.offset
            elif kind == "mark" and text == "&":
                self.next()
                group.end_conjunct()
            elif kind == "mark" and text == "->":
                self.next()
                self.expect("rule")
                group.aliases.append(offset)
                if self.token.kind not in ("bar", "newline", "end") and not (
                    stack and self.is_mark(_CLOSING[group.bracket])
                ):
                    self.unexpected("'|' or the end of the line")
            elif stack and kind == "mark" and text == _CLOSING[group.bracket]:
                self.next()
                group.end_alternative()
                node, negations = group.node(), group.negations
                if group.bracket == "[":
                    node = Repeat(node, 0, 1, group.offset)
                group = stack.pop()
                group.parts.append(self.quantified(node, negations))
            else:
                negations = self.negations()
                if self.is_mark("(") or self.is_mark("["):
                    _, bracket, offset = self.next()
                    stack.append(group)
                    self.watch.at_most("nesting", len(stack), "the nested groups of a rule")
                    group = _Group(bracket, offset, negations)
                    group.start = self.token.offset
                else:
                    group.parts.append(self.quantified(self.value(), negations))

    def negations(self) -> list[int]:
        """Read any number of ``~``."""
        found = []
        while self.is_mark("~"):
            found.append(self.next().offset)
        return found

    def quantified(self, node: Node, negations: list[int]) -> Node:
        """Return ``node`` under the ``~`` before and the quantifier after it."""
        for offset in reversed(negations):
            node = Negation(node, offset)
        kind, text, offset = self.token
        if kind == "operator":
            self.next()
            minimum, maximum = _REPEATS[text]
            node = Repeat(node, minimum, maximum, offset)
        elif kind == "count":
            self.next()
            node = self.counted(node, text, offset)
        if kind in ("operator", "count") and self.token.kind in ("operator", "count"):
            raise self.module.error(
                f"{self.token.text!r} follows another quantifier.",
                self.token.offset,
                "Put the repeated part into parentheses.",
            )
        return node

    def counted(self, node: Node, text: str, offset: int) -> Node:
        """Return ``node`` under ``~ n``, ``~ m..n`` or ``{m,n}``."""
        digits = text.lstrip("~{").rstrip("}")
        separator = ".." if text[0] == "~" else ","
        low, is_range, high = (part.strip() for part in digits.partition(separator))
        for number in (low, high):
            if len(number.lstrip("+-0")) > _MOST_DIGITS:
                raise self.module.error("This count has too many digits.", offset)
        minimum = int(low) if low else 0
        maximum = minimum if not is_range else int(high) if high else None
        if minimum < 0 or (maximum is not None and maximum < minimum):
            raise self.module.error(f"{text.strip()!r} is no range of counts.", offset)
        return Repeat(node, minimum, maximum, offset)

    def value(self) -> Node:
        """Read a value."""
        kind, text, offset = self.token
        if kind == "rule" or kind == "terminal":
            self.next()
            if kind == "rule" and self.skip_mark("{"):
                return self.usage(text, offset)
            return Symbol(text, offset)
        if kind == "string":
            self.next()
            low = Quoted(text, offset)
            if not self.skip_mark(".."):
                return low
            high = self.expect("string")
            return Range(low, Quoted(high.text, high.offset), offset)
        if kind == "regexp":
            self.next()
            return Quoted(text, offset)
        if kind == "special":
            self.next()
            return Special(text, offset)
        if kind == "directive" and text in ("%json", "%regex"):
            self.next()
            return Nested(text, self.json_value(text, offset), offset)
        if kind == "directive" and text == "%lark":
            self.next()
            inside, start = self.nested_text(offset)
            return Nested(text, inside, offset, start)
        if kind == "operator":
            raise self.module.error(f"There is nothing before {text!r} to repeat.", offset)
        self.unexpected(_VALUE)

    def usage(self, name: str, offset: int) -> Usage:
        """Read the arguments of a template, which may be templates with arguments in turn."""
        stack: list[tuple[str, int, list[Node]]] = [(name, offset, [])]
        while True:
            name, offset, arguments = stack[-1]
            kind, text, at = self.token
            if kind == "rule":
                self.next()
                if self.skip_mark("{"):
                    stack.append((text, at, []))
                    self.watch.at_most("nesting", len(stack), "the nested arguments of a template")
                    continue
                arguments.append(Symbol(text, at))
            else:
                arguments.append(self.value())
            while not self.skip_mark(","):
                self.expect_mark("}")
                name, offset, arguments = stack.pop()
                usage = Usage(name, tuple(arguments), offset)
                if not stack:
                    return usage
                stack[-1][2].append(usage)

    # -------------------------------------------------------------------------------- nested texts

    def json_value(self, directive: str, offset: int) -> Any:
        """Read a JSON object; the token looked at is its ``{``."""
        start = self.token.offset
        if not self.text.startswith("{", start):
            raise self.module.error(f"{directive} must be followed by a JSON object.", start)
        try:
            value, self.at = json.JSONDecoder().raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            raise self.module.error(f"{directive}: {error.msg}.", error.pos) from error
        except RecursionError as error:
            # The standard library's reader goes as deep as the interpreter's stack.
            raise LimitExceededError(
                "nesting", self.watch.limits.nesting, f"the value of {directive}", "Make it less deep."
            ) from error
        except ValueError as error:
            # Python reads no integer of more digits than `sys.get_int_max_str_digits()`.
            raise self.module.error(f"{directive}: {error}.", offset) from error
        self.next()
        return value

    def nested_text(self, offset: int) -> tuple[str, int]:
        """Read a grammar in braces, and return it and where it begins; the token looked at is its ``{``."""
        if not self.skip_mark("{"):
            self.unexpected("'{'")
        start, depth = self.token.offset, 1
        while True:
            if self.token.kind == "end":
                raise self.module.error("The grammar of this %lark is never closed.", offset, "Add '}'.")
            depth += self.is_mark("{") - self.is_mark("}")
            if not depth:
                break
            self.next()
        text = self.text[start : self.token.offset]
        self.next()
        return text, start
