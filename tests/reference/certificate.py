"""Checks, by public calls alone, that a reached state can be finished.

`min_tokens_to_finish` is a *rank*: 0 exactly where the text may end, and from rank ``k > 0`` some
allowed token leads to a rank of at most ``k - 1``. A state for which this holds along one path has a
completion of at most ``k`` tokens, and the path is its proof. Nothing here trusts the engine: each
token of the path is accepted by a fork, and where it ends the end tokens are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import constrain


class CertificateError(AssertionError):
    """A rank is wrong: the message says which law fails and after which tokens."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A completion.

    Parameters
    ----------
    token_ids : tuple of int
        Tokens from the state to one that accepts.
    ranks : tuple of int
        The rank of the state and after each token; strictly falling, the last is 0.
    """

    token_ids: tuple[int, ...]
    ranks: tuple[int, ...]


def check_state(matcher: constrain.Matcher, size: int, eos_token_ids: Sequence[int]) -> Certificate:
    """Follow falling ranks from the state of ``matcher`` to acceptance; the matcher is not moved.

    Parameters
    ----------
    matcher : Matcher
        Not terminated.
    size : int
        Width of the logits.
    eos_token_ids : sequence of int

    Raises
    ------
    CertificateError
    """
    token_ids: list[int] = []
    ranks = [_rank(matcher, token_ids)]
    walker = matcher.fork()
    while ranks[-1] > 0:
        token_id = _falling_token(walker, ranks[-1], size, eos_token_ids)
        if token_id is None:
            raise CertificateError(f"no allowed token lowers rank {ranks[-1]} after {token_ids}")
        if not walker.accept_token(token_id):
            raise CertificateError(f"token {token_id} is allowed and refused after {token_ids}")
        token_ids.append(token_id)
        ranks.append(_rank(walker, token_ids))
    _check_end(walker, size, eos_token_ids, token_ids)
    if len(token_ids) > ranks[0]:
        raise CertificateError(f"{len(token_ids)} tokens from rank {ranks[0]}")
    if matcher.validate_tokens(token_ids) != len(token_ids):
        raise CertificateError(f"the path {token_ids} is not accepted a second time")
    return Certificate(tuple(token_ids), tuple(ranks))


def _rank(matcher: constrain.Matcher, token_ids: list[int]) -> int:
    rank = int(matcher.min_tokens_to_finish())
    if rank < 0:
        raise CertificateError(f"rank {rank} after {token_ids}")
    if (rank == 0) != matcher.is_accepting():
        raise CertificateError(f"rank {rank}, accepting: {matcher.is_accepting()}, after {token_ids}")
    return rank


def _falling_token(
    matcher: constrain.Matcher, rank: int, size: int, eos_token_ids: Sequence[int]
) -> int | None:
    """Return an allowed token after which the rank is lower.

    Masks with a budget say where to look first; what they say is not believed.
    """
    plain, hint = (constrain.allocate_token_bitmask(1, size) for _ in range(2))
    matcher.fill_next_token_bitmask(plain, 0)
    matcher.fill_budget_bitmask(hint, 0, remaining=rank + 1)
    ends = set(eos_token_ids)
    for row in (hint[0] & plain[0], plain[0] & ~hint[0]):
        bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")
        for token_id in map(int, np.flatnonzero(bits)):
            after = matcher.fork()
            if token_id in ends or not after.accept_token(token_id):
                continue
            if int(after.min_tokens_to_finish()) < rank:
                return token_id
    return None


def _check_end(
    matcher: constrain.Matcher, size: int, eos_token_ids: Sequence[int], token_ids: list[int]
) -> None:
    bitmask = constrain.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask, 0)
    for end in eos_token_ids:
        if not (int(bitmask[0, end >> 5]) >> (end & 31)) & 1:
            raise CertificateError(f"end token {end} is masked where the text may end, after {token_ids}")
        last = matcher.fork()
        if not (last.accept_token(end) and last.is_terminated()):
            raise CertificateError(f"end token {end} is refused where the text may end, after {token_ids}")


def check_walk(
    compiled: constrain.CompiledSpec, token_ids: Sequence[int], size: int, eos_token_ids: Sequence[int]
) -> list[Certificate]:
    """Check every state along ``token_ids``, and that no token lowers a rank by more than one exactly.

    Where both ranks are exact, one token cannot save more than itself.

    Raises
    ------
    CertificateError
    """
    matcher = compiled.matcher()
    certificates = [check_state(matcher, size, eos_token_ids)]
    for n, token_id in enumerate(token_ids):
        before = matcher.min_tokens_to_finish()
        if not matcher.accept_token(token_id):
            raise CertificateError(f"token {token_id} of {list(token_ids[: n + 1])} is refused")
        certificates.append(check_state(matcher, size, eos_token_ids))
        after = matcher.min_tokens_to_finish()
        if before.is_exact and int(after) < int(before) - 1:
            raise CertificateError(f"rank {int(before)} was not the least after {list(token_ids[:n])}")
    return certificates
