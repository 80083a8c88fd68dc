"""JSON strings as patterns: which spellings stand for which characters.

Three policies are used (RFC 8259, section 7).

*Every spelling*: a character stands for itself where JSON allows that, or for any escape that decodes
to it: the short ones (``\\n``, ``\\/``), ``\\uXXXX`` in either case of the digits, two of those for a
character outside the basic plane. Free strings and strings under ``pattern`` take every spelling, and so
do keys of additional properties, except that beside declared ones letters, digits and most punctuation
are not escaped (see `excluding`): no spelling of a declared name can pass for an additional one.

*Canonical spelling*: characters stand for themselves; only those that need it (the quotation mark, the
backslash, control characters) are escaped, by their short escape or ``\\u00XX``; DEL and characters outside
ASCII may also be written ``\\uXXXX``, as serialisers do that write ASCII alone. Constants, names of
properties and strings under ``format`` are written so.

*One spelling*: the canonical one, but that DEL stands for itself alone. Names of additional properties in any
order, and items that must be unique, are written so: then escapes beyond ASCII aside, different texts are different strings.

Lone surrogates are in none: they stand for no character.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    ANY_CHARACTER,
    EMPTY_STRING,
    Alternation,
    Automaton,
    ByteClass,
    CharacterClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Ranges,
    Repeat,
    SpecialToken,
)
from constrain.grammars.regex.ranges import complement, intersect, normalize
from constrain.grammars.regex.utf8 import byte_automaton, character_edges

Edge: TypeAlias = tuple[int, int, int, int]

_RAW: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_MUST_ESCAPE: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_CANONICALLY_ESCAPED: Ranges = (*_MUST_ESCAPE, (0x7F, 0xD7FF), (0xE000, 0x10FFFF))
_BEYOND_ASCII: Ranges = ((0x80, 0xD7FF), (0xE000, 0x10FFFF))
_BASIC_PLANE: Ranges = ((0, 0xD7FF), (0xE000, 0xFFFF))
_SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x2F: "/", 0x5C: "\\"}
_SLASH = 0x2F

# Widths in bits of the digits that follow "\u": four hexadecimal ones, or, for a character outside
# the basic plane, those of a surrogate pair without the digits "d" that both halves begin with.
_BASIC_WIDTHS = (4, 4, 4, 4)
_PAIR_WIDTHS = (2, 4, 4, 2, 4, 4)

QUOTE = Literal(b'"')

# ------------------------------------------------------------------------------ sets of characters


class _Escapes:
    """Automaton of the escapes of a set of characters: state 0 is its start, 1 its end."""

    def __init__(self) -> None:
        self.n_states = 2
        self.edges: list[Edge] = []

    def state(self) -> int:
        self.n_states += 1
        return self.n_states - 1

    def byte(self, source: int, char: str, target: int) -> None:
        self.edges.append((source, ord(char), ord(char), target))

    def digit(self, source: int, low: int, high: int, target: int) -> None:
        """Add hexadecimal digits of value ``low`` to ``high``, letters in either case."""
        if low < 10:
            self.edges.append((source, 0x30 + low, 0x30 + min(high, 9), target))
        if high > 9:
            low = max(low, 10)
            self.edges.append((source, 0x37 + low, 0x37 + high, target))
            self.edges.append((source, 0x57 + low, 0x57 + high, target))

    def numbers(self, source: int, ranges: Ranges, widths: tuple[int, ...]) -> None:
        """Add the numbers of ``ranges``, written in digits of ``widths`` bits, from ``source`` to the end."""
        states: dict[tuple[int, Ranges], int] = {}
        is_pair = widths is _PAIR_WIDTHS

        def below(level: int, ranges: Ranges) -> int:
            """Return the state from which digits ``level`` and on write ``ranges``."""
            if level == len(widths):
                return 1
            if (level, ranges) not in states:
                states[level, ranges] = state = self.state()
                if is_pair and level == 3:  # the first half is written
                    backslash, u, d = self.state(), self.state(), self.state()
                    self.byte(state, "\\", backslash)
                    self.byte(backslash, "u", u)
                    self.digit(u, 13, 13, d)
                    state = d
                expand(level, ranges, state)
            return states[level, ranges]

        def expand(level: int, ranges: Ranges, source: int) -> None:
            size = 1 << sum(widths[level + 1 :])
            parts: dict[int, list[tuple[int, int]]] = {}
            for low, high in ranges:
                for digit in range(low // size, high // size + 1):
                    first = digit * size
                    parts.setdefault(digit, []).append((max(low - first, 0), min(high - first, size - 1)))
            offset = {0: 8, 3: 12}.get(level, 0) if is_pair else 0
            runs: list[list[int]] = []
            for digit in sorted(parts):
                target = below(level + 1, tuple(parts[digit]))
                if runs and runs[-1][1] == digit - 1 and runs[-1][2] == target:
                    runs[-1][1] = digit
                else:
                    runs.append([digit, digit, target])
            for low, high, target in runs:
                self.digit(source, low + offset, high + offset, target)

        if is_pair:
            ranges = tuple((low - 0x10000, high - 0x10000) for low, high in ranges)
            first = self.state()
            self.digit(source, 13, 13, first)
            expand(0, ranges, first)
        else:
            expand(0, ranges, source)


@lru_cache(maxsize=2048)
def character(ranges: Ranges, is_canonical: bool) -> Pattern:
    """Return the spellings of one character of ``ranges`` inside a JSON string."""
    raw = intersect(ranges, _RAW)
    escaped = intersect(ranges, _CANONICALLY_ESCAPED) if is_canonical else ranges
    parts: list[Pattern] = [CharacterClass(raw)] if raw else []
    if escaped:
        escapes = _Escapes()
        backslash, u = escapes.state(), escapes.state()
        escapes.byte(0, "\\", backslash)
        for code, letter in _SHORT.items():
            if intersect(escaped, ((code, code),)) and not (is_canonical and code == _SLASH):
                escapes.byte(backslash, letter, 1)
        escapes.byte(backslash, "u", u)
        if basic := intersect(escaped, _BASIC_PLANE):
            escapes.numbers(u, basic, _BASIC_WIDTHS)
        if astral := intersect(escaped, ((0x10000, 0x10FFFF),)):
            escapes.numbers(u, astral, _PAIR_WIDTHS)
        parts.append(Automaton(escapes.n_states, 0, frozenset({1}), tuple(escapes.edges)))
    return parts[0] if len(parts) == 1 else Alternation(tuple(parts))


CHARACTER = character(ANY_CHARACTER.ranges, False)
STRING = Concatenation((QUOTE, Repeat(CHARACTER, 0, None), QUOTE))

# ASCII that is never escaped: all that is printable but what some serialiser escapes for the sake of
# HTML, XML or old readers.
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - frozenset("\"\\/<>&'+=`")
_NOT_PLAIN = complement(normalize((ord(char), ord(char)) for char in _PLAIN))
_PLAIN_STRING = Concatenation(
    (
        QUOTE,
        Repeat(Alternation((CharacterClass(complement(_NOT_PLAIN)), character(_NOT_PLAIN, False))), 0, None),
        QUOTE,
    )
)

# ------------------------------------------------------------------------------ given texts


@lru_cache(maxsize=4096)
def _steps(ranges: Ranges, is_canonical: bool) -> tuple[int, tuple[Edge, ...]]:
    """Return the automaton of the spellings of one character of ``ranges``.

    Returns
    -------
    (int, tuple of Edge)
        How many states it has besides the start 0 and the end 1, and its edges.
    """
    raw = intersect(ranges, _RAW)
    automaton = byte_automaton(2, 0, frozenset({1}), [(0, raw, 1)] if raw else [])
    edges = automaton.edges
    n_states = automaton.n_states
    spellings = character(ranges, is_canonical)
    escapes = spellings.parts[-1] if isinstance(spellings, Alternation) else spellings
    if isinstance(escapes, Automaton):
        shift = n_states - 2
        edges += tuple(
            (source + shift if source > 1 else source, low, high, target + shift if target > 1 else target)
            for source, low, high, target in escapes.edges
        )
        n_states += escapes.n_states - 2
    return n_states - 2, edges


def _spell_edges(
    n_states: int, edges: Iterable[tuple[int, Ranges, int]], is_canonical: bool
) -> tuple[int, tuple[Edge, ...]]:
    """Replace edges on characters by their spellings; return the new number of states, and byte edges."""
    found: list[Edge] = []
    for source, ranges, target in edges:
        n_inner, steps = _steps(ranges, is_canonical)
        where = (source, target, *range(n_states, n_states + n_inner))
        n_states += n_inner
        found += [(where[s], low, high, where[t]) for s, low, high, t in steps]
    return n_states, tuple(found)


def _every_spelling(text: str) -> Automaton:
    """Return an automaton of every spelling of ``text``, without quotation marks."""
    n = len(text)
    characters = [(i, ((ord(char), ord(char)),), i + 1) for i, char in enumerate(text)]
    n_states, edges = _spell_edges(n + 1, characters, False)
    return Automaton(n_states, 0, frozenset({n}), edges)


@lru_cache(maxsize=8192)
def canonical(text: str) -> Pattern:
    """Return the canonical spellings of ``text`` as a JSON string, quotation marks included.

    ``text`` holds no surrogates (see `has_surrogate`).
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return Literal(f'"{text}"'.encode())
    parts: list[Pattern] = []
    plain = '"'
    for char in text:
        if " " <= char <= "~" and char not in '"\\':
            plain += char
        else:
            parts += [Literal(plain.encode())] if plain else []
            plain = ""
            parts.append(character(((ord(char), ord(char)),), True))
    parts.append(Literal((plain + '"').encode()))
    return Concatenation(tuple(parts))


