"""The specs of tool calls: sets of tools that share what they have in common.

A set of tools is written out as one grammar only where somebody asks for all of it. To follow an output, its
parts are written out as it gets to them (`constrain.lazy_tools`): so the first mask of 500 tools costs what
that of free text costs, and a tool more or less costs next to nothing.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.base_spec import Output, Spec, shortened
from constrain.checks import Check
from constrain.errors import SpecError
from constrain.grammars.ir import Grammar
from constrain.grammars.json_schema.build import explained_grammar
from constrain.grammars.json_schema.options import SchemaGrammar, SchemaOptions
from constrain.grammars.json_schema.plain import MOST_DEEP, is_plain
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.tags.build import tagged_grammar
from constrain.grammars.tags.formats import Choice, Constant, Embedded, Format, Marks
from constrain.tokenizer_index.special_tokens import named_in
from constrain.tool_output import ToolOutput, read_output
from constrain.tool_templates import ToolTemplate
from constrain.tools import Tool, read_tool, read_tools

if TYPE_CHECKING:
    from constrain.compiled import CompiledSpec
    from constrain.tokenizer_index.vocabulary import Vocabulary

_OPTIONS = ("whitespace", "unsupported", "max_whitespace")
_MOST_GRAMMARS = 32
_MOST_CHECKED = 4096
_MOST_STATES_PER_CHARACTER = 16
_grammars: OrderedDict[tuple[str, SchemaOptions], SchemaGrammar] = OrderedDict()
_checked: OrderedDict[tuple[str, SchemaOptions], NotEnforced] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class NotEnforced:
    """What of a tool's schema its grammar doesn't enforce, as JSON pointers.

    Parameters
    ----------
    dropped : tuple of str
        Nobody enforces it.
    left_open : tuple of str
        A check does, when an answer is whole.
    """

    dropped: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What tool calls stand in.

    Parameters
    ----------
    template : ToolTemplate
    required, parallel, text : bool
    reasoning : str
        As `ToolTemplate.output` takes them.
    """

    template: ToolTemplate
    required: bool
    parallel: bool
    text: bool
    reasoning: str

    def grammar(self, named: Format | None, watch: Watch, begin: Marks | None = None) -> Grammar:
        """Return the grammar of the output around ``named``; ``begin`` may stand for the template's."""
        output = self.template.output(
            named,
            required=self.required,
            parallel=self.parallel,
            text=self.text,
            reasoning=self.reasoning,
            begin=begin,
        )
        return tagged_grammar(output, watch=watch)


class ToolSpec(Spec):
    """The spec of answers that may call tools; made by `tool_calls`.

    Attributes
    ----------
    tools : dict of str to Tool
        By name.
    frame : Frame
    options : SchemaOptions
        How the schemas are read.

    ``known`` is a spec with the same options, whose tools are checked already.
    """

    __slots__ = ("_not_enforced", "frame", "options", "tools")

    tools: dict[str, Tool]
    frame: Frame
    options: SchemaOptions
    _not_enforced: dict[str, NotEnforced]

    def __init__(
        self,
        tools: dict[str, Tool],
        frame: Frame,
        options: SchemaOptions,
        limits: Limits,
        known: ToolSpec | None = None,
    ) -> None:
        watch = Watch(limits)
        before = {} if known is None else known.tools
        found = {
            name: known._not_enforced[name]
            if known is not None and before.get(name) is tool
            else not_enforced(tool, options, watch)
            for name, tool in tools.items()
        }
        put = object.__setattr__
        put(self, "_not_enforced", found)
        put(self, "tools", tools)
        put(self, "frame", frame)
        put(self, "options", options)
        first = [name for name, _ in zip(tools, range(4), strict=False)]
        names = ", ".join(first) + (", …" if len(tools) > len(first) else "")
        checks: tuple[Check, ...] = ()
        if not all(tool.is_exact and not found[name].left_open for name, tool in tools.items()):
            from constrain.type_check import TypeCheck

            checks = (TypeCheck("the tools", tuple(tools.values()), self._read_answer),)
        super().__init__(
            "tool_calls",
            (tuple(tools.values()), frame, options),
            None,
            parse=self._read_answer,
            ignored=tuple(f"{name}: {place}" for name, parts in found.items() for place in parts.dropped),
            remake=partial(ToolSpec, tools, frame, options, limits),
            shown=shortened(f"[{names}]"),
            watch=watch,
            checks=checks,
        )

    @property
    def _has_functions(self) -> bool:
        """Did somebody call ``where``? What types demand is a check as well."""
        if not self.checks:
            # What reads Python types takes 30 ms to import, and sets of plain dicts never need it.
            return False
        from constrain.type_check import TypeCheck

        return not all(isinstance(check, TypeCheck) for check in self.checks)

    def source(self) -> dict[str, Any] | None:
        """Return what the spec was made from, as JSON data; ``None`` for one with Python functions (`where`).

        ``{"tools", "template", "frame", "options"}``. Tools made of functions and types are there as their schemas.
        """
        if self._has_functions:
            return None
        frame = asdict(self.frame)
        del frame["template"]
        return {
            "tools": [
                {"name": name, "parameters": json.loads(tool.text)} for name, tool in self.tools.items()
            ],
            "template": self.frame.template.described(),
            "frame": frame,
            "options": {name: getattr(self.options, name) for name in _OPTIONS},
        }

    def _read_answer(self, answer: str) -> ToolOutput:
        return self._taken_apart((answer,), is_by_name=True)

    def parse_output(self, output: Output) -> ToolOutput:
        """Return what an answer says, whose special tokens are told from text."""
        return self._taken_apart(output, is_by_name=False)

    def _taken_apart(self, output: Output, *, is_by_name: bool) -> ToolOutput:
        parsers = {
            name: _checking(tool, self.options, self.limits)
            if self._not_enforced[name].left_open
            else tool.parse
            for name, tool in self.tools.items()
        }
        frame = self.frame
        return read_output(output, frame.template, parsers, frame.reasoning, is_by_name=is_by_name)

    @property
    def grammar(self) -> Grammar:
        """The grammar of all tools, made when it is asked for."""
        if self._grammar is None:
            calls = [self.call(name) for name in self.tools]
            named = Choice(tuple(calls)) if calls else None
            object.__setattr__(self, "_grammar", self.frame.grammar(named, Watch(self.limits)))
        assert self._grammar is not None
        return self._grammar

    @property
    def special_tokens(self) -> tuple[str | int, ...]:
        """The special tokens that the spec names: schemas name none."""
        named = self.frame.template.call("name", Constant(("",))) if self.tools else None
        return named_in(t.pattern for t in self.frame.grammar(named, Watch(self.limits)).terminals)

    def call(self, name: str) -> Format:
        """Return the calls of one tool."""
        read = arguments_grammar(self.tools[name], self.options, Watch(self.limits))
        return self.frame.template.call(name, Embedded(read.grammar))

    def _refuse_checks(self) -> None:
        if self._has_functions:
            raise SpecError(
                "The functions given to where() know this set of tools.",
                hint="Change the tools first, then call where().",
            )

    def with_tools(self, *tools: Any) -> ToolSpec:
        """Return the spec with more tools; one that has the name of another takes its place."""
        self._refuse_checks()
        both = self.tools.copy()
        for i, given in enumerate(tools):
            tool = read_tool(given, i)
            both[tool.name] = tool
        return self._of(both)

    def without_tools(self, *names: str) -> ToolSpec:
        """Return the spec without some tools.

        Raises
        ------
        SpecError
            There is no such tool, or none would be left that must be called.
        """
        self._refuse_checks()
        both = self.tools.copy()
        for name in names:
            if name not in both:
                raise SpecError(f"There is no tool {name!r}.")
            del both[name]
        if self.frame.required and not both:
            raise SpecError("A call is required, and no tool is left.")
        return self._of(both)

    def _of(self, tools: dict[str, Tool]) -> ToolSpec:
        """Return the spec of other tools that is like this one."""
        return ToolSpec(tools, self.frame, self.options, self.limits, self)

    def compile_lazily(
        self, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits
    ) -> CompiledSpec | None:
        """Return a compiled spec that writes tools out where an output calls them."""
        from constrain.lazy_tools import compile_tools

        return compile_tools(self, vocabulary, cache, limits)


