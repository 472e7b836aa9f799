"""The content-addressed cache of compiled code on disk, and LLVM IR to machine code through it.

An entry is a file named by its key, a SHA-256 of everything that the code depends on. Entries are written under a
temporary name and renamed, so that readers see complete entries only, even with concurrent processes and after crashes.
Each carries this user's seal of its key and contents (`vm_dialect/files.py`); one that does not match, which
somebody else has made or damaged, is dropped and compiled again. So is what is no regular file, belongs to another user
or may be written by others. When the directory exceeds its size limit, the least recently used entries are removed, and
first those of a future that a clock has shown that was set back since.

Environment: `RELAX_CACHE=0` switches the cache off, `RELAX_CACHE_DIR` moves it (default: `$XDG_CACHE_HOME/xdsl-relax`,
else `~/.cache/xdsl-relax`), `RELAX_CACHE_BYTES` bounds it (default 1 GiB).
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lowering.debug import Debug, debug_level, is_on
from lowering.llvm.binding import library_version
from lowering.llvm.compiler import CompileOptions, compile_object
from tir_dialect.target import Target
from vm_dialect.files import SEAL_BYTES, fits, open_regular, read_limited, seal

_MAGIC = b"relax-cache-3\n"
_HEADER_BYTES = len(_MAGIC) + SEAL_BYTES
DEFAULT_MAX_BYTES = 1 << 30
_STALE_SECONDS = 3600.0
_TOUCH_SECONDS = 3600.0
_FUTURE_SECONDS = 60.0
"""By so much the clocks of machines that share a directory may differ."""


def cache_key(parts: Iterable[str | bytes]) -> str:
    """A key from parts in order; no two different sequences give one key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


class _LateWrites:
    """Entries that are written by a thread, by path."""

    def __init__(self) -> None:
        self._process = 0
        """What has the thread: a fork has none, and what it finds is what there is."""
        self._thread: ThreadPoolExecutor | None = None
        self._pending: dict[Path, Future[None]] = {}

    def start(self, path: Path, work: Callable[[], None]) -> None:
        """Lets the thread do the work after that before."""
        if self._thread is None or self._process != os.getpid():
            self._process, self._pending = os.getpid(), {}
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="relax-cache")
        self._pending = {each: future for each, future in self._pending.items() if not future.done()}
        self._pending[path] = self._thread.submit(work)

    def wait(self, path: Path | None = None) -> None:
        """Returns when an entry, or all, are written."""
        if self._process == os.getpid():
            for future in [*self._pending.values()] if path is None else [self._pending.get(path)]:
                if future is not None:
                    future.exception()


_LATE = _LateWrites()


