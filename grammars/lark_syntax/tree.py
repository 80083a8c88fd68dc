"""What a grammar text says: statements, and the bodies of rules and terminals.

``offset`` is a place in the module's text, in characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from constrain.grammars.errors import SpecError, UnsupportedFeatureError


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A rule or terminal that is referred to, or a template's parameter."""

    name: str
    offset: int

    @property
    def is_terminal(self) -> bool:
        """Is the name written in upper case?"""
        return is_terminal_name(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Quoted:
    """A string or a regular expression, as written: delimiters, escapes and flags included."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """``"a".."z"``."""

    low: Quoted
    high: Quoted
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """``name{arguments}``."""

    name: str
    arguments: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """``%json {...}``, ``%regex {...}`` (JSON data) or ``%lark {...}`` (text, which begins at ``start``)."""

    kind: str
    value: Any
    offset: int
    start: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Special:
    """``<|name|>`` or ``<[1,2-5]>``, brackets included."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``body`` from ``minimum`` to ``maximum`` times (``None``: any number)."""

    body: Node
    minimum: int
    maximum: int | None
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Negation:
    """``~body``, in terminals."""

    body: Node
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """``a & b``, in terminals."""

    parts: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """The parts one after another."""

    parts: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Any one of the parts; ``aliases`` has the places of ``->``."""

    parts: tuple[Node, ...]
    aliases: tuple[int, ...]
    offset: int


Node: TypeAlias = (
    Symbol | Quoted | Range | Usage | Nested | Special | Repeat | Negation | Conjunction | Sequence | Choice
)


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """``name`` or ``name=value`` in the brackets after a rule's name; ``value`` as written."""

    name: str
    value: str | None
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A rule or a terminal.

    Parameters
    ----------
    name : str
    offset : int
    body : Node
    modifiers : str
        ``""`` or some of ``!`` and ``?``.
    parameters : tuple of Symbol
        Of a template.
    attributes : tuple of Attribute
    priority : int
    """

    name: str
    offset: int
    body: Node
    modifiers: str = ""
    parameters: tuple[Symbol, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    priority: int = 0

    @property
    def is_terminal(self) -> bool:
        """Is it a terminal?"""
        return is_terminal_name(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """``%override`` (or ``%extend`` if ``extends``) of a definition made before."""

    definition: Definition
    extends: bool


@dataclass(frozen=True, slots=True, eq=False)
class Ignore:
    """``%ignore body``."""

    body: Node
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Declare:
    """``%declare names``."""

    names: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Import:
    """``%import path.name -> alias`` or ``%import path (names)``.

    Parameters
    ----------
    path : tuple of str
        Of the grammar.
    relative : bool
        The path began with a dot.
    names : tuple of (Symbol, str)
        What is imported, and under which name.
    """

    path: tuple[str, ...]
    relative: bool
    names: tuple[tuple[Symbol, str], ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """``%llguidance {...}``."""

    value: Any
    offset: int


Statement: TypeAlias = Definition | Override | Ignore | Declare | Import | Options


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One grammar text, read.

    Parameters
    ----------
    text : str
    name : str or None
        File the text is from; ``None`` for the text the user gave.
    statements : tuple of Statement
    """

    text: str
    name: str | None
    statements: tuple[Statement, ...] = ()

    def error(self, message: str, offset: int, hint: str | None = None) -> SpecError:
        """Return the error of ``message`` at ``offset``."""
        return SpecError(self._named(message), source=self.text, offset=offset, hint=hint)

    def unsupported(self, feature: str, offset: int, reason: str, hint: str) -> UnsupportedFeatureError:
        """Return the refusal of ``feature`` at ``offset``."""
        if self.name is not None:
            reason += f" (in {self.name})"
        return UnsupportedFeatureError(feature, source=self.text, offset=offset, reason=reason, hint=hint)

    def _named(self, message: str) -> str:
        return message if self.name is None else f"{self.name}: {message}"


def is_terminal_name(name: str) -> bool:
    """Are the letters of ``name`` upper case?"""
    return name.lstrip("_")[:1].isupper()
