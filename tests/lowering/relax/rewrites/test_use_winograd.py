"""Convolutions by Winograd's algorithm give what sums of products give, up to a bound of their rounding errors."""

import numpy as np
import pytest

from lowering import build
from lowering.relax_to_tir.winograd import ConvolutionSizes, transformed_weights
from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from tests.support.programs import Tolerance, check_pass
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

CHANNELS, FILTERS = 64, 48
SHAPES = [(0, 7, 7), (1, 1, 1), (2, 2, 5), (1, 8, 16), (1, 9, 13), (3, 17, 6)]
PADDINGS = ([1, 1, 1, 1], [0, 0, 0, 0], [2, 0, 1, 2])
BOUNDS = {2: 3.0, 4: 12.0}
"""Of the error, in roundings of the sum of the products' sizes that the square root of their number allows."""


def weights(filters: int, channels: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((filters, channels, 3, 3)).astype(np.float32)


def network(padding: list[int], filters: int = FILTERS, channels: int = CHANNELS):
    """A convolution with a bias, a residual and an activation."""
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor(("n", channels, "h", "w")), "r": tensor(("n", filters, "p", "q"))}) as (
        x,
        r,
    ):
        y = op.nn.conv2d(x, builder.const(weights(filters, channels)), padding=padding)
        y = op.add(y, builder.const(np.linspace(-1, 1, filters, dtype=np.float32).reshape(filters, 1, 1)))
        builder.emit_func_output(op.nn.relu(op.add(y, r)))
    return builder.get()


def convolution(x: np.ndarray, w: np.ndarray, padding: list[int]) -> np.ndarray:
    """The sum of products in `f64`."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows, w.astype("f8"), optimize=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tile", BOUNDS)
@pytest.mark.parametrize("padding", PADDINGS, ids=str)
def test_values(tile: int, padding: list[int]):
    """At the edges of images, tiles and blocks; the bound is of the errors that ONNX Runtime's sums have, too."""
    target = Target.parse(f"host cores=2 winograd-tile={tile}")
    main = VirtualMachine(build(network(padding), target=target))["main"]
    rng, w = np.random.default_rng(1), weights(FILTERS, CHANNELS)
    for batch, height, width in SHAPES:
        x = rng.standard_normal((batch, CHANNELS, height, width)).astype(np.float32)
        rows, columns = height + padding[0] + padding[2] - 2, width + padding[1] + padding[3] - 2
        if rows <= 0 or columns <= 0:
            continue
        r = rng.standard_normal((batch, FILTERS, rows, columns)).astype(np.float32)
        bias = np.linspace(-1, 1, FILTERS, dtype=np.float32).reshape(FILTERS, 1, 1)
        expected = np.maximum(convolution(x, w, padding) + bias + r, 0)
        sizes = convolution(np.abs(x), np.abs(w), padding) + 2
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


def test_where_it_is_profitable():
    """A tile is chosen by sizes: none where few positions have large weights, and no larger one than allowed."""
    assert ConvolutionSizes(64, 64, 56, 56, 8, 16).best_tile(2) == 2
    assert ConvolutionSizes(64, 64, 56, 56, 8, 16).best_tile(4) == 4
    assert ConvolutionSizes(512, 512, 2, 2, 8, 16).best_tile(4) is None
    assert ConvolutionSizes(64, 8, 56, 56, 8, 32).best_tile(4) is None


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
