"""Which keywords of a schema that nothing satisfies contradict each other.

Keywords are taken out, many at once where that goes, for as long as still nothing satisfies the rest. What is left
is a conflict: without any one of its keywords something would be valid. Names of properties and definitions stay, with
schemas that say nothing: others speak of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from constrain.grammars.json_schema.drafts import HANDLERS, NEIGHBOURS
from constrain.grammars.json_schema.facts import Json
from constrain.grammars.json_schema.pointers import token
from constrain.grammars.json_schema.subschemas import MAPS, SINGLE

Path: TypeAlias = tuple[str | int, ...]

# Of `not`, `if` and `oneOf` nothing is taken out: they may say more with less.
_DEPENDENT = frozenset(("dependentSchemas", "dependencies", "dependentRequired"))
_PROPERTIES = frozenset(MAPS) - _DEPENDENT
_BRANCHES = frozenset(("anyOf", "prefixItems"))
_SINGLE = frozenset(SINGLE) - {"not", "if", "contentSchema"}
_FLAGS = frozenset(("exclusiveMinimum", "exclusiveMaximum"))
# Parts that are looked at in all: the work for an error message.
_MOST_WORK = 60_000
_MOST_DEEP = 60
_MOST_SHOWN = 8


def conflict(root: Json, draft: int, is_empty: Callable[[Json], bool]) -> tuple[str, ...]:
    """Return JSON pointers of keywords that contradict each other; none where that takes too much work.

    Parameters
    ----------
    root : dict
        A schema that nothing satisfies.
    draft : int
    is_empty : callable
        Does nothing satisfy a schema, which has fewer keywords than ``root``?
    """
    search = _Search(root, draft, is_empty)
    if not search.shrink([()]):
        return ()
    found = tuple("/".join(["#", *(token(str(key)) for key in path)]) for path in search.kept)
    return found if len(found) <= _MOST_SHOWN else ()


class _Search:
    def __init__(self, root: Json, draft: int, is_empty: Callable[[Json], bool]) -> None:
        self.kept: list[Path] = []
        self._root = root
        self._keywords = HANDLERS[draft].keys() | NEIGHBOURS | _FLAGS
        self._is_empty = is_empty
        self._removed: set[Path] = set()
        self._work = 0

    def shrink(self, paths: list[Path]) -> bool:
        """Take out what can be of the parts at ``paths``; return ``False`` where it was given up."""
        todo = [paths]
        opened: list[Path] = []
        while todo:
            several = todo.pop()
            if not several:
                continue
            if several != [()]:
                self._removed.update(several)
                if self._is_still_empty():
                    continue
                self._removed.difference_update(several)
            if self._work > _MOST_WORK:
                return False
            if len(several) > 1:
                half = len(several) // 2
                todo += [several[half:], several[:half]]
                continue
            inside = self._inside(several[0])
            if inside:
                opened.append(several[0])
                todo.append(inside)
            else:
                self.kept.append(several[0])
        for path in reversed(opened):
            # What it says counts even without all that could be taken out of it.
            if path and not any(inner[: len(path)] == path for inner in self.kept):
                self.kept.append(path)
        return True

    def _is_still_empty(self) -> bool:
        rest = self._pruned(self._root, ())
        return self._work <= _MOST_WORK and self._is_empty(rest)

    def _pruned(self, node: Json, path: Path) -> Json:
        """Return a copy of ``node`` without what was taken out."""
        self._work += 1
        if len(path) > _MOST_DEEP:
            self._work = _MOST_WORK + 1
        if self._work > _MOST_WORK:
            return node
        if isinstance(node, dict):
            found = {}
            for key, member in node.items():
                inner = (*path, key)
                if inner not in self._removed:
                    found[key] = self._pruned(member, inner)
                elif self._is_schema(path) and key in _PROPERTIES and isinstance(member, dict):
                    found[key] = {name: {} for name in member}
                elif self._is_schema(path) and key == "prefixItems" and isinstance(member, list):
                    found[key] = [{}] * len(member)
                elif not self._is_schema(path) and path[-1] in _PROPERTIES:
                    found[key] = {}
            return found
        if isinstance(node, list):
            inners = [(*path, i) for i in range(len(node))]
            return [
                {} if inner in self._removed else self._pruned(item, inner)
                for inner, item in zip(inners, node, strict=True)
            ]
        return node

    def _inside(self, path: Path) -> list[Path]:
        """Return the parts that may be taken out of the schema or keyword at ``path``."""
        node = self._root
        for key in path:
            node = node[key]
        if self._is_schema(path):
            if not isinstance(node, dict):
                return []
            return self._keywords_in(node, path)
        keyword = path[-1]
        if isinstance(node, dict):
            if keyword in _PROPERTIES or keyword in _DEPENDENT:
                return [(*path, name) for name in node]
            return self._keywords_in(node, path) if keyword in _SINGLE else []
        if isinstance(node, list) and keyword == "allOf":
            return [(*path, i) for i in range(len(node))]
        if isinstance(node, list) and keyword in _BRANCHES:
            # Without a branch less would be valid, without what it says more.
            return [inner for i in range(len(node)) for inner in self._inside((*path, i))]
        return []

    def _keywords_in(self, schema: dict[str, Json], path: Path) -> list[Path]:
        return [(*path, key) for key in schema if key in self._keywords or key in _PROPERTIES]

    def _is_schema(self, path: Path) -> bool:
        """Is it a schema that stands at ``path``, not a keyword?"""
        is_schema = True
        holder: str | int = ""
        for key in path:
            is_schema = not (is_schema or holder in _SINGLE)
            holder = key
        return is_schema or holder in _SINGLE
