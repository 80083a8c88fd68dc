"""Ready grammars of well-known languages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from constrain.base_spec import Spec
from constrain.errors import SpecError
from constrain.grammar_spec import grammar
from constrain.grammars.limits import Limits

_SUFFIX = ".lark"
# Programs may have any number of comments and blank lines in a row.
_OPTIONS: dict[str, dict[str, Any]] = {
    "c": {"max_ignored": None},
    "go": {"max_ignored": None},
    "javascript": {"max_ignored": None},
    "python": {
        "indentation": {
            "newline": "_NEWLINE",
            "indent": "_INDENT",
            "dedent": "_DEDENT",
            "brackets": [("(", ")"), ("[", "]"), ("{", "}")],
            "tab": 8,
        }
    },
}


def grammar_library(name: str, *, limits: Limits | None = None) -> Spec:
    """Return the spec of a language whose grammar comes with the package.

    Parameters
    ----------
    name : str
        One of `grammar_names`, such as ``"json"`` or ``"sql"``. What each covers is in
        ``docs/grammar_library.md``.
    limits : Limits
        Upper limits on reading the grammar.

    Raises
    ------
    SpecError
        There is no such grammar.
    """
    return grammar(grammar_text(name), syntax="lark", limits=limits, **_OPTIONS.get(name, {}))


def grammar_text(name: str) -> str:
    """Return the text of a ready grammar, in Lark's language.

    Raises
    ------
    SpecError
        There is no such grammar.
    """
    names = grammar_names()
    if name not in names:
        raise SpecError(
            f"There is no ready grammar {name!r}.",
            hint=f"There are {', '.join(map(repr, names))}.",
        )
    return _folder().joinpath(name + _SUFFIX).read_text(encoding="utf-8")


@cache
def grammar_names() -> tuple[str, ...]:
    """Return the names of the ready grammars, sorted."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def _folder() -> Traversable:
    return files("constrain.grammars") / "data"
