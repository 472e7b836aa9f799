"""Reading and writing of the numbers, strings, lists and records that sections of the file consist of. Little endian.

A `Codec` says both directions at once: numbers and strings are methods of `Writer` and `Reader`, and what consists of
others is made of their codecs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_U8 = struct.Struct("<B")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
_F64 = struct.Struct("<d")


class Writer:
    """Grows the bytes of one section."""

    def __init__(self) -> None:
        self.data = bytearray()

    def u8(self, value: int) -> None:
        """A byte."""
        self.data += _U8.pack(value)

    def u32(self, value: int) -> None:
        """4 bytes, unsigned."""
        self.data += _U32.pack(value)

    def u64(self, value: int) -> None:
        """8 bytes, unsigned."""
        self.data += _U64.pack(value)

    def i64(self, value: int) -> None:
        """8 bytes, signed."""
        self.data += _I64.pack(value)

    def f64(self, value: float) -> None:
        """8 bytes, IEEE 754."""
        self.data += _F64.pack(value)

    def words(self, values: Sequence[int]) -> None:
        """8 bytes each, unsigned; the length is written elsewhere."""
        self.data += struct.pack(f"<{len(values)}Q", *values)

    def blob(self, value: bytes) -> None:
        """Length, then the bytes."""
        self.u64(len(value))
        self.data += value

    def string(self, value: str) -> None:
        """Length, then UTF-8."""
        self.blob(value.encode())

    def list(self, values: Sequence[T], write: Callable[[T], None]) -> None:
        """Length, then each element by `write`."""
        self.u32(len(values))
        for value in values:
            write(value)


class Reader:
    """Walks over the bytes of one section; every method raises `ValueError` with the position if they do not fit."""

    def __init__(self, data: memoryview, base: int, section: str):
        self._data = data
        self._base = base
        self._section = section
        self._position = 0

    def fail(self, message: str) -> NoReturn:
        """Raises `ValueError` that names section and position."""
        raise ValueError(f"section {self._section}, byte {self._base + self._position}: {message}")

    def finish(self) -> None:
        """Checks that everything has been read."""
        if self._position != len(self._data):
            self.fail(f"{len(self._data) - self._position} bytes are left over")

    def _take(self, size: int) -> memoryview:
        if size > len(self._data) - self._position:
            self.fail(f"expected {size} more bytes, got {len(self._data) - self._position}")
        start = self._position
        self._position += size
        return self._data[start : self._position]

    def u8(self) -> int:
        """A byte."""
        return self._take(1)[0]

    def u32(self) -> int:
        """4 bytes, unsigned."""
        return int.from_bytes(self._take(4), "little")

    def u64(self) -> int:
        """8 bytes, unsigned."""
        return int.from_bytes(self._take(8), "little")

    def i64(self) -> int:
        """8 bytes, signed."""
        return int.from_bytes(self._take(8), "little", signed=True)

    def f64(self) -> float:
        """8 bytes, IEEE 754."""
        return float(_F64.unpack(self._take(8))[0])

    def words(self, count: int) -> tuple[int, ...]:
        """`count` times 8 bytes, unsigned."""
        return struct.unpack(f"<{count}Q", self._take(8 * count))

    def blob(self) -> bytes:
        """Length, then the bytes."""
        return bytes(self._take(self.u64()))

    def string(self) -> str:
        """Length, then UTF-8."""
        data = self.blob()
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.fail("a name is not UTF-8")

    def list(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Length, then each element by `read`, which takes at least one byte."""
        count = self.u32()
        if count > len(self._data) - self._position:
            self.fail(f"a list of {count} elements does not fit into the section")
        return tuple(read() for _ in range(count))


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How values of a kind are written, and read with all checks."""

    write: Callable[[Writer, T], None]
    read: Callable[[Reader], T]

    def checked(self, is_right: Callable[[T], bool], message: str) -> Codec[T]:
        """The same, but `ValueError` for values that are wrong; `{}` in the message stands for one."""

        def read(reader: Reader) -> T:
            value = self.read(reader)
            return value if is_right(value) else reader.fail(message.format(value))

        return Codec(self.write, read)

    def of(self, make: Callable[[T], U], parts: Callable[[U], T]) -> Codec[U]:
        """For objects that `make` makes of such values, of which `parts` gets them back."""
        return Codec(lambda writer, value: self.write(writer, parts(value)), lambda reader: make(self.read(reader)))


U8, U32, U64, I64 = (
    Codec[int](Writer.u8, Reader.u8),
    Codec[int](Writer.u32, Reader.u32),
    Codec[int](Writer.u64, Reader.u64),
    Codec[int](Writer.i64, Reader.i64),
)
F64 = Codec[float](Writer.f64, Reader.f64)
STRING = Codec[str](Writer.string, Reader.string)
BLOB = Codec[bytes](Writer.blob, Reader.blob)
FLAG = U8.checked(lambda flag: flag <= 1, "expected 0 or 1, got {}").of(bool, int)


def list_of(item: Codec[T]) -> Codec[tuple[T, ...]]:
    """Length, then each element."""
    return Codec(
        lambda writer, values: writer.list(values, partial(item.write, writer)),
        lambda reader: reader.list(partial(item.read, reader)),
    )


def record(make: Callable[..., T], **fields: Codec[Any]) -> Codec[T]:
    """An object that `make` makes of its attributes, in this order."""

    def write(writer: Writer, value: T) -> None:
        for name, field in fields.items():
            field.write(writer, getattr(value, name))

    return Codec(write, lambda reader: make(**{name: field.read(reader) for name, field in fields.items()}))


def pair(first: Codec[T], second: Codec[U]) -> Codec[tuple[T, U]]:
    """Two values."""

    def write(writer: Writer, value: tuple[T, U]) -> None:
        first.write(writer, value[0])
        second.write(writer, value[1])

    return Codec(write, lambda reader: (first.read(reader), second.read(reader)))


def table(key: Codec[T], value: Codec[U]) -> Codec[Mapping[T, U]]:
    """A dictionary, in the order of its keys."""
    return list_of(pair(key, value)).of(dict, lambda entries: tuple(sorted(entries.items())))
