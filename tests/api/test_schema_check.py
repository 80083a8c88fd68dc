"""Schemas of which a part is checked while decoding: what they mean, and that outputs are valid."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.errors import BackendError, DeadEndError, UnsupportedFeatureError
from constrain.grammars.json_schema.build import SchemaOptions, any_value
from constrain.grammars.json_schema.evaluate import is_multiple
from constrain.grammars.limits import Limits, Watch
from constrain.spec import Spec
from tests.api.table_model import TableModel

PAIRS = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "unique": {**PAIRS, "uniqueItems": True, "minItems": 2, "maxItems": 3},
    "nested": {
        "type": "object",
        "properties": {"a": {**PAIRS, "uniqueItems": True, "minItems": 2, "maxItems": 2}, "b": {"const": 1}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "many_properties": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
}
UNIQUE = {**PAIRS, "uniqueItems": True}
TOKENS = [bytes((byte,)) for byte in b'{}[]:, "ab12'] + [b'["', b'":', b"],[", b"]]", b"[1", b"]}"]


def checked(name: str) -> constrain.Spec:
    spec = constrain.json_schema(SCHEMAS[name], unsupported="check", whitespace="compact")
    if not spec.checks:
        pytest.skip("the grammar says all of it")
    return spec


@pytest.mark.parametrize("name", SCHEMAS)
class TestOutputs:
    """Generated documents satisfy the schema, by another validator."""

    @pytest.mark.parametrize("method", ["local", "rejection"])
    @pytest.mark.parametrize("seed", range(6))
    def test_valid(self, name: str, method: str, seed: int) -> None:
        """Every complete output is valid; by ``local`` every output is complete."""
        spec = checked(name)
        result = constrain.generate(TableModel(TOKENS), "a", spec, method=method, max_tokens=40, seed=seed)
        assert result.is_complete or method == "rejection"
        if result.is_complete:
            jsonschema.Draft202012Validator(SCHEMAS[name]).validate(json.loads(result.text))
            assert spec.matches(result.text)

    def test_samples(self, name: str) -> None:
        """Samples are valid."""
        spec, rng = checked(name), np.random.default_rng(1)
        for _ in range(10):
            jsonschema.Draft202012Validator(SCHEMAS[name]).validate(json.loads(spec.sample(rng)))


def test_an_item_that_repeats_is_refused_at_once() -> None:
    """The second of two equal items ends where the text is refused, and the schema's place is named."""
    spec = checked("unique")
    found = spec.explain("[[1],[1],[2]]")
    assert not found.ok
    assert found.offset == len("[[1],[1")
    assert found.pointer == "#/uniqueItems"
    assert spec.explain("[[1],[2],[1,1]]").ok


def test_nothing_satisfies() -> None:
    """Where no document that fits is valid, the search ends with an error."""
    schema = {"type": "array", "items": {"type": "array", "maxItems": 0}, "uniqueItems": True, "minItems": 2}
    spec = constrain.json_schema(schema, unsupported="check", whitespace="compact")
    with pytest.raises((DeadEndError, constrain.EmptyLanguageError)):
        constrain.generate(TableModel(TOKENS), "a", spec, max_tokens=12)


def test_is_saved_and_compared_like_any_schema(tmp_path: Any) -> None:
    """Specs of equal schemas are equal, and a saved one is checked again when it is loaded."""
    model = TableModel(TOKENS)
    spec = checked("unique")
    assert spec == checked("unique")
    constrain.compile(spec, model.vocabulary).save(tmp_path / "spec")
    again = constrain.CompiledSpec.load(tmp_path / "spec", model.vocabulary).spec
    assert not again.matches("[[1],[1]]")
    assert again.matches("[[1],[2]]")


