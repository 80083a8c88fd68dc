"""Terminals compiled: one byte automaton, or a conjunction of several."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import (
    Alternation,
    ByteClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    Pattern,
    Repeat,
    Terminal,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recent import Recent
from constrain.tokenizer_index.boolean import flatten_conjunction
from constrain.tokenizer_index.byte_automaton import (
    MOST_EDGES_KEPT,
    MOST_KEPT,
    clear_fragments,
    compile_pattern,
)
from constrain.tokenizer_index.fragment import SHORT_LITERAL, Fragment, literal_fragment, walled


class Lexeme(NamedTuple):
    """The compiled literals of a terminal; a plain one has a single positive literal."""

    literals: list[tuple[bool, Fragment]]
    alive: bool
    nullable: bool

    @property
    def is_plain(self) -> bool:
        return len(self.literals) == 1


_BY_ID: Recent[int, tuple[Pattern, Lexeme]] = Recent(MOST_KEPT, MOST_EDGES_KEPT)


@lru_cache(maxsize=4096)
def _short_literal(data: bytes) -> Lexeme:
    return Lexeme([(False, literal_fragment(data))], data != b"", data == b"")


def compile_terminal(terminal: Terminal, watch: Watch) -> Lexeme:
    """Return the byte automata of ``terminal``.

    Raises
    ------
    UnsupportedFeatureError
        ``not_before`` where it cannot be enforced.
    LimitExceededError
        More positions, time or nesting than allowed.
    """
    lexeme = _compile_pattern(terminal, watch)
    if not terminal.not_before or not lexeme.alive:
        return lexeme
    if not terminal.greedy or not lexeme.is_plain:
        raise UnsupportedFeatureError(
            "lookahead",
            pointer=terminal.pointer,
            reason=f"stands at the end of terminal {terminal.name!r}, which is not greedy or is a conjunction",
            hint="Let the rules say what may follow the terminal.",
        )
    ((_, fragment),) = lexeme.literals
    return lexeme._replace(literals=[(False, walled(fragment, terminal.not_before))])


def _compile_pattern(terminal: Terminal, watch: Watch) -> Lexeme:
    """Return the automata of the pattern; those of recent ones are kept by identity, as they come again and again."""
    pattern = terminal.pattern
    if isinstance(pattern, Literal) and len(pattern.data) <= SHORT_LITERAL:
        return _short_literal(pattern.data)
    known = _BY_ID.get(id(pattern))
    if known is not None and known[0] is pattern:
        return known[1]
    place = f"terminal {terminal.name!r}"
    if terminal.pointer is not None:
        place += f" at {terminal.pointer!r}"
    lexeme = _compile(pattern, watch, place)
    _BY_ID.put(id(pattern), (pattern, lexeme), sum(fragment.n_edges for _, fragment in lexeme.literals))
    return lexeme


def clear_cache() -> None:
    """Forget all automata."""
    _BY_ID.clear()
    clear_fragments()


def _compile(pattern: Pattern, watch: Watch, place: str) -> Lexeme:
    parts = _literals(pattern)
    if parts is None:
        fragment = compile_pattern(pattern, watch, place)
        return Lexeme([(False, fragment)], fragment.n_positions > 0, fragment.nullable)
    literals = [(negative, compile_pattern(part, watch, place)) for negative, part in parts]
    nullable = all(fragment.nullable != negative for negative, fragment in literals)
    if any(not negative and fragment.n_positions == 0 for negative, fragment in literals):
        return Lexeme([], False, nullable)
    # A negative literal that matches nothing but the empty string excludes nothing else.
    literals = [literal for literal in literals if literal[1].n_positions]
    return Lexeme(literals, True, nullable)


def _literals(pattern: Pattern) -> list[tuple[bool, Pattern]] | None:
    """Return the literals of a terminal that is a conjunction as a whole, or None.

    A literal before or after a conjunction is given to each of its parts: one fixed word around it
    changes nothing in which strings are in which part.
    """
    before, after = b"", b""
    while isinstance(pattern, Concatenation | Alternation | Repeat):
        if isinstance(pattern, Repeat):
            if not pattern.minimum == pattern.maximum == 1:
                return None
            pattern = pattern.body
        elif len(pattern.parts) == 1:
            pattern = pattern.parts[0]
        elif isinstance(pattern, Alternation):
            return None
        else:
            others = [i for i, part in enumerate(pattern.parts) if not isinstance(part, Literal)]
            if len(others) != 1:
                return None
            i = others[0]
            before += b"".join(part.data for part in pattern.parts[:i] if isinstance(part, Literal))
            after = (
                b"".join(part.data for part in pattern.parts[i + 1 :] if isinstance(part, Literal)) + after
            )
            pattern = pattern.parts[i]
    if not isinstance(pattern, Intersection | Complement):
        return None
    literals = flatten_conjunction(pattern)
    if all(negative for negative, _ in literals):
        literals.insert(0, (False, Repeat(ByteClass(((0, 255),)), 0, None)))
    if before or after:
        head, tail = Literal(before), Literal(after)
        literals = [(negative, Concatenation((head, part, tail))) for negative, part in literals]
    return literals
