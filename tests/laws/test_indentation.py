"""Grammars whose indentation counts, against brute force and against Lark."""

from __future__ import annotations

import dataclasses
import random

import lark
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from lark.indenter import Indenter

import constrain
from constrain.grammars import ir
from constrain.spec import Spec
from constrain.tokenizer_index.budget import Budget
from tests import strategies
from tests.laws.indented import (
    CLOSING,
    DASH,
    DEDENT,
    INDENT,
    INDENTED,
    NAME,
    NEWLINE,
    NEWLINES,
    OPENING,
    indented_grammars,
    outline,
    statements,
)
from tests.laws.test_budgets import check_budgets
from tests.laws.test_masks import check_all_states
from tests.laws.test_switches import arena
from tests.laws.walks import compile_grammar, members_of
from tests.reference.engine import ReferenceEngine
from tests.reference.vocabularies import TokenList, one_byte_per_token, with_all_bytes

WORDS = [
    *(b"a", b"aa", b"a:", b":\n", b"\n", b"\n\n", b"\n ", b"\n  ", b" ", b"  ", b"    ", b"\t", b"\n\t"),
    *(
        b"\n a",
        b"\n  a",
        b" a",
        b"  a\n",
        b"a\n",
        b"a\n a",
        b"\r\n",
        b"\r\n  ",
        b"a:\n  a\n",
        b"a:\n a:\n  a\na",
    ),
    *(
        b"(",
        b"a(",
        b"(\n",
        b")\n",
        b"a(\n a\n)",
        b"#",
        b"# a",
        b"#\n",
        b" # a\n  ",
        b"\n#a\n a",
        b"\x0c",
        b"\n \x0c ",
    ),
    *(b"- ", b"-\n  ", b"- a\n", b";", b";a", b"\n" + b" " * 40, b" " * 9, b" " * 70, None),
]


@pytest.mark.parametrize("name", INDENTED)
def test_masks_of_indented_grammars(name: str) -> None:
    """E1: masks are those of brute force, also where tokens span lines and blocks."""
    assert check_all_states(INDENTED[name], with_all_bytes(WORDS, vocab_size=310), at_most=40) == 40


@pytest.mark.parametrize("name", INDENTED)
def test_lexing_leads_to_no_dead_end(name: str) -> None:
    """The same without costs, which would strike tokens that nothing follows: all states up to some blocks deep."""
    grammar, tokens = INDENTED[name], with_all_bytes(WORDS, vocab_size=310)
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    tables = arena(grammar, tokens.build())
    for token_ids, expected in reference.reachable(at_most=200):
        state = tables.start
        for token_id in token_ids:
            state = tables.advance(state, token_id)
        after = [tokens.tokens[t] for t in token_ids]
        assert members_of(tables.mask(state).view(np.int32)) == reference.mask(expected), after
        assert tables.is_accepting(state) == reference.language.is_accepting(expected), after


@strategies.fixed(60)
@given(indented_grammars(), strategies.vocabularies("aa:()#- \n\n\t"))
def test_masks_of_random_indented_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """The same for random grammars and vocabularies."""
    try:
        Spec.from_grammar(grammar)
    except constrain.UnsupportedFeatureError:
        event("refused")
        return
    check_all_states(grammar, tokens, at_most=10)


# ------------------------------------------------------------------------------------ budgets


@pytest.mark.parametrize("name", INDENTED)
def test_budgets_of_indented_grammars(name: str) -> None:
    """E14: a budget is never overspent, whatever blocks are open; bounds are never too low."""
    for tokens in (with_all_bytes(WORDS, vocab_size=310), one_byte_per_token()):
        compiled = compile_grammar(INDENTED[name], tokens)
        check_budgets(compiled, tokens, random.Random(5))
        reference = ReferenceEngine(INDENTED[name], tokens.tokens, tokens.eos_token_ids, at_most=20_000)
        for text in (b"", b"a", b"a:", b"a:\n  a", b"a:\n  a:\n   a", b"a:\n    a(a\n"):
            matcher = compiled.matcher()
            if matcher.accept_string(text):
                enough = matcher.min_tokens_to_finish()
                fewest = reference.fewest_tokens(reference.language.steps(reference.start, text))
                assert fewest is not None and fewest <= enough
                assert fewest == enough or not enough.is_exact


