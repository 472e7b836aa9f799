"""Ops that are executed for their effect."""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern

from lowering.relax_to_vm.control_flow import condition
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.effects import AssertOp, PrintOp
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import checks as vm
from vm_dialect.ops import structure
from vm_dialect.ops.values import StrOp
from vm_dialect.types import I64

PRINT = "vm.builtin.print"
FAIL = "vm.builtin.fail"


class ConvertPrint(RewritePattern):
    """A call of the run-time library."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: PrintOp, converter: Converter) -> None:
        text = converter.result(StrOp(op.format))
        converter.emit(vm_calls.CallPackedOp(PRINT, [text, *converter.get_all(op.values)]))


class ConvertAssert(RewritePattern):
    """A check of the machine if its message shows integers only; else a branch to a call that raises the error."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AssertOp, converter: Converter) -> None:
        holds, values = condition(converter, op.condition), converter.get_all(op.values)
        message = f"{converter.function}: {op.format.data}"
        # In messages of the machine `{name}` is a mark too.
        if all(value.type == I64 for value in values) and "{name}" not in message:
            converter.emit(vm.AssertOp(holds, message, values))
            return
        failed, done = converter.new_block(), converter.new_block()
        converter.emit(structure.IfOp(holds, done, [], failed, []))
        converter.continue_in(failed)
        text = converter.result(StrOp(message))
        converter.emit(vm_calls.CallPackedOp(FAIL, [text, *values]))
        converter.emit(structure.GotoOp(done, []))
        converter.continue_in(done)
