"""Tokens that follow without a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.numerics import allowed_token_ids
from constrain.text import encode_exactly, has_token_past
from constrain.tokenizer_index.mask import allocate_token_bitmask

if TYPE_CHECKING:
    from constrain.decoders.rows import Row
    from constrain.protocols import LogitsBackend


def forced_tokens(model: LogitsBackend, row: Row, jump_forward: str) -> list[int]:
    """Tokens that follow without a choice, end tokens left out.

    Parameters
    ----------
    jump_forward : {"token", "text", "off"}
        See `LocalOptions`.
    """
    forced: list[int] = []
    if jump_forward == "off":
        return forced
    for token_id in row.matcher.forced_tokens():
        if token_id in model.vocabulary.eos_token_ids:
            break
        forced.append(token_id)
    if jump_forward == "text" and not forced:
        forced = _forced_text(model, row)
    return forced


def _forced_text(model: LogitsBackend, row: Row) -> list[int]:
    """Tokens of the text that all members go on with, as the tokenizer writes it.

    Tokens at the end are given up while another allowed token begins with the text given up
    and reaches past it; and so is what doesn't fit the budget.
    """
    vocabulary = model.vocabulary
    text = row.matcher.find_jump_forward_string().encode()
    if not text:
        return []
    token_ids = encode_exactly(model, text)
    matcher = row.matcher.fork()
    mask = allocate_token_bitmask(1, vocabulary.size)
    good = 0
    for place, token_id in enumerate(token_ids):
        matcher.fill_budget_bitmask(mask, 0, remaining=row.remaining - place)
        allowed = allowed_token_ids(mask[0], vocabulary.size)
        rest = b"".join(vocabulary.token_bytes(token) or b"" for token in token_ids[place:])
        if token_id not in allowed or has_token_past(vocabulary, allowed, rest):
            break
        matcher.accept_token(token_id)
        good = place + 1
    return token_ids[:good]
