"""The layout of an arena's header and tables, shared by the kernels and the Python that calls them.

A header is an int64 array of three rows of ``N_TABLES`` columns (address, capacity in items, items in use) and
then scalars. Everything here is a number, so importing this costs nothing.
"""

from __future__ import annotations

import os

IS_CHECKED = os.environ.get("CONSTRAIN_CHECK_KERNELS") == "1"
"""Check every table access (a debugging build of the kernels)."""

# ------------------------------------------------------------------------------------------ codes

DEAD, UNFILLED = -1, -2
BLOCKED = -3
"""A lexer's row: nothing is alive, but no lexeme ends here either: a newline would go on, or a byte may not follow."""
GROW, TICK, LIMIT, SEARCH, FAULT = -10, -11, -12, -13, -99

LOW32 = 0xFFFFFFFF
LOW40 = 0xFFFFFFFFFF

# ------------------------------------------------------------------------------------------ tables
# Interned sets occupy three tables in a row: offsets, pool, hash.

(
    CLASS_OF,  # u8 (256,) byte -> class
    CLASS_BYTE,  # i32 (n_classes,) the byte of a class that holds one byte, else -1
    EDGE_OFF,
    EDGE_LOW,  # classes
    EDGE_HIGH,
    EDGE_TARGET,
    EDGE_GUARD,
    EDGE_ACTION,
    ACCEPT,
    IS_HUB,
    COUNT_MIN,
    COUNT_MAX,
    DISTANCE,
    POSITION_TERMINAL,
    START_OFF,
    START_POOL,  # i64 lexer values
    PRIORITY,
    GREEDY,
    IGNORED,
    HAS_FOLLOW,  # something may come after the terminal
    IGNORED_LIST,
    BARRED_ROW,  # the row of an ignored terminal in BARRED, or -1
    BARRED,  # i32 (n, n_terminals): can't follow it
    TERM_OFF,
    TERM_SYMBOL,
    TERM_TARGET,
    RULE_OFF,
    RULE_SYMBOL,
    RULE_TARGET,
    IS_FINAL,
    RULE_OF,
    RULE_START,
    RULE_INSIDE,  # the rule stands between brackets
    LINE_FLAGS,  # of positions of the newline terminal
    TERM_ACTION,
    TERM_BEHIND,  # targets of the network's own edges, where a parameter gives others to their source
    RULE_ACTION,
    RULE_BEHIND,
    VALUE_OF,  # the parameter of a dotted state, or -1
    PARAMETER,  # i64 (n, parameters.COLUMNS)
    ELEMENTS,  # i64 sets of elements
    RECORDED,  # lexemes of the terminal must differ in some places; 2: and it has more than any text can hold
    L_OFF,
    L_POOL,
    L_HASH,
    L_ROW,  # i32 (n, n_classes)
    L_ATTR,  # i32 (n, L_STRIDE)
    EL_OFF,
    EL_POOL,
    EL_HASH,
    EL_ATTR,  # i64 (n, 3) live, parent, stamp
    A_OFF,
    A_POOL,
    A_HASH,
    A_ATTR,  # i32 (n, 2) has follow, unused
    P_OFF,
    P_POOL,
    P_HASH,
    P_ATTR,  # i32 (n, P_STRIDE)
    TP_OFF,
    TP_POOL,
    TP_HASH,
    PX_OFF,  # predicted edges on rules, per template
    PX_POOL,
    PT_OFF,  # predicted edges on terminals, per template
    PT_POOL,
    STEP,  # i64 (slots, 3) memo (p, a) -> p', origins reached
    TO_POOL,
    Q_OFF,  # situations: template, flags, start lexer state if it depends on more
    Q_POOL,
    Q_HASH,
    Q_LEX,  # i32 (n,) start lexer state
    TSTEP,  # i64 (slots, 2) memo (situation, a) -> situation
    C_OFF,  # contexts: the one around, width
    C_POOL,
    C_HASH,
    TX_OFF,  # texts: the text without its last byte, that byte
    TX_POOL,
    TX_HASH,
    XS_OFF,  # sets of texts
    XS_POOL,
    XS_HASH,
    WP_OFF,  # a text and how much of it is read
    WP_POOL,
    WP_HASH,
    VAL_OFF,  # values: parameter, how many elements, set of texts, which elements
    VAL_POOL,
    VAL_HASH,
    DOT_OFF,  # dotted states with a value: the network's dotted state, the value
    DOT_POOL,
    DOT_HASH,
    D_OFF,
    D_POOL,
    D_HASH,
    D_ROW,  # i32 (n, n_classes)
    D_ATTR,  # i32 (n, 4) entry list, accepting
    T_OFF,
    T_POOL,
    T_HASH,
    T_SIZE,  # i64 (n,) nodes below, twice shifted; 1 where none is below another, 2 where one is, else unknown
    ENTRY,  # i64 (slots, 2) memo (T, l) -> entry
    E_ATTR,  # i64 (n, 8)
    TOKENS,  # i32 tokens of sparse entries
    GROUPS,  # i64 (n, 2) accept set, node set
    E_MASK,  # i32 (n, n_words) dense entries
    V_OFF,  # entry lists
    V_POOL,
    V_HASH,
    V_ATTR,  # i32 (n, 2) slot of the remembered mask, cost
    VISIT,  # i64 (slots, 2) memo (T, situation) -> entry list
    OPEN,  # i64 (slots, 1) visits of this mask that were open
    OPEN_SLOTS,
    MASKS,  # i32 (n, n_words) remembered masks
    MASK_OWNER,  # i32 (n, 2) entry list, recently used
    SLICE_POOL,  # i32 lexer states after one character of the slice
    BUF_ACCEPT,
    BUF_PLAIN,
    BUF_LEXER,
    BUF_ELEMENT,
    BUF_SEARCH,
    BUF_STACK,
    BUF_ITEMS,
    BUF_SEEN,  # i64 slots: which of BUF_ITEMS, or -1
    BUF_KERNEL,
    BUF_CONFIG,
    BUF_NODES,
    BUF_CHARS,
    BUF_SPLIT,
    BUF_VALUE,
    BUF_TEXT,
    BUF_PRICE,  # of elements
    RESULT,  # entries of the visit in progress
    PATH,
    RULE_MARK,
    TERM_MARK,
    NODES,
    NODE_TOKEN,
    TRIE_BASE,
    TRIE_SIZE,
    BUCKET_MAX,
    SLICE_ROW,  # i32 (n_slice_states, n_classes)
    SLICE_ACCEPT,
    LAYERS,  # i32 (n_layers, n_words)
    TOKEN_OFF,
    TOKEN_DATA,
    DUPLICATES,
    EOS,
    VALUE_COST,  # i64 (slots, 3) memo (lexer value, kind) -> tokens to the end of its lexeme, the first of them
    TERM_COST,  # i64 (2, n_terminals) by kind
    RULE_COST,  # i64 (n_dotted, 2) by kind
    AFTER_RULE,  # i64 (slots, 2) memo (parser state, rule, kind) -> tokens
    AFTER_TERMINAL,  # i64 (slots, 2) memo (parser state, terminal, kind) -> tokens
    SEEN,  # i64 (slots, 2) states of a walk -> stamp
    BUF_WALK,  # (n, 2) states one token away, a token
    BUF_NODE,  # (n, 5) nodes of a search
    BUF_STATES,
    BUF_PROOF,
    RUNS,  # i64 (n, 3, RUN_SPAN + 1) how tokens add rounds to a counted repeat
    PARENT,  # i32 (n_nodes,) node above, or -1
    INNER_NODES,  # i32 nodes below the first level, by byte
    INNER_OFF,
    MAY_END,  # i32 (256,)
    IS_BLANK,  # i32 (256,)
    GAP,  # i64 (n_terminals, 2) more tokens that begin after a terminal: if it ends with a token, in any case
    SEPARATORS,  # i64 bytes that are an ignored lexeme by themselves, the most usual first
    WORDS_BELOW,  # u8 (n_nodes,) whether all below a trie node are letters and digits
    N_TABLES,
) = range(167)

