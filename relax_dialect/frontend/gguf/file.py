"""The GGUF file format: metadata by name, then tensors, which stay in the file and are mapped into memory.

The format is described in `docs/gguf.md` of the ggml project. All numbers are little-endian. Every size in the file is
compared with what is left of the file before it is used, so that a damaged file gives an error and nothing large is
allocated for it.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from tir_dialect.block_arrays import BlockArray
from tir_dialect.block_formats import FORMATS
from vm_dialect.files import MappedFile

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GGUFImportError(ValueError):
    """The file is damaged, or has something that is not supported; the message says what, and where."""


MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_DIMS = 4
MOST_NESTED = 3
"""Arrays in arrays."""
LARGEST_ALIGNMENT = 1 << 20
_MOST_PARTS = (1 << 16) - 1
"""What a number of parts in a file can be."""

Value: TypeAlias = "bool | int | float | str | NDArray[Any] | list[Any]"
"""A value of the metadata; arrays of numbers are arrays of NumPy."""

Tensor: TypeAlias = "NDArray[Any] | BlockArray"
"""The elements of a tensor, in the memory of the file, where nobody writes."""

_NUMBERS: Mapping[int, str] = {
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
"""NumPy's dtypes of the numbers of metadata."""
_STRING, _ARRAY = 8, 9

_PLAIN: Mapping[int, Any] = {
    0: np.dtype("<f4"),
    1: np.dtype("<f2"),
    24: np.dtype("i1"),
    25: np.dtype("<i2"),
    26: np.dtype("<i4"),
    27: np.dtype("<i8"),
    28: np.dtype("<f8"),
    30: np.dtype(ml_dtypes.bfloat16),
}
"""The dtypes of tensors of plain numbers."""

_BLOCKS: Mapping[int, str] = {
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    10: "q2_k",
    11: "q3_k",
    12: "q4_k",
    13: "q5_k",
    14: "q6_k",
    20: "iq4_nl",
    23: "iq4_xs",
    39: "mxfp4",
}
"""The formats of tensors of blocks."""


