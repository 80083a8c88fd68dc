"""Specs: what the output must look like, without any tokenizer.

The constructors read and check everything at once: the `Spec` they return can be compiled for any
vocabulary, matched against texts, explained and sampled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, get_args, get_origin
from typing import Literal as LiteralType

from constrain.base_spec import Spec, encoded, shortened
from constrain.errors import EmptyLanguageError, LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.explanation import Explanation
from constrain.grammars.ir import (
    EMPTY_LANGUAGE,
    Alternation,
    Choice,
    Grammar,
    Intersection,
    Literal,
    Pattern,
    Terminal,
    TerminalReference,
    pattern_grammar,
)
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.build import alternate
from constrain.grammars.regex.parse import parse_regex
from constrain.pickling import Held, Identity

if TYPE_CHECKING:
    from constrain.grammars.json_schema.options import SchemaGrammar

__all__ = ["Explanation", "Spec", "choice", "json_schema", "python_type", "regex"]


def regex(pattern: str | re.Pattern[str], *, flags: str = "", limits: Limits | None = None) -> Spec:
    r"""Return the spec of the texts that ``pattern`` matches as a whole.

    Parameters
    ----------
    pattern : str or re.Pattern
        Syntax and meaning of Python's `re.fullmatch` for text, with Unicode properties added:
        ``\p{Lu}``, ``\p{Greek}``, ``\p{Script=Greek}``, ``\P{L}``. A compiled pattern brings its flags.
    flags : str
        Letters from ``"imsx"``.
    limits : Limits
        Upper limits on reading the pattern.

    Raises
    ------
    SpecError
        A malformed pattern, with its place.
    UnsupportedFeatureError
        Back-references, conditionals, atomic groups that may cut off matches.
    EmptyLanguageError
        No text matches.
    LimitExceededError
        The pattern is too large.
    """
    if isinstance(pattern, re.Pattern):
        pattern, flags = _compiled_pattern(pattern, flags)
    if not isinstance(pattern, str):
        raise SpecError(f"expected a pattern as text, found {type(pattern).__name__}.")
    if not isinstance(flags, str):
        raise SpecError(f"flags={flags!r}: expected letters from 'imsx'.")
    watch = Watch(limits or Limits())
    parsed = parse_regex(pattern, flags, watch=watch)
    flags = "".join(sorted(set(flags)))
    try:
        return Spec(
            "regex",
            pattern,
            _pattern_grammar(parsed),
            options=(("flags", flags),) if flags else (),
            source={"pattern": pattern, "flags": flags},
            remake=partial(regex, pattern, flags=flags, limits=watch.limits),
            shown=shortened(repr(pattern)),
            watch=watch,
        )
    except EmptyLanguageError as error:
        raise EmptyLanguageError("No text matches this pattern.", source=pattern, offset=0) from error


def _pattern_grammar(pattern: Pattern) -> Grammar:
    """Return the grammar of one pattern; alternatives that are conjunctions become terminals of their own.

    The compiler steps conjunctions lazily where they are a whole terminal, and builds them where they are
    inside one.
    """
    if not isinstance(pattern, Alternation):
        return pattern_grammar(pattern)
    conjunctions = [part for part in pattern.parts if isinstance(part, Intersection)]
    if not conjunctions:
        return pattern_grammar(pattern)
    plain = alternate(part for part in pattern.parts if not isinstance(part, Intersection))
    terminals = tuple(Terminal(part, "pattern") for part in (plain, *conjunctions) if part != EMPTY_LANGUAGE)
    body = Choice(tuple(TerminalReference(index) for index in range(len(terminals))))
    return Grammar(terminals, {"start": body}, "start")


_RE_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


def _compiled_pattern(pattern: re.Pattern[str], flags: str) -> tuple[str, str]:
    """Return the source and flags of a compiled pattern."""
    if not isinstance(pattern.pattern, str):
        raise SpecError("expected a pattern for text, found one for bytes.")
    letters = "".join(letter for flag, letter in _RE_FLAGS if pattern.flags & flag)
    source = pattern.pattern
    if pattern.flags & re.ASCII:
        source = f"(?a:{source})"
    return source, flags + letters


def choice(options: Iterable[Any], *, limits: Limits | None = None) -> Spec:
    """Return the spec of a fixed list of texts.

    Parameters
    ----------
    options : iterable of str or JSON data, an Enum class, or a Literal type
        A string stands for itself, without quotes. Other values (numbers, booleans, ``None``, lists,
        dicts) stand for their JSON text. Of an `Enum` the values of its members count. Repeated
        options count once.
    limits : Limits
        Upper limits on reading the options.

    Raises
    ------
    SpecError
        An option is neither text nor JSON data.
    EmptyLanguageError
        There are no options.
    """
    values: dict[str, Any] = {}
    for index, option in enumerate(_options_of(options)):
        values.setdefault(_option_text(option, index), option)
    if not values:
        raise EmptyLanguageError("choice() needs at least one option.")
    texts = tuple(values)
    listed = [repr(value) for value in list(values.values())[:3]]
    shown = ", ".join(shortened(text) for text in listed) + (", …" if len(values) > 3 else "")
    pattern = Literal(texts[0].encode()) if len(texts) == 1 else None
    watch = Watch(limits or Limits())

    def parse(text: str) -> Any:
        if text not in values:
            raise SpecError(f"{shortened(text)!r} is none of the options.")
        return values[text]

    kinds = tuple(map(type, values.values()))
    kept: Any = Held(list(values.values()), "choice()")
    return Spec(
        "choice",
        (texts, () if set(kinds) == {str} else kinds),
        pattern_grammar(pattern or Alternation(tuple(Literal(text.encode()) for text in texts)), "choice"),
        parse=parse,
        source={"options": [v.value if isinstance(v, Enum) else v for v in values.values()]},
        remake=partial(choice, kept, limits=watch.limits),
        shown=f"[{shown}]",
        watch=watch,
    )


def _options_of(options: Iterable[Any]) -> Sequence[Any]:
    """Return the options as a list."""
    if isinstance(options, type) and issubclass(options, Enum):
        return list(options)
    if get_origin(options) is LiteralType:
        return get_args(options)
    if isinstance(options, str | bytes | Mapping) or not isinstance(options, Iterable):
        raise SpecError(
            f"choice() got {shortened(repr(options))}.",
            hint="It needs a list of options, an Enum class or a Literal type.",
        )
    return list(options)


def _option_text(option: Any, index: int) -> str:
    """Return the text that ``option`` stands for."""
    value = option.value if isinstance(option, Enum) else option
    if isinstance(value, str):
        text = str.__str__(value)
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise SpecError(
                f"Option {index} of choice(), {shortened(repr(value))}, is neither text nor JSON data.",
                hint="Options are strings, numbers, booleans, None, or lists and dicts of these.",
            ) from error
    if encoded(text) is None:
        raise SpecError(f"Option {index} of choice(), {shortened(repr(value))}, has a lone surrogate.")
    return text


def json_schema(
    schema: Any,
    *,
    whitespace: str = "flexible",
    property_order: str = "schema",
    formats: bool = True,
    integers: str = "plain",
    unsupported: str = "raise",
    draft: str | None = None,
    max_whitespace: int = 64,
    registry: Any = None,
    openapi: bool = False,
    content: bool = False,
    limits: Limits | None = None,
) -> Spec:
    """Return the spec of the JSON texts that a JSON Schema describes.

    Parameters
    ----------
    schema : dict, bool, str or Python type
        A schema, its JSON text, or what `python_type` takes.
    whitespace : str
        ``"flexible"`` (blanks wherever JSON allows them, at most ``max_whitespace`` bytes in a row, none
        before the first or after the last byte), ``"compact"`` (none), or a regular expression.
    property_order : {"schema", "any"}
        Declared properties in their order, then others; or any order.
    formats : bool
        Assert ``format``, in every draft.
    integers : {"plain", "any"}
        Digits alone; or also ``1.0`` and ``1e2``.
    unsupported : {"raise", "check", "ignore"}
        Refuse what cannot be enforced; enforce it while decoding; or drop it and say so in ``ignored``.
    draft : str or None
        ``"draft4"``, ``"draft6"``, ``"draft7"``, ``"draft2019-09"``, ``"draft2020-12"``; ``None`` reads
        ``$schema``, else takes the newest.
    max_whitespace : int
        Bytes.
    registry : referencing.Registry or mapping of str to schemas
        Documents that ``$ref`` may name, by their URIs. Nothing is ever fetched.
    openapi : bool
        Take ``nullable`` and ``discriminator`` as OpenAPI 3.0 does.
    content : bool
        Assert ``contentEncoding``, and ``contentMediaType: application/json``; else they are annotations.
    limits : Limits
        Upper limits on reading the schema.

    Raises
    ------
    SpecError
        A malformed schema, with its JSON pointer, or an unknown value of an option.
    UnsupportedFeatureError
        A keyword that cannot be enforced.
    EmptyLanguageError
        Nothing satisfies the schema.
    LimitExceededError
        The schema is too large.
    """
    given: dict[str, Any] = {
        "whitespace": whitespace,
        "property_order": property_order,
        "formats": formats,
        "integers": integers,
        "unsupported": unsupported,
        "draft": draft,
        "max_whitespace": max_whitespace,
    }
    if registry is not None:
        is_mapping = isinstance(registry, Mapping) and not hasattr(registry, "contents")
        given["registry"] = (
            dict(registry) if is_mapping else {uri: registry.contents(uri) for uri in registry}
        )
    if isinstance(schema, Mapping):
        schema = dict(schema)
    if openapi or content:
        schema = _translated(schema, given, openapi, content, limits)
    if isinstance(schema, dict | bool | str):
        return _schema_spec("json_schema", schema, given, _read_json, None, limits)
    return _type_spec("json_schema", schema, given, limits)


def _translated(
    schema: Any, given: dict[str, Any], openapi: bool, content: bool, limits: Limits | None
) -> Any:
    """Return the schema, and put the registry into ``given``, without extensions."""
    from constrain.grammars.json_schema.translate import translated

    watch = Watch(limits or Limits())
    if isinstance(schema, str):
        from constrain.grammars.json_schema.build import load_schema

        schema = load_schema(schema, watch)
    if not isinstance(schema, dict | bool):
        return schema
    if "registry" in given:
        given["registry"] = {
            uri: translated(document, watch, openapi=openapi, content=content)
            for uri, document in given["registry"].items()
        }
    return translated(schema, watch, openapi=openapi, content=content)


def python_type(tp: Any, *, limits: Limits | None = None) -> Spec:
    """Return the spec of the JSON texts of a Python type's values.

    Parameters
    ----------
    tp : type
        A pydantic model, dataclass, `TypedDict`, `NamedTuple`, `Enum`, `Literal`, union, ``list[...]``,
        ``datetime``, ``Decimal``, ``UUID``, ...: whatever pydantic can write a schema for.
    limits : Limits
        Upper limits on reading the type.

    Raises
    ------
    SpecError
        The type has no schema.
    UnsupportedFeatureError
        It asks for something that cannot be enforced.
    EmptyLanguageError
        It has no values.
    LimitExceededError
        It is too large.
    """
    return _type_spec("python_type", tp, {}, limits)


def _type_spec(kind: str, tp: Any, given: Mapping[str, Any], limits: Limits | None) -> Spec:
    from constrain.grammars.types import type_schema

    found = type_schema(tp)
    spec = _schema_spec(kind, found.schema, given, found.parse, tp, limits)
    if found.is_exact:
        return spec
    from constrain.type_check import TypeCheck

    name = tp.__name__ if isinstance(tp, type) else repr(tp)
    return spec.with_checks(TypeCheck(name, _type_key(tp), found.parse))


def _schema_spec(
    kind: str,
    schema: dict[str, Any] | bool | str,
    given: Mapping[str, Any],
    parse: Callable[[str], Any],
    tp: Any,
    limits: Limits | None,
) -> Spec:
    """Return the spec of a schema; ``tp`` is the Python type it comes from, if any."""
    from constrain.grammars.json_schema.build import add_conflict, any_value, open_grammar
    from constrain.grammars.json_schema.options import SchemaOptions
    from constrain.schema_check import schema_checks

    options = SchemaOptions(**given)
    watch = Watch(limits or Limits())

    def build(rest: Any) -> Spec:
        """Build a spec that nobody keeps, to see whether anything satisfies a schema."""
        grammar = open_grammar(rest, options, watch=watch).grammar
        return Spec("json_schema", "", grammar, shown="", watch=watch)

    try:
        read = open_grammar(schema, options, watch=watch)
    except EmptyLanguageError as error:
        add_conflict(error, schema, options, watch, build)
        raise
    text = schema if isinstance(schema, str) else _schema_text(schema)
    is_json = isinstance(schema, str) or not text.startswith(_LEVELS)
    default = SchemaOptions()
    if tp is None:
        remake = partial(json_schema, text if is_json else schema, **given, limits=watch.limits)
    else:
        constructor: Callable[..., Spec] = python_type if kind == "python_type" else json_schema
        remake = partial(constructor, Held(tp, f"{kind}()"), **given, limits=watch.limits)
    chosen = tuple(
        (name, json.dumps(value, sort_keys=True) if isinstance(value, dict) else value)
        for name, value in given.items()
        if value != getattr(default, name)
    )
    name = tp.__name__ if isinstance(tp, type) else repr(tp).replace("typing.", "")

    def spec_of(read: SchemaGrammar) -> Spec:
        return Spec(
            kind,
            (text, _type_key(tp)),
            read.grammar,
            parse=parse,
            is_json=True,
            ignored=read.ignored,
            source={"schema": text, "options": dict(given)} if is_json else None,
            remake=remake,
            options=chosen,
            shown=shortened(text if tp is None else name),
            watch=watch,
            checks=schema_checks(read, options, (text, chosen), watch),
        )

    try:
        return spec_of(read)
    except EmptyLanguageError as error:
        add_conflict(error, schema, options, watch, build)
        raise
    except (LimitExceededError, UnsupportedFeatureError):
        if options.unsupported != "check":
            raise
    # Conjunctions that are too hard are left to the check with everything else.
    return spec_of(any_value(read.root, read.draft, options, watch))


_LEVELS = "levels:"


def _schema_text(schema: dict[str, Any] | bool) -> str:
    """Return a text that identifies a schema that was read without error.

    Raises
    ------
    SpecError
        A value that reading passes over, as of ``default``, isn't JSON, or a schema contains itself.
    """
    try:
        return json.dumps(schema, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SpecError(f"The schema is not JSON: {error}.", pointer="#") from error
    except RecursionError:
        # Deeper than the library's writer goes: level by level.
        parts: list[str] = [_LEVELS]
        todo: list[Any] = [schema]
        while todo:
            value = todo.pop()
            if isinstance(value, dict):
                parts.append(f"{{{len(value)}:{json.dumps(list(value))}")
                todo += reversed(value.values())
            elif isinstance(value, list):
                parts.append(f"[{len(value)}:")
                todo += reversed(value)
            else:
                parts.append(json.dumps(value))
        return "".join(parts)


def _type_key(tp: Any) -> object:
    """Return what identifies a type: itself, or, where it cannot be hashed, this very object."""
    try:
        hash(tp)
    except TypeError:
        return Identity.of(tp)
    return tp


def _read_json(text: str) -> Any:
    """Return the data of a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(f"The text is not JSON: {error.msg}.", source=text, offset=error.pos) from error
    except RecursionError as error:
        raise LimitExceededError(
            "nesting",
            text.count("[") + text.count("{"),
            "a JSON text",
            "Its data are nested too deeply to read.",
        ) from error
