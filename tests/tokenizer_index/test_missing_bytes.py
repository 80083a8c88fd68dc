"""Vocabularies that lack bytes: masks only allow what tokens can finish."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest

import constrain
from constrain.grammars import ir
from constrain.spec import Spec
from constrain.tokenizer_index.missing_bytes import lacking_bytes
from tests.laws.walks import allowed, list_grammar, members_of
from tests.reference.vocabularies import TokenList, with_all_bytes

ASCII = [bytes([b]) for b in range(0x20, 0x7F)]


def _vocabulary(tokens: list[bytes]) -> TokenList:
    return TokenList((*tokens, None), (len(tokens),))


class _BruteForce:
    """Which texts tokens can finish, by trying all of them on the byte-by-byte engine."""

    def __init__(self, spec: Spec, tokens: TokenList, at_most: int) -> None:
        # The same spec with all bytes says byte by byte what can be read.
        self.compiled = constrain.compile(spec, with_all_bytes([]).build(), cache=False)
        self.tokens = [(t, data) for t, data in enumerate(tokens.tokens) if data]
        arena = self.compiled.arena
        self.after: dict[int, dict[int, int]] = {}
        todo = [arena.start]
        while todo:
            state = todo.pop()
            if state in self.after:
                continue
            assert len(self.after) < at_most
            self.after[state] = {}
            for token_id, data in self.tokens:
                reached = arena.step_bytes(state, data)[0]
                if reached >= 0:
                    self.after[state][token_id] = reached
            todo += self.after[state].values()
        self.alive = {state for state in self.after if arena.is_accepting(state)}
        is_changed = True
        while is_changed:
            found = {s for s, after in self.after.items() if self.alive.intersection(after.values())}
            is_changed = not found <= self.alive
            self.alive |= found

    def mask(self, state: int) -> set[int]:
        return {token_id for token_id, after in self.after[state].items() if after in self.alive}


def _check(spec: Spec, tokens: TokenList, *, at_most: int = 4000) -> int:
    """Compare masks, acceptance of tokens and of text, and budgets; return how many states were dead."""
    truth = _BruteForce(spec, tokens, at_most)
    start = truth.compiled.arena.start
    if start not in truth.alive:
        with pytest.raises(constrain.EmptyLanguageError, match="no token for"):
            constrain.compile(spec, tokens.build(), cache=False)
        return len(truth.after)
    compiled = constrain.compile(spec, tokens.build(), cache=False)
    ends = set(tokens.eos_token_ids)
    seen, todo = {start}, [(start, compiled.matcher())]
    while todo and len(seen) < 60:
        state, matcher = todo.pop()
        mask = truth.mask(state)
        assert allowed(matcher, tokens.size) - ends == mask
        least = matcher.min_tokens_to_finish()
        row = constrain.allocate_token_bitmask(1, tokens.size)
        assert not matcher.fill_budget_bitmask(row, 0, remaining=1 << 20)
        matcher.fill_budget_bitmask(row, 0, remaining=int(least) + 1)
        assert row.any()
        for token_id, data in truth.tokens:
            assert matcher.validate_tokens([token_id]) == (token_id in mask)
            assert matcher.fork().accept_string(data) == (token_id in mask)
            if token_id in mask:
                after = truth.after[state][token_id]
                if after not in seen:
                    seen.add(after)
                    other = matcher.fork()
                    assert other.accept_token(token_id)
                    todo.append((after, other))
        forced = matcher.find_jump_forward_string()
        assert not forced or matcher.fork().accept_string(forced)
    return len(truth.after) - len(truth.alive)


def test_random_expressions() -> None:
    """Masks of 200 random expressions over three letters, one or more of them no token, equal brute force."""
    rng = random.Random(2)

    def expression(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            return rng.choice(["a", "b", "c", "[ab]", "[bc]"])
        if kind < 0.65:
            return expression(depth - 1) + expression(depth - 1)
        if kind < 0.8:
            return f"(?:{expression(depth - 1)}|{expression(depth - 1)})"
        return f"(?:{expression(depth - 1)})" + rng.choice(["?", "*", "+", "{0,3}", "{2,9}"])

    n_dead = 0
    for _ in range(200):
        single = rng.sample([b"a", b"b", b"c"], rng.randint(0, 2))
        longer = {
            bytes(rng.choice(b"abc") for _ in range(rng.randint(2, 3))) for _ in range(rng.randint(2, 6))
        }
        spec = constrain.regex(expression(3) + expression(2))
        n_dead += _check(spec, _vocabulary([*single, *sorted(longer)]))
    assert n_dead > 100


@pytest.mark.parametrize("maximum", [3, 40, 400])
def test_counted_repeats(maximum: int) -> None:
    """A character that only comes in pairs leaves odd counts dead."""
    tokens = _vocabulary([b"aa", b"b", b"aaaa"])
    assert _check(constrain.regex(f"(?:a{{{maximum}}}|a{{0,{maximum}}}b)*"), tokens) >= 0
    with pytest.raises(constrain.EmptyLanguageError, match=r"0x61 \('a'\)"):
        constrain.compile(constrain.regex("a{5}|a{401}"), tokens.build(), cache=False)


def test_objects_without_all_bytes() -> None:
    """Objects of fixed keys are finite for the parser: masks are exact, across lexemes."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"enum": ["x", "yz", "xq"]},
            "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    tokens = _vocabulary(
        [
            b'{"',
            b"a",
            b'":',
            b'"x',
            b'"y',
            b"z",
            b'"',
            b'"}',
            b',"',
            b"b",
            b"[",
            b"true",
            b"fals",
            b"e]",
            b"]",
            b"}",
            b",",
        ]
    )
    spec = constrain.json_schema(schema, whitespace="compact")
    assert constrain.compile(spec, tokens.build(), cache=False).is_checked
    assert _check(spec, tokens) > 0


