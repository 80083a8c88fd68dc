"""The kernels as machine code: compiled once for each machine, then loaded without Numba.

``kernel_build`` compiles the kernels (``kernels``, ``cost_kernels``, ``lexeme_kernels``; half a minute, once) into
one object file with a C function for each far function and a Python function for each entry point, which is kept
in the user's cache folder. Later processes load it in some 20 ms: importing Numba alone would take twenty times as
long. Calls go through functions of CPython's vectorcall kind made here, which cost about
0.1 µs.

The cache is keyed by the sources of the kernels, the versions of Numba, llvmlite and Python's ABI, and the
processor with its features. A damaged or unwritable cache means compiling again, never an error.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import sys
import threading
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from constrain.tokenizer_index import cache
from constrain.tokenizer_index.errors import ArtefactError
from constrain.tokenizer_index.kernel_build import Progress, build
from constrain.tokenizer_index.layout import IS_CHECKED

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_loaded: Native | None = None

_METH_FASTCALL = 0x0080
_PYTHON_API = (
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyErr_Occurred",
    "PyErr_BadArgument",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Native(SimpleNamespace):
    """The loaded kernels.

    Attributes
    ----------
    far : list of int
        Addresses of the far functions, in the order of the header's slots from ``S_FAR`` on.
    advance_quick, fill_quick, accepting_quick, run, ... : callable
        The entry points of ``kernels``: int64 arguments, int64 result.
    """

    far: list[int]


def load(progress: Progress | None = None) -> Native:
    """Return the kernels: from memory, else from the cache folder, else compiled now.

    Parameters
    ----------
    progress : callable or None
        Called as ``progress(done, total)`` while compiling.
    """
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _Loader(progress).load()
    return _loaded


def is_cached() -> bool:
    """Would `load` find compiled kernels?"""
    return _loaded is not None or (_Loader(None).folder / cache.MANIFEST).exists()


class _Loader:
    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.cpu = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features().flatten()
        key = blake2b(digest_size=16)
        for part in (
            *(files("constrain.tokenizer_index").joinpath(n).read_bytes() for n in _SOURCES),
            version("numba"),
            version("llvmlite"),
            sys.implementation.cache_tag,
            platform.system(),
            platform.machine(),
            self.cpu,
            self.features,
            str(IS_CHECKED),
        ):
            key.update(part if isinstance(part, bytes) else str(part).encode())
            key.update(b"\0")
        self.key = key.hexdigest()
        self.folder = cache.cache_folder() / f"kernels-{self.key}"

    def target(self, opt: int) -> Any:
        """The machine that code is made for."""
        return llvm.Target.from_default_triple().create_target_machine(
            cpu=self.cpu, features=self.features, opt=opt, codemodel="jitdefault", jit=True
        )

    def load(self) -> Native:
        header: dict[str, str | int] = {"kernels": self.key}
        try:
            stored = cache.read_arrays(self.folder, header, ("code", "names"))
        except FileNotFoundError:
            stored = None
        except ArtefactError as error:
            _log.warning("compiling the kernels again: %s", error)
            stored = None
        if stored is None:
            _log.warning("compiling the kernels for this machine, once; this takes about half a minute")
            code, names = build(self.target(3), self.progress)
            stored = {
                "code": np.frombuffer(code, np.uint8),
                "names": np.frombuffer("\n".join(names).encode(), np.uint8),
            }
            try:
                cache.write_arrays(self.folder, stored, header)
            except OSError as error:
                _log.warning("the compiled kernels cannot be kept: %s", error)
        return self.link(bytes(stored["code"]), bytes(stored["names"]).decode().split("\n"))

    def link(self, code: bytes, names: list[str]) -> Native:
        """Load an object file and make Python functions of its entry points."""
        api = ctypes.pythonapi
        for name in _PYTHON_API:
            llvm.add_symbol(name, ctypes.cast(getattr(api, name), ctypes.c_void_p).value)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target(0))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        native = Native(far=[], engine=engine, definitions=[])
        make = api.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        for name in names:
            address = engine.get_function_address(name)
            if name.startswith("far."):
                native.far.append(address)
                continue
            definition = _MethodDef(name.removeprefix("py.").encode(), address, _METH_FASTCALL, None)
            # The function refers to its definition as long as it lives, which is as long as the process.
            native.definitions.append(definition)
            setattr(native, name.removeprefix("py."), make(ctypes.addressof(definition), None, None))
        return native


_SOURCES = (
    "kernel_memory.py",
    "kernels.py",
    "cost_kernels.py",
    "lexeme_kernels.py",
    "layout.py",
    "parameters.py",
    "kernel_build.py",
    "native.py",
)
