"""Emptiness of conjunctions of patterns."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars.ir import ANY_TEXT
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.build import accepts
from constrain.grammars.regex.emptiness import is_empty
from constrain.grammars.regex.parse import parse_ecma
from tests.strategies import fixed

SOURCES = [
    "^a",
    "b$",
    "^[ab]$",
    "^(ab)*$",
    "a{2}",
    "^a{0,40}$",
    "^é",
    "(?=a)",
    "^(?!a)",
    "",
    "^$",
    "[^a]",
    "^.{3}$",
]
TEXTS = ["".join(letters) for n in range(4) for letters in itertools.product("abé", repeat=n)]
PATTERNS = {source: parse_ecma(source, watch=Watch(Limits())) for source in SOURCES}


@fixed(300)
@given(st.lists(st.sampled_from(SOURCES), max_size=3), st.lists(st.sampled_from(SOURCES), max_size=3))
def test_what_is_empty_has_no_text(positive: list[str], negative: list[str]) -> None:
    """A conjunction that is called empty has no short text."""
    wanted = [PATTERNS[source] for source in positive] or [ANY_TEXT]
    unwanted = [PATTERNS[source] for source in negative]
    if is_empty(wanted, unwanted, Watch(Limits())):
        for text in TEXTS:
            is_member = all(accepts(one, text) for one in wanted)
            assert not is_member or any(accepts(one, text) for one in unwanted)


def test_contradictions_are_found() -> None:
    """Disjoint patterns, and a pattern without itself, are empty; overlapping ones are not."""

    def empty(positive: list[str], negative: list[str]) -> bool:
        return is_empty([PATTERNS[s] for s in positive], [PATTERNS[s] for s in negative], Watch(Limits()))

    assert empty(["^a", "^é"], [])
    assert empty(["^a"], ["^a"])
    assert empty(["^(ab)*$", "^[ab]$"], [])
    assert empty(["^$"], [""])
    assert not empty(["^a", "b$"], [])
    assert not empty(["^a"], ["b$"])
