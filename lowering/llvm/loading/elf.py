"""The symbol table of an ELF object: what it defines, what it needs, and other names for either."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
_OFFSET = 0x18
"""Where a section header has the offset of the section in the file, and the size after it."""

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


def renamed(data: bytes, names: Mapping[str, str]) -> bytes:
    """The object with other names for some of its global symbols.

    The new names follow the old ones in a copy of the string table at the end of the file: others may share the bytes
    of an old one. Raises `CodegenError` as `object_symbols` does.
    """
    if names.keys().isdisjoint((table := object_symbols(data)).defined + table.undefined):
        return data
    result = bytearray(data)
    for section in _symbol_tables(data):
        header = _section_offset(data, section.link)
        start, size = struct.unpack_from("<QQ", data, header + _OFFSET)
        strings = bytearray(data[start : start + size])
        for symbol in _global_symbols(data, section):
            if (name := names.get(symbol.name)) is not None:
                struct.pack_into("<I", result, symbol.position, len(strings))
                strings += name.encode() + b"\0"
        struct.pack_into("<QQ", result, header + _OFFSET, len(result), len(strings))
        result += strings
    return bytes(result)


class _SymbolTable(NamedTuple):
    offset: int
    size: int
    link: int
    """The index of the section with the names."""


class _Symbol(NamedTuple):
    position: int
    """Where it stands in the file."""
    name: str
    is_defined: bool


def _read(data: bytes) -> ObjectSymbols:
    symbols = [symbol for table in _symbol_tables(data) for symbol in _global_symbols(data, table)]
    return ObjectSymbols(
        tuple(symbol.name for symbol in symbols if symbol.is_defined),
        tuple(symbol.name for symbol in symbols if not symbol.is_defined),
    )


def _section_offset(data: bytes, index: int) -> int:
    (table_offset,) = struct.unpack_from("<Q", data, 0x28)
    (entry_size,) = struct.unpack_from("<H", data, 0x3A)
    return table_offset + index * entry_size


def _symbol_tables(data: bytes) -> Iterator[_SymbolTable]:
    (count,) = struct.unpack_from("<H", data, 0x3C)
    for index in range(count):
        _, kind, _, _, offset, size, link, _, _, _ = _SECTION.unpack_from(data, _section_offset(data, index))
        if kind == _SYMTAB:
            yield _SymbolTable(offset, size, link)


def _global_symbols(data: bytes, table: _SymbolTable) -> Iterator[_Symbol]:
    (strings,) = struct.unpack_from("<Q", data, _section_offset(data, table.link) + _OFFSET)
    for position in range(table.offset, table.offset + table.size, _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, position)
        if name and info >> 4 != _LOCAL:
            end = data.index(b"\0", strings + name)
            yield _Symbol(position, data[strings + name : end].decode(), section != 0)
