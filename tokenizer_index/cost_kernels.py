"""The kernels of costs: how many tokens an output still needs.

Tokens to finish, from small to large: of a lexer value to the end of its lexeme, of a dotted state to the end
of its rule, of a parser state after one of its rules or terminals, of a matcher state. There are two kinds.
Kind 0 counts tokens that are enough, cut at the ends of lexemes: from a state of cost k > 0 some token leads to
a state of cost k - 1 at most. Kind 1 counts tokens that are necessary, namely those that begin in each lexeme.
Lexer values can be taken one by one, because a lexeme may end where any of them accepts.

The words and protocols are those of ``kernels``.
"""

from __future__ import annotations

from constrain.grammars.ir import CLOSE, COUNT, MORE
from constrain.tokenizer_index.kernel_memory import entry_point as _entry_point
from constrain.tokenizer_index.kernel_memory import get8 as _get8
from constrain.tokenizer_index.kernel_memory import get32 as _get32
from constrain.tokenizer_index.kernel_memory import get64 as _get64
from constrain.tokenizer_index.kernel_memory import header as _header
from constrain.tokenizer_index.kernel_memory import kernel as _kernel
from constrain.tokenizer_index.kernel_memory import put32 as _put32
from constrain.tokenizer_index.kernel_memory import put64 as _put64
from constrain.tokenizer_index.kernel_memory import quick as _quick
from constrain.tokenizer_index.kernel_memory import set_header as _set_header
from constrain.tokenizer_index.kernel_memory import view as _view
from constrain.tokenizer_index.kernels import (
    accept_one,
    accepted_terminal,
    advance_token,
    ask_for,
    configuration_intern,
    count_work,
    element_of,
    far_function,
    fill_mask,
    lexer_distance,
    lexer_intern,
    lexer_step,
    line_value,
    lower_bound,
    make_element,
    may_end_here,
    named_terminal,
    needs_word,
    next_stamp,
    parser_go,
    room_for,
    rule_target,
    scratch_of,
    slice_check,
    slot_of,
    slot_room,
    start_lexer,
    state_accepting,
    state_fill,
    state_step,
    terminal_of,
    terminal_target,
)
from constrain.tokenizer_index.layout import (
    A_ATTR,
    A_OFF,
    A_POOL,
    AFTER_RULE,
    AFTER_TERMINAL,
    ALL_CHARACTERS,
    BEAM,
    BUCKET_MAX,
    BUF_CONFIG,
    BUF_LEXER,
    BUF_NODE,
    BUF_PRICE,
    BUF_PROOF,
    BUF_STACK,
    BUF_STATES,
    BUF_WALK,
    CAPACITY,
    CLASS_OF,
    COUNT_MAX,
    COUNT_MIN,
    D_ATTR,
    D_OFF,
    D_POOL,
    D_ROW,
    DEAD,
    DISTANCE,
    DOT_POOL,
    DUPLICATES,
    EL_OFF,
    EL_POOL,
    EXACT,
    FEW_NODES,
    FLAG_RECORDS,
    GAP,
    GROW,
    HUGE,
    IGNORED,
    INFINITE,
    INNER_NODES,
    INNER_OFF,
    IS_BLANK,
    IS_FINAL,
    IS_HUB,
    IS_LINE,
    L_ACC,
    L_ATTR,
    L_CHARS_OFF,
    L_FLAGS,
    L_GREEDY,
    L_OFF,
    L_POOL,
    L_ROW,
    L_STRIDE,
    LAYERS,
    LOW32,
    MAY_END,
    MODE_SHIFT,
    NEAR,
    NODE_TOKEN,
    NODES,
    OP_BOUND,
    OP_COST,
    OP_ENTRY_COST,
    OP_EXPAND,
    OP_INNER_STATES,
    OP_RESTRICT,
    OP_START_STATE,
    OP_STATE_VALUE,
    OP_STORE_COST,
    OP_SUCCESSORS,
    P_ACCEPTING,
    P_ATTR,
    P_BASE,
    P_FLAGS,
    P_IGNORED,
    P_OFF,
    P_POOL,
    P_STRIDE,
    P_TEMPLATE,
    PARAMETER,
    PARENT,
    PATIENCE,
    PT_OFF,
    PT_POOL,
    PX_OFF,
    PX_POOL,
    RECORDER,
    RULE_ACTION,
    RULE_BEHIND,
    RULE_COST,
    RULE_OF,
    RULE_OFF,
    RULE_START,
    RULE_SYMBOL,
    RUN_KEY,
    RUN_SPAN,
    RUNS,
    S_BEST,
    S_BEST_NODE,
    S_BEST_TOKEN,
    S_BETWEEN,
    S_CLASSES,
    S_DEDENT,
    S_DOTTED,
    S_EXPANDED,
    S_EXPANDED_N,
    S_FLOOR,
    S_FRESH,
    S_IGNORED_MOST,
    S_INDENT,
    S_IS_PROVEN,
    S_LAYERS,
    S_LINE,
    S_LONGEST,
    S_NEWLINE,
    S_POSITIONS,
    S_PREFIX,
    S_RULES_DONE,
    S_STUCK,
    S_TERMINALS,
    S_TRAILING,
    S_TRIES,
    S_USE_SLICES,
    S_WAY,
    S_WORDS,
    SAME,
    SEARCH,
    SEEN,
    SEPARATORS,
    SLICE_POOL,
    START_OFF,
    START_POOL,
    STATE_KEY,
    TARGET_SHIFT,
    TERM_ACTION,
    TERM_BEHIND,
    TERM_COST,
    TERM_OFF,
    TERM_SYMBOL,
    TOKEN_DATA,
    TOKEN_OFF,
    TOO_WIDE,
    TRIE_BASE,
    TRIE_SIZE,
    UNFILLED,
    USED,
    VAL_OFF,
    VAL_POOL,
    VALUE_COST,
    VALUE_KEY,
    WIDE_LINE,
    WIDER,
    WORD_KEY,
    WORDS_BELOW,
    X_STACK,
)
from constrain.tokenizer_index.parameters import (
    COLUMNS,
    PM_BEHIND,
    PM_ELEMENTS,
    PM_LEAST,
    PM_NEEDS,
    PM_TAKING,
    PM_WORDS,
)


@_kernel
def _note(h, key, value, token, stamp, n):
    """Append (value, token) to BUF_WALK unless ``key`` was noted under ``stamp``; return the new length."""
    memo = _view(h, SEEN)
    x = slot_of(memo, 2, key)
    is_new = _get64(memo, 2 * x) != key
    if not is_new and _get64(memo, 2 * x + 1) == stamp:
        return n
    r = room_for(h, BUF_WALK, 2 * n + 2)
    if r == 0 and is_new:
        r = slot_room(h, SEEN, 2)
    if r < 0:
        return r
    if is_new:
        _put64(memo, 2 * x, key)
        _set_header(h, USED + SEEN, _header(h, USED + SEEN) + 1)
    _put64(memo, 2 * x + 1, stamp)
    walk = _view(h, BUF_WALK)
    _put64(walk, 2 * n, value)
    _put64(walk, 2 * n + 1, token)
    return n + 1


@_kernel
def _layer_token(h, low, high):
    """Return a token of layer ``high`` that is not in layer ``low``, or -1."""
    words = _header(h, S_WORDS)
    layers = _view(h, LAYERS)
    for k in range(words):
        w = _get32(layers, high * words + k) & ~_get32(layers, low * words + k)
        if w != 0:
            for b in range(32):
                if (w >> b) & 1:
                    return 32 * k + b
    return -1


@_kernel
def _next_character(h, l):
    """Return the lexer state to which all characters of the slice lead from ``l``, or DEAD."""
    r = slice_check(h, l)
    if r < 0:
        return r
    if r != 1:
        return DEAD
    o = _get32(_view(h, L_ATTR), l * L_STRIDE + L_CHARS_OFF)
    pool = _view(h, SLICE_POOL)
    if _get32(pool, o) != 1:
        return DEAD
    return _get32(pool, o + 1)


@far_function
def _walk_lexer(h, l):
    """List in BUF_WALK the lexer states one token away from ``l`` inside the lexeme, each with a token.

    S_PREFIX: 1 if some token reaches acceptance, at its end or before. Where all characters of the slice lead
    to one state, its tokens need not be walked.
    """
    row = _view(h, L_ROW)
    attr = _view(h, L_ATTR)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    classes = _header(h, S_CLASSES)
    base = _view(h, TRIE_BASE)
    size = _view(h, TRIE_SIZE)
    most = _view(h, BUCKET_MAX)
    top = _header(h, S_LAYERS) - 1
    stamp = next_stamp(h)
    n = 0
    prefix = 0
    covered = 0
    q = l
    while covered < top - 1:
        q2 = _next_character(h, q)
        if q2 <= GROW:
            return q2
        if q2 < 0:
            break
        if _get32(attr, q2 * L_STRIDE + L_ACC) >= 0:
            prefix = 1
        is_loop = q2 == q
        token = _layer_token(h, covered, top if is_loop else covered + 1)
        if token >= 0:
            n = _note(h, q2, q2, token, stamp, n)
            if n < 0:
                return n
        covered = ALL_CHARACTERS if is_loop else covered + 1
        q = q2
    last = -1
    for k in range(_header(h, S_TRIES)):
        if k > 0 and _get64(most, k - 1) <= covered:
            continue
        i = _get64(base, k)
        end = i + _get64(size, k)
        _put64(stack, 0, l)
        while i < end:
            w = _get64(nodes, i)
            depth = (w >> 8) & 0xFFFF
            above = _get64(stack, depth - 1)
            c = _get8(class_of, w & 255)
            s = _get32(row, above * classes + c)
            if s == UNFILLED:
                s = fill_mask(h, above, c)
                if s <= GROW:
                    return s
            if s < 0:
                i += w >> 24
                continue
            _put64(stack, depth, s)
            if s != last:
                if _get32(attr, s * L_STRIDE + L_ACC) >= 0:
                    prefix = 1
                t = _get32(node_token, i)
                if t >= 0:
                    n = _note(h, s, s, t, stamp, n)
                    if n < 0:
                        return n
                    last = s
            i += 1
    _set_header(h, S_PREFIX, prefix)
    return n


