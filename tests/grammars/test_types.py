"""Python types: what their schemas allow is what pydantic reads, in strict mode."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import annotated_types as at
import attrs
import jsonschema
import pytest
from pydantic import (
    UUID4,
    BaseModel,
    ConfigDict,
    EmailStr,
    Field,
    HttpUrl,
    Json,
    NaiveDatetime,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)
from typing_extensions import TypedDict

from constrain.grammars.errors import SpecError
from constrain.grammars.json_schema.build import SchemaOptions, schema_grammar
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.types import type_schema
from tests.reference.grammar import ReferenceGrammar


def language(tp: Any) -> ReferenceGrammar:
    schema = type_schema(tp).schema
    options = SchemaOptions(whitespace="compact")
    return ReferenceGrammar(schema_grammar(schema, options, watch=Watch(Limits())).grammar)


def is_read(tp: Any, text: str) -> bool:
    """Does pydantic read ``text`` as a ``tp``, in strict mode?"""
    try:
        TypeAdapter(tp).validate_json(text, strict=True)
    except ValidationError:
        return False
    return True


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: str = "?"


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclass
class Person:
    name: str
    level: Literal[1, 2, 3]
    note: str | None = None


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    item: Annotated[str, Field(min_length=1, max_length=3)]
    count: Annotated[int, Field(ge=1, le=12)]
    price: float = 0.0


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lines: list[Line] = Field(min_length=1)
    paid: bool = Field(alias="isPaid")
    color: Color | None = None


class Node(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: int
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

# Types, texts that are read, texts that are not.
CASES: list[tuple[Any, Sequence[str], Sequence[str]]] = [
    (int, ["0", "-7", "123456789012345678901234567890"], ["1.0", "1e2", "01", '"1"', "true", "", "-"]),
    (float, ["0", "-1.5", "2e10"], ['"1"', "NaN", "Infinity", "1.", ".5"]),
    (str, ['""', '"a"', '"\\u00e9é\\n"'], ["1", '"', "'a'", '"\n"']),
    (bool, ["true", "false"], ["True", "1", '"true"']),
    (type(None), ["null"], ["None", "0"]),
    (Any, ["1", "null", '{"a":[1]}'], ["", "{"]),
    (bytes, ['"ab"'], ["1"]),
    (dt.date, ['"2024-02-29"'], ['"2023-02-29"', '"2024-1-1"', '"0000-01-01"', "20240101"]),
    (
        dt.datetime,
        ['"2024-02-29T10:20:30Z"', '"1999-12-31t23:59:59.123456789+05:30"'],
        ['"2024-02-29T23:59:60Z"', '"2024-02-30T00:00:00Z"', '"2024-02-29"', '"2024-02-29T24:00:00Z"'],
    ),
    (NaiveDatetime, ['"2024-02-29T10:20:30"', '"2024-02-29T10:20:30.5"'], ['"2024-02-30T10:20:30"']),
    (dt.time, ['"10:20:30Z"', '"10:20:30.5-00:30"'], ['"24:00:00Z"', '"23:59:60Z"', '"10:20"']),
    (dt.timedelta, ['"P1DT12H"', '"PT0S"', '"P2W"', '"P999999Y"'], ['"P"', '"PT"', '"P9999999Y"', '"1D"']),
    (Decimal, ["1.50", '"1.50"', "-0", '"-12"'], ['"abc"', '""', '"NaN"', '"1_0"', "1e999"]),
    (uuid.UUID, ['"12345678-1234-1234-1234-1234567890ab"'], ['"12345678123412341234"', '"x"']),
    (UUID4, ['"12345678-1234-4234-a234-1234567890AB"'], ['"12345678-1234-1234-a234-1234567890AB"']),
    (Path, ['"a/b"'], ["1"]),
    (IPv4Address, ['"127.0.0.1"'], ['"127.0.0.01"', '"256.0.0.1"']),
    (
        HttpUrl,
        ['"https://example.org/a?b#c"', '"http://a.b-c:80"'],
        ['"ftp://a"', '"http://"', '"http://a b"'],
    ),
    (Color, ['"red"', '"blue"'], ['"RED"', '"green"', "0"]),
    (Level, ["1", "3"], ["2", '"1"']),
    (Literal["C++", "a|b", 7, True] | None, ['"C++"', '"a|b"', "7", "true", "null"], ['"C"', "false", "1"]),
    (Point, ['[1,"a"]', "[1]"], ["[]", '[1,"a",2]', '["a","a"]']),
    (Movie, ["{}", '{"title":"x","year":3}'], ['{"year":"x"}', "[]"]),
    (
        Person,
        ['{"name":"A","level":2}', '{"name":"","level":1,"note":null}'],
        ['{"name":"A","level":4}', "{}"],
    ),
    (
        Order,
        ['{"lines":[{"item":"ab","count":12,"price":2.5}],"isPaid":true,"color":"red"}'],
        [
            '{"lines":[],"isPaid":true}',
            '{"lines":[{"item":"","count":1}],"isPaid":true}',
            '{"lines":[{"item":"a","count":13}],"isPaid":true}',
            '{"lines":[{"item":"a","count":1}],"isPaid":true,"more":1}',
            '{"lines":[{"item":"a","count":1}],"paid":true}',
        ],
    ),
    (Node, ['{"value":1,"children":[{"value":2}]}'], ['{"value":1,"children":[{"value":"x"}]}']),
    (
        Pet,
        ['{"kind":"cat","lives":9}', '{"kind":"dog","name":"x"}'],
        ['{"kind":"dog","lives":9}', '{"lives":9}'],
    ),
    (list[int], ["[]", "[1,-2]"], ['["1"]', "[1,]", "{}"]),
    (tuple[int, str], ['[1,"a"]'], ["[1]", '[1,"a",1]', '["a",1]']),
    (tuple[int, ...], ["[]", "[1,2,3]"], ['["a"]']),
    (dict[str, int], ["{}", '{"Ann":3,"Bo":-4}'], ['{"Ann":"3"}', "[]", '{"Ann":1.5}']),
    (dict[Literal["a", "b"], bool], ["{}", '{"a":true,"b":false}'], ['{"c":true}', '{"a":1}']),
    (dict[Color, int], ['{"red":1}'], ['{"green":1}']),
    (Annotated[str, Field(pattern="^[a-c]+$", max_length=2)], ['"ab"'], ['"abc"', '"d"', '""']),
    (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)],
        ['"a b"'],
        ['"a"', '"  "', '" a"'],
    ),
    (Annotated[str, Field(pattern=r"^\D+$")], ['"ab"'], ['"a1"', '"a٣"']),
    (Annotated[float, Field(gt=0, allow_inf_nan=False)], ["0.5", "3"], ["0", "-1", "1e999"]),
    (Annotated[int, Field(multiple_of=3)], ["9", "0"], ["8"]),
    (dict[int, str], ["{}", '{"1":"a"}'], ['{"x":"a"}', '{"1":2}']),
    (int | None, ["1", "null"], ['"x"']),
    (int | str, ["1", '"x"'], ["1.5", "null"]),
]


@pytest.mark.parametrize(("tp", "accepted", "refused"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_types_take_what_pydantic_takes(tp: Any, accepted: Sequence[str], refused: Sequence[str]) -> None:
    """A type's texts are read by pydantic and fit its JSON Schema; others are refused."""
    matcher = language(tp)
    parsed = type_schema(tp)
    for text in accepted:
        assert is_read(tp, text), text
        assert matcher.accepts(text.encode()), text
        jsonschema.validate(json.loads(text), parsed.schema)
        value = parsed.parse(text)
        assert parsed.parse(parsed.dump(value)) == value
    for text in refused:
        assert not matcher.accepts(text.encode()), text


