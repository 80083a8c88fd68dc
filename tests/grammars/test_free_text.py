"""Free text up to words and without words, by enumeration."""

from __future__ import annotations

from itertools import product

import pytest

from constrain.grammars.regex.build import accepts
from constrain.grammars.tags.text import up_to, without

TEXTS = [
    "".join(letters) for n in range(7) for letters in product("abé", repeat=n) if n < 6 or "é" in letters
]


def first_end(text: str, words: tuple[str, ...]) -> int | None:
    """Return where a word is complete first."""
    ends = [end for end in range(1, len(text) + 1) if text[:end].endswith(words)]
    return min(ends, default=None)


@pytest.mark.parametrize(
    "words",
    [
        ("a",),
        ("ab",),
        ("aa",),
        ("aab", "ab"),
        ("abab", "bb"),
        ("ab", "abb"),
        ("aé", "éa"),
        ("ababé",),
        ("a", "b", "é"),
        ("bab", "ab", "ba"),
    ],
)
def test_against_a_search(words: tuple[str, ...]) -> None:
    patterns = up_to(words)
    rest = without(words)
    for text in TEXTS:
        end = first_end(text, words)
        assert accepts(rest, text) == (end is None)
        for word, pattern in zip(words, patterns, strict=True):
            assert accepts(pattern, text) == (end == len(text) and text.endswith(word)), text


def test_any_character_may_stand_in_the_text() -> None:
    pattern = up_to(("<x>",))[0]
    for text in ("é<", "日本", "😀\n\t", "<<x", ""):
        assert accepts(pattern, text + "<x>")
        assert accepts(without(("<x>",)), text)
    assert accepts(without(()), "<x>")
