"""The specs of tool calls: sets of tools that share what they have in common.

A set of tools is written out as one grammar only where somebody asks for all of it. To follow an output, its
parts are written out as it gets to them (`constrain.lazy_tools`): so the first mask of 500 tools costs what
that of free text costs, and a tool more or less costs next to nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.base_spec import Spec, shortened
from constrain.checks import FunctionCheck
from constrain.errors import SpecError
from constrain.grammars.ir import Grammar
from constrain.grammars.json_schema.build import schema_grammar
from constrain.grammars.json_schema.options import SchemaGrammar, SchemaOptions
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.tags.build import tagged_grammar
from constrain.grammars.tags.formats import Choice, Embedded, Format, Marks
from constrain.tokenizer_index.network import Network, build_network
from constrain.tool_output import ToolOutput, read_output
from constrain.tool_templates import ToolTemplate
from constrain.tools import Tool, read_tool

if TYPE_CHECKING:
    from constrain.compiled import CompiledSpec
    from constrain.tokenizer_index.vocabulary import Vocabulary

_MOST_SCHEMAS = 4096
_schemas: OrderedDict[tuple[str, SchemaOptions], SchemaGrammar] = OrderedDict()
_lock = threading.Lock()


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
    """

    __slots__ = ("frame", "options", "schemas", "tools")

    tools: dict[str, Tool]
    schemas: dict[str, SchemaGrammar]
    frame: Frame
    options: SchemaOptions

    def __init__(
        self,
        tools: dict[str, Tool],
        schemas: dict[str, SchemaGrammar],
        frame: Frame,
        options: SchemaOptions,
        limits: Limits,
    ) -> None:
        put = object.__setattr__
        put(self, "tools", tools)
        put(self, "schemas", schemas)
        put(self, "frame", frame)
        put(self, "options", options)
        first = [name for name, _ in zip(tools, range(4), strict=False)]
        names = ", ".join(first) + (", …" if len(tools) > len(first) else "")
        super().__init__(
            "tool_calls",
            (tuple(tools.values()), frame, options),
            None,
            parse=self._read_answer,
            ignored=tuple(f"{name}: {p}" for name, schema in schemas.items() for p in schema.ignored),
            shown=shortened(f"[{names}]"),
            watch=Watch(limits),
        )

    def _read_answer(self, answer: str) -> ToolOutput:
        parsers = {name: tool.parse for name, tool in self.tools.items()}
        return read_output(answer, self.frame.template, parsers, self.frame.reasoning)

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
    def network(self) -> Network:
        """The grammar as arrays, made when they are asked for."""
        if self._network is None:
            object.__setattr__(self, "_network", build_network(self.grammar, Watch(self.limits)))
        assert self._network is not None
        return self._network

    def call(self, name: str) -> Format:
        """Return the calls of one tool."""
        return self.frame.template.call(name, Embedded(self.schemas[name].grammar))

    def with_tools(self, *tools: Any) -> ToolSpec:
        """Return the spec with more tools; one that has the name of another takes its place."""
        watch = Watch(self.limits)
        both, schemas = self.tools.copy(), self.schemas.copy()
        for i, given in enumerate(tools):
            tool = read_tool(given, i)
            both[tool.name] = tool
            schemas[tool.name] = arguments_grammar(tool, self.options, watch)
        return self._of(both, schemas)

    def without_tools(self, *names: str) -> ToolSpec:
        """Return the spec without some tools.

        Raises
        ------
        SpecError
            There is no such tool, or none would be left that must be called.
        """
        both, schemas = self.tools.copy(), self.schemas.copy()
        for name in names:
            if name not in both:
                raise SpecError(f"There is no tool {name!r}.")
            del both[name], schemas[name]
        if self.frame.required and not both:
            raise SpecError("A call is required, and no tool is left.")
        return self._of(both, schemas)

    def _of(self, tools: dict[str, Tool], schemas: dict[str, SchemaGrammar]) -> ToolSpec:
        """Return the spec of other tools that is like this one."""
        spec = ToolSpec(tools, schemas, self.frame, self.options, self.limits)
        for check in self.checks:
            assert isinstance(check, FunctionCheck)
            spec = spec.where(check.function, when=check.when)
        return spec

    def compile_lazily(
        self, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits
    ) -> CompiledSpec | None:
        """Return a compiled spec that writes tools out where an output calls them."""
        from constrain.lazy_tools import compile_tools

        return compile_tools(self, vocabulary, cache, limits)


def arguments_grammar(tool: Tool, options: SchemaOptions, watch: Watch) -> SchemaGrammar:
    """Return the grammar of a tool's arguments; those read last are kept by the text of their schema."""
    key = tool.text, options
    with _lock:
        found = _schemas.get(key)
        if found is not None:
            _schemas.move_to_end(key)
            return found
    try:
        found = schema_grammar(tool.schema, options, watch=watch)
    except SpecError as error:
        if error.pointer is None or error.pointer.startswith("#"):
            error.pointer = f"{tool.name}: {error.pointer or '#'}"
        raise
    with _lock:
        _schemas[key] = found
        while len(_schemas) > _MOST_SCHEMAS:
            _schemas.popitem(last=False)
    return found