@pytest.mark.parametrize(("digits", "places"), [(3, None), (None, 2), (3, 1), (3, 3), (4, 0), (2, None)])
def test_decimals_with_limited_digits_are_read(digits: int | None, places: int | None) -> None:
    """Strings allowed for a Decimal with max_digits and decimal_places are read, and few others are."""
    tp = Annotated[Decimal, Field(max_digits=digits, decimal_places=places)]
    matcher = language(tp)
    taken = missed = 0
    wholes = ["0", "1", "12", "120", "1234", "-1", "-123", "00", "-"]
    fractions = ["", ".", ".0", ".1", ".12", ".120", ".0001"]
    for whole, fraction in itertools.product(wholes, fractions):
        text = f'"{whole}{fraction}"'
        if matcher.accepts(text.encode()):
            taken += 1
            assert is_read(tp, text), text
        elif is_read(tp, text) and whole not in ("00", "-") and fraction != ".":
            missed += 1
    assert 2 * taken > missed


@attrs.define
class Shelf:
    inner: dict[str, list[slice]]


class Outer(BaseModel):
    calls: list[Callable[[], int]]


class Middle(TypedDict):
    outer: Outer


@dataclass
class Around:
    shelf: tuple[Shelf, int]


@pytest.mark.parametrize(
    ("tp", "place"),
    [
        (Json[int], "Json"),
        (type_schema, "type_schema"),
        (slice, "slice"),
        (dict[tuple[int, int], int], "dict"),
        (Literal[Color.RED], "Color.RED"),
        (Outer, "Outer.calls[]"),
        (Middle, "Middle.outer.calls[]"),
        (Shelf, "Shelf.inner[]"),
        (Around, "Around.shelf"),
        (type[int], "type"),
        (list[EmailStr], "email"),
    ],
)
def test_parts_without_a_schema_are_named(tp: Any, place: str) -> None:
    """A type that has no JSON form is refused with the field that has none."""
    with pytest.raises(SpecError) as caught:
        type_schema(tp)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("bounds", "texts", "others"),
    [
        ([at.Gt(dt.date(2020, 1, 31))], ["2020-02-01", "9999-12-31"], ["2020-01-31", "1999-12-31"]),
        ([at.Lt(dt.date(2020, 3, 1))], ["2020-02-29", "0001-01-01"], ["2020-03-01"]),
        ([at.Ge(dt.date(1, 1, 1)), at.Le(dt.date(1, 1, 2))], ["0001-01-02"], ["0001-01-03"]),
        (
            [at.Lt(dt.date(2020, 3, 1)), at.Gt(dt.date(2020, 2, 27))],
            ["2020-02-28", "2020-02-29"],
            ["2020-02-27"],
        ),
    ],
)
def test_dates_have_bounds(bounds: list[Any], texts: list[str], others: list[str]) -> None:
    """Bounds of a date are part of its schema."""
    tp = Annotated[(dt.date, *bounds)]
    matcher = language(tp)
    assert type_schema(tp).is_exact
    for text in texts:
        assert is_read(tp, f'"{text}"') and matcher.accepts(f'"{text}"'.encode())
    for text in others:
        assert not is_read(tp, f'"{text}"') and not matcher.accepts(f'"{text}"'.encode())


