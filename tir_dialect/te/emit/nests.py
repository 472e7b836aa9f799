"""Loops around a block, made from the outside to the inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.te.emit.scalar import Names, ScalarEmitter
from tir_dialect.te.expr import Expr
from tir_dialect.te.nodes import IterVar, Size
from tir_dialect.te.signs import Signs
from tir_dialect.types import IteratorKind

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
        """One with the same iterators, for another nest in the same place; before any loop is made."""
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
                emitter = ScalarEmitter(self._place, self.names, Signs(self.axes), self._values)
                (self._values[extent],) = emitter.emit(extent)

    def loop(self, axis: IterVar, extent: Expr) -> None:
        """A loop around what follows."""
        self.evaluate([extent] if extent not in self._values else [])
        value = self.extent_of(extent.dim) if isinstance(extent, Size) else self._values[extent]
        loop = ForOp(value, name_hint=axis.name)
        self._place.add_op(loop)
        self._inner = loop.body.block
        self.bind(axis, loop.induction_var, value)

    def block(self, name: str) -> BlockOp:
        """The block, whose iterators are the values of the axes from now on."""
        kinds = [IteratorKind(axis.kind) for axis in self.axes]
        iterators = [(kind, *bounds) for kind, bounds in zip(kinds, self._bounds, strict=True)]
        block = BlockOp(name, iterators, name_hints=[f"v{axis.name}" for axis in self.axes])
        self._place.add_op(block)
        self.names.variables.update(zip(self.axes, block.body.block.args, strict=True))
        return block

    def finish(self) -> list[Operation]:
        """The ops, which stand nowhere."""
        ops = list(self.root.ops)
        for op in ops:
            op.detach()
        return ops

    @property
    def _place(self) -> Block:
        return self._inner or self.root
