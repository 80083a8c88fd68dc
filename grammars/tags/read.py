"""Structural tags as JSON objects, in both shapes that servers take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from constrain.grammars.errors import SpecError, UnsupportedFeatureError
from constrain.grammars.ir import Grammar, SpecialToken, pattern_grammar
from constrain.grammars.json_schema.build import explained_grammar
from constrain.grammars.json_schema.options import SchemaGrammar, SchemaOptions
from constrain.grammars.limits import Watch
from constrain.grammars.regex.parse import parse_regex
from constrain.grammars.tags.formats import (
    Choice,
    Constant,
    Embedded,
    Format,
    FreeText,
    Mark,
    Marks,
    Repeated,
    SeparatedTags,
    Sequence,
    Tag,
    TriggeredTags,
)

ReadGrammar: TypeAlias = Callable[[str], Grammar]

_SHAPES = 'Write {"format": {...}}, or {"structures": [...], "triggers": [...]}.'
# Keys of each kind of element, required ones first; "?" marks the others.
_KEYS = {
    "const_string": ("value",),
    "json_schema": ("json_schema", "style?"),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": ("excludes?",),
    "token": ("token",),
    "sequence": ("elements",),
    "or": ("elements",),
    "optional": ("content",),
    "plus": ("content",),
    "star": ("content",),
    "repeat": ("content", "min", "max"),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags", "at_least_one?", "stop_after_first?", "excludes?"),
    "tags_with_separator": ("tags", "separator", "at_least_one?", "stop_after_first?"),
}
_KNOWN_ELSEWHERE = ("qwen_xml_parameter", "exclude_token", "any_tokens", "token_triggered_tags", "dispatch")


def read_structural_tag(
    data: Any, options: SchemaOptions, read_grammar: ReadGrammar, *, watch: Watch
) -> tuple[Format, tuple[SchemaGrammar, ...]]:
    """Return the output that a structural tag describes, and its schemas that leave something to a check.

    Parameters
    ----------
    data : mapping or str
        ``{"format": {...}}``, the older ``{"structures": [...], "triggers": [...]}``, either with
        ``"type": "structural_tag"``, an element alone, or the JSON text of any of these.
    options : SchemaOptions
        For the JSON Schemas in it.
    read_grammar : callable
        Reads the text of a ``"grammar"`` element.
    watch : Watch

    Raises
    ------
    SpecError
        It is malformed; the pointer says where.
    UnsupportedFeatureError
        It has an element that is not supported.
    """
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except json.JSONDecodeError as error:
            raise SpecError(
                f"The structural tag is not JSON: {error.msg}.", source=data, offset=error.pos
            ) from error
        except RecursionError as error:
            raise SpecError("The structural tag is nested too deeply to read.") from error
    reader = _Reader(options, read_grammar, watch)
    output = reader.whole(reader.mapping(data, "#"))
    return output, tuple(reader.left_open)


class _Reader:
    def __init__(self, options: SchemaOptions, read_grammar: ReadGrammar, watch: Watch) -> None:
        self.options = options
        self.read_grammar = read_grammar
        self.watch = watch
        self.left_open: list[SchemaGrammar] = []

    # -------------------------------------------------------------------------------- elements

    def whole(self, given: Mapping[str, Any]) -> Format:
        """Read the whole structural tag, in either shape."""
        if given.get("type", "structural_tag") != "structural_tag":
            return self.element(given, "#", 0)
        if "structures" in given or "triggers" in given:
            return self.older(given)
        if "format" in given:
            self.only(given, ("format", "type?"), "#")
            return self.element(given["format"], "#/format", 0)
        raise SpecError(
            "The structural tag has neither 'format' nor 'structures'.", pointer="#", hint=_SHAPES
        )

    def older(self, given: Mapping[str, Any]) -> Format:
        """Read the shape with structures and triggers."""
        self.only(given, ("structures", "triggers", "type?"), "#")
        tags = []
        for i, structure in enumerate(self.list(given["structures"], "#/structures")):
            place = f"#/structures/{i}"
            entry = self.mapping(structure, place)
            self.only(entry, ("begin", "schema", "end"), place)
            content = self.schema(entry["schema"], f"{place}/schema")
            begin = self.marks(entry["begin"], f"{place}/begin", is_empty_fine=False)
            end = self.marks(entry["end"], f"{place}/end")
            tags.append(Tag(begin, content, (end,) if end else ()))
        return TriggeredTags(self.triggers(given["triggers"], "#/triggers"), tuple(tags))

    def element(self, data: Any, place: str, depth: int) -> Format:
        """Read one element."""
        self.watch.at_most("nesting", 4 * depth, f"the structural tag at {place:.60}")
        self.watch.step("a structural tag")
        given = self.mapping(data, place)
        kind = given.get("type")
        if kind in _KNOWN_ELSEWHERE:
            raise UnsupportedFeatureError(str(kind), pointer=f"{place}/type")
        if not isinstance(kind, str) or kind not in _KEYS:
            known = ", ".join(map(repr, _KEYS))
            raise SpecError(
                f"{kind!r:.40} is no type of element.", pointer=f"{place}/type", hint=f"Known: {known}."
            )
        self.only(given, ("type", *_KEYS[kind]), place)
        if kind == "const_string":
            return Constant(self.marks(given["value"], f"{place}/value"))
        if kind == "token":
            return Constant((self.token(given["token"], f"{place}/token"),))
        if kind == "json_schema":
            if given.get("style", "json") != "json":
                raise UnsupportedFeatureError(f"style={given['style']!r}", pointer=f"{place}/style")
            return self.schema(given["json_schema"], f"{place}/json_schema")
        if kind == "regex":
            pattern = self.text(given["pattern"], f"{place}/pattern")
            return Embedded(
                pattern_grammar(self.placed(lambda: parse_regex(pattern, watch=self.watch), place))
            )
        if kind == "grammar":
            text = self.text(given["grammar"], f"{place}/grammar")
            return Embedded(self.placed(lambda: self.read_grammar(text), place))
        if kind == "any_text":
            return FreeText(self.words(given.get("excludes", []), f"{place}/excludes"))
        if kind in ("sequence", "or"):
            found = [
                self.element(part, f"{place}/elements/{i}", depth + 1)
                for i, part in enumerate(self.list(given["elements"], f"{place}/elements"))
            ]
            return Sequence(tuple(found)) if kind == "sequence" else Choice(tuple(found))
        if kind in ("optional", "plus", "star", "repeat"):
            content = self.element(given["content"], f"{place}/content", depth + 1)
            low, high = {"optional": (0, 1), "plus": (1, None), "star": (0, None), "repeat": (0, 0)}[kind]
            if kind == "repeat":
                low = self.count(given["min"], f"{place}/min")
                high = None if given["max"] in (None, -1) else self.count(given["max"], f"{place}/max")
            return Repeated(content, low, high)
        if kind == "tag":
            return self.tag(given, place, depth)
        tags = [
            self.tag(self.mapping(tag, f"{place}/tags/{i}"), f"{place}/tags/{i}", depth)
            for i, tag in enumerate(self.list(given["tags"], f"{place}/tags"))
        ]
        at_least_one = self.flag(given, "at_least_one", place)
        stop_after_first = self.flag(given, "stop_after_first", place)
        if kind == "tags_with_separator":
            separator = self.marks(given["separator"], f"{place}/separator")
            return SeparatedTags(tuple(tags), separator, at_least_one, stop_after_first)
        excludes = self.words(given.get("excludes", []), f"{place}/excludes")
        triggers = self.triggers(given["triggers"], f"{place}/triggers")
        return TriggeredTags(triggers, tuple(tags), at_least_one, stop_after_first, excludes)

    def tag(self, given: Mapping[str, Any], place: str, depth: int) -> Tag:
        self.only(given, ("type?", *_KEYS["tag"]), place)
        if given.get("type", "tag") != "tag":
            raise SpecError(f"{given['type']!r} stands where a tag is expected.", pointer=f"{place}/type")
        begin = self.marks(given["begin"], f"{place}/begin", is_empty_fine=False)
        ends = given["end"] if isinstance(given["end"], list) else [given["end"]]
        if not ends:
            raise SpecError('expected at least one end; "" is a tag without one.', pointer=f"{place}/end")
        found = tuple(self.marks(end, f"{place}/end") for end in ends)
        content = self.element(given["content"], f"{place}/content", depth + 1)
        return Tag(begin, content, found if any(found) else ())

    def schema(self, data: Any, place: str) -> Format:
        """Read a JSON Schema."""
        if not isinstance(data, (dict, bool, str)):
            raise SpecError(f"expected a JSON Schema, found {data!r:.40}.", pointer=place)
        read = self.placed(lambda: explained_grammar(data, self.options, watch=self.watch), place)
        if read.left_open:
            self.left_open.append(read)
        return Embedded(read.grammar)

    def placed(self, read: Callable[[], Any], place: str) -> Any:
        """Return what ``read`` returns; its errors are given the place."""
        try:
            return read()
        except SpecError as error:
            if error.pointer is None or error.pointer.startswith("#"):
                error.pointer = place + (error.pointer or "#")[1:]
            raise

    # -------------------------------------------------------------------------------- values

    def mapping(self, data: Any, place: str) -> Mapping[str, Any]:
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            raise SpecError(f"expected an object, found {data!r:.40}.", pointer=place)
        return data

    def only(self, given: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
        """Check that all required keys are there and no others."""
        known = [key.rstrip("?") for key in keys]
        for key in keys:
            if not key.endswith("?") and key not in given:
                raise SpecError(f"{key!r} is missing.", pointer=place)
        for key in given:
            if key not in known:
                raise SpecError(
                    f"{key!r} is not known here.",
                    pointer=f"{place}/{key}",
                    hint=f"Known: {', '.join(known)}.",
                )

    def list(self, data: Any, place: str) -> list[Any]:
        if not isinstance(data, list | tuple) or not data:
            raise SpecError(f"expected a list that is not empty, found {data!r:.40}.", pointer=place)
        return list(data)

    def text(self, data: Any, place: str) -> str:
        if not isinstance(data, str):
            raise SpecError(f"expected text, found {data!r:.40}.", pointer=place)
        try:
            data.encode()
        except UnicodeEncodeError as error:
            raise SpecError("The text has a lone surrogate.", pointer=place) from error
        return data

    def words(self, data: Any, place: str) -> tuple[str, ...]:
        if not isinstance(data, list | tuple):
            raise SpecError(f"expected a list of texts, found {data!r:.40}.", pointer=place)
        found = tuple(self.text(word, f"{place}/{i}") for i, word in enumerate(data))
        if "" in found:
            raise SpecError("An empty text stands everywhere.", pointer=f"{place}/{found.index('')}")
        return found

    def token(self, data: Any, place: str) -> SpecialToken:
        if isinstance(data, bool) or not isinstance(data, str | int) or data == "":
            raise SpecError(f"expected the name or id of a token, found {data!r:.40}.", pointer=place)
        return SpecialToken(data)

    def marks(self, data: Any, place: str, *, is_empty_fine: bool = True) -> Marks:
        if isinstance(data, SpecialToken):
            return (data,)
        if isinstance(data, Mapping):
            self.only(data, ("type", "token"), place)
            return (self.token(data["token"], f"{place}/token"),)
        text = self.text(data, place)
        if not text and not is_empty_fine:
            raise SpecError("A tag cannot begin with nothing.", pointer=place)
        return (text,) if text else ()

    def triggers(self, data: Any, place: str) -> tuple[Mark, ...]:
        found: list[Mark] = []
        for i, trigger in enumerate(self.list(data, place)):
            found += self.marks(trigger, f"{place}/{i}", is_empty_fine=False)
        return tuple(dict.fromkeys(found))

    def count(self, data: Any, place: str) -> int:
        if isinstance(data, bool) or not isinstance(data, int) or data < 0:
            raise SpecError(f"expected a count, found {data!r:.40}.", pointer=place)
        return data

    def flag(self, given: Mapping[str, Any], key: str, place: str) -> bool:
        value = given.get(key, False)
        if not isinstance(value, bool):
            raise SpecError(f"expected true or false, found {value!r:.40}.", pointer=f"{place}/{key}")
        return value
