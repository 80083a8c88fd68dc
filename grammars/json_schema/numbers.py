"""JSON numbers as patterns: exact automata for bounds.

Numbers without bounds are those of RFC 8259, section 6. Where a bound applies, every plain decimal (without
an exponent) within the bounds is taken and every one outside refused, however many digits it has:
comparison is exact, not that of binary floating point. Numbers with an exponent are taken if they have
one digit before the point, not 0, and the exponent alone puts them within the bounds; that is how
serialisers write very small and very large numbers. All others would be no regular language of reasonable
size.

``-0`` and ``-0.0`` equal 0; within bounds they are taken where negative numbers are.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from constrain.grammars.ir import (
    EMPTY_LANGUAGE,
    Alternation,
    Automaton,
    ByteClass,
    Concatenation,
    Literal,
    Pattern,
    Repeat,
)

_DIGIT = ByteClass(((0x30, 0x39),))
_DIGITS = Repeat(_DIGIT, 1, None)
_SIGN = Repeat(Literal(b"-"), 0, 1)
_MAGNITUDE = Alternation(
    (Literal(b"0"), Concatenation((ByteClass(((0x31, 0x39),)), Repeat(_DIGIT, 0, None))))
)
_EXPONENT = ByteClass(((0x45, 0x45), (0x65, 0x65)))
_PLUS = Repeat(Literal(b"+"), 0, 1)
_MANTISSA = Concatenation((ByteClass(((0x31, 0x39),)), Repeat(Concatenation((Literal(b"."), _DIGITS)), 0, 1)))

INTEGER = Concatenation((_SIGN, _MAGNITUDE))
# Without superfluous zeros at the end; but "-0" is another way to write 0.
SHORTEST_DECIMAL = Concatenation(
    (
        INTEGER,
        Repeat(
            Concatenation((Literal(b"."), Repeat(_DIGIT, 0, None), ByteClass(((0x31, 0x39),)))),
            0,
            1,
        ),
    )
)
NUMBER = Concatenation(
    (
        INTEGER,
        Repeat(Concatenation((Literal(b"."), _DIGITS)), 0, 1),
        Repeat(
            Concatenation((_EXPONENT, Repeat(ByteClass(((0x2B, 0x2B), (0x2D, 0x2D))), 0, 1), _DIGITS)), 0, 1
        ),
    )
)
# Whole numbers with a fraction of zeros, an exponent that isn't negative, or both. A fraction that the
# exponent makes whole (1.5e1), or zeros that it cancels (10e-1), are no regular language: left out.
ANY_INTEGER = Concatenation(
    (
        INTEGER,
        Repeat(Concatenation((Literal(b"."), Repeat(Literal(b"0"), 1, None))), 0, 1),
        Repeat(Concatenation((_EXPONENT, _PLUS, _DIGITS)), 0, 1),
    )
)

# Numbers in schemas may have so many digits: bounds and constants are spelled digit by digit.
MAX_DIGITS = 4000
MAX_BITS = 13_287  # of an integer with that many

# A bound: its value, and whether the value itself is excluded.
Bound: TypeAlias = tuple[Decimal, bool] | None


@lru_cache(maxsize=4096)
def within(low: Bound, high: Bound, fraction: str) -> Pattern:
    """Return the numbers between two bounds, in the forms that the module's text says.

    Parameters
    ----------
    low, high : (Decimal, bool) or None
        Finite; the number is excluded itself where the second part is true.
    fraction : str
        ``"none"``: digits alone. ``"zeros"``: a fraction may follow, of zeros only. ``"any"``: any, and
        exponents.

    Returns
    -------
    Pattern
        `EMPTY_LANGUAGE` if there is no such number.
    """
    zero = Decimal(0)
    low, high = _without_negative_zero(low), _without_negative_zero(high)
    builder = _Decimals(fraction)
    if high is None or high[0] >= 0:
        least = low if low is not None and low[0] >= 0 else (zero, False)
        builder.magnitudes(0, least, high)
    if low is None or low[0] < 0:
        minus = builder.state()
        builder.edges.append((0, 0x2D, 0x2D, minus))
        # copy_negate, since the operator rounds
        least = (high[0].copy_negate(), high[1]) if high is not None and high[0] < 0 else (zero, False)
        if high is not None and high == (zero, True):
            least = high
        builder.magnitudes(minus, least, None if low is None else (low[0].copy_negate(), low[1]))
    decimals = builder.automaton()
    if fraction != "any":
        return decimals
    parts: list[Pattern] = [decimals]
    if scientific := _scientific(low, high):
        parts.append(Concatenation((_MANTISSA, *scientific)))
    if scientific := _scientific(_negated(high), _negated(low)):
        parts.append(Concatenation((Literal(b"-"), _MANTISSA, *scientific)))
    return decimals if len(parts) == 1 else Alternation(tuple(parts))


def _negated(bound: Bound) -> Bound:
    return None if bound is None else (bound[0].copy_negate(), bound[1])


def _scientific(low: Bound, high: Bound) -> tuple[Pattern, ...]:
    """Return the exponents of positive numbers that are within the bounds whatever their digits.

    A number of one digit before the point (not 0) and exponent ``e`` is at least ``10**e`` and less than
    ``10**(e + 1)``.
    """
    least: int | None = None
    most: int | None = None
    if high is not None:
        if high[0] <= 0:
            return ()
        most = high[0].adjusted() - 1
    if low is not None and low[0] > 0:
        power = low[0].adjusted()
        is_power = low[0] == Decimal((0, (1,), power))
        least = power if is_power and not low[1] else power + 1
    if least is not None and most is not None and least > most:
        return ()
    signs: list[Pattern] = []
    if most is None or most >= 0:
        signs.append(Concatenation((_PLUS, _leading_zeros(max(least or 0, 0), most))))
    if least is None or least < 0:
        nearest = 0 if most is None else max(-most, 0)
        signs.append(
            Concatenation((Literal(b"-"), _leading_zeros(nearest, None if least is None else -least)))
        )
    return (_EXPONENT, Alternation(tuple(signs)))


def _leading_zeros(low: int, high: int | None) -> Pattern:
    """Return the digits of the numbers from ``low`` to ``high``, with any number of zeros before them."""
    bound = None if high is None else (Decimal(high), False)
    return Concatenation((Repeat(Literal(b"0"), 0, None), within((Decimal(low), False), bound, "none")))


def _without_negative_zero(bound: Bound) -> Bound:
    return (Decimal(0), bound[1]) if bound is not None and not bound[0] else bound


def living(edges: Iterable[tuple[int, int, int, int]], accepting: Iterable[int]) -> set[int]:
    """Return the states of an automaton from which it can accept; edges are (source, low, high, target)."""
    before: dict[int, list[int]] = {}
    for source, _, _, target in edges:
        before.setdefault(target, []).append(source)
    alive = set(accepting)
    todo = list(alive)
    while todo:
        for source in before.get(todo.pop(), ()):
            if source not in alive:
                alive.add(source)
                todo.append(source)
    return alive


class _Decimals:
    """Automaton of decimals; states are made for how far a number is read and how it compares.

    A magnitude is read digit by digit. While it equals the digits of a bound that has equally many
    before the point, it is *tight* to that bound. Numbers with fewer digits before the point than a
    bound are below it, with more above it, so the automaton guesses how many there will be.
    """

    def __init__(self, fraction: str) -> None:
        self._fraction = fraction
        self.n_states = 1
        self.edges: list[tuple[int, int, int, int]] = []
        self._accepting: set[int] = set()
        self._free: dict[int, int] = {}
        self._free_fraction: dict[bool, int] = {}

    def state(self) -> int:
        self.n_states += 1
        return self.n_states - 1

    def automaton(self) -> Pattern:
        """Return what was built, without states that lead nowhere."""
        alive = living(self.edges, self._accepting)
        if 0 not in alive:
            return EMPTY_LANGUAGE
        edges = tuple(edge for edge in self.edges if edge[0] in alive and edge[3] in alive)
        return Automaton(self.n_states, 0, frozenset(self._accepting), edges)

    def magnitudes(self, start: int, low: tuple[Decimal, bool], high: Bound) -> None:
        """Add the magnitudes from ``low`` to ``high``, both at least 0."""
        low_whole, low_rest = _digits(low[0])
        n_low = len(low_whole)
        if high is None:
            self._tight(start, n_low, (low_whole, low_rest, low[1]), None)
            self._longer(start, n_low)
            return
        high_whole, high_rest = _digits(high[0])
        n_high = len(high_whole)
        if n_low > n_high:
            return
        lower = (low_whole, low_rest, low[1])
        upper = (high_whole, high_rest, high[1])
        if n_low == n_high:
            self._tight(start, n_low, lower, upper)
            return
        self._tight(start, n_low, lower, None)
        for length in range(n_low + 1, n_high):
            self.edges.append((start, 0x31, 0x39, self._digits_left(length - 1)))
        self._tight(start, n_high, None, upper)

    def _longer(self, start: int, length: int) -> None:
        """Add the magnitudes of more than ``length`` digits before the point."""
        last = self.state()
        self._end_whole(last)
        self.edges.append((last, 0x30, 0x39, last))
        for _ in range(length):
            previous = self.state()
            self.edges.append((previous, 0x30, 0x39, last))
            last = previous
        self.edges.append((start, 0x31, 0x39, last))

    def _digits_left(self, count: int) -> int:
        """Return the state with ``count`` digits left before the point and no bound to mind."""
        # Filled from below: bounds may have thousands of digits, too many for recursion.
        for n in range(len(self._free), count + 1):
            self._free[n] = self.state()
            if n:
                self.edges.append((self._free[n], 0x30, 0x39, self._free[n - 1]))
            else:
                self._end_whole(self._free[n])
        return self._free[count]

    def _end_whole(self, state: int) -> None:
        """Let numbers end in ``state``, all digits before the point read, or any fraction follow."""
        self._accepting.add(state)
        if self._fraction == "none":
            return
        if True not in self._free_fraction:
            digits, point = self.state(), self.state()
            high = 0x30 if self._fraction == "zeros" else 0x39
            self._accepting.add(digits)
            self.edges += [(digits, 0x30, high, digits), (point, 0x30, high, digits)]
            self._free_fraction = {True: digits, False: point}
        self.edges.append((state, 0x2E, 0x2E, self._free_fraction[False]))

    def _tight(
        self,
        start: int,
        length: int,
        low: tuple[str, str, bool] | None,
        high: tuple[str, str, bool] | None,
    ) -> None:
        """Add the magnitudes of ``length`` digits before the point; bounds have as many."""
        # Keys: digits read, tight to the lower bound, tight to the upper one.
        states = {(0, low is not None, high is not None): start}
        frontier = list(states)
        for position in range(length):
            reached = []
            for key in frontier:
                source = states[key]
                least = low[0][position] if low is not None and key[1] else "0"
                most = high[0][position] if high is not None and key[2] else "9"
                if position == 0 and length > 1 and least == "0":
                    least = "1"
                for first, last, is_low, is_high in _split(least, most, key[1], key[2]):
                    if not is_low and not is_high:
                        target = self._digits_left(length - position - 1)
                    else:
                        after = (position + 1, is_low, is_high)
                        if after not in states:
                            states[after] = self.state()
                            reached.append(after)
                        target = states[after]
                    self.edges.append((source, ord(first), ord(last), target))
            frontier = reached
        for _, is_low, is_high in frontier:
            lower = low[1:] if low is not None and is_low else None
            upper = high[1:] if high is not None and is_high else None
            self._fraction_after(states[length, is_low, is_high], lower, upper)

    def _fraction_after(
        self, state: int, low: tuple[str, bool] | None, high: tuple[str, bool] | None
    ) -> None:
        """Let numbers end or go on after the whole part, which equals that of each bound given."""
        n = max(len(low[0]) if low else 0, len(high[0]) if high else 0)
        if _may_end(0, low, high):
            self._accepting.add(state)
        if self._fraction == "none":
            return
        point = self.state()
        self.edges.append((state, 0x2E, 0x2E, point))
        states = {(0, low is not None, high is not None): point}
        frontier = list(states)
        for position in range(n + 1):  # at position n both bounds have run out: zeros only
            reached = []
            for key in frontier:
                source = states[key]
                least = _digit(low[0], position) if low is not None and key[1] else "0"
                most = _digit(high[0], position) if high is not None and key[2] else "9"
                for first, last, is_low, is_high in _split(least, most, key[1], key[2]):
                    if self._fraction == "zeros":
                        if first != "0":
                            continue
                        last = "0"
                    if not is_low and not is_high:
                        target = self._free_digits()
                    else:
                        after = (min(position + 1, n + 1), is_low, is_high)
                        if after not in states:
                            states[after] = self.state()
                            reached.append(after)
                            if _may_end(position + 1, low if is_low else None, high if is_high else None):
                                self._accepting.add(states[after])
                            if position == n:  # from here on the same again, for ever
                                self._repeat(states[after], is_low, is_high)
                        target = states[after]
                    self.edges.append((source, ord(first), ord(last), target))
            frontier = reached

    def _repeat(self, state: int, is_low: bool, is_high: bool) -> None:
        """Add what may follow in ``state``, where the bounds it is tight to have no digits left."""
        self.edges.append((state, 0x30, 0x30, state))
        if is_low and not is_high and self._fraction == "any":
            self.edges.append((state, 0x31, 0x39, self._free_digits()))

    def _free_digits(self) -> int:
        if True not in self._free_fraction:
            self._end_whole(self.state())
        return self._free_fraction[True]


def _digits(value: Decimal) -> tuple[str, str]:
    """Return the digits before and after the point, without needless zeros."""
    whole, _, rest = f"{value:f}".partition(".")
    return whole.lstrip("0") or "0", rest.rstrip("0")


def _digit(digits: str, position: int) -> str:
    return digits[position] if position < len(digits) else "0"


def _split(least: str, most: str, is_low: bool, is_high: bool) -> list[tuple[str, str, bool, bool]]:
    """Return runs of digits from ``least`` to ``most``, and to which bounds each stays tight."""
    if least > most:
        return []
    if least == most:
        return [(least, most, is_low, is_high)]
    runs = []
    first, last = least, most
    if is_low:
        runs.append((least, least, True, False))
        first = chr(ord(first) + 1)
    if is_high:
        runs.append((most, most, False, True))
        last = chr(ord(last) - 1)
    if first <= last:
        runs.append((first, last, False, False))
    return runs


def _may_end(position: int, low: tuple[str, bool] | None, high: tuple[str, bool] | None) -> bool:
    """May a fraction end after ``position`` digits that equal those of the bounds?"""
    if low is not None and (position < len(low[0]) or low[1]):
        return False
    return high is None or position < len(high[0]) or not high[1]
