"""Text in the shape of a regex, and one of several choices.

python examples/regex_and_choice.py
"""

from __future__ import annotations

import re

import constrain

model = constrain.load_model()

date = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
result = constrain.generate(
    model,
    [{"role": "user", "content": "On which date did people first land on the Moon? Answer as YYYY-MM-DD."}],
    constrain.regex(date),
    max_tokens=16,
    temperature=0.0,
)
print("date:  ", result.text, f"({result.finish_reason}, log probability {result.log_probability:.1f})")
assert re.fullmatch(date, result.text)

questions = ["Is Paris in France?", "Is the Sun colder than ice?", "Do fish live in water?"]
prompts = [[{"role": "user", "content": f"{question} Answer yes or no."}] for question in questions]
answers = constrain.generate(model, prompts, constrain.choice(["yes", "no"]), max_tokens=4, temperature=0.0)
for question, answer in zip(questions, answers, strict=True):
    print(f"{question:28} {answer.value}")
    assert answer.value in ("yes", "no")

# A mistake in a pattern says where it is.
try:
    constrain.regex(r"(\d{4}-\d{2}")
except constrain.SpecError as error:
    print(error)
