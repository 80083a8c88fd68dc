"""The lazily built tables of one compiled spec, and the calls into the kernels.

An `Arena` owns the header and every array the kernels write; arrays grow by the protocol described
in ``kernels``. Matcher states are plain integers that mean something in their arena only.

An arena is mutable but never changes an answer, so threads may share it: a lock is held around each
kernel call, and kernels run without the GIL.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from constrain.grammars.errors import EmptyLanguageError, LimitExceededError
from constrain.grammars.limits import Limits
from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index import native
from constrain.tokenizer_index.growing_tables import BLOCK, FILLED, FIRST, INT32, MEMOS, OFFSET_TABLES
from constrain.tokenizer_index.network import Network
from constrain.tokenizer_index.shared_tables import Scratch, address_of, shared_tables
from constrain.tokenizer_index.special_tokens import first_virtual_byte
from constrain.tokenizer_index.trie import VocabularyIndex, build_index

# Work units (about a microsecond each) between two looks at the clock.
_ALLOWANCE = 100_000
_MOST_ALLOWANCE = 32 * _ALLOWANCE
_NOTHING = np.zeros((0, 1), np.int64)
_NO_TERMINAL = 1 << 40
_Run: TypeAlias = Callable[[int, int, int, int, int, int], int]

_NETWORK = (
    (k.EDGE_TARGET, "edge_target"),
    (k.EDGE_GUARD, "edge_guard"),
    (k.EDGE_ACTION, "edge_action"),
    (k.TERM_OFF, "terminal_offsets"),
    (k.TERM_SYMBOL, "terminal_symbol"),
    (k.TERM_TARGET, "terminal_target"),
    (k.RULE_OFF, "rule_offsets"),
    (k.RULE_SYMBOL, "rule_symbol"),
    (k.RULE_TARGET, "rule_target"),
    (k.IS_FINAL, "is_final"),
    (k.RULE_OF, "rule_of"),
    (k.RULE_START, "rule_start"),
    (k.IGNORED, "ignored"),
    (k.IGNORED_LIST, "ignored_terminals"),
    (k.BARRED_ROW, "blocked_row"),
    (k.BARRED, "blocked"),
)
# Dotted states with a value are added to these.
_DOTTED = (
    k.TERM_OFF,
    k.TERM_SYMBOL,
    k.TERM_TARGET,
    k.RULE_OFF,
    k.RULE_SYMBOL,
    k.RULE_TARGET,
    k.IS_FINAL,
    k.RULE_OF,
)
_LINES = (
    (k.S_NEWLINE, "newline"),
    (k.S_INDENT, "indent"),
    (k.S_DEDENT, "dedent"),
    (k.S_INNER_NEWLINE, "inner_newline"),
)
_MINUS, _ZERO, _ONE, _FRESH_TERMINAL, _RECORDER_TERMINAL, _WORD = (
    np.array([v], np.int32) for v in (-1, 0, 1, -2, -3, k.IS_WORD)
)


@dataclass(frozen=True, slots=True)
class ArenaOptions:
    """Switches for tests; the answers are the same whatever they say.

    Parameters
    ----------
    initial_capacity : int or None
        First size of every growing table, ``None`` for sensible ones.
    use_mask_memo, use_visit_memo, use_slices, split_entries, use_canon : bool
        Remember whole masks; remember closed visits; use the vocabulary's slice; build entries per
        terminal and of like ones; share entries between counts.
    split_size, sparse_size : int or None
        Smallest walk, in trie nodes, that is replaced by entries of other states; most tokens that an entry lists.
        ``None`` for sensible ones.
    """

    initial_capacity: int | None = None
    use_mask_memo: bool = True
    use_visit_memo: bool = True
    use_slices: bool = True
    split_entries: bool = True
    use_canon: bool = True
    split_size: int | None = None
    sparse_size: int | None = None


class ArenaFull(LimitExceededError):
    """The arena reached its limit of bytes or states; where there is more to do, a new one is started."""

    def __init__(self, limit: str, value: float) -> None:
        super().__init__(limit, value, "the tables of one spec")


class EmptyTerminals(Exception):
    """Conjunctions without members; the grammar must be flattened again without these terminals."""

    def __init__(self, terminals: list[int]) -> None:
        super().__init__(terminals)
        self.terminals = terminals


class Arena:
    """Interned states and memoised masks of one spec and one vocabulary.

    Parameters
    ----------
    network : Network
    index : VocabularyIndex
    limits : Limits
    options : ArenaOptions
        For tests.

    Raises
    ------
    EmptyTerminals
        Some conjunctions have no member; `without_terminals` makes a network that says so.
    LimitExceededError
        Deciding that took too long.
    """

    def __init__(
        self,
        network: Network,
        index: VocabularyIndex,
        limits: Limits | None = None,
        *,
        options: ArenaOptions | None = None,
    ) -> None:
        self.network = network
        self.index = index
        self.limits = limits or Limits()
        self.options = options or ArenaOptions()
        self.n_bytes = 0
        self.budget: Any = None
        """The costs of this arena's states, if somebody made them."""
        self.holes: dict[int, str] = {}
        """Terminals that stand for parts of the grammar that are not written out yet (`constrain.lazy_tools`)."""
        self.holes_at: dict[int, tuple[str, ...]] = {}
        """The holes at each state that was asked for."""
        self.lock = threading.Lock()
        self._shared = shared_tables(index)
        self._scratch: Scratch | None = None
        self._arrays: dict[int, NDArray[Any]] = {}
        self._header = np.zeros(k.HEADER_SIZE, np.int64)
        self._h = self.header_address = address_of(self._header)
        self._out = np.zeros(1, np.int64)
        kernels = native.load()
        far = kernels.far
        self._run = kernels.run
        self._run_costs = kernels.run_costs
        self._cost_quick = kernels.cost_quick
        self._fits_quick = kernels.fits_quick
        self._advance_quick = kernels.advance_quick
        self._fill_quick = kernels.fill_quick
        self._accepting_quick = kernels.accepting_quick
        self._rehash_sets = kernels.rehash_sets
        self._rehash_memo = kernels.rehash_memo
        self._header[k.S_FAR : k.S_FAR + len(far)] = far
        self._put_vocabulary()
        self._put_network()
        self._put_tables()
        self._make_elements()
        self.start = self._call(k.OP_START)
        if self.start < 0:
            raise EmptyLanguageError("no text matches")

    @property
    def n_states(self) -> dict[str, int]:
        """How many lexer, parser and matcher states there are so far."""
        tables = {"lexer states": k.L_OFF, "parser states": k.P_OFF, "matcher states": k.D_OFF}
        return {name: int(self._header[k.USED + table]) for name, table in tables.items()}

    # -------------------------------------------------------------------------------- set-up

    def _set(self, table: int, array: NDArray[Any], used: int | None = None) -> None:
        header = self._header
        self._arrays[table] = array
        header[table] = address_of(array)
        header[k.CAPACITY + table] = array.size
        header[k.USED + table] = array.size if used is None else used

    def _array(self, table: int) -> NDArray[Any]:
        """Return a growing table: its own array, or its first part of the common block."""
        found = self._arrays.get(table)
        if found is None:
            offset, size = BLOCK.place[table]
            words = self._block[offset : offset + (size if table not in INT32 else size // 2)]
            found = self._arrays[table] = words.view(np.int32) if table in INT32 else words
        return found

    def _put_vocabulary(self) -> None:
        header, index = self._header, self.index
        for table, address, size in self._shared.columns:
            header[table] = address
            header[k.CAPACITY + table] = size
            header[k.USED + table] = size
        header[k.USED + k.DUPLICATES] = len(index.duplicates)
        header[k.S_WORDS] = index.n_words
        header[k.S_TRIES] = len(index.trie_base)
        header[k.S_LONGEST] = index.max_token_length
        header[k.S_LAYERS] = self._shared.n_layers if self.options.use_slices else 0
        header[k.S_SLICE_STATES] = len(index.slice_table)
        header[k.S_USE_SLICES] = self.options.use_slices
        header[k.S_USE_MEMO] = self.options.use_mask_memo
        header[k.S_USE_VISITS] = self.options.use_visit_memo
        header[k.S_USE_SPLIT] = self.options.split_entries
        header[k.S_USE_CANON] = self.options.use_canon
        # A list of tokens beats a dense row up to about a quarter of the row's size.
        sparse, split = self.options.sparse_size, self.options.split_size
        header[k.S_SPARSE] = min(1024, max(32, index.n_words)) if sparse is None else sparse
        header[k.S_SPLIT_SIZE] = 1500 if split is None else split
        header[k.S_LIVENESS] = self.limits.liveness
        header[k.S_LEXER_STATES] = self.limits.lexer_states
        header[k.S_MASK_SLOTS] = max(1, self.limits.mask_bytes // (4 * index.n_words))
        header[k.S_WORK_LIMIT] = _ALLOWANCE

    def _put_network(self) -> None:
        header, network = self._header, self.network
        n = network.n_positions
        low = network.edge_low
        high = network.edge_high
        cuts = np.zeros(257, np.bool_)
        cuts[low] = True
        cuts[high + 1] = True
        cuts[self._shared.slice_cuts] = True
        recorded = network.recorded
        has_texts = bool(recorded.any())
        if has_texts:
            cuts[:256] = True
        cuts[0] = False
        classes = np.cumsum(cuts[:256], dtype=np.uint8)
        cuts[0] = cuts[256] = True
        first = np.flatnonzero(cuts[:256])
        n_classes = len(first)
        self.classes = classes
        self.n_classes = n_classes
        self._set(k.CLASS_OF, classes)
        self._set(k.RULE_MARK, np.zeros(network.n_rules, np.int64))
        self._set(k.TERM_MARK, np.zeros(network.n_terminals + 1, np.int64))
        self._set(k.SLICE_ROW, np.ascontiguousarray(self.index.slice_table[:, first], np.int32))
        # All int32 arrays in one buffer. More positions mark a lexeme that has not begun, the text of one, and
        # texts that are excluded: they have no edges; ends of conjunctions' literals accept one more terminal.
        minus, zero, one = _MINUS, _ZERO, _ONE
        ends = np.array([network.n_terminals], np.int32)
        pieces: list[tuple[int, tuple[NDArray[np.int32], ...]]] = [
            (k.CLASS_BYTE, (np.where(cuts[first + 1], first, -1).astype(np.int32),)),
            (k.EDGE_LOW, (classes[low].astype(np.int32),)),
            (k.EDGE_HIGH, (classes[high].astype(np.int32),)),
            (k.EDGE_OFF, (network.edge_offsets, *[network.edge_offsets[-1:]] * k.N_MARKS)),
            (k.ACCEPT, (network.accept, minus, minus, ends)),
            (k.IS_HUB, (network.is_hub, zero, zero, _WORD)),
            (k.COUNT_MIN, (network.count_min, *[zero] * k.N_MARKS)),
            (k.COUNT_MAX, (network.count_max, *[minus] * k.N_MARKS)),
            (k.DISTANCE, (network.distance, *[one] * k.N_MARKS)),
            (k.POSITION_TERMINAL, (network.position_terminal, _FRESH_TERMINAL, _RECORDER_TERMINAL, ends)),
            (k.RECORDED, (recorded, zero)),
            (k.PRIORITY, (network.priority, zero)),
            (k.GREEDY, (network.greedy, zero)),
            (k.HAS_FOLLOW, (_has_follow(network),)),
            *((table, (getattr(network, name),)) for table, name in _NETWORK),
        ]
        lines = network.lines
        header[k.S_INDENT] = header[k.S_DEDENT] = -1
        if lines is not None:
            pieces += [(k.LINE_FLAGS, (lines.flags,)), (k.RULE_INSIDE, (lines.is_inside,))]
            header[k.S_TAB], header[k.S_SPANNING] = lines.tab, lines.is_spanning
        for scalar, name in _LINES:
            header[scalar] = -1 if lines is None else getattr(lines, name)
        # One more terminal stands for the ends of conjunctions' literals.
        header[k.S_LINE] = _NO_TERMINAL if lines is None else network.n_terminals + 1
        header[k.S_AFTER_NEWLINE : k.S_AFTER_DEDENT + 1] = -1
        flat = [array for _, arrays in pieces for array in arrays]
        self._network_buffer = np.concatenate(flat, dtype=np.int32)
        place = address_of(self._network_buffer)
        for table, arrays in pieces:
            size = sum(map(len, arrays))
            header[table] = place
            header[k.CAPACITY + table] = size
            header[k.USED + table] = size
            place += 4 * size
        if len(network.parameters):
            self._put_parameters()
        header[k.S_DOTTED] = network.n_dotted
        header[k.S_CLASSES] = n_classes
        header[k.S_FRESH] = n
        header[k.S_POSITIONS] = n + k.N_MARKS
        header[k.S_TEXT] = network.n_terminals + 1 if has_texts else _NO_TERMINAL
        header[k.S_TERMINALS] = network.n_terminals
        header[k.S_LEADING] = network.ignored_leading
        header[k.S_TRAILING] = network.ignored_trailing
        most = network.ignored_most
        header[k.S_IGNORED_MOST] = 1 if most is None else most
        header[k.S_IGNORED_STEP] = most is not None
        header[k.S_START_NULLABLE] = network.start_nullable
        header[k.S_STARTS] = network.n_starts

    def _put_parameters(self) -> None:
        network = self.network
        for table, name in (
            (k.TERM_ACTION, "terminal_action"),
            (k.TERM_BEHIND, "terminal_target"),
            (k.RULE_ACTION, "rule_action"),
            (k.RULE_BEHIND, "rule_target"),
            (k.VALUE_OF, "value_of"),
            (k.PARAMETER, "parameters"),
            (k.ELEMENTS, "parameter_sets"),
        ):
            self._set(table, np.ascontiguousarray(getattr(network, name)))
        for table, name in _NETWORK:
            if table in _DOTTED:
                self._set(table, getattr(network, name).copy())
        # Edges to dotted states with a value, from such without: their targets are made when first needed.
        for table, offsets, name in (
            (k.TERM_TARGET, network.terminal_offsets, "terminal_target"),
            (k.RULE_TARGET, network.rule_offsets, "rule_target"),
        ):
            targets = getattr(network, name)
            sources = np.repeat(np.arange(network.n_dotted), np.diff(offsets))
            begins = (network.value_of[targets] >= 0) & (network.value_of[sources] < 0)
            self._array(table)[begins] = -1 - np.flatnonzero(begins)

    def _put_tables(self) -> None:
        header = self._header
        tiny = self.options.initial_capacity
        for table in (k.L_ROW, k.D_ROW):
            rows = 64 if self.network.n_positions < 64 else 256
            self._set(table, np.empty(tiny if tiny is not None else rows * self.n_classes, np.int32), 0)
        if tiny is None:
            self._block = np.empty(BLOCK.n_words, np.int64)
            self._block[: BLOCK.n_filled] = -1
            self._block[BLOCK.first_offsets] = 0
            header[BLOCK.tables] = BLOCK.offsets + address_of(self._block)
            header[k.CAPACITY + BLOCK.tables] = BLOCK.sizes
        else:
            for table in FIRST:
                size = _power(tiny) * MEMOS.get(table, 1) if table in FILLED else tiny
                dtype = np.int32 if table in INT32 else np.int64
                self._set(table, np.full(size, -1, dtype), 0)
            for table in OFFSET_TABLES:
                self._array(table)[:1] = 0
        self.n_bytes = 8 * BLOCK.n_words if tiny is None else 0
        # Set 0 of nodes is the whole vocabulary: no walk makes it, since lexemes end below first bytes.
        roots = self._shared.roots
        for table, need in ((k.T_OFF, 2), (k.T_POOL, len(roots)), (k.T_SIZE, 1)):
            while self._array(table).size < need:
                header[k.S_GROW_TABLE], header[k.S_GROW_NEED] = table, need
                self._grow()
        self._array(k.T_OFF)[1] = header[k.USED + k.T_POOL] = len(roots)
        self._array(k.T_POOL)[: len(roots)] = roots
        self._array(k.T_SIZE)[0] = self.index.n_nodes << 2 | 1
        header[k.USED + k.T_OFF] = 1

    def _make_elements(self) -> None:
        network = self.network
        starts = network.starts.astype(np.int64)
        offsets = network.start_offsets
        if len(network.literal_negative):
            values: list[int] = []
            new_offsets = [0]
            empty: list[int] = []
            plain, places = starts.tolist(), offsets.tolist()
            for t, (first, last) in enumerate(pairwise(network.literal_offsets.tolist())):
                if first == last:
                    values += plain[places[t] : places[t + 1]]
                else:
                    value = self._element(t, first, last)
                    if value >= 0:
                        values.append(value)
                    else:
                        empty.append(t)
                new_offsets.append(len(values))
            if empty:
                raise EmptyTerminals(empty)
            starts = np.array(values, np.int64)
            offsets = np.array(new_offsets, np.int32)
        if network.lines is not None:
            starts, offsets = _with_lines(network.lines.newline, starts, offsets)
        self._set(k.START_POOL, starts if starts.size else np.zeros(1, np.int64))
        self._set(k.START_OFF, np.ascontiguousarray(offsets, np.int32))

    def _element(self, terminal: int, first: int, last: int) -> int:
        """Return the lexer value of a Boolean terminal's start, or -1 where its language is empty."""
        network = self.network
        literals = np.empty(last - first, np.int64)
        for i in range(first, last):
            a, b = network.literal_start_offsets[i], network.literal_start_offsets[i + 1]
            starts = network.literal_starts[a:b].astype(np.int64)
            state = self._call(k.OP_MAKE_LEXER, address_of(starts), len(starts))
            literals[i - first] = state << 1 | int(network.literal_negative[i])
        literals = np.concatenate(
            (np.sort(literals[literals & 1 == 0]), np.sort(literals[literals & 1 == 1]))
        )
        return self._call(k.OP_SET_STARTS, terminal, address_of(literals), len(literals))

    # -------------------------------------------------------------------------------- kernels

    def _call(self, op: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        """Run one operation, growing tables as it asks."""
        with self.lock:
            return self._run_on(self._run, op, a, b, c, d)

    def _run_on(self, run: _Run, op: int, a: int, b: int, c: int, d: int, until: float = 0.0) -> int:
        """Run an operation to its end, up to the moment ``until`` (0: a step from now)."""
        header = self._header
        header[k.S_WORK] = 0
        begun = time.monotonic()
        r = run(op, self._h, a, b, c, d)
        if r > k.GROW or r == k.SEARCH:
            return r
        deadline = until or begun + self.limits.step_seconds
        allowance = float(_ALLOWANCE)
        try:
            while r <= k.GROW and r != k.SEARCH:
                if r == k.GROW:
                    self._grow()
                elif r == k.TICK:
                    now = time.monotonic()
                    if now > deadline:
                        raise LimitExceededError("step_seconds", self.limits.step_seconds, "the mask engine")
                    # A search begins again from nothing, so it gets more time before the next look, but hardly more
                    # than there is left, as fast as it went so far.
                    left = allowance * (deadline - now) / max(now - begun, 1e-6)
                    allowance = min(2 * allowance, _MOST_ALLOWANCE, 1.1 * left + _ALLOWANCE / 50)
                    begun = now
                    header[k.S_WORK] = 0
                    header[k.S_WORK_LIMIT] = int(allowance)
                elif r == k.FAULT:
                    raise IndexError("a kernel read or wrote outside its tables")
                elif header[k.S_LIMIT] == k.LIMIT_LEXER_STATES:
                    raise ArenaFull("lexer_states", self.limits.lexer_states)
                else:
                    raise LimitExceededError("liveness", self.limits.liveness, "a conjunction of patterns")
                r = run(op, self._h, a, b, c, d)
        finally:
            header[k.S_WORK_LIMIT] = _ALLOWANCE
            header[k.S_WALK_KEY] = 0
        return r

    def call_costs(
        self,
        op: int,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        *,
        table: int = -1,
        width: int = 1,
        until: float = 0.0,
    ) -> tuple[int, NDArray[np.int64]]:
        """Run an operation on costs; return its result and as many rows of ``table``, if one is named.

        ``until`` is the moment (of ``time.monotonic``) at which the call that asks has lasted too long.
        The result is `SEARCH` where the cost of a state (in S_STUCK) must be searched for.
        """
        shared = self._shared
        with self.lock:
            scratch = self._scratch = shared.borrow()
            try:
                self._header[k.S_SCRATCH] = scratch.address
                r = self._run_on(self._run_costs, op, a, b, c, 0, until)
                if r == k.SEARCH:
                    return r, self._header[k.S_STUCK : k.S_STUCK + 1].copy()
                if table < 0 or r <= 0:
                    return r, _NOTHING
                return r, self._arrays[table][: width * r].reshape(r, width).copy()
            finally:
                self._scratch = None
                shared.give_back(scratch)

    def known_cost(self, state: int) -> int:
        """Return ``cost << 1 | is exact`` of a state, or -1 if it is not known yet."""
        with self.lock:
            r: int = self._cost_quick(self._h, state)
        return r

    def is_within(self, state: int, limit: int) -> bool:
        """Is it known that no token after ``state`` needs more than ``limit`` further tokens?"""
        with self.lock:
            r: int = self._fits_quick(self._h, state, limit)
        return r == 1

    def add_tables(
        self, tables: dict[int, tuple[NDArray[Any], int | None]], *, is_shared: bool = False
    ) -> None:
        """Give tables that only some arenas need: arrays, and how much of each is in use (None: all)."""
        with self.lock:
            for table, (array, used) in tables.items():
                self._set(table, array, used)
                self.n_bytes += 0 if is_shared else array.nbytes

    def write(self, table: int, values: NDArray[Any], first: int = 0) -> None:
        """Overwrite part of a table given by `add_tables`."""
        with self.lock:
            self._arrays[table][first : first + len(values)] = values

    def set_scalar(self, scalar: int, value: int) -> None:
        """Write a scalar of the header."""
        self._header[scalar] = value

    def _grow(self) -> None:
        """Make the table that a kernel asked for larger."""
        header = self._header
        table = int(header[k.S_GROW_TABLE])
        if table >= k.N_TABLES:
            assert self._scratch is not None
            self._scratch.grow(table - k.N_TABLES, int(header[k.S_GROW_NEED]))
            return
        old = self._array(table)
        need = int(header[k.S_GROW_NEED])
        # Small tables are passed quickly where there is much to do.
        size = max(need, (4 if old.nbytes <= 8192 else 2) * old.size)
        if table in (k.MASKS, k.E_MASK):
            # What is not written yet takes no memory, and rows are dear to copy.
            size = max(need, 2 * old.size, (64 if table == k.E_MASK else 32) * self.index.n_words)
        dtype = old.dtype
        if table not in MEMOS and table not in FILLED:
            # Near the limit, what is left counts: larger steps would give up with half of it unused.
            left = (self.limits.arena_bytes - self.n_bytes) // dtype.itemsize
            size = max(need, min(size, old.size + left // 4))
        n_bytes = self.n_bytes + (size - old.size) * dtype.itemsize
        if n_bytes > self.limits.arena_bytes:
            raise ArenaFull("arena_bytes", self.limits.arena_bytes)
        if table in MEMOS:
            stride = MEMOS[table]
            slots = _power(size // stride)
            new = np.full(slots * stride, -1, dtype)
            self._rehash_memo(address_of(old), old.size // stride, address_of(new), slots, stride)
        elif table in FILLED:
            new = np.full(_power(size), -1, dtype)
            sets = table - 2
            self._rehash_sets(
                int(header[sets]),
                int(header[sets + 1]),
                int(header[k.USED + sets]),
                address_of(new),
                new.size,
            )
        else:
            new = np.empty(size, dtype)
            new[: old.size] = old
            if old.size == 0 and table in OFFSET_TABLES:
                new[0] = 0
        self.n_bytes += new.nbytes - old.nbytes
        self._arrays[table] = new
        header[table] = address_of(new)
        header[k.CAPACITY + table] = new.size
        if table == k.OPEN:
            # Slots moved: list them afresh, so that the next mask can clear them.
            self._set(k.OPEN_SLOTS, np.flatnonzero(new >= 0).astype(np.int64), None)

    # -------------------------------------------------------------------------------- answers

    def advance(self, state: int, token_id: int) -> int:
        """Return the state after a token, or -1 where it is not allowed. ``token_id`` must be in range."""
        with self.lock:
            r: int = self._advance_quick(self._h, state, token_id)
        if r != k.UNFILLED:
            return r
        return self._call(k.OP_ADVANCE_TOKEN, state, token_id)

    def step_bytes(self, state: int, data: bytes) -> tuple[int, int]:
        """Return (state after ``data`` or -1, number of bytes that could be read)."""
        if self.network.special_tokens:
            # Their spelling is not text.
            end = first_virtual_byte(data)
            if end >= 0:
                _, n = self.step_bytes(state, data[:end])
                return -1, n
        if not data:
            return state, 0
        buffer = np.frombuffer(data, np.uint8)
        count = np.zeros(1, np.int64)
        r = self._call(k.OP_ADVANCE_BYTES, state, address_of(buffer), len(data), address_of(count))
        return r, int(count[0])

    def is_accepting(self, state: int) -> bool:
        """May the text end in ``state``?"""
        with self.lock:
            r: int = self._accepting_quick(self._h, state)
        if r < 0:
            r = self._call(k.OP_ACCEPTING, state)
        return r == 1

    def fill_mask(self, state: int, address: int) -> None:
        """Write the mask of ``state`` to ``n_words`` int32 at ``address``."""
        with self.lock:
            if self._fill_quick(self._h, state, address) == 1:
                return
            shared = self._shared
            scratch = self._scratch = shared.borrow()
            try:
                self._header[k.S_SCRATCH] = scratch.address
                self._run_on(self._run, k.OP_FILL_MASK, state, address, 0, 0)
            finally:
                self._scratch = None
                shared.give_back(scratch)

    def mask(self, state: int) -> NDArray[np.uint32]:
        """Return the mask of ``state``: (n_words,) uint32, bit ``v % 32`` of word ``v // 32``."""
        row = np.zeros(self.index.n_words, np.uint32)
        self.fill_mask(state, address_of(row))
        return row

    def live_bytes(self, state: int) -> NDArray[np.bool_]:
        """Return which of the 256 bytes can come next: (256,) bool."""
        out = np.zeros(self.n_classes, np.int32)
        self._call(k.OP_LIVE_CLASSES, state, address_of(out))
        return np.asarray(out[self.classes] != 0)

    def forced_bytes(self, state: int, most: int = 256) -> tuple[bytes, int]:
        """Return (bytes that must come next, state after them): while one byte can come and nothing ends."""
        out = np.zeros(max(most, 1), np.int32)
        count = np.zeros(1, np.int64)
        r = self._call(k.OP_FORCED_BYTES, state, address_of(out), most, address_of(count))
        return bytes(out[: int(count[0])].astype(np.uint8)), r

    def configurations(self, state: int) -> list[tuple[int, int]]:
        """Return the (parser state, lexer state) pairs of a matcher state."""
        off, pool = self._array(k.D_OFF), self._array(k.D_POOL)
        return [(int(v) >> 32, int(v) & k.LOW32) for v in pool[int(off[state]) : int(off[state + 1])]]

    def live_terminals(self, state: int) -> list[int]:
        """Return the terminals in progress in ``state``, or that may start there."""
        with self.lock:
            network = self.network
            found: set[int] = set()
            l_off, l_pool = self._array(k.L_OFF), self._array(k.L_POOL)
            el_off, el_pool = self._array(k.EL_OFF), self._array(k.EL_POOL)
            n = network.n_positions + k.N_MARKS
            for _, lexer in self.configurations(state):
                for v in l_pool[int(l_off[lexer]) : int(l_off[lexer + 1])]:
                    x = int(v) & k.LOW32
                    if x >= n:
                        found.add(int(el_pool[int(el_off[x - n])]))
                    elif x < network.n_positions:
                        found.add(int(network.position_terminal[x]))
            return sorted(found)

    def rules_in_progress(self, state: int) -> list[int]:
        """Return the rules that have begun in ``state`` and may go on with a terminal in progress, in order."""
        network = self.network
        live = set(self.live_terminals(state))
        found: set[int] = set()
        with self.lock:
            off, pool = self._array(k.P_OFF), self._array(k.P_POOL)
            dots, values = self._array(k.DOT_POOL), network.n_dotted
            for p, _ in self.configurations(state):
                for item in pool[int(off[p]) : int(off[p + 1])]:
                    dot = int(item) >> 32
                    if dot >= values:
                        dot = int(dots[2 * (dot - values)])
                    first, last = network.terminal_offsets[dot], network.terminal_offsets[dot + 1]
                    called = network.rule_offsets[dot + 1] > network.rule_offsets[dot]
                    if called or not live.isdisjoint(network.terminal_symbol[first:last].tolist()):
                        found.add(int(network.rule_of[dot]))
        return sorted(found)

    def statistics(self) -> dict[str, int]:
        """Return how many states of each kind exist, and bytes in use."""
        header = self._header
        return {
            "lexer_states": int(header[k.USED + k.L_OFF]),
            "elements": int(header[k.USED + k.EL_OFF]),
            "parser_states": int(header[k.USED + k.P_OFF]),
            "matcher_states": int(header[k.USED + k.D_OFF]),
            "entries": int(header[k.USED + k.E_ATTR]),
            "dense_entries": int(header[k.USED + k.E_MASK]),
            "remembered_masks": int(header[k.USED + k.MASKS]),
            "bytes": self.n_bytes,
        }


def _with_lines(
    newline: int, starts: NDArray[np.int64], offsets: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Let the newline's first position ask for what any newline may be: of no width, wider, or the same."""
    first, last = offsets[newline], offsets[newline + 1]
    if first == last:
        return starts, offsets
    asked = [starts[first] | mode << (32 + k.MODE_SHIFT) for mode in (k.EXACT, k.WIDER, k.SAME)]
    moved = offsets.copy()
    moved[newline + 1 :] += len(asked) - 1
    return np.concatenate((starts[:first], asked, starts[last:])).astype(np.int64), moved


def _power(n: int) -> int:
    """Smallest power of two that is at least ``n``."""
    return 1 << max(0, n - 1).bit_length()


def _has_follow(network: Network) -> NDArray[np.int32]:
    """1 for terminals after which another lexeme may come; a cheap upper estimate on large networks."""
    n = network.n_terminals
    answer = np.ones(n + 1, np.int32)
    if len(network.terminal_symbol) > 16 or network.ignored_trailing or network.lines is not None:
        return answer
    targets = network.terminal_target.tolist()
    term_off, rule_off = network.terminal_offsets.tolist(), network.rule_offsets.tolist()
    rule_of, is_final = network.rule_of.tolist(), network.is_final.tolist()
    goes_on = [term_off[d] != term_off[d + 1] or rule_off[d] != rule_off[d + 1] for d in range(len(rule_of))]
    rule_goes_on = [False] * network.n_rules
    # For each rule, those that a rule which calls it last ends with.
    last: list[list[int]] = [[] for _ in rule_goes_on]
    found = []
    for rule, d in zip(network.rule_symbol.tolist(), network.rule_target.tolist(), strict=True):
        if goes_on[d]:
            found.append(rule)
        if is_final[d]:
            last[rule_of[d]].append(rule)
    for rule in found:  # grows while it is read
        if not rule_goes_on[rule]:
            rule_goes_on[rule] = True
            found += last[rule]
    answer[:] = 0
    for t, d in zip(network.terminal_symbol.tolist(), targets, strict=True):
        if goes_on[d] or (is_final[d] and rule_goes_on[rule_of[d]]):
            answer[t] = 1
    # Ignored text may come between lexemes, so it is always followed by one.
    answer[network.ignored_terminals] = 1
    return answer


@lru_cache(maxsize=1)
def _byte_index() -> VocabularyIndex:
    data = np.arange(256, dtype=np.uint8)
    offsets = np.concatenate((np.arange(257), np.array([256]))).astype(np.int64)
    return build_index(data, offsets, np.array([256], np.int32))


def byte_arena(network: Network, limits: Limits | None = None) -> Arena:
    """Return an arena whose tokens are the 256 bytes: for texts, without a tokenizer."""
    return Arena(network, _byte_index(), limits)
