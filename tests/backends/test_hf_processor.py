"""``LogitsProcessor`` in ``transformers``' own ``generate``: every mode, and outputs in the language."""

from __future__ import annotations

import re
from typing import Any

import pytest

import constrain
from constrain.errors import BackendError, DeadEndError
from tests.backends.tiny_models import LETTERS, letter_tokenizer, tiny_llama, torch, transformers

hf = pytest.importorskip("constrain.backends.hf", reason="torch or transformers is not installed")

PATTERN = r"(ab){1,3}c"
OTHER = r"c(b{0,3})a"
PROMPTS = torch.tensor([[1, 2, 4], [3, 4, 2]])
ATTENTION = torch.tensor([[0, 1, 1], [1, 1, 1]])  # left padding; the padding token is the end token
MODES = {
    "greedy": {},
    "sample": {"do_sample": True},
    "beams": {"num_beams": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True},
    "several returned": {"do_sample": True, "num_return_sequences": 3},
    "several beams returned": {"num_beams": 3, "num_return_sequences": 2},
    "static cache": {"cache_implementation": "static"},
    "prompt look-up": {"prompt_lookup_num_tokens": 2},
    "sampled prompt look-up": {"prompt_lookup_num_tokens": 2, "do_sample": True},
    "assisted": {"assistant_model": tiny_llama(5, seed=9, layers=1)},
    "sampled assisted": {"assistant_model": tiny_llama(5, seed=9, layers=1), "do_sample": True},
}
SINGLE_ROW = ("prompt look-up", "sampled prompt look-up", "assisted", "sampled assisted")


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(5, seed=3, layers=1)


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary.from_transformers(letter_tokenizer(), vocab_size=5)


def compiled(vocabulary: constrain.Vocabulary, pattern: str = PATTERN) -> constrain.CompiledSpec:
    return constrain.compile(constrain.regex(pattern), vocabulary, cache=False)


def run(model: Any, processor: Any, ids: Any, attention: Any = None, **options: Any) -> list[str]:
    """Texts of the generated tokens, up to the end token."""
    options = {"max_new_tokens": 9, **options}
    attention = torch.ones_like(ids) if attention is None else attention
    output = model.generate(ids, attention_mask=attention, logits_processor=[processor], **options)
    texts = []
    for row in output[:, ids.shape[1] :].tolist():
        assert 1 in row, "no end token"
        texts.append("".join(LETTERS[i] for i in row[: row.index(1)]))
    return texts


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_three_times(model: Any, vocabulary: constrain.Vocabulary, mode: str) -> None:
    """Outputs of every mode match the pattern, over repeated calls with one processor."""
    torch.manual_seed(0)
    processor = hf.LogitsProcessor(compiled(vocabulary))
    rows = slice(1, 2) if mode in SINGLE_ROW else slice(0, 2)
    for _ in range(3):
        texts = run(model, processor, PROMPTS[rows], ATTENTION[rows], **MODES[mode])
        assert all(re.fullmatch(PATTERN, text) for text in texts), texts


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in SINGLE_ROW])
def test_a_spec_for_each_prompt(model: Any, vocabulary: constrain.Vocabulary, mode: str) -> None:
    """With one spec a prompt, all rows of a prompt (beams, returned sequences) follow its spec."""
    torch.manual_seed(0)
    processor = hf.LogitsProcessor([compiled(vocabulary), compiled(vocabulary, OTHER)])
    texts = run(model, processor, PROMPTS, ATTENTION, **MODES[mode])
    half = len(texts) // 2
    assert all(re.fullmatch(PATTERN, text) for text in texts[:half]), texts
    assert all(re.fullmatch(OTHER, text) for text in texts[half:]), texts


