"""Functions of TVM's run time under its names, alone and called by a PrimFunc."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.interpreter import run
from vm_dialect import VirtualMachine
from vm_dialect.numpy_library import register_functions_of_tvm
from vm_dialect.tensors import to_numpy

X = np.array([[3, 1, 3, 2], [0, 0, 1, 5], [9, 8, 7, 6]], np.float32)
ASCENDING = np.argsort(X, 1, kind="stable")
DESCENDING = np.array([[0, 2, 3, 1], [3, 2, 0, 1], [0, 1, 2, 3]])


def call(name: str, out: list[np.ndarray], *arguments: object) -> list[np.ndarray]:
    register_functions_of_tvm()
    tvm_ffi.get_global_func(f"tvm.contrib.sort.{name}")(X, *out, *arguments)
    return out


@pytest.mark.parametrize(("is_ascend", "order"), [(True, ASCENDING), (False, DESCENDING)])
def test_sorting(is_ascend: bool, order: np.ndarray):
    np.testing.assert_array_equal(call("argsort", [np.empty((3, 4), np.int32)], -1, is_ascend)[0], order)
    (values,) = call("sort", [np.empty_like(X)], 1, is_ascend)
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, 1))
    places, first = np.empty((3, 2), np.int64), np.empty((3, 2), np.float32)
    call("topk", [first, places], 2, -1, "both", is_ascend)
    np.testing.assert_array_equal(places, order[:, :2])
    np.testing.assert_array_equal(first, np.take_along_axis(X, order[:, :2], 1))
    np.testing.assert_array_equal(call("topk", [np.empty((3, 4), np.int32)], 0, 1, "indices", is_ascend)[0], order)
    np.testing.assert_array_equal(
        call("topk", [np.empty((1, 4), np.float32)], 1, 0, "values", is_ascend)[0],
        X.min(0, keepdims=True) if is_ascend else X.max(0, keepdims=True),
    )


def test_sorting_of_the_first_elements():
    out = np.empty((3, 4), np.int32)
    call("argsort_nms", [np.array([3, 0, 9], np.int32), out], 1, True)
    np.testing.assert_array_equal(out, [[1, 0, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]])
    with pytest.raises(ValueError, match="expected ret_type both, values or indices, got all"):
        call("topk", [out], 1, 1, "all", True)


def _array(name: str, columns: int, dtype: str) -> str:
    return f"T.tvm_stack_make_array({name}.data, T.tvm_stack_make_shape(3, {columns}), 0, 2, T.{dtype}(0), 0)"


PROGRAM = f"""
@I.ir_module
class Module:
    @T.prim_func
    def order(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "int32")):
        with T.sblock("argsort"):
            T.call_packed("tvm.contrib.sort.argsort", {_array("A", 4, "float32")}, {_array("B", 4, "int32")},
                          -1, T.bool(False))

    @T.prim_func
    def first(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 2), "float32"), C: T.Buffer((3, 2), "int64")):
        with T.sblock("topk"):
            T.call_packed("tvm.contrib.sort.topk", {_array("A", 4, "float32")}, {_array("B", 2, "float32")},
                          {_array("C", 2, "int64")}, 2, -1, "both", T.bool(False))

    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        a = R.call_tir(Module.order, (x,), out_sinfo=R.Tensor((3, 4), "int32"))
        b = R.call_tir(Module.first, (x,), out_sinfo=[R.Tensor((3, 2), "float32"), R.Tensor((3, 2), "int64")])
        return (a, b)
"""


def test_prim_funcs_that_call_them():
    module = parse(PROGRAM)
    order, (values, places) = run(module, "main", [X])
    results = [(order, values, places)]
    for mode in ("bytecode", "native"):
        order, (values, places) = VirtualMachine(build(module, mode=mode))["main"](X)
        results.append(tuple(map(to_numpy, (order, values, places))))
    for order, values, places in results:
        np.testing.assert_array_equal(order, DESCENDING)
        np.testing.assert_array_equal(places, DESCENDING[:, :2])
        np.testing.assert_array_equal(values, np.take_along_axis(X, DESCENDING[:, :2], 1))


@pytest.mark.parametrize("mode", ["interpret", "bytecode", "native"])
def test_functions_that_texts_call_by_name(mode: str):
    """Those of TVM's run time, with tensors, shapes, tuples and numbers."""
    module = parse_module("""
relax.func @main[%n](%x: !relax.tensor<[n], i64>) -> !relax.object impure {
  %one = relax.prim 1
  %zero = relax.prim 0
  %none = relax.null
  %0 = relax.call_packed "relax.run.unique"(%x, %zero, %one, %one, %one, %none) : !relax.object
  %1 = relax.call_packed "relax.run.nonzero"(%x) : !relax.object
  %2 = relax.call_packed "vm.builtin.shape_of"(%x) : !relax.object
  %3 = relax.call_packed "relax.run.shape_to_tensor"(%2) : !relax.object
  %4 = relax.call_packed "vm.builtin.tensor_to_shape"(%3) : !relax.object
  %5 = relax.call_packed "vm.builtin.reshape"(%x, %4) : !relax.object
  %6 = relax.call_packed "vm.builtin.copy"(%5) : !relax.object
  %7 = relax.call_packed "vm.builtin.make_tuple"(%0, %1, %3, %6) : !relax.object
  %8 = relax.call_packed "vm.builtin.ensure_zero_offset"(%7) : !relax.object
  relax.return %8
}
""")
    x = np.array([3, 0, 3, 1, 0])
    result = (
        run(module, "main", [x.copy()])
        if mode == "interpret"
        else VirtualMachine(build(module, mode=mode))["main"](x.copy())
    )
    (values, first, inverse, counts), positions, sizes, same = result
    for found, expected in (
        (values, [3, 0, 1]),
        (first, [0, 1, 3]),
        (inverse, [0, 1, 0, 2, 1]),
        (counts, [2, 2, 1]),
        (positions, [[0, 2, 3]]),
        (sizes, [5]),
        (same, x),
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)
