"""The bytes of each token, read from the tokenizers of other libraries.

Every reader returns a `TokenTable`, for which the text of a sequence of ids is the concatenation of
their bytes, as the library itself decodes them, with two agreed differences: a blank that a
tokenizer drops at the very start of a text is kept, since the model's output follows a prompt; and
ids without text (special, unknown, unused) add nothing.

Byte tables are read from the tokenizer's vocabulary and decoder, never by decoding ids one by one:
decoding a lone id loses bytes that are no valid UTF-8 and drops leading blanks. A decoder that
joins tokens in another way than end to end (WordPiece, ``</w>`` suffixes, CTC) is refused.

Nothing here imports the libraries; objects are told apart by what they offer. Reading 128,000 ids
takes about 0.1 s, most of it handing the tokens' names over from the library.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.errors import BackendError, VocabularyError
from constrain.tokenizer_index.vocabulary import MAX_SIZE, TokenTable

_METASPACE = "\u2581"
# The library reads the two characters as a number in base 16, which may have a plus sign.
_FALLBACK_NAME = re.compile("<0x([0-9a-fA-F+][0-9a-fA-F])>")
_FROM_TOKENS = "Pass the bytes of each id to Vocabulary.from_tokens instead."


def byte_level_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for.

    Printable Latin-1 characters stand for themselves, the other bytes for U+0100 and up, in order
    (the GPT-2 tokenizer, which all byte-level tokenizers follow).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


# -------------------------------------------------------------------------------- transformers


def read_transformers(tokenizer: Any) -> TokenTable:
    """Read a tokenizer of ``transformers``, or a ``tokenizers.Tokenizer``.

    Parameters
    ----------
    tokenizer : object
        A fast tokenizer; a slow one over SentencePiece or with a byte-level vocabulary; one over
        ``mistral_common``; or a processor that holds one of these.

    Raises
    ------
    VocabularyError
        Another kind of object, or a decoder whose text is not the concatenation of tokens.

    Notes
    -----
    ``decode(..., clean_up_tokenization_spaces=True)`` changes text after it was decoded, so it may
    break a format that the tokens kept.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "id_to_token") and hasattr(backend, "decoder"):
        return _read_tokenizers(backend, tokenizer if backend is not tokenizer else None)
    if _mistral_core(getattr(tokenizer, "tokenizer", None)) is not None:
        return read_mistral(tokenizer.tokenizer)
    if hasattr(tokenizer, "sp_model"):
        return _read_slow_sentencepiece(tokenizer)
    if hasattr(tokenizer, "byte_decoder"):
        return _read_slow_byte_level(tokenizer)
    inner = getattr(tokenizer, "tokenizer", None)  # processors of multimodal models
    if inner is not None and (hasattr(inner, "backend_tokenizer") or hasattr(inner, "get_vocab")):
        return read_transformers(inner)
    raise VocabularyError(
        f"the vocabulary of a {type(tokenizer).__name__} cannot be read as bytes. {_FROM_TOKENS}"
    )


def _read_tokenizers(backend: Any, tokenizer: Any) -> TokenTable:
    """Read a Rust tokenizer; ``tokenizer`` is the object of ``transformers`` around it, if any."""
    steps = _decoder_steps(backend)
    added = backend.get_added_tokens_decoder()
    names = _token_names(backend)
    silent = {token_id for token_id, token in added.items() if token.special} | _unknown_ids(backend.model)
    silent.update(_special_ids(tokenizer))
    for token_id in silent:
        if token_id < len(names):
            names[token_id] = ""
    eos = _eos_ids(getattr(tokenizer, "eos_token_id", None))
    table = _byte_level_table(names, eos) if steps == ["ByteLevel"] else _fallback_table(names, steps, eos)
    return replace(table, special_tokens={token.content: token_id for token_id, token in added.items()})


def _token_names(backend: Any) -> list[str]:
    """Names of all ids, added tokens included, as the library hands them over fastest."""
    n_tokens = backend.get_vocab_size(with_added_tokens=True)
    names = list(map(backend.id_to_token, range(n_tokens)))
    if None in names:  # ids have gaps, so some lie past the number of tokens
        largest = max(backend.get_vocab(with_added_tokens=True).values())
        if largest >= MAX_SIZE:
            raise VocabularyError(f"token id {largest:,} is above the {MAX_SIZE:,} ids supported.")
        names = [backend.id_to_token(token_id) or "" for token_id in range(largest + 1)]
    return names


