"""Transition networks against two independent readings of a grammar, and what each step promises."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars import ir
from constrain.grammars.errors import (
    EmptyLanguageError,
    LimitExceededError,
    SpecError,
    UnsupportedFeatureError,
)
from constrain.grammars.limits import Limits, Watch
from constrain.tokenizer_index import (
    byte_automaton,
    lexeme,
    long_runs,
    rule_graphs,
    state_sets,
    transition_network,
)
from constrain.tokenizer_index.network import Network, build_network
from tests import strategies
from tests.reference.grammar import ReferenceGrammar, words
from tests.reference.network_walk import NetworkWalk

T, R = ir.TerminalReference, ir.RuleReference


def letters(text: str) -> tuple[ir.Terminal, ...]:
    return tuple(ir.Terminal(ir.Literal(c.encode()), c, pointer=f"#/{c}") for c in text)


def build(grammar: ir.Grammar, limits: Limits | None = None) -> Network:
    network = build_network(grammar, Watch(limits or Limits()))
    check_shape(network)
    return network


def check_shape(network: Network) -> None:
    """Edges are sorted and deterministic, rules are contiguous, begin short of their end, and are used."""
    n = network.n_dotted
    for offsets, symbols, targets in (
        (network.terminal_offsets, network.terminal_symbol, network.terminal_target),
        (network.rule_offsets, network.rule_symbol, network.rule_target),
    ):
        assert len(offsets) == n + 1
        assert offsets[n] == len(symbols) == len(targets)
        for dot in range(n):
            row = symbols[offsets[dot] : offsets[dot + 1]].tolist()
            assert row == sorted(set(row))
            reached = targets[offsets[dot] : offsets[dot + 1]]
            assert all(network.rule_of[reached] == network.rule_of[dot])
    assert all(network.rule_of[:-1] <= network.rule_of[1:])
    assert network.rule_of[network.rule_start].tolist() == list(range(network.n_rules))
    assert not any(network.is_final[network.rule_start])
    assert {0, *network.rule_symbol.tolist()} == set(range(network.n_rules))
    assert len(network.rule_names) == network.n_rules
    for t in set(network.terminal_symbol.tolist()):
        is_boolean = network.literal_offsets[t] < network.literal_offsets[t + 1]
        assert is_boolean or network.start_offsets[t] < network.start_offsets[t + 1]
    # From every dotted state the end of its rule can be reached.
    before: list[list[int]] = [[] for _ in range(n)]
    for dot in range(n):
        for k in range(network.terminal_offsets[dot], network.terminal_offsets[dot + 1]):
            before[network.terminal_target[k]].append(dot)
        for k in range(network.rule_offsets[dot], network.rule_offsets[dot + 1]):
            before[network.rule_target[k]].append(dot)
    order = [dot for dot in range(n) if network.is_final[dot]]
    seen = set(order)
    for dot in order:
        for source in before[dot]:
            if source not in seen:
                seen.add(source)
                order.append(source)
    assert seen == set(range(n)) or (network.start_nullable and n == 1)


@pytest.fixture(params=["whole", "cut"])
def cuts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build as by default, and with every run of optional parts cut and every repeated body called."""
    _set_cuts(monkeypatch, request.param)


def _set_cuts(patch: pytest.MonkeyPatch, how: str) -> None:
    if how == "cut":
        patch.setattr(transition_network, "_FEW_STATES", 0)
        patch.setattr(state_sets, "_FEW_STATES", 0)
        patch.setattr(long_runs, "_LONGEST_RUN", 0)
        patch.setattr(long_runs, "_SMALLEST_BLOCK", 1)
        patch.setattr(rule_graphs, "_COPIES", 1)
        patch.setattr(byte_automaton, "UNROLL_POSITIONS", 1)


# ------------------------------------------------------------------------------------ any grammars


