"""Ready grammars: their own cases, and their agreement with independent parsers on texts that are nearly right."""

from __future__ import annotations

import base64
import json
import tomllib
from functools import cache
from pathlib import Path
from random import Random

import pytest

import constrain
from constrain.library import grammar_names, grammar_text
from tests.library.edits import edited
from tests.library.oracles import C_TYPES, ORACLES

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/cases.toml"))
N_EDITS = 1000


@cache
def cases(name: str) -> dict[str, list[str]]:
    """Texts that are right and wrong, by ``"good"`` and ``"bad"``."""
    return tomllib.loads((HERE / name / "cases.toml").read_text(encoding="utf-8"))


@cache
def library(name: str) -> constrain.Spec:
    return constrain.grammar_library(name)


@cache
def compared(name: str) -> constrain.Spec:
    """The grammar that is compared with the other parser."""
    return constrain.grammar_library("c", typedef_names=C_TYPES) if name == "c" else library(name)


def test_every_grammar_has_cases() -> None:
    """No ready grammar goes without good and bad texts of its own, twenty of each at least."""
    assert sorted(grammar_names()) == NAMES
    for name in NAMES:
        assert min(len(set(cases(name)[kind])) for kind in ("good", "bad")) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_head_names_the_specification(name: str) -> None:
    """The comment at the head of a grammar says which specification it follows."""
    assert "Specification" in grammar_text(name).split("\n\n")[0]


@pytest.mark.parametrize("name", NAMES)
def test_no_mask_needs_a_search(name: str) -> None:
    """All that lexemes allow can be finished, so that no token is looked at twice."""
    assert library(name).network.unsound is None


@pytest.mark.parametrize("name", NAMES)
def test_good_texts(name: str) -> None:
    """Every good text is in the language."""
    assert [text for text in cases(name)["good"] if not library(name).matches(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_bad_texts(name: str) -> None:
    """No bad text is in the language."""
    assert [text for text in cases(name)["bad"] if library(name).matches(text)] == []


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_cases_agree_with_the_other_parser(name: str) -> None:
    """The other parser calls no good text wrong and no bad text right."""
    oracle = ORACLES[name]()
    assert [text for text in cases(name)["good"] if oracle(text) is False] == []
    assert [text for text in cases(name)["bad"] if oracle(text)] == []


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_edits_agree_with_the_other_parser(name: str) -> None:
    """After one random edit the grammar and the other parser agree on 99 of 100 texts; most edits can be judged."""
    oracle = ORACLES[name]()
    n_judged, differing = 0, []
    # What the other parser can't read is wrong for other reasons than the edit.
    good = [text for text in cases(name)["good"] if oracle(text) is not False]
    for text in edited(good, Random(7), N_EDITS):
        verdict = oracle(text)
        if verdict is not None:
            n_judged += 1
            if verdict != compared(name).matches(text):
                differing.append(text)
    assert n_judged >= N_EDITS // 3
    assert len(differing) <= n_judged // 100, differing


def test_json_conformance(shared: Path) -> None:
    """The JSON grammar is right on every text of the parsing conformance suite that has a verdict."""
    wrong = []
    for line in (shared / "data" / "json_parsing_dev.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        data = base64.b64decode(case["base64"])
        if case["expect"] != "either" and library("json").matches(data) != (case["expect"] == "accept"):
            wrong.append(case["name"])
    assert wrong == []


def test_typedef_names() -> None:
    """Where typedef names are given, other names are none, and these name nothing else in expressions."""
    given, free = constrain.grammar_library("c", typedef_names=["T"]), library("c")
    for text in (
        "T x;",
        "size_t n = (T)1;",
        "typedef int T;",
        "void f(void) { T *x; a * b; s.T = 1; goto T; T: ; }",
    ):
        assert given.matches(text) and free.matches(text), text
    for text in ("U x;", "Tx y;", "int x = T;", "int x = (U){1};", "staticint x;", "int x = sizeof(T) y;"):
        assert not given.matches(text), text
    assert free.matches("U x;")
    with pytest.raises(constrain.SpecError, match="not for 'go'"):
        constrain.grammar_library("go", typedef_names=[])
    for names in ("T", ["a b"], [1], 3):
        with pytest.raises(constrain.SpecError, match="typedef_names"):
            constrain.grammar_library("c", typedef_names=names)  # type: ignore[arg-type]


def test_unknown_name() -> None:
    """A name that isn't there is an error that lists those that are."""
    with pytest.raises(constrain.SpecError, match="'json'"):
        constrain.grammar_library("cobol")


def test_saved_and_loaded(tmp_path: Path) -> None:
    """A ready grammar can be saved like any other spec."""
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, None], eos_token_ids=[256])
    compiled = constrain.compile(library("json"), vocabulary, cache=False)
    compiled.save(tmp_path / "json.spec")
    matcher = constrain.CompiledSpec.load(tmp_path / "json.spec", vocabulary).matcher()
    assert matcher.accept_string('{"a": [1]}') and matcher.is_accepting()
