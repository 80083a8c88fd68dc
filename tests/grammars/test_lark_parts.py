"""Grammars made of parts: imports, other specs inside, unions, schemas with grammars; and specs as values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

import constrain
from constrain.errors import SpecError, UnsupportedFeatureError
from constrain.sampling import byte_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def check(spec: constrain.Spec, members: list[str], others: list[str]) -> None:
    assert [text for text in members if not spec.matches(text)] == []
    assert [text for text in others if spec.matches(text)] == []


def test_imports_from_files(tmp_path: Path) -> None:
    """Names are imported from folders given, under other names, with what they need, relative to their file."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner.lark").write_text(
        'item: _SIGN? DIGIT\n_SIGN: "-"\nDIGIT: /[0-9]/\n%ignore "_"'
    )
    (tmp_path / "deep" / "outer.lark").write_text('%import .inner.item\npair: item "," item\n')
    text = '%import deep.outer.pair -> two\n%import common.LETTER\nstart: two LETTER\nDIGIT: "x"\n'
    spec = constrain.grammar(text, import_paths=[tmp_path])
    check(spec, ["1,-2a"], ["1,2", "x,xa", "1_,2a"])
    changed = constrain.grammar(text + '%override deep__outer__item: "i"\n', import_paths=[tmp_path])
    check(changed, ["i,ia"], ["1,2a"])
    extended = constrain.grammar(text + '%extend deep__outer__item: "i"\n', import_paths=[tmp_path])
    check(extended, ["i,2a", "1,ia"], ["x,xa"])
    compiled = constrain.compile(spec, byte_vocabulary(), cache=False)
    path = tmp_path / "saved"
    compiled.save(path)
    (tmp_path / "deep" / "inner.lark").unlink()
    loaded = constrain.CompiledSpec.load(path, byte_vocabulary()).spec
    assert loaded == spec and loaded.matches("1,-2a")


def test_the_grammars_that_come_with_lark() -> None:
    """Each terminal of ``common``, and rules and terminals of the grammar of grammars, can be imported."""
    common = [
        *[
            "DIGIT",
            "HEXDIGIT",
            "INT",
            "SIGNED_INT",
            "DECIMAL",
            "FLOAT",
            "SIGNED_FLOAT",
            "NUMBER",
            "SIGNED_NUMBER",
            "ESCAPED_STRING",
        ],
        *[
            "LCASE_LETTER",
            "UCASE_LETTER",
            "LETTER",
            "WORD",
            "CNAME",
            "WS_INLINE",
            "WS",
            "CR",
            "LF",
            "NEWLINE",
        ],
        *["SH_COMMENT", "CPP_COMMENT", "C_COMMENT", "SQL_COMMENT"],
    ]
    text = f"%import common ({', '.join(common)})\nstart: {' | '.join(common)}\n"
    check(
        constrain.grammar(text),
        ["12.5e-3", '"a\\"b"', "/* a */", "name_1", "\t \n"],
        ['"a"b"', "/* a */ */", ""],
    )
    names = constrain.grammar(
        "%import lark (import_path, name_list)\nstart: import_path name_list?\n%ignore / +/\n"
    )
    check(names, ["a.b", ". a (b, C)", "_A (_b)"], ["a.", "a (b", "(b)"])


def test_schemas_and_grammars_inside() -> None:
    """What the grammar ignores may stand around a nested value, and not inside it."""
    spec = constrain.grammar('start: "(" %json {"type": "array", "maxItems": 2} ")"\n%ignore /[ _]/\n')
    check(spec, ["( _ [1,\n2] )", "([])"], ["([1_,2])", "([1,2,3])", "([1]"])
    nested = constrain.grammar('start: "a" %lark { start: "b" c\nc: "c"\n%ignore "_" }\nc: "d"\n%ignore "."')
    check(nested, ["a.b_c", "a.b__c_."], ["a b_c", "ab.c", "abd"])


