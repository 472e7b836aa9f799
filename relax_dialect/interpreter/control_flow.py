"""What functions consist of: closures, dataflow regions, branches, loops, calls and returns; checks of types that bind
symbols; and what is executed for its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, OpResult, SSAValue

from relax_dialect.interpreter.conform import Contract, argument_names, evaluate
from relax_dialect.interpreter.frame import Frame, TailCall, ends, runs, where
from relax_dialect.interpreter.machine import Function, function_named
from relax_dialect.interpreter.runtime_values import Array, Value, from_python, text_of
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp, Relation
from relax_dialect.ops.callees import explicit_symbols, prim_func_type
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, OutputOp
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import find_function, prover_at
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import StructInfo, as_struct_infos
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp


@runs(ClosureOp)
def closure(frame: Frame, op: ClosureOp) -> None:
    """A function value that captures what it uses, as it is now, and all symbols."""
    used = frame.interpreter.remember(op, lambda: outer_values(op), "captures")
    values = {value: frame.values[value] for value in used}
    captured = Frame(frame.interpreter, frame.function, values, dict(frame.symbols))
    frame.set(op.result, Function(frame.interpreter, op, captured))


def outer_values(op: Operation) -> tuple[SSAValue, ...]:
    """The values that the regions of an op use and that are defined outside of it."""
    found: dict[SSAValue, None] = {}
    inside: set[SSAValue] = set()
    for inner in op.walk():
        inside.update(argument for region in inner.regions for block in region.blocks for argument in block.args)
        if inner is not op:
            found.update(dict.fromkeys(inner.operands))
            inside.update(inner.results)
    return tuple(value for value in found if value not in inside)


@ends(ReturnOp)
def return_(frame: Frame, op: ReturnOp) -> Value:
    """The result, checked against what the function declares."""
    value = frame.get(op.value)
    parent = op.parent_op()
    if isinstance(parent, FuncOp | ClosureOp):
        declared = parent.function_type.ret
        if frame.interpreter.remember(op, lambda: _verdict(op, declared)) is not Verdict.YES:
            frame.check(value, declared, f"result{where(op)}")
    return value


def _verdict(op: ReturnOp, declared: StructInfo) -> Verdict:
    """Whether the result is known to be of the declared type."""
    (actual,) = as_struct_infos((op.value.type,))
    return is_subtype(actual, declared, prover_at(op))


@runs(DataflowOp)
def dataflow(frame: Frame, op: DataflowOp) -> None:
    """The region's ops, then its outputs."""
    outputs = frame.run_block(op.body.block)
    for result, value in zip(op.results, outputs, strict=True):
        frame.set(result, value)


@ends(OutputOp)
def output(frame: Frame, op: OutputOp) -> tuple[Value, ...]:
    """The outputs."""
    return tuple(frame.get_all(op.values))


@runs(FusedOp)
def fused(frame: Frame, op: FusedOp) -> None:
    """The region's ops, then what it yields."""
    for result, value in zip(op.res, frame.run_block(op.body.block), strict=True):
        frame.set(result, value)


@runs(MatchCastOp)
def match_cast(frame: Frame, op: MatchCastOp) -> None:
    """Checks the value and binds symbols."""
    value = frame.get(op.value)
    position = f"{frame.function}: {op.subject}{where(op)}"
    bound = frame.bind(op, lambda: Contract(as_struct_infos((op.result.type,)), [position], tuple(op.symbols)), [value])
    frame.set(op.result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])


@runs(CheckArgsOp)
def check_args(frame: Frame, op: CheckArgsOp) -> None:
    """Checks the arguments and binds the symbols of the function."""
    values = frame.get_all(op.arguments)
    bound = frame.bind(op, lambda: _contract(op), values)
    for result, value in zip(op.values, values, strict=True):
        frame.set(result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])


def _contract(op: CheckArgsOp) -> Contract:
    names = [name.data for name in op.arg_names]
    positions = argument_names(op.function.data, names, op.captured_count)
    return Contract(as_struct_infos(value.type for value in op.values), positions, tuple(op.symbols), op.captured_count)


@runs(GuardOp)
def guard(frame: Frame, op: GuardOp) -> None:
    """Checks two dimensions."""
    left, right = evaluate(op.lhs.data, frame.symbols), evaluate(op.rhs.data, frame.symbols)
    relation = op.relation.data
    holds = left <= right if relation is Relation.AT_MOST else left == right
    if relation is Relation.BROADCAST:
        holds = holds or 1 in (left, right)
    if not holds:
        text, dims = op.check.facts
        facts = text.format(*(evaluate(dim, frame.symbols) for dim in dims))
        raise ValueError(f"{frame.function}: {op.message.data}{where(op)}: {facts}")
    frame.set(op.result, frame.get(op.value))


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
    bound = frame.bind(op, lambda: _carried_types(frame, op), values)
    for name, witness in zip(op.symbol_names, op.witnesses(block), strict=True):
        frame.set(witness, bound[name])
    for argument, value in zip(op.carried(block), values, strict=True):
        frame.set(argument, value)


