from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from hypothesis import given
from hypothesis import strategies as st

from vm_dialect import ExecBuilder, VirtualMachine
from vm_dialect.builtins import BUILTINS, register_globals
from vm_dialect.builtins.values import first_gap
from vm_dialect.dialect import VM
from vm_dialect.dtypes import ELEMENT_TYPES, element_type
from vm_dialect.integers import GREATEST, INT_FUNCTIONS, LEAST, fits_int64
from vm_dialect.ops.base import BuiltinOp
from vm_dialect.ops.values import IntKind, IntOp
from vm_dialect.tensors import from_numpy, new_tensor, to_numpy


def call(name: str, *arguments: Any) -> Any:
    values = [from_numpy(value) if isinstance(value, np.ndarray) else value for value in arguments]
    return BUILTINS[name].function(*values)


def test_every_op_has_its_builtin():
    names = {op.BUILTIN for op in VM.operations if issubclass(op, BuiltinOp) and op is not IntOp}
    names |= {f"int_{kind.value}" for kind in IntKind}
    assert names <= BUILTINS.keys()
    assert {kind.value for kind in IntKind} == INT_FUNCTIONS.keys()


int64 = st.integers(LEAST, GREATEST)


@given(int64, int64)
def test_arithmetic_is_that_of_64_bits(a: int, b: int):
    for kind, result in (("add", a + b), ("sub", a - b), ("mul", a * b)):
        if fits_int64(result):
            assert call(f"int_{kind}", a, b) == result
        else:
            with pytest.raises(ValueError, match=r"^a size does not fit into 64 bits$"):
                call(f"int_{kind}", a, b)
    assert call("int_add_sat", a, b) == min(max(a + b, LEAST), GREATEST)
    assert call("int_mul_sat", a, b) == min(max(a * b, LEAST), GREATEST)
    assert call("int_min", a, b) == min(a, b)
    assert call("int_broadcast", a, b) == (b if a == 1 else a)
    assert call("int_lt", a, b) is (a < b)
    if b != 0 and (a, b) != (LEAST, -1):
        assert call("int_floordiv", a, b) == a // b
        assert call("int_mod", a, b) == a % b


@pytest.mark.parametrize("kind", ["floordiv", "mod"])
def test_division_by_zero(kind: str):
    with pytest.raises(ValueError, match="division by zero"):
        call(f"int_{kind}", 1, 0)


def test_check_tensor():
    x = np.zeros((2, 3), np.float32)
    assert call("check_tensor", x, 2, "float32", "s").shape == (2, 3)
    assert call("check_tensor", x, -1, None, "s").shape == (2, 3)
    cases: list[tuple[Any, type[Exception], str]] = [
        (1, TypeError, "s: expected a tensor, got int"),
        (None, TypeError, "s: expected a tensor, got null"),
        (tvm_ffi.Shape((2,)), TypeError, "s: expected a tensor, got shape"),
        (np.zeros(3, np.float32), TypeError, "s: expected rank 2, got 1"),
        (np.zeros((2, 3)), TypeError, "s: expected dtype float32, got float64"),
        (x.T, ValueError, "s: expected contiguous memory, got a gap along axis 1: pass a contiguous copy"),
    ]
    for value, error, message in cases:
        with pytest.raises(error, match=f"^{message}$"):
            call("check_tensor", value, 2, "float32", "s")


def test_check_tensor_alignment():
    memory = np.zeros(17, np.uint8)
    shift = 1 + -memory.ctypes.data % 8
    with pytest.raises(ValueError, match="s: expected memory aligned to 8 bytes, got remainder 1: pass an"):
        call("check_tensor", memory[shift : shift + 8].view(np.float64), 1, "float64", "s")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 5), (1, 1)])
def test_gaps_do_not_matter_without_elements_behind_them(shape: tuple[int, ...]):
    x = np.zeros(tuple(2 * dim for dim in shape), np.float32)[tuple(slice(0, dim) for dim in shape)]
    assert call("check_tensor", x, len(shape), "float32", "s").shape == shape


