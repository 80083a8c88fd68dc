"""Draw the pictures of docs/methods: what each method does to a toy model.

python docs/pictures/methods.py --samples 4000

Needs matplotlib. The same seeds give the same pictures.
"""

from __future__ import annotations

import argparse
import random
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from toy import AFTER, MEMBERS, SPEC, ToyModel, masked, probability, target

import constrain
from constrain.decoders import DraftTemplate

matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "constrain", "font.size": 9}
BUDGET = 4
TEMPLATE = DraftTemplate(text_think="?", text_write="{draft}")


def law_of(texts: Iterable[str], weights: Iterable[float] | None = None) -> np.ndarray:
    """How often each member came, (n_members,); weighted, if there are weights."""
    counts: Counter[str] = Counter()
    for text, weight in zip(texts, weights if weights is not None else iter(lambda: 1.0, None), strict=False):
        counts[text] += weight
    found = np.array([counts[text] for text in MEMBERS], float)
    return found / found.sum()


def generate(n: int, method: str, **options: Any) -> list[constrain.Generation]:
    """Outputs of the toy."""
    return constrain.generate(ToyModel(), ":", SPEC, method=method, n=n, max_tokens=BUDGET, seed=1, **options)


def bars(axes: Axes, laws: dict[str, np.ndarray], exact: np.ndarray | None, name: str = "target") -> None:
    """One group of bars for each member; the exact law as a line over each group."""
    width = 0.8 / len(laws)
    places = np.arange(len(MEMBERS))
    for number, (label, law) in enumerate(laws.items()):
        axes.bar(places + (number - (len(laws) - 1) / 2) * width, law, width, label=label)
    if exact is not None:
        axes.hlines(exact, places - 0.45, places + 0.45, color="black", label=name)
    axes.set_xticks(places, [text.replace(" ", "\n") for text in MEMBERS])
    axes.set_ylabel("probability")
    axes.legend(fontsize="small")


def picture() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.0, 2.8), layout="constrained")
    return figure, figure.subplots()


# ------------------------------------------------------------------------------------------- the pictures


def local(n: int) -> Figure:
    figure, axes = picture()
    bars(axes, {"local masking": law_of(one.text for one in generate(n, "local"))}, target())
    return figure


def rejection(n: int) -> Figure:
    figure, axes = picture()
    outputs = generate(n, "rejection")
    texts = [one.text for one in outputs]
    weights = np.exp([one.log_weight for one in outputs])
    bars(axes, {"counted": law_of(texts), "weighted": law_of(texts, weights)}, target())
    return figure


def smc(n: int) -> Figure:
    figure, axes = picture()
    laws = {}
    for particles in (1, 4, 16):
        posteriors = constrain.generate(
            ToyModel(),
            [":"] * max(n // particles, 1),
            SPEC,
            method="smc",
            particles=particles,
            max_tokens=BUDGET,
            seed=1,
        )
        texts = [one.text for posterior in posteriors for one in posterior.particles]
        weights = [weight for posterior in posteriors for weight in posterior.weights]
        laws[f"{particles} particle" + "s" * (particles > 1)] = law_of(texts, weights)
    bars(axes, laws, target())
    return figure


def aligned(n: int) -> Figure:
    figure, axes = picture()
    outputs = generate(n, "aligned")
    bars(axes, {"aligned": law_of(one.text for one in outputs)}, target())
    return figure


def mcmc(n: int) -> Figure:
    figure, axes = picture()
    laws = {
        f"{steps} steps": law_of(one.text for one in generate(n, "mcmc", steps=steps)) for steps in (0, 2, 10)
    }
    bars(axes, laws, target())
    return figure


def beam(n: int) -> Figure:
    figure, axes = picture()
    places = np.arange(len(MEMBERS))
    axes.bar(places, target(), color="lightgrey", label="target")
    for number, width in enumerate((1, 2, 3)):
        best = generate(1, "beam", width=width)
        place = MEMBERS.index(best.text)
        axes.plot(place, target()[place] + 0.03 + 0.05 * number, "v", label=f"best of width {width}")
    axes.set_xticks(places, [text.replace(" ", "\n") for text in MEMBERS])
    axes.set(ylabel="probability", ylim=(0.0, 0.6))
    axes.legend(fontsize="small")
    return figure


def speculative(n: int) -> Figure:
    figure, axes = picture()
    laws, calls = {}, {}
    for method, options in (("local", {}), ("speculative", {"draft": ToyModel(0.6), "draft_tokens": 3})):
        outputs = generate(n, method, batch_size=1, **options)
        calls[method] = np.mean([one.stats.model_calls for one in outputs])
        laws[f"{method}: {calls[method]:.1f} calls of the model an output"] = law_of(
            one.text for one in outputs
        )
    bars(axes, laws, masked(), "law of local masking")
    return figure


def draft(n: int) -> Figure:
    figure, axes = picture()
    joint = sum(p * np.array([probability(text, word) for text in MEMBERS]) for word, p in AFTER["?"].items())
    laws = {
        f"k={k}, {choose}": law_of(
            one.text for one in generate(n, "draft", k=k, choose=choose, template=TEMPLATE, draft_tokens=1)
        )
        for k, choose in ((1, "select"), (4, "select"), (4, "resample"))
    }
    bars(axes, laws, joint / joint.sum(), "drafts and outputs,\ngiven a member")
    return figure


def sketch(n: int) -> Figure:
    """How often the nearest member is the right one, by the number of wrong letters."""
    figure, axes = picture()
    for label, spec, words in (
        ("the toy's six members", SPEC, MEMBERS),
        ("dates", constrain.regex(r"20\d\d-(0[1-9]|1[0-2])-([0-2]\d|3[01])"), ["2031-04-15", "2027-11-30"]),
    ):
        rng = random.Random(1)
        shares = []
        for errors in range(6):
            right = 0
            for _ in range(n := min(n, 100)):
                word = rng.choice(words)
                right += constrain.repair(spec, damaged(word, errors, rng)).text == word
            shares.append(right / n)
        axes.plot(range(6), shares, "o-", label=label)
    axes.set(xlabel="wrong letters in the sketch", ylabel="share repaired", ylim=(0.0, 1.05))
    axes.legend(fontsize="small")
    return figure


def damaged(word: str, errors: int, rng: random.Random) -> str:
    """The word with some letters replaced, left out or put in."""
    letters = list(word)
    for _ in range(errors):
        place = rng.randrange(len(letters))
        letters[place] = rng.choice([rng.choice(string.ascii_lowercase), "", letters[place] + "x"])
    return "".join(letters)


PICTURES: Sequence[Callable[[int], Figure]] = (
    local,
    rejection,
    smc,
    aligned,
    mcmc,
    beam,
    speculative,
    draft,
    sketch,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--format", default="svg", choices=["svg", "png"])
    arguments = parser.parse_args()
    for draw in PICTURES:
        path = arguments.folder / f"{draw.__name__}.{arguments.format}"
        draw(arguments.samples).savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
