"""Gather and scatter against NumPy, in every mode."""

from typing import Any

import numpy as np
import pytest

from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random

MATRIX = "%x: !relax.tensor<[n, m], f32>"
REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
ELEMENTS = f"{MATRIX}, %i: !relax.tensor<[k, l], i64>"
UPDATES = "%u: !relax.tensor<[k, l], f32>"
SCATTER = "relax.scatter_elements %x, %i, %u"
PROGRAMS = Programs(
    {
        "elements_0": (ELEMENTS, "relax.gather_elements %x, %i"),
        "elements_1": (f"{MATRIX}, %i: !relax.tensor<[n, l], i32>", "relax.gather_elements %x, %i axis = -1"),
        "elements_ui8": ("%x: !relax.tensor<[n], i8>, %i: !relax.tensor<[k], ui8>", "relax.gather_elements %x, %i"),
        "nd_2": (f"{MATRIX}, %i: !relax.tensor<[k, 2], i64>", "relax.gather_nd %x, %i"),
        "nd_0": (f"{MATRIX}, %i: !relax.tensor<[k, 0], i64>", "relax.gather_nd %x, %i"),
        "nd_1": (f"{MATRIX}, %i: !relax.tensor<[k, l, 1], i32>", "relax.gather_nd %x, %i"),
        "nd_batch": (f"{MATRIX}, %i: !relax.tensor<[n, 1], i64>", "relax.gather_nd %x, %i batch_dims = 1"),
        "scatter": (f"{ELEMENTS}, {UPDATES}", SCATTER),
        "scatter_1": (f"{ELEMENTS}, {UPDATES}", f'{SCATTER} axis = 1 reduction = "add"'),
        **{f"scatter_{name}": (f"{ELEMENTS}, {UPDATES}", f'{SCATTER} reduction = "{name}"') for name in REDUCTIONS},
        "scatter_bf16": (
            "%x: !relax.tensor<[n], bf16>, %i: !relax.tensor<[k], i64>, %u: !relax.tensor<[k], bf16>",
            f'{SCATTER} reduction = "add"',
        ),
        **{
            f"scatter_i1_{name}": (
                "%x: !relax.tensor<[n], i1>, %i: !relax.tensor<[k], i64>, %u: !relax.tensor<[k], i1>",
                f'{SCATTER} reduction = "{name}"',
            )
            for name in REDUCTIONS
        },
        "put_i1": (
            "%x: !relax.tensor<[n], i1>, %i: !relax.tensor<[k], i64>, %u: !relax.tensor<[k], i1>",
            "relax.index_put %x, %u, %i accumulate",
        ),
        "scatter_i32": (
            "%x: !relax.tensor<[n], i32>, %i: !relax.tensor<[k], i32>, %u: !relax.tensor<[k], i32>",
            f'{SCATTER} reduction = "max"',
        ),
        "scatter_nd": (
            f"{MATRIX}, %i: !relax.tensor<[k, 1], i64>, %u: !relax.tensor<[k, m], f32>",
            'relax.scatter_nd %x, %i, %u reduction = "add"',
        ),
        "scatter_nd_2": (
            f"{MATRIX}, %i: !relax.tensor<[k, 2], i64>, %u: !relax.tensor<[k], f32>",
            "relax.scatter_nd %x, %i, %u",
        ),
        "one_hot": (
            "%x: !relax.tensor<[n], i64>, %on: !relax.prim<f32>, %off: !relax.prim<f32>",
            "relax.one_hot %x, %on, %off depth = 4",
        ),
        "one_hot_front": (
            "%x: !relax.tensor<[n, m], ui8>, %at: !relax.prim<i64, k>",
            "%on = relax.prim i8 1; %off = relax.prim i8 0; relax.one_hot %x, %on, %off depth = k axis = 0",
        ),
        "one_hot_dims": (
            "%x: !relax.tensor<[n], i32>",
            "%on = relax.prim n + 1; %off = relax.prim -1; relax.one_hot %x, %on, %off depth = n axis = 0",
        ),
    }
)


def indices(dtype: str, length: int, *shape: int, seed: int = 5) -> np.ndarray:
    """Positions within a length, counted from the front and from the back."""
    low = 0 if dtype.startswith("u") else -length
    return random(dtype, *shape, seed=seed, low=low, high=length - 1) if length else np.zeros(shape, DTYPES[dtype])


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
def test_gather_elements(shape: tuple[int, int]):
    x = random("f32", *shape)
    for count in (0, 1, 9):
        i = indices("i64", shape[0], count, shape[1])
        PROGRAMS.check("elements_0", [x, i], np.take_along_axis(x, i, 0))
        j = indices("i32", shape[1], shape[0], count)
        PROGRAMS.check("elements_1", [x, j], np.take_along_axis(x, j, 1))
    narrow = indices("i64", shape[0], 3, 1)
    PROGRAMS.check("elements_0", [x, narrow], np.take_along_axis(x[:, :1], narrow, 0))
    y = random("i8", 200)
    PROGRAMS.check("elements_ui8", [y, np.array([0, 199, 128], np.uint8)], y[[0, 199, 128]])


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
def test_gather_nd(shape: tuple[int, int]):
    x = random("f32", *shape)
    rows, columns = indices("i64", shape[0], 9), indices("i64", shape[1], 9, seed=6)
    PROGRAMS.check("nd_2", [x, np.stack([rows, columns], 1)], x[rows, columns])
    i = indices("i32", shape[0], 2, 3, 1)
    PROGRAMS.check("nd_1", [x, i], x[i[..., 0]])
    j = indices("i64", shape[1], shape[0], 1)
    PROGRAMS.check("nd_batch", [x, j], x[np.arange(shape[0]), j[:, 0]])
    PROGRAMS.check("nd_0", [x, np.zeros((2, 0), np.int64)], np.stack([x, x]))


