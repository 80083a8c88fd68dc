"""The mask inside the ``generate`` of transformers: any model, beams, batches.

python examples/transformers_processor.py
"""

from __future__ import annotations

import json

import constrain
from constrain.backends.hf import LogitsProcessor

backend = constrain.load_model()  # or AutoModelForCausalLM and AutoTokenizer of your own
model, tokenizer = backend.model, backend.tokenizer

spec = constrain.json_schema(
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 20},
            "country": {"type": "string", "maxLength": 20},
        },
        "required": ["city", "country"],
        "additionalProperties": False,
    },
    whitespace="compact",
)
vocabulary = constrain.Vocabulary.from_transformers(tokenizer, vocab_size=model.config.vocab_size)
compiled = constrain.compile(spec, vocabulary)

prompts = ["A famous city as JSON:", "The city with the Eiffel tower, as JSON:"]
tokenizer.padding_side = "left"
inputs = tokenizer(prompts, return_tensors="pt", padding=True)

for options in ({"do_sample": False}, {"do_sample": False, "num_beams": 2}):
    output = model.generate(
        **inputs,
        **options,
        max_new_tokens=40,
        logits_processor=[LogitsProcessor(compiled, max_new_tokens=40)],
        pad_token_id=tokenizer.pad_token_id,
    )
    new_tokens = output[:, inputs["input_ids"].shape[1] :]
    for text in tokenizer.batch_decode(new_tokens, skip_special_tokens=True):
        print(options, json.loads(text))
        assert spec.matches(text)
