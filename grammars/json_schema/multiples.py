"""Multiples of a number as patterns: automata that keep the remainder of the digits read.

Numbers are plain decimals here. With ``d = p / 10**s`` in lowest terms, a decimal is a multiple of ``d``
exactly if it has no more than ``s`` digits after the point that count, and its digits up to there are
a multiple of ``p``. Where ``d`` is a whole number with ``k`` zeros at its end, the automaton is that of
``d`` without the zeros, followed by ``k`` zeros.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from constrain.grammars.ir import (
    Alternation,
    Automaton,
    ByteClass,
    Concatenation,
    Literal,
    Pattern,
    Repeat,
)
from constrain.grammars.json_schema.numbers import Bound, living

MAX_STATES = 20_000
MAX_REMAINDERS = 5_000  # where several divisors together would otherwise be a product of automata

_DIGIT = ByteClass(((0x30, 0x39),))
_ZERO = Literal(b"0")
_SIGN = Repeat(Literal(b"-"), 0, 1)
_WHOLE = Alternation((_ZERO, Concatenation((ByteClass(((0x31, 0x39),)), Repeat(_DIGIT, 0, None)))))
_PLUS_EXPONENT = Concatenation(
    (ByteClass(((0x45, 0x45), (0x65, 0x65))), Repeat(Literal(b"+"), 0, 1), Repeat(_DIGIT, 1, None))
)

PLAIN = Concatenation((_SIGN, _WHOLE, Repeat(Concatenation((Literal(b"."), Repeat(_DIGIT, 1, None))), 0, 1)))
_SMALL = Concatenation(  # one digit before the point, not 0, and an exponent below 0
    (
        ByteClass(((0x31, 0x39),)),
        Repeat(Concatenation((Literal(b"."), Repeat(_DIGIT, 1, None))), 0, 1),
        ByteClass(((0x45, 0x45), (0x65, 0x65))),
        Literal(b"-"),
        Repeat(_ZERO, 0, None),
        ByteClass(((0x31, 0x39),)),
        Repeat(_DIGIT, 0, None),
    )
)
# Numbers that are no integers; with an exponent only where that alone says so.
NOT_WHOLE = Concatenation(
    (
        _SIGN,
        Alternation(
            (
                Concatenation(
                    (
                        _WHOLE,
                        Literal(b"."),
                        Repeat(_ZERO, 0, None),
                        ByteClass(((0x31, 0x39),)),
                        Repeat(_DIGIT, 0, None),
                    )
                ),
                _SMALL,
            )
        ),
    )
)


def scale(divisor: Fraction) -> tuple[int, int, int]:
    """Return ``(p, k, s)`` with ``divisor == p * 10**k / 10**s``; one of ``k`` and ``s`` is 0.

    Raises
    ------
    ValueError
        ``divisor`` is no decimal fraction.
    """
    p, q = divisor.numerator, divisor.denominator
    s = 0
    while q != 1:
        common = 10 if q % 10 == 0 else 5 if q % 5 == 0 else 2
        if q % common:
            raise ValueError(divisor)
        q //= common
        p *= 10 // common
        s += 1
    k = 0
    while s == 0 and p % 10 == 0:
        p //= 10
        k += 1
    return p, k, s


def n_states(divisor: Fraction) -> int:
    """Return about how many states the automaton of the multiples of ``divisor`` has."""
    p, k, s = scale(divisor)
    return p * (s + 1) + k


@lru_cache(maxsize=256)
def multiples(divisor: Fraction, fraction: str, has_exponents: bool = False) -> Pattern:
    """Return the multiples of ``divisor``.

    Parameters
    ----------
    divisor : Fraction
        A decimal fraction above 0.
    fraction : str
        As in `numbers.within`; plain decimals where it is ``"any"``.
    has_exponents : bool
        Let an exponent that isn't negative follow: multiples stay multiples.
    """
    p, k, s = scale(divisor)
    if k:
        zeros: list[Pattern] = [] if fraction == "none" else [_zeros_after_point()]
        some = Concatenation((_remainders(p, 0, "none", False), Repeat(_ZERO, k, k)))
        magnitude: Pattern = Concatenation((Alternation((_ZERO, some)), *zeros))
    else:
        magnitude = _remainders(p, s, fraction, True)
    parts: list[Pattern] = [_SIGN, magnitude]
    if has_exponents and fraction != "none":
        parts.append(Repeat(_PLUS_EXPONENT, 0, 1))
    return Concatenation(tuple(parts))


def whole_remainders(modulus: int, wanted: frozenset[int], fraction: str) -> Pattern:
    """Return the whole numbers whose magnitude leaves one of some remainders.

    Parameters
    ----------
    modulus : int
    wanted : frozenset of int
    fraction : str
        As in `numbers.within`: ``"none"`` or ``"zeros"``.
    """
    return Concatenation((_SIGN, _remainders(modulus, 0, fraction, True, wanted)))


def _zeros_after_point() -> Pattern:
    return Repeat(Concatenation((Literal(b"."), Repeat(_ZERO, 1, None))), 0, 1)


def _remainders(
    p: int, s: int, fraction: str, has_zero: bool, wanted: frozenset[int] = frozenset((0,))
) -> Automaton:
    """Return the automaton of magnitudes that are multiples of ``p / 10**s``.

    If ``s`` is 0 they may also leave other ``wanted`` remainders.
    """
    index: dict[tuple[int, int], int] = {}
    edges: list[tuple[int, int, int, int]] = []
    accepting: set[int] = set()
    todo: list[tuple[int, int]] = []
    powers = [pow(10, s - j, p) for j in range(s + 1)]

    # States: -2 before all digits, -1 in those before the point, j >= 0 after j of those behind it (before
    # the first there is a state of its own, -3); s + 1 where only zeros may follow. With the remainder.
    def state(phase: int, remainder: int) -> int:
        key = (phase, remainder)
        if key not in index:
            index[key] = len(index)
            todo.append(key)
            read = 0 if phase in (-1, -4) else phase
            if phase in (-1, -4) or phase > 0:
                is_multiple = (remainder if read > s else remainder * powers[read] % p) in wanted
                if is_multiple:
                    accepting.add(index[key])
        return index[key]

    def digits(source: int, low: int, remainder: int, phase: int) -> None:
        runs: list[list[int]] = []
        for digit in range(low, 10):
            target = state(phase, (10 * remainder + digit) % p)
            if runs and runs[-1][2] == target:
                runs[-1][1] = digit
            else:
                runs.append([digit, digit, target])
        edges.extend((source, 0x30 + first, 0x30 + last, target) for first, last, target in runs)

    start = state(-2, 0)
    while todo:
        phase, remainder = todo.pop()
        source = index[phase, remainder]
        if phase == -2:
            digits(source, 1, 0, -1)
            if has_zero:
                edges.append((source, 0x30, 0x30, state(-4, 0)))  # a single 0
            continue
        if phase in (-1, -4):
            if phase == -1:
                digits(source, 0, remainder, -1)
            if fraction != "none":
                edges.append((source, 0x2E, 0x2E, state(-3, remainder)))
            continue
        read = 0 if phase == -3 else phase
        if read >= s:
            if read > s or remainder in wanted:
                edges.append((source, 0x30, 0x30, state(s + 1, remainder)))
        elif fraction == "zeros":
            edges.append((source, 0x30, 0x30, state(read + 1, 10 * remainder % p)))
        else:
            digits(source, 0, remainder, read + 1)
    return _trimmed(Automaton(len(index), start, frozenset(accepting), tuple(edges)))


def _trimmed(automaton: Automaton) -> Automaton:
    """Return ``automaton`` without edges that lead nowhere."""
    alive = living(automaton.edges, automaton.accepting)
    edges = tuple(edge for edge in automaton.edges if edge[3] in alive)
    return Automaton(automaton.n_states, automaton.start, automaton.accepting, edges)


def has_multiple(divisor: Fraction, low: Bound, high: Bound) -> bool:
    """Is there a multiple of ``divisor`` within bounds?"""
    if low is None or high is None:
        return True
    least, most = Fraction(low[0]), Fraction(high[0])
    first = -((-least) // divisor) * divisor
    if low[1] and first == least:
        first += divisor
    return first < most or (first == most and not high[1])
