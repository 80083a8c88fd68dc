"""``%regex {...}``: parts of a given text.

The keys and their meaning are llguidance's: ``substring_chunks`` (a list of texts; any run of neighbouring ones),
``substring_words`` and ``substring_chars`` (a text, cut into words, blanks and marks, or into characters).
"""

from __future__ import annotations

import re
from typing import Any

from constrain.grammars.ir import Automaton, Pattern
from constrain.grammars.lark_syntax.tree import Module
from constrain.grammars.regex.utf8 import byte_automaton

_WORDS = re.compile(r"\w+|\s|[^\w\s]")
_FORMS = ("substring_chunks", "substring_words", "substring_chars")


def substring(value: Any, module: Module, offset: int) -> Pattern:
    """Return the pattern of ``value``, the object after ``%regex`` at ``offset``.

    Raises
    ------
    SpecError
        It has none of the known keys, or a value of another kind.
    """
    known = [key for key in value if key in _FORMS]
    if len(value) != 1 or len(known) != 1:
        raise module.error(
            f"%regex needs an object with one key, which is one of {', '.join(_FORMS)}.", offset
        )
    form, given = known[0], value[known[0]]
    if form == "substring_chunks":
        if not isinstance(given, list) or not all(isinstance(chunk, str) for chunk in given):
            raise module.error("'substring_chunks' needs a list of strings.", offset)
        chunks = given
    else:
        if not isinstance(given, str):
            raise module.error(f"{form!r} needs a string.", offset)
        chunks = _WORDS.findall(given) if form == "substring_words" else list(given)
    return _runs([chunk for chunk in chunks if chunk])


def _runs(chunks: list[str]) -> Pattern:
    """Return the texts of runs of neighbouring ``chunks``, the empty one among them."""
    # State 0 may begin any chunk; a state between two chunks accepts and begins the second.
    edges: list[tuple[int, tuple[tuple[int, int], ...], int]] = []
    accepting = {0}
    n_states = 1
    between = -1
    for chunk in chunks:
        inner = list(range(n_states, n_states + len(chunk)))
        n_states += len(chunk)
        for source in (0, between):
            if source >= 0:
                edges.append((source, ((ord(chunk[0]),) * 2,), inner[0]))
        for character, source, target in zip(chunk[1:], inner, inner[1:], strict=False):
            edges.append((source, ((ord(character),) * 2,), target))
        between = inner[-1]
        accepting.add(between)
    found: Automaton = byte_automaton(n_states, 0, frozenset(accepting), edges)
    return found
