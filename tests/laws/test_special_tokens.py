"""Special tokens: allowed exactly where the grammar names them, and never through text."""

from __future__ import annotations

import itertools
import pickle
import random

import numpy as np
import pytest
import regex

import constrain
from constrain.base_spec import Spec
from constrain.errors import SpecError, VocabularyError
from constrain.grammars.ir import (
    ANY_TEXT,
    Alternation,
    CharacterClass,
    Choice,
    Complement,
    Concatenation,
    Grammar,
    Intersection,
    Literal,
    Pattern,
    Repeat,
    RuleReference,
    Sequence,
    SpecialToken,
    Terminal,
    TerminalReference,
    pattern_grammar,
)
from constrain.tokenizer_index.special_tokens import spelling
from constrain.tokenizer_index.vocabulary import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
CALL, END, EOS, NAMELESS, TEXT = range(256, 261)
WORDS = [b"<call>", b"call", b"ab", b"a\xff", b"\xff\xf6", spelling("<call>"), b"<", b"ab"]
TOKENS = [*BYTES, None, None, None, None, b"<think>", *WORDS]
SPECIAL = {"<call>": CALL, "<end>": END, "<eos>": EOS, "<think>": TEXT}
VOCABULARY = Vocabulary.from_tokens(TOKENS, eos_token_ids=EOS, vocab_size=300, special_tokens=SPECIAL)


def spec_of(pattern: Pattern) -> Spec:
    return Spec.from_grammar(pattern_grammar(pattern))


def allowed(matcher: constrain.compiled.Matcher) -> set[int]:
    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocab_size)
    matcher.fill_next_token_bitmask(mask, 0)
    bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


# ------------------------------------------------------------------------------------ brute force

# For the module `regex`, which tells what can begin a match, each special token is one more character.

CHARACTERS = {"<call>": "\u24b8", "<end>": "\u24ba"}


def expression(pattern: Pattern) -> str:
    """Return a pattern as an expression for `regex`."""
    match pattern:
        case SpecialToken(name):
            return CHARACTERS[str(name)]
        case Literal(data):
            return regex.escape(data.decode())
        case CharacterClass():
            return "[ab<]"
        case Concatenation(parts):
            return "".join(f"(?:{expression(part)})" for part in parts)
        case Alternation(parts):
            return "|".join(f"(?:{expression(part)})" for part in parts)
        case Repeat(body, low, high):
            return f"(?:{expression(body)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(pattern)


def patterns(rng: random.Random, depth: int = 3) -> Pattern:
    kind = rng.randrange(7 if depth else 3)
    if kind == 0:
        return SpecialToken(rng.choice(["<call>", "<end>"]))
    if kind == 1:
        return Literal(rng.choice([b"a", b"ab", b"<", b"b"]))
    if kind == 2:
        return CharacterClass(((60, 60), (97, 98)))
    if kind in (3, 4):
        return Concatenation(tuple(patterns(rng, depth - 1) for _ in range(rng.randint(1, 3))))
    if kind == 5:
        return Alternation(tuple(patterns(rng, depth - 1) for _ in range(2)))
    low = rng.randint(0, 2)
    return Repeat(patterns(rng, depth - 1), low, rng.choice([None, low, low + 1]) or None)


def text_of(token_id: int) -> str | None:
    """Return what a token stands for where a grammar names the first two special tokens."""
    if token_id in (CALL, END):
        return CHARACTERS["<call>" if token_id == CALL else "<end>"]
    data = TOKENS[token_id]
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("seed", range(80))
def test_masks_are_those_of_another_library(seed: int) -> None:
    rng = random.Random(seed)
    # Both tokens are named in any case, so that text_of holds.
    names = (SpecialToken("<call>"), SpecialToken("<end>"))
    pattern = Alternation((patterns(rng), Concatenation(names)))
    compiled = constrain.compile(spec_of(pattern), VOCABULARY, cache=False)
    oracle = regex.compile(expression(pattern))
    for _ in range(3):
        matcher = compiled.matcher()
        before = ""
        for _ in range(6):
            mask = allowed(matcher)
            assert (EOS in mask) == (oracle.fullmatch(before) is not None)
            for token_id, _ in enumerate(TOKENS):
                text = text_of(token_id)
                is_right = text is not None and oracle.fullmatch(before + text, partial=True) is not None
                if token_id != EOS:
                    assert (token_id in mask) == is_right, (before, token_id)
                assert (token_id in mask) == matcher.fork().accept_token(token_id)
            choices = sorted(mask - {EOS})
            if not choices:
                break
            token_id = rng.choice(choices)
            assert matcher.accept_token(token_id)
            before += text_of(token_id) or ""


# ------------------------------------------------------------------------------------ text


