"""The JSON Schema front end, keyword by keyword, on the slow matcher."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from constrain.grammars.errors import EmptyLanguageError, SpecError
from constrain.grammars.json_schema.build import SchemaOptions, schema_grammar
from constrain.grammars.limits import Limits, Watch
from tests.reference.json_documents import language

# Schema, texts of the language, others.
CASES: list[tuple[Any, Sequence[str], Sequence[str]]] = [
    # any type
    (
        True,
        ["1", '"a"', "null", '{"a":[1,{"b":null}]}', "[]", "-0.5e3"],
        ["", "{", "tru", "[1,]", "01", "\n1"],
    ),
    ({}, ["1", "{}"], ["", "NaN"]),
    ({"type": "null"}, ["null"], ["0", '""', "false"]),
    ({"type": "boolean"}, ["true", "false"], ["0", "True"]),
    ({"type": ["integer", "null"]}, ["3", "-0", "null"], ["1.0", '"3"', "1e1", "-", "00"]),
    ({"type": "number"}, ["3", "-0", "1.50", "2e10", "1E-5"], ["1.", ".5", "+1", "0x1", "1e", "Infinity"]),
    ({"const": 'a\nb"é'}, ['"a\\nb\\"é"', '"a\\u000ab\\u0022\\u00e9"'], ['"a\nb\\"é"', '"\\u0061"']),
    ({"const": 1.0}, ["1", "1.0"], ["1.00", "true"]),
    ({"const": 2}, ["2"], ["2.0", "02"]),
    ({"const": 1e300}, ["1e+300", "1" + 300 * "0"], ["1e300"]),
    ({"const": {"b": [1, {}], "a": None}}, ['{"b":[1,{}],"a":null}'], ['{"a":null,"b":[1,{}]}', "{}"]),
    ({"enum": ["a", "ab", 1, None, [2]]}, ['"a"', '"ab"', "1", "null", "[2]"], ['"b"', "[]", "2", '"']),
    ({"enum": ["a", 1, 2, True, []], "type": ["string", "integer"]}, ['"a"', "2"], ["true", "[]"]),
    ({"enum": [1, 2, 3, "abc", "d"], "minimum": 2, "maxLength": 2}, ["2", "3", '"d"'], ["1", '"abc"']),
    ({"enum": ["a1", "b"], "pattern": "[0-9]"}, ['"a1"'], ['"b"']),
    ({"enum": [1, True], "const": 1}, ["1"], ["true", "1.0"]),
    # numbers
    ({"type": "integer", "minimum": -7}, ["-7", "0", "15"], ["-8", "-07", "1.5", "-"]),
    ({"type": "integer", "exclusiveMinimum": 0, "maximum": 12}, ["1", "9", "12"], ["0", "13", "-1", "01"]),
    (
        {"type": "number", "minimum": -2, "maximum": 2},
        ["-2", "1.999", "2.0", "-0.5"],
        ["2.01", "-2.1", "1e0"],
    ),
    ({"minimum": 3}, ["3", '"x"', "null", "[]", "1e+22"], ["2", "2.9", "3e-1"]),
    ({"minimum": 0, "maximum": 1}, ["1e-06", "1", "9.5E-1"], ["1e0", "1e1", "-1e-9"]),
    ({"type": "number", "multipleOf": 1}, ["3", "-4"], ["1.5"]),
    ({"type": "integer", "multipleOf": 0.5}, ["3"], ["1.5"]),
    # strings
    (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"a\\n😀"', '"\\u00e9\\ud83d\\ude00"'],
        ['"a"', '"abcd"'],
    ),
    ({"maxLength": 1}, ['"a"', "12", '""'], ['"ab"']),
    ({"type": "string", "pattern": "[0-9]{2}"}, ['"12"', '"room 12b"', '"\\u0031\\u0032"'], ['"a1b2"', '""']),
    ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ['"a"', '"aa"'], ['"aaa"', '""', '"b"']),
    ({"type": "string", "pattern": "^(ab)*$", "minLength": 3}, ['"abab"'], ['"ab"', '"aba"']),
    ({"type": "string", "pattern": ".*"}, ['""', '"a\\n"'], ["1"]),
    ({"type": "string", "pattern": "^(?!a)[ab]$"}, ['"b"', '"\\u0062"'], ['"a"', '"c"']),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"}, ['"ab"', '"ba"'], ['"a"', '"b"']),
    ({"type": "string", "format": "date", "pattern": "^2024"}, ['"2024-02-29"'], ['"2023-01-01"']),
    # arrays
    ({"type": "array"}, ["[]", '[1,"a",[{}]]'], ["{}", "[1,]", "[,]"]),
    ({"items": {"type": "integer"}}, ["[]", "[1,2]", '"x"'], ['["a"]', "[1,null]"]),
    ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    (
        {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 3},
        ["[null]", "[null,null,null]"],
        ["[]", "[null,null,null,null]"],
    ),
    ({"type": "array", "minItems": 2}, ["[1,2]", "[[],[],[]]"], ["[]", "[1]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        ["[]", "[1]", '[1,"a",null]'],
        ['["a"]', "[1,2]"],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}],
            "items": {"type": "null"},
            "minItems": 1,
            "maxItems": 3,
        },
        ["[1]", "[1,null]", "[1,null,null]"],
        ["[]", "[1,1]", "[1,null,null,null]"],
    ),
    ({"type": "array", "prefixItems": [True, False]}, ["[]", "[1]"], ["[1,2]"]),
    ({"type": "array", "uniqueItems": False}, ["[1,1]"], ["1"]),
    # objects
    ({"type": "object"}, ["{}", '{"a":1,"a":2}'], ["[]", "{1:2}", '{"a":1,}']),
    ({"type": "object", "properties": {}, "additionalProperties": False}, ["{}"], ['{"a":1}', "null"]),
    (
        {"properties": {"a": {"type": "integer"}}},
        ["{}", '{"a":1}', '{"b":"x"}', '{"a":1,"b":[]}', "3"],
        ['{"a":"x"}', '{"b":1,"a":1}'],
    ),
    (
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]},
        ['{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":1,"d":1}'],
        ["{}", '{"a":1}', '{"b":1,"a":1}'],
    ),
    (
        {"type": "object", "required": ["id"]},
        ['{"id":1}', '{"z":null,"id":"x"}', '{"id":1,"z":[]}'],
        ["{}", '{"x":1}'],
    ),
    (
        {"type": "object", "required": ["b", "a"], "additionalProperties": {"type": "null"}},
        ['{"b":null,"a":null}', '{"x":null,"b":null,"y":null,"a":null}'],
        ['{"b":1,"a":null}', '{"b":null}'],
    ),
    ({"type": "object", "properties": {"a": False}}, ["{}", '{"b":1}'], ['{"a":1}']),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, ["{}", '{"x":1,"y":2}'], ['{"x":"y"}']),
    ({"type": "object", "minProperties": 1}, ['{"a":1}'], ["{}"]),
    ({"type": "object", "minProperties": 1, "properties": {"a": {}}}, ['{"a":1}', '{"b":1}'], ["{}"]),
    ({"type": "object", "maxProperties": 0}, ["{}"], ['{"a":1}']),
    (
        {"type": "object", "maxProperties": 1, "required": ["a"], "properties": {"a": {}, "b": {}}},
        ['{"a":1}'],
        ['{"a":1,"b":1}', '{"a":1,"c":1}'],
    ),
    (
        {
            "type": "object",
            "maxProperties": 2,
            "properties": {"a": {}, "b": {}},
            "additionalProperties": False,
        },
        ["{}", '{"a":1,"b":1}'],
        ['{"c":1}'],
    ),
    # names by pattern
    (
        {
            "type": "object",
            "properties": {"ab": {"minimum": 2}},
            "patternProperties": {"^a": {"type": "integer"}, "b$": {"maximum": 9}},
            "additionalProperties": {"type": "null"},
        },
        ["{}", '{"ab":5}', '{"a":1,"b":"x","c":null}', '{"acb":9}'],
        ['{"ab":1}', '{"ab":10}', '{"a":"x"}', '{"acb":10}', '{"acb":"x"}', '{"c":1}', '{"\\u0061":"x"}'],
    ),
    (
        {
            "type": "object",
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
            "required": ["x-a"],
        },
        ['{"x-a":1}', '{"x-b":1,"x-a":1}'],
        ["{}", '{"x-b":1}', '{"x-a":1,"y":1}'],
    ),
    ({"type": "object", "propertyNames": {"maxLength": 1}}, ["{}", '{"a":1,"b":2}'], ['{"ab":1}']),
    ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, ['{"a":1,"b":2}', '{"b":1}'], ['{"c":1}']),
    # counts
    (
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2}
        | {"additionalProperties": False},
        ['{"a":1,"b":1}', '{"b":1,"c":1}', '{"a":1,"b":1,"c":1}'],
        ["{}", '{"a":1}'],
    ),
    ({"type": "object", "maxProperties": 2}, ["{}", '{"a":1,"b":1}'], ['{"a":1,"b":1,"c":1}']),
    ({"type": "array", "contains": {"const": 1}}, ["[1]", "[2,1,2]"], ["[]", "[2]"]),
    (
        {"type": "array", "contains": {"type": "null"}, "minContains": 2, "maxContains": 2, "maxItems": 3},
        ["[null,null]", "[1,null,null]"],
        ["[null]", "[null,null,null]", "[1,2,null,null]"],
    ),
    (
        {"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
        ["[]", '["a",1,"b"]', '["b"]'],
        ['["a","a"]', '["a",1,"b",1]'],
    ),
    ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}, ["[true,false]"], ["[true,true]"]),
    (
        {"type": "array", "items": {"type": ["number", "string"]}, "uniqueItems": True},
        ['[1,1.5,"1",-0.5,0]', "[]"],
        ["[1,1.0]", "[0,-0]", "[2,2]", "[1.5,1.50]", '["a","\\u0061"]', "[null]"],
    ),
    (
        {"type": "array", "items": {"enum": [*range(80), 1.5, 'a"', None]}, "uniqueItems": True},
        ['[1.5,79,"a\\"",null]', "[0,1]"],
        ["[1,1]", "[1.5,2,1.5]", '["a\\"","a\\""]', "[80]", "[null,null]"],
    ),
    (
        {
            "type": "array",
            "items": {"anyOf": [{"type": "string", "minLength": 2}, {"enum": ["a", "bc"]}]},
            "uniqueItems": True,
        },
        ['["a","bc","de"]'],
        ['["bc","bc"]', '["a","a"]', '["d"]'],
    ),
    ({"type": "array", "maxItems": 1, "uniqueItems": True}, ["[]", '["x"]'], ["[1,2]"]),
    # multiples
    ({"type": "integer", "multipleOf": 7}, ["0", "-14", "700"], ["1", "15", "07"]),
    ({"type": "number", "multipleOf": 0.01}, ["1", "0.05", "-3.10", "0.000"], ["0.001", "1.005"]),
    ({"multipleOf": 2.5}, ["5", "7.5", "-2.50", "5e3", '"x"'], ["1", "2.55"]),
    (
        {"type": "integer", "multipleOf": 300, "minimum": 1, "maximum": 1000},
        ["300", "900"],
        ["0", "1200", "30"],
    ),
    # complements
    ({"not": {"type": ["string", "object"]}}, ["1", "null", "[]"], ['"a"', "{}"]),
    ({"not": {"const": True}}, ["false", "1"], ["true"]),
    (
        {"not": {"enum": ["a", 2, [1], {"a": 1}]}},
        ['"b"', "3", "[1,1]", '{"a":2}', "{}"],
        ['"a"', "2", "[1]", '{"a":1}'],
    ),
    ({"type": "integer", "not": {"minimum": 3}}, ["2"], ["3"]),
    ({"type": "number", "not": {"type": "integer"}}, ["1.5", "1e-7"], ["1", "2.0"]),
    ({"type": "integer", "not": {"multipleOf": 3}}, ["1", "-2"], ["3", "0"]),
    ({"type": "string", "not": {"pattern": "^a"}}, ['"ba"', '""'], ['"a"', '"\\u0061"']),
    ({"type": "string", "not": {"format": "ipv4"}}, ['"1.2.3"'], ['"1.2.3.4"']),
    ({"type": "object", "not": {"required": ["a"]}}, ["{}", '{"b":1}'], ['{"a":1}']),
    (
        {"type": "object", "not": {"properties": {"a": {"type": "null"}}, "required": ["b"]}},
        ["{}", '{"a":1}', '{"a":1,"b":1}'],
        ['{"b":1}', '{"a":null,"b":1}'],
    ),
    (
        {"type": "object", "not": {"additionalProperties": {"type": "null"}}},
        ['{"a":1}', '{"a":null,"b":1}'],
        ["{}", '{"a":null}', '{"a":1,"a":null}'],
    ),
    ({"type": "array", "not": {"items": {"type": "null"}}}, ["[1]", "[null,1,null]"], ["[]", "[null]"]),
    ({"not": {"anyOf": [{"type": "string"}, {"minimum": 3}]}}, ["2", "-1.5"], ['"a"', "3", "null"]),
    ({"not": {"not": {"type": "null"}}}, ["null"], ["1"]),
    # cases
    (
        {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
        ["1", "2.5", '"x"'],
        ["3", "1.5"],
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"b":1}'],
        ["{}", '{"a":1,"b":1}'],
    ),
    (
        {"if": {"type": "integer"}, "then": {"minimum": 3}, "else": {"type": "string"}},
        ["3", '"x"'],
        ["2", "1.5", "null"],
    ),
    (
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b":1}', '{"a":1,"b":1}'],
        ['{"a":1}'],
    ),
    (
        {"type": "object", "dependentSchemas": {"a": {"maxProperties": 1}}},
        ["{}", '{"a":1}', '{"b":1,"c":1}'],
        ['{"a":1,"b":1}'],
    ),
    # what is unevaluated
    (
        {
            "type": "object",
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {"const": 1}}}, {"required": ["c"], "properties": {"c": {}}}],
            "unevaluatedProperties": False,
        },
        ['{"a":1,"b":1}', '{"b":1,"c":1}', '{"a":2}'],
        ['{"d":1}', '{"b":2}', '{"b":2,"c":1}'],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{}],
            "contains": {"const": 1},
            "unevaluatedItems": {"type": "null"},
        },
        ["[2,1]", "[1,null,1]"],
        ["[2]", "[1,2]"],
    ),
    # in place
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ['"a"', "null"], ["1"]),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "additionalProperties": False,
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ['{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
        ["{}", '{"c":1}', '{"a":"x"}'],
    ),
    ({"anyOf": [{"minimum": 3}, {"maximum": 1}], "type": "integer"}, ["3", "1", "-5"], ["2"]),
    (
        {
            "allOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "type": "object",
        },
        ['{"a":1,"b":"x"}'],
        ['{"a":1}', '{"a":1,"b":2}'],
    ),
    (
        {
            "allOf": [
                {"properties": {"a": {"minimum": 2}}},
                {"properties": {"a": {"maximum": 3}}, "additionalProperties": False},
            ],
            "type": "object",
        },
        ["{}", '{"a":2}'],
        ['{"a":4}', '{"b":1}'],
    ),
    ({"allOf": [{"type": ["string", "null"]}, {"type": ["null", "array"]}]}, ["null"], ['"a"', "[]"]),
    (
        {"allOf": [{"items": {"type": "integer"}}, {"prefixItems": [{"minimum": 2}]}], "type": "array"},
        ["[]", "[2,0]"],
        ["[1]", '[2,"a"]'],
    ),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"1"'], ["null"]),
    (
        {"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}, {"const": None}]},
        ['"a"', '"b"', "null"],
        ['"c"'],
    ),
    ({"oneOf": [{"maximum": 1}, {"exclusiveMinimum": 1}], "type": "number"}, ["1", "1.5"], ["null"]),
    ({"oneOf": [{"maxLength": 1}, {"minLength": 3}], "type": "string"}, ['"a"', '"abc"'], ['"ab"']),
    (
        {
            "oneOf": [
                {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1},
                {"type": "array", "items": {"const": 2}},
            ]
        },
        ["[1,2]", "[]", "[2,2]"],
        ["[3]"],
    ),
    (
        {
            "type": "object",
            "properties": {"kind": {"enum": ["go", "say"]}},
            "required": ["kind"],
            "oneOf": [
                {"properties": {"kind": {"const": "go"}, "to": {"type": "string"}}, "required": ["to"]},
                {"properties": {"kind": {"const": "say"}, "text": {"type": "string"}}, "required": ["text"]},
            ],
        },
        ['{"kind":"go","to":"hall"}', '{"kind":"say","text":"hi"}'],
        ['{"kind":"go"}', '{"kind":"say","to":"hall"}'],
    ),
    # references
    ({"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "minimum": 2}, ["2"], ["1", '"a"']),
    (
        {"type": "object", "properties": {"x": {"$ref": "#"}}, "additionalProperties": False},
        ["{}", '{"x":{"x":{}}}'],
        ['{"x":1}'],
    ),
    (
        {
            "$defs": {"t/~ é%": {"type": "null"}},
            "items": {"$ref": "#/$defs/t~1~0%20%C3%A9%25"},
            "type": "array",
        },
        ["[null]"],
        ["[1]"],
    ),
    (
        {"items": {"$ref": "#n"}, "type": "array", "$defs": {"x": {"$anchor": "n", "type": "null"}}},
        ["[null]"],
        ["[1]"],
    ),
    (
        {
            "$id": "http://x.example/a",
            "$ref": "b",
            "$defs": {"b": {"$id": "b", "$ref": "#/$defs/c", "$defs": {"c": {"type": "null"}}}},
        },
        ["null"],
        ["1"],
    ),
    # annotations and words without meaning
    (
        {
            "title": 1,
            "description": [],
            "default": {},
            "examples": 1,
            "$comment": 0,
            "x": {"type": 3},
            "type": "null",
        },
        ["null"],
        ["1"],
    ),
]


@pytest.mark.parametrize(
    ("schema", "members", "others"), CASES, ids=[json.dumps(case[0])[:60] for case in CASES]
)
def test_keywords_mean_what_json_schema_says(
    schema: Any, members: Sequence[str], others: Sequence[str]
) -> None:
    """Texts are taken exactly if they are compact JSON that the schema describes, in declared order."""
    matcher = language(schema, whitespace="compact")
    for text in members:
        assert matcher.accepts(text.encode()), text
    for text in others:
        assert not matcher.accepts(text.encode()), text


OLDER: list[tuple[str, Any, Sequence[str], Sequence[str]]] = [
    ("draft4", {"type": "number", "minimum": 1, "exclusiveMinimum": True}, ["1.5"], ["1"]),
    ("draft4", {"type": "number", "maximum": 1, "exclusiveMaximum": False}, ["1"], ["1.5"]),
    ("draft4", {"const": 1}, ["2"], []),
    ("draft7", {"const": 1}, ["1"], ["2"]),
    (
        "draft7",
        {"type": "array", "items": [{"type": "integer"}], "additionalItems": False},
        ["[1]", "[]"],
        ["[1,2]"],
    ),
    (
        "draft6",
        {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}},
        ["[1,null]"],
        ["[1,2]"],
    ),
    (
        "draft7",
        {"type": "array", "items": {"type": "integer"}, "additionalItems": False},
        ["[1,2]"],
        ["[null]"],
    ),
    (
        "draft7",
        {"definitions": {"a": {"type": "integer"}}, "$ref": "#/definitions/a", "minimum": 2},
        ["1"],
        ["null"],
    ),
    ("draft2019-09", {"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "minimum": 2}, ["2"], ["1"]),
    ("draft2019-09", {"type": "array", "items": [{"type": "integer"}]}, ["[1,null]"], ["[null]"]),
]


@pytest.mark.parametrize(("draft", "schema", "members", "others"), OLDER)
def test_older_drafts_keep_their_meaning(
    draft: str, schema: Any, members: Sequence[str], others: Sequence[str]
) -> None:
    """Keywords mean what the draft in use says, whether it is named by the option or by $schema."""
    uri = {
        "draft4": "http://json-schema.org/draft-04/schema#",
        "draft6": "http://json-schema.org/draft-06/schema#",
        "draft7": "http://json-schema.org/draft-07/schema",
        "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    }[draft]
    for matcher in (
        language(schema, draft=draft),
        language({"$schema": uri, **schema}),
        language({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, draft=draft),
    ):
        for text in members:
            assert matcher.accepts(text.encode()), text
        for text in others:
            assert not matcher.accepts(text.encode()), text


def test_flexible_whitespace_is_bounded_and_inside_only() -> None:
    """Blanks may stand between lexemes, at most so many in a row, not before the first or after the last."""
    matcher = language({"type": "array", "items": {"type": "integer"}}, max_whitespace=3)
    for text in ("[1,2]", "[ 1 , 2 ]", "[\n\t\r1,2]", "[]", "[   ]"):
        assert matcher.accepts(text.encode()), text
    for text in (" [1]", "[1] ", "[    1]", "[1 2]", "[1,2\x0b]"):
        assert not matcher.accepts(text.encode()), text
    matcher = language({"type": "string"})
    assert not matcher.accepts(b' "a"')


def test_whitespace_can_be_none_or_a_pattern() -> None:
    """Compact texts have no blanks; a pattern says which there may be."""
    matcher = language({"type": "array"}, whitespace="compact")
    assert matcher.accepts(b"[1,2]")
    assert not matcher.accepts(b"[1, 2]")
    matcher = language({"type": "array"}, whitespace=r"(\n {0,2})?")
    assert matcher.accepts(b"[\n  1,\n 2\n]")
    assert not matcher.accepts(b"[ 1]")
    assert language({"type": "array"}, whitespace="").accepts(b"[1,2]")


@pytest.mark.parametrize("pattern", [" ", r"\s*", "a?", " +", "[ -a]*", "[", "\x0b?"])
def test_whitespace_patterns_match_blanks_only(pattern: str) -> None:
    """A whitespace pattern that needs a blank, or allows other characters, is refused."""
    with pytest.raises(SpecError):
        language({"type": "array"}, whitespace=pattern)


def test_integers_any_takes_whole_numbers_in_other_forms() -> None:
    """With integers="any", 1.0 and 1e2 are integers; a bounded one may have a fraction of zeros."""
    matcher = language({"type": "integer"}, integers="any")
    for text in ("1", "-1.0", "1.00e2", "1E+2", "0.0"):
        assert matcher.accepts(text.encode()), text
    for text in ("1.5", "1e-2", "1.", "1.01"):
        assert not matcher.accepts(text.encode()), text
    matcher = language({"type": "integer", "minimum": 2, "maximum": 30}, integers="any")
    for text in ("2", "2.0", "30.000"):
        assert matcher.accepts(text.encode()), text
    for text in ("1.0", "2.5", "30.001", "31", "2.", "3e0"):
        assert not matcher.accepts(text.encode()), text
    assert language({"const": 1}, integers="any").accepts(b"1.0")


def test_additional_names_are_not_declared_ones_in_disguise() -> None:
    """No spelling of a declared name passes for an additional one; other names may be escaped."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "é/": {"type": "null"}, "b\n": False},
    }
    matcher = language(schema, whitespace="compact")
    for text in (
        '{"a":1}',
        '{"é/":null}',
        '{"\\u00e9/":null}',
        '{"ab":"x"}',
        '{"A":"x"}',
        '{"\\u00fcb":1}',
        '{"e\\/":1}',
        '{"a\\n":1}',
        '{"":1}',
    ):
        assert matcher.accepts(text.encode()), text
    for text in (
        '{"a":"x"}',
        '{"\\u0061":"x"}',
        '{"\\u0061":1}',
        '{"é/":1}',
        '{"\\u00E9/":1}',
        '{"é\\/":1}',
        '{"\\u00e9\\u002f":1}',
        '{"b\\n":1}',
        '{"b\\u000A":1}',
        '{"\\u0062\\n":1}',
    ):
        assert not matcher.accepts(text.encode()), text


