"""Relocatable ELF objects for AArch64, linked into one image of memory."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

Relocate: TypeAlias = Callable[[bytearray, int, int, int], None]
"""Writes an address at an offset of a part, which is the given position."""

PAGE = 4096
BASE = 0x1000_0000

_HEADER_OF_SECTIONS = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_ALLOC = 2


class Section(NamedTuple):
    """The header of a section, as the ELF standard has it."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Relocation(NamedTuple):
    """A position that depends on the address of a symbol."""

    place: int
    kind: int
    symbol: str | int
    """A name that is looked up at the end, or the address itself."""
    addend: int


@dataclass
class Image:
    """Objects one after the other; every section begins at a page and has a page that is not mapped after it."""

    parts: dict[int, bytearray] = field(default_factory=dict[int, bytearray])
    """What lies where."""
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    end: int = BASE
    _open: list[Relocation] = field(default_factory=list[Relocation])

    def add(self, data: bytes) -> None:
        """Gives the sections of an object their positions."""
        sections = list(_sections(data))
        places = {
            number: self._place(bytes(section.size) if section.kind == _NOBITS else _content(data, section))
            for number, section in enumerate(sections)
            if section.flags & _ALLOC
        }
        table = next(section for section in sections if section.kind == _SYMTAB)
        names = sections[table.link].offset
        symbols = [self._symbol(data, names, entry, places) for entry in _SYMBOL.iter_unpack(_content(data, table))]
        for section in sections:
            if section.kind == _RELA and section.info in places:
                for offset, kind, symbol, addend in _RELOCATION.iter_unpack(_content(data, section)):
                    self._open.append(Relocation(places[section.info] + offset, kind, symbols[symbol], addend))

    def link(self) -> None:
        """Writes the addresses of symbols into the code; `KeyError` for one that no object defines."""
        for place, kind, symbol, addend in self._open:
            address = symbol if isinstance(symbol, int) else self.symbols[symbol]
            base = next(start for start, part in self.parts.items() if start <= place < start + len(part))
            _RELOCATE[kind](self.parts[base], place - base, address + addend, place)
        self._open.clear()

    def _place(self, content: bytes) -> int:
        start = self.end
        self.parts[start] = bytearray(content)
        self.end += pages(len(content)) + PAGE
        return start

    def _symbol(self, data: bytes, names: int, entry: Sequence[int], places: dict[int, int]) -> str | int:
        name, info, _, section, value, _ = entry
        text = data[names + name : data.index(b"\0", names + name)].decode()
        if section not in places:
            return text
        if info >> 4:
            self.symbols[text] = places[section] + value
        return places[section] + value


def pages(size: int) -> int:
    """The bytes of the pages that hold `size` bytes, at least one."""
    return max(-(-size // PAGE), 1) * PAGE


def _sections(data: bytes) -> Iterator[Section]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    for index in range(count):
        yield Section(*_HEADER_OF_SECTIONS.unpack_from(data, offset + index * entry_size))


def _content(data: bytes, section: Section) -> bytes:
    return data[section.offset : section.offset + section.size]


def _patch(part: bytearray, offset: int, bits: int) -> None:
    (word,) = struct.unpack_from("<I", part, offset)
    struct.pack_into("<I", part, offset, word | bits)


def _jump(part: bytearray, offset: int, address: int, place: int) -> None:
    _patch(part, offset, (address - place >> 2) & 0x3FFFFFF)


def _page(part: bytearray, offset: int, address: int, place: int) -> None:
    distance = (address >> 12) - (place >> 12)
    _patch(part, offset, (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5)


def _in_page(shift: int) -> Relocate:
    """The position in the page, counted in units of what is loaded."""

    def relocate(part: bytearray, offset: int, address: int, place: int) -> None:
        _patch(part, offset, ((address & 0xFFF) >> shift) << 10)

    return relocate


def _absolute(part: bytearray, offset: int, address: int, place: int) -> None:
    struct.pack_into("<Q", part, offset, address)


def _relative(part: bytearray, offset: int, address: int, place: int) -> None:
    struct.pack_into("<i", part, offset, address - place)


_RELOCATE: Mapping[int, Relocate] = {
    257: _absolute,
    261: _relative,
    275: _page,
    277: _in_page(0),
    278: _in_page(0),
    282: _jump,
    283: _jump,
    284: _in_page(1),
    285: _in_page(2),
    286: _in_page(3),
    299: _in_page(4),
}
"""How each kind is written, by its number in "ELF for the Arm 64-bit Architecture", section 5.7."""
