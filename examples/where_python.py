"""Python whose names are defined: an expression that reads nothing but the given variables and functions."""

import re

import constrain

KNOWN = ("price", "amount", "tax", "round", "max")


def names_are_known_so_far(text: str) -> bool:
    """Asked of every beginning: all names are known, and the one being written begins like one."""
    *whole, last = re.findall(r"[a-z]+", text) or [""]
    if not text[-1:].isalpha():
        whole.append(last)
        last = ""
    return all(name in KNOWN or not name for name in whole) and any(name.startswith(last) for name in KNOWN)


def names_are_known(text: str) -> bool:
    """Asked of whole expressions: the last name is no mere beginning."""
    return names_are_known_so_far(text + " ")


expression = constrain.regex(r"[a-z]{2,8}(\([a-z]{2,8}\)| [*+-] ([a-z]{2,8}|[0-9]{1,2})){1,3}")
spec = expression.where(names_are_known_so_far, when="token").where(names_are_known)

model = constrain.load_model()
prompt = "# The total cost is the price times the amount, plus tax.\ntotal = "
result = constrain.generate(model, prompt, spec, max_tokens=16, temperature=0.7, seed=0)
print(result.text)
print(result.stats.check_calls, "checks,", result.stats.backtracks, "times taken back")
assert set(re.findall("[a-z]+", result.text)) <= set(KNOWN)
