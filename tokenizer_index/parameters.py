"""Parameters of rules: which of its elements a text has had, and how many.

A rule with a parameter keeps its automaton (`transition_network`); what its dotted states allow depends on a
*value*: the set of elements that were taken, and their number up to where it still matters. The kernels make
the dotted states of values that texts meet.

Whether a value can go on is decided by counting: what is still required, with what that needs, must fit below
the most. Elements are given as the bits of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from constrain.grammars.errors import SpecError
from constrain.grammars.ir import CLOSE, COUNT, KEEP, MORE, Parameter

# Compiled kernels hold these numbers; they are compiled again when this file changes.
assert (KEEP, MORE, CLOSE, COUNT) == (-1, -2, -3, -4)
BITS = 32
"""Bits in a word of a set."""
RECORDS = 1 << 28
"""In an edge's action: the lexeme must differ from those before, and is kept."""
NO_ELEMENT = RECORDS - 1
"""What such an edge takes if it adds an element that may come any number of times."""
COLUMNS = 10
LARGEST = 1 << 40
"""No text has so many elements."""
(
    PM_ELEMENTS,
    PM_WORDS,  # of a set
    PM_LEAST,
    PM_MOST,  # or -1
    PM_FREE,  # others may be counted
    PM_TAKING,  # the dotted state in which elements are taken after the first, or -1
    PM_BEHIND,  # the one behind an element, or -1
    PM_SETS,  # where its sets begin: what is required, what there may be
    PM_NEEDS,  # the sets of what each element needs, or -1
) = range(9)


class FlatParameter(NamedTuple):
    """A parameter as the kernels have it."""

    columns: list[int]
    required: int
    usable: int
    needs: list[int]


def _closed(parameter: Parameter) -> dict[int, int]:
    """Return what each element needs, and what that needs, and so on."""
    needs: dict[int, int] = {}
    for element, others in parameter.needs:
        for other in others:
            needs[element] = needs.get(element, 0) | 1 << other
    is_changed = True
    while is_changed:
        is_changed = False
        for element, found in needs.items():
            more = everything(needs, found)
            if more != found:
                needs[element] = more
                is_changed = True
    return needs


def everything(needs: dict[int, int], elements: int) -> int:
    """Return ``elements`` and what they need."""
    found = elements
    for element, others in needs.items():
        if elements >> element & 1:
            found |= others
    return found


def with_needs(parameter: Parameter, elements: int) -> int:
    """Return those of ``elements`` of which all that they need is there, too."""
    if not parameter.needs:
        return elements
    for element, others in _closed(parameter).items():
        if others & ~elements:
            elements &= ~(1 << element)
    return elements


def is_possible(parameter: Parameter, usable: int, is_free: bool) -> bool:
    """Is there a text, if only ``usable`` elements can be taken, and others only if ``is_free``?"""
    required = everything(_closed(parameter), sum(1 << element for element in parameter.required))
    if required & ~usable:
        return False
    if not is_free and parameter.least > usable.bit_count():
        return False
    most = parameter.most
    if parameter.least >= LARGEST:
        return False
    return most is None or (required.bit_count() <= most and parameter.least <= most)


def flat(
    parameter: Parameter, usable: int, edges: Sequence[tuple[int, int, int, int]], place: str
) -> FlatParameter:
    """Return the parameter of a rule with ``edges`` (source, symbol, target, action), all of which can be used.

    Raises
    ------
    SpecError
        The rule's automaton isn't of the kind that `StateMachine` describes.
    """
    more = {(source, target) for source, _, target, action in edges if action == MORE}
    counted = {target for _, _, target, action in edges if action == COUNT}
    behind, taking = -1, -1
    if len(more) == 1:
        ((behind, taking),) = more
    elif not more and len(counted) == 1 and all(action == COUNT for *_, action in edges):
        (behind,) = counted
        taking = behind
    elif more or any(action >= 0 or action == COUNT for *_, action in edges):
        raise SpecError(f"{place} has a parameter, but not one state behind its elements.")
    needs = _closed(parameter)
    required = everything(needs, sum(1 << element for element in parameter.required))
    is_free = bool(counted)
    most = parameter.most
    if needs and most is not None and parameter.least > required.bit_count():
        raise SpecError(f"{place} has a parameter whose bounds and needs are not decided together.")
    n = parameter.n_elements
    most = -1 if most is None or most >= LARGEST else most
    columns = [n, -(-n // BITS), parameter.least, most, int(is_free), taking, behind]
    return FlatParameter(columns, required, usable, [needs.get(i, 0) for i in range(n)] if needs else [])


def moved(parameter: FlatParameter, more: int) -> FlatParameter:
    """Return a parameter whose dotted states have numbers larger by ``more``."""
    columns = [
        column + more if i in (PM_TAKING, PM_BEHIND) and column >= 0 else column
        for i, column in enumerate(parameter.columns)
    ]
    return parameter._replace(columns=columns)


def arrays(parameters: Sequence[FlatParameter]) -> tuple[list[int], list[int]]:
    """Return the rows of all parameters, and the words of their sets."""
    rows: list[int] = []
    words: list[int] = []
    for one in parameters:
        n_words = one.columns[PM_WORDS]
        needs = len(words) + 2 * n_words if one.needs else -1
        rows += [*one.columns, len(words), needs, 0]
        for bits in (one.required, one.usable, *one.needs):
            words += [bits >> BITS * i & (1 << BITS) - 1 for i in range(n_words)]
    return rows, words
