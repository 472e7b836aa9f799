"""Functions that round a number to a small float, for kernels that take one as a scalar."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ReducedPrecisionFloatType
from xdsl.ir import Operation

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.module_builder import ModuleBuilder
from lowering.tir_to_llvm.arithmetic.scalars import convert_float
from lowering.vm_to_llvm.abi import F64, I8


def rounding_symbol(kind: ReducedPrecisionFloatType) -> str:
    """The name of the function for a small float: it takes an `f64` and gives the bits."""
    return f"module.round.{kind.name}"


ROUNDING = llvm.LLVMFunctionType([F64], I8)
"""The type of such a function."""


def rounding_function(kind: ReducedPrecisionFloatType) -> Operation:
    """The function for a small float."""
    module = ModuleBuilder()
    builder = LLVMBuilder(module, [F64])
    (value,) = builder.entry.args
    builder.insert(llvm.ReturnOp(convert_float(builder, value, F64, kind)))
    module.define(rounding_symbol(kind), [F64], I8, builder.finish(), internal=True, properties={})
    return module.ops[-1]
