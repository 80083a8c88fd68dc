"""Grammars that come with Lark, and grammars of the kinds that its documentation shows, against its parsers."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import ClassVar

import lark
import numpy as np
import pytest
from lark.indenter import DedentError, Indenter, PythonIndenter

import constrain
from tests.grammars.test_lark_sentences import accepts, mutated

BUNDLED = Path(lark.__file__).parent / "grammars"
BRACKETS = [("(", ")"), ("[", "]"), ("{", "}")]
PYTHON = {"newline": "_NEWLINE", "indent": "_INDENT", "dedent": "_DEDENT", "brackets": BRACKETS}


def _terminals(name: str) -> list[tuple[str, str]]:
    text = (BUNDLED / f"{name}.lark").read_text(encoding="utf-8")
    return [(name, found) for found in re.findall(r"^([A-Z_][A-Z0-9_]*)[ .:]", text, re.MULTILINE)]


@pytest.mark.parametrize(
    "module, terminal", [pair for name in ("common", "unicode", "python") for pair in _terminals(name)]
)
def test_bundled_terminals(module: str, terminal: str) -> None:
    """Each terminal matches what Lark's lexer takes, and is refused where Lark refuses it."""
    text = f"start: {terminal}\n%import {module}.{terminal}\n"
    try:
        parser = lark.Lark(text, parser="lalr")
    except lark.exceptions.LarkError:
        with pytest.raises(constrain.SpecError):
            constrain.grammar(text)
        return
    spec = constrain.grammar(text)
    rng = random.Random(1)
    texts = [spec.sample(np.random.default_rng(seed), max_bytes=40) for seed in range(15)]
    texts += [mutated(rng, rng.choice(texts), "a1\"' \n\r.#\\_/*-e") for _ in range(60)]
    assert [text for text in texts if spec.matches(text) != accepts(parser, text)] == []


@cache
def _grammar_of_grammars() -> tuple[constrain.Spec, lark.Lark]:
    text = (BUNDLED / "lark.lark").read_text(encoding="utf-8")
    return constrain.grammar(text), lark.Lark(text, parser="lalr")


@pytest.mark.parametrize("name", sorted(path.name for path in BUNDLED.glob("*.lark")))
def test_grammar_of_grammars_takes_the_bundled_grammars(name: str) -> None:
    """With its comments, the grammar of grammars takes all grammars that come with Lark, itself among them."""
    spec, _ = _grammar_of_grammars()
    text = (BUNDLED / name).read_text(encoding="utf-8")
    assert spec.matches(text), spec.explain(text)


def test_grammar_of_grammars() -> None:
    """Grammars with one small change are members exactly if Lark's parser takes them."""
    spec, parser = _grammar_of_grammars()
    sentences = [
        '// about\nstart: a b+ | C "x"\n\n# more\nC: /y\\/z/i // end\n',
        'a{b, c}: (b c)~2..3 -> d // one\n  | [b] // two\n  | "c"i.."d"\n',
        "%import common.WS -> BLANK # c\n%ignore BLANK\n%declare X Y\n?a.2 : _x{Y} /a//b/\n",
        "%import .m (a, B)\n%override a: B?\n",
        "a: b // c\n // d\n\n # e\nb: C",
    ]
    rng = random.Random(2)
    texts = [mutated(rng, rng.choice(sentences), 'ab{}()/#\n "|:%~.,?') for _ in range(400)]
    texts += [spec.sample(np.random.default_rng(seed), max_bytes=200) for seed in range(30)]
    assert [text for text in sentences if not (spec.matches(text) and accepts(parser, text))] == []
    assert [text for text in texts if spec.matches(text) != accepts(parser, text)] == []


def test_bundled_python() -> None:
    """Programs with one small change are members exactly if Lark's parser with its `PythonIndenter` takes them."""
    text = (BUNDLED / "python.lark").read_text(encoding="utf-8")
    spec = constrain.grammar(text, start="file_input", indentation=PYTHON)
    parser = lark.Lark(text, parser="lalr", postlex=PythonIndenter(), start="file_input")
    programs = [
        "def f(a, *b, c=1, **d):\n    if a > 1: return\n    else:\n        x = [i for i in b if i]\n    return x\n",
        "class A(B):\n  # comment\n  async def g(self):\n\n    await h(1, *a, k=2)\n\nwhile True:\n    pass\n",
        "from . import a as b\nx, *y = {1: 2, **z}, (1,\n  2)\ntry:\n  del x[1:2, ::3]\nexcept E as e:\n  raise\n",
        "match x:\n    case {'a': [1, *_]} | None if y: z = lambda a, *b: a\n@d\ndef h(): yield from q\n",
        "with a as b, c:\n\tprint(f'{x}', b'a' b'b', 0x1f, 1_0.5e3j)\nassert not a if b else c or d\n",
    ]
    rng = random.Random(3)
    texts = [mutated(rng, rng.choice(programs), "ab1 \n\t():[]{},.=*'#") for _ in range(300)]
    assert [text for text in programs if not (spec.matches(text) and accepts(parser, text))] == []

    def lark_takes(program: str) -> bool:
        try:
            return accepts(parser, program)
        except DedentError:
            return False

    assert [program for program in texts if spec.matches(program) != lark_takes(program)] == []


