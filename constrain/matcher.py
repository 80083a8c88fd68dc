"""A matcher follows one output through a compiled spec and says which tokens may come next.

A matcher is a list of states of its spec's arena, so rolling back drops items and forking copies a
list. Where an arena reaches its limit of memory, the spec starts another one, and each matcher moves
there by reading its own history again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from constrain.errors import LimitExceededError, SpecError, VocabularyError
from constrain.pickling import NotPicklableError
from constrain.tokenizer_index import native
from constrain.tokenizer_index.arena import Arena, ArenaFull
from constrain.tokenizer_index.budget import MinTokens
from constrain.tokenizer_index.rows import BitmaskRows
from constrain.tokenizer_index.special_tokens import first_virtual_byte

if TYPE_CHECKING:
    import torch

    from constrain.compiled import CompiledSpec

T = TypeVar("T")

# How much forced text one call looks for, in bytes.
_MOST_FORCED = 4096


class Matcher:
    """The state of one output under a compiled spec. Not for use by two threads at once.

    Make matchers with `CompiledSpec.matcher`. Token ids outside the vocabulary raise
    `VocabularyError`; a token or text that does not fit is *rejected*: the call returns False and the
    state stays as it was.
    """

    __slots__ = ("_arena", "_compiled", "_history", "_rows", "_state", "_states", "_terminated")

    def __init__(self, compiled: CompiledSpec) -> None:
        self._compiled = compiled
        self._arena: Arena = compiled.arena
        self._state: int = self._arena.start
        self._states: list[int] = []
        self._history: list[int | bytes] = []
        self._terminated = False
        self._rows: BitmaskRows | None = None

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotPicklableError(
            "A matcher cannot be pickled: its state belongs to this process.",
            hint="Send the spec and the token ids so far; compile it there, and accept them again.",
        )

    @property
    def compiled(self) -> CompiledSpec:
        """The compiled spec this matcher follows."""
        return self._compiled

    @property
    def n_accepted(self) -> int:
        """How many tokens and texts were accepted, the end token included; `rollback` counts in these."""
        return len(self._states)

    # ------------------------------------------------------------------------------------- masks

    def fill_next_token_bitmask(self, bitmask: NDArray[np.int32] | torch.Tensor, index: int = 0) -> None:
        """Write the mask of the next token into row ``index``.

        Parameters
        ----------
        bitmask : (batch, ceil(vocab_size / 32)) int32, row overwritten
            numpy or torch (CPU), as `allocate_token_bitmask` makes it. Bit ``t % 32`` of word
            ``t // 32`` is 1 where token ``t`` is allowed; end tokens exactly where the output may
            end. After an end token was accepted nothing is allowed.
        index : int
            Row.

        Raises
        ------
        VocabularyError
            ``bitmask`` has another shape, type or layout, or no such row.
        LimitExceededError
            The lazy work of this call passed a limit.
        """
        rows = self._rows
        if rows is None or not rows.is_current(bitmask):
            rows = self._rows = BitmaskRows.of(bitmask, self._compiled.n_words)
        address = rows.address(index)
        if self._terminated:
            rows.array[index] = 0
            return
        try:
            self._arena.fill_mask(self._state, address)
        except ArenaFull:
            self._retry(lambda: self._arena.fill_mask(self._state, address))
        if self._compiled.is_checked:
            self._retry(lambda: self._compiled.budget(self._arena).costs.clear_dead(self._state, address))

    def fill_budget_bitmask(
        self, bitmask: NDArray[np.int32] | torch.Tensor, index: int = 0, *, remaining: int
    ) -> bool:
        """Write the mask of the next token such that the output still fits ``remaining`` tokens.

        Bit ``t`` is set only if the plain mask sets it and, after ``t``, the output can be completed with
        at most ``remaining - 1`` more tokens, the end token included; and it is set wherever that many tokens are
        known to be enough. What is known is mostly the least number; where finding that would take a long search
        it is a number a little above. If ``remaining`` is at least
        ``min_tokens_to_finish() + 1`` then some token is allowed and the same holds in the next state with
        one token fewer: a budget never ends in a dead end (engine paper, section 4).

        Returns
        -------
        bool
            True where the budget took tokens away from the plain mask.
        """
        if self._arena.holes:
            self._write_out(everything=True)
        self.fill_next_token_bitmask(bitmask, index)
        if self._terminated:
            return False
        assert self._rows is not None
        address = self._rows.address(index)
        if remaining >= 1 and self._compiled.named_eos and self.is_accepting():
            return self._restrict_named_eos(address, index, remaining)
        if remaining < 1:
            row = self._rows.array[index]
            had_any = bool(row.any())
            row[:] = 0
            return had_any
        try:
            return self._compiled.budget(self._arena).restrict(self._state, address, remaining)
        except ArenaFull:
            return self._retry(
                lambda: self._compiled.budget(self._arena).restrict(self._state, address, remaining)
            )

    def _restrict_named_eos(self, address: int, index: int, remaining: int) -> bool:
        """Restrict a mask in which end tokens end the output, whatever else the spec takes them for."""
        assert self._rows is not None
        row = self._rows.array[index].view(np.uint32)
        before = row.copy()
        self._retry(lambda: self._compiled.budget(self._arena).restrict(self._state, address, remaining))
        for token in self._compiled.named_eos:
            row[token >> 5] |= np.uint32(1 << (token & 31))
        return bool((before & ~row).any())

    # -------------------------------------------------------------------------------------- moves

    def accept_token(self, token_id: int) -> bool:
        """Append a token if it is allowed. An end token is allowed where `is_accepting`."""
        token = _index("token_id", token_id)
        if not 0 <= token < self._compiled.vocab_size:
            raise VocabularyError(f"token id {token} is not between 0 and {self._compiled.vocab_size - 1}.")
        if self._terminated:
            return False
        if token in self._compiled.eos_token_ids and self.is_accepting():
            state = self._state
            self._terminated = True
        else:
            try:
                state = self._arena.advance(self._state, token)
                if self._compiled.is_checked:
                    state = self._alive(state)
            except ArenaFull:
                state = self._retry(lambda: self._alive(self._arena.advance(self._state, token)))
            if state < 0:
                return False
        self._states.append(self._state)
        self._history.append(token)
        self._state = state
        if self._arena.holes:
            self._write_out()
        return True

    def accept_string(self, text: str | bytes) -> bool:
        """Append text if the output may go on with it; `rollback` takes it back as one step.

        Text need not consist of whole tokens. Strings are encoded as UTF-8; lone surrogates fit nothing.
        """
        if self._terminated:
            return False
        data = _encoded(text)
        if data is None:
            return False
        if self._arena.holes:
            return self._accept_in_parts(data)
        state = self._retry(lambda: self._alive(self._arena.step_bytes(self._state, data)[0]))
        if state < 0:
            return False
        self._states.append(self._state)
        self._history.append(data)
        self._state = state
        return True

    def _accept_in_parts(self, data: bytes) -> bool:
        """Do `accept_string` where parts of the spec may have to be written out on the way."""
        n_before, rest = len(self._states), data
        is_read = False
        while not is_read:
            _, n = self._retry(partial(self._step, rest))
            is_read = n == len(rest)
            arena = self._arena
            state, _ = self._retry(partial(self._step, rest[:n]))
            self._states.append(self._state)
            self._history.append(rest[:n])
            self._state = state
            self._write_out()
            if not is_read and self._arena is arena:
                # Nothing was left out here: the text doesn't fit.
                self.rollback(len(self._states) - n_before)
                return False
            rest = rest[n:]
        del self._states[n_before + 1 :]
        self._history[n_before:] = [data]
        return True

    def _step(self, data: bytes) -> tuple[int, int]:
        """Return the state after ``data``, or -1, and how many bytes could be read."""
        return self._arena.step_bytes(self._state, data)

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """Return how many of the tokens, from the first on, would be accepted; the state is unchanged."""
        n = 0
        try:
            for token in token_ids:
                if not self.accept_token(token):
                    break
                n += 1
        finally:
            self.rollback(n)
        return n

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens or texts.

        Raises
        ------
        VocabularyError
            ``n`` is negative or more than was accepted.
        """
        n = _index("n", n)
        if not 0 <= n <= len(self._states):
            raise VocabularyError(f"rollback({n}): {len(self._states)} steps were accepted.")
        if n == 0:
            return
        self._state = self._states[-n]
        del self._states[-n:]
        del self._history[-n:]
        # The end token is always the last step.
        self._terminated = False

    def fork(self) -> Matcher:
        """Return an independent matcher in the same state."""
        other = Matcher.__new__(Matcher)
        other._compiled = self._compiled
        other._arena = self._arena
        other._state = self._state
        other._states = self._states.copy()
        other._history = self._history.copy()
        other._terminated = self._terminated
        other._rows = None
        return other

    def reset(self) -> None:
        """Go back to the start of the output."""
        self._arena = self._compiled.arena
        self._state = self._arena.start
        self._states.clear()
        self._history.clear()
        self._terminated = False

    # ------------------------------------------------------------------------------------ answers

    def is_accepting(self) -> bool:
        """May the output end here? Then every end token is allowed. After an end token it is False."""
        if self._terminated:
            return False
        try:
            return self._arena.is_accepting(self._state)
        except ArenaFull:
            return self._retry(lambda: self._arena.is_accepting(self._state))

    def is_terminated(self) -> bool:
        """Was an end token accepted?"""
        return self._terminated

    def find_jump_forward_string(self) -> str:
        """Return the text that must come next: whole characters, ``""`` where there is a choice.

        Nothing is forced where the output may end.
        """
        if self._terminated:
            return ""
        data, _ = self._retry(lambda: self._arena.forced_bytes(self._state, _MOST_FORCED))
        end = first_virtual_byte(data) if self._arena.holes else -1
        if end >= 0:
            other = self.fork()
            other.accept_string(data[:end])
            if other._arena is not self._arena:
                return data[:end].decode() + other.find_jump_forward_string()
        text = _whole_characters(data)
        if self._compiled.is_checked:
            # Tokens may be unable to go on behind a part of the text.
            while text and not self.fork().accept_string(text):
                text = text[:-1]
        return text

    def forced_tokens(self) -> list[int]:
        """Return the tokens that must come next: each the only allowed one after those before it.

        Ends before an end token, and where two tokens are allowed.
        """
        found: list[int] = []
        if self._terminated:
            return found
        row = np.zeros((1, self._compiled.n_words), np.int32)
        other = self.fork()
        may_skip = self._compiled.vocabulary.has_all_bytes and not self._compiled.is_checked
        while len(found) < _MOST_FORCED:
            # With every byte a token, one allowed token means one byte, alone alive.
            if may_skip and not other._retry(lambda: other._arena.forced_bytes(other._state, 1))[0]:
                break
            other.fill_next_token_bitmask(row, 0)
            token = _only_token(row[0])
            if token < 0 or token in self._compiled.eos_token_ids:
                break
            found.append(token)
            other.accept_token(token)
        return found

    def min_tokens_to_finish(self) -> MinTokens:
        """Return how many tokens suffice to reach a state where the output may end (0 if it is one).

        The end token is not counted. ``is_exact`` says that no fewer do.
        """
        if self._terminated:
            return MinTokens(0, is_exact=True)
        if self._arena.holes:
            self._write_out(everything=True)
        return self._retry(lambda: self._compiled.budget(self._arena).min_tokens(self._state))

    # ------------------------------------------------------------------------------------ renewal

    def _alive(self, state: int) -> int:
        """Return a state of the arena, or -1 if tokens cannot finish from there."""
        compiled = self._compiled
        if state < 0 or not compiled.is_checked or compiled.budget(self._arena).costs.is_alive(state):
            return state
        return -1

    def _write_out(self, *, everything: bool = False) -> None:
        """Go on where the parts of the spec that come next, or all, are written out."""
        arena = self._compiled.written_out(self._arena, self._state, everything=everything)
        if arena is not self._arena:
            self._follow(lambda: arena)

    def _retry(self, action: Callable[[], T]) -> T:
        """Run ``action``; where the arena is full, move to a fresh one and run it again."""
        try:
            return action()
        except ArenaFull as full:
            self._move(full)
        try:
            return action()
        except ArenaFull as full:
            raise LimitExceededError(full.limit, full.value, "one output under this spec") from full

    def _move(self, full: ArenaFull) -> None:
        """Read the history again in an arena that has room."""
        self._follow(lambda: self._compiled.renew(self._arena), full)

    def _follow(self, arena_of: Callable[[], Arena], full: ArenaFull | None = None) -> None:
        """Read the history again in another arena."""
        states: list[int] = []
        try:
            arena = arena_of()
            state = arena.start
            for step in self._history:
                states.append(state)
                if isinstance(step, bytes):
                    state, _ = arena.step_bytes(state, step)
                elif step not in self._compiled.eos_token_ids or not arena.is_accepting(state):
                    state = arena.advance(state, step)
        except ArenaFull as again:
            raise LimitExceededError(again.limit, again.value, "one output under this spec") from full
        self._arena, self._state, self._states = arena, state, states

    def __repr__(self) -> str:
        return f"<Matcher of {self._compiled.spec!r} after {len(self._states)} steps>"


