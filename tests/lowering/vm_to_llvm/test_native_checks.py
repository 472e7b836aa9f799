"""What checks accept and what they say: the same as the builtins of the bytecode machine."""

import numpy as np
import pytest
import tvm_ffi

from vm_dialect.builtins import BUILTINS
from vm_dialect.dtypes import ELEMENT_TYPES
from vm_dialect.tensors import from_numpy, numpy_dtype, to_value


def _misaligned(shape, dtype):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 16 + 1
    return memory[start : start + count].view(dtype).reshape(shape)


VALUES = {
    "null": None,
    "int": 3,
    "negative int": -(1 << 63),
    "true": True,
    "float": 2.5,
    "string": "text",
    "long string": "a text that does not fit into a value",
    "bytes": b"text",
    "dtype": tvm_ffi.dtype("float32"),
    "device": tvm_ffi.device("cpu:0"),
    "shape": tvm_ffi.Shape((2, 3)),
    "tuple": (1, 2),
    "triple": (1, "b", None),
    "map": {"a": 1},
    "function": len,
    "scalar tensor": np.zeros((), np.float32),
    "vector": np.zeros(3, np.float32),
    "matrix": np.zeros((2, 3), np.float32),
    "int matrix": np.zeros((2, 3), np.int64),
    "bool vector": np.zeros(3, np.bool_),
    "columns": np.zeros((4, 6), np.float32)[:, :3],
    "transposed": np.zeros((4, 6), np.float32).T,
    "every other": np.zeros((2, 6), np.float32)[:, ::2],
    "empty columns": np.zeros((4, 6), np.float32)[:, :0],
    "transposed column": np.zeros((4, 1), np.float32).T,
    "misaligned": _misaligned((2, 3), np.float32),
    "misaligned empty": _misaligned((0, 3), np.float32),
    "misaligned bytes": _misaligned((2, 3), np.int8),
}

CHECKS = {
    "any": ("check_tensor %o", "check_tensor", (-1, None)),
    "matrix": ("check_tensor %o rank 2", "check_tensor", (2, None)),
    "float_matrix": ("check_tensor %o rank 2 dtype f32", "check_tensor", (2, "float32")),
    "half_vector": ("check_tensor %o rank 1 dtype bf16", "check_tensor", (1, "bfloat16")),
    "shape": ("check_shape %o", "check_shape", (-1,)),
    "shape_of_two": ("check_shape %o rank 2", "check_shape", (2,)),
    "shape_of_three": ("check_shape %o rank 3", "check_shape", (3,)),
    "int": ("check_int %o", "check_int", ()),
    "float": ("check_float %o", "check_float", ()),
    "bool": ("check_bool %o", "check_bool", ()),
    "pair": ("check_tuple %o size 2", "check_tuple", (2,)),
    "single": ("check_tuple %o size 1", "check_tuple", (1,)),
    "function": ("check_func %o", "check_func", ()),
}

SUBJECT = "main: argument #0 (100 % sure)"


@pytest.fixture(scope="module")
def checks(native):
    result = {"int": "i64", "float": "f64", "bool": "i1"}
    return native(
        "\n".join(
            f"""vm.func @{name}(%o : !vm.object) -> {result.get(name, "!vm.object")} {{
              %r = vm.{text} as "{SUBJECT}"
              vm.ret %r
            }}"""
            for name, (text, _, _) in CHECKS.items()
        )
    )


