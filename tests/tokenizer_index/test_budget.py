"""Costs and budgets on small vocabularies, against breadth-first search over tokens."""

from __future__ import annotations

import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import constrain
from constrain.errors import LimitExceededError
from constrain.grammars import ir
from constrain.spec import Spec
from constrain.tokenizer_index import arena, layout, necessary
from constrain.tokenizer_index.arena import Arena, ArenaOptions
from constrain.tokenizer_index.budget import Budget, MinTokens
from constrain.tokenizer_index.costs import INFINITE, Costs
from tests import strategies
from tests.laws.walks import expression_grammar, list_grammar, members_of
from tests.reference.token_graph import TokenGraph
from tests.reference.vocabularies import TokenList, one_byte_per_token, with_all_bytes

_PIECES = (
    *(b"ab", b"aab", b"aaaa", b"bbb", b"a" * 10, b"00", b"12", "é".encode(), "éé".encode(), b"  ", b"ab"),
    *(
        b'{"',
        b'":',
        b'"}',
        b'":"',
        b'",',
        b", ",
        b'": ',
        b'", "',
        b"true",
        b"null",
        b'"a":',
        b'[{"',
        b"}]",
        b"]]",
    ),
)
WORDS = with_all_bytes(_PIECES)
BYTES = one_byte_per_token()

