"""How far a text gets in a spec, and what was expected where it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from constrain.grammars.ir import Concatenation, Grammar, Literal, Pattern
from constrain.grammars.regex.build import is_nullable
from constrain.grammars.source import caret
from constrain.tokenizer_index.arena import Arena
from constrain.tokenizer_index.network import Network
from constrain.tokenizer_index.special_tokens import FIRST_BYTE

_MOST_NAMES = 8
_MOST_RULES = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `Spec.explain` found.

    Parameters
    ----------
    ok : bool
        The text is a member of the language.
    offset : int
        Bytes that could be read: the first wrong byte, or the end of the text.
    line, column : int
        The same place in lines and characters, from 1.
    expected : tuple of str
        What may stand there, for people; empty if ``ok``.
    pointer : str or None
        Place in the schema, or rules of the grammar, that were being read.
    found : str
        The character at the place, or ``""`` at the end.
    text : str
        The text, with bytes that are no UTF-8 replaced.
    word : str
        The word that is wrong, where its first letters could begin something else; else ``""``.
    instead : tuple of str
        What may stand in place of the whole ``word``.
    """

    ok: bool
    offset: int
    line: int
    column: int
    expected: tuple[str, ...]
    pointer: str | None
    found: str
    text: str
    word: str = ""
    instead: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.ok:
            return "The text is in the language."
        found = f"unexpected {self.found!r}" if self.found else "the text ends too early"
        message = f"line {self.line}, column {self.column}: {found}"
        if self.expected:
            message += f"; expected {_enumerate(self.expected)}"
        if self.instead:
            message += f"; or, in place of {self.word!r}, {_enumerate(self.instead)}"
        if self.pointer is not None:
            message += f" (at {self.pointer!r})"
        return f"{message}.\n{caret(self.text, self._index)}"

    @property
    def _index(self) -> int:
        """The place in characters from 0."""
        lines = self.text.split("\n")[: self.line - 1]
        return sum(len(line) + 1 for line in lines) + self.column - 1


def _enumerate(names: tuple[str, ...]) -> str:
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " or " + names[-1]


def explain_failure(
    arena: Arena,
    state: int,
    data: bytes,
    offset: int,
    *,
    expected: Iterable[str] | None = None,
    pointers: Mapping[str, str] | None = None,
    shown: Mapping[str, str] | None = None,
    newline: str | None = None,
) -> Explanation:
    """Return the explanation of a text that fails after ``offset`` bytes, in ``state``.

    Parameters
    ----------
    expected : iterable of str or None
        What may stand there, where the caller knows better than the grammar's names.
    pointers : mapping of str to str
        Places of the grammar's rules.
    shown : mapping of str to str
        What to call terminals instead of their names (`shown_names`).
    newline : str or None
        Name of the terminal after which indentation counts.
    """
    network = arena.network
    terminals = _next_terminals(arena, state)
    names: list[str]
    if expected is not None:
        names = list(expected)
    elif len(set(network.terminal_names)) == 1:
        names = live_characters(arena, state)
    else:
        names = _names(network, terminals, shown)
        if names == [newline] and data[:offset].rstrip(b" \t\f").endswith(b"\n"):
            names = ["more indentation"]
    names = _few(names)
    if arena.is_accepting(state):
        names.append("the end of the text")
    pointer = _shared_pointer(network, terminals) or _rules(arena, state, pointers or {})
    return place_explanation(data, offset, tuple(names), pointer)


def with_word(
    explanation: Explanation, data: bytes, arena: Arena, shown: Mapping[str, str] | None = None
) -> Explanation:
    """Return the explanation with what may stand in place of the word that is wrong.

    Only the word's first letters could be read, as the beginning of something else.
    """
    begin = explanation.offset
    while begin > 0 and _is_word(data[begin - 1]):
        begin -= 1
    end = explanation.offset
    while end < len(data) and _is_word(data[end]):
        end += 1
    if not begin < explanation.offset < end:
        return explanation
    state, read = arena.step_bytes(arena.start, data[:begin])
    if read < begin:
        return explanation
    names = _names(arena.network, _next_terminals(arena, state), shown)
    names = [name for name in names if name not in explanation.expected]
    if not names:
        return explanation
    word = data[begin:end].decode("utf-8", errors="replace")
    return replace(explanation, word=word, instead=tuple(_few(names)))


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or chr(byte).isalnum() or byte == ord("_")


def _names(network: Network, terminals: Iterable[int], shown: Mapping[str, str] | None = None) -> list[str]:
    """Return what terminals are called, signs and classes before words: words are many and tell least."""
    shown = shown or {}
    names = dict.fromkeys(shown.get(name, name) for name in (network.terminal_names[t] for t in terminals))
    return sorted(names, key=lambda name: name[:1] in ("'", '"') and name[1:-1].isidentifier())