def _carried_types(frame: Frame, op: LoopOp) -> Contract:
    carried = as_struct_infos(argument.type for argument in op.carried(op.regions[0].block))
    positions = [f"{frame.function}: carried value #{index}{where(op)}" for index in range(len(carried))]
    return Contract(carried, positions, tuple(op.symbols))


def _leave(frame: Frame, op: LoopOp, values: Sequence[Value]) -> None:
    """The values that were carried last are the results."""
    for result, value in zip(op.res, values, strict=True):
        frame.set(result, value)


@runs(AssertOp)
def assert_(frame: Frame, op: AssertOp) -> None:
    """`ValueError` with the message, after the name of the function, unless the condition holds."""
    if not truth(frame.get(op.condition)):
        raise ValueError(f"{frame.function}: {fill(op.format.data, frame.get_all(op.values))}")


@runs(PrintOp)
def print_(frame: Frame, op: PrintOp) -> None:
    """A line on the standard output."""
    print(fill(op.format.data, frame.get_all(op.values)))


def fill(format: str, values: Sequence[Value]) -> str:
    """`format` with each `{}` replaced by the text of a value."""
    first, *rest = format.split("{}")
    return first + "".join(text_of(value) + part for value, part in zip(values, rest, strict=True))


@runs(CallOp)
def call(frame: Frame, op: CallOp) -> TailCall | None:
    """A call of a function of the module."""
    name = op.callee.string_value()
    return _call(frame, op, function_named(frame.interpreter, name), op.arguments, f"result of @{name}{where(op)}")


@runs(CallClosureOp)
def call_closure(frame: Frame, op: CallClosureOp) -> TailCall | None:
    """A call of a function value."""
    return _call(frame, op, frame.get(op.callee), op.arguments, f"result of a closure{where(op)}")


def _call(
    frame: Frame, op: CallOp | CallClosureOp, function: Callable[..., Value], operands: Sequence[SSAValue], what: str
) -> TailCall | None:
    arguments = frame.get_all(operands)
    if isinstance(function, Function):
        if frame.interpreter.remember(op, lambda: is_returned(op, op.result)):
            return TailCall(function, arguments, frame.expectation(op.result, what))
        # Not through `__call__`: calls of plain functions need no C stack.
        result = function.run(arguments)
    else:
        result = function(*arguments)
    frame.set_checked(op.result, result, what)
    return None


def is_returned(op: Operation, result: OpResult) -> bool:
    """Whether the function returns the result of `op` as it is, and it is certainly of the declared type."""
    terminator, parent = op.next_op, op.parent_op()
    if terminator is None or tuple(terminator.operands) != (result,):
        return False
    if isinstance(terminator, YieldOp) and isinstance(parent, IfOp):
        return is_returned(parent, parent.res[0])
    if not isinstance(terminator, ReturnOp) or not isinstance(parent, FuncOp | ClosureOp):
        return False
    (actual,) = as_struct_infos((result.type,))
    return is_subtype(actual, parent.function_type.ret, prover_at(op)) is Verdict.YES


@runs(MakeClosureOp)
def make_closure(frame: Frame, op: MakeClosureOp) -> None:
    """A function of the module with its first arguments given."""
    captured = tuple(frame.get_all(op.captured))
    found = find_function(op, op.callee.string_value())
    if isinstance(found, PrimFuncOp):
        frame.set(op.result, frame.interpreter.remember(op, lambda: _prim_func(found), "PrimFunc").given(captured))
        return
    function = function_named(frame.interpreter, op.callee.string_value())
    frame.set(op.result, Function(frame.interpreter, function.op, captured=captured))


@dataclass(frozen=True)
class PrimFunction:
    """A PrimFunc as a value, with its first arguments if they are given already."""

    op: PrimFuncOp
    contract: Contract
    captured: tuple[Value, ...] = ()

    def given(self, captured: tuple[Value, ...]) -> PrimFunction:
        """The same function with its first arguments."""
        return replace(self, captured=captured)

    def __call__(self, *arguments: Value) -> tuple[Value, ...]:
        """Checks the arguments and runs the PrimFunc, which writes some of them."""
        values = (*self.captured, *map(from_python, arguments))
        name, wanted = self.op.sym_name.data, len(self.contract.declared) - len(self.captured)
        if len(arguments) != wanted:
            raise TypeError(f"{name}: expected {wanted} arguments, got {len(arguments)}")
        symbols = self.contract.meet(values, {})
        run_prim_func(self.op, values[: len(self.op.params)], {each: symbols[each] for each in self.op.symbol_names})
        return ()


def _prim_func(op: PrimFuncOp) -> PrimFunction:
    func = prim_func_type(op)
    names = [param.name_hint or f"arg{index}" for index, param in enumerate(op.params)]
    names += explicit_symbols(op)
    positions = [f"{op.sym_name.data}: argument #{index} ({name})" for index, name in enumerate(names)]
    return PrimFunction(op, Contract(func.params, positions, func.symbols))


@runs(ExternFuncOp)
def extern_func(frame: Frame, op: ExternFuncOp) -> None:
    """A packed function as a value."""
    frame.set(op.result, frame.interpreter.packed_function(op.symbol.data))
