"""The expression layer: sharing, dtypes, errors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32, i1, i8, i32, i64

from tir_dialect import te
from tir_dialect.te import nodes
from tir_dialect.te.expr import INDEX

n = te.var("n")
A = te.placeholder((n,), "f32", "A")
B = te.placeholder((n,), "i32", "B")
U = te.placeholder((n,), "ui8", "U")
M = te.placeholder((n,), "i1", "M")
a, b, u, m = A[0], B[0], U[0], M[0]


def test_equal_expressions_are_one_object():
    assert A[1] is A[1]
    assert te.exp(a + 1) is te.exp(A[0] + 1.0)
    assert (a + 1) is not (1 + a)
    assert te.const(0.0, "f32") is not te.const(-0.0, "f32")
    assert te.const(float("nan"), "f32") is te.const(float("nan"), "f32")


def test_different_tensors_of_one_name_differ():
    assert te.placeholder((n,), "f32", "A")[0] is not a


def test_python_numbers_adopt_the_dtype():
    assert (a * 2).dtype == f32
    assert (2 * b).dtype == i32
    assert (1.5 - a).dtype == f32
    assert (m & True).dtype == i1


def test_numpy_scalars_keep_their_dtype():
    assert (a + np.float32(1)).dtype == f32
    with pytest.raises(TypeError, match="dtypes f32 and f64"):
        a + np.float64(1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: a + b, "te.add: operands have dtypes f32 and i32, cast one side with te.cast"),
        (lambda: b * 1.5, "te: cannot use the float 1.5 with dtype i32, cast one side with te.cast"),
        (lambda: u + 256, "te: 256 does not fit dtype ui8, which holds 0 to 255"),
        (lambda: u - -1, "te: -1 does not fit dtype ui8"),
        (lambda: b / 2, "te.divide: expected floats (use // for integers), got i32"),
        (lambda: a & a, "te.bitwise_and: expected integers or truth values, got f32"),
        (lambda: m + m, "te.add: expected numbers, got i1"),
        (lambda: te.exp(b), "te.exp: expected a float, got i32"),
        (lambda: te.isnan(b), "te.isnan: expected a float, got i32"),
        (lambda: te.select(b, a, a), "te.select: a condition must have dtype i1, got i32"),
        (lambda: te.pow(1.0, 2.0), "te.power: no operand has a dtype, write one number as te.const(value, dtype)"),
        (lambda: te.if_then_else(m, a, b), "te.if_then_else: operands have dtypes f32 and i32"),
        (lambda: b + n, "te: cannot use the dimension n (index) with dtype i32, cast one side with te.cast"),
        (lambda: A[a], 'te: tensor "A": an index must be an integer, got dtype f32'),
        (lambda: a + "x", "te: expected an expression, a dimension or a number, got str"),
        (lambda: te.const(1e6, "f16"), "te: 1000000.0 does not fit dtype f16"),
        (lambda: te.const(1, "f99"), "unsupported dtype"),
        (lambda: te.reinterpret(a, "i16"), "te.reinterpret: expected dtypes of one width, got f32 and i16"),
        (lambda: te.fmod(b, b), "te.truncmod: expected a float, got i32"),
        (lambda: te.popcount(a), "te.popcount: expected an integer, got f32"),
        (lambda: te.scalar("s", "index"), 'te: the scalar "s" cannot be an index'),
    ],
)
def test_refusals_name_what_was_expected_and_got(build, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        build()


def test_an_expression_has_no_truth_value():
    with pytest.raises(TypeError, match=r"te\.if_then_else"):
        bool(a < 1)
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(a)
    with pytest.raises(TypeError, match='"A" cannot be iterated'):
        list(A)


def test_wrong_number_of_indices():
    with pytest.raises(IndexError, match='tensor "A" has rank 1, got 2 indices'):
        A[0, 0]


def test_comparison_gives_conditions():
    for condition in (a == 1, a != 1, a < 1, a <= 1, a > 1, a >= 1):
        assert condition.dtype == i1
    assert a.__gt__(1) is (a > 1)


def test_index_arithmetic_on_dimensions_stays_a_dimension():
    i = te.reduce_axis(n, "i")
    assert (i + n).dtype == INDEX
    assert (n + i).operands[1] is i
    assert i + 0 is i
    assert 1 * i is i
    assert i // 1 is i
    sum_of_sizes = te.floordiv(n, 2) * 2 + 1
    assert isinstance(sum_of_sizes, nodes.Size)
    assert str(sum_of_sizes.dim) == "2 * floordiv(n, 2) + 1"


def test_dimensions_compare_with_iteration_variables_from_both_sides():
    i = te.reduce_axis(n, "i")
    assert (n == i).dtype == i1
    assert (n > i).dtype == i1
    assert (i < n).dtype == i1


def test_loaded_integers_are_indices():
    gathered = A[b + 1]
    (index,) = gathered.operands
    assert isinstance(index, nodes.Cast)
    assert index.dtype == INDEX


def test_cast():
    assert te.cast(a, "float32") is a
    assert te.cast(a, "f16").dtype == f16
    assert te.cast(b, "bool") is (b != 0)
    assert te.cast(n, "i64").dtype == i64
    assert te.cast(m, i8).dtype == i8


def test_unsigned_absolute_and_rounding_of_integers_change_nothing():
    assert te.abs(u) is u
    assert te.floor(b) is b
    assert te.round(b) is b


def test_extents():
    assert te.placeholder("2 * k", name="X").shape == (2 * te.var("k"),)
    assert te.placeholder((te.floordiv(n, 2),)).shape == (n // 2,)
    with pytest.raises(ValueError, match='an extent of "X" is -1, expected at least 0'):
        te.placeholder((-1,), name="X")
    with pytest.raises(ValueError, match="expected at least 0 and less than 2\\*\\*63"):
        te.placeholder((2**63,), name="X")
    with pytest.raises(TypeError, match='extents of "X" must be computed from dimensions alone'):
        te.placeholder((te.cast(b, "index"),), name="X")
    with pytest.raises(TypeError, match="cannot have elements of dtype index"):
        te.placeholder((n,), "index", "X")


def test_indices_divided_by_nothing_where_there_is_no_element():
    """As where each element is repeated 0 times."""
    (loop,) = (
        op for op in te.create_prim_func([A, te.compute((0,), lambda i: A[i // 0])]).walk() if op.name == "tir.for"
    )
    assert "arith.divui" in [op.name for op in loop.walk()]


def test_an_expression_prints_as_it_is_written():
    i, r = te.reduce_axis(n, "i"), te.reduce_axis((1, 4), "r")
    for expr, text in (
        ((a + 1) * 2 - a / -a, "(A[0] + 1.0) * 2.0 - A[0] / negative(A[0])"),
        (a - (a - 1), "A[0] - (A[0] - 1.0)"),
        ((b & 3) | (b << 1), "B[0] & 3 | B[0] << 1"),
        ((a < 1) == m, "(A[0] < 1.0) == M[0]"),
        (A[i * 2 + 1], "A[i * 2 + 1]"),
        (te.if_then_else(i < n, te.exp(a), b.astype("f32")), "if_then_else(i < n, exp(A[0]), cast(B[0], f32))"),
        (te.sum(A[r], r, init=a), "sum(A[r], axis=[r], init=[A[0]])"),
        (te.call_extern("f32", "hypotf", a, a), "call_extern(f32, hypotf, A[0], A[0])"),
        (te.placeholder((), "f32", "S")[()], "S[()]"),
    ):
        assert repr(expr) == str(expr) == text


def test_the_text_of_a_large_expression_is_short():
    x = a
    for _ in range(60):
        x = x * x + x
    assert len(repr(x)) < 2000
    assert "..." in repr(x)


def test_integers_of_python_are_sizes_in_integer_arithmetic():
    found = [te.floordiv(7, 2), te.indexmod(7, 2), te.ceildiv(7, 2), te.truncdiv(7, 2), te.truncmod(7, 2), te.div(7, 2)]
    found += [te.max(7, 2), te.minimum(7, 2)]
    assert [str(each.dim) for each in found] == ["3", "1", "4", "3", "1", "3", "7", "2"]
    assert te.placeholder((te.floordiv(7, 2), n)).shape == te.placeholder((3, n)).shape


def test_constant_integers_beside_indices_are_indices():
    i = te.reduce_axis(n, "i")
    for dtype in ("i32", "i64", "ui8"):
        assert (i - te.const(1, dtype)) is i - 1
        assert te.maximum(te.const(0, dtype), n) is te.maximum(0, n)
    with pytest.raises(TypeError, match="operands have dtypes index and i32"):
        i + te.placeholder((), "i32")[()]


def test_whole_floats_may_be_integer_constants():
    assert te.const(3.0, "i8") is te.const(3, "i8")
    with pytest.raises(TypeError, match=r"cannot use the float 1\.5 with dtype i8"):
        te.const(1.5, "i8")


def test_text_is_no_constant():
    with pytest.raises(TypeError, match="const: expected a number, got 'a'"):
        te.const("a", "f32")
