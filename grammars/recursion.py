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
    error: Exception | None = None
    while True:
        try:
            stack.append(stack[-1].send(value) if error is None else stack[-1].throw(error))
            value = error = None
        except StopIteration as done:
            stack.pop()
            value, error = done.value, None
            if not stack:
                result: Result = value
                return result
        except Exception as failed:
            # As with calls, whoever waits for the value may handle it.
            stack.pop()
            if not stack:
                raise
            value, error = None, failed
