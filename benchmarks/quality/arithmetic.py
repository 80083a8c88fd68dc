"""Arithmetic: small word problems with a JSON answer.

    python benchmarks/quality/arithmetic.py [--quick] [--items 60]

Problems of one or two steps come from a seeded generator.
"""

from __future__ import annotations

import json
import random

from common import Item, parser, population, run, single, unconstrained

import constrain

NAMES = ("Anna", "Ben", "Carla", "Deniz", "Emil", "Farah")
THINGS = ("apples", "pencils", "stamps", "marbles", "books")
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["answer"],
    "additionalProperties": False,
}
SPEC = constrain.json_schema(SCHEMA)


def problem(rng: random.Random) -> tuple[str, int]:
    """A problem and its answer."""
    name, other = rng.sample(NAMES, 2)
    thing = rng.choice(THINGS)
    a, b, c = rng.randint(3, 20), rng.randint(2, 12), rng.randint(2, 6)
    kinds = [
        (f"{name} has {a} {thing} and gets {b} more. How many {thing} does {name} have now?", a + b),
        (f"{name} has {a + b} {thing} and gives {b} to {other}. How many {thing} are left?", a),
        (f"A box holds {c} {thing}. How many {thing} are in {b} boxes?", b * c),
        (f"{name} shares {b * c} {thing} equally among {c} friends. How many does each friend get?", b),
        (
            f"{name} has {a} {thing}, gets {b} more and loses {c - 1}. How many {thing} are there now?",
            a + b - c + 1,
        ),
        (f"{name} buys {b} bags of {c} {thing} and finds {a} more. How many {thing} is that?", b * c + a),
    ]
    return rng.choice(kinds)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    rng = random.Random(arguments.seed)
    items = []
    for _ in range(arguments.items or (8 if arguments.quick else 60)):
        text, answer = problem(rng)
        prompt = [
            {"role": "system", "content": f"Answer with JSON by this schema alone: {json.dumps(SCHEMA)}"},
            {"role": "user", "content": text},
        ]

        def is_right(output: str, expected: int = answer) -> bool:
            return bool(json.loads(output)["answer"] == expected)

        items.append(Item(prompt, SPEC, is_right, 24))
    t = arguments.temperature
    drafts = {"draft_tokens": 64 if arguments.quick else 120}
    methods = {
        "unconstrained": unconstrained(t),
        "local": single(t),
        "draft k=1": single(t, method="draft", k=1, **drafts),
        "draft k=4": single(t, method="draft", k=4, **drafts),
        "smc 8": population(t, 8),
    }
    run(items, methods, arguments)


if __name__ == "__main__":
    main()
