"""Kernels, packed functions and closures."""

import gc
import traceback
import weakref

import numpy as np
import pytest
import tvm_ffi

from lowering.diagnostics import InvalidModule
from lowering.vm_to_llvm.loading import load_functions


def _register(name, function):
    tvm_ffi.register_global_func(name, function, override=True)


KERNELS = """
vm.func @scalars(%p : !vm.object, %q : !vm.object, %r : !vm.object) -> !vm.tensor<1, f64> {
  %a = vm.check_int %p
  %b = vm.check_bool %q
  %c = vm.check_float %r
  %one = vm.const 1
  %y = vm.new_tensor [%one] f64
  vm.call_kernel @fill[%one](%y, %a, %b, %c)
  vm.ret %y
}
vm.func @fails(%o : !vm.object) {
  %x = vm.check_tensor %o rank 1 dtype f32
  vm.call_kernel @refuse(%x)
  vm.ret
}
"""


def test_kernel_with_scalars(native):
    functions = native(KERNELS)
    assert np.from_dlpack(functions["scalars"](3, True, 0.25)).tolist() == [4.25]
    assert np.from_dlpack(functions["scalars"](-3, False, 1)).tolist() == [-2]


def test_kernel_that_fails(native):
    with pytest.raises(ValueError, match=r"^kernel says$"):
        native(KERNELS)["fails"](np.zeros(1, np.float32))


NARROW = """
llvm.func @store(i64, !llvm.ptr, i32, f32, i8) -> i32
vm.func @narrow(%p : !vm.object, %r : !vm.object) -> !vm.tensor<1, f32> {
  %a = vm.check_int %p
  %b = vm.const true
  %c = vm.check_float %r
  %one = vm.const 1
  %y = vm.new_tensor [%one] f32
  vm.call_kernel @store[%one](%y, %a, %c, %b)
  vm.ret %y
}
"""

STORE = """define i32 @store(i64 %n, ptr %y, i32 %a, float %b, i8 %c) {
  %d = sitofp i32 %a to float
  %e = uitofp i8 %c to float
  %f = fadd float %d, %e
  %g = fadd float %f, %b
  store float %g, ptr %y
  ret i32 0
}"""


def test_scalars_have_the_types_of_the_declaration(native):
    assert np.from_dlpack(native(NARROW, kernels=[STORE])["narrow"](3, 0.5)).tolist() == [4.5]


def test_kernel_with_another_number_of_arguments(native):
    text = """
    vm.func @f(%p : !vm.object) {
      %a = vm.check_int %p
      vm.call_kernel @k[%a]()
      vm.call_kernel @k[%a, %a]()
      vm.ret
    }"""
    with pytest.raises(InvalidModule, match=r"'vm.call_kernel' op @k expects 1 arguments, got 2"):
        native(text)


PACKED = """
vm.func @call(%x : !vm.object) -> !vm.object {
  %a = vm.const 3
  %b = vm.const 0.5 : f64
  %c = vm.const true
  %s = vm.str "short"
  %l = vm.str "a string that is an object"
  %n = vm.null
  %d = vm.dtype f16
  %r = vm.call_packed "test.native.echo"(%x, %a, %b, %c, %s, %l, %n, %d) : !vm.object
  vm.ret %r
}
vm.func @drop(%x : !vm.object) {
  vm.call_packed "test.native.echo"(%x)
  vm.ret
}
vm.func @in_place(%o : !vm.object) -> !vm.tensor<1, f32> {
  %x = vm.check_tensor %o rank 1 dtype f32
  %n = vm.tensor_dim %x[0]
  %y = vm.new_tensor [%n] f32
  vm.call_kernel @add_one[%n](%x, %y)
  vm.call_packed "test.native.double"(%y)
  vm.ret %y
}
vm.func @fail() -> !vm.object {
  %r = vm.call_packed "test.native.fail"() : !vm.object
  vm.ret %r
}
"""


class OwnError(Exception):
    """Unknown to tvm-ffi."""


@pytest.fixture(scope="module")
def packed(native):
    _register("test.native.echo", lambda *args: args)

    def double(tensor):
        array = np.from_dlpack(tensor)
        array *= 2

    def fail():
        raise KeyError("from the callback")

    _register("test.native.double", double)
    _register("test.native.fail", fail)
    return native(PACKED)


def test_packed_functions(packed):
    x, a, b, c, s, text, n, d = packed["call"]((1, 2))
    assert list(x) == [1, 2]
    assert (a, b, c, s, text, n, d) == (3, 0.5, True, "short", "a string that is an object", None, "float16")
    assert packed["drop"]("x" * 30) is None


def test_packed_function_works_in_place(packed):
    assert np.from_dlpack(packed["in_place"](np.arange(3, dtype=np.float32))).tolist() == [2, 4, 6]


def test_packed_function_that_raises(packed):
    with pytest.raises(KeyError, match="from the callback"):
        packed["fail"]()


