"""Random members of a spec, byte by byte."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from constrain.compiled import CompiledSpec
from constrain.errors import SpecError
from constrain.tokenizer_index.mask import allocate_token_bitmask
from constrain.tokenizer_index.vocabulary import Vocabulary

_END = 256
_P_END = 0.25
_TYPICAL_EXTRA = 24.0


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """Return the vocabulary whose tokens are the 256 bytes, ended by id 256."""
    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[_END])


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
        Of the spec and `byte_vocabulary`.

    Raises
    ------
    SpecError
        No member is that short.
    """
    matcher = compiled.matcher()
    least = int(matcher.min_tokens_to_finish())
    if least > max_bytes:
        raise SpecError(
            f"No member of {compiled.spec!r} has at most {max_bytes:,} bytes.",
            hint=f"Pass max_bytes={least:,} or more.",
        )
    # A budget drawn at random decides how much longer than necessary the text may get.
    extra = min(max_bytes - least, int(rng.exponential(_TYPICAL_EXTRA)))
    remaining = least + extra + 1
    mask = allocate_token_bitmask(1, compiled.vocab_size)
    weights = _weights()
    data = bytearray()
    while True:
        matcher.fill_budget_bitmask(mask, 0, remaining=remaining)
        bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")
        allowed = np.flatnonzero(bits[:256])
        if bits[_END] and (not len(allowed) or rng.random() < _P_END):
            return data.decode("utf-8", errors="surrogateescape")
        likely = weights[allowed]
        byte = int(rng.choice(allowed, p=likely / likely.sum()))
        matcher.accept_token(byte)
        data.append(byte)
        remaining -= 1
