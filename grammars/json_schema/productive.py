"""Which rules derive no text, because each would have to hold another of them without end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constrain.grammars.ir import RuleReference, TerminalReference
from constrain.grammars.limits import Watch


def unproductive_rules(
    needs: Mapping[str, Sequence[Sequence[TerminalReference | RuleReference]]], watch: Watch
) -> set[str]:
    """Return the names of the rules that derive no text, terminals taken to match something.

    Parameters
    ----------
    needs : mapping of str to sequences of references
        What a text of the rule must hold: one of each sequence. Rules that aren't listed need nothing.
    watch : Watch
    """
    unproductive = set(needs)

    def is_met(references: Sequence[TerminalReference | RuleReference]) -> bool:
        for reference in references:
            if isinstance(reference, TerminalReference) or reference.name not in unproductive:
                return True
        return False

    # Rules come before those that they need, as a rule; so most are settled in one pass from the last to the first.
    for name in reversed(tuple(needs)):
        watch.step(name)
        if all(map(is_met, needs[name])):
            unproductive.discard(name)
    if not unproductive:
        return unproductive
    # A rule is looked at again only when one that it needs turns out to be productive.
    users: dict[str, list[str]] = {}
    for name in unproductive:
        watch.step(name)
        for references in needs[name]:
            for reference in references:
                if isinstance(reference, RuleReference) and reference.name in unproductive:
                    users.setdefault(reference.name, []).append(name)
    todo = list(unproductive)
    while todo:
        name = todo.pop()
        watch.step(name)
        if name in unproductive and all(map(is_met, needs[name])):
            unproductive.discard(name)
            todo += users.get(name, ())
    return unproductive
