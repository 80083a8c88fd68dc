"""Rows of a caller's bitmask, checked once and then addressed."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from constrain.tokenizer_index.errors import VocabularyError

if TYPE_CHECKING:
    import torch


class BitmaskRows:
    """A bitmask whose rows kernels may write.

    Holding ``array`` keeps the memory alive and keeps numpy from moving it.

    Parameters
    ----------
    owner : object
        The caller's array or tensor, to be recognised by identity.
    array : (batch, n_words) int32
        A view of its memory.
    """

    __slots__ = ("array", "first", "is_numpy", "n_rows", "n_words", "owner", "stride")

    def __init__(self, owner: object, array: NDArray[np.int32]) -> None:
        self.owner: Any = owner
        self.array = array
        self.n_rows, self.n_words = array.shape
        self.first: int = array.__array_interface__["data"][0]
        self.stride: int = array.strides[0]
        self.is_numpy = isinstance(owner, np.ndarray)

    @classmethod
    def of(cls, bitmask: NDArray[np.int32] | torch.Tensor, n_words: int) -> BitmaskRows:
        """Check a bitmask.

        Raises
        ------
        VocabularyError
            It is no int32 array or CPU tensor of ``n_words`` columns whose rows are contiguous and writable.
        """
        array: Any = bitmask
        if not isinstance(array, np.ndarray):
            torch = sys.modules.get("torch")
            if torch is None or not isinstance(array, torch.Tensor):
                raise VocabularyError(
                    f"the bitmask is a {type(bitmask).__name__}; expected a numpy array or a torch tensor of "
                    f"int32, as allocate_token_bitmask makes it."
                )
            if array.device.type != "cpu":
                raise VocabularyError(f"the bitmask is on {array.device}; fill it on the CPU and copy it.")
            if array.dtype != torch.int32:
                raise VocabularyError(f"the bitmask has dtype {array.dtype}; expected int32.")
            array = array.detach().numpy()
        if array.dtype != np.int32:
            raise VocabularyError(f"the bitmask has dtype {array.dtype}; expected int32.")
        if array.ndim != 2 or array.shape[1] != n_words:
            raise VocabularyError(
                f"the bitmask has shape {tuple(array.shape)}; expected (batch, {n_words}), as "
                f"allocate_token_bitmask makes it for this vocabulary."
            )
        if not array.flags.writeable:
            raise VocabularyError("the bitmask is read-only.")
        if array.size and array.strides[1] != 4:
            raise VocabularyError("the words of a row of the bitmask do not lie next to each other.")
        return cls(bitmask, array)

    def is_current(self, bitmask: Any) -> bool:
        """Are these still the rows of ``bitmask``? Tensors may get other memory, arrays may be locked."""
        if bitmask is not self.owner or tuple(bitmask.shape) != (self.n_rows, self.n_words):
            return False
        if self.is_numpy:
            return bool(bitmask.flags.writeable)
        return bool(bitmask.data_ptr() == self.first)

    def address(self, index: int) -> int:
        """Address of row ``index``.

        Raises
        ------
        VocabularyError
            There is no such row.
        """
        row = operator.index(index)
        if not 0 <= row < self.n_rows:
            raise VocabularyError(f"the bitmask has {self.n_rows} rows; there is no row {row}.")
        return self.first + row * self.stride
