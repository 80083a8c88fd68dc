"""E15: rules with a parameter allow what enumeration of their values allows."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from constrain.tokenizer_index import rule_graphs
from tests import strategies
from tests.laws.test_budgets import check_budgets
from tests.laws.test_masks import check_all_states
from tests.laws.test_switches import SWITCHES, TOKENS, arena, walk
from tests.laws.walks import compile_grammar
from tests.reference.vocabularies import TokenList

_TEXTS = "{}, :abé"
_OPEN, _CLOSE, _COMMA, _COLON, *_WORDS = range(10)
_A, _B = ir.Literal(b"a"), ir.Literal(b"b")
_DISTINCT = {
    "letter": ir.Alternation((_A, ir.Literal("é".encode()))),
    "word": ir.Repeat(_A, 1, 2),
    "not ab": ir.Intersection(
        (ir.Alternation((_A, _B, ir.Literal(b"ab"))), ir.Complement(ir.Literal(b"ab")))
    ),
    "quoted": ir.Concatenation((ir.Literal(b":"), ir.Repeat(_A, 0, 1), ir.Literal(b":"))),
    "one or all": ir.Alternation((ir.Literal(b"aa"), ir.Repeat(_B, 1, 2))),
}
_TERMINALS = (
    *(
        ir.Terminal(ir.Literal(text.encode()), repr(text))
        for text in ("{", "}", ",", ":", "a", "b", "ab", "é", "aa", "ba")
    ),
    *(ir.Terminal(pattern, name) for name, pattern in _DISTINCT.items()),
)


@st.composite
def parameters(draw: st.DrawFn, n_elements: int) -> ir.Parameter:
    """Draw what is required and how many there may be; not always possible together."""
    elements = st.integers(0, n_elements - 1) if n_elements else st.nothing()
    some = st.lists(elements, max_size=2, unique=True) if n_elements else st.just([])
    required = frozenset(draw(some))
    least = draw(st.integers(0, 3))
    most = draw(st.one_of(st.none(), st.integers(1, 4)))
    needs: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if n_elements and (most is None or least <= len(required)) and draw(st.booleans()):
        needs = tuple((draw(elements), tuple(draw(some))) for _ in range(2))
    return ir.Parameter(n_elements, required, least, most, needs)


@st.composite
def machines(draw: st.DrawFn, rules: tuple[str, ...]) -> ir.StateMachine:
    """Draw an automaton of elements between braces, some of which may be there once."""
    has_distinct = draw(st.booleans())
    n_elements = draw(st.integers(0, 1 if has_distinct else 4))
    n_free = draw(st.integers(0 if n_elements else 1, 2))
    terminals = range(len(_WORDS) + 4, len(_TERMINALS)) if has_distinct else _WORDS
    words = st.sampled_from(list(terminals))
    symbols = words if has_distinct else st.one_of(words, st.sampled_from(rules))
    edges: list[tuple[int, ir.TerminalReference | ir.RuleReference | None, int]] = [
        (0, ir.TerminalReference(_OPEN), 1),
        (1, ir.TerminalReference(_CLOSE), 2),
        (3, ir.TerminalReference(_CLOSE), 2),
        (3, ir.TerminalReference(_COMMA), 4),
    ]
    actions = [ir.KEEP, ir.CLOSE, ir.CLOSE, ir.MORE]
    n_states = 5
    for action in (*range(n_elements), *[ir.COUNT] * n_free):
        for _ in range(draw(st.integers(1, 2))):
            symbol = draw(symbols)
            reference = ir.RuleReference(symbol) if isinstance(symbol, str) else ir.TerminalReference(symbol)
            target = 3
            if draw(st.booleans()):
                target, n_states = n_states, n_states + 1
                edges.append((target, ir.TerminalReference(_COLON), 3))
                actions.append(ir.KEEP)
            for source in (1, 4):
                if (source, reference, target) not in edges:
                    edges.append((source, reference, target))
                    actions.append(action)
    parameter = draw(parameters(n_elements))
    distinct = frozenset(draw(st.sets(words, min_size=1, max_size=3))) if has_distinct else frozenset()
    return ir.StateMachine(n_states, 0, frozenset({2}), tuple(edges), parameter, tuple(actions), distinct)


@st.composite
def grammars(draw: st.DrawFn) -> ir.Grammar:
    """Draw a grammar of machines that may hold each other, with blanks or without."""
    rules = ("first", "second")[: draw(st.integers(1, 2))]
    ignored, terminals = ir.Ignored(), _TERMINALS
    if draw(st.booleans()):
        ignored = ir.Ignored((len(_TERMINALS),), False, False, draw(st.sampled_from([None, 1, 2])))
        terminals = (*_TERMINALS, ir.Terminal(ir.Repeat(ir.Literal(b" "), 1, 2), "blank"))
    bodies: dict[str, ir.Expression] = {rule: draw(machines(rules)) for rule in rules}
    one = ir.RuleReference("first")
    bodies["start"] = draw(
        st.sampled_from([one, ir.Choice((one, ir.RuleReference(rules[-1]), ir.TerminalReference(4)))])
    )
    return ir.Grammar(terminals, bodies, "start", ignored)


def texts() -> st.SearchStrategy[TokenList]:
    return strategies.vocabularies(_TEXTS)


@strategies.fixed(150)
@given(grammars(), texts())
def test_masks_are_those_of_all_values(grammar: ir.Grammar, tokens: TokenList) -> None:
    """The mask is what the graph of all values gives, which is searched for dead ends."""
    event(f"{check_all_states(grammar, tokens, at_most=10) > 0}")


@strategies.fixed(60)
@given(grammars(), texts(), st.randoms(use_true_random=False))
def test_budgets_are_kept(grammar: ir.Grammar, tokens: TokenList, rng: random.Random) -> None:
    """Costs with values fall: no budget is overspent, none ends in a dead end."""
    try:
        compiled = compile_grammar(grammar, tokens)
    except constrain.EmptyLanguageError:
        return
    check_budgets(compiled, tokens, rng)


@strategies.fixed(40)
@given(grammars())
@pytest.mark.parametrize("switch", ["capacity 1", "no visit memo", "nothing"])
def test_switches_change_nothing(switch: str, grammar: ir.Grammar) -> None:
    """Masks are the same whatever is remembered, and with every table starting at size 1."""
    vocabulary = TOKENS.build()
    try:
        usual = arena(grammar, vocabulary)
    except constrain.EmptyLanguageError:
        assume(False)
    switched = arena(grammar, vocabulary, **SWITCHES[switch])
    for seed in range(2):
        expected = walk(usual, vocabulary, seed, 12)
        found = walk(switched, vocabulary, seed, 12)
        assert [row.tolist() for row in found] == [row.tolist() for row in expected]


@strategies.fixed(80)
@given(strategies.grammars(), strategies.vocabularies())
def test_counted_repetitions(grammar: ir.Grammar, tokens: TokenList) -> None:
    """Repetitions that are counted, not copied, are the same language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_graphs, "COUNTED", 1)
        patch.setattr(rule_graphs, "_COPIES", 1)
        check_all_states(grammar, tokens)


@strategies.fixed(30)
@given(strategies.grammars(), strategies.vocabularies(), st.randoms(use_true_random=False))
def test_budgets_with_counted_repetitions(grammar: ir.Grammar, tokens: TokenList, rng: random.Random) -> None:
    """The same for their costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_graphs, "COUNTED", 1)
        patch.setattr(rule_graphs, "_COPIES", 1)
        try:
            compiled = compile_grammar(grammar, tokens)
        except constrain.EmptyLanguageError:
            return
        check_budgets(compiled, tokens, rng)


def test_ten_thousand_rounds_cost_nothing() -> None:
    """A large bound is a number, not as many states."""
    word = ir.TerminalReference(4)
    for minimum, maximum in ((0, 100_000), (100_000, None), (3, 100_000), (100_000, 10**30)):
        grammar = ir.Grammar(_TERMINALS, {"start": ir.Repetition(word, minimum, maximum)}, "start")
        compiled = constrain.compile(constrain.spec.Spec.from_grammar(grammar), TOKENS.build(), cache=False)
        assert compiled.spec.network.n_dotted < 10
        matcher = compiled.matcher()
        assert matcher.is_accepting() == (minimum == 0)
