"""The constructors of specs with tagged regions: `structural_tag`, `tool_calls`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from constrain.base_spec import Spec, shortened
from constrain.checks import Check
from constrain.errors import SpecError
from constrain.grammars.ir import Grammar
from constrain.grammars.json_schema.options import SchemaOptions
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.tags.build import tagged_grammar
from constrain.grammars.tags.read import read_structural_tag
from constrain.tool_output import ToolCall, ToolOutput
from constrain.tool_spec import Frame, ToolSpec
from constrain.tool_templates import ToolTemplate, template_of
from constrain.tools import chosen, read_tools

__all__ = ["ToolCall", "ToolOutput", "ToolTemplate", "structural_tag", "tool_calls"]

_REASONING = ("none", "optional", "required", "open")


def structural_tag(
    tag: Any,
    *,
    whitespace: str = "flexible",
    unsupported: str = "raise",
    max_whitespace: int = 64,
    limits: Limits | None = None,
) -> Spec:
    """Return the spec of free text with tagged regions, as servers take it in ``response_format``.

    Parameters
    ----------
    tag : dict or str
        ``{"type": "structural_tag", "format": {...}}``, the older ``{"type": "structural_tag",
        "structures": [...], "triggers": [...]}``, an element (``{"type": "triggered_tags", ...}``) alone, or
        the JSON text of any of these. See ``docs/tool_calls.md``.
    whitespace, unsupported, max_whitespace
        For the JSON Schemas in it, as in `json_schema`.
    limits : Limits
        Upper limits on reading it.

    Raises
    ------
    SpecError
        It is malformed, with the place as a JSON pointer.
    UnsupportedFeatureError
        It asks for what cannot be enforced.
    EmptyLanguageError
        No text is in it.
    LimitExceededError
        It is too large.
    """
    given: dict[str, Any] = {
        "whitespace": whitespace,
        "unsupported": unsupported,
        "max_whitespace": max_whitespace,
    }
    options = SchemaOptions(**given)
    watch = Watch(limits or Limits())

    def read_grammar(text: str) -> Grammar:
        from constrain.grammar_spec import grammar

        return grammar(text, limits=watch.limits).grammar

    output, left_open = read_structural_tag(tag, options, read_grammar, watch=watch)
    text = tag if isinstance(tag, str) else json.dumps(tag, ensure_ascii=False)
    checks: tuple[Check, ...] = ()
    if left_open:
        from constrain.schema_check import schema_checks
        from constrain.tag_check import TagCheck

        inner = {id(read.grammar): schema_checks(read, options, id(read), watch) for read in left_open}
        checks = (TagCheck((text, tuple(given.items())), output, inner),)
    default = SchemaOptions()
    return Spec(
        "structural_tag",
        text,
        tagged_grammar(output, watch=watch),
        options=tuple((name, value) for name, value in given.items() if value != getattr(default, name)),
        source={"tag": text, "options": given},
        remake=partial(structural_tag, text, **given, limits=watch.limits),
        shown=shortened(text),
        watch=watch,
        checks=checks,
    )


def tool_calls(
    tools: Iterable[Any],
    *,
    template: str | ToolTemplate = "hermes",
    tool_choice: Any = "auto",
    parallel: bool = True,
    text: bool | None = None,
    reasoning: str = "none",
    whitespace: str = "flexible",
    unsupported: str = "raise",
    limits: Limits | None = None,
) -> ToolSpec:
    """Return the spec of a model's answer that may call tools. ``parse`` gives a `ToolOutput`.

    Parameters
    ----------
    tools : iterable
        OpenAI's dicts (``{"type": "function", "function": {"name", "parameters"}}``, or the inner part alone),
        Anthropic's and MCP's (``input_schema``, ``inputSchema``), Python functions, pydantic models.
    template : str or ToolTemplate
        How the model writes calls: ``"hermes"``, ``"qwen"``, ``"llama_function"``, ``"llama_json"``,
        ``"mistral"``, ``"mistral_args"``, ``"deepseek"``, ``"harmony"``.
    tool_choice : str or dict
        ``"auto"``, ``"none"``, ``"required"``, the name of a tool, or a dict of OpenAI or Anthropic.
    parallel : bool
        May several calls be made?
    text : bool or None
        May free text stand outside calls? ``None``: unless a call is required.
    reasoning : {"none", "optional", "required", "open"}
        A reasoning section first; ``"open"``: the prompt has begun it already.
    whitespace, unsupported
        For the arguments, as in `json_schema`.
    limits : Limits
        Upper limits on reading the tools.

    Raises
    ------
    SpecError
        A tool or a schema is malformed, or an option has a value it cannot have.
    UnsupportedFeatureError
        A schema asks for what cannot be enforced.
    EmptyLanguageError
        A tool can never be called.
    LimitExceededError
        The tools are too large.
    """
    if reasoning not in _REASONING:
        raise SpecError(f"reasoning={reasoning!r}: expected one of {', '.join(map(repr, _REASONING))}.")
    for name, value in (("parallel", parallel), ("text", text)):
        if not isinstance(value, bool) and not (name == "text" and value is None):
            raise SpecError(f"{name}={value!r}: expected True or False.")
    form = template_of(template)
    read = read_tools(tools)
    options = SchemaOptions(whitespace=whitespace, unsupported=unsupported)
    watch = Watch(limits or Limits())
    callable_tools, required = chosen(read, tool_choice)
    frame = Frame(form, required, parallel, not required if text is None else text, reasoning)
    return ToolSpec({tool.name: tool for tool in callable_tools}, frame, options, watch.limits)
