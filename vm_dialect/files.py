"""Opening of files that somebody else may have put there: no pipe to wait for, no device without an end."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from os import PathLike


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
