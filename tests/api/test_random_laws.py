"""Every method against exact enumeration, on 20 random toy models each.

A toy has 5 to 30 tokens, many of which spell several letters, so that a text has several spellings; a finite random
language; and at most 3 to 8 tokens of output. All its outputs are listed with their probabilities under the
model and under the masked model. Chains and searches are compared exactly; where only statistics can tell, seeds are
fixed, a chi-square statistic may be at most its 1e-5 quantile and a mean 4.5 standard errors off: over all tests here a
right program would have failed with a probability of about 1 in 500, once, when the seeds were chosen.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.decoders.draft import DraftTemplate
from constrain.decoders.mcmc import Trace, log_acceptance, position_law
from constrain.decoders.sketch import SketchTemplate
from tests.api.table_model import TableModel, random_row
from tests.api.toy_laws import assert_law, assert_mean, softmax

Ids = tuple[int, ...]
SEEDS = range(20)
PIECES = ["a", "b?", "(ab|c)", "[ab]{0,2}", "[abc]{1,2}", "(a|bc)?", "(b|ca|ab)", "c{0,2}"]
SPELLINGS = ["".join(letters) for n in (2, 3) for letters in itertools.product("abc", repeat=n)]
PROMPT = "ab"


class Toy:
    """A random model and language with all outputs."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.tokens = [*"abc", *rng.sample(SPELLINGS, rng.randint(1, 26))]
        self.length = rng.randint(3, 8)
        self.pattern = "".join(rng.choices(PIECES, k=3))
        self.model = self.another(seed)
        texts = ("".join(letters) for n in range(7) for letters in itertools.product("abc", repeat=n))
        self.members = {text for text in texts if re.fullmatch(self.pattern, text)}
        self.begun = {text[:n] for text in self.members for n in range(len(text) + 1)}
        self.outputs = self._outputs()
        assert self.outputs

    def another(self, seed: int, spread: float = 1.0) -> TableModel:
        """A model over the same tokens; the last two decide, so that few rows are made.

        It leans to letters and the end: else long outputs would be too rare for weights to be averaged.
        """
        size = len(self.tokens) + 1
        random_part = random_row(size, spread)
        lean = np.isin(np.arange(size), [0, 1, 2, size - 1]) * np.float32(1.0 + math.log(size / 4))
        row = functools.cache(lambda ids: random_part(ids) + lean)
        return TableModel([token.encode() for token in self.tokens], lambda ids: row((seed, *ids[-2:])))

    @property
    def eos(self) -> int:
        return len(self.tokens)

    @property
    def start(self) -> list[int]:
        return self.model.encode(PROMPT)

    @property
    def spec(self) -> constrain.Spec:
        return constrain.regex(self.pattern)

    def _outputs(self) -> list[Ids]:
        found: list[Ids] = []

        def walk(ids: Ids, text: str) -> None:
            if text in self.members:
                found.append((*ids, self.eos))
            if len(ids) + 1 < self.length:
                for token, spelled in enumerate(self.tokens):
                    if text + spelled in self.begun:
                        walk((*ids, token), text + spelled)

        walk((), "")
        return found

    @functools.cached_property
    def after(self) -> dict[Ids, list[int]]:
        """The tokens that lead to an output, behind each beginning of one."""
        found: dict[Ids, set[int]] = {}
        for ids in self.outputs:
            for place, token in enumerate(ids):
                found.setdefault(ids[:place], set()).add(token)
        return {ids: sorted(tokens) for ids, tokens in found.items()}

    def after_at_any_length(self, ids: Ids) -> list[int]:
        """The tokens that the language allows; weighted methods look at the length at the last token alone."""
        text = "".join(self.tokens[token] for token in ids)
        found = [token for token, spelled in enumerate(self.tokens) if text + spelled in self.begun]
        return (found if len(ids) + 1 < self.length else []) + ([self.eos] if text in self.members else [])

    def rows(self, start: Sequence[int], ids: Ids) -> list[tuple[float, float]]:
        """Each token's probability, and that of all tokens allowed in its place."""
        found = []
        for place, token in enumerate(ids):
            row = softmax(self.model.row([*start, *ids[:place]]))
            found.append((float(row[token]), float(row[self.after[ids[:place]]].sum())))
        return found

    def law(self, start: Sequence[int]) -> dict[Ids, float]:
        """Probabilities under the model; they don't add up to 1."""
        return {ids: math.prod(p for p, _ in self.rows(start, ids)) for ids in self.outputs}

    def masked_law(self, start: Sequence[int]) -> dict[Ids, float]:
        """Probabilities where each row is masked and renormalised."""
        return {ids: math.prod(p / z for p, z in self.rows(start, ids)) for ids in self.outputs}

    def generate(self, **options: Any) -> Any:
        return constrain.generate(self.model, PROMPT, self.spec, max_tokens=self.length, seed=1, **options)


