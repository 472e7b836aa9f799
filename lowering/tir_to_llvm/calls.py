"""Calls of other prim_funcs and of C functions.
Buffers that a call passes may have no elements in common, where one of them is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, ReducedPrecisionFloatType, bf16, i1, i16, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.llvm.builder.function_builder import call_op
from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.dim_values import DimValues
from lowering.tir_to_llvm.arithmetic.scalars import from_memory, memory_type
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.memory.accesses import first_element
from tir_dialect.analysis.structure import root_buffer, written_buffers
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.calls import CallExternOp, CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType
from vm_dialect import messages


def check_overlaps(e: Emitter, call: CallOp, callee: PrimFuncOp) -> None:
    """Fails with a `ValueError` if buffers overlap that must be apart for the callee.

    Only buffers of one memory can: a buffer that is passed twice, or views of it. Two views whose strides differ, so
    that they are no parts of one grid of rows, are not compared.
    """
    written = set[SSAValue]() if callee.may_alias is not None else written_buffers(callee)
    params = callee.params
    buffers = [index for index, each in enumerate(call.arguments) if isinstance(each.type, BufferType)]
    for index, other in combinations(reversed(buffers), 2):
        shared = e.state.may_alias or root_buffer(call.arguments[index]) is root_buffer(call.arguments[other])
        if shared and not written.isdisjoint((params[index], params[other])):
            apart = _apart(e, call.arguments[index], call.arguments[other])
            subjects = [
                messages.describe_argument(each, params[each].name_hint or f"p{each}") for each in (index, other)
            ]
            if apart is not None:
                message = messages.overlapping(f"{callee.sym_name.data}: {subjects[0]}", subjects[1])
                e.fail_unless(apart, "ValueError", message)


def _apart(e: Emitter, one: SSAValue, other: SSAValue) -> SSAValue | None:
    """Whether two buffers have no element in common; `None` if their layouts do not tell."""
    b, types = e.b, (e.buffers[one].type, e.buffers[other].type)
    if all(each.has_default_strides for each in types):
        (first, last), (other_first, other_last) = (_byte_range(e, each) for each in (one, other))
        return _either(e, b.compare("ule", last, other_first), b.compare("ule", other_last, first))
    dtype, strides = types[0].dtype, types[0].strides
    alike = types[1].dtype == dtype and list(types[1].strides) == list(strides)
    if not alike or any(each.constant_value is not None and each.constant_value <= 0 for each in strides):
        return None
    sizes = [e.dim(product(each.shape)) for each in types]
    empty = _either(e, *(b.compare("eq", size, b.integer(0)) for size in sizes))
    start, other_start = (b.make(llvm.PtrToIntOp, (first_element(e, e.buffers[each]),), i64) for each in (one, other))
    bytes_apart = b.make(llvm.SubOp, (other_start, start), i64)
    distance = b.make(llvm.SDivOp, (bytes_apart, b.integer(byte_size(dtype))), i64)
    extents = list(zip(types[0].shape, types[1].shape, strict=True))
    meet = _meet(e, list(zip(strides, extents, strict=True)), distance)
    return _either(e, empty, b.compare("eq", meet, b.integer(0, i1)))


def _meet(e: Emitter, axes: Sequence[tuple[Dim, tuple[Dim, Dim]]], distance: SSAValue) -> SSAValue:
    """Whether an element of one view is one of another, of the same strides, that begins `distance` elements later.

    Both have some number of steps along the first axis between these elements. A row is not longer than a stride, so
    that this is the number of strides in the distance, or one more and back inside of the rows.
    """
    b = e.b
    if not axes:
        return b.compare("eq", distance, b.integer(0))
    (step, extents), *inner = axes
    one, zero = b.integer(1), b.integer(0)
    stride = e.dim(step)
    stride = b.select(b.compare("sgt", stride, zero), stride, one)  # it is 0 where there are no elements
    rest = b.make(llvm.SRemOp, (distance, stride), i64)
    is_before = b.compare("slt", rest, zero)
    rest = b.select(is_before, b.add(rest, stride), rest)
    steps = b.make(llvm.SDivOp, (b.sub(distance, rest), stride), i64)
    near = _both(e, _is_within(e, steps, extents), _meet(e, inner, rest))
    far = _both(e, _is_within(e, b.add(steps, one), extents), _meet(e, inner, b.sub(rest, stride)))
    return _either(e, near, far)


def _is_within(e: Emitter, steps: SSAValue, extents: tuple[Dim, Dim]) -> SSAValue:
    """Whether the index in the first view may be `steps` more than the one in the second."""
    length, other = map(e.dim, extents)
    back = e.b.sub(e.b.integer(0), other)
    return _both(e, e.b.compare("slt", steps, length), e.b.compare("sgt", steps, back))


def _both(e: Emitter, one: SSAValue, other: SSAValue) -> SSAValue:
    return e.b.make(llvm.AndOp, (one, other), i1)


def _either(e: Emitter, one: SSAValue, other: SSAValue) -> SSAValue:
    return e.b.make(llvm.OrOp, (one, other), i1)


def _byte_range(e: Emitter, argument: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The addresses of the first byte and after the last one; both 0 if there are no elements."""
    b, buffer = e.b, e.buffers[argument]
    start = b.make(llvm.PtrToIntOp, (first_element(e, buffer),), i64)
    size = e.dim(product([*buffer.type.shape, constant(byte_size(buffer.type.dtype))]))
    is_empty, nowhere = b.compare("eq", size, b.integer(0)), b.integer(0)
    return b.select(is_empty, nowhere, start), b.select(is_empty, nowhere, b.add(start, size))


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
