"""Equality of JSON values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

Json: TypeAlias = Any


def shared_values(first: tuple[Json, ...], second: tuple[Json, ...]) -> tuple[Json, ...]:
    """Return those of ``first`` that are equal to one of ``second``."""
    texts = {value for value in second if isinstance(value, str)}
    others = [value for value in second if not isinstance(value, str)]
    return tuple(
        value
        for value in first
        if (value in texts if isinstance(value, str) else any(is_equal(value, other) for other in others))
    )


def is_equal(a: Json, b: Json) -> bool:
    """Are two JSON values equal? Numbers by value, so 1 equals 1.0; booleans are no numbers."""
    todo = [(a, b)]
    while todo:
        a, b = todo.pop()
        if a is b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            todo += [(a[key], b[key]) for key in a]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif isinstance(a, (dict, list)) or isinstance(b, (dict, list)):
            return False
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif a != b:
            return False
    return True


def exact(value: float) -> Decimal:
    """Return a number as it is written."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
