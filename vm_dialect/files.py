"""Files that somebody else may have put there or altered: opened as regular files, and sealed by this user.

Nothing is opened that is a pipe to wait for, or a device without an end. A seal says that this user wrote a file: an
HMAC-SHA256 of the contents under a key that only this user can read. Whoever alters a file, or makes one elsewhere,
cannot give it a seal that fits. `SECURITY.md` says what follows from that.

The key is 32 random bytes in a file of mode 0600, made when it is needed first: `$RELAX_KEY_FILE`, else
`$XDG_DATA_HOME/xdsl-relax/key` (`~/.local/share/xdsl-relax/key`); where that cannot be written, a folder of this user
below the system's folder for temporary files.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import mmap
import os
import secrets
import stat
import tempfile
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from os import PathLike
from pathlib import Path


def open_regular(path: str | PathLike[str], *, follow: bool = True, private: bool = False) -> BufferedReader:
    """The regular file at `path`, for reading.

    `OSError` names the path for anything else (a folder, a pipe, a device), for a symbolic link unless `follow`, and,
    if it is to be `private`, for a file of another user and for one that others may write.
    """
    # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        status = _require_regular(descriptor, path)
        if private and status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, f"the file is of another user (uid {status.st_uid})", os.fspath(path))
        if private and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(errno.EPERM, "the file may be written by other users", os.fspath(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_limited(file: BufferedReader, most: int) -> bytes:
    """What a regular file holds from here on: at most `most` bytes, and one more if there are more.

    No more memory is taken than the file is long, as `file.read(most + 1)` would take.
    """
    return file.read(min(os.fstat(file.fileno()).st_size, most) + 1)


@dataclass(frozen=True, eq=False)
class MappedFile:
    """A file that is mapped into memory, which other processes share. What is written there is not in the file."""

    memory: mmap.mmap
    identity: str
    """Another one after the file was written to or replaced: device, number, size, and when it was changed last."""

    @staticmethod
    def open(path: str | PathLike[str]) -> MappedFile:
        """Maps a file; `OSError` as of `open_regular`, `ValueError` for an empty file."""
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        # Whoever writes can set the time of modification back, but not that of the change.
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        return MappedFile(memory, f"{status.st_dev} {status.st_ino} {status.st_size} {times}")


@contextmanager
def locked(path: str | PathLike[str]) -> Generator[None]:
    """Holds the lock of the file at `path`, which is made if there is none, and waits for whoever has it.

    `OSError` names the path for anything but a regular file; a symbolic link is not followed.
    """
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        _require_regular(descriptor, path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_regular(descriptor: int, path: str | PathLike[str]) -> os.stat_result:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"expected a regular file, got {kind_of_file(status.st_mode)}", os.fspath(path))
    return status


def kind_of_file(mode: int) -> str:
    """What a file is, for messages."""
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


SEAL_BYTES = 32
_KEY_BYTES = 32
_PIECE_BYTES = 1 << 23
_MOST_THREADS = 4

NO_SEAL = bytes(SEAL_BYTES)
"""Stands in files that nobody vouches for."""


def seal(purpose: str, contents: Sequence[Sequence[bytes | memoryview]]) -> bytes:
    """The seal of contents: several parts, each in pieces, of which it does not matter where they are divided.

    A seal for one purpose does not fit for another.
    """
    code = hmac.new(user_key(), digestmod=hashlib.sha256)
    for part in (b"xdsl-relax seal 1", purpose.encode()):
        code.update(b"%d:" % len(part))
        code.update(part)
    for pieces in map(list, map(_pieces, contents)):
        size = sum(len(part) for piece in pieces for part in piece)
        code.update(b"%d:" % size)
        for digest in _digests(pieces):
            code.update(digest)
    return code.digest()


def fits(given: bytes, purpose: str, contents: Sequence[Sequence[bytes | memoryview]]) -> bool:
    """Whether this user has made the seal."""
    return given != NO_SEAL and hmac.compare_digest(given, seal(purpose, contents))


def _digests(pieces: Sequence[Sequence[memoryview]]) -> Iterable[bytes]:
    """The digest of each piece, on several threads where that is profitable."""
    if len(pieces) < 2:
        return map(_digest, pieces)
    try:
        with ThreadPoolExecutor(min(_MOST_THREADS, len(pieces))) as threads:
            return list(threads.map(_digest, pieces))
    except RuntimeError:  # no thread starts while the interpreter shuts down, when caches still write executables
        return map(_digest, pieces)


def _digest(parts: Sequence[memoryview]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _pieces(parts: Iterable[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """The parts one after the other, divided anew into pieces of one size, each in several parts; the last is less."""
    piece: list[memoryview] = []
    left = _PIECE_BYTES
    for part in map(memoryview, parts):
        rest = part
        while len(rest) >= left:
            yield [*piece, rest[:left]]
            rest, piece, left = rest[left:], [], _PIECE_BYTES
        if len(rest):
            piece.append(rest)
            left -= len(rest)
    if piece:
        yield piece


def key_files() -> list[Path]:
    """Where the key may be: the first that can be read or made is used."""
    if chosen := os.environ.get("RELAX_KEY_FILE"):
        return [Path(chosen)]
    temporary = Path(tempfile.gettempdir(), f"xdsl-relax-{os.geteuid()}", "key")
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    with suppress(RuntimeError):
        return [(data if data.is_absolute() else Path.home() / ".local/share") / "xdsl-relax/key", temporary]
    return [temporary]


def user_key() -> bytes:
    """The key of this user, which is made if there is none.

    Where none can be kept, one of this process only, with a warning that says why.
    """
    return _key_in(tuple(key_files()))


@cache
def _key_in(paths: tuple[Path, ...]) -> bytes:
    reasons: list[str] = []
    for path in paths:
        try:
            return _read_or_make(path)
        except OSError as error:
            reasons.append(f"{path}: {error.strerror or error}")
    warnings.warn(
        f"no key can be kept ({'; '.join(reasons)}): other processes accept files with native code that this one "
        "writes only with trust=True; set RELAX_KEY_FILE to a file that only you can read",
        stacklevel=2,
    )
    return secrets.token_bytes(_KEY_BYTES)


def _read_or_make(path: Path) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.parent.stat()
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(errno.EPERM, "others may write its folder", str(path))
    temporary = path.with_name(f".key.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):  # another process was faster, and its key is the one
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
    return _read(path)


def _read(path: Path) -> bytes:
    with open_regular(path, follow=False, private=True) as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OSError(errno.EPERM, "others may read the key: remove it, or chmod 600", str(path))
        key = file.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise OSError(errno.EINVAL, f"expected a key of {_KEY_BYTES} bytes", str(path))
    return key