@pytest.mark.parametrize("how", ["whole", "cut"])
@strategies.fixed(100)
@given(grammar=strategies.grammars(greedy=True))
def test_any_grammar_agrees_with_the_reference(grammar: ir.Grammar, how: str) -> None:
    """Random grammars, also with greedy terminals and ignored text, have the same short texts."""
    lexeme.clear_cache()
    reference = ReferenceGrammar(grammar)
    with pytest.MonkeyPatch.context() as patch:
        _set_cuts(patch, how)
        try:
            network = build(grammar)
        except EmptyLanguageError:
            assert reference.is_empty
            return
    lexeme.clear_cache()
    alphabet = b'ab (,"'
    assert sorted(NetworkWalk(network).members(alphabet, 4)) == sorted(reference.members(alphabet, 4))


@st.composite
def letter_grammars(draw: st.DrawFn) -> ir.Grammar:
    rules = ("start", "r", "s")
    references = st.one_of(st.integers(0, 2).map(T), st.sampled_from(rules).map(R))

    def extend(inner: st.SearchStrategy[ir.Expression]) -> st.SearchStrategy[ir.Expression]:
        several = st.lists(inner, max_size=3).map(tuple)
        limits = st.sampled_from([(0, 1), (0, None), (1, None), (2, 3), (0, 2), (2, None), (3, 3)])
        repeats = st.builds(lambda body, mn: ir.Repetition(body, *mn), inner, limits)
        return st.one_of(several.map(ir.Sequence), several.map(ir.Choice), repeats)

    states = st.integers(0, 3)
    machines = st.builds(
        lambda start, ends, edges: ir.StateMachine(4, start, frozenset(ends), tuple(edges)),
        states,
        st.sets(states, max_size=2),
        st.lists(st.tuples(states, st.one_of(st.none(), references), states), max_size=8),
    )
    bodies = st.recursive(st.one_of(references, references, machines), extend, max_leaves=7)
    return ir.Grammar(letters("abc"), {rule: draw(bodies) for rule in rules}, "start")


@pytest.mark.parametrize("how", ["whole", "cut"])
@strategies.fixed(120)
@given(grammar=letter_grammars())
def test_rules_agree_with_their_equations(grammar: ir.Grammar, how: str) -> None:
    """The texts of up to five letters are the least solution of the rules read as equations."""
    expected = {"".join("abc"[t] for t in word).encode() for word in words(grammar, 5)}
    with pytest.MonkeyPatch.context() as patch:
        _set_cuts(patch, how)
        try:
            network = build(grammar)
        except EmptyLanguageError:
            assert not expected
            return
    assert set(NetworkWalk(network).members(b"abc", 5)) == expected
    assert network.start_nullable == (b"" in expected)


# ------------------------------------------------------------------------------------ pruning


def test_a_rule_that_only_recurs_is_removed() -> None:
    """`start: "a" b | "c"`, `b: "x" b` leaves `c` alone: neither `a` nor `x` can ever be finished."""
    rules: dict[str, ir.Expression] = {
        "start": ir.Choice((ir.Sequence((T(0), R("b"))), T(1))),
        "b": ir.Sequence((T(2), R("b"))),
    }
    network = build(ir.Grammar(letters("acx"), rules, "start"))
    assert network.terminal_symbol.tolist() == [1]
    assert network.rule_names == ("", "start")
    assert network.start_offsets.tolist() == [0, 0, 1, 1]
    assert network.n_positions == 2


def test_an_empty_terminal_removes_what_needs_it() -> None:
    """Edges on a terminal that matches nothing, or nothing but the empty string, disappear."""
    terminals = (
        *letters("ab"),
        ir.Terminal(ir.CharacterClass(()), "none"),
        ir.Terminal(ir.Literal(b""), "empty"),
    )
    body = ir.Choice((ir.Sequence((T(0), T(2))), ir.Sequence((T(1), T(3)))))
    network = build(ir.Grammar(terminals, {"start": body}, "start"))
    assert network.terminal_symbol.tolist() == [1]


