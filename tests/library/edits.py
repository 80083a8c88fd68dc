"""Small random changes of texts, to compare a grammar with another parser where texts are nearly right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def edited(texts: Sequence[str], rng: Random, n: int) -> Iterator[str]:
    """Yield ``n`` texts, each with one token deleted, repeated, replaced, inserted or exchanged with the next.

    New tokens are taken from all the texts.
    """
    split = [tokens for text in texts if (tokens := _TOKEN.findall(text))]
    known = sorted({token for tokens in split for token in tokens})
    for _ in range(n):
        tokens = list(rng.choice(split))
        at = rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                tokens[at] = rng.choice(known)
            case 3:
                tokens.insert(at, rng.choice(known))
            case 4:
                tokens[at : at + 2] = reversed(tokens[at : at + 2])
        yield "".join(tokens)
