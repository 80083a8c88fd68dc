"""The constructor of specs from grammar texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from constrain.base_spec import Spec, shortened
from constrain.errors import EmptyLanguageError, SpecError, UnsupportedFeatureError
from constrain.grammars.collector import held
from constrain.grammars.limits import Limits, Watch

_BYTE_ORDER_MARK = "\ufeff"
_SYNTAXES = ("auto", "lark", "gbnf")
_NAME = re.compile("_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*")


def grammar(
    text: str,
    *,
    start: str | None = None,
    syntax: str = "auto",
    lexing: str = "longest",
    import_paths: Iterable[str | Path] = (),
    embed: Mapping[str, Spec] | None = None,
    max_ignored: int | None = 64,
    indentation: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Spec:
    """Return the spec of the texts that a context-free grammar describes.

    Parameters
    ----------
    text : str
        A grammar in Lark's language, or in GBNF.
    start : str or None
        Name of the rule that the whole text matches; ``None`` is ``start`` in Lark, ``root`` in GBNF.
    syntax : {"auto", "lark", "gbnf"}
        ``"auto"`` takes a text whose first rule is written ``name ::= ...`` as GBNF.
    lexing : {"longest", "any"}
        For Lark. ``"longest"``: as Lark's contextual lexer does, a lexeme is the longest match of the terminals
        that may stand at its place; of several terminals that match it, those of the highest priority
        count, strings before regular expressions. ``"any"``: a text may be cut into lexemes in any way, as with
        ``lexer="dynamic_complete"``.
    import_paths : iterable of str or Path
        For Lark. Folders in which ``%import`` looks before the grammars that come with Lark (``common``,
        ``python``, ``unicode``, ``lark``).
    embed : mapping of str to Spec
        For Lark. Specs that are the rules and terminals of these names; what the grammar ignores may stand
        before and after them, but not inside.
    max_ignored : int or None
        For Lark. So many lexemes of ``%ignore`` may follow one another, and a blank may be repeated so often in each;
        ``None``: any number. The number of lexemes has no bound with ``lexing="any"``, where indentation
        counts, and where a comment goes on to the end of its line.
    indentation : mapping or None
        For Lark. Which terminals stand for indentation, as in Python: ``{"newline": "_NEWLINE", "indent":
        "_INDENT", "dedent": "_DEDENT", "brackets": [("(", ")")], "tab": 8}``. The blanks after the last line break
        of ``newline`` are the indentation of the next line; ``indent`` and ``dedent`` are declared and have no
        text; between ``brackets``, ``newline`` is ignored. The last two may be left out.
    limits : Limits
        Upper limits on reading the grammar.

    Raises
    ------
    SpecError
        A malformed grammar, with line and column, or an unknown value of an option.
    UnsupportedFeatureError
        It uses what cannot be enforced.
    EmptyLanguageError
        No text matches.
    LimitExceededError
        The grammar is too large.
    """
    if not isinstance(text, str):
        raise SpecError(f"expected a grammar as text, found {type(text).__name__}.")
    if start is not None and not isinstance(start, str):
        raise SpecError(f"start={start!r}: expected the name of a rule.")
    if syntax not in _SYNTAXES:
        raise SpecError(f"syntax={syntax!r}: expected one of {', '.join(map(repr, _SYNTAXES))}.")
    from constrain.grammars.gbnf.build import looks_like_gbnf

    text = text.removeprefix(_BYTE_ORDER_MARK)
    limits = limits or Limits()
    if syntax == "gbnf" or (syntax == "auto" and looks_like_gbnf(text)):
        for name, value in (
            ("lexing", lexing != "longest"),
            ("import_paths", bool(import_paths)),
            ("embed", bool(embed)),
            ("max_ignored", max_ignored != 64),
            ("indentation", indentation is not None),
        ):
            if value:
                raise SpecError(f"{name}= is for grammars in Lark's language; this one is in GBNF.")
        with held():
            return _gbnf_spec(text, start, limits)
    paths = _folders(import_paths)
    if embed is not None and not isinstance(embed, Mapping):
        raise SpecError(f"embed={embed!r:.60}: expected a mapping from names to specs.")
    given = dict(embed or {})
    for name, spec in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SpecError(f"embed has the key {name!r}; expected the name of a rule or a terminal.")
        if not isinstance(spec, Spec):
            raise SpecError(f"embed[{name!r}]: expected a spec, found {type(spec).__name__}.")
    arguments = _LarkArguments(start, lexing, paths, max_ignored, _layout(indentation))
    with held():
        return _lark_spec(text, arguments, given, {}, limits)


def _folders(given: Iterable[str | Path]) -> tuple[str, ...]:
    """Return what ``import_paths`` says."""
    found = (given,) if isinstance(given, str | Path) else given
    if not isinstance(found, Iterable):
        raise SpecError(f"import_paths={given!r:.60}: expected folders.")
    found = tuple(found)
    for path in found:
        if not isinstance(path, str | Path):
            raise SpecError(f"import_paths has {path!r:.60}; expected a folder as text or Path.")
    return tuple(Path(path).as_posix() for path in found)


def _layout(given: Mapping[str, Any] | None) -> _Layout | None:
    """Return what ``indentation`` says."""
    if given is None:
        return None
    names = {"newline", "indent", "dedent"}
    if not isinstance(given, Mapping) or not names <= set(given) <= names | {"brackets", "tab"}:
        raise SpecError(
            f"indentation={given!r}: expected a mapping with 'newline', 'indent', 'dedent', and perhaps "
            "'brackets' and 'tab'."
        )
    brackets = given.get("brackets", ())
    tab = given.get("tab", 8)
    rows = [[given[name] for name in sorted(names)]]
    is_right = isinstance(brackets, list | tuple) and isinstance(tab, int)
    if is_right:
        is_right = all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in brackets)
    if is_right:
        rows.extend(brackets)
    if not is_right or not all(isinstance(text, str) for row in rows for text in row):
        raise SpecError(f"indentation={given!r}: expected names of terminals, pairs of them, and an integer.")
    pairs = tuple((one, other) for one, other in brackets)
    return given["newline"], given["indent"], given["dedent"], pairs, tab


def _gbnf_spec(text: str, start: str | None, limits: Limits) -> Spec:
    """Return the spec of a grammar in GBNF."""
    from constrain.grammars.gbnf.build import gbnf_grammar

    watch = Watch(limits)
    return Spec(
        "grammar",
        (text, "gbnf"),
        gbnf_grammar(text, start, watch=watch),
        options=() if start is None else (("start", start),),
        source={"text": text, "syntax": "gbnf", "start": start},
        remake=partial(_gbnf_spec, text, start, limits),
        shown=shortened(repr(text.strip())),
        watch=watch,
    )


_Layout: TypeAlias = tuple[str, str, str, tuple[tuple[str, str], ...], int]


@dataclass(frozen=True, slots=True)
class _LarkArguments:
    """Arguments of `grammar` for Lark's language."""

    start: str | None = None
    lexing: str = "longest"
    import_paths: tuple[str, ...] = ()
    max_ignored: int | None = 64
    indentation: _Layout | None = None

    @property
    def given(self) -> tuple[tuple[str, object], ...]:
        """Those that have other values than by default."""
        default = _LarkArguments()
        names = [field.name for field in fields(self)]
        return tuple((n, getattr(self, n)) for n in names if getattr(self, n) != getattr(default, n))


