"""pydantic's JSON schemas made strict: what a schema allows is what pydantic reads, or it is noted as loose."""

from __future__ import annotations

import copy
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from constrain.grammars.json_schema.formats import DATE

_LARGEST_FLOAT = 1.7976931348623157e308
_ASCII = "^[\\x00-\\x7F]*$"
_DECIMAL = "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$"
_WHOLE_NUMBER = "^-?(?:0|[1-9][0-9]*)$"
_PLAIN_NUMBER = "^-?(?:0|[1-9][0-9]{0,300})(?:\\.[0-9]+)?$"
_PART = "[0-9]{1,9}(?:\\.[0-9]{1,4})?"
_COMPLEX = f"^-?{_PART}(?:[+-]{_PART}j)?$|^-?{_PART}j$"
_NOT_SECOND_60 = "^[^:]*:[^:]*:[0-5]"
_NAIVE_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?"
_N = "[0-9]{1,6}"
_DAYS = f"(?:{_N}Y(?:{_N}M)?(?:{_N}D)?|{_N}M(?:{_N}D)?|{_N}D)"
_SECONDS = f"{_N}(?:\\.{_N})?S"
_HOURS = f"T(?:{_N}H(?:{_N}M)?(?:{_SECONDS})?|{_N}M(?:{_SECONDS})?|{_SECONDS})"
_DURATION = f"^-?P(?:{_DAYS}(?:{_HOURS})?|{_HOURS}|{_N}W)$"
_STRIPPED = "^(?:[^\\s\\x85](?:[\\s\\S]*[^\\s\\x85])?)?$"
_LABEL = "[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
_EMAIL = f"^[A-Za-z0-9]+(?:[._+\\-][A-Za-z0-9]+)*@(?:{_LABEL}\\.)+(?:[A-Za-z]{{2,3}}|info|email|name)$"
_BASE64 = "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?$"
_HEX = "^(?:[0-9a-fA-F]{2})*$"

# Classes and boundaries that mean other characters beyond ASCII in ECMA-262 than in pydantic's engines.
_DIFFERING = re.compile(r"\\[DWSsbB]|\[\^[^\]]*\\[dw]")

# Formats for which pydantic takes every string that the format, and the pattern beside it, allow.
_KNOWN_FORMATS = frozenset(
    (
        *("date", "date-time", "time", "uuid", "uri", "email", "ipv4", "ipv6"),
        *("binary", "path", "password"),  # any string
    )
)
_MOST_CONSTANTS = 8  # of which the items of a set may be told apart
_OFFSETS = dt.timedelta(days=2)  # more than offsets move a date


class NoSchemaError(Exception):
    """A part of a type cannot be described; the text says which and why.

    Parameters
    ----------
    reason : str
    node : mapping
        The part of the core schema.
    """

    def __init__(self, reason: str, node: Any) -> None:
        super().__init__(reason)
        self.node = node


