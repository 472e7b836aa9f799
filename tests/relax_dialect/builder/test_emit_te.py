"""`emit_te`: what the function gets, which PrimFunc it becomes, how it is called."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, Expr, op, tensor
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.struct_info.types import PrimType, ShapeType, TupleType
from tests.support.programs import run_in_turn
from tir_dialect import te
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp


def double(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: x[i] * 2, "double")


def kernels(bb: BlockBuilder) -> list[PrimFuncOp]:
    return [func for func in bb.get().ops if isinstance(func, PrimFuncOp)]


def call_of(bb: BlockBuilder, value: Expr) -> CallTIROp:
    call = bb.lookup_binding(value)
    assert isinstance(call, CallTIROp)
    return call


def one(value: Expr | tuple[Expr, ...]) -> Expr:
    assert isinstance(value, Expr)
    return value


def test_equal_kernels_are_added_once_whatever_their_symbols_are_called():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", 4), "y": ("m", 4), "z": ("m", 5)}) as (x, y, z):
        calls = [call_of(bb, one(bb.emit_te(double, value))).callee.string_value() for value in (x, y, z, x)]
        bb.emit_func_output(x)
    assert calls == ["double", "double", "double_1", "double"]
    assert [func.sym_name.data for func in kernels(bb)] == ["double", "double_1"]


def test_dimensions_that_a_kernel_cannot_solve_get_symbols_of_their_own():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", "m")}) as (x,):
        y = one(bb.emit_te(double, op.flatten(x)))
        z = one(bb.emit_te(double, op.concat([x, x])))
        assert y.type == tensor(("m * n",))
        assert z.type == tensor(("2 * n", "m"))
        bb.emit_func_output((y, z))
    assert [str(func.params[0].type) for func in kernels(bb)] == [
        "!tir.buffer<[d0], f32>",
        "!tir.buffer<[d0, m], f32>",
    ]
    x_value = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = run_in_turn(bb.get(), "main", [x_value])
    assert isinstance(result, tuple)
    np.testing.assert_array_equal(result[0], 2 * x_value.reshape(-1))


def test_unknown_dimensions_are_bound_to_fresh_symbols():
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor((None, "s")), "y": tensor(None, "f32")}) as (x, y):
        result = one(bb.emit_te(double, x))
        assert result.type == tensor(("s_1", "s"))
        with pytest.raises(BuilderError, match="of known rank"):
            bb.emit_te(double, y)
        bb.emit_func_output(result)
    assert run_in_turn(bb.get(), "main", [np.ones((2, 3), np.float32), np.ones(1, np.float32)]) is not None


def shift(x: te.Tensor, places: Dim, factor: te.Expr) -> te.Tensor:
    return te.compute((x.shape[0] - places,), lambda i: x[i + places] * factor, "shift")


def test_dimensions_become_tir_vars_and_other_scalars_parameters():
    bb = BlockBuilder()
    params = {"x": ("n",), "s": ShapeType(["k"]), "factor": PrimType(tensor((), "f32").dtype or PrimType().dtype)}
    with bb.function("main", params) as (x, shape, factor):
        result = one(bb.emit_te(shift, x, shape[0], factor, name_hint="moved"))
        call = call_of(bb, result)
        assert call.tir_dims == ()
        assert [str(value.type) for value in call.arguments] == ["!relax.tensor<[n], f32>", "!relax.prim<f32>"]
        assert result.type == tensor(("n - k",))
        bb.emit_func_output(result)


def last(x: te.Tensor, place: Dim) -> te.Tensor:
    return te.compute((1,), lambda i: x[place - 1 + i], "last")


def test_symbols_that_no_shape_shows_are_passed():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "s": ShapeType(["k"])}) as (x, _):
        result = one(bb.emit_te(last, x, bb.symbol("k")))
        assert call_of(bb, result).tir_dims == (symbol("k"),)
        bb.emit_func_output(result)
    (kernel,) = kernels(bb)
    assert kernel.symbol_names == ("n", "k")


def pair(inputs: Sequence[te.Tensor], scale: float) -> tuple[te.Tensor, te.Tensor]:
    x, y = inputs
    total = te.compute(x.shape, lambda i: (x[i] + y[i]) * scale, "total")
    return total, te.compute(x.shape, lambda i: total[i] - y[i], "rest")


def test_sequences_tuples_plain_values_and_several_results():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "t": TupleType([tensor(("n",)), tensor(("n",))])}) as (x, t):
        first = bb.emit_te(pair, [x, x], 0.5)
        second = bb.emit_te(pair, t, scale=0.5)
        assert isinstance(first, tuple)
        assert isinstance(second, tuple)
        bb.emit_func_output((*first, *second))
    assert len(kernels(bb)) == 2
    x_value = np.arange(3, dtype=np.float32)
    run_in_turn(bb.get(), "main", [x_value, (x_value, x_value + 1)])


def test_arguments_without_a_meaning_are_refused():
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(("n",), None), "s": ShapeType()}) as (x, s):
        with pytest.raises(BuilderError, match="expected a tensor of known dtype"):
            bb.emit_te(double, x)
        with pytest.raises(BuilderError, match="argument x expected a tensor, prim, known shape or tuple"):
            bb.emit_te(double, s)
        with pytest.raises(BuilderError, match=r"expected the function to give a te.Tensor or several, got \[\]"):
            bb.emit_te(lambda: [])
        bb.emit_func_output(x)


@given(st.lists(st.sampled_from(["n", "m", "2 * n", "n + m", 3, "n * m"]), min_size=1, max_size=3))
def test_any_shape(dims: list[Any]):
    bb = BlockBuilder()
    with bb.function("main", {"a": ("n", "m"), "x": tensor(dims)}) as (_, x):
        result = one(bb.emit_te(double, x))
        assert result.type == x.type
        bb.emit_func_output(result)
    bb.get()
