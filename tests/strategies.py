"""Hypothesis strategies: patterns, grammars, vocabularies, JSON Schemas and their documents.

Everything is over a tiny alphabet, so that unlike things collide often.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from constrain.grammars.limits import Limits, Watch
from constrain.tokenizer_index.network import build_network
from tests.reference import patterns
from tests.reference.vocabularies import TokenList

ALPHABET = "abé "
ALPHABET_BYTES = bytes(sorted(set(ALPHABET.encode())))
_CHARACTERS = [ord(c) for c in ALPHABET]


def fixed(n_examples: int) -> settings:
    """Return settings for ``n_examples`` examples, the same ones in every run."""
    return settings(
        max_examples=n_examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


# ------------------------------------------------------------------------------------ patterns


def _ranges(values: list[int]) -> ir.Ranges:
    return tuple((v, v) for v in sorted(set(values)))


@cache
def _leaves() -> st.SearchStrategy[ir.Pattern]:
    characters = st.lists(st.sampled_from(_CHARACTERS), min_size=1, max_size=3).map(_ranges)
    byte_values = st.lists(st.sampled_from(b"ab"), min_size=1, max_size=2).map(_ranges)
    return st.one_of(
        st.text(ALPHABET, max_size=3).map(lambda s: ir.Literal(s.encode())),
        st.one_of(characters, st.just(((0x61, 0x7A),)), st.just(((0x20, 0x10FFFF),))).map(
            _without_surrogates
        ),
        byte_values.map(ir.ByteClass),
    )


def _without_surrogates(ranges: ir.Ranges) -> ir.CharacterClass:
    if ranges == ((0x20, 0x10FFFF),):
        ranges = ((0x20, 0xD7FF), (0xE000, 0x10FFFF))
    return ir.CharacterClass(ranges)


@st.composite
def _repeats(draw: st.DrawFn, bodies: st.SearchStrategy[ir.Pattern], highest: int) -> ir.Pattern:
    minimum = draw(st.integers(0, highest))
    extra = draw(st.one_of(st.none(), st.integers(0, highest)))
    return ir.Repeat(draw(bodies), minimum, None if extra is None else minimum + extra)


@st.composite
def automata(draw: st.DrawFn) -> ir.Automaton:
    """Nondeterministic automata of up to four states, dead ends included."""
    n = draw(st.integers(1, 4))
    states = st.integers(0, n - 1)
    byte_pairs = st.sampled_from([(97, 97), (98, 98), (97, 98), (0, 255), (0xC3, 0xC3)])
    edges = draw(st.lists(st.tuples(states, byte_pairs, states), max_size=6))
    return ir.Automaton(
        n,
        draw(states),
        frozenset(draw(st.sets(states, max_size=2))),
        tuple((source, low, high, target) for source, (low, high), target in edges),
    )


@cache
def plain_patterns(*, counts: bool = True) -> st.SearchStrategy[ir.Pattern]:
    """Patterns without Boolean operators; ``counts`` adds repeats with limits up to 40."""

    def extend(inner: st.SearchStrategy[ir.Pattern]) -> st.SearchStrategy[ir.Pattern]:
        several = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(several.map(ir.Concatenation), several.map(ir.Alternation), _repeats(inner, 3))

    leaves = st.one_of(_leaves(), automata())
    if counts:
        leaves = st.one_of(leaves, _repeats(_leaves(), 20))
    return st.recursive(leaves, extend, max_leaves=5)


def boolean_patterns() -> st.SearchStrategy[ir.Intersection]:
    """An intersection of one to three patterns and up to two complements of patterns."""
    return _intersections(plain_patterns())


@st.composite
def _intersections(draw: st.DrawFn, parts: st.SearchStrategy[ir.Pattern]) -> ir.Intersection:
    positive = draw(st.lists(parts, min_size=1, max_size=3))
    negative = draw(st.lists(parts, min_size=0 if len(positive) > 1 else 1, max_size=2))
    return ir.Intersection((*positive, *(ir.Complement(p) for p in negative)))


@cache
def nested_patterns() -> st.SearchStrategy[ir.Pattern]:
    """Boolean patterns inside others, Boolean ones among them."""
    inner = st.one_of(boolean_patterns(), plain_patterns())
    several = st.lists(inner, min_size=1, max_size=2).map(tuple)
    outer = st.one_of(several.map(ir.Concatenation), several.map(ir.Alternation), _repeats(inner, 3))
    return st.one_of(outer, _intersections(outer))


@cache
def any_patterns() -> st.SearchStrategy[ir.Pattern]:
    """Plain and Boolean patterns."""
    return st.one_of(plain_patterns(), boolean_patterns(), nested_patterns())


# ------------------------------------------------------------------------------------ grammars

_RULES = ("start", "r", "s", "t")


@cache
def _terminal_patterns() -> st.SearchStrategy[ir.Pattern]:
    word = ir.CharacterClass(((0x61, 0x62),))
    return st.one_of(
        st.sampled_from([b"a", b"b", b"ab", b"aa", b"(", b")", b",", "é".encode()]).map(ir.Literal),
        st.sampled_from(
            [
                ir.Repeat(word, 1, None),
                ir.Repeat(word, 1, 2),
                ir.Repeat(word, 0, 1),
                ir.Repeat(ir.Literal(b"a"), 2, 4),
                ir.Intersection((ir.Repeat(word, 1, 3), ir.Complement(ir.Literal(b"ab")))),
                ir.Concatenation((ir.Literal(b'"'), ir.Repeat(word, 0, 3), ir.Literal(b'"'))),
                ir.Alternation((ir.Literal(b"a"), ir.Literal(b"abb"))),
            ]
        ),
        plain_patterns(counts=False),
    )


@cache
def _expressions(n_terminals: int, rules: tuple[str, ...]) -> st.SearchStrategy[ir.Expression]:
    terminals = st.integers(0, n_terminals - 1).map(ir.TerminalReference)
    references = st.one_of(terminals, terminals, st.sampled_from(rules).map(ir.RuleReference))

    def extend(inner: st.SearchStrategy[ir.Expression]) -> st.SearchStrategy[ir.Expression]:
        several = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(several.map(ir.Sequence), several.map(ir.Choice), repetitions(inner))

    @st.composite
    def repetitions(draw: st.DrawFn, inner: st.SearchStrategy[ir.Expression]) -> ir.Expression:
        minimum = draw(st.integers(0, 2))
        extra = draw(st.sampled_from([None, 0, 1, 2]))
        return ir.Repetition(draw(inner), minimum, None if extra is None else minimum + extra)

    @st.composite
    def machines(draw: st.DrawFn) -> ir.Expression:
        n = draw(st.integers(1, 3))
        states = st.integers(0, n - 1)
        edges = draw(st.lists(st.tuples(states, st.one_of(st.none(), references), states), max_size=5))
        accepting = frozenset(draw(st.sets(states, max_size=2)))
        return ir.StateMachine(n, draw(states), accepting, tuple(edges))

    return st.recursive(st.one_of(references, references, machines()), extend, max_leaves=6)


@st.composite
def _held(draw: st.DrawFn, terminal: ir.Terminal) -> ir.Terminal:
    """The terminal, or, where it may be, one that some bytes may not follow."""
    if not terminal.greedy or isinstance(terminal.pattern, ir.Intersection):
        return terminal
    letter, blank = ((0x61, 0x61),), ((0x20, 0x20),)
    return replace(terminal, not_before=draw(st.sampled_from([(), (), letter, ((0x61, 0x62),), blank])))


@st.composite
def grammars(draw: st.DrawFn, *, greedy: bool = False) -> ir.Grammar:
    """Small grammars: left recursion, nullable and unproductive rules, ambiguity, ignored text.

    The language may be empty. Where ignored text is bounded, no rule uses it, and no other
    terminal begins like it: such grammars are refused. With ``greedy`` some terminals are greedy, so
    that a text the lexer can go on reading may have no completion.
    """
    languages = draw(st.lists(_terminal_patterns(), min_size=1, max_size=4))
    ignored = ir.Ignored()
    has_blank = draw(st.booleans())
    if has_blank:
        leading, trailing = draw(st.booleans()), draw(st.booleans())
        most = draw(st.sampled_from([None, None, 1, 2, 3]))
        if most is not None:
            languages = [p for p in languages if not patterns.is_prefix(p, b" ")] or [ir.Literal(b"a")]
        ignored = ir.Ignored((len(languages),), leading, trailing, most)
        languages.append(draw(st.sampled_from([ir.Literal(b" "), ir.Repeat(ir.Literal(b" "), 1, 3)])))
    terminals = tuple(
        draw(
            _held(
                ir.Terminal(
                    language,
                    f"T{i}",
                    priority=draw(st.sampled_from([0, 0, 0, 1])),
                    greedy=greedy and draw(st.booleans()),
                )
            )
        )
        for i, language in enumerate(languages)
    )
    rules = _RULES[: draw(st.integers(1, len(_RULES)))]
    bodies = _expressions(len(terminals) - (has_blank and ignored.most is not None), rules)
    grammar = ir.Grammar(terminals, {rule: draw(bodies) for rule in rules}, "start", ignored)
    try:
        build_network(grammar, Watch(Limits()))
    except constrain.UnsupportedFeatureError:
        reject()  # a symbol that may be read as ignored text
    except (constrain.EmptyLanguageError, constrain.LimitExceededError):
        pass  # the tests look at these themselves
    return grammar


_WORD = ir.ByteClass(((0x61, 0x62),))
_BLANKS = ir.ByteClass(((0x20, 0x20), (0x0A, 0x0A)))
_NOT_BREAK = ir.ByteClass(((0x20, 0x7E),))
_LEXEMES: dict[str, ir.Pattern] = {
    "name": ir.Repeat(_WORD, 1, None),
    "letter": _WORD,
    "keyword a": ir.Literal(b"a"),
    "keyword ab": ir.Literal(b"ab"),
    "names": ir.Alternation((ir.Literal(b"a"), ir.Literal(b"abb"))),
    "pairs": ir.Repeat(ir.Literal(b"ab"), 1, None),
    "two": ir.Repeat(_WORD, 2, 3),
    "not ab": ir.Intersection((ir.Repeat(_WORD, 1, None), ir.Complement(ir.Literal(b"ab")))),
    "only ab": ir.Intersection((ir.Repeat(_WORD, 1, 2), ir.Repeat(ir.Literal(b"ab"), 1, None))),
    "dot": ir.Literal(b"."),
    "dots": ir.Literal(b".."),
    "number": ir.Repeat(ir.Literal(b"1"), 1, None),
    "fraction": ir.Concatenation(
        (ir.Repeat(ir.Literal(b"1"), 1, None), ir.Literal(b"."), ir.Repeat(ir.Literal(b"1"), 1, None))
    ),
    "text": ir.Concatenation(
        (ir.Repeat(ir.Literal(b"a"), 0, 1), ir.Literal(b'"'), ir.Repeat(_WORD, 0, None), ir.Literal(b'"'))
    ),
    "semicolon": ir.Literal(b";"),
    "sign": ir.Literal(b"#"),
    "signed": ir.Concatenation((ir.Literal(b"##"), ir.Repeat(_WORD, 0, None))),
    "break": ir.Concatenation((ir.Literal(b"\n"), ir.Repeat(ir.Literal(b" "), 0, None))),
}
_IGNORED: dict[str, ir.Pattern] = {
    "blank": ir.Repeat(ir.Literal(b" "), 1, None),
    "blanks": ir.Repeat(_BLANKS, 1, None),
    "comment": ir.Concatenation((ir.Literal(b"#"), ir.Repeat(_NOT_BREAK, 0, None))),
    "short comment": ir.Concatenation(
        (ir.Literal(b"#"), ir.Repeat(ir.ByteClass(((0x61, 0x7E),)), 0, None), ir.Literal(b"#"))
    ),
    "word comment": ir.Concatenation((ir.Literal(b"#"), _WORD, ir.Repeat(_NOT_BREAK, 0, None))),
    "indented comment": ir.Concatenation(
        (ir.Repeat(_BLANKS, 0, None), ir.Literal(b"#"), ir.Repeat(_NOT_BREAK, 0, None))
    ),
    "name": ir.Repeat(_WORD, 1, None),
}


@st.composite
def lexical_grammars(draw: st.DrawFn) -> ir.Grammar:
    """Grammars whose lexemes overlap, fuse and hide one another: names, keywords, numbers, comments."""
    names = draw(st.lists(st.sampled_from(sorted(_LEXEMES)), min_size=1, max_size=4, unique=True))
    blanks = draw(st.lists(st.sampled_from(sorted(_IGNORED)), max_size=2, unique=True))
    terminals = tuple(
        draw(
            _held(
                ir.Terminal(
                    {**_IGNORED, **_LEXEMES}[name],
                    name,
                    priority=draw(st.sampled_from([0, 0, 1])),
                    greedy=draw(st.sampled_from([True, True, True, False])),
                )
            )
        )
        for name in (*names, *blanks)
    )
    leading, trailing = draw(st.booleans()), draw(st.booleans())
    most = draw(st.sampled_from([None, None, 0, 1, 2]))
    ignored = ir.Ignored(tuple(range(len(names), len(terminals))), leading, trailing, most)
    rules = _RULES[: draw(st.integers(1, 3))]
    bodies = _expressions(len(terminals) if draw(st.booleans()) else len(names), rules)
    return ir.Grammar(terminals, {rule: draw(bodies) for rule in rules}, "start", ignored)


# ------------------------------------------------------------------------------------ vocabularies


@st.composite
def vocabularies(draw: st.DrawFn, alphabet: str = 'abé (),"', *, missing: bool = False) -> TokenList:
    """Tiny adversarial vocabularies.

    Tokens share prefixes, have equal bytes, cut characters in two, span several lexemes, are very
    long, are ``None`` or padding; the end tokens stand anywhere, one of them perhaps with a spelling.
    Every single byte is a token, unless ``missing``: then some bytes of ``alphabet`` are not.
    """
    encoded = alphabet.encode()
    pieces = st.lists(st.sampled_from(encoded), min_size=1, max_size=4).map(bytes)
    spelled = st.text(alphabet, min_size=1, max_size=6).map(str.encode)
    long = st.tuples(st.text(alphabet, min_size=1, max_size=2), st.integers(20, 70)).map(
        lambda pair: (pair[0] * pair[1]).encode()
    )
    tokens: list[bytes | None] = draw(st.lists(st.one_of(pieces, spelled, spelled), min_size=1, max_size=12))
    tokens += draw(st.lists(long, max_size=1))
    tokens += draw(st.lists(st.sampled_from(tokens), max_size=2))
    if missing:
        tokens += [bytes([b]) for b in draw(st.sets(st.sampled_from(encoded), max_size=len(encoded) - 1))]
    else:
        tokens += [bytes([b]) for b in range(256)]
    tokens += [None] * draw(st.integers(0, 2))
    end = draw(st.lists(st.sampled_from([None, None, b"a", b"</s>"]), min_size=1, max_size=2))
    order = draw(st.permutations(range(len(tokens) + len(end)))) if missing else _rotated(draw, tokens, end)
    together = [*tokens, *end]
    return TokenList(
        tuple(together[i] for i in order),
        tuple(sorted(order.index(len(tokens) + k) for k in range(len(end)))),
        draw(st.sampled_from([None, None, len(together) + 40])),
    )


def _rotated(draw: st.DrawFn, tokens: list[bytes | None], end: list[bytes | None]) -> list[int]:
    """Return an order of ids that costs Hypothesis one draw: a permutation of 260 costs 260."""
    n = len(tokens) + len(end)
    by = draw(st.integers(0, n - 1))
    return [(i + by) % n for i in range(n)]


# ------------------------------------------------------------------------------------ JSON Schema

# Objects declare a first part of these names in this order, and all others are extra keys: so the
# order of one document suits every branch of a schema.
_NAMES = ("a", "b", "c", "d", "e")
_TEXT = 'ab "\\é\n7'
_TEXT_PATTERNS = ("^a", "b$", "^[a-z]{1,3}$", "[0-9]", "^(a|b)*$", "a.b")

JSONValue = Any
Schema = Any


@st.composite
def _scalar_schemas(draw: st.DrawFn) -> Schema:
    kind = draw(st.sampled_from(["null", "boolean", "integer", "number", "string", "enum", "const", "many"]))
    if kind == "enum":
        return {"enum": draw(st.lists(_scalars(), min_size=1, max_size=4, unique_by=json.dumps))}
    if kind == "const":
        return {"const": draw(_scalars())}
    if kind == "many":
        return {
            "type": draw(st.lists(st.sampled_from(["null", "string", "integer"]), min_size=1, unique=True))
        }
    schema: dict[str, JSONValue] = {"type": kind}
    if kind in ("integer", "number") and draw(st.booleans()):
        low = draw(st.integers(-12, 12))
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
        if draw(st.booleans()):
            schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = low + draw(st.integers(2, 120))
    if kind == "string":
        choice = draw(st.sampled_from(["plain", "length", "pattern", "both"]))
        if choice in ("length", "both"):
            schema["minLength"] = draw(st.integers(0, 3))
            schema["maxLength"] = schema["minLength"] + draw(st.integers(0, 4))
        if choice in ("pattern", "both"):
            schema["pattern"] = draw(st.sampled_from(_TEXT_PATTERNS))
    return schema


@cache
def _scalars() -> st.SearchStrategy[JSONValue]:
    fractions = st.integers(-300, 300).filter(lambda n: n % 10 != 0).map(lambda n: n / 10)
    return st.one_of(st.none(), st.booleans(), st.integers(-150, 150), fractions, st.text(_TEXT, max_size=6))


@st.composite
def _array_schemas(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    schema: dict[str, JSONValue] = {"type": "array"}
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=2))
    if draw(st.booleans()):
        schema["items"] = draw(st.one_of(inner, st.just(False), st.just(True)))
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        schema["maxItems"] = schema.get("minItems", 0) + draw(st.integers(0, 3))
    return schema


@st.composite
def _object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    schema: dict[str, JSONValue] = {"type": "object"}
    names = _NAMES[: draw(st.integers(0, 4))]
    if names:
        schema["properties"] = {name: draw(inner) for name in names}
        schema["required"] = draw(st.lists(st.sampled_from(names), unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.one_of(st.just(False), inner))
    return schema


@cache
def json_schemas() -> st.SearchStrategy[Schema]:
    """Schemas of the supported keywords, with references to ``#/$defs/node``, which may recurse."""

    def extend(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
        any_of = st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
        return st.one_of(_array_schemas(inner), _object_schemas(inner), _object_schemas(inner), any_of)

    reference = st.just({"$ref": "#/$defs/node"})
    body = st.recursive(st.one_of(_scalar_schemas(), _scalar_schemas(), reference), extend, max_leaves=6)
    node = st.one_of(
        _scalar_schemas(),
        st.just(
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
        ),
        st.just({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/node"}}]}),
    )
    return st.builds(_with_definition, body, node)


def _with_definition(body: Schema, node: Schema) -> Schema:
    return (
        {**body, "$defs": {"node": node}}
        if "$ref" not in body
        else {"anyOf": [body], "$defs": {"node": node}}
    )


@st.composite
def documents(draw: st.DrawFn, schema: Schema) -> JSONValue:
    """Documents that mostly satisfy ``schema`` (one made by `json_schemas`)."""
    return _document(draw, schema, schema["$defs"]["node"], 3)


def _document(draw: st.DrawFn, schema: Schema, node: Schema, depth: int) -> JSONValue:
    if schema is True or schema is False:
        return draw(_scalars())
    if "$ref" in schema:
        return _document(draw, node, node, depth - 1) if depth > 0 else 0
    if "anyOf" in schema:
        branches = schema["anyOf"]
        return _document(draw, branches[0] if depth <= 0 else draw(st.sampled_from(branches)), node, depth)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if isinstance(kind, list):
        kind = draw(st.sampled_from(kind))
    if kind == "array":
        first = schema.get("prefixItems", [])
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, len(first)) + (2 if depth > 0 else 0))
        count = draw(st.integers(least, max(least, most)))
        rest = schema.get("items", True)
        return [_document(draw, first[i] if i < len(first) else rest, node, depth - 1) for i in range(count)]
    if kind == "object":
        result: dict[str, JSONValue] = {}
        required = schema.get("required", [])
        for name, part in schema.get("properties", {}).items():
            if name in required or (depth > 0 and draw(st.booleans())):
                result[name] = _document(draw, part, node, depth - 1)
        if schema.get("additionalProperties") is not False and depth > 0 and draw(st.booleans()):
            result["x"] = _document(draw, schema.get("additionalProperties", True), node, depth - 1)
        return result
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -150))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 120))
        value = draw(st.integers(low, high))
        return value + draw(st.sampled_from([0, 0.5, 0.25])) if kind == "number" else value
    if kind == "string":
        least = schema.get("minLength", 0)
        return draw(st.text(_TEXT, min_size=least, max_size=schema.get("maxLength", least + 5)))
    return None if kind == "null" else draw(st.booleans())


