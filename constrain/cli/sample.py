"""``constrain sample SPEC``: random members of a spec."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from constrain.cli.report import JsonOption, print_json, reports_errors
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, takes_spec


@takes_spec
@reports_errors
def sample(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help=SPEC_HELP)] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many members.")] = 1,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same members.")] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", min=1, help="Longest member, in bytes.")
    ] = None,
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Print random texts that match a spec, one after the other."""
    spec, rest = options.take(arguments or [])
    if rest:
        raise typer.BadParameter(f"unexpected argument {rest[0]!r}")
    import numpy as np

    rng = np.random.default_rng(seed)
    texts = [
        spec.sample(rng) if max_bytes is None else spec.sample(rng, max_bytes=max_bytes) for _ in range(count)
    ]
    if as_json:
        print_json({"spec": repr(spec), "seed": seed, "samples": texts})
    else:
        sys.stdout.writelines(text + "\n" for text in texts)
