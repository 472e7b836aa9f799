"""Arguments of a packed entry: kinds, dtypes and memory, checked once before native code relies on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.tir_to_llvm.arithmetic.dim_values import DimValues, multiply_checked
from lowering.tir_to_llvm.arithmetic.scalars import convert_float, llvm_type
from lowering.tir_to_llvm.packed_entry.errors import PackedErrors
from tir_dialect.dtypes import byte_size, is_float, lookup
from tir_dialect.types import BufferType
from vm_dialect import messages

ANY_BYTES = 16
OBJECT_BYTES = 24
_TYPE_INDEX, _PAYLOAD = 0, 8
_DATA, _DEVICE, _RANK, _CODE, _BITS, _LANES, _SHAPE, _STRIDES, _OFFSET = 0, 8, 16, 20, 21, 22, 24, 32, 40
_INT, _BOOL, _FLOAT, _DL_TENSOR, _TENSOR = 1, 2, 3, 7, 70
_CPU = 1


@dataclass(frozen=True)
class TensorArgument:
    """A tensor whose kind, device, rank and dtype have been checked."""

    subject: str
    type: BufferType
    data: SSAValue
    """Address of the first element, as an i64."""
    shape: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]
    """In elements."""


def field(b: LLVMBuilder, base: SSAValue, offset: int, type_: Attribute) -> SSAValue:
    """Loads a value `offset` bytes after an address."""
    return b.load(b.element(base, b.integer(offset), i8), type_, 1)


class ArgumentReader:
    """Reads arguments out of the array of `TVMFFIAny`."""

    def __init__(self, b: LLVMBuilder, errors: PackedErrors) -> None:
        self._b = b
        self._errors = errors

    def tensor(self, argument: SSAValue, subject: str, type_: BufferType) -> TensorArgument:
        """A tensor of the rank and dtype of a buffer type, in the memory of the CPU."""
        b, errors = self._b, self._errors
        kind = field(b, argument, _TYPE_INDEX, i32)
        is_object = b.compare("eq", kind, b.integer(_TENSOR, i32))
        is_pointer = b.compare("eq", kind, b.integer(_DL_TENSOR, i32))
        is_tensor = b.make(llvm.OrOp, (is_object, is_pointer), i1)
        errors.require_kind(is_tensor, subject, "tensor", kind)
        payload = field(b, argument, _PAYLOAD, POINTER)
        tensor = b.select(is_object, b.element(payload, b.integer(OBJECT_BYTES), i8), payload)
        self._check_type(tensor, subject, type_)
        shape = self._integers(field(b, tensor, _SHAPE, POINTER), type_.rank)
        self._check_size(subject, type_, shape)
        strides = self._strides(tensor, shape)
        address = b.make(llvm.PtrToIntOp, (field(b, tensor, _DATA, POINTER),), i64)
        data = b.add(address, field(b, tensor, _OFFSET, i64))
        return TensorArgument(subject, type_, data, shape, strides)

    def _check_type(self, tensor: SSAValue, subject: str, type_: BufferType) -> None:
        b, errors = self._b, self._errors
        device = b.make(llvm.ZExtOp, (field(b, tensor, _DEVICE, i32),), i64)
        errors.require(b.compare("eq", device, b.integer(_CPU)), "ValueError", messages.wrong_device(subject), [device])
        rank = b.make(llvm.SExtOp, (field(b, tensor, _RANK, i32),), i64)
        message = messages.wrong_rank(subject, type_.rank)
        errors.require(b.compare("eq", rank, b.integer(type_.rank)), "TypeError", message, [rank])
        dtype = lookup(type_.dtype)
        code, bits = (b.make(llvm.ZExtOp, (field(b, tensor, offset, i8),), i64) for offset in (_CODE, _BITS))
        expected = dtype.dlpack
        parts = [b.compare("eq", code, b.integer(expected[0])), b.compare("eq", bits, b.integer(expected[1]))]
        parts.append(b.compare("eq", field(b, tensor, _LANES, i16), b.integer(1, i16)))
        same = b.make(llvm.AndOp, (b.make(llvm.AndOp, (parts[0], parts[1]), i1), parts[2]), i1)
        errors.require_dtype(same, messages.wrong_dtype(subject, dtype.numpy_name), code, bits)

    def _check_size(self, subject: str, type_: BufferType, shape: Sequence[SSAValue]) -> None:
        """No extent is negative, and the others are not too large, also where one is 0."""
        b = self._b
        size, valid = b.integer(byte_size(type_.dtype)), b.integer(1, i1)
        for extent in shape:
            size, overflow = multiply_checked(b, size, b.overloaded("llvm.smax", (extent, b.integer(1)), i64))
            good = b.make(llvm.XOrOp, (overflow, b.integer(1, i1)), i1)
            good = b.make(llvm.AndOp, (good, b.compare("sle", size, b.integer(messages.MOST_BYTES))), i1)
            good = b.make(llvm.AndOp, (good, b.compare("sge", extent, b.integer(0))), i1)
            valid = b.make(llvm.AndOp, (valid, good), i1)
        self._errors.require(valid, "ValueError", messages.too_large_argument(subject))

    def _integers(self, array: SSAValue, count: int) -> tuple[SSAValue, ...]:
        return tuple(field(self._b, array, 8 * index, i64) for index in range(count))

    def _strides(self, tensor: SSAValue, shape: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """The strides; where there are none, those of contiguous memory."""
        b = self._b
        if not shape:
            return ()
        contiguous: list[SSAValue] = [b.integer(1)]
        for extent in reversed(shape[1:]):
            contiguous.insert(0, b.mul(contiguous[0], extent))
        array = field(b, tensor, _STRIDES, POINTER)
        given, after = b.new_block(), b.new_block([i64] * len(shape))
        absent = b.new_block()
        is_null = b.compare("eq", b.make(llvm.PtrToIntOp, (array,), i64), b.integer(0))
        b.branch_if(is_null, absent, given)
        b.start(given)
        b.branch(after, *self._integers(array, len(shape)))
        b.start(absent)
        b.branch(after, *contiguous)
        b.start(after)
        return tuple(after.args)

    def integer(self, argument: SSAValue, subject: str) -> SSAValue:
        """An int or bool, as an i64."""
        b = self._b
        kind = field(b, argument, _TYPE_INDEX, i32)
        self._errors.require_kind(self._is_one_of(kind, _INT, _BOOL), subject, "int", kind)
        return field(b, argument, _PAYLOAD, i64)

    def scalar(self, argument: SSAValue, subject: str, type_: Attribute) -> SSAValue:
        """A number of a scalar type; one that does not fit raises `ValueError`."""
        if is_float(type_):
            return self._float(argument, subject, type_)
        b = self._b
        value = self.integer(argument, subject)
        if type_ == i1:
            return b.compare("ne", value, b.integer(0))
        target = llvm_type(type_)
        if target == i64:
            return value
        bits = lookup(type_).bits
        low, high = b.integer(-(1 << (bits - 1))), b.integer((1 << bits) - 1)
        fits = b.make(llvm.AndOp, (b.compare("sge", value, low), b.compare("sle", value, high)), i1)
        message = f"{subject}: expected a number of {bits} bits, got {{}}"
        self._errors.require(fits, "ValueError", message, [value])
        return b.make(llvm.TruncOp, (value,), target)

    def _float(self, argument: SSAValue, subject: str, type_: Attribute) -> SSAValue:
        b = self._b
        kind = field(b, argument, _TYPE_INDEX, i32)
        self._errors.require_kind(self._is_one_of(kind, _FLOAT, _INT), subject, "float", kind)
        number = field(b, argument, _PAYLOAD, f64)
        integer = b.make(llvm.SIToFPOp, (field(b, argument, _PAYLOAD, i64),), f64)
        value = b.select(b.compare("eq", kind, b.integer(_FLOAT, i32)), number, integer)
        return convert_float(b, value, f64, type_)

    def _is_one_of(self, kind: SSAValue, first: int, second: int) -> SSAValue:
        b = self._b
        tests = (b.compare("eq", kind, b.integer(first, i32)), b.compare("eq", kind, b.integer(second, i32)))
        return b.make(llvm.OrOp, tests, i1)


def check_layout(b: LLVMBuilder, errors: PackedErrors, tensor: TensorArgument, dims: DimValues) -> SSAValue:
    """Checks strides and alignment; gives the base address of the buffer, as an i64."""
    expected = [dims(stride) for stride in tensor.type.strides]
    is_empty = b.integer(0, i1)
    for extent in tensor.shape:
        is_empty = b.make(llvm.OrOp, (is_empty, b.compare("eq", extent, b.integer(0))), i1)
    wrong_axis = b.integer(-1)
    for axis in range(tensor.type.rank):
        differs = b.compare("ne", tensor.strides[axis], expected[axis])
        matters = b.compare("ne", tensor.shape[axis], b.integer(1))
        wrong_axis = b.select(b.make(llvm.AndOp, (differs, matters), i1), b.integer(axis), wrong_axis)
    fine = b.make(llvm.OrOp, (is_empty, b.compare("slt", wrong_axis, b.integer(0))), i1)
    if tensor.type.has_default_strides:
        message = messages.not_contiguous(tensor.subject)
    else:
        strides = ", ".join(map(str, tensor.type.strides))
        message = f"{tensor.subject}: expected strides [{strides}], got another one along axis {{}}"
    errors.require(fine, "ValueError", message, [wrong_axis])
    offset = b.mul(dims(tensor.type.offset), b.integer(byte_size(tensor.type.dtype)))
    base = b.sub(tensor.data, offset)
    alignment = byte_size(tensor.type.dtype)
    remainder = b.make(llvm.AndOp, (base, b.integer(alignment - 1)), i64)
    aligned = b.make(llvm.OrOp, (is_empty, b.compare("eq", remainder, b.integer(0))), i1)
    errors.require(aligned, "ValueError", messages.not_aligned(tensor.subject, alignment), [remainder])
    return base


def byte_range(b: LLVMBuilder, tensor: TensorArgument, base: SSAValue, dims: DimValues) -> tuple[SSAValue, SSAValue]:
    """The addresses of the first byte and after the last one, as i64; both 0 if there are no elements.

    A negative stride moves the first byte, any other one the last.
    """
    size, zero = b.integer(byte_size(tensor.type.dtype)), b.integer(0)
    low = dims(tensor.type.offset)
    high, is_empty = b.add(low, b.integer(1)), b.integer(0, i1)
    for extent, stride in zip(tensor.shape, tensor.type.strides, strict=True):
        steps = b.mul(b.sub(extent, b.integer(1)), dims(stride))
        is_empty = b.make(llvm.OrOp, (is_empty, b.compare("eq", extent, zero)), i1)
        if tensor.type.has_default_strides:
            high = b.add(high, steps)
            continue
        backwards = b.compare("slt", steps, zero)
        low = b.add(low, b.select(backwards, steps, zero))
        high = b.add(high, b.select(backwards, zero, steps))
    first, last = (b.add(base, b.mul(end, size)) for end in (low, high))
    return b.select(is_empty, zero, first), b.select(is_empty, zero, last)