@st.composite
def mutations(draw: st.DrawFn, document: JSONValue) -> JSONValue:
    """A copy of ``document`` with one place changed; keys keep their order, new ones go last."""
    if isinstance(document, list) and document and draw(st.integers(0, 3)):
        i = draw(st.integers(0, len(document) - 1))
        change = draw(st.sampled_from(["inside", "inside", "drop", "twice"]))
        middle = {"drop": [], "twice": [document[i]] * 2}.get(change)
        if middle is None:
            middle = [draw(mutations(document[i]))]
        return [*document[:i], *middle, *document[i + 1 :]]
    if isinstance(document, dict) and draw(st.integers(0, 3)):
        change = draw(st.sampled_from(["inside", "inside", "drop", "add"]))
        if change == "add" or not document:
            return {**document, draw(st.sampled_from(["x", "y", ""])): draw(_scalars())}
        name = draw(st.sampled_from(list(document)))
        if change == "drop":
            return {k: v for k, v in document.items() if k != name}
        return {k: draw(mutations(v)) if k == name else v for k, v in document.items()}
    if isinstance(document, int) and not isinstance(document, bool) and draw(st.booleans()):
        return document + draw(st.sampled_from([-1, 1, 100, -100]))
    if isinstance(document, str) and draw(st.booleans()):
        return document[:-1] if draw(st.booleans()) else document + draw(st.sampled_from(list(_TEXT)))
    return draw(st.one_of(_scalars(), st.just([]), st.just({})))


def json_texts(document: JSONValue) -> st.SearchStrategy[str]:
    """Spellings of ``document`` that the flexible whitespace of `json_schema` allows."""
    return st.sampled_from(
        [
            json.dumps(document, separators=(",", ":"), ensure_ascii=False),
            json.dumps(document, separators=(",", ":")),
            json.dumps(document, ensure_ascii=False),
            json.dumps(document, indent=2, ensure_ascii=False),
        ]
    )
