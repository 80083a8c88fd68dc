"""JSON that passes a validator: fields that must fit each other, which no JSON Schema can say."""

import json
import re
from datetime import date

import constrain

SCHEMA = {
    "type": "object",
    "properties": {
        "guest": {"type": "string", "pattern": "^[A-Z][a-z]{1,10}$"},
        "arrives": {"type": "string", "format": "date"},
        "leaves": {"type": "string", "format": "date"},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30},
    },
    "required": ["guest", "arrives", "leaves", "nights"],
    "additionalProperties": False,
}


def begins_well(text: str) -> bool:
    """Asked of beginnings: is the stay one of 1 to 30 nights, as far as can be told?"""
    days = [date.fromisoformat(day) for day in re.findall(r'"(\d{4}-\d\d-\d\d)"', text)]
    return len(days) < 2 or 1 <= (days[1] - days[0]).days <= 30


def is_consistent(text: str) -> bool:
    """Asked of whole outputs: are there as many nights as the dates say?"""
    booking = json.loads(text)
    stay = date.fromisoformat(booking["leaves"]) - date.fromisoformat(booking["arrives"])
    return stay.days == booking["nights"]


spec = (
    constrain.json_schema(SCHEMA, whitespace="compact").where(begins_well, when="token").where(is_consistent)
)

model = constrain.load_model()
prompt = [
    {"role": "user", "content": "Anna arrives on 2026-03-04 and leaves on 2026-03-07. Her booking as JSON."}
]
result = constrain.generate(model, prompt, spec, max_tokens=64, temperature=0.7, seed=0)
print(result.text)
print(result.stats.check_calls, "checks,", result.stats.backtracks, "times taken back")
assert is_consistent(result.text) and spec.matches(result.text)
