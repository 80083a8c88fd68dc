"""Aligned decoding: independent exact samples of the model conditioned on the constraint.

A trie over the tokens that attempts have gone through holds for every place ``x`` an over-estimate
``theta(x)`` of the probability that the model, going on from ``x``, writes a valid output. At a place it
knows, an attempt draws the next token from ``p(v | x) theta(xv)``. At a new one it goes on with
probability ``Z(x)``, the mass of the tokens that fit, with one of those, and is given up otherwise. Either way
the estimates along its path are brought up to date::

    theta(x) = sum over the tokens that fit of p(v | x) theta(xv)

So each attempt is a draw of the model conditioned on missing what is known to be bad, and an output that
is reached at last is an exact draw of the model conditioned on the constraint, the first one too. The
more is known, the more attempts succeed.

Follows the rule of Parys et al. 2025, "Constrained Adaptive Rejection Sampling"; the estimates are those of
Park et al. 2024, "Grammar-Aligned Decoding", whose outputs (which never give up) are exact in the limit only.

Outputs of one prompt and spec share a trie, in rounds: all of them that aren't done make one attempt
each with what was known before the round, so that no attempt's law depends on another's result.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from constrain.decoders.proposals import check_integer, check_temperature, fitting
from constrain.decoders.reader import Reader
from constrain.errors import DeadEndError
from constrain.numerics import draw_place, logsumexp, model_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.decoders.rows import Row
    from constrain.numerics import IdArray, RandomStreams, Sampling, Scores
    from constrain.protocols import LogitsBackend

# A place keeps its most probable tokens; for the others the model is asked again.
_KEPT_TOKENS = 64
_ROUND_OFF = 1e-16


@dataclass(frozen=True, slots=True)
class AlignedOptions:
    """Options of ``method="aligned"``.

    Parameters
    ----------
    max_attempts : int
        Attempts an output may take before it is given up.
    """

    max_attempts: int = 1000

    def __post_init__(self) -> None:
        check_integer("max_attempts", self.max_attempts, 1)

    @property
    def batch_size(self) -> int:
        """Rows that go through the model together: all, since those of one prompt learn from each other."""
        return sys.maxsize

    @property
    def score(self) -> bool:
        """Whether there are log probabilities."""
        return True

    @property
    def is_weighted(self) -> bool:
        """Whether weights are right: outputs are exact draws and come without any."""
        return False


@dataclass(slots=True, eq=False)
class Node:
    """What is known of one place.

    Parameters
    ----------
    token_ids : (n,) intp
        The most probable tokens that fit, in rising order.
    log_p : (n,) float64
        Their log probabilities under the model.
    log_raw : float
        What to add for those before truncation.
    log_rest : float
        Log probability of all other tokens that fit.
    n_rest : int
        How many those are.
    log_z : float
        Log probability of all tokens that fit.
    children : dict
        By token: its log probability, and what is known of the place after it. Tokens that end an output
        have no place after them, and their estimate is 1.
    log_theta : float
    log_weights, log_others
        ``log p theta`` of the kept tokens, (n,) float64, and of all others together.
    """

    token_ids: IdArray
    log_p: NDArray[np.float64]
    log_raw: float
    log_rest: float
    n_rest: int
    log_z: float
    children: dict[int, tuple[float, Node]] = field(default_factory=dict)
    log_theta: float = 0.0
    log_weights: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    log_others: float = -math.inf

    def update(self) -> None:
        """Set ``log_theta`` by those of the children; other tokens count in full."""
        log_p = self.log_p.copy()
        rest, n_rest = math.exp(self.log_rest), self.n_rest
        learnt = []
        for token_id, (log_probability, child) in self.children.items():
            place = self.place(token_id)
            if place is not None:
                log_p[place] += child.log_theta
            else:
                rest -= math.exp(log_probability)
                n_rest -= 1
                learnt.append(log_probability + child.log_theta)
        # Differences lose digits: something is left as long as there are tokens nobody has seen, and only then.
        rest = max(rest, math.exp(self.log_rest) * _ROUND_OFF) if n_rest else 0.0
        self.log_others = logsumexp(np.array([*learnt, math.log(rest) if rest else -math.inf]))
        self.log_weights = log_p
        self.log_theta = min(float(np.logaddexp(logsumexp(log_p), self.log_others)), self.log_z)

    def place(self, token_id: int) -> int | None:
        """Where a token stands among the kept ones."""
        place = int(np.searchsorted(self.token_ids, token_id))
        return place if place < len(self.token_ids) and self.token_ids[place] == token_id else None


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt of a row.

    Parameters
    ----------
    row : Row
    known : Node or None
        Where it is in the trie; ``None`` beyond it.
    path : list of (int, float, Node)
        The tokens so far, their log probabilities, and the places they were drawn at, old or new.
    is_over : bool
    """

    row: Row
    known: Node | None
    path: list[tuple[int, float, Node]] = field(default_factory=list)
    dead: Node | None = None
    is_over: bool = False


