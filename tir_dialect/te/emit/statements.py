"""Emission of extern bodies. Each statement evaluates its expressions anew: stores may have changed what they load."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.annotations import annotations_attr
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import CallExternOp, CallPackedOp
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.te import statements
from tir_dialect.te.emit.nests import ExtentOf, NestBuilder
from tir_dialect.te.emit.scalar import Names, ScalarEmitter
from tir_dialect.te.expr import Expr
from tir_dialect.te.extern import Extern
from tir_dialect.te.nodes import IterVar, Size
from tir_dialect.te.signs import Signs
from tir_dialect.te.statements import Body
from tir_dialect.te.tensor import Tensor
from tir_dialect.types import BufferType, LoopKind


def emit_extern(name: str, extern: Extern, names: Names, extent_of: ExtentOf) -> BlockOp:
    """A block without iterators that holds the statements."""
    block = BlockOp(name)
    block.annotations = annotations_attr(extern.annotations)
    StatementEmitter(block.body.block, names, extent_of).emit(extern.body)
    return block


class StatementEmitter:
    """Appends statements to a block."""

    def __init__(self, block: Block, names: Names, extent_of: ExtentOf, axes: tuple[IterVar, ...] = ()):
        self._block = block
        self._names = names
        self._extent_of = extent_of
        self._axes = axes
        self._signs = Signs(axes)

    def emit(self, body: Body) -> None:
        """Appends all statements of `body`."""
        for statement in body:
            self._emit(statement)

    def _emit(self, statement: statements.Statement) -> None:
        match statement:
            case statements.Store():
                self._store(statement)
            case statements.Let():
                (value,) = self._values(statement.value)
                value.name_hint = value.name_hint or as_name_hint(statement.var.name)
                self._names.variables[statement.var] = value
            case statements.Alloc():
                self._alloc(statement)
            case statements.For():
                self._for(statement)
            case statements.While():
                self._while(statement)
            case statements.If():
                (condition,) = self._values(statement.condition)
                then, otherwise = self._nested(statement.then), self._nested(statement.otherwise)
                self._add(IfOp(condition, Region(then), Region(otherwise)))
            case statements.Block():
                self._nest(statement)
            case statements.Call():
                self._call(statement)

    def _add(self, op: Operation) -> None:
        self._block.add_op(op)

    def _values(self, *exprs: Expr) -> tuple[SSAValue, ...]:
        return ScalarEmitter(self._block, self._names, self._signs).emit(*exprs)

    def _bound(self, expr: Expr) -> SSAValue:
        return self._extent_of(expr.dim) if isinstance(expr, Size) else self._values(expr)[0]

    def _fill(self, block: Block, body: Body, axes: tuple[IterVar, ...] = ()) -> None:
        StatementEmitter(block, self._names, self._extent_of, (*self._axes, *axes)).emit(body)

    def _nested(self, body: Body) -> Block:
        block = Block()
        self._fill(block, body)
        return block

    def _store(self, statement: statements.Store) -> None:
        *indices, value = self._values(*statement.indices, statement.value)
        self._add(StoreOp(value, self._names.buffers[statement.tensor], indices))

    def _alloc(self, statement: statements.Alloc) -> None:
        tensor = statement.tensor
        op = AllocBufferOp(BufferType(tensor.shape, tensor.dtype, scope=statement.scope))
        op.buffer.name_hint = as_name_hint(tensor.name)
        self._add(op)
        self._names.buffers[tensor] = op.buffer

    def _for(self, statement: statements.For) -> None:
        starts_at_zero = isinstance(statement.lo, Size) and not statement.lo.dim.terms
        lower = None if starts_at_zero else self._bound(statement.lo)
        loop = ForOp(
            self._bound(statement.hi), lower=lower, kind=LoopKind(statement.kind), name_hint=statement.var.name
        )
        self._add(loop)
        self._names.variables[statement.var] = loop.induction_var
        self._fill(loop.body.block, statement.body)

    def _while(self, statement: statements.While) -> None:
        before = Block()
        (condition,) = ScalarEmitter(before, self._names, self._signs).emit(statement.condition)
        before.add_op(ConditionOp(condition))
        self._add(WhileOp(Region(before), Region(self._nested(statement.body))))

    def _nest(self, statement: statements.Block) -> None:
        builder = NestBuilder(self._names, self._extent_of)
        for axis in statement.axes:
            builder.loop(axis, axis.extent)
        block = builder.block(statement.name)
        self._block.add_ops(builder.finish())
        self._fill(block.body.block, statement.body, statement.axes)

    def _call(self, statement: statements.Call) -> None:
        args = [self._names.buffers[arg] if isinstance(arg, Tensor) else self._values(arg)[0] for arg in statement.args]
        op = CallPackedOp if statement.packed else CallExternOp
        self._add(op(statement.symbol, args))
