"""Constants, scalars and opaque values."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.builtin import TensorType as BuiltinTensorType
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.relax_to_vm.converter import Converter, converts
from relax_dialect.ops import values as relax
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import is_bool, is_float
from vm_dialect.ops import constants as vm


@converts(relax.ConstantOp)
def constant(converter: Converter, op: relax.ConstantOp) -> None:
    """A tensor of the executable; equal ones are kept once."""
    dims, dtype = op.result.type.known_dims, op.result.type.dtype
    if dims is None or dtype is None:
        fail(op, f"expected a tensor type with known shape and dtype, got {op.result.type}")
    tensor_type = BuiltinTensorType(dtype, [dim.constant_term for dim in dims])
    symbol = converter.constants.get(tensor_type, op.value)
    converter.set(op.result, converter.result(vm.ConstantTensorOp(symbol.sym_name.data, symbol.vm_type)))


@converts(relax.PrimOp)
def prim(converter: Converter, op: relax.PrimOp) -> None:
    """A number, or a dimension that is computed from what its symbols are."""
    if isinstance(op.value, DimAttr):
        converter.set(op.result, converter.size(op.value.data))
        return
    number: bool | int | float = op.value.value.data
    if isa(op.value, IntegerAttr) and is_bool(op.value.type):
        number = bool(number)
    converter.set(op.result, converter.result(vm.ConstOp(float(number) if is_float(op.value.type) else number)))


@converts(relax.StringOp)
def string(converter: Converter, op: relax.StringOp) -> None:
    """A string."""
    converter.set(op.result, converter.result(vm.StrOp(op.value)))


@converts(relax.DTypeOp)
def dtype(converter: Converter, op: relax.DTypeOp) -> None:
    """An element type."""
    converter.set(op.result, converter.result(vm.DtypeOp(op.value)))


@converts(relax.NullOp)
def null(converter: Converter, op: relax.NullOp) -> None:
    """The null object."""
    converter.set(op.result, converter.result(vm.NullOp()))