def test_no_text_is_a_special_token() -> None:
    spec = spec_of(Concatenation((Literal(b"x"), SpecialToken("<call>"), Literal(b"y"))))
    compiled = constrain.compile(spec, VOCABULARY, cache=False)
    matcher = compiled.matcher()
    assert matcher.accept_string("x")
    for text in (b"<call>", spelling("<call>"), b"\xff", spelling("<call>")[:3]):
        assert not matcher.accept_string(text)
        assert not spec.matches(b"x" + text + b"y")
    assert allowed(matcher) == {CALL}
    assert matcher.forced_tokens() == [CALL, ord("y")]
    assert compiled.matcher().find_jump_forward_string() == "x"
    assert matcher.find_jump_forward_string() == ""
    assert matcher.min_tokens_to_finish() == 2
    assert matcher.accept_token(CALL)
    assert matcher.accept_token(ord("y"))
    assert matcher.is_accepting()
    assert VOCABULARY.decode([ord("x"), CALL, ord("y")]) == b"xy"
    explanation = spec.explain("x<call>y")
    assert (explanation.offset, explanation.expected) == (1, ("a special token",))
    assert spec.sample(np.random.default_rng(0)) == "x<call>y"


def test_a_text_like_the_name_stays_text() -> None:
    spec = spec_of(Alternation((Literal(b"<call>"), SpecialToken("<call>"))))
    compiled = constrain.compile(spec, VOCABULARY, cache=False)
    assert allowed(compiled.matcher()) == {CALL, ord("<"), TOKENS.index(b"<call>"), len(TOKENS) - 2}
    assert spec.matches("<call>")


def test_tokens_that_are_not_named_are_left_alone() -> None:
    any_text = spec_of(Repeat(CharacterClass(((0, 0xD7FF), (0xE000, 0x10FFFF))), 0, None))
    plain = allowed(constrain.compile(any_text, VOCABULARY, cache=False).matcher())
    assert not plain & {CALL, END, NAMELESS}
    assert {EOS, TEXT} <= plain
    with_call = spec_of(Concatenation((ANY_TEXT, SpecialToken("<call>"))))
    assert allowed(constrain.compile(with_call, VOCABULARY, cache=False).matcher()) == plain - {EOS} | {CALL}


def test_a_named_token_is_no_longer_text() -> None:
    spec = spec_of(Concatenation((ANY_TEXT, SpecialToken("<think>"), ANY_TEXT)))
    matcher = constrain.compile(spec, VOCABULARY, cache=False).matcher()
    assert matcher.accept_string("<think>")
    assert not matcher.is_accepting()
    assert TEXT in allowed(matcher)
    assert matcher.accept_token(TEXT)
    assert matcher.is_accepting()
    assert TEXT not in allowed(matcher)


def test_tokens_by_id() -> None:
    matcher = constrain.compile(spec_of(SpecialToken(NAMELESS)), VOCABULARY, cache=False).matcher()
    assert allowed(matcher) == {NAMELESS}
    padded = constrain.compile(spec_of(SpecialToken(299)), VOCABULARY, cache=False).matcher()
    assert allowed(padded) == {299}


def test_an_end_token_in_the_middle() -> None:
    turn = Concatenation((Literal(b"a"), SpecialToken("<eos>"), Literal(b"b")))
    compiled = constrain.compile(spec_of(turn), VOCABULARY, cache=False)
    matcher = compiled.matcher()
    assert not matcher.accept_token(EOS)
    assert matcher.accept_token(ord("a"))
    assert allowed(matcher) == {EOS}
    assert matcher.accept_token(EOS)
    assert not matcher.is_terminated()
    assert allowed(matcher) == {ord("b")}
    matcher.rollback(1)
    assert matcher.accept_token(EOS)
    assert matcher.accept_token(ord("b"))
    assert matcher.accept_token(EOS)
    assert matcher.is_terminated()
    # Where the output may end, an end token ends it.
    compiled = constrain.compile(spec_of(Repeat(turn, 0, None)), VOCABULARY, cache=False)
    matcher = compiled.matcher()
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_budget_bitmask(mask, 0, remaining=1)
    assert mask[0, EOS >> 5] == 1 << (EOS & 31)


def test_budgets_count_a_special_token_once() -> None:
    spec = spec_of(Concatenation((SpecialToken("<call>"), Literal(b"ab"), SpecialToken("<end>"))))
    matcher = constrain.compile(spec, VOCABULARY, cache=False).matcher()
    assert (matcher.min_tokens_to_finish(), matcher.min_tokens_to_finish().is_exact) == (3, True)
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_budget_bitmask(mask, 0, remaining=4)
    assert mask[0, CALL >> 5] == 1 << (CALL & 31)
    matcher.fill_budget_bitmask(mask, 0, remaining=3)
    assert not mask.any()


