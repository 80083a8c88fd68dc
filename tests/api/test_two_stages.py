"""Drafts and sketches: a free text first, then the output under the constraint."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.decoders.draft import DraftTemplate, choose_draft
from constrain.errors import BackendError, LimitExceededError, OptionError, SpecError
from constrain.nearest_member import repair
from tests.api.table_model import TableModel, random_row
from tests.api.toy_laws import LETTERS, assert_law, assert_mean, softmax

TEXTS = DraftTemplate(text_think="{prompt}", text_write="{prompt}c{draft}c")


def model_of(seed: int = 0, spread: float = 1.0) -> TableModel:
    rows = random_row(4, spread)
    return TableModel(LETTERS, lambda ids: rows([seed, *ids]))


def draft_law(model: TableModel, start: Sequence[int], length: int) -> dict[str, float]:
    """Probability of each draft of at most ``length`` tokens, cut ones among them."""
    law: dict[str, float] = {}

    def walk(ids: list[int], p: float) -> None:
        row = softmax(model.row([*start, *ids]))
        for token in range(4):
            q = p * float(row[token])
            if token == 3 or len(ids) + 1 == length:
                text = "".join("abc"[one] for one in [*ids, *([token] if token < 3 else [])])
                law[text] = law.get(text, 0.0) + q
            else:
                walk([*ids, token], q)

    walk([], 1.0)
    return law


def output_law(model: TableModel, start: Sequence[int], members: Sequence[str]) -> dict[str, float]:
    law = {}
    for text in members:
        ids, p = ["abc".index(letter) for letter in text], 1.0
        for place, token in enumerate([*ids, 3]):
            p *= float(softmax(model.row([*start, *ids[:place]]))[token])
        law[text] = p
    return law


def test_masses_of_drafts_are_unbiased() -> None:
    """The mean of the weight of outputs is the mean over drafts of the probability of the language in their context."""
    model = model_of()
    members = ["ab", "b", "cc"]
    drafts = draft_law(model, model.encode("a"), 2)
    exact = sum(
        p * sum(output_law(model, model.encode(f"ac{draft}c"), members).values())
        for draft, p in drafts.items()
    )
    assert sum(drafts.values()) == pytest.approx(1.0)
    for options in ({"k": 1}, {"k": 2, "choose": "resample"}):
        outputs = constrain.generate(
            model,
            "a",
            constrain.choice(members),
            method="draft",
            draft_tokens=2,
            template=TEXTS,
            max_tokens=4,
            n=800,
            seed=1,
            **options,
        )
        assert_mean([math.exp(output.log_weight) for output in outputs], exact, precise=False)
        counts = Counter(text for output in outputs for text in output.stats.draft.texts)
        assert_law(list(counts.elements()), drafts)


def test_resampling_tends_to_the_joint_law() -> None:
    """With many drafts the output's law nears that of drafts and outputs together, given that the output is valid."""
    model = model_of(3)
    members = ["ab", "b", "cc", "aa"]
    joint: dict[str, float] = dict.fromkeys(members, 0.0)
    for draft, p in draft_law(model, model.encode("a"), 2).items():
        for text, q in output_law(model, model.encode(f"ac{draft}c"), members).items():
            joint[text] += p * q
    total = sum(joint.values())
    outputs = constrain.generate(
        model,
        "a",
        constrain.choice(members),
        method="draft",
        k=16,
        choose="resample",
        draft_tokens=2,
        template=TEXTS,
        max_tokens=4,
        n=200,
        seed=2,
    )
    counts = Counter(output.text for output in outputs)
    distance = 0.5 * sum(abs(counts[text] / 200 - p / total) for text, p in joint.items())
    assert distance < 0.1


def test_what_is_told_of_drafts() -> None:
    """Texts, cuts, masses of every run and the parts of the tax are told; the largest mass is taken."""
    model = model_of(4)
    output = constrain.generate(
        model,
        "a",
        constrain.regex("[ab]{2}"),
        method="draft",
        k=3,
        runs=40,
        draft_tokens=3,
        template=TEXTS,
        max_tokens=4,
        seed=0,
    )
    found = output.stats.draft
    assert len(found.texts) == len(found.are_cut) == len(found.n_tokens) == len(found.log_weights) == 3
    assert all(len(run) == 40 for run in found.log_weights)
    assert found.are_cut == [
        n == 3 and len(text) == 3 for n, text in zip(found.n_tokens, found.texts, strict=True)
    ]
    masses = [np.log(np.mean(np.exp(run))) for run in found.log_weights]
    assert found.chosen == int(np.argmax(masses))
    assert found.projection_tax == pytest.approx(-np.mean(found.log_weights))
    assert found.least_tax == pytest.approx(-np.mean(masses))
    # Jensen: masking cannot bend the model less than the least.
    assert found.distortion >= 0.0
    assert output.log_weight is None and found.model_calls > 0
    for text, run in zip(found.texts, found.log_weights, strict=True):
        exact = sum(output_law(model, model.encode(f"ac{text}c"), ["aa", "ab", "ba", "bb"]).values())
        error = np.exp(run).std() / math.sqrt(40)
        assert abs(np.exp(run).mean() - exact) <= 4.5 * error + 1e-9


