"""Functions as values in every mode: closures, PrimFuncs, packed functions; made here, called there."""

from collections.abc import Callable

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from tests.support.programs import MODES, as_plain, run_everywhere, runner
from vm_dialect import VirtualMachine

SCALE = """
tir.prim_func @scale[%n, %k](%x: !tir.buffer<[n], f32>, %a: f32, %y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "scale" (%v = spatial %i in %n) {
      %0 = tir.load %x[%v]
      %1 = arith.mulf %0, %a : f32
      %2 = arith.index_cast %k : index to i64
      %3 = arith.sitofp %2 : i64 to f32
      %4 = arith.addf %1, %3 : f32
      tir.store %4, %y[%v]
    }
  }
}
"""
TENSOR = "!relax.tensor<[m], f32>"
SCALE_TYPE = f"!relax.func<[m, k]({TENSOR}, !relax.prim<f32>, {TENSOR}, !relax.prim<i64, k>) -> !relax.tuple<>, impure>"
LEFT_TYPE = f"!relax.func<[m]({TENSOR}, !relax.prim<f32>, {TENSOR}, !relax.prim<i64>) -> !relax.tuple<>, impure>"


def arange(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def test_a_prim_func_as_an_argument():
    program = f"""
      {SCALE}
      relax.func private @apply[%n](%f: {LEFT_TYPE}, %x: !relax.tensor<[n], f32>) -> !relax.object impure {{
        %s = relax.shape [n]
        %y = relax.zeros %s dtype = f32
        %a = relax.prim f32 2.0
        %k = relax.prim 7
        %0 = relax.call_closure %f(%x, %a, %y, %k)
        relax.return %y
      }}
      relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {{
        %f = relax.make_closure @scale() : {SCALE_TYPE}
        %y = relax.call @apply(%f, %x) impure : !relax.object
        relax.return %y
      }}
    """
    np.testing.assert_array_equal(run_everywhere(program, "main", [arange(4)]), 2 * arange(4) + 7)


RETURNED = f"""
{SCALE}
relax.func @main() -> {SCALE_TYPE} {{
  %f = relax.make_closure @scale() : {SCALE_TYPE}
  relax.return %f
}}
relax.func @given(%x: !relax.tensor<[3], f32>) -> !relax.object {{
  %f = relax.make_closure @scale(%x) :
    !relax.func<[k](!relax.prim<f32>, !relax.tensor<[3], f32>, !relax.prim<i64, k>) -> !relax.tuple<>, impure>
  relax.return %f
}}
relax.func @closure(%x: !relax.tensor<[3], f32>) -> !relax.object {{
  %f = relax.closure [%n](%y: !relax.tensor<[n, 3], f32>, %t: !relax.tuple<!relax.shape<*>, !relax.object>)
      -> !relax.object {{
    %0 = relax.add %x, %y
    %1 = relax.tuple(%0, %t)
    relax.return %1
  }}
  relax.return %f
}}
"""


def value(mode: str, name: str, *args: object) -> Callable[..., object]:
    """The function value that a function returns, as it is outside."""
    module = parse_module(RETURNED)
    if mode == "interpret":
        result = run(module, name, args)
    else:
        result = VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))[name](*args)
    assert callable(result)
    return result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_a_prim_func_called_from_outside(mode: str):
    x, y = tvm_ffi.from_dlpack(arange(3)), tvm_ffi.from_dlpack(np.zeros(3, np.float32))
    value(mode, "main")(x, 3.0, y, 1)
    np.testing.assert_array_equal(np.from_dlpack(y), 3 * arange(3) + 1)
    value(mode, "given", x)(2.0, y, 0)
    np.testing.assert_array_equal(np.from_dlpack(y), 2 * arange(3))
    with pytest.raises(ValueError, match=r"argument #2 \(y\) dimension 0: expected n = 3"):
        value(mode, "main")(x, 3.0, tvm_ffi.from_dlpack(arange(4)), 1)
    with pytest.raises(TypeError, match=r"expected 4 arguments.*got 1"):
        value(mode, "main")(x)


@pytest.mark.parametrize("mode", MODES)
def test_a_closure_called_from_outside(mode: str):
    x, y = tvm_ffi.from_dlpack(arange(3)), tvm_ffi.from_dlpack(arange(2, 3))
    pair = tvm_ffi.Array([tvm_ffi.Shape((1, 2)), "text"])
    total, (shape, text) = as_plain(value(mode, "closure", x)(y, pair))
    np.testing.assert_array_equal(total, arange(2, 3) + arange(3))
    assert (tuple(shape), text) == ((1, 2), "text")


PACKED = """
relax.func private @twice(%f: !relax.func<* -> !relax.object, impure>, %x: !relax.object) -> !relax.object impure {
  %0 = relax.call_closure %f(%x)
  %1 = relax.call_closure %f(%0)
  relax.return %1
}
relax.func @main(%x: !relax.object) -> !relax.object impure {
  %f = relax.extern_func "tests.function_values.next" : !relax.func<* -> !relax.object, impure>
  %0 = relax.call @twice(%f, %x) impure : !relax.object
  relax.return %0
}
relax.func @given(%f: !relax.func<* -> !relax.object, impure>, %x: !relax.object) -> !relax.object impure {
  %g = relax.make_closure @twice(%f) : !relax.func<(!relax.object) -> !relax.object, impure>
  %t = relax.tuple(%g, %f)
  %h = relax.tuple_get %t[0]
  %0 = relax.call_closure %h(%x)
  relax.return %0
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_packed_functions(mode: str):
    tvm_ffi.register_global_func("tests.function_values.next", lambda number: number + 1, override=True)
    module = parse_module(PACKED)
    assert runner(module, "main", mode)(5) == 7
    assert runner(module, "given", mode)(tvm_ffi.convert(lambda text: f"{text}!"), "a") == "a!!"
    with pytest.raises(TypeError, match="expected a function, got int"):
        runner(module, "given", mode)(3, 4)
