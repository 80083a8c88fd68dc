"""One weighted step of one row: a token from the model's row, with a weight for the constraint.

A proposal draws a token ``v`` with a weight whose mean, over the choices, is ``p(v)`` for each token that
fits and 0 for others, where ``p`` is the model, truncation included. Products of the weights then make
whole outputs properly weighted for the model restricted to the language.

At the last token of the budget only an end token fits. The masks before don't look at the budget:
what cannot end in time has weight 0 there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from constrain.decoders.weighted_rejection import adaptive_draw
from constrain.errors import OptionError
from constrain.numerics import allowed_token_ids, draw_place, logsumexp, model_row
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.decoders.rows import Row
    from constrain.numerics import IdArray, ModelRow, Sampling, Scores
    from constrain.tokenizer_index.vocabulary import Vocabulary


class Proposed(NamedTuple):
    """A token by its place in the model's row; with a weight of ``-inf`` there is none that fits.

    ``entropy`` is that of the law it was drawn from, in nats, where the proposal knows it.
    """

    place: int
    log_weight: float
    entropy: float = math.nan


_NOTHING = Proposed(-1, -math.inf)


class Proposal(Protocol):
    """Draws the next token of a row."""

    def propose(self, row: Row, model: ModelRow, rng: np.random.Generator) -> Proposed:
        """Draw from ``model``, which has at least one token; the row stays as it is."""


def fitting(row: Row, model: ModelRow) -> tuple[IdArray, NDArray[np.float64]]:
    """The tokens of the model's row that fit the row next, before any look at the budget but its last token.

    Returns
    -------
    places : (n,) intp
        Places in the model's row, in rising order.
    log_probabilities : (n,) float64
        Those of the model, not renormalised.
    """
    vocabulary = row.matcher.compiled.vocabulary
    bitmask = allocate_token_bitmask(1, vocabulary.size)
    row.matcher.fill_next_token_bitmask(bitmask, 0)
    allowed = allowed_token_ids(bitmask[0], vocabulary.size)
    if row.remaining == 1:
        ends = _ends(row)
        row.is_shaped |= len(ends) < len(allowed)
        allowed = ends
    _, places, _ = np.intersect1d(model.token_ids, allowed, assume_unique=True, return_indices=True)
    return places, model.log_probabilities[places]


@dataclass(frozen=True, slots=True)
class MaskProposal:
    """The masked and renormalised row; the weight is the mass inside the mask, without noise.

    What a spec demands beyond its grammar is checked token by token, as by `RejectionProposal`.

    Parameters
    ----------
    has_checks : bool
        ``False`` draws from the whole masked row, and gives up where the checks refuse what was drawn: the
        row's law is then known exactly.
    """

    has_checks: bool = True

    def propose(self, row: Row, model: ModelRow, rng: np.random.Generator) -> Proposed:
        """See `Proposal`."""
        places, log_p = fitting(row, model)
        log_mass = min(logsumexp(log_p), 0.0)
        if log_mass == -math.inf:
            return _NOTHING
        if row.checks is not None and self.has_checks:
            # Tokens outside the mask need no check: they are left out, and their mass is known.
            def accepts(place: int) -> bool:
                return row.passes(int(model.token_ids[places[place]]))

            draw = adaptive_draw(log_p - log_mass, accepts, rng)
            return Proposed(int(places[draw.place]), log_mass + draw.log_weight)
        masses = np.exp(log_p - log_mass)
        place = draw_place(masses, rng.random())
        if not row.passes(int(model.token_ids[places[place]])):
            return _NOTHING
        # A token of probability 0 adds nothing.
        entropy = log_mass - float(masses @ np.where(masses > 0.0, log_p, 0.0))
        return Proposed(int(places[place]), log_mass, entropy)


@dataclass(frozen=True, slots=True)
class RejectionProposal:
    """Tokens of the model's row, checked one by one until one fits; see `constrain.decoders.weighted_rejection`.

    Parameters
    ----------
    acceptances : int
        How many acceptances the estimate of the mass rests on, at least 2: more checks, less noise.
    max_trials : int or None
        Give up after so many trials in a step, with weight 0; ``None`` goes on until a token fits.

    Raises
    ------
    OptionError
        A number is out of its range.
    """

    acceptances: int = 2
    max_trials: int | None = None

    def __post_init__(self) -> None:
        check_integer("acceptances", self.acceptances, 2)
        if self.max_trials is not None:
            check_integer("max_trials", self.max_trials, 1)

    def propose(self, row: Row, model: ModelRow, rng: np.random.Generator) -> Proposed:
        """See `Proposal`; checks are counted in ``row.stats.checks``."""
        if row.remaining == 1:
            # Nothing but an end token fits here, which the mask knows without checks.
            return MaskProposal().propose(row, model, rng)
        token_ids = model.token_ids

        def accepts(place: int) -> bool:
            token_id = int(token_ids[place])
            return row.matcher.validate_tokens([token_id]) == 1 and row.passes(token_id)

        draw = adaptive_draw(
            model.log_probabilities,
            accepts,
            rng,
            acceptances=self.acceptances,
            max_trials=self.max_trials,
        )
        row.stats.checks += draw.n_checks
        return Proposed(draw.place, draw.log_weight)


def check_integer(name: str, value: object, least: int) -> None:
    """Refuse an option that isn't an integer of at least ``least``.

    Raises
    ------
    OptionError
        It isn't.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}={value!r}: expected an integer of at least {least}.")


