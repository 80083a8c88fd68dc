"""What a model's answer with tool calls says: its text, its reasoning and its calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constrain.errors import SpecError
from constrain.grammars.tags.formats import shown
from constrain.tool_templates import ToolTemplate


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call.

    Parameters
    ----------
    name : str
    arguments : object
        A dict of the arguments by name; for a pydantic model an object of it.
    """

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """An answer taken apart.

    Parameters
    ----------
    text : str
        What stands outside calls and reasoning.
    calls : tuple of ToolCall
    reasoning : str or None
        ``None``: there is no reasoning section.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None


def read_output(
    answer: str, template: ToolTemplate, parsers: Mapping[str, Callable[[str], Any]], reasoning: str
) -> ToolOutput:
    """Return what an answer says.

    Parameters
    ----------
    answer : str
        With special tokens written as their names, as tokenizers decode them with
        ``skip_special_tokens=False``.
    template : ToolTemplate
    parsers : mapping
        From the name of each tool to what reads its arguments.
    reasoning : str
        As `tool_calls` was told.
    """
    if not isinstance(answer, str):
        raise SpecError(f"expected an answer as text, found {type(answer).__name__}.")
    thought: str | None = None
    parts: list[str] = []
    calls: list[ToolCall] = []
    think, end_think = map(shown, template.reasoning)
    rest = answer
    if reasoning != "none":
        while (reasoning == "open" and thought is None) or rest.startswith(think):
            inside, found, after = rest.removeprefix(think).partition(end_think)
            if not found:
                raise SpecError(
                    "The reasoning section never ends.", source=answer, offset=len(answer) - len(rest)
                )
            thought = inside if thought is None else f"{thought}\n{inside}"
            rest = after.removeprefix(shown(template.next_section))
    begin, after_name, end = shown(template.begin), shown(template.after_name), shown(template.end)
    opening, closing, separator = shown(template.open), shown(template.close), shown(template.separator)
    decoder = json.JSONDecoder()
    comment, final = shown(template.comment_begin), shown(template.text_begin)
    trigger = template.trigger if isinstance(template.trigger, str) else ""
    first = trigger or shown((template.open or template.begin)[:1])
    if template.text == "section":
        first = begin
        if comment and rest.startswith(comment):
            inside, _, rest = rest.removeprefix(comment).partition(
                shown((*template.reasoning[1], *template.next_section))
            )
            parts.append(inside)
        rest = rest.removeprefix(final) if final else rest
    while parsers:
        if template.text == "instead" and not rest.startswith(first):
            break
        before, found, _ = rest.partition(first)
        if not found:
            break
        parts.append(before)
        rest = rest[len(before) :]
        rest = _without(rest, opening, answer)
        while True:
            rest = _without(rest, begin, answer)
            name, _, rest = rest.partition(after_name)
            try:
                if name not in parsers and template.is_json_name:
                    name = json.loads(f'"{name}"')
                _, length = decoder.raw_decode(rest)
                value = parsers[name](rest[:length])
            except (ValueError, KeyError, RecursionError) as error:
                raise SpecError(
                    f"This is no call of {name!r:.60}: {error}.",
                    source=answer,
                    offset=len(answer) - len(rest),
                ) from error
            calls.append(ToolCall(name, value))
            rest = _without(rest[length:], end, answer)
            if not rest.startswith(separator + begin):
                break
            rest = rest.removeprefix(separator)
        rest = _without(rest, closing, answer)
    return ToolOutput("".join(parts) + rest, tuple(calls), thought)


def _without(rest: str, expected: str, answer: str) -> str:
    if not rest.startswith(expected):
        raise SpecError(f"{expected!r} is expected here.", source=answer, offset=len(answer) - len(rest))
    return rest[len(expected) :]
