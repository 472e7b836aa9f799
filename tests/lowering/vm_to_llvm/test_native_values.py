"""Values of every kind go in and come out."""

import math

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given
from hypothesis import strategies as st

from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL

IDENTITY = "vm.func @id(%x : !vm.object) -> !vm.object { vm.ret %x }"


@pytest.fixture(scope="module")
def identity(native):
    return native(IDENTITY)["id"]


@pytest.mark.parametrize(
    "value",
    [None, 0, -(1 << 63), (1 << 63) - 1, True, False, 1.5, math.inf, "", "1234567", "12345678", "ünïcödé" * 9, b"b"],
)
def test_plain_values_pass_through(identity, value):
    result = identity(value)
    assert result == value
    assert type(result) is type(value) or isinstance(result, str)


def test_nan_passes_through(identity):
    assert math.isnan(identity(math.nan))


def test_objects_pass_through(identity):
    assert list(identity((1, (2.0,)))[1]) == [2.0]
    assert list(identity((1, "two"))) == [1, "two"]
    assert identity(tvm_ffi.Shape((2, 3))) == (2, 3)
    assert identity(tvm_ffi.dtype("float16")) == "float16"
    assert identity(tvm_ffi.device("cpu:0")) == tvm_ffi.device("cpu:0")
    assert identity(len)("four") == 4


def test_a_tensor_passes_through_without_a_copy(identity):
    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(np.from_dlpack(identity(array)), array)


def test_rvalue_reference_is_taken(native, identity):
    assert list(identity(tvm_ffi.Array([1, 2])._move())) == [1, 2]
    array = tvm_ffi.Array([1, 2])
    count = native("vm.func @first(%a : !vm.object) -> !vm.object { %x = vm.tuple_get %a[0] vm.ret %x }")["first"]
    assert count(array._move()) == 1


def test_a_function_that_cannot_fail(native):
    assert native("vm.func @nothing(%x : !vm.object) { vm.ret }")["nothing"](1) is None


CONSTANTS = """
vm.constant @weight : tensor<2xf32>
vm.func @int() -> i64 { %c = vm.const -5 vm.ret %c }
vm.func @bool() -> i1 { %c = vm.const true vm.ret %c }
vm.func @float() -> f64 { %c = vm.const -0.0 : f64 vm.ret %c }
vm.func @short() -> !vm.object { %c = vm.str "relu" vm.ret %c }
vm.func @long() -> !vm.object { %c = vm.str "a string that is too long for a register" vm.ret %c }
vm.func @dtype() -> !vm.object { %c = vm.dtype bf16 vm.ret %c }
vm.func @null() -> !vm.object { %c = vm.null vm.ret %c }
vm.func @nothing() { vm.ret }
vm.func @tensor() -> !vm.tensor<1, f32> { %c = vm.constant_tensor @weight : !vm.tensor<1, f32> vm.ret %c }
vm.func @boxed() -> !vm.object { %c = vm.const 7 vm.ret %c }
"""


@pytest.fixture(scope="module")
def constants(native):
    return native(CONSTANTS, {"weight": tvm_ffi.from_dlpack(np.array([1, 2], np.float32))})


def test_constants(constants):
    assert constants["int"]() == -5
    assert constants["bool"]() is True
    assert math.copysign(1, constants["float"]()) == -1
    assert constants["short"]() == "relu"
    assert constants["long"]() == "a string that is too long for a register"
    assert constants["dtype"]() == "bfloat16"
    assert constants["null"]() is None
    assert constants["nothing"]() is None
    assert constants["boxed"]() == 7
    assert np.from_dlpack(constants["tensor"]()).tolist() == [1, 2]


def test_a_constant_outlives_its_functions(native):
    functions = native(CONSTANTS, {"weight": tvm_ffi.from_dlpack(np.array([1, 2], np.float32))})
    tensor = functions["tensor"]()
    del functions
    assert np.from_dlpack(tensor).tolist() == [1, 2]


def test_missing_constant(native):
    with pytest.raises(ValueError, match="constants weight of the native code are missing"):
        native(CONSTANTS)


CONTAINERS = """
vm.func @tuple(%a : !vm.object, %b : !vm.object) -> !vm.object {
  %c = vm.const 3
  %t = vm.make_tuple(%a, %c, %b)
  vm.ret %t
}
vm.func @field(%t : !vm.object) -> !vm.object {
  %x = vm.tuple_get %t[1]
  vm.ret %x
}
vm.func @empty() -> !vm.object {
  %t = vm.make_tuple()
  vm.ret %t
}
vm.func @shape(%n : !vm.object) -> !vm.shape<2> {
  %i = vm.check_int %n
  %s = vm.make_shape(%i, %i) : !vm.shape<2>
  vm.ret %s
}
vm.func @dims(%s : !vm.object) -> i64 {
  %t = vm.check_shape %s rank 2
  %a = vm.shape_dim %t[0]
  %b = vm.shape_dim %t[1]
  %r = vm.int mul %a, %b
  vm.ret %r
}
vm.func @shape_of(%x : !vm.object) -> !vm.shape<_> {
  %t = vm.check_tensor %x
  %s = vm.shape_of %t : !vm.shape<_>
  vm.ret %s
}
vm.func @element(%x : !vm.object) -> i64 {
  %t = vm.check_tensor %x rank 1 dtype i64
  %a = vm.read_int %t[1]
  vm.ret %a
}
vm.func @axis(%x : !vm.object, %s : !vm.object) -> i64 {
  %t = vm.check_tensor %x
  %u = vm.check_shape %s
  %a = vm.tensor_dim %t[1]
  %b = vm.shape_dim %u[1]
  %r = vm.int add %a, %b
  vm.ret %r
}
"""


