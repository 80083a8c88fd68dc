"""Python types of every kind, for the tests of `constrain.python_type`."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import ipaddress
import pathlib
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Required, TypeVar

import annotated_types as at
import attrs
import pydantic
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_validator, model_validator
from typing_extensions import TypeAliasType, TypedDict

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"
    NONE = None


class Word(enum.StrEnum):
    A = "a"
    B = 'quote"d'


UserId = NewType("UserId", int)


class Point(NamedTuple):
    x: int
    y: str = "?"


class Movie(TypedDict, total=False):
    title: Required[str]
    year: int


class Closed(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    name: str
    note: NotRequired[str]


@dataclass
class Person:
    name: str
    level: Literal[1, 2, 3]
    note: str | None = None
    tags: list[Color] = field(default_factory=list)


@pydantic.dataclasses.dataclass
class Strict:
    n: Annotated[int, Field(ge=0, lt=10)]
    m: float = 0.5


@dataclass
class Tree:
    value: bool
    children: list[Tree]


@dataclass
class Pair(Generic[T]):
    first: T
    second: T


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    item: Annotated[str, Field(min_length=1, max_length=3)]
    count: Annotated[int, Field(ge=1, le=12)]
    price: float = 0.0


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lines: list[Line] = Field(min_length=1, max_length=2)
    paid: bool = Field(alias="isPaid")
    color: Color | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return len(self.lines)


class Node(BaseModel):
    value: Literal[0, 1]
    next: Node | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: Literal[7, 9]


class Dog(BaseModel):
    kind: Literal["dog", "wolf"]
    name: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def kind_of(value: Any) -> str:
    given = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return "cat" if given == "cat" else "other"


Guest = Annotated[
    Annotated[Cat, pydantic.Tag("cat")] | Annotated[Dog, pydantic.Tag("other")],
    pydantic.Discriminator(kind_of),
]


class Numbers(RootModel[list[Annotated[int, Field(multiple_of=5)]]]):
    pass


class Box(BaseModel, Generic[T]):
    content: T


class Typed(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    a: bool


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


class Range(BaseModel):
    low: Annotated[int, Field(ge=0, le=9)]
    high: Annotated[int, Field(ge=0, le=9)]

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


@dataclass
class Hooked:
    n: Literal[0, 1, 2]

    def __post_init__(self) -> None:
        if self.n == 1:
            raise ValueError("not 1")


@attrs.define
class Plain:
    x: Literal[1, 2]
    _hidden: bool = False
    made: str = attrs.field(init=False, default="here")


@attrs.frozen
class Checked:
    n: int = attrs.field(validator=attrs.validators.in_([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
    inner: list[Plain] = attrs.Factory(list)


@attrs.define
class Chain:
    next: Chain | None = None


@attrs.define
class Holder(Generic[T]):
    item: T


@dataclass
class Around:
    plain: Plain
    more: dict[str, Plain] = field(default_factory=dict)


Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | int | None")
Pairs = TypeAliasType("Pairs", list[tuple[T, T]], type_params=(T,))

EXACT: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "None": type(None),
    "Any": Any,
    "bytes": bytes,
    "date": dt.date,
    "datetime": dt.datetime,
    "naive datetime": pydantic.NaiveDatetime,
    "aware datetime": pydantic.AwareDatetime,
    "time": dt.time,
    "timedelta": dt.timedelta,
    "Decimal": Decimal,
    "Decimal of few digits": Annotated[Decimal, Field(max_digits=5, decimal_places=2)],
    "complex": complex,
    "UUID": uuid.UUID,
    "UUID of version 4": pydantic.UUID4,
    "Path": pathlib.Path,
    "PurePosixPath": pathlib.PurePosixPath,
    "IPv4": ipaddress.IPv4Address,
    "IPv6": ipaddress.IPv6Address,
    "URL": pydantic.HttpUrl,
    "URL of a database": pydantic.PostgresDsn,
    "secret": pydantic.SecretStr,
    "Enum": Color,
    "IntEnum": Level,
    "StrEnum": Word,
    "Enum of several types": Mixed,
    "Literal": Literal["C++", "a|b", 7, True] | None,
    "Literal of an Enum": Literal[Word.A, Level.HIGH],
    "NewType": UserId,
    "date from": Annotated[dt.date, at.Ge(dt.date(2019, 12, 31))],
    "date between": Annotated[dt.date, at.Gt(dt.date(1999, 12, 31)), at.Lt(dt.date(2031, 3, 1))],
    "date one": Annotated[dt.date, at.Interval(ge=dt.date(2024, 2, 29), le=dt.date(2024, 2, 29))],
    "Gt": Annotated[int, at.Gt(10), at.Lt(13)],
    "Interval": Annotated[float, at.Interval(ge=0.5, lt=1)],
    "MultipleOf": Annotated[int, at.MultipleOf(7)],
    "Len of str": Annotated[str, at.Len(2, 4)],
    "Len of list": Annotated[list[bool], at.Len(1, 2)],
    "Len of Sequence": Annotated[Sequence[bool], at.MinLen(2)],
    "pattern": Annotated[str, Field(pattern=r"^[a-c]+\d?$")],
    "stripped": Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)],
    "list": list[int],
    "Sequence": Sequence[bool],
    "Mapping": Mapping[str, int],
    "deque": collections.deque[int],
    "Counter": collections.Counter[str],
    "OrderedDict": collections.OrderedDict[str, int],
    "defaultdict": collections.defaultdict[str, list[int]],
    "set": set[int],
    "set of an Enum": set[Color],
    "set of bools": Annotated[set[bool], at.Len(2, 2)],
    "frozenset": frozenset[str],
    "tuple": tuple[int, str],
    "tuple of any length": tuple[int, ...],
    "empty tuple": tuple[()],
    "dict": dict[str, int],
    "dict of ints": dict[int, str],
    "dict of floats": dict[float, int],
    "dict of bools": dict[bool, int],
    "dict of constants": dict[Literal["a", "b"], bool],
    "dict of an Enum": dict[Color, int],
    "dict of dates": dict[dt.date, int],
    "Union": int | str,
    "Optional": int | None,
    "union of containers": list[int] | dict[str, int] | None,
    "NamedTuple": Point,
    "TypedDict": Movie,
    "closed TypedDict": Closed,
    "dataclass": Person,
    "dataclass of pydantic": Strict,
    "recursive dataclass": Tree,
    "generic dataclass": Pair[Color],
    "model": Order,
    "recursive model": Node,
    "discriminated union": Pet,
    "list of a discriminated union": list[Pet],
    "root model": Numbers,
    "generic model": Box[list[Color]],
    "generic of a generic": Box[Box[bool]],
    "typed extras": Typed,
    "alias of a type": Json,
    "generic alias": Pairs[bool],
    "attrs": Plain,
    "recursive attrs": Chain,
    "generic attrs": Holder[Color],
    "attrs in a list": list[Plain | None],
    "attrs in a dataclass": Around,
    "attrs in a dict": dict[str, Plain],
}

LOOSE: dict[str, Any] = {
    "field validator": Even,
    "model validator": Range,
    "validator in a list": list[Even],
    "validator in a dict": dict[str, Even],
    "dataclass with __post_init__": Hooked,
    "attrs with a validator": Checked,
    "Predicate": Annotated[int, at.Predicate(lambda n: n >= 0)],
    "after": Annotated[str, pydantic.AfterValidator(lambda text: text.encode("ascii") and text)],
    "past": pydantic.PastDate,
    "datetime from": Annotated[dt.datetime, at.Ge(dt.datetime(2000, 1, 1, tzinfo=dt.UTC))],
    "time from": Annotated[dt.time, at.Ge(dt.time(9, 0, tzinfo=dt.UTC))],
    "timedelta up to": Annotated[dt.timedelta, at.Le(dt.timedelta(days=400))],
    "Decimal with bounds": Annotated[Decimal, Field(ge=0, max_digits=3)],
    "re.Pattern": re.Pattern[str],
    "function as discriminator": Guest,
    "Fraction": Fraction,
    "dict of positive ints": dict[Annotated[int, at.Gt(0)], int],
}
"""Types whose schema doesn't say everything."""
