"""The spec of a command: from a file, or from one of the options ``--regex``, ``--json-schema``, ...

Every command that needs a spec takes the same options. ``takes_spec`` adds them to a command's own
parameters, and hands them over as one ``SpecOptions``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from constrain.spec import Spec

_SPECS = "Spec"
_GIVEN = {
    "regex": "--regex",
    "grammar": "--grammar",
    "library": "--library",
    "json_schema": "--json-schema",
    "choice": "--choice",
    "type_name": "--type",
    "structural_tag": "--structural-tag",
    "tools": "--tools",
}
# Which options go with which constructor.
_OWN = {
    "regex": ("flags",),
    "grammar": ("start", "syntax", "lexing", "max_ignored", "indentation", "brackets", "tab"),
    "json_schema": (
        "whitespace",
        "property_order",
        "formats",
        "integers",
        "unsupported",
        "draft",
        "max_whitespace",
    ),
    "structural_tag": ("whitespace", "unsupported", "max_whitespace"),
    "tool_calls": ("template", "tool_choice", "parallel", "reasoning", "whitespace", "unsupported"),
}
_GRAMMAR_FILES = (".lark", ".gbnf", ".ebnf")
_SCHEMAS = "JSON Schema"
_GRAMMARS = "Grammar"
_TOOLS = "Tools"
SPEC_HELP = (
    "SPEC is a file: .json (JSON Schema), .regex, .lark, .gbnf or .ebnf (grammars); or MODULE:NAME, a Python type. "
    "Left out where an option gives it."
)


def _spec_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_SPECS, show_default=False, **more)


def _grammar_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_GRAMMARS, show_default=False, **more)


def _tool_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_TOOLS, show_default=False, **more)


def _schema_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_SCHEMAS, show_default=False, **more)


@dataclass(frozen=True)
class SpecOptions:
    """The spec options of one call, as given; ``None`` where one wasn't."""

    regex: Annotated[str | None, _spec_option("--regex", help="Regular expression for the whole text.")] = (
        None
    )
    flags: Annotated[
        str | None, _spec_option("--flags", help="Flags of the regular expression, of 'imsx'.")
    ] = None
    json_schema: Annotated[Path | None, _spec_option("--json-schema", help="File with a JSON Schema.")] = None
    choice: Annotated[
        list[str] | None,
        _spec_option("--choice", help="Allowed texts, split at commas ('\\,' is a comma); may be repeated."),
    ] = None
    type_name: Annotated[
        str | None, _spec_option("--type", metavar="MODULE:NAME", help="Python type, written as JSON.")
    ] = None
    grammar: Annotated[
        Path | None, _spec_option("--grammar", help="File with a grammar, in Lark's language or GBNF.")
    ] = None
    library: Annotated[
        str | None, _spec_option("--library", metavar="NAME", help="A ready grammar: python, sql, json, ...")
    ] = None
    structural_tag: Annotated[
        Path | None, _spec_option("--structural-tag", help="File with a structural tag, as JSON.")
    ] = None
    tools: Annotated[
        Path | None,
        _spec_option("--tools", help="File with a list of tools, as JSON: answers that call them."),
    ] = None
    start: Annotated[
        str | None,
        _grammar_option("--start", help="The grammar's first rule ('start' in Lark, 'root' in GBNF)."),
    ] = None
    syntax: Annotated[
        str | None,
        _grammar_option("--syntax", help="The grammar's language: 'auto' (default), 'lark', 'gbnf'."),
    ] = None
    lexing: Annotated[
        str | None, _grammar_option("--lexing", help="'longest' (default) or 'any' way to cut a text.")
    ] = None
    max_ignored: Annotated[
        int | None,
        _grammar_option(
            "--max-ignored", help="Ignored lexemes in a row at most (default 64; 0: any number)."
        ),
    ] = None
    indentation: Annotated[
        str | None,
        _grammar_option(
            "--indentation",
            metavar="NEWLINE,INDENT,DEDENT",
            help="Terminals of line ends and of deeper and shallower lines, as in Python.",
        ),
    ] = None
    brackets: Annotated[
        str | None,
        _grammar_option(
            "--brackets", help="Pairs of brackets between which line ends don't count: '()[]{}'."
        ),
    ] = None
    tab: Annotated[
        int | None, _grammar_option("--tab", help="Columns of a tab in indentation (default 8).")
    ] = None
    template: Annotated[
        str | None,
        _tool_option("--template", help="How the model writes calls: 'hermes' (default), 'qwen', ..."),
    ] = None
    tool_choice: Annotated[
        str | None,
        _tool_option("--tool-choice", help="'auto' (default), 'none', 'required' or a tool's name."),
    ] = None
    parallel: Annotated[
        bool | None,
        _tool_option("--parallel/--no-parallel", help="Several calls may be made (default: yes)."),
    ] = None
    reasoning: Annotated[
        str | None, _tool_option("--reasoning", help="'none' (default), 'optional', 'required' or 'open'.")
    ] = None
    whitespace: Annotated[
        str | None, _schema_option("--whitespace", help="'flexible' (default), 'compact' or a regex.")
    ] = None
    property_order: Annotated[
        str | None, _schema_option("--property-order", help="'schema' (default) or 'any'.")
    ] = None
    formats: Annotated[
        bool | None, _schema_option("--formats/--no-formats", help="Enforce 'format' (default: yes).")
    ] = None
    integers: Annotated[str | None, _schema_option("--integers", help="'plain' (default) or 'any'.")] = None
    unsupported: Annotated[
        str | None, _schema_option("--unsupported", help="'raise' (default), 'check' or 'ignore'.")
    ] = None
    draft: Annotated[str | None, _schema_option("--draft", help="'draft4' to 'draft2020-12'.")] = None
    max_whitespace: Annotated[
        int | None, _schema_option("--max-whitespace", help="Blanks in a row at most (default 64).")
    ] = None

    def take(self, arguments: list[str]) -> tuple[Spec, list[str]]:
        """Return the spec and the arguments that are left.

        Parameters
        ----------
        arguments : list of str
            Positional arguments; the first one names the spec unless an option gives it.

        Raises
        ------
        typer.BadParameter
            No spec or several, an option that doesn't belong to it, or a file that can't be read.
        SpecError
            The spec itself is wrong.
        """
        given = [n for n in _GIVEN if getattr(self, n) is not None]
        if len(given) > 1:
            names = ", ".join(_GIVEN[n] for n in given)
            raise typer.BadParameter(f"give one spec, not several: {names}")
        if given:
            return self._from_option(given[0]), arguments
        if not arguments:
            raise typer.BadParameter(
                f"no spec: name a file (.json, .regex, .lark, .gbnf) or use one of {', '.join(_GIVEN.values())}"
            )
        return self._from_argument(arguments[0]), arguments[1:]

    def _from_option(self, name: str) -> Spec:
        value = getattr(self, name)
        if isinstance(value, Path):
            text = read_text(value)
            if name == "tools":
                return self._make("tool_calls", _read_tools(text, value))
            return self._make(name, text)
        if name == "choice":
            texts = [part for one in value for part in _split_at_commas(one)]
            return self._make("choice", texts)
        if name == "type_name":
            return self._make("python_type", load_name(value))
        return self._make("grammar_library" if name == "library" else name, value)

    def _from_argument(self, text: str) -> Spec:
        path = Path(text)
        if path.suffix == ".json":
            return self._make("json_schema", read_text(path))
        if path.suffix in (".regex", ".re"):
            return self._make("regex", drop_newline(read_text(path)))
        if path.suffix in _GRAMMAR_FILES:
            return self._make("grammar", read_text(path))
        if ":" in text and not path.exists():
            return self._make("python_type", load_name(text))
        raise typer.BadParameter(
            f"{text!r} is no spec file: expected a name ending in .json, .regex, .lark or .gbnf, or MODULE:NAME; "
            f"or use one of {', '.join(_GIVEN.values())}"
        )

    def _make(self, kind: str, value: Any) -> Spec:
        import constrain

        allowed = _OWN.get(kind, ())
        names = dict.fromkeys(name for group in _OWN.values() for name in group)
        options = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        for name in options:
            if name not in allowed:
                raise typer.BadParameter(
                    f"--{name.replace('_', '-')} doesn't apply to a {kind.replace('_', ' ')}"
                )
        if kind == "grammar":
            options = _grammar_options(options)
        constructor: Callable[..., Spec] = getattr(constrain, kind)
        return constructor(value, **options)


