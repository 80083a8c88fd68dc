"""Pictures of a spec: each rule and terminal as a railroad diagram, all in one HTML page."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import railroad

from constrain.base_spec import Spec
from constrain.grammars import ir

_MOST = 200
"""Alternatives of one choice that are drawn; the page says how many more there are."""
_DEEPEST = 40
"""Nested parts that are drawn; a picture that is deeper shows dots."""
_FULL = (0, 0x10FFFF)

_Item: TypeAlias = railroad.DiagramItem


@dataclass(frozen=True)
class _Names:
    grammar: ir.Grammar
    anchors: dict[str, str]


@dataclass(frozen=True)
class _Section:
    """A rule or a terminal: where links lead, its name, and its pictures."""

    anchor: str
    name: str
    items: list[_Item]

    def diagrams(self) -> Iterator[railroad.Diagram]:
        for item in self.items:
            yield railroad.Diagram(item, type="complex").format()


def spec_page(spec: Spec) -> str:
    """Return an HTML page with a railroad diagram of every rule and of every terminal that is no plain text.

    Returns
    -------
    str
        A whole document, without references to anything outside it.
    """
    title = html.escape(repr(spec))
    style = railroad.DEFAULT_STYLE
    start, notes = _notes(spec)
    notes = [
        f"Starts at <a href='#{_anchors(spec.grammar)[start]}'>{html.escape(start)}</a>.",
        *map(html.escape, notes),
    ]
    sections: list[str] = []
    for section in _sections(spec):
        out = io.StringIO()
        for diagram in section.diagrams():
            diagram.writeSvg(out.write)
            out.write("<br>\n")
        heading = f"<h2>{html.escape(section.name)}</h2>"
        sections.append(f"<section id='{section.anchor}'>{heading}\n{out.getvalue()}</section>\n")
    return (
        f"<!DOCTYPE html>\n<html lang='en'>\n<head><meta charset='utf-8'><title>{title}</title>\n"
        f"<style>{style}\nbody {{ font-family: sans-serif; margin: 2em; }} svg {{ max-width: none; }} "
        "section { overflow-x: auto; } h2 { font-size: 1em; margin-bottom: 0; }</style></head>\n"
        f"<body>\n<h1>{title}</h1>\n<p>{' '.join(notes)}</p>\n{''.join(sections)}</body>\n</html>\n"
    )


_MARGIN, _LINE = 20, 24


def spec_svg(spec: Spec) -> str:
    """Return the same pictures as `spec_page`, one below the other in one SVG document."""
    start, notes = _notes(spec)
    out = io.StringIO()
    y, width = _MARGIN, 0.0

    def write_line(text: str, kind: str) -> None:
        nonlocal y, width
        y += _LINE
        # Letters of these sizes are at most this wide.
        width = max(width, _MARGIN + len(text) * (12 if kind == "title" else 9))
        out.write(f"<text class='{kind}' x='{_MARGIN}' y='{y}'>{html.escape(_readable(text))}</text>\n")

    write_line(repr(spec), "title")
    for note in (f"Starts at {start}.", *notes):
        write_line(note, "note")
    for section in _sections(spec):
        y += _MARGIN
        out.write(f"<g id='{section.anchor}'>\n")
        write_line(section.name, "name")
        for diagram in section.diagrams():
            y += 8
            diagram.attrs["x"], diagram.attrs["y"] = str(_MARGIN), str(y)
            diagram.writeSvg(out.write)
            y += math.ceil(float(diagram.attrs["height"]))
            width = max(width, _MARGIN + float(diagram.attrs["width"]))
        out.write("</g>\n")
    size = f"width='{width + _MARGIN:.0f}' height='{y + _MARGIN}'"
    style = (
        f"{railroad.DEFAULT_STYLE} text {{ font: 14px sans-serif; }} text.title {{ font: bold 20px sans-serif; }} "
        "text.name { font: bold 14px sans-serif; }"
    )
    return (
        f"<?xml version='1.0' encoding='UTF-8'?>\n<svg xmlns='http://www.w3.org/2000/svg' "
        f"xmlns:xlink='http://www.w3.org/1999/xlink' {size} viewBox='0 0 {width + _MARGIN:.0f} {y + _MARGIN}'>\n"
        f"<title>{html.escape(_readable(repr(spec)))}</title>\n<style>{style}</style>\n"
        f"<rect width='100%' height='100%' fill='white'/>\n{out.getvalue()}</svg>\n"
    )


def _readable(text: str) -> str:
    """Return text without the characters that XML cannot have."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _anchors(grammar: ir.Grammar) -> dict[str, str]:
    # Numbers, because names may be JSON pointers, with signs that mean something in addresses.
    return {name: f"rule-{i}" for i, name in enumerate(grammar.rules)}


