"""Grammars whose indentation counts, against brute force and against Lark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given

import constrain
from constrain.grammars import ir
from tests import strategies
from tests.laws.indented import INDENTED, indented_grammars
from tests.laws.test_masks import check_all_states
from tests.laws.test_switches import arena
from tests.laws.walks import members_of
from tests.reference.engine import ReferenceEngine
from tests.reference.vocabularies import TokenList, with_all_bytes

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
        constrain.spec.Spec.from_grammar(grammar)
    except constrain.UnsupportedFeatureError:
        event("refused")
        return
    check_all_states(grammar, tokens, at_most=10)
