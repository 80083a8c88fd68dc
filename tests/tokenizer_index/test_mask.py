"""Allocating masks and writing them into logits, against one comparison per logit."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import VocabularyError
from constrain.tokenizer_index.mask import allocate_token_bitmask, apply_token_bitmask_inplace

NUMPY_TYPES = ["float16", "float32", "float64"]
TORCH_TYPES = [*NUMPY_TYPES, "bfloat16"]


def bits_of(bitmask: np.ndarray, row: int, width: int) -> list[bool]:
    """The bits of a row as the layout defines them; False past its words."""
    words = [int(word) & 0xFFFFFFFF for word in bitmask[row]]
    return [t // 32 < len(words) and bool(words[t // 32] >> (t % 32) & 1) for t in range(width)]


def expected_of(logits: np.ndarray, bitmask: np.ndarray, rows: list[int] | None = None) -> np.ndarray:
    """The masked logits, one at a time."""
    result = logits.copy()
    for row in range(len(logits)) if rows is None else rows:
        for token, is_allowed in enumerate(bits_of(bitmask, row, logits.shape[1])):
            if not is_allowed:
                result[row, token] = -math.inf
    return result


def random_case(seed: int, rows: int, width: int, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits with odd values, and masks with full, empty and mixed words."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((rows, width)).astype(np.float32)
    odd = rng.random((rows, width)) < 0.2
    logits[odd] = rng.choice(
        np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40], np.float32), odd.sum()
    )
    bitmask = rng.integers(-(1 << 31), 1 << 31, (rows, n_words), np.int64).astype(np.int32)
    bitmask[rng.random((rows, n_words)) < 0.3] = -1
    bitmask[rng.random((rows, n_words)) < 0.3] = 0
    return logits, bitmask


shapes = st.tuples(st.integers(0, 1 << 30), st.integers(1, 4), st.integers(0, 150), st.integers(0, 5))


def test_allocation_allows_nothing() -> None:
    """A fresh mask has one row a sequence, 32 tokens a word, and no bit set."""
    for vocab_size, n_words in ((1, 1), (32, 1), (33, 2), (128_256, 4_008)):
        bitmask = allocate_token_bitmask(3, vocab_size)
        assert bitmask.shape == (3, n_words) and bitmask.dtype == np.int32 and not bitmask.any()


@pytest.mark.parametrize("sizes", [(0, 5), (2, 0), (-1, 5), (2, 1.5), ("2", 5), (None, 5)])
def test_allocation_refuses_other_sizes(sizes: Any) -> None:
    """Sizes are positive integers."""
    with pytest.raises(VocabularyError, match=r"batch_size|vocab_size"):
        allocate_token_bitmask(*sizes)


@settings(max_examples=120, derandomize=True, deadline=None)
@given(shapes, st.sampled_from(NUMPY_TYPES))
def test_arrays_are_masked(shape: tuple[int, int, int, int], dtype: str) -> None:
    """Allowed logits keep their bits, all others are minus infinity, whatever the widths."""
    logits, bitmask = random_case(*shape)
    logits = logits.astype(dtype)
    expected = expected_of(logits, bitmask)
    apply_token_bitmask_inplace(logits, bitmask)
    assert logits.tobytes() == expected.tobytes()


@settings(max_examples=120, derandomize=True, deadline=None)
@given(shapes, st.sampled_from(TORCH_TYPES), st.booleans())
def test_tensors_are_masked(shape: tuple[int, int, int, int], dtype: str, is_torch_mask: bool) -> None:
    """Tensors of every float type, bfloat16 too, with a mask of either library."""
    torch = pytest.importorskip("torch")
    values, bitmask = random_case(*shape)
    logits = torch.from_numpy(values).to(getattr(torch, dtype))
    expected = torch.from_numpy(expected_of(logits.float().numpy(), bitmask)).to(logits.dtype)
    apply_token_bitmask_inplace(logits, torch.from_numpy(bitmask) if is_torch_mask else bitmask)
    assert torch.equal(logits.nan_to_num(7.0), expected.nan_to_num(7.0))


@pytest.mark.parametrize("dtype", TORCH_TYPES)
@pytest.mark.parametrize("rows", [None, [2, 0], [], [1, 1]])
def test_torch_operations_do_the_same(dtype: str, rows: list[int] | None) -> None:
    """The path other devices take gives what the CPU's kernel gives (run here on the CPU)."""
    torch = pytest.importorskip("torch")
    for seed, width, n_words in ((1, 100, 4), (2, 150, 3), (3, 64, 2), (4, 31, 5), (5, 40, 0)):
        values, bitmask = random_case(seed, 3, width, n_words)
        plain = torch.from_numpy(values).to(getattr(torch, dtype))
        recorded = plain.clone().requires_grad_()
        result = recorded * 1  # records gradients, so its memory is not written behind torch's back
        apply_token_bitmask_inplace(plain, bitmask, indices=rows)
        apply_token_bitmask_inplace(result, bitmask, indices=rows)
        assert torch.equal(plain.nan_to_num(7.0), result.detach().nan_to_num(7.0))
        if n_words and rows is None:
            result.nan_to_num().clamp(-1, 1).sum().backward()
            assert recorded.grad is not None


