"""Free text around words: up to the first of them, or without any.

A text is cut at the first place where a word is complete. What stands before may end in the beginning of
a word: ``<<tool>`` is ``<`` before ``<tool>``. Both languages are read off the automaton of all words
(A. Aho and M. Corasick, "Efficient string matching", CACM 18(6), 1975), over characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from constrain.grammars.ir import ANY_TEXT, Automaton, Pattern, Ranges
from constrain.grammars.regex.ranges import complement, normalize
from constrain.grammars.regex.utf8 import byte_automaton


@lru_cache(maxsize=256)
def up_to(words: tuple[str, ...]) -> tuple[Automaton, ...]:
    """Return for each word the texts that end with it and in which no word is complete before.

    Parameters
    ----------
    words : tuple of str
        Not empty, none of them empty. A word in which another one is complete earlier ends no text.
    """
    machine = _Machine(words)
    found = []
    for word in words:
        ends = frozenset(node for node in machine.ends if machine.text[node].endswith(word))
        found.append(machine.automaton(ends, ends))
    return tuple(found)


@lru_cache(maxsize=256)
def without(words: tuple[str, ...]) -> Pattern:
    """Return the texts in which no word is complete, the empty one among them."""
    if not words:
        return ANY_TEXT
    machine = _Machine(words)
    inner = frozenset(range(len(machine.text))) - machine.ends
    return machine.automaton(inner, frozenset())


class _Machine:
    """The automaton of words; a node stands for the longest beginning of a word that the text ends with.

    Attributes
    ----------
    text : list of str
        Of each node; node 0 is the root.
    ends : frozenset of int
        Nodes at which a word is complete. Nothing goes on from there.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.text = [""]
        nodes: list[dict[str, int]] = [{}]
        complete = set()
        for word in words:
            at = 0
            for i, character in enumerate(word):
                if character not in nodes[at]:
                    nodes[at][character] = len(nodes)
                    nodes.append({})
                    self.text.append(word[: i + 1])
                at = nodes[at][character]
            complete.add(at)
        back = [0] * len(nodes)
        step: list[dict[str, int]] = [{} for _ in nodes]
        order = [0]
        for at in order:  # grows while it is read
            # Steps that lead elsewhere than to the root.
            step[at] = {**(step[back[at]] if at else {}), **nodes[at]}
            for character, child in nodes[at].items():
                back[child] = step[back[at]].get(character, 0) if at else 0
                if back[child] in complete:
                    complete.add(child)
                order.append(child)
        self._step = step
        self.ends = frozenset(complete)

    def automaton(self, accepting: frozenset[int], targets: frozenset[int]) -> Automaton:
        """Return the texts that lead to ``accepting`` and to no end before; ``targets``: ends in use."""
        edges: list[tuple[int, Ranges, int]] = []
        for at, step in enumerate(self._step):
            if at in self.ends:
                continue
            to: dict[int, list[tuple[int, int]]] = {}
            for character, target in step.items():
                to.setdefault(target, []).append((ord(character), ord(character)))
            edges += [
                (at, normalize(pairs), target)
                for target, pairs in to.items()
                if target in targets or target not in self.ends
            ]
            edges.append((at, complement(normalize(pair for pairs in to.values() for pair in pairs)), 0))
        return byte_automaton(len(self.text), 0, accepting, edges)
