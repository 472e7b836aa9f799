"""Loops and branches, as basic blocks; parallel loops, as functions; and vectorized loops, as vectors.

The body of a parallel loop becomes a function, which threads call on chunks of the range.

Three functions come of a loop in `f`:

* `f.parallel0(lower, upper, symbols..., captured...)` runs a chunk of the range and returns null or an error's text, or
  nothing if nothing in it can fail. Its buffers are `noalias` parameters, so it is optimised like a kernel;
* `f.parallel0.thread(context, lower, upper)` is what a thread calls: it reads the captured values and calls the first;
* in `f`, the context is filled and `relax_parallel` called (`lowering/runtime/support.py`). One thread, or a
  range too small for the annotation `grain` (least number of iterations for a thread), is a direct call.

The iterations of a vectorized loop of constant length become the lanes of vectors.

A loop is taken if all its lanes can run in lock step: its body computes, loads, stores, branches, asserts, and loops
over the same range in every lane; and memory that it writes is the lane's own: in some dimension, every access to it
has the same index, which grows with the loop's variable and depends on nothing else that changes in the loop. Any other
loop runs serially (LLVM vectorises it if it can prove more).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.llvm.function_builder import call_op, is_vector
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.emitter import Buffer, Emitter, FunctionState, buffer_attributes, function_properties
from lowering.tir_to_llvm.lane_values import Lanes, LaneValue, Ramp, is_varying
from lowering.tir_to_llvm.memory import release
from lowering.tir_to_llvm.scalar_ops import SCALAR_LOWERINGS
from lowering.tir_to_llvm.serial import (
    bounds,
    emit_loop,
    integer_annotation,
    lower_serial,
    run_loop,
    trip_count,
    with_memory,
)
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.structure import is_defined_inside, root_buffer
from tir_dialect.dims import Dim, SymbolAtom, symbol
from tir_dialect.dtypes import byte_size
from tir_dialect.fast_ops import ops_in
from tir_dialect.ops.arithmetic import AssertOp, DimOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, LoopKind


@dataclass(frozen=True)
class Captured:
    """What a loop's body uses from outside."""

    buffers: tuple[SSAValue, ...]
    scalars: tuple[SSAValue, ...]
    recomputed: tuple[Operation, ...]
    """Constants and dimensions, which the body's function makes again."""


class _Context:
    """What the threads of a loop share: the values that it captures, behind the pointer to an error if it can fail."""

    def __init__(self, types: Sequence[Attribute], can_fail: bool) -> None:
        self.result = POINTER if can_fail else None
        self.struct = llvm.LLVMStructType.from_type_list([*[POINTER] * can_fail, *types])
        self.types = types

    def fields(self, b: LLVMBuilder, context: SSAValue) -> list[SSAValue]:
        """The addresses of the captured values."""
        first = self.result is not None
        return [b.field(context, self.struct, first + index) for index in range(len(self.types))]

    def error(self, b: LLVMBuilder, context: SSAValue) -> SSAValue:
        """The address of the error."""
        return b.field(context, self.struct, 0)


def lower_parallel(e: Emitter, loop: ForOp) -> None:
    """Runs the loop on the threads of the machine; if it has at most one iteration, in place."""
    b = e.b
    lower, upper = bounds(e, loop)
    known = b.known_integer(lower), b.known_integer(upper)
    if known[0] is not None and known[1] is not None and known[1] - known[0] <= 1:
        lower_serial(e, loop)
        return
    # By identities, which are quicker than the hashes of values, and each value twice and more.
    inside = {id(loop.induction_var)}
    used: dict[int, SSAValue] = {}
    for op in ops_in(loop.body):
        inside.update(map(id, op.results))
        for region in op.regions:
            inside.update(id(argument) for block in region.blocks for argument in block.args)
        used.update((id(operand), operand) for operand in op.operands)
    outside = [value for key, value in used.items() if key not in inside]
    owners = [value.owner for value in outside]
    recomputed = [owner for owner in owners if isinstance(owner, DimOp | arith.ConstantOp)]
    kept = [value for value in outside if not isinstance(value.owner, DimOp | arith.ConstantOp)]
    captured = Captured(
        tuple(value for value in kept if isinstance(value.type, BufferType)),
        tuple(value for value in kept if not isinstance(value.type, BufferType)),
        tuple(dict.fromkeys(recomputed)),
    )
    name = f"{e.state.name}.parallel{e.state.parallel_count}"
    e.state.parallel_count += 1
    arguments = [*e.symbols.values(), *(e.buffers[buffer].pointer for buffer in captured.buffers)]
    arguments += [e.scalar(value) for value in captured.scalars]
    can_fail = _define_part(e, loop, name, captured, [argument.type for argument in arguments])
    context = _Context([argument.type for argument in arguments], can_fail)
    _define_thread(e, name, context)
    error = _call_team(e, loop, name, (lower, upper), arguments, context)
    if error is not None:
        e.fail_if_not_null(error)


