"""Operators on values: what they compute, what they emit, what they refuse."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, Expr, op, tensor
from relax_dialect.interpreter import run
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import symbol


def compute(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """What a function on values means, by the interpreter; the dimensions are symbols."""
    bb = BlockBuilder()
    params = {
        f"x{i}": tensor([f"n{i}_{axis}" for axis in range(array.ndim)], array.dtype.name)
        for i, array in enumerate(arrays)
    }
    with bb.function("main", params) as values:
        bb.emit_func_output(function(*values))
    return run(bb.get(), "main", [array.copy() for array in arrays])


X = np.arange(12, dtype=np.float32).reshape(3, 4) / 2 + 0.25
INTEGERS = np.arange(1, 13, dtype=np.int32).reshape(3, 4)

BINARY = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
)


@pytest.mark.parametrize("function", BINARY)
def test_binary_operators(function: Callable[[Any, Any], Any]):
    np.testing.assert_allclose(compute(function, X, X[::-1]), function(X, X[::-1].copy()), rtol=1e-6)
    np.testing.assert_allclose(compute(lambda x: function(x, 2), X), function(X, np.float32(2)), rtol=1e-6)
    np.testing.assert_allclose(compute(lambda x: function(2, x), X), function(np.float32(2), X), rtol=1e-6)


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_bit_operators(function: Callable[[Any, Any], Any]):
    np.testing.assert_array_equal(compute(lambda x: function(x, 3), INTEGERS), function(INTEGERS, np.int32(3)))
    np.testing.assert_array_equal(compute(lambda x: function(3, x), INTEGERS), function(np.int32(3), INTEGERS))


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs, operator.invert])
def test_unary_operators(function: Callable[[Any], Any]):
    np.testing.assert_array_equal(compute(lambda x: function(x), INTEGERS), function(INTEGERS))


def test_matmul_and_arrays_on_either_side():
    weight = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(compute(lambda x: x @ weight, X), X @ weight)
    np.testing.assert_allclose(compute(lambda x: weight @ x, X.T[:2].copy()), weight @ X.T[:2])
    np.testing.assert_allclose(compute(lambda x: weight.sum() * X + x, X), weight.sum() * X + X)


def test_astype():
    np.testing.assert_array_equal(compute(lambda x: x.astype("int32"), X), X.astype(np.int32))


INDICES = (
    0,
    -1,
    slice(1, None),
    slice(None, -1),
    slice(None, None, -1),
    slice(2, 0, -1),
    slice(0, 3, 2),
    (slice(None), 1),
    (1, slice(1, 3)),
    (..., 2),
    (1, 2),
    None,
    (None, slice(1, 2), None),
    (slice(None), None, -2),
    ...,
    slice(None),
)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(index: Any):
    np.testing.assert_array_equal(compute(lambda x: x[index], X), X[index])


@given(st.data())
def test_indexing_of_known_shapes(data: st.DataObject):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    array = np.arange(np.prod(shape)).reshape(shape)
    index = tuple(data.draw(_item(size)) for size in shape[: data.draw(st.integers(0, len(shape)))])
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(shape, "i64")}) as (x,):
        bb.emit_func_output(x[index])
    np.testing.assert_array_equal(run(bb.get(), "main", [array]), array[index])


def _item(size: int) -> st.SearchStrategy[Any]:
    places = st.none() | st.integers(-size, size - 1)
    strides = st.none() | st.sampled_from([-2, -1, 1, 2])
    return st.integers(-size, size - 1) | st.builds(slice, places, places, strides)


def test_indexing_by_tensors_and_dimensions():
    places = np.array([2, 0, 0], np.int64)
    np.testing.assert_array_equal(compute(lambda x, i: x[i], X, places), X[places])
    np.testing.assert_array_equal(compute(lambda x, i: x[1:, i], X, places), X[1:][:, places])
    np.testing.assert_array_equal(compute(lambda x, i: x[0, i, None], X, places), X[0, places, None])
    np.testing.assert_array_equal(compute(lambda x: x[: symbol("n0_0") - 1], X), X[:-1])
    np.testing.assert_array_equal(compute(lambda x: x[x.builder.symbol("n0_0") - 1], X), X[-1])


ROWS, COLUMNS, GRID = np.array([1, 0, 1]), np.array([2, 0, 1]), np.array([[0], [1]])
PLACES = (
    ROWS,
    [1, 0],
    (0, slice(None), ROWS),
    (ROWS, slice(None), COLUMNS),
    (slice(None), ROWS, COLUMNS),
    (slice(None), ROWS, slice(None), COLUMNS),
    (ROWS, 1),
    (1, ROWS),
    (0, slice(None), 1, ROWS),
    (ROWS, None, COLUMNS),
    (None, ROWS, COLUMNS),
    (None, ROWS, slice(None), None),
    (slice(None), None, ROWS, 0),
    (slice(None), GRID, COLUMNS, None),
    (..., ROWS, COLUMNS),
    (np.int64(1), ..., np.array(2)),
    (slice(None), slice(0, 2), -ROWS),
)


@pytest.mark.parametrize("known", [True, False])
def test_several_places_are_numpys(known: bool):
    array = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    masks = ((slice(None), np.array([True, False, True])), np.array([False, True])) if known else ()
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(array.shape if known else ("a", "b", "c", "d"))}) as (x,):
        bb.emit_func_output([x[index] for index in (*PLACES, *masks)])
    for got, index in zip(run(bb.get(), "main", [array]), (*PLACES, *masks), strict=True):
        np.testing.assert_array_equal(got, array[index], str(index))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2, "index 2 is out of bounds for axis 0 with size 2"),
        ([0, -3], "indices -3 to 0 are out of bounds for axis 0 with size 2"),
        (np.array([True] * 3), "expected a row of 2 truth values for axis 0"),
        (np.array([1.5]), "expected places that are integers"),
    ],
)
def test_what_no_place_is(index: Any, message: str):
    bb = BlockBuilder()
    with bb.function("main", {"x": (2, 3)}) as (x,):
        with pytest.raises((IndexError, TypeError), match=message):
            x[index]
        bb.emit_func_output(x)


def test_functions_of_numbers():
    array = np.array([1, -2.5, 3.5], np.float32)

    def functions(x: Expr) -> list[Expr]:
        return [*divmod(x, 2), *divmod(7.0, x), round(x), math.floor(x), math.ceil(x), math.trunc(x)]

    expected = (
        *np.divmod(array, 2),
        *np.divmod(7, array),
        np.round(array),
        np.floor(array),
        np.ceil(array),
        np.trunc(array),
    )
    for got, wanted in zip(compute(functions, array), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(TypeError, match="multiply, round and divide"):
        compute(lambda x: x.__round__(1), array)


@pytest.mark.parametrize(("dtype", "number"), [("ui8", 300), ("ui8", -1), ("i8", 128), ("f16", 1e6), ("i32", 2.5)])
def test_a_number_that_a_dtype_does_not_have(dtype: str, number: float):
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor((2,), dtype)}) as (x,):
        with pytest.raises(TypeError, match=f"the number {number} is no {dtype}"):
            x + number
        with pytest.raises(TypeError):
            op.prim(number, dtype)
        bb.emit_func_output(x)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 0, 0), "at most 2 indices, got 3"),
        ((..., ...), "at most one"),
        ("a", "expected an integer"),
        (slice(0, 1, 0.5), "expected an integer as the stride"),
        (True, "expected an integer"),
    ],
)
def test_wrong_indices(index: Any, message: str):
    with pytest.raises((IndexError, TypeError), match=message):
        compute(lambda x: x[index], X)


def inside(params: dict[str, Any], body: Callable[..., Any]) -> Any:
    """What `body` gives for the parameters of a function that is open; the function is then completed."""
    bb = BlockBuilder()
    with bb.function("main", params) as values:
        result = body(bb, *values)
        bb.emit_func_output(next(iter(values)))
    bb.get()
    return result


def test_facts_of_types():
    def facts(bb: BlockBuilder, x: Expr, y: Expr) -> None:
        assert x.type == tensor(("n", None), "f16")
        assert x.shape == (symbol("n"), None)
        assert (x.ndim, str(x.dtype)) == (2, "f16")
        assert (y.shape, y.ndim, y.dtype) == (None, None, None)
        assert bb.symbol("n").dim is symbol("n")
        with pytest.raises(BuilderError, match="expected a prim value that is known"):
            _ = x.dim
        with pytest.raises(BuilderError, match="expected a tensor or a shape"):
            _ = bb.symbol("n").shape
        assert repr(x) == "Expr(%x: !relax.tensor<[n, _], f16>)"

    inside({"x": tensor(("n", None), "f16"), "y": tensor(None, None)}, facts)


def test_prim_values_compute_with_dimensions():
    def arithmetic(bb: BlockBuilder, x: Expr) -> Sequence[Any]:
        n, m = bb.symbol("n"), bb.symbol("m")
        values = [n + 1, 2 * n - m, -n, n // 2, n % 3, symbol("m") + n]
        with pytest.raises(TypeError, match="prim values have no operator divide"):
            _ = n / 2
        with pytest.raises(BuilderError, match=r"known, got the number 0\.5"):
            _ = n * 0.5
        with pytest.raises(BuilderError, match=r"known, got !relax\.prim<f32>"):
            _ = bb.prim(0.5) * 2
        return [value.type for value in values]

    types = inside({"x": ("n", "m")}, arithmetic)
    dims = ("n + 1", "2 * n - m", "-n", "floordiv(n, 2)", "mod(n, 3)", "n + m")
    assert types == [PrimType(value=dim) for dim in dims]


def test_tuples_and_shapes():
    def sequences(bb: BlockBuilder, x: Expr, t: Expr, unknown: Expr) -> None:
        first, second = t
        assert (len(t), first.type, t[-1].type) == (2, tensor(("n",)), second.type)
        shape = op.shape_of(x)
        assert [each.dim for each in shape] == [symbol("n"), symbol("m")]
        assert shape[-1].dim is symbol("m")
        with pytest.raises(TypeError, match="of known length"):
            len(unknown)
        with pytest.raises(TypeError, match="expected a tensor, or a tuple"):
            _ = t[1:]

    fields = TupleType([tensor(("n",)), TensorType()])
    inside({"x": ("n", "m"), "t": fields, "unknown": ShapeType()}, sequences)


def test_numbers_take_the_dtype_of_the_other_side():
    def numbers(bb: BlockBuilder, x: Expr, i: Expr, b: Expr, unknown: Expr) -> None:
        for value, expected in ((x + 1, "f16"), (x * 0.5, "f16"), (i * 2, "i32"), (b & True, "i1")):
            constant = bb.lookup_binding(value)
            assert constant is not None
            made = constant.operands[1].owner
            assert isinstance(made, ConstantOp)
            assert str(made.result.type) == f"!relax.tensor<[], {expected}>"
        for wrong in (lambda: i + 0.5, lambda: i + True, lambda: b & 1):
            with pytest.raises(TypeError, match="is no i"):
                wrong()
        with pytest.raises(TypeError, match="needs a dtype"):
            _ = unknown + 1
        with pytest.raises(TypeError, match="expected a tensor, got the dimension n"):
            _ = x + symbol("n")

    inside({"x": tensor(("n",), "f16"), "i": tensor((), "i32"), "b": tensor((), "i1"), "u": tensor((), None)}, numbers)


def test_values_have_no_truth():
    def truth(bb: BlockBuilder, x: Expr) -> None:
        with pytest.raises(TypeError, match="no truth value"):
            bool(x == x)
        with pytest.raises(TypeError, match="no truth value"):
            _ = 0 < x < 1
        with pytest.raises(TypeError, match="expected a function to call"):
            x()

    inside({"x": ("n",)}, truth)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "i32", "i64", "ui8", "ui64", "i1"])
def test_constants_keep_their_elements(dtype: str):
    data = [[0, 1, 1], [1, 0, 1]]
    bb = BlockBuilder()
    with bb.function("main") as _:
        bb.emit_func_output(bb.const(data, dtype))
    result = run(bb.get(), "main", [])
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result.astype(np.int64), data)


def test_constants_of_arrays_and_their_dtypes():
    def types(bb: BlockBuilder, x: Expr) -> list[str]:
        data = (1, 0.5, True, [1.5], np.zeros((2, 0), np.float64), np.float32(2), np.arange(3, dtype=np.uint8))
        return [str(bb.const(each).type) for each in data]

    inner = ("[], i64", "[], f32", "[], i1", "[1], f32", "[2, 0], f64", "[], f32", "[3], ui8")
    assert inside({"x": ("n",)}, types) == [f"!relax.tensor<{text}>" for text in inner]
