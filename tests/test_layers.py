"""Imports point downwards only, heavy libraries load on demand, and ``import constrain`` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "grammars": ("constrain.grammars",),
    "tokenizer_index": (
        "constrain.grammars.bits",
        "constrain.grammars.recent",
        "constrain.grammars.errors",
        "constrain.grammars.ir",
        "constrain.grammars.limits",
        "constrain.grammars.recursion",
        "constrain.grammars.source",
        "constrain.tokenizer_index",
    ),
    "backends": (
        "constrain.backends",
        "constrain.compiled",
        "constrain.errors",
        "constrain.protocols",
        "constrain.tokenizer_index.mask",
        "constrain.tokenizer_index.vocabulary",
    ),
}
ON_DEMAND = ("torch", "transformers", "vllm", "llama_cpp", "openai", "gguf", "accelerate", "matplotlib")

needs_checkout = pytest.mark.skipif(not (ROOT / "grammars").is_dir(), reason="needs a source checkout")


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Yield the name, line and "runs when the module is loaded" of each import in the file ``path``."""
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(), str(path)), True)]
    while stack:
        node, at_load = stack.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}:{node.lineno}: relative import"
            yield node.module, node.lineno, at_load
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_load = False
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            stack += [(child, False) for child in node.body]
            stack += [(child, at_load) for child in node.orelse]
        else:
            stack += [(child, at_load) for child in ast.iter_child_nodes(node)]


def is_under(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@needs_checkout
@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_layers(folder: str) -> None:
    """A folder imports only from the layers below it."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name, line, _ in imports(path):
            if is_under(name, ("constrain",)):
                assert is_under(name, MAY_IMPORT[folder]), f"{path}:{line} imports {name}"


@needs_checkout
def test_backends_and_their_libraries_load_on_demand() -> None:
    """No module loads a backend or a model library when it is imported; only backends may."""
    forbidden = (*ON_DEMAND, "constrain.backends")
    for folder in ("constrain", "grammars", "tokenizer_index"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name, line, at_load in imports(path):
                assert not (at_load and is_under(name, forbidden)), f"{path}:{line} loads {name}"


@pytest.mark.parametrize("modules", ["constrain, constrain.grammars", "constrain.errors", "constrain.cli"])
def test_import_is_light(modules: str) -> None:
    """``import constrain``, its errors and its command line load no array, compiler or model library."""
    code = f"import sys, {modules}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "torch", "transformers", "numpy", "pydantic", "jsonschema"} & set(out.stdout.split())
