"""The kernel that reads terminals side by side: one subset construction over their loose automata.

`lexeme_product` prepares its tables and reads its results. A state is a set of positions of all terminals in
company; a terminal of which a positive literal has no position in it is dead, and its other positions are left out.
Sets are equal if they have the same members, in whatever order. Growth and ticks are as in ``kernels``: a state's results are
written when it is finished, and a call begins with the first state that isn't.
"""

from __future__ import annotations

from constrain.tokenizer_index.kernel_memory import (
    entry_point,
    get32,
    get64,
    header,
    kernel,
    product,
    put32,
    put64,
    set_header,
)
from constrain.tokenizer_index.layout import (
    ENDS,
    ENDS_ABOVE,
    ENDS_GREEDY,
    GROW,
    HAS_COMPANION,
    LIMIT,
    TICK,
    W_ACTIVE,
    W_CELL,
    W_COMPANION,
    W_COUNT,
    W_DONE,
    W_EDGE,
    W_EDGE_OFF,
    W_EDGES,
    W_FIRST,
    W_FLAGS,
    W_GREEDY,
    W_HASH,
    W_LITERAL,
    W_MASK,
    W_MOST,
    W_N,
    W_N_TO,
    W_NEED,
    W_NEED_TABLE,
    W_NEGATIVE,
    W_NEXT,
    W_OFF,
    W_POOL,
    W_POSITIONS,
    W_POSITIVE,
    W_PRIORITY,
    W_STAMP,
    W_STAMP_LITERAL,
    W_STAMP_POSITION,
    W_STAMP_STATE,
    W_STAMP_TERMINAL,
    W_TERMINAL,
    W_TERMINAL_OF,
    W_TO,
    W_TO_OFF,
    W_WORK_LIMIT,
)


@kernel
def _table(w, table):
    return header(w, 2 * table), header(w, 2 * table + 1)


@kernel
def _stamp(w):
    stamp = header(w, W_STAMP) + 1
    set_header(w, W_STAMP, stamp)
    return stamp


@kernel
def _room(w, table, size):
    if size <= header(w, 2 * table + 1):
        return 0
    set_header(w, W_NEED_TABLE, table)
    set_header(w, W_NEED, size)
    return GROW


@kernel
def _count_literals(w, n, ends, stamp):
    """Count the positive literals of each terminal that have one of the ``n`` positions in W_CELL.

    With ``ends`` terminals of which a negative literal has one are counted out.
    """
    cell = _table(w, W_CELL)
    literal_of = _table(w, W_LITERAL)
    terminal_of = _table(w, W_TERMINAL_OF)
    negative = _table(w, W_NEGATIVE)
    met = _table(w, W_STAMP_LITERAL)
    known = _table(w, W_STAMP_TERMINAL)
    count = _table(w, W_COUNT)
    for i in range(n):
        literal = get32(literal_of, get32(cell, i))
        if get64(met, literal) != stamp:
            put64(met, literal, stamp)
            m = get32(terminal_of, literal)
            if get64(known, m) != stamp:
                put64(known, m, stamp)
                put32(count, m, 0)
            if get32(negative, literal) == 0:
                put32(count, m, get32(count, m) + 1)
            elif ends != 0:
                put32(count, m, -(1 << 20))


@kernel
def _flags(w, begin, end):
    """Return the flags of the state whose positions are those from ``begin`` to ``end``."""
    pool = _table(w, W_POOL)
    positions = _table(w, W_POSITIONS)
    literal_of = _table(w, W_LITERAL)
    terminal_of = _table(w, W_TERMINAL_OF)
    positive = _table(w, W_POSITIVE)
    priority = _table(w, W_PRIORITY)
    count = _table(w, W_COUNT)
    cell = _table(w, W_CELL)
    t = header(w, W_TERMINAL)
    companion = header(w, W_COMPANION)
    flags = 0
    n = 0
    for i in range(begin, end):
        x = get32(pool, i)
        if get32(terminal_of, get32(literal_of, x)) == companion:
            flags |= HAS_COMPANION
        if get32(positions, 6 * x + 1) != 0:
            put32(cell, n, x)
            n += 1
    _count_literals(w, n, 1, _stamp(w))
    own = get32(priority, t)
    for i in range(n):
        m = get32(terminal_of, get32(literal_of, get32(cell, i)))
        if get32(count, m) == get32(positive, m):
            if m == t:
                flags |= ENDS
            if get32(priority, m) > own:
                flags |= ENDS_ABOVE
            elif get32(priority, m) == own and get32(_table(w, W_GREEDY), m) != 0:
                flags |= ENDS_GREEDY
    return flags


@kernel
def _alive(w, n):
    """Drop the dead terminals' positions from the ``n`` in W_CELL; return how many are left, all stamped."""
    cell = _table(w, W_CELL)
    literal_of = _table(w, W_LITERAL)
    terminal_of = _table(w, W_TERMINAL_OF)
    positive = _table(w, W_POSITIVE)
    count = _table(w, W_COUNT)
    stamps = _table(w, W_STAMP_POSITION)
    _count_literals(w, n, 0, _stamp(w))
    kept = 0
    for i in range(n):
        x = get32(cell, i)
        m = get32(terminal_of, get32(literal_of, x))
        if get32(count, m) == get32(positive, m):
            put32(cell, kept, x)
            kept += 1
        else:
            put64(stamps, x, 0)
    return kept


