"""What random programs call that is not generated: packed functions, and a PrimFunc that works in place."""

from __future__ import annotations

import tvm_ffi

from lowering.parsing import parse_module
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect.tensors import to_numpy

SAME = "tests.random.same"
"""A packed function that gives back its argument: the same memory."""

COPY = "tests.random.copy"
"""A packed function that writes its first argument into its second."""

_HALVE = """
tir.prim_func @halve[%n](%X: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "halve" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %half = arith.constant 0.5 : f32
      %y = arith.mulf %x, %half : f32
      tir.store %y, %X[%vi]
    }
  }
}
"""


def same(tensor: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """The argument."""
    return tensor


def copy(source: tvm_ffi.Tensor, destination: tvm_ffi.Tensor) -> None:
    """Fills the destination."""
    to_numpy(destination)[...] = to_numpy(source)


def halve() -> PrimFuncOp:
    """A PrimFunc that halves the elements of a vector of f32 in place."""
    (func,) = parse_module(_HALVE).ops
    assert isinstance(func, PrimFuncOp)
    return func


def register() -> None:
    """Makes the packed functions known."""
    for name, function in ((SAME, same), (COPY, copy)):
        tvm_ffi.register_global_func(name, function, override=True)


register()
