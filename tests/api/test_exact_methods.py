"""Aligned decoding, Metropolis-Hastings, beam search and speculative decoding, against exact laws.

Where only statistics can tell, seeds are fixed; a chi-square statistic may be at most its 1e-5 quantile.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.decoders import McmcDecoder, McmcOptions, SpeculativeDecoder, SpeculativeOptions
from constrain.decoders.mcmc import Trace, log_acceptance, position_law
from constrain.errors import DeadEndError, OptionError, VocabularyError
from constrain.numerics import RandomStreams, Sampling
from tests.api.table_model import TableModel, random_row
from tests.api.toy_laws import LETTERS, assert_law, feasible_law, members, softmax

PATTERNS = [r"(a|b)*ab?c?", r"([abc]{2})*", r"a*b|ca*", r"(ab|ba|c)*", r"[^c]*c[^c]*"]
LENGTH = 5


def model_of(seed: int = 0, spread: float = 1.2) -> TableModel:
    rows = random_row(4, spread)
    return TableModel(LETTERS, lambda ids: rows([seed, *ids]))


def normalised(law: Mapping[Any, float]) -> dict[Any, float]:
    total = sum(law.values())
    return {key: p / total for key, p in law.items()}


def masked_law(model: TableModel, prompt: str, texts: Sequence[str]) -> dict[str, float]:
    """Probability of each text under the masked and renormalised rows."""
    start = model.encode(prompt)
    law = dict.fromkeys(texts, 0.0)

    def walk(text: str, p: float) -> None:
        row = softmax(model.row(start + ["abc".index(letter) for letter in text]))
        after = [one for one in "abc" if any(other.startswith(text + one) for other in texts)]
        total = sum(row["abc".index(one)] for one in after) + (row[3] if text in law else 0.0)
        if text in law:
            law[text] = p * row[3] / total
        for one in after:
            walk(text + one, p * row["abc".index(one)] / total)

    walk("", 1.0)
    return law


# --------------------------------------------------------------------------------------------- aligned


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        (PATTERNS[0], {}),
        (PATTERNS[1], {"top_k": 3}),
        (PATTERNS[2], {}),
        (PATTERNS[3], {"temperature": 1.5, "top_p": 0.9}),
        (PATTERNS[4], {}),
    ],
    ids=str,
)
def test_first_aligned_outputs_are_exact(pattern: str, options: dict[str, Any]) -> None:
    """The very first output of a fresh trie has the law of the model conditioned on the constraint."""
    model = model_of()
    law = normalised(feasible_law(model, "bb", members(pattern, LENGTH), options))
    found = [
        constrain.generate(
            model, "bb", constrain.regex(pattern), method="aligned", max_tokens=LENGTH, seed=seed, **options
        ).text
        for seed in range(250)
    ]
    assert_law(found, law)


def test_aligned_outputs_that_share_a_trie_are_exact_and_independent() -> None:
    """Outputs of one prompt, early and late ones alike, have the right law, also pairs of them."""
    model = model_of(1)
    pattern = r"(a|b)*ab?c?"
    law = normalised(feasible_law(model, "b", members(pattern, 4), {}))
    runs = [
        constrain.generate(
            model, "b", constrain.regex(pattern), method="aligned", max_tokens=4, n=4, seed=seed
        )
        for seed in range(200)
    ]
    for place in (0, 1, 3):
        assert_law([run[place].text for run in runs], law)
    pairs = {(a, b): law[a] * law[b] for a, b in itertools.product(law, law)}
    assert_law([(run[0].text, run[3].text) for run in runs], pairs)


def test_aligned_attempts_get_rarer() -> None:
    """What attempts learn makes later ones succeed: at the end each output takes one or two."""
    model = model_of(2)
    outputs = constrain.generate(
        model, "b", constrain.regex(r"ccc|cca|aab"), method="aligned", max_tokens=4, n=1, seed=3
    )
    assert outputs.stats.attempts >= 1 and outputs.stats.accepted == 1
    assert outputs.log_weight is None
    many = constrain.generate(
        model, "b", constrain.regex(r"ccc|cca|aab"), method="aligned", max_tokens=4, n=200, seed=3
    )
    # A trie knows the whole of this language after some rounds, so the slowest row isn't much slower.
    alone = [
        constrain.generate(
            model, "b", constrain.regex(r"ccc|cca|aab"), method="aligned", max_tokens=4, seed=seed
        ).stats.attempts
        for seed in range(40)
    ]
    assert max(output.stats.attempts for output in many) <= max(alone) + 3
    assert np.mean([output.stats.attempts for output in many]) < np.mean(alone) + 1


def test_aligned_with_many_tokens_at_a_place() -> None:
    """Places with more tokens than a trie keeps: the others are drawn and learnt of as well."""
    letters = [bytes([65 + place]) for place in range(26)] + [bytes([97 + place]) for place in range(26)]
    letters += [b"%d" % digit for digit in range(10)] + [b"-", b"+", b"*", b"/", b"(", b")", b"<", b">"]
    # Rows depend on the last two tokens alone, so that each is made once.
    rows = functools.cache(random_row(len(letters) + 1, 0.5))
    model = TableModel(letters, lambda ids: rows(tuple(ids[-2:])))
    text = r"[A-Za-z0-9+*/()<>-]"
    spec = constrain.regex(rf"{text}[0-4]|{text}{text}[5-9]|{text}{text}[A-Z]")
    start = model.encode("A")

    @functools.cache
    def end(two: int, three: int) -> float:
        return float(softmax(model.row([two, three]))[-1])

    def law_of_first() -> dict[str, float]:
        law: dict[str, float] = {}
        first = softmax(model.row(start))
        for one, letter in enumerate(letters):
            second = softmax(model.row([*start, one]))
            p = 0.0
            for two, other in enumerate(letters):
                third = softmax(model.row([*start, one, two]))
                if other in b"01234":
                    p += second[two] * third[-1]
                for three in [*range(57, 62), *range(26)]:
                    p += second[two] * third[three] * end(two, three)
            law[letter.decode()] = first[one] * p
        return normalised(law)

    outputs = constrain.generate(
        model, "A", spec, method="aligned", max_tokens=4, n=120, seed=5, max_attempts=20_000
    )
    assert_law([output.text[0] for output in outputs], law_of_first())


def test_aligned_gives_up_with_advice() -> None:
    """A language without any probability, and attempts that all fail, are dead ends that say so."""
    model = model_of()
    with pytest.raises(DeadEndError, match="positive probability"):
        constrain.generate(
            model, "b", constrain.regex("a"), method="aligned", max_tokens=3, logit_bias={0: -math.inf}
        )
    with pytest.raises(DeadEndError, match=r"no success in 2 attempts.*max_attempts"):
        constrain.generate(
            model,
            "b",
            constrain.regex("c{6}"),
            method="aligned",
            max_tokens=8,
            max_attempts=2,
            seed=0,
            logit_bias={2: -9.0},
        )
    with pytest.raises(OptionError, match="temperature"):
        constrain.generate(model, "b", constrain.regex("a"), method="aligned", temperature=0.0)


# ---------------------------------------------------------------------------------------------- checks


def no_bb(text: str) -> bool:
    return "bb" not in text


def even(text: str) -> bool:
    return text.count("a") % 2 == 0


@pytest.mark.parametrize("when", ["complete", "token"])
@pytest.mark.parametrize("method", ["aligned", "mcmc"])
def test_checks_are_part_of_the_target(method: str, when: str) -> None:
    """Checks of whole texts and of beginnings restrict the law, exactly."""
    model = model_of(4)
    check = even if when == "complete" else no_bb
    texts = [text for text in members(r"[abc]{1,4}", LENGTH) if check(text)]
    spec = constrain.regex(r"[abc]{1,4}").where(check, when=when)
    law = normalised(feasible_law(model, "b", texts, {}))
    options = {"steps": 20} if method == "mcmc" else {}
    outputs = constrain.generate(model, "b", spec, method=method, max_tokens=LENGTH, n=200, seed=1, **options)
    assert_law([output.text for output in outputs], law)
    assert all(output.stats.check_calls for output in outputs)


def test_checks_in_a_search_and_in_speculation() -> None:
    """Beam search finds the best output that passes; speculation refuses checks."""
    model = model_of(5)
    spec = constrain.regex(r"[abc]{1,4}").where(even)
    law = feasible_law(model, "b", [text for text in members(r"[abc]{1,4}", LENGTH) if even(text)], {})
    best = constrain.generate(model, "b", spec, method="beam", width=300, max_tokens=LENGTH)
    assert best.text == max(law, key=lambda text: law[text])
    with pytest.raises(DeadEndError, match="width of 4"):
        constrain.generate(model, "b", constrain.regex("a|b").where(lambda text: False), method="beam")
    with pytest.raises(DeadEndError):
        constrain.generate(model, "b", constrain.regex("a|b").where(lambda text: False), method="aligned")
    with pytest.raises(OptionError, match="checks"):
        constrain.generate(model, "b", spec, method="speculative")


# ------------------------------------------------------------------------------------------------ mcmc


class _FakeRow:
    def __init__(self, token_ids: list[int]) -> None:
        self.token_ids = token_ids


def traces(model: TableModel, prompt: str, texts: Sequence[str]) -> dict[str, Trace]:
    """Each text with the probabilities that the acceptance rests on."""
    start = model.encode(prompt)
    found = {}
    for text in texts:
        ids = ["abc".index(letter) for letter in text] + [3]
        trace = Trace(_FakeRow(ids))  # type: ignore[arg-type]
        for place, token in enumerate(ids):
            row = softmax(model.row(start + ids[:place]))
            fit = [
                one for one in range(3) if any(other.startswith(text[:place] + "abc"[one]) for other in texts)
            ]
            fit += [3] if text[:place] in texts else []
            inside = row[fit] / row[fit].sum()
            trace.log_p.append(math.log(row[token]))
            trace.log_z.append(math.log(row[fit].sum()))
            trace.entropies.append(float(-(inside * np.log(inside)).sum()))
        found[text] = trace
    return found


def kernel(chain: Mapping[str, Trace], positions: str) -> np.ndarray:
    """The exact transition matrix of a step."""
    texts = list(chain)
    matrix = np.zeros((len(texts), len(texts)))
    for i, a in enumerate(texts):
        law = position_law(chain[a].entropies, positions)
        for j, b in enumerate(texts):
            if a == b:
                continue
            for k, rho in enumerate(law):
                if a[:k] == b[:k] and k < len(chain[b].log_p):
                    tail = math.exp(sum(chain[b].log_p[k:]) - sum(chain[b].log_z[k:]))
                    matrix[i, j] += rho * tail * math.exp(log_acceptance(chain[a], chain[b], positions))
        matrix[i, i] = 1.0 - matrix[i].sum()
    return matrix


@pytest.mark.parametrize("positions", ["uniform", "priority", "restart"])
@pytest.mark.parametrize("seed", range(7))
def test_mcmc_kernel_leaves_the_target_as_it_is(seed: int, positions: str) -> None:
    """The exact transition matrix keeps the conditional law, and every start tends to it."""
    model = model_of(seed)
    texts = members(PATTERNS[seed % len(PATTERNS)], 4)
    law = normalised(feasible_law(model, "b", texts, {}))
    chain = traces(model, "b", texts)
    matrix = kernel(chain, positions)
    target = np.array([law[text] for text in chain])
    assert (matrix > -1e-12).all()
    np.testing.assert_allclose(target @ matrix, target, atol=1e-12)
    far = np.linalg.matrix_power(matrix, 4000)
    np.testing.assert_allclose(far, np.tile(target, (len(texts), 1)), atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"positions": "priority"}, {"positions": "restart", "top_k": 3}], ids=str
)
def test_mcmc_steps_follow_the_kernel(options: dict[str, Any]) -> None:
    """Outputs after few steps have the law of that power of the kernel; after many that of the target."""
    model = model_of(3)
    pattern = r"(a|b)*ab?c?"
    texts = members(pattern, LENGTH)
    common = {"method": "mcmc", "max_tokens": LENGTH, **options}
    outputs = constrain.generate(model, "b", constrain.regex(pattern), steps=20, n=200, seed=5, **common)
    law = normalised(feasible_law(model, "b", texts, options))
    assert_law([output.text for output in outputs], law)


def test_mcmc_is_local_decoding_without_steps_and_counts() -> None:
    """With ``steps=0`` an output has the law of local masking over members that fit; proposals are counted."""
    model = model_of(4)
    texts = ["b", "ab", "aab", "c", "ca", "caa", "aaab", "caaa"]
    spec = constrain.regex("a{0,3}b|ca{0,3}")
    outputs = constrain.generate(model, "b", spec, method="mcmc", steps=0, max_tokens=6, n=400, seed=0)
    assert_law([output.text for output in outputs], masked_law(model, "b", texts))
    output = constrain.generate(model, "b", spec, method="mcmc", steps=7, max_tokens=6, seed=0)
    assert output.stats.attempts == 7 and 0 <= output.stats.accepted <= 7
    assert output.log_weight is None and output.is_complete
    exact = feasible_law(model, "b", [output.text], {})[output.text]
    assert output.log_probability == pytest.approx(math.log(exact), abs=1e-5)
    assert output.stats.generated_tokens == len(output.token_ids) == len(output.stats.feasible_mass)


def test_mcmc_step_by_step() -> None:
    """A loop of one's own sees which proposals were valid and taken."""
    model = model_of(5)
    planned = constrain.requests.plan(
        constrain.requests.Request(
            model, ["a", "b"], constrain.regex("(a|b)*c"), method="mcmc", max_tokens=5, seed=1
        )
    )
    decoder = McmcDecoder(model, Sampling(), RandomStreams(1), options=McmcOptions())
    state = decoder.start(planned.rows)
    for _ in range(10):
        state, info = decoder.step(decoder.streams, state)
        assert len(info.are_valid) == len(info.are_accepted) == 2
        assert all(valid or not taken for valid, taken in zip(info.are_valid, info.are_accepted, strict=True))
        assert all(re.fullmatch("(a|b)*c", chain.row.text.decode()) for chain in state.chains)


