"""Speculative decoding: the outputs of local decoding with fewer calls of the model.

python examples/speculative.py
"""

from __future__ import annotations

import constrain

model = constrain.load_model()
record = '{"name": "Montgomery Featherstonehaugh", "city": "Llanfairpwllgwyngyll"}'
prompt = f"Copy the record.\nRecord: {record}\nCopy: {record}\nRecord: {record}\nCopy: "
spec = constrain.json_schema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 30},
            "city": {"type": "string", "maxLength": 30},
        },
        "required": ["name", "city"],
        "additionalProperties": False,
    }
)

local = constrain.generate(model, prompt, spec, temperature=0, max_tokens=48)
fast = constrain.generate(model, prompt, spec, method="speculative", temperature=0, max_tokens=48)
print(f"{fast.text}: {fast.stats.generated_tokens} tokens")
print(f"calls of the model: {local.stats.model_calls} by local, {fast.stats.model_calls} by speculative")
# Tokens read one by one or several at once differ by round-off, so a tie might fall either way.
assert spec.matches(fast.text)
assert fast.stats.model_calls < local.stats.model_calls
