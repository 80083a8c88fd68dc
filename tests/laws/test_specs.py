"""The decoder's contract on specs of the usual kinds, with small vocabularies and a real one."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import constrain
from tests.laws.specs import SPECS, real_vocabulary, small_vocabulary
from tests.laws.walks import allowed, matcher_after, members_of, random_walk
from tests.reference.vocabularies import one_byte_per_token

VOCABULARIES = {
    "bytes": lambda: one_byte_per_token().build(),
    "small": lambda: small_vocabulary().build(),
    "real": real_vocabulary,
}
every_spec = pytest.mark.parametrize("name", SPECS)
every_vocabulary = pytest.mark.parametrize("vocabulary_name", VOCABULARIES)


def _sample(mask: set[int], size: int, rng: random.Random) -> list[int]:
    """Return up to 60 ids, half of them allowed."""
    inside = rng.sample(sorted(mask), min(30, len(mask)))
    return [*inside, *(rng.randrange(size) for _ in range(30))]


@every_vocabulary
@every_spec
def test_contract_along_walks(name: str, vocabulary_name: str) -> None:
    """I1, I2, I4, I5, E1 along random walks: mask, tokens and their bytes agree in every state."""
    vocabulary = VOCABULARIES[vocabulary_name]()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    tokens, ends = vocabulary.tokens, set(vocabulary.eos_token_ids)
    for seed in range(3):
        rng = random.Random(seed)
        for matcher, token_ids in random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, rng, 12):
            mask = allowed(matcher, vocabulary.size)
            assert mask and max(mask) < vocabulary.size
            assert mask & ends == (ends if matcher.is_accepting() else set())
            for token_id in _sample(mask, vocabulary.size, rng):
                fork = matcher.fork()
                assert fork.accept_token(token_id) == (token_id in mask), (token_ids, token_id)
                data = tokens[token_id] if token_id < len(tokens) else None
                if token_id not in ends:
                    spelled = matcher.fork().accept_string(data) if data else False
                    assert spelled == (token_id in mask), (token_ids, token_id, data)
                if token_id not in mask:
                    assert allowed(fork, vocabulary.size) == mask
            assert allowed(matcher, vocabulary.size) == mask


@every_vocabulary
@every_spec
def test_cut_does_not_matter(name: str, vocabulary_name: str) -> None:
    """I3: after a text, the mask is the same whatever tokens, bytes or strings it came in."""
    vocabulary = VOCABULARIES[vocabulary_name]()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    tokens = vocabulary.tokens
    singles = {data: i for i, data in enumerate(tokens) if data and len(data) == 1}
    for seed in range(2):
        rng = random.Random(seed)
        for matcher, token_ids in random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, rng, 8):
            text = b"".join(tokens[t] or b"" for t in token_ids)
            mask = allowed(matcher, vocabulary.size)
            by_bytes = matcher_after(compiled, [singles[bytes([b])] for b in text])
            by_string = compiled.matcher()
            assert by_string.accept_string(text)
            assert allowed(by_bytes, vocabulary.size) == allowed(by_string, vocabulary.size) == mask
            assert by_bytes.is_accepting() == by_string.is_accepting() == matcher.is_accepting()


@every_spec
def test_rollback_fork_and_reset(name: str) -> None:
    """E10: rollback then replay, a fork and a reset lead to the same masks; a fork goes its own way."""
    vocabulary = small_vocabulary().build()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    rng = random.Random(3)
    masks: list[set[int]] = []
    for matcher, token_ids in random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, rng, 10):
        masks.append(allowed(matcher, vocabulary.size))
        back = rng.randint(0, len(token_ids))
        fork = matcher.fork()
        fork.rollback(back)
        assert allowed(fork, vocabulary.size) == masks[len(token_ids) - back]
        for token_id in token_ids[len(token_ids) - back :]:
            assert fork.accept_token(token_id)
        assert allowed(fork, vocabulary.size) == masks[-1]
        fork.reset()
        assert allowed(fork, vocabulary.size) == masks[0]
        assert allowed(matcher, vocabulary.size) == masks[-1]


@every_spec
def test_end_tokens_end(name: str) -> None:
    """I5: an end token is accepted exactly where the text may end; nothing follows it; rollback undoes it."""
    vocabulary = small_vocabulary().build()
    compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
    end = vocabulary.eos_token_ids[0]
    rng = random.Random(5)
    for matcher, _ in random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, rng, 10):
        fork = matcher.fork()
        assert not fork.is_terminated()
        assert fork.accept_token(end) == matcher.is_accepting() == fork.is_terminated()
        if fork.is_terminated():
            before = allowed(matcher, vocabulary.size)
            assert not any(fork.accept_token(t) for t in before - set(vocabulary.eos_token_ids))
            fork.rollback(1)
            assert not fork.is_terminated()
            assert allowed(fork, vocabulary.size) == before


def test_ids_without_text_are_never_allowed() -> None:
    """I5: special ids, padding and end tokens are not matched through any spelling."""
    tokens = [b"a", None, b"</s>", b"a", *(bytes([b]) for b in range(256))]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos_token_ids=[2, 3], vocab_size=300)
    matcher = constrain.compile(constrain.regex("(?:a|</s>)*"), vocabulary, cache=False).matcher()
    spelled = {i for i, data in enumerate(tokens) if data in (b"a", b"<") and i not in (2, 3)}
    assert allowed(matcher, vocabulary.size) == spelled | {2, 3}
    assert not any(matcher.accept_token(t) for t in (1, 270, 299))


@pytest.mark.parametrize("token_id", [-1, 300, 1 << 40])
def test_foreign_ids_are_errors(token_id: int) -> None:
    """An id outside the logits is no token at all and is named in an error; nothing changes."""
    vocabulary = one_byte_per_token().build()
    matcher = constrain.compile(constrain.regex("ab"), vocabulary, cache=False).matcher()
    with pytest.raises(constrain.ConstrainError, match=str(token_id)):
        matcher.accept_token(token_id)
    assert allowed(matcher, vocabulary.size) == {ord("a")}


@every_spec
def test_masks_do_not_depend_on_history(name: str) -> None:
    """E2: a fresh compilation and one that has seen other texts give equal masks, in any order."""
    vocabulary = small_vocabulary().build()
    warm = constrain.compile(SPECS[name](), vocabulary, cache=False)
    walks = []
    for seed in range(4):
        steps = random_walk(warm, vocabulary.size, vocabulary.eos_token_ids, random.Random(seed), 8)
        walks += [(list(ids), allowed(matcher, vocabulary.size)) for matcher, ids in steps]
    fresh = constrain.compile(SPECS[name](), vocabulary, cache=False)
    for token_ids, mask in reversed(walks):
        assert allowed(matcher_after(fresh, token_ids), vocabulary.size) == mask
        assert allowed(matcher_after(warm, token_ids), vocabulary.size) == mask


@pytest.mark.parametrize("name", ["email", "record", "tree", "expressions"])
def test_threads_get_equal_masks(name: str) -> None:
    """E2: threads that walk one compiled spec at once get the masks that one thread alone gets."""
    vocabulary = small_vocabulary().build()

    def walk(compiled: constrain.CompiledSpec, seed: int) -> list[set[int]]:
        rng = random.Random(seed)
        steps = random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, rng, 25)
        return [allowed(matcher, vocabulary.size) for matcher, _ in steps]

    alone = constrain.compile(SPECS[name](), vocabulary, cache=False)
    expected = [walk(alone, seed) for seed in range(4)]
    shared = constrain.compile(SPECS[name](), vocabulary, cache=False)
    found: dict[int, list[set[int]]] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.__setitem__(seed, walk(shared, seed)))
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == expected


def test_a_batch_is_its_rows() -> None:
    """One call for many matchers, of several specs and one of them twice, fills each row as its own call."""
    vocabulary = small_vocabulary().build()
    matchers = []
    for name in SPECS:
        compiled = constrain.compile(SPECS[name](), vocabulary, cache=False)
        steps = list(random_walk(compiled, vocabulary.size, vocabulary.eos_token_ids, random.Random(2), 4))
        matchers += [steps[-1][0], compiled.matcher()]
    bitmask = constrain.allocate_token_bitmask(len(matchers), vocabulary.size)
    constrain.fill_next_token_bitmasks(matchers, bitmask)
    for matcher, row in zip(matchers, bitmask, strict=True):
        assert members_of(row) == allowed(matcher, vocabulary.size)


@pytest.mark.parametrize("limit", [1, 2, 7, 40])
def test_string_layers(limit: int) -> None:
    """E6: a string with ``k`` characters left takes exactly the plain tokens of at most ``k`` characters."""
    vocabulary = real_vocabulary()
    schema = {"type": "string", "maxLength": limit}
    compiled = constrain.compile(constrain.json_schema(schema, whitespace="compact"), vocabulary, cache=False)
    length: dict[int, int] = {}
    for token_id, data in enumerate(vocabulary.tokens):
        text = (data or b"").decode(errors="replace")
        if text and "\ufffd" not in text and all(c >= " " and c not in '"\\\x7f' for c in text):
            length[token_id] = len(text)
    matcher = compiled.matcher()
    assert matcher.accept_string('"')
    for used in range(min(limit, 3) + 1):
        mask = allowed(matcher, vocabulary.size)
        expected = {token_id for token_id, n in length.items() if n <= limit - used}
        assert mask & length.keys() == expected
        matcher.accept_string("é")


def test_masks_of_many_states_have_no_stray_bits() -> None:
    """Bits past the width of the logits are 0, whatever the row held before."""
    tokens = small_vocabulary()
    compiled = constrain.compile(SPECS["tree"](), tokens.build(), cache=False)
    bitmask = np.full((1, constrain.allocate_token_bitmask(1, tokens.size).shape[1]), -1, np.int32)
    compiled.matcher().fill_next_token_bitmask(bitmask, 0)
    assert max(members_of(bitmask[0])) < tokens.size