def test_in_recursive_rules_and_conjunctions() -> None:
    terminals = (
        Terminal(SpecialToken("<call>"), "open"),
        Terminal(SpecialToken("<end>"), "close"),
        Terminal(Intersection((ANY_TEXT, Complement(Literal(b"ab")))), "text"),
    )
    body = Sequence((TerminalReference(0), RuleReference("r"), TerminalReference(1)))
    grammar = Grammar(terminals, {"r": Choice((body, TerminalReference(2)))}, "r")
    spec = Spec.from_grammar(grammar)
    matcher = constrain.compile(spec, VOCABULARY, cache=False).matcher()
    assert {CALL, ord("a")} <= allowed(matcher)
    assert END not in allowed(matcher)
    for token in (CALL, CALL, ord("a")):
        assert matcher.accept_token(token)
    assert END in allowed(matcher)
    assert matcher.accept_token(ord("b"))
    assert END not in allowed(matcher)
    assert matcher.accept_token(ord("b"))
    assert [matcher.accept_token(t) for t in (END, END, END)] == [True, True, False]
    assert matcher.is_accepting()
    both = spec | constrain.regex("x")
    assert {CALL, ord("x")} <= allowed(constrain.compile(both, VOCABULARY, cache=False).matcher())
    chained = constrain.json_schema({"type": "integer"}) + spec
    matcher = constrain.compile(chained, VOCABULARY, cache=False).matcher()
    assert matcher.accept_string("12")
    assert CALL in allowed(matcher)


def test_missing_bytes_do_not_concern_special_tokens() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"a", b"(", b")", None, None], eos_token_ids=4, special_tokens={"<call>": 3}
    )
    terminals = tuple(Terminal(p, "t") for p in (Literal(b"("), Literal(b")"), SpecialToken("<call>")))
    body = Sequence((TerminalReference(0), RuleReference("r"), TerminalReference(1)))
    grammar = Grammar(terminals, {"r": Choice((body, TerminalReference(2)))}, "r")
    matcher = constrain.compile(Spec.from_grammar(grammar), vocabulary, cache=False).matcher()
    assert allowed(matcher) == {1, 3}


# ------------------------------------------------------------------------------------ large vocabularies


def test_against_an_index_made_from_scratch() -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("abc<>|", k=rng.randint(2, 6))).encode() for _ in range(3000)]
    tokens = [*BYTES, *words, b"<tool>", b"<tool>", b"<tool>", None]
    tool = len(tokens) - 4
    vocabulary = Vocabulary.from_tokens(
        tokens, eos_token_ids=len(tokens) - 1, special_tokens={"<tool>": tool}
    )
    text = Repeat(CharacterClass(((97, 122), (60, 62))), 0, 5)
    spec = spec_of(Concatenation((text, SpecialToken("<tool>"), text)))
    compiled = constrain.compile(spec, vocabulary, cache=False)
    assert compiled.arena.index.has_slice
    edited = [b"" if t is not None and max(t) >= 0xF5 else t for t in tokens]
    edited[tool] = b"\xf8"
    other = Vocabulary.from_tokens(edited, eos_token_ids=len(tokens) - 1)
    automaton = constrain.grammars.ir.ByteClass(((0xF8, 0xF8),))
    expected = constrain.compile(spec_of(Concatenation((text, automaton, text))), other, cache=False)
    one, two = compiled.matcher(), expected.matcher()
    for token in [ord("a"), 300, tool, 301]:
        assert allowed(one) == allowed(two)
        assert one.accept_token(token) == two.accept_token(token)
    assert allowed(one) == allowed(two)


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("<missing>", "needs the special token '<missing>', which the vocabulary lacks; it has '<call>'"),
        (300, "needs token 300; ids go from 0 to 299"),
    ],
)
def test_missing_tokens(name: str | int, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        constrain.compile(spec_of(SpecialToken(name)), VOCABULARY, cache=False)


def test_one_token_under_two_names() -> None:
    spec = spec_of(Concatenation((SpecialToken("<call>"), SpecialToken(CALL))))
    with pytest.raises(VocabularyError, match="names token 256 twice"):
        constrain.compile(spec, VOCABULARY, cache=False)


@pytest.mark.parametrize("name", ["", -1, "x" * 1001, "\ud800"])
def test_names_that_cannot_be(name: str | int) -> None:
    with pytest.raises(SpecError, match="Special token"):
        spec_of(SpecialToken(name))


@pytest.mark.parametrize("special", [{"": 3}, {"a": "b"}, {"a": -1}, {3: 3}, {"a": True}])
def test_special_tokens_are_checked(special: dict[str, int]) -> None:
    with pytest.raises(VocabularyError, match="special_tokens"):
        Vocabulary.from_tokens([b"a", None], eos_token_ids=1, special_tokens=special)


def test_vocabularies_differ_by_their_special_tokens() -> None:
    one = Vocabulary.from_tokens([b"a", None, None], eos_token_ids=1, special_tokens={"<x>": 2})
    two = Vocabulary.from_tokens([b"a", None, None], eos_token_ids=1, special_tokens={"<y>": 2})
    assert one != two
    assert pickle.loads(pickle.dumps(one)) == one
    assert dict(pickle.loads(pickle.dumps(one)).special_tokens) == {"<x>": 2}
    with pytest.raises(TypeError):
        one.special_tokens["<z>"] = 1


def test_spellings_are_distinct_and_no_prefixes_of_each_other() -> None:
    names: list[str | int] = ["a", "aa", "0", "1", 0, 1, 10, 100, "é", "<|x|>"]
    for one, other in itertools.permutations(names, 2):
        assert not spelling(one).startswith(spelling(other))
    for name in names:
        assert min(spelling(name)) >= 0xF5
