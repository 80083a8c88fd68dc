"""The constructor of specs from grammar texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from constrain.base_spec import Spec, shortened
from constrain.errors import EmptyLanguageError, SpecError
from constrain.grammars.limits import Limits, Watch

_SYNTAXES = ("auto", "lark", "gbnf")


def grammar(
    text: str,
    *,
    start: str | None = None,
    syntax: str = "auto",
    lexing: str = "longest",
    import_paths: Iterable[str | Path] = (),
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
        ``"auto"`` takes a text with rules written ``name ::= ...`` as GBNF.
    lexing : {"longest", "any"}
        For Lark. ``"longest"``: as Lark's contextual lexer does, a lexeme is the longest match of the terminals
        that may stand at its place; of several terminals that match it, those of the highest priority
        count, strings before regular expressions. ``"any"``: a text may be cut into lexemes in any way, as with
        ``lexer="dynamic_complete"``.
    import_paths : iterable of str or Path
        For Lark. Folders in which ``%import`` looks before the grammars that come with Lark (``common``,
        ``python``, ``unicode``, ``lark``).
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
    if isinstance(import_paths, str | Path):
        import_paths = (import_paths,)
    return _lark_spec(text, start, lexing, tuple(Path(path) for path in import_paths), {}, limits)


def _lark_spec(
    text: str,
    start: str | None,
    lexing: str,
    import_paths: tuple[Path, ...],
    files: dict[str, str],
    limits: Limits | None,
) -> Spec:
    """Return the spec of a Lark grammar; ``files`` as in `lark_grammar`."""
    from constrain.grammars.lark_syntax.build import LarkOptions, lark_grammar

    watch = Watch(limits or Limits())
    options = LarkOptions(import_paths, lexing)
    read = lark_grammar(text, start, watch=watch, options=options, files=files)
    paths = [path.as_posix() for path in import_paths]
    given: dict[str, object] = {"start": start, "lexing": lexing, "import_paths": tuple(paths)}
    default: dict[str, object] = {"start": None, "lexing": LarkOptions().lexing, "import_paths": ()}
    try:
        return Spec(
            "grammar",
            (text, tuple(files.items())),
            read,
            options=tuple((name, value) for name, value in given.items() if value != default[name]),
            source={"text": text, "syntax": "lark", "options": given, "files": dict(files)},
            shown=shortened(repr(text.strip())),
            watch=watch,
        )
    except EmptyLanguageError as error:
        raise EmptyLanguageError(
            f"No text matches rule {read.start!r}: it always needs another text like itself, without end.",
            source=text,
            offset=0,
        ) from error


def grammar_from_source(source: dict[str, object], limits: Limits) -> Spec:
    """Return the spec that had this `Spec.source`."""
    options: dict[str, object] = source["options"]  # type: ignore[assignment]
    return _lark_spec(
        str(source["text"]),
        options["start"],  # type: ignore[arg-type]
        str(options["lexing"]),
        tuple(Path(path) for path in options["import_paths"]),  # type: ignore[attr-defined]
        dict(source["files"]),  # type: ignore[call-overload]
        limits,
    )
