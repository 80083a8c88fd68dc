"""``constrain show SPEC``: a spec drawn as railroad diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from constrain.cli.report import JsonOption, console, print_json, reports_errors
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, takes_spec

_KINDS = (".html", ".htm", ".svg")


@takes_spec
@reports_errors
def show(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help=SPEC_HELP)] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write, HTML or by its ending (.svg) SVG; '-' is HTML on standard output.",
        ),
    ] = Path("spec.html"),
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Draw a spec's rules and terminals as railroad diagrams in one HTML page or SVG."""
    spec, rest = options.take(arguments or [])
    if rest:
        raise typer.BadParameter(f"unexpected argument {rest[0]!r}")
    kind = output.suffix.lower()
    if str(output) != "-" and kind not in _KINDS:
        raise typer.BadParameter(f"{str(output)!r}: expected a name that ends in {', '.join(_KINDS)}")
    from constrain.drawing import spec_page, spec_svg

    page = spec_svg(spec) if kind == ".svg" else spec_page(spec)
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
