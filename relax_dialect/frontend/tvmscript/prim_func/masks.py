"""`A.vload(begin, dtype, predicate)` and `A.vstore(begin, value, predicate)`: rows of which a mask may have some lanes.

Lanes that the mask has not are not read and are 0, or are not written.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.dtypes import MAX_LANES, split_dtype
from relax_dialect.frontend.tvmscript.prim_func.lanes import cast_vector, named_dtype
from relax_dialect.frontend.tvmscript.prim_func.places import in_a_row, places_of
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Region, Vector
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector, broadcast_value, load_lanes, store_lanes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect.dims import constant
from tir_dialect.ops.scalars import RampOp
from tir_dialect.te.expr import INDEX

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader


def load_vector(reader: TirExpressionReader, node: ast.Call, buffer: Buffer) -> object:
    """`A.vload([i, j], "float32x4", predicate=mask)`."""
    given = Arguments(reader.source, node, "vload", "begin dtype predicate")
    return load_at(reader, node, buffer, given.require("begin"), given.get("dtype"), given.get("predicate"))


def load_at(
    reader: TirExpressionReader,
    node: ast.AST,
    buffer: Buffer,
    begin: ast.expr,
    dtype: ast.expr | None,
    predicate: ast.expr | None,
) -> object:
    """As many elements as a dtype has lanes, or as the place has; without lanes, one."""
    bare, lanes = (None, None) if dtype is None else split_dtype(reader.text(dtype))
    if bare is not None and named_dtype(reader, node, bare) != buffer.tensor.dtype:
        reader.fail(node, f"expected the dtype of the buffer, {buffer.tensor.dtype}, got {bare}; use T.reinterpret")
    region = _region(reader, node, buffer, begin, lanes)
    if not region.is_vector:
        return reader.load(node, region)
    indices, count = places_of(reader, node, region)
    mask = _mask(reader, predicate, count or _lanes(region))
    return load_lanes(reader, node, region.buffer, indices, count, mask)


def store_row(reader: TirStatementReader, node: ast.Call, owner: ast.expr) -> None:
    """`A.vstore([i, j], value, predicate=mask)`."""
    buffer = reader.value(owner)
    if not isinstance(buffer, Buffer):
        reader.fail(owner, "expected a buffer to store to")
    given = Arguments(reader.source, node, "vstore", "begin value predicate")
    value = reader.value(given.require("value"))
    store_at(reader, node, buffer, given.require("begin"), value, given.get("predicate"))


def store_at(
    reader: TirStatementReader,
    node: ast.AST,
    buffer: Buffer,
    begin: ast.expr,
    value: object,
    predicate: ast.expr | None,
) -> None:
    """Writes a scalar or a row from a place on."""
    row = as_vector(reader, node, value)
    region = _region(reader, node, buffer, begin, None if row is None else row.lanes)
    if not region.is_vector:
        reader.store(node, region, value)
        return
    indices, count = places_of(reader, node, region)
    lanes = count or _lanes(region)
    if row is None:
        row = broadcast_value(reader, node, value, lanes, buffer.tensor.dtype)
    store_lanes(reader, node, region.buffer, indices, row, _mask(reader, predicate, lanes))


def _lanes(region: Region) -> int:
    """The lanes of the vector among the indices."""
    return next(axis.lower.lanes for axis in region.axes if isinstance(axis.lower, Vector))


def _region(reader: TirExpressionReader, node: ast.AST, buffer: Buffer, begin: ast.expr, lanes: int | None) -> Region:
    """The elements at places of which one is a vector, or so many from a place on."""
    places = begin.elts if isinstance(begin, ast.List | ast.Tuple) else [begin]
    indices = ast.copy_location(ast.Tuple(list(places), ast.Load()), begin)
    region = reader.region(ast.copy_location(ast.Subscript(begin, indices, ast.Load()), begin), buffer)
    if lanes is None or lanes == 1 or region.is_vector:
        return region
    if not region.axes or lanes > MAX_LANES:
        reader.fail(node, f"expected 1 to {MAX_LANES} lanes along a dimension, got {lanes}")
    last = region.axes[-1].lower
    upper = reader.index(node, reader.apply(node, "Add", last, lanes))
    return in_a_row(reader, node, Region(buffer, (*region.axes[:-1], Axis(last, upper))))


def _mask(reader: TirExpressionReader, node: ast.expr | None, lanes: int) -> SSAValue | None:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    value = reader.value(node)
    row = as_vector(reader, node, value)
    truth = named_dtype(reader, node, "bool")
    row = broadcast_value(reader, node, value, lanes, truth) if row is None else cast_vector(reader, node, row, truth)
    if row.lanes != lanes:
        reader.fail(node, f"expected a mask of {lanes} lanes, got {row.lanes}")
    return row.value


def active_lanes(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.get_active_lane_mask("uint1x4", base, limit)`: the lanes `i` with `base + i < limit`."""
    given = Arguments(reader.source, node, "T.get_active_lane_mask", "dtype base limit")
    _, lanes = split_dtype(reader.text(given.require("dtype")))
    if lanes is None:
        reader.fail(given.require("dtype"), "expected a dtype with lanes, as boolx4")
    base, limit = (given.require(name) for name in ("base", "limit"))
    first, one = reader.index_value(base, reader.value(base)), reader.dim_value(node, constant(1))
    places = Vector(reader.insert(RampOp(first, one, lanes)), INDEX)
    return reader.apply(node, "LT", places, reader.value(limit))