def test_one_draft_is_plain_two_stages() -> None:
    """``concat`` with one draft is the same as one draft; with several the output is written once, of all."""
    model = model_of(5)
    common = {"method": "draft", "template": TEXTS, "draft_tokens": 3, "max_tokens": 4, "seed": 7}
    spec = constrain.regex("[ab]{2}")
    alone = constrain.generate(model, "a", spec, **common)
    concat = constrain.generate(model, "a", spec, choose="concat", **common)
    assert alone.token_ids == concat.token_ids and alone.log_weight == concat.log_weight
    draft = alone.stats.draft.texts[0]
    by_hand = constrain.generate(model, [f"ac{draft}c"], spec, max_tokens=4, seed=7)
    assert by_hand[0].token_ids == alone.token_ids

    class Listed(DraftTemplate):
        def write_prompt(self, prompt: Any, drafts: Sequence[str], schema: str | None) -> str:
            return prompt + "c" + "c".join(drafts)

    several = constrain.generate(
        model, "a", spec, choose="concat", k=3, **{**common, "template": Listed(text_think="{prompt}")}
    )
    assert several.stats.draft.chosen is None and len(several.stats.draft.log_weights) == 1
    assert several.log_weight is not None


def test_drafts_of_a_batch_and_another_model() -> None:
    """Each prompt has its own drafts; another model's drafts come from it alone; results don't depend on the batch."""
    model, other = model_of(6), model_of(7)
    spec = constrain.regex("[ab]{2}")
    common = {"method": "draft", "template": TEXTS, "draft_tokens": 3, "max_tokens": 4, "seed": 7, "k": 2}
    both = constrain.generate(model, ["a", "b"], spec, draft=other, **common)
    assert len(both) == 2 and both[0].stats.draft.texts != both[1].stats.draft.texts
    small = constrain.generate(model, ["a", "b"], spec, draft=other, batch_size=1, **common)
    assert [one.token_ids for one in small] == [one.token_ids for one in both]
    alone = constrain.generate(other, "a", spec, **common)
    assert both[0].stats.draft.texts == alone.stats.draft.texts


def test_prompts_of_chats() -> None:
    """Messages keep their turns; the draft is a turn of its own; the schema is told; reasoning is kept apart."""
    template = DraftTemplate()
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "3+4?"}]
    think = template.think_prompt(chat)
    assert [one["role"] for one in think] == ["system", "user"] and think[0]["content"].startswith(
        "Be brief.\n\n"
    )
    write = template.write_prompt(chat[1:], ["7", "8"], '{"type": "integer"}')
    assert [one["role"] for one in write] == ["system", "user", "assistant", "user"]
    assert write[2]["content"] == "Solution 1:\n7\n\nSolution 2:\n8"
    assert '{"type": "integer"}' in write[3]["content"]
    assert "{" not in template.write_prompt(chat, ["7"], "{" * 5000)[3]["content"]
    assert template.split("I think so. </think> It is 7.") == ("I think so. ", "It is 7.")
    assert template.split("It is 7.") == ("", "It is 7.")


def test_choosing() -> None:
    """The largest mass, or a draw by mass; nothing but dead ends: the first."""
    assert choose_draft([-3.0, -1.0, -1.0], "select", 0.5) == 1
    assert choose_draft([-math.inf, -math.inf], "resample", 0.5) == 0
    counts = Counter(
        choose_draft([math.log(0.1), -math.inf, math.log(0.3)], "resample", (i + 0.5) / 1000)
        for i in range(1000)
    )
    assert counts == {0: 250, 2: 750}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"choose": "best"}, "choose='best'"),
        ({"draft": 3}, "expected a model"),
        ({"template": "x"}, "DraftTemplate"),
        ({"particles": 3}, "particles"),
    ],
)
def test_options_of_drafts(options: dict[str, Any], message: str) -> None:
    """Options out of range are refused."""
    with pytest.raises(OptionError, match=message):
        constrain.generate(model_of(), "a", constrain.regex("a"), method="draft", **options)


# ----------------------------------------------------------------------------------------------- sketches

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def byte_model() -> TableModel:
    tokens = [bytes([byte]) for byte in range(32, 127)]
    return TableModel([*tokens, b"\n"], random_row(len(tokens) + 2, 1.0))


