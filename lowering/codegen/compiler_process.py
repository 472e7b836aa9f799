"""LLVM in a process of its own: llvmlite lets one thread at a time into the library."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lowering.codegen.compiler import CompileOptions, compile_object
from lowering.codegen.errors import CodegenError
from tir_dialect.target import Target

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from lowering.codegen.compiler_process import serve; serve()"


@dataclass(frozen=True)
class _Answer:
    data: bytes = b""
    message: str | None = None
    """What LLVM says of text that it rejects."""


class CompilerProcess:
    """Another Python with nothing but the code generator in it, started when it is asked for the first time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_lost = False

    def compile(self, text: str, target: Target, options: CompileOptions) -> bytes:
        """As `compile_object`, for one thread at a time; done here where no process can be had, or it has ended."""
        if not self._is_lost:
            try:
                return self._ask(text, target, options)
            except (OSError, ValueError, EOFError, pickle.UnpicklingError):
                self._is_lost = True
        return compile_object(text, target, options)

    def close(self) -> None:
        """Ends the process; no call may be under way."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _ask(self, text: str, target: Target, options: CompileOptions) -> bytes:
        if self._process is None:
            self._process = _started()
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        pickle.dump((text, target, options), requests)
        requests.flush()
        answer = cast("_Answer", pickle.load(answers))
        if answer.message is not None:
            raise CodegenError(answer.message)
        return answer.data


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


def serve() -> None:
    """What the process does: it compiles what it reads, and writes an object file or LLVM's message, until the end."""
    while True:
        try:
            text, target, options = cast("tuple[str, Target, CompileOptions]", pickle.load(sys.stdin.buffer))
        except EOFError:
            return
        try:
            answer = _Answer(compile_object(text, target, options))
        except CodegenError as error:
            answer = _Answer(message=str(error))
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
