"""Whether buffers that a call passes have elements in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.memory.accesses import first_element
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.analysis.written import written_buffers
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.calls import CallOp
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
