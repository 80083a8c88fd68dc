"""``generate`` by ``method="local"``: its law, its weights, its budgets and its bookkeeping.

Laws are checked by enumeration: the oracle lists every member of a small language with its
probability under the model, and every random choice of the sampler is made once.
"""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel, Field, field_validator

import constrain
from constrain.decoders import LocalDecoder, Row
from constrain.errors import BackendError, DeadEndError, LimitExceededError, OptionError, SpecError
from constrain.numerics import RandomStreams, Sampling
from tests.api.table_model import TableModel, random_row

LETTERS = [b"a", b"b", b"c"]
PATTERN = r"(a|b)*ab?c"
LENGTH = 5


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return weights / weights.sum()


def top_k_row(probabilities: np.ndarray, k: int) -> np.ndarray:
    order = sorted(range(len(probabilities)), key=lambda i: (-probabilities[i], i))
    left = probabilities.copy()
    left[order[k:]] = 0.0
    return left / left.sum()


def members(pattern: str, length: int, letters: str = "abc") -> list[str]:
    """Members that fit ``length`` tokens, the end token included."""
    texts = itertools.chain.from_iterable(itertools.product(letters, repeat=n) for n in range(length))
    return [text for text in map("".join, texts) if re.fullmatch(pattern, text)]


class Oracle:
    """Laws over the members of a small language, one token a letter.

    ``model`` is the model's probability of each member, ``local`` that of the locally constrained
    one, ``draws`` the uniform numbers (one a step) that lead to it.
    """

    def __init__(self, model: TableModel, prompt: str, texts: list[str], top_k: int = 0) -> None:
        self.model: dict[str, float] = {}
        self.local: dict[str, float] = {}
        self.draws: dict[str, list[float]] = {}
        self.texts = texts
        start = model.encode(prompt)

        def walk(ids: list[int], p: float, q: float, draws: list[float]) -> None:
            text = b"".join(LETTERS[i] for i in ids).decode()
            row = softmax(model.row(start + ids))
            shown = top_k_row(row, top_k) if top_k else row
            allowed = [i for i in range(3) if any(t.startswith(text + "abc"[i]) for t in texts)]
            allowed += [3] if text in texts else []
            weights = shown[allowed]
            if not weights.sum():  # the mask first, then the truncation
                weights = top_k_row(row[allowed] / row[allowed].sum(), top_k)
            weights = weights / weights.sum()
            for place, token in enumerate(allowed):
                if not weights[place]:
                    continue
                middle = weights[:place].sum() + weights[place] / 2
                if token == 3:
                    self.model[text] = p * shown[3]
                    self.local[text] = q * weights[place]
                    self.draws[text] = [*draws, middle]
                else:
                    walk([*ids, token], p * shown[token], q * weights[place], [*draws, middle])

        walk([], 1.0, 1.0, [])


class Script(RandomStreams):
    """Random numbers that are given."""

    def __init__(self, numbers: Sequence[float]) -> None:
        super().__init__(0)
        self.numbers = list(numbers)

    def uniform(self, row: int, step: int) -> float:
        return self.numbers[step]


def scripted(monkeypatch: pytest.MonkeyPatch, numbers: Sequence[float], *args: Any, **options: Any) -> Any:
    monkeypatch.setattr("constrain.requests.RandomStreams", lambda seed: Script(numbers))
    return constrain.generate(*args, **options)


@pytest.fixture
def model() -> TableModel:
    return TableModel(LETTERS)


# ----------------------------------------------------------------------------------- law and weights


@pytest.mark.parametrize("jump", ["token", "off"])
@pytest.mark.parametrize("top_k", [0, 2])
def test_every_choice_enumerated(
    model: TableModel, monkeypatch: pytest.MonkeyPatch, top_k: int, jump: str
) -> None:
    """Each member is reached by its draws with weight P/Q, and the mean weight is the feasible mass exactly."""
    texts = members(PATTERN, LENGTH)
    oracle = Oracle(model, "ab", texts, top_k)
    options = {"max_tokens": LENGTH, "top_k": top_k, "jump_forward": jump}
    mean = 0.0
    for text, numbers in oracle.draws.items():
        result = scripted(monkeypatch, numbers, model, "ab", constrain.regex(PATTERN), **options)
        assert result.text == text and result.is_complete
        weight = math.exp(result.log_weight)
        assert weight == pytest.approx(oracle.model[text] / oracle.local[text], rel=1e-6, abs=1e-15)
        mean += oracle.local[text] * weight
        if not top_k:
            assert result.log_probability == pytest.approx(math.log(oracle.model[text]), rel=1e-6)
    assert sum(oracle.local.values()) == pytest.approx(1.0)
    assert mean == pytest.approx(sum(oracle.model.values()), rel=1e-6)
    if not top_k:
        assert set(oracle.draws) == set(texts)


