"""Marks for ``Annotated`` types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from constrain.base_spec import Spec
from constrain.errors import SpecError
from constrain.grammar_spec import grammar

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class InGrammar:
    """Marks a string whose content is a text of a grammar: ``Annotated[str, InGrammar("start: ...")]``.

    pydantic then checks the string, and its JSON Schema has the keyword ``x-grammar``. Of a grammar in Lark's language,
    contents are cut into lexemes in any way, as with ``grammar(..., lexing="any")``.

    Parameters
    ----------
    text : str
        A grammar in Lark's language or in GBNF.
    start : str or None
    syntax : {"auto", "lark", "gbnf"}

    Raises
    ------
    SpecError, UnsupportedFeatureError, EmptyLanguageError, LimitExceededError
        As `grammar`.
    """

    text: str
    start: str | None = None
    syntax: str = "auto"

    def __post_init__(self) -> None:
        _spec(self)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        def check(value: str) -> str:
            found = _spec(self).explain(value)
            if not found.ok:
                raise ValueError(f"not a text of the grammar: {found}")
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(schema)
        given = {"grammar": self.text, "syntax": self.syntax}
        if self.start is not None:
            given["start"] = self.start
        found["x-grammar"] = given
        return found


@lru_cache(maxsize=256)
def _spec(mark: InGrammar) -> Spec:
    from constrain.grammars.gbnf.build import looks_like_gbnf

    if not isinstance(mark.text, str):
        raise SpecError(f"expected a grammar as text, found {type(mark.text).__name__}.")
    is_gbnf = mark.syntax == "gbnf" or (mark.syntax == "auto" and looks_like_gbnf(mark.text))
    lexing = "longest" if is_gbnf else "any"
    return grammar(mark.text, start=mark.start, syntax=mark.syntax, lexing=lexing)
