"""What of a spec is sent to other processes: how it was made, never its tables.

A spec is pickled as the call that made it, and made again where it arrives. What it holds of the user's (a
Python type, a function, members of an `Enum`) is pickled in the user's way, which needs names that can be imported there.
"""

from __future__ import annotations

import pickle
import sys
import uuid
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from constrain.errors import SpecError

T = TypeVar("T")
# These pickle functions and classes by value.
_BY_VALUE = ("cloudpickle", "ray.cloudpickle", "dill")


class NotPicklableError(SpecError, pickle.PicklingError):
    """Something cannot be sent to another process; the text says what can be done instead."""


class Held:
    """Something of the user's in a spec's call. Pickled, it is that thing itself.

    Parameters
    ----------
    value : object
    where : str
        What holds it, for messages.
    """

    __slots__ = ("value", "where")

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        try:
            pickle.dumps(self.value)
        except Exception as error:
            # Other picklers may be able to, and say so themselves if not.
            if not any(name in sys.modules for name in _BY_VALUE):
                raise NotPicklableError(
                    f"{self.where} holds {self.value!r:.80}, which cannot be pickled: {error}.",
                    hint="Define it at the top level of a module, or send what the spec is made from and make "
                    "the spec there.",
                ) from error
        return itself, (self.value,)


def itself(value: T) -> T:
    """Return ``value``."""
    return value


class Identity:
    """An object that is equal to itself alone, and to itself after it was pickled.

    Attributes
    ----------
    value : object
        It lives as long as its identity.
    """

    __slots__ = ("__weakref__", "_token", "value")

    def __init__(self, value: object, token: str) -> None:
        self.value = value
        self._token = token

    @staticmethod
    def of(value: object, token: str | None = None) -> Identity:
        """Return the identity of an object; ``token``: the one it had where it comes from."""
        found = _identities.get(id(value))
        if found is None:
            found = Identity(value, token or uuid.uuid4().hex)
            _identities[id(value)] = found
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._token == other._token

    def __hash__(self) -> int:
        return hash(self._token)

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        return Identity.of, (self.value, self._token)


_identities: WeakValueDictionary[int, Identity] = WeakValueDictionary()
