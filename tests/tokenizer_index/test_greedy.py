"""Which terminals may be greedy for free: the work that takes."""

from __future__ import annotations

import pytest

from constrain.errors import LimitExceededError
from constrain.grammars.limits import Limits, Watch
from constrain.tokenizer_index.greedy import provably_greedy
from constrain.tokenizer_index.transition_network import Rules


def test_pairs_of_terminals_are_counted_as_work() -> None:
    """Many terminals that begin alike are pairs beyond number: looking at them ends at the limit on time."""
    n = 1000
    rules = Rules(
        [0, 0, 0],
        [],
        [],
        [0, 0, 0],
        [],
        [],
        [False, True],
        [0, 0],
        [0],
        ["start"],
        False,
        [],
        [],
        [],
        [-1, -1],
    )
    watch = Watch(Limits(), seconds=0.0)
    with pytest.raises(LimitExceededError, match="greedy terminals"):
        provably_greedy(rules, [1] * n, [1] * n, [1] * n, [], None, watch)
