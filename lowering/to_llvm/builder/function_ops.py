"""Functions of the llvm dialect and calls of them, made directly: every kernel has a dozen of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Region, SSAValue

from tir_dialect.new_ops import new_op
from tir_dialect.ops.memory import i32_array

_CONVENTION = llvm.CallingConventionAttr("ccc")


def call_op(callee: str, arguments: Sequence[SSAValue], result: Attribute | None) -> llvm.CallOp:
    """A call of a function by name, with a result if it gives one."""
    properties = {"callee": _symbol(callee), "operandSegmentSizes": i32_array(len(arguments), 0)}
    return new_op(llvm.CallOp, arguments, () if result is None else (result,), properties)


def function_op(
    name: str,
    type_: llvm.LLVMFunctionType,
    linkage: llvm.LinkageAttr,
    properties: Mapping[str, Attribute],
    body: Region | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> llvm.FuncOp:
    """A function with a body, or the declaration of one."""
    own = {"sym_name": StringAttr(name), "function_type": type_, "CConv": _CONVENTION, "linkage": linkage}
    regions = (Region() if body is None else body,)
    return new_op(llvm.FuncOp, (), (), {**properties, **own}, location, regions=regions)


@lru_cache(maxsize=1024)
def _symbol(name: str) -> SymbolRefAttr:
    return SymbolRefAttr(name)
