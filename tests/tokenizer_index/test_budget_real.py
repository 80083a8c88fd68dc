"""Costs and budgets of real schemas with a vocabulary of 128,256 tokens."""

from __future__ import annotations

import gzip
import json
import pathlib
import random
from collections.abc import Iterator

import numpy as np
import pytest

import constrain
from constrain.tokenizer_index.budget import Budget
from tests.reference.vocabularies import llama

_N_SCHEMAS = 24


def _compiled(shared: pathlib.Path, vocabulary: constrain.Vocabulary) -> Iterator[constrain.CompiledSpec]:
    path = shared / "data" / "maskbench_dev.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is missing")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = list(lines)
    n = 0
    for line in random.Random(4).sample(rows, 3 * _N_SCHEMAS):
        try:
            yield constrain.compile(constrain.json_schema(json.loads(line)["schema"]), vocabulary)
        except (constrain.UnsupportedFeatureError, constrain.EmptyLanguageError):
            continue
        n += 1
        if n == _N_SCHEMAS:
            return


def _ids(row: np.ndarray, vocabulary: constrain.Vocabulary) -> list[int]:
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return [t for t in np.flatnonzero(bits).tolist() if t not in vocabulary.eos_token_ids]


def test_minimum_is_mostly_exact(shared: pathlib.Path) -> None:
    """The least number of tokens is found, with proof, for at least 80 % of real schemas."""
    vocabulary = llama()
    found = []
    for compiled in _compiled(shared, vocabulary):
        # On a busy machine half a second of the clock may be little work.
        budget = Budget(compiled.arena, vocabulary, seconds=4)
        bound = budget.cost(compiled.arena.start)
        least = budget.min_tokens(compiled.arena.start)
        assert 0 <= least <= bound
        found.append(least.is_exact)
    assert np.mean(found) >= 0.8


@pytest.mark.parametrize("favourite", [b" ", b"1", b"[", b'"'])
def test_outputs_end_in_time(shared: pathlib.Path, favourite: bytes) -> None:
    """From the bound upwards budgets are kept, also by one who likes blanks, digits, brackets or quotes."""
    vocabulary = llama()
    liked = [t for t, data in enumerate(vocabulary.tokens) if data and data.strip(favourite) == b""]
    rng = random.Random(6)
    for compiled in _compiled(shared, vocabulary):
        matcher = compiled.matcher()
        remaining = compiled.budget(compiled.arena).cost(compiled.arena.start) + 1 + rng.choice((0, 2, 9))
        if remaining > 120:
            continue
        bitmask = constrain.allocate_token_bitmask(1, vocabulary.size)
        spelled = b""
        while True:
            matcher.fill_budget_bitmask(bitmask, 0, remaining=remaining)
            choices = _ids(bitmask[0], vocabulary)
            if not choices:
                assert matcher.is_accepting(), f"dead end with {remaining} tokens left"
                break
            assert remaining > 1
            allowed = [t for t in liked if (int(bitmask[0, t >> 5]) >> (t & 31)) & 1]
            token_id = allowed[-1] if allowed else rng.choice(choices)
            assert matcher.accept_token(token_id)
            spelled += vocabulary.token_bytes(token_id) or b""
            remaining -= 1
        assert remaining >= 1
        assert compiled.spec.matches(spelled)
