"""Tool calls compiled part by part.

The grammar of a set of tools has *holes*: behind the beginning of a call stands one for the names of all
tools, and behind each name one for its arguments. A matcher that comes to a hole goes on in another arena, in
which that part is written out, by reading its own history there again.

Masks must not tell the difference. A token that is allowed in front of a hole may reach into it, so the hole
begins with the last bytes of the fixed text before it: one more than any token of the vocabulary has in front
of anything (`_tail`). Before the first of these no token can reach the end of them, and behind it the hole is
in progress and is written out.
Where that cannot be arranged, because a token spans all of the fixed text, tools are compiled as a whole; and
so they are where costs are asked for, which depend on all of a spec.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from constrain.compiled import CompiledSpec
from constrain.grammars.ir import HOLE
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.tags.formats import HOLE_MARK, Choice, Format, Hole, Marks, Tag, marks
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.budget import Budget
from constrain.tokenizer_index.missing_bytes import needs_check
from constrain.tokenizer_index.network import Network, build_network
from constrain.tokenizer_index.vocabulary import Vocabulary
from constrain.tool_spec import Frame, ToolSpec

FEW_TOOLS = 8
"""Fewer tools are compiled as a whole."""
_NAMES = ""
_MOST_FRAMES = 32


@dataclass(frozen=True, slots=True)
class _Frames:
    """An empty frame compiled: shared by all sets of tools that stand in it."""

    network: Network
    arena: Arena


_frames: OrderedDict[tuple[object, ...], _Frames] = OrderedDict()
_lock = threading.Lock()


@lru_cache(maxsize=256)
def _tail(vocabulary: Vocabulary, text: str) -> tuple[int, tuple[bytes, ...]]:
    """Return how far tokens reach back over the end of ``text``.

    Returns
    -------
    int
        Bytes of the longest end of ``text`` that some token begins with and goes on after.
    tuple of bytes
        What tokens that go on after all of ``text`` hold up to there, ``text`` included.
    """
    ending = text.encode()
    data, offsets = vocabulary.token_data, vocabulary.token_offsets
    at = np.flatnonzero(data[:-1] == ending[-1]) if ending else np.zeros(0, np.int64)
    token = np.searchsorted(offsets, at, side="right") - 1
    begin = offsets[token]
    is_inside = at + 1 < offsets[token + 1]
    at, begin = at[is_inside], begin[is_inside]
    reach = 0
    for i in range(1, len(ending) + 1):
        equal = data[at - i + 1] == ending[-i]
        at, begin = at[equal], begin[equal]
        is_whole = at - i + 1 == begin
        if is_whole.any():
            reach = i
        at, begin = at[~is_whole], begin[~is_whole]
        if not len(at):
            return reach, ()
    longer = {data[low : high + 1].tobytes() for low, high in zip(begin.tolist(), at.tolist(), strict=True)}
    return reach, tuple(sorted(longer))


def _last_text(given: Marks) -> str:
    last = given[-1] if given else ""
    return last if isinstance(last, str) else ""


def _split(given: Marks, n_bytes: int) -> tuple[Marks, Marks]:
    """Return marks without the last bytes of their text, or their last token, and what was taken away."""
    text = _last_text(given)
    if not text:
        return given[:-1], given[-1:]
    n = len(text)
    while len(text[n:].encode()) < n_bytes:
        n -= 1
    return marks(*given[:-1], text[:n]), (text[n:],)


def _kept_of_begin(frame: Frame, vocabulary: Vocabulary) -> int | None:
    """Return how many bytes of `begin` to keep for the hole of the names; ``None``: there are not enough.

    One more than tokens reach over, so that a hole is in progress before any token can reach it.
    """
    template = frame.template
    text = _last_text(template.begin)
    is_alone = len(template.begin) == 1
    is_free = is_alone and frame.text and template.text == "around" and not template.open
    if not text:
        # A special token is never part of another; but a trigger belongs to the text before it.
        return None if is_free else 1
    reach, longer = _tail(vocabulary, text)
    room = len(text.encode())
    if is_free:
        room -= len((text if template.trigger is None else str(template.trigger)).encode())
    return None if reach >= room or (longer and is_alone) else reach + 1


def _kept_of_name(frame: Frame, vocabulary: Vocabulary, name: str) -> int | None:
    """Return how many bytes to keep for the hole of a tool's arguments; ``None``: there are not enough."""
    template = frame.template
    text = _last_text(template.after_name)
    if not text:
        return 1 if template.after_name else None
    reach, longer = _tail(vocabulary, text)
    if len(template.after_name) == 1:
        whole = (template.written(name) + text).encode()
        for before in longer:
            if whole.endswith(before):
                reach = max(reach, len(before))
            elif before.endswith(whole):
                return None
        return None if reach >= len(whole) else reach + 1
    return None if reach >= len(text.encode()) else reach + 1


