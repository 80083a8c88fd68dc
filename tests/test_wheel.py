"""The source archive and the wheel are whole: built, unpacked elsewhere and used without the checkout."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("constrain", "grammars", "tokenizer_index", "backends")
IGNORED = shutil.ignore_patterns(
    ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".venv", ".hypothesis"
)

pytestmark = pytest.mark.skipif(
    not all((ROOT / name).is_dir() for name in PACKAGES), reason="needs a source checkout"
)

SMOKE = """
import pathlib, sys, sysconfig
import constrain, constrain.grammars, constrain.tokenizer_index, constrain.backends
site = pathlib.Path(sysconfig.get_paths()["purelib"]).resolve()
for module in (constrain, constrain.grammars, constrain.tokenizer_index, constrain.backends):
    assert pathlib.Path(module.__file__).resolve().is_relative_to(site), module.__file__
for name in constrain.__all__:
    getattr(constrain, name)
spec = constrain.regex("[a-c]+") | constrain.json_schema({"type": "integer"})
assert spec.matches("abc") and spec.matches("-12") and not spec.matches("abd")
tokens = [b"a", b"b", b"d", b"12", b"-", None]
compiled = constrain.compile(spec, constrain.Vocabulary.from_tokens(tokens, eos_token_ids=[5]), cache=False)
matcher = compiled.matcher()
mask = constrain.allocate_token_bitmask(1, 6)
matcher.fill_next_token_bitmask(mask, 0)
assert int(mask[0][0]) == 0b011011, bin(int(mask[0][0]))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return what it printed; fail with all its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Paths of the source archive and of the wheel built from it."""
    pytest.importorskip("build", reason="needs the extra 'dev'")
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, folder / "checkout", ignore=IGNORED)
    out = folder / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, folder / "checkout", cwd=folder)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


def test_wheel_holds_every_module_under_one_name(archives: tuple[Path, Path]) -> None:
    """The wheel has the same Python files as the checkout and claims one top-level name."""
    names = {n for n in zipfile.ZipFile(archives[1]).namelist() if not n.split("/")[0].endswith(".dist-info")}
    assert {n.split("/")[0] for n in names} == {"constrain"}
    wanted = set()
    for folder in PACKAGES:
        prefix = "constrain" if folder == "constrain" else f"constrain/{folder}"
        for path in (ROOT / folder).rglob("*.py"):
            wanted.add(f"{prefix}/{path.relative_to(ROOT / folder).as_posix()}")
    assert {n for n in names if n.endswith(".py")} == wanted
    assert "constrain/py.typed" in names


def test_wheel_works_without_the_checkout(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Installed from the wheel, beside the unpacked source archive without its packages, everything loads and runs."""
    sdist, wheel = archives
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    for name in PACKAGES:
        shutil.rmtree(unpacked / name)
    assert (unpacked / "tests" / "test_wheel.py").is_file()

    # Dependencies come from this environment, by a path line, which does not bring its editable installs along.
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    purelib = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=tmp_path).strip()
    )
    paths = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *site.getsitepackages()}
    (purelib / "dependencies.pth").write_text("\n".join(sorted(paths)) + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall", wheel, cwd=tmp_path)

    run(python, "-c", SMOKE, cwd=unpacked)
    assert "check" in run(python.with_name("constrain"), "--help", cwd=unpacked)
    tests = ("tests/test_layers.py", "tests/test_packaging.py")
    assert " passed" in run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, cwd=unpacked)
