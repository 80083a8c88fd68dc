"""Generation: a model, a prompt and a spec to text that is in the spec's language, and to its value.

``generate`` reads its arguments into rows, one an output, and hands them to the decoder of the
chosen method. Whatever the model prefers, an output is complete, valid and within its budget, or an
error says before the first token that the budget is too small; weighted methods may give up on an
output, which then has weight 0.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from constrain import two_stages
from constrain.decoders.beam import BeamDecoder
from constrain.decoders.resampling import normalized_weights
from constrain.decoders.rows import Row, Stats
from constrain.decoders.smc import Population, SmcDecoder
from constrain.errors import DeadEndError, OptionError, SpecError
from constrain.generations import FinishReason, Generation, PartialGeneration
from constrain.posterior import Posterior
from constrain.progress import progress_bar
from constrain.requests import Options, Plan, Prompt, Request, RowDecoder, is_batch, plan
from constrain.settled import Shown

if TYPE_CHECKING:
    from constrain.compiled import CompiledSpec
    from constrain.protocols import LogitsBackend

__all__ = ["Generation", "PartialGeneration", "Posterior", "Stats", "agenerate", "generate", "stream"]

T = TypeVar("T")


@overload
def generate(
    model: LogitsBackend, prompt: str, output: Any, *, method: Literal["smc"], **options: Any
) -> Posterior: ...
@overload
def generate(
    model: LogitsBackend,
    prompt: Prompt | Sequence[Prompt],
    output: Any,
    *,
    method: Literal["smc"],
    **options: Any,
) -> Posterior | list[Posterior]: ...
@overload
def generate(
    model: LogitsBackend,
    prompt: str,
    output: Any,
    *,
    method: Literal[
        "local", "rejection", "aligned", "mcmc", "beam", "speculative", "draft", "sketch"
    ] = "local",
    n: Literal[1] = 1,
    **options: Any,
) -> Generation: ...
@overload
def generate(
    model: LogitsBackend,
    prompt: Prompt | Sequence[Prompt],
    output: Any,
    *,
    method: Literal[
        "local", "rejection", "aligned", "mcmc", "beam", "speculative", "draft", "sketch"
    ] = "local",
    **options: Any,
) -> Generation | list[Generation]: ...
@overload
def generate(
    model: LogitsBackend, prompt: Prompt | Sequence[Prompt], output: Any, *, method: str, **options: Any
) -> Any: ...
def generate(
    model: LogitsBackend,
    prompt: Prompt | Sequence[Prompt],
    output: Any,
    *,
    method: str = "local",
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    stop: str | Sequence[str] | None = None,
    logit_bias: Mapping[int, float] | None = None,
    prefix: str = "",
    seed: int | None = None,
    n: int = 1,
    progress: bool = False,
    **method_options: Any,
) -> Generation | list[Generation] | Posterior | list[Posterior]:
    """Generate text in the language of ``output``.

    Parameters
    ----------
    model : LogitsBackend
        From ``load_model()``, ``from_transformers(...)`` or another backend.
    prompt : str, chat messages, or a sequence of either
        Text goes to the model as it is; messages (mappings with ``role`` and ``content``) through its
        chat template. A sequence of prompts is a batch.
    output : Spec, Python type, JSON-schema dict, CompiledSpec, or a list of these
        A list gives each prompt of a batch its own.
    method : str
        ``"local"``: see ``constrain.decoders.local``; its options are those of ``LocalOptions``.
        ``"rejection"``: see ``constrain.decoders.rejection`` and ``RejectionOptions``.
        ``"smc"``: see ``constrain.decoders.smc`` and ``SmcOptions``.
        ``"aligned"``: see ``constrain.decoders.aligned`` and ``AlignedOptions``.
        ``"mcmc"``: see ``constrain.decoders.mcmc`` and ``McmcOptions``.
        ``"beam"``: see ``constrain.decoders.beam`` and ``BeamOptions``.
        ``"speculative"``: see ``constrain.decoders.speculative`` and ``SpeculativeOptions``.
        ``"draft"``: see ``constrain.decoders.draft`` and ``DraftOptions``.
        ``"sketch"``: see ``constrain.decoders.sketch`` and ``SketchOptions``.
    max_tokens : int
        Most tokens to generate, the end token counted. The output is the model's choice among the
        members that fit. What the model's context leaves is a limit too.
    temperature, top_p, top_k, min_p, logit_bias
        See ``constrain.numerics.Sampling``.
    stop : str or sequence of str
        The output also ends right after one of these, where it is complete there. Elsewhere they are
        text like any other, since every output is a member of the language.
    prefix : str
        How the output begins; healed at the token boundary.
    seed : int or None
        Fixes all random choices, whatever the size of the batch (up to the model's own round-off).
    n : int
        Outputs a prompt; 1 for ``"smc"``. By ``"beam"`` the best ``n``, or fewer where there are no more.
    progress : bool
        Show a bar on standard error while it runs.

    Returns
    -------
    Generation, or a list of them for a batch or ``n > 1``
        With both, the ``n`` outputs of a prompt stand together.
    Posterior, or a list of them for a batch
        By ``method="smc"``.

    Raises
    ------
    OptionError
        An argument is unknown or out of range.
    SpecError
        ``output`` is malformed, no member begins with ``prefix``, or the type's own validators refuse
        a member (``error.source`` is then the text).
    LimitExceededError
        No member fits ``max_tokens`` (the text names the least number that does), or the context.
    DeadEndError, CheckError, BackendError
        See ``LocalDecoder.run``.
    """
    request = Request(
        model,
        prompt,
        output,
        method=method,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        stop=stop,
        logit_bias=logit_bias,
        prefix=prefix,
        seed=seed,
        n=n,
        progress=progress,
        method_options=method_options,
    )
    if method in two_stages.METHODS:
        return _single_or_all(two_stages.run_two_stages(request, _run), request)
    planned = plan(request)
    if isinstance(planned.decoder, SmcDecoder):
        posteriors = [
            _posterior(population, spec, planned.options)
            for population, spec in zip(
                _populations(planned.decoder, planned.rows, request), planned.compiled, strict=True
            )
        ]
        return _single_or_all(posteriors, request)
    return _single_or_all(_carry_out(planned, request), request)


def _populations(decoder: SmcDecoder, rows: Sequence[Row], request: Request) -> list[Population]:
    done: list[Population] = []
    with progress_bar(request.method, len(rows), is_shown=request.progress) as advance:
        for row in rows:
            population = decoder.start(row)
            while population.active:
                population, _ = decoder.step(decoder.streams, population)
                advance(len(done))
            done.append(population)
            advance(len(done))
    return done


def _single_or_all(results: list[T], request: Request) -> T | list[T]:
    """One prompt and one output: the result; else the list."""
    return results[0] if request.n == 1 and not is_batch(request.prompt) else results


def _run(request: Request) -> list[Generation]:
    return _carry_out(plan(request), request)


def _carry_out(planned: Plan, request: Request) -> list[Generation]:
    """Run a plan of any method but ``"smc"``."""
    assert not isinstance(planned.decoder, SmcDecoder)
    pairs = list(zip(planned.rows, planned.compiled, strict=True))
    rows = planned.rows
    try:
        with progress_bar(request.method, len(rows), is_shown=request.progress) as advance:
            if isinstance(planned.decoder, BeamDecoder):
                found = []
                for place, (row, spec) in enumerate(pairs, 1):
                    found += [(one, spec) for one in planned.decoder.search(row)[: planned.n]]
                    advance(place)
                pairs = found
            else:
                size = planned.options.batch_size
                for begin in range(0, len(rows), size):
                    for _ in planned.decoder.run(rows[begin : begin + size]):
                        advance(sum(row.is_finished for row in rows))
                advance(sum(row.is_finished for row in rows))
    except DeadEndError as error:
        _keep_result(error, planned)
        raise
    return [_result(row, spec, planned.options) for row, spec in pairs]


@overload
async def agenerate(
    model: LogitsBackend,
    prompt: Prompt | Sequence[Prompt],
    output: Any,
    *,
    method: Literal["smc"],
    **options: Any,
) -> Posterior | list[Posterior]: ...
@overload
async def agenerate(
    model: LogitsBackend,
    prompt: Prompt | Sequence[Prompt],
    output: Any,
    *,
    method: Literal[
        "local", "rejection", "aligned", "mcmc", "beam", "speculative", "draft", "sketch"
    ] = "local",
    **options: Any,
) -> Generation | list[Generation]: ...
@overload
async def agenerate(
    model: LogitsBackend, prompt: Prompt | Sequence[Prompt], output: Any, *, method: str, **options: Any
) -> Any: ...
async def agenerate(
    model: LogitsBackend, prompt: Prompt | Sequence[Prompt], output: Any, **options: Any
) -> Any:
    """Like ``generate``, awaited; the work is done in a thread."""
    work: Callable[[], Any] = functools.partial(generate, model, prompt, output, **options)
    return await asyncio.to_thread(work)


def stream(
    model: LogitsBackend, prompt: Prompt, output: Any, **options: Any
) -> Iterator[PartialGeneration | Generation]:
    """Generate one output and show it as it grows.

    Arguments are those of ``generate`` (``n`` must be 1); they are checked when ``stream`` is called,
    not at the first item.

    Yields
    ------
    PartialGeneration
        After each step that added text, or took it back because checks (`Spec.where`) refused it: then
        ``text`` doesn't go on from the one before, and what was finished may be gone.
    Generation
        Last, once: the same as from ``generate`` with the same arguments.
    """
    request = Request.of(model, prompt, output, options)
    if request.progress:
        raise OptionError("stream() shows the output as it grows; progress= is for generate().")
    if request.method in two_stages.METHODS:
        raise OptionError(
            f"stream() shows an output from its beginning on; use generate() for method={request.method!r}."
        )
    planned = plan(request)
    if not planned.is_single:
        raise OptionError("stream() makes one output of one prompt; use generate() for more.")
    if isinstance(planned.decoder, SmcDecoder | BeamDecoder):
        raise OptionError(
            "stream() shows one output that grows; methods 'smc' and 'beam' have many: use generate()."
        )
    return _stream(planned, planned.decoder)


def _stream(planned: Plan, decoder: RowDecoder) -> Iterator[PartialGeneration | Generation]:
    (row,) = planned.rows
    (compiled,) = planned.compiled
    shown = Shown(compiled) if compiled.spec.is_json else None
    before = ""
    for _ in _running(decoder, planned):
        text = row.text.decode("utf-8", errors="ignore")
        if row.is_finished or text == before:
            continue
        before = text
        if shown is None:
            yield PartialGeneration(None, text, list(row.token_ids))
            continue
        settled, final = shown.read(bytes(row.text))
        yield PartialGeneration(
            settled.value(), text, list(row.token_ids), settled.open_pointers(), final=final
        )
    yield _result(row, compiled, planned.options)


def _running(decoder: RowDecoder, planned: Plan) -> Iterator[None]:
    try:
        yield from decoder.run(planned.rows)
    except DeadEndError as error:
        _keep_result(error, planned)
        raise


def _keep_result(error: DeadEndError, planned: Plan) -> None:
    """Give the error what is there of the row that failed."""
    for row, compiled in zip(planned.rows, planned.compiled, strict=True):
        if not row.is_complete:
            error.result = _result(row, compiled, planned.options)


def _value(row: Row, compiled: CompiledSpec) -> Any:
    output = compiled.output(bytes(row.text), row.token_ids, row.n_prefix)
    try:
        return compiled.spec.parse_output(output)
    except ValueError as error:
        # A member of the language, so only code of the type itself can object.
        raise SpecError(
            f"The output of row {row.index} fits {compiled.spec!r}, but its type's own validation refuses "
            f"it: {error}",
            source=row.text.decode("utf-8", errors="surrogateescape"),
            hint="State the rule in the type (pydantic.Field, Literal), so that it is enforced while decoding.",
        ) from error


def _result(row: Row, compiled: CompiledSpec, options: Options) -> Generation:
    text = row.text.decode("utf-8", errors="surrogateescape")
    if row.checks is not None:
        row.checks.report(row.stats)
    is_weighted = options.is_weighted and row.is_weighted
    reason: FinishReason = "budget" if row.is_shaped else "stop"
    return Generation(
        value=_value(row, compiled) if row.is_complete else None,
        text=text,
        token_ids=row.token_ids,
        log_probability=row.log_probability if options.score else None,
        log_weight=row.log_weight if is_weighted else None,
        finish_reason=reason if row.is_complete else "length",
        is_complete=row.is_complete,
        stats=row.stats,
    )


def _posterior(population: Population, compiled: CompiledSpec, options: Options) -> Posterior:
    return Posterior(
        [_result(particle.row, compiled, options) for particle in population.particles],
        population.log_normalizer,
        np.array([particle.log_target for particle in population.particles], np.float64),
        population.effective_sizes,
        population.resampled_at,
        np.array([normalized_weights(line) for line in population.log_weight_history]),
    )