def test_nullable_terminals_become_optional() -> None:
    """A terminal that matches the empty string is read without it, and may be left out."""
    terminals = (ir.Terminal(ir.Repeat(ir.Literal(b"a"), 0, 2), "a"), *letters("b"))
    network = build(ir.Grammar(terminals, {"start": ir.Sequence((T(0), T(1), T(0)))}, "start"))
    assert set(NetworkWalk(network).members(b"ab", 6)) == {
        b"a" * m + b"b" + b"a" * n for m in range(3) for n in range(3)
    }
    alone = build(ir.Grammar(terminals, {"start": T(0)}, "start"))
    assert alone.start_nullable
    assert set(NetworkWalk(alone).members(b"ab", 4)) == {b"", b"a", b"aa"}


@pytest.mark.parametrize(
    ("rules", "terminals", "message", "pointer"),
    [
        ({"start": ir.Choice(())}, (), "'start' has no alternative", "#/start"),
        ({"start": R("r"), "r": ir.Sequence((T(0), R("r")))}, letters("a"), "'r' always calls itself", "#/r"),
        ({"start": R("start")}, (), "'start' always calls itself", "#/start"),
        (
            {"start": ir.Sequence((T(0), R("r"))), "r": ir.Choice((T(1), R("r")))},
            (*letters("a"), ir.Terminal(ir.Alternation(()), "nothing", pointer="#/nothing")),
            "nothing matches 'nothing'",
            "#/nothing",
        ),
    ],
)
def test_an_empty_language_is_an_error(
    rules: dict[str, ir.Expression], terminals: tuple[ir.Terminal, ...], message: str, pointer: str
) -> None:
    """A grammar without any text is refused, and the error names what cannot be had."""
    grammar = ir.Grammar(terminals, rules, "start", pointers={name: f"#/{name}" for name in rules})
    with pytest.raises(EmptyLanguageError, match=message) as caught:
        build(grammar)
    assert caught.value.pointer == pointer


def test_the_empty_text_alone_is_a_language() -> None:
    """A grammar of only the empty text builds, without any edge."""
    network = build(ir.Grammar((), {"start": ir.Sequence(())}, "start"))
    assert network.start_nullable
    assert (network.n_rules, len(network.terminal_symbol), len(network.rule_symbol)) == (1, 0, 0)


def test_references_must_exist() -> None:
    """A reference to a missing rule or terminal is named in the error."""
    for body, message in ((R("nowhere"), "'nowhere'"), (T(3), "terminal 3"), (T(-1), "terminal -1")):
        with pytest.raises(SpecError, match=message):
            build(ir.Grammar(letters("a"), {"start": body}, "start"))
    with pytest.raises(SpecError, match="ignores terminal 7"):
        build(ir.Grammar(letters("a"), {"start": T(0)}, "start", ir.Ignored((7,))))


def test_ignored_text_as_a_symbol_must_be_repeatable() -> None:
    """A terminal that is ignored and used in a rule is refused where ignored text may not repeat."""
    terminals = (*letters("a"), ir.Terminal(ir.Literal(b" "), "blank", pointer="#/blank"))
    rules = {"start": ir.Sequence((T(0), T(1)))}
    build(ir.Grammar(terminals, rules, "start", ir.Ignored((1,), most=None)))
    with pytest.raises(UnsupportedFeatureError, match="'blank'") as caught:
        build(ir.Grammar(terminals, rules, "start", ir.Ignored((1,))))
    assert caught.value.pointer == "#/blank"


# ------------------------------------------------------------------------------------ recursion, repetition


def test_right_recursion_becomes_a_loop() -> None:
    """A rule that calls itself last is a loop, whatever comes before the call."""
    tail = ir.Choice((ir.Sequence((T(0), R("r"))), ir.Sequence((T(1), T(0), R("r"))), T(2)))
    network = build(ir.Grammar(letters("abc"), {"start": R("r"), "r": tail}, "start"))
    assert network.rule_symbol.tolist() == [1, 2]
    assert set(NetworkWalk(network).members(b"abc", 4)) == {
        b"c", b"ac", b"bac", b"aac", b"aaac", b"abac", b"baac"
    }  # fmt: skip


