"""Python types as JSON Schemas, through pydantic.

pydantic's own schemas describe types for people and tools: some allow texts that pydantic then refuses
(any string for a ``Decimal``, leap seconds for a ``datetime``, any key for ``dict[int, str]``). Here they
are made strict: what a schema allows is read without an error, unless a validator written by the user
objects. What cannot be said is refused, naming the type.

Restrictions beyond pydantic's, where JSON Schema and pydantic do not agree:

- times and datetimes have an offset, as their formats demand (but not ``NaiveDatetime``);
- numbers in a duration have at most 6 digits;
- URLs have a host of plain labels, mail addresses a plain local part;
- strings under a pattern that means something else in another dialect beyond ASCII are ASCII.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema.formats import DATE

_LARGEST_FLOAT = 1.7976931348623157e308
_ASCII = "^[\\x00-\\x7F]*$"
_DECIMAL = "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$"
_WHOLE_NUMBER = "^-?(?:0|[1-9][0-9]*)$"
_NOT_SECOND_60 = "^[^:]*:[^:]*:[0-5]"
_NAIVE_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?"
_SHORT_NUMBERS = "^[^0-9]*(?:[0-9]{1,6}[^0-9]+)*$"
_STRIPPED = "^(?:[^\\s\\x85](?:[\\s\\S]*[^\\s\\x85])?)?$"
_LABEL = "[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
_EMAIL = f"^[A-Za-z0-9]+(?:[._+\\-][A-Za-z0-9]+)*@(?:{_LABEL}\\.)+(?:[A-Za-z]{{2,3}}|info|email|name)$"

# Classes and boundaries that mean other characters beyond ASCII in ECMA-262 than in pydantic's engines.
_DIFFERING = re.compile(r"\\[DWSsbB]|\[\^[^\]]*\\[dw]")

# Formats for which pydantic takes every string that the format, and the pattern beside it, allow.
_KNOWN_FORMATS = frozenset(
    (
        *("date", "date-time", "time", "duration", "uuid", "uri", "email", "ipv4", "ipv6"),
        *("binary", "path", "password"),  # any string
    )
)


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
    """

    schema: dict[str, Any]
    parse: Callable[[str], Any]
    dump: Callable[[Any], str]


