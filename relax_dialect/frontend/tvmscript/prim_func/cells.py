"""Names that a text assigns more than once: memory of their own, which every assignment writes.

`x = 0` in front of a loop and `x = x + 1` in it name one scalar, as `x: T.int32` does before it has a value. Names that
are assigned once, or by `T.let`, are values. Memory of one element is assigned by its name too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.buffers import alloc, read_dims
from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Cell, Region, Vector
from relax_dialect.frontend.tvmscript.prim_func.vectors import store_vector
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import lookup
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader


def assigned_often(functions: Iterable[ast.AST]) -> frozenset[str]:
    """The names that functions assign more than once, together."""
    counts: Counter[str] = Counter()
    for node in (each for function in functions for each in ast.walk(function)):
        match node:
            case ast.Assign(targets=[*targets]):
                names = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
                counts.update(each.id for each in names if isinstance(each.ctx, ast.Store))
            case ast.AnnAssign(target=ast.Name(id=name)):
                counts[name] += 1
            case ast.AugAssign(target=ast.Name(id=name)):
                counts[name] += 2  # there is an assignment before it, if only at the call of a macro
            case _:
                pass
    return frozenset(name for name, count in counts.items() if count > 1)


def new_cell(reader: TirStatementReader, node: ast.AST, name: str, dtype: DType, lanes: int | None = None) -> Cell:
    """Memory for a name, with no value yet; indices are kept as 64 bits."""
    kept = to_dtype("int64") if is_index(dtype) else dtype
    kind = BufferType([] if lanes is None else [lanes], lookup(kept).type, scope="local")
    return Cell(alloc(reader, node, kind, name, lanes))


def declare_name(reader: TirStatementReader, node: ast.AnnAssign, name: str) -> bool:
    """`x: T.int32`, which is assigned later, or `v: T.float32[4]`, memory; false for a name that may be a dimension."""
    annotation = node.annotation
    if isinstance(annotation, ast.Subscript):
        shape = read_dims(reader, annotation.slice, implicit=False)
        kind = BufferType(shape, reader.dtype(annotation.value), scope="local")
        reader.scope.bind(name, alloc(reader, node, kind, name))
        return True
    if name in reader.rebound:
        reader.scope.bind(name, new_cell(reader, node, name, lookup(reader.dtype(annotation)).type))
        return True
    return False


def whole_of(cell: Cell) -> Region:
    """The scalar or vector that a name stands for."""
    lanes = cell.buffer.lanes
    return Region(cell.buffer, () if lanes is None else (Axis(constant(0), constant(lanes)),))


def assign(reader: TirStatementReader, node: ast.AST, name: str, value: object) -> bool:
    """Writes a scalar or vector to the memory of a name; false if the name has none and is to be bound."""
    if not isinstance(value, Scalar | Dim | bool | int | float | Vector):
        return False
    held = reader.scope.find(name)
    if isinstance(held, Buffer) and held.type.shape == (constant(1),):
        reader.store(node, Region(held, (Axis(constant(0)),)), value)
        return True
    if not isinstance(held, Cell):
        if name not in reader.rebound:
            return False
        held = _cell_for(reader, node, name, value)
        reader.scope.bind(name, held)
    place = whole_of(held)
    if place.is_vector:
        store_vector(reader, node, place, value)
    else:
        reader.store(node, place, value)
    return True


def _cell_for(reader: TirStatementReader, node: ast.AST, name: str, value: Scalar | Dim | float | Vector) -> Cell:
    if isinstance(value, Vector):
        return new_cell(reader, node, name, value.dtype, value.lanes)
    if isinstance(value, bool):
        return new_cell(reader, node, name, to_dtype("bool"))
    return new_cell(reader, node, name, reader.emit(node, lambda: promoted(value)[0]).dtype)
