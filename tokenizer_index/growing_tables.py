"""The tables of an arena that grow: their first sizes, and the block in which a new arena allocates them."""

from __future__ import annotations

import numpy as np

from constrain.tokenizer_index import layout as k

SETS = (
    *(k.L_OFF, k.EL_OFF, k.A_OFF, k.P_OFF, k.TP_OFF, k.Q_OFF, k.C_OFF, k.VAL_OFF, k.DOT_OFF, k.D_OFF),
    *(k.T_OFF, k.V_OFF, k.TX_OFF, k.XS_OFF, k.WP_OFF),
)
MEMOS = {
    k.STEP: 3,
    k.TSTEP: 2,
    k.ENTRY: 2,
    k.VISIT: 2,
    k.OPEN: 1,
    k.VALUE_COST: 3,
    k.AFTER_RULE: 2,
    k.AFTER_TERMINAL: 2,
    k.SEEN: 2,
}
INT32 = frozenset(
    {
        k.L_ROW,
        k.L_ATTR,
        k.A_ATTR,
        k.P_ATTR,
        k.Q_LEX,
        k.D_ROW,
        k.D_ATTR,
        k.TOKENS,
        k.E_MASK,
        k.V_ATTR,
        k.MASKS,
        k.MASK_OWNER,
        k.SLICE_POOL,
        *(t + 2 for t in SETS),
    }
)
# Tables that grow, with their first capacity in items; rows of classes or words are sized apart.
FIRST: dict[int, int] = {
    k.L_OFF: 512,
    k.L_POOL: 2048,
    k.L_HASH: 1024,
    k.L_ATTR: 512 * k.L_STRIDE,
    k.EL_OFF: 128,
    k.EL_POOL: 512,
    k.EL_HASH: 256,
    k.EL_ATTR: 384,
    k.A_OFF: 64,
    k.A_POOL: 128,
    k.A_HASH: 128,
    k.A_ATTR: 128,
    k.P_OFF: 256,
    k.P_POOL: 1024,
    k.P_HASH: 512,
    k.P_ATTR: 256 * k.P_STRIDE,
    k.TP_OFF: 128,
    k.TP_POOL: 512,
    k.TP_HASH: 256,
    k.PX_OFF: 128,
    k.PX_POOL: 512,
    k.PT_OFF: 128,
    k.PT_POOL: 1024,
    k.Q_OFF: 256,
    k.Q_POOL: 1024,
    k.Q_HASH: 512,
    k.Q_LEX: 256,
    k.C_OFF: 16,
    k.C_POOL: 32,
    k.C_HASH: 32,
    k.TX_OFF: 16,
    k.TX_POOL: 32,
    k.TX_HASH: 32,
    k.XS_OFF: 16,
    k.XS_POOL: 32,
    k.XS_HASH: 32,
    k.WP_OFF: 16,
    k.WP_POOL: 32,
    k.WP_HASH: 32,
    k.VAL_OFF: 16,
    k.VAL_POOL: 32,
    k.VAL_HASH: 32,
    k.DOT_OFF: 16,
    k.DOT_POOL: 32,
    k.DOT_HASH: 32,
    k.STEP: 3 * 512,
    k.TO_POOL: 256,
    k.TSTEP: 2 * 512,
    k.D_OFF: 512,
    k.D_POOL: 512,
    k.D_HASH: 1024,
    k.D_ATTR: 2048,
    k.T_OFF: 256,
    k.T_POOL: 8192,
    k.T_HASH: 512,
    k.T_SIZE: 256,
    k.ENTRY: 2 * 1024,
    k.E_ATTR: 256 * k.E_STRIDE,
    k.TOKENS: 16384,
    k.GROUPS: 1024,
    k.E_MASK: 0,
    k.V_OFF: 256,
    k.V_POOL: 1024,
    k.V_HASH: 512,
    k.V_ATTR: 512,
    k.VISIT: 2 * 512,
    k.OPEN: 64,
    k.OPEN_SLOTS: 64,
    k.MASKS: 0,
    k.MASK_OWNER: 64,
    k.SLICE_POOL: 256,
    k.BUF_ACCEPT: 64,
    k.BUF_PLAIN: 64,
    k.BUF_LEXER: 128,
    k.BUF_ELEMENT: 16,
    k.BUF_SEARCH: 64,
    k.BUF_STACK: 256,
    k.BUF_ITEMS: 128,
    k.BUF_SEEN: 0,
    k.BUF_KERNEL: 128,
    k.BUF_CONFIG: 32,
    k.BUF_NODES: 2048,
    k.BUF_CHARS: 1024,
    k.BUF_SPLIT: 64,
    k.BUF_VALUE: 16,
    k.BUF_TEXT: 16,
    k.RESULT: 512,
    k.PATH: 64,
}
OFFSET_TABLES = (*SETS, k.PX_OFF, k.PT_OFF)
FILLED = frozenset({*(t + 2 for t in SETS), *MEMOS})


class BlockLayout:
    """Where each growing table starts in the block a new arena allocates; filled tables come first."""

    def __init__(self) -> None:
        order = sorted(FIRST, key=lambda table: table not in FILLED)
        self.place: dict[int, tuple[int, int]] = {}
        words = 0
        self.n_filled = 0
        for table in order:
            size = FIRST[table]
            self.place[table] = (words, size)
            words += size // 2 if table in INT32 else size
            if table in FILLED:
                self.n_filled = words
        self.n_words = words
        self.tables = np.array(order)
        self.offsets = np.array([8 * self.place[table][0] for table in order])
        self.sizes = np.array([FIRST[table] for table in order])
        self.first_offsets = np.array([self.place[table][0] for table in OFFSET_TABLES])


BLOCK = BlockLayout()
