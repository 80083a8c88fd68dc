"""The kernel that reads terminals side by side, against a walk byte by byte."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

from constrain.grammars import ir
from constrain.grammars.errors import LimitExceededError
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_regex
from constrain.tokenizer_index import lexeme_product, native
from constrain.tokenizer_index.lexeme import Lexeme, compile_terminal
from constrain.tokenizer_index.lexeme_product import Product, States, TooManyStatesError
from tests.reference.lexeme_states import SlowProduct

PATTERNS = (
    "a",
    "ab|b",
    "[ab]+",
    "(?:ab)*a",
    "a?b?c",
    "[a-c]{2,40}",
    "(?:a|bc){3,30}x",
    "[^b]*b",
    "é|[à-ü]+",
    "(?:a|é)*",
    "[a-zα-ω]+",
    ".*ab",
    "abc|abd|b.",
)


def pattern(text: str) -> ir.Pattern:
    return parse_regex(text, watch=Watch(Limits()))


def lexeme(rng: Random) -> Lexeme:
    found = pattern(rng.choice(PATTERNS))
    if rng.random() < 0.3:
        other = pattern(rng.choice(PATTERNS))
        found = ir.Intersection((found, ir.Complement(other) if rng.random() < 0.7 else other))
        return compile_terminal(ir.Terminal(found, "x"), Watch(Limits()))
    not_before = ((0x61, 0x62),) if rng.random() < 0.3 else ()
    terminal = ir.Terminal(found, "x", greedy=True, not_before=not_before)
    return compile_terminal(terminal, Watch(Limits()))


@pytest.mark.parametrize("seed", range(40))
def test_states_are_those_of_the_reference(seed: int) -> None:
    """Bytes, ends and edges of every state, in order of discovery."""
    rng = Random(seed)
    lexemes = [lexeme(rng) for _ in range(rng.randint(1, 5))]
    priority = [rng.randint(0, 1) for _ in lexemes]
    greedy = [rng.random() < 0.7 for _ in lexemes]
    alive = [t for t, found in enumerate(lexemes) if found.alive]
    product = Product(
        [found if found.alive else None for found in lexemes], priority, greedy, Watch(Limits())
    )
    slow = SlowProduct(lexemes, priority, greedy)
    for t in alive:
        company = [t, *(x for x in alive if x != t and rng.random() < 0.7)]
        companion = rng.choice([-1, *company])
        bits = sum(1 << x for x in company)
        assert product.states(t, bits, companion) == slow.states(t, company, companion)


def product_of(*texts: str, watch: Watch | None = None) -> Product:
    lexemes = [
        compile_terminal(ir.Terminal(pattern(text), text, greedy=True), Watch(Limits())) for text in texts
    ]
    return Product(lexemes, [0] * len(texts), [True] * len(texts), watch or Watch(Limits()))


def test_a_walk_may_stop_and_go_on_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the clock after every state, and tables that grow, change nothing."""
    texts = (r"[\w]+x?", "(?:é|ab)*c", ".*ab")
    expected = [product_of(*texts).states(t, 0b111) for t in range(3)]
    monkeypatch.setattr(lexeme_product, "_WORK", 1)
    monkeypatch.setattr(lexeme_product, "_ROOM", 1)
    assert [product_of(*texts).states(t, 0b111) for t in range(3)] == expected


def test_too_many_states_are_reported() -> None:
    """Twenty characters of memory are a million states."""
    with pytest.raises(TooManyStatesError):
        product_of("(?:a|b)*a(?:a|b){14}").states(0, 0b1)


def test_time_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long walk ends with the limit on seconds."""
    monkeypatch.setattr(lexeme_product, "_WORK", 1)
    watch = Watch(Limits(compile_seconds=1e-9))
    with pytest.raises(LimitExceededError):
        product_of(r"\w+", r"\w*x", watch=watch).states(0, 0b11)


def test_one_state() -> None:
    """After a letter nothing goes on."""
    assert product_of("a").states(0, 0b1) == States([0], [3], [0, 0], [])


def test_compiling_the_kernels_is_not_the_grammars_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first grammar on a machine waits for the kernels; its own limit counts from there on."""
    loaded = native.load()

    def slow() -> Any:
        time.sleep(0.3)
        return loaded

    monkeypatch.setattr(native, "load", slow)
    watch = Watch(Limits(compile_seconds=0.25))
    product_of("ab", "a+", watch=watch).states(0, 0b11)
    watch.step("here", 10_000)