class StrictGenerator(GenerateJsonSchema):
    """Generates schemas that allow only what pydantic reads in strict mode, except where `loose` has an entry.

    Methods are called by pydantic, one for each type of its core schemas.

    Attributes
    ----------
    loose : list of str
        Demands that the schema doesn't state. Of the class: subclasses bring their own list.
    """

    loose: ClassVar[list[str]] = []

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        """Refuse what has no JSON form."""
        raise NoSchemaError(f"{_shown(schema)} has no JSON form", schema)

    def is_subclass_schema(self, schema: Any) -> JsonSchemaValue:
        """Refuse classes as values."""
        raise NoSchemaError("a class is no JSON value", schema)

    # ------------------------------------------------------------------------------ numbers

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a float; what would be read as infinite is left out."""
        found = super().float_schema(schema)
        _limit(found, _LARGEST_FLOAT)
        return found

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a decimal, as a number where it has bounds."""
        # pydantic reads a number by way of a float, which must be finite; a string is read exactly.
        bounds = {key: schema[key] for key in ("le", "ge", "lt", "gt") if key in schema}
        multiple = schema.get("multiple_of")
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        if not bounds and multiple is None and (places is not None or digits is not None):
            return {"type": "string", "pattern": _decimal_pattern(places, digits)}
        if not bounds and multiple is None:
            number = super().float_schema({"type": "float"})
            _limit(number, _LARGEST_FLOAT)
            return {"anyOf": [number, {"type": "string", "pattern": _DECIMAL}]}
        float_bounds: Any = {"type": "float", **{key: float(value) for key, value in bounds.items()}}
        number = super().float_schema(float_bounds)
        is_exact = all(_is_float(value) for value in (*bounds.values(), multiple) if value is not None)
        if not is_exact or (digits is not None and (places is None or multiple is not None)):
            self.loose.append("a Decimal with bounds and limited digits")
        if multiple is not None and _is_float(multiple):
            number["multipleOf"] = float(multiple)
        elif places is not None:
            number["multipleOf"] = float(f"1e-{places}")
        limit = _LARGEST_FLOAT if digits is None else float(f"1e{digits - (places or 0)}")
        _limit(number, limit, is_excluded=digits is not None)
        return number

    def complex_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a complex number: a string such as ``1+2j``."""
        return {"type": "string", "pattern": _COMPLEX}

    # ------------------------------------------------------------------------------ strings

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a string."""
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
        """Return the schema of bytes in the encoding that the configuration names."""
        found = super().bytes_schema(schema)
        encoding = self._config.val_json_bytes
        if encoding == "utf8":
            found["format"] = "binary"
            if "maxLength" in found:  # pydantic counts bytes
                found["pattern"] = _ASCII
            return found
        bounds = {key: found.pop(key) for key in ("minLength", "maxLength") if key in found}
        found.pop("format", None)
        found["contentEncoding"] = "base16" if encoding == "hex" else "base64"
        found["pattern"] = _HEX if encoding == "hex" else _BASE64
        for key, n in bounds.items():  # in characters
            found[key] = 2 * n if encoding == "hex" else (n + 2) // 3 * 4
        if bounds and encoding != "hex":
            self.loose.append("the number of bytes in base64")
        return found

    def json_schema(self, schema: Any) -> JsonSchemaValue:
        """Refuse JSON texts within strings."""
        raise NoSchemaError("a JSON text within a string has no schema that checks it", schema)

    def uuid_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a UUID of some version."""
        found: JsonSchemaValue = {"type": "string", "format": "uuid"}
        if schema.get("version") is not None:
            found["pattern"] = f"^.{{14}}{schema['version']}.{{4}}[89abAB]"
        return found

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a URL with a plain host."""
        schemes = schema.get("allowed_schemes")
        scheme = "|".join(map(re.escape, schemes)) if schemes else "[a-z][a-z0-9+.\\-]*"
        host = f"{_LABEL}(?:\\.{_LABEL})*(?::[0-9]{{1,4}})?"
        return {**super().url_schema(schema), "pattern": f"^(?:{scheme})://{host}(?:[/?#][!-~]*)?$"}

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a URL, of one host here."""
        return {**self.url_schema(schema), "format": "uri"}

    # ------------------------------------------------------------------------------ dates and times

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a date within bounds."""
        found: JsonSchemaValue = {"type": "string", "format": "date"}
        self._note_now(schema, "date")
        one = dt.timedelta(days=1)
        patterns = []
        for key, step, compare in (
            ("ge", None, _from),
            ("gt", one, _from),
            ("le", None, _to),
            ("lt", -one, _to),
        ):
            bound = schema.get(key)
            if bound is None:
                continue
            try:
                patterns.append({"pattern": compare(bound if step is None else bound + step)})
            except OverflowError:
                return {"not": {}}  # no date is beyond the last one
        if patterns:
            found["allOf"] = patterns
        return found

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a datetime; its bounds are those of its date, offsets aside."""
        self._note_now(schema, "datetime")
        naive = schema.get("tz_constraint") == "naive"
        found: JsonSchemaValue = {"type": "string"}
        if naive:
            found["pattern"] = f"^{DATE}T{_NAIVE_TIME}$"
        else:
            found["format"], found["pattern"] = "date-time", _NOT_SECOND_60
        if isinstance(schema.get("tz_constraint"), int):
            self.loose.append("the offset of a datetime")
        patterns = []
        for keys, step, compare in ((("ge", "gt"), -_OFFSETS, _from), (("le", "lt"), _OFFSETS, _to)):
            for key in keys:
                if schema.get(key) is not None:
                    self.loose.append("the bounds of a datetime")
                    bound = schema[key].date()
                    if dt.date.min + _OFFSETS <= bound <= dt.date.max - _OFFSETS:
                        patterns.append({"pattern": compare(bound + step)})
        if patterns:
            found["allOf"] = patterns
        return found

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a time."""
        self._note_bounds(schema, "time")
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": f"^{_NAIVE_TIME}$"}
        return {"type": "string", "format": "time", "pattern": _NOT_SECOND_60}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a duration, as pydantic writes it: years and days without months, signs."""
        self._note_bounds(schema, "timedelta")
        return {"type": "string", "pattern": _DURATION}

    def _note_bounds(self, schema: Any, what: str) -> None:
        self._note_now(schema, what)
        if _has_bounds(schema) or schema.get("tz_constraint") is not None:
            self.loose.append(f"the bounds of a {what}")

    def _note_now(self, schema: Any, what: str) -> None:
        if any(schema.get(key) is not None for key in ("now_op", "multiple_of")):
            self.loose.append(f"whether a {what} is past")

    # ------------------------------------------------------------------------------ containers

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of an enumeration of scalars."""
        found = super().enum_schema(schema)
        if any(isinstance(value, (dict, list)) for value in found["enum"]):
            raise NoSchemaError(
                f"pydantic does not read members of {schema['cls'].__name__} that are containers", schema
            )
        return found

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of some constants."""
        for value in schema["expected"]:
            if isinstance(value, Enum) and not isinstance(value, str | int):
                raise NoSchemaError(
                    f"pydantic does not read the member {value} in a Literal; use its value, or the whole Enum",
                    schema,
                )
        return super().literal_schema(schema)

    def set_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a set: an array. Its items differ where they are few constants.

        Of others one may come twice; pydantic keeps it once.
        """
        return self._set(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a frozen set."""
        return self._set(super().frozenset_schema(schema), schema)

    def _set(self, found: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        if not _are_few(schema.get("items_schema", {})):
            found.pop("uniqueItems", None)
            if found.get("minItems", 0) > 1:
                self.loose.append("the size of a set")
        return found

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a union whose branches a property tells apart, which must be there."""
        found = super().tagged_union_schema(schema)
        tag = found.get("discriminator", {}).get("propertyName")
        if tag is None:  # a function tells them apart
            if "oneOf" in found:
                found["anyOf"] = found.pop("oneOf")
        elif "oneOf" in found:
            found["required"] = [tag]
        return found

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a dictionary, with what its keys may be."""
        values = self.generate_inner(schema["values_schema"]) if "values_schema" in schema else {}
        found: JsonSchemaValue = {"type": "object", "additionalProperties": values or True}
        keys = schema.get("keys_schema", {"type": "any"})
        constants = _constant_keys(keys)
        if constants is not None:
            found["properties"] = {key: copy.deepcopy(values) or True for key in constants}
            found["additionalProperties"] = False
        elif keys["type"] != "any":
            names = self.resolve_ref_schema(dict(self.generate_inner(keys)))
            names = {key: value for key, value in names.items() if key != "title"}
            kind = names.get("type")
            if kind == "integer":
                found["propertyNames"] = {"pattern": _WHOLE_NUMBER}
                if _has_bounds(keys):
                    self.loose.append("the bounds of an integer as a key")
            elif kind == "number":
                found["propertyNames"] = {"pattern": _PLAIN_NUMBER}
                if _has_bounds(keys):
                    self.loose.append("the bounds of a number as a key")
            elif kind == "boolean":
                found["propertyNames"] = {"enum": ["true", "false"]}
            elif kind != "string":
                raise NoSchemaError(f"keys of type {keys['type']} in a dict have no schema", schema)
            elif len(names) > 1:
                found["propertyNames"] = names
        self.update_with_validations(found, schema, self.ValidationsMapping.object)
        return found

    # Types of their own in newer versions of pydantic.
    frozendict_schema = dict_schema
    ordered_dict_schema = dict_schema
    counter_schema = dict_schema


def check_formats(schema: JsonSchemaValue, loose: list[str]) -> None:
    """Narrow formats that say less than pydantic's, and drop those that say nothing to a schema."""
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
                if form == "email":
                    node.setdefault("pattern", _EMAIL)
                elif form not in _KNOWN_FORMATS:
                    del node["format"]
                    loose.append(f"the format {form}")


def _shown(node: Mapping[str, Any]) -> str:
    cls = node.get("cls")
    if isinstance(cls, type):
        return cls.__name__
    return {"callable": "a function"}.get(node["type"], f"a value of the kind {node['type']!r}")


def _are_few(items: Any) -> bool:
    """Are the items of a set a few constants, so that none need come twice?"""
    kind = items.get("type")
    if kind == "literal":
        return len(items["expected"]) <= _MOST_CONSTANTS
    if kind == "enum":
        return len(items["members"]) <= _MOST_CONSTANTS
    return bool(kind == "bool")


def _has_bounds(core: Any) -> bool:
    return any(core.get(key) is not None for key in ("le", "ge", "lt", "gt", "multiple_of"))


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


def _is_float(value: Any) -> bool:
    """Is there a float that is written as the same decimal as ``value``?"""
    return bool(Decimal(repr(float(value))) == value)


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


def _from(bound: dt.date) -> str:
    """Return a pattern for texts that begin with a date from ``bound`` on."""
    return _compared(
        f"{bound:%Y-%m-%d}".rjust(10, "0"), lambda digit: f"[{digit + 1}-9]" if digit < 9 else None
    )


def _to(bound: dt.date) -> str:
    """Return a pattern for texts that begin with a date up to ``bound``."""
    return _compared(f"{bound:%Y-%m-%d}".rjust(10, "0"), lambda digit: f"[0-{digit - 1}]" if digit else None)


def _compared(text: str, beyond: Callable[[int], str | None]) -> str:
    """Return a pattern for texts that begin as ``text``, or differ first in a digit that lies beyond its own."""
    forms = [text]
    for i, char in enumerate(text):
        other = beyond(int(char)) if char.isdigit() else None
        if other is not None:
            forms.append(text[:i] + other)
    return f"^(?:{'|'.join(forms)})"