def _is_lazy(spec: ToolSpec, vocabulary: Vocabulary) -> bool:
    """Can the parts of ``spec`` be written out one by one?"""
    if len(spec.tools) < FEW_TOOLS or not vocabulary.has_all_bytes:
        return False
    template = spec.frame.template
    if len(template.after_name) == 1 and _tail(vocabulary, _last_text(template.after_name))[1]:
        return all(_kept_of_name(spec.frame, vocabulary, name) is not None for name in spec.tools)
    # It doesn't depend on the name.
    return _kept_of_name(spec.frame, vocabulary, next(iter(spec.tools))) is not None


def compile_tools(
    spec: ToolSpec, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits
) -> CompiledSpec | None:
    """Return a compiled spec that writes its parts out when they are needed; ``None`` where that can't be."""
    if not _is_lazy(spec, vocabulary):
        return None
    compiled = _first(spec, vocabulary, cache, limits)
    return None if compiled.is_checked else compiled


def _first(
    spec: ToolSpec, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits
) -> LazyCompiledSpec:
    """Return the compiled spec with nothing written out."""
    frame = spec.frame
    n_kept = _kept_of_begin(frame, vocabulary)
    if n_kept is None:
        written: frozenset[str] | None = frozenset()
        arena = _arena(spec, vocabulary, cache, limits, frozenset())
        return LazyCompiledSpec(spec, vocabulary, arena, limits, cache, written)
    key = frame, vocabulary, limits, cache
    with _lock:
        found = _frames.get(key)
    if found is None:
        watch = Watch(limits)
        begin, kept = _split(frame.template.begin, n_kept)
        network = build_network(frame.grammar(Hole(kept, _NAMES), watch, begin), watch)
        found = _Frames(network, _arena_of(network, vocabulary, cache, limits))
        with _lock:
            _frames[key] = found
            while len(_frames) > _MOST_FRAMES:
                _frames.popitem(last=False)
    return LazyCompiledSpec(spec, vocabulary, found.arena, limits, cache, None)


def _arena(
    spec: ToolSpec,
    vocabulary: Vocabulary,
    cache: bool | str | Path,
    limits: Limits,
    written: frozenset[str],
) -> Arena:
    """Return an arena in which the names of all tools and the arguments of some are written out."""
    watch = Watch(limits)
    template = spec.frame.template
    calls: list[Format] = []
    for name in spec.tools:
        if name in written:
            calls.append(spec.call(name))
            continue
        n_kept = _kept_of_name(spec.frame, vocabulary, name)
        assert n_kept is not None
        head, kept = _split(marks(template.written(name), *template.after_name), n_kept)
        calls.append(Tag(head, Hole(kept, name)))
    network = build_network(spec.frame.grammar(Choice(tuple(calls)), watch), watch)
    return _arena_of(network, vocabulary, cache, limits)


def _arena_of(network: Network, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits) -> Arena:
    names = tuple(name for name in network.special_tokens if name != HOLE.name)
    arena = Arena(network, vocabulary.load_index_with((*names, HOLE.name), cache), limits)
    arena.holes = {
        t: name[len(HOLE_MARK) :]
        for t, name in enumerate(network.terminal_names)
        if name.startswith(HOLE_MARK) and network.start_offsets[t] < network.start_offsets[t + 1]
    }
    return arena


class LazyCompiledSpec(CompiledSpec):
    """A compiled set of tools with holes in it; see the module's text."""

    def __init__(
        self,
        spec: ToolSpec,
        vocabulary: Vocabulary,
        arena: Arena,
        limits: Limits,
        cache: bool | str | Path,
        written: frozenset[str] | None,
    ) -> None:
        super().__init__(spec, vocabulary, arena, limits)
        self._tools = spec
        self._cache = cache
        self._written = written

    def renew(self, full: Arena) -> Arena:
        """Return an arena to move to from one that is full."""
        arena = super().renew(full)
        if arena.network is full.network:
            arena.holes = full.holes
        return arena

    def written_out(self, arena: Arena, state: int, *, everything: bool = False) -> Arena:
        """Return the arena to go on in from a state: this one, or one with more parts written out."""
        if not arena.holes:
            return arena
        needed = frozenset() if everything else frozenset(self._holes_at(arena, state))
        if not needed and not everything:
            return arena
        with self._lock:
            known = self._written
            wanted = (known or frozenset()) | (needed - {_NAMES})
            if everything and self._arena.holes:
                self._write_everything()
            elif self._arena.holes and (known is None or not wanted <= known):
                self._arena = _arena(self._tools, self.vocabulary, self._cache, self.limits, wanted)
                self._written = wanted
                if not self._arena.network.is_sound:
                    self._write_everything()
            return self._arena

    def _write_everything(self) -> None:
        index = self.vocabulary.load_index_with(self._tools.network.special_tokens, self._cache)
        self._arena = self._tools.tables(lambda network: Arena(network, index, self.limits))
        costs_of = lambda arena: Budget(arena, self.vocabulary).costs
        self.is_checked = needs_check(self._arena, self.vocabulary, costs_of)

    def _holes_at(self, arena: Arena, state: int) -> tuple[str, ...]:
        """Return the holes that may come at a state, or into whose fixed text it has read."""
        found = arena.holes_at.get(state)
        if found is None:
            live = arena.live_terminals(state)
            found = tuple(arena.holes[t] for t in live if t in arena.holes)
            arena.holes_at[state] = found
        return found
