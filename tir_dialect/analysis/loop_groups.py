"""Which dimensions of buffers belong together, as the same loop variables index them in all accesses of a function.

A function whose loops over such a group of dimensions run over a tile of them computes a tile of what it writes:
what it does with one index of the group has nothing to do with another one. Only a reduction combines them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import loads_of
from tir_dialect.analysis.structure import (
    ancestors,
    block_of,
    blocks_in,
    enclosing_block,
    has_no_effects,
    is_defined_inside,
    loop_of,
)
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind

_Node = tuple[SSAValue, int] | SSAValue
"""A dimension of a buffer, or a loop variable or block iterator."""


@dataclass
class LoopGroup:
    """Dimensions of buffers, and the loop variables and block iterators that index them, alone and from 0 to the end.

    No buffer has two of the dimensions.
    """

    size: Dim
    """Of each of the dimensions, and what the variables run to."""
    dims: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The dimension of each buffer that has one."""
    variables: list[SSAValue] = field(default_factory=list[SSAValue])
    reduced: str | None = None
    """How all results of the function combine what is computed for the indices: `sum`, `prod`, `max` or `min`. Without,
    results that have none of the dimensions have nothing to do with them.
    """


def loop_groups(func: PrimFuncOp, results: Sequence[SSAValue]) -> list[LoopGroup]:
    """The groups of a function that writes some of its parameters, the results, in the order of their first dimensions.

    There are none if it does more than to load, compute and store elements in loops.
    """
    ops = ops_in(func.body)
    if func.may_alias is not None or not all(map(_is_simple, ops)):
        return []
    outer = [each for each in map(enclosing_block, blocks_in(func.body)) if each is not None]
    if any(block.iterators or block.init is not None for block in outer):
        return []
    if any(op.buffer in func.params and op.buffer not in results for op in ops if isinstance(op, StoreOp)):
        return []
    return list(_Grouping(func, results).groups())


_STRUCTURE = (LoadOp, StoreOp, ReadsOp, WritesOp, ForOp, BlockOp, InitOp, IfOp, YieldOp, AllocBufferOp, DimOp)


def _is_simple(op: Operation) -> bool:
    return isinstance(op, _STRUCTURE) or (not op.regions and has_no_effects(op))


class _Grouping:
    """Dimensions and variables, united where one indexes the other. A use of another kind spoils a group."""

    def __init__(self, func: PrimFuncOp, results: Sequence[SSAValue]):
        self._space = IndexSpace(func)
        self._results = results
        self._parents: dict[_Node, _Node] = {}
        self._spoiled: list[_Node] = []
        self._reduced: dict[SSAValue, list[tuple[SSAValue, str]]] = {}
        """By reduce iterator, the buffers that combine what it runs over, and how."""
        self._ops = ops_in(func.body)
        for param in func.buffer_params:
            self._buffer(param)
        for op in self._ops:
            self._visit(op)
        for op in self._ops:
            if isinstance(op, StoreOp):
                self._stored(op)
            elif isinstance(op, ForOp | BlockOp):
                # Two variables of a group at once would meet indices of different tiles.
                others = [each.induction_var for each in ancestors(op) if isinstance(each, ForOp)]
                variables = [op.induction_var, *others] if isinstance(op, ForOp) else list(op.body.block.args)
                roots = [self._root(each) for each in variables]
                self._spoil(*(each for each in variables if roots.count(self._root(each)) > 1))

    def groups(self) -> Iterator[LoopGroup]:
        """The groups that nothing spoils."""
        members: dict[_Node, list[_Node]] = {}
        for node in self._parents:
            members.setdefault(self._root(node), []).append(node)
        spoiled = {self._root(node) for node in self._spoiled}
        for root, nodes in members.items():
            dims = [node for node in nodes if isinstance(node, tuple)]
            sizes = {self._size(node) for node in nodes}
            (size, *others) = sizes
            if root in spoiled or others or size is None or not dims or len(dict(dims)) < len(dims):
                continue
            reduced = [each for variable in nodes if isinstance(variable, SSAValue)
                       for each in self._reduced.get(variable, ())]  # fmt: skip
            ways = {by for _, by in reduced}
            if reduced and (len(ways) > 1 or {buffer for buffer, _ in reduced} != set(self._results)):
                continue
            variables = [node for node in nodes if isinstance(node, SSAValue)]
            yield LoopGroup(size, dict(dims), variables, next(iter(ways), None))

    def _root(self, node: _Node) -> _Node:
        while (parent := self._parents.setdefault(node, node)) != node:
            node = parent
        return node

    def _unite(self, one: _Node, other: _Node) -> None:
        first, second = self._root(one), self._root(other)
        self._parents[second] = first

    def _spoil(self, *nodes: _Node) -> None:
        self._spoiled += map(self._root, nodes)

    def _size(self, node: _Node) -> Dim | None:
        if isinstance(node, tuple):
            buffer, dim = node
            return buffer.type.shape[dim] if isinstance(buffer.type, BufferType) else None
        if not isinstance(node, BlockArgument):
            return None
        if (block := block_of(node)) is not None:
            return self._space.dim_of(block.extents[node.index])
        loop = loop_of(node)
        if loop is None or (loop.lower is not None and self._space.dim_of(loop.lower) != constant(0)):
            return None
        return self._space.dim_of(loop.upper)

    def _buffer(self, buffer: SSAValue) -> None:
        if isinstance(buffer.type, BufferType):
            for dim in range(buffer.type.rank):
                self._root((buffer, dim))
                if not buffer.type.is_compact:
                    self._spoil((buffer, dim))

    def _visit(self, op: Operation) -> None:
        match op:
            case AllocBufferOp():
                self._buffer(op.buffer)
            case LoadOp() | StoreOp():
                moved = op.result if isinstance(op, LoadOp) else op.value
                for dim, index in enumerate(op.indices):
                    self._index((op.buffer, dim), index)
                    if moved.type != op.buffer_type.element_type:
                        self._spoil((op.buffer, dim))
            case ReadsOp() | WritesOp():
                for dim, axis in enumerate(op.axes):
                    self._index((op.buffer, dim), axis.lower)
                    if axis.upper is not None:
                        self._spoil((op.buffer, dim))
            case ForOp():
                self._uses(op.induction_var)
            case BlockOp():
                for iterator in op.iterators:
                    self._uses(iterator.value)
                    if loop_of(iterator.binding) is None:
                        self._spoil(iterator.value)
                    else:
                        self._unite(iterator.binding, iterator.value)
            case _:
                pass

    def _index(self, node: _Node, index: SSAValue) -> None:
        """An index that is no variable says nothing about the others."""
        if loop_of(index) is None and block_of(index) is None:
            self._spoil(node)
        else:
            self._unite(node, index)

    def _uses(self, variable: SSAValue) -> None:
        """A variable whose value matters, but for being an index, spoils its group."""
        for use in variable.uses:
            user = use.operation
            is_binding = isinstance(user, BlockOp) and use.index < len(user.bindings)
            if not is_binding and not isinstance(user, LoadOp | StoreOp | ReadsOp | WritesOp):
                self._spoil(variable)

    def _stored(self, store: StoreOp) -> None:
        """What runs around a store has to be in its indices, be reduced, or have memory of its own."""
        groups = {self._root(index) for index in store.indices if isinstance(index, BlockArgument)}
        block = enclosing_block(store)
        if block is not None:
            iterators = [each.value for each in block.iterators if each.kind is IteratorKind.REDUCE]
            outside = [each for each in iterators if self._root(each) not in groups]
            by = _combination(store, block, self._ops)
            groups |= {self._root(each) for each in outside if by is not None or isinstance(store.parent_op(), InitOp)}
            for iterator in outside if by is not None else ():
                self._reduced.setdefault(iterator, []).append((store.buffer, by or ""))
        for op in ancestors(store):
            arguments = op.regions[0].block.args if isinstance(op, ForOp | BlockOp) else ()
            if not is_defined_inside(store.buffer, op):
                self._spoil(*(each for each in arguments if self._root(each) not in groups))


