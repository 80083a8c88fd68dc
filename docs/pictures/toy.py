"""A model of a dozen words, small enough to compute everything exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import constrain

WORDS = ["sunny", "rainy", "foggy", " today", " now", " forever", "clouds", "blue", "?", ":"]
END = len(WORDS)
SPEC = constrain.regex("(sunny|rainy|foggy) (today|now)")
MEMBERS = [first + second for first in WORDS[:3] for second in WORDS[3:5]]

# How the model goes on after each word. It likes "sunny" best, and after it nearly always says " forever".
AFTER: dict[str, dict[str, float]] = {
    ":": {"sunny": 0.60, "rainy": 0.30, "foggy": 0.10},
    "clouds": {"sunny": 0.10, "rainy": 0.70, "foggy": 0.20},
    "blue": {"sunny": 0.85, "rainy": 0.10, "foggy": 0.05},
    "?": {"clouds": 0.40, "blue": 0.60},
    "sunny": {" today": 0.08, " now": 0.02, " forever": 0.90},
    "rainy": {" today": 0.50, " now": 0.30, " forever": 0.20},
    "foggy": {" today": 0.20, " now": 0.50, " forever": 0.30},
}


class ToySession:
    """Remembers the last word of each row."""

    def __init__(self, rows: list[list[int]], model: ToyModel) -> None:
        self.rows, self.model = rows, model

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def append(self, token_ids: Sequence[Sequence[int]]) -> list[np.ndarray]:
        self.model.calls += 1
        for row, more in zip(self.rows, token_ids, strict=True):
            row += more
        lines = [np.array([self.model.row(token) for token in more]) for more in token_ids]
        return [line.reshape(-1, END + 1).astype(np.float32) for line in lines]

    def select(self, rows: Sequence[int]) -> None:
        self.rows = [list(self.rows[place]) for place in rows]

    def truncate(self, counts: Sequence[int]) -> None:
        self.rows = [row[: len(row) - count] for row, count in zip(self.rows, counts, strict=True)]


class ToyModel:
    """The model: rows of `AFTER`, and the end after all other words.

    Parameters
    ----------
    sharpness : float
        The rows' probabilities to this power, renormalised: another one than 1 is another model.
    """

    has_chat_template = False
    context_length = None

    def __init__(self, sharpness: float = 1.0) -> None:
        self.sharpness = sharpness
        self.vocabulary = constrain.Vocabulary.from_tokens(
            [*(word.encode() for word in WORDS), None], eos_token_ids=[END]
        )
        self.calls = 0

    def row(self, token: int) -> np.ndarray:
        """Log probabilities after a token, not normalised, (vocab_size,)."""
        scores = np.full(END + 1, -math.inf)
        after = AFTER.get(WORDS[token]) if token < END else None
        for word, p in (after or {}).items():
            scores[WORDS.index(word)] = self.sharpness * math.log(p)
        scores[END] = -math.inf if after else 0.0
        return scores

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Tokens of a text of words."""
        return list(self._encode(text))

    def _encode(self, text: str) -> Iterator[int]:
        while text:
            word = max((word for word in WORDS if text.startswith(word)), key=len)
            yield WORDS.index(word)
            text = text[len(word) :]

    def encode_chat(self, messages: Sequence[Any]) -> list[int]:
        raise NotImplementedError("the toy takes text")

    def start(self, prompts: Sequence[Sequence[int]]) -> tuple[ToySession, np.ndarray]:
        """Read prompts."""
        self.calls += 1
        session = ToySession([list(prompt) for prompt in prompts], self)
        return session, np.array([self.row(prompt[-1]) for prompt in prompts], np.float32)


def probability(text: str, context: str = ":") -> float:
    """What the model gives a member after a prompt that ends in ``context``."""
    first, second = text[:5], text[5:]
    return AFTER[context][first] * AFTER[first][second]


def target(context: str = ":") -> np.ndarray:
    """The model conditioned on the language, (n_members,)."""
    law = np.array([probability(text, context) for text in MEMBERS])
    return law / law.sum()


def masked(context: str = ":") -> np.ndarray:
    """The law of local masking, (n_members,)."""
    law = []
    for first, second in itertools.product(WORDS[:3], WORDS[3:5]):
        row = AFTER[first]
        law.append(AFTER[context][first] * row[second] / (row[" today"] + row[" now"]))
    return np.array(law)