def test_other_recursion_stays() -> None:
    """Left recursion, and calls with something behind them, stay calls."""
    body = ir.Choice((ir.Sequence((R("r"), T(0))), ir.Sequence((T(1), R("r"), T(2))), T(0)))
    network = build(ir.Grammar(letters("abc"), {"start": R("r"), "r": body}, "start"))
    assert network.rule_symbol.tolist().count(2) == 3
    assert b"baac" in set(NetworkWalk(network).members(b"abc", 4))


@pytest.mark.parametrize("limits", [(3, 40), (0, 33), (20, None), (17, 17), (0, 16)])
def test_long_repetitions_count(limits: tuple[int, int | None], cuts: None) -> None:
    """Repetitions of a sequence, longer than what is copied, count as they should."""
    minimum, maximum = limits
    body = ir.Sequence((T(0), T(1)))
    network = build(ir.Grammar(letters("ab"), {"start": ir.Repetition(body, minimum, maximum)}, "start"))
    walk = NetworkWalk(network)
    found = {n for n in range(1, 45) if walk.accepts(b"ab" * n)}
    assert found == {n for n in range(1, 45) if minimum <= n <= (44 if maximum is None else maximum)}
    assert network.start_nullable == (minimum == 0)
    assert not walk.accepts(b"ab" * max(minimum, 1) + b"a")


