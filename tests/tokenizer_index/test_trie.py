"""The vocabulary index against its plain twin, on small hostile vocabularies and real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.tokenizer_index import slices
from constrain.tokenizer_index.trie import VocabularyIndex, build_index
from constrain.tokenizer_index.vocabulary import Vocabulary
from tests.reference import trie as plain
from tests.reference.vocabularies import llama

pieces = st.sampled_from(
    b'a b " \\ \x7f \x00 \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80 \xc3 \xa9 \xe0\x80 \xed\xa0\x80 \xf4\x8f\xbf\xbf '
    b"\xf4\x90\x80\x80 \xff abcd aaaaaaaa xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx \xc0\x80 \xf0\x8f\xbf\xbf".split(
        b" "
    )
)
token_lists = st.lists(
    st.none() | st.lists(pieces, max_size=5).map(b"".join) | st.binary(max_size=3), min_size=1, max_size=40
)


def index_of(tokens: Sequence[bytes | None], slice_threshold: int) -> VocabularyIndex:
    vocabulary = Vocabulary.from_tokens([*tokens, b"a", None], eos_token_ids=[len(tokens) + 1])
    return build_index(
        vocabulary.token_data,
        vocabulary.token_offsets,
        np.array(vocabulary.eos_token_ids, np.int32),
        slice_threshold=slice_threshold,
    )


def nodes_of(index: VocabularyIndex, trie: int) -> list[plain.Node]:
    low, size = int(index.trie_base[trie]), int(index.trie_size[trie])
    found = zip(
        index.nodes[low : low + size].tolist(), index.node_token[low : low + size].tolist(), strict=True
    )
    return [plain.Node(node & 0xFF, node >> 8 & 0xFFFF, node >> 24, token) for node, token in found]


def bits_of(words: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


@settings(max_examples=150, derandomize=True, deadline=None)
@given(token_lists, st.sampled_from([0, 10_000]))
def test_index_equals_the_plain_twin(tokens: list[bytes | None], slice_threshold: int) -> None:
    """Tries, equal tokens and layers are those of the plain construction, with a slice and without."""
    index = index_of(tokens, slice_threshold)
    tokens = [*tokens, b"a", None]
    has_slice = slice_threshold == 0
    lowest = plain.canonical_ids(tokens)
    for trie in range(5):
        members = {t: i for t, i in lowest.items() if plain.trie_number(t, has_slice) == trie}
        assert nodes_of(index, trie) == plain.depth_first(members)
    assert [tuple(row) for row in index.duplicates.tolist()] == plain.duplicate_pairs(tokens)
    for layer in range(34):
        assert bits_of(index.layers[layer]) == (plain.layer_tokens(tokens, layer) if has_slice else set())
    assert index.n_words == (len(tokens) + 31) // 32 == index.layers.shape[1]
    assert index.max_token_length == max(len(t or b"") for t in tokens)
    assert index.has_slice == (has_slice and any(map(plain.is_slice_token, lowest)))


def test_array_types_are_those_the_kernels_read() -> None:
    """Every array has the documented type and is C-contiguous."""
    index = index_of([b"ab", b"c", b"ab"], 0)
    types = {
        "nodes": "uint64", "node_token": "int32", "trie_base": "int64", "trie_size": "int64",
        "bucket_max": "int64", "slice_table": "int32", "slice_accept": "uint8", "layers": "uint32",
        "duplicates": "int32", "token_offsets": "int64", "token_data": "uint8", "eos_token_ids": "int32",
    }  # fmt: skip
    for name, dtype in types.items():
        array = getattr(index, name)
        assert array.dtype == dtype and array.flags.c_contiguous, name
    assert index.bucket_max.tolist() == [4, 8, 16, 1 << 20]
    assert index.duplicates.tolist() == [[0, 2]] and index.duplicates.shape == (1, 2)
    assert index_of([b"ab"], 0).duplicates.shape == (0, 2)


def test_character_automaton_is_that_of_json_strings() -> None:
    """One character is accepted exactly if it is valid UTF-8 and not a control, quote or backslash."""
    table, accept = slices.character_automaton()

    def accepts(data: bytes) -> bool:
        state = 0
        for byte in data:
            state = int(table[state, byte])
            if state < 0:
                return False
        return accept[state] == 1

    for code in [
        *range(0x300),
        *range(0x7F0, 0x810),
        *range(0xD7F0, 0xE010),
        *range(0xFFF0, 0x10010),
        0x10FFFF,
    ]:
        data = chr(code).encode("utf-8", "surrogatepass")
        assert accepts(data) == plain.is_slice_token(data), hex(code)
    for first in range(256):
        for second in range(256):
            data = bytes([first, second])
            assert accepts(data) == plain.is_slice_token(data), data
            for rest in (b"\x80", b"\xbf", b"\x80\x80", b"\xbf\xbf"):
                assert accepts(data + rest) == plain.is_slice_token(data + rest), data + rest


def test_character_automaton_without_some_bytes() -> None:
    """Left-out bytes take with them exactly the characters that need them."""
    table, _ = slices.character_automaton()
    for left_out in (b"\xf1\xf2", b"\x04a", bytes(range(0x80, 0xC0)), bytes(range(0x80, 0xA0)), b"\xed"):
        present = np.ones(256, np.bool_)
        present[list(left_out)] = False
        pruned, _ = slices.character_automaton(present)
        complete = reach = np.array([True, *[False] * 7])
        for _ in range(4):  # states from which a character can be completed, by rounds
            reach = complete | np.array(
                [(complete[row[row >= 0]]).any() for row in np.where(present, table, -1)]
            )
            complete = reach
        for state in np.flatnonzero(complete):
            for byte in range(256):
                target = table[state, byte] if present[byte] else -1
                assert pruned[state, byte] == (target if target < 0 or complete[target] else -1)


def test_arrays_are_read_only() -> None:
    """Whether mapped or just built, nobody can change the arrays under the kernels."""
    index = index_of([b"ab", b"c"], 0)
    arrays = [
        value for value in vars(type(index))["__slots__"] if isinstance(getattr(index, value), np.ndarray)
    ]
    assert {"nodes", "layers", "slice_table", "token_data"} <= set(arrays)
    assert not any(getattr(index, name).flags.writeable for name in arrays)


def test_long_and_nested_tokens() -> None:
    """Tokens up to 65,535 bytes, each a prefix of the next, keep their depth and subtree."""
    lengths = [1, 2, 255, 256, 65_535]
    index = index_of([b"q" * n for n in lengths], 10_000)
    ends = np.flatnonzero(index.node_token >= 0)
    depth = (index.nodes >> np.uint64(8) & np.uint64(0xFFFF)).astype(np.int64)
    assert sorted(depth[ends].tolist()) == sorted([*lengths, 1])  # and the "a" every list here has
    first = int(np.flatnonzero(index.nodes & np.uint64(0xFF) == ord("q"))[0])
    assert int(index.nodes[first]) >> 24 == 65_535


def test_real_vocabulary_is_complete() -> None:
    """In a real vocabulary each text ends at one node, whose path spells it."""
    vocabulary = llama()
    index = vocabulary.index
    path = bytearray()
    seen: dict[bytes, int] = {}
    for node, token in zip(index.nodes.tolist(), index.node_token.tolist(), strict=True):
        del path[(node >> 8 & 0xFFFF) - 1 :]
        path.append(node & 0xFF)
        if token >= 0:
            assert bytes(path) not in seen
            seen[bytes(path)] = token
    assert seen == plain.canonical_ids(list(vocabulary.tokens))
    assert int(index.trie_size.sum()) == index.n_nodes
    in_slice = bits_of(index.layers[33])
    assert in_slice == plain.layer_tokens(list(vocabulary.tokens), 33)
    assert len(in_slice) > 100_000
    with pytest.raises(ValueError, match="read-only"):
        index.nodes[0] = 0
