"""From text to tokens of one vocabulary: exact spellings, and healing at a token boundary.

A prefix that ends inside a word splits a token the model would have written whole (``{"na`` before
``me``). Healing takes back the last token of the prefix and asks the model for one token that begins
with its text: it may be that token again, or a longer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import OptionError

if TYPE_CHECKING:
    from constrain.numerics import IdArray
    from constrain.protocols import LogitsBackend
    from constrain.tokenizer_index.vocabulary import Vocabulary


def encode_exactly(model: LogitsBackend, text: bytes) -> list[int]:
    """Tokens whose bytes are ``text``, as the model's tokenizer would write it where that is possible.

    Tokenizers may add a blank, read the spelling of a special token as that token, or need valid
    UTF-8; the longest token that fits is then taken at each place.

    Raises
    ------
    OptionError
        A byte of ``text`` begins no token.
    """
    vocabulary = model.vocabulary
    try:
        token_ids = model.encode(text.decode("utf-8"), add_special_tokens=False)
    except UnicodeDecodeError:
        token_ids = []
    pieces = [vocabulary.token_bytes(token_id) for token_id in token_ids]
    if all(pieces) and b"".join(piece or b"" for piece in pieces) == text:
        return token_ids
    ids = {token: token_id for token_id, token in enumerate(vocabulary.tokens) if token}
    longest = max(map(len, ids), default=0)
    token_ids = []
    place = 0
    while place < len(text):
        ends = range(min(len(text), place + longest), place, -1)
        end = next((end for end in ends if text[place:end] in ids), None)
        if end is None:
            raise OptionError(f"No token of the vocabulary begins with {text[place : place + 4]!r}.")
        token_ids.append(ids[text[place:end]])
        place = end
    return token_ids


def tokens_beginning_with(vocabulary: Vocabulary, text: bytes) -> IdArray:
    """Ids of all tokens whose bytes begin with ``text``, in rising order."""
    offsets = vocabulary.token_offsets
    ids = np.flatnonzero(np.diff(offsets) >= max(len(text), 1))
    return _beginning_with(vocabulary, ids, text)


def has_token_past(vocabulary: Vocabulary, token_ids: IdArray, text: bytes) -> bool:
    """Whether one of ``token_ids`` begins with ``text`` and is longer."""
    lengths = np.diff(vocabulary.token_offsets)
    longer = token_ids[lengths[token_ids] > len(text)]
    return len(_beginning_with(vocabulary, longer, text)) > 0


def _beginning_with(vocabulary: Vocabulary, ids: IdArray, text: bytes) -> IdArray:
    for place, byte in enumerate(text):
        ids = ids[vocabulary.token_data[vocabulary.token_offsets[ids] + place] == byte]
    return ids
