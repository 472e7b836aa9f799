"""The file of an executable: header, table of sections, sections. `docs/reference/executable-format.md` describes it.

Everything is checked when a file is read: sizes and checksums first, then every length, index, register and jump.
Nothing in a file is ever evaluated. Machine code cannot be checked, so a file that has some is refused unless somebody
vouches for it: this user's seal, a digest that the caller knows, or the caller's word (`SECURITY.md`).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from vm_dialect.errors import UntrustedError
from vm_dialect.executable.byte_io import Reader
from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.seal import NO_SEAL, SEAL_BYTES, fits, seal
from vm_dialect.executable.sections import DATA, SECTIONS, encode_sections, read_sections
from vm_dialect.files import open_regular
from vm_dialect.tensors import ALIGNMENT, Array, aligned_bytes

MAGIC = b"\x89RVM\r\n\x1a\n"
"""Not text, and changed by any transfer that changes line ends."""
VERSION = 2
"""Changes with every change of the layout; a file of another version is refused."""

_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<4sIQQ")
_CHECKSUM = struct.Struct("<I")

E = TypeVar("E", bound=ExecutableContents)

Section = tuple[bytes, Sequence[bytes | memoryview]]


@dataclass(frozen=True)
class Trust:
    """Why a file with machine code may be accepted."""

    always: bool = False
    """The caller says so."""
    sha256: str | None = None
    """The caller knows the SHA-256 of the whole file, in hexadecimal digits; a file with another one is refused."""
    purpose: str = "executable"
    """What a seal of this user is for: a cache has a purpose for each entry, so that none stands for another."""


def to_bytes(executable: ExecutableContents) -> bytes:
    """The contents of the file."""
    stream = BytesIO()
    _write(executable, stream)
    return stream.getvalue()


def write_file(
    executable: ExecutableContents, path: str | PathLike[str], purpose: str = Trust.purpose, *, private: bool = False
) -> None:
    """Writes the file in one step: nobody sees half of it, whatever happens meanwhile. A `private` one is for this user
    only.
    """
    target = Path(path)
    # Not mkstemp, whose files are private: an executable has the permissions of any other new file. What these are
    # cannot be asked without setting the umask of all threads.
    temporary = target.parent / f".{target.name[:50]}.{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600 if private else 0o666), "wb") as stream:
            _write(executable, stream, purpose)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:  # of the file that was asked for
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def from_bytes(make: type[E], data: bytes | bytearray | memoryview, trust: Trust = Trust()) -> E:
    """The executable in `data`, which is copied; of the class `make`."""
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    return _read(make, memory, trust, "Executable.from_bytes(data, trust=True)")


def read_file(make: type[E], path: str | PathLike[str], trust: Trust = Trust(), *, private: bool = False) -> E:
    """The executable in the file `path`, of the class `make`; constants stay where the file was read to.

    A `private` file is a regular one of this user that nobody else may write; `OSError` for others.
    """
    with open_regular(path, follow=not private, private=private) as stream:
        memory = aligned_bytes(os.fstat(stream.fileno()).st_size)
        if stream.readinto(memory.data) != memory.size:
            raise ValueError(f"{os.fspath(path)}: the file has changed while it was read")
    try:
        return _read(make, memory, trust, f"Executable.load({os.fspath(path)!r}, trust=True)")
    except UntrustedError as error:
        raise UntrustedError(f"{os.fspath(path)}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def _write(executable: ExecutableContents, stream: BinaryIO, purpose: str = Trust.purpose) -> None:
    sections = encode_sections(executable)
    start = _aligned(_HEADER.size + _ENTRY.size * len(sections) + _CHECKSUM.size + SEAL_BYTES)
    table = bytearray()
    end = start
    for tag, parts in sections:
        size = sum(len(part) for part in parts)
        table += _ENTRY.pack(tag, _checksum(parts), end, size)
        end = _aligned(end + size)
    header = _HEADER.pack(MAGIC, VERSION, len(sections), end) + table
    # What came from elsewhere does not become this user's own by being copied.
    mark = NO_SEAL if executable.is_foreign else seal(purpose, [[header], *(parts for _, parts in sections)])
    stream.write(_padded(header + _CHECKSUM.pack(zlib.crc32(header)) + mark))
    for _, parts in sections:
        size = 0
        for part in parts:
            size += stream.write(part)
        stream.write(bytes(_aligned(size) - size))


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


def _padded(data: bytes) -> bytes:
    return data.ljust(_aligned(len(data)), b"\0")


def _checksum(parts: Sequence[bytes | memoryview]) -> int:
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value


def _read(make: type[E], memory: Array, trust: Trust, remedy: str) -> E:
    table = _read_table(memory.data)
    positions = {tag: (start, size) for tag, (start, size, _) in table.items()}
    contents = {tag: memory.data[start : start + size] for tag, (start, size) in positions.items()}
    header = _HEADER.size + len(SECTIONS) * _ENTRY.size
    mark = bytes(memory.data[header + _CHECKSUM.size :][:SEAL_BYTES])
    sealed = fits(mark, trust.purpose, [[memory.data[:header]], *([part] for part in contents.values())])
    if not sealed:  # a seal that fits vouches for every byte, and takes as long
        for tag, (start, _, checksum) in table.items():
            if zlib.crc32(contents[tag]) != checksum:
                raise ValueError(f"section {tag}, byte {start}: wrong checksum")
    trusted = trust.always or sealed or _has_digest(memory, trust.sha256)
    readers = {tag: Reader(contents[tag], positions[tag][0], tag) for tag in SECTIONS if tag != DATA}
    start, size = positions[DATA]
    executable = read_sections(make, readers, memory[start : start + size], is_foreign=not trusted)
    if executable.native and not trusted:
        raise UntrustedError(
            "the file holds machine code, and was not written by this user with this package, or was altered since: "
            f"if you trust whoever made it, say so ({remedy}; relax-run --trust), or give its digest (sha256=...)"
        )
    return executable


def _has_digest(memory: Array, expected: str | None) -> bool:
    """Whether the file is the one that the caller knows; `UntrustedError` if it is another one."""
    if expected is None:
        return False
    found = hashlib.sha256(memory.data).hexdigest()
    if found != expected.lower():
        raise UntrustedError(f"expected a file with the SHA-256 {expected.lower()}, got {found}")
    return True


def _read_table(data: memoryview) -> dict[str, tuple[int, int, int]]:
    """Start, size and checksum of every section, each within the file."""
    if len(data) < _HEADER.size:
        raise ValueError(f"byte 0: expected a header of {_HEADER.size} bytes, the file has {len(data)}")
    magic, version, count, size = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("byte 0: this is not an executable of the Relax virtual machine")
    if version != VERSION:
        raise ValueError(f"byte 8: format version {version}, this package reads version {VERSION}")
    if size != len(data):
        raise ValueError(f"byte 16: the file has {len(data)} bytes, its header says {size}")
    end = _HEADER.size + count * _ENTRY.size
    if count != len(SECTIONS) or end + _CHECKSUM.size + SEAL_BYTES > len(data):
        raise ValueError(f"byte 12: expected {len(SECTIONS)} sections, got {count}")
    if zlib.crc32(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
        raise ValueError(f"byte {end}: wrong checksum of the header")
    indices: dict[str, tuple[int, int, int]] = {}
    end += _CHECKSUM.size + SEAL_BYTES
    for index, tag in enumerate(SECTIONS):
        start = _skip_padding(data, end)
        entry = _ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size)
        size = _read_entry(data, tag, entry, start)
        indices[tag] = (start, size, entry[1])
        end = start + size
    if _skip_padding(data, end) != len(data):
        raise ValueError(f"byte {end}: {len(data) - end} bytes follow the last section")
    return indices


def _skip_padding(data: memoryview, position: int) -> int:
    """Where the next section begins; what is before it must be zero."""
    start = _aligned(position)
    if any(data[position:start]):
        raise ValueError(f"byte {position}: expected zeros before byte {start}")
    return start


def _read_entry(data: memoryview, expected: str, entry: tuple[bytes, int, int, int], index: int) -> int:
    """The size of a section, which is at `position` and within the file."""
    tag, _, start, size = entry
    if tag != expected.encode():
        raise ValueError(f"section {expected}: expected at this place of the table, got {tag!r}")
    if start != index or start > len(data) or size > len(data) - start:
        raise ValueError(f"section {expected}: bytes {start} to {start + size} are not at {index} within the file")
    return size
