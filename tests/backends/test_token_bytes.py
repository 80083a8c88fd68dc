"""Token bytes of real and made tokenizers: decoding ids is the concatenation of their bytes."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from constrain.backends import token_bytes
from constrain.errors import BackendError, VocabularyError
from constrain.tokenizer_index.vocabulary import Vocabulary
from tests.reference.vocabularies import tokenizer_file

tokenizers = pytest.importorskip("tokenizers", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

REAL = {
    "llama3_1": ("<|eot_id|>", 128_256),
    "qwen3": ("<|im_end|>", 151_669),
    "gemma3": ("<end_of_turn>", 262_145),
    "deepseek_v3": ("<｜end▁of▁sentence｜>", 128_815),
}
TEXTS = [
    "Hello, wörld! 日本語 😀\n\tx = {'a': [1, 2.5]}  # end\r\n",
    '{"name": "Ada Lovelace", "born": 1815, "tags": ["a\\"b", "\\u00e9"]}',
    "   leading, trailing and      many blanks     ",
    "▁ is no blank, nor is Ġ; <0x41> is text",
]


@cache
def real(name: str) -> Any:
    eos, _ = REAL[name]
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(tokenizer_file(name)), eos_token=eos)


def assert_concatenates(
    vocabulary: Vocabulary,
    decode: Callable[[list[int]], str],
    *,
    n_sequences: int = 1_500,
    drops_first_blank: bool = False,
    without: Sequence[int] = (),
) -> None:
    """Compare the library's text of random ids with the concatenation of their bytes."""
    ids = [i for i, token in enumerate(vocabulary.tokens) if token is not None and i not in set(without)]
    rng = random.Random(1)
    for _ in range(n_sequences):
        sequence = rng.choices(ids, k=rng.randint(1, 8))
        ours = vocabulary.decode(sequence).decode("utf-8", "replace")
        theirs = decode(sequence)
        assert theirs == ours or (drops_first_blank and " " + theirs == ours), sequence


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers_decode_by_concatenation(name: str) -> None:
    """On random ids, broken characters included, the bytes join to what the tokenizer decodes."""
    tokenizer = real(name)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.size == REAL[name][1] == len(tokenizer)
    assert vocabulary.eos_token_ids == (tokenizer.eos_token_id,)
    assert vocabulary.has_all_bytes
    assert_concatenates(vocabulary, lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False))


@pytest.mark.parametrize("name", REAL)
def test_encoded_text_comes_back(name: str) -> None:
    """The bytes of a text's tokens are the text."""
    tokenizer = real(name)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        decoded = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        assert vocabulary.decode(ids).decode() == decoded


def test_special_and_added_tokens_of_real_tokenizers() -> None:
    """Special tokens have no text; added tokens that aren't special have the text they decode to."""
    qwen = Vocabulary.from_transformers(real("qwen3"))
    names = real("qwen3").get_vocab()
    assert qwen.token_bytes(names["<|im_start|>"]) is None
    assert qwen.token_bytes(names["<tool_call>"]) == b"<tool_call>"
    gemma = Vocabulary.from_transformers(real("gemma3"))
    names = real("gemma3").get_vocab()
    assert gemma.token_bytes(names["<unk>"]) is None
    assert gemma.token_bytes(names["▁▁▁"]) == b"   "
    assert gemma.token_bytes(names["<0x0A>"]) == b"\n"
    assert gemma.token_bytes(names["<unused0>"]) == b"<unused0>"


def test_wider_logits_and_other_end_tokens() -> None:
    """vocab_size pads, and eos_token_ids takes a generation config's list."""
    tokenizer = real("llama3_1")
    vocabulary = Vocabulary.from_transformers(
        tokenizer, vocab_size=128_320, eos_token_ids=[128_001, 128_008, 128_009]
    )
    assert vocabulary.size == 128_320 and vocabulary.eos_token_ids == (128_001, 128_008, 128_009)
    assert vocabulary.token_bytes(128_319) is None


# ------------------------------------------------------------------------------ made tokenizers


def made(
    vocabulary: Sequence[str], decoder: Any, *, added: Sequence[Any] = (), unknown: str | None = None
) -> Any:
    model = tokenizers.models.BPE(
        vocab={name: i for i, name in enumerate(vocabulary)}, merges=[], unk_token=unknown
    )
    backend = tokenizers.Tokenizer(model)
    if decoder is not None:
        backend.decoder = decoder
    backend.add_tokens([tokenizers.AddedToken(text, special=False, normalized=False) for text in added])
    backend.add_special_tokens(["<|end|>"])
    return backend


