"""A tokenizer as the engine sees it: the bytes of each token id, and which ids end the output.

The text of a sequence of ids is the concatenation of their bytes; that is the one fact about a
tokenizer that masks rest on. Token bytes are kept in one array with offsets, so that a vocabulary of
128,000 ids takes 2 MB, and 6 MB more with its index, most of it shared memory-mapped files.

Ids without text (special, padded, unused) have no bytes and are never allowed, except end tokens
where the output may end. An end token never stands for text, whatever bytes it was given.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from constrain.tokenizer_index import cache, trie
from constrain.tokenizer_index.errors import VocabularyError
from constrain.tokenizer_index.slices import SLICE_NAME
from constrain.tokenizer_index.special_tokens import resolve

MAX_SIZE = 1 << 24
CACHE_FROM = 1 << 13
"""Smaller vocabularies are indexed anew each time: that takes milliseconds, and spares a folder."""
# Indexes with special tokens that a vocabulary keeps, some megabytes each.
_MOST_SPECIAL = 4
_READERS = "constrain.backends.token_bytes"


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """What is read from a tokenizer.

    Parameters
    ----------
    data : (n_bytes,) uint8
        Bytes of all tokens, by id.
    offsets : (n_tokens + 1,) int64
        Token ``t`` is ``data[offsets[t] : offsets[t + 1]]``; empty: no text.
    eos_token_ids : tuple of int
        The tokenizer's own end tokens; may be empty.
    special_tokens : mapping of str to int
        Ids of the tokens that have a name apart from their text.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    eos_token_ids: tuple[int, ...] = ()
    special_tokens: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_tokens(
        cls,
        tokens: Iterable[bytes | None],
        eos_token_ids: tuple[int, ...] = (),
        special_tokens: Mapping[str, int] = MappingProxyType({}),
    ) -> TokenTable:
        """Pack byte strings; ``None`` has no text."""
        filled = [token or b"" for token in tokens]
        offsets = np.zeros(len(filled) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, filled), np.int64, len(filled)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(filled), np.uint8), offsets, eos_token_ids, special_tokens)


class TokenSequence(Sequence["bytes | None"]):
    """The bytes of each token id, made when asked for; ``None`` where an id has no text."""

    __slots__ = ("_data", "_offsets")

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._data = data
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes | None]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> bytes | list[bytes | None] | None:
        if isinstance(index, slice):
            return [self[token_id] for token_id in range(*index.indices(len(self)))]
        token_id = range(len(self))[index]
        low, high = self._offsets[token_id : token_id + 2].tolist()
        return self._data[low:high].tobytes() or None

    def __iter__(self) -> Iterator[bytes | None]:
        data = self._data.tobytes()
        low = 0
        for high in self._offsets[1:].tolist():
            yield data[low:high] or None
            low = high


