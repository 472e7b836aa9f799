"""Calls of packed functions: the tvm-ffi C API from compiled code, with arguments in registers or boxed in memory.

The arguments are an array of `TVMFFIAny` on the stack; a buffer is a tensor object made for the call, which does not
own the memory: the function must not keep it. The function is looked up by name at each call, so that a function
registered anew is found. Packed functions may be Python: they are not called from the threads of a parallel loop, which
would wait for the interpreter's lock for ever.

The function gets copies of the boxes, of which those with the address of a `DLTensor` have a tensor object: functions
of Python read tensors through objects only. It has the memory and the shape of the `DLTensor`, and is given up after
the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float64Type, IndexType, IntegerType, SymbolRefAttr, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.llvm.builder.llvm_builder import POINTER
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.scalars import convert_float, from_integer
from lowering.tir_to_llvm.emitter import ALREADY_RAISED, Emitter
from lowering.tir_to_llvm.memory.accesses import first_element
from tir_dialect.calling_conventions import TENSOR_BYTES, Kind
from tir_dialect.dtypes import is_float, lookup
from tir_dialect.ops.calls import CallBoxedOp, CallPackedOp
from tir_dialect.types import BufferType
from vm_dialect.messages import unknown_packed

ANY = llvm.LLVMStructType.from_type_list([i32, i32, i64])
MANAGED = llvm.LLVMStructType.from_type_list(
    # DLManagedTensorVersioned: version, context, deleter, flags; then the DLTensor.
    [i32, i32, POINTER, POINTER, i64, POINTER, i32, i32, i32, i8, i8, i16, POINTER, POINTER, i64]
)
BYTE_ARRAY = llvm.LLVMStructType.from_type_list([POINTER, i64])

NONE, _INT, _BOOL, _FLOAT, TENSOR, _FIRST_OBJECT = 0, 1, 2, 3, 70, 64
DLPACK_MAJOR, MANAGED_BYTES = 1, 80
_CPU = 1


class LowerCallPacked(RewritePattern):
    """A call through the registry; an error that the function raises is that of the kernel."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPackedOp, e: Emitter) -> None:
        require_serial(e, op)
        function = lookup_function(e, op.function.data)
        count = len(op.arguments)
        arguments = slot(e, llvm.LLVMArrayType(max(count, 1), ANY))
        tensors: list[SSAValue] = []
        for index, argument in enumerate(op.arguments):
            b = e.b
            if isinstance(argument.type, BufferType):
                kind, value = TENSOR, _tensor(e, argument, argument.type)
                tensors.append(value)
            else:
                kind, value = _boxed(e, argument)
            box = b.insert(llvm.GEPOp(arguments, [index], ANY, inbounds=True)).results[0]
            store_fields(e, box, ANY, [b.integer(kind, i32), b.integer(0, i32)])
            b.store(value, b.field(box, ANY, 2), 8)
        result = slot(e, ANY)
        store_fields(e, result, ANY, [e.b.integer(NONE, i32), e.b.integer(0, i32), e.b.integer(0)])
        status = e.call(
            "TVMFFIFunctionCall",
            (function, arguments, e.b.integer(count, i32), result),
            (POINTER, POINTER, i32, POINTER),
            i32,
        )
        for held in (function, *tensors):
            e.call("TVMFFIObjectDecRef", (held,), (POINTER,), i32)
        require_zero(e, status)
        _take_result(e, op, result)


def require_serial(e: Emitter, op: Operation) -> None:
    """Refuses a call from the threads of a parallel loop."""
    if e.state.in_parallel:
        fail(op, "is inside a parallel loop", "make the loop serial, or call a C function")


def require_zero(e: Emitter, status: SSAValue | None) -> None:
    """Leaves the function with the error that a function of tvm-ffi has raised, if its status says so."""
    assert status is not None  # the functions give a status
    e.fail_unless(e.b.compare("eq", status, e.b.integer(0, i32)), ALREADY_RAISED, "")


def slot(e: Emitter, type_: Attribute) -> SSAValue:
    """Memory on the stack."""
    with e.entry():
        return e.b.insert(llvm.AllocaOp(e.b.integer(1), type_, 16)).results[0]


def store_fields(e: Emitter, struct: SSAValue, type_: llvm.LLVMStructType, values: Sequence[SSAValue]) -> None:
    """Writes all fields of a struct."""
    for index, value in enumerate(values):
        e.b.store(value, e.b.field(struct, type_, index), 1)


def lookup_function(e: Emitter, name: str) -> SSAValue:
    """The function of the registry, as a reference that we own; an error if there is none."""
    b = e.b
    text = b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr(e.context.module.text(name))})
    array, handle = slot(e, BYTE_ARRAY), slot(e, POINTER)
    store_fields(e, array, BYTE_ARRAY, [text, b.integer(len(name.encode()))])
    b.store(e.null(), handle, 8)
    require_zero(e, e.call("TVMFFIFunctionGetGlobal", (array, handle), (POINTER, POINTER), i32))
    function = b.load(handle, POINTER, 8)
    found = b.compare("ne", b.make(llvm.PtrToIntOp, (function,), i64), b.integer(0))
    e.fail_unless(found, "ValueError", unknown_packed(name))
    return function


