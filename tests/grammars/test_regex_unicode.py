"""Sets of characters: every code point is asked."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable

import pytest

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import CharacterClass, Literal, Ranges
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex import ranges as sets
from constrain.grammars.regex.parse import parse_ecma, parse_regex
from constrain.grammars.regex.unicode import ignore_case, ignore_case_ecma, property_set

SCALARS = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
TEXT = "".join(map(chr, SCALARS))


def set_of(pattern: str) -> Ranges:
    """The set of characters that a pattern of one character denotes."""
    found = parse_regex(pattern, watch=Watch(Limits()))
    if isinstance(found, Literal):
        code = ord(found.data.decode())
        return ((code, code),)
    assert isinstance(found, CharacterClass)
    return found.ranges


def where(holds: Callable[[str], bool]) -> Ranges:
    return sets.normalize((code, code) for code, c in zip(SCALARS, TEXT, strict=True) if holds(c))


def taken_by_re(pattern: str) -> Ranges:
    prefix, _, rest = (
        pattern.rpartition(")") if pattern.startswith("(?") and pattern[-1] != ")" else ("", "", pattern)
    )
    runs = re.finditer(f"{prefix})(?:{rest})+" if prefix else f"(?:{rest})+", TEXT)
    return sets.normalize((ord(m.group()[0]), ord(m.group()[-1])) for m in runs)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"[^\W\d]", r"(?a)\w", r"(?a)\W", r"(?a)\s", r"(?a)\D"),
        *(".", "(?s:.)", "[^\n]", "[é-ñ]", "[^a-y]", r"[\w.-]", r"[^\s\d]", r"[\x00-\x1f]"),
    ],
)
def test_classes_are_those_of_re(pattern: str) -> None:
    """A class holds exactly the characters that `re` takes."""
    assert set_of(pattern) == taken_by_re(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "k",
            "K",
            "\u212a",
            "s",
            "ſ",
            "i",
            "I",
            "İ",
            "ı",
            "ß",
            "ẞ",
            "µ",
            "μ",
            "Σ",
            "ς",
            "ǅ",
            "ﬅ",
            "Θ",
            "ϴ",
            "Å",
            "ᲀ",
            "\U00010400",
            "\U0001e921",
        ),
        *(
            "[a-z]",
            "[A-Z]",
            "[^a-z]",
            "[à-þ]",
            "[Α-Ω]",
            "[\U00010400-\U0001044f]",
            "[\U0001e900-\U0001e943]",
            r"[\x00-\U0010ffff]",
            "[K-ſ]",
        ),
        *(
            r"[^\W]",
            r"\w",
            r"[k\W]",
            r"[^k\d]",
            "[^k]",
            "[k-s]",
            "[^i]",
            "[İ-ı]",
            "[ΐ]",
            "[\u1e9e]",
            "[ﬀ-ﬆ]",
            "[\U00010428]",
            "[Ꭰ-Ᏽ]",
            "[ꭰ-ꮿ]",
            "[Ა-Ჿ]",
        ),
    ],
)
@pytest.mark.parametrize("flags", ["i", "ai"])
def test_ignoring_case_is_that_of_re(pattern: str, flags: str) -> None:
    """Under ``(?i)`` a class holds exactly the characters that `re` takes, special foldings included."""
    pattern = f"(?{flags}){pattern}"
    assert set_of(pattern) == taken_by_re(pattern)


def test_every_letter_with_case_ignores_it_like_re() -> None:
    """The whole table of equal characters is that of `re`."""
    special = {code for code in SCALARS if chr(code).lower() != chr(code) or chr(code).upper() != chr(code)}
    text = "".join(map(chr, sorted(special)))
    for code in sorted(special)[::3]:
        expected = {ord(c) for c in re.findall(re.escape(chr(code)), text, re.IGNORECASE)}
        found = set_of(f"(?i:{chr(code)})")
        assert {value for low, high in found for value in range(low, high + 1)} == expected, hex(code)


def test_general_categories_are_those_of_unicodedata() -> None:
    """``\\p{Lu}`` and the like hold exactly the characters of that category, and groups their union."""
    by_name: dict[str, list[tuple[int, int]]] = {}
    for code, c in zip(SCALARS, TEXT, strict=True):
        name = unicodedata.category(c)
        by_name.setdefault(name, []).append((code, code))
        by_name.setdefault(name[0], []).append((code, code))
    for name, pairs in by_name.items():
        assert set_of(rf"\p{{{name}}}") == sets.normalize(pairs), name
        assert set_of(rf"\P{{{name}}}") == sets.complement(sets.normalize(pairs)), name
    assert set_of(r"\p{LC}") == sets.normalize(by_name["Lu"] + by_name["Ll"] + by_name["Lt"])
    assert property_set("Cs") == ()


@pytest.mark.parametrize(
    "names",
    [
        (
            "Lu",
            "lu",
            "Uppercase_Letter",
            "uppercase letter",
            "gc=Lu",
            "General_Category=Uppercase_Letter",
            "gc:Lu",
            "isLu",
        ),
        ("Greek", "Script=Greek", "sc=Grek", "script:greek", "IsGreek"),
        ("Nd", "Decimal_Number", "digit"),
        ("Alphabetic", "Alpha", "alphabetic=yes", "Alphabetic=True"),
        ("^L", "^Letter"),
        ("Any", "any"),
        ("White_Space", "space", "WhiteSpace"),
    ],
)
def test_properties_have_many_names(names: tuple[str, ...]) -> None:
    """Long and short names, and loose spelling, mean the same."""
    found = {property_set(name) for name in names}
    assert len(found) == 1 and None not in found


def test_properties_outside_the_table() -> None:
    """``Any``, ``ASCII``, ``Assigned``, negation and the one-letter form."""
    assert set_of(r"\p{Any}") == sets.FULL
    assert set_of(r"\p{ASCII}") == ((0, 0x7F),)
    assert set_of(r"\p{Assigned}") == where(lambda c: unicodedata.category(c) != "Cn")
    assert set_of(r"\pL") == set_of(r"\p{L}") == set_of(r"\P{^L}")
    assert set_of(r"[^\PN]") == set_of(r"\pN")
    assert sets.complement(set_of(r"\p{Alphabetic=No}")) == set_of(r"\p{Alphabetic}")


def test_ignoring_case_closes_properties() -> None:
    """``(?i:\\p{Lu})`` takes lower-case letters too."""
    found = set_of(r"(?i:\p{Lu})")
    assert sets.contains(found, ord("a")) and sets.contains(found, ord("A"))
    assert not sets.contains(found, ord("1"))


@pytest.mark.parametrize("inside", ["", "A-Cx", "i", "S", "\\x00-J0-9", "a-z"])
def test_ignoring_case_of_sets_with_all_that_is_not_ascii(inside: str) -> None:
    """The short way gives what the union over all characters gives: i, k and s have variants outside ASCII."""
    own = set_of(f"[{inside}\\x80-\\U0010ffff]")
    for close in (lambda ranges: ignore_case(ranges, False), ignore_case_ecma):
        # A set that lacks one character without variants goes the long way.
        lacks_one = close(sets.difference(own, ((0x4E00, 0x4E00),)))
        assert close(own) == sets.union(lacks_one, ((0x4E00, 0x4E00),))
    assert sets.contains(ignore_case(own, False), ord("k"))


@pytest.mark.parametrize("close", [lambda ranges: ignore_case(ranges, False), ignore_case_ecma])
def test_ignoring_case_of_ascii(close: Callable[[Ranges], Ranges]) -> None:
    """Without a look at the table, each character gets what it gets beside one that needs it."""
    for code in range(0x80):
        own = ((code, code),)
        assert sets.union(close(own), close(((0x3B1, 0x3B1),))) == close(sets.union(own, ((0x3B1, 0x3B1),)))
    assert sets.contains(close(((0x6B, 0x6B),)), 0x212A)
    assert not sets.contains(close(((0x61, 0x61),)), 0x212A)


@pytest.mark.parametrize(
    "name", ["Foo", "Script=Foo", "foo=Lu", "gc=Greek", "sc=Lu", "", "^", "Alphabetic=Perhaps", "is", "="]
)
def test_unknown_properties_are_refused(name: str) -> None:
    """An unknown property is an error that names it and its place, in both dialects."""
    for read in (parse_regex, parse_ecma):
        with pytest.raises(SpecError) as caught:
            read(rf"ab\p{{{name}}}", watch=Watch(Limits()))
        assert caught.value.offset == 2


def test_scripts_are_those_of_the_regex_package() -> None:
    """Every script and binary property of the table agrees with an independent implementation."""
    regex = pytest.importorskip("regex", reason="an independent table of scripts")
    from constrain.grammars.regex.property_table import BINARY, SCRIPTS

    def entries(table: str) -> list[str]:
        return [entry.split(" ")[0].split("/")[0] for entry in re.split(r"\n(?! )", table.strip())]

    newer = where(lambda c: unicodedata.category(c) == "Cn")
    for prefix, table in (("Script=", SCRIPTS), ("", BINARY)):
        for name in entries(table):
            found = regex.finditer(rf"\p{{{prefix}{name}}}+", TEXT)
            expected = sets.normalize((ord(m.group()[0]), ord(m.group()[-1])) for m in found)
            ours = property_set(prefix + name)
            assert ours is not None
            # Characters that this Python's Unicode does not know may differ between versions.
            assert sets.difference(ours, newer) == sets.difference(expected, newer), name


def test_set_algebra() -> None:
    """Union, intersection, difference, complement and partition are those of sets."""
    first = sets.normalize([(5, 9), (1, 3), (4, 4), (0xD7FE, 0xE001), (20, 25)])
    second = sets.normalize([(0, 2), (8, 22)])
    assert first == ((1, 9), (20, 25), (0xD7FE, 0xD7FF), (0xE000, 0xE001))

    def members(ranges: Ranges) -> set[int]:
        return {value for low, high in ranges for value in range(low, high + 1)}

    universe = members(sets.FULL)
    assert members(sets.union(first, second)) == members(first) | members(second)
    assert members(sets.intersect(first, second)) == members(first) & members(second)
    assert members(sets.difference(first, second)) == members(first) - members(second)
    assert members(sets.complement(first)) == universe - members(first)
    assert sets.complement(sets.FULL) == () and sets.complement(()) == sets.FULL
    parts = sets.partition([first, second])
    assert set().union(*(members(part) for part, _ in parts)) == universe
    for part, bits in parts:
        assert [part[0][0] in members(s) for s in (first, second)] == [bool(bits & 1), bool(bits & 2)]
    assert not sets.is_disjoint(first, second) and sets.is_disjoint(first, ((10, 19),))
