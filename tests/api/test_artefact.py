"""Saved compiled specs: what comes back, and what is refused."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import constrain

VOCABULARY = constrain.Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_token_ids=256)


class Colour(Enum):
    RED = "red"
    ONE = 1


SPECS = [
    constrain.regex("[a-c]+", flags="i"),
    constrain.choice(["x", "y", 1, None, [1, "1"]]),
    constrain.choice(Colour),
    constrain.json_schema({"type": "array", "items": {"type": "integer"}}, whitespace="compact"),
    constrain.python_type(list[int]),
    constrain.regex("a") | constrain.choice(["b"]) + constrain.regex("c*"),
]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_a_saved_spec_comes_back_with_the_same_masks(spec: constrain.Spec, tmp_path: Path) -> None:
    """Along random members, a loaded spec allows the same tokens as the one that was saved."""
    compiled = constrain.compile(spec, VOCABULARY)
    compiled.save(tmp_path / "spec")
    loaded = constrain.CompiledSpec.load(tmp_path / "spec", VOCABULARY)
    rows = constrain.allocate_token_bitmask(2, VOCABULARY.size)
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = compiled.matcher(), loaded.matcher()
        for byte in spec.sample(rng, max_bytes=40).encode():
            a.fill_next_token_bitmask(rows, 0)
            b.fill_next_token_bitmask(rows, 1)
            assert (rows[0] == rows[1]).all()
            assert a.accept_token(byte) and b.accept_token(byte)
        assert b.is_accepting()


def test_a_file_for_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """A file belongs to the vocabulary it was compiled for."""
    constrain.compile(SPECS[0], VOCABULARY).save(tmp_path / "spec")
    other = constrain.Vocabulary.from_tokens([b"a", None], eos_token_ids=1)
    with pytest.raises(constrain.ArtefactError, match="another vocabulary"):
        constrain.CompiledSpec.load(tmp_path / "spec", other)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Whatever is cut off or changed in a file, loading says so and does not crash."""
    path = tmp_path / "spec"
    constrain.compile(SPECS[0], VOCABULARY).save(path)
    good = path.read_text()
    document = json.loads(good)
    bad = [good[: len(good) // 2], "", "[]", "\x00", good.replace("a-c", "a-d")]
    bad += [json.dumps({**document, "version": 99}), json.dumps({**document, "content": 5})]
    for text in bad:
        path.write_text(text)
        with pytest.raises(constrain.ArtefactError):
            constrain.CompiledSpec.load(path, VOCABULARY)


def test_a_spec_that_is_no_text_is_not_saved(tmp_path: Path) -> None:
    """Specs made of grammar objects have no source to write."""
    spec = constrain.Spec.from_grammar(SPECS[0].grammar)
    with pytest.raises(constrain.ArtefactError):
        constrain.compile(spec, VOCABULARY).save(tmp_path / "spec")
    assert not list(tmp_path.iterdir())
