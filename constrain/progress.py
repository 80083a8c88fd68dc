"""Progress of long generation, for people who wait: a bar on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Advance: TypeAlias = Callable[[int], None]


@contextmanager
def progress_bar(what: str, total: int | None, *, is_shown: bool) -> Iterator[Advance]:
    """Show a bar while the block runs; its last state stays on the screen.

    Parameters
    ----------
    what : str
        What is being done.
    total : int or None
        How many outputs there will be; ``None``: unknown.

    Yields
    ------
    callable
        To be called after each step, with the number of outputs that are finished.
    """
    if not is_shown:
        yield lambda n_finished: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("outputs, step {task.fields[step]}", markup=False),
        TimeElapsedColumn(),
    )
    # Standard output stays what it is: it may be a pipe while the bar runs.
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as shown:
        task = shown.add_task(what, total=total, step=0)
        n_steps = 0

        def advance(n_finished: int) -> None:
            nonlocal n_steps
            n_steps += 1
            shown.update(task, completed=n_finished, step=n_steps)

        yield advance