def _lark_spec(
    text: str,
    arguments: _LarkArguments,
    embedded: Mapping[str, Spec],
    files: Mapping[str, str],
    limits: Limits,
) -> Spec:
    """Return the spec of a Lark grammar; ``files`` as in `read_lark`."""
    from constrain.grammars.lark_syntax.build import LarkOptions, Layout, read_lark

    watch = Watch(limits)
    layout = None if arguments.indentation is None else Layout(*arguments.indentation)
    paths = tuple(map(Path, arguments.import_paths))
    options = LarkOptions(paths, arguments.lexing, arguments.max_ignored, layout)
    grammars = {name: spec.grammar_alone(f"embed[{name!r}]") for name, spec in embedded.items()}
    read = read_lark(text, arguments.start, watch=watch, options=options, given=grammars, files=files)
    ignored = (*read.ignored, *(place for spec in embedded.values() for place in spec.ignored))
    has_source = all(spec.source() is not None for spec in embedded.values())
    source = {
        "text": text,
        "syntax": "lark",
        "options": asdict(arguments),
        "files": dict(read.files),
        "embed": dict(embedded),
    }
    try:
        return Spec(
            "grammar",
            (text, tuple(read.files.items()), tuple(embedded.items())),
            read.grammar,
            options=arguments.given,
            ignored=tuple(dict.fromkeys(ignored)),
            source=source if has_source else None,
            remake=partial(_lark_spec, text, arguments, dict(embedded), dict(read.files), limits),
            shown=shortened(repr(text.strip())),
            watch=watch,
        )
    except (EmptyLanguageError, UnsupportedFeatureError) as error:
        subject = error.feature if isinstance(error, UnsupportedFeatureError) else error.subject
        offset = read.places.get(arguments.start or "start", 0)
        # A name of a nested grammar may be another one outside, so the pointer comes first.
        for name in (error.pointer, subject):
            if name is not None and name in read.places:
                offset = read.places[name]
                error.pointer = None
                break
        error.place(text, offset)
        raise


def grammar_from_source(source: Mapping[str, Any], embedded: Mapping[str, Spec], limits: Limits) -> Spec:
    """Return the spec that had this `Spec.source`, apart from the specs embedded."""
    if source["syntax"] == "gbnf":
        return _gbnf_spec(source["text"], source["start"], limits)
    options = dict(source["options"])
    options["import_paths"] = tuple(options["import_paths"])
    if options["indentation"] is not None:
        *names, pairs, tab = options["indentation"]
        options["indentation"] = (*names, tuple((one, other) for one, other in pairs), tab)
    arguments = _LarkArguments(**options)
    return _lark_spec(source["text"], arguments, embedded, source["files"], limits)
