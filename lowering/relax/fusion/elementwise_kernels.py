"""PrimFuncs that compute each element of their result independently, in one perfect nest.

Two of them, where only the second reads the result of the first, become one nest at once: what `inline_blocks` would
make of two, without a second nest and the buffer between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.statements import is_index_op
from tir_dialect.types import IteratorKind, LoopKind


@dataclass(frozen=True)
class Nest:
    """Plain loops around a block, which ends with a store."""

    loops: tuple[ForOp, ...]
    block: BlockOp
    store: StoreOp

    @staticmethod
    def of(op: Operation | None) -> Nest | None:
        """The nest that an op is, if loops and block are without conditions and annotations."""
        loops: list[ForOp] = []
        while isinstance(op, ForOp) and _is_plain_loop(op):
            loops.append(op)
            op = op.body.block.first_op
        if not isinstance(op, BlockOp) or not _is_plain_block(op):
            return None
        store = op.body.block.last_op
        return Nest(tuple(loops), op, store) if isinstance(store, StoreOp) else None

    @property
    def outermost(self) -> Operation:
        """The op that stands in the function."""
        return self.loops[0] if self.loops else self.block

    def go_on(
        self, more: Nest, read: SSAValue, values: dict[SSAValue, SSAValue], clone: Callable[[Operation], Operation]
    ) -> Nest:
        """The nest with the code of another one after its own, which reads from `read` what this one stored.

        `clone` makes copies with `values`. Other loads stand in front, where they were. Names and locations are those
        of the other nest.
        """
        body, stored = self.block.body.block, self.store.value
        Rewriter.erase_op(self.store)
        values.update(zip(more.block.body.block.args, body.args, strict=True))
        insert_point = InsertPoint.at_start(body)
        last: Operation | None = None
        for op in more.block.body.block.ops:
            if isinstance(op, LoadOp) and op.buffer is read:
                values[op.result] = stored
                stored.name_hint = stored.name_hint or op.result.name_hint
                insert_point = InsertPoint.at_end(body)
            else:
                last = clone(op)
                Rewriter.insert_op(last, insert_point)
        self._name_as(more)
        assert isinstance(last, StoreOp)
        return Nest(self.loops, self.block, last)

    def _name_as(self, other: Nest) -> None:
        self.block.location = other.block.location
        _name_values(self.block.body.block.args, other.block.body.block.args)
        for mine, theirs in zip(self.loops, other.loops, strict=True):
            mine.location = theirs.location
            _name_values(mine.body.block.args, theirs.body.block.args)


@dataclass(frozen=True)
class ElementwiseKernel:
    """A function that is a nest, which writes each element of the last parameter once and reads the others."""

    nest: Nest
    shape: tuple[Dim, ...]
    """Of the result, over the function's symbols."""
    elementwise: frozenset[int]
    """The parameters of which each element of the result needs the same element, and no other."""

    @staticmethod
    def of(func: PrimFuncOp) -> ElementwiseKernel | None:
        """The map that a function is."""
        last = func.body.block.last_op
        nest = Nest.of(last)
        header = [op for op in func.body.block.ops if op is not last]
        if nest is None or not all(map(is_index_op, header)) or nest.store.buffer is not func.params[-1]:
            return None
        shape = nest.store.buffer_type.shape
        if not _covers(nest, shape) or not _computes(nest):
            return None
        positions = (index for index, param in enumerate(func.params[:-1]) if _is_read_at_iterators(param, nest))
        return ElementwiseKernel(nest, shape, frozenset(positions))

    def shape_for(self, dims: Mapping[str, Dim]) -> tuple[Dim, ...]:
        """The shape of the result in a call."""
        return tuple(dim.substitute(dims) for dim in self.shape)


def _is_plain_loop(op: ForOp) -> bool:
    only = op.body.block.first_op
    is_alone = only is not None and only.next_op is None
    plain = op.kind.data is LoopKind.SERIAL and op.annotations is None and op.lower is None
    return is_alone and plain and not op.attributes


def _is_plain_block(op: BlockOp) -> bool:
    return op.condition is None and op.annotations is None and not op.attributes


def _covers(nest: Nest, shape: Sequence[Dim]) -> bool:
    """Whether loops, iterators and indices of the store are the dimensions of a shape, in order."""
    iterators, evaluator = nest.block.iterators, DimEvaluator()
    if not len(iterators) == len(nest.loops) == len(shape) or not _is_at_iterators(nest.store, nest):
        return False
    return all(
        each.kind is IteratorKind.SPATIAL
        and each.binding is loop.induction_var
        and evaluator.dim_of(each.extent) is evaluator.dim_of(loop.upper) is dim
        for each, loop, dim in zip(iterators, nest.loops, shape, strict=True)
    )


def _computes(nest: Nest) -> bool:
    """Whether the block only computes the value that it stores."""
    ops = nest.block.body.block.ops
    return all(op is nest.store or isinstance(op, LoadOp) or is_index_op(op) for op in ops)


def _is_read_at_iterators(param: SSAValue, nest: Nest) -> bool:
    users = [use.operation for use in param.uses]
    return all(isinstance(op, LoadOp) and _is_at_iterators(op, nest) for op in users) and bool(users)


def _is_at_iterators(access: LoadOp | StoreOp, nest: Nest) -> bool:
    if access.mask is not None or access.lanes is not None or access.parent is not nest.block.body.block:
        return False
    return tuple(access.indices) == tuple(nest.block.body.block.args)


def _name_values(values: Sequence[SSAValue], others: Sequence[SSAValue]) -> None:
    for value, other in zip(values, others, strict=True):
        value.name_hint = other.name_hint
