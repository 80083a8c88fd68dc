"""The class of specs: a set of texts, and the questions that need no tokenizer.

The constructors are in `constrain.spec`.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from constrain.checks import Check, FunctionCheck, Tally, begin_all, holds
from constrain.combined_checks import either, in_sequence
from constrain.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.explanation import (
    Explanation,
    character_start,
    explain_failure,
    place_explanation,
    shown_names,
    with_word,
)
from constrain.grammars.combine import concatenation, union
from constrain.grammars.ir import EMPTY_LANGUAGE, EMPTY_STRING, Grammar, SpecialToken
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.build import is_nullable
from constrain.pickling import Held, Identity, NotPicklableError
from constrain.tokenizer_index.arena import Arena, ArenaFull, EmptyTerminals, byte_arena
from constrain.tokenizer_index.missing_bytes import network_without
from constrain.tokenizer_index.network import Network, build_network
from constrain.tokenizer_index.special_tokens import spelling

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from constrain.compiled import CompiledSpec
    from constrain.tokenizer_index.vocabulary import Vocabulary

_SHOWN = 60
Output: TypeAlias = tuple[str | SpecialToken, ...]
"""A whole output: texts, and between them the special tokens that its spec names."""


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
    checks : tuple of Check
        What is demanded beyond the grammar, by `where` and the like; decoders enforce it.
    """

    __slots__ = (
        "_arena",
        "_bytes",
        "_grammar",
        "_hash",
        "_key",
        "_lock",
        "_network",
        "_options",
        "_parse",
        "_remake",
        "_shown",
        "_source",
        "_written",
        "checks",
        "ignored",
        "is_json",
        "kind",
        "limits",
    )

    kind: str
    checks: tuple[Check, ...]
    ignored: tuple[str, ...]
    is_json: bool
    limits: Limits
    _grammar: Grammar | None
    _network: Network | None
    _written: tuple[bytes, Network] | None
    _key: object
    _hash: int
    _parse: Callable[[str], Any]
    _options: tuple[tuple[str, object], ...]
    _shown: str
    _source: Mapping[str, Any] | None
    _remake: partial[Spec] | None
    _lock: threading.Lock
    _arena: Arena | None
    _bytes: CompiledSpec | None

    def __init__(
        self,
        kind: str,
        key: object,
        grammar: Grammar | None,
        *,
        parse: Callable[[str], Any] = str,
        is_json: bool = False,
        ignored: tuple[str, ...] = (),
        options: tuple[tuple[str, object], ...] = (),
        source: Mapping[str, Any] | None = None,
        remake: partial[Any] | None = None,
        shown: str,
        watch: Watch,
        checks: tuple[Check, ...] = (),
        has_members: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "checks", checks)
        put(self, "kind", kind)
        put(self, "_key", key)
        put(self, "_hash", hash((kind, key, options)))
        put(self, "_grammar", grammar)
        put(self, "_parse", parse)
        put(self, "is_json", is_json)
        put(self, "ignored", ignored)
        put(self, "_options", options)
        put(self, "_shown", shown)
        put(self, "_source", source)
        put(self, "_remake", remake)
        put(self, "limits", watch.limits)
        put(self, "_lock", threading.Lock())
        put(self, "_arena", None)
        put(self, "_bytes", None)
        put(self, "_written", None)
        # What is made of specs with members is flattened when it is asked for: it may be one of many steps.
        put(self, "_network", None if grammar is None or has_members else build_network(grammar, watch))
        if self._network is not None and _may_be_empty(self._network, kind):
            # Raises EmptyLanguageError where conjunctions turn out to have no member.
            self._byte_arena()

    @classmethod
    def from_grammar(cls, grammar: Grammar, *, name: str = "grammar", limits: Limits | None = None) -> Spec:
        """Return the spec of a grammar in the intermediate representation; ``parse`` gives the text."""
        return cls._of_identity(Identity.of(grammar), name, limits or Limits())

    @classmethod
    def _of_identity(cls, identity: Identity, name: str, limits: Limits) -> Spec:
        grammar = identity.value
        assert isinstance(grammar, Grammar)
        remake = partial(cls._of_identity, identity, name, limits)
        return cls("grammar", (name, identity), grammar, remake=remake, shown=name, watch=Watch(limits))

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
            and self.checks == other.checks
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        demands = "".join(f".where({c!r})" for c in self.checks if isinstance(c, FunctionCheck))
        if self.kind in ("union", "concatenation"):
            return f"({self._shown}){demands}" if demands else self._shown
        options = "".join(f", {name}={value!r}" for name, value in self._options)
        return f"{self.kind}({self._shown}{options}){demands}"

    def __copy__(self) -> Spec:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Spec:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._remake is None:
            raise NotPicklableError(f"{self!r} cannot be pickled.", hint="Make it where it is needed.")
        return operator.call, (self._remake,)

    @property
    def grammar(self) -> Grammar:
        """The intermediate representation."""
        assert self._grammar is not None
        return self._grammar

    def grammar_alone(self, place: str) -> Grammar:
        """Return the grammar, to be a part of another.

        Raises
        ------
        UnsupportedFeatureError
            The spec has checks, which have no place there.
        """
        if self.checks:
            raise UnsupportedFeatureError(
                "where",
                reason=f"is not supported in {place}: {self!r} has checks, which are asked of whole outputs",
                hint="Put where() on the whole, or join specs with '|' and '+', which keep their checks.",
            )
        return self.grammar

    @property
    def network(self) -> Network:
        """The grammar as arrays.

        Raises
        ------
        ConstrainError
            A grammar that was put together of others can't be flattened; see `build_network`.
        """
        found = self._network
        return self._flatten(self.grammar, b"") if found is None else found

    @property
    def special_tokens(self) -> tuple[str | int, ...]:
        """The special tokens that the spec names, by name or id."""
        return self.network.special_tokens

    # -------------------------------------------------------------------------------- operators

    def __or__(self, other: Spec) -> Spec:
        """Return the spec of the texts of either; ``parse`` asks the left one first."""
        if not isinstance(other, Spec):
            return NotImplemented

        parts = (*_parts(self, "union"), *_parts(other, "union"))

        def parse(text: str) -> Any:
            # Where none matches, the last one says why.
            return next((part for part in parts[:-1] if part.matches(text)), parts[-1]).parse(text)

        return Spec(
            "union",
            parts,
            union(self.grammar, other.grammar, Watch(self.limits)),
            parse=parse,
            is_json=self.is_json and other.is_json,
            ignored=tuple(dict.fromkeys(self.ignored + other.ignored)),
            source={"parts": parts},
            remake=partial(_united, parts),
            shown=f"{_operand(self, 'union')} | {_operand(other, 'union')}",
            watch=Watch(self.limits),
            checks=either(self, other),
            has_members=True,
        )

    def __add__(self, other: Spec) -> Spec:
        """Return the spec of texts of this one followed by texts of ``other``; ``parse`` gives the text."""
        if not isinstance(other, Spec):
            return NotImplemented
        parts = (*_parts(self, "concatenation"), *_parts(other, "concatenation"))
        return Spec(
            "concatenation",
            parts,
            concatenation(self.grammar, other.grammar, Watch(self.limits)),
            ignored=tuple(dict.fromkeys(self.ignored + other.ignored)),
            source={"parts": parts},
            remake=partial(_concatenated, parts),
            shown=f"{_operand(self, 'concatenation')} + {_operand(other, 'concatenation')}",
            watch=Watch(self.limits),
            checks=in_sequence(self, other),
            has_members=True,
        )

    def where(self, check: Callable[[Any], bool], *, when: str = "complete") -> Self:
        """Return the spec of those texts for which a Python function holds as well.

        Decoders enforce it exactly (``docs/checks.md``); masks and matchers know the grammar alone. Such a spec is
        never written to disk. Two are equal if they hold the same function object.

        Parameters
        ----------
        check : callable
            Returns ``True`` or ``False``, always the same for the same argument.
        when : {"complete", "token", "value"}
            ``"complete"``: it gets whole texts. ``"token"``: it gets what is written so far, and ``False``
            means that no text that begins like this is wanted: it must hold for a text and all its
            beginnings, the empty one included. ``"value"``: it gets the value of a whole text, as `parse` gives it: JSON data of a schema, an
            object of a Python type, else text; a text whose value the type refuses is not a member.

        Raises
        ------
        OptionError
            ``when`` is unknown or ``check`` cannot be called.
        """
        other = self.with_checks(FunctionCheck(check, when, self._parse))
        object.__setattr__(other, "_remake", partial(_demanding, self, Held(check, "where()"), when))
        return other

    def with_checks(self, *checks: Check) -> Self:
        """Return the spec of those texts that pass some checks as well."""
        other = object.__new__(type(self))
        for kind in type(self).__mro__:
            for name in kind.__dict__.get("__slots__", ()):
                object.__setattr__(other, name, getattr(self, name))
        put = object.__setattr__
        put(other, "checks", (*self.checks, *checks))
        put(other, "_hash", hash((self._hash, checks)))
        put(other, "_source", None)
        put(other, "_lock", threading.Lock())
        return other

    # -------------------------------------------------------------------------------- questions

    def matches(self, text: str | bytes) -> bool:
        """Is the whole text a member? Text with lone surrogates, and bytes that are no UTF-8, never are.

        Raises
        ------
        LimitExceededError
            The text leads to more states than ``limits`` allow.
        """
        data = encoded(text)
        if data is None:
            return False
        arena, state, _ = self._read(data)
        return state >= 0 and arena.is_accepting(state) and self.passes(data)

    def passes(self, data: bytes) -> bool:
        """Does a whole text of the grammar pass the spec's checks?"""
        return not self.checks or holds(self.checks, data)

    def may_begin(self, data: bytes) -> bool:
        """May a member begin like this, as far as the grammar and checks of beginnings tell?"""
        if self._read(data)[1] < 0:
            return False
        progress = begin_all(self.checks, Tally()) if self.checks else None
        return not self.checks or (progress is not None and (not data or progress.read(data) is not None))

    def ends_within(self, data: bytes) -> list[int]:
        """Return the lengths of the beginnings of a text that the grammar takes as whole texts, in rising order."""
        arena, _, n = self._read(data)
        state, ends = arena.start, []
        for end in range(n + 1):
            if arena.is_accepting(state):
                ends.append(end)
            if end < n:
                state, _ = arena.step_bytes(state, data[end : end + 1])
        return ends

    def explain(self, text: str | bytes) -> Explanation:
        """Say whether the whole text is a member, and if not, where it fails and what was expected.

        Raises
        ------
        LimitExceededError
            The text leads to more states than ``limits`` allow.
        """
        data = encoded(text)
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
            return self._explain_checks(data, offset)
        begin = offset
        if state < 0:
            # What stands in place of a character is told, not what its last bytes might be.
            begin = character_start(data, offset)
            arena, state, _ = self._read(data[:begin])
        expected = self._expected(data[:begin])
        grammar = self.grammar
        shown = shown_names(grammar)
        layout = grammar.indentation
        found = explain_failure(
            arena,
            state,
            data,
            offset,
            expected=expected,
            pointers=grammar.pointers,
            shown=shown,
            newline=None if layout is None else grammar.terminals[layout.newline].name,
        )
        return with_word(found, data, arena, shown) if self.kind == "grammar" else found

    def _explain_checks(self, data: bytes, offset: int) -> Explanation:
        """Explain a text of the grammar."""
        for check in self.checks:
            failure = check.explain(data)
            if failure is not None:
                return place_explanation(data, failure.offset, (failure.expected,), failure.pointer)
        return place_explanation(data, offset, (), None, ok=True)

    def sample(self, rng: np.random.Generator, *, max_bytes: int = 4096) -> str:
        """Return a random member, for tests and documentation.

        Bytes are drawn one by one among those from which the text can still end in time, letters more
        often than symbols; how long it gets is drawn first, mostly little more than the shortest member.
        Special tokens are written as their names. The distribution is neither uniform nor that of any model, but every member of at most
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
        LimitExceededError
            The checks refused every one of many texts.
        """
        from constrain.compiled import compile as compile_spec
        from constrain.sampling import byte_vocabulary, sample

        if not hasattr(rng, "exponential"):
            raise SpecError(f"sample() got a {type(rng).__name__}; expected numpy.random.default_rng(seed).")
        with self._lock:
            compiled = self._bytes
        if compiled is None:
            vocabulary = byte_vocabulary(self.network.special_tokens)
            compiled = compile_spec(self, vocabulary, cache=False, limits=self.limits)
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

    def parse_output(self, output: Output) -> Any:
        """Return the value of an output whose special tokens are told from text; else like `parse`.

        Parameters
        ----------
        output : tuple of str and SpecialToken
            As `CompiledSpec.output` makes it of token ids. In text, the name of a special token is text.
        """
        if self.kind == "union":
            parts: tuple[Spec, Spec] = self._key  # type: ignore[assignment]
            return parts[0 if parts[0].takes(output) else 1].parse_output(output)
        return self.parse(_with_names(output))

    def takes(self, output: Output) -> bool:
        """Is a whole output, with its special tokens, a member?"""
        parts = [spelling(part.name) if isinstance(part, SpecialToken) else encoded(part) for part in output]
        if None in parts:
            return False
        arena, state, _ = self._read(b"".join(part for part in parts if part is not None))
        return state >= 0 and arena.is_accepting(state) and self.passes(_with_names(output).encode())

    def source(self) -> dict[str, Any] | None:
        """Return what the spec was made from, as arguments of its constructor; ``None`` if that is no text.

        ``{"pattern", "flags"}`` for `regex`; ``{"options"}``, as JSON data, for `choice`; ``{"schema",
        "options"}``, the former as JSON text, for `json_schema` and `python_type`; ``{"parts"}``, specs,
        for unions and concatenations.
        """
        return None if self._source is None else dict(self._source)

    # -------------------------------------------------------------------------------- inner work

    def compile_lazily(
        self, vocabulary: Vocabulary, cache: bool | str | Path, limits: Limits
    ) -> CompiledSpec | None:
        """Return a compiled spec whose parts are written out where they are needed; ``None``: as a whole."""
        return None

    def _byte_arena(self, full: Arena | None = None) -> Arena:
        """Return the tables for texts; new ones in place of ``full``."""
        with self._lock:
            arena = self._arena
            if arena is None or arena is full:
                arena = self.tables(lambda network: byte_arena(network, self.limits))
                object.__setattr__(self, "_arena", arena)
            return arena

    def tables(self, make: Callable[[Network], Arena], lost: bytes = b"") -> Arena:
        """Return what ``make`` makes of the network, flattened again where conjunctions turn out to be empty.

        Parameters
        ----------
        make : callable
        lost : bytes
            The network is that of the texts that don't hold any of these bytes.

        Raises
        ------
        EmptyLanguageError
            Nothing is left without them.
        """
        network = self._network_without(lost)
        if network is self.network:
            lost = b""
        try:
            try:
                return make(network)
            except EmptyTerminals as found:
                terminals = list(self.grammar.terminals)
                for t in found.terminals:
                    # A lexeme is never empty, so "no member" says nothing of the empty text.
                    left = EMPTY_STRING if is_nullable(terminals[t].pattern) else EMPTY_LANGUAGE
                    terminals[t] = replace(terminals[t], pattern=left)
                network = self._flatten(replace(self.grammar, terminals=tuple(terminals)), lost)
            return make(network)
        except ArenaFull as full:
            raise LimitExceededError(full.limit, full.value, repr(self)) from full

    def _network_without(self, lost: bytes) -> Network:
        """Return the network of the texts that don't hold some bytes, or of all where that one can't be made."""
        if not lost:
            return self.network
        if self._written is not None and self._written[0] == lost:
            return self._written[1]
        return self._flatten(self.grammar, lost)

    def _flatten(self, grammar: Grammar, lost: bytes) -> Network:
        watch = Watch(self.limits)
        if not lost:
            network = build_network(grammar, watch)
            object.__setattr__(self, "_network", network)
        else:
            network = network_without(grammar, lost, watch) or self.network
            object.__setattr__(self, "_written", (lost, network))
        return network

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


