"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block

from relax_dialect.interpreter.conform import Contract
from relax_dialect.interpreter.frame import Frame, TailCall, ends, runs, where
from relax_dialect.interpreter.runtime_values import Array, Value
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from relax_dialect.ops.loop_header import LoopOp
from relax_dialect.struct_info.base import as_struct_infos


def truth(value: bool | Array) -> bool:
    """The condition that a prim value or a scalar tensor holds."""
    return bool(value)


@runs(IfOp)
def if_(frame: Frame, op: IfOp) -> TailCall | None:
    """One of the two regions, which may end in a call that replaces the function."""
    region = op.then_region if truth(frame.get(op.condition)) else op.else_region
    values = frame.run_block(region.block)
    if isinstance(values, TailCall):
        return values
    for result, value in zip(op.res, values, strict=True):
        frame.set(result, value)
    for name, result in op.result_witnesses.items():
        frame.symbols[name] = frame.get(result)
    return None


@ends(YieldOp)
def yield_(frame: Frame, op: YieldOp) -> tuple[Value, ...]:
    """What the region gives."""
    return tuple(frame.get_all(op.operands))


@runs(WhileOp)
def while_(frame: Frame, op: WhileOp) -> None:
    """The second region as long as the first gives true."""
    asks, body = op.condition_region.block, op.body.block
    values: Sequence[Value] = frame.get_all(op.inits)
    while True:
        _enter(frame, op, asks, values)
        if not truth(frame.run_block(asks)[0]):
            break
        for old, new in zip(asks.args, body.args, strict=True):
            frame.set(new, frame.get(old))
        frame.interpreter.step(frame.function)
        values = frame.run_block(body)
    _leave(frame, op, values)


@runs(ForOp)
def for_(frame: Frame, op: ForOp) -> None:
    """The region for each value of the counter; `ValueError` for a step of 0."""
    counter, upper = frame.get(op.lower), frame.get(op.upper)
    step = 1 if op.step is None else frame.get(op.step)
    if step == 0:
        raise ValueError(f"{frame.function}: step{where(op)}: expected a number other than 0, got 0")
    body = op.body.block
    values: Sequence[Value] = frame.get_all(op.inits)
    while True:
        frame.set(op.counter, counter)
        if op.counter_symbol is not None:
            frame.symbols[op.counter_symbol.data] = counter
        _enter(frame, op, body, values)
        if counter >= upper if step > 0 else counter <= upper:
            break
        frame.interpreter.step(frame.function)
        values = frame.run_block(body)
        counter += step
    _leave(frame, op, values)


def _enter(frame: Frame, op: LoopOp, block: Block, values: Sequence[Value]) -> None:
    """Gives the arguments of a block their values for one iteration."""
    bound = frame.bind(op, lambda: _contract(frame, op), values)
    for name, witness in zip(op.symbol_names, op.witnesses(block), strict=True):
        frame.set(witness, bound[name])
    for argument, value in zip(op.carried(block), values, strict=True):
        frame.set(argument, value)


def _contract(frame: Frame, op: LoopOp) -> Contract:
    carried = as_struct_infos(argument.type for argument in op.carried(op.regions[0].block))
    positions = [f"{frame.function}: carried value #{index}{where(op)}" for index in range(len(carried))]
    return Contract(carried, positions, tuple(op.symbols))


def _leave(frame: Frame, op: LoopOp, values: Sequence[Value]) -> None:
    """The values that were carried last are the results."""
    for result, value in zip(op.res, values, strict=True):
        frame.set(result, value)
