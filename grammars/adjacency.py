"""With which characters patterns begin and end, and which they have.

All sets may be too large, never too small.
"""

from __future__ import annotations

from constrain.grammars.ir import (
    Alternation,
    Automaton,
    CharacterClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Ranges,
    Repeat,
    SpecialToken,
)
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import is_nullable
from constrain.grammars.regex.ranges import FULL, NONE, intersect, normalize, union
from constrain.grammars.regex.utf8 import character_edges


def edge_characters(pattern: Pattern, *, at_end: bool) -> Ranges:
    """Return the characters that members end (or begin) with."""
    return run(_edge(pattern, at_end))


def _edge(pattern: Pattern, at_end: bool) -> Task[Ranges]:
    found: Ranges = NONE
    match pattern:
        case Literal(data):
            text = data.decode()
            return ((ord(text[-at_end]),) * 2,) if text else NONE
        case CharacterClass(ranges):
            return ranges
        case SpecialToken():
            return NONE  # no text
        case Concatenation(parts):
            for part in parts[::-1] if at_end else parts:
                found = union(found, (yield _edge(part, at_end)))
                if not is_nullable(part):
                    break
            return found
        case Alternation(parts):
            for part in parts:
                found = union(found, (yield _edge(part, at_end)))
            return found
        case Repeat(body):
            found = yield _edge(body, at_end)
            return found
        case Intersection(parts):
            found = FULL
            for part in parts:
                if not isinstance(part, Complement):
                    found = intersect(found, (yield _edge(part, at_end)))
            return found
        case Automaton(_, start, accepting):
            for source, ranges, target in character_edges(pattern):
                if target in accepting if at_end else source == start:
                    found = union(found, ranges)
            return found
        case _:
            return FULL


def pattern_characters(pattern: Pattern) -> Ranges:
    """Return the characters that members have anywhere."""
    return run(_characters(pattern))


def _characters(pattern: Pattern) -> Task[Ranges]:
    found: Ranges = NONE
    match pattern:
        case Literal(data):
            return normalize((ord(character), ord(character)) for character in data.decode())
        case CharacterClass(ranges):
            return ranges
        case SpecialToken():
            return NONE  # no text
        case Concatenation(parts) | Alternation(parts):
            for part in parts:
                found = union(found, (yield _characters(part)))
            return found
        case Repeat(body):
            found = yield _characters(body)
            return found
        case Intersection(parts):
            found = FULL
            for part in parts:
                if not isinstance(part, Complement):
                    found = intersect(found, (yield _characters(part)))
            return found
        case Automaton():
            for _, ranges, _ in character_edges(pattern):
                found = union(found, ranges)
            return found
        case _:
            return FULL