@pytest.mark.parametrize(
    "sketch", ["", "no idea", '{"n": 3', '{"n": "three"}', "\n```\n{}\n```", "\U0001f600" * 3]
)
def test_outputs_are_members_whatever_the_sketch(sketch: str) -> None:
    """A sketch that isn't one is rewritten by the local model, or replaced by the nearest member."""
    model = byte_model()
    # The toy tokenizer knows ASCII alone.
    asks = {"ask": "{form}", "text_write": "{prompt}"}
    options = {"black_box": lambda prompt: sketch, "max_tokens": 60, "method": "sketch", "seed": 0}
    from constrain.decoders.sketch import SketchTemplate

    output = constrain.generate(model, "3+4", SCHEMA, template=SketchTemplate(**asks), **options)
    assert isinstance(output.value["n"], int)
    assert output.stats.sketch.text == sketch and not output.stats.sketch.is_kept
    assert output.log_weight is None
    mended = constrain.generate(model, "3+4", SCHEMA, rewrite="edits", **options)
    assert isinstance(mended.value["n"], int) and mended.stats.sketch.edits >= 1
    assert mended.stats.model_calls == 0


@pytest.mark.parametrize("sketch", ['{"n": 7}', ' {"n": 7}\n', '```json\n{"n": 7}\n```'])
def test_valid_sketches_are_kept(sketch: str) -> None:
    """What is a member, fences and blanks aside, is the output; unless one says otherwise."""
    model = byte_model()
    asked: list[Any] = []

    class Box:
        def complete(self, prompt: Any) -> str:
            asked.append(prompt)
            return sketch

    output = constrain.generate(model, "3+4", SCHEMA, method="sketch", black_box=Box())
    assert output.value == {"n": 7} and output.text == '{"n": 7}' and output.stats.sketch.is_kept
    assert asked == ["3+4"]
    again = constrain.generate(
        model, "3+4", SCHEMA, method="sketch", black_box=Box(), keep_valid=False, max_tokens=60, seed=0
    )
    assert not again.stats.sketch.is_kept and again.token_ids


def test_black_boxes_that_fail() -> None:
    """Errors, answers that are no text and answers that don't come are errors that say so."""
    model = byte_model()

    def broken(prompt: Any) -> str:
        raise ValueError("out of order")

    for box, message in (
        (broken, "out of order"),
        (lambda prompt: 3, "expected text"),
        (lambda prompt: time.sleep(3) or "late", "within 0.1 s"),
    ):
        with pytest.raises(BackendError, match=message):
            constrain.generate(model, "a", SCHEMA, method="sketch", black_box=box, timeout=0.1)
    with pytest.raises(OptionError, match="black_box="):
        constrain.generate(model, "a", SCHEMA, method="sketch")
    with pytest.raises(OptionError, match="stream"):
        constrain.stream(model, "a", SCHEMA, method="sketch", black_box=broken)


# ------------------------------------------------------------------------------------------------- repair


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@pytest.mark.parametrize("pattern", [r"(ab|c)*", r"a{2,4}b?c", r"[ab]*c[ab]*", r"abc|cab|bbbb"])
def test_repair_finds_the_nearest_member(pattern: str) -> None:
    """Edits equal the least edit distance over all members, and the text is that far away."""
    spec = constrain.regex(pattern)
    members = [
        text
        for n in range(9)
        for text in map("".join, itertools.product("abc", repeat=n))
        if spec.matches(text)
    ]
    rng = random.Random(pattern)
    for _ in range(25):
        text = "".join(rng.choice("abc") for _ in range(rng.randrange(7)))
        found = repair(spec, text)
        assert spec.matches(found.text)
        assert found.edits == distance(text, found.text) == min(distance(text, one) for one in members)


def test_repair_of_documents_and_its_limits() -> None:
    """JSON with small faults is mended; too many edits, checks and surrogates are errors."""
    spec = constrain.json_schema(SCHEMA)
    assert repair(spec, '{"n": 12,}').edits == 1
    assert json.loads(repair(spec, '{"n": 12').text) == {"n": 1} or repair(spec, '{"n": 12').edits == 1
    with pytest.raises(LimitExceededError, match="max_edits"):
        repair(spec, "nothing of the kind", max_edits=3)
    with pytest.raises(LimitExceededError, match="max_places"):
        repair(spec, "nothing of the kind", max_places=20)
    with pytest.raises(SpecError, match="checks"):
        repair(spec.where(lambda text: True), "{}")
    with pytest.raises(SpecError, match="surrogate"):
        repair(spec, "\ud800")
