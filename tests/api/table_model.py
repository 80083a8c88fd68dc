"""A model without a network: its rows are a fixed function of the token ids before them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import constrain

Row = Callable[[Sequence[int]], np.ndarray]


def random_row(size: int, spread: float = 2.0) -> Row:
    """Rows that look random and depend on all ids before them, the same in every process."""

    def row(ids: Sequence[int]) -> np.ndarray:
        seed = zlib.crc32(np.asarray(ids, np.int64).tobytes())
        return np.random.default_rng(seed).normal(0.0, spread, size).astype(np.float32)

    return row


@dataclass
class TableSession:
    """A session that remembers ids and looks every row up anew."""

    model: TableModel
    rows: list[list[int]]

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def append(self, token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        assert len(token_ids) == len(self.rows)
        self.model.calls.append([len(ids) for ids in token_ids])
        blocks = []
        for row, ids in zip(self.rows, token_ids, strict=True):
            lines = [self.model.row([*row, *ids[: place + 1]]) for place in range(len(ids))]
            row += ids
            blocks.append(np.array(lines, np.float32).reshape(len(ids), self.model.vocabulary.size))
        return blocks

    def select(self, rows: Sequence[int]) -> None:
        self.rows = [list(self.rows[place]) for place in rows]

    def truncate(self, counts: Sequence[int]) -> None:
        assert all(0 <= count < len(row) for row, count in zip(self.rows, counts, strict=True))
        self.rows = [row[: len(row) - count] for row, count in zip(self.rows, counts, strict=True)]


@dataclass
class TableModel:
    """A ``LogitsBackend`` over given tokens; the last token ends a text.

    Parameters
    ----------
    tokens : list of bytes
        The end token is added after them.
    row : callable
        From the ids of prompt and output to the logits of the next token.
    """

    tokens: list[bytes]
    row: Row | None = None
    context_length: int | None = None
    has_chat_template: bool = False
    calls: list[list[int]] = field(default_factory=list)
    """Numbers of tokens appended in each call."""

    def __post_init__(self) -> None:
        self.eos = len(self.tokens)
        self.vocabulary = constrain.Vocabulary.from_tokens([*self.tokens, None], eos_token_ids=[self.eos])
        self.row = self.row or random_row(self.eos + 1)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """The longest token at each place."""
        data, ids = text.encode(), []
        while data:
            found = max((token for token in self.tokens if data.startswith(token)), key=len)
            ids.append(self.tokens.index(found))
            data = data[len(found) :]
        return ids

    def encode_chat(self, messages: Sequence[Any]) -> list[int]:
        return self.encode("".join(message["content"] for message in messages))

    def start(self, prompts: Sequence[Sequence[int]]) -> tuple[TableSession, np.ndarray]:
        assert all(prompts)
        self.calls.append([len(prompt) for prompt in prompts])
        session = TableSession(self, [list(prompt) for prompt in prompts])
        return session, np.array([self.row(prompt) for prompt in prompts], np.float32)