def test_bits_past_the_words_are_never_read_as_allowed() -> None:
    """Logits wider than the mask end in minus infinity; a narrower row ignores the rest of its word."""
    logits = np.zeros((1, 70), np.float32)
    apply_token_bitmask_inplace(logits, np.full((1, 2), -1, np.int32))
    assert (logits[0, :64] == 0).all() and np.isneginf(logits[0, 64:]).all()
    logits = np.zeros((1, 40), np.float32)
    apply_token_bitmask_inplace(logits, np.full((1, 2), -1, np.int32))
    assert (logits == 0).all()


def test_one_row_may_have_one_dimension() -> None:
    """Logits and masks of one sequence may both, or either, be vectors."""
    values, bitmask = random_case(7, 1, 90, 3)
    expected = expected_of(values, bitmask)
    for logits, mask in ((values[0], bitmask), (values[0], bitmask[0]), (values, bitmask[0])):
        copied = logits.copy()
        apply_token_bitmask_inplace(copied, mask)
        assert copied.tobytes() == expected.tobytes()


def test_only_chosen_rows_change() -> None:
    """With indices, row i of the mask goes into row i of the logits, and other rows stay."""
    values, bitmask = random_case(11, 4, 90, 3)
    for chosen in ([2, 0], np.array([3]), (), [1, 1], range(4)):
        logits = values.copy()
        apply_token_bitmask_inplace(logits, bitmask, indices=chosen)
        assert logits.tobytes() == expected_of(values, bitmask, list(chosen)).tobytes()
    logits = values[:3].copy()  # the mask may then have more rows than the logits
    apply_token_bitmask_inplace(logits, bitmask, indices=[1])
    assert logits.tobytes() == expected_of(values[:3], bitmask, [1]).tobytes()