def type_schema(tp: Any) -> TypeSchema:
    """Return the schema of the JSON texts that pydantic reads as a ``tp``.

    Parameters
    ----------
    tp : type
        Whatever pydantic takes: models, dataclasses, ``TypedDict``, ``NamedTuple``, enumerations,
        ``Literal``, unions, ``Annotated``, containers, ``datetime``, ``Decimal``, ``UUID``, ...

    Raises
    ------
    SpecError
        pydantic does not know the type, or no schema says what it accepts.
    """
    if isinstance(tp, (FunctionType, MethodType, BuiltinFunctionType)):
        raise SpecError(f"{_name(tp)} is a function, not a type.", hint="Give the type of its result.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(tp)
        schema = adapter.json_schema(schema_generator=_StrictGenerator, mode="validation")
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise SpecError(
            f"{_name(tp)} has no JSON Schema: {error.message.partition(chr(10))[0].rstrip('.')}."
        ) from error
    except _NoSchemaError as error:
        raise SpecError(
            f"{_name(tp)}: {error}.", hint="Use a simpler type, and convert the result."
        ) from error
    except NameError as error:
        raise SpecError(f"{_name(tp)}: an annotation names {error.name!r}, which is not defined.") from error
    _check_formats(tp, schema)

    def parse(text: str) -> Any:
        return adapter.validate_json(text)

    def dump(value: Any) -> str:
        return adapter.dump_json(value, by_alias=True).decode()

    return TypeSchema(schema, parse, dump)


class _NoSchemaError(Exception):
    """A part of a type cannot be described; the text says which and why."""


class _StrictGenerator(GenerateJsonSchema):
    """Generates schemas that allow only what pydantic reads in strict mode.

    Methods are called by pydantic, one for each type of its core schemas.
    """

    # ------------------------------------------------------------------------------ numbers

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().float_schema(schema)
        if schema.get("allow_inf_nan", self._config.allow_inf_nan) is False:
            _limit(found, _LARGEST_FLOAT)
        return found

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        # pydantic reads a number by way of a float, which must be finite; a string is read exactly.
        bounds = {key: _exact_float(schema[key]) for key in ("le", "ge", "lt", "gt") if key in schema}
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        float_bounds: Any = {"type": "float", **bounds}
        number = super().float_schema(float_bounds)
        if "multiple_of" in schema:
            number["multipleOf"] = _exact_float(schema["multiple_of"])
        if places is None and digits is None:
            _limit(number, _LARGEST_FLOAT)
            is_free = "multiple_of" not in schema and not bounds
            return {"anyOf": [number, {"type": "string", "pattern": _DECIMAL}]} if is_free else number
        if not bounds and "multiple_of" not in schema:
            return {"type": "string", "pattern": _decimal_pattern(places, digits)}
        if places is None or "multiple_of" in schema:
            raise _NoSchemaError(
                "a Decimal with bounds and max_digits needs decimal_places, and no multiple_of"
            )
        number["multipleOf"] = float(f"1e-{places}")
        limit = _LARGEST_FLOAT if digits is None else float(f"1e{digits - places}")
        _limit(number, limit, is_excluded=digits is not None)
        return number

    def complex_schema(self, schema: Any) -> JsonSchemaValue:
        raise _NoSchemaError("complex numbers have no JSON form that a schema checks")

    # ------------------------------------------------------------------------------ strings

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().str_schema(schema)
        more = []
        if ("pattern" in found and _DIFFERING.search(found["pattern"])) or schema.get("ascii_only"):
            more.append({"pattern": _ASCII})
        if schema.get("strip_whitespace", self._config.str_strip_whitespace):
            more.append({"pattern": _STRIPPED})  # what is stripped must not count for the length
        if more:
            found["allOf"] = more
        return found

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        if self._config.val_json_bytes != "utf8":
            raise _NoSchemaError(f"bytes are read as {self._config.val_json_bytes}, which no schema checks")
        found = {**super().bytes_schema(schema), "format": "binary"}
        if "maxLength" in found:  # pydantic counts bytes
            found["pattern"] = _ASCII
        return found

    def json_schema(self, schema: Any) -> JsonSchemaValue:
        raise _NoSchemaError("a JSON text within a string has no schema that checks it")

    def uuid_schema(self, schema: Any) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "string", "format": "uuid"}
        if schema.get("version") is not None:
            found["pattern"] = f"^.{{14}}{schema['version']}.{{4}}[89abAB]"
        return found

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        schemes = schema.get("allowed_schemes")
        scheme = "|".join(map(re.escape, schemes)) if schemes else "[a-z][a-z0-9+.\\-]*"
        host = f"{_LABEL}(?:\\.{_LABEL})*(?::[0-9]{{1,4}})?"
        return {**super().url_schema(schema), "pattern": f"^(?:{scheme})://{host}(?:[/?#][!-~]*)?$"}

    # ------------------------------------------------------------------------------ dates and times

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        _refuse_comparisons(schema, "date")
        return {"type": "string", "format": "date"}

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        _refuse_comparisons(schema, "datetime")
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": f"^{DATE}T{_NAIVE_TIME}$"}
        return {"type": "string", "format": "date-time", "pattern": _NOT_SECOND_60}

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        _refuse_comparisons(schema, "time")
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": f"^{_NAIVE_TIME}$"}
        return {"type": "string", "format": "time", "pattern": _NOT_SECOND_60}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        _refuse_comparisons(schema, "timedelta")
        return {"type": "string", "format": "duration", "pattern": _SHORT_NUMBERS}

    # ------------------------------------------------------------------------------ others

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().enum_schema(schema)
        if any(isinstance(value, (dict, list)) for value in found["enum"]):
            raise _NoSchemaError(
                f"pydantic does not read members of {schema['cls'].__name__} that are containers"
            )
        return found

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else {}
        found: JsonSchemaValue = {"type": "object", "additionalProperties": values or True}
        keys = schema.get("keys_schema", {"type": "any"})
        constants = _constant_keys(keys)
        if constants is not None:
            found["properties"] = {key: copy.deepcopy(values) or True for key in constants}
            found["additionalProperties"] = False
        elif keys["type"] != "any":
            names = dict(self.generate_inner(keys))
            names.pop("title", None)
            if keys["type"] == "int" and names == {"type": "integer"}:
                found["propertyNames"] = {"pattern": _WHOLE_NUMBER}
            elif names.get("type") != "string":
                raise _NoSchemaError(f"keys of type {keys['type']} in a dict have no schema")
            elif len(names) > 1:
                found["propertyNames"] = names
        self.update_with_validations(found, schema, self.ValidationsMapping.object)
        return found

    # Types of their own in newer versions of pydantic.
    frozendict_schema = dict_schema
    ordered_dict_schema = dict_schema
    counter_schema = dict_schema


