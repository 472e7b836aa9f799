"""Host functions as TVM lowers them: they are read, printed, and called with arrays and numbers in every mode.

The programs are what TVM 0.27 makes of two functions of ours: `add(A, B, k, z)`, `B = A * z + k` of any size, and
`scale(A, B, k)`, which also calls a packed function; after `MakePackedAPI`, and after `LowerTVMBuiltin`.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.host_functions import host_function
from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import MODES

PROGRAMS = Path(__file__).parent / "programs"
SEEN: list[list[Any]] = []

each_mode = pytest.mark.parametrize("mode", MODES)


@cache
def program(name: str) -> ModuleOp:
    """A program, which its text gives back."""
    module = parse((PROGRAMS / f"{name}.txt").read_text())
    assert str(parse_module(str(module))) == str(module)
    return module


@cache
def function(name: str, entry: str, mode: Any) -> Callable[..., object]:
    return host_function(program(name), entry, mode)


def observe(*arguments: Any) -> int:
    SEEN.append([np.from_dlpack(each).copy() if hasattr(each, "__dlpack__") else each for each in arguments])
    return 3


@pytest.mark.sampled(2)
@each_mode
@pytest.mark.parametrize("name", ["packed_dynamic", "lowered_dynamic"])
def test_any_size(name: str, mode: str):
    add = function(name, "add", mode)
    for shape in ((3, 4), (1, 1), (0, 4), (17, 5)):
        a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        b = np.zeros_like(a)
        assert add(a, b, 3, 2.5) is None
        np.testing.assert_array_equal(b, a * np.float32(2.5) + 3)
        add(tvm_ffi.from_dlpack(a), b, True, 2)  # numbers of other kinds, as the text takes them
        np.testing.assert_array_equal(b, a * 2 + 1)


A = np.ones((3, 4), np.float32)
WRONG = [
    ((A, A, 3), TypeError, "expected 4 arguments, got 3"),
    ((A, A, 3, 2.0, 1), TypeError, "Expected 4 arguments"),
    ((A, A, 3, "x"), TypeError, "argument #3"),
    ((A, None, 3, 2.0), TypeError, "argument #1"),
    ((1, A, 3, 2.0), TypeError, "argument #0"),
    ((A, A.astype(int), 3, 2.0), TypeError, r"B\.dtype"),
    ((A[0], A, 3, 2.0), ValueError, r"A\.ndim"),
    ((A, A[:2], 3, 2.0), ValueError, r"B\.shape\[0\]"),
    ((A, A.reshape(4, 3).T, 3, 2.0), ValueError, r"B\.strides"),
    ((A, object(), 3, 2.0), TypeError, "argument #1 expected an array, a number, a text or None, got a object"),
]


@each_mode
@pytest.mark.parametrize("case", WRONG, ids=[message for *_, message in WRONG])
def test_what_the_text_checks_is_an_error(case: Any, mode: str):
    arguments, error, message = case
    with pytest.raises(error, match=message):
        function("lowered_dynamic", "add", mode)(*arguments)


@pytest.mark.sampled(2)
@each_mode
@pytest.mark.parametrize("name", ["packed_calls", "lowered_calls"])
def test_calls_of_packed_functions(name: str, mode: str):
    tvm_ffi.register_global_func("tests.observe", observe, override=True)
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.zeros_like(a)
    SEEN.clear()
    function(name, "scale", mode)(a, b, 3)
    np.testing.assert_array_equal(b, a * 2 + 3)
    ((first, second, *rest),) = SEEN
    np.testing.assert_array_equal(first, a)
    np.testing.assert_array_equal(second, b)
    assert rest == [3, 1.5, "done"]


@each_mode
def test_error_of_a_packed_function(mode: str):
    def fail(*arguments: object) -> None:
        raise KeyError("nothing there")

    tvm_ffi.register_global_func("tests.observe", fail, override=True)
    with pytest.raises(KeyError, match="nothing there"):
        function("lowered_calls", "scale", mode)(np.ones((4, 8), np.float32), np.ones((4, 8), np.float32), 3)


OLD = """
@T.prim_func
def dot(args: T.handle, arg_type_ids: T.handle, num_args: T.int32, out_ret_value: T.handle, out_ret_tcode: T.handle,
        resource_handle: T.handle) -> T.int32:
    T.func_attr({"tir.is_entry_func": True, "calling_conv": 1})
    kinds = T.match_buffer(arg_type_ids, [3], dtype="int32")
    total = T.Buffer([4], dtype="float32")
    assert num_args == 3, "dot: num_args should be 3"
    arg0: T.handle = T.tvm_struct_get(args, 0, 12, dtype="handle")
    arg1: T.handle = T.tvm_struct_get(args, 1, 12, dtype="handle")
    scale: T.float32 = T.Cast("float32", T.tvm_struct_get(args, 2, 12, dtype="float64"))
    assert kinds[2] == 2, "dot: Expect arg[2] to be float"
    n: T.int32 = T.Cast("int32", T.tvm_struct_get(T.tvm_struct_get(arg0, 0, 2, dtype="handle"), 0, 17, dtype="int64"))
    X_data: T.handle("float32") = T.tvm_struct_get(arg0, 0, 1, dtype="handle")
    X_strides_data: T.handle("int64") = T.tvm_struct_get(arg0, 0, 3, dtype="handle")
    X_strides = T.Buffer([1], dtype="int64", data=X_strides_data)
    step: T.int32 = T.if_then_else(T.isnullptr(X_strides.data, dtype="bool"), 1, T.cast(X_strides[0], "int32"),
                                   dtype="int32")
    X = T.Buffer([n], dtype="float32", data=X_data, strides=[step])
    Y_data: T.handle("float32") = T.tvm_struct_get(arg1, 0, 1, dtype="handle")
    Y = T.Buffer([n], dtype="float32", data=Y_data)
    Y_shape: T.handle("int64") = T.tvm_struct_get(arg1, 0, 2, dtype="handle")
    assert n == T.Cast("int32", T.tvm_struct_get(Y_shape, 0, 17, dtype="int64")), \\
        "Argument arg1.shape[0] has an unsatisfied constraint"
    with T.LetStmt(T.TVMBackendAllocWorkspace(1, 0, T.uint64(16), 2, 32, dtype="handle"), var=total.data):
        if T.isnullptr(total.data, dtype="bool"):
            T.evaluate(T.tvm_throw_last_error(dtype="int32"))
        total[0] = T.float32(0)
        for i in T.serial(0, n):
            total[0] = total[0] + X[i] * Y[i]
        T.tvm_struct_set(out_ret_value, 0, 12, T.Cast("float64", total[0] * scale), dtype="int32")
        if T.TVMBackendFreeWorkspace(1, 0, total.data, dtype="int32") != 0:
            T.evaluate(T.tvm_throw_last_error(dtype="int32"))
    code = T.Buffer([1], dtype="int32", data=out_ret_tcode)
    code[0] = 2
    return 0