def test_unknown_packed_function(native):
    with pytest.raises(ValueError) as info:  # noqa: PT011
        native('vm.func @f() { vm.call_packed "test.native.nobody"() vm.ret }')
    assert str(info.value) == (
        'packed function "test.native.nobody" is not registered: use tvm_ffi.register_global_func("test.native.nobody")'
    )


CLOSURES = """
vm.func private @add(%n : i64, %t : !vm.tensor<1, f32>, %s : !vm.object, %x : !vm.object) -> !vm.object {
  %m = vm.check_int %x as "add: argument"
  %d = vm.tensor_dim %t[0]
  %a = vm.int add %n, %m
  %b = vm.int add %a, %d
  %r = vm.make_tuple(%b, %s)
  vm.ret %r
}
vm.func @closure(%p : !vm.object, %o : !vm.object, %s : !vm.object) -> !vm.object {
  %n = vm.check_int %p
  %t = vm.check_tensor %o rank 1 dtype f32
  %c = vm.make_closure @add(%n, %t, %s)
  vm.ret %c
}
vm.func @apply(%f : !vm.object, %x : !vm.object) -> !vm.object {
  %g = vm.check_func %f as "apply: argument #0 (f)"
  %r = vm.call_closure %g(%x) : !vm.object
  vm.ret %r
}
vm.func @itself() -> !vm.object {
  %c = vm.make_closure @itself()
  vm.ret %c
}
vm.func @forever(%f : !vm.object) -> !vm.object {
  %r = vm.call_closure %f(%f) : !vm.object
  %t = vm.make_tuple(%r)
  vm.ret %t
}
"""


@pytest.fixture(scope="module")
def closures(native):
    return native(CLOSURES)


def test_closures(closures):
    closure = closures["closure"](10, np.zeros(5, np.float32), "captured")
    assert list(closure(100)) == [115, "captured"]
    assert list(closures["apply"](closure, 1)) == [16, "captured"]
    assert closures["apply"](lambda x: x * 2, 21) == 42
    assert closures["itself"]()()()() is not None


def test_closure_errors(closures):
    closure = closures["closure"](10, np.zeros(5, np.float32), "captured")
    with pytest.raises(TypeError, match=r"^add: argument: expected an int, got null$"):
        closure(None)
    with pytest.raises(TypeError, match=r"^add: expected 1 argument \(arg3\), got 2$"):
        closure(1, 2)
    with pytest.raises(TypeError, match=r"^apply: argument #0 \(f\): expected a function, got int$"):
        closures["apply"](1, 2)


def test_recursion_through_closures(closures):
    with pytest.raises(RecursionError, match=r"^forever: more than \d+ calls inside each other"):
        closures["forever"](closures["forever"])


def test_a_closure_keeps_the_code_and_the_last_one_releases_it(compiled):
    code = compiled(CLOSURES)
    alive = weakref.ref(code)
    closure = load_functions(code, {})["closure"](10, np.zeros(5, np.float32), "captured")
    del code
    gc.collect()
    assert alive() is not None
    assert list(closure(100)) == [115, "captured"]
    del closure
    gc.collect()
    assert alive() is None


def test_captured_values_are_released(closures):
    tensor = tvm_ffi.from_dlpack(np.zeros(5, np.float32))
    array = np.from_dlpack(tensor)
    closure = closures["closure"](1, tensor, (1, 2))
    del tensor
    assert closure(1)[0] == 7
    del closure
    assert array.shape == (5,)


TRACED = """
vm.func private @inner(%a : !vm.object) -> i64 {
  %n = vm.check_int %a as "inner: argument #0 (a)" loc("conv1"("model.onnx":12:1))
  vm.ret %n
}
vm.func @outer(%a : !vm.object) -> i64 {
  %n = vm.call @inner(%a) : i64
  vm.ret %n
}
vm.func @named(%a : !vm.object) {
  vm.call_packed "test.native.fail"(%a) loc("relu5")
  vm.ret
}
""".replace('  vm.assert %c, "never"(%n) loc("unused")\n', "")


def _frames(function, *arguments) -> list[tuple[str, int | None, str]]:
    with pytest.raises(Exception) as info:  # noqa: PT011
        function(*arguments)
    frames = traceback.extract_tb(info.value.__traceback__)
    return [(frame.filename, frame.lineno, frame.name) for frame in frames]


def test_errors_have_a_traceback_through_the_program(native):
    functions = native(TRACED)
    frames = _frames(functions["outer"], "text")
    assert frames[-2:] == [("<text>", 7, "outer"), ("model.onnx", 12, "inner (conv1)")]
    _register("test.native.fail", lambda value: value.missing)
    assert ("<named>", 0, "named (relu5)") in _frames(functions["named"], 1)


def test_the_traceback_of_deep_recursion_is_short(native):
    text = """
    vm.func @deep(%a : !vm.object) -> !vm.object {
      %r = vm.call @deep(%a) : !vm.object
      %t = vm.make_tuple(%r)
      vm.ret %t
    }"""
    assert 10 < len(_frames(native(text)["deep"], 1)) < 400