def shown_names(grammar: Grammar) -> dict[str, str]:
    """Return what to call terminals whose names say nothing to users: those with ``_`` that are a fixed text.

    In Lark's language these are punctuation, left out of trees: ``_LPAR: "(" _BLANKS?``.
    """
    found: dict[str, str] = {}
    for terminal in grammar.terminals:
        text = _fixed_text(terminal.pattern) if terminal.name.startswith("_") else None
        if text:
            found[terminal.name] = repr(text.decode("utf-8", errors="replace"))
    return found


def _fixed_text(pattern: Pattern) -> bytes | None:
    """Return the text that a pattern begins with, if nothing else must come."""
    if isinstance(pattern, Literal):
        return pattern.data
    if isinstance(pattern, Concatenation) and all(map(is_nullable, pattern.parts[1:])):
        return _fixed_text(pattern.parts[0])
    return None


def _few(names: list[str]) -> list[str]:
    if len(names) <= _MOST_NAMES:
        return list(names)
    return [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} others"]


def character_start(data: bytes, offset: int) -> int:
    """Return where the character begins that has the byte at ``offset``; bytes that are no UTF-8 stand alone."""
    start = offset
    while start > max(offset - 3, 0) and data[start : start + 1] and 0x80 <= data[start] < 0xC0:
        start -= 1
    lead = data[start] if start < len(data) else 0
    size = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    return start if offset - start < size else offset


def place_explanation(
    data: bytes, offset: int, expected: tuple[str, ...], pointer: str | None, *, ok: bool = False
) -> Explanation:
    """Return an explanation for a place in ``data``, in bytes."""
    # A wrong byte inside a character is shown as that character.
    start = character_start(data, offset)
    before = data[:start].decode("utf-8", errors="replace")
    rest = data[start : start + 8].decode("utf-8", errors="replace")
    return Explanation(
        ok=ok,
        offset=offset,
        line=before.count("\n") + 1,
        column=len(before) - (before.rfind("\n") + 1) + 1,
        expected=expected,
        pointer=pointer,
        found=rest[:1],
        text=before + data[start:].decode("utf-8", errors="replace"),
    )


def _next_terminals(arena: Arena, state: int) -> list[int]:
    """Return the terminals that can read the next byte, ignored ones only if there are no others."""
    found: set[int] = set()
    classes: set[int] = set()
    for byte in np.flatnonzero(arena.live_bytes(state)).tolist():
        byte_class = int(arena.classes[byte])
        if byte_class not in classes:
            classes.add(byte_class)
            after, _ = arena.step_bytes(state, bytes((byte,)))
            found.update(arena.live_terminals(after))
    ignored, is_blank = arena.network.ignored, arena.network.terminal_is_blank
    return sorted(t for t in found if not ignored[t] and not is_blank[t]) or sorted(found)


def _shared_pointer(network: Network, terminals: list[int]) -> str | None:
    """Return the place in the schema that ``terminals`` have in common."""
    pointers = [network.terminal_pointers[t] for t in terminals]
    known = [pointer.split("/") for pointer in pointers if pointer is not None]
    if not known:
        return None
    shared = known[0]
    for parts in known[1:]:
        n = next((i for i, pair in enumerate(zip(shared, parts, strict=False)) if pair[0] != pair[1]), None)
        shared = shared[: min(len(shared), len(parts)) if n is None else n]
    return "/".join(shared) if shared else None


def _rules(arena: Arena, state: int, pointers: Mapping[str, str]) -> str | None:
    """Return the rules of a grammar that are being read."""
    found: dict[str, None] = {}
    for rule in arena.rules_in_progress(state):
        # Rules that were cut from others are named after these: "list (repeated)".
        pointer = pointers.get(arena.network.rule_names[rule].partition(" (")[0], "#")
        if not pointer.startswith("#"):
            found[pointer] = None
    return ", ".join(found) if 0 < len(found) <= _MOST_RULES else None


def live_characters(arena: Arena, state: int) -> list[str]:
    """Return what may come next in ``state``: ranges of ASCII characters, and others in short."""
    live = arena.live_bytes(state)
    names: list[str] = []
    codes = np.flatnonzero(live[:128]).tolist()
    start = 0
    while start < len(codes):
        end = start
        while (
            end + 1 < len(codes) and codes[end + 1] == codes[end] + 1 and _alike(codes[end + 1], codes[start])
        ):
            end += 1
        low, high = chr(codes[start]), chr(codes[end])
        names.append(repr(low) if end == start else f"{low!r} to {high!r}")
        start = end + 1
    if live[0x80:0xC0].any():
        names.append("the rest of a character")
    has_special = bool(arena.network.special_tokens)
    if live[0xC0 : FIRST_BYTE if has_special else 256].any():
        names.append("a character outside ASCII")
    if has_special and live[FIRST_BYTE:].any():
        names.append("a special token")
    return names


def _alike(first: int, second: int) -> bool:
    """Do two ASCII characters look well as the ends of one range?"""
    kinds = (str.isdigit, str.isupper, str.islower)
    return [kind(chr(first)) for kind in kinds] == [kind(chr(second)) for kind in kinds]
