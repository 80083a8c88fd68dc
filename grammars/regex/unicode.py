"""Sets of characters by property, as the running Python knows them.

``\\d \\w \\s`` and case folding are those of Python's `re` on text; general categories those of
`unicodedata`; scripts and a few binary properties come from `property_table`, because the library has
none. Each table is made on first use (5 to 40 ms) and kept.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from constrain.grammars.ir import Ranges
from constrain.grammars.regex.property_table import BINARY, SCRIPTS
from constrain.grammars.regex.ranges import FULL, complement, contains, intersect, normalize, union

# For each character that has others, all that are taken for it, itself among them.
_Variants: TypeAlias = dict[int, tuple[tuple[int, int], ...]]

# Planes 4 to 13 and the rest of plane 14 are unassigned, planes 15 and 16 are private: nothing there has
# a property besides its general category. (A test looks at every code point.)
_PARTS = ((0, 0xD800), (0xE000, 0x40000), (0xE0000, 0xE1000))

ASCII_DIGITS: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
# ECMA-262, WhiteSpace and LineTerminator: TAB VT FF ZWNBSP, category Zs, LF CR LS PS.
ECMA_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
# ECMA-262, LineTerminator.
ECMA_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))


@lru_cache(maxsize=1)
def _texts() -> tuple[tuple[int, str], ...]:
    """Return every character that may have properties, as (first code point, text)."""
    name = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
    code = "I" if array("I").itemsize == 4 else "L"
    return tuple((low, array(code, range(low, high)).tobytes().decode(name)) for low, high in _PARTS)


def _scan(pattern: str) -> Ranges:
    found = re.compile(f"(?:{pattern})+")
    return normalize(
        (low + match.start(), low + match.end() - 1)
        for low, text in _texts()
        for match in found.finditer(text)
    )


@lru_cache(maxsize=8)
def perl_class(letter: str, ascii_only: bool) -> Ranges:
    """Return the set of ``\\d``, ``\\w`` or ``\\s`` (``letter``; a capital negates) as `re` has it."""
    if letter.isupper():
        return complement(perl_class(letter.lower(), ascii_only))
    if ascii_only:
        return {"d": ASCII_DIGITS, "w": ASCII_WORD, "s": ASCII_SPACE}[letter]
    return _scan("\\" + letter)


# ------------------------------------------------------------------------------------ categories

_CATEGORIES = [
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Mc",
    "Me",
    "Nd",
    "Nl",
    "No",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
]
_CATEGORY_NAMES = {
    "letter": "l",
    "casedletter": "lc",
    "l&": "lc",
    "uppercaseletter": "lu",
    "lowercaseletter": "ll",
    "titlecaseletter": "lt",
    "modifierletter": "lm",
    "otherletter": "lo",
    "mark": "m",
    "combiningmark": "m",
    "nonspacingmark": "mn",
    "spacingmark": "mc",
    "enclosingmark": "me",
    "number": "n",
    "decimalnumber": "nd",
    "digit": "nd",
    "letternumber": "nl",
    "othernumber": "no",
    "punctuation": "p",
    "punct": "p",
    "connectorpunctuation": "pc",
    "dashpunctuation": "pd",
    "openpunctuation": "ps",
    "closepunctuation": "pe",
    "initialpunctuation": "pi",
    "finalpunctuation": "pf",
    "otherpunctuation": "po",
    "symbol": "s",
    "mathsymbol": "sm",
    "currencysymbol": "sc",
    "modifiersymbol": "sk",
    "othersymbol": "so",
    "separator": "z",
    "spaceseparator": "zs",
    "lineseparator": "zl",
    "paragraphseparator": "zp",
    "other": "c",
    "control": "cc",
    "cntrl": "cc",
    "format": "cf",
    "surrogate": "cs",
    "privateuse": "co",
    "unassigned": "cn",
}
_CATEGORY_GROUPS: dict[str, tuple[str, ...]] = {name.lower(): (name,) for name in _CATEGORIES}
for _name in _CATEGORIES:
    _CATEGORY_GROUPS[_name[0].lower()] = (*_CATEGORY_GROUPS.get(_name[0].lower(), ()), _name)
_CATEGORY_GROUPS["lc"] = ("Lu", "Ll", "Lt")


@lru_cache(maxsize=1)
def _category_texts() -> tuple[tuple[int, str], ...]:
    """Return `_texts` with each character replaced by one that stands for its category."""
    letters = {name: chr(0x41 + index) for index, name in enumerate(_CATEGORIES)}
    category = unicodedata.category
    return tuple((low, "".join([letters[category(c)] for c in text])) for low, text in _texts())


# What `str` knows of a category, to be found without a look at each character's: a pattern that finds its members
# and some others, and the method of a text that has members only.
_QUICK: dict[str, tuple[str, Callable[[str], bool]]] = {
    "l": (r"[^\W\d_]", str.isalpha),
    "nd": (r"\d", str.isdecimal),
    "zs": (r"\s", lambda text: all(unicodedata.category(c) == "Zs" for c in text)),
}


def _quick_category(pattern: str, has_members_only: Callable[[str], bool]) -> Ranges:
    pairs = []
    for low, text in _texts():
        for match in re.finditer(pattern + "+", text):
            first = low + match.start()
            if has_members_only(match[0]):
                pairs.append((first, first + len(match[0]) - 1))
            else:
                pairs += [(first + i,) * 2 for i, c in enumerate(match[0]) if has_members_only(c)]
    return normalize(pairs)


@lru_cache(maxsize=64)
def category(name: str) -> Ranges:
    """Return the set of a general category or group of categories, by its short name in lower case."""
    if name in _QUICK:
        return _quick_category(*_QUICK[name])
    wanted = "".join(chr(0x41 + _CATEGORIES.index(part)) for part in _CATEGORY_GROUPS[name])
    found = re.compile(f"[{re.escape(wanted)}]+")
    pairs = [
        (low + match.start(), low + match.end() - 1)
        for low, text in _category_texts()
        for match in found.finditer(text)
    ]
    if "Cn" in _CATEGORY_GROUPS[name]:
        pairs += [(0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF), (0x10FFFE, 0x10FFFF)]
    if "Co" in _CATEGORY_GROUPS[name]:
        pairs += [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]
    return normalize(pairs)


# ------------------------------------------------------------------------------------ properties


@lru_cache(maxsize=2)
def _rows(table: str) -> dict[str, str]:
    """Return the text of each entry of ``table`` under each of its names."""
    rows: dict[str, str] = {}
    for entry in re.split(r"\n(?! )", table.strip()):
        names, _, row = entry.partition(" ")
        for name in names.split("/"):
            rows[name] = row
    return rows


@lru_cache(maxsize=256)
def _decode(row: str) -> Ranges:
    pairs = []
    following = 0
    for item in row.split():
        gap, _, length = item.partition("-")
        low = following + int(gap, 36)
        high = low + (int(length, 36) if length else 0)
        pairs.append((low, high))
        following = high + 1
    return normalize(pairs)


def _loose(name: str) -> str:
    """Return ``name`` for comparison (UAX #44, UAX44-LM3, without the prefix "is")."""
    return name.lower().replace("_", "").replace(" ", "").replace("-", "")


def property_set(text: str) -> Ranges | None:
    """Return the set that ``\\p{text}`` denotes, or ``None`` if the property is unknown.

    Parameters
    ----------
    text : str
        ``L``, ``Lu``, ``Uppercase_Letter``, ``gc=Lu``, ``Greek``, ``Script=Greek``, ``sc=Grek``,
        ``Alphabetic``, ``ASCII``, ``Any``, ...; case, blanks, ``_`` and ``-`` do not count; a first ``^``
        negates.
    """
    negated = text.startswith("^")
    key, separator, value = text[negated:].replace(":", "=").partition("=")
    key, value = _loose(key), _loose(value)
    found = _keyed(key, value) if separator else _bare(key)
    if found is not None and negated:
        return complement(found)
    return found


def _keyed(key: str, value: str) -> Ranges | None:
    if key in ("gc", "generalcategory"):
        return _category_or_none(value)
    if key in ("sc", "script"):
        row = _rows(SCRIPTS).get(value)
        return None if row is None else _decode(row)
    if value in ("y", "yes", "t", "true", "n", "no", "f", "false"):
        row = _rows(BINARY).get(key)
        if row is not None:
            return _decode(row) if value[0] in "yt" else complement(_decode(row))
    return None


def _category_or_none(name: str) -> Ranges | None:
    name = _CATEGORY_NAMES.get(name, name)
    return category(name) if name in _CATEGORY_GROUPS else None


def _bare(name: str) -> Ranges | None:
    if name == "any":
        return FULL
    if name == "ascii":
        return ((0, 0x7F),)
    if name == "assigned":
        return complement(category("cn"))
    found = _category_or_none(name)
    if found is not None:
        return found
    row = _rows(BINARY).get(name) or _rows(SCRIPTS).get(name)
    if row is not None:
        return _decode(row)
    return _bare(name[2:]) if name.startswith("is") and len(name) > 2 else None


# ------------------------------------------------------------------------------------ case

# Where letters with case can be: everything below plane 2 but CJK, Hangul and Tangut.
_BLOCK = 64
_CASED_PARTS = ((0x41, 0x3400), (0xA000, 0xAC00), (0xF900, 0x17000), (0x18D00, 0x20000))


def _lower(code: int) -> int:
    """Return the simple lower-case mapping."""
    return ord(chr(code).lower()[0])


def _cased() -> Iterator[tuple[int, str]]:
    """Yield the characters, with their codes, that are not their own lower and upper case."""
    for low, text in _texts():
        # Most blocks have none, which is told at once. No mapping makes a text shorter.
        for start in range(0, len(text), _BLOCK):
            block = text[start : start + _BLOCK]
            if block.upper() != block or block.lower() != block:
                for code, character in enumerate(block, low + start):
                    if character.upper() != character or character.lower() != character:
                        yield code, character


@lru_cache(maxsize=1)
def _case_variants() -> _Variants:
    """Return, for each character that has others, all that `re.IGNORECASE` takes for it.

    Two characters are the same for `re` if their lower-case forms are equal, or if these two have one
    upper-case form (``s`` and U+017F, ``k`` and U+212A).
    """
    uppers: dict[str, list[int]] = {}
    for code, character in _cased():
        uppers.setdefault(character.upper(), []).append(code)
    # Union of the two relations, on lower-case forms.
    representative: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for codes in uppers.values():
        lowers = sorted({_lower(code) for code in codes})
        if len(lowers) == 1 and lowers[0] not in representative:  # as nearly always
            representative[lowers[0]] = lowers[0]
            members[lowers[0]] = lowers
            continue
        roots = sorted({representative.get(code, code) for code in lowers})
        for root in roots[1:]:
            for code in members.pop(root, [root]):
                representative[code] = roots[0]
                members.setdefault(roots[0], [roots[0]]).append(code)
        for code in lowers:
            if representative.setdefault(code, roots[0]) == code:
                members.setdefault(code, [code])
    groups: dict[int, set[int]] = {}
    for codes in uppers.values():
        for code in codes:
            lower = _lower(code)
            groups.setdefault(representative.get(lower, lower), set()).update((code, lower))
    return _by_member(groups.values())


def _by_member(groups: Iterable[set[int]]) -> _Variants:
    variants: _Variants = {}
    for group in groups:
        pairs = tuple((code, code) for code in sorted(group))
        if len(pairs) > 1:
            for code in group:
                variants[code] = pairs
    return variants


@lru_cache(maxsize=1)
def _simple_foldings() -> _Variants:
    """Return, for each character that has others, all with the same simple case folding (ECMA-262)."""
    groups: dict[str, set[int]] = {}
    for low, high in _CASED_PARTS:
        for code in range(low, high):
            character = chr(code)
            folded = character.casefold()
            if len(folded) > 1:
                folded = character.lower()
                if len(folded) > 1:
                    folded = character
            groups.setdefault(folded, set()).add(code)
    return _by_member(groups.values())


_ASCII_UPPER: Ranges = ((0x41, 0x5A),)
_ASCII_LOWER: Ranges = ((0x61, 0x7A),)
# Characters beyond ASCII that `re.IGNORECASE`, and ECMA-262, take for ASCII letters.
_FOR_ASCII: tuple[tuple[int, Ranges], ...] = (
    (ord("i"), ((0x130, 0x131),)),
    (ord("k"), ((0x212A, 0x212A),)),
    (ord("s"), ((0x17F, 0x17F),)),
)


@lru_cache(maxsize=512)
def ignore_case(ranges: Ranges, ascii_only: bool) -> Ranges:
    """Return ``ranges`` with every character that `re.IGNORECASE` takes for one of them."""
    if ascii_only:
        return _close_ascii(ranges)
    if _has_all_beyond_ascii(ranges):
        # i and I: U+0130 and U+0131.
        return union(_close_ascii(ranges), normalize((code, code) for code in b"IiKkSs"))
    if not ranges or ranges[-1][1] <= 0x7F:
        return _close_letters(ranges, _FOR_ASCII)
    return _close(ranges, _case_variants)


def _close_ascii(ranges: Ranges) -> Ranges:
    """Return ``ranges`` with the other cases of its ASCII letters."""
    shifted = [(low + 32, high + 32) for low, high in intersect(ranges, _ASCII_UPPER)]
    shifted += [(low - 32, high - 32) for low, high in intersect(ranges, _ASCII_LOWER)]
    return union(ranges, normalize(shifted))


def _close_letters(ranges: Ranges, beyond: Iterable[tuple[int, Ranges]]) -> Ranges:
    """Return ``ranges`` of ASCII with the other cases of its letters, here and ``beyond``: no table is needed."""
    found = _close_ascii(ranges)
    more = [pair for code, others in beyond if contains(found, code) for pair in others]
    return (*found, *sorted(more))


def _has_all_beyond_ascii(ranges: Ranges) -> bool:
    """Is every character outside ASCII there? Then no table of them is needed to close a set under case.

    Of ASCII it lacks at most letters, whose only variants elsewhere are U+212A of k and U+017F of s.
    """
    return len(ranges) > 1 and ranges[-1] == FULL[1] and ranges[-2][0] <= 0x80 and ranges[-2][1] == FULL[0][1]


@lru_cache(maxsize=512)
def ignore_case_ecma(ranges: Ranges) -> Ranges:
    """Return ``ranges`` with every character that ECMA-262 takes for one of them under ``iu``."""
    if _has_all_beyond_ascii(ranges):
        return union(_close_ascii(ranges), normalize((code, code) for code in b"KkSs"))
    if not ranges or ranges[-1][1] <= 0x7F:
        return _close_letters(ranges, _FOR_ASCII[1:])
    return _close(ranges, _simple_foldings)


@lru_cache(maxsize=2)
def _with_variants(variants_of: Callable[[], _Variants]) -> Ranges:
    return normalize((code, code) for code in variants_of())


def _close(ranges: Ranges, variants_of: Callable[[], _Variants]) -> Ranges:
    variants = variants_of()
    if sum(high - low + 1 for low, high in ranges) > len(variants):
        candidates = intersect(_with_variants(variants_of), ranges)
    else:
        candidates = ranges
    more: list[tuple[int, int]] = []
    for low, high in candidates:
        for code in range(low, high + 1):
            more += variants.get(code, ())
    return normalize([*ranges, *more]) if more else ranges
