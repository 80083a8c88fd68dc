"""How much work one spec may cause, and the watch that stops it.

Every loop of the compiler calls ``Watch.step`` (cheap: a counter, and a look at the clock
every so often), in the thread that compiles, so a compile that is too large ends with
``LimitExceededError`` and leaves nothing behind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from constrain.grammars.errors import LimitExceededError, SpecError

_STEPS_PER_LOOK = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits for one compiled spec; each raises ``LimitExceededError`` when reached.

    Parameters
    ----------
    compile_seconds : float
        Wall-clock seconds for reading and compiling a spec.
    step_seconds : float
        Wall-clock seconds for the lazy work of one call while decoding.
    positions : int
        Positions of the byte automaton (all terminals together).
    states : int
        Dotted states of the transition network.
    lexer_states : int
        Determinised lexer states kept at once.
    arena_bytes : int
        Bytes of all lazily built tables of one spec; past it the tables are built afresh.
    mask_bytes : int
        Bytes for remembered whole masks (least recently used masks go first).
    liveness : int
        Product elements looked at to decide whether an intersection is empty.
    nesting : int
        Depth of nested groups in a pattern or of nested subschemas.
    token_states : int
        States of a token automaton (block decoding).
    """

    compile_seconds: float = 20.0
    step_seconds: float = 10.0
    positions: int = 2_000_000
    states: int = 2_000_000
    lexer_states: int = 1_000_000
    arena_bytes: int = 256 << 20
    mask_bytes: int = 16 << 20
    liveness: int = 20_000
    nesting: int = 2_000
    token_states: int = 30_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value > 0:
                raise SpecError(f"Limits({name}={value!r}): expected a positive number.")


class Watch:
    """Counts steps of one compilation and stops it at a limit.

    Parameters
    ----------
    limits : Limits
    seconds : float or None
        Another time limit than ``limits.compile_seconds``.
    """

    __slots__ = ("_deadline", "_left", "limits")

    def __init__(self, limits: Limits, seconds: float | None = None) -> None:
        if not isinstance(limits, Limits):
            raise SpecError(f"limits={limits!r:.60}: expected constrain.Limits(...).")
        self.limits = limits
        self._deadline = time.monotonic() + (limits.compile_seconds if seconds is None else seconds)
        self._left = _STEPS_PER_LOOK

    def step(self, place: str, weight: int = 1) -> None:
        """Count ``weight`` steps of work done for ``place``; raise once time is up."""
        self._left -= weight
        if self._left <= 0:
            self._left = _STEPS_PER_LOOK
            if time.monotonic() > self._deadline:
                raise LimitExceededError("compile_seconds", self.limits.compile_seconds, place)

    def at_most(self, limit: str, count: int, place: str) -> None:
        """Raise if ``count`` is over the limit called ``limit``."""
        value = getattr(self.limits, limit)
        if count > value:
            raise LimitExceededError(limit, value, place)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Don't count the time until the end: it is not the spec's, as where kernels are compiled once."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._deadline += time.monotonic() - start
