"""Grammars in Lark's language: the texts that Lark's own parsers take are members, and no others."""

from __future__ import annotations

import json
import random
from pathlib import Path

import lark
import numpy as np
import pytest

import constrain

ARITHMETIC = """
start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
NAME: /[a-z]+/
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
JSON = r"""
?start: value
?value: object | array | ESCAPED_STRING -> string | SIGNED_NUMBER -> number
    | "true" -> true | "false" -> false | "null" -> null
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
STATEMENTS = r"""
start: statement+
statement: "if"i expr "then" statement* "end" | NAME "=" expr ";" | "print" list{expr, ","} ";"
expr: NAME | INT | STRING | call
call: NAME "(" [list{expr, ","}] ")"
list{item, separator}: item (separator item)*
NAME: /[a-z_][a-z0-9_]*/i
STRING: /'.*?'/ | "\"" /(\\.|[^"\\\n])*/ "\""
%import common (INT, WS)
%ignore WS
%ignore /#[^\n]*/
%ignore "/*" /(.|\n)*?/ "*/"
"""
COUNTS = """
start: "a"~2..4 b? | [b] c+ | _d
b: "b"~3
c: "c".."e" "x"
_d: "d" (b | "q")*
"""

GRAMMARS = {
    "arithmetic": (ARITHMETIC, ["1+2*3", "(a - 3.5e2) / -b", "x", "((1))", "1 +\t2"], "0123+-*/(). abx\t"),
    "json": (
        JSON,
        ['{"a": [1, -2.5e3, "x\\"y"], "b": null}', "[]", ' "a" ', "[[], {}]"],
        '{}[]:,"\\ 0e-tn\n',
    ),
    "statements": (
        STATEMENTS,
        [
            "x = 3;",
            'IF a then print f(1, \'x\'), 2; end # c\ny="a\\"";',
            "/* a */ print /**/ a; /* b */",
            "p=f();",
        ],
        "xif end(),;='\"#*/ \n",
    ),
    "counts": (COUNTS, ["aa", "aaabbb", "bbbcxdx", "dqbbbq", "aaaa"], "abcdexq"),
}


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    """Return ``text`` with a few characters deleted, doubled or replaced."""
    letters = list(text)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(letters) + 1)
        match rng.randrange(3):
            case 0:
                letters[at : at + 1] = []
            case 1:
                letters[at:at] = letters[at : at + 2]
            case _:
                letters[at : at + 1] = rng.choice(alphabet)
    return "".join(letters)


def accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@pytest.mark.parametrize(
    "name, parser_name",
    [
        *((name, "earley") for name in GRAMMARS),
        ("arithmetic", "lalr"),
        ("json", "lalr"),
        ("statements", "lalr"),
    ],
)
def test_same_texts_as_lark(name: str, parser_name: str) -> None:
    """Sentences, mutated sentences and samples are members exactly if Lark's parsers take them."""
    grammar, sentences, alphabet = GRAMMARS[name]
    spec = constrain.grammar(grammar)
    lexer = "dynamic" if parser_name == "earley" else "contextual"
    parser = lark.Lark(grammar, parser=parser_name, lexer=lexer)
    rng = random.Random(1)
    texts = ["", *sentences]
    texts += [mutated(rng, rng.choice(sentences), alphabet) for _ in range(300)]
    texts += [spec.sample(np.random.default_rng(seed), max_bytes=200) for seed in range(30)]
    assert [text for text in sentences if not spec.matches(text)] == []
    assert [text for text in texts if spec.matches(text) != accepts(parser, text)] == []


def test_the_grammar_of_grammars() -> None:
    """Lark's bundled grammar of its own language, without comments, has the texts that Lark's parser takes."""
    text = "%import lark.start\n%ignore /[ \\t]+/\n"
    spec = constrain.grammar(text)
    parser = lark.Lark(text, parser="lalr")
    sentences = [
        *('start: a b+ | C "x"\nC: /y/i\n', 'a.2: "x" ~ 2..3 -> b\n', "start: (a\n", "a b", "%ignore WS\n"),
        *("%import a.b -> C\n", '?x{a, b}: a "," b\n', 'a: [b] | "c"i .. "d"\n  | e\n', "a: b # c\n", ""),
    ]
    assert [text for text in sentences if spec.matches(text) != accepts(parser, text)] == []


def test_grammar_cases_of_user_reports(shared: Path) -> None:
    """All reported cases of kind ``grammar`` are right."""
    cases = [
        c for c in json.loads((shared / "cases/user_reports.json").read_text()) if c["kind"] == "grammar"
    ]
    assert cases
    for case in cases:
        spec = constrain.grammar(case["spec"])
        assert [t for t in case["accepts"] if not spec.matches(t)] == [], case["topic"]
        assert [t for t in case["rejects"] if spec.matches(t)] == [], case["topic"]
