"""Random and hostile inputs: half of them near to something sensible, since noise alone gets nowhere."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import constrain

_REGEXES = [
    "", "a", "[a-z]+", r"\d{1,3}(\.\d+)?", "(ab|a)*b", "a{2,5}", "(a{3}){4}", "x*+y", "a??b", r"\w+\b", "(?=a)[a-c]+",
    "(?!ab)[ab]*", "(?<=a)b", r"\p{Lu}\p{Ll}*", "[^\\n]{0,300}", "(?i)key", "(?P<n>a|b)c", "é+|日本", "[\\s\\S]", "^a$",
    "a|", "((a+)+)+", "[a-z]{1,10000}", "(a{100}){100}", "(?:a|b|ab){2,50}", "\\x41\\u0042", "[[:alpha:]]", "(?#c)a",
]  # fmt: skip
_PIECES = [
    *"()[]{}|*+?^$.\\,-=!<>:#&~\"'aé0 1\n\t",
    "{2,", "{1,9999}", "(?", "(?i)", "(?=", "(?!", "(?<=", r"\d", r"\p{L}", r"\b", "[^", "]]", "\x00", "\U0001f600", "\ud800",
]  # fmt: skip
_GRAMMARS = [
    'start: "a" b | "c"\nb: "x" b?\n', 'start: (NAME "=" NUMBER)+\nNAME: /[a-z]+/\nNUMBER: /\\d+/\n%ignore " "\n',
    'root ::= "a" root | [b-d]{1,3}\n', 'root ::= (x ",")* x\nx ::= "1" | "(" root ")"\n', "start: start start | A\nA: /a/\n",
    'start: e\ne: e "+" e | "(" e ")" | /[0-9]+/\n%import common.WS\n%ignore WS\n',
]  # fmt: skip


def mutated(rng: random.Random, text: str, pieces: list[str]) -> str:
    """Return ``text`` after a few random edits, often none."""
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 5])):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randrange(3))
        text = text[:at] + rng.choice([*pieces, text[at:end] * 2]) + text[end:]
    return text


def regex_text(rng: random.Random) -> str:
    """Return a regular expression, or nearly one."""
    parts = [rng.choice(_REGEXES) for _ in range(rng.choice([1, 1, 2, 3]))]
    return mutated(rng, rng.choice(["", "|"]).join(parts), _PIECES)


def grammar_text(rng: random.Random) -> str:
    """Return the text of a grammar, or nearly one."""
    return mutated(rng, rng.choice(_GRAMMARS), [*_PIECES, "::=", ": ", "%ignore", "start", "~2..3", "/a/"])


def value(rng: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = rng.randrange(8 if depth < 3 else 6)
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind == 7:
        return {rng.choice(["a", "b", "é", ""]): value(rng, depth + 1) for _ in range(rng.randrange(3))}
    return [None, True, rng.randrange(-3, 100), 1.5, rng.choice(["", "a", "é\n", '"']), 10**30][kind]


def schema(rng: random.Random, depth: int = 0) -> Any:
    """Return a JSON Schema; one part in twenty is not as it should be."""
    if rng.random() < 0.05:
        return rng.choice([True, False, value(rng)])
    if depth > 3:
        return rng.choice([True, {"type": "string"}, {"type": "integer"}, {"$ref": "#"}])

    def sub() -> Any:
        return schema(rng, depth + 1)

    made: dict[str, Any] = {}
    makers: dict[str, Any] = {
        "type": lambda: rng.choice(["object", "array", "string", "integer", "number", "null", ["string", "null"], "x"]),
        "properties": lambda: {rng.choice("abcé"): sub() for _ in range(rng.randrange(4))},
        "required": lambda: rng.sample(["a", "b", "c", "zz"], rng.randrange(3)),
        "additionalProperties": sub, "items": sub, "prefixItems": lambda: [sub(), sub()],
        "minItems": lambda: rng.choice([0, 1, 3, 1000]), "maxItems": lambda: rng.choice([0, 2, 100_000, -1]),
        "minLength": lambda: rng.choice([0, 2, 500]), "maxLength": lambda: rng.choice([0, 5, 100_000]),
        "pattern": lambda: regex_text(rng), "format": lambda: rng.choice(["date", "email", "uuid", "nothing"]),
        "minimum": lambda: rng.choice([-5, 0, 1.5, 1e300, 10**40]), "exclusiveMaximum": lambda: rng.choice([0, 7, 0.25]),
        "multipleOf": lambda: rng.choice([1, 3, 0.1, 0]), "enum": lambda: [value(rng) for _ in range(rng.randrange(5))],
        "const": lambda: value(rng), "anyOf": lambda: [sub() for _ in range(rng.randrange(3))],
        "oneOf": lambda: [sub(), sub()], "allOf": lambda: [sub() for _ in range(rng.randrange(1, 3))],
        "not": sub, "if": sub, "$ref": lambda: rng.choice(["#", "#/$defs/x", "#/$defs/y", "other.json", "#/%7E0"]),
        "$defs": lambda: {"x": sub(), "y": {"$ref": "#/$defs/y"}}, "uniqueItems": lambda: True,
        "patternProperties": lambda: {regex_text(rng): sub()}, "title": lambda: "t",
    }  # fmt: skip
    for name in rng.sample(list(makers), rng.randrange(1, 5)):
        made[name] = makers[name]()
    return made


def hostile_json(rng: random.Random) -> str:
    """Return the text of a schema, usually damaged."""
    shapes = [
        lambda: json.dumps(schema(rng)),
        lambda: '{"items":' * rng.choice([50, 5000]) + "{}" + "}" * rng.choice([50, 5000]),
        lambda: json.dumps(
            {"properties": {f"p{i}": {"type": "integer"} for i in range(rng.choice([10, 1000]))}}
        ),
        lambda: '{"minimum": ' + rng.choice(["NaN", "1" * 5000, "1e999999", "-0", "1e-999"]) + "}",
    ]
    return mutated(rng, rng.choice(shapes)(), ['"', "{", "}", "[", ",", ":", "null", "\\u12", "\x00", "$ref"])


@cache
def _bytes() -> tuple[bytes, ...]:
    return tuple(bytes([i]) for i in range(256))


def vocabulary(rng: random.Random) -> constrain.Vocabulary:
    """Return a small vocabulary, at times without some bytes, with doubles, holes and padding."""
    words = [
        b"a",
        b"ab",
        b'{"',
        b'":',
        b'", "',
        b"}",
        "é".encode(),
        b"\xc3",
        b"12",
        b"  ",
        b"null",
        b"\n",
        b"a" * 40,
    ]
    single = list(_bytes())
    if rng.random() < 0.1:
        for byte in rng.sample(range(256), 3):
            single.remove(bytes([byte]))
    tokens: list[bytes | None] = [*single, *rng.sample(words, rng.randrange(len(words))), None, b"a"]
    rng.shuffle(tokens)
    end = tokens.index(None)
    return constrain.Vocabulary.from_tokens(
        tokens, eos_token_ids=[end], vocab_size=len(tokens) + rng.choice([0, 0, 7])
    )
