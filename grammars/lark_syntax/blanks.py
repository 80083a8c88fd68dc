"""Ignored text without endless blanks."""

from __future__ import annotations

from constrain.grammars.ir import (
    Alternation,
    CharacterClass,
    Concatenation,
    Literal,
    Pattern,
    Repeat,
)
from constrain.grammars.regex.build import repeat
from constrain.grammars.regex.ranges import difference
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
