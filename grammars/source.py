"""Places in source text, and the picture that points at them."""

from __future__ import annotations

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
        Two lines, indented by four blanks; long lines are cut around the place.
    """
    offset = max(0, min(offset, len(source)))
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    line = source[start : end if end >= 0 else len(source)]
    column = offset - start
    low = max(0, column - _WIDTH // 2)
    shown = line[low : low + _WIDTH]
    mark = column - low
    if low:
        shown, mark = "…" + shown, mark + 1
    if low + _WIDTH < len(line):
        shown += "…"
    shown = "".join(c if c.isprintable() else "�" for c in shown)
    return f"    {shown}\n    {' ' * mark}^"
