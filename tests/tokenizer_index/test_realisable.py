"""Which grammars are found sound although lexemes fuse or hide one another, and which are refused."""

from __future__ import annotations

import pytest

import constrain
from constrain.grammars import ir
from constrain.grammars.limits import Limits, Watch
from constrain.spec import Spec
from constrain.tokenizer_index import layout
from constrain.tokenizer_index.network import Network, build_network
from tests.laws.walks import compile_grammar, expression_grammar
from tests.reference.vocabularies import one_byte_per_token

T, R = ir.TerminalReference, ir.RuleReference
LETTERS = ir.Repeat(ir.ByteClass(((0x61, 0x62),)), 1, None)
DIGITS = ir.Repeat(ir.ByteClass(((0x30, 0x39),)), 1, None)
NAME = ir.Terminal(LETTERS, "NAME", greedy=True)
KEYWORD = ir.Terminal(ir.Literal(b"ab"), "KEYWORD", priority=1, greedy=True)
SEMICOLON = ir.Terminal(ir.Literal(b";"), "SEMICOLON", greedy=True)
BLANK = ir.Terminal(ir.Repeat(ir.Literal(b" "), 1, None), "BLANK", greedy=True)
NUMBER = ir.Terminal(DIGITS, "NUMBER", greedy=True)
DOT = ir.Terminal(ir.Literal(b"."), "DOT", greedy=True)
FRACTION = ir.Terminal(ir.Concatenation((DIGITS, ir.Literal(b"."), DIGITS)), "FRACTION", greedy=True)
COMMENT = ir.Terminal(
    ir.Concatenation((ir.Literal(b"#"), ir.Repeat(ir.ByteClass(((0x20, 0x7E),)), 0, None))),
    "COMMENT",
    greedy=True,
)
BREAK = ir.Terminal(ir.Literal(b"\n"), "BREAK", greedy=True)

NAMES = ir.Choice((ir.Sequence((T(0), T(0), T(2))), ir.Sequence((T(1), T(0), T(2)))))


NONE = ir.Ignored()


def network(terminals: tuple[ir.Terminal, ...], start: ir.Expression, ignored: ir.Ignored = NONE) -> Network:
    return build_network(ir.Grammar(terminals, {"start": start}, "start", ignored), Watch(Limits()))


def nested(body: ir.Expression, opening: int) -> ir.Expression:
    return ir.Choice((body, ir.Sequence((T(opening), R("start"), T(opening)))))


def test_names_with_blanks_between_are_sound() -> None:
    """Blanks tell a keyword from the name behind it, so nothing need be checked while decoding."""
    found = network((NAME, KEYWORD, SEMICOLON, BLANK), NAMES, ir.Ignored((3,), most=None))
    assert found.is_sound
    assert not found.is_lexing_proven
    assert build_network(expression_grammar(), Watch(Limits())).is_sound


def test_names_without_blanks_are_no_language() -> None:
    """Nothing ever stands between the two names, so no text matches."""
    grammar = ir.Grammar((NAME, KEYWORD, SEMICOLON), {"start": NAMES}, "start")
    assert not build_network(grammar, Watch(Limits())).is_sound
    with pytest.raises(constrain.EmptyLanguageError, match="'NAME'"):
        compile_grammar(grammar, one_byte_per_token())
    with pytest.raises(constrain.EmptyLanguageError, match="'NAME'"):
        network((NAME, SEMICOLON), ir.Sequence((T(0), T(0), T(1))))


def test_dead_ends_in_rules_that_nest_are_refused() -> None:
    """There may be no end to the search for an end of the text, so the terminals are named."""
    with pytest.raises(constrain.UnsupportedFeatureError, match="'NAME'"):
        network((NAME, SEMICOLON), nested(ir.Sequence((T(0), T(0))), 1))


def test_a_way_around_is_enough() -> None:
    """A name may follow by the rules, but something else may, too; and a number is part of a fraction."""
    names = ir.Sequence((ir.Repetition(T(0), 1, None), T(1)))
    assert network((NAME, SEMICOLON), nested(names, 1)).is_sound
    numbers = ir.Choice((ir.Sequence((T(0), T(1), T(0))), T(2)))
    assert network((NUMBER, DOT, FRACTION, SEMICOLON), nested(numbers, 3)).is_sound
    rest = ir.Choice((ir.Sequence((T(0), T(1), T(0), T(2))), T(1)))
    assert not network((NUMBER, DOT, FRACTION), rest).is_sound


