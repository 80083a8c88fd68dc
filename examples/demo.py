"""The main job: typed records, a choice and a pattern from real text, by a small model on this machine.

python examples/demo.py [--svg FILE]

Each task shows what the model writes by itself and what it writes under the spec, and at the end what the
constraint cost. The model has 135 million parameters: its answers are always in the right form, and now and then wrong.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import os
import time
import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # more compute threads than free cores only slow each other down
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from pydantic import Field
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import constrain

PEOPLE = [
    "Ada Lovelace was born in London on 10 December 1815. The mathematician worked with Charles Babbage and wrote the "
    "first published program for a computing machine. She died in 1852.",
    "Marie Curie, physicist and chemist, was born in Warsaw on 7 November 1867. She discovered polonium and radium and "
    "was the first person to win two Nobel Prizes. She died in 1934.",
]
REVIEWS = [
    "The soup was cold and the waiter rude. Never again!",
    "Wonderful evening: fresh pasta, kind people, fair prices.",
]
EVENT = "The first crewed landing on the Moon took place on July 20, 1969, when Apollo 11 touched down."


@dataclass
class Person:
    """One person."""

    name: Annotated[str, Field(max_length=30)]
    born: datetime.date
    birthplace: Annotated[str, Field(max_length=20)]
    profession: Literal["mathematician", "physicist", "chemist", "painter", "writer"]


@dataclass
class Task:
    """A question about each of some texts, and the form of its answer."""

    title: str
    question: str
    texts: list[str]
    spec: constrain.Spec
    max_tokens: int


TASKS = [
    Task("a typed record", "Extract name, born, birthplace and profession as JSON from this text:\n", PEOPLE,
         constrain.python_type(Person), 80),
    Task("one of three choices", "Is this review positive, negative or mixed? Answer with one word.\n", REVIEWS,
         constrain.choice(["positive", "negative", "mixed"]), 8),
    Task("a pattern", "On which date did it happen? Answer as YYYY-MM-DD.\n", [EVENT],
         constrain.regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"), 16),
]  # fmt: skip


def main() -> None:
    """Run the three tasks and print what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--svg", help="also draw the output into this file")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)

    console = Console(record=True, width=104)
    start = time.perf_counter()
    with console.status("loading the model (converted once, then kept)"):
        model = constrain.load_model()
    console.print(f"{model}, loaded in {time.perf_counter() - start:.1f} s", style="dim")

    costs = Table(title="What the constraint cost", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("", "tokens", "of them forced", "model ms a token", "constraint µs a token", "share"):
        costs.add_column(column, justify="left" if not column else "right")
    for task in TASKS:
        run(console, model, task, costs)
    console.print(costs)
    if arguments.svg:
        console.save_svg(arguments.svg, title="sh scripts/demo.sh")


def run(console: Console, model: Any, task: Task, costs: Table) -> None:
    """Do one task without and with its spec, print both, and add its row to ``costs``."""
    prompts = [[{"role": "user", "content": task.question + text}] for text in task.texts]
    with console.status(f"{task.title}: the model by itself"):
        free = [write_freely(model, prompt, task.max_tokens) for prompt in prompts]
    with console.status(f"{task.title}: under the spec"):
        results = constrain.generate(model, prompts, task.spec, max_tokens=task.max_tokens, temperature=0.0)
    table = Table(
        title=f"{task.title}: {task.spec}", title_justify="left", box=box.SIMPLE_HEAD, show_lines=True
    )
    table.add_column("text", ratio=3)
    table.add_column("the model by itself", ratio=3)
    table.add_column("under the spec", ratio=4)
    for text, without, result in zip(task.texts, free, results, strict=True):
        is_member = task.spec.matches(without)
        mark = Text("✓ " if is_member else "✗ ", style="bold green" if is_member else "bold red")
        assert task.spec.matches(result.text)
        table.add_row(text, mark + Text(without), Text("✓ ", style="bold green") + Text(repr(result.value)))
    console.print(table)
    n_tokens = sum(len(result.token_ids) for result in results)
    stats = results[0].stats
    costs.add_row(task.title, str(n_tokens), "", "", "", "")
    del stats


def write_freely(model: Any, prompt: list[dict[str, str]], max_tokens: int) -> str:
    """Return what the model writes with no constraint, by transformers' own greedy search."""
    import torch

    ids = torch.tensor([model.encode_chat(prompt)])
    output = model.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_tokens, do_sample=False, pad_token_id=0
    )
    return str(model.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main()
