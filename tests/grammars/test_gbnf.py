"""GBNF: what texts mean, against an enumeration of members; errors; hostile texts."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain.base_spec import Spec
from constrain.errors import ConstrainError, EmptyLanguageError, LimitExceededError, SpecError
from constrain.grammars.gbnf.build import gbnf_grammar, looks_like_gbnf
from constrain.grammars.limits import Limits, Watch
from constrain.tokenizer_index.vocabulary import Vocabulary

LONGEST = 4
ALPHABET = "ab"
TEXTS = ["".join(letters) for n in range(LONGEST + 1) for letters in product(ALPHABET, repeat=n)]


def gbnf(text: str, start: str | None = None, limits: Limits | None = None) -> Spec:
    return Spec.from_grammar(gbnf_grammar(text, start, watch=Watch(limits or Limits())), limits=limits)


# ------------------------------------------------------------------------------------ meaning

# Trees of the oracle: ("text", s), ("class", characters, negated), ("name", i), ("sequence", parts),
# ("choice", parts), ("repeat", body, low, high or None).

NAMES = ("root", "b-rule", "c_rule", "d1")


def trees():
    leaves = st.one_of(
        st.tuples(st.just("text"), st.sampled_from(["", "a", "b", "ab", "ba"])),
        st.tuples(st.just("class"), st.sampled_from(["a", "b", "ab"]), st.booleans()),
        st.tuples(st.just("name"), st.integers(0, len(NAMES) - 1)),
    )

    def deeper(inner):
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (2, None), (1, 3), (0, 2), (0, 0)])
        return st.one_of(
            st.tuples(st.just("sequence"), parts),
            st.tuples(st.just("choice"), parts),
            st.builds(lambda body, count: ("repeat", body, *count), inner, counts),
        )

    return st.recursive(leaves, deeper, max_leaves=6)


def written(tree) -> str:
    match tree:
        case ("text", text):
            return f'"{text}"'
        case ("class", characters, negated):
            return f"[{'^' if negated else ''}{characters}]"
        case ("name", index):
            return NAMES[index]
        case ("sequence", parts):
            return " ".join(f"({written(part)})" if part[0] == "choice" else written(part) for part in parts)
        case ("choice", parts):
            return " | ".join(map(written, parts))
        case ("repeat", body, low, high):
            short = {(0, None): "*", (1, None): "+", (0, 1): "?", (low, low): f"{{{low}}}"}
            count = short.get((low, high), f"{{{low},{'' if high is None else high}}}")
            return f"({written(body)}){count}"
    raise AssertionError(tree)


def joined(first: set[str], second: set[str]) -> set[str]:
    return {a + b for a in first for b in second if len(a + b) <= LONGEST}


def members(tree, rules: list[set[str]]) -> set[str]:
    """Return the members of at most LONGEST characters, given those of the rules."""
    match tree:
        case ("text", text):
            return {text}
        case ("class", characters, negated):
            return {c for c in ALPHABET if (c in characters) != negated}
        case ("name", index):
            return rules[index]
        case ("sequence", parts):
            found = {""}
            for part in parts:
                found = joined(found, members(part, rules))
            return found
        case ("choice", parts):
            return set().union(*(members(part, rules) for part in parts))
        case ("repeat", body, low, high):
            once = members(body, rules)
            found, result = {""}, {""} if low == 0 else set()
            for i in range(1, (low + 2 * LONGEST if high is None else high) + 1):
                found = joined(found, once)
                if i >= low:
                    result |= found
            return result
    raise AssertionError(tree)


@settings(max_examples=300, deadline=None)
@given(st.lists(trees(), min_size=len(NAMES), max_size=len(NAMES)))
def test_members_are_those_of_an_enumeration(bodies) -> None:
    text = "\n".join(f"{name} ::= {written(body)}" for name, body in zip(NAMES, bodies, strict=True))
    rules: list[set[str]] = [set() for _ in bodies]
    while True:
        new = [members(body, rules) for body in bodies]
        if new == rules:
            break
        rules = new
    try:
        spec = gbnf(text)
    except EmptyLanguageError:
        assert not rules[0]
        return
    assert [t for t in TEXTS if spec.matches(t)] == [t for t in TEXTS if t in rules[0]], text


JSON = r"""
# JSON as a chat model is asked for it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
    string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws # with escapes
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
ARITHMETIC = r"""root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] ws term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""
LIST = r"""root ::= item+
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
"""
CHESS = r"""root      ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move      ::= (pawn | nonpawn | castle) [+#]?
nonpawn   ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn      ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle    ::= "O-O" "-O"?
"""


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (
            JSON,
            ["{}", '{"a": [1, -2.5e3, {"b":null}]}', '{"\\u00e9\\n":\n  "x"}', '{"日本": true }'],
            ["", "[]", '{"a":}', '{"a":01}', '{"a"  :1}', '{"a":1,}', '{"\n":1}'],
        ),
        (ARITHMETIC, ["a+b=3\n", "(a_1* (2-x)) =4\n\n1=1\n"], ["a+=3\n", "a=b", "(a=b\n", "A=1\n"]),
        (LIST, ["- one\n", "- é, 2\n- - x\n"], ["- one", "-one\n", "- \n", "- a\r\n"]),
        (
            CHESS,
            ["1. e4 e5\n2. Nf3 Nc6\n", "1. e4 d5\n2. exd5 Qxd5+\n12. O-O-O a8=Q#\n"],
            ["1. e4 e5\n", "1. e9 e5\n2. a4 a5\n", "1. e4\n2. d4 d5\n"],
        ),
    ],
    ids=["json", "arithmetic", "list", "chess"],
)
def test_grammars_as_people_write_them(text: str, right: list[str], wrong: list[str]) -> None:
    spec = gbnf(text)
    assert [spec.matches(t) for t in right] == [True] * len(right)
    assert [t for t in wrong if spec.matches(t)] == []


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (r'root ::= "\n\t\r\"\\\[\]"', ['\n\t\r"\\[]'], ["n"]),
        (r'root ::= "\x41\u00e9\U0001F600"', ["Aé😀"], ["x41"]),
        (r"root ::= [\x41-\x43\]\-^]", ["A", "B", "C", "]", "-", "^"], ["D", "\\", ""]),
        (r"root ::= [a-]", ["a", "-"], ["b", "a-"]),
        (r"root ::= [^a-y\n]", ["z", "é", "\r"], ["\n", "b", ""]),
        ("root ::= [\U0000d000-\U0000e000]", ["\ud000", "\ue000"], ["a"]),
        ("root ::= .", ["\n", "a", "😀"], ["", "ab"]),
        ('root ::= "a"{2}', ["aa"], ["a", "aaa"]),
        ('root ::= "a"{2,}', ["aa", "aaaaa"], ["a"]),
        ('root ::= "a"{1,2}', ["a", "aa"], ["", "aaa"]),
        ('root ::= "a"{,2}', ["", "a", "aa"], ["aaa"]),
        ('root ::= "a"{ 1 , 2 }', ["a", "aa"], ["", "aaa"]),
        ('root ::= "ab"+?', ["", "abab"], ["a", "abb"]),
        ('root ::= x("," x)*\nx ::= "a"', ["a", "a,a"], ["a,"]),
        ('root ::= "a" # one\n   | "b" # two\n', ["a", "b"], ["ab"]),
        ('root ::= "a"\n  "b"\nx ::= "c"', ["ab"], ["a", "c"]),
        ('root ::=\r\n  a_b\r\na_b ::= a-b\r\na-b ::= "x"\r\n', ["x"], [""]),
        ("root ::= ", [""], ["a"]),
        ('root ::= () | "a"', ["", "a"], ["aa"]),
        ('root ::= (("a"*)*)+', ["", "aaa"], ["b"]),
        ('root ::= x root | ""\nx ::= "a"*', ["", "aa"], ["b"]),
        ('root ::= root root | "a"', ["a", "aaaa"], ["", "b"]),
        ('root ::= root "+" "1" | "1"', ["1", "1+1+1"], ["+1", "1+"]),
        ('root ::= "(" root ")" | ""', ["", "(())"], ["(()"]),
    ],
)
def test_notation(text: str, right: list[str], wrong: list[str]) -> None:
    spec = gbnf(text)
    assert [spec.matches(t) for t in right] == [True] * len(right)
    assert [t for t in wrong if spec.matches(t)] == []


def test_special_tokens() -> None:
    text = 'root ::= <think> [a-z]* </think> answer <[258]>?\nanswer ::= "<think>"'
    spec = gbnf(text)
    assert sorted(map(str, spec.network.special_tokens)) == ["258", "</think>", "<think>"]
    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = Vocabulary.from_tokens(
        [*tokens, None, None, None, None],
        eos_token_ids=259,
        special_tokens={"<think>": 256, "</think>": 257},
    )
    matcher = constrain.compile(spec, vocabulary, cache=False).matcher()
    assert not matcher.accept_string("<think>")
    assert matcher.accept_token(256)
    assert matcher.accept_string("so")
    assert matcher.accept_token(257)
    assert matcher.accept_string("<think>")
    assert matcher.is_accepting()
    assert matcher.accept_token(258)


def test_another_start() -> None:
    text = 'root ::= "a" other\nother ::= "b"'
    assert gbnf(text, "other").matches("b")
    with pytest.raises(SpecError, match=r"no rule 'nothing'.*'root', 'other'"):
        gbnf(text, "nothing")


def test_what_is_regular_is_one_terminal() -> None:
    assert len(gbnf(CHESS).grammar.terminals) == 1
    assert len(gbnf('root ::= "a" root | [bc] root | "d"').grammar.terminals) == 1
    assert len(gbnf('root ::= root "a" | "d"').grammar.terminals) == 1
    # Equal terminals would be read side by side.
    names = [terminal.name for terminal in gbnf(JSON).grammar.terminals]
    assert len(names) == len(set(names))


def test_large_parts_are_not_copied_without_end() -> None:
    doubled = "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(40)) + "r40 ::= [ab]"
    spec = gbnf("root ::= r28\n" + doubled)
    assert spec.network.n_positions < 20_000
    assert spec.matches("ab" * 2048)
    assert not spec.matches("ab" * 2047)


# ------------------------------------------------------------------------------------ recognition


@pytest.mark.parametrize(
    "text", [JSON, CHESS, "# a comment\n\n  root ::= x", "//c\nmy-rule::=x", "x_1.y ::= "]
)
def test_looks_like_gbnf(text: str) -> None:
    assert looks_like_gbnf(text)


@pytest.mark.parametrize(
    "text", ["", "start: a", 'start: "::="', "?start: a\nb ::= c", "%ignore WS", "a = b"]
)
def test_looks_like_something_else(text: str) -> None:
    assert not looks_like_gbnf(text)


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ('root ::= "a" (', "never closed", 1, 14),
        ('root ::= "a" )', "closes no group", 1, 14),
        ('root = "a"', "'::=' is expected", 1, 5),
        ('root ::= "a"\n= "a"', "begins no symbol", 2, 1),
        ("= x", "A rule is expected", 1, 1),
        ('root ::= "a"\n  foo', "'foo' is not defined", 2, 3),
        ('root ::= "a"\nunused ::= foo', "'foo' is not defined", 2, 12),
        ('root ::= "a', "literal is never closed", 1, 10),
        ("root ::= [a", "class is never closed", 1, 10),
        ("root ::= []", "no characters", 1, 10),
        ("root ::= [^]", "no characters", 1, 10),
        ("root ::= [b-a]", "ends before it begins", 1, 11),
        (r'root ::= "\q"', "no escape", 1, 11),
        (r"root ::= [\d]", "no escape", 1, 11),
        ('root ::= "\\', "no escape", 1, 11),
        (r'root ::= "\x4"', "2 hexadecimal digits", 1, 11),
        (r'root ::= "\ud800"', "no character", 1, 11),
        (r'root ::= "\U00110000"', "no character", 1, 11),
        ('root ::= "\ud800"', "no character", 1, 10),
        ("root ::= *", "nothing before '\\*'", 1, 10),
        ('root ::= "a" | +', "nothing before", 1, 16),
        ('root ::= "a"{3,1}', "more than it allows", 1, 13),
        ('root ::= "a"{}', "count is expected", 1, 13),
        ('root ::= "a"{x}', "count is expected", 1, 13),
        ('root ::= "a"{9999999999}', "too large", 1, 13),
        ('root ::= "a"\nroot ::= "b"', "defined twice, first in line 1", 2, 1),
        ('root ::= "a" b ::= "c"', "line of its own", 1, 14),
        ("root ::= 'a'", "begins no symbol", 1, 10),
        ("root ::= /a/", "begins no symbol", 1, 10),
        ('root ::= "a" (= "b")', "not supported", 1, 14),
        ('root ::= TagDispatch(("a", b))\nb ::= "c"', "not supported", 1, 10),
        ("root ::= !<[3]>", "not supported", 1, 10),
        ("root ::= < a", "token is expected", 1, 10),
        ("root ::= root", "never ends", 1, 1),
        ('root ::= "a" root', "never ends", 1, 1),
    ],
)
def test_errors_point_at_their_place(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        gbnf(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["root ::= a\na ::= b\nb ::= a", 'root ::= "x" a\na ::= "(" a ")" | "y" a a']
)
def test_empty_languages_are_refused(text: str) -> None:
    with pytest.raises(EmptyLanguageError):
        gbnf(text)


def test_a_missing_start_is_an_error() -> None:
    with pytest.raises(SpecError, match=r"no rule 'root'.*no rules at all"):
        gbnf("  # nothing\n")


# ------------------------------------------------------------------------------------ hostile texts

DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "root ::= " + "(" * DEEP + '"a"' + ")" * DEEP,
        "root ::= " + "(" * DEEP,
        "root ::= " + '"a" | ' * DEEP + '"b"',
        "root ::= " + '"a"' + "?" * DEEP,
        "root ::= " + '"a"' + "{2}" * 1500,
        "root ::= " + '"a" ' + "+?" * DEEP,
        "root ::= " + "([a] " * 1500 + '"a"' + ")*" * 1500,
        "root ::= " + "([a] root " * 1500 + '"a"' + ")*" * 1500 + '| "x"',
        "root ::= " + '"' + "a" * 1_000_000 + '"',
        "root ::= " + '"' + "\\x41" * 250_000 + '"',
        "root ::= [" + "a-z" * 300_000 + "]",
        "#" * 1_000_000 + "\nroot ::= x",
        " \n" * 500_000,
        "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(50_000)) + 'r50000 ::= "a"',
        "root ::= r0\n"
        + "".join(f'r{i} ::= "a" r{i + 1} "b" | r0\n' for i in range(20_000))
        + 'r20000 ::= "a"',
        "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(200)) + "r200 ::= [ab]",
        'root ::= ("a" root "b" | "c"){999999999}',
        'root ::= x{999999999}\nx ::= "(" x ")" | "y"',
        'root ::= ("a"{1000}){1000}{1000}{1000}',
        'root ::= (("a"?)*)* root (("b"?)+)+ | ""*',
    ],
    ids=range(20),
)
def test_hostile_texts_end_soon(text: str) -> None:
    began = time.monotonic()
    try:
        spec = gbnf(text, limits=Limits(compile_seconds=10))
        spec.matches("a" * 50)
    except ConstrainError as error:
        assert len(str(error)) < 1_000
    assert time.monotonic() - began < 60


def test_work_is_bounded() -> None:
    with pytest.raises(LimitExceededError, match="nesting"):
        gbnf("root ::= " + "(" * 3_000 + '"a"' + ")" * 3_000)
    # A count costs nothing, however large.
    assert not gbnf('root ::= x{999999999}\nx ::= "(" x ")" | "y"').matches("y" * 50)
