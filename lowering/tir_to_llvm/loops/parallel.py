"""Parallel loops: the body becomes a function, which threads call on parts of the range.

Three functions come of a loop in `f`:

* `f.parallel0(lower, upper, symbols..., captured...)` runs a part of the range and returns null or an error's text, or
  nothing if nothing in it can fail. Its buffers are `noalias` parameters, so it is optimised like a kernel;
* `f.parallel0.thread(context, lower, upper)` is what a thread calls: it reads the captured values and calls the first;
* in `f`, the context is filled and `relax_parallel` called (`lowering/runtime/kernel/threads.py`). One thread, or a
  range too small for the annotation `grain` (least number of iterations for a thread), is a direct call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.llvm.builder.function_builder import call_op
from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.tir_to_llvm.emitter import Buffer, Emitter, FunctionState
from lowering.tir_to_llvm.loops.serial import bounds, integer_annotation, lower_serial, run_loop
from lowering.tir_to_llvm.signature import buffer_attributes, function_properties
from tir_dialect.analysis.structure import ops_in, root_buffer
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.scalars import DimOp
from tir_dialect.types import BufferType


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
    captured = _captured(loop)
    name = f"{e.state.name}.parallel{e.state.parallel_count}"
    e.state.parallel_count += 1
    arguments = [*e.symbols.values(), *[e.buffers[buffer].pointer for buffer in captured.buffers]]
    arguments += [e.scalar(value) for value in captured.scalars]
    can_fail = _define_part(e, loop, name, captured, [argument.type for argument in arguments])
    context = _Context([argument.type for argument in arguments], can_fail)
    _define_thread(e, name, context)
    error = _call_team(e, loop, name, (lower, upper), arguments, context)
    if error is not None:
        e.fail_if_not_null(error)


def _captured(loop: ForOp) -> Captured:
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
    return Captured(
        tuple(value for value in kept if isinstance(value.type, BufferType)),
        tuple(value for value in kept if not isinstance(value.type, BufferType)),
        tuple(dict.fromkeys(recomputed)),
    )


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
    properties["arg_attrs"] = _argument_attributes(e, captured, len(parameters))
    result = POINTER if state.can_fail else None
    e.context.module.define(
        name, parameters, result, part.b.finish(), internal=True, properties=properties, location=loop.location
    )
    return state.can_fail


def _argument_attributes(e: Emitter, captured: Captured, count: int) -> ArrayAttr[DictionaryAttr]:
    roots = [root_buffer(buffer) for buffer in captured.buffers]
    first = 2 + len(e.symbols)
    attributes = [DictionaryAttr({})] * count
    for index, buffer in enumerate(captured.buffers):
        alone = not e.state.may_alias and roots.count(roots[index]) == 1
        attributes[first + index] = buffer_attributes(e.buffers[buffer].type, alone)
    return ArrayAttr(attributes)


def _define_thread(e: Emitter, name: str, shared: _Context) -> None:
    """`void name.thread(ptr context, i64 lower, i64 upper)`, on any thread, any number of times."""
    b = LLVMBuilder(e.context.module, [POINTER, i64, i64])
    context, lower, upper = b.entry.args
    fields = zip(shared.fields(b, context), shared.types, strict=True)
    arguments = [lower, upper, *[b.load(address, type_, _alignment(type_)) for address, type_ in fields]]
    call = b.insert(call_op(name, arguments, shared.result))
    if call.results:
        _keep_error(b, call.results[0], shared.error(b, context))
    b.insert(llvm.ReturnOp())
    e.context.module.define(
        f"{name}.thread",
        [POINTER, i64, i64],
        None,
        b.finish(),
        internal=True,
        properties=function_properties(e.context.options),
    )


def _keep_error(b: LLVMBuilder, error: SSAValue, address: SSAValue) -> None:
    failed, done = b.new_block(), b.new_block()
    number = b.make(llvm.PtrToIntOp, (error,), i64)
    b.branch_if(b.compare("eq", number, b.integer(0)), done, failed)
    b.start(failed)
    b.insert(llvm.StoreOp(error, address, alignment=8, ordering=_MONOTONIC))
    b.branch(done)
    b.start(done)


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