@_kernel
def _lone_literal(h, value):
    """Return the lexer state that an element of one positive literal is like, or -1."""
    e = (value & LOW32) - _header(h, S_POSITIONS)
    if e < 0:
        return -1
    off = _view(h, EL_OFF)
    o = _get64(off, e)
    if _get64(off, e + 1) - o != 2:
        return -1
    literal = _get64(_view(h, EL_POOL), o + 1)
    if literal & 1:
        return -1
    return literal >> 1


@_kernel
def _known_value(h, value, kind):
    """Return the cost of a lexer value if it is known at once, else -1."""
    if accepted_terminal(h, value) >= 0:
        return 0
    memo = _view(h, VALUE_COST)
    key = (value << 1) | kind
    x = slot_of(memo, 3, key)
    if _get64(memo, 3 * x) == key:
        return _get64(memo, 3 * x + 1)
    return -1


@_kernel
def _store_value(h, key, cost, token):
    """Remember a cost, and the token that begins the way, under a key of VALUE_COST."""
    memo = _view(h, VALUE_COST)
    x = slot_of(memo, 3, key)
    if _get64(memo, 3 * x) != key:
        r = slot_room(h, VALUE_COST, 3)
        if r < 0:
            return r
        _put64(memo, 3 * x, key)
        _set_header(h, USED + VALUE_COST, _header(h, USED + VALUE_COST) + 1)
    _put64(memo, 3 * x + 1, cost)
    _put64(memo, 3 * x + 2, token)
    return 0


@_kernel
def _value_token(h, key):
    """Return the token stored with a cost, or -1."""
    memo = _view(h, VALUE_COST)
    x = slot_of(memo, 3, key)
    if _get64(memo, 3 * x) == key:
        return _get64(memo, 3 * x + 2)
    return -1


@_kernel
def _value_distance(h, value):
    """Fewest bytes to acceptance that a value still needs, a lower bound that orders searches."""
    x = value & LOW32
    e = x - _header(h, S_POSITIONS)
    d = 0
    if e >= 0:
        off = _view(h, EL_OFF)
        pool = _view(h, EL_POOL)
        for j in range(_get64(off, e) + 1, _get64(off, e + 1)):
            literal = _get64(pool, j)
            if literal & 1 == 0:
                d = max(d, lexer_distance(h, literal >> 1))
        return d
    d = _get32(_view(h, DISTANCE), x)
    missing = _get32(_view(h, COUNT_MIN), x) - (value >> 32)
    if missing > 1:
        d += missing - 1
    if _get32(_view(h, IS_HUB), x) == IS_LINE and (value >> 32) >> MODE_SHIFT == EXACT:
        width = (value >> 32) & TOO_WIDE
        target = (value >> (32 + TARGET_SHIFT)) & TOO_WIDE
        d += target - width if width <= target else target + 1
    return d


@_kernel
def _singleton(h, value):
    """Return the lexer state of one value."""
    r = room_for(h, BUF_LEXER, 1)
    if r < 0:
        return r
    _put64(_view(h, BUF_LEXER), 0, value)
    return lexer_intern(h, BUF_LEXER, 1)


@far_function
def _run_table(h, x):
    """Return where RUNS says how tokens add rounds to the counted repeat with hub ``x``.

    Three rows of ``RUN_SPAN + 1``: a token that adds ``j`` rounds at once or -1; fewest tokens that add ``y``
    rounds together; the rounds that the first of these adds. Item 0 of the first row: most rounds of one token.
    """
    key = RUN_KEY | x
    memo = _view(h, VALUE_COST)
    s = slot_of(memo, 3, key)
    if _get64(memo, 3 * s) == key:
        return _get64(memo, 3 * s + 1)
    l = _singleton(h, x)
    if l < 0:
        return l
    n = _walk_lexer(h, l)
    if n < 0:
        return n
    size = RUN_SPAN + 1
    o = _header(h, USED + RUNS)
    r = room_for(h, RUNS, o + 3 * size)
    if r < 0:
        return r
    runs = _view(h, RUNS)
    for y in range(size):
        _put64(runs, o + y, -1)
        _put64(runs, o + size + y, 0 if y == 0 else INFINITE)
        _put64(runs, o + 2 * size + y, 0)
    walk = _view(h, BUF_WALK)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    longest = 0
    for i in range(n):
        l1 = _get64(walk, 2 * i)
        for q in range(_get64(off, l1), _get64(off, l1 + 1)):
            v = _get64(pool, q)
            j = v >> 32
            if v & LOW32 == x and 1 <= j < size:
                _put64(runs, o + j, _get64(walk, 2 * i + 1))
                longest = max(longest, j)
    for y in range(1, size):
        for j in range(1, min(y, longest) + 1):
            c = _get64(runs, o + size + y - j) + 1
            if _get64(runs, o + j) >= 0 and c <= _get64(runs, o + size + y):
                _put64(runs, o + size + y, c)
                _put64(runs, o + 2 * size + y, j)
    _put64(runs, o, longest)
    _set_header(h, USED + RUNS, o + 3 * size)
    r = _store_value(h, key, o, -1)
    return r if r < 0 else o


@far_function
def _round_end(h, x):
    """Return the hub, as a value, that one token reaches from position ``x`` inside a counted repeat of far limits.

    DEAD if there is no such token. Remembered, with the token, among the costs under a key of its own.
    """
    key = RUN_KEY | x
    memo = _view(h, VALUE_COST)
    s = slot_of(memo, 3, key)
    if _get64(memo, 3 * s) == key:
        return _get64(memo, 3 * s + 1)
    l = _singleton(h, x)
    if l < 0:
        return l
    n = _walk_lexer(h, l)
    if n < 0:
        return n
    walk = _view(h, BUF_WALK)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    is_hub = _view(h, IS_HUB)
    end = DEAD
    token = -1
    for i in range(n):
        l1 = _get64(walk, 2 * i)
        for q in range(_get64(off, l1), _get64(off, l1 + 1)):
            v = _get64(pool, q)
            if v >> 32 > 0 and _get32(is_hub, v & LOW32) != 0 and (end < 0 or v < end):
                end = v
                token = _get64(walk, 2 * i + 1)
    r = _store_value(h, key, end, token)
    return r if r < 0 else end


@_kernel
def _run_ahead(h, value):
    """Return (tokens, value they lead to, first token) from a counted position far below its least count.

    From a hub the way leads to NEAR below the count, from other positions to a hub. No search has to visit all
    counts on the way: wherever these tokens stop, what is left of them leads to the same value. (0, ...) where
    there is no such way.
    """
    x = value & LOW32
    if x >= _header(h, S_POSITIONS):
        return 0, 0, -1
    rounds = _get32(_view(h, COUNT_MIN), x) - (value >> 32) - NEAR
    if rounds <= 0:
        return 0, 0, -1
    if _get32(_view(h, IS_HUB), x) == 0:
        if rounds <= _header(h, S_LONGEST):
            return 0, 0, -1
        end = _round_end(h, x)
        if end < 0:
            return min(end, 0) if end <= GROW else 0, 0, -1
        return 1, (value & ~LOW32) + end, _value_token(h, RUN_KEY | x)
    o = _run_table(h, x)
    if o < 0:
        return o, 0, -1
    runs = _view(h, RUNS)
    longest = _get64(runs, o)
    if longest <= 0:
        return 0, 0, -1
    long_steps = 0
    j = longest
    if rounds > RUN_SPAN:
        long_steps = (rounds - RUN_SPAN + longest - 1) // longest
    else:
        j = _get64(runs, o + 2 * (RUN_SPAN + 1) + rounds)
    steps = long_steps + _get64(runs, o + RUN_SPAN + 1 + rounds - long_steps * longest)
    if steps >= INFINITE:
        return 0, 0, -1
    return steps, value + (rounds << 32), _get64(runs, o + j)


@_kernel
def _add_node(h, n, value, cost, parent, token):
    """Add a search node of a value unless the value has one; return the new length.

    Nodes are (value, cost, parent, token that led here, 0 open / 1 done / 2 dropped).
    """
    memo = _view(h, SEEN)
    key = VALUE_KEY | value
    x = slot_of(memo, 2, key)
    nodes = _view(h, BUF_NODE)
    if _get64(memo, 2 * x) == key:
        # Below -1, so that it is never taken for the stamp of a walk.
        i = -2 - _get64(memo, 2 * x + 1)
        if 0 <= i < n and _get64(nodes, 5 * i) == value:
            if _get64(nodes, 5 * i + 1) > cost and _get64(nodes, 5 * i + 4) != 1:
                _put64(nodes, 5 * i + 1, cost)
                _put64(nodes, 5 * i + 2, parent)
                _put64(nodes, 5 * i + 3, token)
            return n
    else:
        r = slot_room(h, SEEN, 2)
        if r < 0:
            return r
        _put64(memo, 2 * x, key)
        _set_header(h, USED + SEEN, _header(h, USED + SEEN) + 1)
    r = room_for(h, BUF_NODE, 5 * n + 5)
    if r < 0:
        return r
    _put64(memo, 2 * x + 1, -2 - n)
    _put64(nodes, 5 * n, value)
    _put64(nodes, 5 * n + 1, cost)
    _put64(nodes, 5 * n + 2, parent)
    _put64(nodes, 5 * n + 3, token)
    _put64(nodes, 5 * n + 4, 0)
    return n + 1


