"""Does a JSON value satisfy a schema? Asked of whole values, by the drafts' own rules.

This is what decides where automata cannot: it looks at values, never at their spelling, and knows nothing of
grammars. Numbers are ``int`` and ``Decimal``, so that they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema import formats
from constrain.grammars.json_schema.equality import exact, is_equal
from constrain.grammars.json_schema.facts import Json
from constrain.grammars.json_schema.options import SchemaOptions
from constrain.grammars.json_schema.pointers import token
from constrain.grammars.json_schema.resolve import References, draft_of, specification_of
from constrain.grammars.json_schema.strings import has_surrogate
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.back_references import check_pattern, searches
from constrain.grammars.regex.parse import parse_ecma

# What a schema has looked at: property names, or indexes; of a value that isn't a container nothing.
Seen: TypeAlias = set[Any]


class Place(NamedTuple):
    """A schema, where it stands, and what its references mean there."""

    schema: Json
    pointer: str
    resolver: Any
    draft: int
    is_entered: bool = False
    """The resolver knows the schema's own identifier."""


class Fault(NamedTuple):
    """The keyword that a value fails, and where in the document it does (a JSON pointer)."""

    pointer: str
    instance: str


class Verdict(NamedTuple):
    """A fault, or what a schema that holds has looked at."""

    fault: Fault | None
    seen: Seen


_FINE: Seen = set()


class Evaluator:
    """Evaluates values against the schemas of one document.

    Parameters
    ----------
    root : dict or bool
    draft : int
    registry : referencing.Registry or None
    has_formats : bool
        Assert ``format``.
    limits : Limits
        For reading patterns, and for schemas that refer to each other.
    """

    def __init__(self, root: Json, draft: int, registry: Any, *, has_formats: bool, limits: Limits) -> None:
        self.root = Place(root, "#", References(root, draft, registry).root_resolver, draft, True)
        self._has_formats = has_formats
        self._limits = limits
        self._matches: dict[tuple[str, str], bool] = {}
        self._constants: dict[int, Json] = {}

    def fault(self, value: Json, place: Place | None = None) -> Fault | None:
        """Return what ``value`` fails of the schema at ``place``; ``None`` if it satisfies it."""
        verdict: Verdict = run(self._evaluate(value, place or self.root, "", 0))
        return verdict.fault

    def matches(self, source: str, text: str) -> bool:
        """Does the expression ``source`` match in ``text``?"""
        key = (source, text)
        known = self._matches.get(key)
        if known is None:
            known = not has_surrogate(text) and searches(source, text, Watch(self._limits))
            if len(self._matches) > 10_000:
                self._matches.clear()
            self._matches[key] = known
        return known

    def constant(self, value: Json) -> Json:
        """Return a value of the schema with its numbers exact."""
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = exact_copy(value)
        return known

    # ------------------------------------------------------------------------------ one schema

    def enter(self, place: Place) -> Place:
        """Return a place with the identifier of its schema, if it has one, taken into account."""
        schema = place.schema
        identifier = schema.get("id" if place.draft == 4 else "$id")
        if place.is_entered or not isinstance(identifier, str):
            return place
        resource = specification_of(place.draft).create_resource(schema)
        return place._replace(resolver=place.resolver.in_subresource(resource), is_entered=True)

    def _evaluate(self, value: Json, place: Place, at: str, depth: int) -> Task[Verdict]:
        schema = place.schema
        if schema is True:
            return Verdict(None, _FINE)
        if not isinstance(schema, dict):
            return Verdict(Fault(place.pointer, at), _FINE)
        if depth > self._limits.nesting:
            raise LimitExceededError(
                "nesting", self._limits.nesting, f"the schemas at {place.pointer[:60]!r}"
            )
        place = self.enter(place)
        seen: Seen = set()
        keywords = ["$ref"] if place.draft <= 7 and "$ref" in schema else list(schema)
        late = []
        for keyword in keywords:
            # Flags of minimum and maximum in draft 4, and unknown keywords, say nothing by themselves.
            known = _KEYWORDS.get(keyword)
            if known is None or not known.first <= place.draft <= known.last:
                continue
            if known.is_late:
                late.append((keyword, known))
                continue
            fault = yield known.function(
                self, _Question(value, schema[keyword], place, keyword, at, depth, seen)
            )
            if fault is not None:
                return Verdict(fault, _FINE)
        for keyword, known in late:
            fault = yield known.function(
                self, _Question(value, schema[keyword], place, keyword, at, depth, seen)
            )
            if fault is not None:
                return Verdict(fault, _FINE)
        return Verdict(None, seen)

    def asked(self, value: Json, place: Place, at: str) -> Task[Verdict]:
        """Evaluate a part of a value: of it nothing is nested in the schema's sense."""
        verdict: Verdict = yield self._evaluate(value, place, at, 0)
        return verdict

    def same(self, question: _Question, place: Place) -> Task[Fault | None]:
        """Evaluate another schema of the same value, and take over what it has looked at."""
        verdict: Verdict = yield self._evaluate(question.value, place, question.at, question.depth + 1)
        if verdict.fault is None:
            question.seen.update(verdict.seen)
        return verdict.fault

    def accepts_format(self, name: str, text: str) -> bool:
        """Is ``text`` of a format? Unknown ones hold."""
        if name == "regex":
            try:
                parse_ecma(text, watch=Watch(self._limits))
            except UnsupportedFeatureError:
                return True
            except SpecError:
                return False
            return True
        return name not in formats.SUPPORTED or formats.accepts_text(name, text)