def _define_part(e: Emitter, loop: ForOp, name: str, captured: Captured, types: Sequence[Attribute]) -> bool:
    """`ptr name(i64 lower, i64 upper, symbols..., buffers..., scalars...)`, or `void`; whether it can fail."""
    state = FunctionState(name, is_kernel=False, in_parallel=True, may_alias=e.state.may_alias)
    parameters = [i64, i64, *types]
    part = Emitter(e.context, state, parameters)
    part.b.location = loop.location
    lower, upper, *rest = part.b.entry.args
    symbols, rest = rest[: len(e.symbols)], rest[len(e.symbols) :]
    part.bind_symbols(dict(zip(e.symbols, symbols, strict=True)))
    for end, whole in zip((lower, upper), bounds(e, loop), strict=True):
        part.b.note_small(end, e.b.is_small(whole))
    for buffer, pointer in zip(captured.buffers, rest, strict=False):
        part.buffers[buffer] = Buffer(pointer, e.buffers[buffer].type)
    for value, argument in zip(captured.scalars, rest[len(captured.buffers) :], strict=True):
        part.b.note_small(argument, e.b.is_small(e.scalar(value)))
        part.define(value, argument)
    for op in captured.recomputed:
        part.lower_op(op)
    run_loop(part, loop, lower, upper, None)
    part.finish()
    properties = function_properties(e.context.options, part.b.crowded)
    count = len(parameters)
    roots = [root_buffer(buffer) for buffer in captured.buffers]
    first = 2 + len(e.symbols)
    attributes = [DictionaryAttr({})] * count
    for index, buffer in enumerate(captured.buffers):
        alone = not e.state.may_alias and roots.count(roots[index]) == 1
        attributes[first + index] = buffer_attributes(e.buffers[buffer].type, alone)
    properties["arg_attrs"] = ArrayAttr(attributes)
    result = POINTER if state.can_fail else None
    e.context.module.define(
        name, parameters, result, part.b.finish(), internal=True, properties=properties, location=loop.location
    )
    return state.can_fail


def _define_thread(e: Emitter, name: str, shared: _Context) -> None:
    """`void name.thread(ptr context, i64 lower, i64 upper)`, on any thread, any number of times."""
    b = LLVMBuilder(e.context.module, [POINTER, i64, i64])
    context, lower, upper = b.entry.args
    fields = zip(shared.fields(b, context), shared.types, strict=True)
    arguments = [lower, upper, *[b.load(address, type_, _alignment(type_)) for address, type_ in fields]]
    call = b.insert(call_op(name, arguments, shared.result))
    if call.results:
        error = call.results[0]
        address = shared.error(b, context)
        failed, done = b.new_block(), b.new_block()
        number = b.make(llvm.PtrToIntOp, (error,), i64)
        b.branch_if(b.compare("eq", number, b.integer(0)), done, failed)
        b.start(failed)
        b.insert(llvm.StoreOp(error, address, alignment=8, ordering=_MONOTONIC))
        b.branch(done)
        b.start(done)
    b.insert(llvm.ReturnOp())
    e.context.module.define(
        f"{name}.thread",
        [POINTER, i64, i64],
        None,
        b.finish(),
        internal=True,
        properties=function_properties(e.context.options),
    )


_MONOTONIC = 2


def _alignment(type_: Attribute) -> int:
    """The alignment of a value in the context."""
    return 8 if type_ in (i64, POINTER) else 1


