"""Constructors of patterns that keep them small, and what can be read off a pattern.

`concatenate`, `alternate`, `repeat`, `intersect` return an equal language in fewer nodes: the time to
compile depends on their number. All functions take patterns over characters (as this front end makes
them), not `ByteClass`.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrain.grammars.ir import (
    ANY_TEXT,
    EMPTY_LANGUAGE,
    EMPTY_STRING,
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
)
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.ranges import contains, normalize
from constrain.grammars.regex.ranges import intersect as intersect_sets


def text_literal(text: str) -> Pattern:
    """Return the pattern of exactly ``text``; the empty language if it holds a surrogate."""
    try:
        return Literal(text.encode())
    except UnicodeEncodeError:
        return EMPTY_LANGUAGE


def character_class(ranges: Ranges) -> Pattern:
    """Return the pattern of one character from ``ranges``."""
    if not ranges:
        return EMPTY_LANGUAGE
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Literal(chr(ranges[0][0]).encode())
    return CharacterClass(ranges)


def single_characters(pattern: Pattern) -> Ranges | None:
    """Return the set whose one-character texts are the language of ``pattern``, if it is such a set."""
    if type(pattern) is CharacterClass:
        return pattern.ranges
    if type(pattern) is Literal and 0 < len(pattern.data) <= 4:
        text = pattern.data.decode()
        if len(text) == 1:
            return ((ord(text), ord(text)),)
    return None


# ------------------------------------------------------------------------------------ constructors


def concatenate(parts: Iterable[Pattern]) -> Pattern:
    """Return ``parts`` one after another."""
    out: list[Pattern] = []
    data = b""
    for part in parts:
        kind = type(part)
        if kind is Literal:
            data += part.data  # type: ignore[union-attr]
            continue
        if kind is Alternation and not part.parts:  # type: ignore[union-attr]
            return EMPTY_LANGUAGE
        inner = part.parts if kind is Concatenation else (part,)  # type: ignore[union-attr]
        for item in inner:
            if type(item) is Literal:
                data += item.data
                continue
            if data:
                out.append(Literal(data))
                data = b""
            out.append(item)
    if data:
        out.append(Literal(data))
    if not out:
        return EMPTY_STRING
    return out[0] if len(out) == 1 else Concatenation(tuple(out))


def alternate(parts: Iterable[Pattern]) -> Pattern:
    """Return any one of ``parts``; single characters become one class, an empty text a repeat.

    Equal parts are found only among literals: comparing deep patterns would take too long, and too much
    of the interpreter's stack.
    """
    items: list[Pattern] = []
    words: set[bytes] = set()
    single: list[tuple[int, int]] = []
    has_empty = False
    todo = list(parts)
    todo.reverse()
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is CharacterClass:
            single += item.ranges  # type: ignore[union-attr]
        elif kind is Literal:
            data = item.data  # type: ignore[union-attr]
            if not data:
                has_empty = True
            elif len(data) == 1:
                single.append((data[0], data[0]))
            elif data[0] >= 0xC2 and len(data) <= 4 and len(data.decode()) == 1:
                single.append((ord(data.decode()), ord(data.decode())))
            elif data not in words:
                words.add(data)
                items.append(item)
        elif kind is Alternation:
            todo += reversed(item.parts)  # type: ignore[union-attr]
        elif kind is Repeat and item.minimum == 0 and item.maximum == 1:  # type: ignore[union-attr]
            has_empty = True
            todo.append(item.body)  # type: ignore[union-attr]
        else:
            items.append(item)
    if single:
        items.append(character_class(normalize(single)))
    if not items:
        return EMPTY_STRING if has_empty else EMPTY_LANGUAGE
    body = items[0] if len(items) == 1 else Alternation(tuple(items))
    if not has_empty or any(type(item) is Repeat and item.minimum == 0 for item in items):
        return body
    return repeat(body, 0, 1)


def repeat(body: Pattern, minimum: int, maximum: int | None) -> Pattern:
    """Return ``body`` from ``minimum`` to ``maximum`` times; repeats of repeats become one if exact."""
    kind = type(body)
    if maximum == 0 or (kind is Literal and not body.data):  # type: ignore[union-attr]
        return EMPTY_STRING
    if kind is Alternation and not body.parts:  # type: ignore[union-attr]
        return EMPTY_LANGUAGE if minimum else EMPTY_STRING
    if minimum == 1 and maximum == 1:
        return body
    if maximum is None and minimum <= 1 and type(body) is Alternation:
        # (x+ | y)* is (x | y)*.
        parts = body.parts
        if any(type(part) is Repeat and part.minimum == 1 and part.maximum is None for part in parts):
            body = alternate(
                part.body if type(part) is Repeat and part.minimum == 1 and part.maximum is None else part
                for part in parts
            )
    if type(body) is Repeat:
        low, high = body.minimum, body.maximum
        # Totals are the union of [i * low, i * high] for i from minimum to maximum: one interval if each
        # meets the next, which is hardest for the first two.
        if minimum == maximum:
            is_interval = True
        elif minimum == 0:
            is_interval = low <= 1
        else:
            is_interval = high is None or (minimum + 1) * low <= minimum * high + 1
        if is_interval:
            most = None if high is None or maximum is None else high * maximum
            return Repeat(body.body, low * minimum, most)
    return Repeat(body, minimum, maximum)


def intersect(parts: Iterable[Pattern]) -> Pattern:
    """Return what is in every one of ``parts``, of which at least one is no `Complement`."""
    positive: list[Pattern] = []
    negative: list[Pattern] = []
    shared: Ranges | None = None
    for part in parts:
        for item in part.parts if type(part) is Intersection else (part,):
            if type(item) is Complement:
                if item.part == ANY_TEXT:
                    return EMPTY_LANGUAGE
                if item.part != EMPTY_LANGUAGE:
                    negative.append(item)
            elif item == EMPTY_LANGUAGE:
                return EMPTY_LANGUAGE
            elif type(item) is CharacterClass:
                shared = item.ranges if shared is None else intersect_sets(shared, item.ranges)
            elif item != ANY_TEXT:
                positive.append(item)
    if shared is not None:
        if not shared:
            return EMPTY_LANGUAGE
        positive.append(character_class(shared))
    if not positive:
        positive.append(ANY_TEXT)
    items = (*positive, *negative)
    fixed = next((item for item in positive if type(item) is Literal), None)
    if fixed is not None:
        text = fixed.data.decode()
        return fixed if all(accepts(item, text) for item in items) else EMPTY_LANGUAGE
    return items[0] if len(items) == 1 else Intersection(items)


# ------------------------------------------------------------------------------------ properties


def is_nullable(pattern: Pattern) -> bool:
    """Does the language hold the empty text?"""
    kind = type(pattern)
    if kind is Literal or kind is CharacterClass:  # as most are
        return kind is Literal and not pattern.data  # type: ignore[union-attr]
    return run(_is_nullable(pattern))


def _is_nullable(pattern: Pattern) -> Task[bool]:
    match pattern:
        case Literal(data):
            return not data
        case Repeat(body, minimum):
            return minimum == 0 or (yield _is_nullable(body))
        case Concatenation(parts) | Intersection(parts):
            for part in parts:
                kind = type(part)
                if kind is CharacterClass or (kind is Literal and part.data):  # type: ignore[union-attr]
                    return False
            for part in parts:
                if not (yield _is_nullable(part)):
                    return False
            return True
        case Alternation(parts):
            for part in parts:
                if (yield _is_nullable(part)):
                    return True
            return False
        case Complement(part):
            return not (yield _is_nullable(part))
        case Automaton():
            return pattern.start in pattern.accepting
        case _:
            return False


def lengths(pattern: Pattern) -> tuple[int, int | None]:
    """Return bounds on the number of characters of the members (the upper one may be ``None``)."""
    if type(pattern) is CharacterClass:
        return 1, 1
    return run(_lengths(pattern))


def _lengths(pattern: Pattern) -> Task[tuple[int, int | None]]:
    match pattern:
        case Literal(data):
            n = len(data.decode())
            return n, n
        case CharacterClass():
            return 1, 1
        case Repeat(body, minimum, maximum):
            low, high = yield _lengths(body)
            if high == 0 or maximum == 0:
                return 0, 0
            return low * minimum, None if high is None or maximum is None else high * maximum
        case Concatenation(parts):
            least: int = 0
            most: int | None = 0
            for part in parts:
                low, high = yield _lengths(part)
                least += low
                most = None if most is None or high is None else most + high
            return least, most
        case Alternation(parts):
            pairs = []
            for part in parts:
                pairs.append((yield _lengths(part)))
            if not pairs:
                return 0, 0
            highs = [high for _, high in pairs]
            return min(low for low, _ in pairs), None if None in highs else max(
                h for h in highs if h is not None
            )
        case Intersection(parts):
            least, most = 0, None
            for part in parts:
                if type(part) is not Complement:
                    low, high = yield _lengths(part)
                    least = max(least, low)
                    most = high if most is None else most if high is None else min(most, high)
            return least, most
        case _:
            return 0, None


def accepts(pattern: Pattern, text: str) -> bool:
    """Is ``text`` in the language? For short texts: cubic in their length."""
    return len(text) in run(ends(pattern, text, 0))


def ends(pattern: Pattern, text: str, start: int) -> Task[set[int]]:
    """Return where a match of ``pattern`` that begins at ``start`` may end."""
    places: set[int]
    match pattern:
        case Literal(data):
            word = data.decode()
            return {start + len(word)} if text.startswith(word, start) else set()
        case CharacterClass(ranges):
            return {start + 1} if start < len(text) and contains(ranges, ord(text[start])) else set()
        case Concatenation(parts):
            places = {start}
            for part in parts:
                places = yield _ends_of_all(part, text, places)
            return places
        case Alternation(parts):
            places = set()
            for part in parts:
                places |= yield ends(part, text, start)
            return places
        case Repeat(body, minimum, maximum):
            places = yield _ends_of_repeat(body, minimum, maximum, text, start)
            return places
        case Intersection(parts):
            places = set(range(start, len(text) + 1))
            for part in parts:
                places &= yield ends(part, text, start)
            return places
        case Complement(part):
            places = yield ends(part, text, start)
            return set(range(start, len(text) + 1)) - places
        case Automaton():
            return _ends_of_automaton(pattern, text, start)
        case _:
            raise TypeError(f"no pattern over characters: {pattern!r}")


def _ends_of_all(pattern: Pattern, text: str, starts: set[int]) -> Task[set[int]]:
    places: set[int] = set()
    for start in starts:
        places |= yield ends(pattern, text, start)
    return places


def _ends_of_repeat(
    body: Pattern, minimum: int, maximum: int | None, text: str, start: int
) -> Task[set[int]]:
    # The sets of places after k rounds repeat after at most 2^(n+1) rounds, in practice after n + 1: then
    # the rest of the rounds is skipped.
    places = {start}
    reached = {start} if minimum == 0 else set()
    seen: dict[frozenset[int], int] = {}
    done = 0
    while places and (maximum is None or done < maximum):
        key = frozenset(places)
        if key in seen:
            period = done - seen[key]
            if done >= minimum + period:
                break
            done += (minimum - done) // period * period if minimum > done else 0
            seen = {}
        else:
            seen[key] = done
        places = yield _ends_of_all(body, text, places)
        done += 1
        if done >= minimum:
            reached |= places
    return reached


def _ends_of_automaton(automaton: Automaton, text: str, start: int) -> set[int]:
    states = {automaton.start}
    places = {start} if states & automaton.accepting else set()
    for position in range(start, len(text)):
        for byte in text[position].encode():
            states = {
                target
                for source, low, high, target in automaton.edges
                if low <= byte <= high and source in states
            }
        if states & automaton.accepting:
            places.add(position + 1)
    return places
