"""Matchers and masks at their edges: what callers get wrong, and what must not move under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain

VOCABULARY = constrain.Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_token_ids=256)


def matcher_of(pattern: str) -> constrain.Matcher:
    return constrain.compile(constrain.regex(pattern), VOCABULARY, cache=False).matcher()


def test_a_tensor_that_moved_is_filled_where_it_is() -> None:
    """A tensor whose memory moved gets its mask at the new place."""
    torch = pytest.importorskip("torch", reason="needs the extra 'hf'")
    matcher = matcher_of("a")
    bitmask = torch.zeros(1, 9, dtype=torch.int32)
    matcher.fill_next_token_bitmask(bitmask)
    expected = bitmask.tolist()
    bitmask.share_memory_()
    bitmask.zero_()
    matcher.fill_next_token_bitmask(bitmask)
    assert bitmask.tolist() == expected


def test_an_array_that_was_locked_is_refused() -> None:
    """A bitmask made read-only after its first use is not written."""
    matcher = matcher_of("a")
    bitmask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(bitmask)
    bitmask.flags.writeable = False
    with pytest.raises(constrain.VocabularyError, match="read-only"):
        matcher.fill_next_token_bitmask(bitmask)


def test_forced_text_inside_a_character_is_empty() -> None:
    """In the middle of a character no whole character is forced first."""
    matcher = matcher_of("(?:İß){2}")
    assert matcher.accept_token(0xC4)
    assert matcher.find_jump_forward_string() == ""
    assert matcher.accept_token(0xB0)
    assert matcher.find_jump_forward_string() == "ßİß"


@pytest.mark.parametrize("bad", [-1, 257, "x", 1.5, None])
def test_validating_leaves_the_state_also_when_it_raises(bad: Any) -> None:
    """An impossible token raises, and the tokens before it are taken back."""
    matcher = matcher_of("(ab|é)*c")
    with pytest.raises(constrain.VocabularyError):
        matcher.validate_tokens([97, 98, bad])
    assert matcher.n_accepted == 0
    assert matcher.validate_tokens([97, 98, 98]) == 2


def test_nothing_goes_on_after_an_end_token() -> None:
    """After an end token nothing is allowed, and rolling it back opens the output again."""
    matcher = matcher_of("a*")
    bitmask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    assert matcher.accept_token(256) and matcher.is_terminated()
    matcher.fill_next_token_bitmask(bitmask)
    assert not bitmask.any() and not matcher.is_accepting() and not matcher.accept_token(97)
    with pytest.raises(constrain.VocabularyError):
        matcher.accept_token(-5)
    matcher.rollback(1)
    assert matcher.is_accepting() and matcher.accept_token(97)


@pytest.mark.parametrize(
    "bitmask",
    [
        np.zeros((1, 8), np.int32),
        np.zeros((1, 9), np.int64),
        np.zeros(9, np.int32),
        np.zeros((1, 18), np.int32)[:, ::2],
        np.zeros((0, 9), np.int32),
        [[0] * 9],
    ],
    ids=["width", "dtype", "rank", "strides", "rows", "list"],
)
def test_a_wrong_bitmask_is_refused(bitmask: Any) -> None:
    """A bitmask of another shape, type or layout is refused by name."""
    with pytest.raises(constrain.VocabularyError):
        matcher_of("a").fill_next_token_bitmask(bitmask)


def test_wrong_kinds_of_arguments_are_named() -> None:
    """What is no spec, vocabulary, text or number is refused with a clear error."""
    for wrong in ("a", None, {"type": "null"}):
        with pytest.raises(constrain.SpecError, match="expected a Spec"):
            constrain.compile(wrong, VOCABULARY)  # type: ignore[arg-type]
    with pytest.raises(constrain.VocabularyError, match="expected a Vocabulary"):
        constrain.compile(constrain.regex("a"), None)  # type: ignore[arg-type]
    with pytest.raises(constrain.SpecError, match="expected text"):
        matcher_of("a").accept_string(5)  # type: ignore[arg-type]
    with pytest.raises(constrain.VocabularyError):
        matcher_of("a").rollback(None)  # type: ignore[arg-type]
    assert matcher_of("ab").accept_string(bytearray(b"a"))


@pytest.mark.parametrize("name", ["positions", "states", "lexer_states", "arena_bytes"])
def test_small_limits_are_reported(name: str) -> None:
    """A limit given to compile counts, is reported by name, and leaves nothing behind."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]{2,40}$"}}}
    spec = constrain.json_schema(schema)
    bitmask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    with pytest.raises(constrain.LimitExceededError, match=name):
        matcher = constrain.compile(
            spec, VOCABULARY, cache=False, limits=constrain.Limits(**{name: 2})
        ).matcher()
        for byte in b'{"a": "abc", "b": [1]}':
            matcher.fill_next_token_bitmask(bitmask)
            assert matcher.accept_token(byte)
    assert constrain.compile(spec, VOCABULARY, cache=False).matcher().accept_string('{"a": "abc"}')


def test_a_full_arena_is_renewed() -> None:
    """Outputs longer than an arena's limit of states go on in a new one, with equal masks."""
    spec = constrain.regex("[a-z]{3,60}[0-9]{2,60}")
    small = constrain.compile(
        spec, VOCABULARY, cache=False, limits=constrain.Limits(lexer_states=90)
    ).matcher()
    large = constrain.compile(spec, VOCABULARY, cache=False).matcher()
    bitmask = constrain.allocate_token_bitmask(2, VOCABULARY.size)
    for byte in b"q" * 30 + b"5" * 30:
        small.fill_next_token_bitmask(bitmask, 0)
        large.fill_next_token_bitmask(bitmask, 1)
        assert (bitmask[0] == bitmask[1]).all()
        assert small.accept_token(byte) and large.accept_token(byte)
    other = small.compiled.matcher()
    assert other.accept_string("abc12") and small.is_accepting()
