"""The reference itself against Python's ``re``, Lark's Earley parser and plain enumeration."""

from __future__ import annotations

import itertools
import re

import lark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars import ir
from tests import strategies
from tests.reference import patterns
from tests.reference.engine import ReferenceEngine
from tests.reference.grammar import ReferenceGrammar, words


def _regex(pattern: ir.Pattern) -> str:
    """Write a pattern for Python's ``re``; every class and literal here is of whole characters."""
    match pattern:
        case ir.Literal(data):
            return f"(?:{re.escape(data.decode())})"
        case ir.CharacterClass(ranges) | ir.ByteClass(ranges):
            return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"
        case ir.Concatenation(parts):
            return "".join(map(_regex, parts))
        case ir.Alternation(parts):
            return "(?:" + "|".join(map(_regex, parts)) + ")" if parts else "(?!)"
        case ir.Repeat(body, minimum, maximum):
            return f"(?:{_regex(body)}){{{minimum},{'' if maximum is None else maximum}}}"
    raise TypeError(f"{pattern!r} has no spelling")


def _has_automaton(pattern: ir.Pattern) -> bool:
    match pattern:
        case ir.Automaton():
            return True
        case ir.Concatenation(parts) | ir.Alternation(parts):
            return any(map(_has_automaton, parts))
        case ir.Repeat(body, _, _):
            return _has_automaton(body)
    return False


def _automaton_accepts(automaton: ir.Automaton, data: bytes) -> bool:
    states = {automaton.start}
    for byte in data:
        states = {t for s, low, high, t in automaton.edges if s in states and low <= byte <= high}
    return bool(states & automaton.accepting)


@strategies.fixed(150)
@given(st.data())
def test_derivatives_agree_with_re(data: st.DataObject) -> None:
    """A text is a member exactly if ``re.fullmatch`` says so, and a prefix if a member begins with it."""
    pattern = data.draw(strategies.plain_patterns().filter(lambda p: not _has_automaton(p)))
    compiled = re.compile(_regex(pattern), re.DOTALL)
    for size in range(4):
        for characters in itertools.product(strategies.ALPHABET, repeat=size):
            text = "".join(characters)
            assert patterns.matches(pattern, text.encode()) == bool(compiled.fullmatch(text)), text
    for text in data.draw(st.lists(st.text("ab", min_size=4, max_size=45), max_size=4)):
        assert patterns.matches(pattern, text.encode()) == bool(compiled.fullmatch(text)), text
    found = list(patterns.members(pattern, strategies.ALPHABET_BYTES, 4))
    assert len(found) == len(set(found))
    assert all(patterns.is_prefix(pattern, member[:k]) for member in found for k in range(len(member)))


@strategies.fixed(100)
@given(strategies.boolean_patterns(), strategies.automata())
def test_booleans_are_set_operations(pattern: ir.Intersection, automaton: ir.Automaton) -> None:
    """Intersections and complements do to languages what they do to sets; automata run as such."""
    everything = [bytes(t) for n in range(4) for t in itertools.product(strategies.ALPHABET_BYTES, repeat=n)]
    for text in everything:
        expected = all(
            not patterns.matches(p.part, text) if isinstance(p, ir.Complement) else patterns.matches(p, text)
            for p in pattern.parts
        )
        assert patterns.matches(pattern, text) == expected
        assert patterns.matches(automaton, text) == _automaton_accepts(automaton, text)
    try:
        alive = patterns.is_alive(patterns.start(pattern))
    except patterns.UnknownError:
        return
    assert alive or not any(patterns.matches(pattern, text) for text in everything)


@pytest.mark.parametrize(
    "ranges", [((0, 0xD7FF), (0xE000, 0x10FFFF)), ((0x7F, 0x800),), ((0xE9, 0xE9), (0xFFFF, 0x10001))]
)
def test_characters_are_their_utf8(ranges: ir.Ranges) -> None:
    """A character class takes exactly the UTF-8 of its scalar values, and nothing else is alive."""
    term = patterns.start(ir.CharacterClass(ranges))
    edges = {
        c + d
        for low, high in [*ranges, (0x80, 0x7FF), (0xFFFF, 0x10000)]
        for c in (low, high)
        for d in (-1, 0, 1)
    }
    for value in edges | set(range(0, 0x110000, 997)):
        if 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
            expected = any(low <= value <= high for low, high in ranges)
            assert patterns.is_nullable(patterns.after(term, chr(value).encode())) == expected
    for junk in (
        b"\x80",
        b"\xc0",
        b"\xc1",
        b"\xe0\x80",
        b"\xed\xa0",
        b"\xf0\x80",
        b"\xf4\x90",
        b"\xf5",
        b"\xff",
    ):
        assert patterns.after(term, junk) == patterns.NONE


