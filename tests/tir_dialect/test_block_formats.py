"""Block-quantised formats against `gguf.quants`, which is their reference in NumPy."""

import gguf
import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import each
from tir_dialect.block_arrays import ENCODERS, decode, encode, encode_integers
from tir_dialect.block_formats import FORMATS, BlockFormat

each_format = each([found for found in FORMATS.values() if not found.name.endswith("_f32")], lambda each: each.name)


def _kind(block_format: BlockFormat) -> GGMLQuantizationType:
    return next(kind for kind in GGMLQuantizationType if kind.name.lower() == block_format.name)


@each_format
def test_sizes_are_those_of_the_file_format(block_format: BlockFormat):
    assert gguf.GGML_QUANT_SIZES[_kind(block_format)] == (block_format.elements, block_format.bytes)
    assert block_format.columns(block_format.row_bytes(3 * block_format.elements)) == 3 * block_format.elements


@each_format
def test_any_bytes_are_decoded_to_the_same_bits(block_format: BlockFormat):
    """Scales that are infinite or NaN included, as any bytes may be in a file."""
    packed = np.random.default_rng(0).integers(0, 256, (5000, 3 * block_format.bytes), np.uint8)
    with np.errstate(all="ignore"):
        expected = quants.dequantize(packed, _kind(block_format))
    found = decode(packed, block_format)
    assert found.dtype == np.float32
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    np.testing.assert_array_equal(found.view(np.uint32)[~is_nan], expected.view(np.uint32)[~is_nan])


@each_format
def test_shapes(block_format: BlockFormat):
    bytes_, elements = block_format.bytes, block_format.elements
    for shape in ((0, bytes_), (2, 0), (2, 3, 2 * bytes_), (bytes_,)):
        found = decode(np.zeros(shape, np.uint8), block_format)
        assert found.shape == (*shape[:-1], shape[-1] // bytes_ * elements)
    strided = np.random.default_rng(1).integers(0, 64, (4, 2 * bytes_), np.uint8)[::2]
    np.testing.assert_array_equal(decode(strided, block_format), decode(strided.copy(), block_format))
    for wrong in (np.zeros((2, bytes_ + 1), np.uint8), np.zeros(bytes_, np.int8), np.zeros((), np.uint8)):
        with pytest.raises(ValueError, match=f"multiple of {bytes_}"):
            decode(wrong, block_format)


@pytest.mark.parametrize("name", ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4"])
@given(sixteenths=hnp.arrays(np.int32, (3, 64), elements=st.integers(-100_000, 100_000)))
def test_encoders_round_as_the_reference(name: str, sixteenths: np.ndarray):
    blocks = sixteenths.astype(np.float32) / 16
    with np.errstate(all="ignore"):
        expected = quants.quantize(blocks, _kind(FORMATS[name]))
    np.testing.assert_array_equal(encode(blocks, FORMATS[name]), expected)


@pytest.mark.parametrize("name", [name for name in ENCODERS if not name.endswith("_f32")])
def test_tiny_numbers_become_zeros(name: str):
    """Their step has no inverse."""
    count = FORMATS[name].elements
    tiny = np.full((1, count), 1e-45, np.float32) * (np.arange(count, dtype=np.float32) % 32)
    assert np.abs(decode(encode(tiny, FORMATS[name]), FORMATS[name])).max() == 0


@pytest.mark.parametrize("name", ENCODERS)
def test_what_is_encoded_is_near(name: str):
    """Half a step of the block, and what its scales are off; numbers of one sign, equal ones and zeros included."""
    block_format = FORMATS[name]
    numbers = np.random.default_rng(2).standard_normal((7, 3 * block_format.elements)).astype(np.float32)
    numbers[1], numbers[2], numbers[3], numbers[4] = np.abs(numbers[1]) + 1, -np.abs(numbers[2]), 0.75, 0
    # The step at the greatest magnitude: that of `mxfp4` is 2, and its range is between 4 and 8.
    step = np.abs(numbers).max(axis=-1, keepdims=True) * (0.5 if name == "mxfp4" else 2 / (2 ** int(name[1]) - 1))
    found = decode(encode(numbers, block_format), block_format)
    assert (np.abs(found - numbers) <= (0.6 if block_format.elements == 32 else 0.75) * step).all()
    again = decode(encode(found, block_format), block_format)
    assert (np.abs(again - found) <= 0.6 * step).all()


@pytest.mark.parametrize(
    ("name", "most"),
    [("q8_0", 0.006), ("u8_f32", 0.005), ("q6_k", 0.02), ("q5_k", 0.045), ("q4_k", 0.09), ("mxfp4", 0.13)],
)
def test_errors_of_normal_numbers(name: str, most: float):
    """Of the root of the mean square, relative."""
    numbers = np.random.default_rng(3).standard_normal((64, 512)).astype(np.float32)
    error = decode(encode(numbers, FORMATS[name]), FORMATS[name]) - numbers
    assert np.sqrt((error**2).mean()) < most * np.sqrt((numbers**2).mean())


def test_what_cannot_be_encoded():
    with pytest.raises(ValueError, match="no encoder of q2_k"):
        encode(np.zeros((1, 256), np.float32), FORMATS["q2_k"])
    with pytest.raises(ValueError, match="multiple of 32"):
        encode(np.zeros((1, 33), np.float32), FORMATS["q8_0"])
    with pytest.raises(ValueError, match="finite"):
        encode(np.full((1, 32), np.inf, np.float32), FORMATS["q8_0"])


@pytest.mark.parametrize("bits", [4, 8])
def test_integers_with_scales_of_32_bits(bits: int):
    """The formats for ONNX: exactly `(integers - zero) * scale`."""
    rng = np.random.default_rng(bits)
    integers = rng.integers(0, 1 << bits, (3, 64))
    scale, zero = rng.standard_normal((3, 2)).astype(np.float32), rng.integers(0, 1 << bits, (3, 2))
    found = encode_integers(integers, scale, zero, bits)
    spread = [np.repeat(each.astype(np.float32), 32, axis=-1) for each in (scale, zero)]
    assert found.packed.nbytes == 6 * (8 + 4 * bits)
    assert found.shape == (3, 64)
    np.testing.assert_array_equal(found.decoded(), (integers.astype(np.float32) - spread[1]) * spread[0])
