"""Tagged output as a grammar.

Free text is one lexeme up to and including the first word or special token that ends it, so it is cut in one
way only. Everything that follows a free text is handed to the function that builds it (``ends``), since the
text may end in the beginning of that.
"""

from __future__ import annotations

from constrain.grammars import ir
from constrain.grammars.combine import mapped_symbols
from constrain.grammars.errors import SpecError
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.build import concatenate
from constrain.grammars.tags.formats import (
    HOLE_MARK,
    Choice,
    Constant,
    Embedded,
    Format,
    FreeText,
    Hole,
    Mark,
    Marks,
    Repeated,
    SeparatedTags,
    Sequence,
    Tag,
    TriggeredTags,
    shown,
    without_prefix,
)
from constrain.grammars.tags.joined import Joined
from constrain.grammars.tags.text import up_to, without

_NOTHING = ir.Sequence(())
_START = "start"


def tagged_grammar(output: Format, *, watch: Watch) -> ir.Grammar:
    """Return the grammar of an output.

    Raises
    ------
    SpecError
        A tag begins with no trigger, or a trigger can never be complete.
    LimitExceededError
        The output is too large.
    """
    assembly = Assembly(watch)
    assembly.rules[_START] = run(assembly.expression(output, ()))
    return assembly.grammar(_START)


