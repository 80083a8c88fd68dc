"""The processes that compile the kernels: sharing out, and what happens where they fail."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from constrain.tokenizer_index import kernel_build

FAKE = "from constrain.tokenizer_index import kernel_build as k; k._compile = lambda n: (f'f{n}', bytes([n]) * n); "
HERE = "compiled here"


def compile_with(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, bytes]], list[int]]:
    monkeypatch.setattr(kernel_build, "_COMMAND", command)
    monkeypatch.setattr(kernel_build, "_compile", lambda number: (HERE, bytes([number]) * number))
    seen: list[int] = []
    with ExitStack() as stack:
        processes = [stack.enter_context(p) for p in kernel_build._start(2)]
        assert len(processes) == 2
        parts = kernel_build._compile_apart(processes, 9, lambda done, total: seen.append(done))
        for process in processes:
            process.kill()
    return parts, seen


def test_parts_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function is compiled once, by some process, and progress is told one by one."""
    parts, seen = compile_with(FAKE + "k.serve()", monkeypatch)
    assert parts == [(f"f{n}", bytes([n]) * n) for n in range(9)]
    assert seen == list(range(10))


def test_output_of_a_process_does_not_disturb_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiler prints while it works is no answer."""
    noisy = "k._compile = lambda n: (print('noise', flush=True), f'f{n}')[1:] + (bytes([n]) * n,); k.serve()"
    parts, _ = compile_with(FAKE + noisy, monkeypatch)
    assert parts == [(f"f{n}", bytes([n]) * n) for n in range(9)]


@pytest.mark.parametrize(
    "ending",
    [
        "raise SystemExit(3)",
        "print('noise from a start-up file' * 2, flush=True); k.serve()",
        "import os; w = os.fdopen(os.dup(1), 'wb'); w.write(b'cut off'); w.flush()",
    ],
)
def test_what_failing_processes_leave_is_compiled_here(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that end early or answer half take nothing with them."""
    parts, seen = compile_with(FAKE + ending, monkeypatch)
    assert parts == [(HERE, bytes([n]) * n) for n in range(9)]
    assert seen == list(range(10))


def test_one_core_needs_no_process() -> None:
    """Where there is one core, nothing is started."""
    assert kernel_build._start(1) == []
