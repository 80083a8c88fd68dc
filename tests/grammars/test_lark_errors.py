"""Malformed grammars in Lark's language are refused with their place, and no grammar takes for ever."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lark
import pytest

import constrain
from constrain.errors import (
    ConstrainError,
    EmptyLanguageError,
    LimitExceededError,
    SpecError,
    UnsupportedFeatureError,
)

# (grammar, line, column, part of the message)
MALFORMED = [
    ('start: "a', 1, 8, "never closed"),
    ('start: "a" %lark { start: "é" foo }', 1, 31, "not defined"),
    ('start: x\nx: %lark {\n  start: "b" R\n  R: /a(/\n}', 4, 8, "never closed"),
    ("start: x\nx: %lark {\n  start: %lark {\n start: /[/\n}\n}", 4, 10, "never closed"),
    ('start: x\nx: %lark {\n  start: %json {"type": "foo"}\n}', 3, 10, "is not a type"),
    ('start: %lark {\n start: "b"\n %ignoree "x"\n}', 3, 2, "no directive"),
    ("start: %lark {\n  start: A\n  A: /a(?=b)/\n}", 3, 3, "looks at the text after it"),
    ('start: y %lark {\n  start: y\n  y: y "a"\n}\ny: "b"', 3, 3, "calls itself again"),
    ('start: %lark {\n  start: %lark {\n start: q\n   q: "a" q\n}\n}', 4, 4, "calls itself again"),
    ('start: "x" %lark {\n start: A\n A: /[a]/ & /[b]/\n}', 3, 2, "nothing matches 'A'"),
    (
        'start: "(" start ")" | %lark {\n  start: "(" start ")" | A A\n  A: /a+/\n}',
        3,
        3,
        "read as far as it goes",
    ),
    ("start: /a", 1, 8, "never closed"),
    ("start: 'a'", 1, 8, "double quotes"),
    ("start: (a", 1, 8, "never closed"),
    ("start: a)", 1, 9, "found ')'"),
    ("start: a ~", 1, 11, "expected a value"),
    ('start "a"', 1, 7, "expected ':'"),
    ('start: "a"\n  : "b"', 2, 3, "found ':'"),
    ('start: "a"++', 1, 12, "another quantifier"),
    ("start: *", 1, 8, "nothing before"),
    ('start: "a"~3..2', 1, 11, "no range of counts"),
    ('start: "a" -> B', 1, 15, "rule's name"),
    ('start: "a"\nstart: "b"', 2, 1, "defined twice"),
    ('start: A\nA: "a"\nA: "b"', 3, 1, "defined twice"),
    ("start: x", 1, 8, "not defined"),
    ('start: "a" | x\nx: y', 2, 4, "not defined"),
    ('start: A\nA: B\nB: "x" A', 3, 8, "recursive"),
    ('start: A\nA: x\nx: "a"', 2, 4, "cannot stand in a terminal"),
    ("start: A\nA: /x*/", 2, 1, "matches the empty text"),
    ("start: /x?/", 1, 8, "matches the empty text"),
    ("start: A\nA:", 2, 1, "is empty"),
    ('start: ""', 1, 8, "empty string"),
    ("start: A\nA: /(x/", 2, 5, "never closed"),
    ("start: A\nA: /x{3,2}/", 2, 6, "greater than the maximum"),
    ('start: "\\x4"', 1, 9, "hexadecimal"),
    ('start: "b".."a"', 1, 8, "comes after"),
    ('start: "ab".."c"', 1, 8, "one character"),
    ('start: t{"a"}\nt{x, y}: x y', 1, 8, "needs 2 arguments"),
    ('start: t\nt{x}: x "a"', 1, 8, "needs arguments"),
    ('start: x{"a"}\nx: "a"', 1, 8, "no template"),
    ('start: t{"a"}\nt{x, x}: x', 2, 6, "stands there twice"),
    ('?_x: "a"\nstart: _x', 1, 2, "modifier"),
    ('start: _x\n_x: "a" -> b', 2, 9, "aliases"),
    ('__x: "a"\nstart: __x', 1, 1, "reserved"),
    ("%import common.FOO\nstart: FOO", 1, 16, "has no terminal 'FOO'"),
    ("%import nowhere.A\nstart: A", 1, 1, "not found"),
    ("%import common", 1, 9, "nothing to import"),
    ("%ignore\nstart: /a/", 1, 1, "needs a terminal"),
    ("%ignore WS\nstart: /a/", 1, 9, "not defined"),
    ('%override x: "a"\nstart: x', 1, 11, "not defined before"),
    ("%unknown x", 1, 1, "no directive"),
    ('start: %json {"type": }', 1, 23, "Expecting value"),
    ('start: "a" & "b"', 1, 8, "terminals only"),
    ('other: "a"', 1, 1, "no rule 'start'"),
    ("", 1, 1, "no rule 'start'"),
]


@pytest.mark.parametrize("text, line, column, message", MALFORMED)
def test_place_of_an_error(text: str, line: int, column: int, message: str) -> None:
    """The error names the place and what is wrong, and draws a caret."""
    with pytest.raises(SpecError) as caught:
        constrain.grammar(text, syntax="lark")
    error = caught.value
    assert message in str(error)
    assert (error.line, error.column) == (line, column), str(error)
    assert str(error).endswith("^")


UNSUPPORTED = [
    "start: A /b/ A\nA: /(a)\\1/",
    'start[max_tokens=3]: "a"',
    '%llguidance {"no_forcing": true}\nstart: "a"',
    "start: <[^3]>",
    'start: %json {"uniqueItems": true}',
]


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_refusals_have_a_place(text: str) -> None:
    """What cannot be enforced is refused with line and column."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        constrain.grammar(text)
    assert caught.value.line is not None