@kernel
def _state(w, n, stamp):
    """Return the number of the set of the ``n`` positions in W_CELL, which carry ``stamp``."""
    cell = _table(w, W_CELL)
    stamps = _table(w, W_STAMP_POSITION)
    off = _table(w, W_OFF)
    pool = _table(w, W_POOL)
    slots = _table(w, W_HASH)
    x = 0
    for i in range(n):
        v = product(get32(cell, i) + 1, -7046029254386353131)
        x ^= v ^ ((v >> 29) & 0x7FFFFFFFF)
    x ^= (x >> 32) & 0xFFFFFFFF
    x &= slots[1] - 1
    while True:
        s = get32(slots, x)
        if s < 0:
            break
        begin = get64(off, s)
        if get64(off, s + 1) - begin == n:
            is_equal = True
            for i in range(begin, begin + n):
                if get64(stamps, get32(pool, i)) != stamp:
                    is_equal = False
                    break
            if is_equal:
                return s
        x = (x + 1) & (slots[1] - 1)
    count = header(w, W_N)
    # State 0 is the start, which isn't among the states found unless it is met again.
    if count > header(w, W_MOST):
        return LIMIT
    begin = get64(off, count)
    if _room(w, W_POOL, begin + n) < 0:
        return GROW
    for i in range(n):
        put32(pool, begin + i, get32(cell, i))
    put64(off, count + 1, begin + n)
    put32(slots, x, count)
    set_header(w, W_N, count + 1)
    return count


@kernel
def _gather(w, begin, end):
    """Put the edges of a state in W_EDGE, chained by their first bytes; return how many."""
    pool = _table(w, W_POOL)
    edges = _table(w, W_EDGES)
    edge_off = _table(w, W_EDGE_OFF)
    first = _table(w, W_FIRST)
    following = _table(w, W_NEXT)
    gathered = _table(w, W_EDGE)
    for b in range(256):
        put32(first, b, -1)
    n = 0
    for i in range(begin, end):
        x = get32(pool, i)
        for e in range(get32(edge_off, x), get32(edge_off, x + 1)):
            low = get32(edges, 5 * e)
            put32(gathered, n, e)
            put32(following, n, get32(first, low))
            put32(first, low, n)
            n += 1
    return n


@kernel
def _expand(w, s):
    """Find what the bytes lead to from state ``s``; return the work done."""
    off = _table(w, W_OFF)
    begin = get64(off, s)
    end = get64(off, s + 1)
    edges = _table(w, W_EDGES)
    first = _table(w, W_FIRST)
    following = _table(w, W_NEXT)
    gathered = _table(w, W_EDGE)
    active = _table(w, W_ACTIVE)
    cell = _table(w, W_CELL)
    stamps = _table(w, W_STAMP_POSITION)
    met = _table(w, W_STAMP_STATE)
    to = _table(w, W_TO)
    mask = _table(w, W_MASK)
    positive = _table(w, W_POSITIVE)
    count = _table(w, W_COUNT)
    known = _table(w, W_STAMP_TERMINAL)
    t = header(w, W_TERMINAL)
    flags = _flags(w, begin, end)
    work = _gather(w, begin, end)
    for k in range(4):
        put64(mask, 4 * s + k, 0)
    here = _stamp(w)
    n_to = header(w, W_N_TO)
    n_active = 0
    b = 0
    while b < 256:
        # The edges that read byte b, and how far all of them do and no other begins.
        upto = 256
        kept = 0
        for i in range(n_active):
            e = get32(active, i)
            high = get32(edges, 5 * e + 1)
            if high >= b:
                put32(active, kept, e)
                kept += 1
                upto = min(upto, high + 1)
        i = get32(first, b)
        while i >= 0:
            e = get32(gathered, i)
            put32(active, kept, e)
            kept += 1
            upto = min(upto, get32(edges, 5 * e + 1) + 1)
            i = get32(following, i)
        n_active = kept
        c = b + 1
        while c < upto and get32(first, c) < 0:
            c += 1
        work += 1 + 2 * n_active
        if n_active > 0:
            stamp = _stamp(w)
            n = 0
            for i in range(n_active):
                x = get32(edges, 5 * get32(active, i) + 2)
                if get64(stamps, x) != stamp:
                    put64(stamps, x, stamp)
                    put32(cell, n, x)
                    n += 1
            n = _alive(w, n)
            if n > 0:
                for byte in range(b, c):
                    k = 4 * s + (byte >> 6)
                    put64(mask, k, get64(mask, k) | (1 << (byte & 63)))
                # What `_alive` counted last is still there.
                if get64(known, t) == header(w, W_STAMP) and get32(count, t) == get32(positive, t):
                    q = _state(w, n, stamp)
                    if q < 0:
                        return q
                    if get64(met, q) != here:
                        put64(met, q, here)
                        if _room(w, W_TO, n_to + 1) < 0:
                            return GROW
                        put32(to, n_to, q)
                        n_to += 1
        b = c
    put32(_table(w, W_FLAGS), s, flags)
    put64(_table(w, W_TO_OFF), s + 1, n_to)
    set_header(w, W_N_TO, n_to)
    return work


@entry_point
def walk_lexemes(w):
    """Find all states that are reached from state 0, as long as the terminal walked for is alive.

    Returns 0, or GROW, TICK or LIMIT.
    """
    work = 0
    s = header(w, W_DONE)
    while s < header(w, W_N):
        r = _expand(w, s)
        if r < 0:
            return r
        s += 1
        set_header(w, W_DONE, s)
        work += r
        if work > header(w, W_WORK_LIMIT):
            return TICK
    return 0
