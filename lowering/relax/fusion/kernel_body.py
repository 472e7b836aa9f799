"""The body of a kernel that is put together from the bodies of others.

Of PrimFuncs that compute each element of their result independently, in one perfect nest, two become one more simply:
where only the second reads the result of the first, they become one nest at once: what `inline_blocks` would
make of two, without a second nest and the buffer between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from lowering.locations import inherit_location
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.values import ConstantOp
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import scalar_type
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.types import BufferType, DimAttr, IteratorKind, LoopKind


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
        self.block.location = more.block.location
        _name_values(self.block.body.block.args, more.block.body.block.args)
        for mine, theirs in zip(self.loops, more.loops, strict=True):
            mine.location = theirs.location
            _name_values(mine.body.block.args, theirs.body.block.args)
        assert isinstance(last, StoreOp)
        return Nest(self.loops, self.block, last)


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


Number = int | float


def number_of(value: SSAValue) -> Number | None:
    """The element of a constant with a single one that is in this process and has no name; `None` for other values."""
    maker = value.owner
    if not isinstance(maker, ConstantOp) or maker.weight_name is not None or not is_never_written(value):
        return None
    array: Any = maker.array
    return array.reshape(-1)[0].item() if array is not None and array.size == 1 else None


def is_only_loaded(parameter: SSAValue) -> bool:
    """Whether a kernel does nothing with a parameter but load its elements one by one."""
    return all(isinstance(use.operation, LoadOp) and use.operation.lanes is None for use in parameter.uses)


def replace_loads(buffer: SSAValue, number: Number) -> None:
    """Puts a number instead of the loads from memory that a function allocates, and removes that."""
    for use in list(buffer.uses):
        load = use.operation
        if isinstance(load, LoadOp):
            constant = _constant(number, load.buffer_type)
            inherit_location(load, constant)
            Rewriter.insert_op(constant, InsertPoint.before(load))
            Rewriter.replace_op(load, [], [constant.result])
    if isinstance(buffer.owner, AllocBufferOp):
        Rewriter.erase_op(buffer.owner)


def _constant(number: Number, buffer: BufferType) -> arith.ConstantOp:
    dtype = scalar_type(buffer.dtype)
    if isa(dtype, AnyFloat):
        return arith.ConstantOp(FloatAttr(float(number), dtype))
    width = dtype.width.data if isinstance(dtype, IntegerType) else 64
    return arith.ConstantOp(IntegerAttr(int(number), IntegerType(width), truncate_bits=True))


Made: TypeAlias = tuple[Nest, tuple[Dim, ...]]
"""The nest of a map, and the shape of what it writes."""


@dataclass
class KernelBody:
    """The body of a function that is being put together: memory, then sizes, then loops."""

    func: PrimFuncOp
    _allocations: dict[Operation, None] = field(default_factory=dict[Operation, None])
    _header: list[Operation] = field(default_factory=list[Operation])
    _nests: dict[Operation, None] = field(default_factory=dict[Operation, None])
    _elementwise: dict[PrimFuncOp, ElementwiseKernel | None] = field(
        default_factory=dict[PrimFuncOp, "ElementwiseKernel | None"]
    )
    _made: dict[SSAValue, Made] = field(default_factory=dict[SSAValue, "Made"])
    """The nests of maps by what they write, as long as they may move to the end."""
    _seen: set[SSAValue] = field(default_factory=set[SSAValue])
    """The parameters of all copies so far."""
    _sizes: dict[Dim, SSAValue] = field(default_factory=dict[Dim, SSAValue])
    _names: dict[str, int] = field(default_factory=dict[str, int])

    def allocate(self, kind: BufferType) -> SSAValue:
        """New memory."""
        op = AllocBufferOp(kind)
        self._allocations[op] = None
        return op.buffer

    def append(
        self,
        callee: PrimFuncOp,
        params: Sequence[SSAValue],
        dims: Mapping[str, Dim],
        passing: Collection[SSAValue] = (),
    ) -> None:
        """A copy of the body of another function, with its parameters and symbols replaced.

        `passing` are parameters, in memory of this function, that nothing else reads. If the function that made one of
        them and this one compute element by element, they share their loops, and the memory goes.
        """
        if callee not in self._elementwise:
            self._elementwise[callee] = ElementwiseKernel.of(callee)
        known = self._elementwise[callee]
        # Where what is there already is written again, nothing that is in front may move after.
        if any(v in self._seen and not is_only_loaded(p) for p, v in zip(callee.params, params, strict=True)):
            self._made.clear()
        self._seen.update(params)
        read = None if known is None else self._joint(known, callee, params, dims, passing)
        values: dict[SSAValue, SSAValue] = dict(zip(callee.params, params, strict=True))
        for argument, name in zip(callee.symbol_args, callee.symbol_names, strict=True):
            if argument.uses:
                values[argument] = self._size(dims[name])
        for op in callee.body.block.ops:
            if isinstance(op, DimOp):
                values[op.result] = self._size(op.dim.substitute(dims))
            elif isinstance(op, arith.ConstantOp) and isinstance(op.result.type, IndexType):
                values[op.result] = self._constant(op)
            elif known is not None and op is known.nest.outermost:
                nest = self._extended(read, known.nest, values, dims)
                self._nests[nest.outermost] = None
                self._made[params[-1]] = nest, known.shape_for(dims)
            else:
                clone = self._clone(op, values, dims)
                (self._allocations if isinstance(clone, AllocBufferOp) else self._nests)[clone] = None

    def _joint(
        self,
        known: ElementwiseKernel,
        callee: PrimFuncOp,
        params: Sequence[SSAValue],
        dims: Mapping[str, Dim],
        passing: Collection[SSAValue],
    ) -> SSAValue | None:
        """The parameter of a map whose maker the map can go on with."""
        shape = known.shape_for(dims)
        for index in known.elementwise:
            if params[index] in passing and params[index] in self._made and self._made[params[index]][1] == shape:
                return callee.params[index]
        return None

    def _extended(
        self, read: SSAValue | None, more: Nest, values: dict[SSAValue, SSAValue], dims: Mapping[str, Dim]
    ) -> Nest:
        """A copy of a map's nest; or the nest that made what it reads, which goes on with what the map computes."""
        if read is None:
            copy = Nest.of(self._clone(more.outermost, values, dims))
            assert copy is not None
            return copy
        buffer = values[read]
        nest, _ = self._made.pop(buffer)
        self._nests.pop(nest.outermost)
        if isinstance(buffer.owner, AllocBufferOp):
            del self._allocations[buffer.owner]
        nest = nest.go_on(more, read, values, lambda op: self._clone(op, values, dims))
        nest.block.block_name = StringAttr(self._unique(more.block.block_name.data))
        return nest

    def _clone(self, op: Operation, values: dict[SSAValue, SSAValue], dims: Mapping[str, Dim]) -> Operation:
        """A copy of an op of another function."""
        clone = op.clone(values)
        self._adapt(clone, dims)
        # Another type makes another value.
        values.update(zip(op.results, clone.results, strict=True))
        return clone

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
                    kind = result.type.substitute(dims)
                    if result.type != kind:
                        Rewriter.replace_value_with_new_type(result, kind)

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return self._unique(f"{name}_{count}") if count else name
