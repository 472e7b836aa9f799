"""The result types of one op, from its operands and from what its regions yield as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatchmethod

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, DestinationPassing
from relax_dialect.ops.callees import function_value_type
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, join_yields
from relax_dialect.ops.dataflow import DataflowOp, visible_types
from relax_dialect.ops.fused import FusedOp, fused_types
from relax_dialect.ops.guard import GuardOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.match import Verdict, is_subtype, partial_application
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import ShapeType, TensorType


class ResultTypes:
    """Sets the results of ops to the types that can be inferred.

    A type that the program declares, as of a `relax.match_cast`, only gets what it leaves open. As an op may be visited
    several times, what was declared at first is remembered.
    """

    def __init__(self) -> None:
        self._declared: dict[tuple[Operation, int], StructInfo] = {}

    def declared(self, op: Operation, index: int, info: StructInfo) -> StructInfo:
        """What was declared at position `index` of `op` when it was first asked for; `info` is what is there now."""
        return self._declared.setdefault((op, index), info)

    def set_types(self, values: Iterable[SSAValue], types: Iterable[StructInfo]) -> None:
        """Gives each value its type."""
        for value, info in zip(tuple(values), types, strict=True):
            if value.type != info:
                Rewriter.replace_value_with_new_type(value, info)

    @singledispatchmethod
    def infer(self, op: Operation) -> None:
        """Sets the types of the results; those of loops and closures are left alone.

        Raises `VerifyException`, `Mismatch` or `ValueError` if the op can never be right.
        """
        if not op.regions:
            op.verify_()

    def _settle(self, op: Operation, inferred: Sequence[StructInfo]) -> None:
        """Results that say what is inferred; what they declare in other words stays, if it follows."""
        prover = prover_at(op)
        types = [
            refine(declared, info) if is_subtype(info, declared, prover) is Verdict.YES else info
            for declared, info in zip(as_struct_infos(op.result_types), inferred, strict=True)
        ]
        self.set_types(op.results, types)

    @infer.register
    def _(self, op: InfersResultTypes) -> None:
        if isinstance(op, ConstantOp) and op.weight_name is not None:
            return
        inferred = op.infer_result_types(op.operand_types, op.properties, prover_at(op))
        if len(inferred) == len(op.results):
            self._settle(op, inferred)

    @infer.register
    def _(self, op: CallOp) -> None:
        if (outcome := op.outcome()) is not None:
            self._settle(op, [outcome.ret])

    @infer.register
    def _(self, op: MakeClosureOp) -> None:
        if (func := function_value_type(op, op.callee)) is not None:
            captured = as_struct_infos(op.operand_types)
            self._settle(op, [partial_application(func, captured, prover_at(op))])

    @infer.register
    def _(self, op: MatchCastOp) -> None:
        (known,) = as_struct_infos([op.value.type])
        self.set_types([op.result], [refine(self.declared(op, 0, op.result.type), known)])
        op.verify_()

    @infer.register
    def _(self, op: GuardOp) -> None:
        self.set_types([op.result], as_struct_infos([op.value.type]))

    @infer.register
    def _(self, op: DestinationPassing) -> None:
        self.set_types(op.res, self._destinations(op))
        op.verify_()

    def _destinations(self, op: DestinationPassing) -> list[StructInfo]:
        """What is declared, with dimensions that the operand with the shape says; in place, the argument's type."""
        types = [self.declared(op, index, info) for index, info in enumerate(op.res.types)]
        for index, info in enumerate(op.shapes.types):
            if isinstance(info, ShapeType):
                types[index] = refine(types[index], TensorType(info.shape))
        if isinstance(op, CallTIRInplaceOp):
            for index, target in enumerate(op.targets):
                if target >= 0:
                    (types[index],) = as_struct_infos([op.arguments[target].type])
        return types

    @infer.register
    def _(self, op: DataflowOp) -> None:
        self.set_types(op.results, visible_types(op.body.block))

    @infer.register
    def _(self, op: FusedOp) -> None:
        self.set_types(op.res, fused_types(op.body))

    @infer.register
    def _(self, op: IfOp) -> None:
        joined = join_yields(op.then_region, op.else_region)
        if len(joined) == len(op.res):
            # Types that name a symbol which only the op's own results witness say more than any join.
            own = set(op.result_witnesses)
            declared = as_struct_infos(op.res.types)
            pairs = zip(declared, joined, strict=True)
            self.set_types(op.res, [refine(old, new) if free_symbols(old) & own else new for old, new in pairs])
        op.verify_()