@strategies.fixed(100)
@given(strategies.any_patterns())
def test_bytes_of_a_class_have_one_derivative(pattern: ir.Pattern) -> None:
    """Each byte leads where the nearest representative at or below it leads."""
    level = {patterns.start(pattern)}
    for _ in range(3):
        after = set()
        for term in level:
            representatives = patterns.representatives([term])
            for byte in range(256):
                nearest = max(r for r in representatives if r <= byte)
                assert patterns.step(term, byte) == patterns.step(term, nearest)
            after |= {patterns.step(term, byte) for byte in representatives}
        level = set(sorted(after, key=repr)[:6])


def _over_single_bytes(grammar: ir.Grammar) -> ir.Grammar:
    """Replace each terminal by a letter of its own, so that texts are words."""
    terminals = tuple(
        ir.Terminal(ir.Literal(bytes([ord("A") + i])), terminal.name)
        for i, terminal in enumerate(grammar.terminals)
    )
    return ir.Grammar(terminals, grammar.rules, grammar.start)


@strategies.fixed(150)
@given(strategies.grammars())
def test_parser_agrees_with_enumeration(grammar: ir.Grammar) -> None:
    """The texts of a grammar over letters are the words its equations give."""
    grammar = _over_single_bytes(grammar)
    expected = {bytes(ord("A") + t for t in word) for word in words(grammar, 4)}
    reference = ReferenceGrammar(grammar)
    alphabet = bytes(ord("A") + i for i in range(len(grammar.terminals)))
    assert set(reference.members(alphabet, 4)) == expected
    longer = {text for size in range(3) for text in itertools.product(alphabet, repeat=size)}
    for text in map(bytes, longer):
        if any(member.startswith(text) for member in expected):
            assert reference.is_viable(reference.steps(reference.start, text))


LARK_GRAMMARS = {
    "left recursion": ('start: start "+" W | W\nW: /[ab]+/', "ab+"),
    "hidden left recursion": ('start: e start "b" | "a"\ne: | "b"', "ab"),
    "nullable": ("start: x y x\nx: | W\ny: (W | x)*\nW: /a|bb/", "ab"),
    "ambiguity": ("start: start start | W\nW: /a|aa|b/", "ab"),
    "nested lists": ('start: "(" (start ("," start)*)? ")" | W\nW: /[ab]{1,2}/', "(),a"),
    "ignored": ('start: W ("," W)*\nW: /[ab]+/\nB: / /\n%ignore B', "a, "),
    "terminals that overlap": ("start: A B C?\nA: /a+/\nB: /ab|b/\nC: /b+a/", "ab"),
    "cycle": ('start: x | W\nx: start | "(" x ")"\nW: /a/', "(a)"),
}


def _from_lark(parser: lark.Lark) -> ir.Grammar:
    """Translate Lark's compiled rules: every terminal here is a pattern `_pattern` can read."""
    index = {t.name: i for i, t in enumerate(parser.terminals)}
    bodies: dict[str, list[ir.Expression]] = {}
    for rule in parser.rules:
        parts = tuple(
            ir.TerminalReference(index[s.name]) if s.is_term else ir.RuleReference(str(s.name))
            for s in rule.expansion
        )
        bodies.setdefault(str(rule.origin.name), []).append(ir.Sequence(parts))
    ignored = tuple(index[name] for name in parser.ignore_tokens)
    return ir.Grammar(
        tuple(ir.Terminal(_pattern(t.pattern.to_regexp()), t.name) for t in parser.terminals),
        {name: ir.Choice(tuple(alternatives)) for name, alternatives in bodies.items()},
        "start",
        ir.Ignored(ignored, leading=True, trailing=True, most=None),
    )


def _pattern(regex: str) -> ir.Pattern:
    """Read the few forms of regular expression used in `LARK_GRAMMARS`."""
    letters = ir.ByteClass(((0x61, 0x62),))
    known: dict[str, ir.Pattern] = {
        "[ab]+": ir.Repeat(letters, 1, None),
        "[ab]{1,2}": ir.Repeat(letters, 1, 2),
        "a|bb": ir.Alternation((ir.Literal(b"a"), ir.Literal(b"bb"))),
        "a|aa|b": ir.Alternation((ir.Literal(b"a"), ir.Literal(b"aa"), ir.Literal(b"b"))),
        "a+": ir.Repeat(ir.Literal(b"a"), 1, None),
        "ab|b": ir.Alternation((ir.Literal(b"ab"), ir.Literal(b"b"))),
        "b+a": ir.Concatenation((ir.Repeat(ir.Literal(b"b"), 1, None), ir.Literal(b"a"))),
    }
    plain = regex.replace("\\", "")
    return known[plain] if plain in known else ir.Literal(plain.encode())