def test_frequencies(model: TableModel) -> None:
    """Sampled outputs follow the locally constrained law (chi-square; false alarm below 1e-5)."""
    oracle = Oracle(model, "ab", members(PATTERN, LENGTH))
    results = constrain.generate(
        model, "ab", constrain.regex(PATTERN), max_tokens=LENGTH, n=2000, seed=1, batch_size=500
    )
    counts = Counter(result.text for result in results)
    expected = {text: 2000 * q for text, q in oracle.local.items()}
    small = [text for text, count in expected.items() if count < 5]
    cells = [(counts[text], count) for text, count in expected.items() if text not in small]
    cells.append((sum(counts[text] for text in small), sum(expected[text] for text in small)))
    chi_square = sum((found - count) ** 2 / count for found, count in cells if count)
    assert sum(found for found, _ in cells) == 2000
    assert chi_square < 50.0  # at most 10 degrees of freedom


def test_temperature_zero_is_greedy(model: TableModel) -> None:
    """Temperature 0 takes the best allowed token at each step, and the seed makes no difference."""
    texts = members(PATTERN, 7)
    ids: list[int] = []
    while True:
        text = b"".join(LETTERS[i] for i in ids).decode()
        row = model.row(model.encode("b") + ids)
        allowed = [i for i in range(3) if any(t.startswith(text + "abc"[i]) for t in texts)]
        allowed += [3] if text in texts else []
        best = max(allowed, key=lambda i: (row[i], -i))
        if best == 3:
            break
        ids.append(best)
    for seed in (None, 1, 2):
        result = constrain.generate(
            model, "b", constrain.regex(PATTERN), max_tokens=7, temperature=0.0, seed=seed
        )
        assert result.text == text
        assert result.token_ids == [*ids, 3]


