"""The benchmark scripts run on this project alone, and their documents are valid by an independent validator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs a source checkout")


def run(script: str, *arguments: str | Path) -> str:
    """Run a script and return what it printed."""
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        cwd=BENCHMARKS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "schemas").glob("*.json")), ids=lambda path: path.stem)
def test_documents_are_valid(path: Path) -> None:
    """Each document of the benchmark is valid under its schema, formats included."""
    import jsonschema

    entry = json.loads(path.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(entry["schema"], format_checker=jsonschema.FormatChecker())
    assert entry["instances"]
    for document in entry["instances"]:
        validator.validate(document)


def test_masks_benchmark_runs(byte_tokenizer: Path, tmp_path: Path) -> None:
    """``masks.py`` leads this engine through every document of the schemas it is given, and writes its figures."""
    figures = tmp_path / "figures.json"
    printed = run(
        "masks.py", "--tokenizer", byte_tokenizer, "--engines", "constrain", "--schemas", "person,weather_call",
        "--repeat", "1", "--json", figures,
    )  # fmt: skip
    assert "2 of 2 schemas" in printed
    by_schema = json.loads(figures.read_text())
    assert set(by_schema) == {"person", "weather_call"}
    assert all(by["constrain"]["cold"] and by["constrain"]["warm"] for by in by_schema.values())


def test_grammars_benchmark_runs(byte_tokenizer: Path) -> None:
    """``grammars.py`` reads every ready grammar and leads this engine through the two programs."""
    printed = run(
        "grammars.py", "--tokenizer", byte_tokenizer, "--engines", "constrain", "--repeat", "1", "--tokens", "300"
    )  # fmt: skip
    assert "javascript" in printed and "c, 300 tokens: constrain-lm" in printed
    assert "matcher states" in printed


def test_cold_start_benchmark_runs(byte_tokenizer: Path) -> None:
    """``cold_start.py`` reaches the first mask in a fresh process."""
    printed = run("cold_start.py", "--tokenizer", byte_tokenizer, "--engines", "constrain", "--repeat", "1")
    assert "constrain-lm" in printed


def test_apply_benchmark_runs() -> None:
    """``apply.py`` applies masks to NumPy and torch logits."""
    pytest.importorskip("torch", reason="needs the extra 'hf'")
    assert "bfloat16" in run(
        "apply.py", "--engines", "constrain", "--vocab-size", "1000", "--rows", "2", "--repeat", "2"
    )