def _with_names(output: Output) -> str:
    return "".join(part if isinstance(part, str) else str(part.name) for part in output)


def _demanding(spec: Spec, check: Any, when: str) -> Spec:
    return spec.where(check, when=when)


def _parts(spec: Spec, kind: str) -> tuple[Spec, ...]:
    """Return the specs that an operand of an operator of ``kind`` was made of by the same operator, else itself."""
    if spec.kind != kind or spec.checks:
        return (spec,)
    assert isinstance(spec._key, tuple)
    return spec._key


def _united(parts: tuple[Spec, ...]) -> Spec:
    return reduce(operator.or_, parts)


def _concatenated(parts: tuple[Spec, ...]) -> Spec:
    return reduce(operator.add, parts)


def _operand(spec: Spec, kind: str) -> str:
    """Return the repr of ``spec`` inside an operator of ``kind``."""
    is_other = spec.kind in ("union", "concatenation") and spec.kind != kind
    return f"({spec!r})" if is_other else repr(spec)


def encoded(text: str | bytes) -> bytes | None:
    """Return the bytes of a text; ``None`` if it has lone surrogates."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            return None
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise TypeError(f"expected text or bytes, found {type(text).__name__}")


def _may_be_empty(network: Network, kind: str) -> bool:
    """Should conjunctions be looked into for emptiness at once?

    In schemas one pattern less excluded words is common and hardly ever empty, and looking would double
    the time to make the spec: that is left to `constrain.compile`.
    """
    if kind == "regex":
        return len(network.literal_negative) > 0
    offsets = network.literal_offsets.tolist()
    negative = network.literal_negative.tolist()
    return any(high - low > 1 and negative[low:high].count(0) > 1 for low, high in pairwise(offsets))


def shortened(text: str) -> str:
    """Return ``text``, cut to fit a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