# Scratch, lent by the vocabulary for one call: (address, capacity) pairs at the address in S_SCRATCH.
(X_STACK, X_EXITS, X_MERGE, X_TOKENS, X_MARK, N_SCRATCH) = range(6)

CAPACITY, USED, SCALARS = N_TABLES, 2 * N_TABLES, 3 * N_TABLES
(
    S_CLASSES,
    S_WORDS,
    S_POSITIONS,
    S_TRIES,
    S_SLICE_STATES,
    S_LAYERS,
    S_LONGEST,
    S_TERMINALS,
    S_FRESH,
    S_LEADING,
    S_TRAILING,
    S_IGNORED_MOST,  # ignored lexemes in a row
    S_IGNORED_STEP,  # what one counts: 0 where there is no limit
    S_START_NULLABLE,
    S_STARTS,  # dotted states that start the text: alternatives that are read apart
    S_GROW_TABLE,
    S_GROW_NEED,
    S_LIMIT,
    S_WORK,
    S_WORK_LIMIT,
    S_STAMP,
    S_LIVENESS,
    S_LEXER_STATES,
    S_MASK_SLOTS,
    S_MASK_HAND,
    S_MARK,
    S_USE_MEMO,
    S_USE_VISITS,
    S_USE_SLICES,
    S_USE_SPLIT,
    S_USE_CANON,
    S_SPARSE,
    S_SPLIT_SIZE,
    S_REACHED,
    S_SEEN,  # slots of BUF_SEEN in use
    S_SCRATCH,
    S_PREFIX,
    S_RULES_DONE,
    S_IS_PROVEN,  # bounds by lexemes can be kept as they are
    S_BEST,
    S_BEST_NODE,
    S_BEST_TOKEN,
    S_FLOOR,
    S_WAY,
    S_STUCK,
    S_BETWEEN,
    S_EXPANDED,  # the state whose successors BUF_STATES lists, and how many they are
    S_EXPANDED_N,
    S_NEWLINE,  # -1 where indentation doesn't count
    S_INDENT,
    S_DEDENT,
    S_INNER_NEWLINE,
    S_LINE,  # newlines before lines of each width are terminals from here on, then those of mode SAME
    S_TAB,
    S_SPANNING,  # a newline behind another is part of it
    S_AFTER_NEWLINE,  # accept sets of one terminal
    S_AFTER_INDENT,
    S_AFTER_DEDENT,
    S_BLOCKED,
    S_DOTTED,  # dotted states of the network; those with a value follow
    S_TEXT,  # accept sets with a text hold it as a terminal from here on
    S_VISITED,  # the matcher state whose mask is put together
    S_NEXT,  # two bytes that may follow in an excluded text, or -1
    S_NEXT_OTHER,
    S_WALK_KEY,  # of the walk whose tokens and exits are in scratch, or 0; a call that begins again finds them there
    S_WALK_TOKENS,
    S_WALK_EXITS,
    S_FAR,  # addresses of the far functions from here on
) = range(SCALARS, SCALARS + 68)
MAX_FAR = 96
HEADER_SIZE = S_FAR + MAX_FAR

