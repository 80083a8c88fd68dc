"""References: from ``$ref`` to the schema it names.

Pointers within the schema itself are followed by hand. Everything else (anchors, embedded resources
with an ``$id``) goes through the library ``referencing``, whose registry is made when first needed.
Nothing is ever fetched: a reference to a document that isn't part of the schema is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.facts import Json, Scope
from constrain.grammars.json_schema.pointers import token, tokens


class Target(NamedTuple):
    """The schema a reference names, and where it stands."""

    schema: Json
    pointer: str
    scope: Scope


class Embedded(NamedTuple):
    """The scope of an embedded resource (a schema with an ``$id``) in the scope ``outer``.

    The library's resolver is made of it only if a reference needs one: many schemas have identifiers, few
    refer to them.
    """

    outer: Scope
    schema: dict[str, Json]


class References:
    """Finds the targets of references in ``root``, a schema of draft number ``draft``."""

    def __init__(self, root: Json, draft: int) -> None:
        self._root = root
        self._draft = draft
        self._id = "id" if draft == 4 else "$id"
        self._known_root_resolver: Any = None

    def scope_of(self, schema: dict[str, Json], scope: Scope) -> Scope:
        """Return the scope of references inside ``schema``, which stands in ``scope``."""
        identifier = schema.get(self._id)
        if schema is self._root or not isinstance(identifier, str) or identifier.startswith("#"):
            return scope
        if self._draft <= 7 and "$ref" in schema:  # siblings of $ref count for nothing
            return scope
        return Embedded(scope, schema)

    def target(self, reference: str, pointer: str, scope: Scope, keyword: str = "$ref") -> Target:
        """Return what ``reference``, which stands at ``pointer``, names.

        Raises
        ------
        SpecError
            It names a place that doesn't exist.
        UnsupportedFeatureError
            It names another document.
        """
        if scope is None:
            if reference == "#":
                return Target(self._root, "#", None)
            if reference.startswith("#/"):
                found = self._walk(reference, pointer)
                if found is not None:
                    return found
        return self._look_up(reference, pointer, scope)

    def _walk(self, reference: str, pointer: str) -> Target | None:
        """Follow a pointer from the root; ``None`` if it enters a resource of its own."""
        node = self._root
        place = "#"
        for key in tokens(reference):
            if node is not self._root and isinstance(node, dict) and isinstance(node.get(self._id), str):
                return None
            try:
                if isinstance(node, dict):
                    node = node[key]
                elif isinstance(node, list) and key.isascii() and key.isdigit():
                    node = node[int(key)]
                else:
                    raise KeyError(key)
            except (KeyError, IndexError):
                raise SpecError(
                    f"$ref {reference!r} names no place in the schema: {place!r} has no {key!r}.",
                    pointer=pointer,
                ) from None
            place = f"{place}/{token(key)}"
        return Target(node, place, None)

    def _look_up(self, reference: str, pointer: str, scope: Scope) -> Target:
        from referencing import exceptions

        try:
            resolved = self._resolver(scope).lookup(reference)
        except (exceptions.PointerToNowhere, exceptions.NoSuchAnchor, exceptions.InvalidAnchor) as error:
            raise SpecError(f"$ref {reference!r} names no place in the schema.", pointer=pointer) from error
        except exceptions.Unresolvable as error:
            raise UnsupportedFeatureError(
                "$ref",
                pointer=pointer,
                reason=f"to {reference!r} is not supported: that document isn't part of the schema",
                hint="Copy what it names into $defs; nothing is ever fetched.",
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            # The library looks through all subschemas for identifiers, and takes them to be well formed.
            raise SpecError(
                f"$ref {reference!r} cannot be followed: it is no URI reference, or something that is no "
                "schema stands in the place of one.",
                pointer=pointer,
            ) from error
        return Target(resolved.contents, reference, resolved.resolver)

    def _specification(self) -> Any:
        from referencing import jsonschema

        return {
            4: jsonschema.DRAFT4,
            6: jsonschema.DRAFT6,
            7: jsonschema.DRAFT7,
            2019: jsonschema.DRAFT201909,
            2020: jsonschema.DRAFT202012,
        }[self._draft]

    def _resolver(self, scope: Scope) -> Any:
        """Return the library's resolver of references inside ``scope``."""
        inner = []
        while isinstance(scope, Embedded):
            inner.append(scope.schema)
            scope = scope.outer
        resolver = self._root_resolver() if scope is None else scope
        for schema in reversed(inner):
            resolver = resolver.in_subresource(self._specification().create_resource(schema))
        return resolver

    def _root_resolver(self) -> Any:
        if self._known_root_resolver is None:
            from referencing import Registry

            resource = self._specification().create_resource(self._root)
            base = resource.id() or ""
            registry = Registry().with_resource(base, resource)
            self._known_root_resolver = registry.resolver(base)
        return self._known_root_resolver
