"""Exact laws of small languages under a table model, and tests of samples against them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.api.table_model import TableModel

LETTERS = [b"a", b"b", b"c"]


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return weights / weights.sum()


def members(pattern: str, length: int, letters: str = "abc") -> list[str]:
    """Members that fit ``length`` tokens, the end token included."""
    texts = itertools.chain.from_iterable(itertools.product(letters, repeat=n) for n in range(length))
    return [text for text in map("".join, texts) if re.fullmatch(pattern, text)]


def truncated(p: np.ndarray, top_k: int, top_p: float, min_p: float) -> np.ndarray:
    """The row after top-k, top-p and min-p, renormalised."""
    order = sorted(range(len(p)), key=lambda i: (-p[i], i))
    if top_k:
        order = order[:top_k]
    total, kept = 0.0, []
    for i in order:
        if total >= top_p * p[order].sum() and top_p < 1.0:
            break
        kept.append(i)
        total += p[i]
    kept = [i for i in kept if p[i] >= min_p * p[kept].max()]
    left = np.zeros_like(p)
    left[kept] = p[kept]
    return left / left.sum()


def feasible_law(
    model: TableModel, prompt: str, texts: Sequence[str], options: Mapping[str, Any]
) -> dict[str, float]:
    """Probability of each text, one token a letter and then the end, under the truncated model."""
    start = model.encode(prompt)

    def probability(text: str) -> float:
        ids = ["abc".index(letter) for letter in text] + [3]
        p = 1.0
        for place, token in enumerate(ids):
            row = softmax(model.row(start + ids[:place]) / options.get("temperature", 1.0))
            row = truncated(
                row, options.get("top_k", 0), options.get("top_p", 1.0), options.get("min_p", 0.0)
            )
            p *= row[token]
        return p

    law = {text: probability(text) for text in texts}
    return {text: p for text, p in law.items() if p > 0}


def assert_mean(values: Sequence[float] | np.ndarray, exact: float, *, precise: bool = True) -> None:
    """The mean is within 4.5 standard errors of ``exact`` and, if ``precise``, these are below 3% of it."""
    values = np.asarray(values)
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - exact) <= 4.5 * error + 1e-9, (values.mean(), exact, error)
    assert not precise or error < 0.03 * exact, (exact, error)


def chi_square(counts: Mapping[Any, int], law: Mapping[Any, float]) -> float:
    """Pearson's statistic of ``counts``; cells that expect fewer than 5 are merged."""
    n = sum(counts.values())
    small = [key for key, p in law.items() if n * p < 5]
    cells = [(counts[key], n * p) for key, p in law.items() if key not in small]
    if small:
        cells.append((sum(counts[key] for key in small), n * sum(law[key] for key in small)))
    assert sum(found for found, _ in cells) == n
    return sum((found - expected) ** 2 / expected for found, expected in cells)


def assert_law(found: Sequence[Any], law: Mapping[Any, float]) -> None:
    """Samples are of a law: Pearson's statistic is at most its quantile of 1 - 1e-5, by Wilson and Hilferty."""
    counts = Counter(found)
    assert set(counts) <= set(law)
    k = max(sum(p * len(found) >= 5 for p in law.values()), 1)  # Merged cells are one more.
    assert chi_square(counts, law) <= k * (1 - 2 / (9 * k) + 4.265 * math.sqrt(2 / (9 * k))) ** 3
