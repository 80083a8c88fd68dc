"""Tools as people have them: OpenAI's dicts, schemas, Python functions, pydantic models."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constrain.errors import SpecError
from constrain.pickling import Held

_NAME = re.compile(r"[^\s\"'<>{}\[\]\\\x00-\x1f\x7f\ud800-\udfff]{1,256}")
_PARAMETER_KEYS = ("parameters", "input_schema", "inputSchema")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Parameters
    ----------
    name : str
    schema : dict
        Of its arguments: a JSON object.
    text : str
        The schema as JSON text, which identifies it.
    parse : callable
        From the JSON text of the arguments to their values by name.
    origin : object
        What the tool was read from, where ``parse`` depends on it: a function, a type, or a dict with a type.
    """

    name: str
    schema: dict[str, Any] = field(compare=False)
    text: str
    parse: Callable[[str], Any] = field(compare=False)
    origin: Any = None

    def __hash__(self) -> int:
        # Sets of hundreds of tools are hashed as a whole whenever one comes or goes.
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.origin is None:
            return read_tool, ({"name": self.name, "parameters": json.loads(self.text)},)
        return read_tool, (Held(self.origin, f"The tool {self.name!r}"),)


def read_tools(tools: Iterable[Any]) -> tuple[Tool, ...]:
    """Return tools, each checked.

    Raises
    ------
    SpecError
        One is none of the known kinds, or two have one name.
    """
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise SpecError(f"expected a list of tools, found {tools!r:.40}.")
    found: dict[str, Tool] = {}
    for i, given in enumerate(tools):
        tool = read_tool(given, i)
        if tool.name in found:
            raise SpecError(f"Two tools are called {tool.name!r}.", pointer=f"#/{i}")
        found[tool.name] = tool
    return tuple(found.values())


def read_tool(given: Any, index: int = 0) -> Tool:
    """Return one tool; ``index`` is its place in the list, for errors."""
    place = f"#/{index}"
    if isinstance(given, Tool):
        return given
    if isinstance(given, Mapping):
        return _from_mapping(given, place)
    if isinstance(given, type):
        from constrain.grammars.types import type_schema

        found = type_schema(given)
        return _tool(given.__name__, found.schema, found.parse, place, given)
    if callable(given):
        return _from_function(given, place)
    raise SpecError(
        f"{given!r:.40} is no tool.",
        pointer=place,
        hint='Tools are {"name": ..., "parameters": ...}, Python functions or pydantic models.',
    )


def _from_mapping(given: Mapping[str, Any], place: str) -> Tool:
    if given.get("type", "function") != "function":
        raise SpecError(f"type={given['type']!r}: only functions can be called.", pointer=f"{place}/type")
    inner = given.get("function", given)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise SpecError("The tool has no name.", pointer=place)
    schema: Any = next((inner[key] for key in _PARAMETER_KEYS if inner.get(key) is not None), {})
    if isinstance(schema, type):
        from constrain.grammars.types import type_schema

        found = type_schema(schema)
        origin = {"name": inner["name"], "parameters": schema}
        return _tool(inner["name"], found.schema, found.parse, place, origin)
    if not isinstance(schema, Mapping):
        raise SpecError(
            f"{inner['name']!r} has parameters that are no schema: {schema!r:.40}.", pointer=place
        )
    return _tool(inner["name"], dict(schema), json.loads, place)


def _from_function(given: Callable[..., Any], place: str) -> Tool:
    """Return the tool of a Python function: its parameters are the properties of an object."""
    import pydantic

    from constrain.grammars.types import type_schema

    name = getattr(given, "__name__", type(given).__name__)
    try:
        hints = typing.get_type_hints(given, include_extras=True)
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError, NameError) as error:
        raise SpecError(f"The signature of {name!r} cannot be read: {error}.", pointer=place) from error
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise SpecError(f"{name!r} takes {str(parameter)!r}, which no schema says.", pointer=place)
        default = ... if parameter.default is parameter.empty else parameter.default
        # Field names must not begin with an underscore or hide what models have.
        alias = pydantic.Field(default, alias=parameter.name)
        fields[f"field_{len(fields)}"] = (hints.get(parameter.name, Any), alias)
    model = pydantic.create_model(name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    found = type_schema(model)
    names = [parameter.name for parameter in parameters]

    def parse(text: str) -> dict[str, Any]:
        value = found.parse(text)
        given_names = value.model_fields_set
        return {
            name: getattr(value, field)
            for name, field in zip(names, type(value).model_fields, strict=True)
            if field in given_names
        }

    return _tool(name, found.schema, parse, place, given)


def _tool(
    name: str, schema: dict[str, Any], parse: Callable[[str], Any], place: str, origin: Any = None
) -> Tool:
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r:.60} is no name of a tool.", pointer=place, hint="Use letters, digits, _ and -."
        )
    kind = schema.get("type", "object")
    if kind not in ("object", "dict"):
        raise SpecError(f"The arguments of {name!r} are no object but {kind!r:.40}.", pointer=place)
    if schema.get("type") != "object":
        schema = {**schema, "type": "object"}
    try:
        text = json.dumps(schema, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"The schema of {name!r} is not JSON: {error}.", pointer=place) from error
    return Tool(name, schema, text, parse, origin)


def chosen(tools: tuple[Tool, ...], tool_choice: Any) -> tuple[tuple[Tool, ...], bool]:
    """Return the tools that may be called, and whether one must be.

    Parameters
    ----------
    tool_choice : "auto", "none", "required", the name of a tool, or ``{"type": "function", "function":
        {"name": ...}}``
    """
    name = tool_choice
    if isinstance(tool_choice, Mapping):
        inner = tool_choice.get("function", tool_choice)
        name = inner.get("name") if isinstance(inner, Mapping) else None
    elif tool_choice in ("auto", "none", "required"):
        if tool_choice == "none":
            return (), False
        if tool_choice == "required" and not tools:
            raise SpecError("tool_choice='required' needs a tool.")
        return tools, tool_choice == "required"
    found = tuple(tool for tool in tools if tool.name == name)
    if not found:
        raise SpecError(
            f"tool_choice={tool_choice!r:.60} names no tool.",
            hint="It is 'auto', 'none', 'required' or the name of a tool.",
        )
    return found, True
