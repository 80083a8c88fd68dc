"""From facts to terminals and rules.

A value may be several things: its *alternatives* are the terminals and rules of which one must stand
there. Objects and arrays become rules whose bodies are built later, from a queue, so that nesting costs
no stack and recursive schemas end. Equal terminals are made once; rules are shared by all places that
are described by the same schemas.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.ir import (
    ANY_TEXT,
    Choice,
    Expression,
    Grammar,
    Intersection,
    Literal,
    Pattern,
    RuleReference,
    Terminal,
    TerminalReference,
)
from constrain.grammars.json_schema import strings, terminals, unevaluated
from constrain.grammars.json_schema.arrays import array_body
from constrain.grammars.json_schema.branches import Brancher
from constrain.grammars.json_schema.cursor import Cursor, LeavesOpen
from constrain.grammars.json_schema.derived import DerivedSchemas
from constrain.grammars.json_schema.drafts import HANDLERS
from constrain.grammars.json_schema.dynamic import DynamicReferences
from constrain.grammars.json_schema.facts import (
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Facts,
    Json,
    Location,
    Scope,
)
from constrain.grammars.json_schema.instances import may_be
from constrain.grammars.json_schema.keywords import Handler
from constrain.grammars.json_schema.objects import object_body
from constrain.grammars.json_schema.options import SchemaOptions
from constrain.grammars.json_schema.resolve import MissingDocument, References
from constrain.grammars.json_schema.scalars import number, string, text_of
from constrain.grammars.json_schema.values import constants, merge_constants, types_of
from constrain.grammars.limits import Watch
from constrain.grammars.regex.back_references import searches
from constrain.grammars.regex.emptiness import is_empty

Alternatives: TypeAlias = tuple[TerminalReference | RuleReference, ...]

EMPTY_CHOICE = Choice(())
_REFERENCES = tuple(TerminalReference(i) for i in range(512))  # those of nearly every schema
_ANYTHING: Alternatives = (terminals.ANY_VALUE,)
# Features that no check decides.
_UNDECIDED = frozenset(("x-grammar", "format idn-hostname", "lone surrogate"))
_MOST_EMPTINESS = 1_000  # questions whether patterns exclude each other
_OF_TYPE: dict[str | None, Alternatives] = {
    "string": (terminals.STRING,),
    "number": (terminals.NUMBER,),
    "boolean": (terminals.BOOLEAN,),
    "null": (terminals.NULL,),
}
_OBSERVING = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_PLACE = ("schema", "pointer", "scope", "chain", "is_silent", "stack")


def _no_schema(schema: Json, pointer: str) -> SpecError:
    return SpecError(f"expected a schema (an object, true or false), found {schema!r:.60}.", pointer=pointer)


def _type_alone(schema: Json, handlers: Mapping[Json, Handler]) -> str | None:
    """Return the type that a schema names if no other keyword of it counts.

    What such a value may be doesn't depend on the place, and half of all parts of schemas are like that.
    """
    if type(schema) is not dict:
        return None
    name = schema.get("type")
    if type(name) is not str:
        return None
    if len(schema) > 1:
        for keyword in schema:
            if keyword in handlers and keyword != "type":
                return None
    return name


@lru_cache(maxsize=8192)
def _key_terminal(name: str) -> Terminal:
    """Return the terminal of a property's name; names repeat across schemas."""
    return Terminal(strings.canonical(name), f"property {name!r}")


def is_undecided(error: Exception) -> bool:
    """Is what an error refuses beyond checks, too?"""
    return isinstance(error, MissingDocument) or (
        isinstance(error, UnsupportedFeatureError) and error.feature in _UNDECIDED
    )


