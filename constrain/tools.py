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
_encode = json.JSONEncoder(ensure_ascii=False).encode
_PARAMETER_KEYS = ("parameters", "input_schema", "inputSchema")
# What tools say beside their names and parameters, in the shapes of OpenAI (chat and responses), Anthropic, MCP and
# chat templates: told to models, or to the program that calls, and nothing that an answer could break.
_NOTES = frozenset(
    (
        *(
            "type",
            "description",
            "strict",
            "title",
            "annotations",
            "examples",
            "input_examples",
            "icons",
            "_meta",
        ),
        *("return", "returns", "response", "outputSchema", "output_schema", "execution"),
        *("cache_control", "defer_loading", "allowed_callers", "eager_input_streaming"),
    )
)
_INSIDE = _NOTES | {"name", *_PARAMETER_KEYS}
_AROUND = frozenset(("type", "function", "strict", "cache_control"))


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
    is_exact : bool
        ``parse`` reads every text of the schema. Else it may refuse some: types have validators.
    """

    name: str
    schema: dict[str, Any] = field(compare=False)
    text: str
    parse: Callable[[str], Any] = field(compare=False)
    origin: Any = None
    is_exact: bool = field(default=True, compare=False)

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
        return _tool(given.__name__, found.schema, found.parse, place, given, is_exact=found.is_exact)
    if callable(given):
        return _from_function(given, place)
    raise SpecError(
        f"{given!r:.40} is no tool.",
        pointer=place,
        hint='Tools are {"name": ..., "parameters": ...}, Python functions or pydantic models.',
    )


def _from_mapping(given: Mapping[str, Any], place: str) -> Tool:
    is_wrapped = "function" in given
    kind = given.get("type", "function")
    # Anthropic calls tools with an input schema "custom", OpenAI those that take free text.
    if kind != "function" and not (kind == "custom" and "input_schema" in given):
        raise SpecError(f"type={kind!r:.40}: only functions can be called.", pointer=f"{place}/type")
    inner = given["function"] if is_wrapped else given
    if is_wrapped:
        _only(given, _AROUND, place)
        place = f"{place}/function"
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise SpecError("The tool has no name.", pointer=place)
    name = inner["name"]
    _only(inner, _INSIDE, place)
    found_keys = [key for key in _PARAMETER_KEYS if inner.get(key) is not None]
    if len(found_keys) > 1:
        raise SpecError(
            f"{name!r} has both {found_keys[0]!r} and {found_keys[1]!r}.", pointer=f"{place}/{found_keys[1]}"
        )
    strict = inner.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise SpecError(f"strict={strict!r:.40}: expected true or false.", pointer=f"{place}/strict")
    schema: Any = inner[found_keys[0]] if found_keys else {}
    if isinstance(schema, type):
        from constrain.grammars.types import type_schema

        found = type_schema(schema)
        origin = {"name": name, "parameters": schema}
        return _tool(name, found.schema, found.parse, place, origin, is_exact=found.is_exact)
    if not isinstance(schema, Mapping):
        raise SpecError(
            f"{name!r} has parameters that are no schema: {schema!r:.40}.",
            pointer=f"{place}/{found_keys[0]}",
        )
    return _tool(name, dict(schema), json.loads, place)


def _only(given: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    """Refuse keys that nobody reads: what they ask for would be dropped silently."""
    if known.issuperset(given):
        return
    for key in given:
        if key not in known:
            import difflib  # Slow to load, and needed for nothing else.

            near = difflib.get_close_matches(str(key), sorted(known), 1)
            raise SpecError(
                f"{key!r:.60} is no key of a tool.",
                pointer=f"{place}/{key}",
                hint=f"Did you mean {near[0]!r}?"
                if near
                else "A tool has 'name', 'description', 'parameters' (or 'input_schema') and 'strict'.",
            )


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

    return _tool(name, found.schema, parse, place, given, is_exact=found.is_exact)


def _tool(
    name: str,
    schema: dict[str, Any],
    parse: Callable[[str], Any],
    place: str,
    origin: Any = None,
    *,
    is_exact: bool = True,
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
        text = _encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"The schema of {name!r} is not JSON: {error}.", pointer=place) from error
    return Tool(name, schema, text, parse, origin, is_exact)


def chosen(tools: tuple[Tool, ...], tool_choice: Any) -> tuple[tuple[Tool, ...], bool]:
    """Return the tools that may be called, and whether one must be.

    Parameters
    ----------
    tool_choice : str or dict
        ``"auto"``, ``"none"``, ``"required"`` (or ``"any"``), the name of a tool; the dicts of OpenAI: ``{"type":
        "function", "function": {"name": ...}}``, ``{"type": "function", "name": ...}``, ``{"type": "allowed_tools",
        "mode": ..., "tools": [...]}``; or of Anthropic: ``{"type": "auto" | "any" | "none"}``, ``{"type":
        "tool", "name": ...}``.
    """
    if isinstance(tool_choice, Mapping):
        return _chosen_by_mapping(tools, tool_choice)
    if isinstance(tool_choice, str) and tool_choice in _MODES:
        return _by_mode(tools, tool_choice)
    return _named(tools, (tool_choice,), tool_choice), True


_MODES = ("auto", "none", "required", "any")
_CHOICE_HINT = (
    "It is 'auto', 'none', 'required', the name of a tool, or a dict as OpenAI and Anthropic take it."
)


def _by_mode(tools: tuple[Tool, ...], mode: str) -> tuple[tuple[Tool, ...], bool]:
    if mode == "none":
        return (), False
    if mode != "auto" and not tools:
        raise SpecError(f"tool_choice={mode!r} needs a tool.")
    return tools, mode != "auto"


def _chosen_by_mapping(tools: tuple[Tool, ...], given: Mapping[str, Any]) -> tuple[tuple[Tool, ...], bool]:
    kind = given.get("type", "function")
    if given.get("disable_parallel_tool_use"):
        raise SpecError(
            "tool_choice: disable_parallel_tool_use is not read here.", hint="Pass parallel=False."
        )
    if kind in ("auto", "any", "none"):
        return _by_mode(tools, kind)
    inner = given.get("allowed_tools" if kind == "allowed_tools" else "function", given)
    if not isinstance(inner, Mapping):
        raise SpecError(f"tool_choice={given!r:.60} names no tool.", hint=_CHOICE_HINT)
    if kind == "allowed_tools":
        mode, allowed = inner.get("mode", "auto"), inner.get("tools")
        if mode not in ("auto", "required") or not isinstance(allowed, list):
            raise SpecError(
                f"tool_choice={given!r:.80}: expected a mode, 'auto' or 'required', and a list of tools."
            )
        names = [one.get("function", one).get("name") if isinstance(one, Mapping) else one for one in allowed]
        return _by_mode(_named(tools, tuple(names), given), mode)
    if kind not in ("function", "tool"):
        raise SpecError(f"tool_choice has the type {kind!r:.40}.", hint=_CHOICE_HINT)
    return _named(tools, (inner.get("name"),), given), True


def _named(tools: tuple[Tool, ...], names: tuple[Any, ...], given: Any) -> tuple[Tool, ...]:
    """Return the tools of some names."""
    for name in names:
        if not any(tool.name == name for tool in tools):
            known = ", ".join(repr(tool.name) for tool in tools[:5]) + (", ..." if len(tools) > 5 else "")
            raise SpecError(
                f"tool_choice={given!r:.80} names no tool: {name!r:.60} is not there.",
                hint=_CHOICE_HINT + (f" Tools: {known}." if tools else ""),
            )
    return tuple(tool for tool in tools if tool.name in names)
