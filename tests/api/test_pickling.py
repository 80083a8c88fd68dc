"""Specs travel: copies, pickles, and files of sets of tools."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
import pytest

import constrain
from constrain.errors import ConstrainError, LimitExceededError
from constrain.grammars.ir import Literal as Text
from constrain.grammars.ir import pattern_grammar
from constrain.tags import ToolTemplate, structural_tag, tool_calls


class Colour(Enum):
    RED = "red"
    ONE = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Search(pydantic.BaseModel):
    query: str
    limit: Literal[5, 10] = 5


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def is_short(text: str) -> bool:
    return len(text) < 3


def is_long(text: str) -> bool:
    return len(text) > 3


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}],
    "triggers": ["<f"],
}
NUMBERS = 'start: NUMBER ("," NUMBER)*\nNUMBER: /[0-9]+/\n%ignore " "\n'
WITH_POINT = 'start: "at" point\n%ignore " "\n'


def specs() -> list[constrain.Spec]:
    """Return one spec of each kind."""
    return [
        constrain.regex("[a-c]+", flags="i"),
        constrain.choice(["x", 1, None]),
        constrain.choice(Colour),
        constrain.json_schema(SCHEMA, whitespace="compact"),
        constrain.json_schema(Point, max_whitespace=3),
        constrain.json_schema({"$ref": "urn:x"}, registry={"urn:x": {"type": "integer"}}),
        constrain.python_type(Point),
        constrain.python_type(list[Search]),
        constrain.python_type(Literal["a", 3]),
        constrain.grammar(NUMBERS, lexing="any"),
        constrain.grammar('root ::= "a" root?'),
        constrain.grammar(WITH_POINT, embed={"point": constrain.python_type(Point)}),
        constrain.grammar_library("json"),
        structural_tag(TAG, whitespace="compact"),
        tool_calls([{"name": "f", "parameters": SCHEMA}], tool_choice="required"),
        tool_calls([add, Search, {"name": "s", "parameters": Search}], template="llama_json"),
        tool_calls([add], template=ToolTemplate(begin=("@",), after_name=("(",), end=(")",))),
        constrain.regex("a") | constrain.choice(["b"]),
        constrain.regex("a") + constrain.json_schema(SCHEMA),
        constrain.Spec.from_grammar(pattern_grammar(Text(b"abc"))),
        constrain.regex("[a-z]{1,3}").where(is_short),
        tool_calls([add], tool_choice="required", parallel=False, whitespace="compact").where(is_long),
    ]


@pytest.mark.parametrize("spec", specs(), ids=repr)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_spec_is_the_same_spec(spec: constrain.Spec, protocol: int) -> None:
    """It is equal, has the same hash and description, takes the same texts and parses them alike."""
    again = pickle.loads(pickle.dumps(spec, protocol))
    assert again == spec
    assert hash(again) == hash(spec)
    assert repr(again) == repr(spec)
    assert again.limits == spec.limits
    assert again.ignored == spec.ignored
    rng = np.random.default_rng(3)
    for _ in range(5):
        text = spec.sample(rng, max_bytes=80)
        assert again.matches(text)
        assert again.parse(text) == spec.parse(text)
        assert again.matches(text + "!") == spec.matches(text + "!")


@pytest.mark.parametrize("spec", specs(), ids=repr)
def test_copies_are_the_spec_itself(spec: constrain.Spec) -> None:
    assert copy.copy(spec) is spec
    assert copy.deepcopy([spec])[0] is spec


def test_specs_go_to_other_processes() -> None:
    """In a process that shares no memory the same texts match, and the spec that comes back is equal."""
    given = specs()
    texts = [spec.sample(np.random.default_rng(5), max_bytes=80) for spec in given]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(constrain.Spec.matches, zip(given, texts, strict=True)) == [True] * len(given)
        assert pool.map(copy.copy, given) == given


def test_what_cannot_be_pickled_says_so() -> None:
    class Local(pydantic.BaseModel):
        x: int

    def local(x: int) -> int:
        return x

    # In a process of its own: libraries that pickle by value may have been imported into this one.
    code = (
        "import dataclasses, pickle, sys, constrain\n"
        "def make():\n"
        "    @dataclasses.dataclass\n"
        "    class Local:\n"
        "        x: int\n"
        "    def local(x: int): pass\n"
        "    return Local, local\n"
        "Local, local = make()\n"
        "for spec in (constrain.python_type(Local), constrain.tool_calls([local]), constrain.regex('a').where(local)):\n"
        "    try:\n"
        "        pickle.dumps(spec)\n"
        "    except constrain.SpecError as error:\n"
        "        assert isinstance(error, pickle.PicklingError)\n"
        "        assert 'cannot be pickled' in str(error) and 'top level of a module' in str(error), error\n"
        "    else:\n"
        "        sys.exit('no error')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # They can be copied all the same.
    spec = tool_calls([local, Local])
    assert copy.deepcopy(spec) is spec


def test_by_value() -> None:
    """What pickles functions and classes by value takes specs that hold them."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")

    class Local(pydantic.BaseModel):
        x: int

    for spec in (constrain.python_type(Local), tool_calls([Local])):
        again = cloudpickle.loads(cloudpickle.dumps(spec))
        assert again == spec


