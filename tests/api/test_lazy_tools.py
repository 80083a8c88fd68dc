"""Tools written out one by one: masks and moves are those of the whole set compiled at once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import lazy_tools
from constrain.compiled import CompiledSpec, Matcher
from constrain.errors import SpecError
from constrain.lazy_tools import LazyCompiledSpec
from constrain.tags import tool_calls
from constrain.tokenizer_index.vocabulary import Vocabulary
from constrain.tool_templates import TEMPLATES
from tests.api.test_tool_calls import names_of

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {"type": "object", "properties": {"x": {"enum": ["p", "pq", 3]}, "y": {"type": "array"}}},
]
NAMES = ["get", "get_it", "x", "set", "s", "weather.now", "g", "tool", "q_1", "q_2"]
TOOLS = [{"name": name, "parameters": SCHEMAS[i % len(SCHEMAS)]} for i, name in enumerate(NAMES)]
# Tokens that reach over the ends of fixed text into names and arguments, and back out.
PIECES = [
    *(b'": {"', b' {"', b" {", b'":', b'": ', b'"g', b'"get', b'": "', b": {", b'{"', b'"name', b'"name": "'),
    *(
        b'get", "',
        b'x": ',
        b"}}",
        b"}\n",
        b"}\n</",
        b"<tool",
        b"_call",
        b">\n",
        b'>\n{"',
        b"<",
        b"=g",
        b"=get>",
    ),
    *(
        b">{",
        b'>{"',
        b"ow>{",
        b't>{"',
        b"<function",
        b"=",
        b"}</",
        b'"}',
        b'": 3',
        b"a b",
        b"  ",
        b"\n\n",
    ),
    *(
        b'{"name": "',
        b'", "parameters": {',
        b"; {",
        b'"; {"',
        b'}; {"name": "',
        b"</think>",
        b"text",
        b'", "',
    ),
]


def vocabulary_of(template: str, pieces: list[bytes] = PIECES) -> Vocabulary:
    names = names_of(TEMPLATES[template])
    tokens = [*(bytes([byte]) for byte in range(256)), None, *(None for _ in names), *pieces]
    special = {name: 257 + i for i, name in enumerate(names)}
    return Vocabulary.from_tokens(tokens, eos_token_ids=256, special_tokens=special)


def whole(spec: constrain.Spec, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> CompiledSpec:
    with monkeypatch.context() as patch:
        patch.setattr(lazy_tools, "FEW_TOOLS", 10**9)
        return constrain.compile(spec, vocabulary, cache=False)


def mask_of(matcher: Matcher) -> list[int]:
    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocab_size)
    matcher.fill_next_token_bitmask(mask, 0)
    return np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")).tolist()


def call(template: str, rng: random.Random) -> list[bytes | str]:
    """Return a call cut into marks; a word for the walk to follow."""
    form = TEMPLATES[template]
    name = rng.choice(NAMES)
    arguments = {0: '{"a": 3}', 1: '{"text": "a b"}', 2: "{}", 3: '{"x": "p", "y": []}'}[
        NAMES.index(name) % 4
    ]
    marks = (*form.open, *form.begin, name, *form.after_name, arguments, *form.end, *form.close)
    return [mark.encode() if isinstance(mark, str) else str(mark.name) for mark in marks]


def next_token(goal: bytes | str, mask: set[int], vocabulary: Vocabulary, rng: random.Random) -> int:
    """Return an allowed token that writes a beginning of ``goal``, mostly a long one."""
    if isinstance(goal, str):
        return vocabulary.special_tokens[goal]
    fitting = [t for t in mask if (data := vocabulary.token_bytes(t)) and goal.startswith(data)]
    fitting.sort(key=lambda t: len(vocabulary.token_bytes(t) or b""))
    return fitting[-1] if rng.random() < 0.6 else rng.choice(fitting)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "options", [{}, {"tool_choice": "required"}, {"reasoning": "required", "parallel": False}]
)
def test_masks_are_those_of_the_whole(
    template: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = vocabulary_of(template)
    spec = tool_calls(TOOLS, template=template, **options)
    compiled = constrain.compile(spec, vocabulary, cache=False)
    expected = whole(spec, vocabulary, monkeypatch)
    assert isinstance(compiled, LazyCompiledSpec)
    assert not isinstance(expected, LazyCompiledSpec)
    rng = random.Random(f"{template} {options}")
    for _ in range(6):
        one, two = compiled.matcher(), expected.matcher()
        goals: list[bytes | str] = []
        if options.get("reasoning"):
            begin, end = TEMPLATES[template].reasoning
            after = TEMPLATES[template].next_section
            goals = [m.encode() if isinstance(m, str) else str(m.name) for m in (*begin, "hm ", *end, *after)]
        if not options and TEMPLATES[template].text == "around":
            goals.append(b"a < b ")
        goals += call(template, rng)
        for goal in goals:
            rest = goal
            while rest:
                mask = mask_of(two)
                assert mask_of(one) == mask
                assert one.find_jump_forward_string() == two.find_jump_forward_string()
                assert one.forced_tokens() == two.forced_tokens()
                for token in rng.sample(range(vocabulary.size), 12):
                    assert one.fork().accept_token(token) == two.fork().accept_token(token) == (token in mask)
                token = next_token(rest, set(mask), vocabulary, rng)
                assert one.accept_token(token)
                assert two.accept_token(token)
                rest = rest[len(vocabulary.token_bytes(token) or b"") :] if isinstance(rest, bytes) else ""
        assert mask_of(one) == mask_of(two)
        assert one.is_accepting() == two.is_accepting() is True
        n = rng.randrange(one.n_accepted)
        one.rollback(n)
        two.rollback(n)
        assert mask_of(one) == mask_of(two)
        one.reset()
        assert mask_of(one) == mask_of(expected.matcher())


@pytest.mark.parametrize("template", ["hermes", "llama_function", "llama_json"])
def test_text_in_one_piece(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = vocabulary_of(template)
    spec = tool_calls(TOOLS, template=template)
    expected = whole(spec, vocabulary, monkeypatch)
    rng = random.Random(3)
    for _ in range(20):
        text = b"".join(mark for mark in call(template, rng) if isinstance(mark, bytes))
        for changed in (text, text[: rng.randrange(len(text))], text.replace(b'"', b"'", 3), text + b"!"):
            one, two = constrain.compile(spec, vocabulary, cache=False).matcher(), expected.matcher()
            assert one.accept_string(changed) == two.accept_string(changed)
            assert one.n_accepted == two.n_accepted
            assert mask_of(one) == mask_of(two)
            one.rollback(one.n_accepted)
            assert mask_of(one) == mask_of(expected.matcher())


def test_budgets_write_everything_out(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = vocabulary_of("hermes")
    spec = tool_calls(TOOLS, tool_choice="required")
    one = constrain.compile(spec, vocabulary, cache=False).matcher()
    two = whole(spec, vocabulary, monkeypatch).matcher()
    text = '<tool_call>\n{"name": "get'
    assert one.accept_string(text)
    assert two.accept_string(text)
    assert one.min_tokens_to_finish() == two.min_tokens_to_finish()
    masks = constrain.allocate_token_bitmask(2, vocabulary.size)
    for remaining in range(1, 30):
        one.fill_budget_bitmask(masks, 0, remaining=remaining)
        two.fill_budget_bitmask(masks, 1, remaining=remaining)
        assert (masks[0] == masks[1]).all()


def test_tools_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = vocabulary_of("hermes")
    all_tools = tool_calls(TOOLS)
    fewer = all_tools.without_tools("get")
    assert fewer == tool_calls(TOOLS[1:])
    assert set(fewer.with_tools(TOOLS[0]).tools) == set(NAMES)
    for spec, n in ((all_tools, 10), (fewer, 9), (fewer.with_tools({"name": "new"}), 10)):
        one = constrain.compile(spec, vocabulary, cache=False).matcher()
        two = whole(tool_calls(spec.tools.values()), vocabulary, monkeypatch).matcher()
        assert len(spec.tools) == n
        for piece in ("so ", "<tool_call>\n", '{"name": "'):
            assert mask_of(one) == mask_of(two)
            assert one.accept_string(piece)
            assert two.accept_string(piece)
        assert mask_of(one) == mask_of(two)
        assert one.fork().accept_string('get"') == (spec is all_tools)
        assert one.fork().accept_string('new", "arguments": {') == ("new" in spec.tools)
    with pytest.raises(SpecError, match="no tool 'nothing'"):
        all_tools.without_tools("nothing")
    with pytest.raises(SpecError, match="no tool is left"):
        tool_calls(TOOLS[:1], tool_choice="required").without_tools("get")


def test_tokens_that_span_the_fixed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # These hold all of what stands before a name or before arguments: less can be left out there.
    for pieces in ([b'>\n{"name": "get'], [b'get", "arguments": {'], [b'a<tool_call>\n{"name": "get", "arg']):
        vocabulary = vocabulary_of("hermes", [*PIECES, *pieces])
        spec = tool_calls(TOOLS)
        one = constrain.compile(spec, vocabulary, cache=False).matcher()
        two = whole(spec, vocabulary, monkeypatch).matcher()
        for piece in ("a <tool_call", '>\n{"name": "', 'get"', ', "arguments"', ": {", "}}\n</tool_call>"):
            assert mask_of(one) == mask_of(two)
            assert one.accept_string(piece)
            assert two.accept_string(piece)
        assert mask_of(one) == mask_of(two)


def test_a_token_that_holds_a_whole_name() -> None:
    vocabulary = vocabulary_of("llama_function", [*PIECES, b"get>{"])
    compiled = constrain.compile(tool_calls(TOOLS, template="llama_function"), vocabulary, cache=False)
    assert not isinstance(compiled, LazyCompiledSpec)
    matcher = compiled.matcher()
    assert matcher.accept_string("<function=")
    assert len(vocabulary.tokens) - 1 in mask_of(matcher)
