"""The intermediate representation: all that front ends produce and the compiler reads.

A grammar has *terminals*, each a regular language of byte strings, and *rules*, each an
expression over terminals and rules. A terminal's language is a `Pattern`; a rule's body is an
`Expression`. Nothing here knows a tokenizer.

Invariants
----------
- Every terminal's language is free of the empty string after compilation: a pattern that matches
  the empty string is split by the compiler into "the rest" and an empty alternative in the rules.
- `Complement` occurs only as a direct part of an `Intersection` that has at least one other part;
  what is positive there bounds the language (to valid UTF-8, to one JSON string, ...).
- `CharacterClass` holds Unicode scalar values only (no surrogates) and stands for their UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

# ------------------------------------------------------------------------------------ patterns


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly these bytes (``b""`` is the empty string)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One Unicode scalar value from sorted, disjoint, inclusive ranges, in UTF-8.

    An empty tuple of ranges is the empty language.
    """

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class ByteClass:
    """One byte from sorted, disjoint, inclusive ranges."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after another; no parts is the empty string."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Any one of the parts; no parts is the empty language."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``body`` at least ``minimum`` and at most ``maximum`` times (``None``: any number).

    Large limits cost nothing: the compiler counts instead of unrolling.
    """

    body: Pattern
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Intersection:
    """Strings in the language of every part; parts may be `Complement`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Complement:
    """Byte strings not in the language of ``part``; see the module's invariants."""

    part: Pattern


@dataclass(frozen=True, slots=True)
class Automaton:
    """A nondeterministic byte automaton without empty edges.

    Parameters
    ----------
    n_states : int
    start : int
    accepting : frozenset of int
    edges : tuple of (source, low, high, target)
        An edge on every byte from ``low`` to ``high`` inclusive.
    """

    n_states: int
    start: int
    accepting: frozenset[int]
    edges: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """One special token of the vocabulary, never its spelling as text.

    It counts as one character that no text holds, and that `CharacterClass` doesn't have. In a grammar with
    special tokens, `ByteClass` and `Automaton` must not read the bytes F5 to FF, which stand for them.

    Parameters
    ----------
    name : str or int
        Its name in the vocabulary (``"<|eot_id|>"``), or its id. A token named like this is never read as text
        by the grammar, even if the vocabulary has text for it.
    """

    name: str | int


Pattern: TypeAlias = (
    Literal
    | CharacterClass
    | ByteClass
    | Concatenation
    | Alternation
    | Repeat
    | Intersection
    | Complement
    | Automaton
    | SpecialToken
)

HOLE = SpecialToken("\0")
"""A part of a grammar that is not written out: no token is it, but something may come there."""
EMPTY_STRING = Literal(b"")
EMPTY_LANGUAGE = Alternation(())
ANY_CHARACTER = CharacterClass(((0, 0xD7FF), (0xE000, 0x10FFFF)))
ANY_TEXT = Repeat(ANY_CHARACTER, 0, None)

# ------------------------------------------------------------------------------------ terminals


@dataclass(frozen=True, slots=True)
class Terminal:
    """A lexical element of a grammar.

    Parameters
    ----------
    pattern : Pattern
    name : str
        For people: shown by ``explain`` and in errors (``"string"``, ``"property 'age'"``).
    priority : int
        Where several terminals match the same bytes, only those of the highest priority count.
    greedy : bool
        The lexeme ends only where it cannot be continued. The compiler turns this on by itself
        where that provably changes nothing.
    pointer : str or None
        Place in the spec it comes from.
    not_before : Ranges
        Bytes of which none may follow the lexeme directly, as sorted, disjoint ranges: a keyword is none
        before a letter. Only for greedy terminals whose pattern is not an intersection.
    is_blank : bool
        It was ignored text before the rules said where it stands: explanations don't name it.
    """

    pattern: Pattern
    name: str
    priority: int = 0
    greedy: bool = False
    pointer: str | None = None
    not_before: Ranges = ()
    is_blank: bool = False


# ------------------------------------------------------------------------------------ rules


@dataclass(frozen=True, slots=True)
class TerminalReference:
    """Index into ``Grammar.terminals``."""

    index: int


@dataclass(frozen=True, slots=True)
class RuleReference:
    """Name of a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """The parts one after another; no parts is the empty string."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the parts; no parts is the empty language."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """``body`` at least ``minimum`` and at most ``maximum`` times (``None``: any number)."""

    body: Expression
    minimum: int
    maximum: int | None