@dataclass(slots=True, eq=False)
class AlignedState:
    """Rows that are decoded together.

    Parameters
    ----------
    first : list of Row
        The rows before their first token.
    done : list of (Row, or None)
        Their outputs.
    groups : list of int
        Which of the tries each row uses.
    tries : list of (Node, or None)
        What is known of the outputs' beginning, for each group.
    reader : Reader
    n_rounds : int
    """

    first: list[Row]
    done: list[Row | None]
    groups: list[int]
    tries: list[Node | None]
    reader: Reader
    n_rounds: int = 0


class AlignedInfo(NamedTuple):
    """What a round did: how many attempts it made, and how many of them succeeded."""

    n_attempts: int
    n_accepted: int


class AlignedDecoder:
    """Decodes rows by rounds of attempts.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
        Truncation counts as part of the model.
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : AlignedOptions

    Raises
    ------
    OptionError
        The temperature is 0.
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes] = (),
        options: AlignedOptions | None = None,
    ) -> None:
        check_temperature(sampling)
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.stop = tuple(stop)
        self.options = options or AlignedOptions()

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Decode ``rows`` in place to their ends; yields after every round.

        Raises
        ------
        DeadEndError
            A row had no success in ``max_attempts`` attempts, or has no member of positive probability.
        BackendError
            The model's logits cannot be used.
        """
        if not rows:
            return
        state = self.start(rows)
        while not all(state.done):
            state, _ = self.step(self.streams, state)
            yield
        for row, output in zip(rows, state.done, strict=True):
            assert output is not None
            row.take(output)

    def start(self, rows: Sequence[Row]) -> AlignedState:
        """Read the prompts; the rows stay as they are."""
        first = [row.copy() for row in rows]
        keys: dict[object, int] = {}
        groups = []
        for row in first:
            covers = None if row.covers is None else row.covers.tobytes()
            key = (tuple(row.prompt_ids), bytes(row.text), covers, id(row.matcher.compiled), row.max_tokens)
            groups.append(keys.setdefault(key, len(keys)))
        return AlignedState(first, [None] * len(first), groups, [None] * len(keys), Reader(self.model, first))

    def step(self, rng: RandomStreams, state: AlignedState) -> tuple[AlignedState, AlignedInfo]:
        """Make one attempt for each row that isn't done; ``state`` is changed."""
        attempts: list[Attempt | None] = []
        for first, output, group in zip(state.first, state.done, state.groups, strict=True):
            if output is not None:
                attempts.append(None)
                continue
            if first.stats.attempts >= self.options.max_attempts:
                raise DeadEndError(
                    f"Row {first.index} had no success in {self.options.max_attempts} attempts. The constraint "
                    "has little probability under the model: raise max_attempts, give the model more room "
                    "(max_tokens, less truncation), or use method='smc' or 'mcmc'."
                )
            first.stats.attempts += 1
            attempts.append(Attempt(first.copy(), state.tries[group]))
        self._grow(rng, attempts, state)
        made = [attempt for attempt in attempts if attempt is not None]
        for place, attempt in enumerate(attempts):
            if attempt is None:
                continue
            group = state.groups[place]
            root = state.tries[group] = _learn(state.tries[group], attempt)
            first = state.first[place]
            if attempt.dead is None:
                attempt.row.stats.accepted = 1
                state.done[place] = attempt.row
                continue
            stats, mine = attempt.row.stats, first.stats
            mine.model_calls, mine.model_seconds = stats.model_calls, stats.model_seconds
            mine.mask_seconds = stats.mask_seconds
            if root.log_theta == -math.inf:
                raise DeadEndError(
                    f"No member of the spec of row {first.index} that fits {first.max_tokens} tokens has a "
                    "positive probability under the model, truncation (top_k, top_p, min_p) included."
                )
        state.n_rounds += 1
        return state, AlignedInfo(len(made), sum(attempt.dead is None for attempt in made))

    def _grow(self, rng: RandomStreams, attempts: Sequence[Attempt | None], state: AlignedState) -> None:
        """Bring the attempts to their ends; they share calls of the model."""
        while True:
            asking: list[Attempt | None] = []
            for attempt in attempts:
                while attempt is not None and not attempt.is_over:
                    generator = rng.generator(attempt.row.index, len(attempt.row.token_ids), state.n_rounds)
                    if not self._advance(attempt, None, generator):
                        break
                asking.append(None if attempt is None or attempt.is_over else attempt)
            rows = [None if attempt is None else attempt.row for attempt in asking]
            if not any(rows):
                return
            lines = state.reader.seek([None if row is None else row.token_ids for row in rows], rows)
            for attempt, line in zip(asking, lines, strict=True):
                if attempt is not None:
                    row = attempt.row
                    generator = rng.generator(row.index, len(row.token_ids), state.n_rounds)
                    self._advance(attempt, line[-1], generator)

    def _advance(self, attempt: Attempt, line: Scores | None, rng: np.random.Generator) -> bool:
        """Take one token, or give up; false if the model's row is needed for that, and nothing was done."""
        begin = time.perf_counter()
        row, node = attempt.row, attempt.known
        uniform, second = rng.random(2)
        is_new = node is None
        if line is None:
            if node is None:
                return False
            found = _draw_known(node, uniform)
            if found is None:
                return False
        else:
            model = model_row(line, self.sampling, row.covers, row=row.index, step=len(row.token_ids))
            places, log_p = fitting(row, model)
            token_ids = model.token_ids[places]
            if node is None:
                node = _node(token_ids, log_p, model.log_kept)
                if uniform >= math.exp(node.log_z):
                    attempt.dead, attempt.is_over = node, True
                    row.stats.mask_seconds += time.perf_counter() - begin
                    return True
                # What is left of the number, given that the attempt goes on, is as good as a new one.
                found = _draw_masked(token_ids, log_p, second)
            else:
                found = _draw_rest(node, token_ids, log_p, second)
        token_id, log_probability = found
        attempt.path.append((token_id, log_probability, node))
        if not row.passes(token_id):
            attempt.dead, attempt.is_over = _refused(), True
            row.stats.mask_seconds += time.perf_counter() - begin
            return True
        child = None if is_new else node.children.get(token_id)
        attempt.known = None if child is None else child[1]
        row.log_probability += log_probability + node.log_raw
        row.stats.feasible_mass.append(math.exp(node.log_z))
        row.append(token_id, self.model.vocabulary, self.stop)
        attempt.is_over = row.is_finished
        row.stats.mask_seconds += time.perf_counter() - begin
        return True


