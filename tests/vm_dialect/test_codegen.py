"""From IR to bytecode to values; the cases follow TVM's `test_vm_codegen_only.py`."""

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest
import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

from lowering.locations import names
from lowering.relax_to_vm.allocate_registers import AllocateRegistersPass
from vm_dialect import Executable, VirtualMachine
from vm_dialect.codegen import emit_executable
from vm_dialect.dialect import VM
from vm_dialect.tensors import from_numpy, to_numpy


def parse(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(VM)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def compile_text(text: str, **options: Any) -> Executable:
    module = parse(text)
    AllocateRegistersPass().apply(Context(), module)
    module.verify()
    return emit_executable(module, **options)


def run_text(text: str, *arguments: Any, kernels: dict[str, Callable[..., Any]] | None = None) -> Any:
    result = VirtualMachine(compile_text(text), kernels=kernels)["main"](*arguments)
    return to_numpy(result) if isinstance(result, tvm_ffi.Tensor) else result


def test_copy():
    x = np.arange(3.0)
    text = """
    vm.func @main(%x: !vm.object) -> !vm.object {
      %y = vm.call_packed "test.vm.identity"(%x) : !vm.object
      vm.ret %y
    }"""
    np.testing.assert_array_equal(run_text(text, x), x)


@pytest.mark.parametrize("condition", [True, False])
def test_if_on_a_constant(condition: bool):
    text = f"""
    vm.func @main(%x: !vm.object) -> !vm.object {{
      %c = vm.const {str(condition).lower()}
      %one = vm.const 1 : i64
      vm.if %c, ^done(%x), ^done(%one)
    ^done(%r: !vm.object):
      vm.ret %r
    }}"""
    assert run_text(text, 7) == (7 if condition else 1)


@pytest.mark.parametrize("condition", [True, False])
def test_if_on_a_tensor(condition: bool):
    text = """
    vm.func @main(%c: !vm.object, %x: !vm.object) -> !vm.object {
      %t = vm.check_tensor %c rank 0 dtype i1
      %b = vm.read_cond %t
      vm.if %b, ^then, ^else
    ^then:
      %s = vm.call_packed "test.vm.add"(%x, %x) : !vm.object
      vm.goto ^done(%s)
    ^else:
      %p = vm.call_packed "test.vm.mul"(%x, %x) : !vm.object
      vm.goto ^done(%p)
    ^done(%r: !vm.object):
      vm.ret %r
    }"""
    assert run_text(text, np.array(condition), np.full(1, 3.0))[0] == (6 if condition else 9)


def test_a_constant_tuple_and_constants_as_arguments():
    text = """
    vm.constant @bias : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
    vm.constant @half : tensor<3xbf16> = dense<0.5> : tensor<3xbf16>
    vm.func @main(%x: !vm.object) -> !vm.object {
      %bias = vm.constant_tensor @bias : !vm.tensor<1, f32>
      %half = vm.constant_tensor @half : !vm.tensor<1, bf16>
      %sum = vm.call_packed "test.vm.add"(%x, %bias) : !vm.object
      %null = vm.null
      %name = vm.str "name"
      %dtype = vm.dtype f32
      %n = vm.const -3 : i64
      %big = vm.const 9223372036854775807 : i64
      %y = vm.const true
      %f = vm.const 0.25 : f64
      %r = vm.make_tuple(%sum, %half, %null, %name, %dtype, %n, %big, %y, %f)
      vm.ret %r
    }"""
    total, half, *rest = run_text(text, np.ones(2, np.float32))
    np.testing.assert_array_equal(to_numpy(total), np.array([2, 3], np.float32))
    assert half.dtype == "bfloat16"
    np.testing.assert_array_equal(to_numpy(half).astype(np.float32), np.full(3, 0.5))
    assert rest == [None, "name", "float32", -3, (1 << 63) - 1, True, 0.25]
    assert rest[5] is True


def test_shape_check():
    text = """
    vm.func @main(%x: !vm.object, %w: !vm.object) -> !vm.object {
      %a = vm.check_tensor %x rank 2 dtype f32 as "main: argument #0 (x)"
      %b = vm.check_tensor %w rank 2 dtype f32 as "main: argument #1 (w)"
      %n = vm.tensor_dim %a[0]
      %k = vm.tensor_dim %a[1]
      %d = vm.tensor_dim %b[0]
      %ok = vm.int eq %k, %d
      vm.assert %ok, "main: argument #1 (w) dimension 0: expected k = {} (from argument #0 (x)), got {}"(%k, %d)
      %two = vm.const 2 : i64
      %m = vm.int mul %n, %two
      %s = vm.make_shape(%m, %k) : !vm.shape<2>
      vm.ret %s
    }"""
    f32 = np.float32
    assert run_text(text, np.zeros((3, 4), f32), np.zeros((4, 5), f32)) == (6, 4)
    message = r"main: argument #1 \(w\) dimension 0: expected k = 4 \(from argument #0 \(x\)\), got 5"
    with pytest.raises(ValueError, match=message):
        run_text(text, np.zeros((3, 4), f32), np.zeros((5, 5), f32))
    with pytest.raises(TypeError, match=r"argument #0 \(x\): expected rank 2, got 1"):
        run_text(text, np.zeros(3, f32), np.zeros((4, 5), f32))


def test_prim_values_and_loops():
    text = """
    vm.func @main(%o: !vm.object) -> i64 {
      %n = vm.check_int %o
      %zero = vm.const 0 : i64
      %one = vm.const 1 : i64
      vm.goto ^head(%zero, %one)
    ^head(%i: i64, %previous: i64):
      %c = vm.int lt %i, %n
      vm.if %c, ^body, ^done
    ^body:
      %next = vm.int add %i, %one
      %sum = vm.int add %previous, %next
      vm.goto ^head(%next, %sum)
    ^done:
      vm.ret %previous
    }"""
    assert run_text(text, 100) == 5051
    assert run_text(text, 0) == 1


def test_values_change_places():
    text = """
    vm.func @main(%a: !vm.object, %b: !vm.object, %c: !vm.object, %n: !vm.object) -> !vm.object {
      %count = vm.check_int %n
      %zero = vm.const 0 : i64
      %one = vm.const 1 : i64
      vm.goto ^head(%a, %b, %c, %zero)
    ^head(%x: !vm.object, %y: !vm.object, %z: !vm.object, %i: i64):
      %more = vm.int lt %i, %count
      %next = vm.int add %i, %one
      vm.if %more, ^head(%y, %z, %x, %next), ^done
    ^done:
      %r = vm.make_tuple(%x, %y, %z)
      vm.ret %r
    }"""
    assert [tuple(run_text(text, 1, 2, 3, n)) for n in range(4)] == [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 2, 3)]


