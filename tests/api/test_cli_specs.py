"""Every kind of spec on the command line, and pictures by the ending of their name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.api.test_cli import run, run_json

TOOLS = [
    {"type": "function", "function": {"name": "w", "parameters": {"properties": {"a": {"type": "integer"}}}}}
]
TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
    "triggers": ["<f"],
}
INDENTED = """start: stmt+
stmt: "pass" NL | "if" "x" ":" NL INDENT stmt+ DEDENT | "(" "x" ")" NL
NL: /(\\r?\\n[ ]*)+/
%declare INDENT DEDENT
%ignore " "
"""
LAYOUT = ("--indentation", "NL,INDENT,DEDENT")
CALL = '<tool_call>\n{"name": "w", "arguments": {"a": 3}}\n</tool_call>'


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "tools": json.dumps(TOOLS),
        "request": json.dumps({"model": "m", "tools": TOOLS}),
        "tag": json.dumps(TAG),
        "grammar": INDENTED,
        "plain": 'start: A | AB\nA: "a"\nAB: "ab"\n%ignore " "\n',
        "empty": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    [
        (["--library", "json"], "[1, 2]", "[1, 2"),
        (["--library", "sql"], "SELECT 1", "SELECT FROM"),
        (["--tools", "tools"], f"text {CALL}", CALL.replace("3", "x")),
        (["--tools", "request"], f"text {CALL}", CALL.replace("w", "x")),
        (["--tools", "tools", "--tool-choice", "w", "--no-parallel"], CALL, f"{CALL}\n{CALL}"),
        (
            ["--tools", "tools", "--template", "llama_function"],
            '<function=w>{"a":1}</function>',
            "<function=x>",
        ),
        (["--tools", "tools", "--reasoning", "required"], f"<think>hm</think>{CALL}", CALL),
        (["--tools", "tools", "--whitespace", "compact"], CALL.replace(": 3", ":3"), CALL),
        (["--structural-tag", "tag"], "a <f>3</f>", "a <f>x"),
        (["--grammar", "grammar", *LAYOUT], "if x:\n  pass\npass\n", "if x:\npass\n"),
        (["--grammar", "grammar", *LAYOUT, "--brackets", "()"], "(x\n)\n", "if x:\npass\n"),
        (["--grammar", "grammar", *LAYOUT, "--tab", "4"], "pass\n", "pas\n"),
        (["--grammar", "plain", "--lexing", "any", "--max-ignored", "0"], " " * 200 + "ab", "b"),
    ],
)
def test_kinds_of_specs(files: dict[str, Path], options: list[str], good: str, bad: str) -> None:
    """Good texts have status 0, bad ones 1, and machines are told the same."""
    given: list[Any] = [files.get(option, option) for option in options]
    assert run("explain", *given, good).exit_code == 0
    assert run_json("explain", *given, good)["ok"] is True
    assert run("explain", *given, bad).exit_code == 1
    document = run_json("explain", *given, bad, status=1)
    assert document["ok"] is False
    assert document["expected"] or document["offset"] < len(bad.encode())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--library", "nope"], "no ready grammar 'nope'"),
        (["--tools", "plain"], "is not JSON"),
        (["--tools", "tag"], "list of tools"),
        (["--tools", "empty"], "is not JSON"),
        (["--tools", "tools", "--template", "nope"], "not known"),
        (["--tools", "tools", "--tool-choice", "nope"], "names no tool"),
        (["--structural-tag", "tools"], "expected an object"),
        (["--structural-tag", "empty"], "not JSON"),
        (["--library", "json", "--start", "value"], "doesn't apply"),
        (["--regex", "a", "--template", "qwen"], "doesn't apply"),
        (["--grammar", "plain", "--lexing", "nope"], "lexing"),
        (["--grammar", "grammar", "--indentation", "NL,INDENT"], "three names"),
        (["--grammar", "grammar", "--tab", "4"], "goes with"),
        (["--grammar", "grammar", *LAYOUT, "--brackets", "("], "pairs"),
        (["--library", "json", "--tools", "tools"], "not several"),
    ],
)
def test_wrong_specs(files: dict[str, Path], options: list[str], message: str) -> None:
    result = run("explain", *(files.get(option, option) for option in options), "text")
    assert result.exit_code == 2
    words = " ".join(result.output.replace("│", " ").split())
    assert message in words


def test_pictures_by_the_ending_of_their_name(files: dict[str, Path], tmp_path: Path) -> None:
    """``.svg`` is an SVG document, ``.html`` a page, anything else an error before any work."""
    drawing = tmp_path / "a.svg"
    document = run_json("show", "--library", "json", "-o", drawing)
    assert document["bytes"] == drawing.stat().st_size
    root = ElementTree.parse(drawing).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"member", "STRING", "true", ":"} <= texts
    anchors = {part.get("id") for part in root.iter("{http://www.w3.org/2000/svg}g")}
    links = {
        part.get("{http://www.w3.org/1999/xlink}href") for part in root.iter("{http://www.w3.org/2000/svg}a")
    }
    assert links and {(link or "").removeprefix("#") for link in links} <= anchors
    # Every picture is inside the document's own size, below the one before.
    bottom = 0.0
    for picture in root.iter("{http://www.w3.org/2000/svg}svg"):
        if picture is not root:
            assert float(picture.get("y", "0")) >= bottom
            bottom = float(picture.get("y", "0")) + float(picture.get("height", "0"))
            assert float(picture.get("width", "0")) < float(root.get("width", "0"))
    assert bottom <= float(root.get("height", "0"))
    page = tmp_path / "a.html"
    assert run("show", "--tools", files["tools"], "-o", page).exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    result = run("show", "--library", "json", "-o", tmp_path / "a.pdf")
    assert result.exit_code == 2
    assert not (tmp_path / "a.pdf").exists()
