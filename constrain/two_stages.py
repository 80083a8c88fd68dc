"""Methods of two stages, ``"draft"`` and ``"sketch"``: a text without a constraint first, then the output with it.

The second stage is local decoding of prompts that hold the first stage's text.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from constrain.decoders.draft import CHOICE_LANE, Draft, DraftDecoder, DraftOptions, DraftStats, choose_draft
from constrain.decoders.rows import Stats
from constrain.decoders.sketch import SketchOptions, SketchStats, ask_black_box
from constrain.generations import Generation
from constrain.nearest_member import repair
from constrain.numerics import RandomStreams, logsumexp
from constrain.progress import progress_bar
from constrain.requests import (
    Request,
    check_model,
    check_numbers,
    method_options,
    outputs_of,
    prompt_ids,
    prompts_of,
    sampling_of,
)

if TYPE_CHECKING:
    from constrain.base_spec import Spec
    from constrain.compiled import CompiledSpec

Run: TypeAlias = Callable[[Request], list[Generation]]

METHODS: dict[str, Any] = {"draft": DraftOptions, "sketch": SketchOptions}

_FENCED = re.compile(r"\A\s*```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)


def run_two_stages(request: Request, run: Run) -> list[Generation]:
    """Carry out a request by one of `METHODS`.

    Parameters
    ----------
    run : callable
        Carries out a request by local decoding.
    """
    options = method_options(request, METHODS[request.method])
    check_model(request.model)
    check_numbers(request)
    prompts, is_batch = prompts_of(request)
    compiled = outputs_of(request, len(prompts), is_batch)
    pairs = [pair for pair in zip(prompts, compiled, strict=True) for _ in range(request.n)]
    if isinstance(options, DraftOptions):
        return _drafted(request, options, pairs, run)
    return _sketched(request, options, pairs, run)


# ------------------------------------------------------------------------------------------------ drafts


def _drafted(
    request: Request, options: DraftOptions, pairs: Sequence[tuple[Any, CompiledSpec]], run: Run
) -> list[Generation]:
    model = options.draft or request.model
    temperature = options.draft_temperature
    sampling = sampling_of(
        dataclasses.replace(
            request,
            temperature=request.temperature if temperature is None else temperature,
            logit_bias=None,
        )
    )
    streams = RandomStreams(request.seed)
    decoder = DraftDecoder(model, sampling, streams, options=options)
    template = options.template
    ids = [prompt_ids(model, template.think_prompt(prompt), place) for place, (prompt, _) in enumerate(pairs)]
    with progress_bar("drafts", len(ids) * options.k, is_shown=request.progress) as advance:
        drafts = decoder.run([one for one in ids for _ in range(options.k)], watch=advance)
    groups = [drafts[begin : begin + options.k] for begin in range(0, len(drafts), options.k)]
    texts = [[template.split(decoder.text(draft)) for draft in group] for group in groups]
    second: list[tuple[Any, CompiledSpec]] = []
    for (prompt, compiled), parts in zip(pairs, texts, strict=True):
        contents = [content for _, content in parts]
        views = [contents] if options.choose == "concat" else [[content] for content in contents]
        for view in views:
            written = template.write_prompt(prompt, view, _schema_text(compiled.spec))
            second += [(written, compiled)] * options.runs
    results = run(_second_request(request, second, streams))
    size = len(results) // len(pairs)
    return [
        _chosen(
            results[place * size : (place + 1) * size],
            options,
            groups[place],
            texts[place],
            streams.generator(place, 0, CHOICE_LANE).random(),
        )
        for place in range(len(pairs))
    ]


def _second_request(
    request: Request, second: Sequence[tuple[Any, CompiledSpec]], streams: RandomStreams
) -> Request:
    return dataclasses.replace(
        request,
        prompt=[prompt for prompt, _ in second],
        output=[compiled for _, compiled in second],
        method="local",
        method_options={},
        seed=streams.seed,
        n=1,
    )


def _chosen(
    results: Sequence[Generation],
    options: DraftOptions,
    drafts: Sequence[Draft],
    parts: Sequence[tuple[str, str]],
    uniform: float,
) -> Generation:
    """One output of several drafts, with what became of them."""
    runs = [list(results[begin : begin + options.runs]) for begin in range(0, len(results), options.runs)]
    log_weights = [
        [-math.inf if one.log_weight is None else one.log_weight for one in group] for group in runs
    ]
    masses = [logsumexp(np.array(group)) - math.log(len(group)) for group in log_weights]
    place = choose_draft(masses, "select" if options.choose == "concat" else options.choose, uniform)
    result = runs[place][0]
    log_weight: float | None = masses[0] if len(runs) == 1 else None
    if options.choose == "resample":
        log_weight = logsumexp(np.array(masses)) - math.log(len(masses))
    result.stats.draft = DraftStats(
        texts=[content for _, content in parts],
        reasonings=[reasoning for reasoning, _ in parts],
        are_cut=[draft.is_cut for draft in drafts],
        n_tokens=[len(draft.token_ids) for draft in drafts],
        log_weights=log_weights,
        chosen=None if options.choose == "concat" else place,
        model_calls=sum(draft.model_calls for draft in drafts),
        model_seconds=sum(draft.model_seconds for draft in drafts),
    )
    return dataclasses.replace(result, log_weight=log_weight)


def _schema_text(spec: Spec) -> str | None:
    """The JSON schema of a spec, if it was made from one."""
    source = spec.source()
    found = None if source is None else source.get("schema")
    return found if isinstance(found, str) else None


# ---------------------------------------------------------------------------------------------- sketches


def _sketched(
    request: Request, options: SketchOptions, pairs: Sequence[tuple[Any, CompiledSpec]], run: Run
) -> list[Generation]:
    assert options.black_box is not None
    results: list[Generation | None] = []
    sketches: list[SketchStats] = []
    second: list[tuple[Any, CompiledSpec]] = []
    with progress_bar("sketches", len(pairs), is_shown=request.progress) as advance:
        texts = []
        for place, (prompt, _) in enumerate(pairs):
            texts.append(ask_black_box(options.black_box, prompt, options.timeout, f"prompt {place}"))
            advance(place + 1)
    for text, (prompt, compiled) in zip(texts, pairs, strict=True):
        kept = _member(compiled.spec, text, request.prefix) if options.keep_valid else None
        edits = None
        if kept is None and options.rewrite == "edits":
            repaired = repair(compiled.spec, _plain(text), max_edits=options.max_edits)
            edits = repaired.edits
            results.append(_unweighted(compiled, repaired.text))
        elif kept is not None:
            results.append(_unweighted(compiled, kept))
        else:
            results.append(None)
            template = options.template
            drafts = dataclasses.replace(
                _AS_DRAFT, write=template.write, ask=template.ask, text_write=template.text_write
            )
            second.append((drafts.write_prompt(prompt, [text], _schema_text(compiled.spec)), compiled))
        sketches.append(SketchStats(text, kept is not None, edits, 1))
    written = iter(run(_second_request(request, second, RandomStreams(request.seed))) if second else [])
    finished = []
    for result, sketch in zip(results, sketches, strict=True):
        output = next(written) if result is None else result
        output.stats.sketch = sketch
        # A black box tells no probabilities, so no weight could be right.
        finished.append(dataclasses.replace(output, log_weight=None))
    return finished


_AS_DRAFT = DraftOptions().template


def _plain(text: str) -> str:
    """What a black box wrote, without the fence and blanks around it."""
    fenced = _FENCED.match(text)
    return (fenced.group(1) if fenced else text).strip()


def _member(spec: Spec, text: str, prefix: str) -> str | None:
    """The text, or what stands in it without the fence and blanks around it, if that is a member."""
    for candidate in dict.fromkeys((text, _plain(text))):
        if candidate.startswith(prefix) and spec.matches(candidate):
            return candidate
    return None


def _unweighted(compiled: CompiledSpec, text: str) -> Generation:
    """A member that no model of ours wrote."""
    return Generation(
        value=compiled.spec.parse(text),
        text=text,
        token_ids=[],
        log_probability=None,
        log_weight=None,
        finish_reason="stop",
        is_complete=True,
        stats=Stats(),
    )
