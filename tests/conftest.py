"""Settings and places shared by the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before NumPy, Numba or torch is imported: several compute threads on few cores wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Tests use no network: a model hub that is asked by mistake fails at once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with test data too large for the repository: ``CONSTRAIN_SHARED``, or ``../shared``."""
    folder = Path(os.environ.get("CONSTRAIN_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is missing (set CONSTRAIN_SHARED)")
    return folder


@pytest.fixture(scope="session")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ``tokenizer.json``: byte-level, one token a byte, and an end token with id 256."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra 'hf'")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={letter: k for k, letter in enumerate(alphabet)}, merges=[])
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<|im_end|>"])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path
