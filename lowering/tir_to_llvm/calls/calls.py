"""Calls of other prim_funcs and of C functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, ReducedPrecisionFloatType, bf16, i1, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.llvm.builder.function_builder import call_op
from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.dim_values import DimValues
from lowering.tir_to_llvm.arithmetic.scalars import from_memory, memory_type
from lowering.tir_to_llvm.calls.overlaps import check_overlaps
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.memory.accesses import first_element
from tir_dialect.dims import Dim
from tir_dialect.ops.calls import CallExternOp, CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType


def inner_name(function: str) -> str:
    """The name of the function that `tir.call` calls: it returns null or an error's text.

    LLVM takes what begins with `llvm.` for its own, and has no name with a zero byte or a byte 1 in front: the
    hexadecimal digits of such a name stand for it.
    """
    if "\0" in function or function.startswith(("llvm.", "\1", "hex.")):
        return f"hex.{function.encode().hex()}.inner"
    return f"{function}.inner"


class LowerCall(RewritePattern):
    """A call of another prim_func; its error, if any, is that of the caller."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, e: Emitter) -> None:
        function = op.callee.root_reference.data
        callee, is_outside = e.context.functions.get(function), function in e.context.outside
        if callee is None and not is_outside:
            fail(op, f"calls {op.callee}, which is not a prim_func of the module", "link the two modules first")
        sizes = [e.scalar(size) for size in op.sizes]
        arguments = [_argument(e, argument) for argument in op.arguments]
        name, passed = inner_name(function), [*sizes, *arguments]
        if is_outside:
            e.context.module.declare(name, [argument.type for argument in passed], POINTER)
        if callee is None or op.unchecked is not None:
            e.b.call(name, passed, POINTER)
            return
        _check_sizes(e, op, callee, sizes)
        check_overlaps(e, op, callee)
        e.fail_if_not_null(e.b.call(name, passed, POINTER))


def _argument(e: Emitter, argument: SSAValue) -> SSAValue:
    return e.buffers[argument].pointer if isinstance(argument.type, BufferType) else e.scalar(argument)


def _check_sizes(e: Emitter, call: CallOp, callee: PrimFuncOp, sizes: Sequence[SSAValue]) -> None:
    """Fails with a `ValueError` if a symbol is out of bounds, or a buffer has another layout than its parameter."""
    b = e.b
    name = callee.sym_name.data
    for symbol, size in zip(callee.symbols, sizes, strict=True):
        lower, upper = symbol.interval
        _require(e, b.compare("sge", size, b.integer(lower)), f"{name}: {symbol.symbol.data} is less than {lower}")
        if upper is not None:
            inside = b.compare("sle", size, b.integer(upper))
            _require(e, inside, f"{name}: {symbol.symbol.data} is greater than {upper}")
    expected_dims = DimValues(b, dict(zip(callee.symbol_names, sizes, strict=True)))
    for index, (argument, param) in enumerate(zip(call.arguments, callee.params, strict=True)):
        if isinstance(param.type, BufferType):
            for expected, dim in _layouts(param.type, e.buffers[argument].type):
                equal = b.compare("eq", expected_dims(expected), e.dim(dim))
                _require(e, equal, f"{name}: argument #{index} has another shape or layout than expected")


def _layouts(expected: BufferType, got: BufferType) -> list[tuple[Dim, Dim]]:
    """What has to be equal: extents, the offset, and strides unless both are row-major without gaps."""
    pairs = [*zip(expected.shape, got.shape, strict=True), (expected.offset, got.offset)]
    if not (expected.has_default_strides and got.has_default_strides):
        pairs += zip(expected.strides, got.strides, strict=True)
    return pairs


def _require(e: Emitter, condition: SSAValue, message: str) -> None:
    e.fail_unless(condition, "ValueError", message)


class LowerCallExtern(RewritePattern):
    """A call of a C function, by the C types that the tir types correspond to."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallExternOp, e: Emitter) -> None:
        arguments = [_c_argument(e, argument) for argument in op.arguments]
        result = None if op.result is None else _c_type(op.result.type)
        types = [argument.type for argument in arguments]
        try:
            e.context.module.declare(op.function.data, types, result, pure=op.pure is not None)
        except ValueError as error:
            fail(op, str(error), "use one signature for one function")
        returned = e.b.insert(call_op(op.function.data, arguments, result))
        if op.result is not None:
            e.define(op.result, _from_c(e.b, returned.results[0], op.result.type))


def _c_argument(e: Emitter, argument: SSAValue) -> SSAValue:
    """Small integers are passed as `int`, which is how C passes them; a bf16 as LLVM's own, small floats as bytes."""
    if isinstance(argument.type, BufferType):
        return first_element(e, e.buffers[argument])
    value, type_ = e.scalar(argument), argument.type
    if type_ == i1 or isinstance(type_, ReducedPrecisionFloatType):
        return e.b.make(llvm.ZExtOp, (value,), i32)
    if isinstance(type_, IntegerType) and cast(IntegerType, type_).width.data < 32:
        return e.b.make(llvm.SExtOp, (value,), i32)
    return e.b.make(llvm.BitcastOp, (value,), bf16) if type_ == bf16 else value


def _c_type(type_: Attribute) -> Attribute:
    return bf16 if type_ == bf16 else memory_type(type_)


def _from_c(b: LLVMBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    return b.make(llvm.BitcastOp, (value,), i16) if type_ == bf16 else from_memory(b, value, type_)
