"""Linear algebra against NumPy, in every mode."""

import re

import numpy as np
import pytest

from relax_dialect.interpreter.operators import einsum
from tests.operators.support import DTYPES, MODES, Programs, Tolerance, random, slow_ones, wide


def _matrices(dtype: str) -> str:
    return f"%x: !relax.tensor<[n, k], {dtype}>, %y: !relax.tensor<[k, m], {dtype}>"


BATCH = "%x: !relax.tensor<[b, n, k], f32>, %y: !relax.tensor<{}, f32>"
SQUARE, MATRIX = "!relax.tensor<[n, n], f32>", "!relax.tensor<[n, m], f32>"
EINSUMS = (
    (f"%x: {MATRIX}, %y: !relax.tensor<[m, k], f32>", "%x, %y", "ij,jk->ik"),
    (f"%x: {MATRIX}, %y: !relax.tensor<[n, k], f32>", "%x, %y", "ij,ik"),
    (f"%x: {SQUARE}", "%x", "ii->i"),
    (f"%x: {SQUARE}", "%x", "ii"),
    (f"%x: {MATRIX}", "%x", "ij->ji"),
    (f"%x: {MATRIX}, %y: !relax.tensor<[n, 1], f32>", "%x, %y", "ij,ij->i"),
    (f"%x: {MATRIX}, %y: {MATRIX}, %z: !relax.tensor<[m], f32>", "%x, %y, %z", "ij,ij,j->"),
    ("%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>", "%x, %y", "i,j->ij"),
)
MATRICES = ("f32", "f16", "bf16", "f64", "i32", "i8")
SELDOM = ("f64", "i32", "f16")
"""Dtypes whose GEMM is that of another with other vectors, or converts what it reads as another does."""
PROGRAMS = Programs(
    {
        **{dtype: (_matrices(dtype), "relax.matmul %x, %y") for dtype in MATRICES},
        "wider": (_matrices("i8"), "relax.matmul %x, %y out_dtype = i32"),
        "f16_f32": (_matrices("f16"), "relax.matmul %x, %y out_dtype = f32"),
        "vector": ("%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k], f32>", "relax.matmul %x, %y"),
        "row": ("%x: !relax.tensor<[k], f32>, %y: !relax.tensor<[k, m], f32>", "relax.matmul %x, %y"),
        "dot": ("%x: !relax.tensor<[k], f32>, %y: !relax.tensor<[k], f32>", "relax.matmul %x, %y"),
        "batch": (BATCH.format("[b, k, m]"), "relax.matmul %x, %y"),
        "shared": (BATCH.format("[k, m]"), "relax.matmul %x, %y"),
        "broadcast": (BATCH.format("[c, k, m]"), "relax.matmul %x, %y"),
        "ranked": ("%x: !relax.tensor<[_, _], f32>, %y: !relax.tensor<[_, _], f32>", "relax.matmul %x, %y"),
        "outer": ("%x: !relax.tensor<[n], bf16>, %y: !relax.tensor<[m], bf16>", "relax.outer %x, %y"),
        **{
            f"einsum_{index}": (params, f'relax.einsum {operands} subscripts = "{subscripts}"')
            for index, (params, operands, subscripts) in enumerate(EINSUMS)
        },
        "itself": ("%x: !relax.tensor<[n, n], f32>", "relax.matmul %x, %x"),
    },
    SELDOM,
)
SIZES = ((0, 3, 2), (2, 0, 3), (3, 2, 0), (1, 1, 1), (5, 7, 3), (17, 33, 9))


NOTHING = [(m, k, n) for m in (0, 3) for k in (0, 3) for n in (0, 16) if 0 in (m, k, n)]
"""Sizes that are known while compiling."""

STATIC = Programs(
    {
        **{
            f"plain_{m}_{k}_{n}": (
                f"%x: !relax.tensor<[{m}, {k}], f32>, %y: !relax.tensor<[{k}, {n}], f32>",
                "relax.matmul %x, %y",
            )
            for m, k, n in NOTHING
        },
        **{
            f"turned_{m}_{k}_{n}": (
                f"%x: !relax.tensor<[{k}, {m}], f32>, %y: !relax.tensor<[{k}, {n}], f32>",
                'relax.einsum %x, %y subscripts = "ki,kj->ij"',
            )
            for m, k, n in NOTHING
        },
    }
)