# ------------------------------------------------------------------------------------------------ beam


@pytest.mark.parametrize("seed", range(20))
def test_full_beam_finds_the_mode(seed: int) -> None:
    """At full width without a length penalty the outputs are the most probable members, in order."""
    model = model_of(seed)
    pattern = PATTERNS[seed % len(PATTERNS)]
    law = feasible_law(model, "b", members(pattern, LENGTH), {})
    best = sorted(law, key=lambda text: -law[text])
    outputs = constrain.generate(
        model, "b", constrain.regex(pattern), method="beam", width=300, n=3, max_tokens=LENGTH
    )
    assert [output.text for output in outputs] == best[:3]
    for output in outputs:
        assert output.log_probability == pytest.approx(math.log(law[output.text]), abs=1e-5)
        assert output.log_weight is None and output.finish_reason in ("stop", "budget")


@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0])
def test_full_beam_with_a_length_penalty(penalty: float) -> None:
    """Ranking by penalised probabilities finds the best of those, however long."""
    for seed in range(8):
        model = model_of(seed)
        law = feasible_law(model, "b", members(r"(a|b)*ab?c?", LENGTH), {})
        best = max(law, key=lambda text: math.log(law[text]) / (len(text) + 1) ** penalty)
        output = constrain.generate(
            model,
            "b",
            constrain.regex(r"(a|b)*ab?c?"),
            method="beam",
            width=300,
            length_penalty=penalty,
            max_tokens=LENGTH,
        )
        assert output.text == best