def _call_team(
    e: Emitter,
    loop: ForOp,
    name: str,
    range_: tuple[SSAValue, SSAValue],
    arguments: Sequence[SSAValue],
    shared: _Context,
) -> SSAValue | None:
    """The text of an error or null, of a loop that can fail."""
    b = e.b
    threads = _team_size(e, loop, *range_)
    results = [] if shared.result is None else [shared.result]
    alone, team, after = b.new_block(), b.new_block(), b.new_block(results)
    b.branch_if(b.compare("sle", threads, b.integer(1)), alone, team)
    b.start(alone)
    b.branch(after, *b.insert(call_op(name, [*range_, *arguments], shared.result)).results)
    b.start(team)
    with e.entry():
        context = b.insert(llvm.AllocaOp(b.integer(1), shared.struct, 16)).results[0]
    if shared.result is not None:
        b.store(e.null(), shared.error(b, context), 8)
    for address, value in zip(shared.fields(b, context), arguments, strict=True):
        b.store(value, address, _alignment(value.type))
    body = b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr(f"{name}.thread")})
    count = b.make(llvm.TruncOp, (threads,), i32)
    e.call("relax_parallel", (body, context, *range_, count), (POINTER, POINTER, i64, i64, i32))
    b.branch(after, *[b.load(shared.error(b, context), type_, 8) for type_ in results])
    b.start(after)
    return after.args[0] if results else None


def _team_size(e: Emitter, loop: ForOp, lower: SSAValue, upper: SSAValue) -> SSAValue:
    """As many threads as the run time would give, but no more than there is work for."""
    b = e.b
    grain = max(integer_annotation(loop, "grain") or 1, 1)
    work = b.sub(upper, lower)
    if grain > 1:
        work = b.make(llvm.SDivOp, (work, b.integer(grain)), i64)
    e.context.module.declare("relax_max_threads", [], i32)
    available = b.make(llvm.SExtOp, (b.call("relax_max_threads", [], i32),), i64)
    return b.overloaded("llvm.smin", (available, work), i64)


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
    accessed = [byte_size(op.buffer_type.dtype) for op in _accesses(loop)]
    lanes = max(1, e.context.options.vector_bits // (8 * max(accessed, default=4)))
    _lower_lanes(e, loop, first, trips, REGISTERS_PER_VALUE * lanes)


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
                parent = op.parent_op()
                varying.update([] if parent is None else list(parent.results))
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


def _writes_are_apart(loop: ForOp, may_alias: bool) -> bool:
    """Whether no lane touches what another one writes."""
    accesses: dict[SSAValue | None, list[LoadOp | StoreOp]] = {}
    for op in _accesses(loop):
        # What memory an access is to: the buffer that its views are of; None for any that may overlap
        # with another.
        root = root_buffer(op.buffer)
        accesses.setdefault(None if may_alias and not isinstance(root.owner, AllocBufferOp) else root, []).append(op)
    written = [group for group in accesses.values() if any(type(op) is StoreOp for op in group)]
    lane = symbol("relax$lane")
    numbers: dict[SSAValue, int] = {}

    def leaf(value: SSAValue) -> Dim | None:
        if value is loop.induction_var:
            return lane
        return None if is_defined_inside(value, loop) else symbol(f"relax$v{numbers.setdefault(value, len(numbers))}")

    evaluator = DimEvaluator(leaf)
    return all(_has_own_axis(group, evaluator, lane) for group in written)


def _accesses(loop: ForOp) -> list[LoadOp | StoreOp]:
    return [op for op in ops_in(loop.body) if type(op) is LoadOp or type(op) is StoreOp]


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
    with_lane = [
        (coefficient, monomial)
        for coefficient, monomial in dim.terms
        if any(name in getattr(atom, "symbols", ()) for atom, _ in monomial)
    ]
    if len(with_lane) != 1:
        return False
    (_, monomial) = with_lane[0]
    return len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], SymbolAtom)


def lower_block(e: Emitter, block: Block) -> None:
    """Lowers the ops of a region and releases the memory that they allocate."""
    mark = len(e.state.heap)
    e.lower(block)
    release(e, mark)


