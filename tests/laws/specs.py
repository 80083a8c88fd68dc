"""Specs of the usual kinds, and the vocabularies they are tried on."""

from __future__ import annotations

from collections.abc import Callable

import constrain
from constrain.spec import Spec
from tests.laws.walks import expression_grammar, list_grammar
from tests.reference.vocabularies import TokenList, llama, with_all_bytes

RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "é": {"type": "array", "items": {"type": "integer", "minimum": -5, "maximum": 120}, "maxItems": 3},
        "kind": {"enum": ["a", "ab", None, 1.5]},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["value"],
        }
    },
}

STATEMENTS = """
start: statement+
statement: "re" NAME "=" list ";" | NAME ("(" list ")" | "{" statement* "}")
list: [NAME ("," NAME)*] | INT
NAME: /[a-z_]+/
INT: /[0-9]+/
%ignore /[ \\n]+/
%ignore "#" /[^\\n]*/
"""

SPECS: dict[str, Callable[[], Spec]] = {
    "email": lambda: constrain.regex(r"[\w.+-]{1,20}@[a-z0-9-]+(\.[a-z]{2,4})+"),
    "date": lambda: constrain.regex(r"(?i)(mon|tues|wednes)day, \d{1,2} \p{L}+ \d{4}|\d+(\.\d+)?"),
    "counted": lambda: constrain.regex(r"([ab]{3,200}|é{2,})c?"),
    "choice": lambda: constrain.choice(["red", "reddish", "réd", "green", "g"]),
    "record": lambda: constrain.json_schema(RECORD),
    "compact record": lambda: constrain.json_schema(RECORD, whitespace="compact"),
    "tree": lambda: constrain.json_schema(TREE),
    "string pattern": lambda: constrain.json_schema(
        {"type": "string", "pattern": "^x-|_id$", "minLength": 4, "maxLength": 12}
    ),
    "anything": lambda: constrain.json_schema(True),
    "union": lambda: constrain.regex("a+") | constrain.json_schema({"type": "integer", "maximum": 20}),
    "expressions": lambda: Spec.from_grammar(expression_grammar()),
    "lists": lambda: Spec.from_grammar(list_grammar()),
    "statements": lambda: constrain.grammar(STATEMENTS),
    "nested grammar": lambda: constrain.grammar(
        'start: "a" %json {"type": "integer"} x?\nx: "b" | "(" x ")"\n%ignore / +/', max_ignored=2
    ),
}

_WORDS = [
    *(b"a", b"ab", b"aa", b"abab", b"red", b"re", b"dish", b"green", b"x-", b"_id", b"_", b"id"),
    *(
        b'{"',
        b'{"name":',
        b'"name"',
        b'":',
        b'": "',
        b'",',
        b'", "',
        b'"}',
        b'{"value":',
        b'"children"',
        b": [",
        b"]}",
    ),
    *(
        b"}}",
        b"[]",
        b"null",
        b"true",
        b"1",
        b"12",
        b"120",
        b"-5",
        b"1.5",
        b", ",
        b"\n  ",
        b"\\u",
        b"00e9",
        b'\\"',
    ),
    *(
        "é".encode(),
        b"\xc3",
        b"\xa9",
        "日本".encode(),
        b"@",
        b".com",
        b"day, ",
        b"Mon",
        b" #",
        b"if",
        b"if(",
        b"))",
    ),
    *(None, b"ab", b"", b"a" * 40, "x" * 3 + "é"),
]


def small_vocabulary() -> TokenList:
    """Return 60 tokens that suit `SPECS`, and all bytes."""
    words = [word.encode() if isinstance(word, str) else word or None for word in _WORDS]
    return with_all_bytes(words, vocab_size=380)


def real_vocabulary() -> constrain.Vocabulary:
    """Return Llama 3.1's vocabulary; skip where it is missing."""
    return llama()
