"""Padding against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
ROWS = "0, 0, 1, 0, 9, 2"
ROW_DTYPES = ("i8", "f16", "f32", "i64")
PROGRAMS = Programs(
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
    PROGRAMS.check(name, [x], np.pad(x, ((1, 2), (0, 3)), NUMPY_MODES[name]))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7)])
def test_value(shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("value", [x], np.pad(x, ((0, 0), (1, 1)), constant_values=-2.5))
    PROGRAMS.check("constant", [x], np.pad(x, ((1, 2), (0, 3))))
    PROGRAMS.check("ranked", [x], np.pad(x, ((0, 1), (1, 0))))
    if shape[0] >= 1 and shape[1] >= 1:
        expected = np.pad(x, ((0, 2), (1, 0)))[1:, : shape[1] - 1]
        PROGRAMS.check("cut", [x], np.ascontiguousarray(expected))
    y, z = random("i8", shape[0]), random("bf16", shape[0])
    PROGRAMS.check("value_i8", [y], np.pad(y, (2, 1), constant_values=7))
    PROGRAMS.check("value_bf16", [z], np.pad(z.astype(np.float32), (2, 1)).astype(z.dtype))


@pytest.mark.parametrize("name", NUMPY_MODES)
@pytest.mark.parametrize("shape", [(2, 3), (5, 4), (3, 9)])
def test_what_is_cut_is_not_repeated(name: str, shape: tuple[int, int]):
    x = random("f32", *shape)
    expected = np.pad(x[1:, : shape[1] - 2], ((0, 4), (3, 0)), NUMPY_MODES[name])
    PROGRAMS.check(f"cut_{name}", [x], expected)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_to_repeat(mode: str):
    for name in ("cut_reflect", "cut_replicate", "cut_circular"):
        with pytest.raises(ValueError, match="an element to repeat"):
            PROGRAMS.runners[mode](name)(random("f32", 2, 2))


@pytest.mark.parametrize("width", [0, 1, 3, 7, 8, 17, 32, 45])
def test_rows_of_every_length(width: int):
    """Shorter than a vector, as long as one, and longer, of elements of every size."""
    for dtype in ROW_DTYPES:
        x = random(dtype, 2, 3, width)
        PROGRAMS.check(f"rows_{dtype}", [x], np.pad(x, ((0, 0), (1, 0), (9, 2))))
    y = random("i1", width)
    PROGRAMS.check("value_i1", [y], np.pad(y, (2, 1), constant_values=True))


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_cannot_be(mode: str):
    for name in ("reflect", "replicate", "circular"):
        with pytest.raises(ValueError, match="an element to repeat"):
            PROGRAMS.runners[mode](name)(random("f32", 0, 2))
    with pytest.raises(ValueError, match="a dimension that does not become negative"):
        PROGRAMS.runners[mode]("cut")(random("f32", 1, 0))
