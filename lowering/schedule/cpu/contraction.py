"""What a contraction is: one block that sums products of two tensors, each indexed by the block's iterators themselves.

`C[i, j] += A[i, r] * B[r, j]` and its relatives: batched, transposed, with several row or column axes. Recognised by
structure: the name of the kernel, and where it comes from, play no role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class Operand:
    """A tensor of a contraction and, for each of its dimensions, the number of the iterator that indexes it."""

    buffer: SSAValue
    axes: tuple[int, ...]

    @property
    def type(self) -> BufferType:
        """The type of the buffer."""
        return SSAValue.get(self.buffer, type=BufferType).type


@dataclass(frozen=True)
class Contraction:
    """`output[spatial] = sum over reduced of rows[...] * columns[...]`.

    The axes are numbers of iterators. `row` axes index only `rows`, `column` axes only `columns`, `batch` axes both;
    the last dimension of the output is a column axis.
    """

    output: Operand
    rows: Operand
    columns: Operand
    extents: tuple[Dim, ...]
    batch: tuple[int, ...]
    row: tuple[int, ...]
    column: tuple[int, ...]
    reduced: tuple[int, ...]
    dtype: AnyFloat


def find_contraction(func: PrimFuncOp) -> Contraction | None:
    """The contraction that a kernel is, or `None`."""
    block = _only_block(func)
    if block is None or block.condition is not None:
        return None
    iterators = block.iterators
    numbers: dict[SSAValue, int] = {iterator.value: i for i, iterator in enumerate(iterators)}
    extents = [dim_of(iterator.extent) for iterator in iterators]
    stores = [op for op in block.body.block.ops if isinstance(op, StoreOp)]
    if len(stores) != 1 or any(extent is None for extent in extents) or not _starts_at_zero(block):
        return None
    product = _product(stores[0])
    operands = None if product is None else [_operand(load, numbers) for load in product]
    output = _operand(stores[0], numbers)
    if operands is None or output is None or operands[0] is None or operands[1] is None:
        return None
    kinds = [iterator.kind for iterator in iterators]
    known = tuple(extent for extent in extents if extent is not None)
    return _classify(output, operands[0], operands[1], known, kinds)


def _only_block(func: PrimFuncOp) -> BlockOp | None:
    """The block of a function that is a perfect nest of serial loops around it."""
    ops: list[Operation] = [op for op in func.body.block.ops if op.regions]
    while len(ops) == 1 and isinstance(ops[0], ForOp):
        loop = ops[0]
        if loop.kind.data is not LoopKind.SERIAL or loop.lower is not None:
            return None
        ops = [op for op in loop.body.block.ops if op.regions or not op.results]
    return ops[0] if len(ops) == 1 and isinstance(ops[0], BlockOp) else None


def _starts_at_zero(block: BlockOp) -> bool:
    init = block.body.block.first_op
    if not isinstance(init, InitOp):
        return False
    stored = [op.value.owner for op in init.body.block.ops if isinstance(op, StoreOp)]
    return len(stored) == 1 and isinstance(stored[0], arith.ConstantOp) and _is_zero(stored[0])


def _is_zero(op: arith.ConstantOp) -> bool:
    from xdsl.dialects.builtin import FloatAttr

    return isinstance(op.value, FloatAttr) and op.value.value.data == 0.0


def _product(store: StoreOp) -> tuple[LoadOp, LoadOp] | None:
    """The two loads of `C[..] = C[..] + A[..] * B[..]`."""
    total = store.value.owner
    if not isinstance(total, arith.AddfOp):
        return None
    for old, new in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        product = new.owner
        if _is_previous(old, store) and isinstance(product, arith.MulfOp):
            left, right = product.lhs.owner, product.rhs.owner
            return (left, right) if isinstance(left, LoadOp) and isinstance(right, LoadOp) else None
    return None


def _is_previous(value: SSAValue, store: StoreOp) -> bool:
    load = value.owner
    return isinstance(load, LoadOp) and load.buffer is store.buffer and tuple(load.indices) == tuple(store.indices)


def _operand(access: LoadOp | StoreOp, numbers: dict[SSAValue, int]) -> Operand | None:
    """The access as an operand: its indices have to be distinct iterators."""
    axes = tuple(numbers.get(index, -1) for index in access.indices)
    plain = access.lanes is None and access.mask is None
    contiguous = access.buffer_type.has_default_strides
    return (
        Operand(access.buffer, axes)
        if plain and contiguous and -1 not in axes and len(set(axes)) == len(axes)
        else None
    )


def _classify(
    output: Operand, left: Operand, right: Operand, extents: tuple[Dim, ...], kinds: Sequence[IteratorKind]
) -> Contraction | None:
    dtype = output.type.dtype
    if not isinstance(dtype, Float32Type | Float64Type) or left.type.dtype != dtype or right.type.dtype != dtype:
        return None
    if not output.axes or output.buffer in (left.buffer, right.buffer):
        return None
    if output.axes[-1] in left.axes:
        left, right = right, left
    spatial = [i for i, kind in enumerate(kinds) if kind is IteratorKind.SPATIAL]
    reduced = tuple(i for i, kind in enumerate(kinds) if kind is IteratorKind.REDUCE)
    rows, columns = set(left.axes), set(right.axes)
    batch = tuple(i for i in spatial if i in rows and i in columns)
    row = tuple(i for i in spatial if i in rows and i not in columns)
    column = tuple(i for i in spatial if i in columns and i not in rows)
    complete = sorted(output.axes) == spatial and len(spatial) == len(batch) + len(row) + len(column)
    shared = all(i in rows and i in columns for i in reduced)
    if not complete or not shared or len(reduced) != 1 or len(column) != 1 or output.axes[-1] != column[0]:
        return None
    return Contraction(output, left, right, extents, batch, row, column, reduced, dtype)
