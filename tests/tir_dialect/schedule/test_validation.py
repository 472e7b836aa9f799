"""Schedules that are validated: each step runs before and after."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.support import elementwise, k, m, matmul, n
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect import te
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.primitives.tensorizing import TensorIntrin, register_tensor_intrin
from tir_dialect.schedule.validation import default_sizes


def times(factor: int) -> PrimFuncOp:
    """Eight elements times a number."""
    a = te.placeholder((8,), "i32", "a")
    return te.create_prim_func([a, te.compute((8,), lambda i: a[i] * factor, name="times")], name="times")


def doubled(*, validate: bool) -> Schedule:
    """The schedule of `B = 2 * A`."""
    a = te.placeholder((8 * n,), "i32", "A")
    return Schedule(te.create_prim_func([a, te.compute((8 * n,), lambda i: a[i] * 2, name="B")]), validate=validate)


def split_to_8(sch: Schedule):
    return sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 8])[1]


def test_wrong_intrinsics_are_found():
    register_tensor_intrin(TensorIntrin("wrong_double_8", times(2), times(3)))
    sch = doubled(validate=True)
    inner = split_to_8(sch)
    refuses(
        sch, "tensorize: after this step B[0] becomes 9 instead of 6 for n = 3", "tensorize", inner, "wrong_double_8"
    )
    sch.vectorize(inner)


def test_implementations_that_fail_are_found():
    failing = parse_prim_func("""
tir.prim_func @failing(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  %no = arith.constant false
  tir.assert %no, "not implemented"
}
""")
    register_tensor_intrin(TensorIntrin("failing_double_8", times(2), failing))
    sch = doubled(validate=True)
    message = "tensorize: after this step the function fails for n = 3: ValueError: not implemented"
    refuses(sch, message, "tensorize", split_to_8(sch), "failing_double_8")


def test_sums_in_another_order_are_not_wrong():
    a = te.placeholder((n, k), "f32", "A")
    r = te.reduce_axis(k, "r")
    func = te.create_prim_func([a, te.compute((n,), lambda i: te.sum(te.exp(a[i, r]), r), name="C")])
    sch = Schedule(func, validate=True)
    sch.rfactor(sch.split(sch.get_loops(sch.get_block("C"))[1], [None, 4])[1], factor_axis=1)


def test_unsafe_steps_change_what_is_compared():
    sch = Schedule(elementwise(), validate=True)
    sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])
    sch.unsafe_set_dtype("B", 0, "i8")
    sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])


def test_parameters_of_other_types_are_another_function():
    sch = Schedule(elementwise(), validate=True)
    sch.transform_layout("B", ("read", 0), lambda i, j: (j, i))
    sch.compute_inline("B")


def test_sizes_can_be_given():
    sch = Schedule(elementwise(), validate=[{"n": 2, "m": 9}])
    sch.compute_inline("B")
    missing = Schedule(elementwise(), validate=[{"n": 2}])
    message = "compute_inline: @elementwise cannot be validated with no value of m"
    refuses(missing, message, "compute_inline", "B")


def test_sizes_at_which_nothing_runs():
    sch = Schedule(elementwise(), validate=[{"n": -1, "m": 2}])
    refuses(sch, "compute_inline: @elementwise cannot be validated, it runs at none", "compute_inline", "B")
    with pytest.raises(ValueError, match="expected True, or values of the symbols"):
        Schedule(elementwise(), validate=[])
    for wrong in (5, {"n": 2}, [2]):
        with pytest.raises(TypeError, match="expected True, or a list of values of the symbols by name, got"):
            Schedule(elementwise(), validate=wrong)


def test_default_sizes_are_within_bounds():
    sizes = default_sizes(matmul(n=(4, 6), k=(0, None)))
    assert all(4 <= each["n"] <= 6 for each in sizes)
    assert {0, 1} <= {each["k"] for each in sizes} & {each["m"] for each in sizes}
    assert len({tuple(each.items()) for each in sizes}) == len(sizes) > 2


def test_copies_are_validated():
    register_tensor_intrin(TensorIntrin("wrong_double_8", times(2), times(3)))
    sch = doubled(validate=True)
    inner = split_to_8(sch)
    refuses(sch.copy(), "tensorize: after this step", "tensorize", inner, "wrong_double_8")


def test_scalars_bools_small_floats_and_unsigned_numbers():
    a, s = te.placeholder((n, m), "bf16", "A"), te.scalar("s", "bf16")
    u, flag = te.placeholder((n, m), "ui8", "U"), te.placeholder((n,), "bool", "F")
    b = te.compute((n, m), lambda i, j: a[i, j] + s, name="B")
    c = te.compute((n, m), lambda i, j: te.select(flag[i], u[i, j], u[i, j] + u[i, j]), name="C")
    sch = Schedule(te.create_prim_func([a, s, u, flag, b, c]), validate=True)
    for name in ("B", "C"):
        sch.parallel(sch.fuse(*sch.get_loops(sch.get_block(name))))
