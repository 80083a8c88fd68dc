"""Patterns with back-references: decided for a text, and widened to a regular language."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.back_references import searches, without_references
from constrain.grammars.regex.build import accepts

TEXTS = ["".join(letters) for n in range(6) for letters in itertools.product("ab", repeat=n)]


def matching(source: str, texts: list[str]) -> list[str]:
    return [text for text in texts if searches(source, text, Watch(Limits()))]


@pytest.mark.parametrize(
    ("source", "taken", "refused"),
    [
        # What ECMA-262 22.2.2 says, where Python's `re` differs.
        (r"^\1(a)$", ["a"], ["", "aa"]),
        (r"^(a\1)$", ["a"], ["aa", ""]),
        (r"^(?:(a)|b)*\1$", ["b", "aa", "baa", "aab"], ["abac"]),
        (r"^((a)|(b)){2}\2\3$", ["aaa", "abb", "bbb"], ["aba", "aa"]),
        (r"^(a?)*$", ["", "aa"], ["b"]),
        (r"^(?<q>a|b)\k<q>$", ["aa", "bb"], ["ab", "a"]),
        (r"^(?i:(a)\1)$", ["aA", "aa"], ["ab"]),
        (r"(?<=\1)(a)$", ["a"], ["b"]),
        (r"^(ab|a)(?!\1)", ["ab", "abb", "aba"], ["b"]),
        (r"^<([a-z]+)>.*</\1>$", ["<b>x</b>", "<a></a>"], ["<b></a>", "<b>"]),
    ],
)
def test_references_mean_what_the_standard_says(source: str, taken: list[str], refused: list[str]) -> None:
    """Groups that are open, or not yet matched, count as empty; rounds of loops begin anew."""
    assert matching(source, taken + refused) == taken


_PIECES = st.sampled_from(["a", "b", "(a|b)", "(a*)", "(a|ab)", "(b?)", ".", "a*", "(?:a|b)+", r"\b"])


@settings(deadline=None, max_examples=60)
@given(st.lists(_PIECES, min_size=1, max_size=4), st.lists(st.integers(1, 4), max_size=2))
def test_patterns_match_as_in_python(pieces: list[str], references: list[int]) -> None:
    """Where each reference follows its group, outside of loops, Python's `re` agrees."""
    n_groups = sum(piece.startswith("(") and piece[1] != "?" for piece in pieces)
    source = "".join(pieces) + "".join(f"(?:\\{i})" for i in references if i <= n_groups) + "$"
    expected = [text for text in TEXTS if re.search(source, text)]
    assert matching(source, TEXTS) == expected
    if any(i <= n_groups for i in references):
        wider = without_references(source, Watch(Limits()))
        assert all(accepts(wider, text) for text in expected)


def test_references_into_lookaround_are_refused() -> None:
    """What lookaround has matched first would count, which no set of states tells."""
    with pytest.raises(UnsupportedFeatureError, match="lookaround"):
        searches(r"(?=(a|ab))\1$", "ab", Watch(Limits()))
    assert searches(r"(?=(a))(b|a)\2", "aa", Watch(Limits()))


def test_hostile_patterns_end() -> None:
    """Malformed names are errors, and too many ways to match a limit."""
    with pytest.raises(SpecError, match="name of a group"):
        searches(r"(?<a>x)\k<b>", "x", Watch(Limits()))
    with pytest.raises(LimitExceededError):
        searches(r"(a*)*(a*)(a*)(a*)\1\2\3\4b", "a" * 60, Watch(Limits(states=20_000)))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"^(a(?=b))b\1c$", "abac"),
        (r"^((?!ab).)\1b$", "aab"),
        (r"^(b(?<=ab|^b)|a)*\1$", "bb"),
        (r"^(a\b)-\1b$", "a-ab"),
        (r"^(^a|b)\1$", "aa"),
        (r"^(ab)(?i:\1)$", "abaB"),
        (r"^((?:^|b)a(?!c))(\1)\2c$", "aaac"),
    ],
)
def test_a_text_that_is_repeated_stands_among_others(source: str, text: str) -> None:
    """What a group demands of text around it, and its case, need not hold where its text is repeated."""
    assert matching(source, [text]) == [text]
    assert accepts(without_references(source, Watch(Limits())), text)