def test_temperature_and_bias_are_part_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temperature and bias change the model whose probabilities are reported."""
    base = random_row(4)
    bias = {1: 1.5, 3: -0.5}
    plain = TableModel(LETTERS, base)
    edited = TableModel(LETTERS, lambda ids: (base(ids) + np.array([0, 1.5, 0, -0.5], np.float32)) / 0.7)
    options = {"max_tokens": 6, "seed": 4, "n": 20}
    one = constrain.generate(
        plain, "ab", constrain.regex(PATTERN), temperature=0.7, logit_bias=bias, **options
    )
    two = constrain.generate(edited, "ab", constrain.regex(PATTERN), **options)
    for first, second in zip(one, two, strict=True):
        assert first.token_ids == second.token_ids
        assert first.log_probability == pytest.approx(second.log_probability, abs=1e-4)
        assert first.log_weight == pytest.approx(second.log_weight, abs=1e-4)


def test_bias_can_ban_a_token(model: TableModel) -> None:
    """A bias of ``-inf`` bans a token; banning the only allowed one is a dead end that names row and step."""
    results = constrain.generate(
        model, "a", constrain.regex(r"[abc]{3}"), logit_bias={1: -math.inf}, n=20, seed=0
    )
    assert not any("b" in result.text for result in results)
    with pytest.raises(DeadEndError, match="row 0 has a positive probability at step 1"):
        constrain.generate(model, "a", constrain.regex(r"ab"), logit_bias={1: -math.inf})


# ------------------------------------------------------------------------------------------- batches


def test_results_do_not_depend_on_the_batch(model: TableModel) -> None:
    """Equal seeds give equal outputs at any batch size; different rows and seeds differ."""
    prompts = ["ab", "b", "ab", "cca"]
    specs = [constrain.regex(p) for p in (PATTERN, r"[ab]{2,6}", PATTERN, r"c*a")]

    def run(**options: Any) -> list[list[int]]:
        results = constrain.generate(model, prompts, specs, max_tokens=9, n=3, **options)
        return [result.token_ids for result in results]

    reference = run(seed=5, batch_size=1)
    assert len(reference) == 12
    for size in (2, 5, 100):
        assert run(seed=5, batch_size=size) == reference
    assert run(seed=6) != reference
    assert len(set(map(tuple, reference[:3] + reference[6:9]))) > 1
    for row, ids in enumerate(reference):
        text = b"".join(LETTERS[i] for i in ids[:-1]).decode()
        assert specs[row // 3].matches(text)


def test_shape_of_the_result(model: TableModel) -> None:
    """One prompt gives a result; a batch, or ``n > 1``, a list in the order of the prompts."""
    spec = constrain.choice(["a", "b"])
    assert isinstance(constrain.generate(model, "a", spec), constrain.Generation)
    assert len(constrain.generate(model, ["a"], spec)) == 1
    assert len(constrain.generate(model, "a", spec, n=3)) == 3
    assert constrain.generate(model, [], spec) == []
    words = constrain.generate(model, ["a", "a"], [constrain.choice(["a"]), constrain.choice(["bb"])], n=2)
    assert [result.text for result in words] == ["a", "a", "bb", "bb"]


def test_chat_messages() -> None:
    """Messages go through the chat template; a list of conversations is a batch."""
    seen: list[Sequence[int]] = []

    def row(ids: Sequence[int]) -> np.ndarray:
        seen.append(list(ids))
        return np.zeros(4, np.float32)

    model = TableModel(LETTERS, row)
    chat = [{"role": "user", "content": "ab"}, {"role": "user", "content": "c"}]
    constrain.generate(model, chat, constrain.choice(["a", "b"]))
    assert seen[0] == [0, 1, 2]
    assert len(constrain.generate(model, [chat, "a"], constrain.choice(["a", "b"]))) == 2


# --------------------------------------------------------------------------------------- forced tokens


def test_jumps_change_nothing_but_the_calls(model: TableModel) -> None:
    """Jumping over forced tokens gives the same tokens, probabilities and weights in fewer calls."""
    spec = constrain.regex(r"a(bbbb|cccc)aaab")
    for temperature, seed in ((0.0, None), (1.0, 3), (1.0, 4)):
        options = {"temperature": temperature, "seed": seed}
        one = constrain.generate(model, "ab", spec, jump_forward="token", **options)
        two = constrain.generate(model, "ab", spec, jump_forward="off", **options)
        assert one.token_ids == two.token_ids
        assert one.log_probability == pytest.approx(two.log_probability, abs=1e-9)
        assert one.log_weight == pytest.approx(two.log_weight, abs=1e-9)
        assert one.stats.feasible_mass == pytest.approx(two.stats.feasible_mass)
        assert one.stats.forced_tokens == two.stats.forced_tokens == 9  # the end token included
        assert (one.stats.model_calls, two.stats.model_calls) == (3, 10)


def test_rows_jump_by_different_lengths(model: TableModel) -> None:
    """Rows of one batch may jump by different numbers of tokens, and finish at different times."""
    specs = [constrain.regex(r"(aaaa|bb)c"), constrain.regex(r"[abc]c?"), constrain.regex(r"b{5}(a|c)b{3}")]
    results = constrain.generate(model, ["a", "b", "c"], specs, seed=0)
    alone = [constrain.generate(model, p, s, seed=0) for p, s in zip("abc", specs, strict=True)]
    assert results[0].token_ids == alone[0].token_ids  # row 0 has the same random numbers
    for result, spec in zip(results, specs, strict=True):
        assert spec.matches(result.text)
        assert len(result.stats.feasible_mass) == len(result.token_ids) == result.stats.generated_tokens


def test_score_false_skips_the_last_call(model: TableModel) -> None:
    """Without scores the end token costs no call of the model, and there are no probabilities."""
    scored = constrain.generate(model, "a", constrain.choice(["abc", "cba"]), seed=1)
    bare = constrain.generate(model, "a", constrain.choice(["abc", "cba"]), seed=1, score=False)
    assert bare.token_ids == scored.token_ids
    assert (bare.log_probability, bare.log_weight) == (None, None)
    assert (scored.stats.model_calls, bare.stats.model_calls) == (2, 1)


def test_text_jumps_write_canonical_tokens() -> None:
    """``jump_forward="text"`` writes forced text as the tokenizer does, keeps the cut free, and has no weight."""
    model = TableModel([b"a", b"b", b"c", b"ab", b"abab", b"ca"])
    forced = constrain.generate(model, "c", constrain.choice(["ababc", "ababb"]), jump_forward="text", seed=0)
    assert forced.log_weight is None and forced.log_probability is not None
    assert forced.text in ("ababc", "ababb")
    # After "c" the text "a" is forced, but "ca" reaches over it: only as far as no token crosses the cut.
    crossing = constrain.regex(r"b(abca|abcb)")
    for seed in range(20):
        result = constrain.generate(model, "c", crossing, jump_forward="text", seed=seed)
        assert crossing.matches(result.text)
    token_jumps = constrain.generate(model, "c", crossing, jump_forward="token", seed=0)
    assert result.stats.model_calls <= token_jumps.stats.model_calls


def test_decoder_in_a_loop_of_ones_own(model: TableModel) -> None:
    """``LocalDecoder`` runs rows step by step and can be looked at between steps."""
    compiled = constrain.compile(constrain.regex(r"[ab]{4}"), model.vocabulary)
    rows = [Row(index, model.encode("ab"), compiled.matcher(), max_tokens=5) for index in range(3)]
    lengths = []
    for _ in LocalDecoder(model, Sampling(), RandomStreams(2)).run(rows):
        lengths.append([len(row.text) for row in rows])
    assert lengths == [[n, n, n] for n in (1, 2, 3, 4, 4)]
    together = constrain.generate(model, "ab", compiled, n=3, seed=2, max_tokens=5)
    assert [row.token_ids for row in rows] == [result.token_ids for result in together]


# -------------------------------------------------------------------------------------------- budgets


def test_every_budget_from_the_least_one(model: TableModel) -> None:
    """For every budget from the least one, outputs are members that fit; a smaller one is refused before any call."""
    spec = constrain.regex(r"a(a|b)*c(a|b)*cc")
    least = int(constrain.compile(spec, model.vocabulary).matcher().min_tokens_to_finish()) + 1
    assert least == 5
    for budget in range(least, 12):
        for result in constrain.generate(model, "b", spec, max_tokens=budget, n=20, seed=budget):
            assert spec.matches(result.text) and len(result.token_ids) <= budget
            assert result.token_ids[-1] == model.eos
    model.calls.clear()
    with pytest.raises(LimitExceededError, match=r"max_tokens=4.*needs 5 tokens, the end token included"):
        constrain.generate(model, "b", spec, max_tokens=4)
    assert not model.calls


@pytest.mark.parametrize("wanted", [b"a", b"b", b"c"])
def test_models_that_never_want_to_end(wanted: bytes) -> None:
    """A model that always prefers one token, and never the end, still gives complete members, and says why."""
    row = np.zeros(4, np.float32)
    row[LETTERS.index(wanted)] = 40.0
    row[3] = -40.0
    model = TableModel(LETTERS, lambda ids: row)
    spec = constrain.regex(r"[abc]*(ab|bc|ca){2}")
    for budget in range(5, 15):
        result = constrain.generate(model, "a", spec, max_tokens=budget, temperature=0.0)
        assert spec.matches(result.text) and len(result.token_ids) <= budget
        assert result.finish_reason == "budget" and result.is_complete
    assert constrain.generate(model, "a", constrain.regex("[ab]c"), max_tokens=20).finish_reason == "stop"


def test_context_length_is_a_budget(model: TableModel) -> None:
    """What the model's context leaves after the prompt is a budget; a prompt that leaves too little is refused."""
    small = TableModel(LETTERS, model.row, context_length=8)
    spec = constrain.regex(r"[ab]*c")
    for result in constrain.generate(small, "abca", spec, max_tokens=100, n=20, seed=0):
        assert len(result.token_ids) <= 5 and spec.matches(result.text)
    with pytest.raises(LimitExceededError, match=r"context_length=8.*room for 1"):
        constrain.generate(small, "abcabcab", spec)