def _notes(spec: Spec) -> tuple[str, list[str]]:
    """Return the name of the start rule, and sentences about the whole spec."""
    grammar = spec.grammar
    notes: list[str] = []
    ignored = [grammar.terminals[i].name for i in grammar.ignored.terminals]
    if ignored:
        notes.append(f"Between the parts may stand: {', '.join(ignored)}.")
    if spec.ignored:
        notes.append(f"Not enforced: {', '.join(spec.ignored)}.")
    return grammar.start, notes


def _sections(spec: Spec) -> Iterator[_Section]:
    grammar = spec.grammar
    names = _Names(grammar, _anchors(grammar))
    for name, body in grammar.rules.items():
        drawn = _machine(names, body) if isinstance(body, ir.StateMachine) else [_rule(names, body, 0)]
        yield _Section(names.anchors[name], name, drawn)
    for i, terminal in _used_terminals(grammar):
        if not isinstance(terminal.pattern, ir.Literal):
            yield _Section(f"terminal-{i}", terminal.name, [_pattern(terminal.pattern, 0)])


def _used_terminals(grammar: ir.Grammar) -> Iterator[tuple[int, ir.Terminal]]:
    seen: set[int] = set(grammar.ignored.terminals)
    waiting: list[ir.Expression] = list(grammar.rules.values())
    while waiting:
        body = waiting.pop()
        if isinstance(body, ir.TerminalReference):
            seen.add(body.index)
        elif isinstance(body, ir.Sequence | ir.Choice):
            waiting += body.parts
        elif isinstance(body, ir.Repetition):
            waiting.append(body.body)
        elif isinstance(body, ir.StateMachine):
            waiting += [symbol for _, symbol, _ in body.edges if symbol is not None]
    return ((i, grammar.terminals[i]) for i in sorted(seen))


# ------------------------------------------------------------------------------------ rules


def _rule(names: _Names, body: ir.Expression, depth: int) -> _Item:
    if depth > _DEEPEST:
        return railroad.Comment("…")
    match body:
        case ir.TerminalReference(index):
            terminal = names.grammar.terminals[index]
            if isinstance(terminal.pattern, ir.Literal):
                return railroad.Terminal(_shown(terminal.pattern.data))
            return railroad.NonTerminal(terminal.name, href=f"#terminal-{index}")
        case ir.RuleReference(name):
            return railroad.NonTerminal(name, href=f"#{names.anchors[name]}")
        case ir.Sequence(parts):
            return _sequence([_rule(names, part, depth + 1) for part in parts])
        case ir.Choice(parts):
            return _choice([_rule(names, part, depth + 1) for part in parts[:_MOST]], len(parts))
        case ir.Repetition(inner, minimum, maximum):
            return _repeat(_rule(names, inner, depth + 1), minimum, maximum)
        case ir.StateMachine():
            return railroad.Stack(*_machine(names, body, depth))


def _machine(names: _Names, body: ir.StateMachine, depth: int = 0) -> list[_Item]:
    """Draw an automaton: one line for each state where ways part or meet."""
    leaving: dict[int, list[tuple[ir.TerminalReference | ir.RuleReference | None, int]]] = {}
    n_entering: dict[int, int] = {}
    for source, symbol, target in body.edges:
        leaving.setdefault(source, []).append((symbol, target))
        n_entering[target] = n_entering.get(target, 0) + 1

    def is_passed(state: int) -> bool:
        ways = len(leaving.get(state, ()))
        return ways == 1 and n_entering[state] == 1 and state not in body.accepting and state != body.start

    lines: list[_Item] = []
    waiting, seen = [body.start], {body.start}
    while waiting and len(lines) < _MOST:
        state = waiting.pop(0)
        ways: list[_Item] = []
        for symbol, reached in leaving.get(state, []):
            steps: list[_Item] = [] if symbol is None else [_rule(names, symbol, depth + 1)]
            target = reached
            while is_passed(target):
                ((symbol, target),) = leaving[target]
                if symbol is not None:
                    steps.append(_rule(names, symbol, depth + 1))
            is_end = target in body.accepting and target not in leaving
            steps.append(railroad.Comment("end" if is_end else f"go to {target}"))
            ways.append(_sequence(steps))
            if not is_end and target not in seen:
                seen.add(target)
                waiting.append(target)
        if state in body.accepting:
            ways.append(railroad.Comment("end"))
        lines.append(_sequence([railroad.Comment(f"{state}:"), _choice(ways, len(ways))]))
    if waiting:
        lines.append(railroad.Comment(f"at least {len(waiting):,} more states"))
    return lines


