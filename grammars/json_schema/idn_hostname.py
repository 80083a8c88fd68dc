"""The format ``idn-hostname`` (RFC 5890 to 5893) as regular expressions that a name must all match.

Which characters may stand in a label follows from their Unicode properties (RFC 5892, section 2), which Python has;
some may stand only beside others (appendix A). Left out of what the standards allow, since it isn't regular or is rare:

- labels whose encoding could be longer than 63 octets: more than 12 characters, unless at most two are beyond ASCII;
- ASCII labels with ``--`` in third and fourth place, as in ``hostname``;
- two characters of non-zero combining class in a row, whose order might not be canonical;
- characters that compose with the one before them, behind any character that some of them compose with;
- characters beyond the basic plane;
- ZERO WIDTH NON-JOINER between letters that join, which takes a table that Python lacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

_LAST = 0xFFFF
_VIRAMA = 9  # a combining class
_SEPARATORS = ".\u3002\uff0e\uff61"  # RFC 3490, section 3.1: all of them are read as dots
_LETTER_DIGITS = frozenset(("Ll", "Lo", "Lm", "Mn", "Mc", "Nd"))  # none is in upper case, which is unstable
_RTL = frozenset(("R", "AL"))
_NEUTRAL = frozenset(("ES", "CS", "ET", "ON", "BN", "NSM"))
# RFC 5892, section 2.6: exceptions; those in context are below.
_ALLOWED = "\u00df\u03c2\u06fd\u06fe\u0f0b\u3007"
_FORBIDDEN = "\u0640\u07fa\u302e\u302f\u3031\u3032\u3033\u3034\u3035\u303b"
_IN_CONTEXT = "\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d"
_ARABIC_DIGITS = "\u0660-\u0669"
_EXTENDED_DIGITS = "\u06f0-\u06f9"
# Blocks (section 2.5), hangul that must be composed (section 2.9), and what is ignored by default (section 2.4).
_LEFT_OUT = re.compile(
    "[\u20d0-\u20ff\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]"
)


@cache
def _characters() -> tuple[str, ...]:
    """Return the characters beyond ASCII that may stand in any label."""
    found = []
    for code in range(0x80, _LAST + 1):
        character = chr(code)
        if character in _ALLOWED:
            found.append(character)
        elif unicodedata.category(character) in _LETTER_DIGITS and character not in _FORBIDDEN:
            stable = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
            if unicodedata.normalize("NFKC", stable) == character and not _LEFT_OUT.match(character):
                found.append(character)
    return tuple(found)


def _ranges(characters: Iterable[str]) -> str:
    """Return characters as the members of a class."""
    runs: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\u{{{low:x}}}-\\u{{{high:x}}}" for low, high in runs)


def _those(wanted: Callable[[str], object]) -> str:
    return _ranges(character for character in (*_characters(), *_IN_CONTEXT) if wanted(character))


def _of_script(*names: str) -> str:
    return _those(lambda character: unicodedata.name(character, "").startswith(names))


def _composing() -> tuple[str, str]:
    """Return the first and the second of all pairs of characters that are one in NFC."""
    found: tuple[set[str], set[str]] = (set(), set())
    for code in range(0x80, _LAST + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) != first + second:
                found[0].add(first)
                found[1].add(second)
    return _ranges(found[0]), _ranges(found[1])


def _separated(label: str) -> str:
    return f"(?:{label})(?:[{_SEPARATORS}](?:{label}))*"


@cache
def expressions() -> tuple[str, ...]:
    """Return expressions all of which a name matches as a whole."""
    letters = _ranges(_characters())
    inside = f"a-z0-9\\-{letters}{_IN_CONTEXT}"
    viramas = _those(lambda character: unicodedata.combining(character) == _VIRAMA)
    greek = _of_script("GREEK")
    hebrew = _of_script("HEBREW")
    kana = _of_script(
        "HIRAGANA LETTER", "KATAKANA LETTER", "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH"
    )
    combining = _those(unicodedata.combining)
    other = f"[^{_SEPARATORS}]"
    # RFC 5891, section 4.2.3: no mark first; no hyphens at the ends, nor in third and fourth place.
    first = _those(lambda character: unicodedata.category(character) not in ("Mn", "Mc", "Me"))
    shape = _separated(f"[A-Za-z0-9\\-]+|[a-z0-9\\-{first}][{inside}]*")
    edge = f"[^\\-{_SEPARATORS}]"
    hyphens = _separated(
        f"{edge}{{1,2}}|{edge}{other}{{1,2}}{edge}|{edge}{other}(?:{edge}{other}|-{edge}){other}*{edge}"
    )
    # Lengths in the encoding of RFC 3492, from bounds on the digits of each character.
    ascii_only, beyond = "[a-zA-Z0-9\\-]", f"[^a-zA-Z0-9\\-{_SEPARATORS}]"
    few = f"{ascii_only}{{0,13}}{beyond}{ascii_only}{{0,13}}{beyond}?{ascii_only}{{0,13}}"
    lengths = _separated(f"{ascii_only}{{1,63}}|{other}{{1,12}}|{few}")
    # RFC 5892, appendix A.
    contexts = (
        f"(?:[^\u00b7\u0375\u05f3\u05f4\u200c\u200d]|(?<=l)\u00b7(?=l)|\u0375(?=[{greek}])"
        f"|(?<=[{hebrew}])[\u05f3\u05f4]|(?<=[{viramas}])[\u200c\u200d])*"
    )
    katakana = _separated(f"[^\u30fb{_SEPARATORS}]+|{other}*[{kana}]{other}*")
    digits = _separated(f"[^{_ARABIC_DIGITS}{_SEPARATORS}]+|[^{_EXTENDED_DIGITS}{_SEPARATORS}]+")
    # RFC 5891, section 5.3 (normal form).
    order = f"(?:[^{combining}]|(?<![{combining}])[{combining}])*"
    firsts, seconds = _composing()
    whole = f"(?:[^{seconds}]|(?<![{firsts}])[{seconds}])*"
    return (
        shape,
        hyphens,
        lengths,
        contexts,
        katakana,
        digits,
        order,
        whole,
        _bidirectional(),
        "[^\n]{1,253}",
    )


def _bidirectional() -> str:
    """Return the expression of RFC 5893, section 2."""
    every = (*map(chr, range(0x21, 0x7F)), *_characters(), *_IN_CONTEXT)
    kinds = {character: unicodedata.bidirectional(character) for character in every}

    def of(*names: str) -> str:
        return _ranges(c for c, kind in kinds.items() if kind in names and c not in _SEPARATORS)

    neutral = of(*_NEUTRAL)
    marks = of("NSM")
    start = of("R", "AL")
    right = "|".join(
        f"[{start}](?:[{start}{neutral}{digits}]*[{start}{digits}])?[{marks}]*"
        for digits in (of("AN"), of("EN"))
    )
    left = f"[{of('L')}](?:[{of('L', 'EN')}{neutral}]*[{of('L', 'EN')}])?[{marks}]*"
    no_right = f"[^{of('R', 'AL', 'AN')}]*"
    return f"{no_right}|{_separated(f'{right}|{left}')}"