def has_surrogate(text: str) -> bool:
    """Does ``text`` hold a surrogate, which no JSON text in UTF-8 can?"""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def excluding(keys: Iterable[str]) -> Pattern:
    """Return the JSON strings that decode to none of ``keys``.

    Where there are such keys, characters of `_PLAIN` stand for themselves alone: what is excluded is
    then the keys as they are written, and not six times as much. No known serialiser escapes those.
    """
    texts = tuple(_excluded(key) for key in keys if not has_surrogate(key))
    if not texts:
        return STRING
    return Intersection((_PLAIN_STRING, Complement(Alternation(texts))))


# Each string in one spelling: what needs it is escaped, by a short escape if there is one, else in lower case.
# Only characters beyond ASCII may also be escaped: where strings must differ, the engine decodes those.
ONE_SPELLING = Concatenation(
    (
        QUOTE,
        Repeat(
            Alternation(
                (
                    CharacterClass(_RAW),
                    character(_BEYOND_ASCII, False),
                    *(
                        Literal(rf"\{_SHORT[code]}".encode() if code in _SHORT else rf"\u{code:04x}".encode())
                        for low, high in _MUST_ESCAPE
                        for code in range(low, high + 1)
                    ),
                )
            ),
            0,
            None,
        ),
        QUOTE,
    )
)