def test_first_gap():
    assert first_gap((2, 3), (3, 1)) == -1
    assert first_gap((1, 3), (99, 1)) == -1
    assert first_gap((2, 3), (4, 1)) == 0
    assert first_gap((2, 3), (6, 2)) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("check_int", (True, "s"), "s: expected an int, got bool"),
        ("check_int", (1.0, "s"), "s: expected an int, got float"),
        ("check_float", ("1", "s"), "s: expected a float, got string"),
        ("check_bool", (1, "s"), "s: expected a bool, got int"),
        ("check_shape", ((), -1, "s"), "s: expected a shape, got object"),
        ("check_shape", (tvm_ffi.Shape((1,)), 2, "s"), "s: expected rank 2, got 1"),
        ("check_tuple", (tvm_ffi.Shape((1,)), 1, "s"), "s: expected a tuple, got shape"),
        ("check_tuple", (tvm_ffi.Array([1, 2]), 1, "s"), "s: expected a tuple of 1 field, got 2"),
        ("check_func", ("f", "s"), "s: expected a function, got string"),
        ("tuple_get", (1, 0), "tuple_get: expected a tuple, got int"),
        ("read_cond", (from_numpy(np.zeros(1, bool)),), r"expected a bool tensor of rank 0, got bool\[1\]"),
        ("read_int", (from_numpy(np.zeros(2)), 0), r"expected a vector of int64, got float64\[2\]"),
        ("invoke_closure", (1,), "invoke_closure: expected a function, got int"),
        ("make_closure", (1,), "make_closure: expected a function, got int"),
        ("call_tir_dyn", (tvm_ffi.convert(print), 1), "last argument: expected a shape, got int"),
        ("shape_from_tensor", (from_numpy(np.zeros(2)),), r"expected a vector of integers, got float64\[2\]"),
    ],
)
def test_wrong_kinds(name: str, arguments: tuple[Any, ...], message: str):
    with pytest.raises(TypeError, match=message):
        call(name, *arguments)


def test_checks_pass_the_value_on():
    assert call("check_int", 3, "s") == 3
    assert call("check_float", 3, "s") == 3.0
    assert isinstance(call("check_float", 3, "s"), float)
    assert call("check_bool", False, "s") is False
    assert call("check_shape", tvm_ffi.Shape((1, 2)), 2, "s") == (1, 2)
    assert len(call("check_tuple", tvm_ffi.Array([1]), 1, "s")) == 1
    call("assert", True, "no")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("assert", (False, "expected {}, got {}", 1, 2), "^expected 1, got 2$"),
        ("tensor_dim", (np.zeros((2, 3)), 2), "dimension 2 asked of a value of rank 2"),
        ("shape_dim", (tvm_ffi.Shape((4,)), -1), "dimension -1 asked of a value of rank 1"),
        ("read_int", (from_numpy(np.zeros(2, np.int64)), 2), "read_int: expected an element #2, got a vector of 2"),
        ("tuple_get", (tvm_ffi.Array([1]), 1), "tuple_get: expected a field #1, got a tuple of 1"),
        ("alloc_storage", (-1,), "cannot allocate -1 bytes"),
        ("new_tensor", ("f32", 2, -3), "cannot make a tensor whose dimension 1 is -3"),
        ("new_tensor_of_shape", ("f32", tvm_ffi.Shape((-1,))), "cannot make a tensor whose dimension 0 is -1"),
        ("view", (np.zeros((2, 3)), 5), "cannot view a tensor of 6 elements as one of 5"),
        ("view", (np.zeros((2, 3)).T, 6), "view: expected contiguous memory, got a gap along axis 1"),
        ("alloc_shape_heap", (-1,), "cannot allocate -8 bytes"),
        ("get_packed_func", ("test.vm.nothing",), 'packed function "test.vm.nothing" is not registered'),
    ],
)
def test_wrong_values(name: str, arguments: tuple[Any, ...], message: str):
    with pytest.raises(ValueError, match=message):
        call(name, *arguments)


def test_tensors_too_large():
    for sizes in ((1 << 31, 1 << 31), (0, 1 << 47), (1 << 62, 0)):
        with pytest.raises(MemoryError, match=r"cannot allocate a tensor of more than 2\^48 bytes"):
            call("new_tensor", "f32", *sizes)


def test_sizes_too_large_to_compute_with():
    for shape in ((0, 1 << 47), (1 << 58, 0)):
        with pytest.raises(ValueError, match=r"^s: expected a tensor of at most 2\^48 bytes, where axes of length 0"):
            call("check_tensor", np.zeros(shape, np.float32), 2, "float32", "s")


def test_tensors_in_a_storage():
    storage = call("alloc_storage", 64)
    assert storage.data_ptr() % 64 == 0
    a = call("alloc_tensor", storage, 16, "float32", 2, 2)
    to_numpy(a)[...] = 7
    np.testing.assert_array_equal(to_numpy(storage)[16:32].view(np.float32), np.full(4, 7))
    del storage
    np.testing.assert_array_equal(to_numpy(a), np.full((2, 2), 7))


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (52, "a tensor of 16 bytes at offset 52 does not fit into a storage of 64 bytes"),
        (-4, "a tensor of 16 bytes at offset -4 does not fit"),
        (2, "alloc_tensor: expected memory aligned to 4 bytes, got remainder 2"),
    ],
)
def test_tensors_must_fit_their_storage(offset: int, message: str):
    with pytest.raises(ValueError, match=message):
        call("alloc_tensor", call("alloc_storage", 64), offset, "float32", 4)


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_tensors_of_every_dtype(name: str):
    element = element_type(name)
    tensor = call("new_tensor", element.ffi_name, 2, 0, 3)
    assert (tensor.dtype, tensor.shape) == (element.ffi_name, (2, 0, 3))
    tensor = new_tensor((4,), element)
    to_numpy(tensor)[...] = 1
    assert to_numpy(call("view", tensor, 2, 2)).astype(np.float32).sum() == 4
    assert call("reshape", tensor, tvm_ffi.Shape((1, 4))).shape == (1, 4)


