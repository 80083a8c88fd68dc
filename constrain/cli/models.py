"""Models and vocabularies that a command names; the embedded model where it names none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain.errors import BackendError

if TYPE_CHECKING:
    from constrain.tokenizer_index.vocabulary import Vocabulary

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="PATH|HUB",
        help="Folder or hub name of a model (default: the embedded one).",
        show_default=False,
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="PATH|HUB",
        help="tokenizer.json, or folder or hub name of a tokenizer (default: the embedded model's).",
        show_default=False,
    ),
]
VocabSizeOption = Annotated[
    int | None,
    typer.Option("--vocab-size", min=1, help="Width of the model's logits, if larger.", show_default=False),
]
EosOption = Annotated[
    list[int] | None,
    typer.Option(
        "--eos",
        help="Id of an end token, where the tokenizer names none; may be repeated.",
        show_default=False,
    ),
]


def load_vocabulary(name: str | None, vocab_size: int | None, eos_token_ids: list[int] | None) -> Vocabulary:
    """Return the vocabulary of a tokenizer, of the embedded model's for ``None``.

    Parameters
    ----------
    name : str or None
        A ``tokenizer.json``, a folder or a hub name.
    vocab_size, eos_token_ids
        As in ``Vocabulary.from_transformers``.

    Raises
    ------
    BackendError
        It can't be found or read, or a package is missing.
    VocabularyError
        It has no end token and none was given, or ids don't fit.
    """
    import constrain

    if name is None:
        if vocab_size is not None or eos_token_ids:
            raise typer.BadParameter(
                "--vocab-size and --eos need --tokenizer; the embedded model has its own"
            )
        return constrain.load_model().vocabulary
    try:
        import transformers
    except ImportError as error:
        raise BackendError(
            f"Tokenizers are read by transformers ({error}): pip install 'constrain-lm[hf]'"
        ) from error
    try:
        if Path(name).suffix == ".json":
            make: Any = transformers.PreTrainedTokenizerFast
            tokenizer = make(tokenizer_file=name)
        else:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    except Exception as error:  # the tokenizers library raises bare Exceptions on files it can't read
        raise BackendError(f"The tokenizer {name!r} can't be read: {error}") from error
    return constrain.Vocabulary.from_transformers(
        tokenizer, vocab_size=vocab_size, eos_token_ids=eos_token_ids or None
    )
