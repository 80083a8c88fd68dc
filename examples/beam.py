"""Beam search: the most probable outputs, beside the greedy one.

python examples/beam.py
"""

from __future__ import annotations

import constrain

model = constrain.load_model()
prompt = [{"role": "user", "content": "A short title for a story about a lost cat:"}]
spec = constrain.regex(r"[A-Z][a-z]+( [A-Za-z][a-z]*){1,4}")

greedy = constrain.generate(model, prompt, spec, temperature=0, max_tokens=10)
best = constrain.generate(model, prompt, spec, method="beam", width=4, n=2, max_tokens=10)
diverse = constrain.generate(
    model, prompt, spec, method="beam", width=4, groups=4, diversity=5.0, n=4, max_tokens=10
)
print(f"greedy: {greedy.text!r}, log probability {greedy.log_probability:.2f}")
for name, outputs in (("beam", best), ("diverse groups", diverse)):
    for output in outputs:
        print(f"{name}: {output.text!r}, {output.log_probability:.2f}")
        assert spec.matches(output.text)
assert [one.log_probability for one in best] == sorted((one.log_probability for one in best), reverse=True)