def test_json_text_is_read_as_its_value() -> None:
    """A schema may be given as JSON text."""
    assert language('{"type": "array", "maxItems": 0}').accepts(b"[]")
    assert language("true").accepts(b"1")


def test_equal_scalars_share_one_terminal() -> None:
    """Equal subschemas make one terminal, whatever their annotations, and constants of branches make one."""
    schema = {
        "properties": {
            name: {"type": "string", "pattern": "^a", "maxLength": 5, "title": name} for name in "abcdefgh"
        },
        "additionalProperties": False,
        "type": "object",
    }
    grammar = schema_grammar(schema, SchemaOptions(), watch=Watch(Limits())).grammar
    assert sum("matching" in terminal.name for terminal in grammar.terminals) == 1
    schema = {"oneOf": [{"const": f"c{i}", "title": str(i)} for i in range(50)]}
    grammar = schema_grammar(schema, SchemaOptions(), watch=Watch(Limits())).grammar
    assert sum('"c0"' in terminal.name for terminal in grammar.terminals) == 1


def test_schemas_are_shared_not_copied() -> None:
    """A schema referred to many times is one rule, so a chain of references does not explode."""
    definitions: dict[str, Any] = {"d0": {"type": "object", "properties": {"x": {"type": "null"}}}}
    for i in range(1, 30):
        reference = {"$ref": f"#/$defs/d{i - 1}"}
        definitions[f"d{i}"] = {"type": "object", "properties": {"l": reference, "r": dict(reference)}}
    grammar = schema_grammar(
        {"$defs": definitions, "$ref": "#/$defs/d29"}, SchemaOptions(), watch=Watch(Limits())
    ).grammar
    assert len(grammar.rules) < 60


