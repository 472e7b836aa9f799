"""Calls of packed functions with boxed arguments.

The function gets copies of the boxes, of which those with the address of a `DLTensor` have a tensor object: functions
of Python read tensors through objects only. It has the memory and the shape of the `DLTensor`, and is given up after
the call.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.llvm.builder.llvm_builder import POINTER
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.calls.packed_calls import (
    ANY,
    DLPACK_MAJOR,
    MANAGED_BYTES,
    NONE,
    TENSOR,
    address_of_free,
    lookup_function,
    require_serial,
    require_zero,
    slot,
    store_fields,
)
from lowering.tir_to_llvm.emitter import Emitter
from tir_dialect.calling_conventions import TENSOR_BYTES, Kind
from tir_dialect.ops.boxed_calls import CallBoxedOp

_HEADER = llvm.LLVMStructType.from_type_list([i32, i32, POINTER, POINTER, i64])
"""What lies before the tensor in a `DLManagedTensorVersioned`: version, context, deleter, flags."""
_WORDS = (MANAGED_BYTES - TENSOR_BYTES) // 8, TENSOR_BYTES // 8


class LowerCallBoxed(RewritePattern):
    """A call through the registry; an error that the function raises is that of the kernel."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallBoxedOp, e: Emitter) -> None:
        b = e.b
        require_serial(e, op)
        function = lookup_function(e, op.function.data)
        given = b.make(llvm.IntToPtrOp, (e.scalar(op.values),), POINTER)
        boxes = slot(e, llvm.LLVMArrayType(op.count + 1, ANY))
        held = [_pass(e, given, boxes, index) for index in range(op.count)]
        result = b.element(boxes, b.integer(op.count), ANY)
        store_fields(e, result, ANY, [b.integer(NONE, i32), b.integer(0, i32), b.integer(0)])
        arguments = (function, boxes, b.integer(op.count, i32), result)
        status = e.call("TVMFFIFunctionCall", arguments, (POINTER, POINTER, i32, POINTER), i32)
        for each in held:
            _release(e, each)
        e.call("TVMFFIObjectDecRef", (function,), (POINTER,), i32)
        require_zero(e, status)
        _copy(e, result, b.element(given, b.integer(op.count), ANY), 2)


def _pass(e: Emitter, given: SSAValue, boxes: SSAValue, index: int) -> SSAValue:
    """Copies a box; gives where the tensor object is that was made for it, or null."""
    b = e.b
    source, target = (b.element(array, b.integer(index), ANY) for array in (given, boxes))
    _copy(e, source, target, 2)
    held = slot(e, POINTER)
    b.store(e.null(), held, 8)
    kind = b.load(b.field(source, ANY, 0), i32, 4)
    address = b.load(b.field(source, ANY, 2), i64, 8)
    is_tensor = b.make(llvm.AndOp, (b.compare("eq", kind, b.integer(int(Kind.TENSOR), i32)), _is_set(e, address)), i1)
    made, done = b.new_block(), b.new_block()
    b.branch_if(is_tensor, made, done)
    b.start(made)
    _make_tensor(e, b.make(llvm.IntToPtrOp, (address,), POINTER), held)
    b.store(b.integer(TENSOR, i32), b.field(target, ANY, 0), 4)
    b.store(b.load(held, POINTER, 8), b.field(target, ANY, 2), 8)
    b.branch(done)
    b.start(done)
    return held


def _make_tensor(e: Emitter, tensor: SSAValue, held: SSAValue) -> None:
    """A tensor object on the memory of a `DLTensor`."""
    b = e.b
    managed = e.call("malloc", (b.integer(MANAGED_BYTES),), (i64,), POINTER)
    assert managed is not None  # the function gives a result
    found = _is_set(e, b.make(llvm.PtrToIntOp, (managed,), i64))
    e.fail_unless(found, "MemoryError", "cannot allocate a tensor")
    header = [b.integer(DLPACK_MAJOR, i32), b.integer(0, i32), e.null(), address_of_free(e), b.integer(0)]
    store_fields(e, managed, _HEADER, header)
    start, words = _WORDS
    _copy(e, tensor, b.element(managed, b.integer(start), i64), words)
    arguments = (managed, b.integer(0, i32), b.integer(0, i32), held)
    require_zero(e, e.call("TVMFFITensorFromDLPackVersioned", arguments, (POINTER, i32, i32, POINTER), i32))


def _release(e: Emitter, held: SSAValue) -> None:
    b = e.b
    tensor = b.load(held, POINTER, 8)
    there, done = b.new_block(), b.new_block()
    b.branch_if(_is_set(e, b.make(llvm.PtrToIntOp, (tensor,), i64)), there, done)
    b.start(there)
    e.call("TVMFFIObjectDecRef", (tensor,), (POINTER,), i32)
    b.branch(done)
    b.start(done)


def _is_set(e: Emitter, address: SSAValue) -> SSAValue:
    return e.b.compare("ne", address, e.b.integer(0))


def _copy(e: Emitter, source: SSAValue, target: SSAValue, words: int) -> None:
    b = e.b
    for word in range(words):
        value = b.load(b.element(source, b.integer(word), i64), i64, 8)
        b.store(value, b.element(target, b.integer(word), i64), 8)