def test_narrow_beams_and_groups() -> None:
    """Width 1 is greedy decoding; groups make outputs unlike each other; all are members."""
    spec = constrain.regex("[abc]{4}")
    for seed in range(10):
        model = model_of(seed)
        greedy = constrain.generate(model, "b", spec, temperature=0.0, max_tokens=5)
        assert constrain.generate(model, "b", spec, method="beam", width=1, max_tokens=5).text == greedy.text
        plain = constrain.generate(model, "b", spec, method="beam", width=4, n=4, max_tokens=5)
        diverse = constrain.generate(
            model, "b", spec, method="beam", width=4, groups=4, diversity=50.0, n=4, max_tokens=5
        )
        assert plain[0].log_probability >= diverse[0].log_probability - 1e-6
        assert {output.text[0] for output in diverse} == set("abc")
    for options, text in (
        ({"width": 4, "groups": 3}, "groups=3"),
        ({"width": 0}, "width=0"),
        ({"length_penalty": -1.0}, "length_penalty"),
        ({"width": 2, "n": 3}, "n=3"),
    ):
        with pytest.raises(OptionError, match=text):
            constrain.generate(model, "b", spec, method="beam", **options)


def test_beam_of_a_batch_and_dead_ends() -> None:
    """Each prompt of a batch has a search of its own; a model that excludes everything is a dead end."""
    model = model_of(6)
    spec = constrain.regex("a?b?c")
    both = constrain.generate(model, ["a", "b"], spec, method="beam", max_tokens=5)
    alone = [constrain.generate(model, prompt, spec, method="beam", max_tokens=5) for prompt in ("a", "b")]
    assert [output.text for output in both] == [output.text for output in alone]
    with pytest.raises(DeadEndError, match="No output of row 0"):
        constrain.generate(model, "a", constrain.regex("c"), method="beam", logit_bias={2: -math.inf})


