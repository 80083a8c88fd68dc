"""Options of the Lark front end, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import Grammar

_MOST_IGNORED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Which terminals of a grammar are those of `ir.Indentation`; each by its name, or the text of its string.

    Parameters
    ----------
    newline, indent, dedent : str
    brackets : tuple of (str, str)
    tab : int
    """

    newline: str
    indent: str
    dedent: str
    brackets: tuple[tuple[str, str], ...] = ()
    tab: int = 8


@dataclass(frozen=True, slots=True)
class LarkOptions:
    """How a Lark grammar is read.

    Parameters
    ----------
    import_paths : tuple of Path
        Folders in which ``%import`` looks before the grammars that come with Lark.
    lexing : {"longest", "any"}
        ``"longest"``: a lexeme is the longest that some terminal of those that may stand at its place matches;
        of several that match it, those of the highest priority count, strings before regular expressions.
        ``"any"``: a text may be cut into lexemes in any way.
    max_ignored : int or None
        So many ignored lexemes may follow one another, and a repeat in an ignored terminal that matches only blanks
        has so many rounds. ``None``: any number. The number of lexemes has no bound with ``lexing="any"``, where
        indentation counts, and where a comment goes on to the end of its line.
    indentation : Layout or None
        Which terminals stand for indentation.
    """

    import_paths: tuple[Path, ...] = ()
    lexing: str = "longest"
    max_ignored: int | None = 64
    indentation: Layout | None = None

    def __post_init__(self) -> None:
        if self.lexing not in ("longest", "any"):
            raise SpecError(f"lexing={self.lexing!r}: expected 'longest' or 'any'.")
        most = self.max_ignored
        if most is not None and (
            isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST_IGNORED
        ):
            raise SpecError(
                f"max_ignored={most!r:.40}: expected an integer from 1 to {_MOST_IGNORED:,}, or None."
            )


@dataclass(frozen=True, slots=True)
class LarkGrammar:
    """What was read.

    Parameters
    ----------
    grammar : Grammar
    ignored : tuple of str
        What nested schemas say that is not enforced: JSON pointers into them.
    files : mapping of str to str
        Texts of the files that were read from ``import_paths``.
    places : mapping of str to int
        Where the text defines each rule and terminal, in characters from 0.
    """

    grammar: Grammar
    ignored: tuple[str, ...]
    files: Mapping[str, str]
    places: Mapping[str, int]
