"""Where the memory of a value may get to: into the hands of a caller, of a closure, or of code that writes into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue, Use

from relax_dialect.ops.call_packed import CallDPSPackedOp, CallPurePackedOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.fused import FusedOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.symbols import find_function
from relax_dialect.traits import AliasesOperand, OnlyReadsTensors

_READERS = (Operator, CallTIROp, CallDPSPackedOp, AssertOp, PrintOp)
"""Ops that look at elements and make new memory for their results."""

_REGIONS = (DataflowOp, FusedOp, IfOp)
"""Ops whose results are what their regions end with."""


@dataclass(frozen=True)
class Leaks:
    """The parameters of a module's functions whose memory a call may write into, return or keep."""

    params: frozenset[tuple[str, int]]

    @staticmethod
    def of(module: ModuleOp) -> Leaks:
        """The least set that agrees with itself: what a function passes on leaks if the function called lets it."""
        funcs = [op for op in module.ops if isinstance(op, FuncOp)]
        found = Leaks(frozenset())
        while True:
            params = frozenset(
                (func.sym_name.data, index)
                for func in funcs
                for index, param in enumerate(func.params)
                if any(found.uses(param))
            )
            if params == found.params:
                return found
            found = Leaks(params)

    def uses(self, value: SSAValue) -> Iterator[Use]:
        """The uses of a value, one after the other, that let its memory leak."""
        return (use for use in value.uses if self._leaks(use))

    def _any_leaks(self, value: SSAValue) -> bool:
        return any(self.uses(value))

    def _leaks(self, use: Use) -> bool:
        op, index = use.operation, use.index
        match op:
            case _ if op.has_trait(AliasesOperand):
                return index == 0 and self._any_leaks(op.results[0])
            case _ if isinstance(op, _READERS) or op.has_trait(OnlyReadsTensors):
                return False
            case CallTIRInplaceOp():
                return index in op.targets
            case CallOp():
                return (op.callee.string_value(), index) in self.params
            case MakeClosureOp():
                is_relax = isinstance(find_function(op, op.callee.string_value()), FuncOp)
                return not is_relax or (op.callee.string_value(), index) in self.params
            case TupleOp():
                return any(self._leaks(each) for each in op.result.uses if _may_take(each, index))
            case TupleGetOp() | CallPurePackedOp():  # which may hand back what it got, but does not write into it
                return any(map(self._any_leaks, op.results))
            case OutputOp() | YieldOp():
                parent = op.parent_op()
                return not isinstance(parent, _REGIONS) or self._any_leaks(parent.results[index])
            case _:
                return True


def _may_take(use: Use, index: int) -> bool:
    """Whether a use of a tuple may be one of the field with this index."""
    return not isinstance(use.operation, TupleGetOp) or use.operation.index.value.data == index
