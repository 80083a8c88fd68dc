"""The wheel's package list, the pins and the house files agree with the checkout."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not ((ROOT / "pyproject.toml").is_file() and (ROOT / "grammars").is_dir()),
    reason="needs a source checkout",
)


def test_every_package_folder_is_listed() -> None:
    """Each folder with an ``__init__.py`` is installed: none is missing from the wheel, none is stale."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = set()
    for package, folder in config["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *inner)))
    assert set(config["packages"]) == found


def test_every_data_file_is_listed() -> None:
    """Files that are not Python code reach the wheel, since each matches a pattern of ``package-data``."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    missing = []
    for package, folder in config["package-dir"].items():
        patterns = config["package-data"].get(package, [])
        for path in (ROOT / folder).rglob("*"):
            inner = path.relative_to(ROOT / folder)
            ignored = path.suffix in (".py", ".pyc", ".nbi", ".nbc") or "__pycache__" in inner.parts
            if path.is_file() and not ignored and not any(inner.match(p) for p in patterns):
                missing.append(str(path.relative_to(ROOT)))
    assert not missing


def test_constraints_satisfy_the_ranges() -> None:
    """Every version that the set-up pins lies inside the range that the package declares."""
    requirements = pytest.importorskip("packaging.requirements", reason="needs the package 'packaging'")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    pins = dict(
        line.split("==")
        for line in (ROOT / "scripts" / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    for text in declared:
        requirement = requirements.Requirement(text)
        if requirement.name in pins:
            assert requirement.specifier.contains(pins[requirement.name]), (
                f"{text} against {pins[requirement.name]}"
            )


def test_readme_commands_exist() -> None:
    """The two commands of the README are there, one line each, and CI calls the second one."""
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^sh (scripts/\w+\.sh)$", readme, re.MULTILINE)
    assert commands[:2] == ["scripts/demo.sh", "scripts/test.sh"]
    assert all((ROOT / command).is_file() for command in commands)
    assert "sh scripts/test.sh" in (ROOT / ".ci" / "run").read_text()


def test_links_of_the_documents_lead_somewhere() -> None:
    """Every relative link in the README, the guides and the folder ``docs`` names an existing file."""
    broken = []
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "changelog.d").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
            if "://" not in target and not (document.parent / target).exists():
                broken.append(f"{document.relative_to(ROOT)}: {target}")
    assert not broken
