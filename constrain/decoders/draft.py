"""Draft-conditioned decoding: the model first answers in its own words, then writes the answer in the asked-for form.

Small models lose much of their sense where they must think inside a format. Here they think freely first
(the *draft*), and the constrained output is written with the draft in its context.

With ``Q`` local masking in a context and ``Z`` the feasible mass of each step, ``W = prod(Z)`` has as its mean
the probability ``F`` that the model, left alone in that context, writes a member of the language. The *projection
tax* ``-log W`` is in the mean at least ``-log F``, the least divergence by which any decoder must bend the model; the
rest is what masking bends it beyond that. Whether a draft makes ``F`` larger is to be measured, so all of it is kept.

Follows the method of draft-conditioned constrained decoding (DCCD).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from constrain.decoders.proposals import check_integer
from constrain.errors import OptionError
from constrain.numerics import draw_place, logsumexp, model_row
from constrain.protocols import LogitsBackend, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.numerics import RandomStreams, Sampling
    from constrain.protocols import DecodingSession

Prompt: TypeAlias = str | Sequence[Message]

CHOICES = ("select", "resample", "concat")
# Random numbers of drafts and of the choice between them have lanes of their own.
DRAFT_LANE = 1 << 20
CHOICE_LANE = DRAFT_LANE + 1


@dataclass(frozen=True, slots=True)
class DraftTemplate:
    """How the two prompts are made. Texts are format strings.

    Parameters
    ----------
    think : str
        Instruction of the first stage, for chats: added to the system message.
    write : str
        Instruction of the second stage: added to the system message.
    ask : str
        The user's turn after the draft; ``{form}`` is what is known of the form.
    text_think, text_write : str
        For prompts that are text: what the first and the second stage read, of ``{prompt}``, ``{draft}`` and
        ``{form}``.
    form : str
        How a JSON schema is told; ``{schema}`` is its text. Longer schemas than ``longest_form`` aren't told.
    longest_form : int
        In characters.
    reasoning_end : str
        What ends the reasoning of models that mark it; the draft is what follows.
    """

    think: str = (
        "Work the task out completely, step by step and in plain words, and end with the final answer. "
        "Don't write JSON or other markup."
    )
    write: str = (
        "You turn a worked-out solution into a given form, exactly. Use what the solution states and nothing else. "
        "Where it says nothing, write null if the form has it. Write the result alone."
    )
    ask: str = "Write the result of this solution in the asked-for form.{form}"
    text_think: str = "{prompt}\n\nSolution in plain words:\n"
    text_write: str = "{prompt}\n\nSolution in plain words:\n{draft}\n\nThe result of this solution:{form}\n"
    form: str = " It is JSON by this schema: {schema}"
    longest_form: int = 4000
    reasoning_end: str = "</think>"

    def think_prompt(self, prompt: Prompt) -> Prompt:
        """What the first stage reads."""
        if isinstance(prompt, str):
            return self.text_think.format(prompt=prompt)
        return _with_system(prompt, self.think)

    def write_prompt(self, prompt: Prompt, drafts: Sequence[str], schema: str | None) -> Prompt:
        """What the second stage reads, of one draft or of several."""
        known = schema is not None and len(schema) <= self.longest_form
        form = self.form.format(schema=schema) if known else ""
        draft = drafts[0]
        if len(drafts) > 1:
            draft = "\n\n".join(f"Solution {place}:\n{text}" for place, text in enumerate(drafts, 1))
        if isinstance(prompt, str):
            return self.text_write.format(prompt=prompt, draft=draft, form=form)
        # The draft is a turn of its own, so that nothing in it can pass for an instruction or a mark.
        return [
            *_with_system(prompt, self.write),
            {"role": "assistant", "content": draft},
            {"role": "user", "content": self.ask.format(form=form)},
        ]

    def split(self, text: str) -> tuple[str, str]:
        """The reasoning of a text, and the draft."""
        reasoning, mark, rest = text.rpartition(self.reasoning_end)
        return (reasoning, rest.strip()) if mark else ("", text.strip())


def _with_system(messages: Sequence[Message], text: str) -> list[Message]:
    first: Mapping[str, object] | None = messages[0] if messages else None
    if first is not None and first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """Options of ``method="draft"``.

    Parameters
    ----------
    k : int
        Drafts for each output.
    choose : {"select", "resample", "concat"}
        Of several drafts: write the output with each and take the one of the largest feasible mass; draw one
        by that mass, which tends to the joint law of drafts and outputs; or write once, with all of them in view.
    draft : LogitsBackend or None
        Another model for the drafts; ``None``: the same.
    draft_tokens : int
        Most tokens of a draft.
    draft_temperature : float or None
        ``None``: the temperature of the output.
    runs : int
        Outputs written with each draft, for better estimates of its feasible mass; the first one counts.
    template : DraftTemplate
    batch_size : int
        Most drafts that go through the model together. Results don't depend on it.
    """

    k: int = 1
    choose: str = "select"
    draft: LogitsBackend | None = None
    draft_tokens: int = 512
    draft_temperature: float | None = None
    runs: int = 1
    template: DraftTemplate = DraftTemplate()
    batch_size: int = 16

    def __post_init__(self) -> None:
        for name in ("k", "draft_tokens", "runs", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        if self.choose not in CHOICES:
            raise OptionError(f"choose={self.choose!r}: expected one of {', '.join(CHOICES)}.")
        if self.draft is not None and not isinstance(self.draft, LogitsBackend):
            raise OptionError(
                f"draft={self.draft!r:.60}: expected a model (constrain.from_transformers(...)) or None."
            )
        if not isinstance(self.template, DraftTemplate):
            raise OptionError(f"template={self.template!r:.60}: expected a DraftTemplate.")


@dataclass(slots=True, eq=False)
class Draft:
    """A text of the model's own.

    Parameters
    ----------
    index : int
        Chooses its random numbers.
    prompt_ids : list of int
    token_ids : list of int
        The end token included.
    is_cut : bool
        It has no end: ``draft_tokens`` were used up.
    is_finished : bool
    log_probability : float
    model_calls : int
    model_seconds : float
    """

    index: int
    prompt_ids: list[int]
    token_ids: list[int] = field(default_factory=list)
    is_cut: bool = False
    is_finished: bool = False
    log_probability: float = 0.0
    model_calls: int = 0
    model_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class DraftState:
    """Drafts that are written together.

    Parameters
    ----------
    active : list of Draft
        Those that aren't finished.
    session : DecodingSession
    lines : list of (vocab_size,) float32
        The model's logits after each of them.
    """

    active: list[Draft]
    session: DecodingSession
    lines: list[NDArray[np.float32]]


class DraftInfo(NamedTuple):
    """What a step did: how many drafts it extended, and how many it finished."""

    n_drafts: int
    n_finished: int


@dataclass(frozen=True, slots=True)
class DraftStats:
    """What became of the drafts of one output.

    Parameters
    ----------
    texts : list of str
        The drafts.
    reasonings : list of str
        What the model reasoned before each, where it marks that.
    are_cut : list of bool
        Which of them ran into ``draft_tokens``.
    n_tokens : list of int
    log_weights : list of list of float
        ``log W`` of the outputs written with each draft, or, by ``choose="concat"``, with all of them.
    chosen : int or None
        The draft the output was written with; ``None`` by ``choose="concat"``.
    model_calls : int
        Calls of the draft's model.
    model_seconds : float
    """

    texts: list[str]
    reasonings: list[str]
    are_cut: list[bool]
    n_tokens: list[int]
    log_weights: list[list[float]]
    chosen: int | None
    model_calls: int
    model_seconds: float

    @property
    def projection_tax(self) -> float:
        """Mean of ``-log W`` over the outputs written, in nats."""
        return -float(np.mean([value for run in self.log_weights for value in run]))

    @property
    def least_tax(self) -> float:
        """``-log`` of the estimated probability that the model alone writes a member; the mean over the drafts."""
        means = [logsumexp(np.array(run)) - math.log(len(run)) for run in self.log_weights]
        return -float(np.mean(means))

    @property
    def distortion(self) -> float:
        """What masking bends the model beyond that; 0 where each draft has one output only."""
        return self.projection_tax - self.least_tax if math.isfinite(self.least_tax) else math.nan


class DraftDecoder:
    """Writes texts of the model's own, all together, a token a step.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    options : DraftOptions
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        options: DraftOptions | None = None,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.options = options or DraftOptions()
        self._eos = frozenset(model.vocabulary.eos_token_ids)

    def run(
        self,
        prompts: Sequence[Sequence[int]],
        first: int = 0,
        *,
        watch: Callable[[int], object] = lambda n_finished: None,
    ) -> list[Draft]:
        """Write one draft for each prompt; the first one has the random numbers of ``first``.

        ``watch`` is called after every step, with the number of finished drafts.

        Raises
        ------
        BackendError
            The model's logits cannot be used.
        """
        drafts = [Draft(first + place, list(prompt)) for place, prompt in enumerate(prompts)]
        size = self.options.batch_size
        for begin in range(0, len(drafts), size):
            state = self.start(drafts[begin : begin + size])
            while state.active:
                state, _ = self.step(self.streams, state)
                watch(sum(draft.is_finished for draft in drafts))
        return drafts

    def text(self, draft: Draft) -> str:
        """The draft's text; what isn't UTF-8 is replaced."""
        kept = [token for token in draft.token_ids if token not in self._eos]
        return self.model.vocabulary.decode(kept).decode("utf-8", errors="replace")

    def start(self, drafts: Sequence[Draft]) -> DraftState:
        """Read the prompts, each different one once."""
        places: dict[tuple[int, ...], int] = {}
        lines = [places.setdefault(tuple(draft.prompt_ids), len(places)) for draft in drafts]
        begin = time.perf_counter()
        session, logits = self.model.start([list(prompt) for prompt in places])
        session.select(lines)
        _share(drafts, time.perf_counter() - begin)
        return DraftState(list(drafts), session, [logits[line] for line in lines])

    def step(self, rng: RandomStreams, state: DraftState) -> tuple[DraftState, DraftInfo]:
        """Extend every draft by a token; ``state`` is changed."""
        n = len(state.active)
        for draft, line in zip(state.active, state.lines, strict=True):
            step = len(draft.token_ids)
            model = model_row(line, self.sampling, row=draft.index, step=step)
            if self.sampling.temperature == 0.0:
                place = int(np.argmax(model.log_probabilities))
            else:
                uniform = rng.generator(draft.index, step, DRAFT_LANE).random()
                place = draw_place(np.exp(model.log_probabilities), uniform)
            token_id = int(model.token_ids[place])
            draft.token_ids.append(token_id)
            draft.log_probability += float(model.log_probabilities[place]) + model.log_kept
            limit = self.options.draft_tokens
            if self.model.context_length is not None:
                limit = min(limit, self.model.context_length - len(draft.prompt_ids))
            draft.is_finished = token_id in self._eos or len(draft.token_ids) >= limit
            draft.is_cut = draft.is_finished and token_id not in self._eos
        kept = [place for place, draft in enumerate(state.active) if not draft.is_finished]
        state.active = [state.active[place] for place in kept]
        state.lines = []
        if kept:
            begin = time.perf_counter()
            state.session.select(kept)
            blocks = state.session.append([draft.token_ids[-1:] for draft in state.active])
            _share(state.active, time.perf_counter() - begin)
            state.lines = [block[-1] for block in blocks]
        return state, DraftInfo(n, n - len(kept))


def _share(drafts: Sequence[Draft], seconds: float) -> None:
    for draft in drafts:
        draft.model_calls += 1
        draft.model_seconds += seconds / len(drafts)


def choose_draft(log_weights: Sequence[float], choose: str, uniform: float) -> int:
    """Which of several outputs is taken, by the logarithms of their feasible masses.

    Parameters
    ----------
    log_weights : sequence of float
    choose : {"select", "resample"}
        The largest mass (the first of equals), or one drawn by mass. Where all are 0, the first.
    uniform : float
        In [0, 1); decides the draw.
    """
    values = np.array(log_weights, np.float64)
    if choose == "select" or not np.isfinite(values.max()):
        return int(np.argmax(values))
    return draw_place(np.exp(values - values.max()), uniform)