class Builder:
    """Builds the terminals and rules of one schema.

    Parameters
    ----------
    root : dict or bool
    draft : int
    options : SchemaOptions
    watch : Watch
    common : tuple of Terminal
        The grammar's first terminals.
    tracks : bool
        See `Cursor`.
    skips_unevaluated : bool
        See `Cursor`.
    is_dynamic : bool
        Follow references that name something else by how their place was come to.
    """

    def __init__(
        self,
        root: Json,
        draft: int,
        options: SchemaOptions,
        watch: Watch,
        common: tuple[Terminal, ...],
        *,
        tracks: bool = False,
        skips_unevaluated: bool = False,
        is_dynamic: bool = False,
    ) -> None:
        self.options = options
        self.watch = watch
        self.terminals = list(common)
        self.rules: dict[str, Expression] = {}
        self.pointers: dict[str, str] = {}
        self.dropped: dict[str, None] = {}
        self.left_open: dict[str, None] = {}
        self.empty: list[tuple[str, str]] = []
        self.reasons: dict[str, tuple[str, str]] = {}
        self.needs: dict[str, list[Alternatives]] = {}
        self.uses_any = False
        # Grammars in the place of terminals.
        self.inner: dict[int, Grammar] = {}
        self._draft = draft
        self._references = (
            DynamicReferences(root, draft, options.registry, watch)
            if is_dynamic
            else References(root, draft, options.registry)
        )
        self.derived = DerivedSchemas(self._read_alone)
        self._brancher = Brancher(self)
        self._cursor = Cursor(
            self._references, draft, watch, self.dropped, options.formats, self.derived, tracks
        )
        self._cursor.skips_unevaluated = skips_unevaluated
        self._cursor.may_leave_open = self.may_leave_open
        self._handlers = HANDLERS[draft]
        self._id = "id" if draft == 4 else "$id"
        self._terminal_of: dict[Hashable, TerminalReference] = {}
        self._key_of: dict[str, TerminalReference] = {}
        self._values: dict[int, Alternatives] = {}
        self._of_type: dict[str | None, Alternatives] = dict(_OF_TYPE)
        self._conjunctions: dict[tuple[int, ...], Alternatives] = {}
        self._rule_of: dict[tuple[str, tuple[Hashable, ...]], RuleReference] = {}
        self._matches: dict[tuple[str, str], bool] = {}
        self._has_no_text: dict[tuple[frozenset[str], frozenset[str]], bool] = {}
        self._n_rules: dict[str, int] = {}
        self._queue: list[tuple[str, str, Facts]] = []

    # ------------------------------------------------------------------------------ schemas

    def value(self, schema: Json, pointer: str, scope: Scope) -> Alternatives:
        """Return the alternatives of a value that ``schema`` describes; none if nothing satisfies it."""
        if schema is True:
            self.uses_any = True
            return _ANYTHING
        known = self._values.get(id(schema))
        if known is None:
            name = _type_alone(schema, self._handlers)
            known = self._of_type.get(name)
            if known is None:
                facts = Facts()
                self.read(facts, Location(schema, pointer, scope, ()))
                known = self.alternatives(facts)
                if name is not None:
                    self._of_type[name] = known
            self._values[id(schema)] = known
        return known

    def conjunction(self, locations: Iterable[Location]) -> Alternatives:
        """Return the alternatives of a value that several schemas describe at once."""
        locations = [location for location in locations if location.schema is not True]
        if len(locations) == 1:
            return self.value(locations[0].schema, locations[0].pointer, locations[0].scope)
        key = tuple([id(location.schema) for location in locations])
        known = self._conjunctions.get(key)
        if known is None:
            known = self._conjunctions[key] = self.alternatives(self.facts(locations))
        return known

    def facts(self, locations: Iterable[Location]) -> Facts:
        """Return what several schemas say about one value."""
        facts = Facts()
        for location in locations:
            self.read(facts, location)
        return facts

    def read(self, facts: Facts, location: Location) -> None:
        """Narrow ``facts`` by a schema and by all that it refers to without leaving the value."""
        at = self._cursor
        handlers = self._handlers
        stack = at.stack
        tracks = at.tracks
        stack.append(location)
        while stack:
            schema, pointer, scope, chain, is_silent = stack.pop()
            if not isinstance(schema, dict):
                if schema is True:
                    continue
                if schema is not False:
                    raise _no_schema(schema, pointer)
                facts.narrow(0, "the schema false allows nothing", pointer)
                continue
            identity: Hashable = id(schema)
            if chain and identity in chain:
                raise SpecError(
                    "the schema leads back to itself without entering a property or an item.", pointer=pointer
                )
            if tracks:
                identity = (identity, chain, is_silent)
            if identity in facts.key:
                continue
            self.watch.step(pointer)
            if len(pointer) > self.watch.limits.nesting:
                self.watch.at_most("nesting", pointer.count("/"), pointer[:80] + "...")
            at.schema, at.pointer, at.chain, at.is_silent = schema, pointer, chain, is_silent
            at.scope = self._references.scope_of(schema, scope) if self._id in schema else scope
            if self._draft <= 7 and "$ref" in schema:
                self._read_reference_alone(facts, at)
                continue
            if tracks and not _OBSERVING.isdisjoint(schema):
                at.observers.add(id(schema))
            is_assertion = False
            for keyword, value in schema.items():
                if keyword in handlers:
                    handlers[keyword](facts, value, at)
                    is_assertion = is_assertion or keyword != "$ref"
            if is_assertion:
                if not facts.key:
                    facts.pointer = pointer
                facts.key += (identity,)

    def _read_reference_alone(self, facts: Facts, at: Cursor) -> None:
        """Read ``$ref`` in a draft where it makes its siblings count for nothing."""
        for keyword in at.schema:
            if keyword == "$ref":
                self._handlers["$ref"](facts, at.schema["$ref"], at)
            elif keyword in self._handlers:
                self.dropped[f"{at.pointer}/{keyword}"] = None

    def _read_alone(self, location: Location) -> tuple[Facts, list[Location]]:
        """Return what a schema says itself, and the schemas of the same value that it wants to hold."""
        at = self._cursor
        saved = {name: getattr(at, name) for name in _PLACE}
        facts = Facts()
        at.stack = []
        try:
            schema, pointer = location.schema, location.pointer
            if not isinstance(schema, dict):
                raise _no_schema(schema, pointer)
            self.watch.step(pointer, 16)
            self.watch.at_most("nesting", pointer.count("/"), pointer[:80] + "...")
            at.schema, at.pointer, at.chain, at.is_silent = schema, pointer, (), True
            at.scope = (
                self._references.scope_of(schema, location.scope) if self._id in schema else location.scope
            )
            if self._draft <= 7 and "$ref" in schema:
                self._read_reference_alone(facts, at)
            else:
                for keyword, value in schema.items():
                    handler = self._handlers.get(keyword)
                    if handler is not None:
                        handler(facts, value, at)
            return facts, at.stack
        finally:
            for name, value in saved.items():
                setattr(at, name, value)

    def expand(self, facts: Facts, *, is_exact: bool = True) -> list[Facts]:
        """Return facts without groups of branches whose union is ``facts``; see `branches`."""
        if not facts.groups:
            return [unevaluated.resolved(self, facts)]
        return [unevaluated.resolved(self, found) for found in self._brancher.expand(facts, is_exact)]

    # ------------------------------------------------------------------------------ values

    def alternatives(self, facts: Facts) -> Alternatives:
        """Return what a value that ``facts`` describe may be."""
        if not facts.groups:
            if self._cursor.tracks:
                facts = unevaluated.resolved(self, facts)
            found = self._alternatives(facts) if facts.types else ()
        else:
            several = merge_constants(self, self.expand(facts))
            found = tuple(
                dict.fromkeys(reference for one in several for reference in self._alternatives(one))
            )
        if not found and facts.reason is not None:
            self.note_empty(*facts.reason)
        return found

    def check_supported(self, facts: Facts, types: int) -> None:
        """Refuse keywords that aren't enforced for values of ``types``."""
        if facts.unsupported:
            if facts.values is not None:
                types &= types_of(facts)
            for unsupported in facts.unsupported:
                if unsupported.types & types:
                    self.drop_or_raise(unsupported.feature, unsupported.pointer, unsupported.hint)

    def has_no_text(
        self, patterns: Iterable[tuple[str, str]], not_patterns: Iterable[tuple[str, str]]
    ) -> bool:
        """Is there surely no text that matches every one of ``patterns`` and none of ``not_patterns``?

        Both are given by source and pointer.
        """
        wanted, unwanted = dict(patterns), dict(not_patterns)
        key = (frozenset(wanted), frozenset(unwanted))
        known = self._has_no_text.get(key)
        if known is None and len(self._has_no_text) >= _MOST_EMPTINESS:
            return False
        if known is None:
            try:
                positive = [text_of(source, self.watch, pointer).raw for source, pointer in wanted.items()]
                negative = [text_of(source, self.watch, pointer).raw for source, pointer in unwanted.items()]
            except UnsupportedFeatureError:
                known = False  # a back-reference: who knows
            else:
                known = ANY_TEXT in negative or is_empty(positive or [ANY_TEXT], negative, self.watch)
            self._has_no_text[key] = known
        return known

    def is_hollow(self, facts: Facts) -> bool:
        """Do ``facts``, which have no groups, surely describe nothing, as far as scalars go?"""
        if facts.values is not None:
            return not any(may_be(self, value, facts) for value in facts.values)
        return (
            facts.types == STRING
            and len(facts.patterns) + len(facts.not_patterns) > 1
            and self.has_no_text(facts.patterns, facts.not_patterns)
        )

    def is_impossible(self, locations: list[Location]) -> bool:
        """Does no value satisfy several schemas, as far as can be seen without building it?"""
        return self._brancher.is_impossible(locations)

    def matches(self, source: str, pointer: str, text: str) -> bool:
        """Does the expression ``source``, which stands at ``pointer``, match in ``text``?"""
        key = (source, text)
        known = self._matches.get(key)
        if known is None:
            known = not strings.has_surrogate(text) and searches(source, text, self.watch, pointer)
            self._matches[key] = known
        return known

    def _alternatives(self, facts: Facts) -> Alternatives:
        types = facts.types
        if not facts.key:
            self.uses_any = True
            return _ANYTHING if types else ()
        if facts.unsupported:
            self.check_supported(facts, types)
        if facts.values is not None:
            if facts.grammars and types_of(facts) & types & STRING:
                self.drop_or_raise(
                    "x-grammar",
                    facts.grammars[0][1],
                    "Leave it out.",
                    "cannot stand beside enum and const",
                )
            return constants(self, facts)
        found: list[TerminalReference | RuleReference] = []
        if types & STRING:
            found += string(self, facts)
        if types & NUMBER:
            found += number(self, facts)
        if types & BOOLEAN == BOOLEAN:
            found.append(terminals.BOOLEAN)
        elif types & BOOLEAN:
            word = "true" if types & TRUE else "false"
            found.append(self.terminal(("constants", (), (word,)), Literal(word.encode()), word))
        if types & NULL:
            found.append(terminals.NULL)
        if types & OBJECT:
            found.append(self._rule("object", facts) if facts.has_object_keywords else self._any_object())
        if types & ARRAY:
            found.append(self._rule("array", facts) if facts.has_array_keywords else self._any_array())
        return tuple(found)

    def _any_object(self) -> RuleReference:
        self.uses_any = True
        return terminals.ANY_OBJECT

    def _any_array(self) -> RuleReference:
        self.uses_any = True
        return terminals.ANY_ARRAY

    def _rule(self, kind: str, facts: Facts) -> RuleReference:
        key = (kind, facts.key)
        reference = self._rule_of.get(key)
        if reference is None:
            name = self.rule_name(facts.pointer)
            reference = self._rule_of[key] = RuleReference(name)
            self._queue.append((name, kind, facts))
        return reference

    # ------------------------------------------------------------------------------ terminals and rules

    def known_terminal(self, key: Hashable) -> TerminalReference | None:
        """Return the terminal made for ``key``, if there is one."""
        return self._terminal_of.get(key)

    def terminal(
        self, key: Hashable, pattern: Pattern, name: str, pointer: str | None = None
    ) -> TerminalReference:
        """Return the terminal for ``key``, made of ``pattern`` if there is none yet."""
        reference = self._terminal_of.get(key)
        if reference is None:
            reference = self._terminal_of[key] = self._add_terminal(Terminal(pattern, name, pointer=pointer))
        return reference

    def key(self, name: str) -> TerminalReference:
        """Return the terminal of a declared property's name."""
        reference = self._key_of.get(name)
        if reference is None:
            reference = self._key_of[name] = self._add_terminal(_key_terminal(name))
        return reference

    def _add_terminal(self, terminal: Terminal) -> TerminalReference:
        n = len(self.terminals)
        self.terminals.append(terminal)
        return _REFERENCES[n] if n < len(_REFERENCES) else TerminalReference(n)

    def additional_key(self, known: dict[str, None], *, is_distinct: bool = False) -> TerminalReference:
        """Return the terminal of the names of properties other than ``known``, each in one spelling if asked."""
        if is_distinct:
            key = ("additional, in one spelling", tuple(known))
            parts = strings.in_one_spelling(known)
            pattern = parts[0] if len(parts) == 1 else Intersection(tuple(parts))
            return self.terminal(key, pattern, "name of an additional property")
        if not known:
            return terminals.STRING
        key = ("additional", tuple(known))
        reference = self._terminal_of.get(key)
        if reference is None:
            reference = self.terminal(key, strings.excluding(known), "name of an additional property")
        return reference

    def rule_name(self, pointer: str) -> str:
        """Return a new rule's name, after its place."""
        n = self._n_rules.get(pointer, 0) + 1
        self._n_rules[pointer] = n
        return pointer if n == 1 else f"{pointer} ({n})"

    def set_rule(self, name: str, body: Expression, pointer: str) -> None:
        """Give a rule its body."""
        self.rules[name] = body
        self.pointers[name] = pointer

    def add_rule(self, pointer: str, body: Expression) -> RuleReference:
        """Return a new rule."""
        name = self.rule_name(pointer)
        self.set_rule(name, body, pointer)
        return RuleReference(name)

    def build_bodies(self) -> None:
        """Build the rules that were put off, and those put off by them."""
        queue = self._queue
        position = 0
        while position < len(queue):
            name, kind, facts = queue[position]
            position += 1
            self.watch.step(facts.pointer, 8)
            self.set_rule(name, self._body(name, kind, facts), facts.pointer)
        # No schema is read any more. These refer back to the builder, so only the garbage collector would find it.
        del self.derived, self._brancher, self._cursor

    def _body(self, name: str, kind: str, facts: Facts) -> Expression:
        """Return the body of an object or array; where that is too hard, of more than what ``facts`` describe."""
        make = object_body if kind == "object" else array_body
        try:
            return make(self, name, facts)
        except (UnsupportedFeatureError, LimitExceededError) as error:
            if not self.may_leave_open(error):
                raise
            self.leave_open(getattr(error, "pointer", None) or facts.pointer)
        simpler = facts.copy()
        # Counts are what makes the automata large.
        simpler.members, simpler.contains, simpler.unique_at = (), (), None
        try:
            return make(self, name, simpler)
        except (UnsupportedFeatureError, LimitExceededError):
            return Choice((self._any_object() if kind == "object" else self._any_array(),))

    def need(self, name: str, value: Alternatives) -> None:
        """Note that every text of the rule ``name`` holds one of ``value``."""
        for reference in value:
            if isinstance(reference, TerminalReference):
                return
        self.needs.setdefault(name, []).append(value)

    def nothing(self, name: str, reason: str, pointer: str) -> Expression:
        """Return the body of the rule ``name``, of which there is no text, and note the reason."""
        self.reasons[name] = (reason, pointer)
        self.need(name, ())
        return EMPTY_CHOICE

    # ------------------------------------------------------------------------------ what doesn't fit

    def note_empty(self, reason: str, pointer: str) -> None:
        """Note that nothing can stand at some place, which may make the whole schema empty."""
        self.empty.append((reason, pointer))

    def why_empty(self, pointer: str) -> tuple[str, str]:
        """Return why nothing can stand at or below ``pointer``, and where that was found."""
        inside = (entry for entry in reversed(self.empty) if entry[1].startswith(pointer))
        return next(inside, ("no value is possible", pointer))

    def refuse(self, keyword: str, facts: Facts, hint: str) -> None:
        """Refuse a keyword found while building the rule of ``facts``, or drop it."""
        self.drop_or_raise(keyword, f"{facts.pointer}/{keyword}", hint)

    def leave_open(self, pointer: str) -> None:
        """Note that the grammar takes more than the schema does at ``pointer``.

        Raises
        ------
        LeavesOpen
            Which properties are evaluated cannot be told any more, and it matters.
        """
        self.left_open[pointer] = None
        if self._cursor.tracks:
            raise LeavesOpen

    def may_leave_open(self, error: Exception) -> bool:
        """May a check decide what an error refuses?"""
        return self.options.unsupported == "check" and not is_undecided(error)

    def drop_or_raise(self, feature: str, pointer: str, hint: str, reason: str = "is not supported") -> None:
        """Refuse what cannot be enforced, or go on without it: with a warning, or to be checked later."""
        if self.options.unsupported == "check" and feature not in _UNDECIDED:
            self.leave_open(pointer)
            return
        if self.options.unsupported == "ignore":
            if pointer not in self.dropped:
                self.dropped[pointer] = None
                warnings.warn(
                    f"{feature!r} at {pointer!r} {reason}; it is ignored.", UserWarning, stacklevel=2
                )
            return
        raise UnsupportedFeatureError(feature, pointer=pointer, hint=hint, reason=reason)