def _constant_keys(keys: Any) -> list[str] | None:
    """Return the keys that a dictionary may have, if they are listed."""
    if keys["type"] == "literal":
        found = [getattr(value, "value", value) for value in keys["expected"]]
    elif keys["type"] == "enum":
        found = [member.value for member in keys["members"]]
    else:
        return None
    return found if all(type(key) is str for key in found) else None


def _limit(number: JsonSchemaValue, limit: float, *, is_excluded: bool = False) -> None:
    """Keep a number within ``limit`` of 0, unless narrower bounds do already."""
    for key, exclusive, bound in (
        ("minimum", "exclusiveMinimum", -limit),
        ("maximum", "exclusiveMaximum", limit),
    ):
        given = [number[name] for name in (key, exclusive) if name in number]
        if not any(abs(value) < limit for value in given):
            number[exclusive if is_excluded else key] = bound


def _exact_float(value: Any) -> float:
    """Return the float that is written as the same decimal as ``value``."""
    number = float(value)
    if Decimal(repr(number)) != value:
        raise _NoSchemaError(f"the bound {value} of a Decimal has too many digits for JSON")
    return number


def _decimal_pattern(places: int | None, digits: int | None) -> str:
    """Return the decimals of at most ``places`` digits after the point and ``digits`` in all."""
    if digits is None:
        whole, fractions = "(?:0|[1-9][0-9]*)", [f"\\.[0-9]{{1,{places}}}"] if places else []
        return f"^-?{whole}(?:{'|'.join(fractions)})?$"
    # pydantic leaves room for ``places`` digits after the point, whether they are there or not.
    forms = []
    for n in range((places if places is not None else digits) + 1):
        n_whole = digits - (n if places is None else places)
        if n == n_whole == 0:
            continue  # a lone 0 counts as a digit before the point
        whole = f"(?:0|[1-9][0-9]{{0,{n_whole - 1}}})" if n_whole > 0 else "0"
        forms.append(f"{whole}\\.[0-9]{{{n}}}" if n else whole)
    return f"^-?(?:{'|'.join(forms)})$"


def _refuse_comparisons(schema: Any, what: str) -> None:
    for key in ("le", "ge", "lt", "gt", "now_op", "multiple_of"):
        if schema.get(key) is not None:
            raise _NoSchemaError(f"a {what} with the bound {key!r} has no schema")


def _check_formats(tp: Any, schema: JsonSchemaValue) -> None:
    """Refuse formats that say nothing to a schema, and narrow those that say too little."""
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            todo += node.values()
            form = node.get("format")
            if node.get("type") == "string" and isinstance(form, str):
                if re.fullmatch("uuid[1-8]", form):  # JSON Schema knows no versions; the pattern has it
                    form = node["format"] = "uuid"
                if form not in _KNOWN_FORMATS:
                    raise SpecError(
                        f"{_name(tp)}: strings of the format {form!r} have no schema that checks them.",
                        hint="Use a simpler type, and convert the result.",
                    )
                if form == "email":
                    node.setdefault("pattern", _EMAIL)


def _name(tp: Any) -> str:
    is_plain = isinstance(tp, (type, FunctionType)) and not hasattr(tp, "__args__")
    return tp.__qualname__ if is_plain else repr(tp)