@pytest.mark.parametrize("name", ["statements", "outline", "one line at a time"])
def test_costs_with_tiny_tables(name: str) -> None:
    """E8: costs are the same where every table starts at size 1."""
    vocabulary = with_all_bytes(WORDS, vocab_size=310).build()
    plain = arena(INDENTED[name], vocabulary)
    tiny = arena(INDENTED[name], vocabulary, initial_capacity=1)
    of_plain, of_tiny = Budget(plain, vocabulary), Budget(tiny, vocabulary)
    rng = random.Random(3)
    one, two = plain.start, tiny.start
    for _ in range(25):
        assert of_plain.cost(one) == of_tiny.cost(two)
        mask = plain.mask(one)
        assert (mask == tiny.mask(two)).all()
        choices = sorted(members_of(mask.view(np.int32)) - set(vocabulary.eos_token_ids))
        if not choices:
            break
        token_id = rng.choice(choices)
        one, two = plain.advance(one, token_id), tiny.advance(two, token_id)


# ------------------------------------------------------------------------------------ Lark

STATEMENTS = r"""
file: (_NL | statement)*
statement: term _NL | term ":" block
block: term _NL | _NL _INDENT statement+ _DEDENT
term: NAME | NAME "(" term* ")"
NAME: /[a-z]+/
COMMENT: /#[ -~]*/
_NL: (/\r?\n[\t ]*/ | COMMENT)+
%ignore /[\t ]+/
%declare _INDENT _DEDENT
"""
OUTLINE = r"""
file: _NL? (keys | items)
keys: (NAME ":" value)+
items: ("-" value)+
value: NAME _NL | _NL _INDENT (keys | items) _DEDENT
NAME: /[a-z]+/
_NL: /(\r?\n[\t ]*)+/
%ignore /[\t ]+/
%declare _INDENT _DEDENT
"""