CALCULATOR = """
?start: sum | NAME "=" sum -> assign
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: power | product "*" power -> mul | product "/" power -> div
?power: atom | atom "^" power
?atom: NUMBER -> number | "-" atom -> neg | NAME -> var | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
SETTINGS = r"""
start: _NL? section+
section: "[" NAME "]" _NL item*
item: NAME "=" VALUE? _NL
NAME: /\w/+
VALUE: /[^\n;]+/
%import common.NEWLINE -> _NL
%import common.WS_INLINE
%ignore WS_INLINE
%ignore /;[^\n]*/
"""
TURTLE = r"""
start: (instruction _END)+
instruction: MOVE NUMBER -> move
    | "color" WORD [WORD] -> colour
    | "repeat" NUMBER block -> repeat
block: "{" _NL? (instruction _END)* "}"
MOVE: "f" | "b" | "l" | "r"
_END: ";" _NL? | _NL
_NL: /(\r?\n)+\s*/
%import common.INT -> NUMBER
%import common (WORD, WS_INLINE)
%ignore WS_INLINE
%ignore /#[^\n]*/
"""
FLIES = """
sentence: noun verb noun -> simple | noun verb "like" noun -> comparative
noun: adjective? NOUN
verb: VERB
adjective: ADJECTIVE
NOUN: "flies" | "bananas" | "fruit"
VERB: "like" | "flies"
ADJECTIVE: "fruit"
%import common.WS
%ignore WS
"""
MARKUP = r"""
start: element
element: "<" NAME attribute* ("/>" | ">" (TEXT | element)* "</" NAME ">")
attribute: NAME "=" ESCAPED_STRING
NAME: /[a-z]+/
TEXT: /[^<>\s][^<>]*/
%import common.ESCAPED_STRING
%import common.WS
%ignore WS
"""
LISTS = """
start: list{pair{NAME, value}, ";"} | between{"<", value, ">"}
list{item, mark}: [item (mark item)*]
pair{key, what}: key ":" what
between{open, what, close}: open list{what, ","} close
?value: INT | NAME | between{"[", value, "]"}
NAME.2: /[a-z]+/
%import common (INT, WS)
%ignore WS
"""
KINDS = {
    "calculator": (CALCULATOR, "start", ["x = 1 + 2*-(y-3) ^2", "((1))/4.5e1", "a_1"], "x1+-*/^=(). "),
    "settings": (
        SETTINGS,
        "start",
        ["[a]\nb = c d ; e\nf=\n\n[g]\n", "\n[a1]\n"],
        "ab1[]=; \n",
    ),
    "turtle": (
        TURTLE,
        "start",
        ["color red blue; f 100\nrepeat 3 {\n  f 2; l 90\n}\n", "repeat 2 {} # x\n"],
        "fbx1{};# \n",
    ),
    "flies": (FLIES, "sentence", ["fruit flies like bananas", "flies flies bananas"], "flies "),
    "markup": (MARKUP, "start", ['<a b="c"> d <e/> f </a>', "<a><b></b></a>"], '<>/ab="\\ '),
    "lists": (LISTS, "start", ["a: 1; b: [c, [2], []]", "", "<1, a>"], "ab1:;,[]<> "),
}


@pytest.mark.parametrize("parser_name", ["earley", "lalr"])
@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_grammars(name: str, parser_name: str) -> None:
    """Sentences, mutated sentences and samples are members exactly if Lark's parsers take them."""
    grammar, start, sentences, alphabet = KINDS[name]
    lexer = "dynamic" if parser_name == "earley" else "contextual"
    try:
        parser = lark.Lark(grammar, start=start, parser=parser_name, lexer=lexer)
    except lark.exceptions.GrammarError as error:
        pytest.skip(f"not LALR: {error!s:.60}")
    spec = constrain.grammar(grammar, start=start)
    rng = random.Random(4)
    texts = [mutated(rng, rng.choice(sentences), alphabet) for _ in range(300)]
    texts += [spec.sample(np.random.default_rng(seed), max_bytes=120) for seed in range(30)]
    assert [text for text in sentences if not (spec.matches(text) and accepts(parser, text))] == []
    assert [text for text in texts if spec.matches(text) != accepts(parser, text)] == []


TREE = r"""
start: _NL? tree+
tree: NAME _NL [_INDENT tree+ _DEDENT]
NAME: /[a-z]+/
_NL: /(\r?\n[\t ]*)+/
%declare _INDENT _DEDENT
%ignore / +/
"""


class TreeIndenter(Indenter):
    """Indentation of ``TREE``."""

    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = []
    CLOSE_PAREN_types: ClassVar[list[str]] = []
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


def test_indented_tree() -> None:
    """Outlines by indentation, with Lark's `Indenter`."""
    spec = constrain.grammar(TREE, indentation={"newline": "_NL", "indent": "_INDENT", "dedent": "_DEDENT"})
    parser = lark.Lark(TREE, parser="lalr", postlex=TreeIndenter())
    sentences = ["a\n  b\n  c\n    d\n    e\n  f\ng\n", "\na\n\tb\n\n        c\n"]
    rng = random.Random(5)

    def lark_takes(text: str) -> bool:
        try:
            return accepts(parser, text)
        except DedentError:
            return False

    texts = [mutated(rng, rng.choice(sentences), "ab \n\t") for _ in range(300)]
    assert [text for text in sentences if not (spec.matches(text) and lark_takes(text))] == []
    assert [text for text in texts if spec.matches(text) != lark_takes(text)] == []
