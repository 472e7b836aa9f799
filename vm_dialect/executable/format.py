"""The file of an executable: header, table of sections, sections. `docs/reference/executable-format.md` describes it.

Everything is checked when a file is read: sizes and checksums first, then every length, index, register and jump.
Nothing in a file is ever evaluated. Machine code cannot be checked, so a file that has some is refused unless somebody
vouches for it: this user's seal, a digest that the caller knows, or the caller's word (`SECURITY.md`).
Each section is written and read here, so that both directions are seen together.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import BY_DLPACK, ElementType, element_type
from vm_dialect.errors import UntrustedError
from vm_dialect.executable.byte_io import (
    BLOB,
    F64,
    FLAG,
    I64,
    STRING,
    U8,
    U32,
    U64,
    Codec,
    Reader,
    Writer,
    list_of,
    record,
    table,
)
from vm_dialect.executable.contents import ExecutableContents
from vm_dialect.executable.model import (
    Constant,
    ConstantKind,
    FunctionInfo,
    FunctionKind,
    Instruction,
    KernelParameter,
    KernelSignature,
    Metadata,
    NativeObject,
    SignatureTypes,
    decode,
    encode,
)
from vm_dialect.files import NO_SEAL, SEAL_BYTES, fits, open_regular, seal
from vm_dialect.host_memory import ALIGNMENT, aligned_bytes
from vm_dialect.tensors import Array, tensor_element, tensor_on, to_numpy

DATA = "DATA"
SECTIONS = ("META", "FUNC", "CODE", "LOCS", "NATV", "CONS", DATA)
"""Tags of all sections, in the order of the file. `DATA` holds the elements of tensors."""

E = TypeVar("E", bound=ExecutableContents)

Part: TypeAlias = "bytes | memoryview"

_MAX_RANK = 64

_STRINGS = list_of(STRING)


def _write_dtype(writer: Writer, element: ElementType) -> None:
    writer.u8(element.code)
    writer.u8(element.bits)


def _read_dtype(reader: Reader) -> ElementType:
    code, bits = reader.u8(), reader.u8()
    element = BY_DLPACK.get((code, bits))
    if element is None:
        reader.fail(f"unknown element type of code {code} and {bits} bits")
    return element


_DTYPE = Codec(_write_dtype, _read_dtype)

_METADATA = record(
    Metadata,
    mode=STRING,
    target=STRING,
    kernels=list_of(
        record(
            KernelSignature,
            name=STRING,
            sizes=U32,
            parameters=list_of(
                record(
                    KernelParameter,
                    dtype=_DTYPE.of(lambda element: element.name, element_type),
                    rank=I64.checked(lambda rank: -1 <= rank <= _MAX_RANK, "rank {} of a kernel's parameter"),
                )
            ),
        )
    ),
    notes=table(STRING, STRING),
)

_FUNCTIONS = list_of(
    record(
        FunctionInfo,
        kind=U8.checked(lambda kind: kind <= FunctionKind.NATIVE, "unknown kind of function {}").of(FunctionKind, int),
        name=STRING,
        parameters=_STRINGS,
        public=FLAG,
        start=U64,
        end=U64,
        frame_size=U64,
        result_names=_STRINGS,
        types=record(SignatureTypes, parameters=_STRINGS, result=STRING),
    )
)

_LOCATIONS = table(U32, STRING)
"""The position in the source of each instruction that has one."""

_NATIVE = list_of(record(NativeObject, target=STRING, format=STRING, symbols=_STRINGS, code=BLOB))

_PLAIN: Mapping[ConstantKind, Codec[Any]] = {
    ConstantKind.SHAPE: list_of(I64).of(tvm_ffi.Shape, tuple[int, ...]),
    ConstantKind.STRING: STRING,
    ConstantKind.INT: I64,
    ConstantKind.FLOAT: F64,
    ConstantKind.DTYPE: _DTYPE,
    ConstantKind.BOOL: FLAG,
}
"""Constants that are not tensors."""


def encode_sections(executable: ExecutableContents) -> list[tuple[bytes, Sequence[Part]]]:
    """Tag and contents of every section, in order."""
    writers = {tag: Writer() for tag in SECTIONS if tag != DATA}
    _METADATA.write(writers["META"], executable.metadata)
    _FUNCTIONS.write(writers["FUNC"], executable.functions)
    words = [word for instruction in executable.code for word in encode(instruction)]
    writers["CODE"].u64(len(words))
    writers["CODE"].words(words)
    _LOCATIONS.write(writers["LOCS"], executable.locations)
    _NATIVE.write(writers["NATV"], executable.native)
    data = _Data()
    writers["CONS"].list(executable.constants, partial(_write_constant, writers["CONS"], data))
    return [(tag.encode(), data.parts if tag == DATA else [bytes(writers[tag].data)]) for tag in SECTIONS]


def read_sections(make: type[E], readers: Mapping[str, Reader], data: Array, is_foreign: bool) -> E:
    """The executable in the sections, of the class `make`.

    `ValueError` with section and position if something is wrong.
    """
    metadata = _METADATA.read(readers["META"])
    functions = _FUNCTIONS.read(readers["FUNC"])
    code = _read_code(readers["CODE"])
    locations = _LOCATIONS.read(readers["LOCS"])
    native = _NATIVE.read(readers["NATV"])
    constants = readers["CONS"].list(partial(_read_constant, readers["CONS"], data))
    for reader in readers.values():
        reader.finish()
    return make(functions, constants, code, native, metadata, locations, is_foreign)


def _read_code(reader: Reader) -> tuple[Instruction, ...]:
    words = reader.words(reader.u64())
    code: list[Instruction] = []
    position = 0
    while position < len(words):
        try:
            instruction, position = decode(words, position)
        except ValueError as error:
            reader.fail(f"word {position}: {error}")
        code.append(instruction)
    return tuple(code)


@dataclass
class _Data:
    """The section with the elements of tensors, as it grows."""

    parts: list[Part] = field(default_factory=list[Part])
    size: int = 0


def _write_constant(writer: Writer, data: _Data, constant: Constant) -> None:
    """Writes a constant; the elements of a tensor go behind those of others in `data`."""
    writer.u8(constant.kind)
    writer.string(constant.name)
    if not isinstance(constant.value, tvm_ffi.Tensor):
        _PLAIN[constant.kind].write(writer, constant.value)
        return
    elements = np.ascontiguousarray(to_numpy(constant.value)).reshape(-1).view(np.uint8).data
    _DTYPE.write(writer, tensor_element(constant.value))
    writer.list(constant.value.shape, writer.u64)
    writer.u64(data.size)
    data.parts += (elements, bytes(-len(elements) % ALIGNMENT))
    data.size = _aligned(data.size + len(elements))


def _read_constant(reader: Reader, data: Array) -> Constant:
    tag = reader.u8()
    if tag > max(ConstantKind):
        reader.fail(f"unknown kind of constant {tag}")
    kind, name = ConstantKind(tag), reader.string()
    if kind is not ConstantKind.TENSOR:
        return Constant(_PLAIN[kind].read(reader), name)
    element, shape, start = _DTYPE.read(reader), reader.list(reader.u64), reader.u64()
    # Without its zeros, so that a size of 0 cannot hide dimensions beyond what memory can have.
    if len(shape) > _MAX_RANK or prod(dim or 1 for dim in shape) >= 1 << 56:
        reader.fail(f"a tensor of shape {list(shape)}")
    size = prod(shape) * element.itemsize
    if start % ALIGNMENT or start + size > data.size:
        reader.fail(f"a tensor at bytes {start} to {start + size} of {data.size} bytes of data")
    return Constant(tensor_on(data[start : start + size], shape, element), name)


MAGIC = b"\x89RVM\r\n\x1a\n"
"""Not text, and changed by any transfer that changes line ends."""
VERSION = 2
"""Changes with every change of the layout; a file of another version is refused."""

_HEADER = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<4sIQQ")
_CHECKSUM = struct.Struct("<I")


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
        value = 0
        for part in parts:
            value = zlib.crc32(part, value)
        table += _ENTRY.pack(tag, value, end, size)
        end = _aligned(end + size)
    header = _HEADER.pack(MAGIC, VERSION, len(sections), end) + table
    # What came from elsewhere does not become this user's own by being copied.
    mark = NO_SEAL if executable.is_foreign else seal(purpose, [[header], *(parts for _, parts in sections)])
    stream.write((header + _CHECKSUM.pack(zlib.crc32(header)) + mark).ljust(start, b"\0"))
    for _, parts in sections:
        size = 0
        for part in parts:
            size += stream.write(part)
        stream.write(bytes(_aligned(size) - size))


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


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
        named, checksum, said, size = _ENTRY.unpack_from(data, _HEADER.size + index * _ENTRY.size)
        if named != tag.encode():
            raise ValueError(f"section {tag}: expected at this index of the table, got {named!r}")
        if said != start or start > len(data) or size > len(data) - start:
            raise ValueError(f"section {tag}: bytes {said} to {said + size} are not at {start} within the file")
        indices[tag] = (start, size, checksum)
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
