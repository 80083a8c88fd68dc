"""The Typer application: which commands there are."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from constrain.cli.check import check
from constrain.cli.compile import compile_spec
from constrain.cli.doctor import doctor
from constrain.cli.explain import explain
from constrain.cli.generate import generate
from constrain.cli.sample import sample
from constrain.cli.show import show
from constrain.cli.warmup import warmup

app = typer.Typer(
    name="constrain",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Make a language model's output match a regex, a grammar, a JSON Schema, a choice or a Python type.\n\n"
    "Exit status: 0 all well, 1 a text doesn't match or a check failed, 2 wrong usage, spec or environment.",
)
app.command("generate")(generate)
app.command("check")(check)
app.command("explain")(explain)
app.command("sample")(sample)
app.command("show")(show)
app.command("compile")(compile_spec)
app.command("warmup")(warmup)
app.command("doctor")(doctor)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"constrain {version('constrain-lm')}")
        raise typer.Exit()


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass
