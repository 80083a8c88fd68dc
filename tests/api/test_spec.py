"""Specs: constructors, operators, and the questions that need no tokenizer."""

from __future__ import annotations

import dataclasses
import json
import operator
import pickle
import random
import re
import threading
import time
from enum import Enum, IntEnum
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given

import constrain
from constrain import base_spec
from constrain.errors import EmptyLanguageError, LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars import ir
from constrain.grammars.combine import concatenation, union, without_ignored
from constrain.spec import Spec
from tests.reference.grammar import ReferenceGrammar
from tests.strategies import ALPHABET_BYTES, fixed, grammars

RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


class Colour(Enum):
    RED = "red"
    REDDISH = "reddish"
    NONE = None


class Level(IntEnum):
    LOW = 1
    HIGH = 10


@dataclasses.dataclass
class Person:
    name: str
    age: int


SPECS: list[Spec] = [
    constrain.regex(r"[0-9]+(\.[0-9]+)?"),
    constrain.regex("(?!0{3})[0-9]{3}"),
    constrain.regex("é{2,40}|(?:(?!end).)*end"),
    constrain.choice(["red", "reddish", "green", "é", "a b"]),
    constrain.choice(Colour),
    constrain.json_schema(RECORD),
    constrain.json_schema(RECORD, whitespace="compact"),
    constrain.json_schema({"type": "string", "pattern": "^x-|_id$", "maxLength": 12}),
    constrain.python_type(Person),
    constrain.python_type(list[int]),
    constrain.regex("a+") | constrain.json_schema(RECORD),
    constrain.json_schema({"type": "integer"}) + constrain.regex(" = ") + constrain.json_schema(RECORD),
]


# ------------------------------------------------------------------------------------ regex


def test_regex_cases_of_user_reports(shared: Path) -> None:
    """All reported cases of kind ``regex`` are right."""
    cases = [c for c in json.loads((shared / "cases/user_reports.json").read_text()) if c["kind"] == "regex"]
    assert len(cases) >= 5
    for case in cases:
        spec = constrain.regex(case["spec"])
        assert [t for t in case["accepts"] if not spec.matches(t)] == [], case["topic"]
        assert [t for t in case["rejects"] if spec.matches(t)] == [], case["topic"]


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        (r"\d{2,4}-[a-f]+", ""),
        ("straße", "i"),
        (r"^a.b$", "s"),
        (r" \w+ # word", "x"),
        (r"(?=.*\d)\w{3,8}", ""),
        (r"\bx\b.*", ""),
    ],
)
def test_matches_agrees_with_re(pattern: str, flags: str) -> None:
    """`matches` answers as `re.fullmatch` on random texts."""
    letters = sum(getattr(re, letter.upper()) for letter in flags)
    spec = constrain.regex(pattern, flags=flags)
    rng = random.Random(pattern)
    for _ in range(300):
        text = "".join(rng.choices("a1x-fSTRASSEßstraße\n .b", k=rng.randrange(9)))
        assert spec.matches(text) == (re.fullmatch(pattern, text, letters) is not None), text


def test_alternatives_with_conjunctions() -> None:
    """Alternatives that are conjunctions keep their meaning, large counts among them."""
    spec = constrain.regex(r"(?=.*\d)[a-z\d]{8,9000}|(?=.*[A-Z])(?!X)\w{4,9000}|-+")
    for text in ("abcdefg1", "abCd", "--", "a1" * 3000):
        assert spec.matches(text), text[:20]
    for text in ("abcdefgh", "abcd", "XbCd", "a1", "-a", ""):
        assert not spec.matches(text), text
    assert spec.explain("!").expected[0] == "'-'"


