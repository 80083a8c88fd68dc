"""Tool calls: every template, what may be called, and what an answer says."""

from __future__ import annotations

import json
import random
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import pytest

import constrain
from constrain.errors import SpecError, UnsupportedFeatureError, VocabularyError
from constrain.grammars.ir import SpecialToken
from constrain.tags import ToolCall, ToolOutput, ToolTemplate, tool_calls
from constrain.tokenizer_index.vocabulary import Vocabulary
from constrain.tool_templates import TEMPLATES
from tests.api.table_model import TableModel, random_row

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "", "parameters": WEATHER}},
    {"name": "now", "parameters": NOTHING},
    {"name": "now_there", "input_schema": NOTHING},
]
CALLS = [("get_weather", {"city": "Paris", "days": 3}), ("now", {}), ("now_there", {})]

# How each template writes calls, told independently of it.
WRITTEN = {
    "hermes": lambda calls: "\n".join(
        f'<tool_call>\n{{"name": "{n}", "arguments": {a}}}\n</tool_call>' for n, a in calls
    ),
    "qwen": lambda calls: "\n".join(
        f'<tool_call>\n{{"name": "{n}", "arguments": {a}}}\n</tool_call>' for n, a in calls
    ),
    "llama_function": lambda calls: "".join(f"<function={n}>{a}</function>" for n, a in calls),
    "llama_json": lambda calls: "; ".join(f'{{"name": "{n}", "parameters": {a}}}' for n, a in calls),
    "mistral": lambda calls: (
        "[TOOL_CALLS][" + ", ".join(f'{{"name": "{n}", "arguments": {a}}}' for n, a in calls) + "]"
    ),
    "mistral_args": lambda calls: "".join(f"[TOOL_CALLS]{n}[ARGS]{a}" for n, a in calls),
    "deepseek": lambda calls: (
        "<｜tool▁calls▁begin｜>"
        + "".join(f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{a}<｜tool▁call▁end｜>" for n, a in calls)
        + "<｜tool▁calls▁end｜>"
    ),
    "harmony": lambda calls: "".join(
        f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{a}" for n, a in calls[:1]
    ),
}
THOUGHTS = {
    "mistral": "[THINK]hm <[/THINK]",
    "mistral_args": "[THINK]hm <[/THINK]",
    "harmony": "<|channel|>analysis<|message|>hm <<|end|><|start|>assistant",
}


def names_of(template: ToolTemplate) -> list[str]:
    """Return the special tokens of a template."""
    fields = [template.begin, template.after_name, template.end, template.open, template.close]
    fields += [*template.reasoning, template.text_begin, template.comment_begin, template.next_section]
    found = [mark.name for marks in fields for mark in marks if isinstance(mark, SpecialToken)]
    return [str(name) for name in dict.fromkeys(found)]


def vocabulary_of(template: str) -> Vocabulary:
    names = names_of(TEMPLATES[template])
    tokens = [*(bytes([byte]) for byte in range(256)), None, *(None for _ in names), b"<|", b'{"', b'"}']
    special = {name: 257 + i for i, name in enumerate(names)}
    return Vocabulary.from_tokens(tokens, eos_token_ids=256, special_tokens=special)


def token_ids(text: str, vocabulary: Vocabulary) -> list[int]:
    """Write text with the names of special tokens as tokens."""
    ids: list[int] = []
    while text:
        name = next((name for name in vocabulary.special_tokens if text.startswith(name)), None)
        if name is None:
            ids += text[0].encode()
            text = text[1:]
        else:
            ids.append(vocabulary.special_tokens[name])
            text = text[len(name) :]
    return ids


def takes(spec: constrain.Spec, text: str, template: str) -> bool:
    """Is text, with special tokens under their names, an answer?"""
    vocabulary = vocabulary_of(template)
    matcher = constrain.compile(spec, vocabulary, cache=False).matcher()
    return all(map(matcher.accept_token, token_ids(text, vocabulary))) and matcher.is_accepting()


def written(template: str, calls: list[tuple[str, Any]]) -> str:
    return WRITTEN[template]([(name, json.dumps(arguments)) for name, arguments in calls])


@pytest.mark.parametrize("template", TEMPLATES)
def test_answers_of_each_template(template: str) -> None:
    is_single = template == "harmony"
    calls = CALLS[:1] if is_single else CALLS
    answer = written(template, calls)
    expected = tuple(ToolCall(name, arguments) for name, arguments in calls)
    auto = tool_calls(TOOLS, template=template)
    required = tool_calls(TOOLS, template=template, tool_choice="required")
    one = tool_calls(TOOLS, template=template, tool_choice="get_weather", parallel=False)
    for spec in (auto, required):
        assert takes(spec, answer, template)
        assert spec.parse(answer).calls == expected
    first = written(template, calls[:1])
    assert takes(one, first, template)
    assert one.parse(first) == ToolOutput("", expected[:1])
    if not is_single:
        assert not takes(one, answer, template)
    assert not takes(one, written(template, CALLS[1:2]), template)
    for broken in (
        first.replace("city", "town"),
        first.replace("get_weather", "get_weathers"),
        first[:-1],
        first.replace("3", "x"),
    ):
        assert not takes(required, broken, template), broken
        assert not takes(one, broken, template), broken
    # No call at all.
    text = "<|channel|>final<|message|>Hello <" if is_single else "Hello <"
    assert takes(auto, text, template)
    assert auto.parse(text) == ToolOutput("Hello <")
    assert not takes(required, text, template)
    none = tool_calls(TOOLS, template=template, tool_choice="none")
    assert takes(none, text, template)
    assert none.parse(text).text == "Hello <"


@pytest.mark.parametrize("template", TEMPLATES)
def test_reasoning_comes_first(template: str) -> None:
    thought = THOUGHTS.get(template, "<think>hm <</think>")
    calls = written(template, CALLS[:1])
    options: dict[str, Any] = {"template": template, "tool_choice": "required"}
    specs = {
        mode: tool_calls(TOOLS, reasoning=mode, **options)
        for mode in ("none", "optional", "required", "open")
    }
    begin = thought[: thought.index("hm")]
    answers = {"with": thought + calls, "without": calls, "begun": thought.removeprefix(begin) + calls}
    right = {"none": "without", "optional": "with without", "required": "with", "open": "begun"}
    if isinstance(TEMPLATES[template].reasoning[0][0], str):
        # A mark that is text may stand in a section that the prompt has begun.
        right["open"] = "begun with"
    for mode, spec in specs.items():
        for kind, answer in answers.items():
            assert takes(spec, answer, template) == (kind in right[mode].split()), (mode, kind)
            if kind in right[mode].split():
                output = spec.parse(answer)
                assert output.reasoning == (None if kind == "without" else "hm <")
                assert [call.name for call in output.calls] == ["get_weather"]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("tool_choice", ["auto", "required"])
def test_samples_say_what_they_say(template: str, tool_choice: str) -> None:
    spec = tool_calls(TOOLS, template=template, tool_choice=tool_choice, reasoning="optional")
    rng = np.random.default_rng(7)
    for _ in range(8):
        answer = spec.sample(rng)
        output = spec.parse(answer)
        assert takes(spec, answer, template)
        assert tool_choice == "auto" or output.calls
        for call in output.calls:
            assert call.name in dict(CALLS)


def test_text_around_calls() -> None:
    call = written("hermes", CALLS[:1])
    spec = tool_calls(TOOLS)
    text = f"I look <tool_cal {call} and {call}\nthen <tool"
    assert spec.matches(text)
    assert spec.parse(text).text == "I look <tool_cal  and \nthen <tool"
    assert len(spec.parse(text).calls) == 2
    assert not spec.matches(f"a <tool_call> {call}")
    assert not tool_calls(TOOLS, text=False).matches(f"a {call}")
    assert tool_calls(TOOLS, text=False).matches("")
    assert tool_calls(TOOLS, tool_choice="required", text=True).matches(f"a {call}")
    assert not tool_calls(TOOLS, tool_choice="required", text=True).matches("a")
    assert not tool_calls(TOOLS, parallel=False).matches(f"{call} {call}")


def test_special_tokens_are_never_text() -> None:
    vocabulary = vocabulary_of("qwen")
    spec = tool_calls(TOOLS, template="qwen")
    matcher = constrain.compile(spec, vocabulary, cache=False).matcher()
    assert matcher.accept_string(written("hermes", CALLS[:1])[:-3])
    assert matcher.accept_string(" and so on")
    assert matcher.accept_token(vocabulary.special_tokens["<tool_call>"])
    assert not matcher.accept_string("x")
    with pytest.raises(VocabularyError, match="tool_call>"):
        constrain.compile(spec, Vocabulary.from_tokens([b"a", None], eos_token_ids=1), cache=False)


# ------------------------------------------------------------------------------------ tools


class Search(pydantic.BaseModel):
    query: str
    limit: Literal[5, 10] = 5


def add(a: int, b: int = 2, *, _carry: bool = False) -> int:
    """Add."""
    return a + b + _carry


def test_functions_and_models() -> None:
    spec = tool_calls([Search, add, {"name": "raw", "parameters": Search}])
    answer = written(
        "hermes",
        [("Search", {"query": "x", "limit": 10}), ("add", {"a": 1, "_carry": True}), ("raw", {"query": ""})],
    )
    assert spec.matches(answer)
    first, second, third = spec.parse(answer).calls
    assert first.arguments == Search(query="x", limit=10)
    assert second.arguments == {"a": 1, "_carry": True}
    assert add(**second.arguments) == 4
    assert third.arguments == Search(query="")
    assert not spec.matches(written("hermes", [("add", {"b": 1})]))
    assert not spec.matches(written("hermes", [("add", {"a": 1, "c": 1})]))
    assert not spec.matches(written("hermes", [("Search", {"query": "x", "limit": 7})]))


def test_equality() -> None:
    assert tool_calls(TOOLS) == tool_calls(json.loads(json.dumps(TOOLS)))
    assert hash(tool_calls(TOOLS)) == hash(tool_calls(TOOLS))
    assert tool_calls(TOOLS) != tool_calls(TOOLS[:2])
    assert tool_calls(TOOLS) != tool_calls(TOOLS, parallel=False)
    assert tool_calls(TOOLS) != tool_calls(TOOLS, template="llama_json")
    assert repr(tool_calls(TOOLS)) == "tool_calls([get_weather, now, now_there])"


def test_a_template_of_ones_own() -> None:
    template = ToolTemplate(begin=("@",), after_name=("(",), end=(")",), is_json_name=False)
    spec = tool_calls(TOOLS, template=template)
    assert spec.matches('a @now({}) b @get_weather({"city":""})')
    assert not spec.matches("me@home")
    assert spec.parse("a @now({}) b") == ToolOutput("a  b", (ToolCall("now", {}),))


@pytest.mark.parametrize(
    "fields",
    [
        {"begin": "@"},
        {"begin": ()},
        {"end": ["x"]},
        {"after_name": (3,)},
        {"reasoning": ("<think>", "</think>")},
        {"text": "within"},
    ],
)
def test_templates_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=f"ToolTemplate.*{next(iter(fields))}"):
        ToolTemplate(**{"begin": ("@",), "after_name": ("(",), **fields})


