"""The kernel that writes masks into logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_BIT = (np.uint32(1) << np.arange(32, dtype=np.uint32)).view(np.int32)


@njit(
    [
        f"void({bits}[::1], int64, int64, int32[:, ::1], int64[::1], {bits}, {bits}, int64)"
        for bits in ("int16", "int32", "int64")
    ],
    cache=True,
    nogil=True,
)
def _block_rows(
    logits: Any, row_stride: int, width: int, words: Any, rows: Any, blocked: int, ones: int, lanes: int
) -> None:
    """Write ``blocked`` over the logits of the tokens that a mask does not allow.

    Works on the logits' bits, so one kernel serves each width of float, bfloat16 included.

    Parameters
    ----------
    logits : (n,) int16, int32 or int64, changed
        Bits of all logits; row ``r`` starts at ``r * row_stride``.
    row_stride, width : int64
        Elements from row to row, and logits of a row.
    words : (n_rows, n_words) int32, C-contiguous
        Packed masks; bit ``t % 32`` of word ``t // 32`` is 1 where token ``t`` is allowed. Tokens
        past them are blocked.
    rows : (n,) int64
        Rows to treat; each below ``n_rows`` and inside ``logits``.
    blocked : as logits
        Bits of minus infinity.
    ones, lanes : as logits, int64
        -1 and 32, known only when called: with a constant 32 LLVM unrolls the loops instead of
        vectorising them, and with a constant -1 it makes masked stores of the blend, which some
        processors carry out one lane at a time (four times slower).
    """
    n_full = min(words.shape[1], width // 32)
    for i in range(rows.size):
        row = rows[i]
        first = row * row_stride
        for k in range(n_full):
            word = words[row, k]
            if word == -1:
                continue
            block = logits[first + 32 * k : first + 32 * k + lanes]
            if word == 0:
                for j in range(block.size):
                    block[j] = blocked
            else:
                for j in range(block.size):
                    old = block[j]
                    gone = ones if (word & _BIT[j]) == 0 else ones ^ ones
                    block[j] = old ^ ((old ^ blocked) & gone)
        done = 32 * n_full
        if n_full < words.shape[1]:
            word = words[row, n_full]
            for j in range(width - done):
                if (word & _BIT[j]) == 0:
                    logits[first + done + j] = blocked
        else:
            for j in range(done, width):
                logits[first + j] = blocked
