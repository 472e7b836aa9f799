"""Take and slices against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import MODES, Programs, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
PLACES = "%b: !relax.tensor<[2], i64>, %e: !relax.tensor<[2], i64>, %s: !relax.tensor<[2], i64>"
FAR = 9223372036854775807
SLICES: dict[str, tuple[str, slice]] = {
    "front": ("begin = [0] end = [3]", slice(0, 3)),
    "back": (f"begin = [-2] end = [{FAR}]", slice(-2, None)),
    "steps": (f"begin = [1] end = [{FAR}] strides = [3]", slice(1, None, 3)),
    "down": (f"begin = [-1] end = [{-FAR - 1}] strides = [-1]", slice(None, None, -1)),
    "down_steps": ("begin = [4] end = [0] strides = [-2]", slice(4, 0, -2)),
    "empty": ("begin = [3] end = [1]", slice(3, 1)),
    "all_but_ends": ("begin = [1] end = [-1]", slice(1, -1)),
}
PROGRAMS = Programs(
    {
        **{
            f"take_{mode}": (f"{MATRIX}, %i: !relax.tensor<[k, l], i64>", f'relax.take %x, %i axis = 0 mode = "{mode}"')
            for mode in ("fast", "wrap", "clip")
        },
        **{
            f"take_unsigned_{mode}": (
                f"{MATRIX}, %i: !relax.tensor<[k, l], ui64>",
                f'relax.take %x, %i axis = 0 mode = "{mode}"',
            )
            for mode in ("fast", "wrap", "clip")
        },
        "take_columns": (f"{MATRIX}, %i: !relax.tensor<[k], i32>", "relax.take %x, %i axis = -1"),
        "take_one": (f"{MATRIX}, %i: !relax.tensor<[], i64>", "relax.take %x, %i axis = 0"),
        "take_flat": ("%x: !relax.tensor<[n], i8>, %i: !relax.tensor<[k], ui8>", "relax.take %x, %i"),
        "take_ranked": ("%x: !relax.tensor<[_, _], f32>, %i: !relax.tensor<[_], i64>", "relax.take %x, %i axis = 1"),
        **{name: (MATRIX, f"relax.strided_slice %x axes = [1] {body}") for name, (body, _) in SLICES.items()},
        "both": (MATRIX, "relax.strided_slice %x axes = [1, 0] begin = [1, 0] end = [m, 2] strides = [1, 2]"),
        "symbolic": (f"{MATRIX}, %at: !relax.prim<i64, k>", "relax.strided_slice %x axes = [0] begin = [k] end = [n]"),
        "window": (
            f"{MATRIX}, %at: !relax.prim<i64, k>",
            "relax.strided_slice %x axes = [0] begin = [k] end = [k + 2] assume_inbound",
        ),
        "backwards": (
            f"{MATRIX}, %at: !relax.prim<i64, k>",
            "relax.strided_slice %x axes = [0] begin = [k] end = [-1] strides = [-1] assume_inbound",
        ),
        "ranked": ("%x: !relax.tensor<[_, _], f32>", "relax.strided_slice %x axes = [0] begin = [1] end = [4]"),
        "dynamic": (f"{MATRIX}, {PLACES}", "relax.dynamic_strided_slice %x, %b, %e, %s"),
    }
)


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
def test_take(shape: tuple[int, int]):
    x = random("f32", *shape)
    for size in ((0, 2), (2, 3)):
        i = random("i64", *size, low=-shape[0], high=shape[0] - 1)
        PROGRAMS.check("take_fast", [x, i], x[i])
        wild = random("i64", *size, low=-99, high=99)
        PROGRAMS.check("take_wrap", [x, wild], np.take(x, wild, 0, mode="wrap"))
        PROGRAMS.check("take_clip", [x, wild], np.take(x, wild, 0, mode="clip"))
    j = random("i32", 5, low=-shape[1], high=shape[1] - 1)
    PROGRAMS.check("take_columns", [x, j], x[:, j])
    PROGRAMS.check("take_ranked", [x, j.astype(np.int64)], x[:, j])
    PROGRAMS.check("take_one", [x, np.asarray(-1)], x[-1])
    y = random("i8", 200)
    PROGRAMS.check("take_flat", [y, np.array([199, 0, 130], np.uint8)], y[[199, 0, 130]])


def test_take_nothing_of_nothing():
    PROGRAMS.check("take_fast", [random("f32", 0, 3), np.zeros((0, 2), np.int64)], np.zeros((0, 2, 3), np.float32))
    PROGRAMS.check("take_wrap", [random("f32", 2, 0), np.zeros((1, 2), np.int64)], np.zeros((1, 2, 0), np.float32))


def test_take_out_of_range():
    """`wrap` is modulo; the others take the nearest position, `fast` after it has counted negative ones from
    the back.
    """
    x, last = random("f32", 3, 2), 2
    i = np.array([[3, -3, -4, 2**40, -(2**40), 2**63 - 1, -(2**63)]])
    PROGRAMS.check("take_fast", [x, i], x[[[last, 0, 0, last, 0, last, 0]]])
    PROGRAMS.check("take_clip", [x, i], x[[[last, 0, 0, last, 0, last, 0]]])
    PROGRAMS.check("take_wrap", [x, i], x[[[each % 3 for each in i[0].tolist()]]])
    u = np.array([[0, 2, 3, 2**63, 2**64 - 1]], np.uint64)
    for mode in ("fast", "clip"):
        PROGRAMS.check(f"take_unsigned_{mode}", [x, u], x[[[0, last, last, last, last]]])
    PROGRAMS.check("take_unsigned_wrap", [x, u], x[[[each % 3 for each in u[0].tolist()]]])


@pytest.mark.parametrize("mode", MODES)
def test_take_from_nothing(mode: str):
    for name in ("take_fast", "take_wrap", "take_clip"):
        with pytest.raises(ValueError, match="an axis with elements to take"):
            PROGRAMS.runners[mode](name)(random("f32", 0, 2), np.zeros((1, 1), np.int64))


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_slice(name: str, length: int):
    x = random("f32", 2, length)
    PROGRAMS.check(name, [x], x[:, SLICES[name][1]].copy())


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_slices_at_symbols(length: int):
    x = random("f32", length, 3)
    for at in (0, 1, 4, 9):
        PROGRAMS.check("symbolic", [x, at], x[at:])
    PROGRAMS.check("both", [x], x[0:2:2, 1:].copy())
    PROGRAMS.check("ranked", [x], x[1:4])
    for at in range(length - 1):
        PROGRAMS.check("window", [x, at], x[at : at + 2])
    for at in range(length):
        PROGRAMS.check("backwards", [x, at], x[at::-1].copy())


@pytest.mark.parametrize("mode", MODES)
def test_slices_that_leave_the_dimension(mode: str):
    for name, at in (("window", 2), ("window", 9), ("backwards", 3)):
        with pytest.raises(ValueError, match="places within the dimension"):
            PROGRAMS.runners[mode](name)(random("f32", 3, 2), at)


@pytest.mark.parametrize("stride", [1, 2, -1, -3, 2**62, -(2**63)])
@pytest.mark.parametrize(("begin", "end"), [(0, 9), (1, -1), (-3, 99), (5, 0), (-1, -(2**63)), (2**62, -9), (2, 2)])
def test_dynamic_slice(begin: int, end: int, stride: int):
    x = random("f32", 5, 7)
    places = (np.array([begin, 1]), np.array([end, 6]), np.array([stride, 2]))
    PROGRAMS.check("dynamic", [x, *places], x[begin:end:stride, 1:6:2].copy())


def test_dynamic_slice_of_nothing():
    zeros, ones = np.zeros(2, np.int64), np.ones(2, np.int64)
    PROGRAMS.check("dynamic", [random("f32", 0, 3), zeros, ones * 9, ones], random("f32", 0, 3))
    PROGRAMS.check("dynamic", [random("f32", 1, 1), zeros, ones * 9, ones], random("f32", 1, 1))


@pytest.mark.parametrize("mode", MODES)
def test_a_stride_of_zero(mode: str):
    ones = np.ones(2, np.int64)
    with pytest.raises(ValueError, match=r"cannot be zero|dimension 1 is -1"):
        PROGRAMS.runners[mode]("dynamic")(random("f32", 2, 3), ones, ones, np.array([1, 0]))
