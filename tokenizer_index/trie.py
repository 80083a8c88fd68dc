"""The vocabulary index: packed tries of all tokens, the slice's masks, and equal tokens.

A trie is stored without its root as one array in depth-first order, children by rising byte. Each
node is one integer that holds all a walk needs: its byte, its depth, and the number of nodes of its
subtree, so that a walk is a single loop over the array that adds 1 to go on and the subtree's size
to skip it:

    i = base
    while i < base + size:
        node = nodes[i]
        depth = node >> 8 & 0xFFFF                    # 1 for a first byte
        state[depth] = step(state[depth - 1], node & 0xFF)
        i += 1 if state[depth] is alive else node >> 24

Invariants
----------
- Each distinct byte string of the vocabulary ends at exactly one node of exactly one trie; the node
  names the lowest id that has these bytes, ``duplicates`` names the others.
- Ids without text (special, padded, unused, end tokens) are in no trie and in no layer.
- Arrays are C-contiguous; those that come from disk are memory-mapped and read-only.

Building takes about 0.3 s for 128,000 tokens, most of it sorting. Depth has 16 bits, so a token has
at most 65,535 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.tokenizer_index import slices
from constrain.tokenizer_index.special_tokens import FIRST_BYTE

VERSION = 1
"""Of the arrays' meaning; part of the cached folder's name, so other versions keep theirs."""
MAX_TOKEN_BYTES = 0xFFFF
N_TRIES = 1 + len(slices.BUCKET_LIMITS)
SLICE_THRESHOLD = 1024
"""Fewer slice tokens than this are not worth a slice: walking them costs microseconds."""
STORED = (
    "nodes",
    "node_token",
    "trie_base",
    "trie_size",
    "layers",
    "duplicates",
)
"""The arrays that are kept on disk; everything else is cheap to make again."""

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class VocabularyIndex:
    """Arrays of one vocabulary, shared by all compiled specs and threads; never changed.

    Parameters
    ----------
    size : int
        Width of the logits; token ids are below it.
    nodes : (n_nodes,) uint64
        ``byte | depth << 8 | subtree_size << 24``: depth is 1 for a first byte; the subtree includes
        the node itself. All tries, back to back.
    node_token : (n_nodes,) int32
        The token that ends at this node, or -1.
    trie_base, trie_size : (5,) int64
        First node and number of nodes of each trie. Trie 0: tokens outside the slice; tries 1 to 4:
        slice tokens by number of characters.
    bucket_max : (4,) int64
        Most characters of a token in tries 1 to 4 (4, 8, 16, no limit).
    slice_table : (n_slice_states, 256) int32
        Byte automaton of the slice characters that tokens can spell, see
        `slices.character_automaton`.
    slice_accept : (n_slice_states,) uint8
    layers : (34, n_words) uint32
        Row ``k`` up to 32: slice tokens of at most ``k`` characters; row 33: all of them. Equal tokens
        are all set.
    duplicates : (n, 2) int32
        Rows (id in the trie, another id with equal bytes), sorted by the second.
    token_offsets : (size + 1,) int64
    token_data : (n_bytes,) uint8
        Token ``t`` is ``token_data[token_offsets[t] : token_offsets[t + 1]]``; empty: no text.
    eos_token_ids : (n,) int32
        Sorted.
    max_token_length : int
        Bytes of the longest token.
    """

    size: int
    nodes: NDArray[np.uint64]
    node_token: Int32
    trie_base: Int64
    trie_size: Int64
    bucket_max: Int64
    slice_table: Int32
    slice_accept: NDArray[np.uint8]
    layers: NDArray[np.uint32]
    duplicates: Int32
    token_offsets: Int64
    token_data: NDArray[np.uint8]
    eos_token_ids: Int32
    max_token_length: int

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # as mapped arrays are: kernels read them at any time

    @property
    def n_words(self) -> int:
        """Words of a mask."""
        return (self.size + 31) // 32

    @property
    def n_nodes(self) -> int:
        """Nodes of all tries together."""
        return len(self.nodes)

    @property
    def has_slice(self) -> bool:
        """Tries 1 to 4 hold tokens."""
        return bool(self.trie_size[1:].any())


def build_index(
    token_data: NDArray[np.uint8],
    token_offsets: Int64,
    eos_token_ids: Int32,
    *,
    slice_threshold: int = SLICE_THRESHOLD,
) -> VocabularyIndex:
    """Build the index of a vocabulary.

    Parameters
    ----------
    token_data, token_offsets : (n_bytes,) uint8, (size + 1,) int64
        Bytes of all tokens by id; an empty token has no text. No token is longer than 65,535 bytes.
    eos_token_ids : (n,) int32
        Kept as they are.
    slice_threshold : int
        With fewer slice tokens all tokens go to trie 0 and the layers stay empty.
    """
    order = _sorted_ids(token_data, token_offsets)
    starts = token_offsets[order]
    lengths = token_offsets[order + 1] - starts
    prefixes = _common_prefix_lengths(token_data, starts, lengths)

    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (prefixes[1:] != lengths[1:]) | (lengths[1:] != lengths[:-1])
    canonical = order[is_first][np.cumsum(is_first) - 1]
    duplicates = np.column_stack((canonical, order))[~is_first].astype(np.int32)
    duplicates = np.ascontiguousarray(duplicates[np.argsort(duplicates[:, 1], kind="stable")])

    n_words = (len(token_offsets) - 1 + 31) // 32
    member = slices.in_slice(token_data, starts, lengths)
    if int(np.count_nonzero(member)) < slice_threshold:
        member[:] = False
    characters = slices.character_counts(token_data, starts, lengths)
    layers = slices.layer_masks(order[member], characters[member], n_words)
    trie_of = np.where(member, 1 + np.searchsorted(slices.BUCKET_LIMITS, characters), 0)

    nodes, node_tokens = [], []
    for trie in range(N_TRIES):
        chosen = np.flatnonzero(is_first & (trie_of == trie))
        trie_nodes, trie_tokens = _build_trie(token_data, starts[chosen], lengths[chosen], order[chosen])
        nodes.append(trie_nodes)
        node_tokens.append(trie_tokens)
    trie_size = np.array([len(part) for part in nodes], np.int64)
    return assemble(
        {
            "nodes": np.concatenate(nodes),
            "node_token": np.concatenate(node_tokens),
            "trie_base": np.cumsum(trie_size) - trie_size,
            "trie_size": trie_size,
            "layers": layers,
            "duplicates": duplicates,
        },
        token_data,
        token_offsets,
        eos_token_ids,
    )


def assemble(
    stored: Mapping[str, NDArray[Any]],
    token_data: NDArray[np.uint8],
    token_offsets: Int64,
    eos_token_ids: Int32,
) -> VocabularyIndex:
    """Make an index of its stored arrays (those named in `STORED`) and what is cheap to make again."""
    present = np.zeros(256, np.bool_)
    present[token_data] = True
    table, accept = slices.character_automaton(present)
    return VocabularyIndex(
        size=len(token_offsets) - 1,
        **{name: stored[name] for name in STORED},
        bucket_max=np.array(slices.BUCKET_LIMITS, np.int64),
        slice_table=table,
        slice_accept=accept,
        token_offsets=token_offsets,
        token_data=token_data,
        eos_token_ids=eos_token_ids,
        max_token_length=int(np.diff(token_offsets).max(initial=0)),
    )


def with_special_tokens(index: VocabularyIndex, spellings: Mapping[bytes, int]) -> VocabularyIndex:
    """Return an index in which some tokens have other bytes than their text, and virtual bytes nobody else.

    Parameters
    ----------
    index : VocabularyIndex
    spellings : mapping of bytes to int
        The virtual spelling of each special token (`special_tokens.spelling`). Its text, if it has any, is not
        in the new index.
    """
    data, offsets = index.token_data, index.token_offsets
    ids = np.array(sorted(spellings.values()), np.int64)
    spelled = {token_id: virtual for virtual, token_id in spellings.items()}
    dropped = np.zeros(len(offsets) - 1, np.bool_)
    dropped[np.searchsorted(offsets, np.flatnonzero(data >= FIRST_BYTE), side="right") - 1] = True
    dropped[ids] = True

    heirs, duplicates = _without_tokens(index.duplicates, dropped)
    node_token = np.where(index.node_token < 0, np.int32(-1), heirs[index.node_token])
    layers = index.layers
    lost = np.flatnonzero(dropped)
    bits = np.zeros(index.n_words, np.uint32)
    np.bitwise_or.at(bits, lost >> 5, np.left_shift(np.uint32(1), (lost & 31).astype(np.uint32)))
    if (layers[-1] & bits).any():
        layers = layers & ~bits

    lengths = np.diff(offsets)
    pieces: list[NDArray[np.uint8]] = []
    end = 0
    for token_id in lost.tolist():
        pieces += (data[end : offsets[token_id]], np.frombuffer(spelled.get(token_id, b""), np.uint8))
        lengths[token_id] = len(pieces[-1])
        end = offsets[token_id + 1]
    data = np.concatenate((*pieces, data[end:]))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))

    # All virtual spellings are in the trie of the tokens outside the slice, at its end: they begin with the
    # highest byte, and nothing else does any more.
    rest = int(index.trie_size[0])
    nodes, tokens = _pruned(index.nodes[:rest], node_token[:rest])
    by_bytes = np.array(sorted(spelled, key=spelled.__getitem__), np.int64)
    new_nodes, new_tokens = _build_trie(data, offsets[by_bytes], lengths[by_bytes], by_bytes)
    nodes, tokens = np.concatenate((nodes, new_nodes)), np.concatenate((tokens, new_tokens))
    trie_size = index.trie_size.copy()
    trie_size[0] = len(nodes)
    arrays: dict[str, NDArray[Any]] = {
        "nodes": np.concatenate((nodes, index.nodes[rest:])),
        "node_token": np.concatenate((tokens, node_token[rest:])),
        "trie_base": np.cumsum(trie_size) - trie_size,
        "trie_size": trie_size,
        "layers": layers,
        "duplicates": duplicates,
    }
    made: list[NDArray[Any]] = [data, offsets, *arrays.values()]
    for array in made:
        array.flags.writeable = False
    return assemble(arrays, data, offsets, index.eos_token_ids)


def _without_tokens(duplicates: Int32, dropped: NDArray[np.bool_]) -> tuple[Int32, Int32]:
    """Return who stands for each id in the tries (-1: nobody), and the duplicates of those that stay."""
    heirs = np.arange(len(dropped), dtype=np.int32)
    heirs[dropped] = -1
    if not dropped[duplicates].any():
        return heirs, duplicates
    groups: dict[int, list[int]] = {}
    for first, other in duplicates.tolist():
        groups.setdefault(first, [first]).append(other)
    rows = []
    for first, equal in groups.items():
        kept = [token_id for token_id in equal if not dropped[token_id]]
        if kept:
            heirs[first] = kept[0]
            rows += [(kept[0], other) for other in kept[1:]]
    rows.sort(key=lambda row: row[1])
    return heirs, np.array(rows, np.int32).reshape(-1, 2)


def _pruned(nodes: NDArray[np.uint64], node_token: Int32) -> tuple[NDArray[np.uint64], Int32]:
    """Return a trie without the nodes that lead to no token any more."""
    sizes = (nodes >> np.uint64(24)).astype(np.int64)
    first = np.arange(len(nodes))
    n_tokens = np.concatenate((np.zeros(1, np.int64), np.cumsum(node_token >= 0)))
    is_kept = n_tokens[first + sizes] > n_tokens[first]
    n_kept = np.concatenate((np.zeros(1, np.int64), np.cumsum(is_kept)))
    new_sizes = (n_kept[first + sizes] - n_kept[first])[is_kept]
    kept = nodes[is_kept] & np.uint64(0xFFFFFF) | new_sizes.astype(np.uint64) << np.uint64(24)
    return kept, node_token[is_kept]


def _sorted_ids(token_data: NDArray[np.uint8], token_offsets: Int64) -> Int64:
    """Ids that have text, by bytes, and by id where bytes are equal."""
    data = token_data.tobytes()
    bounds = token_offsets.tolist()
    tokens = [data[low:high] for low, high in pairwise(bounds)]
    ids = np.flatnonzero(np.diff(token_offsets)).tolist()
    ids.sort(key=tokens.__getitem__)  # stable: ids rise among equal bytes
    return np.array(ids, np.int64)


def _common_prefix_lengths(data: NDArray[np.uint8], starts: Int64, lengths: Int64) -> Int64:
    """Bytes each string has in common with the one before it; 0 for the first."""
    common = np.zeros(len(starts), np.int64)
    running = np.arange(1, len(starts))
    shorter = np.minimum(lengths[1:], lengths[:-1])
    position = 0
    while running.size:
        running = running[shorter[running - 1] > position]
        equal = data[starts[running] + position] == data[starts[running - 1] + position]
        running = running[equal]
        position += 1
        common[running] = position
    return common


def _build_trie(
    data: NDArray[np.uint8], starts: Int64, lengths: Int64, token_ids: Int64
) -> tuple[NDArray[np.uint64], Int32]:
    """Nodes and their tokens of one trie over sorted, distinct, non-empty strings."""
    common = _common_prefix_lengths(data, starts, lengths)
    added = lengths - common  # a string adds one node per byte past what it shares
    ends = np.cumsum(added)
    n_nodes = int(ends[-1]) if len(ends) else 0
    within = np.arange(n_nodes, dtype=np.int64) - np.repeat(ends - added, added)
    position = np.repeat(common, added) + within
    byte = data[np.repeat(starts, added) + position]
    depth = position + 1
    nodes = byte.astype(np.uint64)
    nodes |= depth.astype(np.uint64) << np.uint64(8)
    nodes |= _subtree_sizes(depth).astype(np.uint64) << np.uint64(24)
    node_token = np.full(n_nodes, -1, np.int32)
    node_token[ends - 1] = token_ids
    return nodes, node_token


def _subtree_sizes(depth: Int64) -> Int64:
    """Nodes of each node's subtree, from the depths of a forest in depth-first order."""
    sizes = np.ones(len(depth), np.int64)
    by_depth = np.argsort(depth, kind="stable")
    levels = np.split(by_depth, np.cumsum(np.bincount(depth)[1:])[:-1]) if len(depth) else []
    for parents, children in zip(levels[-2::-1], levels[:0:-1], strict=True):
        parent = np.searchsorted(parents, children) - 1  # the last shallower node before it
        sizes[parents] += np.bincount(parent, sizes[children], len(parents)).astype(np.int64)
    return sizes
