"""Calls of functions, closures and packed functions."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import RewritePattern

from lowering.locations import inherit_location
from lowering.relax_to_vm.checks import vm_type
from lowering.relax_to_vm.converter import ANYTHING, Constants, Converter
from lowering.rewriting import PatternIndex, op_rewrite_pattern
from relax_dialect.ops.call_tir import CallPackedOp, CallPurePackedOp
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import find_function
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import structure as vm
from vm_dialect.ops.values import StrOp
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


class ConvertCallPacked(RewritePattern):
    """A call for its effect or its result."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPackedOp, converter: Converter) -> None:
        _call(converter, op)


class ConvertCallPurePacked(RewritePattern):
    """A call for its result."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallPurePackedOp, converter: Converter) -> None:
        _call(converter, op)


def _call(converter: Converter, op: CallPackedOp | CallPurePackedOp) -> None:
    arguments = converter.get_all(op.arguments)
    if op.result is None:
        converter.emit(vm_calls.CallPackedOp(op.symbol, arguments))
        return
    register = converter.result(vm_calls.CallPackedOp(op.symbol, arguments, OBJECT))
    what = f'result of the packed function "{op.symbol.data}"'
    converter.set(op.result, converter.typed(register, op.result.type, what))


def convert_function(func: FuncOp, constants: Constants, patterns: PatternIndex) -> vm.FuncOp:
    """The function of the machine for a function whose checks are explicit; its constants are added to `constants`."""
    name = func.sym_name.data
    entry = Block(arg_types=[OBJECT] * len(func.params))
    signature = ([OBJECT] * len(func.params), [vm_type(func.function_type.ret)])
    visibility = func.sym_visibility.data if isinstance(func.sym_visibility, StringAttr) else None
    result = vm.FuncOp(
        name,
        signature,
        Region(entry),
        arg_names=func.param_names,
        result_names=func.result_names,
        visibility=visibility,
    )
    inherit_location(func, result)
    converter = Converter(name, entry, constants, patterns)
    for param, argument in zip(func.params, entry.args, strict=True):
        converter.set(param, argument)
    converter.convert_block(func.body.block)
    return result


class ConvertReturn(RewritePattern):
    """The end of the function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReturnOp, converter: Converter) -> None:
        converter.emit(vm.ReturnOp(converter.get(op.value)))
