"""The engine alone: a spec, a vocabulary, masks. No model, no torch.

For people who write their own decoding loop. The "model" here is a random row of logits.

    python examples/masks.py
"""

from __future__ import annotations

import numpy as np

import constrain

# A toy tokenizer: all single bytes, some longer tokens, and an end token without text.
words = [b"true", b"false", b'"', b'": ', b"12", b"123", b"{}", b'{"', b", "]
tokens: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *words, None]
end = len(tokens) - 1
vocabulary = constrain.Vocabulary.from_tokens(tokens, eos_token_ids=[end])

spec = constrain.json_schema(
    {
        "type": "object",
        "properties": {"id": {"type": "integer", "minimum": 100}, "ok": {"type": "boolean"}},
        "required": ["id", "ok"],
        "additionalProperties": False,
    },
    whitespace="compact",
)
compiled = constrain.compile(spec, vocabulary)
print(f"{spec} on {vocabulary.size} tokens")


def generate(rng: np.random.Generator) -> bytes:
    """Sample one text from random logits under the mask."""
    matcher = compiled.matcher()
    bitmask = constrain.allocate_token_bitmask(1, vocabulary.size)
    output: list[int] = []
    while True:
        logits = rng.normal(size=(1, vocabulary.size)).astype(np.float32)
        matcher.fill_next_token_bitmask(bitmask, 0)
        constrain.apply_token_bitmask_inplace(logits, bitmask)
        token_id = int(logits[0].argmax())
        assert matcher.accept_token(token_id)
        if matcher.is_terminated():
            return vocabulary.decode(output)
        output.append(token_id)


rng = np.random.default_rng(0)
for _ in range(3):
    text = generate(rng)
    assert spec.matches(text)
    print(text.decode())

# A matcher can look ahead, go back, and be copied.
matcher = compiled.matcher()
print("forced:", matcher.find_jump_forward_string())
matcher.accept_string('{"id":')
fork = matcher.fork()
print("after '1234':", fork.accept_string("1234"), "- after '99,':", matcher.accept_string("99,"))
print("tokens until it may end:", int(fork.min_tokens_to_finish()))
fork.rollback(1)
print("a wrong text:", spec.explain('{"id":99,"ok":true}'))
