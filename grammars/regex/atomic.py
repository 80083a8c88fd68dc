"""Possessive repeats and atomic groups, where they are regular by a simple argument.

``(?>X)`` takes the first match of ``X`` that the search order gives and never another. Call ``X``
*certain* if no two matches of it can start at one place with different ends (no member is a proper
prefix of another). Then

- ``(?>X)`` is ``X``;
- ``(?>A|B|...)`` is ``(?>A) | (?!A)(?>B) | ...``;
- ``X{m,n}+`` is ``X{m,n-1}(?!X) | X{n}``, because the number of rounds is the only freedom;
- ``(?>XY)`` is ``X(?>Y)``.

Certain are, among others: texts of one length, alternatives that begin with different characters, what
ends with the first character of some kind, and, by these rules, possessive runs of one kind of character.

Anything else is refused rather than approximated.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrain.grammars.ir import Alternation, CharacterClass, Concatenation, Literal, Pattern, Ranges, Repeat
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex import nodes
from constrain.grammars.regex.build import lengths, single_characters
from constrain.grammars.regex.nodes import Look, Near, Node, Tree, choice, look, loop, sequence, tree_lengths
from constrain.grammars.regex.ranges import NONE, is_disjoint, normalize, union


def possessive_loop(body: Tree, minimum: int, maximum: int | None) -> Tree | None:
    """Return ``body{minimum,maximum}+`` without possessiveness, or ``None`` where that is not known."""
    if not _is_certain_tree(body):
        return None
    least, most = tree_lengths(body)
    if most == 0:
        # Whether more rounds of nothing hold is settled by the first.
        return loop(body, minimum, maximum)
    if least == 0:
        return None
    stop = look(True, True, body, 0)
    if maximum is None:
        return sequence((loop(body, minimum, None), stop))
    full = loop(body, maximum, maximum)
    if minimum == maximum:
        return full
    return choice((full, sequence((loop(body, minimum, maximum - 1), stop))))


def atomic_group(alternatives: Sequence[Tree], keeps_order: bool) -> Tree | None:
    """Return ``(?>...)`` over ``alternatives`` as an ordinary tree, or ``None`` where that is not known.

    Parameters
    ----------
    alternatives : sequence of Tree
        In the order of the source.
    keeps_order : bool
        Nothing inside is lazy or tries the empty text first: repeats prefer more rounds.
    """
    out: list[Tree] = []
    earlier: list[Tree] = []
    for alternative in alternatives:
        atomic = _atomic(alternative, keeps_order)
        if atomic is None:
            return None
        out.append(sequence((*earlier, atomic)))
        if len(alternatives) > 1:
            earlier.append(look(True, True, alternative, 0))
    return choice(out)


def _atomic(tree: Tree, keeps_order: bool) -> Tree | None:
    is_sequence = isinstance(tree, nodes.Sequence | Concatenation)
    parts: list[Tree] = list(tree.parts) if is_sequence else [tree]  # type: ignore[union-attr]
    *init, last = parts
    if not all(_is_certain_tree(part) for part in init):
        return tree if not isinstance(tree, Node) and is_certain(tree) else None
    if _is_certain_tree(last):
        return tree
    if type(last) is Repeat and keeps_order:
        end = possessive_loop(last.body, last.minimum, last.maximum)
        if end is not None:
            return sequence((*init, end))
    return tree if not isinstance(tree, Node) and is_certain(tree) else None


def _is_certain_tree(tree: Tree) -> bool:
    return run(_is_certain_task(tree))


def _is_certain_task(tree: Tree) -> Task[bool]:
    match tree:
        case Near() | Look():
            return True
        case nodes.Sequence(parts):
            for index, part in enumerate(parts):
                after = parts[index + 1] if index + 1 < len(parts) else None
                if not ((yield _is_certain_task(part)) or _ends_where_it_must(part, after)):
                    return False
            return True
        case nodes.Choice(parts):
            for part in parts:
                if not (yield _is_certain_task(part)):
                    return False
            return _begin_apart([run(_first(part)) for part in parts])
        case nodes.Loop() | nodes.Captured() | nodes.Reference():
            return False
        case _:
            return is_certain(tree)


def _ends_where_it_must(part: Tree, after: Tree | None) -> bool:
    """Is ``part`` a run of characters of one set, and ``after`` the condition that no more of them follow?"""
    if not isinstance(part, Repeat) or part.maximum is not None or not isinstance(after, Near):
        return False
    single = single_characters(part.body)
    return single is not None and all(is_disjoint(single, case.after) for case in after.cases)


def _begin_apart(firsts: list[Ranges | None]) -> bool:
    """Have the sets no character in common? ``None``: unknown, or the empty text is possible."""
    seen: Ranges = NONE
    for ranges in firsts:
        if ranges is None or not is_disjoint(seen, ranges):
            return False
        seen = union(seen, ranges)
    return True


def _first(tree: Tree) -> Task[Ranges | None]:
    """Return the characters that members begin with; ``None`` if unknown, or a member may be empty."""
    match tree:
        case Literal(data):
            return ((ord(data.decode()[0]),) * 2,) if data else None
        case CharacterClass(ranges):
            return ranges
        case Repeat(body, minimum) | nodes.Loop(body, minimum):
            found: Ranges | None = (yield _first(body)) if minimum else None
            return found
        case Concatenation(parts) | nodes.Sequence(parts):
            for part in parts:
                if not isinstance(part, Near | Look):
                    found = yield _first(part)
                    return found
            return None
        case Alternation(parts) | nodes.Choice(parts):
            sets: list[Ranges] = []
            for part in parts:
                found = yield _first(part)
                if found is None:
                    return None
                sets.append(found)
            return normalize(pair for ranges in sets for pair in ranges)
        case _:
            return None


def is_certain(pattern: Pattern) -> bool:
    """Is no member a proper prefix of another? ``False`` may also mean "not known"."""
    least, most = lengths(pattern)
    if least == most:
        return True
    if type(pattern) is Alternation:
        return all(is_certain(part) for part in pattern.parts) and _begin_apart(
            [run(_first(part)) for part in pattern.parts]
        )
    if type(pattern) is not Concatenation:
        return False
    if all(is_certain(part) for part in pattern.parts):
        return True
    # One last character that nothing before it can hold: the first such character ends every member.
    *init, last = pattern.parts
    if type(last) is Literal:
        text = last.data.decode()
        end: Ranges = ((ord(text[-1]), ord(text[-1])),)
        init.append(Literal(text[:-1].encode()))
    elif type(last) is CharacterClass:
        end = last.ranges
    else:
        return False
    alphabets = [run(_alphabet(part)) for part in init]
    return all(ranges is not None and is_disjoint(end, ranges) for ranges in alphabets)


def _alphabet(pattern: Pattern) -> Task[Ranges | None]:
    """Return the characters that occur in members, or ``None`` if that is not known."""
    match pattern:
        case Literal(data):
            return normalize((ord(character), ord(character)) for character in data.decode())
        case CharacterClass(ranges):
            return ranges
        case Repeat(body):
            repeated: Ranges | None = yield _alphabet(body)
            return repeated
        case Concatenation(parts) | Alternation(parts):
            pairs: list[tuple[int, int]] = []
            for part in parts:
                ranges = yield _alphabet(part)
                if ranges is None:
                    return None
                pairs += ranges
            return normalize(pairs)
        case _:
            return None
