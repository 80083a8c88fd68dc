"""Constrained Metropolis-Hastings: an output of masking, rewritten again and again.

python examples/mcmc.py
"""

from __future__ import annotations

import constrain

model = constrain.load_model()
prompt = [{"role": "user", "content": "What is 7 plus 5? Answer with one sentence."}]
spec = constrain.regex(r"[A-Z0-9][a-z0-9 +=,]{1,40}\.")

for steps in (0, 6):
    outputs = constrain.generate(model, prompt, spec, method="mcmc", steps=steps, n=3, max_tokens=16, seed=0)
    mean = sum(output.log_probability for output in outputs) / len(outputs)
    kept = sum(output.stats.accepted for output in outputs)
    print(f"{steps} steps, {kept} rewrites kept: log probability {mean:.1f} on average")
    for output in outputs:
        print(f"  {output.text!r}")
        assert spec.matches(output.text)
