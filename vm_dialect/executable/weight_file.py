"""Files of weights beside an executable or a library: the elements of its constants, which are mapped into memory.

The header is `MAGIC`, an identity of 16 bytes that the executable knows, and the size of the file as 64 bits, all
little-endian; from byte 64 on come the elements of each constant, aligned to 64 bytes. Pages are read when they are
used, shared between processes, and copied by a process that writes into them.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import tvm_ffi

from vm_dialect.executable.model import Constant
from vm_dialect.files import open_regular
from vm_dialect.host_memory import ALIGNMENT
from vm_dialect.tensors import Array, tensor_element, to_numpy

MAGIC = b"\x89RVW\r\n\x1a\n"
SUFFIX = ".weights"
"""After the name of the executable or library that the file belongs to."""

_HEADER = struct.Struct("<8s16sQ")


@dataclass(frozen=True)
class WeightFile:
    """What is known about a file of weights without reading it."""

    identity: bytes
    """Of 16 bytes: another one belongs to other constants."""
    size: int
    """Bytes of the file."""
    offsets: Mapping[str, int]
    """Where the elements of each constant begin."""

    @classmethod
    def of(cls, constants: Iterable[Constant]) -> WeightFile:
        """The file for the named tensors among constants; the same for the same names, types and elements."""
        digest = hashlib.sha256()
        offsets: dict[str, int] = {}
        position = ALIGNMENT
        for name, tensor in named_tensors(constants).items():
            offsets[name] = position
            elements = _elements(tensor)
            digest.update(f"{name} {tensor_element(tensor).name}{list(tensor.shape)}\n".encode())
            digest.update(elements.data)
            position = _aligned(position + elements.size)
        return cls(digest.digest()[:16], position, offsets)

    def write(self, constants: Iterable[Constant], path: str | PathLike[str]) -> None:
        """Writes the file in one step. `OSError` if that fails."""
        target = Path(path)
        temporary = target.parent / f".{target.name[:50]}.{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as stream:
                stream.write(_HEADER.pack(MAGIC, self.identity, self.size).ljust(ALIGNMENT, b"\0"))
                for tensor in named_tensors(constants).values():
                    size = stream.write(_elements(tensor).data)
                    stream.write(bytes(_aligned(size) - size))
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def map(self, path: str | PathLike[str]) -> Array:
        """The bytes of the file, which are read when they are used; what is written to them stays in this process.

        `ValueError` for a file of other constants, or one that is cut off.
        """
        with open_regular(path) as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size or header[: len(MAGIC)] != MAGIC:
                raise ValueError(f"{fspath(path)}: this is no file of weights")
            _, identity, size = _HEADER.unpack(header)
            if identity != self.identity or size != self.size:
                raise ValueError(f"{fspath(path)}: the weights are not those of this program")
            if os.fstat(file.fileno()).st_size != size:
                raise ValueError(f"{fspath(path)}: expected {size} bytes, got {os.fstat(file.fileno()).st_size}")
            return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), np.uint8)


def named_tensors(constants: Iterable[Constant]) -> dict[str, tvm_ffi.Tensor]:
    """The tensors that have a name, by it."""
    return {each.name: each.value for each in constants if each.name and isinstance(each.value, tvm_ffi.Tensor)}


def _elements(tensor: tvm_ffi.Tensor) -> Array:
    return np.ascontiguousarray(to_numpy(tensor)).reshape(-1).view(np.uint8)


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT
