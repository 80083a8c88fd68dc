"""Where reading a schema stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.facts import Json, Location, Scope
from constrain.grammars.json_schema.resolve import References
from constrain.grammars.limits import Watch

if TYPE_CHECKING:
    from constrain.grammars.json_schema.derived import DerivedSchemas

_SHOWN = 60


class TracksEvaluation(Exception):
    """A schema has ``unevaluatedProperties`` or its like, and must be read so that it can be enforced."""


class LeavesOpen(Exception):
    """What is evaluated cannot be told where keywords are left to a check: ``unevaluated...`` must be, too."""


class Cursor:
    """Where reading stands: a schema, its place, and the schemas still to be read into the same facts.

    Attributes
    ----------
    tracks : bool
        Is it noted which schema says what of properties and items? Only keywords of what is
        *unevaluated* ask for that.
    observers : set of int
        Identities of the schemas that have such keywords.
    skips_unevaluated : bool
        Those keywords are left to a check.
    """

    may_leave_open: Callable[[UnsupportedFeatureError], bool]
    """May a check decide what was refused?"""

    __slots__ = (
        "chain",
        "derived",
        "draft",
        "dropped",
        "has_formats",
        "is_silent",
        "may_leave_open",
        "observers",
        "pointer",
        "references",
        "schema",
        "scope",
        "skips_unevaluated",
        "stack",
        "tracks",
        "watch",
    )

    def __init__(
        self,
        references: References,
        draft: int,
        watch: Watch,
        dropped: dict[str, None],
        has_formats: bool,
        derived: DerivedSchemas,
        tracks: bool,
    ) -> None:
        self.references = references
        self.draft = draft
        self.watch = watch
        self.dropped = dropped
        self.has_formats = has_formats
        self.derived = derived
        self.tracks = tracks
        self.skips_unevaluated = False
        self.observers: set[int] = set()
        self.schema: dict[Json, Json] = {}
        self.pointer = "#"
        self.scope: Scope = None
        self.chain: tuple[int, ...] = ()
        self.is_silent = False
        self.stack: list[Location] = []

    @property
    def owners(self) -> tuple[int, ...] | None:
        """The schemas that can see what the schema here evaluates."""
        return (*self.chain, id(self.schema)) if self.tracks and not self.is_silent else None

    @property
    def is_observed(self) -> bool:
        """Does it matter to any schema what the schema here evaluates?"""
        return (
            self.tracks
            and not self.is_silent
            and (id(self.schema) in self.observers or not self.observers.isdisjoint(self.chain))
        )

    def track(self) -> None:
        """Make sure that it is noted which schema evaluates what."""
        if not self.tracks:
            raise TracksEvaluation

    def part(self, schema: Json, pointer: str) -> Location:
        """Return the location of a schema of parts of the value."""
        return Location(schema, pointer, self.scope, ())

    def branch(self, schema: Json, keyword: str) -> Location:
        """Return the location of a schema of the same value."""
        chain = (*self.chain, id(self.schema))
        return Location(schema, f"{self.pointer}/{keyword}", self.scope, chain, self.is_silent)

    def error(self, keyword: str, message: str, hint: str | None = None) -> SpecError:
        """Return the error about the value of ``keyword`` here."""
        return SpecError(f"{keyword}: {message}", pointer=f"{self.pointer}/{keyword}", hint=hint)


def show(value: Json) -> str:
    """Return ``value`` as messages show it."""
    return shortened(repr(value))


def shortened(text: str) -> str:
    """Return ``text``, cut if it is too long for a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
