"""Byte automata of networks against derivatives, against Python's ``re``, and against plain facts."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars import ir
from constrain.grammars.errors import EmptyLanguageError, LimitExceededError
from constrain.grammars.limits import Limits, Watch
from constrain.tokenizer_index import byte_automaton, lexeme, word_list
from constrain.tokenizer_index.network import Network, build_network
from tests import strategies
from tests.reference import patterns
from tests.reference.network_walk import NetworkWalk

A, B = ir.Literal(b"a"), ir.Literal(b"b")
LETTER = ir.CharacterClass(((0x61, 0x62),))


@pytest.fixture(params=[0, 16])
def unroll(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Build with repeats counted wherever they can be, and as they are built by default."""
    monkeypatch.setattr(byte_automaton, "UNROLL_POSITIONS", request.param)
    lexeme.clear_cache()
    yield request.param
    lexeme.clear_cache()


def build(pattern: ir.Pattern, limits: Limits | None = None) -> Network:
    return build_network(ir.pattern_grammar(pattern), Watch(limits or Limits()))


def concatenation(*parts: ir.Pattern) -> ir.Pattern:
    return ir.Concatenation(parts)


def alternation(*parts: ir.Pattern) -> ir.Pattern:
    return ir.Alternation(parts)


def words(alphabet: bytes, length: int) -> list[bytes]:
    return [bytes(w) for n in range(length + 1) for w in itertools.product(alphabet, repeat=n)]


def check(pattern: ir.Pattern, alphabet: bytes, length: int) -> None:
    """Compare the network with derivatives on all words, and look at the shape of its arrays."""
    expected = {w for w in words(alphabet, length) if patterns.matches(pattern, w)}
    try:
        network = build(pattern)
    except EmptyLanguageError:
        assert not patterns.is_alive(patterns.start(pattern))
        return
    walk = NetworkWalk(network)
    assert {w for w in words(alphabet, length) if w and walk.matches(0, w)} == expected - {b""}
    assert network.start_nullable == (b"" in expected)
    check_shape(network)


def check_shape(network: Network) -> None:
    """The byte automaton is trimmed, starts don't accept, counts stand where the contract says."""
    n = network.n_positions
    assert network.edge_offsets[0] == 0
    assert network.edge_offsets[n] == len(network.edge_low)
    assert all(network.distance >= 0)
    starts = {*network.starts.tolist(), *network.literal_starts.tolist()}
    reached = set(starts)
    order = list(starts)
    for x in order:
        edges = range(network.edge_offsets[x], network.edge_offsets[x + 1])
        if not network.is_hub[x]:
            assert all(network.edge_guard[e] == 0 for e in edges)
        targets = [int(network.edge_target[e]) for e in edges]
        best = min((int(network.distance[y]) for y in targets), default=n) + 1
        accepts = network.accept[x] >= 0
        assert network.distance[x] == (0 if accepts else best)
        for y in targets:
            assert network.position_terminal[y] == network.position_terminal[x]
            if y not in reached:
                reached.add(y)
                order.append(y)
    assert reached == set(range(n))
    assert all(network.accept[x] < 0 or network.is_hub[x] for x in starts)
    assert all(network.count_min[x] > 0 for x in starts if network.accept[x] >= 0)
    assert all(network.count_max[network.is_hub == 1] != 0)


# ------------------------------------------------------------------------------------ any patterns


def small_patterns() -> st.SearchStrategy[ir.Pattern]:
    """Patterns over ``ab`` in which counted repeats meet everything else."""
    leaves: st.SearchStrategy[ir.Pattern] = st.sampled_from(
        [A, B, LETTER, ir.Literal(b"ab"), ir.Literal(b""), ir.Alternation(())]
    )

    def extend(inner: st.SearchStrategy[ir.Pattern]) -> st.SearchStrategy[ir.Pattern]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        limits = st.tuples(st.integers(0, 3), st.sampled_from([None, 0, 1, 2]))
        repeats = st.builds(
            lambda body, m, n: ir.Repeat(body, m, None if n is None else m + n),
            inner,
            limits.map(lambda pair: pair[0]),
            limits.map(lambda pair: pair[1]),
        )
        return st.one_of(several.map(ir.Concatenation), several.map(ir.Alternation), repeats, repeats)

    return st.recursive(leaves, extend, max_leaves=6)


