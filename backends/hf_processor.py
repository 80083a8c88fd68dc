"""A logits processor for ``transformers``' own ``generate``.

The allowed tokens of a row are a function of the row's own history: the tokens after the prompt.
Matchers are remembered by that history and never by the number of the row, so beams that are
reordered between calls, drafts that are taken back and several returned sequences all find their
state again. Only rows that are still open are touched.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
import transformers

from constrain.errors import BackendError, DeadEndError
from constrain.tokenizer_index.mask import allocate_token_bitmask, apply_token_bitmask_inplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.compiled import CompiledSpec, Matcher

_ITEM_BYTES = 8  # a history is remembered as the bytes of int64 token ids


class LogitsProcessor(transformers.LogitsProcessor):
    """Masks every token that the spec doesn't allow; pass it in ``generate(logits_processor=[...])``.

    Works with greedy search, sampling, beams, ``num_return_sequences``, left padding, static caches,
    assisted and prompt look-up decoding, ``inputs_embeds``, and over several calls of ``generate``.

    Parameters
    ----------
    compiled : CompiledSpec or sequence of CompiledSpec
        One for all rows, or one for each prompt of the batch; with beams or several returned
        sequences the rows of a prompt stand together and share its spec.
    prompt_length : int or None
        Number of columns before the first generated token (the padded width of the prompts).
        ``None`` learns it: a first call, or a call in which the first columns have changed or none
        of the rows continues a known one, begins a new prompt. Give it, or call ``reset()``, where
        the new prompt is the old prompt with its output.
    max_new_tokens : int or None
        The value given to ``generate``: outputs are then complete within it (the end token counted).

    Notes
    -----
    A row that has left the language (a rejected draft, a beam of probability 0) may only end.
    Rows that already hold an end token are left as they are.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        compiled: CompiledSpec | Sequence[CompiledSpec],
        *,
        prompt_length: int | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.compiled = list(compiled) if isinstance(compiled, Sequence) else [compiled]
        if not self.compiled:
            raise BackendError("LogitsProcessor needs at least one compiled spec.")
        for one in self.compiled:
            if one.spec.checks:
                raise BackendError(
                    f"A LogitsProcessor cannot enforce the checks of {one.spec!r}: it never takes tokens back. Use "
                    "constrain.generate()."
                )
        vocabulary = self.compiled[0].vocabulary
        if any(spec.vocabulary.size != vocabulary.size for spec in self.compiled):
            raise BackendError("All compiled specs of a LogitsProcessor must share one vocabulary.")
        self._size = vocabulary.size
        self._eos = np.asarray(sorted(vocabulary.eos_token_ids), np.int64)
        self._given_length = prompt_length
        self._max_new_tokens = max_new_tokens
        self.reset()

    def reset(self) -> None:
        """Forget the last prompt; the next call begins a new one."""
        self._prompts: torch.Tensor | None = None
        # (index of the spec, history) -> its matcher, or None for a history outside the language.
        self._states: OrderedDict[tuple[int, bytes], Matcher | None] = OrderedDict()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return the scores (n_rows, width) with ``-inf`` for every token that isn't allowed.

        Raises
        ------
        DeadEndError
            Every allowed token of a row has a score of ``-inf``.
        BackendError
            Scores are NaN, or the shapes don't fit the specs.
        """
        n_rows = input_ids.shape[0]
        if scores.shape[0] != n_rows or n_rows % len(self.compiled):
            raise BackendError(
                f"{n_rows} rows and {scores.shape[0]} rows of scores don't fit {len(self.compiled)} specs; "
                "give one spec, or one for each prompt."
            )
        if scores.shape[1] < self._size:
            raise BackendError(
                f"The scores have {scores.shape[1]} columns, the vocabulary {self._size} tokens. Make it with "
                f"Vocabulary.from_transformers(tokenizer, vocab_size={scores.shape[1]})."
            )
        start = self._start_of_output(input_ids)
        histories = input_ids[:, start:].cpu().numpy().astype(np.int64, copy=False)
        rows_per_spec = n_rows // len(self.compiled)
        bitmask = allocate_token_bitmask(n_rows, self._size)
        open_rows: list[int] = []
        is_inside: list[bool] = []
        for row, history in enumerate(histories):
            if np.isin(history, self._eos).any():
                continue
            matcher = self._matcher(row // rows_per_spec, history)
            self._fill_row(bitmask, len(open_rows), matcher, len(history))
            open_rows.append(row)
            is_inside.append(matcher is not None)
        self._forget(n_rows)
        if not open_rows:
            return scores
        result, is_dead = self._apply(scores, bitmask[: len(open_rows)], open_rows, histories.shape[1])
        for row, dead, inside in zip(open_rows, is_dead, is_inside, strict=True):
            # Rows outside the language may be dead: their own score is -inf or they will be rejected.
            if dead and inside:
                raise DeadEndError(
                    f"Every allowed token of row {row} has a score of -inf at step {histories.shape[1]}: the "
                    "model or another processor excludes what the spec needs."
                )
        return cast(torch.FloatTensor, result)

    def _fill_row(
        self, bitmask: NDArray[np.int32], index: int, matcher: Matcher | None, n_generated: int
    ) -> None:
        if matcher is None:
            bitmask[index] = 0
            for token_id in self._eos:
                bitmask[index, token_id // 32] |= np.int32(np.uint32(1 << (token_id % 32)).astype(np.int32))
            return
        left = None if self._max_new_tokens is None else self._max_new_tokens - n_generated
        if left is not None and left >= 1:
            matcher.fill_budget_bitmask(bitmask, index, remaining=left)
        else:
            matcher.fill_next_token_bitmask(bitmask, index)

    def _apply(
        self, scores: torch.Tensor, bitmask: NDArray[np.int32], rows: list[int], step: int
    ) -> tuple[torch.Tensor, list[bool]]:
        """Masked scores, and for each of ``rows`` whether nothing is left."""
        # A copy: callers may keep the tensor they passed (``output_logits=True``).
        result = scores.clone()
        index = torch.tensor(rows, device=scores.device)
        chosen = result[index]
        head = chosen[:, : self._size].contiguous()
        is_nan = torch.isnan(head).any(dim=1).tolist()
        if any(is_nan):
            raise BackendError(f"The scores of row {rows[is_nan.index(True)]} at step {step} hold NaN.")
        apply_token_bitmask_inplace(head, bitmask)
        chosen[:, : self._size] = head
        chosen[:, self._size :] = -torch.inf
        result[index] = chosen
        return result, (head.amax(dim=1) == -torch.inf).tolist()

    def _start_of_output(self, input_ids: torch.LongTensor) -> int:
        """Number of columns that are prompt, by the rules of the class text."""
        width = input_ids.shape[1]
        if self._given_length is not None:
            if width < self._given_length:
                raise BackendError(
                    f"prompt_length={self._given_length}, but the rows have {width} tokens only."
                )
            return self._given_length
        if self._prompts is not None and self._continues(input_ids, self._prompts):
            return self._prompts.shape[1]
        self.reset()
        self._prompts = input_ids.clone()
        return width

    def _continues(self, input_ids: torch.LongTensor, prompts: torch.Tensor) -> bool:
        """Whether the rows are the known prompts, and at least one goes on from a known history."""
        length = prompts.shape[1]
        if input_ids.shape[1] < length or input_ids.shape[0] != prompts.shape[0]:
            return False
        if not torch.equal(input_ids[:, :length], prompts):
            return False
        if input_ids.shape[1] == length:
            return True
        histories = input_ids[:, length:].cpu().numpy().astype(np.int64, copy=False)
        rows_per_spec = len(histories) // len(self.compiled)
        return any(
            (row // rows_per_spec, history[:-1].tobytes()) in self._states
            for row, history in enumerate(histories)
        )

    def _matcher(self, spec: int, history: NDArray[np.int64]) -> Matcher | None:
        """The matcher after ``history``, advanced from its longest known beginning."""
        key = (spec, history.tobytes())
        if key in self._states:
            self._states.move_to_end(key)
            return self._states[key]
        known = len(history) - 1
        while known >= 0 and (spec, key[1][: known * _ITEM_BYTES]) not in self._states:
            known -= 1
        if known < 0:
            known = 0
            matcher: Matcher | None = self.compiled[spec].matcher()
            self._states[spec, b""] = matcher
        else:
            matcher = self._states[spec, key[1][: known * _ITEM_BYTES]]
        if known < len(history) and matcher is not None:
            matcher = matcher.fork()
            if not all(matcher.accept_token(int(token)) for token in history[known:]):
                matcher = None
        self._states[key] = matcher
        return matcher

    def _forget(self, n_rows: int) -> None:
        """Bound the memory: the states of the last calls are enough to go on from."""
        limit = max(1024, 32 * n_rows)
        while len(self._states) > limit:
            self._states.popitem(last=False)
