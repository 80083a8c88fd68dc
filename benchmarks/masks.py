"""How long do compiling a schema and the mask of each token take, beside other engines?

    python benchmarks/masks.py [--tokenizer PATH] [--engines constrain,llguidance,xgrammar] [--repeat 3]

Each engine compiles each schema and is led token by token through documents that are known to be
valid; the mask is computed before every token. Every repeat compiles afresh, so its first walk is cold; the
last document is then walked again, which is warm. A figure of one position is the least over the repeats; of
compiling, the first repeat is shown too, before an engine has seen anything of the schema.
The comparison counts only schemas that every engine took and whose documents it accepted, so all engines
answer for the same tokens; where one falls out, the reason is printed.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engines import ENGINES, Engine, Program, RefusedError
from inputs import load_schemas, load_tokenizer, print_table, quantile


@dataclass
class Times:
    """Seconds of one engine on one schema: the first compilation, and the least over the repeats of all else."""

    first_compile: float = float("inf")
    compile: float = float("inf")
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    advance: list[float] = field(default_factory=list)

    def merge(self, other: Times) -> None:
        """Keep the smaller figure at each place."""
        if not self.cold:
            self.first_compile = other.compile
        self.compile = min(self.compile, other.compile)
        for name in ("cold", "warm", "advance"):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, [*map(min, mine, theirs)] if mine else theirs)


def walk(
    engine: Engine,
    program: Program,
    token_ids: list[int],
    times: list[float],
    advance: list[float],
    must_end: bool = True,
) -> None:
    """Lead a new text through ``token_ids``, appending the seconds of each mask and each step."""
    sequence, clock = program.start(), time.perf_counter
    for place, token_id in enumerate(token_ids):
        start = clock()
        sequence.fill()
        filled = clock()
        is_allowed = engine.allows(token_id)
        stepped = clock()
        is_taken = sequence.advance(token_id)
        end = clock()
        if not (is_allowed and is_taken):
            raise RefusedError(f"a valid document is refused at its token {place}")
        times.append(filled - start)
        advance.append(end - stepped)
    if must_end and not sequence.is_complete():
        raise RefusedError("a valid document may not end")


def measure(engine: Engine, schema: Any, documents: list[list[int]]) -> Times:
    """Compile a schema and walk its documents once, cold, then the last one again."""
    return measure_program(engine, lambda: engine.program(schema), documents)


def measure_program(
    engine: Engine, compile: Callable[[], Program], documents: list[list[int]], must_end: bool = True
) -> Times:
    """Do the same for whatever ``compile`` compiles; texts need not be whole unless they must."""
    gc.collect()
    gc.disable()
    try:
        times = Times()
        start = time.perf_counter()
        program = compile()
        times.compile = time.perf_counter() - start
        for token_ids in documents:
            walk(engine, program, token_ids, times.cold, times.advance, must_end)
        walk(engine, program, documents[-1], times.warm, [], must_end)
        return times
    finally:
        gc.enable()


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokenizer", help="tokenizer.json, folder or hub name (default: the embedded model's)"
    )
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--schemas", default="", help="names of files in benchmarks/schemas, without .json")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", dest="path", help="also write every figure to this file")
    arguments = parser.parse_args()

    tokenizer, vocab_size = load_tokenizer(arguments.tokenizer)
    schemas = load_schemas(filter(None, arguments.schemas.split(",")))
    engines = {name: ENGINES[name]() for name in arguments.engines.split(",")}
    for engine in engines.values():
        engine.prepare(tokenizer, vocab_size)
        walk(
            engine,
            engine.program({"type": "integer"}),
            tokenizer.encode("12", add_special_tokens=False),
            [],
            [],
        )

    results: dict[str, dict[str, Times]] = {}
    for name, (schema, texts) in schemas.items():
        documents = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
        found: dict[str, Times] = {}
        order = list(engines)
        for _ in range(arguments.repeat):
            order = order[1:] + order[:1]
            for label in order:
                try:
                    times = measure(engines[label], schema, documents)
                except RefusedError as error:
                    print(f"{label} falls out of {name}: {str(error).splitlines()[0]}")
                    order.remove(label)
                    found.pop(label, None)
                    break
                found.setdefault(label, Times()).merge(times)
        results[name] = found
    report(engines, results, vocab_size)
    if arguments.path:
        with open(arguments.path, "w", encoding="utf-8") as file:
            json.dump({s: {e: vars(t) for e, t in by.items()} for s, by in results.items()}, file)


def report(engines: dict[str, Engine], results: dict[str, dict[str, Times]], vocab_size: int) -> None:
    """Print the figures over the schemas that all engines took, and their ratios to the first engine."""
    common = [by for by in results.values() if len(by) == len(engines)]
    n_tokens = sum(len(by[next(iter(engines))].cold) for by in common)
    title = f"{len(common)} of {len(results)} schemas, {n_tokens:,} tokens, vocabulary of {vocab_size:,}"
    rows = []
    figures: dict[str, list[float]] = {}
    for label, engine in engines.items():
        first = [by[label].first_compile * 1e3 for by in common]
        again = [by[label].compile * 1e3 for by in common]
        masks = {
            name: [second * 1e6 for by in common for second in getattr(by[label], name)]
            for name in ("cold", "warm", "advance")
        }
        figures[label] = [quantile(first, 0.5), max(first, default=float("nan")), quantile(again, 0.5)]
        for values in masks.values():
            figures[label] += [quantile(values, 0.5), quantile(values, 0.99)]
        rows.append([engine.label(), *(f"{value:,.2f}" for value in figures[label])])
    ours, *others = engines
    for other in others:
        ratios = (a / b for a, b in zip(figures[ours], figures[other], strict=True))
        rows.append([f"{ours} / {other}", *(f"{ratio:.2f} ×" for ratio in ratios)])
    header = [
        "",
        "compile ms p50",
        "max",
        "again p50",
        "cold mask µs p50",
        "p99",
        "warm µs p50",
        "p99",
        "advance µs p50",
        "p99",
    ]
    print_table(title, header, rows)


if __name__ == "__main__":
    main()
