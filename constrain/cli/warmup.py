"""``constrain warmup``: compile the kernels and build a vocabulary's index now, so that no later program waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from constrain.cli.models import EosOption, TokenizerOption, VocabSizeOption, load_vocabulary
from constrain.cli.report import JsonOption, console, print_json, reports_errors, working


@reports_errors
def warmup(
    tokenizer: TokenizerOption = None,
    vocab_size: VocabSizeOption = None,
    eos: EosOption = None,
    kernels_only: Annotated[
        bool, typer.Option("--kernels-only", help="Compile the kernels and stop.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile the kernels, build a vocabulary's index, and convert the embedded model if it is used."""
    steps: list[tuple[str, Callable[[], Any]]] = [("kernels", _compile_kernels)]
    if not kernels_only:
        if tokenizer is None:
            steps.append(("embedded model", _load_embedded_model))
        steps.append(("vocabulary index", lambda: _use(load_vocabulary(tokenizer, vocab_size, eos))))
    rows: list[dict[str, Any]] = []
    out = console()
    for name, run in steps:
        start = time.perf_counter()
        with working(name, is_quiet=as_json):
            run()
        rows.append({"step": name, "seconds": time.perf_counter() - start})
        if not as_json:
            out.print(f"{name}: {rows[-1]['seconds']:.1f} s")
    if as_json:
        print_json({"steps": rows})


def _load_embedded_model() -> None:
    import constrain

    constrain.load_model()


def _compile_kernels() -> None:
    """Take one mask over each way of writing a text, on a vocabulary of single bytes."""
    import constrain

    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    _use(constrain.Vocabulary.from_tokens([*tokens, None], eos_token_ids=[256]))


def _use(vocabulary: Any) -> None:
    import constrain

    bitmask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for spec in (constrain.json_schema({"type": "object"}), constrain.regex("[a-z]{2,5}")):
        matcher = constrain.compile(spec, vocabulary).matcher()
        matcher.fill_next_token_bitmask(bitmask, 0)
        matcher.min_tokens_to_finish()
