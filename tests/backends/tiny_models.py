"""Tiny random models and tokenizers, made in the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

LETTERS = ("<s>", "</s>", "a", "b", "c")


def letter_tokenizer(words: Sequence[str] = LETTERS, **special: str) -> Any:
    """A tokenizer of whole words; the first two are the tokens that begin and end a text."""
    from tokenizers import Tokenizer, models

    backend = Tokenizer(models.BPE(vocab={word: place for place, word in enumerate(words)}, merges=[]))
    names = {"bos_token": words[0], "eos_token": words[1], "pad_token": words[1], **special}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def byte_tokenizer(merges: Sequence[tuple[str, str]] = ()) -> Any:
    """A byte-level tokenizer: ``<s>``, ``</s>``, the 256 bytes, then one token for each merge."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    names += ["".join(pair) for pair in merges]
    backend = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=list(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def tiny_llama(
    vocab_size: int, *, seed: int = 0, sharpness: float = 8.0, layers: int = 2, **config: Any
) -> Any:
    """A random Llama; ``sharpness`` scales its logits, so that its rows are far from uniform."""
    torch.manual_seed(seed)
    settings = transformers.LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        **config,
    )
    model = transformers.LlamaForCausalLM(settings).eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(sharpness)
    return model