def _unknown_ids(model: Any) -> set[int]:
    """Ids that stand for "some unknown text"."""
    if type(model).__name__ == "Unigram":  # says so only in its serialised form, at the very start
        found = re.match(rb'\{"type":"Unigram","unk_id":(\d+),', model.__getstate__())
        return {int(found[1])} if found else set()
    unknown = getattr(model, "unk_token", None)
    token_id = None if unknown is None else model.token_to_id(unknown)
    return set() if token_id is None else {token_id}


def _decoder_steps(backend: Any) -> list[Any]:
    """What the decoder does to each token's name.

    Returns
    -------
    list
        ``["ByteLevel"]``, or a mixture of ``(old, new)`` texts to replace and ``"ByteFallback"``.
    """
    kind = type(backend.model).__name__
    if kind == "WordPiece":
        raise VocabularyError(f"a WordPiece tokenizer puts blanks between its tokens. {_FROM_TOKENS}")
    if getattr(backend.model, "end_of_word_suffix", None) and backend.decoder is None:
        raise VocabularyError(f"a tokenizer that marks ends of words needs a decoder. {_FROM_TOKENS}")
    if backend.decoder is None:
        before = backend.pre_tokenizer
        is_byte_level = before is not None and _has_byte_level(json.loads(before.__getstate__()))
        return ["ByteLevel"] if is_byte_level else []
    steps: list[Any] = []
    is_fused = False
    for step in _flattened(json.loads(backend.decoder.__getstate__())):
        match step:
            case {"type": "ByteLevel" | "ByteFallback" as name}:
                steps.append(name)
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if not is_fused:
                steps.append((old, new))
            case {"type": "Metaspace", "replacement": str(old)} if not is_fused:
                steps.append((old, " "))
            case {"type": "Fuse"}:
                is_fused = True
            case {"type": "Strip", "stop": 0} if is_fused:
                pass  # only at the start of a text
            case _:
                raise VocabularyError(
                    f"the tokenizer's decoder does not write its tokens end to end: {step}. {_FROM_TOKENS}"
                )
    if "ByteLevel" in steps and len(steps) > 1:
        raise VocabularyError(f"the tokenizer's decoder mixes byte-level with other steps. {_FROM_TOKENS}")
    return steps


