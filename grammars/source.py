"""Places in source text, and the picture that points at them."""

from __future__ import annotations

import unicodedata

_WIDTH = 72


def caret(source: str, offset: int) -> str:
    """Return the line of ``source`` that holds ``offset`` with a caret under it.

    Parameters
    ----------
    source : str
    offset : int
        Characters from 0; values past the end point just after the last character.

    Returns
    -------
    str
        Two lines, indented by four blanks; long lines are cut around the place. The caret is under the character where
        wide characters take two columns.
    """
    offset = max(0, min(offset, len(source)))
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    line = source[start : end if end >= 0 else len(source)]
    column = offset - start
    low = max(0, column - _WIDTH // 2)
    before, behind = _shown(line[low:column]), _shown(line[column : low + _WIDTH].removesuffix("\r"))
    if low:
        before = "…" + before
    if low + _WIDTH < len(line):
        behind += "…"
    return f"    {before}{behind}\n    {' ' * sum(map(_cells, before))}^"


def _shown(text: str) -> str:
    """Return a part of a line as it is shown: every tab as a blank, what can't be printed as a sign for it."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in text)


def _cells(character: str) -> int:
    """Return how many columns of a terminal a character takes (UAX #11)."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