@pytest.mark.parametrize("keyword", ["items", "anyOf", "properties"])
def test_deep_schemas_need_no_stack(keyword: str) -> None:
    """Schemas 900 levels deep are built."""
    schema: Any = {"type": "string"}
    for _ in range(900):
        schema = {keyword: {"items": schema, "anyOf": [schema], "properties": {"a": schema}}[keyword]}
    grammar = schema_grammar(schema, SchemaOptions(), watch=Watch(Limits())).grammar
    assert grammar.rules


def test_large_schemas_are_built_in_time() -> None:
    """Ten thousand properties, constants or required names take well under the time limit."""
    names = [f"p{i}" for i in range(10_000)]
    for schema in (
        {"properties": {name: {"type": "integer"} for name in names}},
        {"properties": {name: {"type": "integer"} for name in names}, "required": names, "type": "object"},
        {"enum": names},
        {"oneOf": [{"const": name} for name in names[:500]]},
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": name}}, "required": ["k"]}
                for name in names[:500]
            ]
        },
    ):
        started = time.perf_counter()
        schema_grammar(schema, SchemaOptions(), watch=Watch(Limits()))
        assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "minimum": 2.2, "maximum": 2.8},
        {"type": "number", "minimum": 2, "exclusiveMaximum": 2},
        {"type": "string", "minLength": 2, "maxLength": 1},
        {"type": "string", "pattern": "^aaa$", "maxLength": 2},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "prefixItems": [True, False], "minItems": 2},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "properties": {"b": {}}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "required": ["a", "b"], "maxProperties": 1},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"const": 1}, {"const": 2}]},
        {"type": "string", "const": 1},
        {"enum": ["abc"], "maxLength": 2},
        {"anyOf": [False, False]},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {
            "$defs": {
                "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]},
                "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 2},
            },
            "$ref": "#/$defs/a",
        },
        {"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 1},
        {"type": "object", "additionalProperties": False, "minProperties": 1},
    ],
)
def test_empty_languages_are_errors(schema: Any) -> None:
    """A schema that nothing satisfies is an error that says so."""
    with pytest.raises(EmptyLanguageError) as caught:
        language(schema)
    assert caught.value.pointer is not None
    assert "Nothing satisfies the schema" in str(caught.value)


def test_unproductive_parts_are_left_out() -> None:
    """An optional property whose schema can only recurse cannot occur; the rest of the schema stands."""
    schema = {
        "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "null"}},
        "additionalProperties": False,
    }
    matcher = language(schema)
    assert matcher.accepts(b'{"b":null}')
    assert not matcher.accepts(b'{"a":{}}')
