"""``constrain check SPEC FILE...``: does each file match, and where does it go wrong?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain.cli.report import EXIT_MISMATCH, JsonOption, console, print_json, reports_errors, working
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, read_bytes, takes_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.spec import Explanation


@takes_spec
@reports_errors
def check(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="SPEC FILE", help=SPEC_HELP)] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Check each line of the files by itself.")] = False,
    keep_newline: Annotated[
        bool, typer.Option("--keep-newline", help="Count the line break at the end of a file as text.")
    ] = False,
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Check files against a spec; '-' is standard input. The status is 0 if all match, else 1."""
    spec, files = options.take(arguments or [])
    if not files:
        raise typer.BadParameter("no file to check ('-' is standard input)")
    results: list[tuple[str, int | None, Explanation]] = []
    with working("checking", is_quiet=as_json) as show:
        for name in files:
            show(f"checking {name}")
            for number, text in _texts(read_bytes(Path(name)), lines=lines, keep_newline=keep_newline):
                results.append((name, number, spec.explain(text)))
    is_ok = all(explanation.ok for _, _, explanation in results)
    if as_json:
        print_json({"ok": is_ok, "spec": repr(spec), "results": [_document(*result) for result in results]})
    else:
        _print_results(results, is_brief=lines)
    if not is_ok:
        raise typer.Exit(EXIT_MISMATCH)


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return an ``Explanation`` as JSON: ``ok``, and where it isn't the place and what was expected."""
    document: dict[str, Any] = {"ok": explanation.ok}
    if not explanation.ok:
        names = ("offset", "line", "column", "pointer")
        document |= {name: getattr(explanation, name) for name in names}
        document["expected"] = list(explanation.expected)
        if explanation.instead:
            document |= {"word": explanation.word, "instead": list(explanation.instead)}
    return document


def _document(name: str, number: int | None, explanation: Explanation) -> dict[str, Any]:
    place: dict[str, Any] = {"file": name} if number is None else {"file": name, "record": number}
    return place | explanation_document(explanation)


def _print_results(results: list[tuple[str, int | None, Explanation]], *, is_brief: bool) -> None:
    """Print each result; only what doesn't match, and a count, where ``is_brief``."""
    out = console()
    for name, number, explanation in results:
        label = name if number is None else f"{name}:{number}"
        if not (explanation.ok and is_brief):
            out.print(f"{label}: {'ok' if explanation.ok else explanation}", markup=False)
    if is_brief:
        out.print(f"{sum(e.ok for _, _, e in results)} of {len(results)} lines match", markup=False)


def _texts(data: bytes, *, lines: bool, keep_newline: bool) -> Iterator[tuple[int | None, bytes]]:
    """Yield the texts of one file with their line numbers, or the whole file with None."""
    if lines:
        parts = data.split(b"\n")
        if parts[-1] == b"":
            parts.pop()
        for number, part in enumerate(parts, 1):
            yield number, part.removesuffix(b"\r")
    elif keep_newline:
        yield None, data
    else:
        yield None, data.removesuffix(b"\n").removesuffix(b"\r")