def test_a_compiled_pattern_brings_its_flags() -> None:
    """`regex` takes what `re.compile` gives."""
    spec = constrain.regex(re.compile("a.b", re.IGNORECASE | re.DOTALL))
    assert spec.matches("A\nB")
    assert not constrain.regex(re.compile(r"\w", re.ASCII)).matches("é")
    with pytest.raises(SpecError):
        constrain.regex(re.compile(b"a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error", "part"),
    [
        (lambda: constrain.regex("a(b"), SpecError, "^"),
        (lambda: constrain.regex(r"(a)\1"), UnsupportedFeatureError, "^"),
        (lambda: constrain.regex("a", flags="q"), SpecError, "'i', 'm', 's' and 'x'"),
        (lambda: constrain.regex("a", flags=3), SpecError, "imsx"),  # type: ignore[arg-type]
        (lambda: constrain.regex(3), SpecError, "int"),  # type: ignore[arg-type]
        (lambda: constrain.regex(r"[^\s\S]"), EmptyLanguageError, "No text matches"),
        (lambda: constrain.regex("(?=a)b"), EmptyLanguageError, "No text matches"),
        (lambda: constrain.regex("(?=.*a$)(?=.*b$)[ab]+"), EmptyLanguageError, "No text matches"),
        (lambda: constrain.regex("(?![ab]*$)[ab]{3}"), EmptyLanguageError, "No text matches"),
        (lambda: constrain.choice([]), EmptyLanguageError, "option"),
        (lambda: constrain.choice("abc"), SpecError, "list of options"),
        (lambda: constrain.choice(7), SpecError, "list of options"),  # type: ignore[arg-type]
        (lambda: constrain.choice({"a": 1}), SpecError, "list of options"),
        (lambda: constrain.choice(["a", object()]), SpecError, "Option 1"),
        (lambda: constrain.choice(["a", float("nan")]), SpecError, "Option 1"),
        (lambda: constrain.choice(["a", b"b"]), SpecError, "Option 1"),
        (lambda: constrain.choice(["\ud800"]), SpecError, "surrogate"),
        (lambda: constrain.json_schema({"type": "strnig"}), SpecError, "#/type"),
        (lambda: constrain.json_schema("{"), SpecError, "^"),
        (lambda: constrain.json_schema({"type": "string", "pattern": "a("}), SpecError, "#/pattern"),
        (lambda: constrain.json_schema({}, whitespace="a("), SpecError, "^"),
        (lambda: constrain.json_schema({}, property_order="sorted"), SpecError, "'any'"),
        (lambda: constrain.json_schema({}, integers="all"), SpecError, "'plain'"),
        (lambda: constrain.json_schema({}, unsupported="drop"), SpecError, "'ignore'"),
        (lambda: constrain.json_schema({}, draft="draft3"), SpecError, "'draft4'"),
        (lambda: constrain.json_schema({}, max_whitespace=0), SpecError, "at least 1"),
        (
            lambda: constrain.json_schema({"type": "integer", "minimum": 3, "maximum": 2}),
            EmptyLanguageError,
            "",
        ),
        (lambda: constrain.json_schema(False), EmptyLanguageError, ""),
        (lambda: constrain.python_type(print), SpecError, ""),
    ],
)
def test_mistakes_show_at_once(make: Any, error: type[Exception], part: str) -> None:
    """A constructor raises at once, with a message that says where and what to do."""
    with pytest.raises(error) as caught:
        make()
    assert part in str(caught.value)


def test_conjunctions_are_checked_for_emptiness() -> None:
    """Patterns that exclude each other are an empty language already in the constructor."""
    with pytest.raises(EmptyLanguageError):
        constrain.json_schema({"type": "string", "allOf": [{"pattern": "^[ab]{3}$"}, {"pattern": "^c"}]})


# ------------------------------------------------------------------------------------ choice


def test_choice_options_are_literal() -> None:
    """Options are texts, not patterns, and the whole text counts."""
    options = ["No. 7 (new)", "C++", "a|b", "[x]*", "", "😀"]
    spec = constrain.choice(options)
    assert all(spec.matches(option) for option in options)
    assert not any(spec.matches(text) for text in ("C", "a", "b", "xx", "NoX 7 (new)", "C++ "))
    assert [spec.parse(option) for option in options] == options


def test_choice_of_ten_thousand() -> None:
    """10,000 options, with repetitions, are fine and fast."""
    options = [f"option {i * i}" for i in range(10_000)] + ["option 4"]
    start = time.perf_counter()
    spec = constrain.choice(options)
    assert time.perf_counter() - start < 3
    assert spec.matches("option 9801") and not spec.matches("option 2") and not spec.matches("option 98")


def test_choice_values() -> None:
    """Values that are no strings are written as JSON; `parse` gives them back."""
    spec = constrain.choice(["x", 1, 2.5, None, True, [1, "1"], {"é": 1}])
    for text, value in (
        ("x", "x"),
        ("1", 1),
        ("2.5", 2.5),
        ("null", None),
        ("true", True),
        ('[1, "1"]', [1, "1"]),
        ('{"é": 1}', {"é": 1}),
    ):
        assert spec.matches(text)
        assert spec.parse(text) == value and type(spec.parse(text)) is type(value)
    assert constrain.choice(["1", 1]).parse("1") == "1"
    assert constrain.choice(Colour).parse("reddish") is Colour.REDDISH
    assert constrain.choice(Colour).parse("null") is Colour.NONE
    assert constrain.choice(Level).parse("10") is Level.HIGH
    assert constrain.choice(Literal["a", 2]).parse("2") == 2  # type: ignore[arg-type]
    assert constrain.choice([Colour.RED, "blue"]).parse("red") is Colour.RED
    with pytest.raises(SpecError):
        spec.parse("y")