def _scatter(x: np.ndarray, places: Any, updates: np.ndarray, combine: Any = None) -> np.ndarray:
    result = x.copy()
    for index in np.ndindex(updates.shape):
        target = places(index)
        result[target] = updates[index] if combine is None else combine(result[target], updates[index])
    return result


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4), (3, 0)])
@pytest.mark.parametrize("name", ["update", *REDUCTIONS])
def test_scatter_elements(name: str, shape: tuple[int, int]):
    """Several updates of one position are made in their order."""
    x = random("f32", *shape)
    for count in (0, 1, 9):
        i, u = indices("i64", shape[0], count, shape[1]), random("f32", count, shape[1], seed=2, low=-1, high=1)
        expected = _scatter(x, lambda at, i=i: (i[at], at[1]), u, REDUCTIONS.get(name))
        PROGRAMS.check("scatter" if name == "update" else f"scatter_{name}", [x, i, u], expected)


def test_scatter_along_other_axes_and_in_other_dtypes():
    x, i, u = random("f32", 3, 5), indices("i64", 5, 3, 8), random("f32", 3, 8, seed=2)
    PROGRAMS.check("scatter_1", [x, i, u], _scatter(x, lambda at: (at[0], i[at]), u, np.add))
    y = np.zeros(2, DTYPES["bf16"])
    ones = np.full(600, 0.5, DTYPES["bf16"])
    PROGRAMS.check("scatter_bf16", [y, np.zeros(600, np.int64), ones], np.array([300, 0], DTYPES["bf16"]))
    z, k = random("i32", 6), indices("i32", 6, 20)
    v = random("i32", 20, seed=3)
    PROGRAMS.check("scatter_i32", [z, k, v], _scatter(z, lambda at: k[at], v, np.maximum))


