"""Operators that rearrange elements, against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

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


MATRIX = "%x: !relax.tensor<[n, m], f32>"
NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
ROWS = "0, 0, 1, 0, 9, 2"
ROW_DTYPES = ("i8", "f16", "f32", "i64")
PADDING_PROGRAMS = Programs(
    {
        **{name: (MATRIX, f'relax.nn.pad %x pad_width = [1, 2, 0, 3] mode = "{name}"') for name in NUMPY_MODES},
        "value": (MATRIX, "relax.nn.pad %x pad_width = [0, 0, 1, 1] pad_value = -2.5"),
        "value_i8": ("%x: !relax.tensor<[n], i8>", "relax.nn.pad %x pad_width = [2, 1] pad_value = 7.0"),
        "value_bf16": ("%x: !relax.tensor<[n], bf16>", "relax.nn.pad %x pad_width = [2, 1]"),
        "value_i1": ("%x: !relax.tensor<[n], i1>", "relax.nn.pad %x pad_width = [2, 1] pad_value = 0.5"),
        **{
            f"rows_{dtype}": (f"%x: !relax.tensor<[2, n, m], {dtype}>", f"relax.nn.pad %x pad_width = [{ROWS}]")
            for dtype in ROW_DTYPES
        },
        "cut": (MATRIX, "relax.nn.pad %x pad_width = [-1, 2, 1, -2]"),
        **{
            f"cut_{name}": (MATRIX, f'relax.nn.pad %x pad_width = [-1, 4, 3, -2] mode = "{name}"')
            for name in NUMPY_MODES
        },
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.nn.pad %x pad_width = [0, 1, 1, 0]"),
    }
)


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (7, 4)])
@pytest.mark.parametrize("name", NUMPY_MODES)
def test_mode(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    PADDING_PROGRAMS.check(name, [x], np.pad(x, ((1, 2), (0, 3)), NUMPY_MODES[name]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7)])
def test_value(shape: tuple[int, int]):
    x = random("f32", *shape)
    PADDING_PROGRAMS.check("value", [x], np.pad(x, ((0, 0), (1, 1)), constant_values=-2.5))
    PADDING_PROGRAMS.check("constant", [x], np.pad(x, ((1, 2), (0, 3))))
    PADDING_PROGRAMS.check("ranked", [x], np.pad(x, ((0, 1), (1, 0))))
    if shape[0] >= 1 and shape[1] >= 1:
        expected = np.pad(x, ((0, 2), (1, 0)))[1:, : shape[1] - 1]
        PADDING_PROGRAMS.check("cut", [x], np.ascontiguousarray(expected))
    y, z = random("i8", shape[0]), random("bf16", shape[0])
    PADDING_PROGRAMS.check("value_i8", [y], np.pad(y, (2, 1), constant_values=7))
    PADDING_PROGRAMS.check("value_bf16", [z], np.pad(z.astype(np.float32), (2, 1)).astype(z.dtype))


@pytest.mark.parametrize("name", NUMPY_MODES)
@pytest.mark.parametrize("shape", [(2, 3), (5, 4), (3, 9)])
def test_what_is_cut_is_not_repeated(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    expected = np.pad(x[1:, : shape[1] - 2], ((0, 4), (3, 0)), NUMPY_MODES[name])
    PADDING_PROGRAMS.check(f"cut_{name}", [x], expected)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_to_repeat(mode: str):
    for name in ("cut_reflect", "cut_replicate", "cut_circular"):
        with pytest.raises(ValueError, match="an element to repeat"):
            PADDING_PROGRAMS.runners[mode](name)(random("f32", 2, 2))


@pytest.mark.parametrize("width", [0, 1, 3, 7, 8, 17, 32, 45])
def test_rows_of_every_length(width: int):
    """Shorter than a vector, as long as one, and longer, of elements of every size."""
    for dtype in ROW_DTYPES:
        x = random(dtype, 2, 3, width)
        PADDING_PROGRAMS.check(f"rows_{dtype}", [x], np.pad(x, ((0, 0), (1, 0), (9, 2))))
    y = random("i1", width)
    PADDING_PROGRAMS.check("value_i1", [y], np.pad(y, (2, 1), constant_values=True))


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_cannot_be(mode: str):
    for name in ("reflect", "replicate", "circular"):
        with pytest.raises(ValueError, match="an element to repeat"):
            PADDING_PROGRAMS.runners[mode](name)(random("f32", 0, 2))
    with pytest.raises(ValueError, match="a dimension that does not become negative"):
        PADDING_PROGRAMS.runners[mode]("cut")(random("f32", 1, 0))


MAP = "relax.map_indices %x index_map = affine_map<{}>{}"
INDEX_MAPS_MATRIX = "%x: !relax.tensor<[n, m], {}>"
INDEX_MAPS_PROGRAMS = Programs(
    {
        "swap": (INDEX_MAPS_MATRIX.format("f32"), MAP.format("(d0, d1) -> (d1, d0)", "")),
        "blocks": (
            INDEX_MAPS_MATRIX.format("f32"),
            MAP.format("(d0, d1) -> (d1 floordiv 4, d0 ceildiv 1, d1 mod 4)", " pad_value = 2.5"),
        ),
        "digits": (
            "%x: !relax.tensor<[n], i32>",
            MAP.format("(d0) -> (d0 mod 2, d0 floordiv 6, (d0 floordiv 2) mod 3)", " pad_value = -1.0"),
        ),
        "flat": ("%x: !relax.tensor<[n, 3, 5], f16>", MAP.format("(d0, d1, d2) -> (d0 * 15 + d1 * 5 + d2)", "")),
        "spread": ("%x: !relax.tensor<[n], ui8>", MAP.format("(d0) -> (d0 * 3 + 1)", "")),
        "rank_0": ("%x: !relax.tensor<[], f32>", MAP.format("() -> ()", "")),
    }
)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 8), (2, 5)])
def test_matrices(shape: tuple[int, int]):
    x = random("f32", *shape)
    INDEX_MAPS_PROGRAMS.check("swap", [x], x.T.copy())
    n, m = shape
    padded = np.full((n, -(-m // 4) * 4), 2.5, np.float32)
    padded[:, :m] = x
    INDEX_MAPS_PROGRAMS.check("blocks", [x], padded.reshape(n, padded.shape[1] // 4, 4).transpose(1, 0, 2).copy())


@pytest.mark.parametrize("length", [1, 6, 14])
def test_vectors(length: int):
    x = random("i32", length)
    padded = np.full(-(-length // 6) * 6, -1, np.int32)
    padded[:length] = x
    INDEX_MAPS_PROGRAMS.check("digits", [x], padded.reshape(-1, 3, 2).transpose(2, 0, 1).copy())
    y = random("f16", length, 3, 5)
    INDEX_MAPS_PROGRAMS.check("flat", [y], y.reshape(-1))
    z = random("ui8", length)
    spread = np.zeros(3 * length - 1, np.uint8)
    spread[1::3] = z
    INDEX_MAPS_PROGRAMS.check("spread", [z], spread)


def test_scalar():
    INDEX_MAPS_PROGRAMS.check("rank_0", [random("f32")], random("f32"))
