"""Index tensors that broadcast, and writes into slices, against NumPy, in every mode."""

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
COLUMN = "%i: !relax.tensor<[k, 1], i64>"
INDEX = "relax.index_tensor %x, %i, %j"
PROGRAMS = Programs(
    {
        "index": (
            f"{MATRIX}, %i: !relax.tensor<[k, 1], i64>, %j: !relax.tensor<[l], i32>",
            "relax.index_tensor %x, %i, %j",
        ),
        "index_rows": (f"{MATRIX}, %i: !relax.tensor<[k, l], i64>", "relax.index_tensor %x, %i"),
        "index_unknown": (
            f"{MATRIX}, %i: !relax.tensor<[k], i64>, %j: !relax.tensor<[l], i64>",
            "relax.index_tensor %x, %i, %j",
        ),
        "put": (
            f"{MATRIX}, %v: !relax.tensor<[k, l], f32>, {COLUMN}, %j: !relax.tensor<[l], i32>",
            "relax.index_put %x, %v, %i, %j",
        ),
        "add": (
            f"{MATRIX}, %v: !relax.tensor<[m], f32>, %i: !relax.tensor<[k], i64>",
            "relax.index_put %x, %v, %i accumulate",
        ),
        "add_bf16": (
            "%x: !relax.tensor<[n], bf16>, %v: !relax.tensor<[], bf16>, %i: !relax.tensor<[k], i64>",
            "relax.index_put %x, %v, %i accumulate",
        ),
        "scatter": (
            f"{MATRIX}, %s: !relax.tensor<[2, m], f32>, %at: !relax.prim<i64, k>",
            "relax.slice_scatter %x, %s start = k end = k + 2",
        ),
        "scatter_steps": (
            f"{MATRIX}, %s: !relax.tensor<[n, _], f32>",
            "relax.slice_scatter %x, %s start = 1 end = m step = 2 axis = 1",
        ),
        "scatter_end": (
            f"{MATRIX}, %s: !relax.tensor<[n, _], f32>",
            "relax.slice_scatter %x, %s start = -2 end = 9223372036854775807 axis = -1",
        ),
    }
)


def _indices(length: int, *shape: int, seed: int = 1, dtype: str = "i64") -> np.ndarray:
    return random(dtype, *shape, seed=seed, low=-length, high=length - 1)


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_index(shape: tuple[int, int], count: int):
    x = random("f32", *shape)
    rows, columns = _indices(shape[0], count, 1), _indices(shape[1], 5, seed=2, dtype="i32")
    PROGRAMS.check("index", [x, rows, columns], x[rows, columns])
    PROGRAMS.check("index_rows", [x, _indices(shape[0], count, 2)], x[_indices(shape[0], count, 2)])
    one = _indices(shape[1], 1, seed=3)
    PROGRAMS.check("index_unknown", [x, rows[:, 0].copy(), one], x[rows[:, 0], one])


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_put(shape: tuple[int, int], count: int):
    x, rows, columns = random("f32", *shape), _indices(shape[0], count, 1), _indices(shape[1], 5, seed=2, dtype="i32")
    values, expected = random("f32", count, 5, seed=3), x.copy()
    for at in np.ndindex(count, 5):
        expected[rows[at[0], 0], columns[at[1]]] = values[at]
    PROGRAMS.check("put", [x, values, rows, columns], expected)
    row, expected = random("f32", shape[1], seed=4), x.copy()
    for at in rows[:, 0]:
        expected[at] += row
    PROGRAMS.check("add", [x, row, rows[:, 0].copy()], expected, Tolerance(1e-5, 1e-5))


def test_many_small_additions_in_few_bits():
    x, half = np.zeros(2, DTYPES["bf16"]), np.asarray(0.5, DTYPES["bf16"])
    PROGRAMS.check("add_bf16", [x, half, np.ones(600, np.int64)], np.array([0, 300], DTYPES["bf16"]))


@pytest.mark.parametrize("shape", [(2, 1), (3, 4), (5, 3)])
def test_slice_scatter(shape: tuple[int, int]):
    x = random("f32", *shape)
    for at in range(shape[0] - 1):
        source, expected = random("f32", 2, shape[1], seed=1), x.copy()
        expected[at : at + 2] = source
        PROGRAMS.check("scatter", [x, source, at], expected)
    for name, cut in (("scatter_steps", slice(1, None, 2)), ("scatter_end", slice(-2, None))):
        expected = x.copy()
        source = random("f32", *expected[:, cut].shape, seed=2)
        expected[:, cut] = source
        PROGRAMS.check(name, [x, source], expected)


@pytest.mark.parametrize("mode", MODES)
def test_what_does_not_fit(mode: str):
    runner = PROGRAMS.runners[mode]
    with pytest.raises(ValueError, match="a source of the slice's shape"):
        runner("scatter")(random("f32", 3, 2), random("f32", 2, 2), 2)
    with pytest.raises(ValueError, match="dimensions with elements to index"):
        runner("index_rows")(random("f32", 0, 2), np.zeros((1, 1), np.int64))
    x, wild = random("f32", 3, 2), np.array([[99]])
    np.testing.assert_array_equal(np.asarray(runner("index_rows")(x, wild)), x[None, None, -1])
    np.testing.assert_array_equal(np.asarray(runner("add")(x, x[0], wild[0])), x)