def _flattened(decoder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps of a decoder, nested sequences opened."""
    steps: list[Mapping[str, Any]] = []
    waiting = [decoder]
    while waiting:
        step = waiting.pop()
        if step.get("type") == "Sequence":
            waiting += reversed(step["decoders"])
        else:
            steps.append(step)
    return steps


def _has_byte_level(pre_tokenizer: Mapping[str, Any]) -> bool:
    waiting = [pre_tokenizer]
    while waiting:
        step = waiting.pop()
        if step.get("type") == "ByteLevel":
            return True
        waiting += step.get("pretokenizers", ())
    return False


def _byte_level_table(names: Sequence[str], eos: tuple[int, ...]) -> TokenTable:
    """Bytes of names in the byte-level alphabet; a name with any other character is literal text."""
    alphabet = byte_level_alphabet()
    byte_of = np.full(max(map(ord, alphabet)) + 2, -1, np.int16)
    for character, byte in alphabet.items():
        byte_of[ord(character)] = byte
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    codes = np.frombuffer("".join(names).encode("utf-32-le"), np.uint32)
    data = byte_of[np.minimum(codes, len(byte_of) - 1)]
    others = np.searchsorted(np.cumsum(lengths), np.flatnonzero(data < 0), side="right")
    literal = {token_id: names[token_id].encode() for token_id in np.unique(others).tolist()}
    return _table_with(data.astype(np.uint8), lengths, literal, eos)


def _fallback_table(names: Sequence[str], steps: Iterable[Any], eos: tuple[int, ...]) -> TokenTable:
    """Bytes of names that are text, apart from replacements and tokens ``<0xNN>``."""
    bytes_of: dict[int, bytes] = {}
    for step in steps:
        if step == "ByteFallback":
            named = [token_id for token_id, name in enumerate(names) if name[:3] == "<0x"]
            bytes_of = {i: byte for i in named if (byte := _fallback_byte(names[i])) is not None}
        else:
            old, new = step
            names = [name.replace(old, new) for name in names]
    data = np.frombuffer("".join(names).encode(), np.uint8)
    # Characters before each byte that begins one, so lengths in characters become lengths in bytes.
    firsts = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    ends = firsts[np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))]
    return _table_with(data, np.diff(ends, prepend=0), bytes_of, eos)


def _table_with(
    data: NDArray[np.uint8], lengths: NDArray[np.int64], replaced: Mapping[int, bytes], eos: tuple[int, ...]
) -> TokenTable:
    """Pack a table, with other bytes for the ids in ``replaced``, which rise."""
    ids = np.fromiter(replaced, np.int64, len(replaced))
    keep = np.ones(len(lengths), np.bool_)
    keep[ids] = False
    kept_ends = np.cumsum(np.where(keep, lengths, 0))
    new_lengths = lengths.copy()
    new_lengths[ids] = np.fromiter(map(len, replaced.values()), np.int64, len(replaced))
    if len(ids):
        places = np.repeat(kept_ends[ids], new_lengths[ids])
        new = np.frombuffer(b"".join(replaced.values()), np.uint8)
        data = np.insert(data[np.repeat(keep, lengths)], places, new)
    return TokenTable(data, np.concatenate((np.zeros(1, np.int64), np.cumsum(new_lengths))), eos)


def _fallback_byte(name: str) -> bytes | None:
    """The byte a name ``<0xNN>`` stands for, or None."""
    found = _FALLBACK_NAME.fullmatch(name)
    return None if found is None else bytes([int(found[1], 16)])


def _special_ids(tokenizer: Any) -> Collection[int]:
    ids: Collection[int] = getattr(tokenizer, "all_special_ids", ())
    return ids


def _eos_ids(eos_token_id: Any) -> tuple[int, ...]:
    """The end tokens a tokenizer or a generation config names: one, several or none."""
    if eos_token_id is None:
        return ()
    return tuple(eos_token_id) if isinstance(eos_token_id, list | tuple) else (eos_token_id,)


def _read_slow_byte_level(tokenizer: Any) -> TokenTable:
    """Read a Python tokenizer whose vocabulary is written in an alphabet for bytes."""
    byte_of: Mapping[str, int] = tokenizer.byte_decoder
    added: Mapping[int, Any] = tokenizer.added_tokens_decoder
    tokens: dict[int, bytes] = {}
    for name, token_id in tokenizer.get_vocab().items():
        try:
            tokens[token_id] = bytes([byte_of[character] for character in name])
        except KeyError:
            tokens[token_id] = name.encode()
    for token_id, token in added.items():
        tokens[token_id] = b"" if token.special else token.content.encode()
    tokens.update(dict.fromkeys(_special_ids(tokenizer), b""))
    special = {token.content: token_id for token_id, token in tokenizer.added_tokens_decoder.items()}
    return TokenTable.from_tokens(_by_id(tokens), _eos_ids(tokenizer.eos_token_id), special)


def _read_slow_sentencepiece(tokenizer: Any) -> TokenTable:
    """Read a Python tokenizer over a SentencePiece model, and what was added to it."""
    tokens = dict(enumerate(_sentencepiece_tokens(tokenizer.sp_model)))
    for token_id, token in tokenizer.added_tokens_decoder.items():
        tokens[token_id] = b"" if token.special else token.content.encode()
    tokens.update(dict.fromkeys(_special_ids(tokenizer), b""))
    special = {token.content: token_id for token_id, token in tokenizer.added_tokens_decoder.items()}
    return TokenTable.from_tokens(_by_id(tokens), _eos_ids(tokenizer.eos_token_id), special)


def _by_id(tokens: Mapping[int, bytes]) -> list[bytes]:
    largest = max(tokens, default=-1)
    if largest >= MAX_SIZE:
        raise VocabularyError(f"token id {largest:,} is above the {MAX_SIZE:,} ids supported.")
    return [tokens.get(token_id, b"") for token_id in range(largest + 1)]


# ------------------------------------------------------------------------------ other libraries


def read_tiktoken(encoding: Any) -> TokenTable:
    """Read a ``tiktoken.Encoding``; special tokens have no text, ``<|endoftext|>`` is the end token."""
    special = {encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    tokens: list[bytes] = []
    for token_id in range(encoding.max_token_value + 1):
        try:
            tokens.append(b"" if token_id in special else encoding.decode_single_token_bytes(token_id))
        except KeyError:
            tokens.append(b"")  # an unused id
    try:
        eos: tuple[int, ...] = (encoding.eot_token,)
    except KeyError:
        eos = ()
    named = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    return TokenTable.from_tokens(tokens, eos, named)


def read_sentencepiece(processor: Any) -> TokenTable:
    """Read a ``sentencepiece.SentencePieceProcessor``, or load the model file at a path.

    Control, unknown and unused pieces have no text; user-defined pieces have theirs.
    """
    if isinstance(processor, str | os.PathLike):
        processor = _load_sentencepiece(os.fspath(processor))
    eos = processor.eos_id()
    return TokenTable.from_tokens(
        _sentencepiece_tokens(processor), (eos,) if eos >= 0 else (), _control_pieces(processor)
    )


def _load_sentencepiece(path: str) -> Any:
    if not os.path.isfile(path):
        raise VocabularyError(f"there is no SentencePiece model at {path!r}.")
    try:
        library = import_module("sentencepiece")
    except ImportError as error:
        raise BackendError("reading a SentencePiece model needs: pip install sentencepiece") from error
    try:
        return library.SentencePieceProcessor(model_file=path)
    except (RuntimeError, OSError) as error:
        raise VocabularyError(f"{path!r} is no SentencePiece model: {error}") from error


def _sentencepiece_tokens(processor: Any) -> list[bytes]:
    ids = list(range(processor.get_piece_size()))
    silent = zip(processor.is_control(ids), processor.is_unknown(ids), processor.is_unused(ids), strict=True)
    pieces = zip(processor.id_to_piece(ids), processor.is_byte(ids), map(any, silent), strict=True)
    return [
        b""
        if is_silent
        else bytes([int(piece[3:5], 16)])
        if is_byte
        else piece.replace(_METASPACE, " ").encode()
        for piece, is_byte, is_silent in pieces
    ]


def _control_pieces(processor: Any) -> dict[str, int]:
    """Names and ids of control pieces."""
    ids = list(range(processor.get_piece_size()))
    return {
        processor.id_to_piece(piece): piece
        for piece, is_control in zip(ids, processor.is_control(ids), strict=True)
        if is_control
    }


def read_mistral(tokenizer: Any) -> TokenTable:
    """Read a tokenizer of ``mistral_common``: a ``MistralTokenizer``, or the part of it that has the ids.

    Raises
    ------
    VocabularyError
        Neither a tekken nor a SentencePiece tokenizer.
    """
    core = _mistral_core(tokenizer)
    if core is None:
        raise VocabularyError(
            f"a {type(tokenizer).__name__} is no tokenizer of mistral_common. {_FROM_TOKENS}"
        )
    # The part below both kinds, reached directly: their own accessors take a microsecond for each id.
    model = core._model
    if hasattr(model, "decode_single_token_bytes"):
        n_special: int = core.num_special_tokens
        tokens = [b""] * n_special
        tokens += map(model.decode_single_token_bytes, range(core.n_words - n_special))
        special = {core.id_to_piece(token_id): token_id for token_id in range(n_special)}
    else:
        tokens = _sentencepiece_tokens(model)
        special = _control_pieces(model)
    return TokenTable.from_tokens(tokens, (core.eos_id,), special)


def _mistral_core(tokenizer: Any) -> Any:
    """The tekken or SentencePiece tokenizer inside one of ``mistral_common``, or None."""
    for name in ("instruct_tokenizer", "tokenizer"):
        tokenizer = getattr(tokenizer, name, tokenizer)
    model = getattr(tokenizer, "_model", None)
    is_known = hasattr(model, "decode_single_token_bytes") or hasattr(model, "id_to_piece")
    return tokenizer if is_known and hasattr(tokenizer, "n_words") else None
