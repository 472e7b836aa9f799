"""Buffers as a kernel needs them: `compact-buffers` shrinks allocated ones to the region that is accessed while they
live, and `flatten-buffers` makes one-dimensional ones of any rank and layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.analysis.accesses import ONE, widths
from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim, MinAtom, Prover, constant, maximum, minimum, product, total
from tir_dialect.dtypes import byte_size
from tir_dialect.fast_ops import ops_in, referenced_functions
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import MatchBufferOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import Materializer
from tir_dialect.types import BufferType

User: TypeAlias = LoadOp | StoreOp | MatchBufferOp

SMALL = 4096
"""Buffers of constant size up to so many bytes stay as they are: they keep nothing else from the cache."""


class CompactBuffersPass(ModulePass):
    """Shrinks each allocated buffer to the box of what is accessed in one execution of the region that it lives in.

    ```mlir
    tir.for (%i0) in (%tiles) {
      %T = tir.alloc_buffer : !tir.buffer<[n], f32>
      tir.for (%i1) in (%c32) {
        %i = ... // i0 * 32 + i1
        tir.store %x, %T[%i]
        ...
    // becomes
    tir.for (%i0) in (%tiles) {
      %T = tir.alloc_buffer : !tir.buffer<[32], f32>
      tir.for (%i1) in (%c32) {
        tir.store %x, %T[%i1]
        ...
    ```

    What `compute_at` and caches put into a loop takes as much memory as one iteration needs; buffers outside of loops
    stay. An axis stays as it is if its indices are no expressions of loop variables, or its part may be longer than the
    axis. So do buffers with strides, and those that are passed to calls, which may know strides. The extents depend on
    the symbols of the function only. Running it again changes nothing. Requires: no `tir.block` is left. Mirrors
    `CompactBufferAllocation` of TVM (src/s_tir/transform/compact_buffer_region.cc).
    """

    name = "compact-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place."""
        for func in op.ops:
            if isinstance(func, PrimFuncOp):
                _compact_all(func)


def _compact_all(func: PrimFuncOp) -> None:
    allocations = [op for op in ops_in(func.body) if isinstance(op, AllocBufferOp) and _may_shrink(op)]
    space = IndexSpace(func) if allocations else None
    for allocation in allocations:
        if space is not None and (box := _Region(func, space, allocation).box()) is not None:
            kind, users = allocation.buffer_type, _users(allocation)
            for op in users:
                _move_indices(func, space, op, [axis.lower for axis in box])
            small = BufferType([axis.extent for axis in box], kind.dtype, scope=kind.scope, align=kind.align)
            Rewriter.replace_value_with_new_type(allocation.buffer, small)
            for op in users:
                if isinstance(op, MatchBufferOp):
                    _restride(op)


def _may_shrink(allocation: AllocBufferOp) -> bool:
    kind = allocation.buffer_type
    elements = kind.span.constant_value
    if not kind.rank or not kind.has_default_strides or kind.offset.terms:
        return False
    if not any(isinstance(op, ForOp) for op in ancestors(allocation)):
        return False
    if elements is not None and elements * byte_size(kind.dtype) <= SMALL:
        return False
    return _is_indexed(allocation.buffer)


def _is_indexed(buffer: SSAValue) -> bool:
    """Whether all accesses say which elements they are to, and so do those of views."""
    users = [use.operation for use in buffer.uses]
    parts = [op for op in users if isinstance(op, MatchBufferOp)]
    accesses = [op for op in users if isinstance(op, LoadOp | StoreOp)]
    return len(parts) + len(accesses) == len(users) and all(_is_indexed(op.view) for op in parts)


