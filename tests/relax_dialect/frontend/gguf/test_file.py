"""The reader of GGUF files: what `gguf` has written, and files that are damaged."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from relax_dialect.frontend.gguf import GGUFImportError, read_file
from relax_dialect.frontend.gguf.file import parse
from tests.support import decoders
from tir_dialect.block_arrays import BlockArray


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small model."""
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    decoders.write_decoder(path)
    return path.read_bytes()


def test_what_was_written_is_read(tmp_path: Path):
    path = tmp_path / "some.gguf"
    writer, rng = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    numbers = rng.standard_normal((3, 64)).astype(np.float32)
    writer.add_uint8("a", 255)
    writer.add_int64("b", -(1 << 40))
    writer.add_float32("c", 0.5)
    writer.add_bool("d", True)
    writer.add_string("e", "Grüße")
    writer.add_array("f", ["x", "", "yz"])
    writer.add_array("g", [1, -2])
    writer.add_tensor("plain", numbers)
    writer.add_tensor("half", numbers.astype(np.float16))
    writer.add_tensor("blocks", gguf.quants.quantize(numbers, Kind.Q5_1), raw_dtype=Kind.Q5_1)
    writer.add_tensor("bytes", gguf.quants.quantize(numbers, Kind.BF16), raw_dtype=Kind.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = read_file(path)
    expected = {"a": 255, "b": -(1 << 40), "c": 0.5, "d": True, "e": "Grüße", "f": ["x", "", "yz"]}
    assert {key: file.metadata[key] for key in expected} == expected
    np.testing.assert_array_equal(file.metadata["g"], [1, -2])
    np.testing.assert_array_equal(file.tensors["plain"], numbers)
    np.testing.assert_array_equal(file.tensors["half"], numbers.astype(np.float16))
    blocks, brain = file.tensors["blocks"], file.tensors["bytes"]
    assert isinstance(blocks, BlockArray)
    assert blocks.shape == (3, 64)
    np.testing.assert_array_equal(blocks.decoded(), gguf.quants.dequantize(blocks.packed, Kind.Q5_1))
    assert str(brain.dtype) == "bfloat16"
    before = path.read_bytes()
    for each in file.tensors.values():
        getattr(each, "packed", each)[...] = 0
    assert path.read_bytes() == before, "what is written there is not in the file"
    with pytest.raises(GGUFImportError, match="e expected a number, got 'Grüße'"):
        file.number("e")
    with pytest.raises(GGUFImportError, match="b expected an integer from 0"):
        file.integer("b")
    with pytest.raises(GGUFImportError, match="nothing"):
        file.text("z")


HEAD = b"GGUF" + struct.pack("<I", 3)


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _with_tensor(*dims: int, kind: int = 0, offset: int = 0, name: bytes = b"t") -> bytes:
    described = _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return HEAD + struct.pack("<QQ", 1, 0) + described + bytes(64)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "truncated"),
        (b"GGML" + bytes(40), "expected a GGUF file"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "expected version 2 or 3 of the format, got 1"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "expected version 2 or 3"),
        (HEAD + struct.pack("<QQ", 0, 1 << 60), "truncated: expected 1152921504606846976 entries"),
        (HEAD + struct.pack("<QQ", 1 << 63, 0), "expected 9223372036854775808 tensors"),
        (HEAD + struct.pack("<QQQ", 0, 1, 1 << 62) + bytes(20), "bytes of text"),
        (HEAD + struct.pack("<QQ", 0, 1) + _text(b"\xff\xfe") + bytes(20), "UTF-8"),
        (HEAD + struct.pack("<QQ", 0, 1) + _text(b"k") + struct.pack("<I", 77) + bytes(9), "unknown type 77"),
        (HEAD + struct.pack("<QQ", 0, 1) + _text(b"k") + struct.pack("<IIQ", 9, 4, 1 << 61), "numbers"),
        (HEAD + struct.pack("<QQ", 0, 1) + _text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9, "array"),
        (
            HEAD + struct.pack("<QQ", 0, 1) + _text(b"general.alignment") + struct.pack("<II", 4, 24),
            "expected a power of two as general.alignment, got 24",
        ),
        (HEAD + struct.pack("<QQ", 0, 2) + (_text(b"key") + struct.pack("<II", 4, 1)) * 2, "'key' is there twice"),
        (_with_tensor(1, 1, 1, 1, 1), "has 5 dimensions"),
        (_with_tensor(1 << 40, 1 << 40), "'t' expected .* bytes at"),
        (_with_tensor(1 << 63, 1 << 63, 1 << 63, 0, kind=2), "truncated"),
        (_with_tensor(4, offset=1 << 63), "truncated"),
        (_with_tensor(4, offset=16), "no multiple of 32"),
        (_with_tensor(4, kind=16), "has the type 16; known are F32, F16, BF16, Q4_0"),
        (_with_tensor(33, kind=2), "multiple of 32 numbers"),
    ],
)
def test_what_is_wrong_is_said(damaged: bytes, message: str):
    with pytest.raises(GGUFImportError, match=message):
        parse(damaged, "file")


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A small model in parts, as the library of llama.cpp writes them."""
    with monkeypatch.context() as patch:
        patch.setattr(decoders.gguf, "GGUFWriter", partial(gguf.GGUFWriter, split_max_tensors=9))
        decoders.write_decoder(tmp_path / "model.gguf")
    found = sorted(tmp_path.glob("model-*-of-*.gguf"))
    assert len(found) > 2
    return found


def test_a_model_in_parts(parts: list[Path], data: bytes):
    whole, joined = parse(data, "whole"), read_file(parts[0])
    assert {*joined.tensors} == {*whole.tensors}
    assert len(joined.mapped) == len(parts)
    for name, tensor in whole.tensors.items():
        other = joined.tensors[name]
        assert isinstance(other, BlockArray) == isinstance(tensor, BlockArray)
        elements = [each.packed if isinstance(each, BlockArray) else each for each in (tensor, other)]
        np.testing.assert_array_equal(elements[1], elements[0])
    assert joined.metadata["general.architecture"] == whole.metadata["general.architecture"]


def test_parts_that_do_not_fit(parts: list[Path]):
    with pytest.raises(GGUFImportError, match=r"one of \d+ parts of a model; give the first, .*-00001-of-"):
        read_file(parts[1])
    renamed = parts[0].rename(parts[0].with_name("first.gguf"))
    with pytest.raises(
        GGUFImportError, match=r"in \d+ files \(split.count\), which have to be called \.\.\.-00001-of-"
    ):
        read_file(renamed)
    renamed.rename(parts[0])
    second = parts[1].read_bytes()
    parts[1].write_bytes(parts[2].read_bytes())
    with pytest.raises(GGUFImportError, match=r"-00002-of-.*: expected part 2 of"):
        read_file(parts[0])
    parts[1].unlink()
    with pytest.raises(GGUFImportError, match=r"files, and .*-00002-of-.* is missing"):
        read_file(parts[0])
    parts[1].write_bytes(second)
    for part in parts[1:]:
        part.write_bytes(part.read_bytes().replace(b"blk.1", b"blk.0"))
    with pytest.raises(GGUFImportError, match="is in another part, too"):
        read_file(parts[0])


def test_an_empty_file(tmp_path: Path):
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(GGUFImportError, match="empty"):
        read_file(tmp_path / "empty.gguf")


def _flip(data: bytearray, rng: random.Random, room: int) -> None:
    for _ in range(rng.choice((1, 1, 3, 8))):
        data[rng.randrange(room)] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, rng: random.Random, room: int) -> None:
    number = rng.choice((0, 1, 255, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1))
    place = rng.randrange(room - 8)
    data[place : place + 8] = number.to_bytes(8, "little")


def _cut(data: bytearray, rng: random.Random, room: int) -> None:
    del data[rng.randrange(len(data)) :]


def _repeat(data: bytearray, rng: random.Random, room: int) -> None:
    first = rng.randrange(room)
    data[first:first] = data[first : first + rng.randrange(64)]


MUTATIONS: tuple[Callable[[bytearray, random.Random, int], None], ...] = (_flip, _overwrite, _cut, _repeat)


def _check_mutations(data: bytes, seeds: range) -> None:
    """Each damaged file is read, or refused with a message; never anything else."""
    header = len(data) - 60_000 if len(data) > 70_000 else len(data) // 2
    refused = 0
    for seed in seeds:
        rng, damaged = random.Random(seed), bytearray(data)
        rng.choice(MUTATIONS)(damaged, rng, header)
        try:
            file = parse(bytes(damaged), "file")
        except GGUFImportError as error:
            refused += len(str(error)) < 500
            continue
        for each in file.tensors.values():
            packed = each.packed if isinstance(each, BlockArray) else each
            assert packed.nbytes <= len(damaged)
            packed.max(initial=0)
    assert refused > len(seeds) // 4


def test_damaged_files(data: bytes):
    _check_mutations(data, range(300))


@pytest.mark.slow
def test_many_damaged_files(data: bytes):
    _check_mutations(data, range(300, 10_300))
