"""Calls of packed functions, whose results are checked to be what the program says."""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern

from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.call_packed import CallPackedOp, CallPurePackedOp
from vm_dialect.ops import calls as vm_calls
from vm_dialect.types import OBJECT


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
