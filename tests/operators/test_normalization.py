"""Normalisation against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import DTYPES, Programs, Tolerance, random, wide

MATRIX = "%x: !relax.tensor<[n, m], {0}>"
IMAGE = "%x: !relax.tensor<[n, c, h, w], f32>"
CHANNELS = "%g: !relax.tensor<[c], f32>, %b: !relax.tensor<[c], f32>"
ROWS = "%g: !relax.tensor<[m], {0}>, %b: !relax.tensor<[m], {0}>"
LAYER = "relax.nn.layer_norm %x, %g, %b axes = [-1] epsilon = 0.001"
STATISTICS = "%u: !relax.tensor<[c], f32>, %v: !relax.tensor<[c], f32>"
PROGRAMS = Programs(
    {
        **{f"layer_{d}": (f"{MATRIX}, {ROWS}".format(d), LAYER) for d in ("f32", "f16", "bf16", "f64")},
        "layer_plain": (f"{MATRIX}, {ROWS}".format("f32"), f"{LAYER} no_center no_scale"),
        "layer_axes": (
            "%x: !relax.tensor<[n, m, k], f32>, %g: !relax.tensor<[k, n], f32>, %b: !relax.tensor<[k, n], f32>",
            "relax.nn.layer_norm %x, %g, %b axes = [2, 0]",
        ),
        **{
            f"rms_{d}": (f"{MATRIX}, %g: !relax.tensor<[m], {{0}}>".format(d), "relax.nn.rms_norm %x, %g axes = [1]")
            for d in ("f32", "bf16")
        },
        "group": (
            "%x: !relax.tensor<[n, 4, h, w], f32>, %g: !relax.tensor<[4], f32>, %b: !relax.tensor<[4], f32>",
            "relax.nn.group_norm %x, %g, %b num_groups = 2 channel_axis = 1 axes = [2, 3]",
        ),
        "group_symbolic": (
            "%x: !relax.tensor<[n, h, 3 * c], f32>, %g: !relax.tensor<[3 * c], f32>, %b: !relax.tensor<[3 * c], f32>",
            "relax.nn.group_norm %x, %g, %b num_groups = 3 channel_axis = -1 axes = [1]",
        ),
        "instance": (f"{IMAGE}, {CHANNELS}", "relax.nn.instance_norm %x, %g, %b channel_axis = 1 axes = [2, 3]"),
        "batch": (f"{IMAGE}, {CHANNELS}, {STATISTICS}", "relax.nn.batch_norm %x, %g, %b, %u, %v"),
        "batch_plain": (
            f"{IMAGE}, {CHANNELS}, {STATISTICS}",
            "relax.nn.batch_norm %x, %g, %b, %u, %v axis = -3 epsilon = 0.5 no_center no_scale",
        ),
    }
)
NEAR = Tolerance(1e-4, 1e-5)


def _normalised(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 7), (2, 64)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_layer_norm(dtype: str, shape: tuple[int, int]):
    x, g, b = random(dtype, *shape), random(dtype, shape[1], seed=1), random(dtype, shape[1], seed=2)
    plain = _normalised(wide(x), (1,), 1e-3)
    tolerance = NEAR if dtype == "f32" else None
    PROGRAMS.check(f"layer_{dtype}", [x, g, b], (plain * wide(g) + wide(b)).astype(DTYPES[dtype]), tolerance)
    if dtype == "f32":
        PROGRAMS.check("layer_plain", [x, g, b], plain.astype(np.float32), NEAR)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5)])
def test_layer_norm_over_axes_in_any_order(shape: tuple[int, int, int]):
    x = random("f32", *shape)
    g, b = random("f32", shape[2], shape[0], seed=1), random("f32", shape[2], shape[0], seed=2)
    expected = _normalised(wide(x), (0, 2)) * g.T[:, None, :] + b.T[:, None, :]
    PROGRAMS.check("layer_axes", [x, g, b], expected.astype(np.float32), NEAR)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (4, 7), (2, 64)])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_rms_norm(dtype: str, shape: tuple[int, int]):
    x, g = random(dtype, *shape), random(dtype, shape[1], seed=1)
    expected = wide(x) / np.sqrt(np.square(wide(x)).mean(1, keepdims=True) + 1e-5) * wide(g)
    PROGRAMS.check(f"rms_{dtype}", [x, g], expected.astype(DTYPES[dtype]), NEAR if dtype == "f32" else None)


@pytest.mark.parametrize("size", [(0, 2, 3), (1, 1, 1), (2, 3, 5)])
def test_group_norm(size: tuple[int, int, int]):
    n, h, w = size
    x, g, b = random("f32", n, 4, h, w), random("f32", 4, seed=1), random("f32", 4, seed=2)
    grouped = _normalised(wide(x).reshape(n, 2, 2, h, w), (2, 3, 4)).reshape(x.shape)
    expected = grouped * g.reshape(4, 1, 1) + b.reshape(4, 1, 1)
    PROGRAMS.check("group", [x, g, b], expected.astype(np.float32), NEAR)
    y, g, b = random("f32", n, h, 3 * w), random("f32", 3 * w, seed=1), random("f32", 3 * w, seed=2)
    expected = _normalised(wide(y).reshape(n, h, 3, w), (1, 3)).reshape(y.shape) * g + b
    PROGRAMS.check("group_symbolic", [y, g, b], expected.astype(np.float32), NEAR)


@pytest.mark.parametrize("shape", [(0, 2, 3, 1), (1, 1, 1, 1), (2, 3, 4, 5)])
def test_instance_and_batch_norm(shape: tuple[int, int, int, int]):
    x, g, b, mean = random("f32", *shape), *(random("f32", shape[1], seed=seed) for seed in (1, 2, 3))
    variance = random("f32", shape[1], seed=4, low=0.5)
    scale, shift, u, v = (each.reshape(-1, 1, 1) for each in (g, b, mean, variance))
    expected = _normalised(wide(x), (2, 3)) * scale + shift
    PROGRAMS.check("instance", [x, g, b], expected.astype(np.float32), NEAR)
    expected = (x - u) / np.sqrt(v + 1e-5) * scale + shift
    PROGRAMS.check("batch", [x, g, b, mean, variance], expected.astype(np.float32), NEAR)
    expected = (x - u) / np.sqrt(v + np.float32(0.5))
    PROGRAMS.check("batch_plain", [x, g, b, mean, variance], expected.astype(np.float32), NEAR)
