"""A vocabulary's index the slow way: dicts of nodes, one token at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

BUCKETS = ((1, 4), (5, 8), (9, 16), (17, 1 << 20))


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a trie in depth-first order, without the root."""

    byte: int
    depth: int
    subtree_size: int
    token: int


def is_slice_token(token: bytes) -> bool:
    """Say whether a token is made only of complete characters that stand raw in a JSON string."""
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return bool(text) and not any(
        c in '"\\' or (c < "\x7f" and unicodedata.category(c) == "Cc") for c in text
    )


def canonical_ids(tokens: Sequence[bytes | None]) -> dict[bytes, int]:
    """Return the lowest id of each distinct byte string."""
    lowest: dict[bytes, int] = {}
    for token_id, token in enumerate(tokens):
        if token:
            lowest.setdefault(token, token_id)
    return lowest


def duplicate_pairs(tokens: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Return (lowest id, other id) of equal byte strings, by the other id."""
    lowest = canonical_ids(tokens)
    return [(lowest[t], i) for i, t in enumerate(tokens) if t and lowest[t] != i]


def trie_number(token: bytes, has_slice: bool) -> int:
    """Return the trie a token belongs to: 0 outside the slice, else by number of characters."""
    if not has_slice or not is_slice_token(token):
        return 0
    n_characters = len(token.decode("utf-8"))
    return next(1 + i for i, (low, high) in enumerate(BUCKETS) if low <= n_characters <= high)


def depth_first(tokens: dict[bytes, int]) -> list[Node]:
    """Return the nodes of the trie of ``tokens``, children by rising byte."""
    prefixes = sorted({token[:k] for token in tokens for k in range(1, len(token) + 1)})
    return [Node(p[-1], len(p), sum(q.startswith(p) for q in prefixes), tokens.get(p, -1)) for p in prefixes]


def layer_tokens(tokens: Sequence[bytes | None], layer: int) -> set[int]:
    """Return the slice tokens of at most ``layer`` characters; 33 means all."""
    return {
        i
        for i, t in enumerate(tokens)
        if t and is_slice_token(t) and (layer == 33 or len(t.decode("utf-8")) <= layer)
    }