@pytest.mark.parametrize(
    ("encoding", "texts"), [("base64", ["", "YQ==", "YWI=", "__-_"]), ("hex", ["", "0aFF"])]
)
def test_bytes_are_read_in_their_encoding(encoding: Any, texts: list[str]) -> None:
    """Bytes are written as the configuration says, and other texts are refused."""
    tp = create_model(
        "Data", __config__=ConfigDict(val_json_bytes=encoding, ser_json_bytes=encoding), b=(bytes, ...)
    )
    matcher = language(tp)
    read = type_schema(tp)
    for text in texts:
        written = f'{{"b":"{text}"}}'
        assert matcher.accepts(written.encode())
        assert read.dump(read.parse(written)) == written.lower() if encoding == "hex" else written
    for text in ("Y", "YQ=", "YR==", "a b", "gg"):
        assert not matcher.accepts(f'{{"b":"{text}"}}'.encode()) or is_read(tp, f'{{"b":"{text}"}}')


def test_tags_of_a_union_are_required() -> None:
    """A branch of a discriminated union is chosen by its tag, even where the tag has a default."""

    class A(BaseModel):
        kind: Literal["a"] = "a"

    class B(BaseModel):
        kind: Literal["b"] = "b"

    matcher = language(Annotated[A | B, Field(discriminator="kind")])
    assert matcher.accepts(b'{"kind":"b"}')
    assert not matcher.accepts(b"{}")


def test_parse_gives_instances() -> None:
    """Parsing a text of a type's schema gives an instance of the type."""
    text = '{"lines":[{"item":"a","count":2}],"isPaid":false,"color":"blue"}'
    order = type_schema(Order).parse(text)
    assert isinstance(order, Order)
    assert order.color is Color.BLUE
    assert type_schema(Person).parse('{"name":"A","level":1}') == Person("A", 1)
    assert type_schema(Point).parse("[3]") == Point(3)
