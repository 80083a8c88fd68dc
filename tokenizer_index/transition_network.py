"""Rules to a transition network: one deterministic automaton over symbols for each rule.

`flatten` takes the graphs of the rules, and which terminals match anything and which the empty string. It

1. finds nullable rules, and lets every reference to something nullable be passed by an empty edge;
2. turns a rule's call of itself as its last symbol into a loop;
3. keeps the edges from which the end of the rule can be reached, by symbols that match something
   other than the empty string;
4. cuts long runs of optional parts (`long_runs`);
5. determinises each rule that is still reachable.

The first state of a rule never ends it, since the empty string is accounted for where the rule is
referred to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from constrain.grammars.errors import EmptyLanguageError
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.long_runs import components, split_runs
from constrain.tokenizer_index.rule_graphs import RuleGraphs, reach

# Graphs up to this size are small whatever they are.
_FEW_STATES = 64
# Elements of sets of states that may take the place of one dotted state under the limit on them.
_SET_ELEMENTS = 4


class Rules(NamedTuple):
    """The transition network as lists; see `network.Network`."""

    terminal_offsets: list[int]
    terminal_symbol: list[int]
    terminal_target: list[int]
    rule_offsets: list[int]
    rule_symbol: list[int]
    rule_target: list[int]
    is_final: list[bool]
    rule_of: list[int]
    rule_start: list[int]
    rule_names: list[str]
    start_nullable: bool


def flatten(graphs: RuleGraphs, alive: Sequence[bool], nullable: Sequence[bool], watch: Watch) -> Rules:
    """Return the transition network.

    Parameters
    ----------
    graphs : RuleGraphs
        Changed in place.
    alive : (n_terminals,)
        The terminal matches something other than the empty string.
    nullable : (n_terminals,)
        The terminal matches the empty string.

    Raises
    ------
    EmptyLanguageError
        No text is in the language.
    LimitExceededError
        More states or time than allowed.
    """
    return _Flattener(graphs, watch).flatten(alive, nullable)


# A set of states of one rule's graph: one state, or several in order.
_States: TypeAlias = int | tuple[int, ...]


class _Sets:
    """Sets of states of one rule's graph, closed under empty edges.

    Only states that have edges and the final one are kept, so that equal sets are equal values.

    Parameters
    ----------
    edges, empty
        The graphs of all rules.
    states : range
        The rule's states.
    final : int
    """

    def __init__(
        self,
        edges: list[list[tuple[int, int]]],
        empty: dict[int, list[int]],
        states: range,
        final: int,
        watch: Watch,
        place: str,
    ) -> None:
        self._edges = edges
        self._empty = empty
        self._final = final
        self._reached: dict[int, set[int]] = {}
        self._after: dict[int, _States] = {}
        if len(states) > _FEW_STATES:
            self._close_components(states, watch, place)
            return
        # Empty edges mostly lead to later states, so going backwards each set is one step from a known one.
        for state in reversed(states):
            if state in empty:
                reached = {state} if edges[state] else set()
                for target in empty[state]:
                    if target not in empty:
                        if edges[target] or target == final:
                            reached.add(target)
                    elif target in self._reached:
                        reached |= self._reached[target]
                    else:
                        break
                else:
                    self._reached[state] = reached

    def _close_components(self, states: range, watch: Watch, place: str) -> None:
        """Find all sets, each once for all states on one cycle of empty edges."""
        base, empty, size = states.start, self._empty, 0
        members: dict[int, list[int]] = {}
        component = components([[target - base for target in empty.get(state, ())] for state in states])
        for state, c in zip(states, component, strict=True):
            if state in empty:
                members.setdefault(c, []).append(state)
        for c in sorted(members):  # edges lead to smaller components
            reached: set[int] = set()
            for state in members[c]:
                if self._edges[state]:
                    reached.add(state)
                for target in empty[state]:
                    if target not in empty:
                        if self._edges[target] or target == self._final:
                            reached.add(target)
                    elif component[target - base] != c:
                        reached |= self._reached[target]
            for state in members[c]:
                self._reached[state] = reached
            size += len(reached)
            watch.step(place, 1 + len(reached) // 16)
            watch.at_most("states", size // _SET_ELEMENTS, place)

    def ends(self, states: _States) -> bool:
        """May the rule end in this set?"""
        return states == self._final if isinstance(states, int) else self._final in states

    def after(self, state: int) -> _States:
        """Return the set of what is reached from one state."""
        if state not in self._empty:
            return state
        known = self._after.get(state)
        if known is None:
            known = self._after[state] = _as_states(self._reach(state))
        return known

    def after_all(self, states: list[int]) -> _States:
        """Return the set of what is reached from any of ``states``."""
        reached: set[int] = set()
        for state in states:
            if state not in reached:
                reached |= self._reach(state)
        return _as_states(reached)

    def _reach(self, state: int) -> set[int]:
        known = self._reached.get(state)
        if known is None:
            found = reach(self._empty, [state])
            known = self._reached[state] = {s for s in found if self._edges[s] or s == self._final}
        return known


def _as_states(states: set[int]) -> _States:
    ordered = sorted(states)
    return ordered[0] if len(ordered) == 1 else tuple(ordered)


class _Flattener:
    def __init__(self, graphs: RuleGraphs, watch: Watch) -> None:
        self._graphs = graphs
        self._watch = watch

    def flatten(self, alive: Sequence[bool], nullable: Sequence[bool]) -> Rules:
        empty_rules = self._nullable_rules(nullable)
        self._skip_nullable(empty_rules, nullable)
        self._loop_own_calls()
        level, alive_rules = self._productive(alive)
        if not alive_rules[0] and not empty_rules[0]:
            raise self._empty_language(alive, alive_rules)
        self._prune(alive, level, alive_rules)
        return self._determinise(level, empty_rules[0])

    def _nullable_rules(self, nullable: Sequence[bool]) -> list[bool]:
        """Which rules match the empty string? A rule is looked at again when one it waits for turns out so."""
        found = [False] * len(self._graphs.starts)
        waiting: dict[int, list[int]] = {}
        tasks = list(range(len(self._graphs.starts)))
        while tasks:
            rule = tasks.pop()
            if found[rule]:
                continue
            final = self._graphs.finals[rule]
            order = [self._graphs.starts[rule]]
            seen = set(order)
            for state in order:  # grows while it is read
                targets = list(self._graphs.empty.get(state, ()))
                for symbol, target in self._graphs.edges[state]:
                    if nullable[symbol] if symbol >= 0 else found[-1 - symbol]:
                        targets.append(target)
                    elif symbol < 0:
                        waiting.setdefault(-1 - symbol, []).append(rule)
                for target in targets:
                    if target not in seen:
                        seen.add(target)
                        order.append(target)
            self._watch.step("nullable rules", len(order))
            if final in seen:
                found[rule] = True
                tasks += waiting.pop(rule, ())
        return found

    def _skip_nullable(self, rules: list[bool], terminals: Sequence[bool]) -> None:
        if not any(rules) and not any(terminals):
            return
        for source, edges in enumerate(self._graphs.edges):
            for symbol, target in edges:
                if terminals[symbol] if symbol >= 0 else rules[-1 - symbol]:
                    self._graphs.skip(source, target)

    def _loop_own_calls(self) -> None:
        """Replace calls of a rule by itself, where nothing follows, by empty edges to its start."""
        for rule, source in self._graphs.own_calls:
            start, final, symbol = self._graphs.starts[rule], self._graphs.finals[rule], -1 - rule
            kept = []
            for edge in self._graphs.edges[source]:
                if edge[0] == symbol and self._only_ends(edge[1], final):
                    self._graphs.skip(source, start)
                else:
                    kept.append(edge)
            self._graphs.edges[source] = kept

    def _only_ends(self, state: int, final: int) -> bool:
        reached = reach(self._graphs.empty, [state])
        return final in reached and not any(self._graphs.edges[s] for s in reached)

    def _productive(self, alive: Sequence[bool]) -> tuple[list[int], list[bool]]:
        """Judge states and rules from the ends of rules backwards.

        Returns
        -------
        level : (n_states,)
            2 if the end of the rule can be reached by at least one live symbol, 1 if only without.
        alive_rules : (n_rules,)
            The rule matches something other than the empty string.
        """
        n = len(self._graphs.edges)
        before: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        skipped: list[list[int]] = [[] for _ in range(n)]
        for source, edges in enumerate(self._graphs.edges):
            for symbol, target in edges:
                before[target].append((symbol, source))
        for source, targets in self._graphs.empty.items():
            for target in targets:
                skipped[target].append(source)
        level = [0] * n
        alive_rules = [False] * len(self._graphs.starts)
        rule_of_start = {start: rule for rule, start in enumerate(self._graphs.starts)}
        waiting: dict[int, list[int]] = {}
        tasks = list(self._graphs.finals)
        for state in tasks:
            level[state] = 1
        while tasks:
            state = tasks.pop()
            raised: list[int] = []
            if level[state] == 2 and state in rule_of_start:
                rule = rule_of_start[state]
                if not alive_rules[rule]:
                    alive_rules[rule] = True
                    raised += waiting.pop(rule, ())
            for symbol, source in before[state]:
                if level[source] == 2:
                    continue
                if alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol]:
                    raised.append(source)
                elif symbol < 0:
                    waiting.setdefault(-1 - symbol, []).append(source)
            for source in raised:
                if level[source] < 2:
                    level[source] = 2
                    tasks.append(source)
            for source in skipped[state]:
                if level[source] < level[state]:
                    level[source] = level[state]
                    tasks.append(source)
            self._watch.step("productive rules")
        return level, alive_rules

    def _prune(self, alive: Sequence[bool], level: list[int], alive_rules: list[bool]) -> None:
        """Keep the edges that are on a way to the end of their rule."""
        if all(level) and all(alive_rules) and all(alive[t] for t in self._graphs.used):
            return
        for source, edges in enumerate(self._graphs.edges):
            self._graphs.edges[source] = [
                (symbol, target)
                for symbol, target in edges
                if level[target] and (alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol])
            ]

    def _determinise(self, level: list[int], start_nullable: bool) -> Rules:
        rules = Rules([0], [], [], [0], [], [], [], [], [], [], start_nullable)
        numbers = {0: 0}  # of rules, in order of discovery
        n_read = len(self._graphs.starts)
        order = [0]
        for rule in order:  # grows while it is read
            if len(self._graphs.bounds[rule]) > _FEW_STATES and rule < n_read:
                split_runs(self._graphs, rule, level, self._watch)
            self._determinise_rule(rule, numbers, order, rules)
        return rules

    def _determinise_rule(self, rule: int, numbers: dict[int, int], order: list[int], rules: Rules) -> None:
        """Append the deterministic automaton of ``rule`` to ``rules``, and new rules to ``order``.

        A state is a set of the graph's states: one state, or a sorted tuple.
        """
        edges, empty, final = self._graphs.edges, self._graphs.empty, self._graphs.finals[rule]
        base, place = len(rules.is_final), f"rule {self._graphs.names[rule]!r}"
        sets = _Sets(edges, empty, self._graphs.bounds[rule], final, self._watch, place)
        first = sets.after(self._graphs.starts[rule])
        states = [first]
        index = {} if sets.ends(first) else {first: base}
        rules.rule_start.append(base)
        rules.rule_names.append(self._graphs.names[rule])
        terminal_symbol, terminal_target = rules.terminal_symbol, rules.terminal_target
        for state in states:  # grows while it is read
            moves: dict[int, int] = {}
            clashes: dict[int, list[int]] = {}
            for source in (state,) if isinstance(state, int) else state:
                for symbol, target in edges[source]:
                    other = moves.setdefault(symbol, target)
                    if other != target:
                        clashes.setdefault(symbol, [other]).append(target)
            calls = []
            for symbol in sorted(moves) if len(moves) > 1 else moves:
                if symbol in clashes:
                    reached = sets.after_all(clashes[symbol])
                else:
                    target = moves[symbol]
                    reached = sets.after(target) if target in empty else target
                at = index.get(reached)
                if at is None:
                    at = index[reached] = base + len(states)
                    states.append(reached)
                if symbol >= 0:
                    terminal_symbol.append(symbol)
                    terminal_target.append(at)
                else:
                    called = -1 - symbol
                    if called not in numbers:
                        numbers[called] = len(order)
                        order.append(called)
                    calls.append((numbers[called], at))
            if calls:
                calls.sort()
                rules.rule_symbol.extend([call[0] for call in calls])
                rules.rule_target.extend([call[1] for call in calls])
            rules.terminal_offsets.append(len(terminal_symbol))
            rules.rule_offsets.append(len(rules.rule_symbol))
            self._watch.step(place, 1 + len(moves))
        rules.rule_of.extend([numbers[rule]] * len(states))
        rules.is_final.extend([sets.ends(state) for state in states])
        rules.is_final[base] = False
        self._watch.at_most("states", len(rules.is_final), place)

    # ------------------------------------------------------------------------------ errors

    def _empty_language(self, alive: Sequence[bool], alive_rules: list[bool]) -> EmptyLanguageError:
        """Name the terminal or rule that every text would need and none can have."""
        graphs, rule, seen = self._graphs, 0, {0}
        while True:
            blamed: set[int] = set()
            order = [graphs.starts[rule]]
            reached = set(order)
            for state in order:  # grows while it is read
                targets = list(graphs.empty.get(state, ()))
                for symbol, target in graphs.edges[state]:
                    if alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol]:
                        targets.append(target)
                    else:
                        blamed.add(symbol)
                for target in targets:
                    if target not in reached:
                        reached.add(target)
                        order.append(target)
            terminals = sorted(symbol for symbol in blamed if symbol >= 0)
            if terminals:
                terminal = self._graphs.grammar.terminals[terminals[0]]
                return EmptyLanguageError(
                    f"No text satisfies the spec: nothing matches {terminal.name!r}.",
                    pointer=terminal.pointer,
                )
            called = [-1 - symbol for symbol in sorted(blamed, reverse=True) if -1 - symbol not in seen]
            if not called:
                name = self._graphs.names[rule] or self._graphs.grammar.start
                message = f"No text satisfies the spec: rule {name!r} "
                message += "never comes to an end." if blamed else "has no alternative."
                return EmptyLanguageError(message, pointer=self._graphs.grammar.pointers.get(name))
            rule = called[0]
            seen.add(rule)