class _Question(NamedTuple):
    """A keyword asked of a value."""

    value: Json
    given: Json
    place: Place
    keyword: str
    at: str
    depth: int
    seen: Seen

    @property
    def pointer(self) -> str:
        return f"{self.place.pointer}/{self.keyword}"

    @property
    def fault(self) -> Fault:
        return Fault(self.pointer, self.at)

    def sub(self, schema: Json, *keys: str | int) -> Place:
        """The place of a subschema of this keyword."""
        pointer = "/".join([self.pointer, *(token(str(key)) for key in keys)])
        return Place(schema, pointer, self.place.resolver, self.place.draft)

    def sibling(self, keyword: str, default: Json = None) -> Json:
        return self.place.schema.get(keyword, default)


Function: TypeAlias = Callable[[Evaluator, _Question], Task[Fault | None]]


class _Keyword(NamedTuple):
    function: Function
    first: int = 4
    last: int = 2020
    is_late: bool = False


def _test(holds: Callable[[Evaluator, _Question], bool]) -> Function:
    """Make the function of a keyword that needs no other schemas."""

    def ask(evaluator: Evaluator, question: _Question) -> Task[Fault | None]:
        return None if holds(evaluator, question) else question.fault
        yield

    return ask


# ------------------------------------------------------------------------------ scalars


