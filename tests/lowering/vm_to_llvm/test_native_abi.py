"""Corners of tvm-ffi's calling convention that Python does not reach by itself."""

import ctypes

import numpy as np
import pytest
import tvm_ffi

from lowering.llvm.compiler import compile_object
from lowering.runtime.loading import load_objects
from lowering.vm_to_llvm.objects import runtime_object
from lowering.vm_to_llvm.runtime_builder import PARTS
from tir_dialect.target import Target
from vm_dialect.builtins import BUILTINS

# call_with(kind, function, value): calls the function with one argument of another kind than the value's own.
CALLER = """
declare i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)
@text = private constant [7 x i8] c"a text\\00"
@bytes = private constant { ptr, i64 } { ptr @text, i64 3 }
define i32 @call_with(ptr %self, ptr %args, i32 %count, ptr %ret) {
  %argument = alloca { i32, i32, ptr }
  %kind.at = getelementptr i8, ptr %args, i64 8
  %kind = load i32, ptr %kind.at
  %function.at = getelementptr i8, ptr %args, i64 24
  %function = load ptr, ptr %function.at
  %object.at = getelementptr i8, ptr %args, i64 40
  %object = load ptr, ptr %object.at
  %tensor = getelementptr i8, ptr %object, i64 24
  %is.string = icmp eq i32 %kind, 8
  %is.bytes = icmp eq i32 %kind, 9
  %string.or.tensor = select i1 %is.string, ptr @text, ptr %tensor
  %payload = select i1 %is.bytes, ptr @bytes, ptr %string.or.tensor
  store i32 %kind, ptr %argument
  %pad.at = getelementptr i8, ptr %argument, i64 4
  store i32 0, ptr %pad.at
  %payload.at = getelementptr i8, ptr %argument, i64 8
  store ptr %payload, ptr %payload.at
  %status = call i32 @TVMFFIFunctionCall(ptr %function, ptr %argument, i32 1, ptr %ret)
  ret i32 %status
}
"""
DL_TENSOR, RAW_STRING, BYTE_ARRAY = 7, 8, 9


@pytest.fixture(scope="module")
def call_with():
    code = load_objects([compile_object(CALLER, Target.host())])
    return tvm_ffi.Function.__from_extern_c__(code.address("call_with"), keep_alive_object=code)


FUNCTIONS = """
vm.func @plus_one(%o : !vm.object) -> !vm.tensor<1, f32> {
  %x = vm.check_tensor %o rank 1 dtype f32
  %n = vm.tensor_dim %x[0]
  %y = vm.new_tensor [%n] f32
  vm.call_kernel @add_one[%n](%x, %y)
  %v = vm.view %x [%n] f32
  vm.call_kernel @add_one[%n](%y, %y)
  vm.ret %y
}
vm.func @shape(%o : !vm.object) -> !vm.object {
  %x = vm.check_tensor %o
  %s = vm.shape_of %x : !vm.shape<_>
  %r = vm.call @pass(%x, %s) : !vm.object
  vm.ret %r
}
vm.func private @pass(%x : !vm.tensor<_, _>, %s : !vm.object) -> !vm.object {
  %d = vm.tensor_dim %x[0]
  %t = vm.make_tuple(%d, %s)
  vm.ret %t
}
vm.func @id(%o : !vm.object) -> !vm.object {
  vm.ret %o
}
vm.func @again(%o : !vm.object) -> !vm.object {
  vm.goto ^b(%o)
^b(%p : !vm.object):
  vm.ret %p
}
vm.func @view(%o : !vm.object) -> !vm.tensor<1, f32> {
  %x = vm.check_tensor %o rank 1 dtype f32
  %n = vm.tensor_dim %x[0]
  %v = vm.view %x [%n] f32
  vm.ret %v
}
"""


@pytest.fixture(scope="module")
def functions(native):
    return native(FUNCTIONS)


@pytest.fixture
def vector() -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(np.arange(3, dtype=np.float32))


def test_a_bare_dltensor_is_a_tensor(functions, call_with, vector):
    assert np.from_dlpack(call_with(DL_TENSOR, functions["plus_one"], vector)).tolist() == [2, 3, 4]
    size, shape = call_with(DL_TENSOR, functions["shape"], vector)
    assert (size, tuple(shape)) == (3, (3,))


@pytest.mark.parametrize("name", ["id", "again", "view"])
def test_a_bare_dltensor_is_not_kept(functions, call_with, vector, name):
    with pytest.raises(TypeError, match="a borrowed DLTensor cannot be kept or returned: pass a tensor object"):
        call_with(DL_TENSOR, functions[name], vector)


@pytest.mark.parametrize("name", ["id", "again"])
def test_raw_strings_are_copied(functions, call_with, vector, name):
    assert call_with(RAW_STRING, functions[name], vector) == "a text"
    assert call_with(BYTE_ARRAY, functions[name], vector) == b"a t"


def test_a_tensor_on_another_device(functions, vector):
    device = ctypes.c_int32.from_address(vector.__chandle__() + 24 + 8)
    device.value = 2
    try:
        with pytest.raises(ValueError, match="DLPack device type 2") as expected:
            BUILTINS["check_tensor"].function(vector, 1, "float32", "value")
        with pytest.raises(ValueError, match="DLPack device type 2") as got:
            functions["plus_one"](vector)
    finally:
        device.value = 1
    assert str(got.value) == str(expected.value)


def test_byte_offsets_count(functions):
    array = np.arange(8, dtype=np.float32)
    tensor = tvm_ffi.from_dlpack(array[:4])
    offset = ctypes.c_uint64.from_address(tensor.__chandle__() + 24 + 40)
    offset.value = 12
    try:
        assert np.from_dlpack(functions["plus_one"](tensor)).tolist() == [5, 6, 7, 8]
    finally:
        offset.value = 0


@pytest.mark.parametrize("target", ["x86-64", "neoverse-n1"])
@pytest.mark.parametrize("part", PARTS)
def test_the_support_compiles_for_other_processors(target, part):
    assert runtime_object(Target.parse(target), None, part)[:4] == b"\x7fELF"
