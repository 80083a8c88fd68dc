"""The main job: typed records, a choice and a pattern from real text, by a small model on this machine.

python examples/demo.py [--svg FILE]

Each task shows what the model writes by itself and what it writes under the spec; at the end, what the constraint
cost. The model has 135 million parameters: under a spec its answers always have the right form, and are now and then
wrong all the same.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # compute threads without a free core only slow each other down
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from pydantic import Field
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import constrain


@dataclass
class Person:
    """One person."""

    name: Annotated[str, Field(max_length=30)]
    born: Annotated[str, Field(pattern=r"^\d{1,2} [A-Z][a-z]{2,8} \d{4}$")]
    birthplace: Annotated[str, Field(max_length=20)]
    profession: Literal["mathematician", "physicist", "chemist", "painter", "writer"]


@dataclass
class Task:
    """A question about each of some texts, and the form of its answers."""

    title: str
    question: str
    texts: list[str]
    spec: constrain.Spec
    max_tokens: int


PEOPLE = [
    (
        "Ada Lovelace was born in London on 10 December 1815. The mathematician worked with Charles Babbage and "
        "wrote the first published program for a computing machine."
    ),
    (
        "Marie Curie, physicist and chemist, was born in Warsaw on 7 November 1867. She was the first person to win "
        "two Nobel Prizes."
    ),
]
NEWS = [
    "Scientists have found water ice in a crater near the south pole of the Moon.",
    "The striker scored twice and the home team won the match 3-1.",
]
LANDING = "The first crewed landing on the Moon took place on July 20, 1969, when Apollo 11 touched down."
TASKS = [
    Task(
        "A typed record: the dataclass Person",
        "Extract name, born, birthplace and profession as JSON from this text:\n{text}",
        PEOPLE,
        constrain.python_type(Person),
        80,
    ),
    Task(
        "A choice",
        "{text}\nThe topic of this sentence is",
        NEWS,
        constrain.choice(["science", "sport", "politics"]),
        12,
    ),
    Task(
        "A pattern",
        "On which date did it happen? Answer as YYYY-MM-DD.\n{text}",
        [LANDING],
        constrain.regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"),
        16,
    ),
]


def main() -> None:
    """Run the tasks and print what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--svg", help="also draw the output into this file")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)

    console = Console(record=True, width=110, highlight=False)
    start = time.perf_counter()
    model = constrain.load_model(dtype="float32")
    get_ready(model)
    console.print(f"{model}, ready in {time.perf_counter() - start:.0f} s", style="dim")

    costs = Table(
        title="What the constraint cost", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for column in (
        "",
        "tokens",
        "of them forced",
        "model, ms a token",
        "constraint, ms a token",
        "share of time",
    ):
        costs.add_column(column, justify="right" if column else "left")
    for task in TASKS:
        run(console, model, task, costs)
    console.print(costs)
    if arguments.svg:
        # Without the fonts that rich names: a picture in a README can't load them.
        picture = re.sub(
            r"@font-face \{.*?\}\s*", "", console.export_svg(title="sh scripts/demo.sh"), flags=re.DOTALL
        )
        Path(arguments.svg).write_text(picture, encoding="utf-8")


def get_ready(model: Any) -> None:
    """Compile the kernels and build the vocabulary's index (both are kept on disk), so that neither is timed below."""
    for task in TASKS:
        constrain.generate(model, "Go.", task.spec, max_tokens=task.max_tokens, temperature=0.0)


def run(console: Console, model: Any, task: Task, costs: Table) -> None:
    """Do one task without and with its spec, print both, and add its row to ``costs``."""
    prompts = [[{"role": "user", "content": task.question.format(text=text)}] for text in task.texts]
    with console.status(f"{task.title}: the model by itself"):
        free = [write_freely(model, prompt, task.max_tokens) for prompt in prompts]
    with console.status(f"{task.title}: under the spec"):
        results = constrain.generate(model, prompts, task.spec, max_tokens=task.max_tokens, temperature=0.0)

    table = Table(
        title=f"{task.title}\n{task.spec}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_lines=True,
        expand=True,
    )
    for name, ratio in (("text", 3), ("the model by itself", 3), ("under the spec", 3)):
        table.add_column(name, ratio=ratio)
    for text, written, result in zip(task.texts, free, results, strict=True):
        assert task.spec.matches(result.text)
        table.add_row(
            text, marked(task.spec.matches(written), written), marked(result.is_complete, repr(result.value))
        )
    console.print(table)

    stats = [result.stats for result in results]
    n_tokens = sum(one.generated_tokens for one in stats)
    mask, network = sum(one.mask_seconds for one in stats), sum(one.model_seconds for one in stats)
    costs.add_row(
        task.title.split(":")[0],
        str(n_tokens),
        str(sum(one.forced_tokens for one in stats)),
        f"{1e3 * network / n_tokens:.1f}",
        f"{1e3 * mask / n_tokens:.2f}",
        f"{mask / (mask + network):.1%}",
    )


def marked(is_member: bool, text: str) -> Text:
    """Return ``text`` after a mark that says whether it is in the spec's language."""
    mark = Text("✓ ", style="bold green") if is_member else Text("✗ ", style="bold red")
    return mark.append(Text(text, style="not bold default"))


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
