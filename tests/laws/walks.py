"""What the laws share: compiling a grammar, reading a mask, walking at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import constrain
from constrain.grammars import ir
from constrain.spec import Spec
from tests.reference.vocabularies import TokenList

DIGITS = ir.ByteClass(((0x30, 0x39),))
LETTERS = ir.ByteClass(((0x61, 0x7A),))


def compile_grammar(grammar: ir.Grammar, tokens: TokenList) -> constrain.CompiledSpec:
    """Compile a grammar of the intermediate representation."""
    return constrain.compile(Spec.from_grammar(grammar), tokens.build(), cache=False)


def members_of(row: NDArray[np.int32]) -> set[int]:
    """Return the ids whose bit is set in a mask of one row."""
    bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def allowed(matcher: constrain.Matcher, size: int) -> set[int]:
    """Return the tokens the mask allows; bits past ``size`` count too, so that they are noticed."""
    bitmask = constrain.allocate_token_bitmask(2, size)
    bitmask[:] = -1
    matcher.fill_next_token_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all(), "another row was written"
    return members_of(bitmask[1])


def allowed_within(matcher: constrain.Matcher, size: int, remaining: int) -> set[int]:
    """Return the tokens allowed with a budget of ``remaining`` tokens before the end token."""
    bitmask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_budget_bitmask(bitmask, 0, remaining=remaining + 1)
    return members_of(bitmask[0])


def matcher_after(compiled: constrain.CompiledSpec, token_ids: list[int]) -> constrain.Matcher:
    """Return a matcher that accepted ``token_ids``."""
    matcher = compiled.matcher()
    for token_id in token_ids:
        assert matcher.accept_token(token_id), f"{token_id} of {token_ids} refused"
    return matcher


def random_walk(
    compiled: constrain.CompiledSpec,
    size: int,
    eos_token_ids: tuple[int, ...],
    rng: random.Random,
    n_steps: int,
    prefer: Callable[[int], bool] = lambda token_id: False,
) -> Iterator[tuple[constrain.Matcher, list[int]]]:
    """Yield the matcher and its tokens before each of up to ``n_steps`` random steps; it moves on.

    Every other step takes a token that ``prefer`` likes, where one is allowed.
    """
    matcher, token_ids = compiled.matcher(), list[int]()
    for _ in range(n_steps):
        yield matcher, token_ids
        choices = sorted(allowed(matcher, size) - set(eos_token_ids))
        liked = [t for t in choices if prefer(t)] if rng.random() < 0.5 else []
        if not choices:
            assert matcher.is_accepting(), f"dead end after {token_ids}"
            return
        token_ids.append(rng.choice(liked or choices))
        assert matcher.accept_token(token_ids[-1])


# ------------------------------------------------------------------------------------ grammars


def _literal(text: str) -> ir.Terminal:
    return ir.Terminal(ir.Literal(text.encode()), repr(text))


def expression_grammar(*, greedy: bool = True) -> ir.Grammar:
    """Return sums and products of names, numbers and brackets, with blanks and comments between.

    Without ``greedy`` a name may end anywhere, so that ``ifif`` is read in many ways.
    """
    blank = ir.Repeat(ir.ByteClass(((0x20, 0x20), (0x0A, 0x0A))), 1, None)
    inside = ir.CharacterClass(((0x20, 0x22), (0x24, 0x7E), (0xA0, 0xD7FF)))
    comment = ir.Concatenation((ir.Literal(b"#"), ir.Repeat(inside, 0, None), ir.Literal(b"#")))
    name_pattern = ir.Concatenation((LETTERS, ir.Repeat(ir.Alternation((LETTERS, DIGITS)), 0, None)))
    terminals = (
        *map(_literal, "+*(),"),
        ir.Terminal(name_pattern, "name", greedy=greedy),
        ir.Terminal(ir.Repeat(DIGITS, 1, None), "number", greedy=greedy),
        ir.Terminal(ir.Literal(b"if"), "if", priority=1),
        ir.Terminal(blank, "blank", greedy=greedy),
        ir.Terminal(comment, "comment"),
    )
    plus, times, opening, closing, comma, name, number, keyword = map(ir.TerminalReference, range(8))
    total, product, atom = map(ir.RuleReference, ("sum", "product", "atom"))
    rules = {
        "sum": ir.Choice((product, ir.Sequence((total, plus, product)))),
        "product": ir.Choice((atom, ir.Sequence((product, times, atom)))),
        "atom": ir.Choice(
            (
                number,
                ir.Sequence((name, ir.Repetition(ir.RuleReference("arguments"), 0, 1))),
                ir.Sequence((opening, total, closing)),
                ir.Sequence((keyword, atom)),
            )
        ),
        "arguments": ir.Sequence(
            (opening, ir.Repetition(ir.Sequence((total, ir.Repetition(comma, 0, 1))), 0, None), closing)
        ),
    }
    return ir.Grammar(terminals, rules, "sum", ir.Ignored((8, 9), True, True, None))


def list_grammar() -> ir.Grammar:
    """Return nested lists of words and short strings, no blanks."""
    text = ir.Concatenation(
        (
            ir.Literal(b'"'),
            ir.Repeat(ir.CharacterClass(((0x20, 0x21), (0x23, 0xD7FF))), 0, 5),
            ir.Literal(b'"'),
        )
    )
    words = ir.Intersection((ir.Repeat(LETTERS, 1, 6), ir.Complement(ir.Literal(b"null"))))
    terminals = (*map(_literal, "[],"), ir.Terminal(words, "word"), ir.Terminal(text, "text"))
    opening, closing, comma, word, string = map(ir.TerminalReference, range(5))
    value = ir.RuleReference("value")
    items = ir.Sequence((value, ir.Repetition(ir.Sequence((comma, value)), 0, None)))
    rules = {"value": ir.Choice((word, string, ir.Sequence((opening, ir.Repetition(items, 0, 1), closing))))}
    return ir.Grammar(terminals, rules, "value")
