"""Exact samples: outputs that have the model's own distribution, given that they fit the spec.

python examples/aligned.py
"""

from __future__ import annotations

import constrain

model = constrain.load_model()
prompt = [{"role": "user", "content": "Name a colour, in one word."}]
spec = constrain.regex(r"[A-Za-z ]{3,12}\.?")

outputs = constrain.generate(
    model, prompt, spec, method="aligned", n=4, temperature=0.6, max_tokens=8, seed=0
)
for output in outputs:
    print(f"{output.text!r} after {output.stats.attempts} attempts")
    assert spec.matches(output.text) and output.is_complete
    assert output.log_weight is None  # exact samples need no weights
