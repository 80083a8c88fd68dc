"""Classes made with attrs, for pydantic: read as dataclasses with the same fields, then constructed.

A field is written under the name that the constructor has for it (``_x`` as ``x``). Its annotation says what
may be written; converters and validators run when the object is constructed.

Stand-ins for stdlib dataclasses are made in the same way where one of their fields holds a class of attrs.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from pydantic_core import CoreSchema, core_schema

_STAND_INS: WeakKeyDictionary[type, dict[tuple[Any, ...], type]] = WeakKeyDictionary()


def is_attrs(tp: Any) -> bool:
    """Is it a class made with attrs?"""
    return isinstance(tp, type) and "__attrs_attrs__" in tp.__dict__


def with_stand_ins(tp: Any) -> Any:
    """Return ``tp`` in a form that pydantic knows, if classes of attrs are somewhere in it."""
    return _Reader().read(tp)


class _Reader:
    """Looks through types for classes of attrs."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def read(self, tp: Any) -> Any:
        """Return ``tp``, or what stands for it."""
        origin, args = typing.get_origin(tp), typing.get_args(tp)
        cls = origin or tp
        if is_attrs(cls):
            return Annotated[cls, _Construct(cls, args)]
        if dataclasses.is_dataclass(cls) and isinstance(cls, type) and self._holds_attrs(cls):
            return Annotated[cls, _Construct(cls, args)]
        if origin is None or origin is typing.Literal or not args:
            return tp
        if origin is Annotated:
            inner = self.read(args[0])
            return tp if inner is args[0] else Annotated[(inner, *args[1:])]
        found: tuple[Any, ...] = tuple(
            [self.read(part) if not isinstance(part, list) else part for part in args]
        )
        if all(new is old for new, old in zip(found, args, strict=True)):
            return tp
        if origin in (typing.Union, types.UnionType):
            return functools.reduce(operator.or_, found)
        return origin[found if len(found) > 1 else found[0]]

    def _holds_attrs(self, cls: type) -> bool:
        """Has a dataclass a field that needs a stand-in?"""
        if cls in self._open or hasattr(cls, "__pydantic_core_schema__"):
            return False
        self._open.append(cls)
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
            return any(self.read(hint) is not hint for hint in hints.values())
        except (NameError, TypeError):
            return False  # pydantic will say so
        finally:
            self._open.pop()


@dataclasses.dataclass(frozen=True)
class _Field:
    """One argument of a constructor.

    ``name`` is that of the attribute, ``key`` that of the argument.
    """

    name: str
    key: str
    is_required: bool


@dataclasses.dataclass(frozen=True)
class _Construct:
    """Has pydantic read a class by way of its stand-in."""

    cls: type
    args: tuple[Any, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Return the core schema: that of the stand-in, then the constructor."""
        fields = _fields_of(self.cls)
        stand_in = _stand_in(self.cls, self.args, fields)
        inner = handler.generate_schema(stand_in)
        keys = [field.key for field in fields]

        def construct(value: Any) -> Any:
            given = {key: getattr(value, key) for key in keys if getattr(value, key) is not _LEFT_OUT}
            try:
                return self.cls(**given)
            except TypeError as error:  # what validators of attrs raise
                raise ValueError(str(error)) from error

        def written(value: Any) -> Any:
            return stand_in(**{field.key: getattr(value, field.name) for field in fields})

        reader = construct_checked if _has_demands(self.cls) else construct_plain
        return core_schema.no_info_after_validator_function(
            functools.partial(reader, construct),
            inner,
            serialization=core_schema.plain_serializer_function_ser_schema(written, return_schema=inner),
        )


def construct_plain(construct: Any, value: Any) -> Any:
    """Construct an object whose class has no demands of its own."""
    return construct(value)


def construct_checked(construct: Any, value: Any) -> Any:
    """Construct an object whose class may refuse what its annotations allow."""
    return construct(value)


_LEFT_OUT = object()  # what a stand-in has in a field that wasn't written: the class has its own default


def _left_out() -> object:
    return _LEFT_OUT


def _fields_of(cls: type) -> list[_Field]:
    if is_attrs(cls):
        import attr

        return [
            _Field(one.name, one.alias or one.name.lstrip("_"), one.default is attr.NOTHING)
            for one in attr.fields(cls)
            if one.init
        ]
    return [
        _Field(
            one.name,
            one.name,
            one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
        )
        for one in dataclasses.fields(cls)
        if one.init
    ]


def _has_demands(cls: type) -> bool:
    if not is_attrs(cls):
        return hasattr(cls, "__post_init__")
    import attr

    has_hooks = hasattr(cls, "__attrs_post_init__") or hasattr(cls, "__attrs_pre_init__")
    return has_hooks or any(one.validator or one.converter for one in attr.fields(cls))


def _stand_in(cls: type, args: tuple[Any, ...], fields: list[_Field]) -> type:
    """Return the dataclass that is read for ``cls``."""
    known = _STAND_INS.setdefault(cls, {})
    found = known.get(args)
    if found is None:
        hints = typing.get_type_hints(cls, include_extras=True)
        parameters = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
        required, optional = [], []
        for field in fields:
            hint = with_stand_ins(_filled(hints.get(field.name, Any), parameters))
            if field.is_required:
                required.append((field.key, hint))
            else:
                optional.append((field.key, hint, dataclasses.field(default_factory=_left_out)))
        members: Mapping[str, Any] = {"__doc__": cls.__doc__}
        config = getattr(cls, "__pydantic_config__", None)
        if config is not None:
            members = {**members, "__pydantic_config__": config}
        found = known[args] = dataclasses.make_dataclass(
            cls.__name__, [*required, *optional], namespace=dict(members), kw_only=True
        )
        found.__module__, found.__qualname__ = cls.__module__, cls.__qualname__
    return found


def _filled(hint: Any, parameters: Mapping[Any, Any]) -> Any:
    """Return ``hint`` with type variables replaced."""
    if isinstance(hint, TypeVar):
        return parameters.get(hint, hint)
    free = getattr(hint, "__parameters__", ())
    if not parameters or not free or isinstance(hint, type):
        return hint
    return hint[tuple([parameters.get(one, one) for one in free])]


def is_known(tp: Any) -> bool:
    """Does pydantic have a schema for ``tp``?"""
    from pydantic.errors import PydanticUserError

    try:
        TypeAdapter(with_stand_ins(tp))
    except (PydanticUserError, NameError, ImportError):
        return False
    return True
