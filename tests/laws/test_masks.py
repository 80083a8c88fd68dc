"""Masks of small grammars against brute force, on every state that tokens reach."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from tests import strategies
from tests.laws.walks import allowed, compile_grammar, expression_grammar, list_grammar, matcher_after
from tests.reference.engine import ReferenceEngine, UnknownError
from tests.reference.vocabularies import TokenList, one_byte_per_token, with_all_bytes


def check_all_states(grammar: ir.Grammar, tokens: TokenList, *, at_most: int = 12) -> int:
    """Compare every mask with brute force; return how many were compared.

    The first states from the start are looked at, nearest first. Each token of each is also tried
    (I1, I2), and acceptance and end tokens are compared (I4, I5).
    """
    try:
        reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
        states = reference.reachable(at_most=at_most)
        masks = [reference.mask(state) for _, state in states]
    except UnknownError:
        event("gave up")
        return 0
    if not states:
        event("empty language")
        with pytest.raises(constrain.EmptyLanguageError):
            compile_grammar(grammar, tokens)
        return 0
    compiled = compile_grammar(grammar, tokens)
    for (token_ids, state), expected in zip(states, masks, strict=True):
        matcher = matcher_after(compiled, token_ids)
        found = allowed(matcher, tokens.size)
        assert found == expected, (
            f"after {[tokens.tokens[t] for t in token_ids]}: "
            f"wrongly allowed {[tokens.tokens[t] for t in found - expected]}, "
            f"wrongly masked {[tokens.tokens[t] for t in expected - found]}"
        )
        assert matcher.is_accepting() == reference.language.is_accepting(state)
        check_acceptance(matcher, found, tokens)
    return len(states)


def check_acceptance(matcher: constrain.Matcher, mask: set[int], tokens: TokenList) -> None:
    """I1 exactly the tokens of the mask are accepted; I2 a refused one changes nothing; I4; I5."""
    for token_id in range(tokens.size):
        if token_id not in mask:
            assert not matcher.accept_token(token_id), f"token {token_id} is masked and was accepted"
            assert matcher.validate_tokens([token_id]) == 0
    assert allowed(matcher, tokens.size) == mask
    for token_id in mask:
        assert matcher.validate_tokens([token_id]) == 1
        assert matcher.fork().accept_token(token_id), f"token {token_id} is allowed and was refused"
    assert allowed(matcher, tokens.size) == mask
    assert mask, "no token is allowed"
    ends = set(tokens.eos_token_ids)
    assert mask & ends == (ends if matcher.is_accepting() else set())


@strategies.fixed(60)
@given(strategies.any_patterns(), strategies.vocabularies("abé "))
def test_masks_of_patterns(pattern: ir.Pattern, tokens: TokenList) -> None:
    """E1, E12: the mask of a pattern, Boolean or not, is what enumeration gives; empty ones are refused."""
    check_all_states(ir.pattern_grammar(pattern), tokens)


@strategies.fixed(100)
@given(strategies.grammars(), strategies.vocabularies())
def test_masks_of_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """E1: a token is allowed exactly if its bytes can be read and some completion follows."""
    check_all_states(grammar, tokens)


@strategies.fixed(60)
@given(strategies.grammars())
def test_masks_of_bytes(grammar: ir.Grammar) -> None:
    """E1 with one byte per token: masks say which bytes may follow."""
    check_all_states(grammar, one_byte_per_token())


@strategies.fixed(10)
@given(strategies.grammars(greedy=True), strategies.vocabularies())
def test_masks_of_greedy_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """E1 with greedy terminals: no token is allowed after which nothing can end."""
    check_all_states(grammar, tokens, at_most=8)


@strategies.fixed(120)
@given(strategies.any_patterns(), strategies.vocabularies("abé ", missing=True))
def test_missing_bytes(pattern: ir.Pattern, tokens: TokenList) -> None:
    """E1 where some bytes are no tokens: a state counts only if tokens can finish it."""
    check_all_states(ir.pattern_grammar(pattern), tokens)


@strategies.fixed(60)
@given(strategies.grammars(), strategies.vocabularies(missing=True))
def test_missing_bytes_in_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """A grammar for which a byte is missing gets exact masks or a clear refusal."""
    try:
        compile_grammar(grammar, tokens)
    except constrain.VocabularyError:
        event("refused")
        return
    except constrain.EmptyLanguageError:
        event("empty")
    check_all_states(grammar, tokens)


@strategies.fixed(40)
@given(strategies.grammars(greedy=True), strategies.vocabularies(missing=True))
def test_missing_bytes_in_greedy_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """Also where greedy terminals go on to texts that can't be written."""
    try:
        compile_grammar(grammar, tokens)
    except (constrain.VocabularyError, constrain.UnsupportedFeatureError):
        event("refused")
        return
    except constrain.EmptyLanguageError:
        event("empty")
    check_all_states(grammar, tokens, at_most=8)


WORDS = [
    *(b"a", b"ab", b"abc", b"if", b"if(", b"iff", b"+a", b"a+", b"))", b"(a", b" ", b"  ", b" if ", b"12"),
    *(
        b"#",
        b"# #",
        b"##",
        b"#\xc3",
        b"\xa9",
        b"\xc3\xa9",
        b'["',
        b'","',
        b"[[",
        b"]]",
        b'"]',
        b"],[",
        b"null",
    ),
    *(
        b"nul",
        b"nulls",
        b"abcdef",
        b"abcdefg",
        None,
        b"a",
        b'"' + b"x" * 4,
        b"x" * 5,
        b"x" * 200,
        "日".encode(),
    ),
]


