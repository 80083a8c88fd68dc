"""E9: text that must come next."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given

import constrain
from constrain.grammars import ir
from tests import strategies
from tests.laws.specs import SPECS, small_vocabulary
from tests.laws.walks import allowed, compile_grammar, matcher_after, random_walk
from tests.reference.engine import ReferenceEngine
from tests.reference.grammar import State
from tests.reference.vocabularies import TokenList, one_byte_per_token, tokenizer_file


def _forced_bytes(reference: ReferenceEngine, state: State, at_most: int = 40) -> bytes:
    """Return the bytes that every text from ``state`` begins with."""
    forced = b""
    while len(forced) < at_most and not reference.language.is_accepting(state):
        alive = [b for b in range(256) if reference.is_viable(reference.language.step(state, b))]
        if len(alive) != 1:
            break
        forced += bytes(alive)
        state = reference.language.step(state, alive[0])
    return forced


def _whole_characters(data: bytes) -> str:
    """Decode as far as characters are whole."""
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
    return ""


@strategies.fixed(60)
@given(strategies.grammars())
def test_forced_strings_are_the_only_way(grammar: ir.Grammar) -> None:
    """The forced string is the longest text that every completion begins with, in whole characters."""
    tokens = one_byte_per_token()
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    assume(reference.is_viable(reference.start))
    compiled = compile_grammar(grammar, tokens)
    for token_ids, state in reference.reachable(at_most=6):
        matcher = matcher_after(compiled, token_ids)
        before = allowed(matcher, tokens.size)
        forced = _forced_bytes(reference, state)
        if len(forced) < 40:
            assert matcher.find_jump_forward_string() == _whole_characters(forced)
        assert allowed(matcher, tokens.size) == before, "asking changed the state"


@strategies.fixed(60)
@given(strategies.grammars(), strategies.vocabularies())
def test_forced_tokens_keep_every_text(grammar: ir.Grammar, tokens: TokenList) -> None:
    """Forced tokens spell a first part of the forced text, and where they end no allowed token reaches past it."""
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    assume(reference.is_viable(reference.start))
    compiled = compile_grammar(grammar, tokens)
    for token_ids, state in reference.reachable(at_most=6):
        matcher = matcher_after(compiled, token_ids)
        forced = _forced_bytes(reference, state)
        text = b"".join(tokens.tokens[t] or b"" for t in matcher.forced_tokens())
        if len(forced) < 40:
            assert forced.startswith(text)
        assert matcher.validate_tokens(matcher.forced_tokens()) == len(matcher.forced_tokens())


@pytest.mark.parametrize("name", SPECS)
def test_forced_tokens_are_accepted(name: str) -> None:
    """Forced tokens are accepted one after another, and each is the start of all that may follow."""
    tokens = small_vocabulary()
    compiled = constrain.compile(SPECS[name](), tokens.build(), cache=False)
    for matcher, _ in random_walk(compiled, tokens.size, tokens.eos_token_ids, random.Random(1), 10):
        fork = matcher.fork()
        for token_id in matcher.forced_tokens():
            forced = fork.find_jump_forward_string().encode()
            data = tokens.tokens[token_id] or b""
            assert forced.startswith(data) or data.startswith(forced)
            for other in allowed(fork, tokens.size) - set(tokens.eos_token_ids):
                spelled = tokens.tokens[other] or b""
                assert spelled.startswith(forced) or forced.startswith(spelled)
            assert fork.accept_token(token_id)


def test_forced_text_keeps_the_tokenizers_own_tokens() -> None:
    """Where a whole text is forced, it is found whole, and the tokenizer's own tokens for it are allowed."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    file = tokenizer_file("llama3_1")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), eos_token="<|eot_id|>")
    vocabulary = constrain.Vocabulary.from_transformers(tokenizer)
    for text in ('{"customer_identifier": "', "Übergrößenträger, naïve 日本語", "    return value + 10"):
        endings = ("end A", "other")
        spec = constrain.choice([text + ending for ending in endings])
        compiled = constrain.compile(spec, vocabulary, cache=False)
        assert compiled.matcher().find_jump_forward_string() == text
        for ending in endings:
            matcher = matcher_after(compiled, tokenizer.encode(text + ending, add_special_tokens=False))
            assert matcher.is_accepting()


def test_forced_tokens_without_alternatives() -> None:
    """Where no other token spells a part of the text, all its tokens are forced, up to the first choice."""
    tokens = TokenList((b"abc", b"de", b"d", b"ef", b"x", b"y", None), (6,))
    pattern = ir.Concatenation((ir.Literal(b"abcabc"), ir.Alternation((ir.Literal(b"x"), ir.Literal(b"y")))))
    compiled = compile_grammar(ir.pattern_grammar(pattern), tokens)
    assert compiled.matcher().forced_tokens() == [0, 0]
    pattern = ir.Alternation((ir.Literal(b"abcdef"), ir.Literal(b"abcdea")))
    assert compile_grammar(ir.pattern_grammar(pattern), tokens).matcher().forced_tokens() == [0, 2, 3]
