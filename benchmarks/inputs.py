"""What every benchmark reads: the tokenizer, the schemas and their texts; and how it prints figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

SCHEMAS = Path(__file__).resolve().parent / "schemas"
# Names of end tokens, for a bare tokenizer.json, which doesn't say which one it is.
END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "</s>", "<|endoftext|>")


def load_tokenizer(path: str | None) -> tuple[Any, int]:
    """Return a tokenizer of ``transformers`` and the largest id + 1.

    Parameters
    ----------
    path : str or None
        A ``tokenizer.json``, or a tokenizer's folder or hub name; ``None`` is the embedded model's.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if path is None:
        import constrain

        tokenizer = constrain.load_model().tokenizer
    elif path.endswith(".json"):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=path)
    else:
        tokenizer = AutoTokenizer.from_pretrained(path)
    vocabulary = tokenizer.get_vocab()
    if tokenizer.eos_token is None:
        tokenizer.eos_token = next(name for name in END_TOKENS if name in vocabulary)
    return tokenizer, max(vocabulary.values()) + 1


def load_schemas(names: Iterable[str] = ()) -> dict[str, tuple[Any, list[str]]]:
    """Return the schemas by name, each with its documents in three spellings: compact, spaced, indented."""
    wanted = set(names)
    schemas = {}
    for path in sorted(SCHEMAS.glob("*.json")):
        if not wanted or path.stem in wanted:
            entry = json.loads(path.read_text(encoding="utf-8"))
            texts = []
            for document in entry["instances"]:
                texts.append(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
                texts.append(json.dumps(document, ensure_ascii=False))
                texts.append(json.dumps(document, ensure_ascii=False, indent=2))
            schemas[path.stem] = (entry["schema"], texts)
    return schemas


def quantile(values: Iterable[float], part: float) -> float:
    """Return the value below which ``part`` of the values lie, NaN for none."""
    array = np.fromiter(values, float)
    return float(np.quantile(array, part)) if array.size else float("nan")


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table, numbers flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=150).print(table)