def test_views_and_memory():
    text = """
    vm.func @main(%x: !vm.object) -> !vm.object {
      %t = vm.check_tensor %x rank 2 dtype f32
      %n = vm.tensor_dim %t[0]
      %m = vm.tensor_dim %t[1]
      %nm = vm.int mul %n, %m
      %four = vm.const 4 : i64
      %zero = vm.const 0 : i64
      %bytes = vm.int mul %nm, %four
      %storage = vm.alloc_storage %bytes
      %a = vm.alloc_tensor %storage at %zero [%n, %m] f32
      vm.call_kernel @double[%n, %m](%t, %a)
      %v = vm.view %a [%nm] f32
      %out = vm.new_tensor [%nm] f32
      vm.call_kernel @double[%nm](%v, %out)
      vm.kill %a
      vm.kill %v
      vm.kill %storage
      vm.ret %out
    }"""

    def double(*arguments: Any) -> None:
        source, target = (to_numpy(tensor) for tensor in arguments[-2:])
        assert list(arguments[:-2]) == list(source.shape)
        target[...] = 2 * source

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run_text(text, x, kernels={"double": double}), 4 * x.reshape(-1))
    assert run_text(text, np.zeros((0, 3), np.float32), kernels={"double": double}).shape == (0,)


def test_kill_releases_the_value():
    text = """
    vm.func @main(%x: !vm.object) -> i1 {
      %t = vm.call_packed "test.vm.make"() : !vm.object
      vm.kill %t
      %alive = vm.call_packed "test.vm.alive"() : !vm.object
      %r = vm.check_bool %alive
      vm.ret %r
    }"""
    references: list[Any] = []

    def make() -> Any:
        array = np.zeros(3)
        references.append(ref(array))
        return from_numpy(array)

    tvm_ffi.register_global_func("test.vm.make", make, override=True)
    tvm_ffi.register_global_func("test.vm.alive", lambda: references[0]() is not None, override=True)
    assert run_text(text, 0) is False


def test_closures_and_calls():
    text = """
    vm.func private @add(%n: i64, %x: !vm.object) -> i64 {
      %m = vm.check_int %x
      %s = vm.int add %n, %m
      vm.ret %s
    }
    vm.func @main(%x: !vm.object) -> !vm.object {
      %n = vm.check_int %x
      %f = vm.make_closure @add(%n)
      %a = vm.call_closure %f(%x) : !vm.object
      %b = vm.call @add(%n, %a) : i64
      %r = vm.make_tuple(%f, %a, %b)
      vm.ret %r
    }"""
    function, a, b = run_text(text, 20)
    assert (a, b, function(1)) == (40, 60, 21)


def test_constants_from_outside():
    text = """
    vm.constant @w : tensor<2xf64>
    vm.func @main() -> !vm.tensor<1, f64> {
      %w = vm.constant_tensor @w : !vm.tensor<1, f64>
      vm.ret %w
    }"""
    weight = np.array([1.5, 2.5])
    result = VirtualMachine(compile_text(text, tensors={"w": weight}))["main"]()
    assert np.shares_memory(to_numpy(result), weight)
    with pytest.raises(DiagnosticException, match="constant @w has no elements"):
        compile_text(text)
    with pytest.raises(DiagnosticException, match="constant @w expected f64\\[2\\], got elements of f64\\[3\\]"):
        compile_text(text, tensors={"w": np.zeros(3)})


def test_locations_reach_errors():
    text = """
    vm.func @main(%x: !vm.object) -> !vm.object {
      %r = vm.call_packed "test.vm.fail"(%x) : !vm.object loc("conv1")
      vm.ret %r
    }"""
    executable = compile_text(text, describe=lambda location: ", ".join(names(location)))
    assert list(executable.locations.values()) == ["conv1"]
    with pytest.raises(IndexError) as caught:
        VirtualMachine(executable)["main"]("oh")
    assert caught.value.__notes__ == ["in function main, instruction 0 (test.vm.fail), from conv1"]


def test_registers_are_required():
    with pytest.raises(DiagnosticException, match="@main has no registers: run allocate-registers"):
        emit_executable(parse("vm.func @main() { vm.ret }"))


def test_private_functions_are_not_entries():
    executable = compile_text("vm.func private @f() { vm.ret } vm.func @main() { vm.call @f() vm.ret }")
    assert executable.entries == ("main",)
    assert run_text("vm.func private @f() { vm.ret } vm.func @main() { vm.call @f() vm.ret }") is None