class LowerFor(RewritePattern):
    """A loop of any kind; loops bound to GPU threads run serially."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, e: Emitter) -> None:
        match op.kind.data:
            case LoopKind.PARALLEL if not e.state.in_parallel and e.lanes is None:
                lower_parallel(e, op)
            case LoopKind.VECTORIZED if e.lanes is None:
                lower_vectorized(e, op)
            case _:
                lower_serial(e, op)


class LowerWhile(RewritePattern):
    """A while loop."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: WhileOp, e: Emitter) -> None:

        def emit() -> None:
            b = e.b
            head, inside, after = b.new_block(), b.new_block(), b.new_block()
            b.branch(head)
            b.start(head)
            e.lower(op.before.block)
            last = cast("ConditionOp", op.before.block.last_op)
            b.branch_if(e.scalar(last.condition), inside, after)
            b.start(inside)
            e.lower(op.body.block)
            b.branch(head)
            b.start(after)

        with_memory(e, op, emit)


class LowerTerminator(RewritePattern):
    """Nothing: the parent op reads the operands of its terminators."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConditionOp | YieldOp, e: Emitter) -> None:
        return


class LowerIf(RewritePattern):
    """A branch; if the condition differs between lanes, both regions, each masked to its lanes."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, e: Emitter) -> None:
        if e.varies(op.condition):
            outer = cast("Lanes", e.lanes)
            condition = e.vector(e.values[op.condition])
            opposite = e.b.once(llvm.XOrOp, (condition, e.b.integer(1, condition.type)), condition.type)
            chosen = _run_masked(e, op.then_body.block, outer, condition)
            others = _run_masked(e, op.else_body.block, outer, opposite) if op.has_else else []
            for output, then, otherwise in zip(op.outputs, chosen, others, strict=True):
                e.define(output, e.b.select(condition, then, otherwise))
            return
        b = e.b
        then_block, else_block, after = b.new_block(), b.new_block(), b.new_block()
        b.branch_if(e.scalar(op.condition), then_block, else_block if op.has_else else after)
        ends: list[tuple[Block, list[LaneValue]]] = []
        for block, region in ((then_block, op.then_body), (else_block, op.else_body)):
            if block is then_block or op.has_else:
                b.start(block)
                lower_block(e, region.block)
                ends.append((b.block, _yielded(e, region.block)))
        # Joins branches; a result is a vector if one of the branches yields a different value for each lane.
        b = e.b
        varying = [any(is_varying(values[index]) for _, values in ends) for index in range(len(op.outputs))]
        for block, values in ends:
            b.block = block
            plain = [
                e.vector(value) if varies and e.lanes is not None else cast("SSAValue", value)
                for value, varies in zip(values, varying, strict=True)
            ]
            for index, value in enumerate(plain):
                if len(after.args) <= index:
                    after.insert_arg(value.type, index)
            b.branch(after, *plain)
        b.start(after)
        for output, argument in zip(op.outputs, after.args, strict=True):
            e.define(output, argument)


def _yielded(e: Emitter, block: Block) -> list[LaneValue]:
    last = block.last_op
    return [e.values[value] for value in last.values] if isinstance(last, YieldOp) else []


def _run_masked(e: Emitter, block: Block, outer: Lanes, condition: SSAValue) -> list[SSAValue]:
    """A region for the lanes in which the condition holds; unless it is short, it is skipped if there are none.

    Gives what it yields as vectors; the lanes that do not take part have unspecified values.
    """
    b = e.b
    inner = outer.restricted(b, condition)
    assert inner.mask is not None  # restricted lanes have a mask
    if runs_for_no_lane(e, block):
        return _yielded_by_lanes(e, block, outer, inner)
    some = b.intrinsic(f"llvm.vector.reduce.or.v{inner.count}i1", (inner.mask,), i1)
    inside, skipped, after = b.new_block(), b.new_block(), b.new_block()
    b.branch_if(some, inside, skipped)
    b.start(inside)
    values = _yielded_by_lanes(e, block, outer, inner)
    for index, value in enumerate(values):
        after.insert_arg(value.type, index)
    b.branch(after, *values)
    b.start(skipped)
    b.branch(after, *[b.zero(value.type) for value in values])
    b.start(after)
    return list(after.args)


def _yielded_by_lanes(e: Emitter, block: Block, outer: Lanes, inner: Lanes) -> list[SSAValue]:
    """The region for some lanes, and what it yields, as vectors."""
    e.lanes = inner
    lower_block(e, block)
    values = [e.vector(value) for value in _yielded(e, block)]
    e.lanes = outer
    return values
