"""Constants, scalars and opaque values."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.builtin import TensorType as BuiltinTensorType
from xdsl.pattern_rewriter import RewritePattern
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops import values as relax
from tir_dialect.attributes import DimAttr
from tir_dialect.dtypes import is_bool, is_float
from vm_dialect.ops import values as vm


class ConvertConstant(RewritePattern):
    """A tensor of the executable; equal ones are kept once."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.ConstantOp, converter: Converter) -> None:
        dims, dtype = op.result.type.known_dims, op.result.type.dtype
        if dims is None or dtype is None:
            fail(op, f"expected a tensor type with known shape and dtype, got {op.result.type}")
        tensor_type = BuiltinTensorType(dtype, [dim.constant_term for dim in dims])
        symbol = converter.constants.get(tensor_type, op.value)
        converter.set(op.result, converter.result(vm.ConstantTensorOp(symbol.sym_name.data, symbol.vm_type)))


class ConvertPrim(RewritePattern):
    """A number, or a dimension that is computed from what its symbols are."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.PrimOp, converter: Converter) -> None:
        if isinstance(op.value, DimAttr):
            converter.set(op.result, converter.size(op.value.data))
            return
        number: bool | int | float = op.value.value.data
        if isa(op.value, IntegerAttr) and is_bool(op.value.type):
            number = bool(number)
        converter.set(op.result, converter.result(vm.ConstOp(float(number) if is_float(op.value.type) else number)))


class ConvertString(RewritePattern):
    """A string."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.StringOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm.StrOp(op.value)))


class ConvertDType(RewritePattern):
    """An element type."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.DTypeOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm.DtypeOp(op.value)))


class ConvertNull(RewritePattern):
    """The null object."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.NullOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm.NullOp()))
