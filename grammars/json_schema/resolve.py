"""References: from ``$ref`` to the schema it names.

Pointers within the schema itself are followed by hand. Everything else (anchors, embedded resources
with an ``$id``, documents of a given registry, the metaschemas) goes through the library ``referencing``,
whose registry is made when first needed. Nothing is ever fetched: a reference to a document that is neither
part of the schema nor in the registry is refused.

Dynamic references are followed here where only one place can be meant: where a single resource has the anchor. If
several have it, `dynamic` takes over.
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


class MissingDocument(UnsupportedFeatureError):
    """A reference names a document that nobody has."""


class IsDynamic(Exception):
    """What a reference names depends on how its place was come to."""


class References:
    """Finds the targets of references in ``root``, a schema of draft number ``draft``."""

    def __init__(self, root: Json, draft: int, registry: Any = None) -> None:
        self._root = root
        self._registry = registry
        self._draft = draft
        self._id = "id" if draft == 4 else "$id"
        self._known_root_resolver: Any = None
        # What a reference led to, with a resolver that knows its identifier.
        self._entered: dict[int, Any] = {}
        self._places: dict[str, Target] = {}

    def scope_of(self, schema: dict[str, Json], scope: Scope) -> Scope:
        """Return the scope of references inside ``schema``, which stands in ``scope``."""
        identifier = schema.get(self._id)
        if schema is self._root or not isinstance(identifier, str) or identifier.startswith("#"):
            return scope
        if self._entered.get(id(schema), self) is scope:
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
        fragment = reference.rpartition("#")[2] if "#" in reference else ""
        # The library takes any reference to a dynamic anchor for a dynamic one.
        if keyword != "$ref" or (self._draft == 2020 and fragment and not fragment.startswith("/")):
            self._check_static(fragment, keyword)
        if scope is None:
            if reference == "#":
                return Target(self._root, "#", None)
            if reference.startswith("#/"):
                found = self._places.get(reference) or self._walk(reference, pointer)
                if found is not None:
                    self._places[reference] = found
                    return found
        return self._look_up(reference, pointer, scope)

    def _check_static(self, fragment: str, keyword: str) -> None:
        """Make sure that a reference leads to one place, however it is come to.

        Raises
        ------
        IsDynamic
            `dynamic` can follow it.
        """
        is_recursive = keyword == "$recursiveRef"
        anchor = "$recursiveAnchor" if is_recursive else "$dynamicAnchor"
        value = True if is_recursive else fragment
        documents = self._documents()
        n_found = 0
        todo = [self._root]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                n_found += node.get(anchor) == value
                for target in (node.get("$ref"), node.get("$dynamicRef")):
                    if not isinstance(target, str):
                        continue
                    # Parts of the metaschemas refer to the whole, unless they are entered by themselves.
                    if _VOCABULARIES in target and not target.endswith("/schema"):
                        n_found += 2
                    todo += documents.pop(_last_segment(target), ())
                todo += node.values()
            elif isinstance(node, list):
                todo += node
        if n_found > 1:
            raise IsDynamic

    def _documents(self) -> dict[str, list[Json]]:
        """Return the documents of the registry by the last part of their path, as references have it."""
        found: dict[str, list[Json]] = {}
        if self._registry is not None:
            for uri in self._registry:
                document = self._registry.contents(uri)
                identifier = document.get(self._id) if isinstance(document, dict) else None
                for name in {uri, identifier if isinstance(identifier, str) else uri}:
                    found.setdefault(_last_segment(name), []).append(document)
        return found

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
            raise no_place(reference, pointer) from error
        except exceptions.Unresolvable as error:
            raise no_document(reference, pointer) from error
        except (AttributeError, TypeError, ValueError) as error:
            # The library looks through all subschemas for identifiers, and takes them to be well formed.
            raise SpecError(
                f"$ref {reference!r} cannot be followed: it is no URI reference, or something that is no "
                "schema stands in the place of one.",
                pointer=pointer,
            ) from error
        self._check_draft(resolved.resolver.lookup("#").contents, reference, pointer)
        self._entered[id(resolved.contents)] = resolved.resolver
        return Target(resolved.contents, reference, resolved.resolver)

    def _check_draft(self, document: Json, reference: str, pointer: str) -> None:
        """Refuse a document in another draft."""
        uri = document.get("$schema") if isinstance(document, dict) else None
        if isinstance(uri, str) and document is not self._root and draft_of(uri) not in (None, self._draft):
            raise UnsupportedFeatureError(
                "$ref",
                pointer=pointer,
                reason=f"to {reference!r} is not supported: that schema is of another draft, {uri!r}",
                hint="Write both in one draft.",
            )

    def _resolver(self, scope: Scope) -> Any:
        """Return the library's resolver of references inside ``scope``."""
        inner = []
        while isinstance(scope, Embedded):
            inner.append(scope.schema)
            scope = scope.outer
        resolver = self.root_resolver if scope is None else scope
        for schema in reversed(inner):
            resolver = resolver.in_subresource(specification_of(self._draft).create_resource(schema))
        return resolver

    @property
    def root_resolver(self) -> Any:
        """The library's resolver of references in the root."""
        if self._known_root_resolver is None:
            self._known_root_resolver = self.documents().resolver(self.base)
        return self._known_root_resolver

    @property
    def base(self) -> str:
        """The identifier of the root."""
        return specification_of(self._draft).create_resource(self._root).id() or ""

    def documents(self) -> Any:
        """Return the library's registry of all documents."""
        from jsonschema_specifications import REGISTRY
        from referencing import Registry

        specification = specification_of(self._draft)
        registry = Registry() if self._registry is None else self._registry
        # Identifiers and anchors are looked for as in the schema's own draft; see `_check_draft`.
        documents = [(uri, specification.create_resource(registry.contents(uri))) for uri in registry]
        root = specification.create_resource(self._root)
        return REGISTRY.with_resources([*documents, (self.base, root)])


def specification_of(draft: int) -> Any:
    """Return the library's specification of a draft."""
    from referencing import jsonschema

    return {
        4: jsonschema.DRAFT4,
        6: jsonschema.DRAFT6,
        7: jsonschema.DRAFT7,
        2019: jsonschema.DRAFT201909,
        2020: jsonschema.DRAFT202012,
    }[draft]


def no_place(reference: str, pointer: str, key: str | None = None) -> SpecError:
    """Return the error about a reference to a place that doesn't exist, for want of ``key``."""
    missing = "" if key is None else f": there is no {key!r}"
    return SpecError(f"$ref {reference!r} names no place in the schema{missing}.", pointer=pointer)


def no_document(reference: str, pointer: str) -> MissingDocument:
    """Return the error about a reference to another document."""
    return MissingDocument(
        "$ref",
        pointer=pointer,
        reason=f"to {reference!r} is not supported: that document isn't part of the schema",
        hint="Copy what it names into $defs; nothing is ever fetched.",
    )


def _last_segment(uri: str) -> str:
    return uri.partition("#")[0].rpartition("/")[2]


_VOCABULARIES = "json-schema.org/draft/20"


def draft_of(uri: str) -> int | None:
    """Return the number of the draft that ``$schema`` names; ``None`` if it names none that is known."""
    name = uri.partition("#")[0].removeprefix("http://").removeprefix("https://")
    return _SCHEMA_URIS.get(name)


_SCHEMA_URIS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
