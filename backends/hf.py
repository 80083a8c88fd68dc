"""Models of the ``transformers`` library: ``TransformersModel`` and ``LogitsProcessor``.

A session keeps one key/value cache for all its rows. New tokens are written at the right end of
the cache, rows with fewer tokens get padding there, and padded columns stay out of the attention
mask for good; positions are counted per row, so a row's logits don't depend on its neighbours
(up to round-off). Columns that padding or finished rows left empty are squeezed out when there are
many. Models whose cache isn't a plain list of keys and values (sliding windows, recurrent states)
or that count positions by column run one row at a time: slower, never wrong.

The attention mask is built from the lengths, never from ``ids == pad``: in many models the padding
token is the end token.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from constrain.backends.hf_processor import LogitsProcessor
from constrain.errors import BackendError, OptionError
from constrain.protocols import Message
from constrain.tokenizer_index.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain.protocols import DecodingSession, Logits

__all__ = ["LogitsProcessor", "TransformersModel", "dtype_of", "load", "set_threads"]

# Squeeze the cache when more than a quarter of its columns, and at least this many, are empty.
_MIN_EMPTY_COLUMNS = 64
_DTYPES = ("bfloat16", "float32", "float16")


@dataclass(frozen=True, slots=True)
class _Call:
    """What the model's ``forward`` takes and what its cache can do."""

    cache_name: str
    has_position_ids: bool
    has_logits_to_keep: bool
    is_packable: bool
    """Rows of different lengths may share one cache."""
    takes_chunks: bool
    """Several tokens may be appended to a filled cache in one call."""


def _inspect_model(model: Any) -> _Call:
    # Adapters and compiled modules wrap the model whose arguments count.
    inner = model.get_base_model() if hasattr(model, "get_base_model") else getattr(model, "_orig_mod", model)
    names = inspect.signature(inner.forward).parameters
    cache_name = next((name for name in ("cache", "past_key_values") if name in names), None)
    if cache_name is None or getattr(model.config, "is_encoder_decoder", False):
        raise BackendError(
            f"{type(inner).__name__} is not a causal language model with a key/value cache. "
            "Load it with transformers.AutoModelForCausalLM."
        )
    layers = DynamicCache(config=model.config).layers
    has_positions = "position_ids" in names
    return _Call(
        cache_name=cache_name,
        has_position_ids=has_positions,
        has_logits_to_keep="logits_to_keep" in names,
        is_packable=has_positions
        and "attention_mask" in names
        and all(type(layer) is DynamicLayer for layer in layers),
        takes_chunks=all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers),
    )