@pytest.mark.parametrize(
    "text, line, name",
    [
        ("start: start", 1, "start"),
        ('start: "a" x\nx: y "b"\ny: x', 3, "y"),
        ('start: x+\nx: "a" x', 2, "x"),
        ("start: X NAME\nX: /a\\b/\nNAME: /[a-z]+/", 2, "X"),
        ('start: "(" NAME NAME ")"\nNAME: /[a-z]+/', 2, "NAME"),
        ('start: a b\na: "x" B\nb: B B\nB: /b+/', 4, "B"),
    ],
)
def test_no_text(text: str, line: int, name: str) -> None:
    """A grammar without any text is an error of its own kind that names and places what is to blame."""
    with pytest.raises(EmptyLanguageError, match=f"{name!r}") as caught:
        constrain.grammar(text)
    assert caught.value.line == line


LIMITED = {
    "infinite templates": 'start: t{"a"}\nt{x}: "a" | t{u{x}}\nu{x}: x x',
    "doubling terminals": "start: A0\n"
    + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(40))
    + '\nA40: "a"',
    "deep groups": "start: " + "(" * 5000 + '"a"' + ")" * 5000,
    "deep JSON": "start: %json " + '{"not":' * 100_000 + "{}" + "}" * 100_000,
}


@pytest.mark.parametrize("name", LIMITED)
def test_work_is_bounded(name: str) -> None:
    """What would grow without end is stopped at a limit that the error names."""
    with pytest.raises(LimitExceededError):
        constrain.grammar(LIMITED[name], limits=constrain.Limits(states=20_000, positions=50_000))


def test_large_grammar() -> None:
    """A grammar of a megabyte is read, or stopped by the limit on time, never a crash."""
    n = 20_000
    rules = [f'r{i}: "x" r{i + 1} | /a+/ "y"? (/b/ | "c")*' for i in range(n)]
    text = "start: r0\n" + "\n".join(rules) + f'\nr{n}: "z"\n'
    try:
        assert constrain.grammar(text, limits=constrain.Limits(compile_seconds=60)).matches("aybc")
    except LimitExceededError as error:
        assert error.limit == "compile_seconds"


@pytest.mark.parametrize(
    ("before", "blank", "after"),
    [
        ("", "\n", 'start: "a"'),
        ("", "\r\n", '\n// \nstart: "a"'),
        ('start: "a"', " \n", '| "b"'),
        ('start: "a"', "\n", " // "),
        ('start: "a" ', "\t", "// "),
        ('start: "a"{1', " ", ",2}"),
        ('start: "a"{1,', " ", "2}"),
        ('root ::= "a"{1', " ", ",2}"),
        ('root ::= "a"{', "\n", "1,2}"),
        ("", "\n", 'root ::= "a"'),
    ],
)
def test_rows_of_blanks_are_read_once(before: str, blank: str, after: str) -> None:
    """However many blanks stand in a row, reading on from them takes no time that grows with their square."""
    assert constrain.grammar(before + blank * 400_000 + after).matches("a")


