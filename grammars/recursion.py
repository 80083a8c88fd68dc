"""Recursion on an explicit stack, so that no nesting of a pattern can overflow Python's own."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Task: TypeAlias = Generator[Any, Any, Result]


def run(task: Task[Result]) -> Result:
    """Return what ``task`` returns.

    Parameters
    ----------
    task : generator
        Where it needs the result of another call it writes ``value = yield other_task``.
    """
    stack = [task]
    value: Any = None
    while True:
        try:
            stack.append(stack[-1].send(value))
            value = None
        except StopIteration as done:
            stack.pop()
            value = done.value
            if not stack:
                result: Result = value
                return result
