"""What a search has tried: a tree of token sequences, from which the next place to go on is drawn.

With a temperature above 0, places are drawn so that whole outputs come as by sampling without replacement: what is
known to fail is left out, everything else keeps its proportions. At temperature 0 the next place is where the
least probability is lost against the most probable choice.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np

from constrain.numerics import Candidates, draw_place

# Of a place that isn't used up, at least this is left, whatever round-off says.
_LEAST = 1e-12
# Alternatives of a place whose losses are remembered.
_MOST_LOSSES = 16


@dataclass(slots=True, eq=False)
class Node:
    """A place in the outputs tried: after some tokens.

    Parameters
    ----------
    parent : Node or None
    token_id : int
        The last token.
    share : float
        Its probability among the tokens that the place before it allows.
    log_probability, feasible : float
        Of the last token, as in `Row` and `Stats`.
    loss : float
        How much less probable the tokens are than the best ones at their places, as a logarithm.
    """

    parent: Node | None = None
    token_id: int = -1
    share: float = 1.0
    log_probability: float = 0.0
    feasible: float = 1.0
    loss: float = 0.0
    left: float = 1.0
    """Part of the outputs from here that isn't known to fail."""
    n_allowed: int | None = None
    """Tokens that the mask allows here; ``None`` before it was asked."""
    n_dead: int = 0
    children: dict[int, Node] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    def path(self) -> list[Node]:
        """The nodes from the first token to this one."""
        nodes = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


class SearchTree:
    """All places that one output's search has been to.

    Parameters
    ----------
    is_greedy : bool
        The temperature is 0.
    """

    def __init__(self, *, is_greedy: bool) -> None:
        self.root = Node()
        self._is_greedy = is_greedy
        self._numbers = itertools.count()
        self._open: list[tuple[float, int, Node]] = []

    @property
    def is_used_up(self) -> bool:
        """Whether every output is known to fail."""
        return not self.root.left

    def visit(self, node: Node, n_allowed: int, found: Candidates) -> None:
        """Note what the mask and the model say at a place, when it is first come to."""
        if node.n_allowed is not None:
            return
        node.n_allowed = n_allowed
        if self._is_greedy and len(found.scores):
            best = -np.sort(-found.scores)[:_MOST_LOSSES]
            node.losses = (best[0] - best).tolist()
            self._offer(node)

    def add(
        self, node: Node, token_id: int, share: float, *, log_probability: float = 0.0, feasible: float = 1.0
    ) -> Node:
        """Return the place after one more token."""
        loss = node.loss + (_next_loss(node) if self._is_greedy else 0.0)
        child = Node(node, token_id, share, log_probability, feasible, loss)
        node.children[token_id] = child
        return child

    def exhaust(self, node: Node) -> None:
        """Note that no other tokens than those tried may stand at a place."""
        node.n_allowed = len(node.children)
        if node.n_dead == node.n_allowed:
            self.close(node)

    def close(self, node: Node) -> None:
        """Note that nothing from a place on is wanted."""
        if not node.left:
            return
        node.left = 0.0
        node.children = {}
        parent = node.parent
        is_dead = True
        while parent is not None:
            parent.n_dead += is_dead
            is_dead = parent.n_dead == parent.n_allowed
            if is_dead:
                parent.left = 0.0
                parent.children = {}
            else:
                lost = sum(child.share * (1.0 - child.left) for child in parent.children.values())
                parent.left = max(1.0 - lost, _LEAST)
            parent = parent.parent

    def pick(self, rng: np.random.Generator) -> Node:
        """Return the place to go on from, with a token that wasn't tried there; not all may be used up."""
        if self._is_greedy:
            return self._nearest()
        node = self.root
        while True:
            children = [child for child in node.children.values() if child.left]
            masses = [child.share * child.left for child in children]
            if node.n_allowed is None or len(node.children) < node.n_allowed:
                masses.append(max(1.0 - sum(child.share for child in node.children.values()), _LEAST))
            place = draw_place(np.array(masses), rng.random())
            if place == len(children):
                return node
            node = children[place]

    def _nearest(self) -> Node:
        while True:
            _, _, node = heapq.heappop(self._open)
            if node.left and node.n_allowed is not None and len(node.children) < node.n_allowed:
                return node

    def offer(self, node: Node) -> None:
        """Keep a place in mind for later, where the search goes on from it for now."""
        if self._is_greedy:
            self._offer(node)

    def _offer(self, node: Node) -> None:
        if node.n_allowed is not None and node.n_allowed > 1:
            heapq.heappush(self._open, (node.loss + _next_loss(node, 1), next(self._numbers), node))


def _next_loss(node: Node, skip: int = 0) -> float:
    """The loss of the next choice at a place, or of one after it."""
    n = len(node.children) + skip
    if not node.losses:
        return float(n)
    last = len(node.losses) - 1
    return node.losses[min(n, last)] + max(n - last, 0)
