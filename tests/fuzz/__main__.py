"""Fuzzing through the public interface: ``python -m tests.fuzz --minutes 10 --seed 1``.

A worker process makes specs out of mutated texts, compiles them for random vocabularies under random
limits, and does random things to their matchers. What may happen is a right answer or a `ConstrainError`
(`TypeError` where an argument's type is wrong). Whatever else happens is a finding: another exception, a mask that
disagrees with ``accept_token``, a dead end, a crash, a hang. The parent process starts workers anew, each with a
seed of its own, and prints the seed of every finding; ``--only SEED`` runs one again.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import constrain
from constrain.tokenizer_index import native
from tests.fuzz.inputs import grammar_text, hostile_json, regex_text, schema, vocabulary

SECONDS_A_CASE = 60.0
"""A worker that needs longer for one case hangs; every limit in use is far below."""


class Finding(AssertionError):
    """Something that may not happen."""


def case(rng: random.Random) -> str:
    """Run one case; return what became of it."""
    limits = constrain.Limits(
        **{
            name: rng.choice([1, 10, 1000])
            for name in ("positions", "states", "nesting")
            if rng.random() < 0.05
        },
        compile_seconds=2.0,
    )
    try:
        spec = _make_spec(rng, limits)
        compiled = constrain.compile(spec, vocabulary(rng), cache=False, limits=limits)
        matcher = compiled.matcher()
        for _ in range(rng.randrange(1, 40)):
            _step(rng, spec, compiled, matcher)
    except constrain.ConstrainError as error:
        if not str(error).strip():
            raise Finding(f"{type(error).__name__} without a message") from error
        return type(error).__name__
    return "ok"


def _make_spec(rng: random.Random, limits: constrain.Limits) -> constrain.Spec:
    kinds: dict[str, Callable[[], constrain.Spec]] = {
        "regex": lambda: constrain.regex(
            regex_text(rng), flags=rng.choice(["", "", "i", "s", "x", "m"]), limits=limits
        ),
        "schema": lambda: constrain.json_schema(
            schema(rng),
            whitespace=rng.choice(["flexible", "compact", "[ ]?"]),
            unsupported=rng.choice(["raise", "ignore"]),
            limits=limits,
        ),
        "schema text": lambda: constrain.json_schema(hostile_json(rng), limits=limits),
        "choice": lambda: constrain.choice([regex_text(rng) for _ in range(rng.randrange(4))], limits=limits),
    }
    if hasattr(constrain, "grammar"):
        kinds["grammar"] = lambda: constrain.grammar(grammar_text(rng))
    spec = kinds[rng.choice(list(kinds))]()
    if rng.random() < 0.15:
        other = constrain.regex(regex_text(rng), limits=limits)
        spec = spec | other if rng.random() < 0.5 else spec + other
    return spec


def _step(rng: random.Random, spec: constrain.Spec, compiled: constrain.CompiledSpec, matcher: Any) -> None:
    size = compiled.vocabulary.size
    what = rng.randrange(12)
    if what < 5:
        _follow_mask(rng, matcher, size)
    elif what == 5:
        token = rng.choice([-1, size, 2**40, rng.randrange(size)])
        if not 0 <= token < size:
            _refused(lambda: matcher.accept_token(token), "a token out of range")
        else:
            _agree(matcher, size, token)
    elif what == 6:
        done = rng.randrange(4)
        if done <= matcher.n_accepted:
            matcher.rollback(done)
        else:
            _refused(lambda: matcher.rollback(done), "a rollback too far")
    elif what == 7:
        before = _mask(matcher, size)
        text = rng.choice(
            [b"", b"\xff", b"\xc3", "aé1".encode(), bytes(rng.randrange(256) for _ in range(6))]
        )
        fork = matcher.fork()
        if not fork.is_terminated():
            fork.accept_string(text)
        if not np.array_equal(before, _mask(matcher, size)):
            raise Finding("a fork changed its origin")
    elif what == 8:
        forced = matcher.find_jump_forward_string()
        tokens = matcher.forced_tokens()
        if matcher.validate_tokens(tokens) != len(tokens):
            raise Finding(f"forced tokens {tokens} are refused")
        if not isinstance(forced, str):
            raise Finding("forced text is not text")
    elif what == 9:
        _budget(rng, matcher, size)
    elif what == 10:
        text = rng.choice(["", "a", "é1", "{}", '{"a": 1}', "\ud800", "\x00" * 5])
        spec.matches(text)
        str(spec.explain(text))
    else:
        text = spec.sample(np.random.default_rng(rng.randrange(2**32)), max_bytes=200)
        if not spec.matches(text):
            raise Finding(f"sample {text!r} does not match")


def _follow_mask(rng: random.Random, matcher: Any, size: int) -> None:
    allowed = np.flatnonzero(_mask(matcher, size))
    if matcher.is_terminated():
        if len(allowed):
            raise Finding("tokens after the end")
        matcher.reset()
        return
    if not len(allowed):
        raise Finding("a dead end")
    _agree(matcher, size, int(rng.choice(list(allowed))))


def _agree(matcher: Any, size: int, token: int) -> None:
    allowed = bool(_mask(matcher, size)[token])
    taken = matcher.accept_token(token)
    if allowed != taken:
        raise Finding(f"token {token}: mask says {allowed}, accept_token {taken}")


def _budget(rng: random.Random, matcher: Any, size: int) -> None:
    if matcher.is_terminated():
        return
    needed = matcher.min_tokens_to_finish()
    bitmask = constrain.allocate_token_bitmask(1, size)
    left = int(needed) + 1 + rng.randrange(3)
    fork = matcher.fork()
    for _ in range(100):  # of an output that may be as long as it likes
        if fork.is_terminated():
            break
        if left <= 0:
            raise Finding("a budget ran out")
        fork.fill_budget_bitmask(bitmask, 0, remaining=left)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
        if not len(allowed):
            raise Finding(f"a dead end with {left} tokens left")
        if not fork.accept_token(int(rng.choice(list(allowed)))):
            raise Finding("a token of the budget's mask is refused")
        left -= 1


def _mask(matcher: Any, size: int) -> Any:
    bitmask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask, 0)
    bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
    if bits[size:].any():
        raise Finding("bits beyond the vocabulary")
    return bits[:size]


def _refused(act: Callable[[], object], what: str) -> None:
    try:
        act()
    except (constrain.ConstrainError, ValueError):
        return
    raise Finding(f"{what} is accepted")


# ------------------------------------------------------------------------------------ processes


def work(seed: int, seconds: float) -> int:
    """Run cases from ``seed`` on; print a line for each finding and one of counts at the end."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    native.load()  # compiling the kernels is no part of a case
    counts: dict[str, int] = {}
    end = time.monotonic() + seconds
    while True:
        faulthandler.dump_traceback_later(SECONDS_A_CASE, exit=True)
        print(json.dumps({"started": seed}), flush=True)
        try:
            outcome = case(random.Random(seed))
        except Exception:  # noqa: BLE001 - whatever it is, it is the finding
            outcome = "FINDING"
            print(json.dumps({"finding": seed, "what": traceback.format_exc(limit=-3)}), flush=True)
        counts[outcome] = counts.get(outcome, 0) + 1
        seed += 1
        if time.monotonic() >= end:
            break
    print(json.dumps({"counts": counts}), flush=True)
    return counts.get("FINDING", 0)


def main() -> int:
    """Run workers one after another until the time is over; the exit status tells whether all was well."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this one seed in this process")
    parser.add_argument("--work", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        return min(work(options.seed, options.work), 1)
    if options.only is not None:
        print(case(random.Random(options.only)))
        return 0
    end = time.monotonic() + 60 * options.minutes
    total: dict[str, int] = {}
    seed, bad = options.seed * 1_000_000, 0
    while (left := end - time.monotonic()) > 0:
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--work", str(min(left, 60.0))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        started = [line["started"] for line in lines if "started" in line]
        for line in lines:
            if "finding" in line:
                bad += 1
                print(f"seed {line['finding']}: {line['what']}", flush=True)
            for outcome, n in line.get("counts", {}).items():
                total[outcome] = total.get(outcome, 0) + n
        if done.returncode not in (0, 1) or not lines or "counts" not in lines[-1]:
            bad += 1
            print(
                f"seed {started[-1] if started else seed}: the process ended with {done.returncode}\n{done.stderr[-3000:]}",
                flush=True,
            )
        seed = (started[-1] if started else seed) + 1
    print(f"{total} in {options.minutes:g} minutes, {bad} findings")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
