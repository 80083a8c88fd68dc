"""Checks: what a spec demands beyond its grammar, decided while decoding.

A check follows a text piece by piece. Its *progress* after some text is immutable, so that a decoder can ask for
many continuations of one text, and go back. `Spec.where` makes checks of Python functions, the JSON Schema
front end makes one of what automata cannot say (`constrain.grammars.json_schema`); decoders know only the
protocols here.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any, Protocol, TypeAlias

import numpy as np

from constrain.errors import CheckError, DeadEndError, OptionError

WHEN = ("complete", "token", "value")

Function: TypeAlias = Callable[[Any], bool]
_SHOWN = 60


@dataclass(slots=True)
class Tally:
    """Counts of one output's checks.

    Parameters
    ----------
    most : int or None
        Questions that may be asked.
    calls : int
        Questions that were asked.
    failures : int
        Those that were answered with no.
    seconds : float
        Time for the answers.
    """

    most: int | None = None
    calls: int = 0
    failures: int = 0
    seconds: float = 0.0

    def ask(self, question: Callable[[], bool]) -> bool:
        """Ask a question.

        Raises
        ------
        DeadEndError
            No more may be asked.
        """
        if self.most is not None and self.calls >= self.most:
            raise DeadEndError(f"The checks were asked {self.calls:,} times (max_checks={self.most:,})")
        self.calls += 1
        begin = time.perf_counter()
        try:
            answer = question()
        finally:
            self.seconds += time.perf_counter() - begin
        self.failures += not answer
        return answer


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a check fails.

    Parameters
    ----------
    offset : int
        Bytes of the text that are not to blame.
    expected : str
        What was demanded.
    pointer : str or None
        Place in the schema.
    """

    offset: int
    expected: str
    pointer: str | None = None


class Progress(Protocol):
    """What a check knows after a text. Immutable."""

    def read(self, data: bytes) -> Progress | None:
        """Return the progress after more bytes; ``None``: no text that begins like this is wanted."""

    def ends(self) -> bool:
        """Is the text so far, as a whole, wanted?"""


class Check(Protocol):
    """A demand on texts, beyond a grammar. Hashable."""

    def begin(self, tally: Tally) -> Progress | None:
        """Return the progress at the empty text; ``None``: nothing is wanted."""

    def explain(self, data: bytes) -> Failure | None:
        """Say where a whole text of the grammar fails; ``None``: it doesn't."""


@dataclass(frozen=True, slots=True)
class _Several:
    """Progress of several checks at once."""

    parts: tuple[Progress, ...]

    def read(self, data: bytes) -> Progress | None:
        """See `Progress`."""
        parts = []
        for part in self.parts:
            after = part.read(data)
            if after is None:
                return None
            parts.append(after)
        return _Several(tuple(parts))

    def ends(self) -> bool:
        """See `Progress`."""
        return all(part.ends() for part in self.parts)


def begin_all(checks: tuple[Check, ...], tally: Tally) -> Progress | None:
    """Return the progress of all ``checks`` at the empty text."""
    parts = []
    for check in checks:
        part = check.begin(tally)
        if part is None:
            return None
        parts.append(part)
    return parts[0] if len(parts) == 1 else _Several(tuple(parts))


def holds(checks: tuple[Check, ...], data: bytes) -> bool:
    """Does a whole text pass every one of ``checks``?"""
    progress = begin_all(checks, Tally())
    if progress is not None and data:
        progress = progress.read(data)
    return progress is not None and progress.ends()


# ------------------------------------------------------------------------------ Python functions