@pytest.mark.parametrize(
    "text",
    ['start: "a"{1,', 'start: "a"{', 'start: "a"{1', 'root ::= "a"{', 'root ::= "a"{1', 'root ::= "a"{1,'],
)
def test_rows_of_blanks_in_counts_without_an_end(text: str) -> None:
    with pytest.raises(SpecError):
        constrain.grammar(text + " " * 400_000 + "x")


def test_deep_nesting_within_the_limits() -> None:
    """Groups, references of terminals and imports of a thousand levels need no recursion."""
    spec = constrain.grammar("start: " + "(" * 1000 + '"a"' + ")" * 1000)
    assert spec.matches("a")
    chain = "\n".join(f"A{i}: A{i + 1}" for i in range(1000))
    assert constrain.grammar(f'start: A0\n{chain}\nA1000: "a"').matches("a")
    units = "\n".join(f"r{i}: r{i + 1}" for i in range(20_000))
    assert constrain.grammar(f'start: r0\n{units}\nr20000: "a"').matches("a")


def test_deep_imports(tmp_path: Path) -> None:
    """Files that import one another and grammars inside grammars need no recursion, and errors keep their place."""
    n = 400
    for i in range(n):
        (tmp_path / f"f{i}.lark").write_text(f"%import .f{i + 1}.r\n", encoding="utf-8")
    (tmp_path / f"f{n}.lark").write_text('r: "a" x\nx: "b"', encoding="utf-8")
    text = "%import .f0.r\nstart: r"
    assert constrain.grammar(text, import_paths=tmp_path).matches("ab")
    with pytest.raises(LimitExceededError, match=r"the imports of f\d+\.lark"):
        constrain.grammar(text, import_paths=tmp_path, limits=constrain.Limits(nesting=100))
    inside = "start: " + 200 * "%lark { start: "
    assert constrain.grammar(f'{inside}"a"{200 * "}"}').matches("a")
    with pytest.raises(LimitExceededError, match="the grammars inside one another"):
        constrain.grammar(f'{inside}"a"{200 * "}"}', limits=constrain.Limits(nesting=100))
    with pytest.raises(SpecError, match="not defined") as error:
        constrain.grammar(f"\n{inside}x{200 * '}'}")
    assert (error.value.line, error.value.column) == (2, 8 + 200 * 15)


@pytest.mark.parametrize("priority", [10**9 - 1, 1 - 10**9])
def test_priorities_of_any_size(priority: int) -> None:
    """Only the order of priorities counts."""
    text = f'start: (A | B) "x" | B "y"\nA.{priority}: /[a-z]/\nB: "a"'
    spec = constrain.grammar(text)
    assert spec.matches("ax")
    assert spec.matches("ay") == (priority < 0)


def test_circular_imports(tmp_path: Path) -> None:
    """Grammars that import each other are refused, with the circle."""
    (tmp_path / "one.lark").write_text("%import .two.B\nA: B", encoding="utf-8")
    (tmp_path / "two.lark").write_text("%import .one.A\nB: A", encoding="utf-8")
    with pytest.raises(SpecError, match=r"one\.lark imports two\.lark imports one\.lark"):
        constrain.grammar("%import one.A\nstart: A", import_paths=tmp_path)


BASES = [
    r"""
start: a+ | "b"i~2..3
   | [c] -> x
   | d{"a", B}
?a.2: "x" B | (B | c)* "y"?
B.-1: /a\/b/i ("c" | C)~2 "a".."z"
C: "u" /vw/s
!c: _e{B} | _e{a}
_e{t}: t "," t
d{x, y}: x (y x)*
%import common.WS
%ignore WS
%ignore "//" /[^\n]*/
""",
    """
%import common (INT, CNAME)
%declare _UNUSED
start: (statement ";")*  # comment
statement: CNAME "=" expr | "print" expr
?expr: expr "+" expr | INT
    | "(" expr ")"
%extend expr: CNAME
%override INT: /[0-7]+/
""",
]
PIECES = [
    *"()[]|~2./\\aB{},%:\n +*?!_i-1#",
    "..",
    '"x"',
    "/y/",
    "->",
    "~2",
    "%ignore ",
    "//",
    "_e{B}",
    "start",
]
# What Lark takes and we refuse, on purpose.
STRICTER = ("has no terminal", "no range of counts", "is no directive", "has no rule")


