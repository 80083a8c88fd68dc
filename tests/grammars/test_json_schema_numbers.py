"""Bounded numbers: their automata against exact decimal arithmetic."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.grammars.json_schema.numbers import ANY_INTEGER, INTEGER, NUMBER, Bound, within
from tests.reference import patterns
from tests.strategies import fixed

_VALUES = [
    Decimal(v)
    for v in [
        "0",
        "1",
        "5",
        "9",
        "10",
        "19",
        "99",
        "100",
        "0.5",
        "0.05",
        "1.5",
        "1.55",
        "0.15",
        "151",
        "0.001",
        "9.5",
    ]
]


def _texts() -> list[str]:
    texts = []
    for sign, n_whole in itertools.product(("", "-"), (1, 2, 3)):
        for whole in map("".join, itertools.product("0159", repeat=n_whole)):
            if n_whole > 1 and whole[0] == "0":
                continue
            texts.append(sign + whole)
            texts += [
                f"{sign}{whole}.{''.join(fraction)}"
                for n in (1, 2)
                for fraction in itertools.product("0159", repeat=n)
            ]
    return texts


TEXTS = _texts()


def is_member(text: str, low: Bound, high: Bound, fraction: str) -> bool:
    """Is the plain decimal ``text`` within the bounds?"""
    value = Decimal(text)
    digits = text.partition(".")[2]
    if (fraction == "none" and "." in text) or (fraction == "zeros" and digits.strip("0")):
        return False
    if low is not None and (value < low[0] or (value == low[0] and low[1])):
        return False
    if high is not None and (value > high[0] or (value == high[0] and high[1])):
        return False
    return not (text.startswith("-") and value == 0 and low is not None and low[0] >= 0)


signed = st.builds(
    lambda value, sign: sign * value, st.sampled_from(_VALUES), st.sampled_from((1, -1, Decimal(-1)))
)
bounds = st.one_of(st.none(), st.tuples(signed, st.booleans()))


@fixed(60)
@given(bounds, bounds, st.sampled_from(["none", "zeros", "any"]))
def test_bounds_are_exact(low: Bound, high: Bound, fraction: str) -> None:
    """A plain decimal is taken exactly if it is within the bounds; -0 only where negative numbers are."""
    start = patterns.start(within(low, high, fraction))
    for text in TEXTS:
        taken = patterns.is_nullable(patterns.after(start, text.encode()))
        assert taken == is_member(text, low, high, fraction), text
    for text in ("01", "-", "1.", ".5", "1e", "00", "+1", "-01", "", "1.0.0", "--1", "0e1", "12e1"):
        assert not patterns.is_nullable(patterns.after(start, text.encode())), text


@fixed(60)
@given(bounds, bounds)
def test_exponents_never_leave_the_bounds(low: Bound, high: Bound) -> None:
    """A number with an exponent is taken only within the bounds, and always if the exponent alone says so."""
    start = patterns.start(within(low, high, "any"))

    def is_inside(value: Decimal) -> bool:
        return is_member(f"{value:f}", low, high, "any")

    for sign, mantissa, exponent in itertools.product(
        ("", "-"), ("1", "9", "1.0", "9.99", "5.01", "0", "0.5", "10"), range(-6, 7)
    ):
        written = (f"e{exponent}", f"E{exponent:+03}")
        for form in written:
            text = f"{sign}{mantissa}{form}"
            taken = patterns.is_nullable(patterns.after(start, text.encode()))
            assert not taken or is_inside(Decimal(text)), text
            ends = [Decimal(f"{sign}{edge}e{exponent}") for edge in ("1", "9.999999999")]
            if mantissa[0] in "159" and mantissa != "10" and all(map(is_inside, ends)):
                beyond = Decimal(f"{sign}1e{exponent + 1}")
                assert taken or not is_inside(beyond), text


@pytest.mark.parametrize("power", [1, 20, 100])
def test_large_bounds_are_exact(power: int) -> None:
    """Bounds with many digits are compared digit by digit."""
    pattern = within((Decimal(10**power - 1), False), (Decimal(10**power + 1), True), "any")
    minus = within((Decimal(-(10**power) - 1), True), (Decimal(1 - 10**power), False), "any")
    zeros = "0" * power
    for text in ("9" * power, f"1{zeros}", f"1{zeros}.5", f"1{zeros[:-1]}0.9999"):
        assert patterns.matches(pattern, text.encode())
        assert patterns.matches(minus, f"-{text}".encode())
    for text in ("9" * (power - 1) + "8.9", f"1{zeros[:-1]}1", f"1{zeros[:-1]}1.0", f"1{zeros}0", "0"):
        assert not patterns.matches(pattern, text.encode())
        assert not patterns.matches(minus, f"-{text}".encode())


def test_small_bounds_are_exact() -> None:
    """Bounds next to zero, as floats have them, are compared digit by digit."""
    pattern = within((Decimal("5e-324"), False), (Decimal("1e-300"), True), "any")
    assert patterns.matches(pattern, b"0." + b"0" * 323 + b"5")
    assert patterns.matches(pattern, b"0." + b"0" * 300 + b"9")
    assert not patterns.matches(pattern, b"0." + b"0" * 323 + b"4")
    assert not patterns.matches(pattern, b"0." + b"0" * 299 + b"1")
    assert not patterns.matches(pattern, b"0")


@pytest.mark.parametrize(
    ("text", "is_number", "is_integer", "is_any_integer"),
    [
        ("0", True, True, True),
        ("-0", True, True, True),
        ("12", True, True, True),
        ("1.0", True, False, True),
        ("1.00e3", True, False, True),
        ("1E+3", True, False, True),
        ("1e-3", True, False, False),
        ("-1.5", True, False, False),
        ("01", False, False, False),
        ("1.", False, False, False),
        (".5", False, False, False),
        ("1e", False, False, False),
        ("+1", False, False, False),
        ("", False, False, False),
        ("-", False, False, False),
    ],
)
def test_unbounded_numbers_are_those_of_json(
    text: str, is_number: bool, is_integer: bool, is_any_integer: bool
) -> None:
    """Numbers are those of RFC 8259, integers the digits alone, or with zeros and an exponent."""
    assert patterns.matches(NUMBER, text.encode()) == is_number
    assert patterns.matches(INTEGER, text.encode()) == is_integer
    assert patterns.matches(ANY_INTEGER, text.encode()) == is_any_integer


@pytest.mark.parametrize(
    "schema",
    [
        {"multipleOf": 33, "not": {"anyOf": [{"multipleOf": 6}, {"multipleOf": 7}, {"multipleOf": 8}]}},
        {"type": "integer", "not": {"anyOf": [{"multipleOf": 2.5}, {"multipleOf": 3}]}, "minimum": -40},
        {"type": "integer", "multipleOf": 1.5, "not": {"multipleOf": 9}},
        {"type": "integer", "multipleOf": 10, "not": {"multipleOf": 100}, "maximum": 500},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("integers", ["plain", "any"])
def test_several_divisors_of_integers(schema: dict[str, Any], integers: str) -> None:
    """Divisors that count and divisors that must not are one automaton of remainders."""
    schema = {"type": "number", **schema}
    spec = constrain.json_schema(schema, integers=integers)
    validator = jsonschema.Draft202012Validator(schema)
    for value in range(-1200, 1200):
        assert spec.matches(str(value)) == validator.is_valid(value)
        assert spec.matches(f"{value}.0") == (integers == "any" and validator.is_valid(value))
    assert not spec.matches("33.5")


def test_coprime_divisors_that_must_not_count() -> None:
    """Whether two divisors exclude each other is seen at once, and several are no product of automata."""
    schema = {
        "type": "integer",
        "multipleOf": 1001,
        "not": {"anyOf": [{"multipleOf": n} for n in (2, 3, 4, 8)]},
    }
    spec = constrain.json_schema(schema)
    assert [n for n in range(1, 8) if spec.matches(str(1001 * n))] == [1, 5, 7]
    with pytest.raises(constrain.EmptyLanguageError):
        constrain.json_schema({"type": "integer", "multipleOf": 1001, "not": {"multipleOf": 7}})
