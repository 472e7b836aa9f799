"""LLVM in another process gives what it gives here, and nothing depends on there being one."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from lowering.compiler.kernel_maker import load
from lowering.llvm import background
from lowering.llvm.background import Background, CompilerProcess, NoAnswerError
from lowering.llvm.binding import CodegenError
from lowering.llvm.compiler import CompileOptions, compile_object
from tir_dialect.target import Target

pytestmark = pytest.mark.usefixtures("own_process")

OPTIONS = CompileOptions(1)
WRONG = "define i32 @f() { ret i32 }"


def returns(number: int) -> str:
    return f"define i32 @f() {{\n  ret i32 {number}\n}}\n"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started."""
    processes: list[subprocess.Popen[bytes]] = []
    start = background._started

    def recorded() -> subprocess.Popen[bytes]:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(background, "_started", recorded)
    return processes


@pytest.fixture
def process() -> Generator[CompilerProcess]:
    process = CompilerProcess()
    yield process
    process.close()


def compiled(process: CompilerProcess, number: int) -> bool:
    target = Target.host()
    return process.compile(returns(number), target, OPTIONS) == compile_object(returns(number), target, OPTIONS)


def test_objects_and_messages(process: CompilerProcess, started: list[subprocess.Popen[bytes]]):
    assert not started
    assert all(compiled(process, number) for number in range(3))
    with pytest.raises(CodegenError) as here:
        compile_object(WRONG, Target.host(), OPTIONS)
    with pytest.raises(CodegenError) as there:
        process.compile(WRONG, Target.host(), OPTIONS)
    assert str(there.value) == str(here.value)
    assert compiled(process, 3)
    assert len(started) == 1


def test_a_process_that_ends(process: CompilerProcess, started: list[subprocess.Popen[bytes]]):
    assert compiled(process, 1)
    started[0].kill()
    assert compiled(process, 2)
    assert len(started) == 1


def test_a_call_that_is_stopped_gets_no_answer(process: CompilerProcess, started: list[subprocess.Popen[bytes]]):
    assert compiled(process, 1)
    threading.Timer(0.05, process.stop).start()
    with pytest.raises(NoAnswerError):
        process.ask(time.sleep, 60)
    assert len(started) == 1


@pytest.mark.parametrize("executable", ["/nothing/python", "/bin/false", ""])
def test_no_python_to_start(
    executable: str, process: CompilerProcess, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", executable)
    assert all(compiled(process, number) for number in range(2))
    assert not started


def test_a_python_that_does_not_run(process: CompilerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "python3").symlink_to("/bin/false")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    assert all(compiled(process, number) for number in range(2))


def test_much_text_goes_both_ways(started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(background, "START_TEXT", len(returns(0)))
    monkeypatch.setattr(background, "LEAST_GAIN", len(returns(0)))
    target = Target.host()
    with Background() as both:
        texts = [returns(number) for number in range(20)]
        found = [
            both.submit_code(lambda compile, text=text: compile(text, target, OPTIONS), len(text)) for text in texts
        ]
        wrong = both.submit_code(lambda compile: compile(WRONG, target, OPTIONS), len(WRONG))
    assert [each.result() for each in found] == [compile_object(text, target, OPTIONS) for text in texts]
    with pytest.raises(CodegenError, match="LLVM rejects the module"):
        wrong.result()
    assert all(each.returncode is not None for each in started)


def test_little_text_stays_here(started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    with Background() as one:
        found = [one.submit_code(lambda _, number=number: number, 1000) for number in range(20)]
    assert [each.result() for each in found] == list(range(20))
    assert not started


def test_pytorch_is_not_imported(process: CompilerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "torch.py").write_text("raise AssertionError('this takes long')")
    monkeypatch.syspath_prepend(tmp_path)
    process.ask(load, Target.host())


def test_nobody_waits_for_the_end_of_a_process(started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch):
    process, ended = CompilerProcess(), threading.Event()
    assert compiled(process, 1)
    communicate = started[0].communicate
    monkeypatch.setattr(started[0], "communicate", lambda: ended.wait(60) and communicate())
    process.close()
    assert started[0].returncode is None
    ended.set()
    assert started[0].wait(60) == -signal.SIGKILL
