"""The body of a kernel that is put together from the bodies of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from tir_dialect.attributes import DimAttr
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import BufferType


@dataclass
class KernelBody:
    """The body of a function that is being put together: memory, then sizes, then loops."""

    func: PrimFuncOp
    _allocations: list[Operation] = field(default_factory=list[Operation])
    _header: list[Operation] = field(default_factory=list[Operation])
    _nests: list[Operation] = field(default_factory=list[Operation])
    _sizes: dict[Dim, SSAValue] = field(default_factory=dict[Dim, SSAValue])
    _names: dict[str, int] = field(default_factory=dict[str, int])

    def allocate(self, kind: BufferType) -> SSAValue:
        """New memory."""
        op = AllocBufferOp(kind)
        self._allocations.append(op)
        return op.buffer

    def append(self, callee: PrimFuncOp, params: Sequence[SSAValue], dims: Mapping[str, Dim]) -> None:
        """A copy of the body of another function, with its parameters and symbols replaced."""
        values: dict[SSAValue, SSAValue] = dict(zip(callee.params, params, strict=True))
        for argument, name in zip(callee.symbol_args, callee.symbol_names, strict=True):
            if argument.uses:
                values[argument] = self._size(dims[name])
        for op in callee.body.block.ops:
            if isinstance(op, DimOp):
                values[op.result] = self._size(op.dim.substitute(dims))
            elif isinstance(op, arith.ConstantOp) and isinstance(op.result.type, IndexType):
                values[op.result] = self._constant(op)
            else:
                clone = op.clone(values)
                self._adapt(clone, dims)
                # Another type makes another value.
                values.update(zip(op.results, clone.results, strict=True))
                (self._allocations if isinstance(clone, AllocBufferOp) else self._nests).append(clone)

    def finish(self) -> None:
        """Puts everything into the function."""
        self.func.body.block.add_ops([*self._allocations, *self._header, *self._nests])

    def _constant(self, op: arith.ConstantOp) -> SSAValue:
        value = op.value.value.data if isinstance(op.value, IntegerAttr) else 0
        return self._size(constant(value))

    def _size(self, dim: Dim) -> SSAValue:
        name = dim.as_symbol
        argument = None if name is None else self.func.symbol_arg(name)
        if argument is not None:
            return argument
        if dim not in self._sizes:
            value = dim.constant_value
            op = DimOp(dim) if value is None else arith.ConstantOp(IntegerAttr(value, IndexType()))
            op.result.name_hint = None if value is None or value < 0 else f"c{value}"
            self._header.append(op)
            self._sizes[dim] = op.result
        return self._sizes[dim]

    def _adapt(self, clone: Operation, dims: Mapping[str, Dim]) -> None:
        """Symbols in the types and sizes of a copy, and names of blocks that are there already."""
        for op in clone.walk():
            if isinstance(op, DimOp):
                op.dim_attr = DimAttr(op.dim.substitute(dims))
            elif isinstance(op, BlockOp):
                op.block_name = StringAttr(self._unique(op.block_name.data))
            for result in op.results:
                if isinstance(result.type, BufferType):
                    _set_type(result, result.type.substitute(dims))

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self._unique(f"{name}_{count}") if count else name


def _set_type(result: OpResult, kind: BufferType) -> None:
    if result.type != kind:
        Rewriter.replace_value_with_new_type(result, kind)