L_STRIDE = 9
L_ACC, L_GREEDY, L_PURE, L_CANON, L_DIST, L_CHARS, L_CHARS_OFF, L_FLAGS, L_MODEL = range(9)
FLAG_FRESH, FLAG_ELEMENTS, FLAG_RECORDS = 1, 2, 4
E_STRIDE = 8
E_KIND, E_TOK_OFF, E_TOK_N, E_DENSE, E_GROUP_OFF, E_GROUP_N, E_STAMP, E_COST = range(8)
SPARSE, DENSE, LAYER = 0, 1, 2
FEW_ITEMS = 32
"""Fewer items of a parser state in the making are not hashed."""
# A parser state's flags are P_ACCEPTING and, above it, the number of ignored lexemes since the last real one.
P_ACCEPTING, P_IGNORED = 1, 1
# In IGNORED: an ignored terminal that is never the last of as many as are allowed in a row.
IGNORED_OPEN = 2
# Of a parser state: its situation is unfilled until its start lexer state is known, where that depends on the
# blocks that are open (P_LINE).
P_STRIDE = 6
P_TEMPLATE, P_FLAGS, P_BASE, P_SITUATION, P_CONTEXT, P_LINE = range(6)

# Newline lexemes (``newline``): actions of edges, flags of positions, modes of values.
IS_LINE = 2
"""In place of "is a hub": a position of the newline terminal."""
IS_WORD = 3
"""The position of texts that are excluded; the count says which, and how much is read."""
FRESH, RECORDER, WORD, N_MARKS = range(4)
"""Positions behind those of the network: nothing read yet; the count is the text so far; an excluded text."""
LINE_ZERO, LINE_BLANK, LINE_TAB = -3, -4, -5
TAIL, RESET, SAME_END = 1, 2, 4
EXACT, WIDER, SAME = 1, 2, 3
MODE_SHIFT, TARGET_SHIFT, TOO_WIDE = 26, 13, (1 << 13) - 1
"""A line may be indented by fewer than TOO_WIDE columns."""
WIDE_LINE = 64
"""What a newline may cost is reckoned with so many columns."""

