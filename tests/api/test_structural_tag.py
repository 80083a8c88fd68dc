"""Structural tags: both JSON shapes, against a reader of texts, and their errors."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.errors import SpecError, UnsupportedFeatureError
from constrain.tokenizer_index.vocabulary import Vocabulary

INTEGER = {"type": "integer", "minimum": 0, "maximum": 9}


def tag(begin: str, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


# ------------------------------------------------------------------------------------ triggered tags

ALPHABET = "ab<"
TEXTS = ["".join(letters) for n in range(8) for letters in product(ALPHABET, repeat=n)]


def rests(text: str, given: dict[str, Any]) -> list[str] | None:
    """Return what may follow a tag at the start of ``text``; its content is a constant or any text."""
    if not text.startswith(given["begin"]):
        return []
    text = text[len(given["begin"]) :]
    content, end = given["content"], given["end"]
    if content["type"] == "const_string":
        whole = content["value"] + end
        return [text[len(whole) :]] if text.startswith(whole) else []
    _, found, rest = text.partition(end)
    return [rest] if found else []


def is_member(text: str, given: dict[str, Any], n_tags: int = 0) -> bool:
    """Read ``text`` as triggered tags: the first place where a trigger is complete begins a tag."""
    is_enough = n_tags > 0 or not given["at_least_one"]
    if n_tags and given["stop_after_first"]:
        return not text
    ends = {i: t for t in given["triggers"] for i in range(len(text) + 1) if text[:i].endswith(t)}
    if not ends:
        return is_enough
    first = min(ends)
    for trigger in given["triggers"]:
        if text[:first].endswith(trigger):
            at = text[first - len(trigger) :]
            for one in given["tags"]:
                shortest = min((t for t in given["triggers"] if one["begin"].startswith(t)), key=len)
                if shortest == trigger and any(is_member(rest, given, n_tags + 1) for rest in rests(at, one)):
                    return True
    return False


@pytest.mark.parametrize("at_least_one", [False, True])
@pytest.mark.parametrize("stop_after_first", [False, True])
@pytest.mark.parametrize(
    ("triggers", "tags"),
    [
        (["<"], [tag("<a", const("b"), "<"), tag("<b", const(""), "b")]),
        (["<<"], [tag("<<", const("a"), "<"), tag("<<b", {"type": "any_text"}, "<b")]),
        (["<a", "<b"], [tag("<ab", const("a"), "b"), tag("<b", const("<"), "a")]),
        (["a<a"], [tag("a<a", {"type": "any_text"}, "a<")]),
        (["<", "ab"], [tag("<", const("b"), "a"), tag("abb", const(""), "a")]),
        (["b<", "<"], [tag("b<", const("a"), "a"), tag("<", const("b"), "b")]),
    ],
)
def test_triggered_tags(triggers: Any, tags: Any, stop_after_first: bool, at_least_one: bool) -> None:
    given = {
        "type": "triggered_tags",
        "triggers": triggers,
        "tags": tags,
        "at_least_one": at_least_one,
        "stop_after_first": stop_after_first,
    }
    spec = constrain.structural_tag({"type": "structural_tag", "format": given})
    wrong = [text for text in TEXTS if spec.matches(text) != is_member(text, given)]
    assert wrong == []


# ------------------------------------------------------------------------------------ elements


@pytest.mark.parametrize(
    ("element", "right", "wrong"),
    [
        (const("ab"), ["ab"], ["", "a"]),
        ({"type": "json_schema", "json_schema": INTEGER}, ["3"], ["10", "a"]),
        ({"type": "regex", "pattern": "a+|b"}, ["aa", "b"], ["ab"]),
        ({"type": "grammar", "grammar": 'start: "(" start ")" | "x"'}, ["((x))"], ["(x"]),
        ({"type": "any_text"}, ["", "é<"], []),
        ({"type": "any_text", "excludes": ["ab", "c"]}, ["ba", "a"], ["cab", "c"]),
        ({"type": "sequence", "elements": [const("a"), {"type": "any_text"}]}, ["a", "abc"], ["b"]),
        ({"type": "or", "elements": [const("a"), const("b")]}, ["a", "b"], ["ab"]),
        ({"type": "optional", "content": const("a")}, ["", "a"], ["aa"]),
        ({"type": "star", "content": const("a")}, ["", "aaa"], ["b"]),
        ({"type": "plus", "content": const("a")}, ["a", "aa"], [""]),
        ({"type": "repeat", "content": const("a"), "min": 1, "max": 2}, ["a", "aa"], ["", "aaa"]),
        (tag("<", {"type": "any_text"}, ">"), ["<>", "<a<>"], ["<", "<>>"]),
        (tag("<", {"type": "any_text"}, ["!!", ">"]), ["<!>", "<a!!"], ["<a!!>", "<a"]),
        (tag("<", const("a"), ""), ["<a"], ["<"]),
        (
            {"type": "tags_with_separator", "tags": [tag("<", const("a"), ">")], "separator": ","},
            ["", "<a>", "<a>,<a>"],
            ["<a><a>", "<a>,"],
        ),
        (
            {
                "type": "tags_with_separator",
                "tags": [tag("<", const("a"), ">")],
                "separator": ",",
                "at_least_one": True,
                "stop_after_first": True,
            },
            ["<a>"],
            ["", "<a>,<a>"],
        ),
        (
            tag(
                "[",
                {"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<a", const(""), ">")]},
                "]",
            ),
            ["[]", "[x<a>y]", "[<a><a>]"],
            ["[<b>]", "[x", "[x]y]"],
        ),
        (
            {
                "type": "sequence",
                "elements": [
                    tag("<think>", {"type": "any_text"}, "</think>"),
                    {
                        "type": "triggered_tags",
                        "triggers": ["<f="],
                        "tags": [tag("<f=g>", {"type": "json_schema", "json_schema": INTEGER}, "</f>")],
                    },
                ],
            },
            ["<think>so <f= </think>", "<think></think>a<f=g>3</f>b"],
            ["a", "<think></think><f=g>x</f>", "<think>"],
        ),
    ],
)
def test_elements(element: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    spec = constrain.structural_tag(element)
    assert [text for text in right if not spec.matches(text)] == []
    assert [text for text in wrong if spec.matches(text)] == []
    assert spec == constrain.structural_tag(json.loads(json.dumps(element)))


def test_the_older_shape() -> None:
    given = {
        "type": "structural_tag",
        "structures": [
            {"begin": "<function=a>", "schema": {"type": "object"}, "end": "</function>"},
            {"begin": "<function=b>", "schema": INTEGER, "end": "</function>"},
        ],
        "triggers": ["<function="],
    }
    for form in (given, json.dumps(given)):
        spec = constrain.structural_tag(form)
        assert spec.matches('so: <function=a>{"x": [1]}</function> and <function=b>7</function>.')
        assert spec.matches("no function at all")
        assert not spec.matches("<function=c>1</function>")
        assert not spec.matches("<function=b>77</function>")


def test_blanks_in_json_follow_the_option() -> None:
    element = {"type": "json_schema", "json_schema": {"type": "array"}}
    assert constrain.structural_tag(element).matches("[1, 2]")
    assert not constrain.structural_tag(element).matches("[1, 2] ")
    assert not constrain.structural_tag(element, whitespace="compact").matches("[1, 2]")


def test_special_tokens() -> None:
    element = {
        "type": "triggered_tags",
        "triggers": [{"type": "token", "token": "<call>"}],
        "tags": [
            {
                "begin": {"type": "token", "token": "<call>"},
                "content": {"type": "json_schema", "json_schema": INTEGER},
                "end": {"type": "token", "token": 257},
            }
        ],
    }
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary.from_tokens(
        [*tokens, None, None, None], eos_token_ids=258, special_tokens={"<call>": 256}
    )
    matcher = constrain.compile(constrain.structural_tag(element), vocabulary, cache=False).matcher()
    assert matcher.accept_string("<call> is text")
    assert matcher.is_accepting()
    assert matcher.accept_token(256)
    assert not matcher.is_accepting()
    assert not matcher.accept_string("x")
    assert matcher.accept_string("3")
    assert not matcher.accept_token(256)
    assert matcher.accept_token(257)
    assert matcher.accept_string("more")
    assert matcher.is_accepting()


def test_compiled_tags_are_saved(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], eos_token_ids=256)
    spec = constrain.structural_tag({"type": "json_schema", "json_schema": INTEGER}, whitespace="compact")
    constrain.compile(spec, vocabulary, cache=False).save(tmp_path / "tag")
    assert constrain.CompiledSpec.load(tmp_path / "tag", vocabulary).spec == spec


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "message", "pointer"),
    [
        ("{", "not JSON", None),
        ([], "expected an object", "#"),
        ({"type": "structural_tag"}, "neither 'format' nor", "#"),
        ({"format": {"type": "nothing"}}, "no type of element", "#/format/type"),
        ({"format": const("a"), "x": 1}, "'x' is not known", "#/x"),
        ({"structures": []}, "'triggers' is missing", "#"),
        ({"structures": [], "triggers": ["a"]}, "not empty", "#/structures"),
        ({"type": "const_string"}, "'value' is missing", "#"),
        ({"type": "const_string", "value": 3}, "expected text", "#/value"),
        ({"type": "const_string", "value": "\ud800"}, "lone surrogate", "#/value"),
        ({"type": "regex", "pattern": "("}, "never closed", "#"),
        ({"type": "tag", "begin": "a", "content": const("b"), "end": []}, "at least one end", "#/end"),
        ({"type": "json_schema", "json_schema": {"type": "x"}}, "type", "#/json_schema/type"),
        (
            {"type": "sequence", "elements": [{"type": "json_schema", "json_schema": {"minLength": "a"}}]},
            "minLength|integer",
            "#/elements/0/json_schema/minLength",
        ),
        ({"type": "any_text", "excludes": [""]}, "stands everywhere", "#/excludes/0"),
        ({"type": "token", "token": ""}, "name or id", "#/token"),
        (tag("", const("a"), "b"), "begin with nothing", "#/begin"),
        (
            {"type": "triggered_tags", "triggers": ["<"], "tags": [tag(">", const("a"), "b")]},
            "none of the triggers",
            None,
        ),
        (
            {"type": "triggered_tags", "triggers": [""], "tags": [tag(">", const("a"), "b")]},
            "nothing",
            "#/triggers/0",
        ),
        (
            {"type": "triggered_tags", "triggers": ["<"], "tags": [const("a")]},
            "is missing|is not known",
            "#/tags/0",
        ),
        ({"type": "repeat", "content": const("a"), "min": -1, "max": 2}, "expected a count", "#/min"),
        (
            {
                "type": "tags_with_separator",
                "tags": [tag("a", const("a"), "b")],
                "separator": "",
                "at_least_one": 1,
            },
            "true or false",
            "#/at_least_one",
        ),
    ],
)
def test_errors(given: Any, message: str, pointer: str | None) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        constrain.structural_tag(given)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    "given",
    [
        {"type": "qwen_xml_parameter", "json_schema": {}},
        {"type": "json_schema", "json_schema": {}, "style": "qwen_xml"},
    ],
)
def test_what_is_not_supported(given: Any) -> None:
    with pytest.raises(UnsupportedFeatureError):
        constrain.structural_tag(given)


def test_deep_nesting_is_refused() -> None:
    given: dict[str, Any] = const("a")
    for _ in range(5_000):
        given = {"type": "optional", "content": given}
    with pytest.raises(constrain.LimitExceededError, match="nesting"):
        constrain.structural_tag({"format": given})


def test_lookahead_of_grammars_in_tags() -> None:
    """What a terminal asks of the text behind it is asked inside tags, too."""
    text = 'start: IF (NAME | NUMBER)\nIF: /if(?![0-9])/\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "'
    given = {"type": "sequence", "elements": [const("<"), {"type": "grammar", "grammar": text}, const(">")]}
    spec, alone = constrain.structural_tag({"format": given}), constrain.grammar(text)
    for inside in ("if a", "if1", "if 1", "ifa"):
        assert spec.matches(f"<{inside}>") == alone.matches(inside), inside
    assert alone.matches("if 1") and not alone.matches("if1")