def test_embedded_specs() -> None:
    """Names may stand for any specs; they are part of the spec's identity and are saved with it."""
    parts = {
        "WORD": constrain.regex("[a-c]{2}"),
        "value": constrain.choice(["1", "2"]) | constrain.json_schema(SCHEMA),
    }
    text = 'start: "x" WORD+ value?\n%ignore " "\n'
    spec = constrain.grammar(text, embed=parts)
    check(spec, ["x abbc 1", 'xab {"a": 3}', "xab"], ["x", "x abc", 'xab {"b": 3}'])
    assert spec == constrain.grammar(text, embed=dict(parts))
    assert spec != constrain.grammar(text, embed={**parts, "WORD": constrain.regex("[a-d]{2}")})
    with pytest.raises(SpecError, match="given from outside and defined"):
        constrain.grammar('start: A\nA: "a"', embed={"A": constrain.regex("b")})
    with pytest.raises(SpecError, match="expected a spec"):
        constrain.grammar("start: A", embed={"A": "b"})  # type: ignore[dict-item]


def test_unions_that_are_read_apart_are_not_embedded() -> None:
    """Inside a grammar `/[a-z]+/` would take `if` from the other part, so such a union is refused, with its place."""
    either = constrain.grammar("start: /[a-z]+/") | constrain.grammar('start: "if" "x"')
    check(either, ["if", "ifx", "ab"], ["if x"])
    with pytest.raises(
        UnsupportedFeatureError, match="'value' is a union whose parts are read apart"
    ) as error:
        constrain.grammar('start: "="\n  | value', embed={"value": either})
    assert (error.value.line, error.value.column) == (2, 5)


def test_unions_and_concatenations() -> None:
    """Combined grammars have the combined texts; where lexemes could mix, `+` is refused."""
    command = constrain.grammar('start: NAME ("," NAME)*\nNAME: /[a-z]+/\n%ignore " "')
    check(command | constrain.json_schema(SCHEMA), ["a, b", '{"a": 1}', "if"], ['{"a": 1},', "a b"])
    check(command + constrain.regex("![0-9]"), ["a ,b!1", "a !1"], ["a!", "!1"])
    check(constrain.regex("[0-9]+:") + command, ["12: a, b"], ["12:", "a"])
    check(command | constrain.regex("[a-z]+!"), ["a, b", "ab!"], ["a, b!", "a !"])
    for build in (
        lambda: command + constrain.regex("[a-z]"),
        lambda: command + command,
    ):
        with pytest.raises(UnsupportedFeatureError, match="longest matches"):
            build()
    free = constrain.grammar('start: "a"+ "b"', lexing="any")
    check(free | constrain.regex("a+"), ["aab", "aa"], ["ba"])
    check(free + constrain.regex("a+"), ["aaba"], ["aa"])


GRAMMAR = 'start: e\ne: e "+" e | N | "\\"" e "\\""\nN: /[0-9]+/\n%ignore /[ \\n]/\n'


def test_strings_of_a_schema_in_a_grammar() -> None:
    """``x-grammar`` restricts the content of strings, in every spelling, and nothing else."""
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string", "x-grammar": GRAMMAR}},
        "required": ["q"],
    }
    check(
        constrain.json_schema(schema),
        ['{"q": "1+2"}', '{"q": "1 +\\n2" , "r": [1, 2]}', '{"q": "\\"1\\""}', '{"q": "1\\u002b2"}'],
        ['{"q": "1++"}', '{"q": ""}', '{"q": 1}', '{"q": "1+\n2"}', '{"q": "1}'],
    )
    check(constrain.json_schema({"x-grammar": 'root ::= "a" | "b" root'}), ['"bba"', "3"], ['"ab"'])
    with pytest.raises(SpecError) as caught:
        constrain.json_schema({"items": {"x-grammar": "start: b"}})
    assert caught.value.pointer == "#/items/x-grammar" and caught.value.column == 8
    with pytest.raises(UnsupportedFeatureError, match="x-grammar"):
        constrain.json_schema({"type": "string", "maxLength": 3, "x-grammar": GRAMMAR})
    with pytest.raises(UnsupportedFeatureError, match="x-grammar"):
        constrain.json_schema({"enum": ["1"], "x-grammar": GRAMMAR})


