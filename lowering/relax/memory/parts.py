"""Kernels that copy operands to places of a result, and kernels whose parameter is a part of some larger memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from lowering.relax.fusion.inline_blocks import covers
from tir_dialect.analysis.extremes import Extremes, extremes
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.patterns import OpPattern, computation_patterns
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Place:
    """Where a part is in a whole: from `start` on along an axis of `total` elements; all of the other axes."""

    axis: int
    start: int
    total: int
    length: Dim

    def is_apart(self, other: Place) -> bool:
        """Whether two places in the same whole have no element in common."""
        if self.axis != other.axis:
            return False
        one, two = self.length.constant_value, other.length.constant_value
        return (one is not None and self.start + one <= other.start) or (
            two is not None and other.start + two <= self.start
        )


@dataclass(frozen=True)
class Copied:
    """A parameter of a kernel that it copies to a place of a result, and does nothing else with.

    What the kernel does before the copy does not touch the place, so that the copy may as well come first.
    """

    operand: int
    result: int
    place: Place
    store: StoreOp


def copied_parts(func: PrimFuncOp) -> Iterator[Copied]:
    """The operands that a kernel only copies, before it is scheduled."""
    space, params, stores = IndexSpace(func), func.params, dict[SSAValue, Sequence[StoreOp] | None]()
    for store in func.body.walk():
        load = store.value.owner if isinstance(store, StoreOp) else None
        if not isinstance(store, StoreOp) or not isinstance(load, LoadOp) or load.buffer not in params:
            continue
        whole, place = store.buffer, _place(store, load, space)
        if place is None or whole not in params or not load.buffer.has_one_use():
            continue
        if whole not in stores:
            stores[whole] = _stores_to(whole)
        if (others := stores[whole]) is not None and _may_come_first(store, place, others, space):
            yield Copied(params.index(load.buffer), params.index(whole), place, store)


def _stores_to(buffer: SSAValue) -> Sequence[StoreOp] | None:
    """The stores to a buffer in program order; `None` if something but stores and loads may write it."""
    users = {use.operation for use in buffer.uses}
    if not all(isinstance(user, LoadOp | StoreOp) for user in users):
        return None
    stores = [user for user in users if isinstance(user, StoreOp)]
    if len(stores) < 2:
        return stores
    func = next(op for op in ancestors(stores[0]) if isinstance(op, PrimFuncOp))
    return [op for op in func.body.walk() if isinstance(op, StoreOp) and op in users]


def _may_come_first(copy: StoreOp, place: Place, stores: Sequence[StoreOp], space: IndexSpace) -> bool:
    """Whether no store that may run before one of a copy touches the place: one before it, or in a common loop."""
    statement, is_before = _statement(copy), True
    for store in stores:
        if store is copy:
            is_before = False
        elif (is_before or _statement(store) is statement) and not _keeps_off(store, place, space):
            return False
    return True


def _statement(op: Operation) -> Operation:
    """The op in the body of the function that an op is in."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, PrimFuncOp):
        op = parent
    return op


def _keeps_off(store: StoreOp, place: Place, space: IndexSpace) -> bool:
    """Whether a store provably never touches a place in the buffer that it writes."""
    found = _reach(store, place.axis, space)
    if found is None:
        return False
    end = place.length + place.start
    return space.less_equal(end, found.low) is True or space.less_equal(found.high + 1, place.start) is True


def _reach(store: StoreOp, axis: int, space: IndexSpace) -> Extremes | None:
    """The least and the greatest index along an axis that a store of single elements may write, if they are known."""
    dim = None if store.lanes is not None else space.dim_of(store.indices[axis])
    loops = [op for op in ancestors(store) if isinstance(op, ForOp)]
    variables = [space.variable(loop.induction_var) for loop in reversed(loops)]
    return None if dim is None else extremes(dim, variables, space.prover)


