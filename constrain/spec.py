"""Specs: what the output must look like, without any tokenizer.

A `Spec` names a set of texts. Its constructors read and check everything at once: what they return can
be compiled for any vocabulary, matched against texts, explained and sampled.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_origin
from typing import Literal as LiteralType

from constrain.combine import concatenation, union
from constrain.errors import EmptyLanguageError, LimitExceededError, SpecError
from constrain.explanation import Explanation, explain_failure, place_explanation
from constrain.grammars.ir import EMPTY_LANGUAGE, Alternation, Grammar, Literal, pattern_grammar
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_regex
from constrain.tokenizer_index.arena import Arena, ArenaFull, EmptyTerminals, byte_arena
from constrain.tokenizer_index.network import Network, build_network

if TYPE_CHECKING:
    import numpy as np

    from constrain.compiled import CompiledSpec

__all__ = ["Explanation", "Spec", "choice", "json_schema", "python_type", "regex"]

_SHOWN = 60


class Spec:
    """A set of texts (UTF-8), made by `regex`, `choice`, `json_schema` or `python_type`.

    Immutable; two specs are equal if they were made by the same constructor from the same source and
    options. ``a | b`` holds the texts of either, ``a + b`` texts of ``a`` followed by texts of ``b``.

    Attributes
    ----------
    kind : str
        Name of the constructor; ``"union"``, ``"concatenation"``, ``"grammar"``.
    grammar : Grammar
        The intermediate representation.
    ignored : tuple of str
        What of the source is not enforced, as JSON pointers.
    is_json : bool
        Every member is a JSON text.
    network : Network
        The grammar as arrays; what `constrain.compile` reads.
    limits : Limits
        Upper limits on its own work.
    """

    __slots__ = (
        "_arena",
        "_bytes",
        "_hash",
        "_key",
        "_lock",
        "_options",
        "_parse",
        "_shown",
        "_source",
        "grammar",
        "ignored",
        "is_json",
        "kind",
        "limits",
        "network",
    )

    kind: str
    grammar: Grammar
    ignored: tuple[str, ...]
    is_json: bool
    network: Network
    limits: Limits
    _key: object
    _hash: int
    _parse: Callable[[str], Any]
    _options: tuple[tuple[str, object], ...]
    _shown: str
    _source: Mapping[str, Any] | None
    _lock: threading.Lock
    _arena: Arena | None
    _bytes: CompiledSpec | None

    def __init__(
        self,
        kind: str,
        key: object,
        grammar: Grammar,
        *,
        parse: Callable[[str], Any] = str,
        is_json: bool = False,
        ignored: tuple[str, ...] = (),
        options: tuple[tuple[str, object], ...] = (),
        source: Mapping[str, Any] | None = None,
        shown: str,
        watch: Watch,
    ) -> None:
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "_key", key)
        put(self, "_hash", hash((kind, key, options)))
        put(self, "grammar", grammar)
        put(self, "_parse", parse)
        put(self, "is_json", is_json)
        put(self, "ignored", ignored)
        put(self, "_options", options)
        put(self, "_shown", shown)
        put(self, "_source", source)
        put(self, "limits", watch.limits)
        put(self, "_lock", threading.Lock())
        put(self, "_arena", None)
        put(self, "_bytes", None)
        put(self, "network", build_network(grammar, watch))
        if _may_be_empty(self.network):
            # Raises EmptyLanguageError where conjunctions turn out to have no member.
            self._byte_arena()

    @classmethod
    def from_grammar(cls, grammar: Grammar, *, name: str = "grammar", limits: Limits | None = None) -> Spec:
        """Return the spec of a grammar in the intermediate representation; ``parse`` gives the text."""
        key = name, id(grammar), _Kept(grammar)
        return cls("grammar", key, grammar, shown=name, watch=Watch(limits or Limits()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Spec cannot be changed: {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Spec cannot be changed: {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return self is other or (
            self._hash == other._hash
            and (self.kind, self._options, self._key) == (other.kind, other._options, other._key)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.kind in ("union", "concatenation"):
            return self._shown
        options = "".join(f", {name}={value!r}" for name, value in self._options)
        return f"{self.kind}({self._shown}{options})"

    # -------------------------------------------------------------------------------- operators

    def __or__(self, other: Spec) -> Spec:
        """Return the spec of the texts of either; ``parse`` asks the left one first."""
        if not isinstance(other, Spec):
            return NotImplemented

        def parse(text: str) -> Any:
            return (self if self.matches(text) else other).parse(text)

        return Spec(
            "union",
            (self, other),
            union(self.grammar, other.grammar),
            parse=parse,
            is_json=self.is_json and other.is_json,
            ignored=tuple(dict.fromkeys(self.ignored + other.ignored)),
            source={"parts": [self, other]},
            shown=f"{_operand(self, 'union')} | {_operand(other, 'union')}",
            watch=Watch(self.limits),
        )

    def __add__(self, other: Spec) -> Spec:
        """Return the spec of texts of this one followed by texts of ``other``; ``parse`` gives the text."""
        if not isinstance(other, Spec):
            return NotImplemented
        return Spec(
            "concatenation",
            (self, other),
            concatenation(self.grammar, other.grammar),
            ignored=tuple(dict.fromkeys(self.ignored + other.ignored)),
            source={"parts": [self, other]},
            shown=f"{_operand(self, 'concatenation')} + {_operand(other, 'concatenation')}",
            watch=Watch(self.limits),
        )

    # -------------------------------------------------------------------------------- questions

    def matches(self, text: str | bytes) -> bool:
        """Is the whole text a member? Text with lone surrogates, and bytes that are no UTF-8, never are.

        Raises
        ------
        LimitExceededError
            The text leads to more states than ``limits`` allow.
        """
        data = _encoded(text)
        if data is None:
            return False
        arena, state, _ = self._read(data)
        return state >= 0 and arena.is_accepting(state)

    def explain(self, text: str | bytes) -> Explanation:
        """Say whether the whole text is a member, and if not, where it fails and what was expected.

        Raises
        ------
        LimitExceededError
            The text leads to more states than ``limits`` allow.
        """
        data = _encoded(text)
        if data is None:
            # What stands before the first lone surrogate can still be read.
            assert isinstance(text, str)
            before = text[: next(i for i, c in enumerate(text) if 0xD800 <= ord(c) <= 0xDFFF)]
            data = text.encode("utf-8", errors="surrogatepass")
            end = len(before.encode())
        else:
            end = len(data)
        arena, state, offset = self._read(data[:end])
        if state >= 0 and end == len(data) and arena.is_accepting(state):
            return place_explanation(data, offset, (), None, ok=True)
        if state < 0:
            arena, state, offset = self._read(data[:offset])
        return explain_failure(arena, state, data, offset, expected=self._expected(data[:offset]))

    def sample(self, rng: np.random.Generator, *, max_bytes: int = 4096) -> str:
        """Return a random member, for tests and documentation.

        Bytes are drawn one by one among those from which the text can still end in time, letters more
        often than symbols; how long it gets is drawn first, mostly little more than the shortest member.
        The distribution is neither uniform nor that of any model, but every member of at most
        ``max_bytes`` bytes can come.

        Parameters
        ----------
        rng : numpy.random.Generator
        max_bytes : int
            Longest member, in bytes of UTF-8.

        Raises
        ------
        SpecError
            No member is that short.
        """
        from constrain.compiled import compile as compile_spec
        from constrain.sampling import byte_vocabulary, sample

        with self._lock:
            compiled = self._bytes
        if compiled is None:
            compiled = compile_spec(self, byte_vocabulary(), cache=False, limits=self.limits)
            object.__setattr__(self, "_bytes", compiled)
        return sample(compiled, rng, max_bytes)

    def parse(self, text: str) -> Any:
        """Return the value that a member stands for.

        `regex`: the text. `choice`: the option, or the member of the `Enum`. `json_schema`: JSON data.
        `python_type`: an object of the type. A union asks the first part that has the text; a
        concatenation gives the text.

        Raises
        ------
        SpecError
            The text is not a member, as far as reading its value tells.
        """
        return self._parse(text)

    def source(self) -> dict[str, Any] | None:
        """Return what the spec was made from, as JSON data (parts of operators as specs); ``None`` if not text.

        ``regex``: pattern, flags. ``choice``: options, as JSON data. ``json_schema`` and ``python_type``:
        schema, options; a type's own parsing is not part of it.
        """
        key: Any = self._key
        match self.kind:
            case "union" | "concatenation":
                return {"parts": key}
            case "regex":
                return {"pattern": key, "flags": dict(self._options).get("flags", "")}
            case "choice":
                texts, kinds = key
                are_text = [issubclass(kind, str) for kind in kinds] or [True] * len(texts)
                return {
                    "options": [
                        text if is_text or self._is_text_option(text) else json.loads(text)
                        for text, is_text in zip(texts, are_text, strict=True)
                    ]
                }
            case "json_schema" | "python_type":
                try:
                    schema = json.loads(key[0])
                except (json.JSONDecodeError, RecursionError):
                    return None
                return {"schema": schema, "options": dict(self._options)}
        return None

    def _is_text_option(self, text: str) -> bool:
        """Does an option of a choice stand for its own text?"""
        value = self._parse(text)
        return isinstance(value.value if isinstance(value, Enum) else value, str)

    def source(self) -> dict[str, Any] | None:
        """Return what the spec was made from, as arguments of its constructor; ``None`` if that is no text.

        ``{"pattern", "flags"}`` for `regex`; ``{"options"}``, as JSON data, for `choice`; ``{"schema",
        "options"}``, the former as JSON text, for `json_schema` and `python_type`; ``{"parts"}``, two specs,
        for unions and concatenations.
        """
        return None if self._source is None else dict(self._source)

    # -------------------------------------------------------------------------------- inner work

    def _byte_arena(self, full: Arena | None = None) -> Arena:
        """Return the tables for texts; new ones in place of ``full``."""
        with self._lock:
            arena = self._arena
            if arena is None or arena is full:
                arena = self.tables(lambda network: byte_arena(network, self.limits))
                object.__setattr__(self, "_arena", arena)
            return arena

    def tables(self, make: Callable[[Network], Arena]) -> Arena:
        """Return what ``make`` makes of the network, flattened again where conjunctions turn out to be empty.

        Raises
        ------
        EmptyLanguageError
            Nothing is left without them.
        """
        try:
            return make(self.network)
        except EmptyTerminals as found:
            terminals = list(self.grammar.terminals)
            for t in found.terminals:
                terminals[t] = replace(terminals[t], pattern=EMPTY_LANGUAGE)
            grammar = replace(self.grammar, terminals=tuple(terminals))
            object.__setattr__(self, "network", build_network(grammar, Watch(self.limits)))
        return make(self.network)

    def _read(self, data: bytes) -> tuple[Arena, int, int]:
        """Return the tables, the state after ``data`` (-1: cannot be read) and the bytes read."""
        arena = self._byte_arena()
        try:
            return arena, *arena.step_bytes(arena.start, data)
        except ArenaFull:
            arena = self._byte_arena(full=arena)
        try:
            return arena, *arena.step_bytes(arena.start, data)
        except ArenaFull as error:
            place = f"a text of {len(data):,} bytes"
            raise LimitExceededError(error.limit, error.value, place) from error

    def _expected(self, before: bytes) -> list[str] | None:
        """Return the options of a choice that go on after ``before``, for messages."""
        if self.kind != "choice":
            return None
        texts: tuple[str, ...] = self._key[0]  # type: ignore[index]
        return [repr(text) for text in texts if text and text.encode().startswith(before)]


class _Kept:
    """Keeps an object alive in a key, so that its identity stays its own; all are equal."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept)

    def __hash__(self) -> int:
        return 0


