"""Tests of exact laws notice the mistakes that are easy to make in weighted decoders.

Each mutation changes one place of a decoder's source, as a mistake would, and names a test elsewhere that must
fail then. That the tests pass without a mutation is shown where they stand.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from constrain import numerics
from constrain.decoders import aligned, local, mcmc, proposals, smc, speculative, weighted_rejection
from tests.api import test_exact_methods, test_generate, test_rejection, test_smc
from tests.api.table_model import TableModel
from tests.api.toy_laws import LETTERS


@dataclass(frozen=True)
class Mutation:
    """One place of a function's source, what a mistake would write there, and the test that must notice."""

    name: str
    function: Callable[..., Any]
    right: str
    wrong: str
    test: Test


Test: TypeAlias = Callable[[pytest.MonkeyPatch], None]


def of(test: Callable[..., None], *arguments: Any) -> Test:
    """A test with its parameters."""
    return lambda monkeypatch: test(*arguments)


def smc_test(**options: Any) -> Test:
    return of(test_smc.test_normalizer_and_masses_are_unbiased, {"ess_threshold": 1.0, **options})


def forced_test(monkeypatch: pytest.MonkeyPatch) -> None:
    test_generate.test_jumps_change_nothing_but_the_calls(TableModel(LETTERS))


_MASK_FIRST = """\
bits = allocate_token_bitmask(1, len(line))
    row.matcher.fill_next_token_bitmask(bits, 0)
    allowed = allowed_token_ids(bits[0], len(line))
    line = np.where(np.isin(np.arange(len(line)), allowed), line, -np.inf)
    model = model_row("""

MUTATIONS = [
    Mutation(
        "truncation after the mask",
        proposals.WeightedStep.extend,
        "model = model_row(",
        _MASK_FIRST,
        smc_test(particles=4, resampling="residual", top_k=2),
    ),
    Mutation(
        "feasible mass under the model before truncation",
        numerics.model_row,
        "kept_scores - log_kept",
        "kept_scores - logsumexp(scores.astype(np.float64))",
        smc_test(particles=4, resampling="residual", top_k=2),
    ),
    Mutation(
        "pool: an accepted token counts as rejected in the second look",
        weighted_rejection.recursive_draw,
        "            log_weight = pool.log_rest()\n",
        "            pool.reject(place)\n            log_weight = pool.log_rest()\n",
        of(test_rejection.test_recursive_draw_is_properly_weighted, (1, 2, 4), None),
    ),
    Mutation(
        "pool: the second look takes an accepted token for a rejected one",
        weighted_rejection.recursive_draw,
        "if not accepts(next(order))",
        "if accepts(next(order))",
        of(test_rejection.test_recursive_draw_is_properly_weighted, (1, 2, 4), None),
    ),
    Mutation(
        "pool: an accepted token leaves it in the geometric form",
        weighted_rejection.geometric_draw,
        "accepted.add(place)",
        "pool.reject(place)",
        of(test_rejection.test_geometric_draw_is_the_curtailed_run, 4, None),
    ),
    Mutation(
        "cap: an acceptance at the last trial weighs like any other",
        weighted_rejection.recursive_draw,
        "            if trial == limit:\n                return Draw(place, log_weight, trial)\n",
        "",
        of(test_rejection.test_recursive_draw_is_properly_weighted, (1, 2, 4), 2),
    ),
    Mutation(
        "cap: a failure keeps its weight",
        weighted_rejection.recursive_draw,
        "return Draw(place, -math.inf, trial)",
        "return Draw(place, pool.log_rest(), trial)",
        of(test_rejection.test_recursive_draw_is_properly_weighted, (1, 2, 4), 2),
    ),
    Mutation(
        "cap: rejections that come again don't count",
        weighted_rejection.geometric_draw,
        "n_rejected += _repeats(pool.log_rest(), rng)",
        "pass",
        of(test_rejection.test_geometric_draw_is_the_curtailed_run, 2, 6),
    ),
    Mutation(
        "the end at the last token has no weight",
        proposals.MaskProposal.propose,
        "return Proposed(int(places[place]), log_mass, entropy)",
        "return Proposed(int(places[place]), log_mass if row.remaining > 1 else 0.0, entropy)",
        smc_test(particles=4),
    ),
    Mutation(
        "forced tokens have no weight",
        local.LocalDecoder._append,
        "self._score(row, block[place], np.array([token_id]), first + place)",
        "pass",
        forced_test,
    ),
    Mutation(
        "a twist isn't taken back",
        smc.SmcDecoder.step,
        "row.log_weight -= particle.twist",
        "pass",
        smc_test(particles=6, potential=test_smc.misleading),
    ),
    Mutation(
        "resampling forgets the weight so far",
        smc.SmcDecoder._select,
        "particle.row.log_weight = total - math.log(n)",
        "particle.row.log_weight = 0.0",
        smc_test(particles=4),
    ),
    Mutation(
        "resampling keeps each ancestor's weight",
        smc.SmcDecoder._select,
        "particle.row.log_weight = total - math.log(n)",
        "pass",
        smc_test(particles=4),
    ),
    Mutation(
        "every move is kept",
        smc.SmcDecoder._move,
        "if value == -math.inf or math.log1p(-draw) > log_alpha:",
        "if value == -math.inf:",
        smc_test(particles=4, rejuvenate=2, potential=test_smc.misleading),
    ),
    Mutation(
        "a move forgets the weight of its new end",
        smc.SmcDecoder._move,
        "        log_alpha += sum(step.log_weight for step in new.steps[begin:])\n",
        "",
        of(test_smc.test_many_moves_keep_the_masses, "mask"),
    ),
    Mutation(
        "length: places are as likely in a long output as in a short one",
        mcmc._log_proposal,
        "law = position_law(start.entropies, positions)",
        "law = np.ones(len(start.entropies))",
        of(test_exact_methods.test_mcmc_kernel_leaves_the_target_as_it_is, 0, "uniform"),
    ),
    Mutation(
        "the kernel forgets the model",
        mcmc.log_acceptance,
        "new.log_probability + backward - before",
        "backward - forward",
        of(test_exact_methods.test_mcmc_kernel_leaves_the_target_as_it_is, 0, "uniform"),
    ),
    Mutation(
        "aligned attempts go on at new places whatever the mass there",
        aligned.AlignedDecoder._advance,
        "if uniform >= math.exp(node.log_z):",
        "if node.log_z == -math.inf:",
        of(test_exact_methods.test_first_aligned_outputs_are_exact, test_exact_methods.PATTERNS[0], {}),
    ),
    Mutation(
        "rejected drafts are replaced from the model's row, not from what is left of it",
        speculative.SpeculativeDecoder._choose,
        "residual = np.maximum(pm - d, 0.0)",
        "residual = pm",
        of(test_exact_methods.test_a_draft_model_keeps_the_law, test_exact_methods.PATTERNS[1], 2),
    ),
]


def mutate(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the function, wherever it was imported, the code of its changed source."""
    function = mutation.function
    assert isinstance(function, types.FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    right, wrong = mutation.right, mutation.wrong
    assert source.count(right) == 1, f"the source has changed: {right!r}"
    names: dict[str, Any] = {}
    # As in the modules, so that the copy's annotations aren't evaluated.
    exec("from __future__ import annotations\n" + source.replace(right, wrong), function.__globals__, names)  # noqa: S102
    monkeypatch.setattr(function, "__code__", names[function.__name__].__code__)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mistakes_are_noticed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test that stands for a law fails once the law is broken."""
    mutate(mutation, monkeypatch)
    with pytest.raises(AssertionError):
        mutation.test(monkeypatch)
