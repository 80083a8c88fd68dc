"""The order in which rules can be read: those that others refer to first, and recursive ones together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def components(start: str, uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the strongly connected components of what ``start`` reaches, callees before callers.

    Tarjan's algorithm (1972), with a stack of its own.
    """
    found: list[list[str]] = []
    index: dict[str, int] = {start: 0}
    lowest = {start: 0}
    open_names = [start]
    is_open = {start}
    tasks: list[tuple[str, Iterator[str]]] = [(start, iter(uses[start]))]
    while tasks:
        name, called = tasks[-1]
        for other in called:
            if other not in index:
                index[other] = lowest[other] = len(index)
                open_names.append(other)
                is_open.add(other)
                tasks.append((other, iter(uses[other])))
                break
            if other in is_open:
                lowest[name] = min(lowest[name], index[other])
        else:
            tasks.pop()
            if tasks:
                caller = tasks[-1][0]
                lowest[caller] = min(lowest[caller], lowest[name])
            if lowest[name] == index[name]:
                group: list[str] = []
                while name not in group[-1:]:
                    group.append(open_names.pop())
                is_open.difference_update(group)
                found.append(group[::-1])
    return found