KEEP, MORE, CLOSE, COUNT = -1, -2, -3, -4
"""Actions of edges of a `StateMachine` with a `Parameter`; a number from 0 on takes that element."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a text of a rule has had so far: which of its elements, each at most once, and how many.

    Costs grow with the values a text meets, not with those there are. Other elements may come any number of
    times and are only counted.

    Parameters
    ----------
    n_elements : int
        Elements that may be taken once, from 0 on.
    required : frozenset of int
    least : int
        Fewest elements, of either kind.
    most : int or None
        Most elements; ``None``: any number.
    needs : tuple of (int, tuple of int)
        Elements that are required where another is there. Together with ``most``, ``least`` must not be above
        the number of those required.
    """

    n_elements: int = 0
    required: frozenset[int] = frozenset()
    least: int = 0
    most: int | None = None
    needs: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class StateMachine:
    """An explicit automaton over references, for objects: linear where choices would be quadratic.

    Parameters
    ----------
    n_states : int
    start : int
    accepting : frozenset of int
    edges : tuple of (source, symbol, target)
        ``symbol`` is a reference, or ``None`` for an edge that reads nothing.
    parameter : Parameter or None
        With one, a text has a value that says which elements it has had, and edges depend on it. Such a machine
        has no edges that read nothing, none back to its start, and no symbol of it may match the empty string
        (an action `COUNT` aside). It has one state in which elements are taken after the first, and one
        behind each element: there, and where a first element is taken, it may also close or ends.
    actions : tuple of int
        What each edge does, where there is a parameter: `KEEP`; `COUNT` adds an element; a number takes that
        element; `MORE`: there are more elements, which one of them must be able to follow; `CLOSE`:
        there are no more, and enough. No edge is there if what it leads to can't go on. Edges that differ only in
        their actions are one.
    distinct : frozenset of int
        Terminals whose lexemes, where an edge adds or takes an element, must all differ within a text. An
        escape ``\\uXXXX`` of a character beyond ASCII, or two of surrogates, counts as that character.
    """

    n_states: int
    start: int
    accepting: frozenset[int]
    edges: tuple[tuple[int, TerminalReference | RuleReference | None, int], ...]
    parameter: Parameter | None = None
    actions: tuple[int, ...] = ()
    distinct: frozenset[int] = frozenset()


Expression: TypeAlias = TerminalReference | RuleReference | Sequence | Choice | Repetition | StateMachine


@dataclass(frozen=True, slots=True)
class Ignored:
    """Text allowed between lexemes and ignored by the rules.

    Parameters
    ----------
    terminals : tuple of int
        Indices of the ignored terminals. They may also be referred to by rules.
    leading, trailing : bool
        May ignored text stand before the first and after the last lexeme?
    most : int or None
        So many ignored lexemes may follow one another directly; ``None``: any number. With a limit, the
        terminals' own length limits bound the ignored text in a row.
    """

    terminals: tuple[int, ...] = ()
    leading: bool = False
    trailing: bool = False
    most: int | None = 1


@dataclass(frozen=True, slots=True)
class Indentation:
    """Indentation that counts, as in Python: lexemes without text where the blanks of lines change.

    The newline's lexeme is as long as can be, and where one that ends in blanks matches, other terminals of its
    priority don't count. Spaces, tabs and form feeds (back to column 0) after its last line feed are the
    indentation of the line to come; where anything else comes after that line feed (a comment at the end of the
    text) or there is none, the indentation stays. A line that is narrower than the block around it must be as
    wide as a block further out; no line has more than 8,190 columns.

    Rules must ask for what such texts can give, else the grammar is refused: a rule closes the indents that it
    opens, and the brackets in the sequence that opens them; an indent stands directly behind a newline, and a
    dedent behind a newline, another dedent, or what may end the text if a newline may stand there, too.

    Parameters
    ----------
    newline : int
        Terminal whose lexeme ends a line, such as ``(\\r?\\n[ \\t]*|#.*)+``: behind a line feed it must take any
        number of blanks. One that goes on over further lines makes blank lines and lines of comments no lines.
    indent, dedent : int
        Terminals that rules use and that have no text, whatever their patterns are: one ``indent`` stands after
        a ``newline`` whose indentation is wider than the line before, one ``dedent`` for each level that ends
        there and for each level open at the end of the text.
    brackets : tuple of (int, int)
        Terminals that open and close brackets. Between them ``newline`` is ignored.
    tab : int
        A tab goes to the next column that is a multiple of this.
    """

    newline: int
    indent: int
    dedent: int
    brackets: tuple[tuple[int, int], ...] = ()
    tab: int = 8


@dataclass(frozen=True, slots=True)
class Grammar:
    """A context-free grammar over terminals.

    Parameters
    ----------
    terminals : tuple of Terminal
    rules : mapping of str to Expression
        In order of first use; left recursion, nullable rules and ambiguity are fine.
    start : str
        Name of the start rule.
    ignored : Ignored
    pointers : mapping of str to str
        Place in the spec of each rule, for messages.
    indentation : Indentation or None
    is_apart : bool
        The start rule is a choice of rules, and each of them is read as if the others weren't there: only terminals of
        the same alternative compete for a lexeme.
    """

    terminals: tuple[Terminal, ...]
    rules: Mapping[str, Expression]
    start: str
    ignored: Ignored = Ignored()
    pointers: Mapping[str, str] = field(default_factory=dict)
    indentation: Indentation | None = None
    is_apart: bool = False

    @property
    def alternatives(self) -> tuple[RuleReference, ...]:
        """The rules that are read apart; the start rule where there are no others."""
        body = self.rules[self.start] if self.is_apart else None
        if not isinstance(body, Choice):
            return (RuleReference(self.start),)
        return tuple(part for part in body.parts if isinstance(part, RuleReference))


def pattern_grammar(pattern: Pattern, name: str = "pattern") -> Grammar:
    """Return the grammar whose only lexeme is ``pattern``."""
    return Grammar((Terminal(pattern, name),), {"start": TerminalReference(0)}, "start")
