"""Every state that tests reach shows a completion and a rank that falls."""

from __future__ import annotations

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from tests import strategies
from tests.laws.specs import SPECS, real_vocabulary, small_vocabulary
from tests.laws.walks import compile_grammar, matcher_after, random_walk
from tests.reference.certificate import CertificateError, check_state, check_walk
from tests.reference.engine import ReferenceEngine, UnknownError
from tests.reference.vocabularies import TokenList


def _check_grammar(grammar: ir.Grammar, tokens: TokenList) -> None:
    try:
        reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
        states = reference.reachable(at_most=8)
    except UnknownError:
        event("gave up")
        return
    if not states:
        return
    compiled = compile_grammar(grammar, tokens)
    for token_ids, state in states:
        matcher = matcher_after(compiled, token_ids)
        certificate = check_state(matcher, tokens.size, tokens.eos_token_ids)
        completed = reference.after([*token_ids, *certificate.token_ids])
        assert reference.language.is_accepting(completed)
        try:
            fewest = reference.fewest_tokens(state)
        except UnknownError:
            event("fewest unknown")
            continue
        bound = matcher.min_tokens_to_finish()
        assert fewest is not None and int(bound) >= fewest, f"{bound} tokens are not enough"
        if bound.is_exact:
            assert int(bound) == fewest
            event("exact")


@strategies.fixed(50)
@given(strategies.grammars(), strategies.vocabularies())
def test_ranks_of_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """I4: ranks fall to acceptance, are never below the fewest tokens, and equal them where exact."""
    _check_grammar(grammar, tokens)


@strategies.fixed(50)
@given(strategies.lexical_grammars(), strategies.vocabularies('ab.1"; \n#'))
def test_ranks_of_lexical_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """The same where lexemes fuse and hide one another, so that separators must stand between them."""
    try:
        _check_grammar(grammar, tokens)
    except constrain.UnsupportedFeatureError:
        event("refused")


@strategies.fixed(50)
@given(strategies.any_patterns(), st.booleans().flatmap(lambda m: strategies.vocabularies("abé ", missing=m)))
def test_ranks_of_patterns(pattern: ir.Pattern, tokens: TokenList) -> None:
    """The same for patterns, also where some bytes are no tokens."""
    _check_grammar(ir.pattern_grammar(pattern), tokens)


@pytest.mark.parametrize("name", SPECS)
def test_ranks_along_walks(name: str) -> None:
    """Every state of random walks through the usual kinds of spec has its certificate."""
    tokens = small_vocabulary()
    compiled = constrain.compile(SPECS[name](), tokens.build(), cache=False)
    for seed in range(3):
        walk = list(random_walk(compiled, tokens.size, tokens.eos_token_ids, random.Random(seed), 8))
        check_walk(compiled, walk[-1][1], tokens.size, tokens.eos_token_ids)


@pytest.mark.parametrize("name", SPECS)
def test_ranks_on_a_real_vocabulary(name: str) -> None:
    """The same with 128,256 tokens."""
    vocabulary = real_vocabulary()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    walk = random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, random.Random(7), 5)
    for matcher, _ in walk:
        check_state(matcher, vocabulary.size, vocabulary.eos_token_ids)


def test_checker_notices_a_wrong_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker is not a rubber stamp: a rank that is off by one is refused."""
    tokens = small_vocabulary()
    compiled = constrain.compile(constrain.regex("abc"), tokens.build(), cache=False)
    matcher = compiled.matcher()
    true_rank = constrain.Matcher.min_tokens_to_finish
    for wrong in (
        lambda m: constrain.MinTokens(int(true_rank(m)) + 1, True),
        lambda m: constrain.MinTokens(0, True),
    ):
        monkeypatch.setattr(constrain.Matcher, "min_tokens_to_finish", wrong)
        with pytest.raises(CertificateError):
            check_state(matcher, tokens.size, tokens.eos_token_ids)
