"""What a regular expression with lazy repeats takes from the front of a text.

For whole texts laziness means nothing. Where a match is taken from the front of a text, as a lexer does,
``".*?"`` is one string and ``".*"`` reaches to the last quotation mark. `eager` returns a tree without lazy
repeats such that the longest text of its language at the front of a text is what `re.match` takes: another round
of ``x*?`` is only tried where the rest of the pattern, ``R``, does not match, so it is ``(?:(?!R)x)*``.

Apart from that the longest match counts, and not the order of alternatives: ``a|ab`` may take ``ab``.
"""

from __future__ import annotations

from constrain.grammars.errors import UnsupportedFeatureError
from constrain.grammars.ir import EMPTY_STRING
from constrain.grammars.recursion import Task, run
from constrain.grammars.regex.nodes import (
    Choice,
    Lazy,
    Look,
    Loop,
    Node,
    Sequence,
    Tree,
    choice,
    look,
    loop,
    sequence,
    tree_lengths,
)
from constrain.grammars.regex.python_dialect import PythonReader

_MOST_ROUNDS = 32


class LexemeReader(PythonReader):
    """Reads a pattern of `re` and keeps its lazy repeats."""

    def loop(self, body: Tree, minimum: int, maximum: int | None, is_lazy: bool) -> Tree:
        """Return ``body`` repeated."""
        if not is_lazy or minimum == maximum:
            return loop(body, minimum, maximum)
        return Lazy(body, minimum, maximum)


def eager(tree: Tree) -> Tree:
    """Return ``tree`` without lazy repeats; see the module text."""
    return run(_Rewriting().eager(tree, EMPTY_STRING)) if isinstance(tree, Node) else tree


class _Rewriting:
    """One run of `eager`. Trees are known by their identity; they live as long as the one given does."""

    def __init__(self) -> None:
        self.greedy_form: dict[int, Tree] = {}

    def greedy(self, tree: Tree) -> Task[Tree]:
        """Return ``tree`` with its lazy repeats as ordinary ones; the same object if it has none."""
        if not isinstance(tree, Node):
            return tree
        found = self.greedy_form.get(id(tree))
        if found is None:
            found = self.greedy_form[id(tree)] = yield self.greedy_node(tree)
        return found

    def greedy_node(self, tree: Tree) -> Task[Tree]:
        """Do the work of `greedy`."""
        body: Tree
        match tree:
            case Lazy(body, minimum, maximum):
                plain: Tree = yield self.greedy(body)
                return loop(plain, minimum, maximum)
            case Loop(body, minimum, maximum):
                inner = yield self.greedy(body)
                return tree if inner is body else loop(inner, minimum, maximum)
            case Look(ahead, negative, body, offset):
                inner = yield self.greedy(body)
                return tree if inner is body else look(ahead, negative, inner, offset)
            case Sequence(parts) | Choice(parts):
                new: list[Tree] = []
                for part in parts:
                    new.append((yield self.greedy(part)))
                if all(one is other for one, other in zip(new, parts, strict=True)):
                    return tree
                return sequence(new) if isinstance(tree, Sequence) else choice(new)
            case _:
                return tree

    def eager(self, tree: Tree, rest: Tree) -> Task[Tree]:
        """Return ``tree`` without lazy repeats, where ``rest`` follows."""
        plain: Tree = yield self.greedy(tree)
        if plain is tree:
            return tree
        match tree:
            case Loop():
                found_loop: Tree = yield self.loop(tree, rest)
                return found_loop
            case Look():
                return plain
            case Choice(parts):
                found: list[Tree] = []
                for part in parts:
                    found.append((yield self.eager(part, rest)))
                return choice(found)
            case Sequence(parts):
                found = []
                for part in reversed(parts):
                    found.append((yield self.eager(part, rest)))
                    rest = sequence(((yield self.greedy(part)), rest))
                return sequence(found[::-1])
        raise TypeError(f"no tree with lazy repeats: {tree!r}")

    def loop(self, tree: Loop, rest: Tree) -> Task[Tree]:
        """Return a loop that is lazy, or has lazy repeats inside, as `eager` does."""
        body, minimum, maximum = tree.body, tree.minimum, tree.maximum
        stop = look(True, True, rest, 0)
        plain: Tree = yield self.greedy(body)
        if plain is body:
            more = loop(sequence((stop, body)), 0, _less(maximum, minimum))
            return sequence((loop(body, minimum, minimum), more))
        # What follows a round depends on how many may still come.
        is_open = maximum is None
        rounds = minimum if maximum is None else maximum
        if rounds > _MOST_ROUNDS or (maximum != minimum and tree_lengths(plain)[0] == 0):
            raise UnsupportedFeatureError(
                "*?",
                reason="is a lazy repeat inside a repeat of what may be empty, or of many rounds, which is not "
                "supported",
                hint="Write the inner repeat so that it need not be lazy, as in [^x]*x for .*?x.",
            )
        after: Tree = EMPTY_STRING
        if is_open:
            inner = yield self.eager(body, sequence((loop(plain, 0, None), rest)))
            after = loop(sequence((stop, inner)) if isinstance(tree, Lazy) else inner, 0, None)
        for done in range(rounds, 0, -1):
            again = loop(plain, max(minimum - done, 0), _less(maximum, done))
            inner = yield self.eager(body, sequence((again, rest)))
            if done > minimum and isinstance(tree, Lazy):
                inner = sequence((stop, inner))
            after = sequence((inner, after))
            if done > minimum:
                after = loop(after, 0, 1)
        return after


def _less(maximum: int | None, count: int) -> int | None:
    return None if maximum is None else maximum - count
