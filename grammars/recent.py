"""What was made of recent keys, up to a total weight."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Values of recent keys; where they get too many or too heavy, the older half is dropped.

    Threads may share one: each step on the dictionary is atomic, and a value lost is made again.

    Parameters
    ----------
    most : int
        Number of values.
    most_weight : int
        Sum of their weights; a value that alone weighs more than half of it is not kept.
    """

    __slots__ = ("_most", "_most_weight", "_values", "_weight")

    def __init__(self, most: int, most_weight: int) -> None:
        self._most = most
        self._most_weight = most_weight
        self._values: dict[_Key, tuple[_Value, int]] = {}
        self._weight = 0

    def get(self, key: _Key) -> _Value | None:
        """Return the value of ``key``, if it is kept."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def put(self, key: _Key, value: _Value, weight: int) -> None:
        """Keep ``value`` under ``key``."""
        if 2 * weight > self._most_weight:
            return
        if len(self._values) >= self._most or self._weight + weight > self._most_weight:
            self._drop(weight)
        self._values[key] = (value, weight)
        self._weight += weight

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._weight = 0

    def _drop(self, weight: int) -> None:
        """Drop the older half, and more where ``weight`` needs it."""
        kept = list(self._values.items())
        kept = kept[len(kept) // 2 :]
        total = sum(entry[1][1] for entry in kept)
        while kept and total + weight > self._most_weight:
            half = len(kept) // 2 + 1
            total -= sum(entry[1][1] for entry in kept[:half])
            kept = kept[half:]
        self._values = dict(kept)
        self._weight = total
