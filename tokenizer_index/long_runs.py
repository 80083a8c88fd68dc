"""Long runs of optional parts, cut so that determinising them stays small.

Where ``n`` parts in a row are optional, each of ``n`` states reaches all later ones by empty edges, and a
deterministic automaton has about ``n * n / 2`` edges. `blocks` cuts such a graph into blocks of a few parts
each; what follows a block is then called as a rule of its own ("the rest of the object") as the last
symbol, which leaves about ``n`` times the size of a block.

States are put in order by the most empty edges on a way to them, which is how far along the run they are
whatever else lies between; cycles stay in one block, so that loops stay loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt

from constrain.grammars.limits import Watch
from constrain.tokenizer_index.rule_graphs import RuleGraphs, reach

# Runs up to this length stay whole.
_LONGEST_RUN = 24
_SMALLEST_BLOCK = 8


def split_runs(graphs: RuleGraphs, rule: int, level: Sequence[int], watch: Watch) -> None:
    """Rebuild ``rule`` from rules for its blocks, if it has a long run.

    Parameters
    ----------
    graphs : RuleGraphs
        Changed in place.
    rule : int
    level : sequence of int
        2 for states from which the rule's end can be reached by at least one symbol.
    watch : Watch

    Raises
    ------
    LimitExceededError
        More states or time than allowed.
    """
    if _has_long_run(graphs.bounds[rule], graphs.empty):
        _Splitter(graphs, rule, level).split(watch)


class _Splitter:
    """Copies a rule's graph block by block, each into a rule of its own for each state it is entered at."""

    def __init__(self, graphs: RuleGraphs, rule: int, level: Sequence[int]) -> None:
        states = graphs.bounds[rule]
        self._graphs = graphs
        self._level = level
        self._base = states.start
        self._final = graphs.finals[rule]
        self._name = f"{graphs.names[rule]} (continued)"
        self._block = _blocks(states, graphs.edges, graphs.empty)
        self._ending = _ending(states, graphs.empty, self._final)
        self._entries = [graphs.starts[rule]]
        self._rule_of = {graphs.starts[rule]: rule}  # for each entry

    def split(self, watch: Watch) -> None:
        for entry in self._entries:  # grows while it is read
            self._copy_block(entry, watch)
            watch.at_most("states", len(self._graphs.edges) // 2, f"rule {self._name!r}")

    def _copy_block(self, entry: int, watch: Watch) -> None:
        graphs, block, base = self._graphs, self._block, self._base
        start, end = graphs.state(), graphs.state()
        copies = {entry: start, self._final: end}
        order = [entry]
        for state in order:  # grows while it is read
            for target in [*graphs.empty.get(state, ()), *[target for _, target in graphs.edges[state]]]:
                if target not in copies:
                    copies[target] = graphs.state()
                    if block[target - base] == block[entry - base]:
                        order.append(target)
                    else:
                        self._leave(copies[target], target, end)
            source = copies[state]
            for target in graphs.empty.get(state, ()):
                graphs.skip(source, copies[target])
            graphs.edges[source] += [(symbol, copies[target]) for symbol, target in graphs.edges[state]]
            watch.step(self._name, 1 + len(graphs.edges[state]))
        graphs.set_rule(self._rule_of[entry], start, end)

    def _leave(self, copy: int, target: int, end: int) -> None:
        """Let ``copy`` stand for ``target``, a state of another block: call the rest as a rule."""
        if target in self._ending:
            self._graphs.skip(copy, end)
        if self._level[target] == 2:
            if target not in self._rule_of:
                self._rule_of[target] = self._graphs.add_rule(self._name)
                self._entries.append(target)
            self._graphs.edges[copy].append((-1 - self._rule_of[target], end))


def _blocks(
    states: range, edges: Sequence[Sequence[tuple[int, int]]], empty: Mapping[int, Sequence[int]]
) -> list[int]:
    """Return the block of each state."""
    base = states.start
    after = [
        [target - base for _, target in edges[state]] + [target - base for target in empty.get(state, ())]
        for state in states
    ]
    component = components(after)
    order: list[list[int]] = [[] for _ in range(1 + max(component))]
    for state, c in enumerate(component):
        order[c].append(state)
    depth = [0] * len(order)
    # Components are numbered from the sinks, so the other way round each comes before what it leads to.
    for c in range(len(order) - 1, -1, -1):
        here = depth[c]
        for state in order[c]:
            for _, target in edges[base + state]:
                reached = component[target - base]
                if reached != c and depth[reached] < here:
                    depth[reached] = here
            for target in empty.get(base + state, ()):
                reached = component[target - base]
                if reached != c and depth[reached] < here + 1:
                    depth[reached] = here + 1
    size = max(_SMALLEST_BLOCK, isqrt(max(depth)) // 3)
    return [depth[c] // size for c in component]


def _has_long_run(states: range, empty: Mapping[int, Sequence[int]]) -> bool:
    """Is there a long path of empty edges? Depth first; an edge back into the path counts for nothing."""
    run: dict[int, int] = {}
    for root in reversed(states):
        if root in run or root not in empty:
            continue
        path = [(root, iter(empty[root]))]
        run[root] = 0
        while path:
            state, targets = path[-1]
            for target in targets:
                if target in empty and target not in run:
                    run[target] = 0
                    path.append((target, iter(empty[target])))
                    break
            else:
                run[state] = 1 + max([run.get(target, 0) for target in empty[state]])
                if run[state] > _LONGEST_RUN:
                    return True
                path.pop()
    return False


def _ending(states: range, empty: Mapping[int, Sequence[int]], final: int) -> set[int]:
    """Return the states from which empty edges lead to ``final``."""
    before: dict[int, list[int]] = {}
    for state in states:
        for target in empty.get(state, ()):
            before.setdefault(target, []).append(state)
    return set(reach(before, [final]))


def components(after: Sequence[Sequence[int]]) -> list[int]:
    """Return the strongly connected component of each node; edges lead to smaller or equal components.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    n = len(after)
    component = [-1] * n
    found = [0] * n  # order of discovery, from 1
    low = [0] * n
    stack: list[int] = []
    n_found = n_components = 0
    for root in range(n):
        if found[root]:
            continue
        path = [(root, iter(after[root]))]
        n_found += 1
        found[root] = low[root] = n_found
        stack.append(root)
        while path:
            node, targets = path[-1]
            for target in targets:
                if not found[target]:
                    n_found += 1
                    found[target] = low[target] = n_found
                    stack.append(target)
                    path.append((target, iter(after[target])))
                    break
                if component[target] < 0:
                    low[node] = min(low[node], found[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == found[node]:
                    while component[node] < 0:
                        component[stack.pop()] = n_components
                    n_components += 1
    return component
