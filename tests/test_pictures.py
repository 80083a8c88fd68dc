"""The script that draws the documentation's pictures runs, and draws those that the pages show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_pictures_of_methods(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, ROOT / "docs/pictures/methods.py", "--samples", "8", "--folder", tmp_path],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = set()
    for page in (ROOT / "docs/methods").glob("*.md"):
        shown |= set(re.findall(r"\]\(\.\./pictures/(\w+\.svg)\)", page.read_text(encoding="utf-8")))
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == shown == {path.name for path in (ROOT / "docs/pictures").glob("*.svg")}
    assert all((tmp_path / name).read_text(encoding="utf-8").startswith("<?xml") for name in drawn)
