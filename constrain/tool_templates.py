"""How models write tool calls: the fixed text and special tokens around names and arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from constrain.errors import SpecError
from constrain.grammars.ir import SpecialToken, pattern_grammar
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_regex
from constrain.grammars.tags.formats import (
    Choice,
    Constant,
    Embedded,
    Format,
    FreeText,
    Marks,
    Repeated,
    SeparatedTags,
    Tag,
    TriggeredTags,
    marks,
)
from constrain.grammars.tags.formats import Sequence as Row

__all__ = ["TEMPLATES", "SpecialToken", "ToolTemplate"]


@dataclass(frozen=True, slots=True)
class ToolTemplate:
    """How one family of models writes tool calls. Marks are tuples of text and `SpecialToken`.

    A call is ``begin``, the tool's name, ``after_name``, its arguments as a JSON object, ``end``.

    Parameters
    ----------
    begin, after_name, end : tuple of str or SpecialToken
    trigger : str or SpecialToken or None
        With what a call announces itself in free text: a beginning of ``begin`` (or of ``open``); ``None``: all
        of its first mark.
    open, close : tuple
        Around all calls together.
    separator : tuple
        Between calls, where no free text may stand there.
    reasoning : (tuple, tuple)
        Around a reasoning section.
    text : {"around", "instead", "section"}
        Free text may come around calls; instead of calls, not beginning like one; or as a section of
        its own (``text_begin``).
    text_begin, call_begin : tuple
        For ``"section"``: what begins a final text, and what ends a section that another one follows.
    is_json_name : bool
        The name stands in a JSON string.
    """

    begin: Marks
    after_name: Marks
    end: Marks = ()
    trigger: str | SpecialToken | None = None
    open: Marks = ()
    close: Marks = ()
    separator: Marks = ()
    reasoning: tuple[Marks, Marks] = (("<think>",), ("</think>",))
    text: str = "around"
    text_begin: Marks = ()
    comment_begin: Marks = ()
    next_section: Marks = ()
    is_json_name: bool = True

    def __post_init__(self) -> None:
        """Check what users give."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "reasoning":
                if not (isinstance(value, tuple) and len(value) == 2 and all(map(_are_marks, value))):
                    raise SpecError(f"ToolTemplate: reasoning={value!r:.80}: expected two tuples of marks.")
                continue
            is_marks = isinstance(field.default, tuple) or field.name in ("begin", "after_name")
            if is_marks and not _are_marks(value):
                raise SpecError(
                    f"ToolTemplate: {field.name}={value!r:.80}: expected a tuple of texts and special tokens."
                )
        if not self.begin or not self.after_name:
            raise SpecError("ToolTemplate: begin and after_name cannot be empty.")
        if self.text not in _TEXTS:
            raise SpecError(
                f"ToolTemplate: text={self.text!r:.40}: expected one of {', '.join(map(repr, _TEXTS))}."
            )

    @property
    def announcement(self) -> Marks:
        """With what calls announce themselves in an answer."""
        if self.text == "section":
            return self.begin
        return (self.open or self.begin)[:1] if self.trigger is None else (self.trigger,)

    def described(self) -> dict[str, Any]:
        """Return the template as JSON data, for `from_description`."""
        return {field.name: _as_json(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_description(cls, data: Mapping[str, Any]) -> ToolTemplate:
        """Return the template that was `described`."""
        return cls(**{name: _from_json(value) for name, value in data.items()})

    def written(self, name: str) -> str:
        """Return a tool's name as it stands in a call."""
        return json.dumps(name, ensure_ascii=False)[1:-1] if self.is_json_name else name

    def call(self, name: str, arguments: Format) -> Tag:
        """Return the calls of one tool, without `begin`."""
        begin = marks(self.written(name), *self.after_name)
        return Tag(begin, arguments, (self.end,) if self.end else ())

    def output(
        self,
        named: Format | None,
        *,
        required: bool,
        parallel: bool,
        text: bool,
        reasoning: str,
        begin: Marks | None = None,
    ) -> Format:
        """Return the whole output.

        Parameters
        ----------
        named : Format or None
            All calls, without `begin`; ``None``: no calls.
        required : bool
            There is a call.
        parallel : bool
            There may be several.
        text : bool
            Free text may stand outside calls.
        reasoning : {"none", "optional", "required", "open"}
        begin : tuple or None
            What stands before ``named`` instead of the template's ``begin``, a beginning of that.
        """
        calls = () if named is None else (Tag(self.begin if begin is None else begin, named),)
        begin, end = self.reasoning
        is_word = reasoning == "optional" and isinstance(begin[0], str)
        # Text that begins a reasoning section would else be free text as well.
        excludes = tuple(mark for mark in begin[:1] if isinstance(mark, str)) if is_word else ()
        if self.text == "section":
            return self._sections(calls, required=required, text=text, reasoning=reasoning)
        main = self._main(calls, required, parallel, text, excludes)
        if reasoning == "none":
            return main
        section: Format = Tag(() if reasoning == "open" else begin, FreeText(), (end,))
        if reasoning == "optional":
            section = Repeated(section, 0, 1)
        return Row((section, main))

    def _main(
        self, calls: tuple[Tag, ...], required: bool, parallel: bool, text: bool, excludes: tuple[str, ...]
    ) -> Format:
        if not calls:
            return FreeText(excludes)
        row = SeparatedTags(calls, self.separator, at_least_one=True, stop_after_first=not parallel)
        region = Tag(self.open, row, (self.close,) if self.close else ()) if self.open else row
        if not text:
            return region if required else Repeated(region, 0, 1)
        if self.text == "instead":
            free = Embedded(pattern_grammar(parse_regex(_NOT_JSON, watch=Watch(Limits()))))
            return region if required else Choice((region, free))
        first = (self.open or self.begin)[0]
        trigger = first if self.trigger is None else self.trigger
        tags = (region,) if isinstance(region, Tag) else calls
        only_one = bool(self.open) or not parallel
        return TriggeredTags((trigger,), tags, required, only_one, excludes)

    def _sections(self, calls: Sequence[Tag], *, required: bool, text: bool, reasoning: str) -> Format:
        """Return sections one after another, the last of them a call or a final text."""
        begin, end = self.reasoning
        parts: list[Format] = []
        if reasoning != "none":
            first = Tag(() if reasoning == "open" else begin, FreeText(), (marks(*end, *self.next_section),))
            again = Tag(begin, FreeText(), (marks(*end, *self.next_section),))
            parts += [first, Repeated(again, 0, None)]
            if reasoning == "optional":
                parts = [Repeated(again, 0, None)]
        last: list[Format] = list(calls)
        if calls and text:
            comment = Tag(self.comment_begin, FreeText(), (marks(*end, *self.next_section),))
            last = [Row((Repeated(comment, 0, 1), Choice(tuple(last))))]
        if not required:
            last.append(Row((Constant(self.text_begin), FreeText())))
        return Row((*parts, Choice(tuple(last))))


_TEXTS = ("around", "instead", "section")


def _are_marks(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(mark, str | SpecialToken) for mark in value)


def _as_json(value: Any) -> Any:
    if isinstance(value, SpecialToken):
        return {"token": value.name}
    return [_as_json(part) for part in value] if isinstance(value, tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return SpecialToken(value["token"])
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


_NOT_JSON = r"\s*([^{\s][\s\S]*)?"


def _token(name: str) -> SpecialToken:
    return SpecialToken(name)


_HERMES = ToolTemplate(
    begin=('<tool_call>\n{"name": "',),
    after_name=('", "arguments": ',),
    end=("}\n</tool_call>",),
    trigger="<tool_call>",
    separator=("\n",),
)
_CHANNEL, _MESSAGE = _token("<|channel|>"), _token("<|message|>")
TEMPLATES: Mapping[str, ToolTemplate] = {
    "hermes": _HERMES,
    # The same text; the marks are the model's own tokens and never spelled in another way.
    "qwen": ToolTemplate(
        begin=(_token("<tool_call>"), '\n{"name": "'),
        after_name=('", "arguments": ',),
        end=("}\n", _token("</tool_call>")),
        separator=("\n",),
        reasoning=((_token("<think>"),), (_token("</think>"),)),
    ),
    "llama_function": ToolTemplate(
        begin=("<function=",), after_name=(">",), end=("</function>",), is_json_name=False
    ),
    "llama_json": ToolTemplate(
        begin=('{"name": "',),
        after_name=('", "parameters": ',),
        end=("}",),
        separator=("; ",),
        text="instead",
    ),
    "mistral": ToolTemplate(
        open=(_token("[TOOL_CALLS]"), "["),
        begin=('{"name": "',),
        after_name=('", "arguments": ',),
        end=("}",),
        separator=(", ",),
        close=("]",),
        reasoning=((_token("[THINK]"),), (_token("[/THINK]"),)),
    ),
    "mistral_args": ToolTemplate(
        begin=(_token("[TOOL_CALLS]"),),
        after_name=(_token("[ARGS]"),),
        reasoning=((_token("[THINK]"),), (_token("[/THINK]"),)),
        is_json_name=False,
    ),
    "deepseek": ToolTemplate(
        open=(_token("<｜tool▁calls▁begin｜>"),),
        begin=(_token("<｜tool▁call▁begin｜>"),),
        after_name=(_token("<｜tool▁sep｜>"),),
        end=(_token("<｜tool▁call▁end｜>"),),
        close=(_token("<｜tool▁calls▁end｜>"),),
        is_json_name=False,
    ),
    "harmony": ToolTemplate(
        begin=(_CHANNEL, "commentary to=functions."),
        after_name=(" ", _token("<|constrain|>"), "json", _MESSAGE),
        reasoning=((_CHANNEL, "analysis", _MESSAGE), (_token("<|end|>"),)),
        text="section",
        text_begin=(_CHANNEL, "final", _MESSAGE),
        comment_begin=(_CHANNEL, "commentary", _MESSAGE),
        next_section=(_token("<|start|>"), "assistant"),
        is_json_name=False,
    ),
}


def template_of(given: str | ToolTemplate) -> ToolTemplate:
    """Return a template by its name.

    Raises
    ------
    SpecError
        There is none.
    """
    if isinstance(given, ToolTemplate):
        return given
    if not isinstance(given, str) or given not in TEMPLATES:
        known = ", ".join(map(repr, TEMPLATES))
        raise SpecError(f"template={given!r} is not known.", hint=f"Known: {known}; or pass a ToolTemplate.")
    return TEMPLATES[given]
