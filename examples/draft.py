"""Think first: the model works a task out in its own words, then writes the result in the asked-for form.

python examples/draft.py
"""

from __future__ import annotations

from dataclasses import dataclass

import constrain


@dataclass
class Result:
    answer: int


model = constrain.load_model()
prompt = [{"role": "user", "content": "A box holds 6 eggs. How many eggs are in 4 boxes?"}]

at_once = constrain.generate(model, prompt, Result, temperature=0, max_tokens=16)
print(f"at once: {at_once.value}, feasible mass {at_once.log_weight:.1f} (log)")

drafted = constrain.generate(
    model, prompt, Result, method="draft", k=2, draft_tokens=48, draft_temperature=0.5, max_tokens=16, seed=0
)
stats = drafted.stats.draft
for place, (text, weights) in enumerate(zip(stats.texts, stats.log_weights, strict=True)):
    chosen = " (chosen)" if place == stats.chosen else ""
    print(f"draft {place}{chosen}: {text!r}\n  feasible mass {weights[0]:.1f} (log)")
# A model of this size is often wrong; what is certain is the form.
print(f"with a draft: {drafted.value}")
assert isinstance(drafted.value, Result) and len(stats.texts) == 2
