"""Dropout, flattening and pixel shuffle against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

PROGRAMS = Programs(
    {
        "dropout": ("%x: !relax.tensor<[n, m], f32>", "%y = relax.nn.dropout %x rate = 0.3; relax.exp %y"),
        "flatten": ("%x: !relax.tensor<[n, m, k], f32>", "relax.nn.batch_flatten %x"),
        "flatten_vector": ("%x: !relax.tensor<[_], i8>", "relax.nn.batch_flatten %x"),
        "shuffle": ("%x: !relax.tensor<[n, 4 * c, h, w], f32>", "relax.nn.pixel_shuffle %x upscale_factor = 2"),
        "shuffle_ranked": ("%x: !relax.tensor<[_, _, _], f32>", "relax.nn.pixel_shuffle %x upscale_factor = 3"),
    }
)


@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 1, 1), (2, 0, 3), (2, 3, 5)])
def test_dropout_and_flatten(shape: tuple[int, int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("flatten", [x], x.reshape(shape[0], shape[1] * shape[2]))
    PROGRAMS.check("dropout", [x[..., 0].copy() if shape[2] else x.reshape(2, 0)], np.exp(x[..., 0]))
    y = random("i8", shape[0])
    PROGRAMS.check("flatten_vector", [y], y.reshape(-1, 1))


def _shuffled(x: np.ndarray, factor: int) -> np.ndarray:
    *outer, channels, height, width = x.shape
    result = np.zeros((*outer, channels // factor**2, height * factor, width * factor), x.dtype)
    for i in range(factor):
        for j in range(factor):
            result[..., i::factor, j::factor] = x[..., i * factor + j :: factor**2, :, :]
    return result


@pytest.mark.parametrize("shape", [(0, 4, 2, 3), (1, 4, 1, 1), (2, 8, 3, 5)])
def test_pixel_shuffle(shape: tuple[int, int, int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("shuffle", [x], _shuffled(x, 2))
    y = random("f32", 9 * shape[0], *shape[2:])
    PROGRAMS.check("shuffle_ranked", [y], _shuffled(y, 3))


@pytest.mark.parametrize("mode", MODES)
def test_channels_that_do_not_fit(mode: str):
    with pytest.raises(ValueError, match=r"channels in multiples of 9|result of|cannot reshape"):
        PROGRAMS.runners[mode]("shuffle_ranked")(random("f32", 4, 2, 2))
