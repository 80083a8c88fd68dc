"""What a caller asked for, checked and turned into rows for a decoder."""

from __future__ import annotations

import dataclasses
import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from constrain.compiled import CompiledSpec
from constrain.compiled import compile as compile_spec
from constrain.decoders.aligned import AlignedDecoder, AlignedOptions
from constrain.decoders.beam import BeamDecoder, BeamOptions
from constrain.decoders.local import LocalDecoder, LocalOptions
from constrain.decoders.mcmc import McmcDecoder, McmcOptions
from constrain.decoders.rejection import RejectionDecoder, RejectionOptions
from constrain.decoders.row_checks import RowChecks
from constrain.decoders.rows import Row
from constrain.decoders.smc import SmcDecoder, SmcOptions
from constrain.decoders.speculative import SpeculativeDecoder, SpeculativeOptions
from constrain.errors import BackendError, LimitExceededError, OptionError, SpecError, VocabularyError
from constrain.numerics import RandomStreams, Sampling, allowed_token_ids
from constrain.protocols import LogitsBackend, Message
from constrain.spec import Spec, json_schema, python_type
from constrain.text import encode_exactly, tokens_beginning_with
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from constrain.compiled import Matcher
    from constrain.tokenizer_index.vocabulary import Vocabulary

Prompt: TypeAlias = str | Sequence[Message]

RowDecoder: TypeAlias = LocalDecoder | RejectionDecoder | AlignedDecoder | McmcDecoder | SpeculativeDecoder
"""Decoders whose ``run`` brings each row to its end."""
Decoder: TypeAlias = RowDecoder | SmcDecoder | BeamDecoder
Options: TypeAlias = (
    LocalOptions
    | RejectionOptions
    | SmcOptions
    | AlignedOptions
    | McmcOptions
    | BeamOptions
    | SpeculativeOptions
)

METHODS: dict[str, tuple[Callable[..., Decoder], type[Options]]] = {
    "aligned": (AlignedDecoder, AlignedOptions),
    "beam": (BeamDecoder, BeamOptions),
    "local": (LocalDecoder, LocalOptions),
    "mcmc": (McmcDecoder, McmcOptions),
    "rejection": (RejectionDecoder, RejectionOptions),
    "smc": (SmcDecoder, SmcOptions),
    "speculative": (SpeculativeDecoder, SpeculativeOptions),
}
# Methods that make several outputs of one row.
_MANY = (SmcOptions, BeamOptions)

