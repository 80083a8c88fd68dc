"""The slice of a vocabulary: tokens made only of characters that stand raw inside a JSON string.

Nine tokens in ten of a real vocabulary are such tokens. Where every one-character continuation of a
lexer state is alive (inside strings, free text, comments), all of them are allowed together, so
their masks are computed once per vocabulary instead of by walking their trie: *layer* ``k`` holds
the slice tokens of at most ``k`` characters, which serves strings with ``k`` characters left.

A character here is one Unicode scalar value in UTF-8 (RFC 3629 section 4, so neither overlong forms
nor surrogates nor values past U+10FFFF), other than U+0000 to U+001F, the quotation mark and the
reverse solidus (RFC 8259 section 7, ``unescaped``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DEAD = -1
SLICE_NAME = "json-string-characters"
N_COUNTED_LAYERS = 33
"""Layers 0 to 32 count characters; one more layer holds the whole slice."""
BUCKET_LIMITS = (4, 8, 16, 1 << 20)
"""Largest number of characters of a token in each trie of the slice."""


def character_automaton(
    present: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the byte automaton of any number of slice characters.

    Parameters
    ----------
    present : (256,) bool or None
        Bytes that occur in some token. Others are left out, and so are states that could then not
        get back to the start: a lexer that has been rid of such bytes must not fail the question
        whether it takes every character. ``None``: all bytes.

    Returns
    -------
    table : (8, 256) int32, C-contiguous
        Next state, -1 where there is none. State 0 is the start, between characters.
    accept : (8,) uint8
        1 on state 0 alone.
    """
    table = np.full((8, 256), DEAD, np.int32)
    table[0, 0x20:0x80] = 0
    table[0, [0x22, 0x5C]] = DEAD
    table[0, 0xC2:0xE0] = 1
    table[0, 0xE0] = 2
    table[0, 0xE1:0xF0] = 3
    table[0, 0xED] = 4
    table[0, 0xF0] = 5
    table[0, 0xF1:0xF4] = 6
    table[0, 0xF4] = 7
    table[1, 0x80:0xC0] = 0  # one byte left
    table[2, 0xA0:0xC0] = 1  # after E0: no overlong form
    table[3, 0x80:0xC0] = 1  # two bytes left
    table[4, 0x80:0xA0] = 1  # after ED: no surrogate
    table[5, 0x90:0xC0] = 3  # after F0: no overlong form
    table[6, 0x80:0xC0] = 3  # three bytes left
    table[7, 0x80:0x90] = 3  # after F4: at most U+10FFFF
    accept = np.zeros(8, np.uint8)
    accept[0] = 1
    if present is not None:
        table[:, ~present] = DEAD
        for _ in range(3):  # bytes of a character that may follow its first
            stuck = np.flatnonzero((table[1:] == DEAD).all(axis=1)) + 1
            table[np.isin(table, stuck)] = DEAD
    return table, accept


def in_slice(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Say which byte strings are in the slice.

    Parameters
    ----------
    data : (n_bytes,) uint8
    starts, lengths : (n,) int64
        String ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``.

    Returns
    -------
    (n,) bool
        True where the string is one or more complete slice characters.
    """
    table, accept = character_automaton()
    member = np.zeros(len(starts), np.bool_)
    # All strings advance together, byte by byte; the few long ones are alone in the last rounds.
    running = np.flatnonzero(lengths > 0)
    states = np.zeros(len(running), np.int32)
    position = 0
    while running.size:
        states = table[states, data[starts[running] + position]]
        position += 1
        ended = lengths[running] == position
        final = states[ended]
        member[running[ended]] = (final >= 0) & (accept[np.maximum(final, 0)] == 1)
        going = ~ended & (states >= 0)
        running, states = running[going], states[going]
    return member


def character_counts(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the characters of byte strings that are valid UTF-8.

    Returns
    -------
    (n,) int64
        Bytes that begin a character, that is, all but 80 to BF.
    """
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=before[1:])
    counts: NDArray[np.int64] = before[starts + lengths] - before[starts]
    return counts


def layer_masks(
    token_ids: NDArray[np.int64], characters: NDArray[np.int64], n_words: int
) -> NDArray[np.uint32]:
    """Pack the slice into cumulative masks by number of characters.

    Parameters
    ----------
    token_ids, characters : (n,) int64
        All ids of the slice, equal byte strings included, and their lengths in characters.
    n_words : int
        Words of a mask.

    Returns
    -------
    (34, n_words) uint32, C-contiguous
        Row ``k`` up to 32: tokens of at most ``k`` characters; row 33: all tokens. Bit ``t % 32`` of
        word ``t // 32`` stands for token ``t``.
    """
    layers = np.zeros((N_COUNTED_LAYERS + 1, n_words), np.uint32)
    row = np.minimum(characters, N_COUNTED_LAYERS)
    bit = np.left_shift(np.uint32(1), (token_ids & 31).astype(np.uint32))
    np.bitwise_or.at(layers, (row, token_ids >> 5), bit)
    return np.bitwise_or.accumulate(layers, axis=0)