def test_compiled_specs_stay_where_they_are() -> None:
    vocabulary = constrain.Vocabulary.from_tokens(
        [bytes([i]) for i in range(256)] + [None], eos_token_ids=256
    )
    compiled = constrain.compile(constrain.regex("ab?"), vocabulary, cache=False)
    with pytest.raises(ConstrainError, match=r"load\(path, vocabulary\)"):
        pickle.dumps(compiled)
    assert copy.deepcopy(compiled) is compiled
    matcher = compiled.matcher()
    with pytest.raises(ConstrainError, match="cannot be pickled"):
        pickle.dumps(matcher)
    fork = copy.deepcopy(matcher)
    assert fork.accept_string("a")
    assert matcher.n_accepted == 0


@pytest.mark.parametrize(
    "template", ["hermes", "harmony", ToolTemplate(begin=("@",), after_name=("(",), end=(")",))]
)
def test_sets_of_tools_are_saved(template: Any, tmp_path: Path) -> None:
    """A saved set of tools comes back with the same masks; tools made of functions as their schemas."""
    names = ["<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|start|>"]
    vocabulary = constrain.Vocabulary.from_tokens(
        [bytes([i]) for i in range(256)] + [None] * 6,
        eos_token_ids=256,
        special_tokens={name: 257 + i for i, name in enumerate(names)},
    )
    tools = [add, Search, {"name": "f", "parameters": SCHEMA}]
    spec = tool_calls(tools, template=template, reasoning="optional", parallel=False, whitespace="compact")
    compiled = constrain.compile(spec, vocabulary, cache=False)
    compiled.save(tmp_path / "tools")
    loaded = constrain.CompiledSpec.load(tmp_path / "tools", vocabulary)
    assert loaded.spec.frame == spec.frame  # type: ignore[attr-defined]
    mask = constrain.allocate_token_bitmask(2, vocabulary.size)
    rng = np.random.default_rng(1)
    for _ in range(3):
        one, two = compiled.matcher(), loaded.matcher()
        for _ in range(60):
            one.fill_next_token_bitmask(mask, 0)
            two.fill_next_token_bitmask(mask, 1)
            assert (mask[0] == mask[1]).all()
            allowed = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little"))
            token = int(rng.choice(allowed))
            assert one.accept_token(token) and two.accept_token(token)
            if one.is_terminated():
                break
    # Only schemas: the same file again from what was loaded.
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "tools").read_bytes()


def test_sets_of_tools_with_functions_are_not_saved(tmp_path: Path) -> None:
    vocabulary = constrain.Vocabulary.from_tokens(
        [bytes([i]) for i in range(256)] + [None], eos_token_ids=256
    )
    spec = tool_calls([add]).where(is_long)
    with pytest.raises(constrain.ArtefactError, match="cannot be saved"):
        constrain.compile(spec, vocabulary, cache=False).save(tmp_path / "tools")
    with pytest.raises(constrain.SpecError, match="where"):
        spec.with_tools({"name": "f"})


def test_errors_travel() -> None:
    """Errors that workers raise arrive with their text and data."""
    raised: list[ConstrainError] = []
    for make in (
        lambda: constrain.regex("a("),
        lambda: constrain.json_schema({"type": "what"}),
        lambda: constrain.grammar("start: a\n"),
        lambda: constrain.choice([]),
        lambda: constrain.regex("a{100}", limits=constrain.Limits(positions=5)),
        lambda: constrain.json_schema({"type": "object", "properties": 3}),
        lambda: tool_calls([3]),
    ):
        try:
            make()
        except ConstrainError as error:
            raised.append(error)
    raised.append(LimitExceededError("states", 5, "a place"))
    assert len(raised) >= 7
    for error in raised:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
