"""Blocks that use loop variables without iterators, domains that depend on loops, fixed-point products."""

from textwrap import dedent
from typing import Any

import numpy as np

from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import run_in_turn
from tir_dialect.ops.blocks import BlockOp

TEXT = """
@T.prim_func
def kernel(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    T.func_attr({"for": T.target({"kind": "llvm"})})
    for i, j in T.grid(4, 4):
        with T.sblock("whole"):
            T.where(i < 5)
            T.evaluate(T.assume(A[i, j] < 100))
            B[i, j] = T.q_multiply_shift(A[i, j], 1073741824, 31, 2, dtype="int32")
    for i in range(4):
        for j in range(i):
            with T.sblock("below"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]
        for k, j in T.grid(2, i):
            with T.sblock("row"):
                vj = T.axis.spatial((0, i), j)
                B[vj, i] = T.q_multiply_shift_per_axis(A[vj, i], 1 << 30, 0, 1, 31, False, True) + k
"""
MAIN = """
@R.function
def main(x: R.Tensor((4, 4), "int32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((4, 4), "int32"))
"""


def test_domains():
    x = np.arange(16, dtype=np.int32).reshape(4, 4) * 3 - 20
    expected = np.where(np.tri(4, k=-1), x.T, np.where(np.tri(4, k=-1).T, np.floor(x / 4 + 0.5) + 1, 2 * x))
    result = run_in_turn(parse(TEXT + MAIN), "main", [x])
    np.testing.assert_array_equal(result, expected.astype(np.int32))


INIT = """
dims = (4, 4)

@T.prim_func
def kernel(A: T.Buffer([*dims], "int32"), B: T.Buffer((4, 4), "int32")):
    n, m = A.shape
    for i, j, k in T.grid(n, *dims):
        with T.sblock("sum"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C = T.alloc_buffer((1,), "int32")
            row = T.match_buffer(B[vi, 0:4], (m,))
            with T.init():
                row[vj] = 1
            C[0] = A[vi, vk]
            row[vj] += C[0] * vj
    assert not T.isnullptr(A.data), "memory"
"""


def test_init_uses_a_view_in_front_of_it():
    x = np.arange(16, dtype=np.int32).reshape(4, 4) - 5
    result = run_in_turn(parse(INIT + MAIN), "main", [x])
    np.testing.assert_array_equal(result, 1 + x.sum(1)[:, None] * np.arange(4, dtype=np.int32))


def test_loop_variables_become_opaque_iterators():
    blocks = {op.block_name.data: op for op in parse(TEXT).walk() if isinstance(op, BlockOp)}
    kinds = {name: [each.kind.value for each in op.iterators] for name, op in blocks.items()}
    assert kinds == {"whole": ["opaque"] * 2, "below": ["spatial"] * 2, "row": ["spatial", "opaque", "opaque"]}


def test_the_domain_of_a_loop_that_ends_at_data():
    """Rows of lists of different lengths: a block has the number of rows that was read where the loop begins."""
    text = """
    @T.prim_func
    def reshape(A: T.Buffer((5, 6), "float32"), starts: T.Buffer((4,), "int32"), B: T.Buffer((5, 2, 3), "float32")):
        for b in T.serial(3):
            with T.sblock("list"):
                vb = T.axis.spatial(3, b)
                for i in T.serial(starts[vb + 1] - starts[vb]):
                    for h, f in T.grid(2, 3):
                        with T.sblock("row"):
                            vi, vh, vf = T.axis.remap("SSS", [i, h, f])
                            B[starts[vb] + vi, vh, vf] = A[starts[vb] + vi, vh * 3 + vf]

    @R.function
    def main(x: R.Tensor((5, 6), "float32"), starts: R.Tensor((4,), "int32")):
        return R.call_tir(reshape, (x, starts), out_ty=R.Tensor((5, 2, 3), "float32"))
    """
    x, starts = np.arange(30, dtype=np.float32).reshape(5, 6), np.array([0, 2, 2, 5], np.int32)
    np.testing.assert_array_equal(run_in_turn(parse(dedent(text)), "main", [x, starts]), x.reshape(5, 2, 3))


