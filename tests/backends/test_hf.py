"""``TransformersModel``: its rows are those of a fresh forward pass, whatever happened to the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constrain.errors import BackendError
from tests.backends.tiny_models import byte_tokenizer, letter_tokenizer, tiny_llama, torch, transformers

hf = pytest.importorskip("constrain.backends.hf", reason="torch or transformers is not installed")

TOLERANCE = 1e-4


def fresh_logits(model: Any, token_ids: list[int]) -> np.ndarray:
    """Logits (n_tokens, vocab_size) of one row by itself, without a cache."""
    with torch.no_grad():
        return model(torch.tensor([token_ids])).logits[0].float().numpy()


def models() -> list[Any]:
    torch.manual_seed(1)
    common = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama = {
        "intermediate_size": 64,
        "num_key_value_heads": 2,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }
    gpt2 = transformers.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=1
    )
    mistral = transformers.MistralConfig(**common, **llama, sliding_window=6)
    bloom = transformers.BloomConfig(
        vocab_size=64, hidden_size=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1
    )
    mamba = transformers.MambaConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return [
        pytest.param(lambda: tiny_llama(64), True, id="llama"),
        pytest.param(lambda: transformers.GPT2LMHeadModel(gpt2).eval(), True, id="gpt2"),
        pytest.param(lambda: transformers.MistralForCausalLM(mistral).eval(), False, id="sliding-window"),
        pytest.param(lambda: transformers.BloomForCausalLM(bloom).eval(), False, id="alibi"),
        pytest.param(lambda: transformers.MambaForCausalLM(mamba).eval(), False, id="recurrent"),
    ]


@pytest.mark.parametrize(("make", "is_packed"), models())
def test_rows_equal_fresh_forward_passes(make: Any, is_packed: bool) -> None:
    """Appends of any lengths, rows dropped, doubled and reordered, and tokens given back leave each row's logits as alone."""
    model = make()
    backend = hf.TransformersModel(model, letter_tokenizer(), eos_token_ids=[1])
    assert backend._call.is_packable == is_packed
    rng = np.random.default_rng(0)
    rows = [rng.integers(2, 64, size).tolist() for size in (1, 7, 3, 12)]
    session, logits = backend.start(rows)
    assert logits.shape == (4, 64) and logits.dtype == np.float32
    for row, line in zip(rows, logits, strict=True):
        np.testing.assert_allclose(line, fresh_logits(model, row)[-1], atol=TOLERANCE)
    for turn in range(12):
        new = [rng.integers(2, 64, rng.integers(0, 6)).tolist() for _ in rows]
        for row, tokens, block in zip(rows, new, session.append(new), strict=True):
            row += tokens
            assert block.shape == (len(tokens), 64)
            if tokens:
                np.testing.assert_allclose(block, fresh_logits(model, row)[-len(tokens) :], atol=TOLERANCE)
        if turn % 3 == 1:
            chosen = rng.integers(0, len(rows), rng.integers(1, 6)).tolist()
            session.select(chosen)
            rows = [list(rows[place]) for place in chosen]
            assert session.n_rows == len(rows)
        if turn % 2 == 1:
            counts = [int(rng.integers(0, min(len(row), 9))) for row in rows]
            session.truncate(counts)
            rows = [row[: len(row) - count] for row, count in zip(rows, counts, strict=True)]
    with pytest.raises(BackendError, match="cannot take"):
        session.truncate([len(rows[0]), *[0] * (len(rows) - 1)])
    with pytest.raises(BackendError, match="1 rows for a session"):
        session.truncate([0])


def test_padding_does_not_pile_up() -> None:
    """Columns that padding leaves empty are squeezed out of the cache, and the logits stay right."""
    model = tiny_llama(64)
    backend = hf.TransformersModel(model, letter_tokenizer(), eos_token_ids=[1])
    rows = [[2, 3], [4, 5, 6]]
    session, _ = backend.start(rows)
    rng = np.random.default_rng(0)
    for turn in range(60):
        new = [rng.integers(2, 64, 9 if turn % 2 == place else 1).tolist() for place in range(2)]
        blocks = session.append(new)
        rows = [row + tokens for row, tokens in zip(rows, new, strict=True)]
    for row, tokens, block in zip(rows, new, blocks, strict=True):
        np.testing.assert_allclose(block, fresh_logits(model, row)[-len(tokens) :], atol=TOLERANCE)
    n_columns = session._mask.shape[1]
    assert n_columns <= max(map(len, rows)) * 4 / 3 + 2 * 64
    assert n_columns == session._cache.layers[0].keys.shape[2]


def test_bfloat16_logits_are_handed_on_as_float32() -> None:
    """A model in bfloat16 gives float32 rows close to its own."""
    model = tiny_llama(64, sharpness=1.0).to(torch.bfloat16)
    _, logits = hf.TransformersModel(model, letter_tokenizer(), eos_token_ids=[1]).start([[2, 3, 4]])
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits[0], fresh_logits(model, [2, 3, 4])[-1], atol=0.05)


def test_end_tokens_come_from_config_and_tokenizer() -> None:
    """All end tokens of the generation config and of the tokenizer end an output."""
    model = tiny_llama(8)
    model.generation_config.eos_token_id = [5, 3]
    backend = hf.TransformersModel(model, letter_tokenizer())
    assert backend.eos_token_ids == [1, 3, 5]
    assert backend.vocabulary.eos_token_ids == (1, 3, 5)
    assert hf.TransformersModel(model, letter_tokenizer(), eos_token_ids=[2]).vocabulary.eos_token_ids == (2,)


def test_vocabulary_has_the_width_of_the_model() -> None:
    """A model that is wider than its tokenizer gives a vocabulary of the model's width."""
    assert hf.TransformersModel(tiny_llama(64), letter_tokenizer()).vocabulary.size == 64


def test_chat_template() -> None:
    """Messages go through the tokenizer's template, with the opening of the answer; without one: an error."""
    tokenizer = byte_tokenizer()
    backend = hf.TransformersModel(tiny_llama(258), tokenizer)
    with pytest.raises(BackendError, match="no chat template"):
        backend.encode_chat([{"role": "user", "content": "hi"}])
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    ids = backend.encode_chat([{"role": "user", "content": "hi"}])
    assert backend.vocabulary.decode(ids) == b"<user>hi<assistant>"


def test_faulty_prompts() -> None:
    """An empty prompt, no prompts, and a prompt longer than the context are errors that say so."""
    backend = hf.TransformersModel(tiny_llama(8, max_position_embeddings=4), letter_tokenizer())
    with pytest.raises(BackendError, match="row 1 has no tokens"):
        backend.start([[2], []])
    with pytest.raises(BackendError, match="at least one prompt"):
        backend.start([])
    with pytest.raises(BackendError, match="row 0 has 5 tokens; the model takes 4"):
        backend.start([[2, 2, 2, 2, 2]])


def test_encoder_decoder_is_refused() -> None:
    """A model that isn't causal is refused by name."""
    config = transformers.T5Config(vocab_size=8, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    with pytest.raises(BackendError, match="T5ForConditionalGeneration is not a causal"):
        hf.TransformersModel(transformers.T5ForConditionalGeneration(config), letter_tokenizer())
