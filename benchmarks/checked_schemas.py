"""Generate from schemas that no grammar says whole (``unsupported="check"``) and ask two other validators.

    python benchmarks/checked_schemas.py SCHEMAS.jsonl.gz [--count 30] [--max-tokens 200] [--seed 0]

Each line of the file is an object with ``name`` and ``schema``. Needs the embedded model, and the packages
``jsonschema`` and ``jsonschema-rs`` (each validates what it can read).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import jsonschema
import jsonschema_rs

import constrain
from constrain.errors import ConstrainError


def checked(path: str, seed: int) -> Iterator[tuple[str, Any, constrain.Spec]]:
    """Yield the schemas of which a part is left to the check, in random order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(seed).shuffle(rows)
    for row in rows:
        try:
            spec = constrain.json_schema(row["schema"], unsupported="check")
        except ConstrainError:
            continue
        if spec.checks:
            yield row["name"], row["schema"], spec


def verdicts(schema: Any, value: Any) -> tuple[bool | None, bool | None]:
    """What jsonschema and jsonschema-rs say; ``None`` where one of them cannot read the schema."""
    found: list[bool | None] = []
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    for ask in (lambda: validator(schema).is_valid(value), lambda: jsonschema_rs.is_valid(schema, value)):
        try:
            found.append(ask())
        except (ValueError, LookupError, re.error) as error:
            print(f"    {type(error).__name__}: {str(error)[:80]}")
            found.append(None)
    return found[0], found[1]


def main() -> None:
    """Generate, validate, and print a line for each schema."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-checks", type=int, default=2000)
    given = parser.parse_args()
    model = constrain.load_model()
    n = n_valid = 0
    for name, schema, spec in checked(given.path, given.seed):
        if n == given.count:
            break
        begin = time.perf_counter()
        prompt = [{"role": "user", "content": f"Write an example of: {name}"}]
        try:
            result = constrain.generate(
                model,
                prompt,
                spec,
                max_tokens=given.max_tokens,
                temperature=given.temperature,
                seed=given.seed,
                max_checks=given.max_checks,
            )
        except ConstrainError as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            n += not isinstance(error, constrain.LimitExceededError)
            continue
        n += 1
        answers = verdicts(schema, json.loads(result.text))
        n_valid += False not in answers
        stats = result.stats
        print(
            f"{name}: jsonschema {answers[0]}, jsonschema-rs {answers[1]}, {len(result.token_ids)} tokens, "
            f"{stats.check_calls} checks, {stats.check_failures} failures, {stats.backtracks} times taken back, "
            f"{time.perf_counter() - begin:.1f} s (model {stats.model_seconds:.1f} s, checks {stats.check_seconds:.2f} s)",
            flush=True,
        )
    print(f"{n_valid} of {n} outputs are valid")


if __name__ == "__main__":
    main()
