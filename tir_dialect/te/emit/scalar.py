"""Emission of expressions: one op per function, each expression once per region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tir_dialect.dims import Dim
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_index
from tir_dialect.te.emit.casts import emit_cast, value_type
from tir_dialect.te.emit.expansions import emit_constant, emit_reinterpret, expansion
from tir_dialect.te.emit.tables import op_table
from tir_dialect.te.expr import Expr
from tir_dialect.te.signs import Signs
from tir_dialect.te.tensor import Tensor
from tir_dialect.te.tree import post_order

_UNSIGNED_DIVISION = {"floordiv": arith.DivUIOp, "floormod": arith.RemUIOp}


@dataclass
class Names:
    """What expressions may refer to: buffers of tensors, values of variables, arguments of symbols."""

    buffers: dict[Tensor, SSAValue] = field(default_factory=dict[Tensor, SSAValue])
    variables: dict[Expr, SSAValue] = field(default_factory=dict[Expr, SSAValue])
    symbols: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


def emit_dim(insert: Callable[[Operation], SSAValue], dim: Dim, names: Names) -> SSAValue:
    """The value of a dimension: an argument, a constant, or `tir.dim`."""
    if (value := dim.constant_value) is not None:
        return insert(arith.ConstantOp(IntegerAttr(value, IndexType())))
    if (name := dim.as_symbol) is not None:
        return names.symbols[name]
    return insert(DimOp(dim))


class ScalarEmitter:
    """Appends the ops of expressions to a block and remembers the values."""

    def __init__(
        self, block: Block, names: Names, signs: Signs | None = None, values: Mapping[Expr, SSAValue] | None = None
    ):
        self.block = block
        self._names = names
        self._signs = signs or Signs()
        self._values: dict[Expr, SSAValue] = dict(values or {})

    def emit(self, *roots: Expr) -> tuple[SSAValue, ...]:
        """The values of the expressions."""
        for expr in post_order(roots, self._needed):
            if expr not in self._values:
                self._values[expr] = self._value(expr)
        return tuple(self._values[root] for root in roots)

    def inside(self, block: Block) -> ScalarEmitter:
        """An emitter for a block that what has been emitted so far dominates."""
        return ScalarEmitter(block, self._names, self._signs, self._values)

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Appends an op with one result."""
        self.block.add_op(op)
        op.results[0].name_hint = as_name_hint(hint)
        return op.results[0]

    def _needed(self, expr: Expr) -> tuple[Expr, ...]:
        if expr in self._values:
            return ()
        # the branches of a conditional are emitted into regions of their own
        return expr.operands[:1] if isinstance(expr, nodes.Conditional) else expr.operands

    def _value(self, expr: Expr) -> SSAValue:
        operands = [self._values[operand] for operand in expr.operands if operand in self._values]
        match expr:
            case nodes.Var():
                return self._names.variables[expr]
            case nodes.Const():
                return emit_constant(self.insert, expr.value, expr.dtype)
            case nodes.Size():
                return emit_dim(self.insert, expr.dim, self._names)
            case nodes.Load():
                return self.insert(LoadOp(self._names.buffers[expr.tensor], operands), expr.tensor.name.lower())
            case nodes.Cast():
                return emit_cast(self.insert, operands[0], expr.operands[0].dtype, expr.dtype)
            case nodes.CallExtern():
                return self.insert(CallExternOp(expr.symbol, operands, value_type(expr.dtype), pure=True))
            case nodes.Conditional():
                return self._conditional(expr)
            case nodes.Apply():
                return self._apply(expr, operands)
            case _:
                raise TypeError(f"te: a {type(expr).__name__} has no value inside an expression")

    def _apply(self, expr: nodes.Apply, operands: Sequence[SSAValue]) -> SSAValue:
        # a comparison has the result i1, a selection a condition: the last operand tells the kind of function
        dtype = expr.operands[-1].dtype
        if expr.function == "reinterpret":
            return emit_reinterpret(self.insert, operands[0], expr.dtype)
        if is_index(dtype) and expr.function in _UNSIGNED_DIVISION and self._signs.divides_unsigned(*expr.operands):
            return self.insert(_UNSIGNED_DIVISION[expr.function](operands[0], operands[1]))
        if (op := op_table(dtype).get(expr.function)) is not None:
            return self.insert(op(*operands))
        return expansion(expr.function, dtype)(self.insert, operands, dtype)

    def _conditional(self, expr: nodes.Conditional) -> SSAValue:
        condition, then, otherwise = expr.operands
        regions = self._branch(then), self._branch(otherwise)
        return self.insert(IfOp(self._values[condition], regions[0], regions[1], [value_type(expr.dtype)]))

    def _branch(self, expr: Expr) -> Region:
        block = Block()
        block.add_op(YieldOp(*self.inside(block).emit(expr)))
        return Region(block)
