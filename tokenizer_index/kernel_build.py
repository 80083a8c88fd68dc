"""Compiles the kernels into one object file, on all cores.

Numba's front end takes most of the time and holds its lock, so the functions are shared out among a few
processes of this Python, each of which sends back LLVM bitcode. Where no process can be started, all is
compiled here.
"""

from __future__ import annotations

import logging
import os
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

import llvmlite.binding as llvm

from constrain.tokenizer_index.layout import FAULT

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)``."""

_PROCESSES = 4
"""At most: each of them imports Numba and compiles the helpers its functions call."""
_COMMAND = "from constrain.tokenizer_index import kernel_build; kernel_build.serve()"
_MARK = 0x6B65726E656C7321


def build(target: Any, progress: Progress | None) -> tuple[bytes, list[str]]:
    """Compile all kernels.

    Parameters
    ----------
    target : llvmlite.binding.TargetMachine
        What the code is made for: this machine.
    progress : callable or None
        Called as ``progress(done, total)`` from the start to the end, in any thread.

    Returns
    -------
    code : bytes
        An object file.
    names : list of str
        Its functions: ``far.*`` in the order of their slots, C functions; ``py.*``, functions of CPython's
        kind ``METH_FASTCALL``.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(p) for p in _start(min(_PROCESSES, _cores()))]
        try:
            kinds = _functions()
            parts = _compile_apart(processes, len(kinds), progress)
        finally:
            for process in processes:
                process.kill()
    wrappers: list[str] = [_DECLARATIONS]
    names: list[str] = []
    for (kind, function), (core, _) in zip(kinds, parts, strict=True):
        n = function.__code__.co_argcount
        stem = f"{kind}.{function.__name__}"
        wrappers.append(_c_function(stem, core, n))
        if kind == "far":
            names.append(stem)
        else:
            names.append(f"py.{function.__name__}")
            wrappers.append(_python_function(names[-1], stem, n, is_free=kind == "free"))
    module = llvm.parse_assembly("\n".join(wrappers))
    for _, bitcode in parts:
        module.link_in(llvm.parse_bitcode(bitcode))
    # What is not asked for by name goes: Numba's own wrappers, and with them all ties to its runtime.
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration:
            item.linkage = "external" if item.name in names else "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    return target.emit_object(module), names


# ------------------------------------------------------------------------------------ processes

_Part = tuple[str, bytes]
"""The name of Numba's function and the bitcode of its module."""


def _functions() -> list[tuple[str, Callable[..., int]]]:
    from constrain.tokenizer_index import cost_kernels, kernel_memory, kernels, lexeme_kernels

    # Importing a module of kernels lists them.
    for entry_point in (kernels.run, cost_kernels.run_costs, lexeme_kernels.walk_lexemes):
        assert entry_point in kernel_memory.ENTRY_POINTS
    return [
        *(("far", f) for f in kernels.FAR_FUNCTIONS),
        *(("quick", f) for f in kernel_memory.QUICK),
        *(("free", f) for f in kernel_memory.ENTRY_POINTS),
    ]


def _compile(number: int) -> _Part:
    """Compile one of `_functions` for int64 arguments."""
    from numba import njit, types

    compiler: Any = njit  # its annotations lack an option
    _, function = _functions()[number]
    dispatcher = compiler(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    dispatcher.compile(types.int64(*[types.int64] * function.__code__.co_argcount))
    (compiled,) = dispatcher.overloads.values()
    return compiled.fndesc.llvm_func_name, compiled.library._final_module.as_bitcode()


def serve() -> None:
    """Compile the functions whose numbers come in on standard input; what a process of `build` does."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else writes to standard output must not disturb the answers
    while order := sys.stdin.buffer.read(8):
        core, bitcode = _compile(*struct.unpack("<q", order))
        name = core.encode()
        answers.write(struct.pack("<qqq", _MARK, len(name), len(bitcode)) + name + bitcode)
        answers.flush()


def _compile_apart(
    processes: list[subprocess.Popen[bytes]], total: int, progress: Progress | None
) -> list[_Part]:
    """Compile all functions: by the processes, and what they leave in this one."""
    done: dict[int, _Part] = {}
    waiting = deque(range(total))
    lock = threading.Lock()

    def keep(number: int, part: _Part) -> None:
        with lock:
            done[number] = part
            if progress is not None:
                progress(len(done), total)

    def drive(process: subprocess.Popen[bytes], is_even: bool) -> None:
        assert process.stdin is not None and process.stdout is not None
        # Neighbours call the same helpers, which each process compiles for itself: start at both ends.
        take = waiting.popleft if is_even else waiting.pop
        while True:
            try:
                number = take()
            except IndexError:
                return
            try:
                process.stdin.write(struct.pack("<q", number))
                process.stdin.flush()
                mark, *sizes = struct.unpack("<qqq", _read(process.stdout, 24))
                if mark != _MARK:  # something else has been printed
                    raise EOFError("not an answer")
                name, bitcode = (_read(process.stdout, size) for size in sizes)
            except (OSError, EOFError) as error:
                _log.info("a process that compiles kernels ended early (%r)", error)
                waiting.append(number)
                return
            keep(number, (name.decode(), bitcode))

    if progress is not None:
        progress(0, total)
    threads = [
        threading.Thread(target=drive, args=(process, i % 2 == 0), daemon=True)
        for i, process in enumerate(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in list(waiting):
        keep(number, _compile(number))
    return [done[number] for number in range(total)]


def _start(count: int) -> list[subprocess.Popen[bytes]]:
    """Start processes that `serve`; none where there is one core or this program is no Python."""
    if count < 2 or not sys.executable:
        return []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            _log.info("no process can be started to compile kernels: %s", error)
            break
        processes.append(process)
    return processes


def _read(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError("the answer is cut off")
    return found


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ------------------------------------------------------------------------------------- wrappers

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
