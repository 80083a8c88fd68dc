"""Independent parsers that ready grammars are compared with.

Each takes a text and returns whether it is right, or ``None`` where it says nothing about what the grammar
checks.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess
import warnings
from collections.abc import Callable
from typing import TypeAlias
from xml.parsers import expat

import pytest

from constrain.library import STANDARD_TYPEDEF_NAMES

Oracle: TypeAlias = Callable[[str], bool | None]


def json_oracle() -> Oracle:
    """Python's `json`, without the numbers that it adds to the standard."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    def accepts(text: str) -> bool:
        try:
            json.loads(text, parse_constant=refuse)
        except ValueError:
            return False
        return True

    return accepts


def csv_oracle() -> Oracle:
    """Python's `csv` in strict mode, with the RFC's rule that quotes stand in quoted fields only."""

    def accepts(text: str) -> bool:
        if re.search(r"\r(?!\n)", re.sub(r'"[^"]*"', "", text)) or re.search(
            r"[\0-\x08\x0b\x0c\x0e-\x1f]", text
        ):
            return False
        lines = io.StringIO(text, newline="")
        try:
            rows = list(csv.reader(lines, strict=True))
        except csv.Error:
            return False
        rest = text
        for row in rows:
            for field in row:
                quoted = '"' + field.replace('"', '""') + '"'
                written = quoted if rest.startswith('"') else field
                if not rest.startswith(written) or ('"' in field and written == field):
                    return False
                rest = rest[len(written) :].removeprefix(",")
            rest = rest.removeprefix("\r").removeprefix("\n")
        return not rest

    return accepts


def sql_oracle() -> Oracle:
    """SQLite: errors of syntax count, others don't.

    Some others, such as a table that exists already, end the reading of a statement. Whether the rest was read is
    known by a wrong symbol behind it.
    """
    syntax = re.compile(r"syntax error|incomplete input|unrecognized token|unknown join type")
    setup = "".join(f"CREATE TABLE {name} (a, b, c, d);" for name in ("t", "u", "v", "w"))

    def is_wrong(statement: str, *, is_empty: bool) -> bool | None:
        connection = sqlite3.connect(":memory:")
        try:
            if not is_empty:
                connection.executescript(setup)
            connection.execute(statement)
        except sqlite3.Error as error:
            return True if syntax.search(str(error)) else None
        finally:
            connection.close()
        return False

    def accepts_one(statement: str) -> bool | None:
        if not re.match(r"\s*explain\b", statement, re.IGNORECASE):
            # Nothing is run: it might attach or overwrite files.
            statement = "EXPLAIN QUERY PLAN " + statement
        verdicts = [is_wrong(statement, is_empty=is_empty) for is_empty in (False, True)]
        if True in verdicts:
            return False
        behind = statement.rstrip().rstrip(";") + "\n)"
        is_read = False in verdicts or any(is_wrong(behind, is_empty=is_empty) for is_empty in (False, True))
        return True if is_read else None

    def accepts(text: str) -> bool | None:
        statements, begin = [], 0
        for at, letter in enumerate(text + ";"):
            if letter == ";" and sqlite3.complete_statement((text + ";")[begin : at + 1]):
                statements.append(text[begin : at + 1])
                begin = at + 1
        blank = re.compile(r"(\s|;|--.*|/\*([^*]|\*(?!/))*(\*/|\Z))*")
        verdicts = [accepts_one(each) for each in (*statements, text[begin:]) if not blank.fullmatch(each)]
        return False if False in verdicts or not verdicts else None if None in verdicts else True

    return accepts


def graphql_oracle() -> Oracle:
    """graphql-core's parser."""
    graphql = pytest.importorskip("graphql", reason="needs the extra 'oracles'")

    def accepts(text: str) -> bool:
        try:
            graphql.parse(text, no_location=True)
        except graphql.GraphQLSyntaxError:
            return False
        return True

    return accepts


def xml_oracle() -> Oracle:
    """Expat; what depends on names in several places is no matter of the grammar."""
    codes = expat.errors.codes
    # Expat takes any number of version, and encodings that aren't the text's.
    odd = re.compile(
        r"""<\?xml\s+version\s*=\s*(['"])((?!1\.[0-9]+\1)|1\.[0-9]+\1\s+encoding\s*=\s*(?!(['"])utf-8\3))""",
        re.IGNORECASE,
    )
    names = {
        codes[message]
        for message in (expat.errors.XML_ERROR_TAG_MISMATCH, expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE)
    }

    def accepts(text: str) -> bool | None:
        if odd.match(text):
            return None
        parser = expat.ParserCreate()
        try:
            parser.Parse(text.encode("utf-8", "surrogatepass"), True)
        except expat.ExpatError as error:
            return None if error.code in names else False
        return True

    return accepts


def smiles_oracle() -> Oracle:
    """RDKit's reader, without its chemistry; rings are no matter of the grammar."""
    chem = pytest.importorskip("rdkit.Chem", reason="needs the extra 'oracles'")
    base = pytest.importorskip("rdkit.rdBase")
    base.LogToPythonStderr()
    options = chem.SmilesParserParams()
    options.sanitize = options.removeHs = options.allowCXSMILES = options.parseName = False

    def accepts(text: str) -> bool | None:
        if not text:
            return False
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            molecule = chem.MolFromSmiles(text, options)
        if (
            molecule is None and "ring closure" in said.getvalue().lower()
        ) or "unclosed ring" in said.getvalue():
            return None
        return molecule is not None

    return accepts


