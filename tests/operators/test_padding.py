"""Padding against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
PROGRAMS = Programs(
    {
        **{name: (MATRIX, f'relax.nn.pad %x pad_width = [1, 2, 0, 3] mode = "{name}"') for name in NUMPY_MODES},
        "value": (MATRIX, "relax.nn.pad %x pad_width = [0, 0, 1, 1] pad_value = -2.5"),
        "value_i8": ("%x: !relax.tensor<[n], i8>", "relax.nn.pad %x pad_width = [2, 1] pad_value = 7.0"),
        "value_bf16": ("%x: !relax.tensor<[n], bf16>", "relax.nn.pad %x pad_width = [2, 1]"),
        "cut": (MATRIX, "relax.nn.pad %x pad_width = [-1, 2, 1, -2]"),
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


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_cannot_be(mode: str):
    for name in ("reflect", "replicate", "circular"):
        with pytest.raises(ValueError, match="an element to repeat"):
            PROGRAMS.runners[mode](name)(random("f32", 0, 2))
    with pytest.raises(ValueError, match="a dimension that does not become negative"):
        PROGRAMS.runners[mode]("cut")(random("f32", 1, 0))