class Query(BaseModel):
    text: Annotated[str, constrain.InGrammar('start: "get " N ("," N)*\nN: /[a-z]+/')]


def test_strings_of_a_type_in_a_grammar() -> None:
    """The mark restricts the type's texts, and pydantic checks it as well."""
    spec = constrain.python_type(Query)
    check(spec, ['{"text": "get a,b"}'], ['{"text": "get a,"}', '{"text": ""}'])
    assert spec.parse('{"text": "get a"}') == Query(text="get a")
    with pytest.raises(ValidationError, match="expected"):
        Query(text="get 1")
    with pytest.raises(SpecError, match="not defined"):
        constrain.InGrammar("start: x")
    with pytest.raises(SpecError, match="as text"):
        constrain.InGrammar(5)  # type: ignore[arg-type]


def test_specs_of_grammars_as_values(tmp_path: Path) -> None:
    """Equal sources make equal specs with a short repr; they can be saved, sampled and explained."""
    text = 'start: expr\nexpr: expr "+" N | N\nN: /[0-9]+/\n'
    spec = constrain.grammar(text)
    assert spec == constrain.grammar(text) and hash(spec) == hash(constrain.grammar(text))
    assert spec != constrain.grammar(text, start="expr") and spec != constrain.grammar(text, lexing="any")
    assert repr(constrain.grammar('start: "a"', lexing="any")) == "grammar('start: \"a\"', lexing='any')"
    for made in (
        spec,
        constrain.grammar(text, start="expr", max_ignored=3),
        constrain.grammar('root ::= "a"'),
    ):
        constrain.compile(made, byte_vocabulary(), cache=False).save(tmp_path / "saved")
        assert constrain.CompiledSpec.load(tmp_path / "saved", byte_vocabulary()).spec == made
    rng = np.random.default_rng(0)
    assert all(spec.matches(spec.sample(rng)) for _ in range(20))
    found = spec.explain("1+*")
    assert (found.offset, found.expected, found.pointer) == (2, ("N",), "expr")
    assert spec.explain("1+2").ok


def test_ignored_text_is_bounded() -> None:
    """Blanks, and lexemes of ignored text in a row, have a limit, which may be lifted."""
    text = 'start: "a" "b"\n%ignore / +/\n%ignore "_"\n'
    spec = constrain.grammar(text, max_ignored=3)
    check(spec, ["a   b", "a_ _b", " a_b ", "a" + " " * 9 + "b"], ["a_ _ b", "a" + " " * 10 + "b"])
    assert constrain.grammar(text, max_ignored=None).matches("a" + "_ " * 500 + "b")
    assert constrain.grammar(text).matches("a" + " " * 100 + "b")
    assert not constrain.grammar(text).matches("a" + "_" * 65 + "b")


def test_special_tokens() -> None:
    """``<|name|>`` and ``<[id]>`` are tokens of the vocabulary, never text."""
    tokens = [b"a", b"1", b"<|c|>", None, None, None]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos_token_ids=[5], special_tokens={"<|c|>": 4})
    matcher = constrain.compile(
        constrain.grammar('start: "a" <|c|> /[0-9]/ <[3]>'), vocabulary, cache=False
    ).matcher()
    assert [matcher.accept_token(t) for t in (4, 0, 2, 4, 1, 1, 3)] == [
        False,
        True,
        False,
        True,
        True,
        False,
        True,
    ]
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": 3},
        {"syntax": "yacc"},
        {"lexing": "lazy"},
        {"max_ignored": 0},
        {"indentation": {"newline": "A"}},
    ],
)
def test_unknown_values_of_options(arguments: dict[str, object]) -> None:
    """An option with a value it can't have is an error that names it."""
    with pytest.raises(SpecError, match=next(iter(arguments))):
        constrain.grammar('start: "a"', **arguments)  # type: ignore[arg-type]
