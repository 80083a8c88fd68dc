"""Bars of progress: on standard error, only where they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.decoders import DraftTemplate
from constrain.errors import OptionError
from tests.api.table_model import TableModel
from tests.api.toy_laws import LETTERS

TEMPLATE = DraftTemplate(text_think="a", text_write="{draft}b")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("local", {"n": 3, "batch_size": 2}),
        ("rejection", {"n": 3}),
        ("aligned", {"n": 3}),
        ("mcmc", {"n": 3, "steps": 2}),
        ("speculative", {"n": 3}),
        ("draft", {"n": 3, "template": TEMPLATE, "draft_tokens": 3}),
        ("sketch", {"n": 3, "black_box": lambda prompt: "ab"}),
        ("beam", {}),
        ("smc", {}),
    ],
)
def test_bars(method: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Every method counts its outputs up to their number, and the outputs are those of a quiet run."""
    model, spec = TableModel(LETTERS), constrain.regex("[ab]{2}c?")
    prompt = ["a", "b", "c"] if method in ("beam", "smc") else "a"

    def run(progress: bool) -> list[str]:
        results = constrain.generate(
            model, prompt, spec, method=method, max_tokens=6, seed=1, progress=progress, **options
        )
        if method == "smc":
            return [one.text for posterior in results for one in posterior.particles]
        return [one.text for one in results]

    quiet = run(False)
    assert capsys.readouterr() == ("", "")
    assert run(True) == quiet
    out, err = capsys.readouterr()
    assert out == "" and "3/3" in err and "step" in err


def test_progress_is_a_flag() -> None:
    model, spec = TableModel(LETTERS), constrain.regex("a")
    with pytest.raises(OptionError, match="progress"):
        constrain.generate(model, "a", spec, progress="yes")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="progress"):
        constrain.stream(model, "a", spec, progress=True)
