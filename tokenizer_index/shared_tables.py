"""What all arenas of one vocabulary share: the arrays of its index as kernels see them, and scratch."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index.trie import VocabularyIndex


def address_of(array: NDArray[Any]) -> int:
    """Address of an array's first byte."""
    return int(array.__array_interface__["data"][0])


class Scratch:
    """Large arrays a kernel needs only while it runs, shared by all arenas of a vocabulary."""

    __slots__ = ("address", "arrays", "pairs")

    def __init__(self, n_nodes: int, longest: int) -> None:
        n = n_nodes
        self.arrays: dict[int, NDArray[Any]] = {
            k.X_STACK: np.zeros(longest + 2, np.int64),
            k.X_EXITS: np.empty(n + 1, np.int64),
            k.X_MERGE: np.empty(n + 1, np.int64),
            k.X_TOKENS: np.empty(n + 1, np.int32),
            k.X_MARK: np.zeros(n + 1, np.int64),
        }
        self.pairs = np.array([[address_of(self.arrays[t]), self.arrays[t].size] for t in range(k.N_SCRATCH)])
        self.address = address_of(self.pairs)

    def grow(self, table: int, size: int) -> None:
        """Make one array larger; what it holds need not be kept, since the call starts again."""
        for t in (table, k.X_MERGE) if table == k.X_EXITS else (table,):
            array = self.arrays[t] = np.empty(size, self.arrays[t].dtype)
            self.pairs[t] = address_of(array), size


class SharedTables:
    """What all arenas of one vocabulary index share: addresses of its arrays, and scratch.

    Does not keep the index alive; the arenas do.
    """

    def __init__(self, index: VocabularyIndex) -> None:
        self._n_nodes, self._longest = index.n_nodes, index.max_token_length
        arrays: dict[int, NDArray[Any]] = {
            k.NODES: index.nodes,
            k.NODE_TOKEN: index.node_token,
            k.TRIE_BASE: index.trie_base,
            k.TRIE_SIZE: index.trie_size,
            k.BUCKET_MAX: index.bucket_max,
            k.SLICE_ACCEPT: index.slice_accept,
            k.LAYERS: index.layers,
            k.TOKEN_OFF: index.token_offsets,
            k.TOKEN_DATA: index.token_data,
            k.DUPLICATES: index.duplicates,
            k.EOS: index.eos_token_ids,
        }
        self.columns = [(t, address_of(a), a.size) for t, a in arrays.items()]
        self.roots = _roots(index)
        self.n_layers = len(index.layers) if index.has_slice else 0
        table = index.slice_table
        # Bytes where the slice's automaton changes: classes must not straddle them.
        self.slice_cuts = [b for b in range(1, 256) if (table[:, b] != table[:, b - 1]).any()]
        self._scratch: list[Scratch] = []

    def borrow(self) -> Scratch:
        """Take scratch for one call; lists make this safe between threads."""
        try:
            return self._scratch.pop()
        except IndexError:
            return Scratch(self._n_nodes, self._longest)

    def give_back(self, scratch: Scratch) -> None:
        """Return scratch for others to use."""
        if len(self._scratch) < 8:
            self._scratch.append(scratch)


def _roots(index: VocabularyIndex) -> NDArray[np.int64]:
    """Nodes of the tries' first level as a set of nodes, ``byte << 32 | node``: (n,), sorted."""
    found: list[int] = []
    for first, size in zip(index.trie_base.tolist(), index.trie_size.tolist(), strict=True):
        i = first
        while i < first + size:
            node = int(index.nodes[i])
            found.append((node & 255) << 32 | i)
            i += node >> 24
    return np.array(sorted(found), np.int64)


_shared_lock = threading.Lock()
_shared: weakref.WeakKeyDictionary[VocabularyIndex, SharedTables] = weakref.WeakKeyDictionary()


def shared_tables(index: VocabularyIndex) -> SharedTables:
    with _shared_lock:
        found = _shared.get(index)
        if found is None:
            found = _shared[index] = SharedTables(index)
        return found