# ------------------------------------------------------------------------------------ identity


def test_equality_and_hash() -> None:
    """Specs are equal if made alike, and keys of dictionaries."""
    assert constrain.regex("a") == constrain.regex("a") != constrain.regex("b")
    assert constrain.regex("a", flags="si") == constrain.regex("a", flags="is") != constrain.regex("a")
    assert constrain.choice(["a", "b"]) == constrain.choice(["a", "b", "a"]) != constrain.choice(["b", "a"])
    assert constrain.choice(["1"]) != constrain.choice([1])
    assert constrain.json_schema(RECORD) == constrain.json_schema(dict(RECORD))
    assert constrain.json_schema(RECORD) != constrain.json_schema(RECORD, whitespace="compact")
    assert constrain.json_schema({"type": "array", "items": {"type": "integer"}}) != constrain.python_type(
        list[int]
    )
    assert constrain.python_type(Person) == constrain.python_type(Person)
    assert constrain.regex("a") | constrain.regex("b") == constrain.regex("a") | constrain.regex("b")
    assert constrain.regex("a") | constrain.regex("b") != constrain.regex("a") + constrain.regex("b")
    grammar = ir.pattern_grammar(ir.Literal(b"a"))
    assert (
        Spec.from_grammar(grammar)
        == Spec.from_grammar(grammar)
        != Spec.from_grammar(ir.pattern_grammar(ir.Literal(b"a")))
    )
    assert constrain.regex("a") != "a"
    assert len({constrain.regex("a"), constrain.regex("a"), constrain.choice(["a"])}) == 2


def test_a_spec_does_not_change() -> None:
    """Attributes cannot be set, and changing a schema later changes nothing."""
    spec = constrain.regex("a")
    with pytest.raises(AttributeError):
        spec.kind = "choice"
    with pytest.raises(AttributeError):
        del spec.kind
    schema = {"type": "array", "items": {"enum": ["a"]}}
    made = constrain.json_schema(schema)
    schema["items"] = {"enum": ["b"]}
    assert made.matches('["a"]') and not made.matches('["b"]')


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (constrain.regex("[a-z]+"), "regex('[a-z]+')"),
        (constrain.regex("a", flags="i"), "regex('a', flags='i')"),
        (constrain.choice(["a", 1]), "choice(['a', 1])"),
        (constrain.choice(["a", "b", "c", "d"]), "choice(['a', 'b', 'c', …])"),
        (constrain.json_schema(True), "json_schema(true)"),
        (
            constrain.json_schema({"type": "null"}, whitespace="compact"),
            'json_schema({"type": "null"}, whitespace=\'compact\')',
        ),
        (constrain.python_type(Person), "python_type(Person)"),
        (constrain.python_type(list[int]), "python_type(list[int])"),
        (
            constrain.regex("a") | constrain.regex("b") | constrain.regex("c"),
            "regex('a') | regex('b') | regex('c')",
        ),
        (
            (constrain.regex("a") | constrain.regex("b")) + constrain.regex("c"),
            "(regex('a') | regex('b')) + regex('c')",
        ),
    ],
)
def test_repr_is_short_and_readable(spec: Spec, text: str) -> None:
    """The repr reads like the call that made the spec."""
    assert repr(spec) == text
    assert len(repr(constrain.regex("a" * 5000))) < 100


def test_source_makes_the_spec_again() -> None:
    """`source` has the arguments of the constructor."""
    assert constrain.regex("a", flags="i").source() == {"pattern": "a", "flags": "i"}
    assert constrain.choice(Colour).source() == {"options": ["red", "reddish", None]}
    found = constrain.json_schema(RECORD, whitespace="compact").source()
    assert found is not None
    assert constrain.json_schema(found["schema"], **found["options"]) == constrain.json_schema(
        RECORD, whitespace="compact"
    )
    assert Spec.from_grammar(ir.pattern_grammar(ir.Literal(b"a"))).source() is None


# ------------------------------------------------------------------------------------ questions


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", b"\xff", b"a\xed\xa0\x80", b"\xc0\x80"])
def test_what_is_no_utf8_is_no_member(text: str | bytes) -> None:
    """Lone surrogates and malformed UTF-8 are never members, and are explained."""
    spec = constrain.regex(r"(?s:.)*")
    assert not spec.matches(text)
    explanation = spec.explain(text)
    assert not explanation.ok and str(explanation)
    assert spec.matches("é😀".encode()) and spec.matches("")