def test_truth_values_are_combined_as_numpy_does():
    x, i, u = random("i1", 12), indices("i64", 12, 20), random("i1", 20, seed=3)
    for name, combine in REDUCTIONS.items():
        PROGRAMS.check(f"scatter_i1_{name}", [x, i, u], _scatter(x, lambda at: i[at], u, combine))
    PROGRAMS.check("put_i1", [x, i, u], _scatter(x, lambda at: i[at], u, np.logical_or))


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
def test_scatter_nd(shape: tuple[int, int]):
    x, rows, columns = random("f32", *shape), indices("i64", shape[0], 9), indices("i64", shape[1], 9, seed=6)
    slices = random("f32", 9, shape[1], seed=2)
    expected = _scatter(x, lambda at: (rows[at[0]], at[1]), slices, np.add)
    PROGRAMS.check("scatter_nd", [x, rows.reshape(-1, 1), slices], expected, Tolerance(1e-5, 1e-5))
    updates = random("f32", 9, seed=3)
    expected = _scatter(x, lambda at: (rows[at], columns[at]), updates)
    PROGRAMS.check("scatter_nd_2", [x, np.stack([rows, columns], 1), updates], expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", [-9, -4, 3, 99, 2**40])
def test_indices_out_of_range(mode: str, index: int):
    """The nearest element is read; nothing is written."""
    x, i = random("f32", 3, 2), np.full((1, 2), index)
    gathered = PROGRAMS.runners[mode]("elements_0")(x, i)
    np.testing.assert_array_equal(np.asarray(gathered), x[-1:] if index > 0 else x[:1])
    np.testing.assert_array_equal(np.asarray(PROGRAMS.runners[mode]("scatter")(x, i, x[:1])), x)


def test_some_indices_out_of_range():
    x, u = random("f32", 3, 2), random("f32", 5, 2, seed=1)
    i = np.array([[3, 0], [-4, -3], [2, 2**62], [-(2**63), 1], [2**63 - 1, -1]])
    expected = x.copy()
    expected[0] = [x[0, 0], u[1, 1]]
    expected[1, 1], expected[2] = u[3, 1], [u[2, 0], u[4, 1]]
    PROGRAMS.check("scatter", [x, i, u], expected)
    PROGRAMS.check("elements_0", [x, i], np.take_along_axis(x, np.clip(np.where(i < 0, i + 3, i), 0, 2), 0))
    PROGRAMS.check("nd_2", [x, np.array([[1, 2], [-9, 0]])], np.array([x[1, 1], x[0, 0]]))
    written = x.copy()
    written[-1, -1] = 4
    PROGRAMS.check("scatter_nd_2", [x, np.array([[1, 2], [-1, -1]]), np.array([3, 4], np.float32)], written)


@pytest.mark.parametrize("mode", MODES)
def test_shapes_that_do_not_fit(mode: str):
    runner = PROGRAMS.runners[mode]
    with pytest.raises(ValueError, match="within the tensor along the other axes"):
        runner("elements_0")(random("f32", 3, 2), np.zeros((1, 3), np.int64))
    with pytest.raises(ValueError, match="an axis with elements to index"):
        runner("elements_0")(random("f32", 0, 2), np.zeros((1, 2), np.int64))
    with pytest.raises(ValueError, match="dimensions with elements to index"):
        runner("nd_1")(random("f32", 0, 2), np.zeros((1, 1, 1), np.int32))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_one_hot(size: int):
    x = random("i64", size, low=-1, high=5)
    PROGRAMS.check("one_hot", [x, 0.1, -2.0], np.where(x[:, None] == np.arange(4), 0.1, -2).astype(np.float32))
    y = random("ui8", size, 3)
    PROGRAMS.check("one_hot_front", [y, 3], (np.arange(3).reshape(3, 1, 1) == y).astype(np.int8))
    z = random("i32", size, low=0, high=size)
    PROGRAMS.check("one_hot_dims", [z], np.where(np.arange(size)[:, None] == z, size + 1, -1))


COLUMN = "%i: !relax.tensor<[k, 1], i64>"
INDEX = "relax.index_tensor %x, %i, %j"
ADVANCED_INDEXING_PROGRAMS = Programs(
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
    ADVANCED_INDEXING_PROGRAMS.check("index", [x, rows, columns], x[rows, columns])
    ADVANCED_INDEXING_PROGRAMS.check("index_rows", [x, _indices(shape[0], count, 2)], x[_indices(shape[0], count, 2)])
    one = _indices(shape[1], 1, seed=3)
    ADVANCED_INDEXING_PROGRAMS.check("index_unknown", [x, rows[:, 0].copy(), one], x[rows[:, 0], one])


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4)])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_put(shape: tuple[int, int], count: int):
    x, rows, columns = random("f32", *shape), _indices(shape[0], count, 1), _indices(shape[1], 5, seed=2, dtype="i32")
    values, expected = random("f32", count, 5, seed=3), x.copy()
    for at in np.ndindex(count, 5):
        expected[rows[at[0], 0], columns[at[1]]] = values[at]
    ADVANCED_INDEXING_PROGRAMS.check("put", [x, values, rows, columns], expected)
    row, expected = random("f32", shape[1], seed=4), x.copy()
    for at in rows[:, 0]:
        expected[at] += row
    ADVANCED_INDEXING_PROGRAMS.check("add", [x, row, rows[:, 0].copy()], expected, Tolerance(1e-5, 1e-5))


def test_many_small_additions_in_few_bits():
    x, half = np.zeros(2, DTYPES["bf16"]), np.asarray(0.5, DTYPES["bf16"])
    ADVANCED_INDEXING_PROGRAMS.check("add_bf16", [x, half, np.ones(600, np.int64)], np.array([0, 300], DTYPES["bf16"]))


@pytest.mark.parametrize("shape", [(2, 1), (3, 4), (5, 3)])
def test_slice_scatter(shape: tuple[int, int]):
    x = random("f32", *shape)
    for at in range(shape[0] - 1):
        source, expected = random("f32", 2, shape[1], seed=1), x.copy()
        expected[at : at + 2] = source
        ADVANCED_INDEXING_PROGRAMS.check("scatter", [x, source, at], expected)
    for name, cut in (("scatter_steps", slice(1, None, 2)), ("scatter_end", slice(-2, None))):
        expected = x.copy()
        source = random("f32", *expected[:, cut].shape, seed=2)
        expected[:, cut] = source
        ADVANCED_INDEXING_PROGRAMS.check(name, [x, source], expected)


@pytest.mark.parametrize("mode", MODES)
def test_what_does_not_fit(mode: str):
    runner = ADVANCED_INDEXING_PROGRAMS.runners[mode]
    with pytest.raises(ValueError, match="a source of the slice's shape"):
        runner("scatter")(random("f32", 3, 2), random("f32", 2, 2), 2)
    with pytest.raises(ValueError, match="dimensions with elements to index"):
        runner("index_rows")(random("f32", 0, 2), np.zeros((1, 1), np.int64))
    x, wild = random("f32", 3, 2), np.array([[99]])
    np.testing.assert_array_equal(np.asarray(runner("index_rows")(x, wild)), x[None, None, -1])
    np.testing.assert_array_equal(np.asarray(runner("add")(x, x[0], wild[0])), x)