@functools.cache
def toy(seed: int) -> Toy:
    return Toy(seed)


def ids_of(outputs: Any) -> list[Ids]:
    return [tuple(output.token_ids) for output in outputs]


def normalised(law: Mapping[Ids, float]) -> dict[Ids, float]:
    total = sum(law.values())
    return {ids: p / total for ids, p in law.items()}


def enough(law: Mapping[Ids, float]) -> int:
    """How many weighted outputs to ask for."""
    return int(min(max(600, 9 / sum(law.values())), 2500))


def assert_weighted(outputs: Any, law: Mapping[Ids, float], masked: Mapping[Ids, float]) -> None:
    """The weights' mean is the mass of the language, and that of each output's is its probability.

    Weights are small most of the time and up to 1 seldom: means of few hits aren't normally distributed, so outputs
    that are rare under the model or under masked decoding are left out.
    """
    weights = np.exp([output.log_weight for output in outputs])
    found = ids_of(outputs)
    assert_mean(weights, sum(law.values()), precise=False)
    for ids in sorted(law, key=lambda ids: -law[ids])[:4]:
        if len(outputs) * min(law[ids], masked[ids] / 10) > 6:
            here = np.array([one == ids for one in found])
            assert_mean(weights * here, law[ids], precise=False)
    complete = {ids for ids, weight in zip(found, weights, strict=True) if weight}
    assert complete <= set(law)


def test_toys_are_of_every_kind() -> None:
    """Small and large vocabularies, short and long outputs, and texts that have several spellings."""
    toys = [toy(seed) for seed in SEEDS]
    assert min(len(one.tokens) for one in toys) < 8 and max(len(one.tokens) for one in toys) > 24
    assert {one.length for one in toys} >= {3, 8}
    for one in toys:
        assert sum(one.law(one.start).values()) > 0.004
        for ids in one.outputs:
            assert "".join(one.tokens[token] for token in ids[:-1]) in one.members
    assert sum(len(one.outputs) > 2 * len(one.members) for one in toys) >= 5