@pytest.mark.parametrize(
    ("spec", "text", "offset", "line", "column", "found", "expected"),
    [
        (constrain.regex("ab+c"), "abx", 2, 1, 3, "x", ("'b' to 'c'",)),
        (constrain.regex("ab+c"), "ab", 2, 1, 3, "", ("'b' to 'c'",)),
        (constrain.regex("a?"), "aa", 1, 1, 2, "a", ("the end of the text",)),
        (constrain.regex("é\nx"), "é\ny", 3, 2, 1, "y", ("'x'",)),
        (constrain.regex("[0-9A-F]"), "g", 0, 1, 1, "g", ("'0' to '9'", "'A' to 'F'")),
        (constrain.regex("[😀-🙏]"), "☀", 0, 1, 1, "☀", ("a character outside ASCII",)),
        (
            constrain.choice(["red", "reddish"]),
            "redx",
            3,
            1,
            4,
            "x",
            ("'red'", "'reddish'", "the end of the text"),
        ),
        (constrain.json_schema({"type": "integer"}), '"', 0, 1, 1, '"', ("integer",)),
    ],
)
def test_explanations(
    spec: Spec, text: str, offset: int, line: int, column: int, found: str, expected: tuple[str, ...]
) -> None:
    """An explanation has the first wrong byte, its line and column, what was found and what was expected."""
    explanation = spec.explain(text)
    assert not explanation.ok
    assert (explanation.offset, explanation.line, explanation.column, explanation.found) == (
        offset,
        line,
        column,
        found,
    )
    assert explanation.expected == expected
    assert str(explanation).endswith("^") and f"line {line}, column {column}" in str(explanation)


def test_an_explanation_of_a_schema_has_a_pointer() -> None:
    """The place in the schema and the lexeme that was expected are named."""
    spec = constrain.json_schema(RECORD)
    explanation = spec.explain('{"name": "Ann",\n "age": -1}')
    assert not explanation.ok and (explanation.line, explanation.column) == (2, 9)
    assert explanation.pointer is not None and explanation.pointer.startswith("#/properties/age")
    assert "#/properties/age" in str(explanation)
    assert spec.explain('{"name": "Ann"}').ok
    assert str(spec.explain('{"name": "Ann"}')) == "The text is in the language."


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_samples_are_members(spec: Spec) -> None:
    """Samples are members within the limit, not always the same, and the same for the same seed."""
    rng = np.random.default_rng(3)
    texts = [spec.sample(rng, max_bytes=60) for _ in range(12)]
    assert all(spec.matches(text) and len(text.encode()) <= 60 for text in texts)
    assert len(set(texts)) > 1
    assert texts == [
        spec.sample(again, max_bytes=60) for again in [np.random.default_rng(3)] for _ in range(12)
    ]
    for text in texts[:4]:
        spec.parse(text)


def test_the_shortest_member_can_be_sampled() -> None:
    """Down to the length of the shortest member there is a sample, below it an error that names the length."""
    spec = constrain.json_schema(RECORD)
    rng = np.random.default_rng(0)
    shortest = len('{"name":""}')
    assert {spec.sample(rng, max_bytes=shortest) for _ in range(3)} == {'{"name":""}'}
    with pytest.raises(SpecError, match=f"max_bytes={shortest}"):
        spec.sample(rng, max_bytes=shortest - 1)


def test_parse_gives_values() -> None:
    """`parse` gives text, JSON data, or an object of the type."""
    assert constrain.regex("a+").parse("aa") == "aa"
    assert constrain.json_schema(RECORD).parse('{"name": "é"}') == {"name": "é"}
    assert constrain.python_type(Person).parse('{"name": "é", "age": 3}') == Person("é", 3)
    assert constrain.json_schema(Person).parse('{"name": "é", "age": 3}') == Person("é", 3)
    both = constrain.regex("[a-z]+") | constrain.json_schema({"type": "integer"})
    assert both.parse("abc") == "abc" and both.parse("12") == 12
    assert (constrain.json_schema({"type": "integer"}) + constrain.regex("!")).parse("1!") == "1!"
    with pytest.raises(SpecError):
        constrain.json_schema(RECORD).parse("{")
    with pytest.raises(LimitExceededError):
        constrain.json_schema(True).parse("[" * 100_000 + "]" * 100_000)
    assert constrain.json_schema(True).is_json and not constrain.regex("a").is_json
    assert (constrain.json_schema(True) | constrain.python_type(Person)).is_json and not both.is_json