VIEWS = {
    "columns of a wider array": lambda a: np.concatenate([a, a], 1)[:, : a.shape[1]],
    "every second row": lambda a: np.repeat(a, 2, 0)[::2],
    "transposed": lambda a: np.asfortranarray(a),
    "every second column": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "rows reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "columns reversed": lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    "fields of records": lambda a: np.rec.fromarrays([a, np.ones(a.shape, np.int8)], names="x,y").x,
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("indices", [None, [1, 2]])
def test_any_strides(view: str, indices: list[int] | None) -> None:
    """Views are masked where they lie, and what lies between their elements stays."""
    values, bitmask = random_case(13, 3, 90, 3)
    logits = VIEWS[view](values)
    assert logits.tobytes() == values.tobytes()
    base = logits
    while base.base is not None:
        base = base.base
    before = base.copy()
    mask = np.asfortranarray(bitmask)
    mask.flags.writeable = False
    apply_token_bitmask_inplace(logits, mask, indices=indices)
    assert logits.tobytes() == expected_of(values, bitmask, indices).tobytes()
    logits[...] = values
    assert base.tobytes() == before.tobytes()


def unaligned(array: np.ndarray) -> np.ndarray:
    """A copy of ``array`` at an odd address."""
    buffer = bytearray(array.nbytes + 1)
    copied = np.frombuffer(buffer, array.dtype, array.size, offset=1).reshape(array.shape)
    copied[...] = array
    return copied


def test_unaligned_arrays() -> None:
    """Arrays at odd addresses, such as parts of files, are masked too."""
    values, bitmask = random_case(19, 3, 90, 3)
    logits = unaligned(values)
    apply_token_bitmask_inplace(logits, unaligned(bitmask))
    assert logits.tobytes() == expected_of(values, bitmask).tobytes()


def test_strided_tensors() -> None:
    """A slice or a transposed tensor is masked where it lies."""
    torch = pytest.importorskip("torch")
    values, bitmask = random_case(17, 3, 90, 3)
    expected = torch.from_numpy(expected_of(values, bitmask)).bfloat16().nan_to_num(7.0)
    wide = torch.zeros(3, 200, dtype=torch.bfloat16)
    wide[:, :90] = torch.from_numpy(values)
    apply_token_bitmask_inplace(wide[:, :90], torch.from_numpy(bitmask).t().contiguous().t())
    assert torch.equal(wide[:, :90].nan_to_num(7.0), expected) and not wide[:, 90:].any()
    turned = torch.from_numpy(values).bfloat16().t().contiguous().t()
    apply_token_bitmask_inplace(turned, bitmask)
    assert torch.equal(turned.nan_to_num(7.0), expected)


def test_inference_tensors() -> None:
    """Logits made under inference mode are masked, inside it and outside."""
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        logits = torch.zeros(1, 40)
        apply_token_bitmask_inplace(logits, np.array([[1, 0]], np.int32))
    assert logits[0, 0] == 0 and logits.isinf().sum() == 39
    apply_token_bitmask_inplace(logits, np.array([[0, 0]], np.int32))
    assert logits.isinf().all()


@pytest.mark.parametrize(
    ("logits", "bitmask", "indices", "words"),
    [
        ([[0.0]], np.zeros((1, 1), np.int32), None, "logits are a list"),
        (
            np.zeros((1, 4), np.int32),
            np.zeros((1, 1), np.int32),
            None,
            "dtype int32; expected one of float16",
        ),
        (np.zeros((1, 4), ">f4"), np.zeros((1, 1), np.int32), None, "dtype >f4"),
        (np.zeros((1, 4), np.complex64), np.zeros((1, 1), np.int32), None, "dtype complex64"),
        (np.zeros((1, 1, 4)), np.zeros((1, 1), np.int32), None, "logits have 3 dimensions"),
        (np.zeros(()), np.zeros((1, 1), np.int32), None, "logits have 0 dimensions"),
        (np.zeros((2, 4)), np.zeros((1, 1), np.int32), None, "logits have 2 rows and the bitmask has 1"),
        (np.zeros((2, 4)), np.zeros(1, np.int32), None, "logits have 2 rows and the bitmask has 1"),
        (np.zeros((1, 4)), [[0]], None, "bitmask is a list"),
        (np.zeros((1, 4)), np.zeros((1, 1), np.int64), None, "bitmask has dtype int64; expected int32"),
        (np.zeros((1, 4)), np.zeros((1, 1), np.uint32), None, "bitmask has dtype uint32"),
        (np.zeros((1, 4)), np.zeros((1, 4), bool), None, "bitmask has dtype bool"),
        (np.zeros((1, 4)), np.zeros((1, 1, 1), np.int32), None, "bitmask has 3 dimensions"),
        (np.zeros((2, 4)), np.zeros((2, 1), np.int32), [2], "from 0 to 1"),
        (np.zeros((2, 4)), np.zeros((2, 1), np.int32), [-1], "from 0 to 1"),
        (np.zeros((2, 4)), np.zeros((1, 1), np.int32), [1], "from 0 to 0"),
        (np.zeros((2, 4)), np.zeros((2, 1), np.int32), [0.0], "list of row numbers"),
        (np.zeros((2, 4)), np.zeros((2, 1), np.int32), [[0]], "list of row numbers"),
        (np.zeros((2, 4)), np.zeros((2, 1), np.int32), [True, False], "list of row numbers"),
        (np.broadcast_to(np.zeros(4), (2, 4)), np.zeros((2, 1), np.int32), None, "read-only"),
    ],
)
def test_what_does_not_fit_is_refused(logits: Any, bitmask: Any, indices: Any, words: str) -> None:
    """Each mistake is a VocabularyError that says what was found and what was expected."""
    with pytest.raises(VocabularyError, match=words):
        apply_token_bitmask_inplace(logits, bitmask, indices=indices)


def test_tensors_that_cannot_be_written_are_refused() -> None:
    """Leaves that need gradients, sparse tensors and rows that share memory are refused."""
    torch = pytest.importorskip("torch")
    bitmask = np.zeros((2, 1), np.int32)
    for logits, words in (
        (torch.zeros(2, 4, requires_grad=True), "requires gradients"),
        (torch.zeros(2, 4).to_sparse(), "dense"),
        (torch.zeros(1, 4).expand(2, 4), "share one place"),
        (torch.zeros(2, 1).expand(2, 4), "share one place"),
        (torch.zeros(8).as_strided((2, 4), (2, 1)), "share one place"),
        (torch.zeros(2, 4, dtype=torch.int32), "dtype torch.int32"),
    ):
        with pytest.raises(VocabularyError, match=words):
            apply_token_bitmask_inplace(logits, bitmask)


def test_threads_may_mask_at_once() -> None:
    """Calls from several threads on different logits don't disturb one another."""
    cases = [random_case(seed, 8, 5_000, 157) for seed in range(6)]
    expected = [expected_of(*case) for case in cases]

    def work(logits: np.ndarray, bitmask: np.ndarray) -> None:
        for _ in range(20):
            apply_token_bitmask_inplace(logits, bitmask)

    threads = [threading.Thread(target=work, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (logits, _), right in zip(cases, expected, strict=True):
        assert logits.tobytes() == right.tobytes()


@pytest.mark.parametrize("library", ["xgrammar", "llguidance.numpy"])
def test_same_layout_as_other_engines(library: str) -> None:
    """A mask means the same to xgrammar and llguidance."""
    other = pytest.importorskip(library)
    torch = pytest.importorskip("torch")
    values, bitmask = random_case(23, 2, 96, 3)
    ours = values.copy()
    apply_token_bitmask_inplace(ours, bitmask)
    theirs = torch.from_numpy(values.copy()) if library == "xgrammar" else values.copy()
    mask = torch.from_numpy(bitmask) if library == "xgrammar" else bitmask
    other.apply_token_bitmask_inplace(theirs, mask)
    assert np.array_equal(ours, np.asarray(theirs), equal_nan=True)