def is_number(value: Json) -> bool:
    """Is a value a number? Booleans are none."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _has_type(value: Json, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return is_number(value) and (isinstance(value, int) or _is_whole(value))
        case "number":
            return is_number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _is_whole(value: Decimal) -> bool:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return exponent >= 0 or not any(digits[exponent:])


def is_multiple(value: Json, divisor: Json) -> bool:
    """Is a number a multiple of another? Exponents may be of any size."""
    step = Fraction(exact(divisor))
    if isinstance(value, int):
        return Fraction(value) % step == 0
    _, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)))
    if exponent >= 0:
        # whole * 10**exponent * denominator must be a multiple of the numerator.
        return whole * step.denominator * pow(10, exponent, step.numerator) % step.numerator == 0
    while whole and exponent < 0 and whole % 10 == 0:
        whole, exponent = whole // 10, exponent + 1
    if not whole:
        return True
    most = len(str(step.denominator)) * 4
    if -exponent > most + len(digits) + len(str(step.numerator)):
        return False  # smaller than every multiple but 0, or finer than they are
    return bool((Fraction(whole) / Fraction(10) ** -exponent) % step == 0)


def _type(evaluator: Evaluator, q: _Question) -> bool:
    names = q.given if isinstance(q.given, list) else [q.given]
    return any(_has_type(q.value, name) for name in names)


def _minimum(evaluator: Evaluator, q: _Question) -> bool:
    if not is_number(q.value):
        return True
    bound = exact(q.given)
    return bool(q.value > bound if q.sibling("exclusiveMinimum") is True else q.value >= bound)


def _maximum(evaluator: Evaluator, q: _Question) -> bool:
    if not is_number(q.value):
        return True
    bound = exact(q.given)
    return bool(q.value < bound if q.sibling("exclusiveMaximum") is True else q.value <= bound)


def _is_unique(values: list[Json]) -> bool:
    return all(not is_equal(value, other) for i, value in enumerate(values) for other in values[:i])


def _size(kind: type[str | list[Any] | dict[str, Any]], is_most: bool) -> Function:
    def holds(evaluator: Evaluator, q: _Question) -> bool:
        if not isinstance(q.value, kind):
            return True
        return bool(len(q.value) <= q.given if is_most else len(q.value) >= q.given)

    return _test(holds)


# ------------------------------------------------------------------------------ applicators


def _ref(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if q.keyword == "$recursiveRef":
        from referencing.jsonschema import lookup_recursive_ref

        resolved = lookup_recursive_ref(q.place.resolver)
    else:
        resolved = q.place.resolver.lookup(q.given)
    result: Fault | None = yield evaluator.same(q, referred(q.place, q.given, resolved))
    return result


def referred(place: Place, reference: str, resolved: Any) -> Place:
    """Return the place that a reference at ``place`` leads to."""
    pointer = reference if reference.startswith("#") else f"{place.pointer}/$ref"
    draft = place.draft
    if isinstance(resolved.contents, dict):
        draft = draft_of(str(resolved.contents.get("$schema"))) or draft
    return Place(resolved.contents, pointer, resolved.resolver, draft, True)


def _all_of(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    for i, schema in enumerate(q.given):
        fault: Fault | None = yield evaluator.same(q, q.sub(schema, i))
        if fault is not None:
            return fault
    return None


def _any_of(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    found = False
    for i, schema in enumerate(q.given):
        found = (yield evaluator.same(q, q.sub(schema, i))) is None or found
    return None if found else q.fault


def _one_of(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    found = 0
    for i, schema in enumerate(q.given):
        found += (yield evaluator.same(q, q.sub(schema, i))) is None
    return None if found == 1 else q.fault


def _not(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    verdict: Verdict = yield evaluator._evaluate(q.value, q.sub(q.given), q.at, q.depth + 1)
    return q.fault if verdict.fault is None else None


def _if(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    holds = (yield evaluator.same(q, q.sub(q.given))) is None
    keyword = "then" if holds else "else"
    if keyword not in q.place.schema:
        return None
    place = q._replace(keyword=keyword).sub(q.sibling(keyword))
    fault: Fault | None = yield evaluator.same(q, place)
    return fault


def _dependencies(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, dict):
        return None
    for name, demand in q.given.items():
        if name not in q.value:
            continue
        if isinstance(demand, list):
            if not all(other in q.value for other in demand):
                return Fault(f"{q.pointer}/{token(name)}", q.at)
            continue
        fault: Fault | None = yield evaluator.same(q, q.sub(demand, name))
        if fault is not None:
            return fault
    return None


# ------------------------------------------------------------------------------ objects


def applied_to(evaluator: Evaluator, place: Place, name: str) -> Iterator[Place]:
    """Return the schemas that ``properties`` and its siblings apply to the property ``name``."""
    schema = place.schema
    is_additional = True

    def at(keyword: str, sub: Json, *keys: str) -> Place:
        pointer = "/".join([place.pointer, keyword, *map(token, keys)])
        return Place(sub, pointer, place.resolver, place.draft)

    if name in schema.get("properties", ()):
        is_additional = False
        yield at("properties", schema["properties"][name], name)
    for source, sub in schema.get("patternProperties", {}).items():
        if evaluator.matches(source, name):
            is_additional = False
            yield at("patternProperties", sub, source)
    if is_additional and "additionalProperties" in schema:
        yield at("additionalProperties", schema["additionalProperties"])


def _properties(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, dict):
        return None
    schema = q.place.schema
    # The first of the three keywords speaks for all.
    three = [k for k in schema if k in ("properties", "patternProperties", "additionalProperties")]
    if three[0] != q.keyword:
        return None
    for name, member in q.value.items():
        for place in applied_to(evaluator, q.place, name):
            q.seen.add(name)
            verdict: Verdict = yield evaluator.asked(member, place, f"{q.at}/{token(name)}")
            if verdict.fault is not None:
                return verdict.fault
    return None


def _property_names(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if isinstance(q.value, dict):
        for name in q.value:
            verdict: Verdict = yield evaluator.asked(name, q.sub(q.given), q.at)
            if verdict.fault is not None:
                return verdict.fault
    return None


def _unevaluated_properties(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, dict):
        return None
    for name, member in q.value.items():
        if name in q.seen:
            continue
        verdict: Verdict = yield evaluator.asked(member, q.sub(q.given), f"{q.at}/{token(name)}")
        if verdict.fault is not None:
            return q.fault
        q.seen.add(name)
    return None


# ------------------------------------------------------------------------------ arrays


def applied_at(place: Place, index: int) -> Place | None:
    """Return the schema that ``items`` and its siblings apply to the item at ``index``."""
    schema = place.schema

    def at(sub: Json, pointer: str) -> Place:
        return Place(sub, f"{place.pointer}/{pointer}", place.resolver, place.draft)

    if place.draft == 2020:
        prefix, prefix_key, rest_key = schema.get("prefixItems", []), "prefixItems", "items"
    elif isinstance(schema.get("items"), list):
        prefix, prefix_key, rest_key = schema["items"], "items", "additionalItems"
    else:
        prefix, prefix_key, rest_key = [], "", "items"
    if index < len(prefix):
        return at(prefix[index], f"{prefix_key}/{index}")
    return at(schema[rest_key], rest_key) if rest_key in schema else None


def _items(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, list):
        return None
    if q.keyword == "prefixItems" and "items" in q.place.schema:
        return None
    for i, item in enumerate(q.value):
        place = applied_at(q.place, i)
        if place is None:
            break
        q.seen.add(i)
        verdict: Verdict = yield evaluator.asked(item, place, f"{q.at}/{i}")
        if verdict.fault is not None:
            return verdict.fault
    return None


def _contains(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, list):
        return None
    low, high = 1, None
    if q.place.draft >= 2019:
        low, high = q.sibling("minContains", 1), q.sibling("maxContains")
    found = 0
    for i, item in enumerate(q.value):
        verdict: Verdict = yield evaluator.asked(item, q.sub(q.given), f"{q.at}/{i}")
        if verdict.fault is None:
            found += 1
            if q.place.draft == 2020:
                q.seen.add(i)
    return None if found >= low and (high is None or found <= high) else q.fault


def _unevaluated_items(evaluator: Evaluator, q: _Question) -> Task[Fault | None]:
    if not isinstance(q.value, list):
        return None
    for i, item in enumerate(q.value):
        if i in q.seen:
            continue
        verdict: Verdict = yield evaluator.asked(item, q.sub(q.given), f"{q.at}/{i}")
        if verdict.fault is not None:
            return q.fault
        q.seen.add(i)
    return None


_KEYWORDS: dict[str, _Keyword] = {
    "type": _Keyword(_test(_type)),
    "enum": _Keyword(_test(lambda e, q: any(is_equal(q.value, e.constant(one)) for one in q.given))),
    "const": _Keyword(_test(lambda e, q: is_equal(q.value, e.constant(q.given))), 6),
    "minimum": _Keyword(_test(_minimum)),
    "maximum": _Keyword(_test(_maximum)),
    "exclusiveMinimum": _Keyword(_test(lambda e, q: not is_number(q.value) or q.value > exact(q.given)), 6),
    "exclusiveMaximum": _Keyword(_test(lambda e, q: not is_number(q.value) or q.value < exact(q.given)), 6),
    "multipleOf": _Keyword(_test(lambda e, q: not is_number(q.value) or is_multiple(q.value, q.given))),
    "minLength": _Keyword(_size(str, False)),
    "maxLength": _Keyword(_size(str, True)),
    "pattern": _Keyword(_test(lambda e, q: not isinstance(q.value, str) or e.matches(q.given, q.value))),
    "format": _Keyword(
        _test(
            lambda e, q: (
                not e._has_formats or not isinstance(q.value, str) or e.accepts_format(q.given, q.value)
            )
        )
    ),
    "items": _Keyword(_items),
    "prefixItems": _Keyword(_items, 2020),
    "minItems": _Keyword(_size(list, False)),
    "maxItems": _Keyword(_size(list, True)),
    "uniqueItems": _Keyword(
        _test(lambda e, q: not q.given or not isinstance(q.value, list) or _is_unique(q.value))
    ),
    "contains": _Keyword(_contains, 6),
    "unevaluatedItems": _Keyword(_unevaluated_items, 2019, is_late=True),
    "properties": _Keyword(_properties),
    "patternProperties": _Keyword(_properties),
    "additionalProperties": _Keyword(_properties),
    "required": _Keyword(
        _test(lambda e, q: not isinstance(q.value, dict) or all(name in q.value for name in q.given))
    ),
    "minProperties": _Keyword(_size(dict, False)),
    "maxProperties": _Keyword(_size(dict, True)),
    "propertyNames": _Keyword(_property_names, 6),
    "dependencies": _Keyword(_dependencies),
    "dependentRequired": _Keyword(_dependencies, 2019),
    "dependentSchemas": _Keyword(_dependencies, 2019),
    "unevaluatedProperties": _Keyword(_unevaluated_properties, 2019, is_late=True),
    "$ref": _Keyword(_ref),
    "$dynamicRef": _Keyword(_ref, 2020),
    "$recursiveRef": _Keyword(_ref, 2019, 2019),
    "allOf": _Keyword(_all_of),
    "anyOf": _Keyword(_any_of),
    "oneOf": _Keyword(_one_of),
    "not": _Keyword(_not),
    "if": _Keyword(_if, 7),
}


def refuse_undecided(root: Json, options: SchemaOptions, watch: Watch) -> None:
    """Refuse schemas of which values alone don't tell whether they hold.

    Raises
    ------
    UnsupportedFeatureError
        There is ``x-grammar``, a pattern that cannot be decided, or a format that is not implemented.
    """
    todo: list[tuple[Json, str]] = [(root, "#")]
    while todo:
        node, pointer = todo.pop()
        if isinstance(node, list):
            todo += [(item, f"{pointer}/{i}") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            continue
        todo += [(member, f"{pointer}/{token(str(name))}") for name, member in node.items()]
        if isinstance(node.get("x-grammar"), dict):
            feature = "x-grammar"
        elif options.formats and node.get("format") == "idn-hostname":
            feature = "format idn-hostname"
        else:
            names = node.get("patternProperties")
            for source in (node.get("pattern"), *(names if isinstance(names, dict) else ())):
                if isinstance(source, str):
                    check_pattern(source, watch, pointer)
            continue
        raise UnsupportedFeatureError(
            feature,
            pointer=pointer,
            reason="cannot be decided by value, which other parts of the schema need",
            hint="Leave it out, or simplify the rest of the schema.",
        )


def exact_copy(value: Json) -> Json:
    """Return JSON data with every ``float`` as the decimal that is written, without recursion."""
    top: list[Json] = [None]
    todo: list[tuple[Json, Any, Any]] = [(value, top, 0)]
    while todo:
        node, target, key = todo.pop()
        if isinstance(node, dict):
            copied: Any = dict.fromkeys(node)
            todo += [(member, copied, name) for name, member in node.items()]
        elif isinstance(node, list):
            copied = [None] * len(node)
            todo += [(item, copied, i) for i, item in enumerate(node)]
        else:
            copied = exact(node) if isinstance(node, float) else node
        target[key] = copied
    return top[0]