@dataclass(frozen=True, eq=False)
class GGUFFile:
    """What a file holds."""

    path: str
    metadata: Mapping[str, Value]
    tensors: Mapping[str, Tensor]
    mapped: tuple[MappedFile, ...] = ()
    """The files that it was read from: one, or the parts in their order."""

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A number of the metadata; `GGUFImportError` if it is missing and there is no other, or is none."""
        value = self.metadata.get(key, otherwise)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise GGUFImportError(f"{self.path}: the metadata {key} expected a number, got {_shown(value)}")
        return value

    def integer(self, key: str, otherwise: int | None = None, least: int = 0, most: int = 1 << 31) -> int:
        """An integer of the metadata between two limits; `GGUFImportError` if it is none."""
        value = self.metadata.get(key, otherwise)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise GGUFImportError(
                f"{self.path}: the metadata {key} expected an integer from {least} to {most}, got {_shown(value)}"
            )
        return value

    def text(self, key: str, otherwise: str | None = None) -> str:
        """A text of the metadata; `GGUFImportError` if it is missing and there is no other, or is none."""
        value = self.metadata.get(key, otherwise)
        if not isinstance(value, str):
            raise GGUFImportError(f"{self.path}: the metadata {key} expected a text, got {_shown(value)}")
        return value


def _shown(value: object) -> str:
    """A value in a message, at most some words of it."""
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def read_file(path: str | PathLike[str]) -> GGUFFile:
    """Reads the metadata of a file and maps its tensors; `GGUFImportError` if it is damaged.

    Of a model in parts, as `gguf-split` writes them (`model-00001-of-00004.gguf`), `path` is the first one, and the
    others are beside it.
    """
    name = fspath(path)
    first = _read_one(name)
    count = first.integer("split.count", 1, most=_MOST_PARTS)
    return first if count <= 1 else _with_other_parts(first, count)


def _read_one(name: str) -> GGUFFile:
    try:
        mapped = MappedFile.open(name)
    except ValueError as error:  # an empty file cannot be mapped
        raise GGUFImportError(f"{name}: expected a GGUF file, got an empty one") from error
    return replace(parse(mapped.memory, name), mapped=(mapped,))


def _with_other_parts(first: GGUFFile, count: int) -> GGUFFile:
    """The tensors of all parts, with the metadata of the first one, which has those of the model."""
    name = re.fullmatch(r"(.*)-(\d{5})-of-(\d{5})\.gguf", first.path, re.DOTALL)
    if name is None or int(name[3]) != count:
        raise GGUFImportError(
            f"{first.path}: the model is in {count} files (split.count), which have to be called "
            f"...-00001-of-{count:05}.gguf and so on"
        )
    files = [f"{name[1]}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    if first.integer("split.no", 0, most=_MOST_PARTS) != 0 or first.path != files[0]:
        raise GGUFImportError(f"{first.path}: this is one of {count} parts of a model; give the first, {files[0]}")
    tensors, mapped = dict(first.tensors), list(first.mapped)
    for number, file in enumerate(files[1:], 1):
        try:
            part = _read_one(file)
        except FileNotFoundError as error:
            raise GGUFImportError(f"{first.path}: the model is in {count} files, and {file} is missing") from error
        if part.integer("split.no", most=_MOST_PARTS) != number or part.integer("split.count", 1) != count:
            raise GGUFImportError(f"{file}: expected part {number + 1} of {count} (split.no, split.count)")
        if twice := next((each for each in part.tensors if each in tensors), None):
            raise GGUFImportError(f"{file}: the tensor {_shown(twice)} is in another part, too")
        tensors |= part.tensors
        mapped += part.mapped
    if (expected := first.integer("split.tensors.count", len(tensors))) != len(tensors):
        raise GGUFImportError(f"{first.path}: expected {expected} tensors in all parts, got {len(tensors)}")
    return GGUFFile(first.path, first.metadata, tensors, tuple(mapped))


def parse(memory: mmap.mmap | bytes, name: str) -> GGUFFile:
    """What is in the memory of a file, which the tensors refer to; `name` is for messages."""
    reader = _Reader(memory, name)
    if reader.take(4) != MAGIC:
        raise reader.error("expected a GGUF file")
    version = reader.integer("<u4")
    if version not in VERSIONS:
        raise reader.error(f"expected version {' or '.join(map(str, VERSIONS))} of the format, got {version}")
    tensors, entries = reader.integer("<u8"), reader.integer("<u8")
    metadata: dict[str, Value] = {}
    for _ in range(reader.count(entries, 12, "entries of metadata")):
        key = reader.string()
        if key in metadata:
            raise reader.error(f"the metadata {_shown(key)} is there twice")
        metadata[key] = reader.value(reader.integer("<u4"))
    alignment = metadata.get("general.alignment", 32)
    is_power = isinstance(alignment, int) and 0 < alignment <= LARGEST_ALIGNMENT and not alignment & (alignment - 1)
    if not is_power or not isinstance(alignment, int):
        raise reader.error(f"expected a power of two as general.alignment, got {_shown(alignment)}")
    described = [reader.description() for _ in range(reader.count(tensors, 24, "tensors"))]
    first = -(-reader.position // alignment) * alignment
    found: dict[str, Tensor] = {}
    for each in described:
        if each.name in found:
            raise reader.error(f"the tensor {_shown(each.name)} is there twice")
        if each.offset % alignment:
            raise reader.error(f"the tensor {_shown(each.name)} begins at {each.offset}, no multiple of {alignment}")
        found[each.name] = reader.tensor(each, first + each.offset)
    return GGUFFile(name, metadata, found)


@dataclass(frozen=True)
class _Description:
    """Where a tensor is, and of which shape."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Reader:
    """The bytes of a file, from a position on."""

    def __init__(self, memory: mmap.mmap | bytes, name: str):
        self._memory, self._name = memory, name
        self.position = 0

    def error(self, message: str) -> GGUFImportError:
        """What is wrong, and where."""
        return GGUFImportError(f"{self._name}: {message} (at byte {self.position})")

    @property
    def _left(self) -> int:
        return len(self._memory) - self.position

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size > self._left:
            raise self.error(f"the file is truncated: expected {size} more bytes, got {self._left}")
        self.position += size
        return bytes(self._memory[self.position - size : self.position])

    def count(self, number: int, least: int, what: str) -> int:
        """A number of things that take `least` bytes or more each."""
        if number > self._left // least:
            raise self.error(f"the file is truncated: expected {number} {what}, got {self._left} bytes")
        return number

    def integer(self, kind: str) -> int:
        """A number that is an integer."""
        return int.from_bytes(self.take(int(kind[-1])), "little")

    def string(self) -> str:
        """A text: its length, then UTF-8."""
        size = self.integer("<u8")
        data = self.take(self.count(size, 1, "bytes of text"))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"expected text in UTF-8, got {_shown(data)}") from error

    def value(self, kind: int, depth: int = 0) -> Value:
        """A value of metadata."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array(depth)
        if kind not in _NUMBERS:
            raise self.error(f"unknown type {kind} of metadata")
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def _array(self, depth: int) -> Value:
        kind, size = self.integer("<u4"), self.integer("<u8")
        if kind in _NUMBERS:
            dtype = np.dtype(_NUMBERS[kind])
            return np.frombuffer(self.take(self.count(size, dtype.itemsize, "numbers") * dtype.itemsize), dtype)
        if kind not in (_STRING, _ARRAY) or depth >= MOST_NESTED:
            raise self.error(f"unknown type {kind} of an array of metadata")
        number = self.count(size, 8, "elements")
        return self._strings(number) if kind == _STRING else [self.value(kind, depth + 1) for _ in range(number)]

    def _strings(self, number: int) -> list[Any]:
        """As many texts. Tokenizers have a hundred thousand: this does what `string` does, in a third of the time."""
        memory, position, end = self._memory, self.position, len(self._memory)
        found: list[bytes] = []
        for _ in range(number):
            start = position + 8
            length = int.from_bytes(memory[position:start], "little")
            if start > end or length > end - start:
                self.position = position
                raise self.error("the file is truncated: expected more bytes of text")
            position = start + length
            found.append(memory[start:position])
        self.position = position
        try:
            return [each.decode() for each in found]
        except UnicodeDecodeError as error:
            raise self.error(f"expected text in UTF-8, got {_shown(error.object)}") from error

    def description(self) -> _Description:
        """What is said about a tensor before the data."""
        name, rank = self.string(), self.integer("<u4")
        if rank > MOST_DIMS:
            raise self.error(f"the tensor {_shown(name)} has {rank} dimensions, expected at most {MOST_DIMS}")
        dims = struct.unpack(f"<{rank}Q", self.take(8 * rank))
        return _Description(name, tuple(reversed(dims)), self.integer("<u4"), self.integer("<u8"))

    def tensor(self, each: _Description, start: int) -> Tensor:
        """The elements of a tensor."""
        if each.kind in _PLAIN:
            return self._elements(each, _PLAIN[each.kind], each.shape, start)
        if each.kind not in _BLOCKS:
            known = ", ".join(("F32", "F16", "BF16", *(name.upper() for name in _BLOCKS.values())))
            raise self.error(f"the tensor {_shown(each.name)} has the type {each.kind}; known are {known}")
        block_format = FORMATS[_BLOCKS[each.kind]]
        if not each.shape or each.shape[-1] % block_format.elements:
            raise self.error(
                f"the tensor {_shown(each.name)} expected rows of a multiple of {block_format.elements} numbers, "
                f"got the shape {list(each.shape)}"
            )
        shape = (*each.shape[:-1], block_format.row_bytes(each.shape[-1]))
        return BlockArray(self._elements(each, np.dtype(np.uint8), shape, start), block_format)

    def _elements(self, each: _Description, dtype: np.dtype[Any], shape: Sequence[int], start: int) -> NDArray[Any]:
        size = math.prod(max(extent, 1) for extent in shape)  # NumPy has limits for empty arrays too
        if start > len(self._memory) or size * dtype.itemsize > len(self._memory) - start:
            raise self.error(
                f"the file is truncated: the tensor {_shown(each.name)} expected {size * dtype.itemsize} bytes at "
                f"{start}, and the file has {len(self._memory)}"
            )
        return np.frombuffer(self._memory, dtype, math.prod(shape), start).reshape(shape)
