"""Calls of functions, closures and packed functions."""

from __future__ import annotations

from lowering.relax_to_vm.converter import ANYTHING, Converter, converts
from lowering.relax_to_vm.types import vm_type
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import find_function
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops.constants import StrOp
from vm_dialect.types import OBJECT

EXTERN_FUNC = "vm.builtin.get_packed_func"
"""The packed function that looks up a packed function by name."""


@converts(CallOp)
def call(converter: Converter, op: CallOp) -> None:
    """A call of a function of the module, whose result is what it declares; more is checked here."""
    callee = find_function(op, op.callee.string_value())
    stated = callee.function_type.ret if isinstance(callee, FuncOp) else ANYTHING
    register = converter.result(vm_calls.CallOp(op.callee, converter.get_all(op.arguments), vm_type(stated)))
    # A check after the call that can never fail would take it out of tail position.
    what = f"result of @{op.callee.string_value()}"
    converter.set(op.result, converter.typed(register, op.result.type, what, stated))


@converts(CallClosureOp)
def call_closure(converter: Converter, op: CallClosureOp) -> None:
    """A call of a function value, of whose result nothing is known."""
    closure = vm_calls.CallClosureOp(converter.get(op.callee), converter.get_all(op.arguments), OBJECT)
    converter.set(op.result, converter.typed(converter.result(closure), op.result.type, "result of a closure"))


@converts(MakeClosureOp)
def make_closure(converter: Converter, op: MakeClosureOp) -> None:
    """A function value with captured values."""
    converter.set(op.result, converter.result(vm_calls.MakeClosureOp(op.callee, converter.get_all(op.captured))))


@converts(ExternFuncOp)
def extern_func(converter: Converter, op: ExternFuncOp) -> None:
    """A packed function as a value."""
    name = converter.result(StrOp(op.symbol))
    converter.set(op.result, converter.result(vm_calls.CallPackedOp(EXTERN_FUNC, [name], OBJECT)))
