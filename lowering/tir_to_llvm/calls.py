"""Calls of other prim_funcs, of C functions and of packed functions. Buffers that a call passes may have no elements in
common, where one of them is written.

Packed functions are called by the tvm-ffi C API, with arguments in registers or boxed in memory. The arguments are an
array of `TVMFFIAny` on the stack; a buffer is a tensor object made for the call, which does not own the memory: the
function must not keep it. The function is looked up by name at each call, so that a function registered anew is found.
Packed functions may be Python: they are not called from the threads of a parallel loop, which would wait for the
interpreter's lock for ever.

With boxed arguments, the function gets copies of the boxes, of which those with the address of a `DLTensor` have a
tensor object: functions of Python read tensors through objects only. It has the memory and the shape of the
`DLTensor`, and is given up after the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    Float64Type,
    IndexType,
    IntegerType,
    ReducedPrecisionFloatType,
    SymbolRefAttr,
    bf16,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.llvm.function_builder import call_op
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.division import DimValues
from lowering.tir_to_llvm.arithmetic.scalars import convert_float, from_integer, from_memory, memory_type
from lowering.tir_to_llvm.emitter import ALREADY_RAISED, Emitter
from lowering.tir_to_llvm.memory import first_element
from tir_dialect.analysis.structure import root_buffer, written_buffers
from tir_dialect.calling_conventions import TENSOR_BYTES, Kind
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size, is_float, lookup
from tir_dialect.ops.calls import CallBoxedOp, CallExternOp, CallOp, CallPackedOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType
from vm_dialect import messages
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
        e.define(call.result, integer if type_ == i64 else b.make(llvm.TruncOp, (integer,), cast("IntegerType", type_)))


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
            # What has to be equal: extents, the offset, and strides unless both are row-major without gaps.
            got = e.buffers[argument].type
            pairs = [*zip(param.type.shape, got.shape, strict=True), (param.type.offset, got.offset)]
            if not (param.type.has_default_strides and got.has_default_strides):
                pairs += zip(param.type.strides, got.strides, strict=True)
            for expected, dim in pairs:
                equal = b.compare("eq", expected_dims(expected), e.dim(dim))
                _require(e, equal, f"{name}: argument #{index} has another shape or layout than expected")


def _require(e: Emitter, condition: SSAValue, message: str) -> None:
    e.fail_unless(condition, "ValueError", message)


class LowerCallExtern(RewritePattern):
    """A call of a C function, by the C types that the tir types correspond to."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallExternOp, e: Emitter) -> None:
        arguments = [_c_argument(e, argument) for argument in op.arguments]
        result = None if op.result is None else (bf16 if op.result.type == bf16 else memory_type(op.result.type))
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
    if isinstance(type_, IntegerType) and cast("IntegerType", type_).width.data < 32:
        return e.b.make(llvm.SExtOp, (value,), i32)
    return e.b.make(llvm.BitcastOp, (value,), bf16) if type_ == bf16 else value


def _from_c(b: LLVMBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    return b.make(llvm.BitcastOp, (value,), i16) if type_ == bf16 else from_memory(b, value, type_)
