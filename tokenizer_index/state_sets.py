"""Sets of states of one rule's graph, closed under empty edges.

Only states that have edges and the final one are kept, so that equal sets are equal values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from constrain.grammars.limits import Watch
from constrain.tokenizer_index.long_runs import components
from constrain.tokenizer_index.rule_graphs import RuleGraphs, reach

# One state, or several in order.
States: TypeAlias = int | tuple[int, ...]

# Graphs up to this size are small whatever they are.
_FEW_STATES = 64
# Elements of sets of states that may take the place of one dotted state under the limit on them.
SET_ELEMENTS = 4


class StateSets:
    """What is reached from the states of ``rule`` by empty edges.

    Attributes
    ----------
    after : dict of int to States
        For each state that has empty edges; any other state reaches itself alone.

    Raises
    ------
    LimitExceededError
        The sets have more elements than ``limits.states`` allows, or time is up.
    """

    def __init__(self, graphs: RuleGraphs, rule: int, watch: Watch) -> None:
        self.after: dict[int, States] = {}
        self._edges = graphs.edges
        self._empty = graphs.empty
        self._final = graphs.finals[rule]
        self._reached: dict[int, set[int]] = {}
        states = graphs.bounds[rule]
        if len(states) > _FEW_STATES:
            self._close_components(states, watch, f"rule {graphs.names[rule]!r}")
        else:
            self._close_backwards(states)

    def ends(self, states: States) -> bool:
        """May the rule end in this set?"""
        return states == self._final if isinstance(states, int) else self._final in states

    def after_all(self, states: Iterable[int]) -> States:
        """Return the set of what is reached from any of ``states``."""
        reached: set[int] = set()
        for state in states:
            if state not in reached:
                if state in self._reached:
                    reached |= self._reached[state]
                else:
                    reached.add(state)
        return _as_states(reached)

    def _close_backwards(self, states: range) -> None:
        """Find the sets of a small graph.

        Empty edges mostly lead to later states, so going backwards each set is one step from known ones.
        """
        edges, empty, reached_from = self._edges, self._empty, self._reached
        for state in reversed(states):
            if state in empty:
                reached = {state} if edges[state] else set()
                for target in empty[state]:
                    if target not in empty:
                        if edges[target] or target == self._final:
                            reached.add(target)
                    elif target in reached_from:
                        reached |= reached_from[target]
                    else:
                        found = reach(empty, [state])
                        reached = {s for s in found if edges[s] or s == self._final}
                        break
                reached_from[state] = reached
                self.after[state] = _as_states(reached)

    def _close_components(self, states: range, watch: Watch, place: str) -> None:
        """Find the sets of a large graph, each once for all states on one cycle of empty edges."""
        base, edges, empty, size = states.start, self._edges, self._empty, 0
        members: dict[int, list[int]] = {}
        component = components([[target - base for target in empty.get(state, ())] for state in states])
        for state, c in zip(states, component, strict=True):
            if state in empty:
                members.setdefault(c, []).append(state)
        for c in sorted(members):  # edges lead to smaller components
            reached: set[int] = set()
            for state in members[c]:
                if edges[state]:
                    reached.add(state)
                for target in empty[state]:
                    if target not in empty:
                        if edges[target] or target == self._final:
                            reached.add(target)
                    elif component[target - base] != c:
                        reached |= self._reached[target]
            after = _as_states(reached)
            for state in members[c]:
                self._reached[state] = reached
                self.after[state] = after
            size += len(reached)
            watch.step(place, 1 + len(reached) // 16)
            watch.at_most("states", size // SET_ELEMENTS, place)


def _as_states(states: set[int]) -> States:
    ordered = sorted(states)
    return ordered[0] if len(ordered) == 1 else tuple(ordered)
