"""Errors of vocabularies and of files on disk."""

from __future__ import annotations

from constrain.grammars.errors import ConstrainError


class VocabularyError(ConstrainError, ValueError):
    """A vocabulary, a token id or a mask does not fit what it is used with."""


class ArtefactError(ConstrainError, ValueError):
    """A saved file is damaged, of another version, or belongs to another vocabulary."""