def test_greedy_equals_an_unstateful_oracle(model: Any, vocabulary: constrain.Vocabulary) -> None:
    """Greedy search gives what transformers' own ``prefix_allowed_tokens_fn`` gives with the same language."""

    def allowed(_: int, ids: Any) -> list[int]:
        text = "".join(LETTERS[i] for i in ids[3:].tolist())
        members = ["ab" * n + "c" for n in (1, 2, 3)]
        ids_ = [i for i in (2, 3, 4) if any(member.startswith(text + LETTERS[i]) for member in members)]
        return [*ids_, 1] if text in members else ids_ or [1]

    expected = model.generate(
        PROMPTS, attention_mask=ATTENTION, prefix_allowed_tokens_fn=allowed, max_new_tokens=9
    )
    processor = hf.LogitsProcessor(compiled(vocabulary))
    found = model.generate(PROMPTS, attention_mask=ATTENTION, logits_processor=[processor], max_new_tokens=9)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "second",
    [
        [[2]],  # shorter
        [[4, 4, 4]],  # as long, other tokens
        [[4, 4, 4, 4, 4]],  # longer, other tokens
        [[3, 4, 2, 4, 4]],  # longer, begins with the first prompt
        [[3, 4, 2], [3, 4, 2]],  # another number of rows
        [[3, 4, 2, 2, 3, 4, 1, 3, 2]],  # the first prompt, an answer with its end token, a new question
    ],
)
def test_a_new_prompt_is_recognised(
    model: Any, vocabulary: constrain.Vocabulary, second: list[list[int]]
) -> None:
    """One processor serves a second prompt of any shape without being reset."""
    processor = hf.LogitsProcessor(compiled(vocabulary))
    for ids in ([[3, 4, 2]], second, [[3, 4, 2]]):
        for text in run(model, processor, torch.tensor(ids)):
            assert re.fullmatch(PATTERN, text), text


def test_a_prompt_that_continues_the_output_needs_reset_or_its_length(
    model: Any, vocabulary: constrain.Vocabulary
) -> None:
    """Output used as prompt goes on with the same member, unless ``reset`` or ``prompt_length`` says otherwise."""
    start = torch.tensor([[3, 4, 2]])
    longer = torch.tensor([[3, 4, 2, 2]])  # the prompt, and "a"
    processor = hf.LogitsProcessor(compiled(vocabulary))
    run(model, processor, start)
    assert re.fullmatch(PATTERN, "a" + run(model, processor, longer)[0])
    processor.reset()
    assert re.fullmatch(PATTERN, run(model, processor, longer)[0])
    fixed = hf.LogitsProcessor(compiled(vocabulary), prompt_length=4)
    assert re.fullmatch(PATTERN, run(model, fixed, longer)[0])
    with pytest.raises(BackendError, match="prompt_length=4, but the rows have 3"):
        run(model, fixed, start)


def test_prompts_as_embeddings(model: Any, vocabulary: constrain.Vocabulary) -> None:
    """``inputs_embeds``, where the rows hold no prompt tokens at all, twice."""
    processor = hf.LogitsProcessor(compiled(vocabulary))
    embeddings = model.get_input_embeddings()(torch.tensor([[3, 4, 2]])).detach()
    for _ in range(2):
        output = model.generate(inputs_embeds=embeddings, logits_processor=[processor], max_new_tokens=9)
        row = output[0].tolist()
        assert re.fullmatch(PATTERN, "".join(LETTERS[i] for i in row[: row.index(1)]))


def test_budget(model: Any, vocabulary: constrain.Vocabulary) -> None:
    """With ``max_new_tokens`` outputs are complete within it, however little it is."""
    spec = compiled(vocabulary, r"(a|b|c)*ca")
    bias = torch.tensor([0.0, -50.0, 0.0, 50.0, 0.0])  # an end token is never wanted, "b" always

    def adversary(ids: Any, scores: Any) -> Any:
        return scores + bias

    for limit in range(3, 9):
        processor = hf.LogitsProcessor(spec, max_new_tokens=limit)
        output = model.generate(
            torch.tensor([[3, 4]]), attention_mask=torch.ones(1, 2, dtype=torch.long),
            logits_processor=[adversary, processor], max_new_tokens=limit,
        )  # fmt: skip
        row = output[0, 2:].tolist()
        assert re.fullmatch(r"b*ca", "".join(LETTERS[i] for i in row[: row.index(1)]))
        assert len(row) == limit