# ------------------------------------------------------------------------------------ patterns


def _pattern(pattern: ir.Pattern, depth: int) -> _Item:
    if depth > _DEEPEST:
        return railroad.Comment("…")
    match pattern:
        case ir.Literal(data):
            return railroad.Terminal(_shown(data)) if data else railroad.Skip()
        case ir.CharacterClass(ranges):
            return railroad.NonTerminal(_characters(ranges))
        case ir.ByteClass(ranges):
            return railroad.NonTerminal("byte " + " ".join(_byte_range(*r) for r in ranges[:8]))
        case ir.Concatenation(parts):
            return _sequence([_pattern(part, depth + 1) for part in parts])
        case ir.Alternation(parts):
            return _choice([_pattern(part, depth + 1) for part in parts[:_MOST]], len(parts))
        case ir.Repeat(body, minimum, maximum):
            return _repeat(_pattern(body, depth + 1), minimum, maximum)
        case ir.Intersection(parts):
            shown = [_pattern(part, depth + 1) for part in parts]
            return railroad.Stack(
                *[_sequence([railroad.Comment("and" if i else "both"), p]) for i, p in enumerate(shown)]
            )
        case ir.Complement(part):
            return railroad.Group(_pattern(part, depth + 1), "anything but")
        case ir.SpecialToken(name):
            return railroad.NonTerminal(f"special token {name}")
        case ir.Automaton():
            return railroad.NonTerminal(f"automaton of {pattern.n_states:,} states")


def _characters(ranges: ir.Ranges) -> str:
    if not ranges:
        return "nothing"
    shown, is_negated = ranges, False
    if (ranges[0][0], ranges[-1][1]) == _FULL:
        gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise(ranges)]
        shown = tuple(gap for gap in gaps if gap != (0xD800, 0xDFFF))
        is_negated = True
        if not shown:
            return "any character"
    parts = [_character(low) + (f"–{_character(high)}" if high > low else "") for low, high in shown[:8]]
    more = f" and {len(shown) - 8:,} more ranges" if len(shown) > 8 else ""
    return ("not " if is_negated else "") + " ".join(parts) + more


def _character(code: int) -> str:
    character = chr(code)
    return character if character.isprintable() and not character.isspace() else f"U+{code:04X}"


def _byte_range(low: int, high: int) -> str:
    return f"{low:02X}" if low == high else f"{low:02X}–{high:02X}"


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    short = text if len(text) <= 60 else f"{text[:57]}…"
    return _readable(short.replace(" ", "␣"))


# ------------------------------------------------------------------------------------ shapes


def _sequence(items: list[_Item]) -> _Item:
    if not items:
        return railroad.Skip()
    return items[0] if len(items) == 1 else railroad.Sequence(*items)


def _choice(items: list[_Item], total: int) -> _Item:
    if total > len(items):
        items = [*items, railroad.Comment(f"{total - len(items):,} more")]
    if not items:
        return railroad.Comment("nothing")
    return items[0] if len(items) == 1 else railroad.Choice(0, *items)


def _repeat(item: _Item, minimum: int, maximum: int | None) -> _Item:
    if maximum == 0:
        return railroad.Skip()
    if (minimum, maximum) == (0, 1):
        return railroad.Optional(item)
    if (minimum, maximum) == (1, 1):
        return item
    if maximum is None and minimum <= 1:
        return railroad.ZeroOrMore(item) if minimum == 0 else railroad.OneOrMore(item)
    times = (
        f"{minimum:,} times"
        if minimum == maximum
        else f"{max(minimum, 1):,} to {'any' if maximum is None else f'{maximum:,}'} times"
    )
    drawn = railroad.OneOrMore(item, railroad.Comment(times))
    return railroad.Optional(drawn) if minimum == 0 else drawn
