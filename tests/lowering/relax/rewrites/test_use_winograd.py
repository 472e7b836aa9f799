"""Convolutions by Winograd's algorithm give what sums of products give, up to a bound of their rounding errors."""

import numpy as np
import pytest

from lowering import build
from lowering.relax_to_tir.winograd import BYTES, ConvolutionSizes, transformed_weights
from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from tests.support.programs import Tolerance, check_pass
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from xdsl_relax import run_passes

CHANNELS, FILTERS = 64, 48
SHAPES = [(0, 7, 7), (1, 1, 1), (2, 2, 5), (1, 8, 16), (1, 9, 13), (3, 17, 6)]
PADDINGS = ([1, 1, 1, 1], [0, 0, 0, 0], [2, 0, 1, 2])
BOUNDS = {2: 3.0, 4: 12.0}
"""Of the error, in roundings of the sum of the products' sizes that the square root of their number allows."""


def weights(filters: int, channels: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((filters, channels, 3, 3)).astype(np.float32)


def network(padding: list[int], filters: int = FILTERS, channels: int = CHANNELS, dilation: int = 1):
    """A convolution with a bias, a residual and an activation."""
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor(("n", channels, "h", "w")), "r": tensor(("n", filters, "p", "q"))}) as (
        x,
        r,
    ):
        y = op.nn.conv2d(x, builder.const(weights(filters, channels)), padding=padding, dilation=dilation)
        y = op.add(y, builder.const(np.linspace(-1, 1, filters, dtype=np.float32).reshape(filters, 1, 1)))
        builder.emit_func_output(op.nn.relu(op.add(y, r)))
    return builder.get()


def convolution(x: np.ndarray, w: np.ndarray, padding: list[int], dilation: int = 1, around: float = 0) -> np.ndarray:
    """The sum of products in `f64`; rows and columns are the last dimensions."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=around)
    reach = 2 * dilation + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (2, 3))[..., ::dilation, ::dilation]
    return np.einsum("nchwij,kcij->nkhw", windows, w.astype("f8"), optimize=True)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("tile", BOUNDS)
@pytest.mark.parametrize("padding", PADDINGS, ids=str)
def test_values(tile: int, padding: list[int], dilation: int):
    """At the edges of images, tiles and blocks; the bound is of the errors that ONNX Runtime's sums have, too."""
    target = Target.parse(f"host cores=2 winograd-tile={tile}")
    module = network(padding, dilation=dilation)
    main = VirtualMachine(build(module, target=target))["main"]
    rng, w = np.random.default_rng(1), weights(FILTERS, CHANNELS)
    for batch, height, width in SHAPES:
        x = rng.standard_normal((batch, CHANNELS, height, width)).astype(np.float32)
        rows, columns = height + sum(padding[::2]) - 2 * dilation, width + sum(padding[1::2]) - 2 * dilation
        if rows <= 0 or columns <= 0:
            continue
        r = rng.standard_normal((batch, FILTERS, rows, columns)).astype(np.float32)
        bias = np.linspace(-1, 1, FILTERS, dtype=np.float32).reshape(FILTERS, 1, 1)
        expected = np.maximum(convolution(x, w, padding, dilation) + bias + r, 0)
        sizes = convolution(np.abs(x), np.abs(w), padding, dilation) + 2
        got = np.from_dlpack(main(x, r))
        assert got.shape == expected.shape
        allowed = BOUNDS[tile] * np.finfo(np.float32).eps * sizes
        assert (np.abs(got - expected) <= allowed).all()


def test_the_pass_means_the_same():
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor(("n", 8, "h", "w", 8))}) as (x,):
        w = weights(64, 64).reshape(8, 8, 8, 8, 3, 3).transpose(0, 2, 4, 5, 3, 1)
        y = op.nn.conv2d(
            x,
            builder.const(np.ascontiguousarray(w)),
            padding=[1, 1, 1, 1],
            data_layout="NCHW8c",
            kernel_layout="OIHW8i8o",
        )
        builder.emit_func_output(y)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 8, 3, 4, 8)).astype(np.float32)
    for tile in BOUNDS:
        check_pass(
            builder.get(), f'use-winograd{{tile={tile} target="x86-64-v3"}}', [[x]], tolerance=Tolerance(1e-3, 1e-3)
        )


def byte_network(dtype: str, w: np.ndarray, around: float = 0, dilation: int = 1, *, whole: bool = True):
    """A quantised convolution, whose sums are the result if `whole`, else what they are quantised to."""
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor(("n", "h", "w", w.shape[-1]), dtype)}) as (x,):
        y = op.nn.pad(x, [0, 0, dilation, dilation, 1, 2, 0, 0], pad_value=around) if around else x
        layouts = {"data_layout": "NHWC", "kernel_layout": "OHWI", "out_dtype": "i32"}
        y = op.nn.conv2d(y, builder.const(w), dilation=dilation, **layouts)
        if not whole:
            y = op.round(op.multiply(op.astype(y, "f32"), 1e-3))
        builder.emit_func_output(y if whole else op.astype(y, "ui8"))
    return builder.get()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("data", "dtype"), [("ui8", np.int8), ("i8", np.int8), ("i8", np.uint8)], ids=str)
