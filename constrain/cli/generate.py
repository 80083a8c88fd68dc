"""``constrain generate SPEC PROMPT``: a model's output in the language of a spec."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain.cli.methods import (
    METHOD_HELP,
    OPTION_HELP,
    Method,
    default_temperature,
    method_options,
)
from constrain.cli.models import ModelOption
from constrain.cli.report import JsonOption, console, print_json, reports_errors, working
from constrain.cli.spec_options import SPEC_HELP, SpecOptions, drop_newline, read_text, takes_spec

if TYPE_CHECKING:
    from constrain.generation import Generation


@takes_spec
@reports_errors
def generate(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC PROMPT", help=SPEC_HELP + " PROMPT '-' is standard input."),
    ] = None,
    model_name: ModelOption = None,
    is_chat: Annotated[
        bool, typer.Option("--chat/--raw", help="Send the prompt as a chat message, or as bare text.")
    ] = True,
    system: Annotated[
        str | None, typer.Option("--system", help="System message of the chat.", show_default=False)
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Most tokens to generate.")] = 256,
    method: Annotated[Method, typer.Option("--method", help=METHOD_HELP)] = Method.local,
    given_options: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", metavar="NAME=VALUE", help=OPTION_HELP, show_default=False),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            min=0.0,
            help="0 is greedy. By default 0, or 1 for methods that only sample (rejection, smc, aligned, mcmc).",
            show_default=False,
        ),
    ] = None,
    top_p: Annotated[float, typer.Option("--top-p", min=0.0, max=1.0)] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="0 is off.")] = 0,
    min_p: Annotated[float, typer.Option("--min-p", min=0.0, max=1.0)] = 0.0,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Same seed, same output.", show_default=False)
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many outputs.")] = 1,
    as_json: JsonOption = False,
    *,
    options: SpecOptions,
) -> None:
    """Generate text that matches a spec, with the embedded model unless another one is named."""
    spec, prompts = options.take(arguments or [])
    if len(prompts) != 1:
        raise typer.BadParameter(f"expected one prompt, got {len(prompts)} (quote a prompt that has blanks)")
    text = drop_newline(read_text(Path("-"))) if prompts[0] == "-" else prompts[0]
    if system is not None and not is_chat:
        raise typer.BadParameter("--system needs --chat")
    prompt: str | list[dict[str, str]] = text
    if is_chat:
        prompt = [{"role": "system", "content": system}] if system is not None else []
        prompt.append({"role": "user", "content": text})

    import constrain

    with working("loading the model", is_quiet=as_json):
        model = constrain.load_model(model_name)
        own_options = method_options(given_options or [])
    is_population = method is Method.smc
    result: Any = constrain.generate(
        model,
        prompt,
        spec,
        method=method.value,
        max_tokens=max_tokens,
        temperature=default_temperature(method) if temperature is None else temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        seed=seed,
        n=1 if is_population else count,
        progress=console(stderr=True).is_terminal and not as_json,
        **own_options,
    )
    results: list[Any] = result if isinstance(result, list) else [result]
    if not as_json:
        if is_population:
            results = [result.sample(rng) for rng in _generators(seed, count)]
        for one in results:
            typer.echo(one.text)
        return
    document: dict[str, Any] = {"spec": repr(spec)}
    if is_population:
        results = result.particles
        document["log_normalizer"] = _number(result.log_normalizer)
    print_json(document | {"results": [generation_document(one) for one in results]})


def _generators(seed: int | None, count: int) -> list[Any]:
    """One generator of random numbers for each draw."""
    import numpy as np

    return list(np.random.default_rng(seed).spawn(count))


def _number(value: float | None) -> float | None:
    """A number that JSON can say; the logarithm of 0 is ``null``."""
    return value if value is not None and math.isfinite(value) else None


def generation_document(generation: Generation) -> dict[str, Any]:
    """Return a ``Generation`` as JSON; ``value`` is the parsed output where JSON can say it, else its ``repr``."""
    try:
        json.dumps(value := generation.value)
    except TypeError:
        value = repr(generation.value)
    return {
        "text": generation.text,
        "value": value,
        "token_ids": list(generation.token_ids),
        "log_probability": _number(generation.log_probability),
        "log_weight": _number(generation.log_weight),
        "finish_reason": generation.finish_reason,
        "is_complete": generation.is_complete,
        "stats": asdict(generation.stats),
    }
