"""Arithmetic that comes out: an expression over small numbers with a given value."""

import ast
import operator
from fractions import Fraction

import constrain

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def value_of(text: str) -> Fraction | None:
    """Return the exact value; ``None`` where something is divided by 0."""

    def evaluate(node: ast.expr) -> Fraction:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
        assert isinstance(node, ast.Constant)
        return Fraction(node.value)

    try:
        return evaluate(ast.parse(text, mode="eval").body)
    except ZeroDivisionError:
        return None


def makes_12(text: str) -> bool:
    """Asked of whole expressions."""
    return value_of(text) == 12


spec = constrain.regex(r"[1-9]([-+*/][1-9]){1,2}").where(makes_12)

model = constrain.load_model()
prompt = "Sums and products that make 12: 3*4, 5+7, 2*6, 9+3, 4+8, "
result = constrain.generate(model, prompt, spec, max_tokens=8, temperature=0.8, seed=0)
print(result.text, "=", value_of(result.text), f"({result.stats.check_calls} checks)")
assert value_of(result.text) == 12
