"""How texts are split into lexemes: greedy terminals, priorities, ignored text, and what follows from them."""

from __future__ import annotations

import random
from collections import deque
from itertools import islice

from hypothesis import event, given
from hypothesis import strategies as st

import constrain
from constrain.grammars import ir
from constrain.grammars.combine import union
from constrain.grammars.limits import Limits, Watch
from constrain.spec import Spec
from constrain.tokenizer_index.network import Network, build_network
from tests import strategies
from tests.laws.test_masks import check_all_states
from tests.reference import patterns
from tests.reference.grammar import DEAD, ReferenceGrammar
from tests.reference.lexings import Lexings
from tests.reference.vocabularies import TokenList, one_byte_per_token

ALPHABET = b'ab.1"; \n#~('


def _network(grammar: ir.Grammar) -> Network | None:
    try:
        return build_network(grammar, Watch(Limits()))
    except constrain.EmptyLanguageError:
        event("empty")
    except constrain.UnsupportedFeatureError:
        event("refused")
    return None


@strategies.fixed(60)
@given(strategies.lexical_grammars())
def test_sound_grammars_have_no_dead_ends(grammar: ir.Grammar) -> None:
    """Where the compiler finds a grammar sound, whatever can be read can be finished."""
    network = _network(grammar)
    if network is None or not network.is_sound or network.is_lexing_proven:
        return
    reference = ReferenceGrammar(grammar)
    queue, seen = deque([reference.start]), {reference.start}
    while queue and len(seen) < 40:
        state = queue.popleft()
        viable = reference.is_viable(state, at_most=400)
        event(f"viable: {viable}, blocked: {(network.blocked_row >= 0).any()}")
        if network.blocked_row.max() < 0:
            assert viable is not False
        for byte in ALPHABET:
            after = reference.step(state, byte)
            if after not in seen and after != DEAD:
                seen.add(after)
                queue.append(after)


@strategies.fixed(12)
@given(strategies.lexical_grammars(), strategies.vocabularies('ab.1"; \n#'))
def test_masks_of_lexical_grammars(grammar: ir.Grammar, tokens: TokenList) -> None:
    """E1: whether it is found sound, checked while decoding or has blocked ignored text, masks are exact."""
    network = _network(grammar)
    if network is not None:
        event(f"sound: {network.is_sound}, blocked: {bool((network.blocked_row >= 0).any())}")
        event(f"compared: {check_all_states(grammar, tokens, at_most=8) > 0}")


@strategies.fixed(12)
@given(strategies.lexical_grammars())
def test_masks_of_lexical_grammars_byte_by_byte(grammar: ir.Grammar) -> None:
    """E1 with one byte per token, further into the text."""
    network = _network(grammar)
    if network is not None:
        check_all_states(grammar, one_byte_per_token(), at_most=30)


@strategies.fixed(12)
@given(strategies.lexical_grammars(), st.data())
def test_texts_are_those_of_the_documented_rule(grammar: ir.Grammar, data: st.DataObject) -> None:
    """Of a few sentences the same short texts are read as by trying every way to cut a text."""
    symbols = [t for t in range(len(grammar.terminals)) if t not in grammar.ignored.terminals]
    sentence = st.lists(st.sampled_from(symbols), max_size=4).map(tuple)
    sentences = data.draw(st.lists(sentence, min_size=1, max_size=4, unique=True))
    body = ir.Choice(tuple(ir.Sequence(tuple(map(ir.TerminalReference, s))) for s in sentences))
    finite = ir.Grammar(grammar.terminals, {"start": body}, "start", grammar.ignored)
    lexings = Lexings(finite.terminals, sentences, finite.ignored)
    if _network(finite) is None:
        return
    spec = Spec.from_grammar(finite)
    texts = _texts(finite, data.draw(st.randoms(use_true_random=False)))
    members = {text for text in texts if lexings.accepts(text)}
    assert {text for text in texts if spec.matches(text)} == members
    event(f"has such texts: {bool(members - {b''})}")


@strategies.fixed(25)
@given(strategies.lexical_grammars(), strategies.lexical_grammars(), st.randoms(use_true_random=False))
def test_unions_have_the_texts_of_either(first: ir.Grammar, second: ir.Grammar, rng: random.Random) -> None:
    """Neither part of a union takes texts from the other, whatever their lexemes."""
    both = union(first, second)
    if any(_network(grammar) is None for grammar in (first, second, both)):
        return
    event(f"apart: {both.is_apart}")
    specs = [Spec.from_grammar(grammar) for grammar in (first, second)]
    either = Spec.from_grammar(both)
    for text in _texts(first, rng) | _texts(second, rng):
        assert either.matches(text) == any(spec.matches(text) for spec in specs), text


@strategies.fixed(10)
@given(strategies.lexical_grammars(), strategies.lexical_grammars(), strategies.vocabularies('ab.1"; \n#'))
def test_masks_of_unions(first: ir.Grammar, second: ir.Grammar, tokens: TokenList) -> None:
    """E1 where two grammars are read apart."""
    both = union(first, second)
    if both.is_apart and _network(both) is not None:
        event(f"compared: {check_all_states(both, tokens, at_most=8) > 0}")


def _texts(grammar: ir.Grammar, rng: random.Random) -> set[bytes]:
    """Return some texts of a few words of the terminals."""
    words = [
        word
        for terminal in grammar.terminals
        for word in islice(patterns.members(terminal.pattern, ALPHABET, 3), 8)
    ]
    return {b"".join(rng.choices(words, k=rng.randrange(7))) for _ in range(120)} if words else set()
