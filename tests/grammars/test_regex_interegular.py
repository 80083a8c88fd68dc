"""Python's dialect against interegular, which makes deterministic automata in its own way."""

from __future__ import annotations

import random

import interegular
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_regex
from tests.reference.patterns import matches
from tests.strategies import fixed

# Forms that interegular reads with the same meaning wherever they stand.
ATOMS = ["a", "b", "c", "[ab]", "[^ab]", "[a-c]", r"\d", "1", ".", r"\."]
# Its time grows fast with counts and nesting.
QUANTIFIERS = ["*", "+", "?", "{2}"]
PATTERNS = [
    r"[0-9]+(\.[0-9]+)?",
    r"([a-c]{1,3}\.){2,4}[a-c]{2,}",
    r"(?!0{3})[0-9]{3}",
    r"(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{4,6}",
    r"a(?!b)[a-c]*c",
    r"(a|ab)(c|bcd)(d*)",
    r"((a|b)*a(a|b){3})",
    r"(?i:yes|no)|maybe",
    r"x{2,5}y{0,3}?z",
]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 9)) >= 6:
            part = draw(st.sampled_from(["(?:", "("])) + draw(patterns(depth - 1)) + ")"
        else:
            part = draw(st.sampled_from(ATOMS))
        if draw(st.integers(0, 2)) == 0:
            part += draw(st.sampled_from(QUANTIFIERS))
        parts.append(part)
    pattern = "".join(parts)
    return pattern if draw(st.booleans()) else pattern + "|" + draw(patterns(0))


def agree(pattern: str, texts: list[str]) -> None:
    try:
        automaton = interegular.parse_pattern(pattern).to_fsm()
    except (interegular.Unsupported, interegular.InvalidSyntax, NotImplementedError):
        return
    ours = parse_regex(pattern, watch=Watch(Limits()))
    for text in texts:
        assert matches(ours, text.encode()) == automaton.accepts(text), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_fixed_patterns(pattern: str) -> None:
    """Both have the same members among random texts."""
    rng = random.Random(pattern)
    agree(pattern, ["".join(rng.choices("abcdxyz01A.Nn", k=rng.randrange(8))) for _ in range(150)])


@fixed(80)
@given(patterns(), st.lists(st.text("abc1.", max_size=6), min_size=15, max_size=15))
def test_generated_patterns(pattern: str, texts: list[str]) -> None:
    """Both have the same members among random texts, for generated patterns."""
    agree(pattern, texts)
