"""Speculative decoding under a constraint: several tokens a call of the model, the law of ``local``.

A draft proposes tokens that the constraint allows; the model reads them in one call, and they are taken
from the left as long as they pass. With ``pm`` the model's masked row and ``d`` the law a token was
drafted from, it passes with probability ``min(1, pm(v) / d(v))``; the first one that doesn't is replaced by a
draw from ``max(0, pm - d)``, renormalised, and if all pass one more token comes from the last row. The
outputs then have the law of local masking, whatever the draft.

The draft is a smaller model, or, without one, a look-up: where the last few tokens stood earlier in the
prompt or the output, what followed there is likely to follow again; tokens that the constraint forces
come first. Such a token is drafted with certainty, so it passes where a draw from ``pm`` would have chosen it: the outputs are then those of
``local`` with the same seed, token by token.

Follows Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"; look-up is
Saxena 2023, "Prompt Lookup Decoding".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from constrain.decoders.proposals import check_integer
from constrain.decoders.reader import Reader
from constrain.errors import DeadEndError, OptionError, VocabularyError
from constrain.numerics import Choice, allowed_token_ids, choose, draw_place, masked_row
from constrain.protocols import LogitsBackend
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.compiled import Matcher
    from constrain.decoders.rows import Row
    from constrain.numerics import IdArray, RandomStreams, Sampling, Scores

# Lanes of the random numbers: the model's own choices use the same as ``local``.
_DRAFT_LANE = 1
_PASS_LANE = 2


@dataclass(frozen=True, slots=True)
class SpeculativeOptions:
    """Options of ``method="speculative"``.

    Parameters
    ----------
    draft : LogitsBackend or None
        A smaller model with the same vocabulary; ``None`` looks tokens up in prompt and output.
    draft_tokens : int
        Most tokens drafted at once.
    lookup_tokens : int
        Longest run of last tokens that is looked up; shorter ones follow where it isn't found.
    batch_size : int
        Most rows that go through the model together. Results don't depend on it.
    """

    draft: LogitsBackend | None = None
    draft_tokens: int = 8
    lookup_tokens: int = 3
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.draft is not None and not isinstance(self.draft, LogitsBackend):
            raise OptionError(
                f"draft={self.draft!r:.60}: expected a model (constrain.from_transformers(...)) or None."
            )
        check_integer("draft_tokens", self.draft_tokens, 1)
        check_integer("lookup_tokens", self.lookup_tokens, 1)
        check_integer("batch_size", self.batch_size, 1)

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right."""
        return True


class Draft(NamedTuple):
    """Tokens to try, and the law each was drawn from.

    ``laws`` holds ids in rising order with probabilities of sum 1, or ``None`` for a token that was
    drafted with certainty.
    """

    token_ids: list[int]
    laws: list[tuple[IdArray, NDArray[np.float64]] | None]


@dataclass(slots=True, eq=False)
class SpeculativeState:
    """Rows that are decoded together.

    Parameters
    ----------
    rows : list of Row
    reader, draft_reader : Reader
        What the model and the draft model (if there is one) have read of each row.
    """

    rows: list[Row]
    reader: Reader
    draft_reader: Reader | None


class SpeculativeInfo(NamedTuple):
    """What a step did: how many tokens were drafted, and how many of them passed."""

    n_drafted: int
    n_passed: int


