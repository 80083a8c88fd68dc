"""The keys of additional properties, split into classes that are described by the same schemas.

A class is given by which patterns (and which schemas of keys) its keys match and which they don't.
Classes are disjoint, and no class has a key that has a place of its own in the object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import Alternation, Complement, Pattern, TerminalReference
from constrain.grammars.json_schema import strings, terminals
from constrain.grammars.json_schema.cursor import shortened
from constrain.grammars.json_schema.facts import STRING, Facts, Keys, Location
from constrain.grammars.json_schema.scalars import flat_intersection, string_pattern, text_of
from constrain.grammars.json_schema.values import listed_strings

if TYPE_CHECKING:
    from constrain.grammars.json_schema.builder import Builder

# A pattern's source, or the identity of a schema of keys.
Test: TypeAlias = str | int
# Which tests hold, and which don't.
Answers: TypeAlias = tuple[tuple[Test, bool], ...]

_MOST_CLASSES = 128


class KeyClass(NamedTuple):
    """Keys that are described alike.

    ``locations`` are the schemas of their values; ``counted`` says for each of ``Facts.members``, and each
    of its cases, whether it speaks of them.
    """

    answers: Answers
    locations: tuple[Location, ...]
    counted: tuple[tuple[bool, ...], ...]


def key_classes(builder: Builder, facts: Facts, pointers: dict[str, str]) -> list[KeyClass]:
    """Return the classes of keys that have no place of their own.

    ``pointers`` is filled with the place of each pattern.
    """
    for part in facts.objects:
        for source in part.patterns:
            pointers.setdefault(source, f"{part.pointer}/patternProperties")
    schemas: dict[int, None] = {}
    for counted in facts.members:
        for keys, _ in counted.cases:
            for source in (*((keys.pattern,) if keys.pattern is not None else ()), *keys.patterns):
                pointers.setdefault(source, counted.pointer)
            if keys.schema is not None:
                schemas[id(keys.schema.schema)] = None
    tests: list[Test] = [*pointers, *schemas]
    classes = [_class(facts, answers) for answers in _combinations(builder, tests, pointers)]
    for test in tests:
        classes = _without(classes, test)
    return classes


def _combinations(builder: Builder, tests: list[Test], pointers: dict[str, str]) -> list[Answers]:
    """Return which tests may hold together, and be the only ones."""
    found: list[Answers] = [()]
    for test in tests:
        found = [
            answers
            for before in found
            for holds in (True, False)
            if not _is_empty(builder, answers := (*before, (test, holds)), pointers)
        ]
        if len(found) > _MOST_CLASSES:
            raise UnsupportedFeatureError(
                "patternProperties",
                pointer=next(iter(pointers.values())),
                reason="with so many overlapping patterns for one object is not supported",
                hint="Join patterns that have the same schema, or let them match different names.",
            )
    return found


def _is_empty(builder: Builder, answers: Answers, pointers: dict[str, str]) -> bool:
    by_answer: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for test, holds in answers:
        if isinstance(test, str):
            by_answer[holds].append((test, pointers[test]))
    if len(answers) == 1 and by_answer[True]:
        return False
    return builder.has_no_text(by_answer[True], by_answer[False])


def _class(facts: Facts, answers: Answers) -> KeyClass:
    holds = dict(answers)
    locations: list[Location] = []
    for part in facts.objects:
        own = [
            Location(schema, f"{part.pointer}/patternProperties/{source}", part.scope, ())
            for source, schema in part.patterns.items()
            if holds[source]
        ]
        if not own and part.additional is not None:
            own.append(Location(part.additional, f"{part.pointer}/{part.rest_key}", part.scope, ()))
        locations += own
    locations = [location for location in locations if location.schema is not True]
    counted = tuple(tuple(_has(case.keys, holds) for case in c.cases) for c in facts.members)
    return KeyClass(answers, tuple(locations), counted)


def _has(keys: Keys, holds: dict[Test, bool]) -> bool:
    if keys.name is not None:
        return False
    if keys.pattern is not None:
        return holds[keys.pattern]
    if keys.schema is not None:
        return holds[id(keys.schema.schema)]
    return not any(holds[source] for source in keys.patterns)


def _without(classes: list[KeyClass], test: Test) -> list[KeyClass]:
    """Drop ``test`` if no class depends on it."""
    by_rest: dict[Answers, list[KeyClass]] = {}
    for one in classes:
        by_rest.setdefault(tuple(a for a in one.answers if a[0] != test), []).append(one)
    joined = []
    for rest, several in by_rest.items():
        schemas = {tuple(id(location.schema) for location in one.locations) for one in several}
        if len(schemas) > 1 or len({one.counted for one in several}) > 1:
            return classes
        joined.append(several[0]._replace(answers=rest))
    return joined


def key_terminal(
    builder: Builder,
    facts: Facts,
    one: KeyClass,
    known: Iterable[str],
    pointers: dict[str, str],
    *,
    is_distinct: bool,
) -> TerminalReference | None:
    """Return the terminal of the keys of a class, none of which is ``known``; ``None`` if it has none.

    Each is written in one spelling if ``is_distinct``.
    """
    names = [name for name in known if _may_have(builder, one, name, pointers)]
    allowed = tuple(id(location.schema) for location in facts.names)
    key = ("key class", one.answers, allowed, tuple(names), is_distinct)
    reference = builder.known_terminal(key)
    if reference is not None:
        return reference
    parts: list[Pattern] = []
    shown: list[str] = []
    if is_distinct:
        parts += strings.in_one_spelling(names)
    elif names:
        parts.append(strings.excluding(names))
    if facts.names:
        pattern = _strings_of(builder, facts.names)
        if pattern is None:
            return None
        parts.append(pattern)
    for test, holds in one.answers:
        if isinstance(test, str):
            part = text_of(test, builder.watch, pointers[test]).quoted
            parts.append(part if holds else Complement(part))
            shown.append(f"{'' if holds else 'not '}matching {shortened(test)}")
            continue
        schema = next(
            case.keys.schema
            for counted in facts.members
            for case in counted.cases
            if case.keys.schema is not None and id(case.keys.schema.schema) == test
        )
        schema = schema if holds else builder.derived.failing(schema)
        pattern = _strings_of(builder, (schema,))
        if pattern is None:
            return None
        parts.append(pattern)
    parts = [part for part in parts if part is not strings.STRING]
    if not parts:
        return terminals.STRING
    if all(isinstance(part, Complement) for part in parts):
        parts.insert(0, strings.STRING)
    whole = parts[0] if len(parts) == 1 else flat_intersection(parts)
    name = " and ".join(["name of an additional property", *shown])
    return builder.terminal(key, whole, name)


def _may_have(builder: Builder, one: KeyClass, name: str, pointers: dict[str, str]) -> bool:
    """May ``name`` be in the class, as far as its patterns say?"""
    return all(
        not isinstance(test, str) or builder.matches(test, pointers[test], name) == holds
        for test, holds in one.answers
    )


def _strings_of(builder: Builder, locations: Iterable[Location]) -> Pattern | None:
    """Return the JSON strings that several schemas allow; ``None`` if there is none."""
    patterns = []
    for facts in builder.expand(builder.facts(locations)):
        if not facts.types & STRING:
            continue
        builder.check_supported(facts, STRING)
        if facts.values is not None:
            pattern = listed_strings(builder, facts)
        else:
            pattern = string_pattern(builder, facts)
        if pattern is not None:
            patterns.append(pattern)
    if not patterns:
        return None
    return patterns[0] if len(patterns) == 1 else Alternation(tuple(patterns))


def listed_names(builder: Builder, facts: Facts) -> list[str] | None:
    """Return the names that ``propertyNames`` lists, in order; ``None`` if it lists none."""
    names: dict[str, None] = {}
    for branch in builder.expand(builder.facts(facts.names)):
        if not branch.types & STRING:
            continue
        if branch.values is None:
            return None
        names.update(dict.fromkeys(value for value in branch.values if isinstance(value, str)))
    return list(names)
