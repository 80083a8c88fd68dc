"""Options of the JSON Schema front end, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import Grammar

DRAFTS = {"draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020}

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "property_order": ("schema", "any"),
    "integers": ("plain", "any"),
    "unsupported": ("raise", "check", "ignore"),
    "draft": (*DRAFTS, None),
}


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How a schema is read and how its documents are written.

    Parameters
    ----------
    whitespace : str
        ``"flexible"``: blanks between lexemes, at most ``max_whitespace`` bytes in a row, none before
        the first lexeme and after the last. ``"compact"``: none. Else a regular expression of what may
        stand between two lexemes; it must match the empty string and only blanks.
    property_order : {"schema", "any"}
        ``"schema"``: declared properties in the order of ``properties``, then additional ones, among
        which required ones keep the order of ``required``.
    formats : bool
        Assert ``format``, in every draft.
    integers : {"plain", "any"}
        ``"plain"``: integers are digits alone. ``"any"``: also ``1.0`` and ``1e2``.
    unsupported : {"raise", "check", "ignore"}
        What to do with keywords that cannot be enforced.
    draft : str or None
        ``"draft4"``, ``"draft6"``, ``"draft7"``, ``"draft2019-09"`` or ``"draft2020-12"``; ``None`` reads
        ``$schema`` and falls back to the newest.
    max_whitespace : int
        Bytes, at least 1.
    registry : referencing.Registry, or mapping of str to schemas, or None
        Documents that references may name, by their URIs. Nothing is ever fetched.

    Raises
    ------
    SpecError
        An option has a value it cannot have.
    """

    whitespace: str = "flexible"
    property_order: str = "schema"
    formats: bool = True
    integers: str = "plain"
    unsupported: str = "raise"
    draft: str | None = None
    max_whitespace: int = 64
    registry: Any = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                expected = ", ".join(repr(choice) for choice in choices)
                raise SpecError(f"{name}={value!r}: expected one of {expected}.")
        if not isinstance(self.whitespace, str):
            raise SpecError(
                f"whitespace={self.whitespace!r}: expected 'flexible', 'compact' or a regular expression."
            )
        if not isinstance(self.formats, bool):
            raise SpecError(f"formats={self.formats!r}: expected True or False.")
        if self.registry is not None:
            object.__setattr__(self, "registry", _registry(self.registry))
        size = self.max_whitespace
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SpecError(f"max_whitespace={size!r}: expected an integer of at least 1.")


def _registry(given: Any) -> Any:
    """Return ``given`` as a registry."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    if isinstance(given, Registry):
        return given
    if not isinstance(given, Mapping) or not all(isinstance(uri, str) for uri in given):
        raise SpecError(
            f"registry={given!r:.60}: expected a referencing.Registry or a mapping of URIs to schemas."
        )
    # What a document says of its draft is looked at when a reference leads there.
    return Registry().with_resources(
        (uri, DRAFT202012.create_resource(schema)) for uri, schema in given.items()
    )


@dataclass(frozen=True, slots=True)
class SchemaGrammar:
    """A schema as a grammar.

    Parameters
    ----------
    grammar : Grammar
    ignored : tuple of str
        JSON pointers of what is not enforced: unknown formats, keywords of other drafts, siblings of
        ``$ref`` in drafts that ignore them, and whatever ``unsupported="ignore"`` dropped.
    draft : str
        The draft the schema was read in.
    left_open : tuple of str
        With ``unsupported="check"``, JSON pointers of what the grammar doesn't enforce: it takes more than the
        schema does, never less.
    root : dict or bool
        The schema as data.
    """

    grammar: Grammar
    ignored: tuple[str, ...]
    draft: str
    left_open: tuple[str, ...] = ()
    root: Any = None