class SpeculativeDecoder:
    """Decodes a batch of rows, several tokens a step.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : SpeculativeOptions

    Raises
    ------
    VocabularyError
        The draft model has another vocabulary.
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes] = (),
        options: SpeculativeOptions | None = None,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.stop = tuple(stop)
        self.options = options or SpeculativeOptions()
        self._vocabulary = model.vocabulary
        self._eos = frozenset(model.vocabulary.eos_token_ids)
        draft = self.options.draft
        if draft is not None and draft.vocabulary != model.vocabulary:
            raise VocabularyError(
                "The draft model's vocabulary isn't the model's: drafted tokens would mean other text."
            )

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Decode ``rows`` in place to their ends; yields after every step of the batch.

        Raises
        ------
        OptionError
            A row's spec has checks.
        DeadEndError
            The model or ``logit_bias`` excludes every allowed token of a row.
        BackendError
            The logits of a model cannot be used.
        """
        if any(row.checks is not None for row in rows):
            raise OptionError(
                "method='speculative' has no checks (Spec.where): use 'local', 'beam', 'rejection', 'smc', 'aligned' or 'mcmc'."
            )
        if not rows:
            return
        state = self.start(rows)
        while not all(row.is_finished for row in state.rows):
            state, _ = self.step(self.streams, state)
            yield

    def start(self, rows: Sequence[Row]) -> SpeculativeState:
        """Read the prompts of ``rows``."""
        draft = self.options.draft
        return SpeculativeState(
            list(rows),
            Reader(self.model, rows),
            None if draft is None else Reader(draft, [_shadow(row) for row in rows]),
        )

    def step(self, rng: RandomStreams, state: SpeculativeState) -> tuple[SpeculativeState, SpeculativeInfo]:
        """Draft for every row that isn't finished, let the model read the drafts, take what passes."""
        growing = [None if row.is_finished else row for row in state.rows]
        begin = time.perf_counter()
        drafts = self._draft_by_model(rng, state, growing) if state.draft_reader else self._look_up(growing)
        seconds = (time.perf_counter() - begin) / max(sum(row is not None for row in growing), 1)
        targets, most = [], 0
        for row, draft in zip(growing, drafts, strict=True):
            read = [token for token in draft.token_ids if token not in self._eos]
            targets.append(None if row is None else [*row.token_ids, *read])
            most = max(most, len(read))
            if row is not None:
                row.stats.mask_seconds += seconds
        # Rows with shorter drafts read a few places of their outputs again; that costs no call more.
        places = state.reader.seek(targets, growing, n_lines=most + 1)
        n_passed = 0
        for place, (row, draft, lines) in enumerate(zip(growing, drafts, places, strict=True)):
            if row is not None:
                begin = time.perf_counter()
                n_read = len(targets[place] or ()) - len(row.token_ids)
                n_passed += self._verify(rng, row, draft, lines[len(lines) - n_read - 1 :])
                row.stats.mask_seconds += time.perf_counter() - begin
        return state, SpeculativeInfo(sum(len(draft.token_ids) for draft in drafts), n_passed)

    # ------------------------------------------------------------------------------------- drafting

    def _look_up(self, rows: Sequence[Row | None]) -> list[Draft]:
        """What followed the last tokens where they stood before, as far as the spec allows it."""
        drafts = []
        for row in rows:
            found: list[int] = []
            if row is not None and row.covers is None:
                found = row.matcher.forced_tokens()
                seen = [*row.prompt_ids, *row.token_ids, *found]
                found += _continuation(seen, self.options.lookup_tokens, self.options.draft_tokens)
                # The model's own last token comes from the last row, so one place is left to it.
                found = found[: row.remaining - 1]
                found = found[: row.matcher.validate_tokens(found)]
                ends = [place for place, token in enumerate(found) if token in self._eos]
                found = found[: ends[0]] if ends else found
                row.stats.drafted_tokens += len(found)
            drafts.append(Draft(found, [None] * len(found)))
        return drafts

    def _draft_by_model(
        self, rng: RandomStreams, state: SpeculativeState, rows: Sequence[Row | None]
    ) -> list[Draft]:
        """Tokens drawn from the draft model's masked rows."""
        assert state.draft_reader is not None
        drafts = [Draft([], []) for _ in rows]
        matchers = [None if row is None else row.matcher.fork() for row in rows]
        open_rows: list[Row | None] = [None if row is None or row.covers is not None else row for row in rows]
        for _ in range(self.options.draft_tokens):
            targets: list[list[int] | None] = []
            for place, (row, draft) in enumerate(zip(open_rows, drafts, strict=True)):
                if row is not None and len(draft.token_ids) >= row.remaining - 1:
                    open_rows[place] = row = None
                targets.append(None if row is None else [*row.token_ids, *draft.token_ids])
            if not any(row is not None for row in open_rows):
                break
            lines = state.draft_reader.seek(targets, [None] * len(rows))
            for place, (row, matcher, draft, line) in enumerate(
                zip(open_rows, matchers, drafts, lines, strict=True)
            ):
                if row is None or matcher is None:
                    continue
                step = len(row.token_ids) + len(draft.token_ids)
                allowed = _allowed(matcher, row.max_tokens - step, self._vocabulary.size)
                law = masked_row(line[-1], allowed, self.sampling, row=row.index, step=step)
                if law is None:
                    open_rows[place] = None
                    continue
                token_ids, p = law
                uniform = rng.generator(row.index, step, _DRAFT_LANE).random()
                is_greedy = self.sampling.temperature == 0.0
                token_id = int(token_ids[int(np.argmax(p)) if is_greedy else draw_place(p, uniform)])
                # An end is drafted like any token: leaving it out would change the law of the others.
                draft.token_ids.append(token_id)
                draft.laws.append(law)
                row.stats.drafted_tokens += 1
                if token_id in self._eos or not matcher.accept_token(token_id):
                    open_rows[place] = None
        return drafts

    # ------------------------------------------------------------------------------------ verifying

    def _verify(self, rng: RandomStreams, row: Row, draft: Draft, lines: Sequence[Scores]) -> int:
        """Take drafted tokens while they pass, and the model's own after them; how many passed."""
        for place, line in enumerate(lines):
            token_id = draft.token_ids[place] if place < len(draft.token_ids) else None
            law = draft.laws[place] if token_id is not None else None
            has_passed = self._take(rng, row, line, token_id, law)
            if not has_passed or row.is_finished:
                return place + int(has_passed and token_id is not None)
        return len(draft.token_ids)

    def _take(
        self,
        rng: RandomStreams,
        row: Row,
        line: Scores,
        drafted: int | None,
        law: tuple[IdArray, NDArray[np.float64]] | None,
    ) -> bool:
        """Append one token; whether it is the drafted one."""
        step = len(row.token_ids)
        bitmask = allocate_token_bitmask(1, self._vocabulary.size)
        row.is_shaped |= row.matcher.fill_budget_bitmask(bitmask, 0, remaining=row.remaining)
        allowed = allowed_token_ids(bitmask[0], self._vocabulary.size)
        if row.covers is not None:
            allowed = np.intersect1d(allowed, row.covers, assume_unique=True)
            line = row.covered(line)
        if not len(allowed):
            raise DeadEndError(
                f"The spec of row {row.index} allows no token at step {step} with {row.remaining} tokens left."
            )
        choice = self._choose(rng, row, line, allowed, drafted, law)
        row.log_probability += choice.log_probability
        row.log_weight += choice.log_feasible
        row.stats.feasible_mass.append(math.exp(choice.log_feasible))
        row.append(choice.token_id, self._vocabulary, self.stop)
        return choice.token_id == drafted

    def _choose(
        self,
        rng: RandomStreams,
        row: Row,
        line: Scores,
        allowed: IdArray,
        drafted: int | None,
        law: tuple[IdArray, NDArray[np.float64]] | None,
    ) -> Choice:
        step = len(row.token_ids)
        if law is None or drafted is None or self.sampling.temperature == 0.0:
            # The draw of ``local``; a token that was drafted with certainty passes where it is drawn.
            uniform = rng.uniform(row.index, step) if len(allowed) > 1 else 0.0
            return choose(line, allowed, self.sampling, uniform, row=row.index, step=step)
        target = masked_row(line, allowed, self.sampling, row=row.index, step=step)
        if target is None:
            return choose(
                line, allowed, self.sampling, rng.uniform(row.index, step), row=row.index, step=step
            )
        token_ids, pm = target
        d = _looked_up(law, token_ids)
        place = int(np.searchsorted(token_ids, drafted))
        passes = rng.generator(row.index, step, _PASS_LANE).random()
        if place == len(token_ids) or token_ids[place] != drafted or passes * d[place] >= pm[place]:
            residual = np.maximum(pm - d, 0.0)
            # Rows that are equal up to round-off leave nothing, and then nothing is rejected either.
            residual = residual if residual.any() else pm
            place = draw_place(residual, rng.uniform(row.index, step))
        chosen = token_ids[place : place + 1]
        exact = choose(line, chosen, self.sampling, 0.0, row=row.index, step=step)
        whole = choose(line, allowed, self.sampling, 0.0, row=row.index, step=step)
        return Choice(int(chosen[0]), exact.log_probability, whole.log_feasible)


