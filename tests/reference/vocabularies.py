"""Vocabularies for tests: small ones made here, and real ones from the shared folder."""

from __future__ import annotations

import os
import pathlib
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import constrain

_ALL_BYTES = tuple(bytes([b]) for b in range(256))


@dataclass(frozen=True, slots=True, repr=False)
class TokenList:
    """The arguments of `Vocabulary.from_tokens`.

    Parameters
    ----------
    tokens : tuple of bytes or None
    eos_token_ids : tuple of int
    vocab_size : int or None
    """

    tokens: tuple[bytes | None, ...]
    eos_token_ids: tuple[int, ...]
    vocab_size: int | None = None

    def __repr__(self) -> str:
        """Return how to make it again, with runs of all bytes as such."""
        shown, i = list[str](), 0
        while i < len(self.tokens):
            if self.tokens[i : i + 256] == _ALL_BYTES:
                shown.append("*(bytes([b]) for b in range(256))")
                i += 256
            else:
                shown.append(repr(self.tokens[i]))
                i += 1
        return f"TokenList(({', '.join(shown)},), {self.eos_token_ids}, {self.vocab_size})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Tell Hypothesis, which prints dataclasses in its own way, to use ``repr``."""
        printer.text(repr(self))

    @property
    def size(self) -> int:
        """Width of the logits."""
        return len(self.tokens) if self.vocab_size is None else self.vocab_size

    def build(self) -> constrain.Vocabulary:
        """Return the vocabulary."""
        return constrain.Vocabulary.from_tokens(
            self.tokens, eos_token_ids=list(self.eos_token_ids), vocab_size=self.vocab_size
        )


def one_byte_per_token() -> TokenList:
    """Return 256 tokens of one byte each, then the end token."""
    return TokenList((*(bytes([b]) for b in range(256)), None), (256,))


def with_all_bytes(words: Sequence[bytes | None], *, vocab_size: int | None = None) -> TokenList:
    """Return ``words``, then every single byte, then the end token."""
    tokens = (*words, *(bytes([b]) for b in range(256)), None)
    return TokenList(tokens, (len(tokens) - 1,), vocab_size)


def shared_folder() -> pathlib.Path:
    """Return the folder of real data; skip the test where there is none."""
    named = os.environ.get("CONSTRAIN_SHARED")
    folder = pathlib.Path(named) if named else pathlib.Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("no shared data folder beside the checkout (set CONSTRAIN_SHARED to its place)")
    return folder


@cache
def tokenizer_file(name: str) -> pathlib.Path:
    """Return ``tokenizer.json`` of a real tokenizer, unpacked once per run; skip where it is missing."""
    archive = shared_folder() / "data" / "tokenizers" / f"{name}.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no tokenizer archive {archive.name} in the shared data folder")
    folder = pathlib.Path(tempfile.gettempdir()) / "constrain-test-tokenizers"
    path = folder / name / "tokenizer.json"
    if not path.is_file():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            with tarfile.open(archive) as packed:
                packed.extractall(fresh, filter="data")
            (folder / name).mkdir(exist_ok=True)
            for file in (pathlib.Path(fresh) / name).iterdir():
                file.replace(folder / name / file.name)
    return path


@cache
def llama() -> constrain.Vocabulary:
    """Return the vocabulary of Llama 3.1 (128,256 ids); skip where it is missing."""
    path = tokenizer_file("llama3_1")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|eot_id|>")
    return constrain.Vocabulary.from_transformers(tokenizer)
