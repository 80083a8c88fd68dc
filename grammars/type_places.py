"""Where in a Python type the part stands that has no schema."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

# Keys of core schemas behind which the items of a container stand.
_ITEMS = frozenset(("items_schema", "values_schema"))
_DEPTH = 20


def place_of(core: Any, wanted: Any) -> str:
    """Return the way from the top of a core schema to one of its parts, such as ``Order.lines[].price``.

    A model that several places share is the top of what is below it. Empty if ``wanted`` is the top itself, or
    isn't found.
    """
    todo: list[tuple[Any, str]] = [(core, "")]
    while todo:
        node, place = todo.pop()
        if node is wanted:
            return place
        if isinstance(node, Mapping):
            cls = node.get("cls")
            if not place and isinstance(cls, type):
                place = cls.__name__
            for key, part in node.items():
                if key in ("metadata", "serialization"):
                    continue
                if key == "fields" and isinstance(part, Mapping):
                    todo += [(field, f"{place}.{name}") for name, field in part.items()]
                elif key == "fields" and isinstance(part, list):
                    todo += [(field, f"{place}.{field.get('name')}") for field in part]
                else:
                    todo.append((part, place + "[]" if key in _ITEMS else place))
        elif isinstance(node, list | tuple):
            todo += [(part, place) for part in node]
    return ""


def culprit(tp: Any, is_known: Callable[[Any], bool]) -> str:
    """Return the way to a field whose type is unknown by itself, such as ``.lines.price``; empty if there is none."""
    place = ""
    for _ in range(_DEPTH):
        step = next(((name, hint) for name, hint in _fields(tp).items() if not is_known(hint)), None)
        if step is None:
            step = next((("", part) for part in typing.get_args(tp) if not _is_fine(part, is_known)), None)
        if step is None:
            break
        name, tp = step
        place += f".{name}" if name else "[]"
    return place


def _is_fine(part: Any, is_known: Callable[[Any], bool]) -> bool:
    return part is Ellipsis or not (isinstance(part, type) or typing.get_args(part)) or is_known(part)


def _fields(tp: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a class that has some."""
    if not isinstance(tp, type):
        return {}
    if not (
        dataclasses.is_dataclass(tp)
        or hasattr(tp, "__attrs_attrs__")
        or hasattr(tp, "__total__")
        or hasattr(tp, "_fields")
    ):
        return {}
    try:
        return typing.get_type_hints(tp, include_extras=True)
    except NameError:
        return {}
