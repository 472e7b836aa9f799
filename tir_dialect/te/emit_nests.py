"""From computations to loops around blocks: computes, scans, extern bodies and inlined functions.

Each statement of an extern evaluates its expressions anew: stores may have changed what they load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tir_dialect.dims import Dim
from tir_dialect.ops.assembly_format import annotations_attr
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.calls import CallExternOp, CallPackedOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.te import nodes, statements
from tir_dialect.te.compute import Nest, Scan
from tir_dialect.te.emit_scalar import Names, ScalarEmitter, Signs
from tir_dialect.te.expr import Expr
from tir_dialect.te.extern import Extern, Inlined
from tir_dialect.te.nodes import IterVar, Size, Tensor, free_variables, substitute
from tir_dialect.te.statements import Body
from tir_dialect.types import BufferType, DimAttr, IteratorKind, LoopKind, as_name_hint

ExtentOf: TypeAlias = Callable[[Dim], SSAValue]
"""Gives the value of an extent, defined at the top of the function."""


@dataclass
class NestBuilder:
    """Appends loops, and at last a block with an iterator for each."""

    names: Names
    extent_of: ExtentOf
    root: Block = field(default_factory=Block)
    """Where the ops stand until `finish`."""
    axes: list[IterVar] = field(default_factory=list[IterVar])
    _bounds: list[tuple[SSAValue, SSAValue]] = field(default_factory=list[tuple[SSAValue, SSAValue]])
    _values: dict[Expr, SSAValue] = field(default_factory=dict[Expr, SSAValue])
    _inner: Block | None = None

    @property
    def rank(self) -> int:
        """How many iterators there are so far."""
        return len(self.axes)

    def copy(self) -> NestBuilder:
        """One with the same iterators, for another nest in the same position; before any loop is made."""
        return NestBuilder(self.names, self.extent_of, axes=list(self.axes), _bounds=list(self._bounds))

    def bind(self, axis: IterVar, value: SSAValue, extent: SSAValue) -> None:
        """An iterator of the block for a loop that is around the nest."""
        self.axes.append(axis)
        self._bounds.append((value, extent))
        self.names.variables[axis] = value

    def evaluate(self, extents: Iterable[Expr]) -> None:
        """Computes extents of loops that are yet to come here, outside of these."""
        # another nest may have had blocks for the same axes
        self.names.variables.update((axis, value) for axis, (value, _) in zip(self.axes, self._bounds, strict=True))
        for extent in extents:
            if not isinstance(extent, Size):
                emitter = ScalarEmitter(self._innermost, self.names, Signs(self.axes), self._values)
                (self._values[extent],) = emitter.emit(extent)

    def loop(self, axis: IterVar, extent: Expr) -> None:
        """A loop around what follows."""
        self.evaluate([extent] if extent not in self._values else [])
        value = self.extent_of(extent.dim) if isinstance(extent, Size) else self._values[extent]
        loop = ForOp(value, name_hint=axis.name)
        self._innermost.add_op(loop)
        self._inner = loop.body.block
        self.bind(axis, loop.induction_var, value)

    def block(self, name: str) -> BlockOp:
        """The block, whose iterators are the values of the axes from now on."""
        kinds = [IteratorKind(axis.kind) for axis in self.axes]
        iterators = [(kind, *bounds) for kind, bounds in zip(kinds, self._bounds, strict=True)]
        block = BlockOp(name, iterators, name_hints=[f"v{axis.name}" for axis in self.axes])
        self._innermost.add_op(block)
        self.names.variables.update(zip(self.axes, block.body.block.args, strict=True))
        return block

    def finish(self) -> list[Operation]:
        """The ops, which stand nowhere."""
        ops = list(self.root.ops)
        for op in ops:
            op.detach()
        return ops

    @property
    def _innermost(self) -> Block:
        return self._inner or self.root


def emit_compute(
    nest: Nest, names: Names, extent_of: ExtentOf, unique: Callable[[str], str], builder: NestBuilder | None = None
) -> list[Operation]:
    """The loops and the block of a compute, with what their extents need; `builder` may have loops already."""
    outer = builder or NestBuilder(names, extent_of)
    name = unique(nest.name)
    reduction = nest.reduction
    ops: list[Operation] = []
    if reduction is not None and _depends_on_itself(reduction):
        ops = _emit_init(unique(f"{name}_init"), nest, reduction, outer.copy())
    for axis in nest.axes[outer.rank :]:
        outer.loop(axis, axis.extent)
    shifted = {} if reduction is None else _reduction_loops(reduction, outer)
    block = outer.block(name)
    block.annotations = annotations_attr(nest.annotations)
    emitter = ScalarEmitter(block.body.block, names, Signs(nest.all_axes))
    if reduction is None:
        _store(emitter, nest, nest.bodies, names)
    else:
        if not ops:
            init = InitOp()
            emitter.block.add_op(init)
            _store(emitter.inside(init.body.block), nest, reduction.starts, names)
        accumulators = tuple(tensor[nest.element] for tensor in nest.outputs)
        combined = reduction.reducer.combined(accumulators, substitute(reduction.sources, shifted))
        _store(emitter, nest, combined, names)
    return [*ops, *outer.finish()]


def _depends_on_itself(reduction: nodes.Reduce) -> bool:
    """Whether the extent of an axis depends on another: no first instance starts the reduction then."""
    own = set(reduction.axes)
    return not own.isdisjoint(free_variables(extent for _, extent in reduction.domains))


def _emit_init(name: str, nest: Nest, reduction: nodes.Reduce, builder: NestBuilder) -> list[Operation]:
    """The start of a reduction as a nest of its own."""
    for axis in nest.axes[builder.rank :]:
        builder.loop(axis, axis.extent)
    block = builder.block(name)
    _store(ScalarEmitter(block.body.block, builder.names, Signs(nest.axes)), nest, reduction.starts, builder.names)
    return builder.finish()


def _reduction_loops(reduction: nodes.Reduce, builder: NestBuilder) -> dict[Expr, Expr]:
    """Adds the loops of a reduction, which count from 0; what axes are that start elsewhere."""
    own = set(reduction.axes)
    extents = [extent for _, extent in reduction.domains]
    # a reduction that may be empty starts where all of its extents are known
    builder.evaluate([extent for extent in extents if own.isdisjoint(free_variables((extent,)))])
    shifted: dict[Expr, Expr] = {}
    for axis, (lo, extent) in zip(reduction.axes, reduction.domains, strict=True):
        first, length = substitute((lo, extent), shifted)
        builder.loop(axis, length)
        if not _is_zero(first):
            shifted[axis] = axis + first
    return shifted


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, nodes.Size) and not expr.dim.terms


def _store(emitter: ScalarEmitter, nest: Nest, values: Sequence[Expr], names: Names) -> None:
    emitted = emitter.emit(*values)
    indices = emitter.emit(*nest.element)
    for tensor, value in zip(nest.outputs, emitted, strict=True):
        emitter.block.add_op(StoreOp(value, names.buffers[tensor], indices))


def emit_scan(scan: Scan, names: Names, extent_of: ExtentOf, unique: Callable[[str], str]) -> list[Operation]:
    """The nests of a scan."""
    ops = [op for start in scan.starts for op in emit_compute(start, names, extent_of, unique)]
    length = extent_of(scan.length)
    loop = ForOp(length, name_hint=scan.steps[0].axes[0].name)
    for step in scan.steps:
        builder = NestBuilder(names, extent_of)
        builder.bind(step.axes[0], loop.induction_var, length)
        loop.body.block.add_ops(emit_compute(step, names, extent_of, unique, builder))
    return [*ops, loop]


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
                tensor = statement.tensor
                op = AllocBufferOp(BufferType(tensor.shape, tensor.dtype, scope=statement.scope))
                op.buffer.name_hint = as_name_hint(tensor.name)
                self._add(op)
                self._names.buffers[tensor] = op.buffer
            case statements.For():
                starts_at_zero = isinstance(statement.lo, Size) and not statement.lo.dim.terms
                lower = None if starts_at_zero else self._bound(statement.lo)
                loop = ForOp(
                    self._bound(statement.hi), lower=lower, kind=LoopKind(statement.kind), name_hint=statement.var.name
                )
                self._add(loop)
                self._names.variables[statement.var] = loop.induction_var
                self._fill(loop.body.block, statement.body)
            case statements.While():
                before = Block()
                (condition,) = ScalarEmitter(before, self._names, self._signs).emit(statement.condition)
                before.add_op(ConditionOp(condition))
                self._add(WhileOp(Region(before), Region(self._nested(statement.body))))
            case statements.If():
                (condition,) = self._values(statement.condition)
                then, otherwise = self._nested(statement.then), self._nested(statement.otherwise)
                self._add(IfOp(condition, Region(then), Region(otherwise)))
            case statements.Block():
                builder = NestBuilder(self._names, self._extent_of)
                for axis in statement.axes:
                    builder.loop(axis, axis.extent)
                block = builder.block(statement.name)
                self._block.add_ops(builder.finish())
                self._fill(block.body.block, statement.body, statement.axes)
            case statements.Init():
                self._add(InitOp(Region(self._nested(statement.body))))
            case statements.Call():
                args = [
                    self._names.buffers[arg] if isinstance(arg, Tensor) else self._values(arg)[0]
                    for arg in statement.args
                ]
                op = CallPackedOp if statement.packed else CallExternOp
                self._add(op(statement.symbol, args))

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


def emit_inlined(source: Inlined, names: Names, extent_of: ExtentOf, unique: Callable[[str], str]) -> list[Operation]:
    """Copies of the ops of the function, which speak of the buffers and dimensions that replace its own."""
    values: dict[SSAValue, SSAValue] = {}
    for symbol, argument in zip(source.func.symbol_names, source.func.symbol_args, strict=True):
        values[argument] = extent_of(source.symbols[symbol])
    for param, tensor in zip(source.func.params, source.arguments, strict=True):
        values[param] = names.buffers[tensor]
    ops = [op.clone(values) for op in source.func.body.block.ops]
    for op in [inner for each in ops for inner in each.walk()]:
        # Replaces symbols in the types and attributes of an op.
        op.properties = {name: _substituted(value, source.symbols) for name, value in op.properties.items()}
        for result in op.results:
            if (kind := _substituted(result.type, source.symbols)) != result.type:
                Rewriter.replace_value_with_new_type(result, kind)
        if isinstance(op, BlockOp):
            op.block_name = StringAttr(unique(op.block_name.data))
    return ops


def _substituted(attribute: Attribute, symbols: Mapping[str, Dim]) -> Attribute:
    if isinstance(attribute, BufferType):
        return attribute.substitute(symbols)
    return DimAttr(attribute.data.substitute(symbols)) if isinstance(attribute, DimAttr) else attribute