@pytest.mark.parametrize("size", NOTHING)
def test_products_of_no_elements(size: tuple[int, int, int]):
    m, k, n = size
    x, y = random("f32", m, k, seed=1), random("f32", k, n, seed=2)
    STATIC.check(f"plain_{m}_{k}_{n}", [x, y], np.zeros((m, n), np.float32))
    STATIC.check(f"turned_{m}_{k}_{n}", [np.ascontiguousarray(x.T), y], np.zeros((m, n), np.float32))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", slow_ones(MATRICES, SELDOM))
def test_matmul(dtype: str, size: tuple[int, int, int]):
    n, k, m = size
    x, y = random(dtype, n, k, seed=1), random(dtype, k, m, seed=2)
    tolerance = Tolerance(1e-5, 1e-4) if dtype == "f32" else None
    PROGRAMS.check(dtype, [x, y], np.matmul(wide(x), wide(y)).astype(DTYPES[dtype]), tolerance)


@pytest.mark.parametrize("size", SIZES)
def test_shapes(size: tuple[int, int, int]):
    n, k, m = size
    x, y, near = random("f32", n, k, seed=1), random("f32", k, m, seed=2), Tolerance(1e-5, 1e-4)
    PROGRAMS.check(
        "vector", [x, y[:, 0] if m else np.zeros(k, np.float32)], x @ (y[:, 0] if m else np.zeros(k, np.float32)), near
    )
    PROGRAMS.check(
        "row", [x[0] if n else np.zeros(k, np.float32), y], (x[0] if n else np.zeros(k, np.float32)) @ y, near
    )
    vector = random("f32", k, seed=3)
    PROGRAMS.check("dot", [vector, vector], np.asarray(vector @ vector), near)
    PROGRAMS.check("ranked", [x, y], x @ y, near)
    square = random("f32", k, k, seed=4)
    PROGRAMS.check("itself", [square], square @ square, near)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_batches(batch: int):
    x, y, near = random("f32", batch, 4, 5, seed=1), random("f32", batch, 5, 3, seed=2), Tolerance(1e-5, 1e-4)
    PROGRAMS.check("batch", [x, y], x @ y, near)
    PROGRAMS.check("broadcast", [x, y], x @ y, near)
    PROGRAMS.check(
        "broadcast",
        [x, y[:1]] if batch else [x, random("f32", 1, 5, 3)],
        x @ (y[:1] if batch else random("f32", 1, 5, 3)),
        near,
    )
    shared = random("f32", 5, 3, seed=3)
    PROGRAMS.check("shared", [x, shared], x @ shared, near)


def test_wider_results():
    x, y = random("i8", 4, 200, low=-100, high=100), random("i8", 200, 3, seed=1, low=-100, high=100)
    PROGRAMS.check("wider", [x, y], x.astype(np.int32) @ y.astype(np.int32))
    z, w = random("f16", 4, 200), random("f16", 200, 3, seed=1)
    PROGRAMS.check("f16_f32", [z, w], z.astype(np.float32) @ w.astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_inner_dimensions_that_differ(mode: str):
    with pytest.raises(ValueError, match=r"contracted|mismatch"):
        PROGRAMS.runners[mode]("ranked")(random("f32", 2, 3), random("f32", 4, 5))


@pytest.mark.parametrize("size", [(0, 2, 3), (1, 1, 1), (3, 5, 2)])
@pytest.mark.parametrize("index", range(len(EINSUMS)))
def test_einsum(index: int, size: tuple[int, int, int]):
    sizes = {"n": size[0], "m": size[1], "k": size[2], "1": 1}
    params, _, subscripts = EINSUMS[index]
    shapes = [[sizes[dim] for dim in shape.split(", ")] for shape in re.findall(r"<\[([^]]*)\]", params)]
    operands = [random("f32", *shape, seed=seed) for seed, shape in enumerate(shapes)]
    expected = np.asarray(einsum(subscripts, *map(wide, operands)), np.float32)
    PROGRAMS.check(f"einsum_{index}", operands, expected, Tolerance(1e-5, 1e-4))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_outer(size: int):
    x, y = random("bf16", size), random("bf16", 3, seed=1)
    PROGRAMS.check("outer", [x, y], np.outer(wide(x), wide(y)).astype(x.dtype))
