"""E5: which texts are accepted, judged by independent programs."""

from __future__ import annotations

import itertools
import json
import random
import re

import jsonschema
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from constrain.spec import Spec
from tests import strategies
from tests.reference.grammar import ReferenceGrammar
from tests.reference.vocabularies import TokenList, one_byte_per_token, with_all_bytes

JSON_WORDS = with_all_bytes(
    [b'{"', b'":', b'",', b'"a":', b"null", b"}]", b"[[", b"\n  ", b"\xc3\xa9", b"12", b"\\u00"]
)


def accepts(compiled: constrain.CompiledSpec, tokens: TokenList, text: bytes, rng: random.Random) -> bool:
    """Is ``text`` a whole output, cut into tokens at random?"""
    by_length: dict[int, dict[bytes, int]] = {}
    for token_id, data in enumerate(tokens.tokens):
        if data and token_id not in tokens.eos_token_ids:
            by_length.setdefault(len(data), {})[data] = token_id
    matcher, at = compiled.matcher(), 0
    while at < len(text):
        choices = [ids[text[at : at + n]] for n, ids in by_length.items() if text[at : at + n] in ids]
        token_id = rng.choice(choices)
        if not matcher.accept_token(token_id):
            return False
        at += len(tokens.tokens[token_id] or b"")
    return matcher.is_accepting()


_REGEX_LEAVES = st.sampled_from(
    [
        "a",
        "b",
        "é",
        ".",
        "[ab]",
        "[^a]",
        "\\w",
        "\\d",
        "\\s",
        "ab",
        "(?:)",
        "\\.",
        "[a-z0-9]",
        "(?:a|bb|)",
        "$",
        "^",
    ]
)
_REGEXES = st.recursive(
    _REGEX_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + "|".join(parts) + ")"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0,30}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@strategies.fixed(150)
@given(_REGEXES, st.lists(st.text("ab é1.\n", max_size=6), min_size=8, max_size=8))
def test_regexes_agree_with_re(pattern: str, texts: list[str]) -> None:
    """A text is accepted exactly if ``re.fullmatch`` takes it."""
    oracle = re.compile(pattern)
    tokens = one_byte_per_token()
    texts += ["".join(t) for n in range(3) for t in itertools.product("ab1", repeat=n)]
    try:
        spec = constrain.regex(pattern)
        compiled = constrain.compile(spec, tokens.build(), cache=False)
    except constrain.EmptyLanguageError:
        assert not any(oracle.fullmatch(text) for text in texts)
        return
    except constrain.UnsupportedFeatureError:
        event("unsupported")
        return
    for text in texts:
        expected = bool(oracle.fullmatch(text))
        assert accepts(compiled, tokens, text.encode(), random.Random(0)) == expected, text
        assert spec.matches(text) == expected, text


@strategies.fixed(100)
@given(strategies.grammars())
def test_grammars_agree_with_the_reference(grammar: ir.Grammar) -> None:
    """The texts of a compiled grammar are the reference's, which agrees with Lark's Earley parser."""
    alphabet = b'ab(," '
    reference = ReferenceGrammar(grammar)
    tokens = one_byte_per_token()
    try:
        compiled = constrain.compile(Spec.from_grammar(grammar), tokens.build(), cache=False)
    except constrain.EmptyLanguageError:
        assert reference.is_empty
        return
    expected = set(reference.members(alphabet, 4))
    level = [(b"", compiled.matcher())]
    found = set()
    for _ in range(5):
        found |= {text for text, matcher in level if matcher.is_accepting()}
        after = []
        for (text, matcher), byte in itertools.product(level, alphabet):
            fork = matcher.fork()
            if fork.accept_token(byte):
                after.append((text + bytes([byte]), fork))
        level = after
    assert found == expected


@strategies.fixed(150)
@given(st.data())
def test_schemas_agree_with_jsonschema(data: st.DataObject) -> None:
    """A document is accepted exactly if a JSON Schema validator takes it, valid or with one place changed."""
    schema = data.draw(strategies.json_schemas())
    validator = jsonschema.Draft202012Validator(schema)
    document = data.draw(strategies.documents(schema))
    candidates = [document, *(data.draw(strategies.mutations(document)) for _ in range(4))]
    texts = [(data.draw(strategies.json_texts(d)), validator.is_valid(d)) for d in candidates]
    try:
        spec = constrain.json_schema(schema)
        compiled = constrain.compile(spec, JSON_WORDS.build(), cache=False)
    except constrain.EmptyLanguageError:
        event("empty")
        assert not any(valid for _, valid in texts)
        return
    rng = random.Random(1)
    for text, valid in texts:
        event(f"valid: {valid}")
        assert accepts(compiled, JSON_WORDS, text.encode(), rng) == valid, (json.dumps(schema), text)
        assert spec.matches(text) == valid, (json.dumps(schema), text)


@strategies.fixed(40)
@given(strategies.json_schemas(), st.randoms(use_true_random=False))
def test_random_outputs_are_valid(schema: strategies.Schema, rng: random.Random) -> None:
    """Whatever a random walk through the masks writes is JSON that the schema's validator takes."""
    try:
        compiled = constrain.compile(constrain.json_schema(schema), JSON_WORDS.build(), cache=False)
    except constrain.EmptyLanguageError:
        return
    validator = jsonschema.Draft202012Validator(schema)
    for _ in range(3):
        matcher, text = compiled.matcher(), b""
        bitmask = constrain.allocate_token_bitmask(1, JSON_WORDS.size)
        need = int(matcher.min_tokens_to_finish())
        for remaining in range(need + 12, -1, -1):
            if matcher.is_accepting() and rng.random() < 0.2:
                break
            matcher.fill_budget_bitmask(bitmask, 0, remaining=remaining + 1)
            choices = [
                t for t, d in enumerate(JSON_WORDS.tokens) if d and (int(bitmask[0, t >> 5]) >> (t & 31)) & 1
            ]
            if not choices:
                break
            token_id = rng.choice(choices)
            assert matcher.accept_token(token_id)
            text += JSON_WORDS.tokens[token_id] or b""
        assert matcher.is_accepting(), text
        validator.validate(json.loads(text))


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "01", "1.", ".5", "+1", "'a'", '"\t"', '"\\x"', "[1,]", "{}}", ""]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    """Texts that RFC 8259 does not allow are refused by the schema that allows everything."""
    compiled = constrain.compile(constrain.json_schema(True), JSON_WORDS.build(), cache=False)
    assert not accepts(compiled, JSON_WORDS, text.encode(), random.Random(0))