class Vocabulary:
    """Token bytes, end tokens and width of the logits of one model; immutable and hashable.

    Use the constructors ``from_transformers``, ``from_tokens``, ``from_tiktoken``, ``from_mistral``
    and ``from_sentencepiece``. They take

    vocab_size : int or None
        Width of the logits, which may exceed the number of tokens (padded logits); ids past the
        tokens are never allowed. ``None``: the largest id + 1.
    eos_token_ids : sequence of int, int or None
        Ids that end the output, allowed exactly where it may end; their text, if any, is ignored.
        ``None``: the tokenizer's own end token.

    and raise `VocabularyError` where these don't fit the tokens, where there is no end token, or where
    the tokenizer's text is not the concatenation of its tokens.
    """

    __slots__ = (
        "_data",
        "_index",
        "_lock",
        "_missing_bytes",
        "_offsets",
        "_with_special",
        "content_hash",
        "eos_token_ids",
        "fingerprint",
        "size",
        "special_tokens",
    )

    size: int
    """Width of the logits."""
    eos_token_ids: tuple[int, ...]
    """Ids that end the output, sorted."""
    content_hash: str
    """Hash of the size and of all token bytes; names the cached index."""
    special_tokens: Mapping[str, int]
    """Ids of the tokens that have a name, special or added; read-only. Grammars name them."""
    fingerprint: str
    """Hash of the size, the end tokens, the names of special tokens and all token bytes."""

    def __init__(
        self,
        table: TokenTable,
        *,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] | int | None = None,
    ) -> None:
        self.eos_token_ids = _checked_eos(table.eos_token_ids if eos_token_ids is None else eos_token_ids)
        data, offsets = _without_text(table.data, table.offsets, self.eos_token_ids)
        self.size = _checked_size(offsets, self.eos_token_ids, vocab_size)
        offsets = np.concatenate(
            (offsets[: self.size + 1], np.full(max(0, self.size + 1 - len(offsets)), offsets[-1]))
        )
        data.flags.writeable = offsets.flags.writeable = False
        self._data: NDArray[np.uint8] = data
        self._offsets: NDArray[np.int64] = offsets
        self._missing_bytes: bytes | None = None
        self._index: trie.VocabularyIndex | None = None
        self._with_special: OrderedDict[tuple[str | int, ...], trie.VocabularyIndex] = OrderedDict()
        self.special_tokens = _checked_special(table.special_tokens, self.size)
        self._lock = threading.Lock()
        content = blake2b(b"constrain vocabulary 1\0", digest_size=16)
        content.update(offsets.data)
        content.update(data.data)
        self.content_hash = content.hexdigest()
        content.update(repr(self.eos_token_ids).encode())
        if self.special_tokens:
            content.update(repr(sorted(self.special_tokens.items())).encode())
        self.fingerprint = content.hexdigest()

    # ------------------------------------------------------------------------------- constructors

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        *,
        eos_token_ids: Sequence[int] | int,
        vocab_size: int | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Make a vocabulary of the bytes of each id; ``None`` (or ``b""``) marks an id without text.

        ``special_tokens`` names ids, mostly without text, for specs that name them.
        """
        tokens = list(tokens)
        for token_id, token in enumerate(tokens):
            if token is not None and not isinstance(token, bytes):
                raise VocabularyError(
                    f"token {token_id} is a {type(token).__name__}; expected bytes or None "
                    f"(encode text as UTF-8 first)."
                )
        table = TokenTable.from_tokens(tokens, special_tokens=special_tokens or {})
        return cls(table, vocab_size=vocab_size, eos_token_ids=eos_token_ids)

    @classmethod
    def from_transformers(
        cls,
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] | int | None = None,
    ) -> Vocabulary:
        """Read a tokenizer of ``transformers`` (or a ``tokenizers.Tokenizer``).

        Special tokens have no text; added tokens that aren't special have the text they decode to.
        Pass ``vocab_size=model.config.vocab_size`` where the model is wider than its tokenizer, and
        the generation config's ``eos_token_id`` where it differs from the tokenizer's.
        """
        table = import_module(_READERS).read_transformers(tokenizer)
        return cls(table, vocab_size=vocab_size, eos_token_ids=eos_token_ids)

    @classmethod
    def from_tiktoken(
        cls,
        encoding: Any,
        *,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] | int | None = None,
    ) -> Vocabulary:
        """Read a ``tiktoken.Encoding``; its end token is ``<|endoftext|>``."""
        table = import_module(_READERS).read_tiktoken(encoding)
        return cls(table, vocab_size=vocab_size, eos_token_ids=eos_token_ids)

    @classmethod
    def from_mistral(
        cls,
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] | int | None = None,
    ) -> Vocabulary:
        """Read a tokenizer of ``mistral_common`` (tekken or SentencePiece)."""
        table = import_module(_READERS).read_mistral(tokenizer)
        return cls(table, vocab_size=vocab_size, eos_token_ids=eos_token_ids)

    @classmethod
    def from_sentencepiece(
        cls,
        processor: Any,
        *,
        vocab_size: int | None = None,
        eos_token_ids: Sequence[int] | int | None = None,
    ) -> Vocabulary:
        """Read a ``sentencepiece.SentencePieceProcessor``, or the model file at a path."""
        table = import_module(_READERS).read_sentencepiece(processor)
        return cls(table, vocab_size=vocab_size, eos_token_ids=eos_token_ids)

    # -------------------------------------------------------------------------------------- tokens

    @property
    def tokens(self) -> TokenSequence:
        """The bytes of each id; ``None`` where it has no text. ``len`` is `size`."""
        return TokenSequence(self._data, self._offsets)

    @property
    def token_data(self) -> NDArray[np.uint8]:
        """(n_bytes,) uint8, read-only: bytes of all tokens, by id."""
        return self._data

    @property
    def token_offsets(self) -> NDArray[np.int64]:
        """(size + 1,) int64, read-only: where each token starts in `token_data`."""
        return self._offsets

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return the bytes of a token, ``None`` if it has no text.

        Raises
        ------
        VocabularyError
            ``token_id`` is not from 0 to ``size - 1``.
        """
        if not 0 <= token_id < self.size:
            raise VocabularyError(f"token id {token_id} is not between 0 and {self.size - 1}.")
        return self.tokens[token_id]

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """Return the concatenated bytes of tokens; ids without text add nothing.

        Raises
        ------
        VocabularyError
            An id is not from 0 to ``size - 1``.
        """
        return b"".join(self.token_bytes(token_id) or b"" for token_id in token_ids)

    @property
    def missing_bytes(self) -> bytes:
        """The single bytes that are not tokens by themselves, rising."""
        if self._missing_bytes is None:
            alone = self._offsets[:-1][np.diff(self._offsets) == 1]
            self._missing_bytes = bytes(np.setdiff1d(np.arange(256, dtype=np.uint8), self._data[alone]))
        return self._missing_bytes

    @property
    def absent_bytes(self) -> bytes:
        """The bytes that occur in no token at all, rising; some of `missing_bytes`."""
        return bytes(np.flatnonzero(np.bincount(self._data, minlength=256) == 0).astype(np.uint8))

    @property
    def has_all_bytes(self) -> bool:
        """Every single byte is a token, so every byte string can be written."""
        return not self.missing_bytes

    # --------------------------------------------------------------------------------------- index

    @property
    def index(self) -> trie.VocabularyIndex:
        """The tries and slices, opened from the user's cache folder or built and kept there."""
        return self.load_index()

    def load_index(self, cache_path: str | Path | bool = True) -> trie.VocabularyIndex:
        """Return the tries and slices; made once for each vocabulary object, by one thread.

        Parameters
        ----------
        cache_path : bool or path
            Where to keep those of a large vocabulary: ``True`` in the user's cache folder, ``False``
            nowhere, or a folder.
        """
        if self._index is None:
            with self._lock:
                if self._index is None:
                    self._index = self._open_index(cache_path)
        return self._index

    def load_index_with(
        self, names: tuple[str | int, ...], cache_path: str | Path | bool = True
    ) -> trie.VocabularyIndex:
        """Return `load_index` with virtual spellings for some special tokens; the last ones made are kept.

        Raises
        ------
        VocabularyError
            The vocabulary lacks one of the tokens.
        """
        if not names:
            return self.load_index(cache_path)
        names = tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))
        found = self._with_special.get(names)
        if found is None:
            spellings = resolve(names, self)
            found = trie.with_special_tokens(self.load_index(cache_path), spellings)
        with self._lock:
            found = self._with_special.setdefault(names, found)
            self._with_special.move_to_end(names)
            while len(self._with_special) > _MOST_SPECIAL:
                self._with_special.popitem(last=False)
        return found

    def _open_index(self, cache_path: str | Path | bool) -> trie.VocabularyIndex:
        eos = np.array(self.eos_token_ids, np.int32)
        if cache_path is False or self.size < CACHE_FROM:
            return trie.build_index(self._data, self._offsets, eos)

        def build() -> cache.Arrays:
            built = trie.build_index(self._data, self._offsets, eos)
            return {name: getattr(built, name) for name in trie.STORED}

        folder = cache.cache_folder() if cache_path is True else Path(cache_path)
        header: dict[str, str | int] = {
            "vocabulary": self.content_hash,
            "slice": SLICE_NAME,
            "version": trie.VERSION,
        }
        stored = cache.load_or_build(
            folder / f"vocabulary-{self.content_hash}-{trie.VERSION}", header, trie.STORED, build
        )
        return trie.assemble(stored, self._data, self._offsets, eos)

    # ---------------------------------------------------------------------------------- protocols

    def __repr__(self) -> str:
        n_text = int(np.count_nonzero(np.diff(self._offsets)))
        return (
            f"Vocabulary(size={self.size}, tokens_with_text={n_text}, "
            f"eos_token_ids={self.eos_token_ids}, fingerprint={self.fingerprint[:8]!r})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        # Locks and mapped files don't travel; another process maps the index again.
        return _restore, (self._data, self._offsets, self.eos_token_ids, dict(self.special_tokens))


def _restore(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    eos_token_ids: tuple[int, ...],
    special_tokens: Mapping[str, int],
) -> Vocabulary:
    """Make a copied or unpickled vocabulary; its offsets already have the full size."""
    return Vocabulary(TokenTable(data, offsets, eos_token_ids, special_tokens))


def _checked_special(special_tokens: Mapping[str, int], size: int) -> Mapping[str, int]:
    """Return the names of special tokens; those of ids past the logits are left out."""
    found = {}
    for name, token_id in special_tokens.items():
        if not isinstance(name, str) or not name:
            raise VocabularyError(f"special_tokens has the name {name!r}: expected text.")
        if isinstance(token_id, bool) or not isinstance(token_id, int | np.integer) or token_id < 0:
            raise VocabularyError(f"special_tokens[{name!r}] is {token_id!r}: expected a token id.")
        if token_id < size:
            found[name] = int(token_id)
    return MappingProxyType(found)


def _checked_eos(eos_token_ids: Sequence[int] | int) -> tuple[int, ...]:
    """Sorted end tokens; negative, repeated and missing ones are refused."""
    given = [eos_token_ids] if isinstance(eos_token_ids, int | np.integer) else list(eos_token_ids)
    try:
        ids = sorted(operator.index(token_id) for token_id in given)
    except TypeError as error:
        raise VocabularyError(f"eos_token_ids={given!r}: token ids are integers.") from error
    if not ids:
        raise VocabularyError(
            "the tokenizer names no end token, so no output could ever end: pass eos_token_ids=[...]."
        )
    if ids[0] < 0:
        raise VocabularyError(f"eos_token_ids={given!r}: token ids are not negative.")
    if len(set(ids)) < len(ids):
        raise VocabularyError(f"eos_token_ids={given!r}: an id is given twice.")
    return tuple(ids)


def _without_text(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], token_ids: Sequence[int]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copy a table, with no text for ``token_ids``; checks the length of tokens."""
    lengths = np.diff(offsets)
    if len(lengths) and lengths.max() > trie.MAX_TOKEN_BYTES:
        longest = int(lengths.argmax())
        raise VocabularyError(
            f"token {longest} has {lengths[longest]:,} bytes; at most {trie.MAX_TOKEN_BYTES:,} are supported."
        )
    keep = np.ones(len(lengths), np.bool_)
    keep[[token_id for token_id in token_ids if token_id < len(keep)]] = False
    data = data[np.repeat(keep, lengths)] if lengths[~keep].any() else data.copy()
    kept = np.zeros(len(offsets), np.int64)
    np.cumsum(np.where(keep, lengths, 0), out=kept[1:])
    return data, kept


def _checked_size(offsets: NDArray[np.int64], eos_token_ids: tuple[int, ...], vocab_size: int | None) -> int:
    """Width of the logits; refused where a token with text or an end token does not fit."""
    n_tokens = len(offsets) - 1
    with_text = np.flatnonzero(np.diff(offsets))
    if not len(with_text):
        raise VocabularyError("no token has text, so nothing could be written.")
    if vocab_size is None:
        size = n_tokens
    else:
        try:
            size = operator.index(vocab_size)
        except TypeError as error:
            raise VocabularyError(f"vocab_size={vocab_size!r}: expected an integer.") from error
    if eos_token_ids[-1] >= size:
        raise VocabularyError(
            f"end token {eos_token_ids[-1]} does not fit a vocabulary of {size:,} ids (0 to {size - 1})."
        )
    if with_text[-1] >= size:
        raise VocabularyError(
            f"vocab_size={size} is too small: token {with_text[-1]} has text. "
            f"It is the width of the model's logits, at least {with_text[-1] + 1}."
        )
    if size > MAX_SIZE:
        raise VocabularyError(f"vocab_size={size:,} is more than the {MAX_SIZE:,} ids supported.")
    return size
