"""JSON Schema to a grammar: `schema_grammar`.

What is supported is enforced exactly; everything else is refused with its place, never dropped silently.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from constrain.grammars import ir
from constrain.grammars.combine import embed
from constrain.grammars.errors import (
    ConstrainError,
    EmptyLanguageError,
    LimitExceededError,
    SpecError,
    UnsupportedFeatureError,
)
from constrain.grammars.json_schema import terminals
from constrain.grammars.json_schema.builder import Builder, is_undecided
from constrain.grammars.json_schema.conflict import conflict
from constrain.grammars.json_schema.cursor import LeavesOpen, TracksEvaluation
from constrain.grammars.json_schema.evaluate import refuse_undecided
from constrain.grammars.json_schema.facts import Json
from constrain.grammars.json_schema.options import DRAFTS, SchemaGrammar, SchemaOptions
from constrain.grammars.json_schema.productive import unproductive_rules
from constrain.grammars.json_schema.resolve import IsDynamic, draft_of
from constrain.grammars.json_schema.unordered import Element, unordered_machine
from constrain.grammars.limits import Watch
from constrain.grammars.regex.parse import parse_regex

__all__ = ["SchemaGrammar", "SchemaOptions", "any_value", "open_grammar", "schema_grammar"]

_NEWEST = "draft2020-12"
_OLD_URIS = tuple(f"json-schema.org/draft-0{n}/" for n in (0, 1, 2, 3))
_START = "start"


def schema_grammar(schema: Json, options: SchemaOptions, *, watch: Watch) -> SchemaGrammar:
    """Return the grammar of the JSON texts that ``schema`` describes.

    Parameters
    ----------
    schema : dict, bool or str
        A schema, or its JSON text.
    options : SchemaOptions
    watch : Watch

    Returns
    -------
    SchemaGrammar

    Raises
    ------
    SpecError
        The schema is malformed; the pointer says where.
    UnsupportedFeatureError
        It uses what cannot be enforced, or what only a check of whole outputs could.
    EmptyLanguageError
        Nothing satisfies it, as far as can be told without looking into conjunctions of patterns.
    LimitExceededError
        It is too large or too deep.
    """
    read = explained_grammar(schema, options, watch=watch)
    if read.left_open:
        pointer = read.left_open[0]
        raise UnsupportedFeatureError(
            pointer.rpartition("/")[2],
            pointer=pointer,
            reason="is checked only where the schema is the whole output, not in a part of it",
            hint='Simplify the schema, or use unsupported="ignore".',
        )
    return read


def open_grammar(schema: Json, options: SchemaOptions, *, watch: Watch) -> SchemaGrammar:
    """Return what `schema_grammar` does; with ``unsupported="check"`` the grammar may take more.

    ``left_open`` then says where, and a check has to decide (`constrain.grammars.json_schema.evaluate`).
    """
    root = load_schema(schema, watch) if isinstance(schema, str) else schema
    if not isinstance(root, (dict, bool)):
        raise SpecError(f"expected a schema (an object, true or false), found {root!r:.60}.", pointer="#")
    draft = options.draft or _draft(root)
    try:
        read = _built(root, draft, options, watch)
    except (UnsupportedFeatureError, LimitExceededError) as error:
        if options.unsupported != "check" or is_undecided(error):
            raise
        return any_value(root, draft, options, watch)
    if read.left_open:
        refuse_undecided(root, watch)
    return read


def explained_grammar(schema: Json, options: SchemaOptions, *, watch: Watch) -> SchemaGrammar:
    """Return what `open_grammar` does; an error says which keywords contradict each other."""
    try:
        return open_grammar(schema, options, watch=watch)
    except EmptyLanguageError as error:
        add_conflict(error, schema, options, watch, partial(open_grammar, options=options, watch=watch))
        raise


def add_conflict(
    error: EmptyLanguageError,
    schema: Json,
    options: SchemaOptions,
    watch: Watch,
    build: Callable[[Json], object],
) -> None:
    """Add to the error about a schema that nothing satisfies which of its keywords contradict each other.

    ``build`` raises such an error for other schemas.
    """
    root = load_schema(schema, watch) if isinstance(schema, str) else schema
    if not isinstance(root, dict):
        return
    draft = options.draft or _draft(root)

    def is_empty(rest: Json) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                build(rest)
        except EmptyLanguageError:
            return True
        except ConstrainError:
            return False
        return False

    error.conflict = conflict(root, DRAFTS[draft], is_empty)


def any_value(root: Json, draft: str, options: SchemaOptions, watch: Watch) -> SchemaGrammar:
    """Return a grammar of all JSON texts of the root's type that leaves everything else open.

    Raises
    ------
    UnsupportedFeatureError
        Not even a check decides the schema.
    """
    refuse_undecided(root, watch)
    common, ignored = terminals.common_terminals(_blanks(options, watch))
    builder = Builder(True, DRAFTS[draft], options, watch, common)
    rules = {_START: _of_type(root), **_any_rules(builder)}
    grammar = ir.Grammar(tuple(builder.terminals), rules, _START, ignored, {})
    return SchemaGrammar(grammar, (), draft, ("#",), root)


_KINDS: dict[str, ir.Expression] = {
    "string": terminals.STRING,
    "number": terminals.NUMBER,
    "integer": terminals.NUMBER,
    "boolean": terminals.BOOLEAN,
    "null": terminals.NULL,
    "object": terminals.ANY_OBJECT,
    "array": terminals.ANY_ARRAY,
}


def _of_type(root: Json) -> ir.Expression:
    """Return the values of the types that a schema names; all where it names none, or where others may count."""
    named = root.get("type") if isinstance(root, dict) and "$ref" not in root else None
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n in _KINDS for n in names):
        return terminals.ANY_VALUE
    return ir.Choice(tuple(_KINDS[name] for name in dict.fromkeys(names)))


def _built(root: Json, draft: str, options: SchemaOptions, watch: Watch) -> SchemaGrammar:
    common, ignored = terminals.common_terminals(_blanks(options, watch))
    ways: dict[str, bool] = {}
    while True:
        builder = Builder(root, DRAFTS[draft], options, watch, common, **ways)
        if "skips_unevaluated" in ways:
            builder.left_open["#"] = None
        try:
            found = _read(builder, root)
            break
        except TracksEvaluation:
            ways["tracks"] = True
        except LeavesOpen:
            del ways["tracks"]
            ways["skips_unevaluated"] = True
        except IsDynamic:
            ways["is_dynamic"] = True
    if not found:
        raise _empty_language(*builder.why_empty("#"))
    rules: dict[str, ir.Expression] = {_START: found[0] if len(found) == 1 else ir.Choice(found)}
    rules.update(builder.rules)
    if builder.uses_any:
        rules.update(_any_rules(builder))
    if builder.needs:
        builder.need(_START, found)
        unproductive = unproductive_rules(builder.needs, watch)
        if _START in unproductive:
            raise _empty_language(*_reason(builder, unproductive))
    grammar = ir.Grammar(tuple(builder.terminals), rules, _START, ignored, builder.pointers)
    if builder.inner:
        grammar = embed(grammar, builder.inner)
    return SchemaGrammar(grammar, tuple(builder.dropped), draft, tuple(builder.left_open), root)


def _any_rules(builder: Builder) -> dict[str, ir.Expression]:
    """Return the rules of any value."""
    rules: dict[str, ir.Expression] = dict(terminals.ANY_RULES)
    if builder.options.property_order == "any":
        key = builder.additional_key({}, is_distinct=True)
        member = Element(key, (terminals.ANY_VALUE,), is_required=False, is_single=False, is_distinct=True)
        rules[terminals.ANY_OBJECT.name] = unordered_machine([member], 0, None)
    return rules


def _read(builder: Builder, root: Json) -> tuple[ir.TerminalReference | ir.RuleReference, ...]:
    found = builder.value(root, "#", None)
    builder.build_bodies()
    return found


def load_schema(text: str, watch: Watch) -> Json:
    """Return the data of a schema's JSON text.

    Raises
    ------
    SpecError
        It is not JSON.
    LimitExceededError
        It is nested too deeply.
    """

    def refuse(constant: str) -> NoReturn:
        raise SpecError(f"{constant} is not JSON.", source=text, offset=text.find(constant))

    try:
        return json.loads(text, parse_constant=refuse)
    except SpecError:
        raise  # a ValueError as well
    except json.JSONDecodeError as error:
        raise SpecError(f"the schema is not JSON: {error.msg}.", source=text, offset=error.pos) from error
    except ValueError as error:
        # Python reads no integer of more digits than `sys.get_int_max_str_digits()`.
        raise SpecError(f"the schema has a number that is too long: {error}.") from error
    except RecursionError as error:
        # The standard library's reader goes as deep as the interpreter's stack.
        raise LimitExceededError(
            "nesting", watch.limits.nesting, "the schema's text", "Pass the schema as a dict."
        ) from error


def _draft(root: Json) -> str:
    uri = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(uri, str):
        return _NEWEST
    name = uri.partition("#")[0].removeprefix("http://").removeprefix("https://")
    if name.startswith(_OLD_URIS):
        raise UnsupportedFeatureError(
            "$schema",
            pointer="#/$schema",
            reason=f"{uri!r} names a draft that is not supported",
            hint=f"Drafts {', '.join(DRAFTS)} are.",
        )
    number = draft_of(uri)
    return next((name for name, value in DRAFTS.items() if value == number), _NEWEST)


def _blanks(options: SchemaOptions, watch: Watch) -> ir.Pattern | None:
    if options.whitespace == "compact":
        return None
    if options.whitespace == "flexible":
        return terminals.flexible(options.max_whitespace)
    return terminals.given(options.whitespace, parse_regex(options.whitespace, watch=watch))


def _empty_language(reason: str, pointer: str) -> EmptyLanguageError:
    return EmptyLanguageError(f"Nothing satisfies the schema: {reason}.", pointer=pointer)


def _reason(builder: Builder, unproductive: set[str]) -> tuple[str, str]:
    """Return why the start rule derives nothing, and where, by following what rules need."""
    name = _START
    seen = set()
    while name not in seen:
        if name in builder.reasons:
            return builder.reasons[name]
        seen.add(name)
        # One of these needs can't be met; all its references are rules, or it would be.
        for references in builder.needs[name]:
            names = [reference.name for reference in references if isinstance(reference, ir.RuleReference)]
            if unproductive.issuperset(names):
                name = names[0]
                break
    pointer = builder.pointers[name]
    return "every value would have to hold another like itself, without end", pointer
