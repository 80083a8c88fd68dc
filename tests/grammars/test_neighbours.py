"""Which terminals may stand side by side, against the sentences of small grammars, all written out."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

import pytest

from constrain.grammars import ir
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.neighbours import begin_of, neighbours

N_TERMINALS = 5
# One of them may be empty.
PATTERNS = [*(ir.Literal(bytes([0x61 + t])) for t in range(4)), ir.Repeat(ir.Literal(b"e"), 0, 1)]
MOST = 2_000


def expression(random: Random, depth: int, later: list[str]) -> ir.Expression:
    kind = random.randrange(7 if depth else 2)
    if kind == 0 or (kind == 1 and not later):
        return ir.TerminalReference(random.randrange(N_TERMINALS))
    if kind == 1:
        return ir.RuleReference(random.choice(later))
    if kind == 6:
        n = random.randrange(2, 4)
        # Edges lead onwards from each state, so that every state is on a way to the end.
        edges = [(i, expression(random, 0, later), i + 1) for i in range(n - 1)]
        edges += [(0, None, random.randrange(1, n))] * random.randrange(2)
        return ir.StateMachine(n, 0, frozenset({n - 1}), tuple(edges))  # type: ignore[arg-type]
    parts = tuple(expression(random, depth - 1, later) for _ in range(random.randrange(1, 4)))
    if kind == 2:
        return ir.Choice(parts)
    if kind == 3:
        return ir.Repetition(parts[0], random.randrange(2), random.choice([1, 2]))
    return ir.Sequence(parts)


def grammar(random: Random, n_rules: int) -> ir.Grammar:
    names = [f"r{i}" for i in range(n_rules)]
    every = {name: expression(random, 2, names[i + 1 :]) for i, name in enumerate(names)}
    # What no text needs would have neighbours, too.
    rules: dict[str, ir.Expression] = {}
    for name in names:
        if name == "r0" or repr(name) in repr(rules.values()):
            rules[name] = every[name]
    terminals = tuple(ir.Terminal(pattern, str(t)) for t, pattern in enumerate(PATTERNS))
    return ir.Grammar(terminals, rules, "r0")


class TooManyError(Exception):
    pass


def sentences(body: ir.Expression | None, rules: dict[str, ir.Expression]) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]]
    match body:
        case None:
            return {()}
        case ir.TerminalReference(index):
            return {(index,), ()} if index == N_TERMINALS - 1 else {(index,)}
        case ir.RuleReference(name):
            return sentences(rules[name], rules)
        case ir.Sequence(parts):
            found = joined([sentences(part, rules) for part in parts])
        case ir.Choice(parts):
            found = set().union(*(sentences(part, rules) for part in parts))
        case ir.Repetition(inner, minimum, maximum):
            assert maximum is not None
            once = sentences(inner, rules)
            found = set().union(*(joined([once] * n) for n in range(minimum, maximum + 1)))
        case ir.StateMachine(n, _, _, edges):
            texts: list[set[tuple[int, ...]]] = [{()}, *(set() for _ in range(n - 1))]
            for state in range(n):
                for source, symbol, target in edges:
                    if source == state:
                        texts[target] |= joined([texts[source], sentences(symbol, rules)])
            found = texts[n - 1]
    if len(found) > MOST:
        raise TooManyError
    return found


def joined(parts: list[set[tuple[int, ...]]]) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = {()}
    for part in parts:
        found = {(*first, *second) for first, second in product(found, part)}
        if len(found) > MOST:
            raise TooManyError
    return found


@pytest.mark.parametrize("seed", range(300))
def test_neighbours_are_those_of_all_sentences(seed: int) -> None:
    random = Random(seed)
    tried = grammar(random, random.randrange(1, 4))
    try:
        texts = sentences(ir.RuleReference("r0"), dict(tried.rules))
    except TooManyError:
        tried = ir.Grammar(
            tried.terminals, {"r0": ir.Sequence((ir.TerminalReference(4), ir.TerminalReference(1)))}, "r0"
        )
        texts = sentences(ir.RuleReference("r0"), dict(tried.rules))
    after: list[set[int]] = [set() for _ in range(N_TERMINALS)]
    before: list[set[int]] = [set() for _ in range(N_TERMINALS)]
    for text in texts:
        for one, other in pairwise(text):
            after[one].add(other)
            before[other].add(one)
    watch = Watch(Limits())
    following, preceding = neighbours(tried, watch)
    last, first = {text[-1] for text in texts if text}, {text[0] for text in texts if text}
    met = {t for text in texts for t in text}
    for t in met:
        assert set(following[t].terminals) == after[t]
        assert set(preceding[t].terminals) == before[t]
        assert following[t].is_last == (t in last)
        assert preceding[t].is_last == (t in first)
    assert begin_of(tried, watch) == tuple(
        (low, high) for low, high in ranges(sorted(0x61 + t for t in first))
    )


def ranges(values: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = found[-1][0], value
        else:
            found.append((value, value))
    return found


def test_rules_that_call_each_other() -> None:
    a, b, c = (ir.TerminalReference(t) for t in range(3))
    lists = ir.Choice((ir.Sequence((ir.RuleReference("list"), a, ir.RuleReference("item"))), b))
    rules = {"list": lists, "item": ir.Choice((ir.Sequence((c, ir.RuleReference("item"))), ir.Sequence(())))}
    tried = ir.Grammar(tuple(ir.Terminal(p, "t") for p in PATTERNS[:3]), rules, "list")
    following, preceding = neighbours(tried, Watch(Limits()))
    assert [(set(x.terminals), x.is_last) for x in following] == [({0, 2}, True), ({0}, True), ({0, 2}, True)]
    assert [(set(x.terminals), x.is_last) for x in preceding] == [
        ({0, 1, 2}, False),
        (set(), True),
        ({0, 2}, False),
    ]


def test_ignored_text_stands_anywhere() -> None:
    a, b = ir.TerminalReference(0), ir.TerminalReference(1)
    terminals = tuple(ir.Terminal(p, "t") for p in PATTERNS[:3])
    tried = ir.Grammar(terminals, {"start": ir.Sequence((a, b))}, "start", ir.Ignored((2,), True, True))
    following, preceding = neighbours(tried, Watch(Limits()))
    assert [(set(x.terminals), x.is_last) for x in following] == [
        ({1, 2}, False),
        ({2}, True),
        ({0, 1, 2}, True),
    ]
    assert [set(x.terminals) for x in preceding] == [{2}, {0, 2}, {0, 1, 2}]
