"""Serial loops as basic blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.function_builder import is_vector
from lowering.llvm.index_builder import NO_SIGNED_WRAP
from lowering.llvm.llvm_types import LOOP_HINTS
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.memory import allocate, nested_allocations, release
from tir_dialect.codegen_hints import REPEATED_WORK, SCALAR_LOOP
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.calls import CallExternOp, CallOp, CallPackedOp
from tir_dialect.ops.control_flow import ForOp, WhileOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import LoopKind

_NOT_SCALAR = frozenset((WhileOp, CallOp, CallExternOp, CallPackedOp))

UNROLL_LIMIT = 4096
"""Loops are unrolled up to so many ops."""


def bounds(e: Emitter, loop: ForOp) -> tuple[SSAValue, SSAValue]:
    """The lower and the upper bound of a loop, as values."""
    lower = e.b.integer(0) if loop.lower is None else e.scalar(loop.lower)
    return lower, e.scalar(loop.upper)


def trip_count(e: Emitter, loop: ForOp) -> int | None:
    """The trip count of a loop, if it is constant."""
    lower, upper = map(e.b.known_integer, bounds(e, loop))
    return None if lower is None or upper is None else max(upper - lower, 0)


def lower_serial(e: Emitter, loop: ForOp) -> None:
    """Lowers a serial loop."""
    lower, upper = bounds(e, loop)
    # Loop hints for LLVM: those among the annotations, unrolling, and whether LLVM may vectorise the loop.
    hints: dict[str, Attribute] = {}
    if loop.annotations is not None:
        given = loop.annotations.data.items()
        hints = {key: value for key, value in given if key.startswith(("llvm.loop.", "relax.loop."))}
    if loop.kind.data is LoopKind.UNROLLED:
        trips = trip_count(e, loop)
        if trips is None:
            hints["llvm.loop.unroll.enable"] = UnitAttr()
        elif trips * sum(1 for _ in loop.body.walk()) <= UNROLL_LIMIT:
            hints["llvm.loop.unroll.full"] = UnitAttr()
    elif not hints and _is_scalar(loop):
        hints[SCALAR_LOOP] = UnitAttr()
    run_loop(e, loop, lower, upper, DictionaryAttr(hints) if hints else None)


def run_loop(e: Emitter, loop: ForOp, lower: SSAValue, upper: SSAValue, hints: DictionaryAttr | None) -> None:
    """Emits the loop's body for every number in `lower <= number < upper`."""

    def body(number: SSAValue) -> None:
        e.define(loop.induction_var, number)
        e.lower(loop.body.block)

    with_memory(e, loop, lambda: emit_loop(e, lower, upper, body, hints))


def with_memory(e: Emitter, loop: Operation, emit: Callable[[], None]) -> None:
    """Emits a loop; before the outermost one, memory for all allocations inside is taken."""
    mark = len(e.state.heap)
    if e.state.loop_depth == 0:
        for alloc in nested_allocations(loop, e.state.in_parallel):
            allocate(e, alloc)
    e.state.loop_depth += 1
    emit()
    e.state.loop_depth -= 1
    if e.state.loop_depth == 0:
        release(e, mark)


def emit_loop(
    e: Emitter,
    lower: SSAValue,
    upper: SSAValue,
    body: Callable[[SSAValue], None],
    hints: DictionaryAttr | None = None,
    step: int = 1,
) -> None:
    """`for (number = lower; number < upper; number += step) body(number)`; for a trip count of 1, the body alone."""
    b = e.b
    first, last = b.known_integer(lower), b.known_integer(upper)
    if first is not None and last is not None and last - first <= step:
        if last > first:
            body(lower)
        return
    location = b.location
    inside, after = b.new_block([i64]), b.new_block()
    if first is not None and last is not None:
        b.branch(inside, lower)
    else:
        b.branch_if(b.compare("slt", lower, upper), inside, after, lower)
    number = inside.args[0]
    b.note_small(number, b.is_small(lower) and b.is_small(upper))
    with b.tree.loop(b.block, inside) as loop:
        b.start(inside)
        body(number)
    b.location = location
    following = b.make(llvm.AddOp, (number, b.integer(step)), i64, {"overflowFlags": NO_SIGNED_WRAP})
    meets_end = step == 1 or (first is not None and last is not None and (last - first) % step == 0)
    jump = b.branch_if(b.compare("ne" if meets_end else "slt", following, upper), inside, after, following)
    if b.tree.repeats_work(loop):
        hints = DictionaryAttr({**(hints.data if hints is not None else {}), REPEATED_WORK: UnitAttr()})
    if hints is not None:
        jump.attributes[LOOP_HINTS] = hints
    b.start(after)


def _is_scalar(loop: ForOp) -> bool:
    """Whether a loop stores, and contains no vectors, calls or loops that are not unrolled.

    A loop that adds to one element of memory under a condition is not: LLVM can neither keep such a sum in a register
    nor vectorise it.
    """
    writes = False
    for op in ops_in(loop.body):
        kind = type(op)
        if kind in _NOT_SCALAR or (kind is ForOp and cast("ForOp", op).kind.data is not LoopKind.UNROLLED):
            return False
        if any(is_vector(value.type) for value in (*op.operands, *op.results)):
            return False
        if kind is StoreOp:
            indices = cast("StoreOp", op).indices
            fixed = not any(loop.body.is_ancestor(index.owner) for index in indices)
            if fixed and op.parent_block() is not loop.body.block:
                return False
            writes = True
    return writes


def integer_annotation(loop: ForOp, name: str) -> int | None:
    """An integer among the annotations of a loop."""
    value = None if loop.annotations is None else loop.annotations.data.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None
