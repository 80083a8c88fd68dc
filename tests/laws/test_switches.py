"""The engine's tables against each other: each switch off, every table starting at size 1, other orders."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import assume, event, given
from numpy.typing import NDArray

import constrain
from constrain.grammars import ir
from constrain.grammars.limits import Limits, Watch
from constrain.spec import Spec
from constrain.tokenizer_index.arena import Arena, ArenaOptions
from constrain.tokenizer_index.network import build_network
from tests import strategies
from tests.laws.indented import outline, statements
from tests.laws.specs import real_vocabulary
from tests.laws.walks import DIGITS, LETTERS, expression_grammar, list_grammar, members_of
from tests.reference.engine import ReferenceEngine, UnknownError
from tests.reference.vocabularies import TokenList, one_byte_per_token, with_all_bytes

SWITCHES = {
    "capacity 1": {"initial_capacity": 1},
    "no mask memo": {"use_mask_memo": False},
    "no visit memo": {"use_visit_memo": False},
    "no slices": {"use_slices": False},
    "whole entries": {"split_entries": False},
    "true counts": {"use_canon": False},
    "all entries from others": {"split_size": 1, "sparse_size": 0},
    "all entries from others, capacity 1": {"split_size": 1, "sparse_size": 0, "initial_capacity": 1},
    "nothing": {
        "initial_capacity": 1,
        "use_mask_memo": False,
        "use_visit_memo": False,
        "use_slices": False,
        "split_entries": False,
        "use_canon": False,
    },
}
every_switch = pytest.mark.parametrize("switch", SWITCHES)


def arena(grammar: ir.Grammar, vocabulary: constrain.Vocabulary, **options: object) -> Arena:
    """Return tables for ``grammar`` with some switches set."""
    switched = dataclasses.replace(ArenaOptions(), **options)
    return Spec.from_grammar(grammar).tables(
        lambda network: Arena(network, vocabulary.index, Limits(), options=switched)
    )


def walk(tables: Arena, tokens: constrain.Vocabulary, seed: int, n_steps: int) -> list[NDArray[np.uint32]]:
    """Return the masks along a random walk, which depends on nothing but the masks."""
    rng = random.Random(seed)
    state, masks = tables.start, []
    for _ in range(n_steps):
        masks.append(np.array(tables.mask(state)))
        choices = sorted(members_of(masks[-1].view(np.int32)) - set(tokens.eos_token_ids))
        if not choices:
            break
        state = tables.advance(state, rng.choice(choices))
        assert state >= 0
    return masks


def _counted(minimum: int, maximum: int | None) -> ir.Pattern:
    return ir.Concatenation(
        (
            ir.Literal(b'"'),
            ir.Repeat(ir.CharacterClass(((0x20, 0x21), (0x23, 0xFFFF))), minimum, maximum),
            ir.Literal(b'"'),
        )
    )


GRAMMARS = {
    "expressions": expression_grammar(),
    "lists": list_grammar(),
    "blocks": statements(),
    "outline": outline(),
    "count": ir.pattern_grammar(_counted(3, 90)),
    "not": ir.pattern_grammar(
        ir.Intersection(
            (
                _counted(0, 12),
                ir.Complement(
                    ir.Concatenation((ir.Literal(b'"a'), ir.Repeat(LETTERS, 0, 3), ir.Literal(b'"')))
                ),
            )
        )
    ),
}
TOKENS = with_all_bytes(
    [
        b"ab",
        b"abc",
        b'"',
        b'"a',
        b"aaa",
        b'","',
        b"],",
        b"if(",
        b" + ",
        b"12",
        b"# x",
        b"#\xc3",
        b"x" * 30,
        b":\n ",
        b"a:\n  a",
        b"\n\n   ",
        b"a\xe6\x97",
        None,
    ]
)


@every_switch
@pytest.mark.parametrize("name", GRAMMARS)
def test_switches_change_nothing(name: str, switch: str) -> None:
    """E2, E8, E11, E13: masks are equal with each switch off and with every table starting at size 1."""
    vocabulary = TOKENS.build()
    plain = arena(GRAMMARS[name], vocabulary)
    other = arena(GRAMMARS[name], vocabulary, **SWITCHES[switch])
    for seed in range(3):
        for expected, found in zip(
            walk(plain, vocabulary, seed, 14), walk(other, vocabulary, seed, 14), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


@every_switch
@strategies.fixed(25)
@given(strategies.grammars(), strategies.vocabularies())
def test_switches_change_nothing_at_random(switch: str, grammar: ir.Grammar, tokens: TokenList) -> None:
    """The same for random grammars and vocabularies."""
    vocabulary = tokens.build()
    try:
        plain = arena(grammar, vocabulary)
    except constrain.EmptyLanguageError:
        assume(False)
    other = arena(grammar, vocabulary, **SWITCHES[switch])
    for seed in range(2):
        try:
            expected = walk(plain, vocabulary, seed, 6)
        except constrain.LimitExceededError:
            event("a long token may be read in too many ways")
            return
        for one, two in zip(expected, walk(other, vocabulary, seed, 6), strict=True):
            np.testing.assert_array_equal(two, one)


@pytest.mark.parametrize("name", GRAMMARS)
def test_switches_on_a_real_vocabulary(name: str) -> None:
    """E2, E6, E13: with 128,256 tokens, slices and shared entries give the masks of plain walks."""
    vocabulary = real_vocabulary()
    plain = arena(GRAMMARS[name], vocabulary)
    others = [
        arena(GRAMMARS[name], vocabulary, **SWITCHES[s])
        for s in ("no slices", "whole entries", "nothing", "all entries from others")
    ]
    expected = walk(plain, vocabulary, 4, 8)
    for other in others:
        for mask, again in zip(expected, walk(other, vocabulary, 4, 8), strict=True):
            np.testing.assert_array_equal(again, mask)


@strategies.fixed(50)
@given(strategies.grammars(), strategies.vocabularies())
def test_tokens_are_their_bytes(grammar: ir.Grammar, tokens: TokenList) -> None:
    """E1: a bit is set exactly if stepping the token's bytes one by one survives, and leads to the same state."""
    vocabulary = tokens.build()
    try:
        tables = arena(grammar, vocabulary)
    except constrain.EmptyLanguageError:
        assume(False)
    rng = random.Random(0)
    state = tables.start
    for _ in range(5):
        mask = members_of(np.array(tables.mask(state)).view(np.int32))
        ends = set(tokens.eos_token_ids)
        for token_id, data in enumerate(tokens.tokens):
            if data and token_id not in ends:
                after, consumed = tables.step_bytes(state, data)
                assert (consumed == len(data)) == (token_id in mask)
                if token_id in mask:
                    assert tables.advance(state, token_id) == after
                else:
                    assert tables.advance(state, token_id) == -1
        alive = np.asarray(tables.live_bytes(state), bool)
        assert alive.shape == (256,)
        for byte in range(256):
            assert alive[byte] == (tables.step_bytes(state, bytes([byte]))[1] == 1)
        choices = sorted(mask - ends)
        if not choices:
            break
        state = tables.advance(state, rng.choice(choices))