def tools_from_source(source: Mapping[str, Any], limits: Limits) -> ToolSpec:
    """Return the spec that had this `ToolSpec.source`."""
    tools = {tool.name: tool for tool in read_tools(source["tools"])}
    frame = Frame(ToolTemplate.from_description(source["template"]), **source["frame"])
    return ToolSpec(tools, frame, SchemaOptions(**source["options"]), limits)


def not_enforced(tool: Tool, options: SchemaOptions, watch: Watch) -> NotEnforced:
    """Check a tool's schema; return what of it is not enforced. What is known of a schema is kept by its text."""
    key = tool.text, options
    with _lock:
        found = _checked.get(key)
    if found is None:
        found = NotEnforced()
        if not _is_plain(tool, options, watch.limits):
            read = arguments_grammar(tool, options, watch)
            found = NotEnforced(read.ignored, read.left_open)
        with _lock:
            _checked[key] = found
            while len(_checked) > _MOST_CHECKED:
                _checked.popitem(last=False)
    return found


def _is_plain(tool: Tool, options: SchemaOptions, limits: Limits) -> bool:
    """Is it certain, without reading the schema, that nothing of it is refused or left out?"""
    room = min(limits.positions, limits.states)
    return (
        # Else it is a pattern, which is read with a schema.
        options.whitespace in ("flexible", "compact")
        and limits.nesting > MOST_DEEP
        and len(tool.text) * _MOST_STATES_PER_CHARACTER <= room
        and is_plain(json.loads(tool.text))
    )


@lru_cache(maxsize=_MOST_GRAMMARS)
def _checking(tool: Tool, options: SchemaOptions, limits: Limits) -> Callable[[str], Any]:
    """Return what reads the arguments of a tool whose grammar leaves parts of its schema open."""
    # Sets of plain tools never need it.
    from constrain.schema_check import schema_checks

    watch = Watch(limits)
    read = arguments_grammar(tool, options, watch)
    (check,) = schema_checks(read, options, (tool.text, options), watch)

    def parse(text: str) -> Any:
        failure = check.explain(text.encode("utf-8", errors="surrogatepass"))
        if failure is not None:
            raise SpecError(f"expected {failure.expected}", pointer=failure.pointer)
        return tool.parse(text)

    return parse


def arguments_grammar(tool: Tool, options: SchemaOptions, watch: Watch) -> SchemaGrammar:
    """Return the grammar of a tool's arguments.

    Only those read last are kept: a set of tools needs few of them, and hundreds take megabytes.
    """
    key = tool.text, options
    with _lock:
        found = _grammars.get(key)
        if found is not None:
            _grammars.move_to_end(key)
            return found
    try:
        # Users' dicts may have been changed since they were read.
        found = explained_grammar(json.loads(tool.text), options, watch=watch)
    except SpecError as error:
        if error.pointer is None or error.pointer.startswith("#"):
            error.pointer = f"{tool.name}: {error.pointer or '#'}"
        raise
    with _lock:
        _grammars[key] = found
        while len(_grammars) > _MOST_GRAMMARS:
            _grammars.popitem(last=False)
    return found
