"""An adversary that spends a budget as badly as it may."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import constrain

Allowed = Callable[["constrain.Matcher", int], set[int]]


def spend(
    matcher: constrain.Matcher,
    budget: int,
    eos_token_ids: Sequence[int],
    allowed_within: Allowed,
    rng: random.Random,
    *,
    worst: float = 1.0,
    look_at: int = 40,
) -> list[int]:
    """Choose tokens until none but an end token is allowed; return them.

    Parameters
    ----------
    matcher : Matcher
        Moved along.
    budget : int
        Tokens before the end token.
    allowed_within : callable
        ``(matcher, remaining) -> set of ids``: the mask under a budget.
    worst : float
        Probability that a step takes the token after which the most tokens are still needed; the
        others are drawn at random. An end token is only taken where nothing else is allowed.
    look_at : int
        So many allowed tokens are compared for the worst.

    Raises
    ------
    AssertionError
        A dead end, a mask that grows with a smaller budget, or a budget overspent.
    """
    ends = set(eos_token_ids)
    spent: list[int] = []
    while True:
        remaining = budget - len(spent)
        mask = allowed_within(matcher, remaining)
        assert mask, f"dead end with {remaining} of {budget} tokens left"
        assert mask & ends == (ends if matcher.is_accepting() else set())
        choices = sorted(mask - ends)
        if not choices:
            return spent
        assert remaining > 0, f"{choices[:3]} allowed although the budget of {budget} is spent"
        if rng.random() < worst:
            few = choices if len(choices) <= look_at else rng.sample(choices, look_at)
            costs = [(_cost_after(matcher, token_id), token_id) for token_id in few]
            assert all(cost <= remaining - 1 for cost, _ in costs), "a token leads past the budget"
            token_id = max(costs)[1]
        else:
            token_id = rng.choice(choices)
        assert matcher.accept_token(token_id)
        spent.append(token_id)


def _cost_after(matcher: constrain.Matcher, token_id: int) -> int:
    after = matcher.fork()
    assert after.accept_token(token_id), f"token {token_id} is allowed and was refused"
    return int(after.min_tokens_to_finish())
