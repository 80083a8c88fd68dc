"""Every public error."""

from __future__ import annotations

from constrain.grammars.errors import (
    ConstrainError,
    EmptyLanguageError,
    LimitExceededError,
    SpecError,
    UnsupportedFeatureError,
)
from constrain.tokenizer_index.errors import ArtefactError, VocabularyError

__all__ = [
    "ArtefactError",
    "BackendError",
    "CheckError",
    "ConstrainError",
    "DeadEndError",
    "EmptyLanguageError",
    "LimitExceededError",
    "OptionError",
    "SpecError",
    "UnsupportedFeatureError",
    "VocabularyError",
]


class DeadEndError(ConstrainError, RuntimeError):
    """Generation cannot go on: no allowed token has positive probability, or checks refuse what was tried.

    Attributes
    ----------
    text : str
        The output so far, of the attempt that got furthest.
    result : Generation or None
        The same as an incomplete result.
    """

    def __init__(self, message: str, *, text: str = "", result: object = None) -> None:
        super().__init__(message)
        self.text = text
        self.result = result


class CheckError(ConstrainError, RuntimeError):
    """A check of `Spec.where` raised an error, gave no answer, or contradicts itself."""


class BackendError(ConstrainError, RuntimeError):
    """A model, tokenizer or library is missing, failed, or gave values that cannot be used."""


class OptionError(ConstrainError, ValueError):
    """An argument of generation is unknown or out of its range; the text names what is possible."""
