"""What random programs call that is not generated: packed functions, and PrimFuncs in place or of two results."""

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

_TWO_RESULTS = """
tir.prim_func @two_results[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>,
    %S: !tir.buffer<[n], f32>, %D: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "both" (%vi = spatial %i in %n) {
      %half = arith.constant 0.5 : f32
      %a = tir.load %A[%vi]
      %b = tir.load %B[%vi]
      %sum = arith.addf %a, %b : f32
      %s = arith.mulf %sum, %half : f32
      tir.store %s, %S[%vi]
      %again = tir.load %A[%vi]
      %difference = arith.subf %again, %b : f32
      %d = arith.mulf %difference, %half : f32
      tir.store %d, %D[%vi]
    }
  }
}
"""

_FILL_AND_COPY = """
tir.prim_func @fill_and_copy(%P: !tir.buffer<[2, 2], f32>, %W: !tir.buffer<[2, 5], f32>) {
  %c2 = tir.dim 2
  %c5 = tir.dim 5
  tir.for (%i, %j) in (%c2, %c5) {
    tir.block "fill" (%vi = spatial %i in %c2, %vj = spatial %j in %c5) {
      %x = arith.constant 0.25 : f32
      tir.store %x, %W[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%c2, %c2) {
    tir.block "copy" (%vi = spatial %i in %c2, %vj = spatial %j in %c2) {
      %x = tir.load %P[%vi, %vj]
      %k = tir.dim 1
      %column = arith.addi %vj, %k : index
      tir.store %x, %W[%vi, %column]
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
    return _prim_func(_HALVE)


def two_results() -> PrimFuncOp:
    """A PrimFunc of which one block stores half of a sum, and then half of the difference, of two vectors of f32."""
    return _prim_func(_TWO_RESULTS)


def fill_and_copy() -> PrimFuncOp:
    """A PrimFunc that fills a matrix of `[2, 5]` elements of f32 and then copies one of `[2, 2]` into it."""
    return _prim_func(_FILL_AND_COPY)


def _prim_func(text: str) -> PrimFuncOp:
    (func,) = parse_module(text).ops
    assert isinstance(func, PrimFuncOp)
    return func


def register() -> None:
    """Makes the packed functions known."""
    for name, function in ((SAME, same), (COPY, copy)):
        tvm_ffi.register_global_func(name, function, override=True)


register()
