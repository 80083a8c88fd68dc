"""The members of a pattern that begin, or end, with given characters."""

from __future__ import annotations

from constrain.grammars.ir import (
    ANY_TEXT,
    EMPTY_LANGUAGE,
    Alternation,
    CharacterClass,
    Concatenation,
    Literal,
    Pattern,
    Ranges,
    Repeat,
)
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import (
    alternate,
    character_class,
    concatenate,
    intersect,
    is_nullable,
    repeat,
)
from constrain.grammars.regex.ranges import contains
from constrain.grammars.regex.ranges import intersect as intersect_sets


def restrict(pattern: Pattern, ranges: Ranges, *, at_end: bool) -> Pattern:
    """Return the members that are not empty and whose first (or last) character is in ``ranges``.

    If these are all members, ``pattern`` itself is returned.
    """
    return run(_restrict(pattern, ranges, at_end))


def _restrict(pattern: Pattern, ranges: Ranges, at_end: bool) -> Task[Pattern]:
    match pattern:
        case Literal(data):
            text = data.decode()
            if not text:
                return EMPTY_LANGUAGE
            edge = text[-1] if at_end else text[0]
            return pattern if contains(ranges, ord(edge)) else EMPTY_LANGUAGE
        case CharacterClass(own):
            shared = intersect_sets(own, ranges)
            return pattern if shared == own else character_class(shared)
        case Alternation(parts):
            kept = []
            for part in parts:
                kept.append((yield _restrict(part, ranges, at_end)))
            is_same = all(old is new for old, new in zip(parts, kept, strict=True))
            return pattern if is_same else alternate(kept)
        case Repeat(body, minimum, maximum):
            edge_round = yield _restrict(body, ranges, at_end)
            if edge_round is body:
                return repeat(body, max(minimum, 1), maximum) if minimum == 0 else pattern
            rest = repeat(body, max(minimum - 1, 0), None if maximum is None else maximum - 1)
            return concatenate((rest, edge_round) if at_end else (edge_round, rest))
        case Concatenation(parts):
            found: Pattern = yield _restrict_sequence(pattern, parts, ranges, at_end)
            return found
        case _:
            single = character_class(ranges)
            return intersect((pattern, concatenate((ANY_TEXT, single) if at_end else (single, ANY_TEXT))))


def _restrict_sequence(
    pattern: Pattern, parts: tuple[Pattern, ...], ranges: Ranges, at_end: bool
) -> Task[Pattern]:
    """Restrict the first part, or the second where the first is empty, and so on."""
    found: list[Pattern] = []
    order = range(len(parts) - 1, -1, -1) if at_end else range(len(parts))
    for index in order:
        part = parts[index]
        kept = yield _restrict(part, ranges, at_end)
        is_last = not is_nullable(part)
        if kept is part and is_last and index == order[0]:
            return pattern
        rest = (*parts[:index], kept) if at_end else (kept, *parts[index + 1 :])
        found.append(concatenate(rest))
        if is_last:
            break
    return alternate(found)