# ----------------------------------------------------------------------------------------- speculative


@pytest.mark.parametrize(
    "options", [{}, {"top_k": 2}, {"temperature": 0.0}, {"stop": "ab"}, {"prefix": "a"}], ids=str
)
def test_looked_up_drafts_change_nothing(options: dict[str, Any]) -> None:
    """With the same seed the outputs are those of local decoding, and so are the weights."""
    spec = constrain.regex(r"(ab|c)*[ab]{0,3}")
    for seed in range(30):
        model = model_of(seed)
        common = {"max_tokens": 12, "seed": seed, **options}
        expected = constrain.generate(model, "abcab", spec, **common)
        output = constrain.generate(model, "abcab", spec, method="speculative", **common)
        assert output.token_ids == expected.token_ids and output.text == expected.text
        assert output.log_probability == pytest.approx(expected.log_probability, abs=1e-6)
        assert output.log_weight == pytest.approx(expected.log_weight, abs=1e-6)


def test_looked_up_drafts_save_calls() -> None:
    """Where a text repeats, far fewer calls of the model are made than tokens."""

    def row(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros(4, np.float32)
        scores[{0: 1, 1: 2, 2: 0}.get(ids[-1], 0)] = 9.0
        return scores

    model = TableModel(LETTERS, row)
    output = constrain.generate(
        model, "abcabc", constrain.regex("[abc]{60}"), method="speculative", max_tokens=61, seed=0
    )
    assert output.stats.generated_tokens == 61
    assert output.stats.model_calls < 15
    assert output.stats.drafted_tokens > 50


@pytest.mark.parametrize("draft_tokens", [1, 2, 4])
@pytest.mark.parametrize("pattern", PATTERNS[:3])
def test_a_draft_model_keeps_the_law(pattern: str, draft_tokens: int) -> None:
    """Whatever another model drafts, the outputs have the law of local masking."""
    model, draft = model_of(7), model_of(8, 2.0)
    law = masked_law(model, "b", members(pattern, LENGTH))
    outputs = constrain.generate(
        model,
        "b",
        constrain.regex(pattern),
        method="speculative",
        draft=draft,
        draft_tokens=draft_tokens,
        max_tokens=LENGTH,
        n=500,
        seed=6,
    )
    assert_law([output.text for output in outputs], law)


def test_a_good_draft_model_passes() -> None:
    """The model as its own draft: every token passes, and calls are few; batches give what single rows give."""
    model = model_of(9)
    spec = constrain.regex("[abc]{24}")
    outputs = constrain.generate(
        model, ["a", "b", "c"], spec, method="speculative", draft=model, draft_tokens=6, max_tokens=25, seed=2
    )
    for place, output in enumerate(outputs):
        assert output.stats.model_calls <= 1 + math.ceil(25 / 7) + 1
        assert len(output.text) == 24
        if place == 0:
            alone = constrain.generate(
                model, "a", spec, method="speculative", draft=model, draft_tokens=6, max_tokens=25, seed=2
            )
            assert alone.token_ids == output.token_ids


def test_draft_models_must_fit() -> None:
    """A draft model of another vocabulary, and what is no model, are refused."""
    model = model_of()
    other = TableModel([b"a", b"b", b"d"])
    with pytest.raises(VocabularyError, match="draft model"):
        constrain.generate(model, "b", constrain.regex("a"), method="speculative", draft=other)
    with pytest.raises(OptionError, match="expected a model"):
        constrain.generate(model, "b", constrain.regex("a"), method="speculative", draft="small")


def test_streaming_every_method_of_rows() -> None:
    """``stream`` ends with what ``generate`` returns."""
    model = model_of(2)
    for method in ("aligned", "mcmc", "speculative"):
        options = {"method": method, "max_tokens": 6, "seed": 4}
        *_, last = constrain.stream(model, "b", constrain.regex("(a|b)*c"), **options)
        assert last.text == constrain.generate(model, "b", constrain.regex("(a|b)*c"), **options).text


def rows_of(decoder: SpeculativeDecoder, model: TableModel, prompts: list[str]) -> Iterator[int]:
    planned = constrain.requests.plan(
        constrain.requests.Request(model, prompts, constrain.regex("[abc]{9}"), max_tokens=10, seed=1)
    )
    state = decoder.start(planned.rows)
    while not all(row.is_finished for row in state.rows):
        state, info = decoder.step(decoder.streams, state)
        yield info.n_drafted - info.n_passed


def test_speculative_step_by_step() -> None:
    """A loop of one's own sees how many drafted tokens passed."""
    model = model_of(3)
    decoder = SpeculativeDecoder(model, Sampling(), RandomStreams(1), options=SpeculativeOptions())
    assert all(failed >= 0 for failed in rows_of(decoder, model, ["abcab", "cc"]))