def _grammar_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `constrain.grammar`."""
    given = dict(options)
    if given.get("max_ignored") == 0:
        given["max_ignored"] = None
    layout: dict[str, Any] = {name: given.pop(name) for name in ("brackets", "tab") if name in given}
    if "indentation" in given:
        names = given["indentation"].split(",")
        if len(names) != 3:
            raise typer.BadParameter(
                f"--indentation {given['indentation']!r}: expected three names of terminals, NEWLINE,INDENT,DEDENT"
            )
        pairs = layout.get("brackets", "")
        if len(pairs) % 2:
            raise typer.BadParameter(f"--brackets {pairs!r}: expected pairs, such as '()[]'")
        if pairs:
            layout["brackets"] = [(pairs[i], pairs[i + 1]) for i in range(0, len(pairs), 2)]
        given["indentation"] = dict(zip(("newline", "indent", "dedent"), names, strict=True)) | layout
    elif layout:
        raise typer.BadParameter(f"--{next(iter(layout))} goes with --indentation")
    return given


def _read_tools(text: str, path: Path) -> Any:
    """Return the data of a file of tools: a list, or an object that has one as its ``tools``."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{str(path)!r} is not JSON: {error}") from None
    return data["tools"] if isinstance(data, dict) and isinstance(data.get("tools"), list) else data


def takes_spec(command: Callable[..., None]) -> Callable[..., None]:
    """Add the spec options to ``command``, which receives them as its parameter ``options``."""
    names = [field.name for field in fields(SpecOptions)]
    hints = get_type_hints(SpecOptions, include_extras=True)
    own = inspect.signature(command, eval_str=True)
    parameters = [p for p in own.parameters.values() if p.name != "options"]
    for name in names:
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name])
        )

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> None:
        options = SpecOptions(**{name: values.pop(name) for name in names})
        command(*args, options=options, **values)

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"can't read {str(path)!r}: {error.strerror}") from None


def read_text(path: Path) -> str:
    """Return the UTF-8 text of a file, or of standard input for ``-``."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"{str(path)!r} is not UTF-8: byte {error.start} is {data[error.start]:#04x}"
        ) from None


def drop_newline(text: str) -> str:
    """Return ``text`` without one line break at its end, which editors add to every file."""
    return text.removesuffix("\n").removesuffix("\r")


def _split_at_commas(text: str) -> list[str]:
    return [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]


def load_name(name: str) -> object:
    """Return the object ``MODULE:NAME``; modules of the current folder can be named, as with ``python -m``."""
    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute):
        raise typer.BadParameter(f"{name!r}: expected MODULE:NAME, such as invoices:Invoice")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: object = importlib.import_module(module_name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"{name!r}: {error}") from None
    return value