def test_bytes_that_no_text_needs() -> None:
    """Missing bytes that the spec never uses cost nothing: masks aren't checked."""
    tokens = _vocabulary(ASCII)
    for spec in (
        constrain.regex("[a-z]+@[a-z]+"),
        constrain.choice(["red", "green"]),
        constrain.json_schema({"enum": [1, "a"]}, whitespace="compact"),
    ):
        assert not constrain.compile(spec, tokens.build(), cache=False).is_checked
    # Nor do those that are in no token at all; halves of a character are another thing.
    anything = constrain.regex(".+")
    assert not constrain.compile(anything, tokens.build(), cache=False).is_checked
    assert constrain.compile(
        anything, _vocabulary([*ASCII, b"\xc3", b"a\xa9"]).build(), cache=False
    ).is_checked


def test_recursive_specs_are_refused_or_proven() -> None:
    """A recursive spec needs a proof that no token ends where nothing goes on."""
    anything = constrain.json_schema(True)
    whole = [*ASCII, b"\n", b"\t", b"\r", "é".encode(), "日本".encode()]
    # Tokens end between characters only, and strings can be closed there.
    compiled = constrain.compile(anything, _vocabulary(whole).build(), cache=False)
    assert not compiled.is_checked
    matcher = compiled.matcher()
    assert matcher.accept_token(whole.index(b'"'))
    assert allowed(matcher, len(whole) + 1) >= {whole.index("é".encode()), whole.index("日本".encode())}
    # Half a character can be begun and never finished.
    with pytest.raises(constrain.VocabularyError, match="recursive"):
        constrain.compile(anything, _vocabulary([*whole, b"\xc3"]).build(), cache=False)
    # Closing brackets only come in pairs.
    tokens = [data for data in ASCII if data != b"]"]
    with pytest.raises(constrain.VocabularyError, match=r"0x5d \('\]'\)"):
        constrain.compile(
            Spec.from_grammar(list_grammar()), _vocabulary([*tokens, b"]]"]).build(), cache=False
        )