def _boxed(e: Emitter, argument: SSAValue) -> tuple[int, SSAValue]:
    """The type index, and the 8 bytes of the value."""
    b, type_ = e.b, argument.type
    value = e.scalar(argument)
    if isinstance(type_, IndexType):
        return _INT, value
    if is_float(type_):
        return _FLOAT, convert_float(b, value, type_, f64)
    if type_ == i1:
        return _BOOL, b.make(llvm.ZExtOp, (value,), i64)
    return _INT, value if type_ == i64 else b.make(llvm.SExtOp, (value,), i64)


def _tensor(e: Emitter, argument: SSAValue, type_: BufferType) -> SSAValue:
    """A tensor object on the memory of a buffer, as a reference that we own."""
    b, dtype = e.b, lookup(type_.dtype)
    size = MANAGED_BYTES + 16 * type_.rank
    managed = e.call("malloc", (b.integer(size),), (i64,), POINTER)
    assert managed is not None  # the function gives a result
    address = b.make(llvm.PtrToIntOp, (managed,), i64)
    e.fail_unless(b.compare("ne", address, b.integer(0)), "MemoryError", "cannot allocate a tensor")
    code, bits = dtype.dlpack
    store_fields(
        e,
        managed,
        MANAGED,
        [
            *(b.integer(DLPACK_MAJOR, i32), b.integer(0, i32)),
            *(e.null(), address_of_free(e), b.integer(0)),
            first_element(e, e.buffers[argument]),
            *(b.integer(_CPU, i32), b.integer(0, i32), b.integer(type_.rank, i32)),
            *(b.integer(code, i8), b.integer(bits, i8), b.integer(1, i16)),
            _integers(e, managed, MANAGED_BYTES, e.dims(type_.shape)),
            _integers(e, managed, MANAGED_BYTES + 8 * type_.rank, e.dims(type_.strides)),
            b.integer(0),
        ],
    )
    handle = slot(e, POINTER)
    arguments, types = (managed, b.integer(0, i32), b.integer(0, i32), handle), (POINTER, i32, i32, POINTER)
    require_zero(e, e.call("TVMFFITensorFromDLPackVersioned", arguments, types, i32))
    return b.load(handle, POINTER, 8)


def address_of_free(e: Emitter) -> SSAValue:
    """The C library's `free`: it is what a tensor is deleted by, so that it may outlive this code."""
    e.context.module.declare("free", [POINTER], None)
    return e.b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr("free")})


def _integers(e: Emitter, memory: SSAValue, offset: int, values: Sequence[SSAValue]) -> SSAValue:
    """Writes integers behind each other; gives the address of the first."""
    array = e.b.element(memory, e.b.integer(offset), i8)
    for index, value in enumerate(values):
        e.b.store(value, e.b.element(array, e.b.integer(index), i64), 8)
    return array


def _take_result(e: Emitter, call: CallPackedOp, result: SSAValue) -> None:
    """Converts the result to the type that the op says, or drops it."""
    b = e.b
    kind = b.load(b.field(result, ANY, 0), i32, 4)
    payload = b.field(result, ANY, 2)
    _drop_object(e, kind, payload)
    if call.result is None:
        return
    type_ = call.result.type
    wanted = (_FLOAT, _INT) if is_float(type_) else (_INT, _BOOL)
    matches = [b.compare("eq", kind, b.integer(number, i32)) for number in wanted]
    message = f'packed function "{call.function.data}" expected to return {type_}, got another kind'
    e.fail_unless(b.make(llvm.OrOp, tuple(matches), i1), "TypeError", message)
    if is_float(type_):
        number = from_integer(b, b.load(payload, i64, 8), f64, signed=True)
        value = b.select(matches[0], b.load(payload, Float64Type(), 8), number)
        e.define(call.result, convert_float(b, value, f64, type_))
        return
    integer = b.load(payload, i64, 8)
    if type_ == i1:
        e.define(call.result, b.compare("ne", integer, b.integer(0)))
    else:
        e.define(call.result, integer if type_ == i64 else b.make(llvm.TruncOp, (integer,), cast(IntegerType, type_)))


def _drop_object(e: Emitter, kind: SSAValue, payload: SSAValue) -> None:
    """Gives up an object that the function returned; nothing is held of it."""
    b = e.b
    held, free = b.new_block(), b.new_block()
    b.branch_if(b.compare("sge", kind, b.integer(_FIRST_OBJECT, i32)), held, free)
    b.start(held)
    e.call("TVMFFIObjectDecRef", (b.load(payload, POINTER, 8),), (POINTER,), i32)
    b.branch(free)
    b.start(free)


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