@pytest.mark.parametrize(
    "grammar",
    [expression_grammar(), expression_grammar(greedy=False), list_grammar()],
    ids=["expressions", "expressions read in any way", "lists"],
)
def test_masks_of_known_grammars(grammar: ir.Grammar) -> None:
    """E1 on grammars of the usual kind, with tokens that span lexemes, one of them very long."""
    assert check_all_states(grammar, with_all_bytes(WORDS, vocab_size=400), at_most=30) == 30


_A_OR_B = (ir.Repeat(ir.Literal(b"a"), 0, None), ir.Repeat(ir.Literal(b"b"), 0, None))
_BLANK = ir.Terminal(ir.Literal(b" "), "blank")
_FIRST, _SECOND = ir.TerminalReference(0), ir.TerminalReference(1)
_EMPTY_BOTH = ir.Terminal(ir.Intersection(_A_OR_B), "empty")
CORNERS = {
    "conjunction of the empty string": ir.Grammar((_EMPTY_BOTH,), {"start": _FIRST}, "start"),
    "conjunction that may be skipped": ir.Grammar(
        (_EMPTY_BOTH, _BLANK), {"start": ir.Sequence((_FIRST, _SECOND))}, "start"
    ),
    "nothing but blanks": ir.Grammar(
        (_BLANK,), {"start": ir.Sequence(())}, "start", ir.Ignored((0,), leading=True)
    ),
    "nothing between blanks": ir.Grammar(
        (_BLANK,), {"start": ir.Sequence(())}, "start", ir.Ignored((0,), leading=True, trailing=True)
    ),
    "ignored and used": ir.Grammar(
        (_BLANK, ir.Terminal(ir.Literal(b"a"), "a")),
        {"start": ir.Sequence((_FIRST, _SECOND, ir.Repetition(_FIRST, 0, 1)))},
        "start",
        ir.Ignored((0,), leading=True, most=None),
    ),
    "two blanks at most": ir.Grammar(
        (ir.Terminal(ir.Literal(b"a"), "a"), _BLANK, ir.Terminal(ir.Literal(b"#"), "comment")),
        {"start": ir.Repetition(_FIRST, 1, 3)},
        "start",
        ir.Ignored((1, 2), trailing=True, most=2),
    ),
    "blanks that overlap": ir.Grammar(
        (ir.Terminal(ir.Literal(b"a"), "a"), ir.Terminal(ir.Repeat(ir.Literal(b" "), 1, 3), "blank")),
        {"start": ir.Repetition(_FIRST, 1, 3)},
        "start",
        ir.Ignored((1,), leading=True, trailing=True, most=None),
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_masks_of_corners(name: str) -> None:
    """E1 on grammars that were once wrong, with a token longer than all others."""
    tokens = with_all_bytes([b" " * 20, b"a  ", b"  a", b"a", b" " * 300, b" #", b"a # ", b"a#a"])
    assert check_all_states(CORNERS[name], tokens, at_most=20)


def test_ignored_text_like_a_symbol_must_be_allowed_to_repeat() -> None:
    """A symbol that may be read as ignored text, where that may not repeat, is refused and named."""
    space = ir.Terminal(ir.Repeat(ir.Literal(b" "), 1, 2), "space")
    for terminals, start in (((_BLANK,), _FIRST), ((_BLANK, space), _SECOND)):
        grammar = ir.Grammar(terminals, {"start": start}, "start", ir.Ignored((0,), leading=True))
        with pytest.raises(constrain.UnsupportedFeatureError, match=terminals[-1].name):
            compile_grammar(grammar, one_byte_per_token())


@strategies.fixed(60)
@given(strategies.grammars(), st.data())
def test_bytes_decide_not_tokens(grammar: ir.Grammar, data: st.DataObject) -> None:
    """I3: however a text is cut into tokens, what may follow is the same."""
    pieces = data.draw(st.lists(st.sampled_from([b"a", b"b", b"ab", b"(", b",", b" "]), max_size=4))
    tokens = with_all_bytes(
        [bytes(b"".join(p)) for n in (2, 3) for p in itertools.product(pieces, repeat=n)][:40]
    )
    try:
        compiled = compile_grammar(grammar, tokens)
    except constrain.EmptyLanguageError:
        assume(False)
    text = b"".join(pieces)
    seen: dict[bytes, set[int]] = {}
    stack: list[list[int]] = [[]]
    for token_ids in itertools.islice(stack, 60):
        done = b"".join(tokens.tokens[t] or b"" for t in token_ids)
        matcher = compiled.matcher()
        if not all(map(matcher.accept_token, token_ids)):
            assert done not in seen
            continue
        mask = allowed(matcher, tokens.size)
        assert seen.setdefault(done, mask) == mask
        by_string = compiled.matcher()
        assert by_string.accept_string(done)
        assert allowed(by_string, tokens.size) == mask
        for token_id, token in enumerate(tokens.tokens):
            if token and text.startswith(done + token):
                stack.append([*token_ids, token_id])


@strategies.fixed(60)
@given(strategies.grammars())
def test_bytes_of_a_class_are_alike(grammar: ir.Grammar) -> None:
    """E4: a byte may be replaced by another that no pattern tells from it, and nothing changes."""
    tokens = one_byte_per_token()
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    assume(reference.is_viable(reference.start))
    compiled = compile_grammar(grammar, tokens)
    for token_ids, state in reference.reachable(at_most=5):
        matcher = matcher_after(compiled, token_ids)
        mask = allowed(matcher, tokens.size)
        classes = reference.language.classes(state)
        masks: dict[int, set[int]] = {}
        for byte in range(256):
            first = max(b for b in classes if b <= byte)
            assert (byte in mask) == (first in mask)
            if byte in mask and byte - first < 3:
                after = matcher.fork()
                assert after.accept_token(byte)
                found = allowed(after, tokens.size)
                assert masks.setdefault(first, found) == found