# ------------------------------------------------------------------------------------- prefix and stop


def test_prefix(model: TableModel) -> None:
    """Outputs begin with the prefix, which costs no generated tokens; a wrong prefix is shown with a caret."""
    spec = constrain.regex(r"ab[abc]{2}c")
    for result in constrain.generate(model, "a", spec, prefix="abc", n=10, seed=0, max_tokens=3):
        assert result.text.startswith("abc") and spec.matches(result.text)
        assert len(result.token_ids) == 3 and result.stats.prompt_tokens == 4
    with pytest.raises(SpecError, match="No member of the spec begins with the prefix") as caught:
        constrain.generate(model, "a", spec, prefix="aca")
    assert (caught.value.line, caught.value.column) == (1, 2)
    whole = constrain.generate(model, "a", spec, prefix="abbbc")
    assert whole.text == "abbbc" and whole.token_ids == [model.eos]


def test_prefix_is_healed_at_the_token_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prefix that splits a token lets the model write it whole, with the law conditioned on the split text."""
    tokens = [b"a", b"b", b"c", b"ab", b"abc"]
    model = TableModel(tokens)
    spec = constrain.regex(r"c(a|ab|abc)")
    # The last token of the prefix "ca" is "a"; tokens that begin with it: a, ab, abc.
    row = softmax(np.where([1, 0, 0, 1, 1, 0], model.row([1, 2]), -np.inf))
    seen = set()
    for place, token in enumerate((0, 3, 4)):
        middle = row[[0, 3, 4]][:place].sum() + row[token] / 2
        result = scripted(monkeypatch, [middle, 0.999, 0.999], model, "b", spec, prefix="ca")
        assert result.token_ids[0] == token and result.text.startswith("ca")
        assert result.stats.prompt_tokens == 2 and result.stats.feasible_mass[0] == pytest.approx(1.0)
        seen.add(result.text)
    assert seen == {"ca", "cab", "cabc"}
    # With no room for a token that repeats the prefix, the prefix stays as it is.
    tight = constrain.generate(model, "b", spec, prefix="ca", max_tokens=1)
    assert tight.text == "ca" and tight.token_ids == [model.eos]


def test_stop_strings_end_complete_outputs_only() -> None:
    """An output ends right after a stop string where it is complete, also inside a token, and nowhere else."""
    tokens = [b"a", b"b", b";", b";a", b"b;;"]
    model = TableModel(tokens)
    spec = constrain.regex(r"([ab]+;)+")
    for result in constrain.generate(model, "a", spec, stop=";", n=60, seed=2, max_tokens=30):
        assert re.fullmatch(r"[ab]+;", result.text) and result.finish_reason in ("stop", "budget")
    nowhere = constrain.regex(r"a;b")
    result = constrain.generate(model, "a", nowhere, stop=[";", "zz"], seed=0)
    assert result.text == "a;b"
    with pytest.raises(OptionError, match="stop="):
        constrain.generate(model, "a", spec, stop=[""])


# ------------------------------------------------------------------------------------- stream and async


def test_stream_of_json() -> None:
    """Parts of a JSON stream are final, and the last item is what ``generate`` returns."""
    tokens = [bytes([byte]) for byte in range(32, 127)] + [b'{"', b'": ', b", ", b"true"]
    model = TableModel(tokens, random_row(len(tokens) + 1, 1.0))
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "tags": {"type": "array", "items": {"enum": ["x", "yy"]}, "minItems": 1, "maxItems": 3},
            "size": {"type": "integer", "minimum": 0, "maximum": 999},
        },
        "required": ["name", "tags", "size"],
        "additionalProperties": False,
    }
    options = {"max_tokens": 70, "seed": 3}
    *parts, last = constrain.stream(model, "a", schema, **options)
    whole = constrain.generate(model, "a", schema, **options)
    assert (last.value, last.text, last.token_ids) == (whole.value, whole.text, whole.token_ids)
    assert parts
    for part in parts:
        assert last.text.startswith(part.text) and not part.is_complete
        for name, value in (part.value or {}).items():
            if f"/{name}" in part.open_pointers:
                assert value == last.value[name][: len(value)]
            else:
                assert value == last.value[name]
    assert any("/tags" in part.open_pointers for part in parts)


def test_stream_checks_its_arguments_at_once(model: TableModel) -> None:
    """Faulty arguments are refused by the call, before the first item is asked for."""
    with pytest.raises(OptionError, match="one output of one prompt"):
        constrain.stream(model, ["a", "b"], constrain.choice(["a"]))
    with pytest.raises(OptionError, match="no argument 'warmth'"):
        constrain.stream(model, "a", constrain.choice(["a"]), warmth=3)
    texts = [item.text for item in constrain.stream(model, "a", constrain.regex("[ab]{3}"), seed=0)]
    assert len(texts) == 4 and len(texts[-1]) == 3


async def _together(model: TableModel) -> list[Any]:
    import asyncio

    return await asyncio.gather(
        *(constrain.agenerate(model, "ab", constrain.regex(PATTERN), max_tokens=6, seed=7) for _ in range(4))
    )


def test_agenerate(model: TableModel) -> None:
    """Awaited calls run side by side and equal ``generate``."""
    import asyncio

    expected = constrain.generate(model, "ab", constrain.regex(PATTERN), max_tokens=6, seed=7)
    assert [result.token_ids for result in asyncio.run(_together(model))] == [expected.token_ids] * 4


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "smarter"}, "method='smarter' is unknown; known: 'aligned', 'beam', 'draft', 'local'"),
        ({"width": 4}, "no argument 'width'; the options of method='local' are batch_size, jump_forward"),
        ({"jump_forward": "far"}, "jump_forward='far': expected one of token, text, off"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"max_tokens": 2.0}, "max_tokens=2.0"),
        ({"n": 0}, "n=0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"seed": -3}, "seed=-3"),
        ({"logit_bias": {"a": 1.0}}, "logit_bias="),
        ({"prefix": b"a"}, "prefix="),
    ],
)
def test_faulty_options(model: TableModel, options: dict[str, Any], text: str) -> None:
    """An unknown or impossible option is refused with what is possible, before the model is called."""
    with pytest.raises(OptionError, match=re.escape(text)):
        constrain.generate(model, "a", constrain.choice(["a"]), **options)
    assert not model.calls


@pytest.mark.parametrize(
    ("prompt", "output", "text"),
    [
        (7, "spec", "prompt=7"),
        ([1, 2], "spec", "expected text, chat messages"),
        ([{"content": "a"}], "spec", "'role' and 'content'"),
        (["a", []], "spec", "Prompt 1 is neither text"),
        ("a", "yes|no", "is text. Say what it is"),
        ("a", ["spec"], "needs a list of prompts"),
        (["a", "b"], ["spec"], "1 outputs were given for 2 prompts"),
    ],
)
def test_faulty_prompts_and_outputs(model: TableModel, prompt: Any, output: Any, text: str) -> None:
    """Prompts and outputs of the wrong kind or number are refused by name."""
    spec = constrain.choice(["a"])
    output = [spec for _ in output] if isinstance(output, list) else spec if output == "spec" else output
    with pytest.raises(OptionError, match=re.escape(text)):
        constrain.generate(model, prompt, output)


@pytest.mark.parametrize(
    ("value", "text"), [(np.nan, "NaN"), (np.inf, "NaN or infinite"), (-np.inf, "all -inf")]
)
def test_unusable_logits(value: float, text: str) -> None:
    """NaN, infinite and all-minus-infinity logits are reported with row and step."""

    def row(ids: Sequence[int]) -> np.ndarray:
        good = np.zeros(4, np.float32)
        return good if len(ids) < 4 or ids[0] == 0 else good + np.float32(value)

    model = TableModel(LETTERS, row)
    with pytest.raises(BackendError, match=f"row 1 at step 2 are .*{text}"):
        constrain.generate(model, ["ab", "bb"], constrain.regex(r"[ab]{4}"), seed=0)


def test_validators_of_the_type() -> None:
    """A validator that refuses everything ends in an error that keeps the text; `explain` says what it said."""

    class Odd(BaseModel):
        x: Annotated[int, Field(ge=0, le=9)]

        @field_validator("x")
        @classmethod
        def refuse(cls, x: int) -> int:
            raise ValueError("never good enough")

    model = TableModel([bytes([byte]) for byte in range(32, 127)])
    with pytest.raises(DeadEndError, match="max_checks"):
        constrain.generate(model, "a", Odd, seed=0, max_tokens=30, max_checks=20)
    found = constrain.python_type(Odd).explain('{"x":3}')
    assert not found.ok
    assert "never good enough" in str(found) and found.pointer == "#/x"


def test_raw_models_are_refused() -> None:
    """Something that isn't a model is refused with the call that makes one."""
    with pytest.raises(BackendError, match="from_transformers"):
        constrain.generate(object(), "a", constrain.choice(["a"]))


def test_compiled_specs(model: TableModel) -> None:
    """A compiled spec serves as output; that of another vocabulary is refused."""
    spec = constrain.regex(PATTERN)
    compiled = constrain.compile(spec, model.vocabulary)
    one = constrain.generate(model, "a", compiled, seed=0, max_tokens=9)
    assert one.token_ids == constrain.generate(model, "a", spec, seed=0, max_tokens=9).token_ids
    with pytest.raises(constrain.VocabularyError, match="another vocabulary"):
        constrain.generate(TableModel([*LETTERS, b"d"]), "a", compiled)


def test_public_names_are_not_their_modules() -> None:
    """``constrain.generate`` and ``constrain.output`` are functions whatever was imported first."""
    code = (
        "import constrain.generation, constrain.output_function, constrain.requests, constrain\n"
        "assert callable(constrain.generate) and callable(constrain.stream) and callable(constrain.output)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
