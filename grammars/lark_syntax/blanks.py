"""Ignored text: without endless blanks, and without blanks before comments where blanks are ignored by themselves."""

from __future__ import annotations

from constrain.grammars.ir import (
    Alternation,
    CharacterClass,
    Concatenation,
    Literal,
    Pattern,
    Ranges,
    Repeat,
)
from constrain.grammars.regex.build import (
    alternate,
    character_class,
    concatenate,
    repeat,
    single_characters,
)
from constrain.grammars.regex.ranges import NONE, difference
from constrain.grammars.regex.unicode import perl_class

_BLANK = perl_class("s", False)


def bounded(pattern: Pattern, most: int) -> Pattern:
    """Return ``pattern`` with at most ``most`` rounds of each repeat, if it matches nothing but blanks."""
    # Deep nesting is no concern: patterns of blanks are flat, and others are given back at the first sign.
    todo: list[tuple[Pattern, bool]] = [(pattern, False)]
    done: list[Pattern] = []
    while todo:
        node, is_ready = todo.pop()
        match node:
            case Literal(data):
                if not data.decode().isspace():
                    return pattern
                done.append(node)
            case CharacterClass(ranges):
                if difference(ranges, _BLANK):
                    return pattern
                done.append(node)
            case Concatenation(parts) | Alternation(parts):
                if not is_ready:
                    todo.append((node, True))
                    todo += [(part, False) for part in reversed(parts)]
                else:
                    new = tuple(done[len(done) - len(parts) :])
                    del done[len(done) - len(parts) :]
                    done.append(type(node)(new))
            case Repeat(body, minimum, maximum):
                if not is_ready:
                    todo += [(node, True), (body, False)]
                else:
                    limit = max(minimum, most) if maximum is None else maximum
                    done.append(repeat(done.pop(), minimum, limit))
            case _:
                return pattern
    return done[0]


def blank_characters(pattern: Pattern) -> Ranges:
    """Return the characters of which any row, not too long, is a member."""
    if isinstance(pattern, Repeat) and pattern.minimum <= 1:
        pattern = pattern.body
    return single_characters(pattern) or NONE


def without_blanks_before(pattern: Pattern, blanks: Ranges) -> Pattern:
    r"""Return ``pattern`` without those of ``blanks`` that members begin with but need not.

    Where blanks are ignored by themselves, ``/[ \n]*#.*/`` may as well be ``/(\n[ \n]*)?#.*/``. Then no blank is
    taken for the beginning of a comment that doesn't come.
    """
    parts = pattern.parts if isinstance(pattern, Alternation) else (pattern,)
    return alternate(_without_blanks_before(part, blanks) for part in parts)


def _without_blanks_before(pattern: Pattern, blanks: Ranges) -> Pattern:
    if not isinstance(pattern, Concatenation):
        return pattern
    first, *rest = pattern.parts
    if not isinstance(first, Repeat) or first.minimum or first.maximum is not None:
        return pattern
    characters = single_characters(first.body)
    if characters is None:
        return pattern
    others = difference(characters, blanks)
    if others == characters:
        return pattern
    if others:
        row = concatenate((character_class(others), first))
        rest.insert(0, repeat(row, 0, 1))
    return concatenate(rest)
