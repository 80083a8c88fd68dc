"""The kernels as machine code: compiled once for each machine, then loaded without Numba.

Numba compiles each kernel of ``kernels`` (half a minute, once); the results are linked into one module with
a C function for each far function and a Python function for each entry point, and the object file is
kept in the user's cache folder. Later processes load it in some 20 ms: importing Numba alone would take
twenty times as long. Calls go through functions of CPython's vectorcall kind made here, which cost about
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
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from constrain.tokenizer_index import cache
from constrain.tokenizer_index.errors import ArtefactError
from constrain.tokenizer_index.layout import FAULT, IS_CHECKED

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_loaded: Native | None = None

Progress = Callable[[int, int], None]

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
            code, names = _build(self, self.progress)
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


_SOURCES = ("kernels.py", "layout.py", "native.py")


# ----------------------------------------------------------------------------------- compiling


def _build(loader: _Loader, progress: Progress | None) -> tuple[bytes, list[str]]:
    """Compile all kernels; return an object file and the names of its functions."""
    from numba import njit, types

    from constrain.tokenizer_index import kernels

    compiler: Any = njit  # its annotations lack an option
    kinds = (
        *(("far", f) for f in kernels.FAR_FUNCTIONS),
        *(("quick", f) for f in kernels.QUICK),
        *(("free", f) for f in kernels.ENTRY_POINTS),
    )
    wrappers: list[str] = [_DECLARATIONS]
    modules: list[bytes] = []
    names: list[str] = []
    for done, (kind, function) in enumerate(kinds):
        if progress is not None:
            progress(done, len(kinds))
        n = function.__code__.co_argcount
        dispatcher = compiler(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
        dispatcher.compile(types.int64(*[types.int64] * n))
        (compiled,) = dispatcher.overloads.values()
        modules.append(compiled.library._final_module.as_bitcode())
        stem = f"{kind}.{function.__name__}"
        wrappers.append(_c_function(stem, compiled.fndesc.llvm_func_name, n))
        if kind == "far":
            names.append(stem)
        else:
            names.append(f"py.{function.__name__}")
            wrappers.append(_python_function(names[-1], stem, n, is_free=kind == "free"))
    if progress is not None:
        progress(len(kinds), len(kinds))
    module = llvm.parse_assembly("\n".join(wrappers))
    for bitcode in modules:
        module.link_in(llvm.parse_bitcode(bitcode))
    # What is not asked for by name goes: Numba's own wrappers, and with them all ties to its runtime.
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration:
            item.linkage = "external" if item.name in names else "internal"
    target = loader.target(3)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    return target.emit_object(module), names


_DECLARATIONS = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""


def _c_function(name: str, core: str, n: int) -> str:
    """LLVM assembly of a C function around one of Numba's, which gives a status and its result apart."""
    arguments = ", ".join(f"i64 %a{i}" for i in range(n))
    return f"""
declare i32 @"{core}"(ptr, ptr, {", ".join(["i64"] * n)})
define i64 @"{name}"({arguments}) {{
  %result = alloca i64
  %error = alloca ptr
  store i64 0, ptr %result
  %status = call i32 @"{core}"(ptr %result, ptr %error, {arguments})
  %value = load i64, ptr %result
  %failed = icmp ne i32 %status, 0
  %answer = select i1 %failed, i64 {FAULT}, i64 %value
  ret i64 %answer
}}
"""


def _python_function(name: str, target: str, n: int, *, is_free: bool) -> str:
    """LLVM assembly of a CPython function (``METH_FASTCALL``) that converts ``n`` integers and the result."""
    lines = [
        f'define ptr @"{name}"(ptr %self, ptr %arguments, i64 %count) {{',
        f"  %right = icmp eq i64 %count, {n}",
        "  br i1 %right, label %convert, label %wrong",
        "wrong:",
        "  call i32 @PyErr_BadArgument()",
        "  ret ptr null",
        "convert:",
    ]
    for i in range(n):
        lines += [
            f"  %p{i} = getelementptr ptr, ptr %arguments, i64 {i}",
            f"  %o{i} = load ptr, ptr %p{i}",
            f"  %a{i} = call i64 @PyLong_AsLongLong(ptr %o{i})",
        ]
    lines += [
        "  %error = call ptr @PyErr_Occurred()",
        "  %clean = icmp eq ptr %error, null",
        "  br i1 %clean, label %work, label %failed",
        "failed:",
        "  ret ptr null",
        "work:",
    ]
    if is_free:
        lines.append("  %thread = call ptr @PyEval_SaveThread()")
    lines.append(f'  %value = call i64 @"{target}"({", ".join(f"i64 %a{i}" for i in range(n))})')
    if is_free:
        lines.append("  call void @PyEval_RestoreThread(ptr %thread)")
    lines += ["  %answer = call ptr @PyLong_FromLongLong(i64 %value)", "  ret ptr %answer", "}"]
    return "\n".join(lines)
