"""Vocabularies made of byte strings: their rules, their errors, their identity."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import VocabularyError
from constrain.tokenizer_index import trie
from constrain.tokenizer_index.vocabulary import CACHE_FROM, MAX_SIZE, Vocabulary

token_lists = st.lists(st.none() | st.binary(max_size=4), max_size=30)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(token_lists, st.integers(0, 40))
def test_tokens_come_back(tokens: list[bytes | None], padding: int) -> None:
    """Every id gives its bytes, ids without bytes and padded ids give None, and decode concatenates."""
    tokens = [*tokens, b"x", None]
    eos = len(tokens) - 1
    vocabulary = Vocabulary.from_tokens(tokens, eos_token_ids=[eos], vocab_size=len(tokens) + padding)
    expected = [token or None for token in tokens] + [None] * padding
    assert list(vocabulary.tokens) == expected == vocabulary.tokens[:]
    assert [vocabulary.token_bytes(i) for i in range(vocabulary.size)] == expected
    assert vocabulary.decode(range(vocabulary.size)) == b"".join(t or b"" for t in tokens)
    assert vocabulary.size == len(vocabulary.tokens) == len(tokens) + padding
    assert vocabulary.missing_bytes == bytes(b for b in range(256) if bytes([b]) not in tokens)
    assert vocabulary.has_all_bytes == (vocabulary.missing_bytes == b"")
    assert vocabulary.absent_bytes == bytes(
        b for b in range(256) if b not in b"".join(t or b"" for t in tokens)
    )
    assert vocabulary.tokens[-1 - padding] is None


def test_one_byte_per_token_misses_no_byte() -> None:
    """A vocabulary of all single bytes can write everything."""
    tokens = [bytes([b]) for b in range(256)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], eos_token_ids=256)
    assert vocabulary.has_all_bytes and vocabulary.eos_token_ids == (256,)
    assert Vocabulary.from_tokens([*tokens[1:], None], eos_token_ids=255).missing_bytes == b"\0"


def test_end_tokens_have_no_text() -> None:
    """Bytes given to an end token are ignored, in the tokens and in the index."""
    vocabulary = Vocabulary.from_tokens([b"a", b"</s>", b"b"], eos_token_ids=[1])
    assert list(vocabulary.tokens) == [b"a", None, b"b"]
    assert sorted(vocabulary.index.node_token.tolist()) == [0, 2]
    assert vocabulary.index.eos_token_ids.tolist() == [1]


def test_end_tokens_are_sorted_and_may_be_padded_ids() -> None:
    """Several end tokens are kept in order; one past the tokens is fine inside the width."""
    vocabulary = Vocabulary.from_tokens([b"a", None], eos_token_ids=[5, 1], vocab_size=8)
    assert vocabulary.eos_token_ids == (1, 5)
    assert Vocabulary.from_tokens([b"a", None], eos_token_ids=np.int64(1)).eos_token_ids == (1,)


@pytest.mark.parametrize(
    ("tokens", "arguments", "words"),
    [
        ([b"a", None], {"eos_token_ids": []}, "pass eos_token_ids"),
        ([b"a", None], {"eos_token_ids": [2]}, "end token 2 does not fit a vocabulary of 2 ids"),
        ([b"a", None], {"eos_token_ids": [-1]}, "not negative"),
        ([b"a", None], {"eos_token_ids": [1, 1]}, "given twice"),
        ([b"a", None], {"eos_token_ids": ["</s>"]}, "token ids are integers"),
        ([b"a", None], {"eos_token_ids": [1.0]}, "token ids are integers"),
        ([b"a", None, b"b"], {"eos_token_ids": [1], "vocab_size": 2}, "token 2 has text.*at least 3"),
        ([b"a", None], {"eos_token_ids": [1], "vocab_size": 1}, "end token 1 does not fit"),
        ([b"a", None], {"eos_token_ids": [1], "vocab_size": 2.0}, "vocab_size=2.0"),
        ([b"a", None], {"eos_token_ids": [1], "vocab_size": MAX_SIZE + 1}, "supported"),
        ([None, None], {"eos_token_ids": [1]}, "no token has text"),
        ([b"a"], {"eos_token_ids": [0]}, "no token has text"),
        ([], {"eos_token_ids": [0]}, "no token has text"),
        ([b"a", "b", None], {"eos_token_ids": [2]}, "token 1 is a str; expected bytes or None"),
        ([b"a" * 65_536, None], {"eos_token_ids": [1]}, "token 0 has 65,536 bytes; at most 65,535"),
    ],
)
def test_what_does_not_fit_is_refused(tokens: Any, arguments: dict[str, Any], words: str) -> None:
    """Each mistake is a VocabularyError that names the value and what to do."""
    with pytest.raises(VocabularyError, match=words):
        Vocabulary.from_tokens(tokens, **arguments)


@pytest.mark.parametrize("token_id", [-1, 2, 1 << 40])
def test_ids_outside_are_refused(token_id: int) -> None:
    """token_bytes and decode name an id that is not of the vocabulary."""
    vocabulary = Vocabulary.from_tokens([b"a", None], eos_token_ids=[1])
    with pytest.raises(VocabularyError, match=f"token id {token_id} is not between 0 and 1"):
        vocabulary.token_bytes(token_id)
    with pytest.raises(VocabularyError, match="not between"):
        vocabulary.decode([0, token_id])


def test_special_ids_past_the_width_are_dropped() -> None:
    """A tokenizer may have more ids than the model, as long as those have no text."""
    vocabulary = Vocabulary.from_tokens([b"a", None, None, None], eos_token_ids=[1], vocab_size=2)
    assert vocabulary.size == 2 and len(vocabulary.tokens) == 2


def test_fingerprint_tells_vocabularies_apart() -> None:
    """Size, end tokens and every boundary between tokens count; equal vocabularies are equal keys."""
    base: dict[str, Any] = {"tokens": [b"ab", b"c", None, None], "eos_token_ids": [2], "vocab_size": 4}
    changes: list[dict[str, Any]] = [
        {},
        {"vocab_size": 5},
        {"eos_token_ids": [3]},
        {"eos_token_ids": [2, 3]},
        {"tokens": [b"a", b"bc", None, None]},
        {"tokens": [b"abc", None, None, None]},
        {"tokens": [None, b"abc", None, None]},
        {"tokens": [b"ab", b"d", None, None]},
    ]
    made = [Vocabulary.from_tokens(**{**base, **change}) for change in changes]
    again = [Vocabulary.from_tokens(**{**base, **change}) for change in changes]
    assert made == again and len(set(made + again)) == len(changes)
    assert len({v.fingerprint for v in made}) == len(changes)
    assert made[0] != "something else"


def test_copies_are_equal() -> None:
    """A vocabulary can be pickled and deep-copied, with or without its index."""
    vocabulary = Vocabulary.from_tokens([b"ab", None, b"c"], eos_token_ids=[1], vocab_size=9)
    vocabulary.load_index(False)
    for other in (pickle.loads(pickle.dumps(vocabulary)), copy.deepcopy(vocabulary)):
        assert other == vocabulary and list(other.tokens) == list(vocabulary.tokens)
        assert other.index.nodes.tolist() == vocabulary.index.nodes.tolist()


def test_arrays_cannot_be_changed() -> None:
    """The arrays all compiled specs share are read-only."""
    vocabulary = Vocabulary.from_tokens([b"ab", None], eos_token_ids=[1])
    for array in (vocabulary.token_data, vocabulary.token_offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_repr_is_short() -> None:
    """The printed form says size, text, end tokens and identity."""
    vocabulary = Vocabulary.from_tokens([b"ab", None], eos_token_ids=[1], vocab_size=7)
    fingerprint = vocabulary.fingerprint[:8]
    assert repr(vocabulary) == (
        f"Vocabulary(size=7, tokens_with_text=1, eos_token_ids=(1,), fingerprint='{fingerprint}')"
    )


def test_index_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask for the index at once get the same one."""
    built = []
    build_index = trie.build_index

    def counted(*arguments: Any) -> trie.VocabularyIndex:
        built.append(1)
        return build_index(*arguments)

    monkeypatch.setattr(trie, "build_index", counted)
    vocabulary = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])
    found: list[trie.VocabularyIndex] = []
    threads = [threading.Thread(target=lambda: found.append(vocabulary.index)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1 and len({id(index) for index in found}) == 1


def large_vocabulary(eos_token_id: int) -> Vocabulary:
    tokens: list[bytes | None] = [b"%d" % i for i in range(CACHE_FROM)]
    tokens[eos_token_id] = None
    return Vocabulary.from_tokens(tokens, eos_token_ids=[eos_token_id])


def test_large_index_is_kept_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second object of the same vocabulary maps the first one's files, which equal what was built."""
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "cache"))
    built = large_vocabulary(7).load_index(False)
    assert not (tmp_path / "cache").exists()
    first = large_vocabulary(7).index
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [
        f"vocabulary-{large_vocabulary(7).content_hash}-{trie.VERSION}"
    ]
    monkeypatch.setattr(trie, "build_index", None)
    second = large_vocabulary(7).index
    for name in trie.STORED:
        assert np.array_equal(getattr(built, name), getattr(second, name)), name
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
        assert getattr(second, name).dtype == getattr(built, name).dtype
    assert second.has_slice and not second.nodes.flags.writeable


def test_small_index_leaves_no_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary of a few tokens does not fill the user's cache folder."""
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "cache"))
    assert Vocabulary.from_tokens([b"a", None], eos_token_ids=[1]).index.n_nodes == 1
    assert not (tmp_path / "cache").exists()


def test_damaged_index_is_built_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file in the cache costs a warning and a rebuild, never a wrong index."""
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path))
    expected = large_vocabulary(9).index.nodes.tolist()
    (nodes,) = tmp_path.glob("*/nodes.npy")
    data = bytearray(nodes.read_bytes())
    data[-5] ^= 1
    nodes.write_bytes(data)
    assert large_vocabulary(9).index.nodes.tolist() == expected
    assert "built again" in caplog.text and "nodes.npy is damaged" in caplog.text
    caplog.clear()
    assert large_vocabulary(9).index.nodes.tolist() == expected
    assert not caplog.records


def test_index_works_without_a_cache_folder(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nothing can be written the index is built and used, with a warning."""
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    index = large_vocabulary(3).index
    assert index.n_nodes > CACHE_FROM - 2 and "nothing is kept" in caplog.text