class _PackedSession:
    """Rows of any lengths over one cache; see the module text for the layout.

    ``mask`` is (n_rows, n_columns) bool, true where a column of the cache holds a token of the
    row; ``lengths`` is (n_rows,) int64, the number of such columns.
    """

    def __init__(self, model: PreTrainedModel, call: _Call, n_rows: int) -> None:
        self._model = model
        self._call = call
        self._cache = DynamicCache(config=model.config)
        self._mask = torch.zeros((n_rows, 0), dtype=torch.bool, device=model.device)
        self._lengths = torch.zeros(n_rows, dtype=torch.int64, device=model.device)

    @property
    def n_rows(self) -> int:
        return self._mask.shape[0]

    def append(self, token_ids: Sequence[Sequence[int]]) -> list[Logits]:
        if len(token_ids) != self.n_rows:
            raise BackendError(f"append() was given {len(token_ids)} rows for a session of {self.n_rows}.")
        counts = [len(row) for row in token_ids]
        width = max(counts, default=0)
        if width == 0:
            size = self._model.config.get_text_config().vocab_size
            return [np.zeros((0, size), np.float32) for _ in counts]
        if width > 1 and not self._call.takes_chunks and self._mask.shape[1] > 0:
            columns = [self.append([row[j : j + 1] for row in token_ids]) for j in range(width)]
            return [np.concatenate([column[row] for column in columns]) for row in range(self.n_rows)]
        logits = self._forward(token_ids, counts, width, keep=0).float().cpu().numpy()
        return [logits[row, :count] for row, count in enumerate(counts)]

    def read(self, prompts: Sequence[Sequence[int]]) -> Logits:
        """Append the prompts and return the logits after the last token of each.

        All tokens but the last go first, without the output layer: its result for a whole prompt
        would be far larger than the cache.
        """
        counts = [len(prompt) - 1 for prompt in prompts]
        width = max(counts)
        if width > 0 and self._call.has_logits_to_keep:
            self._forward([prompt[:-1] for prompt in prompts], counts, width, keep=1)
            prompts = [prompt[-1:] for prompt in prompts]
        return np.stack([rows[-1] for rows in self.append(prompts)])

    @torch.inference_mode()
    def _forward(
        self, token_ids: Sequence[Sequence[int]], counts: list[int], width: int, *, keep: int
    ) -> torch.Tensor:
        device = self._mask.device
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in token_ids], device=device)
        count = torch.tensor(counts, device=device)[:, None]
        column = torch.arange(width, device=device)[None, :]
        self._mask = torch.cat([self._mask, column < count], dim=1)
        # A padded place repeats the position of the row's last token: in range, and never read.
        position = self._lengths[:, None] + torch.minimum(column, (count - 1).clamp(min=0))
        arguments: dict[str, Any] = {self._call.cache_name: self._cache, "use_cache": True}
        if self._call.is_packable:
            visible = self._mask.long()
            # A row without any token yet would attend to nothing, and its NaN would stay in the cache.
            visible[:, -width] |= (self._lengths + count[:, 0]) == 0
            arguments["attention_mask"] = visible
        if self._call.has_position_ids:
            arguments["position_ids"] = position
        if self._call.has_logits_to_keep:
            arguments["logits_to_keep"] = keep
        logits: torch.Tensor = self._model(input_ids=ids, **arguments).logits
        self._lengths += count[:, 0]
        self._squeeze()
        return logits

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) == list(range(self.n_rows)):
            return
        index = torch.tensor(rows, dtype=torch.int64, device=self._mask.device)
        self._cache.batch_select_indices(index)
        self._mask = self._mask[index]
        self._lengths = self._lengths[index]
        self._squeeze()

    def truncate(self, counts: Sequence[int]) -> None:
        # The columns stay, unseen, until there are enough empty ones to squeeze out.
        drop = torch.tensor(_checked_counts(counts, self._lengths.tolist()), device=self._mask.device)
        last = self._mask.flip(1).cumsum(1).flip(1) <= drop[:, None]
        self._mask = self._mask & ~last
        self._lengths -= drop
        self._squeeze()

    @torch.inference_mode()
    def _squeeze(self) -> None:
        n_columns = self._mask.shape[1]
        if not self._call.is_packable or n_columns < 2 * _MIN_EMPTY_COLUMNS or self.n_rows == 0:
            return
        longest = int(self._lengths.max())
        if n_columns - longest < max(_MIN_EMPTY_COLUMNS, n_columns // 4):
            return
        # A stable sort of "empty" moves each row's tokens to the front and keeps their order.
        order = torch.argsort((~self._mask).to(torch.int8), dim=1, stable=True)[:, :longest]
        self._mask = torch.gather(self._mask, 1, order)
        for layer in self._cache.layers:
            for name in ("keys", "values"):
                old = getattr(layer, name)
                index = order[:, None, :, None].expand(-1, old.shape[1], -1, old.shape[3])
                setattr(layer, name, torch.gather(old, 2, index.to(old.device)))


def _checked_counts(counts: Sequence[int], lengths: Sequence[int]) -> list[int]:
    if len(counts) != len(lengths):
        raise BackendError(f"truncate() was given {len(counts)} rows for a session of {len(lengths)}.")
    for row, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        if not 0 <= count < length:
            raise BackendError(f"truncate() cannot take {count} of the {length} tokens of row {row} back.")
    return list(counts)


class _SeparateSession:
    """One session of one row for each row, for models whose rows can't share a cache.

    Such caches cannot give tokens back, so a truncated row is read again.
    """

    def __init__(self, model: PreTrainedModel, call: _Call, n_rows: int) -> None:
        self._model, self._call = model, call
        self._rows = [_PackedSession(model, call, 1) for _ in range(n_rows)]
        self._tokens: list[list[int]] = [[] for _ in range(n_rows)]

    @property
    def n_rows(self) -> int:
        return len(self._rows)

    def append(self, token_ids: Sequence[Sequence[int]]) -> list[Logits]:
        if len(token_ids) != self.n_rows:
            raise BackendError(f"append() was given {len(token_ids)} rows for a session of {self.n_rows}.")
        self._tokens = [[*old, *new] for old, new in zip(self._tokens, token_ids, strict=True)]
        return [row.append([ids])[0] for row, ids in zip(self._rows, token_ids, strict=True)]

    def read(self, prompts: Sequence[Sequence[int]]) -> Logits:
        self._tokens = [list(prompt) for prompt in prompts]
        return np.concatenate([row.read([ids]) for row, ids in zip(self._rows, prompts, strict=True)])

    def select(self, rows: Sequence[int]) -> None:
        kept: dict[int, _PackedSession] = {}
        chosen = []
        for row in rows:
            if row in kept:
                # The cache is copied, the model is not.
                twin = copy.copy(kept[row])
                twin._cache = copy.deepcopy(twin._cache)
                twin._lengths = twin._lengths.clone()
                chosen.append(twin)
            else:
                kept[row] = self._rows[row]
                chosen.append(kept[row])
        self._rows = chosen
        self._tokens = [self._tokens[row] for row in rows]

    def truncate(self, counts: Sequence[int]) -> None:
        for row, count in enumerate(_checked_counts(counts, [len(ids) for ids in self._tokens])):
            if count:
                self._tokens[row] = self._tokens[row][:-count]
                self._rows[row] = _PackedSession(self._model, self._call, 1)
                self._rows[row].read([self._tokens[row]])


class TransformersModel:
    """A causal language model of ``transformers`` with its tokenizer.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Put into evaluation mode. Any device and dtype; logits are handed on as float32.
    tokenizer : transformers.PreTrainedTokenizerBase
    eos_token_ids : sequence of int or None
        Tokens that end the output; ``None`` takes those of the model's generation config and the
        tokenizer's own.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        eos_token_ids: Sequence[int] | None = None,
    ) -> None:
        # ``train(False)`` is ``eval()``, which is untyped.
        self.model: PreTrainedModel = model.train(False)
        self.tokenizer = tokenizer
        self._eos_token_ids = None if eos_token_ids is None else list(eos_token_ids)
        self._call = _inspect_model(model)

    def __repr__(self) -> str:
        return f"TransformersModel({type(self.model).__name__}, {self.model.dtype}, {self.model.device})"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary at the model's width (which padding may make larger)."""
        return Vocabulary.from_transformers(
            self.tokenizer,
            vocab_size=self.model.config.get_text_config().vocab_size,
            eos_token_ids=self.eos_token_ids,
        )

    @property
    def eos_token_ids(self) -> list[int]:
        """Tokens that end the output, in rising order."""
        if self._eos_token_ids is not None:
            return sorted(set(self._eos_token_ids))
        configured = getattr(getattr(self.model, "generation_config", None), "eos_token_id", None)
        found = [self.tokenizer.eos_token_id]
        found += configured if isinstance(configured, list | tuple) else [configured]
        return sorted({int(token) for token in found if token is not None})

    @property
    def context_length(self) -> int | None:
        """Most tokens a row may have, prompt and output together; ``None`` if the model doesn't say."""
        length = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(length) if length else None

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of ``text``, by the model's own tokenizer.

        Special tokens are those that begin a text; an end token that the tokenizer would add is left
        out, since the text goes on.
        """
        ids = list(self.tokenizer.encode(text, add_special_tokens=add_special_tokens))
        if add_special_tokens and ids and ids[-1] in self.eos_token_ids:
            plain = self.tokenizer.encode(text, add_special_tokens=False)
            if len(ids) > len(plain) and plain[-1:] != ids[-1:]:
                ids.pop()
        return ids

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation by the tokenizer's chat template, ready for the answer."""
        if not self.has_chat_template:
            raise BackendError(
                "The tokenizer has no chat template: pass the prompt as text, or set tokenizer.chat_template."
            )
        text = self.tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
        )
        return self.encode(str(text), add_special_tokens=False)

    def start(self, prompts: Sequence[Sequence[int]]) -> tuple[DecodingSession, Logits]:
        """Read the prompts, one a row.

        Returns
        -------
        session : DecodingSession
        logits : (len(prompts), vocab_size) float32

        Raises
        ------
        BackendError
            A prompt is empty or longer than the model's context.
        """
        if not prompts:
            raise BackendError("start() needs at least one prompt.")
        for row, prompt in enumerate(prompts):
            if not prompt:
                raise BackendError(f"The prompt of row {row} has no tokens; the model needs at least one.")
            if self.context_length is not None and len(prompt) > self.context_length:
                raise BackendError(
                    f"The prompt of row {row} has {len(prompt)} tokens; the model takes {self.context_length}."
                )
        kind = _PackedSession if self._call.is_packable else _SeparateSession
        session = kind(self.model, self._call, len(prompts))
        logits = session.read(prompts)
        if logits.shape[1] != self.model.config.get_text_config().vocab_size:
            raise BackendError(
                f"The model's logits have {logits.shape[1]} columns, but its config names a vocabulary of "
                f"{self.model.config.get_text_config().vocab_size}."
            )
        return session, logits


def dtype_of(name: str) -> torch.dtype:
    """The torch type called ``name``.

    Raises
    ------
    OptionError
        It is none of those that weights come in.
    """
    if name not in _DTYPES:
        raise OptionError(f"dtype={name!r}: expected one of {', '.join(_DTYPES)}.")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def set_threads(threads: int | None) -> None:
    """Let torch compute with ``threads`` threads in this process; ``None`` changes nothing."""
    if threads is not None:
        if threads < 1:
            raise OptionError(f"threads={threads!r}: expected at least 1.")
        torch.set_num_threads(threads)


def load(name_or_path: str, *, dtype: str = "bfloat16", threads: int | None = None) -> TransformersModel:
    """Load a model and its tokenizer from a folder, or from the hub by its name.

    Raises
    ------
    BackendError
        There is no such model, or it cannot be read.
    """
    torch_dtype = dtype_of(dtype)
    set_threads(threads)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path)
        model = AutoModelForCausalLM.from_pretrained(name_or_path, dtype=torch_dtype)
    except (OSError, ValueError) as error:
        raise BackendError(f"The model {name_or_path!r} cannot be loaded: {error}") from error
    return TransformersModel(model, tokenizer)
