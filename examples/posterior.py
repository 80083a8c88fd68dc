"""Weighted sampling: outputs that follow the model itself, conditioned on a constraint.

python examples/posterior.py
"""

from __future__ import annotations

import math

import constrain

model = constrain.load_model()
prompt = [{"role": "user", "content": "What is 7 plus 5? Answer with a number."}]
spec = constrain.regex(r"[^\n]*[0-9]+\.?")


def prefers_short(text: str, is_complete: bool) -> float:
    """Make each character half as likely."""
    return -math.log(2.0) * len(text)


for name, potential in (("the model", None), ("short answers preferred", prefers_short)):
    posterior = constrain.generate(
        model, prompt, spec, method="smc", particles=16, potential=potential, max_tokens=24, seed=0
    )
    length = posterior.expectation(lambda one: len(one.text))
    print(f"{name}: {length:.1f} characters on average, most probable {posterior.map().text!r}")
    print(f"  log of the total: {posterior.log_normalizer:.2f}")
    assert all(spec.matches(one.text) for one in posterior.particles if one.is_complete)

results = constrain.generate(model, prompt, spec, method="rejection", max_tokens=24, n=16, seed=0)
checks = sum(one.stats.checks for one in results) / sum(len(one.token_ids) for one in results)
mean = sum(math.exp(one.log_weight) for one in results) / len(results)
print(f"by rejection: {checks:.1f} checks a token, log of the total: {math.log(mean):.2f}")
