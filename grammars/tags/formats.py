"""What tagged output is made of: the elements that specs of structural tags are written in.

The names and meanings follow the ``format`` objects of structural tags as vLLM, SGLang and xgrammar take them
(``"type": "triggered_tags"`` and so on); `read` reads those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from constrain.grammars.ir import Grammar, SpecialToken

Mark: TypeAlias = str | SpecialToken
"""A piece of fixed output: text, or one special token."""
Marks: TypeAlias = tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """Exactly these marks."""

    marks: Marks


@dataclass(frozen=True, slots=True)
class FreeText:
    """Any text in which none of ``excludes`` stands; in a tag it ends where the tag's end stands first."""

    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """The texts of a grammar."""

    grammar: Grammar


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after another."""

    parts: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the parts."""

    parts: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """``body`` at least ``minimum`` and at most ``maximum`` times (``None``: any number)."""

    body: Format
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Tag:
    """``begin``, then ``content``, then one of ``ends`` (without any: nothing)."""

    begin: Marks
    content: Format
    ends: tuple[Marks, ...] = ()


@dataclass(frozen=True, slots=True)
class TriggeredTags:
    """Free text in which a tag stands wherever a trigger does.

    Parameters
    ----------
    triggers : tuple of str or SpecialToken
        Each tag begins with one of them. Text is free up to the first place where one is complete.
    tags : tuple of Tag
    at_least_one : bool
        The output holds a tag.
    stop_after_first : bool
        Nothing comes after the first tag.
    excludes : tuple of str
        Words that the free text must not hold.
    """

    triggers: tuple[Mark, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeparatedTags:
    """Tags with ``separator`` between them and no free text."""

    tags: tuple[Tag, ...]
    separator: Marks = ()
    at_least_one: bool = False
    stop_after_first: bool = False


@dataclass(frozen=True, slots=True)
class Hole:
    """Marks, and after them something that is written out when it is needed, under the name ``key``."""

    marks: Marks
    key: str


HOLE_MARK = "\0"
"""Names of holes' terminals begin with it."""

Format: TypeAlias = (
    Constant | FreeText | Embedded | Sequence | Choice | Repeated | Tag | TriggeredTags | SeparatedTags | Hole
)


def marks(*parts: Mark) -> Marks:
    """Return marks with neighbouring texts joined and empty ones left out."""
    joined: list[Mark] = []
    for part in parts:
        if part == "":
            continue
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def without_prefix(given: Marks, prefix: Mark) -> Marks | None:
    """Return ``given`` without ``prefix`` at its beginning; ``None`` where it begins otherwise."""
    if not given:
        return None
    first = given[0]
    if first == prefix:
        return given[1:]
    if isinstance(first, str) and isinstance(prefix, str) and first.startswith(prefix):
        return (first[len(prefix) :], *given[1:])
    return None


def shown(given: Iterable[Mark]) -> str:
    """Return marks as text for people, special tokens under their names."""
    return "".join(mark if isinstance(mark, str) else str(mark.name) for mark in given)
