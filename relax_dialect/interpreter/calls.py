"""Calls of functions and closures, and function values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, OpResult, SSAValue

from relax_dialect.interpreter.conform import Contract
from relax_dialect.interpreter.frame import Frame, TailCall, runs, where
from relax_dialect.interpreter.functions import Function, function_named
from relax_dialect.interpreter.runtime_values import Value, from_python
from relax_dialect.ops.callees import explicit_symbols, prim_func_type
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import find_function, prover_at
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.match import Verdict, is_subtype
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp


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
