"""``constrain compile SPEC``: compile a spec for a tokenizer, and keep the result in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from constrain.cli.models import EosOption, TokenizerOption, VocabSizeOption, load_vocabulary
from constrain.cli.report import JsonOption, console, print_json, reports_errors, working
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, takes_spec


@takes_spec
@reports_errors
def compile_spec(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help=SPEC_HELP)] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to save the compiled spec.", show_default=False),
    ] = None,
    tokenizer: TokenizerOption = None,
    vocab_size: VocabSizeOption = None,
    eos: EosOption = None,
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Compile a spec for a tokenizer: how long it takes, how many tokens its shortest text needs."""
    spec, rest = options.take(arguments or [])
    if rest:
        raise typer.BadParameter(f"unexpected argument {rest[0]!r}")
    import constrain

    with working("reading the tokenizer", is_quiet=as_json) as show:
        vocabulary = load_vocabulary(tokenizer, vocab_size, eos)
        show("compiling")
        start = time.perf_counter()
        compiled = constrain.compile(spec, vocabulary)
        compiled_at = time.perf_counter()
        matcher = compiled.matcher()
        matcher.fill_next_token_bitmask(constrain.allocate_token_bitmask(1, vocabulary.size), 0)
        filled_at = time.perf_counter()
        shortest = matcher.min_tokens_to_finish()
        if output is not None:
            try:
                compiled.save(output)
            except OSError as error:
                raise typer.BadParameter(f"can't write {str(output)!r}: {error.strerror}") from None
    document: dict[str, Any] = {
        "spec": repr(spec),
        "vocabulary_size": vocabulary.size,
        "compile_seconds": compiled_at - start,
        "first_mask_seconds": filled_at - compiled_at,
        "min_tokens": int(shortest),
        "is_exact": shortest.is_exact,
        "output": None if output is None else str(output),
    }
    if as_json:
        print_json(document)
        return
    out = console()
    out.print(repr(spec), style="bold", markup=False)
    out.print(f"compiled for {vocabulary.size:,} tokens in {1e3 * document['compile_seconds']:,.1f} ms")
    out.print(f"first mask {1e3 * document['first_mask_seconds']:,.1f} ms")
    bound = "" if shortest.is_exact else "at most "
    out.print(f"shortest text: {bound}{int(shortest):,} token(s), the end token not counted")
    if output is not None:
        out.print(f"saved as {output}", markup=False)
