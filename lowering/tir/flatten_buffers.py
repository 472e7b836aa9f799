"""`flatten-buffers`: buffers of any rank and layout to one-dimensional buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from tir_dialect.dims import Dim, maximum, product, total
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType
from tir_dialect.walking import referenced_functions


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
