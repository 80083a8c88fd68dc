"""Sketches: text of a system that shows no probabilities, brought into the asked-for form.

python examples/sketch.py
"""

from __future__ import annotations

import constrain

ANSWERS = {
    "valid": "2031-04-15",
    "nearly": "2031-4-15",
    "talkative": "Sure! The contract ends on 15 April 2031.",
}


def black_box(prompt: str) -> str:
    """Stand for a model behind an interface."""
    return next(answer for kind, answer in ANSWERS.items() if kind in prompt)


model = constrain.load_model()
spec = constrain.regex(r"20\d\d-(0[1-9]|1[0-2])-([0-2]\d|3[01])")
prompts = [f"When does the contract end? (a {kind} answer)" for kind in ANSWERS]

for rewrite in ("model", "edits"):
    outputs = constrain.generate(
        model,
        prompts,
        spec,
        method="sketch",
        black_box=black_box,
        rewrite=rewrite,
        temperature=0,
        max_tokens=16,
    )
    for output in outputs:
        sketch = output.stats.sketch
        how = "kept" if sketch.is_kept else f"by {rewrite}"
        print(f"{sketch.text!r} -> {output.text!r} ({how})")
        assert spec.matches(output.text)
    assert outputs[0].text == ANSWERS["valid"]  # a member is left as it is