@pytest.mark.parametrize("dilation", [1, 2])
def test_bytes_are_exact(data: str, dtype: type, dilation: int):
    """In 16 bits, with a point of zero around the data, and one of each end; also quantised again."""
    rng = np.random.default_rng(2)
    w = rng.integers(*LIMITS[np.dtype(dtype).name], (40, 3, 3, 64), endpoint=True).astype(dtype)
    w[0], w[1] = LIMITS[np.dtype(dtype).name]
    for around, whole in ((0, True), (7, False)):
        module = byte_network(data, w, around, dilation, whole=whole)
        assert "@winograd_conv2d" in str(run_passes(module, 'use-winograd{target="x86-64-v3"}'))
        main = VirtualMachine(build(module, target=Target.parse("x86-64-v3 cores=2")))["main"]
        for batch, height, width in [(1, 6, 6), (2, 5, 9), (0, 5, 5), (1, 17, 12)]:
            kind = "uint8" if data == "ui8" else "int8"
            x = rng.integers(*LIMITS[kind], (batch, height, width, 64), endpoint=True).astype(kind)
            x[:, :, : width // 2], x[:, -1] = LIMITS[kind]
            padding = [dilation, 1, dilation, 2] if around else [0] * 4
            images, filters = x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2)
            expected = convolution(images, filters, padding, dilation, around).transpose(0, 2, 3, 1)
            if not whole:
                expected = np.clip(np.rint(expected.astype(np.float32) * np.float32(1e-3)), 0, 255)
            np.testing.assert_array_equal(np.from_dlpack(main(x)), expected)


LIMITS = {name: (np.iinfo(name).min, np.iinfo(name).max) for name in ("int8", "uint8")}


def test_the_pass_means_the_same_for_bytes():
    rng = np.random.default_rng(3)
    w = rng.integers(-128, 128, (16, 3, 3, 64)).astype(np.int8)
    x = rng.integers(0, 256, (1, 3, 4, 64)).astype(np.uint8)
    check_pass(byte_network("ui8", w, around=9), 'use-winograd{target="x86-64-v3"}', [[x]])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("around", [300, -1.5, float("nan")])
def test_what_is_around_bytes_is_converted_to_one(around: float):
    w = np.random.default_rng(3).integers(-128, 128, (16, 3, 3, 64)).astype(np.int8)
    x = np.random.default_rng(4).integers(0, 256, (1, 3, 4, 64)).astype(np.uint8)
    check_pass(byte_network("ui8", w, around=around), 'use-winograd{target="x86-64-v3"}', [[x]])


@pytest.mark.parametrize(("data", "channels"), [("ui8", 1824), ("i8", 3616)])
def test_sums_of_bytes_have_room(data: str, channels: int):
    """More channels could have sums, 4 times as large as those of the convolution, of more than 32 bits."""
    for count, is_made in ((channels, True), (channels + 32, False)):
        module = byte_network(data, np.full((16, 3, 3, count), -128, np.int8))
        made = str(run_passes(module, 'use-winograd{target="x86-64-v3"}'))
        assert ("winograd" in made) is is_made
    x = np.full((1, 5, 5, channels), 255 if data == "ui8" else -128, np.uint8 if data == "ui8" else np.int8)
    module = byte_network(data, np.full((16, 3, 3, channels), -128, np.int8))
    main = VirtualMachine(build(module, target=Target.parse("x86-64-v3 cores=2")))["main"]
    assert (np.from_dlpack(main(x)) == 9 * channels * int(x.flat[0]) * -128).all()


def test_where_it_is_profitable():
    """A tile is chosen by sizes: none where few positions have large weights, and no larger one than allowed."""
    assert ConvolutionSizes(64, 64, 56, 56, 8, 16).best_tile(2) == 2
    assert ConvolutionSizes(64, 64, 56, 56, 8, 16).best_tile(4) == 4
    assert ConvolutionSizes(512, 512, 2, 2, 8, 16).best_tile(4) is None
    assert ConvolutionSizes(64, 8, 56, 56, 8, 32).best_tile(4) is None
    # With dilation, tiles of neighbouring rows are interleaved, and reach further beyond the image.
    assert ConvolutionSizes(256, 256, 33, 33, 8, 16, dilation=2).best_tile(2) == 2
    assert ConvolutionSizes(256, 256, 33, 33, 8, 16, dilation=12).best_tile(2) is None
    assert ConvolutionSizes(16, 16, 28, 28, 8, 16, arithmetic=BYTES).best_tile(2) is None
    assert ConvolutionSizes(64, 64, 28, 28, 8, 16, arithmetic=BYTES).best_tile(4) == 2


@pytest.mark.parametrize(("outputs", "inputs"), [(3, 2), (10_000, 3)], ids=["at once", "in steps"])
def test_weights_are_rounded_once(outputs: int, inputs: int):
    w = weights(outputs, inputs)
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    expected = np.einsum("ar,oirs,bs->abio", g, w.astype("f8"), g).reshape(16, inputs, outputs)
    np.testing.assert_array_equal(transformed_weights(w, 2), expected.astype(np.float32))


@pytest.mark.parametrize("tile", [3, -1])
def test_options(tile: int):
    with pytest.raises(ValueError, match=r"tile expected one of 0, 1, 2, 4"):
        check_pass(network([1, 1, 1, 1]), f"use-winograd{{tile={tile}}}", [])
    with pytest.raises(ValueError, match="winograd"):
        Target.parse(f"host winograd-tile={tile}")
