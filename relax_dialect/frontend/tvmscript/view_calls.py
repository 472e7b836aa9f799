"""`R.memory.view` of other elements, or of another dtype: a PrimFunc that copies what the view shows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from relax_dialect.builder.expr import Expr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.ops.view import ViewOp
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.expressions import ExpressionReader


def view_as(reader: ExpressionReader, node: ast.Call, value: Expr, result: TensorType, offset: int) -> Expr:
    """The elements of `result` that the memory of a tensor has, from a byte on."""
    source = value.type
    known = source.known_dims if isinstance(source, TensorType) else None
    dims, dtype = result.known_dims, result.dtype
    if not isinstance(source, TensorType) or source.dtype is None or known is None or dims is None or dtype is None:
        reader.fail(node, f"a view of another dtype or place expected known types, got {source} and {result}")
    start, rest = divmod(offset, byte_size(dtype))
    if rest or start < 0:
        reader.fail(node, f"expected an offset of whole elements of {dtype}, got {offset} bytes")
    kinds = BufferType(known, source.dtype), BufferType(dims, dtype)
    func = reader.emit(node, lambda: _copy_of_view(kinds[0], kinds[1], start))
    reader.emit(node, func.verify)
    name = reader.builder.add_func(func, "view")
    return reader.emit(node, lambda: reader.builder.call_tir(name, [value], result))


def _copy_of_view(source: BufferType, target: BufferType, start: int) -> PrimFuncOp:
    symbols = sorted(source.symbols | target.symbols)
    func = PrimFuncOp("view", symbols, [("x", source), ("y", target)])
    block = func.body.block
    x, y = func.params
    place = arith.ConstantOp(IntegerAttr(start, IndexType()))
    seen = ViewOp(x, target, place if start else None)
    block.add_ops([place, seen] if start else [seen])
    indices: list[SSAValue] = []
    for dim in target.shape:
        extent = _extent(dim)
        loop = ForOp(extent.results[0], name_hint="i")
        block.add_ops([extent, loop])
        indices.append(loop.induction_var)
        block = loop.body.block
    load = LoadOp(seen.view, indices)
    block.add_ops([load, StoreOp(load.result, y, indices)])
    return func


def _extent(dim: Dim) -> Operation:
    known = dim.constant_value
    return DimOp(dim) if known is None else arith.ConstantOp(IntegerAttr(known, IndexType()))
