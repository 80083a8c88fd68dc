"""What commands print: text for people or one JSON document for machines, errors, progress.

Results go to standard output; progress, warnings and errors to standard error, so that output can be piped.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain.errors import ConstrainError, SpecError

if TYPE_CHECKING:
    from rich.console import Console

EXIT_MISMATCH = 1
"""A text doesn't match, or a check failed."""
EXIT_ERROR = 2
"""Wrong usage, a wrong spec, or something that is missing or damaged."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def console(*, stderr: bool = False) -> Console:
    """Return a console for the current standard output or error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(document: dict[str, Any]) -> None:
    """Print ``document`` as one JSON text on standard output."""
    json.dump(document, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def error_document(error: ConstrainError) -> dict[str, Any]:
    """Return the ``error`` object of ``--json``: type, message, and the place where the error has one."""
    document: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, SpecError):
        places = ("pointer", "line", "column", "offset", "hint")
        document |= {name: getattr(error, name) for name in places if getattr(error, name) is not None}
    return document


def fail(error: ConstrainError, *, as_json: bool) -> typer.Exit:
    """Print ``error`` without a traceback; return the exception that ends the program."""
    if as_json:
        print_json({"error": error_document(error)})
    else:
        from rich.text import Text

        title = Text(f"{type(error).__name__}: ", style="bold red")
        console(stderr=True).print(title.append_text(Text(str(error), style="not bold default")))
    return typer.Exit(EXIT_ERROR)


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Make ``command``, which takes ``as_json``, print its own errors and end with status 2."""

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> None:
        try:
            command(*args, **values)
        except ConstrainError as error:
            raise fail(error, as_json=values["as_json"]) from None

    return run


@contextmanager
def working(what: str, *, is_quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a spinner with ``what`` and the seconds on standard error while the block runs, on terminals only.

    Yields
    ------
    callable
        Called with a text, shows that one instead.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    err = console(stderr=True)
    is_shown = err.is_terminal and not is_quiet
    # Standard output stays what it is: it may be a pipe while the spinner runs.
    with Progress(
        *columns, console=err, transient=True, disable=not is_shown, redirect_stdout=False
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=text)
