"""What may come next in a pattern after some text, and the few members of small patterns."""

from __future__ import annotations

from constrain.grammars.ir import (
    Alternation,
    Automaton,
    CharacterClass,
    Concatenation,
    Literal,
    Pattern,
    Ranges,
    Repeat,
)
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.ranges import NONE, contains, union
from constrain.grammars.regex.utf8 import character_edges

_MOST_WIDE = 8


def next_characters(pattern: Pattern, text: str) -> Ranges:
    """Return characters ``c`` such that ``text + c`` begins a member; of conjunctions, none."""
    return run(_next(pattern, text, {0}))[1]


def _next(pattern: Pattern, text: str, starts: set[int]) -> Task[tuple[set[int], Ranges]]:
    """Return where ``pattern`` ends when it begins at ``starts``, and what comes next inside it at the end."""
    ends: set[int] = set()
    found: Ranges = NONE
    n = len(text)
    match pattern:
        case Literal(data):
            word = data.decode()
            for start in starts:
                if text.startswith(word, start):
                    ends.add(start + len(word))
                elif word.startswith(text[start:]):
                    found = union(found, ((ord(word[n - start]),) * 2,))
        case CharacterClass(ranges):
            if n in starts:
                found = ranges
            ends = {start + 1 for start in starts if start < n and contains(ranges, ord(text[start]))}
        case Concatenation(parts):
            ends = starts
            for part in parts:
                ends, more = yield _next(part, text, ends)
                found = union(found, more)
        case Alternation(parts):
            for part in parts:
                reached, more = yield _next(part, text, starts)
                ends |= reached
                found = union(found, more)
        case Repeat(body, minimum, maximum):
            reached = starts
            ends = set(starts) if minimum == 0 else set()
            # A round that reads nothing changes nothing, so more rounds than characters bring nothing new.
            for done in range(1, min(maximum or n + minimum + 1, n + minimum + 1) + 1):
                reached, more = yield _next(body, text, reached)
                found = union(found, more)
                if done >= minimum:
                    ends |= reached
        case Automaton():
            edges = character_edges(pattern)
            for start in starts:
                states = {pattern.start}
                for at in range(start, n + 1):
                    if states & pattern.accepting:
                        ends.add(at)
                    if at == n:
                        for source, ranges, _ in edges:
                            found = union(found, ranges) if source in states else found
                    else:
                        code = ord(text[at])
                        states = {t for s, ranges, t in edges if s in states and contains(ranges, code)}
    return ends, found


def few_members(pattern: Pattern, most: int) -> list[str] | None:
    """Return all members, or ``None`` if they are more than ``most`` or hard to list."""
    return run(_members(pattern, most))


def _members(pattern: Pattern, most: int) -> Task[list[str] | None]:
    found: list[str] = []
    match pattern:
        case Literal(data):
            return [data.decode()]
        case CharacterClass(ranges):
            if sum(high - low + 1 for low, high in ranges) > _MOST_WIDE:
                return None
            return [chr(code) for low, high in ranges for code in range(low, high + 1)]
        case Concatenation(parts):
            found = [""]
            for part in parts:
                more: list[str] | None = yield _members(part, most)
                if more is None or len(found) * len(more) > most:
                    return None
                found = [one + other for one in found for other in more]
            return found
        case Alternation(parts):
            for part in parts:
                more = yield _members(part, most)
                if more is None or len(found) + len(more) > most:
                    return None
                found += more
            return found
        case Repeat(body, minimum, 1):
            more = yield _members(body, most)
            return more if minimum or more is None else ["", *more]
        case _:
            return None
