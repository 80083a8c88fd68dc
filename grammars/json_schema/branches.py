"""Facts with groups of branches (``anyOf``, ``oneOf``, ways to fail a schema) as unions of facts without.

Groups multiply. What keeps the union small: branches that contradict what is known are left out; a group
of which a branch adds nothing is settled; groups that are left with one branch come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.grammars.json_schema import disjoint
from constrain.grammars.json_schema.facts import ARRAY, OBJECT, Counted, Facts, Group, Location
from constrain.grammars.json_schema.instances import has_key
from constrain.grammars.json_schema.places import item_locations, property_locations

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder

# What a branch counts for under Limits.states: several groups of branches multiply.
_STATES_PER_BRANCH = 100
# Of facts with complements: how many branches are read, and how many facts there may be in the end.
_MOST_READ = 4_000
_MOST_READ_IN_ALL = 25_000
_MOST_FACTS = 250
_DEPTH = 3  # of properties within each other that are searched for contradictions
_FEW = 4  # facts; where groups have made more, each is looked into for contradictions


def _is_negative(group: Group) -> bool:
    return group.is_negative


class Brancher:
    """Expands facts of one schema."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._depth = 0
        self._is_empty: dict[frozenset[int], bool] = {}
        self._facts_of: dict[tuple[int, ...], Facts] = {}
        self._are_disjoint: dict[tuple[int, ...], bool | None] = {}
        self._n_read = 0

    def expand(self, facts: Facts, is_exact: bool, *, drops_negative: bool = False) -> list[Facts]:
        """Return facts without groups whose union is ``facts``.

        If not ``is_exact``, branches of ``oneOf`` may overlap: the union may be larger. It may, too, if
        ``drops_negative``: ways to fail schemas are then left out.
        """
        watch = self._builder.watch
        done: list[Facts] = []
        todo = [facts]
        n_read = 0
        while todo:
            current = todo.pop()
            if drops_negative:
                current.groups = tuple(group for group in current.groups if not group.is_negative)
            if not current.groups:
                done.append(current)
                watch.at_most("states", _STATES_PER_BRANCH * len(done), facts.pointer)
                continue
            if current.groups[0].is_negative:
                # Complements last: the more is known the more of their branches are contradictions.
                current.groups = tuple(sorted(current.groups, key=_is_negative))
            if current.groups[0].is_negative:
                branches, n = self._of_negative(current)
                n_read += n
                self._n_read += n
                if (
                    n_read > _MOST_READ
                    or self._n_read > _MOST_READ_IN_ALL
                    or len(done) + len(todo) > _MOST_FACTS
                ):
                    return self._refuse(facts, current.groups[0], is_exact)
            else:
                branches = self._of_first(current, is_exact)
                if len(done) + len(todo) >= _FEW:
                    branches = self._possible(branches, current)
            for branch in branches:
                if not branch.types:
                    facts.reason = branch.reason
            todo.extend(branch for branch in reversed(branches) if branch.types)
        return done

    def _of_first(self, current: Facts, is_exact: bool) -> list[Facts]:
        """Return the union of which ``current`` is, by the branches of its first group."""
        group = current.groups[0]
        rest = current.copy()
        rest.groups = current.groups[1:]
        branches = []
        read = self._builder.read
        kept: list[Location] = []
        for location in group.branches:
            self._builder.watch.step(group.pointer, 16)
            branch = rest.copy()
            read(branch, location)
            branches.append(branch)
            if branch.types:
                kept.append(location)
        if group.is_exclusive and is_exact and len(kept) > 1 and not self._are_apart(group):
            possible = [branch for branch in branches if branch.types]
            overlaps = disjoint.overlaps(self._builder, possible)
            for branch, others in zip(possible, overlaps, strict=True):
                for other in others:
                    read(branch, self._builder.derived.failing(kept[other]))
        return branches

    def _are_apart(self, group: Group) -> bool:
        """Do the branches exclude each other, whatever else is said of the value?

        Asked only when a group comes a second time: then it may come often, beside ever other facts.
        """
        key = tuple([id(location.schema) for location in group.branches])
        if key not in self._are_disjoint:
            self._are_disjoint[key] = None
            return False
        known = self._are_disjoint[key]
        if known is None:
            alone = [self._builder.facts([location]) for location in group.branches]
            known = disjoint.are_disjoint(self._builder, [facts for facts in alone if facts.types])
            self._are_disjoint[key] = known
        return known

    def _of_negative(self, current: Facts) -> tuple[list[Facts], int]:
        """Return the union of which ``current`` is, all its groups being ways to fail schemas.

        Returns
        -------
        (list of Facts, int)
            And how many branches were read.
        """
        n_read = 0
        groups = list(current.groups)
        best: list[Facts] | None = None
        index = 0
        while index < len(groups):
            group = groups[index]
            rest = current.copy()
            rest.groups = (*groups[:index], *groups[index + 1 :])
            branches: list[Facts] = []
            is_settled = False
            for location in group.branches:
                self._builder.watch.step(group.pointer, 16)
                n_read += 1
                branch = rest.copy()
                self._builder.read(branch, location)
                if branch.groups == rest.groups and branch.says_the_same(rest):
                    is_settled = True
                    break
                if branch.types and not self._is_contradictory(branch, rest):
                    branches.append(branch)
                elif not branches and not branch.types:
                    current.reason = current.reason or branch.reason
            if is_settled:
                del groups[index]
                continue
            if len(branches) <= 1:
                if not branches:
                    branches = [rest]
                    rest.narrow(0, "every way out is excluded", group.pointer)
                return branches, n_read
            if best is None or len(branches) < len(best):
                best = branches
            index += 1
        if best is None:
            rest = current.copy()
            rest.groups = ()
            return [rest], n_read
        if len(groups) < len(current.groups):  # read again, without the groups that are settled
            rest = current.copy()
            rest.groups = tuple(groups)
            return [rest], n_read
        return best, n_read

    def _possible(self, branches: list[Facts], current: Facts) -> list[Facts]:
        """Return the branches of ``current``'s first group that can't be seen to be impossible.

        Conditions like "if ``type`` is this, then" exclude each other within properties; unless that is
        seen early, many of them multiply.
        """
        group = current.groups[0]
        for branch in branches:
            if branch.types and self._is_contradictory(branch, current):
                branch.narrow(0, "the cases exclude each other", group.pointer)
        return branches

    def _is_contradictory(self, branch: Facts, rest: Facts) -> bool:
        """Can the part that makes ``branch`` differ from ``rest`` be seen to be impossible?"""
        if self._builder.is_hollow(branch):
            return True
        if self._depth >= _DEPTH or branch.types & ~(OBJECT | ARRAY):
            return False
        if branch.types == OBJECT and len(branch.objects) > len(rest.objects):
            names = {name for part in branch.objects[len(rest.objects) :] for name in part.properties}
            return any(
                self.is_impossible(property_locations(self._builder, branch, name))
                for name in branch.required
                if name in names
            )
        if branch.types == OBJECT and len(branch.members) > len(rest.members):
            return not self._can_count(branch, branch.members[-1])
        if branch.types == ARRAY and len(branch.arrays) > len(rest.arrays):
            index = len(branch.arrays[-1].prefix) - 1
            return 0 <= index < branch.min_items and self.is_impossible(
                item_locations(self._builder, branch, index)
            )
        return False

    def _can_count(self, facts: Facts, counted: Counted) -> bool:
        """May there be an object with a member of one of the cases, or without one that is absent?"""
        if not counted.low or any(name not in facts.required for name in counted.absent):
            return True
        is_closed = any(part.additional is False and not part.patterns for part in facts.objects)
        for keys, value in counted.cases:
            if keys.name is None:
                if not is_closed:
                    return True
                names = {name for part in facts.objects for name in part.properties} | {*facts.required}
                named = [name for name in names if has_key(self._builder, name, keys, counted.pointer)]
            else:
                named = [keys.name]
            for name in named:
                places = property_locations(self._builder, facts, name)
                if not self.is_impossible([*places, *((value,) if value is not None else ())]):
                    return True
        return False

    def is_impossible(self, locations: list[Location]) -> bool:
        """Does no value satisfy several schemas, as far as can be seen?"""
        if self._depth >= _DEPTH:
            return False
        key = frozenset([id(location.schema) for location in locations])
        known = self._is_empty.get(key)
        if known is None:
            facts, new = self._facts(locations)
            known = not facts.types or self._builder.derived.is_contradiction(locations, new)
            if not known:
                self._depth += 1
                known = not any(
                    found.types and not self._builder.is_hollow(found)
                    for found in self._builder.expand(facts, is_exact=False)
                )
                self._depth -= 1
            self._is_empty[key] = known
        return known

    def _facts(self, locations: list[Location]) -> tuple[Facts, list[Location]]:
        """Return what several schemas say about one value, and those that weren't looked at before.

        Cases that follow one another ask for one more schema each: what is known of the others is read on.
        """
        order = tuple([id(location.schema) for location in locations])
        before = self._facts_of.get(order[:-1])
        if before is None:
            facts, new = self._builder.facts(locations), locations
        else:
            facts, new = before.copy(), locations[-1:]
            self._builder.read(facts, new[0])
        self._facts_of[order] = facts
        return facts.copy(), new

    def _refuse(self, facts: Facts, group: Group, is_exact: bool) -> list[Facts]:
        """Refuse, or drop, the groups that say how a schema may fail."""
        self._builder.drop_or_raise(
            "not",
            group.pointer,
            "Say what is allowed instead, as branches of anyOf that are few.",
            "needs too many cases here, which is not supported",
        )
        rest = facts.copy()
        groups = [one for one in facts.groups if not one.is_negative]
        if self._builder.options.unsupported == "check":
            rest.groups = tuple(groups)
            return self.expand(rest, False, drops_negative=True)
        rest.groups = tuple(one for one in groups if not one.is_exclusive)
        return self.expand(rest, is_exact)
