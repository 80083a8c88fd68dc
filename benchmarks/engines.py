"""The engines that the benchmarks compare, behind one small interface.

An engine is built once for a tokenizer (``prepare``); ``program`` reads and compiles a JSON Schema and
returns something that starts sequences; a sequence fills ``engine.words`` with the mask of the next
token and advances by a token. Only what each package documents is called, with one thread each and
no cache between schemas.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class RefusedError(Exception):
    """The engine says that it can't take this schema."""


class Sequence(Protocol):
    """One text being generated."""

    def fill(self) -> None:
        """Write the mask of the next token into the engine's ``words``."""

    def advance(self, token_id: int) -> bool:
        """Take a token; false if it isn't allowed."""

    def is_complete(self) -> bool:
        """Say whether the text may end here."""


class Program(Protocol):
    """A compiled schema."""

    def start(self) -> Sequence:
        """Start a new text."""


class Engine(ABC):
    """One package; ``words`` is (ceil(vocab_size / 32),) int32, bit 1 where a token is allowed."""

    package: str
    words: NDArray[np.int32]

    @abstractmethod
    def prepare(self, tokenizer: Any, vocab_size: int) -> None:
        """Build what the package needs for a tokenizer of ``transformers``."""

    @abstractmethod
    def program(self, schema: Any) -> Program:
        """Compile a JSON Schema (with blanks allowed wherever JSON allows them)."""

    def label(self) -> str:
        """Return the package's name and version."""
        return f"{self.package} {version(self.package)}"

    def allows(self, token_id: int) -> bool:
        """Read one bit of the mask."""
        return bool(int(self.words[token_id >> 5]) >> (token_id & 31) & 1)


class Constrain(Engine):
    """This project."""

    package = "constrain-lm"

    def prepare(self, tokenizer: Any, vocab_size: int) -> None:
        import constrain

        self._constrain = constrain
        self._vocabulary = constrain.Vocabulary.from_transformers(tokenizer, vocab_size=vocab_size)
        self.bitmask = constrain.allocate_token_bitmask(1, vocab_size)
        self.words = np.asarray(self.bitmask)[0]

    def program(self, schema: Any) -> Program:
        c = self._constrain
        try:
            return self.compiled(c.json_schema(schema))
        except (c.SpecError, c.LimitExceededError) as error:
            raise RefusedError(str(error)) from error

    def compiled(self, spec: Any) -> Program:
        """Compile any spec."""
        compiled = self.compile(spec)
        return _Started(lambda: _ConstrainSequence(compiled.matcher(), self.bitmask))

    def compile(self, spec: Any) -> Any:
        """Return what the package makes of a spec and the vocabulary."""
        return self._constrain.compile(spec, self._vocabulary, cache=False)


class _Started:
    def __init__(self, start: Any) -> None:
        self.start = start


class _ConstrainSequence:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self._matcher, self._bitmask = matcher, bitmask
        self.advance = matcher.accept_token
        self.is_complete = matcher.is_accepting

    def fill(self) -> None:
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)


class LLGuidance(Engine):
    """The package llguidance."""

    package = "llguidance"

    def prepare(self, tokenizer: Any, vocab_size: int) -> None:
        import llguidance.hf

        self._matcher = llguidance.LLMatcher
        self._tokenizer = llguidance.hf.from_tokenizer(
            tokenizer, n_vocab=vocab_size, eos_token=tokenizer.eos_token_id
        )
        self.words = np.zeros(-(-vocab_size // 32), np.int32)

    def program(self, schema: Any) -> Program:
        return self._started(self._matcher.grammar_from_json_schema(json.dumps(schema)))

    def grammar(self, text: str) -> Program:
        """Compile a grammar in Lark's language."""
        return self._started(self._matcher.grammar_from_lark(text))

    def _started(self, grammar: Any) -> Program:
        matcher = self._matcher(self._tokenizer, grammar)
        if matcher.is_error():
            raise RefusedError(matcher.get_error())
        return _Started(lambda: _LLGuidanceSequence(matcher.deep_copy(), self.words))


class _LLGuidanceSequence:
    def __init__(self, matcher: Any, words: NDArray[np.int32]) -> None:
        self._fill, self._place = matcher.unsafe_compute_mask_ptr, (words.ctypes.data, words.nbytes)
        self.advance = matcher.consume_token
        self.is_complete = matcher.is_accepting

    def fill(self) -> None:
        self._fill(*self._place)


class XGrammar(Engine):
    """The package xgrammar, told to follow JSON Schema's meaning (its own default closes objects)."""

    package = "xgrammar"

    def prepare(self, tokenizer: Any, vocab_size: int) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocab_size, stop_token_ids=[tokenizer.eos_token_id]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._bitmask = xgrammar.allocate_token_bitmask(1, vocab_size)
        self.words = self._bitmask.numpy()[0]

    def program(self, schema: Any) -> Program:
        try:
            compiled = self._compiler.compile_json_schema(
                json.dumps(schema), any_whitespace=True, strict_mode=False
            )
        except RuntimeError as error:
            raise RefusedError(str(error)) from error
        return _Started(lambda: _XGrammarSequence(self._xgrammar.GrammarMatcher(compiled), self._bitmask))


class _XGrammarSequence:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self._matcher, self._bitmask = matcher, bitmask
        self.advance = matcher.accept_token
        self.is_complete = matcher.is_completed

    def fill(self) -> None:
        self._matcher.fill_next_token_bitmask(self._bitmask)


ENGINES: dict[str, type[Engine]] = {"constrain": Constrain, "llguidance": LLGuidance, "xgrammar": XGrammar}
