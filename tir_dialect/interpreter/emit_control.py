"""Python text of loops, branches, blocks and calls."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.init import InitPlacement
from tir_dialect.analysis.structure import loop_of
from tir_dialect.interpreter.emitter import Emitter, Rule, hint
from tir_dialect.ops.blocks import BlockIterator, BlockOp, InitOp
from tir_dialect.ops.calls import CallExternOp, CallOp, CallPackedOp, ForeignCallOp
from tir_dialect.ops.control_flow import ConditionOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.types import LoopKind


def _emit_for(emitter: Emitter, op: ForOp) -> None:
    for block, placement in emitter.early_inits(op):
        _emit_early_init(emitter, block, placement)
    with emitter.loop():
        _emit_loop_head(emitter, op)
        with emitter.indented():
            emitter.block(op.body.block)


def _emit_loop_head(emitter: Emitter, op: ForOp) -> None:
    lower = "" if op.lower is None else f"{emitter.name(op.lower)}, "
    values = f"range({lower}{emitter.name(op.upper)})"
    if op.kind.data is LoopKind.PARALLEL:
        values = f"parallel_order({values})"
    emitter.line(f"for {emitter.define(op.induction_var)} in {values}:")


def _emit_while(emitter: Emitter, op: WhileOp) -> None:
    with emitter.loop():
        emitter.line("while True:")
        with emitter.indented():
            emitter.block(op.before.block)
            emitter.block(op.body.block)


def _emit_condition(emitter: Emitter, op: ConditionOp) -> None:
    emitter.line(f"if not {emitter.name(op.condition)}: break")


def _emit_if(emitter: Emitter, op: IfOp) -> None:
    for result in op.outputs:
        emitter.define(result)
    emitter.line(f"if {emitter.name(op.condition)}:")
    with emitter.indented():
        emitter.block(op.then_body.block)
    if op.has_else:
        emitter.line("else:")
        with emitter.indented():
            emitter.block(op.else_body.block)


def _emit_yield(emitter: Emitter, op: YieldOp) -> None:
    parent = op.parent_op()
    if isinstance(parent, IfOp):
        for result, value in zip(parent.outputs, op.values, strict=True):
            emitter.line(f"{emitter.name(result)} = {emitter.name(value)}")


def _emit_block(emitter: Emitter, op: BlockOp) -> None:
    for iterator in op.iterators:
        emitter.alias(iterator.value, emitter.name(iterator.binding))
    if op.condition is None:
        _emit_instance(emitter, op)
        return
    emitter.line(f"if {emitter.name(op.condition)}:")
    with emitter.indented():
        _emit_instance(emitter, op)


def _emit_instance(emitter: Emitter, op: BlockOp) -> None:
    for iterator in op.iterators:
        if not _stays_inside(emitter, iterator):
            value, extent = emitter.name(iterator.binding), emitter.name(iterator.extent)
            block = emitter.constant(op.block_name.data)
            emitter.line(
                f"if not 0 <= {value} < {extent}: "
                f"fail_iterator({block}, {hint(iterator.value, 'iterator')!r}, {value}, {extent})"
            )
    emitter.block(op.body.block)


def _stays_inside(emitter: Emitter, iterator: BlockIterator) -> bool:
    """Whether the binding is the variable of a loop that runs over the domain of the iterator."""
    loop = loop_of(iterator.binding)
    if loop is None or loop.lower is not None:
        return False
    if loop.upper is iterator.extent:
        return True
    extent = emitter.dims.dim_of(iterator.extent)
    return extent is not None and extent is emitter.dims.dim_of(loop.upper)


def _emit_init(emitter: Emitter, op: InitOp) -> None:
    parent = op.parent_op()
    assert isinstance(parent, BlockOp)
    ordered = [iterator for iterator in parent.iterators if iterator.kind.is_reduced]
    names = [emitter.name(iterator.value) for iterator in ordered]
    emitter.line(f"if {' == '.join((*names, '0'))}:")
    with emitter.indented():
        emitter.block(op.body.block)


def _emit_early_init(emitter: Emitter, op: BlockOp, placement: InitPlacement) -> None:
    """Runs the init before a reduction, if the domain of the reduction is empty."""
    ordered = [iterator for iterator in op.iterators if iterator.kind.is_reduced]
    pending = list(placement.ops)

    def compute(values: Iterable[SSAValue]) -> None:
        """Emits the ops that the values depend on and that can be computed here."""
        for value in values:
            if isinstance(value.owner, Operation) and value.owner in pending:
                pending.remove(value.owner)
                compute(value.owner.operands)
                emitter.op(value.owner)

    with ExitStack() as nest:
        compute(iterator.extent for iterator in ordered)
        emitter.line(f"if min({', '.join(emitter.name(iterator.extent) for iterator in ordered)}, 1) == 0:")
        nest.enter_context(emitter.indented())
        for loop in placement.loops:
            compute(loop.operands)
            nest.enter_context(emitter.loop())
            _emit_loop_head(emitter, loop)
            nest.enter_context(emitter.indented())
        compute(placement.conditions)
        for condition in placement.conditions:
            emitter.line(f"if {emitter.name(condition)}:")
            nest.enter_context(emitter.indented())
        compute(list(chain.from_iterable(op.operands for op in op.init.walk())) if op.init else ())
        for iterator in op.iterators:
            reduced = iterator.kind.is_reduced
            compute(() if reduced else [iterator.binding, iterator.extent])
            emitter.alias(iterator.value, "0" if reduced else emitter.name(iterator.binding))
        if op.init is not None:
            emitter.block(op.init.body.block)


def _emit_nothing(emitter: Emitter, op: Operation) -> None:
    """Declarations do not run."""


def _emit_assert(emitter: Emitter, op: AssertOp) -> None:
    message = emitter.constant(op.message.data)
    emitter.line(f"if not {emitter.name(op.condition)}: fail_assertion({message}, {op.error_kind!r})")


def _emit_call(emitter: Emitter, op: CallOp) -> None:
    callee = emitter.constant(emitter.call(op), "f")
    emitter.line(f"{callee}({', '.join(emitter.names((*op.sizes, *op.arguments)))})")


def _emit_foreign_call(emitter: Emitter, op: ForeignCallOp) -> None:
    call = f"{emitter.constant(emitter.foreign(op), 'f')}({', '.join(emitter.names(tuple(op.arguments)))})"
    if op.result is None:
        emitter.line(call)
    else:
        emitter.assign(op.result, call)


CONTROL_RULES: dict[type[Operation], Rule] = {
    ForOp: _emit_for,
    WhileOp: _emit_while,
    ConditionOp: _emit_condition,
    IfOp: _emit_if,
    YieldOp: _emit_yield,
    BlockOp: _emit_block,
    InitOp: _emit_init,
    ReadsOp: _emit_nothing,
    WritesOp: _emit_nothing,
    AssertOp: _emit_assert,
    CallOp: _emit_call,
    CallExternOp: _emit_foreign_call,
    CallPackedOp: _emit_foreign_call,
}
"""How to write the ops of this file."""
