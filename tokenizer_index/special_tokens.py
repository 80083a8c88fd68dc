"""Special tokens as byte strings that no text can hold.

Everything below the front ends works on bytes, so a special token is given a *virtual spelling*: its name, or
its id in digits, three bits a byte, between two marks, all of it from bytes that never occur in UTF-8 (RFC
3629: F5 to FF). An index made for a grammar spells the tokens the grammar names that way, each by one token
alone, and lacks every other token that holds such a byte (`trie.with_special_tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import (
    HOLE,
    Alternation,
    Complement,
    Concatenation,
    Intersection,
    Pattern,
    Repeat,
    SpecialToken,
)
from constrain.tokenizer_index.errors import VocabularyError

if TYPE_CHECKING:
    from constrain.tokenizer_index.vocabulary import Vocabulary

FIRST_BYTE = 0xF5
"""This byte and those above it never occur in UTF-8."""
BEGIN, END, BY_ID = 0xFF, 0xFE, 0xFD
MAX_NAME_BYTES = 1_000
_BYTES = re.compile(rb"[\xf5-\xff]")


def spelling(name: str | int) -> bytes:
    """Return the virtual spelling of a special token.

    Raises
    ------
    SpecError
        The name is empty, too long or no text, or the id is negative.
    """
    try:
        data = name.encode() if isinstance(name, str) else str(name).encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"Special token {name!r}: a name has no lone surrogates.") from error
    if not 0 < len(data) <= MAX_NAME_BYTES or (not isinstance(name, str) and name < 0):
        raise SpecError(
            f"Special token {name!r:.60}: expected a name of at most {MAX_NAME_BYTES:,} bytes, or an id."
        )
    digits = (FIRST_BYTE + (byte >> shift & 7) for byte in data for shift in (6, 3, 0))
    kind = () if isinstance(name, str) else (BY_ID,)
    return bytes((BEGIN, *kind, *digits, END))


def first_virtual_byte(data: bytes) -> int:
    """Return where ``data`` stops being text: at its first byte that never occurs in UTF-8, or -1."""
    found = _BYTES.search(data)
    return -1 if found is None else found.start()


def named_in(patterns: Iterable[Pattern]) -> tuple[str | int, ...]:
    """Return the special tokens that patterns name, each once, in no particular order."""
    found: dict[tuple[bool, str | int], None] = {}
    seen: set[int] = set()
    todo = list(patterns)
    while todo:
        node = todo.pop()
        if isinstance(node, SpecialToken):
            found[isinstance(node.name, str), node.name] = None
        elif id(node) in seen:
            continue
        elif isinstance(node, Concatenation | Alternation | Intersection):
            seen.add(id(node))
            todo += node.parts
        elif isinstance(node, Repeat):
            todo.append(node.body)
        elif isinstance(node, Complement):
            todo.append(node.part)
    return tuple(name for _, name in found)


def resolve(names: Iterable[str | int], vocabulary: Vocabulary) -> Mapping[bytes, int]:
    """Return the token id of each virtual spelling.

    Raises
    ------
    VocabularyError
        The vocabulary lacks one of the tokens, or two names are one token.
    """
    found: dict[bytes, int] = {}
    name_of: dict[int, str | int] = {}
    for name in names:
        if name == HOLE.name:
            continue
        if isinstance(name, str):
            known = vocabulary.special_tokens
            if name not in known:
                shown = ", ".join(map(repr, list(known)[:5])) + (", ..." if len(known) > 5 else "")
                raise VocabularyError(
                    f"the spec needs the special token {name!r}, which the vocabulary lacks; "
                    + (f"it has {shown}." if known else "it has none. Pass special_tokens={...}.")
                )
            token_id = known[name]
        else:
            token_id = name
            if token_id >= vocabulary.size:
                raise VocabularyError(
                    f"the spec needs token {name}; ids go from 0 to {vocabulary.size - 1:,}."
                )
        if token_id in name_of:
            raise VocabularyError(
                f"the spec names token {token_id} twice, as {name_of[token_id]!r} and as {name!r}: use one name."
            )
        name_of[token_id] = name
        found[spelling(name)] = token_id
    return found