@strategies.fixed(40)
@given(strategies.grammars())
def test_equal_texts_have_one_state(grammar: ir.Grammar) -> None:
    """E3, E10: replaying a text gives the same state, in another order too, and rollback is a list of states."""
    vocabulary = one_byte_per_token().build()
    try:
        tables = arena(grammar, vocabulary)
    except constrain.EmptyLanguageError:
        assume(False)
    rng = random.Random(1)
    seen: dict[bytes, int] = {b"": tables.start}
    for _ in range(12):
        text, state = rng.choice(sorted(seen.items()))
        alive = np.flatnonzero(np.asarray(tables.live_bytes(state), bool))
        if len(alive):
            byte = bytes([int(rng.choice(list(alive)))])
            seen[text + byte] = tables.step_bytes(state, byte)[0]
    for text, state in sorted(seen.items(), reverse=True):
        assert tables.step_bytes(tables.start, text) == (state, len(text))
        tables.mask(state)
        assert tables.step_bytes(tables.start, text) == (state, len(text))


def test_states_are_constant_along_a_list() -> None:
    """E3: after any number of items of a list the matcher is in the same state."""
    tables = arena(list_grammar(), one_byte_per_token().build())
    states = [tables.step_bytes(tables.start, b"[" + b",".join([b"ab"] * n))[0] for n in range(1, 9)]
    assert len(set(states[1:])) == 1
    nested = [tables.step_bytes(tables.start, b"[[[" + b"],[".join([b"ab"] * n))[0] for n in range(1, 6)]
    assert len(set(nested[1:])) == 1


def test_ways_to_cut_a_text_do_not_multiply() -> None:
    """E2b: with two terminals for the same words, cut anywhere, masks stay and long texts lead to no new states."""
    name, blank = ir.Repeat(LETTERS, 1, None), ir.Terminal(ir.Repeat(ir.Literal(b" "), 1, None), "blank")
    one = ir.Terminal(name, "one")
    other = ir.Terminal(ir.Alternation((name, DIGITS)), "other")
    ignored = ir.Ignored((2,), leading=True, trailing=True, most=None)
    tokens = with_all_bytes([b"ab", b"a b", b"  ", b" a", b"b1"])
    found = []
    for body in (ir.Choice((ir.TerminalReference(0), ir.TerminalReference(1))), ir.TerminalReference(1)):
        grammar = ir.Grammar((one, other, blank), {"start": ir.Repetition(body, 1, None)}, "start", ignored)
        tables = arena(grammar, tokens.build())
        for word in (b"a", b" ", b"a1", b"a "):
            lengths = {tables.step_bytes(tables.start, word * n)[0] for n in (8, 16, 64, 256)}
            assert len(lengths) == 1
        texts = [b"", b" ", b"ab", b"ab  ", b"a1 b", b"1"]
        states = [tables.step_bytes(tables.start, text)[0] for text in texts]
        found.append([members_of(np.array(tables.mask(state)).view(np.int32)) for state in states])
    assert found[0] == found[1]