# Lexemes that fuse and hide one another, brackets that nest, counts, lookahead and priorities.
GRAMMARS = {
    "keywords": """
start: item+
item: "begin" item* "end" | "if" NAME | NAME "(" item ")" | "done"
NAME: /[a-f]+/
%ignore / +/
""",
    "numbers": """
start: value
value: NUMBER | "[" value (","? value)* "]" | NUMBER ".." NUMBER
NUMBER: /[0-2]+(\\.[0-2]+)?(e[0-1]{2,5})?/
%ignore " "
""",
    "strings": """
start: (pair ";")*
pair: STRING "=" (pair | STRING | WORD)
STRING: /"([^"\\\\]|\\\\["u])*"/
WORD.2: /(?!end)[a-e]+(?![f])/
""",
    "fusing": """
start: A B | "(" start ")" | A start C
A: "a" | "abc"
B: /b(de)?/
C: "c" | "cf"
""",
    "from GBNF": """
root ::= item ("," item)*
item ::= "abc" | "ab" | "(" root ")" | [d-f]{2,3} | "d" root?
""",
}
LETTERS = {
    "keywords": b"begindfo (a)",
    "numbers": b"[],. 012e",
    "strings": b'";=abcdef\\u',
    "fusing": b"abcdef()",
    "from GBNF": b"abcdef,()",
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_bytes_in_no_token(name: str) -> None:
    """What is left without bytes that no token holds: brute force over all short texts and all walks' ends."""
    rng = random.Random(name)
    spec = constrain.grammar(GRAMMARS[name])
    n_members = n_empty = n_refused = 0
    for _ in range(12):
        letters = LETTERS[name]
        lost = set(rng.sample(letters, rng.randint(1, 2)))
        kept = [b for b in letters if b not in lost]
        longer = {bytes(rng.choices(kept, k=rng.randint(2, 3))) for _ in range(6)}
        tokens = _vocabulary([*(bytes([b]) for b in kept), *sorted(longer)])
        try:
            compiled = constrain.compile(spec, tokens.build(), cache=False)
        except constrain.EmptyLanguageError as error:
            assert "no token for" in str(error) and not any(map(spec.matches, _texts(kept, 4)))
            n_empty += 1
            continue
        except constrain.VocabularyError:
            n_refused += 1
            continue
        members = {text for text in _texts(kept, 4) if spec.matches(text)}
        n_members += len(members)
        for text in _texts(kept, 3 if len(kept) > 6 else 4):
            matcher = compiled.matcher()
            begins = matcher.accept_string(text)
            assert (begins and matcher.is_accepting()) == (text in members), text
            assert begins or not any(member.startswith(text) for member in members)
        # Whatever masks allow can be finished, by a member of the whole language.
        for _ in range(12):
            matcher, text = compiled.matcher(), b""
            for step in range(30):
                mask = sorted(allowed(matcher, tokens.size) - set(tokens.eos_token_ids))
                if step >= 6:
                    left = int(matcher.min_tokens_to_finish())
                    if left == 0:
                        break
                    row = constrain.allocate_token_bitmask(1, tokens.size)
                    matcher.fill_budget_bitmask(row, 0, remaining=left + 1)
                    mask = sorted(members_of(row[0]))
                if not mask:
                    break
                token_id = rng.choice(mask)
                assert matcher.accept_token(token_id)
                text += tokens.tokens[token_id] or b""
            assert matcher.is_accepting() and spec.matches(text), text
    # Many keywords hide names: without one of them much is no longer certain.
    assert n_members > 5 and n_refused < (6 if name == "keywords" else 2) and n_empty < 6


def _texts(letters: list[int], at_most: int) -> Iterator[bytes]:
    return (bytes(text) for n in range(at_most + 1) for text in itertools.product(letters, repeat=n))


def test_no_text_without_bytes_that_no_token_holds() -> None:
    """The error names the bytes; what lexemes hide in one another is judged without them as well."""
    nested = constrain.grammar('start: "(" start ")" | "x"')
    with pytest.raises(constrain.EmptyLanguageError, match=r"byte 0x78 \('x'\), alone or with others"):
        constrain.compile(nested, _vocabulary([b"(", b")", b"((", b"y"]).build(), cache=False)
    blanks = constrain.grammar("start: WORD+\nWORD: /[ab]+/\n%ignore / +/")
    compiled = constrain.compile(blanks, _vocabulary([b"a", b"ab"]).build(), cache=False)
    assert not compiled.matcher().accept_string("a b") and compiled.matcher().accept_string("ab")
    both = constrain.grammar('start: WORD WORD | "(" start ")"\nWORD: /[ab]+/\n%ignore / +/')
    with pytest.raises((constrain.EmptyLanguageError, constrain.VocabularyError), match=r"0x20"):
        constrain.compile(both, _vocabulary([b"a", b"ab", b"(", b")"]).build(), cache=False)


def test_lost_texts_still_hold_greedy_lexemes_open() -> None:
    """A greedy lexeme that lost texts would go on from is not ended there, as it never was."""
    spec = constrain.grammar('start: A B | "(" start ")"\nA: "a" | "abc"\nB: /b(de)?/')
    assert not spec.matches("ab")
    tokens = [b"a", b"b", b"(", b")", b"d", b"e", b"ab"]
    with pytest.raises((constrain.VocabularyError, constrain.EmptyLanguageError)):
        constrain.compile(spec, _vocabulary(tokens).build(), cache=False)


def test_lexemes_in_front_of_a_lost_one_are_still_read_beside_others() -> None:
    """``(bc)+`` hides ``bc bc``, though what would follow it can't be written."""
    tokens = _vocabulary([bytes([b]) for b in range(256) if b != ord("a")])
    spec = constrain.grammar(
        """
        start: pair pair | run last
        pair: BC
        run: RUN
        last: A
        A: "a"
        RUN: /(bc)+/
        BC: "bc"
        """,
        syntax="lark",
    )
    assert spec.matches("bcbca") and not spec.matches("bcbc")
    with pytest.raises(constrain.EmptyLanguageError, match="no token for byte 0x61"):
        constrain.compile(spec, tokens.build(), cache=False)


def test_lexemes_that_cut_off_every_way() -> None:
    """Where a greedy terminal never ends in time no token is allowed that leads into it; the rest stays."""
    letters = ir.Repeat(ir.ByteClass(((0x61, 0x62),)), 1, None)
    terminals = (
        ir.Terminal(letters, "word", greedy=True),
        *(ir.Terminal(ir.Literal(x), repr(x)) for x in (b"a", b".")),
    )
    word, a, dot = map(ir.TerminalReference, range(3))
    tokens = with_all_bytes([b"ab", b"a."])
    lost = ir.Grammar(terminals, {"start": ir.Sequence((word, a))}, "start")
    with pytest.raises(constrain.EmptyLanguageError, match="as far as it goes"):
        constrain.compile(Spec.from_grammar(lost), tokens.build(), cache=False)
    body = ir.Choice((ir.Sequence((word, a)), ir.Sequence((dot, ir.Repetition(a, 0, 3), dot))))
    compiled = constrain.compile(
        Spec.from_grammar(ir.Grammar(terminals, {"start": body}, "start")), tokens.build(), cache=False
    )
    matcher = compiled.matcher()
    assert compiled.is_checked
    assert allowed(matcher, tokens.size) == {tokens.tokens.index(b".")}
    assert matcher.min_tokens_to_finish() == 2
    assert not matcher.accept_string("a")
    assert matcher.accept_string(".")
    assert allowed(matcher, tokens.size) == {tokens.tokens.index(x) for x in (b"a", b".", b"a.")}


def test_batches_are_checked_too() -> None:
    """Masks of a batch equal those made one by one, where some specs are checked and others not."""
    tokens = _vocabulary([b"a", b"ab", b"ba", b"c"])
    vocabulary = tokens.build()
    specs = [constrain.regex(p) for p in ("(ab)*c", "a*c", "(a|b)+", "abab|ac")]
    matchers = [constrain.compile(spec, vocabulary, cache=False).matcher() for spec in specs]
    for text in ("", "a"):
        moved = [matcher for matcher in (m.fork() for m in matchers) if matcher.accept_string(text)]
        for _ in range(2):
            together = constrain.allocate_token_bitmask(len(moved), tokens.size)
            constrain.fill_next_token_bitmasks(moved, together)
            for row, matcher in enumerate(moved):
                alone = constrain.allocate_token_bitmask(1, tokens.size)
                matcher.fill_next_token_bitmask(alone, 0)
                assert np.array_equal(together[row], alone[0])


def test_a_check_that_needs_too_much_room_is_a_limit_error() -> None:
    """Deciding what can be finished stops at the arena's limit, with the error of limits."""
    tokens: list[bytes | None] = [bytes([b]) for b in range(256) if b != ord("b")]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, None, b"ab"], eos_token_ids=[255])
    spec = constrain.regex("((a|ab){100}){30}c")
    with pytest.raises(constrain.LimitExceededError, match="arena_bytes"):
        constrain.compile(spec, vocabulary, cache=False, limits=constrain.Limits(arena_bytes=150_000))


def test_bytes_that_others_stand_for() -> None:
    """A missing byte that no rule tells from one that is a token is none that a spec needs; others still are."""
    tokens = [bytes([b]) for b in range(256) if b not in (0xF1, 0xF2)]
    vocabulary = _vocabulary([*tokens, b"[[", b"\xf3\x80"]).build()
    nested = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "string", "minLength": 2}]}}
    compiled = constrain.compile(constrain.json_schema(nested), vocabulary, cache=False)
    assert not compiled.is_checked
    matcher = compiled.matcher()
    assert matcher.accept_string('[["é\U000f0000'.encode())
    assert matcher.min_tokens_to_finish() == 3
    only = constrain.regex("[\U00040000\U000f0000]")
    assert lacking_bytes(only.network, vocabulary) == b"\xf1"