@st.composite
def boolean_trees(draw: st.DrawFn) -> ir.Pattern:
    """Conjunctions and complements anywhere in a pattern."""
    inner = small_patterns()
    part = st.one_of(inner, inner.map(ir.Complement))
    conjunctions = st.lists(part, min_size=1, max_size=3).map(lambda parts: ir.Intersection(tuple(parts)))
    node: ir.Pattern = draw(conjunctions)
    for _ in range(draw(st.integers(0, 2))):
        other = draw(st.one_of(inner, conjunctions))
        around: list[ir.Pattern] = [
            ir.Concatenation((other, node)),
            ir.Concatenation((A, node, B)),
            ir.Alternation((node, other)),
            ir.Intersection((other, ir.Complement(node))),
            ir.Repeat(node, 1, 3),
            ir.Complement(node),
        ]
        node = draw(st.sampled_from(around))
    return node


@pytest.mark.parametrize("threshold", [0, 3])
@strategies.fixed(250)
@given(pattern=small_patterns())
def test_counts_agree_with_derivatives(pattern: ir.Pattern, threshold: int) -> None:
    """With repeats counted wherever they can be, all words of up to seven letters are judged rightly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_automaton, "UNROLL_POSITIONS", threshold)
        lexeme.clear_cache()
        check(pattern, b"ab", 7)
    lexeme.clear_cache()


@strategies.fixed(100)
@given(pattern=strategies.any_patterns())
def test_any_pattern_agrees_with_derivatives(pattern: ir.Pattern) -> None:
    """Patterns of every kind, over characters of one and two bytes, match the same short words."""
    check(pattern, strategies.ALPHABET_BYTES, 4)


@strategies.fixed(80)
@given(pattern=boolean_trees())
def test_nested_conjunctions_agree_with_derivatives(pattern: ir.Pattern) -> None:
    """Conjunctions and complements inside a pattern match the same words as their derivatives."""
    check(pattern, b"ab", 5)


REGEX_ATOMS: list[tuple[str, ir.Pattern]] = [
    ("a", A),
    ("[ab]", LETTER),
    ("é", ir.Literal("é".encode())),
    ("[à-ÿ]", ir.CharacterClass(((0xE0, 0xFF),))),
    (".", ir.CharacterClass(((0, 9), (11, 0xD7FF), (0xE000, 0x10FFFF)))),
    ("[^a]", ir.CharacterClass(((0, 0x60), (0x62, 0xD7FF), (0xE000, 0x10FFFF)))),
]


@st.composite
def regexes(draw: st.DrawFn, most: int = 24) -> tuple[str, ir.Pattern]:
    """A pattern written twice, for Python's ``re`` and for us; no more than ``most`` rounds in a row."""
    text, pattern = draw(st.sampled_from(REGEX_ATOMS))
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["cat", "or", "repeat", "repeat"]))
        if kind == "repeat":
            m = draw(st.integers(0, min(4, most)))
            n = draw(st.one_of(st.none(), st.integers(max(m, 1), max(most, m, 1))))
            most //= max(n or 0, 1)
            text = f"(?:{text}){{{m},{'' if n is None else n}}}"
            pattern = ir.Repeat(pattern, m, n)
            continue
        other_text, other = draw(regexes(most))
        if kind == "cat":
            text, pattern = text + other_text, ir.Concatenation((pattern, other))
        else:
            text, pattern = f"(?:{text}|{other_text})", ir.Alternation((pattern, other))
    return text, pattern


@strategies.fixed(200)
@given(pair=regexes(), data=st.data())
def test_patterns_agree_with_re(pair: tuple[str, ir.Pattern], data: st.DataObject) -> None:
    """A text matches exactly if ``re.fullmatch`` says so, also at counts of twenty and more."""
    text, pattern = pair
    compiled = re.compile(text)
    walk = NetworkWalk(build(pattern))
    for size in (1, 2, 5, 24):
        sample = data.draw(st.text("abéÿ€𝄞", min_size=size, max_size=size))
        assert walk.matches(0, sample.encode()) == bool(compiled.fullmatch(sample))
    uniform = data.draw(st.sampled_from("abé")) * data.draw(st.integers(1, 26))
    assert walk.matches(0, uniform.encode()) == bool(compiled.fullmatch(uniform))


# ------------------------------------------------------------------------------------ repeats