def fill_next_token_bitmasks(matchers: Sequence[Matcher], bitmask: NDArray[np.int32] | torch.Tensor) -> None:
    """Write the masks of a batch in one call: row ``i`` from ``matchers[i]``.

    Parameters
    ----------
    matchers : sequence of Matcher
        Of any specs, of vocabularies of one size.
    bitmask : (batch, ceil(vocab_size / 32)) int32, overwritten
        At least as many rows as matchers.

    Raises
    ------
    VocabularyError, LimitExceededError
        As `Matcher.fill_next_token_bitmask`.
    """
    matchers = list(matchers)
    if not matchers:
        return
    rows = BitmaskRows.of(bitmask, matchers[0]._compiled.n_words)
    n = len(matchers)
    rows.address(n - 1)
    arenas = {id(m._arena): m._arena for m in matchers}
    for m in matchers:
        if m._compiled.n_words != rows.n_words:
            raise VocabularyError("the matchers of one batch belong to vocabularies of different size.")
    calls = np.empty((3, n), np.int64)
    calls[0] = [m._arena.header_address for m in matchers]
    calls[1] = [-1 if m._terminated else m._state for m in matchers]
    # Locks are taken in one order by everybody.
    held = [arenas[key].lock for key in sorted(arenas)]
    for lock in held:
        lock.acquire()
    try:
        native.load().fill_many(calls.ctypes.data, n, rows.first, rows.stride)
    finally:
        for lock in held:
            lock.release()
    calls[2, [m._compiled.is_checked for m in matchers]] = 0
    # Rows whose entries were not known yet, or that must be checked, one by one.
    for i in np.flatnonzero(calls[2] == 0).tolist():
        matchers[i].fill_next_token_bitmask(bitmask, i)


def _index(name: str, value: object) -> int:
    """Return an integer argument."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise VocabularyError(f"{name}={value!r}: expected an integer.") from error


def _encoded(text: str | bytes) -> bytes | None:
    """UTF-8 of a text, ``None`` if it has none."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            return None
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise SpecError(f"accept_string got a {type(text).__name__}; expected text or bytes.")


def _whole_characters(data: bytes) -> str:
    """Decode as many whole characters as ``data`` starts with."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()


def _only_token(row: NDArray[np.int32]) -> int:
    """The one token whose bit is set, or -1."""
    words = np.flatnonzero(row)
    if len(words) != 1:
        return -1
    word = int(row[words[0]]) & 0xFFFFFFFF
    if word & (word - 1):
        return -1
    return int(words[0]) * 32 + word.bit_length() - 1
