"""Lookup of the buffers of a block by index or name, replacement of buffers and their types, and mapped shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import block_regions
from tir_dialect.analysis.structure import ancestors, is_defined_inside, root_buffer
from tir_dialect.dims import Dim, constant, maximum, product
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, ReadsOp
from tir_dialect.ops.memory import LoadOp, RegionAxis
from tir_dialect.schedule.edits import header_value
from tir_dialect.schedule.index_map import IndexDomain, IndexMap
from tir_dialect.schedule.legality.motion import describe
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import shape_of
from tir_dialect.types import SCOPES, BufferType, host_scope

Which: TypeAlias = "int | str | tuple[str, int]"
"""A buffer of a block by its number among those that it reads or writes, by its name, or by `("read", 0)`."""


def read_buffer(self: ScheduleState, block: BlockOp, which: Which) -> SSAValue:
    """A buffer that the block reads; accumulators of a reduction do not count."""
    which = which if isinstance(which, int | str) else which[1]
    return _find(self, block, which, _reads(block), "reads")


def _reads(block: BlockOp) -> list[SSAValue]:
    """What a block reads, in order of first access; what tells where to read comes after what is read there."""
    buffers = [region.buffer for region in block_regions(block).reads]
    if len(buffers) < 2:
        return buffers
    order: dict[SSAValue, None] = {}
    loads = [op for op in block.body.walk() if isinstance(op, LoadOp)]
    positions = {load: list(_index_loads(load)) for load in loads}
    inner = {each for several in positions.values() for each in several}
    pending = [load for load in reversed(loads) if load not in inner]
    while pending:
        load = pending.pop()
        order[root_buffer(load.buffer)] = None
        pending += reversed(positions.pop(load, []))
    return sorted(buffers, key=lambda buffer: [*order].index(buffer) if buffer in order else len(order))


def _index_loads(load: LoadOp) -> Iterator[LoadOp]:
    """The loads that the indices of a load are computed from, but for those for the positions of these."""
    pending = list(reversed(load.indices))
    while pending:
        op = pending.pop().owner
        if isinstance(op, LoadOp):
            yield op
        elif isinstance(op, Operation) and not op.regions:
            pending += reversed(op.operands)


def written_buffer(self: ScheduleState, block: BlockOp, which: Which) -> SSAValue:
    """A buffer that the block writes."""
    which = which if isinstance(which, int | str) else which[1]
    return _find(self, block, which, [region.buffer for region in block_regions(block).writes], "writes")


def any_buffer(self: ScheduleState, block: BlockOp, which: Which) -> SSAValue:
    """A buffer that the block writes, or, by its name or as `("read", 0)`, one that it reads."""
    match which:
        case ("read", int(number)):
            return read_buffer(self, block, number)
        case ("write", int(number)):
            return written_buffer(self, block, number)
        case _:
            regions = block_regions(block)
            writes = [region.buffer for region in regions.writes]
            names = [] if isinstance(which, int) else [region.buffer for region in regions.reads]
            return _find(self, block, which, [*writes, *names], "uses")


def access_of(block: BlockOp, which: Which) -> Literal["read", "write"]:
    """Whether a block reads or writes what is meant: by name rather what it writes, by number what it reads."""
    match which:
        case ("read" | "write" as access, int()):
            return access
        case str():
            writes = [region.buffer.name_hint for region in block_regions(block).writes]
            return "write" if which in writes else "read"
        case _:
            return "read"


def _find(self: ScheduleState, block: BlockOp, which: Which, buffers: list[SSAValue], verb: str) -> SSAValue:
    found = None
    if isinstance(which, int):
        found = buffers[which] if 0 <= which < len(buffers) else None
    else:
        found = next((buffer for buffer in buffers if buffer.name_hint == which), None)
    if found is None:
        names = ", ".join(f'"{buffer.name_hint}"' for buffer in buffers) or "none"
        raise self.error(
            f'expected a buffer that block "{block.block_name.data}" {verb}, got {which!r}; it {verb} {names}'
        )
    return root_buffer(found)


def redirect(self: ScheduleState, block: BlockOp, source: SSAValue, target: SSAValue) -> None:
    """Lets the loads, stores and regions of a block use another buffer of the same shape; `check_plain_uses` first."""
    for op in block.body.walk():
        for number, operand in enumerate(op.operands):
            if operand is source:
                op.operands[number] = target


def checked_scope(self: ScheduleState, scope: str) -> str:
    """The scope used on CPUs for a scope of TVM; ScheduleError for an unknown one."""
    if (found := host_scope(scope)) is None:
        raise self.error(f'expected a scope of {", ".join(SCOPES)}, or shared, which is global here, got "{scope}"')
    return found


def name_with(buffer: SSAValue, suffix: str) -> str:
    """The name of a copy of a buffer: `A_shared_dyn` for the scope `shared.dyn`."""
    return f"{buffer.name_hint or 'buffer'}_{suffix.replace('.', '_')}"


def retype(value: SSAValue, kind: BufferType) -> SSAValue:
    """Gives a buffer another type, and views of it the same scope; the value that it is now."""
    new = Rewriter.replace_value_with_new_type(value, kind)
    for use in list(new.uses):
        if isinstance(use.operation, BufferViewOp):
            retype(use.operation.view, use.operation.view_type.with_scope(kind.scope))
    return new


def check_declared(self: ScheduleState, regions: Sequence[ReadsOp], loads: Sequence[LoadOp]) -> None:
    """Refuses a block that declares to read more of a buffer than its loads of it show."""
    for region in regions:
        block = region.parent_op()
        own = [load for load in loads if any(op is block for op in ancestors(load))]
        points = all(axis.upper is None for axis in region.axes)
        moving = [load for load in own if isinstance(block, BlockOp) and not _is_element(block, load)]
        if not own or not (points or moving):
            raise self.error(
                f'{describe(region)} declares to read more of buffer "{region.buffer.name_hint}" than it loads, '
                "expected the elements of its loads; leave the declaration out"
            )


def redeclare(self: ScheduleState, regions: Sequence[ReadsOp], loads: Sequence[LoadOp]) -> None:
    """Replaces what blocks declare to read of one buffer by what `loads`, which came instead of it, read in them."""
    for region in regions:
        block = region.parent_op()
        if isinstance(block, BlockOp):
            for load in loads:
                if block in ancestors(load):
                    read = ReadsOp(load.buffer, _axes(self, block, load))
                    near = load.parent is block.body.block
                    Rewriter.insert_op(read, InsertPoint.before(load) if near else InsertPoint.at_end(block.body.block))
        Rewriter.erase_op(region)


def _axes(self: ScheduleState, block: BlockOp, load: LoadOp) -> list[RegionAxis]:
    """The element that is loaded, or all elements where its position is known only in a loop or branch of the block."""
    if _is_element(block, load):
        return [RegionAxis(index, None) for index in load.indices]
    ends = [header_value(self.func, extent) for extent in shape_of(load.buffer)]
    return [RegionAxis(header_value(self.func, constant(0)), end) for end in ends]


def _is_element(block: BlockOp, load: LoadOp) -> bool:
    """Whether all indices of a load are known at the end of a block."""
    return all(_is_known(block, index) for index in load.indices)


def _is_known(block: BlockOp, value: SSAValue) -> bool:
    """Whether a value is known at the end of a block."""
    home = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    return home is block.body.block or not is_defined_inside(value, block)


def mapped_shape(
    self: ScheduleState, index_map: IndexMap, shape: Sequence[Dim], *, assume_injective: bool = False
) -> list[Dim]:
    """The extents of the new indices; ScheduleError for maps of another rank, and maps that may not be injective.

    Where it is assumed that they do not, those are refused that certainly do, since they have fewer positions.
    """
    if len(index_map.inputs) != len(shape):
        raise self.error(f"expected an index map of {len(shape)} indices, got {index_map}")
    unknown = frozenset[str]().union(*(output.symbols for output in index_map.outputs))
    unknown = unknown.difference(index_map.inputs, self.func.symbol_names)
    if unknown:
        raise self.error(f'index map {index_map} uses "{min(unknown)}", which is no symbol of the function')
    domain = IndexDomain.of(shape, self.func.bounds)
    outputs = index_map.apply(domain.indices)
    if not assume_injective and not domain.tells_apart(outputs):
        raise self.error(f"index map {index_map} may map two elements to the same index")
    extents = [domain.extent(output) for output in outputs]
    known = [extent for extent in extents if extent is not None]
    if len(known) != len(extents):
        raise self.error(f"index map {index_map} gives an index that is not known to be at least 0 and bounded")
    if self.space.less_equal(product(shape), product(known)) is False:
        raise self.error(f"index map {index_map} has {product(known)} places for {product(shape)} elements")
    # of a buffer without elements, one more than the greatest index may be negative
    return [extent if self.space.less_equal(0, extent) is True else maximum(extent, 0) for extent in known]
