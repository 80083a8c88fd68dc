"""Keywords that apply other schemas to the same value, each read into `Facts` by one function."""

from __future__ import annotations

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.json_schema.cursor import Cursor, show
from constrain.grammars.json_schema.facts import ANY, Facts, Group, Json, Location
from constrain.grammars.json_schema.keywords import refuse


def read_reference(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``$ref``."""
    _refer(facts, value, at, "$ref")


def read_dynamic_reference(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``$dynamicRef``."""
    _refer(facts, value, at, "$dynamicRef")


def read_recursive_reference(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``$recursiveRef``."""
    _refer(facts, value, at, "$recursiveRef")


def _refer(facts: Facts, value: Json, at: Cursor, keyword: str) -> None:
    if not isinstance(value, str):
        raise at.error(keyword, f"expected a reference, found {show(value)}.")
    pointer = f"{at.pointer}/{keyword}"
    try:
        schema, where, scope = at.references.target(value, pointer, at.scope, keyword)
    except UnsupportedFeatureError as error:
        if not at.may_leave_open(error):
            raise
        refuse(facts, at, keyword, ANY, "")
        return
    chain = (*at.chain, id(at.schema))
    if id(schema) in chain:
        raise SpecError(
            f"{keyword} {value!r} leads back to itself without entering a property or an item.",
            pointer=pointer,
        )
    at.watch.at_most("nesting", len(chain), pointer)
    at.stack.append(Location(schema, where, scope, chain, at.is_silent))


def read_all_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``allOf``."""
    at.stack.extend(reversed(_branches(value, at, "allOf")))


def read_any_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``anyOf``."""
    branches = _branches(value, at, "anyOf")
    facts.groups += (Group(branches, f"{at.pointer}/anyOf"),)
    if at.is_observed:
        # What is evaluated depends on every branch that holds, not only on one.
        facts.groups += tuple(at.derived.either(branch) for branch in branches)


def read_one_of(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``oneOf``."""
    facts.groups += (Group(_branches(value, at, "oneOf"), f"{at.pointer}/oneOf", True),)


def _branches(value: Json, at: Cursor, keyword: str) -> tuple[Location, ...]:
    if not isinstance(value, list) or not value:
        raise at.error(keyword, f"expected a list of at least one schema, found {show(value)}.")
    at.watch.at_most("nesting", len(at.chain) + 1, at.pointer)
    base = f"{at.pointer}/{keyword}/"
    chain = (*at.chain, id(at.schema))
    return tuple(
        [Location(branch, f"{base}{i}", at.scope, chain, at.is_silent) for i, branch in enumerate(value)]
    )


def read_not(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``not``."""
    where = f"{at.pointer}/not"
    if not isinstance(value, (bool, dict)):
        raise at.error("not", f"expected a schema, found {show(value)}.")
    chain = (*at.chain, id(at.schema))
    at.watch.at_most("nesting", len(chain), where)
    at.stack.append(Location(at.derived.negated(value, where, at.scope), where, at.scope, chain, True))


def read_if(facts: Facts, value: Json, at: Cursor) -> None:
    """Read ``if``, with ``then`` and ``else``."""
    at.watch.at_most("nesting", len(at.chain) + 1, at.pointer)
    if not isinstance(value, (bool, dict)):
        raise at.error("if", f"expected a schema, found {show(value)}.")
    condition = at.branch(value, "if")
    if "then" in at.schema or "else" in at.schema:
        facts.groups += (
            at.derived.conditional(
                condition,
                at.branch(at.schema.get("then", True), "then"),
                at.branch(at.schema.get("else", True), "else"),
            ),
        )
    elif at.is_observed:
        facts.groups += (at.derived.either(condition),)
