"""Maps share their loops while a kernel is put together, if nothing comes between them."""

import pytest
from xdsl.dialects.builtin import f32

from lowering.parsing import parse_module
from lowering.relax.fusion.kernel_body import ElementwiseKernel, KernelBody
from tir_dialect.dims import symbol
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

ADD = """
tir.prim_func @add[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>, %r: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "add" (%v = spatial %i in %n) {
      %a = tir.load %x[%v]
      %b = tir.load %y[%v]
      %c = arith.addf %a, %b : f32
      tir.store %c, %r[%v]
    }
  }
}
"""
"""Element by element of both operands."""

CLEAR = """
tir.prim_func @clear[%n](%x: !tir.buffer<[n], f32>, %r: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "clear" (%v = spatial %i in %n) {
      %zero = arith.constant 0.0 : f32
      tir.store %zero, %x[%v]
      tir.store %zero, %r[%v]
    }
  }
}
"""
"""Writes what it is given."""


WITH_CONSTANTS = ADD.replace(
    "tir.for",
    """%yes = arith.constant true
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  tir.for""",
)


def func(text: str) -> PrimFuncOp:
    (op,) = parse_module(text).ops
    assert isinstance(op, PrimFuncOp)
    return op


def blocks(*calls: tuple[str, str], passing: str = "abc") -> list[str]:
    """What is left of calls of functions on buffers `x`, `y`, `a` to `c`, in memory, and the result `r`."""
    buffer = BufferType([symbol("n")], f32)
    kernel = PrimFuncOp("kernel", ["n"], [(name, buffer) for name in "xyr"])
    body = KernelBody(kernel)
    values = dict(zip("xyr", kernel.params, strict=True)) | {name: body.allocate(buffer) for name in "abc"}
    for text, names in calls:
        body.append(func(text), [values[n] for n in names], {"n": symbol("n")}, [values[n] for n in passing])
    body.finish()
    kernel.verify()
    return [op.block_name.data for op in kernel.walk() if isinstance(op, BlockOp)]


def test_a_chain_has_one_block_that_is_called_after_the_last():
    assert blocks((ADD, "xya"), (ADD, "ayb"), (ADD, "ybr")) == ["add_2"]


def test_of_two_that_are_read_one_is_joined():
    assert blocks((ADD, "xya"), (ADD, "xxb"), (ADD, "abr")) == ["add_1", "add_2"]


def test_what_others_read_keeps_its_memory():
    assert blocks((ADD, "xya"), (ADD, "ayr"), passing="") == ["add", "add_1"]


def test_nothing_moves_behind_what_writes_its_operands():
    assert blocks((ADD, "xya"), (CLEAR, "xb"), (ADD, "ayr")) == ["add", "clear", "add_1"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("spatial %i in %n) {", "spatial %i in %n) where %yes {"),
        ("spatial %i in %n) {", "spatial %i in %n) annotations {a = 1 : i64} {"),
        ("tir.for (%i) in (%n)", "tir.for parallel (%i) in (%n)"),
        ("tir.store %c, %r[%v]", "tir.store %c, %r[%v]\n      tir.store %c, %r[%v]"),
        ("spatial %i in %n)", "spatial %i in %n, %w = spatial %zero in %one)"),
    ],
)
def test_other_functions_are_no_maps(old: str, new: str):
    assert ElementwiseKernel.of(func(WITH_CONSTANTS)) is not None
    assert ElementwiseKernel.of(func(WITH_CONSTANTS.replace(old, new))) is None


def test_what_is_read_elsewhere_is_not_elementwise():
    found = ElementwiseKernel.of(func(WITH_CONSTANTS.replace("%y[%v]", "%y[%zero]")))
    assert found is not None
    assert found.elementwise == {0}
