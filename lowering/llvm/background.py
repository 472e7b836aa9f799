"""Compilation in parallel: by LLVM on a background thread, while the next kernels are lowered, and in a worker process,
since Python and llvmlite run one thread at a time.

Environment: `RELAX_PROCESS=0` keeps builds from starting a worker process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar, cast

from lowering.debug import Debug, debug_level, is_on
from lowering.llvm.binding import CodegenError, llvm
from lowering.llvm.compiler import CompileOptions, compile_object
from tir_dialect.target import Target

P = ParamSpec("P")
T = TypeVar("T")

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from lowering.llvm.background import serve; serve()"


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
        """Ends the process; no call may be under way. Nobody waits until the system has freed its memory."""
        if self._process is not None:
            self._process.kill()
            Thread(target=self._process.communicate, name="relax-codegen-end", daemon=True).start()

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
    from vm_dialect.process import without_torch

    with few_collections():
        while True:
            try:
                with importing(), without_torch():
                    request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(_answer(*request), sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _answer(work: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> _Answer:
    try:
        return _Answer(work(*arguments, **named))
    except CodegenError as error:
        return _Answer(rejected=str(error))
    except Exception as error:  # whoever asked does it again, where the same error has its position and its class
        return _Answer(failed=f"{type(error).__name__}: {error}")


Compile: TypeAlias = "Callable[[str, Target, CompileOptions], bytes]"
"""`compile_object`, here or elsewhere."""

SWITCH_SECONDS = 5e-5
"""How long the interpreter stays with one thread. LLVM is called in some seventy steps for a kernel, each of which
waits this long to come back; by default a hundred times as long."""

START_TEXT = 160_000
"""LLVM takes as long for so many characters of text as another process until it is there."""
LEAST_GAIN = START_TEXT // 2
"""A process that would save less is not worth what its start takes from this one."""


@dataclass(frozen=True)
class _Job:
    work: Callable[[Compile], Any]
    future: Future[Any]

    size: int
    """Characters of text for LLVM; 0 if the work is for this process alone."""

    def run(self, compile: Compile) -> None:
        """Whoever waits gets every error, an interruption too, which also ends the caller."""
        try:
            self.future.set_result(self.work(compile))
        except BaseException as error:
            self.future.set_exception(error)
            if not isinstance(error, Exception):
                raise


class Background:
    """A queue of jobs that release the interpreter's lock, for the duration of a `with` statement.

    llvmlite admits one thread at a time, so there is one. If the queue is long, a second thread sends LLVM IR to
    another process.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Job] = deque()
        self._at_hand = 0
        """Characters of text that the thread has LLVM work on."""
        self._lock = Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._second: ThreadPoolExecutor | None = None
        self._process = CompilerProcess()
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the work; after an error, what has not begun is left undone."""
        while kind is not None and (job := self._next()) is not None:
            job.future.cancel()
        if kind is not None:
            self._process.stop()
        for thread in (self._thread, self._second):
            if thread is not None:
                thread.shutdown()
        self._process.close()
        sys.setswitchinterval(self._interval)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """The result of `work`, or the error that it raises, when it is there.

        What shows its work in order (`RELAX_DEBUG`), or has no second processor, is done at once.
        """
        return self.submit_code(lambda _: work(), 0)

    def submit_code(self, work: Callable[[Compile], T], size: int) -> Future[T]:
        """As `submit`, for work that has so many characters of text to compile, by what it is given for that."""
        future: Future[T] = Future()
        job = _Job(work, future, size)
        if self._thread is None and _processors() > 1 and debug_level() == Debug.NOTHING:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="relax-codegen")
            sys.setswitchinterval(min(SWITCH_SECONDS, self._interval))
        if self._thread is None:
            job.run(compile_object)
        else:
            with self._lock:
                self._waiting.append(job)
            self._thread.submit(self._run, compile_object)
            self._share(size)
        return future

    def beside(self, work: Callable[[CompilerProcess], T]) -> Future[T] | None:
        """What `work` gives on the second thread, where it may ask the process; texts go there afterwards.

        None, and nothing is done, where all work is to be done in order, there is no second processor, or no process
        is wanted.
        """
        if _processors() < 2 or debug_level() != Debug.NOTHING or not _may_start():
            return None
        if self._second is None:
            self._second = ThreadPoolExecutor(1, thread_name_prefix="relax-codegen-process")
        return self._second.submit(work, self._process)

    def _share(self, size: int) -> None:
        """Lets the second thread take one more of the texts, or all that are waiting if it is new."""
        if self._second is not None:
            if size:
                self._second.submit(self._run, self._process.compile, text=True)
            return
        with self._lock:
            sizes = [job.size for job in self._waiting if job.size]
            gain = gain_of_process(self._at_hand, sizes)
        if gain >= LEAST_GAIN and _may_start():
            self._second = ThreadPoolExecutor(1, thread_name_prefix="relax-codegen-process")
            self._second.submit(self._process.start)
            for _ in sizes:
                self._second.submit(self._run, self._process.compile, text=True)

    def _run(self, compile: Compile, text: bool = False) -> None:
        job = self._next(text)
        if job is not None:
            job.run(compile)
        if not text:
            self._at_hand = 0

    def _next(self, text: bool = False) -> _Job | None:
        """The job that has waited for longest, or for longest of those with text, which is now begun."""
        with self._lock:
            job = next((each for each in self._waiting if each.size or not text), None)
            if job is not None:
                self._waiting.remove(job)
            if not text:
                self._at_hand = 0 if job is None else job.size
            return job


def gain_of_process(at_hand: int, waiting: Sequence[int]) -> int:
    """How much sooner all texts would be compiled if another process were started to take some of those that wait.

    Texts, the gain and the start are measured in characters. Whoever is done first takes the next text, in order.
    """
    here, there = at_hand, START_TEXT
    for size in waiting:
        if here <= there:
            here += size
        else:
            there += size
    return at_hand + sum(waiting) - max(here, there)


def _may_start() -> bool:
    return is_on("RELAX_PROCESS")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
