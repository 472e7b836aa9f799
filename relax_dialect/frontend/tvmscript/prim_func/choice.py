"""`T.if_then_else` and `a if c else b`: of the two sides only one is evaluated, also if they are vectors."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Region

from relax_dialect.frontend.tvmscript.prim_func.lanes import cast_vector, lane_by_lane
from relax_dialect.frontend.tvmscript.prim_func.promotion import common_dtype
from relax_dialect.frontend.tvmscript.prim_func.rows import in_memory
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS, logical_not
from relax_dialect.frontend.tvmscript.prim_func.values import Vector
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector, both, broadcast_value
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.choices import choice, is_of_dimensions
from tir_dialect import te
from tir_dialect.dims import constant
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.emit.scalar import value_type
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader


def if_then_else(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.if_then_else(condition, then, otherwise)`."""
    if is_of_dimensions(reader, node) and (dim := choice(reader, node)) is not None:
        return dim
    given = Arguments(reader.source, node, "T.if_then_else", "cond t f span", {}, ("dtype",))
    return choose(reader, node, *(given.require(name) for name in ("cond", "t", "f")))


def choose(reader: TirExpressionReader, node: ast.AST, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> object:
    """One of two expressions."""
    condition = reader.value(test)
    if isinstance(condition, bool):
        return reader.value(then if condition else otherwise)
    if (mask := as_vector(reader, test, condition)) is not None:
        return _by_lane(reader, node, mask, then, otherwise)
    sides = [_read(reader, each) for each in (then, otherwise)]
    rows = [value for _, value in sides if isinstance(value, Vector)]
    if rows:
        return _vector(reader, node, test, condition, sides, _common(reader, node, rows))
    for block, _ in sides:
        for op in list(block.ops):
            op.detach()
            reader.block.add_op(op)
    scalars = [reader.scalar_operand(node, value) for value in (condition, *(value for _, value in sides))]
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](*scalars))


def _read(reader: TirExpressionReader, node: ast.expr) -> tuple[Block, object]:
    """An expression, and the ops that it takes."""
    outer, block = reader.block, Block()
    reader.block = block
    try:
        value = reader.value(node)
        return block, as_vector(reader, node, value) or value
    finally:
        reader.block = outer


def _common(reader: TirExpressionReader, node: ast.AST, rows: list[Vector]) -> tuple[DType, int]:
    """The dtype and the lanes of the result; indices have no vectors that branches give, and become 64 bits."""
    dtype = reader.emit(node, lambda: common_dtype(rows[0].dtype, rows[-1].dtype))
    return to_dtype("int64") if is_index(dtype) else dtype, rows[0].lanes


def _vector(
    reader: TirExpressionReader,
    node: ast.AST,
    test: ast.expr,
    condition: object,
    sides: list[tuple[Block, object]],
    result: tuple[DType, int],
) -> Vector:
    """A branch that gives a vector."""
    dtype, lanes = result
    truth = reader.scalar_value(test, condition, to_dtype("bool"))
    outer = reader.block
    for block, value in sides:
        reader.block = block
        row = value if isinstance(value, Vector) else broadcast_value(reader, node, value, lanes, dtype)
        if row.lanes != lanes:
            reader.fail(node, f"expected vectors of {lanes} lanes, got {row.lanes}")
        block.add_op(YieldOp(cast_vector(reader, node, row, dtype).value))
    reader.block = outer
    op = IfOp(truth, Region(sides[0][0]), Region(sides[1][0]), [VectorType(value_type(dtype), [lanes])])
    return Vector(reader.insert(op), dtype)


def _by_lane(reader: TirExpressionReader, node: ast.AST, mask: Vector, then: ast.expr, otherwise: ast.expr) -> object:
    """A choice in every lane, of sides that are computed for all of them, but read memory for those that are chosen."""
    chosen = cast_vector(reader, node, mask, to_dtype("bool"))
    others = lane_by_lane(reader, node, logical_not, [chosen])
    rows = [_guarded(reader, side, lanes) for side, lanes in ((then, chosen), (otherwise, others))]
    return reader.apply(node, "Select", chosen, *rows)


def _guarded(reader: TirExpressionReader, side: ast.expr, lanes: Vector) -> object:
    """A side that counts for some lanes: the others neither read memory nor divide."""
    outer = reader.mask
    reader.mask = lanes if outer is None else both(reader, side, outer, lanes)
    try:
        value = reader.value(side)
        return as_vector(reader, side, value) or value
    finally:
        reader.mask = outer


# Inside of a side that counts for some lanes


def divisor_of(reader: TirExpressionReader, node: ast.AST, mask: Vector, divisor: object) -> object:
    """A divisor that is 1 in the lanes that do not count."""
    if (row := as_vector(reader, node, divisor)) is not None:
        return reader.apply(node, "Select", mask, row, 1)
    operand = reader.scalar_operand(node, divisor)
    if isinstance(operand, int | float):
        return operand
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](_any_of(reader, node, mask), operand, 1))


def element_of(reader: TirExpressionReader, node: ast.AST, mask: Vector, element: Scalar) -> Scalar:
    """An element that all lanes share, read if one of them counts; else 0."""
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](_any_of(reader, node, mask), element, 0))


def _any_of(reader: TirExpressionReader, node: ast.AST, mask: Vector) -> Scalar:
    """Whether a mask has any lane."""
    memory = in_memory(reader, node, [mask])
    lanes = [memory.tensor[(constant(place),)] for place in range(mask.lanes)]
    found = functools.reduce(te.logical_or, lanes)
    return reader.variable(reader.values(node, found)[0], found.dtype, "any")
