"""Python types as JSON Schemas, through pydantic.

pydantic's own schemas describe types for people and tools: some allow texts that pydantic then refuses
(any string for a ``Decimal``, leap seconds for a ``datetime``, any key for ``dict[int, str]``). Here they
are made strict: what a schema allows is read without an error. Where no schema can say that (validators
written by the user, a bound in the past), the type is marked as one whose texts have to be read to be sure. What
has no JSON form is refused, naming the field.

Restrictions beyond pydantic's, where JSON Schema and pydantic do not agree:

- times and datetimes have an offset, as their formats demand (but not ``NaiveDatetime``);
- numbers in a duration have at most 6 digits;
- URLs have one host of plain labels, mail addresses a plain local part;
- strings under a pattern that means something else in another dialect beyond ASCII are ASCII;
- bytes in base64 are written in the alphabet for URLs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from constrain.grammars.errors import SpecError
from constrain.grammars.type_attrs import is_known, with_stand_ins
from constrain.grammars.type_functions import has_functions
from constrain.grammars.type_generator import NoSchemaError, StrictGenerator, check_formats
from constrain.grammars.type_places import culprit, place_of

_SIMPLER = "Use a simpler type, and convert the result."


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """The JSON texts of a Python type.

    Parameters
    ----------
    schema : dict
        JSON Schema, draft 2020-12.
    parse : callable
        From a JSON text of the schema to the value; raises ``pydantic.ValidationError``.
    dump : callable
        From a value to its JSON text.
    is_exact : bool
        ``parse`` reads every text of the schema. Else it may refuse some.
    """

    schema: dict[str, Any]
    parse: Callable[[str], Any]
    dump: Callable[[Any], str]
    is_exact: bool = True


def type_schema(tp: Any) -> TypeSchema:
    """Return the schema of the JSON texts that pydantic reads as a ``tp``.

    Parameters
    ----------
    tp : type
        Whatever pydantic takes: models, dataclasses, ``TypedDict``, ``NamedTuple``, enumerations,
        ``Literal``, unions, ``Annotated``, containers, ``datetime``, ``Decimal``, ``UUID``, ...; and classes
        made with attrs.

    Raises
    ------
    SpecError
        A part of the type has no JSON form; the text names the field.
    """
    if isinstance(tp, (FunctionType, MethodType, BuiltinFunctionType)):
        raise SpecError(f"{_name(tp)} is a function, not a type.", hint="Give the type of its result.")
    loose: list[str] = []
    generator = type("Generator", (StrictGenerator,), {"loose": loose})
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(with_stand_ins(tp))
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = error.message.partition("\n")[0].rstrip(".")
        raise _no_schema(f"{_name(tp)}{culprit(tp, is_known)}", reason) from error
    except NameError as error:
        raise SpecError(f"{_name(tp)}: an annotation names {error.name!r}, which is not defined.") from error
    except (ImportError, TypeError) as error:
        # Optional parts of pydantic; annotations that are no types.
        raise _no_schema(f"{_name(tp)}{culprit(tp, is_known)}", str(error)) from error
    try:
        schema = adapter.json_schema(schema_generator=generator, mode="validation")
    except NoSchemaError as error:
        place = place_of(adapter.core_schema, error.node)
        raise SpecError(f"{place or _name(tp)}: {error}.", hint=_SIMPLER) from error
    except PydanticUserError as error:
        raise _no_schema(_name(tp), error.message.partition("\n")[0].rstrip(".")) from error
    check_formats(schema, loose)

    def parse(text: str) -> Any:
        return adapter.validate_json(text)

    def dump(value: Any) -> str:
        # Without computed fields, which aren't read.
        return adapter.dump_json(value, by_alias=True, round_trip=True).decode()

    return TypeSchema(schema, parse, dump, is_exact=not loose and not has_functions(adapter.core_schema))


def _no_schema(place: str, reason: str) -> SpecError:
    return SpecError(f"{place} has no JSON Schema: {reason}.", hint=_SIMPLER)


def _name(tp: Any) -> str:
    is_plain = isinstance(tp, (type, FunctionType)) and not hasattr(tp, "__args__")
    return tp.__qualname__ if is_plain else repr(tp)
