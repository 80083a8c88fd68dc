"""Beam search under a constraint: the most probable outputs instead of drawn ones.

At each step every hypothesis is extended by every token that can still be completed within the budget, and
the ``width`` best extensions go on. With a width that leaves nothing out and no length penalty the best
output found is the mode of the model restricted to the language; otherwise it is a good guess.

Finished outputs are ranked by ``log P(y) / length ** length_penalty``, the end token counted. The search
ends where no unfinished hypothesis can overtake the worst of the best ``width`` finished ones.

Diverse groups (Vijayakumar et al. 2016, "Diverse Beam Search") divide the width: groups are extended one
after the other, and a token that earlier groups chose at this step costs ``diversity`` each time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from constrain.decoders.proposals import check_integer
from constrain.decoders.rows import Row, share_model_call, start_session
from constrain.errors import DeadEndError, OptionError
from constrain.numerics import allowed_token_ids, log_masked_row
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.numerics import RandomStreams, Sampling, Scores
    from constrain.protocols import DecodingSession, LogitsBackend


@dataclass(frozen=True, slots=True)
class BeamOptions:
    """Options of ``method="beam"``.

    Parameters
    ----------
    width : int
        Hypotheses that go on after each step, over all groups.
    length_penalty : float
        0 ranks by probability, 1 by the mean log probability of a token; larger values favour long outputs.
    groups : int
        Must divide ``width``.
    diversity : float
        What a token costs for each hypothesis of an earlier group that chose it at the same step, in nats.
    """

    width: int = 4
    length_penalty: float = 0.0
    groups: int = 1
    diversity: float = 0.5

    def __post_init__(self) -> None:
        check_integer("width", self.width, 1)
        check_integer("groups", self.groups, 1)
        if self.width % self.groups:
            raise OptionError(f"groups={self.groups}: must divide width={self.width}.")
        for name in ("length_penalty", "diversity"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise OptionError(f"{name}={value!r}: expected a number of at least 0.")

    @property
    def batch_size(self) -> int:
        """Searches that go through the model together."""
        return 1

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right: outputs aren't drawn, so they have none."""
        return False


@dataclass(slots=True, eq=False)
class Hypothesis:
    """One unfinished output.

    Parameters
    ----------
    row : Row
    line : int
        Its line of the session.
    """

    row: Row
    line: int


@dataclass(slots=True, eq=False)
class BeamState:
    """One search.

    Parameters
    ----------
    groups : list of list of Hypothesis
        Unfinished hypotheses of each group, best first.
    finished : list of list of Row
        Finished outputs of each group, best first; at most as many as the group is wide.
    session : DecodingSession
    lines : list of (vocab_size,) float32
        The model's logits after each line of the session.
    """

    groups: list[list[Hypothesis]]
    finished: list[list[Row]]
    session: DecodingSession
    lines: list[NDArray[np.float32]] = field(repr=False)

    @property
    def active(self) -> list[Hypothesis]:
        """All unfinished hypotheses."""
        return [hypothesis for group in self.groups for hypothesis in group]


class BeamInfo(NamedTuple):
    """What a step left: unfinished hypotheses, and finished outputs."""

    n_active: int
    n_finished: int


class _Extension(NamedTuple):
    rank: float
    """What it is chosen by: log probability less the cost of likeness."""
    parent: Hypothesis
    token_id: int
    log_probability: float


