"""How long does it take to write a mask into a row of logits, beside other engines?

    python benchmarks/apply.py [--vocab-size 128256] [--rows 1,64] [--engines constrain,llguidance,xgrammar]

Masks with one allowed token in a thousand, and with all but one in a thousand, on NumPy and torch logits on the CPU.
"""

from __future__ import annotations

import argparse
import os
import timeit
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from inputs import print_table, quantile

Apply = Callable[[Any, Any], Any]


def functions(engine: str, is_torch: bool) -> Apply | None:
    """Return an engine's function, or None where it has none for this kind of array."""
    if engine == "constrain":
        import constrain

        return constrain.apply_token_bitmask_inplace
    if engine == "llguidance":
        import llguidance.numpy
        import llguidance.torch

        module: Any = llguidance.torch if is_torch else llguidance.numpy
        apply: Apply = module.apply_token_bitmask_inplace
        return apply
    if engine == "xgrammar" and is_torch:
        import xgrammar

        return xgrammar.apply_token_bitmask_inplace
    return None


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocab-size", type=int, default=128_256)
    parser.add_argument("--rows", default="1,64")
    parser.add_argument("--engines", default="constrain,llguidance,xgrammar")
    parser.add_argument("--repeat", type=int, default=30)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    n_words = -(-arguments.vocab_size // 32)
    header = ["logits", "mask", *(f"{e} p50 / p99" for e in arguments.engines.split(","))]
    rows = []
    for n_rows in map(int, arguments.rows.split(",")):
        sparse = (
            np.packbits(rng.random((n_rows, n_words, 32)) < 1e-3, axis=-1)
            .view(np.int32)
            .reshape(n_rows, n_words)
        )
        for kind, dtype in (("numpy", "float32"), ("torch", "float32"), ("torch", "bfloat16")):
            for name, words in (("1 in 1,000 allowed", sparse), ("999 in 1,000", ~sparse)):
                row = [f"{kind} {dtype}, {n_rows} × {arguments.vocab_size:,}", name]
                for engine in arguments.engines.split(","):
                    apply = functions(engine, kind == "torch")
                    row.append("–" if apply is None else timing(apply, words, kind, dtype, arguments))
                rows.append(row)
    print_table("µs per call", header, rows)


def timing(apply: Apply, words: Any, kind: str, dtype: str, arguments: argparse.Namespace) -> str:
    """Return the median and p99 in µs of calls on fresh logits."""
    import torch

    shape = (len(words), arguments.vocab_size)
    clean: Any = (
        np.zeros(shape, dtype) if kind == "numpy" else torch.zeros(shape, dtype=getattr(torch, dtype))
    )
    mask: Any = words if kind == "numpy" else torch.from_numpy(words)
    seconds = []
    for _ in range(arguments.repeat + 3):
        logits = clean.copy() if kind == "numpy" else clean.clone()
        seconds.append(timeit.timeit(lambda logits=logits: apply(logits, mask), number=1) * 1e6)
    warm = seconds[3:]  # the first calls load or compile
    return f"{quantile(warm, 0.5):,.0f} / {quantile(warm, 0.99):,.0f}"


if __name__ == "__main__":
    main()
