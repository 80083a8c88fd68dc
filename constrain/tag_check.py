"""The check of structural tags whose schemas leave something to a check.

The output is taken apart as the grammar has it (`constrain.grammars.tags.build`): sets of places where a part may end.
What a schema describes is then asked of its check. Special tokens stand in the text under their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from constrain.base_spec import Spec
from constrain.checks import Check, Failure, Progress, Tally, Written, holds
from constrain.grammars.recursion import Task, run
from constrain.grammars.tags.build import first_words, trigger_of
from constrain.grammars.tags.formats import (
    Choice,
    Constant,
    Embedded,
    Format,
    FreeText,
    Marks,
    Repeated,
    SeparatedTags,
    Sequence,
    Tag,
    TriggeredTags,
    shown,
)

Ends: TypeAlias = tuple[Marks, ...]


@dataclass(frozen=True, slots=True)
class TagCheck:
    """Demands that the parts of a tagged output satisfy their schemas.

    Parameters
    ----------
    identity : hashable
        Checks of equal identity are equal.
    output : Format
    checks : mapping of int to tuple of Check
        By the identity of an embedded grammar, what its texts must satisfy.
    """

    identity: object
    output: Format
    checks: Mapping[int, tuple[Check, ...]]
    specs: dict[int, Spec] = field(default_factory=dict, repr=False)
    """By the identity of an embedded grammar, its spec: flattened once, when an output first has a text of it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TagCheck) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def begin(self, tally: Tally) -> Progress | None:
        """See `Check`."""
        return _Whole(self, tally, Written())

    def explain(self, data: bytes) -> Failure | None:
        """See `Check`: the place is where the part begins that fails first."""
        reading = _Reading(data, self)
        if reading.succeeds(self.output):
            return None
        start, end, check = reading.failed or (0, len(data), None)
        failure = None if check is None else check.explain(data[start:end])
        if failure is None:
            return Failure(start, "tags whose contents satisfy their schemas")
        return Failure(start + failure.offset, failure.expected, failure.pointer)

    def has(self, data: bytes) -> bool:
        """Do all parts of a whole output satisfy their schemas?"""
        return _Reading(data, self).succeeds(self.output)


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """Progress: the text is asked at its end."""

    check: TagCheck
    tally: Tally
    written: Written

    def read(self, data: bytes) -> Progress | None:
        """See `Progress`."""
        return _Whole(self.check, self.tally, self.written.and_then(data))

    def ends(self) -> bool:
        """See `Progress`."""
        return self.tally.ask(partial(self.check.has, bytes(self.written)))