def test_nested_repetitions_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repetition of 1,000 inside one of 1,000 takes some states; thousands where rounds are copied, not a million."""
    inner = ir.Repetition(ir.Sequence((T(0), T(1))), 0, 1000)
    outer = ir.Repetition(ir.Sequence((T(2), inner)), 0, 1000)
    assert build(ir.Grammar(letters("abc"), {"start": outer}, "start")).n_dotted < 20
    monkeypatch.setattr(rule_graphs, "COUNTED", 10_000)
    network = build(ir.Grammar(letters("abc"), {"start": outer}, "start"))
    assert network.n_dotted < 5000
    with pytest.raises(LimitExceededError) as caught:
        build(ir.Grammar(letters("abc"), {"start": outer}, "start"), Limits(states=500))
    assert caught.value.limit == "states"


# ------------------------------------------------------------------------------------ optional parts


def optional_machine(n: int, required: frozenset[int] = frozenset()) -> ir.Grammar:
    """An object of ``n`` keys in order: terminal ``i`` is key ``i``, then a comma, then an end."""
    comma, close = n, n + 1

    def opened(i: int) -> int:
        return i

    def after(i: int) -> int:
        return n + 1 + i

    def between(i: int) -> int:
        return 2 * n + 2 + i

    end = 3 * n + 3
    edges: list[tuple[int, ir.TerminalReference | ir.RuleReference | None, int]] = []
    for i in range(n):
        edges += [(opened(i), T(i), after(i + 1)), (between(i), T(i), after(i + 1))]
        edges.append((after(i), T(comma), between(i)))
        if i not in required:
            edges += [(state(i), None, state(i + 1)) for state in (opened, after, between)]
    edges += [(opened(n), T(close), end), (after(n), T(close), end)]
    machine = ir.StateMachine(3 * n + 4, 0, frozenset({end}), tuple(edges))
    names = [chr(97 + i) if n <= 10 else f"key {i};" for i in range(n)]
    terminals = tuple(ir.Terminal(ir.Literal(name.encode()), name) for name in (*names, ",", "}"))
    return ir.Grammar(terminals, {"start": machine}, "start")


@pytest.mark.parametrize("required", [(), (2,), (0, 3)])
def test_runs_of_optional_parts_keep_their_language(required: tuple[int, ...], cuts: None) -> None:
    """An object of four keys allows the required ones and any others, in order, however it is cut."""
    network = build(optional_machine(4, frozenset(required)))
    expected = set()
    for chosen in range(16):
        keys = [i for i in range(4) if chosen >> i & 1]
        if set(required) <= set(keys):
            expected.add((",".join("abcd"[i] for i in keys) + "}").encode())
    assert set(NetworkWalk(network).members(b"abcd,}", 8)) == expected


def test_long_runs_are_cut() -> None:
    """An object of 300 optional keys has far fewer edges than pairs of keys, and takes a blink."""
    grammar = optional_machine(300)
    began = time.process_time()
    network = build_network(grammar, Watch(Limits()))
    assert time.process_time() - began < 1
    assert len(network.terminal_symbol) + len(network.rule_symbol) < 25 * 300
    walk = NetworkWalk(network)
    for keys in ([], [0], [299], [3, 150, 298], list(range(0, 300, 37))):
        text = ",".join(f"key {i};" for i in keys) + "}"
        assert walk.accepts(text.encode())
        assert not walk.accepts(text.encode() + b"}")
    for keys in ([5, 5], [7, 6], [200, 100]):
        assert not walk.accepts((",".join(f"key {i};" for i in keys) + "}").encode())


def test_loops_of_nullable_parts_share_their_sets() -> None:
    """A loop over a thousand nullable alternatives is one set of states, not a thousand."""
    n = 1000
    terminals = tuple(ir.Terminal(ir.Literal(f"w{i};".encode()), str(i)) for i in range(n))
    parts = tuple(ir.Repetition(T(i), 0, None) for i in range(n))
    grammar = ir.Grammar(terminals, {"start": ir.Repetition(ir.Choice(parts), 0, None)}, "start")
    network = build_network(grammar, Watch(Limits()))
    assert network.n_dotted < 10
    assert NetworkWalk(network).accepts(b"w3;w3;w999;w0;")


# ------------------------------------------------------------------------------------ terminals


def test_top_conjunctions_stay_literals() -> None:
    """A terminal that is a conjunction, also between quotes, keeps a literal for each part."""
    word = ir.Repeat(ir.CharacterClass(((0x61, 0x7A),)), 0, 30)
    nested = ir.Intersection(
        (word, ir.Intersection((ir.Repeat(word, 1, 1), ir.Complement(ir.Literal(b"no")))))
    )
    quoted = ir.Concatenation((ir.Literal(b'"'), nested, ir.Literal(b'"')))
    network = build(ir.pattern_grammar(quoted))
    assert network.literal_offsets.tolist() == [0, 3]
    assert network.literal_negative.tolist() == [0, 0, 1]
    assert network.start_offsets.tolist() == [0, 0]
    assert set(network.accept.tolist()) == {-1, 1}
    walk = NetworkWalk(network)
    assert [walk.accepts(f'"{w}"'.encode()) for w in ("yes", "no", "nope", "")] == [True, False, True, True]


def test_one_positive_literal_is_plain() -> None:
    """A conjunction of one part, or of one part and negations of nothing, is an ordinary terminal."""
    for pattern in (
        ir.Intersection((ir.Literal(b"a"),)),
        ir.Intersection((ir.Literal(b"a"), ir.Complement(ir.Alternation(())))),
        ir.Intersection((ir.Literal(b"a"), ir.Complement(ir.Literal(b"")))),
    ):
        network = build(ir.pattern_grammar(pattern))
        assert network.literal_offsets.tolist() == [0, 0]
        assert network.starts.tolist() == [0]


def test_an_impossible_positive_literal_empties_its_terminal() -> None:
    """A conjunction with a part that matches nothing is no terminal at all."""
    impossible = ir.Intersection((ir.ANY_TEXT, ir.CharacterClass(())))
    with pytest.raises(EmptyLanguageError, match="'pattern'"):
        build(ir.pattern_grammar(impossible))


def test_conjunctions_know_the_empty_string() -> None:
    """A conjunction matches the empty string exactly if all its parts do."""
    some = ir.Repeat(ir.Literal(b"a"), 0, 3)
    both = ir.Intersection((some, ir.Repeat(ir.Literal(b"a"), 0, 2)))
    assert build(ir.pattern_grammar(both)).start_nullable
    without = ir.Intersection((some, ir.Complement(ir.Repeat(ir.Literal(b"aa"), 0, 1))))
    network = build(ir.pattern_grammar(without))
    assert not network.start_nullable
    assert set(NetworkWalk(network).members(b"a", 5)) == {b"a", b"aaa"}


def test_names_and_places_are_kept() -> None:
    """Names, pointers, the order of priorities and the ignored terminals are told as the grammar has them."""
    terminals = (
        ir.Terminal(ir.Literal(b"a"), "A", priority=3, greedy=True, pointer="#/a"),
        ir.Terminal(ir.Literal(b" "), "blank"),
        ir.Terminal(ir.Literal(b"z"), "unused"),
    )
    ignored = ir.Ignored((1,), leading=True, trailing=False, most=None)
    network = build(ir.Grammar(terminals, {"start": T(0)}, "start", ignored))
    assert network.terminal_names == ("A", "blank", "unused")
    assert network.terminal_pointers == ("#/a", None, None)
    assert network.priority.tolist() == [1, 0, 0]  # only their order counts
    assert network.greedy[0] == 1
    assert network.ignored.tolist() == [0, 1, 0]
    assert network.ignored_terminals.tolist() == [1]
    assert (network.ignored_leading, network.ignored_trailing, network.ignored_most) == (
        True,
        False,
        None,
    )
    assert network.start_offsets.tolist() == [0, 1, 2, 2]


# ------------------------------------------------------------------------------------ greedy

DIGIT = ir.CharacterClass(((0x30, 0x39),))
NUMBER = ir.Terminal(ir.Repeat(DIGIT, 1, None), "number")
BLANK = ir.Terminal(ir.Repeat(ir.CharacterClass(((0x20, 0x20),)), 1, 4), "blank")


def greedy(
    terminals: tuple[ir.Terminal, ...], body: ir.Expression, ignored: ir.Ignored | None = None
) -> list[bool]:
    network = build(ir.Grammar(terminals, {"start": body}, "start", ignored or ir.Ignored()))
    return [bool(g) for g in network.greedy]


def test_numbers_and_blanks_are_greedy_for_free() -> None:
    """Numbers between commas and single ignored lexemes need no flag."""
    terminals = (NUMBER, *letters(","), BLANK)
    listed = ir.Sequence((T(0), ir.Repetition(ir.Sequence((T(1), T(0))), 0, None)))
    assert greedy(terminals, listed, ir.Ignored((2,))) == [True, False, True]
    assert greedy(terminals, listed, ir.Ignored((2,), most=None)) == [True, False, False]


def test_what_may_be_continued_is_not_greedy() -> None:
    """A terminal isn't greedy where what follows, or another terminal read beside it, could continue it."""
    word = ir.Terminal(ir.Repeat(ir.CharacterClass(((0x61, 0x7A),)), 1, None), "word")
    assert greedy((NUMBER,), ir.Repetition(T(0), 1, None)) == [False]
    assert greedy((NUMBER, *letters("1")), ir.Sequence((T(0), T(1)))) == [False, False]
    # "12" may be followed by ":" only if it is no time; the number must be able to end before ":".
    clock = ir.Terminal(ir.Concatenation((DIGIT, ir.Literal(b":"), DIGIT)), "time")
    beside = ir.Choice((ir.Sequence((T(0), T(1))), T(2)))
    assert greedy((NUMBER, *letters(":"), clock), beside) == [False, False, False]
    # Both may end at once, and what follows the other one continues this one.
    same = ir.Choice((T(0), ir.Sequence((T(1), T(2)))))
    assert greedy((NUMBER, ir.Terminal(DIGIT, "digit"), *letters("5")), same)[0] is False
    assert greedy((word, NUMBER), ir.Sequence((T(0), T(1)))) == [True, True]


def test_a_rule_end_counts_as_a_follower() -> None:
    """What follows the callers of a rule follows the terminals at its end."""
    rules: dict[str, ir.Expression] = {
        "start": ir.Sequence((R("r"), T(0))),
        "r": R("s"),
        "s": ir.Sequence((T(1), T(0))),
    }
    network = build(ir.Grammar((NUMBER, *letters("-")), rules, "start"))
    assert network.greedy.tolist() == [0, 0]