IN_ORDER = """
@T.prim_func
def kernel(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "int64"), C: T.Buffer((8,), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("last"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi], C[vj])
            if vj == 0 or A[vi, vj] > T.float32(0):
                B[vi] = vj
            C[vj] = A[vi, vj]
    for i, j in T.grid(4, 8):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("RR", [i, j])
            C[vj] = C[vj] + A[vi, vj]

@R.function
def main(x: R.Tensor((4, 8), "float32")):
    return R.call_tir(kernel, (x,), out_ty=[R.Tensor((4,), "int64"), R.Tensor((8,), "float32")])
"""


def test_iterators_that_stores_leave_out():
    """Instances of a block that write one element run one after the other, whatever the iterators are called."""
    module = parse(IN_ORDER)
    last, total = (op for op in module.walk() if isinstance(op, BlockOp))
    assert [each.kind.value for each in (*last.iterators, *total.iterators)] == ["opaque", "opaque", "reduce", "opaque"]
    x = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    results: Any = run_in_turn(module, "main", [x])
    place, summed = results
    np.testing.assert_array_equal(place, [max([0, *np.flatnonzero(row > 0)]) for row in x])
    np.testing.assert_allclose(summed, x[3] + x.sum(0), rtol=1e-5)


ROLLING = """
@T.prim_func
def kernel(A: T.Buffer((3, 10), "int32"), C: T.Buffer((3, 4), "int32")):
    B = T.alloc_buffer((3,), "int32")
    total = T.alloc_buffer((1,), "int32")
    for c, i, k in T.grid(3, 4, 2):
        with T.sblock("pair"):
            vc = T.axis.spatial(3, c)
            vi = T.axis.opaque(4, i)
            vk = T.axis.reduce(2, k)
            with T.init():
                B[vi % 3] = 0
            B[vi % 3] += A[vc, vi + vk]
        if k == 1:
            with T.sblock("copy"):
                vc = T.axis.spatial(3, c)
                vi = T.axis.opaque(4, i)
                C[vc, vi] = B[vi % 3]
    for c in range(3):
        for k in range(10):
            with T.sblock("sum"):
                vc, vk = T.axis.remap("SR", [c, k])
                with T.init():
                    total[0] = 0
                total[0] += A[vc, vk]
        with T.sblock("add"):
            vc = T.axis.spatial(3, c)
            C[vc, 0] += 100 * total[0]
"""
ROLLING_MAIN = MAIN.replace("(4, 4)", "(3, 10)", 1).replace("(4, 4)", "(3, 4)")


def test_init_of_opaque_iterators_begins_anew_for_each():
    """Memory that is used again by later instances, as a rolling buffer, and an iterator that no store uses."""
    x = np.arange(30, dtype=np.int32).reshape(3, 10)
    expected = x[:, :4] + x[:, 1:5]
    expected[:, 0] += 100 * x.sum(1)
    np.testing.assert_array_equal(run_in_turn(parse(ROLLING + ROLLING_MAIN), "main", [x]), expected)


PLAIN = """
@T.prim_func
def kernel(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        with T.sblock("named"):
            B[i, 3 - j] = A[i, j] * 2
    for i in range(4):
        twice: T.int32 = A[i, 0]
        for j in range(i, 4):
            with T.sblock("open"):
                B[i, j] = B[i, j] + twice
"""


def test_blocks_without_iterators():
    """One is a block, with an iterator for each loop that it uses, unless it uses what the loops compute."""
    module = parse(PLAIN + MAIN)
    blocks = [op for op in module.walk() if isinstance(op, BlockOp)]
    kinds = {op.block_name.data: [it.kind.value for it in op.iterators] for op in blocks}
    assert kinds == {"named": ["opaque", "opaque"]}
    x = np.arange(16, dtype=np.int32).reshape(4, 4) - 5
    result = run_in_turn(module, "main", [x])
    np.testing.assert_array_equal(result, 2 * x[:, ::-1] + np.tri(4, dtype=np.int32).T * x[:, :1])