class _Reading:
    """Takes one output apart.

    Attributes
    ----------
    failed : (int, int, Check) or None
        The first part that a check refused.
    """

    def __init__(self, data: bytes, check: TagCheck) -> None:
        self.failed: tuple[int, int, Check] | None = None
        self._data = data
        self._check = check
        self._embedded: dict[tuple[int, int], list[int]] = {}

    def succeeds(self, output: Format) -> bool:
        """May the whole text be taken apart into parts that satisfy their schemas?"""
        found: set[int] = run(self._after(output, {0}, ()))
        return len(self._data) in found

    def _after(self, output: Format, starts: set[int], ends: Ends) -> Task[set[int]]:
        """Return where ``output``, begun at one of ``starts``, and one of ``ends`` may end."""
        found: set[int] = set()
        if not starts:
            return found
        match output:
            case FreeText(excludes):
                return self._text_up_to(excludes, starts, ends) if ends else self._text(excludes, starts)
            case TriggeredTags():
                found = yield self._triggered(output, starts, ends)
                return found
            case Sequence(parts) if parts:
                for part in parts[:-1]:
                    starts = yield self._after(part, starts, ())
                found = yield self._after(parts[-1], starts, ends)
                return found
            case Choice(parts):
                for part in parts:
                    found |= yield self._after(part, starts, ends)
                return found
            case Tag(begin, content, own) if own or not ends:
                inside = yield self._after(content, self._fixed(begin, starts), own)
                return self._then(inside, ends)
            case Tag(begin, content):
                found = yield self._after(content, self._fixed(begin, starts), ends)
                return found
            case Constant(given):
                return self._then(self._fixed(given, starts), ends)
            case Embedded():
                reached = {end for start in starts for end in self._ends_of(output, start)}
                return self._then(reached, ends)
            case Repeated(body, minimum, maximum):
                repeated = yield self._repeated(body, minimum, maximum, starts)
                return self._then(repeated, ends)
            case SeparatedTags():
                return self._then((yield self._separated(output, starts)), ends)
            case _:
                return self._then(starts, ends)

    def _ends_of(self, embedded: Embedded, start: int) -> list[int]:
        """Return where the text of an embedded grammar may end, its checks respected."""
        key = id(embedded), start
        if key not in self._embedded:
            grammar = embedded.grammar
            spec = self._check.specs.get(id(grammar))
            if spec is None:
                spec = self._check.specs[id(grammar)] = Spec.from_grammar(grammar)
            rest = self._data[start:]
            checks = self._check.checks.get(id(grammar), ())
            found = []
            for end in spec.ends_within(rest):
                if holds(checks, rest[:end]):
                    found.append(start + end)
                elif self.failed is None:
                    self.failed = start, start + end, checks[0]
            self._embedded[key] = found
        return self._embedded[key]

    def _repeated(self, body: Format, minimum: int, maximum: int | None, starts: set[int]) -> Task[set[int]]:
        for _ in range(minimum):
            before = starts
            starts = yield self._after(body, starts, ())
            if starts == before:
                break
        found = set(starts)
        rounds = minimum
        while starts and (maximum is None or rounds < maximum):
            rounds += 1
            starts = (yield self._after(body, starts, ())) - found
            found |= starts
        return found

    def _triggered(self, output: TriggeredTags, starts: set[int], ends: Ends) -> Task[set[int]]:
        words = tuple(trigger for trigger in output.triggers if isinstance(trigger, str))
        cuts = (*words, *output.excludes, *first_words(ends))

        def tail(given: set[int]) -> set[int]:
            excludes = (*words, *output.excludes)
            return self._text_up_to(excludes, given, ends) if ends else self._text(excludes, given)

        reached: set[int] = set()
        new = starts
        while new:
            behind: set[int] = set()
            for tag in output.tags:
                trigger, rest = trigger_of(tag, output.triggers)
                inside = self._fixed(rest, self._segment(cuts, shown((trigger,)), new))
                behind |= yield self._after(tag.content, inside, tag.ends)
            new = behind - reached
            reached |= behind
            if output.stop_after_first:
                after = self._then(reached, ends)
                return after if output.at_least_one else after | tail(starts)
        return tail(reached if output.at_least_one else reached | starts)

    def _separated(self, output: SeparatedTags, starts: set[int]) -> Task[set[int]]:
        one = Choice(output.tags)
        reached: set[int] = yield self._after(one, starts, ())
        new = set() if output.stop_after_first else reached
        while new:
            new = (yield self._after(one, self._fixed(output.separator, new), ())) - reached
            reached |= new
        return reached if output.at_least_one else reached | starts

    # -------------------------------------------------------------------------------- text

    def _fixed(self, given: Marks, starts: set[int]) -> set[int]:
        word = shown(given).encode()
        return {start + len(word) for start in starts if self._data.startswith(word, start)}

    def _then(self, starts: set[int], ends: Ends) -> set[int]:
        return set().union(*(self._fixed(end, starts) for end in ends)) if ends else starts

    def _text(self, excludes: Iterable[str], starts: set[int]) -> set[int]:
        """Return where free text may end that holds none of some words."""
        found: set[int] = set()
        for start in starts:
            found.update(range(start, self._first(excludes, start) or len(self._data) + 1))
        return found

    def _text_up_to(self, excludes: tuple[str, ...], starts: set[int], ends: Ends) -> set[int]:
        cuts = (*first_words(ends), *excludes)
        found: set[int] = set()
        for end in ends:
            if end:
                found |= self._fixed(end[1:], self._segment(cuts, shown(end[:1]), starts))
            else:
                found |= self._text(cuts, starts)
        return found

    def _segment(self, cuts: tuple[str, ...], end: str, starts: set[int]) -> set[int]:
        """Return where text ends whose end is the first complete word among ``cuts`` and ``end``, if that is ``end``."""
        word = end.encode()
        found = set()
        for start in starts:
            first = self._first((*cuts, end), start)
            if first is not None and self._data.endswith(word, start, first):
                found.add(first)
        return found

    def _first(self, words: Iterable[str], start: int) -> int | None:
        """Return where the first of some words that stands behind ``start`` is complete."""
        places = []
        for word in words:
            data = word.encode()
            at = self._data.find(data, start)
            if at >= 0:
                places.append(at + len(data))
        return min(places, default=None)