@pytest.mark.parametrize("seed", range(4))
def test_refuses_what_lark_refuses(seed: int) -> None:
    """Grammars with random edits are malformed exactly if Lark says so, apart from our additions."""
    rng = random.Random(seed)
    for _ in range(100):
        text = rng.choice(BASES)
        for _ in range(rng.choice([1, 1, 2, 3])):
            at = rng.randrange(len(text) + 1)
            match rng.randrange(3):
                case 0:
                    text = text[:at] + text[at + rng.randrange(1, 4) :]
                case 1:
                    text = text[:at] + rng.choice(PIECES) + text[at:]
                case _:
                    other = rng.randrange(len(text))
                    text = text[:at] + text[other : other + rng.randrange(1, 9)] + text[at:]
        try:
            lark.Lark(text, parser="earley", lexer="dynamic")
            is_fine = True
        except Exception:  # noqa: BLE001 - Lark has errors of many kinds, assertions among them
            is_fine = False
        try:
            constrain.grammar(text, syntax="lark")
            message = None
        except (EmptyLanguageError, UnsupportedFeatureError):
            continue
        except ConstrainError as error:
            message = str(error)
        if is_fine and message is not None and any(part in message for part in STRICTER):
            continue
        assert is_fine == (message is None), (text, message)


LAYOUT = {"newline": "A", "indent": "B", "dedent": "C"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"import_paths": 5}, "import_paths"),
        ({"import_paths": None}, "import_paths"),
        ({"import_paths": [5]}, "import_paths"),
        ({"embed": [1]}, "embed"),
        ({"embed": 5}, "embed"),
        ({"embed": {"aB": constrain.regex("a")}}, "name of a rule"),
        ({"indentation": "A"}, "indentation"),
        ({"indentation": {**LAYOUT, "newline": 5}}, "indentation"),
        ({"indentation": {**LAYOUT, "brackets": 5}}, "indentation"),
        ({"indentation": {**LAYOUT, "brackets": [5]}}, "indentation"),
        ({"indentation": {**LAYOUT, "brackets": ["()"]}}, "indentation"),
        ({"indentation": {**LAYOUT, "tab": "8"}}, "indentation"),
        ({"max_ignored": 0}, "max_ignored"),
        ({"max_ignored": 10**30}, "max_ignored"),
        ({"lexing": "short"}, "lexing"),
        ({"limits": 5}, "constrain.Limits"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        constrain.grammar('start: "a"', **options)


@pytest.mark.parametrize(
    "options",
    [
        {"lexing": "any"},
        {"import_paths": ["."]},
        {"embed": {"a": constrain.regex("a")}},
        {"max_ignored": None},
        {"indentation": LAYOUT},
    ],
)
def test_no_argument_for_lark_is_dropped_from_gbnf(options: dict[str, Any]) -> None:
    assert constrain.grammar('root ::= "a"').matches("a")
    with pytest.raises(SpecError, match=f"{next(iter(options))}= is for grammars in Lark"):
        constrain.grammar('root ::= "a"', **options)


@pytest.mark.parametrize(
    "text, reason",
    [
        ('start: "\\ud800"', "nothing matches"),
        ("start: A\nA: /a+/ & /b+/", "nothing matches 'A'"),
        ('start: "a" start', "'start' always calls itself again"),
    ],
)
def test_empty_grammars_say_why(text: str, reason: str) -> None:
    """Terminals that match nothing are told from rules that never end."""
    with pytest.raises(EmptyLanguageError, match=reason):
        constrain.grammar(text)


def test_no_start() -> None:
    """An empty name is no rule, not the default."""
    for text in ('start: "a"', 'root ::= "a"'):
        with pytest.raises(SpecError, match="no rule ''"):
            constrain.grammar(text, start="")


@pytest.mark.parametrize("text", ['start: "a"', 'root ::= "a"'])
def test_byte_order_mark(text: str) -> None:
    """A byte order mark at the beginning of a file is no part of the grammar."""
    assert constrain.grammar("\ufeff" + text) == constrain.grammar(text)


@pytest.mark.parametrize("value", [0, -1, "5", None, float("nan")])
def test_limits_are_positive_numbers(value: Any) -> None:
    with pytest.raises(SpecError, match="positive number"):
        constrain.Limits(states=value)