class BeamDecoder:
    """Searches for the best outputs of one prompt at a time.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
        Temperature and bias change the probabilities; truncation leaves tokens out where others are allowed.
    streams : RandomStreams
        Not used: nothing is drawn.
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : BeamOptions
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes] = (),
        options: BeamOptions | None = None,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.stop = tuple(stop)
        self.options = options or BeamOptions()
        self._vocabulary = model.vocabulary
        self._eos = frozenset(model.vocabulary.eos_token_ids)

    def search(self, row: Row) -> list[Row]:
        """Search from ``row``, which stays as it is; the finished outputs, best first.

        Raises
        ------
        DeadEndError
            The model or ``logit_bias`` excludes every output.
        BackendError
            The model's logits cannot be used.
        """
        state = self.start(row)
        while state.active:
            state, _ = self.step(self.streams, state)
        found = [output for group in state.finished for output in group]
        if not found:
            raise DeadEndError(
                f"No output of row {row.index} was found: the model, logit_bias or the spec's checks exclude all that "
                f"a width of {self.options.width} keeps."
            )
        distinct = {tuple(output.token_ids): output for output in found}
        return sorted(distinct.values(), key=self._score, reverse=True)

    def start(self, row: Row) -> BeamState:
        """Read the prompt."""
        first = row.copy()
        session, lines = start_session(self.model, [first])
        groups = [[Hypothesis(first.copy(), 0)] for _ in range(self.options.groups)]
        return BeamState(groups, [[] for _ in groups], session, lines)

    def step(self, rng: RandomStreams, state: BeamState) -> tuple[BeamState, BeamInfo]:
        """Extend every hypothesis by a token and keep the best; ``state`` is changed."""
        width = self.options.width // self.options.groups
        chosen: dict[int, int] = {}
        for place, group in enumerate(state.groups):
            extensions = self._extensions(group, state.lines, chosen, width)
            kept: list[Hypothesis] = []
            for extension in extensions:
                if len(kept) == width:
                    break
                if not extension.parent.row.passes(extension.token_id):
                    continue
                row = self._extended(extension)
                chosen[extension.token_id] = chosen.get(extension.token_id, 0) + 1
                if row.is_finished:
                    state.finished[place].append(row)
                else:
                    kept.append(Hypothesis(row, extension.parent.line))
            best = sorted(state.finished[place], key=self._score, reverse=True)[:width]
            state.finished[place] = best
            state.groups[place] = [one for one in kept if not self._is_beaten(one.row, best, width)]
        self._read(state)
        return state, BeamInfo(len(state.active), sum(map(len, state.finished)))

    # ------------------------------------------------------------------------------------- one group

    def _extensions(
        self, group: Sequence[Hypothesis], lines: Sequence[Scores], chosen: dict[int, int], width: int
    ) -> list[_Extension]:
        """The best extensions of a group, best first: enough to fill it whichever of them end."""
        found: list[_Extension] = []
        for hypothesis in group:
            begin = time.perf_counter()
            row = hypothesis.row
            step = len(row.token_ids)
            bitmask = allocate_token_bitmask(1, self._vocabulary.size)
            row.is_shaped |= row.matcher.fill_budget_bitmask(bitmask, 0, remaining=row.remaining)
            allowed = allowed_token_ids(bitmask[0], self._vocabulary.size)
            line = lines[hypothesis.line]
            if row.covers is not None:
                allowed = np.intersect1d(allowed, row.covers, assume_unique=True)
                line = row.covered(line)
            token_ids, log_p = log_masked_row(line, allowed, self.sampling, row=row.index, step=step)
            ranks = row.log_probability + log_p
            if chosen:
                costs = np.array([chosen.get(int(token), 0) for token in token_ids], np.float64)
                ranks = ranks - self.options.diversity * costs
            # Every end token and the best others: of these at most ``width`` go on.
            order = np.lexsort((token_ids, -ranks))
            ends = [place for place in order if int(token_ids[place]) in self._eos]
            others = [place for place in order[: width + len(ends)] if int(token_ids[place]) not in self._eos]
            found += [
                _Extension(float(ranks[place]), hypothesis, int(token_ids[place]), float(log_p[place]))
                for place in [*ends, *others]
                if ranks[place] > -math.inf
            ]
            row.stats.mask_seconds += time.perf_counter() - begin
        return sorted(found, key=lambda extension: -extension.rank)

    def _extended(self, extension: _Extension) -> Row:
        row = extension.parent.row.copy()
        row.log_probability += extension.log_probability
        row.append(extension.token_id, self._vocabulary, self.stop)
        return row

    def _score(self, row: Row) -> float:
        return self._normalised(row.log_probability, max(len(row.token_ids), 1))

    def _normalised(self, log_probability: float, length: int) -> float:
        return log_probability / math.pow(length, self.options.length_penalty)

    def _is_beaten(self, row: Row, best: Sequence[Row], width: int) -> bool:
        """Whether no output that begins like ``row`` can be among the best ``width``."""
        if len(best) < width:
            return False
        # Tokens to come cost nothing at best, and at best the output is as long as it may be.
        return self._normalised(row.log_probability, row.max_tokens) <= self._score(best[-1])

    def _read(self, state: BeamState) -> None:
        """Let the model read the newest tokens of the hypotheses, each different text once."""
        places: dict[tuple[int, ...], int] = {}
        parents: list[int] = []
        active = state.active
        for hypothesis in active:
            token_ids = tuple(hypothesis.row.token_ids)
            if token_ids not in places:
                places[token_ids] = len(places)
                parents.append(hypothesis.line)
            hypothesis.line = places[token_ids]
        if not active:
            state.lines = []
            return
        begin = time.perf_counter()
        state.session.select(parents)
        blocks = state.session.append([token_ids[-1:] for token_ids in places])
        share_model_call([hypothesis.row for hypothesis in active], time.perf_counter() - begin)
        state.lines = [block[-1] for block in blocks]
