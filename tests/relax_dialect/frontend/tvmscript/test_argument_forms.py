"""Arguments in the forms that TVM's functions take beside those of our operators, and regions that write memory."""

from __future__ import annotations

import numpy as np

from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import run_in_turn

OPERATORS = """
@R.function
def f(x: R.Tensor((2, 10), "float32"), v: R.Tensor((3,), "float32"), n: R.Prim("int64")):
    parts = R.split(x, indices_or_sections=[-2, 2, 6, 4, 12], axis=1)
    joined = R.concat((v, v), axis=None)
    taken = R.take(x, R.prim_value(1), axis=0)
    grid = R.meshgrid(tensors=(v, v))
    square = R.eye(n=2, m=3)
    if v[0:1]:
        chosen = R.add(n, R.prim_value(1))
    else:
        chosen = R.multiply(n, n)
    emitted = R.emit(R.strided_slice(x, [1], [T.shift_left(1, 1)], [T.cast(4, "int64")]), R.Tensor((2, 2), "float32"))
    return parts, joined, taken, grid[0], square, R.full((2,), chosen, "int64"), emitted
"""


def test_arguments_of_operators():
    x, v = np.arange(20, dtype=np.float32).reshape(2, 10), np.arange(3, dtype=np.float32)
    parts, joined, taken, grid, square, chosen, emitted = run_in_turn(parse(OPERATORS), "f", [x, v, 5])
    for found, (start, end) in zip(parts, [(0, 0), (0, 2), (2, 6), (6, 6), (4, 10), (12, 12)], strict=True):
        np.testing.assert_array_equal(found, x[:, start:end])
    np.testing.assert_array_equal(joined, np.concatenate([v, v]))
    np.testing.assert_array_equal(taken, x[1])
    np.testing.assert_array_equal(grid, np.meshgrid(v, v, indexing="ij")[0])
    np.testing.assert_array_equal(square, np.eye(2, 3, dtype=np.float32))
    np.testing.assert_array_equal(chosen, [25, 25])
    np.testing.assert_array_equal(emitted, x[:, 2:4])


BLOCKS = """
@R.function
def f(x: R.Tensor((1, 2, 4, 4, 2, 2), "float32"), w: R.Tensor((2, 4, 1, 1), "float32")):
    images = R.image.resize2d(R.reshape(x, (2, 2, 4, 4, 2)), size=(2, 2), layout="NCHW2c", method="nearest_neighbor")
    y = R.nn.conv2d(x, w, data_layout="NCHW2n2c", kernel_layout="OIHW", out_layout="NCHW2n1c")
    return y, R.nn.max_pool2d(x, layout="NCHW2n2c"), images
"""


def test_layouts_with_blocks():
    rng = np.random.default_rng(0)
    x, w = (rng.random(shape, np.float32) for shape in ((1, 2, 4, 4, 2, 2), (2, 4, 1, 1)))
    y, pooled, images = run_in_turn(parse(BLOCKS), "f", [x, w])
    plain = x.transpose(0, 4, 1, 5, 2, 3).reshape(2, 4, 4, 4)
    expected = np.einsum("nchw,oc->nohw", plain, w[:, :, 0, 0])
    np.testing.assert_allclose(y, expected.transpose(1, 2, 3, 0).reshape(1, 2, 4, 4, 2, 1), rtol=1e-5)
    np.testing.assert_array_equal(pooled, x)
    assert images.shape == (2, 2, 2, 2, 2)


WRITING = """
@I.ir_module
class M:
    @T.prim_func
    def double(A: T.Buffer((3,), "float32")):
        for i in range(3):
            A[i] = A[i] * 2.0

    @T.prim_func
    def is_even(n: T.int64) -> T.bool:
        return n % 2 == 0

    @R.function
    def f(x: R.Tensor((3,), "float32"), n: R.Prim("int64")):
        with R.dataflow():
            a = R.call_tir_inplace(M.double, (x,), [0], R.Tensor((3,), "float32"))
            b = R.add(a, a)
            R.output(b)
        even: R.Prim("bool") = M.is_even(n)
        if even:
            c = R.negative(b)
        else:
            c = R.add(b, b)
        return c
"""


def test_region_that_writes_a_parameter():
    module = parse(WRITING)
    for n, factor in ((2, -4), (3, 8)):
        np.testing.assert_array_equal(run_in_turn(module, "f", [np.ones(3, np.float32), n]), np.full(3, factor))
    assert "relax.dataflow" not in str(module)
