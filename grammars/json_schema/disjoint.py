"""Proofs that no value satisfies two branches, so that exactly one of ``oneOf`` means any one.

Looked at: types, constants, bounds, lengths and patterns, items that both must have, and properties that either
requires (the other's demands on them count as well). What is not shown to be disjoint is taken to
overlap; formats are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import combinations
from typing import TYPE_CHECKING

from constrain.grammars.json_schema import facts as bits
from constrain.grammars.json_schema.equality import shared_values
from constrain.grammars.json_schema.facts import Facts, Json, Location
from constrain.grammars.json_schema.instances import may_be
from constrain.grammars.json_schema.numbers import Bound
from constrain.grammars.json_schema.places import item_locations, property_locations

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder

_DEPTH = 4  # of properties and items within each other that are looked at


def are_disjoint(builder: Builder, branches: list[Facts]) -> bool:
    """Is no value described by two of ``branches``, as far as can be seen?"""
    return not any(overlaps(builder, branches))


def overlaps(builder: Builder, branches: list[Facts]) -> list[list[int]]:
    """Return for each of ``branches`` which others it may overlap, as far as can be seen."""
    prover = _Prover(builder)
    expanded = [builder.expand(branch, is_exact=False) for branch in branches]
    found: list[list[int]] = [[] for _ in branches]
    if prover.are_tagged([branch for branch in expanded if branch]):
        return found
    for i, j in combinations(range(len(branches)), 2):
        if not prover.pairwise(expanded[i], expanded[j], 0):
            found[i].append(j)
            found[j].append(i)
    return found


class _Prover:
    """Compares facts; remembers those of properties, which many comparisons ask for."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._parts: dict[tuple[tuple[Hashable, ...], object], list[Facts]] = {}

    def are_tagged(self, branches: list[list[Facts]]) -> bool:
        """Do all branches require a property that is another constant string in each?

        The usual way to tell branches apart, found here without comparing every pair.
        """
        if not all(facts.types == bits.OBJECT for branch in branches for facts in branch):
            return False
        names = branches[0][0].required if branches else ()
        return any(self._is_tag(name, branches) for name in names)

    def _is_tag(self, name: str, branches: list[list[Facts]]) -> bool:
        seen: set[str] = set()
        for branch in branches:
            own: set[str] = set()
            for facts in branch:
                if name not in facts.required:
                    return False
                for part in self._part(facts, name, property_locations):
                    if part.values is None or not all(isinstance(value, str) for value in part.values):
                        return False
                    own.update(part.values)
            if not seen.isdisjoint(own):
                return False
            seen |= own
        return True

    def pairwise(self, first: list[Facts], second: list[Facts], depth: int) -> bool:
        """Is each of ``first`` disjoint from each of ``second``?"""
        return all(self._pair(a, b, depth) for a in first for b in second)

    def _pair(self, a: Facts, b: Facts, depth: int) -> bool:
        common = a.types & b.types
        if not common:
            return True
        self._builder.watch.step(a.pointer)
        for one, other in ((a, b), (b, a)):
            if one.values is not None:
                shared = one.values if other.values is None else shared_values(one.values, other.values)
                return not any(
                    may_be(self._builder, value, one) and may_be(self._builder, value, other)
                    for value in shared
                )
        return (
            not common & (bits.NULL | bits.BOOLEAN)
            and (not common & bits.NUMBER or _below(a.high, b.low) or _below(b.high, a.low))
            and (
                not common & bits.STRING
                or _fewer(a.max_length, b.min_length)
                or _fewer(b.max_length, a.min_length)
                or self._match_apart(a, b)
            )
            and (not common & bits.ARRAY or self._arrays(a, b, depth))
            and (not common & bits.OBJECT or self._objects(a, b, depth))
        )

    def _match_apart(self, a: Facts, b: Facts) -> bool:
        """Is there no text that has the patterns of both?"""
        if not (a.patterns or b.patterns or (a.not_patterns and b.not_patterns)):
            return False
        return self._builder.has_no_text((*a.patterns, *b.patterns), (*a.not_patterns, *b.not_patterns))

    def _arrays(self, a: Facts, b: Facts, depth: int) -> bool:
        if _fewer(a.max_items, b.min_items) or _fewer(b.max_items, a.min_items):
            return True
        n_prefix = max((len(part.prefix) for part in (*a.arrays, *b.arrays)), default=0)
        n_shared = min(max(a.min_items, b.min_items), n_prefix + 1)
        return depth < _DEPTH and any(
            self.pairwise(self._part(a, i, item_locations), self._part(b, i, item_locations), depth + 1)
            for i in range(n_shared)
        )

    def _objects(self, a: Facts, b: Facts, depth: int) -> bool:
        return depth < _DEPTH and any(
            self.pairwise(
                self._part(a, name, property_locations), self._part(b, name, property_locations), depth + 1
            )
            for name in dict.fromkeys((*a.required, *b.required))
        )

    def _part(
        self, facts: Facts, part: Json, locations: Callable[[Builder, Facts, Json], list[Location]]
    ) -> list[Facts]:
        """Return what ``facts`` say about one property or item."""
        key = (facts.key, part)
        found = self._parts.get(key)
        if found is None:
            found = self._builder.expand(
                self._builder.facts(locations(self._builder, facts, part)), is_exact=False
            )
            self._parts[key] = found
        return found


def _below(high: Bound, low: Bound) -> bool:
    """Is every number up to ``high`` below every number from ``low``?"""
    if high is None or low is None:
        return False
    return high[0] < low[0] or (high[0] == low[0] and (high[1] or low[1]))


def _fewer(most: int | None, least: int) -> bool:
    return most is not None and most < least
