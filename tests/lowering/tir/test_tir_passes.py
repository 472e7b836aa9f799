"""Every pass, alone and before the lowering: what a program computes stays the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.vector import Vector
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline

from lowering.registry import PASSES as REGISTERED
from lowering.registry import pass_factories
from tir_dialect.dialect import TIR
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

CONTEXT = Context()
for _dialect in (Builtin, Arith, Vector, TIR):
    CONTEXT.load_dialect(_dialect)

REDUCTION = """
tir.prim_func @reduction[%m, %n](%X: !tir.buffer<[m, n], i64>, %Y: !tir.buffer<[m], i64>) {
  %c4 = arith.constant 4 : index
  %turns = tir.dim ceildiv(n, 4)
  tir.for (%i) in (%m) {
    tir.for (%ro) in (%turns) {
      tir.for unrolled (%ri) in (%c4) {
        %base = arith.muli %ro, %c4 : index
        %r = arith.addi %base, %ri : index
        %inside = arith.cmpi slt, %r, %n : index
        tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) where %inside {
          tir.init {
            %seven = arith.constant 7 : i64
            tir.store %seven, %Y[%vi]
          }
          %x = tir.load %X[%vi, %vr]
          %y = tir.load %Y[%vi]
          %s = arith.addi %x, %y : i64
          tir.store %s, %Y[%vi]
        }
      }
    }
  }
}"""

FUSED = """
tir.prim_func @fused[%m, %n](%X: !tir.buffer<[m, n], i64>, %Y: !tir.buffer<[m], i64>) {
  %three = arith.constant 3 : index
  %all = tir.dim 3 * m
  tir.for (%f) in (%all) {
    %i = arith.floordivsi %f, %three : index
    %r = arith.remsi %f, %three : index
    tir.block "count" (%vi = spatial %i in %m, %vr = reduce %r in %three) {
      tir.init {
        %zero = arith.constant 0 : i64
        tir.store %zero, %Y[%vi]
      }
      %y = tir.load %Y[%vi]
      %w = arith.index_cast %vr : index to i64
      %s = arith.addi %y, %w : i64
      tir.store %s, %Y[%vi]
    }
  }
}"""

REPEATED = """
tir.prim_func @repeated[%m, %n](%X: !tir.buffer<[m, n], i64>, %Y: !tir.buffer<[m], i64>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %turns = tir.dim ceildiv(n, 4)
  tir.for (%ro, %z, %i, %ri) in (%turns, %c2, %m, %c4) {
    %base = arith.muli %ro, %c4 : index
    %r = arith.addi %base, %ri : index
    %inside = arith.cmpi slt, %r, %n : index
    tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) where %inside {
      tir.init {
        %seven = arith.constant 7 : i64
        tir.store %seven, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vr]
      %y = tir.load %Y[%vi]
      %s = arith.addi %x, %y : i64
      tir.store %s, %Y[%vi]
    }
  }
}"""
"""The second iteration of `z` begins again with the first part of the sums."""

VECTORS = """
tir.prim_func @vectors[%m, %n](%X: !tir.buffer<[m, n], i64>, %Y: !tir.buffer<[m], i64>) {
  %two = arith.constant 2 : index
  %T = tir.alloc_buffer : !tir.buffer<[m, 2, n], i64, strides = [2 * n + 5, n + 1, 1], offset = 3>
  tir.for (%i) in (%m) {
    tir.for vectorized (%j) in (%n) {
      %x = tir.load %X[%i, %j]
      tir.for unrolled (%k) in (%two) {
        %w = arith.index_cast %k : index to i64
        %y = arith.addi %x, %w : i64
        tir.store %y, %T[%i, %k, %j]
      }
    }
  }
  tir.for (%i) in (%m) {
    %zero = arith.constant 0 : i64
    tir.store %zero, %Y[%i]
    tir.for (%k, %j) in (%two, %n) {
      %t = tir.load %T[%i, %k, %j]
      %y = tir.load %Y[%i]
      %s = arith.addi %t, %y : i64
      tir.store %s, %Y[%i]
    }
  }
}"""

PASSES = [
    "check-accesses",
    "tir-to-flat",
    "lower-blocks",
    "lower-init-blocks",
    "lower-init-blocks,lower-blocks",
    "hoist-guards",
    "lower-init-blocks,hoist-guards",
    "lower-blocks,flatten-buffers",
    "lower-blocks,compact-buffers",
    "unroll",
    "unroll{max_ops=5}",
    "vectorize",
    "vectorize{lanes=3}",
    "lower-init-blocks,lower-blocks,unroll,vectorize{lanes=2},flatten-buffers",
    "lower-blocks,vectorize{lanes=4},unroll,canonicalize,cse,dce",
]


def test_every_pass_of_loops_is_among_these():
    """So that a new one is compared with the interpreter, too."""
    tested = {step.partition("{")[0] for passes in PASSES for step in passes.split(",")}
    # What `apply-schedule` does is in its file.
    assert {n for n, where in REGISTERED.items() if where.startswith("lowering.tir.")} - {"apply-schedule"} <= tested


def parse(text: str) -> ModuleOp:
    module = Parser(CONTEXT, text).parse_module()
    module.verify()
    return module


def transform(module: ModuleOp, passes: str) -> None:
    from xdsl.transforms import get_all_passes

    available: Any = get_all_passes() | pass_factories()
    steps: Sequence[ModulePass] = PassPipeline.parse_spec(available, passes).passes
    for step in steps:
        step.apply(CONTEXT, module)
        module.verify()


def results(module: ModuleOp, sizes: tuple[int, int]) -> np.ndarray:
    m, n = sizes
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    x, y = np.arange(m * n).reshape(m, n), np.full(m, -1)
    type_ = func.params[0].type
    assert isinstance(type_, BufferType)
    x = x.reshape([dim.evaluate({"m": m, "n": n}) for dim in type_.shape])  # it may have been flattened
    run_prim_func(func, [x, y], {"m": m, "n": n})
    return y


@pytest.mark.sampled(12)
@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (1, 1), (2, 4), (3, 7), (4, 17)])
@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize(
    "text", [REDUCTION, FUSED, REPEATED, VECTORS], ids=["reduction", "fused", "repeated", "vectors"]
)
def test_programs_compute_the_same(text: str, passes: str, sizes: tuple[int, int]):
    expected = results(parse(text), sizes)
    module = parse(text)
    transform(module, passes)
    np.testing.assert_array_equal(results(module, sizes), expected)


SINGLE = [
    "lower-blocks",
    "lower-init-blocks",
    "hoist-guards",
    "unroll",
    "vectorize",
    "lower-blocks,flatten-buffers",
    "lower-blocks,compact-buffers",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("passes", SINGLE)
@pytest.mark.parametrize(
    "text", [REDUCTION, FUSED, REPEATED, VECTORS], ids=["reduction", "fused", "repeated", "vectors"]
)
def test_passes_are_idempotent(text: str, passes: str):
    module = parse(text)
    transform(module, passes)
    once = str(module)
    transform(module, passes)
    assert str(module) == once