def pddl_oracle() -> Oracle:
    """The parsers of the package ``pddl``, without their checks of meaning.

    They know no durative actions, preferences, constraints, and some lesser parts; no such text is wrong by them.
    """
    domain = pytest.importorskip("pddl.parser.domain", reason="needs the package 'pddl'")
    problem = pytest.importorskip("pddl.parser.problem", reason="needs the package 'pddl'")
    lark = pytest.importorskip("lark")
    parsers = domain.DomainParser(), problem.ProblemParser()
    unknown = re.compile(
        r"[A-Z]|:(durative-action|constraints|preferences|length)|preference|is-violated|total-time|either|\(at \d|-\d|assign|\)\s*-(?!\s*number\b)"
    )

    # Their keywords may run into the next word.
    fused = re.compile(
        r"\b(define|domain|problem|action|metric|minimize|maximize|number)(?=[\w-])|\?\s|\d[a-z]"
    )

    def accepts(text: str) -> bool | None:
        if fused.search(text):
            return None
        try:
            parsers["problem" in text](text)
        except lark.UnexpectedInput:
            return None if unknown.search(re.sub(";.*", "", text)) else False
        except Exception:  # noqa: BLE001 (its checks of meaning raise anything)
            return None
        return True

    return accepts


def python_oracle() -> Oracle:
    """`ast.parse`: the parser alone, without the checks of names and places that the compiler makes later."""

    def accepts(text: str) -> bool | None:
        if text[:1] in (" ", "\t", "\f"):  # An indented first line.
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ast.parse(text, feature_version=(3, 11))
            except (SyntaxError, ValueError):
                return False
        return True

    return accepts


# Early errors of JavaScript that are no syntax, by what Node calls them.
_EARLY = re.compile(
    r"already been declared|Invalid (left-hand|destructuring|shorthand|regular)|Undefined label|Illegal (return|break|continue|newline|'use)"
    r"|Label .* (already|undeclared)|Malformed arrow|Missing initializer|Delete of|may not (have|be)|must be|Duplicate|is only valid"
    r"|not allowed|Unexpected (eval|strict|reserved)|super|private|Private|constructor|Export|export|unparenthesized|Lexical"
)
_NODE = """
const vm = require("vm"), lines = require("readline").createInterface({ input: process.stdin });
const errors = (make) => { try { make(); return null } catch (error) { return String(error.message) } };
lines.on("line", (line) => {
  const text = JSON.parse(line);
  const found = [
    errors(() => new vm.Script(text)),
    errors(() => new vm.SourceTextModule(text)),
    errors(() => new vm.Script("(async function () {" + text + "\\n})")),
  ];
  process.stdout.write(JSON.stringify(found) + "\\n");
});
"""


def javascript_oracle() -> Oracle:
    """Node's parser: a script, a module, or the body of an asynchronous function."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    process = subprocess.Popen(
        [node, "--no-warnings", "--experimental-vm-modules", "-e", _NODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    atexit.register(process.kill)
    assert process.stdin is not None and process.stdout is not None
    source, answers = process.stdin, process.stdout

    def accepts(text: str) -> bool | None:
        source.write(json.dumps(text) + "\n")
        source.flush()
        found = json.loads(answers.readline())
        if None in found:
            return True
        return None if any(_EARLY.search(error) for error in found) else False

    return accepts


def go_oracle() -> Oracle:
    """``gofmt``, without the checks of import paths and of the numbers of things."""
    gofmt = shutil.which("gofmt")
    if gofmt is None:
        pytest.skip("needs gofmt")
    beyond = re.compile(r"invalid import path|expected (at most )?\d expression|variadic|can only use \.\.\.")

    def accepts(text: str) -> bool | None:
        # A package clause in front keeps it from reading parts of files.
        done = subprocess.run(
            [gofmt, "-e"], check=False, input=text, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode == 0:
            return True if re.search(r"\bpackage\b", text) else None
        return None if beyond.search(done.stderr) else False

    return accepts


C_TYPES = ("T",)


def c_oracle() -> Oracle:
    """pycparser, told the typedef names; it reads neither directives, nor comments, nor most GNU extensions."""
    pycparser = pytest.importorskip("pycparser", reason="needs the extra 'oracles'")
    beyond = re.compile(r"#|//|/\*|\.\.\. |__attribute__|__asm__|typeof|__extension__")
    known = "".join(f"typedef int {name};\n" for name in sorted({*STANDARD_TYPEDEF_NAMES, *C_TYPES}))
    # Its strings may have escapes that C doesn't.
    escapes = re.compile(r"""\\(?!['"?\\abefnrtv0-7xuU\r\n])""")

    def accepts(text: str) -> bool | None:
        if beyond.search(text) or escapes.search(text):
            return None
        try:
            pycparser.CParser().parse(known + text)
        except pycparser.c_parser.ParseError:
            return False
        return True

    return accepts


ORACLES: dict[str, Callable[[], Oracle]] = {
    "c": c_oracle,
    "csv": csv_oracle,
    "go": go_oracle,
    "graphql": graphql_oracle,
    "javascript": javascript_oracle,
    "json": json_oracle,
    "pddl": pddl_oracle,
    "python": python_oracle,
    "smiles": smiles_oracle,
    "sql": sql_oracle,
    "xml": xml_oracle,
}
