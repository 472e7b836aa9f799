"""The symbol table of an ELF object: what it defines and what it needs."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lowering.llvm.errors import CodegenError


@dataclass(frozen=True)
class ObjectSymbols:
    """Names in an object file."""

    defined: tuple[str, ...]
    """Global functions and data that others may use."""

    undefined: tuple[str, ...]
    """What has to be found elsewhere."""


_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2
_LOCAL = 0


def object_symbols(data: bytes) -> ObjectSymbols:
    """Reads the symbol table of a 64-bit little-endian ELF object.

    Raises `CodegenError` if the bytes are no such object or are cut off.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise CodegenError("expected a 64-bit little-endian ELF object")
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise CodegenError(f"damaged ELF object: {error}") from error


def _read(data: bytes) -> ObjectSymbols:
    (table_offset,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    sections: list[tuple[int, ...]] = [
        _SECTION.unpack_from(data, table_offset + index * entry_size) for index in range(count)
    ]
    defined: list[str] = []
    undefined: list[str] = []
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _SYMTAB:
            continue
        strings = int(sections[link][4])
        for position in range(offset, offset + size, _SYMBOL.size):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(data, position)
            if name and info >> 4 != _LOCAL:
                end = data.index(b"\0", strings + name)
                (defined if section else undefined).append(data[strings + name : end].decode())
    return ObjectSymbols(tuple(defined), tuple(undefined))
