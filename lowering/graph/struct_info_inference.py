"""Inference of all result types of a function in one walk; loops to a fixpoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatchmethod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, DestinationPassing
from relax_dialect.ops.calls import CallOp, MakeClosureOp, find_relax_function
from relax_dialect.ops.control_flow import IfOp, join_yields, visible_yields
from relax_dialect.ops.dataflow import DataflowOp, visible_types
from relax_dialect.ops.guard import GuardOp
from relax_dialect.ops.loops import ForOp, LoopOp, final_types
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at, symbols_witnessed
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.calls import partial_application
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.join import join
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.subtype import Verdict, is_subtype
from relax_dialect.struct_info.types import ShapeType, TensorType


class StructInfoInference:
    """Sets the types of results, carried values and function values to what can be inferred.

    A type that is declared, as of a `relax.match_cast`, only gets what it leaves open; as a loop may be walked several
    times, what was declared at first is remembered.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        """What can never be right in the function that was inferred last."""
        self._declared: dict[tuple[Operation, int], StructInfo] = {}

    def function(self, func: FuncOp) -> bool:
        """Infers everything in a function; whether its result type has changed. `findings` are then those of it."""
        self.findings.clear()
        old = func.function_type
        self._block(func.body.block)
        ret = self._returned(func, self._first(func, 0, old.ret))
        func.function_type = with_result(old, ret)
        return func.function_type != old

    # Tools

    def _first(self, op: Operation, index: int, info: StructInfo) -> StructInfo:
        """What was declared at place `index` of `op` before anything was changed."""
        return self._declared.setdefault((op, index), info)

    def _set(self, values: Iterable[SSAValue], types: Iterable[StructInfo]) -> None:
        for value, info in zip(tuple(values), types, strict=True):
            if value.type != info:
                Rewriter.replace_value_with_new_type(value, info)

    def _settle(self, op: Operation, inferred: Sequence[StructInfo]) -> None:
        """Results that say what is inferred; what they declared in other words stays, if it follows."""
        prover = prover_at(op)
        types = [
            refine(declared, info) if is_subtype(info, declared, prover) is Verdict.YES else info
            for declared, info in zip(as_struct_infos(op.result_types), inferred, strict=True)
        ]
        self._set(op.results, types)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            try:
                self._visit(op)
            except (VerifyException, Mismatch, ValueError) as error:
                self.findings.append(Finding.at(op, str(error)))

    def _returned(self, func: FuncOp | ClosureOp, declared: StructInfo) -> StructInfo:
        """The declared result, refined by what the body returns as far as that can be said outside."""
        block = func.body.block
        terminator = block.last_op
        if not isinstance(terminator, ReturnOp):
            return declared
        (info,) = as_struct_infos([terminator.value.type])
        return refine(declared, erase_symbols(info, bound_in(block)))

    # Ops

    @singledispatchmethod
    def _visit(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
        op.verify_()

    @_visit.register
    def _(self, op: InfersResultTypes) -> None:
        if isinstance(op, ConstantOp) and op.weight_name is not None:
            return
        inferred = op.infer_result_types(op.operand_types, op.properties, prover_at(op))
        if len(inferred) == len(op.results):
            self._settle(op, inferred)

    @_visit.register
    def _(self, op: CallOp) -> None:
        if (outcome := op.outcome()) is not None:
            self._settle(op, [outcome.ret])

    @_visit.register
    def _(self, op: MakeClosureOp) -> None:
        if (callee := find_relax_function(op, op.callee)) is not None:
            captured = as_struct_infos(op.operand_types)
            self._settle(op, [partial_application(callee.function_type, captured, prover_at(op))])

    @_visit.register
    def _(self, op: MatchCastOp) -> None:
        (known,) = as_struct_infos([op.value.type])
        self._set([op.result], [refine(self._first(op, 0, op.result.type), known)])
        op.verify_()

    @_visit.register
    def _(self, op: GuardOp) -> None:
        self._set([op.result], as_struct_infos([op.value.type]))

    @_visit.register
    def _(self, op: DestinationPassing) -> None:
        self._set(op.res, self._destinations(op))
        op.verify_()

    def _destinations(self, op: DestinationPassing) -> list[StructInfo]:
        """What is declared, with dimensions that the operand with the shape says; in place, the argument's type."""
        types = [self._first(op, index, info) for index, info in enumerate(op.res.types)]
        for index, info in enumerate(op.shapes.types):
            if isinstance(info, ShapeType):
                types[index] = refine(types[index], TensorType(info.shape))
        if isinstance(op, CallTIRInplaceOp):
            for index, target in enumerate(op.targets):
                if target >= 0:
                    (types[index],) = as_struct_infos([op.arguments[target].type])
        return types

    # Regions

    @_visit.register
    def _(self, op: DataflowOp) -> None:
        self._block(op.body.block)
        self._set(op.results, visible_types(op.body.block))

    @_visit.register
    def _(self, op: IfOp) -> None:
        self._block(op.then_region.block)
        self._block(op.else_region.block)
        joined = join_yields(op.then_region, op.else_region)
        if len(joined) == len(op.res):
            self._set(op.res, joined)
        op.verify_()

    @_visit.register
    def _(self, op: ClosureOp) -> None:
        """A recursive closure is walked again for as long as its result becomes more precise."""
        declared = self._first(op, 0, op.function_type)
        known = declared if isinstance(declared, FuncType) else op.function_type
        while True:
            self._set(() if op.itself is None else [op.itself], [known] if op.itself is not None else ())
            self._block(op.body.block)
            ret = self._returned(op, known.ret)
            if ret == known.ret:
                break
            known = with_result(known, ret)
        self._set([op.result], [known])

    @_visit.register
    def _(self, op: LoopOp) -> None:
        """The carried values have what first values and yielded values have in common.

        It is assumed at first that a loop carries what it begins with; in each round facts are given up that the body
        does not keep. If the body cannot be right under an assumption, nothing is assumed but what is declared.
        """
        declared = [self._first(op, index, info) for index, info in enumerate(carried_types(op))]
        assumed = [
            refine(info, erase_symbols(known, own_symbols(op)))
            for info, known in zip(declared, as_struct_infos(value.type for value in op.inits), strict=True)
        ]
        before = len(self.findings)
        while True:
            kept = self._iteration(op, declared, assumed)
            if len(self.findings) > before and assumed != declared:
                del self.findings[before:]
                assumed = declared
            elif kept == assumed:
                break
            else:
                assumed = kept
        hidden = () if not isinstance(op, ForOp) or op.counter_symbol is None else (op.counter_symbol.data,)
        self._set(op.res, final_types(op.regions[0].block, op.leading, op.symbol_names, hidden))
        op.verify_()

    def _iteration(self, op: LoopOp, declared: Sequence[StructInfo], assumed: Sequence[StructInfo]) -> list[StructInfo]:
        """What is left of the assumed types of the carried values after an iteration."""
        for region in op.regions:
            self._set(op.carried(region.block), assumed)
            self._block(region.block)
        body = op.regions[-1]
        yields = [erase_symbols(info, own_symbols(op)) for info in visible_yields(body)]
        return [join(was, refine(info, known)) for was, info, known in zip(assumed, declared, yields, strict=True)]


def carried_types(op: LoopOp) -> tuple[StructInfo, ...]:
    """The types of the values that a loop carries."""
    return as_struct_infos(argument.type for argument in op.carried(op.regions[0].block))


def own_symbols(op: LoopOp) -> tuple[str, ...]:
    """The symbols that each iteration binds anew."""
    counter = op.counter_symbol if isinstance(op, ForOp) else None
    return op.symbol_names if counter is None else (*op.symbol_names, counter.data)


def bound_in(block: Block) -> set[str]:
    """The symbols that the ops of a block bind."""
    return {name for op in block.ops for name in symbols_witnessed(op)}


def with_result(func: FuncType, ret: StructInfo) -> FuncType:
    """A function type with another result; what is not known of its parameters stays unknown."""
    params = None if func.opaque else func.params
    return FuncType(params, ret, pure=func.pure, symbols=func.symbols, derive=func.derive)
