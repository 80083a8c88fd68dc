"""All that a model must offer to be decoded under a constraint.

``generate`` and the decoders know models only by these protocols, so a new engine needs one
adapter in ``constrain.backends`` and nothing else. The cache of keys and values belongs to the
backend: a session takes several tokens a row at once (forced text then costs one call), may drop,
reorder or duplicate its rows, and gives tokens at a row's end back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from constrain.tokenizer_index.vocabulary import Vocabulary

    Logits: TypeAlias = NDArray[np.float32]

Message: TypeAlias = Mapping[str, Any]
"""One chat message: ``role`` and ``content``, and whatever else the model's template reads."""


@runtime_checkable
class DecodingSession(Protocol):
    """Rows of token ids that grow at their end, with whatever the backend remembers of them."""

    @property
    def n_rows(self) -> int:
        """Number of rows in the session now."""

    def append(self, token_ids: Sequence[Sequence[int]]) -> list[Logits]:
        """Append tokens to each row and return the logits that follow each of them.

        Parameters
        ----------
        token_ids : sequence of ``n_rows`` sequences of int
            Rows may get different numbers of tokens, also none.

        Returns
        -------
        list of ``n_rows`` arrays (n_tokens of the row, vocab_size) float32
            Line ``j`` of a row's array is the model's row after its ``j``-th new token.
        """

    def select(self, rows: Sequence[int]) -> None:
        """Keep the given rows in the given order; a row may be named more than once."""

    def truncate(self, counts: Sequence[int]) -> None:
        """Forget the last tokens of each row, as if they had never been appended.

        Parameters
        ----------
        counts : sequence of ``n_rows`` int
            How many tokens each row gives up; at least one of its tokens stays.
        """


@runtime_checkable
class LogitsBackend(Protocol):
    """A causal language model that shows its logits."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Token bytes and end tokens; ``vocabulary.size`` is the width of the logits."""

    @property
    def context_length(self) -> int | None:
        """Most tokens a row may have, prompt and output together; ``None`` if there is no limit."""

    @property
    def has_chat_template(self) -> bool:
        """Whether ``encode_chat`` can be used."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of ``text``, by the model's own tokenizer."""

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation by the model's chat template, ready for the answer."""

    def start(self, prompts: Sequence[Sequence[int]]) -> tuple[DecodingSession, Logits]:
        """Read the prompts, one a row.

        Returns
        -------
        session : DecodingSession
        logits : (len(prompts), vocab_size) float32
            The model's row after the last token of each prompt.
        """


@runtime_checkable
class TextBackend(Protocol):
    """A model that shows nothing but text."""

    def complete(self, prompt: str | Sequence[Message]) -> str:
        """The model's answer to a text or to chat messages."""
