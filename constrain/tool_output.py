"""What a model's answer with tool calls says: its text, its reasoning and its calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from constrain.errors import SpecError
from constrain.grammars.ir import SpecialToken
from constrain.grammars.tags.formats import Marks, shown
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
    answer: tuple[str | SpecialToken, ...],
    template: ToolTemplate,
    parsers: Mapping[str, Callable[[str], Any]],
    reasoning: str,
    *,
    is_by_name: bool,
) -> ToolOutput:
    """Return what an answer says.

    Parameters
    ----------
    answer : tuple of str and SpecialToken
    template : ToolTemplate
    parsers : mapping
        From the name of each tool to what reads its arguments.
    reasoning : str
        As `tool_calls` was told.
    is_by_name : bool
        Special tokens are written as their names, as tokenizers decode them with ``skip_special_tokens=False``. Free
        text that spells such a name can't be told from the token then.

    Raises
    ------
    SpecError
        It is no answer.
    """
    if not all(isinstance(part, str | SpecialToken) for part in answer):
        raise SpecError(f"expected an answer as text, found {type(answer[0]).__name__}.")
    return _Reader(answer, template, parsers, is_by_name).read(reasoning)


# Special tokens are read as lone surrogates, which no text holds; those above stand for bytes that are no UTF-8.
_FIRST_SURROGATE, _N_SURROGATES = 0xD800, 0x400


class _Reader:
    """Takes one answer apart.

    Attributes
    ----------
    rest : str
        What is still to be read, with a character for each special token.
    """

    def __init__(
        self,
        answer: tuple[str | SpecialToken, ...],
        template: ToolTemplate,
        parsers: Mapping[str, Callable[[str], Any]],
        is_by_name: bool,
    ) -> None:
        self._template = template
        self._parsers = parsers
        self._is_by_name = is_by_name
        self._characters: dict[SpecialToken, str] = {}
        self._answer = self.spelled(answer)
        self.rest = self._answer

    def spelled(self, marks: Iterable[str | SpecialToken]) -> str:
        """Return marks as they stand in ``rest``."""
        return "".join(mark if isinstance(mark, str) else self._character(mark) for mark in marks)

    def _character(self, token: SpecialToken) -> str:
        if self._is_by_name:
            return str(token.name)
        found = self._characters.get(token)
        if found is None:
            assert len(self._characters) < _N_SURROGATES
            found = self._characters[token] = chr(_FIRST_SURROGATE + len(self._characters))
        return found

    def error(self, message: str) -> SpecError:
        """Return the error that the rest is not as it should be."""
        names = {ord(character): str(token.name) for token, character in self._characters.items()}
        read = self._answer[: len(self._answer) - len(self.rest)].translate(names)
        return SpecError(message, source=self._answer.translate(names), offset=len(read))

    def take(self, marks: Marks) -> None:
        """Read marks that must come."""
        expected = self.spelled(marks)
        if not self.rest.startswith(expected):
            raise self.error(f"{shown(marks)!r} is expected here.")
        self.rest = self.rest[len(expected) :]

    def take_if(self, marks: Marks) -> bool:
        """Read marks if they come; there are some."""
        expected = self.spelled(marks)
        if not expected or not self.rest.startswith(expected):
            return False
        self.rest = self.rest[len(expected) :]
        return True

    def take_up_to(self, marks: Marks) -> str | None:
        """Read text up to marks, and these; ``None`` where they don't come."""
        inside, found, rest = self.rest.partition(self.spelled(marks))
        if not found:
            return None
        self.rest = rest
        return inside

    def read(self, reasoning: str) -> ToolOutput:
        """Read the whole answer."""
        template = self._template
        thought = None if reasoning == "none" else self._reasoning(is_begun=reasoning == "open")
        parts: list[str] = []
        calls: list[ToolCall] = []
        if template.text == "section":
            if self.take_if(template.comment_begin):
                comment = self.take_up_to((*template.reasoning[1], *template.next_section))
                if comment is None:
                    raise self.error("The comment never ends.")
                parts.append(comment)
            self.take_if(template.text_begin)
        first = self.spelled(template.announcement)
        while self._parsers:
            if template.text == "instead" and not self.rest.startswith(first):
                break
            before, found, _ = self.rest.partition(first)
            if not found:
                break
            parts.append(before)
            self.rest = self.rest[len(before) :]
            self.take(template.open)
            self.take(template.begin)
            calls.append(self._call())
            again = (*template.separator, *template.begin)
            while self.take_if(again):
                calls.append(self._call())
            self.take(template.close)
        return ToolOutput("".join(parts) + self.rest, tuple(calls), thought)

    def _reasoning(self, *, is_begun: bool) -> str | None:
        """Read sections of reasoning."""
        begin, end = self._template.reasoning
        sections: list[str] = []
        while (is_begun and not sections) or self.take_if(begin):
            if is_begun and not sections:
                self.take_if(begin)
            inside = self.take_up_to(end)
            if inside is None:
                raise self.error("The reasoning section never ends.")
            sections.append(inside)
            self.take_if(self._template.next_section)
        return "\n".join(sections) if sections else None

    def _call(self) -> ToolCall:
        """Read a call after its beginning."""
        after = self.spelled(self._template.after_name)
        written = {name: self._template.written(name) + after for name in self._parsers}
        name = max(
            (name for name, begin in written.items() if self.rest.startswith(begin)), key=len, default=None
        )
        if name is None:
            raise self.error(f"{self.rest.partition(after)[0]!r:.60} is the name of no tool.")
        self.rest = self.rest[len(written[name]) :]
        try:
            _, length = json.JSONDecoder().raw_decode(self.rest)
            value = self._parsers[name](self.rest[:length])
        except (ValueError, RecursionError) as error:
            raise self.error(f"These are no arguments of {name!r}: {error}.") from error
        self.rest = self.rest[length:]
        self.take(self._template.end)
        return ToolCall(name, value)
