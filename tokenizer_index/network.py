"""A grammar flattened to arrays: byte automaton of all terminals, transition network of all rules.

`build_network(grammar, watch)` is independent of any tokenizer.

Byte automaton (the lexer)
--------------------------
Positions are numbered from 0; there are no empty edges. A *lexer value* is the integer
``count << 32 | position``: positions inside a counted repeat carry the number of completed
rounds of its body, all others carry 0. A counted repeat ``body{m,n}`` has one *hub* position and the
positions of its body; each of them has ``count_min = m`` and ``count_max = n`` (-1: no limit).

An edge from value ``(k, x)`` on byte ``b`` exists if ``edge_low <= b <= edge_high`` and its guard
holds; it leads to position ``edge_target`` with the count its action gives:

guard 0  always
guard 1  another round may start: ``count_max[x] < 0 or k < count_max[x]`` (only on hubs)
guard 2  the repeat may be left: ``k >= count_min[x]`` (only on hubs)

action -1 (KEEP)  same count
action -2 (INC)   ``k + 1``, but not above ``count_min[y]`` where ``count_max[y] < 0`` (y the target)
action c >= 0     the count c

A position accepts terminal ``accept[x]`` (-1: none); a hub only if also ``k >= count_min[x]``.
Everything dead is trimmed: each position can reach acceptance.

Boolean terminals (an `Intersection`) have no start positions of their own; each literal of theirs
is a plain automaton whose positions accept the pseudo-terminal ``n_terminals`` instead. The literals
of terminal ``t`` are rows ``literal_offsets[t] .. literal_offsets[t + 1]`` of ``literal_negative`` and
of ``literal_start_offsets``, which points into ``literal_starts``.

Transition network (the parser)
-------------------------------
Rules are numbered; rule 0 is the augmented start, whose only body is the grammar's start rule. Each
rule is a deterministic automaton over terminals and rules without empty edges (nullable rules are
inlined as alternatives); its states are *dotted states*, numbered consecutively. No rule matches the
empty string: its first state is never final, and ``start_nullable`` alone tells of the empty text. From
every dotted state the end of its rule can be reached. Dotted states of a rule with a parameter, other than its
first and the one behind its end, stand for one state for each of the parameter's values: an edge's action says
how it changes the value and which values it is there for (`parameters`, `ir.StateMachine`). Rules that the grammar doesn't have are named
after those they were cut from: "object (continued)", "array (repeated)".
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.errors import EmptyLanguageError, SpecError, UnsupportedFeatureError
from constrain.grammars.ir import Grammar, Terminal
from constrain.grammars.limits import Watch
from constrain.tokenizer_index.fragment import INC, KEEP, N_EDGE_COLUMNS, N_POSITION_COLUMNS, Fragment
from constrain.tokenizer_index.greedy import provably_greedy
from constrain.tokenizer_index.layout import IGNORED_OPEN
from constrain.tokenizer_index.lexeme import Lexeme, compile_terminal
from constrain.tokenizer_index.lexeme_walk import LexemeWalk
from constrain.tokenizer_index.lines import LineRules, LineTables
from constrain.tokenizer_index.parameters import RECORDS
from constrain.tokenizer_index.parameters import arrays as parameter_arrays
from constrain.tokenizer_index.realisable import Realisable, may_nest, realisable
from constrain.tokenizer_index.rule_graphs import RuleGraphs
from constrain.tokenizer_index.special_tokens import BEGIN, named_in
from constrain.tokenizer_index.transition_network import Rules, flatten
from constrain.tokenizer_index.unwritten import StillReadError, may_be_missed, without_bytes

__all__ = ["INC", "KEEP", "Int32", "Network", "build_network"]

# So many rounds of so many bytes are more texts than anyone reads.
_MANY = 16
_ALL_BYTES = (1 << 256) - 1

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Flat arrays of a grammar; int32 unless said otherwise. See the module text.

    Parameters
    ----------
    edge_offsets : (n_positions + 1,)
    edge_low, edge_high, edge_target, edge_guard, edge_action : (n_edges,)
        ``edge_low`` and ``edge_high`` are bytes.
    accept : (n_positions,)
        Terminal, ``n_terminals`` for an end of a Boolean literal, or -1.
    is_hub : (n_positions,)
        1 on hubs.
    count_min, count_max : (n_positions,)
        0 and -1 outside counted repeats.
    distance : (n_positions,)
        Fewest bytes to acceptance, counts ignored.
    position_terminal : (n_positions,)
        The terminal a position belongs to.
    start_offsets, starts : (n_terminals + 1,), (n,)
        First positions of plain terminals (with count 0); none for Boolean terminals, nor for
        terminals that no text needs.
    literal_offsets, literal_negative, literal_start_offsets, literal_starts
        Boolean terminals, as in the module text.
    terminal_offsets, terminal_symbol, terminal_target : (n_dotted + 1,), (n,), (n,)
        Network edges on terminals, sorted by symbol within each dotted state.
    rule_offsets, rule_symbol, rule_target : (n_dotted + 1,), (n,), (n,)
        Network edges on rules.
    is_final, rule_of : (n_dotted,)
        End of rule; the rule of a dotted state.
    rule_start : (n_rules,)
        First dotted state of each rule.
    priority, greedy, ignored : (n_terminals,)
        ``greedy`` is set where the front end asked for it or where it provably changes nothing.
        ``ignored`` is `layout.IGNORED_OPEN` where a terminal may need an ignored one behind it: it is never the last of
        ``ignored_most`` in a row.
    ignored_terminals : (n,)
    ignored_leading, ignored_trailing : bool
    ignored_most : int or None
        Ignored lexemes in a row; None: any number.
    start_nullable : bool
        The empty text is in the language.
    n_starts : int
        So many dotted states, from 0, are first ones of the augmented start: alternatives that are read apart.
    terminal_names, terminal_pointers, terminal_is_blank : tuple
    rule_names : tuple of str
    is_lexing_proven : bool
        No text is lost to a greedy terminal or to one of higher priority.
    unsound : tuple of (int, int) or None
        A terminal behind which it isn't known that every text can be finished, and one that may not follow it.
    blocked_row, blocked : (n_terminals,), (n_rows * n_terminals,)
        For some ignored terminals a row of ``blocked``, else -1. Such a terminal is read only where one is
        expected whose flag in that row is 0, or where the text may end after it.
    terminal_action, rule_action : (n,), (n,)
        Actions of edges; empty where no rule has a parameter, like the following.
    value_of : (n_dotted,)
        The parameter whose value a dotted state has, or -1.
    parameters, parameter_sets : (n * parameters.COLUMNS,), (n,) int64
        A row for each parameter, and the words of sets.
    lines : LineTables or None
        Where indentation counts.
    special_tokens : tuple of str or int
        Special tokens that the grammar names.
    """

    edge_offsets: Int32
    edge_low: Int32
    edge_high: Int32
    edge_target: Int32
    edge_guard: Int32
    edge_action: Int32
    accept: Int32
    is_hub: Int32
    count_min: Int32
    count_max: Int32
    distance: Int32
    position_terminal: Int32
    start_offsets: Int32
    starts: Int32
    literal_offsets: Int32
    literal_negative: Int32
    literal_start_offsets: Int32
    literal_starts: Int32
    terminal_offsets: Int32
    terminal_symbol: Int32
    terminal_target: Int32
    rule_offsets: Int32
    rule_symbol: Int32
    rule_target: Int32
    is_final: Int32
    rule_of: Int32
    rule_start: Int32
    priority: Int32
    greedy: Int32
    ignored: Int32
    ignored_terminals: Int32
    ignored_leading: bool
    ignored_trailing: bool
    ignored_most: int | None
    start_nullable: bool
    terminal_names: tuple[str, ...]
    terminal_pointers: tuple[str | None, ...]
    terminal_is_blank: tuple[bool, ...]
    rule_names: tuple[str, ...]
    is_lexing_proven: bool
    unsound: tuple[int, int] | None
    blocked_row: Int32
    blocked: Int32
    terminal_action: Int32
    rule_action: Int32
    value_of: Int32
    parameters: Int64
    parameter_sets: Int64
    n_starts: int
    lines: LineTables | None = None
    special_tokens: tuple[str | int, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Can what is read byte by byte be finished, as far as it depends on how lexemes are read?"""
        return self.unsound is None

    @property
    def recorded(self) -> Int32:
        """(n_terminals,) not 0 for terminals some of whose lexemes must differ; 2 if it surely has enough of them."""
        found = np.zeros(self.n_terminals, np.int32)
        if len(self.terminal_action):
            for t in set(self.terminal_symbol[self.terminal_action >= RECORDS].tolist()):
                found[t] = 1 + self._has_many(t)
        return found

    def _has_many(self, terminal: int) -> bool:
        """Has ``terminal`` surely more texts than can be read? A single plain part that repeats, and few are excluded."""
        first, last = self.literal_offsets[terminal : terminal + 2]
        if first == last:
            return self._repeats(self.starts[self.start_offsets[terminal] : self.start_offsets[terminal + 1]])
        positive = [k for k in range(first, last) if not self.literal_negative[k]]
        parts = [
            self.literal_starts[self.literal_start_offsets[k] : self.literal_start_offsets[k + 1]]
            for k in range(first, last)
        ]
        return len(positive) == 1 and all(
            self._repeats(part) != bool(self.literal_negative[first + i]) for i, part in enumerate(parts)
        )

    def _repeats(self, starts: Int32) -> bool:
        """Is there a cycle without a bound, or one of many rounds and bytes, among positions after ``starts``?"""
        is_open: dict[int, bool] = {}  # of positions that were met: is one that leads here still to be left?
        for start in starts.tolist():
            stack = [(start, int(self.edge_offsets[start]))]
            while stack:
                x, e = stack.pop()
                if e == self.edge_offsets[x]:
                    if x in is_open:
                        if is_open[x]:
                            return True
                        continue
                    is_open[x] = True
                if e == self.edge_offsets[x + 1]:
                    is_open[x] = False
                    continue
                stack.append((x, e + 1))
                y = int(self.edge_target[e])
                is_wide = self.edge_high[e] - self.edge_low[e] >= _MANY
                if is_wide and self.count_max[x] >= _MANY and self.edge_guard[e] == 1:
                    return True
                is_round = self.is_hub[y] == 1 and self.count_max[y] >= 0 and self.edge_action[e] == INC
                if self.distance[y] >= 0 and not is_round:
                    stack.append((y, int(self.edge_offsets[y])))
        return False

    @property
    def n_positions(self) -> int:
        """Number of positions of the byte automaton."""
        return len(self.accept)

    @property
    def n_terminals(self) -> int:
        """Number of terminals."""
        return len(self.priority)

    @property
    def n_dotted(self) -> int:
        """Number of dotted states."""
        return len(self.is_final)

    @property
    def n_rules(self) -> int:
        """Number of rules, the augmented start among them."""
        return len(self.rule_start)


def build_network(grammar: Grammar, watch: Watch, lost: bytes = b"") -> Network:
    """Flatten ``grammar``.

    Parameters
    ----------
    grammar : Grammar
    watch : Watch
    lost : bytes
        Bytes, rising, that no text may hold; the network is that of the texts without them.

    Raises
    ------
    EmptyLanguageError
        No text is in the language (as far as plain terminals tell; conjunctions are judged later).
    UnsupportedFeatureError
        Lexemes may fuse or hide one another so that texts of rules that nest can't be finished.
    SpecError
        The grammar refers to a rule or terminal that it doesn't have.
    LimitExceededError
        More positions, states or seconds than the limits allow.
    StillReadError
        Bytes are lost, and where lexemes end might depend on texts that hold them.
    """
    most = grammar.ignored.most
    if most is not None and most < 0:
        raise SpecError(f"At most {most} ignored lexemes in a row; expected 0 or more, or None.")
    found = _build(grammar, watch, lost, counts=True) or _build(grammar, watch, lost, counts=False)
    if found is None:
        raise UnsupportedFeatureError(
            "elements in any order",
            reason="is not supported where lexemes may fuse or hide one another",
            hint="Let the elements have a fixed order.",
        )
    return found


def _build(grammar: Grammar, watch: Watch, lost: bytes, *, counts: bool) -> Network | None:
    """Return the network, or ``None`` if rules with parameters stand in the way of a proof."""
    n_terminals = len(grammar.terminals)
    most = grammar.ignored.most
    lines = None
    if grammar.indentation is not None:
        lines = LineRules(grammar, grammar.indentation, watch)
        grammar = lines.grammar
        n_terminals = len(grammar.terminals)
    graphs = RuleGraphs(grammar, watch, counts=counts)
    lexemes: list[Lexeme | None] = [None] * n_terminals
    for t in graphs.used.union(grammar.ignored.terminals):
        if not 0 <= t < n_terminals:
            raise SpecError(f"The grammar ignores terminal {t}, but has {n_terminals} terminals.")
        if lines is None or not lines.is_mark(t):
            lexemes[t] = compile_terminal(grammar.terminals[t], watch)
    if most is not None:
        for t in graphs.used.intersection(grammar.ignored.terminals):
            _refuse_alike(grammar.terminals[t], grammar.terminals[t])
    greedy: set[int] = set()
    if lost:
        greedy.update(t for t, terminal in enumerate(grammar.terminals) if terminal.greedy)
        greedy.update(() if lines is None else lines.longest())
        left = without_bytes(lexemes, greedy, lost, watch)
        if left is None:
            raise StillReadError
        lexemes = left
    alive = [lexeme is not None and lexeme.alive for lexeme in lexemes]
    if lines is not None:
        marks = lines.indentation
        alive[marks.indent] = alive[marks.dedent] = True
        newline = lexemes[marks.newline]
        if newline is not None:
            lexemes[marks.newline] = lines.measure(newline)
    nullable = [lexeme is not None and lexeme.nullable for lexeme in lexemes]
    cut: set[int] | None = set() if lost else None
    rules = flatten(graphs, alive, nullable, watch, cut)
    if cut and may_be_missed(grammar.terminals, lexemes, cut, greedy):
        raise StillReadError
    if lines is not None:
        lines.check(rules)
    kept = set(rules.terminal_symbol).union(grammar.ignored.terminals)
    lexemes = [lexeme if t in kept else None for t, lexeme in enumerate(lexemes)]
    network = _assemble(grammar, rules, lexemes, lines, watch)
    if network is None or lines is None:
        return network
    return lines.complete(network, rules, lexemes)


def _refuse_alike(terminal: Terminal, ignored: Terminal) -> None:
    """Raise where one lexeme might be ignored text and a symbol at once.

    A parser state can't say both of its last lexeme, so the bound on ignored text would be lost.
    """
    if terminal.priority == ignored.priority:
        raise UnsupportedFeatureError(
            terminal.name,
            pointer=terminal.pointer,
            reason="may begin like ignored text, which needs ignored text that may repeat",
            hint="Let ignored text follow ignored text, or give one of them a higher priority.",
        )


def _assemble(
    grammar: Grammar, rules: Rules, lexemes: list[Lexeme | None], lines: LineRules | None, watch: Watch
) -> Network | None:
    n_terminals = len(lexemes)
    fragments: list[Fragment] = []
    owners: list[int] = []
    ends: list[int] = []
    bases: list[int] = []
    starts: list[int] = []
    start_offsets, literal_offsets, negative = [0], [0], []
    literal_starts: list[int] = []
    first, after, inner = [0] * n_terminals, [0] * n_terminals, [0] * n_terminals
    n_positions = 0
    for t, lexeme in enumerate(lexemes):
        if lexeme is not None and lexeme.alive:
            first[t] = after[t] = inner[t] = _ALL_BYTES
            for is_negative, fragment in lexeme.literals:
                fragments.append(fragment)
                owners.append(t)
                bases.append(n_positions)
                if lexeme.is_plain:
                    ends.append(t)
                    starts.append(n_positions)
                else:
                    ends.append(n_terminals)
                    literal_starts.append(n_positions)
                    negative.append(int(is_negative))
                if not is_negative:
                    first[t] &= fragment.first
                    after[t] &= fragment.after
                    inner[t] &= fragment.inner
                n_positions += fragment.n_positions
        start_offsets.append(len(starts))
        literal_offsets.append(len(literal_starts))
    watch.at_most("positions", n_positions, "the terminals together")
    ignored = [t for t in grammar.ignored.terminals if first[t]]
    proven = provably_greedy(rules, first, after, inner, ignored, grammar.ignored.most, watch)
    is_ignored = [0] * n_terminals
    for t in ignored:
        is_ignored[t] = 1
    if grammar.ignored.most is not None:
        for i in ignored:
            for t in range(n_terminals):
                if first[t] & first[i] and not is_ignored[t]:
                    _refuse_alike(grammar.terminals[t], grammar.terminals[i])

    terminals = grammar.terminals
    greedy = [terminal.greedy or free for terminal, free in zip(terminals, proven, strict=True)]
    is_lexing_proven = _is_lexing_proven(terminals, lexemes, proven)
    # Only their order counts, and tables hold small numbers.
    ranks = {value: rank for rank, value in enumerate(sorted({t.priority for t in terminals}))}
    priority = [ranks[terminal.priority] for terminal in terminals]
    marks = None
    if lines is not None:
        priority = lines.priorities(priority)
        for t in lines.longest():
            greedy[t] = True
        marks = lines.marks(rules)
    found = Realisable(None, None, {}, frozenset())
    if not is_lexing_proven or lines is not None:
        if rules.parameters:
            # What is realisable is looked for without regard to values.
            return None
        walked = lexemes if lines is None else lines.unmeasured(lexemes)
        walk = LexemeWalk(walked, priority, greedy, watch)
        found = realisable(rules, walk, replace(grammar.ignored, terminals=tuple(ignored)), watch, marks)
        if found.dead_end is not None and may_nest(rules):
            first_of, following = (terminals[t] for t in found.dead_end)
            raise fused(first_of.name, following.name, first_of.pointer)
        if found.dead_end is not None and found.is_empty:
            raise never_read(*(terminals[t] for t in found.dead_end))
    for b in found.is_open:
        is_ignored[b] = IGNORED_OPEN
    blocked_row = [-1] * n_terminals
    for row, b in enumerate(found.blocked):
        blocked_row[b] = row
    table = _Table(
        owners,
        ends,
        bases,
        [fragment.n_positions for fragment in fragments],
        [fragment.n_edges for fragment in fragments],
        start_offsets,
        starts,
        literal_offsets,
        negative,
        range(len(literal_starts) + 1),
        literal_starts,
        rules.terminal_offsets,
        rules.terminal_symbol,
        rules.terminal_target,
        rules.rule_offsets,
        rules.rule_symbol,
        rules.rule_target,
        rules.is_final,
        rules.rule_of,
        rules.rule_start,
        priority,
        greedy,
        is_ignored,
        ignored,
        blocked_row,
        [int(bits >> t & 1 or not first[t]) for bits in found.blocked.values() for t in range(n_terminals)],
        rules.terminal_action,
        rules.rule_action,
        rules.value_of,
    )
    parameters, parameter_sets = parameter_arrays(rules.parameters)
    owner, end, base, sizes, n_edges = (table.next() for _ in range(5))
    positions = _columns([fragment.positions for fragment in fragments], N_POSITION_COLUMNS)
    edges = _columns([fragment.edges for fragment in fragments], N_EDGE_COLUMNS)
    edges[2] += np.repeat(base, n_edges)
    edge_offsets = np.zeros(n_positions + 1, np.int32)
    np.cumsum(positions[0], out=edge_offsets[1:])
    return Network(
        edge_offsets=edge_offsets,
        edge_low=edges[0],
        edge_high=edges[1],
        edge_target=edges[2],
        edge_guard=edges[3],
        edge_action=edges[4],
        accept=np.where(positions[1], np.repeat(end, sizes), np.int32(-1)),
        is_hub=positions[2],
        count_min=positions[3],
        count_max=positions[4],
        distance=positions[5],
        position_terminal=np.repeat(owner, sizes),
        start_offsets=table.next(),
        starts=table.next(),
        literal_offsets=table.next(),
        literal_negative=table.next(),
        literal_start_offsets=table.next(),
        literal_starts=table.next(),
        terminal_offsets=table.next(),
        terminal_symbol=table.next(),
        terminal_target=table.next(),
        rule_offsets=table.next(),
        rule_symbol=table.next(),
        rule_target=table.next(),
        is_final=table.next(),
        rule_of=table.next(),
        rule_start=table.next(),
        priority=table.next(),
        greedy=table.next(),
        ignored=table.next(),
        ignored_terminals=table.next(),
        ignored_leading=grammar.ignored.leading,
        ignored_trailing=grammar.ignored.trailing,
        ignored_most=grammar.ignored.most,
        start_nullable=rules.start_nullable,
        terminal_names=tuple([terminal.name for terminal in terminals]),
        terminal_pointers=tuple([terminal.pointer for terminal in terminals]),
        terminal_is_blank=tuple([terminal.is_blank for terminal in terminals]),
        rule_names=tuple(rules.rule_names),
        is_lexing_proven=is_lexing_proven,
        unsound=found.problem,
        blocked_row=table.next(),
        blocked=table.next(),
        n_starts=rules.n_starts,
        special_tokens=_special_tokens(grammar.terminals, lexemes),
        terminal_action=table.next(),
        rule_action=table.next(),
        value_of=table.next(),
        parameters=np.array(parameters, np.int64),
        parameter_sets=np.array(parameter_sets, np.int64),
    )


def fused(name: str, following: str, pointer: str | None) -> UnsupportedFeatureError:
    """Return the error of a grammar that nests and in which it isn't known which texts can be finished."""
    return UnsupportedFeatureError(
        name,
        pointer=pointer,
        reason=f"is read as far as it goes, so that what must follow ({following!r}) may not be possible",
        hint="Let ignored text or another terminal stand between them, or let the terminal end anywhere.",
    )


def never_read(first: Terminal, following: Terminal) -> EmptyLanguageError:
    """Return the error of a grammar whose every text would need ``following`` where it is never read."""
    return EmptyLanguageError(
        f"No text matches: {first.name!r} is read as far as it goes, so that what must follow "
        f"({following.name!r}) is never read.",
        pointer=first.pointer,
        hint="Let ignored text or another terminal stand between them, or let the terminal end anywhere.",
        subject=first.name,
    )


def _is_lexing_proven(
    terminals: tuple[Terminal, ...], lexemes: list[Lexeme | None], proven: list[bool]
) -> bool:
    used = [t for t, lexeme in enumerate(lexemes) if lexeme is not None and lexeme.alive]
    if len({terminals[t].priority for t in used}) > 1:
        return False
    return all(proven[t] or not terminals[t].greedy for t in used)


def _special_tokens(terminals: tuple[Terminal, ...], lexemes: list[Lexeme | None]) -> tuple[str | int, ...]:
    patterns = [
        terminal.pattern
        for terminal, lexeme in zip(terminals, lexemes, strict=True)
        if lexeme is not None
        and any((fragment.first | fragment.inner) >> BEGIN & 1 for _, fragment in lexeme.literals)
    ]
    return named_in(patterns) if patterns else ()


class _Table:
    """Rows of integers as slices of one array, since making an array costs more than filling it."""

    def __init__(self, *rows: Sequence[int]) -> None:
        values = array("i")
        for row in rows:
            values.extend(row)
        self._values = np.frombuffer(values, np.int32) if values else np.zeros(0, np.int32)
        self._lengths = iter([len(row) for row in rows])
        self._read = 0

    def next(self) -> Int32:
        """Return the next row."""
        begin = self._read
        self._read += next(self._lengths)
        return self._values[begin : self._read]


def _columns(parts: list[bytes], n: int) -> Int32:
    """Return the columns of the int32 tables of ``n`` columns in ``parts`` as contiguous rows."""
    return np.frombuffer(b"".join(parts), np.int32).reshape(-1, n).T.copy()
