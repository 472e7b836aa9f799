"""Operators that rearrange elements, against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import Programs, random
from tests.support.programs import MODES

LAYOUT = "relax.layout_transform %x source = {} target = {}"
IMAGE = "%x: !relax.tensor<[n, c, h, w], f32>"
PROGRAMS = Programs(
    {
        "reverse": (
            "%x: !relax.tensor<[n, m, k], f32>, %l: !relax.tensor<[n], i64>",
            "relax.reverse_sequence %x, %l",
        ),
        "reverse_time": (
            "%x: !relax.tensor<[n, m], i8>, %l: !relax.tensor<[m], i32>",
            "relax.reverse_sequence %x, %l seq_axis = 0 batch_axis = -1",
        ),
        "grid": (
            "%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %z: !relax.tensor<[k], f32>",
            "%a, %b, %c = relax.meshgrid %x, %y, %z",
        ),
        "grid_xy": (
            "%x: !relax.tensor<[n], i64>, %y: !relax.tensor<[m], i64>",
            '%a, %b = relax.meshgrid %x, %y indexing = "xy"',
        ),
        "last": (IMAGE, LAYOUT.format('"NCHW"', '"NHWC"')),
        "blocks": (IMAGE, LAYOUT.format('"NCHW"', '"NCHW4c"')),
        "joined": ("%x: !relax.tensor<[n, c, h, w, 4], f32>", LAYOUT.format('"NCHW4c"', '"NHWC"')),
        "other": ("%x: !relax.tensor<[m, n, 2, 3], f32>", LAYOUT.format('"AB2a3b"', '"BA5b"')),
        "samples": (
            "%p: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[k, 1], f32>, %r: !relax.tensor<[k, 1], i64>",
            "relax.multinomial_from_uniform %p, %u, %r dtype = i32",
        ),
    }
)


@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 1, 1), (4, 5, 2), (3, 0, 2)])
def test_reverse_sequence(shape: tuple[int, int, int]):
    x, lengths = random("f32", *shape), np.arange(shape[0]) * 2 % (shape[1] + 1)
    expected = x.copy()
    for batch, length in enumerate(lengths):
        expected[batch, :length] = x[batch, :length][::-1]
    PROGRAMS.check("reverse", [x, lengths], expected)
    y, lengths = random("i8", *shape[:2]), np.full(shape[1], shape[0] - 1 if shape[0] else 0, np.int32)
    expected = y.copy()
    expected[: shape[0] - 1] = y[: shape[0] - 1][::-1]
    PROGRAMS.check("reverse_time", [y, lengths], expected if shape[0] else y)


@pytest.mark.parametrize("sizes", [(0, 2, 3), (1, 1, 1), (2, 3, 4)])
def test_meshgrid(sizes: tuple[int, int, int]):
    vectors = [random("f32", size, seed=size) for size in sizes]
    expected = np.meshgrid(*vectors, indexing="ij")
    PROGRAMS.check("grid", vectors, tuple(each.copy() for each in expected))
    vectors = [random("i64", size, seed=size) for size in sizes[:2]]
    PROGRAMS.check("grid_xy", vectors, tuple(each.copy() for each in np.meshgrid(*vectors)))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 5, 3, 2), (0, 3, 2, 2), (1, 8, 2, 3)])
def test_layout_transform(shape: tuple[int, int, int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("last", [x], x.transpose(0, 2, 3, 1).copy())
    n, c, h, w = shape
    wide = np.zeros((n, -(-c // 4) * 4, h, w), np.float32)
    wide[:, :c] = x
    blocks = wide.reshape(n, wide.shape[1] // 4, 4, h, w).transpose(0, 1, 3, 4, 2).copy()
    PROGRAMS.check("blocks", [x], blocks)
    PROGRAMS.check("joined", [blocks], wide.transpose(0, 2, 3, 1).copy())
    y = random("f32", shape[1], shape[0], 2, 3)
    whole = y.transpose(1, 3, 0, 2).reshape(3 * shape[0], 2 * shape[1])
    wide = np.zeros((-(-whole.shape[0] // 5) * 5, whole.shape[1]), np.float32)
    wide[: whole.shape[0]] = whole
    PROGRAMS.check("other", [y], wide.reshape(wide.shape[0] // 5, 5, whole.shape[1]).transpose(0, 2, 1).copy())


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 8), (2, 4, 0)])
def test_multinomial(sizes: tuple[int, int, int]):
    n, m, k = sizes
    probabilities = np.full((n, m), 1 / 8, np.float32)
    uniform = random("f32", k, 1, low=0, high=1)
    rows = np.arange(k).reshape(-1, 1) % n
    expected = np.minimum(np.floor(uniform * 8), m - 1).astype(np.int32)
    PROGRAMS.check("samples", [probabilities, uniform, rows], expected)


@pytest.mark.parametrize("mode", MODES)
def test_multinomial_of_rows_that_do_not_exist(mode: str):
    """The nearest row counts; without rows there are no samples."""
    sample = PROGRAMS.runners[mode]("samples")
    probabilities = np.array([[1, 0], [0.5, 0], [0, 1]], np.float32)
    rows, uniform = np.array([[-1], [7], [2**40]]), np.full((3, 1), 0.75, np.float32)
    np.testing.assert_array_equal(np.asarray(sample(probabilities, uniform, rows)), [[0], [1], [1]])
    with pytest.raises(ValueError, match="a row of probabilities for each number"):
        sample(probabilities[:0], uniform, rows)
