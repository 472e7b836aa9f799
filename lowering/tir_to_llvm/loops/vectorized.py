"""Vectorized loops of constant length: their iterations become the lanes of vectors.

A loop is taken if all its lanes can run in lock step: its body computes, loads, stores, branches, asserts, and loops
over the same range in every lane; and memory that it writes is the lane's own: in some dimension, every access to it
has the same index, which grows with the loop's variable and depends on nothing else that changes in the loop. Any other
loop runs serially (LLVM vectorises it if it can prove more).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from lowering.llvm.builder.vector_types import is_vector
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.loops.lane_values import Lanes, Ramp
from lowering.tir_to_llvm.loops.scalar_ops import SCALAR_LOWERINGS
from lowering.tir_to_llvm.loops.serial import emit_loop, lower_serial, trip_count
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.structure import is_inside, ops_in, root_buffer
from tir_dialect.dims import Dim, SymbolAtom, symbol
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.scalars import AssertOp, DimOp
from tir_dialect.types import LoopKind

SHORT = 20
"""So many ops take less time for no lane than it takes to ask whether there is one."""

_SIMPLE = (
    *(LoadOp, YieldOp),
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MaxSIOp, arith.MinSIOp, arith.CmpiOp, arith.ConstantOp),
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.CmpfOp, arith.SelectOp),
    *(arith.ShRSIOp, arith.AndIOp, arith.XOrIOp, arith.BitcastOp, arith.ExtFOp),
)


def runs_for_no_lane(e: Emitter, block: Block) -> bool:
    """Whether a region had better run than be skipped if its mask is off in all lanes: AVX-512 loads nothing then.

    It has some loads, each of different elements in different lanes, and simple arithmetic.
    """
    if not e.b.module.avx512 or len(block.ops) > SHORT:
        return False
    lanes: set[SSAValue] = set()
    for op in block.ops:
        if not isinstance(op, _SIMPLE):
            return False
        vary = [operand in lanes or (operand in e.values and e.varies(operand)) for operand in op.operands]
        if isinstance(op, LoadOp) and not any(vary):
            return False
        if _differs(op, vary):
            lanes.update(op.results)
    return True


def _differs(op: Operation, vary: list[bool]) -> bool:
    """Whether the result differs between lanes for sure if some operands do: not so a difference of two of them."""
    return sum(vary) == 1 and isinstance(op, arith.AddiOp | arith.SubiOp)


REGISTERS_PER_VALUE = 8
"""The most vector registers that a value of a vectorized loop may take; longer loops run in several iterations."""


def lower_vectorized(e: Emitter, loop: ForOp) -> None:
    """The loop as vector code where that is possible, else serially."""
    trips = trip_count(e, loop)
    if trips is None or trips < 2 or not runs_in_lock_step(loop, e.state.may_alias):
        lower_serial(e, loop)
        return
    lower = e.b.integer(0) if loop.lower is None else e.scalar(loop.lower)
    first = e.b.known_integer(lower)
    assert first is not None  # the trip count is known
    _lower_lanes(e, loop, first, trips, _most_lanes(e, loop))


def _lower_lanes(e: Emitter, loop: ForOp, first: int, trips: int, most: int) -> None:
    """Iterations of the largest power of two of lanes that fits, then the remainder likewise."""
    width = min(most, 1 << (trips.bit_length() - 1))
    whole = trips // width * width

    def body(number: SSAValue) -> None:
        e.lanes = Lanes(width) if width > 1 else None
        e.define(loop.induction_var, Ramp(number, e.b.integer(1)) if width > 1 else number)
        e.lower(loop.body.block)
        e.lanes = None

    emit_loop(e, e.b.integer(first), e.b.integer(first + whole), body, step=width)
    if trips > whole:
        _lower_lanes(e, loop, first + whole, trips - whole, most)


def _most_lanes(e: Emitter, loop: ForOp) -> int:
    accessed = [byte_size(op.buffer_type.dtype) for op in _accesses(loop)]
    lanes = max(1, e.context.options.vector_bits // (8 * max(accessed, default=4)))
    return REGISTERS_PER_VALUE * lanes


def runs_in_lock_step(loop: ForOp, may_alias: bool) -> bool:
    """Whether the iterations of a loop may run together, one operation at a time."""
    varying: set[SSAValue] = {loop.induction_var}
    for op in ops_in(loop.body):
        if not _is_supported(op):
            return False
        if type(op) is ForOp and any(operand in varying for operand in op.operands):
            return False
        if any(operand in varying for operand in op.operands):
            varying.update(op.results)
            if type(op) is YieldOp:
                varying.update(_results_around(op))
    return _writes_are_apart(loop, may_alias)


def _is_supported(op: Operation) -> bool:
    if any(is_vector(result.type) for result in op.results):
        return False
    if type(op) in SCALAR_LOWERINGS:
        return True
    match op:
        case LoadOp() | StoreOp():
            return op.lanes is None
        case ForOp():
            return op.kind.data is not LoopKind.THREAD_BINDING
        case DimOp() | IfOp() | YieldOp() | AssertOp():
            return True
        case _:
            return False


def _results_around(op: Operation) -> list[SSAValue]:
    parent = op.parent_op()
    return [] if parent is None else list(parent.results)


def _writes_are_apart(loop: ForOp, may_alias: bool) -> bool:
    """Whether no lane touches what another one writes."""
    accesses: dict[SSAValue | None, list[LoadOp | StoreOp]] = {}
    for op in _accesses(loop):
        accesses.setdefault(_root(op.buffer, may_alias), []).append(op)
    written = [group for group in accesses.values() if any(type(op) is StoreOp for op in group)]
    lane = symbol("relax$lane")
    numbers: dict[SSAValue, int] = {}

    def leaf(value: SSAValue) -> Dim | None:
        if value is loop.induction_var:
            return lane
        return None if is_inside(value, loop) else symbol(f"relax$v{numbers.setdefault(value, len(numbers))}")

    evaluator = DimEvaluator(leaf)
    return all(_has_own_axis(group, evaluator, lane) for group in written)


def _accesses(loop: ForOp) -> list[LoadOp | StoreOp]:
    return [op for op in ops_in(loop.body) if type(op) is LoadOp or type(op) is StoreOp]


def _root(buffer: SSAValue, may_alias: bool) -> SSAValue | None:
    """What memory an access is to: the buffer that its views are of; None for any that may overlap with another."""
    root = root_buffer(buffer)
    return None if may_alias and not isinstance(root.owner, AllocBufferOp) else root


def _has_own_axis(accesses: list[LoadOp | StoreOp], evaluator: DimEvaluator, lane: Dim) -> bool:
    if any(op.buffer is not accesses[0].buffer for op in accesses):
        return False
    for indices in zip(*[op.indices for op in accesses], strict=True):
        dims = {evaluator.dim_of(index) for index in {id(index): index for index in indices}.values()}
        if len(dims) == 1 and _grows_with(dims.pop(), lane):
            return True
    return False


def _grows_with(dim: Dim | None, lane: Dim) -> bool:
    """Whether the dimension is `c * lane + rest` with a number c that is not 0 and a rest without the lane."""
    if dim is None:
        return False
    name = lane.as_symbol
    with_lane = [(coefficient, monomial) for coefficient, monomial in dim.terms if _mentions(monomial, name)]
    if len(with_lane) != 1:
        return False
    (_, monomial) = with_lane[0]
    return len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], SymbolAtom)


def _mentions(monomial: tuple[tuple[object, int], ...], name: str | None) -> bool:
    return any(name in getattr(atom, "symbols", ()) for atom, _ in monomial)