"""


@each_mode
def test_older_convention(mode: Any):
    module = parse(OLD)
    assert str(parse_module(str(module))) == str(module)
    dot = host_function(module, "dot", mode)
    x, y = np.arange(6, dtype=np.float32), np.full(6, 2, np.float32)
    assert dot(x, y, 0.5) == 15
    assert dot(x[::2], y[:3], 1.0) == 12
    assert dot(x[:0], y[:0], 1.0) == 0
    for wrong, error, message in (
        ((x, y), TypeError, "expected 3 arguments, got 2"),
        ((x, y, 1.0, 2), ValueError, "num_args should be 3"),
        ((x, y, 1), ValueError, r"Expect arg\[2\] to be float"),
        ((3, y, 1.0), TypeError, "argument #0 expected an array, got a value of kind int"),
        ((None, y, 1.0), TypeError, "argument #0 expected an array, got a value of kind none"),
        ((x, y[:3], 1.0), ValueError, r"arg1\.shape\[0\]"),
    ):
        with pytest.raises(error, match=message):
            dot(*wrong)


OLD_CALLS = """
@T.prim_func
def call(args: T.handle, arg_type_ids: T.handle, num_args: T.int32, out_ret_value: T.handle,
         out_ret_tcode: T.handle) -> T.int32:
    stack_value: T.handle = T.tvm_stack_alloca("arg_value", 5, dtype="handle")
    stack_tcode_data: T.handle("int32") = T.tvm_stack_alloca("arg_tcode", 5, dtype="handle")
    stack_tcode = T.Buffer([5], dtype="int32", data=stack_tcode_data)
    T.tvm_struct_set(stack_value, 1, 12, T.tvm_struct_get(args, 0, 12, dtype="handle"), dtype="int32")
    stack_tcode[1] = 7
    T.tvm_struct_set(stack_value, 2, 12, T.Cast("float64", T.float32(2.5)), dtype="int32")
    stack_tcode[2] = 2
    T.tvm_struct_set(stack_value, 3, 12, T.Cast("int64", -4), dtype="int32")
    stack_tcode[3] = 0
    found: T.int32 = T.tvm_call_packed_lowered("tests.observe", stack_value, stack_tcode.data, 1, 4, dtype="int32")
    T.tvm_struct_set(out_ret_value, 0, 12, T.Cast("int64", found * 2 + stack_tcode[4]), dtype="int32")
    code = T.Buffer([1], dtype="int32", data=out_ret_tcode)
    code[0] = 0
    return 0
"""


@each_mode
def test_older_calls(mode: Any):
    tvm_ffi.register_global_func("tests.observe", observe, override=True)
    SEEN.clear()
    assert host_function(parse(OLD_CALLS), "call", mode)(A) == 6
    ((tensor, *numbers),) = SEEN
    np.testing.assert_array_equal(tensor, A)
    assert numbers == [2.5, -4]


LISTS = """
@T.prim_func
def main(self_handle: T.handle, args: T.handle, num_args: T.int32, result: T.handle):
    T.anylist_setitem_call_packed(args, 2, "tests.sum", T.anylist_getitem(args, 0), T.anylist_getitem(args, 1), 4)
    T.anylist_setitem_call_packed(args, 1, "tests.same", T.anylist_getitem(args, 3))
    T.anylist_resetitem(args, 0)
    T.anylist_setitem_call_cpacked(result, 0, "tests.sum", T.anylist_getitem(args, 2),
                                   T.if_then_else(T.tvm_struct_get(args, 0, 13, "int32") == 0, 100, 0))
"""


@each_mode
def test_lists_of_values(mode: Any):
    tvm_ffi.register_global_func("tests.sum", lambda *numbers: sum(numbers), override=True)
    tvm_ffi.register_global_func("tests.same", lambda tensor: None, override=True)
    assert host_function(parse(LISTS), "main", mode)(1, 2, 3, A) == 107


def test_functions_without_a_convention():
    module = parse('@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    A[0] = 1.0')
    with pytest.raises(ValueError, match=r"no tir\.prim_func @f with one of TVM's calling conventions"):
        host_function(module, "f")
