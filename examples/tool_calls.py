"""Tools that a model may call: free text, and calls that always fit the tools' signatures.

python examples/tool_calls.py
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

import constrain


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Return the weather of a city."""
    return f"21 degrees {unit} in {city}"


def set_timer(minutes: Annotated[int, Field(ge=1, le=120)]) -> str:
    """Set a timer."""
    return f"a timer of {minutes} minutes"


TOOLS = {"get_weather": get_weather, "set_timer": set_timer}
MESSAGES = [{"role": "user", "content": "What is the weather like in Paris? Call a tool."}]

# In whatever text the model writes, a call begins at "<tool_call>".
free = constrain.tool_calls(TOOLS.values())
print(
    free.parse('Let me look.\n<tool_call>\n{"name": "set_timer", "arguments": {"minutes": 3}}\n</tool_call>')
)
assert not free.matches('<tool_call>\n{"name": "set_timer", "arguments": {"minutes": "3"}}\n</tool_call>')

# A small model needs to be told that it must call one, here exactly one.
model = constrain.load_model()
spec = constrain.tool_calls(TOOLS.values(), tool_choice="required", parallel=False, whitespace="compact")
result = constrain.generate(model, MESSAGES, spec, max_tokens=80, temperature=0.0)
print(result.text)
(call,) = result.value.calls
print(call.name, "->", TOOLS[call.name](**call.arguments))
