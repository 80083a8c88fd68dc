"""Every schema of a MaskBench file: what is taken, which documents are accepted, how long it takes.

    python benchmarks/maskbench.py FILE.jsonl.gz [--tokenizer PATH] [--processes 2] [--limit 10] [--json PATH]

Each line of the file is an object with ``name``, ``schema`` and ``tests``, a list of ``{"valid", "data"}``. Documents
are led through the masks token by token. A worker that doesn't answer within the limit, or dies, is replaced and
the schema counts as a timeout or a crash. A valid document that is refused is tried again under other
options, one after another (`RELAXED`): the first under which it is accepted names the reason. Times are processor time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import re
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from inputs import load_tokenizer, print_table, quantile

import constrain
from constrain.errors import ConstrainError

# Under which options is a document accepted that was refused?
RELAXED: dict[str, dict[str, Any]] = {
    "the order of properties": {"property_order": "any"},
    "integers written as 1.0 or 1e2": {"integers": "any"},
    "a format": {"formats": False},
    "both order and integers": {"property_order": "any", "integers": "any"},
    "all of these": {"property_order": "any", "integers": "any", "formats": False},
}
OTHER = "something else"


class Judge:
    """Compiles schemas for one tokenizer and leads documents through the masks."""

    def __init__(self, tokenizer: str | None) -> None:
        self._tokenizer, size = load_tokenizer(tokenizer)
        self._vocabulary = constrain.Vocabulary.from_transformers(self._tokenizer, vocab_size=size)
        bitmask = constrain.allocate_token_bitmask(1, size)
        self._bitmask, self._words = bitmask, np.asarray(bitmask)[0]
        self._compile({"type": "integer"}).matcher()

    def _compile(self, schema: Any, **options: Any) -> constrain.CompiledSpec:
        return constrain.compile(constrain.json_schema(schema, **options), self._vocabulary, cache=False)

    def _accepts(self, compiled: constrain.CompiledSpec, token_ids: list[int], times: list[float]) -> bool:
        matcher = compiled.matcher()
        for token_id in token_ids:
            start = time.thread_time()
            matcher.fill_next_token_bitmask(self._bitmask, 0)
            times.append(time.thread_time() - start)
            is_allowed = int(self._words[token_id >> 5]) >> (token_id & 31) & 1
            if not (is_allowed and matcher.accept_token(token_id)):
                return False
        return bool(matcher.is_accepting())

    def _reason(self, schema: Any, token_ids: list[int]) -> str:
        for reason, options in RELAXED.items():
            try:
                if self._accepts(self._compile(schema, **options), token_ids, []):
                    return reason
            except ConstrainError:
                continue
        return OTHER

    def judge(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return what is found about one schema."""
        schema = record["schema"]
        start = time.thread_time()
        try:
            compiled = self._compile(schema)
            compiled.matcher().fill_next_token_bitmask(self._bitmask, 0)
        except ConstrainError as error:
            what = re.sub(r"'[^']{20,}'|\"[^\"]{20,}\"|\d+", "…", str(error).splitlines()[0])[:70]
            return {"refused": f"{type(error).__name__}: {what}"}
        found: dict[str, Any] = {"compile": time.thread_time() - start, "slowest": 0.0}
        found.update(valid=0, invalid=0, invalid_accepted=0, reasons=[])
        for test in record["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            token_ids = self._tokenizer.encode(text, add_special_tokens=False)
            times: list[float] = []
            is_accepted = self._accepts(compiled, token_ids, times)
            found["slowest"] = max(found["slowest"], *times)
            found["valid" if test["valid"] else "invalid"] += 1
            if is_accepted and not test["valid"]:
                found["invalid_accepted"] += 1
            elif test["valid"] and not is_accepted:
                found["reasons"].append(self._reason(schema, token_ids))
        return found


def _work(path: str, tokenizer: str | None, connection: Connection) -> None:
    judge, records = Judge(tokenizer), read(path)
    connection.send(None)
    while True:
        connection.send(judge.judge(records[connection.recv()]))


def read(path: str) -> list[dict[str, Any]]:
    """Return the records of the file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Worker:
    """A process that judges schemas, one after another."""

    def __init__(self, path: str, tokenizer: str | None) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_work, args=(path, tokenizer, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.index = -1
        self.since = time.monotonic()

    def give(self, index: int) -> None:
        """Ask for a schema by its place in the file."""
        self.index, self.since = index, time.monotonic()
        self.connection.send(index)

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(
    path: str, tokenizer: str | None, indices: range, n_processes: int, limit: float
) -> dict[int, dict[str, Any]]:
    """Return what is found about each schema, by its place in the file."""
    todo = iter(indices)
    results: dict[int, dict[str, Any]] = {}
    workers = [Worker(path, tokenizer) for _ in range(n_processes)]
    while workers:
        ready = wait([worker.connection for worker in workers], timeout=0.2)
        for worker in tuple(workers):
            failure = None
            if worker.connection in ready:
                try:
                    answer = worker.connection.recv()
                except EOFError:
                    failure = "crash"
                else:
                    if worker.index >= 0:
                        results[worker.index] = answer
                    index = next(todo, None)
                    if index is not None:
                        worker.give(index)
                        continue
            elif worker.index >= 0 and time.monotonic() - worker.since > limit:
                failure = "timeout"
            else:
                continue
            worker.stop()
            workers.remove(worker)
            if failure is not None:
                if worker.index < 0:
                    raise SystemExit("A worker ends before it judges anything.")
                results[worker.index] = {"failed": failure}
                workers.append(Worker(path, tokenizer))
    return results


def report(results: dict[int, dict[str, Any]], seconds: float) -> None:
    """Print the figures."""
    taken = [found for found in results.values() if "compile" in found]
    refused = Counter(found["refused"] for found in results.values() if "refused" in found)
    failed = Counter(found["failed"] for found in results.values() if "failed" in found)
    reasons = Counter(reason for found in taken for reason in found["reasons"])
    n_valid, n_invalid = (sum(found[kind] for found in taken) for kind in ("valid", "invalid"))
    slow = [found["slowest"] for found in taken]
    rows = [
        ["schemas", f"{len(results):,}"],
        ["taken", f"{len(taken):,} ({100 * len(taken) / max(len(results), 1):.2f} %)"],
        ["crashes, timeouts", f"{failed['crash']}, {failed['timeout']}"],
        [
            "invalid documents accepted",
            f"{sum(found['invalid_accepted'] for found in taken):,} of {n_invalid:,}",
        ],
        ["valid documents refused", f"{reasons.total():,} of {n_valid:,}"],
        *([f"  for {reason}", f"{n:,}"] for reason, n in reasons.most_common()),
        ["compile and first mask, ms, p50", f"{1e3 * quantile((f['compile'] for f in taken), 0.5):.2f}"],
        ["  p99", f"{1e3 * quantile((f['compile'] for f in taken), 0.99):.2f}"],
        ["schemas with a mask above 5 ms", f"{sum(second > 0.005 for second in slow):,}"],
        ["seconds", f"{seconds:.0f}"],
    ]
    print_table("MaskBench", ["", ""], rows)
    print_table("refused", ["", ""], [[what, str(n)] for what, n in refused.most_common(20)])


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path")
    parser.add_argument(
        "--tokenizer", help="tokenizer.json, folder or hub name (default: the embedded model's)"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for a schema and its documents")
    parser.add_argument("--every", type=int, default=1, help="take each schema of so many")
    parser.add_argument("--json", dest="json_path", help="also write what was found to this file")
    given = parser.parse_args()
    start = time.monotonic()
    records = read(given.path)
    indices = range(0, len(records), given.every)
    results = run(given.path, given.tokenizer, indices, given.processes, given.limit)
    report(results, time.monotonic() - start)
    for index, found in results.items():
        if "failed" in found:
            print(f"{found['failed']}: {records[index]['name']}")
    if given.json_path:
        named = {records[index]["name"]: found for index, found in results.items()}
        Path(given.json_path).write_text(json.dumps(named), encoding="utf-8")


if __name__ == "__main__":
    main()
