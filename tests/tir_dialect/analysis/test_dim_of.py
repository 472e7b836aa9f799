"""From values to dimensions: what the interpreter computes is what the dimension says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.dims import DimEvaluator, dim_of
from tir_dialect.dims import Prover, symbol, to_dim
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import BufferType

BINARY = [
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
]


def program(choices):
    """A function that computes an index from its symbols, op by op, and stores it."""
    func = PrimFuncOp("f", ["n", "m"], [("Y", BufferType([], i64))])
    block = func.body.block
    values: list[SSAValue] = list(func.symbol_args)
    for number in (1, 3, 4):
        block.add_op(op := arith.ConstantOp(IntegerAttr(number, IndexType())))
        values.append(op.result)
    block.add_op(op := DimOp("2 * n + 1"))
    values.append(op.result)
    for kind, left, right in choices:
        block.add_op(op := BINARY[kind](values[left % len(values)], values[right % len(values)]))
        values.append(op.result)
    block.add_op(cast := arith.IndexCastOp(values[-1], i64))
    block.add_op(StoreOp(cast.result, func.params[0], []))
    return func, values[-1]


@given(
    st.lists(
        st.tuples(st.integers(0, len(BINARY) - 1), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6
    ),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_dimension_is_what_is_computed(choices, n, m):
    func, value = program(choices)
    dim = dim_of(value)
    if dim is None:
        return
    result = np.zeros((), np.int64)
    try:
        run_prim_func(func, [result], {"n": n, "m": m})
    except ZeroDivisionError:
        return
    assert result[()] == dim.evaluate({"n": n, "m": m})


def value_of(body):
    func = parse_prim_func(f"tir.prim_func @f[%n, %m](%X: !tir.buffer<[n], i64>, %s: i64) {{ {body} }}")
    return next(value for op in func.walk() for value in op.results if value.name_hint == "v")


REMAINDER = """
%c4 = arith.constant 4 : index %q = arith.floordivsi %x, %c4 : index
%p = arith.muli %q, %c4 : index %v = arith.subi %x, %p : index
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%v = tir.dim 4 * n + m", "4 * n + m"),
        ("%v = arith.addi %n, %m : index", "n + m"),
        ("%k = arith.index_cast %n : index to i64 %v = arith.muli %k, %k : i64", "n * n"),
        ("%c4 = arith.constant 4 : index %v = arith.divsi %n, %c4 : index", "floordiv(n, 4)"),
        ("%v = arith.divsi %n, %m : index", "floordiv(n, m)"),
        ("%c4 = arith.constant 4 : index %v = arith.remui %n, %c4 : index", "mod(n, 4)"),
        ("%c4 = arith.constant 4 : index %v = arith.ceildivui %n, %c4 : index", "ceildiv(n, 4)"),
        (f"%x = tir.dim 3 * n + m + 1 {REMAINDER}", "mod(3 * n + m + 1, 4)"),
        (f"%x = tir.dim 4 * n + m {REMAINDER}", "mod(m, 4)"),
        (f"%x = tir.dim 4 * n {REMAINDER}", "0"),
    ],
)
def test_known_values(body, expected):
    assert dim_of(value_of(body)) is to_dim(expected)


@pytest.mark.parametrize(
    "body",
    [
        "%v = arith.index_cast %s : i64 to index",
        "%c0 = arith.constant 0 : index %v = tir.load %X[%c0]",
        "%c0 = arith.constant 0 : index %v = arith.floordivsi %n, %c0 : index",
        "%d = arith.subi %n, %m : index %c4 = arith.constant 4 : index %v = arith.divsi %d, %c4 : index",
        "%v = arith.xori %n, %m : index",
        "%v = arith.constant 1 : i32",
    ],
    ids=["scalar", "loaded", "by-zero", "signed", "bits", "narrow"],
)
def test_unknown_values(body):
    assert dim_of(value_of(body)) is None


def test_leaves_and_bounds_may_be_given():
    value = value_of(
        "%d = arith.index_cast %s : i64 to index %c4 = arith.constant 4 : index %v = arith.divsi %d, %c4 : index"
    )
    leaf = lambda value: symbol("s") if value.name_hint == "s" else None  # noqa: E731
    assert DimEvaluator(leaf).dim_of(value) is to_dim("floordiv(s, 4)")
    assert DimEvaluator(leaf, Prover({"s": (-4, None)})).dim_of(value) is None


def test_long_chains_take_linear_time():
    func, value = program([(0, -1, -1)] + [(0, index, index) for index in range(6, 400)])
    assert dim_of(value) is not None
    assert len(list(func.walk())) > 400
