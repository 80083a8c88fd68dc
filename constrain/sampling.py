"""Random members of a spec, byte by byte."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from constrain.checks import Tally, begin_all
from constrain.compiled import CompiledSpec
from constrain.errors import LimitExceededError, SpecError, VocabularyError
from constrain.tokenizer_index.mask import allocate_token_bitmask
from constrain.tokenizer_index.vocabulary import Vocabulary

_END = 256
_P_END = 0.25
_TYPICAL_EXTRA = 24.0
_GROWTH = 1.1
# Texts that the checks of a spec may refuse before a sample is given up.
_MOST_TRIES = 1_000


@lru_cache(maxsize=8)
def byte_vocabulary(names: tuple[str | int, ...] = ()) -> Vocabulary:
    """Return the vocabulary whose tokens are the 256 bytes, ended by id 256, and some special tokens.

    Raises
    ------
    VocabularyError
        A special token is named by its id, which means nothing without a tokenizer.
    """
    tokens = [*(bytes([byte]) for byte in range(256)), None, *(None for _ in names)]
    special = {}
    for token_id, name in enumerate(names, _END + 1):
        if not isinstance(name, str):
            raise VocabularyError(f"token {name} is known by its id alone, so no sample can be written.")
        special[name] = token_id
    return Vocabulary.from_tokens(tokens, eos_token_ids=[_END], special_tokens=special)


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.float64]:
    """How much each byte is liked where it is allowed: readable text first."""
    weights = np.full(256, 1.0)
    weights[:0x20] = 0.02
    weights[ord(" ")] = 2.0
    weights[[ord(c) for c in "abcdefghijklmnopqrstuvwxyz"]] = 4.0
    weights[[ord(c) for c in "0123456789"]] = 2.0
    weights[[ord(c) for c in '"{}[],:']] = 6.0
    weights[ord("\\")] = 0.1
    weights[0x7F] = 0.02
    weights[0xC0:] = 0.05
    return weights


def sample(compiled: CompiledSpec, rng: np.random.Generator, max_bytes: int) -> str:
    """Return a random member of at most ``max_bytes`` bytes.

    Parameters
    ----------
    compiled : CompiledSpec
        Of the spec and `byte_vocabulary`. Special tokens are written as their names.

    Raises
    ------
    SpecError
        No member is that short.
    LimitExceededError
        The spec's checks refused too many texts.
    """
    tally, typical = Tally(), _TYPICAL_EXTRA
    for _ in range(_MOST_TRIES):
        # Where short texts are refused, longer ones may not be.
        text = _sample_once(compiled, rng, max_bytes, tally, typical)
        typical = min(typical * _GROWTH, max_bytes)
        if text is not None:
            return text
    raise LimitExceededError(
        "tries",
        _MOST_TRIES,
        f"a sample of {compiled.spec!r}",
        hint="Its checks refuse nearly all texts of its grammar; write more of what they demand in the grammar.",
    )


def _sample_once(
    compiled: CompiledSpec, rng: np.random.Generator, max_bytes: int, tally: Tally, typical: float
) -> str | None:
    """Return a random text of the grammar; ``None`` where the spec's checks refused it."""
    progress = begin_all(compiled.spec.checks, tally) if compiled.spec.checks else None
    matcher = compiled.matcher()
    least = int(matcher.min_tokens_to_finish())
    if least > max_bytes:
        raise SpecError(
            f"No member of {compiled.spec!r} has at most {max_bytes:,} bytes.",
            hint=f"Pass max_bytes={least:,} or more.",
        )
    # A budget drawn at random decides how much longer than necessary the text may get.
    extra = min(max_bytes - least, int(rng.exponential(typical)))
    remaining = least + extra + 1
    mask = allocate_token_bitmask(1, compiled.vocab_size)
    weights = np.ones(compiled.vocab_size)
    weights[:256] = _weights()
    names = {token_id: name for name, token_id in compiled.vocabulary.special_tokens.items()}
    data = bytearray()
    while True:
        matcher.fill_budget_bitmask(mask, 0, remaining=remaining)
        bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")
        bits[compiled.vocab_size :] = 0
        allowed = np.flatnonzero(bits)
        allowed = allowed[allowed != _END]
        is_end = bits[_END] and (not len(allowed) or rng.random() < _P_END)
        # What isn't wanted here may be, longer.
        if is_end and (progress is None or progress.ends()):
            return data.decode("utf-8", errors="surrogateescape")
        while len(allowed):
            likely = weights[allowed]
            byte = int(rng.choice(allowed, p=likely / likely.sum()))
            piece = bytes((byte,)) if byte < _END else names[byte].encode()
            after = None if progress is None else progress.read(piece)
            if progress is None or after is not None:
                break
            allowed = allowed[allowed != byte]
        if not len(allowed):
            return None
        progress = after
        matcher.accept_token(byte)
        data += piece
        remaining -= 1