def _place(store: StoreOp, load: LoadOp, space: IndexSpace) -> Place | None:
    """Where a copy of all of a buffer goes; `None` if it is no such copy."""
    block, part, whole = store.parent_op(), load.buffer_type.shape, store.buffer_type.shape
    if not isinstance(block, BlockOp) or block.condition is not None or load.parent_op() is not block:
        return None
    if not all(op is store or _leaves_memory(op) for op in block.body.walk()):
        return None
    if store.mask is not None or load.mask is not None or not covers(block, load) or len(part) != len(whole):
        return None
    changed = [axis for axis, (a, b) in enumerate(zip(part, whole, strict=True)) if a is not b]
    total = whole[changed[0]].constant_value if len(changed) == 1 else None
    starts = [
        None if to is None or at is None else (to - at).constant_value
        for to, at in zip(map(space.dim_of, store.indices), map(space.dim_of, load.indices), strict=True)
    ]
    start = starts[changed[0]] if total is not None else None
    if total is None or start is None or any(step != 0 for axis, step in enumerate(starts) if axis != changed[0]):
        return None
    return Place(changed[0], start, total, part[changed[0]])


def only_copies(func: PrimFuncOp, operands: Collection[int]) -> bool:
    """Whether all that a kernel does is to copy these operands."""
    copies = {copied.store for copied in copied_parts(func) if copied.operand in operands}
    return all(op in copies or _leaves_memory(op) for op in func.body.walk() if not op.regions)


def _leaves_memory(op: Operation) -> bool:
    """Whether an op without regions writes nowhere, and does nothing else outside of its results."""
    effects = get_effects(op)
    return op.has_trait(IsTerminator) or (
        effects is not None
        and all(effect.kind in (MemoryEffectKind.READ, MemoryEffectKind.ALLOC) for effect in effects)
    )


def without_copies(func: PrimFuncOp, operands: Collection[int], name: str) -> PrimFuncOp:
    """The kernel without some operands that it only copies."""
    made = func.clone()
    made.sym_name = StringAttr(name)
    for copied in [each for each in copied_parts(made) if each.operand in operands]:
        Rewriter.erase_op(_nest(copied.store))
    for param in [made.params[number] for number in operands]:
        made.body.block.erase_arg(param)
    return made


def _nest(store: StoreOp) -> Operation:
    """The outermost of the loops around a block that hold nothing else."""
    nest = store.parent_op()
    assert nest is not None  # the block that was found to copy
    while isinstance(parent := nest.parent_op(), ForOp) and parent.body.block.first_op is nest and nest.next_op is None:
        nest = parent
    return nest


def can_be_part(func: PrimFuncOp, number: int) -> bool:
    """Whether a kernel can do as well with a part of larger memory: maps can, and products with what follows them
    where they write. Others would have to look for rows and borders where there are none.
    """
    param, patterns = func.params[number], computation_patterns(func)
    kind, users = param.type, [use.operation for use in param.uses]
    if not isinstance(kind, BufferType) or kind != BufferType(kind.shape, kind.dtype):
        return False
    if any(isinstance(user, StoreOp) for user in users):
        return OpPattern.REDUCTION not in patterns and all(isinstance(user, LoadOp | StoreOp) for user in users)
    return max(patterns) <= OpPattern.INJECTIVE and all(isinstance(user, LoadOp) for user in users)


def in_place_of(func: PrimFuncOp, number: int, place: Place, name: str) -> PrimFuncOp:
    """The same kernel, one of whose parameters is the whole of which it was given a part."""
    made = func.clone()
    made.sym_name = StringAttr(name)
    param = made.params[number]
    kind = param.type
    assert isinstance(kind, BufferType)  # as asked before
    shape = [*kind.shape]
    shape[place.axis] = constant(place.total)
    for use in list(param.uses):
        _shift(use.operation, use.index + 1 + place.axis, place.start)
    Rewriter.replace_value_with_new_type(param, BufferType(shape, kind.dtype))
    return made


def _shift(access: Operation, number: int, start: int) -> None:
    """Adds to an index of an access."""
    if start == 0:
        return
    first = arith.ConstantOp(IntegerAttr(start, IndexType()))
    moved = arith.AddiOp(access.operands[number], first)
    for op in (first, moved):
        op.location = access.location
    Rewriter.insert_op([first, moved], InsertPoint.before(access))
    access.operands[number] = moved.result
