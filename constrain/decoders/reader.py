"""A session whose rows may go back: decoders that revise outputs ask for the row after any tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from constrain.decoders.rows import share_model_call, start_session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from constrain.decoders.rows import Row
    from constrain.protocols import DecodingSession, LogitsBackend


class Reader:
    """What the model has read of each row, and its logits after any tokens one asks for.

    Parameters
    ----------
    model : LogitsBackend
    rows : sequence of Row
        One line each; their prompts are read at once, each different one once.
    """

    def __init__(self, model: LogitsBackend, rows: Sequence[Row]) -> None:
        self._session: DecodingSession
        self._session, self._first = start_session(model, rows)
        self._read: list[list[int]] = [[] for _ in rows]
        self._n_prompt = [len(row.prompt_ids) for row in rows]

    @property
    def n_lines(self) -> int:
        """Number of lines now."""
        return len(self._read)

    def select(self, lines: Sequence[int]) -> None:
        """Keep the given lines in the given order; a line may be named more than once."""
        self._session.select(lines)
        self._first = [self._first[line] for line in lines]
        self._read = [list(self._read[line]) for line in lines]
        self._n_prompt = [self._n_prompt[line] for line in lines]

    def seek(
        self,
        targets: Sequence[Sequence[int] | None],
        rows: Sequence[Row | None],
        *,
        n_lines: int | Sequence[int] = 1,
    ) -> list[list[NDArray[np.float32]]]:
        """Let the model have read exactly these tokens after each line's prompt.

        Tokens it has read already are not read again; all lines share one call.

        Parameters
        ----------
        targets : sequence of (sequence of int, or None)
            ``None`` leaves a line as it is.
        rows : sequence of (Row, or None)
            In whose stats the call is counted, for the lines that change.
        n_lines : int or sequence of int
            How many of the last places are wanted, of every target or of each.

        Returns
        -------
        list of list of (vocab_size,) float32
            The model's rows after the last ``n_lines`` places of each target (fewer where the target is
            shorter than that), the last one last; none for ``None``.
        """
        drops: list[int] = []
        queues: list[list[int]] = []
        wanted = [n_lines] * len(targets) if isinstance(n_lines, int) else n_lines
        for read, target, n_wanted in zip(self._read, targets, wanted, strict=True):
            if target is None:
                drops.append(0)
                queues.append([])
                continue
            # The logits of a place come with the token before it, so that one is read again.
            common = min(_common(read, target), max(len(target) - n_wanted, 0))
            drops.append(len(read) - common)
            queues.append(list(target[common:]))
        begin = time.perf_counter()
        if any(drops):
            self._session.truncate(drops)
        blocks: Sequence[Sequence[NDArray[np.float32]] | NDArray[np.float32]]
        blocks = self._session.append(queues) if any(queues) else [()] * len(queues)
        called = [row for row, queue in zip(rows, queues, strict=True) if row is not None and queue]
        if called:
            share_model_call(called, time.perf_counter() - begin)
        results: list[list[NDArray[np.float32]]] = []
        for line, (target, n_wanted) in enumerate(zip(targets, wanted, strict=True)):
            if target is None:
                results.append([])
                continue
            self._read[line] = list(target)
            lines = list(blocks[line])
            if len(target) < n_wanted:
                lines.insert(0, self._first[line])
            results.append(lines[-n_wanted:])
        return results


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning."""
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