class FunctionCheck:
    """A Python predicate as a check; two are equal if they hold the same function object.

    Parameters
    ----------
    function : callable
        From text, or the parsed value, to whether it is wanted.
    when : {"complete", "token", "value"}
        Asked of whole texts, of these and all their beginnings, or of the values of whole texts.
    parse : callable
        From a text to its value.

    Raises
    ------
    OptionError
        ``when`` is unknown or ``function`` cannot be called.
    """

    __slots__ = ("_identity", "function", "parse", "when")

    def __init__(self, function: Function, when: str, parse: Callable[[str], Any]) -> None:
        if when not in WHEN:
            raise OptionError(f"when={when!r}: expected one of {', '.join(map(repr, WHEN))}.")
        if not callable(function):
            raise OptionError(f"where({function!r:.60}): expected a function of a text.")
        self.function = function
        self.when = when
        self.parse = parse
        # Each access to a method makes another object.
        if isinstance(function, MethodType):
            self._identity = id(function.__func__), id(function.__self__)
        else:
            self._identity = id(function), 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionCheck):
            return NotImplemented
        return (self.when, self._identity) == (other.when, other._identity)

    def __hash__(self) -> int:
        return hash((self.when, self._identity))

    @property
    def name(self) -> str:
        """The function's name."""
        name: str = getattr(self.function, "__qualname__", None) or type(self.function).__qualname__
        return name.rpartition("<locals>.")[2]

    def __repr__(self) -> str:
        return self.name if self.when == "complete" else f"{self.name}, when={self.when!r}"

    def begin(self, tally: Tally) -> Progress | None:
        """See `Check`.

        Raises
        ------
        CheckError
            A check of beginnings refuses the empty one.
        """
        if self.when != "token":
            return _Whole(self, tally, Written())
        if not tally.ask(lambda: self.call("", "the empty beginning")):
            raise CheckError(
                f"The check {self.name} refuses the empty text, with which every text begins, so it refuses all. "
                "With when='token' it is asked of beginnings, and False means that no text that begins like "
                "this is wanted; for a check of whole texts leave when= out."
            )
        return _Beginning(self, tally, Written(), set())

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`.

        Raises
        ------
        CheckError
            The check raised an error or gave no answer.
        """
        text = whole_characters(data, final=True)
        if self.when != "token":
            if self.ask_whole(text):
                return None
            what = "a value" if self.when == "value" else "a text"
            return Failure(0, f"{what} for which {self.name} holds")
        for end in range(len(text) + 1):
            if not self.call(text[:end], _named(text[:end])):
                before = text[: max(end - 1, 0)].encode("utf-8", errors="surrogateescape")
                return Failure(len(before), f"a text for which {self.name} holds, from its beginning on")
        return None

    def call(self, argument: Any, what: str) -> bool:
        """Ask the function.

        Raises
        ------
        CheckError
            It raised an error, or its answer is neither true nor false.
        """
        try:
            answer = self.function(argument)
        except Exception as error:
            raise CheckError(
                f"The check {self.name} failed on {what}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(answer, bool | np.bool_):
            raise CheckError(
                f"The check {self.name} returned {answer!r:.60} for {what}: expected True or False."
            )
        return bool(answer)

    def ask_whole(self, text: str) -> bool:
        """Ask about a whole text, or its value; a text that has no value is not wanted."""
        if self.when == "complete":
            return self.call(text, _named(text))
        try:
            value = self.parse(text)
        except ValueError:
            # A member of the grammar, so only code of the type itself can object.
            return False
        return self.call(value, f"the value of {_named(text)}")


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A text as its last piece and what stands before it: progress at every token of a text shares memory."""

    before: Written | None = None
    piece: bytes = b""

    def and_then(self, piece: bytes) -> Written:
        """Return the text with one more piece."""
        return Written(self, piece)

    def __bytes__(self) -> bytes:
        pieces = []
        text: Written | None = self
        while text is not None:
            pieces.append(text.piece)
            text = text.before
        return b"".join(reversed(pieces))


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """Progress of a check that is asked at the end."""

    check: FunctionCheck
    tally: Tally
    written: Written

    def read(self, data: bytes) -> Progress | None:
        """See `Progress`."""
        return _Whole(self.check, self.tally, self.written.and_then(data))

    def ends(self) -> bool:
        """See `Progress`."""
        text = whole_characters(bytes(self.written), final=True)
        return self.tally.ask(lambda: self.check.ask_whole(text))


@dataclass(frozen=True, slots=True, eq=False)
class _Beginning:
    """Progress of a check that is asked of every beginning.

    It is asked of every one, also inside tokens, so that what is wanted doesn't depend on how a text is cut into
    tokens. What it refused is kept for the whole output.
    """

    check: FunctionCheck
    tally: Tally
    written: Written
    refused: set[str]

    def read(self, data: bytes) -> Progress | None:
        """See `Progress`."""
        before = bytes(self.written)
        if not self._holds(whole_characters(before), whole_characters(before + data)):
            return None
        return _Beginning(self.check, self.tally, self.written.and_then(data), self.refused)

    def ends(self) -> bool:
        """See `Progress`; what follows the last whole character may still be refused."""
        text = bytes(self.written)
        return self._holds(whole_characters(text), whole_characters(text, final=True))

    def _holds(self, before: str, text: str) -> bool:
        """Does the check hold of ``text`` and of all its beginnings longer than ``before``?"""
        for end in range(len(before) + 1, len(text) + 1):
            beginning = text[:end]
            if beginning in self.refused:
                return False
            if not self.tally.ask(partial(self.check.call, beginning, _named(beginning))):
                self.refused.add(beginning)
                return False
        return True


def whole_characters(data: bytes, *, final: bool = False) -> str:
    """Decode UTF-8 without the part of a character it may end with; other bytes are lone surrogates."""
    return codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data, final)


def shown(text: str) -> str:
    """A text for messages: its end, which is what was written last."""
    return repr(text if len(text) <= _SHOWN else "…" + text[1 - _SHOWN :])


def _named(text: str) -> str:
    return f"the text {shown(text)}"
