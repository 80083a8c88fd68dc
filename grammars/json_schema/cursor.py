"""Where reading a schema stands."""

from __future__ import annotations

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema.facts import Json, Location, Scope
from constrain.grammars.json_schema.resolve import References
from constrain.grammars.limits import Watch

_SHOWN = 60


class Cursor:
    """Where reading stands: a schema, its place, and the schemas still to be read into the same facts."""

    __slots__ = (
        "chain",
        "draft",
        "dropped",
        "has_formats",
        "pointer",
        "references",
        "schema",
        "scope",
        "stack",
        "watch",
    )

    def __init__(
        self,
        references: References,
        draft: int,
        watch: Watch,
        dropped: dict[str, None],
        has_formats: bool,
    ) -> None:
        self.references = references
        self.draft = draft
        self.watch = watch
        self.dropped = dropped
        self.has_formats = has_formats
        self.schema: dict[str, Json] = {}
        self.pointer = "#"
        self.scope: Scope = None
        self.chain: tuple[int, ...] = ()
        self.stack: list[Location] = []

    def error(self, keyword: str, message: str, hint: str | None = None) -> SpecError:
        """Return the error about the value of ``keyword`` here."""
        return SpecError(f"{keyword}: {message}", pointer=f"{self.pointer}/{keyword}", hint=hint)


def show(value: Json) -> str:
    """Return ``value`` as messages show it."""
    return shortened(repr(value))


def shortened(text: str) -> str:
    """Return ``text``, cut if it is too long for a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