def in_one_spelling(keys: Iterable[str]) -> list[Pattern]:
    """Return parts whose intersection is the strings that decode to none of ``keys``, each in one spelling."""
    texts = tuple(canonical(key) for key in keys if not has_surrogate(key))
    return [ONE_SPELLING, Complement(Alternation(texts))] if texts else [ONE_SPELLING]


@lru_cache(maxsize=8192)
def _excluded(key: str) -> Pattern:
    parts: list[Pattern] = []
    plain = '"'
    for char in key:
        if char in _PLAIN:
            plain += char
        else:
            parts += [Literal(plain.encode())] if plain else []
            plain = ""
            parts.append(character(((ord(char), ord(char)),), False))
    parts.append(Literal((plain + '"').encode()))
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


# ------------------------------------------------------------------------------ patterns and lengths


@lru_cache(maxsize=1024)
def of_length(minimum: int, maximum: int | None) -> Pattern:
    """Return the JSON strings of ``minimum`` to ``maximum`` characters (code points)."""
    if minimum == 0 and maximum is None:
        return STRING
    return Concatenation((QUOTE, Repeat(CHARACTER, minimum, maximum), QUOTE))


def quoted(pattern: Pattern, is_canonical: bool) -> Pattern:
    """Return the JSON strings whose decoded text is in the language of ``pattern``.

    ``pattern`` speaks of characters: its literals are whole characters in UTF-8. Spellings of
    different characters differ and none is a prefix of another, so replacing characters by their
    spellings commutes with intersection, and with complement inside the set of all JSON strings.
    """
    return Concatenation((QUOTE, _escape(pattern, is_canonical), QUOTE))


def escaped(pattern: Pattern) -> Pattern:
    """Return what stands between the quotation marks of the JSON strings of ``pattern``; see `quoted`.

    Raises
    ------
    UnsupportedFeatureError
        It speaks of bytes beyond ASCII, or of special tokens.
    """
    return _escape(pattern, False)


def _escape(pattern: Pattern, is_canonical: bool) -> Pattern:
    # An explicit stack: patterns may be nested as deeply as Limits.nesting allows.
    todo: list[tuple[Pattern, bool]] = [(pattern, False)]
    done: list[Pattern] = []
    while todo:
        node, is_ready = todo.pop()
        match node:
            case Literal(data):
                done.append(_escape_literal(data, is_canonical))
            case CharacterClass(ranges):
                done.append(character(ranges, is_canonical) if ranges else node)
            case ByteClass(ranges) if not ranges or ranges[-1][1] < 0x80:
                done.append(character(ranges, is_canonical) if ranges else node)
            case ByteClass() | SpecialToken():
                raise UnsupportedFeatureError(
                    "x-grammar",
                    reason="needs a grammar over characters, without single bytes and special tokens",
                    hint="Leave them out.",
                )
            case Concatenation(parts) | Alternation(parts) | Intersection(parts):
                if not is_ready:
                    todo.append((node, True))
                    todo += [(part, False) for part in reversed(parts)]
                else:
                    escaped = tuple(done[len(done) - len(parts) :])
                    del done[len(done) - len(parts) :]
                    done.append(type(node)(escaped))
            case Repeat(body, minimum, maximum):
                if not is_ready:
                    todo += [(node, True), (body, False)]
                else:
                    done.append(Repeat(done.pop(), minimum, maximum))
            case Complement(part):
                if not is_ready:
                    todo += [(node, True), (part, False)]
                else:
                    done.append(Complement(done.pop()))
            case Automaton():
                n_states, edges = _spell_edges(node.n_states, character_edges(node), is_canonical)
                done.append(Automaton(n_states, node.start, node.accepting, edges))
            case _:
                raise TypeError(f"not a pattern over characters: {type(node).__name__}")
    return done[0]


def _escape_literal(data: bytes, is_canonical: bool) -> Pattern:
    text = data.decode()
    if not is_canonical:
        return _every_spelling(text) if text else EMPTY_STRING
    whole = canonical(text)
    if isinstance(whole, Literal):
        return Literal(whole.data[1:-1])
    parts: list[Pattern] = []
    for char in text:
        parts.append(character(((ord(char), ord(char)),), True))
    return Concatenation(tuple(parts))
