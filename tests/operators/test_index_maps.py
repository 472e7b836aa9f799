"""Tensors in the order of an index map, against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import Programs, random

MAP = "relax.map_indices %x index_map = affine_map<{}>{}"
MATRIX = "%x: !relax.tensor<[n, m], {}>"
PROGRAMS = Programs(
    {
        "swap": (MATRIX.format("f32"), MAP.format("(d0, d1) -> (d1, d0)", "")),
        "blocks": (
            MATRIX.format("f32"),
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
    PROGRAMS.check("swap", [x], x.T.copy())
    n, m = shape
    padded = np.full((n, -(-m // 4) * 4), 2.5, np.float32)
    padded[:, :m] = x
    PROGRAMS.check("blocks", [x], padded.reshape(n, padded.shape[1] // 4, 4).transpose(1, 0, 2).copy())


@pytest.mark.parametrize("length", [1, 6, 14])
def test_vectors(length: int):
    x = random("i32", length)
    padded = np.full(-(-length // 6) * 6, -1, np.int32)
    padded[:length] = x
    PROGRAMS.check("digits", [x], padded.reshape(-1, 3, 2).transpose(2, 0, 1).copy())
    y = random("f16", length, 3, 5)
    PROGRAMS.check("flat", [y], y.reshape(-1))
    z = random("ui8", length)
    spread = np.zeros(3 * length - 1, np.uint8)
    spread[1::3] = z
    PROGRAMS.check("spread", [z], spread)


def test_scalar():
    PROGRAMS.check("rank_0", [random("f32")], random("f32"))
