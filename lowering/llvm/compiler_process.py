"""A worker process that compiles in parallel, since Python and llvmlite run one thread at a time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

from lowering.llvm.binding import llvm
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.llvm.errors import CodegenError
from tir_dialect.target import Target

P = ParamSpec("P")
T = TypeVar("T")

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from lowering.llvm.compiler_process import serve; serve()"


class NoAnswerError(Exception):
    """The worker process is not available or failed; the caller does the work itself."""


@dataclass(frozen=True)
class _Answer:
    result: Any = None

    rejected: str | None = None
    """LLVM's message for invalid text."""

    failed: str | None = None
    """Any other error."""


class CompilerProcess:
    """A Python process, started on the first request, which imports what the requests need."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = False

    def start(self) -> None:
        """Returns when the process is there, or none can be had; it is then ready to compile."""
        with suppress(NoAnswerError):
            self.ask(load_compiler)

    def compile(self, text: str, target: Target, options: CompileOptions) -> bytes:
        """As `compile_object`, for one thread at a time; done here where no process can be had, or it has ended."""
        try:
            return self.ask(compile_object, text, target, options)
        except NoAnswerError:
            return compile_object(text, target, options)

    def ask(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """What a function at the top of a module of ours gives there, for one thread at a time.

        Raises `CodegenError` where it does, and `NoAnswerError` for every other error.
        """
        if self._is_lost:
            raise NoAnswerError("there is no process")
        try:
            answer = self._answer((work, arguments, named))
        except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
            self._is_lost = True
            raise NoAnswerError(str(error)) from error
        if answer.rejected is not None:
            raise CodegenError(answer.rejected)
        if answer.failed is not None:
            raise NoAnswerError(answer.failed)
        return answer.result

    def stop(self) -> None:
        """Ends the process, also while a call is under way, which gets no answer."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Ends the process; no call may be under way."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _answer(self, request: object) -> _Answer:
        if self._process is None:
            self._process = _started()
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        pickle.dump(request, requests)
        requests.flush()
        return cast("_Answer", pickle.load(answers))


def _started() -> subprocess.Popen[bytes]:
    """`OSError` if there is no Python to start. A program that carries its own would start itself again."""
    if not Path(sys.executable).name.startswith("python"):
        raise OSError(f"no Python: {sys.executable!r}")
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def load_compiler() -> None:
    """Loads what compiles text."""
    llvm()


def serve() -> None:
    """What the process does: it calls what it reads, and writes what that gives, until the end."""
    # Not at the top: a process that compiles text needs none of it, and this file is loaded by every build.
    from tir_dialect.garbage import few_collections, importing

    with few_collections():
        while True:
            try:
                with importing(), _without_torch():
                    request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(_answer(*request), sys.stdout.buffer)
            sys.stdout.buffer.flush()


@contextmanager
def _without_torch() -> Generator[None]:
    """tvm-ffi imports PyTorch where it is installed, which takes longer than most builds: for tensors, of which there
    are none here.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    if "torch" in modules:
        yield
        return
    modules["torch"] = None
    try:
        yield
    finally:
        del modules["torch"]


def _answer(work: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> _Answer:
    try:
        return _Answer(work(*arguments, **named))
    except CodegenError as error:
        return _Answer(rejected=str(error))
    except Exception as error:  # whoever asked does it again, where the same error has its position and its class
        return _Answer(failed=f"{type(error).__name__}: {error}")
