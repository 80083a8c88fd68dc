"""How long does a fresh process take until its first mask, beside other engines?

    python benchmarks/cold_start.py [--tokenizer PATH] [--engines constrain,llguidance,xgrammar] [--repeat 5]

Counted from the moment when the tokenizer of ``transformers`` is loaded, which every engine needs: importing the
engine, its own tokenizer object, compiling a small schema, and the first mask. One run before the counted ones fills
the caches on disk; its time is shown apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from engines import ENGINES
from inputs import print_table, quantile

CHILD = """
import json, sys, time
from inputs import load_tokenizer
tokenizer, vocab_size = load_tokenizer(sys.argv[2] or None)
start = time.perf_counter()
from engines import ENGINES
engine = ENGINES[sys.argv[1]]()
engine.prepare(tokenizer, vocab_size)
prepared = time.perf_counter()
schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
engine.program(schema).start().fill()
end = time.perf_counter()
print(json.dumps([prepared - start, end - prepared, end - start, vocab_size]))
"""


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", default="", help="tokenizer.json, folder or hub name")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    names = arguments.engines.split(",")
    runs: dict[str, list[list[float]]] = {name: [] for name in names}
    tokenizer = arguments.tokenizer
    if tokenizer and Path(tokenizer).exists():
        tokenizer = str(Path(tokenizer).resolve())
    for _ in range(arguments.repeat + 1):
        for name in names:
            command = [sys.executable, "-c", CHILD, name, tokenizer]
            # Packages that pip installed are compiled to bytecode; those of a checkout are by the first run.
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            done = subprocess.run(
                command,
                cwd=Path(__file__).parent,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                sys.exit(f"{name} failed:\n{done.stderr}")
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    vocab_size = int(runs[names[0]][0][3])
    rows = []
    for name in names:
        first, *later = runs[name]
        figures = [quantile((run[k] for run in later), 0.5) for k in range(3)]
        slowest = max(run[2] for run in later)
        rows.append([ENGINES[name]().label(), *(f"{value:.3f}" for value in (*figures, slowest, first[2]))])
    for other in names[1:]:
        ratio = float(rows[0][3]) / float(rows[names.index(other)][3])
        rows.append([f"{names[0]} / {other}", "", "", f"{ratio:.2f} ×", "", ""])
    header = ["", "import, tokenizer s", "schema, mask s", "all s p50", "max", "first run ever s"]
    print_table(f"Fresh processes, vocabulary of {vocab_size:,}", header, rows)


if __name__ == "__main__":
    main()