def test_tools_are_checked() -> None:
    """Arguments of tools satisfy what a grammar can't say of their schemas."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": UNIQUE}}}
    with pytest.raises(UnsupportedFeatureError, match="uniqueItems"):
        constrain.tool_calls([tool])
    spec = constrain.tool_calls([tool, {"name": "g"}], unsupported="check", tool_choice="required")
    again = pickle.loads(pickle.dumps(spec))
    answer = '<tool_call>\n{{"name": "f", "arguments": {{"a": {}}}}}\n</tool_call>'
    for found in (spec, again):
        assert found.matches(answer.format("[[1],[2]]"))
        assert not found.matches(answer.format("[[1],[1]]"))
        assert found.matches('<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>')
    assert "uniqueItems" in str(spec.explain(answer.format("[[1],[1]]")))
    assert spec.without_tools("f").checks == ()


@pytest.mark.parametrize(
    ("tag", "taken", "refused"),
    [
        (
            {
                "triggers": ["<f"],
                "structures": [{"begin": "<f>", "schema": UNIQUE, "end": "</f>"}],
            },
            ["", "a b", "a<f>[[1],[2]]</f>b", "<f>[]</f><f>[[1]]</f>", "a<f>[[1]]</f>[[1],[1]]"],
            ["a<f>[[1],[1]]</f>b", "<f>[[1]]</f><f>[[2],[2]]</f>"],
        ),
        (
            {
                "type": "sequence",
                "elements": [
                    {"type": "const_string", "value": "x"},
                    {
                        "type": "tags_with_separator",
                        "separator": ",",
                        "tags": [
                            {
                                "begin": "<",
                                "content": {
                                    "type": "or",
                                    "elements": [
                                        {"type": "json_schema", "json_schema": UNIQUE},
                                        {"type": "regex", "pattern": "a+"},
                                    ],
                                },
                                "end": ">",
                            }
                        ],
                    },
                    {"type": "star", "content": {"type": "json_schema", "json_schema": UNIQUE}},
                ],
            },
            ["x", "x<aa>,<[[1],[2]]>", "x[[1]][[1]]", "x<a>[]"],
            ["x<aa>,<[[1],[1]]>", "x[[1],[1]]", "x[][[2],[2]]"],
        ),
        (
            {
                "type": "tag",
                "begin": "(",
                "content": {
                    "type": "sequence",
                    "elements": [
                        {"type": "json_schema", "json_schema": UNIQUE},
                        {"type": "any_text", "excludes": ["b"]},
                    ],
                },
                "end": ["))", "]]"],
            },
            ["([]))", "([[1]]a]]", "([]c[2]))"],
            ["([[1],[1]]a))"],
        ),
    ],
)
def test_structural_tags_are_checked(tag: object, taken: list[str], refused: list[str]) -> None:
    """The contents of tags satisfy what a grammar can't say of their schemas."""
    spec = constrain.structural_tag(tag, unsupported="check", whitespace="compact")
    assert [text for text in taken if not spec.matches(text)] == []
    assert [text for text in refused if spec.matches(text)] == []
    plain = [text for text in refused if spec.passes(text.encode())]
    assert plain == []  # the grammar takes them
    for text in refused:
        found = spec.explain(text)
        assert found.pointer == "#/uniqueItems"
    rng = np.random.default_rng(3)
    assert all(spec.matches(spec.sample(rng, max_bytes=200)) for _ in range(5))


def test_processors_refuse() -> None:
    """transformers' own ``generate`` never takes tokens back, so its processor refuses such specs."""
    processor = pytest.importorskip("constrain.backends.hf", reason="needs the extra 'hf'")
    compiled = constrain.compile(checked("unique"), TableModel(TOKENS).vocabulary)
    with pytest.raises(BackendError, match="cannot enforce the checks"):
        processor.LogitsProcessor(compiled)


def test_endless_exponents_are_no_members() -> None:
    """A number that no decimal can hold is refused, without an error."""
    spec = constrain.json_schema(
        {"type": "array", "items": {"type": ["number", "array"]}, "uniqueItems": True}, unsupported="check"
    )
    if not spec.checks:
        pytest.skip("the grammar says all of it")
    assert spec.matches("[1e99999, 2e99999, []]")
    assert not spec.matches("[1e99999, 10e99998]")
    assert not spec.matches(f"[1e{'9' * 30}]")
    assert spec.explain(f"[1e{'9' * 30}]").offset > 0


@pytest.mark.parametrize(
    ("value", "divisor", "expected"),
    [
        (Decimal("0.3"), 0.1, True),
        (Decimal("0.35"), 0.1, False),
        (Decimal("1e999999"), 3, False),
        (Decimal("3e999999"), 3, True),
        (Decimal("1e-999999"), 3, False),
        (Decimal("0e-999999"), 3, True),
        (Decimal("7.50"), 2.5, True),
        (10**400, 7, False),
    ],
)
def test_multiples_are_exact(value: Any, divisor: Any, expected: bool) -> None:
    """Decimals are exact, and exponents of any size take no time."""
    assert is_multiple(value, divisor) is expected


@pytest.mark.parametrize(("order", "takes"), [("any", False), ("schema", True)])
def test_names_differ_where_a_check_decides_everything(order: str, takes: bool) -> None:
    """The grammar of any value keeps what ``property_order="any"`` promises: no name comes twice."""
    watch = Watch(Limits())
    options = SchemaOptions(unsupported="check", property_order=order)
    spec = Spec.from_grammar(any_value({}, "draft2020-12", options, watch).grammar)
    assert spec.matches('[{"a":1,"b":{"a":2}}]')
    assert spec.matches('[{"a":1,"a":2}]') is takes
    assert spec.matches('{"x":{"b":1,"\\u0062":2}}') is takes


def test_what_is_left_open_keeps_its_type() -> None:
    """Where nothing of a schema is regular enough, its grammar still has values of its type alone."""
    any_of = [{"allOf": [{"not": {"multipleOf": 6}}, {"not": {"multipleOf": 7}}]}, {"multipleOf": 44}]
    schema = {
        "type": "number",
        "allOf": [
            {"anyOf": [{"multipleOf": 33}, {"multipleOf": 12}, {"multipleOf": 77}]},
            {"anyOf": any_of},
            {"anyOf": [{"not": {"multipleOf": 11}}, {"multipleOf": 13}]},
            {"not": {"multipleOf": 8}},
        ],
    }
    spec = constrain.json_schema(schema, unsupported="check")
    assert spec.checks
    assert not spec.may_begin(b'"')
    assert not spec.may_begin(b"[")
    assert spec.matches("4004")
    assert not spec.matches("4005")