class _Blocks(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR"]  # noqa: RUF012
    CLOSE_PAREN_types = ["RPAR"]  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


def _parses(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except (lark.exceptions.UnexpectedInput, lark.exceptions.LarkError, AssertionError):
        return False
    return True


def _statement(rng: random.Random, width: int, depth: int) -> str:
    pad, gap = " " * width, rng.choice(["", " ", "  "])
    term = rng.choice(["a", "b", "a(b)", f"f({gap}a\n{gap}b # c\n)"])
    end = rng.choice(["", "", " # c", "\n", "\n\n   ", "\n# d", "\n      # d"]) + "\n"
    if depth == 0 or rng.random() < 0.5:
        return f"{pad}{term}{gap}{end}"
    if rng.random() < 0.2:
        return f"{pad}{term}:{gap}a{end}"
    inner = width + rng.choice([1, 2, 4])
    body = "".join(_statement(rng, inner, depth - 1) for _ in range(rng.randint(1, 3)))
    return f"{pad}{term}{gap}:{end}{body}"


def _outline(rng: random.Random, width: int, depth: int) -> str:
    key, pad = rng.choice(["a:", "- "]), " " * width
    lines = []
    for _ in range(rng.randint(1, 3)):
        if depth == 0 or rng.random() < 0.5:
            lines.append(f"{pad}{key}{rng.choice(['', ' '])}b{rng.choice(['', '  '])}\n")
        else:
            inner = width + rng.choice([1, 2, 4])
            end = rng.choice(["", "\n", "  "])
            lines.append(f"{pad}{key}{end}\n" + _outline(rng, inner, depth - 1))
    return "".join(lines)


def _mutated(rng: random.Random, text: str, letters: str) -> str:
    for _ in range(rng.randint(0, 2)):
        i = rng.randrange(len(text) + 1)
        text = text[:i] + rng.choice(["", rng.choice(letters)]) + text[i + rng.randint(0, 1) :]
    # Lark finds no width in a last line without a line break, and one in a comment.
    return text.rstrip(" ") + "\n"


@strategies.fixed(150)
@given(st.randoms(use_true_random=False), st.sampled_from(["statements", "outline"]))
def test_texts_against_lark(rng: random.Random, name: str) -> None:
    """E5: valid and mutated texts are judged as Lark's `Indenter` and its LALR parser judge them."""
    spec, parser = SPECS[name], PARSERS[name]
    make = _statement if name == "statements" else _outline
    for _ in range(10):
        text = make(rng, 0, 3)
        assert spec.matches(text) and _parses(parser, text), text
        text = _mutated(rng, text, "ab:()# \n-")
        assert spec.matches(text) == _parses(parser, text), text


# Lark ignores blanks before the first lexeme, too.
SPECS = {
    name: Spec.from_grammar(dataclasses.replace(g, ignored=dataclasses.replace(g.ignored, leading=True)))
    for name, g in (("statements", statements()), ("outline", outline()))
}
PARSERS = {
    name: lark.Lark(text, parser="lalr", start="file", postlex=_Blocks())
    for name, text in (("statements", STATEMENTS), ("outline", OUTLINE))
}


# ------------------------------------------------------------------------------------ refusals


def _grammar(body: ir.Expression, **changes: object) -> ir.Grammar:
    plain = statements()
    values: dict[str, object] = {"rules": {"file": body}, "start": "file", **changes}
    return dataclasses.replace(plain, **values)  # type: ignore[arg-type]


_T = ir.TerminalReference
BAD = {
    "open": (ir.Sequence((_T(NEWLINE), _T(INDENT), _T(NAME))), "must close"),
    "closed twice": (ir.Sequence((_T(NAME), _T(NEWLINE), _T(DEDENT))), "must close"),
    "indent without newline": (
        ir.Sequence((_T(NAME), _T(INDENT), _T(NAME), _T(NEWLINE), _T(DEDENT))),
        "directly",
    ),
    "nothing inside": (ir.Sequence((_T(NEWLINE), _T(INDENT), _T(DEDENT))), "behind an indent"),
    "dedent without newline": (
        ir.Sequence((_T(NEWLINE), _T(INDENT), _T(NAME), _T(DEDENT), _T(NAME))),
        "behind a newline",
    ),
    "two newlines": (ir.Sequence((_T(NAME), _T(NEWLINE), _T(NEWLINE), _T(NAME))), "optional"),
    "half a bracket": (ir.Sequence((_T(OPENING), _T(NAME))), "closed"),
    "brackets apart": (ir.Sequence((ir.Choice((_T(OPENING), _T(DASH))), _T(CLOSING))), "closed"),
}


@pytest.mark.parametrize("name", BAD)
def test_rules_that_no_text_can_follow(name: str) -> None:
    """Rules that ask for what indentation cannot give are refused, and the rule is named."""
    body, reason = BAD[name]
    with pytest.raises(constrain.UnsupportedFeatureError, match=reason) as caught:
        Spec.from_grammar(_grammar(body))
    assert "'file'" in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        ir.Literal(b"\n"),
        ir.Literal(b";"),
        ir.Repeat(ir.Literal(b"\n "), 1, 9000),
        ir.Intersection((NEWLINES["lines"], ir.Repeat(ir.ByteClass(((0, 255),)), 0, 9))),
    ],
    ids=["no blanks", "no line feed", "counted", "a conjunction"],
)
def test_newlines_that_cannot_be_measured(pattern: ir.Pattern) -> None:
    """A newline terminal that cannot tell widths is refused."""
    grammar = statements()
    terminals = list(grammar.terminals)
    terminals[NEWLINE] = dataclasses.replace(terminals[NEWLINE], pattern=pattern)
    with pytest.raises(constrain.UnsupportedFeatureError, match="newline"):
        Spec.from_grammar(dataclasses.replace(grammar, terminals=tuple(terminals)))


@pytest.mark.parametrize(
    "changes",
    [
        {"newline": 99},
        {"indent": NEWLINE},
        {"brackets": ((OPENING, NEWLINE),)},
        {"tab": 0},
        {"tab": 10**30},
        {"dedent": -1},
    ],
    ids=str,
)
def test_bad_indentation(changes: dict[str, object]) -> None:
    """Indentation that names no terminals, or one twice, is a clear error."""
    grammar = statements()
    assert grammar.indentation is not None
    bad = dataclasses.replace(grammar.indentation, **changes)  # type: ignore[arg-type]
    with pytest.raises(constrain.SpecError):
        Spec.from_grammar(dataclasses.replace(grammar, indentation=bad))


def test_unions_with_indentation_are_refused() -> None:
    """Two grammars can't share a text where indentation counts in one of them."""
    for make in (lambda a, b: a | b, lambda a, b: a + b):
        with pytest.raises(constrain.UnsupportedFeatureError, match="indentation"):
            make(SPECS["outline"], constrain.regex("a"))


def test_lines_may_be_very_wide() -> None:
    """Widths go up to 8,190 columns; wider lines are refused."""
    spec = SPECS["statements"]
    for width, is_fine in ((8190, True), (8191, False)):
        pad = " " * width
        assert spec.matches(f"a:\n{pad}a\n{pad}b\nc\n") == is_fine
        assert spec.matches(f"a\n{pad}\nb\n")
