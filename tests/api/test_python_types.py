"""Python types of every kind: what `python_type` allows is read, and what is written is allowed."""

from __future__ import annotations

import numpy as np
import pytest

import constrain
from constrain.grammars.types import type_schema
from tests.api.python_types import EXACT

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