_MAX_COMPILED = 32
_compiled: OrderedDict[tuple[Spec, Vocabulary], CompiledSpec] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of ``generate``, under the same names."""

    model: LogitsBackend
    prompt: Prompt | Sequence[Prompt]
    output: Any
    method: str = "local"
    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    stop: str | Sequence[str] | None = None
    logit_bias: Mapping[int, float] | None = None
    prefix: str = ""
    seed: int | None = None
    n: int = 1
    progress: bool = False
    method_options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: LogitsBackend, prompt: Prompt | Sequence[Prompt], output: Any, options: Mapping[str, Any]
    ) -> Request:
        """Make a request of keyword arguments; what ``generate`` doesn't name belongs to the method."""
        own = {option.name for option in dataclasses.fields(cls)} - {"method_options"}
        named = {name: value for name, value in options.items() if name in own}
        rest = {name: value for name, value in options.items() if name not in own}
        return cls(model, prompt, output, **named, method_options=rest)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows ready for a decoder, with the spec of each."""

    rows: list[Row]
    compiled: list[CompiledSpec]
    decoder: Decoder
    options: Options
    n: int
    """Outputs a prompt."""
    is_single: bool
    """One prompt and one output: the caller gets a result, not a list."""


def as_spec(output: Any) -> Spec:
    """A spec as it is, a JSON-schema dict or a Python type as the spec it stands for.

    Raises
    ------
    SpecError
        The schema or the type cannot be a spec.
    OptionError
        ``output`` is text, which could mean many things.
    """
    if isinstance(output, Spec):
        return output
    if isinstance(output, str):
        raise OptionError(
            f"The output {output[:40]!r} is text. Say what it is: constrain.regex(...), "
            "constrain.choice([...]) or constrain.json_schema(...)."
        )
    return json_schema(output) if isinstance(output, Mapping) else python_type(output)


def compile_output(output: Any, vocabulary: Vocabulary) -> CompiledSpec:
    """The compiled spec of an output; the last ones are kept, with all they have learnt.

    Raises
    ------
    VocabularyError
        ``output`` is a ``CompiledSpec`` of another vocabulary.
    """
    if isinstance(output, CompiledSpec):
        if output.vocabulary != vocabulary:
            raise VocabularyError("The compiled spec belongs to another vocabulary than the model's.")
        return output
    spec = as_spec(output)
    with _lock:
        compiled = _compiled.get((spec, vocabulary))
    if compiled is None:
        compiled = compile_spec(spec, vocabulary)
    with _lock:
        _compiled[spec, vocabulary] = compiled
        _compiled.move_to_end((spec, vocabulary))
        while len(_compiled) > _MAX_COMPILED:
            _compiled.popitem(last=False)
    return compiled


def plan(request: Request) -> Plan:
    """Check a request, compile its specs and encode its prompts.

    Raises
    ------
    OptionError, SpecError, LimitExceededError, BackendError, VocabularyError
        See ``constrain.generate``.
    """
    options = _options(request)
    check_numbers(request)
    if request.method == "smc" and request.n != 1:
        raise OptionError(
            f"n={request.n}: method='smc' returns one posterior for each prompt; ask for more particles "
            "(particles=), and draw outputs with posterior.sample()."
        )
    if isinstance(options, BeamOptions) and request.n > options.width:
        raise OptionError(f"n={request.n}: method='beam' with width={options.width} finds no more than that.")
    copies = 1 if isinstance(options, _MANY) else request.n
    sampling = sampling_of(request)
    streams = RandomStreams(request.seed)
    stop = _stop_strings(request.stop)
    model = request.model
    check_model(model)
    prompts, has_many = prompts_of(request)
    rows, specs = [], []
    for place, (prompt, spec) in enumerate(
        zip(prompts, outputs_of(request, len(prompts), has_many), strict=True)
    ):
        ids = prompt_ids(model, prompt, place)
        for copy in range(copies):
            rows.append(_row(request, place * copies + copy, ids, spec))
            specs.append(spec)
    decoder_type, _ = METHODS[request.method]
    decoder = decoder_type(model, sampling, streams, stop=stop, options=options)
    return Plan(rows, specs, decoder, options, request.n, is_single=not has_many and request.n == 1)


def check_numbers(request: Request) -> None:
    """Refuse numbers of tokens, outputs, or a prefix that make no sense.

    Raises
    ------
    OptionError
        One is out of its range.
    """
    for name in ("max_tokens", "n"):
        number = getattr(request, name)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionError(f"{name}={number!r}: expected an integer of at least 1.")
    if not isinstance(request.progress, bool):
        raise OptionError(f"progress={request.progress!r}: expected True or False.")
    if not isinstance(request.prefix, str):
        raise OptionError(f"prefix={request.prefix!r}: expected text.")


def check_model(model: object) -> None:
    """Refuse what is no model.

    Raises
    ------
    BackendError
        It has no logits.
    """
    if not isinstance(model, LogitsBackend):
        raise BackendError(
            f"{type(model).__name__} is not a model of constrain. Wrap a model of transformers with "
            "constrain.from_transformers(model, tokenizer), or use constrain.load_model()."
        )


def prompts_of(request: Request) -> tuple[Sequence[Any], bool]:
    """The prompts, and whether they are a batch."""
    has_many = is_batch(request.prompt)
    return (request.prompt if has_many else [request.prompt]), has_many


def _options(request: Request) -> Options:
    if request.method not in METHODS:
        known = ", ".join(map(repr, sorted([*METHODS, "draft", "sketch"])))
        raise OptionError(f"method={request.method!r} is unknown; known: {known}.")
    _, kind = METHODS[request.method]
    options: Options = method_options(request, kind)
    return options


def method_options(request: Request, kind: type[Any]) -> Any:
    """The options of a method, a dataclass, from the arguments that belong to it.

    Raises
    ------
    OptionError
        One is unknown, or out of its range.
    """
    names = [option.name for option in dataclasses.fields(kind)]
    for name in request.method_options:
        if name not in names:
            raise OptionError(
                f"generate() has no argument {name!r}; the options of method={request.method!r} are "
                f"{', '.join(names)}."
            )
    return kind(**request.method_options)


def sampling_of(request: Request) -> Sampling:
    """How tokens are drawn."""
    try:
        bias = {operator.index(token): float(value) for token, value in (request.logit_bias or {}).items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"logit_bias={request.logit_bias!r}: expected token ids with numbers.") from error
    return Sampling(request.temperature, request.top_p, request.top_k, request.min_p, bias)


def _stop_strings(stop: str | Sequence[str] | None) -> list[bytes]:
    if not (stop is None or isinstance(stop, str | Sequence)):
        raise OptionError(f"stop={stop!r}: expected a string or a sequence of strings.")
    strings = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(string, str) and string for string in strings):
        raise OptionError(f"stop={stop!r}: expected a string or strings, none of them empty.")
    return [string.encode() for string in strings]


def is_batch(prompt: Any) -> bool:
    """Whether ``prompt`` is a sequence of prompts, rather than text or the messages of one chat."""
    if isinstance(prompt, str):
        return False
    if not isinstance(prompt, Sequence) or not all(
        isinstance(part, str | Mapping | Sequence) for part in prompt
    ):
        raise OptionError(
            f"prompt={prompt!r:.60}: expected text, chat messages (mappings with 'role' and 'content'), "
            "or a list of either."
        )
    return not prompt or not isinstance(prompt[0], Mapping)


def prompt_ids(model: LogitsBackend, prompt: Any, place: int) -> list[int]:
    """Token ids of a prompt; ``place`` names it in errors."""
    if isinstance(prompt, str):
        return model.encode(prompt)
    if not prompt or not all(isinstance(message, Mapping) and "role" in message for message in prompt):
        raise OptionError(f"Prompt {place} is neither text nor a list of mappings with 'role' and 'content'.")
    return model.encode_chat(prompt)


def outputs_of(request: Request, count: int, is_batch: bool) -> list[CompiledSpec]:
    """The compiled spec of each of ``count`` prompts."""
    output, vocabulary = request.output, request.model.vocabulary
    if not isinstance(output, list):
        return [compile_output(output, vocabulary)] * count
    if not is_batch:
        raise OptionError("A list of outputs needs a list of prompts; alternatives are joined with '|'.")
    if len(output) != count:
        raise OptionError(f"{len(output)} outputs were given for {count} prompts.")
    return [compile_output(one, vocabulary) for one in output]


def _row(request: Request, index: int, prompt_ids: list[int], compiled: CompiledSpec) -> Row:
    """Make a row that starts after the prefix, healed where its last token can be written anew."""
    model, prefix, matcher = request.model, request.prefix, compiled.matcher()
    text = prefix.encode()
    prefix_ids = encode_exactly(model, text) if text else []
    before = matcher.fork()
    if not matcher.accept_string(text):
        offset = _first_wrong(before, prefix)
        raise SpecError("No member of the spec begins with the prefix.", source=prefix, offset=offset)
    room = request.max_tokens
    if model.context_length is not None:
        # The last token is never read again, so it needs no place.
        room = min(room, model.context_length - len(prompt_ids) - len(prefix_ids) + 1)
    if not _fits(model, matcher, room):
        least = matcher.min_tokens_to_finish()
        known = "needs" if least.is_exact else "is known to fit within"
        is_context = room < request.max_tokens
        raise LimitExceededError(
            "context_length" if is_context else "max_tokens",
            (model.context_length or 0) if is_context else room,
            f"the output of row {index}",
            hint=f"The shortest output {known} {int(least) + 1} tokens, the end token included"
            + (f"; after the prompt the model has room for {max(room, 0)}." if is_context else "."),
        )
    row = Row(index, prompt_ids + prefix_ids, matcher, room, bytearray(text))
    if prefix_ids and len(row.prompt_ids) > 1:
        _heal(model, row, before, prefix_ids[-1])
    row.stats.prompt_tokens = len(row.prompt_ids)
    if compiled.spec.checks:
        row.checks = RowChecks(compiled, bytes(row.text))
    return row


def _heal(model: LogitsBackend, row: Row, matcher: Matcher, last_id: int) -> None:
    """Take the last token of the prefix back, if there are others and the budget has room for one more."""
    vocabulary = model.vocabulary
    last = vocabulary.token_bytes(last_id) or b""
    covers = tokens_beginning_with(vocabulary, last)
    text = row.text[: len(row.text) - len(last)]
    matcher.accept_string(bytes(text))
    bitmask = allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_budget_bitmask(bitmask, 0, remaining=row.max_tokens)
    if len(np.intersect1d(allowed_token_ids(bitmask[0], vocabulary.size), covers)) > 1:
        row.text, row.matcher, row.covers = text, matcher, covers
        row.prompt_ids = row.prompt_ids[:-1]


def _fits(model: LogitsBackend, matcher: Matcher, tokens: int) -> bool:
    """Whether the output can be completed within ``tokens``, the end token included."""
    if tokens < 1:
        return False
    mask = allocate_token_bitmask(1, model.vocabulary.size)
    matcher.fill_budget_bitmask(mask, 0, remaining=tokens)
    # Masks follow a bound; a search may find a shorter output, and masks follow that from then on.
    return bool(np.any(mask)) or int(matcher.min_tokens_to_finish()) < tokens


def _first_wrong(matcher: Matcher, prefix: str) -> int:
    """Number of characters of ``prefix`` that can begin a member."""
    for place, character in enumerate(prefix):
        if not matcher.accept_string(character):
            return place
    return len(prefix)
