"""``constrain explain SPEC [TEXT]``: what a spec is, and how far a text gets in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from constrain.cli.check import explanation_document
from constrain.cli.report import EXIT_MISMATCH, JsonOption, console, print_json, reports_errors
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, read_text, takes_spec


@takes_spec
@reports_errors
def explain(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC TEXT", help=SPEC_HELP + " TEXT '-' is standard input."),
    ] = None,
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Describe a spec, or say how far TEXT gets in it and what was expected next."""
    spec, texts = options.take(arguments or [])
    if len(texts) > 1:
        raise typer.BadParameter(f"one text at a time, not {len(texts)} (quote a text that has blanks)")
    document: dict[str, Any] = {"spec": repr(spec), "ignored": list(spec.ignored)}
    out = console()
    if not as_json:
        out.print(repr(spec), markup=False, style="bold")
        for name in spec.ignored:
            out.print(f"not enforced: {name}", markup=False, style="yellow")
    if not texts:
        if as_json:
            print_json(document)
        return
    text = read_text(Path("-")) if texts[0] == "-" else texts[0]
    explanation = spec.explain(text)
    if as_json:
        print_json(document | explanation_document(explanation))
    else:
        out.print(str(explanation), markup=False)
    if not explanation.ok:
        raise typer.Exit(EXIT_MISMATCH)
