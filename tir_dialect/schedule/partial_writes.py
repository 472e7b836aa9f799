"""Which elements a block writes on conditions, and the padding values of elements that a layout leaves unused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors, enclosing_loops
from tir_dialect.dims import Dim, DimLike, constant, symbol
from tir_dialect.dtypes import ElementType, lookup
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.schedule.edits import Materializer, is_index_op, set_condition, unique_block_name
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.index_map import IndexDomain, IndexMap, inverse
from tir_dialect.schedule.legality.accesses import Access, loops_between
from tir_dialect.schedule.legality.instances import is_dense, leaves_some
from tir_dialect.schedule.nests import emit_less, insert_nest, whole
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, conjuncts
from tir_dialect.te.coerce import is_unsigned
from tir_dialect.te.emit_scalar import emit_constant, value_type
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class Bound:
    """The condition `index + offset < limit`, or `limit < index + offset`, on the index of an axis."""

    axis: int
    offset: Dim
    limit: Dim
    is_upper: bool

    def at(self, indices: Sequence[Dim], offset: Dim, limit: Dim) -> Less:
        """The condition at an element, with offset and limit in terms of the symbols there."""
        index = indices[self.axis] + offset
        return Less(index, limit) if self.is_upper else Less(limit, index)


def written_where(
    self: ScheduleState, stores: Sequence[Access], block: BlockOp, loop: ForOp | None, box: Sequence[AxisRange]
) -> list[list[Bound]] | None:
    """Conditions, all of one list, on which an element of the box is written in an iteration of the loop.

    `None` if they are not known: where a store would not fill the box without its conditions, or these are not on
    single indices.
    """
    found: list[list[Bound]] = []
    for store in stores:
        names = {self.symbol(op).as_symbol or "" for op in loops_between(store, loop)}
        bounds = _bounds(self, store, block, names)
        if bounds is None or not is_dense(self, [store], loop, box):
            return None
        found.append(bounds)
    return found


def _bounds(self: ScheduleState, store: Access, block: BlockOp, names: set[str]) -> list[Bound] | None:
    found: list[Bound] = []
    inside = store.op
    for outer in ancestors(store.op):
        if not is_inside(outer, block):
            break
        if isinstance(outer, WhileOp) or (isinstance(outer, IfOp) and inside.parent_region() is not outer.then_body):
            return None
        inside = outer
        condition = outer.condition if isinstance(outer, IfOp | BlockOp) else None
        for each in [] if condition is None else conjuncts(self.space, condition):
            if outer is block and leaves_some(self, block, store, each):
                continue
            bound = _bound(store, each, names)
            if bound is None:
                return None
            found.append(bound)
    return found


def _bound(store: Access, condition: Less | SSAValue, names: set[str]) -> Bound | None:
    """A condition as one on an index; `names` are the loops that an element does not tell."""
    if not isinstance(condition, Less):
        return None
    for number, axis in enumerate(store.axes):
        if axis.low is None:
            continue
        for side, limit, is_upper in ((condition.lhs, condition.rhs, True), (condition.rhs, condition.lhs, False)):
            offset = side - axis.low
            if names.isdisjoint(offset.symbols | limit.symbols):
                return Bound(number, offset, limit, is_upper)
    return None


def copy_only(self: ScheduleState, copy: BlockOp, where: Sequence[Sequence[Bound]]) -> None:
    """Lets a block that copies elements leave out those for which no list of conditions holds."""
    bounds = [bound for each in where for bound in each]
    carried = self.carry([dim for bound in bounds for dim in (bound.offset, bound.limit)])
    dims = iter(carried)
    indices = [self.symbol(op) for op in enclosing_loops(copy)][-len(copy.iterators) :]
    emitter = Materializer(self.func, self.space, InsertPoint.before(copy))
    result: SSAValue | None = None
    for each in where:
        holds: SSAValue | None = None
        for bound in each:
            value = emit_less(emitter, bound.at(indices, next(dims), next(dims)))
            holds = value if holds is None else emitter.insert(arith.AndIOp(holds, value))
        if holds is None:
            return
        result = holds if result is None else emitter.insert(arith.OrIOp(result, holds))
    set_condition(copy, result)


PadValue: TypeAlias = "float | IndexMap | str | Callable[..., DimLike]"
"""A number, or a number for each position by its indices, as a map to one dimension: `lambda i, j: i + j`."""

Old: TypeAlias = Mapping[Dim, Dim]
"""The old indices of an element in terms of its position, `p$0`, `p$1` and so on, with their extents."""


def pad_value_of(self: ScheduleState, value: PadValue, rank: int, dtype: Attribute) -> float | IndexMap:
    """What to pad a buffer of `rank` indices with; refuses what is no number of the dtype and no map to one."""
    if isinstance(value, int | float | Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        if not isinstance(dtype, AnyFloat) and not _is_integer(number, lookup(dtype).type):
            raise self.error(f"expected a number of {dtype} to pad with, got {value}")
        return number
    try:
        found = IndexMap.of(value, rank)
    except ValueError as error:
        raise self.error(str(error)) from None
    if len(found.inputs) != rank or len(found.outputs) != 1:
        raise self.error(f"expected a map of {rank} indices to one number to pad with, got {found}")
    if unknown := found.outputs[0].symbols.difference(found.inputs, self.func.symbol_names):
        raise self.error(f'the number to pad with uses "{min(unknown)}", which is no symbol of the function')
    self.record_as(value, found)
    return found


def _is_integer(value: float, dtype: ElementType) -> bool:
    bits, unsigned = (dtype.width.data, is_unsigned(dtype)) if isinstance(dtype, IntegerType) else (64, False)
    least, most = (0, 2**bits) if unsigned or bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return value == value // 1 and least <= value < most


def old_indices(
    self: ScheduleState, index_map: IndexMap, shape: Sequence[Dim], new_shape: Sequence[Dim], name: str
) -> dict[Dim, Dim]:
    """For each index of an old shape its value at a position of the new one, and its extent.

    At the positions that are free, some index is not below its extent. Refuses a map that does not tell them.
    """
    domain = IndexDomain.of(shape, self.func.bounds)
    positions = [symbol(f"p${axis}") for axis in range(len(new_shape))]
    found = inverse(domain, index_map.apply(domain.indices), positions, set(domain.variables), new_shape)
    if found is None:
        raise self.error(f'cannot determine which elements of buffer "{name}" are unused by index map {index_map}')
    return {found[str(index)]: extent for index, extent in zip(domain.indices, shape, strict=True)}


def fill(self: ScheduleState, buffer: SSAValue, value: float | IndexMap, free: Old | None) -> None:
    """Stores a value to a buffer where it is allocated, or at the start of the function.

    To all elements, or, with `free`, to those only at whose positions an old index is not below its extent.
    """
    first = buffer.owner.next_op if isinstance(buffer.owner, Operation) else self.func.body.block.first_op
    while isinstance(first, AllocBufferOp) or (first is not None and is_index_op(first)):
        first = first.next_op
    if first is None:
        return
    kind = SSAValue.get(buffer, type=BufferType).type
    point = InsertPoint.before(first)
    emitter = Materializer(self.func, self.space, point)
    extents = [emitter.emit(extent) for extent in kind.shape]
    hints = [f"ax{axis}" for axis in range(kind.rank)]
    name = unique_block_name(self.func, f"{buffer.name_hint or 'buffer'}_pad")
    block = BlockOp(name, [(IteratorKind.SPATIAL, each, each) for each in extents], name_hints=[f"v{h}" for h in hints])
    insert_nest(self, block, whole(buffer), hints, point)
    self.changed()
    _fill_element(self, block, buffer, value, free)


def _fill_element(
    self: ScheduleState, block: BlockOp, buffer: SSAValue, value: float | IndexMap, free: Old | None
) -> None:
    space, args = IndexSpace(block), block.body.block.args
    here = [space.variable(arg).dim for arg in args]
    body = block.body.block
    if free is not None:
        positions = {f"p${axis}": dim for axis, dim in enumerate(here)}
        old = {index.substitute(positions): extent for index, extent in free.items()}
        condition = _any_outside(Materializer(self.func, space, InsertPoint.at_end(body)), old)
        if condition is not None:
            branch = IfOp(condition)
            body.add_op(branch)
            body = branch.then_body.block
    emitter = Materializer(self.func, space, InsertPoint.at_end(body))
    dtype = SSAValue.get(buffer, type=BufferType).type.dtype
    if isinstance(value, IndexMap):
        # A number of indices as one of a dtype; integers keep their low bits.
        index = emitter.emit(value.apply(here)[0])
        kind = value_type(lookup(dtype).type)
        if kind == i1:
            number = emitter.insert(arith.CmpiOp(index, emitter.emit(constant(0)), "ne"))
        elif isinstance(kind, AnyFloat):
            number = emitter.insert(arith.SIToFPOp(emitter.insert(arith.IndexCastOp(index, i64)), kind))
        else:
            number = emitter.insert(arith.IndexCastOp(index, kind))
    else:
        number = emit_constant(emitter.insert, value, lookup(dtype).type)
    Rewriter.insert_op(StoreOp(number, buffer, args), InsertPoint.at_end(body))


def _any_outside(emitter: Materializer, old: Old) -> SSAValue | None:
    """Whether some index is not below its extent; `None` if all are."""
    result: SSAValue | None = None
    for index, extent in old.items():
        outside = arith.CmpiOp(emitter.emit(index), emitter.emit(extent), "sge")
        value = emitter.insert(outside)
        result = value if result is None else emitter.insert(arith.OrIOp(result, value))
    return result
