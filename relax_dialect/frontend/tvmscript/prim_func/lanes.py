"""Functions of `T` lane by lane: what they are for scalars, with each op as one on vectors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from relax_dialect.frontend.tvmscript.prim_func.values import Vector
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.te import nodes
from tir_dialect.te.emit.scalar import Names, ScalarEmitter, by_lane, value_type
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_SCALARS_ONLY = (CallExternOp, math.IPowIOp)
"""Ops that compute one scalar, by a call or by a loop."""


def cast_vector(reader: TirExpressionReader, node: ast.AST, row: Vector, dtype: DType) -> Vector:
    """Every lane converted."""

    def cast(value: Scalar) -> Scalar:
        return te.cast(value, dtype)

    return row if row.dtype == dtype else lane_by_lane(reader, node, cast, [row])


def spread(reader: TirExpressionReader, value: SSAValue, dtype: DType, lanes: int) -> Vector:
    """The same in every lane."""
    return Vector(reader.insert(vector.BroadcastOp(value, VectorType(value_type(dtype), [lanes]))), dtype)


def lane_by_lane(
    reader: TirExpressionReader, node: ast.AST, function: Callable[..., Scalar], operands: Sequence[object]
) -> Vector:
    """What a function of scalars gives for each lane."""
    counts = [each.lanes for each in operands if isinstance(each, Vector)]
    if len(set(counts)) != 1:
        reader.fail(node, f"expected vectors with as many lanes, got {', '.join(map(str, counts))}")
    widener = _Widener(reader, node, counts[0])
    arguments = [widener.lane_of(each) if isinstance(each, Vector) else widener.scalar(each) for each in operands]
    return widener.widen(reader.emit(node, lambda: function(*arguments)))


class _Widener:
    """Emits a function of one lane into a block of its own, then for all lanes where the reader is."""

    def __init__(self, reader: TirExpressionReader, node: ast.AST, lanes: int):
        self._reader = reader
        self._node = node
        self._lanes = lanes
        self._block = Block()
        self._names = Names(symbols=reader.names.symbols)
        self._values: dict[SSAValue, SSAValue] = {}

    def lane_of(self, row: Vector) -> Scalar:
        """A lane of a vector."""
        return self._argument(row.value, row.dtype)

    def scalar(self, operand: object) -> Scalar | Dim | float:
        """What counts for every lane; numbers take the dtype of the others."""
        found = self._reader.scalar_operand(self._node, operand)
        if not isinstance(found, Scalar):
            return found
        return self._argument(self._reader.values(self._node, found)[0], found.dtype)

    def _argument(self, value: SSAValue, dtype: DType) -> Scalar:
        argument = self._block.insert_arg(value_type(dtype), len(self._block.args))
        self._values[argument] = value
        variable = nodes.Var("lane", dtype)
        self._names.variables[variable] = argument
        return variable

    def widen(self, scalar: Scalar) -> Vector:
        """The function of all lanes at once."""
        (result,) = self._reader.emit(self._node, lambda: ScalarEmitter(self._block, self._names).emit(scalar))
        for op in self._block.ops:
            self._widen(op)
        return Vector(self._widened(self._values.get(result, result)), scalar.dtype)

    def _widen(self, op: Operation) -> None:
        operands = [self._values.get(operand, operand) for operand in op.operands]
        if any(lanes_of(operand.type) for operand in operands):
            if isinstance(op, _SCALARS_ONLY) or op.regions:
                self._reader.fail(self._node, "this is not computed of vectors; write a loop, T.vectorized(lanes)")
            # a condition may be one for all lanes
            whole = isinstance(op, arith.SelectOp) and lanes_of(operands[0].type) is None
            widened = [*operands[:whole], *map(self._widened, operands[whole:])]
            made = by_lane(op, widened, self._lanes)
        else:
            made = op.clone(self._values)
        self._values[op.results[0]] = self._reader.insert(made)

    def _widened(self, value: SSAValue) -> SSAValue:
        if lanes_of(value.type) is not None:
            return value
        return self._reader.insert(vector.BroadcastOp(value, VectorType(value.type, [self._lanes])))


def named_dtype(reader: TirExpressionReader, node: ast.AST, name: str) -> DType:
    """The dtype of a name."""
    return reader.emit(node, lambda: to_dtype(name))