def variadic(*args: int) -> None:
    """Take anything."""


@pytest.mark.parametrize(
    ("tools", "options", "message"),
    [
        ("text", {}, "expected a list"),
        ([3], {}, "is no tool"),
        ([{"parameters": {}}], {}, "no name"),
        ([{"type": "retrieval"}], {}, "only functions"),
        ([{"name": "a b"}], {}, "no name of a tool"),
        ([{"name": "a", "paramters": {}}], {}, r"no key of a tool.*0/paramters.*mean 'parameters'"),
        ([{"type": "function", "function": {"name": "a", "x": 1}}], {}, r"no key.*#/0/function/x"),
        ([{"type": "function", "function": {"name": "a"}, "parameters": {}}], {}, r"no key.*#/0/parameters"),
        ([{"name": "a", "parameters": {}, "input_schema": {}}], {}, "both 'parameters' and 'input_schema'"),
        ([{"name": "a", "strict": "yes"}], {}, r"expected true or false.*#/0/strict"),
        ([{"type": "custom", "name": "a"}], {}, "only functions"),
        ([{"type": "web_search"}], {}, "only functions"),
        ([{"name": "a"}, {"name": "a"}], {}, "Two tools are called 'a'"),
        ([{"name": "a", "parameters": {"type": "string"}}], {}, "no object"),
        ([{"name": "a", "parameters": 3}], {}, "no schema"),
        ([{"name": "a", "parameters": {"properties": 3}}], {}, "properties"),
        ([variadic], {}, r"\*args"),
        ([{"name": "a\ud800"}], {}, "no name of a tool"),
        (TOOLS, {"template": "none such"}, "not known"),
        (TOOLS, {"template": ["hermes"]}, "not known"),
        (TOOLS, {"limits": 5}, "expected constrain.Limits"),
        (TOOLS, {"tool_choice": "none such"}, "names no tool"),
        (TOOLS, {"tool_choice": {"type": "function"}}, "names no tool"),
        (TOOLS, {"tool_choice": {"type": "function", "function": 3}}, "names no tool"),
        (TOOLS, {"tool_choice": {"type": "hosted"}}, "has the type"),
        (TOOLS, {"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "list of tools"),
        (
            TOOLS,
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": ["x"]}},
            "'x' is not there",
        ),
        (TOOLS, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "parallel=False"),
        (TOOLS, {"tool_choice": ["now"]}, "names no tool"),
        (TOOLS, {"reasoning": "maybe"}, "expected one of"),
        (TOOLS, {"parallel": 1}, "True or False"),
        (TOOLS, {"whitespace": "x"}, "whitespace"),
        ([], {"tool_choice": "required"}, "needs a tool"),
    ],
)
def test_errors(tools: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        tool_calls(tools, **options)


@pytest.mark.parametrize(
    "answer", ['<tool_call>\n{"name": "\n', '<tool_call>\n{"name": "\\u00", "arguments": {}}', b"text", None]
)
def test_what_is_no_answer_is_an_error_of_the_spec(answer: Any) -> None:
    with pytest.raises(SpecError):
        tool_calls(TOOLS).parse(answer)


@pytest.mark.parametrize("template", ["hermes", "qwen", "mistral", "harmony"])
def test_generated_answers_are_read(template: str) -> None:
    model = TableModel([bytes([byte]) for byte in range(256)])
    model.vocabulary = vocabulary_of(template)
    model.eos = 256
    model.row = random_row(model.vocabulary.size)
    spec = tool_calls(TOOLS, template=template, tool_choice="now", reasoning="required", parallel=False)
    result = constrain.generate(model, "x", spec, max_tokens=150, seed=3)
    assert result.value.calls == (ToolCall("now", {}),)
    assert result.value.reasoning is not None
    # Special tokens are no text.
    if template != "hermes":
        assert not any(name in result.text for name in names_of(TEMPLATES[template]))


SPECIAL = [name for name, template in TEMPLATES.items() if names_of(template)]


@pytest.mark.parametrize("template", SPECIAL)
@pytest.mark.parametrize("reasoning", ["none", "optional", "required", "open"])
def test_text_that_spells_marks_is_text(template: str, reasoning: str) -> None:
    """By token ids an answer is read as it was written, whatever its free text and its arguments spell."""
    form = TEMPLATES[template]
    names = names_of(form)
    vocabulary = vocabulary_of(template)
    text = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    tools = [{"name": "echo", "parameters": text}]
    spec = tool_calls(tools, template=form, reasoning=reasoning)
    compiled = constrain.compile(spec, vocabulary, cache=False)
    spelled = "".join(names) + written(template, CALLS[:1]) if form.text == "around" else "".join(names)
    argument = {"x": spelled.replace("\n", " ").replace('"', "'")}
    call: list[Any] = [
        *form.open,
        *form.begin,
        "echo",
        *form.after_name,
        json.dumps(argument, ensure_ascii=False),
    ]
    call += [*form.end, *form.close]
    thought: list[Any] = [] if reasoning == "open" else [*form.reasoning[0]]
    thought += [spelled, *form.reasoning[1], *form.next_section]
    if reasoning == "none":
        thought = []
    free = [spelled] if form.text == "around" else []
    answer = [*thought, *free, *call]
    ids: list[int] = []
    for mark in answer:
        ids += list(mark.encode()) if isinstance(mark, str) else [vocabulary.special_tokens[str(mark.name)]]
    matcher = compiled.matcher()
    assert all(map(matcher.accept_token, ids))
    assert matcher.is_accepting()
    plain = b"".join(vocabulary.token_bytes(i) or b"" for i in ids)
    for end in ([], [256]):
        output = compiled.output(plain, [*ids, *end])
        read = spec.parse_output(output)
        assert read == ToolOutput("".join(free), (ToolCall("echo", argument),), spelled if thought else None)
    # Part of another spec.
    both = constrain.compile(constrain.regex("a+") | spec, vocabulary, cache=False)
    assert both.spec.parse_output(both.output(plain, ids)) == read
    assert both.spec.parse_output(both.output(b"aa", list(b"aa"))) == "aa"


def test_errors_of_schemas_name_the_tool() -> None:
    tools = [*TOOLS, {"name": "odd", "parameters": {"properties": {"x": {"uniqueItems": True}}}}]
    with pytest.raises(UnsupportedFeatureError, match="odd: #/properties/x"):
        tool_calls(tools)


def test_openai_choices() -> None:
    chosen = tool_calls(TOOLS, tool_choice={"type": "function", "function": {"name": "now"}})
    assert chosen == tool_calls(TOOLS, tool_choice="now")
    assert chosen.matches(written("hermes", CALLS[1:2]))
    assert not chosen.matches(written("hermes", CALLS[:1]))
    assert tool_calls([]).matches("anything <tool_call>")


def test_shapes_of_tools() -> None:
    """The shapes of OpenAI, Anthropic, MCP and chat templates are one tool; what only describes it changes nothing."""
    inner = {"name": "get_weather", "description": "Weather.", "parameters": WEATHER}
    shapes: list[dict[str, Any]] = [
        {"type": "function", "function": {**inner, "strict": True}},
        {"type": "function", "function": {**inner, "return": {"type": "string"}}},
        {"type": "function", **inner, "strict": None},
        {"name": "get_weather", "input_schema": WEATHER, "cache_control": {"type": "ephemeral"}},
        {"type": "custom", "name": "get_weather", "description": "", "input_schema": WEATHER},
        {"name": "get_weather", "title": "W", "inputSchema": WEATHER, "annotations": {"readOnlyHint": True}},
    ]
    specs = [tool_calls([shape]) for shape in shapes]
    assert all(spec == specs[0] for spec in specs)
    assert tool_calls([{"name": "now", "parameters": None}]).matches(written("hermes", [("now", {"x": 1})]))


def test_shapes_of_choices() -> None:
    now = tool_calls(TOOLS, tool_choice="now")
    for choice in (
        {"type": "function", "function": {"name": "now"}},
        {"type": "function", "name": "now"},
        {"type": "tool", "name": "now", "disable_parallel_tool_use": False},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]},
    ):
        assert tool_calls(TOOLS, tool_choice=choice) == now
    some = {
        "mode": "auto",
        "tools": [{"type": "function", "function": {"name": n}} for n in ("now", "get_weather")],
    }
    assert tool_calls(TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": some}) == tool_calls(
        TOOLS[:2]
    )
    for mode, choices in {
        "auto": [{"type": "auto"}],
        "none": [{"type": "none"}],
        "required": ["any", {"type": "any"}],
    }.items():
        for choice in choices:
            assert tool_calls(TOOLS, tool_choice=choice) == tool_calls(TOOLS, tool_choice=mode)


def test_functions_are_equal_to_themselves() -> None:
    assert tool_calls([add, Search]) == tool_calls([add, Search])
    assert tool_calls([Search]) != tool_calls(
        [{"name": "Search", "parameters": pydantic.TypeAdapter(Search).json_schema()}]
    )


def test_names_in_json_are_escaped() -> None:
    rng = random.Random(3)
    names = ["é", "a.b:c/d", "x" * 64, *{f"t{rng.randrange(10**6)}" for _ in range(50)}]
    spec = tool_calls([{"name": name, "parameters": NOTHING} for name in names])
    for name in names:
        assert spec.parse(written("hermes", [(name, {})])).calls[0].name == name
        assert spec.matches(written("hermes", [(name, {})]))


NESTED = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "next": {"$ref": "#"}},
    "required": ["v"],
    "additionalProperties": False,
}
# One a beginning of another, letters of several bytes, no arguments, many; so many that they are written out lazily.
ODD = [
    *({"name": name, "parameters": NOTHING} for name in ("a", "ab", "a.b", "été")),
    *({"name": name, "parameters": NESTED} for name in ("abc", "工具")),
    {"name": "anything"},
    *({"name": f"t{i}", "parameters": NOTHING} for i in range(10)),
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_odd_tools(template: str) -> None:
    """Calls with marks in their strings, of tools whose names begin alike, are taken and read as they are."""
    form = TEMPLATES[template]
    texts = [m for m in (*form.begin, *form.after_name, *form.end, *form.close) if isinstance(m, str)]
    marks = "".join(texts) + "<tool_call>\n<function=a></think>"
    if names_of(form):
        marks = marks.replace("<tool_call>", "").replace("</think>", "")
    deep = {"v": marks, "next": {"v": "é", "next": {"v": "}]"}}}
    spec = tool_calls(ODD, template=template)
    for name, arguments in (
        *((name, {}) for name in ("a", "ab", "a.b", "été", "anything", "t1")),
        *((name, deep) for name in ("abc", "工具")),
        ("anything", {"x": [1, "a"]}),
    ):
        text = WRITTEN[template]([(name, json.dumps(arguments, ensure_ascii=False))])
        assert takes(spec, text, template), (name, arguments)
        assert spec.parse(text).calls == (ToolCall(name, arguments),)
        longer = WRITTEN[template]([(name + "z", json.dumps(arguments, ensure_ascii=False))])
        assert not takes(tool_calls(ODD, template=template, tool_choice="required"), longer, template)


def test_budgets_of_calls() -> None:
    """Calls fit their budget, whichever tool that leaves; where none fits, the least number that does is named."""
    model = TableModel([bytes([byte]) for byte in range(256)])
    model.vocabulary = vocabulary_of("hermes")
    model.eos = 256
    model.row = random_row(model.vocabulary.size)
    spec = tool_calls(ODD, tool_choice="required")
    shortest = constrain.compile(spec, model.vocabulary, cache=False).matcher().min_tokens_to_finish()
    least = int(shortest) + 1  # the end token
    with pytest.raises(constrain.LimitExceededError, match=f"needs {least} tokens"):
        constrain.generate(model, "x", spec, max_tokens=least - 1, seed=1)
    for n in range(least, least + 12):
        result = constrain.generate(model, "x", spec, max_tokens=n, seed=n)
        assert len(result.token_ids) <= n
        assert len(result.value.calls) == 1
    assert constrain.generate(model, "x", tool_calls(ODD), max_tokens=5, seed=1).value.calls == ()
    assert constrain.generate(model, "x", tool_calls([]), max_tokens=5, seed=1).value.calls == ()


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("odd")
    return number


def halve(number: Annotated[int, pydantic.Field(ge=0, le=99), pydantic.AfterValidator(_even)]) -> int:
    """Take a number that a validator restricts."""
    return number // 2


class Whole(pydantic.BaseModel):
    """The same as a model."""

    number: Annotated[int, pydantic.Field(ge=0, le=99), pydantic.AfterValidator(_even)]


def test_validators_of_types_are_kept() -> None:
    """What validators refuse is no member, and is taken back while decoding; sets of tools can still be changed."""
    model = TableModel([bytes([byte]) for byte in range(256)])
    model.vocabulary = vocabulary_of("hermes")
    model.eos = 256
    model.row = random_row(model.vocabulary.size)
    named = {"name": "named", "parameters": Whole}
    spec = tool_calls([halve, Whole, named], tool_choice="required", parallel=False)
    n_back = 0
    for seed in range(12):
        result = constrain.generate(model, "x", spec, max_tokens=120, seed=seed)
        (call,) = result.value.calls
        number = call.arguments.number if isinstance(call.arguments, Whole) else call.arguments["number"]
        assert number % 2 == 0
        n_back += result.stats.check_failures
        assert spec.matches(result.text)
        wrong = result.text.replace(f"{number}", "31")
        assert not spec.matches(wrong)
        found = spec.explain(wrong)
        assert not found.ok
        assert "odd" in found.expected[0]
    assert n_back > 0
    assert spec.without_tools("halve").with_tools(halve).matches(result.text)
    assert not spec.without_tools("halve").with_tools(halve).matches(wrong)
