"""What weighted decoding costs: checks a token, and a population beside a plain batch.

    python benchmarks/quality/costs.py [--quick]

*Checks*: how many constraint checks `rejection` spends a token, and how many a full mask would need (one for each token that the
grammar allows there), for a grammar alone and with a slow Python check of every token. *Population*: processor time of a
step of `smc` with 8 particles beside a step of 8 rows without any constraint, in turns, medians.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import constrain
from constrain.decoders import Row, SmcDecoder, SmcOptions
from constrain.decoders.draft import Draft, DraftDecoder, DraftOptions
from constrain.numerics import RandomStreams, Sampling

PROMPT = [{"role": "user", "content": "Write one short sentence about tea."}]
SLOW = 0.002  # seconds a check


def slow_check(text: str) -> bool:
    """A check of a partial text that takes its time, and refuses double blanks."""
    time.sleep(SLOW)
    return "  " not in text


def allowed_counts(model: Any, spec: constrain.Spec, outputs: list[constrain.Generation]) -> list[int]:
    """How many tokens the grammar allows at each place of the outputs."""
    compiled = constrain.compile(spec, model.vocabulary)
    mask = constrain.allocate_token_bitmask(1, model.vocabulary.size)
    counts = []
    for output in outputs:
        matcher = compiled.matcher()
        for token in output.token_ids:
            matcher.fill_next_token_bitmask(mask, 0)
            counts.append(int(np.bitwise_count(mask.view(np.uint32)).sum()))
            matcher.accept_token(token)
    return counts


def measure_checks(model: Any, n: int, max_tokens: int) -> None:
    pattern = r"[A-Z][a-z ,']{10,80}\."
    grammar = constrain.regex(pattern)
    checked = grammar.where(slow_check, when="token")
    print(f"checks a token, {n} outputs of at most {max_tokens} tokens, vocabulary {model.vocabulary.size:,}")
    print(f"{'':<22}{'tokens':>8}{'by rejection':>14}{'by full mask':>14}{'ratio':>8}{'s/token':>9}")
    for name, spec in (("grammar", grammar), (f"check of {SLOW * 1e3:g} ms", checked)):
        begin = time.perf_counter()
        outputs = constrain.generate(
            model, PROMPT, spec, method="rejection", n=n, max_tokens=max_tokens, temperature=0.7, seed=0
        )
        seconds = time.perf_counter() - begin
        tokens = sum(len(one.token_ids) for one in outputs)
        if spec is grammar:
            # Each token of the vocabulary would be one question to a checker of single tokens.
            spent = sum(one.stats.checks for one in outputs) / tokens
            full = float(model.vocabulary.size)
        else:
            spent = sum(one.stats.check_calls for one in outputs) / tokens
            full = float(np.mean(allowed_counts(model, grammar, outputs)))
        print(
            f"{name:<22}{tokens:>8}{spent:>14.2f}{full:>14,.0f}{full / spent:>8,.0f}{seconds / max(tokens, 1):>9.3f}"
        )
        if spec is checked:
            print(f"  asking all of a mask would take {full * SLOW:.1f} s a token")


def measure_population(model: Any, steps: int) -> None:
    """Both decoders in turns, in processor time, so that other work on the machine disturbs the ratio little."""
    sampling = Sampling(1.0, 1.0, 0, 0.0, {token: -np.inf for token in model.vocabulary.eos_token_ids})
    prompt = model.encode_chat(PROMPT)
    compiled = constrain.compile(constrain.regex(r"[\s\S]*"), model.vocabulary)
    schema = constrain.json_schema({"type": "array", "items": {"type": "string"}, "minItems": 50})
    specs = {"any text": compiled, "JSON strings": constrain.compile(schema, model.vocabulary)}
    plain = DraftDecoder(model, sampling, RandomStreams(0), options=DraftOptions(draft_tokens=10_000))
    print(f"\na step of 8 rows, {steps} steps in turns: median seconds, and their ratio to the plain batch")
    for name, spec in specs.items():
        smc = SmcDecoder(model, sampling, RandomStreams(0), options=SmcOptions(particles=8))
        population = smc.start(Row(0, prompt, spec.matcher(), 4_000))
        state = plain.start([Draft(place, prompt) for place in range(8)])
        times: dict[str, list[float]] = {"plain": [], "smc": []}
        resampled, distinct = 0, []

        for _ in range(steps):
            begin = time.process_time()
            state, _ = plain.step(plain.streams, state)
            times["plain"].append(time.process_time() - begin)
            begin = time.process_time()
            population, info = smc.step(smc.streams, population)
            times["smc"].append(time.process_time() - begin)
            resampled += info.is_resampled
            distinct.append(len(population.lines))
            if not population.active:
                break
        late = slice(len(times["smc"]) // 4, None)  # particles differ by then
        a, b = (float(np.median(times[kind][late])) for kind in ("plain", "smc"))
        print(
            f"{name:<14} plain {a:.4f}, smc {b:.4f}, ratio {b / a:.2f} "
            f"({resampled} resamplings, {np.mean(distinct[late]):.1f} different texts)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", default="checks,population")
    arguments = parser.parse_args()
    model = constrain.load_model()
    if "checks" in arguments.part:
        measure_checks(model, 3 if arguments.quick else 16, 24 if arguments.quick else 48)
    if "population" in arguments.part:
        measure_population(model, 24 if arguments.quick else 120)


if __name__ == "__main__":
    main()
