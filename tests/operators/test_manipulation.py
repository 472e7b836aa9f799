"""Operators that move elements and change shapes, against NumPy, in every mode."""

import numpy as np
import pytest
import tvm_ffi

from tests.operators.support import MODES, Programs, random

CUBE = "%x: !relax.tensor<[n, m, k], f32>"
MATRIX = "%x: !relax.tensor<[n, m], f32>"
PROGRAMS = Programs(
    {
        "reshape": (MATRIX, "%s = relax.shape [m, n]; relax.reshape %x, %s"),
        "reshape_data": (f"{MATRIX}, %s: !relax.shape<[_, _]>", "relax.reshape %x, %s"),
        "flatten": (CUBE, "relax.flatten %x"),
        "reversed": (CUBE, "relax.permute_dims %x"),
        "permute": (CUBE, "relax.permute_dims %x axes = [1, -1, 0]"),
        "permute_i8": ("%x: !relax.tensor<[n, m], i8>", "relax.permute_dims %x axes = [1, 0]"),
        "expand": (MATRIX, "relax.expand_dims %x axes = [0, -1]"),
        "squeeze": ("%x: !relax.tensor<[1, n, 1], f32>", "relax.squeeze %x axes = [0]"),
        "squeeze_all": ("%x: !relax.tensor<[1, 3, 1], f32>", "relax.squeeze %x"),
        "squeeze_unknown": (MATRIX, "relax.squeeze %x axes = [1]"),
        "broadcast": ("%x: !relax.tensor<[n, 1], f32>, %s: !relax.shape<[k, n, m]>", "relax.broadcast_to %x, %s"),
        "broadcast_unknown": (f"{MATRIX}, %s: !relax.shape<[k, l]>", "relax.broadcast_to %x, %s"),
        "broadcast_data": ("%x: !relax.tensor<[n], f32>, %s: !relax.shape<[_, _]>", "relax.broadcast_to %x, %s"),
        "flip": (CUBE, "relax.flip %x axis = 1"),
        "flip_ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.flip %x axis = -1"),
    }
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 1, 1), (2, 3, 5), (2, 1, 4)])
def test_cube(shape: tuple[int, int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("flatten", [x], x.reshape(-1))
    PROGRAMS.check("reversed", [x], np.ascontiguousarray(x.T))
    PROGRAMS.check("permute", [x], np.ascontiguousarray(x.transpose(1, 2, 0)))
    PROGRAMS.check("flip", [x], x[:, ::-1].copy())


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 5)])
def test_matrix(shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("reshape", [x], x.reshape(shape[::-1]))
    PROGRAMS.check("reshape_data", [x, tvm_ffi.Shape((shape[1], shape[0]))], x.reshape(shape[::-1]))
    PROGRAMS.check("expand", [x], x[None, :, :, None])
    PROGRAMS.check("flip_ranked", [x], x[:, ::-1].copy())
    y = random("i8", *shape)
    PROGRAMS.check("permute_i8", [y], y.T.copy())


@pytest.mark.parametrize("size", [0, 1, 5])
def test_squeeze(size: int):
    PROGRAMS.check("squeeze", [random("f32", 1, size, 1)], random("f32", 1, size, 1)[0])
    PROGRAMS.check("squeeze_unknown", [random("f32", size, 1)], random("f32", size, 1)[:, 0])
    PROGRAMS.check("squeeze_all", [random("f32", 1, 3, 1)], random("f32", 1, 3, 1).reshape(3))


@pytest.mark.parametrize("target", [(2, 3, 4), (1, 0, 4), (0, 3, 1)])
def test_broadcast(target: tuple[int, int, int]):
    x = random("f32", target[1], 1)
    PROGRAMS.check("broadcast", [x, tvm_ffi.Shape(target)], np.broadcast_to(x, target).copy())


@pytest.mark.parametrize(("shape", "target"), [((1, 4), (3, 4)), ((3, 1), (3, 4)), ((1, 1), (0, 4)), ((3, 4), (3, 4))])
def test_broadcast_that_is_decided_at_run_time(shape: tuple[int, int], target: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("broadcast_unknown", [x, tvm_ffi.Shape(target)], np.broadcast_to(x, target).copy())
    PROGRAMS.check("broadcast_data", [x[0], tvm_ffi.Shape(target)], np.broadcast_to(x[0], target).copy())


@pytest.mark.parametrize("mode", MODES)
def test_shapes_that_do_not_fit(mode: str):
    runner = PROGRAMS.runners[mode]
    with pytest.raises(ValueError, match=r"equally many elements|cannot reshape"):
        runner("reshape_data")(random("f32", 2, 3), tvm_ffi.Shape((2, 2)))
    with pytest.raises(ValueError, match="dimension 1 to be 1"):
        runner("squeeze_unknown")(random("f32", 2, 3))
    with pytest.raises(ValueError, match=r"dimensions that broadcast|a dimension that is 1"):
        runner("broadcast_unknown")(random("f32", 2, 3), tvm_ffi.Shape((2, 4)))


LAYERS_PROGRAMS = Programs(
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
    LAYERS_PROGRAMS.check("flatten", [x], x.reshape(shape[0], shape[1] * shape[2]))
    LAYERS_PROGRAMS.check("dropout", [x[..., 0].copy() if shape[2] else x.reshape(2, 0)], np.exp(x[..., 0]))
    y = random("i8", shape[0])
    LAYERS_PROGRAMS.check("flatten_vector", [y], y.reshape(-1, 1))


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
    LAYERS_PROGRAMS.check("shuffle", [x], _shuffled(x, 2))
    y = random("f32", 9 * shape[0], *shape[2:])
    LAYERS_PROGRAMS.check("shuffle_ranked", [y], _shuffled(y, 3))


@pytest.mark.parametrize("mode", MODES)
def test_channels_that_do_not_fit(mode: str):
    with pytest.raises(ValueError, match=r"channels in multiples of 9|result of|cannot reshape"):
        LAYERS_PROGRAMS.runners[mode]("shuffle_ranked")(random("f32", 4, 2, 2))