@pytest.mark.parametrize("seed", SEEDS)
def test_local(seed: int) -> None:
    one = toy(seed)
    outputs = one.generate(n=300)
    assert_law(ids_of(outputs), one.masked_law(one.start))
    law = one.law(one.start)
    for output, ids in zip(outputs, ids_of(outputs), strict=True):
        mass = math.prod(z for _, z in one.rows(one.start, ids))
        assert output.log_weight == pytest.approx(math.log(mass), abs=1e-5)
        assert output.log_probability == pytest.approx(math.log(law[ids]), abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_rejection(seed: int) -> None:
    one = toy(seed)
    options: dict[str, Any] = [{}, {"max_trials": 12}, {"acceptances": 3}][seed % 3]
    law = one.law(one.start)
    outputs = one.generate(method="rejection", n=enough(law), **options)
    assert_weighted(outputs, law, one.masked_law(one.start))


@pytest.mark.parametrize("seed", SEEDS)
def test_smc(seed: int) -> None:
    """Normalisers and masses of posteriors are unbiased, whatever the scheme, the proposal and the moves."""
    one = toy(seed)

    def likes_b(text: str, is_complete: bool) -> float:
        return 0.6 * text.count("b") if is_complete or seed % 2 else -0.3 * text.count("b")

    options = {
        "resampling": ["multinomial", "residual", "stratified", "systematic"][seed % 4],
        "proposal": ["mask", "rejection"][seed // 4 % 2],
        "ess_threshold": [1.0, 0.5][seed // 8 % 2],
        "potential": likes_b if seed % 3 else None,
        "rejuvenate": 1 if seed % 5 == 0 else 0,
    }
    law = one.law(one.start)
    if options["potential"]:
        law = {
            ids: p * math.exp(0.6 * "".join(one.tokens[token] for token in ids[:-1]).count("b"))
            for ids, p in law.items()
        }
    posteriors = [
        constrain.generate(
            one.model,
            PROMPT,
            one.spec,
            max_tokens=one.length,
            method="smc",
            particles=4,
            seed=run,
            **options,
        )
        for run in range(100)
    ]
    normalisers = np.exp([posterior.log_normalizer for posterior in posteriors])
    assert_mean(normalisers, sum(law.values()), precise=False)
    best = max(law, key=lambda ids: law[ids])
    shares = [
        sum(
            weight
            for weight, ids in zip(posterior.weights, ids_of(posterior.particles), strict=True)
            if ids == best
        )
        if posterior.log_normalizer > -math.inf
        else 0.0
        for posterior in posteriors
    ]
    assert_mean(normalisers * shares, law[best], precise=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_aligned(seed: int) -> None:
    one = toy(seed)
    outputs = one.generate(method="aligned", n=200, max_attempts=100_000)
    assert_law(ids_of(outputs), normalised(one.law(one.start)))


class Chain:
    """Metropolis-Hastings over the outputs that pass ``check``, from the definition: exact laws of its steps."""

    def __init__(self, one: Toy, positions: str, outputs: Sequence[Ids]) -> None:
        self.outputs = list(outputs)
        n, length = len(outputs), one.length
        self.traces: list[Trace] = []
        rho, tail = np.zeros((n, length)), np.zeros((n, length))
        for i, ids in enumerate(outputs):
            self.traces.append(self._trace(one, ids))
            log_q = np.subtract(self.traces[i].log_p, self.traces[i].log_z)
            rho[i, : len(ids)] = position_law(self.traces[i].entropies, positions)
            tail[i, : len(ids)] = np.exp(np.cumsum(log_q[::-1])[::-1])
        self.masked = tail[:, 0]
        shared = np.array([[_common(a, b) for b in outputs] for a in outputs])
        # A position may be anywhere up to the place where both part.
        proposed = np.zeros((n, n))
        for place in range(length):
            proposed += (shared >= place) * rho[:, place, None] * tail[None, :, place]
        self.target = np.exp([trace.log_probability for trace in self.traces])
        there = self.target[:, None] * proposed
        with np.errstate(divide="ignore", invalid="ignore"):
            self.accepted = np.where(there > 0, np.minimum(1.0, there.T / there), 0.0)
        self.matrix = proposed * self.accepted
        np.fill_diagonal(self.matrix, 0.0)
        np.fill_diagonal(self.matrix, 1.0 - self.matrix.sum(axis=1))

    def _trace(self, one: Toy, ids: Ids) -> Trace:
        trace = Trace(_Finished(list(ids)))  # type: ignore[arg-type]
        for place, token in enumerate(ids):
            row = softmax(one.model.row([*one.start, *ids[:place]]))
            inside = row[one.after_at_any_length(ids[:place])]
            trace.log_p.append(math.log(row[token]))
            trace.log_z.append(math.log(inside.sum()))
            inside = inside / inside.sum()
            trace.entropies.append(float(-(inside * np.log(inside)).sum()))
        return trace

    def law(self, steps: int) -> dict[Ids, float]:
        """Of the output after some steps; the first is of the masked law, given that it passes."""
        law = self.masked / self.masked.sum() @ np.linalg.matrix_power(self.matrix, steps)
        return dict(zip(self.outputs, law.tolist(), strict=True))


class _Finished:
    def __init__(self, token_ids: list[int]) -> None:
        self.token_ids = token_ids


def _common(a: Ids, b: Ids) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@pytest.mark.parametrize("seed", SEEDS)
def test_mcmc(seed: int) -> None:
    """Outputs after few steps have the law of that power of the kernel, which leaves the target as it is."""
    one = toy(seed)
    positions = ["uniform", "priority", "restart"][seed % 3]
    chain = Chain(one, positions, one.outputs)
    target = chain.target / chain.target.sum()
    np.testing.assert_allclose(target @ chain.matrix, target, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sum(chain.law(5000).values()), 1.0)
    for a, b in itertools.permutations(range(min(len(one.outputs), 12)), 2):
        alpha = math.exp(log_acceptance(chain.traces[a], chain.traces[b], positions))
        assert alpha == pytest.approx(chain.accepted[a, b], rel=1e-9)
    outputs = one.generate(method="mcmc", n=200, steps=3, positions=positions)
    assert_law(ids_of(outputs), chain.law(3))


@pytest.mark.parametrize("seed", SEEDS)
def test_beam(seed: int) -> None:
    one = toy(seed)
    law = one.law(one.start)
    output = one.generate(method="beam", width=len(one.outputs) + 1)
    assert law[tuple(output.token_ids)] == pytest.approx(max(law.values()), rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_speculative(seed: int) -> None:
    one = toy(seed)
    options = {"draft": one.another(seed + 100, 1.5), "draft_tokens": 1 + seed % 4} if seed % 4 else {}
    outputs = one.generate(method="speculative", n=300, **options)
    assert_law(ids_of(outputs), one.masked_law(one.start))


@pytest.mark.parametrize("seed", SEEDS)
def test_draft(seed: int) -> None:
    """The mean weight is the mass of the language behind drafts, over all drafts; which occur by their law."""
    one = toy(seed)

    @functools.cache
    def mass(last: Ids) -> float:
        return sum(one.law(list(last)).values())

    drafts: Counter[str] = Counter()
    exact = 0.0
    for first, p in enumerate(softmax(one.model.row(one.start))):
        after = softmax(one.model.row([*one.start, first])) if first != one.eos else [1.0]
        for second, q in enumerate(after):
            # The end of a draft is no part of it.
            text = "".join(one.tokens[token] for token in (first, second)[: len(after)] if token != one.eos)
            text = "" if first == one.eos else text
            drafts[text] += float(p * q)
    for text, p in drafts.items():
        exact += p * mass(tuple(one.model.encode(f"{PROMPT}c{text}c")[-2:]))
    outputs = one.generate(
        method="draft",
        n=300,
        draft_tokens=2,
        template=DraftTemplate(text_think="{prompt}", text_write="{prompt}c{draft}c"),
    )
    assert_mean(np.exp([output.log_weight for output in outputs]), exact, precise=False)
    assert_law([output.stats.draft.texts[0] for output in outputs], drafts)
    assert set(ids_of(outputs)) <= set(one.outputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_sketch(seed: int) -> None:
    """Behind a sketch that isn't a member, outputs have the masked law of the rewriting prompt."""
    one = toy(seed)
    sketch = "cccbbbb"
    assert sketch not in one.members
    outputs = one.generate(
        method="sketch",
        n=250,
        black_box=lambda prompt: sketch,
        template=SketchTemplate(text_write="{prompt}c{draft}"),
    )
    assert_law(ids_of(outputs), one.masked_law(one.model.encode(f"{PROMPT}c{sketch}")))
    member = min(one.members - {""})
    kept = one.generate(method="sketch", black_box=lambda prompt: member)
    assert kept.text == member and kept.stats.sketch.is_kept


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", ["rejection", "aligned", "mcmc", "smc"])
def test_checks(method: str, seed: int) -> None:
    """A check of the whole text is part of the target of every weighted method."""
    one = toy(seed)
    remainder = len(min(one.members, key=lambda text: (len(text), text))) % 2

    def check(text: str) -> bool:
        return len(text) % 2 == remainder

    spec = one.spec.where(check)
    texts = {ids: "".join(one.tokens[token] for token in ids[:-1]) for ids in one.outputs}
    law = {ids: p for ids, p in one.law(one.start).items() if check(texts[ids])}
    if not law:
        pytest.skip("no output of this toy passes")
    options: dict[str, Any] = {"max_tokens": one.length, "seed": 2, "method": method}
    if method == "smc":
        normalisers = [
            math.exp(
                constrain.generate(
                    one.model, PROMPT, spec, **{**options, "seed": run}, particles=3
                ).log_normalizer
            )
            for run in range(120)
        ]
        assert_mean(normalisers, sum(law.values()), precise=False)
    elif method == "rejection":
        outputs = constrain.generate(one.model, PROMPT, spec, n=enough(law), **options)
        assert_weighted(outputs, law, one.masked_law(one.start))
    elif method == "mcmc":
        outputs = constrain.generate(one.model, PROMPT, spec, n=150, steps=4, **options)
        assert_law(ids_of(outputs), Chain(one, "uniform", list(law)).law(4))
    else:
        outputs = constrain.generate(one.model, PROMPT, spec, n=120, max_attempts=100_000, **options)
        assert_law(ids_of(outputs), normalised(law))
