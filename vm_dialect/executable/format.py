"""The file of an executable: header, table of sections, sections. `docs/reference/executable-format.md` describes it.

Everything is checked when a file is read: sizes and checksums first, then every length, index, register and jump.
Nothing in a file is ever evaluated.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np

from vm_dialect.executable.byte_io import Reader
from vm_dialect.executable.executable import Executable
from vm_dialect.executable.sections import DATA, SECTIONS, encode_sections, read_sections
from vm_dialect.tensors import ALIGNMENT, Array, aligned_bytes

MAGIC = b"\x89RVM\r\n\x1a\n"
"""Not text, and changed by any transfer that changes line ends."""
VERSION = 1
"""Changes with every change of the layout; a file of another version is refused."""

_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<4sIQQ")
_CHECKSUM = struct.Struct("<I")


def to_bytes(executable: Executable) -> bytes:
    """The contents of the file."""
    stream = BytesIO()
    _write(executable, stream)
    return stream.getvalue()


def write_file(executable: Executable, path: str | PathLike[str]) -> None:
    """Writes the file in one step: nobody sees half of it, whatever happens meanwhile."""
    target = Path(path)
    # Not mkstemp, whose files are private: an executable has the permissions of any other new file. What these are
    # cannot be asked without setting the umask of all threads.
    temporary = target.parent / f".{target.name[:50]}.{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as stream:
            _write(executable, stream)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:  # of the file that was asked for
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def from_bytes(data: bytes | bytearray | memoryview) -> Executable:
    """The executable in `data`, which is copied."""
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    return _read(memory)


def read_file(path: str | PathLike[str]) -> Executable:
    """The executable in the file `path`; constants stay where the file was read to."""
    with open(path, "rb") as stream:
        memory = aligned_bytes(os.fstat(stream.fileno()).st_size)
        if stream.readinto(memory.data) != memory.size:
            raise ValueError(f"{os.fspath(path)}: the file has changed while it was read")
    try:
        return _read(memory)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def _write(executable: Executable, stream: BinaryIO) -> None:
    sections = encode_sections(executable)
    start = _aligned(_HEADER.size + _ENTRY.size * len(sections) + _CHECKSUM.size)
    table = bytearray()
    end = start
    for tag, parts in sections:
        size = sum(len(part) for part in parts)
        table += _ENTRY.pack(tag, _checksum(parts), end, size)
        end = _aligned(end + size)
    header = _HEADER.pack(MAGIC, VERSION, len(sections), end) + table
    stream.write(_padded(header + _CHECKSUM.pack(zlib.crc32(header))))
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


def _read(memory: Array) -> Executable:
    places = _read_table(memory.data)
    readers = {
        tag: Reader(memory.data[start : start + size], start, tag)
        for tag, (start, size) in places.items()
        if tag != DATA
    }
    start, size = places[DATA]
    return read_sections(readers, memory[start : start + size])


def _read_table(data: memoryview) -> dict[str, tuple[int, int]]:
    """Start and size of every section, each within the file and with the right checksum."""
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
    if count != len(SECTIONS) or end + _CHECKSUM.size > len(data):
        raise ValueError(f"byte 12: expected {len(SECTIONS)} sections, got {count}")
    if zlib.crc32(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
        raise ValueError(f"byte {end}: wrong checksum of the header")
    places: dict[str, tuple[int, int]] = {}
    end += _CHECKSUM.size
    for index, tag in enumerate(SECTIONS):
        start = _skip_padding(data, end)
        size = _read_entry(data, tag, _ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size), start)
        places[tag] = (start, size)
        end = start + size
    if _skip_padding(data, end) != len(data):
        raise ValueError(f"byte {end}: {len(data) - end} bytes follow the last section")
    return places


def _skip_padding(data: memoryview, position: int) -> int:
    """Where the next section begins; what is before it must be zero."""
    start = _aligned(position)
    if any(data[position:start]):
        raise ValueError(f"byte {position}: expected zeros before byte {start}")
    return start


def _read_entry(data: memoryview, expected: str, entry: tuple[bytes, int, int, int], place: int) -> int:
    """The size of a section, which is at `place`, within the file, and has the right checksum."""
    tag, checksum, start, size = entry
    if tag != expected.encode():
        raise ValueError(f"section {expected}: expected at this place of the table, got {tag!r}")
    if start != place or start > len(data) or size > len(data) - start:
        raise ValueError(f"section {expected}: bytes {start} to {start + size} are not at {place} within the file")
    if zlib.crc32(data[start : start + size]) != checksum:
        raise ValueError(f"section {expected}, byte {start}: wrong checksum")
    return size