@pytest.mark.parametrize("name", LARK_GRAMMARS)
def test_grammars_agree_with_lark(name: str) -> None:
    """Any segmentation into lexemes is what Lark's Earley parser with its complete lexer accepts."""
    text, alphabet = LARK_GRAMMARS[name]
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="explicit")
    reference = ReferenceGrammar(_from_lark(parser))
    for size in range(1, 6):
        for characters in itertools.product(alphabet, repeat=size):
            candidate = "".join(characters)
            try:
                parser.parse(candidate)
                expected = True
            except lark.exceptions.LarkError:
                expected = False
            assert reference.accepts(candidate.encode()) == expected, candidate


def _words_of(grammar: ir.Grammar, alphabet: bytes, length: int) -> set[bytes]:
    return set(ReferenceGrammar(grammar).members(alphabet, length))


_LETTERS = ir.Repeat(ir.ByteClass(((0x61, 0x62),)), 1, None)
_KEYWORD_GRAMMAR = {
    "start": ir.Choice(
        (
            ir.Sequence((ir.TerminalReference(0), ir.TerminalReference(2))),
            ir.Sequence((ir.TerminalReference(1), ir.TerminalReference(2), ir.TerminalReference(2))),
        )
    )
}


def _keyword_grammar(priority: int) -> ir.Grammar:
    return ir.Grammar(
        (
            ir.Terminal(_LETTERS, "name", greedy=True),
            ir.Terminal(ir.Literal(b"ab"), "keyword", priority=priority, greedy=True),
            ir.Terminal(ir.Literal(b";"), "end"),
        ),
        _KEYWORD_GRAMMAR,
        "start",
    )


def test_priority_decides_between_equal_lexemes() -> None:
    """Of terminals that match the same bytes only the highest priority counts; equals go on together."""
    assert _words_of(_keyword_grammar(1), b"ab;", 4) >= {b"a;", b"ab;;", b"aba;"}
    assert b"ab;" not in _words_of(_keyword_grammar(1), b"ab;", 4)
    assert {b"ab;", b"ab;;"} <= _words_of(_keyword_grammar(0), b"ab;", 4)
    assert b"ab;;" not in _words_of(_keyword_grammar(-1), b"ab;", 4)


def test_greedy_lexemes_fuse() -> None:
    """A greedy lexeme ends only where nothing can continue it, so that two in a row can't be read."""
    grammar = ir.Grammar(
        (ir.Terminal(_LETTERS, "name", greedy=True),),
        {"start": ir.Sequence((ir.TerminalReference(0), ir.TerminalReference(0)))},
        "start",
    )
    engine = ReferenceEngine(grammar, [b"a", b"b", None], [2])
    assert engine.mask(engine.start) == set()
    assert engine.surviving(engine.start) == {0, 1}


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        (ir.Ignored((1,)), {b"a", b"aa", b"a a", b"aaa"}),
        (ir.Ignored((1,), leading=True), {b"a", b" a", b"aa", b"a a", b" aa", b"aaa"}),
        (ir.Ignored((1,), trailing=True), {b"a", b"a ", b"aa", b"a a", b"aa ", b"aaa"}),
        (ir.Ignored((1,), leading=True, most=0), {b"a", b"aa", b"aaa"}),
        (
            ir.Ignored((1,), leading=True, trailing=True, most=2),
            {b"a", b" a", b"a ", b"aa", b"a a", b" aa", b"aa ", b"aaa", b"  a", b" a ", b"a  "},
        ),
        (
            ir.Ignored((1,), leading=True, trailing=True, most=None),
            {b"a", b" a", b"a ", b"aa", b"a a", b" aa", b"aa ", b"aaa", b"  a", b" a ", b"a  "},
        ),
    ],
)
def test_ignored_text_stands_where_it_may(ignored: ir.Ignored, expected: set[bytes]) -> None:
    """Ignored text stands between lexemes, and in front, behind and repeated only where allowed."""
    terminals = (ir.Terminal(ir.Literal(b"a"), "a"), ir.Terminal(ir.Literal(b" "), "blank"))
    body = ir.Repetition(ir.TerminalReference(0), 1, None)
    assert _words_of(ir.Grammar(terminals, {"start": body}, "start", ignored), b"a ", 3) == expected


def test_missing_bytes_are_judged_by_tokens() -> None:
    """A state that only a missing byte could finish is no state to lead into."""
    pattern = ir.Alternation((ir.Literal(b"ac"), ir.Literal(b"abb"), ir.Literal(b"b")))
    engine = ReferenceEngine(ir.pattern_grammar(pattern), [b"a", b"b", b"bb", None], [3])
    assert engine.mask(engine.start) == {0, 1}
    assert engine.fewest_tokens(engine.start) == 1
    assert engine.fewest_tokens(engine.after([0])) == 1
    assert [ids for ids, _ in engine.reachable(at_most=9)] == [[], [0], [1], [0, 1]]
