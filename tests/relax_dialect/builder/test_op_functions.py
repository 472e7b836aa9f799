"""Operators as functions: every operator has one, and a signature for editors."""

from typing import Any

import numpy as np
import pytest

from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, Expr, op, tensor
from relax_dialect.dialect import Relax
from relax_dialect.interpreter import run
from relax_dialect.loading import operator_classes
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import PrimType


def test_every_operator_has_a_function():
    operators = [each for each in Relax.operations if issubclass(each, Operator)]
    assert operators
    for each in operators:
        space: Any = op
        for part in each.name.split(".")[1:]:
            assert part in dir(space)
            space = getattr(space, part)
        assert callable(space)
        assert space.__doc__ == each.__doc__


def test_structure_is_no_operator():
    for name in ("func", "if", "for", "while", "closure", "dataflow", "return", "yield", "output", "kill"):
        assert f"relax.{name}" not in operator_classes()


def test_near_misses_are_named():
    with pytest.raises(AttributeError, match=r"no operator relax\.matmull; did you mean relax\.matmul"):
        _ = op.matmull
    with pytest.raises(AttributeError, match=r"no operator relax\.nn\.rellu; did you mean relax\.nn\.relu"):
        _ = op.nn.rellu


def built(body: Any, **params: Any) -> Any:
    bb = BlockBuilder()
    with bb.function("main", params) as values:
        bb.emit_func_output(body(*values))
    return bb


def test_arguments_become_values():
    def body(x: Expr) -> Expr:
        grown = op.broadcast_to(op.reshape(x, [1, "n"]), [2, "n"])
        filled = op.full([2, "n"], 3.0, "f32")
        chosen = op.where(grown > 1, grown, 0)
        counted = op.arange(0, "n", 1).astype("f32")
        return op.concat([grown, filled, chosen, op.stack([counted, counted])], axis=0)

    result = run(built(body, x=("n",)).get(), "main", [np.array([0, 2, 4], np.float32)])
    rows = [[0, 2, 4]] * 2 + [[3, 3, 3]] * 2 + [[0, 2, 4]] * 2 + [[0, 1, 2]] * 2
    np.testing.assert_array_equal(np.asarray(result), rows)


def test_several_results_are_a_tuple():
    def body(x: Expr) -> Expr:
        first, second = op.split(x, sections=2)
        values, places = op.topk(x, 1)
        assert isinstance(op.unique(x), tuple)
        return op.tuple(first, second, values, places)

    result = run(built(body, x=(4,)).get(), "main", [np.array([3, 1, 4, 1], np.float32)])
    assert isinstance(result, tuple)
    np.testing.assert_array_equal(np.asarray(result[2]), [4])


def test_effects_and_keywords():
    check = op.assert_
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",), "c": tensor((), "i1")}, pure=False) as (x, c):
        assert check(c, "wrong") is None
        assert op.print("{}", [x]) is None
        bb.emit_func_output(x)
    assert 'relax.assert %c, "wrong"()' in str(bb.get())


def test_functions_without_expressions_use_the_open_function():
    outer, inner = BlockBuilder(), BlockBuilder()
    with outer.function("main"):
        with inner.function("main"):
            inner.emit_func_output(op.zeros([2], "f32"))
        outer.emit_func_output((op.ones([3], "i64"), op.prim(4)))
    assert "relax.zeros" in str(inner.get())
    assert "relax.ones" in str(outer.get())


def test_numbers_beside_tensors():
    def body(x: Expr, c: Expr) -> Expr:
        chosen = op.where(c, x, 1)
        assert chosen.dtype == x.dtype
        assert op.prim(4).type == PrimType(value=4)
        return op.maximum(chosen, 0)

    text = str(built(body, x=tensor(("n",), "f16"), c=tensor(("n",), "i1")).get())
    assert "dense<1.000000e+00> : tensor<f16>" in text
    assert "dense<0.000000e+00> : tensor<f16>" in text


def test_numbers_of_numpy_are_constants():
    """Also those that are no numbers of Python."""

    def body(x: Expr) -> Expr:
        return x + op.full((2,), np.float32(0.5))

    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(built(body, x=(2,)).get(), "main", [x]), x + np.float32(0.5), strict=True)


def test_dtypes_of_numpy():
    array = np.array([1.5, 0.0], np.float32)

    def body(x: Expr) -> list[Expr]:
        return [x.astype(dtype) for dtype in (np.float16, np.dtype("int8"), bool)]

    text = built(body, x=tensor((2,), np.float32)).get()
    for got, dtype in zip(run(text, "main", [array]), (np.float16, np.int8, np.bool_), strict=True):
        np.testing.assert_array_equal(got, array.astype(dtype), strict=True)


