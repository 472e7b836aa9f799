"""One-element constants that become immediates of a kernel instead of arguments."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from lowering.locations import inherit_location
from relax_dialect.ops.values import ConstantOp
from tir_dialect.dtypes import scalar_type
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import BufferType

Number = int | float


def number_of(value: SSAValue) -> Number | None:
    """The element of a constant with a single one that is in this process and has no name; `None` for other values."""
    maker = value.owner
    if not isinstance(maker, ConstantOp) or maker.weight_name is not None:
        return None
    array: Any = maker.array
    return array.reshape(-1)[0].item() if array is not None and array.size == 1 else None


def is_only_loaded(parameter: SSAValue) -> bool:
    """Whether a kernel does nothing with a parameter but load its elements one by one."""
    return all(isinstance(use.operation, LoadOp) and use.operation.lanes is None for use in parameter.uses)


def replace_loads(buffer: SSAValue, number: Number) -> None:
    """Puts a number instead of the loads from memory that a function allocates, and removes that."""
    for use in list(buffer.uses):
        load = use.operation
        if isinstance(load, LoadOp):
            constant = _constant(number, load.buffer_type)
            inherit_location(load, constant)
            Rewriter.insert_op(constant, InsertPoint.before(load))
            Rewriter.replace_op(load, [], [constant.result])
    if isinstance(buffer.owner, AllocBufferOp):
        Rewriter.erase_op(buffer.owner)


def _constant(number: Number, buffer: BufferType) -> arith.ConstantOp:
    dtype = scalar_type(buffer.dtype)
    if isa(dtype, AnyFloat):
        return arith.ConstantOp(FloatAttr(float(number), dtype))
    width = dtype.width.data if isinstance(dtype, IntegerType) else 64
    return arith.ConstantOp(IntegerAttr(int(number), IntegerType(width), truncate_bits=True))