def from_backend(backend: Any) -> Vocabulary:
    return Vocabulary.from_transformers(backend, eos_token_ids=[backend.token_to_id("<|end|>")])


DECODERS: dict[str, Callable[[], Any]] = {
    "Gemma": lambda: [("Replace", "▁", " "), "ByteFallback", "Fuse"],
    "Llama 2": lambda: [("Replace", "▁", " "), "ByteFallback", "Fuse", ("Strip", " ", 1, 0)],
    "Metaspace": lambda: [("Metaspace",)],
    "byte fallback, then Metaspace": lambda: ["ByteFallback", ("Metaspace",), "Fuse"],
    "longer replacement": lambda: [("Replace", "▁", "<blank>"), ("Replace", "ab", ""), "Fuse"],
    "nothing but text": lambda: ["Fuse"],
}


def decoder_of(steps: Sequence[Any]) -> Any:
    made_steps = [
        getattr(tokenizers.decoders, step[0])(*step[1:])
        if isinstance(step, tuple)
        else getattr(tokenizers.decoders, step)()
        for step in steps
    ]
    return tokenizers.decoders.Sequence(made_steps)


@pytest.mark.parametrize("steps", DECODERS)
def test_sentencepiece_decoders(steps: str) -> None:
    """Replacements, byte fallback and blanks follow the library, step by step."""
    names = [
        "<unk>",
        "▁a",
        "b",
        "ab",
        "▁▁",
        "c▁d",
        "▁",
        "日",
        "<0x0A>",
        "<0xe3>",
        "<0x4>",
        "<0xZZ>",
        "<0x+1>",
        "<0x++>",
        "<0x1+>",
    ]
    backend = made(names, decoder_of(DECODERS[steps]()), added=["▁z", " q ", "<0x41>"], unknown="<unk>")
    vocabulary = from_backend(backend)
    assert vocabulary.token_bytes(0) is None
    broken = [names.index("<0xe3>")] if "ByteFallback" in DECODERS[steps]() else []
    # What these decoders drop at the start of a text they drop from the first token only.
    first = backend.decode([2])
    assert_concatenates(
        vocabulary, lambda ids: backend.decode([2, *ids])[len(first) :], n_sequences=400, without=broken
    )


def test_byte_level_names_with_other_characters_are_literal() -> None:
    """A name is literal text as soon as one character is not of the byte-level alphabet."""
    names = [*token_bytes.byte_level_alphabet(), "Ġthe", "Ċq", "日本", "a b"]
    backend = made(names, tokenizers.decoders.ByteLevel(), added=["<tool>", "x y", "日Ġ", "Ġx"])
    vocabulary = from_backend(backend)
    assert vocabulary.has_all_bytes
    by_name = {name: vocabulary.token_bytes(backend.token_to_id(name)) for name in backend.get_vocab()}
    assert by_name["Ġthe"] == b" the" and by_name["Ċq"] == b"\nq" and by_name["a b"] == b"a b"
    assert (
        by_name["日本"] == "日本".encode() and by_name["日Ġ"] == "日Ġ".encode() and by_name["<|end|>"] is None
    )
    assert_concatenates(vocabulary, backend.decode, n_sequences=800)


def test_alphabet_is_that_of_the_library() -> None:
    """The byte-level alphabet has the library's 256 characters and is a bijection onto bytes."""
    alphabet = token_bytes.byte_level_alphabet()
    assert set(alphabet) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(alphabet.values()) == list(range(256))


def test_tokenizer_without_a_decoder() -> None:
    """Without a decoder names are text, or bytes if the text is cut into bytes first."""
    backend = made(["a", "Ġb", "日"], None)
    assert list(from_backend(backend).tokens) == [b"a", "Ġb".encode(), "日".encode(), None]
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Whitespace(), tokenizers.pre_tokenizers.ByteLevel()]
    )
    assert list(from_backend(backend).tokens) == [b"a", b" b", "日".encode(), None]


