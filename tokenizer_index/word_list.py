"""Alternations of literals as tries, written to flat arrays at once.

An enumeration of 10,000 strings has some 100,000 positions, too many to build one by one. The words are
sorted, so each shares a path with the one before and adds one chain of new positions. The last byte of each
word leads to one common end; where a word begins another one, that byte leads to the end and to a position
on the way to the other.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.ir import Alternation, Concatenation, Literal, Pattern
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import (
    ALWAYS,
    KEEP,
    N_EDGE_COLUMNS,
    N_POSITION_COLUMNS,
    Fragment,
    empty_fragment,
)

_END = -1


def words_of(pattern: Pattern) -> list[bytes] | None:
    """Return the words of an alternation of literals, perhaps between two literals; else None."""
    before = after = b""
    if isinstance(pattern, Concatenation):
        choices = [i for i, part in enumerate(pattern.parts) if not isinstance(part, Literal)]
        if len(choices) != 1:
            return None
        i = choices[0]
        before = b"".join([part.data for part in pattern.parts[:i] if isinstance(part, Literal)])
        after = b"".join([part.data for part in pattern.parts[i + 1 :] if isinstance(part, Literal)])
        pattern = pattern.parts[i]
    if not isinstance(pattern, Alternation):
        return None
    words = [part.data for part in pattern.parts if isinstance(part, Literal)]
    if len(words) != len(pattern.parts):
        return None
    return [before + word + after for word in words] if before or after else words


def word_list_fragment(words: Iterable[bytes], watch: Watch, place: str) -> Fragment:
    """Return the byte automaton of ``words``.

    Raises
    ------
    LimitExceededError
        More positions or time than allowed.
    """
    distinct = sorted(set(words))
    nullable = bool(distinct) and not distinct[0]
    if nullable:
        del distinct[0]
    if not distinct:
        return empty_fragment(nullable=nullable)
    source, target, distance = array("i"), array("i"), array("i", [len(distinct[0])])
    spelled: list[bytes] = []
    is_deterministic = True
    path = [0]  # positions along the word before, without its end
    before = b""
    for word in distinct:
        n, shared = len(word), _shared(before, word)
        if before and shared == len(before):
            is_deterministic = False
            shared -= 1
        first = len(distance)
        # A shorter word brings the end nearer to the positions it shares.
        for depth in range(shared, -1, -1):
            if distance[path[depth]] <= n - depth:
                break
            distance[path[depth]] = n - depth
        new = range(first, first + n - shared - 1)
        source.append(path[shared])
        source.extend(new)
        target.extend(new)
        target.append(_END)
        distance.extend(range(n - shared - 1, 0, -1))
        spelled.append(word[shared:])
        path[shared + 1 :] = new
        before = word
        watch.step(place, 1 + len(new))
    distance.append(0)
    return _flatten(source, target, distance, b"".join(spelled), nullable, is_deterministic)


def _shared(a: bytes, b: bytes) -> int:
    """Return how many bytes ``a`` and ``b`` begin with together."""
    n = min(len(a), len(b))
    differs = int.from_bytes(a[:n], "big") ^ int.from_bytes(b[:n], "big")
    return n - (differs.bit_length() + 7) // 8


def _flatten(
    source: array[int],
    target: array[int],
    distance: array[int],
    spelled: bytes,
    nullable: bool,
    is_deterministic: bool,
) -> Fragment:
    n = len(distance)
    sources = np.frombuffer(source, np.int32)
    targets = np.frombuffer(target, np.int32)
    order = np.argsort(sources, kind="stable")
    degree = np.bincount(sources, minlength=n)
    edges = np.empty((len(order), N_EDGE_COLUMNS), np.int32)
    edges[:, 0] = edges[:, 1] = low = np.frombuffer(spelled, np.uint8)[order]
    edges[:, 2] = np.where(targets == _END, n - 1, targets)[order]
    edges[:, 3:] = ALWAYS, KEEP
    positions = np.empty((n, N_POSITION_COLUMNS), np.int32)
    positions[:, 0] = degree
    positions[:, 1:5] = 0, 0, 0, -1
    positions[:, 5] = distance
    positions[n - 1, 1] = 1
    inner = _byte_set(low[degree[0] :])
    return Fragment(
        n_positions=n,
        n_edges=len(edges),
        nullable=nullable,
        positions=positions.tobytes(),
        edges=edges.tobytes(),
        first=_byte_set(low[: degree[0]]),
        after=0 if is_deterministic else inner,
        inner=inner,
    )


def _byte_set(values: NDArray[np.uint8]) -> int:
    found = 0
    for byte in set(values.tobytes()):
        found |= 1 << byte
    return found