# Limits that a kernel can run into; the numbers go to S_LIMIT.
LIMIT_LIVENESS, LIMIT_LEXER_STATES = 1, 2

# ------------------------------------------------------------------------------------------ operations

(
    OP_ADVANCE_TOKEN,
    OP_FILL_MASK,
    OP_ACCEPTING,
    OP_START,
    OP_ADVANCE_BYTES,
    OP_LIVE_CLASSES,
    OP_FORCED_BYTES,
    OP_SET_STARTS,
    OP_MAKE_LEXER,
) = range(9)

# ------------------------------------------------------------------------------------------ costs

INFINITE = 1 << 29
"""There is no way."""
HUGE = 1 << 28
"""Costs are cut here."""
BEAM, PATIENCE = 4, 32
"""Nodes of each level that a search of a lexeme's cost expands, and how many before it hurries."""
NEAR, RUN_SPAN = 8, 256
"""Counts farther below their least are stepped over; runs are tabulated up to so many rounds."""
VALUE_KEY, STATE_KEY, RUN_KEY = 1 << 62, 1 << 61, 1 << 62
WORD_KEY = RUN_KEY | 1 << 60
FEW_NODES = 3
"""So small a part of the trie is walked without asking what it holds."""
ALL_CHARACTERS = 1 << 62

(
    OP_COST,
    OP_BOUND,
    OP_EXPAND,
    OP_SUCCESSORS,
    OP_RESTRICT,
    OP_STORE_COST,
    OP_ENTRY_COST,
    OP_START_STATE,
    OP_STATE_VALUE,
    OP_INNER_STATES,
    OP_WALK_LEXER,
) = range(11)

# ------------------------------------------------------------------------------------------ lexeme walks
# The header of a walk (`lexeme_product`): two columns (address, capacity) for each table, then scalars.

(
    W_EDGES,  # i32 (n_edges, 5) of all terminals, as in fragments
    W_EDGE_OFF,
    W_POSITIONS,  # i32 (n_positions, 6), as in fragments
    W_LITERAL,  # i32 (n_positions,) the literal a position belongs to
    W_TERMINAL_OF,  # i32 (n_literals,)
    W_NEGATIVE,  # i32 (n_literals,)
    W_POSITIVE,  # i32 (n_terminals,) positive literals of a terminal
    W_PRIORITY,
    W_GREEDY,
    W_OFF,  # i64 (most + 3,) states: 0 is the start
    W_POOL,  # i32 positions
    W_HASH,  # i32
    W_MASK,  # i64 (most + 2, 4) bytes read in a state
    W_FLAGS,  # i32 (most + 2,)
    W_TO_OFF,  # i64 (most + 3,)
    W_TO,  # i32 states reached
    W_STAMP_POSITION,  # i64
    W_STAMP_LITERAL,  # i64
    W_STAMP_TERMINAL,  # i64
    W_STAMP_STATE,  # i64
    W_COUNT,  # i32 (n_terminals,) positive literals met
    W_FIRST,  # i32 (256,) the first edge in W_NEXT that begins with a byte
    W_NEXT,  # i32
    W_EDGE,  # i32
    W_ACTIVE,  # i32
    W_CELL,  # i32
    N_WALK_TABLES,
) = range(27)

(
    W_TERMINAL,
    W_COMPANION,
    W_MOST,
    W_DONE,  # states whose edges are known
    W_N,
    W_N_TO,
    W_STAMP,
    W_WORK_LIMIT,
    W_NEED_TABLE,
    W_NEED,
    WALK_SIZE,
) = range(2 * N_WALK_TABLES, 2 * N_WALK_TABLES + 11)

# Flags of a state: the terminal walked for may end; a greedy one of its priority may; one of higher priority may; the
# companion is read.
ENDS, ENDS_GREEDY, ENDS_ABOVE, HAS_COMPANION = 1, 2, 4, 8