def _allowed(matcher: Matcher, remaining: int, size: int) -> IdArray:
    bitmask = allocate_token_bitmask(1, size)
    matcher.fill_budget_bitmask(bitmask, 0, remaining=remaining)
    return allowed_token_ids(bitmask[0], size)


def _looked_up(law: tuple[IdArray, NDArray[np.float64]], token_ids: IdArray) -> NDArray[np.float64]:
    """Probabilities that ``law`` gives to each of ``token_ids``, (n,) float64."""
    known, p = law
    places = np.minimum(np.searchsorted(known, token_ids), len(known) - 1)
    return np.where(known[places] == token_ids, p[places], 0.0)


def _continuation(seen: Sequence[int], longest: int, most: int) -> list[int]:
    """What followed the longest of the last runs of tokens at its latest earlier place."""
    for length in range(min(longest, len(seen) - 1), 0, -1):
        run = list(seen[-length:])
        for begin in range(len(seen) - length - 1, -1, -1):
            if list(seen[begin : begin + length]) == run:
                # A copy may run into what it writes itself, as repeats do.
                copied = list(seen[begin + length :])
                while len(copied) < most:
                    copied.append(copied[len(copied) - (len(seen) - begin - length)])
                return copied[:most]
    return []


def _shadow(row: Row) -> Row:
    """A row whose stats are thrown away: the draft model's calls aren't the model's."""
    return row.copy()
