"""E14: a budget of tokens is never overspent and never ends in a dead end."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from constrain.grammars.combine import union
from tests import strategies
from tests.laws.specs import SPECS, real_vocabulary, small_vocabulary
from tests.laws.walks import allowed, allowed_within, compile_grammar
from tests.reference.budget import spend
from tests.reference.engine import ReferenceEngine
from tests.reference.vocabularies import TokenList


def check_budgets(compiled: constrain.CompiledSpec, tokens: TokenList, rng: random.Random) -> None:
    """Spend budgets from the least upwards, mostly as badly as may be."""
    least = int(compiled.matcher().min_tokens_to_finish())
    for budget in (least, least + 1, least + 2, least + 7):
        for worst in (1.0, 0.5):
            matcher = compiled.matcher()
            spent = spend(
                matcher,
                budget,
                tokens.eos_token_ids,
                lambda m, remaining: allowed_within(m, tokens.size, remaining),
                rng,
                worst=worst,
            )
            assert len(spent) <= budget
            assert matcher.is_accepting()
            assert compiled.matcher().validate_tokens([*spent, tokens.eos_token_ids[0]]) == len(spent) + 1


@strategies.fixed(40)
@given(strategies.grammars(), strategies.vocabularies(), st.randoms(use_true_random=False))
def test_adversary_on_grammars(grammar: ir.Grammar, tokens: TokenList, rng: random.Random) -> None:
    """Always the worst allowed token, from the least budget upwards: never stuck, never over."""
    try:
        compiled = compile_grammar(grammar, tokens)
    except constrain.EmptyLanguageError:
        return
    check_budgets(compiled, tokens, rng)


@strategies.fixed(40)
@given(
    strategies.lexical_grammars(),
    strategies.vocabularies('ab.1"; \n#'),
    st.randoms(use_true_random=False),
)
def test_adversary_on_lexical_grammars(grammar: ir.Grammar, tokens: TokenList, rng: random.Random) -> None:
    """The same where lexemes fuse and hide one another, so that separators must stand between them."""
    try:
        compiled = compile_grammar(grammar, tokens)
    except (constrain.EmptyLanguageError, constrain.UnsupportedFeatureError):
        return
    check_budgets(compiled, tokens, rng)


@strategies.fixed(15)
@given(
    strategies.lexical_grammars(),
    strategies.lexical_grammars(),
    strategies.vocabularies('ab.1"; \n#'),
    st.randoms(use_true_random=False),
)
def test_adversary_on_unions(
    first: ir.Grammar, second: ir.Grammar, tokens: TokenList, rng: random.Random
) -> None:
    """The same where two grammars are read apart."""
    try:
        compiled = compile_grammar(union(first, second), tokens)
    except (constrain.EmptyLanguageError, constrain.UnsupportedFeatureError):
        return
    check_budgets(compiled, tokens, rng)


@strategies.fixed(40)
@given(
    strategies.any_patterns(),
    st.booleans().flatmap(lambda missing: strategies.vocabularies("abé ", missing=missing)),
    st.randoms(use_true_random=False),
)
def test_adversary_on_patterns(pattern: ir.Pattern, tokens: TokenList, rng: random.Random) -> None:
    """The same for patterns, also where some bytes are no tokens."""
    try:
        compiled = compile_grammar(ir.pattern_grammar(pattern), tokens)
    except constrain.EmptyLanguageError:
        return
    check_budgets(compiled, tokens, rng)


@pytest.mark.parametrize("name", SPECS)
def test_adversary_on_specs(name: str) -> None:
    """The same for the usual kinds of spec."""
    tokens = small_vocabulary()
    check_budgets(constrain.compile(SPECS[name](), tokens.build(), cache=False), tokens, random.Random(11))


@pytest.mark.parametrize("name", ["record", "email", "expressions"])
@pytest.mark.parametrize("favourite", [" ", "1", "[", "("])
def test_adversary_with_a_favourite(name: str, favourite: str) -> None:
    """With 128,256 tokens: whoever takes the blank, the digit or the bracket while allowed still finishes."""
    vocabulary = real_vocabulary()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    matcher = compiled.matcher()
    budget = int(matcher.min_tokens_to_finish()) + 6
    ends = set(vocabulary.eos_token_ids)
    for remaining in range(budget, -1, -1):
        mask = allowed_within(matcher, vocabulary.size, remaining)
        assert mask
        choices = mask - ends
        if not choices:
            break
        assert remaining > 0
        liked = [t for t in sorted(choices) if favourite.encode() in (vocabulary.tokens[t] or b"")]
        assert matcher.accept_token(liked[0] if liked else max(choices))
    assert matcher.is_accepting()


@strategies.fixed(40)
@given(strategies.grammars(), strategies.vocabularies(), st.integers(0, 12))
def test_budget_masks_lie_between(grammar: ir.Grammar, tokens: TokenList, remaining: int) -> None:
    """A budget only takes tokens away, takes fewer the larger it is, and none that needs more is left."""
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    try:
        compiled = compile_grammar(grammar, tokens)
    except constrain.EmptyLanguageError:
        return
    matcher = compiled.matcher()
    least = int(matcher.min_tokens_to_finish())
    plain = allowed(matcher, tokens.size)
    mask = allowed_within(matcher, tokens.size, least + remaining)
    assert mask <= allowed_within(matcher, tokens.size, least + remaining + 1) <= plain
    assert plain == allowed_within(matcher, tokens.size, 10_000)
    for token_id in sorted(mask - set(tokens.eos_token_ids))[:40]:
        fewest = reference.fewest_tokens(reference.after([token_id]))
        assert fewest is not None and fewest <= least + remaining - 1
