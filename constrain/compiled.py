"""Compiling: a spec and a vocabulary become a `CompiledSpec`, which makes matchers.

Compilation itself is small (flattening, done once for each spec, and empty tables); states and masks
are made when they are first needed and then kept, within limits. See ``docs/architecture.md``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrain import artefact
from constrain.base_spec import Output
from constrain.errors import EmptyLanguageError, SpecError, VocabularyError
from constrain.grammars.ir import SpecialToken
from constrain.grammars.limits import Limits, Watch
from constrain.matcher import Matcher, fill_next_token_bitmasks
from constrain.pickling import NotPicklableError
from constrain.spec import Spec
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.budget import Budget, MinTokens
from constrain.tokenizer_index.missing_bytes import bytes_to_leave_out, needs_check, nothing_left
from constrain.tokenizer_index.vocabulary import Vocabulary

__all__ = ["CompiledSpec", "Matcher", "MinTokens", "compile", "fill_next_token_bitmasks"]


class CompiledSpec:
    """A spec aligned with a vocabulary. Threads may share it; it never changes what it answers.

    Made by `compile`.
    """

    named_eos: frozenset[int]
    """End tokens that the spec names as special tokens: they may also come where the output cannot end."""
    is_checked: bool
    """Tokens must be struck from masks because nothing finishes after them (``missing_bytes``)."""

    def __init__(self, spec: Spec, vocabulary: Vocabulary, arena: Arena, limits: Limits) -> None:
        self.spec = spec
        self.vocabulary = vocabulary
        self.limits = limits
        self.vocab_size = vocabulary.size
        self.n_words = (vocabulary.size + 31) // 32
        self.eos_token_ids = frozenset(vocabulary.eos_token_ids)
        self._arena = arena
        offsets = arena.index.token_offsets
        self.named_eos = frozenset(t for t in self.eos_token_ids if offsets[t] < offsets[t + 1])
        self._lock = threading.Lock()
        self.is_checked = needs_check(arena, vocabulary, lambda arena: self.budget(arena).costs)

    @property
    def arena(self) -> Arena:
        """The tables new matchers start in."""
        return self._arena

    def matcher(self) -> Matcher:
        """Return a matcher at the start of an output."""
        return Matcher(self)

    def renew(self, full: Arena) -> Arena:
        """Return an arena to move to from one that is full; the first to ask makes it."""
        with self._lock:
            if self._arena is full:
                self._arena = Arena(full.network, full.index, self.limits, options=full.options)
            return self._arena

    def written_out(self, arena: Arena, state: int, *, everything: bool = False) -> Arena:
        """Return the arena to go on in from a state: this one, or one with more parts written out."""
        return arena

    def output(self, text: bytes, token_ids: Sequence[int], n_prefix: int = 0) -> Output:
        """Return an output in which the special tokens that the spec names are told from text.

        Parameters
        ----------
        text : bytes
            ``n_prefix`` bytes that the output began with, and the text of its tokens, which may be cut at the end.
        token_ids : sequence of int
            An end token that ends the output is left out.
        """
        named = {
            self.vocabulary.special_tokens.get(name) if isinstance(name, str) else name: name
            for name in self.spec.special_tokens
        }
        found: list[str | SpecialToken] = []
        begin, end = 0, n_prefix
        for i, token_id in enumerate(token_ids):
            is_end = token_id in self.eos_token_ids and i + 1 == len(token_ids)
            is_named = token_id in named and not is_end
            if is_named and begin < end:
                found.append(text[begin:end].decode("utf-8", errors="surrogateescape"))
            end += len(self.vocabulary.token_bytes(token_id) or b"")
            if is_named:
                found.append(SpecialToken(named[token_id]))
                begin = end
        if begin < len(text):
            found.append(text[begin:].decode("utf-8", errors="surrogateescape"))
        return tuple(found)

    def budget(self, arena: Arena) -> Budget:
        """Return the completion costs of an arena's states; the arena keeps them."""
        found: Budget | None = arena.budget
        if found is None:
            with self._lock:
                found = arena.budget
                if found is None:
                    found = arena.budget = Budget(arena, self.vocabulary)
        return found

    def save(self, path: str | Path) -> None:
        """Write this compiled spec to a file that `load` reads: JSON, versioned, with a checksum.

        Raises
        ------
        ArtefactError
            The spec was not made from text.
        OSError
            The file cannot be written.
        """
        artefact.save(path, self.spec, self.vocabulary.fingerprint, self.limits)

    @classmethod
    def load(cls, path: str | Path, vocabulary: Vocabulary) -> CompiledSpec:
        """Read a compiled spec written by `save`.

        The spec of a Python type comes back as that of its schema: ``spec.parse`` gives JSON data.

        Raises
        ------
        ArtefactError
            The file is damaged, of another version, or belongs to another vocabulary.
        OSError
            The file cannot be read.
        """
        spec, limits = artefact.load(path, vocabulary.fingerprint)
        return compile(spec, vocabulary, limits=limits)

    def __copy__(self) -> CompiledSpec:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledSpec:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotPicklableError(
            f"{self!r} cannot be pickled: its tables belong to this process.",
            hint="Send its spec, which can be, and compile it there; or write it with save(path) and read it there "
            "with CompiledSpec.load(path, vocabulary).",
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the lazily built tables."""
        return self._arena.n_bytes

    def __repr__(self) -> str:
        return f"<CompiledSpec of {self.spec!r} for {self.vocab_size} tokens>"


def compile(
    spec: Spec,
    vocabulary: Vocabulary,
    *,
    cache: bool | str | Path = True,
    limits: Limits | None = None,
) -> CompiledSpec:
    """Align a spec with a vocabulary.

    Parameters
    ----------
    spec : Spec
    vocabulary : Vocabulary
    cache : bool or path
        ``True`` keeps the vocabulary's index under the user's cache folder, ``False`` nowhere, a path
        there.
    limits : Limits
        Upper limits for this spec, at compile time and while decoding.

    Raises
    ------
    EmptyLanguageError
        No text is in the language.
    VocabularyError
        The vocabulary cannot write the language: it lacks bytes or special tokens the language needs.
    LimitExceededError
        A limit was reached; nothing is left behind.
    """
    if not isinstance(spec, Spec):
        raise SpecError(
            f"compile() got a {type(spec).__name__}; expected a Spec.",
            hint="Make one with regex, choice, json_schema or python_type.",
        )
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyError(f"compile() got a {type(vocabulary).__name__}; expected a Vocabulary.")
    limits = limits or Limits()
    lazily = spec.compile_lazily(vocabulary, cache, limits)
    if lazily is not None:
        return lazily
    watch = Watch(limits)
    watch.at_most("positions", spec.network.n_positions, repr(spec))
    watch.at_most("states", spec.network.n_dotted, repr(spec))
    index = vocabulary.load_index_with(spec.network.special_tokens, cache)
    lost = bytes_to_leave_out(spec.network, vocabulary)
    arena = spec.tables(lambda network: Arena(network, index, limits), lost)
    try:
        return CompiledSpec(spec, vocabulary, arena, limits)
    except EmptyLanguageError as error:
        if arena.network is spec.network:
            raise
        raise nothing_left(lost) from error
