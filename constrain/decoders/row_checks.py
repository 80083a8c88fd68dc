"""The checks of one row: what they know of its text, and of the tokens that may come next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from constrain.checks import Progress, Tally, Written, begin_all, shown, whole_characters
from constrain.errors import CheckError

if TYPE_CHECKING:
    from constrain.compiled import CompiledSpec
    from constrain.decoders.rows import Stats


class RowChecks:
    """Follows one output through the checks of its spec.

    Parameters
    ----------
    compiled : CompiledSpec
        Of a spec that has checks.
    begin : bytes
        What the output begins with.

    Raises
    ------
    CheckError
        The checks want no text that begins like this.
    """

    __slots__ = ("_after", "_answers", "_before", "_compiled", "_names", "_progress", "_written", "tally")

    def __init__(self, compiled: CompiledSpec, begin: bytes) -> None:
        self._compiled = compiled
        self._names = _names(compiled)
        self.tally = Tally()
        # Whole texts that were asked for, by all copies.
        self._answers: dict[bytes, bool] = {}
        progress = self._read(begin)
        if progress is None:
            raise CheckError(
                f"The checks of {compiled.spec!r} want no text that begins with {begin[-60:]!r}."
            )
        self._progress: Progress = progress
        self._written = Written(None, begin)
        # What comes after each token that was asked for at this place.
        self._after: dict[int, Progress | None] = {}
        # For each token accepted, what was before it.
        self._before: list[tuple[Progress, Written]] = []

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens."""
        if n:
            self._progress, self._written = self._before[-n]
            del self._before[-n:]
            self._after = {}

    def _read(self, data: bytes) -> Progress | None:
        progress = begin_all(self._compiled.spec.checks, self.tally)
        return progress.read(data) if progress is not None and data else progress

    def fork(self) -> RowChecks:
        """Return an independent follower in the same state; they share the tally."""
        other = RowChecks.__new__(RowChecks)
        other._compiled, other._names, other.tally = self._compiled, self._names, self.tally
        other._answers, other._progress, other._written = self._answers, self._progress, self._written
        other._after, other._before = self._after.copy(), self._before.copy()
        return other

    def allows(self, token_id: int) -> bool:
        """May the output go on with a token that the matcher allows, and that doesn't end it?"""
        if token_id not in self._after:
            self._after[token_id] = self._progress.read(self._bytes(token_id))
        return self._after[token_id] is not None

    def accept(self, token_id: int) -> None:
        """Append a token that is allowed.

        Raises
        ------
        CheckError
            A check refuses now what it took before.
        """
        self.allows(token_id)
        after = self._after[token_id]
        if after is None:
            text = whole_characters(bytes(self._written) + self._bytes(token_id))
            raise CheckError(
                f"The checks of {self._compiled.spec!r} refuse the text {shown(text)}, which they took before: a "
                "check must give the same answer whenever it is asked the same."
            )
        self._before.append((self._progress, self._written))
        self._progress = after
        self._written = self._written.and_then(self._bytes(token_id))
        self._after = {}

    def ends(self) -> bool:
        """May the output, which the matcher accepts, end here?"""
        text = bytes(self._written)
        known = self._answers.get(text)
        if known is None:
            known = self._answers[text] = self._progress.ends()
        return known

    def takes(self, data: bytes) -> bool:
        """May the output be ``data``, which the matcher accepts, cut inside the newest token?"""
        known = self._answers.get(data)
        if known is None:
            progress = self._read(data)
            known = self._answers[data] = progress is not None and progress.ends()
        return known

    def report(self, stats: Stats) -> None:
        """Write the tally into the row's counts."""
        stats.check_calls = self.tally.calls
        stats.check_failures = self.tally.failures
        stats.check_seconds = self.tally.seconds

    def _bytes(self, token_id: int) -> bytes:
        return self._names.get(token_id) or self._compiled.vocabulary.token_bytes(token_id) or b""


def _names(compiled: CompiledSpec) -> Mapping[int, bytes]:
    """Names of the special tokens that the spec knows; they count as text."""
    special = compiled.vocabulary.special_tokens
    named = compiled.spec.special_tokens
    return {special[name]: name.encode() for name in named if isinstance(name, str) and name in special}
