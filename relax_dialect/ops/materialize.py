"""The op that makes a constant, for folding."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.attributes import DimAttr


def materialize_constant(value: Attribute, info: Attribute) -> Operation | None:
    """An op whose result is `value` and has the type `info`; `None` if there is none.

    Dimensions become prims, lists of them shapes, and dense elements tensors.
    """
    op: Operation | None = None
    if isinstance(value, DimAttr) and isinstance(info, PrimType):
        op = PrimOp(value)
    elif isa(value, ArrayAttr[DimAttr]) and isinstance(info, ShapeType):
        op = ShapeOp([dim.data for dim in value])
    elif isa(value, DenseIntOrFPElementsAttr) and isinstance(info, TensorType):
        op = ConstantOp(value)
    return op if op is not None and op.results[0].type == info else None
