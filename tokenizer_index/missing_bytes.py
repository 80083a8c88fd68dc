"""Outputs that can be finished with the tokens there are.

Masks are made byte by byte: a token is allowed if some text goes on after it. If every byte that text may
need is a token by itself, some sequence of tokens goes on as well. Else, or where a greedy terminal or one of
higher priority may cut off every way to go on, a state counts only if its *cost* is finite, that is, if
some sequence of tokens is known to finish (``costs``). That is decided exactly where the parser has finitely many
states; for recursive rules without all bytes it must be proven beforehand, or the spec is refused.

A byte that is in no token at all is in no output, so it is left out of the byte automaton beforehand
(`bytes_to_leave_out`, ``unwritten``), and what is left needs it nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from constrain.grammars.errors import EmptyLanguageError, LimitExceededError, UnsupportedFeatureError
from constrain.grammars.ir import Grammar
from constrain.grammars.limits import Watch
from constrain.tokenizer_index import layout as k
from constrain.tokenizer_index import necessary
from constrain.tokenizer_index.arena import Arena, ArenaFull
from constrain.tokenizer_index.costs import INFINITE, Costs
from constrain.tokenizer_index.errors import VocabularyError
from constrain.tokenizer_index.network import Network, build_network, fused
from constrain.tokenizer_index.special_tokens import FIRST_BYTE
from constrain.tokenizer_index.unwritten import StillReadError
from constrain.tokenizer_index.vocabulary import Vocabulary

_MOST_STATES = 5_000


def _needed_bytes(network: Network) -> frozenset[int]:
    """Return the bytes on edges of the byte automaton."""
    change = np.zeros(257, np.int64)
    np.add.at(change, network.edge_low, 1)
    np.add.at(change, network.edge_high + 1, -1)
    needed = np.flatnonzero(np.cumsum(change[:256]))
    if network.special_tokens:
        # A special token is always spelled by one token.
        needed = needed[needed < FIRST_BYTE]
    return frozenset(needed.tolist())


def lacking_bytes(network: Network, vocabulary: Vocabulary) -> bytes:
    """Return the bytes that texts of the spec may need and that are no tokens by themselves.

    Not those that no edge tells from a byte that is a token: it stands for them in any text.
    """
    if vocabulary.has_all_bytes:
        return b""
    lacking = _needed_bytes(network).intersection(vocabulary.missing_bytes)
    # Bytes of one number are on the same edges.
    border = np.zeros(257, np.int64)
    border[network.edge_low] = border[network.edge_high + 1] = 1
    number = np.cumsum(border)[:256]
    written = np.delete(number, np.frombuffer(vocabulary.missing_bytes, np.uint8))
    return bytes(sorted(b for b in lacking if number[b] not in written))


def bytes_to_leave_out(network: Network, vocabulary: Vocabulary) -> bytes:
    """Return the bytes that texts of the spec may hold and no token does, if nothing stands for some of them."""
    lacking = lacking_bytes(network, vocabulary)
    absent = vocabulary.absent_bytes if lacking else b""
    return bytes(sorted(_needed_bytes(network).intersection(absent))) if set(lacking) & set(absent) else b""


def network_without(grammar: Grammar, lost: bytes, watch: Watch) -> Network | None:
    """Return the network of the texts that don't hold some bytes; None where it isn't certain how they are read.

    Raises
    ------
    EmptyLanguageError
        No text is left.
    VocabularyError
        Without these bytes texts that were begun may not be finished, as lexemes fuse or hide one another.
    LimitExceededError
        More positions, states or seconds than the limits allow.
    """
    try:
        return build_network(grammar, watch, lost)
    except StillReadError:
        return None
    except EmptyLanguageError as error:
        raise nothing_left(lost) from error
    except UnsupportedFeatureError as error:
        raise VocabularyError(
            f"The vocabulary has no token for {_listed(lost)}, and without: {error}"
        ) from error


def nothing_left(lost: bytes) -> EmptyLanguageError:
    """Return the error of a spec none of whose texts can be written without some bytes."""
    return EmptyLanguageError(
        f"No text that matches can be written: the vocabulary has no token for {_listed(lost)}, alone or with others."
    )


def bounds_hold(network: Network, vocabulary: Vocabulary) -> bool:
    """Can bounds that count tokens lexeme by lexeme be kept? (``costs``)

    Also where bytes are missing, if there is but one lexeme: its own cost is exact about what is possible.
    """
    if _is_one_lexeme(network):
        return True
    # What a newline needs depends on the blocks around it.
    return network.is_lexing_proven and network.lines is None and not lacking_bytes(network, vocabulary)


def _is_one_lexeme(network: Network) -> bool:
    """Does nothing ever follow a lexeme?"""
    if len(network.ignored_terminals):
        return False
    has_edges = (np.diff(network.terminal_offsets) > 0) | (np.diff(network.rule_offsets) > 0)
    return not (has_edges[network.terminal_target].any() or has_edges[network.rule_target].any())


def _is_recursive(network: Network) -> bool:
    """Does a rule contain itself, by any way?"""
    callees: list[set[int]] = [set() for _ in range(network.n_rules)]
    callers: list[set[int]] = [set() for _ in range(network.n_rules)]
    sources = np.repeat(network.rule_of, np.diff(network.rule_offsets))
    for rule, called in zip(sources.tolist(), network.rule_symbol.tolist(), strict=True):
        callees[rule].add(called)
        callers[called].add(rule)
    # Rules that call no others are removed until none is left, or only cycles and what leads to them.
    left = [len(called) for called in callees]
    ready = [rule for rule, n in enumerate(left) if n == 0]
    n_removed = 0
    while ready:
        rule = ready.pop()
        n_removed += 1
        for caller in callers[rule]:
            left[caller] -= 1
            if left[caller] == 0:
                ready.append(caller)
    return n_removed < network.n_rules


def needs_check(arena: Arena, vocabulary: Vocabulary, costs_of: Callable[[Arena], Costs]) -> bool:
    """Must tokens be struck from masks because nothing finishes after them?

    Then costs say which: `Costs.is_alive`, `Costs.clear_dead`.

    Parameters
    ----------
    arena : Arena
        A new one.
    vocabulary : Vocabulary
    costs_of : callable
        Makes the costs of an arena; called only where something must be checked.

    Raises
    ------
    VocabularyError
        Bytes are missing, the rules are recursive, and it could not be proven that this doesn't matter.
    EmptyLanguageError
        No text of the spec can be written with these tokens.
    UnsupportedFeatureError
        Lexemes fuse or hide one another, and no text was found that doesn't suffer from it.
    LimitExceededError
        Deciding that took too long.
    """
    network = arena.network
    lacking = lacking_bytes(network, vocabulary)
    if not lacking and (network.is_sound or _is_one_lexeme(network)):
        return False
    costs = costs_of(arena)
    if lacking and (network.lines is not None or _is_recursive(network)):
        if network.lines is None and network.is_lexing_proven and _always_finishes(costs):
            return False
        raise VocabularyError(
            f"The vocabulary has no token for {_listed(lacking)} alone, and the spec is recursive: it cannot "
            f"be proven that each output can be finished. Use a vocabulary with all bytes, or a spec "
            f"without recursion."
        )
    try:
        is_alive = costs.is_alive(arena.start)
    except LimitExceededError as error:
        if lacking or error.limit != "liveness" or network.unsound is None:
            raise
        t, u = network.unsound
        names = network.terminal_names
        raise fused(names[t], names[u], network.terminal_pointers[t]) from error
    if not is_alive:
        if lacking:
            raise EmptyLanguageError(
                f"No text that matches can be written: the vocabulary has no token for {_listed(lacking)} alone."
            )
        if network.unsound is not None:
            t, u = network.unsound
            raise EmptyLanguageError(
                f"No text matches: {network.terminal_names[t]!r} is read as far as it goes, so that what must follow "
                f"({network.terminal_names[u]!r}) is never read."
            )
        raise EmptyLanguageError("No text matches: no sequence of lexemes ends where the rules need it.")
    return True


def _listed(data: bytes) -> str:
    """Name some bytes."""
    shown = ", ".join(f"0x{b:02x}" + (f" ({chr(b)!r})" if 0x20 < b < 0x7F else "") for b in data[:8])
    return f"{'byte' if len(data) == 1 else 'bytes'} {shown}{', ...' if len(data) > 8 else ''}"


def _always_finishes(costs: Costs) -> bool:
    """Can every lexeme be finished by tokens, wherever tokens may end inside it?

    Then so can every text, lexeme by lexeme. Looks at all states of each terminal that are reached by tokens from
    its beginning, or from inside a token that begins before it; False also where these are too many.
    """
    arena = costs.arena
    necessary.add_inner_nodes(costs)
    arena.write(k.MAY_END, np.ones(256, np.int32))
    network = arena.network
    used = {*network.terminal_symbol.tolist(), *network.ignored_terminals.tolist()}
    seen: set[int] = set()
    queue: deque[int] = deque()

    def add(states: list[int]) -> None:
        for state in states:
            if state not in seen:
                seen.add(state)
                queue.append(state)

    try:
        for t in used:
            start, _ = costs.run(k.OP_START_STATE, t)
            if start >= 0:
                add([start])
                _, rows = costs.run(k.OP_INNER_STATES, t, table=k.BUF_WALK, width=2)
                add((rows[:, 0] >> 1).tolist())
        while queue:
            state = queue.popleft()
            if len(seen) > _MOST_STATES or costs.run(k.OP_STATE_VALUE, state, 0)[0] >= INFINITE:
                return False
            _, rows = costs.run(k.OP_WALK_LEXER, state, table=k.BUF_WALK, width=2)
            add(rows[:, 0].tolist())
    except ArenaFull:
        return False
    return True