def test_ids_with_gaps() -> None:
    """Ids that no token has are without text, wherever they lie."""
    model = tokenizers.models.BPE(vocab={"a": 0, "b": 7}, merges=[])
    backend = tokenizers.Tokenizer(model)
    vocabulary = Vocabulary.from_transformers(backend, eos_token_ids=[3])
    assert list(vocabulary.tokens) == [b"a", *[None] * 6, b"b"]
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0, "b": 1 << 31}, merges=[]))
    with pytest.raises(VocabularyError, match="token id 2,147,483,648"):
        Vocabulary.from_transformers(backend, eos_token_ids=[3])


def test_unigram_and_word_level_models() -> None:
    """Models without merges are read the same way; their unknown token has no text."""
    unigram = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("▁a", -1.0), ("b", -2.0)], 0))
    unigram.decoder = tokenizers.decoders.Metaspace()
    assert Vocabulary.from_transformers(unigram, eos_token_ids=[0]).tokens[:] == [None, b" a", b"b"]
    unigram.add_special_tokens(["</s>"])
    assert Vocabulary.from_transformers(unigram, eos_token_ids=[3]).tokens[:] == [None, b" a", b"b", None]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, "[UNK]"))
    words.add_special_tokens(["</s>"])
    assert Vocabulary.from_transformers(words, eos_token_ids=[3]).tokens[:] == [None, b"a", b"b", None]


def word_piece() -> Any:
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({"a": 0, "##b": 1, "[UNK]": 2}, unk_token="[UNK]")
    )
    backend.decoder = tokenizers.decoders.WordPiece()
    return backend


def suffixed() -> Any:
    return tokenizers.Tokenizer(tokenizers.models.BPE({"a</w>": 0}, [], end_of_word_suffix="</w>"))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "WordPiece": (word_piece, "WordPiece"),
    "WordPiece decoder": (lambda: made(["a"], tokenizers.decoders.WordPiece()), "end to end"),
    "end-of-word suffix": (suffixed, "ends of words"),
    "BPEDecoder": (lambda: made(["a"], tokenizers.decoders.BPEDecoder()), "end to end"),
    "CTC": (lambda: made(["a"], tokenizers.decoders.CTC()), "end to end"),
    "trailing blanks": (lambda: made(["a"], decoder_of(["Fuse", ("Strip", " ", 0, 1)])), "end to end"),
    "blanks of each token": (lambda: made(["a"], decoder_of([("Strip", " ", 1, 0)])), "end to end"),
    "replacing across tokens": (
        lambda: made(["a"], decoder_of(["Fuse", ("Replace", "ab", "c")])),
        "end to end",
    ),
    "pattern": (
        lambda: made(["a"], tokenizers.decoders.Replace(tokenizers.Regex("a+"), "b")),
        "end to end",
    ),
    "bytes and blanks": (lambda: made(["a"], decoder_of([("Metaspace",), "ByteLevel"])), "byte-level"),
    "no tokenizer": (lambda: object(), "object cannot be read"),
    "a model": (lambda: tokenizers.models.BPE({}, []), "BPE cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_tokenizers_are_refused(case: str) -> None:
    """What does not write its tokens end to end is refused, with the way out."""
    make, words = REFUSED[case]
    with pytest.raises(VocabularyError, match=f"{words}.*from_tokens"):
        Vocabulary.from_transformers(make(), eos_token_ids=[0])


def test_end_token_of_the_tokenizer() -> None:
    """The tokenizer's own end token is used; without one the error says what to pass."""
    backend = made(["a", "b"], None)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>", pad_token="b")
    vocabulary = Vocabulary.from_transformers(fast)
    assert vocabulary.eos_token_ids == (2,) and list(vocabulary.tokens) == [b"a", None, None]
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        Vocabulary.from_transformers(backend)


def test_processor_around_a_tokenizer() -> None:
    """A multimodal processor is read through the tokenizer it holds."""

    class Processor:
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made(["a"], None), eos_token="<|end|>"
        )

    assert Vocabulary.from_transformers(Processor()) == Vocabulary.from_transformers(Processor.tokenizer)


