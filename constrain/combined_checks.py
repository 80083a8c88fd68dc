"""Checks of specs that were put together: a union or concatenation demands what its parts do.

The grammar of the whole cannot tell which part a text belongs to, so the parts are asked, with all they demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.checks import Check, Failure, Progress, Tally, Written

if TYPE_CHECKING:
    from constrain.base_spec import Spec


@dataclass(frozen=True, slots=True)
class EitherCheck:
    """The text is a member of one of two specs."""

    first: Spec
    second: Spec

    def begin(self, tally: Tally) -> Progress | None:
        """See `Check`."""
        return _Asked(self, tally, Written())

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`."""
        return None if self.has(data) else Failure(0, f"a text of {self.first!r} or {self.second!r}")

    def has(self, data: bytes) -> bool:
        """Is the whole text a member?"""
        return self.first.matches(data) or self.second.matches(data)

    def may_begin(self, data: bytes) -> bool:
        """May a member begin like this?"""
        return self.first.may_begin(data) or self.second.may_begin(data)


@dataclass(frozen=True, slots=True)
class SequenceCheck:
    """The text is a member of one spec, followed by a member of another."""

    first: Spec
    second: Spec

    def begin(self, tally: Tally) -> Progress | None:
        """See `Check`."""
        return _Asked(self, tally, Written())

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`."""
        return None if self.has(data) else Failure(0, f"a text of {self.first!r} and one of {self.second!r}")

    def has(self, data: bytes) -> bool:
        """Is the whole text a member?"""
        return any(self.second.matches(data[end:]) for end in self._ends(data))

    def may_begin(self, data: bytes) -> bool:
        """May a member begin like this?"""
        if self.first.may_begin(data):
            return True
        return any(self.second.may_begin(data[end:]) for end in self._ends(data))

    def _ends(self, data: bytes) -> Iterator[int]:
        """Where the first part may end."""
        return (end for end in self.first.ends_within(data) if self.first.passes(data[:end]))


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    check: EitherCheck | SequenceCheck
    tally: Tally
    written: Written

    def read(self, data: bytes) -> Progress | None:
        """See `Progress`."""
        after = self.written.and_then(data)
        text = bytes(after)
        return (
            _Asked(self.check, self.tally, after)
            if self.tally.ask(lambda: self.check.may_begin(text))
            else None
        )

    def ends(self) -> bool:
        """See `Progress`."""
        text = bytes(self.written)
        return self.tally.ask(lambda: self.check.has(text))


def either(first: Spec, second: Spec) -> tuple[Check, ...]:
    """Return the checks of a union."""
    return (EitherCheck(first, second),) if first.checks or second.checks else ()


def in_sequence(first: Spec, second: Spec) -> tuple[Check, ...]:
    """Return the checks of a concatenation."""
    return (SequenceCheck(first, second),) if first.checks or second.checks else ()
