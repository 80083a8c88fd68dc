"""Token masks: allocate them, and write them into logits.

A mask has one bit for each token, packed in 32-bit words: bit ``t % 32`` of word ``t // 32`` is 1
where token ``t`` is allowed. This is the layout of xgrammar, llguidance and vLLM.

On the CPU a kernel works on the logits' bits: it skips words that allow all their tokens and fills
those that allow none: 6 to 30 µs for a row of 128,000 float32. It runs without the GIL and in one
thread. On other devices, and for tensors that record gradients, torch operations do the same.
Nothing here imports torch; a tensor can only come from a program that has.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from constrain.tokenizer_index import native
from constrain.tokenizer_index.errors import VocabularyError

if TYPE_CHECKING:
    import torch

# The bits of minus infinity in each kind of float, as a signed integer of its size (IEEE 754;
# bfloat16 is the upper half of float32).
_MINUS_INFINITY: dict[str, np.signedinteger[Any]] = {
    "float16": np.int16(0xFC00 - (1 << 16)),
    "bfloat16": np.int16(0xFF80 - (1 << 16)),
    "float32": np.int32(0xFF800000 - (1 << 32)),
    "float64": np.int64(0xFFF0000000000000 - (1 << 64)),
}
# Numpy takes microseconds to name a type, so its own three are found by the type itself.
_NUMPY_NAMES = {np.dtype(name): name for name in ("float16", "float32", "float64")}


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """Make masks for a batch, all bits 0: a row that nobody fills allows nothing.

    Parameters
    ----------
    batch_size : int
        Rows.
    vocab_size : int
        Width of the logits, `Vocabulary.size`.

    Returns
    -------
    (batch_size, ceil(vocab_size / 32)) int32, C-contiguous
        Set a row to -1 to allow everything in it.

    Raises
    ------
    VocabularyError
        A size is no positive integer.
    """
    n_rows = _positive("batch_size", batch_size)
    n_tokens = _positive("vocab_size", vocab_size)
    return np.zeros((n_rows, (n_tokens + 31) // 32), np.int32)


def apply_token_bitmask_inplace(
    logits: NDArray[Any] | torch.Tensor,
    bitmask: NDArray[np.int32] | torch.Tensor,
    *,
    indices: Sequence[int] | NDArray[np.integer[Any]] | torch.Tensor | None = None,
) -> None:
    """Set the logits of tokens that are not allowed to minus infinity.

    Parameters
    ----------
    logits : (batch, width) or (width,) float16, bfloat16, float32 or float64, changed
        A numpy array or a torch tensor on any device, of any strides.
    bitmask : (batch, n_words) or (n_words,) int32
        A numpy array or a torch tensor; it is copied to the device of ``logits``. Logits past its
        ``32 * n_words`` tokens are set to minus infinity; bits past ``width`` are ignored.
    indices : (n,) integers or None
        Rows to treat: row ``i`` of ``bitmask`` goes into row ``i`` of ``logits``. ``None``: all
        rows, and then both have the same number of them.

    Raises
    ------
    VocabularyError
        Another kind of object, type, rank or number of rows; logits that cannot be written.
    """
    words, n_mask_rows = _checked_bitmask(bitmask)
    if isinstance(logits, np.ndarray):
        rows = _checked_rows(logits.shape, n_mask_rows, indices)
        _apply_to_array(logits, _NUMPY_NAMES.get(logits.dtype) or str(logits.dtype), _host_words(words), rows)
    elif _is_tensor(logits):
        rows = _checked_rows(tuple(logits.shape), n_mask_rows, indices)
        _apply_to_tensor(logits, words, rows, is_all=indices is None)
    else:
        raise VocabularyError(
            f"logits are a {type(logits).__name__}; expected a numpy array or a torch tensor."
        )


# -------------------------------------------------------------------------------------- checks


def _positive(name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise VocabularyError(f"{name}={value!r}: expected an integer.") from error
    if number < 1:
        raise VocabularyError(f"{name}={number}: expected at least 1.")
    return number


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _checked_bitmask(bitmask: Any) -> tuple[Any, int]:
    """The mask with two dimensions, and its number of rows."""
    if isinstance(bitmask, np.ndarray):
        is_int32 = bitmask.dtype == np.int32
    elif _is_tensor(bitmask):
        is_int32 = str(bitmask.dtype) == "torch.int32"
    else:
        raise VocabularyError(
            f"the bitmask is a {type(bitmask).__name__}; expected a numpy array or a torch tensor of int32."
        )
    if not is_int32:
        raise VocabularyError(
            f"the bitmask has dtype {bitmask.dtype}; expected int32, as allocate_token_bitmask makes it."
        )
    if bitmask.ndim not in (1, 2):
        raise VocabularyError(f"the bitmask has {bitmask.ndim} dimensions; expected (batch, n_words).")
    return (bitmask if bitmask.ndim == 2 else bitmask[None]), (1 if bitmask.ndim == 1 else bitmask.shape[0])


def _checked_rows(shape: tuple[int, ...], n_mask_rows: int, indices: Any) -> NDArray[np.int64]:
    """The rows to treat, each inside the logits and inside the mask."""
    if len(shape) not in (1, 2):
        raise VocabularyError(
            f"the logits have {len(shape)} dimensions; expected (batch, width) or (width,)."
        )
    n_rows = 1 if len(shape) == 1 else shape[0]
    if indices is None:
        if n_rows != n_mask_rows:
            raise VocabularyError(f"the logits have {n_rows} rows and the bitmask has {n_mask_rows}.")
        return np.arange(n_rows)
    given = np.asarray(indices.cpu() if _is_tensor(indices) else indices)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise VocabularyError(f"indices={indices!r}: expected a list of row numbers.")
    limit = min(n_rows, n_mask_rows)
    if given.size and (given.min() < 0 or given.max() >= limit):
        raise VocabularyError(
            f"indices={given.tolist()!r}: expected row numbers from 0 to {limit - 1}, since the logits have "
            f"{n_rows} rows and the bitmask has {n_mask_rows}."
        )
    return given.astype(np.int64)


def _minus_infinity(dtype: str) -> np.signedinteger[Any]:
    found = _MINUS_INFINITY.get(dtype.removeprefix("torch."))
    if found is None:
        raise VocabularyError(f"the logits have dtype {dtype}; expected one of {', '.join(_MINUS_INFINITY)}.")
    return found


# --------------------------------------------------------------------------------------- numpy


def _host_words(words: Any) -> NDArray[np.int32]:
    """A two-dimensional mask in the layout the kernel reads."""
    array = words if isinstance(words, np.ndarray) else words.detach().cpu().numpy()
    if not array.flags.carray:  # the kernel takes aligned, writeable, C-contiguous arrays alone
        array = array.copy(order="C")
    return np.asarray(array, np.int32)


def _apply_to_array(
    logits: NDArray[Any], dtype: str, words: NDArray[np.int32], rows: NDArray[np.int64]
) -> None:
    """Mask an array; ``dtype`` names its floats, which may be held as integers of the same size."""
    blocked = _minus_infinity(dtype)
    if not logits.flags.writeable:
        raise VocabularyError("the logits are read-only; pass a copy.")
    values = np.asarray(logits if logits.ndim == 2 else logits[None]).view(blocked.dtype)
    if not (len(rows) and values.size):
        return
    item, width = values.itemsize, values.shape[1]
    stride = values.strides[0] if len(values) > 1 else width * item
    is_plain = values.strides[1] == item and stride % item == 0 and stride >= width * item
    if is_plain and values.flags.aligned:
        kernel = getattr(native.load(), f"block_rows_{8 * item}")
        kernel(
            values.__array_interface__["data"][0],
            stride // item,
            width,
            words.__array_interface__["data"][0],
            words.shape[1],
            rows.__array_interface__["data"][0],
            len(rows),
            int(blocked),
            -1,
            32,
        )
        return
    _refuse_overlap(values)
    n_covered = min(width, 32 * words.shape[1])
    shifts = np.arange(32, dtype=np.int32)
    for row in rows.tolist():
        is_blocked = (words[row, :, None] >> shifts & 1 == 0).reshape(-1)[:n_covered]
        values[row, :n_covered][is_blocked] = blocked
        values[row, n_covered:] = blocked


def _refuse_overlap(values: NDArray[Any]) -> None:
    """Raise if two logits share memory (a view that repeats rows or columns)."""
    inner, outer = sorted(
        (abs(stride), size) for stride, size in zip(values.strides, values.shape, strict=True)
    )
    reach = inner[0] * (inner[1] - 1) + values.itemsize
    if (inner[1] > 1 and inner[0] < values.itemsize) or (outer[1] > 1 and outer[0] < reach):
        raise VocabularyError("several logits share one place in memory; pass a copy.")


# --------------------------------------------------------------------------------------- torch


def _apply_to_tensor(logits: Any, words: Any, rows: NDArray[np.int64], *, is_all: bool) -> None:
    """Mask a tensor: through its memory where the CPU holds it, else by torch operations."""
    import torch

    bits = type(_minus_infinity(str(logits.dtype))).__name__
    if logits.layout != torch.strided:
        raise VocabularyError(f"the logits have layout {logits.layout}; expected a dense tensor.")
    records = logits.requires_grad and torch.is_grad_enabled()
    if records and logits.is_leaf:
        raise VocabularyError("the logits are a leaf that requires gradients; pass logits.detach().")
    if logits.device.type == "cpu" and not records:
        array = logits.detach().view(getattr(torch, bits)).numpy()
        _apply_to_array(array, str(logits.dtype), _host_words(words), rows)
        return
    values = logits if logits.ndim == 2 else logits[None]
    packed = torch.from_numpy(_host_words(words)) if isinstance(words, np.ndarray) else words
    packed = packed.to(logits.device, non_blocking=True)
    if is_all:
        _block(values, packed)
        return
    chosen = torch.from_numpy(rows).to(logits.device)
    picked = values.index_select(0, chosen)
    _block(picked, packed.index_select(0, chosen))
    values.index_copy_(0, chosen, picked)


def _block(values: Any, packed: Any) -> None:
    """Mask ``values`` (rows, width) by ``packed`` (rows, n_words), both on one device."""
    import torch

    shifts = torch.arange(32, dtype=torch.int32, device=values.device)
    is_blocked = ((packed.unsqueeze(-1) >> shifts) & 1).flatten(1) == 0
    n_covered = min(values.shape[1], is_blocked.shape[1])
    values[:, :n_covered].masked_fill_(is_blocked[:, :n_covered], float("-inf"))
    values[:, n_covered:].fill_(float("-inf"))
