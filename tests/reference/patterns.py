"""Patterns matched by Brzozowski derivatives: slow, obvious, and unlike the engine's automata.

The derivative of a language by a byte is what may follow that byte. A *residual* is a term that
denotes such a language; `step` takes the derivative, `is_nullable` says whether the text may end,
`is_alive` whether anything may still follow. Terms are nested tuples, kept small by the usual laws
(alternation and intersection are sets, the empty language absorbs), so each pattern has finitely many.

    ("none",)                 nothing
    ("empty",)                the empty string alone
    ("byte", ranges)          one byte
    ("character", ranges)     one character in UTF-8
    ("tail", n, ranges)       n more bytes of a character, whose 6-bit payloads together make a number
    ("cat", first, rest)      concatenation
    ("or", terms), ("and", terms), ("not", term)
    ("repeat", body, m, n)    n is None without limit
    ("automaton", automaton, states)

Source: J. A. Brzozowski, "Derivatives of Regular Expressions", JACM 11(4), 1964.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

from constrain.grammars import ir

Term: TypeAlias = tuple[Any, ...]

NONE: Term = ("none",)
EMPTY: Term = ("empty",)
_LEAD_CUTS = frozenset((0x80, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4, 0xF5))

# ------------------------------------------------------------------------------------ terms


def _cat(first: Term, rest: Term) -> Term:
    if NONE in (first, rest):
        return NONE
    if first == EMPTY:
        return rest
    if rest == EMPTY:
        return first
    if first[0] == "cat":
        return _cat(first[1], _cat(first[2], rest))
    return ("cat", first, rest)


def _or(terms: Iterable[Term]) -> Term:
    flat: set[Term] = set()
    for term in terms:
        flat |= term[1] if term[0] == "or" else {term}
    flat.discard(NONE)
    if not flat:
        return NONE
    return flat.pop() if len(flat) == 1 else ("or", frozenset(flat))


def _and(terms: Iterable[Term]) -> Term:
    flat: set[Term] = set()
    for term in terms:
        flat |= term[1] if term[0] == "and" else {term}
    if NONE in flat:
        return NONE
    flat.discard(("not", NONE))
    if not flat:
        return ("not", NONE)
    return flat.pop() if len(flat) == 1 else ("and", frozenset(flat))


def _not(term: Term) -> Term:
    return term[1] if term[0] == "not" else ("not", term)


def _repeat(body: Term, minimum: int, maximum: int | None) -> Term:
    if maximum is not None and minimum > maximum:
        return NONE
    if maximum == 0 or body == EMPTY:
        return EMPTY
    if body == NONE:
        return EMPTY if minimum == 0 else NONE
    if minimum == maximum == 1:
        return body
    return ("repeat", body, minimum, maximum)


@cache
def start(pattern: ir.Pattern) -> Term:
    """Return the residual that denotes the whole language of ``pattern``."""
    match pattern:
        case ir.Literal(data):
            term = EMPTY
            for byte in reversed(data):
                term = _cat(("byte", ((byte, byte),)), term)
            return term
        case ir.CharacterClass(ranges):
            return ("character", ranges) if ranges else NONE
        case ir.ByteClass(ranges):
            return ("byte", ranges) if ranges else NONE
        case ir.Concatenation(parts):
            term = EMPTY
            for part in reversed(parts):
                term = _cat(start(part), term)
            return term
        case ir.Alternation(parts):
            return _or(start(part) for part in parts)
        case ir.Repeat(body, minimum, maximum):
            return _repeat(start(body), minimum, maximum)
        case ir.Intersection(parts):
            return _and(start(part) for part in parts)
        case ir.Complement(part):
            return _not(start(part))
        case ir.Automaton():
            return ("automaton", pattern, frozenset({pattern.start}))
    raise TypeError(f"not a pattern: {pattern!r}")


# ------------------------------------------------------------------------------------ derivatives


@cache
def is_nullable(term: Term) -> bool:
    """Is the empty string in the language?"""
    match term:
        case ("none",) | ("byte", _) | ("character", _) | ("tail", _, _):
            return False
        case ("empty",):
            return True
        case ("cat", first, rest):
            return is_nullable(first) and is_nullable(rest)
        case ("or", terms):
            return any(is_nullable(t) for t in terms)
        case ("and", terms):
            return all(is_nullable(t) for t in terms)
        case ("not", inner):
            return not is_nullable(inner)
        case ("repeat", body, minimum, _):
            return minimum == 0 or is_nullable(body)
        case ("automaton", automaton, states):
            return not states.isdisjoint(automaton.accepting)
    raise TypeError(f"not a term: {term!r}")


@cache
def step(term: Term, byte: int) -> Term:
    """Return what may follow ``byte``."""
    match term:
        case ("none",) | ("empty",):
            return NONE
        case ("byte", ranges):
            return EMPTY if any(low <= byte <= high for low, high in ranges) else NONE
        case ("character", ranges):
            return _step_character(ranges, byte)
        case ("tail", n, ranges):
            return _tail(n - 1, ranges, byte & 0x3F) if byte & 0xC0 == 0x80 else NONE
        case ("cat", first, rest):
            term = _cat(step(first, byte), rest)
            return _or((term, step(rest, byte))) if is_nullable(first) else term
        case ("or", terms):
            return _or(step(t, byte) for t in terms)
        case ("and", terms):
            return _and(step(t, byte) for t in terms)
        case ("not", inner):
            return _not(step(inner, byte))
        case ("repeat", body, minimum, maximum):
            rest = _repeat(body, max(minimum - 1, 0), None if maximum is None else maximum - 1)
            return _cat(step(body, byte), rest)
        case ("automaton", automaton, states):
            after = frozenset(
                target
                for source, low, high, target in automaton.edges
                if source in states and low <= byte <= high
            )
            return ("automaton", automaton, after) if after else NONE
    raise TypeError(f"not a term: {term!r}")


def _step_character(ranges: ir.Ranges, lead: int) -> Term:
    if lead < 0x80:
        n, payload, least = 0, lead, 0
    elif 0xC0 <= lead <= 0xDF:
        n, payload, least = 1, lead & 0x1F, 0x80
    elif 0xE0 <= lead <= 0xEF:
        n, payload, least = 2, lead & 0x0F, 0x800
    elif 0xF0 <= lead <= 0xF7:
        n, payload, least = 3, lead & 0x07, 0x10000
    else:
        return NONE
    valid = _within(_within(ranges, least, 0xD7FF) + _within(ranges, 0xE000, 0x10FFFF), least, 0x10FFFF)
    return _tail(n, valid, payload)


def _tail(n: int, ranges: ir.Ranges, payload: int) -> Term:
    """Return what is left when the ``n + 1``-th last payload of a number in ``ranges`` is ``payload``."""
    first = payload << 6 * n
    left = tuple((low - first, high - first) for low, high in _within(ranges, first, first + 64**n - 1))
    if not left:
        return NONE
    return ("tail", n, left) if n else EMPTY


def _within(ranges: ir.Ranges, first: int, last: int) -> ir.Ranges:
    return tuple((max(a, first), min(b, last)) for a, b in ranges if max(a, first) <= min(b, last))


@cache
def cuts(term: Term) -> frozenset[int]:
    """Return bytes at which the derivative may change: it is constant from one to before the next."""
    match term:
        case ("none",) | ("empty",):
            return frozenset()
        case ("byte", ranges):
            return frozenset(b for low, high in ranges for b in (low, high + 1))
        case ("character", ranges):
            leads = {chr(c).encode()[0] for r in ranges for c in r}
            return _LEAD_CUTS | leads | {b + 1 for b in leads}
        case ("tail", n, ranges):
            payloads = {c >> 6 * (n - 1) for r in ranges for c in r}
            return frozenset({0x80, 0xC0}) | {0x80 + p + d for p in payloads for d in (0, 1)}
        case ("cat", first, rest):
            return cuts(first) | cuts(rest) if is_nullable(first) else cuts(first)
        case ("or" | "and", terms):
            return frozenset().union(*(cuts(t) for t in terms))
        case ("not", inner) | ("repeat", inner, _, _):
            return cuts(inner)
        case ("automaton", automaton, _):
            return frozenset(b for _, low, high, _ in automaton.edges for b in (low, high + 1))
    raise TypeError(f"not a term: {term!r}")


def representatives(terms: Iterable[Term]) -> list[int]:
    """Return one byte of each class of bytes that all ``terms`` treat alike."""
    return sorted({0}.union(*(cuts(t) for t in terms)) - {256})


class UnknownError(Exception):
    """A search was given up: nothing can be said."""


_ALIVE: dict[Term, bool] = {}
_AT_MOST = 1500


def is_alive(term: Term) -> bool:
    """Is any string at all in the language? Decided by looking at every residual.

    Raises
    ------
    UnknownError
        There are very many.
    """
    if term in _ALIVE:
        return _ALIVE[term]
    parent: dict[Term, Term | None] = {term: None}
    queue = deque([term])
    while queue:
        current: Term | None = queue.popleft()
        assert current is not None
        if is_nullable(current) or _ALIVE.get(current, False):
            while current is not None:
                _ALIVE[current] = True
                current = parent[current]
            return True
        if len(parent) > _AT_MOST:
            raise UnknownError
        for byte in representatives([current]):
            after = step(current, byte)
            if after != NONE and _ALIVE.get(after, True) and after not in parent:
                parent[after] = current
                queue.append(after)
    _ALIVE.update(dict.fromkeys(parent, False))
    return False


# ------------------------------------------------------------------------------------ whole texts


def after(term: Term, data: bytes) -> Term:
    """Return the residual after ``data``."""
    for byte in data:
        term = step(term, byte)
    return term


def matches(pattern: ir.Pattern, data: bytes) -> bool:
    """Is ``data`` in the language of ``pattern``?"""
    return is_nullable(after(start(pattern), data))


def is_prefix(pattern: ir.Pattern, data: bytes) -> bool:
    """Can ``data`` be continued to a member of the language of ``pattern``?"""
    return is_alive(after(start(pattern), data))


def members(pattern: ir.Pattern, alphabet: bytes, length: int) -> Iterator[bytes]:
    """Yield the members of at most ``length`` bytes over ``alphabet``, shortest first."""
    level = [(b"", start(pattern))]
    for _ in range(length + 1):
        yield from (data for data, term in level if is_nullable(term))
        level = [
            (data + bytes([byte]), rest)
            for data, term in level
            for byte in alphabet
            if is_alive(rest := step(term, byte))
        ]
