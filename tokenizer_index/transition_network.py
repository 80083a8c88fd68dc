"""Rules to a transition network: one deterministic automaton over symbols for each rule.

`flatten` takes the graphs of the rules, and which terminals match anything and which the empty string. It

1. finds nullable rules, and lets every reference to something nullable be passed by an empty edge;
2. turns a rule's call of itself as its last symbol into a loop;
3. keeps the edges from which the end of the rule can be reached, by symbols that match something
   other than the empty string;
4. cuts long runs of optional parts (`long_runs`);
5. determinises each rule that is still reachable; those with a parameter stay as they are (`parameters`).

Where alternatives are read apart, the augmented start has a first state for each of them, numbered from 0.

The first state of a rule never ends it, since the empty string is accounted for where the rule is
referred to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from constrain.grammars.errors import EmptyLanguageError, SpecError
from constrain.grammars.ir import CLOSE, COUNT, KEEP, Parameter
from constrain.grammars.limits import Watch
from constrain.tokenizer_index import parameters
from constrain.tokenizer_index.long_runs import split_runs
from constrain.tokenizer_index.rule_graphs import RuleGraphs, reach
from constrain.tokenizer_index.state_sets import SET_ELEMENTS, StateSets

# Graphs up to this size have no long runs.
_FEW_STATES = 48
_STATES_PER_CHECK = 64
_NO_CLASHES: dict[int, list[int]] = {}
# Passes over undecided states before they are followed one by one.
_SWEEPS = 4


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
    terminal_action: list[int]
    rule_action: list[int]
    parameters: list[parameters.FlatParameter]
    value_of: list[int]
    n_starts: int = 1


def flatten(
    graphs: RuleGraphs,
    alive: Sequence[bool],
    nullable: Sequence[bool],
    watch: Watch,
    cut: set[int] | None = None,
) -> Rules:
    """Return the transition network.

    Parameters
    ----------
    graphs : RuleGraphs
        Changed in place.
    alive : (n_terminals,)
        The terminal matches something other than the empty string.
    nullable : (n_terminals,)
        The terminal matches the empty string.
    cut : set of int or None
        Gets the live terminals that are left out somewhere, because what must follow them there is dead; perhaps
        some that are not.

    Raises
    ------
    EmptyLanguageError
        No text is in the language.
    LimitExceededError
        More states or time than allowed.
    """
    return _Flattener(graphs, watch).flatten(alive, nullable, cut)


class _Flattener:
    def __init__(self, graphs: RuleGraphs, watch: Watch) -> None:
        self._graphs = graphs
        self._watch = watch

    def flatten(self, alive: Sequence[bool], nullable: Sequence[bool], cut: set[int] | None) -> Rules:
        empty_rules = self._nullable_rules(nullable)
        self._skip_nullable(empty_rules, nullable)
        self._loop_own_calls()
        level, alive_rules = self._productive(alive)
        if not alive_rules[0] and not empty_rules[0]:
            raise self._empty_language(alive, alive_rules)
        if cut is not None:
            cut |= self._cut_terminals(alive, level)
        self._prune(alive, level, alive_rules)
        rules = self._determinise(level, empty_rules[0], alive, alive_rules)
        return _with_starts_apart(rules) if self._graphs.grammar.is_apart else rules

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
        graphs = self._graphs
        for source, edges in enumerate(graphs.edges):
            for symbol, target in edges:
                if not (terminals[symbol] if symbol >= 0 else rules[-1 - symbol]):
                    continue
                if (source, symbol, target) not in graphs.actions:
                    graphs.skip(source, target)
        for rule, parameter in graphs.parameters.items():
            # Where rounds may be empty, no number of other rounds is too small.
            is_empty = [
                terminals[symbol] if symbol >= 0 else rules[-1 - symbol]
                for source in graphs.bounds[rule]
                for symbol, _ in graphs.edges[source]
            ]
            if any(is_empty):
                if rule not in graphs.counted:
                    message = f"rule {graphs.names[rule]!r} has a parameter, and a part that may be empty."
                    raise SpecError(message)
                graphs.parameters[rule] = replace(parameter, least=1)

    def _loop_own_calls(self) -> None:
        """Replace calls of a rule by itself, where nothing follows, by empty edges to its start."""
        for rule, source in self._graphs.own_calls:
            if rule in self._graphs.parameters:
                continue
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
        edges, empty = self._graphs.edges, self._graphs.empty
        level = [0] * len(edges)
        for state in self._graphs.finals:
            level[state] = 1
        for state, targets in empty.items():
            if 1 in map(level.__getitem__, targets):
                level[state] = 1
        alive_rules = [False] * len(self._graphs.starts)
        rule_of_start = {start: rule for rule, start in enumerate(self._graphs.starts)}
        pending = list(range(len(edges)))
        for _ in range(_SWEEPS):
            # Rules and states are mostly used before they are read, so going backwards settles most.
            pending.reverse()
            is_settled, undecided = True, []
            for state in pending:
                best = known = level[state]
                for symbol, target in edges[state]:
                    if level[target] and (alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol]):
                        best = 2
                        break
                else:
                    for target in empty.get(state, ()):
                        best = max(best, level[target])
                if best == 2 and state in rule_of_start:
                    rule = rule_of_start[state]
                    if self._is_possible(rule, alive, level, alive_rules):
                        alive_rules[rule] = True
                    else:
                        best = known
                if best < 2:
                    undecided.append(state)
                if best > known:
                    level[state] = best
                    is_settled = False
            self._watch.step("productive rules", len(pending))
            if is_settled:
                return level, alive_rules
            pending = undecided
        self._settle(alive, level, alive_rules)
        return level, alive_rules

    def _is_possible(
        self, rule: int, alive: Sequence[bool], level: list[int], alive_rules: list[bool]
    ) -> bool:
        """Can a rule's parameter, if it has one, have a last value?"""
        graphs = self._graphs
        parameter = graphs.parameters.get(rule)
        if parameter is None:
            return True
        usable, is_free = self._usable(rule, parameter, alive, level, alive_rules)
        return parameters.is_possible(parameter, usable, is_free)

    def _usable(
        self,
        rule: int,
        parameter: Parameter,
        alive: Sequence[bool],
        level: list[int],
        alive_rules: list[bool],
    ) -> tuple[int, bool]:
        """Return the bits of the elements that a text may have, and whether others may be counted."""
        graphs = self._graphs
        found, is_free = 0, False
        for source in graphs.bounds[rule]:
            for symbol, target in graphs.edges[source]:
                action = graphs.actions[source, symbol, target]
                is_alive = alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol]
                if is_alive and level[target] and (action >= 0 or action == COUNT):
                    is_free = is_free or action == COUNT
                    found |= 1 << action if action >= 0 else 0
        self._watch.step("productive rules", len(graphs.bounds[rule]))
        return parameters.with_needs(parameter, found), is_free

    def _settle(self, alive: Sequence[bool], level: list[int], alive_rules: list[bool]) -> None:
        """Raise levels until none can be raised; a state waits for the rules its edges call."""
        graphs = self._graphs
        before: dict[int, list[tuple[int, int]]] = {}
        skipped: dict[int, list[int]] = {}
        for source, edges in enumerate(graphs.edges):
            for symbol, target in edges:
                before.setdefault(target, []).append((symbol, source))
        for source, targets in graphs.empty.items():
            for target in targets:
                skipped.setdefault(target, []).append(source)
        rule_of_start = {start: rule for rule, start in enumerate(graphs.starts)}
        waiting: dict[int, list[int]] = {}
        tasks = [state for state, known in enumerate(level) if known]
        held: set[int] = set()
        while tasks or held:
            if not tasks:
                # Starts of rules with a parameter wait until it can have a last value.
                ready = [s for s in held if self._is_possible(rule_of_start[s], alive, level, alive_rules)]
                if not ready:
                    break
                held.difference_update(ready)
                for state in ready:
                    level[state] = 2
                tasks += ready
            state = tasks.pop()
            raised: list[int] = []
            if level[state] == 2 and state in rule_of_start:
                rule = rule_of_start[state]
                alive_rules[rule] = True
                raised += waiting.pop(rule, ())
            for symbol, source in before.get(state, ()):
                if alive[symbol] if symbol >= 0 else alive_rules[-1 - symbol]:
                    raised.append(source)
                elif symbol < 0:
                    waiting.setdefault(-1 - symbol, []).append(source)
            for source in raised:
                if level[source] == 2:
                    continue
                if rule_of_start.get(source) in graphs.parameters:
                    held.add(source)
                else:
                    level[source] = 2
                    tasks.append(source)
            for source in skipped.get(state, ()):
                if level[source] < level[state]:
                    level[source] = level[state]
                    tasks.append(source)
            self._watch.step("productive rules", 1 + len(raised))

    def _cut_terminals(self, alive: Sequence[bool], level: list[int]) -> set[int]:
        """Return live terminals that are left out somewhere, because what must follow them there is dead."""
        graphs = self._graphs
        if all(alive[t] for t in graphs.used):
            return set()
        found: set[int] = set()
        called: set[int] = set()
        for start in graphs.starts:
            order, seen = [start], {start}
            for state in order:  # grows while it is read
                edges = [edge for edge in graphs.edges[state] if edge[0] < 0 or alive[edge[0]]]
                for symbol, target in edges:
                    if not level[target]:
                        (found if symbol >= 0 else called).add(symbol if symbol >= 0 else -1 - symbol)
                for target in (*(target for _, target in edges), *graphs.empty.get(state, ())):
                    if target not in seen:
                        seen.add(target)
                        order.append(target)
            self._watch.step("terminals that are cut off", len(order))
        tasks = list(called)
        while tasks:
            for state in graphs.bounds[tasks.pop()]:
                for symbol, _ in graphs.edges[state]:
                    if symbol >= 0:
                        found.add(symbol)
                    elif -1 - symbol not in called:
                        called.add(-1 - symbol)
                        tasks.append(-1 - symbol)
        return {t for t in found if alive[t]}

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

    def _determinise(
        self, level: list[int], start_nullable: bool, alive: Sequence[bool], alive_rules: list[bool]
    ) -> Rules:
        rules = Rules([0], [], [], [0], [], [], [], [], [], [], start_nullable, [], [], [], [])
        numbers = {0: 0}  # of rules, in order of discovery
        n_read = len(self._graphs.starts)
        order = [0]
        for rule in order:  # grows while it is read
            parameter = self._graphs.parameters.get(rule)
            if parameter is not None:
                usable, _ = self._usable(rule, parameter, alive, level, alive_rules)
                self._append_parametrised(rule, parameter, usable, numbers, order, rules)
                continue
            if len(self._graphs.bounds[rule]) > _FEW_STATES and rule < n_read:
                split_runs(self._graphs, rule, level, self._watch)
            self._determinise_rule(rule, numbers, order, rules)
        if rules.parameters:
            n = len(rules.rule_of)
            rules.value_of.extend([-1] * (n - len(rules.value_of)))
            rules.terminal_action.extend([KEEP] * (len(rules.terminal_symbol) - len(rules.terminal_action)))
            rules.rule_action.extend([KEEP] * (len(rules.rule_symbol) - len(rules.rule_action)))
        return rules

    def _determinise_rule(self, rule: int, numbers: dict[int, int], order: list[int], rules: Rules) -> None:
        """Append the deterministic automaton of ``rule`` to ``rules``, and new rules to ``order``."""
        edges, final, start = self._graphs.edges, self._graphs.finals[rule], self._graphs.starts[rule]
        base, place = len(rules.rule_of), f"rule {self._graphs.names[rule]!r}"
        sets = StateSets(self._graphs, rule, self._watch)
        after = sets.after
        first = after.get(start, start)
        states = [first]
        index = {} if sets.ends(first) else {first: base}
        terminal_symbol, terminal_target = rules.terminal_symbol, rules.terminal_target
        size, checked = base, base
        for state in states:  # grows while it is read
            row = edges[state] if isinstance(state, int) else [edge for s in state for edge in edges[s]]
            clashes = _NO_CLASHES
            if len(row) > 1:
                moves = dict(row)
                if len(moves) < len(row):
                    clashes = _clashes(row)
                row = sorted(moves.items())
            calls = []
            for symbol, target in row:
                reached = sets.after_all(clashes[symbol]) if symbol in clashes else after.get(target, target)
                at = index.get(reached)
                if at is None:
                    at = index[reached] = base + len(states)
                    states.append(reached)
                    size += 1 if isinstance(reached, int) else 1 + len(reached) // SET_ELEMENTS
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
            if size > checked:
                checked = size + _STATES_PER_CHECK
                self._watch.at_most("states", size, place)
                self._watch.step(place, _STATES_PER_CHECK)
        rules.rule_start.append(base)
        rules.rule_names.append(self._graphs.names[rule])
        rules.rule_of.extend([numbers[rule]] * len(states))
        rules.is_final.extend([s == final if isinstance(s, int) else final in s for s in states])
        rules.is_final[base] = False

    def _append_parametrised(
        self,
        rule: int,
        parameter: Parameter,
        usable: int,
        numbers: dict[int, int],
        order: list[int],
        rules: Rules,
    ) -> None:
        """Append the automaton of a rule with a parameter to ``rules``, and new rules to ``order``."""
        graphs, start, final = self._graphs, self._graphs.starts[rule], self._graphs.finals[rule]
        base, place = len(rules.rule_of), f"rule {graphs.names[rule]!r}"
        rules.value_of.extend([-1] * (base - len(rules.value_of)))
        rules.terminal_action.extend([KEEP] * (len(rules.terminal_symbol) - len(rules.terminal_action)))
        rules.rule_action.extend([KEEP] * (len(rules.rule_symbol) - len(rules.rule_action)))
        index, states = {start: base}, [start]
        number = len(rules.parameters)
        edges: list[tuple[int, int, int, int]] = []  # source, symbol, target, action
        valueless = {base}
        for state in states:  # grows while it is read
            terminal_edges, calls = [], []
            for symbol, target in dict.fromkeys(graphs.edges[state]):
                action = graphs.actions[state, symbol, target]
                if action >= 0 and not usable >> action & 1:
                    continue
                if target not in index:
                    index[target] = base + len(states)
                    states.append(target)
                if action == CLOSE:
                    valueless.add(index[target])
                edges.append((index[state], symbol, index[target], action))
                if (state, symbol, target) in graphs.distinct:
                    action = parameters.RECORDS | (action if action >= 0 else parameters.NO_ELEMENT)
                if symbol >= 0:
                    terminal_edges.append((symbol, index[target], action))
                else:
                    called = -1 - symbol
                    if called not in numbers:
                        numbers[called] = len(order)
                        order.append(called)
                    calls.append((numbers[called], index[target], action))
            for kind, symbols, targets, actions in (
                (terminal_edges, rules.terminal_symbol, rules.terminal_target, rules.terminal_action),
                (calls, rules.rule_symbol, rules.rule_target, rules.rule_action),
            ):
                kind.sort()
                symbols.extend([edge[0] for edge in kind])
                targets.extend([edge[1] for edge in kind])
                actions.extend([edge[2] for edge in kind])
            rules.terminal_offsets.append(len(rules.terminal_symbol))
            rules.rule_offsets.append(len(rules.rule_symbol))
            self._watch.step(place, 1 + len(graphs.edges[state]))
        self._watch.at_most("states", base + len(states), place)
        rules.rule_start.append(base)
        rules.rule_names.append(graphs.names[rule])
        rules.rule_of.extend([numbers[rule]] * len(states))
        rules.is_final.extend([state == final for state in states])
        rules.is_final[base] = False
        rules.value_of.extend([-1 if d in valueless else number for d in index.values()])
        rules.parameters.append(parameters.flat(parameter, usable, edges, place))

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
                    subject=terminal.name,
                )
            called = [-1 - symbol for symbol in sorted(blamed, reverse=True) if -1 - symbol not in seen]
            if not called:
                name = graphs.names[rule] or graphs.grammar.start
                place = graphs.grammar.pointers.get(name)
                if blamed or any(caller == rule for caller, _ in graphs.own_calls):
                    message = f"No text satisfies the spec: rule {name!r} always calls itself again."
                    hint = "Add a way for it to end."
                    return EmptyLanguageError(message, pointer=place, hint=hint, subject=name)
                message = f"No text satisfies the spec: rule {name!r} has no alternative."
                return EmptyLanguageError(message, pointer=place, subject=name)
            rule = called[0]
            seen.add(rule)


def _with_starts_apart(rules: Rules) -> Rules:
    """Return ``rules`` with the first state of the augmented start parted, so that each part calls one rule."""
    n = rules.rule_offsets[1]
    if n < 2:
        return rules
    more = n - 1
    return rules._replace(
        terminal_offsets=[0] * more + rules.terminal_offsets,
        terminal_target=[target + more for target in rules.terminal_target],
        rule_offsets=[*range(n), *rules.rule_offsets[1:]],
        rule_target=[target + more for target in rules.rule_target],
        is_final=[False] * more + rules.is_final,
        rule_of=[0] * more + rules.rule_of,
        rule_start=[0, *(start + more for start in rules.rule_start[1:])],
        value_of=[-1] * more + rules.value_of if rules.parameters else [],
        parameters=[parameters.moved(parameter, more) for parameter in rules.parameters],
        n_starts=n,
    )


def _clashes(edges: list[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the targets of each symbol that leads to several."""
    targets: dict[int, list[int]] = {}
    for symbol, target in dict.fromkeys(edges):
        targets.setdefault(symbol, []).append(target)
    return {symbol: several for symbol, several in targets.items() if len(several) > 1}