@dataclass
class CodeCache:
    """A directory of entries; any number of processes may use it at once."""

    directory: Path | None
    """Where the entries are; None for a cache that keeps nothing."""

    max_bytes: int = DEFAULT_MAX_BYTES
    """Size to which the directory is cut back."""

    _known_bytes: int | None = field(default=None, init=False, repr=False)

    def get(self, key: str) -> bytes | None:
        """The contents stored for `key`; None if there are none, or if they are damaged."""
        if self.directory is None:
            return None
        path = self._path(self.directory, key)
        try:
            with open_regular(path, follow=False, private=True) as file:
                data = read_limited(file, self.max_bytes)
        except OSError:
            return None
        header, contents = data[:_HEADER_BYTES], data[_HEADER_BYTES:]
        if header[: len(_MAGIC)] != _MAGIC or not fits(header[len(_MAGIC) :], _purpose(key), [[contents]]):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        _touch(path)
        return contents

    def put(self, key: str, contents: bytes) -> None:
        """Stores `contents`; a directory that cannot be written keeps nothing, which costs time only, and a warning."""
        if self.directory is None:
            return
        path = self._path(self.directory, key)
        with self._can_fail():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = (_MAGIC + seal(_purpose(key), [[contents]])) + contents
            descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                os.replace(name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
            self._make_room(self.directory, len(contents) + _HEADER_BYTES)

    def find(self, key: str) -> Path | None:
        """The file of an entry that `add` made, which its reader checks; None if there is none."""
        if self.directory is None:
            return None
        path = self._path(self.directory, key)
        _LATE.wait(path)
        if not path.is_file():
            return None
        _touch(path)
        return path

    def add(self, key: str, save: Callable[[Path], None], *, later: bool = False) -> None:
        """Lets `save` write the file of an entry, in one step and with checks of its own, for `find`.

        With `later` a thread does it, for which `find`, and the end of the process, wait.
        """
        if self.directory is None:
            return
        directory, path = self.directory, self._path(self.directory, key)

        def work() -> None:
            with self._can_fail():
                save(path)
                self._make_room(directory, _stat(path)[1])

        def work_later() -> None:
            try:
                work()
            except Exception:  # nobody looks at what the thread raises
                traceback.print_exc()

        with self._can_fail():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if later:
                _LATE.start(path, work_later)
            else:
                work()

    def drop(self, key: str) -> None:
        """Removes an entry."""
        if self.directory is not None:
            _LATE.wait(self._path(self.directory, key))
            with contextlib.suppress(OSError):
                self._path(self.directory, key).unlink()

    def clear(self) -> None:
        """Removes every entry."""
        _LATE.wait()
        if self.directory is not None:
            for path in _files(self.directory):
                with contextlib.suppress(OSError):
                    path.unlink()
        self._known_bytes = None

    def size(self) -> int:
        """Bytes that the entries take now, without those that are still being written."""
        return sum(_stat(path)[1] for path in _files(self.directory)) if self.directory is not None else 0

    @contextlib.contextmanager
    def _can_fail(self) -> Generator[None]:
        """Turns an error of the file system into a warning, which Python shows once."""
        try:
            yield
        except OSError as error:
            advice = "set RELAX_CACHE_DIR to a directory that can be, or RELAX_CACHE=0"
            reason = error.strerror or error
            warnings.warn(f"the cache {self.directory} cannot be written ({reason}); {advice}", stacklevel=1)

    @staticmethod
    def _path(directory: Path, key: str) -> Path:
        return directory / key[:2] / key

    def _make_room(self, directory: Path, added: int) -> None:
        """The size is counted once and then tracked, so that a write costs no walk over the directory."""
        self._known_bytes = self.size() if self._known_bytes is None else self._known_bytes + added
        if self._known_bytes <= self.max_bytes:
            return
        entries = sorted((_age(used), size, path) for path in _files(directory) for used, size in (_stat(path),))
        total = sum(size for _, size, _ in entries)
        goal = self.max_bytes * 3 // 4
        for age, size, path in reversed(entries):
            stale = path.name.startswith(".") and age > _STALE_SECONDS
            if stale or (total > goal and not path.name.startswith(".")):
                with contextlib.suppress(OSError):
                    path.unlink()
                    total -= size
        self._known_bytes = total


def default_cache() -> CodeCache:
    """The cache of this user, as the environment says.

    Raises `ValueError` if `RELAX_CACHE_BYTES` is no number, or `RELAX_CACHE` neither 0 nor 1.
    """
    if not is_on("RELAX_CACHE"):
        return NO_CACHE
    limit = os.environ.get("RELAX_CACHE_BYTES", str(DEFAULT_MAX_BYTES))
    if not limit.isdecimal():
        raise ValueError(f'RELAX_CACHE_BYTES expects a number of bytes, got "{limit}"')
    max_bytes = int(limit)
    if directory := os.environ.get("RELAX_CACHE_DIR"):
        return CodeCache(Path(directory), max_bytes)
    if (directory := Path(os.environ.get("XDG_CACHE_HOME", ""))).is_absolute():  # others are invalid, by its standard
        return CodeCache(directory / "xdsl-relax", max_bytes)
    try:
        return CodeCache(Path.home() / ".cache" / "xdsl-relax", max_bytes)
    except RuntimeError:
        return NO_CACHE


NO_CACHE = CodeCache(None)
"""Keeps nothing: what `--no-cache` means."""


def _purpose(key: str) -> str:
    """What the seal of an entry is for: none stands for another, in whatever position somebody puts it."""
    return f"code {key}"


def _touch(path: Path) -> None:
    """Marks an entry as used; at most once an hour, since it is a write."""
    with contextlib.suppress(OSError):
        if _age(path.stat().st_mtime) > _TOUCH_SECONDS:
            os.utime(path)


def _age(used: float) -> float:
    """Seconds since a time; infinite where it is yet to come."""
    age = time.time() - used
    return age if age > -_FUTURE_SECONDS else math.inf


def _files(directory: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for shard in list(directory.iterdir()):
            with contextlib.suppress(OSError):
                yield from list(shard.iterdir())


def _stat(path: Path) -> tuple[float, int]:
    try:
        status = path.stat()
    except OSError:
        return 0.0, 0
    return status.st_mtime, status.st_size


def compile_cached(
    kind: str,
    text: str,
    target: Target,
    options: CompileOptions,
    cache: CodeCache | None = None,
    compile_text: Callable[[str, Target, CompileOptions], bytes] | None = None,
) -> bytes:
    """The object of a text, from the cache if it is there, else by `compile_text` (`compile_object`).

    `kind` names what is compiled in its key. `CodegenError` if LLVM rejects the text.
    """
    known = cache or default_cache()
    key = cache_key([kind, library_version(), target.code_key(), options.key(), text])
    data = None if debug_level() >= Debug.LLVM else known.get(key)
    if data is None:
        data = (compile_text or compile_object)(text, target, options)
        known.put(key, data)
    return data
