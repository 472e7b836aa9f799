"""Calls of functions, closures and packed functions."""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern

from lowering.relax_to_vm.converter import ANYTHING, Converter
from lowering.relax_to_vm.types import vm_type
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import find_function
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops.constants import StrOp
from vm_dialect.types import OBJECT

EXTERN_FUNC = "vm.builtin.get_packed_func"
"""The packed function that looks up a packed function by name."""


class ConvertCall(RewritePattern):
    """A call of a function of the module, whose result is what it declares; more is checked here."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, converter: Converter) -> None:
        callee = find_function(op, op.callee.string_value())
        stated = callee.function_type.ret if isinstance(callee, FuncOp) else ANYTHING
        register = converter.result(vm_calls.CallOp(op.callee, converter.get_all(op.arguments), vm_type(stated)))
        # A check after the call that can never fail would take it out of tail position.
        what = f"result of @{op.callee.string_value()}"
        converter.set(op.result, converter.typed(register, op.result.type, what, stated))


class ConvertCallClosure(RewritePattern):
    """A call of a function value, of whose result nothing is known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallClosureOp, converter: Converter) -> None:
        closure = vm_calls.CallClosureOp(converter.get(op.callee), converter.get_all(op.arguments), OBJECT)
        converter.set(op.result, converter.typed(converter.result(closure), op.result.type, "result of a closure"))


class ConvertMakeClosure(RewritePattern):
    """A function value with captured values."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeClosureOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_calls.MakeClosureOp(op.callee, converter.get_all(op.captured))))


class ConvertExternFunc(RewritePattern):
    """A packed function as a value."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ExternFuncOp, converter: Converter) -> None:
        name = converter.result(StrOp(op.symbol))
        converter.set(op.result, converter.result(vm_calls.CallPackedOp(EXTERN_FUNC, [name], OBJECT)))