@dataclass(frozen=True)
class _Region:
    """What is accessed of a buffer while it lives."""

    func: PrimFuncOp
    space: IndexSpace
    allocation: AllocBufferOp

    def box(self) -> list[AxisRange] | None:
        """The part of each axis that is needed; `None` if no axis becomes shorter."""
        shape = self.allocation.buffer_type.shape
        around = self._variables(self.allocation)
        uses = [(*self._uses_of(op), self._variables(op)[len(around) :]) for op in _users(self.allocation)]
        box: list[AxisRange] = []
        for axis, extent in enumerate(shape):
            parts = self._parts([(starts[axis], lengths[axis], inner) for starts, lengths, inner in uses])
            shorter = None if parts is None else self._shorter(parts, around, extent)
            box.append(AxisRange(constant(0), extent) if shorter is None else shorter)
        return box if any(axis.extent is not extent for axis, extent in zip(box, shape, strict=True)) else None

    def _uses_of(self, op: User) -> tuple[Sequence[SSAValue], Sequence[Dim]]:
        """The first index and the number of indices that an op accesses, along each axis."""
        if isinstance(op, MatchBufferOp):
            extents = iter(op.view_type.shape)
            return list(op.lower), [ONE if axis.upper is None else next(extents) for axis in op.axes]
        return list(op.indices), list(widths(op))

    def _variables(self, op: Operation) -> list[Variable]:
        """The variables of the loops around an op, outermost first."""
        loops = [loop for loop in ancestors(op) if isinstance(loop, ForOp)]
        return [self.space.variable(loop.induction_var) for loop in reversed(loops)]

    def _parts(self, uses: Iterable[tuple[SSAValue, Dim, Sequence[Variable]]]) -> list[AxisRange] | None:
        """The indices of one axis that each use takes; `None` if those of one cannot be said."""
        found: list[AxisRange] = []
        for use in uses:
            if (part := self._range(*use)) is None:
                return None
            found.append(part)
        return found

    def _range(self, start: SSAValue, length: Dim, inner: Sequence[Variable]) -> AxisRange | None:
        low = self.space.dim_of(start) if isinstance(start.type, IndexType) else None
        found = None if low is None else extremes(low, inner, self.space.prover)
        return None if found is None else AxisRange(found.low, found.high - found.low + length)

    def _shorter(self, parts: Sequence[AxisRange], around: Sequence[Variable], extent: Dim) -> AxisRange | None:
        """The range that contains all parts, if its length, whatever the variables `around` are, is below `extent`."""
        if not parts:
            return None
        prover = self.space.prover
        lower = prover.simplify(minimum(*(part.lower for part in parts)))
        upper = maximum(*(part.lower + part.extent for part in parts))
        length = extremes(prover.simplify(upper - lower), around, prover)
        if length is None or not self._is_known(lower, around) or not self._is_known(length.high, ()):
            return None
        most = _least_bound(prover.simplify(length.high))
        return AxisRange(lower, self._at_least_none(most)) if _is_shorter(prover, most, extent) else None

    def _is_known(self, dim: Dim, around: Sequence[Variable]) -> bool:
        known = {name for variable in around for name in variable.dim.symbols}
        return dim.symbols <= known.union(self.func.symbol_names)

    def _at_least_none(self, length: Dim) -> Dim:
        """The loops may be empty, of which the prover knows nothing."""
        is_length = Prover(self.func.bounds).less_equal(0, length) is True
        return length if is_length else maximum(length, constant(0))


def _is_shorter(prover: Prover, length: Dim, extent: Dim) -> bool:
    """Whether a length is less than an extent, or constant while the extent is not known."""
    if length.constant_value is not None and extent.constant_value is None:
        return prover.less_equal(extent, length) is not True
    return length is not extent and prover.less_equal(length, extent) is True


def _least_bound(length: Dim) -> Dim:
    """The constant among the operands of a minimum, which is enough as a bound."""
    if len(length.terms) == 1 and length.terms[0][0] == 1 and len(length.terms[0][1]) == 1:
        atom, power = length.terms[0][1][0]
        if isinstance(atom, MinAtom) and power == 1:
            return next((part for part in atom.operands if part.constant_value is not None), length)
    return length


def _users(allocation: AllocBufferOp) -> list[User]:
    return [cast("User", use.operation) for use in allocation.buffer.uses]


def _move_indices(func: PrimFuncOp, space: IndexSpace, op: User, starts: Sequence[Dim]) -> None:
    """Counts the indices of an access, or a view, from the first element that is needed."""
    insert_point = Materializer(func, space, InsertPoint.before(op))
    first = 1 if isinstance(op, LoadOp | MatchBufferOp) else 2
    ends = iter(range(first + len(starts), len(op.operands)))
    for axis, start in enumerate(starts):
        positions = [first + axis]
        if isinstance(op, MatchBufferOp) and op.axes[axis].upper is not None:
            positions.append(next(ends))
        for position in positions:
            dim = None if start.constant_value == 0 else space.dim_of(op.operands[position])
            if dim is not None:
                op.operands[position] = insert_point.emit(space.prover.simplify(dim - start))


