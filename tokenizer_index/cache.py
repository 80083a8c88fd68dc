"""Versioned folders of arrays on disk: what can be made again, kept so that it need not be.

An artefact is a folder of ``.npy`` files and a ``manifest.json`` with the format's version, a header
that says what the arrays belong to, and the type, shape and CRC-32 of each array. Arrays are
memory-mapped and read-only. Nothing is ever unpickled.

A folder is written beside its final place and renamed, so readers in other processes see all of it
or nothing; mapped arrays stay valid after their folder was replaced. The checksum is verified when
a folder is opened (about 1 ms per 4 MB): kernels follow these arrays without bounds checks.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import platformdirs
from numpy.typing import NDArray

from constrain.tokenizer_index.errors import ArtefactError

FORMAT = 1
MANIFEST = "manifest.json"
_ATTEMPTS = 8

Arrays: TypeAlias = dict[str, NDArray[Any]]
Header: TypeAlias = Mapping[str, str | int]

_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the folder of all cached artefacts.

    ``CONSTRAIN_CACHE_DIR`` where it is set and not empty, else the user's cache folder of the
    platform. The folder need not exist.
    """
    named = os.environ.get("CONSTRAIN_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("constrain", appauthor=False))


def write_arrays(
    folder: Path, arrays: Mapping[str, NDArray[Any]], header: Header, *, replace: bool = True
) -> None:
    """Write an artefact.

    Parameters
    ----------
    folder : Path
        Its parents are made.
    arrays : mapping of str to array
        Names are file names without their ending.
    header : mapping
        What `read_arrays` must be asked for.
    replace : bool
        Whether a folder that is there already gives way. While it does, other processes see none
        for a moment.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        new = Path(work, "new")
        new.mkdir()
        described = {}
        for name, array in arrays.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
            described[name] = {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "crc32": _checksum(array),
            }
        manifest = {"format": FORMAT, "header": dict(header), "arrays": described}
        (new / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for attempt in range(_ATTEMPTS):
            if replace:
                with suppress(FileNotFoundError):
                    folder.rename(Path(work, f"old-{attempt}"))
            try:
                new.rename(folder)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                # Another process put its copy there in between: move that one away too. If this
                # goes on and on, all of them write the same artefact, and any copy serves.
            else:
                return
            if not replace:
                return


def read_arrays(folder: Path, header: Header, names: Iterable[str]) -> Arrays:
    """Open an artefact.

    Parameters
    ----------
    folder : Path
    header : mapping
        What the artefact must belong to.
    names : iterable of str
        The arrays it must hold.

    Returns
    -------
    dict of str to array
        Memory-mapped and read-only, C-contiguous.

    Raises
    ------
    FileNotFoundError
        There is no such folder, or it has no manifest.
    ArtefactError
        The folder is damaged, of another version, or belongs to something else.
    """
    text = (folder / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
        version, found, described = manifest["format"], manifest["header"], manifest["arrays"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArtefactError(f"{folder / MANIFEST} is damaged: {error!r}. Delete the folder.") from error
    if version != FORMAT:
        raise ArtefactError(f"{folder} has format {version!r}; this version reads format {FORMAT}.")
    if found != dict(header):
        raise ArtefactError(f"{folder} belongs to {found!r}, not to {dict(header)!r}.")
    arrays: Arrays = {}
    for name in names:
        path = folder / f"{name}.npy"
        try:
            expected = described[name]
            array = _open(path)
            same = (
                array.dtype.str == expected["dtype"]
                and list(array.shape) == expected["shape"]
                and _checksum(array) == expected["crc32"]
            )
        except (ValueError, TypeError, KeyError, EOFError, FileNotFoundError) as error:
            raise ArtefactError(f"{path} is damaged: {error!r}. Delete the folder.") from error
        if not same:
            raise ArtefactError(f"{path} is damaged: it is not what {MANIFEST} says. Delete the folder.")
        arrays[name] = array
    return arrays


def load_or_build(
    folder: Path, header: Header, names: Iterable[str], build: Callable[[], Mapping[str, NDArray[Any]]]
) -> Mapping[str, NDArray[Any]]:
    """Open a cached artefact, or build its arrays and keep them.

    A damaged or foreign folder is replaced, with a warning in the log. Where the folder cannot be
    read or written the arrays are built and not kept. The arrays are read-only in any case.
    """
    names = tuple(names)
    damaged = False
    try:
        return read_arrays(folder, header, names)
    except FileNotFoundError:
        pass  # not made yet
    except ArtefactError as error:
        _log.warning("cached artefact is built again: %s", error)
        damaged = True
    except OSError as error:
        _log.warning("cache folder cannot be read, so nothing is kept: %s", error)
        return _read_only(build())
    arrays = _read_only(build())
    try:
        # What another process has written meanwhile is as good as ours, and may be in use.
        write_arrays(folder, arrays, header, replace=damaged)
        # The mapped copy takes the place of the built one, whose memory is private to this process.
        return read_arrays(folder, header, names)
    except (OSError, ArtefactError) as error:
        _log.warning("cache folder cannot be written, so nothing is kept: %s", error)
        return arrays


def _read_only(arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _open(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file; raises ``ValueError`` if it is not one or is cut off."""
    mapped = np.lib.format.open_memmap(path, mode="r")
    if not mapped.flags.c_contiguous:
        raise ValueError("not in C order")
    return np.asarray(mapped)


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0