def _operand(spec: Spec, kind: str) -> str:
    """Return the repr of ``spec`` inside an operator of ``kind``."""
    is_other = spec.kind in ("union", "concatenation") and spec.kind != kind
    return f"({spec!r})" if is_other else repr(spec)


def _encoded(text: str | bytes) -> bytes | None:
    """Return the bytes of a text; ``None`` if it has lone surrogates."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            return None
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise TypeError(f"expected text or bytes, found {type(text).__name__}")


def _may_be_empty(network: Network) -> bool:
    """Could a conjunction turn out to be empty? One pattern but for excluded words hardly ever is."""
    offsets = network.literal_offsets.tolist()
    negative = network.literal_negative.tolist()
    return any(high - low > 1 and negative[low:high].count(0) > 1 for low, high in pairwise(offsets))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


# ------------------------------------------------------------------------------------ constructors


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
            pattern_grammar(parsed),
            options=(("flags", flags),) if flags else (),
            source={"pattern": pattern, "flags": flags},
            shown=_shortened(repr(pattern)),
            watch=watch,
        )
    except EmptyLanguageError as error:
        raise EmptyLanguageError("No text matches this pattern.", source=pattern, offset=0) from error


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
    shown = ", ".join(_shortened(text) for text in listed) + (", …" if len(values) > 3 else "")
    pattern = Literal(texts[0].encode()) if len(texts) == 1 else None
    watch = Watch(limits or Limits())

    def parse(text: str) -> Any:
        if text not in values:
            raise SpecError(f"{_shortened(text)!r} is none of the options.")
        return values[text]

    kinds = tuple(map(type, values.values()))
    return Spec(
        "choice",
        (texts, () if set(kinds) == {str} else kinds),
        pattern_grammar(pattern or Alternation(tuple(Literal(text.encode()) for text in texts)), "choice"),
        parse=parse,
        source={"options": [v.value if isinstance(v, Enum) else v for v in values.values()]},
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
            f"choice() got {_shortened(repr(options))}.",
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
                f"Option {index} of choice(), {_shortened(repr(value))}, is neither text nor JSON data.",
                hint="Options are strings, numbers, booleans, None, or lists and dicts of these.",
            ) from error
    if _encoded(text) is None:
        raise SpecError(f"Option {index} of choice(), {_shortened(repr(value))}, has a lone surrogate.")
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
    if isinstance(schema, Mapping):
        schema = dict(schema)
    if isinstance(schema, dict | bool | str):
        return _schema_spec("json_schema", schema, given, _read_json, None, limits)
    return _type_spec("json_schema", schema, given, limits)


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
    return _schema_spec(kind, found.schema, given, found.parse, tp, limits)


def _schema_spec(
    kind: str,
    schema: dict[str, Any] | bool | str,
    given: Mapping[str, Any],
    parse: Callable[[str], Any],
    tp: Any,
    limits: Limits | None,
) -> Spec:
    """Return the spec of a schema; ``tp`` is the Python type it comes from, if any."""
    from constrain.grammars.json_schema.build import schema_grammar
    from constrain.grammars.json_schema.options import SchemaOptions

    options = SchemaOptions(**given)
    watch = Watch(limits or Limits())
    read = schema_grammar(schema, options, watch=watch)
    text = schema if isinstance(schema, str) else _schema_text(schema)
    is_json = isinstance(schema, str) or not text.startswith(_LEVELS)
    default = SchemaOptions()
    return Spec(
        kind,
        (text, _type_key(tp)),
        read.grammar,
        parse=parse,
        is_json=True,
        ignored=read.ignored,
        source={"schema": text, "options": dict(given)} if is_json else None,
        options=tuple((name, value) for name, value in given.items() if value != getattr(default, name)),
        shown=_shortened(text)
        if tp is None
        else _shortened(tp.__name__ if isinstance(tp, type) else repr(tp).replace("typing.", "")),
        watch=watch,
    )


_LEVELS = "levels:"


def _schema_text(schema: dict[str, Any] | bool) -> str:
    """Return a text that identifies a schema that was read without error."""
    try:
        return json.dumps(schema, ensure_ascii=False)
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
        return id(tp), _Kept(tp)
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
