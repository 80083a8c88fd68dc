"""What types demand beyond their schemas: Python functions that pydantic calls while it reads."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

# Functions of pydantic whose demands the schema states as well, by their names.
_STATED = frozenset(
    (
        *("path_validator", "wrap_val", "sequence_validator", "defaultdict_validator"),
        *("min_length_validator", "max_length_validator"),
        *("ip_v4_address_validator", "ip_v6_address_validator"),
        *("SecretStr", "SecretBytes", "IPv4Address", "IPv6Address"),
        "construct_plain",
    )
)
_HOMES = ("pydantic.", "ipaddress", "constrain.grammars.type_attrs")

# Parts of core schemas that hold no schemas, or none that reading a JSON text goes by.
_OTHERS = frozenset(("serialization", "metadata", "config", "python_schema", "cls"))


def has_functions(core: Any) -> bool:
    """May reading a value of a core schema fail by a function of which its JSON schema doesn't know?

    Parameters
    ----------
    core : mapping
        A schema of ``pydantic_core``.
    """
    return any(map(_is_unstated, nodes(core)))


def nodes(core: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a core schema that a JSON text may be read by."""
    todo = [core]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("type"), str):
                yield node
            # In strict mode, which reads JSON alike, a part may stand twice.
            todo += [part for key, part in node.items() if key not in _OTHERS]
        elif isinstance(node, list | tuple):
            todo += node


def _is_unstated(node: Mapping[str, Any]) -> bool:
    kind = node["type"]
    if kind in ("function-before", "function-after", "function-wrap", "function-plain"):
        return not _is_stated(node["function"]["function"])
    if kind == "tagged-union":
        return callable(node["discriminator"])
    return kind == "custom-error" or bool(node.get("post_init") or node.get("custom_init"))


def _is_stated(function: Any) -> bool:
    if isinstance(function, functools.partial):
        function = function.func
    home = str(getattr(function, "__module__", ""))
    return getattr(function, "__name__", "") in _STATED and home.startswith(_HOMES)
