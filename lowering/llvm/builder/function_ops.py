"""Functions of the llvm dialect and calls of them, made directly: every kernel has a dozen of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Region, SSAValue

from tir_dialect.new_ops import new_op
from tir_dialect.ops.memory import i32_array

EXTERNAL = llvm.LinkageAttr("external")
INTERNAL = llvm.LinkageAttr("internal")
_CONVENTION = llvm.CallingConventionAttr("ccc")


def call_op(
    callee: str,
    arguments: Sequence[SSAValue],
    result: Attribute | None,
    variadic: llvm.LLVMFunctionType | None = None,
) -> llvm.CallOp:
    """A call of a function by name, with a result if it gives one; a `variadic` one takes any number of arguments."""
    sizes = i32_array(len(arguments), 0)
    properties: dict[str, Attribute] = {"callee": symbol_ref(callee), "operandSegmentSizes": sizes}
    if variadic is not None:
        properties["var_callee_type"] = variadic
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
def symbol_ref(name: str) -> SymbolRefAttr:
    """The reference to a symbol of the module."""
    return SymbolRefAttr(name)
