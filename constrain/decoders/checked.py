"""Local decoding of rows whose specs have checks: what a check refuses is left out, and another way is sought.

At each step tokens are drawn from the masked row and checked, until one is wanted; an end token is checked as the
whole text. Where nothing is wanted the output goes back: the place is known to fail from now on, and the search goes
on from the place that `SearchTree` draws. So each output satisfies the checks, or ``max_checks`` is reached, or it is
known that none does.

Each row is a generator that asks for the model's rows after some tokens; those of a batch are answered together. The
model keeps what it has read, so a step back costs no more than the tokens that differ.

Weights: the tokens of a step are drawn by weighted rejection, so the weight of an output that was never taken back
is the product of those of its steps, as with ``method="rejection"``. If it was taken back, the first attempt was a
dead end and has weight 0; the weight of the output that is returned is that 0, which keeps the mean of the weights
right: the probability that the unconstrained model stays in the language.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from constrain.decoders.forced import forced_tokens
from constrain.decoders.reader import Reader
from constrain.decoders.rows import Row
from constrain.decoders.search_tree import Node, SearchTree
from constrain.decoders.weighted_rejection import adaptive_draw, random_order
from constrain.errors import DeadEndError
from constrain.numerics import (
    Candidates,
    IdArray,
    RandomStreams,
    Sampling,
    allowed_token_ids,
    candidates,
    logsumexp,
)
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.decoders.local import LocalOptions
    from constrain.protocols import LogitsBackend

_ADVICE = " Say more of what is wanted in the spec itself, let the check judge beginnings (when='token'), or raise max_checks."

# Random numbers of the steps of an attempt, and of the choice between attempts, don't share lanes.
_PICK_LANE = 0

# Of what a row asks the model: its rows after the last so many of the row's tokens (1 where it has none).
_Answers: TypeAlias = "list[NDArray[np.float32]]"
_Asking: TypeAlias = Generator[int, _Answers, None]


class CheckedSearch:
    """Decodes rows under their checks.

    Parameters
    ----------
    model : LogitsBackend
    sampling : Sampling
    streams : RandomStreams
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.
    options : LocalOptions
    """

    def __init__(
        self,
        model: LogitsBackend,
        sampling: Sampling,
        streams: RandomStreams,
        *,
        stop: Sequence[bytes],
        options: LocalOptions,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self.streams = streams
        self.stop = tuple(stop)
        self.options = options
        self._vocabulary = model.vocabulary
        self._eos = frozenset(model.vocabulary.eos_token_ids)

    def run(self, rows: Sequence[Row]) -> Iterator[None]:
        """Decode ``rows`` in place to their ends; yields after every step of the batch.

        Raises
        ------
        DeadEndError
            The checks refuse every output of a row, or those tried within ``max_checks``.
        CheckError
            A check failed.
        BackendError
            The model's logits cannot be used.
        """
        if not rows:
            return
        reader = Reader(self.model, rows)
        active = list(rows)
        decoding = [self._decode(row) for row in active]
        wanted = [next(one) for one in decoding]
        while active:
            answers = reader.seek([row.token_ids for row in active], active, n_lines=wanted)
            asked = [_go_on(one, lines) for one, lines in zip(decoding, answers, strict=True)]
            yield
            kept = [place for place, n_lines in enumerate(asked) if n_lines]
            if len(kept) < len(active):
                active, decoding = [active[place] for place in kept], [decoding[place] for place in kept]
                if active:
                    reader.select(kept)
            wanted = [asked[place] for place in kept]

    def _decode(self, row: Row) -> _Asking:
        """Decode one row to its end."""
        assert row.checks is not None
        row.is_weighted = self.sampling.temperature > 0.0
        row.checks.tally.most = self.options.max_checks
        tree = SearchTree(is_greedy=self.sampling.temperature == 0.0)
        attempt = _Attempt(self, row, tree)
        node = tree.root
        furthest = ""
        try:
            while True:
                yield from attempt.run(node)
                if row.is_finished:
                    return
                text = row.text.decode("utf-8", errors="replace")
                furthest = max(furthest, text, key=len)
                row.stats.backtracks += 1
                row.log_weight = -math.inf
                if tree.is_used_up:
                    raise DeadEndError("The checks refuse every output that fits max_tokens")
                if row.stats.backtracks >= self.options.max_checks:
                    raise DeadEndError(
                        f"The output was taken back {row.stats.backtracks:,} times (max_checks)"
                    )
                node = tree.pick(self.streams.generator(row.index, row.stats.backtracks, _PICK_LANE))
                attempt.go_to(node)
        except DeadEndError as error:
            text = max(furthest, row.text.decode("utf-8", errors="replace"), key=len)
            row.is_complete = False
            is_out = max(row.checks.tally.calls, row.stats.backtracks) >= self.options.max_checks
            raise DeadEndError(
                f"{error}: row {row.index}, {row.checks.tally.calls:,} checks, {row.stats.backtracks:,} times "
                f"taken back, furthest after {text[-60:]!r}.{_ADVICE if is_out else ''}",
                text=text,
            ) from error


def _go_on(decoding: _Asking, lines: _Answers) -> int:
    """Return what a row asks for next; 0 where it has ended."""
    try:
        return decoding.send(lines)
    except StopIteration:
        return 0


class _Attempt:
    """A row on its way from a place of the tree to its end, or to a place from which nothing is wanted."""

    def __init__(self, search: CheckedSearch, row: Row, tree: SearchTree) -> None:
        self.search = search
        self.row = row
        self.tree = tree
        self._begin = bytes(row.text)
        self._covers = row.covers
        self._bitmask = allocate_token_bitmask(1, search.model.vocabulary.size)

    def go_to(self, node: Node) -> None:
        """Take the row back to a place that was visited."""
        row = self.row
        assert row.checks is not None
        path = node.path()
        token_ids = [one.token_id for one in path]
        shared = 0
        while shared < min(len(token_ids), len(row.token_ids)) and token_ids[shared] == row.token_ids[shared]:
            shared += 1
        n_back = len(row.token_ids) - shared
        row.matcher.rollback(n_back)
        row.checks.rollback(n_back)
        vocabulary = self.search.model.vocabulary
        pieces = [vocabulary.token_bytes(token_id) or b"" for token_id in token_ids[:shared]]
        row.text[:] = self._begin + b"".join(pieces)
        del row.token_ids[shared:]
        for token_id in token_ids[shared:]:
            row.accept(token_id, vocabulary)
        row.log_probability = sum(one.log_probability for one in path)
        row.stats.feasible_mass = [one.feasible for one in path]
        row.stats.generated_tokens = len(path)
        row.covers = None if path else self._covers

    def run(self, node: Node) -> _Asking:
        """Write on from ``node``, where the row is; the row is then finished, or taken as far as it goes."""
        row = self.row
        queue: list[Node] = []
        while True:
            lines = yield max(len(queue), 1)
            begin = time.perf_counter()
            for place, one in enumerate(queue[1:]):
                self._score(one, lines[place])
            is_open = self._step(queue[-1] if queue else node, lines[-1], queue)
            row.stats.mask_seconds += time.perf_counter() - begin
            if not is_open or row.is_finished:
                return

    def _step(self, node: Node, line: NDArray[np.float32], queue: list[Node]) -> bool:
        """Append a token and those it forces, and put them into ``queue``; false if nothing is wanted."""
        row, search = self.row, self.search
        queue.clear()
        allowed = self._allowed()
        if not search.options.score and node.n_allowed is None and self._ends_unscored(allowed):
            return True
        child = self._choose(node, allowed, line)
        if child is None:
            self.tree.exhaust(node)
            return False
        if row.is_finished:
            return True
        before = row.matcher.fork() if search.stop else None
        row.accept(child.token_id, search.model.vocabulary)
        queue.append(child)
        if before is not None:
            row.stop_at(search.stop, before, search.model.vocabulary)
        return self._force(queue, before is None)

    def _allowed(self) -> IdArray:
        row = self.row
        if row.matcher.fill_budget_bitmask(self._bitmask, 0, remaining=row.remaining):
            row.is_shaped = True
        allowed = allowed_token_ids(self._bitmask[0], self.search.model.vocabulary.size)
        return allowed if row.covers is None else np.intersect1d(allowed, row.covers, assume_unique=True)

    def _ends_unscored(self, allowed: IdArray) -> bool:
        """End the output where nothing else may come and nobody asks how probable that is."""
        row = self.row
        ends = len(allowed) and self.search._eos.issuperset(allowed.tolist()) and row.matcher.is_accepting()
        if not ends or not row.passes(int(allowed[0])):
            return False
        row.end(int(allowed[0]))
        row.stats.forced_tokens += 1
        return True

    def _choose(self, node: Node, allowed: IdArray, line: NDArray[np.float32]) -> Node | None:
        """Choose a token that is wanted and wasn't tried; ``None``: there is none. An end token ends the row."""
        row, tree = self.row, self.tree
        step = len(row.token_ids)
        rng = self.search.streams.generator(row.index, step, 1 + row.stats.backtracks)
        line = row.covered(line)
        untried = allowed[~np.isin(allowed, list(node.children))] if node.children else allowed
        child = None
        while child is None and len(untried):
            found = candidates(line, untried, self.search.sampling, row=row.index, step=step)
            tree.visit(node, len(allowed), found)
            if not len(found.token_ids):
                break
            child = self._draw(node, found, rng)
            untried = np.setdiff1d(untried, found.token_ids, assume_unique=True)
        if child is None:
            return None
        tree.offer(node)
        row.covers = None
        row.log_probability += child.log_probability
        row.stats.feasible_mass.append(child.feasible)
        if len(allowed) == 1:
            row.stats.forced_tokens += 1
        # A spec may name an end token for a place where the output goes on.
        if child.token_id in self.search._eos and row.matcher.is_accepting():
            row.end(child.token_id)
        return child

    def _draw(self, node: Node, found: Candidates, rng: np.random.Generator) -> Node | None:
        """Draw until a token is wanted; those that aren't are closed."""
        row, tree = self.row, self.tree
        finite = np.flatnonzero(found.scores > -np.inf)
        ids = found.token_ids[finite]
        scores = found.scores[finite].astype(np.float64)
        log_p = scores - logsumexp(scores)

        def accepts(place: int) -> bool:
            token_id = int(ids[place])
            is_wanted = row.passes(token_id)
            if not is_wanted:
                tree.close(tree.add(node, token_id, math.exp(log_p[place])))
            return is_wanted

        place = None
        log_weight = found.log_feasible
        if row.is_weighted and self.search.options.is_weighted and row.log_weight > -math.inf:
            draw = adaptive_draw(log_p, accepts, rng)
            log_weight += draw.log_weight
            row.log_weight += log_weight
            place = draw.place if draw.log_weight > -math.inf else None
        else:
            is_greedy = self.search.sampling.temperature == 0.0
            order = np.argsort(-log_p, kind="stable").tolist() if is_greedy else random_order(log_p, rng)
            place = next((place for place in order if accepts(place)), None)
        if place is None:
            return None
        return tree.add(
            node,
            int(ids[place]),
            math.exp(log_p[place]),
            log_probability=float(scores[place]) - found.log_total,
            feasible=math.exp(log_weight),
        )

    def _force(self, queue: list[Node], jumps: bool) -> bool:
        """Append the tokens that follow without a choice; false if the checks refuse one of them."""
        row = self.row
        if row.is_finished or not jumps:
            return True
        for token_id in forced_tokens(self.search.model, row, self.search.options.jump_forward):
            node = queue[-1]
            node.n_allowed = 1
            child = self.tree.add(node, token_id, 1.0)
            if not row.passes(token_id):
                self.tree.close(child)
                return False
            row.accept(token_id, self.search.model.vocabulary)
            row.stats.forced_tokens += 1
            queue.append(child)
        return True

    def _score(self, node: Node, line: NDArray[np.float32]) -> None:
        """Add a forced token, whose row has come, to the row's probability and weight."""
        row = self.row
        token_id = np.array([node.token_id])
        found = candidates(line, token_id, self.search.sampling, row=row.index, step=len(row.token_ids))
        if not len(found.token_ids):
            raise DeadEndError(
                f"The only token that row {row.index} allows has probability 0: the model or logit_bias excludes it"
            )
        node.log_probability = float(found.scores[0]) - found.log_total
        node.feasible = math.exp(found.log_feasible)
        row.log_probability += node.log_probability
        row.log_weight += found.log_feasible
        row.stats.feasible_mass.append(node.feasible)