def test_comments_stand_where_the_line_may_end() -> None:
    """A comment up to the end of the line isn't read where the line must go on."""
    line = ir.Sequence((T(0), T(1), T(0), T(2)))
    terminals = (NAME, SEMICOLON, BREAK, COMMENT, BLANK)
    grammar = ir.Grammar(terminals, {"start": line}, "start", ir.Ignored((3, 4), trailing=True, most=None))
    found = build_network(grammar, Watch(Limits()))
    assert found.is_sound
    assert found.blocked_row.tolist() == [-1, -1, -1, 0, -1]
    spec = Spec.from_grammar(grammar)
    assert spec.matches("a ;b #x;\n")
    tokens = one_byte_per_token()
    matcher = compile_grammar(grammar, tokens).matcher()
    accepted = [matcher.accept_token(tokens.tokens.index(bytes([b]))) for b in b"a#"]
    assert accepted == [True, False]


def test_the_last_of_a_row_of_ignored_lexemes_ends_by_itself() -> None:
    """Where a comment needs a line break behind it, it isn't the last ignored lexeme that is allowed."""
    terminals = (NAME, SEMICOLON, COMMENT, BREAK)
    body = nested(ir.Sequence((T(0), T(0))), 1)
    found = network(terminals, body, ir.Ignored((2, 3), most=8))
    assert found.is_sound
    assert found.ignored.tolist() == [0, 0, layout.IGNORED_OPEN, 1]
    grammar = ir.Grammar(terminals, {"start": body}, "start", ir.Ignored((2, 3), most=8))
    spec = Spec.from_grammar(grammar)
    assert spec.matches("a#x\n#x\n#x\n#x\nb")
    assert spec.matches("a" + 6 * "\n" + "#\nb")
    assert not spec.matches("a" + 7 * "\n" + "#\nb")


def test_reserved_names() -> None:
    """A name that is always read as a keyword has no way of its own."""
    only = ir.Terminal(ir.Literal(b"ab"), "ONLY", greedy=True)
    expected = ir.Choice((ir.Sequence((T(0), T(2))), ir.Sequence((T(1), T(2)))))
    assert network((only, KEYWORD, SEMICOLON), expected).is_sound
    rest = ir.Choice((ir.Sequence((T(0), T(2))), ir.Sequence((T(1), T(3), T(3)))))
    assert not network((only, KEYWORD, SEMICOLON, NAME), rest).is_sound


def test_only_what_is_expected_together_is_read_together() -> None:
    """A keyword and a name fuse where both are expected, and not where the name comes after the keyword."""
    assert network((NAME, KEYWORD, SEMICOLON), ir.Sequence((T(1), T(0), T(2)))).is_sound
    assert not network((NAME, KEYWORD, SEMICOLON), NAMES).is_sound


class Counting(Watch):
    """A watch that adds up the steps."""

    def __init__(self) -> None:
        super().__init__(Limits())
        self.total = 0

    def step(self, place: str, weight: int = 1) -> None:
        self.total += weight
        super().step(place, weight)


def steps_for_keywords(n: int, *, has_blanks: bool, is_beside_a_name: bool) -> int:
    """The steps for ``n`` statements of two keywords each, which fuse where no blanks stand between them."""
    words = [
        f"{chr(0x61 + i % 26)}{i:04}".translate({0x30 + d: 0x61 + d for d in range(10)}) for i in range(n)
    ]
    letters = ir.Repeat(ir.ByteClass(((0x61, 0x7A),)), 1, None)
    terminals = [ir.Terminal(ir.Literal(word.encode()), word, priority=1, greedy=True) for word in words]
    terminals += [SEMICOLON, BLANK, ir.Terminal(letters, "NAME", greedy=True)]
    pairs: list[ir.Expression] = [ir.Sequence((T(i), T((7 * i + 1) % n))) for i in range(n)]
    body = ir.Choice((*pairs, T(n + 2)) if is_beside_a_name else tuple(pairs))
    start = ir.Repetition(ir.Sequence((body, T(n))), 1, None)
    ignored = ir.Ignored((n + 1,), most=None) if has_blanks else NONE
    watch = Counting()
    found = build_network(ir.Grammar(tuple(terminals), {"start": start}, "start", ignored), watch)
    assert found.is_sound == (has_blanks or not is_beside_a_name)
    return watch.total


@pytest.mark.parametrize("has_blanks", [False, True])
@pytest.mark.parametrize("is_beside_a_name", [False, True])
def test_work_grows_with_the_keywords(has_blanks: bool, is_beside_a_name: bool) -> None:
    """Twice as many keywords, all followed by others, take some twice the steps."""
    few, many = (
        steps_for_keywords(n, has_blanks=has_blanks, is_beside_a_name=is_beside_a_name) for n in (200, 400)
    )
    assert many < 3 * few
