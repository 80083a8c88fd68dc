"""What a JSON text will hold, whatever comes next.

`Follower` reads a text beside its automaton. After each piece it looks ahead for as long as only one thing can
come, blanks and spellings aside: the rest of an enum's value that is told from the others, a constant, the
brace that must close an object. What is read on that way is as final as what is written. The way ends at the first
place where two characters of the document, or two numbers, may come.

Names of additional properties may come twice, and readers keep one of the two. Behind each member it is asked
whether its name may come again; if so, the member is not final before its object ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from constrain.errors import LimitExceededError
from constrain.partial_json import PartialJson
from constrain.tokenizer_index.arena import Arena, ArenaFull

if TYPE_CHECKING:
    from constrain.compiled import CompiledSpec

_BLANKS = frozenset(b" \t\n\r")
_ENDS = frozenset(b" \t\n\r,]}")  # what may stand behind a number
_QUOTE, _BACKSLASH = 0x22, 0x5C
_MOST_FORCED = 4096  # bytes looked ahead
_MOST_STEPS = 256  # places with a choice of spellings on the way
_MOST_STATES = 8  # of these spellings
_MOST_NUMBERS = 64  # beginnings of numbers that are compared
_LONGEST_NUMBER = 1_000  # characters
_ESCAPE = 6  # bytes of \uXXXX


class Shown:
    """Shows what is final of an output in JSON while it is written.

    Parameters
    ----------
    compiled : CompiledSpec
    """

    def __init__(self, compiled: CompiledSpec) -> None:
        self._compiled = compiled
        self._arena = compiled.arena
        self._follower = Follower(self._arena)
        self._read = b""
        self._final: set[str] = set()

    def read(self, text: bytes) -> tuple[PartialJson, tuple[str, ...]]:
        """Return what is settled after ``text``, and the pointers of what has become so.

        Parameters
        ----------
        text : bytes
            The whole output so far. Where it doesn't go on from the last one (checks took some back), what was
            called final before counts no more.

        Raises
        ------
        LimitExceededError
            One output has more states than the limits allow.
        """
        if not text.startswith(self._read):
            self._follower, self._read = Follower(self._arena), b""
            self._final.clear()
        try:
            settled = self._settled(text)
        except ArenaFull as full:
            self._arena = self._compiled.renew(self._arena)
            self._follower, self._read = Follower(self._arena), b""
            try:
                settled = self._settled(text)
            except ArenaFull as again:
                raise LimitExceededError(again.limit, again.value, "one output under this spec") from full
        new = [pointer for pointer in settled.final_pointers() if pointer not in self._final]
        self._final.update(new)
        return settled, tuple(new)

    def _settled(self, text: bytes) -> PartialJson:
        self._follower.feed(text[len(self._read) :])
        self._read = text
        return self._follower.settled()


class Follower:
    """Reads a JSON text together with the states of its automaton, from its beginning.

    Parameters
    ----------
    arena : Arena
    """

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._states: tuple[int, ...] = (arena.start,)
        self._reader = PartialJson()
        self._pending = b""

    def feed(self, data: bytes) -> None:
        """Read more of the text, which the automaton takes."""
        self._read(data)

    def settled(self) -> PartialJson:
        """Return a reader of the text and of all that must follow."""
        ahead = Follower(self._arena)
        ahead._states, ahead._pending = self._states, self._pending
        ahead._reader = self._reader.copy()
        ahead._go_ahead()
        return ahead._reader

    # ------------------------------------------------------------------------------ reading

    def _read(self, data: bytes) -> None:
        """Read text, and find out which members may come again."""
        n_read = len(self._pending)  # bytes that the automaton has read before
        data = self._pending + data
        n_whole = len(data) - _unfinished(data)
        self._pending = data[n_whole:]
        reader = self._reader
        at = 0
        for character in data[:n_whole].decode():
            after = at + len(character.encode())
            # A number ends before the character that tells so, everything else with its own last one.
            end = at if reader.is_in_number and character in ", \t\n\r" else after
            member = reader.feed_one(character)
            if member is not None:
                self._states = _stepped(self._arena, self._states, data[n_read:end])
                n_read = end
                self._note(member)
            at = after
        self._states = _stepped(self._arena, self._states, data[n_read:])

    def _note(self, member: str | None) -> None:
        """Note whether another member of the name of the last one, written as ``member``, may follow it."""
        if member is not None and _stepped(self._arena, self._states, f",{member}".encode()):
            self._reader.keep_open()

    # ------------------------------------------------------------------------------ looking ahead

    def _go_ahead(self) -> None:
        """Read what must come, as long as only one thing can."""
        n_read = n_steps = 0
        goes_on = True
        while goes_on and n_read <= _MOST_FORCED and n_steps < _MOST_STEPS:
            if not 0 < len(self._states) <= _MOST_STATES or self._reader.is_broken:
                return
            data = b""
            if len(self._states) == 1:
                data, _ = self._arena.forced_bytes(self._states[0], _MOST_FORCED)
            if data:
                self._read(data)
                n_read += len(data)
                continue
            n_steps += 1
            if self._reader.is_in_string:
                goes_on = self._string()
            elif self._reader.is_in_number:
                goes_on = self._number()
            else:
                goes_on = self._outside()

    def _live(self, state: int) -> list[int]:
        live: list[int] = self._arena.live_bytes(state).nonzero()[0].tolist()
        return live

    def _may_end(self) -> bool:
        return any(self._arena.is_accepting(state) for state in self._states)

    def _outside(self) -> bool:
        """Read the one thing that can come between scalars."""
        live = {byte for state in self._states for byte in self._live(state)}
        found = live - _BLANKS  # which are always optional
        if len(found) != 1 or self._may_end():
            return False
        self._read(bytes(found))
        return True

    def _string(self) -> bool:
        """Read the one character that can come in a string, in whatever spelling."""
        begun = self._reader.open_escape.encode()
        characters: dict[str, bytes] = {}
        states: dict[int, None] = {}
        for state in self._states:
            for found, spelling, after in self._characters(state, begun + self._pending):
                characters.setdefault(found, spelling)
                if len(characters) > 1:
                    return False
                states[after] = None
        self._states, self._pending = tuple(states), b""
        for spelling in characters.values():
            for character in spelling[len(begun) :].decode():
                self._note(self._reader.feed_one(character))
        return True

    def _characters(self, state: int, begun: bytes) -> Iterator[tuple[str, bytes, int]]:
        """Yield the characters that can come next, "" for the end, each with a spelling and the state after it."""
        todo = [(state, begun)]
        while todo:
            state, spelling = todo.pop()
            for byte in self._live(state):
                after, _ = self._arena.step_bytes(state, bytes([byte]))
                longer = spelling + bytes([byte])
                found = _character(longer)
                if after < 0:
                    continue
                if found is None:
                    todo.append((after, longer))
                else:
                    yield found, longer, after

    def _number(self) -> bool:
        """Read on in a number or a word, or end it."""
        live = {byte for state in self._states for byte in self._live(state)}
        more = live - _ENDS
        if not more:
            self._note(self._reader.feed_one(" "))
            return True
        if len(more) == 1 and not live & _ENDS and not self._may_end():
            self._read(bytes(more))
            return True
        found = self._only_number()
        if found is not None:
            text, self._states = found
            self._reader.replace_scalar(text)
            self._note(self._reader.feed_one(" "))
        return False

    def _only_number(self) -> tuple[str, tuple[int, ...]] | None:
        """Return the number that every way to go on writes, if there is one: a spelling, and the states behind."""
        todo = [(state, self._reader.open_scalar) for state in self._states]
        values: dict[Any, str] = {}
        ends: dict[int, None] = {}
        n_seen = 0
        while todo:
            state, text = todo.pop()
            n_seen += 1
            if n_seen > _MOST_NUMBERS or len(text) > _LONGEST_NUMBER:
                return None
            live = self._live(state)
            if self._arena.is_accepting(state) or not _ENDS.isdisjoint(live):
                values.setdefault(json.loads(text), text)
                ends[state] = None
                if len(values) > 1:
                    return None
            for byte in live:
                if byte not in _ENDS:
                    todo.append((self._arena.step_bytes(state, bytes([byte]))[0], text + chr(byte)))
        return (next(iter(values.values())), tuple(ends)) if values else None


def _stepped(arena: Arena, states: tuple[int, ...], data: bytes) -> tuple[int, ...]:
    if not data:
        return states
    found = [arena.step_bytes(state, data)[0] for state in states]
    return tuple(dict.fromkeys(state for state in found if state >= 0))


def _unfinished(data: bytes) -> int:
    """Return how many bytes at the end begin a character that isn't whole."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < _width(byte) else 0
        if byte < 0x80:
            return 0
    return 0


def _width(lead: int) -> int:
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _character(spelling: bytes) -> str | None:
    """Return the character of a whole spelling in a string, "" for the quotation mark that ends it."""
    lead = spelling[0]
    if lead == _QUOTE:
        return ""
    if lead != _BACKSLASH:
        return spelling.decode() if len(spelling) == _width(lead) else None
    if len(spelling) < 2:
        return None
    n = 2
    if spelling[1:2] == b"u":
        n = _ESCAPE
        if len(spelling) >= n and 0xD800 <= int(spelling[2:6], 16) <= 0xDBFF:
            n = 2 * _ESCAPE
    if len(spelling) < n:
        return None
    found: str = json.loads(b'"' + spelling + b'"')
    return found
