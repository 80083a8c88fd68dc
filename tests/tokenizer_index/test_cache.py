"""Folders of arrays on disk: what is read back, what is refused, what is replaced."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from constrain.errors import ArtefactError
from constrain.tokenizer_index import cache

HEADER = {"vocabulary": "abc", "version": 3}


def some_arrays() -> cache.Arrays:
    return {
        "words": np.arange(12, dtype=np.uint32).reshape(3, 4),
        "ids": np.array([5, -1], np.int32),
        "nothing": np.zeros((0, 2), np.int32),
        "no_rows_wide": np.zeros((4, 0), np.int64),
    }


def write(folder: Path) -> cache.Arrays:
    arrays = some_arrays()
    cache.write_arrays(folder, arrays, HEADER)
    return arrays


def test_arrays_come_back(tmp_path: Path) -> None:
    """Values, types and shapes are those written, read-only, empty arrays among them."""
    arrays = write(tmp_path / "deep" / "folder")
    read = cache.read_arrays(tmp_path / "deep" / "folder", HEADER, arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype and read[name].shape == array.shape
        assert np.array_equal(read[name], array) and not read[name].flags.writeable
    assert list(tmp_path.joinpath("deep").iterdir()) == [tmp_path / "deep" / "folder"]


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    """A missing folder is a FileNotFoundError, not a damaged artefact."""
    with pytest.raises(FileNotFoundError):
        cache.read_arrays(tmp_path / "missing", HEADER, ["words"])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 0x10
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def other_type(path: Path) -> None:
    np.save(path, np.load(path).astype(np.int64))


def pickled(path: Path) -> None:
    np.save(path, np.array([{}], object), allow_pickle=True)


def fortran(path: Path) -> None:
    np.save(path, np.asfortranarray(np.load(path)))


DAMAGE: list[Callable[[Path], None]] = [cut, flip, empty, other_type, pickled, fortran, os.remove]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_array_is_refused(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Whatever happened to an array's file, it is an ArtefactError that names the file."""
    folder = tmp_path / "folder"
    write(folder)
    damage(folder / "words.npy")
    with pytest.raises(ArtefactError, match=r"words\.npy is damaged"):
        cache.read_arrays(folder, HEADER, ["ids", "words"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "null",
        '{"format": 1}',
        "\xff",
        "[" * 100_000,
        '{"format": 1, "header": {}, "arrays": 3}',
    ],
)
def test_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever the manifest holds, it is an ArtefactError that names the folder."""
    folder = tmp_path / "folder"
    write(folder)
    (folder / cache.MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(ArtefactError, match="folder"):
        cache.read_arrays(folder, HEADER if '"header"' not in text else {}, ["words"])


def test_other_version_and_other_owner_are_refused(tmp_path: Path) -> None:
    """An artefact of another format or of something else says so."""
    folder = tmp_path / "folder"
    write(folder)
    with pytest.raises(ArtefactError, match="belongs to"):
        cache.read_arrays(folder, {**HEADER, "vocabulary": "abd"}, ["words"])
    with pytest.raises(ArtefactError, match="damaged: KeyError"):
        cache.read_arrays(folder, HEADER, ["words", "more"])
    manifest = json.loads((folder / cache.MANIFEST).read_text())
    (folder / cache.MANIFEST).write_text(json.dumps({**manifest, "format": cache.FORMAT + 1}))
    with pytest.raises(ArtefactError, match=f"reads format {cache.FORMAT}"):
        cache.read_arrays(folder, HEADER, ["words"])


def test_replaced_folder_leaves_mapped_arrays_alone(tmp_path: Path) -> None:
    """Arrays that are mapped keep their values when their folder is replaced."""
    folder = tmp_path / "folder"
    old = write(folder)
    mapped = cache.read_arrays(folder, HEADER, old)
    cache.write_arrays(folder, {"words": np.zeros((3, 4), np.uint32)}, HEADER)
    assert np.array_equal(mapped["words"], old["words"])
    assert not cache.read_arrays(folder, HEADER, ["words"])["words"].any()
    assert [path.name for path in folder.iterdir() if path.suffix == ".npy"] == ["words.npy"]


def test_load_or_build_builds_once(tmp_path: Path) -> None:
    """What was built once is opened the next time."""
    calls: list[int] = []

    def build() -> cache.Arrays:
        calls.append(1)
        return some_arrays()

    for _ in range(3):
        arrays = cache.load_or_build(tmp_path / "folder", HEADER, some_arrays(), build)
        assert arrays["words"].tolist() == some_arrays()["words"].tolist()
        assert not arrays["words"].flags.writeable
    assert len(calls) == 1


def test_what_another_process_wrote_is_kept(tmp_path: Path) -> None:
    """An artefact that appears while it is being built is used, not replaced under its readers."""
    folder = tmp_path / "folder"

    def build() -> cache.Arrays:
        cache.write_arrays(folder, some_arrays(), HEADER)
        return some_arrays()

    arrays = cache.load_or_build(folder, HEADER, some_arrays(), build)
    inode = folder.stat().st_ino
    assert not arrays["words"].flags.writeable
    cache.write_arrays(folder, some_arrays(), HEADER, replace=False)
    assert folder.stat().st_ino == inode
    cache.write_arrays(folder, some_arrays(), HEADER)
    assert folder.stat().st_ino != inode


def test_arrays_that_cannot_be_kept_are_read_only(tmp_path: Path) -> None:
    """Where the cache cannot be written, the built arrays are as read-only as the mapped ones."""
    (tmp_path / "file").write_text("in the way")
    arrays = cache.load_or_build(tmp_path / "file" / "folder", HEADER, some_arrays(), some_arrays)
    assert not arrays["words"].flags.writeable


def _build_slowly(folder: Path, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    for _ in range(20):
        cache.write_arrays(folder, some_arrays(), HEADER)
        cache.load_or_build(folder, HEADER, some_arrays(), some_arrays)


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    """Processes that write one artefact at the same time all succeed and leave one whole folder."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(3)
    processes = [context.Process(target=_build_slowly, args=(tmp_path / "folder", barrier)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert np.array_equal(cache.read_arrays(tmp_path / "folder", HEADER, ["ids"])["ids"], [5, -1])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_cache_folder_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CONSTRAIN_CACHE_DIR names the folder; unset or empty, the platform does."""
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path))
    assert cache.cache_folder() == tmp_path
    for unset in (True, False):
        monkeypatch.setenv("CONSTRAIN_CACHE_DIR", "")
        if unset:
            monkeypatch.delenv("CONSTRAIN_CACHE_DIR")
        assert cache.cache_folder().name.lower() in ("constrain", "cache")
