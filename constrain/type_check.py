"""The check that a text's value is one that its Python type reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from constrain.checks import Failure, FunctionCheck, whole_characters
from constrain.errors import SpecError


class TypeCheck(FunctionCheck):
    """What a type demands beyond its schema: validators of the user above all. Equal for equal types.

    Parameters
    ----------
    name : str
        The type's, for people.
    key : object
        What identifies the type; hashable.
    parse : callable
        From a text to a value; raises ``pydantic.ValidationError``.
    """

    __slots__ = ("_key", "_type_name")

    def __init__(self, name: str, key: object, parse: Callable[[str], Any]) -> None:
        super().__init__(_is_read, "value", parse)
        self._key = key
        self._type_name = name

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, TypeCheck) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def name(self) -> str:
        """The type's name."""
        return self._type_name

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`: what the type says, and of which part."""
        try:
            self.parse(whole_characters(data, final=True))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            place = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in first["loc"])
            return Failure(0, f"a value that {self.name} reads ({first['msg']})", f"#{place}")
        except SpecError as error:
            # An answer that calls tools, one of which objects.
            return Failure(error.offset or 0, f"a text that {self.name} read ({error})")
        return None


def _is_read(value: object) -> bool:
    """Ask nothing more of a value that could be read."""
    return True
