"""Function calls: does the model call the right function with the right arguments?

    python benchmarks/quality/function_calls.py --data maskbench.jsonl.gz [--quick] [--items 30]

Items are the `BFCL_` records of a MaskBench file: a schema of calls, and a valid document. A seeded generator words a request
from the document's values; an answer is right if it is equal to the document.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

from common import Item, parser, population, run, single, unconstrained

import constrain
from constrain.errors import ConstrainError

LONGEST_SCHEMA, LONGEST_DOCUMENT = 900, 220  # characters
OPENINGS = ("Please call", "I need you to call", "Call", "Run")
PAIRS = ("{name} is {value}", "{name} = {value}", "set {name} to {value}", "use {value} for {name}")


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, but true isn't 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def request(document: dict[str, Any], rng: random.Random) -> str:
    """Word the document."""
    sentences = []
    for function, arguments in document.items():
        pairs = list(arguments.items()) if isinstance(arguments, dict) else []
        rng.shuffle(pairs)
        told = [
            rng.choice(PAIRS).format(
                name=name, value=value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            )
            for name, value in pairs
        ]
        ends = f" with these arguments: {'; '.join(told)}" if told else " without arguments"
        sentences.append(f"{rng.choice(OPENINGS)} {function}{ends}.")
    return " ".join(sentences)


def items_of(path: Path, count: int, seed: int) -> list[Item]:
    """A seeded choice of records whose schema is accepted and short."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [record for record in map(json.loads, file) if record["name"].startswith("BFCL_")]
    rng = random.Random(seed)
    rng.shuffle(records)
    items: list[Item] = []
    for record in records:
        document = next((test["data"] for test in record["tests"] if test["valid"]), None)
        schema = json.dumps(record["schema"])
        if not isinstance(document, dict) or len(schema) > LONGEST_SCHEMA:
            continue
        text = json.dumps(document, ensure_ascii=False)
        if len(text) > LONGEST_DOCUMENT:
            continue
        try:
            spec = constrain.json_schema(record["schema"])
        except ConstrainError:
            continue
        prompt = [
            {
                "role": "system",
                "content": f"You answer with one function call, as JSON by this schema, and nothing else: {schema}",
            },
            {"role": "user", "content": request(document, rng)},
        ]

        def is_right(answer: str, expected: Any = document) -> bool:
            return same(json.loads(answer), expected)

        items.append(Item(prompt, spec, is_right, 160))
        if len(items) == count:
            break
    return items


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--data", type=Path, required=True, help="a MaskBench file, .jsonl.gz")
    arguments = made.parse_args()
    count = arguments.items or (4 if arguments.quick else 30)
    drafts = {"draft_tokens": 48 if arguments.quick else 120}
    t = arguments.temperature
    methods = {
        "unconstrained": unconstrained(t),
        "local": single(t),
        "draft k=1": single(t, method="draft", k=1, **drafts),
        "draft k=4": single(t, method="draft", k=4, **drafts),
        "smc 8": population(t, 8),
    }
    run(items_of(arguments.data, count, arguments.seed), methods, arguments)


if __name__ == "__main__":
    main()
