"""Four judges of one document agree: masks, `Spec.matches`, and the libraries `jsonschema` and `jsonschema-rs`.

The documents are samples of the language, and made by random schemas' keywords; then they are changed a little.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import constrain
from constrain.errors import EmptyLanguageError, SpecError, UnsupportedFeatureError
from tests.grammars.test_json_schema_random import NAMES, NUMBERS, TEXTS, whole_schemas
from tests.laws.walks import allowed
from tests.reference.vocabularies import TokenList
from tests.strategies import fixed

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="needs the extra 'oracles'")

_JOINED = [
    '{"',
    '":',
    '": ',
    '","',
    "[[",
    "]]",
    "[{",
    "},",
    '""',
    ", ",
    "1,",
    "10",
    "ab",
    '"a',
    'b"',
    "true",
    '\\"',
    "{}",
]
OF_TYPE: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [False, True],
    "integer": [0, 1, 2.0, -3],
    "number": [0, 1.5, 10, 100],
    "string": TEXTS,
    "array": [[], [1], [1, 1], ["a", {}]],
    "object": [{}, {"a": 1}, {"b": "a", "x": None}],
}
TOKENS = TokenList(
    (*(bytes([b]) for b in range(256)), *(text.encode() for text in _JOINED), "é".encode(), None), (275,)
)


def guided(schema: Any, root: dict[str, Any], rng: Random, depth: int = 0) -> Any:
    """Return a value made by some of the keywords of ``schema``; it may well be invalid."""
    if not isinstance(schema, dict) or depth > 6:
        return rng.choice([None, *NUMBERS, *TEXTS, [], {}])
    for keyword in rng.sample(sorted(schema), len(schema)):
        value = schema[keyword]
        match keyword:
            case "const":
                return value
            case "enum":
                return rng.choice(value)
            case "$ref":
                return guided(root["$defs"][value[-1]], root, rng, depth + 1)
            case "anyOf" | "oneOf" | "allOf":
                return guided(rng.choice(value), root, rng, depth + 1)
            case "if" | "then" | "else":
                return guided(value, root, rng, depth + 1)
            case "properties" | "required" | "dependentRequired" | "dependentSchemas" | "minProperties":
                inner = schema.get("properties", {})
                names = {*inner, *schema.get("required", ()), *rng.sample(NAMES, rng.randrange(3))}
                members = [(name, guided(inner.get(name), root, rng, depth + 1)) for name in sorted(names)]
                rng.shuffle(members)
                return dict(members)
            case "items" | "prefixItems" | "contains" | "uniqueItems" | "minItems":
                kinds = [*schema.get("prefixItems", ()), schema.get("items"), schema.get("contains")]
                return [guided(one, root, rng, depth + 1) for one in kinds[: rng.randrange(4)]]
            case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
                return value + rng.choice([0, 0.5, -0.5, 1, -1, value])
            case "pattern" | "minLength" | "maxLength":
                return rng.choice(TEXTS)
            case "type":
                names = [value] if isinstance(value, str) else value
                return copy.deepcopy(rng.choice(OF_TYPE[rng.choice(names)]))
    return guided(None, root, rng)


def changed(document: Any, rng: Random) -> Any:
    """Return a document with one change somewhere."""
    document = copy.deepcopy(document)
    top = [document]
    holders: list[tuple[Any, Any]] = [(top, 0)]
    for holder, key in holders:
        inner = holder[key]
        keys = (
            list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        )
        holders += [(inner, one) for one in keys]
    holder, key = rng.choice(holders)
    inner = holder[key]
    if isinstance(inner, dict) and rng.random() < 0.7:
        if inner and rng.random() < 0.5:
            del inner[rng.choice(list(inner))]
        else:
            inner[rng.choice(NAMES)] = rng.choice([*NUMBERS, *TEXTS, None, [], {}])
    elif isinstance(inner, list) and rng.random() < 0.7:
        if inner and rng.random() < 0.5:
            del inner[rng.randrange(len(inner))]
        else:
            inner.append(rng.choice([*inner, *NUMBERS, *TEXTS]))
    elif isinstance(inner, str):
        holder[key] = rng.choice([inner + "a", inner[1:], "é" + inner, None])
    else:
        holder[key] = rng.choice([*NUMBERS, *TEXTS, None, True, [inner], {"a": inner}])
    return top[0]


def is_simple(document: Any) -> bool:
    """Are all numbers such that the libraries, which calculate with floats, are exact?"""
    todo = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            todo += [*node, *node.values()]
        elif isinstance(node, list):
            todo += node
        elif isinstance(node, int | float) and (abs(node) > 1e6 or node * 1024 % 1):
            return False
    return True


def walks(compiled: constrain.CompiledSpec, text: str, rng: Random) -> bool:
    """Do masks let ``text`` through, cut into tokens at random?"""
    data, at = text.encode(), 0
    matcher = compiled.matcher()
    while at < len(data):
        fitting = [i for i, token in enumerate(TOKENS.tokens) if token and data.startswith(token, at)]
        token_id = rng.choice(fitting)
        if token_id not in allowed(matcher, TOKENS.size):
            return False
        assert matcher.accept_token(token_id)
        at += len(TOKENS.tokens[token_id] or b"")
    return TOKENS.eos_token_ids[0] in allowed(matcher, TOKENS.size)


@fixed(250)
@given(whole_schemas(), st.randoms(use_true_random=False))
def test_four_judges_agree(schema: dict[str, Any], rng: Random) -> None:
    """Each document, made by the schema or changed, gets one answer from all."""
    try:
        spec = constrain.json_schema(schema, integers="any", property_order="any")
        compiled = constrain.compile(spec, TOKENS.build(), cache=False)
        samples = [json.loads(spec.sample(np.random.default_rng(rng.randrange(99)))) for _ in range(2)]
    except EmptyLanguageError:
        spec = compiled = None
        samples = []
    except UnsupportedFeatureError:
        return
    except SpecError as error:  # a reference that leads back to itself
        assert "leads back" in error.message
        return
    validator = jsonschema.Draft202012Validator(schema)
    second = jsonschema_rs.Draft202012Validator(schema)
    made = [*samples, *(guided(schema, schema, rng) for _ in range(4))]
    for document in filter(is_simple, [*made, *(changed(one, rng) for one in made)]):
        try:
            is_valid = validator.is_valid(document)
        except RecursionError:
            continue
        assert second.is_valid(document) == is_valid, document
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
        assert (spec is not None and spec.matches(text)) == is_valid, text
        assert (compiled is not None and walks(compiled, text, rng)) == is_valid, text
