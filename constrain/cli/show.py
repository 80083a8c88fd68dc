"""``constrain show SPEC``: a spec drawn as railroad diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from constrain.cli.report import JsonOption, console, print_json, reports_errors
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, takes_spec


@takes_spec
@reports_errors
def show(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help=SPEC_HELP)] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The HTML file to write; '-' is standard output.")
    ] = Path("spec.html"),
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Draw a spec's rules and terminals as railroad diagrams in one HTML page."""
    spec, rest = options.take(arguments or [])
    if rest:
        raise typer.BadParameter(f"unexpected argument {rest[0]!r}")
    from constrain.drawing import spec_page

    page = spec_page(spec)
    if str(output) == "-":
        typer.echo(page, nl=False)
        return
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"can't write {str(output)!r}: {error.strerror}") from None
    if as_json:
        print_json({"spec": repr(spec), "file": str(output), "bytes": len(page.encode())})
    else:
        console().print(f"{output} ({len(page.encode()):,} bytes)", markup=False)