def test_scores_are_masked_and_not_changed_in_place(vocabulary: constrain.Vocabulary) -> None:
    """Allowed scores stay, others and columns past the vocabulary become ``-inf``; the input is kept."""
    processor = hf.LogitsProcessor(compiled(vocabulary))
    scores = torch.arange(14.0).reshape(2, 7)
    before = scores.clone()
    result = processor(torch.tensor([[3], [4]]), scores)
    assert torch.equal(scores, before)
    assert result.tolist() == [[-torch.inf] * 2 + [row[2]] + [-torch.inf] * 4 for row in before.tolist()]


def test_finished_rows_are_left_alone(vocabulary: constrain.Vocabulary) -> None:
    """A row that holds an end token keeps its scores; its neighbour is masked."""
    processor = hf.LogitsProcessor(compiled(vocabulary, r"a?"))
    processor(torch.tensor([[3], [3]]), torch.zeros(2, 5))
    result = processor(torch.tensor([[3, 1], [3, 2]]), torch.zeros(2, 5))
    assert result[0].tolist() == [0.0] * 5
    assert result[1].tolist() == [-torch.inf, 0.0, -torch.inf, -torch.inf, -torch.inf]


def test_a_rejected_draft_may_only_end(vocabulary: constrain.Vocabulary) -> None:
    """A row that left the language ends; the row's earlier history is still known."""
    processor = hf.LogitsProcessor(compiled(vocabulary))
    processor(torch.tensor([[3]]), torch.zeros(1, 5))
    result = processor(torch.tensor([[3, 4]]), torch.zeros(1, 5))
    assert result[0].isfinite().tolist() == [False, True, False, False, False]
    result = processor(torch.tensor([[3, 2]]), torch.zeros(1, 5))
    assert result[0].isfinite().tolist() == [False, False, False, True, False]


def test_memory_is_bounded(vocabulary: constrain.Vocabulary) -> None:
    """A long output keeps a bounded number of histories, and its newest ones."""
    processor = hf.LogitsProcessor(compiled(vocabulary, r"(a|b)*"))
    ids = [3]
    for step in range(3000):
        processor(torch.tensor([ids]), torch.zeros(1, 5))
        ids.append(2 + step % 2)
    assert len(processor._states) <= 1024
    assert len(processor._prompts[0]) == 1


def test_unusable_scores_are_named(vocabulary: constrain.Vocabulary) -> None:
    """NaN, and a row in which every allowed token is excluded, name row and step."""
    processor = hf.LogitsProcessor(compiled(vocabulary))
    ids = torch.tensor([[3], [4]])
    scores = torch.zeros(2, 5)
    scores[1, 0] = torch.nan
    with pytest.raises(BackendError, match="row 1 at step 0 hold NaN"):
        processor(ids, scores)
    scores = torch.zeros(2, 5)
    scores[1, 2] = -torch.inf
    with pytest.raises(DeadEndError, match="row 1 has a score of -inf at step 0"):
        processor(ids, scores)


def test_shapes_that_do_not_fit(vocabulary: constrain.Vocabulary) -> None:
    """Rows that can't be shared among the specs, narrow scores and mixed vocabularies are refused."""
    spec = compiled(vocabulary)
    with pytest.raises(BackendError, match="3 rows"):
        hf.LogitsProcessor([spec, spec])(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, 5))
    with pytest.raises(BackendError, match="vocab_size=4"):
        hf.LogitsProcessor(spec)(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 4))
    with pytest.raises(BackendError, match="at least one"):
        hf.LogitsProcessor([])
    wider = constrain.Vocabulary.from_transformers(letter_tokenizer(), vocab_size=6)
    with pytest.raises(BackendError, match="one vocabulary"):
        hf.LogitsProcessor([spec, compiled(wider)])


def test_is_a_processor_of_transformers(vocabulary: constrain.Vocabulary) -> None:
    """The class is one of transformers', so lists of processors take it."""
    processors = transformers.LogitsProcessorList([hf.LogitsProcessor(compiled(vocabulary))])
    assert isinstance(processors[0], transformers.LogitsProcessor)
    assert processors(torch.tensor([[3]]), torch.zeros(1, 5))[0].isfinite().sum() == 1