class Assembly:
    """Terminals and rules of a grammar under construction, taken over from others.

    Attributes
    ----------
    terminals : list of Terminal
    rules : dict of str to Expression
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.terminals: list[ir.Terminal] = []
        self.rules: dict[str, ir.Expression] = {}
        self.pointers: dict[str, str] = {}
        self._literals: dict[Mark, int] = {}
        self._taken: dict[tuple[int, str, int, bool, ir.Ranges], int] = {}
        self._kept: list[ir.Pattern] = []
        self._embedded: dict[int, tuple[Embedded, ir.RuleReference]] = {}
        self._joined: dict[object, Joined] = {}

    def grammar(self, start: str) -> ir.Grammar:
        """Return the grammar with this start rule."""
        self.write_embedded()
        rules = {start: self.rules[start], **self.rules}
        return ir.Grammar(tuple(self.terminals), rules, start, pointers=self.pointers)

    # -------------------------------------------------------------------------------- elements

    def expression(self, output: Format, ends: tuple[Marks, ...]) -> Task[ir.Expression]:
        """Return ``output`` followed by one of ``ends``; by nothing, if there are none."""
        self.watch.step("an output")
        match output:
            case FreeText(excludes):
                return self.text_up_to(excludes, ends) if ends else self.text(excludes)
            case TriggeredTags():
                triggered: ir.Expression = yield self.triggered(output, ends)
                return triggered
            case Sequence(parts) if parts:
                found = []
                for part in parts[:-1]:
                    found.append((yield self.expression(part, ())))
                found.append((yield self.expression(parts[-1], ends)))
                return ir.Sequence(tuple(found))
            case Choice(parts):
                found = []
                for part in parts:
                    found.append((yield self.expression(part, ends)))
                return ir.Choice(tuple(found))
            case Tag(begin, content, own) if own or not ends:
                inside = yield self.expression(content, own)
                return self.then((self.fixed(begin), inside), ends)
            case Tag(begin, content):
                return ir.Sequence((self.fixed(begin), (yield self.expression(content, ends))))
            case Constant(given):
                return self.then((self.fixed(given),), ends)
            case Hole(given, key):
                before = [ir.Literal(mark.encode()) if isinstance(mark, str) else mark for mark in given]
                pattern = concatenate((*before, ir.HOLE))
                return self.terminal(pattern, HOLE_MARK + key)
            case Embedded():
                return self.then((self.embedded(output),), ends)
            case Repeated(body, minimum, maximum):
                repeated = ir.Repetition((yield self.expression(body, ())), minimum, maximum)
                return self.then((repeated,), ends)
            case SeparatedTags():
                separated: ir.Expression = yield self.separated(output)
                return self.then((separated,), ends)
            case Sequence():
                return self.then((), ends)
        raise TypeError(f"no format: {output!r}")

    def triggered(self, output: TriggeredTags, ends: tuple[Marks, ...]) -> Task[ir.Expression]:
        """Return free text with tags in it."""
        words = [trigger for trigger in output.triggers if isinstance(trigger, str)]
        stops = first_words(ends)
        after: dict[Mark, list[ir.Expression]] = {trigger: [] for trigger in output.triggers}
        for tag in output.tags:
            trigger, rest = trigger_of(tag, output.triggers)
            inside = yield self.expression(tag.content, tag.ends)
            after[trigger].append(ir.Sequence((self.fixed(rest), inside)))
        cuts = (*words, *output.excludes, *stops)
        regions = []
        for trigger in output.triggers:
            if after[trigger]:
                segment = self.segment(cuts, trigger)
                regions.append(ir.Sequence((segment, ir.Choice(tuple(after[trigger])))))
        region: ir.Expression = ir.Choice(tuple(regions))
        excludes = (*words, *output.excludes)
        tail = self.text_up_to(excludes, ends) if ends else self.text(excludes)
        if output.stop_after_first:
            region = self.then((region,), ends)
            return region if output.at_least_one else ir.Choice((region, tail))
        return ir.Sequence((ir.Repetition(region, int(output.at_least_one), None), tail))

    def separated(self, output: SeparatedTags) -> Task[ir.Expression]:
        """Return tags with a separator between them."""
        tags = []
        for tag in output.tags:
            tags.append((yield self.expression(tag, ())))
        one = ir.Choice(tuple(tags))
        body: ir.Expression = one
        if not output.stop_after_first:
            more = ir.Sequence((self.fixed(output.separator), one))
            body = ir.Sequence((one, ir.Repetition(more, 0, None)))
        return body if output.at_least_one else ir.Repetition(body, 0, 1)

    # -------------------------------------------------------------------------------- text

    def text(self, excludes: tuple[str, ...]) -> ir.Expression:
        """Return free text to the end."""
        return self.terminal(without(tuple(dict.fromkeys(excludes))), "text")

    def text_up_to(self, excludes: tuple[str, ...], ends: tuple[Marks, ...]) -> ir.Expression:
        """Return free text and the first of ``ends`` in it."""
        cuts = (*first_words(ends), *excludes)
        found = []
        for end in ends:
            if not end:
                found.append(self.text(cuts))
                continue
            found.append(ir.Sequence((self.segment(cuts, end[0]), self.fixed(end[1:]))))
        return ir.Choice(tuple(found))

    def segment(self, cuts: tuple[str, ...], end: Mark) -> ir.TerminalReference:
        """Return free text up to and including ``end``; none of ``cuts`` is complete before."""
        words = tuple(dict.fromkeys(cuts))
        if isinstance(end, str):
            pattern: ir.Pattern = up_to(words)[words.index(end)]
        else:
            pattern = concatenate((without(words), end))
        return self.terminal(pattern, f"text up to {shown((end,))!r}")

    def fixed(self, given: Marks) -> ir.Expression:
        """Return marks."""
        found = []
        for mark in given:
            if mark == "":
                continue
            index = self._literals.get(mark)
            if index is None:
                pattern = ir.Literal(mark.encode()) if isinstance(mark, str) else mark
                self.terminals.append(ir.Terminal(pattern, repr(shown((mark,)))))
                index = self._literals[mark] = len(self.terminals) - 1
            found.append(ir.TerminalReference(index))
        return found[0] if len(found) == 1 else ir.Sequence(tuple(found))

    def then(self, parts: tuple[ir.Expression, ...], ends: tuple[Marks, ...]) -> ir.Expression:
        """Return ``parts`` followed by one of ``ends``."""
        if ends:
            parts = (*parts, ir.Choice(tuple(self.fixed(end) for end in ends)))
        return parts[0] if len(parts) == 1 else ir.Sequence(parts)

    # -------------------------------------------------------------------------------- terminals, grammars

    def terminal(
        self,
        pattern: ir.Pattern,
        name: str,
        priority: int = 0,
        greedy: bool = False,
        pointer: str | None = None,
        not_before: ir.Ranges = (),
    ) -> ir.TerminalReference:
        """Return the terminal of a pattern; the same one for the same pattern object."""
        key = id(pattern), name, priority, greedy, not_before
        index = self._taken.get(key)
        if index is None:
            index = self._taken[key] = len(self.terminals)
            self._kept.append(pattern)
            self.terminals.append(ir.Terminal(pattern, name, priority, greedy, pointer, not_before))
        return ir.TerminalReference(index)

    def embedded(self, output: Embedded) -> ir.RuleReference:
        """Return the start rule of a grammar that is taken over; of the same one for the same grammar."""
        known = self._embedded.get(id(output.grammar))
        if known is not None:
            return known[1]
        policy = Joined.policy(output.grammar)
        joined = self._joined.get(policy)
        if joined is None:
            joined = self._joined[policy] = Joined(output.grammar)
        start = joined.add(output.grammar)
        self.watch.step("an output", 8 * len(output.grammar.rules))
        reference = ir.RuleReference(f"{start} of {list(self._joined).index(policy)}")
        self._embedded[id(output.grammar)] = output, reference
        return reference

    def write_embedded(self) -> None:
        """Write out all grammars that were taken over."""
        for number, joined in enumerate(self._joined.values()):
            found, starts = joined.grammar()
            taken = [
                self.terminal(t.pattern, t.name, t.priority, t.greedy, t.pointer, t.not_before)
                for t in found.terminals
            ]
            names = {name: f"{name} in {number}" for name in found.rules}
            for name, body in found.rules.items():
                self.rules[names[name]] = run(mapped_symbols(body, taken.__getitem__, names.__getitem__))
                if name in found.pointers:
                    self.pointers[names[name]] = found.pointers[name]
                self.watch.step("an output", 8)
            for given, start in starts.items():
                self.rules[f"{given} of {number}"] = ir.RuleReference(names[start])


def first_words(ends: tuple[Marks, ...]) -> tuple[str, ...]:
    """Return the texts that ends begin with."""
    return tuple(end[0] for end in ends if end and isinstance(end[0], str))


def trigger_of(tag: Tag, triggers: tuple[Mark, ...]) -> tuple[Mark, Marks]:
    """Return the trigger that a tag begins with, and what comes after it."""
    found = [(trigger, without_prefix(tag.begin, trigger)) for trigger in triggers]
    # Of triggers that begin alike the shortest is complete first.
    fitting = [(trigger, rest) for trigger, rest in found if rest is not None]
    if not fitting:
        raise SpecError(
            f"The tag that begins with {shown(tag.begin)!r} begins with none of the triggers.",
            hint=f"They are {', '.join(repr(shown((trigger,))) for trigger in triggers)}.",
        )
    return min(fitting, key=lambda pair: len(shown((pair[0],))))
