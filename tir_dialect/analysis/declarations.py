"""Accesses outside the regions that their block declares, and views whose extents differ from their ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.accesses import Reach, index_of, leaves, name_of, unconditional, widths
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import is_inside, ops_in, root_buffer
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import MatchBufferOp, ReadsOp, RegionOp, WritesOp
from tir_dialect.ops.verifiers import VERIFIERS


def undeclared_access(block: BlockOp) -> str | None:
    """An access of `block` that its declarations do not allow: which one, and why; `None` if none can be shown.

    A buffer that is not declared counts everywhere; what the block writes it may read, too, and what computes indices
    need not be declared. An index counts only where the access is unconditional, and where its buffer is declared once.
    """
    for kind, access in ((ReadsOp, LoadOp), (WritesOp, StoreOp)):
        declared = [op for op in block.body.block.ops if isinstance(op, kind)]
        if declared:
            found = _undeclared_buffer(block, declared, access) or _undeclared_index(block, declared, access)
            if found is not None:
                return found
    return None


def _undeclared_buffer(block: BlockOp, declared: Sequence[RegionOp], kind: type[LoadOp | StoreOp]) -> str | None:
    accesses = [op for op in ops_in(block.body) if isinstance(op, LoadOp | StoreOp)]
    known = {root_buffer(op.buffer) for op in declared}
    if kind is LoadOp:
        known |= {root_buffer(op.buffer) for op in accesses if isinstance(op, StoreOp)}
    computing = _index_computations(block)
    for op in accesses:
        root = root_buffer(op.buffer)
        if isinstance(op, kind) and op not in computing and root not in known and not is_inside(root, block):
            return f"a '{op.name}' of {name_of(root)}, which it does not declare{index_of(op)}"
    return None


def _index_computations(block: BlockOp) -> set[Operation]:
    """The ops that compute indices of accesses, and ends of regions."""
    pending = [index.owner for op in ops_in(block.body) for index in _indices(op)]
    found: set[Operation] = set()
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += [operand.owner for operand in op.operands]
    return found


def _indices(op: Operation) -> Sequence[SSAValue]:
    match op:
        case LoadOp() | StoreOp():
            return op.indices
        case RegionOp():
            return (*op.lower, *op.upper)
        case _:
            return ()


def _undeclared_index(block: BlockOp, declared: Sequence[RegionOp], kind: type[LoadOp | StoreOp]) -> str | None:
    buffers = [op.buffer for op in declared]
    regions = {op.buffer: op for op in declared if buffers.count(op.buffer) == 1}
    if not regions:
        return None
    space = IndexSpace(block)
    for op, loops in _unconditional_in(space, block):
        if isinstance(op, kind) and op.mask is None and op.buffer in regions:
            for axis, reach in enumerate(_reaches(space, op, regions[op.buffer])):
                found = None if reach is None else leaves(space, reach, loops)
                if found is not None:
                    return f"a '{op.name}' whose index {axis} of {name_of(op.buffer)} {found}{index_of(op)}"
    return None


def _unconditional_in(space: IndexSpace, block: BlockOp) -> Iterator[tuple[Operation, tuple[ForOp, ...]]]:
    for op in block.body.block.ops:
        yield op, ()
        yield from unconditional(space, op, ())


def _reaches(space: IndexSpace, op: LoadOp | StoreOp, region: RegionOp) -> Iterator[Reach | None]:
    """What an access touches of what it may, by dimension."""
    for index, width, axis in zip(op.indices, widths(op), region.axes, strict=False):
        first = space.dim_of(axis.lower)
        end = first if axis.upper is None else space.dim_of(axis.upper)
        if first is None or end is None:
            yield None
        else:
            yield Reach(index, width, end + 1 if axis.upper is None else end, first)


@VERIFIERS.attach("tir.match_buffer")
def verify_lengths(view: MatchBufferOp) -> None:
    """Raises `VerifyException` if the length of a range provably differs from the extent of the view."""
    space = IndexSpace(view)
    for dimension, axis, extent in ranges(view):
        first, end = space.dim_of(axis.lower), space.dim_of(axis.upper)
        if first is not None and end is not None and space.prover.equal(end - first, extent) is False:
            raise VerifyException(
                f"'tir.match_buffer' op expected {end - first} elements in dimension {dimension} of "
                f"{name_of(view.buffer)}, got {extent}"
            )  # C4


class Range(NamedTuple):
    """The ends of a range, as values."""

    lower: SSAValue
    upper: SSAValue


def ranges(view: MatchBufferOp) -> Iterator[tuple[int, Range, Dim]]:
    """The ranges of a view: the dimension of the buffer, the ends, and how long the view says that it is."""
    extents = iter(view.view_type.shape)
    for dimension, axis in enumerate(view.axes):
        if axis.upper is not None:
            yield dimension, Range(axis.lower, axis.upper), next(extents)


def is_as_long(space: IndexSpace, part: Range, extent: Dim) -> bool:
    """Whether the length of a range is provably `extent`."""
    first, end = space.dim_of(part.lower), space.dim_of(part.upper)
    return first is not None and end is not None and space.prover.equal(end - first, extent) is True
