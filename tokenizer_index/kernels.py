"""The compiled kernels of the mask engine; those of costs are in ``cost_kernels``.

Kernels never allocate, never raise and never keep half-written tables. This module needs Numba; programs
don't import it but go through `constrain.tokenizer_index.native`, which compiles it once for each machine.

Memory
------
All state of one compiled spec is behind a *header* (see ``layout``). A kernel gets the header's address as one
integer; ``_view`` makes ``(address, capacity)`` pairs, and ``_get*``/``_put*`` read and write through
them. In the checked build each access is checked against the capacity.

Growth protocol
---------------
A kernel that finds a table too small writes the table's number and the size it needs into the header
and returns ``GROW``. Every function passes a result ``<= GROW`` on at once. The caller in Python makes
the table larger and calls again. This is sound because everything kept is memoised and every insertion
checks room for all it writes before it writes anything: what was finished is found again, what was not
has left no trace. Addresses never change while a kernel runs. ``TICK`` asks, by the same route, for a
look at the clock; ``LIMIT`` reports a limit (its number is in the header).

Words
-----
A *lexer value* is ``count << 32 | position``; a *lexer state* ``l`` an interned set of values; an
*element* an interned tuple (terminal, signed lexer states), addressed as position ``n_positions + e``.
An *item* is ``dotted << 32 | origin + 1``, where ``origin`` is a parser state; a *parser state* ``p`` is an
interned set of items that were shifted over (what they predict lives in the *template*, a function of the
dotted states alone). A *configuration* is ``p << 32 | l``; a *matcher state* ``D`` an interned set of them.
An *entry* belongs to ``(T, l)``, ``T`` an interned set of trie nodes: the tokens that stay inside the lexeme,
and for each accept set ``a`` the node set where the next lexeme starts.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from constrain.grammars.ir import CLOSE, KEEP, MORE
from constrain.tokenizer_index.kernel_memory import VIEW, intrinsic
from constrain.tokenizer_index.kernel_memory import entry_point as _entry_point
from constrain.tokenizer_index.kernel_memory import get8 as _get8
from constrain.tokenizer_index.kernel_memory import get16 as _get16
from constrain.tokenizer_index.kernel_memory import get32 as _get32
from constrain.tokenizer_index.kernel_memory import get64 as _get64
from constrain.tokenizer_index.kernel_memory import header as _header
from constrain.tokenizer_index.kernel_memory import kernel as _kernel
from constrain.tokenizer_index.kernel_memory import product as _product
from constrain.tokenizer_index.kernel_memory import put16 as _put16
from constrain.tokenizer_index.kernel_memory import put32 as _put32
from constrain.tokenizer_index.kernel_memory import put64 as _put64
from constrain.tokenizer_index.kernel_memory import quick as _quick
from constrain.tokenizer_index.kernel_memory import set_header as _set_header
from constrain.tokenizer_index.kernel_memory import view as _view
from constrain.tokenizer_index.layout import (
    A_ATTR,
    A_OFF,
    A_POOL,
    ACCEPT,
    BARRED,
    BARRED_ROW,
    BLOCKED,
    BUCKET_MAX,
    BUF_ACCEPT,
    BUF_CHARS,
    BUF_CONFIG,
    BUF_ELEMENT,
    BUF_ITEMS,
    BUF_KERNEL,
    BUF_LEXER,
    BUF_NODES,
    BUF_PLAIN,
    BUF_SEARCH,
    BUF_SEEN,
    BUF_SPLIT,
    BUF_STACK,
    BUF_TEXT,
    BUF_VALUE,
    C_OFF,
    C_POOL,
    CAPACITY,
    CLASS_BYTE,
    CLASS_OF,
    COUNT_MAX,
    COUNT_MIN,
    D_ATTR,
    D_OFF,
    D_POOL,
    D_ROW,
    DEAD,
    DENSE,
    DISTANCE,
    DOT_OFF,
    DOT_POOL,
    DUPLICATES,
    E_ATTR,
    E_COST,
    E_DENSE,
    E_GROUP_N,
    E_GROUP_OFF,
    E_KIND,
    E_MASK,
    E_STAMP,
    E_STRIDE,
    E_TOK_N,
    E_TOK_OFF,
    EDGE_ACTION,
    EDGE_GUARD,
    EDGE_HIGH,
    EDGE_LOW,
    EDGE_OFF,
    EDGE_TARGET,
    EL_ATTR,
    EL_OFF,
    EL_POOL,
    ELEMENTS,
    ENTRY,
    EOS,
    EXACT,
    FEW_ITEMS,
    FLAG_ELEMENTS,
    FLAG_FRESH,
    FLAG_RECORDS,
    GREEDY,
    GROUPS,
    GROW,
    HAS_FOLLOW,
    IGNORED,
    IGNORED_LIST,
    IGNORED_OPEN,
    IS_FINAL,
    IS_HUB,
    IS_LINE,
    IS_WORD,
    L_ACC,
    L_ATTR,
    L_CANON,
    L_CHARS,
    L_CHARS_OFF,
    L_DIST,
    L_FLAGS,
    L_GREEDY,
    L_MODEL,
    L_OFF,
    L_POOL,
    L_PURE,
    L_ROW,
    L_STRIDE,
    LAYER,
    LAYERS,
    LIMIT,
    LIMIT_LEXER_STATES,
    LIMIT_LIVENESS,
    LINE_BLANK,
    LINE_FLAGS,
    LINE_ZERO,
    LOW32,
    LOW40,
    MASK_OWNER,
    MASKS,
    MODE_SHIFT,
    N_TABLES,
    NODE_TOKEN,
    NODES,
    OP_ACCEPTING,
    OP_ADVANCE_BYTES,
    OP_ADVANCE_TOKEN,
    OP_FILL_MASK,
    OP_FORCED_BYTES,
    OP_LIVE_CLASSES,
    OP_SET_STARTS,
    OP_START,
    OPEN,
    OPEN_SLOTS,
    P_ACCEPTING,
    P_ATTR,
    P_BASE,
    P_CONTEXT,
    P_FLAGS,
    P_HASH,
    P_IGNORED,
    P_LINE,
    P_OFF,
    P_POOL,
    P_SITUATION,
    P_STRIDE,
    P_TEMPLATE,
    PARAMETER,
    PATH,
    POSITION_TERMINAL,
    PRIORITY,
    PT_OFF,
    PT_POOL,
    PX_OFF,
    PX_POOL,
    Q_LEX,
    Q_OFF,
    RECORDED,
    RECORDER,
    RESET,
    RESULT,
    RULE_ACTION,
    RULE_BEHIND,
    RULE_INSIDE,
    RULE_MARK,
    RULE_OF,
    RULE_OFF,
    RULE_START,
    RULE_SYMBOL,
    RULE_TARGET,
    S_AFTER_DEDENT,
    S_AFTER_INDENT,
    S_AFTER_NEWLINE,
    S_BLOCKED,
    S_CLASSES,
    S_DEDENT,
    S_DOTTED,
    S_FAR,
    S_FRESH,
    S_GROW_NEED,
    S_GROW_TABLE,
    S_IGNORED_MOST,
    S_IGNORED_STEP,
    S_INDENT,
    S_INNER_NEWLINE,
    S_LAYERS,
    S_LEADING,
    S_LEXER_STATES,
    S_LIMIT,
    S_LINE,
    S_LIVENESS,
    S_LONGEST,
    S_MARK,
    S_MASK_HAND,
    S_MASK_SLOTS,
    S_NEWLINE,
    S_NEXT,
    S_NEXT_OTHER,
    S_POSITIONS,
    S_REACHED,
    S_SCRATCH,
    S_SEEN,
    S_SPANNING,
    S_SPARSE,
    S_SPLIT_SIZE,
    S_STAMP,
    S_START_NULLABLE,
    S_STARTS,
    S_TAB,
    S_TERMINALS,
    S_TEXT,
    S_TRAILING,
    S_TRIES,
    S_USE_CANON,
    S_USE_MEMO,
    S_USE_SLICES,
    S_USE_SPLIT,
    S_USE_VISITS,
    S_VISITED,
    S_WALK_EXITS,
    S_WALK_KEY,
    S_WALK_TOKENS,
    S_WORDS,
    S_WORK,
    S_WORK_LIMIT,
    SAME,
    SAME_END,
    SLICE_ACCEPT,
    SLICE_POOL,
    SLICE_ROW,
    SPARSE,
    START_OFF,
    START_POOL,
    STEP,
    T_OFF,
    T_POOL,
    T_SIZE,
    TAIL,
    TARGET_SHIFT,
    TERM_ACTION,
    TERM_BEHIND,
    TERM_MARK,
    TERM_OFF,
    TERM_SYMBOL,
    TERM_TARGET,
    TICK,
    TO_POOL,
    TOKEN_DATA,
    TOKEN_OFF,
    TOKENS,
    TOO_WIDE,
    TP_OFF,
    TP_POOL,
    TRIE_BASE,
    TRIE_SIZE,
    TSTEP,
    TX_OFF,
    TX_POOL,
    UNFILLED,
    USED,
    V_ATTR,
    V_OFF,
    V_POOL,
    VAL_OFF,
    VAL_POOL,
    VALUE_OF,
    VISIT,
    WIDER,
    WORD,
    WP_OFF,
    WP_POOL,
    X_EXITS,
    X_MARK,
    X_MERGE,
    X_STACK,
    X_TOKENS,
    XS_OFF,
    XS_POOL,
)
from constrain.tokenizer_index.parameters import (
    COLUMNS,
    NO_ELEMENT,
    PM_BEHIND,
    PM_LEAST,
    PM_MOST,
    PM_NEEDS,
    PM_SETS,
    PM_TAKING,
    PM_WORDS,
    RECORDS,
)

# ------------------------------------------------------------------------------------------ memory


@intrinsic
def scratch_of(typing_context, h, table):
    """Return (address, capacity) of a scratch array."""

    def generate(context, builder, signature, arguments):
        i64 = llvm.IntType(64)
        base = builder.inttoptr(arguments[0], i64.as_pointer())
        place = builder.load(builder.gep(base, [llvm.Constant(i64, S_SCRATCH)]))
        pairs = builder.inttoptr(place, i64.as_pointer())
        first = builder.mul(arguments[1], llvm.Constant(i64, 2))
        address = builder.load(builder.gep(pairs, [first]))
        capacity = builder.load(builder.gep(pairs, [builder.add(first, llvm.Constant(i64, 1))]))
        return cgutils.pack_array(builder, [address, capacity])

    return VIEW(types.int64, types.int64), generate


FAR_FUNCTIONS: list[Callable[..., int]] = []


def _call_far(n_arguments):
    """Make the intrinsic that calls the next far function through its address in the header."""
    i64 = llvm.IntType(64)
    slot = S_FAR + len(FAR_FUNCTIONS)

    def generate(context, builder, signature, arguments):
        base = builder.inttoptr(arguments[0], i64.as_pointer())
        address = builder.load(builder.gep(base, [llvm.Constant(i64, slot)]))
        kind = llvm.FunctionType(i64, [i64] * n_arguments)
        return builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)

    signature = types.int64(*[types.int64] * n_arguments)
    if n_arguments == 2:
        return intrinsic(lambda typing_context, h, a: (signature, generate))
    if n_arguments == 3:
        return intrinsic(lambda typing_context, h, a, b: (signature, generate))
    if n_arguments == 4:
        return intrinsic(lambda typing_context, h, a, b, c: (signature, generate))
    if n_arguments == 5:
        return intrinsic(lambda typing_context, h, a, b, c, d: (signature, generate))
    return intrinsic(lambda typing_context, h, a, b, c, d, e, f: (signature, generate))


def far_function(function):
    """Compile a large function by itself and call it through its address in the header.

    Linked functions are optimised again with each caller, which made the first compilation take minutes;
    a far call costs two loads. All arguments are int64, the header's address first, and so is the result.
    Far functions may call themselves and functions defined further down; ``kernel_build`` compiles them.
    """
    call = _call_far(function.__code__.co_argcount)
    FAR_FUNCTIONS.append(function)
    return call


@_kernel
def ask_for(h, table, size):
    """Ask for a table of at least ``size`` items."""
    _set_header(h, S_GROW_TABLE, table)
    _set_header(h, S_GROW_NEED, size)
    return GROW


@_kernel
def room_for(h, table, size):
    """Return 0 if ``table`` can hold ``size`` items, else GROW."""
    if size > _header(h, CAPACITY + table):
        return ask_for(h, table, size)
    return 0


@_kernel
def _limit(h, number):
    _set_header(h, S_LIMIT, number)
    return LIMIT


@_kernel
def count_work(h, amount):
    """Count work; TICK when the allowance is used up."""
    done = _header(h, S_WORK) + amount
    _set_header(h, S_WORK, done)
    if done > _header(h, S_WORK_LIMIT):
        return TICK
    return 0


@_kernel
def next_stamp(h):
    stamp = _header(h, S_STAMP) + 1
    _set_header(h, S_STAMP, stamp)
    return stamp


@_kernel
def _hash_of(buf, n):
    x = 1469598103934665603
    for i in range(n):
        x = _product(x ^ _get64(buf, i), 1099511628211)
        x ^= (x >> 29) & 0x7FFFFFFFF
    return x


@far_function
def _intern_at(h, t, address, n):
    """Return the id of the ``n`` items at ``address`` in the interned sets at tables ``t`` to ``t + 2``; add it if new."""
    buf = (address, n)
    off = _view(h, t)
    pool = _view(h, t + 1)
    slots = _view(h, t + 2)
    mask = slots[1] - 1
    x = _hash_of(buf, n) & mask
    while True:
        v = _get32(slots, x)
        if v < 0:
            break
        o = _get64(off, v)
        if _get64(off, v + 1) - o == n:
            is_equal = True
            for i in range(n):
                if _get64(pool, o + i) != _get64(buf, i):
                    is_equal = False
                    break
            if is_equal:
                return v
        x = (x + 1) & mask
    count = _header(h, USED + t)
    used = _header(h, USED + t + 1)
    if (count + 1) * 2 > slots[1]:
        return ask_for(h, t + 2, slots[1] * 2)
    r = room_for(h, t, count + 2)
    if r == 0:
        r = room_for(h, t + 1, used + n)
    if r < 0:
        return r
    for i in range(n):
        _put64(pool, used + i, _get64(buf, i))
    _put64(off, count, used)
    _put64(off, count + 1, used + n)
    _put32(slots, x, count)
    _set_header(h, USED + t, count + 1)
    _set_header(h, USED + t + 1, used + n)
    return count


@_kernel
def _intern(h, t, buf, n):
    """Return the id of ``buf[:n]`` in the interned sets at tables ``t`` to ``t + 2``; add it if new."""
    return _intern_at(h, t, buf[0], n)


@_kernel
def slot_of(memo, stride, key):
    """Return the slot that holds ``key``, or the free one where it belongs.

    Keys are pairs ``a << 32 | b`` (or ``a << 33 | b``). Bits of a product depend on no higher bits of the key, so
    the upper half of the first is mixed into the lower one. One product alone would give numbers that follow one
    another, as those of states do, the same slots again and again.
    """
    mask = memo[1] // stride - 1
    x = _product(key, -7046029254386353131)
    x = _product(x ^ ((x >> 32) & LOW32), -4658895280553007687)
    x = (x >> 32) & mask
    while True:
        k = _get64(memo, x * stride)
        if k == key or k < 0:
            return x
        x = (x + 1) & mask


@_kernel
def slot_room(h, table, stride):
    """GROW if one more key would fill the memo more than half."""
    if (_header(h, USED + table) + 1) * 2 * stride > _header(h, CAPACITY + table):
        return ask_for(h, table, 2 * _header(h, CAPACITY + table))
    return 0


@far_function
def _sort_at(h, address, n, spare):
    """Sort ``n`` items at ``address``: insertion for short input, else natural merges through ``spare``."""
    a = (address, n)
    scratch = (spare, n)
    if n <= 32:
        for i in range(1, n):
            v = _get64(a, i)
            j = i - 1
            while j >= 0 and _get64(a, j) > v:
                _put64(a, j + 1, _get64(a, j))
                j -= 1
            _put64(a, j + 1, v)
        return 0
    while True:
        start = 0
        runs = 0
        while start < n:
            mid = start + 1
            while mid < n and _get64(a, mid - 1) <= _get64(a, mid):
                mid += 1
            runs += 1
            if mid == n:
                break
            end = mid + 1
            while end < n and _get64(a, end - 1) <= _get64(a, end):
                end += 1
            for i in range(start, mid):
                _put64(scratch, i - start, _get64(a, i))
            i = 0
            j = mid
            k = start
            length = mid - start
            while i < length:
                if j < end and _get64(a, j) < _get64(scratch, i):
                    _put64(a, k, _get64(a, j))
                    j += 1
                else:
                    _put64(a, k, _get64(scratch, i))
                    i += 1
                k += 1
            start = end
        if runs <= 1:
            return 0


@far_function
def _sort_unique(h, table, n):
    """Sort the first ``n`` items of a buffer and drop repeats; return how many are left, or GROW."""
    buf = _view(h, table)
    if n > 32:
        r = room_for(h, table, 2 * n)
        if r < 0:
            return r
    _sort_at(h, buf[0], n, buf[0] + 8 * n)
    m = 0
    for i in range(n):
        v = _get64(buf, i)
        if m == 0 or v != _get64(buf, m - 1):
            _put64(buf, m, v)
            m += 1
    return m


# ------------------------------------------------------------------------------------------ lexer


@_kernel
def accepted_terminal(h, value):
    """Return the terminal that a lexer value accepts, or -1."""
    x = value & LOW32
    e = x - _header(h, S_POSITIONS)
    if e >= 0:
        off = _view(h, EL_OFF)
        pool = _view(h, EL_POOL)
        attr = _view(h, L_ATTR)
        o = _get64(off, e)
        for j in range(o + 1, _get64(off, e + 1)):
            literal = _get64(pool, j)
            is_accepting = _get32(attr, (literal >> 1) * L_STRIDE + L_ACC) >= 0
            if is_accepting == ((literal & 1) == 1):
                return -1
        return _get64(pool, o)
    t = _get32(_view(h, ACCEPT), x)
    if t >= 0:
        kind = _get32(_view(h, IS_HUB), x)
        if kind == IS_LINE:
            return _accepted_line(h, value)
        if kind == IS_WORD:
            pool = _view(h, WP_POOL)
            k = 2 * (value >> 32)
            return t if _get64(pool, k) << 4 == _get64(pool, k + 1) else -1
        if kind != 0 and (value >> 32) < _get32(_view(h, COUNT_MIN), x):
            return -1
    return t


@_kernel
def _accepted_line(h, value):
    """Return the terminal that a lexer value of a newline accepts at an accepting position, or -1."""
    k = value >> 32
    mode = k >> MODE_SHIFT
    target = (k >> TARGET_SHIFT) & TOO_WIDE
    width = k & TOO_WIDE
    if _get32(_view(h, LINE_FLAGS), value & LOW32) & TAIL == 0:
        return _header(h, S_LINE) + TOO_WIDE if mode == SAME else -1
    if (mode == EXACT and width == target) or (mode == WIDER and target < width < TOO_WIDE):
        return _header(h, S_LINE) + width
    return -1


@_kernel
def named_terminal(h, t):
    """Return the terminal of the grammar that ``t`` is: the newline for all widths of its lines."""
    return t if t < _header(h, S_LINE) else _header(h, S_NEWLINE)


@_kernel
def terminal_of(h, value):
    """Return the terminal that a lexer value belongs to; -2 for the mark of a fresh lexeme, -3 for its text."""
    x = value & LOW32
    e = x - _header(h, S_POSITIONS)
    if e >= 0:
        return _get64(_view(h, EL_POOL), _get64(_view(h, EL_OFF), e))
    return _get32(_view(h, POSITION_TERMINAL), x)


@_kernel
def _text_of(h, values, n):
    """Return the text so far of a lexeme with the lexer values ``values[:n]``, if it is kept, or -1."""
    if _header(h, S_TEXT) == _header(h, S_LINE):
        return -1
    x = _header(h, S_FRESH) + RECORDER
    for i in range(n):
        if _get64(values, i) & LOW32 == x:
            return _get64(values, i) >> 32
    return -1


@far_function
def _accept_set(h, table, n):
    """Intern the accepting terminals of highest priority among values ``buf[:n]``; -1 if there are none."""
    buf = _view(h, table)
    out = _view(h, BUF_ACCEPT)
    priority = _view(h, PRIORITY)
    r = room_for(h, BUF_ACCEPT, n + 1)
    if r < 0:
        return r
    best = -(1 << 40)
    m = 0
    for i in range(n):
        t = accepted_terminal(h, _get64(buf, i))
        if t >= 0:
            # The network gives a newline two more than its own priority, but not if nothing is measured.
            q = _get32(priority, named_terminal(h, t))
            if t == _header(h, S_LINE) + TOO_WIDE:
                q -= 2
            if q > best:
                best = q
                m = 0
            if q == best:
                _put64(out, m, t)
                m += 1
    if m == 0:
        return -1
    m = _sort_unique(h, BUF_ACCEPT, m)
    if m < 0:
        return m
    n_terminals = m
    text = _text_of(h, buf, n)
    if text >= 0:
        recorded = _view(h, RECORDED)
        for i in range(n_terminals):
            if _get32(recorded, _get64(out, i)) != 0:
                _put64(out, m, _header(h, S_TEXT) + text)
                m += 1
                break
    count = _header(h, USED + A_OFF)
    r = room_for(h, A_ATTR, 2 * count + 2)
    if r < 0:
        return r
    a = _intern(h, A_OFF, out, m)
    if a == count:
        follow = _view(h, HAS_FOLLOW)
        f = 0
        for i in range(n_terminals):
            f |= _get32(follow, named_terminal(h, _get64(out, i)))
        _put32(_view(h, A_ATTR), 2 * a, f)
        _put32(_view(h, A_ATTR), 2 * a + 1, 0)
    return a


@far_function
def lexer_intern(h, table, n):
    """Return the lexer state of the values in ``buf[:n]`` (any order, repeats allowed, n >= 1)."""
    n = _sort_unique(h, table, n)
    if n < 0:
        return n
    buf = _view(h, table)
    count = _header(h, USED + L_OFF)
    classes = _header(h, S_CLASSES)
    r = room_for(h, L_ATTR, (count + 1) * L_STRIDE)
    if r == 0:
        r = room_for(h, L_ROW, (count + 1) * classes)
    if r < 0:
        return r
    if count >= _header(h, S_LEXER_STATES):
        return _limit(h, LIMIT_LEXER_STATES)
    # The accept set comes first: if interning it needs room, nothing of the state exists yet.
    a = _accept_set(h, table, n)
    if a <= GROW:
        return a
    l = _intern(h, L_OFF, buf, n)
    if l != count:
        return l
    row = _view(h, L_ROW)
    for c in range(classes):
        _put32(row, l * classes + c, UNFILLED)
    greedy = _view(h, GREEDY)
    g = 0
    if a >= 0:
        off = _view(h, A_OFF)
        pool = _view(h, A_POOL)
        for k in range(_get64(off, a), _get64(off, a + 1)):
            if _get64(pool, k) < _header(h, S_TEXT):
                g |= _get32(greedy, named_terminal(h, _get64(pool, k)))
    pure = -2
    flags = 0
    positions = _header(h, S_POSITIONS)
    for i in range(n):
        v = _get64(buf, i)
        t = terminal_of(h, v)
        if t == -2:
            flags |= FLAG_FRESH
        elif t == -3:
            flags |= FLAG_RECORDS
        elif pure == -2:
            pure = t
        elif pure != t:
            pure = -1
        if (v & LOW32) >= positions:
            flags |= FLAG_ELEMENTS
    attr = _view(h, L_ATTR)
    o = l * L_STRIDE
    _put32(attr, o + L_ACC, a)
    _put32(attr, o + L_GREEDY, g)
    _put32(attr, o + L_PURE, pure)
    _put32(attr, o + L_CANON, -1)
    _put32(attr, o + L_DIST, -1)
    _put32(attr, o + L_CHARS, 0)
    _put32(attr, o + L_CHARS_OFF, 0)
    _put32(attr, o + L_FLAGS, flags)
    _put32(attr, o + L_MODEL, UNFILLED)
    return l


@far_function
def _line_count(h, k, y, action):
    """Return what takes the place of count ``k`` of a newline at position ``y``; -1 where it can't end as asked."""
    mode = k >> MODE_SHIFT
    target = (k >> TARGET_SHIFT) & TOO_WIDE
    width = k & TOO_WIDE
    flags = _get32(_view(h, LINE_FLAGS), y)
    if mode == SAME:
        return k if flags & SAME_END else -1
    if flags & TAIL == 0 or action == LINE_ZERO:
        width = 0
    elif action == LINE_BLANK:
        width = min(width + 1, TOO_WIDE)
    else:
        tab = _header(h, S_TAB)
        width = min((width // tab + 1) * tab, TOO_WIDE)
    if flags & TAIL == 0 or width == TOO_WIDE or (mode == EXACT and width > target):
        if flags & RESET == 0:
            return -1
        if flags & TAIL:
            width = TOO_WIDE
    return (mode << MODE_SHIFT) | (target << TARGET_SHIFT) | width


@_kernel
def _next_of(h, text, read):
    """Return the prefix of ``text`` that is one byte longer than its prefix ``read``."""
    texts = _view(h, TX_POOL)
    y = text
    while _get64(texts, 2 * y) != read:
        y = _get64(texts, 2 * y)
    return y


@_kernel
def _character_at(h, text, read):
    """Return (code point, prefix behind it) of the character of ``text`` behind its prefix ``read``."""
    texts = _view(h, TX_POOL)
    y = _next_of(h, text, read)
    b = _get64(texts, 2 * y + 1)
    n = 0
    code = b
    if b >= 0xF0:
        n = 3
        code = b & 7
    elif b >= 0xE0:
        n = 2
        code = b & 15
    elif b >= 0xC0:
        n = 1
        code = b & 31
    for _ in range(n):
        if y == text:
            break
        y = _next_of(h, text, y)
        code = code << 6 | (_get64(texts, 2 * y + 1) & 63)
    return code, y


@_kernel
def _escape_at(code, k):
    """Return byte ``k`` of the escape of a character, with digits in lower case; -1 behind its end."""
    if k >= 6:
        if code < 0x10000:
            return -1
        k -= 6
        code = 0xDC00 | (code - 0x10000 & 0x3FF)
    elif code >= 0x10000:
        code = 0xD800 | (code - 0x10000) >> 10
    if k == 0:
        return 92
    if k == 1:
        return 117
    if k > 5:
        return -1
    digit = code >> 4 * (5 - k) & 15
    return 48 + digit if digit < 10 else 87 + digit


@far_function
def _gather_word(h, place, c, table, n):
    """Append the successor of an excluded text under byte ``c``, if there is one; ``place`` says what is read of it.

    A place is ``prefix << 4 | bytes of the escape of the next character``: texts are kept decoded. Returns the
    new length; the bytes that can follow go to S_NEXT and S_NEXT_OTHER, or -1.
    """
    texts = _view(h, TX_POOL)
    places = _view(h, WP_POOL)
    text = _get64(places, 2 * place)
    read = _get64(places, 2 * place + 1)
    k = read & 15
    read >>= 4
    first = -1
    second = -1
    if text != read:
        if k == 0:
            y = _next_of(h, text, read)
            first = _get64(texts, 2 * y + 1)
            if first >= 0x80:
                second = 92
            after = y << 4
            if c != first:
                after = read << 4 | 1
        else:
            code, y = _character_at(h, text, read)
            first = _escape_at(code, k)
            if 97 <= first <= 102:
                second = first - 32
            after = read << 4 | (k + 1)
            if _escape_at(code, k + 1) < 0:
                after = y << 4
        if c in (first, second):
            place = _text_place(h, text, after)
            if place < 0:
                return place
            r = room_for(h, table, n + 1)
            if r < 0:
                return r
            _put64(_view(h, table), n, (place << 32) | (_header(h, S_FRESH) + WORD))
            n += 1
    _set_header(h, S_NEXT, first)
    _set_header(h, S_NEXT_OTHER, second)
    return n


@_kernel
def _gather(h, value, c, table, n, low, high):
    """Append the successors of a plain value under class ``c`` to a buffer.

    Returns (n or GROW, low, high): classes ``low..high`` around ``c`` behave alike.
    """
    x = value & LOW32
    k = value >> 32
    off = _view(h, EDGE_OFF)
    lows = _view(h, EDGE_LOW)
    highs = _view(h, EDGE_HIGH)
    buf = _view(h, table)
    if x == _header(h, S_FRESH) + WORD:
        # Classes are single bytes where texts are excluded.
        n = _gather_word(h, k, c, table, n)
        if n < 0:
            return n, low, high
        for i in range(2):
            b = _header(h, S_NEXT + i)
            if b == c:
                low = c
                high = c
            elif 0 <= b < c:
                low = max(low, b + 1)
            elif b > c:
                high = min(high, b - 1)
        return n, low, high
    for e in range(_get32(off, x), _get32(off, x + 1)):
        a = _get32(lows, e)
        b = _get32(highs, e)
        if b < c:
            low = max(low, b + 1)
            continue
        if a > c:
            high = min(high, a - 1)
            continue
        low = max(low, a)
        high = min(high, b)
        guard = _get32(_view(h, EDGE_GUARD), e)
        if guard == 1:
            most = _get32(_view(h, COUNT_MAX), x)
            if most >= 0 and k >= most:
                continue
        elif guard == 2 and k < _get32(_view(h, COUNT_MIN), x):
            continue
        y = _get32(_view(h, EDGE_TARGET), e)
        if _get32(_view(h, DISTANCE), y) < 0:
            # A wall: nothing goes on there, but a lexeme doesn't end here either.
            _set_header(h, S_BLOCKED, 1)
            continue
        action = _get32(_view(h, EDGE_ACTION), e)
        count = k
        if action == -2:
            count = k + 1
            least = _get32(_view(h, COUNT_MIN), y)
            if _get32(_view(h, COUNT_MAX), y) < 0 and count > least:
                count = least
        elif action >= 0:
            count = action
        elif action < -2:
            count = _line_count(h, k, y, action)
            if count < 0:
                _set_header(h, S_BLOCKED, 1)
                continue
        r = room_for(h, table, n + 1)
        if r < 0:
            return r, low, high
        _put64(buf, n, (count << 32) | y)
        n += 1
    return n, low, high


@_kernel
def _store_run(h, l, low, high, successor):
    row = _view(h, L_ROW)
    o = l * _header(h, S_CLASSES)
    for q in range(low, high + 1):
        _put32(row, o + q, successor)


@far_function
def _fill_plain(h, l, c):
    """Fill the row of a lexer state without elements at class ``c``; return the successor or DEAD."""
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    low = 0
    high = _header(h, S_CLASSES) - 1
    n = 0
    _set_header(h, S_BLOCKED, 0)
    for i in range(_get64(off, l), _get64(off, l + 1)):
        n, low, high = _gather(h, _get64(pool, i), c, BUF_PLAIN, n, low, high)
        if n < 0:
            return n
    r = BLOCKED if _header(h, S_BLOCKED) else DEAD
    if n > 0:
        r = lexer_intern(h, BUF_PLAIN, n)
        if r <= GROW:
            return r
    _store_run(h, l, low, high, r)
    return r


@_kernel
def _element_step(h, e, c, low, high):
    """Return (successor of element ``e`` under class ``c``, low, high); the successor may be dead."""
    off = _view(h, EL_OFF)
    pool = _view(h, EL_POOL)
    row = _view(h, L_ROW)
    classes = _header(h, S_CLASSES)
    buf = _view(h, BUF_ELEMENT)
    o = _get64(off, e)
    end = _get64(off, e + 1)
    r = room_for(h, BUF_ELEMENT, end - o)
    if r == 0:
        r = room_for(h, EL_ATTR, (_header(h, USED + EL_OFF) + 1) * 3)
    if r < 0:
        return r, low, high
    _put64(buf, 0, _get64(pool, o))
    n = 1
    for j in range(o + 1, end):
        literal = _get64(pool, j)
        x = (literal >> 1) * classes
        y = _get32(row, x + c)
        if y == UNFILLED:
            y = _fill_plain(h, literal >> 1, c)
            if y <= GROW:
                return y, low, high
        q = c
        while q > low and _get32(row, x + q - 1) == y:
            q -= 1
        low = q
        q = c
        while q < high and _get32(row, x + q + 1) == y:
            q += 1
        high = q
        if y < 0:
            if literal & 1:
                continue
            return DEAD, low, high
        _put64(buf, n, (y << 1) | (literal & 1))
        n += 1
    count = _header(h, USED + EL_OFF)
    f = _intern(h, EL_OFF, buf, n)
    if f == count:
        attr = _view(h, EL_ATTR)
        _put64(attr, 3 * f, 1 if n == 2 and (_get64(buf, 1) & 1) == 0 else 0)
        _put64(attr, 3 * f + 1, -1)
        _put64(attr, 3 * f + 2, 0)
    return f, low, high


@_kernel
def lexer_distance(h, l):
    """Fewest bytes to acceptance, over the values of ``l`` (a lower bound that orders searches)."""
    attr = _view(h, L_ATTR)
    d = _get32(attr, l * L_STRIDE + L_DIST)
    if d >= 0:
        return d
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    positions = _header(h, S_POSITIONS)
    d = 1 << 28
    for i in range(_get64(off, l), _get64(off, l + 1)):
        v = _get64(pool, i)
        x = v & LOW32
        k = 1
        if x < positions:
            k = _get32(_view(h, DISTANCE), x)
            missing = _get32(_view(h, COUNT_MIN), x) - (v >> 32)
            if missing > 1:
                k += missing - 1
        d = min(d, k)
    _put32(attr, l * L_STRIDE + L_DIST, d)
    return d


@far_function
def _element_alive(h, e):
    """1 if some word leads element ``e`` to acceptance, 0 if none does.

    A depth-first dive, nearest to acceptance first. Finding an accepting or known-alive element marks
    the path alive; an exhausted search marks all it saw dead.
    """
    attr = _view(h, EL_ATTR)
    live = _get64(attr, 3 * e)
    if live != 0:
        return 1 if live == 1 else 0
    off = _view(h, EL_OFF)
    pool = _view(h, EL_POOL)
    stack = _view(h, BUF_STACK)
    seen = _view(h, BUF_SEARCH)
    classes = _header(h, S_CLASSES)
    positions = _header(h, S_POSITIONS)
    stamp = next_stamp(h)
    r = room_for(h, BUF_STACK, 1)
    if r < 0:
        return r
    _put64(stack, 0, e)
    _put64(attr, 3 * e + 1, -1)
    _put64(attr, 3 * e + 2, stamp)
    depth = 1
    n_seen = 0
    found = -1
    while depth > 0 and found < 0:
        depth -= 1
        g = _get64(stack, depth) & LOW32
        r = room_for(h, BUF_SEARCH, n_seen + 1)
        if r == 0:
            r = room_for(h, BUF_STACK, depth + classes + 1)
        if r == 0:
            r = count_work(h, 20)
        if r < 0:
            return r
        _put64(seen, n_seen, g)
        n_seen += 1
        if n_seen > _header(h, S_LIVENESS):
            return _limit(h, LIMIT_LIVENESS)
        if accepted_terminal(h, positions + g) >= 0:
            found = g
            break
        first = depth
        c = 0
        while c < classes:
            f, _, high = _element_step(h, g, c, 0, classes - 1)
            if f <= GROW:
                return f
            c = high + 1
            if f < 0:
                continue
            live = _get64(attr, 3 * f)
            if live == 2 or _get64(attr, 3 * f + 2) == stamp:
                continue
            _put64(attr, 3 * f + 1, g)
            _put64(attr, 3 * f + 2, stamp)
            if live == 1:
                found = f
                break
            score = 0
            for j in range(_get64(off, f) + 1, _get64(off, f + 1)):
                literal = _get64(pool, j)
                if literal & 1 == 0:
                    score = max(score, lexer_distance(h, literal >> 1))
            v = (score << 32) | f
            j = depth - 1
            while j >= first and _get64(stack, j) < v:
                _put64(stack, j + 1, _get64(stack, j))
                j -= 1
            _put64(stack, j + 1, v)
            depth += 1
    if found >= 0:
        while found >= 0:
            _put64(attr, 3 * found, 1)
            found = _get64(attr, 3 * found + 1)
        return 1
    for i in range(n_seen):
        _put64(attr, 3 * _get64(seen, i), 2)
    return 0


@far_function
def fill_mask(h, l, c):
    """Fill the row of lexer state ``l`` at class ``c``; return the successor or DEAD."""
    r = count_work(h, 1)
    if r < 0:
        return r
    flags = _get32(_view(h, L_ATTR), l * L_STRIDE + L_FLAGS)
    if flags & (FLAG_ELEMENTS | FLAG_RECORDS) == 0:
        return _fill_plain(h, l, c)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    buf = _view(h, BUF_LEXER)
    positions = _header(h, S_POSITIONS)
    low = 0
    high = _header(h, S_CLASSES) - 1
    n = 0
    is_blocked = 0
    for i in range(_get64(off, l), _get64(off, l + 1)):
        v = _get64(pool, i)
        x = v & LOW32
        if x < positions:
            _set_header(h, S_BLOCKED, 0)
            n, low, high = _gather(h, v, c, BUF_LEXER, n, low, high)
            if n < 0:
                return n
            is_blocked |= _header(h, S_BLOCKED)
            continue
        f, low, high = _element_step(h, x - positions, c, low, high)
        if f <= GROW:
            return f
        if f < 0:
            continue
        is_alive = _element_alive(h, f)
        if is_alive < 0:
            return is_alive
        if is_alive == 1:
            r = room_for(h, BUF_LEXER, n + 1)
            if r < 0:
                return r
            _put64(buf, n, positions + f)
            n += 1
    if flags & FLAG_RECORDS and n > 0:
        n = _record(h, l, c, n)
        if n < 0:
            return n
        low = c
        high = c
    r = BLOCKED if is_blocked else DEAD
    if n > 0:
        r = lexer_intern(h, BUF_LEXER, n)
        if r <= GROW:
            return r
    _store_run(h, l, low, high, r)
    return r


@far_function
def _record(h, l, c, n):
    """Append to the lexer values ``BUF_LEXER[:n]``, successors of ``l``, its text with byte ``c``, if any needs it."""
    buf = _view(h, BUF_LEXER)
    recorded = _view(h, RECORDED)
    is_needed = False
    for i in range(n):
        t = terminal_of(h, _get64(buf, i))
        if t >= 0 and _get32(recorded, t) != 0:
            is_needed = True
            break
    if not is_needed:
        return n
    first = _get64(_view(h, L_OFF), l)
    values = _view(h, L_POOL)
    text = _text_of(h, (values[0] + 8 * first, values[1] - first), _get64(_view(h, L_OFF), l + 1) - first)
    text = _longer_text(h, text, c)
    if text < 0:
        return text
    r = room_for(h, BUF_LEXER, n + 1)
    if r < 0:
        return r
    _put64(buf, n, (text << 32) | (_header(h, S_FRESH) + RECORDER))
    return n + 1


@_kernel
def lexer_step(h, l, c):
    """Return the lexer state after class ``c``, or DEAD."""
    r = _get32(_view(h, L_ROW), l * _header(h, S_CLASSES) + c)
    if r == UNFILLED:
        r = fill_mask(h, l, c)
    return r


@_kernel
def _canonical_count(h, v):
    """Replace a count by one that no single token can tell apart (engine paper, section 5)."""
    x = v & LOW32
    k = v >> 32
    least = _get32(_view(h, COUNT_MIN), x)
    most = _get32(_view(h, COUNT_MAX), x)
    longest = _header(h, S_LONGEST)
    if most < 0 or most - k > longest:
        if least - k > longest:
            return x
        if k > least and most >= 0:
            return (least << 32) | x
    return v


@far_function
def _canonical(h, l):
    """Return the lexer state whose entries ``l`` shares: counts far from both limits, no marks."""
    if _header(h, S_USE_CANON) == 0:
        return l
    attr = _view(h, L_ATTR)
    r = _get32(attr, l * L_STRIDE + L_CANON)
    if r >= 0:
        return r
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    positions = _header(h, S_POSITIONS)
    fresh = _header(h, S_FRESH)
    o = _get64(off, l)
    n = 0
    buf = _view(h, BUF_LEXER)
    r = room_for(h, BUF_LEXER, _get64(off, l + 1) - o)
    if r < 0:
        return r
    is_changed = False
    for i in range(o, _get64(off, l + 1)):
        v = _get64(pool, i)
        if v == fresh or v & LOW32 == fresh + RECORDER:
            is_changed = True
            continue
        if (v & LOW32) < positions:
            w = _canonical_count(h, v)
            if w != v:
                is_changed = True
                v = w
        else:
            # A lone positive literal: its own counts may be far from their limits.
            e = (v & LOW32) - positions
            eo = _get64(_view(h, EL_OFF), e)
            if _get64(_view(h, EL_OFF), e + 1) - eo == 2:
                w = _canonical_element(h, eo)
                if w <= GROW:
                    return w
                if w != e:
                    is_changed = True
                    v = positions + w
        _put64(buf, n, v)
        n += 1
    r = l
    if is_changed and n > 0:
        r = lexer_intern(h, BUF_LEXER, n)
        if r <= GROW:
            return r
        _put32(attr, r * L_STRIDE + L_CANON, r)
    _put32(attr, l * L_STRIDE + L_CANON, r)
    return r


@_kernel
def _canonical_element(h, eo):
    """Return the element like the one at pool offset ``eo`` (terminal, one literal) with canonical counts."""
    pool = _view(h, EL_POOL)
    literal = _get64(pool, eo + 1)
    off = _view(h, L_OFF)
    values = _view(h, L_POOL)
    buf = _view(h, BUF_PLAIN)
    o = _get64(off, literal >> 1)
    n = _get64(off, (literal >> 1) + 1) - o
    r = room_for(h, BUF_PLAIN, n)
    if r < 0:
        return r
    for i in range(n):
        _put64(buf, i, _canonical_count(h, _get64(values, o + i)))
    l = lexer_intern(h, BUF_PLAIN, n)
    if l <= GROW:
        return l
    return make_element(h, _get64(pool, eo), l << 1)


@_kernel
def make_element(h, terminal, literal):
    """Intern the element of one literal."""
    buf = _view(h, BUF_ELEMENT)
    count = _header(h, USED + EL_OFF)
    r = room_for(h, BUF_ELEMENT, 2)
    if r == 0:
        r = room_for(h, EL_ATTR, (count + 1) * 3)
    if r < 0:
        return r
    _put64(buf, 0, terminal)
    _put64(buf, 1, literal)
    f = _intern(h, EL_OFF, buf, 2)
    if f == count:
        attr = _view(h, EL_ATTR)
        _put64(attr, 3 * f, 1 if literal & 1 == 0 else 0)
        _put64(attr, 3 * f + 1, -1)
        _put64(attr, 3 * f + 2, 0)
    return f


# ------------------------------------------------------------------------------------------ texts
#
# Where lexemes must differ, a lexer state also holds the text so far, and accept sets the whole text. Texts are
# interned as (text without its last byte, last byte), so equal texts are equal numbers; byte classes are
# single bytes there. Texts that are excluded are a negative part of an element. Entries don't depend on the text
# so far (`_canonical`); what begins behind such a lexeme within one token is decided token by token (`_visit`).


@_kernel
def _pair(h, t, first, second):
    """Intern a pair."""
    r = room_for(h, BUF_TEXT, 2)
    if r < 0:
        return r
    buf = _view(h, BUF_TEXT)
    _put64(buf, 0, first)
    _put64(buf, 1, second)
    return _intern(h, t, buf, 2)


@_kernel
def _longer_text(h, text, byte):
    """Return ``text`` and one more byte."""
    return _pair(h, TX_OFF, text, byte)


@_kernel
def _text_place(h, text, read):
    """Return a place in ``text`` (see `_gather_word`)."""
    return _pair(h, WP_OFF, text, read)


@_kernel
def _hex_at(h, i):
    """Return the number of four hexadecimal digits in BUF_SPLIT."""
    buf = _view(h, BUF_SPLIT)
    code = 0
    for k in range(4):
        b = _get64(buf, i + k)
        code = code << 4 | (b - 48 if b < 58 else (b & 0xDF) - 55)
    return code


@far_function
def _decoded(h, text):
    """Return a text with characters in place of escapes ``\\uXXXX`` beyond ASCII."""
    texts = _view(h, TX_POOL)
    n = 0
    has_escape = False
    y = text
    while y > 0:
        has_escape = has_escape or _get64(texts, 2 * y + 1) == 92
        y = _get64(texts, 2 * y)
        n += 1
    if not has_escape:
        return text
    r = room_for(h, BUF_SPLIT, n)
    if r < 0:
        return r
    buf = _view(h, BUF_SPLIT)
    y = text
    for i in range(n):
        _put64(buf, n - 1 - i, _get64(texts, 2 * y + 1))
        y = _get64(texts, 2 * y)
    found = 0
    i = 0
    while i < n:
        size = 1
        code = 0
        if _get64(buf, i) == 92 and i + 1 < n:
            size = 2
            if _get64(buf, i + 1) == 117 and i + 5 < n:
                code = _hex_at(h, i + 2)
                if code >= 0x80:
                    size = 6
                if 0xD800 <= code < 0xDC00 and i + 11 < n:
                    code = 0x10000 + ((code & 0x3FF) << 10 | (_hex_at(h, i + 8) & 0x3FF))
                    size = 12
        if size < 6:
            for k in range(size):
                found = _longer_text(h, found, _get64(buf, i + k))
                if found < 0:
                    return found
        else:
            n_more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
            lead = 0xC0 if n_more == 1 else 0xE0 if n_more == 2 else 0xF0
            found = _longer_text(h, found, lead | code >> 6 * n_more)
            for k in range(n_more):
                if found < 0:
                    return found
                found = _longer_text(h, found, 0x80 | (code >> 6 * (n_more - 1 - k) & 63))
            if found < 0:
                return found
        i += size
    return found


@_kernel
def _has_text(h, texts, text):
    """1 if ``text`` is in a set of texts (-1: the empty set)."""
    if texts < 0:
        return 0
    off = _view(h, XS_OFF)
    pool = _view(h, XS_POOL)
    for i in range(_get64(off, texts), _get64(off, texts + 1)):
        if _get64(pool, i) == text:
            return 1
    return 0


@far_function
def _with_text(h, texts, text):
    """Return a set of texts with one more; -1 stands for a text that isn't known."""
    n = 0
    first = 0
    if texts >= 0:
        off = _view(h, XS_OFF)
        first = _get64(off, texts)
        n = _get64(off, texts + 1) - first
    r = room_for(h, BUF_TEXT, n + 1)
    if r < 0:
        return r
    buf = _view(h, BUF_TEXT)
    pool = _view(h, XS_POOL)
    m = 0
    while m < n and _get64(pool, first + m) < text:
        _put64(buf, m, _get64(pool, first + m))
        m += 1
    if m < n and _get64(pool, first + m) == text:
        return texts
    _put64(buf, m, text)
    for i in range(m, n):
        _put64(buf, i + 1, _get64(pool, first + i))
    return _intern(h, XS_OFF, buf, n + 1)


@far_function
def _start_excluding(h, t, texts):
    """Return the lexer value that starts terminal ``t`` without a set of texts; DEAD if nothing is left of it.

    A text that isn't known excludes nothing.
    """
    start_off = _view(h, START_OFF)
    first = _get32(start_off, t)
    if first == _get32(start_off, t + 1):
        return DEAD
    start = _get64(_view(h, START_POOL), first)
    off = _view(h, XS_OFF)
    pool = _view(h, XS_POOL)
    buf = _view(h, BUF_PLAIN)
    n = 0
    if texts >= 0:
        r = room_for(h, BUF_PLAIN, _get64(off, texts + 1) - _get64(off, texts) + 1)
        if r < 0:
            return r
        for i in range(_get64(off, texts), _get64(off, texts + 1)):
            text = _get64(pool, i)
            if text >= 0:
                place = _text_place(h, text, 0)
                if place < 0:
                    return place
                _put64(buf, n, (place << 32) | (_header(h, S_FRESH) + WORD))
                n += 1
    if n == 0:
        return start
    words = lexer_intern(h, BUF_PLAIN, n)
    if words < 0:
        return words
    positions = _header(h, S_POSITIONS)
    e = (start & LOW32) - positions
    element_off = _view(h, EL_OFF)
    elements = _view(h, EL_POOL)
    n = 3
    if e >= 0:
        n = _get64(element_off, e + 1) - _get64(element_off, e) + 1
    own = 0
    if e < 0:
        _put64(buf, 0, start)
        own = lexer_intern(h, BUF_PLAIN, 1)
        if own < 0:
            return own
    count = _header(h, USED + EL_OFF)
    r = room_for(h, BUF_ELEMENT, n)
    if r == 0:
        r = room_for(h, EL_ATTR, (count + 1) * 3)
    if r < 0:
        return r
    literals = _view(h, BUF_ELEMENT)
    _put64(literals, 0, t)
    if e < 0:
        _put64(literals, 1, own << 1)
    else:
        for i in range(1, n - 1):
            _put64(literals, i, _get64(elements, _get64(element_off, e) + i))
    _put64(literals, n - 1, (words << 1) | 1)
    e = _intern(h, EL_OFF, literals, n)
    if e < 0:
        return e
    if e == count:
        attr = _view(h, EL_ATTR)
        _put64(attr, 3 * e, 0)
        _put64(attr, 3 * e + 1, -1)
        _put64(attr, 3 * e + 2, 0)
    r = _element_alive(h, e)
    if r <= 0:
        return DEAD if r == 0 else r
    return positions + e


# ------------------------------------------------------------------------------------------ parameters
#
# A dotted state of a rule with a parameter has a *value*: an interned row (parameter, number of elements, set of
# texts that must not come again or -1, words of the set of elements taken). Such dotted states follow those of the network, and so do their edges, which are those
# of the network's dotted state that the value allows. An edge's target is made when the edge is first followed;
# until then it is ``-1 -`` the number of the network's edge.


@_kernel
def _count_bits(x):
    n = 0
    while x != 0:
        x &= x - 1
        n += 1
    return n


@_kernel
def needs_word(h, parameter, v, element, k):
    """Return word ``k`` of what is required after value ``v``, and, if not -1, after ``element``."""
    rows = _view(h, PARAMETER)
    sets = _view(h, ELEMENTS)
    o = COLUMNS * parameter
    found = _get64(sets, _get64(rows, o + PM_SETS) + k)
    needs = _get64(rows, o + PM_NEEDS)
    if needs < 0:
        return found
    words = _get64(rows, o + PM_WORDS)
    pool = _view(h, VAL_POOL)
    first = _get64(_view(h, VAL_OFF), v) + 3
    for j in range(words):
        taken = _get64(pool, first + j)
        if element >= 0 and element >> 5 == j:
            taken |= 1 << (element & 31)
        i = 32 * j
        while taken != 0:
            if taken & 1:
                found |= _get64(sets, needs + i * words + k)
            taken >>= 1
            i += 1
    return found


@far_function
def _n_missing(h, v, element):
    """Return how many required elements value ``v`` lacks, once it has ``element`` as well (-1: none)."""
    pool = _view(h, VAL_POOL)
    first = _get64(_view(h, VAL_OFF), v)
    parameter = _get64(pool, first)
    n = 0
    for k in range(_get64(_view(h, PARAMETER), COLUMNS * parameter + PM_WORDS)):
        taken = _get64(pool, first + 3 + k)
        if element >= 0 and element >> 5 == k:
            taken |= 1 << (element & 31)
        n += _count_bits(needs_word(h, parameter, v, element, k) & ~taken)
    return n


@far_function
def _may_end_with(h, v):
    """1 if a text of value ``v`` has all that is required, and enough."""
    first = _get64(_view(h, VAL_OFF), v)
    pool = _view(h, VAL_POOL)
    least = _get64(_view(h, PARAMETER), COLUMNS * _get64(pool, first) + PM_LEAST)
    return 1 if _get64(pool, first + 1) >= least and _n_missing(h, v, -1) == 0 else 0


@_kernel
def element_of(action):
    """Return the element that an action takes, or -1."""
    if action < 0 or action & NO_ELEMENT == NO_ELEMENT:
        return -1
    return action & NO_ELEMENT


@far_function
def _may_act(h, v, action, t):
    """1 if an edge's action is possible after value ``v``, and leads to where the text can go on.

    ``t`` is the edge's terminal. Returns GROW or the like, too.
    """
    pool = _view(h, VAL_POOL)
    first = _get64(_view(h, VAL_OFF), v)
    rows = _view(h, PARAMETER)
    o = COLUMNS * _get64(pool, first)
    if action == KEEP:
        return 1
    if action == CLOSE:
        return _may_end_with(h, v)
    if action == MORE:
        d = _get64(rows, o + PM_TAKING)
        off = _view(h, TERM_OFF)
        actions = _view(h, TERM_ACTION)
        symbols = _view(h, TERM_SYMBOL)
        for e in range(_get32(off, d), _get32(off, d + 1)):
            r = _may_act(h, v, _get32(actions, e), _get32(symbols, e))
            if r != 0:
                return r
        off = _view(h, RULE_OFF)
        actions = _view(h, RULE_ACTION)
        for e in range(_get32(off, d), _get32(off, d + 1)):
            if _may_act(h, v, _get32(actions, e), -1) != 0:
                return 1
        return 0
    element = element_of(action)
    if element >= 0 and (_get64(pool, first + 3 + (element >> 5)) >> (element & 31)) & 1:
        return 0
    most = _get64(rows, o + PM_MOST)
    if most >= 0 and _get64(pool, first + 1) + 1 + _n_missing(h, v, element) > most:
        return 0
    if action >= RECORDS:
        r = _start_excluding(h, t, _get64(pool, first + 2))
        if r < 0:
            return 0 if r == DEAD else r
    return 1


@_kernel
def _first_value(h, parameter):
    """Return the value of a parameter before any element."""
    words = _get64(_view(h, PARAMETER), COLUMNS * parameter + PM_WORDS)
    r = room_for(h, BUF_VALUE, words + 3)
    if r < 0:
        return r
    buf = _view(h, BUF_VALUE)
    _put64(buf, 0, parameter)
    _put64(buf, 1, 0)
    _put64(buf, 2, -1)
    for k in range(words):
        _put64(buf, 3 + k, 0)
    return _intern(h, VAL_OFF, buf, words + 3)


@_kernel
def _next_value(h, v, action, text):
    """Return the value after an action, which must be possible; DEAD if it isn't with this text."""
    if action in (KEEP, MORE):
        return v
    pool = _view(h, VAL_POOL)
    first = _get64(_view(h, VAL_OFF), v)
    rows = _view(h, PARAMETER)
    o = COLUMNS * _get64(pool, first)
    words = _get64(rows, o + PM_WORDS)
    texts = _get64(pool, first + 2)
    if action >= RECORDS:
        if text >= 0:
            text = _decoded(h, text)
            if text < 0:
                return text
            if _has_text(h, texts, text) != 0:
                return DEAD
        texts = _with_text(h, texts, text)
        if texts < 0:
            return texts
    r = room_for(h, BUF_VALUE, words + 3)
    if r < 0:
        return r
    buf = _view(h, BUF_VALUE)
    for k in range(words + 3):
        _put64(buf, k, _get64(pool, first + k))
    n = _get64(buf, 1) + 1
    if _get64(rows, o + PM_MOST) < 0:
        # From here on one more makes no difference.
        n = min(n, _get64(rows, o + PM_LEAST))
    _put64(buf, 1, n)
    _put64(buf, 2, texts)
    element = element_of(action)
    if element >= 0:
        k = 3 + (element >> 5)
        _put64(buf, k, _get64(buf, k) | (1 << (element & 31)))
    return _intern(h, VAL_OFF, buf, words + 3)


@far_function
def _copy_edges(h, s, v, is_rule):
    """Append the edges of dotted state ``s`` that value ``v`` allows, behind those in use; return their number.

    Those on rules if ``is_rule``, else those on terminals.
    """
    offsets = RULE_OFF if is_rule else TERM_OFF
    symbols = RULE_SYMBOL if is_rule else TERM_SYMBOL
    targets = RULE_TARGET if is_rule else TERM_TARGET
    off = _view(h, offsets)
    first = _get32(off, s)
    last = _get32(off, s + 1)
    used = _header(h, USED + symbols)
    r = room_for(h, symbols, used + last - first)
    if r == 0:
        r = room_for(h, targets, used + last - first)
    if r < 0:
        return r
    symbol = _view(h, symbols)
    target = _view(h, targets)
    action = _view(h, RULE_ACTION if is_rule else TERM_ACTION)
    after = _view(h, RULE_BEHIND if is_rule else TERM_BEHIND)
    n = 0
    for e in range(first, last):
        a = _get32(action, e)
        r = _may_act(h, v, a, -1 if is_rule else _get32(symbol, e))
        if r < 0:
            return r
        if r != 0:
            _put32(symbol, used + n, _get32(symbol, e))
            _put32(target, used + n, _get32(after, e) if a == CLOSE else -1 - e)
            n += 1
    return n


@far_function
def _dot(h, s, v):
    """Return the dotted state ``s`` of the network with value ``v``, with its edges."""
    r = room_for(h, BUF_VALUE, 2)
    if r < 0:
        return r
    buf = _view(h, BUF_VALUE)
    _put64(buf, 0, s)
    _put64(buf, 1, v)
    static = _header(h, S_DOTTED)
    count = _header(h, USED + DOT_OFF)
    d = _intern_find(h, DOT_OFF, buf, 2)
    if d >= 0:
        return static + d
    r = count_work(h, 1)
    if r == 0:
        r = room_for(h, TERM_OFF, static + count + 2)
    if r == 0:
        r = room_for(h, RULE_OFF, static + count + 2)
    if r == 0:
        r = room_for(h, IS_FINAL, static + count + 1)
    if r == 0:
        r = room_for(h, RULE_OF, static + count + 1)
    if r < 0:
        return r
    n_terminals = _copy_edges(h, s, v, 0)
    if n_terminals < 0:
        return n_terminals
    n_rules = _copy_edges(h, s, v, 1)
    if n_rules < 0:
        return n_rules
    d = _intern(h, DOT_OFF, buf, 2)
    if d < 0:
        return d
    d += static
    is_final = _get32(_view(h, IS_FINAL), s)
    if is_final != 0:
        is_final = _may_end_with(h, v)
    _put32(_view(h, IS_FINAL), d, is_final)
    _put32(_view(h, RULE_OF), d, _get32(_view(h, RULE_OF), s))
    n = _header(h, USED + TERM_SYMBOL) + n_terminals
    _set_header(h, USED + TERM_SYMBOL, n)
    _put32(_view(h, TERM_OFF), d + 1, n)
    n = _header(h, USED + RULE_SYMBOL) + n_rules
    _set_header(h, USED + RULE_SYMBOL, n)
    _put32(_view(h, RULE_OFF), d + 1, n)
    return d


@far_function
def _made_target(h, d, e, is_rule, text):
    """Make the target of edge ``e`` of dotted state ``d``; ``text`` is that of its lexeme, or -1 if it isn't known.

    DEAD if the text must not come again.
    """
    target = _view(h, RULE_TARGET if is_rule else TERM_TARGET)
    own = -1 - _get32(target, e)
    s = _get32(_view(h, RULE_BEHIND if is_rule else TERM_BEHIND), own)
    action = _get32(_view(h, RULE_ACTION if is_rule else TERM_ACTION), own)
    static = _header(h, S_DOTTED)
    if d < static:
        v = _first_value(h, _get32(_view(h, VALUE_OF), s))
    else:
        v = _get64(_view(h, DOT_POOL), 2 * (d - static) + 1)
    if v < 0:
        return v
    v = _next_value(h, v, action, text)
    if v < 0:
        return v
    r = _dot(h, s, v)
    if r >= 0 and action < RECORDS:
        _put32(target, e, r)
    return r


@_kernel
def terminal_target(h, d, e, text):
    """Return the target of edge ``e`` on a terminal, an edge of dotted state ``d``; as `_made_target`."""
    t = _get32(_view(h, TERM_TARGET), e)
    return t if t >= 0 else _made_target(h, d, e, 0, text)


@_kernel
def rule_target(h, d, e):
    """Return the target of edge ``e`` on a rule, an edge of dotted state ``d``; or GROW."""
    t = _get32(_view(h, RULE_TARGET), e)
    return t if t >= 0 else _made_target(h, d, e, 1, -1)


@_kernel
def _excluded_at(h, d, e):
    """Return the set of texts that edge ``e`` on a terminal, an edge of dotted state ``d``, must not read.

    -1: none; -2: its lexeme may have any text, and isn't kept.
    """
    own = -1 - _get32(_view(h, TERM_TARGET), e)
    static = _header(h, S_DOTTED)
    if own < 0 or d < static or _get32(_view(h, TERM_ACTION), own) < RECORDS:
        return -2
    v = _get64(_view(h, DOT_POOL), 2 * (d - static) + 1)
    return _get64(_view(h, VAL_POOL), _get64(_view(h, VAL_OFF), v) + 2)


@far_function
def _is_unsure(h, p):
    """1 if what follows in parser state ``p`` depends on a text that isn't known."""
    if _header(h, S_TEXT) == _header(h, S_LINE):
        return 0
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    dots = _view(h, DOT_POOL)
    term_off = _view(h, TERM_OFF)
    symbol = _view(h, TERM_SYMBOL)
    recorded = _view(h, RECORDED)
    static = _header(h, S_DOTTED)
    for i in range(_get64(off, p), _get64(off, p + 1) - 1):
        d = (_get64(pool, i) >> 32) - static
        if d < 0:
            continue
        row = _get64(_view(h, VAL_OFF), _get64(dots, 2 * d + 1))
        o = COLUMNS * _get64(_view(h, VAL_POOL), row)
        texts = _get64(_view(h, VAL_POOL), row + 2)
        s = _get64(dots, 2 * d)
        if _has_text(h, texts, -1) != 0:
            rows = _view(h, PARAMETER)
            taking = _get64(rows, o + PM_TAKING)
            if s == taking:
                return 1
            if s == _get64(rows, o + PM_BEHIND):
                # Is one more text certainly left?
                for e in range(_get32(term_off, taking), _get32(term_off, taking + 1)):
                    if _get32(recorded, _get32(symbol, e)) == 1:
                        return 1
    return 0


# ------------------------------------------------------------------------------------------ parser


@far_function
def _template(h, n):
    """Return the template of the sorted, distinct dotted states in ``BUF_KERNEL[:n]``."""
    buf = _view(h, BUF_KERNEL)
    count = _header(h, USED + TP_OFF)
    r = room_for(h, PX_OFF, count + 2)
    if r == 0:
        r = room_for(h, PT_OFF, count + 2)
    if r < 0:
        return r
    # Predict into the pools before interning: appended edges don't count until the offsets are written.
    rule_off = _view(h, RULE_OFF)
    rule_symbol = _view(h, RULE_SYMBOL)
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    rule_start = _view(h, RULE_START)
    mark = _view(h, RULE_MARK)
    px = _view(h, PX_POOL)
    pt = _view(h, PT_POOL)
    stamp = next_stamp(h)
    px0 = _get64(_view(h, PX_OFF), count)
    pt0 = _get64(_view(h, PT_OFF), count)
    r = _intern_find(h, TP_OFF, buf, n)
    if r >= 0:
        return r
    end = n
    i = 0
    x = px0
    y = pt0
    while i < end:
        d = _get64(buf, i)
        first = _get32(rule_off, d)
        last = _get32(rule_off, d + 1)
        r = room_for(h, BUF_KERNEL, end + last - first)
        if r == 0 and i >= n:
            r = room_for(h, PX_POOL, 2 * (x + last - first))
            if r == 0:
                r = room_for(h, PT_POOL, 2 * (y + _get32(term_off, d + 1) - _get32(term_off, d)))
        if r < 0:
            return r
        for k in range(first, last):
            a = _get32(rule_symbol, k)
            if i >= n:
                target = rule_target(h, d, k)
                if target < 0:
                    return target
                _put64(px, x, (a << 32) | target)
                x += 1
            if _get64(mark, a) != stamp:
                _put64(mark, a, stamp)
                _put64(buf, end, _get32(rule_start, a))
                end += 1
        if i >= n:
            for k in range(_get32(term_off, d), _get32(term_off, d + 1)):
                target = terminal_target(h, d, k, -1)
                if target < 0:
                    return target
                _put64(pt, y, (_get32(term_symbol, k) << 32) | target)
                y += 1
        i += 1
    t = _intern(h, TP_OFF, buf, n)
    if t < 0:
        return t
    # The second half of each pool's room is the scratch of the sort.
    _sort_at(h, px[0] + 8 * px0, x - px0, px[0] + 8 * x)
    _sort_at(h, pt[0] + 8 * pt0, y - pt0, pt[0] + 8 * y)
    _put64(_view(h, PX_OFF), t + 1, x)
    _put64(_view(h, PT_OFF), t + 1, y)
    _set_header(h, USED + PX_POOL, x)
    _set_header(h, USED + PT_POOL, y)
    return t


@_kernel
def _intern_find(h, t, buf, n):
    """Return the id of ``buf[:n]`` in an interned table, or -1."""
    off = _view(h, t)
    pool = _view(h, t + 1)
    slots = _view(h, t + 2)
    mask = slots[1] - 1
    x = _hash_of(buf, n) & mask
    while True:
        v = _get32(slots, x)
        if v < 0:
            return -1
        o = _get64(off, v)
        if _get64(off, v + 1) - o == n:
            is_equal = True
            for i in range(n):
                if _get64(pool, o + i) != _get64(buf, i):
                    is_equal = False
                    break
            if is_equal:
                return v
        x = (x + 1) & mask


@_kernel
def _situation(h, template, flags, l):
    """Return the situation of a template and flags: all that the next lexeme depends on.

    ``l`` is the start lexer state where it depends on more (DEAD: there is none), else UNFILLED.
    """
    count = _header(h, USED + Q_OFF)
    r = room_for(h, BUF_KERNEL, 3)
    if r == 0:
        r = room_for(h, Q_LEX, count + 1)
    if r < 0:
        return r
    buf = _view(h, BUF_KERNEL)
    _put64(buf, 0, template)
    _put64(buf, 1, flags)
    _put64(buf, 2, l)
    q = _intern(h, Q_OFF, buf, 3)
    if q == count:
        _put32(_view(h, Q_LEX), q, l)
    return q


@far_function
def _parser_intern(h, n, flags, base, context):
    """Return the parser state of the items ``BUF_KERNEL[:n]``; DEAD if it has no items and doesn't accept.

    ``base`` is the state whose id stands as origin of what this state predicts, or -1 for itself.
    """
    mark = -1 - ((context << 32) | flags)
    if n == 0 and flags & P_ACCEPTING == 0:
        return DEAD
    n = _sort_unique(h, BUF_KERNEL, n)
    if n < 0:
        return n
    r = room_for(h, BUF_KERNEL, n + 1)
    count = _header(h, USED + P_OFF)
    if r == 0:
        r = room_for(h, P_ATTR, P_STRIDE * (count + 1))
    if r < 0:
        return r
    buf = _view(h, BUF_KERNEL)
    _put64(buf, n, mark)
    p = _intern_find(h, P_OFF, buf, n + 1)
    if p >= 0:
        return p
    # Room for the state first, then the template (which overwrites the buffer), then the state itself.
    if (count + 1) * 2 > _header(h, CAPACITY + P_HASH):
        return ask_for(h, P_HASH, 2 * _header(h, CAPACITY + P_HASH))
    r = room_for(h, P_OFF, count + 2)
    if r == 0:
        r = room_for(h, P_POOL, _header(h, USED + P_POOL) + n + 1)
    if r == 0:
        r = room_for(h, BUF_ITEMS, n + 1)
    if r < 0:
        return r
    keep = _view(h, BUF_ITEMS)
    m = 0
    for i in range(n):
        v = _get64(buf, i)
        _put64(keep, i, v)
        d = v >> 32
        if m == 0 or _get64(buf, m - 1) != d:
            _put64(buf, m, d)
            m += 1
    _put64(keep, n, mark)
    t = _template(h, m)
    if t < 0:
        return t
    is_line = 0
    if _header(h, S_NEWLINE) >= 0 and _is_inside(h, t) == 0:
        is_line = _allows(h, t, _header(h, S_NEWLINE)) | _allows(h, t, _header(h, S_DEDENT))
    q = UNFILLED
    if is_line == 0:
        q = _situation(h, t, flags, UNFILLED)
        if q < 0:
            return q
    p = _intern(h, P_OFF, keep, n + 1)
    attr = _view(h, P_ATTR)
    o = P_STRIDE * p
    _put32(attr, o + P_TEMPLATE, t)
    _put32(attr, o + P_FLAGS, flags)
    _put32(attr, o + P_BASE, p if base < 0 else base)
    _put32(attr, o + P_SITUATION, q)
    _put32(attr, o + P_CONTEXT, context)
    _put32(attr, o + P_LINE, is_line)
    return p


@_kernel
def lower_bound(a, low, high, v):
    while low < high:
        mid = (low + high) >> 1
        if _get64(a, mid) < v:
            low = mid + 1
        else:
            high = mid
    return low


@_kernel
def _item_slot(items, slots, mask, item):
    """Return the slot of an item in the ``mask + 1`` slots of BUF_SEEN, or the free one where it belongs."""
    x = (_product(item, -7046029254386353131) >> 32) & mask
    while True:
        q = _get64(slots, x)
        if q < 0 or _get64(items, q) == item:
            return x
        x = (x + 1) & mask


@far_function
def _add_item(h, n, item):
    """Append an item to BUF_ITEMS unless it is there; return the new length, or GROW.

    A few items are looked through; of more, BUF_SEEN knows the places.
    """
    buf = _view(h, BUF_ITEMS)
    if n < FEW_ITEMS:
        for q in range(n):
            if _get64(buf, q) == item:
                return n
        r = room_for(h, BUF_ITEMS, n + 1)
        if r < 0:
            return r
        _put64(buf, n, item)
        return n + 1
    size = _header(h, S_SEEN)
    if 2 * (n + 1) > size:
        size = max(8 * FEW_ITEMS, 2 * size)
        r = room_for(h, BUF_SEEN, size)
        if r < 0:
            return r
        slots = _view(h, BUF_SEEN)
        for x in range(size):
            _put64(slots, x, -1)
        for q in range(n):
            _put64(slots, _item_slot(buf, slots, size - 1, _get64(buf, q)), q)
        _set_header(h, S_SEEN, size)
    slots = _view(h, BUF_SEEN)
    x = _item_slot(buf, slots, size - 1, item)
    if _get64(slots, x) >= 0:
        return n
    r = room_for(h, BUF_ITEMS, n + 1)
    if r < 0:
        return r
    _put64(buf, n, item)
    _put64(slots, x, n)
    return n + 1


@far_function
def _parser_step(h, p, a, context):
    """Advance parser state ``p`` over the accept set ``a`` into ``context``.

    The origins that completions reached, other than the state itself, are left in TO_POOL behind its used
    part; S_REACHED says how many.
    """
    a_off = _view(h, A_OFF)
    a_pool = _view(h, A_POOL)
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    attr = _view(h, P_ATTR)
    ignored = _view(h, IGNORED)
    base = _get32(attr, P_STRIDE * p + P_BASE)
    flags = _get32(attr, P_STRIDE * p + P_FLAGS)
    r = count_work(h, 2)
    if r < 0:
        return r
    _set_header(h, S_REACHED, 0)
    _set_header(h, S_SEEN, 0)
    first = _get64(a_off, a)
    last = _get64(a_off, a + 1)
    n_ignored = flags >> P_IGNORED
    may_ignore = False
    text = _get64(a_pool, last - 1) - _header(h, S_TEXT)
    if text < 0 or _header(h, S_TEXT) == _header(h, S_LINE):
        text = -1
    else:
        last -= 1
    for k in range(first, last):
        t = named_terminal(h, _get64(a_pool, k))
        if _get32(ignored, t) != 0 and n_ignored < _header(h, S_IGNORED_MOST):
            may_ignore = True
    start = _get64(off, p)
    n_kernel = _get64(off, p + 1) - start - 1
    items = _view(h, BUF_ITEMS)
    n = 0
    template = _get32(attr, P_STRIDE * p + P_TEMPLATE)
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    rule_off = _view(h, RULE_OFF)
    rule_symbol = _view(h, RULE_SYMBOL)
    is_final = _view(h, IS_FINAL)
    rule_of = _view(h, RULE_OF)
    pt = _view(h, PT_POOL)
    pt_off = _view(h, PT_OFF)
    px = _view(h, PX_POOL)
    px_off = _view(h, PX_OFF)
    for k in range(first, last):
        t = named_terminal(h, _get64(a_pool, k))
        for i in range(n_kernel):
            v = _get64(pool, start + i)
            d = v >> 32
            for e in range(_get32(term_off, d), _get32(term_off, d + 1)):
                if _get32(term_symbol, e) == t:
                    target = terminal_target(h, d, e, text)
                    if target == DEAD:
                        continue
                    if target < 0:
                        return target
                    n = _add_item(h, n, (target << 32) | (v & LOW32))
                    if n < 0:
                        return n
        end = _get64(pt_off, template + 1)
        i = lower_bound(pt, _get64(pt_off, template), end, t << 32)
        while i < end and _get64(pt, i) >> 32 == t:
            n = _add_item(h, n, ((_get64(pt, i) & LOW32) << 32) | (base + 1))
            if n < 0:
                return n
            i += 1
    accepting = 0
    if may_ignore and _header(h, S_TRAILING) != 0:
        accepting = flags & P_ACCEPTING
    if n == 0:
        if not may_ignore:
            return DEAD
        # The same items; only what may be ignored next, and whether the text may end, can change.
        f = accepting | ((n_ignored + _header(h, S_IGNORED_STEP)) << P_IGNORED)
        if f == flags:
            return p
        r = room_for(h, BUF_KERNEL, n_kernel + 1)
        if r < 0:
            return r
        kernel = _view(h, BUF_KERNEL)
        for i in range(n_kernel):
            _put64(kernel, i, _get64(pool, start + i))
        return _parser_intern(h, n_kernel, f, base, context)
    reached = _view(h, TO_POOL)
    r0 = _header(h, USED + TO_POOL)
    n_reached = 0
    i = 0
    while i < n:
        v = _get64(items, i)
        d = v >> 32
        i += 1
        if _get32(is_final, d) == 0:
            continue
        origin = (v & LOW32) - 1
        rule = _get32(rule_of, d)
        if origin != base:
            is_known = False
            for q in range(n_reached):
                if _get64(reached, r0 + q) == origin:
                    is_known = True
                    break
            if not is_known:
                r = room_for(h, TO_POOL, r0 + n_reached + 1)
                if r < 0:
                    return r
                _put64(reached, r0 + n_reached, origin)
                n_reached += 1
        if origin < 0:
            accepting = P_ACCEPTING
            continue
        r = count_work(h, 1 + (n_reached + _get64(off, origin + 1) - _get64(off, origin)) // 16)
        if r < 0:
            return r
        for j in range(_get64(off, origin), _get64(off, origin + 1) - 1):
            w = _get64(pool, j)
            d = w >> 32
            for e in range(_get32(rule_off, d), _get32(rule_off, d + 1)):
                if _get32(rule_symbol, e) == rule:
                    target = rule_target(h, d, e)
                    if target < 0:
                        return target
                    n = _add_item(h, n, (target << 32) | (w & LOW32))
                    if n < 0:
                        return n
        z = _get32(attr, P_STRIDE * origin + P_TEMPLATE)
        end = _get64(px_off, z + 1)
        j = lower_bound(px, _get64(px_off, z), end, rule << 32)
        while j < end and _get64(px, j) >> 32 == rule:
            n = _add_item(h, n, ((_get64(px, j) & LOW32) << 32) | (origin + 1))
            if n < 0:
                return n
            j += 1
    if may_ignore:
        # A terminal that is ignored and stands in a rule, too: both readings go on.
        for i in range(n_kernel):
            n = _add_item(h, n, _get64(pool, start + i))
            if n < 0:
                return n
    r = count_work(h, n)
    if r == 0:
        r = room_for(h, BUF_KERNEL, n + 1)
    if r < 0:
        return r
    kernel = _view(h, BUF_KERNEL)
    m = 0
    for i in range(n):
        v = _get64(items, i)
        d = v >> 32
        if _get32(term_off, d) != _get32(term_off, d + 1) or _get32(rule_off, d) != _get32(rule_off, d + 1):
            _put64(kernel, m, v)
            m += 1
    _set_header(h, S_REACHED, n_reached)
    return _parser_intern(h, m, accepting, -1, context)


@_kernel
def parser_go(h, p, a):
    """Memoised `_parser_step`; S_MARK receives the slot of the memo."""
    memo = _view(h, STEP)
    key = (p << 24) | a
    x = slot_of(memo, 3, key)
    if _get64(memo, 3 * x) == key:
        _set_header(h, S_MARK, x)
        return _get64(memo, 3 * x + 1)
    return _parser_make(h, p, a)


@far_function
def _parser_make(h, p, a):
    """`parser_go` where the step is new."""
    context = _get32(_view(h, P_ATTR), P_STRIDE * p + P_CONTEXT)
    width = _get64(_view(h, A_POOL), _get64(_view(h, A_OFF), a)) - _header(h, S_LINE)
    if 0 <= width < TOO_WIDE:
        p1 = _line_step(h, p, width)
    else:
        if a == _header(h, S_AFTER_DEDENT):
            context = _around(h, context)
        p1 = _parser_step(h, p, a, context)
    if p1 <= GROW:
        return p1
    # Steps made on the way may have taken the slot.
    r = slot_room(h, STEP, 3)
    if r < 0:
        return r
    memo = _view(h, STEP)
    key = (p << 24) | a
    x = slot_of(memo, 3, key)
    n = _header(h, S_REACHED)
    o = _header(h, USED + TO_POOL)
    _put64(memo, 3 * x, key)
    _put64(memo, 3 * x + 1, p1)
    _put64(memo, 3 * x + 2, (o << 20) | n)
    _set_header(h, USED + TO_POOL, o + n)
    _set_header(h, USED + STEP, _header(h, USED + STEP) + 1)
    _set_header(h, S_MARK, x)
    return p1


@far_function
def _is_inside(h, template):
    """1 if a template's dotted states stand between brackets."""
    off = _view(h, TP_OFF)
    pool = _view(h, TP_POOL)
    rule_of = _view(h, RULE_OF)
    inside = _view(h, RULE_INSIDE)
    for i in range(_get64(off, template), _get64(off, template + 1)):
        if _get32(inside, _get32(rule_of, _get64(pool, i))) != 0:
            return 1
    return 0


@_kernel
def _is_blocked(h, template, t, stamp):
    """1 if none of the terminals marked in TERM_MARK can follow the ignored terminal ``t``.

    Between brackets a line break may stand between them.
    """
    row = _get32(_view(h, BARRED_ROW), t)
    if row < 0 or (_header(h, S_INNER_NEWLINE) >= 0 and _is_inside(h, template) != 0):
        return 0
    mark = _view(h, TERM_MARK)
    blocked = _view(h, BARRED)
    n = _header(h, S_TERMINALS)
    for u in range(n):
        if _get64(mark, u) == stamp and _get32(blocked, row * n + u) == 0:
            return 0
    return 1


@far_function
def start_lexer(h, p):
    """Return the lexer state in which the next lexeme after ``p`` starts; DEAD if nothing can follow."""
    attr = _view(h, P_ATTR)
    q = _get32(attr, P_STRIDE * p + P_SITUATION)
    lex = _view(h, Q_LEX)
    if q >= 0:
        r = _get32(lex, q)
        if r != UNFILLED:
            return r
    z = _get32(attr, P_STRIDE * p + P_TEMPLATE)
    flags = _get32(attr, P_STRIDE * p + P_FLAGS)
    newline = _header(h, S_NEWLINE)
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    start_off = _view(h, START_OFF)
    starts = _view(h, START_POOL)
    mark = _view(h, TERM_MARK)
    buf = _view(h, BUF_LEXER)
    stamp = next_stamp(h)
    n = 0
    n_kernel = _get64(off, p + 1) - 1 - _get64(off, p)
    for i in range(_get64(off, p), _get64(off, p + 1) - 1):
        d = _get64(pool, i) >> 32
        for e in range(_get32(term_off, d), _get32(term_off, d + 1)):
            t = _get32(term_symbol, e)
            texts = _excluded_at(h, d, e)
            if texts >= -1:
                v = _start_excluding(h, t, texts)
                if v <= GROW:
                    return v
                r = room_for(h, BUF_LEXER, n + 2)
                if r < 0:
                    return r
                if v >= 0:
                    _put64(buf, n, v)
                    _put64(buf, n + 1, _header(h, S_FRESH) + RECORDER)
                    n += 2
                continue
            if _get64(mark, t) != stamp:
                _put64(mark, t, stamp)
                if t == newline:
                    continue
                for j in range(_get32(start_off, t), _get32(start_off, t + 1)):
                    r = room_for(h, BUF_LEXER, n + 1)
                    if r < 0:
                        return r
                    _put64(buf, n, _get64(starts, j))
                    n += 1
    pt = _view(h, PT_POOL)
    pt_off = _view(h, PT_OFF)
    for k in range(_get64(pt_off, z), _get64(pt_off, z + 1)):
        t = _get64(pt, k) >> 32
        if _get64(mark, t) != stamp:
            _put64(mark, t, stamp)
            if t == newline:
                continue
            for j in range(_get32(start_off, t), _get32(start_off, t + 1)):
                r = room_for(h, BUF_LEXER, n + 1)
                if r < 0:
                    return r
                _put64(buf, n, _get64(starts, j))
                n += 1
    may_ignore = n_kernel > 0 or _header(h, S_TRAILING) != 0
    if may_ignore and flags >> P_IGNORED < _header(h, S_IGNORED_MOST):
        ignored = _view(h, IGNORED_LIST)
        kind = _view(h, IGNORED)
        for i in range(_header(h, USED + IGNORED_LIST)):
            t = _get32(ignored, i)
            if _get32(kind, t) == IGNORED_OPEN and (flags >> P_IGNORED) + 1 >= _header(h, S_IGNORED_MOST):
                continue
            if _is_blocked(h, z, t, stamp) != 0 and (flags & P_ACCEPTING == 0 or _header(h, S_TRAILING) == 0):
                continue
            for j in range(_get32(start_off, t), _get32(start_off, t + 1)):
                r = room_for(h, BUF_LEXER, n + 1)
                if r < 0:
                    return r
                _put64(buf, n, _get64(starts, j))
                n += 1
        t = _header(h, S_INNER_NEWLINE)
        if t >= 0 and _is_inside(h, z) != 0:
            for j in range(_get32(start_off, t), _get32(start_off, t + 1)):
                r = room_for(h, BUF_LEXER, n + 1)
                if r < 0:
                    return r
                _put64(buf, n, _get64(starts, j))
                n += 1
    may_end = flags & P_ACCEPTING
    if q < 0:
        n = _line_starts(h, p, n)
        if n < 0:
            return n
        may_end = may_end_here(h, p)
        if may_end < 0:
            return may_end
    if may_end:
        # The mark keeps "nothing read yet" apart from a state of the middle of a lexeme.
        r = room_for(h, BUF_LEXER, n + 1)
        if r < 0:
            return r
        _put64(buf, n, _header(h, S_FRESH))
        n += 1
    r = DEAD
    if n > 0:
        r = lexer_intern(h, BUF_LEXER, n)
        if r <= GROW:
            return r
    if q < 0:
        q = _situation(h, z, flags, r)
        if q < 0:
            return q
        _put32(attr, P_STRIDE * p + P_SITUATION, q)
        return r
    _put32(lex, q, r)
    return r


# ------------------------------------------------------------------------------------------ indentation
#
# A parser state's *context* is the widths of the blocks around it: an interned pair (context around, width), 0
# for the outermost. A newline lexeme that measured a width steps over the newline and then over an indent, or
# over as many dedents as blocks end. A start lexer state asks only for widths after which the text can go on, so
# it depends on more than the template where a line may end (P_LINE).


@_kernel
def _around(h, context):
    return _get64(_view(h, C_POOL), 2 * context)


@_kernel
def _width_of(h, context):
    return _get64(_view(h, C_POOL), 2 * context + 1)


@_kernel
def _context(h, around, width):
    """Return the context of a block of ``width`` columns."""
    r = room_for(h, BUF_KERNEL, 2)
    if r < 0:
        return r
    buf = _view(h, BUF_KERNEL)
    _put64(buf, 0, around)
    _put64(buf, 1, width)
    return _intern(h, C_OFF, buf, 2)


@_kernel
def accept_one(h, t):
    """Return the accept set of terminal ``t`` alone."""
    count = _header(h, USED + A_OFF)
    r = room_for(h, BUF_ACCEPT, 1)
    if r == 0:
        r = room_for(h, A_ATTR, 2 * count + 2)
    if r < 0:
        return r
    buf = _view(h, BUF_ACCEPT)
    _put64(buf, 0, t)
    a = _intern(h, A_OFF, buf, 1)
    if a == count:
        _put32(_view(h, A_ATTR), 2 * a, _get32(_view(h, HAS_FOLLOW), named_terminal(h, t)))
        _put32(_view(h, A_ATTR), 2 * a + 1, 0)
    return a


@far_function
def _allows(h, template, t):
    """1 if terminal ``t`` may come next; -1: any that is text of its own, other than a newline read as part of one."""
    off = _view(h, TP_OFF)
    pool = _view(h, TP_POOL)
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    pt = _view(h, PT_POOL)
    end = _get64(_view(h, PT_OFF), template + 1)
    first = _get64(_view(h, PT_OFF), template)
    if t >= 0:
        i = lower_bound(pt, first, end, t << 32)
        if i < end and _get64(pt, i) >> 32 == t:
            return 1
    else:
        for i in range(first, end):
            if _is_text(h, _get64(pt, i) >> 32) != 0:
                return 1
    for i in range(_get64(off, template), _get64(off, template + 1)):
        d = _get64(pool, i)
        for e in range(_get32(term_off, d), _get32(term_off, d + 1)):
            s = _get32(term_symbol, e)
            if s == t or (t < 0 and _is_text(h, s) != 0):
                return 1
    return 0


@_kernel
def _is_text(h, t):
    if t == _header(h, S_NEWLINE):
        return 1 - _header(h, S_SPANNING)
    return 1 if t != _header(h, S_INDENT) and t != _header(h, S_DEDENT) else 0


@far_function
def may_end_here(h, p):
    """Nonzero if the text may end in parser state ``p``, once all blocks are closed."""
    attr = _view(h, P_ATTR)
    while _get32(attr, P_STRIDE * p + P_CONTEXT) != 0:
        p = parser_go(h, p, _header(h, S_AFTER_DEDENT))
        if p < 0:
            return p if p <= GROW else 0
    return _get32(attr, P_STRIDE * p + P_FLAGS) & P_ACCEPTING


@far_function
def _can_go_on(h, p):
    """Nonzero if a line may start, or the text end, in parser state ``p`` after a newline."""
    r = _allows(h, _get32(_view(h, P_ATTR), P_STRIDE * p + P_TEMPLATE), -1)
    if r == 0:
        r = may_end_here(h, p)
    return r


@far_function
def _line_step(h, p, width):
    """Return the parser state after a newline and before a line of ``width`` columns, or DEAD."""
    attr = _view(h, P_ATTR)
    q = parser_go(h, p, _header(h, S_AFTER_NEWLINE))
    has_ended = False
    while q >= 0:
        context = _get32(attr, P_STRIDE * q + P_CONTEXT)
        top = _width_of(h, context)
        if width == top:
            break
        if width < top:
            has_ended = True
            q = parser_go(h, q, _header(h, S_AFTER_DEDENT))
        elif has_ended:
            q = DEAD
        else:
            context = _context(h, context, width)
            if context < 0:
                return context
            q = _parser_step(h, q, _header(h, S_AFTER_INDENT), context)
            break
    if q <= GROW:
        return q
    # What follows depends on states outside, whatever the steps reached.
    o = _header(h, USED + TO_POOL)
    r = room_for(h, TO_POOL, o + 1)
    if r < 0:
        return r
    _put64(_view(h, TO_POOL), o, -1)
    _set_header(h, S_REACHED, 1)
    return q


@_kernel
def line_value(h, mode, target):
    """Return the lexer value that starts a newline of a mode."""
    x = _get64(_view(h, START_POOL), _get32(_view(h, START_OFF), _header(h, S_NEWLINE))) & LOW32
    return (((mode << MODE_SHIFT) | (target << TARGET_SHIFT)) << 32) | x


@far_function
def _line_starts(h, p, n):
    """Append to BUF_LEXER the values of newlines that may end a line in ``p``; return the new length."""
    attr = _view(h, P_ATTR)
    q = parser_go(h, p, _header(h, S_AFTER_NEWLINE))
    if q < 0:
        return q if q <= GROW else n
    r = room_for(h, BUF_LEXER, n + 2)
    if r < 0:
        return r
    buf = _view(h, BUF_LEXER)
    goes_on = _can_go_on(h, q)
    if goes_on < 0:
        return goes_on
    v = line_value(h, SAME, 0)
    if goes_on and _get32(_view(h, LINE_FLAGS), v & LOW32) & SAME_END:
        _put64(buf, n, v)
        n += 1
    top = _width_of(h, _get32(attr, P_STRIDE * p + P_CONTEXT))
    if _allows(h, _get32(attr, P_STRIDE * q + P_TEMPLATE), _header(h, S_INDENT)) and top + 1 < TOO_WIDE:
        a = accept_one(h, _header(h, S_LINE) + top + 1)
        if a < 0:
            return a
        deeper = parser_go(h, p, a)
        goes_on = deeper
        if deeper >= 0:
            goes_on = _can_go_on(h, deeper)
        if goes_on <= GROW:
            return goes_on
        if goes_on > 0:
            _put64(buf, n, line_value(h, WIDER, top))
            n += 1
    while q >= 0:
        context = _get32(attr, P_STRIDE * q + P_CONTEXT)
        goes_on = _can_go_on(h, q)
        if goes_on < 0:
            return goes_on
        if goes_on:
            r = room_for(h, BUF_LEXER, n + 1)
            if r < 0:
                return r
            _put64(buf, n, line_value(h, EXACT, _width_of(h, context)))
            n += 1
        if context == 0:
            break
        q = parser_go(h, q, _header(h, S_AFTER_DEDENT))
    return q if q <= GROW else n


# ------------------------------------------------------------------------------------------ matcher states


@far_function
def configuration_intern(h, n):
    """Return the matcher state of the configurations in ``BUF_CONFIG[:n]``."""
    n = _sort_unique(h, BUF_CONFIG, n)
    if n < 0:
        return n
    count = _header(h, USED + D_OFF)
    classes = _header(h, S_CLASSES)
    r = room_for(h, D_ATTR, 4 * count + 4)
    if r == 0:
        r = room_for(h, D_ROW, (count + 1) * classes)
    if r < 0:
        return r
    d = _intern(h, D_OFF, _view(h, BUF_CONFIG), n)
    if d == count:
        row = _view(h, D_ROW)
        for c in range(classes):
            _put32(row, d * classes + c, UNFILLED)
        attr = _view(h, D_ATTR)
        _put32(attr, 4 * d, -1)
        _put32(attr, 4 * d + 1, -1)
        _put32(attr, 4 * d + 2, 0)
        _put32(attr, 4 * d + 3, 0)
    return d


@far_function
def state_fill(h, d, c):
    """Compute the matcher state after class ``c``, or DEAD."""
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    attr = _view(h, L_ATTR)
    buf = _view(h, BUF_CONFIG)
    r = count_work(h, 1)
    if r < 0:
        return r
    n = 0
    for i in range(_get64(off, d), _get64(off, d + 1)):
        v = _get64(pool, i)
        p = v >> 32
        l = v & LOW32
        r = room_for(h, BUF_CONFIG, n + 2)
        if r < 0:
            return r
        l1 = lexer_step(h, l, c)
        if l1 <= GROW:
            return l1
        if l1 >= 0:
            _put64(buf, n, (p << 32) | l1)
            n += 1
        a = _get32(attr, l * L_STRIDE + L_ACC)
        if a >= 0 and (l1 == DEAD or _get32(attr, l * L_STRIDE + L_GREEDY) == 0):
            p1 = parser_go(h, p, a)
            if p1 <= GROW:
                return p1
            if p1 < 0:
                continue
            l0 = start_lexer(h, p1)
            if l0 <= GROW:
                return l0
            if l0 < 0:
                continue
            l2 = lexer_step(h, l0, c)
            if l2 <= GROW:
                return l2
            if l2 >= 0:
                _put64(buf, n, (p1 << 32) | l2)
                n += 1
    r = DEAD
    if n > 0:
        r = configuration_intern(h, n)
        if r <= GROW:
            return r
    _put32(_view(h, D_ROW), d * _header(h, S_CLASSES) + c, r)
    return r


@_kernel
def state_step(h, d, c):
    """Return the matcher state after class ``c``, or DEAD."""
    r = _get32(_view(h, D_ROW), d * _header(h, S_CLASSES) + c)
    if r == UNFILLED:
        r = state_fill(h, d, c)
    return r


@far_function
def state_accepting(h, d):
    """1 if the text may end in matcher state ``d``, else 0."""
    attr = _view(h, D_ATTR)
    known = _get32(attr, 4 * d + 1)
    if known >= 0:
        return known
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    lex = _view(h, L_ATTR)
    answer = 0
    for i in range(_get64(off, d), _get64(off, d + 1)):
        v = _get64(pool, i)
        p = v >> 32
        l = v & LOW32
        # The mark of a fresh lexeme is there where the text may end.
        if _get32(lex, l * L_STRIDE + L_FLAGS) & FLAG_FRESH != 0:
            answer = 1
            break
        a = _get32(lex, l * L_STRIDE + L_ACC)
        if a >= 0:
            p1 = parser_go(h, p, a)
            if p1 <= GROW:
                return p1
            if p1 >= 0:
                answer = may_end_here(h, p1)
                if answer != 0:
                    break
    if answer < 0:
        return answer
    _put32(attr, 4 * d + 1, answer)
    return answer


# ------------------------------------------------------------------------------------------ entries


@_kernel
def _walk_range(h, first, last, depth0, n_tokens, n_exits):
    """Walk trie nodes ``first..last`` with the lexer alone; X_STACK[depth0] holds their parent's state.

    Appends tokens that end inside the lexeme to X_TOKENS, and to X_EXITS the nodes (below the first level)
    where another lexeme would start: ``accept set << 40 | first byte << 32 | node``.
    Returns (number of tokens or GROW, number of exits).
    """
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    row = _view(h, L_ROW)
    attr = _view(h, L_ATTR)
    follow = _view(h, A_ATTR)
    stack = scratch_of(h, X_STACK)
    tokens = scratch_of(h, X_TOKENS)
    exits = scratch_of(h, X_EXITS)
    classes = _header(h, S_CLASSES)
    i = first
    while i < last:
        w = _get64(nodes, i)
        depth = (w >> 8) & 0xFFFF
        above = _get64(stack, depth - 1)
        c = _get8(class_of, w & 255)
        l = _get32(row, above * classes + c)
        if l == UNFILLED:
            l = fill_mask(h, above, c)
            if l <= GROW:
                return l, n_exits
        if depth > depth0 + 1:
            a = _get32(attr, above * L_STRIDE + L_ACC)
            if (
                a >= 0
                and (l == DEAD or _get32(attr, above * L_STRIDE + L_GREEDY) == 0)
                and _get32(follow, 2 * a) != 0
            ):
                if n_exits >= exits[1]:
                    return ask_for(h, N_TABLES + X_EXITS, 2 * n_exits + 16), n_exits
                _put64(exits, n_exits, (a << 40) | ((w & 255) << 32) | i)
                n_exits += 1
        if l >= 0:
            _put64(stack, depth, l)
            t = _get32(node_token, i)
            if t >= 0:
                if n_tokens >= tokens[1]:
                    return ask_for(h, N_TABLES + X_TOKENS, 2 * n_tokens + 16), n_exits
                _put32(tokens, n_tokens, t)
                n_tokens += 1
            i += 1
        else:
            i += w >> 24
    return n_tokens, n_exits


@_kernel
def _walk_set(h, t, l, low, high):
    """Walk the interned node set ``t``, but for its nodes from ``low`` to before ``high``, from ``l``; as `_walk_range`.

    A set may hold a node and its ancestor (blanks cut in several ways), so a walk may meet a node more than once.
    """
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    tokens = scratch_of(h, X_TOKENS)
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    n_tokens = 0
    n_exits = 0
    i = _get64(off, t)
    end = _get64(off, t + 1)
    while i < end:
        byte = _get64(pool, i) >> 32
        s = lexer_step(h, l, _get8(class_of, byte))
        if s <= GROW:
            return s, n_exits
        if s < 0:
            # Gallop to the next first byte.
            step = 1
            while i + step < end and _get64(pool, i + step) >> 32 == byte:
                i += step
                step *= 2
            while i < end and _get64(pool, i) >> 32 == byte:
                i += 1
            continue
        while i < end and _get64(pool, i) >> 32 == byte:
            x = _get64(pool, i) & LOW32
            if low <= x < high:
                i += 1
                continue
            w = _get64(nodes, x)
            token = _get32(node_token, x)
            if token >= 0:
                if n_tokens >= tokens[1]:
                    return ask_for(h, N_TABLES + X_TOKENS, 2 * n_tokens + 16), n_exits
                _put32(tokens, n_tokens, token)
                n_tokens += 1
            size = w >> 24
            if size > 1:
                depth = (w >> 8) & 0xFFFF
                _put64(stack, depth, s)
                n_tokens, n_exits = _walk_range(h, x + 1, x + size, depth - 1, n_tokens, n_exits)
                if n_tokens < 0:
                    return n_tokens, n_exits
            i += 1
    return n_tokens, n_exits


@far_function
def slice_check(h, l):
    """Do all one-character strings of the slice stay inside the lexeme from ``l``? 1 all, 2 none, 3 some.

    The lexer states after one character go to SLICE_POOL (count, then states).
    """
    attr = _view(h, L_ATTR)
    known = _get32(attr, l * L_STRIDE + L_CHARS)
    if known != 0:
        return known
    classes = _header(h, S_CLASSES)
    slice_row = _view(h, SLICE_ROW)
    slice_accept = _view(h, SLICE_ACCEPT)
    follow = _view(h, A_ATTR)
    pool = _view(h, SLICE_POOL)
    work = _view(h, BUF_CHARS)
    o = _header(h, USED + SLICE_POOL)
    n_after = 0
    r = room_for(h, BUF_CHARS, 1)
    if r < 0:
        return r
    _put64(work, 0, l << 16)
    n = 1
    i = 0
    has_alive = False
    has_dead = False
    while i < n and not (has_alive and has_dead):
        v = _get64(work, i)
        i += 1
        s = v & 0xFFFF
        q = v >> 16
        last_q = -9
        last_s = -9
        for c in range(classes):
            s2 = _get32(slice_row, s * classes + c)
            if s2 < 0:
                continue
            q2 = lexer_step(h, q, c)
            if q2 <= GROW:
                return q2
            if q2 < 0:
                has_dead = True
                continue
            has_alive = True
            if q2 == last_q and s2 == last_s:
                continue
            last_q = q2
            last_s = s2
            a = _get32(attr, q2 * L_STRIDE + L_ACC)
            is_whole = _get8(slice_accept, s2) != 0
            # Where a greedy lexeme may end between characters, only one that it can't take begins another lexeme.
            if (
                a >= 0
                and _get32(follow, 2 * a) != 0
                and (not is_whole or _get32(attr, q2 * L_STRIDE + L_GREEDY) == 0)
            ):
                has_dead = True
                continue
            if is_whole:
                is_known = False
                for j in range(n_after):
                    if _get32(pool, o + 1 + j) == q2:
                        is_known = True
                        break
                if not is_known:
                    r = room_for(h, SLICE_POOL, o + n_after + 2)
                    if r < 0:
                        return r
                    _put32(pool, o + 1 + n_after, q2)
                    n_after += 1
            else:
                key = (q2 << 16) | s2
                is_known = False
                for j in range(n):
                    if _get64(work, j) == key:
                        is_known = True
                        break
                if not is_known:
                    r = room_for(h, BUF_CHARS, n + 1)
                    if r < 0:
                        return r
                    _put64(work, n, key)
                    n += 1
    r = room_for(h, SLICE_POOL, o + 1)
    if r < 0:
        return r
    result = 3
    if not has_dead:
        result = 1
    elif not has_alive:
        result = 2
    _put32(pool, o, n_after)
    _put32(attr, l * L_STRIDE + L_CHARS_OFF, o)
    _put32(attr, l * L_STRIDE + L_CHARS, result)
    _set_header(h, USED + SLICE_POOL, o + 1 + n_after)
    return result


@far_function
def _slice_layer(h, l):
    """Return ``2 * k + walk_buckets``: slice tokens of at most ``k`` characters are allowed in ``l``.

    ``k`` counts layers, ``S_LAYERS - 1`` meaning all; ``walk_buckets`` is 1 if longer ones must be walked.
    """
    top = _header(h, S_LAYERS) - 1
    attr = _view(h, L_ATTR)
    a = _get32(attr, l * L_STRIDE + L_ACC)
    if _header(h, S_USE_SLICES) == 0 or top < 1:
        return 1
    follow = _view(h, A_ATTR)
    if a >= 0 and _get32(follow, 2 * a) != 0 and _get32(attr, l * L_STRIDE + L_GREEDY) == 0:
        return 1
    queue = _view(h, BUF_SPLIT)
    pool = _view(h, SLICE_POOL)
    r = room_for(h, BUF_SPLIT, 1)
    if r < 0:
        return r
    _put64(queue, 0, l)
    n = 1
    i = 0
    is_chain = True
    while i < n:
        q = _get64(queue, i) & LOW32
        depth = _get64(queue, i) >> 32
        i += 1
        if depth >= top - 1:
            return 2 * (top - 1) + 1
        r = slice_check(h, q)
        if r < 0:
            return r
        if r != 1:
            # All tokens of at most `depth` characters live; in a chain that ends dead, no longer one does, nor
            # begins another lexeme unless one may end there.
            a = _get32(attr, q * L_STRIDE + L_ACC)
            may_end = depth > 0 and a >= 0 and _get32(follow, 2 * a) != 0
            return 2 * depth + (0 if is_chain and r == 2 and not may_end else 1)
        o = _get32(attr, q * L_STRIDE + L_CHARS_OFF)
        m = _get32(pool, o)
        if m > 1:
            is_chain = False
        for j in range(m):
            y = _get32(pool, o + 1 + j)
            is_known = False
            for z in range(n):
                if _get64(queue, z) & LOW32 == y:
                    is_known = True
                    break
            if not is_known:
                r = room_for(h, BUF_SPLIT, n + 1)
                if r < 0:
                    return r
                _put64(queue, n, ((depth + 1) << 32) | y)
                n += 1
        if n > 512:
            return 2 * depth + 1
    return 2 * top


@_kernel
def _node_set(h, table, n):
    """Return the id of the set of the first ``n`` nodes (with their bytes) in ``table``; note its size if it is new."""
    count = _header(h, USED + T_OFF)
    r = room_for(h, T_SIZE, count + 1)
    if r < 0:
        return r
    buf = _view(h, table)
    t = _intern(h, T_OFF, buf, n)
    if t == count:
        nodes = _view(h, NODES)
        size = 0
        for i in range(n):
            size += _get64(nodes, _get64(buf, i) & LOW32) >> 24
        _put64(_view(h, T_SIZE), t, size << 2)
    return t


@_kernel
def _intern_nodes(h, first, last):
    """Return the node set of ``X_EXITS[first:last]`` (sorted), without their accept sets; GROW possible."""
    exits = scratch_of(h, X_EXITS)
    n = last - first
    r = room_for(h, BUF_NODES, n)
    if r < 0:
        return r
    buf = _view(h, BUF_NODES)
    # A node reached by two segmentations of its token comes twice.
    m = 0
    for i in range(first, last):
        v = _get64(exits, i) & LOW40
        if m == 0 or v != _get64(buf, m - 1):
            _put64(buf, m, v)
            m += 1
    return _node_set(h, BUF_NODES, m)


@far_function
def _store_entry(h, key, n_tokens, n_exits, layer, g0, n_groups):
    """Write a new entry from X_TOKENS, a slice layer and groups already in GROUPS; return its id.

    Groups of the exits in X_EXITS are made first, behind the ``n_groups`` given.
    """
    words = _header(h, S_WORDS)
    exits = scratch_of(h, X_EXITS)
    groups = _view(h, GROUPS)
    if n_exits > 0:
        _sort_at(h, exits[0], n_exits, scratch_of(h, X_MERGE)[0])
        i = 0
        while i < n_exits:
            a = _get64(exits, i) >> 40
            j = i + 1
            while j < n_exits and _get64(exits, j) >> 40 == a:
                j += 1
            r = room_for(h, GROUPS, 2 * (g0 + n_groups + 1))
            if r == 0:
                r = _intern_nodes(h, i, j)
            if r < 0:
                return r
            _put64(groups, 2 * (g0 + n_groups), a)
            _put64(groups, 2 * (g0 + n_groups) + 1, r)
            n_groups += 1
            i = j
    count = _header(h, USED + E_ATTR)
    r = room_for(h, E_ATTR, (count + 1) * E_STRIDE)
    if r == 0:
        r = slot_room(h, ENTRY, 2)
    if r < 0:
        return r
    attr = _view(h, E_ATTR)
    tokens = scratch_of(h, X_TOKENS)
    o = count * E_STRIDE
    kind = SPARSE if layer == 0 else LAYER
    dense = layer
    kept = n_tokens
    t0 = _header(h, USED + TOKENS)
    if n_tokens > _header(h, S_SPARSE):
        kind = DENSE
        dense = _header(h, USED + E_MASK)
        r = room_for(h, E_MASK, (dense + 1) * words)
        if r < 0:
            return r
        mask = _view(h, E_MASK)
        m0 = dense * words
        if layer > 0:
            layers = _view(h, LAYERS)
            for k in range(words):
                _put32(mask, m0 + k, _get32(layers, layer * words + k))
        else:
            for k in range(words):
                _put32(mask, m0 + k, 0)
        for i in range(n_tokens):
            t = _get32(tokens, i)
            k = m0 + (t >> 5)
            _put32(mask, k, _get32(mask, k) | (1 << (t & 31)))
        _set_header(h, USED + E_MASK, dense + 1)
        kept = 0
    else:
        r = room_for(h, TOKENS, t0 + n_tokens)
        if r < 0:
            return r
        pool = _view(h, TOKENS)
        for i in range(n_tokens):
            _put32(pool, t0 + i, _get32(tokens, i))
        _set_header(h, USED + TOKENS, t0 + n_tokens)
    _put64(attr, o + E_KIND, kind)
    _put64(attr, o + E_TOK_OFF, t0)
    _put64(attr, o + E_TOK_N, kept)
    _put64(attr, o + E_DENSE, dense)
    _put64(attr, o + E_GROUP_OFF, g0)
    _put64(attr, o + E_GROUP_N, n_groups)
    _put64(attr, o + E_STAMP, 0)
    _put64(attr, o + E_COST, kept + (0 if kind == SPARSE else 400))
    _set_header(h, USED + GROUPS, g0 + n_groups)
    _set_header(h, USED + E_ATTR, count + 1)
    memo = _view(h, ENTRY)
    x = slot_of(memo, 2, key)
    _put64(memo, 2 * x, key)
    _put64(memo, 2 * x + 1, count)
    _set_header(h, USED + ENTRY, _header(h, USED + ENTRY) + 1)
    return count


@_kernel
def _step_less(h, packed, c):
    """Step the three lexer states in ``packed`` (21 bits each: whole, without the last part, that part).

    Returns DEAD where the last part is dead, else them; those that are dead as 21 ones.
    """
    part = lexer_step(h, packed & 0x1FFFFF, c)
    if part < 0:
        return part if part <= GROW else DEAD
    more = lexer_step(h, (packed >> 21) & 0x1FFFFF, c)
    if more <= GROW:
        return more
    whole = lexer_step(h, packed >> 42, c)
    if whole <= GROW:
        return whole
    return (max(whole, -1) & 0x1FFFFF) << 42 | (max(more, -1) & 0x1FFFFF) << 21 | part


_MOST_REMOVED = 4096  # tokens that an entry may lack of the one that it is made of
_MOST_ALIVE = 16384  # nodes at which the excluded part may be alive


@_kernel
def _walk_less(h, first, last, depth0, n_removed, stamp):
    """Walk trie nodes ``first..last`` where the excluded part of a lexer state is alive; as `_walk_range`.

    Tokens that end in what only the state without it can read go to BUF_CHARS, and nodes at which only that one
    would begin another lexeme are marked. Returns their number; UNFILLED if a greedy lexeme ends there instead, or
    if they are many: then an entry is made sooner without this.
    """
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    attr = _view(h, L_ATTR)
    stack = scratch_of(h, X_STACK)
    mark = scratch_of(h, X_MARK)
    removed = _view(h, BUF_CHARS)
    i = first
    while i < last:
        w = _get64(nodes, i)
        end = i + (w >> 24)
        depth = (w >> 8) & 0xFFFF
        above = _get64(stack, depth - 1)
        if depth > depth0 + 1:
            accepted = _get32(attr, ((above >> 21) & 0x1FFFFF) * L_STRIDE + L_ACC)
            if accepted >= 0 and _get32(attr, (above >> 42) * L_STRIDE + L_ACC) < 0:
                _put64(mark, i, stamp)
        r = _step_less(h, above, _get8(class_of, w & 255))
        if r <= GROW:
            return r
        if r < 0 or (r >> 21) & 0x1FFFFF == 0x1FFFFF:
            i = end
            continue
        if r >> 42 != 0x1FFFFF:
            _put64(stack, depth, r)
            i += 1
            continue
        if _get32(attr, (above >> 42) * L_STRIDE + L_ACC) >= 0:
            return UNFILLED
        while i < end:
            token = _get32(node_token, i)
            if token >= 0:
                r = room_for(h, BUF_CHARS, n_removed + 1)
                if r < 0:
                    return r
                _put64(removed, n_removed, token)
                n_removed += 1
                if n_removed > _MOST_REMOVED:
                    return UNFILLED
            i += 1
            if i < end:
                _put64(mark, i, stamp)
    return n_removed


@_kernel
def _is_alive_widely(h, t, l):
    """1 if lexer state ``l`` is alive at many nodes of ``t``, else 0, or GROW."""
    nodes = _view(h, NODES)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    n_alive = 0
    for k in range(_get64(off, t), _get64(off, t + 1)):
        i = _get64(pool, k) & LOW32
        w = _get64(nodes, i)
        end = i + (w >> 24)
        _put64(stack, ((w >> 8) & 0xFFFF) - 1, l)
        while i < end:
            w = _get64(nodes, i)
            depth = (w >> 8) & 0xFFFF
            s = lexer_step(h, _get64(stack, depth - 1), _get8(class_of, w & 255))
            if s <= GROW:
                return s
            if s < 0:
                i += w >> 24
                continue
            n_alive += 1
            if n_alive > _MOST_ALIVE:
                return 1
            _put64(stack, depth, s)
            i += 1
    return 0


@far_function
def _entry_less(h, t, l):
    """Return the entry of ``(t, l)`` where ``l`` is one element that excludes something, or UNFILLED.

    It is the entry of the element without its last negative part, but for the few nodes where that part is alive.
    """
    off = _view(h, L_OFF)
    first = _get64(off, l)
    positions = _header(h, S_POSITIONS)
    if _get64(off, l + 1) - first != 1 or _header(h, USED + L_OFF) >= 1 << 20 or _header(h, S_USE_SPLIT) == 0:
        return UNFILLED
    e = (_get64(_view(h, L_POOL), first) & LOW32) - positions
    if e < 0:
        return UNFILLED
    element_off = _view(h, EL_OFF)
    elements = _view(h, EL_POOL)
    o = _get64(element_off, e)
    n = _get64(element_off, e + 1) - o
    if n < 3 or _get64(elements, o + n - 1) & 1 == 0:
        return UNFILLED
    t_off = _view(h, T_OFF)
    t_pool = _view(h, T_POOL)
    nodes = _view(h, NODES)
    if _is_large(h, t) == 0:
        return UNFILLED
    r = _is_nested(h, t)
    if r != 0:
        return r if r < 0 else UNFILLED
    part = _get64(elements, o + n - 1) >> 1
    r = _is_alive_widely(h, t, part)
    if r != 0:
        return r if r < 0 else UNFILLED
    count = _header(h, USED + EL_OFF)
    r = room_for(h, BUF_ELEMENT, n)
    if r == 0:
        r = room_for(h, EL_ATTR, (count + 1) * 3)
    if r == 0:
        r = room_for(h, BUF_PLAIN, 1)
    if r < 0:
        return r
    buf = _view(h, BUF_ELEMENT)
    for i in range(n - 1):
        _put64(buf, i, _get64(elements, o + i))
    f = _intern(h, EL_OFF, buf, n - 1)
    if f < 0:
        return f
    if f == count:
        attr = _view(h, EL_ATTR)
        _put64(attr, 3 * f, 1 if n == 3 else 0)
        _put64(attr, 3 * f + 1, -1)
        _put64(attr, 3 * f + 2, 0)
    r = _element_alive(h, f)
    if r < 0:
        return r
    _put64(_view(h, BUF_PLAIN), 0, positions + f)
    more = lexer_intern(h, BUF_PLAIN, 1)
    if more < 0:
        return more
    shared = _canonical(h, more)
    if shared < 0:
        return shared
    e0 = _entry_whole(h, t, shared)
    if e0 < 0:
        return e0
    _set_header(h, S_WALK_KEY, 0)
    stack = scratch_of(h, X_STACK)
    mark = scratch_of(h, X_MARK)
    last_mark = mark[1] - 1
    stamp = _get64(mark, last_mark) + 1
    _put64(mark, last_mark, stamp)
    packed = (l << 42) | (more << 21) | part
    n_removed = 0
    removed = _view(h, BUF_CHARS)
    class_of = _view(h, CLASS_OF)
    for i in range(_get64(t_off, t), _get64(t_off, t + 1)):
        r = lexer_step(h, part, _get8(class_of, _get64(t_pool, i) >> 32))
        if r <= GROW:
            return r
        if r < 0:
            continue
        y = _get64(t_pool, i) & LOW32
        w = _get64(nodes, y)
        depth = (w >> 8) & 0xFFFF
        _put64(stack, depth - 1, packed)
        n_removed = _walk_less(h, y, y + (w >> 24), depth - 1, n_removed, stamp)
        if n_removed < 0:
            return n_removed
    # The tokens that are left. They take the place of a walk's that scratch may still hold.
    _set_header(h, S_WALK_KEY, 0)
    if n_removed > 32:
        r = room_for(h, BUF_CHARS, 2 * n_removed)
        if r < 0:
            return r
    _sort_at(h, removed[0], n_removed, removed[0] + 8 * n_removed)
    entries = _view(h, E_ATTR)
    o = e0 * E_STRIDE
    sparse_pool = _view(h, TOKENS)
    tokens = scratch_of(h, X_TOKENS)
    n_tokens = 0
    n_found = 0
    first = _get64(entries, o + E_TOK_OFF)
    for i in range(first, first + _get64(entries, o + E_TOK_N)):
        token = _get32(sparse_pool, i)
        k = lower_bound(removed, 0, n_removed, token)
        if k < n_removed and _get64(removed, k) == token:
            n_found += 1
        else:
            _put32(tokens, n_tokens, token)
            n_tokens += 1
    kind = _get64(entries, o + E_KIND)
    is_dense = kind == DENSE or (kind == LAYER and n_found < n_removed)
    layer = _get64(entries, o + E_DENSE) if kind == LAYER and not is_dense else 0
    g0 = _header(h, USED + GROUPS)
    n_groups = 0
    groups = _view(h, GROUPS)
    for g in range(_get64(entries, o + E_GROUP_N)):
        source = _get64(entries, o + E_GROUP_OFF) + g
        t1 = _get64(groups, 2 * source + 1)
        first = _get64(t_off, t1)
        last = _get64(t_off, t1 + 1)
        r = room_for(h, BUF_NODES, last - first)
        if r == 0:
            r = room_for(h, GROUPS, 2 * (g0 + n_groups + 1))
        if r < 0:
            return r
        left = _view(h, BUF_NODES)
        m = 0
        for i in range(first, last):
            v = _get64(t_pool, i)
            if _get64(mark, v & LOW32) != stamp:
                _put64(left, m, v)
                m += 1
        if m == 0:
            continue
        if m < last - first:
            t1 = _node_set(h, BUF_NODES, m)
            if t1 < 0:
                return t1
        _put64(groups, 2 * (g0 + n_groups), _get64(groups, 2 * source))
        _put64(groups, 2 * (g0 + n_groups) + 1, t1)
        n_groups += 1
    key = (t << 32) | l
    if not is_dense:
        return _store_entry(h, key, n_tokens, 0, layer, g0, n_groups)
    words = _header(h, S_WORDS)
    dense = _header(h, USED + E_MASK)
    r = room_for(h, E_MASK, (dense + 1) * words)
    if r < 0:
        return r
    mask = _view(h, E_MASK)
    found = _store_entry(h, key, 0, 0, 0, g0, n_groups)
    if found < 0:
        return found
    for k in range(words):
        _put32(mask, dense * words + k, 0)
    _or_entry(h, e0, (mask[0] + 4 * dense * words, words))
    for i in range(n_removed):
        token = _get64(removed, i)
        k = dense * words + (token >> 5)
        _put32(mask, k, _get32(mask, k) & ~(1 << (token & 31)))
    _set_header(h, USED + E_MASK, dense + 1)
    o = found * E_STRIDE
    _put64(entries, o + E_KIND, DENSE)
    _put64(entries, o + E_DENSE, dense)
    _put64(entries, o + E_COST, 400)
    return found


@far_function
def _model(h, l):
    """Return the state in which most of a lexeme that has reached ``l`` is read, or -1.

    From state to state follow what more ASCII bytes lead to than to any other (if there is such a state: one vote
    against another, Boyer and Moore); a state that leads to itself is a model. The choice changes no answer.
    """
    attr = _view(h, L_ATTR)
    r = _get32(attr, l * L_STRIDE + L_MODEL)
    if r != UNFILLED:
        return r
    class_of = _view(h, CLASS_OF)
    q = l
    r = -1
    for _ in range(6):
        chosen = -1
        votes = 0
        for byte in range(128):
            s = lexer_step(h, q, _get8(class_of, byte))
            if s == LIMIT:
                _put32(attr, l * L_STRIDE + L_MODEL, -1)
                return -1
            if s <= GROW:
                return s
            if s < 0:
                continue
            if s == chosen:
                votes += 1
            elif votes == 0:
                chosen = s
                votes = 1
            else:
                votes -= 1
        if chosen < 0 or chosen == q:
            r = chosen
            break
        q = chosen
    if r >= 0:
        s = _canonical(h, r)
        if s < 0:
            return s
        if s != r:
            r = -1
    _put32(attr, l * L_STRIDE + L_MODEL, r)
    return r


@_kernel
def _step_or_dead(h, l, c):
    """`lexer_step` of a state that may be dead."""
    return l if l < 0 else lexer_step(h, l, c)


@_kernel
def _two_states(l, g):
    return ((l + 4) << 32) | (g + 4)


@_kernel
def _walk_apart(h, first, last, depth0, n_tokens, n_gone, n_exits, stamp, n_marked):
    """Walk trie nodes ``first..last`` where two states differ; X_STACK[depth0] holds their parent's pair of states.

    Tokens that only the first takes go to X_TOKENS, those that only the second takes to X_MERGE; the
    exits of the first, below the first level, go to X_EXITS, and all nodes there are marked.
    Returns (number of tokens or GROW, tokens gone, exits, marks).
    """
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    attr = _view(h, L_ATTR)
    follow = _view(h, A_ATTR)
    stack = scratch_of(h, X_STACK)
    tokens = scratch_of(h, X_TOKENS)
    gone = scratch_of(h, X_MERGE)
    exits = scratch_of(h, X_EXITS)
    mark = scratch_of(h, X_MARK)
    i = first
    while i < last:
        w = _get64(nodes, i)
        depth = (w >> 8) & 0xFFFF
        above = _get64(stack, depth - 1)
        above_l = (above >> 32) - 4
        c = _get8(class_of, w & 255)
        l = _step_or_dead(h, above_l, c)
        if l <= GROW:
            return l, n_gone, n_exits, n_marked
        g = _step_or_dead(h, (above & LOW32) - 4, c)
        if g <= GROW:
            return g, n_gone, n_exits, n_marked
        if depth > depth0 + 1:
            _put64(mark, i, stamp)
            n_marked += 1
            if above_l >= 0:
                a = _get32(attr, above_l * L_STRIDE + L_ACC)
                if (
                    a >= 0
                    and (l == DEAD or _get32(attr, above_l * L_STRIDE + L_GREEDY) == 0)
                    and _get32(follow, 2 * a) != 0
                ):
                    if n_exits >= exits[1]:
                        return ask_for(h, N_TABLES + X_EXITS, 2 * n_exits + 16), n_gone, n_exits, n_marked
                    _put64(exits, n_exits, (a << 40) | ((w & 255) << 32) | i)
                    n_exits += 1
        if l == g or (l < 0 and g < 0):
            i += w >> 24
            continue
        t = _get32(node_token, i)
        if t >= 0:
            if g < 0:
                if n_tokens >= tokens[1]:
                    return ask_for(h, N_TABLES + X_TOKENS, 2 * n_tokens + 16), n_gone, n_exits, n_marked
                _put32(tokens, n_tokens, t)
                n_tokens += 1
            elif l < 0:
                if n_gone >= gone[1]:
                    return ask_for(h, N_TABLES + X_EXITS, 2 * n_gone + 16), n_gone, n_exits, n_marked
                _put64(gone, n_gone, t)
                n_gone += 1
        _put64(stack, depth, _two_states(l, g))
        i += 1
    return n_tokens, n_gone, n_exits, n_marked


@_kernel
def _shared_part(h, t, l, g):
    """Say whether a walk of ``(t, l)`` is mostly one of ``(t, g)``: 1, 0, or GROW.

    That is, most nodes are below first bytes after which both are in the same state, and few below those which
    only ``g`` takes.
    """
    nodes = _view(h, NODES)
    class_of = _view(h, CLASS_OF)
    shared = 0
    lost = 0
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    for i in range(_get64(off, t), _get64(off, t + 1)):
        v = _get64(pool, i)
        c = _get8(class_of, v >> 32)
        s = lexer_step(h, l, c)
        s2 = lexer_step(h, g, c)
        if s <= GROW or s2 <= GROW:
            return min(s, s2)
        if s2 >= 0:
            if s == s2:
                shared += _get64(nodes, v & LOW32) >> 24
            elif s < 0:
                lost += _get64(nodes, v & LOW32) >> 24
    return 1 if shared >= _header(h, S_SPLIT_SIZE) and 2 * lost < shared else 0


@far_function
def _entry_like(h, t, l, g):
    """Return the entry of ``(t, l)`` made from that of ``(t, g)``, by walking only where they differ; DEAD if unfit."""
    r = _shared_part(h, t, l, g)
    if r <= GROW:
        return r
    if r == 0:
        return DEAD
    r = _is_nested(h, t) if t > 0 else _slice_layer(h, g)
    if r <= GROW:
        return r
    if (t > 0 and r > 0) or r > 1:
        return DEAD
    model = _entry_whole(h, t, g)
    if model < 0:
        return model
    entries = _view(h, E_ATTR)
    if _get64(entries, model * E_STRIDE + E_KIND) != DENSE:
        return DEAD
    words = _header(h, S_WORDS)
    dense = _header(h, USED + E_MASK)
    r = room_for(h, E_MASK, (dense + 1) * words)
    if r < 0:
        return r
    _set_header(h, S_WALK_KEY, 0)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    tokens = scratch_of(h, X_TOKENS)
    gone = scratch_of(h, X_MERGE)
    exits = scratch_of(h, X_EXITS)
    mark = scratch_of(h, X_MARK)
    t_off = _view(h, T_OFF)
    t_pool = _view(h, T_POOL)
    last_mark = mark[1] - 1
    stamp = _get64(mark, last_mark) + 1
    _put64(mark, last_mark, stamp)
    n_tokens = 0
    n_gone = 0
    n_exits = 0
    n_marked = 0
    for i in range(_get64(t_off, t), _get64(t_off, t + 1)):
        v = _get64(t_pool, i)
        c = _get8(class_of, v >> 32)
        s = lexer_step(h, l, c)
        s2 = lexer_step(h, g, c)
        if s <= GROW or s2 <= GROW:
            return min(s, s2)
        if s == s2 or (s < 0 and s2 < 0):
            continue
        x = v & LOW32
        w = _get64(nodes, x)
        token = _get32(node_token, x)
        if token >= 0:
            if s2 < 0:
                if n_tokens >= tokens[1]:
                    return ask_for(h, N_TABLES + X_TOKENS, 2 * n_tokens + 16)
                _put32(tokens, n_tokens, token)
                n_tokens += 1
            elif s < 0:
                if n_gone >= gone[1]:
                    return ask_for(h, N_TABLES + X_EXITS, 2 * n_gone + 16)
                _put64(gone, n_gone, token)
                n_gone += 1
        if w >> 24 > 1:
            depth = (w >> 8) & 0xFFFF
            _put64(stack, depth, _two_states(s, s2))
            n_tokens, n_gone, n_exits, n_marked = _walk_apart(
                h, x + 1, x + (w >> 24), depth - 1, n_tokens, n_gone, n_exits, stamp, n_marked
            )
            if n_tokens < 0:
                return n_tokens
    r = count_work(h, 10 + (n_marked + n_tokens + n_gone) // 16)
    if r < 0:
        return r
    mask = _view(h, E_MASK)
    m0 = dense * words
    m1 = _get64(entries, model * E_STRIDE + E_DENSE) * words
    for k in range(words):
        _put32(mask, m0 + k, _get32(mask, m1 + k))
    for i in range(n_gone):
        token = _get64(gone, i)
        k = m0 + (token >> 5)
        _put32(mask, k, _get32(mask, k) & ~(1 << (token & 31)))
    for i in range(n_tokens):
        token = _get32(tokens, i)
        k = m0 + (token >> 5)
        _put32(mask, k, _get32(mask, k) | (1 << (token & 31)))
    # Groups stay as they are where nothing is added or taken away.
    g0 = _header(h, USED + GROUPS)
    n_groups = 0
    groups = _view(h, GROUPS)
    n_added = n_exits
    for j in range(_get64(entries, model * E_STRIDE + E_GROUP_N)):
        source = _get64(entries, model * E_STRIDE + E_GROUP_OFF) + j
        a = _get64(groups, 2 * source)
        t1 = _get64(groups, 2 * source + 1)
        is_same = True
        for k in range(n_added):
            if _get64(exits, k) >> 40 == a:
                is_same = False
                break
        if is_same and n_marked > 0:
            for k in range(_get64(t_off, t1), _get64(t_off, t1 + 1)):
                if _get64(mark, _get64(t_pool, k) & LOW32) == stamp:
                    is_same = False
                    break
        if is_same:
            r = room_for(h, GROUPS, 2 * (g0 + n_groups + 1))
            if r < 0:
                return r
            _put64(groups, 2 * (g0 + n_groups), a)
            _put64(groups, 2 * (g0 + n_groups) + 1, t1)
            n_groups += 1
            continue
        for k in range(_get64(t_off, t1), _get64(t_off, t1 + 1)):
            v = _get64(t_pool, k)
            if _get64(mark, v & LOW32) != stamp:
                if n_exits >= exits[1]:
                    return ask_for(h, N_TABLES + X_EXITS, 2 * n_exits + 16)
                _put64(exits, n_exits, (a << 40) | v)
                n_exits += 1
    e = _store_entry(h, (t << 32) | l, 0, n_exits, 0, g0, n_groups)
    if e < 0:
        return e
    _set_header(h, USED + E_MASK, dense + 1)
    o = e * E_STRIDE
    _put64(entries, o + E_KIND, DENSE)
    _put64(entries, o + E_DENSE, dense)
    _put64(entries, o + E_COST, 400)
    return e


@_kernel
def _is_long(h, t, l):
    """1 if a walk of node set ``t`` from lexer state ``l`` may be long: many nodes are below first bytes that it reads."""
    nodes = _view(h, NODES)
    class_of = _view(h, CLASS_OF)
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    least = _header(h, S_SPLIT_SIZE)
    size = 0
    for i in range(_get64(off, t), _get64(off, t + 1)):
        v = _get64(pool, i)
        s = lexer_step(h, l, _get8(class_of, v >> 32))
        if s <= GROW:
            return s
        if s >= 0:
            size += _get64(nodes, v & LOW32) >> 24
            if size >= least:
                return 1
    return 0


@far_function
def _living_part(h, t, l):
    """Return the set of the nodes of ``t`` whose byte ``l`` can read.

    Sets that differ only in what ``l`` can't read then share an entry.
    """
    class_of = _view(h, CLASS_OF)
    exits = scratch_of(h, X_EXITS)
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    _set_header(h, S_WALK_KEY, 0)
    n = 0
    for i in range(_get64(off, t), _get64(off, t + 1)):
        v = _get64(pool, i)
        s = lexer_step(h, l, _get8(class_of, v >> 32))
        if s <= GROW:
            return s
        if s >= 0:
            if n >= exits[1]:
                return ask_for(h, N_TABLES + X_EXITS, 2 * n + 16)
            _put64(exits, n, v)
            n += 1
    if n == _get64(off, t + 1) - _get64(off, t):
        return t
    return _intern_nodes(h, 0, n)


@_kernel
def _is_large(h, t):
    """1 if a walk of node set ``t`` may be long."""
    return 1 if _get64(_view(h, T_SIZE), t) >> 2 >= _header(h, S_SPLIT_SIZE) else 0


@far_function
def _entry_whole(h, t, l):
    """Return the entry of ``(t, l)`` by walking all of ``t`` with all of ``l``, or by what is known of like ones."""
    memo = _view(h, ENTRY)
    key = (t << 32) | l
    x = slot_of(memo, 2, key)
    if _get64(memo, 2 * x) == key:
        return _get64(memo, 2 * x + 1)
    r = _entry_less(h, t, l)
    if r != UNFILLED:
        return r
    layer = 0
    walk_buckets = 1
    if t == 0:
        r = _slice_layer(h, l)
        if r < 0:
            return r
        layer = r >> 1
        walk_buckets = r & 1
    is_long = 0
    if _header(h, S_USE_SPLIT) != 0 and layer == 0 and walk_buckets != 0 and _is_large(h, t) != 0:
        is_long = _is_long(h, t, l)
        if is_long < 0:
            return is_long
    if is_long != 0:
        model = _model(h, l)
        if model <= GROW:
            return model
        if model >= 0 and model != l:
            r = _entry_like(h, t, l, model)
            # What the model alone can't do within the limits need not be done.
            if r != DEAD and r != LIMIT:
                return r
        part = _living_part(h, t, l)
        if part < 0:
            return part
        if part != t:
            e = _entry_whole(h, part, l)
            if e < 0:
                return e
            r = slot_room(h, ENTRY, 2)
            if r < 0:
                return r
            x = slot_of(memo, 2, key)
            _put64(memo, 2 * x, key)
            _put64(memo, 2 * x + 1, e)
            _set_header(h, USED + ENTRY, _header(h, USED + ENTRY) + 1)
            return e
    if _header(h, S_WALK_KEY) == key + 1:
        # Tables were too small for what was found.
        n_tokens = _header(h, S_WALK_TOKENS)
        n_exits = _header(h, S_WALK_EXITS)
    else:
        _set_header(h, S_WALK_KEY, 0)
        # Leave out the slice's tries that the layer stands for: all, or those of the shortest tokens.
        low = 0
        high = 0
        if layer > 0 or walk_buckets == 0:
            low = _get64(_view(h, TRIE_SIZE), 0)
            high = 1 << 32
            if walk_buckets != 0:
                k = 1
                while k < _header(h, S_TRIES) and _get64(_view(h, BUCKET_MAX), k - 1) <= layer:
                    k += 1
                if k < _header(h, S_TRIES):
                    high = _get64(_view(h, TRIE_BASE), k)
        n_tokens, n_exits = _walk_set(h, t, l, low, high)
        if n_tokens < 0:
            return n_tokens
        r = count_work(h, 10 + (n_tokens + n_exits) // 16)
        _set_header(h, S_WALK_TOKENS, n_tokens)
        _set_header(h, S_WALK_EXITS, n_exits)
        _set_header(h, S_WALK_KEY, key + 1)
        if r < 0:
            return r
    e = _store_entry(h, key, n_tokens, n_exits, layer, _header(h, USED + GROUPS), 0)
    if e >= 0:
        _set_header(h, S_WALK_KEY, 0)
    return e


@_kernel
def _walk_mixed(h, first, last, depth0, n_exits, stamp, n_marked):
    """Walk only where two terminals are alive together: mark children of such states, collect exits there."""
    nodes = _view(h, NODES)
    class_of = _view(h, CLASS_OF)
    row = _view(h, L_ROW)
    attr = _view(h, L_ATTR)
    follow = _view(h, A_ATTR)
    stack = scratch_of(h, X_STACK)
    exits = scratch_of(h, X_EXITS)
    mark = scratch_of(h, X_MARK)
    classes = _header(h, S_CLASSES)
    i = first
    while i < last:
        w = _get64(nodes, i)
        depth = (w >> 8) & 0xFFFF
        above = _get64(stack, depth - 1)
        c = _get8(class_of, w & 255)
        l = _get32(row, above * classes + c)
        if l == UNFILLED:
            l = fill_mask(h, above, c)
            if l <= GROW:
                return l, n_marked
        if depth > depth0 + 1:
            _put64(mark, i, stamp)
            n_marked += 1
            a = _get32(attr, above * L_STRIDE + L_ACC)
            if (
                a >= 0
                and (l == DEAD or _get32(attr, above * L_STRIDE + L_GREEDY) == 0)
                and _get32(follow, 2 * a) != 0
            ):
                if n_exits >= exits[1]:
                    return ask_for(h, N_TABLES + X_EXITS, 2 * n_exits + 16), n_marked
                _put64(exits, n_exits, (a << 40) | ((w & 255) << 32) | i)
                n_exits += 1
        if l >= 0 and _get32(attr, l * L_STRIDE + L_PURE) == -1:
            _put64(stack, depth, l)
            i += 1
        else:
            i += w >> 24
    return n_exits, n_marked


@_kernel
def _is_nested(h, t):
    """1 if node set ``t`` holds a node and one of its ancestors: then a node's mark would not say whose path it is on."""
    sizes = _view(h, T_SIZE)
    known = _get64(sizes, t) & 3
    if known != 0:
        return known - 1
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    nodes = _view(h, NODES)
    first = _get64(off, t)
    n = _get64(off, t + 1) - first
    r = room_for(h, BUF_NODES, 2 * n)
    if r < 0:
        return r
    buf = _view(h, BUF_NODES)
    for i in range(n):
        _put64(buf, i, _get64(pool, first + i) & LOW32)
    _sort_at(h, buf[0], n, buf[0] + 8 * n)
    end = 0
    for i in range(n):
        x = _get64(buf, i)
        if x < end:
            _put64(sizes, t, _get64(sizes, t) | 2)
            return 1
        end = x + (_get64(nodes, x) >> 24)
    _put64(sizes, t, _get64(sizes, t) | 1)
    return 0


@far_function
def _entry(h, t, l):
    """Return the entry of ``(t, l)``: for several terminals and a large ``t``, put together per terminal.

    Tokens are the union over the terminals. Exits are those of each terminal alone, except below trie nodes
    whose state mixes terminals, where priorities and greed of the whole state decide (`_walk_mixed`).
    """
    attr = _view(h, L_ATTR)
    memo = _view(h, ENTRY)
    key = (t << 32) | l
    x = slot_of(memo, 2, key)
    if _get64(memo, 2 * x) == key:
        return _get64(memo, 2 * x + 1)
    if _get32(attr, l * L_STRIDE + L_PURE) != -1 or _header(h, S_USE_SPLIT) == 0:
        return _entry_whole(h, t, l)
    nodes = _view(h, NODES)
    t_off = _view(h, T_OFF)
    t_pool = _view(h, T_POOL)
    if _is_large(h, t) == 0:
        return _entry_whole(h, t, l)
    r = _is_nested(h, t)
    if r < 0:
        return r
    if r == 1:
        return _entry_whole(h, t, l)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    first = _get64(off, l)
    n = _get64(off, l + 1) - first
    parts = _view(h, BUF_CONFIG)
    # Terminal by terminal; values are few, so the double loop is cheaper than sorting.
    n_parts = 0
    for i in range(n):
        owner = terminal_of(h, _get64(pool, first + i))
        if owner < 0:
            continue
        is_first = True
        for j in range(i):
            if terminal_of(h, _get64(pool, first + j)) == owner:
                is_first = False
                break
        if not is_first:
            continue
        buf = _view(h, BUF_LEXER)
        r = room_for(h, BUF_LEXER, n)
        if r < 0:
            return r
        m = 0
        for j in range(i, n):
            v = _get64(pool, first + j)
            if terminal_of(h, v) == owner:
                _put64(buf, m, v)
                m += 1
        alone = lexer_intern(h, BUF_LEXER, m)
        if alone >= 0:
            alone = _canonical(h, alone)
        if alone < 0:
            return alone
        r = room_for(h, BUF_CONFIG, n_parts + 1)
        if r < 0:
            return r
        _put64(parts, n_parts, alone)
        n_parts += 1
    for i in range(n_parts):
        r = _entry_whole(h, t, _get64(parts, i))
        if r < 0:
            return r
        _put64(parts, i, r)
    _set_header(h, S_WALK_KEY, 0)
    stack = scratch_of(h, X_STACK)
    class_of = _view(h, CLASS_OF)
    mark = scratch_of(h, X_MARK)
    # Marks live in scratch shared by many specs: the slot behind the nodes holds the last stamp used there.
    last_mark = mark[1] - 1
    stamp = _get64(mark, last_mark) + 1
    _put64(mark, last_mark, stamp)
    n_exits = 0
    n_marked = 0
    for i in range(_get64(t_off, t), _get64(t_off, t + 1)):
        s = lexer_step(h, l, _get8(class_of, _get64(t_pool, i) >> 32))
        if s <= GROW:
            return s
        if s >= 0 and _get32(attr, s * L_STRIDE + L_PURE) == -1:
            y = _get64(t_pool, i) & LOW32
            w = _get64(nodes, y)
            if w >> 24 > 1:
                depth = (w >> 8) & 0xFFFF
                _put64(stack, depth, s)
                n_exits, n_marked = _walk_mixed(h, y + 1, y + (w >> 24), depth - 1, n_exits, stamp, n_marked)
                if n_exits < 0:
                    return n_exits
    # Tokens: the union, as a list if it stays sparse.
    entries = _view(h, E_ATTR)
    sparse_pool = _view(h, TOKENS)
    tokens = scratch_of(h, X_TOKENS)
    n_tokens = 0
    layer = 0
    words = _header(h, S_WORDS)
    n_dense = 0
    for i in range(n_parts):
        o = _get64(parts, i) * E_STRIDE
        kind = _get64(entries, o + E_KIND)
        if kind == LAYER:
            layer = max(layer, _get64(entries, o + E_DENSE))
        elif kind == DENSE:
            n_dense += 1
    limit = scratch_of(h, X_TOKENS)[1]
    is_full = n_dense > 0
    if not is_full:
        for i in range(n_parts):
            o = _get64(parts, i) * E_STRIDE
            n_here = _get64(entries, o + E_TOK_N)
            if n_tokens + n_here > limit or n_tokens + n_here > _header(h, S_SPARSE):
                is_full = True
                break
            for k in range(n_here):
                _put32(tokens, n_tokens, _get32(sparse_pool, _get64(entries, o + E_TOK_OFF) + k))
                n_tokens += 1
    g0 = _header(h, USED + GROUPS)
    n_groups = 0
    groups = _view(h, GROUPS)
    for i in range(n_parts):
        o = _get64(parts, i) * E_STRIDE
        for g in range(_get64(entries, o + E_GROUP_N)):
            source = _get64(entries, o + E_GROUP_OFF) + g
            t1 = _get64(groups, 2 * source + 1)
            is_hit = False
            if n_marked > 0:
                for k in range(_get64(t_off, t1), _get64(t_off, t1 + 1)):
                    if _get64(mark, _get64(t_pool, k) & LOW32) == stamp:
                        is_hit = True
                        break
            if is_hit:
                m = 0
                r = room_for(h, BUF_NODES, _get64(t_off, t1 + 1) - _get64(t_off, t1))
                if r < 0:
                    return r
                buf = _view(h, BUF_NODES)
                for k in range(_get64(t_off, t1), _get64(t_off, t1 + 1)):
                    v = _get64(t_pool, k)
                    if _get64(mark, v & LOW32) != stamp:
                        _put64(buf, m, v)
                        m += 1
                if m == 0:
                    continue
                t1 = _node_set(h, BUF_NODES, m)
                if t1 < 0:
                    return t1
            r = room_for(h, GROUPS, 2 * (g0 + n_groups + 1))
            if r < 0:
                return r
            _put64(groups, 2 * (g0 + n_groups), _get64(groups, 2 * source))
            _put64(groups, 2 * (g0 + n_groups) + 1, t1)
            n_groups += 1
    if not is_full:
        return _store_entry(h, key, n_tokens, n_exits, layer, g0, n_groups)
    dense = _header(h, USED + E_MASK)
    r = room_for(h, E_MASK, (dense + 1) * words)
    if r < 0:
        return r
    mask = _view(h, E_MASK)
    e = _store_entry(h, key, 0, n_exits, 0, g0, n_groups)
    if e < 0:
        return e
    for k in range(words):
        _put32(mask, dense * words + k, 0)
    for i in range(n_parts):
        _or_entry(h, _get64(parts, i), (mask[0] + 4 * dense * words, words))
    _set_header(h, USED + E_MASK, dense + 1)
    o = e * E_STRIDE
    _put64(entries, o + E_KIND, DENSE)
    _put64(entries, o + E_DENSE, dense)
    _put64(entries, o + E_COST, 400)
    return e


@_kernel
def _or_entry(h, e, out):
    """OR the tokens of entry ``e`` into the words ``out``."""
    attr = _view(h, E_ATTR)
    words = _header(h, S_WORDS)
    o = e * E_STRIDE
    kind = _get64(attr, o + E_KIND)
    if kind != SPARSE:
        table = _view(h, LAYERS) if kind == LAYER else _view(h, E_MASK)
        m0 = _get64(attr, o + E_DENSE) * words
        for k in range(words):
            _put32(out, k, _get32(out, k) | _get32(table, m0 + k))
    tokens = _view(h, TOKENS)
    t0 = _get64(attr, o + E_TOK_OFF)
    for i in range(t0, t0 + _get64(attr, o + E_TOK_N)):
        t = _get32(tokens, i)
        k = t >> 5
        _put32(out, k, _get32(out, k) | (1 << (t & 31)))


# ------------------------------------------------------------------------------------------ masks


@_kernel
def _push_result(h, e):
    """Append entry ``e`` to RESULT if it has tokens."""
    attr = _view(h, E_ATTR)
    if _get64(attr, e * E_STRIDE + E_KIND) == SPARSE and _get64(attr, e * E_STRIDE + E_TOK_N) == 0:
        return 0
    n = _header(h, USED + RESULT)
    r = room_for(h, RESULT, n + 1)
    if r < 0:
        return r
    _put64(_view(h, RESULT), n, e)
    _set_header(h, USED + RESULT, n + 1)
    return 0


@far_function
def _list_intern(h, first):
    """Intern the entries ``RESULT[first:]`` as a list and cut RESULT back to ``first`` plus that list."""
    result = _view(h, RESULT)
    n = _header(h, USED + RESULT) - first
    r = room_for(h, RESULT, first + 2 * n + 1)
    if r < 0:
        return r
    part = (result[0] + 8 * first, result[1] - first)
    # Lists of visits have much in common: drop repeats before sorting.
    entries = _view(h, E_ATTR)
    stamp = next_stamp(h)
    m = 0
    for i in range(n):
        v = _get64(part, i)
        if _get64(entries, v * E_STRIDE + E_STAMP) != stamp:
            _put64(entries, v * E_STRIDE + E_STAMP, stamp)
            _put64(part, m, v)
            m += 1
    _sort_at(h, part[0], m, part[0] + 8 * m)
    count = _header(h, USED + V_OFF)
    r = room_for(h, V_ATTR, 2 * count + 2)
    if r < 0:
        return r
    v = _intern(h, V_OFF, part, m)
    if v < 0:
        return v
    _set_header(h, USED + RESULT, first + m)
    if v == count:
        cost = 0
        for i in range(m):
            cost += _get64(entries, _get64(part, i) * E_STRIDE + E_COST)
        _put32(_view(h, V_ATTR), 2 * v, -1)
        _put32(_view(h, V_ATTR), 2 * v + 1, min(cost, 1 << 30))
    return v


@_kernel
def _append_list(h, v):
    """Append the entries of list ``v`` to RESULT."""
    off = _view(h, V_OFF)
    pool = _view(h, V_POOL)
    n = _header(h, USED + RESULT)
    first = _get64(off, v)
    last = _get64(off, v + 1)
    r = room_for(h, RESULT, n + last - first)
    if r < 0:
        return r
    result = _view(h, RESULT)
    for i in range(first, last):
        _put64(result, n + i - first, _get64(pool, i))
    _set_header(h, USED + RESULT, n + last - first)
    return 0


@_kernel
def _situation_of(h, p):
    return _get32(_view(h, P_ATTR), P_STRIDE * p + P_SITUATION)


@far_function
def _without_continuations(h, t, l):
    """Return node set ``t`` without the nodes whose first byte continues the greedy lexeme ``l``; -1 if none."""
    exits = scratch_of(h, X_EXITS)
    class_of = _view(h, CLASS_OF)
    _set_header(h, S_WALK_KEY, 0)
    n = 0
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    for i in range(_get64(off, t), _get64(off, t + 1)):
        v = _get64(pool, i)
        s = lexer_step(h, l, _get8(class_of, v >> 32))
        if s <= GROW:
            return s
        if s == DEAD:
            if n >= exits[1]:
                return ask_for(h, N_TABLES + X_EXITS, 2 * n + 16)
            _put64(exits, n, v)
            n += 1
    if n == 0:
        return DEAD
    return _intern_nodes(h, 0, n)


@far_function
def _exact_entry(h, t):
    """Return an entry of the tokens below node set ``t`` that the matcher state whose mask this is can read."""
    d = _header(h, S_VISITED)
    key = (1 << 62) | (t << 31) | d
    memo = _view(h, ENTRY)
    x = slot_of(memo, 2, key)
    if _get64(memo, 2 * x) == key:
        return _get64(memo, 2 * x + 1)
    off = _view(h, T_OFF)
    pool = _view(h, T_POOL)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    tokens = scratch_of(h, X_TOKENS)
    _set_header(h, S_WALK_KEY, 0)
    n = 0
    for k in range(_get64(off, t), _get64(off, t + 1)):
        i = _get64(pool, k) & LOW32
        end = i + (_get64(nodes, i) >> 24)
        while i < end:
            token = _get32(node_token, i)
            i += 1
            if token < 0:
                continue
            r = count_work(h, 1)
            if r == 0:
                r = advance_token(h, d, token)
            if r <= GROW:
                return r
            if r >= 0:
                if n >= tokens[1]:
                    return ask_for(h, N_TABLES + X_TOKENS, 2 * n + 16)
                _put32(tokens, n, token)
                n += 1
    return _store_entry(h, key, n, 0, 0, _header(h, USED + GROUPS), 0)


@far_function
def _visit(h, t, p, l, depth):
    """Collect the entries reached from node set ``t`` in configuration ``(p, l)`` into RESULT.

    Returns the lowest index of the path whose state a completion reached (large if none): a result that stays
    inside is *closed*, depends on the situation of ``p`` alone, and is remembered under it. -1: outside.
    """
    r = room_for(h, PATH, depth + 1)
    if r == 0:
        r = count_work(h, 1)
    if r < 0:
        return r
    path = _view(h, PATH)
    states = _view(h, P_ATTR)
    _put64(path, depth, _get32(states, P_STRIDE * p + P_BASE))
    canonical = _canonical(h, l)
    if canonical < 0:
        return canonical
    e = _entry(h, t, canonical)
    if e < 0:
        return e
    r = _push_result(h, e)
    if r < 0:
        return r
    low = 1 << 30
    if _situation_of(h, p) == UNFILLED:
        r = start_lexer(h, p)
        if r <= GROW:
            return r
    lex = _view(h, L_ATTR)
    entries = _view(h, E_ATTR)
    groups = _view(h, GROUPS)
    here = _get32(lex, l * L_STRIDE + L_ACC)
    if here >= 0 and _get32(_view(h, A_ATTR), 2 * here) == 0:
        here = -1
    g0 = _get64(entries, e * E_STRIDE + E_GROUP_OFF)
    n_groups = _get64(entries, e * E_STRIDE + E_GROUP_N)
    tsteps = _view(h, TSTEP)
    steps = _view(h, STEP)
    visits = _view(h, VISIT)
    reached = _view(h, TO_POOL)
    use_visits = _header(h, S_USE_VISITS)
    for g in range(g0 - (1 if here >= 0 else 0), g0 + n_groups):
        if g < g0:
            a = here
            t1 = t
        else:
            a = _get64(groups, 2 * g)
            t1 = _get64(groups, 2 * g + 1)
        key = (_situation_of(h, p) << 24) | a
        x = slot_of(tsteps, 2, key)
        if use_visits != 0 and g >= g0 and _get64(tsteps, 2 * x) == key:
            z = _get64(tsteps, 2 * x + 1)
            if z < 0:
                continue
            visit_key = (t1 << 32) | z
            y = slot_of(visits, 2, visit_key)
            if _get64(visits, 2 * y) == visit_key and _get64(visits, 2 * y + 1) >= 0:
                r = _append_list(h, _get64(visits, 2 * y + 1))
                if r < 0:
                    return r
                continue
        p1 = parser_go(h, p, a)
        if p1 <= GROW:
            return p1
        w = _get64(steps, 3 * _header(h, S_MARK) + 2)
        n_reached = w & 0xFFFFF
        for i in range(w >> 20, (w >> 20) + n_reached):
            origin = _get64(reached, i)
            j = depth - 1
            while j >= 0 and _get64(path, j) != origin:
                j -= 1
            low = min(low, j)
        is_line = 0
        if p1 >= 0:
            is_line = _get32(states, P_STRIDE * p1 + P_LINE)
        if is_line:
            # How its line may end depends on the blocks around it.
            low = -1
        elif n_reached == 0 and use_visits != 0 and _get64(tsteps, 2 * x) != key:
            r = slot_room(h, TSTEP, 2)
            if r < 0:
                return r
            _put64(tsteps, 2 * x, key)
            _put64(tsteps, 2 * x + 1, -1 if p1 < 0 else _situation_of(h, p1))
            _set_header(h, USED + TSTEP, _header(h, USED + TSTEP) + 1)
        if p1 < 0:
            continue
        if t1 != 0 and _is_unsure(h, p1) != 0:
            e1 = _exact_entry(h, t1)
            if e1 < 0:
                return e1
            r = _push_result(h, e1)
            if r < 0:
                return r
            low = -1
            continue
        l0 = start_lexer(h, p1)
        if l0 <= GROW:
            return l0
        if l0 < 0:
            continue
        if g < g0 and _get32(lex, l * L_STRIDE + L_GREEDY) != 0:
            t1 = _without_continuations(h, t, l)
            if t1 <= GROW:
                return t1
            if t1 < 0:
                continue
        visit_key = (t1 << 32) | _situation_of(h, p1)
        y = slot_of(visits, 2, visit_key)
        is_open = False
        if use_visits != 0 and _get64(visits, 2 * y) == visit_key:
            if _get64(visits, 2 * y + 1) >= 0:
                r = _append_list(h, _get64(visits, 2 * y + 1))
                if r < 0:
                    return r
                continue
            is_open = True
        # An equal visit that was open has put all its tokens into this mask already.
        r = room_for(h, OPEN_SLOTS, _header(h, USED + OPEN_SLOTS) + 1)
        if r == 0:
            r = slot_room(h, OPEN, 1)
        if r < 0:
            return r
        memo = _view(h, OPEN)
        open_key = (t1 << 32) | p1
        s = slot_of(memo, 1, open_key)
        if _get64(memo, s) == open_key:
            low = -1
            continue
        n_result = _header(h, USED + RESULT)
        deep = _visit(h, t1, p1, l0, depth + 1)
        if deep <= GROW:
            return deep
        if deep < depth + 1:
            s = slot_of(memo, 1, open_key)
            if _get64(memo, s) != open_key:
                r = slot_room(h, OPEN, 1)
                if r == 0:
                    r = room_for(h, OPEN_SLOTS, _header(h, USED + OPEN_SLOTS) + 1)
                if r < 0:
                    return r
                _put64(memo, s, open_key)
                _set_header(h, USED + OPEN, _header(h, USED + OPEN) + 1)
                n = _header(h, USED + OPEN_SLOTS)
                _put64(_view(h, OPEN_SLOTS), n, s)
                _set_header(h, USED + OPEN_SLOTS, n + 1)
        if use_visits != 0 and not is_open:
            result = -1
            if deep >= depth + 1:
                result = _list_intern(h, n_result)
                if result < 0:
                    return result
            r = slot_room(h, VISIT, 2)
            if r < 0:
                return r
            y = slot_of(visits, 2, visit_key)
            if _get64(visits, 2 * y) != visit_key:
                _put64(visits, 2 * y, visit_key)
                _set_header(h, USED + VISIT, _header(h, USED + VISIT) + 1)
            _put64(visits, 2 * y + 1, result)
        low = min(low, deep)
    return low


@_kernel
def _clear_open(h):
    """Forget the open visits of the last mask."""
    memo = _view(h, OPEN)
    slots = _view(h, OPEN_SLOTS)
    for i in range(_header(h, USED + OPEN_SLOTS)):
        _put64(memo, _get64(slots, i), -1)
    _set_header(h, USED + OPEN_SLOTS, 0)
    _set_header(h, USED + OPEN, 0)


@far_function
def _state_list(h, d):
    """Return the list of entries whose tokens are the mask of matcher state ``d`` (end tokens apart)."""
    attr = _view(h, D_ATTR)
    v = _get32(attr, 4 * d)
    if v >= 0:
        return v
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    _clear_open(h)
    _set_header(h, USED + RESULT, 0)
    _set_header(h, S_VISITED, d)
    for i in range(_get64(off, d), _get64(off, d + 1)):
        w = _get64(pool, i)
        r = _visit(h, 0, w >> 32, w & LOW32, 0)
        if r <= GROW:
            return r
    v = _list_intern(h, 0)
    if v < 0:
        return v
    _put32(attr, 4 * d, v)
    return v


@_kernel
def _assemble(h, v, out):
    """Write the union of the entries of list ``v`` to ``out``; copy bits to ids of equal bytes."""
    off = _view(h, V_OFF)
    pool = _view(h, V_POOL)
    attr = _view(h, E_ATTR)
    words = _header(h, S_WORDS)
    first = _get64(off, v)
    last = _get64(off, v + 1)
    # Start from a copy of one dense part rather than from zeros.
    copied = -1
    for i in range(first, last):
        o = _get64(pool, i) * E_STRIDE
        kind = _get64(attr, o + E_KIND)
        if kind != SPARSE:
            table = _view(h, LAYERS) if kind == LAYER else _view(h, E_MASK)
            m0 = _get64(attr, o + E_DENSE) * words
            for k in range(words):
                _put32(out, k, _get32(table, m0 + k))
            copied = i
            break
    if copied < 0:
        for k in range(words):
            _put32(out, k, 0)
    tokens = _view(h, TOKENS)
    for i in range(first, last):
        e = _get64(pool, i)
        if i != copied:
            _or_entry(h, e, out)
            continue
        t0 = _get64(attr, e * E_STRIDE + E_TOK_OFF)
        for j in range(t0, t0 + _get64(attr, e * E_STRIDE + E_TOK_N)):
            t = _get32(tokens, j)
            k = t >> 5
            _put32(out, k, _get32(out, k) | (1 << (t & 31)))
    same = _view(h, DUPLICATES)
    for i in range(_header(h, USED + DUPLICATES)):
        t = _get32(same, 2 * i)
        if (_get32(out, t >> 5) >> (t & 31)) & 1:
            t = _get32(same, 2 * i + 1)
            _put32(out, t >> 5, _get32(out, t >> 5) | (1 << (t & 31)))


@far_function
def _remember_mask(h, v, address):
    """Keep a copy of the mask of list ``v`` at ``address``; make room by the clock algorithm at the limit."""
    words = _header(h, S_WORDS)
    out = (address, words)
    n = _header(h, USED + MASKS)
    owner = _view(h, MASK_OWNER)
    attr = _view(h, V_ATTR)
    slot = n
    if n < _header(h, S_MASK_SLOTS):
        r = room_for(h, MASKS, (n + 1) * words)
        if r == 0:
            r = room_for(h, MASK_OWNER, 2 * n + 2)
        if r < 0:
            return r
        _set_header(h, USED + MASKS, n + 1)
    else:
        hand = _header(h, S_MASK_HAND)
        while _get32(owner, 2 * hand + 1) != 0:
            _put32(owner, 2 * hand + 1, 0)
            hand = (hand + 1) % n
        slot = hand
        _set_header(h, S_MASK_HAND, (hand + 1) % n)
        _put32(attr, 2 * _get32(owner, 2 * slot), -1)
    masks = _view(h, MASKS)
    for k in range(words):
        _put32(masks, slot * words + k, _get32(out, k))
    _put32(owner, 2 * slot, v)
    _put32(owner, 2 * slot + 1, 1)
    _put32(attr, 2 * v, slot)
    return 0


@far_function
def _fill_quick(h, d, address):
    """Write the mask of ``d`` if its entries are known: 1, else 0."""
    v = _get32(_view(h, D_ATTR), 4 * d)
    accepting = _get32(_view(h, D_ATTR), 4 * d + 1)
    if v < 0 or accepting < 0:
        return 0
    words = _header(h, S_WORDS)
    out = (address, words)
    slot = _get32(_view(h, V_ATTR), 2 * v)
    if slot >= 0:
        masks = _view(h, MASKS)
        for k in range(words):
            _put32(out, k, _get32(masks, slot * words + k))
        _put32(_view(h, MASK_OWNER), 2 * slot + 1, 1)
    else:
        _assemble(h, v, out)
        if _get32(_view(h, V_ATTR), 2 * v + 1) > 800 and _header(h, S_USE_MEMO) != 0:
            r = _remember_mask(h, v, address)
            if r < 0:
                return r
    if accepting == 1:
        eos = _view(h, EOS)
        for i in range(_header(h, USED + EOS)):
            t = _get32(eos, i)
            _put32(out, t >> 5, _get32(out, t >> 5) | (1 << (t & 31)))
    return 1


@_kernel
def _fill_mask(h, d, address):
    """Write the mask of ``d`` at ``address``: ``n_words`` int32. Returns 1, or GROW, TICK, LIMIT."""
    v = _state_list(h, d)
    if v < 0:
        return v
    r = state_accepting(h, d)
    if r < 0:
        return r
    return _fill_quick(h, d, address)


@_kernel
def _advance_bytes(h, d, address, n, count_address):
    """Step over ``n`` bytes at ``address``; return the state or DEAD.

    The number of bytes that could be read goes to ``count_address``.
    """
    class_of = _view(h, CLASS_OF)
    data = (address, n)
    count = (count_address, 1)
    for i in range(n):
        r = state_step(h, d, _get8(class_of, _get8(data, i)))
        if r < 0:
            _put64(count, 0, i)
            return r
        d = r
    _put64(count, 0, n)
    return d


@_kernel
def advance_token(h, d, token):
    """Step over the bytes of a token; return the state or DEAD (also for ids without bytes)."""
    off = _view(h, TOKEN_OFF)
    data = _view(h, TOKEN_DATA)
    class_of = _view(h, CLASS_OF)
    first = _get64(off, token)
    last = _get64(off, token + 1)
    if first == last:
        return DEAD
    for i in range(first, last):
        d = state_step(h, d, _get8(class_of, _get8(data, i)))
        if d < 0:
            return d
    return d


@_kernel
def _start(h):
    """Return the first matcher state: one configuration for each alternative that is read apart."""
    n_starts = _header(h, S_STARTS)
    flags = 0
    if _header(h, S_LEADING) == 0:
        flags |= _header(h, S_IGNORED_MOST) << P_IGNORED
    if _header(h, S_START_NULLABLE) != 0:
        flags |= P_ACCEPTING
    r = room_for(h, BUF_KERNEL, 2)
    if r == 0:
        r = room_for(h, BUF_CONFIG, n_starts + 1)
    if r < 0:
        return r
    # Dotted states from 0 on start the augmented rule; origin -1 is stored as 0. Where the only text is the empty
    # one nothing follows it, and no blank may either.
    _put64(_view(h, BUF_KERNEL), 0, 0)
    term_off = _view(h, TERM_OFF)
    rule_off = _view(h, RULE_OFF)
    n = 1
    if _get32(term_off, 0) == _get32(term_off, 1) and _get32(rule_off, 0) == _get32(rule_off, 1):
        n = 0
    if _header(h, S_NEWLINE) >= 0:
        r = _context(h, -1, 0)
        for i in range(3):
            if r >= 0:
                t = _header(h, S_NEWLINE if i == 0 else S_INDENT if i == 1 else S_DEDENT)
                r = accept_one(h, t)
                _set_header(h, S_AFTER_NEWLINE + i, r)
        if r < 0:
            return r
    # The empty text is the first.
    r = _longer_text(h, -1, -1)
    if r < 0:
        return r
    for i in range(n_starts):
        _put64(_view(h, BUF_KERNEL), 0, i << 32)
        p = _parser_intern(h, n, flags, -1, 0)
        if p < 0:
            return p
        l = start_lexer(h, p)
        if l < 0:
            return l
        _put64(_view(h, BUF_CONFIG), i, (p << 32) | l)
    return configuration_intern(h, n_starts)


@_kernel
def _live_classes(h, d, address):
    """Write 1 at ``address + c`` (int32 each) for every byte class that keeps ``d`` alive."""
    classes = _header(h, S_CLASSES)
    out = (address, classes)
    for c in range(classes):
        r = state_step(h, d, c)
        if r <= GROW:
            return r
        _put32(out, c, 1 if r >= 0 else 0)
    return 0


@far_function
def _forced_bytes(h, d, address, most, count_address):
    """Append forced bytes (int32 each) at ``address`` while exactly one byte can come and the text can't end.

    Returns the state after them; their number goes to ``count_address``.
    """
    classes = _header(h, S_CLASSES)
    class_byte = _view(h, CLASS_BYTE)
    row = _view(h, D_ROW)
    out = (address, most)
    count = (count_address, 1)
    n = 0
    while n < most:
        r = state_accepting(h, d)
        if r <= GROW:
            return r
        if r == 1:
            break
        only = -1
        n_alive = 0
        for c in range(classes):
            r = _get32(row, d * classes + c)
            if r == UNFILLED:
                r = state_fill(h, d, c)
                if r <= GROW:
                    return r
            if r >= 0:
                n_alive += 1
                only = c
                if n_alive > 1:
                    break
        if n_alive != 1 or _get32(class_byte, only) < 0:
            break
        _put32(out, n, _get32(class_byte, only))
        n += 1
        d = _get32(row, d * classes + only)
    _put64(count, 0, n)
    return d


@far_function
def _set_starts(h, terminal, address, n):
    """Make the element of a Boolean terminal: literals are ``lexer state << 1 | sign``; return its value.

    -1 if its language is empty.
    """
    literals = (address, n)
    buf = _view(h, BUF_ELEMENT)
    count = _header(h, USED + EL_OFF)
    r = room_for(h, BUF_ELEMENT, n + 1)
    if r == 0:
        r = room_for(h, EL_ATTR, (count + 1) * 3)
    if r < 0:
        return r
    _put64(buf, 0, terminal)
    for i in range(n):
        _put64(buf, i + 1, _get64(literals, i))
    e = _intern(h, EL_OFF, buf, n + 1)
    if e < 0:
        return e
    if e == count:
        attr = _view(h, EL_ATTR)
        _put64(attr, 3 * e, 1 if n == 1 and _get64(literals, 0) & 1 == 0 else 0)
        _put64(attr, 3 * e + 1, -1)
        _put64(attr, 3 * e + 2, 0)
    r = _element_alive(h, e)
    if r <= GROW:
        return r
    if r == 0:
        return DEAD
    return _header(h, S_POSITIONS) + e


@_kernel
def _make_lexer(h, address, n):
    """Return the lexer state of the ``n`` values at ``address``."""
    values = (address, n)
    r = room_for(h, BUF_LEXER, n)
    if r < 0:
        return r
    buf = _view(h, BUF_LEXER)
    for i in range(n):
        _put64(buf, i, _get64(values, i))
    return lexer_intern(h, BUF_LEXER, n)


# ------------------------------------------------------------------------------------------ entry points


@_quick
def advance_quick(h, d, token):
    """Step over the bytes of a token by known transitions: the state, DEAD, or UNFILLED if one is missing."""
    off = _view(h, TOKEN_OFF)
    data = _view(h, TOKEN_DATA)
    class_of = _view(h, CLASS_OF)
    row = _view(h, D_ROW)
    classes = _header(h, S_CLASSES)
    first = _get64(off, token)
    last = _get64(off, token + 1)
    if first == last:
        return DEAD
    for i in range(first, last):
        d = _get32(row, d * classes + _get8(class_of, _get8(data, i)))
        if d < 0:
            return d
    return d


@_quick
def fill_quick(h, d, address):
    """Write the mask of ``d`` at ``address`` if its entries are known and return 1, else 0 (or GROW)."""
    return _fill_quick(h, d, address)


@_quick
def accepting_quick(h, d):
    """1 if the text may end in ``d``, 0 if not, -1 if that is not known yet."""
    return _get32(_view(h, D_ATTR), 4 * d + 1)


@_entry_point
def run(op, h, a, b, c, d):
    """Run one operation on the arena whose header lies at ``h``; the meaning of the rest depends on ``op``."""
    if op == OP_ADVANCE_TOKEN:
        return advance_token(h, a, b)
    if op == OP_FILL_MASK:
        return _fill_mask(h, a, b)
    if op == OP_ACCEPTING:
        return state_accepting(h, a)
    if op == OP_START:
        return _start(h)
    if op == OP_ADVANCE_BYTES:
        return _advance_bytes(h, a, b, c, d)
    if op == OP_LIVE_CLASSES:
        return _live_classes(h, a, b)
    if op == OP_FORCED_BYTES:
        return _forced_bytes(h, a, b, c, d)
    if op == OP_SET_STARTS:
        return _set_starts(h, a, b, c)
    return _make_lexer(h, a, b)


@_entry_point
def rehash_sets(off, pool, n, slots, n_slots):
    """Fill an empty hash of interned sets: ``n`` sets at ``off``, ``pool``; ``n_slots`` a power of two."""
    offsets = (off, n + 1)
    for i in range(n):
        o = _get64(offsets, i)
        size = _get64(offsets, i + 1) - o
        x = _hash_of((pool + 8 * o, size), size) & (n_slots - 1)
        while _get32((slots, n_slots), x) >= 0:
            x = (x + 1) & (n_slots - 1)
        _put32((slots, n_slots), x, i)
    return 0


@_entry_point
def rehash_memo(old, n_old, new, n_new, stride):
    """Move the keys of a memo of ``n_old`` slots into an empty one of ``n_new`` (a power of two)."""
    source = (old, n_old * stride)
    target = (new, n_new * stride)
    for i in range(n_old):
        key = _get64(source, i * stride)
        if key >= 0:
            x = slot_of(target, stride, key)
            for k in range(stride):
                _put64(target, x * stride + k, _get64(source, i * stride + k))
    return 0


@_entry_point
def fill_many(calls, n, first, stride):
    """Fill masks of a batch from remembered entries.

    Parameters
    ----------
    calls : address of (3, n) int64
        Row 0: addresses of headers; row 1: matcher states, -1 for an empty mask; row 2, written: 1 where
        the mask was filled, 0 where it must be computed.
    n : int
    first, stride : int
        Address of the first mask, and bytes from one to the next.
    """
    table = (calls, 3 * n)
    for i in range(n):
        h = _get64(table, i)
        d = _get64(table, n + i)
        if d < 0:
            words = _header(h, S_WORDS)
            out = (first + i * stride, words)
            for k in range(words):
                _put32(out, k, 0)
            _put64(table, 2 * n + i, 1)
            continue
        r = _fill_quick(h, d, first + i * stride)
        _put64(table, 2 * n + i, 1 if r == 1 else 0)
    return 0


# ------------------------------------------------------------------------------------------ logits


@_entry_point
def block_rows_16(logits, row_stride, width, words, n_words, rows, n_rows, blocked, ones, lanes):
    """`block_rows_32` for 16-bit floats (float16, bfloat16)."""
    n_full = min(n_words, width // 32)
    for i in range(n_rows):
        row = _get64((rows, n_rows), i)
        line = logits + 2 * row * row_stride
        mask = (words + 4 * row * n_words, n_words)
        for k in range(n_full):
            word = _get32(mask, k)
            if word == -1:
                continue
            block = (line + 64 * k, lanes)
            if word == 0:
                for j in range(lanes):
                    _put16(block, j, blocked)
            else:
                for j in range(lanes):
                    old = _get16(block, j)
                    gone = ones if (word >> j) & 1 == 0 else ones ^ ones
                    _put16(block, j, old ^ ((old ^ blocked) & gone))
        rest = (line, width)
        for j in range(32 * n_full, width):
            word = _get32(mask, j >> 5) if j >> 5 < n_words else 0
            if (word >> (j & 31)) & 1 == 0:
                _put16(rest, j, blocked)
    return 0


@_entry_point
def block_rows_32(logits, row_stride, width, words, n_words, rows, n_rows, blocked, ones, lanes):
    """Write ``blocked`` over the logits of the tokens that a mask does not allow.

    Works on the logits' bits, so one kernel serves each kind of float of a width.

    Parameters
    ----------
    logits : address of the first logit; row ``r`` starts ``r * row_stride`` elements behind it
    row_stride, width : int
        Elements from row to row, and logits of a row.
    words, n_words : address and width of (rows, n_words) int32 masks
        Bit ``t % 32`` of word ``t // 32`` is 1 where token ``t`` is allowed; tokens past the words are
        blocked.
    rows, n_rows : address and length of int64 row numbers
    blocked : int
        Bits of minus infinity.
    ones, lanes : int
        -1 and 32, known only when called: with a constant 32 LLVM unrolls the loops instead of
        vectorising them, and with a constant -1 it makes masked stores of the blend, which some
        processors carry out one lane at a time.
    """
    n_full = min(n_words, width // 32)
    for i in range(n_rows):
        row = _get64((rows, n_rows), i)
        line = logits + 4 * row * row_stride
        mask = (words + 4 * row * n_words, n_words)
        for k in range(n_full):
            word = _get32(mask, k)
            if word == -1:
                continue
            block = (line + 128 * k, lanes)
            if word == 0:
                for j in range(lanes):
                    _put32(block, j, blocked)
            else:
                for j in range(lanes):
                    old = _get32(block, j)
                    gone = ones if (word >> j) & 1 == 0 else ones ^ ones
                    _put32(block, j, old ^ ((old ^ blocked) & gone))
        rest = (line, width)
        for j in range(32 * n_full, width):
            word = _get32(mask, j >> 5) if j >> 5 < n_words else 0
            if (word >> (j & 31)) & 1 == 0:
                _put32(rest, j, blocked)
    return 0


@_entry_point
def block_rows_64(logits, row_stride, width, words, n_words, rows, n_rows, blocked, ones, lanes):
    """`block_rows_32` for float64."""
    n_full = min(n_words, width // 32)
    for i in range(n_rows):
        row = _get64((rows, n_rows), i)
        line = logits + 8 * row * row_stride
        mask = (words + 4 * row * n_words, n_words)
        for k in range(n_full):
            word = _get32(mask, k)
            if word == -1:
                continue
            block = (line + 256 * k, lanes)
            if word == 0:
                for j in range(lanes):
                    _put64(block, j, blocked)
            else:
                for j in range(lanes):
                    old = _get64(block, j)
                    gone = ones if (word >> j) & 1 == 0 else ones ^ ones
                    _put64(block, j, old ^ ((old ^ blocked) & gone))
        rest = (line, width)
        for j in range(32 * n_full, width):
            word = _get32(mask, j >> 5) if j >> 5 < n_words else 0
            if (word >> (j & 31)) & 1 == 0:
                _put64(rest, j, blocked)
    return 0