def test_slow_byte_level_tokenizer() -> None:
    """A Python tokenizer with a byte decoder is read through it; added tokens are literal."""

    class Slow:
        byte_decoder = token_bytes.byte_level_alphabet()
        added_tokens_decoder = {  # noqa: RUF012
            3: tokenizers.AddedToken("<tool é>", special=False),
            5: tokenizers.AddedToken("</s>", special=True),
        }
        all_special_ids = (5,)
        eos_token_id = 5

        def get_vocab(self) -> dict[str, int]:
            return {"Ġa": 0, "é": 1, "日": 2, "<tool é>": 3, "</s>": 5}

    vocabulary = Vocabulary.from_transformers(Slow())
    assert list(vocabulary.tokens) == [b" a", b"\xe9", "日".encode(), "<tool é>".encode(), None, None]


# ------------------------------------------------------------------------------ other libraries


def mistral_file(name: str) -> str:
    """Return a model file that mistral_common ships; skip where it is not installed."""
    found = importlib.util.find_spec("mistral_common")
    if found is None or not found.submodule_search_locations:
        pytest.skip("mistral_common is not installed")
    path = Path(found.submodule_search_locations[0]) / "data" / name
    if not path.is_file():
        pytest.skip(f"this mistral_common has no {name}")
    return str(path)


@pytest.mark.parametrize("name", ["tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"])
def test_sentencepiece(name: str) -> None:
    """A SentencePiece model with byte fallback decodes by concatenation, but for the first blank."""
    library = pytest.importorskip("sentencepiece")
    path = mistral_file(name)
    processor = library.SentencePieceProcessor(model_file=path)
    vocabulary = Vocabulary.from_sentencepiece(path)
    assert vocabulary == Vocabulary.from_sentencepiece(Path(path)) == Vocabulary.from_sentencepiece(processor)
    assert vocabulary.size == processor.get_piece_size() and vocabulary.has_all_bytes
    assert vocabulary.eos_token_ids == (processor.eos_id(),)
    assert vocabulary.token_bytes(processor.unk_id()) is None
    assert_concatenates(vocabulary, processor.decode, drops_first_blank=True)


def test_sentencepiece_files_that_are_none(tmp_path: Path) -> None:
    """A path without a model, or with another file, is a clear error."""
    with pytest.raises(VocabularyError, match="no SentencePiece model at"):
        Vocabulary.from_sentencepiece(tmp_path / "missing.model")
    (tmp_path / "text.model").write_text("not a model")
    if importlib.util.find_spec("sentencepiece") is None:
        with pytest.raises(BackendError, match="pip install sentencepiece"):
            Vocabulary.from_sentencepiece(tmp_path / "text.model")
    else:
        with pytest.raises(VocabularyError, match="is no SentencePiece model"):
            Vocabulary.from_sentencepiece(tmp_path / "text.model")


@pytest.mark.parametrize("name", ["tekken_240911.json", "mistral_instruct_tokenizer_241114.model.v7"])
def test_mistral(name: str) -> None:
    """Tekken and SentencePiece tokenizers of mistral_common, whole or their inner parts."""
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral", exc_type=ImportError)
    tokenizer = module.MistralTokenizer.from_file(mistral_file(name))
    core = tokenizer.instruct_tokenizer.tokenizer
    vocabulary = Vocabulary.from_mistral(tokenizer)
    assert (
        vocabulary == Vocabulary.from_mistral(tokenizer.instruct_tokenizer) == Vocabulary.from_mistral(core)
    )
    assert vocabulary.size == core.n_words and vocabulary.eos_token_ids == (core.eos_id,)
    assert vocabulary.has_all_bytes
    assert_concatenates(vocabulary, core.decode, drops_first_blank=True)


def test_mistral_refuses_others() -> None:
    """Another object is refused by name."""
    with pytest.raises(VocabularyError, match="object is no tokenizer of mistral_common"):
        Vocabulary.from_mistral(object())


def test_tiktoken() -> None:
    """Ranks are bytes, special tokens have no text, unused ids none either."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257, "é".encode(): 258}
    encoding = tiktoken.Encoding(
        "made", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 261, "<|x|>": 263}
    )
    vocabulary = Vocabulary.from_tiktoken(encoding)
    assert vocabulary.size == 264 and vocabulary.eos_token_ids == (261,)
    assert vocabulary.tokens[256:] == [b"ab", b"abc", "é".encode(), None, None, None, None, None]
    assert_concatenates(vocabulary, encoding.decode, n_sequences=300)
    other = tiktoken.Encoding("none", pat_str=r"\S+", mergeable_ranks=ranks, special_tokens={"<|x|>": 263})
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        Vocabulary.from_tiktoken(other)