def test_shapes():
    assert call("shape_of", np.zeros((2, 3))) == (2, 3)
    assert call("make_shape", 4, 5) == (4, 5)
    assert call("tensor_dim", np.zeros((2, 3)), 1) == 3
    assert call("shape_from_tensor", np.array([2, 3], np.int32)) == (2, 3)
    made = call("new_tensor_of_shape", "float32", tvm_ffi.Shape((2, 3)))
    assert (tuple(made.shape), made.dtype) == ((2, 3), "float32")
    tensor = call("shape_to_tensor", tvm_ffi.Shape((2, 3)))
    assert tensor.dtype == "int64"
    np.testing.assert_array_equal(to_numpy(tensor), [2, 3])


def test_call_tir_dyn_takes_the_shape_apart():
    seen: list[Any] = []
    call("call_tir_dyn", tvm_ffi.convert(lambda *arguments: seen.extend(arguments)), 1, 2, tvm_ffi.Shape((3, 4)))
    assert seen == [1, 2, 3, 4]


def test_null():
    assert call("kill") is None
    assert call("null_value") is None
    assert call("copy", 5) == 5


def test_globals_are_registered():
    register_globals()
    register_globals()
    get = tvm_ffi.get_global_func("vm.builtin.get_packed_func")
    assert isinstance(get("vm.builtin.shape_to_tensor"), tvm_ffi.Function)


HEAP = (3, 2, 1)


def heap() -> Any:
    memory = call("alloc_shape_heap", 4)
    call("store_shape", tvm_ffi.Shape(HEAP), memory, 0, 1, 2)
    return memory


def test_heap_codes():
    memory = heap()
    np.testing.assert_array_equal(to_numpy(memory), [*HEAP, 0])
    # assert 3 = immediate 3; store into slot 3; nothing; assert equal to slot 1
    call("match_shape", tvm_ffi.Shape((3, 9, 8, 2)), memory, 4, 0, 3, 1, 3, 2, 0, 3, 1, "s")
    assert to_numpy(memory)[3] == 9
    call("match_shape", np.zeros((3, 2)), memory, 2, 0, 3, 3, 1, "s")
    call("match_prim_value", 9, memory, 3, 3, "s")
    assert call("make_shape_from_heap", memory, 2, 0, 7, 1, 3) == (7, 9)
    assert call("make_prim_value", memory, 1, 0) == 3
    assert call("load_shape", memory, 2, 0) == (1, 3)


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("match_shape", (tvm_ffi.Shape((5,)), heap(), 1, 0, 3, "s"), ValueError, "s dimension 0: expected 3, got 5"),
        ("match_shape", (tvm_ffi.Shape((5,)), heap(), 1, 3, 1, "s"), ValueError, "s dimension 0: expected 2, got 5"),
        ("match_shape", (tvm_ffi.Shape((5,)), heap(), 2, 0, 3, 0, 3, "s"), TypeError, "s: expected rank 2, got 1"),
        ("match_shape", (1, heap(), 1, 0, 3, "s"), TypeError, "s: expected a shape, got int"),
        ("match_shape", (tvm_ffi.Shape((5,)), heap(), 1, 0, "s"), ValueError, "expected 2 codes and numbers, got 1"),
        ("match_shape", (tvm_ffi.Shape((5,)), heap(), 1, 9, 0, "s"), ValueError, "9 is not a valid MatchCode"),
        ("match_prim_value", ("x", heap(), 0, 0, "s"), TypeError, "s: expected an int, got string"),
        ("load_shape", (heap(), 4), ValueError, "slot 4 is outside a shape heap of 4"),
        ("store_shape", (tvm_ffi.Shape((1,)), heap(), -1), ValueError, "slot -1 is outside"),
        ("store_shape", (tvm_ffi.Shape((1,)), heap()), ValueError, "expected 1 slots, got 0"),
        ("make_shape_from_heap", (heap(), 2, 0, 1), ValueError, "expected 4 codes and numbers, got 2"),
    ],
)
def test_heap_errors(name: str, arguments: tuple[Any, ...], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call(name, *arguments)


def test_bfloat16_arguments(ib: ExecBuilder):
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.check_tensor", [ib.r(0), 1, element_type("bf16"), "x"], ib.r(1))
        ib.emit_ret(ib.r(1))
    x = np.arange(3).astype(ml_dtypes.bfloat16)
    result = to_numpy(VirtualMachine(ib.get())["main"](x))
    assert result.dtype == x.dtype
    assert np.shares_memory(result, x)
