"""``$dynamicRef`` and ``$recursiveRef`` where several resources have what they name.

What the former names depends on how its place was come to: it is the anchor in the first resource entered on the way
there that has it. So a scope holds, besides the resource, for each such anchor the first resource that has it. What
``$recursiveRef`` names, the resource itself, is kept in the same way under an empty name: of the last resources that
were entered one from another and that all have ``$recursiveAnchor``, the first.

A schema then means several things, one for each scope it is read in. Each but the first gets a copy, so that
everywhere else a schema is still known by its identity alone. There are finitely many, so recursive schemas end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

from constrain.grammars.json_schema.facts import Json, Scope
from constrain.grammars.json_schema.pointers import token, tokens
from constrain.grammars.json_schema.resolve import References, Target, no_document, no_place
from constrain.grammars.limits import Watch

_ITSELF = ""


class Entered(NamedTuple):
    """The scope of the resource ``uri``, and for each dynamic anchor the first resource entered that has it."""

    uri: str
    first: tuple[tuple[str, str], ...]


class DynamicReferences(References):
    """Finds the targets of references in ``root``, whichever way they were come to.

    Parameters
    ----------
    root : dict or bool
    draft : int
    registry : referencing.Registry or None
    watch : Watch
    """

    def __init__(self, root: Json, draft: int, registry: Any, watch: Watch) -> None:
        super().__init__(root, draft, registry)
        self._watch = watch
        self._all = self.documents().crawl()
        documents: list[Json] = [root]
        documents += [] if registry is None else [registry.contents(uri) for uri in registry]
        self._names = sorted(_dynamic_names(documents))
        self._scopes: dict[Entered, Entered] = {}
        self._start = self._enter(self.base, ())
        # For each scope the copies of schemas, by the originals' identity.
        self._copies: dict[tuple[tuple[str, str], ...], dict[int, Json]] = {}

    def scope_of(self, schema: dict[str, Json], scope: Scope) -> Scope:
        """Return the scope of references inside ``schema``, which stands in ``scope``."""
        identifier = schema.get(self._id)
        if schema is self._root or not isinstance(identifier, str) or identifier.startswith("#"):
            return scope
        if self._entered.get(id(schema), self) is scope:
            return scope
        outer = scope or self._start
        return self._enter(urldefrag(urljoin(outer.uri, identifier))[0], outer.first)

    def target(self, reference: str, pointer: str, scope: Scope, keyword: str = "$ref") -> Target:
        """Return what ``reference``, which stands at ``pointer``, names; see `References.target`."""
        from referencing import exceptions
        from referencing.jsonschema import DynamicAnchor

        here = scope or self._start
        uri, fragment = here.uri, reference[1:]
        if not reference.startswith("#"):
            uri, fragment = urldefrag(urljoin(uri, reference))
        try:
            resource = self._all.get_or_retrieve(uri).value
        except (exceptions.NoSuchResource, exceptions.Unretrievable) as error:
            raise no_document(reference, pointer) from error
        self._check_draft(resource.contents, reference, pointer)
        schema = resource.contents
        if keyword == "$recursiveRef":
            if _is_recursive(schema):
                uri = dict(here.first).get(_ITSELF, uri)
                resource = self._all.get_or_retrieve(uri).value
                schema = resource.contents
        elif fragment and not fragment.startswith("/"):
            try:
                anchor = self._all.anchor(uri, fragment).value
                if keyword == "$dynamicRef" and isinstance(anchor, DynamicAnchor):
                    uri = dict(here.first).get(fragment, uri)
                    resource = self._all.get_or_retrieve(uri).value
                    anchor = self._all.anchor(uri, fragment).value
            except exceptions.NoSuchAnchor as error:
                raise no_place(reference, pointer) from error
            schema = anchor.resource.contents
        elif fragment:
            schema, uri = self._walk_in(schema, uri, fragment, reference, pointer)
        inner = self._enter(uri, here.first)
        schema = self._copy(resource.contents, schema, inner.first)
        if schema is self._root:
            return Target(schema, "#", None)
        self._entered[id(schema)] = inner
        return Target(schema, reference, inner)

    def _walk_in(self, node: Json, uri: str, fragment: str, reference: str, pointer: str) -> tuple[Json, str]:
        """Follow a pointer from ``node``, the resource ``uri``; return also the resource it ends in."""
        start = node
        for key in tokens("#" + fragment):
            try:
                node = node[int(key)] if isinstance(node, list) and key.isascii() else node[key]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise no_place(reference, pointer, token(key)) from error
            identifier = node.get(self._id) if isinstance(node, dict) else None
            if node is not start and isinstance(identifier, str) and not identifier.startswith("#"):
                uri = urldefrag(urljoin(uri, identifier))[0]
        return node, uri

    def _enter(self, uri: str, first: tuple[tuple[str, str], ...]) -> Entered:
        """Return the scope of the resource ``uri``, entered from one of which ``first`` is known."""
        from referencing.exceptions import NoSuchAnchor, NoSuchResource
        from referencing.jsonschema import DynamicAnchor

        known = dict(first)
        for name in self._names:
            if name not in known:
                try:
                    anchor = self._all.anchor(uri, name).value
                except (NoSuchAnchor, NoSuchResource):
                    continue
                if isinstance(anchor, DynamicAnchor):
                    known[name] = uri
        if self._draft == 2019:
            resource = self._all.get(uri)
            if resource is not None and _is_recursive(resource.contents):
                known.setdefault(_ITSELF, uri)
            else:
                known.pop(_ITSELF, None)
        entered = Entered(uri, tuple(sorted(known.items())))
        return self._scopes.setdefault(entered, entered)

    def _copy(self, document: Json, schema: Json, first: tuple[tuple[str, str], ...]) -> Json:
        """Return ``schema``, a part of ``document``, as it is read with ``first``."""
        if first == self._start.first or not isinstance(schema, dict):
            return schema
        copies = self._copies.setdefault(first, {})
        if id(schema) not in copies:
            self._copy_into(document, copies)
        return copies[id(schema)]

    def _copy_into(self, document: Json, copies: dict[int, Json]) -> None:
        todo: list[tuple[Json, Any, Any]] = [(document, [None], 0)]
        while todo:
            node, target, key = todo.pop()
            self._watch.step("copies for $dynamicRef")
            copied = node
            if isinstance(node, dict | list):
                copied = copies.get(id(node))
                if copied is None:
                    copied = copies[id(node)] = (
                        dict.fromkeys(node) if isinstance(node, dict) else [None] * len(node)
                    )
                    members: Iterable[tuple[Any, Json]] = (
                        node.items() if isinstance(node, dict) else enumerate(node)
                    )
                    todo += [(member, copied, name) for name, member in members]
            target[key] = copied


def _is_recursive(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("$recursiveAnchor") is True


def _dynamic_names(documents: list[Json]) -> set[str]:
    """Return the anchors that dynamic references of documents name, and of the metaschemas."""
    found = {"meta"}
    todo = list(documents)
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            reference = node.get("$dynamicRef")
            if isinstance(reference, str):
                found.add(reference.partition("#")[2])
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return found
