"""How fast are grammars of programming languages, and how much memory do their tables take?

    python benchmarks/grammars.py [--tokenizer PATH] [--engines constrain,llguidance] [--repeat 3] [--tokens 20000]

Three tables. *Reading*: processor time until each ready grammar is read and compiled in a fresh process, after imports
and with the kernels loaded. *Masks*: the mask of each token of a program, cold and warm, by the ready grammars of C
and Python; another engine is shown where it takes the grammar and allows the same tokens, else its reason is
printed. *Memory*: states and bytes of tables while the sources of the standard library are read, up to a number of tokens.
Times are wall-clock but for *Reading*; each figure of a position is the least of the repeats.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engines import ENGINES, Constrain, Engine, LLGuidance, Program, RefusedError
from inputs import load_tokenizer, print_table, quantile
from masks import Times, measure_program

TEXTS = Path(__file__).resolve().parent / "texts"
NAMES = ("c", "csv", "go", "graphql", "javascript", "json", "pddl", "python", "smiles", "sql", "xml")
SHOWN_AT = (100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

CHILD = """
import sys, time, constrain
vocabulary = constrain.Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
small = constrain.grammar('start: "a" /b+/', syntax="lark")
constrain.compile(small, vocabulary, cache=False)
start = time.process_time()
constrain.compile(constrain.grammar_library(sys.argv[1]), vocabulary, cache=False)
print(time.process_time() - start)
"""


def reading(repeat: int) -> None:
    """Print how long each ready grammar takes."""
    rows = []
    for name in NAMES:
        seconds = []
        for _ in range(repeat):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.exit(f"{name} failed:\n{done.stderr}")
            seconds.append(float(done.stdout))
        rows.append([name, f"{min(seconds) * 1e3:.0f}", f"{max(seconds) * 1e3:.0f}"])
    print_table("Reading and compiling in a fresh process", ["", "CPU ms least", "most"], rows)


def library_sources() -> Iterator[str]:
    """Yield sources of the standard library, always in the same order."""
    folder = Path(argparse.__file__).parent
    for name in ("argparse", "textwrap", "heapq", "dataclasses", "typing", "decimal", "inspect", "ast"):
        path = folder / f"{name}.py"
        if path.is_file():
            yield path.read_text(encoding="utf-8").rstrip() + "\n"


def program_of(engine: Engine, name: str) -> Program:
    """Compile a ready grammar for an engine that reads Lark's language."""
    import constrain
    from constrain.library import grammar_text

    if isinstance(engine, Constrain):
        return engine.compiled(constrain.grammar_library(name))
    if isinstance(engine, LLGuidance):
        return engine.grammar(grammar_text(name))
    raise RefusedError("it reads no grammars in Lark's language")


def masks(engines: dict[str, Engine], encode: Any, repeat: int, n_tokens: int) -> None:
    """Print how long the masks of two programs take."""
    python = next(library_sources())
    texts = {"c": (TEXTS / "ring.c").read_text(encoding="utf-8"), "python": python}
    rows = []
    for name, text in texts.items():
        token_ids = encode(text)[:n_tokens]
        for label, engine in engines.items():
            times = Times()
            try:
                for _ in range(repeat):
                    times.merge(
                        measure_program(engine, lambda e=engine, n=name: program_of(e, n), [token_ids], False)
                    )
            except RefusedError as error:
                print(f"{label} falls out of {name}: {str(error).splitlines()[0]}")
                continue
            figures = [times.first_compile * 1e3]
            for part in (times.cold, times.warm, times.advance):
                figures += [quantile(part, 0.5) * 1e6, quantile(part, 0.99) * 1e6]
            rows.append(
                [f"{name}, {len(token_ids):,} tokens: {engine.label()}", *(f"{v:,.2f}" for v in figures)]
            )
    header = ["", "compile ms", "cold mask µs p50", "p99", "warm µs p50", "p99", "advance µs p50", "p99"]
    print_table("Masks", header, rows)


def memory(engine: Constrain, encode: Any, n_tokens: int) -> None:
    """Print how tables grow with the text; files begin anew in the same tables."""
    import constrain

    compiled = engine.compile(constrain.grammar_library("python"))
    rows, n, started = [], 0, time.process_time()
    for source in library_sources():
        matcher = compiled.matcher()
        for token_id in encode(source):
            if n == n_tokens:
                break
            matcher.fill_next_token_bitmask(engine.bitmask, 0)
            if not matcher.accept_token(token_id):
                sys.exit(f"token {token_id} of the standard library is refused")
            n += 1
            if n in SHOWN_AT or n == n_tokens:
                sizes = compiled.arena.n_states
                row = [n, *sizes.values(), compiled.n_bytes / 2**20, time.process_time() - started]
                rows.append([f"{v:,}" if isinstance(v, int) else f"{v:,.1f}" for v in row])
    header = ["tokens", *compiled.arena.n_states, "MiB of tables", "CPU s, masks and all"]
    print_table("Memory: Python's standard library", header, rows)


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", help="tokenizer.json, folder or hub name")
    parser.add_argument("--engines", default="constrain,llguidance")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=20_000)
    arguments = parser.parse_args()
    reading(arguments.repeat)
    tokenizer, vocab_size = load_tokenizer(arguments.tokenizer)

    def encode(text: str) -> list[int]:
        token_ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return token_ids

    engines = {name: ENGINES[name]() for name in arguments.engines.split(",")}
    for engine in engines.values():
        engine.prepare(tokenizer, vocab_size)
    masks(engines, encode, arguments.repeat, arguments.tokens)
    for engine in engines.values():
        if isinstance(engine, Constrain):
            memory(engine, encode, arguments.tokens)


if __name__ == "__main__":
    main()