def lengths(pattern: ir.Pattern, unit: bytes, most: int) -> set[int]:
    """Return the ``n`` up to ``most`` for which ``unit * n`` matches."""
    walk = NetworkWalk(build(pattern))
    return {n for n in range(1, most + 1) if walk.matches(0, unit * n)}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (ir.Repeat(A, 20, 30), set(range(20, 31))),
        (ir.Repeat(A, 25, 25), {25}),
        (ir.Repeat(A, 25, None), set(range(25, 71))),
        (ir.Repeat(A, 0, 25), set(range(1, 26))),
        (ir.Repeat(A, 5, 4), set()),
        (ir.Repeat(ir.Repeat(A, 20, 20), 1, 3), {20, 40, 60}),
        (ir.Repeat(ir.Repeat(A, 3, 20), 2, 3), set(range(6, 61))),
        (ir.Repeat(ir.Repeat(A, 20, 21), 0, None), {20, 21, 40, 41, 42, 60, 61, 62, 63}),
        (concatenation(ir.Repeat(A, 20, 22), ir.Repeat(A, 20, 22)), set(range(40, 45))),
        (concatenation(ir.Repeat(A, 0, 20), ir.Repeat(A, 30, 40)), set(range(30, 61))),
        (concatenation(ir.Repeat(A, 0, 20), ir.Repeat(A, 0, 20), A), set(range(1, 42))),
        (concatenation(A, ir.Repeat(A, 20, 21), A), {22, 23}),
        (alternation(ir.Repeat(A, 20, 21), ir.Repeat(A, 30, 31), A), {1, 20, 21, 30, 31}),
        (ir.Repeat(alternation(A, ir.Literal(b"aa")), 20, 20), set(range(20, 41))),
        (ir.Repeat(ir.Repeat(A, 0, 1), 20, 30), set(range(1, 31))),
        (ir.Repeat(ir.Repeat(A, 0, None), 20, 30), set(range(1, 71))),
        (ir.Repeat(alternation(ir.Literal(b""), ir.Literal(b"aaa")), 20, 21), {3 * n for n in range(1, 22)}),
        (ir.Repeat(ir.Alternation(()), 20, 30), set()),
        (concatenation(A, ir.Repeat(ir.Alternation(()), 0, 30)), {1}),
        (ir.Repeat(concatenation(A, ir.Repeat(A, 0, None)), 20, 30), set(range(20, 71))),
    ],
)
def test_repeats_count_rightly(pattern: ir.Pattern, expected: set[int], unroll: int) -> None:
    """Repeats count what they should at each limit, whatever stands before, after, inside or around."""
    expected = {n for n in expected if n <= 70}
    if expected:
        assert lengths(pattern, b"a", 70) == expected
    elif patterns.is_nullable(patterns.start(pattern)):
        assert build(pattern).n_positions == 0
    else:
        with pytest.raises(EmptyLanguageError):
            build(pattern)


def test_repeated_characters_of_several_bytes(unroll: int) -> None:
    """A round of a counted repeat is one character, however many bytes it has."""
    assert lengths(ir.Repeat(ir.ANY_CHARACTER, 18, 20), "𝄞".encode(), 30) == {18, 19, 20}


def test_large_limits_cost_nothing() -> None:
    """A repeat of 100,000 characters takes as many positions as one of 20, and no time."""
    small, large = build(ir.Repeat(ir.ANY_CHARACTER, 0, 20)), build(ir.Repeat(ir.ANY_CHARACTER, 0, 100_000))
    assert small.n_positions == large.n_positions
    assert large.count_max.max() == 100_000


@pytest.mark.parametrize("depth", [2, 3, 50])
def test_nested_repeats_end_quickly(depth: int) -> None:
    """`((a{1000}){1000})...` is built or refused at once, never unrolled first."""
    began = time.perf_counter()
    merged: ir.Pattern = A
    apart: ir.Pattern = A
    for _ in range(depth):
        merged = ir.Repeat(merged, 1000, 1000)
        apart = concatenation(ir.Repeat(apart, 1000, 1000), B)
    for pattern in (merged, apart):
        try:
            network = build(pattern, Limits(positions=100_000))
        except LimitExceededError as error:
            assert error.limit == "positions"
            assert depth > 2
        else:
            assert network.n_positions < 5000
    assert time.perf_counter() - began < 2


def test_deep_nesting_is_no_recursion() -> None:
    """Patterns nested 3,000 deep are built without recursion."""
    pattern: ir.Pattern = A
    for k in range(3000):
        pattern = (
            ir.Concatenation((pattern, B)),
            ir.Alternation((pattern, B)),
            ir.Repeat(pattern, 0, 1),
            ir.Repeat(concatenation(pattern), 1, None),
        )[k % 4]
    assert build(pattern).n_positions > 700


def test_deep_conjunctions_are_refused() -> None:
    """Conjunctions nested beyond what is supported raise a limit error, not a recursion error."""
    pattern: ir.Pattern = A
    for _ in range(300):
        pattern = concatenation(ir.Intersection((pattern, LETTER)), ir.Repeat(A, 0, 1))
    with pytest.raises(LimitExceededError) as caught:
        build(pattern)
    assert caught.value.limit == "nesting"


