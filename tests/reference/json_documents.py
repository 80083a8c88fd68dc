"""JSON Schemas and documents for tests: the language of a schema, and the ways to write a document."""

from __future__ import annotations

import itertools
import json
from typing import Any, Protocol

from constrain.grammars import ir
from constrain.grammars.json_schema.build import SchemaOptions, schema_grammar
from constrain.grammars.limits import Limits, Watch
from constrain.spec import Spec
from tests.reference.grammar import ReferenceGrammar


class Language(Protocol):
    """Texts."""

    def accepts(self, data: bytes) -> bool:
        """Is ``data`` one of them?"""
        ...


class EngineLanguage:
    """The texts of ``grammar`` as the engine reads them."""

    def __init__(self, grammar: ir.Grammar) -> None:
        self._spec = Spec.from_grammar(grammar)

    def accepts(self, data: bytes) -> bool:
        """Is ``data`` one of them?"""
        return self._spec.matches(data.decode())


def language(schema: Any, **options: Any) -> Language:
    """Return a matcher of the texts of ``schema``: slow, but where texts may not repeat, which only the engine can."""
    result = schema_grammar(schema, SchemaOptions(**options), watch=Watch(Limits()))
    if any(map(_has_distinct, result.grammar.rules.values())):
        return EngineLanguage(result.grammar)
    return ReferenceGrammar(result.grammar)


def _has_distinct(body: ir.Expression) -> bool:
    match body:
        case ir.Sequence(parts) | ir.Choice(parts):
            return any(map(_has_distinct, parts))
        case ir.Repetition(inner):
            return _has_distinct(inner)
        case ir.StateMachine():
            return bool(body.distinct)
    return False


def spellings(value: Any, *, at_most: int = 400) -> list[str]:
    """Return compact texts of ``value`` with the keys of its objects in every order."""
    if isinstance(value, dict):
        texts: list[str] = []
        for keys in itertools.permutations(value):
            for members in itertools.product(*(spellings(value[key], at_most=24) for key in keys)):
                pairs = (f"{json.dumps(key)}:{text}" for key, text in zip(keys, members, strict=True))
                texts.append(f"{{{','.join(pairs)}}}")
                if len(texts) == at_most:
                    return texts
        return texts
    if isinstance(value, list):
        products = itertools.product(*(spellings(item, at_most=24) for item in value))
        return [f"[{','.join(items)}]" for items in itertools.islice(products, at_most)]
    return [json.dumps(value, ensure_ascii=False)]


def in_declared_order(value: Any, schema: Any) -> Any:
    """Return ``value`` with keys in the order in which ``schema`` declares them, as far as can be seen."""
    return _in_order(value, schema, schema, 0)


def _in_order(value: Any, schema: Any, root: Any, depth: int) -> Any:
    if depth > 60 or not isinstance(value, (dict, list)):
        return value
    parts = _in_place(schema, root)
    if isinstance(value, list):
        items = next((p["items"] for p in parts if isinstance(p.get("items"), dict)), None)
        return [_in_order(item, items, root, depth + 1) for item in value]
    properties: dict[str, Any] = {}
    required: list[str] = []
    additional = None
    for part in parts:
        if isinstance(part.get("properties"), dict):
            properties = {**properties, **part["properties"]}
        if isinstance(part.get("required"), list):
            required += part["required"]
        if isinstance(part.get("additionalProperties"), dict):
            additional = part["additionalProperties"]
    keys = [key for key in (*properties, *required, *value) if key in value]
    return {
        key: _in_order(value[key], properties.get(key, additional), root, depth + 1)
        for key in dict.fromkeys(keys)
    }


def _in_place(schema: Any, root: Any) -> list[dict[str, Any]]:
    """Return ``schema`` and the schemas it applies to the same value."""
    found: list[dict[str, Any]] = []
    todo = [schema]
    while todo:
        part = todo.pop(0)
        if not isinstance(part, dict) or any(part is other for other in found):
            continue
        found.append(part)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if isinstance(part.get(keyword), list):
                todo += part[keyword]
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target = root
            for key in reference.split("/")[1:]:
                key = key.replace("~1", "/").replace("~0", "~")
                if isinstance(target, dict):
                    target = target.get(key)
                elif isinstance(target, list) and key.isdigit() and int(key) < len(target):
                    target = target[int(key)]
                else:
                    target = None
            todo.append(target)
    return found