def test_a_length_may_follow_from_the_others():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def body(x: Expr) -> list[Expr]:
        return [op.reshape(x, shape) for shape in ((-1,), [-1, 2], ("n", -1), (4, -1, "m"))]

    results = run(built(body, x=("n", "m", 4)).get(), "main", [array])
    for got, shape in zip(results, ((24,), (12, 2), (2, 12), (4, 2, 3)), strict=True):
        np.testing.assert_array_equal(got, array.reshape(shape), strict=True)


def test_one_number_counts_for_a_list():
    """As in texts, and in TVM; a list of axes may be called `axis`."""

    def body(x: Expr) -> Expr:
        pooled = op.nn.max_pool2d(op.nn.conv2d(x, x, padding=1, strides=2), 2)
        return op.sum(pooled, axis=1) + op.max(pooled, 1)

    text = str(built(body, x=(1, 1, 8, 8)).get())
    assert "strides = [2, 2] padding = [1, 1, 1, 1]" in text
    assert "pool_size = [2, 2]" in text
    assert "axes = [1]" in text


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1, -1), "at most one -1"),
        ((-1, 0), "-1 beside a length of 0"),
        ((-1,), "-1 needs a tensor of known dimensions"),
    ],
)
def test_lengths_that_do_not_follow(shape: tuple[int, ...], message: str):
    with pytest.raises(BuilderError, match=message):
        built(lambda x: op.reshape(x, shape), x=(None,) if len(shape) == 1 else (4,))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: op.sum(x, axs=1), r"op.sum\(x, axes=None, \*, keepdims=False\): got an unexpected"),
        (
            lambda x: op.concat(x, x),
            r"op.concat: inputs expected a list of values, such as \[x, y\], got one of ",
        ),
        (lambda x: op.sum(x, "1"), "op.sum: axes expected a number or a list of numbers, got '1'"),
        (lambda x: op.add(x), r"op.add\(x, y\): missing a required argument: 'y'"),
        (lambda x: x + None, "expected a tensor, a number or an array, got None"),
        (lambda x: x + "y", "expected a tensor, a number or an array, got 'y'"),
        (lambda x: None, "expected a value of the program, got None"),
        (lambda x: x.astype(3), "Cannot interpret '3' as a data type"),
    ],
)
def test_wrong_arguments_are_named(function: Any, message: str):
    with pytest.raises(TypeError, match=message):
        built(function, x=(2,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sum", "'Expr' object has no attribute 'sum'; operators are functions: op.sum(x)"),
        ("T", "'Expr' object has no attribute 'T'; operators are functions: op.permute_dims(x)"),
        ("relu", "'Expr' object has no attribute 'relu'; operators are functions: op.nn.relu(x)"),
        ("colour", "'Expr' object has no attribute 'colour'"),
    ],
)
def test_methods_of_other_libraries(name: str, message: str):
    with pytest.raises(AttributeError) as caught:
        built(lambda x: getattr(x, name)(), x=(2,))
    assert str(caught.value) == message


def test_parameters_that_are_not_unpacked():
    builder = BlockBuilder()
    with pytest.raises(TypeError) as caught, builder.function("main", {"x": (2,)}) as parameters:
        op.exp(parameters)
    assert str(caught.value) == (
        "expected a tensor, a number or an array, got the parameters of function main: unpack them by `as (x,)`"
    )


def test_a_local_value_of_a_dataflow_region():
    builder = BlockBuilder()

    def program(x: Expr) -> Expr:
        with builder.dataflow():
            return op.exp(x)

    with pytest.raises(BuilderError) as caught, builder.function("main", {"x": (2,)}) as (x,):
        builder.emit_func_output(program(x))
    assert str(caught.value) == (
        "'relax.return' op operand #0 (%lv) is not visible in function main: it is local to a dataflow region; "
        "`bb.emit_output(value)` in the region makes it visible"
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ((-1, 4), "f32", ValueError, "expected sizes of at least 0, or None where not known, got -1"),
        ((4.0,), "f32", TypeError, "expected sizes that are integers, symbols, or None where not known, got 4.0"),
        ((4,), "float23", ValueError, "unsupported dtype 'float23'; did you mean float32?"),
    ],
)
def test_types_that_there_are_not(shape: Any, dtype: str, error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        tensor(shape, dtype)
    assert str(caught.value) == message