def _outcome(function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", VALUES)
def test_same_as_the_builtin(checks, check, value):
    _, builtin, arguments = CHECKS[check]
    given = to_value(VALUES[value])
    expected = _outcome(BUILTINS[builtin].function, given, *arguments, SUBJECT)
    got = _outcome(checks[check], given)
    if isinstance(expected, tuple) and expected[0] in (TypeError, ValueError):
        assert got == expected
    elif isinstance(expected, tvm_ffi.Tensor):
        assert got.data_ptr() == expected.data_ptr()
        assert got.shape == expected.shape
    elif isinstance(expected, tvm_ffi.Function):
        assert got("abc") == 3
    else:
        assert got == expected


def test_an_integer_that_is_too_big(checks):
    for name in ("int", "float"):
        with pytest.raises(TypeError, match=r"expected an? .*, got object$"):
            checks[name](1 << 80)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_every_element_type(native, name):
    element = ELEMENT_TYPES[name]
    function = native(
        f"""vm.func @f(%o : !vm.object) -> !vm.tensor<1, {name}> {{
          %r = vm.check_tensor %o rank 1 dtype {name} as "x"
          vm.ret %r
        }}"""
    )["f"]
    tensor = from_numpy(np.zeros(3, numpy_dtype(element)))
    assert function(tensor).dtype == element.ffi_name
    other = ELEMENT_TYPES["f32" if name != "f32" else "i32"]
    with pytest.raises(TypeError, match=f"^x: expected dtype {element.ffi_name}, got {other.ffi_name}$"):
        function(from_numpy(np.zeros(3, numpy_dtype(other))))


def test_a_dtype_that_the_machine_does_not_have(native):
    function = native('vm.func @f(%o : !vm.object) { %r = vm.check_tensor %o dtype f32 as "x" vm.ret }')["f"]
    with pytest.raises(TypeError, match=r"^x: expected dtype float32, got DLPack type 5 of 128 bits$"):
        function(np.zeros(3, np.complex128))


ASSERTS = """
vm.func @same(%x : !vm.object, %y : !vm.object) -> i64 attributes {arg_names = ["x", "y"]} {
  %a = vm.check_tensor %x rank 1 dtype f32 as "same: argument #0 (x)"
  %b = vm.check_tensor %y rank 1 dtype f32 as "same: argument #1 (y)"
  %n = vm.tensor_dim %a[0]
  %m = vm.tensor_dim %b[0]
  %ok = vm.int eq %n, %m
  vm.assert %ok, "same: argument #1 (y) dimension 0: expected n = {} (from argument #0 (x) dimension 0), got {}"(%n, %m)
  vm.ret %n
}
vm.func @plain(%c : !vm.object) {
  %ok = vm.check_bool %c
  vm.assert %ok, "100% wrong, \\\\ \\"sorry\\" %s"
  vm.ret
}
"""


def test_arguments_that_disagree(native):
    same = native(ASSERTS)["same"]
    assert same(np.zeros(4, np.float32), np.zeros(4, np.float32)) == 4
    message = "same: argument #1 (y) dimension 0: expected n = 4 (from argument #0 (x) dimension 0), got 5"
    with pytest.raises(ValueError) as info:  # noqa: PT011
        same(np.zeros(4, np.float32), np.zeros(5, np.float32))
    assert str(info.value) == message


def test_a_message_is_text(native):
    plain = native(ASSERTS)["plain"]
    assert plain(True) is None
    with pytest.raises(ValueError) as info:  # noqa: PT011
        plain(False)
    assert str(info.value) == '100% wrong, \\ "sorry" %s'


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments(native, count):
    same = native(ASSERTS)["same"]
    with pytest.raises(TypeError) as info:
        same(*[1] * count)
    assert str(info.value) == f"same: expected 2 arguments (x, y), got {count}"


def test_a_very_long_message(native):
    subject = "x" * 5000
    function = native(f'vm.func @f(%o : !vm.object) -> i64 {{ %r = vm.check_int %o as "{subject}" vm.ret %r }}')["f"]
    with pytest.raises(TypeError) as info:
        function(None)
    assert str(info.value) == f"{subject}: expected an int, got null"


APART = """
vm.func @apart(%x : !vm.object, %y : !vm.object) {
  %a = vm.check_tensor %x rank 2 dtype f64
  %b = vm.check_tensor %y rank 1 dtype f32
  vm.check_apart %a, %b, "100 % apart"
  vm.ret
}
"""


def test_tensors_that_overlap(native):
    apart = native(APART)["apart"]
    memory = np.zeros(96, np.uint8)
    matrix = memory[32:64].view(np.float64).reshape(2, 2)
    for start in range(0, 96, 4):
        vector = memory[start : start + 8].view(np.float32)
        outcomes = [
            _outcome(apart, matrix, vector),
            _outcome(BUILTINS["check_apart"].function, *map(to_value, (matrix, vector)), "100 % apart"),
        ]
        expected = (ValueError, "100 % apart") if 24 < start < 64 else None
        assert outcomes == [expected, expected]
    apart(matrix, memory[40:40].view(np.float32))
    apart(matrix[:0], memory[40:48].view(np.float32))
