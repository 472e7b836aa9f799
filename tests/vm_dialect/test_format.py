"""Damaged and hostile files: an error that says where, whatever the bytes."""

import random
import struct
import zlib
from pathlib import Path

import pytest

from vm_dialect import Executable
from vm_dialect.executable.format import MAGIC, VERSION

HEADER = struct.Struct("<8sIIQ")
ENTRY = struct.Struct("<4sIQQ")


def with_checksums(data: bytes) -> bytes:
    """The same file with checksums that fit, so that damage reaches what is after them."""
    result = bytearray(data)
    count = HEADER.unpack_from(data)[2]
    end = HEADER.size + count * ENTRY.size
    if end + 4 > len(data):
        return data
    for index in range(count):
        place = HEADER.size + index * ENTRY.size
        tag, _, start, size = ENTRY.unpack_from(data, place)
        ENTRY.pack_into(result, place, tag, zlib.crc32(data[start : start + size]), start, size)
    struct.pack_into("<I", result, end, zlib.crc32(result[:end]))
    return bytes(result)


def load(data: bytes, trust: bool = False) -> Executable | None:
    """The executable, all of it looked at, or `None` after a `ValueError`."""
    try:
        executable = Executable.from_bytes(data, trust=trust)
    except ValueError:
        return None
    executable.as_text()
    executable.stats()
    executable.to_bytes()
    return executable


@pytest.fixture
def data(everything: Executable) -> bytes:
    return everything.to_bytes()


def test_every_flipped_bit_is_noticed(data: bytes):
    source = random.Random(1)
    for position in source.sample(range(len(data)), 500):
        damaged = bytearray(data)
        damaged[position] ^= 1 << source.randrange(8)
        assert load(bytes(damaged)) is None


def test_every_truncation_is_noticed(data: bytes):
    for size in [*range(0, 256), *range(256, len(data), 37)]:
        assert load(data[:size]) is None
    assert load(data + b"\0") is None


def test_damage_behind_good_checksums_does_no_harm(data: bytes):
    source = random.Random(2)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(data))] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
        refused += load(with_checksums(bytes(damaged)), trust=True) is None
    assert refused > 500


def test_a_word_of_ones_anywhere_does_no_harm(data: bytes):
    for position in range(0, len(data) - 8, 8):
        for word in (b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\0\0\0\x40" * 2):
            load(with_checksums(data[:position] + word + data[position + 8 :]), trust=True)


def test_random_bytes_are_refused():
    source = random.Random(3)
    for size in range(0, 200, 7):
        noise = source.randbytes(size)
        assert load(noise) is None
        assert load(HEADER.pack(MAGIC, VERSION, source.randrange(1 << 32), size + HEADER.size) + noise) is None


def rewritten(data: bytes, offset: int, new: bytes) -> bytes:
    return with_checksums(data[:offset] + new + data[offset + len(new) :])


def test_messages_say_where(data: bytes, tmp_path: Path):
    cases = [
        (b"", "byte 0: expected a header of 24 bytes, the file has 0"),
        (b"PK" + data[2:], "byte 0: this is not an executable"),
        (rewritten(data, 8, b"\x03"), "byte 8: format version 3, this package reads version 2"),
        (rewritten(data, 16, b"\0"), f"byte 16: the file has {len(data)} bytes"),
        (data[:25] + b"X" + data[26:], "wrong checksum of the header"),
        (rewritten(data, 24, b"XXXX"), "section META: expected at this index of the table, got b'XXXX'"),
        (rewritten(data, 32, struct.pack("<Q", 1 << 63)), "section META: bytes .* are not at 256 within the file"),
        (data[:-70] + b"\x55" + data[-69:], "wrong checksum|expected zeros"),
    ]
    for content, message in cases:
        path = tmp_path / "bad.rvm"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message) as caught:
            Executable.load(path)
        assert str(path) in str(caught.value)


def test_positions_inside_sections(data: bytes):
    start = ENTRY.unpack_from(data, HEADER.size + ENTRY.size)[2]
    with pytest.raises(ValueError, match=rf"section FUNC, byte {start + 5}: unknown kind of function 200"):
        Executable.from_bytes(rewritten(data, start + 4, b"\xc8"))
    with pytest.raises(ValueError, match=rf"section FUNC, byte {start + 4}: a list of 4294967295 elements"):
        Executable.from_bytes(rewritten(data, start, b"\xff" * 4))


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        Executable.load(tmp_path / "missing.rvm")


def test_a_missing_folder(data: bytes, tmp_path: Path):
    executable, path = Executable.from_bytes(data), tmp_path / "missing" / "m.rvm"
    with pytest.raises(FileNotFoundError) as caught:
        executable.save(path)
    assert caught.value.filename == str(path)
