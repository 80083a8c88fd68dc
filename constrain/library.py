"""Ready grammars of well-known languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
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


STANDARD_TYPEDEF_NAMES = frozenset(
    [
        "size_t",
        "ptrdiff_t",
        "wchar_t",
        "wint_t",
        "wctype_t",
        "wctrans_t",
        "mbstate_t",
        "char16_t",
        "char32_t",
        "max_align_t",
        "va_list",
        "FILE",
        "fpos_t",
        "clock_t",
        "time_t",
        "div_t",
        "ldiv_t",
        "lldiv_t",
        "imaxdiv_t",
        "fenv_t",
        "fexcept_t",
        "float_t",
        "double_t",
        "jmp_buf",
        "sig_atomic_t",
        "bool",
        "intmax_t",
        "uintmax_t",
        "intptr_t",
        "uintptr_t",
        "ssize_t",
        "off_t",
    ]
) | {
    f"{sign}int{kind}{bits}_t"
    for sign in ("", "u")
    for kind in ("", "_least", "_fast")
    for bits in (8, 16, 32, 64)
}
"""Names of types in the headers of C's standard library (and ``bool``), with POSIX's ``ssize_t`` and ``off_t``."""

_NAMES = re.compile(r"\b(?:TYPEDEF_NAME|NAME)\b")
_NAMES_DEFINED = re.compile(r"^(?:TYPEDEF_NAME|NAME):.*\n", re.MULTILINE)
_C_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def grammar_library(
    name: str, *, typedef_names: Iterable[str] | None = None, limits: Limits | None = None
) -> Spec:
    """Return the spec of a language whose grammar comes with the package.

    Parameters
    ----------
    name : str
        One of `grammar_names`, such as ``"json"`` or ``"sql"``. What each covers is in
        ``docs/grammar_library.md``.
    typedef_names : iterable of str or None
        For ``"c"``: names of types, besides `STANDARD_TYPEDEF_NAMES`; other names are none, and these name nothing else but
        tags, members and labels. ``None``: any name may be one.
    limits : Limits
        Upper limits on reading the grammar.

    Raises
    ------
    SpecError
        There is no such grammar, or ``typedef_names`` is no list of names, or not for it.
    """
    text = grammar_text(name)
    if typedef_names is not None:
        if name != "c":
            raise SpecError(f"typedef_names= is for the grammar 'c', not for {name!r}.")
        text = _with_typedef_names(text, typedef_names)
    elif name == "c":
        # One terminal in place of three equal ones: a third of the work.
        text = _NAMES_DEFINED.sub("", text)
        text = _NAMES.sub("IDENTIFIER", text)
    return grammar(text, syntax="lark", limits=limits, **_OPTIONS.get(name, {}))


def _with_typedef_names(text: str, given: Iterable[str]) -> str:
    """Return the grammar of C in which these and the standard names, and no others, are names of types."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpecError(f"typedef_names={given!r:.60}: expected a list of names.")
    names = list(given)
    for each in names:
        if not isinstance(each, str) or not _C_NAME.fullmatch(each):
            raise SpecError(f"typedef_names has {each!r:.60}; expected a name such as 'size_t'.")
    listed = "|".join(sorted(STANDARD_TYPEDEF_NAMES.union(names)))
    word = f"(?:{listed})(?![A-Za-z0-9_$])"
    text = text.replace("TYPEDEF_NAME: _NAME", f"TYPEDEF_NAME: /{word}/")
    return text.replace("IDENTIFIER: _NAME", f"IDENTIFIER: /(?!{word})/ _NAME")


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