def check_temperature(sampling: Sampling) -> None:
    """Refuse temperature 0, at which the model has no distribution to keep.

    Raises
    ------
    OptionError
        It is 0.
    """
    if sampling.temperature == 0.0:
        raise OptionError(
            "temperature=0.0: weighted methods keep the model's distribution, so they need a "
            "temperature above 0; use method='local' for greedy decoding."
        )


def _ends(row: Row) -> IdArray:
    eos = row.matcher.compiled.eos_token_ids if row.matcher.is_accepting() else ()
    return np.array(sorted(eos), np.intp)


class Extended(NamedTuple):
    """What a row was extended by: the token's log probability under the model, truncation included.

    ``entropy`` is that of the proposal; see `Proposed`.
    """

    log_probability: float
    entropy: float


class WeightedStep:
    """Extends a row by one token, with its weight.

    Parameters
    ----------
    proposal : Proposal
    sampling : Sampling
        Truncation counts as part of the model: it comes before the constraint.
    vocabulary : Vocabulary
    stop : sequence of bytes
        An output also ends after one of these strings, if it is complete there.

    Raises
    ------
    OptionError
        The temperature is 0: the model then has no distribution to keep.
    """

    def __init__(
        self, proposal: Proposal, sampling: Sampling, vocabulary: Vocabulary, stop: Sequence[bytes] = ()
    ) -> None:
        check_temperature(sampling)
        self.proposal = proposal
        self.sampling = sampling
        self.stop = tuple(stop)
        self._vocabulary = vocabulary

    def extend(self, row: Row, line: Scores, rng: np.random.Generator) -> Extended:
        """Append one token to ``row`` in place; where none fits, finish the row with weight 0.

        Parameters
        ----------
        line : (vocab_size,)
            The model's logits after the row.

        Returns
        -------
        Extended

        Raises
        ------
        BackendError
            The logits hold NaN or positive infinity, or are all ``-inf``.
        """
        step = len(row.token_ids)
        model = model_row(line, self.sampling, row.covers, row=row.index, step=step)
        begin = time.perf_counter()
        proposed = self.proposal.propose(row, model, rng) if len(model.token_ids) else _NOTHING
        row.log_weight += proposed.log_weight
        if proposed.log_weight == -math.inf:
            row.is_finished, row.is_complete = True, False
            row.stats.mask_seconds += time.perf_counter() - begin
            return Extended(-math.inf, proposed.entropy)
        token_id = int(model.token_ids[proposed.place])
        log_probability = float(model.log_probabilities[proposed.place])
        row.log_probability += log_probability + model.log_kept
        row.stats.feasible_mass.append(math.exp(proposed.log_weight))
        row.append(token_id, self._vocabulary, self.stop)
        row.stats.mask_seconds += time.perf_counter() - begin
        return Extended(log_probability, proposed.entropy)
