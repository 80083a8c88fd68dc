"""Errors of the front ends, and the root of every error this project raises.

Data lives in attributes; the text is made in ``__str__``. A message says where, what was
found, what was expected and what to do about it.
"""

from __future__ import annotations

from constrain.grammars.source import caret


class ConstrainError(Exception):
    """Root of all errors raised on purpose by ``constrain``."""


class SpecError(ConstrainError, ValueError):
    """A spec is malformed.

    Parameters
    ----------
    message : str
        What was found and what was expected; one or two sentences.
    source : str or None
        The text the spec was read from; with ``offset`` it gives ``line``, ``column`` and a caret.
    offset : int or None
        Place in ``source``, in characters from 0.
    pointer : str or None
        JSON pointer (RFC 6901, as a URI fragment: ``#/properties/a``) of the place in a schema.
    hint : str or None
        What to do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        offset: int | None = None,
        pointer: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.offset = offset
        self.pointer = pointer
        self.hint = hint
        self.line: int | None = None
        self.column: int | None = None
        if source is not None and offset is not None:
            self.place(source, offset)

    def place(self, source: str, offset: int) -> None:
        """Say where in a text the error is, if that was not known."""
        before = source[:offset]
        self.source = source
        self.offset = offset
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1

    def __str__(self) -> str:
        text = self.message
        if self.pointer is not None:
            text += f" (at {self.pointer!r})"
        if self.line is not None:
            text += f" (line {self.line}, column {self.column})"
        if self.hint:
            text += f" {self.hint}"
        if self.source is not None and self.offset is not None:
            text += "\n" + caret(self.source, self.offset)
        return text


class UnsupportedFeatureError(SpecError):
    """A spec is well formed but asks for something that cannot be enforced.

    Parameters
    ----------
    feature : str
        The keyword or construct, as the user wrote it.
    hint : str
        What to do instead.
    """

    def __init__(
        self,
        feature: str,
        *,
        pointer: str | None = None,
        hint: str | None = None,
        source: str | None = None,
        offset: int | None = None,
        reason: str = "is not supported",
    ) -> None:
        super().__init__(f"{feature!r} {reason}.", source=source, offset=offset, pointer=pointer, hint=hint)
        self.feature = feature
        self.reason = reason


class EmptyLanguageError(SpecError):
    """No text at all satisfies the spec.

    Parameters
    ----------
    subject : str or None
        The terminal or rule to blame.

    Attributes
    ----------
    conflict : tuple of str
        JSON pointers of the keywords that contradict each other, as far as they were found: without any one of
        them something would be valid.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        offset: int | None = None,
        pointer: str | None = None,
        hint: str | None = None,
        subject: str | None = None,
    ) -> None:
        super().__init__(message, source=source, offset=offset, pointer=pointer, hint=hint)
        self.subject = subject
        self.conflict: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} In conflict: {', '.join(self.conflict)}." if len(self.conflict) > 1 else text


class LimitExceededError(ConstrainError, RuntimeError):
    """A stated limit was reached; nothing was left behind.

    Parameters
    ----------
    limit : str
        Name of the field of ``Limits``.
    value : float
        Its value.
    place : str
        What was being built: a rule, a terminal, a JSON pointer.
    """

    def __init__(self, limit: str, value: float, place: str, hint: str | None = None) -> None:
        super().__init__(limit, value, place)
        self.limit = limit
        self.value = value
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        text = f"limit {self.limit}={self.value:,} reached in {self.place}. "
        return text + (self.hint or f"Raise it with constrain.Limits({self.limit}=...).")