def test_positions_are_limited() -> None:
    """An automaton over the limit on positions is refused with the terminal's name."""
    with pytest.raises(LimitExceededError, match="positions=100 "):
        build(ir.Literal(b"x" * 200), Limits(positions=100))
    with pytest.raises(LimitExceededError, match=r"positions=100 .*'pattern'"):
        build(
            concatenation(A, ir.Repeat(ir.Literal(b"x" * 30), 0, 1), ir.Literal(b"y" * 200)),
            Limits(positions=100),
        )
    optional = concatenation(*[ir.Repeat(ir.Literal(bytes([65 + k % 60])), 0, 1) for k in range(3000)])
    with pytest.raises(LimitExceededError):
        build(optional, Limits(positions=100_000))


def test_explicit_conjunctions_are_limited() -> None:
    """A conjunction inside a pattern whose automaton explodes is refused at the limit."""
    tail = ir.Repeat(LETTER, 18, 18)
    hard = ir.Intersection((concatenation(ir.Repeat(LETTER, 0, None), A, tail), ir.Repeat(LETTER, 0, None)))
    with pytest.raises(LimitExceededError):
        build(ir.Repeat(hard, 0, None), Limits(positions=5000))


# ------------------------------------------------------------------------------------ words


@strategies.fixed(100)
@given(
    words_=st.lists(
        st.binary(max_size=6).map(lambda w: bytes(97 + b % 3 for b in w)), min_size=2, max_size=12
    ),
    around=st.sampled_from([(b"", b""), (b'"', b'"'), (b"", b"c"), (b"a", b"")]),
)
def test_word_lists_match_their_words(words_: list[bytes], around: tuple[bytes, bytes]) -> None:
    """An alternation of literals matches exactly its words, alone and between two literals."""
    before, after = around
    pattern: ir.Pattern = ir.Alternation(tuple(map(ir.Literal, words_)))
    if before or after:
        pattern = concatenation(ir.Literal(before), pattern, ir.Literal(after))
    assert word_list.words_of(pattern) is not None
    expected = {before + w + after for w in words_}
    check_words(pattern, expected)


@strategies.fixed(100)
@given(
    words_=st.lists(st.binary(max_size=5).map(lambda w: bytes(97 + b % 3 for b in w)), min_size=2, max_size=8)
)
def test_common_prefixes_are_shared(words_: list[bytes]) -> None:
    """Literal prefixes of alternatives are read through one trie, and the rest as it stands."""
    parts = tuple(concatenation(ir.Literal(w), ir.Repeat(B, 0, 1)) for w in words_)
    check_words(
        ir.Alternation((*parts, ir.Literal(b"ca"))), {w + t for w in words_ for t in (b"", b"b")} | {b"ca"}
    )
    longest = concatenation(ir.Literal(b"abcde"), LETTER)
    shared = build(ir.Alternation((longest, concatenation(ir.Literal(b"abcdf"), LETTER))))
    assert shared.n_positions == 8


def check_words(pattern: ir.Pattern, expected: set[bytes]) -> None:
    if expected == {b""}:
        assert build(pattern).start_nullable
        return
    network = build(pattern)
    walk = NetworkWalk(network)
    near = {
        w[:k] + x + w[k + 1 :] for w in expected for k in range(len(w) + 1) for x in (b"", b"a", b"b", b"c")
    }
    assert {w for w in near | expected if w and walk.matches(0, w)} == expected - {b""}
    assert network.start_nullable == (b"" in expected)
    check_shape(network)


def test_ten_thousand_words() -> None:
    """An enumeration of 10,000 strings becomes a trie within the time of a blink."""
    names = [f"item {k * 7919 % 100_003}" for k in range(10_000)]
    pattern = ir.Alternation(tuple(ir.Literal(f'"{name}"'.encode()) for name in names))
    began = time.process_time()
    network = build(pattern)
    assert time.process_time() - began < 1
    walk = NetworkWalk(network)
    assert all(walk.matches(0, f'"{name}"'.encode()) for name in names[::500])
    assert not walk.matches(0, b'"item"')


def test_fragments_are_remembered_only_while_equal() -> None:
    """The memory of fragments gives one pattern's automaton to no other pattern."""
    lexeme.clear_cache()
    for k in range(5000):
        low = 97 + k % 20
        network = build(concatenation(ir.ByteClass(((low, low + k % 3),)), ir.Repeat(A, 1, None)))
        first = slice(network.edge_offsets[0], network.edge_offsets[1])
        assert (network.edge_low[first][0], network.edge_high[first][-1]) == (low, low + k % 3)