def test_deep_schemas_have_an_identity() -> None:
    """A schema nested deeper than the library's writer goes is still a spec, equal to its like."""

    def nested(depth: int, last: Any) -> Any:
        schema = last
        for _ in range(depth):
            schema = {"items": schema}
        return schema

    assert constrain.json_schema(nested(400, {})) == constrain.json_schema(nested(400, {}))
    try:
        first, second, third = (constrain.json_schema(nested(1200, last)) for last in ({}, {}, True))
    except LimitExceededError:
        return
    assert first == second != third


def test_limits_can_be_given() -> None:
    """Constructors take limits, and keep to them."""
    with pytest.raises(LimitExceededError):
        constrain.regex("(" * 50 + ")" * 50, limits=constrain.Limits(nesting=40))
    with pytest.raises(LimitExceededError):
        constrain.regex("(?:abcdef|cd[xy]z){500}", limits=constrain.Limits(positions=3))
    assert constrain.regex("a", limits=constrain.Limits(nesting=40)).limits.nesting == 40


def test_threads_share_a_spec() -> None:
    """Many threads asking one spec get the right answers."""
    spec = constrain.json_schema(RECORD)
    wrong: list[str] = []

    def ask(number: int) -> None:
        for i in range(30):
            text = json.dumps({"name": f"n{number}"[:6], "age": i})
            if not spec.matches(text) or spec.matches(text[:-1]):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ------------------------------------------------------------------------------------ operators


def test_each_part_keeps_its_blanks() -> None:
    """Blanks between the lexemes of a JSON part stay inside that part."""
    record = constrain.json_schema({"type": "array", "items": {"type": "integer"}})
    compact = constrain.json_schema({"enum": [[1, 2]]}, whitespace="compact")
    either = record | constrain.regex("a b?") | compact
    assert either.is_json is False
    for text in ("[1, 2]", "[ 1 ]", "a ", "a b"):
        assert either.matches(text), text
    for text in (" [1]", "[1] ", "a  b", "ab", " a "):
        assert not either.matches(text), text
    row = record + constrain.regex("!") + compact
    assert row.matches("[ 3 ]![1,2]")
    for text in ("[3] ![1,2]", "[3]! [1,2]", "[3]![1, 2]", "[3]![1,2] ", "[3]!"):
        assert not row.matches(text), text
    with pytest.raises(TypeError):
        record | "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        record + "a"  # type: ignore[operator]


LENGTH = 4


def members(grammar: ir.Grammar, length: int = LENGTH) -> set[bytes]:
    """All members of up to ``length`` bytes, by the reference."""
    return set(ReferenceGrammar(grammar).members(ALPHABET_BYTES, length))


def without_priorities(grammar: ir.Grammar) -> ir.Grammar:
    terminals = tuple(dataclasses.replace(terminal, priority=0) for terminal in grammar.terminals)
    return dataclasses.replace(grammar, terminals=terminals)


@fixed(80)
@given(grammars())
def test_ignored_text_can_be_written_into_the_rules(grammar: ir.Grammar) -> None:
    """A grammar that ignores nothing has the same members, whatever the policy was."""
    explicit = without_ignored(grammar)
    assert explicit.ignored.terminals == ()
    assert members(explicit) == members(grammar)


@fixed(50)
@given(grammars(), grammars())
def test_union_and_concatenation_are_those_of_languages(first: ir.Grammar, second: ir.Grammar) -> None:
    """The combined grammar has exactly the combined members."""
    first, second = without_priorities(first), without_priorities(second)
    one, other = members(first), members(second)
    assert members(union(first, second)) == one | other
    joined = {a + b for a in one for b in other if len(a + b) <= LENGTH}
    assert members(concatenation(first, second)) == joined


@pytest.mark.parametrize("combine", [operator.or_, operator.add])
def test_many_specs_are_put_together_in_steps(combine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last step is flattened, when it is asked for; nothing nests with their number."""
    words = [constrain.regex(f"w{i};") for i in range(1_500)]
    built: list[object] = []
    build = base_spec.build_network
    monkeypatch.setattr(
        base_spec, "build_network", lambda grammar, watch: built.append(grammar) or build(grammar, watch)
    )
    spec = reduce(combine, words)
    assert built == []
    text = "w1499;" if combine is operator.or_ else "".join(f"w{i};" for i in range(1_500))
    assert spec.matches(text)
    assert spec.parse(text) == text
    assert sum(grammar is spec.grammar for grammar in built) == 1
    again = pickle.loads(pickle.dumps(spec))
    assert (again, hash(again)) == (spec, hash(spec))
