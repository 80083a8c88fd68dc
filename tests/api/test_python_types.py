"""Python types of every kind: what `python_type` allows is read, and what is written is allowed."""

from __future__ import annotations

import numpy as np
import pytest

import constrain
from constrain.grammars.types import type_schema
from tests.api.python_types import EXACT, LOOSE
from tests.api.table_model import TableModel

N_SAMPLES = 25
LOSSY = {"Any", "secret"}
"""What is written isn't the object again: stars for a secret, null for a number that is too large."""


@pytest.mark.parametrize("kind", EXACT)
def test_members_of_a_type_are_read_and_written(kind: str) -> None:
    """Every member of a type's spec is read as an object, and the object is written as a member."""
    tp = EXACT[kind]
    read = type_schema(tp)
    assert read.is_exact
    spec = constrain.python_type(tp)
    rng = np.random.default_rng(len(kind))
    for _ in range(N_SAMPLES):
        text = spec.sample(rng, max_bytes=400)
        value = spec.parse(text)
        written = read.dump(value)
        assert spec.matches(written), (text, written)
        assert kind in LOSSY or spec.parse(written) == value


@pytest.mark.parametrize("kind", LOOSE)
def test_validators_are_checks(kind: str) -> None:
    """Where a schema doesn't say everything, members are the texts that the type reads."""
    tp = LOOSE[kind]
    read = type_schema(tp)
    assert not read.is_exact
    spec = constrain.python_type(tp)
    assert spec == constrain.python_type(tp)
    rng = np.random.default_rng(3)
    for _ in range(5):
        text = spec.sample(rng, max_bytes=200)
        assert read.parse(text) == spec.parse(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("field validator", '{"n":3}'),
        ("model validator", '{"low":3,"high":2}'),
        ("validator in a list", '[{"n":2},{"n":1}]'),
        ("dataclass with __post_init__", '{"n":1}'),
        ("attrs with a validator", '{"n":10}'),
        ("Predicate", "-1"),
        ("Decimal with bounds", "1.234"),
        ("re.Pattern", '"("'),
        ("function as discriminator", '{"kind":"cat","lives":8}'),
    ],
)
def test_what_a_validator_refuses_is_no_member(kind: str, text: str) -> None:
    """A text that fits the schema and that a validator refuses is no member."""
    assert not constrain.python_type(LOOSE[kind]).matches(text)


@pytest.mark.parametrize(
    "kind", ["field validator", "model validator", "attrs with a validator", "re.Pattern"]
)
def test_generate_returns_objects_that_validators_accept(kind: str) -> None:
    """Outputs that a validator refuses are drawn again, within the budget."""
    tokens = [bytes([byte]) for byte in range(32, 127)]
    model = TableModel(tokens)
    for result in constrain.generate(model, "a", LOOSE[kind], max_tokens=90, seed=1, n=3):
        assert result.is_complete
        assert type_schema(LOOSE[kind]).parse(result.text) == result.value
