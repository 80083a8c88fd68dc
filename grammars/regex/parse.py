"""Regular expressions as patterns: Python's dialect as a whole text, ECMA-262's as a search."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import ANY_TEXT, Concatenation, Pattern, Repeat
from constrain.grammars.limits import Watch
from constrain.grammars.regex.build import alternate, concatenate, is_nullable, repeat
from constrain.grammars.regex.ecma_dialect import EcmaReader
from constrain.grammars.regex.lookaround import lower
from constrain.grammars.regex.nodes import AT_END, AT_START, Choice, Node, Sequence, Tree, sequence
from constrain.grammars.regex.python_dialect import FLAGS, PythonReader

_REMEMBERED = 4096
_remembered: OrderedDict[str, Pattern] = OrderedDict()
_lock = Lock()


def parse_regex(pattern: str, flags: str = "", *, watch: Watch) -> Pattern:
    """Return the texts that `re.fullmatch` takes for ``pattern``.

    Parameters
    ----------
    pattern : str
        Syntax of `re` for text, with ``\\p{...}`` and ``\\P{...}`` for Unicode properties added.
    flags : str
        Letters from ``"imsx"``, as `re.I`, `re.M`, `re.S`, `re.X`.
    watch : Watch

    Raises
    ------
    SpecError
        A malformed pattern or an unknown flag; with ``source`` and ``offset``.
    UnsupportedFeatureError
        Back-references, conditionals, and atomic groups that may cut off matches.
    LimitExceededError
        Groups nested too deeply, or an automaton or time too large.
    """
    bits = 0
    for letter in flags:
        if letter not in "imsx":
            raise SpecError(f"{letter!r} is no flag of regex().", hint="The flags are 'i', 'm', 's' and 'x'.")
        bits |= FLAGS[letter]
    return lower(PythonReader(pattern, bits, watch).read(), pattern, watch)


def parse_ecma(pattern: str, *, watch: Watch, pointer: str | None = None) -> Pattern:
    """Return the texts in which the ECMA-262 pattern ``pattern`` matches somewhere.

    This is what JSON Schema's ``pattern`` means (draft 2020-12, Core 6.4: not anchored, ``u`` flag).

    Parameters
    ----------
    pattern : str
    watch : Watch
    pointer : str or None
        Place of the pattern in the schema, for errors.

    Raises
    ------
    SpecError
        A malformed pattern; with ``source``, ``offset`` and ``pointer``.
    UnsupportedFeatureError
        Back-references.
    LimitExceededError
        As for `parse_regex`.
    """
    with _lock:
        found = _remembered.get(pattern)
        if found is not None:
            _remembered.move_to_end(pattern)
            return found
    found = search_of(EcmaReader(pattern, 0, watch, pointer).read(), pattern, watch)
    with _lock:
        _remembered[pattern] = found
        if len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)
    return found


def search_of(tree: Tree, source: str, watch: Watch) -> Pattern:
    """Return the texts that hold a match of ``tree``, which was read from ``source``."""
    alternatives = tree.parts if isinstance(tree, Choice) else (tree,)
    found = []
    for alternative in alternatives:
        parts: list[Tree] = list(alternative.parts) if isinstance(alternative, Sequence) else [alternative]
        # By far the most patterns are anchored at their ends and nowhere else.
        if parts[0] == AT_START:
            del parts[0]
        else:
            _open_left(parts)
        if parts and parts[-1] == AT_END:
            del parts[-1]
        else:
            _open_right(parts)
        found.append(lower(sequence(parts), source, watch))
    return ANY_TEXT if ANY_TEXT in found else alternate(found)


def _open_left(parts: list[Tree]) -> None:
    """Let any text come before ``parts``."""
    while parts:
        pattern = parts[0]
        if isinstance(pattern, Node):
            break
        del parts[0]
        rest = list(pattern.parts if isinstance(pattern, Concatenation) else (pattern,))
        while rest and is_nullable(rest[0]):
            del rest[0]
        if rest:
            parts.insert(0, concatenate((_fewest(rest[0]), *rest[1:])))
            break
    parts.insert(0, ANY_TEXT)


def _open_right(parts: list[Tree]) -> None:
    """Let any text come after ``parts``."""
    while parts:
        pattern = parts[-1]
        if isinstance(pattern, Node):
            break
        del parts[-1]
        if pattern == ANY_TEXT:
            break
        rest = list(pattern.parts if isinstance(pattern, Concatenation) else (pattern,))
        while rest and is_nullable(rest[-1]):
            del rest[-1]
        if rest:
            parts.append(concatenate((*rest[:-1], _fewest(rest[-1]))))
            break
    parts.append(ANY_TEXT)


def _fewest(pattern: Pattern) -> Pattern:
    """Return what of a repeat beside any text is not covered by it."""
    if isinstance(pattern, Repeat):
        return repeat(pattern.body, pattern.minimum, pattern.minimum)
    return pattern