PATTERNS = [
    "a*",
    "(ab|aab){3,9}",
    "[ab]{3,200}|é{2,}",
    "([ab]{30,200}|é{20,})c?",
    "a{100,}b{50,60}",
    "(ab){40,}",
    ".{25,}x",
    "(?:a{20}b){5,7}",
    r"\d{4}-\d\d",
    "(a|b)*abb",
    "[a-c]{20}(ab){20,}é{9,11}",
]
_OBJECT = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}
_NESTED = {
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "type": "object",
            "properties": {
                "v": {"enum": ["ab", "abc"]},
                "l": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]},
            },
            "required": ["v", "l"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS = {
    "object": _OBJECT,
    "nested": _NESTED,
    "long strings": {"type": "array", "items": {"type": "string", "minLength": 30}, "minItems": 1},
    "bounded": {"type": "string", "minLength": 3, "maxLength": 40},
    "pattern": {"type": "string", "pattern": "^x-|_id$", "minLength": 4, "maxLength": 12},
    "anything": True,
}


def _arena(spec: Spec, vocabulary: constrain.Vocabulary, options: ArenaOptions | None = None) -> Arena:
    return Arena(spec.network, vocabulary.load_index(False), options=options)


def _row(arena: Arena, state: int) -> NDArray[np.int32]:
    return arena.mask(state).view(np.int32).copy()


def _within(matcher: constrain.Matcher, remaining: int) -> set[int]:
    """Return the tokens allowed with ``remaining`` tokens left, the end token included."""
    bitmask = constrain.allocate_token_bitmask(1, matcher.compiled.vocab_size)
    matcher.fill_budget_bitmask(bitmask, 0, remaining=remaining)
    return members_of(bitmask[0])


def _check_restrict(budget: Budget, graph: TokenGraph, state: int, remaining: int) -> None:
    """A token stays exactly if the cost after it fits; end tokens stay while one token is left."""
    arena = budget.costs.arena
    before = _row(arena, state)
    expected = before.copy()
    for after, token_ids in graph.after[state].items():
        if budget.cost(after) > remaining - 2:
            for token_id in token_ids:
                expected[token_id >> 5] &= ~np.uint32(1 << (token_id & 31)).view(np.int32)
    row = before.copy()
    was_cleared = budget.restrict(state, row.ctypes.data, remaining)
    assert (row == expected).all()
    assert was_cleared == bool((expected != before).any())


def _check(spec: Spec, tokens: TokenList, *, at_most: int = 400, options: ArenaOptions | None = None) -> None:
    """Check bound, rank, lower bound, exact search and masks at each state looked at."""
    vocabulary = tokens.build()
    arena = _arena(spec, vocabulary, options)
    budget = Budget(arena, vocabulary, seconds=5)
    graph = TokenGraph(arena, vocabulary, at_most)
    rng = random.Random(1)
    bounds = {state: budget.cost(state) for state in graph.after}
    assert necessary.prepare(budget.costs)
    for state, found in graph.after.items():
        assert (bounds[state] == 0) == arena.is_accepting(state)
        rows = budget.costs.run(layout.OP_SUCCESSORS, state, table=layout.BUF_WALK, width=2)[1].tolist()
        assert {after for after, _ in rows} == set(found)
        assert all(token_id in found[after] for after, token_id in rows)
        if 0 < bounds[state] < INFINITE:
            assert min(map(budget.cost, found)) < bounds[state], "no token lowers the cost"
        if graph.is_complete:
            assert bounds[state] >= graph.fewest.get(state, INFINITE)
            assert budget.costs.necessary(state) <= graph.fewest.get(state, INFINITE)
    for state in rng.sample(sorted(graph.after), min(60, len(graph.after))):
        for remaining in (1, 2, 3, 5, bounds[state] + 1, bounds[state] + 2, 50, 100_000):
            _check_restrict(budget, graph, state, remaining)
    for state in rng.sample(sorted(graph.after), min(25, len(graph.after))):
        least = budget.min_tokens(state)
        assert int(least) == budget.cost(state) <= bounds[state]
        if graph.is_complete and state in graph.fewest:
            assert least.is_exact
            assert int(least) == graph.fewest[state]
    for state, found in graph.after.items():
        if 0 < budget.cost(state) < INFINITE:
            assert min(map(budget.cost, found)) < budget.cost(state), "a search broke the rank"
            _check_restrict(budget, graph, state, budget.cost(state) + 1)


@pytest.mark.parametrize("tokens", [WORDS, BYTES], ids=["words", "bytes"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str, tokens: TokenList) -> None:
    """Costs of patterns: never below the fewest tokens, falling, exact where they say so."""
    _check(constrain.regex(pattern), tokens)


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str, whitespace: str) -> None:
    """The same for schemas, with tokens that span several lexemes."""
    _check(constrain.json_schema(SCHEMAS[name], whitespace=whitespace), WORDS, at_most=200)


@pytest.mark.parametrize("name", ["object", "bounded"])
def test_schemas_byte_by_byte(name: str) -> None:
    """With one byte per token no token spans lexemes, so the bound itself is exact."""
    spec, vocabulary = constrain.json_schema(SCHEMAS[name], whitespace="compact"), BYTES.build()
    arena = _arena(spec, vocabulary)
    graph = TokenGraph(arena, vocabulary, 3000)
    budget = Budget(arena, vocabulary)
    assert graph.is_complete
    assert all(budget.cost(state) == graph.fewest[state] for state in graph.after)


@pytest.mark.parametrize("grammar", [expression_grammar(), list_grammar()], ids=["expressions", "lists"])
def test_grammars(grammar: ir.Grammar) -> None:
    """The same for grammars, one of them with greedy terminals and priorities: costs are proven."""
    _check(
        Spec.from_grammar(grammar),
        with_all_bytes([b"ab", b"if", b"if(", b"+a", b"))", b"(a", b'["']),
        at_most=60,
    )


@pytest.mark.parametrize("pattern", ["[ab]{3,200}|é{2,}", "(?:a{20}b){5,7}"])
def test_tiny_tables(pattern: str) -> None:
    """E8: tables that begin at size 1 change nothing."""
    _check(constrain.regex(pattern), WORDS, options=ArenaOptions(initial_capacity=1), at_most=100)
    schema = constrain.json_schema(_OBJECT)
    _check(schema, WORDS, options=ArenaOptions(initial_capacity=1), at_most=60)


@strategies.fixed(60)
@given(strategies.any_patterns(), strategies.vocabularies("abé "))
def test_random_patterns(pattern: ir.Pattern, tokens: TokenList) -> None:
    """The same for random patterns, Boolean ones among them, and hostile vocabularies."""
    try:
        spec = Spec.from_grammar(ir.pattern_grammar(pattern))
        constrain.compile(spec, tokens.build(), cache=False)
    except constrain.EmptyLanguageError:
        return
    _check(spec, tokens, at_most=60)


@strategies.fixed(60)
@given(strategies.grammars(), strategies.vocabularies())
def test_random_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """The same for random grammars: ignored text, ambiguity, priorities, recursion."""
    try:
        spec = Spec.from_grammar(grammar)
        constrain.compile(spec, tokens.build(), cache=False)
    except (constrain.EmptyLanguageError, constrain.UnsupportedFeatureError):
        return
    _check(spec, tokens, at_most=40)


_WORD_LISTS = """
start: (WORD | STRING)+ "if" WORD "." ["(" WORD WORD ")"]
WORD: /[a-z]+/
STRING: /"[^"]*"/
COMMENT: /#[^\\n]*/
%ignore COMMENT
%ignore /[ \\n]+/
"""


@pytest.mark.parametrize(
    "words", [[], [b" a", b" if", b"if", b" .", b"\n#", b"# a", b"ab"]], ids=["bytes", "words"]
)
def test_separators(words: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a lexeme would go on into the next, a blank or a line break parts them without any search."""

    def search(*args: object) -> None:
        raise AssertionError("a cost was searched for")

    monkeypatch.setattr(Costs, "_search", search)
    vocabulary = with_all_bytes(words).build()
    arena = _arena(constrain.grammar(_WORD_LISTS), vocabulary)
    budget = Budget(arena, vocabulary)
    graph = TokenGraph(arena, vocabulary, 3000)
    assert graph.is_complete
    for state, found in graph.after.items():
        cost = budget.cost(state)
        assert cost >= graph.fewest[state]
        assert cost <= graph.fewest[state] + 2
        assert cost == 0 or min(map(budget.cost, found)) < cost


@pytest.mark.parametrize(
    "spec",
    [
        constrain.grammar(_WORD_LISTS),
        constrain.grammar(_WORD_LISTS.replace("[a-z]+", "[a-z][a-z0-9_]{0,4}")),
        constrain.regex(r"(if|\w)\w*( \w{2,}){2}"),
        constrain.regex(r"\w+x|[a-z]+_[0-9]+"),
        constrain.json_schema(
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
        ),
    ],
    ids=["names", "short names", "words", "endings", "strings"],
)
def test_words_below_a_node(spec: Spec) -> None:
    """Parts of the trie that hold only letters and digits are passed over where these change nothing."""
    rng = random.Random(8)
    words = {"".join(rng.choice("aif_7x") for _ in range(rng.randint(1, 7))).encode() for _ in range(600)}
    edges = {bytes(rng.choice(b'aif_7x "#.') for _ in range(rng.randint(2, 5))) for _ in range(300)}
    _check(spec, with_all_bytes([*sorted(words | edges), b"abcdefgh"]), at_most=30)


def test_states_spread_over_a_memo() -> None:
    """Keys of states that follow one another stand in slots all over a memo, not in one row."""
    vocabulary = with_all_bytes([*_PIECES, b" a", b"if"]).build()
    arena = _arena(constrain.grammar_library("c"), vocabulary)
    budget = Budget(arena, vocabulary)
    state = arena.start
    for byte in b"int f(int *a) { if (a[1] > 0x2f) return g(a, 2) * -1; else { struct s x; } }":
        budget.restrict(state, _row(arena, state).ctypes.data, 1000)
        state, _ = arena.step_bytes(state, bytes([byte]))
    keys = arena._arrays[layout.SEEN][::2]
    is_free = np.flatnonzero(np.concatenate(([-1], keys, [-1])) < 0)
    assert np.count_nonzero(keys >= 0) > 1000
    assert np.diff(is_free).max() <= 100


def test_blanks_do_not_end_a_list() -> None:
    """After ignored text that may not come last another lexeme is needed, though the list could end before."""
    letter, blank = ir.Terminal(ir.Literal(b"a"), "a"), ir.Terminal(ir.Literal(b" "), "blank")
    body = ir.Repetition(ir.TerminalReference(0), 0, None)
    spec = Spec.from_grammar(ir.Grammar((letter, blank), {"start": body}, "start", ir.Ignored((1,))))
    matcher = constrain.compile(spec, BYTES.build(), cache=False).matcher()
    assert matcher.accept_string("a ")
    assert matcher.min_tokens_to_finish() == 1
    _check(spec, BYTES)


def test_slices_change_nothing() -> None:
    """Where characters of the slice stand for all tokens made of them, costs and masks are the same."""
    rng = random.Random(5)
    words = {bytes(rng.choice(b"abcdefgh ") for _ in range(rng.randint(2, 12))) for _ in range(2500)}
    tokens = with_all_bytes([*sorted(words), *_PIECES, b"abc", b"x" * 40])
    vocabulary = tokens.build()
    assert vocabulary.load_index(False).has_slice
    for schema in (
        {"type": "array", "items": {"type": "string", "minLength": 4, "maxLength": 30}, "minItems": 1},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    ):
        spec = constrain.json_schema(schema)
        arenas = [_arena(spec, vocabulary, ArenaOptions(use_slices=use)) for use in (True, False)]
        budgets = [Budget(arena, vocabulary) for arena in arenas]
        states = [arena.start for arena in arenas]
        for _ in range(12):
            costs = [budget.cost(state) for budget, state in zip(budgets, states, strict=True)]
            assert costs[0] == costs[1]
            rows = [_row(arena, state) for arena, state in zip(arenas, states, strict=True)]
            assert (rows[0] == rows[1]).all()
            bits = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little")).tolist()
            for remaining in (1, 2, costs[0] + 1, costs[0] + 2, costs[0] + 4, 1000):
                limited = [row.copy() for row in rows]
                cleared = [
                    b.restrict(s, row.ctypes.data, remaining)
                    for b, s, row in zip(budgets, states, limited, strict=True)
                ]
                assert cleared[0] == cleared[1]
                assert (limited[0] == limited[1]).all()
            sets = [
                sorted(
                    budget.cost(row[0])
                    for row in budget.costs.run(layout.OP_SUCCESSORS, s, table=layout.BUF_WALK, width=2)[
                        1
                    ].tolist()
                )
                for budget, s in zip(budgets, states, strict=True)
            ]
            assert sets[0] == sets[1]
            choices = [token_id for token_id in bits if token_id not in vocabulary.eos_token_ids]
            if not choices:
                break
            token_id = rng.choice(choices)
            states = [arena.advance(state, token_id) for arena, state in zip(arenas, states, strict=True)]


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        (constrain.regex("a{100000,200000}"), 10_000),
        (constrain.regex("(?:ab){50000}c"), 25_001),
        (constrain.json_schema({"type": "string", "minLength": 100_000}), 10_001),
        (constrain.json_schema({"type": "string", "minLength": 1 << 27}), 1 << 20),
        (constrain.regex("é{3000,}"), 1500),
    ],
)
def test_long_minima(spec: Spec, least: int) -> None:
    """Minima of many thousand characters have costs at once, without a state for every count."""
    tokens = with_all_bytes([*_PIECES, b"ab" * 2])
    vocabulary = tokens.build()
    arena = _arena(spec, vocabulary)
    budget = Budget(arena, vocabulary)
    state, cost = arena.start, budget.cost(arena.start)
    assert least <= cost < INFINITE
    rng = random.Random(2)
    for _ in range(20):
        rows = budget.costs.run(layout.OP_SUCCESSORS, state, table=layout.BUF_WALK, width=2)[1].tolist()
        costs = {after: budget.cost(after) for after, _ in rows}
        assert min(costs.values()) < cost
        state = rng.choice(sorted(costs))
        cost = costs[state]
    assert arena.statistics()["lexer_states"] < 5000


def test_long_minimum_to_the_end() -> None:
    """A budget of exactly the least tokens is kept over some thousand characters."""
    compiled = constrain.compile(constrain.regex("(?:[ab]|é){2000,2100}x"), WORDS.build(), cache=False)
    matcher = compiled.matcher()
    remaining = int(matcher.min_tokens_to_finish()) + 1
    rng = random.Random(3)
    ends = set(WORDS.eos_token_ids)
    while not matcher.is_terminated():
        mask = _within(matcher, remaining)
        assert mask
        assert matcher.accept_token(rng.choice(sorted(mask - ends or mask)))
        remaining -= 1
    assert remaining >= 0


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
@pytest.mark.parametrize("favourite", [" \n", "0123456789", "[{(", '"', "ab"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_greedy_adversaries(name: str, favourite: str, whitespace: str) -> None:
    """Whoever takes the blank, the digit or the bracket while allowed still ends in time, with a member."""
    spec = constrain.json_schema(SCHEMAS[name], whitespace=whitespace)
    compiled = constrain.compile(spec, WORDS.build(), cache=False)
    ends = set(WORDS.eos_token_ids)
    liked = [t for t, data in enumerate(WORDS.tokens) if data and data[:1] in favourite.encode()]
    for extra in (0, 1, 7):
        matcher = compiled.matcher()
        remaining = int(matcher.min_tokens_to_finish()) + 1 + extra
        spelled = b""
        while not matcher.is_terminated():
            mask = _within(matcher, remaining)
            assert mask, f"dead end with {remaining} tokens left"
            token_id = next((t for t in liked if t in mask), max(mask - ends or mask))
            assert matcher.accept_token(token_id)
            spelled += WORDS.tokens[token_id] or b""
            remaining -= 1
        assert remaining >= 0
        assert spec.matches(spelled)


def test_the_last_token_is_the_end_token() -> None:
    """With one token left only end tokens stay, with none nothing does; equal ids go together."""
    tokens = with_all_bytes([b"ab", b"ab", b"a"])
    compiled = constrain.compile(constrain.regex("(ab)*"), tokens.build(), cache=False)
    matcher = compiled.matcher()
    end = tokens.eos_token_ids[0]
    a = next(t for t, data in enumerate(tokens.tokens) if data == b"a")
    assert _within(matcher, 0) == set()
    assert _within(matcher, 1) == {end}
    assert _within(matcher, 2) == {0, 1, end}
    assert _within(matcher, 3) == {0, 1, 2, 3 + ord("a"), end}
    assert a == 2
    assert matcher.accept_token(end)
    assert _within(matcher, 5) == set()


def test_min_tokens_is_an_int() -> None:
    """`MinTokens` counts like an int, says whether it is exact, and survives pickling."""
    found = MinTokens(3, is_exact=False)
    assert found == 3
    assert found + 1 == 4
    assert not found.is_exact
    assert repr(found) == "MinTokens(3, is_exact=False)"
    again = pickle.loads(pickle.dumps(MinTokens(7, is_exact=True)))
    assert isinstance(again, MinTokens)
    assert again == 7
    assert again.is_exact


def test_a_search_without_time_says_so() -> None:
    """Where the search may not run, the number is enough and not called exact; it stays the same."""
    spec, vocabulary = constrain.json_schema(_OBJECT), WORDS.build()
    arena = _arena(spec, vocabulary)
    hurried = Budget(arena, vocabulary, seconds=0)
    first = hurried.min_tokens(arena.start)
    assert not first.is_exact
    assert hurried.min_tokens(arena.start) == first == hurried.cost(arena.start)
    patient = Budget(_arena(spec, vocabulary), vocabulary, seconds=10)
    found = patient.min_tokens(patient.costs.arena.start)
    assert found.is_exact
    assert found < first


@strategies.fixed(25)
@given(strategies.json_schemas(), st.randoms(use_true_random=False))
def test_random_schemas_in_time(schema: strategies.Schema, rng: random.Random) -> None:
    """Random outputs of random schemas under the least budget are complete."""
    try:
        compiled = constrain.compile(constrain.json_schema(schema), WORDS.build(), cache=False)
    except (constrain.EmptyLanguageError, constrain.UnsupportedFeatureError):
        return
    ends = set(WORDS.eos_token_ids)
    matcher = compiled.matcher()
    remaining = int(matcher.min_tokens_to_finish()) + 1 + rng.randint(0, 3)
    while not matcher.is_terminated():
        mask = _within(matcher, remaining)
        assert mask
        assert matcher.accept_token(rng.choice(sorted(mask - ends or mask)))
        remaining -= 1
    assert remaining >= 0


def test_threads_agree() -> None:
    """Threads that share a compiled spec get the masks and costs that one thread gets."""
    spec = constrain.json_schema({"type": "array", "items": SCHEMAS["object"], "minItems": 1})
    vocabulary = WORDS.build()

    def walk(compiled: constrain.CompiledSpec, seed: int) -> list[tuple[int, frozenset[int]]]:
        rng, matcher, seen = random.Random(seed), compiled.matcher(), []
        remaining = int(matcher.min_tokens_to_finish()) + 6
        while remaining > 0 and not matcher.is_terminated():
            mask = _within(matcher, remaining)
            seen.append((int(matcher.min_tokens_to_finish()), frozenset(mask)))
            assert matcher.accept_token(rng.choice(sorted(mask)))
            remaining -= 1
        return seen

    # Exact searches lower costs, so the order of questions may matter unless all are asked beforehand.
    alone = [walk(constrain.compile(spec, vocabulary, cache=False), seed) for seed in range(8)]
    together = constrain.compile(spec, vocabulary, cache=False)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: walk(together, seed), range(8)))
    for one, other in zip(alone, found, strict=True):
        assert [cost for cost, _ in one][:1] == [cost for cost, _ in other][:1]
        assert all(mask for _, mask in other)


def test_full_arenas_are_left_in_time() -> None:
    """A budget is kept although the tables are full and begun afresh again and again."""
    spec = constrain.json_schema(
        {"type": "array", "items": {"type": "string", "maxLength": 300}, "minItems": 20}
    )
    roomy = constrain.compile(spec, WORDS.build(), cache=False)
    roomy.matcher().min_tokens_to_finish()
    limits = constrain.Limits(arena_bytes=roomy.n_bytes + 150_000)
    compiled = constrain.compile(spec, WORDS.build(), cache=False, limits=limits)
    rng, ends = random.Random(4), set(WORDS.eos_token_ids)
    arenas = set()
    for _ in range(30):
        matcher, remaining = compiled.matcher(), 100
        while not matcher.is_terminated():
            mask = _within(matcher, remaining)
            assert mask
            assert matcher.accept_token(rng.choice(sorted(mask - ends or mask)))
            remaining -= 1
            arenas.add(compiled.arena)
        assert remaining >= 0
    assert len(arenas) > 1


def test_the_first_terminal_costs_what_it_needs() -> None:
    # No terminal is an indent where indentation doesn't count.
    terminals = tuple(ir.Terminal(ir.Literal(data), "t") for data in (b"abcd", b"x"))
    first, other = (ir.TerminalReference(i) for i in range(2))
    grammar = ir.Grammar(terminals, {"s": ir.Sequence((other, first, other))}, "s")
    tokens = [*(bytes([byte]) for byte in range(256)), None]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos_token_ids=256)
    matcher = constrain.compile(Spec.from_grammar(grammar), vocabulary, cache=False).matcher()
    assert matcher.min_tokens_to_finish() == 6
    assert matcher.accept_string("x")
    assert matcher.min_tokens_to_finish() == 5


def nested_texts(**limits: float) -> constrain.Matcher:
    spec = constrain.grammar('start: e\ne: "(" e ")" | "a"\n', syntax="lark")
    return constrain.compile(spec, one_byte_per_token().build(), limits=constrain.Limits(**limits)).matcher()


def test_deep_nesting_costs_no_more_than_its_depth() -> None:
    """Memos of a hundred thousand parser states are found again at once."""
    matcher = nested_texts()
    for _ in range(100_000):
        assert matcher.accept_token(ord("("))
    assert matcher.min_tokens_to_finish() == 100_001


def test_time_for_costs_is_that_of_the_call() -> None:
    """All that one question asks of the kernels is counted together."""
    matcher = nested_texts(step_seconds=1e-9)
    for _ in range(100_000):
        assert matcher.accept_token(ord("("))
    with pytest.raises(LimitExceededError) as caught:
        matcher.min_tokens_to_finish()
    assert caught.value.limit == "step_seconds"


def test_searches_for_costs_are_counted_with_their_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of many small steps ends at the moment at which the call has lasted too long."""
    matcher = nested_texts()
    matcher.accept_token(ord("("))
    tables = matcher._compiled.budget(matcher._arena).costs
    now = iter(range(10**9))
    monkeypatch.setattr("constrain.tokenizer_index.costs.time.monotonic", lambda: float(next(now)))
    with pytest.raises(LimitExceededError) as caught:
        tables._search(matcher._state, until=-1.0)
    assert caught.value.limit == "step_seconds"


def test_ambiguity_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completing x in ever more ways ends with the limit on seconds; what was read before is right."""
    monkeypatch.setattr(arena, "_ALLOWANCE", 2_000)
    spec = constrain.grammar('start: x\nx: x x | "a"\n', syntax="lark", lexing="any")
    compiled = constrain.compile(
        spec, one_byte_per_token().build(), limits=constrain.Limits(step_seconds=1e-9)
    )
    matcher, n = compiled.matcher(), 0
    with pytest.raises(LimitExceededError) as caught:
        for _ in range(2_000):
            assert matcher.accept_token(ord("a"))
            n += 1
    assert caught.value.limit == "step_seconds"
    assert 40 < n < 400
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    "spec",
    [
        constrain.regex("a{600000000}"),
        constrain.regex("a{200000000}b{200000000}c{200000000}"),
        constrain.json_schema({"type": "string", "minLength": 600_000_000}),
        constrain.json_schema({"type": "array", "items": {"enum": [1]}, "minItems": 600_000_000}),
    ],
    ids=["one repeat", "several", "a string", "an array"],
)
def test_more_tokens_than_can_be_counted(spec: Spec) -> None:
    """A count that no number of tokens is kept for is a limit error, never a wrong number, and ends at once."""
    tokens = with_all_bytes([b"aa"])
    compiled = constrain.compile(spec, tokens.build(), cache=False)
    with pytest.raises(LimitExceededError, match="output_tokens"):
        compiled.matcher().min_tokens_to_finish()
    row = constrain.allocate_token_bitmask(1, tokens.size)
    compiled.matcher().fill_budget_bitmask(row, 0, remaining=1_000)
    assert not row.any()
    # Where there is a shorter way it counts.
    either = constrain.compile(spec | constrain.regex("b"), tokens.build(), cache=False)
    assert either.matcher().min_tokens_to_finish() == 1


def test_ends_that_bounds_do_not_see() -> None:
    """Bounds don't know that keys must differ; an end is found all the same, and exactness is given up in time."""
    spec = constrain.json_schema({"type": "object", "minProperties": 3}, whitespace="compact")
    text = spec.sample(np.random.default_rng(0))
    assert len(json.loads(text)) >= 3
