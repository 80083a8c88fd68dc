"""Small grammars whose indentation counts, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from constrain.grammars import ir

BLANKS = ir.Repeat(ir.ByteClass(((0x09, 0x09), (0x20, 0x20))), 0, None)
_RETURN = ir.Repeat(ir.Literal(b"\r"), 0, 1)
_LINE = ir.Concatenation((_RETURN, ir.Literal(b"\n"), BLANKS))
_COMMENT = ir.Concatenation((ir.Literal(b"#"), ir.Repeat(ir.ByteClass(((0x20, 0x7E),)), 0, None)))

NEWLINES: dict[str, ir.Pattern] = {
    "one line": _LINE,
    "lines": ir.Repeat(_LINE, 1, None),
    "lines and comments": ir.Repeat(ir.Alternation((_LINE, _COMMENT)), 1, None),
    "comment before a line": ir.Concatenation((ir.Repeat(_COMMENT, 0, 1), _LINE)),
    "form feeds": ir.Repeat(
        ir.Concatenation((ir.Literal(b"\n"), ir.Repeat(ir.ByteClass(((0x0C, 0x0C), (0x20, 0x20))), 0, None))),
        1,
        None,
    ),
    "semicolons too": ir.Alternation((ir.Repeat(_LINE, 1, None), ir.Literal(b";"))),
}

NAME, COLON, OPENING, CLOSING, DASH, BLANK, NEWLINE, INDENT, DEDENT, COMMENT = range(10)


def _terminals(newline: ir.Pattern, *, greedy: bool) -> tuple[ir.Terminal, ...]:
    letters = ir.Repeat(ir.ByteClass(((0x61, 0x7A),)), 1, None)
    return (
        ir.Terminal(letters, "name", greedy=greedy),
        *(ir.Terminal(ir.Literal(c), repr(c)) for c in (b":", b"(", b")", b"-")),
        ir.Terminal(ir.Repeat(ir.ByteClass(((0x09, 0x09), (0x20, 0x20))), 1, None), "blank", greedy=greedy),
        ir.Terminal(newline, "newline"),
        ir.Terminal(ir.EMPTY_LANGUAGE, "indent"),
        ir.Terminal(ir.EMPTY_STRING, "dedent"),
        ir.Terminal(_COMMENT, "comment", greedy=greedy),
    )


def _t(*indices: int) -> tuple[ir.Expression, ...]:
    return tuple(map(ir.TerminalReference, indices))


def _r(name: str) -> ir.Expression:
    return ir.RuleReference(name)


def _some(body: ir.Expression, minimum: int = 0, maximum: int | None = None) -> ir.Expression:
    return ir.Repetition(body, minimum, maximum)


_BLOCK = ir.Sequence((*_t(NEWLINE, INDENT), _some(_r("statement"), 1), *_t(DEDENT)))


def statements(
    newline: str = "lines and comments",
    *,
    greedy: bool = True,
    last_newline: bool = True,
    inline: bool = True,
    brackets: bool = True,
    ignored: tuple[int, ...] = (BLANK,),
    leading: bool = False,
    most: int | None = None,
    tab: int = 8,
) -> ir.Grammar:
    """Return statements with blocks, as in Python.

    Parameters
    ----------
    newline : str
        One of `NEWLINES`.
    last_newline : bool
        Each statement ends in a newline; otherwise it may be missing.
    inline : bool
        A block may also be a statement on the same line.
    """
    end: ir.Expression = ir.TerminalReference(NEWLINE) if last_newline else _some(_t(NEWLINE)[0], 0, 1)
    simple = ir.Sequence((_r("term"), end))
    block = ir.Choice((simple, _BLOCK)) if inline else _BLOCK
    calls = ir.Sequence((*_t(NAME, OPENING), _some(_r("term")), *_t(CLOSING)))
    rules: dict[str, ir.Expression] = {
        "file": _some(ir.Choice((_t(NEWLINE)[0], _r("statement")))),
        "statement": ir.Choice((simple, ir.Sequence((_r("term"), *_t(COLON), block)))),
        "term": ir.Choice((_t(NAME)[0], calls)) if brackets else _t(NAME)[0],
    }
    return ir.Grammar(
        _terminals(NEWLINES[newline], greedy=greedy),
        rules,
        "file",
        ir.Ignored(ignored, leading, True, most),
        indentation=ir.Indentation(NEWLINE, INDENT, DEDENT, ((OPENING, CLOSING),) if brackets else (), tab),
    )


def outline() -> ir.Grammar:
    """Return nested ``key:`` blocks and lists of ``- item``, as in YAML."""
    value = ir.Choice(
        (
            ir.Sequence(_t(NAME, NEWLINE)),
            ir.Sequence((*_t(NEWLINE, INDENT), ir.Choice((_r("keys"), _r("items"))), *_t(DEDENT))),
        )
    )
    rules: dict[str, ir.Expression] = {
        "file": ir.Sequence((_some(_t(NEWLINE)[0], 0, 1), ir.Choice((_r("keys"), _r("items"))))),
        "keys": _some(ir.Sequence((*_t(NAME, COLON), value)), 1),
        "items": _some(ir.Sequence((*_t(DASH), value)), 1),
    }
    return ir.Grammar(
        _terminals(NEWLINES["lines"], greedy=True),
        rules,
        "file",
        ir.Ignored((BLANK,), trailing=True, most=None),
        indentation=ir.Indentation(NEWLINE, INDENT, DEDENT),
    )


def tree() -> ir.Grammar:
    """Return a tree of names, one a line."""
    children = ir.Sequence((*_t(INDENT), _some(_r("tree"), 1), *_t(DEDENT)))
    return ir.Grammar(
        _terminals(NEWLINES["one line"], greedy=True),
        {"tree": ir.Sequence((*_t(NAME, NEWLINE), _some(children, 0, 1)))},
        "tree",
        indentation=ir.Indentation(NEWLINE, INDENT, DEDENT),
    )


INDENTED = {
    "statements": statements(),
    "one line at a time": statements("one line"),
    "no last newline": statements(last_newline=False),
    "blocks alone": statements("lines", inline=False, brackets=False),
    "comments ignored too": statements(ignored=(BLANK, COMMENT)),
    "comments between lines": statements("one line", ignored=(BLANK, COMMENT), leading=True),
    "narrow tabs": statements("lines", tab=2),
    "form feeds": statements("form feeds", brackets=False),
    "semicolons": statements("semicolons too"),
    "nothing ignored": statements("comment before a line", ignored=()),
    "outline": outline(),
    "tree": tree(),
}


@st.composite
def indented_grammars(draw: st.DrawFn) -> ir.Grammar:
    """Grammars of statements with blocks."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([outline(), tree()]))
    has_brackets = draw(st.booleans())
    return statements(
        draw(st.sampled_from(sorted(NEWLINES))),
        greedy=draw(st.booleans()),
        last_newline=draw(st.booleans()),
        inline=draw(st.booleans()),
        brackets=has_brackets,
        ignored=draw(st.sampled_from([(), (BLANK,), (BLANK, COMMENT)])),
        leading=draw(st.booleans()),
        most=None if has_brackets else draw(st.sampled_from([None, 2])),
        tab=draw(st.sampled_from([1, 2, 4, 8])),
    )
