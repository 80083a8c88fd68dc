"""Sketches: a black box writes the answer freely, a local model writes it again under the constraint.

For models that only show text. What the black box wrote (the *sketch*) is given to a local model, which
rewrites it as a member of the language. A sketch that is a member already is kept as it is. Without any
model a sketch can be *repaired*: replaced by the nearest member (`constrain.repair`).

Nothing here has a weight: a black box tells no probabilities.

Follows Geng et al. 2024, "Sketch-Guided Constrained Decoding for Boosting Blackbox Large Language Models without
Logit Access".
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from constrain.decoders.proposals import check_integer
from constrain.errors import BackendError, OptionError
from constrain.protocols import Message, TextBackend

Prompt: TypeAlias = str | Sequence[Message]
BlackBox: TypeAlias = TextBackend | Callable[[Any], str]

REWRITERS = ("model", "edits")


@dataclass(frozen=True, slots=True)
class SketchTemplate:
    """How the rewriting prompt is made. Texts are format strings.

    Parameters
    ----------
    write : str
        Instruction, for chats: added to the system message.
    ask : str
        The user's turn after the sketch; ``{form}`` is what is known of the form.
    text_write : str
        For prompts that are text: of ``{prompt}``, ``{draft}`` (the sketch) and ``{form}``.
    """

    write: str = (
        "You bring a drafted answer into a given form, exactly. Keep what it says; add nothing and leave nothing out. "
        "Write the result alone."
    )
    ask: str = "Write this answer again in the asked-for form.{form}"
    text_write: str = "{prompt}\n\nDrafted answer:\n{draft}\n\nThe same answer in the asked-for form:{form}\n"


@dataclass(frozen=True, slots=True)
class SketchOptions:
    """Options of ``method="sketch"``.

    Parameters
    ----------
    black_box : TextBackend or callable
        From a prompt (text, or chat messages) to text.
    keep_valid : bool
        A sketch that is a member is the output.
    rewrite : {"model", "edits"}
        Who makes a member of the sketch: the local model, or the search for the nearest member.
    max_edits : int or None
        With ``rewrite="edits"``: give up on sketches that are farther from every member, in bytes.
    timeout : float or None
        Seconds a call of the black box may take.
    template : SketchTemplate
    """

    black_box: BlackBox | None = None
    keep_valid: bool = True
    rewrite: str = "model"
    max_edits: int | None = None
    timeout: float | None = 120.0
    template: SketchTemplate = SketchTemplate()

    def __post_init__(self) -> None:
        if self.black_box is None:
            raise OptionError("method='sketch' needs black_box=: a TextBackend, or a function of a prompt.")
        if not isinstance(self.black_box, TextBackend) and not callable(self.black_box):
            raise OptionError(
                f"black_box={self.black_box!r:.60}: expected a TextBackend, or a function of a prompt."
            )
        if self.rewrite not in REWRITERS:
            raise OptionError(f"rewrite={self.rewrite!r}: expected one of {', '.join(REWRITERS)}.")
        if self.max_edits is not None:
            check_integer("max_edits", self.max_edits, 0)
        if self.timeout is not None and not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise OptionError(f"timeout={self.timeout!r}: expected a number of seconds above 0, or None.")
        if not isinstance(self.template, SketchTemplate):
            raise OptionError(f"template={self.template!r:.60}: expected a SketchTemplate.")


@dataclass(frozen=True, slots=True)
class SketchStats:
    """What became of the sketch of one output.

    Parameters
    ----------
    text : str
        The sketch.
    is_kept : bool
        It is the output.
    edits : int or None
        With ``rewrite="edits"``: how many bytes were inserted, deleted or replaced.
    black_box_calls : int
    """

    text: str
    is_kept: bool
    edits: int | None
    black_box_calls: int


def ask_black_box(black_box: BlackBox, prompt: Prompt, timeout: float | None, what: str) -> str:
    """Ask a black box for text.

    Parameters
    ----------
    timeout : float or None
        In seconds. A call that takes longer goes on in the background, and its answer is thrown away.
    what : str
        Names the prompt in errors.

    Raises
    ------
    BackendError
        It failed, took too long, or returned something else than text.
    """
    call = black_box.complete if isinstance(black_box, TextBackend) else black_box
    answers: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def work() -> None:
        try:
            answers.put((call(prompt), None))
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the answer
            answers.put((None, error))

    threading.Thread(target=work, daemon=True, name="constrain-black-box").start()
    try:
        answer, error = answers.get(timeout=timeout)
    except queue.Empty:
        raise BackendError(
            f"The black box gave no answer for {what} within {timeout:g} s (timeout=)."
        ) from None
    if error is not None:
        raise BackendError(f"The black box failed on {what}: {type(error).__name__}: {error}") from error
    if not isinstance(answer, str):
        raise BackendError(f"The black box returned {answer!r:.60} for {what}: expected text.")
    return answer
