"""The method of ``generate`` and its options, as the command line names them."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import typer

from constrain.cli.spec_options import load_name


class Method(StrEnum):
    """Names of methods."""

    local = "local"
    rejection = "rejection"
    smc = "smc"
    aligned = "aligned"
    mcmc = "mcmc"
    beam = "beam"
    speculative = "speculative"
    draft = "draft"
    sketch = "sketch"


METHOD_HELP = "How to decode; docs/methods says when to use which."
OPTION_HELP = (
    "An option of the method, such as particles=16; may be repeated. draft= is a model's folder or hub name, "
    "potential= a Python function MODULE:NAME, black_box= a command that reads the prompt from standard input."
)
# These keep the model's distribution, which greedy decoding has none of.
SAMPLING = frozenset({Method.rejection, Method.smc, Method.aligned, Method.mcmc})


def default_temperature(method: Method) -> float:
    """Greedy where a method can be, else the model's own."""
    return 1.0 if method in SAMPLING else 0.0


def method_options(given: Sequence[str]) -> dict[str, Any]:
    """Read options of the form ``NAME=VALUE``; values that are JSON are read as that, others are text.

    Raises
    ------
    typer.BadParameter
        One has no name or is given twice.
    """
    options: dict[str, Any] = {}
    for text in given:
        name, is_pair, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not (is_pair and name):
            raise typer.BadParameter(f"{text!r}: expected NAME=VALUE, such as particles=16")
        if name in options:
            raise typer.BadParameter(f"option {name!r} is given twice")
        options[name] = _value(name, value)
    return options


def _value(name: str, text: str) -> Any:
    if name == "draft":
        import constrain

        return constrain.load_model(text)
    if name == "potential":
        return load_name(text)
    if name == "black_box":
        return _Command(shlex.split(text))
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Command:
    """A black box that is a command: the prompt goes to its standard input, its standard output is the answer."""

    def __init__(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise typer.BadParameter("black_box= is empty; expected a command")
        self.arguments = list(arguments)

    def __call__(self, prompt: Any) -> str:
        text = prompt if isinstance(prompt, str) else "\n\n".join(part["content"] for part in prompt)
        # An error of the command is reported as the black box's own.
        return subprocess.run(self.arguments, input=text, capture_output=True, text=True, check=True).stdout