@_kernel
def _meet(h, cost, node, token):
    """A way of ``cost`` through a search node is known; keep it if it is the best."""
    if cost < _header(h, S_BEST):
        _set_header(h, S_BEST, cost)
        _set_header(h, S_BEST_NODE, node)
        _set_header(h, S_BEST_TOKEN, token)


@far_function
def _expand_value(h, n, pick, kind):
    """Add nodes for the values one token away from node ``pick``; return the new number of nodes."""
    nodes = _view(h, BUF_NODE)
    v = _get64(nodes, 5 * pick)
    cost = _get64(nodes, 5 * pick + 1) + 1
    steps, w, token = _run_ahead(h, v)
    if steps < 0:
        return steps
    if steps > 0 and kind == 1:
        # A round takes a byte at least.
        missing = _get32(_view(h, COUNT_MIN), v & LOW32) - (v >> 32)
        floor = cost - 1 + max(1, missing // _header(h, S_LONGEST))
        _set_header(h, S_FLOOR, min(_header(h, S_FLOOR), floor))
        return n
    if steps > 0:
        known = _known_value(h, w, 0)
        if known < 0:
            return _add_node(h, n, w, cost - 1 + steps, pick, token)
        _meet(h, cost - 1 + steps + known, pick, token)
        return n
    l = _singleton(h, v)
    if l < 0:
        return l
    m = _walk_lexer(h, l)
    if m < 0:
        return m
    if kind == 1 and _header(h, S_PREFIX) != 0:
        _meet(h, cost, pick, -1)
    walk = _view(h, BUF_WALK)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    lex = _view(h, L_ATTR)
    for i in range(m):
        l1 = _get64(walk, 2 * i)
        token = _get64(walk, 2 * i + 1)
        if _get32(lex, l1 * L_STRIDE + L_ACC) >= 0:
            _meet(h, cost, pick, token)
            continue
        if cost + 1 >= _header(h, S_BEST):
            continue
        for j in range(_get64(off, l1), _get64(off, l1 + 1)):
            lone = _lone_literal(h, _get64(pool, j))
            first = j
            last = j + 1
            if lone >= 0:
                first = _get64(off, lone)
                last = _get64(off, lone + 1)
            for q in range(first, last):
                w = _get64(pool, q)
                known = _known_value(h, w, kind)
                if known >= 0:
                    _meet(h, cost + known, pick, token)
                else:
                    n = _add_node(h, n, w, cost, pick, token)
                    if n < 0:
                        return n
    return n


@_kernel
def _pick_node(h, first, n, level, is_full, is_wide):
    """Return an open node of cost ``level``: the nearest to acceptance, or any if ``is_wide``; -1 if none.

    If ``is_full``, all open nodes of the level are dropped instead.
    """
    nodes = _view(h, BUF_NODE)
    pick = -1
    # More than any distance: an open node is always picked, or the search would never end.
    nearest = LOW32
    for i in range(first, n):
        if _get64(nodes, 5 * i + 4) != 0 or _get64(nodes, 5 * i + 1) != level:
            continue
        if is_full:
            _put64(nodes, 5 * i + 4, 2)
            _set_header(h, S_FLOOR, min(_header(h, S_FLOOR), level + 1))
            continue
        if is_wide:
            return i
        d = _value_distance(h, _get64(nodes, 5 * i))
        if d < nearest:
            nearest = d
            pick = i
    return pick


@far_function
def _plain_cost(h, value, kind):
    """`_value_cost` of a value that is not an element of one positive literal: a search over values.

    It goes by levels of rising cost. A level expands the ``BEAM`` nodes nearest to acceptance (twice as many of
    kind 1), only one once ``PATIENCE`` nodes are expanded; others are dropped until nothing else is left (kind
    0), or count as if one more token finished them (kind 1). Of kind 0 each value on the way found gets its
    cost, so that costs fall by one along it.
    """
    known = _known_value(h, value, kind)
    if known >= 0:
        return known
    x = value & LOW32
    if x < _header(h, S_POSITIONS) and _get32(_view(h, COUNT_MIN), x) >= HUGE:
        return HUGE if kind == 0 else 1
    nodes = _view(h, BUF_NODE)
    n = _add_node(h, 0, value, 0, -1, -1)
    if n < 0:
        return n
    _set_header(h, S_BEST, INFINITE)
    _set_header(h, S_BEST_NODE, -1)
    _set_header(h, S_FLOOR, INFINITE)
    is_wide = False
    first = 0
    n_done = 0
    while True:
        level = INFINITE
        while first < n and _get64(nodes, 5 * first + 4) != 0:
            first += 1
        for i in range(first, n):
            if _get64(nodes, 5 * i + 4) == 0:
                level = min(level, _get64(nodes, 5 * i + 1))
        floor = _header(h, S_FLOOR)
        if level == INFINITE:
            if kind == 1 or is_wide or floor == INFINITE or _header(h, S_BEST) < INFINITE:
                break
            # Nothing was found near the shortest ways: look at everything.
            for i in range(n):
                if _get64(nodes, 5 * i + 4) == 2:
                    _put64(nodes, 5 * i + 4, 0)
            first = 0
            is_wide = True
            continue
        if _header(h, S_BEST) <= level + 1 or (kind == 1 and floor <= level + 1):
            break
        if n_done >= PATIENCE and kind == 1:
            _set_header(h, S_FLOOR, min(floor, level + 1))
            break
        if n_done >= PATIENCE and _header(h, S_BEST) < INFINITE:
            break
        beam = BEAM * (1 + kind) if n_done < PATIENCE else 1
        n_here = 0
        while True:
            pick = _pick_node(h, first, n, level, not is_wide and n_here >= beam, is_wide)
            if pick < 0:
                break
            n_here += 1
            n_done += 1
            _put64(nodes, 5 * pick + 4, 1)
            r = count_work(h, 20)
            if r == 0:
                r = n = _expand_value(h, n, pick, kind)
            if r < 0:
                return r
            if is_wide:
                while first < n and _get64(nodes, 5 * first + 4) != 0:
                    first += 1
    best = _header(h, S_BEST)
    if kind == 1:
        best = min(best, _header(h, S_FLOOR))
        r = _store_value(h, (value << 1) | 1, best, -1)
        return r if r < 0 else best
    # Room for all before any is stored, so that costs along the way belong together.
    if (_header(h, USED + VALUE_COST) + n + 1) * 6 > _header(h, CAPACITY + VALUE_COST):
        return ask_for(h, VALUE_COST, 2 * _header(h, CAPACITY + VALUE_COST))
    if best >= INFINITE:
        for i in range(n):
            _store_value(h, _get64(nodes, 5 * i) << 1, INFINITE, -1)
        return INFINITE
    i = _header(h, S_BEST_NODE)
    token = _header(h, S_BEST_TOKEN)
    while i >= 0:
        _store_value(h, _get64(nodes, 5 * i) << 1, best - _get64(nodes, 5 * i + 1), token)
        token = _get64(nodes, 5 * i + 3)
        i = _get64(nodes, 5 * i + 2)
    return best


@far_function
def _value_cost(h, value, kind):
    """Tokens from a lexer value to the end of its lexeme; INFINITE if there is no way."""
    known = _known_value(h, value, kind)
    if known >= 0:
        return known
    lone = _lone_literal(h, value)
    if lone < 0:
        return _plain_cost(h, value, kind)
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    best = INFINITE
    token = -1
    for j in range(_get64(off, lone), _get64(off, lone + 1)):
        c = _plain_cost(h, _get64(pool, j), kind)
        if c < 0:
            return c
        if c < best:
            best = c
            token = _value_token(h, (_get64(pool, j) << 1) | kind)
    r = _store_value(h, (value << 1) | kind, best, token)
    return r if r < 0 else best


@_kernel
def _start_state(h, t):
    """Return the lexer state of the first positions of terminal ``t`` alone; DEAD if it has none."""
    off = _view(h, START_OFF)
    starts = _view(h, START_POOL)
    first = _get32(off, t)
    n = _get32(off, t + 1) - first
    if n == 0:
        return DEAD
    r = room_for(h, BUF_LEXER, n)
    if r < 0:
        return r
    buf = _view(h, BUF_LEXER)
    for j in range(n):
        _put64(buf, j, _get64(starts, first + j))
    return lexer_intern(h, BUF_LEXER, n)


@far_function
def _state_value(h, l, kind):
    """Least cost of the values of a lexer state."""
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    best = INFINITE
    for j in range(_get64(off, l), _get64(off, l + 1)):
        if terminal_of(h, _get64(pool, j)) >= 0:
            c = _value_cost(h, _get64(pool, j), kind)
            if c < 0:
                return c
            best = min(best, c)
    return best


@far_function
def _inner_states(h, t, is_all):
    """List in BUF_WALK where tokens that begin before a lexeme of terminal ``t`` may end inside it.

    Those are tokens in which a byte of MAY_END, then perhaps bytes of IS_BLANK, come before a beginning of the
    lexeme. Items are ``lexer state << 1 | extra``; ``extra`` is 1 where the token holds only blanks before.
    S_PREFIX: the least ``extra`` of tokens in which the whole lexeme fits, 2 if there is none. Unless
    ``is_all``, the walk ends when that is known to be 0.
    """
    l = _start_state(h, t)
    if l < 0:
        return l
    attr = _view(h, L_ATTR)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    parents = _view(h, PARENT)
    inner = _view(h, INNER_NODES)
    inner_off = _view(h, INNER_OFF)
    may_end = _view(h, MAY_END)
    is_blank = _view(h, IS_BLANK)
    stamp = next_stamp(h)
    n = 0
    whole = 2
    for byte in range(256):
        s = lexer_step(h, l, _get8(class_of, byte))
        if s <= GROW:
            return s
        if s < 0:
            continue
        for z in range(_get64(inner_off, byte), _get64(inner_off, byte + 1)):
            i = _get32(inner, z)
            above = _get32(parents, i)
            while above >= 0 and _get32(is_blank, _get64(nodes, above) & 255) != 0:
                above = _get32(parents, above)
            extra = 1
            if above >= 0:
                if _get32(may_end, _get64(nodes, above) & 255) == 0:
                    continue
                extra = 0
            if is_all == 0 and whole <= extra:
                continue
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
                _put64(stack, depth, s)
                if _get32(attr, s * L_STRIDE + L_ACC) >= 0:
                    whole = min(whole, extra)
                    if is_all == 0:
                        break
                if _get32(node_token, i) >= 0:
                    n = _note(h, (s << 1) | extra, (s << 1) | extra, 0, stamp, n)
                    if n < 0:
                        return n
                i += 1
            if is_all == 0 and whole == 0:
                _set_header(h, S_PREFIX, 0)
                return n
    _set_header(h, S_PREFIX, whole)
    return n


@far_function
def _entry_cost(h, t):
    """Tokens that must begin in a lexeme of terminal ``t``, or in blanks right before it.

    That is what its own bytes need, or less where a token that begins earlier reaches into the lexeme.
    """
    l = _start_state(h, t)
    if l < 0:
        return INFINITE if l == DEAD else l
    best = _state_value(h, l, 1)
    if best <= 0:
        return best
    n = _inner_states(h, t, 0)
    if n < 0:
        return n
    best = min(best, _header(h, S_PREFIX) if _header(h, S_PREFIX) < 2 else INFINITE)
    _set_header(h, S_EXPANDED, -1)
    r = room_for(h, BUF_STATES, n)
    if r < 0:
        return r
    # Costs walk too, and need the buffer.
    walk = _view(h, BUF_WALK)
    states = _view(h, BUF_STATES)
    for i in range(n):
        _put64(states, i, _get64(walk, 2 * i))
    for i in range(n):
        extra = _get64(states, i) & 1
        if best <= extra:
            continue
        u = _state_value(h, _get64(states, i) >> 1, 1)
        if u < 0:
            return u
        best = min(best, u + extra)
    return best


@_kernel
def _terminal_cost(h, t):
    """Tokens that spell a lexeme of terminal ``t``, from its first byte to its last."""
    costs = _view(h, TERM_COST)
    c = _get64(costs, t)
    if c >= 0:
        return c
    if t == _header(h, S_INDENT) or t == _header(h, S_DEDENT):
        c = 0
    elif t == _header(h, S_NEWLINE):
        # More than most lines need; what a line needs isn't known before its blocks are.
        c = _value_cost(h, line_value(h, EXACT, WIDE_LINE), 0)
        if c < 0:
            return c
    else:
        off = _view(h, START_OFF)
        starts = _view(h, START_POOL)
        c = INFINITE
        for j in range(_get32(off, t), _get32(off, t + 1)):
            u = _value_cost(h, _get64(starts, j), 0)
            if u < 0:
                return u
            c = min(c, u)
    _put64(costs, t, c)
    return c


@far_function
def _going_on_cost(h, d, kind):
    """Tokens from dotted state ``d`` over one more symbol to the end of its rule."""
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    rule_off = _view(h, RULE_OFF)
    rule_symbol = _view(h, RULE_SYMBOL)
    rule_start = _view(h, RULE_START)
    costs = _view(h, RULE_COST)
    terminals = _view(h, TERM_COST)
    t0 = kind * _header(h, S_TERMINALS)
    c = INFINITE
    for k in range(_get32(term_off, d), _get32(term_off, d + 1)):
        step = _get64(terminals, t0 + _get32(term_symbol, k))
        u = _dot_cost(h, terminal_target(h, d, k, -1), kind)
        if u < 0:
            return u
        c = min(c, step + u)
    for k in range(_get32(rule_off, d), _get32(rule_off, d + 1)):
        step = _get64(costs, 2 * _get32(rule_start, _get32(rule_symbol, k)) + kind)
        u = _dot_cost(h, rule_target(h, d, k), kind)
        if u < 0:
            return u
        c = min(c, step + u)
    return c


@_kernel
def _dot_cost(h, d, kind):
    """Tokens from dotted state ``d`` to the end of its rule; ``d`` itself if it is GROW or the like."""
    if d < 0:
        return d
    if d < _header(h, S_DOTTED):
        return _get64(_view(h, RULE_COST), 2 * d + kind)
    return _valued_cost(h, d, kind)


@_kernel
def _price(h, kind, offsets, symbols, actions, behind, d, wanted):
    """Lower BUF_PRICE to what elements cost, by the edges of network state ``d``; return the least of ``wanted``.

    Behind the prices of elements is that of any other. ``behind`` is the table of the edges' targets.
    """
    off = _view(h, offsets)
    symbol = _view(h, symbols)
    action = _view(h, actions)
    target = _view(h, behind)
    costs = _view(h, RULE_COST)
    price = _view(h, BUF_PRICE)
    terminals = _view(h, TERM_COST)
    rule_start = _view(h, RULE_START)
    t0 = kind * _header(h, S_TERMINALS)
    least = INFINITE
    n = price[1] - 2
    for e in range(_get32(off, d), _get32(off, d + 1)):
        a = _get32(action, e)
        s = _get32(symbol, e)
        if symbols == TERM_SYMBOL:
            step = _get64(terminals, t0 + s)
        else:
            step = _get64(costs, 2 * _get32(rule_start, s) + kind)
        if a == wanted:
            least = min(least, step)
        step += _get64(costs, 2 * _get32(target, e) + kind)
        if a == COUNT or (a >= 0 and element_of(a) < 0):
            a = n
        elif a >= 0:
            a = element_of(a)
        if a >= 0 and step < _get64(price, a):
            _put64(price, a, step)
    return least


@far_function
def _valued_cost(h, d, kind):
    """`_dot_cost` of a dotted state with a value: the way ahead without elements, and those still to come.

    Costs of the network's own dotted states are those of the way on which nothing more is taken.
    """
    static = _header(h, S_DOTTED)
    dots = _view(h, DOT_POOL)
    s = _get64(dots, 2 * (d - static))
    v = _get64(dots, 2 * (d - static) + 1)
    first = _get64(_view(h, VAL_OFF), v)
    pool = _view(h, VAL_POOL)
    rows = _view(h, PARAMETER)
    parameter = _get64(pool, first)
    o = COLUMNS * parameter
    costs = _view(h, RULE_COST)
    here = _get64(costs, 2 * s + kind)
    behind = _get64(rows, o + PM_BEHIND)
    if here >= INFINITE or behind < 0:
        return here
    ending = _get64(costs, 2 * behind + kind)
    taking = _get64(rows, o + PM_TAKING)
    price = _view(h, BUF_PRICE)
    other = price[1] - 2
    n = _get64(rows, o + PM_ELEMENTS)
    for i in range(n):
        _put64(price, i, INFINITE + ending)
    _put64(price, other, INFINITE + ending)
    _price(h, kind, TERM_OFF, TERM_SYMBOL, TERM_ACTION, TERM_BEHIND, taking, MORE)
    _price(h, kind, RULE_OFF, RULE_SYMBOL, RULE_ACTION, RULE_BEHIND, taking, MORE)
    # What comes between elements.
    comma = _price(h, kind, TERM_OFF, TERM_SYMBOL, TERM_ACTION, TERM_BEHIND, behind, MORE)
    comma = min(comma, _price(h, kind, RULE_OFF, RULE_SYMBOL, RULE_ACTION, RULE_BEHIND, behind, MORE))
    if comma >= INFINITE:
        comma = 0
    words = _get64(rows, o + PM_WORDS)
    more = 0
    n_more = 0
    left = 0
    for k in range(words):
        taken = _get64(pool, first + 3 + k)
        missing = needs_word(h, parameter, v, -1, k) & ~taken
        for i in range(32 * k, min(n, 32 * k + 32)):
            u = _get64(price, i) - ending + comma
            if (missing >> (i & 31)) & 1:
                more += u
                n_more += 1
            if ((missing | taken) >> (i & 31)) & 1:
                _put64(price, i, INFINITE + ending)
            elif u < INFINITE:
                left += u
    fill = _get64(rows, o + PM_LEAST) - _get64(pool, first + 1) - n_more
    any_other = _get64(price, other) - ending + comma
    if fill > 0 and kind == 0 and _get64(rows, o + PM_NEEDS) >= 0:
        # Elements may need others.
        more += left if any_other >= INFINITE else fill * any_other
        n_more += fill
        fill = 0
    while fill > 0:
        best = any_other
        at = -1
        for i in range(n):
            u = _get64(price, i) - ending + comma
            if u < best:
                best = u
                at = i
        if best >= INFINITE:
            return INFINITE
        if at < 0:
            more += fill * best
            n_more += fill
            fill = 0
        else:
            more += best
            n_more += 1
            fill -= 1
            _put64(price, at, INFINITE + ending)
    if more >= INFINITE:
        return INFINITE
    may_take = 0
    may_end = _get32(_view(h, IS_FINAL), s)
    off = _view(h, TERM_OFF)
    action = _view(h, TERM_ACTION)
    for e in range(_get32(off, s), _get32(off, s + 1)):
        a = _get32(action, e)
        may_take |= 1 if a >= 0 or a == COUNT else 0
        may_end |= 1 if a == CLOSE else 0
    off = _view(h, RULE_OFF)
    action = _view(h, RULE_ACTION)
    for e in range(_get32(off, s), _get32(off, s + 1)):
        a = _get32(action, e)
        may_take |= 1 if a >= 0 or a == COUNT else 0
        may_end |= 1 if a == CLOSE else 0
    if may_take == 0:
        return min(here + more, HUGE)
    if n_more > 0:
        return min(ending + more - comma, HUGE)
    if may_end != 0:
        return here
    # Behind a comma with nothing required: some element must follow.
    return _going_on_cost(h, d, kind)


@far_function
def _rule_costs(h, kind):
    """Fill RULE_COST: tokens from each dotted state to the end of its rule, the least fixpoint.

    Of kind 1 the costs of terminals must be there already.
    """
    if (_header(h, S_RULES_DONE) >> kind) & 1:
        return 0
    term_symbol = _view(h, TERM_SYMBOL)
    costs = _view(h, RULE_COST)
    n = _header(h, S_DOTTED)
    if kind == 0:
        for k in range(_get32(_view(h, TERM_OFF), n)):
            r = _terminal_cost(h, _get32(term_symbol, k))
            if r < 0:
                return r
    is_changed = True
    while is_changed:
        is_changed = False
        r = count_work(h, 1 + n // 64)
        if r < 0:
            return r
        for z in range(n):
            d = n - 1 - z
            c = _going_on_cost(h, d, kind)
            if c < 0:
                return c
            if c < _get64(costs, 2 * d + kind):
                _put64(costs, 2 * d + kind, c)
                is_changed = True
    _set_header(h, S_RULES_DONE, _header(h, S_RULES_DONE) | (1 << kind))
    return 0


@_kernel
def _memo_cost(h, table, key):
    """Return a remembered cost, or -1."""
    memo = _view(h, table)
    x = slot_of(memo, 2, key)
    if _get64(memo, 2 * x) == key:
        return _get64(memo, 2 * x + 1)
    return -1


@_kernel
def _lower_cost(h, table, key, cost):
    """Remember ``cost`` if it is lower than what is known; return 1 if it was, else 0, or GROW."""
    memo = _view(h, table)
    x = slot_of(memo, 2, key)
    if _get64(memo, 2 * x) == key:
        if _get64(memo, 2 * x + 1) <= cost:
            return 0
    else:
        r = slot_room(h, table, 2)
        if r < 0:
            return r
        _put64(memo, 2 * x, key)
        _set_header(h, USED + table, _header(h, USED + table) + 1)
    _put64(memo, 2 * x + 1, cost)
    return 1


@_kernel
def _rule_key(origin, rule, kind):
    return (((origin << 32) | rule) << 1) | kind


@_kernel
def _after_rule(h, origin, rule, kind):
    """Tokens to finish after ``rule``, predicted in parser state ``origin``, was completed."""
    if origin < 0:
        return 0
    c = _memo_cost(h, AFTER_RULE, _rule_key(origin, rule, kind))
    return INFINITE if c < 0 else c


@far_function
def _after_rules(h, o, kind):
    """Fill what follows the rules predicted in parser state ``o``, whose items' origins are done already.

    Returns the tokens to finish from ``o``, at least one lexeme more.
    """
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    rule_off = _view(h, RULE_OFF)
    rule_symbol = _view(h, RULE_SYMBOL)
    rule_of = _view(h, RULE_OF)
    is_final = _view(h, IS_FINAL)
    px = _view(h, PX_POOL)
    px_off = _view(h, PX_OFF)
    total = INFINITE
    for j in range(_get64(off, o), _get64(off, o + 1) - 1):
        v = _get64(pool, j)
        d = v >> 32
        rest = _after_rule(h, (v & LOW32) - 1, _get32(rule_of, d), kind)
        # The end of a rule is no lexeme; what may follow it is in other items.
        c = _going_on_cost(h, d, kind) if _get32(is_final, d) != 0 else _dot_cost(h, d, kind)
        if c < 0:
            return c
        total = min(total, c + rest)
        for e in range(_get32(rule_off, d), _get32(rule_off, d + 1)):
            c = _dot_cost(h, rule_target(h, d, e), kind)
            if c < 0:
                return c
            c += rest
            r = _lower_cost(h, AFTER_RULE, _rule_key(o, _get32(rule_symbol, e), kind), c)
            if r < 0:
                return r
    z = _get32(_view(h, P_ATTR), P_STRIDE * o + P_TEMPLATE)
    first = _get64(px_off, z)
    last = _get64(px_off, z + 1)
    is_changed = True
    while is_changed:
        is_changed = False
        r = count_work(h, 1 + (last - first) // 8)
        if r < 0:
            return r
        for e in range(first, last):
            w = _get64(px, e)
            d = w & LOW32
            rest = _after_rule(h, o, _get32(rule_of, d), kind)
            if rest < INFINITE:
                c = _dot_cost(h, d, kind)
                if c < 0:
                    return c
                c += rest
                r = _lower_cost(h, AFTER_RULE, _rule_key(o, w >> 32, kind), c)
                if r < 0:
                    return r
                if r == 1:
                    is_changed = True
    return min(total, INFINITE)


@far_function
def _parser_cost(h, p, kind):
    """Tokens to finish from parser state ``p``, at least one lexeme more; fills what follows its rules."""
    attr = _view(h, P_ATTR)
    b = _get32(attr, P_STRIDE * p + P_BASE)
    # A number that no rule has stands for the state itself and says that its rules are done.
    done = _header(h, USED + RULE_START)
    c = _memo_cost(h, AFTER_RULE, _rule_key(b, done, kind))
    if c >= 0:
        return c
    r = _rule_costs(h, kind)
    if r < 0:
        return r
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    stack = _view(h, BUF_STACK)
    r = room_for(h, BUF_STACK, 1)
    if r < 0:
        return r
    _put64(stack, 0, b)
    depth = 1
    while depth > 0:
        o = _get64(stack, depth - 1)
        if _memo_cost(h, AFTER_RULE, _rule_key(o, done, kind)) >= 0:
            depth -= 1
            continue
        first = _get64(off, o)
        last = _get64(off, o + 1) - 1
        r = room_for(h, BUF_STACK, depth + last - first)
        if r == 0:
            r = count_work(h, 1 + (last - first) // 4)
        if r < 0:
            return r
        is_ready = True
        for j in range(first, last):
            origin = (_get64(pool, j) & LOW32) - 1
            if origin >= 0 and _memo_cost(h, AFTER_RULE, _rule_key(origin, done, kind)) < 0:
                _put64(stack, depth, origin)
                depth += 1
                is_ready = False
        if not is_ready:
            continue
        c = _after_rules(h, o, kind)
        if c < 0:
            return c
        r = _lower_cost(h, AFTER_RULE, _rule_key(o, done, kind), c)
        if r < 0:
            return r
        depth -= 1
    return _memo_cost(h, AFTER_RULE, _rule_key(b, done, kind))


@_kernel
def _first_edge(symbols, low, high, t):
    """Return the first edge of ``low..high`` on symbol ``t`` or a larger one; edges are sorted by symbol."""
    while low < high:
        mid = (low + high) >> 1
        if _get32(symbols, mid) < t:
            low = mid + 1
        else:
            high = mid
    return low


@far_function
def _after_terminal(h, p, t, kind):
    """Tokens to finish after terminal ``t`` was read in parser state ``p``; 0 where the text may end there."""
    key = _rule_key(p, t, kind)
    c = _memo_cost(h, AFTER_TERMINAL, key)
    if c >= 0:
        return c
    again = _parser_cost(h, p, kind)
    if again < 0:
        return again
    attr = _view(h, P_ATTR)
    flags = _get32(attr, P_STRIDE * p + P_FLAGS)
    b = _get32(attr, P_STRIDE * p + P_BASE)
    off = _view(h, P_OFF)
    pool = _view(h, P_POOL)
    term_off = _view(h, TERM_OFF)
    term_symbol = _view(h, TERM_SYMBOL)
    rule_of = _view(h, RULE_OF)
    c = INFINITE
    for j in range(_get64(off, p), _get64(off, p + 1) - 1):
        v = _get64(pool, j)
        d = v >> 32
        end = _get32(term_off, d + 1)
        e = _first_edge(term_symbol, _get32(term_off, d), end, t)
        while e < end and _get32(term_symbol, e) == t:
            rest = _after_rule(h, (v & LOW32) - 1, _get32(rule_of, d), kind)
            u = _dot_cost(h, terminal_target(h, d, e, -1), kind)
            if u < 0:
                return u
            c = min(c, u + rest)
            e += 1
    z = _get32(attr, P_STRIDE * p + P_TEMPLATE)
    pt = _view(h, PT_POOL)
    end = _get64(_view(h, PT_OFF), z + 1)
    e = lower_bound(pt, _get64(_view(h, PT_OFF), z), end, t << 32)
    while e < end and _get64(pt, e) >> 32 == t:
        d = _get64(pt, e) & LOW32
        u = _dot_cost(h, d, kind)
        if u < 0:
            return u
        c = min(c, u + _after_rule(h, b, _get32(rule_of, d), kind))
        e += 1
    if _get32(_view(h, IGNORED), t) != 0 and flags >> P_IGNORED < _header(h, S_IGNORED_MOST):
        c = min(c, again)
        if _header(h, S_TRAILING) != 0 and flags & P_ACCEPTING != 0:
            c = 0
    c = min(c, INFINITE)
    r = _lower_cost(h, AFTER_TERMINAL, key, c)
    return r if r < 0 else c


@_kernel
def _is_accepted(h, l, t):
    """1 if the lexer state ``l`` accepts terminal ``t``, 0 if not or if others come first."""
    a = _get32(_view(h, L_ATTR), l * L_STRIDE + L_ACC)
    if a < 0:
        return 0
    off = _view(h, A_OFF)
    pool = _view(h, A_POOL)
    for k in range(_get64(off, a), _get64(off, a + 1)):
        if named_terminal(h, _get64(pool, k)) == t:
            return 1
    return 0


@far_function
def _after_line(h, p, value):
    """Tokens to finish after the newline ``value`` in parser state ``p`` ended as asked."""
    k = value >> 32
    mode = k >> MODE_SHIFT
    width = (k >> TARGET_SHIFT) & TOO_WIDE
    if mode == SAME:
        width = TOO_WIDE
    elif mode == WIDER:
        width = max(width + 1, k & TOO_WIDE)
        if width == TOO_WIDE:
            width = ((k >> TARGET_SHIFT) & TOO_WIDE) + 1
    a = accept_one(h, _header(h, S_LINE) + width)
    if a < 0:
        return a
    q = parser_go(h, p, a)
    if q < 0:
        return INFINITE if q == DEAD else q
    r = may_end_here(h, q)
    if r != 0:
        return min(r, 0)
    return _parser_cost(h, q, 0)


@_kernel
def _configuration_cost(h, p, l, kind, best):
    """Lower ``best`` to the cost of configuration ``(p, l)``; S_WAY: the token that begins the way.

    The token is -1 where the lexeme may end at once and so another one begins.
    """
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    gaps = _view(h, GAP)
    last_terminal = -9
    rest = INFINITE
    for j in range(_get64(off, l), _get64(off, l + 1)):
        v = _get64(pool, j)
        t = terminal_of(h, v)
        if t < 0:
            continue
        if t == _header(h, S_NEWLINE):
            rest = _after_line(h, p, v)
            if rest < 0:
                return rest
            last_terminal = -9
        elif t != last_terminal:
            rest = _after_terminal(h, p, t, kind)
            if rest < 0:
                return rest
            last_terminal = t
        if rest >= best:
            continue
        u = _value_cost(h, v, kind)
        if u < 0:
            return u
        if kind == 1:
            # A lexeme that ends here is followed by the beginning of a token.
            if u == 0:
                u = min(_get64(gaps, 2 * t), 1 + _get64(gaps, 2 * t + 1))
            else:
                u += _get64(gaps, 2 * t + 1)
        elif u == 0 and _header(h, S_IS_PROVEN) == 0 and _is_accepted(h, l, t) == 0:
            continue
        if u + rest < best:
            best = u + rest
            if kind == 0:
                _set_header(h, S_WAY, -1 if u == 0 else _value_token(h, v << 1))
    return best


@far_function
def _bound(h, d, kind):
    """Tokens to finish from matcher state ``d``, lexeme by lexeme; INFINITE if there is no such way.

    Of kind 0 S_WAY is the token that begins the way.
    """
    r = state_accepting(h, d)
    if r < 0:
        return r
    if r == 1:
        return 0
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    best = INFINITE
    ended = -1
    for i in range(_get64(off, d), _get64(off, d + 1)):
        w = _get64(pool, i)
        c = _configuration_cost(h, w >> 32, w & LOW32, kind, best)
        if c < 0:
            return c
        if c < best:
            best = c
            ended = w if _header(h, S_WAY) < 0 else -1
    if kind == 0 and ended >= 0:
        # The way begins with another lexeme.
        p = parser_go(h, ended >> 32, _get32(_view(h, L_ATTR), (ended & LOW32) * L_STRIDE + L_ACC))
        if p >= 0:
            l = start_lexer(h, p)
            if l >= 0:
                p = _configuration_cost(h, p, l, 0, INFINITE)
            elif l <= GROW:
                return l
        if p <= GROW:
            return p
    return best if best >= INFINITE else min(best, HUGE)


@_kernel
def _search_from(h, d):
    """Ask for a search of the cost of matcher state ``d``."""
    _set_header(h, S_STUCK, d)
    return SEARCH


@_kernel
def _token_of(h, byte, rest):
    """Return the token of ``byte`` and then the bytes of token ``rest`` (of ``byte`` alone if that is -1), or -1."""
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    base = _view(h, TRIE_BASE)
    size = _view(h, TRIE_SIZE)
    off = _view(h, TOKEN_OFF)
    data = _view(h, TOKEN_DATA)
    first = 0
    last = 0
    if rest >= 0:
        first = _get64(off, rest)
        last = _get64(off, rest + 1)
    for k in range(_header(h, S_TRIES)):
        i = _get64(base, k)
        end = i + _get64(size, k)
        q = first
        wanted = byte
        while i < end:
            w = _get64(nodes, i)
            if w & 255 != wanted:
                i += w >> 24
                continue
            if q == last:
                t = _get32(node_token, i)
                if t >= 0:
                    return t
                break
            wanted = _get8(data, q)
            q += 1
            end = i + (w >> 24)
            i += 1
    return -1


@far_function
def _is_nearer(h, d, bound):
    """1 if a cost of ``d`` is known, or its bound is less than ``bound``; 0 if not. S_WAY as in `_bound`."""
    known = _get32(_view(h, D_ATTR), 4 * d + 3)
    if known != 0:
        return 1 if (known - 1) >> 1 < INFINITE else 0
    c = _bound(h, d, 0)
    if c < 0:
        return c
    return 1 if c < bound else 0


@far_function
def _past_separator(h, d, bound):
    """Return a state nearer to the end than ``bound`` behind a separator and at most one token more, or DEAD.

    Where a lexeme would go on into the next one, ignored text parts them. S_BETWEEN: the state behind the
    separator, or -1 if one token holds both.
    """
    separators = _view(h, SEPARATORS)
    class_of = _view(h, CLASS_OF)
    for k in range(_header(h, USED + SEPARATORS)):
        byte = _get64(separators, k)
        between = state_step(h, d, _get8(class_of, byte))
        if between <= GROW:
            return between
        if between < 0:
            continue
        c = _bound(h, between, 0)
        if c < 0:
            return c
        token = _header(h, S_WAY)
        if c < bound and _token_of(h, byte, -1) >= 0:
            _set_header(h, S_BETWEEN, -1)
            return between
        if c > bound or token < 0:
            continue
        after = advance_token(h, between, token)
        if after <= GROW:
            return after
        if after < 0:
            continue
        r = _is_nearer(h, after, bound)
        if r < 0:
            return r
        if r == 0:
            continue
        if _token_of(h, byte, token) >= 0:
            between = -1
        elif _token_of(h, byte, -1) < 0:
            continue
        _set_header(h, S_BETWEEN, between)
        return after
    return DEAD


@far_function
def _prove(h, d):
    """Find a cost of ``d`` by following the way its bound stands for, to a state of proven cost; remember it.

    A separator helps where a greedy lexeme goes on. Where the bound cannot be kept even so, because a lexeme of
    higher priority takes the place of another, or bytes are missing, SEARCH asks for the cost of the state in S_STUCK.
    """
    attr = _view(h, D_ATTR)
    path = _view(h, BUF_PROOF)
    n = 0
    cost = 0
    while True:
        known = _get32(attr, 4 * d + 3)
        if known != 0:
            # Only states with a way to the end are followed.
            cost = (known - 1) >> 1
            break
        bound = _bound(h, d, 0)
        if bound < 0:
            return bound
        if bound == 0:
            _put32(attr, 4 * d + 3, 2)
            break
        token = _header(h, S_WAY)
        after = DEAD
        if bound >= INFINITE:
            return _search_from(h, d)
        if token >= 0:
            after = advance_token(h, d, token)
            if after <= GROW:
                return after
        between = -1
        r = 0
        if after >= 0:
            r = _is_nearer(h, after, bound)
            if r < 0:
                return r
        if r == 0:
            after = _past_separator(h, d, bound)
            if after <= GROW:
                return after
            if after < 0:
                return _search_from(h, d)
            between = _header(h, S_BETWEEN)
        r = room_for(h, BUF_PROOF, n + 2)
        if r == 0:
            r = count_work(h, 1)
        if r < 0:
            return r
        _put64(path, n, d)
        n += 1
        if between >= 0:
            _put64(path, n, between)
            n += 1
        d = after
    while n > 0:
        n -= 1
        cost += 1
        d = _get64(path, n)
        is_exact = 1 if cost == 1 else 0
        known = _get32(attr, 4 * d + 3) - 1
        # Behind a separator a cost may be known already.
        if known >= 0 and known >> 1 <= cost:
            cost = known >> 1
            is_exact = known & 1
        _put32(attr, 4 * d + 3, ((cost << 1) | is_exact) + 1)
    return cost


@far_function
def _cost(h, d):
    """Tokens that are enough to finish from ``d``, lowered where a search found fewer; remembered.

    Kept as ``(cost << 1 | no fewer do) + 1``.
    """
    attr = _view(h, D_ATTR)
    known = _get32(attr, 4 * d + 3)
    if known != 0:
        return (known - 1) >> 1
    if _header(h, S_IS_PROVEN) == 0:
        return _prove(h, d)
    c = _bound(h, d, 0)
    if c >= 0:
        _put32(attr, 4 * d + 3, ((c << 1) | (1 if c <= 1 else 0)) + 1)
    return c


@_kernel
def _character_state(h, d):
    """Return the matcher state to which all characters of the slice lead from ``d``, or DEAD."""
    off = _view(h, D_OFF)
    o = _get64(off, d)
    if _header(h, S_USE_SLICES) == 0 or _get64(off, d + 1) - o != 1:
        return DEAD
    v = _get64(_view(h, D_POOL), o)
    l = v & LOW32
    lex = _view(h, L_ATTR)
    a = _get32(lex, l * L_STRIDE + L_ACC)
    # A greedy lexeme that goes on doesn't end.
    if a >= 0 and _get32(lex, l * L_STRIDE + L_GREEDY) == 0 and _get32(_view(h, A_ATTR), 2 * a) != 0:
        return DEAD
    l = _next_character(h, l)
    if l < 0:
        return l
    r = room_for(h, BUF_CONFIG, 2)
    if r < 0:
        return r
    _put64(_view(h, BUF_CONFIG), 0, (v & ~LOW32) | l)
    return configuration_intern(h, 1)


@far_function
def _is_word_loop(h, d):
    """1 if letters, digits and underscores lead from matcher state ``d`` to itself, 0 if not all do."""
    off = _view(h, D_OFF)
    o = _get64(off, d)
    if _get64(off, d + 1) - o != 1:
        return 0
    l = _get64(_view(h, D_POOL), o) & LOW32
    lex = _view(h, L_ATTR)
    a = _get32(lex, l * L_STRIDE + L_ACC)
    if a >= 0 and _get32(lex, l * L_STRIDE + L_GREEDY) == 0 and _get32(_view(h, A_ATTR), 2 * a) != 0:
        return 0
    key = WORD_KEY | l
    memo = _view(h, VALUE_COST)
    x = slot_of(memo, 3, key)
    if _get64(memo, 3 * x) == key:
        return _get64(memo, 3 * x + 1)
    class_of = _view(h, CLASS_OF)
    is_loop = 1
    for byte in range(128):
        is_letter = 65 <= (byte & 0xDF) <= 90
        if is_letter or 48 <= byte <= 57 or byte == 95:
            s = lexer_step(h, l, _get8(class_of, byte))
            if s <= GROW:
                return s
            if s != l:
                is_loop = 0
                break
    r = _store_value(h, key, is_loop, -1)
    return r if r < 0 else is_loop


@far_function
def _without_text(h, d):
    """Return matcher state ``d`` without the texts of its lexemes so far."""
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    attr = _view(h, L_ATTR)
    values_off = _view(h, L_OFF)
    values = _view(h, L_POOL)
    first = _get64(off, d)
    n = _get64(off, d + 1) - first
    is_changed = False
    for i in range(n):
        l = _get64(pool, first + i) & LOW32
        if _get32(attr, l * L_STRIDE + L_FLAGS) & FLAG_RECORDS:
            is_changed = True
    if not is_changed:
        return d
    r = room_for(h, BUF_CONFIG, 2 * n)
    if r < 0:
        return r
    x = _header(h, S_FRESH) + RECORDER
    for i in range(n):
        v = _get64(pool, first + i)
        l = v & LOW32
        if _get32(attr, l * L_STRIDE + L_FLAGS) & FLAG_RECORDS:
            r = room_for(h, BUF_LEXER, _get64(values_off, l + 1) - _get64(values_off, l))
            if r < 0:
                return r
            m = 0
            for j in range(_get64(values_off, l), _get64(values_off, l + 1)):
                if _get64(values, j) & LOW32 != x:
                    _put64(_view(h, BUF_LEXER), m, _get64(values, j))
                    m += 1
            l = lexer_intern(h, BUF_LEXER, m)
            if l < 0:
                return l
        _put64(_view(h, BUF_CONFIG), i, (v & ~LOW32) | l)
    return configuration_intern(h, n)


@far_function
def _walk_states(h, d):
    """List in BUF_WALK the matcher states one token away from ``d``, each with a token; as `_walk_lexer`.

    Where costs are proven, states whose lexeme is kept stand for all that differ by its text.
    """
    if _header(h, S_IS_PROVEN) != 0:
        d = _without_text(h, d)
        if d < 0:
            return d
    row = _view(h, D_ROW)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    words_below = _view(h, WORDS_BELOW)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    classes = _header(h, S_CLASSES)
    base = _view(h, TRIE_BASE)
    size = _view(h, TRIE_SIZE)
    most = _view(h, BUCKET_MAX)
    top = _header(h, S_LAYERS) - 1
    stamp = next_stamp(h)
    n = 0
    covered = 0
    q = d
    while covered < top - 1:
        q2 = _character_state(h, q)
        if q2 <= GROW:
            return q2
        if q2 < 0:
            break
        is_loop = q2 == q
        token = _layer_token(h, covered, top if is_loop else covered + 1)
        if token >= 0:
            n = _note(h, STATE_KEY | q2, q2, token, stamp, n)
            if n < 0:
                return n
        covered = ALL_CHARACTERS if is_loop else covered + 1
        q = q2
    last = -1
    for k in range(_header(h, S_TRIES)):
        if k > 0 and _get64(most, k - 1) <= covered:
            continue
        i = _get64(base, k)
        end = i + _get64(size, k)
        _put64(stack, 0, d)
        while i < end:
            w = _get64(nodes, i)
            depth = (w >> 8) & 0xFFFF
            above = _get64(stack, depth - 1)
            c = _get8(class_of, w & 255)
            s = _get32(row, above * classes + c)
            if s == UNFILLED:
                s = state_fill(h, above, c)
                if s <= GROW:
                    return s
            if s < 0:
                i += w >> 24
                continue
            _put64(stack, depth, s)
            if s != last:
                t = _get32(node_token, i)
                if t >= 0:
                    n = _note(h, STATE_KEY | s, s, t, stamp, n)
                    if n < 0:
                        return n
                    last = s
            if w >> 24 > FEW_NODES and _get8(words_below, i) != 0:
                r = _is_word_loop(h, s)
                if r < 0:
                    return r
                if r == 1:
                    # Every leaf is a token.
                    if s != last:
                        last = i
                        while _get32(node_token, last) < 0:
                            last += 1
                        n = _note(h, STATE_KEY | s, s, _get32(node_token, last), stamp, n)
                        if n < 0:
                            return n
                        last = s
                    i += w >> 24
                    continue
            i += 1
    return n


@far_function
def _expand(h, d, is_full):
    """List in BUF_STATES the states one token away from ``d``: (state, token, tokens enough, necessary).

    Unless ``is_full`` what is necessary is left 0.
    """
    states = _view(h, BUF_STATES)
    n = _header(h, S_EXPANDED_N)
    if _header(h, S_EXPANDED) != d:
        # A call that begins again, after a table grew, finds the states listed.
        n = _walk_states(h, d)
        if n < 0:
            return n
        _set_header(h, S_EXPANDED, -1)
        r = room_for(h, BUF_STATES, 4 * n)
        if r < 0:
            return r
        # Costs walk too, and need the buffer.
        walk = _view(h, BUF_WALK)
        for i in range(n):
            _put64(states, 4 * i, _get64(walk, 2 * i))
            _put64(states, 4 * i + 1, _get64(walk, 2 * i + 1))
        _set_header(h, S_EXPANDED, d)
        _set_header(h, S_EXPANDED_N, n)
    for i in range(n):
        s = _get64(states, 4 * i)
        c = _cost(h, s)
        if c < 0:
            return c
        _put64(states, 4 * i + 2, c)
        if is_full:
            c = _bound(h, s, 1)
            if c < 0:
                return c
            _put64(states, 4 * i + 3, c)
    return n


@_kernel
def _least_count(h, v):
    """Return a counted value whose least count is met with the least such count; others as they are."""
    x = v & LOW32
    least = _get32(_view(h, COUNT_MIN), x)
    return v if v >> 32 <= least else (least << 32) | x


@_kernel
def _highest_count(h, v):
    """Return a counted value whose least count is met with the highest count that goes on from it."""
    x = v & LOW32
    most = _get32(_view(h, COUNT_MAX), x)
    if most < 0 or v >> 32 < _get32(_view(h, COUNT_MIN), x):
        return v
    return (max(v >> 32, most - 1 + _get32(_view(h, IS_HUB), x)) << 32) | x


@far_function
def _with_least_counts(h, l):
    """Return lexer state ``l`` with `_least_count` of all its values."""
    off = _view(h, L_OFF)
    pool = _view(h, L_POOL)
    positions = _header(h, S_POSITIONS)
    first = _get64(off, l)
    n = _get64(off, l + 1) - first
    is_changed = False
    for i in range(n):
        v = _get64(pool, first + i)
        lone = _lone_literal(h, v)
        if lone >= 0:
            w = _with_least_counts(h, lone)
            if w < 0:
                return w
            is_changed = is_changed or w != lone
        elif v & LOW32 < positions:
            is_changed = is_changed or _least_count(h, v) != v
    if not is_changed:
        return l
    r = room_for(h, BUF_LEXER, n)
    if r < 0:
        return r
    buf = _view(h, BUF_LEXER)
    # The call below uses the buffer for literals: these are interned by now, so it only looks them up.
    for i in range(n):
        v = _get64(pool, first + i)
        lone = _lone_literal(h, v)
        if lone >= 0:
            w = _with_least_counts(h, lone)
            if w < 0:
                return w
            e = _get64(_view(h, EL_POOL), _get64(_view(h, EL_OFF), (v & LOW32) - positions))
            w = make_element(h, e, w << 1)
            if w < 0:
                return w
            v = positions + w
        elif v & LOW32 < positions:
            v = _least_count(h, v)
        _put64(buf, i, v)
    return lexer_intern(h, BUF_LEXER, n)


@far_function
def _ceiling(h, d):
    """Return a cost that matcher state ``d`` doesn't exceed, nor do those like it with higher counts.

    With a higher count some ways may be missing, so the dearest of all counts, each with its highest count.
    """
    off = _view(h, D_OFF)
    pool = _view(h, D_POOL)
    l_off = _view(h, L_OFF)
    l_pool = _view(h, L_POOL)
    positions = _header(h, S_POSITIONS)
    most = 0
    for i in range(_get64(off, d), _get64(off, d + 1)):
        p = _get64(pool, i) >> 32
        l = _get64(pool, i) & LOW32
        for j in range(_get64(l_off, l), _get64(l_off, l + 1)):
            v = _get64(l_pool, j)
            t = terminal_of(h, v)
            if t < 0:
                continue
            rest = _after_terminal(h, p, t, 0)
            if rest < 0:
                return rest
            lone = _lone_literal(h, v)
            first = j
            last = j + 1
            if lone >= 0:
                first = _get64(l_off, lone)
                last = _get64(l_off, lone + 1)
            for q in range(first, last):
                v = _get64(l_pool, q)
                if v & LOW32 < positions:
                    v = _highest_count(h, v)
                u = _value_cost(h, v, 0)
                if u < 0:
                    return u
                most = max(most, u + rest)
    return INFINITE if most >= INFINITE else min(most, HUGE)


@far_function
def _ceiling_after(h, d):
    """Return what no cost one token away from ``d`` exceeds, whatever the counts above the least; remembered."""
    key = RUN_KEY | STATE_KEY | d
    memo = _view(h, VALUE_COST)
    s = slot_of(memo, 3, key)
    if _get64(memo, 3 * s) == key:
        return _get64(memo, 3 * s + 1)
    n = _walk_states(h, d)
    if n < 0:
        return n
    _set_header(h, S_EXPANDED, -1)
    r = room_for(h, BUF_STATES, n)
    if r < 0:
        return r
    walk = _view(h, BUF_WALK)
    states = _view(h, BUF_STATES)
    for i in range(n):
        _put64(states, i, _get64(walk, 2 * i))
    most = 0
    for i in range(n):
        c = _ceiling(h, _get64(states, i))
        if c < 0:
            return c
        most = max(most, c)
    r = _store_value(h, key, most, -1)
    return r if r < 0 else most


@far_function
def _with_least_state(h, d):
    """Return matcher state ``d`` with least counts in its only configuration; ``d`` if nothing changes."""
    off = _view(h, D_OFF)
    o = _get64(off, d)
    if _get64(off, d + 1) - o != 1 or _header(h, S_IS_PROVEN) == 0:
        return d
    v = _get64(_view(h, D_POOL), o)
    l = _with_least_counts(h, v & LOW32)
    if l < 0 or l == v & LOW32:
        return l if l < 0 else d
    r = room_for(h, BUF_CONFIG, 2)
    if r < 0:
        return r
    _put64(_view(h, BUF_CONFIG), 0, (v & ~LOW32) | l)
    return configuration_intern(h, 1)


@far_function
def _largest_after(h, d, is_exact):
    """Return the largest cost one token away from ``d``, or, unless ``is_exact``, more; 0 if nothing is.

    Remembered in D_ATTR as ``(cost << 1 | is exact) + 1``. States that differ by counts above the least share
    what isn't exact.
    """
    attr = _view(h, D_ATTR)
    known = _get32(attr, 4 * d + 2)
    if known != 0 and (known - 1) & 1 >= is_exact:
        return (known - 1) >> 1
    if is_exact == 0:
        like = _with_least_state(h, d)
        if like < 0:
            return like
        if like != d:
            most = _ceiling_after(h, like)
            if most >= 0:
                _put32(attr, 4 * d + 2, (most << 1) + 1)
            return most
    n = _expand(h, d, 0)
    if n < 0:
        return n
    states = _view(h, BUF_STATES)
    most = 0
    for i in range(n):
        most = max(most, _get64(states, 4 * i + 2))
    _put32(attr, 4 * d + 2, ((most << 1) | 1) + 1)
    return most


@_kernel
def _clear_layer(h, out, low, high):
    """Clear the bits of layer ``high`` that are not in layer ``low``; 1 if any was set."""
    words = _header(h, S_WORDS)
    layers = _view(h, LAYERS)
    cleared = 0
    for k in range(words):
        w = _get32(layers, high * words + k) & ~_get32(layers, low * words + k)
        x = _get32(out, k)
        cleared |= x & w
        _put32(out, k, x & ~w)
    return 1 if cleared != 0 else 0


@far_function
def _restrict(h, d, address, limit):
    """Clear the bits of the mask of ``d`` at ``address`` after which more than ``limit`` tokens are needed.

    Returns 1 if any was cleared, else 0. All states met here were met before, by `_largest_after`, so that
    nothing grows once bits are cleared.
    """
    most = _largest_after(h, d, 0)
    if most > limit:
        most = _largest_after(h, d, 1)
    if most <= limit:
        return min(0, most)
    if _header(h, S_IS_PROVEN) != 0:
        d = _without_text(h, d)
        if d < 0:
            return d
    out = (address, _header(h, S_WORDS))
    row = _view(h, D_ROW)
    attr = _view(h, D_ATTR)
    nodes = _view(h, NODES)
    node_token = _view(h, NODE_TOKEN)
    words_below = _view(h, WORDS_BELOW)
    class_of = _view(h, CLASS_OF)
    stack = scratch_of(h, X_STACK)
    classes = _header(h, S_CLASSES)
    base = _view(h, TRIE_BASE)
    size = _view(h, TRIE_SIZE)
    most_characters = _view(h, BUCKET_MAX)
    top = _header(h, S_LAYERS) - 1
    cleared = 0
    covered = 0
    q = d
    while covered < top - 1:
        q2 = _character_state(h, q)
        if q2 <= GROW:
            return q2
        if q2 < 0:
            break
        is_loop = q2 == q
        if (_get32(attr, 4 * q2 + 3) - 1) >> 1 > limit:
            cleared |= _clear_layer(h, out, covered, top if is_loop else covered + 1)
        covered = ALL_CHARACTERS if is_loop else covered + 1
        q = q2
    for k in range(_header(h, S_TRIES)):
        if k > 0 and _get64(most_characters, k - 1) <= covered:
            continue
        i = _get64(base, k)
        end = i + _get64(size, k)
        _put64(stack, 0, d)
        while i < end:
            w = _get64(nodes, i)
            depth = (w >> 8) & 0xFFFF
            s = _get32(row, _get64(stack, depth - 1) * classes + _get8(class_of, w & 255))
            if s < 0:
                i += w >> 24
                continue
            _put64(stack, depth, s)
            t = _get32(node_token, i)
            if w >> 24 > FEW_NODES and _get8(words_below, i) != 0 and _is_word_loop(h, s) == 1:
                if (_get32(attr, 4 * s + 3) - 1) >> 1 <= limit:
                    i += w >> 24
                    continue
                # The row of such a state need not be filled.
                end_below = i + (w >> 24)
                while i < end_below:
                    t = _get32(node_token, i)
                    if t >= 0:
                        x = _get32(out, t >> 5)
                        bit = 1 << (t & 31)
                        if x & bit:
                            cleared = 1
                            _put32(out, t >> 5, x & ~bit)
                    i += 1
                continue
            if t >= 0 and (_get32(attr, 4 * s + 3) - 1) >> 1 > limit:
                x = _get32(out, t >> 5)
                bit = 1 << (t & 31)
                if x & bit:
                    cleared = 1
                    _put32(out, t >> 5, x & ~bit)
            i += 1
    same = _view(h, DUPLICATES)
    for i in range(_header(h, USED + DUPLICATES)):
        t = _get32(same, 2 * i)
        if (_get32(out, t >> 5) >> (t & 31)) & 1 == 0:
            t = _get32(same, 2 * i + 1)
            _put32(out, t >> 5, _get32(out, t >> 5) & ~(1 << (t & 31)))
    return cleared


@_kernel
def _store_cost(h, d, cost, is_exact):
    """Lower the cost of matcher state ``d``; note that no fewer tokens are enough."""
    attr = _view(h, D_ATTR)
    known = _get32(attr, 4 * d + 3)
    if known != 0:
        is_exact |= (known - 1) & 1
        cost = min(cost, (known - 1) >> 1)
    _put32(attr, 4 * d + 3, ((cost << 1) | is_exact) + 1)
    return 0


@_quick
def cost_quick(h, d):
    """Cost of matcher state ``d`` as `_cost` keeps it, less one; -1 if it is not known yet."""
    return _get32(_view(h, D_ATTR), 4 * d + 3) - 1


@_quick
def fits_quick(h, d, limit):
    """1 if no token after matcher state ``d`` is known to need more than ``limit`` tokens, 0 if that is not known."""
    known = _get32(_view(h, D_ATTR), 4 * d + 2)
    return 1 if known != 0 and (known - 1) >> 1 <= limit else 0


@_entry_point
def run_costs(op, h, a, b, c, d):
    """Run one operation on costs; `run` says how."""
    if op == OP_COST:
        r = _cost(h, a)
        return r if r < 0 else _get32(_view(h, D_ATTR), 4 * a + 3) - 1
    if op == OP_BOUND:
        return _bound(h, a, b)
    if op == OP_EXPAND:
        return _expand(h, a, 1)
    if op == OP_SUCCESSORS:
        return _walk_states(h, a)
    if op == OP_RESTRICT:
        return _restrict(h, a, b, c)
    if op == OP_STORE_COST:
        return _store_cost(h, a, b, c)
    if op == OP_ENTRY_COST:
        return _entry_cost(h, a)
    if op == OP_START_STATE:
        return _start_state(h, a)
    if op == OP_STATE_VALUE:
        return _state_value(h, a, b)
    if op == OP_INNER_STATES:
        return _inner_states(h, a, 1)
    return _walk_lexer(h, a)