def _restride(view: MatchBufferOp) -> None:
    """The strides of a view, and of views of it, are those of its buffer."""
    kind = view.view_type
    strides = [
        stride for stride, axis in zip(view.buffer_type.strides, view.axes, strict=True) if axis.upper is not None
    ]
    new = BufferType(kind.shape, kind.dtype, strides=strides, scope=kind.scope, align=kind.align)
    Rewriter.replace_value_with_new_type(view.view, new)
    for use in view.view.uses:
        if isinstance(use.operation, MatchBufferOp):
            _restride(use.operation)


class FlattenBuffersPass(ModulePass):
    """Makes buffers one-dimensional and contiguous, and computes offsets from strides.

    ```mlir
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m, n], f32>) {
      ... tir.load %X[%i, %j]
    // becomes
    tir.prim_func @f[%m, %n](%X: !tir.buffer<[m * n], f32>) {
      %stride = tir.dim n
      ... %row = arith.muli %i, %stride : index
          %offset = arith.addi %row, %j : index
          tir.load %X[%offset]
    ```

    The native ABI of a function stays: a buffer is an address. A buffer is left unchanged if it has views, is passed to
    a call, is accessed with vectors of indices, or is a parameter of a function that is named in the module: callers of
    any level pass tensors of its rank. `convert-tir-to-llvm` does not need this pass. Running it again changes nothing.
    Requires: no `tir.block` is left.
    """

    name = "flatten-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place."""
        functions = [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]
        called = {name for function in op.ops for inner in function.walk() for name in referenced_functions(inner)}
        for function in functions:
            buffers: list[SSAValue] = [] if function.sym_name.data in called else list(function.params)
            buffers += [inner.buffer for inner in function.body.walk() if isinstance(inner, AllocBufferOp)]
            for buffer in buffers:
                if isinstance(buffer.type, BufferType) and _can_be_flat(buffer, buffer.type):
                    _flatten(buffer, buffer.type)


def _can_be_flat(buffer: SSAValue, type_: BufferType) -> bool:
    if type_.rank == 1 and type_.has_default_strides and not type_.offset.terms:
        return False
    return all(isinstance(use.operation, LoadOp | StoreOp) and _is_plain(use.operation) for use in buffer.uses)


def _is_plain(op: LoadOp | StoreOp) -> bool:
    """Whether the offset of an access is scalar arithmetic, and a vector access contiguous."""
    contiguous = op.lanes is None or op.buffer_type.strides[-1].constant_value == 1
    return contiguous and all(isinstance(index.type, IndexType) for index in op.indices)


def _flatten(buffer: SSAValue, type_: BufferType) -> None:
    uses = [use.operation for use in buffer.uses]
    flat = BufferType([_extent(type_)], type_.dtype, scope=type_.scope, align=type_.align)
    new = Rewriter.replace_value_with_new_type(buffer, flat)
    for op in uses:
        if isinstance(op, LoadOp | StoreOp):
            _rewrite(op, new, type_)


def _extent(type_: BufferType) -> Dim:
    """The number of elements from the base address to the end of the last element."""
    if type_.has_default_strides:
        return product(type_.shape) + type_.offset
    steps = ((extent - 1) * stride for extent, stride in zip(type_.shape, type_.strides, strict=True))
    return maximum(total([type_.offset, 1, *steps]), 0)


def _rewrite(op: LoadOp | StoreOp, buffer: SSAValue, type_: BufferType) -> None:
    ops: list[Operation] = []
    offset = _offset(ops, op.indices, type_)
    if isinstance(op, LoadOp):
        new: LoadOp | StoreOp = LoadOp(buffer, [offset], lanes=op.lanes, mask=op.mask)
    else:
        new = StoreOp(op.value, buffer, [offset], mask=op.mask)
    new.attributes |= op.attributes
    inherit_location(op, [*ops, new])
    Rewriter.insert_op(ops, InsertPoint.before(op))
    Rewriter.replace_op(op, new)


def _offset(ops: list[Operation], indices: Sequence[SSAValue], type_: BufferType) -> SSAValue:
    """Emits `offset + sum(index * stride)`, without terms that are 0 and factors that are 1."""

    def emit(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    offset = emit(DimOp(type_.offset)) if type_.offset.terms else None
    for index, stride in zip(indices, type_.strides, strict=True):
        step = index if stride.constant_value == 1 else emit(arith.MuliOp(index, emit(DimOp(stride))))
        offset = step if offset is None else emit(arith.AddiOp(offset, step))
    return emit(DimOp(0)) if offset is None else offset
