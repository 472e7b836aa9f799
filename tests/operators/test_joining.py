"""Operators that join, cut and repeat, against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, Tolerance, random

X, Y = "%x: !relax.tensor<[n, m], f32>", "%y: !relax.tensor<[k, m], f32>"
RANKED = "!relax.tensor<[_, _], f32>"
PROGRAMS = Programs(
    {
        "concat": (f"{X}, {Y}", "relax.concat %x, %y"),
        "concat_itself": (X, "relax.concat %x, %x, %x axis = -1"),
        "concat_one": (X, "relax.concat %x"),
        "concat_flat": (f"{X}, %y: !relax.tensor<[k], f32>", "%z = relax.flatten %x; relax.concat %z, %y"),
        "concat_ranked": (
            f"%x: {RANKED}, %y: {RANKED}",
            "relax.concat %x, %y axis = 1",
        ),
        "concat_apart": ("%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[k, l], f32>", "relax.concat %x, %y"),
        "concat_apart_fused": (
            "%x: !relax.tensor<[n, 3, m], f32>, %y: !relax.tensor<[k, j, l], f32>",
            "%u = relax.exp %x; %v = relax.negative %y; %z = relax.concat %u, %v, %v; relax.abs %z",
        ),
        "stack_apart": (f"{X}, %y: !relax.tensor<[k, l], f32>", "relax.stack %x, %y"),
        "stack": (f"{X}, %y: !relax.tensor<[n, m], f32>", "relax.stack %x, %y axis = 1"),
        "stack_last": (X, "relax.stack %x, %x axis = -1"),
        "split": (X, "%a, %b, %c = relax.split %x sections = 3 axis = 1"),
        "split_even": ("%x: !relax.tensor<[2 * n, m], i8>", "%a, %b = relax.split %x sections = 2"),
        "split_at": (f"{X}, %at: !relax.prim<i64, i>", "%a, %b = relax.split %x indices = [i] axis = 0"),
        "split_fixed": (X, "%a, %b, %c = relax.split %x indices = [1, 3] axis = 1"),
        "repeat": (X, "relax.repeat %x repeats = 3 axis = 0"),
        "repeat_twice": (X, "relax.repeat %x repeats = 2 axis = 1"),
        "repeat_often": (X, "relax.repeat %x repeats = 7 axis = -1"),
        "repeat_flat": (X, "relax.repeat %x repeats = 2"),
        "repeat_never": (X, "relax.repeat %x repeats = 0 axis = 1"),
        "tile": (X, "relax.tile %x repeats = [2, 3]"),
        "tile_more": (X, "relax.tile %x repeats = [2, 1, 2]"),
        "tile_less": (X, "relax.tile %x repeats = [2]"),
    }
)
SHAPES = ((0, 3), (3, 0), (1, 1), (4, 7))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_join(shape: tuple[int, int], rows: int):
    x, y = random("f32", *shape, seed=1), random("f32", rows, shape[1], seed=2)
    PROGRAMS.check("concat", [x, y], np.concatenate([x, y]))
    PROGRAMS.check("concat_itself", [x], np.concatenate([x, x, x], 1))
    PROGRAMS.check("concat_one", [x], x)
    PROGRAMS.check("concat_flat", [x, y[:, :1].reshape(-1)], np.concatenate([x.reshape(-1), y[:, :1].reshape(-1)]))
    PROGRAMS.check("concat_apart", [x, y], np.concatenate([x, y]))
    u, v = (np.ascontiguousarray(np.stack([each] * 3, 1)) for each in (x, y))
    PROGRAMS.check("concat_apart_fused", [u, v], np.concatenate([np.exp(u), abs(v), abs(v)]), Tolerance(1e-6, 1e-6))
    z = random("f32", shape[0], rows, seed=3)
    PROGRAMS.check("concat_ranked", [x, z], np.concatenate([x, z], 1))
    PROGRAMS.check("stack", [x, -x], np.stack([x, -x], 1))
    PROGRAMS.check("stack_apart", [x, -x], np.stack([x, -x]))
    PROGRAMS.check("stack_last", [x], np.stack([x, x], -1))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 7), (2, 2), (5, 4)])
def test_split(shape: tuple[int, int]):
    x = random("f32", *shape)
    part = -(-shape[1] // 3)
    PROGRAMS.check("split", [x], tuple(x[:, at * part : (at + 1) * part].copy() for at in range(3)))
    y = random("i8", 2 * shape[0], shape[1])
    PROGRAMS.check("split_even", [y], (y[: shape[0]], y[shape[0] :]))
    for at in range(shape[0] + 1):
        PROGRAMS.check("split_at", [x, at], (x[:at], x[at:]))
    if shape[1] >= 3:
        PROGRAMS.check("split_fixed", [x], (x[:, :1].copy(), x[:, 1:3].copy(), x[:, 3:].copy()))


@pytest.mark.parametrize("mode", MODES)
def test_split_beyond_the_end(mode: str):
    with pytest.raises(ValueError, match="indices that do not decrease"):
        PROGRAMS.runners[mode]("split_at")(random("f32", 3, 2), 4)
    with pytest.raises(ValueError, match="indices that do not decrease"):
        PROGRAMS.runners[mode]("split_fixed")(random("f32", 3, 2))
    with pytest.raises(ValueError, match=r"equal dimensions besides the axis|must match exactly"):
        PROGRAMS.runners[mode]("concat_ranked")(random("f32", 3, 2), random("f32", 2, 2))
    with pytest.raises(ValueError, match=r"equal dimensions besides the axis|must match exactly"):
        PROGRAMS.runners[mode]("concat_apart")(random("f32", 3, 2), random("f32", 3, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_repeat(shape: tuple[int, int]):
    x = random("f32", *shape)
    PROGRAMS.check("repeat", [x], np.repeat(x, 3, 0))
    PROGRAMS.check("repeat_twice", [x], np.repeat(x, 2, 1))
    PROGRAMS.check("repeat_often", [x], np.repeat(x, 7, 1))
    PROGRAMS.check("repeat_flat", [x], np.repeat(x, 2))
    PROGRAMS.check("repeat_never", [x], np.repeat(x, 0, 1))
    PROGRAMS.check("tile", [x], np.tile(x, (2, 3)))
    PROGRAMS.check("tile_more", [x], np.tile(x, (2, 1, 2)))
    PROGRAMS.check("tile_less", [x], np.tile(x, (2,)))
