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
    """No allowed token has positive probability, so generation cannot go on."""


class BackendError(ConstrainError, RuntimeError):
    """A model, tokenizer or library is missing, failed, or gave values that cannot be used."""


class OptionError(ConstrainError, ValueError):
    """An argument of generation is unknown or out of its range; the text names what is possible."""