LONGEST = 9
LIMITS = sorted(
    {
        (m, n)
        for n in (1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST + 2)
        for m in (0, 1, n - 1, n)
        if 0 <= m <= n
    }
)


@pytest.mark.parametrize(("minimum", "maximum"), [*LIMITS, (0, None), (LONGEST, None), (3, None)])
def test_counts_equal_unrolled_repeats(minimum: int, maximum: int | None) -> None:
    """E11: masks of a counted repeat are those of the repeat written out, about the longest token's length too."""
    body = ir.Alternation((LETTERS, ir.Literal("é".encode())))
    rest: ir.Pattern = ir.Repeat(body, 0, None) if maximum is None else ir.EMPTY_STRING
    for _ in range((maximum or minimum) - minimum):
        rest = ir.Alternation((ir.EMPTY_STRING, ir.Concatenation((body, rest))))
    unrolled = ir.Concatenation((*[body] * minimum, rest, ir.Literal(b";")))
    counted = ir.Concatenation((ir.Repeat(body, minimum, maximum), ir.Literal(b";")))
    tokens = with_all_bytes(
        [b"a" * n for n in range(2, LONGEST + 1)] + [b"aa;", b"a\xc3", b"\xa9a", b"\xa9;"]
    )
    vocabulary = tokens.build()
    plain = arena(ir.pattern_grammar(unrolled), vocabulary)
    for options in ({}, {"use_canon": False}, {"initial_capacity": 1}):
        tables = arena(ir.pattern_grammar(counted), vocabulary, **options)
        pairs = {(plain.start, tables.start)}
        done: set[tuple[int, int]] = set()
        while pairs:
            pair = pairs.pop()
            done.add(pair)
            mask = np.array(plain.mask(pair[0]))
            np.testing.assert_array_equal(tables.mask(pair[1]), mask)
            for text in (b"a", b"\xc3", b"\xa9", b";"):
                after, consumed = plain.step_bytes(pair[0], text)
                other, other_consumed = tables.step_bytes(pair[1], text)
                assert consumed == other_consumed
                if consumed and (after, other) not in done:
                    pairs.add((after, other))


@strategies.fixed(40)
@given(strategies.boolean_patterns(), strategies.vocabularies("abé "))
def test_liveness_is_settled_once(pattern: ir.Pattern, tokens: TokenList) -> None:
    """E12: asking in another order, and asking again, changes no mask of a Boolean pattern."""
    grammar = ir.pattern_grammar(pattern)
    try:
        states = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids).reachable(at_most=8)
    except UnknownError:
        states = []
    assume(states)
    vocabulary = tokens.build()
    forward, backward = (arena(grammar, vocabulary) for _ in range(2))

    def mask(tables: Arena, token_ids: list[int]) -> set[int]:
        state = tables.start
        for token_id in token_ids:
            state = tables.advance(state, token_id)
        return members_of(np.array(tables.mask(state)).view(np.int32))

    masks = [mask(forward, token_ids) for token_ids, _ in states]
    assert [mask(backward, token_ids) for token_ids, _ in reversed(states)] == masks[::-1]
    assert [mask(forward, token_ids) for token_ids, _ in states] == masks


def test_compiler_sets_greedy_only_where_it_changes_nothing() -> None:
    """E7: numbers between punctuation become greedy, names before names do not, and the language stays."""
    terminals = (
        ir.Terminal(ir.Repeat(DIGITS, 1, None), "number"),
        ir.Terminal(ir.Literal(b","), "comma"),
        ir.Terminal(ir.Repeat(LETTERS, 1, None), "name"),
    )
    number, comma, name = map(ir.TerminalReference, range(3))
    body = ir.Sequence((number, ir.Repetition(ir.Sequence((comma, number)), 0, None), comma, name, name))
    grammar = ir.Grammar(terminals, {"start": body}, "start")
    network = build_network(grammar, Watch(Limits()))
    assert network.greedy[0] == 1
    assert network.greedy[2] == 0
    tokens = with_all_bytes([b"12", b"1,", b",a", b"aa"])
    reference = ReferenceEngine(grammar, tokens.tokens, tokens.eos_token_ids)
    tables = arena(grammar, tokens.build())
    for token_ids, state in reference.reachable(at_most=30):
        mine = tables.start
        for token_id in token_ids:
            mine = tables.advance(mine, token_id)
        assert members_of(np.array(tables.mask(mine)).view(np.int32)) == reference.mask(state)