def _node(token_ids: IdArray, log_p: NDArray[np.float64], log_raw: float) -> Node:
    """A new place, from the tokens that fit there."""
    log_z = min(logsumexp(log_p), 0.0)
    rest, n_rest = -math.inf, 0
    if len(log_p) > _KEPT_TOKENS:
        order = np.argpartition(-log_p, _KEPT_TOKENS)
        kept = np.sort(order[:_KEPT_TOKENS])
        rest, n_rest = logsumexp(log_p[order[_KEPT_TOKENS:]]), len(log_p) - _KEPT_TOKENS
        token_ids, log_p = token_ids[kept], log_p[kept]
    return Node(token_ids, log_p, log_raw, rest, n_rest, log_z, log_theta=log_z)


def _refused() -> Node:
    """The place after a token that the checks refuse: nothing goes on from it."""
    nothing = np.empty(0)
    return Node(nothing.astype(np.intp), nothing, 0.0, -math.inf, 0, -math.inf, log_theta=-math.inf)


def _draw_masked(token_ids: IdArray, log_p: NDArray[np.float64], uniform: float) -> tuple[int, float]:
    place = draw_place(np.exp(log_p - log_p.max()), uniform)
    return int(token_ids[place]), float(log_p[place])


def _draw_known(node: Node, uniform: float) -> tuple[int, float] | None:
    """Draw from ``p theta`` at a place that is known; ``None`` if it is none of the kept tokens."""
    weights = np.append(node.log_weights, node.log_others)
    place = draw_place(np.exp(weights - weights.max()), uniform)
    if place == len(node.token_ids):
        return None
    return int(node.token_ids[place]), float(node.log_p[place])


def _draw_rest(
    node: Node, token_ids: IdArray, log_p: NDArray[np.float64], uniform: float
) -> tuple[int, float]:
    """Draw from ``p theta`` among the tokens that aren't kept."""
    others = ~np.isin(token_ids, node.token_ids, assume_unique=True)
    token_ids, log_p = token_ids[others], log_p[others]
    weights = log_p.copy()
    for token_id, (_, child) in node.children.items():
        place = int(np.searchsorted(token_ids, token_id))
        if place < len(token_ids) and token_ids[place] == token_id:
            weights[place] += child.log_theta
    place = draw_place(np.exp(weights - weights.max()), uniform)
    return int(token_ids[place]), float(log_p[place])


def _learn(root: Node | None, attempt: Attempt) -> Node:
    """Add an attempt's places to the trie and bring the estimates along its path up to date."""
    nodes: list[Node] = []
    parent: Node | None = None
    link = (0, 0.0)
    places = [(node, (token_id, log_p)) for token_id, log_p, node in attempt.path]
    if attempt.dead is not None:
        places.append((attempt.dead, (0, 0.0)))
    for node, step in places:
        known = root if parent is None else (parent.children.get(link[0]) or (0.0, None))[1]
        if known is None:
            known = node
            if parent is None:
                root = known
            else:
                parent.children[link[0]] = (link[1], known)
        nodes.append(known)
        parent, link = known, step
    for node in reversed(nodes):
        node.update()
    assert root is not None
    return root