_COMBINED: Mapping[type[Operation], str] = {
    arith.AddfOp: "sum",
    arith.AddiOp: "sum",
    math.FmaOp: "sum",
    arith.MulfOp: "prod",
    arith.MuliOp: "prod",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
    arith.MaxUIOp: "max",
    arith.MinUIOp: "min",
}
_UNSIGNED = (arith.MaxUIOp, arith.MinUIOp)
_SIGNED = (arith.MaxSIOp, arith.MinSIOp)
_NEUTRAL = {"sum": 0, "prod": 1}
"""What a reduction has to start with, so that several may be combined; extrema may start with anything."""


def _combination(store: StoreOp, block: BlockOp, ops: Sequence[Operation]) -> str | None:
    """How a store of a block adds something to an element, which nobody else reads or writes but the init before it."""
    op, buffer = store.value.owner, store.buffer
    if not isinstance(op, Operation) or (by := _COMBINED.get(type(op))) is None or not _fits(op, buffer.type):
        return None
    if block.init is None or store.parent_op() is not block:
        return None
    loads = [each for each in ops if isinstance(each, LoadOp) and each.buffer is buffer]
    stores = [each for each in ops if isinstance(each, StoreOp) and each.buffer is buffer and each is not store]
    if len(loads) != 1 or len(stores) != 1 or stores[0].parent_op() is not block.init:
        return None
    (load,), (start,) = loads, stores
    accumulators = [op.c] if isinstance(op, math.FmaOp) else list(op.operands)
    others = [each for each in op.operands if each is not load.result]
    if accumulators.count(load.result) != 1 or any(load in loads_of(each) for each in others):
        return None
    if list(load.indices) != list(store.indices) or list(start.indices) != list(store.indices):
        return None
    return by if by not in _NEUTRAL or _number(start.value) == _NEUTRAL[by] else None


def _fits(op: Operation, memory: Attribute) -> bool:
    """Whether extrema are those of the dtype, and integers no truth values, of which a sum is no number."""
    kind = numpy_dtype(memory.dtype).kind if isinstance(memory, BufferType) else "b"
    return kind != "b" and not isinstance(op, _SIGNED if kind == "u" else _UNSIGNED)


def _number(value: SSAValue) -> float | None:
    found = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return found.value.data if isinstance(found, FloatAttr | IntegerAttr) else None