@pytest.fixture(scope="module")
def containers(native):
    return native(CONTAINERS)


def test_an_element_of_a_vector(containers) -> None:
    assert containers["element"](np.array([3, -(2**62), 5])[0:2]) == -(2**62)
    with pytest.raises(ValueError, match="read_int: expected an element #1, got a vector of 1"):
        containers["element"](np.array([3]))


def test_tuples(containers):
    array = np.zeros(2)
    fields = containers["tuple"]("a long string, a long string", array)
    assert fields[0] == "a long string, a long string"
    assert fields[1] == 3
    assert np.shares_memory(np.from_dlpack(fields[2]), array)
    assert containers["field"]((1, "x" * 20)) == "x" * 20
    assert len(containers["empty"]()) == 0


def test_tuple_errors(containers):
    with pytest.raises(TypeError, match=r"^tuple_get: expected a tuple, got int$"):
        containers["field"](1)
    with pytest.raises(ValueError, match=r"^tuple_get: expected a field #1, got a tuple of 1$"):
        containers["field"]((1,))


def test_shapes(containers):
    assert containers["shape"](5) == (5, 5)
    assert containers["dims"](tvm_ffi.Shape((4, 6))) == 24
    assert containers["shape_of"](np.zeros((2, 0, 3))) == (2, 0, 3)
    assert containers["shape_of"](np.zeros(())) == ()
    assert containers["axis"](np.zeros((2, 5)), tvm_ffi.Shape((1, 7, 1))) == 12


def test_axis_out_of_range(containers):
    with pytest.raises(ValueError, match=r"^dimension 1 asked of a value of rank 1$"):
        containers["axis"](np.zeros(2), tvm_ffi.Shape((1, 7, 1)))
    with pytest.raises(ValueError, match=r"^dimension 1 asked of a value of rank 0$"):
        containers["axis"](np.zeros((2, 2)), tvm_ffi.Shape(()))


def _int_function(kind: str) -> str:
    check = "check_bool" if kind in LOGICAL else "check_int"
    result = "i1" if kind in LOGICAL | COMPARISONS else "i64"
    return f"""vm.func @{kind}(%x : !vm.object, %y : !vm.object) -> {result} {{
      %a = vm.{check} %x
      %b = vm.{check} %y
      %r = vm.int {kind} %a, %b
      vm.ret %r
    }}"""


@pytest.fixture(scope="module")
def int_functions(native):
    return native("\n".join(_int_function(kind) for kind in INT_FUNCTIONS))


INT64 = st.one_of(
    st.integers(-5, 5), st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([-(1 << 63), (1 << 63) - 1])
)


def _check_function(native, arguments, function, operands):
    try:
        expected = function(*operands)
    except ValueError as error:
        with pytest.raises(ValueError, match=f"^{error}$"):
            native(*arguments)
    else:
        assert native(*arguments) == expected


@given(a=INT64, b=INT64)
def test_integer_functions(int_functions, a, b):
    for kind, function in INT_FUNCTIONS.items():
        x, y = (bool(a % 2), bool(b % 2)) if kind in LOGICAL else (a, b)
        _check_function(int_functions[kind], (x, y), function, (x, y))


@pytest.mark.parametrize("divisor", [-7, -1, 1, 4, 7])
def test_division_by_a_constant(native, divisor):
    text = "\n".join(
        f"""vm.func @{kind}(%x : !vm.object) -> i64 {{
          %a = vm.check_int %x
          %b = vm.const {divisor}
          %r = vm.int {kind} %a, %b
          vm.ret %r
        }}"""
        for kind in ("floordiv", "mod")
    )
    functions = native(text)
    for value in (-(1 << 63), -9, -8, -7, -1, 0, 1, 6, 7, 8, (1 << 63) - 1):
        for kind in ("floordiv", "mod"):
            _check_function(functions[kind], (value,), INT_FUNCTIONS[kind], (value, divisor))


def test_division_by_constant_zero(native):
    with pytest.raises(ValueError, match=r"^division by zero$"):
        native("vm.func @f() -> i64 { %a = vm.const 1 %b = vm.const 0 %r = vm.int mod %a, %b vm.ret %r }")["f"]()
