"""How long does a large set of tools take until its first mask, and a tool more or less?

    python benchmarks/tools.py [--tokenizer PATH] [--data maskbench.jsonl.gz] [--tools 500] [--template hermes]

The tools are schemas of the data file whose names begin with ``BFCL_``, one a tool. Each run is a fresh process;
counted is processor time from the list of dicts, after the tokenizer, the modules and the kernels are loaded (by a set
of one other tool). llguidance gets the same tools as structural tags, where it is installed, and is warmed up alike.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from inputs import print_table, quantile

CHILD = """
import gzip, json, sys, time
from inputs import load_tokenizer
import constrain
tokenizer, vocab_size = load_tokenizer(sys.argv[1] or None)
vocabulary = constrain.Vocabulary.from_transformers(tokenizer, vocab_size=vocab_size)
mask = constrain.allocate_token_bitmask(1, vocabulary.size)

def first_mask(spec):
    matcher = constrain.compile(spec, vocabulary).matcher()
    matcher.fill_next_token_bitmask(mask)
    return matcher

first_mask(constrain.tool_calls([{"name": "other", "parameters": {"type": "object"}}], template=sys.argv[4]))
tools = []
with gzip.open(sys.argv[2], "rt") as lines:
    for line in lines:
        entry = json.loads(line)
        if entry["name"].startswith("BFCL_") and len(tools) <= int(sys.argv[3]):
            tools.append({"name": entry["name"], "parameters": entry["schema"]})
*tools, other = tools
times = [time.process_time()]
spec = constrain.tool_calls(tools, template=sys.argv[4])
times.append(time.process_time())
matcher = first_mask(spec)
times.append(time.process_time())
matcher.accept_string('<tool_call>\\n{"name": "' if sys.argv[4] == "hermes" else "")
matcher.fill_next_token_bitmask(mask)
times.append(time.process_time())
more = spec.with_tools(other)
first_mask(more)
times.append(time.process_time())
first_mask(more.without_tools(tools[7]["name"]))
times.append(time.process_time())
print(json.dumps([vocabulary.size, *(1000 * (b - a) for a, b in zip(times, times[1:]))]))
"""

PEER = """
import gzip, json, sys, time
import llguidance, llguidance.hf, llguidance.numpy
from inputs import load_tokenizer
tokenizer, vocab_size = load_tokenizer(sys.argv[1] or None)
vocabulary = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocab_size)
mask = llguidance.numpy.allocate_token_bitmask(1, vocab_size)

def first_mask(tools):
    tags = [
        llguidance.StructTag(
            trigger="<function=",
            begin=f'<function={tool["name"]}>',
            grammar=tool["parameters"],
            end="</function>",
        )
        for tool in tools
    ]
    matcher = llguidance.LLMatcher(vocabulary, llguidance.StructTag.to_grammar(tags))
    llguidance.numpy.fill_next_token_bitmask(matcher, mask)
    if matcher.get_error():
        sys.exit(matcher.get_error())

tools = []
with gzip.open(sys.argv[2], "rt") as lines:
    for line in lines:
        entry = json.loads(line)
        if entry["name"].startswith("BFCL_") and len(tools) < int(sys.argv[3]):
            tools.append({"name": entry["name"], "parameters": entry["schema"]})
first_mask(tools[:1])
start = time.process_time()
first_mask(tools)
print(json.dumps(1000 * (time.process_time() - start)))
"""


def peer(arguments: list[str], repeat: int) -> list[float] | str:
    """Return how long llguidance takes, run by run, or why there is nothing to show."""
    if find_spec("llguidance") is None:
        return "llguidance isn't installed"
    times = []
    for _ in range(repeat + 1):
        command = [sys.executable, "-c", PEER, *arguments]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
        times.append(float(done.stdout.splitlines()[-1]))
    return times[1:]


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", default="", help="tokenizer.json, folder or hub name")
    parser.add_argument("--data", default="../shared/data/maskbench_dev.jsonl.gz")
    parser.add_argument("--tools", type=int, default=500)
    parser.add_argument("--template", default="hermes")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    tokenizer = arguments.tokenizer
    if tokenizer and Path(tokenizer).exists():
        tokenizer = str(Path(tokenizer).resolve())
    data = str(Path(arguments.data).resolve())
    command = [sys.executable, "-c", CHILD, tokenizer, data, str(arguments.tools), arguments.template]
    runs: list[list[float]] = []
    for _ in range(arguments.repeat + 1):
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    steps = [
        "tools to spec",
        "spec to first mask",
        "mask of the names",
        "a tool more, mask",
        "a tool less, mask",
    ]
    rows = []
    for i, step in enumerate(steps, 1):
        figures = [run[i] for run in runs[1:]]
        rows.append([step, f"{quantile(figures, 0.5):.2f}", f"{max(figures):.2f}"])
    both = [run[1] + run[2] for run in runs[1:]]
    rows.insert(2, ["tools to first mask", f"{quantile(both, 0.5):.2f}", f"{max(both):.2f}"])
    found = peer([tokenizer, data, str(arguments.tools)], arguments.repeat)
    if isinstance(found, str):
        print(f"No peer: {found}.")
    else:
        name = f"llguidance {version('llguidance')}, tools to first mask"
        rows.append([name, f"{quantile(found, 0.5):.2f}", f"{max(found):.2f}"])
    title = f"{arguments.tools} tools, vocabulary of {int(runs[0][0]):,}, ms of processor time"
    print_table(title, ["", "p50", "max"], rows)


if __name__ == "__main__":
    main()
